"""Tables of a comparison for one metric on one data set, and the table for a paper."""

import math
from collections.abc import Sequence
from dataclasses import replace

from abstain.evaluation.comparison import Comparison, PairedDifference, Standing, SummaryRow
from abstain.plots.formatting import (
    SIMULATION_ASSUMPTION,
    capitalize_first,
    check_comparison,
    format_percent,
    ranks_note,
)
from abstain.report.document import (
    METHOD_COLUMN,
    NAN,
    Block,
    Cell,
    Column,
    Label,
    Number,
    Prose,
    Range,
    Span,
    Table,
    interval_column,
    number_column,
    single_group,
)
from abstain.report.formatting import format_count, is_printed_x1000, join_first, unique
from abstain.report.subjects.comparison.metric_result import MetricResult, metric_results
from abstain.report.subjects.comparison.verdict import (
    common_margin_caution,
    non_inferiority_claim,
)

#: Maximum number of names in a cell. For more methods, the cell contains their number.
_MAX_NAMES = 4

#: Number of pairs that are visible without scrolling.
_MAX_PAIRS_WITHOUT_SCROLLING = 12

#: Maximum number of pairs in a table. With more pairs, a table contains only the pairs of the best
#: method.
_MAX_PAIRS = 300

#: Maximum number of ranks with a column in the table of rank probabilities.
_MAX_RANK_COLUMNS = 25


def overview_table(comparison: Comparison) -> Table:
    """Return a table with the best method for each metric and data set."""
    rows = [_overview_row(result) for result in metric_results(comparison)]
    return Table(
        (
            Column("Metric"),
            Column("Data", "name"),
            Column("Best", "name"),
            number_column("Value"),
            Column("Not significantly different", "name", is_sortable=False),
            Column("Significantly worse", "name", is_sortable=False),
        ),
        single_group(rows),
        title="Best method by metric and data set",
        caption="Best method by metric and data set; tests of all pairs",
        anchor="glance",
        layout="leads",
        is_sortable=True,
    )


def _overview_row(result: MetricResult) -> tuple[Cell, ...]:
    """Return the table row with the best method for one metric."""
    best_names = join_first(result.methods_with("best"), _MAX_NAMES)
    best_cell = Span("none", "undefined")
    if best_names:
        best_cell = Span(best_names, "strong" if result.is_best_significant else "plain")
    value = Number(NAN)
    if result.ranked:
        best = result.ranked[0]
        value = Number(best.value, best.low, best.high)
    return (
        result.label_with_direction,
        result.data_name or "all samples",
        best_cell,
        value,
        _names_or_count(result.methods_with("not told apart")),
        _names_or_count(result.methods_with("worse")),
    )


def _names_or_count(names: Sequence[str]) -> str | None:
    """Return the names of the methods, or their number if there are many."""
    if len(names) > _MAX_NAMES:
        return f"{len(names)} others"
    return ", ".join(names) or None


def values_table(result: MetricResult) -> Table:
    """Return a table of the value, interval and tests of each method, best method first."""
    failure_counts = unique(format_count(estimate.failures) for estimate in result.ranked)
    has_failures = len(failure_counts) > 1
    has_notes = any(estimate.note for estimate in result.ranked)
    summary = {row.method: row for row in result.summary}
    rows = []
    for estimate in result.ranked:
        cells: list[Cell] = [
            estimate.method,
            Number(estimate.value),
            Range(estimate.low, estimate.high, tooltip=estimate.interval),
            Number(estimate.standard_error),
        ]
        cells += _reference_cells(summary.get(estimate.method), result)
        if has_failures:
            cells.append(Number(estimate.failures, number_format="count"))
        if has_notes:
            cells.append(estimate.note)
        rows.append(tuple(cells))
    return Table(
        _values_columns(result, has_failures=has_failures, has_notes=has_notes),
        single_group(rows),
        title=f"Values: {result.label}",
        caption=_values_caption(result, failure_counts),
        is_sortable=True,
    )


def _values_columns(
    result: MetricResult, *, has_failures: bool, has_notes: bool
) -> tuple[Column, ...]:
    """Return the columns of the table of values."""
    reference = result.summary[0].reference if result.summary else ""
    columns = [
        METHOD_COLUMN,
        number_column("Value"),
        interval_column(f"{format_percent(result.comparison.level)} interval"),
        number_column("Standard error"),
        number_column("Difference"),
    ]
    columns += map(number_column, _p_value_headers(result))
    columns.append(interval_column("Rank interval"))
    columns.append(Column(f"Compared with {reference or 'the best'}"))
    if has_failures:
        columns.append(number_column("Failures"))
    if has_notes:
        columns.append(Column("Note", "words", is_sortable=False))
    return tuple(columns)


