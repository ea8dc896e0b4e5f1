"""Ranks of methods, and the chance of each straight from the joint normal law: no resampling.

Estimates of several methods on the same samples are jointly normal for many samples, with the
covariance of their influence functions. Who is better than whom is then known in closed form,
and so is the mean rank; the chance of each rank is the share of draws from that law.
"""

from typing import Final, Literal, TypeAlias

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import to_numpy
from abstain._foundation.lazy_imports import special
from abstain._foundation.random import as_generator
from abstain.errors import DomainError, ShapeError
from abstain.typing import AnyArray, Array, BoolArray, FloatArray, IntArray, Rng

#: Which of their ranks equal methods have: the mean of them all, or the lowest.
Ties: TypeAlias = Literal["mean", "min"]
TIES: Final = ("mean", "min")

#: Values that are no farther apart than this share of them are equal but for rounding.
ROUNDING = 1e-13

#: Variances of differences are differences of variances, exact to rounding only.
_OF_VARIANCES = 1e-12

#: Standard errors below this share of the values are made by their last digits.
_LAST_DIGITS = 1e-14


def stack(x: AnyArray, name: str, *axes: str) -> FloatArray:
    """Validate an array of numbers with these axes; NaN may mark what is undefined."""
    out = to_numpy(x, name)
    if out.ndim != len(axes) or out.size == 0:
        expected = f"({', '.join(axes)}{',' if len(axes) == 1 else ''})"
        raise ShapeError(
            f"`{name}` must have the shape {expected}, none of them 0; got shape {out.shape}"
        )
    if out.dtype.kind not in "biuf":
        raise DomainError(
            f"`{name}` must hold numbers; got {out.dtype} values such as {out.flat[0]!r}"
        )
    return out.astype(np.float64)


