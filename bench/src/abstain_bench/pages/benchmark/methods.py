"""Build the report sections on methods, calibration, models and published numbers."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from abstain.evaluation.comparison import MEAN
from abstain.metrics import metric_named
from abstain.metrics.areas.aurc import AURC
from abstain.metrics.classifier import ACCURACY
from abstain.metrics.failure_ranking import FAILURE_AUROC
from abstain.plots.backbones import BackboneDisplay, BackboneValue
from abstain.plots.formatting import capitalize_first
from abstain.report import document as doc
from abstain.report.formatting import (
    find_metric,
    format_count,
    format_number,
    format_value,
    is_printed_x1000,
    short_title,
    split_links,
)
from abstain_bench.pages.benchmark.grids import (
    TOP,
    back,
    figure,
    kind_spans,
    method_link,
    study_columns,
    wide_table,
)
from abstain_bench.pages.benchmark.leaderboard import (
    NEW_CLASS_KINDS,
    GridEntry,
    Leaderboard,
    arm_title,
)
from abstain_bench.results import (
    BenchmarkResults,
    CalibrationRow,
    MethodFacts,
    PublishedNumber,
    SelectedSetting,
)
from abstain_bench.runs.studies import Study

_CALIBRATION: Final = (
    "The expected calibration error (ECE) is the mean difference between confidence and "
    "accuracy: 0 is best. Before the arrow: ECE of the confidences; after the arrow: ECE after "
    "Platt scaling on validation data. Confidences that are not probabilities have only the "
    "second value. Confidences that are calibrated on i.i.d. data may be miscalibrated under a "
    "shift. Fractions{means}."
)


def methods_section(board: Leaderboard) -> doc.Section:
    """Return the section with a collapsible description of each method."""
    methods = board.results.methods
    lead = (
        "For each method: its definition, the settings selected on validation data, and its values "
        f"in all studies with its ranks among {len(methods)} methods."
    )
    links = tuple((board.method_anchor(method), method.name) for method in methods)
    collapsed = (
        doc.Collapsible(
            _summary(board, method),
            tuple(_method_blocks(board, method)),
            anchor=board.method_anchor(method),
            style="part",
        )
        for method in methods
    )
    return doc.Section(
        "methods",
        "Results by method",
        (doc.Prose(lead, "lead"), doc.Links(links), *collapsed, back(TOP)),
        nav_title="Methods",
    )


def _summary(board: Leaderboard, method: MethodFacts) -> doc.Text:
    """Return the heading of a method description: its name, title and mean ranks."""
    ranks = []
    for metric in board.metrics:
        rank = board.mean_rank_by_method(metric).get(method.name)
        if rank is not None:
            ranks.append(f"{short_title(metric)} {format_value(rank, 'two_decimals')}")
    names = (doc.Span(method.name, "strong"), " ", doc.Span(method.title, "muted"))
    if not ranks:
        return names
    return (*names, " ", doc.Span(f"mean rank by {', by '.join(ranks)}", "small"))


def _method_blocks(board: Leaderboard, method: MethodFacts) -> Iterator[doc.Block]:
    """Yield the description of a method with its source, values and settings."""
    yield doc.Prose(f"{_meaning(method)}.")
    trained = f"{arm_title(method.arm)}."
    source = (f"{trained} Source: ", *split_links(method.source)) if method.source else trained
    yield doc.Prose(source, "source")
    yield from _values_table(board, method)
    yield from _settings_table(board.results, method.name)
    yield back(("methods", "All methods"), ("tables", "Main tables"))


def _meaning(method: MethodFacts) -> str:
    """Return the description of a method without the final period."""
    if method.meaning:
        return capitalize_first(method.meaning.rstrip("."))
    if method.added:
        return "Added from a file; a higher confidence is more trusted"
    return "No description"


def _values_table(board: Leaderboard, method: MethodFacts) -> Iterator[doc.Table]:
    """Yield a table of the values and ranks of a method by metric and study."""
    grids = [board.grid(metric) for metric in board.results.comparisons]
    studies = max((grid.studies for grid in grids), key=len, default=())
    if not studies:
        return
    rows = []
    for grid in grids:
        if method in grid.methods:
            entries = replace(grid, studies=studies).row(method)
            rows.append((grid.label, *map(_with_rank, entries)))
    yield doc.Table(
        (doc.Column("Metric", "name"), *study_columns(board, studies)),
        doc.single_group(rows),
        title=f"{method.name} in all studies",
        caption=f"“{method.name}” in all studies: value and rank",
        layout="grid",
        column_groups=kind_spans(studies),
    )


def _with_rank(entry: GridEntry | None) -> doc.Cell:
    if entry is None:
        return None
    rank = "–" if math.isnan(entry.rank) else format_value(entry.rank, "rank")
    return replace(entry.number, low=doc.NAN, high=doc.NAN, tooltip="", small_text=f"rank {rank}")


def _settings_table(results: BenchmarkResults, name: str) -> Iterator[doc.Table]:
    """Yield a table of the selected settings of a method, with the values of all its settings."""
    settings = [setting for setting in results.chosen if setting.method == name]
    if not settings:
        return
    title = f"Settings of “{name}” selected on validation data"
    has_several_seeds = any(setting.seeds > 1 for setting in settings)
    unit = "means over the seeds, as fractions" if has_several_seeds else "fractions"
    notes = dict.fromkeys(setting.note for setting in settings if setting.note)
    caption = " ".join([f"{title}: {unit}.", *notes])
    columns = (
        doc.Column("Metric"),
        doc.Column("Selected"),
        doc.number_column("On validation data"),
        doc.Column("All settings"),
    )
    rows = (
        (
            short_title(setting.metric),
            f"{setting.arm}, {setting.setting}" if setting.setting else setting.arm,
            doc.Number(setting.value),
            _all_settings_text(setting),
        )
        for setting in settings
    )
    yield wide_table(title, columns, rows, caption)


def _all_settings_text(setting: SelectedSetting) -> str:
    """List the settings of a method with their metric values on the validation data."""
    if len(setting.tried) < 2:
        return "no other setting"
    return "; ".join(
        f"{label or 'default'}: {'–' if math.isnan(value) else format_number(value)}"
        for label, value in setting.tried.items()
    )


def calibration_section(board: Leaderboard) -> Iterator[doc.Section]:
    """Yield the section on the ECE of each method before and after Platt scaling."""
    results = board.results
    # The mean over the seeds is sorted last, so that it replaces the values of single seeds.
    rows = sorted(results.calibration, key=lambda row: row.run == MEAN)
    rows_by_key = {(row.method, row.study): row for row in rows}
    study_names = {row.study for row in rows}
    studies = [study for study in results.headline if study.name in study_names]
    method_names = {row.method for row in rows}
    methods = [method for method in results.methods if method.name in method_names]
    if not studies or not methods:
        return
    columns = (doc.METHOD_COLUMN, *(doc.Column(study.title, "number") for study in studies))
    body = []
    for method in methods:
        method_rows = (rows_by_key.get((method.name, study.name)) for study in studies)
        body.append((method_link(board, method), *map(_calibration_cell, method_rows)))
    table = wide_table("ECE before → after Platt scaling", columns, body)
    has_means = any(row.run == MEAN for row in rows)
    lead = _CALIBRATION.format(means=", means over the seeds" if has_means else "")
    yield doc.Section("calibration", "Calibration", (doc.Prose(lead, "lead"), table, back(TOP)))


def _calibration_cell(row: CalibrationRow | None) -> doc.Cell:
    if row is None or math.isnan(row.platt):
        return None
    if row.raw is None or math.isnan(row.raw):
        return doc.Number(row.platt, display_text=f"{row.platt:.3f}")
    return doc.Number(row.platt, display_text=f"{row.raw:.3f} → {row.platt:.3f}")


# ------------------------------------------------------------------------------- other networks
#: Metrics by which the report compares backbones.
_METRICS: Final = tuple(metric.name for metric in (ACCURACY, FAILURE_AUROC, AURC))

_LEAD: Final = (
    "Filled marks are the baseline “{base}”, hollow ones the best method of each model by that "
    "metric. Compare accuracy first: a network that errs less leaves less to a confidence score. "
    "Accuracy is shown where all classes are known."
)
_ABOUT: Final = "Values are fractions; the arrow points to where better is."
_NOTHING_COMMON: Final = "These benchmarks have no common study and metric."


def backbones_section(
    board: Leaderboard, other_boards: Sequence[Leaderboard]
) -> Iterator[doc.Section]:
    """Yield the section that compares models on the same task, if there are several models."""
    if not other_boards:
        return
    display = backbone_display(board, other_boards)
    if display is None:
        blocks: tuple[doc.Block, ...] = (doc.Prose(_NOTHING_COMMON, "lead"),)
    else:
        lead = doc.Prose(_LEAD.format(base=board.baseline), "lead")
        figures = figure(display, "backbones", "Comparison of models", _ABOUT)
        blocks = (lead, *figures, _models_table(display))
    yield doc.Section("backbones", "Backbones", (*blocks, back(TOP)))


def _models_table(display: BackboneDisplay) -> doc.Table:
    """Return a table of the baseline and the best method for each model."""
    columns = (
        *map(doc.Column, ("Metric", "Study", "Model")),
        *map(doc.number_column, ("Baseline", "Best")),
        doc.Column("Best method"),
    )
    rows = (
        (
            value.metric,
            value.data,
            value.model,
            doc.Number(value.baseline),
            doc.Number(value.best),
            value.best_method,
        )
        for value in display.values
    )
    return wide_table("Baseline and best method of each model, fractions", columns, rows)


def backbone_display(
    board: Leaderboard, other_boards: Sequence[Leaderboard]
) -> BackboneDisplay | None:
    """Return the plot that compares the models, or None if they share no studies."""
    boards = _boards_by_model([board, *other_boards])
    values = [
        _backbone_value(model, model_board, metric, study, board.baseline)
        for metric in _METRICS
        for study in _compared_studies(metric, board.results.headline)
        for model, model_board in boards.items()
        if metric in model_board.results.comparisons
    ]
    defined = tuple(value for value in values if value is not None)
    if not other_boards or not defined:
        return None
    return BackboneDisplay(defined, f"{board.baseline} (baseline)", "Backbones")


def _compared_studies(metric: str, studies: Sequence[Study]) -> list[Study]:
    """Return the studies for which the models are compared by a metric."""
    if not metric_named(metric).identity.ignores_confidence:
        return list(studies)
    return [study for study in studies if study.kind not in NEW_CLASS_KINDS]


def _boards_by_model(boards: Sequence[Leaderboard]) -> dict[str, Leaderboard]:
    """Return the benchmarks by model name, with a number appended to repeated names."""
    boards_by_model: dict[str, Leaderboard] = {}
    for board in boards:
        model = board.results.model or "model"
        names = (model if i == 1 else f"{model} ({i})" for i in itertools.count(1))
        unused_name = next(name for name in names if name not in boards_by_model)
        boards_by_model[unused_name] = board
    return boards_by_model


def _backbone_value(
    model: str, board: Leaderboard, metric: str, study: Study, baseline: str
) -> BackboneValue | None:
    """Return the values of the baseline and the best method in a study for one model."""
    grid = board.grid(metric)
    # Studies of different benchmarks can have equal names and different exposures.
    own_study = next((own for own in grid.studies if own.name == study.name), None)
    if own_study is None:
        return None
    values = {name: entry.number.value for name, entry in grid.column(own_study).items()}
    if math.isnan(values.get(baseline, math.nan)):
        return None
    best = next(iter(grid.methods_with_relation(own_study)), "")
    title = f"{grid.label.text}\u00a0{grid.label.arrow}"
    return BackboneValue(
        model, own_study.title, title, values[baseline], values.get(best, doc.NAN), best
    )


_PUBLISHED_LEAD: Final = (
    "Published numbers for the common methods, studies and metrics. Ratio: this run divided by "
    "published. Ranks refer to the common methods; 1 is best, and equal numbers share the best "
    "rank. Tau: Kendall's tau of the two orders, 1 for equal and −1 for reversed orders. The "
    "findings above list the differences between the experiments."
)

#: Maximum number of rows of the numbers in a terminal.
_MAX_ROWS: Final = 12


def published_section(results: BenchmarkResults) -> Iterator[doc.Section]:
    """Yield the section that compares the results with published numbers, if there are any."""
    if not results.published:
        return
    first, *other_tables = numbers_tables(results)
    collapsed = [doc.Collapsible(table.title, (table,)) for table in other_tables]
    first_section = doc.Section("published-first", first.title, (first,), level=3)
    orders = [orders_table(results)] if results.published_orders else []
    blocks = (doc.Prose(_PUBLISHED_LEAD, "lead"), *orders, first_section, *collapsed, back(TOP))
    yield doc.Section(
        "published", "Comparison with published numbers", blocks, nav_title="Published"
    )


def published_summary(results: BenchmarkResults) -> Iterator[doc.Block]:
    """Yield the rank correlations and the first compared values, for display in a terminal."""
    if results.published_orders:
        yield orders_table(results)
    if results.published:
        table = numbers_tables(results)[0]
        yield replace(table, groups=doc.single_group(table.rows[:_MAX_ROWS]))
        n_more = len(table.rows) - _MAX_ROWS
        if n_more > 0:
            yield doc.SeeAlso(f"{format_count(n_more)} more ", "in the report", "in the report")


def orders_table(results: BenchmarkResults) -> doc.Table:
    """Return a table with Kendall's tau and the best methods by metric and study."""
    titles = _titles(results)
    columns = (
        doc.Column("Metric", "name", blank_repeats=True),
        doc.Column("Study", "name"),
        *map(doc.number_column, ("Methods", "Tau")),
        doc.Column("Best in this run", "name", is_droppable=True),
        doc.Column("Best published", "name", is_droppable=True),
        doc.Column("Published in", is_droppable=True),
    )
    rows = [
        (
            short_title(order.metric),
            titles.get(order.study, order.study),
            doc.Number(order.methods, number_format="count"),
            doc.Number(order.tau, number_format="two_decimals"),
            ", ".join(order.best),
            ", ".join(order.published_best),
            order.source,
        )
        for order in results.published_orders
    ]
    return wide_table("Order of the methods: this run and published", columns, rows)


