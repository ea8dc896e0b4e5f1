"""The engine of comparison: methods on the same samples, one data set after the other, then all."""

from abstain.evaluation.comparison.across import Blocks, DataPart, FoundRows, across_data
from abstain.evaluation.comparison.engine import compare, compare_data, joined
from abstain.evaluation.comparison.estimates import mean_estimate
from abstain.evaluation.comparison.findings import findings_of_blocks, findings_of_data
from abstain.evaluation.comparison.pairs import pairs
from abstain.evaluation.comparison.plan import Plan
from abstain.evaluation.comparison.record import Comparison
from abstain.evaluation.comparison.rows import (
    MEAN,
    AcrossData,
    AggregateRow,
    Agreement,
    BandOf,
    Estimate,
    Footing,
    Improvement,
    NonInferiorityRow,
    PairedDifference,
    Profile,
    Stability,
    Standing,
    against,
    best_first,
    best_of,
    footings,
)
from abstain.evaluation.comparison.standings import stabilities, standings
from abstain.evaluation.comparison.units import Unit
from abstain.evaluation.comparison.variation import Sampled, SampledRows, measured, resampled

__all__ = [
    "MEAN",
    "AcrossData",
    "AggregateRow",
    "Agreement",
    "BandOf",
    "Blocks",
    "Comparison",
    "DataPart",
    "Estimate",
    "Footing",
    "FoundRows",
    "Improvement",
    "NonInferiorityRow",
    "PairedDifference",
    "Plan",
    "Profile",
    "Sampled",
    "SampledRows",
    "Stability",
    "Standing",
    "Unit",
    "across_data",
    "against",
    "best_first",
    "best_of",
    "compare",
    "compare_data",
    "findings_of_blocks",
    "findings_of_data",
    "footings",
    "joined",
    "mean_estimate",
    "measured",
    "pairs",
    "resampled",
    "stabilities",
    "standings",
]
