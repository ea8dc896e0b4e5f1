"""Working points at a threshold in one pass against the vertex among all groups, and parts of areas."""

import numpy as np
import pytest

import abstain as ab
from abstain._foundation.scored import validate_samples
from abstain.metrics.working_points.points import _working_point_at_vertex
from abstain.metrics.working_points.quantities import split_at_threshold, vertex_at_threshold


def samples(seed, n=60):
    rng = np.random.default_rng(seed)
    confidence = np.round(rng.normal(size=n), 1).astype(["float32", "float64"][seed % 2])
    loss = rng.random(n) if seed % 3 == 0 else (rng.random(n) < 0.3).astype(float)
    weight = rng.integers(0, 3, n) * rng.random(n) if seed % 5 > 2 else None
    return confidence, loss, weight


@pytest.mark.parametrize("seed", range(20))
def test_a_threshold_parts_the_samples_as_its_vertex_does(seed):
    confidence, loss, weight = samples(seed)
    for threshold in (*confidence[:5].astype(float), 0.05, -9.0, 9.0, 1e300):
        s = validate_samples(confidence, loss, weight)
        index = vertex_at_threshold(s.groups, threshold)
        expected = _working_point_at_vertex(s.groups, index, is_loss_bounded=s.is_loss_bounded)
        result = ab.working_point(confidence, loss, threshold=threshold, weight=weight)
        for name, value in vars(expected).items():
            if name == "reasons":
                assert result.reasons == value
            else:
                assert getattr(result, name) == pytest.approx(value, rel=1e-12, nan_ok=True), name


def test_a_threshold_needs_no_order():
    s = validate_samples(*samples(1)[:2])
    split_at_threshold(s, 0.3)
    assert not {"groups", "sorted_confidence", "_keys", "events"} & set(vars(s))


@pytest.mark.parametrize("metric", ["augrc", "aurc", "aurc_plugin", "aurc_log", "sele"])
@pytest.mark.parametrize("seed", range(6))
def test_contributions_need_the_events_alone(metric, seed):
    from abstain.metrics import METRICS
    from abstain.metrics.contributions import compute_contributions

    confidence, loss, weight = samples(seed)
    s = validate_samples(confidence, loss, weight)
    parts = compute_contributions(s, metric)
    assert parts.sum() == pytest.approx(METRICS[metric].compute(s).value, rel=1e-12)
    phi = METRICS[metric].measurement.rank_weight
    home = (s.groups.confidence[:, None] == s.confidence).argmax(axis=0)
    own = np.ones(s.n_rows) if s.weight is None else s.weight
    expected = phi(s.groups)[home] * s.loss * own / s.groups.total_weight
    np.testing.assert_allclose(parts, expected, rtol=1e-11, atol=1e-15)
