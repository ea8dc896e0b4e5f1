"""Parse numbers in texts, with missing entries, percent signs and decimal commas."""

from collections.abc import Sequence

import numpy as np

from abstain.typing import Array, FloatArray

#: Texts for a missing number, in lower case.
_MISSING_WORDS = frozenset({"", "na", "n/a", "null", "none"})

#: Numbers in [0, 100] look like percentages if one is at least this large and most are integers.
_LARGE_PERCENTAGE, _SHARE_WHOLE = 50, 0.9


def parse_numbers(texts: Sequence[str]) -> FloatArray | None:
    """Parse numbers; return None if a text is not a number.

    Missing entries become NaN. If every number ends with a percent sign, the results are fractions.

    Examples
    --------
    >>> parse_numbers(["90%", "70.5%", "NA"]).tolist()
    [0.9, 0.705, nan]
    """
    words = [text.strip() for text in texts]
    is_missing = [word.lower() in _MISSING_WORDS for word in words]
    is_percent = are_percentages(words)
    numbers = [word.removesuffix("%") if is_percent else word for word in words]
    try:
        values = [
            np.nan if missing else float(number)
            for missing, number in zip(is_missing, numbers, strict=True)
        ]
    except ValueError:
        return None
    return np.array(values, dtype=np.float64) / (100.0 if is_percent else 1.0)


def are_percentages(texts: Sequence[str]) -> bool:
    """Return whether every text that is not missing ends with a percent sign."""
    present = [word for text in texts if (word := text.strip()).lower() not in _MISSING_WORDS]
    return bool(present) and all(word.endswith("%") for word in present)


def with_decimal_point(texts: Sequence[str]) -> list[str]:
    """Replace decimal commas by points; texts that contain a point are unchanged.

    Examples
    --------
    >>> with_decimal_point(["0,9", "1.000,5"])
    ['0.9', '1.000,5']
    """
    return [text.replace(",", ".") if "." not in text else text for text in texts]


def look_like_percentages(values: Array) -> bool:
    """Return whether numbers are probably percentages: mostly integers from 0 to 100."""
    finite = values[np.isfinite(values)] if values.dtype.kind == "f" else values
    if values.dtype.kind not in "fiu" or finite.size == 0:
        return False
    in_range = finite.min() >= 0 and _LARGE_PERCENTAGE <= finite.max() <= 100
    return bool(in_range and np.mean(finite == np.round(finite)) >= _SHARE_WHOLE)
