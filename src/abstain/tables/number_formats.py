"""Conversion of texts such as "0.9", "90%", "NA" and "correct" to numbers and grades."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from abstain.typing import Array, FloatArray

#: Texts that stand for a missing number, in lower case.
_MISSING_WORDS = frozenset({"", "na", "n/a", "null", "none"})

#: Numbers look like percentages if they are in [0, 100], the largest is at least the first value,
#: and the share of integers is at least the second value.
_LARGE_PERCENTAGE, _SHARE_WHOLE = 50, 0.9


def parse_numbers(texts: Sequence[str]) -> FloatArray | None:
    """Parse texts as numbers, or return None if a text is not a number.

    Missing entries become NaN. If every number ends with a percent sign, the numbers are divided by
    100.

    Examples
    --------
    >>> parse_numbers(["90%", "70.5%", "NA"]).tolist()
    [0.9, 0.705, nan]
    """
    is_percent = are_percentages(texts)
    numbers = []
    for text in texts:
        word = text.strip()
        if word.lower() in _MISSING_WORDS:
            numbers.append(math.nan)
            continue
        if is_percent:
            word = word.removesuffix("%")
        try:
            numbers.append(float(word))
        except ValueError:
            return None
    values = np.array(numbers, dtype=np.float64)
    return values / 100.0 if is_percent else values


def are_percentages(texts: Sequence[str]) -> bool:
    """Return whether all texts, except missing entries, end with a percent sign."""
    words = [text.strip() for text in texts]
    present = [word for word in words if word.lower() not in _MISSING_WORDS]
    return bool(present) and all(word.endswith("%") for word in present)


def look_like_percentages(values: Array) -> bool:
    """Return whether numbers may be percentages: from 0 to 100 and mostly integers."""
    finite = values[np.isfinite(values)] if values.dtype.kind == "f" else values
    if values.dtype.kind not in "fiu" or finite.size == 0:
        return False
    in_range = finite.min() >= 0 and _LARGE_PERCENTAGE <= finite.max() <= 100
    return bool(in_range and np.mean(finite == np.round(finite)) >= _SHARE_WHOLE)


# ------------------------------------------------------------------------------------ grades
#: Grades by word in lower case. Inspect writes C for correct, P for partial, I for incorrect and N
#: for no answer.
GRADE_BY_WORD: Final[Mapping[str, float]] = {
    **dict.fromkeys(("correct", "c", "yes", "y", "true", "pass", "passed", "right"), 1.0),
    **dict.fromkeys(("partial", "p"), 0.5),
    **dict.fromkeys(
        ("incorrect", "i", "n", "no", "false", "fail", "failed", "wrong"),
        0.0,
    ),
}

#: Examples of such words for messages.
GRADE_EXAMPLES: Final = (
    "CORRECT and INCORRECT, C, P and I, yes and no, true and false, pass and fail"
)


def grade_of(word: str) -> float | None:
    """Return the grade for a word such as "correct", or None if the word is not a grade."""
    return GRADE_BY_WORD.get(word.strip().lower())
