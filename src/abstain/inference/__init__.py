"""What chance does to numbers: influence functions, resampling, paired tests, rankings.

Takes arrays or a callable and knows no metric by name; `abstain.metrics` and
`abstain.evaluation` say which metric it is about.
"""

from abstain.inference.aggregates import (
    Aggregate,
    PerformanceProfile,
    interquartile_mean,
    performance_profile,
    probability_of_improvement,
)
from abstain.inference.agreement import TauSummary, agreement, kendall, stability
from abstain.inference.bootstrap_intervals import bca, percentile, studentized
from abstain.inference.draws import Draws, bootstrap
from abstain.inference.influence import covariance, standard_error
from abstain.inference.intervals import Difference, Interval, difference_from, interval_from
from abstain.inference.multiplicity import adjust, cliques, critical_difference, nemenyi
from abstain.inference.non_inferiority import NonInferiority, non_inferiority
from abstain.inference.paired import (
    BootstrapDifference,
    bootstrap_difference,
    wilcoxon_on_replicates,
)
from abstain.inference.permutation import PermutationResult, swap_test, swap_test_by_ranks
from abstain.inference.proportions import clopper_pearson, wilson
from abstain.inference.rank_tests import (
    FriedmanResult,
    WilcoxonResult,
    friedman,
    pairwise_wilcoxon,
    wilcoxon,
)
from abstain.inference.ranking import expected_ranks, rank_chances, ranks, superiority
from abstain.inference.resampled_ranks import (
    AggregatedRanking,
    RankSummary,
    aggregate_then_rank,
    rank_chances_of,
    rank_summary,
    rank_then_aggregate,
)

__all__ = [
    "Aggregate",
    "AggregatedRanking",
    "BootstrapDifference",
    "Difference",
    "Draws",
    "FriedmanResult",
    "Interval",
    "NonInferiority",
    "PerformanceProfile",
    "PermutationResult",
    "RankSummary",
    "TauSummary",
    "WilcoxonResult",
    "adjust",
    "aggregate_then_rank",
    "agreement",
    "bca",
    "bootstrap",
    "bootstrap_difference",
    "cliques",
    "clopper_pearson",
    "covariance",
    "critical_difference",
    "difference_from",
    "expected_ranks",
    "friedman",
    "interquartile_mean",
    "interval_from",
    "kendall",
    "nemenyi",
    "non_inferiority",
    "pairwise_wilcoxon",
    "percentile",
    "performance_profile",
    "probability_of_improvement",
    "rank_chances",
    "rank_chances_of",
    "rank_summary",
    "rank_then_aggregate",
    "ranks",
    "stability",
    "standard_error",
    "studentized",
    "superiority",
    "swap_test",
    "swap_test_by_ranks",
    "wilcoxon",
    "wilcoxon_on_replicates",
    "wilson",
]
