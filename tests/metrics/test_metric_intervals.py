"""Intervals and differences of metrics: against DeLong and simulation, and where nothing varies."""

from dataclasses import replace

import numpy as np
import pytest

import abstain as ab
from abstain import simulate
from abstain._foundation.scored import ClassView, Scored, validate_samples
from abstain.errors import DomainError, InputError, ShapeError, UnknownNameError
from abstain.inference.intervals import clopper_pearson, wilson
from abstain.metrics import METRICS, metric_named
from abstain.metrics.intervals import (
    difference_of_metric,
    influence_matrix,
    influence_of,
    interval_of_metric,
    metric_difference,
    metric_interval,
)


def population(rng: np.random.Generator, n: int, rate: float = 0.1, apart: float = 1.6):
    return simulate.two_gaussians(rate, apart).sample(n, rng=rng)


def placements(c: np.ndarray, loss: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """DeLong's structural components, by all pairs."""
    right, wrong = c[loss == 0], c[loss == 1]
    wins = (right[:, None] > wrong) + (right[:, None] == wrong) / 2
    return wins.mean(axis=1), wins.mean(axis=0)


def delong_covariance(scores: list[np.ndarray], loss: np.ndarray) -> np.ndarray:
    """The covariance of AUROCs by DeLong et al. (1988), from the structural components."""
    parts = [placements(c, loss) for c in scores]
    of_successes, of_failures = (np.atleast_2d(np.cov(x)) for x in zip(*parts, strict=True))
    return of_successes / (loss == 0).sum() + of_failures / (loss == 1).sum()


@pytest.mark.parametrize("n_failures", [2, 10, 150])
@pytest.mark.parametrize("ties", [False, True])
def test_failure_auroc_is_delongs_test(ties: bool, n_failures: int) -> None:
    """Each class divides by its own n - 1: with 10 failures the error was 4.4 % too small."""
    rng = np.random.default_rng(0)
    loss = (np.arange(300) < n_failures).astype(float)
    c = rng.normal(size=300) - loss
    other = c + rng.normal(size=300)
    if ties:
        c, other = np.round(c, 1), np.round(other)
    delong = delong_covariance([c, other], loss)
    expected = np.sqrt(delong[0, 0] + delong[1, 1] - 2 * delong[0, 1])
    for name, scale in (("failure_auroc", 1), ("prr", 2)):
        metric, pair = METRICS[name], (validate_samples(c, loss), validate_samples(other, loss))
        error = interval_of_metric(metric, pair[0]).standard_error
        assert error == pytest.approx(scale * np.sqrt(delong[0, 0]), rel=1e-12)
        difference = difference_of_metric(metric, pair)
        assert difference.standard_error == pytest.approx(scale * expected, rel=1e-9)
    compared = ab.compare(
        ab.Predictions(confidence={"c": c, "other": other}, loss=loss), metrics=["failure_auroc"]
    )
    assert compared.pairs[0].standard_error == pytest.approx(expected, rel=1e-9)


def test_clusters_of_one_sample_and_weights_of_one_have_delongs_error() -> None:
    rng = np.random.default_rng(1)
    c, loss = rng.normal(size=80), (np.arange(80) < 10).astype(float)
    expected = np.sqrt(delong_covariance([c], loss)[0, 0])
    metric = METRICS["failure_auroc"]
    weighted = interval_of_metric(metric, validate_samples(c, loss, np.full(80, 3.0)))
    clustered = interval_of_metric(metric, validate_samples(c, loss), cluster=np.arange(80))
    assert weighted.standard_error == pytest.approx(expected, rel=1e-12)
    assert clustered.standard_error == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    "name",
    [
        "selective_risk@80cov",
        "generalized_risk@80cov",
        "classification_quality@80cov",
        "rejection_quality@80cov",
        "coverage@5risk",
        "aurc_plugin",
        "e_aurc",
        "achievable_aurc",
    ],
)
def test_standard_errors_are_the_spread_of_repeated_studies(name: str) -> None:
    rng, metric = np.random.default_rng(1), metric_named(name)
    values, errors = [], []
    for _ in range(400):
        s = validate_samples(*population(rng, 800))
        values.append(metric.compute(s).value)
        errors.append(interval_of_metric(metric, s).standard_error)
    ratio = np.sqrt(np.nanmean(np.square(errors))) / np.std(values)
    # Monte-Carlo error of a standard deviation from 400 draws: 3.5 %.
    assert 0.82 < ratio < 1.2


