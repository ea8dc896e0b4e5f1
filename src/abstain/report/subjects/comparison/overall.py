"""Report sections on the results over all data sets or runs, and on the choice of the metric."""

import math
from collections.abc import Iterator

from abstain.evaluation.comparison import Comparison, MeanRanks
from abstain.plots import RankingChangeDisplay
from abstain.plots.formatting import (
    SIMULATION_ASSUMPTION,
    capitalize_first,
    format_percent,
    metric_title,
)
from abstain.report import document as doc
from abstain.report.formatting import unique
from abstain.report.subjects.comparison.figures import DetailView
from abstain.report.subjects.comparison.metric_result import MetricResult
from abstain.report.subjects.comparison.tables import (
    pairs_by_test,
    pairs_table,
    rank_probability_tables,
    shared_note,
)
from abstain.report.subjects.comparison.verdict import agreement_sentence
from abstain.tables import split_name

#: Minimum number of runs for bootstrap intervals over runs with about nominal coverage.
_MIN_SCORES_FOR_INTERVALS = 10

#: Maximum number of methods with the table of rank probabilities beside the figure. For more
#: methods, the table is below the figure.
_MAX_METHODS_SIDE_BY_SIDE = 8

#: Maximum number of rows of a table that is not collapsed.
_MAX_OPEN_ROWS = 4


def overall_section(view: DetailView) -> Iterator[doc.Section]:
    """Yield the section on all data sets or runs, if there is more than one."""
    comparison = view.comparison
    boxes = []
    for i, metric in enumerate(comparison.metrics):
        metric_blocks = _metric_blocks(MetricResult(comparison, metric, None), view)
        if metric_blocks:
            boxes.append(doc.Box(tuple(metric_blocks), tags={"metric": str(i)}))
    if not boxes:
        return
    blocks = comparison.block_kind
    has_averaged_runs = blocks == "data sets" and len(comparison.runs) > 1
    run_note = " (averaged over its runs)" if has_averaged_runs else ""
    lead = (
        f"The methods are ranked on each {blocks.removesuffix('s')}{run_note}. Bars connect "
        f"methods whose mean ranks differ by less than the critical difference. With few {blocks}, "
        "few differences are significant, whatever the number of samples."
    )
    section_blocks: list[doc.Block] = [doc.Prose(lead, "lead")]
    caution = independence_caution(comparison)
    if caution:
        section_blocks.append(doc.Prose(caution, "caution"))
    section_blocks += boxes
    yield doc.Section("overall", f"Results over all {blocks}", tuple(section_blocks))


def independence_caution(comparison: Comparison) -> str:
    """Return a sentence on the independence that tests over data sets or runs assume."""
    if not comparison.mean_ranks:
        return ""
    blocks = comparison.block_kind
    assumption = f"The Friedman, Wilcoxon and Nemenyi tests assume independent {blocks}"
    if blocks == "runs":
        return (
            f"{assumption}. Folds that share training data are not independent. Use the pairwise "
            "tests for differences between these trained models, and the Friedman and Wilcoxon "
            "tests for differences that are expected after retraining."
        )
    return (
        f"{assumption}. Corrupted copies of the same images are not independent. Use the pairwise "
        "tests of a data set for differences on this data set, and the Friedman and Wilcoxon tests "
        "for differences that are expected on other data sets."
    )


def _metric_blocks(result: MetricResult, view: DetailView) -> list[doc.Block]:
    """Return figures and tables of one metric over all data sets or runs."""
    across = result.comparison.mean_ranks_of(result.metric)
    if across is None and not result.standings:
        return []
    pairs_of_tests = pairs_by_test(result)
    blocks: list[doc.Block] = []
    if across is not None:
        note = capitalize_first(across.note)
        if note in {shared_note(pairs) for pairs in pairs_of_tests}:
            note = ""  # The tables of pairs contain the note.
        blocks += view.figures("critical-difference", result, note)
        blocks.append(doc.Collapsible("Mean ranks", (_mean_rank_table(result, across),)))
    for pairs in pairs_of_tests:
        table = pairs_table(result, pairs)
        title = f"Table of {len(table.rows)} pairs: {pairs[0].test}"
        blocks.append(doc.Collapsible(title, (table,)))
    probability_blocks = rank_blocks(result, view)
    if probability_blocks:
        blocks.append(doc.Collapsible("Rank probabilities", tuple(probability_blocks)))
    aggregate_blocks = (*view.figures("profile", result), *_aggregate_tables(result))
    if aggregate_blocks:
        box = doc.Box(aggregate_blocks, layout="side")
        blocks.append(doc.Collapsible("Performance profiles and interquartile means", (box,)))
    blocks += _improvement_tables(result)
    return blocks


