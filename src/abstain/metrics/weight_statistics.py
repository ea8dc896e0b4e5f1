"""How far the weights of the AURC estimators are from what they estimate: exact bias and error.

The population gives a sample of rank u the weight -ln(1 - u) (AURC) or u (AUGRC). An estimator
gives it a weight by its rank r among n, which is random. Given u these functions return the bias,
the variance and the mean squared error of that weight, exactly and not by simulation.
"""

from typing import Literal, TypeAlias, get_args

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import as_array_like, to_numpy
from abstain.errors import DomainError, ShapeError
from abstain.typing import AnyArray, FloatArray

Estimator: TypeAlias = Literal["plugin", "log", "sele", "2sele", "augrc", "monte-carlo"]


def weight_bias(
    rank: AnyArray,
    n: AnyArray,
    estimator: Estimator = "plugin",
    *,
    counts_itself: bool = True,
    draws: int = 1000,
) -> AnyArray:
    r"""Compute the bias of an estimator's weight for a sample of known population rank.

    Answers: by how much does the weight that this sample gets among n miss, on average, the weight
    that the population gives it?

    Parameters
    ----------
    rank : array of any shape
        Population rank u = P(confidence of another <= its own), in [0, 1).
    n : array of int
        Number of samples that the estimator averages over, at least 1; broadcast against `rank`.
    estimator : {"plugin", "log", "sele", "2sele", "augrc", "monte-carlo"}, default="plugin"
        As in `rank_weights`. The target is -ln(1 - u) for all but "augrc", whose target is u.
    counts_itself : bool, default=True
        Whether the sample is one of the n, so that r = 1 + Bin(n - 1, u); otherwise it is a new
        one among n others, r = Bin(n, u).
    draws : int, default=1000
        Of "monte-carlo"; it has no part in the bias.

    Returns
    -------
    array of the broadcast shape
        Mean weight less target, of either sign, **0 is best**; a float for two numbers.

    Raises
    ------
    DomainError
        If a rank is not in [0, 1) or an n is not an integer of at least 1.
    InputError
        If there is no such estimator.

    Notes
    -----
    For "plugin" it is 1/n minus the sum of u^j/j over j >= n for a sample that counts
    itself, and minus that sum over j > n for a new one: the curve flattens where -ln(1 - u) does
    not. "sele" is off by u + (1 - u)/n + ln(1 - u), which no n mends; as an estimator of
    AUGRC, against u, its bias is (1 - u)/n, and that of "augrc" is (1/2 - u)/n. "log" has
    no closed form. Expectations are sums over the ranks that have a chance: relative error below
    1e-11 away from where a bias changes sign. Cost: about 11 sqrt(n) terms for each rank.

    References
    ----------
    .. [1] Zhou et al. (2025), eq. 21, 22 and 28, https://arxiv.org/abs/2410.15361

    Examples
    --------
    >>> from abstain.metrics import weight_bias
    >>> weight_bias([0.0, 0.5, 0.99], 100).round(4).tolist()
    [0.01, 0.01, -0.2094]
    >>> weight_bias(0.5, [10, 1000], "sele").round(4).tolist()
    [-0.1431, -0.1926]
    """
    return _statistic("bias", rank, n, estimator, counts_itself=counts_itself, draws=draws)


def weight_variance(
    rank: AnyArray,
    n: AnyArray,
    estimator: Estimator = "plugin",
    *,
    counts_itself: bool = True,
    draws: int = 1000,
) -> AnyArray:
    r"""Compute the variance of an estimator's weight for a sample of known population rank.

    Answers: how much does the weight of this sample change with the other samples?

    Parameters
    ----------
    rank, n : array
        As in `weight_bias`.
    estimator : {"plugin", "log", "sele", "2sele", "augrc", "monte-carlo"}, default="plugin"
        As in `rank_weights`.
    counts_itself : bool, default=True
        As in `weight_bias`.
    draws : int, default=1000
        Of "monte-carlo": its variance is that of "plugin" plus that of the draws over `draws`.

    Returns
    -------
    array of the broadcast shape
        Never negative, **lower is better**; a float for two numbers.

    Raises
    ------
    DomainError, InputError
        As in `weight_bias`.

    Notes
    -----
    (n - 1) u (1 - u)/n^2 for "sele" and "augrc" if the sample counts itself, else u (1 - u)/n;
    four times that for "2sele". A draw of "monte-carlo" at rank r varies by the sum of 1/k^2 over
    k from n - r + 1 to n. That sum is what [1]_ calls the squared error of a plug-in weight: there
    the *sample* rank is given and the population rank is random. Cost as in `weight_bias`.

    References
    ----------
    .. [1] Zhou et al. (2025), eq. 23, https://arxiv.org/abs/2410.15361; the variance is ours, by
       the rank distribution of their eq. 21

    Examples
    --------
    >>> from abstain.metrics import weight_variance
    >>> weight_variance([0.0, 0.5, 0.99], 100).round(5).tolist()
    [0.0, 0.01015, 0.43623]
    """
    return _statistic("variance", rank, n, estimator, counts_itself=counts_itself, draws=draws)


