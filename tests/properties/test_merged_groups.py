"""Merged groups give the same value as all tie groups, for every metric."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.properties.cases import scored_cases

import abstain as ab
from abstain._foundation.scored import ClassView, MetricValue, Scored, validate_samples
from abstain._foundation.tie_groups import N_SPLIT_AT_ENDS, split_at_ends, with_vertex_at
from abstain.inference.influence import influence_moments
from abstain.metrics import METRICS
from abstain.metrics.intervals import influence_of, interval_of_metric
from abstain.metrics.rank_weights import (
    partial_hyperbolic_weights,
    partial_trapezoid_weights,
    rank_weight_from_vertices,
    rank_weighted_risk,
)

module = sys.modules["abstain.metrics.rank_weights"]

RANKED = [
    m for m in METRICS.values() if m.measurement.rank_based and not m.identity.ignores_confidence
]


def by_groups(s: Scored) -> Scored:
    """Return the same samples, all of whose groups are kept apart."""
    return replace(s, precomputed_groups=s.groups, precomputed_merged_groups=None)


def assert_same(got: MetricValue, expected: MetricValue, name: str) -> None:
    assert got.value == pytest.approx(expected.value, rel=1e-9, abs=1e-12, nan_ok=True), name
    assert (got.n_accepted, got.reason) == (expected.n_accepted, expected.reason), name


@given(s=scored_cases(most=60))
def test_every_rank_metric_needs_merged_groups_only(s: Scored) -> None:
    assert (s.merged_groups.n_samples, s.merged_groups.n_tied) == (
        s.groups.n_samples,
        s.groups.n_tied,
    )
    assert s.merged_groups.is_merged is not None
    full = by_groups(s)
    for metric in RANKED:
        assert_same(metric.compute(s), metric.compute(full), metric.name)


@given(s=scored_cases(most=60))
def test_untied_orders_need_merged_groups_only(s: Scored) -> None:
    for order in (s.with_ties_broken(best=True), s.with_ties_broken(best=False)):
        full = by_groups(replace(order, precomputed_merged_groups=None))
        assert np.array_equal(full.groups.loss, order.loss)
        assert order.merged_groups.n_tied == 0
        for metric in RANKED:
            if not metric.reason_not_applicable(order):
                assert_same(metric.compute(order), metric.compute(full), metric.name)


@given(s=scored_cases(most=60), wanted=st.integers(1, 60))
def test_a_vertex_within_a_merged_group(s: Scored, wanted: int) -> None:
    wanted = min(wanted, s.n_rows)
    groups = with_vertex_at(s.merged_groups, wanted)
    assert (groups.n_samples, groups.n_tied) == (s.n_rows, s.groups.n_tied)
    assert (wanted in groups.cumulative_weight) == (wanted in s.groups.cumulative_weight)
    if wanted in groups.cumulative_weight:
        place, there = (list(x.cumulative_weight).index(wanted) for x in (groups, s.groups))
        assert groups.cumulative_loss[place] == s.groups.cumulative_loss[there]


@given(s=scored_cases(most=60), share=st.floats(0, 1), rule=st.sampled_from(["first", "expected"]))
def test_working_points_within_a_merged_group(s: Scored, share: float, rule: str) -> None:
    groups = s.groups
    risk = ab.generalized_risk(s.confidence, s.loss, coverage=share, rule=rule)
    if rule == "first":
        place = np.flatnonzero(groups.cumulative_weight >= share * s.n_rows * (1 - 1e-12))[0]
        assert risk == groups.cumulative_loss[place] / s.n_rows
    else:
        ends, losses = (
            np.concatenate(([0.0], x)) / s.n_rows
            for x in (groups.cumulative_weight, groups.cumulative_loss)
        )
        assert risk == pytest.approx(np.interp(share, ends, losses), abs=1e-15)


@given(losses=st.lists(st.booleans(), min_size=1, max_size=60), distinct=st.booleans())
def test_a_best_order_has_no_excess_whatever_the_rounding(
    losses: list[bool], distinct: bool
) -> None:
    loss = np.sort(np.array(losses, dtype=float))
    confidence = np.arange(loss.size, 0, -1.0) if distinct else 1 - loss
    for estimator in ("trapezoid", "plugin", "log", "sele", "2sele"):
        assert str(ab.e_aurc(confidence, loss, estimator=estimator)) == "0.0"
    assert str(ab.excess_augrc(confidence, loss)) == "0.0"


def test_one_failure_at_the_wrong_end_is_an_excess() -> None:
    loss = np.zeros(1_000_000)
    loss[-2] = 1.0
    confidence = np.arange(loss.size, 0, -1.0)
    assert ab.e_aurc(confidence, loss) > 0
    assert ab.excess_augrc(confidence, loss) == pytest.approx(1e-12, rel=1e-3)


@pytest.mark.parametrize("kind", ["distinct", "tied", "saturated"])
def test_large_samples_to_the_last_digits(kind: str) -> None:
    rng = np.random.default_rng(1)
    confidence, loss = rng.random(300_000), rng.random(300_000) < 0.05
    if kind == "tied":
        confidence = confidence.astype(np.float32)
    elif kind == "saturated":
        confidence[rng.random(loss.size) < 0.55] = 1.0
    s = validate_samples(confidence, loss)
    assert s.merged_groups.count.size < 0.5 * s.n_rows
    full = by_groups(s)
    for metric in RANKED:
        if not metric.reason_not_applicable(s):
            assert_same(metric.compute(s), metric.compute(full), metric.name)
            assert metric.compute(s).value == pytest.approx(metric.compute(full).value, rel=1e-11)


def large_case(kind: str) -> Scored:
    """Return more samples than are kept apart at both ends, so that merged groups remain."""
    rng = np.random.default_rng(7)
    confidence = rng.beta(5, 1, 30_000)
    loss = (rng.random(confidence.size) > confidence**0.3).astype(float)
    if kind == "rounded":
        confidence = confidence.round(4)
    if kind == "half of them wrong":
        loss = (rng.random(loss.size) < 0.5).astype(float)
    if kind == "wrong at the top":
        loss[np.argsort(confidence)[-5:]] = 1.0
    return validate_samples(confidence, loss)


@pytest.mark.parametrize("kind", ["distinct", "rounded", "half of them wrong", "wrong at the top"])
def test_influences_of_few_rows_equal_those_of_all_samples(kind: str) -> None:
    s = large_case(kind)
    assert s.merged_rows.n_rows < s.split_rows.n_rows < s.group_rows.n_rows
    assert (
        s.merged_rows.total_weight
        == s.split_rows.total_weight
        == s.group_rows.total_weight
        == s.n_rows
    )
    for metric in filter(
        lambda m: m.measurement.influence is not None and not m.reason_not_applicable(s), RANKED
    ):
        rows = metric.measurement.influence_rows(s)
        assert rows in (s.split_rows, s.merged_rows), metric.name
        few = influence_moments(influence_of(metric, rows), repeats=rows.row_counts)
        every = influence_moments(influence_of(metric, s))
        assert (few.n_samples, few.n_units) == (every.n_samples, every.n_units)
        assert few.standard_error == pytest.approx(every.standard_error, rel=1e-10), metric.name
        assert few.sum_of_fourth_powers == pytest.approx(every.sum_of_fourth_powers, rel=1e-9), (
            metric.name
        )


@pytest.mark.parametrize("kind", ["distinct", "wrong at the top"])
def test_intervals_of_few_rows_equal_those_of_all_groups(kind: str) -> None:
    s = large_case(kind)
    full = by_groups(s)
    for metric in filter(lambda m: not m.reason_not_applicable(s), RANKED):
        few, every = interval_of_metric(metric, s), interval_of_metric(metric, full)
        assert (few.method, few.note) == (every.method, every.note), metric.name
        ends = (every.low, every.high, every.standard_error)
        result = (few.low, few.high, few.standard_error)
        assert result == pytest.approx(ends, rel=1e-9, nan_ok=True), metric.name


@given(s=scored_cases(most=60))
def test_of_few_samples_groups_say_what_split_groups_do(s: Scored) -> None:
    # Without merged groups nothing has to be cut, which is most of the work of a small sample.
    assert s.split_rows is s.group_rows
    apart = replace(s, precomputed_groups=split_at_ends(s.merged_groups))
    for metric in filter(
        lambda m: m.measurement.influence is not None and not m.reason_not_applicable(s), RANKED
    ):
        if metric.compute(s).reason:
            continue
        rows, cut = metric.measurement.influence_rows(s), metric.measurement.influence_rows(apart)
        few = influence_moments(influence_of(metric, rows), repeats=rows.row_counts)
        every = influence_moments(influence_of(metric, cut), repeats=cut.row_counts)
        same = pytest.approx(every.standard_error, rel=1e-9, abs=1e-12, nan_ok=True)
        assert few.standard_error == same, metric.name


def test_groups_stand_for_few_samples_alone() -> None:
    for more in (0, 1):
        n = 2 * N_SPLIT_AT_ENDS + more
        s = validate_samples(np.arange(n, 0, -1.0), np.arange(n) % 50 == 0)
        assert (s.split_rows is s.group_rows) == (more == 0)


@given(s=scored_cases(most=60))
def test_each_row_has_the_influence_of_the_samples_it_stands_for(s: Scored) -> None:
    rows = s.group_rows
    place = {(c, x): i for i, (c, x) in enumerate(zip(rows.confidence, rows.loss, strict=True))}
    own = [place[c, x] for c, x in zip(s.confidence, s.loss, strict=True)]
    assert np.array_equal(np.bincount(own, minlength=rows.n_rows), rows.row_counts)
    for metric in filter(
        lambda m: m.measurement.influence is not None and not m.reason_not_applicable(rows), RANKED
    ):
        if metric.compute(s).reason:
            continue
        few, every = influence_of(metric, rows), influence_of(metric, s)
        assert few[own] == pytest.approx(every, rel=1e-9, abs=1e-12), metric.name


def test_an_influence_that_does_not_say_so_gets_all_samples() -> None:
    s = large_case("rounded")
    known = METRICS["augrc"]
    measurement = replace(known.measurement, influence=lambda s: s.loss - s.loss.mean())
    own = replace(known, measurement=measurement)
    assert own.measurement.influence_rows(s) is s
    interval = interval_of_metric(own, s)
    assert interval.standard_error == pytest.approx(s.loss.std(ddof=1) / np.sqrt(s.n_rows))


@given(s=scored_cases(most=60), seed=st.integers(0, 99))
def test_rows_of_a_class_have_the_influence_of_their_samples(s: Scored, seed: int) -> None:
    labels = np.random.default_rng(seed).integers(-1, 3, s.n_rows)
    s = replace(s, class_view=ClassView(labels, labels, (0, 1, 2)))
    rows = s.class_rows
    kept = zip(rows.confidence, rows.loss, rows.class_view.labels, strict=True)
    place = {row: i for i, row in enumerate(kept)}
    own = [place[row] for row in zip(s.confidence, s.loss, labels, strict=True)]
    assert np.array_equal(np.bincount(own, minlength=rows.n_rows), rows.row_counts)
    for metric in (METRICS["aurc_ba"], METRICS["augrc_ba"]):
        assert metric.measurement.influence_rows(s) is rows
        few, every = influence_of(metric, rows), influence_of(metric, s)
        assert few[own] == pytest.approx(every, rel=1e-9, abs=1e-12), metric.name


@given(
    s=scored_cases(most=60),
    between=st.tuples(st.integers(0, 120), st.integers(0, 120)).filter(lambda x: x[0] < x[1]),
    interpolation=st.sampled_from(["linear", "hyperbolic"]),
)
def test_areas_between_two_coverages_need_merged_groups_only(
    s: Scored, between: tuple[int, int], interpolation: str
) -> None:
    low, high = (x / 120 for x in between)
    weights = partial_trapezoid_weights if interpolation == "linear" else partial_hyperbolic_weights
    expected = rank_weighted_risk(s.groups, rank_weight_from_vertices(weights(low, high)))
    got = ab.partial_aurc(s.confidence, s.loss, low=low, high=high, interpolation=interpolation)
    assert got == pytest.approx(expected, rel=1e-12, abs=1e-14)


def test_numbers_of_one_score_share_what_they_are_made_of(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    s = validate_samples(rng.random(20_000).astype(np.float32).round(2), rng.random(20_000) < 0.05)
    calls = []
    real = module.trapezoid_areas
    monkeypatch.setattr(module, "trapezoid_areas", lambda *given: calls.append(0) or real(*given))
    for metric in RANKED:
        if not metric.reason_not_applicable(s):
            metric.compute(s)
    assert len(calls) == 1
    assert "groups" not in s.__dict__
