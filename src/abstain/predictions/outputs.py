"""What a model puts out: class scores and Monte-Carlo samples, validated, in their own precision.

Whether they are logits or probabilities is said by the caller, never guessed from the values.
Records keep them as NumPy, because everything that reads a record works on the host; functions
of plain arrays ask for the caller's own library and device.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import is_torch, namespace, to_numpy
from abstain._foundation.foreign import is_foreign
from abstain.errors import DomainError, InputError, MissingInputError, ShapeError
from abstain.predictions.softmax import log_scores, log_softmax, row_blocks, widest
from abstain.typing import AnyArray, Array, IntArray

# A row of probabilities may miss 1 by its storage's rounding (twice the spacing near 1), by
# clipping each entry to 1e-5 as published files do, and by the rounding of text files.
_STORAGE_SLACK = {"float16": 2e-3, "bfloat16": 1.6e-2}
_SLACK = 1e-4
_SLACK_PER_CLASS = 1e-5
_LARGEST_SLACK = 2e-2

_DETERMINISTIC = ("logits", "probabilities")
_SAMPLED = ("logit_samples", "probability_samples")
_AXES = {2: "(n, K)", 3: "(n, S, K)"}


@dataclass(frozen=True, eq=False)
class ClassScores:
    """Logits or probabilities of one kind, shape (n, K) or (n, S, K).

    Attributes
    ----------
    values : array
        As given: the dtype of the storage. NumPy unless the caller's library was asked for.
    are_logits : bool
        Logits when true, probabilities when false.
    origin : array or None
        The array whose library and device results take; NumPy's without.
    """

    values: AnyArray
    are_logits: bool
    origin: AnyArray | None = None

    @property
    def namespace(self) -> Any:
        """The array-API namespace of the values."""
        return namespace(self.values)

    def log_scores(self, rows: slice = slice(None)) -> AnyArray:
        """Return some rows as float64 log-scores: their softmax is the probability."""
        return log_scores(self.values[rows, ...], are_logits=self.are_logits, xp=self.namespace)

    def top_classes(self) -> IntArray:
        """Return the class of the largest score of each row, ties to the lowest, shape (n,)."""
        values = self.values
        if values.dtype != np.float16:
            codes: IntArray = values.argmax(axis=1).astype(np.int64)
            return codes
        # Processors compare float32 directly and float16 through a conversion a comparison.
        out = np.empty(len(values), dtype=np.int64)
        for rows in row_blocks(*values.shape):
            out[rows] = values[rows].astype(np.float32).argmax(axis=1)
        return out

    def log_probabilities(self, rows: slice = slice(None)) -> AnyArray:
        """Return some rows as float64 log-probabilities."""
        return log_softmax(self.log_scores(rows), xp=self.namespace)


def class_scores(
    logits: AnyArray | None,
    probabilities: AnyArray | None,
    *,
    samples: bool = False,
    keep_library: bool = False,
) -> ClassScores:
    """Validate logits or probabilities, one of the two, with or without a sample axis.

    They become NumPy. With `keep_library`, those on a device and those that are differentiated
    or traced stay what they are, and results of the others go back to the caller's library.
    """
    first, second = _SAMPLED if samples else _DETERMINISTIC
    if logits is not None and probabilities is not None:
        msg = f"give either `{first}` or `{second}`, not both; drop one of them"
        raise InputError(msg)
    if logits is None and probabilities is None:
        msg = f"one of `{first}` and `{second}` is needed; got neither"
        raise MissingInputError(msg)
    are_logits = logits is not None
    given: AnyArray = logits if are_logits else probabilities
    name, check = (first, _logits) if are_logits else (second, _probabilities)
    axes = 3 if samples else 2
    if not keep_library:
        return ClassScores(check(given, name, axes), are_logits)
    if not (is_foreign(given) or _is_wrapped(given)):
        return ClassScores(check(given, name, axes), are_logits, given)
    _shape(given.shape, name, axes)
    if _sound_where_it_lies(given, are_logits=are_logits) is False:
        # The host's checks find the first offending entry and say what is wrong with it.
        check(given, name, axes)
    return ClassScores(given, are_logits, given)


def _is_wrapped(x: AnyArray) -> bool:
    """Tell whether `x` stands for a tensor inside a transformation of `torch.func`."""
    if not is_torch(x):
        return False
    try:
        x.data_ptr()
    except RuntimeError:
        return True
    return False


def _sound_where_it_lies(x: AnyArray, *, are_logits: bool) -> bool | None:
    """Tell whether every value is allowed; None where values are not known while tracing."""
    xp = namespace(x)
    if not xp.isdtype(x.dtype, ("bool", "integral", "real floating")):
        return False
    wide = widest(xp, x)
    floats = x if xp.isdtype(x.dtype, "real floating") else xp.astype(x, wide)
    sound = xp.all(xp.isfinite(floats))
    if not are_logits:
        off = xp.abs(xp.sum(floats, axis=-1, dtype=wide) - 1.0)
        slack = _slack(x.dtype, x.shape[-1])
        sound = sound & (xp.min(floats) >= 0.0) & (xp.max(off) <= slack)
    try:
        return bool(sound)
    except (TypeError, RuntimeError):
        # Under jax.jit or torch.func.vmap there are shapes and types but no values yet.
        return None


def _logits(x: AnyArray, name: str, axes: int) -> Array:
    return _finite(
        _floats(x, name, axes),
        name,
        hint="Give a masked class a large negative logit (-1e4) instead of -inf.",
    )


def _probabilities(x: AnyArray, name: str, axes: int) -> Array:
    out = _finite(_floats(x, name, axes), name)
    if out.min() < 0:
        hint = "If these are logits, pass them as `logits` (or `logit_samples`)."
        checks.refuse(name, "must not be negative", out, out < 0, hint=hint)
    sums = out.sum(axis=-1, dtype=np.float64)
    # The host copy of a bfloat16 array is float32, so the caller's dtype is asked.
    slack = _slack(getattr(x, "dtype", out.dtype), out.shape[-1])
    off = np.abs(sums - 1) > slack
    if off.any():
        where = tuple(int(i) for i in np.argwhere(off)[0])
        msg = (
            f"`{name}` must sum to 1 over the classes (within {slack:.1e}); "
            f"got {sums[where]:.6g} at index {where[0] if len(where) == 1 else where} "
            f"({int(off.sum())} such rows). If these are logits, pass them as `logits` "
            "(or `logit_samples`); if rounding is the cause, divide each row by its sum."
        )
        raise DomainError(msg)
    return out


def _slack(dtype: object, classes: int) -> float:
    base = _STORAGE_SLACK.get(str(dtype).rpartition(".")[2], _SLACK)
    return float(min(base + _SLACK_PER_CLASS * classes, _LARGEST_SLACK))


def _shape(shape: tuple[int, ...], name: str, axes: int) -> None:
    found = tuple(shape)
    if len(found) != axes:
        msg = f"`{name}` must have shape {_AXES[axes]}; got shape {found}.{_advice(name, found)}"
        raise ShapeError(msg)
    if 0 in found:
        msg = f"`{name}` is empty; got shape {found}, at least one sample is needed"
        raise ShapeError(msg)
    if found[-1] < 2:
        msg = f"`{name}` must have at least two classes; got shape {found}.{_advice(name, found)}"
        raise ShapeError(msg)
    if axes == 3 and found[1] < 2:
        msg = f"`{name}` must hold at least two samples a row; got shape {found}"
        raise ShapeError(msg)


def _floats(x: AnyArray, name: str, axes: int) -> Array:
    out = to_numpy(x, name)
    _shape(out.shape, name, axes)
    if out.dtype.kind not in "biuf":
        msg = f"`{name}` must hold numbers; got {out.dtype} values such as {out.flat[0]!r}"
        raise DomainError(msg)
    if out.dtype.kind != "f" or out.dtype.itemsize > 8:
        return out.astype(np.float64)
    return out


def _advice(name: str, shape: tuple[int, ...]) -> str:
    if len(shape) != 1 and shape[-1:] != (1,):
        return ""
    if name == "probabilities":
        return " With p the probability of class 1, pass `np.column_stack([1 - p, p])`."
    if name == "logits":
        return " With z the logit of class 1, pass `np.column_stack([0 * z, z])`."
    return ""


def _finite(x: Array, name: str, *, hint: str = "") -> Array:
    # A sum in float64 cannot overflow on 16-bit input, so no mask is made for good data.
    if x.dtype == np.float16 and np.isfinite(np.add.reduce(x, axis=None, dtype=np.float64)):
        return x
    return checks.finite(x, name, hint=hint)
