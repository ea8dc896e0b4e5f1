"""Summary statistics of runs on several data sets, as in Agarwal et al. (2021).

The runs, such as seeds or folds, are resampled within each data set. The confidence intervals
describe the variation between runs, not between data sets.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from abstain._foundation import checks
from abstain._foundation.random import as_generator
from abstain.errors import ShapeError
from abstain.inference.bootstrap_intervals import quantiles
from abstain.inference.intervals import check_level
from abstain.inference.ranking import check_array
from abstain.typing import AnyArray, FloatArray, Rng

#: Maximum number of entries in a temporary array.
_MAX_NUMBERS = 2_000_000

_ONE_RUN = "one run of each data set: the variation over seeds is unknown"


@dataclass(frozen=True)
class Aggregate:
    """Summary statistic over runs and data sets, with a bootstrap confidence interval.

    Attributes
    ----------
    value, low, high : float
        The statistic and the bounds of its percentile bootstrap interval. The bounds are NaN if
        each data set has only one run.
    level : float
        Confidence level of the interval.
    n_resamples : int
        Number of resamples.
    note : str
        A warning, or empty.
    """

    value: float
    low: float
    high: float
    level: float
    n_resamples: int
    note: str = ""


def probability_of_improvement(
    first: AnyArray,
    second: AnyArray,
    *,
    lower_is_better: bool,
    level: float = 0.95,
    resamples: int = 2000,
    rng: Rng = 0,
) -> Aggregate:
    """Estimate the probability that a run of the first method is better than a run of the second.

    Answers: if I train both methods once more, how likely is the first method better?

    Parameters
    ----------
    first, second : array of shape (data sets, runs)
        The metric of each run. The numbers of runs may differ.
    lower_is_better : bool
        The direction of the metric.
    level : float, default=0.95
        Confidence level of the interval.
    resamples : int, default=2000
        Number of resamples of the runs within each data set.
    rng : int, Generator or None, default=0
        Seed of the resamples.

    Returns
    -------
    Aggregate
        The share of pairs of runs in which the first method is better, averaged over the data sets.
        A tie counts half.

    Raises
    ------
    ShapeError
        If the numbers of data sets differ.
    DomainError
        If a value is NaN or infinite, or `level` is not between 0 and 1.

    Notes
    -----
    The estimate is the Mann-Whitney statistic divided by its maximum. The interval assumes that all
    runs are independent, including runs of different methods.

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
    first_runs = _check_runs(first, "first")
    second_runs = _check_runs(second, "second")
    if first_runs.shape[0] != second_runs.shape[0]:
        raise ShapeError(
            "the methods must have the same data sets; got "
            f"{first_runs.shape[0]} and {second_runs.shape[0]}"
        )
    pair_shares = _resampled_pair_shares(first_runs, second_runs, resamples, as_generator(rng))
    improvements = _improvements(
        first_runs, second_runs[None], pair_shares, lower_is_better=lower_is_better, level=level
    )
    return improvements[0]


def pairwise_improvements(
    runs: FloatArray, *, lower_is_better: bool, level: float, resamples: int = 2000, rng: Rng = 0
) -> Iterator[Aggregate]:
    """Yield `probability_of_improvement` for each pair of methods, using the same resamples.

    The array of runs has shape (k, data sets, runs) for k methods. The pairs are ordered as in
    `itertools.combinations`.
    """
    if len(runs) < 2:
        return
    pair_shares = _resampled_pair_shares(runs[0], runs[1], resamples, as_generator(rng))
    for i, first in enumerate(runs[:-1]):
        yield from _improvements(
            first, runs[i + 1 :], pair_shares, lower_is_better=lower_is_better, level=level
        )


def _resampled_pair_shares(
    first_runs: FloatArray, second_runs: FloatArray, resamples: int, random: np.random.Generator
) -> FloatArray:
    """Return the weight of each pair of runs of two methods, shape (resamples, pairs)."""
    pair_shares = []
    for size in _block_sizes(resamples, first_runs.size + second_runs.size):
        first_shares = _resampled_run_shares(first_runs, size, random)
        second_shares = _resampled_run_shares(second_runs, size, random)
        products = np.einsum("bdi,bdj->bdij", first_shares, second_shares)
        pair_shares.append(products.reshape(size, -1))
    return np.concatenate(pair_shares)


