"""ECE, MCE and class-wise ECE."""

import time

import numpy as np
import polars as pl
import pytest

from abstain._foundation.scored import ClassView, Scored
from abstain.errors import DomainError, InputError, UnknownNameError
from abstain.metrics import metric_named
from abstain.metrics.calibration import ENTRIES, classwise_ece, ece, mce

METRICS = {e.name: e for e in ENTRIES}


def gaps(c, loss, weight, bins):
    """(share, gap) of each right-closed bin, one by one."""
    results = []
    for j in range(bins):
        low, high = j / bins, (j + 1) / bins
        inside = (c > low) & (c <= high) | ((j == 0) & (c == 0))
        if weight[inside].sum() > 0:
            accuracy = np.average(1 - loss[inside], weights=weight[inside])
            mean = np.average(c[inside], weights=weight[inside])
            results.append((weight[inside].sum() / weight.sum(), abs(accuracy - mean)))
    return results


def draw(seed, n=120):
    rng = np.random.default_rng(seed)
    c = np.round(rng.random(n), 1)
    return c, (rng.random(n) > c).astype(float), rng.integers(0, 4, n)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("bins", [1, 5, 10, 15])
def test_equals_brute_force(seed, bins):
    c, loss, weight = draw(seed)
    for w in (None, weight):
        result = gaps(c, loss, np.ones(c.size) if w is None else w, bins)
        expected = sum(share * gap for share, gap in result)
        assert ece(c, loss, bins=bins, weight=w) == pytest.approx(expected, abs=1e-12)
        assert mce(c, loss, bins=bins, weight=w) == pytest.approx(max(g for _, g in result))


def test_published_value_of_the_right_open_convention(shared):
    data = pl.read_csv(shared / "data" / "real" / "mnist_cnn_predictions.csv")
    published = pl.read_csv(shared / "data" / "real" / "mnist_cnn_cwsa_published.csv")
    c = data["confidence"].to_numpy()
    loss = (data["y_true"] != data["y_pred"]).to_numpy()
    value = ece(c, loss, bins=10, convention="right_open")
    assert value == pytest.approx(0.003581148011999976, abs=1e-9)
    assert value == pytest.approx(published["ECE"][0], abs=1e-9)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_confidence_of_one_is_in_the_last_bin(dtype):
    # torchmetrics bins 1.0 past the last edge, in a bin of its own: the two gaps of +0.5 and -0.5
    # would then count as 0.5, though the bin as a whole is calibrated.
    c, loss = np.array([1.0, 0.5 + 1e-3], dtype=dtype), np.array([1, 0])
    one_bin = abs(0.5 - float(c.astype(float).mean()))
    assert ece(c, loss, bins=2) == pytest.approx(one_bin, abs=1e-12)
    assert mce(c, loss, bins=2) == pytest.approx(one_bin, abs=1e-12)


def test_right_open_drops_a_confidence_of_one_and_divides_by_all():
    assert ece([1.0, 0.75], [1, 0], bins=10, convention="right_open") == pytest.approx(0.125)
    assert ece([1.0, 1.0], [1, 1], bins=10, convention="right_open") == 0.0


def test_an_edge_belongs_to_the_bin_below_it():
    for k in range(1, 15):
        # Together in (k-1, k]/15: a gap of the mean, not a mean of gaps.
        c = np.array([k / 15, k / 15 - 0.05])
        assert ece(c, [0, 1], bins=15) == pytest.approx(abs(0.5 - c.mean()), abs=1e-12)
    assert ece([0.0, 0.1], [0, 1], bins=2) == pytest.approx(0.45)


def test_equal_mass_without_ties_is_an_equal_split():
    rng = np.random.default_rng(0)
    c, loss = rng.random(60), rng.integers(0, 2, 60)
    order = np.argsort(c)
    parts = np.array_split(order, 6)
    results = [abs((1 - loss[i]).mean() - c[i].mean()) for i in parts]
    assert ece(c, loss, bins=6, binning="equal_mass") == pytest.approx(np.mean(results))
    assert mce(c, loss, bins=6, binning="equal_mass") == pytest.approx(max(results))


def test_equal_mass_never_splits_ties():
    c, loss = np.array([0.2, 0.5, 0.5, 0.5, 0.5, 0.9]), np.array([1, 0, 1, 0, 1, 0])
    order = np.random.default_rng(1).permutation(6)
    value = ece(c, loss, bins=2, binning="equal_mass")
    assert value == ece(c[order], loss[order], bins=2, binning="equal_mass")
    # The group's middle is the end of the first bin: it goes to the second with 0.9.
    assert value == pytest.approx((0.2 + 5 * abs(3 / 5 - 2.9 / 5)) / 6)


@pytest.mark.parametrize("binning", ["equal_width", "equal_mass"])
@pytest.mark.parametrize("function", [ece, mce])
def test_weights_repeat_and_order_does_not_matter(function, binning):
    c, loss, w = draw(9)
    value = function(c, loss, binning=binning, weight=w)
    repeated = function(np.repeat(c, w), np.repeat(loss, w), binning=binning)
    assert repeated == pytest.approx(value, abs=1e-12)
    order = np.random.default_rng(0).permutation(c.size)
    assert function(c[order], loss[order], binning=binning, weight=w[order]) == pytest.approx(value)
    assert function(np.tile(c, 2), np.tile(loss, 2), binning=binning) == pytest.approx(
        function(c, loss, binning=binning)
    )


