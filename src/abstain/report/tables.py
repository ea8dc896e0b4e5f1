"""The tables of results for papers, and all tables of a benchmark as files."""

import io
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Generic, TypeVar

from abstain._foundation.files import make_folder, write_atomically
from abstain.benchmark.results import BenchmarkResults
from abstain.evaluation.comparison import Comparison
from abstain.evaluation.records import Evaluation
from abstain.report.document import Block
from abstain.report.render import latex, markdown
from abstain.report.subjects.benchmark import grids
from abstain.report.subjects.benchmark.leaderboard import Leaderboard
from abstain.report.subjects.comparison.tables import matrix
from abstain.report.subjects.evaluation.tables import paper
from abstain.tables.results import result_files

#: Columns that a page upright has room for.
_WIDE: Final = 8

ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class PaperTable(Generic[ResultT]):
    """The table of a kind of result; `blocks` builds it, and refuses any other kind."""

    blocks: Callable[..., Iterable[Block]]

    def markdown(
        self,
        result: ResultT,
        *,
        metrics: Sequence[str] | None = None,
        thousand: bool = False,
        intervals: bool = False,
    ) -> str:
        r"""Write the table of a paper in Markdown, the best in bold.

        Parameters
        ----------
        result : Evaluation or Comparison
            Metrics x scores of an evaluation, one table a split; methods x (metric, data set) of a
            comparison, ties within uncertainty marked.
        metrics : sequence of str, optional
            By name; by default every metric that was computed.
        thousand : bool, default=False
            AURC and AUGRC times 1000, as the literature prints them; the table says so.
        intervals : bool, default=False
            Behind each value its interval in brackets, which the footnote explains.

        Returns
        -------
        str
            A table with a trailing line that explains it. Names are escaped.

        Raises
        ------
        InputError
            If `result` is something else.
        UnknownNameError
            If it has no such metric.

        Examples
        --------
        >>> import abstain as ab
        >>> from abstain.evaluation import compare
        >>> from abstain.report import comparison_markdown, markdown_table
        >>> samples = ab.Predictions(confidence=[0.9, 0.8, 0.7, 0.6], loss=[0, 0, 1, 0])
        >>> told = markdown_table(ab.evaluate(samples), metrics=["augrc"], intervals=True)
        >>> print(told.split("\n\n")[0])
        | Metric | confidence |
        | --- | ---: |
        | AUGRC ↓ | 0.09375 [0.0007761, 0.4858] |
        >>> samples = ab.Predictions(
        ...     confidence={"msr": [4, 3, 2, 1], "p_e": [3, 4, 1, 2]}, loss=[0, 0, 1, 0]
        ... )
        >>> print(comparison_markdown(compare(samples)).split("\n\n")[0])
        | Method | AUGRC ↓ |
        | --- | ---: |
        | msr | 0.09375† |
        | p\_e | **0.03125** |
        """
        blocks = self.blocks(result, metrics, thousand=thousand, intervals=intervals)
        return markdown.written(blocks)

    def latex(
        self,
        result: ResultT,
        *,
        metrics: Sequence[str] | None = None,
        thousand: bool = False,
        intervals: bool = False,
    ) -> str:
        r"""Write the table of a paper in LaTeX: a ``tabular`` (booktabs) with a footnote.

        Parameters
        ----------
        result : Evaluation or Comparison
            As for `markdown_table`.
        metrics, thousand, intervals
            As for `markdown_table`.

        Returns
        -------
        str
            As of `markdown_table`.

        Raises
        ------
        InputError
            If `result` is something else.
        UnknownNameError
            If it has no such metric.

        Examples
        --------
        >>> import abstain as ab
        >>> from abstain.report import latex_table
        >>> samples = ab.Predictions(confidence=[0.9, 0.8, 0.7, 0.6], loss=[0, 0, 1, 0])
        >>> table = latex_table(ab.evaluate(samples), metrics=["augrc"])
        >>> print(table.split("\n\n")[1])
        \begin{tabular}{lr}
        \toprule
        Metric & confidence \\
        \midrule
        AUGRC $\downarrow$ & 0.09375 \\
        \bottomrule
        \end{tabular}
        """
        blocks = self.blocks(result, metrics, thousand=thousand, intervals=intervals)
        return latex.written(blocks)


_EVALUATION, _COMPARISON = PaperTable[Evaluation](paper), PaperTable[Comparison](matrix)
markdown_table, latex_table = _EVALUATION.markdown, _EVALUATION.latex
comparison_markdown, comparison_latex = _COMPARISON.markdown, _COMPARISON.latex


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
    "costs": "costs",
    "published": "published",
    "published-orders": "published_orders",
}

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9]+")


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
    return _markdown(Leaderboard(results), metric, intervals=intervals)


def _markdown(board: Leaderboard, metric: str | None, *, intervals: bool = False) -> str:
    table, notes = grids.paper(board, metric, intervals=intervals)
    return markdown.written((replace(table, spans=()), notes))


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
    metric, intervals
        As for `benchmark_markdown`.
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
    return _latex(Leaderboard(results), metric, intervals=intervals, shades=shades)


def _latex(
    board: Leaderboard, metric: str | None, *, intervals: bool = False, shades: bool = False
) -> str:
    table, notes = grids.paper(board, metric, intervals=intervals, shades=shades)
    needs = r"\usepackage{booktabs}" + (r" \usepackage[table]{xcolor}" if shades else "")
    head = f"% {latex.label(table.columns[0].label)}. Needs {needs}"
    if len(table.columns) > _WIDE:
        head += "\n% Wide: \\resizebox{\\linewidth}{!}{...} around the tabular, or a sideways page."
    return latex.written((table, notes), head=head)


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
    board = Leaderboard(results)
    known = board.results
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
        files[f"table-{name}.tex"] = _latex(board, metric).encode()
        files[f"table-{name}.md"] = _markdown(board, metric).encode()
    return files
