"""Evaluate, compare and deploy classifiers that may abstain.

All functions after the confidence score require only ``confidence (n,)`` and ``loss (n,)``:

>>> import abstain as ab
>>> ab.augrc([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1])
0.1875
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from abstain import calibration as calibration
    from abstain import confidence as confidence
    from abstain import curves as curves
    from abstain import inference as inference
    from abstain import metrics as metrics
    from abstain import monitoring as monitoring
    from abstain import plots as plots
    from abstain import report as report
    from abstain import shift as shift
    from abstain import simulate as simulate
    from abstain import thresholds as thresholds
    from abstain import training as training
    from abstain.curves import achievable_curve as achievable_curve
    from abstain.curves import generalized_risk_coverage_curve as generalized_risk_coverage_curve
    from abstain.curves import risk_coverage_curve as risk_coverage_curve
    from abstain.evaluation import CalibratedScore as CalibratedScore
    from abstain.evaluation import CalibrationCheck as CalibrationCheck
    from abstain.evaluation import CascadeChecks as CascadeChecks
    from abstain.evaluation import Comparison as Comparison
    from abstain.evaluation import EstimatedRatios as EstimatedRatios
    from abstain.evaluation import Evaluation as Evaluation
    from abstain.evaluation import PosteriorExpectation as PosteriorExpectation
    from abstain.evaluation import RuleChecks as RuleChecks
    from abstain.evaluation import SelectedScore as SelectedScore
    from abstain.evaluation import StreamOptions as StreamOptions
    from abstain.evaluation import calibrate as calibrate
    from abstain.evaluation import calibration_check as calibration_check
    from abstain.evaluation import check_cascade as check_cascade
    from abstain.evaluation import check_rule as check_rule
    from abstain.evaluation import compare as compare
    from abstain.evaluation import estimate_ratios as estimate_ratios
    from abstain.evaluation import evaluate as evaluate
    from abstain.evaluation import fit_score as fit_score
    from abstain.evaluation import posterior_expectation as posterior_expectation
    from abstain.evaluation import select_score as select_score
    from abstain.evaluation import set_cascade as set_cascade
    from abstain.evaluation import set_threshold as set_threshold
    from abstain.metrics import *  # noqa: F403  the public names of metrics are public here
    from abstain.predictions import CostMatrix as CostMatrix
    from abstain.predictions import Predictions as Predictions
    from abstain.predictions import per_sample_loss as per_sample_loss
    from abstain.tables import load as load
    from abstain.tables import read_predictions as read_predictions
    from abstain.tables import save as save
    from abstain.tables import scan_predictions as scan_predictions
    from abstain.thresholds import Cascade as Cascade
    from abstain.thresholds import DecisionRule as DecisionRule

__version__ = "0.1.0"

#: Public packages that `from abstain import *` imports.
_PACKAGES = (
    "calibration",
    "confidence",
    "curves",
    "inference",
    "metrics",
    "shift",
    "simulate",
    "thresholds",
)

#: Public packages that plot, train or monitor; `from abstain import *` does not import them.
_HEAVY_PACKAGES = ("monitoring", "plots", "report", "training")

#: Names of other packages that are also public here, as are all names of `metrics`.
_REEXPORTED = {
    "curves": ("achievable_curve", "generalized_risk_coverage_curve", "risk_coverage_curve"),
    "evaluation": (
        "CalibratedScore",
        "CalibrationCheck",
        "CascadeChecks",
        "Comparison",
        "EstimatedRatios",
        "Evaluation",
        "PosteriorExpectation",
        "RuleChecks",
        "SelectedScore",
        "StreamOptions",
        "calibrate",
        "calibration_check",
        "check_cascade",
        "check_rule",
        "compare",
        "estimate_ratios",
        "evaluate",
        "fit_score",
        "posterior_expectation",
        "select_score",
        "set_cascade",
        "set_threshold",
    ),
    "predictions": ("CostMatrix", "Predictions", "per_sample_loss"),
    "tables": ("load", "read_predictions", "save", "scan_predictions"),
    "thresholds": ("Cascade", "DecisionRule"),
}
#: Names of `abstain.metrics` that are too general for `from abstain import *`.
_GENERAL_NAMES = frozenset({"Metric", "Need"})


def __dir__() -> list[str]:
    """Return the public names, including those that are not imported yet."""
    public = {name for name in globals() if name.startswith("__") or not name.startswith("_")}
    imported = {"Any", "TYPE_CHECKING", "import_module"}
    lazy = {*_HEAVY_PACKAGES, *__getattr__("__all__")}
    return sorted((public - imported - _GENERAL_NAMES) | lazy)


def __getattr__(name: str) -> Any:
    """Import the package of a name on its first use, so that one metric loads few modules."""
    if name in _PACKAGES or name in _HEAVY_PACKAGES:
        return import_module(f"abstain.{name}")
    if name == "__all__":
        metric_names = {*import_module("abstain.metrics").__all__} - _GENERAL_NAMES
        return sorted(metric_names.union(_PACKAGES, *_REEXPORTED.values()))
    package = next((key for key, names in _REEXPORTED.items() if name in names), "metrics")
    module = None if name.startswith("_") else import_module(f"abstain.{package}")
    if module is None or name not in module.__all__:
        raise AttributeError(f"module 'abstain' has no attribute {name!r}")
    # The next access does not call this function.
    globals()[name] = getattr(module, name)
    return globals()[name]
