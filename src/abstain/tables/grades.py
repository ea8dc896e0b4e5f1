"""Grades in words, as graders of language models write them."""

from collections.abc import Mapping
from typing import Final

#: From a word, in lower case, to the grade. C, P, I and N are the letters of Inspect: correct,
#: partial, incorrect, no answer.
GRADE_BY_WORD: Final[Mapping[str, float]] = {
    **dict.fromkeys(("correct", "c", "yes", "y", "true", "pass", "passed", "right"), 1.0),
    **dict.fromkeys(("partial", "p"), 0.5),
    **dict.fromkeys(
        ("incorrect", "i", "n", "no", "false", "fail", "failed", "wrong"),
        0.0,
    ),
}

#: Examples for messages.
GRADE_EXAMPLES: Final = (
    "CORRECT and INCORRECT, C, P and I, yes and no, true and false, pass and fail"
)


def grade_of(word: str) -> float | None:
    """Return the grade that a word stands for, or None if it stands for none."""
    return GRADE_BY_WORD.get(word.strip().lower())
