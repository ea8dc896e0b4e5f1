"""Influence functions are the derivatives of the metrics: a metric that has one is tested."""

from dataclasses import replace

import numpy as np
import pytest
from tests.properties.cases import make, rows

from abstain._foundation.scored import Scored
from abstain.metrics import METRICS, Metric, Need, metric_named
from abstain.metrics.intervals import influence_of

_MADE_BY_NAME = (
    "selective_risk@85cov",
    "coverage@15risk",
    "cwsa@0.25",
    "cwsa_plus@0.6",
    "partial_aurc@20.3-55.7cov",
    "partial_augrc@50.3-80.7cov",
    "selective_accuracy@0.4",
    "oc_accuracy@37review",
    "oc_auc@37review",
)
ALL = [*METRICS.values(), *(metric_named(name) for name in _MADE_BY_NAME)]
WITH = [m for m in ALL if not m.reason_without_interval]

# Their number changes with the scale of the weights, which are counts to them: the influence is
# that of one more sample, and the derivative agrees with it to the order 1/n.
COUNTING = {"aurc_plugin", "e_aurc", "normalized_aurc", "ause"}

# Their threshold moves with the data; at fixed data the number is piecewise constant or linear, so
# the derivative says nothing. tests/metrics/test_metric_intervals.py compares them with simulation.
MOVING = {m.name for m in WITH if m.identity.family == "working point"}

# Where hull vertices are collinear (equal weights) the hull has kinks; other weights have none.
KINKED = {"achievable_aurc"}

#: Undefined here: tests/metrics/test_open_set.py has samples of no known class.
OPEN_SET = {m.name for m in WITH if Need.UNKNOWN_CLASSES in m.measurement.needs}

# The curve of a class starts at its first accepted sample, which no weight above 0 moves: the
# influence has a term that the derivative lacks. tests/metrics/test_rare_classes.py has the term.
STARTING = {"aurc_ba"}

SMOOTH = [m for m in WITH if m.name not in COUNTING | MOVING | OPEN_SET | STARTING]


def case(seed: int, n: int = 60, *, ties: bool, weights: bool) -> Scored:
    rng = np.random.default_rng(seed)
    confidence = rng.random(n)
    if ties:
        confidence = np.ceil(confidence * 8) / 8
    wrong = rng.random(n) < 0.1 + 0.6 * (1 - confidence)
    labels = rng.integers(0, 2, n)
    sure = rng.integers(1, 10, n) / 20 + 0.5
    s = make(confidence, wrong.astype(float), labels, np.where(wrong, 1 - labels, labels), sure)
    weight = rng.uniform(0.2, 3, n) if weights else np.ones(n)
    if weights:
        weight[:3] = 0
    return replace(s, weight=weight)


def derivative(metric: Metric, s: Scored, step: float = 1e-5) -> np.ndarray:
    """W dT/dw for each sample, less its weighted mean."""
    out = np.zeros(s.n_rows)
    for i in np.flatnonzero(s.weight):
        values = []
        for sign in (1, -1):
            weight = s.weight.copy()
            weight[i] += sign * step
            values.append(metric.compute(replace(s, weight=weight)).value)
        out[i] = s.total_weight * (values[0] - values[1]) / (2 * step)
    return np.where(s.weight > 0, out - np.average(out, weights=s.weight), 0.0)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("metric", SMOOTH, ids=lambda m: m.name)
def test_influence_is_the_derivative_with_respect_to_the_weights(
    metric: Metric, ties: bool, weights: bool
) -> None:
    # Where vertices are collinear the hull has kinks; weights of their own keep them off a line.
    s = case(3, ties=ties, weights=weights or metric.name in KINKED)
    result, expected = influence_of(metric, s), derivative(metric, s)
    assert np.abs(result - expected).max() <= 1e-7 * max(1.0, np.abs(expected).max())


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("name", sorted(COUNTING | STARTING))
def test_counting_estimators_agree_with_one_sample_more_or_less(name: str, ties: bool) -> None:
    metric, s = metric_named(name), case(7, ties=ties, weights=False)
    gaps = []
    for times in (1, 8):
        repeated = rows(s, np.tile(np.arange(s.n_rows), times))
        # The copies are alike: the first of each is enough.
        expected = np.array([one_more_or_less(metric, repeated, i) for i in range(s.n_rows)])
        gap = influence_of(metric, repeated)[: s.n_rows] - (expected - expected.mean())
        gaps.append(np.abs(gap).max() / np.abs(expected).max())
    assert gaps[0] < 0.06
    assert gaps[1] < max(gaps[0] / 4, 1e-9)


