"""What is said of one data set: estimates, differences of two methods, standings."""

from dataclasses import dataclass

from abstain.typing import Split


@dataclass(frozen=True)
class Estimate:
    """One metric of one method on one data set, with its interval.

    Attributes
    ----------
    metric, method : str
        Names in the catalogue or of a confidence column.
    data : tuple of (column, value)
        The data set; empty when there is only one.
    run : str
        The run (seed, fold); "mean" for the mean over several, empty when there is one.
    value, low, high, standard_error : float
        Fractions; NaN when undefined, then `note` says why.
    level : float
        Of the interval.
    interval : str
        The form of the interval, in words.
    n, failures : int
        Samples, and those with a loss above zero (the fewest over the runs, for a mean).
    lower_is_better : bool
        The direction.
    note : str
        What to be careful about, or empty.
    """

    metric: str
    data: Split
    run: str
    method: str
    value: float
    low: float
    high: float
    standard_error: float
    level: float
    interval: str
    n: int
    failures: int
    lower_is_better: bool
    note: str = ""


@dataclass(frozen=True)
class PairedDifference:
    """Two methods on the same samples.

    Attributes
    ----------
    metric : str
        Name in the catalogue.
    data : tuple of (column, value), or None
        The data set; None for all data sets (or runs) together.
    first, second : str
        The methods; `difference` is first minus second.
    difference, low, high, standard_error : float
        In units of the metric.
    ratio, ratio_low, ratio_high : float
        First over second, NaN where that makes no sense (a value at or below zero).
    p_value, adjusted : float
        Two-sided, before and after the adjustment for the number of pairs; one-sided (first is
        better) where `test` says so.
    adjustment : str
        "holm", "bonferroni" or "none".
    test : str
        "influence function", "paired bootstrap", "permutation", "Wilcoxon across data sets",
        "Wilcoxon across runs" or "Wilcoxon on bootstrap replicates".
    superiority : float
        The chance that the first is better on data of another study of this size, ties half.
    better : str
        The method that is better at the level of the comparison after adjustment, or empty.
    valid : bool
        False for tests kept only because the literature reports them.
    note : str
        What to be careful about, or empty.
    """

    metric: str
    data: Split | None
    first: str
    second: str
    difference: float
    low: float
    high: float
    standard_error: float
    ratio: float
    ratio_low: float
    ratio_high: float
    p_value: float
    adjusted: float
    adjustment: str
    test: str
    superiority: float
    better: str
    valid: bool = True
    note: str = ""


@dataclass(frozen=True)
class Standing:
    """Where one method stands among all.

    Attributes
    ----------
    metric, method : str
        Names in the catalogue or of a confidence column.
    data : tuple of (column, value), or None
        The data set; None for all data sets together.
    value : float
        Of the metric; NaN for all data sets together.
    rank : float
        1 is best; tied values share the mean of their ranks.
    mean_rank, rank_low, rank_high : float
        Over other studies of this size, were these values the true ones: mean and central range
        at the level of the comparison.
    chances : tuple of float
        The chance of each rank, best first.
    source : str
        "influence functions", "bootstrap, rank then aggregate" or "bootstrap, aggregate then
        rank".
    """

    metric: str
    data: Split | None
    method: str
    value: float
    rank: float
    mean_rank: float
    rank_low: float
    rank_high: float
    chances: tuple[float, ...]
    source: str
