"""Update and merge the states of streams, and compute metrics from them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, Self, TypeAlias, TypeVar

import numpy as np

from abstain._foundation.scored import MetricValue, Scored, undefined
from abstain._foundation.tie_groups import raise_uncounted
from abstain.errors import DomainError, InputError, UncountedError
from abstain.metrics import METRICS, Metric, Need, metric_named
from abstain.metrics.binned import BinnedLimits, Limits
from abstain.metrics.catalogue import DEFAULT_METRIC, FAMILIES
from abstain.metrics.entry import value_with_warning
from abstain.metrics.rank_weights import (
    RANK_ONLY_WEIGHTS,
    rank_weighted_risk_in_blocks,
    trapezoid_weight,
)
from abstain.streaming.groups import GroupCounts
from abstain.streaming.histogram import Histogram, nonempty_bins
from abstain.streaming.passes import CutCounts, FailureCounts
from abstain.streaming.runs import SortedRuns
from abstain.typing import AnyArray


class State(Protocol):
    """An immutable summary of a stream."""

    def updated(self, confidence: AnyArray, loss: AnyArray, weight: AnyArray | None = None) -> Self:
        """Add a batch to a state, and return the new state."""
        ...

    def merged(self, other: Self) -> Self:
        """Return the state of both streams."""
        ...


S = TypeVar("S", bound=State)

#: States whose metrics are exact. `FailureCounts` first needs a second pass.
Exact: TypeAlias = GroupCounts | FailureCounts | CutCounts | SortedRuns


def update(state: S, confidence: AnyArray, loss: AnyArray, weight: AnyArray | None = None) -> S:
    """Add a batch of samples to the state of a stream.

    Parameters
    ----------
    state : Histogram, GroupCounts, FailureCounts, CutCounts or SortedRuns
        The state, which is not modified.
    confidence : array of shape (n,)
        Confidences. A higher value is more confident. A histogram on the scale "probability"
        requires confidences in [0, 1].
    loss : array of shape (n,)
        Finite and non-negative losses. Except for histograms and sorted runs, losses must be 0 for
        a success or 1 for a failure.
    weight : array of shape (n,), optional
        Frequency weights. An integer weight w is equivalent to w copies of the sample. Samples
        with weight 0 are ignored. States that require a 0/1 loss do not support weights.

    Returns
    -------
    Histogram, GroupCounts, FailureCounts, CutCounts or SortedRuns
        A new state of the same type.

    Raises
    ------
    ShapeError
        If lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, or if a loss or weight is negative. DomainError is also
        raised for a confidence outside [0, 1] on the scale "probability", and for a loss other
        than 0 or 1 if the state requires 0/1 losses.
    InputError
        If weights are passed to a state that requires a 0/1 loss.

    Notes
    -----
    The result does not depend on the order of samples and batches, except for the rounding of sums
    of graded losses or fractional weights. The cost is one pass over the samples. Updating a
    histogram also requires one pass over its bins, so pass batches of thousands of samples. Exact
    states store new samples in a buffer, and sort them when the buffer is full.

    Examples
    --------
    >>> from abstain import streaming
    >>> state = streaming.update(streaming.init(), [0.9, 0.8], [0, 1])
    >>> streaming.update(state, [0.7], [0]).n
    3
    """
    return state.updated(confidence, loss, weight)


def merge(a: S, b: S) -> S:
    """Merge the states of two streams, such as the results of two processes.

    Parameters
    ----------
    a, b : Histogram, GroupCounts, FailureCounts, CutCounts or SortedRuns
        States of the same type, which are not modified. Two histograms must have the same scale
        and number of bins. States of second passes must have the same first pass.

    Returns
    -------
    Histogram, GroupCounts, FailureCounts, CutCounts or SortedRuns
        The state of the combined stream.

    Raises
    ------
    InputError
        If the states have different types or cannot be merged.

    Notes
    -----
    Merging is associative and commutative, except for the rounding of sums of graded losses or
    fractional weights. The cost is one pass over the states.

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
    """Return the samples of an exact state as input of metrics and intervals.

    Use the result for an interval or another statistic that `compute` does not return.

    Parameters
    ----------
    state : GroupCounts, CutCounts or SortedRuns
        The state of all samples.

    Returns
    -------
    Scored
        The samples, where one row may represent several tied samples. If a metric requires data
        that the state does not contain, it raises an `UncountedError` that names a suitable state.

    Raises
    ------
    InputError
        If the state is a first pass, or if the first and the second pass contain different
        samples.

    Notes
    -----
    The result needs memory for a few arrays with one entry per distinct confidence or cut. For
    sorted runs, the function reads and merges all files once.

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


#: Maximum relative difference between sums of the same terms in different orders.
_ROUNDING = 1e-12

_NEED_CHECKS: dict[Need, Callable[[Histogram], bool]] = {
    Need.BINARY_LOSS: lambda state: state.binary,
    Need.UNIT_LOSS: lambda state: state.largest_loss <= 1,
    Need.UNIT_CONFIDENCE: lambda state: bool(
        state.min_confidence.min() >= 0 and state.max_confidence.max() <= 1
    ),
}


@dataclass(frozen=True)
class Bounded:
    """The value of a metric of a stream, and limits of its exact value.

    Attributes
    ----------
    value : float
        The metric, computed as if the samples of each bin were tied. For CWSA, the value is the
        midpoint of the limits. The value is NaN if the metric is undefined.
    low, high : float
        Limits of the exact value for any order of samples within the bins. For an exact state,
        `value`, `low` and `high` are equal.

    Examples
    --------
    >>> from abstain.streaming import Bounded
    >>> Bounded(value=0.25, low=0.125, high=0.3125).error_bound
    0.125
    """

    value: float
    low: float
    high: float

    @property
    def error_bound(self) -> float:
        """Maximum difference between `value` and the exact value."""
        return max(self.high - self.value, self.value - self.low)


def compute(state: Histogram | Exact, metric: str = DEFAULT_METRIC) -> Bounded:
    """Compute a metric of a stream, with certified limits of its exact value.

    Parameters
    ----------
    state : Histogram, GroupCounts, CutCounts or SortedRuns
        A state that contains at least one sample.
    metric : str, default="augrc"
        Name of a metric. Histograms support "augrc", "aurc", "aurc_plugin", "aurc_log", "sele",
        "two_sele", "auarc", "failure_auroc", "selective_risk@80cov", "coverage@5risk", "cwsa@0.5"
        and "cwsa_plus@0.5", with any numbers. Exact states support any metric for which they have
        enough data.

    Returns
    -------
    Bounded
        The value and its limits, on the scale of the metric. For an exact state, the value and its
        limits are equal. If the metric is undefined or there are no samples, the value and its
        limits are NaN and an `UndefinedMetricWarning` is issued.

    Raises
    ------
    UnknownNameError
        If no metric has this name.
    InputError
        If the metric has no limits for a histogram. For an exact state without the data that the
        metric requires, the error is an UncountedError.
    DomainError
        If losses or confidences are outside the domain of the metric.

    Notes
    -----
    The order of the samples within a bin is unknown. For metrics that average over ties, the
    limits are the values for ascending and for descending losses in each bin. For 0/1 losses,
    these are the tightest possible limits. For "aurc" and the working points, the limits hold for
    any order and any ties of the samples in a bin. To allow for rounding errors, limits are
    widened by a relative 1e-12. The cost is one pass over the nonempty bins and does not depend on
    the number of samples.

    References
    ----------
    .. [1] Traub et al. (2024), eq. 6 and 7, https://arxiv.org/abs/2407.01032
    .. [2] Zhou et al. (2025), eq. 12-13, https://arxiv.org/abs/2410.15361

    Examples
    --------
    >>> from abstain import streaming
    >>> state = streaming.update(streaming.init(), [0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1])
    >>> streaming.compute(state, "augrc")
    Bounded(value=0.1875, low=0.1875, high=0.1875)
    """
    if not isinstance(state, Histogram):
        value = value_with_warning(_compute_exact(state, metric_named(metric)), metric)
        return Bounded(value, value, value)
    entry, binned = bounded_metric(metric)
    measured, limits = _value_and_limits(state, entry, binned)
    value = value_with_warning(measured, metric)
    if np.isnan(value) or limits is None:
        return Bounded(value, float("nan"), float("nan"))
    if state.exact:
        return Bounded(value, value, value)
    if binned.use_midpoint:
        value = (limits[0] + limits[1]) / 2
    margin = _ROUNDING * max(binned.rounding_scale, *map(abs, limits))
    return Bounded(value, min(limits[0] - margin, value), max(limits[1] + margin, value))


def bounded_metric(name: str) -> tuple[Metric, BinnedLimits]:
    """Return the functions for a metric of a histogram; raise InputError if there are none."""
    entry = metric_named(name)
    if entry.measurement.binned is not None:
        return entry, entry.measurement.binned
    available = [
        candidate.name
        for candidate in METRICS.values()
        if candidate.measurement.binned is not None and "@" not in candidate.name
    ]
    numbered = []
    for family in FAMILIES:
        example = family.parse(family.example_name)
        if example is not None and example.measurement.binned is not None:
            numbered.append(family.example_name)
    raise InputError(
        f"`metric` must have limits in bounded memory: {', '.join(available)}, "
        f"{', '.join(numbered[:-1])} or {numbered[-1]} (with any number); got {name!r}"
    )


def _compute_exact(state: Exact, entry: Metric) -> MetricValue:
    """Compute a metric of an exact state, or raise an error that names the missing data."""
    if isinstance(state, SortedRuns) and not state.fits_in_memory:
        return _compute_in_blocks(state, entry)
    samples = scored(state)
    if not samples.n_samples:
        return undefined("there are no samples")
    if Need.UNIT_CONFIDENCE in entry.measurement.needs and samples.probability is None:
        raise_uncounted(f"the metric {entry.name!r} ")
    unmet = entry.reason_not_applicable(samples)
    if unmet:
        raise DomainError(f"the metric {entry.name!r} {unmet}")
    try:
        return entry.compute(samples)
    except UncountedError as error:
        raise UncountedError(f"the metric {entry.name!r} {error}") from None


def _compute_in_blocks(state: SortedRuns, entry: Metric) -> MetricValue:
    """Compute a rank-weighted metric of more samples than fit in memory."""
    phi = entry.measurement.rank_weight
    if phi in RANK_ONLY_WEIGHTS or phi is trapezoid_weight:
        return MetricValue(rank_weighted_risk_in_blocks(state.groups, phi, state.total))
    try:
        return entry.compute(state.scored)
    except UncountedError as error:
        raise UncountedError(f"the metric {entry.name!r} {error}") from None


def _value_and_limits(
    state: Histogram, entry: Metric, binned: BinnedLimits
) -> tuple[MetricValue, Limits | None]:
    """Return the metric of a histogram and its limits, or None without samples."""
    if not state.n:
        return undefined("there are no samples"), None
    needs = [need for need in Need if need in entry.measurement.needs]
    unmet = [need.value for need in needs if not _NEED_CHECKS[need](state)]
    if unmet:
        raise DomainError(f"the metric {entry.name!r} {'; '.join(unmet)}")
    bins = nonempty_bins(state)
    measured = entry.compute(bins.as_scored)
    if measured.reason or state.exact:
        return measured, (measured.value, measured.value)
    return measured, binned.limits(bins)
