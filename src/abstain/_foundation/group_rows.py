"""Rows that each stand for all samples of one tie group and one 0/1 loss.

The effect of a sample on a number depends on its group and its loss, for some numbers also on its
class.
"""

from dataclasses import dataclass

import numpy as np

from abstain._foundation.tie_groups import TieGroups
from abstain.typing import Array, BoolArray, FloatArray

#: Bits of the group index in a sort key, below the class code.
_GROUP_BITS = 31


@dataclass(frozen=True, eq=False)
class GroupRows:
    """One row for each tie group and loss that occur, most confident first."""

    #: The groups of the samples.
    groups: TieGroups
    #: Shape (k,). In the order of the groups.
    confidence: Array
    #: Shape (k,). 0 or 1.
    loss: FloatArray | BoolArray
    #: Shape (k,). Number of samples.
    row_counts: FloatArray


@dataclass(frozen=True, eq=False)
class ClassRows(GroupRows):
    """One row for each class, tie group and loss that occur, class by class."""

    #: Shape (k,). The index of the tie group.
    group_index: Array
    #: Shape (k,). The class code.
    label: Array


def rows_of_groups(groups: TieGroups) -> GroupRows:
    """Return the successes and the failures of each group as a row each."""
    n_by_loss = np.column_stack((groups.weight - groups.loss, groups.loss)).ravel()
    occurs = np.flatnonzero(n_by_loss)
    group, loss = occurs >> 1, occurs & 1
    # Parts of a merged group share one confidence, so ranks replace it.
    confidence = groups.confidence
    if groups.is_merged is not None:
        confidence = np.arange(groups.weight.size, 0, -1.0)
    return GroupRows(groups, confidence[group], loss.astype(np.bool_), n_by_loss[occurs])


def rows_of_classes(groups: TieGroups, home: Array, loss: Array, labels: Array) -> ClassRows:
    """Return the successes and the failures of each class in each group as a row each.

    Takes the group, the loss and the class code (-1 or above) of each sample.
    """
    # A key holds, from the highest bit down, class code + 1, group index and loss. Sorting keys is
    # faster than finding the order of the samples.
    keys = labels + 1
    keys <<= _GROUP_BITS
    keys |= home
    keys <<= 1
    keys |= loss != 0
    keys.sort()
    is_last = np.ones(keys.size, np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=is_last[:-1])
    last = np.flatnonzero(is_last)
    times = np.diff(last, prepend=-1).astype(np.float64)
    keys = keys.take(last)
    is_failure = (keys & 1).astype(np.bool_)
    group = ((keys >> 1) & ((1 << _GROUP_BITS) - 1)).astype(np.int32)
    label = ((keys >> (_GROUP_BITS + 1)) - 1).astype(np.int32)
    return ClassRows(groups, groups.confidence[group], is_failure, times, group, label)


def best_order_of_binary_loss(n: int, n_failures: int) -> TieGroups:
    """Return the groups of the best score: all successes, then all failures."""
    count = np.array([n - n_failures, n_failures], np.float64)
    occurs = count > 0
    loss = (count * np.array([0, 1]))[occurs]
    return TieGroups(np.array([0.0, -1.0])[occurs], count[occurs], loss)
