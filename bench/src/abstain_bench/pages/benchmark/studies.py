"""Build the report sections on individual studies and on corruption severity."""

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
    """State the numbers of samples and failures in a study, and define the failures."""
    sentences = [_sizes_text(board, study)]
    if study.kind in NEW_CLASS_KINDS:
        sentences.append(capitalize_first(ERROR_RULES[study.errors]))
    for (metric, study_name), reason in board.results.undefined.items():
        if study_name == study.name:
            sentences.append(f"{short_title(metric)} is undefined here: {reason}")
    return ". ".join(sentence.rstrip(".") for sentence in sentences if sentence) + "."


def _sizes_text(board: Leaderboard, study: Study) -> str:
    """Return the ranges of the numbers of samples and failures over the methods."""
    metric = next(iter(board.results.comparisons), None)
    estimates = board.metric_result(metric, study).estimates if metric else ()
    if not estimates:
        return ""
    n_samples = _format_range([estimate.n for estimate in estimates])
    n_failures = _format_range([estimate.failures for estimate in estimates])
    return f"{n_samples} samples with {n_failures} failures of a network"


def _format_range(counts: Sequence[int]) -> str:
    low = format_count(min(counts))
    high = format_count(max(counts))
    return low if low == high else f"{low} to {high}"


def study_table(board: Leaderboard, study: Study) -> doc.Table:
    """Return a table with the value, confidence interval and rank of each method in a study."""
    all_grids = (board.grid(metric).select([study]) for metric in board.results.comparisons)
    grids = [grid for grid in all_grids if grid.methods]
    entries_by_method = [grid.column(study) for grid in grids]
    columns = [doc.METHOD_COLUMN]
    for grid in grids:
        columns += [doc.number_column(grid.label), doc.number_column("Rank")]

    def row(method: MethodFacts) -> list[doc.Cell]:
        """Return the row of a method: a link, and its value and rank for each metric."""
        cells: list[doc.Cell] = [method_link(board, method)]
        for entries in entries_by_method:
            entry = entries.get(method.name)
            if entry:
                cells += [entry.number, doc.Number(entry.rank, number_format="rank")]
            else:
                cells += [None, None]
        return cells

    methods = dict.fromkeys(method for grid in grids for method in grid.methods)
    title = f"Values and ranks, {study.title}"
    caption = (
        f"{title}, with {format_percent(board.results.level)} intervals below the values. Arrows: "
        "direction of better values. Values are fractions unless multiplied by 1000. †: not "
        "significantly different from the best."
    )
    return wide_table(title, columns, map(row, methods), caption)


def _significance_maps(board: Leaderboard, study: Study) -> Iterator[doc.Block]:
    """Yield a significance map for each metric that is used for ranking."""
    for metric in board.metrics:
        comparison = board.results.comparisons[metric]
        display = SignificanceMapDisplay.from_comparison(
            comparison, metric, data=study_split(study)
        )
        if not display.pairs:
            continue
        alpha = format_percent(round(1 - display.level, 10))
        explanation = (
            "Blue: the method of the row is significantly better than that of the column at "
            f"{alpha} ({display.pairs[0].test_description}). "
            "Gray: not significantly different. Empty: significantly worse, or not compared. "
            "The columns have the numbers of the rows, in the order of the ranks."
        )
        title = f"Significant differences by {short_title(metric)}"
        table = replace(
            map_table(display),
            title=f"{title}, {study.title}",
            caption=f"Pairs by {short_title(metric)}",
        )
        yield doc.Collapsible(
            title,
            (doc.Prose(explanation, "about"), table),
            is_open=metric == board.metrics[0],
            role="interactive",
        )


