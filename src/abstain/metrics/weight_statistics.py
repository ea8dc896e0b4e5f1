"""Exact bias, variance and mean squared error of the weights of the AURC estimators.

In the population, a sample of rank u has the weight -ln(1 - u) for the AURC and u for the AUGRC. An
estimator replaces this weight by a function of the rank r among n samples, which is random.
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

    Answers: how much does the mean weight of this sample among n samples differ from its weight in
    the population?

    Parameters
    ----------
    rank : array of any shape
        Population rank u = P(confidence of another sample <= confidence of this sample), in [0, 1).
    n : array of int
        Number of samples n of the estimator, at least 1. The array is broadcast with `rank`.
    estimator : {"plugin", "log", "sele", "2sele", "augrc", "monte-carlo"}, default="plugin"
        See `rank_weights`. The target is u for "augrc" and -ln(1 - u) for all other estimators.
    counts_itself : bool, default=True
        Whether the sample is one of the n samples, so that r = 1 + Bin(n - 1, u). If False, the
        sample is a new sample in addition to the n samples, and r has the distribution Bin(n, u).
    draws : int, default=1000
        Number of draws of "monte-carlo", which does not affect the bias.

    Returns
    -------
    array of the broadcast shape
        Mean weight minus target; **0 is best**. If `rank` and `n` are numbers, the function returns
        a float.

    Raises
    ------
    DomainError
        If a rank is not in [0, 1) or an n is not an integer of at least 1.
    InputError
        If `estimator` is not a valid name.

    Notes
    -----
    If the sample is one of the n samples, the bias of "plugin" is 1/n minus the sum of u^j/j over j
    >= n. For a new sample, the bias is minus the sum of u^j/j over j > n. The bias of "sele" is u +
    (1 - u)/n + ln(1 - u), which does not vanish for large n. The bias of "augrc" is (1/2 - u)/n.
    The bias of "log" has no closed form, so the function sums over the ranks with non-negligible
    probability. The relative error of these sums is below 1e-11, except near a sign change. The sum
    has about 11 sqrt(n) terms for each rank.

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

    Answers: how much does the weight of this sample vary with the other samples?

    Parameters
    ----------
    rank, n : array
        See `weight_bias`.
    estimator : {"plugin", "log", "sele", "2sele", "augrc", "monte-carlo"}, default="plugin"
        See `rank_weights`.
    counts_itself : bool, default=True
        See `weight_bias`.
    draws : int, default=1000
        Number of draws of "monte-carlo". The variance of "monte-carlo" is the variance of "plugin"
        plus the variance of one draw divided by `draws`.

    Returns
    -------
    array of the broadcast shape
        Value of at least 0; **lower is better**. If `rank` and `n` are numbers, the function
        returns a float.

    Raises
    ------
    DomainError, InputError
        See `weight_bias`.

    Notes
    -----
    The variance of "sele" and "augrc" is (n - 1) u (1 - u)/n^2 if the sample is one of the n
    samples, and u (1 - u)/n otherwise. The variance of "2sele" is four times that of "sele". The
    variance of a draw of "monte-carlo" at rank r is the sum of 1/k^2 over k = n - r + 1, ..., n.
    The running time is that of `weight_bias`.

    References
    ----------
    .. [1] Zhou et al. (2025), eq. 23, https://arxiv.org/abs/2410.15361; abstain derives the
       variance from the rank distribution of their eq. 21

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

    Answers: how far is the weight of this sample among n samples from its weight in the population?

    Parameters
    ----------
    rank, n : array
        See `weight_bias`.
    estimator : {"plugin", "log", "sele", "2sele", "augrc", "monte-carlo"}, default="plugin"
        As in `weight_bias`, with the same targets.
    counts_itself : bool, default=True
        See `weight_bias`.
    draws : int, default=1000
        Number of draws of "monte-carlo", with the effect described in `weight_variance`.

    Returns
    -------
    array of the broadcast shape
        Squared bias plus variance; **lower is better**. If `rank` and `n` are numbers, the function
        returns a float.

    Raises
    ------
    DomainError, InputError
        See `weight_bias`.

    See Also
    --------
    weight_error_scale : Closed form of the order of magnitude for "plugin" and "log".

    Notes
    -----
    At a fixed rank, the error of "plugin" and "log" decreases in proportion to 1/n. At a fixed n,
    the error is unbounded as u approaches 1, because -ln(1 - u) is unbounded. For the mean squared
    error at a given *sample* rank, as in [1]_, use `weight_mse_given_rank`. The running time is
    that of `weight_bias`.

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
    """Compute u/(n(1 - u) + 1), the scale of the squared error of a plug-in or log weight.

    Answers: about how large is the squared error of the weight at this rank?

    Parameters
    ----------
    rank, n : array
        See `weight_bias`.

    Returns
    -------
    array of the broadcast shape
        Value of at least 0; **lower is better**. If `rank` and `n` are numbers, the function
        returns a float.

    Raises
    ------
    DomainError
        See `weight_bias`.

    Notes
    -----
    The value is a scale, **not a bound**. The exact `weight_mse` of "plugin" and "log" is 1.0 to
    1.4 times this scale for n from 32 to 10^6 and 5/n <= u <= 1 - 5/n. The ratio is near 1 if n(1 -
    u) is large. As u approaches 1, the scale stays below n, but the error is unbounded.

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

    Answers: if a sample has rank r among n samples, how far is its weight from the weight of its
    unknown population rank?

    Parameters
    ----------
    sample_rank : array of int
        Rank r of the sample among the n samples, from 1 (least confident) to n.
    n : array of int
        Number of samples, at least 1. The array is broadcast with `sample_rank`.
    estimator : {"plugin", "log", "sele", "2sele", "augrc", "monte-carlo"}, default="plugin"
        As in `weight_bias`, with the same targets.
    draws : int, default=1000
        Number of draws of "monte-carlo". The error of "monte-carlo" is the error of "plugin" times
        1 + 1/draws.

    Returns
    -------
    array of the broadcast shape
        Value of at least 0; **lower is better**. If `rank` and `n` are numbers, the function
        returns a float.

    Raises
    ------
    DomainError
        If an n or a rank is not an integer of at least 1, or a rank is above its n.
    InputError
        If `estimator` is not a valid name.

    See Also
    --------
    weight_mse : The error at a known population rank, which is unbounded.

    Notes
    -----
    The error of "plugin" is the sum of 1/k^2 over k = n - r + 1, ..., n, which is at most pi^2/6.
    The error of any other estimator is larger by the squared difference between its weight and the
    plug-in weight H_n - H_{n-r}. The mean error of "plugin" over r = 1, ..., n is H_n/n. The
    formulas assume that no samples are tied.

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
    # The import is here, so that importing the package is fast.
    from abstain.metrics.weight_moments import mse_given_sample_rank

    r, size = _check_integers(sample_rank, "sample_rank"), _check_integers(n, "n")
    r, size = _broadcast_with_n(r, size, "sample_rank")
    checks.reject_entries("sample_rank", "must be at most `n`", r, r > size)
    return _like_input(mse_given_sample_rank(r, size, estimator, draws), sample_rank)


