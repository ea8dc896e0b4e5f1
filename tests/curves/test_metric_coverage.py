"""Threshold metrics against coverage."""

import numpy as np
import pytest

from abstain.curves.metric_coverage import DEFAULT_THRESHOLDS, metric_coverage_curve
from abstain.errors import DomainError, InputError, UndefinedMetricWarning
from abstain.metrics.confidence_weighted.areas import cwsa_area
from abstain.metrics.confidence_weighted.cwsa import cwsa, cwsa_plus


def draw(seed, n=80):
    rng = np.random.default_rng(seed)
    c = np.round(rng.random(n), 1)
    return c, (rng.random(n) > c).astype(int), rng.integers(0, 4, n)


@pytest.mark.parametrize("weighted", [True, False])
def test_selective_accuracy_equals_brute_force(weighted):
    c, loss, weight = draw(0)
    w = weight if weighted else np.ones(c.size, dtype=int)
    given = [0.35, 0.7, 0.1, 0.35]
    curve = metric_coverage_curve(c, loss, thresholds=given, weight=w if weighted else None)
    assert curve.metric == "selective_accuracy"
    assert curve.thresholds.tolist() == [0.7, 0.35, 0.1]
    for i, t in enumerate(curve.thresholds):
        mask = c >= t
        assert curve.coverage[i] == pytest.approx(np.average(mask, weights=w))
        assert curve.value[i] == pytest.approx(1 - np.average(loss[mask], weights=w[mask]))
        assert curve.accepted[i] == (mask & (w > 0)).sum()


@pytest.mark.parametrize("metric", [cwsa, cwsa_plus])
def test_any_threshold_metric(metric):
    c, loss, w = draw(1)
    curve = metric_coverage_curve(c, loss, metric=metric, weight=w)
    assert curve.metric == metric.__name__
    for t, value in zip(curve.thresholds, curve.value, strict=True):
        assert value == metric(c, loss, threshold=t, weight=w)


def test_default_thresholds_reach_a_confidence_of_one():
    c, loss = np.array([1.0, 1.0, 0.9, 0.4]), np.array([0, 1, 0, 1])
    curve = metric_coverage_curve(c, loss, metric=cwsa)
    assert curve.accepted.tolist() == [2, 3, 4]
    assert curve.value[0] == pytest.approx(0.0)
    area = np.trapezoid([0.0, *curve.value], [0.0, *curve.coverage])
    assert area == pytest.approx(cwsa_area(c, loss))
    # Of any other scale 1 is a confidence as any other.
    assert metric_coverage_curve([1.0, -1.0], [0, 1]).thresholds.tolist() == [1.0, -1.0]


def test_many_thresholds_are_thinned_evenly_in_coverage():
    rng = np.random.default_rng(2)
    c, loss = rng.random(5000), rng.integers(0, 2, 5000)
    curve = metric_coverage_curve(c, loss)
    assert DEFAULT_THRESHOLDS <= len(curve) <= DEFAULT_THRESHOLDS + 1
    assert (curve.accepted[0], curve.accepted[-1]) == (1, 5000)
    assert np.diff(curve.coverage).max() <= 1 / DEFAULT_THRESHOLDS + 1e-12


def test_order_and_repetition_do_not_matter():
    c, loss, w = draw(3)
    curve = metric_coverage_curve(c, loss, weight=w)
    other = metric_coverage_curve(np.repeat(c, w)[::-1], np.repeat(loss, w)[::-1])
    np.testing.assert_allclose(curve.value, other.value)
    np.testing.assert_allclose(curve.coverage, other.coverage)


def test_nothing_accepted():
    with pytest.warns(UndefinedMetricWarning, match="thresholds that accept no sample"):
        curve = metric_coverage_curve([0.1, 0.2], [0, 1], thresholds=[0.5, 0.1])
    assert curve.coverage.tolist() == [0.0, 1.0]
    assert np.isnan(curve.value[0])
    assert curve.frame()["value"].to_list() == [None, 0.5]
    with pytest.warns(UndefinedMetricWarning, match="cwsa_plus is undefined"):
        metric_coverage_curve([0.1], [0], metric=cwsa_plus, thresholds=[0.5])


def test_small_cases_and_frame():
    curve = metric_coverage_curve([0.3], [0])
    assert (curve.coverage.tolist(), curve.value.tolist()) == ([1.0], [1.0])
    assert metric_coverage_curve([0.3] * 4, [1] * 4).value.tolist() == [0.0]
    assert curve.frame().columns == ["thresholds", "coverage", "value", "accepted"]


def test_messages():
    with pytest.raises(
        InputError, match="`metric` must be 'selective_accuracy' or a callable; got 'auc'"
    ):
        metric_coverage_curve([0.1], [0], metric="auc")
    with pytest.raises(DomainError, match="`thresholds` must be finite; got inf at index 0"):
        metric_coverage_curve([0.1], [0], thresholds=[np.inf])
    with pytest.raises(DomainError, match=r"`loss` must lie in \[0, 1\]; got 2.0"):
        metric_coverage_curve([0.1], [2.0])
