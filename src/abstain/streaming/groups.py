"""Exact in one pass: every distinct confidence, with its successes and its failures."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from abstain._foundation import checks
from abstain._foundation.counts import scored_from_groups
from abstain._foundation.scored import Scored
from abstain._foundation.tie_groups import TieGroups
from abstain.errors import InputError
from abstain.streaming.tally import Tally, empty_tally
from abstain.typing import AnyArray, Array, BoolArray

_ELSEWHERE = "`streaming.sorted_runs` keeps weights and graded losses"


class Binary(NamedTuple):
    """A batch of samples with a 0/1 loss."""

    confidence: Array
    failed: BoolArray

    @classmethod
    def of(cls, confidence: AnyArray, loss: AnyArray, weight: AnyArray | None) -> "Binary":
        """Check a batch; refuse weights and graded losses."""
        c = checks.confidence(confidence)
        x = checks.loss(loss, length=c.size)
        if weight is not None:
            raise InputError(f"`weight` must be None for a state that counts samples; {_ELSEWHERE}")
        checks.reject_swapped_arguments(c, x)
        failed = x != 0
        if x.dtype.kind != "b" and not (x[failed] == 1).all():
            checks.binary_loss(x, required_by=f"a state that counts failures ({_ELSEWHERE})")
        return cls(c, failed)


@dataclass(frozen=True, eq=False)
class GroupCounts:
    """What is kept of a stream in one pass: its tie groups, exactly.

    Made by `one_pass`, `update` and `merge`.

    Attributes
    ----------
    right, wrong : Tally
        The confidences of the successes and of the failures.
    n : int
        Number of samples seen.
    precision : int
        Bits of the widest floating type of the confidences.

    Examples
    --------
    >>> from abstain import streaming
    >>> state = streaming.update(streaming.one_pass(), [0.9, 0.8, 0.8], [0, 1, 0])
    >>> state.n, state.right.settled.value.tolist(), state.wrong.settled.value.tolist()
    (3, [0.8, 0.9], [0.8])
    """

    right: Tally
    wrong: Tally
    n: int = 0
    precision: int = 16

    def updated(
        self, confidence: AnyArray, loss: AnyArray, weight: AnyArray | None = None
    ) -> "GroupCounts":
        """Return the state with a batch too: see `streaming.update`."""
        batch = Binary.of(confidence, loss, weight)
        c, failed = batch
        return GroupCounts(
            self.right.adding(c[~failed]),
            self.wrong.adding(c[failed]),
            self.n + failed.size,
            max(self.precision, 8 * c.dtype.itemsize),
        )

    def merged(self, other: "GroupCounts") -> "GroupCounts":
        """Return the state of both streams: see `streaming.merge`."""
        return GroupCounts(
            self.right.joined(other.right),
            self.wrong.joined(other.wrong),
            self.n + other.n,
            max(self.precision, other.precision),
        )

    @property
    def settled(self) -> "GroupCounts":
        """The same with all samples counted, which takes less memory."""
        return replace(self, right=self.right.settled, wrong=self.wrong.settled)

    @cached_property
    def scored(self) -> Scored:
        """The samples as metrics take them: see `streaming.scored`."""
        kind = np.dtype(f"f{self.precision // 8}")
        right, wrong = self.right.at(kind), self.wrong.at(kind)
        both = right.joined(wrong)
        failed = np.zeros(both.value.size)
        failed[np.searchsorted(both.value, wrong.value)] = wrong.count
        weight = both.count.astype(np.float64)
        return scored_from_groups(TieGroups(both.value[::-1], weight[::-1], failed[::-1]))


def one_pass() -> GroupCounts:
    """Make the state of an exact stream of one pass, before its first sample.

    Answers: how do I get every exact number of a stream whose confidences repeat themselves?

    Returns
    -------
    GroupCounts
        With no samples.

    Notes
    -----
    For a 0/1 loss without weights. Keeps 12 bytes for each distinct confidence in float32, 16 in
    float64. Probabilities in float32 have 8.4 million values between 1/2 and 1 and as many in
    each octave below, so that a billion of them fit; float64 scores hardly ever repeat, and then
    `first_pass` keeps a few per cent of what this keeps. Serves the whole catalogue but for what
    needs labels or classes.

    Examples
    --------
    >>> from abstain import streaming
    >>> state = streaming.update(streaming.one_pass(), [0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1])
    >>> streaming.compute(state, "aurc").value
    0.2708333333333333
    """
    return GroupCounts(empty_tally(), empty_tally())
