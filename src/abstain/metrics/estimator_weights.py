"""The weights themselves: of an estimator by rank, and of the population; the population's AURC."""

from typing import Literal

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import as_array_like, namespace, to_numpy
from abstain._foundation.gradients import (
    as_double,
    as_double_like,
    is_computed_by_own_library,
)
from abstain._foundation.random import as_generator
from abstain._foundation.scored import validate_samples
from abstain._foundation.tie_groups import TieGroups
from abstain.errors import DomainError
from abstain.metrics.areas.aurc import ESTIMATORS
from abstain.metrics.rank_weights import (
    RankWeight,
    augrc_weight,
    partial_hyperbolic_weights,
    rank_weight_from_vertices,
    rank_weighted_risk,
    sample_threshold_weights,
)
from abstain.typing import AnyArray, FloatArray, Rng

#: Random numbers held at a time.
_MAX_RANDOM_NUMBERS = 1 << 18

#: The estimators with weights in closed form.
_CLOSED_FORM_WEIGHTS: dict[str, RankWeight] = {
    "plugin": ESTIMATORS["plugin"],
    "log": ESTIMATORS["log"],
    "sele": ESTIMATORS["sele"],
    "2sele": ESTIMATORS["2sele"],
    "augrc": augrc_weight,
}

_POPULATION_FORMS: dict[str, RankWeight] = {
    "reweighted": rank_weight_from_vertices(partial_hyperbolic_weights(0.0, 1.0)),
    "definition": rank_weight_from_vertices(sample_threshold_weights),
}


def rank_weights(
    n: int,
    estimator: Literal["plugin", "log", "sele", "2sele", "augrc", "monte-carlo"] = "plugin",
    *,
    draws: int = 1000,
    rng: Rng = None,
) -> FloatArray:
    """Compute the weights that an estimator gives to n samples of distinct confidence.

    Answers: how much does a loss count at each rank?

    Parameters
    ----------
    n : int
        Number of samples, at least 1.
    estimator : {"plugin", "log", "sele", "2sele", "augrc", "monte-carlo"}, default="plugin"
        With r the ascending rank: ``H_n - H_{n-r}``, ``-ln(1 - r/(n+1))``, ``r/n``, ``2r/n``,
        ``(r - 1/2)/n``, or the mean of -ln(1 - beta) over drawn positions beta of rank r.
    draws : int, default=1000
        Of "monte-carlo".
    rng : int, numpy.random.Generator or None, default=None
        Of "monte-carlo"; None draws fresh entropy.

    Returns
    -------
    ndarray of shape (n,)
        In the order of the ranks: the least confident sample first. The mean over samples of
        weight x loss is the estimate.

    Raises
    ------
    InputError
        If `n` or `draws` is not an integer of at least 1, or there is no such estimator.

    See Also
    --------
    sample_contributions : Weight x loss / n of samples that may be tied.
    weight_bias : How far the weights are from the population's.

    Notes
    -----
    The "plugin" weights have mean 1; those of "log" are below them at every rank. All come from
    the function that computes the metrics. Cost: O(n); "monte-carlo" O(n x draws) in blocks.

    References
    ----------
    .. [1] Zhou et al. (2025), eq. 12-13 and 18, https://arxiv.org/abs/2410.15361

    Examples
    --------
    >>> from abstain.metrics import rank_weights
    >>> rank_weights(4).round(4).tolist()
    [0.25, 0.5833, 1.0833, 2.0833]
    >>> rank_weights(4, "2sele").tolist()
    [0.5, 1.0, 1.5, 2.0]
    """
    size = checks.positive_int(n, "n")
    checks.one_of(estimator, "estimator", (*_CLOSED_FORM_WEIGHTS, "monte-carlo"))
    if estimator == "monte-carlo":
        return monte_carlo_weights(size, checks.positive_int(draws, "draws"), rng)[::-1].copy()
    ones = np.ones(size)
    groups = TieGroups(np.arange(size, 0.0, -1.0), ones, ones)
    return np.array(_CLOSED_FORM_WEIGHTS[estimator](groups)[::-1])


