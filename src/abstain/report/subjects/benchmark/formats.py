"""A benchmark as a page, for a terminal, as a table for a paper, and as files of all tables."""

import io
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from abstain._foundation.files import make_folder, write_atomically
from abstain.benchmark.results import BenchmarkResults
from abstain.report.document import NAN, Cell, Origin, Prose, Table
from abstain.report.render.html import html
from abstain.report.render.latex import label as latex_label
from abstain.report.render.latex import written as latex_written
from abstain.report.render.markdown import written as markdown_written
from abstain.report.render.terminal import terminal
from abstain.report.subjects.benchmark.document import benchmark_document
from abstain.report.subjects.benchmark.grids import footnote, grid_table
from abstain.report.subjects.benchmark.leaderboard import Entry, Leaderboard
from abstain.report.subjects.benchmark.pictures import Pictures
from abstain.tables.results import result_files

if TYPE_CHECKING:
    from rich.console import RenderableType

#: Columns that a page upright has room for.
_WIDE: Final = 8

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


def benchmark_html(
    results: BenchmarkResults,
    *,
    pictures: Pictures | None = None,
    beside: Sequence[BenchmarkResults] = (),
    title: str = "",
    notes: Sequence[str] = (),
    command: str = "",
) -> str:
    """Write the results of a benchmark as one self-contained HTML page.

    Parameters
    ----------
    results : BenchmarkResults
        What `results_of` returned.
    pictures : Pictures, optional
        What `benchmark_pictures` returned; without them the page says why there are none.
    beside : sequence of BenchmarkResults
        Of the same task with other models: they are compared with this one.
    title : str, optional
        The heading; by default it names the task.
    notes : sequence of str
        Sentences to show beside the warnings.
    command : str
        The command line or code that reproduces the page.

    Returns
    -------
    str
        HTML with style, script, figures and pictures inside; it loads nothing from the network.

    Raises
    ------
    InputError
        If `results` is something else.

    Notes
    -----
    Every string of the caller is escaped, also in the figures. With 31 methods and 12 studies
    the page has some 5 MB and takes about 20 seconds.

    Examples
    --------
    >>> from abstain.report import benchmark_html
    >>> benchmark_html({})
    Traceback (most recent call last):
    abstain.errors.InputError: `results` must be what `results_of` returned; got dict
    """
    return html(benchmark_document(results, Origin(title, "", notes, command), pictures, beside))


def write_benchmark(
    results: BenchmarkResults,
    path: str | os.PathLike[str],
    *,
    pictures: Pictures | None = None,
    beside: Sequence[BenchmarkResults] = (),
    title: str = "",
    notes: Sequence[str] = (),
    command: str = "",
) -> Path:
    """Write the page to a file: all of it or, when something fails, nothing.

    Parameters
    ----------
    results : BenchmarkResults
        What `results_of` returned.
    path : path-like
        The file; its folder must exist.
    pictures, beside, title, notes, command
        As for `benchmark_html`.

    Returns
    -------
    pathlib.Path
        The file written.

    Raises
    ------
    InputError
        If `results` is something else, or the file cannot be written.

    Examples
    --------
    >>> from abstain.report import write_benchmark
    >>> write_benchmark({}, "report.html")
    Traceback (most recent call last):
    abstain.errors.InputError: `results` must be what `results_of` returned; got dict
    """
    page = benchmark_html(
        results, pictures=pictures, beside=beside, title=title, notes=notes, command=command
    )
    write_atomically(Path(path), page.encode())
    return Path(path)


def benchmark_terminal(results: BenchmarkResults) -> "RenderableType":
    """Lay the main results of a benchmark out for a terminal.

    Parameters
    ----------
    results : BenchmarkResults
        What `results_of` returned.

    Returns
    -------
    rich renderable
        The verdict, the leaders of each study, and the best methods over all studies; print it
        with a `rich.console.Console` of at least 60 columns.

    Raises
    ------
    InputError
        If `results` is something else.

    Notes
    -----
    Names are printed as they are: no markup is read from them, and control characters are
    written out.

    Examples
    --------
    >>> from abstain.report import benchmark_terminal
    >>> benchmark_terminal({})
    Traceback (most recent call last):
    abstain.errors.InputError: `results` must be what `results_of` returned; got dict
    """
    return terminal(benchmark_document(results, Origin()))


def benchmark_latex(
    results: BenchmarkResults,
    metric: str | None = None,
    *,
    intervals: bool = False,
    shades: bool = False,
) -> str:
    r"""Write one metric as a table: studies as columns, methods as rows grouped by training.

    Parameters
    ----------
    results : BenchmarkResults
        What `results_of` returned.
    metric : str, optional
        By default AUGRC, or else the first that was computed.
    intervals : bool, default=False
        Write the interval behind each value.
    shades : bool, default=False
        Color the cells by rank; needs ``\usepackage[table]{xcolor}``.

    Returns
    -------
    str
        A ``tabular`` (booktabs) with a footnote that explains the marks. Names are escaped.

    Raises
    ------
    InputError
        If `results` is something else.
    UnknownNameError
        If the benchmark has no such metric.

    Examples
    --------
    >>> from abstain.report import benchmark_latex
    >>> benchmark_latex({})
    Traceback (most recent call last):
    abstain.errors.InputError: `results` must be what `results_of` returned; got dict
    """
    table, notes = _paper(results, metric, intervals=intervals, shades=shades)
    needs = r"\usepackage{booktabs}" + (r" \usepackage[table]{xcolor}" if shades else "")
    head = f"% {latex_label(table.columns[0].label)}. Needs {needs}"
    if len(table.columns) > _WIDE:
        head += "\n% Wide: \\resizebox{\\linewidth}{!}{...} around the tabular, or a sideways page."
    return latex_written((table, notes), head=head)


def benchmark_markdown(
    results: BenchmarkResults, metric: str | None = None, *, intervals: bool = False
) -> str:
    """Write one metric as a table: studies as columns, methods as rows grouped by training.

    Parameters
    ----------
    results : BenchmarkResults
        What `results_of` returned.
    metric : str, optional
        By default AUGRC, or else the first that was computed.
    intervals : bool, default=False
        Write the interval behind each value.

    Returns
    -------
    str
        Markdown with a trailing line that explains the marks. Names are escaped.

    Raises
    ------
    InputError
        If `results` is something else.
    UnknownNameError
        If the benchmark has no such metric.

    Examples
    --------
    >>> from abstain.report import benchmark_markdown
    >>> benchmark_markdown({})
    Traceback (most recent call last):
    abstain.errors.InputError: `results` must be what `results_of` returned; got dict
    """
    table, notes = _paper(results, metric, intervals=intervals)
    return markdown_written((replace(table, spans=()), notes))


def _paper(
    results: BenchmarkResults, metric: str | None, *, intervals: bool, shades: bool = False
) -> tuple[Table, Prose]:
    """Return the table of a metric, and the sentences under it."""
    board = Leaderboard(results)
    grid = board.grid(board.metric(metric))
    means = board.means(grid.metric)

    def cell(entry: Entry | None) -> Cell:
        if entry is None:
            return None
        number = entry.number if intervals else replace(entry.number, low=NAN, high=NAN)
        return number if shades else replace(number, shade=None)

    notes = footnote(grid, results.level, intervals=intervals, ranked=bool(means))
    return grid_table(board, grid, cell, means=means, paper=True), Prose(notes, "notes")


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
