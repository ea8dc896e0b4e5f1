"""The samples worth looking at, and which classes and groups the failures come from."""

from collections.abc import Callable
from typing import Any

import numpy as np

from abstain._foundation.names import coded
from abstain._foundation.scored import Scored
from abstain.curves.risk_coverage import RiskCoverageCurve, curve_of, thin
from abstain.evaluation.records import ExtremeSample, Part
from abstain.metrics.contributions import GroupContributions, contributions_by
from abstain.predictions import Predictions
from abstain.typing import Array, IntArray

#: How many samples of each kind a case shows.
SHOWN = 24
#: How many groups a case has curves of, and of how many vertices each, at most.
DRAWN, _VERTICES = 12, 20_000


def by_class(s: Scored) -> tuple[Part, ...]:
    """Return what each class contributes to the AUGRC; nothing without classes."""
    view = s.view
    if view is None:
        return ()
    return parts_by(s, view.labels, lambda code: class_name(view.classes, int(code)))


def parts_by(s: Scored, names: Array, written: Callable[[Any], str]) -> tuple[Part, ...]:
    """Return the parts of the AUGRC, the largest first."""
    return parts_of(contributions_by(s, names), written)


def parts_of(c: GroupContributions, written: Callable[[Any], str]) -> tuple[Part, ...]:
    """Write what each name contributes, the largest part first."""
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


def curves_by(s: Scored, names: Array) -> dict[str, RiskCoverageCurve]:
    """Return the selective risk of each of the largest groups against its own coverage."""
    groups, codes = coded(names, "group")
    sizes = np.bincount(codes, minlength=len(groups))
    largest = np.sort(np.argsort(-sizes, kind="stable")[:DRAWN])
    curves = {}
    for i in largest.tolist() if len(groups) > 1 else ():
        rows = codes == i
        weight = None if s.weight is None else s.weight[rows]
        part = Scored(s.confidence[rows], s.loss[rows], weight)
        curves[str(groups[i])] = thin(curve_of(part.groups, "selective"), vertices=_VERTICES)
    return curves


def most_confident_failures(s: Scored) -> IntArray:
    """Return the rows of the most confident failures, in order."""
    wrong = np.flatnonzero(s.loss)
    return wrong[lowest(-s.confidence[wrong].astype(np.float64))]


def least_confident_successes(s: Scored) -> IntArray:
    """Return the rows of the least confident successes, in order."""
    # Nearly all samples are successes, so that one array is cheaper than to name them.
    return lowest(np.where(s.loss == 0, s.confidence, np.inf))


def lowest(key: Array) -> IntArray:
    """Return the rows of the lowest keys, in order; ties by row, so that it is reproducible.

    An infinite key is the mark of a row that is none of them.
    """
    most = key if key.size <= SHOWN else np.partition(key, SHOWN - 1)[:SHOWN]
    kept = np.flatnonzero((key <= most.max(initial=-np.inf)) & (key < np.inf))
    return kept[np.argsort(key[kept], kind="stable")][:SHOWN]


def samples_of(
    predictions: Predictions, s: Scored, rows: IntArray, at: str = ""
) -> tuple[ExtremeSample, ...]:
    """Return some samples with what a reader wants to know of them; `at` stands before names."""
    confidence = s.shown
    view = s.view
    return tuple(
        ExtremeSample(
            id=at + (str(i) if predictions.ids is None else str(predictions.ids[i])),
            label="" if view is None else class_name(view.classes, int(view.labels[i])),
            prediction="" if view is None else class_name(view.classes, int(view.prediction[i])),
            confidence=float(confidence[i]),
            loss=float(s.loss[i]),
        )
        for i in rows
    )


def class_name(classes: tuple[object, ...], code: int) -> str:
    """Write the name of a class by its code."""
    return "(no known class)" if code < 0 else str(classes[code])
