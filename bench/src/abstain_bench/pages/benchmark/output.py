"""Write benchmark results as one page, several pages, LaTeX and Markdown tables, or data files."""

import io
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from abstain._foundation.files import make_folder, write_atomically
from abstain.report import document as doc
from abstain.report.document import ReportOptions
from abstain.report.images import SampleImages
from abstain.report.output import Subject
from abstain.report.render import latex, markdown
from abstain.report.render.html import html, link_pages
from abstain.tables.results import result_files
from abstain_bench.pages.benchmark import grids
from abstain_bench.pages.benchmark.document import benchmark_document, method_sections
from abstain_bench.pages.benchmark.front import (
    front_blocks,
    front_context,
    summary_sentences,
)
from abstain_bench.pages.benchmark.grids import back
from abstain_bench.pages.benchmark.leaderboard import Leaderboard, kind_title
from abstain_bench.pages.benchmark.studies import study_blocks, study_sentence
from abstain_bench.results import BenchmarkResults
from abstain_bench.runs.studies import Study

#: Addresses of the first page and of the page with all methods.
HOME: Final = "benchmark.html"
METHODS: Final = "pages/methods.html"


def benchmark_pages(
    results: BenchmarkResults, origin: doc.ReportOptions
) -> dict[str, doc.Document]:
    """Return each page by its path relative to the first page."""
    board = Leaderboard(results)
    full_document = benchmark_document(results, origin)
    methods = replace(
        full_document,
        title=f"{full_document.title}: all methods",
        blocks=lambda: method_sections(board, origin),
    )
    studies = {
        f"pages/{board.anchors[study.name]}.html": _study_page(board, study, full_document, origin)
        for study in results.headline
    }
    return {HOME: _overview_page(board, full_document, origin), METHODS: methods, **studies}


def _overview_page(
    board: Leaderboard, full_document: doc.Document, origin: doc.ReportOptions
) -> doc.Document:
    """Return the first page, which contains only the main sections of the report."""
    return replace(
        full_document,
        blocks=lambda: _overview_blocks(board, origin),
        context=(*full_document.context, *front_context(board)),
        answer=summary_sentences(board),
    )


def _study_page(
    board: Leaderboard, study: Study, full_document: doc.Document, origin: doc.ReportOptions
) -> doc.Document:
    """Return the page of one study, with a description and all of its results."""

    def blocks() -> Iterator[doc.Block]:
        results = (
            back(("glance", "The benchmark"), ("tables", "All methods")),
            *study_blocks(board, study, origin.images),
        )
        yield doc.Section(board.anchors[study.name], "Values, ranks and curves", results)

    context = (full_document.title, kind_title(study.kind))
    return doc.Document(study.title, context, blocks, answer=(study_sentence(board, study),))


def _overview_blocks(board: Leaderboard, origin: doc.ReportOptions) -> Iterator[doc.Block]:
    """Yield the overview and links to all other pages."""
    yield doc.Section("glance", "At a glance", tuple(front_blocks(board, origin.images)))
    links = tuple((board.anchors[study.name], study.title) for study in board.results.headline)
    introduction = (
        doc.Span("All methods", link="#tables"),
        (
            " by every metric, in the order of their mean ranks, with descriptions. Pages of the "
            "sources of failures:"
        ),
    )
    blocks = (doc.Prose(introduction), doc.Links(links))
    yield doc.Section("studies", "More", blocks, nav_title="More")


BENCHMARK: Final[Subject[BenchmarkResults]] = Subject(
    benchmark_document, supported_options=frozenset({"images", "other_models"})
)

benchmark_html, write_benchmark = BENCHMARK.html, BENCHMARK.write
benchmark_terminal = BENCHMARK.terminal

#: Maximum number of columns of a table on a page in portrait format.
_MAX_COLUMNS: Final = 8

#: Names of the tables of the results by the name of the file that contains them.
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
    "costs": "costs",
    "published": "published",
    "published-orders": "published_orders",
}

_UNSAFE_CHARACTERS: Final = re.compile(r"[^A-Za-z0-9]+")


def benchmark_markdown(
    results: BenchmarkResults, metric: str | None = None, *, intervals: bool = False
) -> str:
    """Format the values of one metric as a Markdown table.

    Each column is a study, and the rows are methods grouped by training objective.

    Parameters
    ----------
    results : BenchmarkResults
        The results that `results_of` returns.
    metric : str, optional
        Metric of the table. The default is AUGRC, or the first computed metric if AUGRC was not
        computed.
    intervals : bool, default=False
        Whether each value is followed by its interval.

    Returns
    -------
    str
        Markdown text. The last line explains the marks. Names are escaped.

    Raises
    ------
    InputError
        If `results` has another type.
    UnknownNameError
        If the results do not contain the metric.

    Examples
    --------
    >>> from abstain_bench.pages import benchmark_markdown
    >>> benchmark_markdown({})
    Traceback (most recent call last):
    abstain.errors.InputError: `results` must be what `results_of` returned; got dict
    """
    return _markdown(Leaderboard(results), metric, intervals=intervals)


def _markdown(board: Leaderboard, metric: str | None, *, intervals: bool = False) -> str:
    table, notes = grids.paper(board, metric, intervals=intervals)
    return markdown.markdown_blocks((replace(table, column_groups=()), notes))


