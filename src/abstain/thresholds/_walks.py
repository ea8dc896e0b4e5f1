"""Fixed sequences of thresholds: test from a start downwards, stop at the first that fails.

The hypothesis of a threshold t is "the true risk of accepting at t is above the target". Walking
down from a start over all real thresholds, the first t whose hypothesis is true stops the walk
except with chance alpha, whatever comes later; between two confidences the test repeats the one
above. So only the distinct confidences need testing, and several starts share delta equally.

A start must not depend on the losses. It is a rank r fixed by n, the target and delta alone: the
walk starts just above the confidence of rank r + 1. Given that value, the samples above it are
independent draws from the law above it, so their failures are binomial. Below the start, the first
threshold with a true hypothesis is tested on a mixture whose failures are no fewer than binomial.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from abstain._foundation.scored import Scored
from abstain._foundation.tie_groups import TieGroups
from abstain.thresholds import _choice
from abstain.thresholds._choice import Aim
from abstain.thresholds._importance import few_drawn, refuted
from abstain.thresholds.binomial import binomial_p, hoeffding_bentkus_p, least_count
from abstain.thresholds.rule import DecisionRule
from abstain.typing import BoolArray, IntArray


class Reach(NamedTuple):
    """The last tie group certified (-1 for none), and whether a walk ended where it began."""

    last: int
    at_start: bool


def halvings(n: int, risk: float, delta: float) -> tuple[float, ...]:
    """Return the coverages 1/2, 1/4, ... that can certify the risk when they share delta."""
    count = 1
    while n / 2 ** (count + 1) >= least_count(risk, delta / (count + 1)):
        count += 1
    return tuple(0.5**i for i in range(1, count + 1))


def ranks_of(coverages: tuple[float, ...], n: int, risk: float, delta: float) -> list[int]:
    """Return the ranks of the starts, each raised to where a certificate is possible."""
    least = least_count(risk, delta / len(coverages))
    return sorted({max(int(np.ceil(c * n)), least) for c in coverages})


def furthest(
    groups: TieGroups, ranks: list[int], test: Callable[[float], BoolArray], delta: float
) -> Reach:
    """Walk down from each start; `test(alpha)` tells which groups pass at that level."""
    passes = test(delta / len(ranks))
    stops = next_failing(passes)
    best = Reach(-1, at_start=False)
    for rank in ranks:
        first = start_of(groups, rank)
        if first > 0 and not passes[first - 1]:
            continue
        last = int(stops[first]) - 1
        found = Reach(last, at_start=last == first - 1)
        # A group reached in the middle of another walk needs no threshold of its own.
        if (last, not found.at_start) > (best.last, not best.at_start):
            best = found
    return best


def next_failing(passes: BoolArray) -> IntArray:
    """Return the first failing group at or after each; the number of groups where none does."""
    size = passes.size
    failing = np.append(np.where(passes, size, np.arange(size)), size)
    out: IntArray = np.minimum.accumulate(failing[::-1])[::-1]
    return out


def start_of(groups: TieGroups, rank: int) -> int:
    """Return the group that holds the sample of rank + 1: the first that a walk may add.

    One past the end, when all n samples are in the start. A walk whose first group holds its start
    too begins with that group: there is nothing above it.
    """
    return int(np.searchsorted(groups.cumulative_count, rank, side="right"))


# ------------------------------------------------------------------------------------ rules
def aimed(
    method: str,
    guarantee: Literal["selective risk", "generalized risk"],
    max_risk: float,
    delta: float,
) -> Aim:
    return Aim(method, _choice.max_risk_of(max_risk), guarantee, _choice.delta_of(delta))


def passes(s: Scored, aim: Aim, alpha: float, index: IntArray | slice = slice(None)) -> BoolArray:
    """Tell at which tie groups a risk above the target is refuted at level alpha."""
    groups = s.groups
    if aim.largest is not None:
        return refuted(s, aim, alpha)[index]
    counts = groups.cumulative_count[index]
    if aim.guarantee == "generalized risk":
        counts = np.full_like(counts, groups.n_samples)
    p_value = binomial_p if s.is_binary else hoeffding_bentkus_p
    out: BoolArray = p_value(counts, groups.cumulative_loss[index], aim.target) <= alpha
    return out


def walked(s: Scored, aim: Aim, coverages: tuple[float, ...], other_rule: str = "") -> DecisionRule:
    """Walk from starts at these coverages; `other_rule` ends the reason if nothing is certified."""
    delta = aim.delta or 0.0
    least = least_count(aim.target, delta)
    if s.n_rows < least:
        return too_few(s, aim, least)
    ranks = [
        rank for rank in ranks_of(coverages, s.n_rows, aim.target, delta) if rank <= s.n_rows
    ] or [least]
    found = furthest(s.groups, ranks, lambda alpha: passes(s, aim, alpha), delta)
    if found.last < 0:
        return none_certified(s, aim, delta / len(ranks), other_rule)
    return _choice.chosen(
        s, found.last, aim, bound=aim.target, threshold=just_above(s.groups, found)
    )


def just_above(groups: TieGroups, found: Reach) -> float | None:
    """Return the threshold of a walk that certified its start alone: all above the next value.

    Where no sample lies between, it is the next number of single precision: then that value stays
    below it in data of single precision too, which would round the next double down to it. The
    start is as good there: the samples above it are draws from the law above it.
    """
    if not found.at_start or found.last + 1 >= groups.confidence.size:
        return None
    below, last = groups.confidence[found.last + 1], groups.confidence[found.last]
    with np.errstate(over="ignore"):
        single = float(np.nextafter(np.float32(below), np.float32(np.inf)))
    if below < single <= last:
        return single
    return float(np.nextafter(below, np.inf))


def too_few(s: Scored, aim: Aim, least: int) -> DecisionRule:
    reason = (
        f"{s.n_rows} samples cannot certify a {aim.guarantee} of at most {aim.target:g} with delta "
        f"{aim.delta:g}, which takes {_choice.counted(least)} accepted without a failure"
    )
    return _choice.unattainable(s, aim, reason + few_drawn(aim))


def none_certified(s: Scored, aim: Aim, alpha: float, other_rule: str = "") -> DecisionRule:
    """Say what the data came closest with, among the thresholds that accept enough to be tested."""
    groups = s.groups
    least, whole = least_count(aim.target, alpha), aim.guarantee == "generalized risk"
    mean = groups.cumulative_loss / (groups.total_weight if whole else groups.cumulative_weight)
    enough = (groups.cumulative_count >= least) | whole
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
            f"; the least seen on these {s.n_rows} samples{among} is {mean[at]:.4g}, with "
            f"{int(groups.cumulative_count[at])} accepted"
        )
    else:
        n_needed = _choice.counted(least)
        reason += f", which takes at least {n_needed} accepted; there are {s.n_rows} samples"
    return _choice.unattainable(s, aim, reason + other_rule)
