"""The engine of comparison: methods on the same samples, one data set after the other, then all."""

from abstain.evaluation.comparison.across_data_sets import (
    Blocks,
    ComparisonTables,
    DataSetComparison,
    across_data,
)
from abstain.evaluation.comparison.engine import compare, compare_data, join_tables
from abstain.evaluation.comparison.estimates import mean_estimate
from abstain.evaluation.comparison.notes import block_notes, data_set_notes
from abstain.evaluation.comparison.pairs import pairs
from abstain.evaluation.comparison.plan import Plan
from abstain.evaluation.comparison.record import Comparison
from abstain.evaluation.comparison.runs import ScoredRun
from abstain.evaluation.comparison.standings import stabilities, standings
from abstain.evaluation.comparison.tables import (
    MEAN,
    AggregateRow,
    Agreement,
    Estimate,
    Improvement,
    MeanRanks,
    MethodBand,
    NonInferiorityRow,
    PairedDifference,
    Profile,
    RelationToBest,
    Stability,
    Standing,
    best_methods,
    compute_relations_to_best,
    pairs_with_best,
    sort_best_first,
)
from abstain.evaluation.comparison.values import (
    MethodValues,
    RowWeights,
    compute_values,
    resample_values,
)

__all__ = [
    "MEAN",
    "AggregateRow",
    "Agreement",
    "Blocks",
    "Comparison",
    "ComparisonTables",
    "DataSetComparison",
    "Estimate",
    "Improvement",
    "MeanRanks",
    "MethodBand",
    "MethodValues",
    "NonInferiorityRow",
    "PairedDifference",
    "Plan",
    "Profile",
    "RelationToBest",
    "RowWeights",
    "ScoredRun",
    "Stability",
    "Standing",
    "across_data",
    "best_methods",
    "block_notes",
    "compare",
    "compare_data",
    "compute_relations_to_best",
    "compute_values",
    "data_set_notes",
    "join_tables",
    "mean_estimate",
    "pairs",
    "pairs_with_best",
    "resample_values",
    "sort_best_first",
    "stabilities",
    "standings",
]