def weight_mse(
    rank: AnyArray,
    n: AnyArray,
    estimator: Estimator = "plugin",
    *,
    counts_itself: bool = True,
    draws: int = 1000,
) -> AnyArray:
    r"""Compute the mean squared error of an estimator's weight at a known population rank.

    Answers: how far is the weight that this sample gets among n from the weight that the
    population gives it?

    Parameters
    ----------
    rank, n : array
        As in `weight_bias`.
    estimator : {"plugin", "log", "sele", "2sele", "augrc", "monte-carlo"}, default="plugin"
        As in `weight_bias`, with the same targets.
    counts_itself : bool, default=True
        As in `weight_bias`.
    draws : int, default=1000
        Of "monte-carlo", as in `weight_variance`.

    Returns
    -------
    array of the broadcast shape
        Squared bias plus variance, never negative, **lower is better**; a float for two numbers.

    Raises
    ------
    DomainError, InputError
        As in `weight_bias`.

    See Also
    --------
    weight_error_scale : Its size for "plugin" and "log", in closed form.

    Notes
    -----
    Falls like 1/n at any fixed rank for "plugin" and "log", but grows without bound as u goes to 1
    at any fixed n, because -ln(1 - u) does. It is another quantity than the MSE of [1]_, which is
    given the *sample* rank and averages over the population rank: `weight_mse_given_rank`. Cost as
    in `weight_bias`.

    References
    ----------
    .. [1] Zhou et al. (2025), eq. 23 and 29, https://arxiv.org/abs/2410.15361 (given the sample
       rank); given the population rank, the squares of their eq. 21, 22 and 28 are its bias

    Examples
    --------
    >>> from abstain.metrics import weight_mse
    >>> weight_mse(0.5, [10, 100, 1000]).round(5).tolist()
    [0.1288, 0.01025, 0.001]
    """
    return _statistic("mse", rank, n, estimator, counts_itself=counts_itself, draws=draws)


def weight_error_scale(rank: AnyArray, n: AnyArray) -> AnyArray:
    """Compute u/(n(1 - u) + 1), the size of the squared error of a plug-in or log weight.

    Answers: about how far is the weight of a sample at this rank from the population's?

    Parameters
    ----------
    rank, n : array
        As in `weight_bias`.

    Returns
    -------
    array of the broadcast shape
        Never negative, **lower is better**; a float for two numbers.

    Raises
    ------
    DomainError
        As in `weight_bias`.

    Notes
    -----
    A scale, **not a bound**. For "plugin" and "log", n from 32 to 10^6 and 5/n <= u <= 1 - 5/n the
    exact `weight_mse` is 1.0 to 1.4 times this scale: above it everywhere, close to it where
    n(1 - u) is large. At u < 5/n a sample that counts itself adds the square of the bias 1/n, and
    towards u = 1 the scale stays below n while the error grows without bound. The table is in the
    documentation of the estimators.

    References
    ----------
    .. [1] Zhou et al. (2025), eq. 24 and 30, https://arxiv.org/abs/2410.15361

    Examples
    --------
    >>> from abstain.metrics import weight_error_scale
    >>> weight_error_scale(0.5, [10, 100, 1000]).round(5).tolist()
    [0.08333, 0.0098, 0.001]
    """
    u, size = _broadcast_rank_and_n(rank, n)
    return _like_input(u / (size * (1.0 - u) + 1.0), rank)


