"""First screen of an evaluation, with the title, key numbers, key table and key figure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal

from abstain.evaluation.records import Result, ScoreCurves
from abstain.metrics import metric_named
from abstain.metrics.catalogue import CLASSIFIER_METRIC
from abstain.plots.formatting import format_percent, metric_title
from abstain.report import document as doc
from abstain.report.formatting import (
    decimals_of_intervals,
    format_count,
    format_fixed,
    format_fixed_interval,
    narrow_title,
    short_title,
)
from abstain.report.subjects.evaluation.figures import MARKED_COVERAGE, max_risk, risk_line
from abstain.report.subjects.evaluation.lookup import ResultLookup
from abstain.typing import Split

#: Maximum number of rows of the key table. The table of all scores contains all rows.
MAX_KEY_ROWS: Final = 12
#: Number of curves that are visible initially, and maximum number of curves of the key figure.
_N_VISIBLE_CURVES: Final = 3
_MAX_CURVES: Final = 32
#: Coverages of the table of wrong answers.
_COVERAGES: Final = (1.0, 0.9, 0.8, 0.7, 0.5)
#: Decimals of a percentage without interval.
_PERCENT_DECIMALS: Final = 1


# --------------------------------------------------------------------------------------- numbers
@dataclass(frozen=True)
class FixedFormat:
    """Format of one metric, with the same number of decimals for all values."""

    decimals: int
    is_percent: bool

    @classmethod
    def of(cls, results: Iterable[Result | None], *, is_binary: bool) -> "FixedFormat":
        """Return the format for the results of one metric, which depends on their intervals."""
        available = [result for result in results if result is not None]
        is_percent = any(is_share(result.metric.name, is_binary=is_binary) for result in available)
        scale = 100 if is_percent else 1
        intervals = []
        for result in available:
            interval = result.interval
            if interval.exists and interval.high > interval.low:
                intervals.append((scale * interval.low, scale * interval.high))
        if is_percent and not intervals:
            return cls(_PERCENT_DECIMALS, is_percent=True)
        return cls(decimals_of_intervals(intervals), is_percent)

    def value(self, value: float, *, is_signed: bool = False) -> str:
        """Format a value."""
        scale, unit = (100, "%") if self.is_percent else (1, "")
        return f"{format_fixed(scale * value, self.decimals, is_signed=is_signed)}{unit}"

    def interval(self, low: float, high: float) -> str:
        """Format an interval, or return an empty string if it has no bounds."""
        scale, unit = (100, "%") if self.is_percent else (1, "")
        text = format_fixed_interval(scale * low, scale * high, self.decimals)
        return f"{text}{unit}" if text else ""

    def cell(self, result: Result | None, *, is_best: bool = False) -> doc.Number | None:
        """Return a result as a table cell, with the interval in a small font."""
        if result is None:
            return None
        if result.reason:
            return doc.Number(doc.NAN, reason=result.reason)
        return doc.Number(
            result.value,
            display_text=self.value(result.value),
            small_text=self.interval(result.interval.low, result.interval.high),
            mark="best" if is_best else "",
        )


def is_share(metric: str, *, is_binary: bool) -> bool:
    """Return whether the values of a metric are printed as percentages."""
    if metric.startswith("coverage@") or metric == CLASSIFIER_METRIC:
        return True
    return is_binary and metric.startswith("selective_risk@")


def column_title(metric: str, lookup: ResultLookup) -> doc.Label:
    """Return the column header of a metric in the key tables."""
    result = next(r for r in lookup.results.values() if r.metric.name == metric)
    direction: Literal["lower", "higher"] = "lower" if result.metric.lower_is_better else "higher"
    coverage = metric_named(metric).measurement.at_coverage
    if coverage is not None and is_share(metric, is_binary=lookup.evaluation.is_binary):
        text = f"Wrong at {format_percent(coverage)} coverage"
        return doc.Label(text, short_text=f"Wrong at {format_percent(coverage)} cov.")
    return doc.Label(
        short_title(metric),
        "" if metric == CLASSIFIER_METRIC else direction,
        short_text=narrow_title(metric),
        tooltip=f"{direction} is better",
    )


# ----------------------------------------------------------------------------------------- title
def evaluation_title(lookup: ResultLookup) -> str:
    """Return the title of the report, which contains the numbers of splits and scores."""
    n_scores = len(lookup.scores)
    scores = f"{n_scores} confidence score{'s' if n_scores > 1 else ''}"
    if n_scores == 1:
        scores = f"confidence score {lookup.scores[0]}"
    if not lookup.has_several_splits:
        return f"Evaluation: {scores}" if n_scores else "Evaluation"
    return f"Evaluation: {count_splits(lookup)}, {scores}"


def count_splits(lookup: ResultLookup) -> str:
    """Return the number of splits with their noun, such as "3 models" or "4 values of site"."""
    n, noun = len(lookup.splits), lookup.split_noun
    return f"{n} {noun}s" if noun in {"model", "split"} else f"{n} values of {noun}"


def evaluation_context(lookup: ResultLookup, source: str) -> Iterator[str]:
    """Yield the numbers of samples and classes, and the source of the data."""
    n_by_split = {result.split: result.n for result in lookup.evaluation.results}
    n_by_split |= {case.split: case.n for case in lookup.evaluation.curves}
    split_sizes = sorted(set(n_by_split.values()))
    if len(split_sizes) == 1:
        each = " each" if lookup.has_several_splits and not lookup.models_are_compared else ""
        samples = f"{format_count(split_sizes[0])} samples{each}"
        n_classes = lookup.evaluation.n_classes
        yield f"{samples}, {n_classes} classes" if n_classes else samples
    elif split_sizes:
        smallest = format_count(split_sizes[0])
        largest = format_count(split_sizes[-1])
        yield f"{smallest} to {largest} samples per {lookup.split_noun}"
    if source:
        yield source


# ----------------------------------------------------------------------------------- key numbers
def key_numbers(lookup: ResultLookup) -> Iterator[doc.KeyNumber]:
    """Yield the accuracy, the key metric, the selective risk and the coverage of the best score."""
    best = lookup.best
    if best is None:
        return
    owner = f" of {lookup.split_labels[best.split]}" if lookup.has_several_splits else ""
    risks = [name for name in lookup.headline_metrics if name.startswith("selective_risk@")]
    coverages = [name for name in lookup.headline_metrics if name.startswith("coverage@")]
    selected = dict.fromkeys((CLASSIFIER_METRIC, lookup.key_metric, *risks, *coverages))
    if len(lookup.scores) == 1:
        selected["ece"] = None
    for name in selected:
        result = lookup.results.get((best.split, best.score, name))
        if result is not None and not result.reason:
            yield _key_number(result, owner, lookup)


def _key_number(result: Result, owner: str, lookup: ResultLookup) -> doc.KeyNumber:
    """Return a result as a key number, with a label that names the split."""
    is_binary = lookup.evaluation.is_binary
    number_format = FixedFormat.of([result], is_binary=is_binary)
    interval = number_format.interval(result.interval.low, result.interval.high)
    name = result.metric.name
    label = f"{metric_title(name)}{owner}"
    count = ""
    if name == CLASSIFIER_METRIC:
        count = _format_ratio(result.count_of(result.n), result.n)
    elif name.startswith("coverage@") and is_binary:
        label = metric_title(name).replace(" risk", " wrong answers")
        count = _format_ratio(result.accepted, result.n)
    elif name.startswith("selective_risk@") and is_binary and result.accepted:
        coverage = format_percent(result.metric.measurement.at_coverage or 0)
        label = f"Wrong answers at {coverage} coverage"
        count = _format_ratio(result.count_of(result.accepted), result.accepted)
    else:
        label += ", lower is better" if result.metric.lower_is_better else ""
        interval = f"{lookup.level} interval {interval}" if interval else ""
    detail = " · ".join(filter(None, (count, interval)))
    return doc.KeyNumber(label, number_format.value(result.value), detail)


def _format_ratio(count: float | None, total: int) -> str:
    return "" if count is None else f"{format_count(count)} of {format_count(total)}"


# ------------------------------------------------------------------------------------ key tables
def overview_blocks(lookup: ResultLookup, role: doc.Role = "key") -> Iterator[doc.Block]:
    """Yield the main table and the main figure side by side."""
    tables = tuple(_key_tables(lookup))
    if tables and lookup.cases:
        # The figure is only for pages.
        figure = doc.DeferredBlocks(lambda: _key_figure(lookup), role="interactive")
        yield doc.Box((doc.Box(tables, "stack"), doc.Box((figure,))), "overview", role=role)
    elif tables:
        yield doc.Box(tables, role=role)


def _key_tables(lookup: ResultLookup) -> Iterator[doc.Table]:
    """Yield the tables of the first screen, which depend on the numbers of scores and splits."""
    if lookup.best is None:
        return
    if lookup.has_several_splits:
        yield _split_table(lookup)
        yield from _coverage_table(lookup)
    elif len(lookup.scores) > 1:
        yield score_table(lookup, lookup.splits[0])
    else:
        yield _metric_table(lookup)
        yield from _threshold_table(lookup)


def _intervals_hint(lookup: ResultLookup) -> tuple[str | doc.Span, ...]:
    level = lookup.level
    return (doc.Span(f" {level} intervals below the values", "small"),) if level else ()


def _split_table(lookup: ResultLookup) -> doc.Table:
    """Return a table of the best score of each split."""
    ranked = list(lookup.best_results.values())
    best_results = ranked[:MAX_KEY_ROWS]
    reference = ranked[0]
    key = lookup.key_metric
    metrics = [name for name in dict.fromkeys((CLASSIFIER_METRIC, key)) if name in lookup.metrics]
    formats = {}
    for name in metrics:
        column = [lookup.results.get((best.split, best.score, name)) for best in best_results]
        formats[name] = FixedFormat.of(column, is_binary=lookup.evaluation.is_binary)
    has_several_scores = len(lookup.scores) > 1
    has_tests = lookup.models_are_compared
    rows = []
    for best in best_results:
        label = doc.Label(
            lookup.split_labels[best.split],
            note=best.score if has_several_scores else "",
            line=lookup.split_index[best.split],
        )
        cells: list[doc.Cell] = [label]
        if not has_tests:
            cells.append(doc.Number(best.n, number_format="count"))
        for name in metrics:
            result = lookup.results.get((best.split, best.score, name))
            is_best = has_tests and name == key and lookup.is_among_best(best, reference)
            cells.append(formats[name].cell(result, is_best=is_best))
        if has_tests:
            cells += difference_cells(lookup, best, reference, formats[key])
        rows.append(doc.Row(tuple(cells)))
    noun = lookup.split_noun
    header = doc.Label(
        noun.capitalize() if noun in {"model", "split"} else noun,
        note="best score" if has_several_scores else "",
    )
    columns = [doc.Column(header, "name")]
    if not has_tests:
        columns.append(doc.number_column("Samples"))
    columns += [doc.number_column(column_title(name, lookup)) for name in metrics]
    if has_tests:
        columns += difference_columns(lookup.split_labels[reference.split])
    title = f"Best score of each {noun}" if has_several_scores else f"Each {noun}"
    n_more = len(ranked) - len(rows)
    return doc.Table(
        tuple(columns),
        doc.single_group(rows),
        title=title,
        caption=(title, *_intervals_hint(lookup)),
        anchor="best-scores",
        layout="key paired" if has_tests else "key",
        footer=f"{n_more} more in the table of all scores" if n_more > 0 else "",
    )


def difference_columns(reference: str) -> tuple[doc.Column, doc.Column]:
    """Return the columns for the difference from a reference and for its p-value."""
    return (
        doc.number_column(doc.Label(f"Difference from {reference}", short_text="Difference")),
        doc.number_column(doc.Label("Adjusted p-value", short_text="Adj. p")),
    )


def difference_cells(
    lookup: ResultLookup, result: Result, reference: Result, number_format: FixedFormat
) -> tuple[doc.Cell, doc.Cell]:
    """Return cells with the difference of a result from the reference and the adjusted p-value."""
    if (result.split, result.score) == (reference.split, reference.score):
        return "reference", ""
    difference = lookup.difference(result.split, result.score, reference)
    if difference is None:
        return None, None
    cell = doc.Number(
        difference.difference,
        display_text=number_format.value(difference.difference, is_signed=True),
        small_text=number_format.interval(difference.low, difference.high),
    )
    return cell, doc.Number(difference.adjusted, number_format="p_value")


def score_table(lookup: ResultLookup, split: Split) -> doc.Table:
    """Return a table of the scores of a split. Scores with equal rankings share a row."""
    key = lookup.key_metric
    rankings = lookup.ranked_scores(split)
    displayed = rankings[:MAX_KEY_ROWS]
    metrics = score_table_metrics(lookup)
    formats = {}
    for name in metrics:
        column = [lookup.results.get((split, group[0], name)) for group in displayed]
        formats[name] = FixedFormat.of(column, is_binary=lookup.evaluation.is_binary)
    reference = lookup.best_results[split]
    has_tests = lookup.evaluation.tests is not None
    rows = []
    for group in displayed:
        score = group[0]
        key_result = lookup.results[split, score, key]
        cells: list[doc.Cell] = [doc.Label(", ".join(group), line=lookup.score_index[score])]
        for name in metrics:
            is_best = has_tests and name == key and lookup.is_among_best(key_result, reference)
            cell = formats[name].cell(lookup.results.get((split, score, name)), is_best=is_best)
            if name != key and cell is not None:
                cell = replace(cell, small_text="")
            cells.append(cell)
        if has_tests:
            cells += difference_cells(lookup, key_result, reference, formats[key])
        rows.append(doc.Row(tuple(cells)))
    columns = [doc.Column("Score", "name")]
    columns += [doc.number_column(column_title(name, lookup)) for name in metrics]
    if has_tests:
        columns += difference_columns(reference.score)
    n_more = len(rankings) - len(displayed)
    return doc.Table(
        tuple(columns),
        doc.single_group(rows),
        title="Scores, best first",
        caption=("Scores, best first", *_intervals_hint(lookup)),
        anchor="best-scores",
        layout="key paired" if has_tests else "key",
        footer=f"{n_more} more in the table of all metrics" if n_more > 0 else "",
    )


def score_table_metrics(lookup: ResultLookup) -> list[str]:
    """Return the metrics of a table: accuracy, the key metric, and selective risks or the ECE."""
    further = [name for name in lookup.headline_metrics if name.startswith("selective_risk@")]
    # In data without classes, the confidences usually are stated probabilities.
    if lookup.evaluation.n_classes == 0 and "ece" in lookup.metrics:
        further = ["ece"]
    metrics = dict.fromkeys((CLASSIFIER_METRIC, lookup.key_metric, *further))
    return [name for name in metrics if name in lookup.metrics]


def _metric_table(lookup: ResultLookup) -> doc.Table:
    """Return a table of the headline metrics of the only score."""
    split, score = lookup.splits[0], lookup.scores[0]
    rows: list[tuple[doc.Cell, ...]] = []
    has_intervals = False
    for name in lookup.headline_metrics or lookup.metrics[:MAX_KEY_ROWS]:
        result = lookup.results.get((split, score, name))
        if result is None:
            continue
        number_format = FixedFormat.of([result], is_binary=lookup.evaluation.is_binary)
        cell = number_format.cell(result)
        interval = cell.small_text if cell else ""
        number = cell and replace(cell, small_text="")
        rows.append((column_title(name, lookup), number, interval))
        has_intervals = has_intervals or bool(interval)
    answered = lookup.evaluation.answered
    if answered:
        # The accuracy comes first.
        rows.insert(1, ("Answered", _format_ratio(answered.n, answered.n_total), ""))
    columns = [doc.Column("Metric"), doc.number_column("Value")]
    if has_intervals:
        columns.append(doc.interval_column(f"{lookup.level} interval"))
    return doc.Table(
        tuple(columns),
        doc.single_group(row[: len(columns)] for row in rows),
        title="Main metrics",
        caption="Main metrics",
        anchor="best-scores",
        layout="key",
    )


def _threshold_table(lookup: ResultLookup) -> Iterator[doc.Table]:
    """Yield a table of the thresholds of the only score at several coverages."""
    case = lookup.cases.get((lookup.splits[0], lookup.scores[0]))
    if case is None:
        return
    is_binary = lookup.evaluation.is_binary
    has_probability = case.probabilities is not None
    headers = ["Confidence at least", "Answered"]
    if has_probability:
        headers = ["Probability at least", "Score at least", "Answered"]
    headers += ["Wrong", "Share wrong"] if is_binary else ["Loss", "Mean loss"]
    rows = []
    for coverage in _COVERAGES:
        point = case.point_at(coverage)
        cells: list[doc.Cell] = [format_percent(coverage)]
        if has_probability:
            cells.append(doc.Number(point.probability, number_format="six_digits"))
        risk_text = f"{format_fixed(100 * point.risk, 1)}%" if is_binary else ""
        cells += [
            doc.Number(point.threshold, number_format="six_digits"),
            doc.Number(point.accepted, number_format="count"),
            doc.Number(point.failures, number_format="count" if is_binary else "number"),
            doc.Number(point.risk, display_text=risk_text),
        ]
        rows.append(doc.Row(tuple(cells)))
    yield doc.Table(
        (doc.Column("Coverage"), *map(doc.number_column, headers)),
        doc.single_group(rows),
        title="Thresholds by coverage",
        caption="Thresholds by coverage",
        anchor="thresholds",
        layout="key",
        role="detail",
    )


def _coverage_table(lookup: ResultLookup) -> Iterator[doc.Table]:
    """Yield a table of the risk of the best score of each split at several coverages."""
    is_binary = lookup.evaluation.is_binary
    rows = []
    for best in list(lookup.best_results.values())[:MAX_KEY_ROWS]:
        case = lookup.cases.get((best.split, best.score))
        if case is not None:
            label = doc.Label(lookup.split_labels[best.split], line=lookup.split_index[best.split])
            rows.append(doc.Row((label, *_risks(case, is_binary=is_binary))))
    if rows:
        headers = [format_percent(coverage) for coverage in _COVERAGES]
        title = "Wrong answers by coverage" if is_binary else "Mean loss by coverage"
        yield doc.Table(
            (doc.Column("Coverage", "name"), *map(doc.number_column, headers)),
            doc.single_group(rows),
            title=title,
            caption=title,
            anchor="risk-by-coverage",
            layout="key",
            role="detail",
        )


def _risks(case: ScoreCurves, *, is_binary: bool) -> Iterator[doc.Number]:
    for coverage in _COVERAGES:
        risk = case.point_at(coverage).risk
        text = f"{format_fixed(100 * risk, _PERCENT_DECIMALS)}%" if is_binary else ""
        yield doc.Number(risk, display_text=text)


# ------------------------------------------------------------------------------------ key figure
def _key_figure(lookup: ResultLookup) -> Iterator[doc.Block]:
    """Yield the chart of the risk-coverage curves, and buttons that show or hide curves."""
    lines: dict[str, doc.ChartLine] = {}
    for name, index, case in _key_cases(lookup):
        if len(lines) < _MAX_CURVES:
            lines[name] = risk_line(case.selective, index)
    if not lines:
        return
    visible = _visible_names(lookup, list(lines))
    is_binary = lookup.evaluation.is_binary
    title = "Wrong answers against coverage" if is_binary else "Mean loss against coverage"
    lead = f"Best score of each {lookup.split_noun}. " if lookup.has_several_splits else ""
    coverage = format_percent(MARKED_COVERAGE)
    yield doc.LineChart(
        "key-curves",
        title,
        tuple(lines.values()),
        "Coverage: share of samples answered",
        max_risk([lines[name] for name in visible]),
        f"{lead}Dots mark {coverage} coverage. Lower curves are better.",
        is_percent=is_binary,
        marked_x=MARKED_COVERAGE,
    )
    if len(lines) > 1:
        options = [
            doc.line_option(line.index, name, is_selected=name in visible)
            for name, line in lines.items()
        ]
        choice = doc.Choice("method", "Curves", tuple(options), is_multiple=True)
        yield doc.Controls((choice,), "Curves of the figure", role="interactive")


def _key_cases(lookup: ResultLookup) -> Iterator[tuple[str, int, ScoreCurves]]:
    """Yield the name, color index and curves of each line, starting with the best score."""
    if lookup.has_several_splits:
        for best in lookup.best_results.values():
            case = lookup.cases.get((best.split, best.score))
            if case is not None:
                yield lookup.split_labels[best.split], lookup.split_index[best.split], case
        return
    for split in lookup.splits:
        for group in lookup.ranked_scores(split) if lookup.key_metric else ():
            case = lookup.cases.get((split, group[0]))
            if case is not None:
                yield ", ".join(group), lookup.score_index[group[0]], case


#: Scores that serve as the baseline of the key figure, in order of preference.
_BASELINES: Final = ("msr", "confidence")


def _visible_names(lookup: ResultLookup, names: list[str]) -> list[str]:
    """Return the names of the curves that are visible before the reader selects others.

    These are the best curves and the baseline.
    """
    visible = names[:_N_VISIBLE_CURVES]
    baseline = [name for name in names if set(name.split(", ")) & set(_BASELINES)]
    if not lookup.has_several_splits and baseline and baseline[0] not in visible:
        visible[-1] = baseline[0]
    return visible
