"""Functions that read predictions with the options of a command."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from abstain.cli.options import Columns
from abstain.errors import AbstainError, MissingInputError

# The readers are imported when a file is read, so that --help is fast.
if TYPE_CHECKING:
    from abstain.predictions import Predictions
    from abstain.tables import Reading

#: Value of an option for a column that selects the files, and the name of their split column.
FILENAME, _FILE = "filename", "file"


def read_files(files: tuple[Path, ...], columns: Columns, *, unlabeled: bool = False) -> "Reading":
    """Read one or several files. If `unlabeled`, ignore columns of correctness."""
    from abstain.tables import read_predictions

    if not files:
        raise AbstainError("name at least one file of predictions")
    options = reading_options(columns)
    if unlabeled:
        options |= dict.fromkeys(("label", "correct", "loss"))
    source = files[0] if len(files) == 1 else list(files)
    return read_predictions(source, unlabeled=unlabeled, **options)


def reading_options(columns: Columns) -> dict[str, Any]:
    """Return the columns of each role as arguments of `read_predictions`."""
    options = {name: getattr(columns, name) for name in columns.__dataclass_fields__}
    options["loss"] = options.pop("own_loss")
    for name in ("logits", "probabilities", "unknown_label"):
        options[name] = options[name] or None
    return options


def expand_patterns(files: tuple[Path, ...]) -> tuple[Path, ...]:
    """Replace patterns by the matching files."""
    from abstain.tables.scan.source_files import is_file_pattern, resolve_files

    expanded: list[Path] = []
    for path in files:
        expanded += resolve_files(path) if is_file_pattern(str(path)) else (path,)
    return tuple(expanded)


def add_split_columns(
    columns: Columns, files: tuple[Path, ...], *names: str | None
) -> tuple[Columns, list[str | None]]:
    """Add columns to --by, and return the name of the split column for each name.

    For the name "filename", the split column is "file", or None if there is a single file.
    """
    by = list(columns.by)
    split_columns: list[str | None] = []
    file_column = _FILE if len(files) > 1 else None
    for name in names:
        if name == FILENAME:
            split_columns.append(file_column)
            continue
        split_columns.append(name)
        if name is not None and name not in by:
            by.append(name)
    return replace(columns, by=tuple(by)), split_columns


def read_with_score(
    path: Path, columns: Columns, score: str, *, unlabeled: bool = False
) -> "Reading":
    """Read predictions. If a score cannot be computed, read the column that has its name."""
    from abstain.confidence import applicable

    files = (path,)
    try:
        reading = read_files(files, columns, unlabeled=unlabeled)
    except MissingInputError:
        if columns.confidence or not has_numeric_column(path, score):
            raise
        return read_files(files, replace(columns, confidence=(score,)), unlabeled=unlabeled)
    is_missing = score and score not in applicable(next(iter(reading.values())))
    if is_missing and not columns.confidence and has_numeric_column(path, score):
        return read_files(files, replace(columns, confidence=(score,)), unlabeled=unlabeled)
    return reading


def has_numeric_column(path: Path, name: str) -> bool:
    """Return whether a file has a numeric column with this name. A leading "-" is ignored."""
    from abstain.tables.files import open_table

    if path.is_dir():
        return False
    kind_by_column = open_table(path).kind_by_column
    return "number" in {kind_by_column.get(name), kind_by_column.get(name.removeprefix("-"))}


def read_by_name(files: tuple[Path, ...], columns: Columns) -> "tuple[dict[str, Predictions], Any]":
    """Read files, and return the predictions by the name of the split, and the notes."""
    if not files:
        return {}, ()
    reading = read_files(files, columns)
    splits = list(reading.items())
    if len(files) == 1 and len(splits) == 1:
        return {files[0].name: splits[0][1]}, reading.notes
    return {_format_split(split): predictions for split, predictions in splits}, reading.notes


def _format_split(split: Any) -> str:
    """Format a split as text that begins with the name of the file."""
    from abstain._foundation.names import split_name

    value_by_column = dict(split)
    file_name = value_by_column.pop("file", "")
    texts = [file_name] if file_name else []
    if value_by_column:
        texts.append(split_name(tuple(value_by_column.items())))
    return ", ".join(text for text in texts if text)
