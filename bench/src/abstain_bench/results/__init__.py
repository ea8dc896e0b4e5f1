"""Evaluate a folder of benchmark runs."""

from abstain_bench.results.published import PublishedNumber, PublishedOrder
from abstain_bench.results.records import (
    BenchmarkResults,
    CalibrationRow,
    CurvePoints,
    Extreme,
    MethodFacts,
    ThresholdRow,
)
from abstain_bench.results.results import results_of, with_published
from abstain_bench.results.rotations import rotated_results
from abstain_bench.runs.selection import SelectedSetting

__all__ = [
    "BenchmarkResults",
    "CalibrationRow",
    "CurvePoints",
    "Extreme",
    "MethodFacts",
    "PublishedNumber",
    "PublishedOrder",
    "SelectedSetting",
    "ThresholdRow",
    "results_of",
    "rotated_results",
    "with_published",
]