def one_more_or_less(metric: Metric, s: Scored, i: int) -> float:
    ends = [
        metric.compute(replace(s, weight=s.weight + d * (np.arange(s.n_rows) == i)))
        for d in (1, -1)
    ]
    return s.n_rows * (ends[0].value - ends[1].value) / 2


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("metric", WITH, ids=lambda m: m.name)
def test_the_weighted_mean_is_zero_and_samples_without_weight_have_no_influence(
    metric: Metric, ties: bool, weights: bool
) -> None:
    s = case(11, ties=ties, weights=weights)
    if metric.compute(s).reason:
        pytest.skip("undefined here")
    result = influence_of(metric, s)
    assert result.shape == (s.n_rows,)
    assert abs(np.average(result, weights=s.weight)) < 1e-12 * max(1.0, np.abs(result).max())
    assert not result[s.weight == 0].any()


@pytest.mark.parametrize("metric", WITH, ids=lambda m: m.name)
def test_unit_weights_and_the_scale_of_weights_change_nothing(metric: Metric) -> None:
    s = case(13, ties=True, weights=False)
    if metric.compute(s).reason:
        pytest.skip("undefined here")
    plain = influence_of(metric, replace(s, weight=None))
    assert np.allclose(influence_of(metric, s), plain, rtol=0, atol=1e-12)
    if metric.measurement.duplication == "exact":
        assert np.allclose(influence_of(metric, replace(s, weight=s.weight * 2)), plain, atol=1e-9)


@pytest.mark.parametrize("metric", ALL, ids=lambda m: m.name)
def test_a_metric_has_an_influence_or_a_reason(metric: Metric) -> None:
    s = case(17, ties=False, weights=False)
    if metric.compute(s).reason:
        pytest.skip("undefined here")
    assert (influence_of(metric, s) is None) == bool(metric.reason_without_interval)


def test_finite_sample_formulas_of_augrc_and_the_plugin_aurc() -> None:
    # Written out sample by sample, as in the design.
    s = case(19, 40, ties=True, weights=False)
    c, loss, n = s.confidence, s.loss, s.n_rows
    harmonic = np.concatenate(([0.0], np.cumsum(1 / np.arange(1, n + 1))))
    augrc, plugin = (METRICS[name].compute(s).value for name in ("augrc", "aurc_plugin"))
    below = np.array([(c < x).sum() + (c == x).sum() / 2 for x in c]) / n
    ahead = np.array([loss[c > x].sum() + loss[c == x].sum() / 2 for x in c]) / n
    assert np.allclose(influence_of(METRICS["augrc"], s), loss * below + ahead - 2 * augrc)

    def group(x: float) -> tuple[int, int, float, float]:
        a, m = int((c > x).sum()), int((c == x).sum())
        phi = harmonic[n] - harmonic[a : a + m].mean()
        return a, m, loss[c == x].sum(), phi

    expected = np.empty(n)
    for i, x in enumerate(c):
        a, m, mass, phi = group(x)
        own = mass / m * (harmonic[n] - harmonic[a + m] - phi)
        later = 0.0
        for y in np.unique(c[c < x]):
            b, k, w, _ = group(y)
            later += w / k * (harmonic[b + k] - harmonic[b])
        expected[i] = loss[i] * phi + own - later + loss.mean() - plugin
    assert np.allclose(influence_of(METRICS["aurc_plugin"], s), expected)
