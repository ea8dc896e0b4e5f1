"""Report of an evaluation, with its sections, charts and glossary."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from abstain._foundation.arrays import to_numpy
from abstain._foundation.notes import Note
from abstain.curves.risk_coverage import thin
from abstain.evaluation.records import Evaluation, Result, ScoreCurves
from abstain.metrics import metric_named
from abstain.plots import Series, SeriesDisplay
from abstain.plots.formatting import capitalize_first, format_percent
from abstain.report import document as doc
from abstain.report.formatting import (
    build_remarks,
    format_count,
    join_first,
    loss_label,
    metric_meaning,
    unique,
)
from abstain.report.glossary import metric_entries, score_entries, skipped_metric_entries
from abstain.report.images import SampleImages
from abstain.report.subjects.evaluation import charts, tables
from abstain.report.subjects.evaluation.charts import chart_data
from abstain.report.subjects.evaluation.figures import MIN_BIN_COUNT, reliability_line
from abstain.report.subjects.evaluation.first_screen import (
    evaluation_context,
    evaluation_title,
    key_numbers,
    overview_blocks,
)
from abstain.report.subjects.evaluation.lookup import (
    ResultLookup,
    interval_note,
    metrics_by_interval_method,
    reasons_without_interval,
)
from abstain.report.subjects.evaluation.samples import SampleBrowser
from abstain.report.subjects.evaluation.verdict import evaluation_verdict
from abstain.tables import split_name

#: Maximum width of a column of names, in characters.
_MAX_NAME_WIDTH: Final = 14

#: Maximum number of requested metrics that a summary prints in columns.
_MAX_METRIC_COLUMNS: Final = 8

_BOLD_TEXT: Final = "Bold: the best, and what is not significantly different from it."

#: Maximum number of score names in the facts.
_MAX_SCORE_NAMES: Final = 6

#: Maximum number of curves, and of vertices per curve, in a notebook.
_MAX_CURVES: Final = 5
_MAX_VERTICES: Final = 200

#: Maximum number of scores with visible bands. More bands are hidden initially, because they
#: overlap.
_MAX_SCORES_WITH_BANDS: Final = 3


def evaluation_document(evaluation: Evaluation, options: doc.ReportOptions) -> doc.Document:
    """Build the report of an evaluation of confidence scores."""
    lookup = ResultLookup(evaluation)
    return doc.Document(
        options.title or evaluation_title(lookup),
        tuple(evaluation_context(lookup, options.source)),
        lambda: (
            doc.DeferredBlocks(lambda: _summary_blocks(lookup, options), role="summary"),
            doc.DeferredBlocks(lambda: _sections(lookup, options), role="detail"),
        ),
        answer=tuple(evaluation_verdict(lookup)),
        key_numbers=tuple(key_numbers(lookup)),
        overview=lambda: overview_blocks(
            lookup, "detail" if _prints_metrics(lookup, options) else "key"
        ),
        facts=tuple(_facts(lookup, options.source)),
        findings=build_remarks(tuple(_demote_warnings(lookup)), options.notes),
        command=options.command,
        citation_advice=_CITATION_ADVICE,
        chart_data=lambda: chart_data(lookup),
        is_complete=options.full,
        name_width=min(max(map(len, _names(lookup)), default=0), _MAX_NAME_WIDTH),
    )


def _names(lookup: ResultLookup) -> Iterator[str]:
    """Yield the names in the first columns of the key tables."""
    if lookup.has_several_splits:
        yield from lookup.split_labels.values()
    else:
        yield from map(", ".join, lookup.rankings)


def _demote_warnings(lookup: ResultLookup) -> Iterator[Note]:
    """Yield the notes. Warnings about scores that are not the best become plain notes.

    Such warnings do not change the interpretation of the main result. Warnings about scores that
    are columns of the data are not changed.
    """
    best_scores = {result.score for result in lookup.best_results.values()}
    important = best_scores | lookup.evaluation.column_scores | {""}
    for note in lookup.evaluation.notes:
        yield note if note.score in important else replace(note, level="note")


def _facts(lookup: ResultLookup, source: str) -> Iterator[tuple[str, str]]:
    """Yield the properties of the data and of the evaluation."""
    records: list[Result | ScoreCurves] = [*lookup.evaluation.results, *lookup.evaluation.curves]
    yield "Source", source
    # The counts of several splits are in the table of all metrics.
    if records and not lookup.has_several_splits:
        yield "Samples", format_count(records[0].n)
        yield "Failures (loss above 0)", format_count(records[0].failures)
    yield "Loss", loss_label(lookup.evaluation.loss)
    yield "Scores", join_first(lookup.scores, _MAX_SCORE_NAMES)
    if lookup.has_several_splits:
        columns = unique(column for split in lookup.splits for column, _ in split)
        yield "Splits", f"{len(lookup.splits)}, by {', '.join(columns)}"


def _prints_metrics(lookup: ResultLookup, options: doc.ReportOptions) -> bool:
    """Return whether a short report prints explanations of metrics instead of the key table."""
    return options.full or bool(lookup.evaluation.requested_metrics) or lookup.best is None


def _summary_blocks(lookup: ResultLookup, options: doc.ReportOptions) -> Iterator[doc.Block]:
    """Yield the requested metrics and one curve for a terminal."""
    has_requested_metrics = 0 < len(lookup.evaluation.requested_metrics) <= _MAX_METRIC_COLUMNS
    if has_requested_metrics and not options.full:
        yield tables.requested_table(lookup)
    elif _prints_metrics(lookup, options):
        yield from tables.explained_tables(lookup)
    text = "Arrows point to better values."
    if lookup.evaluation.tests is not None:
        text = f"{_BOLD_TEXT} {text}"
    full_hint = "" if options.full else " Pass --full to print all metrics."
    yield doc.SeeAlso(text, full_hint, " .frame() returns all numbers.", "notes")
    yield from _curve_figure(lookup)


def _curve_figure(lookup: ResultLookup) -> Iterator[doc.Figure]:
    """Yield a figure with the curves of the first scores on the first split."""
    split = lookup.splits[0] if lookup.splits else ()
    cases = [case for case in lookup.evaluation.curves if case.split == split]
    if not cases:
        return
    series = tuple(_curve_series(case) for case in cases[:_MAX_CURVES])
    display = SeriesDisplay(
        series, "Selective risk by coverage", "Coverage", "Selective risk", log_x=False
    )
    split_suffix = f" on {split_name(split)}" if lookup.has_several_splits else ""
    description = f"Selective risk (mean loss of the accepted samples) by coverage{split_suffix}"
    if len(cases) > _MAX_CURVES:
        description += f", for the first {_MAX_CURVES} of {len(cases)} scores"
    yield doc.Figure("curve", display.title, display, f"{description}.")


def _curve_series(case: ScoreCurves) -> Series:
    curve = thin(case.selective, vertices=_MAX_VERTICES)
    coverage = np.asarray(to_numpy(curve.coverage, "curve"), float)
    risk = np.asarray(to_numpy(curve.risk, "curve"), float)
    return Series(case.score, tuple(coverage.tolist()), tuple(risk.tolist()))


def _sections(lookup: ResultLookup, options: doc.ReportOptions) -> Iterator[doc.Block]:
    """Yield the sections of the HTML page, starting with those that are not collapsed."""
    if lookup.has_several_splits and len(lookup.scores) > 1 and lookup.key_metric:
        yield _all_scores_section(lookup)
    yield from _calibration_section(lookup)
    yield from tables.paper_table(lookup.evaluation, None, intervals=True)
    for title, section in _collapsed_sections(lookup, options):
        yield doc.Collapsible(
            title, section.blocks, anchor=section.anchor, style="end", role=section.role
        )
    yield doc.Section("glossary", "Glossary", tuple(_glossary_blocks(lookup)), role="static")


def _collapsed_sections(
    lookup: ResultLookup, options: doc.ReportOptions
) -> Iterator[tuple[str, doc.Section]]:
    """Yield the collapsed sections of a page, with the text that opens each section."""
    if lookup.cases:
        yield "Curves of all scores, confidence bands and thresholds", _curves_section(lookup)
    if lookup.results:
        yield "All metrics", _metrics_section(lookup)
    if any(case.cwsa is not None for case in lookup.evaluation.curves):
        yield "Confidence-weighted selective accuracy", _cwsa_section(lookup)
    if lookup.cases:
        browser = SampleBrowser(lookup, options.images or SampleImages())
        yield "Extreme samples, and contributions of classes and groups", browser.section()
    glossary = doc.Section(
        "glossary", "Glossary", tuple(_glossary_blocks(lookup)), role="interactive"
    )
    yield "Glossary: terms, scores and metrics with their sources", glossary


def _controls(lookup: ResultLookup) -> doc.Controls:
    """Return menus and buttons that select the split and the scores in charts and tables."""
    choices = []
    if lookup.has_several_splits:
        names = [split_name(split) for split in lookup.splits]
        splits = tuple(doc.Option(str(i), name) for i, name in enumerate(names))
        choices.append(doc.Choice("split", "Split", splits))
    lines = []
    for i, name in enumerate(lookup.scores):
        option = doc.line_option(lookup.first_score_color + i, name)
        lines.append(replace(option, key=str(i)))
    choices.append(doc.Choice("score", "Scores", tuple(lines), is_multiple=True))
    return doc.Controls(tuple(choices), "Selection for charts and tables", role="interactive")


# -------------------------------------------------------------------------------- visible sections
def _all_scores_section(lookup: ResultLookup) -> doc.Section:
    """Return the section with a table of all scores."""
    notes = []
    tests = lookup.evaluation.tests
    if tests is not None:
        scope = f"all {format_count(len(tests.differences))} pairs"
        if not tests.has_same_samples:
            scope = f"all pairs of the same {lookup.split_noun}"
        notes.append(
            f"Bold: the best score of each {lookup.split_noun} and scores that are not "
            f"significantly different from it. Holm's method adjusts the p-values for {scope}."
        )
        notes.append(
            "The best scores were selected on these samples, so their values are optimistic."
        )
    if lookup.evaluation.equal_rankings:
        notes.append("Scores that sort the samples in the same order share a row.")
    blocks: list[doc.Block] = [tables.all_scores_table(lookup)]
    if notes:
        blocks.append(doc.Prose(" ".join(notes), "about"))
    return doc.Section("all", "All scores", tuple(blocks))


#: Maximum number of rows of the calibration table, and of curves of its figure.
_MAX_CALIBRATION_ROWS: Final = 50
_MAX_CALIBRATION_CURVES: Final = 8


def _calibration_section(lookup: ResultLookup) -> Iterator[doc.Section]:
    """Yield the section on calibration for scores that are probabilities.

    If there are several splits, the section contains the first such score of each split.
    """
    cases: dict[object, ScoreCurves] = {}
    for case in lookup.evaluation.curves:
        if case.reliability is not None:
            key = case.split if lookup.has_several_splits else case.score
            cases.setdefault(key, case)
    selected = list(cases.values())[:_MAX_CALIBRATION_ROWS]
    if not selected:
        return
    blocks: list[doc.Block] = [tables.calibration_table(lookup, selected)]
    blocks += _calibration_meanings(lookup)
    figure = _reliability_figure(lookup, selected[:_MAX_CALIBRATION_CURVES])
    if len(selected) > _MAX_CALIBRATION_CURVES:
        n_drawn = f"first {_MAX_CALIBRATION_CURVES} of {len(selected)} rows"
        description = f"{doc.plain_text(figure.description)} The figure shows the {n_drawn}."
        figure = replace(figure, description=description)
    box = doc.Box((doc.Box(tuple(blocks), "stack"), doc.Box((figure,))), "overview")
    yield doc.Section("reliability", "Probabilities", (box,), nav_title="Probabilities")


def _reliability_figure(lookup: ResultLookup, cases: Sequence[ScoreCurves]) -> doc.LineChart:
    """Return the reliability diagram of the scores that have bins with enough samples."""
    lines = []
    for case in cases:
        if case.reliability is not None:
            label = tables.case_label(lookup, case)
            lines.append(reliability_line(case.reliability, label.line or 0))
    return doc.LineChart(
        "reliability-curves",
        "Accuracy by predicted probability",
        tuple(line for line in lines if line.x),
        "Predicted probability of a correct answer",
        1.02,
        "On the diagonal, accuracy equals the probability. Each dot is a bin with at least "
        f"{MIN_BIN_COUNT} samples.",
        has_diagonal=True,
        role="interactive",
    )


def _calibration_meanings(lookup: ResultLookup) -> Iterator[doc.Prose]:
    """Yield a paragraph that explains the calibration metrics, if there are any."""
    spans: list[str | doc.Span] = []
    for name, title in _METRIC_NAMES.items():
        if name in lookup.metrics:
            spans.append(doc.Span(title, "strong"))
            spans.append(f": {metric_meaning(metric_named(name))} ")
    if spans:
        yield doc.Prose((*spans, "x is the value of the metric. Lower is better."), "about")


_METRIC_NAMES: Final = {"ece": "ECE", "brier": "Brier", "nll": "NLL"}


# ---------------------------------------------------------------------------------------- charts
def _band_level(lookup: ResultLookup) -> str:
    """Return the confidence level of the bands as a percentage, or "" if there are no bands."""
    bands = [case.band for case in lookup.evaluation.curves if case.band is not None]
    return next((format_percent(band.level) for band in bands if np.isfinite(band.low).all()), "")


def _curves_section(lookup: ResultLookup) -> doc.Section:
    """Return the section with the interactive risk-coverage charts."""
    level = _band_level(lookup)
    charts_of_kinds = tuple(
        _risk_chart(lookup, kind, level) for kind in ("selective", "generalized")
    )
    errors = "number of errors" if lookup.evaluation.is_binary else "loss"
    noscript = "The charts require JavaScript. The tables below contain the same numbers."
    blocks: list[doc.Block] = [
        _controls(lookup),
        doc.Prose(_CURVES_LEAD.format(errors=errors), "lead"),
        doc.Prose(noscript, "noscript"),
    ]
    if level:
        is_on = len(lookup.scores) <= _MAX_SCORES_WITH_BANDS
        blocks.append(doc.Controls((doc.Switch("bands", f"Show {level} bands", is_on=is_on),)))
    blocks.append(doc.Box(charts_of_kinds, "pair"))
    blocks.append(_threshold_slider(lookup))
    hint = _POINTER_HINT.format(bands=" and the confidence band of its score" if level else "")
    if level:
        blocks.append(doc.Prose(_BANDS_TEXT, "about"))
    blocks.append(doc.Prose(hint, "hint"))
    if level:
        blocks.append(_points_table(lookup, level))
    blocks += _reliability_chart(lookup)
    return doc.Section(
        "curves",
        "Risk-coverage curves",
        tuple(blocks),
        nav_title="Curves",
        role="interactive",
    )


def _risk_chart(lookup: ResultLookup, kind: str, level: str) -> doc.Chart:
    """Return the interactive chart of the selective or the generalized risk."""
    is_binary = lookup.evaluation.is_binary
    texts = _ERROR_CHART_TEXTS if is_binary else _LOSS_CHART_TEXTS
    build_spec = partial(
        charts.risk_coverage_chart,
        lookup.scores,
        kind=kind,
        zero_one=is_binary,
        level=level,
        first_color=lookup.first_score_color,
    )
    title = f"{kind.capitalize()} risk"
    return doc.Chart(kind, title, texts[kind], build_spec, "coverage", "risk")


def _threshold_slider(lookup: ResultLookup) -> doc.ThresholdSlider:
    has_groups = any(case.group_curves for case in lookup.evaluation.curves)
    return doc.ThresholdSlider(
        "Effect of the threshold",
        _SLIDER_TEXT,
        _ERROR_LABELS if lookup.evaluation.is_binary else _LOSS_LABELS,
        has_groups=has_groups,
        role="interactive",
    )


def _points_table(lookup: ResultLookup, band_level: str) -> doc.Collapsible:
    """Return an empty table, to which a script of the page adds points of the curves."""
    split_note = " and split" if lookup.has_several_splits else ""
    names = ("Coverage", "Selective risk", "Generalized risk")
    table = doc.Table(
        (doc.Column("Score", "name"), *map(doc.number_column, names)),
        (doc.TableRows(()),),
        title="Points of the curves",
        caption=f"Selected scores{split_note}",
        anchor="points",
        layout="points",
    )
    about = (
        f"Small print below each risk: pointwise {band_level} band, then simultaneous "
        f"{band_level} band."
    )
    return doc.Collapsible(
        "Table of some points, with confidence bands",
        (doc.Prose(about, "about"), table),
        style="scripted",
    )


def _reliability_chart(lookup: ResultLookup) -> Iterator[doc.Block]:
    """Yield the reliability diagram as a chart if the evaluation contains probabilities."""
    if all(case.reliability is None for case in lookup.evaluation.curves):
        return
    yield doc.Prose(_RELIABILITY_LEAD, "lead")
    yield doc.Chart(
        "reliability",
        "Reliability diagram",
        "Accuracy by mean confidence in each bin.",
        partial(charts.reliability_chart, lookup.scores, first_color=lookup.first_score_color),
        "confidence",
        "accuracy",
    )


def _cwsa_section(lookup: ResultLookup) -> doc.Section:
    """Return the section with the charts of CWSA and CWSA+."""
    cwsa = _cwsa_chart(lookup, "cwsa", "CWSA", "Mean over all samples.")
    cwsa_plus = _cwsa_chart(lookup, "cwsa_plus", "CWSA+", "Mean over the accepted samples.")
    return doc.Section(
        "cwsa",
        "Confidence-weighted selective accuracy",
        (doc.Prose(_CWSA_LEAD, "lead"), doc.Box((cwsa, cwsa_plus), "pair")),
        nav_title="Confidence-weighted accuracy",
        role="interactive",
    )


def _cwsa_chart(lookup: ResultLookup, key: str, title: str, text: str) -> doc.Chart:
    build_spec = partial(
        charts.metric_coverage_chart,
        lookup.scores,
        title=title,
        first_color=lookup.first_score_color,
    )
    return doc.Chart(key, title, text, build_spec, "coverage", "value")


# --------------------------------------------------------------------------------------- numbers
def _metrics_section(lookup: ResultLookup) -> doc.Section:
    """Return the section with the tables of all metrics."""
    return doc.Section(
        "numbers",
        "All metrics",
        (
            doc.Prose(tuple(_numbers_lead(lookup)), "lead"),
            tables.metrics_table(lookup),
        ),
        role="interactive",
    )


def _numbers_lead(lookup: ResultLookup) -> Iterator[str | doc.Span]:
    """Yield paragraphs that explain the numbers in the tables."""
    yield (
        "All values are fractions between 0 and 1 unless the glossary states another range. Arrows "
        "point to better values. In the explanations, x is the value. “Ties” is the range over all "
        "orders of tied samples."
    )
    if lookup.level:
        yield (
            " Overlapping intervals do not imply that a difference is not significant, because all "
            "scores were evaluated on the same samples."
        )
    if not lookup.evaluation.is_binary:
        yield (
            " The loss of these data is not 0/1: if an explanation mentions the share of wrong "
            "answers, it refers to the mean loss."
        )


# -------------------------------------------------------------------------------------- glossary
def _glossary_blocks(lookup: ResultLookup) -> Iterator[doc.Block]:
    """Yield the glossary of metrics, scores and intervals."""
    level = lookup.level
    terms = []
    for title, meaning in _GLOSSARY.items():
        if title == "Confidence interval" and not level:
            continue
        text = meaning.format(level=level) if isinstance(meaning, str) else meaning
        terms.append(doc.GlossaryEntry(title, text))
    yield doc.Glossary(tuple(terms))
    scores = doc.Glossary(score_entries(lookup.scores, lookup.evaluation.column_scores))
    yield doc.Section("scores", "Scores in this report", (scores,), level=3)
    metrics = metric_entries(lookup.metrics)
    title = f"{len(metrics)} metrics with range, direction and source"
    folded = doc.Collapsible(title, (doc.Glossary(metrics),))
    yield doc.Section("metrics", "Metrics in this report", (folded,), level=3)
    if level:
        title = "Methods, and reasons for missing intervals"
        folded = doc.Collapsible(title, (doc.Glossary(tuple(_interval_entries(lookup))),))
        yield doc.Section("intervals", "Intervals in this report", (folded,), level=3)
    if lookup.evaluation.skipped:
        skipped = doc.Glossary(skipped_metric_entries(lookup.evaluation.skipped))
        yield doc.Section("skipped", "Metrics that do not apply to these data", (skipped,), level=3)


def _interval_entries(lookup: ResultLookup) -> Iterator[doc.GlossaryEntry]:
    """Yield glossary entries for the methods of the intervals."""
    results = lookup.evaluation.results
    for method, titles in metrics_by_interval_method(results).items():
        yield doc.GlossaryEntry(capitalize_first(method), "; ".join(titles))
    reasons = reasons_without_interval(results)
    if reasons:
        sentences = [f"{capitalize_first(reason)}." for reason in reasons]
        yield doc.GlossaryEntry("No interval", " ".join(sentences))
    notes = unique(interval_note(result) for result in results)
    text = " ".join(note for note in notes if note)
    if text:
        yield doc.GlossaryEntry("Notes on intervals", text)


_CITATION_ADVICE: Final = (
    "If you publish these results, cite the sources of the metrics listed above, and state this "
    "version."
)
_CURVES_LEAD: Final = (
    "A sample is accepted if its confidence is at least the threshold. A higher threshold means a "
    "lower coverage (further left); with a useful confidence score, the {errors} decreases faster "
    "than the coverage. Lower curves are better. Small dots mark efficient working points: no "
    "larger coverage has as low a selective risk. The dotted line is the risk of a random "
    "confidence score."
)
_ERROR_CHART_TEXTS: Final = {
    "selective": "Share of wrong answers among the accepted samples.",
    "generalized": (
        "Share of all samples that are accepted and wrong (silent failures). The area under this "
        "curve is the AUGRC."
    ),
}
_LOSS_CHART_TEXTS: Final = {
    "selective": "Mean loss of the accepted samples.",
    "generalized": (
        "Total loss of the accepted samples, divided by the number of all samples. The area under "
        "this curve is the AUGRC."
    ),
}
_BANDS_TEXT: Final = (
    "The light areas are pointwise confidence bands: each contains the true risk at a given "
    "coverage with the stated probability. The dotted lines, drawn if one score is selected, are a "
    "simultaneous confidence band for the complete curve, from 5% coverage or ten accepted "
    "samples. Bands of two scores can overlap although their difference is significant, because "
    "both curves were measured on the same samples."
)
_SLIDER_TEXT: Final = (
    "Numbers of accepted and rejected samples at each threshold of a curve. Drag the slider or use "
    "the arrow keys; the charts show the working point."
)
_ERROR_LABELS: Final = ("Wrong", "Share wrong")
_LOSS_LABELS: Final = ("Loss", "Mean loss")
_POINTER_HINT: Final = (
    "Hover over or tap a point for its threshold{bands}. Drag to pan. To zoom, hold Ctrl and turn "
    "the mouse wheel, or use the buttons."
)
_RELIABILITY_LEAD: Final = (
    "A confidence score is calibrated if it equals the probability of a correct answer. Samples "
    "are grouped in bins of similar confidence. On the dotted diagonal, the accuracy in a bin "
    "equals its mean confidence. Below the diagonal the score is overconfident, above it "
    "underconfident. Larger dots represent more samples. A score that is not calibrated can still "
    "rank the samples well."
)
_CWSA_LEAD: Final = (
    "CWSA weights each accepted sample by how far its confidence exceeds the threshold: correct "
    "answers count positively and wrong answers negatively. Higher is better. CWSA is the mean "
    "over all samples and CWSA+ the mean over the accepted samples, as in the published tables."
)
_GLOSSARY: Final[dict[str, doc.Text]] = {
    "Confidence": (
        "A number for each sample; a higher value means a more trusted answer. A ",
        doc.Span("score", "em"),
        " is a method to compute it.",
    ),
    "Coverage": ("The share of accepted samples, whose confidence is at least the threshold."),
    "Risk": (
        "The mean loss. ",
        doc.Span("Selective", "em"),
        " risk is the mean loss of the accepted samples; ",
        doc.Span("generalized", "em"),
        (
            " risk is coverage times selective risk. For 0/1 loss, it is the share of samples that "
            "are accepted and wrong."
        ),
    ),
    "Failure": "A sample with a loss above 0. With 0/1 loss, a wrong answer.",
    "Confidence interval": (
        "A range that contains the true value in {level} of studies like this one. The methods are "
        "listed below the metrics."
    ),
    "Ties": (
        "Samples with equal confidence. They are accepted or rejected together, so the order of "
        "rows does not matter."
    ),
}
