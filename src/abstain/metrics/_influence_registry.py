"""Which metric has an influence function, by name, and why the others have none."""

import re
from collections.abc import Callable
from functools import partial

import numpy as np

from abstain._foundation.ranks import TieGroups
from abstain._foundation.scored import Scored
from abstain.inference.influence import Gradient
from abstain.inference.small_samples import Expected
from abstain.metrics import _influence_areas as areas
from abstain.metrics import _influence_excess as excess
from abstain.metrics import _influence_points as points
from abstain.metrics._entry import Metric
from abstain.metrics._influence_classes import MEANS, cwsa
from abstain.metrics._partial_entries import coverages_asked
from abstain.metrics._points import at_coverage, at_risk
from abstain.metrics._roc import hanley_mcneil
from abstain.typing import FloatArray, IntArray

Influence = Callable[[Scored], FloatArray]


def _rank(gradient: Callable[[TieGroups], Gradient]) -> Influence:
    return lambda s: areas.on_groups(s, gradient(s.groups))


_BY_NAME: dict[str, Influence] = {
    "augrc": excess.augrc,
    "excess_augrc": excess.excess_augrc,
    "augrc_ranking": excess.excess_augrc,
    "augrc_classifier": excess.best_augrc,
    "prr": excess.prr,
    "aurc": excess.trapezoid,
    "aurc_plugin": _rank(areas.plugin_gradient),
    "aurc_log": _rank(areas.log_gradient),
    "sele": _rank(areas.sele_gradient),
    "two_sele": _rank(areas.two_sele_gradient),
    "e_aurc": excess.e_aurc,
    "normalized_aurc": excess.normalized_aurc,
    "achievable_aurc": areas.achievable,
    "auarc": lambda s: -excess.trapezoid(s),
    "failure_auroc": _rank(areas.roc_gradient),
    "failure_ap_success": _rank(areas.ap_success_gradient),
    "failure_ap_error": _rank(areas.ap_error_gradient),
    "f1_auc": areas.f1_auc,
    "cwsa_area": partial(areas.cwsa_area, plus=False),
    "cwsa_plus_area": partial(areas.cwsa_area, plus=True),
    **MEANS,
}

_AT_COVERAGE = re.compile(
    r"(selective_risk|generalized_risk|classification_quality|rejection_quality)@([\d.]+)cov"
)
_AT_RISK = re.compile(r"coverage@([\d.]+)risk")
_CWSA = re.compile(r"cwsa(_plus)?@([\d.]+)")

_BINNED = "bins make it a sum of absolute values, which has no derivative where a bin is right"
_REASONS = {
    "ece": _BINNED,
    "ece_equal_mass": _BINNED,
    "classwise_ece": _BINNED,
    "mce": "the largest of several gaps has no derivative where two are equal",
    "fpr_at_95tpr": "it depends on how densely failures lie at one threshold",
}
_OTHER = "no influence function is known for it here"


def influence_function(metric: Metric) -> Influence | None:
    """Return the function from data to influences: the metric's own, or the one known by name."""
    if metric.influence is not None:
        return metric.influence
    return _BY_NAME.get(metric.name) or _made(metric.name)


def _made(name: str) -> Influence | None:
    """Return the influence function of a metric with a number in its name."""
    if found := _AT_COVERAGE.fullmatch(name):
        return partial(points.at_coverage, kind=found[1], share=float(found[2]) / 100)
    if found := _AT_RISK.fullmatch(name):
        return partial(points.coverage_at_risk, risk=float(found[1]) / 100)
    if found := _CWSA.fullmatch(name):
        return partial(cwsa, threshold=float(found[2]), plus=found[1] is not None)
    return None


def influence_of(metric: Metric, s: Scored) -> FloatArray | None:
    """Return the influence of each sample on a metric that is defined here, shape (n,).

    None for a metric that has no influence function; `why_not` says why.
    """
    function = influence_function(metric)
    return None if function is None else function(s)


def why_not(metric: Metric) -> str:
    """Return why a metric has no influence function and what to do; empty for one that has."""
    if influence_function(metric) is not None:
        return ""
    reason = _REASONS.get(metric.name, _OTHER)
    return f"{metric.title} has no analytic interval ({reason}): use the bootstrap"


def share_asked(name: str) -> tuple[str, float]:
    """Return the kind and the coverage of a working point's name; ("", nan) for other names."""
    found = _AT_COVERAGE.fullmatch(name)
    return (found[1], float(found[2]) / 100) if found else ("", float("nan"))


def risk_asked(name: str) -> float | None:
    """Return the risk of a coverage at a risk, by its name; None for other names."""
    found = _AT_RISK.fullmatch(name)
    return float(found[1]) / 100 if found else None


