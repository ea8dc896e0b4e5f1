"""Tables with a row for each image: what runs say is exported as one, and scores come as one.

The columns run, exposure and row say in both which image a row is about.
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
from abstain.tables.column import DataColumn, to_number
from abstain.tables.table import DataTable
from abstain.typing import Array, FloatArray, IntArray
from abstain_bench.runs.methods import METHODS
from abstain_bench.runs.store import VALIDATION, AddedMethod, Run, Store

if TYPE_CHECKING:
    import polars as pl

#: The columns that say which image a row is about.
PLACE: Final = ("run", "exposure", "row")

#: A run and an exposure, by name and key.
Cell = tuple[str, str]


@dataclass(frozen=True, eq=False)
class RowIndex:
    """Which rows of a table belong to which run and exposure, in the order of the images."""

    table: DataTable
    cells: Mapping[Cell, IntArray]

    def numbers(self, name: str) -> FloatArray:
        """Return a column of confidences, all of them finite numbers."""
        column = self._column(name)
        if column.is_text or column.values.ndim != 1:
            raise DomainError(
                f"{self.table.source}: the column {name!r} must hold one number a row"
            )
        values = np.asarray(column.values, dtype=np.float64)
        bad = ~np.isfinite(values)
        if column.is_missing is not None:
            bad = bad | column.is_missing
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            raise DomainError(
                f"{self.table.source}: every confidence must be a finite number; got "
                f"{column.format_entry(row)} in row {row} of {name!r} ({self.where(row)}), "
                f"{int(bad.sum()):,} such rows. Give an abstention the lowest confidence instead"
            )
        return values

    def codes(self, name: str, classes: Sequence[str]) -> IntArray:
        """Return a column of classes as codes; names of classes are understood."""
        column = self._column(name)
        if column.is_text:
            return _coded(column, {c: i for i, c in enumerate(classes)}, "class", self.table)
        values = np.asarray(column.values)
        low = -1 if name == "label" else 0
        fits = column.is_missing is None and column.has_only_integers and values.ndim == 1
        bad = (values < low) | (values >= len(classes)) if fits else np.ones(1, np.bool_)
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            raise DomainError(
                f"{self.table.source}: {name!r} must hold names of classes, or whole numbers from "
                f"{low} to {len(classes) - 1}; got "
                + (column.format_entry(row) if fits else column.dtype_name)
                + (f" in row {row}" if fits else "")
            )
        return values.astype(np.int64)

    def where(self, row: int) -> str:
        """Say which image a row is about."""
        for (run, exposure), rows in self.cells.items():
            place = np.flatnonzero(rows == row)
            if place.size:
                return f"run {run!r}, exposure {exposure!r}, row {place[0]}"
        return "no image"

    def _column(self, name: str) -> DataColumn:
        column = self.table.load([name])[name]
        return to_number(column) if column.is_text and self.table.is_untyped else column


def rows_of(store: Store, table: DataTable) -> RowIndex:
    """Match the rows of a table with the images of a store; each must be there once."""
    for name in PLACE:
        if name not in table.kind_by_column:
            raise UnknownNameError(
                f"{table.source} has no column {name!r}.{suggest(name, table.names)} A file of "
                "confidences says with `run`, `exposure` and `row` which image each row is about"
            )
    columns = table.load(PLACE)
    runs = {kept.run.name: i for i, kept in enumerate(store.stored_runs)}
    keys = {VALIDATION: 0} | {one.key: i for i, one in enumerate(store.exposures, start=1)}
    run = _coded(columns["run"].as_text(), runs, "run", table)
    exposure = _coded(columns["exposure"].as_text(), keys, "exposure", table)
    # 0 where no run has any.
    sizes = np.zeros(len(keys), dtype=np.int64)
    for code in np.unique(exposure):
        said = store.first_scores(list(keys)[code])
        sizes[code] = 0 if said is None else said.n
    row = _row_numbers(columns["row"], table, sizes[exposure], list(keys), exposure)
    cell = run * len(keys) + exposure
    order = np.lexsort((row, cell))
    names = [(a, b) for a in runs for b in keys]
    _refuse_twice(table, order, cell, row, names)
    found, starts = np.unique(cell[order], return_index=True)
    cells: dict[Cell, IntArray] = {}
    for code, rows in zip(found, np.split(order, starts[1:]), strict=True):
        _refuse_few(table, names[code], row[rows], int(sizes[code % len(keys)]))
        cells[names[code]] = rows
    return RowIndex(table, cells)


def _coded(column: DataColumn, known: Mapping[str, int], what: str, table: DataTable) -> IntArray:
    codes, names = column.distinct()
    place = np.array([known.get(str(name), -1) for name in names], dtype=np.int64)
    found: IntArray = place[codes]
    if (found < 0).any():
        row = int(np.flatnonzero(found < 0)[0])
        given = str(names[codes[row]])
        shown = ", ".join(list(known)[:12]) + (", ..." if len(known) > 12 else "")
        raise UnknownNameError(
            f"{table.source}: there is no {what} {given!r} in the folder (row {row})."
            f"{suggest(given, known)} It has: {shown}"
        )
    return found


def _row_numbers(
    column: DataColumn, table: DataTable, most: IntArray, keys: list[str], exposure: IntArray
) -> IntArray:
    if column.is_text or column.is_missing is not None or not column.has_only_integers:
        raise DomainError(
            f"{table.source}: 'row' must hold whole numbers, counted from 0; got "
            f"{column.dtype_name}"
        )
    values: IntArray = np.asarray(column.values).astype(np.int64)
    bad = (values < 0) | (values >= most)
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        raise DomainError(
            f"{table.source}: 'row' counts the images of an exposure from 0; "
            f"{keys[exposure[at]]!r} has {most[at]:,}, and got {values[at]} in row {at} of the file"
        )
    return values


def _refuse_twice(
    table: DataTable, order: IntArray, cell: IntArray, row: IntArray, names: list[Cell]
) -> None:
    again = (np.diff(cell[order]) == 0) & (np.diff(row[order]) == 0)
    if again.any():
        first = int(np.flatnonzero(again)[0])
        a, b = sorted((int(order[first]), int(order[first + 1])))
        run, exposure = names[cell[a]]
        raise InputError(
            f"{table.source}: each image must be there once; row {row[a]} of the exposure "
            f"{exposure!r} of the run {run!r} is in the rows {a} and {b} of the file"
        )


def _refuse_few(table: DataTable, name: Cell, rows: Array, size: int) -> None:
    if len(rows) < size:
        lacking = np.setdiff1d(np.arange(size), rows)
        raise InputError(
            f"{table.source}: every image must be there; of the exposure {name[1]!r} of the run "
            f"{name[0]!r}, {lacking.size:,} of {size:,} are missing, the first is row {lacking[0]}"
        )


#: Columns that are no confidences, beside the logits that `export` writes.
_OTHERS: Final = (*PLACE, "label", "prediction")
_LOGIT = re.compile(r"logit_\d+")
#: What a method may be called: its name becomes part of names of files.
_METHOD_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,59}")


def methods_of(table: DataTable, columns: Sequence[str], name: str | None) -> dict[str, str]:
    """Return the name of the method of each column of confidences."""
    given = (columns,) if isinstance(columns, str) else tuple(columns)
    for column in given:
        if column not in table.kind_by_column:
            raise UnknownNameError(
                f"{table.source} has no column {column!r}.{suggest(column, table.names)}"
            )
    found = given or tuple(
        column
        for column, kind in table.kind_by_column.items()
        if kind == "number" and column not in _OTHERS and not _LOGIT.fullmatch(column)
    )
    if not found:
        raise InputError(
            f"{table.source} has no column of confidences beside {', '.join(table.names)}; "
            "each other column of numbers would be one"
        )
    if name is None:
        return {column: column for column in found}
    return {found[0]: name} if len(found) == 1 else {c: f"{name}-{c}" for c in found}


def refuse_taken(name: str, store: Store, before: Sequence[AddedMethod], replace: bool) -> None:
    """Refuse a name that cannot be one, or that a method has already."""
    if not _METHOD_NAME.fullmatch(name):
        raise InputError(
            "a method must be named with up to 60 letters, digits, dots, hyphens, underscores and "
            f"plus signs; got {name!r}. Give it another with `name`"
        )
    known = {method for kept in store.stored_runs for method in kept.validation_values}
    if name in METHODS or name in known or name in {run.arm for run in store.runs}:
        raise InputError(
            f"{name!r} is the name of a method or an arm of the benchmark; choose another `name`"
        )
    if not replace and name in {one.name for one in before}:
        raise InputError(
            f"a method {name!r} was added before; choose another `name`, or ask to replace it"
        )


def titled(title: str, column: str, name: str, count: int) -> str:
    """Return what people read: the title given, with the column where there are several."""
    if not title:
        return name
    return title if count == 1 else f"{title}, {column}"


def unused(table: DataTable, asked: dict[str, str]) -> list[str]:
    """Return the columns that nothing is made of."""
    left = [
        column
        for column in table.names
        if column not in asked and column not in _OTHERS and not _LOGIT.fullmatch(column)
    ]
    return [f"not used: {', '.join(map(repr, left))}"] if left else []


# ------------------------------------------------------------------------------------ what runs say
@dataclass(frozen=True)
class Exported:
    """What `export` wrote.

    Attributes
    ----------
    path : Path
        The file.
    runs : tuple of str
        Whose.
    rows : int
        Number of images, over all runs and exposures.
    classes : int
        Number of columns of logits; 0 where the runs have none.
    """

    path: Path
    runs: tuple[str, ...]
    rows: int
    classes: int


def export(store: Store, run: Run | str | None, path: str | Path) -> Exported:
    """Write what runs say of every image as Parquet, for a confidence score to be computed from.

    Answers: what do I need to try my confidence score on these networks?

    Parameters
    ----------
    store : Store
        The folder of runs.
    run : Run, str or None
        One run or its name; None for all that were tested.
    path : str or Path
        Where, with the suffix ".parquet"; what is there is replaced.

    Returns
    -------
    Exported
        What is in the file: the columns run, exposure ("validation" first), row, label (-1 for a
        image of no known class), prediction, and the logits as logit_0, logit_1, ...

    Raises
    ------
    UnknownNameError
        There is no such run.
    InputError
        The suffix is another, the place cannot be written, or no run was tested.

    See Also
    --------
    abstain_bench.runs.importing.add_scores : Takes a file with the same run, exposure and row.

    Examples
    --------
    >>> from abstain_bench.runs.importing import export
    >>> from abstain_bench.runs.store import Store
    >>> export(Store.read("runs"), None, "all.parquet")  # doctest: +SKIP
    """
    place = Path(path)
    if place.suffix.lower() != ".parquet":
        raise InputError(
            f"runs are exported as Parquet: the name must end in '.parquet'; got {str(place)!r}"
        )
    import polars as pl

    runs = _runs(store, run)
    if not runs:
        raise InputError(
            f"no run of {str(store.folder)!r} is tested yet, so that there is nothing to export; "
            f"`abstain benchmark status {quote(str(store.folder))}` says how far it is"
        )
    parts = [_rows_of_run(store, one) for one in runs]
    # Runs that were imported from probabilities have no logits.
    whole = pl.concat(parts, how="diagonal", rechunk=False)
    content = io.BytesIO()
    whole.write_parquet(content, compression="zstd")
    write_atomically(place, content.getvalue())
    logits = sum(name.startswith("logit_") for name in whole.columns)
    return Exported(place, tuple(one.name for one in runs), whole.height, logits)


def _rows_of_run(store: Store, run: Run) -> "pl.DataFrame":
    """Return what one run says of every image as a table."""
    import polars as pl

    kept = next(one for one in store.stored_runs if one.run.name == run.name)
    keys = [VALIDATION] if kept.validation_file else []
    keys += [one.key for one in store.exposures] if kept.test_file else []
    parts = []
    for key in keys:
        said = store.scores(run, key, logits=True)
        columns = {
            "run": pl.Series([run.name], dtype=pl.String).new_from_index(0, said.n),
            "exposure": pl.Series([key], dtype=pl.String).new_from_index(0, said.n),
            "row": np.arange(said.n),
            "label": said.labels,
            "prediction": said.prediction,
        }
        if said.logits is not None:
            columns |= {f"logit_{k}": x for k, x in enumerate(np.asarray(said.logits).T)}
        parts.append(pl.DataFrame(columns))
    return pl.concat(parts, rechunk=False)


def _runs(store: Store, run: Run | str | None) -> tuple[Run, ...]:
    if run is None:
        # Networks that came with the scores of others are no runs of the folder.
        own = {one.name for one in store.added_methods if one.classifier}
        return tuple(one for one in store.tested_runs if one.arm not in own)
    name = run if isinstance(run, str) else run.name
    known = {one.name: one for one in store.runs}
    if name not in known:
        shown = ", ".join(list(known)[:12])
        raise UnknownNameError(
            f"there is no run {name!r} in the folder.{suggest(name, known)} It has: {shown}"
        )
    return (known[name],)
