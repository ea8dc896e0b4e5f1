"""Property tests of every registered metric."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.properties.cases import in_order, make, rows, scored_cases

from abstain._foundation.scored import Scored
from abstain.inference.influence import AMBIGUOUS_THRESHOLD_NOTE
from abstain.metrics import METRICS, Metric, Need, metric_named
from abstain.metrics.catalogue import FAMILIES
from abstain.metrics.intervals import interval_of_metric

_MADE_BY_NAME = (
    "selective_risk@37cov",
    "coverage@25risk",
    "cwsa@0.25",
    "cwsa_plus@0.6",
    "partial_aurc@20.3-55.7cov",
    "partial_augrc@50.3-80.7cov",
    "selective_accuracy@0.4",
    "oc_accuracy@37review",
    "oc_auc@37review",
    "oc_ap@37review",
    "scod_aurc@0.7cost",
    "scod_augrc@0.3cost",
    "scod_risk@62cov-0.7cost",
)
ALL = [*METRICS.values(), *(metric_named(name) for name in _MADE_BY_NAME)]

# Metrics that need samples of unknown classes are undefined without such samples; the last test of
# this module repeats all property tests with them.
OPEN_SET = [metric for metric in ALL if Need.UNKNOWN_CLASSES in metric.measurement.needs]

# Their value jumps from one tie group to the next; also those of each family that takes numbers.
_AT_COVERAGE = [
    metric
    for metric in (*ALL, *(metric_named(family.example_name) for family in FAMILIES))
    if metric.measurement.at_coverage is not None
]

# A case is drawn once for the whole catalogue: drawing costs ten times what a metric does.


def value(metric: Metric, s: Scored) -> float:
    missing = metric.measurement.needs if metric.reason_not_applicable(s) else frozenset()
    assert not missing or Need.UNKNOWN_CLASSES in missing, metric.name
    measured = metric.compute(s)
    says_why = np.isnan(measured.value) == bool(measured.reason)
    assert says_why, f"{metric.name}: NaN if and only if a reason"
    return measured.value


def same(a: float, b: float) -> bool:
    return a == b or (np.isnan(a) and np.isnan(b)) or abs(a - b) <= 1e-12 * max(1, abs(a))


@given(s=scored_cases(), data=st.data())
def test_row_order_does_not_matter(s: Scored, data: st.DataObject) -> None:
    shuffled = rows(s, np.array(data.draw(st.permutations(range(s.n_rows)))))
    for metric in ALL:
        assert same(value(metric, s), value(metric, shuffled)), metric.name


@given(s=scored_cases(), data=st.data())
def test_only_the_order_of_the_confidences_matters(s: Scored, data: st.DataObject) -> None:
    distinct, place = np.unique(s.confidence, return_inverse=True)
    steps = st.lists(st.integers(1, 1000), min_size=distinct.size, max_size=distinct.size)
    moved = replace(s, confidence=(np.cumsum(data.draw(steps)) - 500.0)[place])
    for metric in filter(lambda m: m.measurement.rank_based, ALL):
        assert same(value(metric, s), value(metric, moved)), metric.name


@given(s=scored_cases(), data=st.data())
def test_integer_weights_are_repetitions(s: Scored, data: st.DataObject) -> None:
    times = np.array(data.draw(st.lists(st.integers(0, 3), min_size=s.n_rows, max_size=s.n_rows)))
    assume(times.any())
    weighted = replace(s, weight=times.astype(float))
    repeated = rows(s, np.repeat(np.arange(s.n_rows), times))
    for metric in ALL:
        assert same(value(metric, weighted), value(metric, repeated)), metric.name


@given(s=scored_cases())
def test_unit_weights_change_nothing(s: Scored) -> None:
    weighted = replace(s, weight=np.ones(s.n_rows))
    for metric in ALL:
        assert same(value(metric, s), value(metric, weighted)), metric.name
        assert metric.compute(s).n_accepted == metric.compute(weighted).n_accepted, metric.name


@given(s=scored_cases())
def test_the_declared_range_holds(s: Scored) -> None:
    for metric in ALL:
        v = value(metric, s)
        assert (
            np.isnan(v) or metric.measurement.low - 1e-12 <= v <= metric.measurement.high + 1e-12
        ), metric.name


@given(s=scored_cases(ties=False), tied=scored_cases())
def test_no_order_beats_the_oracle_or_falls_below_the_anti_oracle(s: Scored, tied: Scored) -> None:
    for metric in filter(lambda m: m.measurement.monotone, ALL):
        _between_the_extremes(metric, s)
        if metric.identity.family == "area":
            # Average precision steps over a tie group, so it can gain from a worse order there.
            _between_the_extremes(metric, tied)


def _between_the_extremes(metric: Metric, s: Scored) -> None:
    best, worst = value(metric, in_order(s, best=True)), value(metric, in_order(s, best=False))
    v = value(metric, s)
    low, high = (best, worst) if metric.lower_is_better else (worst, best)
    assert np.isnan(v) or low - 1e-12 <= v <= high + 1e-12, metric.name


@given(s=scored_cases(most=6))
def test_duplication_leaves_the_value_or_its_limit(s: Scored) -> None:
    repeated = {times: rows(s, np.tile(np.arange(s.n_rows), times)) for times in (3, 64, 128)}
    for metric in ALL:
        assert metric.measurement.duplication in {"exact", "limit"}, metric.name
        if metric.measurement.duplication == "exact":
            assert same(value(metric, s), value(metric, repeated[3])), metric.name
        else:
            near, far = value(metric, repeated[64]), value(metric, repeated[128])
            assert np.isnan(near) == np.isnan(far), metric.name
            assert np.isnan(near) or abs(near - far) <= 0.02 * max(1.0, abs(near)), metric.name


@given(s=scored_cases(unknown=True), data=st.data())
def test_properties_hold_with_samples_of_no_known_class(s: Scored, data: st.DataObject) -> None:
    shuffled = rows(s, np.array(data.draw(st.permutations(range(s.n_rows)))))
    times = np.array(data.draw(st.lists(st.integers(0, 3), min_size=s.n_rows, max_size=s.n_rows)))
    assume(times.any())
    weighted, repeated = (
        replace(s, weight=times.astype(float)),
        rows(s, np.repeat(range(s.n_rows), times)),
    )
    for metric in OPEN_SET:
        v = value(metric, s)
        assert (
            np.isnan(v) or metric.measurement.low - 1e-12 <= v <= metric.measurement.high + 1e-12
        ), metric.name
        assert same(v, value(metric, shuffled)), metric.name
        assert same(v, value(metric, replace(s, confidence=4 * s.confidence))), metric.name
        assert same(value(metric, weighted), value(metric, repeated)), metric.name
        if metric.measurement.duplication == "exact":
            assert same(v, value(metric, rows(s, np.tile(np.arange(s.n_rows), 3)))), metric.name


@given(s=scored_cases())
def test_inputs_stay_untouched(s: Scored) -> None:
    s = replace(s, weight=np.ones(s.n_rows))
    view = s.class_view
    arrays = (s.confidence, s.loss, s.weight, view.labels, view.prediction)
    for array in (*arrays, view.probabilities, view.log_probabilities):
        array.setflags(write=False)
    for metric in ALL:
        value(metric, s)


@pytest.mark.parametrize("metric", ALL, ids=lambda m: m.name)
def test_what_is_of_the_classifier_is_the_same_for_every_confidence(metric: Metric) -> None:
    rng = np.random.default_rng(0)
    loss, labels = (rng.random(60) < 0.3).astype(float), rng.integers(0, 2, 60)
    prediction = np.where(loss, 1 - labels, labels).astype(int)
    sure = rng.uniform(0.5, 1, 60)
    values = {
        round(value(metric, make(rng.random(60), loss, labels, prediction, sure)), 12)
        for _ in range(20)
    }
    assert (len(values) == 1) == metric.identity.ignores_confidence


@pytest.mark.parametrize("metric", ALL, ids=lambda m: m.name)
def test_what_is_declared_reads_well(metric: Metric) -> None:
    assert "{value}" in metric.identity.meaning
    assert metric.identity.meaning[0].isupper() or metric.identity.meaning.startswith("{value}")
    assert metric.identity.meaning.endswith(".")
    assert metric.identity.source
    assert metric.measurement.low < metric.measurement.high


@pytest.mark.parametrize("metric", _AT_COVERAGE, ids=lambda metric: metric.name)
def test_a_group_that_ends_just_below_the_coverage_leaves_the_threshold_open(
    metric: Metric,
) -> None:
    """In the population that group may end above the coverage: both thresholds are possible."""
    rng, n = np.random.default_rng(0), 4000
    n_accepted = round(metric.measurement.at_coverage * n)
    group_sizes = [
        n_accepted - 5,
        (n - n_accepted) // 2,
        n - n_accepted - (n - n_accepted) // 2 + 5,
    ]
    confidence = np.repeat([0.9, 0.6, 0.3], group_sizes)
    labels = np.where(rng.random(n) < 0.3, -1, 0)
    prediction = np.where(rng.random(n) < np.repeat([0.1, 0.4, 0.6], group_sizes), 1, 0)
    loss = (prediction != labels).astype(float)
    s = make(confidence, loss, labels, prediction, np.full(n, 0.7))
    assert metric.measurement.plausible_thresholds is not None
    assert metric.measurement.plausible_thresholds(s, None) is not None
    assert AMBIGUOUS_THRESHOLD_NOTE in interval_of_metric(metric, s).note
