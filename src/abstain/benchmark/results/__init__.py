"""Results of a benchmark: tables, thresholds, curves and pictures worth a look, from a store."""

from abstain.benchmark.results.records import (
    BenchmarkResults,
    CalibrationRow,
    CurvePoints,
    Extreme,
    MethodFacts,
    ThresholdRow,
)
from abstain.benchmark.results.results import results_of
from abstain.benchmark.results.rotations import rotated_results
from abstain.benchmark.selection import Chosen

__all__ = [
    "BenchmarkResults",
    "CalibrationRow",
    "Chosen",
    "CurvePoints",
    "Extreme",
    "MethodFacts",
    "ThresholdRow",
    "results_of",
    "rotated_results",
]
