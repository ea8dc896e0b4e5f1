"""From the arguments of `Predictions` to its validated fields, and to some of their rows."""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import read_only, to_numpy
from abstain._foundation.checks import reject_swapped_arguments
from abstain._foundation.names import distinct_names, sort_names
from abstain._foundation.option_format import format_option
from abstain.errors import DomainError, InputError, MissingInputError, ShapeError
from abstain.predictions.classes import CodedNames, class_names, names
from abstain.predictions.outputs import ClassScores, Permissions, class_scores
from abstain.typing import AnyArray, Array, FloatArray


def same_length(x: Array, name: str, n: int, like: str) -> Array:
    """Refuse an array whose first axis differs from that of the array that sets n."""
    if x.shape[0] != n:
        raise ShapeError(
            f"`{name}` must have one entry for each of the {n} samples of `{like}`; "
            f"got {x.shape[0]}"
        )
    return x


def labels_of_any_kind(x: AnyArray, name: str, n: int, like: str) -> Array:
    """Validate a column of names: labels, predictions, groups, ids."""
    return same_length(names(x, name), name, n, like)


def confidence_columns(x: AnyArray, n: int, like: str) -> dict[str, Array]:
    """Return the user's own confidences by name; one bare array is named "confidence"."""
    columns = x if isinstance(x, Mapping) else {"confidence": x}
    out = {}
    for name, values in columns.items():
        if not isinstance(name, str) or not name:
            raise InputError(f"`confidence` must map names to arrays; got the key {name!r}")
        label = "confidence" if columns is not x else f"confidence[{name!r}]"
        out[name] = same_length(checks.confidence(values, label), label, n, like)
    return out


def losses(x: AnyArray, n: int, like: str) -> Array:
    """Validate the user's own loss."""
    return same_length(checks.loss(x), "loss", n, like)


def weights(x: AnyArray, n: int, like: str) -> FloatArray | None:
    """Validate sample weights; these may be a part of more samples, so all may be 0."""
    column = same_length(checks.vector(x, "weight"), "weight", n, like)
    return checks.weight(column, length=n, is_batch=True)


def features(x: AnyArray, n: int, like: str) -> Array:
    """Validate features, shape (n, d)."""
    out = to_numpy(x, "features")
    if out.ndim != 2 or out.shape[1] == 0:
        raise ShapeError(f"`features` must have shape (n, d); got shape {out.shape}")
    if out.dtype.kind not in "biuf":
        raise DomainError(
            f"`features` must hold numbers; got {out.dtype} values such as {out.flat[0]!r}"
        )
    return checks.finite(same_length(out, "features", n, like), "features")


def rows_of(selection: AnyArray, n: int) -> Array:
    """Turn a mask, an index array or a slice into row numbers."""
    if isinstance(selection, slice):
        chosen = np.arange(n)[selection]
    else:
        chosen = _indices(to_numpy(selection, "selection"), n)
    if chosen.size == 0:
        raise ShapeError("`selection` must keep at least one sample; got none")
    return chosen


def _indices(x: Array, n: int) -> Array:
    if x.ndim != 1 or (x.size and x.dtype.kind not in "biu"):
        raise InputError(
            "`selection` must be a mask (n,), an index array or a slice; "
            f"got {x.dtype} values of shape {x.shape}"
        )
    if x.dtype.kind == "b":
        return np.flatnonzero(same_length(x, "selection", n, "the predictions"))
    checks.reject_entries("selection", f"must index the {n} samples", x, (x < -n) | (x >= n))
    return x.astype(np.int64)


#: Fields that hold one array with n rows, in the order in which they set n.
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

_SCORES = ARRAYS[:4]
_COLUMNS = {
    "labels": lambda x, n, like: labels_of_any_kind(x, "labels", n, like),
    "prediction": lambda x, n, like: labels_of_any_kind(x, "prediction", n, like),
    "group": lambda x, n, like: labels_of_any_kind(x, "group", n, like),
    "ids": lambda x, n, like: labels_of_any_kind(x, "ids", n, like),
    "loss": losses,
    "features": features,
    "weight": weights,
    "confidence": confidence_columns,
}


def complete(given: dict[str, Any], accept: Permissions, *, lower_is_safer: bool) -> dict[str, Any]:
    """Return all fields validated, arrays read-only, classes filled in."""
    given = _refuse_incomplete(given, unlabeled=accept.unlabeled)
    kept = {name: x for name, x in given.items() if isinstance(x, CodedNames)}
    given = given | {name: np.asarray(x) for name, x in kept.items()}
    out = dict(given)
    outputs = _model_output(given, accept)
    out["notes"] = tuple(scores.note for scores in outputs.values() if scores.note)
    for name, scores in outputs.items():
        out[name] = read_only(scores.values)
    n, like = _samples(out)
    for name, check in _COLUMNS.items():
        if given[name] is not None:
            out[name] = check(given[name], n, like)
    for name in ARRAYS:
        if out[name] is not None:
            out[name] = read_only(out[name])
    own = _own_confidence(out["confidence"], out["loss"], lower_is_safer=lower_is_safer)
    out["confidence"] = own and {k: read_only(v) for k, v in own.items()}
    out["classes"] = _classes(out | kept)
    return out