def _reference_cells(row: SummaryRow | None, result: MetricResult) -> tuple[Cell, ...]:
    """Return cells with the difference from the reference, p-values, ranks and conclusion."""
    n_p_values = len(_p_value_headers(result))
    if row is None:
        return (None,) * (3 + n_p_values)
    ranks = Range(row.rank_low, row.rank_high, number_format="rank")
    if row.conclusion == "reference":
        no_difference = (None,) * (1 + n_p_values)
        return (*no_difference, ranks, "reference")
    is_significant = row.conclusion.startswith("significantly")
    return (
        Number(row.difference, row.difference_low, row.difference_high),
        *_p_value_cells(row.p_value, row.adjusted, result, is_best=is_significant),
        ranks,
        Span(row.conclusion, "open"),
    )


def _values_caption(result: MetricResult, failure_counts: Sequence[str]) -> str:
    """Return the caption with the metric, the numbers of samples and the interval method."""
    if not result.ranked:
        return result.label
    caption = f"{result.label}; {format_count(result.ranked[0].n)} samples"
    if len(failure_counts) == 1:
        caption += f", {failure_counts[0]} failures"
    interval_methods = unique(estimate.interval for estimate in result.ranked)
    if len(interval_methods) == 1 and interval_methods[0]:
        caption += f"; {interval_methods[0]}"
    return caption


# --------------------------------------------------------------------------------------- pairs
def pairs_by_test(result: MetricResult) -> list[list[PairedDifference]]:
    """Return the pairs of methods for each test, starting with the main test."""
    comparison, key = result.comparison, (result.metric, result.data)
    return [comparison.pairs_of(*key, test) for test in comparison.tests_of(*key)]


def displayed_share_of_pairs(n_methods: int) -> float:
    """Return the share of all pairs that a table contains."""
    return 1.0 if n_methods * (n_methods - 1) // 2 <= _MAX_PAIRS else 2.0 / n_methods


def pairs_table(result: MetricResult, pairs: Sequence[PairedDifference]) -> Table:
    """Return a table of pairs. If there are many, it contains only pairs with the best method.

    All pairs must be compared by the same test.
    """
    test = pairs[0]
    common_note = shared_note(pairs)
    displayed = pairs
    if displayed_share_of_pairs(len(result.comparison.methods)) < 1:
        displayed = [pair for pair in pairs if result.leader in {pair.first, pair.second}]
    has_notes = not common_note and any(pair.note for pair in displayed)
    sentences = [
        f"{capitalize_first(test.test_description)}; {result.label}.",
        "Differences are first minus second, ratios first divided by second.",
    ]
    if len(displayed) > _MAX_PAIRS_WITHOUT_SCROLLING:
        sentences.append(f"Scroll to see all {len(displayed)} pairs.")
    if common_note:
        sentences.append(f"{common_note}.")
    if displayed is not pairs:
        sentences.append(
            f"The table contains only the {len(displayed)} pairs with “{result.leader}”. The "
            f"results table “pairs” contains all {format_count(len(pairs))} pairs."
        )
    return Table(
        _pairs_columns(result, is_valid=test.valid, has_notes=has_notes),
        single_group(_pair_row(pair, result, has_note=has_notes) for pair in displayed),
        title=f"Pairs: {result.label}, {test.test}",
        caption=" ".join(sentences),
        layout="pairs",
        is_sortable=True,
    )


def _pairs_columns(result: MetricResult, *, is_valid: bool, has_notes: bool) -> tuple[Column, ...]:
    """Return the columns of the table of pairs."""
    columns = [
        Column("First", "name"),
        Column("Second", "name"),
        number_column("Difference"),
        number_column("Ratio"),
    ]
    columns += map(number_column, _p_value_headers(result))
    if result.data is None:
        columns.append(_superiority_column(result))
    if is_valid:
        columns.append(Column("Significantly better", "name"))
    if has_notes:
        columns.append(Column("Note", is_sortable=False))
    return tuple(columns)


def _superiority_column(result: MetricResult) -> Column:
    """Return the header for the share of data sets or runs on which the first method is better."""
    text = f"First better, % of {result.comparison.block_kind}"
    return number_column(Label(text, tooltip="Ties are counted half"))


