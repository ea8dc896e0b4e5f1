"""Labels, predictions and class probabilities: validated at the public edge, read by metrics."""

import numpy as np

from abstain._foundation import checks
from abstain._foundation.scored import ClassView, Scored
from abstain.errors import MissingInputError
from abstain.predictions.outputs import class_scores
from abstain.typing import AnyArray, FloatArray, IntArray


def view_of(s: Scored) -> ClassView:
    """Return the class view of a `Scored` that meets `Need.CLASSES`."""
    if s.view is None:
        msg = "labels and predictions are needed; got a confidence and a loss only"
        raise MissingInputError(msg)
    return s.view


def probabilities_of(view: ClassView) -> FloatArray:
    """Return class probabilities (n, K) of a view that meets `Need.PROBABILITIES`."""
    if view.probabilities is not None:
        return view.probabilities
    return np.exp(log_probabilities_of(view))


def log_probabilities_of(view: ClassView) -> FloatArray:
    """Return class log-probabilities (n, K) of a view that meets `Need.PROBABILITIES`."""
    if view.log_probabilities is not None:
        return view.log_probabilities
    if view.probabilities is None:
        msg = "class probabilities or logits are needed; got labels and predictions only"
        raise MissingInputError(msg)
    with np.errstate(divide="ignore"):
        return np.log(view.probabilities)


def class_codes(x: AnyArray, name: str, *, length: int | None = None, classes: int = 0) -> IntArray:
    """Validate class codes: integers from -1 (no known class), below `classes` if given."""
    out = checks.finite(checks.vector(x, name, length=length, like="prediction"), name)
    rule = "must be a class code, an integer from -1 (no known class) up"
    checks.refuse(name, rule, out, (out != np.floor(out)) | (out < -1))
    if classes:
        checks.refuse(name, f"must be below {classes}, the number of classes", out, out >= classes)
    return out.astype(np.int64)


def of_predictions(prediction: AnyArray, labels: AnyArray) -> ClassView:
    """Validate predicted and true class codes (n,) at the public edge."""
    guess = class_codes(prediction, "prediction")
    truth = class_codes(labels, "labels", length=guess.size)
    return ClassView(truth, guess, tuple(range(int(max(truth.max(), guess.max())) + 1)))


def of_probabilities(probabilities: AnyArray, labels: AnyArray) -> ClassView:
    """Validate probabilities (n, K) and class codes (n,) at the public edge."""
    given = class_scores(None, probabilities)
    n, classes = given.values.shape
    truth = class_codes(labels, "labels", length=n, classes=classes)
    log_p = given.log_probabilities()
    return ClassView(truth, log_p.argmax(axis=1), tuple(range(classes)), np.exp(log_p), log_p)


def weighted_mean(x: FloatArray, weight: FloatArray | None) -> float:
    """Return the mean of x, shape (n,), under frequency weights."""
    return float(np.average(x, weights=weight))
