"""Rows in the order of their values: what keys of value and row give is what an argsort gives."""

import numpy as np
import pytest

from abstain._foundation import sorting
from abstain._foundation.scored import Scored
from abstain._foundation.sorting import descending_order, sort_descending
from abstain._foundation.tie_groups import group_ties
from abstain.metrics.contributions import compute_contributions

KINDS = {
    "unit": lambda rng, n: rng.random(n),
    "both signs": lambda rng, n: rng.normal(size=n),
    "ties": lambda rng, n: np.round(rng.normal(size=n), 1),
    "constant": lambda _, n: np.zeros(n),
    "two zeros": lambda rng, n: rng.choice([0.0, -0.0, 1.0], n),
    "saturated": lambda rng, n: 1.0 - 10.0 ** -rng.uniform(0, 16, n),
    "all within a hair": lambda rng, n: 1.0 + 1e-14 * rng.integers(0, 40, n),
    "all exponents": lambda rng, n: rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(-300, 300, n),
    "extremes": lambda rng, n: rng.choice([5e-324, -5e-324, 1.7e308, -1.7e308, 0.0], n),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("n", [1, 2, 50, 40_000])
def test_rows_come_from_the_highest_to_the_lowest_and_equal_ones_as_they_are(kind, dtype, n):
    limits = np.finfo(dtype)
    x = np.clip(KINDS[kind](np.random.default_rng(n), n), limits.min, limits.max).astype(dtype)
    expected = np.argsort(-x.astype(np.float64), kind="stable")
    np.testing.assert_array_equal(descending_order(x), expected)
    runs = sort_descending(x)
    np.testing.assert_array_equal(runs.order, expected)
    values, counts = np.unique(x.astype(np.float64), return_counts=True)
    np.testing.assert_array_equal(runs.distinct_values, values[::-1])
    np.testing.assert_array_equal(runs.group_sizes, counts[::-1])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_sums_within_runs_equal_those_of_each_value(kind, weighted, monkeypatch):
    monkeypatch.setattr(sorting, "_BLOCK", 256)
    rng = np.random.default_rng(3)
    x, loss = KINDS[kind](rng, 3000), rng.random(3000)
    weight = rng.random(3000) if weighted else None
    mask = rng.random(3000) < 0.7
    runs = sort_descending(x, mask)
    each = np.ones(3000) if weight is None else weight
    members = [mask & (x == value) for value in np.unique(x[mask])[::-1]]
    own, mass = runs.sum_by_group(loss, weight)
    np.testing.assert_allclose(own, [each[here].sum() for here in members], rtol=1e-13)
    np.testing.assert_allclose(mass, [(each * loss)[here].sum() for here in members], rtol=1e-13)
    alone = runs.group_sizes == 1
    np.testing.assert_array_equal(own[alone], each[runs.order[runs.group_ends[alone]]])


@pytest.mark.parametrize("kind", KINDS)
def test_equal_ones_are_put_in_order_by_another_number(kind):
    rng = np.random.default_rng(5)
    x, by = KINDS[kind](rng, 2000), rng.integers(0, 9, 2000) - 4.0
    mask = rng.random(2000) < 0.8
    expected = np.lexsort((by, -x))
    np.testing.assert_array_equal(
        sort_descending(x, mask).order_with_ties_broken_by(by), expected[mask[expected]]
    )


def test_groups_that_hold_loss_say_what_all_groups_say():
    rng = np.random.default_rng(4)
    weight = rng.random(500)
    s = Scored(np.round(rng.random(500), 2), rng.random(500) < 0.01, weight)
    held = s.groups.groups_with_loss
    assert 0 < held.loss.size < s.groups.loss.size / 2
    here = np.flatnonzero(s.groups.loss)
    for name in ("loss", "weight", "weight_above", "cumulative_weight"):
        np.testing.assert_array_equal(getattr(held, name), getattr(s.groups, name)[here])
    # Where nearly all hold some, none are left out and nothing is copied.
    graded = Scored(s.confidence, rng.random(500), weight).groups
    assert graded.groups_with_loss is graded


def test_a_scored_object_is_sorted_once(monkeypatch):
    import abstain._foundation.scored as module

    sorted_ones = []
    monkeypatch.setattr(
        module, "sort_descending", lambda *a: sorted_ones.append(a) or sort_descending(*a)
    )
    rng = np.random.default_rng(1)
    weight = rng.integers(0, 3, 500).astype(float)
    s = Scored(np.round(rng.random(500), 2), rng.random(500), weight)
    s.groups, s.group_index, s.group_with_loss(s.loss > 0.5)
    assert len(sorted_ones) == 1
    other = group_ties(s.confidence, s.loss > 0.5, weight)
    np.testing.assert_allclose(s.group_with_loss(s.loss > 0.5).loss, other.loss)
    alone = s.confidence[:, None] == s.groups.confidence
    np.testing.assert_array_equal(s.group_index[weight > 0], alone.argmax(axis=1)[weight > 0])
    assert (s.group_index[weight == 0] == -1).all()


def test_contributions_need_only_merged_groups():
    rng, n = np.random.default_rng(2), 20_000
    s = Scored(np.round(rng.random(n), 2), rng.random(n) < 0.05)
    parts = compute_contributions(s, "augrc")
    assert "groups" not in vars(s)
    place = np.unique(-s.confidence, return_inverse=True)[1]
    each = (
        s.groups.loss
        * (s.groups.total_weight - s.groups.cumulative_weight + s.groups.weight / 2)
        / n**2
    )
    np.testing.assert_allclose(np.bincount(place, parts), each, rtol=1e-12)
