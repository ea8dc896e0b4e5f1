"""Fixed sequences of thresholds that are tested downwards until the first failure.

The null hypothesis of a threshold t is "the true risk of accepting at t is above the target". A
walk tests all real thresholds from a start downwards. The probability that the walk passes the
first t with a true hypothesis is at most alpha, regardless of later thresholds. Between two
confidences, the test does not change. Therefore, only the distinct confidences are tested. Several
starts share delta equally.

A start must not depend on the losses. A start is a rank r that n, the target and delta determine.
The walk starts just above the confidence of rank r + 1. Given this confidence, the samples above it
are independent draws from the distribution above it, so their number of failures is binomial. Below
the start, consider the first threshold with a true hypothesis. The samples above this threshold
follow a mixture, whose number of failures is at least as large as that of a binomial distribution.

With density ratios, calibration data of one population yield a rule for another population, the
target population. The module uses two methods. (1) Each sample is retained with probability ratio /
max_ratio. The retained samples are draws from the target population, so every rule applies to them.
(2) All samples are used, and v denotes the ratio of a sample divided by the largest ratio. If the
risk of the accepted samples is above R, then E[v (loss - R)] > 0 for any sum of the ratios. The
mean of (1 - b v (loss - R)) is then at most 1 for any bet b in (0, 1 / (1 - R)]. The same bound
applies to the product over independent samples. The bound also applies to a mean of products over
bets that do not depend on the losses. By Markov's inequality, this mean reaches 1 / alpha with
probability at most alpha.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from abstain._foundation.lazy_imports import special
from abstain._foundation.scored import Scored
from abstain._foundation.tie_groups import TieGroups
from abstain.shift import DensityRatios
from abstain.shift.ratios import as_density_ratios
from abstain.thresholds import _choice
from abstain.thresholds._choice import RuleTarget
from abstain.thresholds.binomial import binomial_p_value, hoeffding_bentkus_p_value, min_count
from abstain.thresholds.rule import DecisionRule
from abstain.typing import AnyArray, BoolArray, FloatArray, IntArray, Rng


class WalkResult(NamedTuple):
    """The last certified tie group (or -1), and whether the walk ends at its start."""

    last_group: int
    ends_at_start: bool


def halved_coverages(n: int, risk: float, delta: float) -> tuple[float, ...]:
    """Return the coverages 1/2, 1/4, ... at which the risk can be certified with shared delta."""
    n_starts = 1
    while n / 2 ** (n_starts + 1) >= min_count(risk, delta / (n_starts + 1)):
        n_starts += 1
    return tuple(0.5**i for i in range(1, n_starts + 1))


def start_ranks(coverages: tuple[float, ...], n: int, risk: float, delta: float) -> list[int]:
    """Return the ranks of the starts, which are at least the smallest rank to certify."""
    smallest = min_count(risk, delta / len(coverages))
    return sorted({max(int(np.ceil(c * n)), smallest) for c in coverages})


def longest_walk(
    groups: TieGroups, ranks: list[int], test: Callable[[float], BoolArray], delta: float
) -> WalkResult:
    """Walk down from each start and return the longest walk.

    `test(alpha)` returns which groups pass at the level alpha.
    """
    is_passed = test(delta / len(ranks))
    first_failure = next_failure(is_passed)
    best = WalkResult(-1, ends_at_start=False)
    for rank in ranks:
        first = first_group_after_start(groups, rank)
        if first > 0 and not is_passed[first - 1]:
            continue
        last_group = int(first_failure[first]) - 1
        result = WalkResult(last_group, ends_at_start=last_group == first - 1)
        # If two walks end at the same group, the walk that does not end at its start is better,
        # because its threshold is the confidence of the group.
        if (last_group, not result.ends_at_start) > (best.last_group, not best.ends_at_start):
            best = result
    return best


def next_failure(is_passed: BoolArray) -> IntArray:
    """Return the first failing group from each group on, or the number of groups."""
    n_groups = is_passed.size
    failing = np.append(np.where(is_passed, n_groups, np.arange(n_groups)), n_groups)
    out: IntArray = np.minimum.accumulate(failing[::-1])[::-1]
    return out


def first_group_after_start(groups: TieGroups, rank: int) -> int:
    """Return the group of the sample with rank + 1, which is the first group a walk may add.

    The result is the number of groups if all samples are above the start. If the start lies within
    the first group, the walk begins with this group, because no group is above it.
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
    """Return a threshold just above the next confidence for a walk that certifies only its start.

    The threshold is the next number in single precision if no sample lies in between. In
    single-precision data, the next confidence then stays below the threshold. A threshold in double
    precision could be rounded to the next confidence. The guarantee of the start also holds at this
    threshold, because the samples above it are independent draws from the distribution above it.
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
    """Return a rule without a threshold whose reason states the lowest observed risk."""
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


#: Maximum number of halvings of the largest bet, which limits the memory.
_MAX_BETS = 40


def sample_by_ratio(
    s: Scored, aim: RuleTarget, ratio: "AnyArray | DensityRatios | None", rng: Rng
) -> tuple[Scored, RuleTarget]:
    """Return a random sample of the target population, or all data without ratios."""
    if ratio is None:
        return s, aim
    ratios = as_density_ratios(ratio, s.confidence.size)
    is_kept = ratios.draw(rng)
    population = f"{ratios.target} ({int(is_kept.sum())} of {ratios.n} samples drawn)"
    return Scored(s.confidence[is_kept], s.loss[is_kept]), aim._replace(population=population)


def weight_by_ratio(
    s: Scored, aim: RuleTarget, ratio: "AnyArray | DensityRatios | None"
) -> tuple[Scored, RuleTarget]:
    """Return all samples with their ratios as weights, or unweighted samples without ratios."""
    if ratio is None:
        return s, aim
    ratios = as_density_ratios(ratio, s.confidence.size)
    is_positive = ratios.values > 0
    population = f"{ratios.target} ({ratios.n} samples, effective size {ratios.effective_size:.0f})"
    samples = Scored(s.confidence[is_positive], s.loss[is_positive], ratios.values[is_positive])
    return samples, aim._replace(population=population, max_ratio=ratios.largest)


def few_samples_hint(aim: RuleTarget) -> str:
    """Return an explanation for few samples if density ratios selected them."""
    if not aim.population or aim.max_ratio is not None:
        return ""
    return (
        ". They were drawn with probability ratio / largest ratio: use more samples, or clip the "
        "ratios with density_ratios(..., clip=) (--clip)"
    )


def refuted_by_betting(
    s: Scored, aim: RuleTarget, alpha: float, among: BoolArray | None = None
) -> BoolArray:
    """Return a mask of the tie groups at which bets refute a risk above the target at level alpha.

    If `among` is passed, the risk is that of the samples in this mask, and all other samples have a
    ratio of 0.
    """
    n = s.confidence.size if among is None else int(np.count_nonzero(among))
    bets = _bet_sizes(n, aim.target, alpha)
    relative_ratio = np.ones(s.confidence.size) if s.weight is None else s.weight
    relative_ratio = relative_ratio / (aim.max_ratio or 1.0)
    if among is not None:
        relative_ratio = np.where(among, relative_ratio, 0.0)
    order = np.argsort(-s.confidence.astype(np.float64), kind="stable")
    group_last = s.groups.cumulative_count - 1
    sorted_ratio = relative_ratio[order]
    excess = (relative_ratio * (s.loss.astype(np.float64) - aim.target))[order]
    log_wealth = np.empty((bets.size, group_last.size))
    for i, bet in enumerate(bets):
        log_wealth[i] = _log_cumulative_product(bet * excess)[group_last]
        if aim.guarantee == "generalized risk":
            # A rejected sample has a loss of 0.
            log_gain = np.cumsum(np.log1p(bet * aim.target * sorted_ratio))
            log_wealth[i] += log_gain[-1] - log_gain[group_last]
    log_mean = special.logsumexp(log_wealth, axis=0) - np.log(bets.size)
    out: BoolArray = log_mean >= -np.log(alpha)
    return out


def _log_cumulative_product(relative_loss: FloatArray) -> FloatArray:
    """Return the logarithm of the cumulative product of (1 - relative_loss)."""
    with np.errstate(divide="ignore"):
        out: FloatArray = np.cumsum(np.log(np.maximum(1.0 - relative_loss, 0.0)))
    return out


def _bet_sizes(n: int, risk: float, alpha: float) -> FloatArray:
    """Return the largest bet and its halvings down to the best bet for n samples of equal weight.

    Samples of unequal weight correspond to fewer samples of equal weight, for which larger bets are
    better.
    """
    largest = 1.0 / (1.0 - risk)
    best = np.sqrt(-2.0 * np.log(alpha) / (n * risk * (1.0 - risk)))
    n_halvings = int(np.clip(np.ceil(np.log2(largest / min(best, largest))), 0, _MAX_BETS))
    out: FloatArray = largest * 0.5 ** np.arange(n_halvings + 1, dtype=np.float64)
    return out
