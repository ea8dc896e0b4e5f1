"""Ranks of methods, and rank probabilities from a joint normal distribution of the metrics.

In large samples, the metrics of several methods on the same samples are jointly normal. The
covariance of the metrics is computed from their influence functions. The mean ranks and the
probability that one method is better than another have closed forms. The probability of each rank
is estimated by random draws.
"""

from typing import Final, Literal, TypeAlias

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import to_numpy
from abstain._foundation.lazy_imports import special
from abstain._foundation.random import as_generator
from abstain.errors import DomainError, ShapeError
from abstain.typing import AnyArray, Array, BoolArray, FloatArray, IntArray, Rng

#: Rank of equal methods, which is the mean of their ranks or the lowest rank.
Ties: TypeAlias = Literal["mean", "min"]
TIES: Final = ("mean", "min")

#: Maximum relative difference of values that count as equal.
ROUNDING = 1e-13

#: Maximum rounding error of the variance of a difference, relative to the sum of the variances.
_VARIANCE_ROUNDING = 1e-12

#: Maximum standard error, relative to the values, that rounding of the values can cause.
_VALUE_ROUNDING = 1e-14


def check_array(values: AnyArray, name: str, *axes: str) -> FloatArray:
    """Validate an array of numbers with the given axes, in which NaN marks undefined values."""
    out = to_numpy(values, name)
    if out.ndim != len(axes) or out.size == 0:
        trailing_comma = "," if len(axes) == 1 else ""
        expected = f"({', '.join(axes)}{trailing_comma})"
        raise ShapeError(
            f"`{name}` must have the shape {expected}, none of them 0; got shape {out.shape}"
        )
    if out.dtype.kind not in "biuf":
        raise DomainError(
            f"`{name}` must contain numbers; got {out.dtype} values such as {out.flat[0]!r}"
        )
    return out.astype(np.float64)


def ranks(
    values: AnyArray, *, lower_is_better: bool, axis: int = 0, ties: Ties = "mean"
) -> FloatArray:
    """Rank methods by their values.

    Rank 1 is best, and equal values have the same rank. Values with a relative difference of at
    most 1e-13 are treated as equal, because rounding may cause this difference.

    Answers: which method is first, second, third?

    Parameters
    ----------
    values : array
        The values of the methods along `axis`.
    lower_is_better : bool
        Whether the lowest value has rank 1.
    axis : int, default=0
        The axis of the methods.
    ties : {"mean", "min"}, default="mean"
        Rank of equal methods. "mean" is the mean of their ranks, which rank tests need. "min" is
        their lowest rank, which published tables print.

    Returns
    -------
    ndarray of the same shape
        The ranks. A method with value NaN has rank NaN and does not affect other ranks.

    Raises
    ------
    DomainError
        If `values` are not numbers.
    InputError
        If `ties` is unknown.

    Examples
    --------
    >>> from abstain.inference.ranking import ranks
    >>> ranks([0.2, 0.1, 0.2, 0.5], lower_is_better=True).tolist()
    [2.5, 1.0, 2.5, 4.0]
    >>> ranks([0.2, 0.1, 0.2, 0.5], lower_is_better=True, ties="min").tolist()
    [2.0, 1.0, 2.0, 4.0]
    """
    use_lowest = checks.one_of(ties, "ties", TIES) == "min"
    array = to_numpy(values, "values")
    table = check_array(array, "values", *(f"axis {i}" for i in range(array.ndim)))
    if table.ndim == 0:
        raise ShapeError(f"`values` must have an axis of methods; got the single number {table!s}")
    losses = table if lower_is_better else -table
    losses = np.moveaxis(losses, axis, 0)
    rank = np.full(losses.shape, np.nan)
    for i, loss in enumerate(losses):
        is_equal = equal_up_to_rounding(losses, loss)
        n_better = ((losses < loss) & ~is_equal).sum(axis=0)
        # The count includes the method itself, so it is 0 only if its value is NaN.
        n_equal = is_equal.sum(axis=0)
        rank_among_equal = 1.0 if use_lowest else (n_equal + 1) / 2
        rank[i] = np.where(n_equal > 0, n_better + rank_among_equal, np.nan)
    return np.moveaxis(rank, 0, axis)


def equal_up_to_rounding(x: FloatArray, y: FloatArray) -> BoolArray:
    """Return whether numbers are equal up to rounding, where NaN is not equal to any number."""
    with np.errstate(invalid="ignore"):
        is_close = np.abs(x - y) <= ROUNDING * np.maximum(np.abs(x), np.abs(y))
    return np.asarray((x == y) | (is_close & np.isfinite(x) & np.isfinite(y)))


