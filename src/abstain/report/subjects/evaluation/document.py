"""The document of an evaluation: sections, charts and glossary."""

from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import Final

import numpy as np

from abstain._foundation.arrays import to_numpy
from abstain.curves.risk_coverage import thin
from abstain.evaluation.records import Evaluation, Result, ScoreCurves
from abstain.plots import Series, SeriesDisplay
from abstain.plots.formatting import format_percent
from abstain.report import document as doc
from abstain.report.formatting import build_remarks, format_count, join_first, loss_label, unique
from abstain.report.glossary import metric_entries, score_entries, skipped_metric_entries
from abstain.report.images import SampleImages
from abstain.report.subjects.evaluation import charts, tables
from abstain.report.subjects.evaluation.charts import chart_data
from abstain.report.subjects.evaluation.lookup import (
    ResultLookup,
    metrics_by_interval_method,
    reasons_without_interval,
)
from abstain.report.subjects.evaluation.samples import SampleBrowser
from abstain.report.subjects.evaluation.verdict import evaluation_verdict
from abstain.tables import split_name

_TITLE: Final = "Selective classification report"

#: Maximum number of score names in the facts.
_MAX_SCORE_NAMES: Final = 6

#: Maximum number of curves, and of vertices per curve, in a notebook.
_MAX_CURVES: Final = 5
_MAX_VERTICES: Final = 200

#: With more scores, bands are hidden initially, because they overlap.
_MAX_SCORES_WITH_BANDS: Final = 3


def evaluation_document(evaluation: Evaluation, options: doc.ReportOptions) -> doc.Document:
    """Return the document of an evaluation."""
    lookup = ResultLookup(evaluation)
    return doc.Document(
        options.title or _TITLE,
        ("Evaluation",),
        lambda: (
            doc.DeferredBlocks(
                lambda: _summary_blocks(lookup, is_complete=options.full), role="summary"
            ),
            doc.DeferredBlocks(lambda: _sections(lookup, options), role="detail"),
        ),
        answer=tuple(evaluation_verdict(lookup)),
        facts=tuple(_facts(lookup, options.source)),
        findings=build_remarks(evaluation.notes, options.notes),
        command=options.command,
        citation_advice=_CITATION_ADVICE,
        chart_data=lambda: chart_data(lookup),
        is_complete=options.full,
    )


def _facts(lookup: ResultLookup, source: str) -> Iterator[tuple[str, str]]:
    # Results and cases have the same counts; an evaluation without curves has no cases.
    records: Iterator[Result | ScoreCurves] = chain(
        lookup.evaluation.results, lookup.evaluation.curves
    )
    first = next(records, None)
    yield "Source", source
    # The counts of several splits are in the table of all metrics.
    if first is not None and not lookup.has_several_splits:
        yield "Samples", format_count(first.n)
        yield "Failures (loss above 0)", format_count(first.failures)
    yield "Loss", loss_label(lookup.evaluation.loss)
    yield "Scores", join_first(lookup.scores, _MAX_SCORE_NAMES)
    if lookup.has_several_splits:
        columns = unique(column for split in lookup.splits for column, _ in split)
        yield "Splits", f"{len(lookup.splits)}, by {', '.join(columns)}"


def _summary_blocks(lookup: ResultLookup, *, is_complete: bool) -> Iterator[doc.Block]:
    """Yield the headline metrics with some intervals, or all metrics, and one curve."""
    has_requested_metrics = bool(lookup.evaluation.requested_metrics)
    if (
        is_complete
        or not lookup.headline_metrics
        or (has_requested_metrics and len(lookup.headline_metrics) < len(lookup.metrics))
    ):
        yield from tables.explained_tables(lookup)
    else:
        yield tables.headline_table(lookup, keep_all=has_requested_metrics)
        yield from tables.interval_tables(lookup)
    full_hint = "" if is_complete else " Pass --full to print all metrics."
    legend = "Bold: best score of the split. Arrows point to better values. Values are fractions."
    yield doc.SeeAlso(legend, full_hint, " .frame() returns all numbers.", "notes")
    yield from _curve_figure(lookup)


