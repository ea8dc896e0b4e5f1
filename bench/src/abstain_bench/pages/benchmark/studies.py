"""One study of a benchmark: its values, which differ by more than chance, thresholds, pictures."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from abstain.plots import (
    RankingChangeDisplay,
    Series,
    SeriesDisplay,
    SignificanceMapDisplay,
)
from abstain.plots.formatting import capitalize_first, format_percent
from abstain.report import document as doc
from abstain.report.formatting import format_count, short_title
from abstain.report.images import SampleImages
from abstain.report.subjects.rule.sentences import format_verdict
from abstain_bench.pages.benchmark.grids import TOP, back, figure, method_link, wide_table
from abstain_bench.pages.benchmark.leaderboard import (
    NEW,
    Leaderboard,
    at,
    kind_title,
    over_seeds,
)
from abstain_bench.pages.benchmark.pictures import shots_of
from abstain_bench.results import MethodFacts, ThresholdRow
from abstain_bench.runs.studies import ERROR_RULES, Study

_CURVES: Final = (
    "The share of failures among the accepted, as more and more is accepted; lower is better. The "
    "best four methods and the baseline"
)

_LINES_SAID: Final = "Solid orange lines fall, dashed blue ones rise, thin ones stay."


def said_of(board: Leaderboard, study: Study) -> str:
    """Say what counts in a study, and how many samples it has."""
    counted = "" if study.kind not in NEW else ERROR_RULES[study.errors]
    missing = (pair for pair in board.results.undefined.items() if pair[0][1] == study.name)
    reasons = [f"{short_title(metric)} is undefined here: {why}" for (metric, _), why in missing]
    # Both numbers differ with what a method leaves out.
    found = [
        e
        for metric in list(board.results.comparisons)[:1]
        for e in board.found(metric, study).estimates
    ]
    samples, failures = _between([e.n for e in found]), _between([e.failures for e in found])
    sizes = f"{samples} samples, of which {failures} are failures of a network" if found else ""
    parts = [sizes, capitalize_first(counted), *reasons]
    return ". ".join(part.rstrip(".") for part in parts if part) + "."


def _between(values: Sequence[int]) -> str:
    low, high = min(values, default=0), max(values, default=0)
    return format_count(low) if low == high else f"{format_count(low)} to {format_count(high)}"


def study_table(board: Leaderboard, study: Study) -> doc.Table:
    """Return every method of a study by every metric, with intervals and ranks."""
    grids = [board.grid(metric).only([study]) for metric in board.results.comparisons]
    known = [(grid, grid.column(study)) for grid in grids if grid.methods]
    columns = [doc.METHOD_COLUMN]
    for grid, _ in known:
        columns += [doc.number_column(grid.label), doc.number_column("Rank")]

    def cells(method: MethodFacts) -> Iterator[doc.Cell]:
        yield method_link(board, method)
        for _, own in known:
            entry = own.get(method.name)
            yield from (
                (entry.number, doc.Number(entry.rank, number_format="rank"))
                if entry
                else (None, None)
            )

    methods = dict.fromkeys(method for grid, _ in known for method in grid.methods)
    title = f"Values and ranks, {study.title}"
    caption = (
        f"{title}; below each value its {format_percent(board.results.level)} interval. Arrows "
        "point to where better is; what is not times 1000 is a fraction. †: cannot be told from "
        "the best."
    )
    return wide_table(title, columns, (tuple(cells(method)) for method in methods), caption)


def _maps(board: Leaderboard, study: Study) -> Iterator[doc.Block]:
    """Return which method is found better than which, for each metric that ranks."""
    for metric in board.metrics:
        comparison = board.results.comparisons[metric]
        square = SignificanceMapDisplay.from_comparison(comparison, metric, data=at(study))
        if square.pairs:
            about = (
                "Blue: the method of the row is found better than that of the column at "
                f"{format_percent(round(1 - square.level, 10))} "
                f"({square.pairs[0].test_description}). "
                "Gray: they cannot be told apart. Empty: found worse, or not compared. The numbers "
                "of the columns are those of the rows, in the order of the ranks."
            )
            title = f"Which differences by {short_title(metric)} are more than chance"
            own = f"{title}, {study.title}"
            table = replace(map_of(square), title=own, caption=f"Pairs by {short_title(metric)}")
            yield doc.Collapsible(
                title,
                (doc.Prose(about, "about"), table),
                is_open=metric == board.metrics[0],
                role="interactive",
            )


def map_of(square: SignificanceMapDisplay) -> doc.Table:
    """Return the pairs of a significance map as a table of colored cells.

    A drawing of 31 x 31 cells for each study makes a page too heavy to open.
    """
    better = {(p.better, p.second if p.better == p.first else p.first) for p in square.pairs}
    tested = {frozenset((p.first, p.second)) for p in square.pairs}

    def cell(row: str, column: str) -> doc.Cell:
        if (row, column) in better:
            return doc.Span("+", "better")
        alike = frozenset((row, column)) in tested and (column, row) not in better
        return doc.Span("=", "equal") if alike else ""

    numbered = list(enumerate(square.methods, 1))
    heads = (doc.Column(doc.Label(str(i), tooltip=name), is_sortable=False) for i, name in numbered)
    rows = (
        ((doc.Span(str(i), "muted"), f" {row}"), *(cell(row, column) for column in square.methods))
        for i, row in numbered
    )
    return doc.Table(
        (doc.Column("Better than", "name"), *heads), doc.single_group(rows), layout="map"
    )


def threshold_table(board: Leaderboard, study: Study) -> doc.Table | None:
    """Return what the thresholds set on validation data achieve in a study."""
    rows = [row for row in board.thresholds if row.study == study.name]
    if not rows:
        return None
    risk, delta = format_percent(rows[0].risk), format_percent(rows[0].delta)
    asked = f"asked for: at most {risk} failures among the accepted, but for a chance of {delta}"
    if study.errors == "removed":
        asked += "; a threshold meets all pictures, so here wrong answers about known classes count"
    title = f"What a threshold set on validation data achieves, {study.title}"
    caption = f"{title}; {asked}. Fractions{over_seeds(rows)}."
    if any(row.verdict == "unattainable" for row in rows):
        caption += " “No threshold”: none could promise that on validation data."
    columns = (
        doc.METHOD_COLUMN,
        *map(doc.number_column, ("Failures among the accepted", "Above the target", "Coverage")),
        doc.Column("Verdict"),
    )
    links = {method.name: method_link(board, method) for method in board.results.methods}
    body = (
        (
            links[row.method],
            _known(
                doc.Number(
                    row.selective_risk,
                    *(row.row()[f"selective_risk_{end}"] for end in ("low", "high")),
                )
            ),
            _known(doc.Number(row.excess, number_format="signed")),
            _known(doc.Number(row.coverage)),
            _verdict(row),
        )
        for row in rows
        if row.method in links
    )
    return wide_table(title, columns, body, caption)


def _known(number: doc.Number) -> doc.Number | None:
    """Leave a cell empty where nothing was accepted."""
    return None if math.isnan(number.value) else number


def _verdict(row: ThresholdRow) -> str:
    if row.verdict != "differs":
        return format_verdict(row.verdict)
    n_seeds, holds, broken = len(row.checks), row.count("holds"), row.count("broken")
    rest = "" if holds + broken == n_seeds else "; the others cannot tell"
    return f"of {n_seeds} seeds, holds with {holds}, is broken with {broken}{rest}"


def curves_of(board: Leaderboard, study: Study) -> SeriesDisplay | None:
    """Return risk against coverage of the leaders, the baseline, and a random order."""
    own = {name: board.results.curves.get((study.name, name)) for name in board.leaders(study)}
    series = tuple(
        Series(name, tuple(curve.coverage.tolist()), tuple(curve.selective_risk.tolist()))
        for name, curve in own.items()
        if curve is not None and len(curve.coverage)
    )
    if not series:
        return None
    # In a random order the selective risk is that of full coverage everywhere.
    full = next((s for s in series if s.name == board.baseline), series[0])
    return SeriesDisplay(
        series,
        f"Risk and coverage, {study.title}",
        "Coverage (share accepted)",
        "Selective risk",
        log_x=False,
        level={"": full.y[-1]},
        level_name=f"random order ({full.name})",
        order=board.drawn,
    )


def change_of(board: Leaderboard, study: Study | None) -> RankingChangeDisplay | None:
    """Return how the ranking changes from AURC to AUGRC; over all studies without one."""
    if len(board.metrics) != 2:
        return None
    second, first = board.metrics
    before, after = board.ranks(first, study), board.ranks(second, study)
    both = {name: (rank, after[name]) for name, rank in before.items() if name in after}
    if len(both) < 2:
        return None
    return RankingChangeDisplay(first, second, both, at(study) if study else None, None)


def change_figure(
    board: Leaderboard, study: Study | None, key: str, about: str = ""
) -> list[doc.Figure]:
    """Return the figure of how the ranking changes from AURC to AUGRC."""
    title = "From AURC to AUGRC: how the ranking changes"
    return figure(change_of(board, study), key, title, f"{about}{_LINES_SAID}")


def studies_section(board: Leaderboard, pictures: SampleImages | None) -> doc.Section:
    """Return every study of the main tables, one after another."""
    lead = (
        f"Values with {format_percent(board.results.level)} intervals and ranks, curves of the "
        "leaders and the baseline, which differences are more than chance, what a threshold chosen "
        "on validation data achieves, and the pictures that mislead most."
    )
    studies = board.results.headline
    places = tuple((board.places[study.name], study.title) for study in studies)
    parts = (
        doc.Section(
            board.places[study.name],
            study.title,
            tuple(_about(board, study, pictures)),
            level=3,
            subtitle=kind_title(study.kind),
            style="part",
        )
        for study in studies
    )
    return doc.Section(
        "studies",
        "Study by study",
        (doc.Prose(lead, "lead"), doc.Links(places), *parts),
        nav_title="Studies",
    )


def _about(board: Leaderboard, study: Study, pictures: SampleImages | None) -> Iterator[doc.Block]:
    yield doc.Prose(said_of(board, study), "about")
    yield from study_blocks(board, study, pictures, level=4)


def study_blocks(
    board: Leaderboard, study: Study, pictures: SampleImages | None, *, level: int = 3
) -> Iterator[doc.Block]:
    """Return curves, values, differences, thresholds and pictures of one study.

    `level` is that of the heads in it.
    """
    place = board.places[study.name]
    lines = f"{_CURVES} “{board.baseline}”, of the first seed."
    figures = (
        *figure(curves_of(board, study), f"{place}-curves", "Risk and coverage", lines),
        *change_figure(board, study, f"{place}-change"),
    )
    yield doc.Box(figures, "pair") if len(figures) > 1 else doc.Box(figures)
    yield study_table(board, study)
    yield from _maps(board, study)
    thresholds = threshold_table(board, study)
    if thresholds:
        yield doc.Collapsible(thresholds.title, (thresholds,))
    shots = tuple(shots_of(board, study, pictures))
    if shots:
        yield doc.Section(
            f"{place}-shots", "Pictures that mislead most", shots, level=level, role="interactive"
        )
    yield back(("studies", "All studies"), ("tables", "Main tables"), TOP)