def benchmark_latex(
    results: BenchmarkResults,
    metric: str | None = None,
    *,
    intervals: bool = False,
    shades: bool = False,
) -> str:
    r"""Format the values of one metric as a LaTeX table.

    Each column is a study, and the rows are methods grouped by training objective.

    Parameters
    ----------
    results : BenchmarkResults
        The results that `results_of` returns.
    metric, intervals
        As for `benchmark_markdown`.
    shades : bool, default=False
        Whether cells are colored by rank, which requires ``\usepackage[table]{xcolor}``.

    Returns
    -------
    str
        LaTeX source of a ``tabular`` for the package booktabs, with a footnote that explains the
        marks. Names are escaped.

    Raises
    ------
    InputError
        If `results` has another type.
    UnknownNameError
        If the results do not contain the metric.

    Examples
    --------
    >>> from abstain_bench.pages import benchmark_latex
    >>> benchmark_latex({})
    Traceback (most recent call last):
    abstain.errors.InputError: `results` must be what `results_of` returned; got dict
    """
    return _latex(Leaderboard(results), metric, intervals=intervals, shades=shades)


def _latex(
    board: Leaderboard, metric: str | None, *, intervals: bool = False, shades: bool = False
) -> str:
    """Format one metric as a LaTeX table, preceded by a comment with the required packages."""
    table, notes = grids.paper(board, metric, intervals=intervals, shades=shades)
    packages = [r"\usepackage{booktabs}"]
    if shades:
        packages.append(r"\usepackage[table]{xcolor}")
    header = f"% {latex.label(table.columns[0].label)}. Needs {' '.join(packages)}"
    if len(table.columns) > _MAX_COLUMNS:
        header += (
            "\n% Wide: \\resizebox{\\linewidth}{!}{...} around the tabular, or a sideways page."
        )
    return latex.latex_blocks((table, notes), header=header)


def write_tables(results: BenchmarkResults, folder: str | os.PathLike[str]) -> list[Path]:
    """Write all tables of a benchmark.

    Parameters
    ----------
    results : BenchmarkResults
        The results that `results_of` returns.
    folder : path-like
        Output folder. The folder is created if it does not exist.

    Returns
    -------
    list of pathlib.Path
        The written files. Each table, such as ``values``, ``ranks``, ``pairs``, ``chosen``,
        ``thresholds`` and ``calibration``, is written as ``.csv`` and ``.parquet``. The tables have
        one number per row, unrounded and in double precision. The table ``curves`` is written only
        as Parquet. Empty tables are omitted. The main table of each metric is also written as
        ``.tex`` and ``.md``.

    Raises
    ------
    InputError
        If `results` has another type, or a file cannot be written.

    Examples
    --------
    >>> from abstain_bench.pages import write_tables
    >>> write_tables({}, "tables")
    Traceback (most recent call last):
    abstain.errors.InputError: `results` must be what `results_of` returned; got dict
    """
    files = table_files(results)
    target = Path(folder)
    make_folder(target)
    for name, content in files.items():
        write_atomically(target / name, content)
    return [target / name for name in files]


def table_files(results: BenchmarkResults) -> dict[str, bytes]:
    """Return a dictionary that maps the name of each file of `write_tables` to its content."""
    board = Leaderboard(results)
    files: dict[str, bytes] = {}
    for name, table in _TABLES.items():
        files |= _data_files(results, name, table)
    for metric in results.comparisons:
        name = _UNSAFE_CHARACTERS.sub("-", metric).strip("-") or "metric"
        files[f"table-{name}.tex"] = _latex_float(board, metric, f"benchmark-{name}").encode()
        files[f"table-{name}.md"] = _markdown(board, metric).encode()
    return files


def _data_files(results: BenchmarkResults, name: str, table: str) -> dict[str, bytes]:
    """Return the files of one table, or no files if the table is empty."""
    frame = results.frame(table)
    if not frame.height:
        return {}
    if name == "curves":
        # A text file with a hundred thousand points would be ten times as large.
        points = io.BytesIO()
        frame.write_parquet(points)
        return {f"{name}.parquet": points.getvalue()}
    return result_files(frame, name)


def _latex_float(board: Leaderboard, metric: str, label: str) -> str:
    """Format one metric as a LaTeX float with a caption and a label."""
    table, notes = grids.paper(board, metric, intervals=False)
    task = f" on {board.results.task}" if board.results.task else ""
    caption = f"{table.title}{task}. {doc.plain_text(notes.text)}"
    return latex.latex_float(table, caption, label)


def benchmark_site(
    results: BenchmarkResults,
    *,
    title: str = "",
    source: str = "",
    notes: Sequence[str] = (),
    command: str = "",
    images: SampleImages | None = None,
    other_models: Sequence[BenchmarkResults] = (),
) -> dict[str, str]:
    """Create the HTML pages of a benchmark: the overview, all methods, and one page per study.

    Parameters
    ----------
    results : BenchmarkResults
        The results that `abstain_bench.results.results_of` returns.
    title, source, notes, command, images, other_models
        As for `build_document`.

    Returns
    -------
    dict of str to str
        HTML text of each page by its relative path. The page "benchmark.html" is an overview of the
        task, its shifts and the five best methods, with one figure. The page "pages/methods.html"
        contains all methods and metrics. Each study has a page, such as "pages/study-1.html". The
        pages use relative links and load no external resources.

    Raises
    ------
    InputError
        If `results` has another type.

    Examples
    --------
    >>> from abstain_bench.pages import benchmark_site
    >>> benchmark_site({})
    Traceback (most recent call last):
    abstain.errors.InputError: `results` must be what `results_of` returned; got dict
    """
    options = ReportOptions(title, source, notes, command, images=images, other_models=other_models)
    pages = link_pages(benchmark_pages(results, options))
    return {address: html(page) for address, page in pages.items()}
