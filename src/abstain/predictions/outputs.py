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
from abstain._foundation.option_words import option
from abstain.errors import DomainError, InputError, MissingInputError, ShapeError
from abstain.predictions._rounding import rounding_of, storage_slack
from abstain.predictions.softmax import log_scores, log_softmax, row_blocks, widest
from abstain.typing import AnyArray, Array, BoolArray, IntArray

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
    note : str
        What was accepted that is worth a sentence, such as rows that were rounded; or empty.
    """

    values: AnyArray
    are_logits: bool
    origin: AnyArray | None = None
    note: str = ""

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


@dataclass(frozen=True)
class Accepted:
    """What is taken only where it is asked for.

    Attributes
    ----------
    renormalize : bool
        Rows of probabilities that miss 1 by more than rounding explains.
    masked : bool
        Logits of -inf, for classes that a sample cannot have.
    """

    renormalize: bool = False
    masked: bool = False


def class_scores(
    logits: AnyArray | None,
    probabilities: AnyArray | None,
    *,
    samples: bool = False,
    keep_library: bool = False,
    accept: Accepted | None = None,
) -> ClassScores:
    """Validate logits or probabilities, one of the two, with or without a sample axis.

    They become NumPy. With `keep_library`, those on a device and those that are differentiated
    or traced stay what they are, and results of the others go back to the caller's library.
    """
    accept = accept or Accepted()
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
    if not keep_library or not (is_foreign(given) or _is_wrapped(given)):
        values, note = check(given, name, axes, accept)
        return ClassScores(values, are_logits, given if keep_library else None, note)
    _shape(given.shape, name, axes)
    if _sound_where_it_lies(given, are_logits=are_logits) is False:
        # The host's checks find the first offending entry and say what is wrong with it.
        check(given, name, axes, accept)
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
        slack = storage_slack(x.dtype, x.shape[-1])
        sound = sound & (xp.min(floats) >= 0.0) & (xp.max(off) <= slack)
    try:
        return bool(sound)
    except (TypeError, RuntimeError):
        # Under jax.jit or torch.func.vmap there are shapes and types but no values yet.
        return None


def _logits(x: AnyArray, name: str, axes: int, accept: Accepted) -> tuple[Array, str]:
    out = _floats(x, name, axes)
    if not accept.masked:
        hint = (
            f"If -inf masks a class, say so with {option('masked', value=True)}, or give it a "
            "large negative logit (-1e4)."
        )
        return _finite(out, name, hint=hint), ""
    hidden = out == -np.inf
    bad = ~(np.isfinite(out) | hidden)
    checks.refuse(name, "must be finite, or -inf for a masked class", out, bad)
    nothing = hidden.all(axis=-1)
    if nothing.any():
        row = tuple(int(i) for i in np.argwhere(nothing)[0])
        msg = (
            f"`{name}` must leave each sample a class that is not masked; got only -inf at index "
            f"{row[0] if len(row) == 1 else row}. Drop such samples."
        )
        raise DomainError(msg)
    return out, ""


def _probabilities(x: AnyArray, name: str, axes: int, accept: Accepted) -> tuple[Array, str]:
    out = _finite(_floats(x, name, axes), name)
    if out.min() < 0:
        hint = "If these are logits, pass them as `logits` (or `logit_samples`)."
        checks.refuse(name, "must not be negative", out, out < 0, hint=hint)
    # The host copy of a bfloat16 array is float32, so the caller's dtype is asked.
    slack = storage_slack(getattr(x, "dtype", out.dtype), out.shape[-1])
    missed = np.abs(out.sum(axis=-1, dtype=np.float64) - 1)
    off = missed > slack
    if not off.any():
        return out, ""
    rows = out[off]
    said = f"{int(off.sum()):,} rows of `{name}` miss 1 by up to {missed.max():.2g}"
    if accept.renormalize and bool(rows.any(axis=-1).all()):
        return out, f"{said}: each row is divided by its sum, as asked"
    rounding = rounding_of(rows)
    if rounding is not None and missed.max() <= rounding.slack * (1 + 1e-9):
        words = rounding.words
        return out, f"{said}, as rounding to {words} explains: each row is divided by its sum"
    limit = slack if rounding is None else max(slack, rounding.slack)
    raise DomainError(_no_distribution(out, name, missed > limit, limit))


def _no_distribution(x: Array, name: str, off: BoolArray, limit: float) -> str:
    """Say which row sums to something else than 1, and what can be done about it."""
    where = tuple(int(i) for i in np.argwhere(off)[0])
    total = float(x[where].sum(dtype=np.float64))
    advice = f"if each row is to be divided by its sum, pass {option('renormalize', value=True)}."
    if total == 0:
        advice = "a row of zeros is no answer: drop it, or give every class the same."
    return (
        f"`{name}` must sum to 1 over the classes (within {limit:.1e}); got {total:.6g} at index "
        f"{where[0] if len(where) == 1 else where} ({int(off.sum())} such rows). If these are "
        f"logits, pass them as `logits` (or `logit_samples`); {advice}"
    )


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
