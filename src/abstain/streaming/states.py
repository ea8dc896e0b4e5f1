"""Operations on the states of streams: update, merge, and conversion to samples for metrics."""

from typing import Protocol, Self, TypeAlias, TypeVar

from abstain._foundation.scored import Scored
from abstain.errors import InputError
from abstain.streaming.groups import GroupCounts
from abstain.streaming.passes import CutCounts, FailureCounts
from abstain.streaming.runs import SortedRuns
from abstain.typing import AnyArray


class State(Protocol):
    """Immutable summary of a stream."""

    def updated(self, confidence: AnyArray, loss: AnyArray, weight: AnyArray | None = None) -> Self:
        """Return the state with a batch added."""
        ...

    def merged(self, other: Self) -> Self:
        """Return the state of both streams."""
        ...


S = TypeVar("S", bound=State)

#: States whose metrics are exact. `FailureCounts` needs a second pass first.
Exact: TypeAlias = GroupCounts | FailureCounts | CutCounts | SortedRuns


def update(state: S, confidence: AnyArray, loss: AnyArray, weight: AnyArray | None = None) -> S:
    """Add a batch of samples to a state.

    Answers: how do I process the next batch of a stream?

    Parameters
    ----------
    state : Histogram, GroupCounts, FailureCounts, CutCounts or SortedRuns
        The state; it is not modified.
    confidence : array of shape (n,)
        Higher means more trusted; within [0, 1] for a histogram on the scale "probability".
    loss : array of shape (n,)
        Finite and non-negative; 1 for an error under 0/1 loss. GroupCounts, FailureCounts and
        CutCounts require a 0/1 loss.
    weight : array of shape (n,), optional
        Frequency weights: an integer weight counts a sample that many times. Rows with weight 0
        are ignored, and a batch may consist of such rows. States that require a 0/1 loss do not
        support weights.

    Returns
    -------
    Histogram, GroupCounts, FailureCounts, CutCounts or SortedRuns
        A new state of the same type.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, a loss or weight is negative, a confidence is outside
        [0, 1] on the scale "probability", or a loss is not 0 or 1 and the state requires a 0/1
        loss.
    InputError
        If weights are passed to a state that requires a 0/1 loss.

    Notes
    -----
    The result does not depend on the order of samples and batches: exactly for 0/1 losses and
    integer weights (up to 2^53), up to the rounding of float64 sums otherwise. Cost: one pass over
    the samples, and for a histogram one pass over the bins, so pass batches of thousands of
    samples. Exact states buffer new samples and sort them when the buffer is as large as the
    counts.

    Examples
    --------
    >>> from abstain import streaming
    >>> state = streaming.update(streaming.init(), [0.9, 0.8], [0, 1])
    >>> streaming.update(state, [0.7], [0]).n
    3
    """
    return state.updated(confidence, loss, weight)


def merge(a: S, b: S) -> S:
    """Merge the states of two streams.

    Answers: how do I combine the results of two processes?

    Parameters
    ----------
    a, b : Histogram, GroupCounts, FailureCounts, CutCounts or SortedRuns
        States of the same type: histograms with the same scale and number of bins, or second passes
        that continue the same first pass. They are not modified.

    Returns
    -------
    Histogram, GroupCounts, FailureCounts, CutCounts or SortedRuns
        A new state.

    Raises
    ------
    InputError
        If the states are of different types or cannot be merged.

    Notes
    -----
    Merging is associative and commutative: exactly for 0/1 losses and integer weights, up to the
    rounding of sums otherwise. Cost: one pass over the states.

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
            "`a` and `b` must be states of the same type; got "
            f"{type(a).__name__} and {type(b).__name__}"
        )
    return a.merged(b)


def scored(state: Exact) -> Scored:
    """Return the samples of an exact state in the form that metrics and intervals require.

    Answers: how do I compute an interval, or another statistic that `compute` does not return?

    Parameters
    ----------
    state : GroupCounts, CutCounts or SortedRuns
        The state after the last sample.

    Returns
    -------
    Scored
        Each row represents several samples. A metric that needs data which the state does not have
        raises an `UncountedError` that names a suitable state.

    Raises
    ------
    InputError
        If the state is a first pass, or a second pass with other samples than the first.

    Notes
    -----
    Memory: a few arrays with one entry per distinct confidence or cut. For sorted runs, the files
    are merged once.

    Examples
    --------
    >>> from abstain import streaming
    >>> from abstain.metrics import METRICS
    >>> from abstain.metrics.intervals import interval_of_metric
    >>> batch = [0.9, 0.8, 0.7, 0.6, 0.5], [0, 1, 0, 1, 1]
    >>> first = streaming.update(streaming.first_pass(), *batch)
    >>> second = streaming.update(streaming.second_pass(first), *batch)
    >>> interval = interval_of_metric(METRICS["augrc"], streaming.scored(second))
    >>> round(interval.low, 3), round(interval.high, 3)
    (0.014, 0.478)
    """
    if isinstance(state, FailureCounts):
        raise InputError(
            "`state` must be a second pass; got a first pass, which does not count successes. "
            "Continue with `streaming.second_pass(state)` over the same samples"
        )
    return state.scored
