"""Kendall's tau: the agreement of two rankings of the same methods."""

from dataclasses import dataclass

import numpy as np

from abstain.errors import ShapeError
from abstain.inference.intervals import check_level
from abstain.inference.quantiles import quantiles
from abstain.inference.ranking import check_array
from abstain.typing import AnyArray, FloatArray

#: Largest number of entries in a table of pairs of methods and resamples.
_MAX_NUMBERS = 4_000_000
#: Number of resamples whose pairs give the range of tau. All resamples are exchangeable.
_MAX_RESAMPLES_FOR_RANGE = 1_000


@dataclass(frozen=True)
class TauSummary:
    """Kendall's tau over resamples.

    Attributes
    ----------
    mean, low, high : float
        Mean and central range; NaN if undefined, and `note` gives the reason.
    level : float
        Level of the range.
    note : str
        Number of dropped resamples or the reason of missing values; empty if there are none.
    """

    mean: float
    low: float
    high: float
    level: float
    note: str = ""


def kendall(first: AnyArray, second: AnyArray) -> float:
    """Compute Kendall's tau-b of two rankings of the same methods.

    Answers: do both rankings have the same order?

    Parameters
    ----------
    first, second : array of shape (k,)
        Ranks, or values of metrics with the same direction. A method with a NaN is left out.

    Returns
    -------
    float
        1 for the same order, -1 for the reverse order, corrected for ties. NaN if fewer than two
        methods have values, or if all methods are tied in one ranking.

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
    a, b = _check_same_shape(first, second, "k")
    is_defined = ~(np.isnan(a) | np.isnan(b))
    if is_defined.sum() < 2:
        return float("nan")
    a_signs, b_signs = _pair_signs(a[is_defined, None]), _pair_signs(b[is_defined, None])
    return float(a_signs[:, 0] @ b_signs[:, 0])


def agreement(
    first: AnyArray, second: AnyArray, *, same_direction: bool = True, level: float = 0.95
) -> TauSummary:
    """Compute Kendall's tau-b between two metrics on each resample.

    Answers: how similarly do the two metrics rank the methods, over the resamples?

    Parameters
    ----------
    first, second : array of shape (k, B)
        The two metrics of each method on each resample.
    same_direction : bool, default=True
        False if lower is better for one of the metrics and worse for the other.
    level : float, default=0.95
        Level of the central range.

    Returns
    -------
    TauSummary
        Resamples with an undefined tau are left out, and the note gives their number.

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
    a, b = _check_same_shape(first, second, "k", "B")
    step = _resamples_in_block(a.shape[0])
    taus = []
    for start in range(0, a.shape[1], step):
        block = slice(start, start + step)
        taus.append(np.einsum("pb,pb->b", _pair_signs(a[:, block]), _pair_signs(b[:, block])))
    tau = np.concatenate(taus)
    defined = tau[~np.isnan(tau)] if a.shape[0] > 1 else np.empty(0)
    if not same_direction:
        defined = -defined
    note = _dropped_note(tau.size - defined.size, tau.size)
    return _summarize(defined, note, check_level(level))


def stability(replicates: AnyArray, *, level: float = 0.95) -> TauSummary:
    """Compute Kendall's tau-b between the rankings of pairs of resamples.

    Answers: would the ranking be the same on other data?

    Parameters
    ----------
    replicates : array of shape (k, B)
        The metric of each method on each resample.
    level : float, default=0.95
        Level of the central range.

    Returns
    -------
    TauSummary
        The mean is the exact mean over all pairs of resamples. The range is that of the pairs of
        the first 1,000 resamples.

    Raises
    ------
    ShapeError
        If `replicates` does not have two axes.
    DomainError
        If `level` is not between 0 and 1.

    Notes
    -----
    The direction of the metric does not matter. Two resamples of the same data differ like two
    samples, so the result is the stability of the ranking across samples. Cost: k^2 B.

    Examples
    --------
    >>> from abstain.inference.agreement import stability
    >>> stability([[1, 1, 2], [2, 3, 1]]).mean
    -0.333...
    """
    table = check_array(replicates, "replicates", "k", "B")
    level = check_level(level)
    k, n_resamples = table.shape
    step = _resamples_in_block(k)
    sign_sum, n_used = np.zeros(k * (k - 1) // 2), 0
    taus = np.empty(0)
    for start in range(0, n_resamples, step):
        signs = _pair_signs(table[:, start : start + step])
        signs = signs[:, ~np.isnan(signs).any(axis=0)]
        if start == 0:
            taus = _taus_of_pairs(signs[:, : min(_MAX_RESAMPLES_FOR_RANGE, step)])
        sign_sum += signs.sum(axis=1)
        n_used += signs.shape[1]
    note = _dropped_note(n_resamples - n_used, n_resamples)
    if k < 2 or n_used < 2:
        return _summarize(np.empty(0), note, level)
    summary = _summarize(taus, note, level)
    # The columns have length 1, so the products of columns with themselves add up to `n_used`.
    mean = float(sign_sum @ sign_sum - n_used) / (n_used * (n_used - 1))
    return TauSummary(mean, summary.low, summary.high, level, note)


def _taus_of_pairs(signs: FloatArray) -> FloatArray:
    """Return tau of all pairs of different columns."""
    gram = signs.T @ signs
    return np.asarray(gram[np.triu_indices(gram.shape[0], 1)])


def _pair_signs(values: FloatArray) -> FloatArray:
    """Return the sign of the difference of each pair of methods, shape (pairs, B).

    Each column is scaled to length 1, so that the product of two columns is Kendall's tau-b. A
    column in which all methods are tied is NaN.
    """
    i, j = np.triu_indices(values.shape[0], 1)
    signs = np.sign(values[i] - values[j])
    length = np.sqrt((signs * signs).sum(axis=0))
    out = np.full(signs.shape, np.nan)
    np.divide(signs, length, out=out, where=length > 0)
    return out


def _resamples_in_block(k: int) -> int:
    return max(2, _MAX_NUMBERS // max(1, k * (k - 1) // 2))


def _dropped_note(n_dropped: int, n_resamples: int) -> str:
    if not n_dropped:
        return ""
    reason = "resamples left out, because a value is NaN or all methods are tied"
    return f"{n_dropped} of {n_resamples} {reason}"


def _summarize(taus: FloatArray, note: str, level: float) -> TauSummary:
    if not taus.size:
        nan = float("nan")
        note = note or "no two methods or resamples can be compared"
        return TauSummary(nan, nan, nan, level, note)
    low, high = quantiles(taus, [(1 - level) / 2, (1 + level) / 2])
    return TauSummary(float(taus.mean()), float(low), float(high), level, note)


def _check_same_shape(
    first: AnyArray, second: AnyArray, *axes: str
) -> tuple[FloatArray, FloatArray]:
    a, b = check_array(first, "first", *axes), check_array(second, "second", *axes)
    if a.shape != b.shape:
        raise ShapeError(
            f"`first` and `second` must have the same shape; got {a.shape} and {b.shape}"
        )
    return a, b
