"""Class-balanced areas where a class is rare: the influence on its start, and when to say nothing.

The simulations are a small part of the tables in docs/validation.md.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

import abstain as ab
from abstain._foundation.scored import ClassView, Scored
from abstain.evaluation.intervals import interval_of_replicates
from abstain.metrics import METRICS
from abstain.metrics.classes import reason_few_failures_of_class, reason_late_start_of_class
from abstain.metrics.intervals import difference_of_metric, influence_of, interval_of_metric

NAMES = ("aurc_ba", "augrc_ba")


def two_classes(rng, n, share, *, rates=(0.1, 0.4), shift=0.0, separations=(1.6, 1.6), scores=1):
    """Scores of one classifier on a common and a rare class."""
    label = (rng.random(n) < share).astype(np.int64)
    label[0] = 1
    loss = rng.random(n) < np.take(rates, label)
    noise = np.sqrt(0.6) * rng.normal(size=n) + np.sqrt(0.4) * rng.normal(size=(scores, n))
    view = ClassView(label, label, (0, 1))
    confidence = noise + np.take(separations, label) * ~loss + shift * label
    return [Scored(own, loss, class_view=view) for own in confidence]


def true_aurc(share, rates, shift):
    """The class-balanced AURC of this population."""
    above = np.linspace(14, -9, 100_001)[:, None] - np.array([0.0, shift])
    failing = np.array(rates) * norm.sf(above)
    accepted = failing + (1 - np.array(rates)) * norm.sf(above - 1.6)
    coverage = accepted @ np.array([1 - share, share])
    return np.trapezoid((failing / accepted).mean(axis=1), coverage)


# ---------------------------------------------------------------------------- influence function
def on_start(s):
    """The expected effect of each sample on the start of its class, threshold by threshold."""
    labels, out, order = s.class_view.labels, np.zeros(s.n_rows), np.argsort(-s.confidence)
    coverage = np.arange(1, s.n_rows + 1) / s.n_rows
    for k in np.unique(labels):
        rows = order[labels[order] == k]
        m, at = rows.size, np.flatnonzero(labels[order] == k)
        ends = np.append(at[1:], s.n_rows - 1)
        for i in range(m):
            # Trapezoid: the risk of the class at its i-th sample counts half a step sooner.
            first = 0.0 if at[i] == 0 else coverage[at[i]] - 0.5 / s.n_rows
            last = coverage[ends[i]] - 0.5 / s.n_rows if i + 1 < m else 1.0
            area = s.loss[rows[: i + 1]].mean() * (last - first)
            share = (i + 1) / m
            above = np.isin(np.arange(m), np.arange(i + 1))
            out[rows] += area * (1 - share) ** (m - 1) * (above - share)
    return s.n_rows * out / np.unique(labels).size


def derivative(metric, s, step=1e-5):
    """W dT/dw of each sample."""
    weights = np.ones(s.n_rows) + step * np.array([1, -1])[:, None, None] * np.eye(s.n_rows)
    up, down = ([metric.compute(replace(s, weight=w)).value for w in own] for own in weights)
    slope = s.n_rows * np.subtract(up, down) / (2 * step)
    return slope - slope.mean()


@pytest.mark.parametrize("seed", [1, 2, 4])
def test_the_influence_on_aurc_has_a_term_for_the_start_of_each_class(seed):
    rng, metric = np.random.default_rng(seed), METRICS["aurc_ba"]
    s = two_classes(rng, 80, 0.15, rates=(0.2, 0.8), shift=-1.0)[0]
    term = on_start(s)
    assert np.abs(term).max() > 0.05
    assert np.allclose(influence_of(metric, s) - derivative(metric, s), term, atol=1e-6)


def test_the_term_is_the_change_of_the_expected_area_by_one_sample():
    # A class that always fails, on thresholds that accept the share G of it: it counts as soon as
    # it has started. Means over 200,000 draws of what a sample at 0.1 does to the area.
    rng, m = np.random.default_rng(0), 8
    # A uniform score is the share of the class that scores higher; the lowest starts the class.
    others = rng.random((200_000, m - 1)).min(axis=1)
    with_sample, without = 1 - np.minimum(others, 0.1), 1 - rng.random((200_000, m)).min(axis=1)
    share = np.linspace(0, 1, 20_001)
    term = np.trapezoid(((share >= 0.1) - share) * (1 - share) ** (m - 1), share)
    assert with_sample.mean() - without.mean() == pytest.approx(term, abs=1e-3)


def test_augrc_needs_no_such_term():
    rng, metric = np.random.default_rng(0), METRICS["augrc_ba"]
    s = two_classes(rng, 80, 0.15, rates=(0.2, 0.8), shift=-1.0)[0]
    assert np.allclose(influence_of(metric, s), derivative(metric, s), atol=1e-6)


# --------------------------------------------------------------------- no interval and no p-value
@pytest.mark.parametrize("name", NAMES)
def test_few_failures_of_a_rare_class_allow_no_interval(name):
    first, second = two_classes(np.random.default_rng(1), 2000, 0.01, scores=2)
    metric = METRICS[name]
    interval, gap = interval_of_metric(metric, first), difference_of_metric(metric, (first, second))
    assert np.isnan([interval.low, interval.high, gap.low, gap.high, gap.p_value]).all()
    assert gap.value == metric.compute(first).value - metric.compute(second).value
    for note in (interval.note, gap.note):
        assert note.startswith("a class is too rare: the variance is based on about 6 failures")
    replicates = metric.compute(first).value + np.random.default_rng(0).normal(0, 0.01, 200)
    assert (
        interval_of_replicates(metric, replicates, first, cluster=None, level=0.95).note
        == interval.note
    )


def test_a_rare_class_of_low_confidence_allows_no_interval_of_aurc():
    s = two_classes(np.random.default_rng(1), 10_000, 0.1, rates=(0.1, 0.8), shift=-2.0)[0]
    interval = interval_of_metric(METRICS["aurc_ba"], s)
    assert np.isnan(interval.low)
    assert "fewer than 5 samples of it are accepted" in interval.note
    assert interval_of_metric(METRICS["augrc_ba"], s).low > 0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("classes", "n"), [(2, 200), (10, 1000), (100, 10_000)])
def test_classes_of_the_same_size_allow_an_interval(name, classes, n):
    rng = np.random.default_rng(4)
    label, loss = np.arange(n) % classes, rng.random(n) < 0.1
    view = ClassView(label, label, tuple(range(classes)))
    s = Scored(rng.normal(size=n) + 1.6 * ~loss, loss, class_view=view)
    assert interval_of_metric(METRICS[name], s).low > 0


@pytest.mark.parametrize("check", [reason_few_failures_of_class, reason_late_start_of_class])
def test_the_scale_of_weights_and_rows_without_weight_change_nothing(check):
    s = two_classes(np.random.default_rng(2), 400, 0.03, shift=-1.0)[0]
    reason = check(s)
    assert reason
    assert check(replace(s, weight=np.full(s.n_rows, 1e-3))) == reason
    padded = np.append(np.arange(s.n_rows), np.arange(50))
    view = ClassView(s.class_view.labels[padded], s.class_view.labels[padded], (0, 1))
    weight = np.append(np.full(s.n_rows, 2.0), np.zeros(50))
    assert check(Scored(s.confidence[padded], s.loss[padded], weight, class_view=view)) == reason


def predictions(seed=0, n=600, share=0.03):
    first, second = two_classes(np.random.default_rng(seed), n, share, scores=2)
    label = first.class_view.labels
    return ab.Predictions(
        confidence={"first": first.confidence, "second": second.confidence},
        labels=label,
        prediction=np.where(first.loss, 1 - label, label),
    )


@pytest.mark.parametrize("interval", ["analytic", "bootstrap"])
def test_evaluate_gives_the_reason_instead_of_an_interval(interval):
    evaluation = ab.evaluate(predictions(), metrics=list(NAMES), interval=interval, bootstrap=100)
    for result in evaluation.results:
        assert np.isfinite(result.value)
        assert np.isnan(result.interval.low)
        assert result.interval.note.startswith("a class is too rare")


@pytest.mark.parametrize(
    "options",
    [{}, {"bootstrap": 100}, {"test": "bootstrap"}, {"margin": 0.1, "reference": "first"}],
)
def test_compare_gives_the_reason_instead_of_a_p_value(options):
    comparison = ab.compare(predictions(), metrics=["aurc_ba", "augrc"], **options)
    rows = [row for row in comparison.pairs if row.metric == "aurc_ba"]
    assert rows
    for row in rows:
        assert np.isnan([row.p_value, row.low, row.high]).all()
        assert not row.better
        assert row.note.startswith("a class is too rare")
    estimates = [row for row in comparison.estimates if row.metric == "aurc_ba"]
    assert all(np.isfinite(row.value) and np.isnan(row.low) for row in estimates)
    assert {row.source for row in comparison.standings if row.metric == "aurc_ba"} == {"values"}
    margins = [row for row in comparison.non_inferiority if row.metric == "aurc_ba"]
    assert all(np.isnan(row.p_value) and not row.non_inferior for row in margins)
    assert [f.kind for f in comparison.notes].count("no_interval") == 1
    # Other metrics of the same comparison are as they are alone.
    alone = ab.compare(predictions(), metrics=["augrc"], **options).pairs
    assert [row for row in comparison.pairs if row.metric == "augrc"] == list(alone)


def test_runs_with_a_rare_class_allow_no_interval_of_their_mean():
    runs = {(("seed", str(seed)),): predictions(seed) for seed in range(2)}
    comparison = ab.compare(runs, metrics=["aurc_ba"], runs="seed")
    assert len(comparison.estimates) == 6
    assert all(np.isnan(row.low) for row in comparison.estimates)


# ------------------------------------------------------------------------------------ simulation
@pytest.mark.slow
@pytest.mark.parametrize(
    ("share", "rates", "shift", "n"),
    [(0.1, (0.1, 0.8), -2.0, 2000), (0.1, (0.1, 0.4), -1.0, 400), (0.01, (0.1, 0.03), 0.0, 2000)],
)
def test_intervals_of_rare_classes_are_withheld_or_hold_the_truth(share, rates, shift, n):
    rng, metric = np.random.default_rng(0), METRICS["aurc_ba"]
    true = true_aurc(share, rates, shift)
    results = []
    for _ in range(200):
        s = two_classes(rng, n, share, rates=rates, shift=shift)[0]
        interval = interval_of_metric(metric, s)
        results.append((interval.low, interval.high))
    low, high = np.array(results).T
    missed = (low > true) | (high < true)
    assert missed.mean() < 0.06


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("share", "rates", "shift", "separations"),
    [
        (0.1, (0.1, 0.4), 1.0, (1.6, 1.6)),
        (0.01, (0.1, 0.4), 0.0, (1.6, 1.6)),
        # The rare class fails at random and is accepted last: 59% before, by `aurc_ba`.
        (0.1, (0.1, 0.8), -2.0, (1.6, 0.0)),
    ],
)
def test_equally_good_scores_are_rarely_found_different(name, share, rates, shift, separations):
    rng, metric = np.random.default_rng(1), METRICS[name]
    options = {"rates": rates, "shift": shift, "separations": separations, "scores": 2}
    p_values = [
        difference_of_metric(metric, tuple(two_classes(rng, 1000, share, **options))).p_value
        for _ in range(100)
    ]
    assert np.mean(np.array(p_values) < 0.05) < 0.12
