"""What can be said where influence functions cannot: no failures, only failures, no overlap.

All of it follows from a proportion and its exact (Clopper-Pearson) interval, and from the best and
the worst that any order makes of an error rate R.
"""

from collections.abc import Callable

import numpy as np

from abstain._foundation.scored import Measured, Scored
from abstain.inference.intervals import Interval
from abstain.inference.proportions import clopper_pearson
from abstain.metrics._entry import Metric
from abstain.metrics._influence_registry import share_asked
from abstain.metrics.excess_aurc import analytic_optimum
from abstain.typing import IntArray

#: The best and the worst value over all orders, for a 0/1 loss of mean R, in large samples.
Extremes = tuple[Callable[[float], float], Callable[[float], float]]


def _worst_aurc(r: float) -> float:
    return float(r - r * np.log(r)) if r > 0 else 0.0


def _entropy(r: float) -> float:
    """Worst less best AURC; it grows up to 1/2."""
    half = min(r, 0.5)
    return _worst_aurc(half) - analytic_optimum(half)


_AUGRC: Extremes = (lambda r: r * r / 2, lambda r: r - r * r / 2)
_AURC: Extremes = (analytic_optimum, _worst_aurc)

_BY_NAME: dict[str, Extremes] = {
    "augrc": _AUGRC,
    "sele": _AUGRC,
    "two_sele": (lambda r: r * r, lambda r: 2 * r - r * r),
    "aurc": _AURC,
    "aurc_plugin": _AURC,
    "aurc_log": _AURC,
    "achievable_aurc": (analytic_optimum, lambda r: r),
    "auarc": (lambda r: 1 - _worst_aurc(r), lambda r: 1 - analytic_optimum(r)),
    "e_aurc": (lambda _: 0.0, _entropy),
    "excess_augrc": (lambda _: 0.0, lambda r: min(r, 0.5) * (1 - min(r, 0.5))),
    "augrc_ranking": (lambda _: 0.0, lambda r: min(r, 0.5) * (1 - min(r, 0.5))),
    "augrc_classifier": (lambda r: r * r / 2, lambda r: r * r / 2),
    "accuracy": (lambda r: 1 - r, lambda r: 1 - r),
}


def extreme_interval(
    metric: Metric, s: Scored, measured: Measured, *, level: float, cluster: IntArray | None
) -> Interval | None:
    """Return an interval where nothing varies, or None when there is none to be had."""
    if not s.binary:
        return None
    n = independent(s, cluster)
    if s.groups.risk in {0.0, 1.0}:
        return _without_contrast(metric, s, n, measured.value, level=level)
    if metric.name in {"failure_auroc", "prr", "excess_augrc", "augrc_ranking"}:
        return _without_overlap(metric, s, measured.value, level)
    return _nothing_accepted_fails(metric, measured, n, level)


def independent(s: Scored, cluster: IntArray | None) -> float:
    """Return the number of independent samples that weights and clusters leave."""
    if s.weight is None and cluster is None:
        return float(s.n)
    weight = np.ones(s.n) if s.weight is None else s.weight
    if cluster is not None:
        weight = np.bincount(cluster, weights=weight).astype(np.float64)
    return float(weight.sum() ** 2 / np.square(weight).sum())


def _without_contrast(
    metric: Metric, s: Scored, n: float, value: float, *, level: float
) -> Interval | None:
    """No failures, or nothing else: the error rate may be up to (or from) its exact limit."""
    extremes = _BY_NAME.get(metric.name) or _at_coverage(metric)
    if extremes is None:
        return None
    failed = s.groups.risk > 0
    rate = clopper_pearson(n if failed else 0.0, n, level=level)
    ends = [f(r) for f in extremes for r in (rate.low, rate.high)]
    what = "every sample fails" if failed else "no failures"
    # The extremes are those of large samples; a small one may lie a step outside. Rounding may
    # take the value itself a hair out of its range.
    return Interval(
        max(min(*ends, value), metric.low),
        min(max(*ends, value), metric.high),
        level,
        "Clopper-Pearson on the error rate, best and worst order",
        note=f"{what}: one-sided, as far as the error rate and any order allow",
    )


def _at_coverage(metric: Metric) -> Extremes | None:
    kind, share = share_asked(metric.name)
    if kind == "generalized_risk":
        return (lambda r: max(0.0, r + share - 1), lambda r: min(r, share))
    if kind == "selective_risk" and share == 0:
        return (lambda r: float(r == 1), lambda r: float(r > 0))
    if kind == "selective_risk":
        return (lambda r: max(0.0, (r + share - 1) / share), lambda r: min(r / share, 1.0))
    return None


def _without_overlap(metric: Metric, s: Scored, value: float, level: float) -> Interval | None:
    """All failures on one side of all successes: AUROC_f is 1 or 0.

    Were it really a, the fewer of failures and successes would all be ranked right with a chance
    of at most a to the power of their number.
    """
    counted = np.ones(s.n, dtype=np.bool_) if s.weight is None else s.weight > 0
    failures = int(np.count_nonzero((s.loss > 0) & counted))
    # A sample of weight 0 is none.
    fewer = float(min(failures, int(np.count_nonzero(counted)) - failures))
    best = metric.high if metric.name in {"failure_auroc", "prr"} else 0.0
    if value != best or fewer < 1:
        return None
    auroc = clopper_pearson(fewer, fewer, level=level)
    risk = s.groups.risk
    ends = {
        "failure_auroc": (auroc.low, 1.0),
        "prr": (2 * auroc.low - 1, 1.0),
    }.get(metric.name, (0.0, (1 - auroc.low) * risk * (1 - risk)))
    method = "Clopper-Pearson on the fewer of failures and successes"
    return Interval(*ends, level, method, note="no overlap was seen: one-sided")


def _nothing_accepted_fails(
    metric: Metric, measured: Measured, n: float, level: float
) -> Interval | None:
    """Risk 0 at a working point: exact limit for the accepted, the threshold as it was found."""
    kind, share = share_asked(metric.name)
    if kind not in {"selective_risk", "generalized_risk"} or measured.value != 0:
        return None
    high = clopper_pearson(0.0, max(n * share, 1.0), level=level).high
    return Interval(
        0.0,
        high * (share if kind == "generalized_risk" else 1.0),
        level,
        "Clopper-Pearson among the accepted",
        note="none of the accepted fails: one-sided, the threshold taken as given",
    )
