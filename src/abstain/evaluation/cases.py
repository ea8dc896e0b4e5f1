"""The curves of one score on one split, and the samples worth looking at."""

from dataclasses import replace

import numpy as np

from abstain._foundation.scored import Scored
from abstain.curves.bands import RiskCoverageBand, band_of
from abstain.curves.metric_coverage import MetricCoverageCurve
from abstain.curves.reliability import ReliabilityCurve, reliability_of
from abstain.curves.risk_coverage import curve_of, thin
from abstain.evaluation.records import Case
from abstain.evaluation.uncertainty import EvaluatedPart
from abstain.metrics.confidence_weighted.areas import sweep_of

#: Vertices of a curve at most. A page draws up to 400 of them, whose steps of coverage these are
#: parts of: it draws the same as from all, but for coverages on the very end of a step.
_VERTICES = 20_000
#: Thresholds of the CWSA curves, decreasing so that coverage rises.
_THRESHOLDS = np.arange(19, -1, -1) / 20
#: Coverages of the bands: denser where few samples are accepted and the band bends.
_COVERAGES = np.concatenate(([0.005, 0.01, 0.015], np.arange(2, 10) / 100, np.arange(5, 51) / 50))
#: Clusters cost a pass over the samples for each coverage: above this many steps it takes fewer.
_STEPS = 10_000_000


def case_of(part: EvaluatedPart) -> Case:
    """Gather the curves and the notable samples of one score."""
    s, sure = part.s, part.sure
    calibrated = _calibration_curves(sure) if sure.calibrated else (None, None, None)
    selective = thin(curve_of(s.groups, "selective"), vertices=_VERTICES)
    return Case(
        split=part.split,
        score=part.score,
        n=s.samples,
        failures=s.failures,
        risk=s.merged_groups.risk,
        tied_share=s.merged_groups.tied / s.samples,
        selective=selective,
        generalized=replace(
            selective, kind="generalized", risk=selective.failures / selective.total
        ),
        reliability=calibrated[0],
        cwsa=calibrated[1],
        cwsa_plus=calibrated[2],
        overconfident=part.overconfident,
        underconfident=part.underconfident,
        by_class=part.by_class,
        by_group=part.by_group,
        own=part.own,
        band=None if part.how.kind == "none" else _band(part),
        of_groups=part.of_groups,
    )


def _band(part: EvaluatedPart) -> RiskCoverageBand:
    """Return the band of the selective risk; that of the generalized risk follows from it."""
    s, cluster, how = part.s, part.cluster, part.how
    coarse = cluster is not None and s.samples * _COVERAGES.size > _STEPS
    coverage = _COVERAGES[2::3] if coarse else _COVERAGES
    # Below the first whole sample there is nothing to say.
    kept = coverage[coverage >= min(1.0, 1 / s.merged_groups.n)]
    return band_of(s, "selective", level=how.level, coverage=kept, cluster=cluster, rng=how.seed)


def _calibration_curves(
    s: Scored,
) -> tuple[ReliabilityCurve, MetricCoverageCurve, MetricCoverageCurve]:
    """Reliability, and CWSA and CWSA+ against coverage."""
    # A threshold that accepts nothing has no CWSA+.
    reached = _THRESHOLDS[float(s.probability_groups.confidence[0]) >= _THRESHOLDS]
    swept = sweep_of(s, reached)
    drawn = [
        MetricCoverageCurve(name, swept.threshold, swept.coverage, value, swept.accepted)
        for name, value in (("cwsa", swept.cwsa), ("cwsa_plus", swept.cwsa_plus))
    ]
    reliability = reliability_of(s, 15, "equal_width")
    return reliability, drawn[0], drawn[1]
