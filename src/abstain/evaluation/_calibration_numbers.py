"""The numbers that a calibration may change, before and after it."""

from dataclasses import dataclass

import numpy as np

from abstain._foundation.scored import ClassView, Measured, Scored, undefined
from abstain.calibration import Temperature
from abstain.evaluation.calibrated import CalibratedScore
from abstain.metrics import METRICS
from abstain.predictions import Predictions
from abstain.predictions.softmax import log_softmax
from abstain.typing import Array, FloatArray

#: Catalogue metrics that are compared, and those that only a temperature can change.
_OF_CONFIDENCE = ("ece", "ece_equal_mass", "mce", "augrc")
_OF_CLASSES = ("nll", "brier")
_RANKS_ONLY = ("augrc",)


@dataclass(frozen=True)
class BeforeAfter:
    """One number before and after calibration.

    Attributes
    ----------
    metric, title : str
        The name scripts use and the one people read.
    before, after : float
        A fraction; NaN when undefined, then `reason` says why.
    reason : str
        Why a number is NaN, or empty.
    """

    metric: str
    title: str
    before: float
    after: float
    reason: str = ""


def tempered(
    calibrated: CalibratedScore, predictions: Predictions, view: ClassView | None
) -> ClassView | None:
    """Return the classes with the probabilities that a temperature gives them."""
    state, scores = calibrated.calibration, predictions.class_scores
    if view is None or scores is None or not isinstance(state, Temperature):
        return view
    log_p = log_softmax(scores.log_scores() / state.temperature)
    return ClassView(view.labels, view.prediction, view.classes, np.exp(log_p), log_p)


def numbers_of(
    before: Scored, after: Scored, calibrated: CalibratedScore
) -> tuple[BeforeAfter, ...]:
    out = []
    names = [*_OF_CONFIDENCE]
    if isinstance(calibrated.calibration, Temperature) and after.view is not None:
        names += _OF_CLASSES
    for name in names:
        metric = METRICS[name]
        known = before.probability is not None or name in _RANKS_ONLY
        first = metric.compute(before) if known else _no_probability()
        out.append(_pair(name, metric.title, first, metric.compute(after)))
    for name, title, compute in (
        ("brier_correct", "Brier score of being right", _brier),
        ("nll_correct", "NLL of being right", _nll),
    ):
        out.append(_pair(name, title, compute(before), compute(after)))
    return tuple(out)


def _pair(name: str, title: str, before: Measured, after: Measured) -> BeforeAfter:
    said = [f"{when}: {x.reason}" for when, x in (("before", before), ("after", after)) if x.reason]
    return BeforeAfter(name, title, before.value, after.value, "; ".join(said))


def _no_probability() -> Measured:
    return undefined("the score is no probability")


def _brier(s: Scored) -> Measured:
    if s.probability is None:
        return _no_probability()
    p, loss = s.probability.astype(np.float64), s.loss.astype(np.float64)
    return Measured(float(np.average((p - (1.0 - loss)) ** 2, weights=s.weight)))


def _nll(s: Scored) -> Measured:
    if s.probability is None:
        return _no_probability()
    p, loss, w = _kept(s)
    impossible = ((p == 0) & (loss < 1)) | ((p == 1) & (loss > 0))
    if impossible.any():
        count = int(impossible.sum())
        return undefined(f"it is infinite: {count} samples had probability 0 of what happened")
    # Where a probability is 0 or 1 its logarithm stands beside a factor of 0.
    inside = np.where((p == 0) | (p == 1), 0.5, p)
    terms = (1.0 - loss) * np.log(inside) + loss * np.log1p(-inside)
    return Measured(float(np.average(np.where(inside == p, -terms, 0.0), weights=w)))


def _kept(s: Scored) -> tuple[FloatArray, FloatArray, Array | None]:
    p, loss = np.asarray(s.probability, dtype=np.float64), s.loss.astype(np.float64)
    if s.weight is None:
        return p, loss, None
    kept = s.weight > 0
    return p[kept], loss[kept], s.weight[kept]
