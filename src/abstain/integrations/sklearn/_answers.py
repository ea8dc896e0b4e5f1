"""Predictions of a selective classifier, and the label of abstentions."""

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from abstain.errors import InputError
from abstain.typing import Array, BoolArray


class SelectivePrediction(NamedTuple):
    """Predicted classes, with a mask of accepted samples and the confidences.

    The fields of the tuple are ``prediction, accepted, confidence``.

    Attributes
    ----------
    prediction : ndarray of shape (n,)
        Predicted class of each sample, also of rejected samples.
    accepted : ndarray of shape (n,)
        Whether the decision rule accepts each prediction.
    confidence : ndarray of shape (n,)
        Confidences on the scale of the threshold. A higher value is more confident.

    Examples
    --------
    >>> import numpy as np
    >>> answers = SelectivePrediction(
    ...     np.array([1, 0]), np.array([True, False]), np.array([2.0, 0.1])
    ... )
    >>> answers.coverage
    0.5
    """

    prediction: Array
    accepted: BoolArray
    confidence: Array

    @property
    def coverage(self) -> float:
        """Share of accepted samples, in [0, 1]."""
        return float(np.mean(self.accepted))


#: Default label of abstentions if the classes are strings.
DEFAULT_LABEL = "abstain"


def abstain_label_for(label: Any, classes: Array) -> Any:
    """Return the label of abstentions, or raise an error if this label is a class.

    The value "auto" selects "abstain" if the classes are strings, and -1 otherwise. If -1 is a
    class, "auto" selects the integer below the smallest class.
    """
    class_names = classes.tolist()
    are_texts = all(isinstance(name, str) for name in class_names)
    if isinstance(label, str) and label == "auto":
        return _unused_text(class_names) if are_texts else _unused_integer(class_names)
    _check_label_type(label, classes, are_texts=are_texts)
    if label in class_names:
        raise InputError(
            f"`abstain_label` must not be one of the classes; got {label!r}. Abstentions would be "
            "indistinguishable from predictions of this class."
        )
    return label


def _unused_text(class_names: list[Any]) -> str:
    label = DEFAULT_LABEL
    while label in class_names:
        label = f"({label})"
    return label


def _unused_integer(class_names: list[Any]) -> int:
    """Return -1, or the integer below the smallest class if -1 is a class."""
    if -1 not in class_names:
        return -1
    return int(np.floor(min(class_names))) - 1


def _check_label_type(label: Any, classes: Array, *, are_texts: bool) -> None:
    """Raise an error if the type of the label does not match the type of the classes."""
    if are_texts:
        kind = "a string"
        is_valid = isinstance(label, str)
    elif classes.dtype.kind in "iub":
        kind = "an integer"
        is_valid = isinstance(label, Integral)
    elif classes.dtype.kind == "f":
        kind = "a finite number"
        is_valid = isinstance(label, int | float | np.number) and bool(np.isfinite(label))
    else:
        kind = "a value"
        is_valid = label is not None
    if not is_valid:
        raise InputError(f"`abstain_label` must be {kind}, as the classes are; got {label!r}")


def replace_rejected(prediction: Array, accepted: Array, label: Any) -> Array:
    """Return the predictions, in which rejected samples have the label of abstentions.

    The dtype of the result does not depend on the number of rejected samples.
    """
    answers = prediction.astype(_answer_dtype(prediction.dtype, label))
    answers[~np.asarray(accepted)] = label
    return answers


def _answer_dtype(prediction_dtype: "np.dtype[Any]", label: Any) -> "np.dtype[Any]":
    """Return a dtype that represents the predictions and the label of abstentions."""
    if prediction_dtype.kind == "O":
        return prediction_dtype
    dtype = np.promote_types(prediction_dtype, np.min_scalar_type(label))
    # NumPy promotes some pairs of integer types to floats.
    has_integers = prediction_dtype.kind != "f"
    return np.dtype(np.int64) if has_integers and dtype.kind == "f" else dtype
