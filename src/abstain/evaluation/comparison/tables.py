"""Rows of the tables of a comparison."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from abstain.curves.bands import RiskCoverageBand, as_generalized
from abstain.typing import Split

#: Name of the run of an estimate that is the mean over several runs.
MEAN = "mean"

#: Relation of a method to the best method by the same metric on the same data set.
RelationToBest = Literal["best", "not told apart", "worse", "untested", "undefined"]

_ADJUSTED = {"holm": "adjusted by Holm", "bonferroni": "adjusted by Bonferroni"}


@dataclass(frozen=True)
class Estimate:
    """One metric of one method on one data set, with its interval.

    Attributes
    ----------
    metric, method : str
        Names of the metric, and of the score or confidence column.
    data : tuple of (column, value)
        The data set; empty if there is only one.
    run : str
        The run (seed, fold); "mean" for the mean over several runs, empty if there is one.
    value, low, high, standard_error : float
        Fractions; NaN if undefined for the reason in `note`.
    level : float
        Confidence level of the interval.
    interval : str
        Method of the interval.
    n, failures : int
        Number of samples, and of samples with a loss above zero. For a mean: the minimum over the
        runs.
    lower_is_better : bool
        Direction of the metric.
    note : str
        Warning about the interval, or empty.
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
    """Sort estimates from best to worst; undefined values come last and ties keep their order."""

    def key(estimate: Estimate) -> tuple[bool, float]:
        value = estimate.value if estimate.lower_is_better else -estimate.value
        return math.isnan(value), 0.0 if math.isnan(value) else value

    return sorted(estimates, key=key)


