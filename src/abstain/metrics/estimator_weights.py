"""Rank weights of AURC estimators, population weights and the population AURC."""

from functools import partial
from typing import Literal

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import (
    as_array_like,
    as_double,
    as_double_like,
    is_computed_by_own_library,
    namespace,
    to_numpy,
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
from abstain.metrics.weight_statistics import double_array
from abstain.typing import AnyArray, FloatArray, Rng

#: Maximum number of random numbers in memory.
_MAX_RANDOM_NUMBERS = 1 << 18

#: Estimators whose weights have a closed form that depends only on the rank.
_CLOSED_FORM_WEIGHTS: dict[str, RankWeight] = {
    **{name: phi for name, phi in ESTIMATORS.items() if name != "trapezoid"},
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
    """Compute the rank weights of an estimator for n samples with distinct confidences.

    Answers: which weight does an estimator assign to the loss at each rank?

    Parameters
    ----------
    n : int
        Number of samples, at least 1.
    estimator : {"plugin", "log", "sele", "2sele", "augrc", "monte-carlo"}, default="plugin"
        In this order, the weights at the ascending rank r are ``H_n - H_{n-r}``, ``-ln(1 -
        r/(n+1))``, ``r/n``, ``2r/n`` and ``(r - 1/2)/n``. The weight of "monte-carlo" is the mean
        of -ln(1 - u) over randomly drawn population ranks u.
    draws : int, default=1000
        Number of draws of "monte-carlo".
    rng : int, numpy.random.Generator or None, default=None
        Seed or generator for "monte-carlo". None uses fresh entropy.

    Returns
    -------
    ndarray of shape (n,)
        The weights in ascending order of rank, starting with the least confident sample. The
        estimate is the mean of weight x loss.

    Raises
    ------
    InputError
        If `n` or `draws` is not an integer of at least 1, or `estimator` is not a valid name.

    See Also
    --------
    sample_contributions : Contributions weight x loss / n, also with ties.
    weight_bias : Bias of the weights.

    Notes
    -----
    The "plugin" weights have mean 1, and the "log" weights are smaller at every rank. The running
    time is O(n), or O(n x draws) for "monte-carlo".

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
        n_draws = checks.positive_int(draws, "draws")
        return monte_carlo_weights(size, n_draws, rng)[::-1].copy()
    ones = np.ones(size)
    distinct_confidences = np.arange(size, 0.0, -1.0)
    groups = TieGroups(distinct_confidences, weight=ones, loss=ones)
    descending_weights = _CLOSED_FORM_WEIGHTS[estimator](groups)
    return np.array(descending_weights[::-1])


def population_weight(rank: AnyArray, area: Literal["aurc", "augrc"] = "aurc") -> AnyArray:
    """Compute the weight of a loss at a population rank.

    Answers: which weight does the loss at this rank have in the population?

    Parameters
    ----------
    rank : array of any shape
        Population rank u = P(confidence of another sample <= confidence of this sample), in [0, 1).
    area : {"aurc", "augrc"}, default="aurc"
        The area that defines the weight. The weight is -ln(1 - u) for "aurc" and u for "augrc".

    Returns
    -------
    array of the same shape
        The non-negative weights, in the array type of the input, or a float for a single rank.

    Raises
    ------
    DomainError
        If a rank is not in [0, 1).
    InputError
        If `area` is not a valid name.

    Notes
    -----
    The ranks of a continuous score are uniformly distributed, so the mean weight is 1 for the AURC
    and 1/2 for the AUGRC.

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
    is_host_array = not is_computed_by_own_library(rank)
    u = double_array(rank, "rank") if is_host_array else as_double(rank)
    checks.finite(u, "rank")
    checks.unit_interval(u, "rank")
    xp = namespace(u)
    if bool(xp.any(u == 1)):
        raise DomainError("`rank` must be below 1, because the weight is infinite at 1; got 1")
    weights = u if area == "augrc" else -xp.log1p(-u)
    if not is_host_array:
        return weights
    return float(weights) if weights.ndim == 0 else as_array_like(weights, rank)


def population_aurc(
    confidence: AnyArray,
    loss: AnyArray,
    *,
    form: Literal["reweighted", "definition"] = "reweighted",
    weight: AnyArray | None = None,
) -> float:
    """Compute the AURC of a population that consists of exactly these samples.

    Answers: if these samples are the whole population, what is its AURC?

    Parameters
    ----------
    confidence : array of shape (n,)
        Confidence scores; higher means more trusted. Only the order of the scores matters.
    loss : array of shape (n,)
        Finite and non-negative.
    form : {"reweighted", "definition"}, default="reweighted"
        "reweighted" is the mean of loss x -ln(1 - u), where -ln(1 - u) is averaged over the ranks u
        of each tie group. "definition" is the mean selective risk over the thresholds at the
        confidences of all samples. A threshold accepts tied samples together.
    weight : array of shape (n,), optional
        The share of the population that each sample represents. Only the ratios of the weights
        matter.

    Returns
    -------
    float
        Value in [0, 1] for losses in [0, 1]; **lower is better**.

    Raises
    ------
    ShapeError, DomainError
        See `aurc`.
    InputError
        If `form` is not a valid name.

    Notes
    -----
    Each sample represents the share 1/n of the population. The weight of a tie group between the
    ranks a and b in "reweighted" is ``1 + ((1-b) ln(1-b) - (1-a) ln(1-a)) / (b-a)``. The form
    "reweighted" accepts a random part of a tie group, whereas "definition" accepts entire tie
    groups. Without ties, "definition" equals the plug-in estimator, and the two forms differ by at
    most (largest loss)/(2n). The function sorts the samples once.

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


def monte_carlo_aurc(
    confidence: AnyArray,
    loss: AnyArray,
    *,
    draws: int = 1000,
    rng: Rng = None,
    weight: AnyArray | None = None,
) -> float:
    """Compute the AURC with Monte Carlo weights.

    Answers: averaged over all coverages, how large is the mean loss of the accepted samples, if the
    population ranks of the samples are drawn at random?

    Parameters
    ----------
    confidence : array of shape (n,)
        Confidence scores; higher means more trusted. Only the order of the scores matters.
    loss : array of shape (n,)
        Finite and non-negative; 1 for an error under 0/1 loss.
    draws : int, default=1000
        Number of times that all n ranks are drawn.
    rng : int, numpy.random.Generator or None, default=None
        Seed or generator; None uses fresh entropy.
    weight : array of shape (n,), optional
        Frequency weights, which must be integers.

    Returns
    -------
    float
        Value in [0, 1] for losses in [0, 1], up to the random error of the draws; **lower is
        better**. The expected value over the draws equals the plug-in estimate.

    Raises
    ------
    ShapeError, DomainError
        See `aurc`. A DomainError is also raised if a weight is not an integer.
    InputError
        If `draws` is not an integer of at least 1.

    Notes
    -----
    The population rank u of the sample of rank r among n has the distribution Beta(r, n - r + 1).
    The weight is the mean of -ln(1 - u) over draws from this distribution. The weight converges to
    the plug-in weight H_n - H_{n-r}, with an error proportional to 1/sqrt(draws). Weights are
    averaged over tie groups. To evaluate a score, use ``aurc(..., estimator="plugin")`` instead.
    The function draws n x `draws` random numbers.

    References
    ----------
    .. [1] Zhou et al. (2025), eq. 15-17, https://arxiv.org/abs/2410.15361

    Examples
    --------
    >>> import abstain as ab
    >>> round(ab.monte_carlo_aurc([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1], draws=20_000, rng=0), 2)
    0.33
    """
    n_draws = checks.positive_int(draws, "draws")
    groups = validate_samples(confidence, loss, weight).groups
    weights = partial(_monte_carlo_weights_of_ties, draws=n_draws, rng=rng)
    return rank_weighted_risk(groups, weights)


def monte_carlo_weights(n: int, draws: int, rng: Rng) -> FloatArray:
    """Return the Monte Carlo weights of n distinct samples, most confident first, shape (n,)."""
    random = as_generator(rng)
    total = np.zeros(n)
    block_size = max(1, _MAX_RANDOM_NUMBERS // (n + 1))
    for start in range(0, draws, block_size):
        n_draws = min(block_size, draws - start)
        # Cumulative sums of exponential numbers, divided by the last sum, are sorted uniform
        # numbers. The logarithms are subtracted instead of dividing.
        log_sums = random.standard_exponential((n_draws, n + 1))
        np.cumsum(log_sums, axis=1, out=log_sums)
        np.log(log_sums, out=log_sums)
        total += (log_sums[:, -1:] - log_sums[:, :-1]).sum(axis=0)
    return total / draws


def _monte_carlo_weights_of_ties(groups: TieGroups, draws: int, rng: Rng) -> AnyArray:
    """Return the Monte Carlo weight of each tie group, averaged over its samples."""
    last_position = to_numpy(groups.cumulative_weight, "values")
    if np.any(last_position % 1):
        raise DomainError(
            "`weight` must be integers for Monte Carlo weights. Use "
            "aurc(..., estimator='plugin'), which supports any weight"
        )
    n_samples = round(float(last_position[-1]))
    cumulative_weights = np.cumsum(monte_carlo_weights(n_samples, draws, rng))
    weights_through_group = cumulative_weights[last_position.astype(np.int64) - 1]
    weight_sums = np.diff(weights_through_group, prepend=0.0)
    return as_double_like(weight_sums, groups.weight) / groups.weight
