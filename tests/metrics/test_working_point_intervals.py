"""Intervals and differences at working points: brute force, what must not matter, simulation."""

from dataclasses import replace
from itertools import pairwise
from math import log

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import norm

import abstain as ab
from abstain._foundation.scored import ClassView, Scored
from abstain.evaluation.intervals import interval_of_replicates
from abstain.inference.influence import AMBIGUOUS_THRESHOLD_NOTE, DISTANCE_FACTOR
from abstain.metrics import metric_named
from abstain.metrics.intervals import (
    difference_of_metric,
    interval_of_metric,
    metric_difference,
    metric_interval,
)
from abstain.metrics.working_points import quantities

RISK = metric_named("selective_risk@80cov")


def levels(rng, n, masses, risks):
    """One score of a few levels, the most confident first, and its errors."""
    place = rng.choice(len(masses), n, p=masses)
    return -place.astype(float), (rng.random(n) < np.array(risks)[place]).astype(float)


def ten_levels(rng, n, rate, cuts, scores=2):
    """Equally good scores of ten levels of the same errors."""
    loss = rng.random(n) < rate
    noise = np.sqrt(0.6) * rng.standard_normal(n) + np.sqrt(0.4) * rng.standard_normal((scores, n))
    result = np.searchsorted(cuts, noise + np.where(loss, 0, 1.6), side="right")
    return [Scored(c.astype(float), loss.astype(float)) for c in result]


def cuts_at(rate, boundary):
    """Cuts of which one keeps just this coverage, and the risk there."""
    grid = np.linspace(-8, 9, 400_001)
    covered = rate * norm.sf(grid) + (1 - rate) * norm.sf(grid - 1.6)
    shares = [
        *(boundary * np.arange(1, 8) / 7),
        *(boundary + (1 - boundary) * np.array([1, 2]) / 3),
    ]
    cut = np.interp(shares, covered[::-1], grid[::-1])
    return np.sort(cut), float(rate * norm.sf(cut[6]) / boundary)


# ------------------------------------------------------------------------------ coverage at a risk
def departure(x: float, m: float, risk: float) -> float:
    """The signed root of the deviance of a count, half an event nearer, written out."""
    expected = m * risk
    y = max(x - 0.5, expected) if x > expected else min(x + 0.5, expected)
    terms = [a * log(a / b) if a else 0.0 for a, b in ((y, expected), (m - y, m - expected))]
    return float(np.sign(y - expected) * np.sqrt(2 * max(sum(terms), 0)))


def by_definition(confidence, loss, risk, level=0.95):
    """Test every coverage of a fine grid at every threshold."""
    n, cuts = confidence.size, np.unique(confidence)[::-1]
    kept = [0] + [int((confidence >= c).sum()) for c in cuts]
    wrong = [0.0] + [float(loss[confidence >= c].sum()) for c in cuts]
    z = [0.0] + [departure(x, m, risk) for x, m in zip(wrong[1:], kept[1:], strict=True)]
    best = max(k for k in range(len(kept)) if wrong[k] <= risk * kept[k] + 1e-9)
    away = []
    for k in range(len(kept)):
        # Its own risk is not above, those of all larger coverages are; beyond the best, the
        # farthest so far.
        own = max([0.0, *z[best + 1 : k + 1]]) if k > best else max(0.0, z[k])
        away.append(np.hypot(own, max([0.0, *(-later for later in z[k + 1 :])])))
    near = [kept[k] / n for k in range(len(kept)) if away[k] <= 2]
    sizes = [(b - a) / n for a, b in pairwise(kept) if a / n < max(near) and b / n > min(near)]
    stretch = DISTANCE_FACTOR if any(size > (max(near) - min(near)) / 8 for size in sizes) else 1.0
    square = ndtri((1 + level) / 2) ** 2
    grid, held = np.linspace(0, 1, 20_001), np.zeros(20_001, dtype=bool)
    for k in range(len(kept)):
        left = square * (stretch if away[k] > 0 else 1.0) - away[k] ** 2
        if left < 0:
            continue
        share = kept[k] / n
        if share in {0.0, 1.0}:
            held[int(share) * 20_000] = True
            continue
        # The score test of a share, at each coverage.
        spread = np.maximum(grid * (1 - grid) / n, 1e-15)
        held |= (share - grid) ** 2 / spread <= left
    return grid[held].min(), grid[held].max()


