"""Whole monitors on streams like their calibration data: how many are ever fooled."""

import numpy as np
from scipy import stats
from tests.monitoring.streams import drawn, names

import abstain as ab

DELTA = 0.3


def fooled(rng, run):
    """Whether a stream with exactly the promised risk ever gives an alarm."""
    confidence, loss = drawn(rng, 300)
    rule = ab.thresholds.for_risk(confidence, loss, max_risk=0.1)
    # The mean of 1 - c above the threshold, of the density 4 c^3.
    true = 1 - 0.8 * (1 - rule.threshold**5) / (1 - rule.threshold**4)
    known = ab.Predictions(confidence=confidence, loss=loss)
    more = {"label_share": 0.5} if run % 2 else {}
    begun = ab.monitoring.start(rule, calibration=known, max_risk=true, delta=DELTA, **more)
    confidence, loss = drawn(rng, 200)
    ids = names(f"{run}-", 200)
    return bool(begun.update(ids, confidence).labels(ids, loss).alarms)


def test_no_more_streams_are_fooled_than_said():
    rng = np.random.default_rng(0)
    result = sum(fooled(rng, run) for run in range(48))
    assert result <= stats.binom.ppf(0.999, 48, DELTA)
