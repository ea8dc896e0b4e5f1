"""The rows of the tables of a comparison: of one data set, of all together, of two metrics."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from abstain.curves.bands import RiskCoverageBand, as_generalized
from abstain.typing import Split

#: Stands for the mean over several runs where an estimate names its run.
MEAN = "mean"

#: How a method stands to the best of its metric and data set.
RelationToBest = Literal["best", "not told apart", "worse", "untested", "undefined"]

_ADJUSTED = {"holm": "adjusted by Holm", "bonferroni": "adjusted by Bonferroni"}


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


def sort_best_first(estimates: Iterable[Estimate]) -> list[Estimate]:
    """Put the best estimate first, undefined ones last; equal ones stay as they were."""

    def key(estimate: Estimate) -> tuple[bool, float]:
        value = estimate.value if estimate.lower_is_better else -estimate.value
        return math.isnan(value), 0.0 if math.isnan(value) else value

    return sorted(estimates, key=key)


def best_methods(estimates: Iterable[Estimate]) -> list[str]:
    """Return the methods that none betters; none where all are equal or undefined."""
    # The last digits, in which equal values differ by the order of summation, do not count.
    known = [(e.method, float(f"{e.value:.12g}")) for e in sort_best_first(estimates)]
    known = [(method, value) for method, value in known if not math.isnan(value)]
    if len({value for _, value in known}) < 2:
        return []
    return [method for method, value in known if value == known[0][1]]


@dataclass(frozen=True)
class PairedDifference:
    """Two methods on the same samples; what a test does not tell is NaN.

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
        """The test and the adjustment by which the pair was judged, in words."""
        return f"{self.test}, {_ADJUSTED.get(self.adjustment, 'not adjusted')}"


def pairs_with_best(pairs: Iterable[PairedDifference], best: str) -> dict[str, PairedDifference]:
    """Return the pair of each method and the best one; of two one-sided ones, the best's lead."""
    found: dict[str, PairedDifference] = {}
    for pair in pairs:
        if pair.first == best:
            found[pair.second] = pair
        elif pair.second == best:
            found.setdefault(pair.first, pair)
    return found


def compute_relations_to_best(
    estimates: Iterable[Estimate], pairs: Iterable[PairedDifference]
) -> dict[str, RelationToBest]:
    """Tell for each method how it stands to the best: the one place where ties are decided."""
    known = list(estimates)
    best = best_methods(known)
    tested = pairs_with_best(pairs, best[0]) if best else {}
    return {e.method: _relation_to_best(e, best, tested.get(e.method)) for e in known}


def _relation_to_best(
    estimate: Estimate, best: list[str], pair: PairedDifference | None
) -> RelationToBest:
    if math.isnan(estimate.value):
        return "undefined"
    if estimate.method in best:
        return "best"
    if pair is None or math.isnan(pair.adjusted):
        return "untested"
    return "worse" if pair.better == best[0] else "not told apart"


@dataclass(frozen=True)
class Standing:
    """Where one method stands among all; what is not known of its rank is NaN.

    Attributes
    ----------
    metric, method : str
        Names in the catalogue or of a confidence column.
    data : tuple of (column, value), or None
        The data set; None for all data sets together.
    value : float
        Of the metric; NaN for all data sets together.
    rank : float
        1 is best; tied values share the mean of their ranks, or with `ties="min"` the lowest.
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
    mean_rank: float = math.nan
    rank_low: float = math.nan
    rank_high: float = math.nan
    rank_probabilities: tuple[float, ...] = ()
    source: str = ""


# ------------------------------------------------------------------------- of several together
@dataclass(frozen=True)
class MeanRanks:
    """All methods over several data sets (or runs): Friedman's test and Nemenyi's distance.

    Attributes
    ----------
    metric : str
        Name in the catalogue.
    blocks : int
        Data sets (times runs) that each rank the methods once.
    methods : tuple of str
        Best mean rank first.
    mean_ranks : tuple of float
        In the order of `methods`.
    statistic, p_value : float
        Friedman's chi-square, ties corrected, and its p-value.
    critical_difference : float
        Mean ranks closer than this are not told apart.
    cliques : tuple of tuple of str
        The largest groups of methods that are not told apart.
    level : float
        1 - alpha.
    note : str
        What to be careful about, or empty.
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
    """How alike two metrics rank the same methods.

    Attributes
    ----------
    data : tuple of (column, value), or None
        The data set; None for the mean ranks over all.
    first, second : str
        The metrics.
    tau : float
        Kendall's tau-b of the two rankings: 1 the same order, -1 the reverse.
    low, high : float
        Central range over resamples, or over draws of the joint normal law; NaN when not computed.
    """

    data: Split | None
    first: str
    second: str
    tau: float
    low: float
    high: float


@dataclass(frozen=True)
class Stability:
    """How alike the rankings of resamples are: Kendall's tau between pairs of them."""

    metric: str
    data: Split
    mean_tau: float
    low: float
    high: float


@dataclass(frozen=True)
class NonInferiorityRow:
    """Whether a method is at most a margin worse than a reference.

    Attributes
    ----------
    metric, method, reference : str
        Names; the reference is the method that must not be lost against.
    data : tuple of (column, value)
        The data set.
    margin : float
        In units of the metric; how much worse is still acceptable.
    worse_by, bound : float
        How much worse the method is (negative when it is better), and the one-sided upper bound
        of it at the level of the comparison.
    p_value, adjusted : float
        Of the hypothesis that it is worse by the margin or more; NaN where nothing varies.
    non_inferior : bool
        Whether the adjusted p-value is below 1 - level.
    note : str
        What to be careful about, or empty.
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
    """The interquartile mean of a metric over all runs and data sets, with its interval.

    NaN ends where there is one run of each data set; `note` says what to be careful about.
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
    """The chance that a run of the first method beats a run of the second, ties half.

    NaN ends where there is one run of each data set; `note` says what to be careful about.
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
    """The share of runs whose metric is at least as good as each threshold.

    Attributes
    ----------
    metric, method : str
        Names.
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
    """The risk-coverage curves of one method on one data set, with their bands.

    A band takes longer than all else of a method, and of many methods few are looked at.
    """

    data: Split
    method: str
    #: Makes the band of the selective risk.
    compute: Callable[[], RiskCoverageBand]

    @cached_property
    def selective(self) -> RiskCoverageBand:
        """The selective risk, computed when it is first looked at."""
        return self.compute()

    @cached_property
    def generalized(self) -> RiskCoverageBand:
        """The generalized risk."""
        return as_generalized(self.selective)