def map_table(display: SignificanceMapDisplay) -> doc.Table:
    """Return a significance map as a table with colored cells, which is smaller than a plot."""
    cells_by_pair: dict[tuple[str, str], doc.Cell] = {}
    for pair in display.pairs:
        for row, column in ((pair.first, pair.second), (pair.second, pair.first)):
            if pair.better == row:
                cells_by_pair[row, column] = doc.Span("+", "better")
            elif pair.better != column:
                cells_by_pair[row, column] = doc.Span("=", "equal")
    headers = [doc.Column("Better than", "name")]
    rows: list[list[doc.Cell]] = []
    for i, row in enumerate(display.methods, start=1):
        headers.append(doc.Column(doc.Label(str(i), tooltip=row), is_sortable=False))
        cells = [cells_by_pair.get((row, column), "") for column in display.methods]
        rows.append([(doc.Span(str(i), "muted"), f" {row}"), *cells])
    return doc.Table(tuple(headers), doc.single_group(rows), layout="map")


def threshold_table(board: Leaderboard, study: Study) -> doc.Table | None:
    """Return the threshold results of a study, or None if no threshold was evaluated."""
    rows = [row for row in board.thresholds if row.study == study.name]
    if not rows:
        return None
    title = f"Results of thresholds from validation data, {study.title}"
    columns = (
        doc.METHOD_COLUMN,
        *map(doc.number_column, ("Failures among accepted", "Excess over target", "Coverage")),
        doc.Column("Verdict"),
    )
    links = {method.name: method_link(board, method) for method in board.results.methods}
    body = [
        (links[row.method], *_threshold_cells(row), _verdict(row))
        for row in rows
        if row.method in links
    ]
    return wide_table(title, columns, body, f"{title}; {_threshold_notes(study, rows)}")


def _threshold_notes(study: Study, rows: Sequence[ThresholdRow]) -> str:
    """State the target of the thresholds and the unit, and explain missing thresholds."""
    risk, delta = format_percent(rows[0].risk), format_percent(rows[0].delta)
    notes = f"target: at most {risk} failures among the accepted, with probability 1 − {delta}"
    if study.errors == "removed":
        notes += "; a threshold is applied to all images, so errors on known classes count"
    notes += f". Fractions{seeds_note(rows)}."
    if any(row.verdict == "unattainable" for row in rows):
        notes += " “No threshold”: the validation data cannot support the target."
    return notes


def _threshold_cells(row: ThresholdRow) -> list[doc.Cell]:
    """Return the cells for selective risk with its interval, excess risk and coverage."""
    fields = row.row()
    low, high = fields["selective_risk_low"], fields["selective_risk_high"]
    return [
        _empty_if_nan(doc.Number(row.selective_risk, low, high)),
        _empty_if_nan(doc.Number(row.excess, number_format="signed")),
        _empty_if_nan(doc.Number(row.coverage)),
    ]


def _empty_if_nan(number: doc.Number) -> doc.Number | None:
    """Return the number, or None if no sample was accepted, which leaves the cell empty."""
    return None if math.isnan(number.value) else number


def _verdict(row: ThresholdRow) -> str:
    """Return the verdict on a threshold, or all verdicts if the seeds differ."""
    if row.verdict != "differs":
        return format_verdict(row.verdict)
    n_seeds = len(row.checks)
    n_holds = row.count("holds")
    n_broken = row.count("broken")
    n_undecided = n_seeds - n_holds - n_broken
    undecided = f"; undecided for {n_undecided}" if n_undecided else ""
    return f"of {n_seeds} seeds, holds for {n_holds}, broken for {n_broken}{undecided}"


def curve_display(board: Leaderboard, study: Study) -> SeriesDisplay | None:
    """Return the risk-coverage curves of the best methods, the baseline and random rejection."""
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
    """Return the differences between the ranks by AURC and by AUGRC, in one or over all studies.

    The result is None if there are not two ranking metrics and at least two ranked methods.
    """
    if len(board.metrics) != 2:
        return None
    second, first = board.metrics
    first_ranks = board.ranks(first, study)
    second_ranks = board.ranks(second, study)
    rank_pairs = {
        name: (rank, second_ranks[name])
        for name, rank in first_ranks.items()
        if name in second_ranks
    }
    if len(rank_pairs) < 2:
        return None
    split = study_split(study) if study else None
    return RankingChangeDisplay(first, second, rank_pairs, split, None)