def _mean_rank_table(result: MetricResult, across: MeanRanks) -> doc.Table:
    """Return a table of the mean rank of each method over all data sets or runs."""
    ranks = [doc.Number(rank, number_format="two_decimals") for rank in across.mean_ranks]
    return doc.Table(
        (doc.METHOD_COLUMN, doc.number_column("Mean rank")),
        doc.single_group(zip(across.methods, ranks, strict=True)),
        caption=f"Mean ranks over all {result.comparison.block_kind}; {result.title}",
    )


def rank_blocks(result: MetricResult, view: DetailView) -> list[doc.Block]:
    """Return the figure of the rank probabilities and its tables."""
    figures = view.figures("ranks", result)
    tables = tuple(rank_probability_tables(result))
    if not tables:
        return []
    if len(result.comparison.methods) <= _MAX_METHODS_SIDE_BY_SIDE:
        return [doc.Box((*figures, doc.Box(tables)), layout="side")]
    collapsed = doc.Collapsible("Table of the rank probabilities", tables)
    return [doc.Box((*figures, collapsed), layout="stack")]


def _aggregate_tables(result: MetricResult) -> list[doc.Table]:
    """Return a list with the table of interquartile means, or an empty list if there are none."""
    aggregates = [a for a in result.comparison.aggregates if a.metric == result.metric]
    if not aggregates:
        return []
    n_values = aggregates[0].scores
    noun = result.comparison.aggregated_over
    sentences = [f"Interquartile mean over {n_values} {noun}; {result.title}."]
    if all(math.isnan(aggregate.low) for aggregate in aggregates):
        sentences.append("No intervals.")
    elif n_values < _MIN_SCORES_FOR_INTERVALS:
        sentences.append(
            f"The intervals are based on only {n_values} {noun} and may have less than their "
            "nominal coverage."
        )
    notes = unique(aggregate.note for aggregate in aggregates if aggregate.note)
    sentences += [f"{capitalize_first(note)}." for note in notes]
    rows = []
    for aggregate in aggregates:
        mean = doc.Number(aggregate.interquartile_mean)
        interval = doc.Range(aggregate.low, aggregate.high)
        rows.append((aggregate.method, mean, interval))
    columns = (
        doc.METHOD_COLUMN,
        doc.number_column("Interquartile mean"),
        doc.interval_column(f"{format_percent(result.comparison.level)} interval"),
    )
    caption = " ".join(sentences)
    return [doc.Table(columns, doc.single_group(rows), caption=caption, is_sortable=True)]


def _improvement_tables(result: MetricResult) -> list[doc.Collapsible]:
    """Return a table of the probability that a run of one method is better than one of another."""
    rows = []
    for improvement in result.comparison.improvements:
        if improvement.metric == result.metric:
            probability = doc.Number(improvement.probability, number_format="cases_of_100")
            interval = doc.Range(improvement.low, improvement.high, number_format="cases_of_100")
            rows.append((improvement.first, improvement.second, probability, interval))
    if not rows:
        return []
    noun = "runs" if len(result.comparison.runs) > 1 else "data sets"
    title = f"Probability of improvement over {noun}"
    table = doc.Table(
        (
            doc.Column("First", "name"),
            doc.Column("Second", "name"),
            doc.number_column("First better, %"),
            doc.interval_column(f"{format_percent(result.comparison.level)} interval"),
        ),
        doc.single_group(rows),
        caption=f"{title} in percent, ties counted half; {result.title}",
        is_sortable=True,
    )
    return [doc.Collapsible(title, (table,))]


