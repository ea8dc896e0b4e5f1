"""What every state does: take a batch, join another, and end as what metrics take."""

from typing import Protocol, Self, TypeAlias, TypeVar

from abstain._foundation.scored import Scored
from abstain.errors import InputError
from abstain.streaming.groups import GroupCounts
from abstain.streaming.passes import CutCounts, FailureCounts
from abstain.streaming.runs import SortedRuns
from abstain.typing import AnyArray


class State(Protocol):
    """What is kept of a stream; frozen."""

    def updated(self, confidence: AnyArray, loss: AnyArray, weight: AnyArray | None = None) -> Self:
        """Return the state with a batch too."""
        ...

    def merged(self, other: Self) -> Self:
        """Return the state of both streams."""
        ...


S = TypeVar("S", bound=State)

#: What loses nothing; a first pass is not at its end.
Exact: TypeAlias = GroupCounts | FailureCounts | CutCounts | SortedRuns


def update(state: S, confidence: AnyArray, loss: AnyArray, weight: AnyArray | None = None) -> S:
    """Add samples to a state.

    Answers: what do I keep after these samples too?

    Parameters
    ----------
    state : Histogram, GroupCounts, FailureCounts, CutCounts or SortedRuns
        Stays as it is.
    confidence : array of shape (n,)
        Higher means more trusted; within [0, 1] for a histogram on the scale "probability".
    loss : array of shape (n,)
        Finite and non-negative; 1 for an error under 0/1 loss, which states that count need.
    weight : array of shape (n,), optional
        Frequency weights: an integer weight counts a sample that many times. Rows with weight 0
        are ignored; a batch may have no other. None for states that need a 0/1 loss.

    Returns
    -------
    Histogram, GroupCounts, FailureCounts, CutCounts or SortedRuns
        A new state, of the same kind.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, a loss or weight is negative, a confidence is outside
        [0, 1] on the scale "probability", or a loss is neither 0 nor 1 for a state that needs it.
    InputError
        If there are weights for such a state.

    Notes
    -----
    Order and batches do not matter: for 0/1 losses and integer weights not at all (up to 2^53),
    for others up to the rounding of sums in float64. Cost: one pass over the samples, and for a
    histogram one over the bins, so give samples by the thousand; exact states sort and count what
    has come when it is as much as what they hold.

    Examples
    --------
    >>> from abstain import streaming
    >>> state = streaming.update(streaming.init(), [0.9, 0.8], [0, 1])
    >>> streaming.update(state, [0.7], [0]).n
    3
    """
    return state.updated(confidence, loss, weight)


def merge(a: S, b: S) -> S:
    """Join the states of two streams.

    Answers: what would one process keep that had seen both streams?

    Parameters
    ----------
    a, b : Histogram, GroupCounts, FailureCounts, CutCounts or SortedRuns
        Of the same kind: histograms of the same scale and number of bins, second passes that go on
        from the same first one. They stay as they are.

    Returns
    -------
    Histogram, GroupCounts, FailureCounts, CutCounts or SortedRuns
        A new state.

    Raises
    ------
    InputError
        If they are not of the same kind.

    Notes
    -----
    Associative and commutative, exactly for 0/1 losses and integer weights, else up to the
    rounding of sums. Cost: one pass over what is kept.

    Examples
    --------
    >>> from abstain import streaming
    >>> one = streaming.update(streaming.init(), [0.9, 0.8], [0, 1])
    >>> two = streaming.update(streaming.init(), [0.7], [0])
    >>> streaming.merge(one, two).n
    3
    """
    if type(a) is not type(b):
        raise InputError(
            f"`a` and `b` must be states of one kind; got {type(a).__name__} and {type(b).__name__}"
        )
    return a.merged(b)


def scored(state: Exact) -> Scored:
    """Return the samples of an exact state as all metrics and intervals take them.

    Answers: how do I compute anything else of a stream than `compute` gives?

    Parameters
    ----------
    state : GroupCounts, CutCounts or SortedRuns
        After its last sample.

    Returns
    -------
    Scored
        Its rows stand for many samples each. A metric that needs what the state does not keep
        raises an `UncountedError` that names the state that does.

    Raises
    ------
    InputError
        If the state is not at its end: a first pass, or a second one that has not seen the samples
        of the first.

    Notes
    -----
    Cost: a few arrays as long as there are distinct confidences, or cuts, and for sorted runs one
    merge of the files.

    Examples
    --------
    >>> from abstain import streaming
    >>> from abstain.metrics import METRICS
    >>> from abstain.metrics.intervals import interval_of
    >>> batch = [0.9, 0.8, 0.7, 0.6, 0.5], [0, 1, 0, 1, 1]
    >>> first = streaming.update(streaming.first_pass(), *batch)
    >>> second = streaming.update(streaming.second_pass(first), *batch)
    >>> interval = interval_of(METRICS["augrc"], streaming.scored(second))
    >>> round(interval.low, 3), round(interval.high, 3)
    (0.014, 0.478)
    """
    if isinstance(state, FailureCounts):
        raise InputError(
            "`state` must be that of a second pass; got a first one, which knows no successes. Go "
            "on with `streaming.second_pass(state)` over the same samples"
        )
    return state.scored