@pytest.mark.parametrize("risk", [1, 5, 20, 45])
@pytest.mark.parametrize("ties", [1, 8, None])
def test_coverage_at_a_risk_inverts_the_test_at_each_coverage(risk, ties) -> None:
    rng = np.random.default_rng(risk)
    for n in (7, 60, 300):
        loss = (rng.random(n) < 0.3).astype(float)
        c = rng.normal(size=n) - 2 * loss
        c = c if ties is None else np.round(c * ties / 4)
        interval = metric_interval(c, loss, metric=f"coverage@{risk}risk")
        expected = by_definition(c, loss, risk / 100)
        assert [interval.low, interval.high] == pytest.approx(expected, abs=2e-4)


def test_copies_in_one_cluster_say_nothing_more_and_weights_have_no_scale() -> None:
    rng = np.random.default_rng(2)
    c = np.round(rng.normal(size=200), 1)
    loss = (rng.random(200) < 0.3 * (c < 0.5)) * rng.uniform(0.5, 1.5, 200)
    for metric in ("coverage@10risk", "selective_risk@80cov"):
        once = metric_interval(c, loss, metric=metric)
        thrice = metric_interval(
            np.tile(c, 3), np.tile(loss, 3), metric=metric, group=np.tile(np.arange(200), 3)
        )
        weighted = metric_interval(c, loss, metric=metric, weight=np.full(200, 0.25))
        single = metric_interval(c, loss, metric=metric, group=np.arange(200))
        for other in (thrice, weighted, single):
            assert [other.low, other.high] == pytest.approx([once.low, once.high], abs=0.004)


def test_the_unit_of_the_loss_does_not_matter() -> None:
    rng = np.random.default_rng(3)
    c, loss = levels(rng, 500, [0.5, 0.2, 0.2, 0.1], [0.02, 0.1, 0.2, 0.5])
    interval = metric_interval(c, loss, metric="coverage@8risk")
    ten = metric_interval(c, 10 * loss, metric="coverage@80risk")
    assert [interval.low, interval.high] == pytest.approx([ten.low, ten.high], abs=1e-12)


def test_all_and_nothing_are_in_the_interval_where_they_may_be_the_truth() -> None:
    rng = np.random.default_rng(4)
    right = metric_interval(rng.random(2000), np.zeros(2000), metric="coverage@5risk")
    assert (right.low, right.high) == (1.0, 1.0)
    assert "with certainty" in right.note
    few = metric_interval(rng.random(20), np.zeros(20), metric="coverage@5risk")
    assert (few.low, few.high) == (0.0, 1.0)
    wrong = metric_interval(rng.random(500), np.ones(500), metric="coverage@5risk")
    assert (wrong.low, wrong.high > 0) == (0.0, True)
    assert wrong.high < 0.05
    # The bootstrap sees no spread there, and falls back on it.
    s = Scored(rng.random(50), np.zeros(50))
    result = interval_of_replicates(
        metric_named("coverage@10risk"), np.ones(100), s, cluster=None, level=0.95
    )
    assert (result.low, result.high) == (1.0, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("risks", "risk", "truth"),
    [
        # The risk of the first level is just the one asked for: either side is found by chance.
        ([0.1, 0.3, 0.5], 10, 0.5),
        ([0.02, 0.1, 0.5], 10, 0.8),
        ([0.05, 0.1, 0.2], 3, 0.0),
        ([0.02, 0.05, 0.1], 20, 1.0),
    ],
)
def test_intervals_of_the_coverage_at_a_risk_contain_the_true_value(risks, risk, truth) -> None:
    rng, held = np.random.default_rng(5), 0
    for _ in range(1000):
        interval = metric_interval(
            *levels(rng, 400, [0.5, 0.3, 0.2], risks), metric=f"coverage@{risk}risk"
        )
        held += interval.low <= truth + 1e-9 and truth - 1e-9 <= interval.high
    # Monte-Carlo error 0.7 %.
    assert held / 1000 >= 0.935


