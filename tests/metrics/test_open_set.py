"""Samples of no known class: OSCR and SCOD, threshold by threshold."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm
from tests.properties.test_influence import derivative

import abstain as ab
from abstain._foundation.scored import ClassView, Scored
from abstain.errors import DomainError, UndefinedMetricWarning
from abstain.metrics import METRICS, metric_named, oscr, scod_loss
from abstain.metrics.intervals import influence_of, interval_of_metric

OPEN = ("oscr", "scod_aurc@0.7cost", "scod_augrc@0.3cost")


def drawn(n=50, *, seed=0, ties=False):
    rng = np.random.default_rng(seed)
    c = np.round(rng.random(n), 1) if ties else rng.random(n)
    labels = rng.integers(-1, 3, n)
    prediction = np.where(rng.random(n) < 0.7, np.maximum(labels, 0), rng.integers(0, 3, n))
    return c, prediction, labels


def of_open_set(c, prediction, labels, weight=None):
    view = ClassView(labels, prediction, (0, 1, 2))
    loss = (prediction != labels).astype(float)
    return Scored(c, loss, weight, probability=c, class_view=view)


@pytest.mark.parametrize("ties", [False, True])
def test_oscr_is_the_area_under_its_curve(ties):
    c, prediction, labels = drawn(ties=ties)
    is_known, unknown = labels >= 0, labels < 0
    right = is_known & (prediction == labels)
    thresholds = np.unique(c)[::-1]
    ccr = [0.0, *((right & (c >= t)).sum() / is_known.sum() for t in thresholds)]
    fpr = [0.0, *((unknown & (c >= t)).sum() / unknown.sum() for t in thresholds)]
    expected = np.trapezoid(ccr, fpr)
    assert oscr(c, prediction, labels) == pytest.approx(expected, abs=1e-12)
    value = METRICS["oscr"].compute(of_open_set(c, prediction, labels)).value
    assert value == pytest.approx(expected, abs=1e-12)


def test_a_perfect_order_leaves_the_accuracy_and_a_random_one_half_of_it():
    _, prediction, labels = drawn(2000, seed=2)
    is_known = labels >= 0
    accuracy = (prediction == labels)[is_known].mean()
    assert oscr(is_known * 1.0, prediction, labels) == pytest.approx(accuracy)
    assert oscr(np.ones(2000), prediction, labels) == pytest.approx(accuracy / 2)


def test_oscr_without_one_kind_says_so():
    with pytest.warns(UndefinedMetricWarning, match="no sample has an unknown class"):
        assert np.isnan(oscr([0.1, 0.2], [0, 1], [0, 1]))
    with pytest.warns(UndefinedMetricWarning, match="no sample has a known class"):
        assert np.isnan(oscr([0.1, 0.2], [0, 1], [-1, -1]))
    assert oscr([0.1, 0.2], [0, 1], [1, -1]) == 0.0
    closed = of_open_set(np.array([0.1, 0.2]), np.array([0, 1]), np.array([0, 1]))
    for name in (*OPEN, "scod_risk@80cov-0.5cost"):
        assert (
            metric_named(name).reason_not_applicable(closed) == "needs samples of unknown classes"
        )


@pytest.mark.parametrize("cost", [0.0, 0.3, 0.75, 1.0])
def test_scod_metrics_equal_those_of_the_costs(cost):
    c, prediction, labels = drawn(ties=True, seed=3)
    s = of_open_set(c, prediction, labels)
    loss = np.where(labels < 0, cost, (1 - cost) * (prediction != labels))
    np.testing.assert_allclose(scod_loss(s.loss, labels < 0, outlier_cost=cost), loss)
    for name, function in (("scod_aurc", ab.aurc), ("scod_augrc", ab.augrc)):
        value = metric_named(f"{name}@{cost:g}cost").compute(s).value
        assert value == pytest.approx(function(c, loss), abs=1e-12)
    value = metric_named(f"scod_risk@65cov-{cost:g}cost").compute(s).value
    assert value == pytest.approx(ab.selective_risk(c, loss, coverage=0.65), abs=1e-12)


def test_half_the_cost_is_half_the_error_and_the_benchmark_counts_in_wrong_answers():
    c, prediction, labels = drawn(seed=4)
    wrong = (prediction != labels).astype(float)
    half = ab.aurc(c, scod_loss(wrong, labels < 0))
    assert half == pytest.approx(ab.aurc(c, wrong) / 2, abs=1e-12)
    twice = ab.aurc(c, np.where(labels < 0, 2.0, wrong))
    costed = ab.aurc(c, scod_loss(wrong, labels < 0, outlier_cost=2 / 3))
    assert twice == pytest.approx(3 * costed, abs=1e-12)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("name", OPEN)
def test_influences_are_derivatives(name, ties, weights):
    rng, metric = np.random.default_rng(9), metric_named(name)
    s = of_open_set(*drawn(seed=5, ties=ties))
    weight = rng.uniform(0.2, 3, s.n_rows) if weights else np.ones(s.n_rows)
    weight[:3] = weight[:3] * (not weights)
    s = replace(s, weight=weight)
    result, expected = influence_of(metric, s), derivative(metric, s)
    assert np.abs(result - expected).max() <= 1e-7 * max(1.0, np.abs(expected).max())


def test_intervals_hold_what_is_true():
    """Right answers 2 above unknown samples on average, 4 in 5 of the known are right."""
    rng, held, truth = np.random.default_rng(6), [], 0.8 * norm.cdf(2 / np.sqrt(2))
    for _ in range(80):
        labels = rng.integers(-1, 1, 300)
        prediction = np.where(rng.random(300) < 0.8, 0, 1)
        c = rng.normal(size=300) + 2 * ((labels == 0) & (prediction == 0))
        interval = interval_of_metric(METRICS["oscr"], of_open_set(c, prediction, labels))
        held.append(interval.low <= truth <= interval.high)
    assert np.mean(held) >= 0.87


@pytest.mark.parametrize(("n_unknown", "shift"), [(8, 1.6), (4, 1.6), (8, 3.2)])
def test_oscr_holds_what_is_true_with_few_unknown_samples(n_unknown, shift):
    """Before, 88% (8 of 2000 unknown) and 85% (4 of 200) of the intervals held the truth."""
    rng, held, truth = np.random.default_rng(8), [], 0.8 * norm.cdf(shift / np.sqrt(2))
    n = 2000 if n_unknown == 8 else 200
    labels = np.where(np.arange(n) < n_unknown, -1, 0)
    for _ in range(400):
        prediction = np.where(rng.random(n) < 0.8, 0, 1)
        c = rng.normal(size=n) + shift * ((labels == 0) & (prediction == 0))
        interval = interval_of_metric(METRICS["oscr"], of_open_set(c, prediction, labels))
        held.append(interval.low <= truth <= interval.high)
    # Monte-Carlo error 1.1%.
    assert np.mean(held) >= 0.93


def test_one_unknown_sample_shows_no_spread_and_few_come_with_a_warning():
    c, prediction, labels = np.linspace(1, 0, 40), np.zeros(40, int), np.zeros(40, int)
    prediction[::5], labels[20] = 1, -1
    interval = interval_of_metric(METRICS["oscr"], of_open_set(c, prediction, labels))
    assert np.isnan(interval.low)
    assert "the single sample on one side" in interval.note
    labels[22] = labels[3] = -1
    interval = interval_of_metric(METRICS["oscr"], of_open_set(c, prediction, labels))
    assert interval.low < METRICS["oscr"].compute(of_open_set(c, prediction, labels)).value
    assert "only 3 failures among the samples of unknown classes" in interval.note


def test_few_failures_among_the_accepted_come_with_a_warning_for_the_scod_risk():
    # Of 40 failures and outliers three are accepted.
    c, prediction, labels = np.linspace(1, 0, 200), np.zeros(200, int), np.zeros(200, int)
    prediction[[20, 90, *range(180, 200)]] = 1
    labels[[50, *range(163, 180)]] = -1
    s = of_open_set(c, prediction, labels)
    result = metric_named("scod_risk@80cov-0.75cost")
    assert result.measurement.n_failures(s) == 3
    assert "only 3 failures among the accepted" in interval_of_metric(result, s).note
    risk = metric_named("selective_risk@80cov")
    assert result.measurement.n_failures(s) == risk.measurement.n_failures(s)


def test_costs_are_checked():
    with pytest.raises(DomainError, match=r"`outlier_cost` must lie in \[0, 1\]"):
        scod_loss([0, 1], [0, 1], outlier_cost=2)
    with pytest.raises(DomainError, match="`unknown` must be 0 or 1"):
        scod_loss([0, 1], [0, -1])
