"""What a model puts out: class scores and Monte-Carlo samples, validated, in their own precision.

Whether they are logits or probabilities is said by the caller, never guessed from the values.
Records keep them as NumPy, because everything that reads a record works on the host; functions
of plain arrays ask for the caller's own library and device.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import is_torch, namespace, to_numpy
from abstain._foundation.gradients import is_computed_by_own_library
from abstain._foundation.option_format import format_option
from abstain.errors import DomainError, InputError, MissingInputError, ShapeError
from abstain.predictions.softmax import log_scores, log_softmax, row_blocks, widest
from abstain.typing import AnyArray, Array, BoolArray, FloatArray, IntArray

_DETERMINISTIC = ("logits", "probabilities")
_SAMPLED = ("logit_samples", "probability_samples")
_AXES = {2: "(n, K)", 3: "(n, S, K)"}


@dataclass(frozen=True, eq=False)
class ClassScores:
    """Logits or probabilities of one kind, shape (n, K) or (n, S, K)."""

    #: As given: the dtype of the storage. NumPy unless the caller's library was asked for.
    values: AnyArray
    #: Logits when true, probabilities when false.
    are_logits: bool
    #: The array whose library and device results take; NumPy's without.
    origin: AnyArray | None = None
    #: What was accepted that is worth a sentence, such as rows that were rounded; or empty.
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
        # Processors compare float32 directly and float16 through a conversion a comparison.
        wide = np.float32 if values.dtype == np.float16 else values.dtype
        out = np.empty(len(values), dtype=np.int64)
        # By blocks, as NumPy copies what is read-only before it looks for the largest.
        for rows in row_blocks(*values.shape):
            out[rows] = values[rows].astype(wide, copy=False).argmax(axis=1)
        return out

    def log_probabilities(self, rows: slice = slice(None)) -> AnyArray:
        """Return some rows as float64 log-probabilities."""
        return log_softmax(self.log_scores(rows), xp=self.namespace)


@dataclass(frozen=True)
class Permissions:
    """What is taken only where it is asked for."""

    #: Rows of probabilities that miss 1 by more than rounding explains.
    renormalize: bool = False
    #: Logits of -inf, for classes that a sample cannot have.
    masked: bool = False
    #: Samples of which nobody knows what is right.
    unlabeled: bool = False


def class_scores(
    logits: AnyArray | None,
    probabilities: AnyArray | None,
    *,
    samples: bool = False,
    keep_library: bool = False,
    accept: Permissions | None = None,
) -> ClassScores:
    """Validate logits or probabilities, one of the two, with or without a sample axis.

    They become NumPy. With `keep_library`, those on a device and those that are differentiated
    or traced stay what they are, and results of the others go back to the caller's library.
    """
    accept = accept or Permissions()
    first, second = _SAMPLED if samples else _DETERMINISTIC
    if logits is not None and probabilities is not None:
        raise InputError(f"give either `{first}` or `{second}`, not both; drop one of them")
    if logits is None and probabilities is None:
        raise MissingInputError(f"one of `{first}` and `{second}` is needed; got neither")
    are_logits = logits is not None
    given: AnyArray = logits if are_logits else probabilities
    name, check = (first, _logits) if are_logits else (second, _probabilities)
    axes = 3 if samples else 2
    if not keep_library or not (is_computed_by_own_library(given) or _is_wrapped(given)):
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


def _logits(x: AnyArray, name: str, axes: int, accept: Permissions) -> tuple[Array, str]:
    out = _floats(x, name, axes)
    if not accept.masked:
        hint = (
            f"If -inf masks a class, say so with {format_option('masked', value=True)}, or give it "
            "a large negative logit (-1e4)."
        )
        return _finite(out, name, hint=hint), ""
    hidden = out == -np.inf
    bad = ~(np.isfinite(out) | hidden)
    checks.reject_entries(name, "must be finite, or -inf for a masked class", out, bad)
    nothing = hidden.all(axis=-1)
    if nothing.any():
        row = tuple(int(i) for i in np.argwhere(nothing)[0])
        raise DomainError(
            f"`{name}` must leave each sample a class that is not masked; got only -inf at index "
            f"{row[0] if len(row) == 1 else row}. Drop such samples."
        )
    return out, ""


def _probabilities(x: AnyArray, name: str, axes: int, accept: Permissions) -> tuple[Array, str]:
    out = _finite(_floats(x, name, axes), name)
    if out.min() < 0:
        hint = "If these are logits, pass them as `logits` (or `logit_samples`)."
        checks.reject_entries(name, "must not be negative", out, out < 0, hint=hint)
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
    advice = (
        f"if each row is to be divided by its sum, pass {format_option('renormalize', value=True)}."
    )
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
        raise ShapeError(
            f"`{name}` must have shape {_AXES[axes]}; got shape {found}.{_advice(name, found)}"
        )
    if 0 in found:
        raise ShapeError(f"`{name}` is empty; got shape {found}, at least one sample is needed")
    if found[-1] < 2:
        raise ShapeError(
            f"`{name}` must have at least two classes; got shape {found}.{_advice(name, found)}"
        )
    if axes == 3 and found[1] < 2:
        raise ShapeError(f"`{name}` must hold at least two samples a row; got shape {found}")


def _floats(x: AnyArray, name: str, axes: int) -> Array:
    out = to_numpy(x, name)
    _shape(out.shape, name, axes)
    if out.dtype.kind not in "biuf":
        raise DomainError(
            f"`{name}` must hold numbers; got {out.dtype} values such as {out.flat[0]!r}"
        )
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


# ------------------------------------------------------------------------------- rounded rows
# How far rows of probabilities may miss 1 is told from the values themselves, since a file or a
# library that knows no bfloat16 hands them over in a wider type.

# A row of probabilities may miss 1 by its storage's rounding (twice the spacing near 1), by
# clipping each entry to 1e-5 as published files do, and by the last digit of wider types.
_STORAGE = {"float16": 2e-3, "bfloat16": 1.6e-2}
_WIDE = 1e-4
_PER_CLASS = 1e-5
_LARGEST = 2e-2

#: Digits that people and programs round to; beyond, `_WIDE` covers what is lost.
_DIGITS = (2, 3, 4, 5)
#: However many classes are rounded, a row that misses 1 by more is no distribution.
_MOST = 0.5


@dataclass(frozen=True)
class Rounding:
    """How values were rounded, in words, and how far the sum of a row may be off for it."""

    words: str
    slack: float


def storage_slack(dtype: object, classes: int) -> float:
    """Return how far a row of a type may miss 1 whatever its values are."""
    base = _STORAGE.get(str(dtype).rpartition(".")[2], _WIDE)
    return float(min(base + _PER_CLASS * classes, _LARGEST))


def rounding_of(rows: Array) -> Rounding | None:
    """Find the rounding that all entries of some rows share; None where there is none.

    Parameters
    ----------
    rows : ndarray of shape (m, K)
        Non-negative probabilities.

    Returns
    -------
    Rounding or None
        The coarsest that fits, with the most that rounding each of K entries can add up to.

    Examples
    --------
    >>> import numpy as np
    >>> rounding_of(np.array([[0.333, 0.333, 0.333], [0.1, 0.9, 0.0]]))
    Rounding(words='3 decimals', slack=0.0015)
    """
    for words, slack, fits in _candidates(rows.shape[-1]):
        if all(bool(fits(rows[block]).all()) for block in row_blocks(*rows.shape)):
            return Rounding(words, min(slack, _MOST))
    return None


def _candidates(classes: int) -> Iterator[tuple[str, float, Callable[[Array], BoolArray]]]:
    """Yield each rounding with its words, its slack and its test, the coarsest first."""
    # What has two decimals has three too, so the first that fits is what was done.
    for digits in _DIGITS:
        unit = 10.0**-digits
        yield f"{digits} decimals", classes * unit / 2, _decimals(digits)
    for digits in _DIGITS:
        yield f"{digits} significant digits", 5 * 10.0**-digits, _significant(digits)
    for name in ("bfloat16", "float16"):
        yield name, storage_slack(name, classes), _narrow(name)


def _near_whole(scaled: FloatArray, error: FloatArray | float) -> BoolArray:
    """Tell which numbers are whole but for the error of their storage."""
    out: BoolArray = np.abs(scaled - np.rint(scaled)) <= error
    return out


def _decimals(digits: int) -> Callable[[Array], BoolArray]:
    def fits(x: Array) -> BoolArray:
        error = 10.0**digits * np.finfo(x.dtype).eps
        # A type that hardly knows so many digits fits any of them.
        if error > 0.01:
            return np.zeros(1, dtype=np.bool_)
        return _near_whole(x.astype(np.float64) * 10.0**digits, error)

    return fits


def _significant(digits: int) -> Callable[[Array], BoolArray]:
    def fits(x: Array) -> BoolArray:
        error = 10.0**digits * np.finfo(x.dtype).eps
        if error > 0.01:
            return np.zeros(1, dtype=np.bool_)
        wide = x[x > 0].astype(np.float64)
        leading = np.floor(np.log10(wide))
        return _near_whole(wide * 10.0 ** (digits - 1 - leading), error)

    return fits


def _narrow(name: str) -> Callable[[Array], BoolArray]:
    def fits(x: Array) -> BoolArray:
        single = x.astype(np.float32)
        if name == "float16":
            narrow = single.astype(np.float16).astype(np.float32)
            return np.asarray((narrow == single) & (single == x))
        # bfloat16 is the upper half of a float32.
        lower = np.ascontiguousarray(single).view(np.uint32) & np.uint32(0xFFFF)
        return np.asarray((lower == 0) & (single == x))

    return fits
