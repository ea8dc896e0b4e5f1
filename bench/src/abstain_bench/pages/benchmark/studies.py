"""Build the sections on single studies and on increasing corruption."""

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
from abstain.report.document import Collapsible, Prose, Section, Table
from abstain.report.formatting import format_count, join_quoted, short_title
from abstain.report.images import SampleImages
from abstain.report.subjects.rule.sentences import format_verdict
from abstain_bench.pages.benchmark.grids import (
    TOP,
    back,
    curve_series,
    figure,
    grid_table,
    method_link,
    metric_heading,
    wide_table,
)
from abstain_bench.pages.benchmark.leaderboard import (
    NEW_CLASS_KINDS,
    Grid,
    Leaderboard,
    kind_title,
    seeds_note,
    study_split,
)
from abstain_bench.pages.benchmark.pictures import example_image_blocks
from abstain_bench.results import BenchmarkResults, MethodFacts, ThresholdRow
from abstain_bench.runs.studies import ERROR_RULES, Study

_CURVES_TEXT: Final = (
    "Share of failures among the accepted samples against coverage; lower is better. The best four "
    "methods and the baseline"
)

_LINES_TEXT: Final = (
    "Solid orange lines: worse rank. Dashed blue lines: better rank. Thin lines: no change."
)


def study_sentence(board: Leaderboard, study: Study) -> str:
    """State the numbers of samples and failures in a study, and which samples are failures."""
    failure_definition = "" if study.kind not in NEW_CLASS_KINDS else ERROR_RULES[study.errors]
    missing = (pair for pair in board.results.undefined.items() if pair[0][1] == study.name)
    reasons = [
        f"{short_title(metric)} is undefined here: {reason}" for (metric, _), reason in missing
    ]
    # The numbers of samples and failures depend on the samples that a method excludes.
    estimates = [
        e
        for metric in list(board.results.comparisons)[:1]
        for e in board.metric_result(metric, study).estimates
    ]
    samples, failures = (
        _format_range([e.n for e in estimates]),
        _format_range([e.failures for e in estimates]),
    )
    sizes = f"{samples} samples with {failures} failures of a network" if estimates else ""
    parts = [sizes, capitalize_first(failure_definition), *reasons]
    return ". ".join(part.rstrip(".") for part in parts if part) + "."


def _format_range(values: Sequence[int]) -> str:
    low, high = min(values, default=0), max(values, default=0)
    return format_count(low) if low == high else f"{format_count(low)} to {format_count(high)}"


def study_table(board: Leaderboard, study: Study) -> doc.Table:
    """Return a table with the value, the interval and the rank of each method in a study."""
    grids = [board.grid(metric).select([study]) for metric in board.results.comparisons]
    columns_by_grid = [(grid, grid.column(study)) for grid in grids if grid.methods]
    columns = [doc.METHOD_COLUMN]
    for grid, _ in columns_by_grid:
        columns += [doc.number_column(grid.label), doc.number_column("Rank")]

    def cells(method: MethodFacts) -> Iterator[doc.Cell]:
        """Yield the link of a method, followed by its value and rank for each metric."""
        yield method_link(board, method)
        for _, entries in columns_by_grid:
            entry = entries.get(method.name)
            yield from (
                (entry.number, doc.Number(entry.rank, number_format="rank"))
                if entry
                else (None, None)
            )

    methods = dict.fromkeys(method for grid, _ in columns_by_grid for method in grid.methods)
    title = f"Values and ranks, {study.title}"
    caption = (
        f"{title}, with {format_percent(board.results.level)} intervals below the values. Arrows: "
        "direction of better values. Values are fractions unless multiplied by 1000. †: not "
        "significantly different from the best."
    )
    return wide_table(title, columns, (tuple(cells(method)) for method in methods), caption)


def _significance_maps(board: Leaderboard, study: Study) -> Iterator[doc.Block]:
    """Yield the significance map of each ranking metric."""
    for metric in board.metrics:
        comparison = board.results.comparisons[metric]
        display = SignificanceMapDisplay.from_comparison(
            comparison, metric, data=study_split(study)
        )
        if display.pairs:
            explanation = (
                "Blue: the method of the row is significantly better than that of the column at "
                f"{format_percent(round(1 - display.level, 10))} "
                f"({display.pairs[0].test_description}). "
                "Gray: not significantly different. Empty: significantly worse, or not compared. "
                "The columns have the numbers of the rows, in the order of the ranks."
            )
            title = f"Significant differences by {short_title(metric)}"
            table_title = f"{title}, {study.title}"
            table = replace(
                map_table(display), title=table_title, caption=f"Pairs by {short_title(metric)}"
            )
            yield doc.Collapsible(
                title,
                (doc.Prose(explanation, "about"), table),
                is_open=metric == board.metrics[0],
                role="interactive",
            )


