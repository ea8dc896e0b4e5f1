"""Compute exact metrics of a stream in two passes.

The first pass collects the confidences of the failures. The second pass counts the successes at
these confidences and between these confidences.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import read_only
from abstain._foundation.scored import Scored, scored_from_merged_groups
from abstain._foundation.tie_groups import TieGroups
from abstain.errors import InputError, UncountedError
from abstain.streaming.groups import (
    MIN_PENDING_BYTES,
    BinaryBatch,
    ValueCounts,
    append_pending,
    count_at_most,
    empty_value_counts,
    exceeds_bytes,
    next_floats,
)
from abstain.typing import AnyArray, Array, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class FailureCounts:
    """State of the first of two passes, which counts the distinct confidences of the failures.

    `first_pass`, `update` and `merge` create this state, and `second_pass` continues it.

    Attributes
    ----------
    n : int
        Number of samples.
    value_counts : ValueCounts
        Counts of the distinct confidences of the failures.
    precision : int
        Number of bits of the widest floating-point type of the confidences.

    Examples
    --------
    >>> from abstain import streaming
    >>> first = streaming.update(streaming.first_pass(), [0.9, 0.8, 0.7], [0, 1, 0])
    >>> first.n, first.n_failures, first.confidence.tolist()
    (3, 1, [0.8])
    """

    n: int
    value_counts: ValueCounts
    precision: int = 16

    @property
    def n_failures(self) -> int:
        """Number of failures."""
        return int(self.value_counts.finalized.count.sum())

    @property
    def confidence(self) -> Array:
        """Distinct confidences of the failures, in ascending order."""
        return self.value_counts.finalized.value

    @property
    def count(self) -> IntArray:
        """Number of failures at each confidence, with the shape of `confidence`."""
        return self.value_counts.finalized.count

    def updated(
        self, confidence: AnyArray, loss: AnyArray, weight: AnyArray | None = None
    ) -> "FailureCounts":
        """Return the state with a batch added. See `streaming.update`."""
        batch = BinaryBatch.from_arrays(confidence, loss, weight)
        value_counts = self.value_counts.added(batch.confidence[batch.is_failure])
        bits = max(self.precision, 8 * batch.confidence.dtype.itemsize)
        return FailureCounts(self.n + batch.is_failure.size, value_counts, bits)

    def merged(self, other: "FailureCounts") -> "FailureCounts":
        """Return the state of both streams. See `streaming.merge`."""
        value_counts = self.value_counts.merged(other.value_counts)
        bits = max(self.precision, other.precision)
        return FailureCounts(self.n + other.n, value_counts, bits)


def first_pass() -> FailureCounts:
    """Create the empty state of the first of two passes over a stream.

    With two passes, exact metrics can be computed from more samples than fit in memory.

    Returns
    -------
    FailureCounts
        A state without samples.

    Notes
    -----
    The state requires a 0/1 loss and no weights. For each distinct confidence of a failure, the
    state needs 12 bytes in float32 and 16 bytes in float64.

    Examples
    --------
    >>> from abstain import streaming
    >>> first = streaming.update(streaming.first_pass(), [0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1])
    >>> second = streaming.update(streaming.second_pass(first), [0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1])
    >>> streaming.compute(second, "augrc").value
    0.1875
    """
    return FailureCounts(0, empty_value_counts())


@dataclass(frozen=True, eq=False)
class CutCounts:
    """State of the second of two passes, which counts successes at cuts and between cuts.

    A cut is the confidence of a failure, or an additional threshold that the user passes.
    `second_pass`, `update` and `merge` create this state.

    Attributes
    ----------
    first : FailureCounts
        State of the first pass over all samples.
    cuts : ndarray of shape (k,)
        Confidences in ascending order.
    n_failures_at_cut : ndarray of shape (k,)
        Number of failures at each cut.
    n_successes_at_cut : ndarray of shape (k,)
        Number of successes at each cut, without the buffered samples that `finalized` counts.
    n_successes_between_cuts : ndarray of shape (k + 1,)
        Number of successes below the first cut, between neighboring cuts and above the last cut.
    n_samples : int
        Number of samples in this pass.
    n_failures : int
        Number of failures in this pass.

    Examples
    --------
    >>> from abstain import streaming
    >>> batch = [0.9, 0.8, 0.7], [0, 1, 0]
    >>> first = streaming.update(streaming.first_pass(), *batch)
    >>> second = streaming.update(streaming.second_pass(first), *batch).finalized
    >>> second.cuts.tolist(), second.n_successes_at_cut.tolist()
    ([0.8], [0])
    >>> second.n_successes_between_cuts.tolist()
    [1, 1]
    """

    first: FailureCounts
    cuts: Array
    n_failures_at_cut: IntArray
    n_successes_at_cut: IntArray
    n_successes_between_cuts: IntArray
    n_samples: int = 0
    n_failures: int = 0
    pending: tuple[Array, ...] = ()

    def __post_init__(self) -> None:
        """Make the arrays read-only, because several states share them."""
        for name in (
            "cuts",
            "n_failures_at_cut",
            "n_successes_at_cut",
            "n_successes_between_cuts",
        ):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @cached_property
    def finalized(self) -> "CutCounts":
        """The state after all buffered successes are counted."""
        if not self.pending:
            return self
        n_at_cut, n_between_cuts = count_at_and_between(self.cuts, np.concatenate(self.pending))
        return replace(
            self,
            n_successes_at_cut=self.n_successes_at_cut + n_at_cut,
            n_successes_between_cuts=self.n_successes_between_cuts + n_between_cuts,
            pending=(),
        )

    def updated(
        self, confidence: AnyArray, loss: AnyArray, weight: AnyArray | None = None
    ) -> "CutCounts":
        """Return the state with a batch added. See `streaming.update`."""
        batch = BinaryBatch.from_arrays(confidence, loss, weight)
        successes = batch.confidence[~batch.is_failure]
        n_failures = batch.is_failure.size - successes.size
        pending = self.pending
        if successes.size:
            pending = append_pending(pending, successes)
        state = replace(
            self,
            n_samples=self.n_samples + batch.is_failure.size,
            n_failures=self.n_failures + n_failures,
            pending=pending,
        )
        if exceeds_bytes(state.pending, max(MIN_PENDING_BYTES, 4 * self.cuts.nbytes)):
            return state.finalized
        return state

    def merged(self, other: "CutCounts") -> "CutCounts":
        """Return the state of both streams. See `streaming.merge`."""
        left = self.finalized
        right = other.finalized
        have_same_first_pass = (
            left.first.n == right.first.n
            and np.array_equal(left.cuts, right.cuts)
            and np.array_equal(left.n_failures_at_cut, right.n_failures_at_cut)
        )
        if not have_same_first_pass:
            raise InputError(
                "`a` and `b` must continue the same first pass over all samples and have the same "
                f"cuts; got {left.first.n} samples with {left.cuts.size} cuts, and {right.first.n} "
                f"samples with {right.cuts.size} cuts"
            )
        return replace(
            left,
            n_successes_at_cut=left.n_successes_at_cut + right.n_successes_at_cut,
            n_successes_between_cuts=left.n_successes_between_cuts + right.n_successes_between_cuts,
            n_samples=left.n_samples + right.n_samples,
            n_failures=left.n_failures + right.n_failures,
        )

    def accepted(self, threshold: float) -> tuple[int, int]:
        """Return the numbers of accepted samples and accepted failures at a cut."""
        cut = self.cuts.dtype.type(threshold)
        index = int(np.searchsorted(self.cuts, cut))
        if index == self.cuts.size or self.cuts[index] != cut:
            raise UncountedError(
                "`threshold` must be a cut, because samples are counted only at cuts; got "
                f"{threshold!r}. Pass it to `streaming.second_pass(first, cuts=[...])`"
            )
        self._check_both_passes_match()
        counts = self.finalized
        n_failures = int(counts.n_failures_at_cut[index:].sum())
        n_successes = int(
            counts.n_successes_at_cut[index:].sum()
            + counts.n_successes_between_cuts[index + 1 :].sum()
        )
        return n_failures + n_successes, n_failures

    @cached_property
    def scored(self) -> Scored:
        """The tie groups at the cuts, and one merged group between adjacent cuts.

        See `streaming.scored`.
        """
        self._check_both_passes_match()
        counts = self.finalized
        # The first group is above the last cut, the second group at the last cut, and the third
        # group below the last cut.
        at_cuts = slice(1, None, 2)
        between_cuts = slice(0, None, 2)
        n_groups = 2 * counts.cuts.size + 1
        n_successes = np.empty(n_groups)
        n_successes[at_cuts] = counts.n_successes_at_cut[::-1]
        n_successes[between_cuts] = counts.n_successes_between_cuts[::-1]
        n_failures = np.zeros(n_groups)
        n_failures[at_cuts] = counts.n_failures_at_cut[::-1]
        is_between_cuts = np.ones(n_groups, np.bool_)
        is_between_cuts[at_cuts] = False
        n_samples = n_successes + n_failures
        is_nonempty = n_samples > 0
        return scored_from_merged_groups(
            TieGroups(
                _group_confidences(counts)[is_nonempty],
                n_samples[is_nonempty],
                n_failures[is_nonempty],
                is_merged=is_between_cuts[is_nonempty],
                has_unknown_ties=True,
            )
        )

    def _check_both_passes_match(self) -> None:
        """Raise an InputError unless both passes have the same numbers of samples and failures."""
        n = self.first.n
        n_failures = self.first.n_failures
        if n != self.n_samples or n_failures != self.n_failures:
            raise InputError(
                "`state` must contain the same samples in both passes; got "
                f"{n} samples with {n_failures} failures in the first pass, and "
                f"{self.n_samples} samples with {self.n_failures} failures in the second. Pass "
                "the same files to both"
            )


def _group_confidences(state: CutCounts) -> Array:
    """Return the confidences of the groups at and between k cuts, in descending order.

    The confidence of a group between two cuts is the lowest threshold that accepts its samples.
    """
    dtype = np.dtype(f"f{state.first.precision // 8}")
    cuts = state.cuts[::-1].astype(dtype)
    values = np.empty(2 * cuts.size + 1, dtype)
    values[1::2] = cuts
    values[:-1:2] = next_floats(cuts, np.inf)
    values[-1] = np.finfo(dtype).min
    return values


def second_pass(first: FailureCounts, *, cuts: Sequence[float] | FloatArray = ()) -> CutCounts:
    """Create the empty state of the second of two passes.

    Parameters
    ----------
    first : FailureCounts
        State of the first pass over all samples. If several processes read the data, merge their
        first-pass states before this call.
    cuts : array of shape (c,), optional
        Additional thresholds at which samples are counted, rounded to the precision of the
        confidences.

    Returns
    -------
    CutCounts
        A state without samples.

    Raises
    ------
    ShapeError, DomainError
        If `cuts` is not one-dimensional, or if `cuts` contains NaN or infinity.

    Notes
    -----
    The following metrics are exact: AUGRC, the AURC estimators that average over ties, SELE,
    failure AUROC, and working points at a coverage or a risk. The analytic intervals of all these
    metrics except working points are also exact. The state needs 28 bytes per cut in float32,
    independent of the number of samples.

    References
    ----------
    .. [1] This method is from abstain. The number of accepted failures is constant between two
       cuts, so rank metrics have a closed form there (`docs/design.md`).

    Examples
    --------
    >>> from abstain import streaming
    >>> first = streaming.update(streaming.first_pass(), [0.9, 0.8], [0, 1])
    >>> second = streaming.update(streaming.second_pass(first), [0.9, 0.8], [0, 1])
    >>> streaming.compute(second, "failure_auroc").value
    1.0
    """
    dtype = np.dtype(f"f{first.precision // 8}")
    failures = first.value_counts.as_type(dtype)
    all_cuts = failures.value
    n_failures = failures.count
    if len(cuts) > 0:
        thresholds = checks.finite(checks.vector(cuts, "cuts"), "cuts").astype(dtype)
        new_cuts = np.setdiff1d(thresholds, all_cuts)
        all_cuts = np.concatenate((all_cuts, new_cuts))
        order = np.argsort(all_cuts, kind="stable")
        all_cuts = all_cuts[order]
        n_failures = np.concatenate((n_failures, np.zeros(new_cuts.size, np.int64)))[order]
    return CutCounts(
        replace(first, value_counts=failures),
        all_cuts,
        n_failures,
        np.zeros(all_cuts.size, np.int64),
        np.zeros(all_cuts.size + 1, np.int64),
    )


def count_at_and_between(cuts: Array, values: Array) -> tuple[IntArray, IntArray]:
    """Return the number of values at each cut, shape (k,), and between cuts, shape (k + 1,).

    The values are sorted in place.
    """
    values.sort()
    n_up_to_cut = count_at_most(cuts, values)
    n_below_cut = count_at_most(next_floats(cuts, -np.inf), values)
    n_at_cut = n_up_to_cut - n_below_cut
    n_between_cuts = np.append(n_below_cut, values.size) - np.append(0, n_up_to_cut)
    return n_at_cut, n_between_cuts