# ------------------------------------------------------------------------------ risk at a coverage
def test_many_coverages_at_once() -> None:
    rng = np.random.default_rng(6)
    for _ in range(200):
        n = int(rng.integers(1, 40))
        c = rng.integers(0, rng.integers(1, 30), n).astype(float)
        groups = Scored(c, (rng.random(n) < 0.3).astype(float)).groups
        asked = np.concatenate(
            (rng.random(5), [0, 0.5, 1], groups.cumulative_weight / groups.total_weight)
        )
        one_by_one = [quantities.vertex_at_coverage(groups, float(share)) for share in asked]
        assert quantities.vertices_at_coverages(groups, asked).tolist() == one_by_one


def test_where_a_group_ends_at_the_coverage_the_interval_holds_both_sides() -> None:
    rng = np.random.default_rng(7)
    c, loss = np.repeat([3.0, 2.0, 1.0], [1605, 200, 195]), np.zeros(2000)
    loss[rng.permutation(1605)[:80]] = 1
    loss[1605:1805] = rng.random(200) < 0.5
    s = Scored(c, loss)
    sides = [loss[:1605].mean(), loss[:1805].mean()]
    interval = interval_of_metric(RISK, s)
    assert RISK.compute(s).value == sides[0]
    assert interval.low < sides[0] < sides[1] < interval.high
    assert AMBIGUOUS_THRESHOLD_NOTE in interval.note
    # Ten standard errors away it is the mean of the accepted, and nothing else.
    far = interval_of_metric(metric_named("selective_risk@70cov"), s)
    assert far.note == ""
    assert far.high < sides[1]
    assert metric_named("selective_risk@70cov").measurement.plausible_thresholds(s, None) is None


def test_continuous_scores_leave_nothing_open() -> None:
    rng = np.random.default_rng(8)
    for n in (200, 2000):
        loss = (rng.random(n) < 0.2).astype(float)
        s = Scored(rng.normal(size=n) - loss, loss)
        for name in ("selective_risk@80cov", "generalized_risk@50cov", "coverage@10risk"):
            assert metric_named(name).measurement.plausible_thresholds(s, None) is None


@pytest.mark.parametrize(
    "name", ["selective_risk@80cov", "generalized_risk@80cov", "coverage@20risk"]
)
def test_test_and_intervals_of_a_difference_agree_among_ties(name) -> None:
    rng, metric, noted = np.random.default_rng(9), metric_named(name), 0
    cuts, _ = cuts_at(0.3, 0.8)
    for _ in range(150):
        first, second = ten_levels(rng, 600, 0.3, cuts)
        # Some are told apart.
        if rng.random() < 0.5:
            second = replace(second, confidence=rng.permutation(second.confidence))
        difference = difference_of_metric(metric, (first, second))
        assert (difference.low <= 0 <= difference.high) == (difference.p_value >= 0.05)
        if not np.isnan(difference.ratio):
            assert (difference.ratio_low <= 1 <= difference.ratio_high) == (
                difference.p_value >= 0.05
            )
        assert difference.low <= difference.value <= difference.high
        noted += AMBIGUOUS_THRESHOLD_NOTE in difference.note
    assert noted > 30


@pytest.mark.slow
@pytest.mark.parametrize("n", [200, 2000])
@pytest.mark.parametrize("boundary", [0.8, 0.82])
def test_risks_at_a_coverage_hold_next_to_the_end_of_a_group(n, boundary) -> None:
    rng, rate, draws = np.random.default_rng(10), 0.3, 400
    cuts, truth = cuts_at(rate, boundary)
    held = rejected = 0
    for _ in range(draws):
        pair = ten_levels(rng, n, rate, cuts)
        interval = interval_of_metric(RISK, pair[0])
        held += interval.low <= truth <= interval.high
        rejected += difference_of_metric(RISK, tuple(pair)).p_value < 0.05
    # Monte-Carlo error 1 %; with the slope of the influence function 64 % were held and 25 %
    # rejected where a group of 2000 samples ends at the coverage.
    assert held / draws >= 0.92
    assert rejected / draws <= 0.08


