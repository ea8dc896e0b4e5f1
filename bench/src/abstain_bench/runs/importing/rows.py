"""Match tables that have one row per image with the images of a benchmark.

The columns `run`, `exposure` and `row` identify the image.
"""

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final

import numpy as np

from abstain._foundation.files import write_atomically
from abstain.errors import DomainError, InputError, UnknownNameError, suggest
from abstain.report.formatting import join_first
from abstain.tables.column import DataColumn, to_number
from abstain.tables.table import DataTable
from abstain.typing import FloatArray, IntArray
from abstain_bench.runs.methods import METHODS
from abstain_bench.runs.store import VALIDATION, AddedMethod, Run, Store

if TYPE_CHECKING:
    import polars as pl

#: Columns that identify the image of a row.
INDEX_COLUMNS: Final = ("run", "exposure", "row")

#: Name of a run and key of an exposure.
RunAndExposure = tuple[str, str]


@dataclass(frozen=True, eq=False)
class RowIndex:
    """Table rows for each run and exposure, in the order of the images."""

    table: DataTable
    rows_by_exposure: Mapping[RunAndExposure, IntArray]

    def confidences(self, name: str) -> FloatArray:
        """Return a column of finite confidences."""
        column = self._column(name)
        if column.is_text or column.values.ndim != 1:
            raise DomainError(
                f"{self.table.source}: the column {name!r} must hold one number per row"
            )
        values = np.asarray(column.values, dtype=np.float64)
        invalid = ~np.isfinite(values)
        if column.is_missing is not None:
            invalid = invalid | column.is_missing
        if invalid.any():
            row = int(np.flatnonzero(invalid)[0])
            raise DomainError(
                f"{self.table.source}: every confidence must be a finite number; got "
                f"{column.format_entry(row)} in row {row} of {name!r} ({self.describe_row(row)}), "
                f"{int(invalid.sum()):,} such rows. Give abstentions the lowest confidence instead"
            )
        return values

    def class_codes(self, name: str, classes: Sequence[str]) -> IntArray:
        """Return class codes from a column that contains class codes or class names."""
        column = self._column(name)
        if column.is_text:
            return _encode_names(column, classes, "class", self.table)
        values = np.asarray(column.values)
        lowest = -1 if name == "label" else 0
        rule = (
            f"{self.table.source}: {name!r} must hold names of classes, or whole numbers from "
            f"{lowest} to {len(classes) - 1}; got "
        )
        if column.is_missing is not None or not column.has_only_integers or values.ndim != 1:
            raise DomainError(rule + str(column.dtype_name))
        invalid = (values < lowest) | (values >= len(classes))
        if invalid.any():
            row = int(np.flatnonzero(invalid)[0])
            raise DomainError(f"{rule}{column.format_entry(row)} in row {row}")
        return values.astype(np.int64)

    def describe_row(self, row: int) -> str:
        """Return text that identifies the image of a row by run, exposure and number."""
        for (run, exposure), rows in self.rows_by_exposure.items():
            position = np.flatnonzero(rows == row)
            if position.size:
                return f"run {run!r}, exposure {exposure!r}, row {position[0]}"
        return "no image"

    def _column(self, name: str) -> DataColumn:
        column = self.table.load([name])[name]
        return to_number(column) if column.is_text and self.table.is_untyped else column


def match_rows(store: Store, table: DataTable) -> RowIndex:
    """Match the rows of a table with the images of a store.

    Each image must occur in exactly one row for each run and exposure in the table.
    """
    for name in INDEX_COLUMNS:
        if name not in table.kind_by_column:
            raise UnknownNameError(
                f"{table.source} has no column {name!r}.{suggest(name, table.names)} A file of "
                "confidences identifies images by the columns `run`, `exposure` and `row`"
            )
    columns = table.load(INDEX_COLUMNS)
    run_names = [run.name for run in store.runs]
    keys = [VALIDATION, *(exposure.key for exposure in store.exposures)]
    run_codes = _encode_names(columns["run"].as_text(), run_names, "run", table)
    exposure_codes = _encode_names(columns["exposure"].as_text(), keys, "exposure", table)
    n_images = np.zeros(len(keys), dtype=np.int64)
    for code in np.unique(exposure_codes):
        scores = store.first_scores(keys[code])
        # An exposure that no run has contains no images.
        n_images[code] = 0 if scores is None else scores.n
    images = _read_image_numbers(columns["row"], table, n_images, keys, exposure_codes)
    rows_by_exposure: dict[RunAndExposure, IntArray] = {}
    for rows in _split_by_exposure(run_codes, exposure_codes, images):
        run_name = run_names[run_codes[rows[0]]]
        exposure_code = exposure_codes[rows[0]]
        pair = (run_name, keys[exposure_code])
        _check_each_image_once(table.source, pair, rows, images[rows], int(n_images[exposure_code]))
        rows_by_exposure[pair] = rows
    return RowIndex(table, rows_by_exposure)