def _curve_figure(lookup: ResultLookup) -> Iterator[doc.Figure]:
    """Yield a figure with the curves of some scores on the first split."""
    split = lookup.splits[0] if lookup.splits else ()
    cases = [case for case in lookup.evaluation.curves if case.split == split]
    if not cases:
        return
    display = SeriesDisplay(
        tuple(_curve_series(case) for case in cases[:_MAX_CURVES]),
        "Selective risk by coverage",
        "Coverage",
        "Selective risk",
        log_x=False,
    )
    split_suffix = f" on {split_name(split)}" if lookup.has_several_splits else ""
    description = f"Selective risk (mean loss of the accepted samples) by coverage{split_suffix}"
    if len(cases) > _MAX_CURVES:
        description += f", for the first {_MAX_CURVES} of {len(cases)} scores"
    yield doc.Figure("curve", display.title, display, f"{description}.")


def _curve_series(case: ScoreCurves) -> Series:
    curve = thin(case.selective, vertices=_MAX_VERTICES)
    x, y = (np.asarray(to_numpy(v, "curve"), float) for v in (curve.coverage, curve.risk))
    return Series(case.score, tuple(x.tolist()), tuple(y.tolist()))


def _sections(lookup: ResultLookup, options: doc.ReportOptions) -> Iterator[doc.Block]:
    splits = tuple(doc.Option(str(i), split_name(split)) for i, split in enumerate(lookup.splits))
    lines = tuple(doc.line_option(i, name) for i, name in enumerate(lookup.scores))
    choices = (
        *([doc.Choice("split", "Split", splits)] if lookup.has_several_splits else []),
        doc.Choice("score", "Scores", lines, is_multiple=True),
    )
    yield doc.Controls(
        choices, "Selection for charts and tables", is_sticky=True, role="interactive"
    )
    if lookup.cases:
        yield _curves_section(lookup)
    yield doc.Section("numbers", "Metrics", tuple(_numbers_section(lookup)), nav_title="Metrics")
    if any(case.reliability is not None for case in lookup.evaluation.curves):
        yield _reliability_section(lookup)
    if any(case.cwsa is not None for case in lookup.evaluation.curves):
        yield _cwsa_section(lookup)
    if lookup.cases:
        yield SampleBrowser(lookup, options.images or SampleImages()).section()
    yield doc.Section("glossary", "Glossary", tuple(_glossary_blocks(lookup)))


# ---------------------------------------------------------------------------------------- charts
def _band_level(lookup: ResultLookup) -> str:
    """Return the confidence level of the bands as a percentage; empty without bands."""
    bands = [case.band for case in lookup.evaluation.curves if case.band is not None]
    return next((format_percent(band.level) for band in bands if np.isfinite(band.low).all()), "")


def _curves_section(lookup: ResultLookup) -> doc.Section:
    bands, zero_one = _band_level(lookup), lookup.evaluation.is_binary
    texts = _ERROR_CHART_TEXTS if zero_one else _LOSS_CHART_TEXTS
    pair = tuple(
        doc.Chart(
            kind,
            f"{kind.capitalize()} risk",
            texts[kind],
            partial(
                charts.risk_coverage_chart, lookup.scores, kind=kind, zero_one=zero_one, level=bands
            ),
            "coverage",
            "risk",
        )
        for kind in ("selective", "generalized")
    )
    option = doc.Controls(
        (
            doc.Switch(
                "bands", f"Show {bands} bands", is_on=len(lookup.scores) <= _MAX_SCORES_WITH_BANDS
            ),
        )
    )
    lead = _CURVES_LEAD.format(errors="number of errors" if zero_one else "loss")
    hint = _POINTER_HINT.format(bands=" and the confidence band of its score" if bands else "")
    return doc.Section(
        "curves",
        "Risk-coverage curves",
        (
            doc.Prose(lead, "lead"),
            doc.Prose(
                "The charts require JavaScript. The tables below contain the same numbers.",
                "noscript",
            ),
            *([option] if bands else []),
            doc.Box(pair, "pair"),
            _threshold_slider(lookup, zero_one=zero_one),
            *([doc.Prose(_BANDS_TEXT, "about")] if bands else []),
            doc.Prose(hint, "hint"),
            *([_points_table(lookup, bands)] if bands else []),
        ),
        nav_title="Curves",
        role="interactive",
    )


