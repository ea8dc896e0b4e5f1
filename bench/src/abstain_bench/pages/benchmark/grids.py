"""Build tables with one row per method and one column per study."""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from abstain.metrics.failure_ranking import FAILURE_AUROC
from abstain.plots import Series
from abstain.plots.drawable import Drawable
from abstain.plots.formatting import format_percent
from abstain.report import document as doc
from abstain.report.glossary import metric_entries
from abstain_bench.pages.benchmark.leaderboard import (
    NEW_CLASS_KINDS,
    Grid,
    GridEntry,
    Leaderboard,
    arm_title,
    kind_title,
)
from abstain_bench.results import CurvePoints, MethodFacts
from abstain_bench.runs.studies import Study

_ACCURACY_NOTE: Final = (
    "Images of new classes count as wrong predictions, so the accuracy mostly reflects their "
    "number."
)

_EVALUATIONS: Final = (
    "Four evaluations of the same images. Removed: wrong predictions of known classes are "
    "excluded, so only accepted new classes are failures. Kept: both are failures. By cost: both "
    "are failures, and an accepted new class costs {cost}. As outliers: only accepted new "
    "classes are failures, and all predictions of known classes count as correct, as in "
    "out-of-distribution detection. The best method may differ between the evaluations."
)
_EVALUATION_TITLES: Final = {
    "removed": "errors removed",
    "kept": "errors kept",
    "scod": "by cost",
    "outlier": "as outliers",
}
#: The two evaluations that FD-Shifts compares.
_PROTOCOLS: Final = ("removed", "outlier")
#: Explanation of the ranks by these two evaluations.
_RANKS_NOTE: Final = (
    "1 is best. As outliers, a low confidence of a wrong prediction of a known class makes a "
    "method worse; with errors removed, it has no effect."
)

#: Anchor and text of the link to the top of the page.
TOP: Final = ("results", "Back to the top")


def back(*targets: tuple[str, str]) -> doc.Prose:
    """Return one line of links, given pairs of an anchor and a link text."""
    links = [doc.Span(text, link=f"#{anchor}") for anchor, text in targets]
    separated = tuple(item for link in links for item in (" · ", link))
    return doc.Prose(separated[1:], "back", role="interactive")


def figure(display: Drawable | None, key: str, title: str, about: str) -> list[doc.Figure]:
    """Return a list that contains the figure, or an empty list if `display` is None."""
    return [] if display is None else [doc.Figure(f"figure-{key}", f"{title}.", display, about)]


def curve_series(curves: Mapping[str, CurvePoints | None]) -> tuple[Series, ...]:
    """Return a plot line for each risk-coverage curve that contains points."""
    return tuple(
        Series(name, tuple(curve.coverage.tolist()), tuple(curve.selective_risk.tolist()))
        for name, curve in curves.items()
        if curve is not None and len(curve.coverage)
    )


def wide_table(
    title: str,
    columns: Iterable[doc.Column],
    rows: Iterable[Sequence[doc.Cell]],
    caption: str = "",
) -> doc.Table:
    """Return a sortable table with a single header row."""
    return doc.Table(
        tuple(columns),
        doc.single_group(rows),
        title=title,
        caption=caption or title,
        layout="wide",
        is_sortable=True,
    )


def value_cell(entry: GridEntry | None) -> doc.Cell:
    """Return the table cell that contains the value of an entry."""
    return entry.number if entry else None


def rank_cell(entry: GridEntry | None) -> doc.Cell:
    """Return the table cell that contains the rank of an entry, in the color of its value."""
    return doc.Number(entry.rank, number_format="rank", shade=entry.number.shade) if entry else None


def grid_table(
    board: Leaderboard,
    grid: Grid,
    cell: Callable[[GridEntry | None], doc.Cell] = value_cell,
    *,
    means: Mapping[str, float] | None = None,
    paper: bool = False,
) -> doc.Table:
    """Return a grid as a table whose last column contains the mean ranks `means`.

    If the table is for a paper, the first header is the metric, rows are grouped by training
    objective, and there is no caption. Otherwise, the rows are sorted by mean rank, and the caption
    contains the notes.
    """
    columns = [
        doc.Column(grid.label if paper else "Method", "name"),
        *study_columns(board, grid.studies),
    ]
    if means:
        columns.append(doc.Column("Mean rank", "number"))

    def row(method: MethodFacts) -> doc.Row:
        """Return the table row of a method, which contains a link, its cells and its mean rank."""
        link = method_link(board, method)
        is_marked = method.added and not paper
        name: doc.Text = (link, " ", doc.Span("added", "small")) if is_marked else link
        cells = [name, *map(cell, grid.row(method))]
        if means:
            cells.append(_mean_rank_cell(means.get(method.name)))
        return doc.Row(tuple(cells))

    row_groups = _groups_by_arm(grid) if paper or not means else _order_by_mean_rank(grid, means)
    notes = footnote(grid, board.results.level, intervals=False, ranked=bool(means))
    return doc.Table(
        tuple(columns),
        tuple(doc.TableRows(tuple(map(row, methods)), title) for title, methods in row_groups),
        title=grid.label.text,
        caption="" if paper else notes,
        layout="grid",
        column_groups=kind_spans(grid.studies),
    )


