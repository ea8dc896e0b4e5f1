"""Results of a benchmark: tables, thresholds, curves and pictures worth a look, from a store."""

from abstain.benchmark.results.making import ResultOptions, results_of
from abstain.benchmark.results.records import (
    CalibrationRow,
    CurvePoints,
    Extreme,
    MethodFacts,
    ThresholdRow,
)
from abstain.benchmark.results.whole import BenchmarkResults
from abstain.benchmark.selection import Chosen

__all__ = [
    "BenchmarkResults",
    "CalibrationRow",
    "Chosen",
    "CurvePoints",
    "Extreme",
    "MethodFacts",
    "ResultOptions",
    "ThresholdRow",
    "results_of",
]