def shared_note(pairs: Sequence[PairedDifference]) -> str:
    """Return the note of the pairs, or an empty string if their notes differ."""
    notes = unique(p.note for p in pairs)
    return capitalize_first(notes[0].rstrip(".")) if len(notes) == 1 else ""


def _p_value_headers(result: MetricResult) -> tuple[str, ...]:
    """Return the headers of the columns of raw and adjusted p-values."""
    return ("p", "Adjusted p") if result.comparison.is_adjusted else ("p",)


def _p_value_cells(
    p_value: float, adjusted: float, result: MetricResult, *, is_best: bool
) -> tuple[Cell, ...]:
    deciding = Number(adjusted, number_format="p_value", mark="best" if is_best else "")
    if not result.comparison.is_adjusted:
        return (deciding,)
    return Number(p_value, number_format="p_value"), deciding


def _pair_row(pair: PairedDifference, result: MetricResult, *, has_note: bool) -> tuple[Cell, ...]:
    """Return the row of a pair with its difference, ratio and p-values."""
    ratio = None
    if not math.isnan(pair.ratio):
        ratio = Number(pair.ratio, pair.ratio_low, pair.ratio_high)
    cells: list[Cell] = [
        pair.first,
        pair.second,
        Number(pair.difference, pair.low, pair.high),
        ratio,
    ]
    is_best = bool(pair.better and pair.valid)
    cells += _p_value_cells(pair.p_value, pair.adjusted, result, is_best=is_best)
    if result.data is None:
        cells.append(Number(pair.superiority, number_format="cases_of_100"))
    if pair.valid:
        cells.append(Span(pair.better, "strong") if pair.better else Span("neither", "muted"))
    if has_note:
        cells.append(pair.note)
    return tuple(cells)


def non_inferiority_table(result: MetricResult) -> Table | None:
    """Return a table of non-inferiority tests against the reference, or None if there are none."""
    if not result.non_inferiority_rows:
        return None
    claim = non_inferiority_claim(result.non_inferiority_rows[0], has_quotes=False)
    level = format_percent(result.comparison.level)
    headers = ("Worse by", f"{level} upper bound", *_p_value_headers(result))
    rows = []
    for row in result.non_inferiority_rows:
        p_values = _p_value_cells(row.p_value, row.adjusted, result, is_best=row.non_inferior)
        conclusion: Cell = Span("shown", "strong") if row.non_inferior else "not shown"
        cells = (row.method, Number(row.worse_by), Number(row.bound), *p_values, conclusion)
        rows.append(cells)
    caution = common_margin_caution(result.comparison)
    return Table(
        (METHOD_COLUMN, *map(number_column, headers), Column("Within the margin")),
        single_group(rows),
        title=f"Non-inferiority: {result.label}",
        caption=f"{result.label}: {claim}. {caution}".rstrip(),
        is_sortable=True,
    )


# --------------------------------------------------------------------------------------- ranks
def rank_probability_tables(result: MetricResult) -> list[Table]:
    """Return a table of rank probabilities for each way of computing them."""
    key = (result.metric, result.data)
    sources = unique(s.source for s in result.comparison.standings if (s.metric, s.data) == key)
    return [
        _rank_probability_table(result, result.comparison.standings_of(*key, source))
        for source in sources
    ]


def _rank_probability_table(result: MetricResult, standings: Sequence[Standing]) -> Table:
    """Return the rank probabilities of each method, with the mean rank."""
    source = standings[0].source
    # Over all data sets, the mean of the ranks per data set differs from the mean overall rank.
    is_mean_of_ranks = result.data is None and "rank then aggregate" in source
    n_ranks = max(len(s.rank_probabilities) for s in standings)
    n_columns = n_ranks if n_ranks <= _MAX_RANK_COLUMNS else 0
    level = format_percent(result.comparison.level)
    columns = [
        METHOD_COLUMN,
        number_column("Rank"),
        number_column("Mean rank per data set" if is_mean_of_ranks else "Mean rank"),
        interval_column(f"{level} range" if result.data is None else "Rank interval"),
    ]
    columns += [number_column(str(rank)) for rank in range(1, n_columns + 1)]
    rows = [_standing_row(standing, result, n_columns) for standing in standings]
    adjustment = ranks_note(is_adjusted=result.comparison.is_adjusted)
    return Table(
        tuple(columns),
        single_group(rows),
        title=f"Rank probabilities: {result.label}, {source}",
        caption=(
            f"{_rank_caption(has_columns=n_columns > 0)}, {SIMULATION_ASSUMPTION}; {result.label} "
            f"({source}). Ranks and probabilities are {adjustment}."
        ),
        layout="ranks",
        is_sortable=True,
    )


