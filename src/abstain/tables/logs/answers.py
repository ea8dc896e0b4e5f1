"""Conversion of graded answers of a language model to a table."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

import numpy as np

from abstain._foundation.notes import READING, Note
from abstain.errors import FileFormatError
from abstain.tables.table import DataTable, from_polars

#: Type of a value in a column of a log.
Scalar: TypeAlias = str | bool | int | float | None

#: Name of a score that contains a confidence instead of a grade.
CONFIDENCE: Final = "confidence"
REFUSED: Final = "refused"

#: Integers of at least this size do not fit in 64 bits.
_INT64_LIMIT: Final = 1 << 63


@dataclass(frozen=True)
class LoggedAnswer:
    """An answer of a language model with its grades and confidences."""

    #: Attributes of the answer, such as the question and the epoch, by name.
    attributes: Mapping[str, Scalar]
    #: Grades by the name of the scorer, or None if the scorer gave no grade.
    grades: Mapping[str, float | None]
    #: Confidences by name. A higher value is more confident.
    confidence: Mapping[str, float] = field(default_factory=dict)
    #: Whether the model refused to answer, or a filter blocked its answer.
    is_refusal: bool = False


def to_float(value: object) -> float | None:
    """Convert a number in a log to double precision. Return None for other values."""
    if not isinstance(value, bool | int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def scalar_fields(fields: object, prefix: str) -> dict[str, Scalar]:
    """Return the fields of a record whose values are texts or numbers.

    The prefix is added to the names of the fields.
    """
    scalars: dict[str, Scalar] = {}
    for name, value in fields.items() if isinstance(fields, dict) else ():
        if isinstance(value, int) and abs(value) >= _INT64_LIMIT:
            scalars[f"{prefix}.{name}"] = str(value)
        elif isinstance(value, str | int | float):
            scalars[f"{prefix}.{name}"] = value
    return scalars


def answer_table(
    answers: Sequence[LoggedAnswer], source: str, notes: Iterable[str] = ()
) -> DataTable:
    """Return a table of answers.

    The table states which columns are grades and confidences.
    """
    import polars as pl

    if not answers:
        raise FileFormatError(
            f"{source} contains no answers: no sample was finished, or none was logged"
        )
    attribute_names = _distinct_keys(answer.attributes for answer in answers)
    grade_names = _distinct_keys(answer.grades for answer in answers)
    confidence_names = _distinct_keys(answer.confidence for answer in answers)
    columns: dict[str, pl.Series] = {}
    for name in attribute_names:
        attributes = [answer.attributes.get(name) for answer in answers]
        columns[name] = pl.Series(name, attributes, strict=False)
    for name in grade_names:
        grades = [_get_grade(answer, name) for answer in answers]
        columns[name] = pl.Series(name, grades, pl.Float64)
    for name in confidence_names:
        confidence = [_get_confidence(answer, name) for answer in answers]
        columns[name] = pl.Series(name, confidence, pl.Float64)
    n_refusals = sum(answer.is_refusal for answer in answers)
    if n_refusals and REFUSED not in columns:
        columns[REFUSED] = pl.Series(REFUSED, [answer.is_refusal for answer in answers])
    column_by_role = {"confidence": confidence_names[0]} if confidence_names else {}
    if len(grade_names) == 1:
        column_by_role["correct"] = grade_names[0]
    texts = [*notes, *_notes_on_confidence(confidence_names)]
    if n_refusals:
        texts.append(
            f"{n_refusals:,} of {len(answers):,} answers are refusals, which have no confidence"
        )
    texts += _notes_on_ungraded_answers(answers, grade_names)
    return replace(
        from_polars(pl.DataFrame(columns), source),
        column_by_role=column_by_role,
        grade_columns=grade_names if len(grade_names) > 1 else (),
        may_lack_grades=True,
        notes=tuple(Note(READING, text) for text in texts),
    )


def _distinct_keys(records: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the keys that occur in the records, in order of first appearance."""
    keys: dict[str, None] = {}
    for record in records:
        keys |= dict.fromkeys(record)
    return tuple(keys)


