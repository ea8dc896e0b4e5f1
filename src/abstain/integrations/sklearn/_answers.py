"""What a selective classifier says of samples, and the label that stands for no answer."""

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from abstain.errors import InputError
from abstain.typing import Array, BoolArray


class SelectivePrediction(NamedTuple):
    """Predicted classes, which of them to act on, and how far each is trusted.

    Unpacks as ``prediction, accepted, confidence``.

    Attributes
    ----------
    prediction : ndarray of shape (n,)
        The class predicted for every sample, also for those that are not accepted.
    accepted : ndarray of shape (n,)
        Whether the decision rule accepts the prediction.
    confidence : ndarray of shape (n,)
        On the scale of the rule's threshold; higher is more trusted.

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
        """Share of the samples that is accepted, in [0, 1]."""
        return float(np.mean(self.accepted))


#: The default for classes that are strings.
WORD = "abstain"


def abstain_label_for(label: Any, classes: Array) -> Any:
    """Return the label of abstentions: the caller's, or one that is safe with these classes.

    For "auto" the word "abstain" among strings, else -1; where -1 is a class, one below the
    smallest class. Refused where it is a class, or of another kind than the classes.
    """
    known = classes.tolist()
    words = all(isinstance(name, str) for name in known)
    if isinstance(label, str) and label == "auto":
        return _free_word(known) if words else _free_number(known)
    _refuse_other_kind(label, classes, words=words)
    if label in known:
        raise InputError(
            f"`abstain_label` must not be one of the classes; got {label!r}. An abstention could "
            "not be told from that prediction."
        )
    return label


def _free_word(known: list[Any]) -> str:
    word = WORD
    while word in known:
        word = f"({word})"
    return word


def _free_number(known: list[Any]) -> int:
    return int(np.floor(min(known))) - 1 if -1 in known else -1


def _refuse_other_kind(label: Any, classes: Array, *, words: bool) -> None:
    """Refuse what would turn the classes into something else when put among them."""
    if words:
        fits, kind = isinstance(label, str), "a string"
    elif classes.dtype.kind in "iub":
        fits, kind = isinstance(label, Integral), "an integer"
    elif classes.dtype.kind == "f":
        fits = isinstance(label, int | float | np.number) and bool(np.isfinite(label))
        kind = "a finite number"
    else:
        fits, kind = label is not None, "a value"
    if not fits:
        raise InputError(f"`abstain_label` must be {kind}, as the classes are; got {label!r}")


def put(prediction: Array, accepted: Array, label: Any) -> Array:
    """Return the predictions with the label where nothing is accepted.

    The kind of the result does not depend on whether anything is rejected.
    """
    if prediction.dtype.kind == "O":
        out = prediction.copy()
    else:
        # Booleans become the integers 0 and 1: an abstention is neither.
        kind = np.promote_types(prediction.dtype, np.min_scalar_type(label))
        whole = prediction.dtype.kind != "f" and kind.kind == "f"
        out = prediction.astype(np.int64 if whole else kind)
    out[~np.asarray(accepted)] = label
    return out