def population_weight(rank: AnyArray, area: Literal["aurc", "augrc"] = "aurc") -> AnyArray:
    """Compute the weight that the population gives to a loss at a rank.

    Answers: how much does a loss count at this rank, in infinitely many samples?

    Parameters
    ----------
    rank : array of any shape
        Population rank u = P(confidence of another <= its own), in [0, 1).
    area : {"aurc", "augrc"}, default="aurc"
        -ln(1 - u) or u.

    Returns
    -------
    array of the same shape
        Never negative, of the caller's kind; a float for a number.

    Raises
    ------
    DomainError
        If a rank is not in [0, 1).
    InputError
        If there is no such area.

    Notes
    -----
    Ranks of a continuous score are uniform, so the mean weight is 1 for the AURC and 1/2 for the
    AUGRC, whatever the population.

    References
    ----------
    .. [1] Zhou et al. (2025), eq. 7 and 9, https://arxiv.org/abs/2410.15361

    Examples
    --------
    >>> from abstain.metrics import population_weight
    >>> population_weight([0.0, 0.5, 0.99]).round(4).tolist()
    [0.0, 0.6931, 4.6052]
    """
    checks.one_of(area, "area", ("aurc", "augrc"))
    u = as_double(rank) if is_computed_by_own_library(rank) else _rank_on_host(rank)
    checks.finite(u, "rank")
    checks.unit_interval(u, "rank")
    xp = namespace(u)
    if bool(xp.any(u == 1)):
        raise DomainError("`rank` must be below 1, where the weight has no limit; got 1")
    weights = u if area == "augrc" else -xp.log1p(-u)
    if is_computed_by_own_library(rank):
        return weights
    return float(weights) if weights.ndim == 0 else as_array_like(weights, rank)


def population_aurc(
    confidence: AnyArray,
    loss: AnyArray,
    *,
    form: Literal["reweighted", "definition"] = "reweighted",
    weight: AnyArray | None = None,
) -> float:
    """Compute the population AURC of a population that consists of these samples.

    Answers: if these samples were all there is, what would the AURC be, without any estimating?

    Parameters
    ----------
    confidence : array of shape (n,)
        Higher means more trusted; any real scale, only the order matters.
    loss : array of shape (n,)
        Finite and non-negative.
    form : {"reweighted", "definition"}, default="reweighted"
        "reweighted": mean of loss times -ln(1 - u), averaged over the ranks u that a tie group
        covers. "definition": mean over samples of the selective risk at the sample's own
        threshold, ties accepted together.
    weight : array of shape (n,), optional
        The share of the population that each sample stands for, up to a factor.

    Returns
    -------
    float
        In [0, 1] for losses in [0, 1]; **lower is better**.

    Raises
    ------
    ShapeError, DomainError
        As in `aurc`.
    InputError
        If there is no such form.

    Notes
    -----
    Both are one number for a continuous score; they part where a share of the population is
    tied. The ties between ranks a and b have the mean weight
    ``1 + ((1-b) ln(1-b) - (1-a) ln(1-a)) / (b-a)``, which is the exact area under the selective
    risk when they are accepted in part, at random. The definition accepts them as a whole. Here
    every sample is a share of the population, if only 1/n: without ties "definition" is the
    plug-in estimator exactly, and the two differ by at most (largest loss)/(2n). The scale of the
    weights does not matter. Cost: one sort.

    References
    ----------
    .. [1] Zhou et al. (2025), eq. 3 and 8, https://arxiv.org/abs/2410.15361

    Examples
    --------
    >>> import abstain as ab
    >>> round(ab.population_aurc([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1], form="definition"), 6)
    0.333333
    >>> round(ab.population_aurc([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1]), 6)
    0.284238
    """
    phi = _POPULATION_FORMS[checks.one_of(form, "form", tuple(_POPULATION_FORMS))]
    return rank_weighted_risk(validate_samples(confidence, loss, weight).groups, phi)


def _rank_on_host(rank: AnyArray) -> FloatArray:
    values = to_numpy(rank, "rank")
    if values.dtype.kind not in "iuf":
        raise DomainError(f"`rank` must hold numbers; got {values.dtype}")
    return values.astype(np.float64)


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
    groups = validate_samples(confidence, loss, weight).groups

    def phi(own: TieGroups) -> AnyArray:
        return _monte_carlo_weights_of_ties(own, times, rng)

    return rank_weighted_risk(groups, phi)


def monte_carlo_weights(n: int, draws: int, rng: Rng) -> FloatArray:
    """Return the drawn weights of n distinct samples, most confident first, shape (n,)."""
    random, total = as_generator(rng), np.zeros(n)
    # Sorted uniforms are sums of exponentials over their sum with one more: nothing is sorted.
    rows = max(1, _MAX_RANDOM_NUMBERS // (n + 1))
    for start in range(0, draws, rows):
        sums = random.standard_exponential((min(rows, draws - start), n + 1))
        np.cumsum(sums, axis=1, out=sums)
        np.log(sums, out=sums)
        total += (sums[:, -1:] - sums[:, :-1]).sum(axis=0)
    return total / draws


def _monte_carlo_weights_of_ties(groups: TieGroups, draws: int, rng: Rng) -> AnyArray:
    through = to_numpy(groups.cumulative_weight, "values")
    if np.any(through % 1):
        raise DomainError(
            "`weight` must be whole numbers for Monte-Carlo weights, which count samples; got a "
            "fraction. Use aurc(..., estimator='plugin'), which takes any weight"
        )
    sums = np.cumsum(monte_carlo_weights(round(float(through[-1])), draws, rng))
    sums_at_groups = np.concatenate(([0.0], sums[through.astype(np.int64) - 1]))
    return as_double_like(np.diff(sums_at_groups), groups.weight) / groups.weight