def _improvements(
    runs: FloatArray,
    competitors: FloatArray,
    pair_shares: FloatArray,
    *,
    lower_is_better: bool,
    level: float,
) -> list[Aggregate]:
    """Estimate the probability that one method is better than each of the competitors."""
    sign = 1.0 if lower_is_better else -1.0
    comparison = np.sign(competitors[:, :, None, :] - runs[:, :, None]) * sign
    wins = ((1.0 + comparison) / 2).reshape(len(competitors), -1)
    replicates = wins @ pair_shares.T / runs.shape[0]
    min_runs = min(runs.shape[1], competitors.shape[2])
    return _aggregates(wins.mean(axis=1), replicates, level, min_runs)


def interquartile_mean(
    scores: AnyArray, *, level: float = 0.95, resamples: int = 2000, rng: Rng = 0
) -> Aggregate:
    """Compute the mean of the middle 50% of the runs, pooled over all data sets.

    Answers: how good is a typical run if the best and the worst quarter of the runs are excluded?

    Parameters
    ----------
    scores : array of shape (data sets, runs)
        The metric of each run, on a common scale for all data sets.
    level : float, default=0.95
        Confidence level of the interval.
    resamples : int, default=2000
        Number of resamples of the runs within each data set.
    rng : int, Generator or None, default=0
        Seed of the resamples.

    Returns
    -------
    Aggregate
        The interquartile mean in units of the metric.

    Raises
    ------
    ShapeError
        If `scores` does not have two axes.
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
    table = _check_runs(scores, "scores")
    return interquartile_means(table[None], level=level, resamples=resamples, rng=rng)[0]


def interquartile_means(
    runs: FloatArray, *, level: float, resamples: int = 2000, rng: Rng = 0
) -> list[Aggregate]:
    """Compute `interquartile_mean` for each method, using the same resamples.

    The array of runs has shape (k, data sets, runs) for k methods.
    """
    random = as_generator(rng)
    n_methods, n_data_sets, n_runs = runs.shape
    data_set = np.arange(n_data_sets)[:, None]
    replicates = np.empty((n_methods, 0))
    for size in _block_sizes(resamples, runs[0].size):
        run_index = random.integers(n_runs, size=(size, n_data_sets, n_runs))
        block = [_interquartile_mean(table[data_set, run_index]) for table in runs]
        replicates = np.concatenate((replicates, block), axis=1)
    return _aggregates(_interquartile_mean(runs), replicates, level, n_runs)


@dataclass(frozen=True, eq=False)
class PerformanceProfile:
    """Performance profile, the share of runs that are at least as good as each threshold.

    Attributes
    ----------
    threshold, share, low, high : ndarray of shape (m,)
        The thresholds, the shares, and the bounds of the pointwise bootstrap band.
    level : float
        Confidence level of the band.
    note : str
        A warning, or empty.
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
    resamples: int = 2000,
    rng: Rng = 0,
) -> PerformanceProfile:
    """Compute the share of runs that are at least as good as each threshold.

    Answers: how often does this method reach this quality?

    Parameters
    ----------
    scores : array of shape (data sets, runs)
        The metric of each run, on a common scale for all data sets.
    lower_is_better : bool
        The direction of the metric.
    grid : array of shape (m,), optional
        Thresholds. The default is 101 evenly spaced values over the range of the scores. Pass the
        same thresholds for all methods.
    level : float, default=0.95
        Confidence level of the pointwise band.
    resamples : int, default=2000
        Number of resamples of the runs within each data set.
    rng : int, Generator or None, default=0
        Seed of the resamples.

    Returns
    -------
    PerformanceProfile
        The shares, in [0, 1]. A run whose score equals the threshold is included.

    Raises
    ------
    ShapeError
        If `scores` does not have two axes.
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
    table = _check_runs(scores, "scores")
    if grid is None:
        thresholds = np.linspace(table.min(), table.max(), 101)
    else:
        thresholds = check_array(grid, "grid", "m")
    profiles = performance_profiles(
        table[None],
        thresholds,
        lower_is_better=lower_is_better,
        level=level,
        resamples=resamples,
        rng=rng,
    )
    return next(profiles)


def performance_profiles(
    runs: FloatArray,
    thresholds: FloatArray,
    *,
    lower_is_better: bool,
    level: float,
    resamples: int = 2000,
    rng: Rng = 0,
) -> Iterator[PerformanceProfile]:
    """Yield `performance_profile` for each method, using the same resamples."""
    tail = (1 - check_level(level)) / 2
    random = as_generator(rng)
    sizes = _block_sizes(resamples, runs[0].size + thresholds.size)
    run_shares = np.concatenate([_resampled_run_shares(runs[0], size, random) for size in sizes])
    has_single_run = runs.shape[2] < 2
    for table in runs:
        scores = table[..., None]
        is_reached = scores <= thresholds if lower_is_better else scores >= thresholds
        reached = is_reached.astype(np.float64)
        low, high = _profile_bounds(reached, run_shares, tail)
        if has_single_run:
            low = np.full_like(low, np.nan)
            high = np.full_like(high, np.nan)
        yield PerformanceProfile(
            threshold=thresholds,
            share=reached.mean(axis=(0, 1)),
            low=low,
            high=high,
            level=level,
            note=_ONE_RUN if has_single_run else "",
        )


def _profile_bounds(
    reached: FloatArray, run_shares: FloatArray, tail: float
) -> tuple[FloatArray, FloatArray]:
    """Return quantiles, over the resamples, of the share of runs that reach each threshold.

    `reached` has shape (data sets, runs, thresholds), and `run_shares` (resamples, data sets,
    runs).
    """
    # If two thresholds are reached by the same number of runs, they are reached by the same runs.
    # Their bounds are equal and are computed once.
    n_reached = reached.sum(axis=(0, 1))
    _, distinct, index = np.unique(n_reached, return_index=True, return_inverse=True)
    replicates = np.tensordot(run_shares, reached[..., distinct], axes=2) / reached.shape[0]
    low, high = quantiles(replicates.T, [tail, 1 - tail])
    return low[index], high[index]


def _check_runs(runs: AnyArray, name: str) -> FloatArray:
    """Validate the metrics of all runs, shape (data sets, runs), which must be finite."""
    return checks.finite(check_array(runs, name, "data sets", "runs"), name)


def _interquartile_mean(runs: FloatArray) -> FloatArray:
    """Return the mean of the middle 50% of all runs for each entry of the first axis."""
    ordered = np.sort(runs.reshape(runs.shape[0], -1), axis=1)
    n_dropped = ordered.shape[1] // 4
    return np.asarray(ordered[:, n_dropped : ordered.shape[1] - n_dropped].mean(axis=1))


def _block_sizes(resamples: int, numbers_per_resample: int) -> list[int]:
    """Return the sizes of blocks of resamples that fit into memory."""
    total = checks.positive_int(resamples, "resamples")
    step = max(1, _MAX_NUMBERS // numbers_per_resample)
    return [min(step, total - start) for start in range(0, total, step)]


def _resampled_run_shares(
    table: FloatArray, n_resamples: int, random: np.random.Generator
) -> FloatArray:
    """Return the weight of each run in each resample, shape (resamples, data sets, runs)."""
    n_data_sets, n_runs = table.shape
    probabilities = np.full(n_runs, 1.0 / n_runs)
    counts = random.multinomial(n_runs, probabilities, size=(n_resamples, n_data_sets))
    return np.asarray(counts / n_runs)


def _aggregates(
    values: FloatArray, replicates: FloatArray, level: float, n_runs: int
) -> list[Aggregate]:
    """Return each statistic with the percentile interval of its replicates (k, resamples)."""
    tail = (1 - check_level(level)) / 2
    bounds = np.full((2, values.size), np.nan)
    if n_runs > 1:
        bounds = quantiles(replicates, [tail, 1 - tail])
    note = "" if n_runs > 1 else _ONE_RUN
    return [
        Aggregate(value, low, high, level, replicates.shape[1], note)
        for value, low, high in zip(values.tolist(), *bounds.tolist(), strict=True)
    ]