def count_better_and_equal(
    draws: FloatArray, *, lower_is_better: bool
) -> tuple[IntArray, IntArray]:
    """Return the numbers of better and of equal other methods, for each method and draw.

    `draws` and both results have the shape (methods, draws).
    """
    losses = draws if lower_is_better else -draws
    k = losses.shape[0]
    # The addition of small integers is faster.
    count_type = np.int8 if k < 128 else np.int16
    n_better = np.zeros(losses.shape, count_type)
    n_equal = np.zeros(losses.shape, count_type)
    for i in range(k):
        for j in range(i + 1, k):
            i_is_better = losses[i] < losses[j]
            j_is_better = losses[j] < losses[i]
            n_better[j] += i_is_better.view(np.int8)
            n_better[i] += j_is_better.view(np.int8)
            n_different = np.count_nonzero(i_is_better) + np.count_nonzero(j_is_better)
            if n_different < i_is_better.size:
                is_equal = ~(i_is_better | j_is_better)
                n_equal[i] += is_equal.view(np.int8)
                n_equal[j] += is_equal.view(np.int8)
    return n_better.astype(np.int64), n_equal.astype(np.int64)


def rank_probabilities_from_counts(better: IntArray, equal: IntArray) -> FloatArray:
    """Compute the share of draws in which each method has each rank, shape (k, k).

    The arguments are the results of `count_better_and_equal`. If m methods are equal in a draw,
    they share their m ranks.
    """
    k, n_draws = better.shape
    counts = np.empty((k, k))
    for i in range(k):
        if not equal[i].any():
            counts[i] = np.bincount(better[i], minlength=k)
            continue
        # A draw adds 1/m to the m ranks from `better` on. The cumulative sum turns +1/m at the
        # first rank and -1/m after the last rank into these shares.
        share = 1.0 / (equal[i] + 1)
        added = np.bincount(better[i], share, minlength=k + 1)
        removed = np.bincount(better[i] + equal[i] + 1, share, minlength=k + 1)
        counts[i] = np.cumsum(added - removed)[:k]
    return np.asarray(np.clip(counts / n_draws, 0.0, 1.0))


def expand_to_all_methods(is_defined: Array, probabilities: FloatArray) -> FloatArray:
    """Expand rank probabilities to all methods, with NaN for methods without a value."""
    k = is_defined.size
    table = np.full((k, k), np.nan)
    defined_rows = np.flatnonzero(is_defined)
    table[defined_rows] = 0.0
    # Only as many ranks exist as there are defined methods.
    table[defined_rows, : defined_rows.size] = probabilities
    return table


# --------------------------------------------------------------------------- normal distribution
def superiority(values: AnyArray, covariance: AnyArray, *, lower_is_better: bool) -> FloatArray:
    """Compute the probability that one method is better than another in a repeated study.

    Answers: if the study were repeated with as many samples, how often is this method better?

    Parameters
    ----------
    values : array of shape (k,)
        The metric of each method, or NaN if the metric is undefined.
    covariance : array of shape (k, k)
        Covariance of the values, computed from their influence functions. The matrix may be
        singular.
    lower_is_better : bool
        The direction of the metric.

    Returns
    -------
    ndarray of shape (k, k)
        Entry [i, j] is the probability that method i is better than method j, and entry [j, i] is 1
        minus this probability. The diagonal and the entries of identical methods are 0.5. An entry
        is NaN if a value or variance is NaN.

    Raises
    ------
    ShapeError
        If the shapes do not match.

    Notes
    -----
    The probability assumes that the observed values are the true values. This probability is the
    normal distribution function of the difference divided by its standard error.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.inference.ranking import superiority
    >>> superiority([0.0, 1.96], np.eye(2) / 2, lower_is_better=True).round(3).tolist()
    [[0.5, 0.975], [0.025, 0.5]]
    """
    metric, sigma = _check_moments(values, covariance)
    losses = metric if lower_is_better else -metric
    advantage = losses[None, :] - losses[:, None]
    error = _errors_of_differences(metric, sigma)
    advantage[_are_identical(metric, sigma, error)] = 0.0
    is_certain = error == 0
    z = advantage / np.where(is_certain, 1.0, error)
    z[is_certain & (advantage > 0)] = np.inf
    z[is_certain & (advantage < 0)] = -np.inf
    return np.asarray(special.ndtr(z), dtype=np.float64)


def expected_ranks(values: AnyArray, covariance: AnyArray, *, lower_is_better: bool) -> FloatArray:
    """Compute the mean rank of each method over repeated studies in closed form.

    Answers: which rank would this method have on average if the study were repeated?

    Parameters
    ----------
    values, covariance, lower_is_better
        See `superiority`.

    Returns
    -------
    ndarray of shape (k,)
        The mean ranks in [1, k]. A mean rank is 1 plus the sum of the probabilities that another
        method is better. Methods without a value have a mean rank of NaN and do not affect other
        ranks.

    Raises
    ------
    ShapeError
        If the shapes do not match.

    Notes
    -----
    The mean ranks are exact for the joint normal distribution of `rank_probabilities`.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.inference.ranking import expected_ranks
    >>> expected_ranks([0.0, 1.96], np.eye(2) / 2, lower_is_better=True).round(3).tolist()
    [1.025, 1.975]
    """
    is_better = superiority(values, covariance, lower_is_better=lower_is_better)
    is_defined = ~np.isnan(np.diag(is_better))
    # The column sum contains 0.5 for the method itself.
    mean = np.nansum(is_better, axis=0) + 0.5
    return np.where(is_defined, mean, np.nan)


