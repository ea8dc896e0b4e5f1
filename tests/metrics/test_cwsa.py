"""CWSA, CWSA+, their sweep and areas."""

import warnings

import numpy as np
import polars as pl
import pytest

from abstain._foundation.scored import Scored
from abstain.errors import DomainError, InputError, UndefinedMetricWarning
from abstain.metrics import (
    METRICS,
    group_contributions,
    metric_difference,
    metric_interval,
    metric_named,
    sample_contributions,
)
from abstain.metrics.catalogue import FAMILIES
from abstain.metrics.confidence_weighted.areas import (
    auc_mcc,
    auc_mcc_plus,
    cwsa_area,
    cwsa_plus_area,
    cwsa_sweep,
)
from abstain.metrics.confidence_weighted.cwsa import cwsa, cwsa_entry, cwsa_plus

#: As the catalogue holds them.
ENTRIES = tuple(metric for metric in METRICS.values() if metric.identity.family == "cwsa")

COLUMNS = {
    "threshold": "Threshold",
    "coverage": "Coverage",
    "selective_accuracy": "SelectiveAccuracy",
    "cwsa": "CWSA",
    "cwsa_plus": "CWSA+",
}


def published_code(c, loss, tau):
    """CWSA over all and CWSA+ over the accepted, sample by sample."""
    signed, plus = [], []
    for p, wrong in zip(c, loss, strict=True):
        phi = (p - tau) / (1 - tau)
        signed.append(0.0 if p < tau else -phi if wrong else phi)
        if p >= tau:
            plus.append(0.0 if wrong else phi)
    return np.mean(signed), np.mean(plus)


def draw(seed, n=80):
    rng = np.random.default_rng(seed)
    c = np.round(rng.random(n), 1)
    return c, (rng.random(n) > c).astype(int), rng.integers(0, 4, n)


