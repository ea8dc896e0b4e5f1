"""Tests of thresholds in a fixed sequence, from the highest down to the first failure.

The null hypothesis of a threshold t is "the true risk of accepting at t is above the target". A
walk tests all thresholds from its start downwards at level alpha. An error requires that the first
threshold with a true null hypothesis passes, which has probability at most alpha. All thresholds
between two adjacent confidences accept the same samples, so only the distinct confidences are
tested. Several starts share delta equally.

The start of a walk must not depend on the losses. The start is defined by a rank r that depends on
n, the target and delta: the walk starts just above the confidence of rank r + 1. Given this
confidence, the samples above the start are independent draws from the distribution above it, so
their number of failures is binomial. Below the start, the samples above the first threshold with a
true hypothesis follow a mixture. The number of failures in a sample of this mixture is
stochastically at least binomial.

With density ratios, calibration data from one population can certify a rule for another
population, the target population. There are two methods:

1. Each sample is retained with probability ratio / max_ratio. The retained samples are draws from
   the target population, so every rule applies to them.
2. All samples are used. Let v be the ratio of a sample divided by the largest ratio. If the risk
   of the accepted samples in the target population is above R, then E[1 - b v (loss - R)] < 1 for
   any bet b in (0, 1 / (1 - R)]. The same bound holds for the product over independent samples,
   and for the mean of such products over bets that do not depend on the losses. By Markov's
   inequality, this mean reaches 1 / alpha with probability at most alpha.
"""

from collections.abc import Callable
from functools import partial
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
    """The result of testing thresholds from a start downwards until the first failure."""

    #: Index of the last certified tie group, or -1.
    last_group: int
    #: Whether only the start is certified.
    ends_at_start: bool


def halved_coverages(n: int, risk: float, delta: float) -> tuple[float, ...]:
    """Return the coverages 1/2, 1/4, ... at which the risk can be certified with shared delta."""
    n_starts = 1
    while n / 2 ** (n_starts + 1) >= min_count(risk, delta / (n_starts + 1)):
        n_starts += 1
    return tuple(0.5**i for i in range(1, n_starts + 1))


def start_ranks(coverages: tuple[float, ...], n: int, risk: float, delta: float) -> list[int]:
    """Return the numbers of accepted samples at which sequences of tests start.

    Each number is large enough to certify the risk without a failure.
    """
    smallest = min_count(risk, delta / len(coverages))
    return sorted({max(int(np.ceil(c * n)), smallest) for c in coverages})


def longest_walk(
    groups: TieGroups, ranks: list[int], test: Callable[[float], BoolArray], delta: float
) -> WalkResult:
    """Test thresholds downwards from each start, and return the result with the largest coverage.

    `ranks` are the numbers of accepted samples at the starts. `test` returns a mask of the tie
    groups that pass at a level.
    """
    is_passed = test(delta / len(ranks))
    first_failure = next_failure(is_passed)
    best = WalkResult(-1, ends_at_start=False)
    for rank in ranks:
        first_group = first_group_after_start(groups, rank)
        fails_at_start = first_group > 0 and not is_passed[first_group - 1]
        if fails_at_start:
            continue
        last_group = int(first_failure[first_group]) - 1
        result = WalkResult(last_group, ends_at_start=last_group == first_group - 1)
        is_longer = last_group > best.last_group
        # A walk beyond its start is better than a walk of equal length that ends at its start,
        # because its threshold is the confidence of the group.
        is_equal = last_group == best.last_group
        if is_longer or (is_equal and best.ends_at_start and not result.ends_at_start):
            best = result
    return best


def next_failure(is_passed: BoolArray) -> IntArray:
    """Return, for each tie group, the index of the next tie group that fails, or their number."""
    n_groups = is_passed.size
    failing_index = np.where(is_passed, n_groups, np.arange(n_groups))
    failing_index = np.append(failing_index, n_groups)
    reversed_minimum = np.minimum.accumulate(failing_index[::-1])
    out: IntArray = reversed_minimum[::-1]
    return out


def first_group_after_start(groups: TieGroups, rank: int) -> int:
    """Return the index of the first tie group that ends after the first `rank` samples.

    The result is the number of tie groups if there is no such group.
    """
    return int(np.searchsorted(groups.cumulative_count, rank, side="right"))


# ------------------------------------------------------------------------------------ rules
def risk_target(
    method: str,
    guarantee: Literal["selective risk", "generalized risk"],
    max_risk: float,
    delta: float,
) -> RuleTarget:
    """Validate the arguments of a rule that guarantees a risk, and return its target."""
    target = _choice.check_max_risk(max_risk)
    return RuleTarget(method, target, guarantee, _choice.check_delta(delta))


def passing_groups(
    s: Scored, aim: RuleTarget, alpha: float, index: IntArray | slice = slice(None)
) -> BoolArray:
    """Return a mask of the tie groups at which a risk above the target is rejected at alpha."""
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
    """Test thresholds downwards from these coverages; return the rule of largest coverage.

    If no threshold is certified, `other_rule` is appended to the reason.
    """
    delta = aim.delta or 0.0
    smallest = min_count(aim.target, delta)
    if s.n_rows < smallest:
        return too_few_samples_rule(s, aim, smallest)
    ranks = start_ranks(coverages, s.n_rows, aim.target, delta)
    ranks = [rank for rank in ranks if rank <= s.n_rows] or [smallest]
    result = longest_walk(s.groups, ranks, partial(passing_groups, s, aim), delta)
    if result.last_group < 0:
        return nothing_certified_rule(s, aim, delta / len(ranks), other_rule)
    threshold = threshold_above_next(s.groups, result)
    return _choice.build_rule(s, result.last_group, aim, bound=aim.target, threshold=threshold)


