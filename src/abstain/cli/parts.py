"""Parts of one file by the values of its columns: `split=val`."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from abstain.cli.columns import Columns
from abstain.cli.reading import read_scored
from abstain.errors import InputError, UnknownNameError, suggest
from abstain.tables import Reading
from abstain.tables.files import open_table
from abstain.typing import Split

#: So many values of a column are listed.
_LISTED = 12


class Picked(NamedTuple):
    """One value of a column."""

    column: str
    value: str

    def __str__(self) -> str:
        """Write it as it was given."""
        return f"{self.column}={self.value}"


def picked(text: str) -> Picked | None:
    """Read COLUMN=VALUE; None for what is no such thing, or names a file that exists."""
    column, mark, value = text.partition("=")
    if not (mark and column and value) or Path(text).exists():
        return None
    return Picked(column, value)


def picks_of(texts: Sequence[str], flag: str) -> tuple[Picked, ...]:
    """Read several, all of which a row must have: one value for each column."""
    found = [Picked(*text.split("=", 1)) for text in texts if text.partition("=")[2]]
    if len(found) < len(texts) or not all(pick.column for pick in found):
        wrong = next(text for text in texts if picked(text) is None)
        msg = f"{flag} takes COLUMN=VALUE, such as split=val; got {wrong!r}"
        raise InputError(msg)
    if len({pick.column for pick in found}) < len(found):
        msg = f"{flag} takes one value for each column; got {', '.join(map(str, found))}"
        raise InputError(msg)
    return tuple(found)


def read_picked(path: Path, columns: Columns, score: str, picks: Sequence[Picked]) -> Reading:
    """Read the rows that have all these values, split by the other columns of --by."""
    names = [pick.column for pick in picks]
    by = (*names, *(name for name in columns.by if name not in names))
    reading = read_scored(path, replace(columns, by=by), score)
    found = {s: p for s, p in reading.items() if all(dict(s)[c] == v for c, v in picks)}
    if not found:
        raise UnknownNameError(_nothing(path, picks, list(reading)))
    return Reading(found, reading.notes, reading.source, reading.warnings)


def mixed(path: Path, by: Sequence[str], picks: Sequence[Picked]) -> tuple[str, ...]:
    """Say that a rule was chosen on several values of --by together."""
    fixed = {pick.column for pick in picks}
    kinds = {} if path.is_dir() or not set(by) - fixed else open_table(path).kinds
    for name in (n for n in by if n not in fixed and n in kinds):
        count = len(open_table(path).load([name])[name].distinct()[1])
        if count > 1:
            said = f"the rule was chosen on all {count} values of {name!r} together"
            return (f"{path.name}: {said}; --calibrate {name}=VALUE chooses on one",)
    return ()


def _nothing(path: Path, picks: Sequence[Picked], splits: list[Split]) -> str:
    for pick in picks:
        values = list(dict.fromkeys(dict(split)[pick.column] for split in splits))
        if pick.value in values:
            continue
        listed = ", ".join(map(repr, values[:_LISTED])) + (", ..." if values[_LISTED:] else "")
        return (
            f"{path.name}: no row has {str(pick)!r}; {pick.column!r} has {listed}."
            f"{suggest(pick.value, values)}"
        )
    return f"{path.name}: no row has {' and '.join(map(str, picks))}"
