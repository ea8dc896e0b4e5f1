"""Thinned curves for drawing."""

import numpy as np
import pytest

from abstain.curves import generalized_risk_coverage_curve, risk_coverage_curve, thin


@pytest.mark.parametrize("make", [risk_coverage_curve, generalized_risk_coverage_curve])
def test_a_thinned_curve_keeps_its_first_and_last_point(make):
    """The ends are neither the lowest nor the highest risk of their step of coverage."""
    n = 1000
    loss = np.full(n, 0.5)
    loss[10:30], loss[30:60] = 0.0, 1.0
    loss[-60:-30], loss[-30:] = 0.0, 1.0
    loss[-10:] = 0.0
    curve = make(np.arange(n, 0, -1.0), loss)
    if curve.kind == "selective":
        # Otherwise the rule for the extremes would keep the ends too.
        assert curve.risk[:60].min() < curve.risk[0] < curve.risk[:60].max()
    short = thin(curve, vertices=20)
    assert len(short) <= 22
    for name in ("thresholds", "coverage", "risk", "accepted"):
        whole, kept = getattr(curve, name), getattr(short, name)
        assert (kept[0], kept[-1]) == (whole[0], whole[-1]), name
