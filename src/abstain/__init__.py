"""Measure classifiers that may refuse to answer.

Everything after the confidence score needs only ``confidence (n,)`` and ``loss (n,)``:

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

#: The packages that have names of their own to offer.
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

#: Those that draw, train or watch, which `from abstain import *` does not load.
_HEAVY = ("monitoring", "plots", "report", "training")

#: Whose names are public here too, as all of `metrics` are.
_LIFTED = {
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
#: Names that other packages use too; `from abstain import *` leaves them in `abstain.metrics`.
_OF_METRICS = frozenset({"Metric", "Need"})


def __dir__() -> list[str]:
    """List also what waits to be asked for, and nothing that this file only uses."""
    own = {name for name in globals() if name.startswith("__") or not name.startswith("_")}
    used = {"Any", "TYPE_CHECKING", "import_module"}
    return sorted({*own - used - _OF_METRICS, *_HEAVY, *__getattr__("__all__")})


def __getattr__(name: str) -> Any:
    """Load what is asked for: a program that needs one metric waits for no reader of files."""
    if name in _PACKAGES or name in _HEAVY:
        return import_module(f"abstain.{name}")
    if name == "__all__":
        of_metrics = {*import_module("abstain.metrics").__all__} - _OF_METRICS
        return sorted(of_metrics.union(_PACKAGES, *_LIFTED.values()))
    home = next((package for package, names in _LIFTED.items() if name in names), "metrics")
    where = None if name.startswith("_") else import_module(f"abstain.{home}")
    if where is None or name not in where.__all__:
        raise AttributeError(f"module 'abstain' has no attribute {name!r}")
    # Found at once the next time.
    globals()[name] = getattr(where, name)
    return globals()[name]
