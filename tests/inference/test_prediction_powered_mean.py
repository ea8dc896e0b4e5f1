"""Prediction-powered means: unbiased for any predictions, and their intervals hold."""

import numpy as np
import pytest

from abstain.errors import DomainError, ShapeError
from abstain.inference.prediction_powered_mean import prediction_powered_mean


def test_the_terms_by_hand():
    result = prediction_powered_mean([0.1, 0.3], [np.nan, 1.0], [0.5, 0.25])
    # 0.1, and 0.3 + (1 - 0.3) * 4.
    assert result.value == pytest.approx((0.1 + 3.1) / 2)
    assert result.labels_only == pytest.approx((0 + 4) / 2)
    assert (result.n_samples, result.n_labeled) == (2, 1)


@pytest.mark.parametrize("worth", ["good", "wrong"])
def test_both_estimates_are_unbiased_and_held(worth):
    rng = np.random.default_rng(12)
    p = rng.beta(0.5, 2.0, 2000)
    predicted = p if worth == "good" else 1 - p
    chance = np.clip(0.05 + 0.2 * np.sqrt(p * (1 - p)), 0, 1)
    values, errors, held = [], [], 0
    for _ in range(400):
        loss = np.where(rng.random(2000) < chance, rng.random(2000) < p, np.nan)
        result = prediction_powered_mean(predicted, loss, chance)
        values.append((result.value, result.labels_only))
        errors.append((result.interval.standard_error, result.labels_only_interval.standard_error))
        held += result.interval.low <= p.mean() <= result.interval.high
    spread = np.std(values, axis=0)
    np.testing.assert_array_less(np.abs(np.mean(values, axis=0) - p.mean()), 4 * spread / 20)
    assert held / 400 > 0.9
    # The spread of the samples themselves is in the standard error too.
    assert (np.mean(errors, axis=0) > 0.88 * spread).all()
    if worth == "good":
        assert spread[0] < spread[1]


def test_invalid_input_raises_an_error():
    with pytest.raises(DomainError, match="`probability` must lie in"):
        prediction_powered_mean([0.1], [0.0], [0.0])
    with pytest.raises(ShapeError):
        prediction_powered_mean([0.1, 0.2], [0.0], [0.5, 0.5])
    assert "fewer than two" in prediction_powered_mean([0.1], [0.0], [0.5]).interval.note
