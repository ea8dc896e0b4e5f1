"""The curves of one score on one split, and the samples worth looking at."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from abstain._foundation.scored import Scored
from abstain.curves.bands import RiskCoverageBand, band_of
from abstain.curves.metric_coverage import MetricCoverageCurve
from abstain.curves.reliability import ReliabilityCurve, reliability_of
from abstain.curves.risk_coverage import curve_of, thin
from abstain.evaluation.records import Case, ExtremeSample, Part
from abstain.evaluation.uncertainty import ScoredPart
from abstain.metrics.confidence_weighted.sweep import sweep_of
from abstain.metrics.contributions import contributions_by
from abstain.predictions import Predictions
from abstain.typing import Array, IntArray

#: How many samples of each kind a case shows.
_SHOWN = 10
#: Vertices of a curve at most. A page draws up to 400 of them, whose steps of coverage these are
#: parts of: it draws the same as from all, but for coverages on the very end of a step.
_VERTICES = 20_000
#: Thresholds of the CWSA curves, decreasing so that coverage rises.
_THRESHOLDS = np.arange(19, -1, -1) / 20
#: Coverages of the bands: denser where few samples are accepted and the band bends.
_COVERAGES = np.concatenate(([0.005, 0.01, 0.015], np.arange(2, 10) / 100, np.arange(5, 51) / 50))
#: Clusters cost a pass over the samples for each coverage: above this many steps it takes fewer.
_STEPS = 10_000_000


def case_of(part: ScoredPart) -> Case:
    """Gather the curves and the notable samples of one score."""
    predictions, s = part.predictions, part.s
    calibrated = _calibration_curves(s) if s.calibrated else (None, None, None)
    selective = thin(curve_of(s.groups, "selective"), vertices=_VERTICES)
    return Case(
        split=part.split,
        score=part.score,
        n=s.n,
        failures=s.failures,
        risk=s.events.risk,
        tied_share=s.events.tied / s.n,
        selective=selective,
        generalized=replace(
            selective, kind="generalized", risk=selective.failures / selective.total
        ),
        reliability=calibrated[0],
        cwsa=calibrated[1],
        cwsa_plus=calibrated[2],
        overconfident=_samples(predictions, s, _most_confident_failures(s)),
        underconfident=_samples(predictions, s, _least_confident_successes(s)),
        by_class=_by_class(s),
        by_group=() if predictions.group is None else _parts(s, predictions.group, str),
        own=part.own,
        band=None if part.how.kind == "none" else _band(part),
    )


def _band(part: ScoredPart) -> RiskCoverageBand:
    """Return the band of the selective risk; that of the generalized risk follows from it."""
    s, cluster, how = part.s, part.cluster, part.how
    coarse = cluster is not None and s.n * _COVERAGES.size > _STEPS
    coverage = _COVERAGES[2::3] if coarse else _COVERAGES
    # Below the first whole sample there is nothing to say.
    kept = coverage[coverage >= min(1.0, 1 / s.events.n)]
    return band_of(s, "selective", level=how.level, coverage=kept, cluster=cluster, rng=how.seed)


def _by_class(s: Scored) -> tuple[Part, ...]:
    view = s.view
    if view is None:
        return ()
    return _parts(s, view.labels, lambda code: _class_name(view.classes, int(code)))


def _parts(s: Scored, names: Array, written: Callable[[Any], str]) -> tuple[Part, ...]:
    """Return the parts of the AUGRC, the largest first."""
    c = contributions_by(s, names)
    return tuple(
        Part(
            written(c.group[i]),
            int(c.samples[i]),
            float(c.sample_share[i]),
            float(c.contribution[i]),
            float(c.share[i]),
        )
        for i in np.argsort(-c.contribution, kind="stable")
    )


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


def _most_confident_failures(s: Scored) -> IntArray:
    wrong = np.flatnonzero(s.loss)
    return wrong[_lowest(-s.confidence[wrong].astype(np.float64))]


def _least_confident_successes(s: Scored) -> IntArray:
    # Nearly all samples are successes, so that one array is cheaper than to name them.
    return _lowest(np.where(s.loss == 0, s.confidence, np.inf))


def _lowest(key: Array) -> IntArray:
    """Return the rows of the lowest keys, in order; ties by row, so that it is reproducible.

    An infinite key is the mark of a row that is none of them.
    """
    most = key if key.size <= _SHOWN else np.partition(key, _SHOWN - 1)[:_SHOWN]
    kept = np.flatnonzero((key <= most.max(initial=-np.inf)) & (key < np.inf))
    return kept[np.argsort(key[kept], kind="stable")][:_SHOWN]


def _samples(predictions: Predictions, s: Scored, rows: IntArray) -> tuple[ExtremeSample, ...]:
    confidence = s.shown
    view = s.view
    return tuple(
        ExtremeSample(
            id=str(i) if predictions.ids is None else str(predictions.ids[i]),
            label="" if view is None else _class_name(view.classes, int(view.labels[i])),
            prediction="" if view is None else _class_name(view.classes, int(view.prediction[i])),
            confidence=float(confidence[i]),
            loss=float(s.loss[i]),
        )
        for i in rows
    )


def _class_name(classes: tuple[object, ...], code: int) -> str:
    return "(no known class)" if code < 0 else str(classes[code])
