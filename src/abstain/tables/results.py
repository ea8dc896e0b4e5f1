"""`write_results`: rows of results to Parquet and CSV, whole or not at all."""

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

#: A text cell that starts so may be run as a formula by a spreadsheet: a sign, also a full-width or
#: small one, after blanks and characters that do not show; or a tab or the end of a line.
_FORMULA = r"^[\p{Z}\p{C}]*[=+\-@＝＋－＠﹦﹢﹣﹫]|^[\t\r\n]"


class ResultFiles(NamedTuple):
    """Where results were written.

    Attributes
    ----------
    parquet : Path
        The typed table, exact.
    csv : Path
        The same table as text.
    """

    parquet: Path
    csv: Path


def write_results(rows: Any, out_dir: str | Path, *, name: str = "results") -> ResultFiles:
    """Write rows of results to `results.parquet` and `results.csv` in a folder.

    Each file appears whole or not at all: it is written beside its place and moved there.
    Numbers keep full double precision in both. NaN is a NaN in Parquet and "NaN" in CSV; None
    is a null and an empty cell. In the CSV, a text that a spreadsheet would run as a formula
    (it starts with =, +, - or @, also full-width or after blanks, or with a tab or the end of a
    line, and is no number) gets a leading apostrophe (more where two columns would get one name);
    the Parquet file keeps it as it is.

    Parameters
    ----------
    rows : dataframe, or iterable of mappings from column to value
        Values are numbers, texts, booleans or None. A row may lack columns.
    out_dir : str or Path
        The folder; made when it does not exist.
    name : str, default "results"
        The name of the files without their suffix.

    Returns
    -------
    ResultFiles
        The two paths, as `parquet` and `csv`.

    Raises
    ------
    InputError
        There are no rows, a value is no scalar, a column mixes kinds of values, or the folder
        cannot be written.

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
    content = result_files(rows, name)
    folder = Path(out_dir)
    make_folder(folder)
    for file, held in content.items():
        write_atomically(folder / file, held)
    return ResultFiles(folder / f"{name}.parquet", folder / f"{name}.csv")


def result_files(rows: Any, name: str = "results") -> dict[str, bytes]:
    """Return the content of the files of `write_results`, by their names."""
    frame = _frame(rows)
    table, text = io.BytesIO(), io.BytesIO()
    frame.write_parquet(table)
    escaped(frame).write_csv(text, null_value="")
    return {f"{name}.parquet": table.getvalue(), f"{name}.csv": text.getvalue()}


# ------------------------------------------------------------------------------------ rows
def _frame(rows: Any) -> "pl.DataFrame":
    import polars as pl

    if isinstance(rows, pl.DataFrame):
        return _of_columns({name: rows[name].to_list() for name in rows.columns})
    if hasattr(rows, "columns"):
        table = from_frame(rows, "the dataframe of results")
        if table is not None:
            columns = table.load(table.names)
            return _of_columns({name: _values(c) for name, c in columns.items()})
    if isinstance(rows, Mapping) or not isinstance(rows, Iterable):
        raise InputError(
            f"`rows` must be a dataframe or a list of dicts; got {type(rows).__name__}"
        )
    return _of_columns(_gather(list(rows)))


def _values(column: DataColumn) -> list[Any]:
    """Return Python values; a missing number is NaN where it was a float, else None."""
    if column.is_text:
        return list(column.strings().tolist())
    out: list[Any] = column.values.tolist()
    if column.missing is not None and column.values.dtype.kind != "f":
        out = [None if gone else v for v, gone in zip(out, column.missing, strict=True)]
    return out


def _gather(rows: Sequence[Any]) -> dict[str, list[Any]]:
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
            values.append(_scalar(row.get(name), name, i))
    return columns


def _scalar(value: Any, name: str, row: int) -> Any:
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        value = value.item()
    if value is not None and not isinstance(value, bool | int | float | str):
        raise InputError(
            f"the values of a result must be numbers, texts, booleans or None; column {name!r} "
            f"has {type(value).__name__} in row {row}"
        )
    return value


def _of_columns(columns: dict[str, list[Any]]) -> "pl.DataFrame":
    import polars as pl

    if not columns or not next(iter(columns.values())):
        raise InputError("there are no results to write; at least one row is needed")
    series = []
    for name, values in columns.items():
        kinds = {type(v) for v in values if v is not None}
        if len(kinds) > 1 and kinds != {int, float}:
            shown = ", ".join(sorted(k.__name__ for k in kinds))
            raise InputError(
                f"column {name!r} of the results mixes {shown}; use one type in a column"
            )
        dtype = pl.Float64 if float in kinds or not kinds else None
        series.append(pl.Series(name, values, dtype=dtype, strict=False))
    return pl.DataFrame(series)


# ------------------------------------------------------------------------------------ spreadsheets
def escaped(frame: "pl.DataFrame") -> "pl.DataFrame":
    """Return the table with nothing in it that a spreadsheet would run as a formula."""
    import polars as pl

    texts = [n for n, dtype in frame.schema.items() if dtype == pl.String]
    cells = frame.with_columns(
        pl.when(
            pl.col(n).str.contains(_FORMULA) & pl.col(n).cast(pl.Float64, strict=False).is_null()
        )
        .then(pl.concat_str(pl.lit("'"), pl.col(n)))
        .otherwise(pl.col(n))
        .alias(n)
        for n in texts
    )
    return cells.rename(_escaped_names(frame.columns))


def _escaped_names(names: list[str]) -> dict[str, str]:
    """Escape the names of columns, which are cells too, and keep them apart."""
    import polars as pl

    taken = set(names)
    escaped: dict[str, str] = {}
    cells = pl.Series(names, dtype=pl.String)
    for name in cells.filter(cells.str.contains(_FORMULA)):
        escaped[name] = f"'{name}"
        while escaped[name] in taken:
            escaped[name] = f"'{escaped[name]}"
        taken.add(escaped[name])
    return escaped