# -------------------------------------------------------------------------------- the metrics
def metric_comparison_section(view: DetailView) -> Iterator[doc.Section]:
    """Yield the section on the effect of the metric on the ranking."""
    comparison = view.comparison
    if not comparison.agreements:
        return
    lead = (
        "Each line connects the rank of a method by one metric with its rank by another metric. "
        "Solid orange lines fall, dashed blue lines rise, and thin lines stay at the same rank."
    )
    blocks: list[doc.Block] = []
    sentences = [agreement_sentence(comparison, metric) for metric in comparison.metrics[1:]]
    text = " ".join(sentence for sentence in sentences if sentence)
    if text:
        blocks.append(doc.Prose(text))
    blocks.append(doc.Prose(lead, "lead", role="interactive"))
    for entry, figure in view.rank_changes():
        table = _rank_change_table(entry.display, caption=figure.title)
        tags = {} if entry.data is None else {"data": str(comparison.data.index(entry.data))}
        blocks.append(doc.Box((figure, table), layout="side", tags=tags))
    tau_table = doc.Collapsible(
        "Kendall's tau of all pairs of metrics",
        (_tau_table(comparison),),
        is_open=len(comparison.agreements) <= _MAX_OPEN_ROWS,
    )
    blocks.append(tau_table)
    yield doc.Section(
        "metrics-compared",
        "Does the ranking depend on the metric?",
        tuple(blocks),
        nav_title="Metrics compared",
    )


def _rank_change_table(display: RankingChangeDisplay, caption: str) -> doc.Table:
    """Return a table of the ranks of each method by two metrics."""
    columns = (
        doc.METHOD_COLUMN,
        doc.number_column(f"Rank by {metric_title(display.first)}"),
        doc.number_column(f"Rank by {metric_title(display.second)}"),
    )
    rows = []
    for method, ranks in display.ranks.items():
        cells: list[doc.Cell] = [method]
        cells += [doc.Number(rank, number_format="rank") for rank in ranks]
        rows.append(cells)
    return doc.Table(columns, doc.single_group(rows), caption=caption)


def _tau_table(comparison: Comparison) -> doc.Table:
    """Return a table of Kendall's tau between the rankings by each pair of metrics."""
    level = format_percent(comparison.level)
    overall_name = f"all {comparison.block_kind}"
    rows = []
    for agreement in comparison.agreements:
        data_name = overall_name
        if agreement.data is not None:
            data_name = split_name(agreement.data) or "all samples"
        titles = (metric_title(agreement.first), metric_title(agreement.second))
        tau_cells = _tau_cells(agreement.tau, agreement.low, agreement.high)
        rows.append((*titles, data_name, *tau_cells))
    return doc.Table(
        (
            doc.Column("Metric"),
            doc.Column("Metric"),
            doc.Column("Data", "name"),
            doc.number_column("tau"),
            doc.interval_column(f"{level} range"),
        ),
        doc.single_group(rows),
        title="Kendall's tau",
        caption=(
            "Kendall's tau of two rankings: 1 for the same order, −1 for the reverse order. The "
            f"range contains {level} of the values in simulated studies of this size, "
            f"{SIMULATION_ASSUMPTION}."
        ),
        is_sortable=True,
    )


def stability_table(comparison: Comparison) -> Iterator[doc.Collapsible]:
    """Yield a table of the similarity of the rankings of resamples, if it was computed."""
    if not comparison.stability:
        return
    rows = []
    for stability in comparison.stability:
        data_name = split_name(stability.data) if stability.data else "all samples"
        tau_cells = _tau_cells(stability.mean_tau, stability.low, stability.high)
        rows.append((metric_title(stability.metric), data_name, *tau_cells))
    columns = (
        doc.Column("Metric"),
        doc.Column("Data", "name"),
        doc.number_column("Mean tau"),
        doc.interval_column("Range"),
    )
    caption = "Kendall's tau between the rankings of pairs of resamples; 1 if all resamples agree"
    table = doc.Table(columns, doc.single_group(rows), caption=caption)
    yield doc.Collapsible("Similarity of the rankings of resamples", (table,))


def _tau_cells(value: float, low: float, high: float) -> tuple[doc.Number, doc.Range]:
    """Return Kendall's tau without rounding errors, with its range."""
    return (
        doc.Number(round(value, 12), number_format="two_decimals"),
        doc.Range(low, high, number_format="two_decimals"),
    )
