"""Exact state in one pass: the number of successes and failures at each distinct confidence."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from abstain._foundation import checks
from abstain._foundation.scored import Scored, scored_from_groups
from abstain._foundation.tie_groups import TieGroups
from abstain.errors import InputError
from abstain.streaming.value_counts import ValueCounts, empty_value_counts
from abstain.typing import AnyArray, Array, BoolArray

_USE_SORTED_RUNS = "`streaming.sorted_runs` supports weights and graded losses"


class BinaryBatch(NamedTuple):
    """A batch of samples with a 0/1 loss."""

    confidence: Array
    is_failure: BoolArray

    @classmethod
    def from_arrays(
        cls, confidence: AnyArray, loss: AnyArray, weight: AnyArray | None
    ) -> "BinaryBatch":
        """Validate a batch; raise an error for weights and graded losses."""
        c = checks.confidence(confidence)
        x = checks.loss(loss, length=c.size)
        if weight is not None:
            raise InputError(
                f"`weight` must be None for a state that counts samples; {_USE_SORTED_RUNS}"
            )
        checks.reject_swapped_arguments(c, x)
        is_failure = x != 0
        if x.dtype.kind != "b" and not (x[is_failure] == 1).all():
            checks.binary_loss(x, required_by=f"a state that counts failures ({_USE_SORTED_RUNS})")
        return cls(c, is_failure)


@dataclass(frozen=True, eq=False)
class GroupCounts:
    """Exact tie groups of a stream, from one pass.

    Created by `one_pass`, `update` and `merge`.

    Attributes
    ----------
    successes, failures : ValueCounts
        Counts of the confidences of the successes and of the failures.
    n : int
        Number of samples.
    precision : int
        Bits of the widest floating-point type of the confidences.

    Examples
    --------
    >>> from abstain import streaming
    >>> state = streaming.update(streaming.one_pass(), [0.9, 0.8, 0.8], [0, 1, 0])
    >>> state.n, state.successes.finalized.value.tolist(), state.failures.finalized.value.tolist()
    (3, [0.8, 0.9], [0.8])
    """

    successes: ValueCounts
    failures: ValueCounts
    n: int = 0
    precision: int = 16

    def updated(
        self, confidence: AnyArray, loss: AnyArray, weight: AnyArray | None = None
    ) -> "GroupCounts":
        """Return the state with a batch added; see `streaming.update`."""
        batch = BinaryBatch.from_arrays(confidence, loss, weight)
        return GroupCounts(
            self.successes.added(batch.confidence[~batch.is_failure]),
            self.failures.added(batch.confidence[batch.is_failure]),
            self.n + batch.is_failure.size,
            max(self.precision, 8 * batch.confidence.dtype.itemsize),
        )

    def merged(self, other: "GroupCounts") -> "GroupCounts":
        """Return the state of both streams; see `streaming.merge`."""
        return GroupCounts(
            self.successes.merged(other.successes),
            self.failures.merged(other.failures),
            self.n + other.n,
            max(self.precision, other.precision),
        )

    @property
    def finalized(self) -> "GroupCounts":
        """The state with all buffered samples counted, which takes less memory."""
        return replace(self, successes=self.successes.finalized, failures=self.failures.finalized)

    @cached_property
    def scored(self) -> Scored:
        """The tie groups, as metrics require them; see `streaming.scored`."""
        dtype = np.dtype(f"f{self.precision // 8}")
        successes, failures = self.successes.as_type(dtype), self.failures.as_type(dtype)
        samples = successes.merged(failures)
        n_failures = np.zeros(samples.value.size)
        n_failures[np.searchsorted(samples.value, failures.value)] = failures.count
        weight = samples.count.astype(np.float64)
        return scored_from_groups(TieGroups(samples.value[::-1], weight[::-1], n_failures[::-1]))


def one_pass() -> GroupCounts:
    """Create the empty state of an exact stream in one pass.

    Answers: how do I compute exact metrics of a stream whose confidences repeat?

    Returns
    -------
    GroupCounts
        A state without samples.

    Notes
    -----
    Requires a 0/1 loss without weights. Memory: 12 bytes per distinct confidence in float32, 16 in
    float64. Between 1/2 and 1 there are 8.4 million float32 values, and as many in each octave
    below, so the counts of a billion float32 probabilities fit in memory. float64 scores rarely
    repeat; use `first_pass`, which needs a few percent of this memory. All metrics are available
    except those that need labels or classes.

    Examples
    --------
    >>> from abstain import streaming
    >>> state = streaming.update(streaming.one_pass(), [0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1])
    >>> streaming.compute(state, "aurc").value
    0.2708333333333333
    """
    return GroupCounts(empty_value_counts(), empty_value_counts())