def mean_weight_error_scale(n: AnyArray) -> AnyArray:
    """Compute (n + 1) ln(n + 1)/n^2 - 1/n, the scale of the mean squared error of the weights.

    Answers: about how large is the squared error of a plug-in or log weight, averaged over n
    samples?

    Parameters
    ----------
    n : array of int
        Number of samples, at least 1.

    Returns
    -------
    array of the shape of `n`
        Value above 0; **lower is better**. If `n` is a number, the function returns a float.

    Raises
    ------
    DomainError
        If an n is not an integer of at least 1.

    Notes
    -----
    The value is the mean of `weight_error_scale` over u, and **not a bound**. The exact mean error
    of "plugin" over the sample ranks is H_n/n. For large n, this mean exceeds the scale by 1.58/n.

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
    moment: str, rank: AnyArray, n: AnyArray, estimator: str, *, counts_itself: bool, draws: int
) -> AnyArray:
    """Compute the bias, variance or mean squared error of the weight for each rank and n.

    `moment` is "bias", "variance" or "mse".
    """
    # The import is here, so that importing the package is fast.
    from abstain.metrics.weight_moments import BinomialRanks, error_moments

    checks.one_of(estimator, "estimator", get_args(Estimator))
    draws = checks.positive_int(draws, "draws")
    u, size = _broadcast_rank_and_n(rank, n)
    n_trials = size - 1.0 if counts_itself else size
    ranks = BinomialRanks(u.ravel(), n_trials.ravel(), size.ravel())
    moments = error_moments(ranks, estimator, draws)
    return _like_input(getattr(moments, moment).reshape(u.shape), rank)


def _broadcast_rank_and_n(rank: AnyArray, n: AnyArray) -> tuple[FloatArray, FloatArray]:
    """Return validated population ranks and numbers of samples, broadcast to one shape."""
    u = checks.finite(double_array(rank, "rank"), "rank")
    checks.reject_entries("rank", "must be in [0, 1)", u, (u < 0) | (u >= 1))
    return _broadcast_with_n(u, _check_integers(n, "n"), "rank")


def _broadcast_with_n(ranks: FloatArray, n: FloatArray, name: str) -> tuple[FloatArray, FloatArray]:
    """Broadcast ranks and numbers of samples to one shape; `name` is the argument in errors."""
    try:
        broadcast_ranks, broadcast_n = np.broadcast_arrays(ranks, n)
    except ValueError:
        raise ShapeError(
            f"`{name}` and `n` must broadcast; got shapes {ranks.shape} and {n.shape}"
        ) from None
    return broadcast_ranks, broadcast_n


def _check_integers(x: AnyArray, name: str) -> FloatArray:
    """Return an array of positive integers as floats, or raise an error for other numbers."""
    numbers = checks.finite(double_array(x, name), name)
    is_invalid = (numbers < 1) | (numbers % 1 != 0)
    checks.reject_entries(name, "must be an integer of at least 1", numbers, is_invalid)
    return numbers


def double_array(x: AnyArray, name: str) -> FloatArray:
    """Return integers or floats as a NumPy array of double precision."""
    numbers = to_numpy(x, name)
    if numbers.dtype.kind not in "iuf":
        raise DomainError(f"`{name}` must contain numbers; got {numbers.dtype}")
    return numbers.astype(np.float64)


def _like_input(values: FloatArray, rank: AnyArray) -> AnyArray:
    """Return a float for a single value, and otherwise an array of the type of `rank`."""
    return float(values) if values.ndim == 0 else as_array_like(values, rank)
