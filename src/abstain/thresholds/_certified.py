"""Certifying a risk: tests at the tie groups, walks over them, and why nothing was found."""

from typing import Literal

import numpy as np

from abstain._foundation.ranks import TieGroups
from abstain._foundation.scored import Scored
from abstain.thresholds import _choice, _sequences
from abstain.thresholds._choice import Aim
from abstain.thresholds._sequences import Reach
from abstain.thresholds.binomial import binomial_p, hoeffding_bentkus_p, least_count
from abstain.thresholds.rule import DecisionRule, MethodName
from abstain.typing import BoolArray, IntArray


def aimed(
    method: MethodName,
    guarantee: Literal["selective risk", "generalized risk"],
    max_risk: float,
    delta: float,
) -> Aim:
    return Aim(method, _choice.max_risk_of(max_risk), guarantee, _choice.delta_of(delta))


def passes(s: Scored, aim: Aim, alpha: float, index: IntArray | slice = slice(None)) -> BoolArray:
    """Tell at which tie groups a risk above the target is refuted at level alpha."""
    groups = s.groups
    counts = groups.count_through[index]
    if aim.guarantee == "generalized risk":
        counts = np.full_like(counts, groups.n)
    p_value = binomial_p if s.binary else hoeffding_bentkus_p
    out: BoolArray = p_value(counts, groups.loss_through[index], aim.target) <= alpha
    return out


def walked(s: Scored, aim: Aim, coverages: tuple[float, ...]) -> DecisionRule:
    """Walk from starts at these coverages."""
    delta = aim.delta or 0.0
    least = least_count(aim.target, delta)
    if s.n < least:
        return too_few(s, aim, least)
    ranks = [
        rank for rank in _sequences.ranks_of(coverages, s.n, aim.target, delta) if rank <= s.n
    ] or [least]
    found = _sequences.furthest(s.groups, ranks, lambda alpha: passes(s, aim, alpha), delta)
    if found.last < 0:
        return none_certified(s, aim, delta / len(ranks))
    return _choice.chosen(
        s, found.last, aim, bound=aim.target, threshold=_just_above(s.groups, found)
    )


def _just_above(groups: TieGroups, found: Reach) -> float | None:
    """Return the threshold of a walk that certified its start alone: all above the next value."""
    if not found.at_start or found.last + 1 >= groups.confidence.size:
        return None
    return float(np.nextafter(groups.confidence[found.last + 1], np.inf))


def too_few(s: Scored, aim: Aim, least: int) -> DecisionRule:
    reason = (
        f"{s.n} samples cannot certify a {aim.guarantee} of at most {aim.target:g} with delta "
        f"{aim.delta:g}, which takes {_choice.counted(least)} accepted without a failure"
    )
    return _choice.unattainable(s, aim, reason)


def none_certified(s: Scored, aim: Aim, alpha: float) -> DecisionRule:
    """Say what the data came closest with, among the thresholds that accept enough to be tested."""
    groups = s.groups
    least, whole = least_count(aim.target, alpha), aim.guarantee == "generalized risk"
    mean = groups.loss_through / (groups.n if whole else groups.count_through)
    enough = (groups.count_through >= least) | whole
    shared = "" if alpha == aim.delta else f" ({alpha:.3g} for each test)"
    reason = (
        f"no threshold that was tried certifies a {aim.guarantee} of at most {aim.target:g} with "
        f"delta {aim.delta:g}{shared}"
    )
    if enough.any():
        at = int(np.argmin(np.where(enough, mean, np.inf)))
        among = (
            "" if whole else f" among thresholds that accept the {_choice.counted(least)} needed"
        )
        reason += (
            f"; the least seen on these {s.n} samples{among} is {mean[at]:.4g}, with "
            f"{int(groups.count_through[at])} accepted"
        )
    else:
        reason += (
            f", which takes at least {_choice.counted(least)} accepted; there are {s.n} samples"
        )
    return _choice.unattainable(s, aim, reason)
