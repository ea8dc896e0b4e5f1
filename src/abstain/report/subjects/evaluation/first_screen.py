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
    """Format of the values of one metric with the same number of decimals."""

    decimals: int
    is_percent: bool

    @classmethod
    def of(cls, results: Iterable[Result | None], *, is_binary: bool) -> "FixedFormat":
        """Return the format for some results of one metric, with decimals from the intervals."""
        available = [result for result in results if result is not None]
        is_percent = any(is_share(result.metric.name, is_binary=is_binary) for result in available)
        scale = 100 if is_percent else 1
        intervals = [
            (scale * r.interval.low, scale * r.interval.high)
            for r in available
            if r.interval.exists and r.interval.high > r.interval.low
        ]
        if is_percent and not intervals:
            return cls(_PERCENT_DECIMALS, is_percent=True)
        return cls(decimals_of_intervals(intervals), is_percent)

    def value(self, value: float, *, is_signed: bool = False) -> str:
        """Format a value."""
        scale, unit = (100, "%") if self.is_percent else (1, "")
        return f"{format_fixed(scale * value, self.decimals, is_signed=is_signed)}{unit}"

    def interval(self, low: float, high: float) -> str:
        """Format an interval, or return an empty string without bounds."""
        scale, unit = (100, "%") if self.is_percent else (1, "")
        text = format_fixed_interval(scale * low, scale * high, self.decimals)
        return f"{text}{unit}" if text else ""

    def cell(self, result: Result | None, *, is_best: bool = False) -> doc.Number | None:
        """Return a result as a cell, with the interval in a small font."""
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
    """Return whether a metric is a share, which is printed as a percentage."""
    if metric.startswith("coverage@") or metric == CLASSIFIER_METRIC:
        return True
    return is_binary and metric.startswith("selective_risk@")


def column_title(metric: str, lookup: ResultLookup) -> doc.Label:
    """Return the header of a metric in the key tables."""
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
    """Return the title with the numbers of splits and scores."""
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
    counts = {result.split: result.n for result in lookup.evaluation.results}
    counts |= {case.split: case.n for case in lookup.evaluation.curves}
    if len(set(counts.values())) == 1:
        each = " each" if lookup.has_several_splits and not lookup.models_are_compared else ""
        samples = f"{format_count(next(iter(counts.values())))} samples{each}"
        n_classes = lookup.evaluation.n_classes
        yield f"{samples}, {n_classes} classes" if n_classes else samples
    elif counts:
        sizes = sorted(counts.values())
        smallest, largest = format_count(sizes[0]), format_count(sizes[-1])
        yield f"{smallest} to {largest} samples per {lookup.split_noun}"
    if source:
        yield source


# ----------------------------------------------------------------------------------- key numbers
def key_numbers(lookup: ResultLookup) -> Iterator[doc.KeyNumber]:
    """Yield the accuracy, key metric, selective risk and coverage of the best score."""
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
    """Return a result as a key number, with the name of its score or split."""
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
    """Yield the key table beside the key figure."""
    tables = tuple(_key_tables(lookup))
    if tables and lookup.cases:
        # The figure is only for pages.
        figure = doc.DeferredBlocks(lambda: _key_figure(lookup), role="interactive")
        yield doc.Box((doc.Box(tables, "stack"), doc.Box((figure,))), "overview", role=role)
    elif tables:
        yield doc.Box(tables, role=role)


def _key_tables(lookup: ResultLookup) -> Iterator[doc.Table]:
    """Yield the key tables for one or several scores and splits."""
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
    """Return a table with a row for each split and its best score."""
    ranked = list(lookup.best_results.values())
    rows_results = ranked[:MAX_KEY_ROWS]
    reference = ranked[0]
    metrics = [m for m in (CLASSIFIER_METRIC, lookup.key_metric) if m in lookup.metrics]
    metrics = list(dict.fromkeys(metrics))
    results = {
        name: [lookup.results.get((r.split, r.score, name)) for r in rows_results]
        for name in metrics
    }
    formats = {
        name: FixedFormat.of(column, is_binary=lookup.evaluation.is_binary)
        for name, column in results.items()
    }
    tests = lookup.models_are_compared
    rows = []
    for i, best in enumerate(rows_results):
        label = doc.Label(
            lookup.split_labels[best.split],
            note=best.score if len(lookup.scores) > 1 else "",
            line=lookup.split_index[best.split],
        )
        cells: list[doc.Cell] = [label]
        if not tests:
            cells.append(doc.Number(best.n, number_format="count"))
        cells += [
            formats[name].cell(
                results[name][i],
                is_best=tests
                and name == lookup.key_metric
                and lookup.is_among_best(best, reference),
            )
            for name in metrics
        ]
        if tests:
            cells += difference_cells(lookup, best, reference, formats[lookup.key_metric])
        rows.append(doc.Row(tuple(cells)))
    noun = lookup.split_noun
    header = doc.Label(
        noun.capitalize() if noun in {"model", "split"} else noun,
        note="best score" if len(lookup.scores) > 1 else "",
    )
    reference_name = lookup.split_labels[reference.split]
    title = f"Best score of each {noun}" if len(lookup.scores) > 1 else f"Each {noun}"
    n_more = len(ranked) - len(rows)
    return doc.Table(
        (
            doc.Column(header, "name"),
            *(() if tests else (doc.number_column("Samples"),)),
            *(doc.number_column(column_title(name, lookup)) for name in metrics),
            *(difference_columns(reference_name) if tests else ()),
        ),
        doc.single_group(rows),
        title=title,
        caption=(title, *_intervals_hint(lookup)),
        anchor="best-scores",
        layout="key paired" if tests else "key",
        footer=f"{n_more} more in the table of all scores" if n_more > 0 else "",
    )


