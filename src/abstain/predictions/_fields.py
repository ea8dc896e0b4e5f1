"""Validate the arguments of `Predictions` and row selections."""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import read_only, to_numpy
from abstain._foundation.checks import reject_swapped_arguments
from abstain._foundation.names import distinct_names, sort_names
from abstain._foundation.option_format import format_option
from abstain.errors import DomainError, InputError, MissingInputError, ShapeError
from abstain.predictions.classes import CodedNames, check_class_names, validate_names
from abstain.predictions.outputs import ClassScores, Permissions, validate_class_scores
from abstain.typing import AnyArray, Array, FloatArray


def check_length(x: Array, name: str, n: int, reference: str) -> Array:
    """Raise a ShapeError if the array does not have length n, the length of `reference`."""
    if x.shape[0] != n:
        raise ShapeError(
            f"`{name}` must have one entry for each of the {n} samples of `{reference}`; "
            f"got {x.shape[0]}"
        )
    return x


def check_names(x: AnyArray, name: str, n: int, reference: str) -> Array:
    """Validate a column of names, such as labels, predictions, groups or ids."""
    return check_length(validate_names(x, name), name, n, reference)


def check_confidence_columns(x: AnyArray, n: int, reference: str) -> dict[str, Array]:
    """Validate the confidences, and use the name "confidence" for an unnamed array."""
    columns = x if isinstance(x, Mapping) else {"confidence": x}
    checked = {}
    for name, values in columns.items():
        if not isinstance(name, str) or not name:
            raise InputError(f"`confidence` must map names to arrays; got the key {name!r}")
        label = "confidence" if columns is not x else f"confidence[{name!r}]"
        checked[name] = check_length(checks.confidence(values, label), label, n, reference)
    return checked


def check_loss(x: AnyArray, n: int, reference: str) -> Array:
    """Validate the losses of the caller."""
    return check_length(checks.loss(x), "loss", n, reference)


def check_weight(x: AnyArray, n: int, reference: str) -> FloatArray | None:
    """Validate sample weights, which may all be 0."""
    column = check_length(checks.vector(x, "weight"), "weight", n, reference)
    # A file can be one part of a data set, so all its samples can have weight 0.
    return checks.weight(column, length=n, is_batch=True)


def check_features(x: AnyArray, n: int, reference: str) -> Array:
    """Validate the features, an array of shape (n, d)."""
    values = to_numpy(x, "features")
    if values.ndim != 2 or values.shape[1] == 0:
        raise ShapeError(f"`features` must have shape (n, d); got shape {values.shape}")
    if values.dtype.kind not in "biuf":
        raise DomainError(
            f"`features` must hold numbers; got {values.dtype} values such as {values.flat[0]!r}"
        )
    return checks.finite(check_length(values, "features", n, reference), "features")


def row_numbers(selection: AnyArray, n: int) -> Array:
    """Convert a mask, an index array or a slice to row numbers."""
    if isinstance(selection, slice):
        rows = np.arange(n)[selection]
    else:
        rows = _indices(to_numpy(selection, "selection"), n)
    if rows.size == 0:
        raise ShapeError("`selection` must keep at least one sample; got none")
    return rows


def _indices(x: Array, n: int) -> Array:
    """Convert a mask or an index array to non-negative row numbers."""
    if x.ndim != 1 or (x.size and x.dtype.kind not in "biu"):
        raise InputError(
            "`selection` must be a mask (n,), an index array or a slice; "
            f"got {x.dtype} values of shape {x.shape}"
        )
    if x.dtype.kind == "b":
        return np.flatnonzero(check_length(x, "selection", n, "the predictions"))
    checks.reject_entries("selection", f"must index the {n} samples", x, (x < -n) | (x >= n))
    return x.astype(np.int64)


#: Names of the fields that contain one row per sample. The first field that is set defines n.
ARRAYS = (
    "logits",
    "probabilities",
    "logit_samples",
    "probability_samples",
    "prediction",
    "labels",
    "loss",
    "features",
    "group",
    "weight",
    "ids",
)