def numbers_tables(results: BenchmarkResults) -> list[doc.Table]:
    """Return a table for each metric, with a row for each combination of study and method."""
    titles = _titles(results)
    by_metric = itertools.groupby(results.published, key=lambda number: number.metric)
    return [_numbers_table(metric, tuple(numbers), titles) for metric, numbers in by_metric]


def _numbers_table(
    metric: str, numbers: Sequence[PublishedNumber], titles: Mapping[str, str]
) -> doc.Table:
    """Return a table with the measured and published values and ranks of one metric."""
    scale = 1000 if is_printed_x1000(metric) else 1
    known_metric = find_metric(metric)
    lower = known_metric is None or known_metric.lower_is_better
    label = doc.Label(short_title(metric), "lower" if lower else "higher", scale)
    columns = (
        doc.Column("Study", "name", blank_repeats=True),
        doc.Column("Method", "name"),
        *map(doc.number_column, ("This run", "Published", "Ratio", "Rank", "Published rank")),
    )
    rows = [
        (
            titles.get(number.study, number.study),
            number.method,
            doc.Number(number.value, scale=scale),
            doc.Number(number.published, scale=scale, tooltip=number.doubt),
            doc.Number(number.ratio, number_format="two_decimals"),
            doc.Number(number.rank, number_format="rank"),
            doc.Number(number.published_rank, number_format="rank"),
        )
        for number in numbers
    ]
    title = f"{label.text}{label.unit}\u00a0{label.arrow}: this run and published"
    source = " and ".join(dict.fromkeys(number.source for number in numbers))
    caption = f"{title} ({source}). Ranks among the common methods."
    return wide_table(title, columns, rows, caption)


def _titles(results: BenchmarkResults) -> dict[str, str]:
    return {study.name: study.title for study in results.studies}
