"""Compare methods on the same samples, first on each data set and then over all data sets."""

from abstain.evaluation.comparison.engine import compare as compare
from abstain.evaluation.comparison.engine import compare_data as compare_data
from abstain.evaluation.comparison.engine import join_tables as join_tables
from abstain.evaluation.comparison.estimates import mean_estimate as mean_estimate
from abstain.evaluation.comparison.notes import block_notes as block_notes
from abstain.evaluation.comparison.notes import data_set_notes as data_set_notes
from abstain.evaluation.comparison.pairs import pairs as pairs
from abstain.evaluation.comparison.plan import Plan as Plan
from abstain.evaluation.comparison.rankings import Blocks as Blocks
from abstain.evaluation.comparison.rankings import (
    compare_across_data_sets as compare_across_data_sets,
)
from abstain.evaluation.comparison.rankings import stabilities as stabilities
from abstain.evaluation.comparison.rankings import standings as standings
from abstain.evaluation.comparison.record import Comparison as Comparison
from abstain.evaluation.comparison.record import ComparisonTables as ComparisonTables
from abstain.evaluation.comparison.record import DataSetComparison as DataSetComparison
from abstain.evaluation.comparison.runs import ScoredRun as ScoredRun
from abstain.evaluation.comparison.runs import score_runs as score_runs
from abstain.evaluation.comparison.tables import MEAN as MEAN
from abstain.evaluation.comparison.tables import AggregateRow as AggregateRow
from abstain.evaluation.comparison.tables import Agreement as Agreement
from abstain.evaluation.comparison.tables import Estimate as Estimate
from abstain.evaluation.comparison.tables import Improvement as Improvement
from abstain.evaluation.comparison.tables import MeanRanks as MeanRanks
from abstain.evaluation.comparison.tables import MethodBand as MethodBand
from abstain.evaluation.comparison.tables import NonInferiorityRow as NonInferiorityRow
from abstain.evaluation.comparison.tables import PairedDifference as PairedDifference
from abstain.evaluation.comparison.tables import Profile as Profile
from abstain.evaluation.comparison.tables import RelationToBest as RelationToBest
from abstain.evaluation.comparison.tables import Stability as Stability
from abstain.evaluation.comparison.tables import Standing as Standing
from abstain.evaluation.comparison.tables import SummaryRow as SummaryRow
from abstain.evaluation.comparison.tables import best_methods as best_methods
from abstain.evaluation.comparison.tables import (
    compute_relations_to_best as compute_relations_to_best,
)
from abstain.evaluation.comparison.tables import pairs_with_best as pairs_with_best
from abstain.evaluation.comparison.tables import sort_best_first as sort_best_first
from abstain.evaluation.comparison.values import MethodValues as MethodValues
from abstain.evaluation.comparison.values import RowWeights as RowWeights
from abstain.evaluation.comparison.values import compute_values as compute_values
from abstain.evaluation.comparison.values import resample_values as resample_values
