"""F1-AUC."""

import numpy as np
import pytest

from abstain.errors import DomainError, UndefinedMetricWarning
from abstain.metrics.f1_retention import f1_auc


def brute(c, loss, acceptable=0.0):
    """F1 at every threshold, one by one."""
    c, good = np.asarray(c), np.asarray(loss) <= acceptable
    x, y = [0.0], [0.0]
    for t in np.unique(c)[::-1]:
        mask = c >= t
        precision, recall = good[mask].mean(), (good & mask).sum() / good.sum()
        x.append(mask.mean())
        y.append(2 * precision * recall / (precision + recall) if precision + recall else 0.0)
    return np.trapezoid(y, x)


def shifts(errors, uncertainty, threshold):
    """The formula of the Shifts code, for distinct uncertainties."""
    good = (errors <= threshold)[np.argsort(uncertainty)]
    hit = np.concatenate(([0], np.cumsum(good)))
    kept = np.arange(hit.size)
    f1 = 2 * hit / (kept + hit[-1])
    return np.trapezoid(f1, kept / kept.size)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("acceptable", [0.0, 0.4])
def test_equals_brute_force(seed, acceptable):
    rng = np.random.default_rng(seed)
    c, loss = rng.integers(0, 9, 60), rng.integers(0, 5, 60) / 4
    assert f1_auc(c, loss, acceptable_loss=acceptable) == pytest.approx(brute(c, loss, acceptable))


def test_conversion_to_the_shifts_code():
    rng = np.random.default_rng(1)
    c, loss = rng.random(50), rng.random(50)
    value = f1_auc(c, loss, acceptable_loss=0.3)
    assert value * 50 / 51 == pytest.approx(shifts(loss, -c, 0.3), abs=1e-12)


def test_weights_repeat_and_order_does_not_matter():
    rng = np.random.default_rng(2)
    c, loss, w = rng.integers(0, 9, 60), rng.integers(0, 2, 60), rng.integers(0, 4, 60)
    value = f1_auc(c, loss, weight=w)
    assert f1_auc(np.repeat(c, w), np.repeat(loss, w)) == pytest.approx(value, abs=1e-12)
    order = rng.permutation(60)
    assert f1_auc(c[order], loss[order], weight=w[order]) == pytest.approx(value, abs=1e-12)
    assert f1_auc(np.tile(c, 2), np.tile(loss, 2), weight=np.tile(w, 2)) == pytest.approx(value)


@pytest.mark.parametrize("seed", range(20))
def test_no_order_without_ties_beats_the_oracle(seed):
    rng = np.random.default_rng(seed)
    loss = rng.integers(0, 2, 12)
    loss[0] = 0
    c = rng.permutation(12)
    best = np.empty(12)
    best[np.argsort(loss, kind="stable")] = np.arange(12)[::-1]
    assert f1_auc(-best, loss) - 1e-12 <= f1_auc(c, loss) <= f1_auc(best, loss) + 1e-12


def test_a_perfect_model_is_not_the_best():
    n = 10_000
    c = np.arange(n)[::-1]
    assert f1_auc(c, np.zeros(n)) == pytest.approx(2 - 2 * np.log(2), abs=1e-6)
    assert f1_auc(c, c < 0.44 * n) == pytest.approx(0.715, abs=1e-3)


def test_small_cases():
    assert f1_auc([0.5], [0]) == 0.5
    assert f1_auc([0.5] * 4, [0, 0, 1, 1]) == pytest.approx(1 / 3)
    for n in (1, 3):
        with pytest.warns(UndefinedMetricWarning, match="no prediction has a loss of at most 0"):
            assert np.isnan(f1_auc(np.arange(n), np.ones(n)))


def test_messages():
    with pytest.raises(DomainError, match="`acceptable_loss` must"):
        f1_auc([0.5], [0], acceptable_loss=-1)
    with pytest.raises(DomainError, match="`loss` must not be negative; got -1"):
        f1_auc([0.5], [-1])
