"""Count the successes and failures at each distinct confidence of a stream, in one pass."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import read_only
from abstain._foundation.lazy_imports import load_kernels
from abstain._foundation.scored import Scored, scored_from_groups
from abstain._foundation.tie_groups import TieGroups
from abstain.errors import InputError
from abstain.typing import AnyArray, Array, BoolArray, IntArray

#: Size in bytes at which buffered values are sorted and counted.
MIN_PENDING_BYTES = 1 << 27

#: Minimum number of values for which the compiled kernels are loaded.
_MIN_COMPILED = 1 << 22


@dataclass(frozen=True, eq=False)
class ValueCounts:
    """Counts of distinct values.

    New values are first stored in a buffer, and counted when the buffer is full.
    """

    #: Distinct values in ascending order, shape (k,).
    value: Array
    #: Number of occurrences of each value, at least 1, shape (k,).
    count: IntArray
    #: Buffered values in any order, which are not counted yet.
    pending: tuple[Array, ...] = ()

    def __post_init__(self) -> None:
        """Make the arrays read-only, because several states share them."""
        object.__setattr__(self, "value", read_only(self.value))
        object.__setattr__(self, "count", read_only(self.count))

    @cached_property
    def finalized(self) -> "ValueCounts":
        """Counts that include the buffered values."""
        if not self.pending:
            return self
        # np.concatenate always copies, so `_count_values` may sort the result in place.
        new = _count_values(np.concatenate(self.pending))
        if not self.value.size:
            return new
        return _merge_counts(self, new)

    def added(self, values: Array) -> "ValueCounts":
        """Return the counts with additional values, which may still be in the buffer."""
        if not values.size:
            return self
        counts = ValueCounts(self.value, self.count, append_pending(self.pending, values))
        if exceeds_bytes(counts.pending, max(MIN_PENDING_BYTES, self.value.nbytes)):
            return counts.finalized
        return counts

    def merged(self, other: "ValueCounts") -> "ValueCounts":
        """Return the sum of these counts and other counts."""
        left = self.finalized
        right = other.finalized
        if not left.value.size:
            return right
        if not right.value.size:
            return left
        return _merge_counts(left, right)

    def as_type(self, dtype: np.dtype[Any]) -> "ValueCounts":
        """Return counts of all values, including buffered values, in a wider type."""
        counts = self.finalized
        return ValueCounts(counts.value.astype(dtype, copy=False), counts.count)


def checked_value_counts(value: Array, count: Array, name: str) -> ValueCounts:
    """Return counts from the arrays of a file, or raise an error if they are inconsistent."""
    is_valid = (
        value.ndim == count.ndim == 1
        and value.size == count.size
        and value.dtype.kind == "f"
        and count.dtype == np.int64
        and bool(np.isfinite(value).all())
        and bool((value[1:] > value[:-1]).all())
        and bool((count > 0).all())
    )
    if not is_valid:
        raise InputError(f"{name!r} must be ascending numbers with counts of at least 1")
    return ValueCounts(value, count)


def empty_value_counts() -> ValueCounts:
    """Return empty counts."""
    return ValueCounts(np.zeros(0, np.float16), np.zeros(0, np.int64))


def append_pending(pending: tuple[Array, ...], values: Array) -> tuple[Array, ...]:
    """Append an array to the buffer.

    The new array is merged with previous arrays that are not larger, so that few arrays remain.
    """
    n_remaining = len(pending)
    tail_size = values.size
    while n_remaining:
        previous = pending[n_remaining - 1]
        if previous.dtype != values.dtype or previous.size > tail_size:
            break
        tail_size += previous.size
        n_remaining -= 1
    if n_remaining == len(pending):
        return (*pending, values)
    tail = np.concatenate((*pending[n_remaining:], values))
    return (*pending[:n_remaining], tail)


def exceeds_bytes(pending: tuple[Array, ...], max_bytes: int) -> bool:
    """Return whether the buffered arrays have a size of at least `max_bytes` bytes."""
    return sum(array.nbytes for array in pending) >= max_bytes


def _count_values(values: Array) -> ValueCounts:
    """Sort the values in place, and count them."""
    values.sort()
    is_last = np.empty(values.size, np.bool_)
    np.not_equal(values[1:], values[:-1], out=is_last[:-1])
    is_last[-1] = True
    last = np.flatnonzero(is_last)
    return ValueCounts(values[last], np.diff(last, prepend=-1))


def _merge_counts(left: ValueCounts, right: ValueCounts) -> ValueCounts:
    """Merge the counts of two nonempty objects by inserting the smaller one into the larger."""
    larger = left
    smaller = right
    if left.value.size < right.value.size:
        larger = right
        smaller = left
    # The number of values of `larger` that are at most each value of `smaller`.
    n_at_most = count_at_most(smaller.value, larger.value)
    is_present = larger.value.take(n_at_most - 1, mode="clip") == smaller.value
    is_present &= n_at_most > 0
    larger_count = larger.count.copy()
    larger_count[n_at_most[is_present] - 1] += smaller.count[is_present]
    new = np.flatnonzero(~is_present)
    # Each new value is inserted after the smaller values of `larger` and the smaller new values.
    new_positions = n_at_most[new] + np.arange(new.size)
    is_old_position = np.ones(larger.value.size + new.size, np.bool_)
    is_old_position[new_positions] = False
    value = np.empty(is_old_position.size, np.result_type(larger.value, smaller.value))
    value[is_old_position] = larger.value
    value[new_positions] = smaller.value[new]
    count = np.empty(is_old_position.size, np.int64)
    count[is_old_position] = larger_count
    count[new_positions] = smaller.count[new]
    return ValueCounts(value, count)


def next_floats(values: Array, towards: float) -> Array:
    """Return, for each value, the adjacent float of the same type in a given direction."""
    with np.errstate(all="ignore"):
        neighbors: Array = np.nextafter(values, values.dtype.type(towards))
    return neighbors


def count_at_most(points: Array, values: Array) -> IntArray:
    """Return, for each point, the number of values up to this point; both arrays ascend."""
    is_large = points.size + values.size >= _MIN_COMPILED
    kernels = None
    if is_large and points.dtype == values.dtype:
        kernels = load_kernels("abstain._foundation.compiled")
    if kernels is None:
        return np.searchsorted(values, points, side="right")
    infinity = values.dtype.type(np.inf)
    n_at_most: IntArray = kernels.count_up_to(points, np.append(values, infinity))
    return n_at_most


_USE_SORTED_RUNS = "`streaming.sorted_runs` supports weights and graded losses"


class BinaryBatch(NamedTuple):
    """A batch of samples with a 0/1 loss and without weights."""

    confidence: Array
    is_failure: BoolArray

    @classmethod
    def from_arrays(
        cls, confidence: AnyArray, loss: AnyArray, weight: AnyArray | None
    ) -> "BinaryBatch":
        """Validate a batch.

        An error is raised if weights are passed or if a loss is not 0 or 1.
        """
        scores = checks.confidence(confidence)
        losses = checks.loss(loss, length=scores.size)
        if weight is not None:
            raise InputError(
                f"`weight` must be None for a state that counts samples; {_USE_SORTED_RUNS}"
            )
        checks.reject_swapped_arguments(scores, losses)
        is_failure = losses != 0
        if losses.dtype.kind != "b" and not (losses[is_failure] == 1).all():
            required_by = f"a state that counts failures ({_USE_SORTED_RUNS})"
            checks.binary_loss(losses, required_by=required_by)
        return cls(scores, is_failure)


@dataclass(frozen=True, eq=False)
class GroupCounts:
    """The numbers of successes and failures at each distinct confidence of a stream.

    `one_pass`, `update` and `merge` create this state.

    Attributes
    ----------
    successes, failures : ValueCounts
        Counts of the distinct confidences of successes and of failures.
    n : int
        Number of samples.
    precision : int
        Number of bits of the widest floating-point type of the confidences.

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
        """Return the state with a batch added. See `streaming.update`."""
        batch = BinaryBatch.from_arrays(confidence, loss, weight)
        return GroupCounts(
            self.successes.added(batch.confidence[~batch.is_failure]),
            self.failures.added(batch.confidence[batch.is_failure]),
            self.n + batch.is_failure.size,
            max(self.precision, 8 * batch.confidence.dtype.itemsize),
        )

    def merged(self, other: "GroupCounts") -> "GroupCounts":
        """Return the state of both streams. See `streaming.merge`."""
        return GroupCounts(
            self.successes.merged(other.successes),
            self.failures.merged(other.failures),
            self.n + other.n,
            max(self.precision, other.precision),
        )

    @property
    def finalized(self) -> "GroupCounts":
        """The state after all buffered samples are counted, which needs less memory."""
        return replace(self, successes=self.successes.finalized, failures=self.failures.finalized)

    @cached_property
    def scored(self) -> Scored:
        """The tie groups, from which metrics are computed. See `streaming.scored`."""
        dtype = np.dtype(f"f{self.precision // 8}")
        successes = self.successes.as_type(dtype)
        failures = self.failures.as_type(dtype)
        samples = successes.merged(failures)
        n_failures = np.zeros(samples.value.size)
        n_failures[np.searchsorted(samples.value, failures.value)] = failures.count
        weight = samples.count.astype(np.float64)
        return scored_from_groups(TieGroups(samples.value[::-1], weight[::-1], n_failures[::-1]))


def one_pass() -> GroupCounts:
    """Create the empty state of a stream, for exact metrics from one pass.

    This state is suitable if many samples have equal confidences.

    Returns
    -------
    GroupCounts
        A state without samples.

    Notes
    -----
    The state requires a 0/1 loss and no weights. For each distinct confidence, the state needs 12
    bytes in float32 and 16 bytes in float64. There are 8.4 million float32 values between 1/2 and
    1, so the counts of a billion float32 probabilities fit in memory. Float64 confidences are
    rarely equal, so use `first_pass` for them. All metrics are available except those that need
    labels or classes.

    Examples
    --------
    >>> from abstain import streaming
    >>> state = streaming.update(streaming.one_pass(), [0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1])
    >>> streaming.compute(state, "aurc").value
    0.2708333333333333
    """
    return GroupCounts(empty_value_counts(), empty_value_counts())
