"""Labels, predictions and class probabilities: validated at the public edge, read by metrics."""

from dataclasses import replace

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import beside, is_on_device, namespace, to_numpy
from abstain._foundation.foreign import double, is_foreign, scalar, without_gradient
from abstain._foundation.passed_rows import of_samples
from abstain._foundation.scored import ClassView, Scored, scored
from abstain.errors import MissingInputError
from abstain.predictions.outputs import class_scores
from abstain.typing import AnyArray, BoolArray, FloatArray, IntArray, Scalar


def view_of(s: Scored) -> ClassView:
    """Return the class view of a `Scored` that meets `Need.CLASSES`."""
    if s.view is None:
        raise MissingInputError(
            "labels and predictions are needed; got a confidence and a loss only"
        )
    return s.view


def probabilities_of(view: ClassView) -> AnyArray:
    """Return class probabilities (n, K) of a view that meets `Need.PROBABILITIES`."""
    if view.probabilities is not None:
        return view.probabilities
    if view.log_probabilities is None:
        raise MissingInputError(
            "class probabilities or logits are needed; got labels and predictions only"
        )
    return namespace(view.log_probabilities).exp(view.log_probabilities)


def log_likelihood(view: ClassView) -> AnyArray:
    """Return the log-probability of each true class, shape (n,); all of them must be known.

    Taken from a view that meets `Need.PROBABILITIES`.
    """
    if view.log_probabilities is not None:
        return at_class(view.log_probabilities, view.labels)
    likelihood = at_class(probabilities_of(view), view.labels)
    with np.errstate(divide="ignore"):
        return namespace(likelihood).log(likelihood)


def at_class(x: FloatArray, labels: IntArray) -> AnyArray:
    """Return the entry of each row of x, shape (n, K), at its label, shape (n,)."""
    xp, (n, classes) = namespace(x), x.shape
    rows = beside(np.arange(n), "rows", labels)
    return xp.take(xp.reshape(x, (-1,)), rows * classes + labels)


def is_class(labels: IntArray, x: FloatArray) -> AnyArray:
    """Tell of each entry of x, shape (n, K), whether it is that of the label."""
    classes = beside(np.arange(x.shape[1]), "classes", labels)
    return labels[:, None] == classes[None, :]


def rows_of(view: ClassView, kept: BoolArray) -> ClassView:
    """Return the view of some rows alone."""
    p, log_p = view.probabilities, view.log_probabilities
    # Whole rows by their places: the array API takes a mask for all axes at once only.
    xp = namespace(kept)
    rows = xp.nonzero(kept)[0]
    return ClassView(
        xp.take(view.labels, rows),
        xp.take(view.prediction, rows),
        view.classes,
        None if p is None else xp.take(p, rows, axis=0),
        None if log_p is None else xp.take(log_p, rows, axis=0),
    )


def class_codes(x: AnyArray, name: str, *, length: int | None = None, classes: int = 0) -> AnyArray:
    """Validate class codes: integers from -1 (no known class), below `classes` if given."""
    if is_on_device(x) and _are_codes(x, length, classes):
        xp = namespace(x)
        return x if xp.isdtype(x.dtype, "integral") else xp.astype(x, xp.int64)
    out = checks.finite(checks.vector(x, name, length=length, like="prediction"), name)
    rule = "must be a class code, an integer from -1 (no known class) up"
    checks.refuse(name, rule, out, (out != np.floor(out)) | (out < -1))
    if classes:
        checks.refuse(name, f"must be below {classes}, the number of classes", out, out >= classes)
    return out.astype(np.int64)


def _are_codes(x: AnyArray, length: int | None, classes: int) -> bool:
    """Tell whether an array obeys every rule of class codes, where it lies."""
    xp = namespace(x)
    if x.ndim != 1 or x.shape[0] != (length or x.shape[0]) or x.shape[0] == 0:
        return False
    if not xp.isdtype(x.dtype, ("integral", "real floating")):
        return False
    whole = xp.isdtype(x.dtype, "integral") or bool(xp.all(x == xp.floor(x)))
    return whole and bool(xp.min(x) >= -1) and not (classes and bool(xp.max(x) >= classes))


def of_predictions(prediction: AnyArray, labels: AnyArray) -> ClassView:
    """Validate predicted and true class codes (n,) at the public edge."""
    guess = class_codes(prediction, "prediction")
    truth = class_codes(labels, "labels", length=int(guess.shape[0]))
    truth = like_codes(truth, guess)
    xp = namespace(guess)
    known = int(max(xp.max(truth), xp.max(guess))) + 1
    return ClassView(truth, guess, tuple(range(known)))


def like_codes(codes: IntArray, reference: AnyArray) -> AnyArray:
    """Bring class codes to where `reference` is."""
    if isinstance(reference, np.ndarray):
        return to_numpy(codes, "labels")
    return beside(codes, "labels", reference)


def of_probabilities(probabilities: AnyArray, labels: AnyArray) -> ClassView:
    """Validate probabilities (n, K) and class codes (n,) at the public edge."""
    stays = is_foreign(probabilities)
    given = class_scores(None, probabilities, keep_library=stays)
    n, classes = given.values.shape
    truth = class_codes(labels, "labels", length=n, classes=classes)
    if not stays:
        log_p = given.log_probabilities()
        return ClassView(truth, log_p.argmax(axis=1), tuple(range(classes)), np.exp(log_p), log_p)
    xp, p = namespace(given.values), double(given.values)
    p = p / xp.sum(p, axis=1, keepdims=True)
    guess = xp.argmax(without_gradient(p), axis=1)
    return ClassView(like_codes(truth, guess), guess, tuple(range(classes)), p)


def joined(confidence: AnyArray, view: ClassView, weight: AnyArray | None) -> Scored:
    """Validate a confidence and join it with classes, brought to where it is, without gradients.

    The loss is that of the predictions: 1 where they are wrong.
    """
    c = without_gradient(confidence)
    away = is_on_device(c)

    def own(x: AnyArray, name: str) -> AnyArray:
        fixed = without_gradient(x)
        return beside(fixed, name, c) if away else to_numpy(fixed, name)

    labels, prediction = own(view.labels, "labels"), own(view.prediction, "prediction")
    p, log_p = view.probabilities, view.log_probabilities
    s = scored(c, prediction != labels, weight)
    held = ClassView(
        of_samples(s, labels),
        of_samples(s, prediction),
        view.classes,
        None if p is None else of_samples(s, own(p, "probabilities")),
        None if log_p is None else of_samples(s, own(log_p, "probabilities")),
    )
    return replace(s, view=held)


def weighted_mean(x: FloatArray, weight: FloatArray | None) -> Scalar:
    """Return the mean of x, shape (n,), under frequency weights."""
    xp = namespace(x)
    if weight is None:
        return scalar(xp.mean(x))
    return scalar(xp.sum(x * weight) / xp.sum(weight))
