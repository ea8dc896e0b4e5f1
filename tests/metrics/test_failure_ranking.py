"""Failure AUROC, average precisions and FPR at a TPR."""

import warnings

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve
from tests.references.conformance import CASES

from abstain.errors import DomainError, ShapeError, UndefinedMetricWarning
from abstain.metrics.failure_ranking import (
    failure_ap_error,
    failure_ap_success,
    failure_auroc,
    fpr_at_tpr,
)

ALL = (failure_auroc, failure_ap_success, failure_ap_error, fpr_at_tpr)


def draw(seed, n=200, *, levels=20):
    """Tied confidences with some failures and integer weights."""
    rng = np.random.default_rng(seed)
    c = rng.integers(0, levels, n) / levels
    loss = (rng.random(n) > 0.3 + 0.6 * c).astype(int)
    return c, loss, rng.integers(0, 4, n)


@pytest.mark.parametrize("seed", range(5))
def test_auroc_is_the_share_of_pairs_in_order(seed):
    c, loss, _ = draw(seed, 80)
    success, failure = c[loss == 0][:, None], c[loss == 1][None]
    pairs = (success > failure) + 0.5 * (success == failure)
    assert failure_auroc(c, loss) == pytest.approx(pairs.mean(), abs=1e-14)


@pytest.mark.parametrize("seed", range(5))
def test_agrees_with_scikit_learn(seed):
    c, loss, weight = draw(seed)
    for w in (None, weight):
        auroc = roc_auc_score(1 - loss, c, sample_weight=w)
        success = average_precision_score(1 - loss, c, sample_weight=w)
        error = average_precision_score(loss, -c, sample_weight=w)
        assert failure_auroc(c, loss, weight=w) == pytest.approx(auroc, abs=1e-12)
        assert failure_ap_success(c, loss, weight=w) == pytest.approx(success, abs=1e-12)
        assert failure_ap_error(c, loss, weight=w) == pytest.approx(error, abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("tpr", [0.0, 0.3, 0.9495, 0.95, 1.0])
def test_fpr_is_read_at_the_first_vertex_that_reaches_the_tpr(seed, tpr):
    c, loss, weight = draw(seed)
    fpr, reached, _ = roc_curve(1 - loss, c, sample_weight=weight, drop_intermediate=False)
    expected = fpr[np.argmax(reached >= tpr)]
    assert fpr_at_tpr(c, loss, tpr=tpr, weight=weight) == pytest.approx(expected, abs=1e-12)


def test_fd_shifts_drops_vertices_inside_straight_stretches():
    # Three tie groups on one line: scikit-learn keeps only its ends, and FD-Shifts reads there.
    c, loss = np.repeat([3, 2, 1], 2), np.tile([0, 1], 3)
    fpr, reached, _ = roc_curve(1 - loss, c)
    assert fpr[np.argmax(reached >= 0.6)] == 1.0
    assert fpr_at_tpr(c, loss, tpr=0.6) == pytest.approx(2 / 3)


def test_fractional_weights_do_not_miss_the_tpr_by_rounding():
    c, loss = np.arange(20)[::-1], np.array([0] * 18 + [1, 0])
    assert fpr_at_tpr(c, loss, tpr=18 / 19, weight=np.full(20, 0.1)) == 0.0


def test_conformance_table():
    functions = {f.__name__: f for f in ALL[:3]}
    checked = 0
    for case in CASES:
        if not set(case["loss"]) <= {0, 1}:
            continue
        for name in functions.keys() & case["expected"].keys():
            expected = case["expected"][name]
            if expected is None or not 0 < np.mean(case["loss"]) < 1:
                continue
            value = functions[name](case["confidence"], case["loss"])
            assert value == pytest.approx(expected, abs=1e-9), (case["name"], name)
            checked += 1
    assert checked > 10


@pytest.mark.parametrize("function", ALL)
def test_weights_repeat_and_order_and_scale_do_not_matter(function):
    c, loss, weight = draw(7)
    value = function(c, loss, weight=weight)
    order = np.random.default_rng(0).permutation(c.size)
    assert function(np.repeat(c, weight), np.repeat(loss, weight)) == pytest.approx(
        value, abs=1e-12
    )
    assert function(c[order], loss[order], weight=weight[order]) == pytest.approx(value, abs=1e-12)
    assert function(np.exp(c), loss, weight=0.1 * weight) == pytest.approx(value, abs=1e-12)
    assert function(np.tile(c, 3), np.tile(loss, 3), weight=np.tile(weight, 3)) == pytest.approx(
        value
    )


def test_oracle_and_anti_oracle():
    loss = np.array([0, 0, 0, 1, 1])
    best, worst = -loss, loss
    assert [f(best, loss) for f in ALL] == [1.0, 1.0, 1.0, 0.0]
    assert failure_auroc(worst, loss) == 0.0
    assert fpr_at_tpr(worst, loss) == 1.0
    assert failure_ap_success(worst, loss) == 0.6
    assert failure_ap_error(worst, loss) == 0.4


def test_all_tied():
    loss = [0, 0, 0, 1]
    assert [f([0.5] * 4, loss) for f in ALL] == [0.5, 0.75, 0.25, 1.0]


@pytest.mark.parametrize("n", [1, 4])
def test_all_right_and_all_wrong_give_a_reason(n):
    c = np.linspace(0.2, 0.8, n)
    right, wrong = np.zeros(n), np.ones(n)
    for function in (failure_auroc, failure_ap_error, fpr_at_tpr):
        with pytest.warns(UndefinedMetricWarning, match="there are no failures"):
            assert np.isnan(function(c, right))
    for function in (failure_auroc, failure_ap_success, fpr_at_tpr):
        with pytest.warns(UndefinedMetricWarning, match="there are no successes"):
            assert np.isnan(function(c, wrong))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert failure_ap_success(c, right) == 1.0
        assert failure_ap_error(c, wrong) == 1.0


@pytest.mark.parametrize("function", ALL)
def test_messages(function):
    with pytest.raises(
        DomainError, match=rf"`loss` must be 0 or 1 for {function.__name__}; got 0.5 at index 1"
    ):
        function([0.1, 0.2], [0.0, 0.5])
    with pytest.raises(DomainError, match="`confidence` must be finite; got nan at index 0"):
        function([np.nan, 0.2], [0, 1])
    with pytest.raises(ShapeError, match="`loss`"):
        function([0.1, 0.2], [0])
    with pytest.raises(DomainError, match=r"`tpr` must lie in \[0, 1\]; got 1.5"):
        fpr_at_tpr([0.1, 0.2], [0, 1], tpr=1.5)
