"""Importance weights: a rule for a target population, from calibration data of another population.

There are two methods. (1) Each sample is kept with probability ratio / max_ratio. The kept samples
are drawn from the target population, so every rule applies to them. (2) All samples are used, each
with its ratio v, divided by the largest ratio. A risk above R means E[v (loss - R)] > 0 among the
accepted samples, whatever the sum of the ratios. Then the mean of (1 - b v (loss - R)) is at most 1
for any bet b in (0, 1 / (1 - R)]. The same holds for the product over independent samples, and for
a mean of such products over bets that do not depend on the losses. By Markov's inequality, this
mean reaches 1 / alpha with probability at most alpha.
"""

import numpy as np

from abstain._foundation.lazy_imports import special
from abstain._foundation.scored import Scored
from abstain.shift import DensityRatios
from abstain.shift.ratios import as_density_ratios
from abstain.thresholds._choice import RuleTarget
from abstain.typing import AnyArray, BoolArray, FloatArray, Rng

#: Largest number of bets, to limit the memory.
_MAX_BETS = 40


def sample_by_ratio(
    s: Scored, aim: RuleTarget, ratio: "AnyArray | DensityRatios | None", rng: Rng
) -> tuple[Scored, RuleTarget]:
    """Return a sample of the target population; the data themselves without ratios."""
    if ratio is None:
        return s, aim
    ratios = as_density_ratios(ratio, s.confidence.size)
    is_kept = ratios.draw(rng)
    population = f"{ratios.target} ({int(is_kept.sum())} of {ratios.n} samples drawn)"
    return Scored(s.confidence[is_kept], s.loss[is_kept]), aim._replace(population=population)


def weight_by_ratio(
    s: Scored, aim: RuleTarget, ratio: "AnyArray | DensityRatios | None"
) -> tuple[Scored, RuleTarget]:
    """Return all samples with their ratios as weights; the data themselves without ratios."""
    if ratio is None:
        return s, aim
    ratios = as_density_ratios(ratio, s.confidence.size)
    is_positive = ratios.values > 0
    population = f"{ratios.target} ({ratios.n} samples worth {ratios.effective_size:.0f})"
    samples = Scored(s.confidence[is_positive], s.loss[is_positive], ratios.values[is_positive])
    return samples, aim._replace(population=population, max_ratio=ratios.largest)


def few_samples_hint(aim: RuleTarget) -> str:
    """Return an explanation for few samples if they were drawn by density ratios."""
    if not aim.population or aim.max_ratio is not None:
        return ""
    return (
        ". They were drawn with probability ratio / largest ratio: use more samples, or clip the "
        "ratios with density_ratios(..., clip=) (--clip)"
    )


def refuted_by_betting(
    s: Scored, aim: RuleTarget, alpha: float, among: BoolArray | None = None
) -> BoolArray:
    """Return at which tie groups bets refute a risk above the target at level alpha.

    If `among` is passed, the risk is that of these samples: the others get a ratio of 0.
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
            # A rejected sample counts as a loss of 0.
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
    """Return the largest bet and its halvings, down to the best bet for n samples of equal weight.

    Samples of unequal weight are equivalent to fewer samples, for which larger bets are better.
    """
    largest = 1.0 / (1.0 - risk)
    best = np.sqrt(-2.0 * np.log(alpha) / (n * risk * (1.0 - risk)))
    n_halvings = int(np.clip(np.ceil(np.log2(largest / min(best, largest))), 0, _MAX_BETS))
    out: FloatArray = largest * 0.5 ** np.arange(n_halvings + 1, dtype=np.float64)
    return out