def difference_columns(reference: str) -> tuple[doc.Column, doc.Column]:
    """Return the columns of the difference from a reference and of its p-value."""
    return (
        doc.number_column(doc.Label(f"Difference from {reference}", short_text="Difference")),
        doc.number_column(doc.Label("Adjusted p-value", short_text="Adj. p")),
    )


def difference_cells(
    lookup: ResultLookup, result: Result, reference: Result, number_format: FixedFormat
) -> tuple[doc.Cell, doc.Cell]:
    """Return the difference of a result from the reference, and its adjusted p-value."""
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
    """Return the scores of a split, where scores with equal rankings share a row."""
    key = lookup.key_metric
    rankings = lookup.ranked_scores(split)
    shown = rankings[:MAX_KEY_ROWS]
    names = [
        name
        for name in dict.fromkeys((CLASSIFIER_METRIC, key, *lookup.headline_metrics))
        if name in {CLASSIFIER_METRIC, key} or name.startswith(("selective_risk@", "coverage@"))
        if name in lookup.metrics
    ]
    names = [name for name in names if not name.startswith("coverage@")]
    # In data without classes, the confidences usually are stated probabilities.
    if lookup.evaluation.n_classes == 0 and "ece" in lookup.metrics:
        names = [*(name for name in names if not name.startswith("selective_risk@")), "ece"]
    formats = {
        name: FixedFormat.of(
            (lookup.results.get((split, group[0], name)) for group in shown),
            is_binary=lookup.evaluation.is_binary,
        )
        for name in names
    }
    reference = lookup.best_results[split]
    has_tests = lookup.evaluation.tests is not None
    rows = []
    for group in shown:
        cells: list[doc.Cell] = [
            doc.Label(", ".join(group), line=lookup.score_index[group[0]]),
        ]
        result = lookup.results[split, group[0], key]
        for name in names:
            is_best = has_tests and name == key and lookup.is_among_best(result, reference)
            cell = formats[name].cell(lookup.results.get((split, group[0], name)), is_best=is_best)
            cells.append(cell if name == key or cell is None else _without_small_text(cell))
        if has_tests:
            cells += difference_cells(lookup, result, reference, formats[key])
        rows.append(doc.Row(tuple(cells)))
    n_more = len(rankings) - len(shown)
    return doc.Table(
        (
            doc.Column("Score", "name"),
            *(doc.number_column(column_title(name, lookup)) for name in names),
            *(difference_columns(reference.score) if has_tests else ()),
        ),
        doc.single_group(rows),
        title="Scores, best first",
        caption=("Scores, best first", *_intervals_hint(lookup)),
        anchor="best-scores",
        layout="key paired" if has_tests else "key",
        footer=f"{n_more} more in the table of all metrics" if n_more > 0 else "",
    )


def _without_small_text(cell: doc.Number) -> doc.Number:
    return replace(cell, small_text="")