def test_compare_knows_what_is_left_open() -> None:
    rng = np.random.default_rng(11)
    cuts, _ = cuts_at(0.3, 0.8)
    first, second = ten_levels(rng, 1000, 0.3, cuts)
    predictions = ab.Predictions(
        confidence={"one": first.confidence, "two": second.confidence}, loss=first.loss
    )
    for name in ("selective_risk@80cov", "coverage@20risk"):
        pair = ab.compare(predictions, metrics=[name], bands=False).pairs[0]
        alone = metric_difference(first.confidence, second.confidence, first.loss, metric=name)
        assert AMBIGUOUS_THRESHOLD_NOTE in pair.note
        for field in ("low", "high", "p_value", "ratio_low", "ratio_high"):
            assert getattr(pair, field) == pytest.approx(getattr(alone, field), rel=1e-9)


def test_means_over_runs_know_it_too() -> None:
    rng = np.random.default_rng(12)
    cuts, _ = cuts_at(0.3, 0.8)
    runs = [ten_levels(rng, 500, 0.3, cuts) for _ in range(2)]
    parts = {
        (("seed", str(r)),): ab.Predictions(
            confidence={"one": first.confidence, "two": second.confidence}, loss=first.loss
        )
        for r, (first, second) in enumerate(runs)
    }
    names = ["selective_risk@80cov", "coverage@60risk"]
    comparison = ab.compare(parts, metrics=names, runs="seed", bands=False)
    means = [e for e in comparison.estimates if e.run == "mean"]
    assert {
        e.note.startswith(AMBIGUOUS_THRESHOLD_NOTE)
        for e in means
        if e.metric.startswith("selective")
    } == {True}
    for e in means:
        assert e.low <= e.value <= e.high
    # The risk of all is 30 %: every sample may be kept in both runs.
    assert {(e.low, e.high) for e in means if e.metric.startswith("coverage")} == {(1.0, 1.0)}
    assert AMBIGUOUS_THRESHOLD_NOTE in comparison.pairs[0].note


# -------------------------------------------------------------------------------------- qualities
@pytest.mark.parametrize("kind", [quantities.CLASSIFICATION_QUALITY, quantities.REJECTION_QUALITY])
def test_all_vertices_at_once_are_those_one_by_one(kind):
    rng = np.random.default_rng(5)
    for weight in (None, rng.random(60)):
        s = Scored(rng.integers(20, size=60) / 20, (rng.random(60) < 0.3).astype(float), weight)
        values = kind.values_at_all_vertices(s.groups)
        alone = [kind.value_at_vertex(s.groups, i).value for i in range(values.size)]
        assert np.allclose(values, alone, rtol=1e-12, equal_nan=True)


def test_a_flat_risk_leaves_every_threshold_above_the_coverage_open():
    # One failure among the 95 % most confident: the best threshold may be any from 80 to 95 %.
    confidence = np.arange(1000.0)
    s = Scored(confidence, ((confidence < 50) | (confidence == 999)).astype(float))
    left = metric_named("classification_quality@80cov").measurement.plausible_thresholds(s, None)
    assert s.groups.cumulative_weight[left.vertex] == 950
    free = left.alternatives[left.distances < 0.5]
    assert s.groups.cumulative_weight[free].min() <= 800
    assert s.groups.cumulative_weight[free].max() == 950
    interval = interval_of_metric(metric_named("classification_quality@80cov"), s, level=0.95)
    assert interval.low < 0.85 < interval.high


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "apart"), [(0.05, 3.2), (0.05, 1.6), (0.3, 1.6)])
def test_qualities_hold_where_the_risk_is_flat(rate, apart):
    rng, n, covered = np.random.default_rng(2), 300, 0
    grid = np.linspace(-8, 12, 200_001)
    right, wrong = (1 - rate) * norm.sf(grid - apart), rate * norm.sf(grid)
    at = int(np.argmin(np.abs(right + wrong - 0.8)))
    truth = right[at] + rate - wrong[at]
    metric = metric_named("classification_quality@80cov")
    for _ in range(200):
        loss = (rng.random(n) < rate).astype(float)
        interval = interval_of_metric(
            metric, Scored(rng.standard_normal(n) + apart * (1 - loss), loss), level=0.95
        )
        covered += bool(np.isnan(interval.low) or interval.low <= truth <= interval.high)
    assert covered >= 0.92 * 200