_CLASS_SCORES = ARRAYS[:4]
_CHECKS = {
    "labels": lambda x, n, like: check_names(x, "labels", n, like),
    "prediction": lambda x, n, like: check_names(x, "prediction", n, like),
    "group": lambda x, n, like: check_names(x, "group", n, like),
    "ids": lambda x, n, like: check_names(x, "ids", n, like),
    "loss": check_loss,
    "features": check_features,
    "weight": check_weight,
    "confidence": check_confidence_columns,
}


def validate_fields(
    arguments: dict[str, Any], permissions: Permissions, *, lower_is_safer: bool
) -> dict[str, Any]:
    """Return all validated fields, including the class names, with read-only arrays."""
    arguments = _check_completeness(arguments, unlabeled=permissions.allow_unlabeled)
    coded_columns = {name: x for name, x in arguments.items() if isinstance(x, CodedNames)}
    arguments = arguments | {name: np.asarray(x) for name, x in coded_columns.items()}
    fields = dict(arguments)
    outputs = _model_output(arguments, permissions)
    fields["notes"] = tuple(scores.note for scores in outputs.values() if scores.note)
    for name, scores in outputs.items():
        fields[name] = read_only(scores.values)
    n, reference = _number_of_samples(fields)
    for name, check in _CHECKS.items():
        if arguments[name] is not None:
            fields[name] = check(arguments[name], n, reference)
    for name in ARRAYS:
        if fields[name] is not None:
            fields[name] = read_only(fields[name])
    confidence = _user_confidence(
        fields["confidence"], fields["loss"], lower_is_safer=lower_is_safer
    )
    if confidence is not None:
        confidence = {name: read_only(column) for name, column in confidence.items()}
    fields["confidence"] = confidence
    fields["classes"] = _classes(fields | coded_columns)
    return fields


def _user_confidence(
    confidence: dict[str, Array] | None, loss: Array | None, *, lower_is_safer: bool
) -> dict[str, Array] | None:
    """Return the confidences by name, with uncertainties negated.

    The name of a negated column has the prefix "-".
    """
    if confidence is None and lower_is_safer:
        raise InputError(
            "`lower_is_safer` refers to `confidence`; pass `confidence`, or drop the option"
        )
    if confidence is None:
        return None
    if loss is not None:
        for column in confidence.values():
            # The samples can be one batch of a file, and a batch can have few samples.
            reject_swapped_arguments(column, loss, is_batch=True)
    if lower_is_safer:
        return {f"-{name}": -column for name, column in confidence.items()}
    return confidence


def _check_completeness(arguments: dict[str, Any], *, unlabeled: bool) -> dict[str, Any]:
    """Raise a MissingInputError if labels or a model output are missing.

    If confidences are the only arrays, row numbers are added as `ids`.
    """
    has_truth = arguments["labels"] is not None or arguments["loss"] is not None
    if unlabeled and has_truth:
        raise InputError(
            "`unlabeled` predictions have no `labels` and no `loss`; drop these or `unlabeled`"
        )
    if not unlabeled and not has_truth:
        raise MissingInputError(
            "`labels` are needed to determine correct predictions; pass `labels` or `loss`, or "
            "unlabeled=True if there are none"
        )
    has_output = any(arguments[name] is not None for name in (*_CLASS_SCORES, "prediction"))
    is_output_optional = unlabeled or arguments["loss"] is not None
    if not has_output and not (is_output_optional and arguments["confidence"] is not None):
        raise MissingInputError(
            "the model's output is needed: pass `logits`, `probabilities` or `prediction` "
            "(or Monte Carlo samples), or `confidence` and `loss`"
        )
    if unlabeled and all(arguments[name] is None for name in ARRAYS):
        columns = arguments["confidence"]
        column = next(iter(columns.values())) if isinstance(columns, Mapping) else columns
        n = to_numpy(column, "confidence").shape[0]
        return arguments | {"ids": np.arange(n)}
    return arguments


