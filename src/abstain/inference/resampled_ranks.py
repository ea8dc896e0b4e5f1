"""Ranks over resamples: the chance of each, and one ranking over several data sets or runs."""

from dataclasses import dataclass

import numpy as np

from abstain._foundation import checks
from abstain.errors import DomainError
from abstain.inference.intervals import level_of
from abstain.inference.ranking import (
    TIES,
    Ties,
    among,
    chances_from,
    ranks,
    stack,
    standings_of,
)
from abstain.typing import AnyArray, FloatArray


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
    >>> from abstain.inference.resampled_ranks import rank_chances_of
    >>> rank_chances_of([[0.1, 0.3], [0.2, 0.2]], lower_is_better=True).tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    table = stack(replicates, "replicates", "k", "B")
    known = np.asarray(~np.isnan(table).all(axis=1))
    complete = table[known][:, ~np.isnan(table[known]).any(axis=0)]
    if not complete.size:
        return np.full((known.size, known.size), np.nan)
    return among(known, chances_from(*standings_of(complete, lower_is_better=lower_is_better)))


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
    >>> from abstain.inference.resampled_ranks import rank_summary
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


@dataclass(frozen=True, eq=False)
class AggregatedRanking:
    """A ranking over several blocks (data sets, runs) with its spread over resamples.

    Attributes
    ----------
    ranks : ndarray of shape (k,)
        The final ranks; 1 is best, equal methods share the mean of theirs or have the lowest.
    mean_ranks : ndarray of shape (k,)
        The mean over resamples (and over blocks, where each block is ranked by itself).
    chances : ndarray of shape (k, k)
        Entry [i, r] is the share of the resamples in which method i has the rank r + 1 over all
        blocks together; equal methods share their ranks.
    frequencies : ndarray of shape (k, k)
        The same over all blocks and resamples, each block ranked by itself: the histogram that
        blob plots show. Equal to `chances` where blocks are not ranked by themselves.
    low, high : ndarray of shape (k,)
        Central range of `chances` at the level.
    level : float
        Of that range.
    blocks, resamples : int
        How many of each were used.
    note : str
        What was left out and why, or empty.
    """

    ranks: FloatArray
    mean_ranks: FloatArray
    chances: FloatArray
    frequencies: FloatArray
    low: FloatArray
    high: FloatArray
    level: float
    blocks: int
    resamples: int
    note: str = ""


def rank_then_aggregate(
    replicates: AnyArray, *, lower_is_better: bool, level: float = 0.95, ties: Ties = "mean"
) -> AggregatedRanking:
    """Rank the methods in each block and resample, average the ranks, and rank the averages.

    Answers: who does best on most data sets, however large the differences are on each?

    Parameters
    ----------
    replicates : array of shape (blocks, k, B)
        The metric on each data set (or run), of each method, on each resample.
    lower_is_better : bool
        The direction of the metric.
    level : float, default=0.95
        Of the central range of the ranks.
    ties : {"mean", "min"}, default="mean"
        Which rank equal methods have, in each block and resample and in the end; chances are
        shared in either case.

    Returns
    -------
    AggregatedRanking
        Blocks that lack a method altogether are left out, and so are resamples with a NaN; the
        note says how many.

    Raises
    ------
    ShapeError
        If `replicates` does not have three axes.
    DomainError
        If nothing is left, or `level` is not between 0 and 1.
    InputError
        If `ties` is unknown.

    Notes
    -----
    Robust to metrics of different scale on different data sets; blind to how large a difference
    is. Resamples that are paired across blocks are not needed.

    References
    ----------
    .. [1] Wiesenfarth et al. (2021), Methods and open-source toolkit for analyzing and
       visualizing challenge results, https://doi.org/10.1038/s41598-021-82017-6

    Examples
    --------
    >>> from abstain.inference.resampled_ranks import rank_then_aggregate
    >>> result = rank_then_aggregate([[[1, 1], [2, 2]], [[1, 5], [4, 4]]], lower_is_better=True)
    >>> result.mean_ranks.tolist(), result.ranks.tolist()
    ([1.25, 1.75], [1.0, 2.0])
    """
    known = checks.one_of(ties, "ties", TIES)
    table, note = _complete(replicates)
    blocks, k, resamples = table.shape
    pooled = np.moveaxis(table, 1, 0).reshape(k, -1)
    better, equal = standings_of(pooled, lower_is_better=lower_is_better)
    # Ranks are multiples of one half, so their sums are exact and equal sums are seen as equal.
    each = 1.0 + better + (equal / 2 if known == "mean" else 0)
    total = each.reshape(k, blocks, resamples).sum(axis=1)
    chances = chances_from(*standings_of(total, lower_is_better=True))
    mean = total.sum(axis=1) / (blocks * resamples)
    summary = rank_summary(chances, level=level)
    return AggregatedRanking(
        ranks=ranks(mean, lower_is_better=True, ties=ties),
        mean_ranks=mean,
        chances=chances,
        frequencies=chances_from(better, equal),
        low=summary.low,
        high=summary.high,
        level=level,
        blocks=blocks,
        resamples=resamples,
        note=note,
    )


