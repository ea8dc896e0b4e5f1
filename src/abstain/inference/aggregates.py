"""Few runs on several data sets: interquartile mean, chance of improvement, performance profile.

The runs (seeds, folds) are resampled within each data set, so the intervals say what other seeds
would have given on the same data sets.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from abstain._foundation import checks
from abstain._foundation.random import as_generator
from abstain.errors import ShapeError
from abstain.inference.intervals import level_of
from abstain.inference.quantiles import quantiles
from abstain.inference.ranking import stack
from abstain.typing import AnyArray, FloatArray, Rng

#: Numbers held at once while resampling.
_MEMORY = 2_000_000

_ONE_RUN = "one run of each data set: there is nothing to tell how much other seeds would differ"


@dataclass(frozen=True)
class Aggregate:
    """A number over runs and data sets with its bootstrap interval.

    Attributes
    ----------
    value, low, high : float
        The number and its percentile interval; NaN ends where there is one run of each only.
    level : float
        Of the interval.
    draws : int
        Resamples behind the interval.
    note : str
        What to be careful about, or empty.
    """

    value: float
    low: float
    high: float
    level: float
    draws: int
    note: str = ""


def probability_of_improvement(
    first: AnyArray,
    second: AnyArray,
    *,
    lower_is_better: bool,
    level: float = 0.95,
    draws: int = 2000,
    rng: Rng = 0,
) -> Aggregate:
    """Estimate the chance that a run of the first method beats a run of the second.

    Answers: if I train both once more, how likely is the first better?

    Parameters
    ----------
    first, second : array of shape (data sets, runs)
        The metric; the numbers of runs may differ.
    lower_is_better : bool
        The direction of the metric.
    level : float, default=0.95
        Of the interval.
    draws : int, default=2000
        Resamples of the runs within each data set.
    rng : int, Generator or None, default=0
        Seed of the resamples.

    Returns
    -------
    Aggregate
        In [0, 1]; the mean over data sets of the share of pairs of runs, ties half.

    Raises
    ------
    ShapeError
        If the numbers of data sets differ.
    DomainError
        If a value is NaN or infinite, or `level` is not between 0 and 1.

    Notes
    -----
    The Mann-Whitney statistic over its maximum. Runs are taken as independent, also across methods.

    References
    ----------
    .. [1] Agarwal et al. (2021), Deep reinforcement learning at the edge of the statistical
       precipice, https://arxiv.org/abs/2108.13264

    Examples
    --------
    >>> from abstain.inference.aggregates import probability_of_improvement
    >>> probability_of_improvement([[1, 2, 3]], [[2, 4, 5]], lower_is_better=True).value
    0.833...
    """
    a, b = _runs(first, "first"), _runs(second, "second")
    if a.shape[0] != b.shape[0]:
        raise ShapeError(
            f"the methods must have the same data sets; got {a.shape[0]} and {b.shape[0]}"
        )
    drawn = _shares_of_both(a, b, draws, as_generator(rng))
    pairs = _products(drawn)
    return _improvements(a, b[None], pairs, lower_is_better=lower_is_better, level=level)[0]


def improvements(
    runs: FloatArray, *, lower_is_better: bool, level: float, draws: int = 2000, rng: Rng = 0
) -> Iterator[Aggregate]:
    """Yield `probability_of_improvement` of each pair of methods, drawn once for all.

    Takes runs of shape (k, data sets, runs); the pairs come as `combinations` has them.
    """
    if len(runs) < 2:
        return
    pairs = _products(_shares_of_both(runs[0], runs[1], draws, as_generator(rng)))
    for i, first in enumerate(runs[:-1]):
        others = runs[i + 1 :]
        yield from _improvements(first, others, pairs, lower_is_better=lower_is_better, level=level)


def _shares_of_both(
    a: FloatArray, b: FloatArray, draws: int, random: np.random.Generator
) -> list[tuple[FloatArray, FloatArray]]:
    """Draw how often each run of two methods is in each resample, part by part."""
    sizes = _blocks(draws, a.size + b.size)
    return [(_shares_of_runs(a, size, random), _shares_of_runs(b, size, random)) for size in sizes]


def _products(drawn: Iterable[tuple[FloatArray, FloatArray]]) -> FloatArray:
    """Return how often each two runs of a data set meet, shape (resamples, all of them)."""
    return np.concatenate([np.einsum("bdi,bdj->bdij", x, y).reshape(len(x), -1) for x, y in drawn])


def _improvements(
    a: FloatArray, others: FloatArray, pairs: FloatArray, *, lower_is_better: bool, level: float
) -> list[Aggregate]:
    """Compare one method with others (k, data sets, runs) on what was drawn: one product."""
    sign = 1.0 if lower_is_better else -1.0
    lead = np.sign(others[:, :, None, :] - a[:, :, None]) * sign
    wins = ((1.0 + lead) / 2).reshape(len(others), -1)
    drawn = wins @ pairs.T / a.shape[0]
    few = min(a.shape[1], others.shape[2])
    return _aggregates(wins.mean(axis=1), drawn, level, few)


def interquartile_mean(
    scores: AnyArray, *, level: float = 0.95, draws: int = 2000, rng: Rng = 0
) -> Aggregate:
    """Compute the mean of the middle half of all runs of all data sets.

    Answers: how good is a typical run, leaving out the best and the worst quarter?

    Parameters
    ----------
    scores : array of shape (data sets, runs)
        The metric, on a scale that the data sets share.
    level : float, default=0.95
        Of the interval.
    draws : int, default=2000
        Resamples of the runs within each data set.
    rng : int, Generator or None, default=0
        Seed of the resamples.

    Returns
    -------
    Aggregate
        In units of the metric.

    Raises
    ------
    ShapeError
        If `scores` is no table.
    DomainError
        If a value is NaN or infinite, or `level` is not between 0 and 1.

    References
    ----------
    .. [1] Agarwal et al. (2021), https://arxiv.org/abs/2108.13264

    Examples
    --------
    >>> from abstain.inference.aggregates import interquartile_mean
    >>> interquartile_mean([[1, 2, 3, 100]]).value
    2.5
    """
    table = _runs(scores, "scores")
    return interquartile_means(table[None], level=level, draws=draws, rng=rng)[0]


def interquartile_means(
    runs: FloatArray, *, level: float, draws: int = 2000, rng: Rng = 0
) -> list[Aggregate]:
    """Return `interquartile_mean` of each method, (k, data sets, runs), drawn once for all."""
    random, shape = as_generator(rng), runs.shape[1:]
    sets = np.arange(shape[0])[:, None]
    places = [random.integers(shape[1], size=(n, *shape)) for n in _blocks(draws, runs[0].size)]
    drawn = [np.concatenate([_middle_mean(own[sets, at]) for at in places]) for own in runs]
    return _aggregates(_middle_mean(runs), np.array(drawn), level, shape[1])


@dataclass(frozen=True, eq=False)
class PerformanceProfile:
    """The share of runs that are at least as good as each threshold.

    Attributes
    ----------
    threshold, share, low, high : ndarray of shape (m,)
        The grid, the share, and its pointwise bootstrap band.
    level : float
        Of the band.
    note : str
        What to be careful about, or empty.
    """

    threshold: FloatArray
    share: FloatArray
    low: FloatArray
    high: FloatArray
    level: float
    note: str = ""


def performance_profile(
    scores: AnyArray,
    *,
    lower_is_better: bool,
    grid: AnyArray | None = None,
    level: float = 0.95,
    draws: int = 2000,
    rng: Rng = 0,
) -> PerformanceProfile:
    """Compute which share of the runs is at least as good as each threshold.

    Answers: how often does this method reach this quality?

    Parameters
    ----------
    scores : array of shape (data sets, runs)
        The metric, on a scale that the data sets share.
    lower_is_better : bool
        The direction of the metric.
    grid : array of shape (m,), optional
        Thresholds; 101 even steps over the scores if not given. Give the same to all methods.
    level : float, default=0.95
        Of the pointwise band.
    draws : int, default=2000
        Resamples of the runs within each data set.
    rng : int, Generator or None, default=0
        Seed of the resamples.

    Returns
    -------
    PerformanceProfile
        Shares in [0, 1]; a run that equals the threshold reaches it.

    Raises
    ------
    ShapeError
        If `scores` is no table.
    DomainError
        If a value is NaN or infinite, or `level` is not between 0 and 1.

    References
    ----------
    .. [1] Agarwal et al. (2021), https://arxiv.org/abs/2108.13264

    Examples
    --------
    >>> from abstain.inference.aggregates import performance_profile
    >>> runs = [[1, 2], [3, 4]]
    >>> performance_profile(runs, grid=[0, 2, 4], lower_is_better=True).share.tolist()
    [0.0, 0.5, 1.0]
    """
    table = _runs(scores, "scores")
    steps = np.linspace(table.min(), table.max(), 101) if grid is None else stack(grid, "grid", "m")
    every = performance_profiles(
        table[None], steps, lower_is_better=lower_is_better, level=level, draws=draws, rng=rng
    )
    return next(every)


def performance_profiles(
    runs: FloatArray,
    steps: FloatArray,
    *,
    lower_is_better: bool,
    level: float,
    draws: int = 2000,
    rng: Rng = 0,
) -> Iterator[PerformanceProfile]:
    """Yield `performance_profile` of each method, (k, data sets, runs), drawn once for all."""
    tail, random = (1 - level_of(level)) / 2, as_generator(rng)
    blocks = _blocks(draws, runs[0].size + steps.size)
    shares = np.concatenate([_shares_of_runs(runs[0], size, random) for size in blocks])
    single = runs.shape[2] < 2
    for table in runs:
        ahead = table[..., None] <= steps if lower_is_better else table[..., None] >= steps
        reached = ahead.astype(np.float64)
        # What one threshold reaches a laxer one does too, so as many are the same ones.
        count = reached.sum(axis=(0, 1))
        _, first, place = np.unique(count, return_index=True, return_inverse=True)
        drawn = np.tensordot(shares, reached[..., first], axes=2) / table.shape[0]
        low, high = quantiles(drawn.T, [tail, 1 - tail])[:, place]
        yield PerformanceProfile(
            threshold=steps,
            share=reached.mean(axis=(0, 1)),
            low=np.full_like(low, np.nan) if single else low,
            high=np.full_like(high, np.nan) if single else high,
            level=level,
            note=_ONE_RUN if single else "",
        )


def _runs(x: AnyArray, name: str) -> FloatArray:
    return checks.finite(stack(x, name, "data sets", "runs"), name)


def _middle_mean(drawn: FloatArray) -> FloatArray:
    ordered = np.sort(drawn.reshape(drawn.shape[0], -1), axis=1)
    cut = ordered.shape[1] // 4
    return np.asarray(ordered[:, cut : ordered.shape[1] - cut].mean(axis=1))


def _blocks(draws: int, numbers: int) -> list[int]:
    """Cut the resamples into parts that fit the memory."""
    total = checks.positive_int(draws, "draws")
    step = max(1, _MEMORY // numbers)
    return [min(step, total - start) for start in range(0, total, step)]


def _shares_of_runs(table: FloatArray, size: int, random: np.random.Generator) -> FloatArray:
    """Draw how often each run is in each resample, over the number of runs."""
    sets, runs = table.shape
    counts = random.multinomial(runs, np.full(runs, 1.0 / runs), size=(size, sets))
    return np.asarray(counts / runs)


def _aggregates(values: FloatArray, drawn: FloatArray, level: float, runs: int) -> list[Aggregate]:
    """Return numbers with the intervals of their resamples (k, draws)."""
    tail = (1 - level_of(level)) / 2
    ends = quantiles(drawn, [tail, 1 - tail]) if runs > 1 else np.full((2, values.size), np.nan)
    note = "" if runs > 1 else _ONE_RUN
    return [
        Aggregate(value, low, high, level, drawn.shape[1], note)
        for value, low, high in zip(values.tolist(), *ends.tolist(), strict=True)
    ]