def test_where_the_threshold_cannot_move_the_risk_is_a_plain_mean() -> None:
    # One large tie group holds the coverage; its members stand or fall together.
    rng = np.random.default_rng(2)
    c, loss = np.repeat([2.0, 1.0], [850, 150]), (rng.random(1000) < 0.1).astype(float)
    loss[850:] = 1
    interval = interval_of_metric(metric_named("selective_risk@80cov"), validate_samples(c, loss))
    risk = loss[:850].mean()
    assert np.isclose(interval.standard_error, np.sqrt(risk * (1 - risk) / 850), rtol=2e-3)


def test_the_accuracy_has_wilsons_interval() -> None:
    labels = np.arange(50) % 2
    prediction = np.where(np.arange(50) < 4, 1 - labels, labels)
    s = replace(
        validate_samples(np.linspace(1, 0, 50), prediction != labels),
        class_view=ClassView(labels, prediction, (0, 1)),
    )
    interval, expected = interval_of_metric(METRICS["accuracy"], s), wilson(46, 50)
    assert np.allclose([interval.low, interval.high], [expected.low, expected.high])


TWO = validate_samples([0.9, 0.1], [0, 1])
#: The metrics of a confidence and a loss, which need no classes.
PLAIN = [metric for metric in METRICS.values() if not metric.reason_not_applicable(TWO)]
RISK_END = clopper_pearson(0, 60).high


@pytest.mark.parametrize("metric", PLAIN, ids=lambda m: m.name)
@pytest.mark.parametrize(
    "loss",
    [
        np.zeros(60),
        np.ones(60),
        (np.arange(60) >= 52).astype(float),
        (np.arange(60) < 8).astype(float),
        (np.arange(60) == 30).astype(float),
        np.arange(60) % 2.0,
    ],
    ids=["none fails", "all fail", "best order", "worst order", "one fails", "half fail"],
)
@pytest.mark.parametrize("confidence", [np.linspace(1, 0, 60), np.full(60, 0.5)], ids=["", "tied"])
def test_an_interval_holds_its_value_or_says_why_there_is_none(metric, loss, confidence) -> None:
    s = validate_samples(confidence, loss)
    value, interval = metric.compute(s).value, interval_of_metric(metric, s)
    if np.isnan(interval.low):
        assert np.isnan(interval.high)
        assert interval.note
    else:
        assert interval.low <= value <= interval.high
        assert metric.measurement.low - 1e-12 <= interval.low
        assert interval.high <= max(metric.measurement.high, value) + 1e-12
        # Where no risk near the one asked for is plausible, the coverage is known for sure.
        assert interval.low < interval.high or "with certainty" in interval.note