@pytest.mark.parametrize("binning", ["equal_width", "equal_mass"])
def test_small_cases(binning):
    assert ece([0.75], [0], binning=binning) == mce([0.75], [0], binning=binning) == 0.25
    assert ece([0.75], [1], binning=binning) == 0.75
    assert ece([0.5] * 4, [0, 0, 1, 1], binning=binning) == 0.0
    assert ece([1.0] * 3, [0] * 3, binning=binning) == 0.0
    assert ece([1.0] * 3, [1] * 3, binning=binning) == 1.0
    assert ece([0.0] * 3, [1] * 3, binning=binning) == 0.0


def test_graded_losses_count_as_graded_correctness():
    assert ece([0.75, 0.75], [0.5, 0.0]) == 0.0


def classwise(p, y, bins):
    w = np.ones(y.size)
    per_class = [
        sum(s * g for s, g in gaps(p[:, k], (y != k).astype(float), w, bins))
        for k in range(p.shape[1])
    ]
    return np.mean(per_class)


def test_classwise_equals_brute_force():
    rng = np.random.default_rng(2)
    p = rng.dirichlet(np.ones(4), 80)
    y = rng.integers(-1, 4, 80)
    assert classwise_ece(p, y, bins=7) == pytest.approx(classwise(p, y, 7), abs=1e-12)
    w = rng.integers(0, 3, 80)
    repeated = classwise_ece(np.repeat(p, w, axis=0), np.repeat(y, w), binning="equal_mass")
    assert classwise_ece(p, y, binning="equal_mass", weight=w) == pytest.approx(repeated)


def test_classwise_of_two_classes_is_the_ece_of_one():
    rng = np.random.default_rng(3)
    p, y = rng.random(50), rng.integers(0, 2, 50)
    both = classwise_ece(np.stack((1 - p, p), axis=1), y, bins=5)
    # The edges fall on the other side for 1 - p, and none is hit here.
    assert both == pytest.approx(ece(p, 1 - y, bins=5))


def test_the_catalogue():
    rng = np.random.default_rng(4)
    p = rng.dirichlet(np.ones(3), 40)
    y, guess = rng.integers(0, 3, 40), p.argmax(axis=1)
    loss = (y != guess).astype(int)
    view = ClassView(y, guess, (0, 1, 2), None, np.log(p))
    # The confidence here is another score; calibration reads the probability.
    s = Scored(rng.normal(size=40), loss, probability=p.max(axis=1), class_view=view)
    assert METRICS["ece"].compute(s).value == ece(p.max(axis=1), loss)
    assert METRICS["mce"].compute(s).value == mce(p.max(axis=1), loss)
    mass = ece(p.max(axis=1), loss, binning="equal_mass")
    assert METRICS["ece_equal_mass"].compute(s).value == mass
    assert METRICS["classwise_ece"].compute(s).value == pytest.approx(classwise_ece(p, y))
    assert (
        METRICS["ece"].reason_not_applicable(Scored(s.confidence, loss))
        == "needs a confidence in [0, 1]"
    )


def test_messages():
    with pytest.raises(DomainError, match=r"`confidence` must lie in \[0, 1\]; got 1.5 at index 0"):
        ece([1.5], [0])
    with pytest.raises(DomainError, match=r"`loss` must lie in \[0, 1\]; got 2.0 at index 0"):
        mce([0.5], [2.0])
    with pytest.raises(InputError, match="`bins` must be an integer of at least 1; got 0"):
        ece([0.5], [0], bins=0)
    with pytest.raises(InputError, match="`binning` must be one of 'equal_width', 'equal_mass'"):
        ece([0.5], [0], binning="uniform")
    with pytest.raises(InputError, match="`convention` must be one of"):
        ece([0.5], [0], convention="open")
    with pytest.raises(InputError, match="`binning` must be 'equal_width' for right-open bins"):
        ece([0.5], [0], binning="equal_mass", convention="right_open")
    with pytest.raises(DomainError, match="`labels` must be below 2"):
        classwise_ece([[0.5, 0.5]], [2])
    with pytest.raises(DomainError, match="`probabilities` must sum to 1"):
        classwise_ece([[0.5, 0.1]], [1])


def test_classwise_error_of_many_classes_equals_that_of_each():
    rng = np.random.default_rng(3)
    n, classes, bins = 400, 9, 5
    # Probabilities on the edges of bins, and saturated ones.
    p = rng.multinomial(bins, rng.dirichlet(np.full(classes, 0.3), n)) / bins
    labels, weight = rng.integers(0, classes, n), rng.integers(0, 3, n).astype(float)
    gaps = 0.0
    for k in range(classes):
        for b in range(bins):
            inside = (p[:, k] > b / bins) | (b == 0)
            inside &= p[:, k] <= (b + 1) / bins
            mass = weight * inside
            gaps += abs((mass * (labels == k)).sum() - (mass * p[:, k]).sum())
    result = classwise_ece(p, labels, bins=bins, weight=weight)
    assert result == pytest.approx(gaps / weight.sum() / classes, rel=1e-12)


def test_classwise_error_of_a_hundred_thousand_classes_takes_no_time():
    n, classes = 20, 100_000
    p = np.full((n, classes), 1 / classes)
    start = time.process_time()
    assert classwise_ece(p, np.arange(n)) == pytest.approx(
        2 * (1 - n / classes) / classes, abs=1e-9
    )
    assert time.process_time() - start < 3


def test_a_name_says_how_many_bins():
    rng = np.random.default_rng(4)
    c = rng.random(200)
    wrong = (rng.random(200) > c) * 1.0
    named, s = metric_named("ece@20bins"), Scored(c, wrong, probability=c)
    assert named.compute(s).value == ece(c, wrong, bins=20)
    assert named.compute(s).value != METRICS["ece"].compute(s).value
    assert "20 bins" in named.identity.meaning + named.identity.convention
    for none in ("ece@0bins", "ece@2.5bins", "ece@1000000bins"):
        with pytest.raises(UnknownNameError, match="ece@20bins"):
            metric_named(none)
