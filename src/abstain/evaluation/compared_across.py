"""What is said of several data sets or runs together, and of several metrics."""

from dataclasses import dataclass

from abstain.curves.bands import RiskCoverageBand
from abstain.typing import Split


@dataclass(frozen=True)
class AcrossData:
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
class NonInferiority:
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
class Aggregate:
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
    chance: float
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
class BandOf:
    """The risk-coverage curves of one method on one data set, with their bands."""

    data: Split
    method: str
    selective: RiskCoverageBand
    generalized: RiskCoverageBand
