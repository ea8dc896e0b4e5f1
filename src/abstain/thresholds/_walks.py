"""Fixed sequences of thresholds: test from a start downwards, and stop at the first failure.

The null hypothesis of a threshold t is "the true risk of accepting at t is above the target". The
walk tests all real thresholds from a start downwards. It passes the first t with a true hypothesis
with probability at most alpha, whatever happens later. Between two confidences, the test does not
change. Therefore, only the distinct confidences need to be tested. Several starts share delta
equally.

A start must not depend on the losses. It is a rank r that follows from n, the target and delta: the
walk starts just above the confidence of rank r + 1. Given that value, the samples above it are
independent draws from the distribution above it, so the number of failures is binomial. Below the
start, the first threshold with a true hypothesis is tested on a mixture with at least as many
failures as a binomial distribution.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from abstain._foundation.scored import Scored
from abstain._foundation.tie_groups import TieGroups
from abstain.thresholds import _choice
from abstain.thresholds._choice import RuleTarget
from abstain.thresholds._importance import few_samples_hint, refuted_by_betting
from abstain.thresholds.binomial import binomial_p_value, hoeffding_bentkus_p_value, min_count
from abstain.thresholds.rule import DecisionRule
from abstain.typing import BoolArray, IntArray


class WalkResult(NamedTuple):
    """The last certified tie group (-1 for none), and whether the walk ends at its start."""

    last_group: int
    ends_at_start: bool


def halved_coverages(n: int, risk: float, delta: float) -> tuple[float, ...]:
    """Return the coverages 1/2, 1/4, ... at which the risk can be certified if they share delta."""
    n_starts = 1
    while n / 2 ** (n_starts + 1) >= min_count(risk, delta / (n_starts + 1)):
        n_starts += 1
    return tuple(0.5**i for i in range(1, n_starts + 1))


def start_ranks(coverages: tuple[float, ...], n: int, risk: float, delta: float) -> list[int]:
    """Return the ranks of the starts, at least the smallest rank that can be certified."""
    smallest = min_count(risk, delta / len(coverages))
    return sorted({max(int(np.ceil(c * n)), smallest) for c in coverages})


def longest_walk(
    groups: TieGroups, ranks: list[int], test: Callable[[float], BoolArray], delta: float
) -> WalkResult:
    """Walk down from each start; `test(alpha)` returns which groups pass at that level."""
    is_passed = test(delta / len(ranks))
    first_failure = next_failure(is_passed)
    best = WalkResult(-1, ends_at_start=False)
    for rank in ranks:
        first = first_group_after_start(groups, rank)
        if first > 0 and not is_passed[first - 1]:
            continue
        last_group = int(first_failure[first]) - 1
        result = WalkResult(last_group, ends_at_start=last_group == first - 1)
        # If two walks end at the same group, prefer the one that does not end at its start: its
        # threshold is the confidence of the group.
        if (last_group, not result.ends_at_start) > (best.last_group, not best.ends_at_start):
            best = result
    return best


def next_failure(is_passed: BoolArray) -> IntArray:
    """Return the first failing group from each group on; the number of groups if there is none."""
    n_groups = is_passed.size
    failing = np.append(np.where(is_passed, n_groups, np.arange(n_groups)), n_groups)
    out: IntArray = np.minimum.accumulate(failing[::-1])[::-1]
    return out


def first_group_after_start(groups: TieGroups, rank: int) -> int:
    """Return the group with the sample of rank + 1: the first group that a walk may add.

    The number of groups if all samples are above the start. If the start lies within the first
    group, the walk begins with that group, because no group is above it.
    """
    return int(np.searchsorted(groups.cumulative_count, rank, side="right"))


# ------------------------------------------------------------------------------------ rules
def risk_target(
    method: str,
    guarantee: Literal["selective risk", "generalized risk"],
    max_risk: float,
    delta: float,
) -> RuleTarget:
    return RuleTarget(
        method, _choice.check_max_risk(max_risk), guarantee, _choice.check_delta(delta)
    )


def passing_groups(
    s: Scored, aim: RuleTarget, alpha: float, index: IntArray | slice = slice(None)
) -> BoolArray:
    """Return at which tie groups a risk above the target is rejected at level alpha."""
    groups = s.groups
    if aim.max_ratio is not None:
        return refuted_by_betting(s, aim, alpha)[index]
    counts = groups.cumulative_count[index]
    if aim.guarantee == "generalized risk":
        counts = np.full_like(counts, groups.n_samples)
    p_value = binomial_p_value if s.is_binary else hoeffding_bentkus_p_value
    out: BoolArray = p_value(counts, groups.cumulative_loss[index], aim.target) <= alpha
    return out


def choose_by_walks(
    s: Scored, aim: RuleTarget, coverages: tuple[float, ...], other_rule: str = ""
) -> DecisionRule:
    """Walk from starts at these coverages; `other_rule` is appended to the reason for no result."""
    delta = aim.delta or 0.0
    smallest = min_count(aim.target, delta)
    if s.n_rows < smallest:
        return too_few_samples_rule(s, aim, smallest)
    ranks = start_ranks(coverages, s.n_rows, aim.target, delta)
    ranks = [rank for rank in ranks if rank <= s.n_rows] or [smallest]
    result = longest_walk(s.groups, ranks, lambda alpha: passing_groups(s, aim, alpha), delta)
    if result.last_group < 0:
        return nothing_certified_rule(s, aim, delta / len(ranks), other_rule)
    threshold = threshold_above_next(s.groups, result)
    return _choice.build_rule(s, result.last_group, aim, bound=aim.target, threshold=threshold)


def threshold_above_next(groups: TieGroups, result: WalkResult) -> float | None:
    """Return the threshold of a walk that certifies only its start: just above the next confidence.

    If no sample lies between, it is the next number in single precision. In single-precision data,
    the next confidence then stays below the threshold, which a number in double precision would not
    guarantee after rounding. The guarantee of the start also holds at this threshold, because the
    samples above it are independent draws from the distribution above it.
    """
    if not result.ends_at_start or result.last_group + 1 >= groups.confidence.size:
        return None
    next_confidence = groups.confidence[result.last_group + 1]
    last_confidence = groups.confidence[result.last_group]
    with np.errstate(over="ignore"):
        single = float(np.nextafter(np.float32(next_confidence), np.float32(np.inf)))
    if next_confidence < single <= last_confidence:
        return single
    return float(np.nextafter(next_confidence, np.inf))


def too_few_samples_rule(s: Scored, aim: RuleTarget, required: int) -> DecisionRule:
    reason = (
        f"{s.n_rows} samples cannot certify a {aim.guarantee} of at most {aim.target:g} with delta "
        f"{aim.delta:g}, which takes {_choice.format_count(required)} accepted without a failure"
    )
    return _choice.build_unattainable_rule(s, aim, reason + few_samples_hint(aim))


def nothing_certified_rule(
    s: Scored, aim: RuleTarget, alpha: float, other_rule: str = ""
) -> DecisionRule:
    """Return a rule without a threshold; the reason names the lowest observed risk."""
    groups = s.groups
    required = min_count(aim.target, alpha)
    required_text = _choice.format_count(required)
    is_generalized = aim.guarantee == "generalized risk"
    weight = groups.total_weight if is_generalized else groups.cumulative_weight
    risk = groups.cumulative_loss / weight
    is_testable = (groups.cumulative_count >= required) | is_generalized
    level = "" if alpha == aim.delta else f" ({alpha:.3g} for each test)"
    reason = (
        f"no tested threshold certifies a {aim.guarantee} of at most {aim.target:g} with delta "
        f"{aim.delta:g}{level}"
    )
    if is_testable.any():
        lowest = int(np.argmin(np.where(is_testable, risk, np.inf)))
        condition = ""
        if not is_generalized:
            condition = f" among thresholds that accept the {required_text} needed"
        reason += (
            f"; the lowest on these {s.n_rows} samples{condition} is {risk[lowest]:.4g}, with "
            f"{int(groups.cumulative_count[lowest])} accepted"
        )
    else:
        reason += f", which takes at least {required_text} accepted; there are {s.n_rows} samples"
    return _choice.build_unattainable_rule(s, aim, reason + other_rule)
