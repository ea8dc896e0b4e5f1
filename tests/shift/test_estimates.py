"""Estimates of the risk without labels, against closed forms and plain loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abstain import shift
from abstain.errors import DomainError


@given(st.integers(0, 2**32 - 1), st.integers(2, 40), st.integers(1, 6))
def test_on_the_calibration_data_themselves_both_say_what_is_there(seed, n, values):
    """With ties too: the part of a tie group that counts makes the share exact."""
    rng = np.random.default_rng(seed)
    confidence, wrong = rng.integers(1, values + 1, n) / values, rng.random(n) < 0.3
    estimates = shift.unlabeled_risk(confidence, wrong, confidence, ratio=np.ones(n))
    assert estimates.calibration_risk == pytest.approx(wrong.mean())
    assert estimates.thresholded_confidence == pytest.approx(wrong.mean())
    assert estimates.mean_confidence == pytest.approx(wrong.mean())
    assert estimates.reweighted == pytest.approx(wrong.mean())


def test_thresholded_confidence_is_the_share_below_a_sample():
    """As the paper's threshold does: as many below it as are wrong."""
    rng = np.random.default_rng(7)
    confidence, new = rng.random(300), rng.random(200) ** 2
    wrong = rng.random(300) > confidence
    for at in (None, 0.3):
        own = confidence >= (at or 0)
        below = np.sort(confidence[own])[int(wrong[own].sum())]
        expected = (new[new >= (at or 0)] < below).mean()
        estimates = shift.unlabeled_risk(confidence, wrong, new, threshold=at)
        assert estimates.thresholded_confidence == pytest.approx(expected)
        assert estimates.accepted == (new >= (at or 0)).sum()


def test_reweighting_with_the_true_ratios_finds_the_risk_of_a_covariate_shift():
    rng = np.random.default_rng(8)
    x = rng.random(40_000)
    wrong = rng.random(40_000) < 0.5 * (1 - x) ** 2
    new = 1 - np.sqrt(rng.random(20_000))  # density 2 (1 - x)
    estimates = shift.unlabeled_risk(x, wrong, new, ratio=2 * (1 - x), threshold=0.5)
    truth = 0.5 * (0.5**4 / 4) / (0.5**2 / 2)
    assert estimates.reweighted == pytest.approx(truth, abs=0.008)
    assert estimates.mean_confidence == pytest.approx(truth, abs=0.008)
    assert estimates.accuracy["reweighted"] == 1 - estimates.reweighted


def test_nothing_answered_has_no_risk():
    estimates = shift.unlabeled_risk([0.9, 0.8], [0, 1], [0.1, 0.2], threshold=0.5)
    assert (estimates.accepted, estimates.coverage) == (0, 0.0)
    assert np.isnan(estimates.mean_confidence)
    assert np.isnan(estimates.thresholded_confidence)
    estimates = shift.unlabeled_risk([0.1, 0.2], [0, 1], [0.9, 0.8], threshold=0.5)
    assert np.isnan(estimates.calibration_risk)
    assert np.isnan(estimates.thresholded_confidence)


def test_graded_losses_raise_an_error():
    with pytest.raises(DomainError, match="0 or 1 for unlabeled_risk"):
        shift.unlabeled_risk([0.9, 0.8], [0, 0.5], [0.1])