_HEAVY = frozenset(
    {
        "aurc",
        "aurc_plugin",
        "aurc_log",
        "e_aurc",
        "normalized_aurc",
        "achievable_aurc",
        "auarc",
        "aurc_ba",
        "partial_aurc",
    }
)


_OPTIMISTIC = {
    "achievable_aurc": "the hull is chosen on these data, which flatters it",
    "classification_quality": "the threshold is chosen on these data, which flatters it",
    "rejection_quality": "the threshold is chosen on these data, which flatters it",
}


def caution(metric: Metric) -> str:
    """Return what the interval of a metric leaves out, or an empty string."""
    return _OPTIMISTIC.get(metric.name.partition("@")[0], "")


#: Means over all samples, or over the successes: few failures are no trouble.
_WITHOUT_FAILURES = frozenset({"f1_auc", "nll", "brier"})

#: These compare failures with successes, so that either may be the smaller part of the data.
_BETWEEN = frozenset({"failure_auroc", "prr", "normalized_aurc", "rejection_quality"})


def most_degrees(metric: Metric, s: Scored) -> float:
    """Return the most degrees of freedom that the fewer of failures and successes allow."""
    if metric.name.partition("@")[0] not in _BETWEEN or not s.binary:
        return float("inf")
    failed = _failures(s)
    kept = s.n if s.weight is None else int(np.count_nonzero(s.weight))
    return min(failed, kept - failed) - 1.0


#: What multiplies the AUROC in metrics that are linear in it under 0/1 loss.
_OF_AUROC = {"failure_auroc": 1.0, "prr": 2.0}

#: Degrees of freedom that Hanley and McNeil's variance is worth; the least that brings 10 failures
#: to 93 % and more in every population tried (docs/statistics.md).
_MODEL_DEGREES = 3.0


def expected_variance(
    metric: Metric, s: Scored, value: float, cluster: IntArray | None = None
) -> Expected | None:
    """Return the variance of this value by a model of the scores; None where there is no model.

    Few failures of a good score may all rank low, and then they show no spread. Weights and
    clusters count as many independent samples as they are worth.
    """
    slope = _OF_AUROC.get(metric.name)
    if slope is None or not s.binary:
        return None
    weight = np.ones(s.n) if s.weight is None else s.weight
    failures, successes = (
        _independent(weight * kind, cluster) for kind in (s.loss > 0, s.loss <= 0)
    )
    # PRR = 2 AUROC - 1.
    auroc = (value + slope - 1) / slope
    if not 0 < auroc < 1 or min(failures, successes) < 1:
        return None
    variance = hanley_mcneil(auroc, failures, successes)
    return Expected(slope * slope * variance, _MODEL_DEGREES)


def _independent(mass: FloatArray, cluster: IntArray | None) -> float:
    """Return Kish's number of independent samples of this weight, 0 for none."""
    if cluster is not None:
        mass = np.bincount(cluster, weights=mass).astype(np.float64)
    square = float(mass @ mass)
    return float(mass.sum()) ** 2 / square if square > 0 else 0.0


def _failures(s: Scored) -> int:
    if s.weight is None:
        return s.failures
    return int(np.count_nonzero((s.loss > 0) & (s.weight > 0)))


def failures_behind(metric: Metric, s: Scored) -> int | None:
    """Return the number of failures that a metric rests on: those accepted, for a risk.

    None where it does not rest on failures.
    """
    if metric.family == "cwsa" or metric.name in _WITHOUT_FAILURES:
        return None
    if found := _AT_COVERAGE.fullmatch(metric.name):
        index = at_coverage(s.groups, float(found[2]) / 100)
        accepted = points.failures_accepted(s, index)
        return accepted if found[1].endswith("risk") else _failures(s)
    if found := _AT_RISK.fullmatch(metric.name):
        return points.failures_accepted(s, at_risk(s.groups, float(found[1]) / 100))
    if between := coverages_asked(metric.name):
        return points.failures_accepted(s, at_coverage(s.groups, between[1], first=True))
    return _failures(s)


def failures_among(metric: Metric) -> str:
    """Return among which samples `failures_behind` counts, in words; empty for all of them."""
    name = metric.name
    found = _AT_COVERAGE.fullmatch(name)
    if found:
        accepted = found[1].endswith("risk")
    else:
        accepted = _AT_RISK.fullmatch(name) is not None or coverages_asked(name) is not None
    return " among the accepted" if accepted else ""


def is_heavy(metric: Metric) -> bool:
    """Whether its most confident failures weigh without bound, so that it takes more of them."""
    return metric.name.partition("@")[0] in _HEAVY
