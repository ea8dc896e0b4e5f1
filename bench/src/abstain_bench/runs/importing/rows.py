"""Tables with one row per image: the export of runs, and files with scores to be added.

The columns run, exposure and row identify the image of a row.
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
    """Row numbers of a table by run and exposure, in the order of the images."""

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
        """Return a column of classes as codes; the column may contain codes or names."""
        column = self._column(name)
        if column.is_text:
            code_by_class = {name: code for code, name in enumerate(classes)}
            return _encode_names(column, code_by_class, "class", self.table)
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
        """Describe the image of a row."""
        for (run, exposure), rows in self.rows_by_exposure.items():
            position = np.flatnonzero(rows == row)
            if position.size:
                return f"run {run!r}, exposure {exposure!r}, row {position[0]}"
        return "no image"

    def _column(self, name: str) -> DataColumn:
        column = self.table.load([name])[name]
        return to_number(column) if column.is_text and self.table.is_untyped else column


def match_rows(store: Store, table: DataTable) -> RowIndex:
    """Match the rows of a table with the images of a store; each image must occur once."""
    for name in INDEX_COLUMNS:
        if name not in table.kind_by_column:
            raise UnknownNameError(
                f"{table.source} has no column {name!r}.{suggest(name, table.names)} A file of "
                "confidences identifies images by the columns `run`, `exposure` and `row`"
            )
    columns = table.load(INDEX_COLUMNS)
    run_codes = {run.name: code for code, run in enumerate(store.runs)}
    keys = [VALIDATION, *(exposure.key for exposure in store.exposures)]
    exposure_codes = {key: code for code, key in enumerate(keys)}
    run = _encode_names(columns["run"].as_text(), run_codes, "run", table)
    exposure = _encode_names(columns["exposure"].as_text(), exposure_codes, "exposure", table)
    # 0 for exposures that no run has.
    n_images = np.zeros(len(keys), dtype=np.int64)
    for code in np.unique(exposure):
        scores = store.first_scores(keys[code])
        n_images[code] = 0 if scores is None else scores.n
    row = _read_row_numbers(columns["row"], table, n_images, keys, exposure)
    # One code per pair of run and exposure.
    pair = run * len(keys) + exposure
    pair_names = [(run_name, key) for run_name in run_codes for key in keys]
    order = np.lexsort((row, pair))
    _check_no_duplicates(table, order, pair, row, pair_names)
    pairs, starts = np.unique(pair[order], return_index=True)
    rows_by_exposure: dict[RunAndExposure, IntArray] = {}
    for code, rows in zip(pairs, np.split(order, starts[1:]), strict=True):
        run_name, key = pair_names[code]
        n_required = int(n_images[code % len(keys)])
        if len(rows) < n_required:
            missing = np.setdiff1d(np.arange(n_required), row[rows])
            raise InputError(
                f"{table.source}: every image must be there; of the exposure {key!r} of the run "
                f"{run_name!r}, {missing.size:,} of {n_required:,} are missing, the first is row "
                f"{missing[0]}"
            )
        rows_by_exposure[run_name, key] = rows
    return RowIndex(table, rows_by_exposure)


def _encode_names(
    column: DataColumn, code_by_name: Mapping[str, int], kind: str, table: DataTable
) -> IntArray:
    """Return the code of each name in a column; raise UnknownNameError for other names."""
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


def _read_row_numbers(
    column: DataColumn, table: DataTable, n_images: IntArray, keys: list[str], exposure: IntArray
) -> IntArray:
    if column.is_text or column.is_missing is not None or not column.has_only_integers:
        raise DomainError(
            f"{table.source}: 'row' must hold whole numbers from 0; got {column.dtype_name}"
        )
    values: IntArray = np.asarray(column.values).astype(np.int64)
    invalid = (values < 0) | (values >= n_images[exposure])
    if invalid.any():
        row = int(np.flatnonzero(invalid)[0])
        code = exposure[row]
        raise DomainError(
            f"{table.source}: 'row' counts the images of an exposure from 0; {keys[code]!r} has "
            f"{n_images[code]:,}, and got {values[row]} in row {row} of the file"
        )
    return values


def _check_no_duplicates(
    table: DataTable, order: IntArray, pair: IntArray, row: IntArray, names: list[RunAndExposure]
) -> None:
    is_duplicate = (np.diff(pair[order]) == 0) & (np.diff(row[order]) == 0)
    if is_duplicate.any():
        position = int(np.flatnonzero(is_duplicate)[0])
        first_row, second_row = sorted((int(order[position]), int(order[position + 1])))
        run, exposure = names[pair[first_row]]
        raise InputError(
            f"{table.source}: each image must occur once; row {row[first_row]} of the exposure "
            f"{exposure!r} of the run {run!r} is in the rows {first_row} and {second_row} of the "
            "file"
        )


#: Columns without confidences, in addition to the logits of `export`.
_NON_SCORE_COLUMNS: Final = (*INDEX_COLUMNS, "label", "prediction")
_LOGIT_COLUMN = re.compile(r"logit_\d+")
#: Maximum number of names in a message.
MAX_LISTED: Final = 8
#: Valid names of methods, which become part of file names.
_METHOD_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,59}")


def method_names(table: DataTable, columns: Sequence[str], name: str | None) -> dict[str, str]:
    """Return the name of the method by column of confidences."""
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
    """Raise an error for an invalid name of a method, or one that is in use."""
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
    """Return the title of a method, which includes the column if there are several."""
    if not title:
        return name
    return title if n_columns == 1 else f"{title}, {column}"


def unused_column_notes(table: DataTable, method_by_column: dict[str, str]) -> list[str]:
    """Return a note on the columns that are not used, if there are any."""
    unused = [c for c in table.names if c not in method_by_column and _may_be_score(c)]
    return [f"not used: {', '.join(map(repr, unused))}"] if unused else []


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
    """Write the outputs of runs for every image as Parquet, to compute a confidence score from.

    Parameters
    ----------
    store : Store
        The folder of runs.
    run : Run, str or None
        One run or its name; None for all tested runs.
    path : str or Path
        Path of the file, with the suffix ".parquet". An existing file is replaced.

    Returns
    -------
    Exported
        Description of the file. It has the columns run, exposure ("validation" first), row, label
        (-1 for an image of no known class), prediction, and the logits as logit_0, logit_1, ...

    Raises
    ------
    UnknownNameError
        If the run does not exist.
    InputError
        If the suffix is wrong, the file cannot be written, or no run was tested.

    See Also
    --------
    abstain_bench.runs.importing.add_scores : Read a file with the same run, exposure and row.

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
    """Return the outputs of one run for every image as a table."""
    import polars as pl

    stored = next(stored for stored in store.stored_runs if stored.run.name == run.name)
    keys = [VALIDATION] if stored.validation_file else []
    keys += [exposure.key for exposure in store.exposures] if stored.test_file else []
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
            columns |= {f"logit_{k}": x for k, x in enumerate(np.asarray(scores.logits).T)}
        frames.append(pl.DataFrame(columns))
    return pl.concat(frames, rechunk=False)


def _select_runs(store: Store, run: Run | str | None) -> tuple[Run, ...]:
    if run is None:
        # Networks of added methods do not belong to the folder.
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
