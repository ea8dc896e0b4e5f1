"""Grades in words, such as CORRECT, as written by graders of language models."""

from collections.abc import Mapping
from typing import Final

#: Grades by word in lower case. Inspect writes C, P, I and N for correct, partial, incorrect and
#: no answer.
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
    """Return the grade for a word, or None if the word is not a grade."""
    return GRADE_BY_WORD.get(word.strip().lower())