def best_methods(estimates: Iterable[Estimate]) -> list[str]:
    """Return the methods with the best value; empty if all values are equal or undefined."""
    # Values are rounded, because equal values may differ in their last digits.
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
    """Difference between two methods on the same samples; NaN for unavailable numbers.

    Attributes
    ----------
    metric : str
        Name of the metric.
    data : tuple of (column, value), or None
        The data set; None for all data sets (or runs) together.
    first, second : str
        The methods; `difference` is first minus second.
    difference, low, high, standard_error : float
        In units of the metric.
    ratio, ratio_low, ratio_high : float
        First divided by second; NaN if a value is zero or negative.
    p_value, adjusted : float
        Two-sided p-values before and after the adjustment for the number of pairs. One-sided (first
        is better) for Wilcoxon's test on bootstrap replicates.
    adjustment : str
        "holm", "bonferroni" or "none".
    test : str
        "influence function", "paired bootstrap", "permutation", "Wilcoxon across data sets",
        "Wilcoxon across runs" or "Wilcoxon on bootstrap replicates".
    superiority : float
        Probability that the first method is better on new data of this size; ties count half.
    better : str
        The significantly better method, or empty.
    valid : bool
        False for tests that are only computed because published comparisons use them.
    note : str
        Warning about the test, or empty.
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
        """The test and the adjustment as text."""
        return f"{self.test}, {_ADJUSTED.get(self.adjustment, 'not adjusted')}"


def pairs_with_best(pairs: Iterable[PairedDifference], best: str) -> dict[str, PairedDifference]:
    """Return the pair of each method with the best one, preferably with the best one first."""
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
    """Return the relation of each method to the best one; only this function decides on ties."""
    all_estimates = list(estimates)
    best = best_methods(all_estimates)
    pairs_by_method = pairs_with_best(pairs, best[0]) if best else {}
    relations: dict[str, RelationToBest] = {}
    for estimate in all_estimates:
        pair = pairs_by_method.get(estimate.method)
        if math.isnan(estimate.value):
            relation: RelationToBest = "undefined"
        elif estimate.method in best:
            relation = "best"
        elif pair is None or math.isnan(pair.adjusted):
            relation = "untested"
        else:
            relation = "worse" if pair.better == best[0] else "not told apart"
        relations[estimate.method] = relation
    return relations


#: Conclusion of the test of a method against the reference.
Conclusion = Literal[
    "reference",
    "significantly better",
    "not significantly different",
    "significantly worse",
    "not tested",
]


@dataclass(frozen=True)
class SummaryRow:
    """One method: its value, its difference from the reference, its rank and the conclusion.

    Attributes
    ----------
    metric, method : str
        Names of the metric, and of the score or confidence column.
    data : tuple of (column, value), or None
        The data set; None for all data sets (or runs) together, where values are means.
    reference : str
        The method that `compare` was given as `reference`; without one, the best method.
    value, low, high, level : float
        The estimate, and the bounds and level of its interval.
    difference : float
        Value of the method minus value of the reference.
    difference_low, difference_high, difference_level : float
        Interval of the difference at the level at which the test of this row is decided, such as
        1 - 0.05/64 for the smallest of 64 p-values. It excludes 0 if and only if the difference is
        significant. NaN if the test has no interval. These intervals are not simultaneous.
    p_value, adjusted : float
        Two-sided p-values before and after the adjustment for `n_tests`.
    n_tests : int
        Number of comparisons that the p-value is adjusted for: k - 1 with a specified reference,
        all k(k - 1)/2 pairs without one.
    rank_low, rank_high : float
        Ranks that the significant differences do not exclude: 1 + the number of significantly
        better methods, and k minus the number of significantly worse ones.
    conclusion : str
        "significantly better", "not significantly different" or "significantly worse" than the
        reference, "reference", or "not tested".
    test : str
        The test, as in `PairedDifference`.
    lower_is_better : bool
        Direction of the metric.
    note : str
        Warning about the interval, or the reason of a missing test; may be empty.
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
    """The rank of one method; NaN for unknown numbers.

    Attributes
    ----------
    metric, method : str
        Names of the metric, and of the score or confidence column.
    data : tuple of (column, value), or None
        The data set; None for all data sets together.
    value : float
        Value of the metric; NaN for all data sets together.
    rank : float
        1 is best; ties share the mean of their ranks, or with ``ties="min"`` the lowest.
    mean_rank, rank_low, rank_high : float
        Mean and central range of the rank over new data of this size, at the level of the
        comparison. They assume that these values are the true ones.
    rank_probabilities : tuple of float
        Probability of each rank, beginning with rank 1.
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
    """Mean ranks over several data sets (or runs), with Friedman's and Nemenyi's tests.

    Attributes
    ----------
    metric : str
        Name of the metric.
    blocks : int
        Number of data sets or runs that each rank the methods once.
    methods : tuple of str
        Sorted by mean rank, the best first.
    mean_ranks : tuple of float
        In the order of `methods`.
    statistic, p_value : float
        Friedman's chi-square with correction for ties, and its p-value.
    critical_difference : float
        Methods with a smaller difference of mean ranks are not significantly different.
    cliques : tuple of tuple of str
        The largest groups of methods without significant differences.
    level : float
        1 - alpha.
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
        The data set; None for the mean ranks over all.
    first, second : str
        The metrics.
    tau : float
        Kendall's tau-b of the two rankings: 1 for the same order, -1 for the reverse order.
    low, high : float
        Central range over resamples, or over draws from the joint normal distribution; NaN if not
        computed.
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
    """Test that a method is at most a margin worse than a reference.

    Attributes
    ----------
    metric, method, reference : str
        Names of the metric, the method and the reference method.
    data : tuple of (column, value)
        The data set.
    margin : float
        The largest acceptable disadvantage, in units of the metric.
    worse_by, bound : float
        Disadvantage of the method (negative if it is better), and its one-sided upper confidence
        bound.
    p_value, adjusted : float
        p-values of the hypothesis that the disadvantage is at least the margin; NaN without
        variation.
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

    The bounds are NaN if there is one run per data set; `note` contains warnings.
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
    """Probability that a run of the first method is better than one of the second, ties half.

    The bounds are NaN if there is one run per data set; `note` contains warnings.
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
        One entry for each point of the profile; the band is pointwise.
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

    Bands are computed on first access, because their computation is slow.
    """

    data: Split
    method: str
    #: Computes the band of the selective risk.
    compute: Callable[[], RiskCoverageBand]

    @cached_property
    def selective(self) -> RiskCoverageBand:
        """The band of the selective risk, computed on first access."""
        return self.compute()

    @cached_property
    def generalized(self) -> RiskCoverageBand:
        """The band of the generalized risk."""
        return as_generalized(self.selective)