def _split_by_exposure(
    run_codes: IntArray, exposure_codes: IntArray, images: IntArray
) -> list[IntArray]:
    """Return the row numbers for each run and exposure, sorted by image."""
    order = np.lexsort((images, exposure_codes, run_codes))
    run_changes = np.diff(run_codes[order]) != 0
    exposure_changes = np.diff(exposure_codes[order]) != 0
    starts = np.flatnonzero(run_changes | exposure_changes) + 1
    return np.split(order, starts)


def _check_each_image_once(
    source: str, pair: RunAndExposure, rows: IntArray, images: IntArray, n_images: int
) -> None:
    """Raise an error if an image is repeated or missing for a run and exposure.

    `images` contains the image number of each row, in ascending order.
    """
    run, exposure = pair
    is_repeated = images[1:] == images[:-1]
    if is_repeated.any():
        position = int(np.flatnonzero(is_repeated)[0])
        raise InputError(
            f"{source}: each image must occur once; row {images[position]} of the exposure "
            f"{exposure!r} of the run {run!r} is in the rows {rows[position]} and "
            f"{rows[position + 1]} of the file"
        )
    if images.size < n_images:
        missing = np.setdiff1d(np.arange(n_images), images)
        raise InputError(
            f"{source}: every image must be there; of the exposure {exposure!r} of the run "
            f"{run!r}, {missing.size:,} of {n_images:,} are missing, the first is row {missing[0]}"
        )


def _encode_names(
    column: DataColumn, names: Sequence[str], kind: str, table: DataTable
) -> IntArray:
    """Return the index in `names` of each value in a column, and reject unknown names."""
    code_by_name = {name: code for code, name in enumerate(names)}
    distinct_codes, distinct_names = column.distinct()
    known_codes = [code_by_name.get(str(name), -1) for name in distinct_names]
    codes: IntArray = np.array(known_codes, dtype=np.int64)[distinct_codes]
    is_unknown = codes < 0
    if is_unknown.any():
        row = int(np.flatnonzero(is_unknown)[0])
        name = str(distinct_names[distinct_codes[row]])
        raise UnknownNameError(
            f"{table.source}: there is no {kind} {name!r} in the folder (row {row})."
            f"{suggest(name, code_by_name)} It has: {join_first(list(code_by_name), 12)}"
        )
    return codes


def _read_image_numbers(
    column: DataColumn,
    table: DataTable,
    n_images: IntArray,
    keys: list[str],
    exposure_codes: IntArray,
) -> IntArray:
    """Return the image number of each row, counted from 0 within its exposure."""
    if column.is_text or column.is_missing is not None or not column.has_only_integers:
        raise DomainError(
            f"{table.source}: 'row' must hold whole numbers from 0; got {column.dtype_name}"
        )
    values: IntArray = np.asarray(column.values).astype(np.int64)
    invalid = (values < 0) | (values >= n_images[exposure_codes])
    if invalid.any():
        row = int(np.flatnonzero(invalid)[0])
        code = exposure_codes[row]
        raise DomainError(
            f"{table.source}: 'row' counts the images of an exposure from 0; {keys[code]!r} has "
            f"{n_images[code]:,}, and got {values[row]} in row {row} of the file"
        )
    return values


#: Columns of a file of `export` that contain no confidences, without its columns of logits.
_NON_SCORE_COLUMNS: Final = (*INDEX_COLUMNS, "label", "prediction")
_LOGIT_COLUMN = re.compile(r"logit_\d+")
#: Maximum number of names in a message.
MAX_LISTED: Final = 8
#: Pattern of the names of added methods, which become part of file names.
_METHOD_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,59}")


def method_names(table: DataTable, columns: Sequence[str], name: str | None) -> dict[str, str]:
    """Return the method name for each column of confidence scores.

    The default is all numeric columns that `export` does not write.
    """
    requested = (columns,) if isinstance(columns, str) else tuple(columns)
    for column in requested:
        if column not in table.kind_by_column:
            raise UnknownNameError(
                f"{table.source} has no column {column!r}.{suggest(column, table.names)}"
            )
    score_columns = requested or tuple(
        column
        for column, kind in table.kind_by_column.items()
        if kind == "number" and _may_be_score(column)
    )
    if not score_columns:
        raise InputError(
            f"{table.source} has no column of confidences, only {', '.join(table.names)}; every "
            "other column of numbers would be one"
        )
    if name is None:
        return {column: column for column in score_columns}
    if len(score_columns) == 1:
        return {score_columns[0]: name}
    return {column: f"{name}-{column}" for column in score_columns}


def _may_be_score(column: str) -> bool:
    return column not in _NON_SCORE_COLUMNS and not _LOGIT_COLUMN.fullmatch(column)


def check_method_name(name: str, store: Store, added: Sequence[AddedMethod], replace: bool) -> None:
    """Raise an error if the name of a new method is invalid or already in use."""
    if not _METHOD_NAME.fullmatch(name):
        raise InputError(
            "the name of a method must have up to 60 letters, digits, dots, hyphens, underscores "
            f"and plus signs; got {name!r}. Choose another one with `name`"
        )
    scored = {method for stored in store.stored_runs for method in stored.validation_values}
    if name in METHODS or name in scored or name in {run.arm for run in store.runs}:
        raise InputError(
            f"{name!r} is the name of a method or an arm of the benchmark; choose another `name`"
        )
    if not replace and name in {method.name for method in added}:
        raise InputError(
            f"a method {name!r} was added before; choose another `name`, or set `replace`"
        )