def _own_confidence(
    confidence: dict[str, Array] | None, loss: Array | None, *, lower_is_safer: bool
) -> dict[str, Array] | None:
    """Return the user's own confidences; uncertainties are turned around and named so."""
    if confidence is None and lower_is_safer:
        raise InputError(
            "`lower_is_safer` speaks of your own `confidence`; give it, or leave the option out"
        )
    if confidence is None:
        return None
    if loss is not None:
        for values in confidence.values():
            # A file may be one of many, and its last batch be short.
            reject_swapped_arguments(values, loss, is_batch=True)
    return {f"-{k}": -v for k, v in confidence.items()} if lower_is_safer else confidence


def _refuse_incomplete(given: dict[str, Any], *, unlabeled: bool) -> dict[str, Any]:
    """Refuse what lacks the truth or the output; number samples that have confidences alone."""
    truth = given["labels"] is not None or given["loss"] is not None
    if unlabeled and truth:
        raise InputError(
            "`unlabeled` predictions have no `labels` and no `loss`; leave these out, or the word"
        )
    if not unlabeled and not truth:
        raise MissingInputError(
            "`labels` are needed to know what is right; give them, or your own `loss`, or say that "
            "there are none (unlabeled=True)"
        )
    output = any(given[name] is not None for name in (*_SCORES, "prediction"))
    own = (unlabeled or given["loss"] is not None) and given["confidence"] is not None
    if not output and not own:
        raise MissingInputError(
            "the model's output is needed: give `logits`, `probabilities` or `prediction` "
            "(or Monte-Carlo samples), or your own `confidence` and `loss`"
        )
    if unlabeled and not output and all(given[name] is None for name in ARRAYS):
        first = given["confidence"]
        first = next(iter(first.values())) if isinstance(first, Mapping) else first
        return given | {"ids": np.arange(to_numpy(first, "confidence").shape[0])}
    return given


def _model_output(given: dict[str, Any], accept: Permissions) -> dict[str, ClassScores]:
    out: dict[str, ClassScores] = {}
    for pair, samples in ((_SCORES[:2], False), (_SCORES[2:], True)):
        logits, probabilities = (given[name] for name in pair)
        if logits is None and probabilities is None:
            continue
        scores = class_scores(logits, probabilities, samples=samples, accept=accept)
        out[pair[0 if scores.are_logits else 1]] = scores
    _refuse_unequal({name: scores.values for name, scores in out.items()})
    return out


def _refuse_unequal(outputs: dict[str, Array]) -> None:
    """Refuse class scores and samples that differ in rows or classes."""
    if len(outputs) < 2:
        return
    (first, a), (second, b) = outputs.items()
    if (a.shape[0], a.shape[-1]) == (b.shape[0], b.shape[-1]):
        return
    swapped = b.shape[1] == a.shape[1] and b.shape[2] != a.shape[1]
    hint = f" Move the sample axis with `np.moveaxis({second}, -1, 1)`." if swapped else ""
    raise ShapeError(
        f"`{second}` must have shape ({a.shape[0]}, S, {a.shape[1]}) to match `{first}`; "
        f"got {b.shape}.{hint}"
    )


def _samples(fields: dict[str, Any]) -> tuple[int, str]:
    """Return the number of samples and the argument that sets it."""
    name = next(name for name in ARRAYS if fields[name] is not None)
    values = to_numpy(fields[name], name)
    if values.ndim == 0:
        raise ShapeError(f"`{name}` must have one axis (n,); got a single value")
    return int(values.shape[0]), name


def _classes(fields: dict[str, Any]) -> tuple[Hashable, ...]:
    unknown = fields["unknown_label"]
    width = next((fields[name].shape[-1] for name in _SCORES if fields[name] is not None), None)
    if fields["classes"] is not None:
        out = class_names(fields["classes"])
        if width is not None and len(out) != width:
            raise ShapeError(
                f"`classes` must name the {width} columns of class scores; got {len(out)} names"
            )
    elif width is not None:
        out = tuple(range(width))
    else:
        _refuse_decimals(fields)
        out = _union(fields["labels"], fields["prediction"], unknown)
    if unknown is not None and unknown in out:
        raise InputError(
            f"`unknown_label` must not be one of the classes; got {unknown!r}. "
            "It marks labels of no known class, and cannot be predicted."
        )
    return out


def _refuse_decimals(fields: dict[str, Any]) -> None:
    """Refuse decimals as classes: as a rule they are numbers that a regression predicts."""
    for name in ("labels", "prediction"):
        values = fields[name]
        if values is None or values.dtype.kind != "f":
            continue
        whole = bool((np.floor(values) == values).all())
        codes = f"If they are codes of classes, pass `{name}.astype(int)`. " if whole else ""
        raise DomainError(
            f"`{name}` must hold classes (whole numbers or text); got {values.dtype} values such "
            f"as {values[0]!s}. {codes}If they are amounts, give how wrong each prediction is as "
            f"{format_option('loss')}, such as abs(prediction - label), and your own "
            f"{format_option('confidence')}."
        )


def _union(
    labels: AnyArray | None, prediction: AnyArray | None, unknown: Hashable
) -> tuple[Hashable, ...]:
    found: set[Hashable] = set()
    if labels is not None:
        found.update(_kinds(labels, "labels"))
        found.discard(unknown)
    if prediction is not None:
        found.update(_kinds(prediction, "prediction"))
    return tuple(sort_names(found))


def _kinds(x: AnyArray, name: str) -> list[Hashable]:
    return x.distinct() if isinstance(x, CodedNames) else distinct_names(names(x, name), name)