def ranks(
    values: AnyArray, *, lower_is_better: bool, axis: int = 0, ties: Ties = "mean"
) -> FloatArray:
    """Rank methods by their values: 1 is best, equal values have the same rank.

    Values that differ by rounding only (a share of 1e-13 of them) are equal.

    Answers: who is first, second, third?

    Parameters
    ----------
    values : array
        The methods lie along `axis`.
    lower_is_better : bool
        Whether rank 1 goes to the lowest value or to the highest.
    axis : int, default=0
        The axis of the methods.
    ties : {"mean", "min"}, default="mean"
        Which rank equal methods have: the mean of theirs, as rank tests need it, or the lowest, as
        published tables print it.

    Returns
    -------
    ndarray of the same shape
        A method whose value is NaN has the rank NaN; the others are ranked among themselves.

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
    lowest = checks.one_of(ties, "ties", TIES) == "min"
    given = to_numpy(values, "values")
    table = stack(given, "values", *(f"axis {i}" for i in range(given.ndim)))
    if table.ndim == 0:
        raise ShapeError(f"`values` must have an axis of methods; got the single number {table!s}")
    x = np.moveaxis(table if lower_is_better else -table, axis, 0)
    placed = np.full(x.shape, np.nan)
    for i, own in enumerate(x):
        same = alike(x, own)
        better, equal = ((x < own) & ~same).sum(axis=0), same.sum(axis=0)
        # Those equal to it, itself among them, share the ranks from better + 1 on.
        placed[i] = np.where(equal > 0, better + (1.0 if lowest else (equal + 1) / 2), np.nan)
    return np.moveaxis(placed, 0, axis)


def alike(x: FloatArray, y: FloatArray) -> BoolArray:
    """Return where two numbers are equal up to rounding; NaN equals nothing."""
    with np.errstate(invalid="ignore"):
        near = np.abs(x - y) <= ROUNDING * np.maximum(np.abs(x), np.abs(y))
    return np.asarray((x == y) | (near & np.isfinite(x) & np.isfinite(y)))


def standings_of(draws: FloatArray, *, lower_is_better: bool) -> tuple[IntArray, IntArray]:
    """Count for each method (rows) and draw (columns) the better methods and the equal ones."""
    x = draws if lower_is_better else -draws
    k = x.shape[0]
    # The narrower the counters, the more of them a register adds at once.
    better, equal = np.zeros((2, *x.shape), dtype=np.int8 if k < 128 else np.int16)
    for i in range(k):
        for j in range(i + 1, k):
            first, second = x[i] < x[j], x[j] < x[i]
            better[j] += first.view(np.int8)
            better[i] += second.view(np.int8)
            if np.count_nonzero(first) + np.count_nonzero(second) < first.size:
                same = ~(first | second)
                equal[i] += same.view(np.int8)
                equal[j] += same.view(np.int8)
    return better.astype(np.int64), equal.astype(np.int64)


def chances_from(better: IntArray, equal: IntArray) -> FloatArray:
    """Tally the ranks; m methods that are equal share their m ranks, a chance of 1/m each."""
    k, draws = better.shape
    table = np.empty((k, k))
    for i in range(k):
        if not equal[i].any():
            table[i] = np.bincount(better[i], minlength=k)
            continue
        share = 1.0 / (equal[i] + 1)
        starts = np.bincount(better[i], share, minlength=k + 1)
        ends = np.bincount(better[i] + equal[i] + 1, share, minlength=k + 1)
        table[i] = np.cumsum(starts - ends)[:k]
    return np.asarray(np.clip(table / draws, 0.0, 1.0))


def among(known: Array, chances: FloatArray) -> FloatArray:
    """Spread the chances of the known methods over all; the others get NaN."""
    k = known.size
    table = np.full((k, k), np.nan)
    rows = np.flatnonzero(known)
    table[rows] = 0.0
    table[np.ix_(rows, np.arange(rows.size))] = chances
    return table


# ------------------------------------------------------------------------------------ normal law
def superiority(values: AnyArray, covariance: AnyArray, *, lower_is_better: bool) -> FloatArray:
    """Compute for each pair the chance that one method is better in another study of this size.

    Answers: if the study were repeated, how often would this method beat that one?

    Parameters
    ----------
    values : array of shape (k,)
        The metric of each method; NaN where it is undefined.
    covariance : array of shape (k, k)
        Of these values, from their influence functions; may be singular.
    lower_is_better : bool
        The direction of the metric.

    Returns
    -------
    ndarray of shape (k, k)
        Entry [i, j] is the chance that i is better than j; [j, i] is the rest to 1. One half on
        the diagonal and for methods that are the same, NaN where a value or variance is NaN.

    Raises
    ------
    ShapeError
        If the shapes do not fit.

    Notes
    -----
    The normal distribution function of the difference over its standard error: around the values
    found, so a difference of zero gives one half.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.inference.ranking import superiority
    >>> superiority([0.0, 1.96], np.eye(2) / 2, lower_is_better=True).round(3).tolist()
    [[0.5, 0.975], [0.025, 0.5]]
    """
    v, sigma = _moments(values, covariance)
    lead = v[None, :] - v[:, None] if lower_is_better else v[:, None] - v[None, :]
    error = _error_of_difference(v, sigma)
    lead[_same(v, sigma, error)] = 0.0
    # A difference without variance is certain, and even if there is no difference.
    z = np.where(lead > 0, np.inf, np.where(lead < 0, -np.inf, lead + error))
    np.divide(lead, error, out=z, where=error > 0)
    return np.asarray(special.ndtr(z), dtype=np.float64)


def expected_ranks(values: AnyArray, covariance: AnyArray, *, lower_is_better: bool) -> FloatArray:
    """Compute the mean rank of each method over other studies of this size, exactly.

    Answers: which rank would this method have on average if the study were repeated?

    Parameters
    ----------
    values, covariance, lower_is_better
        As in `superiority`.

    Returns
    -------
    ndarray of shape (k,)
        In [1, k]; one plus the sum of the chances that each other method is better. Methods
        without a value are NaN and count nowhere.

    Raises
    ------
    ShapeError
        If the shapes do not fit.

    Notes
    -----
    Exact for the joint normal law of `rank_chances`, without its draws.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.inference.ranking import expected_ranks
    >>> expected_ranks([0.0, 1.96], np.eye(2) / 2, lower_is_better=True).round(3).tolist()
    [1.025, 1.975]
    """
    beaten = superiority(values, covariance, lower_is_better=lower_is_better)
    known = ~np.isnan(np.diag(beaten))
    # The method itself is in the sum with one half.
    mean = np.nansum(beaten, axis=0) + 0.5
    return np.where(known, mean, np.nan)


def rank_chances(
    values: AnyArray,
    covariance: AnyArray,
    *,
    lower_is_better: bool,
    draws: int = 10_000,
    rng: Rng = 0,
) -> FloatArray:
    """Compute the chance of each rank for each method from the joint normal law.

    Answers: if the study were repeated, how likely would this method be first, second, third?

    Parameters
    ----------
    values, covariance, lower_is_better
        As in `superiority`.
    draws : int, default=10000
        From the joint normal law, in antithetic pairs; a chance is off by 0.005 at most
        (standard error) with the default.
    rng : int, Generator or None, default=0
        Seed of the draws.

    Returns
    -------
    ndarray of shape (k, k)
        Entry [i, r] is the chance that method i has the rank r + 1; rows and columns sum to 1.
        Methods that are the same share their ranks. Methods without a value have a row of NaN and
        count nowhere.

    Raises
    ------
    ShapeError
        If the shapes do not fit.
    InputError
        If `draws` is not a positive integer.

    Notes
    -----
    `expected_ranks` has the mean rank without the noise of the draws.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.inference.ranking import rank_chances
    >>> rank_chances([0.0, 9.0, 9.0], np.eye(3), lower_is_better=True).round(2).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.5, 0.5], [0.0, 0.5, 0.5]]
    """
    v, sigma = _moments(values, covariance)
    half = -(-checks.positive_int(draws, "draws") // 2)
    known = ~(np.isnan(v) | np.isnan(np.diag(sigma)))
    if not known.any():
        return np.full(sigma.shape, np.nan)
    v, sigma = v[known], sigma[np.ix_(known, known)]
    eigenvalues, vectors = np.linalg.eigh(sigma)
    # The symmetric root does not depend on how the eigenvectors were chosen.
    root = vectors * np.sqrt(np.maximum(eigenvalues, 0.0)) @ vectors.T
    noise = root @ as_generator(rng).standard_normal((v.size, half))
    drawn = np.concatenate((v[:, None] + noise, v[:, None] - noise), axis=1)
    # The same method twice must tie in every draw, not up to the rounding of the root.
    drawn = drawn[np.argmax(_same(v, sigma, _error_of_difference(v, sigma)), axis=1)]
    return among(known, chances_from(*standings_of(drawn, lower_is_better=lower_is_better)))


def _moments(values: AnyArray, covariance: AnyArray) -> tuple[FloatArray, FloatArray]:
    v, sigma = stack(values, "values", "k"), stack(covariance, "covariance", "k", "k")
    if sigma.shape != (v.size, v.size):
        msg = f"`covariance` must have the shape ({v.size}, {v.size}) for {v.size} values; got "
        raise ShapeError(msg + f"{sigma.shape}")
    return v, sigma


def _error_of_difference(v: FloatArray, sigma: FloatArray) -> FloatArray:
    """Return the standard error of each difference; what is rounding counts as zero."""
    variance = np.diag(sigma)
    both = variance[:, None] + variance[None, :]
    of_difference = both - 2 * sigma
    least = np.maximum(_OF_VARIANCES * both, np.square(_LAST_DIGITS * _larger(np.abs(v))))
    of_difference[of_difference <= least] = 0.0
    return np.sqrt(of_difference)


def _larger(x: FloatArray) -> FloatArray:
    """Return the larger of each two."""
    return np.asarray(np.maximum(x[:, None], x[None, :]))


def _same(v: FloatArray, sigma: FloatArray, error: FloatArray) -> BoolArray:
    """Return which pairs are one and the same method: equal values, and equal in every draw."""
    apart = np.abs(v[:, None] - v[None, :])
    spread = np.sqrt(np.abs(np.diag(sigma)))
    tolerance = _OF_VARIANCES * np.maximum(_larger(np.abs(v)), spread[:, None] + spread[None, :])
    return np.asarray((error == 0) & (apart <= tolerance))
