"""Kendall's tau: how alike two metrics, or two resamples, rank the same methods."""

from dataclasses import dataclass

import numpy as np

from abstain.errors import ShapeError
from abstain.inference.intervals import level_of
from abstain.inference.quantiles import quantiles
from abstain.inference.ranking import stack
from abstain.typing import AnyArray, FloatArray

#: Numbers that the signs of all pairs of methods may take at once.
_MEMORY = 4_000_000
#: Resamples of which every pair is looked at for the range of tau; they are exchangeable.
_COMPARED = 1_000


@dataclass(frozen=True)
class TauSummary:
    """Kendall's tau over resamples.

    Attributes
    ----------
    mean, low, high : float
        Mean and central range; NaN when undefined, then `note` says why.
    level : float
        Of the range.
    note : str
        What was left out or is missing, or empty.
    """

    mean: float
    low: float
    high: float
    level: float
    note: str = ""


def kendall(first: AnyArray, second: AnyArray) -> float:
    """Compute Kendall's tau-b of two rankings of the same methods.

    Answers: do the two put the methods into the same order?

    Parameters
    ----------
    first, second : array of shape (k,)
        Ranks, or values of metrics with the same direction; a method with a NaN is left out.

    Returns
    -------
    float
        1 for the same order, -1 for the reverse, ties corrected; NaN when fewer than two methods
        are left or one of the two rankings is a single tie.

    Raises
    ------
    ShapeError
        If the lengths differ.

    Examples
    --------
    >>> from abstain.inference.agreement import kendall
    >>> round(kendall([1, 2, 3, 4], [1, 3, 2, 4]), 3)
    0.667
    """
    a, b = _alike(first, second, "k")
    kept = ~(np.isnan(a) | np.isnan(b))
    u, v = _signs(a[kept, None])[:, 0], _signs(b[kept, None])[:, 0]
    return float(u @ v) if kept.sum() > 1 else float("nan")


def agreement(
    first: AnyArray, second: AnyArray, *, same_direction: bool = True, level: float = 0.95
) -> TauSummary:
    """Compute Kendall's tau-b between two metrics on each of the same resamples.

    Answers: how alike do the two metrics rank, over the resamples?

    Parameters
    ----------
    first, second : array of shape (k, B)
        The two metrics of each method on each resample.
    same_direction : bool, default=True
        False when lower is better for one metric and worse for the other.
    level : float, default=0.95
        Of the central range.

    Returns
    -------
    TauSummary
        Resamples on which tau is undefined are left out; the note says how many.

    Raises
    ------
    ShapeError
        If the shapes differ.
    DomainError
        If `level` is not between 0 and 1.

    Examples
    --------
    >>> from abstain.inference.agreement import agreement
    >>> agreement([[1, 1], [2, 2]], [[3, 4], [4, 3]]).mean
    0.0
    """
    a, b = _alike(first, second, "k", "B")
    step = _resamples_at_once(a.shape[0])
    tau = np.concatenate(
        [
            np.einsum("pb,pb->b", _signs(a[:, s : s + step]), _signs(b[:, s : s + step]))
            for s in range(0, a.shape[1], step)
        ]
    )
    known = tau[~np.isnan(tau)] if a.shape[0] > 1 else np.empty(0)
    if not same_direction:
        known = -known
    return _summary(known, _left_out(tau.size - known.size, tau.size), level_of(level))


def stability(replicates: AnyArray, *, level: float = 0.95) -> TauSummary:
    """Compute Kendall's tau-b between the rankings of pairs of resamples.

    Answers: would the ranking be the same on other data?

    Parameters
    ----------
    replicates : array of shape (k, B)
        The metric of each method on each resample.
    level : float, default=0.95
        Of the central range.

    Returns
    -------
    TauSummary
        The mean is over all pairs of resamples, in closed form; the range is that of the pairs
        among the first 1000.

    Raises
    ------
    ShapeError
        If `replicates` is no table.
    DomainError
        If `level` is not between 0 and 1.

    Notes
    -----
    Direction does not matter. Two resamples of the same data differ as two samples would, so
    this is the stability of the ranking against other samples. Cost: k^2 B.

    Examples
    --------
    >>> from abstain.inference.agreement import stability
    >>> stability([[1, 1, 2], [2, 3, 1]]).mean
    -0.333...
    """
    table = stack(replicates, "replicates", "k", "B")
    share = level_of(level)
    k, resamples = table.shape
    step = _resamples_at_once(k)
    total, used = np.zeros(k * (k - 1) // 2), 0
    compared = np.empty(0)
    for start in range(0, resamples, step):
        signs = _signs(table[:, start : start + step])
        signs = signs[:, ~np.isnan(signs).any(axis=0)]
        if start == 0:
            compared = _taus(signs[:, : min(_COMPARED, step)])
        total += signs.sum(axis=1)
        used += signs.shape[1]
    note = _left_out(resamples - used, resamples)
    if k < 2 or used < 2:
        return _summary(np.empty(0), note, share)
    found = _summary(compared, note, share)
    # Each column has length 1, so the pairs of a column with itself add up to their number.
    mean = float(total @ total - used) / (used * (used - 1))
    return TauSummary(mean, found.low, found.high, share, note)


def _taus(signs: FloatArray) -> FloatArray:
    """Return tau of all pairs of different columns."""
    gram = signs.T @ signs
    return np.asarray(gram[np.triu_indices(gram.shape[0], 1)])


def _signs(values: FloatArray) -> FloatArray:
    """Return which method of each pair is ahead, each column scaled to length 1, shape (p, B).

    The product of two such columns is Kendall's tau-b. NaN for a column that ranks nothing.
    """
    i, j = np.triu_indices(values.shape[0], 1)
    signs = np.sign(values[i] - values[j])
    length = np.sqrt((signs * signs).sum(axis=0))
    out = np.full(signs.shape, np.nan)
    np.divide(signs, length, out=out, where=length > 0)
    return out


def _resamples_at_once(k: int) -> int:
    return max(2, _MEMORY // max(1, k * (k - 1) // 2))


def _left_out(count: int, of: int) -> str:
    rule = "resamples left out, since a value is NaN or all methods are tied"
    return f"{count} of {of} {rule}" if count else ""


def _summary(taus: FloatArray, note: str, level: float) -> TauSummary:
    if not taus.size:
        nan, why = float("nan"), "no two methods or resamples that can be compared"
        return TauSummary(nan, nan, nan, level, note or why)
    low, high = quantiles(taus, [(1 - level) / 2, (1 + level) / 2])
    return TauSummary(float(taus.mean()), float(low), float(high), level, note)


def _alike(first: AnyArray, second: AnyArray, *axes: str) -> tuple[FloatArray, FloatArray]:
    a, b = stack(first, "first", *axes), stack(second, "second", *axes)
    if a.shape != b.shape:
        raise ShapeError(
            f"`first` and `second` must have the same shape; got {a.shape} and {b.shape}"
        )
    return a, b