def _standing_row(standing: Standing, result: MetricResult, n_columns: int) -> tuple[Cell, ...]:
    """Return the table row with the rank, the mean rank and the rank probabilities of a method."""
    rank_low, rank_high = standing.rank_low, standing.rank_high
    if result.data is not None:
        # For a single data set, the interval is from the tests instead of the simulation.
        tested_ranks = {row.method: (row.rank_low, row.rank_high) for row in result.summary}
        rank_low, rank_high = tested_ranks.get(standing.method, (NAN, NAN))
    probabilities = [
        Number(probability, number_format="cases_of_100")
        for probability in standing.rank_probabilities[:n_columns]
    ]
    return (
        standing.method,
        Number(standing.rank, number_format="rank"),
        Number(standing.mean_rank, number_format="two_decimals"),
        Range(rank_low, rank_high, number_format="rank"),
        *probabilities,
    )


def _rank_caption(*, has_columns: bool) -> str:
    """Return the caption of a table of ranks, with or without columns of probabilities."""
    if has_columns:
        return "Number of 100 simulated studies of this size in which a method has each rank"
    return (
        "Ranks of the methods in simulated studies of this size (the figure shows the probability "
        "of each rank, and the results table “standings” contains the numbers)"
    )


# --------------------------------------------------------------------------------------- a paper
def paper_table(
    comparison: Comparison, metrics: Sequence[str] | None, *, times_1000: bool, intervals: bool
) -> list[Block]:
    """Return a table of the requested metrics, or of all metrics, and its footnote."""
    check_comparison(comparison)
    requested = comparison.metrics if metrics is None else metrics
    names = [comparison.metric_or_first(name, "metrics") for name in requested]
    results = list(metric_results(comparison, names))
    labels = [_metric_label(result, times_1000=times_1000) for result in results]
    rows = []
    for method in comparison.methods:
        cells = [
            _cell(result, method, scale=label.scale, intervals=intervals)
            for result, label in zip(results, labels, strict=True)
        ]
        rows.append((method, *cells))
    headers: list[str | Label] = list(labels)
    column_groups: tuple[tuple[Label, int], ...] = ()
    if any(result.data_name for result in results):
        n_data_sets = len(comparison.data)
        headers = [result.data_name for result in results]
        column_groups = tuple((label, n_data_sets) for label in labels[::n_data_sets])
    table = Table(
        (METHOD_COLUMN, *map(number_column, headers)),
        single_group(rows),
        column_groups=column_groups,
    )
    is_scaled = any(label.scale > 1 for label in labels)
    return [table, Prose(_footnote(results, is_scaled=is_scaled, intervals=intervals), "notes")]


def _metric_label(result: MetricResult, *, times_1000: bool) -> Label:
    scale = 1000 if times_1000 and is_printed_x1000(result.metric) else 1
    return replace(result.label_with_direction, scale=scale)


def _cell(result: MetricResult, method: str, *, scale: int, intervals: bool) -> Cell:
    number = result.numbers.get(method)
    if number is None:
        return None
    displayed = number if intervals else replace(number, low=NAN, high=NAN)
    return replace(displayed, scale=scale, tooltip="")


def _footnote(results: Sequence[MetricResult], *, is_scaled: bool, intervals: bool) -> str:
    """Return the sentences below the table."""
    comparison = results[0].comparison
    sentences = ["Arrows point to better values; bold marks the best value."]
    if is_scaled:
        sentences.append("Columns with × 1000 are multiplied by 1000; other values are fractions.")
    else:
        sentences.append("Values are fractions.")
    if any(result.methods_with("not told apart") for result in results):
        alpha = format_percent(round(1 - comparison.level, 10))
        test = comparison.describe_tests(unique(result.metric for result in results))
        sentences.append(
            f"†: not significantly different from the best at {alpha} ({test} over all pairs of a "
            "column)."
        )
    if intervals:
        sentences.append(f"In brackets: {format_percent(comparison.level)} intervals.")
    all_notes = [estimate.note for result in results for estimate in result.estimates]
    notes = unique(note for note in all_notes if note)
    if notes:
        sentences.append(f"Notes: {'; '.join(notes)}.")
    return " ".join(sentences)
