"""Ranks of methods and, from resamples, the chance of each rank; over one data set or several."""

from dataclasses import dataclass

import numpy as np

from abstain._foundation.arrays import to_numpy
from abstain.errors import DomainError, ShapeError
from abstain.inference.proportions import level_of
from abstain.typing import AnyArray, Array, BoolArray, FloatArray, IntArray

#: Values that are no farther apart than this share of them are equal but for rounding.
ROUNDING = 1e-13


def stack(x: AnyArray, name: str, *axes: str) -> FloatArray:
    """Validate an array of numbers with these axes; NaN may mark what is undefined."""
    out = to_numpy(x, name)
    if out.ndim != len(axes) or out.size == 0:
        expected = f"({', '.join(axes)}{',' if len(axes) == 1 else ''})"
        msg = f"`{name}` must have the shape {expected}, none of them 0; got shape {out.shape}"
        raise ShapeError(msg)
    if out.dtype.kind not in "biuf":
        msg = f"`{name}` must hold numbers; got {out.dtype} values such as {out.flat[0]!r}"
        raise DomainError(msg)
    return out.astype(np.float64)


def ranks(values: AnyArray, *, lower_is_better: bool, axis: int = 0) -> FloatArray:
    """Rank methods by their values: 1 is best, equal values share the mean of their ranks.

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

    Returns
    -------
    ndarray of the same shape
        A method whose value is NaN has the rank NaN; the others are ranked among themselves.

    Raises
    ------
    DomainError
        If `values` are not numbers.

    Examples
    --------
    >>> from abstain.inference.ranking import ranks
    >>> ranks([0.2, 0.1, 0.2, 0.5], lower_is_better=True).tolist()
    [2.5, 1.0, 2.5, 4.0]
    """
    given = to_numpy(values, "values")
    table = stack(given, "values", *(f"axis {i}" for i in range(given.ndim)))
    if table.ndim == 0:
        msg = f"`values` must have an axis of methods; got the single number {table!s}"
        raise ShapeError(msg)
    x = np.moveaxis(table if lower_is_better else -table, axis, 0)
    placed = np.full(x.shape, np.nan)
    for i, own in enumerate(x):
        same = alike(x, own)
        better, equal = ((x < own) & ~same).sum(axis=0), same.sum(axis=0)
        # Those equal to it, itself among them, share the ranks from better + 1 on.
        placed[i] = np.where(equal > 0, better + (equal + 1) / 2, np.nan)
    return np.moveaxis(placed, 0, axis)


def alike(x: FloatArray, y: FloatArray) -> BoolArray:
    """Return where two numbers are equal up to rounding; NaN equals nothing."""
    with np.errstate(invalid="ignore"):
        near = np.abs(x - y) <= ROUNDING * np.maximum(np.abs(x), np.abs(y))
    return np.asarray((x == y) | (near & np.isfinite(x) & np.isfinite(y)))


@dataclass(frozen=True, eq=False)
class RankSummary:
    """The chances of the ranks of each method in three numbers.

    Attributes
    ----------
    mean, low, high : ndarray of shape (k,)
        Mean rank, and the lowest and the highest rank of the central range; NaN for a method
        without chances.
    """

    mean: FloatArray
    low: FloatArray
    high: FloatArray


def rank_summary(chances: AnyArray, *, level: float = 0.95) -> RankSummary:
    """Summarize the chance of each rank by a mean and a central range.

    Answers: between which ranks may this method stand?

    Parameters
    ----------
    chances : array of shape (k, k)
        Entry [i, r] is the chance that method i has the rank r + 1; rows sum to 1.
    level : float, default=0.95
        At most (1 - level)/2 lies below the range and as much above it.

    Returns
    -------
    RankSummary
        One entry a method.

    Raises
    ------
    ShapeError
        If `chances` is no table.
    DomainError
        If `level` is not between 0 and 1.

    Examples
    --------
    >>> from abstain.inference.ranking import rank_summary
    >>> summary = rank_summary([[0.99, 0.01], [0.01, 0.99]])
    >>> summary.mean.tolist(), summary.high.tolist()
    ([1.01, 1.99], [1.0, 2.0])
    """
    table = stack(chances, "chances", "k", "k")
    tail = (1 - level_of(level)) / 2
    cumulated = np.cumsum(table, axis=1)
    # Sums of shares such as 1/3 reach 0.975 only up to rounding.
    low = 1.0 + np.argmax(cumulated >= tail - 1e-9, axis=1)
    high = 1.0 + np.argmax(cumulated >= 1 - tail - 1e-9, axis=1)
    unknown = np.isnan(table).any(axis=1)
    low[unknown] = high[unknown] = np.nan
    return RankSummary(table @ np.arange(1.0, table.shape[1] + 1), low, high)


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


def rank_chances_of(replicates: AnyArray, *, lower_is_better: bool) -> FloatArray:
    """Count how often each method has each rank over resamples.

    Answers: how often would this method be first, second, third?

    Parameters
    ----------
    replicates : array of shape (k, B)
        The metric of each method on each resample.
    lower_is_better : bool
        The direction of the metric.

    Returns
    -------
    ndarray of shape (k, k)
        Entry [i, r] is the share of the resamples in which method i has the rank r + 1. Equal
        methods share their ranks, so rows and columns sum to 1. A method that is NaN in all
        resamples has a row of NaN; a resample with another NaN is left out.

    Raises
    ------
    ShapeError
        If `replicates` is no table.

    Examples
    --------
    >>> from abstain.inference.ranking import rank_chances_of
    >>> rank_chances_of([[0.1, 0.3], [0.2, 0.2]], lower_is_better=True).tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    table = stack(replicates, "replicates", "k", "B")
    known = np.asarray(~np.isnan(table).all(axis=1))
    complete = table[known][:, ~np.isnan(table[known]).any(axis=0)]
    if not complete.size:
        return np.full((known.size, known.size), np.nan)
    return among(known, chances_from(*standings_of(complete, lower_is_better=lower_is_better)))