def _mean_rank_cell(rank: float | None) -> doc.Cell:
    return None if rank is None else doc.Number(rank, number_format="two_decimals")


def _groups_by_arm(grid: Grid) -> list[tuple[str, list[MethodFacts]]]:
    """Return the methods grouped by training objective, each group with a title."""
    return [(arm_title(arm), methods) for arm, methods in grid.groups.items()]


def _order_by_mean_rank(
    grid: Grid, means: Mapping[str, float]
) -> list[tuple[str, list[MethodFacts]]]:
    """Return all methods in a single untitled group, sorted by mean rank."""
    return [("", sorted(grid.methods, key=lambda method: means.get(method.name, math.inf)))]


def paper(
    board: Leaderboard, metric: str | None, *, intervals: bool, shades: bool = False
) -> tuple[doc.Table, doc.Prose]:
    """Return the table of one metric for a paper, together with its notes."""
    grid = board.grid(board.metric(metric))
    means = board.mean_rank_by_method(grid.metric)
    second_best = {id(entry) for study in grid.studies for entry in _second_best(grid, study)}

    def cell(entry: GridEntry | None) -> doc.Cell:
        """Return the value of an entry with the requested formatting only."""
        if entry is None:
            return None
        number = replace(entry.number, is_second=id(entry) in second_best)
        if not intervals:
            number = replace(number, low=doc.NAN, high=doc.NAN)
        return number if shades else replace(number, shade=None)

    notes = footnote(
        grid, board.results.level, intervals=intervals, ranked=bool(means), is_paper=True
    )
    return grid_table(board, grid, cell, means=means, paper=True), doc.Prose(notes, "notes")


def _second_best(grid: Grid, study: Study) -> list[GridEntry]:
    """Return the entries with the second best value in a study."""
    entries = grid.column(study).values()
    others = [entry for entry in entries if entry.relation_to_best != "best"]
    second_rank = min((e.rank for e in others if not math.isnan(e.rank)), default=math.nan)
    return [entry for entry in others if entry.rank == second_rank]


def study_columns(
    board: Leaderboard, studies: Sequence[Study], headers: Sequence[str] = ()
) -> list[doc.Column]:
    """Return a column for each study, whose header links to the section of the study."""
    titles = headers or [study.title for study in studies]
    anchors = [board.anchors.get(study.name, "") for study in studies]
    return [
        doc.Column(doc.Label(title, link=anchor and f"#{anchor}"), "number")
        for title, anchor in zip(titles, anchors, strict=True)
    ]


def kind_spans(studies: Sequence[Study]) -> tuple[tuple[str, int], ...]:
    """Return the title of each kind of study with the number of columns that it spans."""
    kinds = itertools.groupby(studies, lambda study: study.kind)
    return tuple((kind_title(kind), len(list(group))) for kind, group in kinds)


def method_link(board: Leaderboard, method: MethodFacts) -> doc.Span:
    """Return the name of a method as a link to its description."""
    return doc.Span(method.name, link=f"#{board.method_anchor(method)}", tooltip=method.title)


def footnote(
    grid: Grid, level: float, *, intervals: bool, ranked: bool, is_paper: bool = False
) -> str:
    """Return notes that explain the marks and units of a table."""
    relations = {
        entry.relation_to_best for method in grid.methods for entry in grid.row(method) if entry
    }
    sentences = ["Arrow: direction of better values. Bold: best value of a column."]
    if is_paper:
        sentences.append("Underlined: second best.")
    sentences.append("Values are times 1000." if grid.label.scale > 1 else "Values are fractions.")
    if "not told apart" in relations:
        alpha = format_percent(round(1 - level, 10))
        sentences.append(
            f"†: not significantly different from the best at the level {alpha}, adjusted for all "
            "pairs of a column."
        )
    if "untested" in relations:
        subject = "Values without a mark" if "not told apart" in relations else "Differences"
        sentences.append(f"{subject} were not tested.")
    if ranked:
        sentences.append("Mean rank over the columns; 1 is best.")
    if grid.ignores_confidence and any(study.kind in NEW_CLASS_KINDS for study in grid.studies):
        sentences.append(_ACCURACY_NOTE)
    if intervals:
        sentences.append(f"In brackets: {format_percent(level)} intervals.")
    return " ".join(sentences)


