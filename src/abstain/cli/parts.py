"""Parts of one file by the values of its columns, `split=val`, and what a rule is checked on."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from abstain._foundation.notes import COLUMNS, Note
from abstain.cli.options import Columns
from abstain.cli.predictions import has_column, read_scored
from abstain.errors import InputError, MissingInputError, UnknownNameError, suggest

if TYPE_CHECKING:
    from abstain.tables import Reading
    from abstain.typing import Split

    #: The parts of a file, and what was met on reading it.
    _Read: TypeAlias = tuple[dict[Split, Any], Sequence[Note]]

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
        raise InputError(f"{flag} takes COLUMN=VALUE, such as split=val; got {wrong!r}")
    if len({pick.column for pick in found}) < len(found):
        raise InputError(
            f"{flag} takes one value for each column; got {', '.join(map(str, found))}"
        )
    return tuple(found)


def read_picked(path: Path, columns: Columns, score: str, picks: Sequence[Picked]) -> "Reading":
    """Read the rows that have all these values, split by the other columns of --by."""
    names = [pick.column for pick in picks]
    by = (*names, *(name for name in columns.by if name not in names))
    reading = read_scored(path, replace(columns, by=by), score)
    found = {s: p for s, p in reading.items() if all(dict(s)[c] == v for c, v in picks)}
    if not found:
        raise UnknownNameError(_nothing(path, picks, list(reading)))
    return replace(reading, splits=found)


def mixed(path: Path, by: Sequence[str], picks: Sequence[Picked]) -> tuple[str, ...]:
    """Say that a rule was chosen on several values of --by together."""
    from abstain.tables.files import open_table

    fixed = {pick.column for pick in picks}
    kinds = {} if path.is_dir() or not set(by) - fixed else open_table(path).kind_by_column
    for name in (n for n in by if n not in fixed and n in kinds):
        count = len(open_table(path).load([name])[name].distinct()[1])
        if count > 1:
            said = f"the rule was chosen on all {count} values of {name!r} together"
            return (f"{path.name}: {said}; --calibrate {name}=VALUE chooses on one",)
    return ()


def _nothing(path: Path, picks: Sequence[Picked], splits: "list[Split]") -> str:
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


_FILE = "file"


@dataclass(frozen=True, eq=False)
class AppliedData:
    """Data sets by what sets them apart: `Predictions`, or an array where labels are missing."""

    parts: "dict[Split, Any]"
    notes: "tuple[Note, ...]"


@dataclass(frozen=True)
class CalibrationFile:
    """Where a rule was chosen: the file, and the values that its rows have."""

    file: Path | None
    picks: tuple[Picked, ...] = ()


def read_applied(
    given: Sequence[str], columns: Columns, score: str, calibrated: CalibrationFile
) -> AppliedData:
    """Read the files, and the parts of the calibration file; parts need not name their file."""
    parts: dict[Split, Any] = {}
    notes: list[Note] = []
    names = _names(given)
    for name, text in zip(names, given, strict=True):
        pick = picked(text)
        if pick is not None:
            reading = read_part(pick, columns, score, calibrated, flag="--apply")
            found: dict[Split, Any] = dict(reading)
            said: Sequence[Note] = reading.notes
        else:
            found, said = _read_one(Path(text), columns, score)
        notes += said if pick else [note.within(name) for note in said]
        alone = pick is not None or (len(given) == 1 and len(found) > 1)
        for split, part in found.items():
            parts[split if alone else ((_FILE, name), *split)] = part
    return AppliedData(parts, tuple(notes))


def read_part(
    pick: Picked, columns: Columns, score: str, calibrated: CalibrationFile, *, flag: str
) -> "Reading":
    """Read a part of the calibration file that shares no row with what the rule was chosen on."""
    if calibrated.file is None:
        raise InputError(
            f"{flag} {pick} is a part of the calibration file, and there is none; name a file"
        )
    on = {own.column: own.value for own in calibrated.picks}
    if on.get(pick.column, pick.value) == pick.value:
        other = f"--calibrate {pick.column}=..."
        said = " ".join(f"--calibrate {own}" for own in calibrated.picks) or "all of the file"
        raise InputError(
            f"{flag} {pick} has samples that chose the rule ({said}). Choose on another part with "
            f"{other}"
        )
    return read_picked(calibrated.file, columns, score, [pick])


def _names(given: Sequence[str]) -> list[str]:
    """Return short names, or whole paths where two are alike; a part has its own text."""
    paths = [str(picked(text) or Path(text)) for text in given]
    names = [str(picked(text) or Path(text).name) for text in given]
    names = names if len(set(names)) == len(names) else paths
    for i, name in enumerate(names):
        if name in names[:i]:
            raise InputError(f"{name!r} is given twice with --apply")
    return names


def _read_one(path: Path, columns: Columns, score: str) -> "_Read":
    try:
        reading = read_scored(path, columns, score)
    except MissingInputError:
        found = _confidences(path, columns, score) or _unlabeled(path, columns, score)
        if found is None:
            raise
        return found
    return dict(reading), reading.notes


def _unlabeled(path: Path, columns: Columns, score: str) -> "_Read | None":
    """Return the predictions of a file without labels, or None where some were asked for."""
    if any((columns.label, columns.correct, columns.own_loss)):
        return None
    try:
        reading = read_scored(path, columns, score, unlabeled=True)
    except MissingInputError:
        return None
    return dict(reading), (
        *reading.notes,
        Note(COLUMNS, "no column says what is right", source=path.name),
    )


def _confidences(path: Path, columns: Columns, score: str) -> "_Read | None":
    """Return the confidences of a file without labels, or None when it has no such column."""
    from abstain.tables.column import MissingEntries
    from abstain.tables.files import open_table

    told = (columns.label, columns.prediction, columns.correct, columns.own_loss)
    if any((*told, columns.group, columns.weight)) or columns.by or not has_column(path, score):
        return None
    table = open_table(path)
    missing = MissingEntries(columns.missing, path.name, table.n_rows)
    name = score if score in table.kind_by_column else score.removeprefix("-")
    column = table.load([name])[name]
    if name != score:
        column = replace(column, values=-column.values.astype("float64"))
    values = missing.fill_confidence(column).values
    kept = missing.retained_rows
    text = f"read confidence from {score!r}; no column says what is right"
    note = Note(COLUMNS, text, source=path.name)
    return {(): values if kept is None else values[kept]}, (note, *missing.notes)
