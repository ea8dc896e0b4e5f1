"""Joins predictions, scores and metrics; the only place that knows all three."""

from abstain.evaluation.compare import compare as compare
from abstain.evaluation.comparison import Comparison as Comparison
from abstain.evaluation.evaluate import evaluate as evaluate
from abstain.evaluation.records import Case as Case
from abstain.evaluation.records import Evaluation as Evaluation
from abstain.evaluation.records import Finding as Finding
from abstain.evaluation.records import Part as Part
from abstain.evaluation.records import Result as Result
from abstain.evaluation.records import Sample as Sample
from abstain.typing import Split as Split

__all__ = [
    "Case",
    "Comparison",
    "Evaluation",
    "Finding",
    "Part",
    "Result",
    "Sample",
    "Split",
    "compare",
    "evaluate",
]