def method_title(title: str, column: str, name: str, n_columns: int) -> str:
    """Return the title of a method, which includes the column name if there are several columns."""
    if not title:
        return name
    return title if n_columns == 1 else f"{title}, {column}"


def unused_column_notes(table: DataTable, method_by_column: dict[str, str]) -> list[str]:
    """Return a note about unused numeric columns, or an empty list if there are none."""
    unused = [
        column for column in table.names if column not in method_by_column and _may_be_score(column)
    ]
    if not unused:
        return []
    return [f"not used: {', '.join(map(repr, unused))}"]


# ------------------------------------------------------------------------------------ export
@dataclass(frozen=True)
class Exported:
    """Result of `export`.

    Attributes
    ----------
    path : Path
        The file.
    runs : tuple of str
        Names of the exported runs.
    rows : int
        Number of rows: one per run, exposure and image.
    classes : int
        Number of columns of logits; 0 if the runs have none.
    """

    path: Path
    runs: tuple[str, ...]
    rows: int
    classes: int


def export(store: Store, run: Run | str | None, path: str | Path) -> Exported:
    """Write the network outputs of runs to a Parquet file, with one row per image.

    You can compute new confidence scores from this file and add them with `add_scores`.

    Parameters
    ----------
    store : Store
        The folder of runs.
    run : Run, str or None
        The run or its name. None exports all tested runs.
    path : str or Path
        Path of the file, with the suffix ".parquet". An existing file is replaced.

    Returns
    -------
    Exported
        Path and content summary of the file. The columns of the file are run, exposure, row, label,
        prediction, and the logits logit_0, logit_1, ... The first exposure is "validation". Images
        of unknown classes have the label -1.

    Raises
    ------
    UnknownNameError
        If the run does not exist.
    InputError
        If the file name has the wrong suffix, the file cannot be written, or no run was tested.

    See Also
    --------
    abstain_bench.runs.importing.add_scores : Read scores from a file with the same identifying
    columns.

    Examples
    --------
    >>> from abstain_bench.runs.importing import export
    >>> from abstain_bench.runs.store import Store
    >>> export(Store.read("runs"), None, "all.parquet")  # doctest: +SKIP
    """
    path = Path(path)
    if path.suffix.lower() != ".parquet":
        raise InputError(
            f"runs are exported as Parquet: the name must end in '.parquet'; got {str(path)!r}"
        )
    import polars as pl

    runs = _select_runs(store, run)
    if not runs:
        raise InputError(
            f"no run of {str(store.folder)!r} is tested yet, so there is nothing to export; "
            f"`abstain benchmark status {quote(str(store.folder))}` prints the progress"
        )
    frames = [_export_run(store, exported) for exported in runs]
    # Runs that were imported from probabilities have no logits.
    table = pl.concat(frames, how="diagonal", rechunk=False)
    content = io.BytesIO()
    table.write_parquet(content, compression="zstd")
    write_atomically(path, content.getvalue())
    n_logits = sum(name.startswith("logit_") for name in table.columns)
    return Exported(path, tuple(exported.name for exported in runs), table.height, n_logits)


def _export_run(store: Store, run: Run) -> "pl.DataFrame":
    """Return a table of the outputs of one run, with one row per image."""
    import polars as pl

    stored = next(stored for stored in store.stored_runs if stored.run.name == run.name)
    keys = []
    if stored.validation_file:
        keys.append(VALIDATION)
    if stored.test_file:
        keys += [exposure.key for exposure in store.exposures]
    frames = []
    for key in keys:
        scores = store.scores(run, key, logits=True)
        columns = {
            "run": pl.Series([run.name], dtype=pl.String).new_from_index(0, scores.n),
            "exposure": pl.Series([key], dtype=pl.String).new_from_index(0, scores.n),
            "row": np.arange(scores.n),
            "label": scores.labels,
            "prediction": scores.prediction,
        }
        if scores.logits is not None:
            for k, logit in enumerate(np.asarray(scores.logits).T):
                columns[f"logit_{k}"] = logit
        frames.append(pl.DataFrame(columns))
    return pl.concat(frames, rechunk=False)


def _select_runs(store: Store, run: Run | str | None) -> tuple[Run, ...]:
    """Return the requested run, or all tested runs if `run` is None."""
    if run is None:
        # The networks of added methods are not runs of the benchmark.
        added = {method.name for method in store.added_methods if method.classifier}
        return tuple(tested for tested in store.tested_runs if tested.arm not in added)
    name = run if isinstance(run, str) else run.name
    run_by_name = {existing.name: existing for existing in store.runs}
    if name not in run_by_name:
        raise UnknownNameError(
            f"there is no run {name!r} in the folder.{suggest(name, run_by_name)} It has: "
            f"{join_first(list(run_by_name), 12)}"
        )
    return (run_by_name[name],)