def _metric_table(lookup: ResultLookup) -> doc.Table:
    """Return the headline metrics of the only score, with a row for each metric."""
    split, score = lookup.splits[0], lookup.scores[0]
    rows: list[tuple[doc.Cell, ...]] = []
    if answered := lookup.evaluation.answered:
        count = _format_ratio(answered.n, answered.n_total)
        rows.append(("Answered", count, ""))
    for name in lookup.headline_metrics or lookup.metrics[:MAX_KEY_ROWS]:
        result = lookup.results.get((split, score, name))
        if result is not None:
            number_format = FixedFormat.of([result], is_binary=lookup.evaluation.is_binary)
            cell = number_format.cell(result)
            interval = cell.small_text if cell else ""
            number = cell and replace(cell, small_text="")
            rows.append((column_title(name, lookup), number, interval))
    level = lookup.level
    has_intervals = any(row[2] for row in rows)
    return doc.Table(
        (
            doc.Column("Metric"),
            doc.number_column("Value"),
            *([doc.interval_column(f"{level} interval")] if has_intervals else []),
        ),
        doc.single_group(row if has_intervals else row[:2] for row in rows),
        title="Main metrics",
        caption="Main metrics",
        anchor="best-scores",
        layout="key",
    )


def _threshold_table(lookup: ResultLookup) -> Iterator[doc.Table]:
    """Yield the thresholds of the only score at some coverages, if there are curves."""
    case = lookup.cases.get((lookup.splits[0], lookup.scores[0]))
    if case is None:
        return
    is_binary = lookup.evaluation.is_binary
    has_probability = case.probabilities is not None
    rows = []
    for coverage in _COVERAGES:
        point = case.point_at(coverage)
        risk = doc.Number(point.risk)
        if is_binary:
            risk = replace(risk, display_text=f"{format_fixed(100 * point.risk, 1)}%")
        probability = doc.Number(point.probability, number_format="six_digits")
        rows.append(
            doc.Row(
                (
                    format_percent(coverage),
                    *([probability] if has_probability else []),
                    doc.Number(point.threshold, number_format="six_digits"),
                    doc.Number(point.accepted, number_format="count"),
                    doc.Number(point.failures, number_format="count" if is_binary else "number"),
                    risk,
                )
            )
        )
    threshold = "Confidence at least" if not has_probability else "Score at least"
    yield doc.Table(
        (
            doc.Column("Coverage"),
            *([doc.number_column("Probability at least")] if has_probability else []),
            doc.number_column(threshold),
            doc.number_column("Answered"),
            doc.number_column("Wrong" if is_binary else "Loss"),
            doc.number_column("Share wrong" if is_binary else "Mean loss"),
        ),
        doc.single_group(rows),
        title="Thresholds by coverage",
        caption="Thresholds by coverage",
        anchor="thresholds",
        layout="key",
        role="detail",
    )


def _coverage_table(lookup: ResultLookup) -> Iterator[doc.Table]:
    """Yield the risk of the best score of each split at some coverages, if available."""
    rows = []
    for best in [*lookup.best_results.values()][:MAX_KEY_ROWS]:
        case = lookup.cases.get((best.split, best.score))
        if case is not None:
            label = doc.Label(lookup.split_labels[best.split], line=lookup.split_index[best.split])
            rows.append(doc.Row((label, *_risks(case, is_binary=lookup.evaluation.is_binary))))
    if rows:
        title = (
            "Wrong answers by coverage" if lookup.evaluation.is_binary else "Mean loss by coverage"
        )
        yield doc.Table(
            (
                doc.Column("Coverage", "name"),
                *(doc.number_column(format_percent(coverage)) for coverage in _COVERAGES),
            ),
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
    """Yield the curves of the best or of all scores, with buttons that show or hide them."""
    cases = list(_key_cases(lookup))[:_MAX_CURVES]
    if not cases:
        return
    names = [name for name, _, _ in cases]
    visible = _visible_names(lookup, names)
    zero_one = lookup.evaluation.is_binary
    lines = {name: risk_line(case.selective, index) for name, index, case in cases}
    title = "Wrong answers against coverage" if zero_one else "Mean loss against coverage"
    lead = f"Best score of each {lookup.split_noun}. " if lookup.has_several_splits else ""
    coverage = format_percent(MARKED_COVERAGE)
    yield doc.LineChart(
        "key-curves",
        title,
        tuple(lines.values()),
        "Coverage: share of samples answered",
        max_risk([lines[name] for name in visible]),
        f"{lead}Dots mark {coverage} coverage. Lower curves are better.",
        is_percent=zero_one,
        marked_x=MARKED_COVERAGE,
    )
    if len(names) > 1:
        options = tuple(
            doc.line_option(index, name, is_selected=name in visible) for name, index, _ in cases
        )
        choice = doc.Choice("method", "Curves", options, is_multiple=True)
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
    """Return the names of the best curves and the baseline, which are visible initially."""
    visible = names[:_N_VISIBLE_CURVES]
    baseline = [name for name in names if set(name.split(", ")) & set(_BASELINES)]
    if not lookup.has_several_splits and baseline and baseline[0] not in visible:
        visible[-1] = baseline[0]
    return visible