def short_of_the_coverage(rng, n, end):
    """Scores of six levels, one of which ends at `end`; the risk rises steeply behind it."""
    masses = np.array([0.2, 0.2, 0.2, end - 0.6, 0.93 - end, 0.07])
    risks = np.array([0.02, 0.05, 0.1, 0.15, 0.25, 0.8])
    accepted, wrong = np.cumsum(masses), np.cumsum(masses * risks)
    # Of the population the first five levels keep 80 %, at the least risk.
    right_out, wrong_out = (1 - accepted[4]) - (wrong[5] - wrong[4]), wrong[5] - wrong[4]
    truths = {
        "classification_quality@80cov": accepted[4] - wrong[4] + wrong_out,
        "rejection_quality@80cov": wrong_out / right_out * (1 - wrong[5]) / wrong[5],
    }
    return Scored(*levels(rng, n, masses, risks)), truths


def test_a_level_that_ends_beyond_the_coverage_by_probability_leaves_the_next_open():
    # 801 of 1000 are accepted; the next level ends at 930, where the risk is clearly higher.
    place = np.repeat([0, 1, 2], [801, 129, 70])
    s = Scored(-place.astype(float), (np.arange(1000) % 2 * (place > 0)).astype(float))
    left = metric_named("classification_quality@80cov").measurement.plausible_thresholds(s, None)
    assert s.groups.cumulative_weight[left.vertex] == 801
    assert left.distances[s.groups.cumulative_weight[left.alternatives] == 930].min() < 0.5


@pytest.mark.parametrize("name", ["classification_quality@80cov", "rejection_quality@80cov"])
def test_rows_without_weight_do_not_change_the_intervals_of_qualities(name):
    rng = np.random.default_rng(0)
    confidence, loss = rng.normal(size=450), (rng.random(450) < 0.2).astype(float)
    weight = np.append(rng.exponential(size=400), np.zeros(50))
    loss[400:] = 1.0
    interval, expected = (
        interval_of_metric(metric_named(name), Scored(confidence[:n], loss[:n], weight[:n]))
        for n in (450, 400)
    )
    assert [interval.low, interval.high] == pytest.approx([expected.low, expected.high], rel=1e-12)


@pytest.mark.slow
def test_qualities_hold_where_a_level_ends_just_short_of_the_coverage():
    """When only the levels before the coverage were left open, 69% held the truth of both."""
    rng, draws = np.random.default_rng(1), 300
    held: dict[str, int] = {}
    for _ in range(draws):
        s, truths = short_of_the_coverage(rng, 500, end=0.79)
        for name, truth in truths.items():
            interval = interval_of_metric(metric_named(name), s)
            held[name] = held.get(name, 0) + bool(interval.low <= truth <= interval.high)
    # Monte-Carlo error 1.1%.
    assert min(held.values()) / draws >= 0.93


