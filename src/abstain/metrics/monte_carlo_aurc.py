"""Monte-Carlo weights of the AURC: -ln(1 - beta) averaged over draws of the ranks' positions."""

import numpy as np

from abstain._foundation import checks
from abstain._foundation.foreign import home, numbers_beside
from abstain._foundation.random import generator
from abstain._foundation.ranks import TieGroups
from abstain._foundation.scored import scored
from abstain.errors import DomainError
from abstain.metrics.rank_weights import rank_weighted_risk
from abstain.typing import AnyArray, FloatArray, Rng

#: Random numbers held at a time.
_AT_ONCE = 1 << 18


def monte_carlo_aurc(
    confidence: AnyArray,
    loss: AnyArray,
    *,
    draws: int = 1000,
    rng: Rng = None,
    weight: AnyArray | None = None,
) -> float:
    """Compute the AURC with Monte-Carlo weights.

    Answers: averaged over all coverages, how wrong are the samples that are accepted, when the
    population rank of each sample is drawn instead of worked out?

    Parameters
    ----------
    confidence : array of shape (n,)
        Higher means more trusted; any real scale, only the order matters.
    loss : array of shape (n,)
        Finite and non-negative; 1 for an error under 0/1 loss.
    draws : int, default=1000
        How many times the n ranks are drawn.
    rng : int, numpy.random.Generator or None, default=None
        Seed or generator; None draws fresh entropy.
    weight : array of shape (n,), optional
        How often each sample counts: whole numbers.

    Returns
    -------
    float
        In [0, 1] for losses in [0, 1] up to the noise of the draws; **lower is better**. Its mean
        over `rng` is exactly the plug-in estimator.

    Raises
    ------
    ShapeError, DomainError
        As in `aurc`; also if a weight is not a whole number.
    InputError
        If `draws` is not an integer of at least 1.

    Notes
    -----
    The population rank of the r-th of n samples has the distribution Beta(r, n - r + 1), and the
    mean of -ln(1 - u) over it is H_n - H_{n-r}: the draws converge to the plug-in weights, with an
    error that falls like 1/sqrt(draws). So prefer ``aurc(..., estimator="plugin")``; this is for
    studies of the estimator and for weights without a closed form. Weights are averaged over tie
    groups. Cost: n x draws random numbers, a few hundred thousand held at a time.

    References
    ----------
    .. [1] Zhou et al. (2025), eq. 15-17, https://arxiv.org/abs/2410.15361

    Examples
    --------
    >>> import abstain as ab
    >>> round(ab.monte_carlo_aurc([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1], draws=20_000, rng=0), 2)
    0.33
    """
    times = checks.positive_int(draws, "draws")
    groups = scored(confidence, loss, weight).groups

    def phi(own: TieGroups) -> AnyArray:
        return _over_ties(own, times, rng)

    return rank_weighted_risk(groups, phi)


def monte_carlo_weights(n: int, draws: int, rng: Rng) -> FloatArray:
    """Return the drawn weights of n distinct samples, most confident first, shape (n,)."""
    random, total = generator(rng), np.zeros(n)
    # Sorted uniforms are sums of exponentials over their sum with one more: nothing is sorted.
    rows = max(1, _AT_ONCE // (n + 1))
    for start in range(0, draws, rows):
        sums = random.standard_exponential((min(rows, draws - start), n + 1))
        np.cumsum(sums, axis=1, out=sums)
        np.log(sums, out=sums)
        total += (sums[:, -1:] - sums[:, :-1]).sum(axis=0)
    return total / draws


def _over_ties(groups: TieGroups, draws: int, rng: Rng) -> AnyArray:
    through = home(groups.through)
    if np.any(through % 1):
        msg = (
            "`weight` must be whole numbers for Monte-Carlo weights, which count samples; got a "
            "fraction. Use aurc(..., estimator='plugin'), which takes any weight"
        )
        raise DomainError(msg)
    sums = np.cumsum(monte_carlo_weights(round(float(through[-1])), draws, rng))
    at = np.concatenate(([0.0], sums[through.astype(np.int64) - 1]))
    return numbers_beside(np.diff(at), groups.weight) / groups.weight