def weight_mse_given_rank(
    sample_rank: AnyArray,
    n: AnyArray,
    estimator: Estimator = "plugin",
    *,
    draws: int = 1000,
) -> AnyArray:
    r"""Compute the mean squared error of an estimator's weight at a known *sample* rank.

    Answers: a sample is the r-th of n; how far is its weight from that of its population rank,
    which nobody knows?

    Parameters
    ----------
    sample_rank : array of int
        Rank r of the sample among the n, from 1 (least confident) to n.
    n : array of int
        Number of samples, at least 1; broadcast against `sample_rank`.
    estimator : {"plugin", "log", "sele", "2sele", "augrc", "monte-carlo"}, default="plugin"
        As in `weight_bias`, with the same targets.
    draws : int, default=1000
        Of "monte-carlo", whose error is that of "plugin" times 1 + 1/draws.

    Returns
    -------
    array of the broadcast shape
        Never negative, **lower is better**; a float for two numbers.

    Raises
    ------
    DomainError
        If an n or a rank is no integer of at least 1, or a rank is above its n.
    InputError
        If there is no such estimator.

    See Also
    --------
    weight_mse : The same at a known population rank: another quantity, which grows without bound.

    Notes
    -----
    psi'(n + 1 - r) - psi'(n + 1) for "plugin", the sum of 1/k^2 over k from n - r + 1 to n, at most
    pi^2/6. For the others the square of what their weight is off H_n - H_{n-r} comes on top: no
    weight that depends on r alone errs less than "plugin". Averaged over r = 1, ..., n it is
    H_n/n; `mean_weight_error_scale` has the limit in the paper. Without ties. In closed form.

    References
    ----------
    .. [1] Zhou et al. (2025), eq. 23 and 29, https://arxiv.org/abs/2410.15361

    Examples
    --------
    >>> from abstain.metrics import weight_mse_given_rank
    >>> weight_mse_given_rank([1, 50, 100], 100).round(5).tolist()
    [0.0001, 0.00985, 1.63498]
    >>> weight_mse_given_rank([1, 50, 100], 100, "log").round(5).tolist()
    [0.0001, 0.00987, 1.96246]
    """
    checks.one_of(estimator, "estimator", get_args(Estimator))
    draws = checks.positive_int(draws, "draws")
    # Imported where it is used, so that importing the package stays fast.
    from abstain.metrics.weight_moments import mse_given_sample_rank

    r, size = _check_integers(sample_rank, "sample_rank"), _check_integers(n, "n")
    r, size = _broadcast_with_n(r, size, "sample_rank")
    checks.reject_entries("sample_rank", "must be at most `n`", r, r > size)
    return _like_input(mse_given_sample_rank(r, size, estimator, draws), sample_rank)


def mean_weight_error_scale(n: AnyArray) -> AnyArray:
    """Compute (n + 1) ln(n + 1)/n^2 - 1/n, the size of the error of all weights of a sample.

    Answers: about how large is the squared error of a plug-in or log weight, on average over the n?

    Parameters
    ----------
    n : array of int
        Number of samples, at least 1.

    Returns
    -------
    array of the shape of `n`
        Above 0, **lower is better**; a float for a number.

    Raises
    ------
    DomainError
        If an n is not an integer of at least 1.

    Notes
    -----
    The mean of `weight_error_scale` over u. A size, **not a bound**: the mean of
    `weight_mse_given_rank` over the ranks is H_n/n for "plugin", above it by 1.58/n for large n.

    References
    ----------
    .. [1] Zhou et al. (2025), prop. A.4, eq. 31, https://arxiv.org/abs/2410.15361

    Examples
    --------
    >>> from abstain.metrics import mean_weight_error_scale
    >>> mean_weight_error_scale([10, 100, 1000]).round(5).tolist()
    [0.16377, 0.03661, 0.00592]
    """
    size = _check_integers(n, "n")
    return _like_input((size + 1.0) * np.log1p(size) / size**2 - 1.0 / size, n)


def _statistic(
    field: str, rank: AnyArray, n: AnyArray, estimator: str, *, counts_itself: bool, draws: int
) -> AnyArray:
    # Imported where it is used, so that importing the package stays fast.
    from abstain.metrics.weight_moments import BinomialRanks, error_moments

    checks.one_of(estimator, "estimator", get_args(Estimator))
    draws = checks.positive_int(draws, "draws")
    u, size = _broadcast_rank_and_n(rank, n)
    others = size - 1.0 if counts_itself else size
    moments = error_moments(
        BinomialRanks(u.ravel(), others.ravel(), size.ravel()), estimator, draws
    )
    return _like_input(getattr(moments, field).reshape(u.shape), rank)


def _broadcast_rank_and_n(rank: AnyArray, n: AnyArray) -> tuple[FloatArray, FloatArray]:
    u = _check_numbers(rank, "rank")
    checks.reject_entries("rank", "must be in [0, 1)", u, (u < 0) | (u >= 1))
    return _broadcast_with_n(u, _check_integers(n, "n"), "rank")


def _broadcast_with_n(
    ranks: FloatArray, size: FloatArray, name: str
) -> tuple[FloatArray, FloatArray]:
    try:
        both = np.broadcast_arrays(ranks, size)
    except ValueError:
        raise ShapeError(
            f"`{name}` and `n` must broadcast; got shapes {ranks.shape} and {size.shape}"
        ) from None
    return both[0], both[1]


def _check_integers(x: AnyArray, name: str) -> FloatArray:
    values = _check_numbers(x, name)
    is_invalid = (values < 1) | (values % 1 != 0)
    checks.reject_entries(name, "must be an integer of at least 1", values, is_invalid)
    return values


def _check_numbers(x: AnyArray, name: str) -> FloatArray:
    values = to_numpy(x, name)
    if values.dtype.kind not in "iuf":
        raise DomainError(f"`{name}` must hold numbers; got {values.dtype}")
    numbers: FloatArray = checks.finite(values, name).astype(np.float64)
    return numbers


def _like_input(found: FloatArray, rank: AnyArray) -> AnyArray:
    """Return a float for a number, else an array of the caller's kind."""
    return float(found) if found.ndim == 0 else as_array_like(found, rank)
