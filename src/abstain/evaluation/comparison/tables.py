"""Define the types of the rows in the tables of a comparison."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from abstain.curves.bands import RiskCoverageBand, as_generalized
from abstain.typing import Split

#: Value of `run` in an estimate that is the mean over several runs.
MEAN = "mean"

#: Relation of a method to the best method by the same metric on the same data set.
RelationToBest = Literal["best", "not told apart", "worse", "untested", "undefined"]

_ADJUSTED = {"holm": "adjusted by Holm", "bonferroni": "adjusted by Bonferroni"}


@dataclass(frozen=True)
class Estimate:
    """The value of one metric for one method on one data set, with its interval.

    Attributes
    ----------
    metric, method : str
        Name of the metric, and name of the score or confidence column.
    data : tuple of (column, value)
        The data set, or an empty tuple if there is a single data set.
    run : str
        The run, such as a seed or a fold. The run is "mean" for the mean over several runs, and an
        empty string if there is a single run.
    value, low, high, standard_error : float
        The value, the bounds of the interval, and the standard error, as fractions. Undefined
        numbers are NaN, and `note` states the reason.
    level : float
        Confidence level of the interval.
    interval : str
        Method by which the interval was computed.
    n, failures : int
        Number of samples, and number of samples with a loss above zero. In the row of a mean over
        runs, each count is the minimum over the runs.
    lower_is_better : bool
        Whether lower values of the metric are better.
    note : str
        Warning about the interval, or an empty string.
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


def sort_best_first(estimates: Iterable[Estimate]) -> list[Estimate]:
    """Return the estimates sorted from best to worst; undefined values come last."""

    def key(estimate: Estimate) -> tuple[bool, float]:
        value = estimate.value if estimate.lower_is_better else -estimate.value
        return math.isnan(value), 0.0 if math.isnan(value) else value

    return sorted(estimates, key=key)


def best_methods(estimates: Iterable[Estimate]) -> list[str]:
    """Return the methods with the best value, or none if all values are equal or undefined."""
    # Values are rounded, because equal values may differ by rounding errors.
    values = {
        e.method: float(f"{e.value:.12g}")
        for e in sort_best_first(estimates)
        if not math.isnan(e.value)
    }
    if len(set(values.values())) < 2:
        return []
    best_value = next(iter(values.values()))
    return [method for method, value in values.items() if value == best_value]


@dataclass(frozen=True)
class PairedDifference:
    """The difference between two methods on the same samples. Unavailable numbers are NaN.

    Attributes
    ----------
    metric : str
        Name of the metric.
    data : tuple of (column, value), or None
        The data set, or None for all data sets or runs together.
    first, second : str
        Names of the two methods.
    difference, low, high, standard_error : float
        The value of the first method minus the value of the second method, the bounds of the
        interval, and the standard error, in units of the metric.
    ratio, ratio_low, ratio_high : float
        The value of the first method divided by the value of the second method, and the bounds of
        the interval. The ratio is NaN if one of the two values is zero or negative.
    p_value, adjusted : float
        Two-sided p-values before and after the adjustment for the number of pairs. For Wilcoxon's
        test on bootstrap replicates, the p-values are one-sided for the alternative that the first
        method is better.
    adjustment : str
        "holm", "bonferroni" or "none".
    test : str
        "influence function", "paired bootstrap", "permutation", "Wilcoxon across data sets",
        "Wilcoxon across runs" or "Wilcoxon on bootstrap replicates".
    superiority : float
        Probability that the first method is better on new data of this size. Ties count half.
    better : str
        The significantly better method, or an empty string.
    valid : bool
        Whether the test is valid. Invalid tests are only computed to reproduce published
        comparisons.
    note : str
        Warning about the test, or an empty string.
    """

    metric: str
    data: Split | None
    first: str
    second: str
    difference: float
    low: float = math.nan
    high: float = math.nan
    standard_error: float = math.nan
    ratio: float = math.nan
    ratio_low: float = math.nan
    ratio_high: float = math.nan
    p_value: float = math.nan
    adjusted: float = math.nan
    adjustment: str = ""
    test: str = ""
    superiority: float = math.nan
    better: str = ""
    valid: bool = True
    note: str = ""

    @property
    def test_description(self) -> str:
        """Text that names the test and the adjustment of the p-value."""
        return f"{self.test}, {_ADJUSTED.get(self.adjustment, 'not adjusted')}"


