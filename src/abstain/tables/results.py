"""Write rows of results to Parquet and CSV files."""

import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from abstain._foundation.files import make_folder, write_atomically
from abstain.errors import InputError
from abstain.tables.column import DataColumn
from abstain.tables.table import from_frame

if TYPE_CHECKING:
    import polars as pl

#: Pattern for the beginning of a text that a spreadsheet may execute as a formula. It matches a
#: sign that may be full-width, small or preceded by invisible characters, or a tab or a line end.
_FORMULA = r"^[\p{Z}\p{C}]*[=+\-@＝＋－＠﹦﹢﹣﹫]|^[\t\r\n]"


class ResultFiles(NamedTuple):
    """Paths of the written results.

    Attributes
    ----------
    parquet : Path
        Path of the table with data types and unchanged texts.
    csv : Path
        Path of the same table as text, with escaped formulas.
    """

    parquet: Path
    csv: Path


def write_results(rows: Any, out_dir: str | Path, *, name: str = "results") -> ResultFiles:
    """Write rows of results to `results.parquet` and `results.csv` in a folder.

    The function writes each file under a temporary name and then renames it, so the folder never
    contains an incomplete file. Numbers keep full double precision. NaN is stored as NaN in Parquet
    and as "NaN" in CSV. None is stored as null in Parquet and as an empty cell in CSV.

    In the CSV file, texts that a spreadsheet would execute as a formula get a leading apostrophe.
    Such texts are not numbers and start with =, +, - or @ (also full-width or after spaces), with a
    tab or with a line end. Column names are escaped in the same way, and different names remain
    different.

    Parameters
    ----------
    rows : dataframe, or iterable of mappings from column to value
        Results, with a number, text, boolean or None per cell. A row may lack columns.
    out_dir : str or Path
        Folder of the files, which is created if it does not exist.
    name : str, default "results"
        Name of the files without the suffix.

    Returns
    -------
    ResultFiles
        The two paths, as `parquet` and `csv`.

    Raises
    ------
    InputError
        If there are no rows, if a value is not a scalar, if a column mixes data types, or if the
        folder cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> files = write_results([{"metric": "aurc", "value": 0.1}, {"metric": "=1+1"}], folder.name)
    >>> print(files.csv.read_text().strip())
    metric,value
    aurc,0.1
    '=1+1,
    >>> folder.cleanup()
    """
    folder = Path(out_dir)
    contents = result_files(rows, name)
    make_folder(folder)
    for file_name, content in contents.items():
        write_atomically(folder / file_name, content)
    return ResultFiles(folder / f"{name}.parquet", folder / f"{name}.csv")


def result_files(rows: Any, name: str = "results") -> dict[str, bytes]:
    """Return the contents of the files that `write_results` writes, by file name."""
    frame = _to_polars(rows)
    parquet, csv = io.BytesIO(), io.BytesIO()
    frame.write_parquet(parquet)
    escape_formulas(frame).write_csv(csv, null_value="")
    return {f"{name}.parquet": parquet.getvalue(), f"{name}.csv": csv.getvalue()}


# ------------------------------------------------------------------------------------ rows
def _to_polars(rows: Any) -> "pl.DataFrame":
    """Convert a dataframe or a list of mappings to a polars dataframe."""
    import polars as pl

    if isinstance(rows, pl.DataFrame):
        return _frame_from_columns({name: rows[name].to_list() for name in rows.columns})
    if hasattr(rows, "columns"):
        table = from_frame(rows, "the dataframe of results")
        if table is not None:
            columns = table.load(table.names)
            return _frame_from_columns({n: _to_list(column) for n, column in columns.items()})
    if isinstance(rows, Mapping) or not isinstance(rows, Iterable):
        raise InputError(
            f"`rows` must be a dataframe or a list of dicts; got {type(rows).__name__}"
        )
    return _frame_from_columns(_columns_from_rows(list(rows)))


def _to_list(column: DataColumn) -> list[Any]:
    """Return the values of a column as a list.

    Missing values are NaN in a column of floats, and None in other columns.
    """
    if column.is_text:
        return list(column.to_strings().tolist())
    values: list[Any] = column.values.tolist()
    if column.is_missing is None or column.values.dtype.kind == "f":
        return values
    pairs = zip(values, column.is_missing, strict=True)
    return [None if is_missing else value for value, is_missing in pairs]


def _columns_from_rows(rows: Sequence[Any]) -> dict[str, list[Any]]:
    """Return the values of each column.

    If a row has no value in a column, the value is None.
    """
    columns: dict[str, list[Any]] = {}
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise InputError(
                f"each row must be a dict from column to value; got {type(row).__name__} at {i}"
            )
        for name in row:
            if name in columns:
                continue
            if not isinstance(name, str):
                raise InputError(f"the names of columns must be text; got {name!r} in row {i}")
            columns[name] = [None] * i
        for name, values in columns.items():
            values.append(_to_scalar(row.get(name), name, i))
    return columns


def _to_scalar(value: Any, name: str, row: int) -> Any:
    """Convert a value to a Python scalar, or raise an error if it is not a scalar."""
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        value = value.item()
    if value is not None and not isinstance(value, bool | int | float | str):
        raise InputError(
            f"the values of a result must be numbers, texts, booleans or None; column {name!r} "
            f"has {type(value).__name__} in row {row}"
        )
    return value


def _frame_from_columns(columns: dict[str, list[Any]]) -> "pl.DataFrame":
    """Create a polars dataframe with one data type per column."""
    import polars as pl

    if not columns or not next(iter(columns.values())):
        raise InputError("there are no results to write; at least one row is needed")
    series = []
    for name, values in columns.items():
        types = {type(value) for value in values if value is not None}
        if len(types) > 1 and types != {int, float}:
            type_names = ", ".join(sorted(t.__name__ for t in types))
            raise InputError(
                f"column {name!r} of the results mixes {type_names}; use one type per column"
            )
        dtype = pl.Float64 if float in types or not types else None
        series.append(pl.Series(name, values, dtype=dtype, strict=False))
    return pl.DataFrame(series)


# ------------------------------------------------------------------------------------ spreadsheets
def escape_formulas(frame: "pl.DataFrame") -> "pl.DataFrame":
    """Insert an apostrophe before texts and column names that a spreadsheet would execute."""
    import polars as pl

    expressions = []
    for name, dtype in frame.schema.items():
        if dtype != pl.String:
            continue
        column = pl.col(name)
        is_number = column.cast(pl.Float64, strict=False).is_not_null()
        is_formula = column.str.contains(_FORMULA) & ~is_number
        escaped = pl.concat_str(pl.lit("'"), column)
        expressions.append(pl.when(is_formula).then(escaped).otherwise(column).alias(name))
    return frame.with_columns(expressions).rename(_escape_names(frame.columns))


def _escape_names(names: list[str]) -> dict[str, str]:
    """Return new names for columns whose names a spreadsheet would execute.

    All names remain distinct.
    """
    import polars as pl

    used_names = set(names)
    new_names: dict[str, str] = {}
    header = pl.Series(names, dtype=pl.String)
    for name in header.filter(header.str.contains(_FORMULA)):
        new_name = f"'{name}"
        while new_name in used_names:
            new_name = f"'{new_name}"
        new_names[name] = new_name
        used_names.add(new_name)
    return new_names
