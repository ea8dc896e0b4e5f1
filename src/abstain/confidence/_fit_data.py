"""Features, class names and the last layer: checked for fitting, and against it for scoring."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import to_numpy
from abstain.confidence.entry import ConfidenceScore
from abstain.errors import DomainError, InputError, MissingInputError, ShapeError
from abstain.predictions import Predictions
from abstain.predictions.softmax import row_blocks
from abstain.typing import Array, FloatArray, IntArray

#: Between its inverse and it, squares of squares of features are numbers.
_FARTHEST = 1e70


def doubles(predictions: Predictions) -> FloatArray:
    """Return all features in float64, shape (n, d); refuse those whose squares are no numbers."""
    x = np.asarray(predictions.features, dtype=np.float64)
    refuse_extreme(x)
    return x


def refuse_extreme(x: Array) -> None:
    """Refuse features so large or so small that their squares overflow or vanish."""
    largest = max(float(x.max()), -float(x.min()))
    if largest and not 1 / _FARTHEST <= largest <= _FARTHEST:
        msg = (
            f"`features` must have a largest entry within {1 / _FARTHEST:g} and {_FARTHEST:g} for "
            f"this score; got {largest:.3g}. Rescale them."
        )
        raise DomainError(msg)


def classes_of(predictions: Predictions, name: str, *, least: int) -> IntArray:
    """Return the class of each sample; refuse classes with fewer than `least` samples."""
    codes = predictions.label_codes
    if (unknown := int((codes < 0).sum())) > 0:
        msg = (
            f"the score {name!r} is fitted on samples of known classes; {unknown} are of none: "
            "leave them out with `subset`"
        )
        raise DomainError(msg)
    counts = np.bincount(codes, minlength=predictions.n_classes)
    few = np.flatnonzero(counts < least)
    if few.size:
        first = predictions.class_names[int(few[0])]
        more = f" ({few.size} such classes)" if few.size > 1 else ""
        msg = (
            f"the score {name!r} needs at least {least} samples of each class to be fitted; the "
            f"class {first!r} has {counts[few[0]]}{more}. Fit it on more samples."
        )
        raise DomainError(msg)
    return codes


def feature_blocks(
    predictions: Predictions, columns: int, name: str, *, also: int = 0
) -> Iterator[tuple[slice, FloatArray]]:
    """Cut the features into blocks of rows in float64; refuse those of another width.

    `also` is how many numbers a row costs beside its features.
    """
    x = features_like(predictions, columns, name)
    for rows in row_blocks(x.shape[0], columns + also):
        yield rows, x[rows].astype(np.float64)


def features_like(predictions: Predictions, columns: int, name: str) -> Array:
    """Return the features; refuse those of another width than the score was fitted on."""
    if predictions.features is None:
        msg = f"the score {name!r} needs features; give `features` to the predictions"
        raise MissingInputError(msg)
    x: Array = to_numpy(predictions.features, "features")
    if x.shape[1] != columns:
        msg = (
            f"`features` must have the {columns} columns that {name!r} was fitted on; "
            f"got {x.shape[1]}"
        )
        raise ShapeError(msg)
    return x


def refuse_other_classes(predictions: Predictions, fitted: tuple[Any, ...], name: str) -> None:
    """Refuse predictions whose classes are not those of the fit.

    Without class scores, the classes are only those that occur: some may be absent.
    """
    own = predictions.class_names
    same = own == fitted if predictions.has_class_scores else set(own) <= set(fitted)
    if same:
        return
    odd = [c for c in own if c not in fitted]
    what = f"{odd[0]!r} is new" if odd else f"{len(own)} of {len(fitted)} classes, or another order"
    msg = (
        f"the score {name!r} was fitted on other classes than those of these predictions: {what}. "
        "Give both the same `classes`."
    )
    raise InputError(msg)


def confidences(name: str, values: FloatArray) -> ConfidenceScore:
    """Return the confidences, or say which sample lies too far away for a number."""
    hint = "Its features are too large; rescale them, for fitting too."
    return ConfidenceScore(name, checks.finite(values, name, hint=hint))
