"""Validated class scores and Monte Carlo samples of a model.

The caller specifies whether values are logits or probabilities. Whether values are logits is never
inferred from the values. `Predictions` stores NumPy arrays. Results have the array library and
device of the input.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import is_computed_by_own_library, is_torch, namespace, to_numpy
from abstain._foundation.option_format import format_option
from abstain.errors import DomainError, InputError, MissingInputError, ShapeError
from abstain.predictions.softmax import log_scores, log_softmax, row_blocks, widest_float_dtype
from abstain.typing import AnyArray, Array, BoolArray, FloatArray, IntArray

_DETERMINISTIC = ("logits", "probabilities")
_SAMPLED = ("logit_samples", "probability_samples")
_SHAPES = {2: "(n, K)", 3: "(n, S, K)"}


@dataclass(frozen=True, eq=False)
class ClassScores:
    """Logits or probabilities, shape (n, K), or Monte Carlo samples, shape (n, S, K)."""

    #: The values in their original dtype, as a NumPy array unless `keep_library` was passed.
    values: AnyArray
    #: True if the values are logits, False if they are probabilities.
    are_logits: bool
    #: Array of the library and device to which results are converted, or None for NumPy.
    origin: AnyArray | None = None
    #: Remark about an accepted deviation, such as rounded rows, or an empty string.
    note: str = ""

    @property
    def namespace(self) -> Any:
        """The array-API namespace of the values."""
        return namespace(self.values)

    def log_scores(self, rows: slice = slice(None)) -> AnyArray:
        """Return float64 log-scores of the rows. Their softmax is the class probability."""
        return log_scores(self.values[rows, ...], are_logits=self.are_logits, xp=self.namespace)

    def top_classes(self) -> IntArray:
        """Return the class with the largest score in each row, or the first class in a tie."""
        values = self.values
        # Processors compare float32 directly, but convert float16 for each comparison.
        compare_dtype = np.float32 if values.dtype == np.float16 else values.dtype
        classes = np.empty(len(values), dtype=np.int64)
        # The rows are processed in blocks, because `argmax` copies read-only arrays.
        for rows in row_blocks(*values.shape):
            classes[rows] = values[rows].astype(compare_dtype, copy=False).argmax(axis=1)
        return classes

    def log_probabilities(self, rows: slice = slice(None)) -> AnyArray:
        """Return float64 log-probabilities of the rows."""
        return log_softmax(self.log_scores(rows), xp=self.namespace)


@dataclass(frozen=True)
class Permissions:
    """Invalid inputs that are accepted on request."""

    #: Accept rows of probabilities whose sum differs from 1 by more than the rounding error.
    renormalize: bool = False
    #: Accept logits of -inf, which mark classes that are impossible for a sample.
    allow_masked: bool = False
    #: Accept samples that have neither labels nor losses.
    allow_unlabeled: bool = False


def validate_class_scores(
    logits: AnyArray | None,
    probabilities: AnyArray | None,
    *,
    samples: bool = False,
    keep_library: bool = False,
    permissions: Permissions | None = None,
) -> ClassScores:
    """Validate logits or probabilities, with or without an axis of Monte Carlo samples.

    The values are NumPy arrays by default. With `keep_library`, arrays on a device and arrays with
    gradients or traces are not converted. All other arrays are converted to NumPy. Results can be
    converted back to the original library.
    """
    permissions = permissions or Permissions()
    logits_name, probabilities_name = _SAMPLED if samples else _DETERMINISTIC
    if logits is not None and probabilities is not None:
        raise InputError(
            f"give either `{logits_name}` or `{probabilities_name}`, not both; drop one of them"
        )
    if logits is None and probabilities is None:
        raise MissingInputError(
            f"one of `{logits_name}` and `{probabilities_name}` is needed; got neither"
        )
    are_logits = logits is not None
    values: AnyArray = logits if are_logits else probabilities
    name = logits_name if are_logits else probabilities_name
    check = _check_logits if are_logits else _check_probabilities
    ndim = 3 if samples else 2
    stays_in_library = is_computed_by_own_library(values) or _is_torch_func_tensor(values)
    if not (keep_library and stays_in_library):
        checked, note = check(values, name, ndim, permissions)
        origin = values if keep_library else None
        return ClassScores(checked, are_logits, origin, note)
    _check_shape(values.shape, name, ndim)
    if _is_valid_on_device(values, are_logits=are_logits) is False:
        # The check for NumPy arrays raises an error that describes the first invalid entry.
        check(values, name, ndim, permissions)
    return ClassScores(values, are_logits, values)


def _is_torch_func_tensor(x: AnyArray) -> bool:
    """Return whether `x` is a tensor inside a transformation of `torch.func`."""
    if not is_torch(x):
        return False
    try:
        x.data_ptr()
    except RuntimeError:
        return True
    return False


def _is_valid_on_device(x: AnyArray, *, are_logits: bool) -> bool | None:
    """Return whether every value is valid, or None if the array is traced."""
    xp = namespace(x)
    if not xp.isdtype(x.dtype, ("bool", "integral", "real floating")):
        return False
    sum_dtype = widest_float_dtype(xp, x)
    floats = x if xp.isdtype(x.dtype, "real floating") else xp.astype(x, sum_dtype)
    is_valid = xp.all(xp.isfinite(floats))
    if not are_logits:
        deviation = xp.abs(xp.sum(floats, axis=-1, dtype=sum_dtype) - 1.0)
        tolerance = storage_tolerance(x.dtype, x.shape[-1])
        is_valid = is_valid & (xp.min(floats) >= 0.0) & (xp.max(deviation) <= tolerance)
    try:
        return bool(is_valid)
    except (TypeError, RuntimeError):
        # Under jax.jit or torch.func.vmap, arrays have shapes and types but no values.
        return None


def _check_logits(x: AnyArray, name: str, ndim: int, permissions: Permissions) -> tuple[Array, str]:
    """Return valid logits as a NumPy array, with an empty remark."""
    values = _as_floats(x, name, ndim)
    if not permissions.allow_masked:
        hint = (
            f"If -inf masks a class, pass {format_option('masked', value=True)}, or use "
            "a large negative logit (-1e4)."
        )
        return _check_finite(values, name, hint=hint), ""
    is_masked = values == -np.inf
    is_invalid = ~(np.isfinite(values) | is_masked)
    checks.reject_entries(name, "must be finite, or -inf for a masked class", values, is_invalid)
    is_fully_masked = is_masked.all(axis=-1)
    if is_fully_masked.any():
        index = tuple(int(i) for i in np.argwhere(is_fully_masked)[0])
        raise DomainError(
            f"`{name}` must leave each sample a class that is not masked; got only -inf at index "
            f"{index[0] if len(index) == 1 else index}. Drop such samples."
        )
    return values, ""


def _check_probabilities(
    x: AnyArray, name: str, ndim: int, permissions: Permissions
) -> tuple[Array, str]:
    """Return valid probabilities as a NumPy array, with a remark if rows do not sum to 1."""
    values = _check_finite(_as_floats(x, name, ndim), name)
    if values.min() < 0:
        hint = "If these are logits, pass them as `logits` (or `logit_samples`)."
        checks.reject_entries(name, "must not be negative", values, values < 0, hint=hint)
    # NumPy has no bfloat16, so the dtype of the original array defines the tolerance.
    tolerance = storage_tolerance(getattr(x, "dtype", values.dtype), values.shape[-1])
    deviation = np.abs(values.sum(axis=-1, dtype=np.float64) - 1)
    is_off = deviation > tolerance
    if not is_off.any():
        return values, ""
    rows = values[is_off]
    message = f"{int(is_off.sum()):,} rows of `{name}` miss 1 by up to {deviation.max():.2g}"
    if permissions.renormalize and bool(rows.any(axis=-1).all()):
        return values, f"{message}: each row is divided by its sum, as requested"
    rounding = detect_rounding(rows)
    if rounding is not None and deviation.max() <= rounding.tolerance * (1 + 1e-9):
        cause = f"as rounding to {rounding.description} explains"
        return values, f"{message}, {cause}: each row is divided by its sum"
    limit = tolerance if rounding is None else max(tolerance, rounding.tolerance)
    raise DomainError(_sum_error_message(values, name, deviation > limit, limit))


def _sum_error_message(x: Array, name: str, is_off: BoolArray, limit: float) -> str:
    """Return the error message for rows whose sum is not 1."""
    position = tuple(int(i) for i in np.argwhere(is_off)[0])
    total = float(x[position].sum(dtype=np.float64))
    advice = (
        f"if each row is to be divided by its sum, pass {format_option('renormalize', value=True)}."
    )
    if total == 0:
        advice = "a row of zeros is not a distribution: drop it, or use a uniform distribution."
    return (
        f"`{name}` must sum to 1 over the classes (within {limit:.1e}); got {total:.6g} at index "
        f"{position[0] if len(position) == 1 else position} ({int(is_off.sum())} such rows). If "
        f"these are logits, pass them as `logits` (or `logit_samples`); {advice}"
    )


def _check_shape(shape: tuple[int, ...], name: str, ndim: int) -> None:
    """Raise a ShapeError if class scores have a wrong number of axes, classes or samples."""
    shape_ = tuple(shape)
    if len(shape_) != ndim:
        raise ShapeError(
            f"`{name}` must have shape {_SHAPES[ndim]}; got shape {shape_}.{_advice(name, shape_)}"
        )
    if 0 in shape_:
        raise ShapeError(f"`{name}` is empty; got shape {shape_}, at least one sample is needed")
    if shape_[-1] < 2:
        raise ShapeError(
            f"`{name}` must have at least two classes; got shape {shape_}.{_advice(name, shape_)}"
        )
    if ndim == 3 and shape_[1] < 2:
        raise ShapeError(f"`{name}` must hold at least two samples a row; got shape {shape_}")


def _as_floats(x: AnyArray, name: str, ndim: int) -> Array:
    """Convert the values to a NumPy array of floats with at most 64 bits."""
    values = to_numpy(x, name)
    _check_shape(values.shape, name, ndim)
    if values.dtype.kind not in "biuf":
        raise DomainError(
            f"`{name}` must hold numbers; got {values.dtype} values such as {values.flat[0]!r}"
        )
    if values.dtype.kind != "f" or values.dtype.itemsize > 8:
        return values.astype(np.float64)
    return values


def _advice(name: str, shape: tuple[int, ...]) -> str:
    """Return a hint if scores of only one class are passed, or an empty string."""
    if len(shape) != 1 and shape[-1:] != (1,):
        return ""
    if name == "probabilities":
        return " With p the probability of class 1, pass `np.column_stack([1 - p, p])`."
    if name == "logits":
        return " With z the logit of class 1, pass `np.column_stack([0 * z, z])`."
    return ""


def _check_finite(x: Array, name: str, *, hint: str = "") -> Array:
    # Finite 16-bit values cannot overflow a float64 sum, so a finite sum needs no further check.
    if x.dtype == np.float16 and np.isfinite(np.add.reduce(x, axis=None, dtype=np.float64)):
        return x
    return checks.finite(x, name, hint=hint)


# ------------------------------------------------------------------------------- rounded rows
# Files and libraries without bfloat16 store rounded values in a wider type. Rounding is therefore
# detected from the values.

# Tolerance for the sum of a row of probabilities. The first part is the rounding error of the
# storage type, twice the spacing near 1. The second part is 1e-5 per class, because published
# files clip each entry at 1e-5.
_STORAGE_TOLERANCE = {"float16": 2e-3, "bfloat16": 1.6e-2}
_WIDE_TOLERANCE = 1e-4
_TOLERANCE_PER_CLASS = 1e-5
_MAX_STORAGE_TOLERANCE = 2e-2

#: Numbers of digits that are tested. `_WIDE_TOLERANCE` covers more digits.
_DIGITS = (2, 3, 4, 5)
#: Upper bound of the tolerance for any number of classes.
_MAX_ROUNDING_TOLERANCE = 0.5


@dataclass(frozen=True)
class Rounding:
    """A type of rounding, and the tolerance for the sum of a rounded row."""

    description: str
    tolerance: float


def storage_tolerance(dtype: object, n_classes: int) -> float:
    """Return the tolerance for sums of probabilities with this dtype."""
    base = _STORAGE_TOLERANCE.get(str(dtype).rpartition(".")[2], _WIDE_TOLERANCE)
    return float(min(base + _TOLERANCE_PER_CLASS * n_classes, _MAX_STORAGE_TOLERANCE))


def detect_rounding(rows: Array) -> Rounding | None:
    """Detect how the probabilities were rounded. The result is None for unrounded probabilities.

    Parameters
    ----------
    rows : ndarray of shape (m, K)
        Non-negative probabilities.

    Returns
    -------
    Rounding or None
        The coarsest rounding that explains all entries, with the maximum total error of K entries.

    Examples
    --------
    >>> import numpy as np
    >>> detect_rounding(np.array([[0.333, 0.333, 0.333], [0.1, 0.9, 0.0]]))
    Rounding(description='3 decimals', tolerance=0.0015)
    """
    for description, tolerance, is_rounded in _possible_roundings(rows.shape[-1]):
        if all(bool(is_rounded(rows[block]).all()) for block in row_blocks(*rows.shape)):
            return Rounding(description, min(tolerance, _MAX_ROUNDING_TOLERANCE))
    return None


def _possible_roundings(classes: int) -> Iterator[tuple[str, float, Callable[[Array], BoolArray]]]:
    """Yield the description, tolerance and test of each type of rounding, coarsest first."""
    # A value with two decimals also passes the test for three, so the first match is correct.
    for digits in _DIGITS:
        unit = 10.0**-digits
        yield f"{digits} decimals", classes * unit / 2, _has_decimals(digits)
    for digits in _DIGITS:
        yield f"{digits} significant digits", 5 * 10.0**-digits, _has_significant_digits(digits)
    for name in ("bfloat16", "float16"):
        yield name, storage_tolerance(name, classes), _has_16_bits(name)


def _is_nearly_integer(scaled: FloatArray, error: FloatArray | float) -> BoolArray:
    """Return a mask of the numbers whose distance from an integer is at most `error`."""
    is_near: BoolArray = np.abs(scaled - np.rint(scaled)) <= error
    return is_near


def _has_decimals(digits: int) -> Callable[[Array], BoolArray]:
    """Return a function that tests whether numbers are rounded to `digits` decimals."""

    def fits(x: Array) -> BoolArray:
        error = 10.0**digits * np.finfo(x.dtype).eps
        # If a dtype has fewer digits than tested, every number would pass the test.
        if error > 0.01:
            return np.zeros(1, dtype=np.bool_)
        return _is_nearly_integer(x.astype(np.float64) * 10.0**digits, error)

    return fits


def _has_significant_digits(digits: int) -> Callable[[Array], BoolArray]:
    """Return a function that tests whether numbers are rounded to `digits` significant digits."""

    def fits(x: Array) -> BoolArray:
        error = 10.0**digits * np.finfo(x.dtype).eps
        if error > 0.01:
            return np.zeros(1, dtype=np.bool_)
        wide = x[x > 0].astype(np.float64)
        leading = np.floor(np.log10(wide))
        return _is_nearly_integer(wide * 10.0 ** (digits - 1 - leading), error)

    return fits


def _has_16_bits(name: str) -> Callable[[Array], BoolArray]:
    """Return a function that tests whether the 16-bit type `name` represents numbers exactly."""

    def fits(x: Array) -> BoolArray:
        single = x.astype(np.float32)
        if name == "float16":
            narrow = single.astype(np.float16).astype(np.float32)
            return np.asarray((narrow == single) & (single == x))
        # A bfloat16 is the upper half of a float32, so the lower 16 bits are 0.
        lower = np.ascontiguousarray(single).view(np.uint32) & np.uint32(0xFFFF)
        return np.asarray((lower == 0) & (single == x))

    return fits
