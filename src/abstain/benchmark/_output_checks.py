"""What the arrays of `Outputs` must be: axes, lengths and values, said once."""

from typing import Any

import numpy as np

from abstain._foundation import checks
from abstain.errors import DomainError, InputError, ShapeError
from abstain.typing import AnyArray, Array

#: The label of a picture of no known class, which no answer is right for.
UNKNOWN = -1

_AXES = {
    "logits": "(n, K)",
    "features": "(n, d)",
    "samples": "(n, S, K)",
    "confidence": "(n,)",
    "sample_confidence": "(n, S)",
}


def checked_samples(samples: Any) -> None:
    """Refuse numbers of passes that no score can use."""
    is_whole = isinstance(samples, int | np.integer) and not isinstance(samples, bool)
    if not is_whole or samples < 0 or samples == 1:
        msg = f"`samples` must be 0 (no passes with dropout) or at least 2; got {samples!r}"
        raise InputError(msg)


def numbers(x: AnyArray, name: str, n: int | None) -> Array:
    """Return finite numbers of the right axes: float32 or wider, own confidences float64."""
    out, axes = np.asarray(x), _AXES[name]
    if out.ndim != axes.count(",") + (not axes.endswith(",)")) or not out.size:
        msg = f"`{name}` must have shape {axes} and no empty axis; got {out.shape}"
        raise ShapeError(msg)
    if n is not None and len(out) != n:
        msg = f"`{name}` must have one row for each of the {n} rows of `logits`; got {len(out)}"
        raise ShapeError(msg)
    if out.dtype.kind not in "iuf":
        msg = f"`{name}` must hold numbers; got {out.dtype}"
        raise DomainError(msg)
    double = "confidence" in name or out.dtype.kind != "f" or out.dtype.itemsize > 4
    finite = checks.finite(out, name, hint="Did the training diverge?")
    return finite.astype(np.float64 if double else np.float32, copy=False)


def whole(x: AnyArray, name: str, n: int) -> Array:
    """Return one whole number a picture."""
    out = checks.vector(x, name, length=n, like="logits")
    if out.dtype.kind not in "iu":
        msg = f"`{name}` must hold whole numbers; got {out.dtype}"
        raise DomainError(msg)
    return out.astype(np.int64, copy=False)


def checked_labels(x: AnyArray, n: int, classes: int) -> Array:
    """Return one class a picture, or -1."""
    out = whole(x, "labels", n)
    rule = f"must lie in 0 to {classes - 1}, or be -1 (of no known class)"
    checks.refuse("labels", rule, out, (out < UNKNOWN) | (out >= classes))
    return out


def refuse_unequal(samples: Array | None, own: Array | None, classes: int) -> None:
    """Refuse samples and their own confidences that do not go together."""
    if samples is not None and (samples.shape[1] < 2 or samples.shape[2] != classes):
        msg = f"`samples` must have shape (n, S, {classes}), S at least 2; got {samples.shape}"
        raise ShapeError(msg)
    if own is not None and (samples is None or own.shape != samples.shape[:2]):
        found = "none" if samples is None else samples.shape
        msg = f"`sample_confidence` {own.shape} must go with `samples`; got {found}"
        raise ShapeError(msg)


def checked_rows(x: Array, n: int) -> Array:
    """Return which pictures are meant, as indices."""
    if x.dtype.kind == "b":
        checks.vector(x, "rows", length=n, like="logits")
        x = np.flatnonzero(x)
    if x.ndim != 1 or not x.size:
        msg = f"`rows` must keep at least one picture, as indices or a mask; got {x.shape}"
        raise ShapeError(msg)
    if x.dtype.kind not in "iu":
        msg = f"`rows` must be whole numbers or a mask; got {x.dtype}"
        raise DomainError(msg)
    checks.refuse("rows", f"must index the {n} pictures", x, (x < -n) | (x >= n))
    return x
