"""Ties: brute force over all orders of the tied samples."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.properties.cases import scored_cases

import abstain as ab
from abstain._foundation.scored import Scored
from abstain.metrics import METRICS
from abstain.metrics.ties import BrokenTies, has_exact_tie_bounds

ORDERED = [m for m in METRICS.values() if has_exact_tie_bounds(m)]
#: Metrics whose value with ties is the mean over all tie orders.
AVERAGED = [metric for metric in METRICS.values() if metric.measurement.averages_ties]


def all_orders(s: Scored) -> list[Scored]:
    """Return the case once for each order of its tied samples, every confidence distinct."""
    orders = []
    for order in permutations(range(s.n_rows)):
        ranked = s.confidence[list(order)]
        if np.all(ranked[:-1] >= ranked[1:]):
            rank = np.empty(s.n_rows)
            rank[list(order)] = np.arange(s.n_rows, 0, -1)
            orders.append(replace(s, confidence=rank))
    return orders


@given(s=scored_cases(least=2, most=6))
@settings(max_examples=25)
def test_bounds_are_the_extremes_over_all_tie_orders(s: Scored) -> None:
    orders = all_orders(s)
    for metric in ORDERED:
        values = [metric.compute(order).value for order in orders]
        low, high = BrokenTies(s).bounds(metric)
        if np.isnan(values).any():
            assert np.isnan(values).all(), metric.name
            continue
        assert low == pytest.approx(min(values), abs=1e-12), metric.name
        assert high == pytest.approx(max(values), abs=1e-12), metric.name


@given(s=scored_cases(least=2, most=6))
@settings(max_examples=25)
def test_the_value_is_the_mean_over_all_tie_orders(s: Scored) -> None:
    orders = all_orders(s)
    for metric in AVERAGED:
        mean = np.mean([metric.compute(order).value for order in orders])
        value = metric.compute(s).value
        assert value == pytest.approx(mean, abs=1e-12, nan_ok=True), metric.name


@given(s=scored_cases(least=2, most=30), data=st.data())
def test_bounds_of_graded_and_weighted_losses_hold_every_order(
    s: Scored, data: st.DataObject
) -> None:
    loss = np.array(data.draw(st.lists(st.integers(0, 3), min_size=s.n_rows, max_size=s.n_rows)))
    weight = np.array(data.draw(st.lists(st.integers(0, 2), min_size=s.n_rows, max_size=s.n_rows)))
    assume(weight.any())
    shuffled = np.array(data.draw(st.permutations(range(s.n_rows))))
    rank = np.empty(s.n_rows)
    rank[shuffled[np.argsort(s.confidence[shuffled], kind="stable")]] = np.arange(s.n_rows)
    for name in ("augrc", "aurc_plugin", "sele", "two_sele"):
        bounds = ab.tie_bounds(s.confidence, loss, metric=name, weight=weight)
        value = METRICS[name].compute(Scored(rank, loss, weight.astype(float))).value
        assert bounds.low - 1e-12 <= value <= bounds.high + 1e-12
        assert bounds.low - 1e-12 <= bounds.value <= bounds.high + 1e-12
