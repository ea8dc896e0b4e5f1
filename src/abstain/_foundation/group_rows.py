"""Rows that each stand for all samples of one tie group with one 0/1 loss.

The influence of a sample on a metric depends on its tie group and its loss, for some metrics also
on its class. It is therefore computed once for each row instead of once for each sample.
"""

from dataclasses import dataclass

import numpy as np

from abstain._foundation.tie_groups import TieGroups
from abstain.typing import Array, BoolArray, FloatArray

#: Number of bits of the group index in the sort key of `rows_of_classes`.
_GROUP_BITS = 31


@dataclass(frozen=True, eq=False)
class GroupRows:
    """One row for each tie group and loss that occur, most confident first."""

    #: The tie groups of the samples.
    groups: TieGroups
    #: Shape (k,). In the order of the groups.
    confidence: Array
    #: Shape (k,). 0 or 1.
    loss: FloatArray | BoolArray
    #: Shape (k,). Number of samples.
    row_counts: FloatArray


@dataclass(frozen=True, eq=False)
class ClassRows(GroupRows):
    """One row for each class, tie group and loss that occur, sorted by class."""

    #: Shape (k,). The index of the tie group.
    group_index: Array
    #: Shape (k,). The class code.
    label: Array


def rows_of_groups(groups: TieGroups) -> GroupRows:
    """Return one row for the successes and one for the failures of each group."""
    n_successes, n_failures = groups.weight - groups.loss, groups.loss
    # Successes and failures alternate: entry 2 g + loss counts the samples of group g.
    counts = np.column_stack((n_successes, n_failures)).ravel()
    occurring = np.flatnonzero(counts)
    group_index, is_failure = occurring // 2, occurring % 2 == 1
    confidence = groups.confidence
    if groups.is_merged is not None:
        # Parts of a split merged group share one confidence, so ranks replace it.
        confidence = np.arange(groups.weight.size, 0, -1.0)
    return GroupRows(groups, confidence[group_index], is_failure, counts[occurring])


def rows_of_classes(groups: TieGroups, group_index: Array, loss: Array, labels: Array) -> ClassRows:
    """Return one row for the successes and one for the failures of each class in each group.

    Parameters
    ----------
    groups : TieGroups
        The tie groups of the samples.
    group_index, loss, labels : array, shape (n,)
        Tie group, 0/1 loss and class code (-1 or above) of each sample.
    """
    # Sorting integer keys is faster than finding the order of the samples. From the highest bit
    # down, a key contains the class code + 1, the group index (`_GROUP_BITS` bits) and the loss.
    keys = labels + 1
    keys <<= _GROUP_BITS
    keys |= group_index
    keys <<= 1
    keys |= loss != 0
    keys.sort()
    is_last = np.ones(keys.size, np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=is_last[:-1])
    last_rows = np.flatnonzero(is_last)
    row_counts = np.diff(last_rows, prepend=-1).astype(np.float64)
    keys = keys.take(last_rows)
    # Decode the distinct keys.
    is_failure = (keys & 1).astype(np.bool_)
    group_mask = (1 << _GROUP_BITS) - 1
    group = ((keys >> 1) & group_mask).astype(np.int32)
    label = ((keys >> (_GROUP_BITS + 1)) - 1).astype(np.int32)
    return ClassRows(groups, groups.confidence[group], is_failure, row_counts, group, label)


def best_order_of_binary_loss(n: int, n_failures: int) -> TieGroups:
    """Return the tie groups of the best score: all successes, then all failures."""
    confidence = np.array([0.0, -1.0])
    weight = np.array([n - n_failures, n_failures], np.float64)
    loss = np.array([0, n_failures], np.float64)
    is_nonempty = weight > 0
    return TieGroups(confidence[is_nonempty], weight[is_nonempty], loss[is_nonempty])
