"""Evaluate and compare confidence scores, and select and check decision rules."""

from typing import TYPE_CHECKING

from abstain._foundation.lazy_imports import lazy_exports
from abstain._foundation.notes import Note as Note

# The function is imported immediately, because its module has the same name.
from abstain.evaluation.evaluate import evaluate as evaluate
from abstain.typing import Split as Split

if TYPE_CHECKING:
    from abstain.evaluation.calibration import CalibratedScore as CalibratedScore
    from abstain.evaluation.calibration import CalibrationCheck as CalibrationCheck
    from abstain.evaluation.calibration import calibrate as calibrate
    from abstain.evaluation.calibration import calibration_check as calibration_check
    from abstain.evaluation.cascade import CascadeChecks as CascadeChecks
    from abstain.evaluation.cascade import check_cascade as check_cascade
    from abstain.evaluation.cascade import set_cascade as set_cascade
    from abstain.evaluation.comparison import Comparison as Comparison
    from abstain.evaluation.comparison import compare as compare
    from abstain.evaluation.density_ratios import EstimatedRatios as EstimatedRatios
    from abstain.evaluation.density_ratios import estimate_ratios as estimate_ratios
    from abstain.evaluation.posterior import PosteriorExpectation as PosteriorExpectation
    from abstain.evaluation.posterior import posterior_expectation as posterior_expectation
    from abstain.evaluation.records import Contribution as Contribution
    from abstain.evaluation.records import Evaluation as Evaluation
    from abstain.evaluation.records import ExtremeSample as ExtremeSample
    from abstain.evaluation.records import Result as Result
    from abstain.evaluation.records import ScoreCurves as ScoreCurves
    from abstain.evaluation.rules import RuleChecks as RuleChecks
    from abstain.evaluation.rules import check_rule as check_rule
    from abstain.evaluation.rules import set_threshold as set_threshold
    from abstain.evaluation.score_selection import Candidate as Candidate
    from abstain.evaluation.score_selection import SelectedScore as SelectedScore
    from abstain.evaluation.score_selection import fit_score as fit_score
    from abstain.evaluation.score_selection import select_score as select_score
    from abstain.evaluation.stream import StreamOptions as StreamOptions
else:
    __all__, __getattr__, __dir__ = lazy_exports(
        __name__,
        calibration=("CalibratedScore", "CalibrationCheck", "calibrate", "calibration_check"),
        cascade=("CascadeChecks", "check_cascade", "set_cascade"),
        comparison=("Comparison", "compare"),
        score_selection=("Candidate", "SelectedScore", "fit_score", "select_score"),
        evaluate=("evaluate",),
        posterior=("PosteriorExpectation", "posterior_expectation"),
        density_ratios=("EstimatedRatios", "estimate_ratios"),
        records=("Contribution", "Evaluation", "ExtremeSample", "Result", "ScoreCurves"),
        rules=("RuleChecks", "check_rule", "set_threshold"),
        stream=("StreamOptions",),
    )
    __all__ += ["Note", "Split"]
