"""The curves of one score on one split, and the samples worth looking at."""

from collections.abc import Callable
from typing import Any

import numpy as np

from abstain._foundation.scored import Scored
from abstain.curves.metric_coverage import MetricCoverageCurve
from abstain.curves.reliability import ReliabilityCurve, reliability_curve
from abstain.curves.risk_coverage import curve_of
from abstain.evaluation.records import Case, Part, Sample, Split
from abstain.metrics import cwsa_sweep
from abstain.metrics.contributions import contributions_by
from abstain.predictions import Predictions
from abstain.typing import Array, FloatArray, IntArray

#: How many samples of each kind a case shows.
_SHOWN = 10
#: Thresholds of the CWSA curves, decreasing so that coverage rises.
_THRESHOLDS = np.arange(19, -1, -1) / 20


def case_of(split: Split, name: str, predictions: Predictions, s: Scored) -> Case:
    """Gather the curves and the notable samples of one score."""
    unit = s.probability is not None and s.probability.min() >= 0 and s.probability.max() <= 1
    calibrated = _calibration_curves(s) if unit and s.bounded else (None, None, None)
    return Case(
        split=split,
        score=name,
        n=s.n,
        failures=s.failures,
        risk=s.groups.risk,
        tied_share=s.groups.tied / s.n,
        selective=curve_of(s.groups, "selective"),
        generalized=curve_of(s.groups, "generalized"),
        reliability=calibrated[0],
        cwsa=calibrated[1],
        cwsa_plus=calibrated[2],
        overconfident=_samples(predictions, s, _most_confident_failures(s)),
        underconfident=_samples(predictions, s, _least_confident_successes(s)),
        by_class=_by_class(s),
        by_group=() if predictions.group is None else _parts(s, predictions.group, str),
    )


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
    p = s.confidence if s.probability is None else s.probability
    counted = p if s.weight is None else p[s.weight > 0]
    # A threshold that accepts nothing has no CWSA+.
    reached = _THRESHOLDS[float(counted.max()) >= _THRESHOLDS]
    swept = cwsa_sweep(p, s.loss, thresholds=reached, weight=s.weight)
    drawn = [
        MetricCoverageCurve(name, swept.threshold, swept.coverage, value, swept.accepted)
        for name, value in (("cwsa", swept.cwsa), ("cwsa_plus", swept.cwsa_plus))
    ]
    return reliability_curve(p, s.loss, weight=s.weight), drawn[0], drawn[1]


def _most_confident_failures(s: Scored) -> IntArray:
    wrong = np.flatnonzero(s.loss > 0)
    return _top(wrong, -s.confidence[wrong].astype(np.float64))


def _least_confident_successes(s: Scored) -> IntArray:
    right = np.flatnonzero(s.loss == 0)
    return _top(right, s.confidence[right].astype(np.float64))


def _top(rows: IntArray, key: FloatArray) -> IntArray:
    """Return the rows of the smallest keys, in order; ties by row, so that it is reproducible."""
    if rows.size > _SHOWN:
        kept = np.flatnonzero(key <= np.partition(key, _SHOWN - 1)[_SHOWN - 1])
        rows, key = rows[kept], key[kept]
    return rows[np.argsort(key, kind="stable")][:_SHOWN]


def _samples(predictions: Predictions, s: Scored, rows: IntArray) -> tuple[Sample, ...]:
    confidence = s.confidence if s.probability is None else s.probability
    view = s.view
    return tuple(
        Sample(
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
