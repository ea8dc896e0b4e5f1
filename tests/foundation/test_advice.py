"""Arguments that were most likely meant otherwise: recognized, with the way out."""

import numpy as np
import pytest

import abstain as ab
from abstain.errors import DomainError, InputError

RNG = np.random.default_rng(3)
CONFIDENCE = RNG.random(50)
WRONG = RNG.random(50) < 0.3

TWO_ARGUMENTS = [
    ab.augrc,
    ab.aurc,
    ab.failure_auroc,
    ab.risk_coverage_curve,
    lambda c, x: ab.cwsa(c, x, threshold=0.5),
]


@pytest.mark.parametrize("function", TWO_ARGUMENTS)
@pytest.mark.parametrize("kind", [bool, int, float])
def test_swapped_arguments_raise_an_error(function, kind):
    function(CONFIDENCE, WRONG.astype(kind))
    with pytest.raises(InputError, match="look swapped"):
        function(WRONG.astype(kind), CONFIDENCE)


def test_swapped_arguments_of_predictions_raise_an_error():
    with pytest.raises(InputError, match="look swapped"):
        ab.Predictions(confidence=WRONG, loss=CONFIDENCE)


@pytest.mark.parametrize(
    ("confidence", "loss"),
    [
        (WRONG, 10 * CONFIDENCE),  # a flag beside losses that are no confidences
        (np.ones(50), CONFIDENCE),  # saturated
        (WRONG, CONFIDENCE.round(1)),  # grades
        (WRONG, ~WRONG),
        (1.0 + WRONG, CONFIDENCE),  # the way out that the message names
    ],
)
def test_a_flag_is_a_confidence_where_the_loss_is_none(confidence, loss):
    assert np.isfinite(ab.augrc(confidence, loss))


@pytest.mark.parametrize("choose", [ab.thresholds.for_risk, ab.thresholds.conformal_risk_control])
def test_a_risk_in_percent_is_asked_back(choose):
    with pytest.raises(DomainError, match=r"got 5.*Did you mean 0\.05\?"):
        choose(CONFIDENCE, WRONG, max_risk=5)


def test_fractions_in_percent_are_asked_back():
    with pytest.raises(DomainError, match=r"Did you mean 0\.05\?"):
        ab.thresholds.sgr(CONFIDENCE, WRONG, max_risk=5, delta=0.1)
    with pytest.raises(DomainError, match=r"Did you mean 0\.8\?"):
        ab.working_point(CONFIDENCE, WRONG, coverage=80)
    with pytest.raises(DomainError) as error:
        ab.working_point(CONFIDENCE, WRONG, coverage=800)
    assert "Did you mean" not in str(error.value)
    graded = 3 * CONFIDENCE
    assert ab.thresholds.for_risk(CONFIDENCE, graded, max_risk=2.0).attainable
