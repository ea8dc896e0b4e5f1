"""From the options of a command to predictions."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from abstain.cli.options import Columns
from abstain.errors import AbstainError, MissingInputError

# What reads files is loaded when a file is read: the help of a command waits for nothing.
if TYPE_CHECKING:
    from abstain.predictions import Predictions
    from abstain.tables import Reading

#: The word for the files themselves where a column is asked for, and the column it means.
FILENAME, _FILE = "filename", "file"


def read(files: tuple[Path, ...], columns: Columns, *, unlabeled: bool = False) -> "Reading":
    """Read one file or several; without what is right where that is not known."""
    from abstain.tables import read_predictions

    if not files:
        raise AbstainError("name at least one file of predictions")
    options = reading_options(columns)
    if unlabeled:
        options |= dict.fromkeys(("label", "correct", "loss"))
    source = files[0] if len(files) == 1 else list(files)
    return read_predictions(source, unlabeled=unlabeled, **options)


def reading_options(columns: Columns) -> dict[str, Any]:
    """Return the columns as the readers of `abstain.tables` take them."""
    options = {k: getattr(columns, k) for k in columns.__dataclass_fields__}
    options["loss"] = options.pop("own_loss")
    for name in ("logits", "probabilities", "unknown_label"):
        options[name] = options[name] or None
    return options


def expanded(files: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return the files with patterns replaced by the files that they stand for."""
    from abstain.tables.scan.source_files import is_file_pattern, resolve_files

    found = (resolve_files(path) if is_file_pattern(str(path)) else (path,) for path in files)
    return tuple(path for several in found for path in several)


def split_by(
    columns: Columns, files: tuple[Path, ...], *wanted: str | None
) -> tuple[Columns, list[str | None]]:
    """Split the rows by more columns; return the columns of the splits that they become."""
    by = list(columns.by)
    found: list[str | None] = []
    for name in wanted:
        if name == FILENAME:
            # A single file is not named by the reader, so it is one run without a name.
            found.append(_FILE if len(files) > 1 else None)
        else:
            found.append(name)
            by += [name] if name is not None and name not in by else []
    return replace(columns, by=tuple(by)), found


def read_scored(path: Path, columns: Columns, score: str, *, unlabeled: bool = False) -> "Reading":
    """Read predictions with a score; its column is looked for by its name when not named."""
    from abstain.confidence import applicable

    more = {"unlabeled": unlabeled}
    try:
        reading = read((path,), columns, **more)
    except MissingInputError:
        if columns.confidence or not has_column(path, score):
            raise
        return read((path,), replace(columns, confidence=(score,)), **more)
    lacking = score and score not in applicable(next(iter(reading.values())))
    if lacking and not columns.confidence and has_column(path, score):
        return read((path,), replace(columns, confidence=(score,)), **more)
    return reading


def has_column(path: Path, name: str) -> bool:
    """Tell whether a file has a score as a column of numbers, as it is or turned around."""
    from abstain.tables.files import open_table

    if path.is_dir():
        return False
    kinds = open_table(path).kind_by_column
    return "number" in {kinds.get(name), kinds.get(name.removeprefix("-"))}


def read_named(files: tuple[Path, ...], columns: Columns) -> "tuple[dict[str, Predictions], Any]":
    """Read files, if any; return the parts by name, and what the reader noted."""
    if not files:
        return {}, ()
    reading = read(files, columns)
    parts = list(reading.items())
    if len(files) == 1 and len(parts) == 1:
        return {files[0].name: parts[0][1]}, reading.notes
    return {_name(split): part for split, part in parts}, reading.notes


def _name(split: Any) -> str:
    """Write the values that set a part apart; the file by its name alone."""
    from abstain._foundation.names import split_name

    pairs = dict(split)
    file = pairs.pop("file", "")
    rest = split_name(tuple(pairs.items())) if pairs else ""
    return ", ".join(part for part in (file, rest) if part)