def change_figure(
    board: Leaderboard, study: Study | None, key: str, about: str = ""
) -> list[doc.Figure]:
    """Return a list that contains the rank-change figure, or an empty list if there is none."""
    title = "Change of ranks from AURC to AUGRC"
    return figure(ranking_change(board, study), key, title, f"{about}{_LINES_TEXT}")


def studies_section(board: Leaderboard, images: SampleImages | None) -> doc.Section:
    """Return the section about all studies in the main tables."""
    lead = (
        f"Values with {format_percent(board.results.level)} intervals and ranks, risk-coverage "
        "curves of the best methods and the baseline, significant differences, results of "
        "thresholds from validation data, and example images."
    )
    studies = board.results.headline
    links = tuple((board.anchors[study.name], study.title) for study in studies)
    sections = (_study_section(board, study, images) for study in studies)
    blocks = (doc.Prose(lead, "lead"), doc.Links(links), *sections)
    return doc.Section("studies", "Results by study", blocks, nav_title="Studies")


def _study_section(board: Leaderboard, study: Study, images: SampleImages | None) -> doc.Section:
    """Return the subsection about one study."""
    sentence = doc.Prose(study_sentence(board, study), "about")
    return doc.Section(
        board.anchors[study.name],
        study.title,
        (sentence, *study_blocks(board, study, images, level=4)),
        level=3,
        subtitle=kind_title(study.kind),
        style="part",
    )


