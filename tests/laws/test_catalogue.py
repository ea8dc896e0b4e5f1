"""Laws that hold for every metric of the catalogue: a new one is tested by being registered."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.laws.cases import in_order, rows, scored_cases

from abstain._foundation.scored import Scored
from abstain.metrics import METRICS, Metric, metric_named

_MADE_BY_NAME = (
    "selective_risk@37cov",
    "coverage@25risk",
    "cwsa@0.25",
    "cwsa_plus@0.6",
    "partial_aurc@20.3-55.7cov",
    "partial_augrc@50.3-80.7cov",
)
ALL = [*METRICS.values(), *(metric_named(name) for name in _MADE_BY_NAME)]
every_metric = pytest.mark.parametrize("metric", ALL, ids=lambda m: m.name)
rank_metrics = pytest.mark.parametrize(
    "metric", [m for m in ALL if m.rank_based], ids=lambda m: m.name
)
ordered_metrics = pytest.mark.parametrize(
    "metric", [m for m in ALL if m.ordered], ids=lambda m: m.name
)


def value(metric: Metric, s: Scored) -> float:
    assert not metric.missing(s)
    measured = metric.compute(s)
    assert np.isnan(measured.value) == bool(measured.reason), "NaN if and only if a reason"
    return measured.value


def same(a: float, b: float) -> bool:
    return a == b or (np.isnan(a) and np.isnan(b)) or abs(a - b) <= 1e-12 * max(1, abs(a))


@every_metric
@given(s=scored_cases(), data=st.data())
def test_row_order_does_not_matter(metric: Metric, s: Scored, data: st.DataObject) -> None:
    shuffled = rows(s, np.array(data.draw(st.permutations(range(s.n)))))
    assert same(value(metric, s), value(metric, shuffled))


@rank_metrics
@given(s=scored_cases(), data=st.data())
def test_only_the_order_of_the_confidences_matters(
    metric: Metric, s: Scored, data: st.DataObject
) -> None:
    distinct, place = np.unique(s.confidence, return_inverse=True)
    steps = st.lists(st.integers(1, 1000), min_size=distinct.size, max_size=distinct.size)
    moved = np.cumsum(data.draw(steps)) - 500.0
    assert same(value(metric, s), value(metric, replace(s, confidence=moved[place])))


@every_metric
@given(s=scored_cases(), data=st.data())
def test_integer_weights_are_repetitions(metric: Metric, s: Scored, data: st.DataObject) -> None:
    times = np.array(data.draw(st.lists(st.integers(0, 3), min_size=s.n, max_size=s.n)))
    assume(times.any())
    weighted = replace(s, weight=times.astype(float))
    repeated = rows(s, np.repeat(np.arange(s.n), times))
    assert same(value(metric, weighted), value(metric, repeated))


@every_metric
@given(s=scored_cases())
def test_unit_weights_change_nothing(metric: Metric, s: Scored) -> None:
    weighted = metric.compute(replace(s, weight=np.ones(s.n)))
    assert same(value(metric, s), weighted.value)
    assert metric.compute(s).accepted == weighted.accepted


@every_metric
@given(s=scored_cases())
def test_the_declared_range_holds(metric: Metric, s: Scored) -> None:
    v = value(metric, s)
    assert np.isnan(v) or metric.low - 1e-12 <= v <= metric.high + 1e-12


@ordered_metrics
@given(s=scored_cases(ties=False), tied=scored_cases())
def test_no_order_beats_the_oracle_or_falls_below_the_anti_oracle(
    metric: Metric, s: Scored, tied: Scored
) -> None:
    _between_the_extremes(metric, s)
    if metric.family == "area":
        # Average precision steps over a tie group, so it can gain from a worse order there.
        _between_the_extremes(metric, tied)


def _between_the_extremes(metric: Metric, s: Scored) -> None:
    best, worst = value(metric, in_order(s, best=True)), value(metric, in_order(s, best=False))
    v = value(metric, s)
    low, high = (best, worst) if metric.lower_is_better else (worst, best)
    assert np.isnan(v) or low - 1e-12 <= v <= high + 1e-12


@every_metric
@given(s=scored_cases(most=6))
def test_duplication_leaves_the_value_or_its_limit(metric: Metric, s: Scored) -> None:
    def repeated(times: int) -> float:
        return value(metric, rows(s, np.tile(np.arange(s.n), times)))

    assert metric.duplication in {"exact", "limit"}
    if metric.duplication == "exact":
        assert same(value(metric, s), repeated(3))
    else:
        near, far = repeated(64), repeated(128)
        assert np.isnan(near) == np.isnan(far)
        assert np.isnan(near) or abs(near - far) <= 0.02 * max(1.0, abs(near))


@every_metric
@given(s=scored_cases())
def test_inputs_stay_untouched(metric: Metric, s: Scored) -> None:
    s = replace(s, weight=np.ones(s.n))
    view = s.view
    arrays = (s.confidence, s.loss, s.weight, view.labels, view.prediction)
    for array in (*arrays, view.probabilities, view.log_probabilities):
        array.setflags(write=False)
    value(metric, s)


@every_metric
def test_what_is_declared_reads_well(metric: Metric) -> None:
    assert "{value}" in metric.meaning
    assert metric.meaning[0].isupper() or metric.meaning.startswith("{value}")
    assert metric.meaning.endswith(".")
    assert metric.source
    assert metric.low < metric.high
