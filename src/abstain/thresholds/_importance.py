"""Importance weights: a rule for the data where it is used, from calibration data of another law.

Two ways. A sample is kept with the chance ratio / largest: what is kept is drawn from that law, and
every rule holds on it as it is. Or all samples are used, each with its ratio v in [0, 1] of the
largest: a risk above R means E[v (loss - R)] > 0 among the accepted, whatever the ratios add up to.
Then (1 - b v (loss - R)) is at most 1 on average for any bet b in (0, 1 / (1 - R)], and so is the
product over independent samples, and a mean of such products over bets chosen without the losses.
By the inequality of Markov that mean reaches 1 / alpha with chance at most alpha.
"""

import numpy as np

from abstain._foundation.lazy_imports import special
from abstain._foundation.scored import Scored
from abstain.shift import DensityRatios
from abstain.shift.ratios import as_density_ratios
from abstain.thresholds._choice import Aim
from abstain.typing import AnyArray, BoolArray, FloatArray, Rng

#: Bets that are weighed at once, so that their table stays small.
_MOST_BETS = 40


def drawn(
    s: Scored, aim: Aim, ratio: "AnyArray | DensityRatios | None", rng: Rng
) -> tuple[Scored, Aim]:
    """Return a sample of the law where the rule is used; the data themselves without ratios."""
    if ratio is None:
        return s, aim
    ratios = as_density_ratios(ratio, s.confidence.size)
    kept = ratios.draw(rng)
    target = f"{ratios.target} ({int(kept.sum())} of {ratios.n} samples drawn)"
    return Scored(s.confidence[kept], s.loss[kept]), aim._replace(promised_for=target)


def weighted(s: Scored, aim: Aim, ratio: "AnyArray | DensityRatios | None") -> tuple[Scored, Aim]:
    """Return all samples with their ratios as weights; the data themselves without ratios."""
    if ratio is None:
        return s, aim
    ratios = as_density_ratios(ratio, s.confidence.size)
    kept = ratios.values > 0
    target = f"{ratios.target} ({ratios.n} samples worth {ratios.effective_size:.0f})"
    one = Scored(s.confidence[kept], s.loss[kept], ratios.values[kept])
    return one, aim._replace(promised_for=target, largest=ratios.largest)


def few_drawn(aim: Aim) -> str:
    """Say why there are so few samples, where they were drawn."""
    if not aim.promised_for or aim.largest is not None:
        return ""
    return (
        ". They were drawn with the chance ratio / largest: use more samples, or cut the ratios "
        "with density_ratios(..., clip=) (--clip)"
    )


def refuted(s: Scored, aim: Aim, alpha: float, among: BoolArray | None = None) -> BoolArray:
    """Tell at which tie groups a risk above the target is refuted at level alpha, by bets.

    The risk among some samples is that of a law in which the others have a ratio of 0.
    """
    n = s.confidence.size if among is None else int(np.count_nonzero(among))
    bets = _bets(n, aim.target, alpha)
    share = _shares(s, aim)
    share = share if among is None else np.where(among, share, 0.0)
    order = np.argsort(-s.confidence.astype(np.float64), kind="stable")
    ends = s.groups.cumulative_count - 1
    moved = (share * (s.loss.astype(np.float64) - aim.target))[order]
    wealth = np.empty((bets.size, ends.size))
    for i, bet in enumerate(bets):
        wealth[i] = _log_product(bet * moved)[ends]
        if aim.guarantee == "generalized risk":
            idle = np.cumsum(np.log1p(bet * aim.target * share[order]))
            wealth[i] += idle[-1] - idle[ends]
    mean = special.logsumexp(wealth, axis=0) - np.log(bets.size)
    out: BoolArray = mean >= -np.log(alpha)
    return out


def _shares(s: Scored, aim: Aim) -> FloatArray:
    weight = np.ones(s.confidence.size) if s.weight is None else s.weight
    out: FloatArray = weight / (aim.largest or 1.0)
    return out


def _log_product(x: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        out: FloatArray = np.cumsum(np.log(np.maximum(1.0 - x, 0.0)))
    return out


def _bets(n: int, risk: float, alpha: float) -> FloatArray:
    """Return halvings of the largest bet, down to the best one for n samples of equal weight.

    Samples of unequal weight are worth fewer, and fewer samples take larger bets.
    """
    most = 1.0 / (1.0 - risk)
    least = np.sqrt(-2.0 * np.log(alpha) / (n * risk * (1.0 - risk)))
    count = int(np.clip(np.ceil(np.log2(most / min(least, most))), 0, _MOST_BETS))
    out: FloatArray = most * 0.5 ** np.arange(count + 1, dtype=np.float64)
    return out