def _model_output(arguments: dict[str, Any], permissions: Permissions) -> dict[str, ClassScores]:
    """Return the validated class scores by field name."""
    outputs: dict[str, ClassScores] = {}
    for pair, samples in ((_CLASS_SCORES[:2], False), (_CLASS_SCORES[2:], True)):
        logits, probabilities = (arguments[name] for name in pair)
        if logits is None and probabilities is None:
            continue
        scores = validate_class_scores(
            logits, probabilities, samples=samples, permissions=permissions
        )
        outputs[pair[0 if scores.are_logits else 1]] = scores
    _check_equal_shapes({name: scores.values for name, scores in outputs.items()})
    return outputs


def _check_equal_shapes(outputs: dict[str, Array]) -> None:
    """Raise a ShapeError if class scores and Monte Carlo samples have incompatible shapes."""
    if len(outputs) < 2:
        return
    scores_name, samples_name = outputs
    n, n_classes = outputs[scores_name].shape
    shape = outputs[samples_name].shape
    if (shape[0], shape[2]) == (n, n_classes):
        return
    hint = ""
    if shape[1] == n_classes and shape[2] != n_classes:
        hint = f" Move the sample axis with `np.moveaxis({samples_name}, -1, 1)`."
    raise ShapeError(
        f"`{samples_name}` must have shape ({n}, S, {n_classes}) to match `{scores_name}`; "
        f"got {shape}.{hint}"
    )


def _number_of_samples(fields: dict[str, Any]) -> tuple[int, str]:
    """Return the number of samples and the argument that determines it."""
    name = next(name for name in ARRAYS if fields[name] is not None)
    values = to_numpy(fields[name], name)
    if values.ndim == 0:
        raise ShapeError(f"`{name}` must have one axis (n,); got a single value")
    return int(values.shape[0]), name


def _classes(fields: dict[str, Any]) -> tuple[Hashable, ...]:
    """Return the class names of the caller, or the default names."""
    unknown = fields["unknown_label"]
    n_columns = _number_of_columns(fields)
    if fields["classes"] is not None:
        class_names = check_class_names(fields["classes"])
        if n_columns is not None and len(class_names) != n_columns:
            raise ShapeError(
                f"`classes` must name the {n_columns} columns of class scores; got "
                f"{len(class_names)} names"
            )
    elif n_columns is not None:
        class_names = tuple(range(n_columns))
    else:
        _reject_decimals(fields)
        class_names = _classes_that_occur(fields["labels"], fields["prediction"], unknown)
    if unknown is not None and unknown in class_names:
        raise InputError(
            f"`unknown_label` must not be one of the classes; got {unknown!r}. "
            "It marks labels of no known class, and cannot be predicted."
        )
    return class_names


def _number_of_columns(fields: dict[str, Any]) -> int | None:
    """Return the number of classes in the class scores, or None if there are none."""
    for name in _CLASS_SCORES:
        if fields[name] is not None:
            return int(fields[name].shape[-1])
    return None


def _reject_decimals(fields: dict[str, Any]) -> None:
    """Raise a DomainError if labels or predictions are floats, which suggest a regression task."""
    for name in ("labels", "prediction"):
        values = fields[name]
        if values is None or values.dtype.kind != "f":
            continue
        hint = ""
        if bool((np.floor(values) == values).all()):
            hint = f"If they are codes of classes, pass `{name}.astype(int)`. "
        raise DomainError(
            f"`{name}` must hold classes (whole numbers or text); got {values.dtype} values such "
            f"as {values[0]!s}. {hint}If they are amounts, pass the error of each prediction as "
            f"{format_option('loss')}, such as abs(prediction - label), and "
            f"{format_option('confidence')}."
        )


def _classes_that_occur(
    labels: AnyArray | None, prediction: AnyArray | None, unknown: Hashable
) -> tuple[Hashable, ...]:
    """Return the sorted class names in the labels and predictions."""
    classes: set[Hashable] = set()
    if labels is not None:
        classes.update(_distinct(labels, "labels"))
        classes.discard(unknown)
    if prediction is not None:
        classes.update(_distinct(prediction, "prediction"))
    return tuple(sort_names(classes))


def _distinct(x: AnyArray, name: str) -> list[Hashable]:
    if isinstance(x, CodedNames):
        return x.distinct()
    return distinct_names(validate_names(x, name), name)