def map_table(display: SignificanceMapDisplay) -> doc.Table:
    """Return the pairs of a significance map as a table of colored cells, not as a figure.

    A figure of 31 x 31 cells for each study would make the page too large.
    """
    better = {(p.better, p.second if p.better == p.first else p.first) for p in display.pairs}
    tested = {frozenset((p.first, p.second)) for p in display.pairs}

    def cell(row: str, column: str) -> doc.Cell:
        if (row, column) in better:
            return doc.Span("+", "better")
        is_similar = frozenset((row, column)) in tested and (column, row) not in better
        return doc.Span("=", "equal") if is_similar else ""

    numbered = list(enumerate(display.methods, 1))
    headers = (
        doc.Column(doc.Label(str(i), tooltip=name), is_sortable=False) for i, name in numbered
    )
    rows = (
        ((doc.Span(str(i), "muted"), f" {row}"), *(cell(row, column) for column in display.methods))
        for i, row in numbered
    )
    return doc.Table(
        (doc.Column("Better than", "name"), *headers), doc.single_group(rows), layout="map"
    )


def threshold_table(board: Leaderboard, study: Study) -> doc.Table | None:
    """Return the results of the thresholds in a study, or None if no threshold was applied."""
    rows = [row for row in board.thresholds if row.study == study.name]
    if not rows:
        return None
    risk, delta = format_percent(rows[0].risk), format_percent(rows[0].delta)
    target = f"target: at most {risk} failures among the accepted, with probability 1 − {delta}"
    if study.errors == "removed":
        target += "; a threshold is applied to all images, so errors on known classes count"
    title = f"Results of thresholds from validation data, {study.title}"
    caption = f"{title}; {target}. Fractions{seeds_note(rows)}."
    if any(row.verdict == "unattainable" for row in rows):
        caption += " “No threshold”: the validation data cannot support the target."
    columns = (
        doc.METHOD_COLUMN,
        *map(doc.number_column, ("Failures among accepted", "Excess over target", "Coverage")),
        doc.Column("Verdict"),
    )
    links = {method.name: method_link(board, method) for method in board.results.methods}
    body = (
        (
            links[row.method],
            _empty_if_nan(
                doc.Number(
                    row.selective_risk,
                    *(row.row()[f"selective_risk_{end}"] for end in ("low", "high")),
                )
            ),
            _empty_if_nan(doc.Number(row.excess, number_format="signed")),
            _empty_if_nan(doc.Number(row.coverage)),
            _verdict(row),
        )
        for row in rows
        if row.method in links
    )
    return wide_table(title, columns, body, caption)


def _empty_if_nan(number: doc.Number) -> doc.Number | None:
    """Return the number, or None for an empty cell if no sample was accepted."""
    return None if math.isnan(number.value) else number


def _verdict(row: ThresholdRow) -> str:
    """Return the verdict on a threshold, or the verdicts of all seeds if they differ."""
    if row.verdict != "differs":
        return format_verdict(row.verdict)
    n_seeds, holds, broken = len(row.checks), row.count("holds"), row.count("broken")
    undecided = "" if holds + broken == n_seeds else f"; undecided for {n_seeds - holds - broken}"
    return f"of {n_seeds} seeds, holds for {holds}, broken for {broken}{undecided}"


def curve_display(board: Leaderboard, study: Study) -> SeriesDisplay | None:
    """Return the risk-coverage curves of the best methods, the baseline and a random order."""
    curves = {name: board.results.curves.get((study.name, name)) for name in board.leaders(study)}
    series = curve_series(curves)
    if not series:
        return None
    # The selective risk of a random order is the risk at full coverage.
    random_order = next((s for s in series if s.name == board.baseline), series[0])
    return SeriesDisplay(
        series,
        f"Risk and coverage, {study.title}",
        "Coverage (share accepted)",
        "Selective risk",
        log_x=False,
        level={"": random_order.y[-1]},
        level_name=f"random order ({random_order.name})",
        order=board.plotted_methods,
    )


