"""Runs resampled within each data set, and the chance that one method's run beats another's."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from abstain._foundation import checks
from abstain._foundation.random import generator
from abstain.inference.proportions import level_of
from abstain.typing import FloatArray, Rng

#: Numbers held at once while resampling.
_MEMORY = 2_000_000

ONE_RUN = "one run of each data set: there is nothing to tell how much other seeds would differ"


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


def improvements(
    runs: FloatArray, *, lower_is_better: bool, level: float, draws: int = 2000, rng: Rng = 0
) -> Iterator[Aggregate]:
    """Yield `probability_of_improvement` of each pair of methods, drawn once for all.

    Takes runs of shape (k, data sets, runs); the pairs come as `combinations` has them.
    """
    if len(runs) < 2:
        return
    drawn = shares_of_both(runs[0], runs[1], draws, generator(rng))
    for first, second in combinations(runs, 2):
        yield improvement(first, second, drawn, lower_is_better=lower_is_better, level=level)


def shares_of_both(
    a: FloatArray, b: FloatArray, draws: int, random: np.random.Generator
) -> list[tuple[FloatArray, FloatArray]]:
    """Draw how often each run of two methods is in each resample, part by part."""
    sizes = blocks(draws, a.size + b.size)
    return [(shares_of_runs(a, size, random), shares_of_runs(b, size, random)) for size in sizes]


def improvement(
    a: FloatArray,
    b: FloatArray,
    shares: list[tuple[FloatArray, FloatArray]],
    *,
    lower_is_better: bool,
    level: float,
) -> Aggregate:
    lead = np.sign(b[:, None, :] - a[:, :, None]) * (1.0 if lower_is_better else -1.0)
    wins = (1.0 + lead) / 2
    drawn = [np.einsum("bdi,dij,bdj->b", x, wins, y) / a.shape[0] for x, y in shares]
    few = min(a.shape[1], b.shape[1])
    return aggregate(float(wins.mean()), np.concatenate(drawn), level, few)


def blocks(draws: int, numbers: int) -> list[int]:
    """Cut the resamples into parts that fit the memory."""
    total = checks.positive_int(draws, "draws")
    step = max(1, _MEMORY // numbers)
    return [min(step, total - start) for start in range(0, total, step)]


def shares_of_runs(table: FloatArray, size: int, random: np.random.Generator) -> FloatArray:
    """Draw how often each run is in each resample, over the number of runs."""
    sets, runs = table.shape
    counts = random.multinomial(runs, np.full(runs, 1.0 / runs), size=(size, sets))
    return np.asarray(counts / runs)


def aggregate(value: float, drawn: FloatArray, level: float, runs: int) -> Aggregate:
    tail = (1 - level_of(level)) / 2
    if runs < 2:
        return Aggregate(value, float("nan"), float("nan"), level, drawn.size, ONE_RUN)
    low, high = np.quantile(drawn, [tail, 1 - tail])
    return Aggregate(value, float(low), float(high), level, drawn.size)
