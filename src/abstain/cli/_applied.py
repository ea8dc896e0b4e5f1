"""The data sets on which a rule is checked: with labels, or their confidences alone."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from abstain.cli._read import read
from abstain.cli.columns import Columns
from abstain.confidence import applicable
from abstain.errors import InputError, MissingInputError
from abstain.tables import Reading
from abstain.tables._files import open_table
from abstain.tables._missing import Missing
from abstain.typing import Split

_FILE = "file"


@dataclass(frozen=True, eq=False)
class Applied:
    """Data sets by what sets them apart: `Predictions`, or an array where labels are missing."""

    parts: dict[Split, Any]
    notes: tuple[str, ...]


def read_applied(files: Sequence[Path], columns: Columns, score: str) -> Applied:
    """Read the files one by one; parts of a single file need not name it."""
    parts: dict[Split, Any] = {}
    notes: list[str] = []
    for name, path in zip(_names(files), files, strict=True):
        found, said = _read_one(path, columns, score)
        notes += [note if note.startswith(path.name) else f"{name}: {note}" for note in said]
        alone = len(files) == 1 and len(found) > 1
        for split, part in found.items():
            parts[split if alone else ((_FILE, name), *split)] = part
    return Applied(parts, tuple(notes))


def _names(files: Sequence[Path]) -> list[str]:
    names = [path.name for path in files]
    if len(set(names)) < len(names):
        names = [str(path) for path in files]
    for i, name in enumerate(names):
        if name in names[:i]:
            msg = f"the file {name!r} is given twice with --apply"
            raise InputError(msg)
    return names


def _read_one(path: Path, columns: Columns, score: str) -> tuple[dict[Split, Any], Sequence[str]]:
    try:
        reading = read_scored(path, columns, score)
    except MissingInputError:
        found = _confidences(path, columns, score)
        if found is None:
            raise
        return found
    return dict(reading), reading.notes


def read_scored(path: Path, columns: Columns, score: str) -> Reading:
    """Read predictions with a score; its column is looked for by its name when not named."""
    try:
        reading = read((path,), columns)
    except MissingInputError:
        if columns.confidence or not _has_column(path, score):
            raise
        return read((path,), replace(columns, confidence=(score,)))
    lacking = score and score not in applicable(next(iter(reading.values())))
    if lacking and not columns.confidence and _has_column(path, score):
        return read((path,), replace(columns, confidence=(score,)))
    return reading


def _has_column(path: Path, name: str) -> bool:
    return not path.is_dir() and open_table(path).kinds.get(name) == "number"


def _confidences(
    path: Path, columns: Columns, score: str
) -> tuple[dict[Split, Any], Sequence[str]] | None:
    """Return the confidences of a file without labels, or None when it has no such column."""
    asked = (columns.label, columns.prediction, columns.correct, columns.own_loss)
    if any(asked) or columns.by or not _has_column(path, score):
        return None
    table = open_table(path)
    missing = Missing(columns.missing, path.name, table.height)
    values = missing.confidence(table.load([score])[score]).values
    kept = missing.kept
    note = f"{path.name}: took confidence from {score!r}; no column says what is right"
    return {(): values if kept is None else values[kept]}, (note, *missing.notes)