def ranking_change(board: Leaderboard, study: Study | None) -> RankingChangeDisplay | None:
    """Return the change of ranks from AURC to AUGRC in a study, or over all studies.

    Return None without exactly two ranking metrics, or with fewer than two ranked methods.
    """
    if len(board.metrics) != 2:
        return None
    second, first = board.metrics
    first_ranks, second_ranks = board.ranks(first, study), board.ranks(second, study)
    rank_pairs = {
        name: (rank, second_ranks[name])
        for name, rank in first_ranks.items()
        if name in second_ranks
    }
    if len(rank_pairs) < 2:
        return None
    return RankingChangeDisplay(
        first, second, rank_pairs, study_split(study) if study else None, None
    )


def change_figure(
    board: Leaderboard, study: Study | None, key: str, about: str = ""
) -> list[doc.Figure]:
    """Return a list with the figure of the change of ranks, or an empty list without a display."""
    title = "Change of ranks from AURC to AUGRC"
    return figure(ranking_change(board, study), key, title, f"{about}{_LINES_TEXT}")


def studies_section(board: Leaderboard, images: SampleImages | None) -> doc.Section:
    """Return the section that contains all studies of the main tables."""
    lead = (
        f"Values with {format_percent(board.results.level)} intervals and ranks, risk-coverage "
        "curves of the best methods and the baseline, significant differences, results of "
        "thresholds from validation data, and example images."
    )
    studies = board.results.headline
    links = tuple((board.anchors[study.name], study.title) for study in studies)
    sections = (
        doc.Section(
            board.anchors[study.name],
            study.title,
            (
                doc.Prose(study_sentence(board, study), "about"),
                *study_blocks(board, study, images, level=4),
            ),
            level=3,
            subtitle=kind_title(study.kind),
            style="part",
        )
        for study in studies
    )
    return doc.Section(
        "studies",
        "Results by study",
        (doc.Prose(lead, "lead"), doc.Links(links), *sections),
        nav_title="Studies",
    )


def study_blocks(
    board: Leaderboard, study: Study, images: SampleImages | None, *, level: int = 3
) -> Iterator[doc.Block]:
    """Yield the curves, values, differences, thresholds and example images of a study.

    `level` is the level of the heading above the example images.
    """
    anchor = board.anchors[study.name]
    lines = f"{_CURVES_TEXT} “{board.baseline}”, of the first seed."
    figures = (
        *figure(curve_display(board, study), f"{anchor}-curves", "Risk and coverage", lines),
        *change_figure(board, study, f"{anchor}-change"),
    )
    yield doc.Box(figures, "pair") if len(figures) > 1 else doc.Box(figures)
    yield study_table(board, study)
    yield from _significance_maps(board, study)
    thresholds = threshold_table(board, study)
    if thresholds:
        yield doc.Collapsible(thresholds.title, (thresholds,))
    example_images = tuple(example_image_blocks(board, study, images))
    if example_images:
        yield doc.Section(
            f"{anchor}-shots", "Example images", example_images, level=level, role="interactive"
        )
    yield back(("studies", "All studies"), ("tables", "Main tables"), TOP)


#: Titles of the panels in the figure of thresholds by severity.
_EXCESS, _COVERAGE = "Risk above the target", "Coverage"

_TABLES_NOTE: Final = (
    "The tables contain each severity with all types of corruption. The column of corruptions in "
    "the main table is the mean over the severities, as in FD-Shifts; “pooled” ranks the images of "
    "all severities together, which is a different number."
)


def corruption_section(board: Leaderboard) -> Iterator[Section]:
    """Yield the section on the severities of the corruptions, unless there are none."""
    if not any(study.severity for study in board.results.studies):
        return
    description = f"Risk and coverage are fractions{seeds_note(board.results.thresholds)}."
    title = "A threshold under increasing corruption"
    figures, tables = (
        figure(severity_display(board), "severities", title, description),
        _tables(board),
    )
    lead = _introduction(board, has_figure=bool(figures), has_tables=bool(tables))
    blocks = (Prose(lead, "lead"), *figures, *tables, back(TOP))
    yield Section("severities", "Increasing corruption", blocks)


def _tables(board: Leaderboard) -> list[Collapsible]:
    """Return one collapsed table per metric, with methods as rows and severities as columns.

    The list is empty if the main tables already contain the only severity.
    """
    corrupted = [study for study in board.results.studies if study.kind == "corruption"]
    studies = [study for study in corrupted if not study.headline]
    if len(studies) < 2 and len(corrupted) > len(studies):
        return []
    grids = [board.full_grid(metric).select(studies) for metric in board.results.comparisons]
    return [
        Collapsible(
            f"{metric_heading(grid)} by severity, all methods", (_by_severity(board, grid),)
        )
        for grid in grids
        if grid.studies
    ]


