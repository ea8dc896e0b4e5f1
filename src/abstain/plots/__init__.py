"""Figures of curves and results, drawn with matplotlib.

Each display has the methods ``.plot(ax=)``, ``.save(path)`` and ``.frame()``. The method
``.frame()`` returns the plotted data.

Displays of curves are created with ``from_predictions`` or ``from_curve``. Displays of a comparison
are created with ``from_comparison``. Displays of a decision rule or a cascade are created with
``from_checks``, and displays of a calibration with ``from_check``. `SeriesDisplay`,
`SpreadDisplay`, `SurfaceDisplay`, `AgreementDisplay` and `VerdictGridDisplay` are created directly
from numbers.

The package imports matplotlib only when a figure is drawn.
"""

from typing import TYPE_CHECKING

from abstain._foundation.lazy_imports import lazy_exports

if TYPE_CHECKING:
    from abstain.plots.across_data_sets import (
        CriticalDifferenceDisplay as CriticalDifferenceDisplay,
    )
    from abstain.plots.across_data_sets import (
        PerformanceProfileDisplay as PerformanceProfileDisplay,
    )
    from abstain.plots.agreement import AgreementDisplay as AgreementDisplay
    from abstain.plots.agreement import Pair as Pair
    from abstain.plots.bands import RiskCoverageBandDisplay as RiskCoverageBandDisplay
    from abstain.plots.calibration import CalibrationDisplay as CalibrationDisplay
    from abstain.plots.cascade import CascadeDisplay as CascadeDisplay
    from abstain.plots.cascade import CascadePathDisplay as CascadePathDisplay
    from abstain.plots.confusion import SelectiveConfusionDisplay as SelectiveConfusionDisplay
    from abstain.plots.curves import AccuracyRejectionDisplay as AccuracyRejectionDisplay
    from abstain.plots.curves import FailureRocDisplay as FailureRocDisplay
    from abstain.plots.curves import MetricCoverageDisplay as MetricCoverageDisplay
    from abstain.plots.curves import ReliabilityDisplay as ReliabilityDisplay
    from abstain.plots.curves import RetentionDisplay as RetentionDisplay
    from abstain.plots.curves import RiskCoverageDisplay as RiskCoverageDisplay
    from abstain.plots.decision_rule import DecisionRuleDisplay as DecisionRuleDisplay
    from abstain.plots.forest import ForestDisplay as ForestDisplay
    from abstain.plots.image_grid import ImageGridDisplay as ImageGridDisplay
    from abstain.plots.image_grid import LabeledImage as LabeledImage
    from abstain.plots.rank_changes import RankChange as RankChange
    from abstain.plots.rank_changes import RankChangesDisplay as RankChangesDisplay
    from abstain.plots.ranks import RankBlobDisplay as RankBlobDisplay
    from abstain.plots.ranks import RankingChangeDisplay as RankingChangeDisplay
    from abstain.plots.ranks import RankingChangesDisplay as RankingChangesDisplay
    from abstain.plots.risk_excess import RiskExcessDisplay as RiskExcessDisplay
    from abstain.plots.series import Series as Series
    from abstain.plots.series import SeriesDisplay as SeriesDisplay
    from abstain.plots.significance import SignificanceMapDisplay as SignificanceMapDisplay
    from abstain.plots.significance import SignificanceMapsDisplay as SignificanceMapsDisplay
    from abstain.plots.spread import SpreadDisplay as SpreadDisplay
    from abstain.plots.spread import SpreadValues as SpreadValues
    from abstain.plots.surface import SurfaceDisplay as SurfaceDisplay
    from abstain.plots.verdict_grid import VerdictGridDisplay as VerdictGridDisplay
else:
    __all__, __getattr__, __dir__ = lazy_exports(
        __name__,
        across_data_sets=("CriticalDifferenceDisplay", "PerformanceProfileDisplay"),
        agreement=("AgreementDisplay", "Pair"),
        bands=("RiskCoverageBandDisplay",),
        calibration=("CalibrationDisplay",),
        cascade=("CascadeDisplay", "CascadePathDisplay"),
        confusion=("SelectiveConfusionDisplay",),
        curves=(
            "AccuracyRejectionDisplay",
            "FailureRocDisplay",
            "MetricCoverageDisplay",
            "ReliabilityDisplay",
            "RetentionDisplay",
            "RiskCoverageDisplay",
        ),
        decision_rule=("DecisionRuleDisplay",),
        forest=("ForestDisplay",),
        image_grid=("ImageGridDisplay", "LabeledImage"),
        rank_changes=("RankChange", "RankChangesDisplay"),
        ranks=("RankBlobDisplay", "RankingChangeDisplay", "RankingChangesDisplay"),
        risk_excess=("RiskExcessDisplay",),
        series=("Series", "SeriesDisplay"),
        significance=("SignificanceMapDisplay", "SignificanceMapsDisplay"),
        spread=("SpreadValues", "SpreadDisplay"),
        surface=("SurfaceDisplay",),
        verdict_grid=("VerdictGridDisplay",),
    )