def _threshold_slider(lookup: ResultLookup, *, zero_one: bool) -> doc.ThresholdSlider:
    groups = any(case.group_curves for case in lookup.evaluation.curves)
    heads = _ERROR_LABELS if zero_one else _LOSS_LABELS
    return doc.ThresholdSlider(
        "Effect of the threshold", _SLIDER_TEXT, heads, has_groups=groups, role="interactive"
    )


def _points_table(lookup: ResultLookup, band_level: str) -> doc.Collapsible:
    """Return the table of some points of the curves, which a script fills."""
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


def _reliability_section(lookup: ResultLookup) -> doc.Section:
    chart = doc.Chart(
        "reliability",
        "Reliability diagram",
        "Accuracy by mean confidence in each bin.",
        partial(charts.reliability_chart, lookup.scores),
        "confidence",
        "accuracy",
    )
    title = "Calibration"
    return doc.Section(
        "reliability",
        title,
        (doc.Prose(_RELIABILITY_LEAD, "lead"), chart),
        nav_title="Reliability",
        role="interactive",
    )


def _cwsa_section(lookup: ResultLookup) -> doc.Section:
    text_by_title = {"CWSA": "Mean over all samples.", "CWSA+": "Mean over the accepted samples."}
    pair = tuple(
        doc.Chart(
            key,
            title,
            text,
            partial(charts.metric_coverage_chart, lookup.scores, title=title),
            "coverage",
            "value",
        )
        for key, (title, text) in zip(("cwsa", "cwsa_plus"), text_by_title.items(), strict=True)
    )
    title = "Confidence-weighted selective accuracy"
    return doc.Section(
        "cwsa",
        title,
        (doc.Prose(_CWSA_LEAD, "lead"), doc.Box(pair, "pair")),
        nav_title="Confidence-weighted accuracy",
        role="interactive",
    )


# --------------------------------------------------------------------------------------- numbers
def _numbers_section(lookup: ResultLookup) -> Iterator[doc.Block]:
    yield doc.Prose(tuple(_numbers_lead(lookup)), "lead", role="interactive")
    label = "Show AURC and AUGRC × 1000, as in the literature"
    yield doc.Controls((doc.Switch("thousand", label),), role="interactive")
    yield doc.Section(
        "headline",
        "Headline metrics",
        (tables.overview_table(lookup),),
        nav_title=None,
        level=3,
        role="interactive",
    )
    yield doc.Section(
        "all",
        "All metrics with explanations",
        tuple(tables.all_metrics(lookup)),
        level=3,
        role="interactive",
    )
    yield from tables.paper_table(lookup.evaluation, None, intervals=True)


def _numbers_lead(lookup: ResultLookup) -> Iterator[str | doc.Span]:
    yield (
        "All values are fractions between 0 and 1 unless the glossary states another range. Arrows "
        "point to better values. "
    )
    yield doc.Span("Bold", "best")
    yield (
        " marks the best score on a split. It does not imply a significant difference; to test "
        "significance, run "
    )
    yield doc.Span("abstain compare", "code")
    yield "."
    if level := lookup.level:
        yield (
            f" The small print below a value is its {level} confidence interval. Overlapping "
            "intervals do not imply that a difference is not significant, because all scores were "
            "evaluated on the same samples."
        )
    if not lookup.evaluation.is_binary:
        yield (
            " The loss of these data is not 0/1: if an explanation mentions the share of wrong "
            "answers, it refers to the mean loss."
        )


# -------------------------------------------------------------------------------------- glossary
def _glossary_blocks(lookup: ResultLookup) -> Iterator[doc.Block]:
    level = lookup.level
    meanings = {
        title: meaning
        for title, meaning in _GLOSSARY.items()
        if level or title != "Confidence interval"
    }
    yield doc.Glossary(
        tuple(
            doc.GlossaryEntry(
                title, meaning.format(level=level) if isinstance(meaning, str) else meaning
            )
            for title, meaning in meanings.items()
        )
    )
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
    for form, titles in metrics_by_interval_method(lookup.evaluation.results).items():
        yield doc.GlossaryEntry(form[:1].upper() + form[1:], "; ".join(titles))
    if reasons := reasons_without_interval(lookup.evaluation.results):
        yield doc.GlossaryEntry(
            "No interval", " ".join(f"{r[:1].upper()}{r[1:]}." for r in reasons)
        )


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