def pairs_with_best(pairs: Iterable[PairedDifference], best: str) -> dict[str, PairedDifference]:
    """Return the difference of each method from the best method.

    If a pair is tested in both directions, the result contains the test in which the best method
    is the first method.
    """
    pairs_by_method: dict[str, PairedDifference] = {}
    for pair in pairs:
        if pair.first == best:
            pairs_by_method[pair.second] = pair
        elif pair.second == best:
            pairs_by_method.setdefault(pair.first, pair)
    return pairs_by_method


def compute_relations_to_best(
    estimates: Iterable[Estimate], pairs: Iterable[PairedDifference]
) -> dict[str, RelationToBest]:
    """Return whether each method is the best, tied with the best, or significantly worse."""
    all_estimates = list(estimates)
    best = best_methods(all_estimates)
    pairs_by_method = pairs_with_best(pairs, best[0]) if best else {}
    relations: dict[str, RelationToBest] = {}
    for estimate in all_estimates:
        method = estimate.method
        pair = pairs_by_method.get(method)
        if math.isnan(estimate.value):
            relations[method] = "undefined"
        elif method in best:
            relations[method] = "best"
        elif pair is None or math.isnan(pair.adjusted):
            relations[method] = "untested"
        elif pair.better == best[0]:
            relations[method] = "worse"
        else:
            relations[method] = "not told apart"
    return relations


#: Conclusion from the test of a method against the reference.
Conclusion = Literal[
    "reference",
    "significantly better",
    "not significantly different",
    "significantly worse",
    "not tested",
]


@dataclass(frozen=True)
class SummaryRow:
    """The summary of one method by one metric: its difference from the reference and its rank.

    Attributes
    ----------
    metric, method : str
        Name of the metric, and name of the score or confidence column.
    data : tuple of (column, value), or None
        The data set. If the row summarizes all data sets or runs, the data set is None and the
        values are means.
    reference : str
        The argument `reference` of `compare`, or the best method if no reference was passed.
    value, low, high, level : float
        The estimate, and the bounds and level of its interval.
    difference : float
        Value of the method minus value of the reference.
    difference_low, difference_high, difference_level : float
        Interval of the difference and its level. The level corresponds to the adjusted test, so
        the interval excludes 0 if and only if the difference is significant. For example, the
        level is 1 - 0.05/64 for the smallest of 64 p-values. The bounds are NaN if the test has no
        interval. The probability that several intervals hold jointly is lower than their level.
    p_value, adjusted : float
        Two-sided p-values before and after the adjustment for `n_tests`.
    n_tests : int
        Number of comparisons for which the p-value is adjusted. For k methods, the number is k - 1
        if a reference is specified, and k(k - 1)/2 otherwise.
    rank_low, rank_high : float
        Bounds of the rank. The lower bound is 1 plus the number of significantly better methods.
        The upper bound is the number of methods minus the number of significantly worse methods.
    conclusion : str
        "significantly better", "not significantly different" or "significantly worse" than the
        reference, "reference", or "not tested".
    test : str
        The test, as in `PairedDifference`.
    lower_is_better : bool
        Whether lower values of the metric are better.
    note : str
        Warning about the interval, reason for a missing test, or an empty string.
    """

    metric: str
    data: Split | None
    method: str
    reference: str
    value: float
    low: float
    high: float
    level: float
    difference: float
    difference_low: float = math.nan
    difference_high: float = math.nan
    difference_level: float = math.nan
    p_value: float = math.nan
    adjusted: float = math.nan
    n_tests: int = 0
    rank_low: float = math.nan
    rank_high: float = math.nan
    conclusion: Conclusion = "not tested"
    test: str = ""
    lower_is_better: bool = True
    note: str = ""


@dataclass(frozen=True)
class Standing:
    """The rank of one method by one metric; undefined numbers are NaN.

    Attributes
    ----------
    metric, method : str
        Name of the metric, and name of the score or confidence column.
    data : tuple of (column, value), or None
        The data set, or None for all data sets together.
    value : float
        Value of the metric, or NaN for all data sets together.
    rank : float
        Rank of the method, where 1 is the best rank. Tied methods have the mean of their ranks, or
        the lowest of their ranks with ``ties="min"``.
    mean_rank, rank_low, rank_high : float
        Mean of the rank over new data sets of this size, and bounds of its central range at the
        level of the comparison.
    rank_probabilities : tuple of float
        Probability of each rank, starting with rank 1.
    source : str
        "influence functions", "bootstrap, rank then aggregate" or "bootstrap, aggregate then rank".
    """

    metric: str
    data: Split | None
    method: str
    value: float
    rank: float
    mean_rank: float = math.nan
    rank_low: float = math.nan
    rank_high: float = math.nan
    rank_probabilities: tuple[float, ...] = ()
    source: str = ""