def _by_severity(board: Leaderboard, grid: Grid) -> Table:
    """Return the table of a grid, with a title that mentions the severities."""
    table = grid_table(board, grid)
    return replace(table, title=f"{table.title} by severity")


def severity_display(board: Leaderboard) -> SeriesDisplay | None:
    """Return excess risk and coverage of the thresholds by severity, with a line per method."""
    studies = _severity_by_study(board.results)
    rows = [row for row in board.thresholds if row.study in studies]
    series = tuple(
        line
        for panel, field in ((_EXCESS, "excess"), (_COVERAGE, "coverage"))
        for name in board.threshold_methods
        if (line := _line([row for row in rows if row.method == name], studies, panel, field))
    )
    if len({row.study for row in rows}) < 2 or not series:
        return None
    return SeriesDisplay(
        series,
        "A threshold under increasing corruption",
        "Severity of the corruptions (0: none)",
        "",
        log_x=False,
        level={_EXCESS: 0.0},
        level_name="target",
        order=board.plotted_methods,
    )


def _line(
    rows: Sequence[ThresholdRow], studies: dict[str, float], panel: str, field: str
) -> Series | None:
    """Return the line of one method in one panel, or None if the method has no defined value."""
    points = sorted((studies[row.study], float(getattr(row, field))) for row in rows)
    defined = [(x, y) for x, y in points if not math.isnan(y)]
    if not defined:
        return None
    x, y = zip(*defined, strict=True)
    return Series(rows[0].method, x, y, panel=panel)


def _severity_by_study(results: BenchmarkResults) -> dict[str, float]:
    """Return the severity of each study that has a single severity. Clean data have severity 0."""
    return {
        study.name: float(study.severity)
        for study in results.studies
        if study.kind == "iid" or study.severity
    }


def _introduction(board: Leaderboard, *, has_figure: bool, has_tables: bool) -> str:
    """Describe the figure, or state why there is no figure."""
    target = _target_text(board.results)
    tables_note = f" {_TABLES_NOTE}" if has_tables else ""
    if not has_figure:
        return f"{_reason_without_figure(board, target)}{tables_note}"
    names = board.threshold_methods
    return (
        f"The thresholds were set on clean validation data {target}. Above the dotted line, the "
        "risk exceeds the target; coverage is the share of accepted images. "
        f"Lines: {_join_names(names)} (the best by rank under corruption, and the baseline "
        f"“{board.baseline}”)."
        f"{_missing_methods(board, names)}{_single_severity(board.results)}{tables_note}"
    )


def _target_text(results: BenchmarkResults) -> str:
    """Describe the target risk of the thresholds and the probability of exceeding it."""
    row = next(iter(results.thresholds), None)
    if row is None or math.isnan(row.risk):
        return "for a low share of failures among the accepted images"
    return (
        f"for a share of failures of at most {format_percent(row.risk)} among the accepted "
        f"images (the probability of exceeding it is at most {format_percent(row.delta)})"
    )


def _reason_without_figure(board: Leaderboard, target: str) -> str:
    """Return a sentence that states why there is no figure of thresholds by severity."""
    if not board.results.thresholds:
        return "No thresholds were set, so there is no figure."
    if not board.methods_with_threshold:
        return (
            f"For no method do the validation data support a threshold {target}. A higher risk "
            "(`--risk`) may be attainable."
        )
    if len(_severity_by_study(board.results)) < 2:
        return "Only one severity was evaluated, so there is no figure."
    return "No threshold accepts any image under corruption, so there is no figure."


def _missing_methods(board: Leaderboard, names: Sequence[str]) -> str:
    """Name the methods that the figure omits because they have no threshold."""
    usable, order = board.methods_with_threshold, board.order_under_corruption
    better_methods = order[: order.index(names[-1])] if names[-1] in order else order
    expected = {*better_methods, board.baseline} - usable
    missing = [name for name in order if name in expected]
    if not missing:
        return ""
    verb = "has" if len(missing) == 1 else "have"
    return f" {_join_names(missing)} {verb} no threshold for this target."


def _single_severity(results: BenchmarkResults) -> str:
    severities = [study.severity for study in results.studies if study.severity]
    return f" Only severity {severities[0]} was tested." if len(severities) == 1 else ""


def _join_names(names: Sequence[str]) -> str:
    """Join two to five names with commas and “and”. Shorten a longer list."""
    if len(names) > 5 or len(names) < 2:
        return join_quoted(names)
    quoted = [f"“{name}”" for name in names]
    return f"{', '.join(quoted[:-1])} and {quoted[-1]}"
