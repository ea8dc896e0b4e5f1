"""The tables of a benchmark as files: CSV, Parquet, LaTeX, Markdown."""

import io
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from abstain._foundation.files import make_folder, write_atomically
from abstain.benchmark.results import BenchmarkResults
from abstain.report.benchmark_grid import checked_results
from abstain.report.benchmark_latex import benchmark_latex
from abstain.report.benchmark_markdown import benchmark_markdown
from abstain.tables.results import result_files

if TYPE_CHECKING:
    import polars as pl

#: The files, and the table of the results that each holds.
_TABLES: Final = {
    "values": "estimates",
    "ranks": "standings",
    "pairs": "pairs",
    "chosen": "chosen",
    "thresholds": "thresholds",
    "calibration": "calibration",
    "extremes": "extremes",
    "curves": "curves",
    "methods": "methods",
    "studies": "studies",
    "left_out": "left_out",
    "findings": "findings",
}

#: Tables of points to draw, a hundred thousand of them: as text ten times as large.
_BINARY: Final = frozenset({"curves"})

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9]+")


def write_tables(results: BenchmarkResults, folder: str | os.PathLike[str]) -> list[Path]:
    """Write all tables of a benchmark.

    Parameters
    ----------
    results : BenchmarkResults
        What `results_of` returned.
    folder : path-like
        Made when it does not exist.

    Returns
    -------
    list of pathlib.Path
        ``values``, ``ranks``, ``pairs``, ``chosen``, ``thresholds``, ``calibration`` and others
        as ``.csv`` and ``.parquet``, one row a number, fractions in double precision; the points
        of the ``curves`` as Parquet only; tables without a row are left out. For each metric the
        main table as ``.tex`` and ``.md``.

    Raises
    ------
    InputError
        If `results` is something else, or a file cannot be written.

    Examples
    --------
    >>> from abstain.report.benchmark_files import write_tables
    >>> write_tables({}, "tables")
    Traceback (most recent call last):
    abstain.errors.InputError: `results` must be what `results_of` returned; got dict
    """
    content, place = table_files(results), Path(folder)
    make_folder(place)
    for name, held in content.items():
        write_atomically(place / name, held)
    return [place / name for name in content]


def table_files(results: BenchmarkResults) -> dict[str, bytes]:
    """Return the content of the files of `write_tables`, by their names."""
    known = checked_results(results)
    files: dict[str, bytes] = {}
    for name, table in _TABLES.items():
        frame = known.frame(table)
        # Tens of thousands of pairs: a frame is written in a second, rows one by one in a minute.
        if frame.height and name in _BINARY:
            files[f"{name}.parquet"] = _binary(frame)
        elif frame.height:
            files |= result_files(frame, name)
    return files | dict(_main(known))


def _binary(frame: "pl.DataFrame") -> bytes:
    table = io.BytesIO()
    frame.write_parquet(table)
    return table.getvalue()


def _main(results: BenchmarkResults) -> Iterator[tuple[str, bytes]]:
    for metric in results.comparisons:
        name = _UNSAFE.sub("-", metric).strip("-") or "metric"
        yield f"table-{name}.tex", benchmark_latex(results, metric).encode()
        yield f"table-{name}.md", benchmark_markdown(results, metric).encode()
