"""Accuracy-rejection and error-retention curves."""

import numpy as np
import pytest

from abstain.curves.retention import accuracy_rejection_curve, error_retention_curve
from abstain.errors import DomainError
from abstain.metrics.areas.augrc import augrc


def draw(seed, n=80):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 12, n) / 4, rng.integers(0, 5, n) / 4, rng.integers(0, 4, n)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("weighted", [True, False])
def test_equal_brute_force(seed, weighted):
    c, loss, weight = draw(seed)
    w = weight if weighted else np.ones(c.size, dtype=int)
    option = {"weight": w} if weighted else {}
    accuracy, error = (
        accuracy_rejection_curve(c, loss, **option),
        error_retention_curve(c, loss, **option),
    )
    assert (error.thresholds[0], error.retention[0], error.error[0], error.accepted[0]) == (
        np.inf,
        0,
        0,
        0,
    )
    assert len(error) == len(accuracy) + 1
    for i, t in enumerate(accuracy.thresholds):
        mask = c >= t
        assert accuracy.rejection[i] == pytest.approx(1 - np.average(mask, weights=w), abs=1e-14)
        assert accuracy.accuracy[i] == pytest.approx(1 - np.average(loss[mask], weights=w[mask]))
        assert error.retention[i + 1] == pytest.approx(np.average(mask, weights=w))
        assert error.error[i + 1] == pytest.approx(np.average(loss * mask, weights=w))
        assert accuracy.accepted[i] == error.accepted[i + 1] == (mask & (w > 0)).sum()
    assert np.all(np.diff(accuracy.thresholds) < 0)


@pytest.mark.parametrize("seed", range(4))
def test_the_area_under_error_retention_is_the_augrc(seed):
    c, loss, w = draw(seed)
    curve = error_retention_curve(c, loss, weight=w)
    assert np.trapezoid(curve.error, curve.retention) == pytest.approx(augrc(c, loss, weight=w))


def test_order_and_repetition_do_not_matter():
    c, loss, w = draw(6)
    for function, name in (
        (accuracy_rejection_curve, "accuracy"),
        (error_retention_curve, "error"),
    ):
        one = function(c, loss, weight=w)
        other = function(np.repeat(c, w)[::-1], np.repeat(loss, w)[::-1])
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=1e-14)
        np.testing.assert_array_equal(one.thresholds, other.thresholds)


def test_small_cases():
    curve = accuracy_rejection_curve([0.5], [0])
    assert (curve.rejection.tolist(), curve.accuracy.tolist()) == ([0.0], [1.0])
    curve = accuracy_rejection_curve([0.5] * 4, [0, 1, 1, 1])
    assert (curve.rejection.tolist(), curve.accuracy.tolist()) == ([0.0], [0.25])
    assert error_retention_curve([0.5] * 4, [1] * 4).error.tolist() == [0.0, 1.0]
    # Rejection stays in [0, 1) where the weights round.
    curve = accuracy_rejection_curve(np.arange(9), np.zeros(9), weight=np.full(9, 0.1))
    assert curve.rejection.min() == 0.0
    assert curve.rejection.max() < 1.0


def test_frames():
    c, loss, _ = draw(1)
    accuracy = accuracy_rejection_curve(c, loss)
    assert accuracy.frame().columns == ["thresholds", "rejection", "accuracy", "accepted"]
    assert accuracy.frame().height == len(accuracy)
    error = error_retention_curve(c, loss)
    assert error.frame().columns == ["thresholds", "retention", "error", "accepted"]
    assert error.frame().height == len(error)


def test_messages():
    with pytest.raises(DomainError, match=r"`loss` must lie in \[0, 1\]; got 2.0 at index 0"):
        accuracy_rejection_curve([0.5], [2.0])
    assert error_retention_curve([0.5], [2.0]).error.tolist() == [0.0, 2.0]
