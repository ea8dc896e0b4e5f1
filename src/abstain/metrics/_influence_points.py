"""Influence functions of working points.

At a fixed threshold all of them are functions of four sums: weight and loss accepted, weight and
loss of all. But the threshold is chosen from the data, so it moves: one more accepted sample
raises the coverage there, and the rule answers with another vertex. What that does to the number
is its slope against the coverage (or risk) that was asked for, measured on the data between two
vertices that the same rule picks a little to either side. Where both are the same vertex (a large
tie group, a risk that is least in the interior) the threshold stays, and the slope is 0. For the
selective risk this is the textbook form with the local risk m at the threshold estimated as
``R + c dR/dc``. Where the threshold may jump across a large tie group no slope describes it:
`_open_thresholds` says what does.
"""

from collections.abc import Callable

import numpy as np

from abstain._foundation.ranks import TieGroups
from abstain._foundation.scored import Measured, Scored
from abstain.metrics import _points
from abstain.typing import FloatArray


def at_coverage(s: Scored, kind: str, share: float) -> FloatArray:
    """Influence on a number at the vertex that keeps a coverage."""
    groups = s.groups
    index = _points.at_coverage(groups, share)
    slope = _slope_in_coverage(groups, share, VALUES[kind])
    return at_vertex(s, kind, index) - slope * share_at_vertex(s, index)


def at_vertex(s: Scored, kind: str, index: int) -> FloatArray:
    """Influence on a number at a threshold that is given and does not move."""
    return _centered(s, _FIXED[kind](s, index, _inside(s, index)))


def share_at_vertex(s: Scored, index: int) -> FloatArray:
    """Influence on the coverage of such a threshold."""
    return _centered(s, _inside(s, index))


def coverage_at_risk(s: Scored, risk: float) -> FloatArray:
    """Influence on the largest coverage that keeps a risk."""
    groups = s.groups
    index = _points.at_risk(groups, risk)
    if index < 0:
        return np.zeros(s.n)
    weight, wrong, _ = _points.accepted(groups, index)
    slope = _slope_in_risk(groups, risk, wrong / weight, weight)
    return share_at_vertex(s, index) - slope * at_vertex(s, "selective_risk", index)


def failures_accepted(s: Scored, index: int) -> int:
    """Return the number of samples accepted at a vertex whose loss is above zero."""
    place = s.home
    return int(np.count_nonzero((s.loss > 0) & (place >= 0) & (place <= index)))


def _inside(s: Scored, index: int) -> FloatArray:
    return (s.home <= index).astype(np.float64)


def _centered(s: Scored, x: FloatArray) -> FloatArray:
    out: FloatArray = x - np.average(x, weights=s.weight)
    if s.weight is not None:
        out[s.weight == 0] = 0.0
    return out


def _slope_in_coverage(
    groups: TieGroups, share: float, value: Callable[[TieGroups, int], Measured]
) -> float:
    """Change of the number per coverage, one standard error of the coverage to either side.

    That far the threshold moves by chance, so that a jump to the next tie group counts as often
    as it happens.
    """
    reach = float(np.sqrt(share * (1 - share) / groups.n))
    low, high = max(share - reach, 0.0), min(share + reach, 1.0)
    ends = (_points.at_coverage(groups, low), _points.at_coverage(groups, high))
    coverages = groups.through[list(ends)] / groups.total
    if ends[0] == ends[1] or coverages[0] == coverages[1]:
        return 0.0
    change = value(groups, ends[1]).value - value(groups, ends[0]).value
    return change / (high - low) if np.isfinite(change) else 0.0


def _slope_in_risk(groups: TieGroups, risk: float, attained: float, weight: float) -> float:
    """Change of the coverage per risk allowed, one standard error of it to either side."""
    accepted = max(groups.n * weight / groups.total, 1.0)
    reach = max(np.sqrt(attained * (1 - min(attained, 1.0)) / accepted), risk / accepted)
    low, high = max(risk - reach, 0.0), risk + reach
    ends = [_points.at_risk(groups, low), _points.at_risk(groups, high)]
    covered = [_points.coverage_of(groups, end).value for end in ends]
    return (covered[1] - covered[0]) / (high - low) if high > low else 0.0


def _selective(s: Scored, index: int, inside: FloatArray) -> FloatArray:
    weight, wrong, _ = _points.accepted(s.groups, index)
    return inside * (s.loss - wrong / weight) * (s.groups.total / weight)


def _generalized(s: Scored, _: int, inside: FloatArray) -> FloatArray:
    return inside * s.loss


def _classified(s: Scored, _: int, inside: FloatArray) -> FloatArray:
    return inside * (1 - 2.0 * s.loss) + s.loss


def _rejected(s: Scored, index: int, inside: FloatArray) -> FloatArray:
    """Odds of wrong among the rejected over odds among all: each sum by its share."""
    groups = s.groups
    right = groups.weight - groups.loss
    outside = 1 - inside
    wrong_out, right_out = float(groups.loss[index + 1 :].sum()), float(right[index + 1 :].sum())
    wrong, all_right = float(groups.loss.sum()), float(right.sum())
    if min(wrong, all_right, right_out) <= 0:
        return np.zeros(s.n)
    odds = wrong_out / right_out * (all_right / wrong)
    per_wrong = all_right / (right_out * wrong) * outside - odds / wrong
    per_right = odds * (1 / all_right - outside / right_out)
    out: FloatArray = groups.total * (per_wrong * s.loss + per_right * (1.0 - s.loss))
    return out


_FIXED: dict[str, Callable[[Scored, int, FloatArray], FloatArray]] = {
    "selective_risk": _selective,
    "generalized_risk": _generalized,
    "classification_quality": _classified,
    "rejection_quality": _rejected,
}

#: The numbers at a vertex, by the first word of their name.
VALUES: dict[str, Callable[[TieGroups, int], Measured]] = {
    "selective_risk": _points.selective_risk_of,
    "generalized_risk": _points.generalized_risk_of,
    "classification_quality": _points.classification_quality_at,
    "rejection_quality": _points.rejection_quality_at,
}
