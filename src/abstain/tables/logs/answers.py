"""Graded answers of a language model, whatever tool graded them, and the table that they make."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from abstain._foundation.notes import READING, Note
from abstain.errors import FileFormatError
from abstain.tables.table import DataTable, from_polars

#: What stands in a cell of a log and can be a column.
Plain: TypeAlias = str | bool | int | float | None

#: A score of this name is a confidence, not a grade.
CONFIDENCE: Final = "confidence"
REFUSED: Final = "refused"

_HUGE: Final = 1 << 63


@dataclass(frozen=True)
class LoggedAnswer:
    """One answer: where it stands, how it was graded, and how sure the model was."""

    #: The question, the epoch and what else is known of it, by name.
    facts: Mapping[str, Plain]
    #: By the name of the scorer; None where it gave no grade.
    grades: Mapping[str, float | None]
    #: Higher is surer.
    confidence: Mapping[str, float] = field(default_factory=dict)
    #: The model gave no answer, by its own words or by a filter's.
    refused: bool = False


def number(value: object) -> float | None:
    """Return a number of a log in double precision; None for what is none."""
    if not isinstance(value, bool | int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def plain(fields: object, prefix: str) -> dict[str, Plain]:
    """Return what can be columns of the fields of a record, under names with this prefix."""
    found = fields.items() if isinstance(fields, dict) else ()
    values = {f"{prefix}.{k}": v for k, v in found if isinstance(v, str | int | float)}
    # What fits no integer of 64 bits is a name.
    return {k: str(v) if isinstance(v, int) and abs(v) >= _HUGE else v for k, v in values.items()}


def answer_table(
    answers: Sequence[LoggedAnswer], source: str, notes: Iterable[str] = ()
) -> DataTable:
    """Lay answers out as a table, which knows its grade and its confidence where there is one."""
    import polars as pl

    if not answers:
        raise FileFormatError(
            f"{source} holds no answers: no sample was finished, or none was logged"
        )
    facts = dict.fromkeys(name for a in answers for name in a.facts)
    grades = tuple(dict.fromkeys(name for a in answers for name in a.grades))
    confidence = tuple(dict.fromkeys(name for a in answers for name in a.confidence))
    columns: dict[str, pl.Series] = {
        name: pl.Series(name, [a.facts.get(name) for a in answers], strict=False) for name in facts
    }
    for name in grades:
        columns[name] = pl.Series(name, [_grade(a, name) for a in answers], pl.Float64)
    for name in confidence:
        # Whatever its tokens say, a refusal is no answer that one could be sure of.
        values = [None if a.refused else a.confidence.get(name) for a in answers]
        columns[name] = pl.Series(name, values, pl.Float64)
    refused = sum(a.refused for a in answers)
    if refused and REFUSED not in columns:
        columns[REFUSED] = pl.Series(REFUSED, [a.refused for a in answers])
    meant = {"confidence": confidence[0]} if confidence else {}
    if len(grades) == 1:
        meant["correct"] = grades[0]
    texts = [*notes, *_confidence(confidence)]
    if refused:
        texts.append(
            f"{refused:,} of {len(answers):,} answers are refusals, which have no confidence"
        )
    texts += _ungraded(answers, grades)
    return replace(
        from_polars(pl.DataFrame(columns), source),
        meant=meant,
        grades=grades if len(grades) > 1 else (),
        may_lack_grades=True,
        notes=tuple(Note(READING, text) for text in texts),
    )


def _grade(answer: LoggedAnswer, name: str) -> float | None:
    """Return the grade; a refusal without one gets 0, because nothing was answered."""
    grade = answer.grades.get(name)
    has_grade = grade is not None and not math.isnan(grade)
    return grade if has_grade else 0.0 if answer.refused else None


def _confidence(names: tuple[str, ...]) -> list[str]:
    if not names:
        note = (
            "the log holds no confidence: have the model's log-probabilities logged, or a grader "
            f"write what the model stated under {CONFIDENCE!r}"
        )
        return [note]
    return [f"confidences in the log: {', '.join(names)}"] if len(names) > 1 else []


def _ungraded(answers: Sequence[LoggedAnswer], names: Sequence[str]) -> list[str]:
    """Return a note for each grade that some graded answers lack."""
    graded = [answer for answer in answers if answer.grades]
    counts = {name: sum(_grade(answer, name) is None for answer in graded) for name in names}
    return [
        f"{count:,} of {len(answers):,} answers have no grade in {name!r} (unscored, or the grader "
        "failed): rows without a grade can only be left out"
        for name, count in counts.items()
        if count
    ]