def test_the_published_table(shared):
    data = pl.read_csv(shared / "data" / "real" / "mnist_cnn_predictions.csv")
    published = pl.read_csv(shared / "data" / "real" / "mnist_cnn_cwsa_published.csv")
    c = data["confidence"].to_numpy()
    loss = (data["y_true"] != data["y_pred"]).to_numpy()
    for sweep in (cwsa_sweep(c, loss), cwsa_sweep(c, loss, thresholds=published["Threshold"])):
        assert len(sweep) == 20
        for ours, theirs in COLUMNS.items():
            expected = published[theirs].to_numpy()
            np.testing.assert_allclose(getattr(sweep, ours), expected, rtol=0, atol=1e-9)
    row = published.row(0, named=True)
    assert cwsa(c, loss, threshold=row["Threshold"]) == pytest.approx(row["CWSA"], abs=1e-9)
    assert cwsa_plus(c, loss, threshold=row["Threshold"]) == pytest.approx(row["CWSA+"], abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("tau", [0.0, 0.3, 0.5, 0.9])
def test_equals_the_published_loop(seed, tau):
    c, loss, _ = draw(seed)
    signed, plus = published_code(c, loss, tau)
    coverage = (c >= tau).mean()
    assert cwsa(c, loss, threshold=tau) == pytest.approx(signed)
    assert cwsa_plus(c, loss, threshold=tau) == pytest.approx(plus)
    assert cwsa(c, loss, threshold=tau, normalize="accepted") == pytest.approx(signed / coverage)
    assert cwsa_plus(c, loss, threshold=tau, normalize="all") == pytest.approx(plus * coverage)


def test_ramps():
    c, loss = [0.75, 0.3], [0, 0]
    names = {"linear": 0.5, "quadratic": 0.25, "sqrt": 0.5**0.5, "step": 1.0}
    for name, expected in names.items():
        assert cwsa_plus(c, loss, threshold=0.5, ramp=name) == pytest.approx(expected)
        assert cwsa(c, loss, threshold=0.5, ramp=name) == pytest.approx(expected / 2)
    assert cwsa_plus(c, loss, threshold=0.5, ramp=lambda u: u**3) == pytest.approx(0.125)
    c, loss, _ = draw(1)
    step = cwsa_plus(c, loss, threshold=0.4, ramp="step")
    assert step == pytest.approx(1 - loss[c >= 0.4].mean())


def test_graded_losses():
    # Signs 1 - 2 loss: 0.5 is neither right nor wrong.
    assert cwsa([1.0, 1.0], [0.5, 0.25], threshold=0.5) == 0.25
    assert cwsa_plus([1.0, 1.0], [0.5, 0.25], threshold=0.5) == 0.625


@pytest.mark.parametrize(
    "function", [cwsa, cwsa_plus, cwsa_area, cwsa_plus_area, auc_mcc, auc_mcc_plus]
)
def test_weights_repeat_and_order_does_not_matter(function):
    c, loss, w = draw(2)
    option = {"threshold": 0.4} if function in {cwsa, cwsa_plus} else {}
    value = function(c, loss, weight=w, **option)
    repeated = function(np.repeat(c, w), np.repeat(loss, w), **option)
    assert repeated == pytest.approx(value, abs=1e-12)
    order = np.random.default_rng(0).permutation(c.size)
    shuffled = function(c[order], loss[order], weight=w[order], **option)
    assert shuffled == pytest.approx(value, abs=1e-12)
    doubled = function(np.tile(c, 2), np.tile(loss, 2), **option)
    assert doubled == pytest.approx(function(c, loss, **option))


def test_nothing_accepted():
    assert cwsa([0.1, 0.2], [0, 1], threshold=0.5) == 0.0
    assert cwsa_plus([0.1, 0.2], [0, 1], threshold=0.5, normalize="all") == 0.0
    for function in (cwsa, cwsa_plus):
        with pytest.warns(UndefinedMetricWarning, match="no sample reaches the threshold"):
            assert np.isnan(function([0.1], [0], threshold=0.5, normalize="accepted"))
    assert cwsa([0.1], [0], threshold=0.5, ramp=lambda u: u**3) == 0.0


def test_all_right_all_wrong_one_sample_all_tied():
    assert cwsa([1.0] * 3, [0] * 3, threshold=0.9) == 1.0
    assert cwsa([1.0] * 3, [1] * 3, threshold=0.9) == -1.0
    assert cwsa_plus([1.0] * 3, [1] * 3, threshold=0.9) == 0.0
    assert cwsa([0.75], [0], threshold=0.5) == 0.5
    assert cwsa([0.75] * 4, [0, 0, 1, 1], threshold=0.5) == 0.0
    # Sorted out at the threshold itself: accepted, and weighing nothing.
    assert cwsa([0.5], [0], threshold=0.5) == cwsa_plus([0.5], [0], threshold=0.5) == 0.0


def test_the_threshold_is_compared_in_double_precision():
    c = np.array([0.9], dtype=np.float32)
    assert float(c[0]) < 0.9
    assert cwsa(c, [0], threshold=0.9) == 0.0
    assert cwsa_sweep(c, [0], thresholds=[float(c[0])]).accepted.tolist() == [1]


def test_sweep():
    c, loss, w = draw(3)
    with pytest.warns(UndefinedMetricWarning, match="undefined where a threshold accepts no"):
        sweep = cwsa_sweep(c * 0.9, loss, thresholds=[0.95, 0.2], weight=w, ramp="sqrt")
    assert sweep.accepted.tolist() == [0, int((w[c * 0.9 >= 0.2] > 0).sum())]
    assert sweep.cwsa[0] == 0.0
    assert np.isnan(sweep.cwsa_plus[0])
    assert np.isnan(sweep.selective_accuracy[0])
    assert sweep.coverage[1] == pytest.approx(w[c * 0.9 >= 0.2].sum() / w.sum())
    expected = cwsa_plus(c * 0.9, loss, threshold=0.2, weight=w, ramp="sqrt")
    assert sweep.cwsa_plus[1] == pytest.approx(expected)
    frame = sweep.frame()
    assert frame.shape == (2, 6)
    assert frame["cwsa_plus"].null_count() == 1


def brute_area(c, loss, w, *, plus):
    """Vertices at the distinct confidences, each as a threshold of the public function."""
    x, y = [0.0], []
    for t in np.unique(c)[::-1]:
        tau = min(t, np.nextafter(1.0, 0.0))
        function = cwsa_plus if plus else cwsa
        x.append(np.average(c >= t, weights=w))
        y.append(function(c, loss, threshold=tau, weight=w))
    return np.trapezoid([y[0] if plus else 0.0, *y], x)


@pytest.mark.parametrize("seed", range(5))
def test_areas_equal_brute_force(seed):
    c, loss, w = draw(seed)
    w[np.argmax(c)] = 1
    mask = w > 0
    for function, plus in ((cwsa_area, False), (cwsa_plus_area, True)):
        expected = brute_area(c[mask], loss[mask], w[mask], plus=plus)
        assert function(c, loss, weight=w) == pytest.approx(expected, abs=1e-12)
        top = c * 0.95
        expected = brute_area(top[mask], loss[mask], w[mask], plus=plus)
        assert function(top, loss, weight=w) == pytest.approx(expected, abs=1e-12)


def test_the_areas_equal_those_of_the_authors_over_all_thresholds():
    # AUC-MCC takes trapezoids over the thresholds of a sweep; ours goes on to coverage 0.
    c, loss, _ = draw(3)
    c = 0.05 + 0.9 * c
    s = cwsa_sweep(c, loss, thresholds=np.unique(c)[::-1])
    for function, value, end in (
        (cwsa_area, s.cwsa, s.cwsa[0] / 2),
        (cwsa_plus_area, s.cwsa_plus, s.cwsa_plus[0]),
    ):
        authors = np.trapezoid(value, s.coverage)
        assert function(c, loss) == pytest.approx(authors + end * s.coverage[0], abs=1e-12)
    usual = cwsa_sweep(c, loss, thresholds=np.linspace(0.5, 0.9, 20))
    authors = np.trapezoid(usual.cwsa[::-1], usual.coverage[::-1])
    assert abs(cwsa_area(c, loss) - authors) > 0


@pytest.mark.parametrize(("function", "plus"), [(auc_mcc, False), (auc_mcc_plus, True)])
@pytest.mark.parametrize("top", [1.0, 0.8, 0.4])
def test_auc_mcc_is_the_trapezoid_over_the_published_thresholds(function, plus, top):
    c, loss, w = draw(3, n=400)
    c = top * np.random.default_rng(0).random(c.size)
    x, y = [], []
    for threshold in np.linspace(0.5, 0.99, 20)[::-1]:
        if not plus or (w * (c >= threshold)).any():
            x.append(np.average(c >= threshold, weights=w))
            y.append((cwsa_plus if plus else cwsa)(c, loss, threshold=threshold, weight=w))
    assert function(c, loss, weight=w) == pytest.approx(np.trapezoid(y, x), abs=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        swept = cwsa_sweep(c, loss, weight=w).auc_mcc("cwsa_plus" if plus else "cwsa")
    assert function(c, loss, weight=w) == pytest.approx(swept, abs=1e-12)
    assert (function(c, loss, weight=w) == 0) == (top == 0.4)


def test_auc_mcc_of_the_authors_predictions(shared):
    data = pl.read_csv(shared / "data" / "real" / "mnist_cnn_predictions.csv")
    table = pl.read_csv(shared / "data" / "real" / "mnist_cnn_cwsa_published.csv").reverse()
    c, loss = data["confidence"].to_numpy(), (data["y_true"] != data["y_pred"]).to_numpy()
    for function, column in ((auc_mcc, "CWSA"), (auc_mcc_plus, "CWSA+")):
        expected = np.trapezoid(table[column], table["Coverage"])
        assert function(c, loss) == pytest.approx(expected, abs=1e-9)
    # The area over all coverages is another number.
    assert auc_mcc(c, loss) == pytest.approx(0.1533, abs=5e-5)
    assert cwsa_area(c, loss) == pytest.approx(0.4009, abs=5e-5)


@pytest.mark.parametrize("metric", ["auc_mcc", "auc_mcc_plus"])
@pytest.mark.parametrize(("n", "simulations"), [(400, 500), (2000, 300)])
def test_intervals_of_auc_mcc_cover_the_value_of_the_population(metric, n, simulations):
    rng = np.random.default_rng(1)
    population = np.arange(0.5, 400_000) / 400_000

    def sample(size):
        # The risk is 1 - confidence^2: overconfident, so CWSA and CWSA+ differ.
        c = population if size is None else rng.random(size)
        c = 0.4 + 0.6 * c**0.2
        return c, 1 - c**2 if size is None else (rng.random(size) > c**2).astype(float)

    expected = METRICS[metric].compute(Scored(*(sample(None)), probability=sample(None)[0])).value
    intervals = [metric_interval(*sample(n), metric=metric) for _ in range(simulations)]
    covered = np.mean([i.low <= expected <= i.high for i in intervals])
    assert abs(covered - 0.95) < 0.03


def test_a_threshold_that_new_data_may_leave_empty_allows_no_interval():
    # Simulated: intervals held the value in 71% to 79% of draws where about two samples reach 0.99.
    c = np.linspace(0, 0.995, 400)
    loss = (np.random.default_rng(0).random(c.size) > c).astype(float)
    assert 0 < (c >= 0.99).sum() < 10
    interval = metric_interval(c, loss, metric="auc_mcc_plus")
    assert np.isnan(interval.low)
    assert (
        "samples are accepted at the threshold 0.99; an interval needs at least 10" in interval.note
    )
    difference = metric_difference(c, c**2, loss, metric="auc_mcc_plus")
    assert np.isnan(difference.p_value)
    assert "accepted at the threshold 0.99" in difference.note
    # CWSA goes to 0 with the coverage, and has no such jump.
    assert np.isfinite(metric_interval(c, loss, metric="auc_mcc").low)


@pytest.mark.parametrize("plus", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("threshold", [0.0, 0.5, 0.83])
def test_contributions_sum_to_cwsa(plus, weighted, threshold):
    c, loss, w = draw(5)
    weight = w if weighted else None
    name = f"cwsa{'_plus' if plus else ''}@{threshold:g}"
    parts = sample_contributions(c, loss, metric=name, weight=weight)
    function = cwsa_plus if plus else cwsa
    assert parts.sum() == pytest.approx(function(c, loss, threshold=threshold, weight=weight))
    assert not parts[c < threshold].any()
    assert (parts[loss == 0] >= 0).all()
    assert plus or (parts[loss == 1] <= 0).all()
    grouped = group_contributions(c, loss, loss, metric=name, weight=weight)
    assert grouped.contribution.sum() == pytest.approx(parts.sum())
    assert grouped.share.sum() == pytest.approx(1.0)


def test_contributions_to_cwsa_by_hand():
    c, loss = np.array([1.0, 0.95, 0.9, 0.2], np.float32), [0, 1, 0, 1]
    parts = sample_contributions(c, loss, metric="cwsa@0.9")
    np.testing.assert_allclose(parts, [0.25, -0.125, 0.0, 0.0], atol=1e-7)
    with pytest.raises(DomainError, match=r"`confidence` must lie in \[0, 1\]"):
        sample_contributions([1.5, 0.2], [0, 1], metric="cwsa@0.9")
    with pytest.warns(UndefinedMetricWarning, match="no sample reaches"):
        parts = sample_contributions([0.3, 0.2], [0, 1], metric="cwsa_plus@0.9")
    assert np.isnan(parts).all()


def test_areas_of_one_confidence():
    assert cwsa_area([1.0] * 3, [0] * 3) == 0.5
    assert cwsa_area([1.0] * 3, [1] * 3) == -0.5
    assert cwsa_plus_area([1.0] * 4, [0, 0, 0, 1]) == 0.75
    assert cwsa_area([0.3], [0]) == cwsa_plus_area([0.3], [0]) == 0.0


def test_entries():
    names = [e.name for e in ENTRIES]
    assert names == [
        "cwsa@0.5",
        "cwsa@0.9",
        "cwsa_plus@0.5",
        "cwsa_plus@0.9",
        "cwsa_area",
        "cwsa_plus_area",
        "auc_mcc",
        "auc_mcc_plus",
    ]
    c, loss, w = draw(4)
    s = Scored(c, loss, w.astype(float), probability=c)
    values = {e.name: e.compute(s).value for e in ENTRIES}
    # The functions drop rows with weight 0, which changes the order of a sum.
    expected = {
        "cwsa@0.5": cwsa(c, loss, threshold=0.5, weight=w),
        "cwsa_plus@0.9": cwsa_plus(c, loss, threshold=0.9, weight=w),
        "cwsa_area": cwsa_area(c, loss, weight=w),
        "auc_mcc": auc_mcc(c, loss, weight=w),
        "auc_mcc_plus": auc_mcc_plus(c, loss, weight=w),
    }
    assert {name: values[name] for name in expected} == pytest.approx(expected, rel=1e-12)
    assert ENTRIES[0].compute(s).n_accepted == int(((c >= 0.5) & (w > 0)).sum())
    assert ENTRIES[3].compute(Scored(c * 0.5, loss)).reason == "no sample reaches the threshold"


def test_entries_read_the_probability_not_the_confidence():
    c, loss, _ = draw(5)
    margin = np.random.default_rng(0).normal(size=c.size)
    s = Scored(margin, loss, probability=c)
    for entry in ENTRIES:
        assert entry.compute(s).value == entry.compute(Scored(c, loss, probability=c)).value


def test_entries_by_name():
    for name in ("cwsa@0.8", "cwsa_plus@0.65", "cwsa@0"):
        assert metric_named(name).name == name
    for name in ("cwsa", "cwsa@1", "cwsa@1.5", "cwsa@.5", "cwsa_plus", "augrc", "cwsa@0.5x"):
        assert not any(family.parse(name) for family in FAMILIES)
    with pytest.raises(DomainError, match=r"`threshold` must lie in \[0, 1\); got 1.0"):
        cwsa_entry(1.0)


def test_messages():
    for function in (cwsa, cwsa_plus):
        with pytest.raises(
            DomainError, match=r"`confidence` must lie in \[0, 1\]; got 2.0 at index 0"
        ):
            function([2.0], [0], threshold=0.5)
        with pytest.raises(DomainError, match=r"`loss` must lie in \[0, 1\]; got 3.0 at index 0"):
            function([0.5], [3.0], threshold=0.5)
        with pytest.raises(DomainError, match=r"`threshold` must lie in \[0, 1\); got -0.5"):
            function([0.5], [0], threshold=-0.5)
        with pytest.raises(InputError, match="`normalize` must be one of 'all', 'accepted'"):
            function([0.5], [0], threshold=0.5, normalize="n")
        with pytest.raises(
            InputError, match=r"`ramp` must be one of 'linear', .* or a callable; got 'cubic'"
        ):
            function([0.5], [0], threshold=0.5, ramp="cubic")
        with pytest.raises(
            InputError, match="`ramp` must return one weight for each of the 1 values"
        ):
            function([0.5], [0], threshold=0.5, ramp=lambda u: 1.0)
        with pytest.raises(DomainError, match=r"`ramp\(u\)` must lie in \[0, 1\]; got 2.0"):
            function([1.0], [0], threshold=0.5, ramp=lambda u: 2 * u)
    with pytest.raises(DomainError, match=r"`thresholds` must lie in \[0, 1\); got 1.0 at index 1"):
        cwsa_sweep([0.5], [0], thresholds=[0.5, 1.0])


# ------------------------------------------------------------------------------------- AUC-MCC
def test_auc_mcc_of_a_line():
    # Uniform confidences, all right: coverage 1 - tau and CWSA+ 1/2 at every threshold.
    c = (np.arange(10_000) + 0.5) / 10_000
    sweep = cwsa_sweep(c, np.zeros(c.size), thresholds=[0.5, 0.6, 0.9])
    assert sweep.auc_mcc() == pytest.approx(0.4 * 0.5, abs=1e-4)
    # CWSA is (1 - tau)/2 there: the trapezoid between 0.1 and 0.5 of coverage.
    assert sweep.auc_mcc("cwsa") == pytest.approx(0.4 * 0.15, abs=1e-4)
    assert sweep.auc_mcc("selective_accuracy") == pytest.approx(0.4)


def test_auc_mcc_by_hand():
    # Coverages 3/4 and 1/4, CWSA 0.3 (three accepted, one wrong) and 0.25 (one, certain).
    c, loss = [1.0, 0.9, 0.8, 0.3], [0, 0, 1, 0]
    sweep = cwsa_sweep(c, loss, thresholds=[0.95, 0.5])
    assert sweep.auc_mcc("cwsa") == pytest.approx(0.5 * (0.3 + 0.25) / 2)
    with pytest.warns(UndefinedMetricWarning):
        more = cwsa_sweep(c[1:], loss[1:], thresholds=[0.5, 0.85, 0.95])
    # No sample reaches 0.95: no vertex there.
    assert more.auc_mcc() == pytest.approx((2 / 3 - 1 / 3) * sum(more.cwsa_plus[:2]) / 2)


def test_auc_mcc_ranks_certainty_last():
    guesses = np.linspace(0.3, 1.0, 1000)
    wrong = (np.arange(1000) % 3 > 0).astype(float)
    certain = cwsa_sweep(np.ones(1000), np.zeros(1000))
    assert certain.auc_mcc() == 0.0 < cwsa_sweep(guesses, wrong).auc_mcc()
    with pytest.raises(InputError, match="metric"):
        certain.auc_mcc("coverage")
