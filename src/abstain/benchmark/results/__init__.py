"""Results of a benchmark: tables, thresholds, curves and pictures worth a look, from a store."""

from abstain.benchmark.results.published import PublishedNumber, PublishedOrder
from abstain.benchmark.results.records import (
    BenchmarkResults,
    CalibrationRow,
    CurvePoints,
    Extreme,
    MethodFacts,
    ThresholdRow,
)
from abstain.benchmark.results.results import results_of, with_published
from abstain.benchmark.results.rotations import rotated_results
from abstain.benchmark.selection import Chosen

__all__ = [
    "BenchmarkResults",
    "CalibrationRow",
    "Chosen",
    "CurvePoints",
    "Extreme",
    "MethodFacts",
    "PublishedNumber",
    "PublishedOrder",
    "ThresholdRow",
    "results_of",
    "rotated_results",
    "with_published",
]