def _get_confidence(answer: LoggedAnswer, name: str) -> float | None:
    # The log-probabilities of a refusal are not a confidence in an answer.
    return None if answer.is_refusal else answer.confidence.get(name)


def _get_grade(answer: LoggedAnswer, name: str) -> float | None:
    """Return a grade. The grade of a refusal without a grade is 0."""
    grade = answer.grades.get(name)
    if grade is not None and not math.isnan(grade):
        return grade
    return 0.0 if answer.is_refusal else None


def _notes_on_confidence(names: tuple[str, ...]) -> list[str]:
    if not names:
        note = (
            "the log has no confidence: log the model's log-probabilities, or let a grader write "
            f"the confidence stated by the model under {CONFIDENCE!r}"
        )
        return [note]
    return [f"confidences in the log: {', '.join(names)}"] if len(names) > 1 else []


def _notes_on_ungraded_answers(answers: Sequence[LoggedAnswer], names: Sequence[str]) -> list[str]:
    """Return a note for each kind of grade that is missing for some answers."""
    answers_with_grades = [answer for answer in answers if answer.grades]
    notes = []
    for name in names:
        n_ungraded = sum(_get_grade(answer, name) is None for answer in answers_with_grades)
        if n_ungraded:
            notes.append(
                f"{n_ungraded:,} of {len(answers):,} answers have no grade in {name!r} (unscored, "
                "or the grader failed); these rows can only be dropped"
            )
    return notes


# -------------------------------------------------------------------------- reasons of Inspect
#: Value of a score that means "no answer".
_NO_ANSWER: Final = "N"
#: Values of `Score.reason` if the model refused or its completion is empty.
_WITHOUT_ANSWER: Final = frozenset({"refusal", "no_response"})
#: Values of `Score.reason` if the grader or the scorer failed, so that there is no grade.
_WITHOUT_GRADE: Final = frozenset({"grader_failed", "scoring_failed"})


def reason_of(reason: Any, metadata: Any) -> str | None:
    """Return the reason for a score.

    In logs of Inspect before 0.3.245, the reason is in the metadata.
    """
    if reason is None and isinstance(metadata, Mapping):
        reason = metadata.get("unscored_reason")
    return reason if isinstance(reason, str) else None


def is_refusal(value: Any, reason: str | None) -> bool:
    """Return whether a score states that the model gave no answer."""
    return value == _NO_ANSWER or reason in _WITHOUT_ANSWER


def is_ungraded(reason: str | None) -> bool:
    """Return whether the grade is missing because the grader or the scorer failed."""
    return reason in _WITHOUT_GRADE


# -------------------------------------------------------------------------- log-probabilities
def token_confidences(logprobs: Sequence[float]) -> dict[str, float]:
    """Return the mean, sum and minimum of the log-probabilities of the tokens of an answer."""
    if not logprobs:
        return {}
    values = np.asarray(logprobs, dtype=np.float64)
    return {
        "mean_logprob": float(values.mean()),
        "sum_logprob": float(values.sum()),
        "least_logprob": float(values.min()),
    }


def choice_confidences(logprobs: Sequence[float]) -> dict[str, float]:
    """Return the probability of the best choice and its margin to the second best choice.

    The probabilities of the choices are normalized. The margin is the difference between the two
    log-probabilities. If there are fewer than two choices, the result is empty.
    """
    descending = np.sort(np.asarray(logprobs, dtype=np.float64))[::-1]
    if descending.size < 2 or not np.isfinite(descending[0]):
        return {}
    with np.errstate(under="ignore"):
        probability = 1 / np.exp(descending - descending[0]).sum()
    margin = descending[0] - descending[1]
    return {"choice_probability": float(probability), "choice_margin": float(margin)}