def aggregate_then_rank(
    replicates: AnyArray, *, lower_is_better: bool, level: float = 0.95, ties: Ties = "mean"
) -> AggregatedRanking:
    """Average the metric over the blocks in each resample, and rank the averages.

    Answers: who has the best metric on average over the data sets?

    Parameters
    ----------
    replicates : array of shape (blocks, k, B)
        The metric on each data set (or run), of each method, on each resample.
    lower_is_better : bool
        The direction of the metric.
    level : float, default=0.95
        Of the central range of the ranks.
    ties : {"mean", "min"}, default="mean"
        Which rank equal methods have in the end.

    Returns
    -------
    AggregatedRanking
        The final ranks are those of the mean over blocks and resamples. Blocks that lack a method
        altogether are left out, and so are resamples with a NaN; the note says how many.

    Raises
    ------
    ShapeError
        If `replicates` does not have three axes.
    DomainError
        If nothing is left, or `level` is not between 0 and 1.
    InputError
        If `ties` is unknown.

    Notes
    -----
    A data set on which the metric is large decides more than the others.

    References
    ----------
    .. [1] Wiesenfarth et al. (2021), Methods and open-source toolkit for analyzing and
       visualizing challenge results, https://doi.org/10.1038/s41598-021-82017-6

    Examples
    --------
    >>> from abstain.inference.resampled_ranks import aggregate_then_rank
    >>> result = aggregate_then_rank([[[1, 1], [2, 2]], [[1, 5], [4, 4]]], lower_is_better=True)
    >>> result.mean_ranks.tolist(), result.ranks.tolist()
    ([1.25, 1.75], [1.0, 2.0])
    """
    table, note = _complete(replicates)
    mean = table.mean(axis=0)
    chances = chances_from(*standings_of(mean, lower_is_better=lower_is_better))
    summary = rank_summary(chances, level=level)
    return AggregatedRanking(
        ranks=ranks(mean.mean(axis=1), lower_is_better=lower_is_better, ties=ties),
        mean_ranks=summary.mean,
        chances=chances,
        frequencies=chances,
        low=summary.low,
        high=summary.high,
        level=level,
        blocks=table.shape[0],
        resamples=table.shape[2],
        note=note,
    )


def _complete(replicates: AnyArray) -> tuple[FloatArray, str]:
    """Leave out the blocks and resamples on which not all methods can be ranked."""
    table = stack(replicates, "replicates", "blocks", "k", "B")
    missing = np.isnan(table)
    blocks = np.asarray(~np.any(np.all(missing, axis=2), axis=1))
    resamples = np.asarray(~missing[blocks].any(axis=(0, 1)))
    if not (blocks.any() and resamples.any()):
        raise DomainError(
            "`replicates` must have a block and a resample on which every method has a value; got "
            "NaN in all of them. Leave out the methods or the data sets without values."
        )
    note = "; ".join(
        f"{count} of {kept.size} {name} left out, since a method has no value there"
        for name, kept in (("data sets or runs", blocks), ("resamples", resamples))
        if (count := int(kept.size - np.count_nonzero(kept)))
    )
    return table[blocks][:, :, resamples], note