def test_without_failures_the_end_is_what_the_error_rate_allows() -> None:
    interval = metric_interval(np.linspace(1, 0, 60), np.zeros(60))
    assert (interval.low, interval.high) == (0.0, RISK_END - RISK_END**2 / 2)
    assert "no failures" in interval.note
    grouped = metric_interval(np.linspace(1, 0, 60), np.zeros(60), group=np.arange(60) // 6)
    assert grouped.high > interval.high
    risk = metric_interval(
        np.linspace(1, 0, 60), np.arange(60) == 59, metric="selective_risk@80cov"
    )
    assert risk.low == 0
    assert np.isclose(risk.high, clopper_pearson(0, 48).high)


def test_a_perfect_score_of_few_failures_is_not_certain() -> None:
    c, loss = np.linspace(1, 0, 60), np.arange(60) >= 57
    interval = metric_interval(c, loss, metric="failure_auroc")
    assert (interval.low, interval.high) == (clopper_pearson(3, 3).low, 1.0)
    assert metric_interval(c, loss, metric="excess_augrc").high > 0


def test_one_instance_and_one_failure_have_notes() -> None:
    assert metric_interval([0.3], [1.0]).note
    note = metric_interval(np.linspace(1, 0, 9), np.arange(9) == 4, metric="failure_auroc").note
    assert "the single sample on one side" in note


def test_weights_of_any_scale_and_copies_within_a_cluster() -> None:
    rng = np.random.default_rng(3)
    c, loss = population(rng, 200, rate=0.2)
    w = rng.uniform(0.5, 2, 200)
    once, scaled = (metric_interval(c, loss, weight=x) for x in (w, 5 * w))
    assert np.allclose([once.low, once.high], [scaled.low, scaled.high])
    plain = metric_interval(c, loss)
    home = np.repeat([f"p{i}" for i in range(200)], 3)
    copied = metric_interval(np.repeat(c, 3), np.repeat(loss, 3), group=home)
    assert np.isclose(plain.standard_error, copied.standard_error)
    assert np.isclose(plain.low, copied.low)
    gone = metric_interval(np.append(c, 9.0), np.append(loss, 1.0), weight=np.append(w, 0.0))
    assert np.allclose([once.low, once.high], [gone.low, gone.high])


def test_losses_of_any_size() -> None:
    rng = np.random.default_rng(4)
    c, loss = rng.normal(size=300), rng.exponential(3, 300)
    interval = metric_interval(c, loss)
    assert "log scale" in interval.method
    scaled = metric_interval(c, loss * 1000)
    assert np.allclose([interval.low * 1000, interval.high * 1000], [scaled.low, scaled.high])


def test_a_difference_equals_that_of_its_influences_and_of_two_classifiers() -> None:
    rng = np.random.default_rng(5)
    c, loss = population(rng, 400)
    other, other_loss = population(rng, 400, apart=1.0)
    difference = metric_difference(c, other, loss, other_loss=other_loss, metric="aurc")
    pair = (validate_samples(c, loss), validate_samples(other, other_loss))
    assert difference == difference_of_metric(METRICS["aurc"], pair)
    x = influence_matrix(METRICS["aurc"], pair)
    expected = np.sqrt(np.sum((x[:, 0] - x[:, 1]) ** 2) / (400 * 399))
    assert np.isclose(difference.standard_error, expected)
    assert np.isclose(
        difference.ratio, difference.value / METRICS["aurc"].compute(pair[1]).value + 1
    )


def test_two_scores_of_one_classifier_differ_in_excess_as_in_augrc() -> None:
    rng = np.random.default_rng(6)
    c, loss = population(rng, 300)
    other = c + rng.normal(size=300)
    first, second = (metric_difference(c, other, loss, metric=m) for m in ("augrc", "excess_augrc"))
    assert np.isclose(first.value, second.value)
    assert np.isclose(first.low, second.low)
    assert np.isclose(first.p_value, second.p_value)


def test_influences_are_nan_where_there_are_none() -> None:
    s = validate_samples([0.9, 0.8, 0.7], [0, 0, 0])
    assert np.isnan(influence_matrix(METRICS["failure_auroc"], [s, s])).all()
    assert np.isnan(influence_matrix(METRICS["ece"], [s])).all()


def test_a_metric_may_bring_its_own_influence() -> None:
    def own(s: Scored) -> np.ndarray:
        return s.loss - s.loss.mean()

    known = METRICS["augrc"]
    mine = replace(known, measurement=replace(known.measurement, influence=own))
    s = validate_samples([0.9, 0.8, 0.7], [0, 1, 0])
    assert np.array_equal(influence_of(mine, s), own(s))


def test_what_cannot_be_is_refused() -> None:
    c, loss = [0.9, 0.8, 0.7], [0.0, 1.0, 0.0]
    with pytest.raises(UnknownNameError):
        metric_interval(c, loss, metric="augcr")
    with pytest.raises(DomainError, match="`level`"):
        metric_interval(c, loss, level=95)
    with pytest.raises(InputError, match="needs labels"):
        metric_interval(c, loss, metric="balanced_accuracy")
    with pytest.raises(InputError, match="use the bootstrap"):
        metric_difference(c, c, loss, metric="ece")
    with pytest.raises(ShapeError, match="`group`"):
        metric_interval(c, loss, group=[1, 2])
    with pytest.raises(ShapeError, match="`other`"):
        metric_difference(c, c[:2], loss, other_loss=loss[:2])


@pytest.mark.parametrize("metric", PLAIN, ids=lambda m: m.name)
@pytest.mark.parametrize("constant", [1.0, 0.0, 0.37])
def test_where_all_samples_fail_alike_no_score_of_ranks_is_better(metric, constant) -> None:
    rng = np.random.default_rng(7)
    for n in (40, 333):
        confidence = rng.random((2, n))
        loss = np.full(n, constant)
        pair = [
            validate_samples(confidence[0], loss),
            validate_samples(np.round(confidence[1], 1), loss),
        ]
        if metric.reason_not_applicable(pair[0]) or not metric.measurement.rank_based:
            return
        # What these count is another number with ties.
        if metric.reason_without_interval or metric.name in {"f1_auc", "aurc_log"}:
            return
        if np.isnan([metric.compute(s).value for s in pair]).any():
            return
        difference = difference_of_metric(metric, tuple(pair))
        assert (difference.value, difference.p_value, difference.superiority) == (0.0, 1.0, 0.5)
        for s in pair:
            interval = interval_of_metric(metric, s)
            assert np.isnan(interval.low) or metric.measurement.low <= interval.low
            assert np.isnan(interval.high) or interval.high <= metric.measurement.high


def test_failures_among_the_accepted_are_named_so() -> None:
    c, loss = np.linspace(1, 0, 80), (np.arange(80) >= 78).astype(float)
    assert "no accepted sample" in metric_interval(c, loss, metric="selective_risk@80cov").note
    loss[60:] = 1.0
    note = metric_interval(c, loss, metric="selective_risk@80cov").note
    assert "only 4 failures among the accepted" in note
    rng = np.random.default_rng(10)
    other = metric_difference(c, c + 0.2 * rng.normal(size=80), loss, metric="coverage@5risk")
    assert "among the accepted: below" in other.note
    assert "among" not in metric_interval(c, loss[::-1][:80] * (np.arange(80) < 3)).note


def test_differences_stay_within_the_range_of_the_metric() -> None:
    rng = np.random.default_rng(8)
    loss = (np.arange(12) < 2).astype(float)
    for _ in range(40):
        for metric, width in (("augrc", 0.5), ("coverage@10risk", 1.0), ("prr", 2.0)):
            difference = metric_difference(rng.random(12), rng.random(12), loss, metric=metric)
            assert np.isnan(difference.low) or -width <= difference.low <= difference.high <= width
    large = metric_difference(rng.random(12), rng.random(12), loss * 40, metric="augrc")
    assert -20 <= large.low <= large.high <= 20


def test_the_ratio_excludes_one_as_rarely_as_the_difference_excludes_zero() -> None:
    rng, excluded, agreed = np.random.default_rng(9), 0, 0
    for _ in range(400):
        loss = (rng.permutation(200) < 8).astype(float)
        base = 0.7 * rng.normal(size=200) - 1.6 * loss
        first, second = base + 0.7 * rng.normal(size=(2, 200))
        difference = metric_difference(first, second, loss)
        out = not difference.ratio_low <= 1 <= difference.ratio_high
        excluded += out
        agreed += out == (difference.p_value < 0.05)
    assert agreed == 400
    assert excluded / 400 < 0.05


def test_wilson_warns_of_few_clusters() -> None:
    labels = np.arange(60) % 2
    prediction = np.where(np.arange(60) < 9, 1 - labels, labels)
    s = replace(
        validate_samples(np.linspace(1, 0, 60), prediction != labels),
        class_view=ClassView(labels, prediction, (0, 1)),
    )
    interval = interval_of_metric(METRICS["accuracy"], s, cluster=np.arange(60) % 3)
    assert "only 3 clusters" in interval.note
    assert not interval_of_metric(METRICS["accuracy"], s).note


@pytest.mark.parametrize("units", [200, 1000])
def test_the_accuracy_holds_where_clusters_that_fail_are_larger(units) -> None:
    """By Kish's number of clusters 79% (200 clusters) and 83% of the intervals held the truth."""
    rng, draws, rate, size = np.random.default_rng(1), 300, 0.05, 5
    truth, held = (1 - rate) / (1 - rate + size * rate), 0
    for _ in range(draws):
        fails = rng.random(units) < rate
        cluster = np.repeat(np.arange(units), np.where(fails, size, 1))
        loss = fails[cluster].astype(float)
        s = replace(
            validate_samples(rng.random(loss.size), loss),
            class_view=ClassView(np.zeros(loss.size, int), loss.astype(int), (0, 1)),
        )
        interval = interval_of_metric(METRICS["accuracy"], s, cluster=cluster)
        held += interval.low <= truth <= interval.high
    # Monte-Carlo error 1.3%.
    assert held / draws >= 0.92


@pytest.mark.parametrize("name", ["e_aurc", "normalized_aurc", "ause"])
def test_the_scale_of_weights_leaves_the_interval_of_an_excess_as_it_is(name) -> None:
    rng = np.random.default_rng(0)
    loss, weight = (rng.random(400) < 0.2).astype(float), rng.exponential(size=400)
    c = rng.normal(size=400) - loss
    interval, expected = (
        interval_of_metric(METRICS[name], replace(validate_samples(c, loss), weight=w))
        for w in (weight / weight.sum(), weight)
    )
    assert [interval.low, interval.high] == pytest.approx([expected.low, expected.high], rel=1e-9)