def study_blocks(
    board: Leaderboard, study: Study, images: SampleImages | None, *, level: int = 3
) -> Iterator[doc.Block]:
    """Yield the curves, values, differences, thresholds and example images of one study.

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
_EXCESS: Final = "Risk above the target"
_COVERAGE: Final = "Coverage"

#: Title of this figure.
_SEVERITY_TITLE: Final = "A threshold under increasing corruption"

_TABLES_NOTE: Final = (
    "The tables contain each severity with all types of corruption. The column of corruptions in "
    "the main table is the mean over the severities, as in FD-Shifts; “pooled” ranks the images of "
    "all severities together, which is a different number."
)


def corruption_section(board: Leaderboard) -> Iterator[doc.Section]:
    """Yield the section about corruption severities, if there are any."""
    if not any(study.severity for study in board.results.studies):
        return
    description = f"Risk and coverage are fractions{seeds_note(board.results.thresholds)}."
    figures = figure(severity_display(board), "severities", _SEVERITY_TITLE, description)
    tables = _severity_tables(board)
    lead = _introduction(board, has_figure=bool(figures), has_tables=bool(tables))
    blocks = (doc.Prose(lead, "lead"), *figures, *tables, back(TOP))
    yield doc.Section("severities", "Increasing corruption", blocks)


def _severity_tables(board: Leaderboard) -> list[doc.Collapsible]:
    """Return a collapsible table for each metric, with methods by severities."""
    corrupted = [study for study in board.results.studies if study.kind == "corruption"]
    studies = [study for study in corrupted if not study.headline]
    is_in_main_tables = len(studies) < 2 and len(corrupted) > len(studies)
    if is_in_main_tables:
        return []
    grids = [board.full_grid(metric).select(studies) for metric in board.results.comparisons]
    return [_severity_table(board, grid) for grid in grids if grid.studies]


def _severity_table(board: Leaderboard, grid: Grid) -> doc.Collapsible:
    table = grid_table(board, grid)
    titled_table = replace(table, title=f"{table.title} by severity")
    return doc.Collapsible(f"{metric_heading(grid)} by severity, all methods", (titled_table,))


def severity_display(board: Leaderboard) -> SeriesDisplay | None:
    """Return excess risk and coverage at the thresholds by severity, one line per method."""
    severities = _severity_by_study(board.results)
    rows = [row for row in board.thresholds if row.study in severities]
    series = (*_lines(board, rows, _EXCESS, "excess"), *_lines(board, rows, _COVERAGE, "coverage"))
    if len({row.study for row in rows}) < 2 or not series:
        return None
    return SeriesDisplay(
        series,
        _SEVERITY_TITLE,
        "Severity of the corruptions (0: none)",
        "",
        log_x=False,
        level={_EXCESS: 0.0},
        level_name="target",
        order=board.plotted_methods,
    )


def _lines(
    board: Leaderboard, rows: Sequence[ThresholdRow], panel: str, field: str
) -> Iterator[Series]:
    """Yield a line for each method that has a defined value in one panel."""
    severities = _severity_by_study(board.results)
    for name in board.threshold_methods:
        points = sorted(
            (severities[row.study], float(getattr(row, field)))
            for row in rows
            if row.method == name
        )
        defined = [(severity, value) for severity, value in points if not math.isnan(value)]
        if defined:
            x, y = zip(*defined, strict=True)
            yield Series(name, x, y, panel=panel)


def _severity_by_study(results: BenchmarkResults) -> dict[str, float]:
    """Return the severity of each study with one severity; uncorrupted data have severity 0."""
    return {
        study.name: float(study.severity)
        for study in results.studies
        if study.kind == "iid" or study.severity
    }


def _introduction(board: Leaderboard, *, has_figure: bool, has_tables: bool) -> str:
    """Describe the figure, or explain why it is missing."""
    target = _target_text(board.results)
    tables_note = f" {_TABLES_NOTE}" if has_tables else ""
    if not has_figure:
        return f"{_reason_without_figure(board, target)}{tables_note}"
    names = board.threshold_methods
    lines_text = (
        f"The thresholds were set on clean validation data {target}. Above the dotted line, the "
        "risk exceeds the target; coverage is the share of accepted images. "
        f"Lines: {_join_names(names)} (the best by rank under corruption, and the baseline "
        f"“{board.baseline}”)."
    )
    omissions = f"{_missing_methods(board, names)}{_single_severity(board.results)}"
    return f"{lines_text}{omissions}{tables_note}"


def _target_text(results: BenchmarkResults) -> str:
    """Describe the target risk of the thresholds and the allowed probability of exceeding it."""
    row = next(iter(results.thresholds), None)
    if row is None or math.isnan(row.risk):
        return "for a low share of failures among the accepted images"
    return (
        f"for a share of failures of at most {format_percent(row.risk)} among the accepted "
        f"images (the probability of exceeding it is at most {format_percent(row.delta)})"
    )


def _reason_without_figure(board: Leaderboard, target: str) -> str:
    """Explain why there is no figure of thresholds by severity."""
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
    """Name the methods that are not plotted because they have no threshold."""
    order = board.order_under_corruption
    better_methods = order[: order.index(names[-1])] if names[-1] in order else order
    candidates = {*better_methods, board.baseline} - board.methods_with_threshold
    missing = [name for name in order if name in candidates]
    if not missing:
        return ""
    verb = "has" if len(missing) == 1 else "have"
    return f" {_join_names(missing)} {verb} no threshold for this target."


def _single_severity(results: BenchmarkResults) -> str:
    severities = [study.severity for study in results.studies if study.severity]
    return f" Only severity {severities[0]} was tested." if len(severities) == 1 else ""


def _join_names(names: Sequence[str]) -> str:
    """Join up to five names with commas and “and”, and shorten longer lists."""
    if not 2 <= len(names) <= 5:
        return join_quoted(names)
    quoted = [f"“{name}”" for name in names]
    return f"{', '.join(quoted[:-1])} and {quoted[-1]}"
