"""How far rows of probabilities may miss 1: what the rounding of their storage explains.

Told from the values themselves, since a file or a library that knows no bfloat16 hands them over
in a wider type: rounded to decimals, to significant digits, or to a narrower float.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from abstain.predictions.softmax import row_blocks
from abstain.typing import Array, BoolArray, FloatArray

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
