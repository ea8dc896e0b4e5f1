"""Exact in two passes: the confidences of the failures first, counts at and between them second."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import read_only
from abstain._foundation.counts import scored_from_merged_groups
from abstain._foundation.scored import Scored
from abstain._foundation.tie_groups import TieGroups
from abstain.errors import InputError, UncountedError
from abstain.streaming.groups import Binary
from abstain.streaming.tally import (
    WAITING,
    Tally,
    are_many,
    empty_tally,
    neighbors,
    passed,
    with_one_more,
)
from abstain.typing import AnyArray, Array, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class FailureCounts:
    """What the first of two passes keeps: the distinct confidences of the failures, with counts.

    Made by `first_pass`, `update` and `merge`; `second_pass` goes on from it.

    Attributes
    ----------
    n : int
        Number of samples seen.
    tally : Tally
        The confidences of the failures.
    precision : int
        Bits of the widest floating type of the confidences.

    Examples
    --------
    >>> from abstain import streaming
    >>> first = streaming.update(streaming.first_pass(), [0.9, 0.8, 0.7], [0, 1, 0])
    >>> first.n, first.failures, first.confidence.tolist()
    (3, 1, [0.8])
    """

    n: int
    tally: Tally
    precision: int = 16

    @property
    def failures(self) -> int:
        """Number of failures."""
        settled = self.tally.settled
        return int(settled.count.sum())

    @property
    def confidence(self) -> Array:
        """The distinct confidences of the failures, ascending."""
        return self.tally.settled.value

    @property
    def count(self) -> IntArray:
        """How many failures have each, shape as `confidence`."""
        return self.tally.settled.count

    def updated(
        self, confidence: AnyArray, loss: AnyArray, weight: AnyArray | None = None
    ) -> "FailureCounts":
        """Return the state with a batch too: see `streaming.update`."""
        batch = Binary.of(confidence, loss, weight)
        tally = self.tally.adding(batch.confidence[batch.failed])
        bits = max(self.precision, 8 * batch.confidence.dtype.itemsize)
        return FailureCounts(self.n + batch.failed.size, tally, bits)

    def merged(self, other: "FailureCounts") -> "FailureCounts":
        """Return the state of both streams: see `streaming.merge`."""
        bits = max(self.precision, other.precision)
        return FailureCounts(self.n + other.n, self.tally.joined(other.tally), bits)


def first_pass() -> FailureCounts:
    """Make the state of the first of two passes over a stream, before its first sample.

    Answers: how do I get exact numbers of more samples than fit in memory?

    Returns
    -------
    FailureCounts
        With no samples.

    Notes
    -----
    For a 0/1 loss without weights. A success is counted and forgotten; of a failure the confidence
    is kept, 12 bytes for each that is distinct in float32, 16 in float64.

    Examples
    --------
    >>> from abstain import streaming
    >>> first = streaming.update(streaming.first_pass(), [0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1])
    >>> second = streaming.update(streaming.second_pass(first), [0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1])
    >>> streaming.compute(second, "augrc").value
    0.1875
    """
    return FailureCounts(0, empty_tally())


@dataclass(frozen=True, eq=False)
class CutCounts:
    """What the second of two passes keeps: how many successes lie at and between the cuts.

    Cuts are the confidences of the failures, and such as were asked for. Made by `second_pass`,
    `update` and `merge`.

    Attributes
    ----------
    first : FailureCounts
        The first pass, over all samples.
    cut : ndarray of shape (k,)
        Ascending.
    failed : ndarray of shape (k,)
        Failures at each cut.
    at : ndarray of shape (k,)
        Successes at each cut, of those that are sorted in: see `settled`.
    between : ndarray of shape (k + 1,)
        Successes below the first cut, between each two, and above the last.
    seen : int
        Number of samples seen in this pass.
    seen_failures : int
        Failures among them.

    Examples
    --------
    >>> from abstain import streaming
    >>> batch = [0.9, 0.8, 0.7], [0, 1, 0]
    >>> first = streaming.update(streaming.first_pass(), *batch)
    >>> second = streaming.update(streaming.second_pass(first), *batch).settled
    >>> second.cut.tolist(), second.at.tolist(), second.between.tolist()
    ([0.8], [0], [1, 1])
    """

    first: FailureCounts
    cut: Array
    failed: IntArray
    at: IntArray
    between: IntArray
    seen: int = 0
    seen_failures: int = 0
    waiting: tuple[Array, ...] = ()

    def __post_init__(self) -> None:
        """Seal the arrays: states share them."""
        for name in ("cut", "failed", "at", "between"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @cached_property
    def settled(self) -> "CutCounts":
        """The same with all successes counted."""
        if not self.waiting:
            return self
        at, between = counted_by(self.cut, np.concatenate(self.waiting))
        return replace(self, at=self.at + at, between=self.between + between, waiting=())

    def updated(
        self, confidence: AnyArray, loss: AnyArray, weight: AnyArray | None = None
    ) -> "CutCounts":
        """Return the state with a batch too: see `streaming.update`."""
        batch = Binary.of(confidence, loss, weight)
        right = batch.confidence[~batch.failed]
        failures = batch.failed.size - right.size
        out = replace(
            self,
            seen=self.seen + batch.failed.size,
            seen_failures=self.seen_failures + failures,
            waiting=with_one_more(self.waiting, right) if right.size else self.waiting,
        )
        return out.settled if are_many(out.waiting, max(WAITING, 4 * self.cut.nbytes)) else out

    def merged(self, other: "CutCounts") -> "CutCounts":
        """Return the state of both streams: see `streaming.merge`."""
        one, two = self.settled, other.settled
        same = np.array_equal(one.cut, two.cut) and np.array_equal(one.failed, two.failed)
        if not same or one.first.n != two.first.n:
            raise InputError(
                "`a` and `b` must go on from one first pass, over all samples, with the same cuts; "
                f"got one of {one.first.n} samples with {one.cut.size} cuts and one of "
                f"{two.first.n} with {two.cut.size}"
            )
        return replace(
            one,
            at=one.at + two.at,
            between=one.between + two.between,
            seen=one.seen + two.seen,
            seen_failures=one.seen_failures + two.seen_failures,
        )

    def accepted(self, threshold: float) -> tuple[int, int]:
        """Return how many samples reach a threshold that is a cut, and how many of them fail."""
        kind = self.cut.dtype.type
        place = int(np.searchsorted(self.cut, kind(threshold)))
        if place == self.cut.size or self.cut[place] != kind(threshold):
            raise UncountedError(
                "`threshold` must be a cut, where counts are kept; got "
                f"{threshold!r}. Pass it to `streaming.second_pass(first, cuts=[...])`"
            )
        self._check_both_passes_match()
        counts = self.settled
        n_failures = int(counts.failed[place:].sum())
        n_successes = int(counts.at[place:].sum() + counts.between[place + 1 :].sum())
        return n_failures + n_successes, n_failures

    @cached_property
    def scored(self) -> Scored:
        """The counts by confidence, as metrics take them: see `streaming.scored`."""
        self._check_both_passes_match()
        counts = self.settled
        # The groups from the most confident on: above the last cut, at it, below it, and so on.
        at_cuts = slice(1, None, 2)
        between_cuts = slice(0, None, 2)
        n_groups = 2 * counts.cut.size + 1
        n_successes = np.empty(n_groups)
        n_successes[at_cuts] = counts.at[::-1]
        n_successes[between_cuts] = counts.between[::-1]
        n_failures = np.zeros(n_groups)
        n_failures[at_cuts] = counts.failed[::-1]
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
        first, second = (self.first.n, self.first.failures), (self.seen, self.seen_failures)
        if first != second:
            raise InputError(
                "`state` must have seen in its second pass what the first had seen, "
                f"{first[0]} samples of which {first[1]} fail; got {second[0]}, of which "
                f"{second[1]} fail. Pass the same files to both"
            )


def _group_confidences(state: CutCounts) -> Array:
    """Return each cut, and between two the lowest threshold that accepts what lies there."""
    kind = np.dtype(f"f{state.first.precision // 8}")
    cut = state.cut[::-1].astype(kind)
    values = np.empty(2 * cut.size + 1, kind)
    values[1::2] = cut
    values[:-1:2] = neighbors(cut, np.inf)
    values[-1] = np.finfo(kind).min
    return values


def second_pass(first: FailureCounts, *, cuts: Sequence[float] | FloatArray = ()) -> CutCounts:
    """Make the state of the second of two passes, before its first sample.

    Answers: how do I go on, once the confidences of all failures are known?

    Parameters
    ----------
    first : FailureCounts
        Of all samples: where several processes read parts, their states merged.
    cuts : array of shape (c,), optional
        Further thresholds at which counts are kept, compared in the precision of the confidences.

    Returns
    -------
    CutCounts
        With no samples.

    Raises
    ------
    ShapeError, DomainError
        If `cuts` has other than one axis or holds NaN or infinities.

    Notes
    -----
    Exact for every metric that needs no confidence of single successes: AUGRC, the AURC that
    averages over ties, SELE, failure AUROC, working points at a coverage or a risk, and the
    analytic intervals of the first four. Keeps 28 bytes a cut in float32, whatever n.

    References
    ----------
    .. [1] Ours: over successes the accepted failures are constant, so that all that depends on
       order has a closed form there (`docs/design.md`).

    Examples
    --------
    >>> from abstain import streaming
    >>> first = streaming.update(streaming.first_pass(), [0.9, 0.8], [0, 1])
    >>> second = streaming.update(streaming.second_pass(first), [0.9, 0.8], [0, 1])
    >>> streaming.compute(second, "failure_auroc").value
    1.0
    """
    kind = np.dtype(f"f{first.precision // 8}")
    tally = first.tally.at(kind)
    cut, failed = tally.value, tally.count
    if len(cuts):
        asked = checks.finite(checks.vector(cuts, "cuts"), "cuts").astype(kind)
        new = np.setdiff1d(asked, cut)
        cut = np.concatenate((cut, new))
        order = np.argsort(cut, kind="stable")
        cut = cut[order]
        failed = np.concatenate((failed, np.zeros(new.size, np.int64)))[order]
    settled = replace(first, tally=tally)
    nothing = np.zeros(cut.size, np.int64)
    return CutCounts(settled, cut, failed, nothing, np.zeros(cut.size + 1, np.int64))


def counted_by(cut: Array, values: Array) -> tuple[IntArray, IntArray]:
    """Return how many values are at each of the cuts, (k,), and between them, (k + 1,).

    The values are sorted in their place.
    """
    values.sort()
    high = passed(cut, values)
    low = passed(neighbors(cut, -np.inf), values)
    begin, end = np.append(0, high), np.append(low, values.size)
    return high - low, end - begin