@pytest.mark.parametrize(("n", "accepted"), [(5, 1), (10, 1), (40, 4)])
def test_where_none_of_the_accepted_fails_the_limit_equals_that_of_so_many_successes(n, accepted):
    # So many right in a row have a chance of 2.5 % where the risk is the limit; one sample is the
    # least that is accepted.
    confidence, wrong = np.linspace(1, 0, n), np.arange(n) >= max(1, n // 2)
    interval = metric_interval(confidence, wrong, metric="selective_risk@10cov")
    assert "no accepted sample fails" in interval.note
    assert interval.high == pytest.approx(1 - 0.025 ** (1 / accepted), rel=1e-12)


# ----------------------------------------------------------------------- weights, ends of the range
def heavy_failures(rng, n, rate):
    """Two equally good scores whose failures weigh five times as much; `rate` is weighted."""
    loss = (rng.random(n) < rate / 5 / (rate / 5 + 1 - rate)).astype(float)
    weight = np.where(loss > 0, 5.0, 1.0) * rng.uniform(0.5, 1.5, n)
    noise = np.sqrt(0.6) * rng.standard_normal(n) + np.sqrt(0.4) * rng.standard_normal((2, n))
    view = ClassView(np.zeros(n, int), loss.astype(int), (0, 1))
    return [Scored(score + 1.6 * (1 - loss), loss, weight, class_view=view) for score in noise]


@pytest.mark.slow
@pytest.mark.parametrize("n", [500, 4000])
def test_working_points_hold_where_failures_weigh_more(n) -> None:
    """By Kish's number of samples 72% (n = 4000) to 87% of the intervals held the truth."""
    rng, draws, rate = np.random.default_rng(14), 250, 0.2
    grid = np.linspace(-8, 9, 200_001)
    covered = rate * norm.sf(grid) + (1 - rate) * norm.sf(grid - 1.6)
    risk = rate * norm.sf(grid) / covered
    truths = {
        "coverage@5risk": float(np.interp(-0.05, -risk, covered)),
        "coverage@10risk": float(np.interp(-0.1, -risk, covered)),
        "selective_risk@50cov": float(np.interp(-0.5, -covered, risk)),
        "generalized_risk@80cov": 0.8 * float(np.interp(-0.8, -covered, risk)),
        "accuracy": 1 - rate,
    }
    held, rejected = dict.fromkeys(truths, 0), 0
    for _ in range(draws):
        pair = heavy_failures(rng, n, rate)
        for name, truth in truths.items():
            interval = interval_of_metric(metric_named(name), pair[0])
            held[name] += interval.low <= truth <= interval.high
        rejected += (
            difference_of_metric(metric_named("coverage@10risk"), tuple(pair)).p_value < 0.05
        )
    # Monte-Carlo error 1.4%.
    assert min(held.values()) / draws >= 0.915
    assert rejected / draws <= 0.09


def test_equal_weights_leave_the_intervals_of_working_points_as_they_are() -> None:
    rng = np.random.default_rng(15)
    loss = (rng.random(300) < 0.2).astype(float)
    view = ClassView(np.zeros(300, int), loss.astype(int), (0, 1))
    plain = Scored(rng.normal(size=300) - loss, loss, class_view=view)
    weighted = replace(plain, weight=np.full(300, 0.25))
    for name in ("coverage@10risk", "selective_risk@80cov", "accuracy"):
        interval, other = (interval_of_metric(metric_named(name), s) for s in (plain, weighted))
        assert [other.low, other.high] == pytest.approx([interval.low, interval.high], rel=1e-9)


@pytest.mark.slow
def test_differences_of_coverages_near_one_contain_the_true_value() -> None:
    """With one slope 82.8% held the truth: where the second is 0.016 lower, most were too short."""
    rng, draws, n, rate, risk = np.random.default_rng(16), 400, 400, 0.2, 0.18
    grid = np.linspace(-8, 9, 200_001)
    truth = []
    for apart in (1.6, 1.0):
        covered = rate * norm.sf(grid) + (1 - rate) * norm.sf(grid - apart)
        truth.append(float(np.interp(-risk, -rate * norm.sf(grid) / covered, covered)))
    held = 0
    for _ in range(draws):
        loss = (rng.random(n) < rate).astype(float)
        noise = np.sqrt(0.6) * rng.standard_normal(n) + np.sqrt(0.4) * rng.standard_normal((2, n))
        pair = [Scored(noise[i] - apart * loss, loss) for i, apart in enumerate((1.6, 1.0))]
        difference = difference_of_metric(metric_named("coverage@18risk"), tuple(pair))
        held += difference.low <= truth[0] - truth[1] <= difference.high
    # Monte-Carlo error 1.1%.
    assert held / draws >= 0.93


def test_two_scores_that_may_keep_everything_have_an_interval_of_their_difference() -> None:
    rng = np.random.default_rng(17)
    loss = (rng.random(400) < 0.18).astype(float)
    first, second = (rng.standard_normal(400) - loss for _ in range(2))
    difference = metric_difference(first, second, loss, metric="coverage@20risk")
    assert difference.value == 0
    assert difference.low < 0 < difference.high
    assert difference.p_value == pytest.approx(1)
    assert AMBIGUOUS_THRESHOLD_NOTE in difference.note
