"""The kinds among samples of a 0/1 loss: of one group and one loss, so that a row stands for all.

What a sample does to a number depends on its group and its loss, and for some on its class.
"""

from dataclasses import dataclass

import numpy as np

from abstain._foundation.ranks import TieGroups
from abstain.typing import Array, BoolArray, FloatArray

#: Of the number of a group in a key beside the code of a class.
_GROUP_BITS = 31


@dataclass(frozen=True, eq=False)
class Kinds:
    """The kinds that occur, by group from the most confident on."""

    #: Those of the samples.
    groups: TieGroups
    #: Shape (k,). In the order of the groups.
    confidence: Array
    #: Shape (k,). 0 or 1.
    loss: FloatArray | BoolArray
    #: Shape (k,). How many samples.
    times: FloatArray


@dataclass(frozen=True, eq=False)
class KindsOfClasses(Kinds):
    """The kinds of each class, class after class."""

    #: Shape (k,). The tie group.
    home: Array
    #: Shape (k,). The code of the class.
    label: Array


def kinds_of(groups: TieGroups) -> Kinds:
    """Return the successes and the failures of each group, where there are some."""
    failed = groups.loss
    times = np.column_stack((groups.weight - failed, failed)).ravel()
    here = np.flatnonzero(times)
    # Parts of a stretch have one confidence.
    values = groups.confidence if groups.stretch is None else np.arange(failed.size, 0, -1.0)
    return Kinds(groups, values[here >> 1], (here & 1).astype(np.bool_), times[here])


def kinds_of_classes(groups: TieGroups, home: Array, loss: Array, labels: Array) -> KindsOfClasses:
    """Return the successes and the failures of each class in each of its groups.

    Takes the group, the loss and the class code, from -1 up, of each sample.
    """
    # The values of keys are sorted, which is faster than to find the order of the samples.
    keys = labels + 1
    keys <<= _GROUP_BITS
    keys |= home
    keys <<= 1
    keys |= loss != 0
    keys.sort()
    last = np.ones(keys.size, np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=last[:-1])
    ends = np.flatnonzero(last)
    times = np.empty(ends.size)
    times[0] = ends[0] + 1
    np.subtract(ends[1:], ends[:-1], out=times[1:])
    keys = keys.take(ends)
    failed = (keys & 1).astype(np.bool_)
    keys >>= 1
    own = (keys & ((1 << _GROUP_BITS) - 1)).astype(np.int32)
    keys >>= _GROUP_BITS
    keys -= 1
    label = keys.astype(np.int32)
    return KindsOfClasses(groups, groups.confidence[own], failed, times, own, label)


def groups_of_two(n: int, failures: int) -> TieGroups:
    """Return the groups of the best score: successes, then failures."""
    count = np.array([n - failures, failures], np.float64)
    here = count > 0
    loss = (count * np.array([0, 1]))[here]
    return TieGroups(np.array([0.0, -1.0])[here], count[here], loss)
