"""Statistical inference with influence functions, resampling, paired tests and rankings.

The functions accept arrays or callables and work with any metric. The packages `abstain.metrics`
and `abstain.evaluation` apply these functions to metrics.
"""

from typing import TYPE_CHECKING

from abstain._foundation.lazy_imports import lazy_exports

# This import is eager, because the module has the same name as its function.
from abstain.inference.non_inferiority import NonInferiority as NonInferiority
from abstain.inference.non_inferiority import non_inferiority as non_inferiority

if TYPE_CHECKING:
    from abstain.inference.aggregates import Aggregate as Aggregate
    from abstain.inference.aggregates import PerformanceProfile as PerformanceProfile
    from abstain.inference.aggregates import interquartile_mean as interquartile_mean
    from abstain.inference.aggregates import performance_profile as performance_profile
    from abstain.inference.aggregates import (
        probability_of_improvement as probability_of_improvement,
    )
    from abstain.inference.bootstrap_intervals import bca as bca
    from abstain.inference.bootstrap_intervals import percentile as percentile
    from abstain.inference.bootstrap_intervals import studentized as studentized
    from abstain.inference.draws import Draws as Draws
    from abstain.inference.draws import bootstrap as bootstrap
    from abstain.inference.influence import covariance as covariance
    from abstain.inference.influence import standard_error as standard_error
    from abstain.inference.intervals import Difference as Difference
    from abstain.inference.intervals import Interval as Interval
    from abstain.inference.intervals import clopper_pearson as clopper_pearson
    from abstain.inference.intervals import difference_from_influences as difference_from_influences
    from abstain.inference.intervals import interval_from_influence as interval_from_influence
    from abstain.inference.intervals import wilson as wilson
    from abstain.inference.multiplicity import adjust as adjust
    from abstain.inference.multiplicity import cliques as cliques
    from abstain.inference.multiplicity import critical_difference as critical_difference
    from abstain.inference.multiplicity import nemenyi as nemenyi
    from abstain.inference.paired import BootstrapDifference as BootstrapDifference
    from abstain.inference.paired import bootstrap_difference as bootstrap_difference
    from abstain.inference.paired import wilcoxon_on_replicates as wilcoxon_on_replicates
    from abstain.inference.permutation import PermutationResult as PermutationResult
    from abstain.inference.permutation import permutation_test as permutation_test
    from abstain.inference.permutation import permutation_test_by_ranks as permutation_test_by_ranks
    from abstain.inference.rank_tests import FriedmanResult as FriedmanResult
    from abstain.inference.rank_tests import WilcoxonResult as WilcoxonResult
    from abstain.inference.rank_tests import friedman as friedman
    from abstain.inference.rank_tests import pairwise_wilcoxon as pairwise_wilcoxon
    from abstain.inference.rank_tests import wilcoxon as wilcoxon
    from abstain.inference.ranking import expected_ranks as expected_ranks
    from abstain.inference.ranking import rank_probabilities as rank_probabilities
    from abstain.inference.ranking import ranks as ranks
    from abstain.inference.ranking import superiority as superiority
    from abstain.inference.resampled_ranks import AggregatedRanking as AggregatedRanking
    from abstain.inference.resampled_ranks import RankSummary as RankSummary
    from abstain.inference.resampled_ranks import TauSummary as TauSummary
    from abstain.inference.resampled_ranks import aggregate_then_rank as aggregate_then_rank
    from abstain.inference.resampled_ranks import agreement as agreement
    from abstain.inference.resampled_ranks import kendall as kendall
    from abstain.inference.resampled_ranks import (
        rank_probabilities_of_replicates as rank_probabilities_of_replicates,
    )
    from abstain.inference.resampled_ranks import rank_summary as rank_summary
    from abstain.inference.resampled_ranks import rank_then_aggregate as rank_then_aggregate
    from abstain.inference.resampled_ranks import stability as stability
    from abstain.inference.wager import anytime_interval as anytime_interval
else:
    __all__, __getattr__, __dir__ = lazy_exports(
        __name__,
        aggregates=(
            "Aggregate",
            "PerformanceProfile",
            "interquartile_mean",
            "performance_profile",
            "probability_of_improvement",
        ),
        bootstrap_intervals=("bca", "percentile", "studentized"),
        draws=("Draws", "bootstrap"),
        influence=("covariance", "standard_error"),
        intervals=(
            "Difference",
            "Interval",
            "clopper_pearson",
            "difference_from_influences",
            "interval_from_influence",
            "wilson",
        ),
        multiplicity=("adjust", "cliques", "critical_difference", "nemenyi"),
        non_inferiority=("NonInferiority", "non_inferiority"),
        paired=("BootstrapDifference", "bootstrap_difference", "wilcoxon_on_replicates"),
        permutation=("PermutationResult", "permutation_test", "permutation_test_by_ranks"),
        rank_tests=(
            "FriedmanResult",
            "WilcoxonResult",
            "friedman",
            "pairwise_wilcoxon",
            "wilcoxon",
        ),
        ranking=("expected_ranks", "rank_probabilities", "ranks", "superiority"),
        resampled_ranks=(
            "AggregatedRanking",
            "RankSummary",
            "TauSummary",
            "aggregate_then_rank",
            "agreement",
            "kendall",
            "rank_probabilities_of_replicates",
            "rank_summary",
            "rank_then_aggregate",
            "stability",
        ),
        wager=("anytime_interval",),
    )
