"""Metrics of a state, with limits that hold wherever in their bins the samples lie."""

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from abstain._foundation.scored import Measured, Scored, undefined
from abstain.errors import DomainError, InputError
from abstain.metrics._entry import Metric, Need, value_of
from abstain.metrics._registry import metric_named
from abstain.streaming import _limits
from abstain.streaming._blocks import Blocks, blocks_of
from abstain.streaming.histogram import Histogram

# Sums in another order differ by less than this share.
_ROUNDING = 1e-12

#: Means over ties whose extremes are the losses of each bin sorted.
_AVERAGES = ("augrc", "aurc_plugin", "aurc_log", "sele", "two_sele", "failure_auroc")
_AREAS = ("aurc", "auarc")
_NAMED = re.compile(r"(selective_risk|coverage|cwsa|cwsa_plus)@([0-9.]+)(?:cov|risk)?")

_OF_NUMBER: dict[str, Callable[[Blocks, float], _limits.Limits]] = {
    "selective_risk": lambda blocks, percent: _limits.selective_risk_limits(blocks, percent / 100),
    "coverage": lambda blocks, percent: _limits.coverage_limits(blocks, percent / 100),
    "cwsa": _limits.cwsa_limits,
    "cwsa_plus": _limits.cwsa_plus_limits,
}

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


def compute(state: Histogram, metric: str = "augrc") -> Bounded:
    """Compute a metric of a stream, with certified limits.

    Answers: what is this number, and how far can the exact one be from it?

    Parameters
    ----------
    state : Histogram
        Of at least one sample.
    metric : str, default="augrc"
        "augrc", "aurc", "aurc_plugin", "aurc_log", "sele", "two_sele", "auarc",
        "failure_auroc", "selective_risk@80cov", "coverage@5risk", "cwsa@0.5" or "cwsa_plus@0.5",
        with numbers of your own.

    Returns
    -------
    Bounded
        In the units, range and direction of the metric. NaN, with an `UndefinedMetricWarning`,
        when the metric is undefined or there are no samples.

    Raises
    ------
    UnknownNameError
        If there is no such metric.
    InputError
        If the metric has no limits here.
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
    entry = bounded_metric(metric)
    measured, limits = _measured(state, entry, metric)
    value = value_of(measured, metric)
    if np.isnan(value) or limits is None:
        return Bounded(value, float("nan"), float("nan"))
    if state.exact:
        return Bounded(value, value, value)
    if entry.family == "cwsa":
        # Bins at their upper ends flatter successes; the middle is far closer.
        value = (limits[0] + limits[1]) / 2
    # 1 - AURC is rounded as a number near 1 is.
    margin = _ROUNDING * max(1.0 if metric == "auarc" else 0.0, *map(abs, limits))
    return Bounded(value, min(limits[0] - margin, value), max(limits[1] + margin, value))


def bounded_metric(name: str) -> Metric:
    """Return the catalogue's entry of a metric that has limits here, or refuse it."""
    entry = metric_named(name)
    if name in _AVERAGES + _AREAS or _NAMED.fullmatch(name):
        return entry
    known = ", ".join((*_AVERAGES, *_AREAS))
    msg = (
        f"`metric` must be one whose error in bounded memory is known: {known}, "
        "selective_risk@80cov, coverage@5risk, cwsa@0.5 or cwsa_plus@0.5 (any number); "
        f"got {name!r}"
    )
    raise InputError(msg)


def _measured(state: Histogram, entry: Metric, name: str) -> tuple[Measured, _limits.Limits | None]:
    if not state.n:
        return undefined("there are no samples"), None
    unmet = [need.value for need in Need if need in entry.needs and not _CHECKS[need](state)]
    if unmet:
        msg = f"the metric {entry.name!r} {'; '.join(unmet)}"
        raise DomainError(msg)
    blocks = blocks_of(state)
    measured = entry.compute(_tied(blocks))
    if measured.reason or state.exact:
        return measured, (measured.value, measured.value)
    return measured, _limits_of(blocks, entry, name)


def _tied(blocks: Blocks) -> Scored:
    groups = blocks.as_they_are()
    return Scored(
        groups.confidence, groups.loss, probability=groups.confidence, known_groups=groups
    )


def _limits_of(blocks: Blocks, entry: Metric, name: str) -> _limits.Limits:
    if name in _AREAS:
        low, high = _limits.trapezoid_limits(blocks)
        return (low, high) if name == "aurc" else (1 - high, 1 - low)
    named = _NAMED.fullmatch(name)
    if named is not None:
        return _OF_NUMBER[named[1]](blocks, float(named[2]))
    best, worst = (blocks.packed(best=best) for best in (True, False))
    values = [
        entry.compute(Scored(groups.confidence, groups.loss, known_groups=groups)).value
        for groups in (best, worst)
    ]
    return min(values), max(values)
