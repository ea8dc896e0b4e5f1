"""What a model puts out: class scores and Monte-Carlo samples, validated, in their own precision.

Whether they are logits or probabilities is said by the caller, never guessed from the values.
"""

from dataclasses import dataclass

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import to_numpy
from abstain.errors import DomainError, InputError, MissingInputError, ShapeError
from abstain.predictions.softmax import log_scores, log_softmax, row_blocks
from abstain.typing import AnyArray, Array, FloatArray, IntArray

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
    values : ndarray
        As given: the dtype of the storage.
    are_logits : bool
        Logits when true, probabilities when false.
    """

    values: Array
    are_logits: bool

    def log_scores(self, rows: slice = slice(None)) -> FloatArray:
        """Return some rows as float64 log-scores: their softmax is the probability."""
        return log_scores(self.values[rows], are_logits=self.are_logits)

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

    def log_probabilities(self, rows: slice = slice(None)) -> FloatArray:
        """Return some rows as float64 log-probabilities."""
        return log_softmax(self.log_scores(rows))


def class_scores(
    logits: AnyArray | None, probabilities: AnyArray | None, *, samples: bool = False
) -> ClassScores:
    """Validate logits or probabilities, one of the two, with or without a sample axis."""
    first, second = _SAMPLED if samples else _DETERMINISTIC
    if logits is not None and probabilities is not None:
        msg = f"give either `{first}` or `{second}`, not both; drop one of them"
        raise InputError(msg)
    axes = 3 if samples else 2
    if logits is not None:
        return ClassScores(_logits(logits, first, axes), are_logits=True)
    if probabilities is not None:
        return ClassScores(_probabilities(probabilities, second, axes), are_logits=False)
    msg = f"one of `{first}` and `{second}` is needed; got neither"
    raise MissingInputError(msg)


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
    slack = _slack(x, out)
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


def _slack(given: AnyArray, values: Array) -> float:
    # The host copy of a bfloat16 array is float32, so the caller's dtype is asked.
    dtype = str(getattr(given, "dtype", values.dtype)).rpartition(".")[2]
    base = _STORAGE_SLACK.get(dtype, _SLACK)
    return float(min(base + _SLACK_PER_CLASS * values.shape[-1], _LARGEST_SLACK))


def _floats(x: AnyArray, name: str, axes: int) -> Array:
    out = to_numpy(x, name)
    if out.ndim != axes:
        msg = f"`{name}` must have shape {_AXES[axes]}; got shape {out.shape}.{_advice(name, out)}"
        raise ShapeError(msg)
    if out.size == 0:
        msg = f"`{name}` is empty; got shape {out.shape}, at least one sample is needed"
        raise ShapeError(msg)
    if out.shape[-1] < 2:
        msg = f"`{name}` must have at least two classes; got shape {out.shape}.{_advice(name, out)}"
        raise ShapeError(msg)
    if axes == 3 and out.shape[1] < 2:
        msg = f"`{name}` must hold at least two samples a row; got shape {out.shape}"
        raise ShapeError(msg)
    if out.dtype.kind not in "biuf":
        msg = f"`{name}` must hold numbers; got {out.dtype} values such as {out.flat[0]!r}"
        raise DomainError(msg)
    if out.dtype.kind != "f" or out.dtype.itemsize > 8:
        return out.astype(np.float64)
    return out


def _advice(name: str, x: Array) -> str:
    if name == "probabilities" and (x.ndim == 1 or x.shape[-1] == 1):
        return " With p the probability of class 1, pass `np.column_stack([1 - p, p])`."
    if name == "logits" and (x.ndim == 1 or x.shape[-1] == 1):
        return " With z the logit of class 1, pass `np.column_stack([0 * z, z])`."
    return ""


def _finite(x: Array, name: str, *, hint: str = "") -> Array:
    # A sum in float64 cannot overflow on 16-bit input, so no mask is made for good data.
    if x.dtype == np.float16 and np.isfinite(np.add.reduce(x, axis=None, dtype=np.float64)):
        return x
    return checks.finite(x, name, hint=hint)
