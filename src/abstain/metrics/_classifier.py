"""The classifier's own metrics from a class view; the public names are in `classifier`."""

from abstain._foundation.arrays import namespace
from abstain._foundation.foreign import double
from abstain._foundation.scored import ClassView, Measured, undefined
from abstain._foundation.segments import sums_by
from abstain.metrics._views import (
    is_class,
    log_likelihood,
    probabilities_of,
    rows_of,
    weighted_mean,
)
from abstain.typing import FloatArray, IntArray


def accuracy_of(view: ClassView, weight: FloatArray | None) -> Measured:
    """Share of right predictions."""
    right = (view.prediction == view.labels) & (view.labels >= 0)
    return Measured(weighted_mean(double(right), weight))


def balanced_accuracy_of(view: ClassView, weight: FloatArray | None) -> Measured:
    """Mean over the classes that occur of the share of each that is right."""
    known = view.labels >= 0
    truth = view.labels[known]
    right = double(view.prediction[known] == truth)
    w = namespace(right).ones_like(right) if weight is None else weight[known]
    if not float(namespace(w).sum(w)) > 0:
        return undefined("no sample has a known class")
    classes = int(namespace(truth).max(truth)) + 1
    total = sums_by(truth, w, classes)
    there = total > 0
    recall = sums_by(truth, w * right, classes)[there] / total[there]
    return Measured(float(namespace(recall).mean(recall)))


def nll_of(view: ClassView, weight: FloatArray | None) -> Measured:
    """Mean negative log-probability of the true classes."""
    view, weight = _with_weight(view, weight)
    if unknown := _unknown(view.labels):
        return undefined(unknown)
    log_p = log_likelihood(view)
    impossible = int(namespace(log_p).count_nonzero(log_p == -float("inf")))
    if impossible:
        return undefined(f"it is infinite: {impossible} true classes have probability 0")
    return Measured(weighted_mean(-log_p, weight))


def _with_weight(view: ClassView, weight: FloatArray | None) -> tuple[ClassView, FloatArray | None]:
    """Return the samples that have weight, with it."""
    if weight is None or bool(namespace(weight).all(weight > 0)):
        return view, weight
    return rows_of(view, weight > 0), weight[weight > 0]


def _unknown(labels: IntArray) -> str:
    count = int(namespace(labels).count_nonzero(labels < 0))
    return f"{count} samples have no known class" if count else ""


def brier_of(view: ClassView, weight: FloatArray | None) -> Measured:
    """Mean squared distance of the class probabilities from the true class."""
    view, weight = _with_weight(view, weight)
    if unknown := _unknown(view.labels):
        return undefined(unknown)
    p = double(probabilities_of(view))
    # The one of the true class is subtracted before anything is squared: small scores stay exact.
    distance = p - double(is_class(view.labels, p))
    return Measured(weighted_mean(namespace(p).sum(distance * distance, axis=1), weight))
