"""AUSE from its definition: samples taken away one by one, by confidence and by their losses."""

import numpy as np
import pytest

import abstain as ab
from abstain.errors import UndefinedMetricWarning
from abstain.metrics import ause


def curve(order, loss):
    """Mean loss of what is left when the last of the order are taken away, over that of all."""
    kept = loss[order]
    return np.array([kept[: k + 1].mean() for k in range(loss.size)]) / loss.mean()


def area(left):
    """Trapezoids between k/n, flat below 1/n."""
    return (left[0] + (left[1:] + left[:-1]).sum() / 2) / left.size


@pytest.mark.parametrize("graded", [False, True])
def test_it_is_the_area_between_two_sparsification_curves(graded):
    rng = np.random.default_rng(5)
    c, loss = rng.random(40), rng.exponential(size=40) if graded else (rng.random(40) < 0.3) * 1.0
    by_confidence, by_loss = np.argsort(-c), np.argsort(loss)
    expected = area(curve(by_confidence, loss)) - area(curve(by_loss, loss))
    assert ause(c, loss) == pytest.approx(expected, abs=1e-12)
    assert ause(c, 7 * loss) == pytest.approx(expected, abs=1e-12)


def test_it_is_the_excess_aurc_in_mean_losses():
    rng = np.random.default_rng(6)
    c, loss, w = np.round(rng.random(60), 1), rng.random(60), rng.integers(0, 4, 60) * 1.0
    excess = ab.e_aurc(c, loss, weight=w) / np.average(loss, weights=w)
    assert ause(c, loss, weight=w) == pytest.approx(excess, abs=1e-12)


def test_what_torch_uncertainty_prints():
    """Its curves are mean losses of those left over that of all, at rejections 0 to (n - 1)/n."""
    rng = np.random.default_rng(7)
    n, c, loss = 30, rng.random(30), rng.exponential(size=30)

    def left(order):
        return (np.cumsum(loss[order]) / np.arange(1, n + 1))[::-1] / loss.mean()

    y = left(np.argsort(-c)) - left(np.argsort(loss))
    theirs = ((y[1:] + y[:-1]) / 2).sum() / n
    first = (loss[np.argmax(c)] - loss.min()) / (n * loss.mean())
    assert theirs == pytest.approx(ause(c, loss) - first, abs=1e-12)


def test_nothing_lost_is_no_unit():
    with pytest.warns(UndefinedMetricWarning, match="all losses are 0"):
        assert np.isnan(ause([0.3, 0.2], [0, 0]))