def threshold_above_next(groups: TieGroups, result: WalkResult) -> float | None:
    """Return the threshold just above the next lower confidence if only the start is certified.

    The threshold is a single-precision number if possible, so that it also separates confidences in
    single precision. The result is None if a threshold below the start is certified.
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
    """Return a rule without a threshold whose reason states the required number of samples."""
    reason = (
        f"{s.n_rows:,} samples cannot certify a {aim.guarantee} of at most "
        f"{format_percentage(aim.target)} with delta {aim.delta:g}; this requires "
        f"{_choice.format_count(required)} accepted samples without a failure"
    )
    return _choice.build_unattainable_rule(s, aim, reason + few_samples_hint(aim))


def format_percentage(share: float, n_digits: int = 6) -> str:
    """Return a share as a percentage in a reason."""
    return f"{100 * share:.{n_digits}g}%"


def nothing_certified_rule(
    s: Scored, aim: RuleTarget, alpha: float, other_rule: str = ""
) -> DecisionRule:
    """Return a rule without a threshold whose reason states the lowest observed risk."""
    level = "" if alpha == aim.delta else f" ({alpha:.3g} for each test)"
    reason = (
        f"no tested threshold certifies a {aim.guarantee} of at most "
        f"{format_percentage(aim.target)} with delta {aim.delta:g}{level}"
        f"{_describe_lowest_risk(s, aim, alpha)}"
    )
    return _choice.build_unattainable_rule(s, aim, reason + other_rule)


def _describe_lowest_risk(s: Scored, aim: RuleTarget, alpha: float) -> str:
    """Return a text with the lowest observed risk among thresholds that can be certified."""
    groups = s.groups
    required = min_count(aim.target, alpha)
    required_text = _choice.format_count(required)
    if aim.guarantee == "generalized risk":
        risk = groups.cumulative_loss / groups.total_weight
        condition = ""
    else:
        risk = groups.cumulative_loss / groups.cumulative_weight
        can_be_certified = groups.cumulative_count >= required
        if not can_be_certified.any():
            return (
                f"; this requires at least {required_text} accepted samples, and there are "
                f"{s.n_rows:,} samples"
            )
        risk = np.where(can_be_certified, risk, np.inf)
        condition = f" among thresholds that accept at least {required_text} samples"
    lowest = int(np.argmin(risk))
    return (
        f"; the lowest risk on these {s.n_rows:,} samples{condition} is "
        f"{format_percentage(risk[lowest], 3)}, with "
        f"{int(groups.cumulative_count[lowest]):,} accepted"
    )


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
    """Return a hint if density ratios retain too few samples, or an empty string."""
    if not aim.population or aim.max_ratio is not None:
        return ""
    return (
        ". They were drawn with probability ratio / largest ratio: use more samples, or clip the "
        "ratios with density_ratios(..., clip=) (--clip)"
    )


def refuted_by_betting(
    s: Scored, aim: RuleTarget, alpha: float, among: BoolArray | None = None
) -> BoolArray:
    """Return a mask of the tie groups at which betting rejects a risk above the target at alpha.

    If the mask `among` is passed, only the risk of the samples in this mask is tested.
    """
    n = s.confidence.size if among is None else int(np.count_nonzero(among))
    bets = _bet_sizes(n, aim.target, alpha)
    ratio = np.ones(s.confidence.size) if s.weight is None else s.weight
    relative_ratio = ratio / (aim.max_ratio or 1.0)
    if among is not None:
        relative_ratio = np.where(among, relative_ratio, 0.0)
    excess = relative_ratio * (s.loss.astype(np.float64) - aim.target)
    order = np.argsort(-s.confidence.astype(np.float64), kind="stable")
    sorted_ratio, sorted_excess = relative_ratio[order], excess[order]
    last_of_group = s.groups.cumulative_count - 1
    log_wealth = np.empty((bets.size, last_of_group.size))
    for i, bet in enumerate(bets):
        log_wealth[i] = _log_cumulative_product(1.0 - bet * sorted_excess)[last_of_group]
        if aim.guarantee == "generalized risk":
            # A rejected sample has a loss of 0.
            log_gain = np.cumsum(np.log1p(bet * aim.target * sorted_ratio))
            log_wealth[i] += log_gain[-1] - log_gain[last_of_group]
    log_mean_wealth = special.logsumexp(log_wealth, axis=0) - np.log(bets.size)
    out: BoolArray = log_mean_wealth >= -np.log(alpha)
    return out


def _log_cumulative_product(factors: FloatArray) -> FloatArray:
    """Return the logarithm of the cumulative product of factors; negative factors count as 0."""
    with np.errstate(divide="ignore"):
        out: FloatArray = np.cumsum(np.log(np.maximum(factors, 0.0)))
    return out


def _bet_sizes(n: int, risk: float, alpha: float) -> FloatArray:
    """Return the largest bet and its successive halves down to the best bet for n equal weights.

    The best bet for samples of unequal weight is larger.
    """
    largest = 1.0 / (1.0 - risk)
    best = np.sqrt(-2.0 * np.log(alpha) / (n * risk * (1.0 - risk)))
    n_halvings = int(np.clip(np.ceil(np.log2(largest / min(best, largest))), 0, _MAX_BETS))
    out: FloatArray = largest * 0.5 ** np.arange(n_halvings + 1, dtype=np.float64)
    return out