def rank_probabilities(
    values: AnyArray,
    covariance: AnyArray,
    *,
    lower_is_better: bool,
    n_draws: int = 10_000,
    rng: Rng = 0,
) -> FloatArray:
    """Compute the probability of each rank of each method from the joint normal distribution.

    Answers: if the study were repeated, with which probability would this method be first, second
    or third?

    Parameters
    ----------
    values, covariance, lower_is_better
        See `superiority`.
    n_draws : int, default=10000
        Number of draws from the joint normal distribution. With the default number of draws, the
        standard error of a probability is at most 0.005.
    rng : int, Generator or None, default=0
        Seed of the draws.

    Returns
    -------
    ndarray of shape (k, k)
        Entry [i, r] is the probability that method i has rank r + 1. Rows and columns sum to 1.
        Identical methods share their ranks. Methods without a value have a row of NaN and do not
        affect other ranks.

    Raises
    ------
    ShapeError
        If the shapes do not match.
    InputError
        If `n_draws` is not a positive integer.

    Notes
    -----
    The function `expected_ranks` computes the mean rank without the random error of the draws.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.inference.ranking import rank_probabilities
    >>> rank_probabilities([0.0, 9.0, 9.0], np.eye(3), lower_is_better=True).round(2).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.5, 0.5], [0.0, 0.5, 0.5]]
    """
    metric, sigma = _check_moments(values, covariance)
    n_pairs = (checks.positive_int(n_draws, "n_draws") + 1) // 2
    is_defined = ~(np.isnan(metric) | np.isnan(np.diag(sigma)))
    if not is_defined.any():
        return np.full(sigma.shape, np.nan)
    metric = metric[is_defined]
    sigma = sigma[np.ix_(is_defined, is_defined)]
    eigenvalues, vectors = np.linalg.eigh(sigma)
    # The symmetric root does not depend on the choice of the eigenvectors.
    root = vectors * np.sqrt(np.maximum(eigenvalues, 0.0)) @ vectors.T
    noise = root @ as_generator(rng).standard_normal((metric.size, n_pairs))
    # Antithetic pairs reduce the random error.
    draws = np.concatenate((metric[:, None] + noise, metric[:, None] - noise), axis=1)
    # Rounding errors of the root must not separate identical methods.
    are_identical = _are_identical(metric, sigma, _errors_of_differences(metric, sigma))
    first_identical = np.argmax(are_identical, axis=1)
    draws = draws[first_identical]
    better, equal = count_better_and_equal(draws, lower_is_better=lower_is_better)
    return expand_to_all_methods(is_defined, rank_probabilities_from_counts(better, equal))


def _check_moments(values: AnyArray, covariance: AnyArray) -> tuple[FloatArray, FloatArray]:
    """Validate the values, shape (k,), and their covariance, shape (k, k)."""
    metric = check_array(values, "values", "k")
    sigma = check_array(covariance, "covariance", "k", "k")
    k = metric.size
    if sigma.shape != (k, k):
        raise ShapeError(
            f"`covariance` must have the shape ({k}, {k}) for {k} values; got {sigma.shape}"
        )
    return metric, sigma


def _errors_of_differences(metric: FloatArray, sigma: FloatArray) -> FloatArray:
    """Return the standard error of the difference of each pair, or 0 if it is a rounding error."""
    variance = np.diag(sigma)
    variance_sum = variance[:, None] + variance[None, :]
    variance_of_difference = variance_sum - 2 * sigma
    value_rounding = np.square(_VALUE_ROUNDING * _pairwise_maximum(np.abs(metric)))
    rounding = np.maximum(_VARIANCE_ROUNDING * variance_sum, value_rounding)
    variance_of_difference[variance_of_difference <= rounding] = 0.0
    return np.sqrt(variance_of_difference)


def _pairwise_maximum(values: FloatArray) -> FloatArray:
    """Return the larger value of each pair, shape (k, k)."""
    return np.asarray(np.maximum(values[:, None], values[None, :]))


def _are_identical(metric: FloatArray, sigma: FloatArray, error: FloatArray) -> BoolArray:
    """Return a mask of the pairs with equal values whose difference has no variance, (k, k)."""
    difference = np.abs(metric[:, None] - metric[None, :])
    deviation = np.sqrt(np.abs(np.diag(sigma)))
    scale = np.maximum(_pairwise_maximum(np.abs(metric)), deviation[:, None] + deviation[None, :])
    return np.asarray((error == 0) & (difference <= _VARIANCE_ROUNDING * scale))
