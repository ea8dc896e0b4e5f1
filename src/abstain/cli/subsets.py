"""Select rows of a file by the values of columns (`split=val`), and read test data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from abstain._foundation.notes import COLUMNS, Note
from abstain.cli.options import Columns
from abstain.cli.predictions import has_numeric_column, read_with_score
from abstain.errors import InputError, MissingInputError, UnknownNameError, suggest

if TYPE_CHECKING:
    from abstain.tables import Reading
    from abstain.typing import Split

    #: Data sets by split, and the notes of the reader.
    _DataSets: TypeAlias = tuple[dict[Split, Any], Sequence[Note]]

#: Maximum number of values in a message.
_MAX_LISTED_VALUES = 12


class ColumnValue(NamedTuple):
    """A condition that selects the rows of a file with a given value in a column."""

    column: str
    value: str

    def __str__(self) -> str:
        """Format the condition as on the command line."""
        return f"{self.column}={self.value}"


def parse_column_value(text: str) -> ColumnValue | None:
    """Parse COLUMN=VALUE.

    Return None if the text is not a condition or is the name of an existing file.
    """
    column, separator, value = text.partition("=")
    if not (separator and column and value) or Path(text).exists():
        return None
    return ColumnValue(column, value)


def parse_column_values(texts: Sequence[str], flag: str) -> tuple[ColumnValue, ...]:
    """Parse conditions that hold together. Raise an error if a column occurs twice."""
    conditions = []
    for text in texts:
        column, _, value = text.partition("=")
        if not (column and value):
            raise InputError(f"{flag} takes COLUMN=VALUE, such as split=val; got {text!r}")
        conditions.append(ColumnValue(column, value))
    if len({condition.column for condition in conditions}) < len(conditions):
        raise InputError(
            f"{flag} takes one value per column; got {', '.join(map(str, conditions))}"
        )
    return tuple(conditions)


def read_subset(
    path: Path, columns: Columns, score: str, conditions: Sequence[ColumnValue]
) -> "Reading":
    """Read the rows that satisfy all conditions. The other columns of --by define the splits."""
    names = [condition.column for condition in conditions]
    by = (*names, *(name for name in columns.by if name not in names))
    reading = read_with_score(path, replace(columns, by=by), score)
    splits = {}
    for split, predictions in reading.items():
        value_by_column = dict(split)
        if all(value_by_column[column] == value for column, value in conditions):
            splits[split] = predictions
    if not splits:
        raise UnknownNameError(_empty_subset_message(path, conditions, list(reading)))
    return replace(reading, splits=splits)


def pooled_column_notes(
    path: Path, by: Sequence[str], conditions: Sequence[ColumnValue]
) -> tuple[str, ...]:
    """Return a note if the calibration samples have several values of a column of --by."""
    from abstain.tables.files import open_table

    fixed_columns = {condition.column for condition in conditions}
    free_columns = [name for name in by if name not in fixed_columns]
    if path.is_dir() or not free_columns:
        return ()
    kind_by_column = open_table(path).kind_by_column
    for name in free_columns:
        if name not in kind_by_column:
            continue
        n_values = len(open_table(path).load([name])[name].distinct()[1])
        if n_values > 1:
            note = (
                f"{path.name}: the rule was chosen on all {n_values} values of {name!r} together; "
                f"pass --calibrate {name}=VALUE to choose it on one"
            )
            return (note,)
    return ()


def _empty_subset_message(
    path: Path, conditions: Sequence[ColumnValue], splits: "list[Split]"
) -> str:
    """Return an error message which states that no row satisfies the conditions."""
    for condition in conditions:
        values = list(dict.fromkeys(dict(split)[condition.column] for split in splits))
        if condition.value in values:
            continue
        value_list = ", ".join(map(repr, values[:_MAX_LISTED_VALUES]))
        if len(values) > _MAX_LISTED_VALUES:
            value_list += ", ..."
        return (
            f"{path.name}: no row has {str(condition)!r}; the values of {condition.column!r} are "
            f"{value_list}.{suggest(condition.value, values)}"
        )
    return f"{path.name}: no row has {' and '.join(map(str, conditions))}"


_FILE = "file"


@dataclass(frozen=True, eq=False)
class TestData:
    """Test data sets by split.

    Each data set consists of `Predictions` or of confidences without labels.
    """

    data_sets: "Mapping[Split, Any]"
    notes: "tuple[Note, ...]"


@dataclass(frozen=True)
class CalibrationSource:
    """The file with the calibration samples, and the conditions that select its rows."""

    file: Path | None
    conditions: tuple[ColumnValue, ...] = ()


def read_test_data(
    arguments: Sequence[str], columns: Columns, score: str, calibration: CalibrationSource
) -> TestData:
    """Read the files of --apply, and the subsets that its conditions select."""
    data_sets: dict[Split, Any] = {}
    notes: list[Note] = []
    names = _data_set_names(arguments)
    for name, argument in zip(names, arguments, strict=True):
        condition = parse_column_value(argument)
        if condition is not None:
            reading = read_other_subset(condition, columns, score, calibration, flag="--apply")
            data_sets |= reading
            notes += reading.notes
            continue
        splits, reader_notes = _read_file(Path(argument), columns, score)
        notes += [note.within(name) for note in reader_notes]
        # The splits of a single file do not name the file.
        has_only_one_file = len(arguments) == 1 and len(splits) > 1
        prefix = () if has_only_one_file else ((_FILE, name),)
        data_sets |= {(*prefix, *split): predictions for split, predictions in splits.items()}
    return TestData(data_sets, tuple(notes))


def read_other_subset(
    condition: ColumnValue,
    columns: Columns,
    score: str,
    calibration: CalibrationSource,
    *,
    flag: str,
) -> "Reading":
    """Read a subset of the calibration file, and check that it has no calibration samples."""
    if calibration.file is None:
        raise InputError(
            f"{flag} {condition} selects rows of the calibration file, but no calibration file "
            "was passed; name a file"
        )
    calibration_values = dict(calibration.conditions)
    if calibration_values.get(condition.column, condition.value) == condition.value:
        flags = " ".join(f"--calibrate {c}" for c in calibration.conditions)
        raise InputError(
            f"{flag} {condition} contains calibration samples ({flags or 'all of the file'}). "
            f"Choose the rule on another subset with --calibrate {condition.column}=..."
        )
    return read_subset(calibration.file, columns, score, [condition])


def _data_set_names(arguments: Sequence[str]) -> list[str]:
    """Return the file name of each data set, or the path if several file names are equal."""
    paths = [str(parse_column_value(text) or Path(text)) for text in arguments]
    names = [str(parse_column_value(text) or Path(text).name) for text in arguments]
    names = names if len(set(names)) == len(names) else paths
    for i, name in enumerate(names):
        if name in names[:i]:
            raise InputError(f"{name!r} occurs twice in --apply")
    return names


def _read_file(path: Path, columns: Columns, score: str) -> "_DataSets":
    """Read a file of test data. If the file has no labels, read its confidences or class scores."""
    try:
        reading = read_with_score(path, columns, score)
    except MissingInputError:
        unlabeled = _read_confidence_column(path, columns, score)
        if unlabeled is None:
            unlabeled = _read_unlabeled(path, columns, score)
        if unlabeled is None:
            raise
        return unlabeled
    return dict(reading), reading.notes


def _read_unlabeled(path: Path, columns: Columns, score: str) -> "_DataSets | None":
    """Return the predictions of a file without labels, or None if an option names labels."""
    if any((columns.label, columns.correct, columns.own_loss)):
        return None
    try:
        reading = read_with_score(path, columns, score, unlabeled=True)
    except MissingInputError:
        return None
    note = Note(COLUMNS, "no column defines correctness", source=path.name)
    return dict(reading), (*reading.notes, note)


def _read_confidence_column(path: Path, columns: Columns, score: str) -> "_DataSets | None":
    """Return the confidences of a file without labels, or None if it has no such column."""
    from abstain.tables.column import MissingEntries
    from abstain.tables.files import open_table

    truth_options = (columns.label, columns.prediction, columns.correct, columns.own_loss)
    other_options = (columns.group, columns.weight, *columns.by)
    if any((*truth_options, *other_options)) or not has_numeric_column(path, score):
        return None
    table = open_table(path)
    missing = MissingEntries(columns.missing, path.name, table.n_rows)
    name = score if score in table.kind_by_column else score.removeprefix("-")
    column = table.load([name])[name]
    if name != score:
        column = replace(column, values=-column.values.astype("float64"))
    values = missing.fill_confidence(column).values
    rows = missing.retained_rows
    text = f"read confidence from {score!r}; no column defines correctness"
    note = Note(COLUMNS, text, source=path.name)
    return {(): values if rows is None else values[rows]}, (note, *missing.notes)