def main_tables(board: Leaderboard) -> Iterator[doc.Block]:
    """Yield a section for each metric with its values and ranks; a page displays one at a time."""
    for i, metric in enumerate(board.results.comparisons):
        grid = board.grid(metric)
        blocks = tuple(_metric_blocks(board, grid))
        section = doc.Section(f"metric-{i}", metric_heading(grid), blocks, level=3)
        yield doc.Box((section,), tags={"metric": str(i)})


def _metric_blocks(board: Leaderboard, grid: Grid) -> Iterator[doc.Block]:
    """Yield the explanation of a metric, the table of its values and the table of its ranks."""
    explanation = value_explanation(grid.metric, grid.label)
    if explanation:
        yield doc.Prose(explanation, "about")
    means = board.mean_rank_by_method(grid.metric)
    yield grid_table(board, grid, means=means)
    metric_name = grid.label.text
    ranks = replace(
        grid_table(board, grid, rank_cell, means=means),
        title=f"{metric_name}: ranks",
        caption=f"Ranks by {metric_name}; 1 is best.",
    )
    yield doc.Collapsible(f"Ranks by {metric_name}", (ranks,))


def metric_heading(grid: Grid) -> str:
    """Return a heading with the metric, its unit and an arrow toward better values."""
    # The non-breaking space keeps the arrow on the line of its metric.
    return f"{grid.label.text}{grid.label.unit}\u00a0{grid.label.arrow}"


def value_explanation(metric: str, label: doc.Label) -> str:
    """Explain a value of a metric. The text is empty for user-defined metrics."""
    meaning = doc.plain_text(metric_entries([metric])[0].meaning).rstrip(".")
    if not meaning:
        return ""
    unit = ", printed times 1000" if label.scale > 1 else ""
    return f"A value x{unit}: {meaning[:1].lower()}{meaning[1:]}; {label.direction} is better."


def new_class_tables(board: Leaderboard) -> Iterator[doc.Block]:
    """Yield tables that compare the evaluations of the same images with new classes."""
    studies = [study for study in board.results.studies if study.kind in NEW_CLASS_KINDS]
    if len({study.errors for study in studies}) < 2:
        return
    cost = board.results.facts.get("outlier_cost")
    cost_text = f"{cost:g}, an error 1" if isinstance(cost, int | float) else "more"
    yield doc.Prose(_EVALUATIONS.format(cost=cost_text), "lead")
    families: dict[tuple[str, ...], list[Study]] = {}
    for study in studies:
        families.setdefault(study.exposures, []).append(study)
    for metric in board.metrics:
        grid, table = _evaluations_table(board, metric, families.values())
        yield doc.Collapsible(metric_heading(grid), (table,), is_open=metric == board.metrics[0])
    if FAILURE_AUROC.name in board.results.comparisons:
        yield from _protocol_ranks(board, families.values())


def _protocol_ranks(
    board: Leaderboard, families: Iterable[Sequence[Study]]
) -> Iterator[doc.Collapsible]:
    """Yield a table of ranks by both evaluations of FD-Shifts, if both exist for some images."""
    pairs = [[study for study in family if study.errors in _PROTOCOLS] for family in families]
    if any(len(pair) == len(_PROTOCOLS) for pair in pairs):
        grid, table = _evaluations_table(board, FAILURE_AUROC.name, pairs, rank_cell)
        title = f"Ranks by {grid.label.text}: errors removed, and as outliers"
        ranks = replace(table, title=title, caption=f"{title}; {_RANKS_NOTE}")
        yield doc.Collapsible(title, (ranks,))


def _evaluations_table(
    board: Leaderboard,
    metric: str,
    families: Iterable[Sequence[Study]],
    cell: Callable[[GridEntry | None], doc.Cell] = value_cell,
) -> tuple[Grid, doc.Table]:
    """Return a table with one column for each evaluation of the same images.

    Columns of the same images share a header, which is the title of the first study.
    """
    full_grid = board.full_grid(metric)
    titled_studies = [(family[0].title, full_grid.select(family).studies) for family in families]
    grid = full_grid.select([study for _, studies in titled_studies for study in studies])
    table = grid_table(board, grid, cell)
    headers = [_EVALUATION_TITLES.get(study.errors, study.errors) for study in grid.studies]
    columns = (table.columns[0], *study_columns(board, grid.studies, headers))
    spans = tuple((title, len(studies)) for title, studies in titled_studies if studies)
    title = f"{table.title} of new classes, judged in several ways"
    return grid, replace(table, columns=columns, column_groups=spans, title=title)
