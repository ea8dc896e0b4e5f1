"""Metrics of a state, with limits that hold wherever in their bins the samples lie."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from abstain._foundation.measurement import MetricValue, undefined
from abstain._foundation.tie_groups import raise_uncounted
from abstain.errors import DomainError, InputError, UncountedError
from abstain.metrics import METRICS, Metric, Need, metric_named
from abstain.metrics.blocks import Binned, Limits
from abstain.metrics.catalogue import FAMILIES, PRIMARY
from abstain.metrics.entry import value_of
from abstain.metrics.rank_weights import BY_PLACE, risk_in_blocks, trapezoid_weight
from abstain.streaming.histogram import Histogram, blocks_of
from abstain.streaming.runs import SortedRuns
from abstain.streaming.states import Exact, scored

# Sums in another order differ by less than this share.
_ROUNDING = 1e-12

_CHECKS: dict[Need, Callable[[Histogram], bool]] = {
    Need.BINARY_LOSS: lambda state: state.binary,
    Need.UNIT_LOSS: lambda state: state.largest_loss <= 1,
    Need.UNIT_CONFIDENCE: lambda s: bool(s.least.min() >= 0 and s.most.max() <= 1),
}


@dataclass(frozen=True)
class Bounded:
    """A metric of a stream and limits of what it would be had all samples been kept.

    Attributes
    ----------
    value : float
        The metric with each bin taken for one tie (CWSA: the middle of the limits); NaN when it
        is undefined.
    low, high : float
        The exact value lies between them, whatever the order within the bins. All three are
        equal when nothing was lost.

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
        """The most by which the value can differ from the exact one."""
        return max(self.high - self.value, self.value - self.low)


def compute(state: Histogram | Exact, metric: str = PRIMARY) -> Bounded:
    """Compute a metric of a stream, with certified limits.

    Answers: what is this number, and how far can the exact one be from it?

    Parameters
    ----------
    state : Histogram, GroupCounts, CutCounts or SortedRuns
        Of at least one sample.
    metric : str, default="augrc"
        Of a histogram "augrc", "aurc", "aurc_plugin", "aurc_log", "sele", "two_sele", "auarc",
        "failure_auroc", "selective_risk@80cov", "coverage@5risk", "cwsa@0.5" or "cwsa_plus@0.5",
        with numbers of your own; of an exact state whatever it keeps enough for.

    Returns
    -------
    Bounded
        In the units, range and direction of the metric, three times the same number for an exact
        state. NaN, with an `UndefinedMetricWarning`, when the metric is undefined or there are no
        samples.

    Raises
    ------
    UnknownNameError
        If there is no such metric.
    InputError
        If the metric has no limits here; an UncountedError if an exact state keeps too little.
    DomainError
        If the losses or the confidences are not what the metric needs.

    Notes
    -----
    For metrics that are means over ties the limits are the values with the losses of each bin
    sorted, lowest loss most confident and the other way round: for 0/1 losses the tightest
    limits there are. For vertex metrics ("aurc", the working points) they hold for every choice
    of vertices within a bin. A bin whose samples share one confidence is a tie and adds nothing
    to the error. Limits of bins that are no ties are widened by 1e-12 of the value for the
    rounding of sums. Cost: one pass over the bins that hold samples, whatever n.

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
        value = value_of(_exactly(state, metric_named(metric)), metric)
        return Bounded(value, value, value)
    entry, binned = bounded_metric(metric)
    measured, limits = _measured(state, entry, binned)
    value = value_of(measured, metric)
    if np.isnan(value) or limits is None:
        return Bounded(value, float("nan"), float("nan"))
    if state.exact:
        return Bounded(value, value, value)
    if binned.central:
        value = (limits[0] + limits[1]) / 2
    margin = _ROUNDING * max(binned.size, *map(abs, limits))
    return Bounded(value, min(limits[0] - margin, value), max(limits[1] + margin, value))


def bounded_metric(name: str) -> tuple[Metric, Binned]:
    """Return the catalogue's entry of a metric that has limits here and these, or refuse it."""
    entry = metric_named(name)
    if entry.measurement.binned is not None:
        return entry, entry.measurement.binned
    numbered = [f.shown for f in FAMILIES if (made := f.named(f.shown)) and made.measurement.binned]
    known = [m.name for m in METRICS.values() if m.measurement.binned and "@" not in m.name]
    raise InputError(
        f"`metric` must be one whose error in bounded memory is known: {', '.join(known)}, "
        f"{' or '.join((', '.join(numbered[:-1]), numbered[-1]))} (any number); got {name!r}"
    )


def _exactly(state: Exact, entry: Metric) -> MetricValue:
    if isinstance(state, SortedRuns) and not state.fits:
        return _in_blocks(state, entry)
    s = scored(state)
    if not s.n_samples:
        return undefined("there are no samples")
    if Need.UNIT_CONFIDENCE in entry.measurement.needs and s.probability is None:
        raise_uncounted(f"the metric {entry.name!r} ")
    if unmet := entry.reason_not_applicable(s):
        raise DomainError(f"the metric {entry.name!r} {unmet}")
    try:
        return entry.compute(s)
    except UncountedError as error:
        raise UncountedError(f"the metric {entry.name!r} {error}") from None


def _in_blocks(state: SortedRuns, entry: Metric) -> MetricValue:
    phi = entry.measurement.rank_weight
    if phi in BY_PLACE or phi is trapezoid_weight:
        return MetricValue(risk_in_blocks(state.groups, phi, state.total))
    try:
        return entry.compute(state.scored)
    except UncountedError as error:
        raise UncountedError(f"the metric {entry.name!r} {error}") from None


def _measured(state: Histogram, entry: Metric, binned: Binned) -> tuple[MetricValue, Limits | None]:
    if not state.n:
        return undefined("there are no samples"), None
    unmet = [
        need.value for need in Need if need in entry.measurement.needs and not _CHECKS[need](state)
    ]
    if unmet:
        raise DomainError(f"the metric {entry.name!r} {'; '.join(unmet)}")
    blocks = blocks_of(state)
    measured = entry.compute(blocks.tied)
    if measured.reason or state.exact:
        return measured, (measured.value, measured.value)
    return measured, binned.limits(blocks)
