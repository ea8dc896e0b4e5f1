"""The columns beside the model's output: lengths, kinds and values checked at the edge."""

from collections.abc import Mapping

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import to_numpy
from abstain.errors import DomainError, InputError, ShapeError
from abstain.predictions._classes import names
from abstain.typing import AnyArray, Array, FloatArray


def same_length(x: Array, name: str, n: int, like: str) -> Array:
    """Refuse an array whose first axis differs from that of the array that sets n."""
    if x.shape[0] != n:
        msg = (
            f"`{name}` must have one entry for each of the {n} samples of `{like}`; "
            f"got {x.shape[0]}"
        )
        raise ShapeError(msg)
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
            msg = f"`confidence` must map names to arrays; got the key {name!r}"
            raise InputError(msg)
        label = "confidence" if columns is not x else f"confidence[{name!r}]"
        out[name] = same_length(checks.confidence(values, label), label, n, like)
    return out


def losses(x: AnyArray, n: int, like: str) -> Array:
    """Validate the user's own loss."""
    return same_length(checks.loss(x), "loss", n, like)


def weights(x: AnyArray, n: int, like: str) -> FloatArray | None:
    """Validate sample weights."""
    column = same_length(checks.vector(x, "weight"), "weight", n, like)
    return checks.weight(column, length=n)


def features(x: AnyArray, n: int, like: str) -> Array:
    """Validate features, shape (n, d)."""
    out = to_numpy(x, "features")
    if out.ndim != 2 or out.shape[1] == 0:
        msg = f"`features` must have shape (n, d); got shape {out.shape}"
        raise ShapeError(msg)
    if out.dtype.kind not in "biuf":
        msg = f"`features` must hold numbers; got {out.dtype} values such as {out.flat[0]!r}"
        raise DomainError(msg)
    return checks.finite(same_length(out, "features", n, like), "features")


def rows_of(selection: AnyArray, n: int) -> Array:
    """Turn a mask, an index array or a slice into row numbers."""
    if isinstance(selection, slice):
        chosen = np.arange(n)[selection]
    else:
        chosen = _indices(to_numpy(selection, "selection"), n)
    if chosen.size == 0:
        msg = "`selection` must keep at least one sample; got none"
        raise ShapeError(msg)
    return chosen


def _indices(x: Array, n: int) -> Array:
    if x.ndim != 1 or (x.size and x.dtype.kind not in "biu"):
        msg = (
            "`selection` must be a mask (n,), an index array or a slice; "
            f"got {x.dtype} values of shape {x.shape}"
        )
        raise InputError(msg)
    if x.dtype.kind == "b":
        return np.flatnonzero(same_length(x, "selection", n, "the predictions"))
    checks.refuse("selection", f"must index the {n} samples", x, (x < -n) | (x >= n))
    return x.astype(np.int64)
