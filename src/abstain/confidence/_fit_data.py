"""Features, class names and the last layer: checked for fitting, and against it for scoring."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import to_numpy
from abstain.confidence._entry import ConfidenceScore
from abstain.errors import DomainError, InputError, MissingInputError, ShapeError
from abstain.predictions import Predictions
from abstain.predictions.softmax import row_blocks
from abstain.typing import AnyArray, Array, FloatArray, IntArray

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


def last_layer(given: AnyArray, predictions: Predictions, name: str) -> tuple[FloatArray, ...]:
    """Validate (weight (K, d), bias (K,)) of the last layer against features and logits."""
    if not isinstance(given, list | tuple) or len(given) != 2:
        msg = "`last_layer` must be a pair (weight of shape (K, d), bias of shape (K,))"
        raise InputError(msg)
    weight, bias = (_floats(x, part) for x, part in zip(given, ("weight", "bias"), strict=True))
    d = predictions.features.shape[1]
    if weight.ndim != 2 or weight.shape[1] != d or bias.shape != weight.shape[:1]:
        turned = " Transpose the weight." if weight.shape[:1] == (d,) and weight.ndim == 2 else ""
        msg = (
            f"`last_layer` must be a weight of shape (K, {d}) and a bias of shape (K,), with "
            f"{d} the columns of `features`; got shapes {weight.shape} and {bias.shape}.{turned}"
        )
        raise ShapeError(msg)
    if predictions.class_names and weight.shape[0] != predictions.n_classes:
        msg = (
            f"`last_layer` has {weight.shape[0]} classes, the predictions {predictions.n_classes}; "
            "give the predictions all of them, in order, as `classes=`"
        )
        raise ShapeError(msg)
    if predictions.has_logits:
        _refuse_another_layer(weight, bias, predictions, name)
    return weight, bias


def _floats(x: AnyArray, part: str) -> FloatArray:
    out = to_numpy(x, f"last_layer {part}")
    if out.dtype.kind not in "biuf" or not out.size:
        msg = f"the {part} of `last_layer` must be an array of numbers; got {out.dtype} values"
        raise DomainError(msg)
    return checks.finite(out.astype(np.float64), f"last_layer {part}")


def _refuse_another_layer(
    weight: FloatArray, bias: FloatArray, predictions: Predictions, name: str
) -> None:
    """Refuse a layer that does not make these logits of these features.

    A twentieth of their spread lets half precision pass, and no layer of another model.
    """
    for rows, x in feature_blocks(predictions, weight.shape[1], name, also=2 * weight.shape[0]):
        given = np.asarray(predictions.logits[rows], dtype=np.float64)
        largest = float(np.abs(given).max()) or 1.0
        spread = largest * float((given / largest).std())
        with np.errstate(over="ignore", invalid="ignore"):
            off = np.abs(x @ weight.T + bias - given).max()
        if not off <= 0.05 * max(spread, 1e-6) + 1e-3 * largest:
            msg = (
                f"`last_layer` does not give the logits of these predictions: they differ by up "
                f"to {off:.3g}. The features must be what the last layer takes; drop logits that "
                "were changed afterwards."
            )
            raise InputError(msg)


def logits_of(x: FloatArray, weight: FloatArray, bias: FloatArray) -> FloatArray:
    """Return the logits of features, (rows, K); non-finite ones are refused with their cause."""
    with np.errstate(over="ignore", invalid="ignore"):
        out: FloatArray = x @ weight.T + bias
    hint = "Its features are too large; rescale them, for fitting too."
    return checks.finite(out, "the logits of the last layer", hint=hint)