# ------------------------------------------------------------------------- several data sets
@dataclass(frozen=True)
class MeanRanks:
    """Mean ranks of the methods over data sets or runs, with Friedman's and Nemenyi's tests.

    Attributes
    ----------
    metric : str
        Name of the metric.
    blocks : int
        Number of data sets or runs in which the methods are ranked.
    methods : tuple of str
        The methods sorted by mean rank, starting with the best.
    mean_ranks : tuple of float
        The mean ranks in the order of `methods`.
    statistic, p_value : float
        Friedman's chi-square with correction for ties, and its p-value.
    critical_difference : float
        Methods whose mean ranks differ by less than this number do not differ significantly.
    cliques : tuple of tuple of str
        The largest groups of methods without significant differences.
    level : float
        Confidence level, which is 1 - alpha.
    note : str
        Warning about the test, or empty.
    """

    metric: str
    blocks: int
    methods: tuple[str, ...]
    mean_ranks: tuple[float, ...]
    statistic: float
    p_value: float
    critical_difference: float
    cliques: tuple[tuple[str, ...], ...]
    level: float
    note: str = ""


@dataclass(frozen=True)
class Agreement:
    """Agreement of two metrics on the ranking of the methods.

    Attributes
    ----------
    data : tuple of (column, value), or None
        The data set, or None for the mean ranks over all data sets.
    first, second : str
        Names of the metrics.
    tau : float
        Kendall's tau-b of the two rankings. The value is 1 for the same order and -1 for the
        reverse order.
    low, high : float
        Central range of tau over resamples or over draws from the joint normal distribution.
        Bounds that were not computed are NaN.
    """

    data: Split | None
    first: str
    second: str
    tau: float
    low: float
    high: float


@dataclass(frozen=True)
class Stability:
    """Kendall's tau between the rankings of pairs of resamples."""

    metric: str
    data: Split
    mean_tau: float
    low: float
    high: float


@dataclass(frozen=True)
class NonInferiorityRow:
    """Test that a method is not worse than a reference by a margin (non-inferiority test).

    Attributes
    ----------
    metric, method, reference : str
        Names of the metric, the method and the reference method.
    data : tuple of (column, value)
        The data set.
    margin : float
        The largest acceptable disadvantage, in units of the metric.
    worse_by, bound : float
        Disadvantage of the method, and its one-sided upper confidence bound. The disadvantage is
        negative if the method is better than the reference.
    p_value, adjusted : float
        p-values of the hypothesis that the disadvantage is at least the margin. If the difference
        has no variation, both p-values are NaN.
    non_inferior : bool
        Whether the adjusted p-value is below 1 - level.
    note : str
        Warning about the test, or empty.
    """

    metric: str
    data: Split
    method: str
    reference: str
    margin: float
    worse_by: float
    bound: float
    p_value: float
    adjusted: float
    non_inferior: bool
    note: str = ""


@dataclass(frozen=True)
class AggregateRow:
    """Interquartile mean of a metric over all runs and data sets, with its interval.

    The bounds are NaN if there is one run per data set. Warnings are in `note`.
    """

    metric: str
    method: str
    interquartile_mean: float
    low: float
    high: float
    scores: int
    note: str = ""


@dataclass(frozen=True)
class Improvement:
    """Probability that a run of the first method is better than a run of the second method.

    The bounds are NaN if there is one run per data set. Warnings are in `note`.
    """

    metric: str
    first: str
    second: str
    probability: float
    low: float
    high: float
    note: str = ""


@dataclass(frozen=True)
class Profile:
    """Share of runs whose metric is at least as good as each threshold.

    Attributes
    ----------
    metric, method : str
        Names of the metric and the method.
    threshold, share, low, high : tuple of float
        Thresholds of the metric, share of runs at least as good as each threshold, and bounds of
        the pointwise confidence band.
    """

    metric: str
    method: str
    threshold: tuple[float, ...]
    share: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class MethodBand:
    """Risk-coverage curves of one method on one data set, with confidence bands.

    Because the bands are slow to compute, they are computed on first access.
    """

    data: Split
    method: str
    #: Function that computes the band of the selective risk.
    compute: Callable[[], RiskCoverageBand]

    @cached_property
    def selective(self) -> RiskCoverageBand:
        """The band of the selective risk."""
        return self.compute()

    @cached_property
    def generalized(self) -> RiskCoverageBand:
        """The band of the generalized risk."""
        return as_generalized(self.selective)
