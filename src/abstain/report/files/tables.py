"""All tables of a benchmark as files."""

import io
import os
import re
from pathlib import Path
from typing import Final

from abstain._foundation.files import make_folder, write_atomically
from abstain.benchmark.results import BenchmarkResults
from abstain.report.papers import benchmark_latex, benchmark_markdown
from abstain.report.subjects.benchmark.leaderboard import Leaderboard
from abstain.tables.results import result_files

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
    >>> from abstain.report import write_tables
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
    known = Leaderboard(results).results
    files: dict[str, bytes] = {}
    for name, table in _TABLES.items():
        frame = known.frame(table)
        if frame.height and name == "curves":
            # Points to draw, a hundred thousand of them: as text ten times as large.
            points = io.BytesIO()
            frame.write_parquet(points)
            files[f"{name}.parquet"] = points.getvalue()
        elif frame.height:
            files |= result_files(frame, name)
    for metric in known.comparisons:
        name = _UNSAFE.sub("-", metric).strip("-") or "metric"
        files[f"table-{name}.tex"] = benchmark_latex(known, metric).encode()
        files[f"table-{name}.md"] = benchmark_markdown(known, metric).encode()
    return files
