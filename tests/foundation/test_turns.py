"""Turns: the groups that hold a failure, and the ties among the successes between two of them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.foundation.test_packed import SETTINGS, samples

from abstain._foundation import blockwise, packed
from abstain._foundation.ranks import TieGroups, with_vertex
from abstain._foundation.scored import scored
from abstain._foundation.turns import turns_of


def naive(groups):
    """Return turns and ties from all groups, one after the other."""
    turns, ties, above = [], [], 0
    for value, count, loss in zip(groups.confidence, groups.count, groups.loss, strict=True):
        if not loss and count > 1:
            ties.append((above, above + count))
        above += count
        if not loss and turns and turns[-1][3]:
            turns[-1] = (value, turns[-1][1] + count, 0.0, True)
        else:
            turns.append((value, count, loss, not loss))
    return turns, ties


@SETTINGS
@given(data=samples(), block=st.sampled_from([1, 2, 3, 7, 1 << 15]))
def test_turns_are_the_groups_with_a_failure(backend, monkeypatch, data, block):
    monkeypatch.setattr(blockwise, "_BLOCK", block)
    keys = packed.pack(*data)
    groups, found = TieGroups(*keys.groups()), TieGroups(*turns_of(keys))
    turns, ties = naive(groups)
    shown = (found.confidence, found.count, found.loss, found.stretch)
    assert list(zip(*(x.tolist() for x in shown), strict=True)) == turns
    assert np.array_equal(found.weight, found.count)
    pairs = list(zip(found.ties.above.tolist(), found.ties.through.tolist(), strict=True))
    assert pairs == ties
    assert (found.n, found.tied) == (groups.n, groups.tied)
    ends = found.count_through
    assert [int(np.searchsorted(ends, above, side="right")) for above, _ in ties] == (
        found.tie_home.tolist()
    )


@SETTINGS
@given(data=samples(), share=st.floats(0, 1))
def test_what_lies_around_a_number_of_samples(backend, data, share):
    keys = packed.pack(*data)
    groups, found = TieGroups(*keys.groups()), TieGroups(*turns_of(keys))
    rank = int(share * groups.n)
    beyond = groups.count_through > rank
    ends, counts = found.ties.groups_beyond(rank)
    assert np.array_equal(ends, groups.count_through[beyond])
    assert np.array_equal(counts, groups.count[beyond])
    before = np.append(0, groups.count_through)
    place = int(np.searchsorted(before, share * groups.n))
    if found.stretch[np.searchsorted(found.count_through, max(share * groups.n, 1))]:
        assert found.ties.vertex(int(np.ceil(share * groups.n))) == before[place]
        low, high = found.ties.segment(share * groups.n)
        assert (low in before, high) == (True, before[place])
        assert with_vertex(found, share * groups.n).n == groups.n


def test_ties_among_successes_cost_nothing_that_asks_for_no_vertex_of_theirs():
    confidence = np.repeat(np.arange(50_000, dtype=np.float32), 2)
    loss = np.zeros(confidence.size, bool)
    loss[::1000] = True
    s = scored(confidence, loss)
    assert s.turns.count.size <= 201
    assert s.events.count.size == 50_000
    assert "_found" not in s.turns.ties.__dict__
