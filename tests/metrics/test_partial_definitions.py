"""The area under the generalized risk between two coverages, from events and from all groups."""

import numpy as np
import pytest

import abstain as ab
from abstain._foundation.scored import validate_samples


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("between", [(0.0, 1.0), (0.5, 0.8), (0.313, 0.317), (0.0, 0.004)])
def test_stretches_are_straight_lines_under_the_generalized_risk(seed, between):
    rng = np.random.default_rng(seed)
    n = 250
    confidence = np.round(rng.random(n), 2 + seed % 3)
    loss = rng.random(n) < [0.05, 0.5][seed % 2]
    groups = validate_samples(confidence, loss).groups
    x = np.append(0.0, groups.cumulative_weight / n)
    y = np.append(0.0, groups.cumulative_loss / n)
    grid = np.unique(np.clip(np.append(x, between), *between))
    expected = np.trapezoid(np.interp(grid, x, y), grid)
    low, high = between
    result = ab.metrics.partial_augrc(confidence, loss, low=low, high=high)
    assert result == pytest.approx(expected, rel=1e-11, abs=1e-15)


def test_partial_augrc_needs_the_events_alone():
    rng = np.random.default_rng(0)
    s = validate_samples(rng.random(300), rng.random(300) < 0.1)
    ab.metrics.metric_named("partial_augrc@50-80cov").compute(s)
    assert "groups" not in vars(s)
