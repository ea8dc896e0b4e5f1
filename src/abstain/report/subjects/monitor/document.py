"""The document of a monitor of a decision rule in production."""

import math
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from abstain.errors import InputError
from abstain.monitoring import Monitor
from abstain.plots import Series, SeriesDisplay
from abstain.plots.formatting import format_percent
from abstain.report import document as doc
from abstain.report.formatting import format_count

DEFAULT_TITLE: Final = "Monitoring of a decision rule"
_TITLE_BY_TEST: Final = {"coverage": "Coverage", "confidence": "Confidences", "risk": "Risk"}
_SPAN_KIND_BY_STATE: Final[dict[str, Any]] = {"quiet": "good", "alarm": "bad", "off": "muted"}
_REASON_BY_UNUSED_TEST: Final = {
    "coverage": "the rule contains no calibration samples, and no limits were specified",
    "confidence": "no calibration data were specified",
    "risk": "the rule guarantees no risk, and no maximum risk was specified",
}
_DESCRIPTION_BY_FIGURE: Final = {
    "coverage": (
        "Coverage since the start of monitoring, with a confidence band that is valid at all times "
        "simultaneously. The dashed lines are the limits from the calibration data."
    ),
    "risk": (
        "Mean loss of the answers with labels, with a confidence band that is valid at all times "
        "simultaneously. The dotted line is the guaranteed maximum."
    ),
    "evidence": (
        "Logarithm of the wealth of the betting process of each test, scaled so that it is 0 at "
        "the start and 1 at an alarm. If nothing has changed, the probability that it ever "
        "reaches 1 is at most the probability of a false alarm."
    ),
}


def monitor_document(monitor: Monitor, options: doc.ReportOptions) -> doc.Document:
    """Return the document of a monitor."""
    monitor = _check_monitor(monitor)
    first_sentence, *further_sentences = _alarm_sentences(monitor)
    return doc.Document(
        options.title or DEFAULT_TITLE,
        "Monitoring",
        partial(_blocks, monitor, options.command),
        verdict=(doc.Span(first_sentence, "strong"), *further_sentences),
        facts=tuple(_facts(monitor, options.source)),
        findings=tuple(doc.Remark("note", text) for text in (*_notes(monitor), *options.notes)),
        is_alarm=bool(monitor.active_alarms),
    )


def _check_monitor(monitor: object) -> Monitor:
    if not isinstance(monitor, Monitor):
        raise InputError(f"`result` must be a Monitor; got {type(monitor).__name__}")
    return monitor


def _alarm_sentences(monitor: Monitor) -> Iterator[str]:
    standing = monitor.active_alarms
    if not standing:
        yield (
            f"No alarm after {_format_predictions(monitor.predictions)}: there is no significant "
            "evidence that the rule violates its guarantee."
        )
    for alarm in standing:
        yield f"Alarm after {_format_predictions(alarm.n_predictions)}: {alarm.reason}."


def _format_predictions(number: int) -> str:
    return f"{format_count(number)} prediction{'s' if number != 1 else ''}"


def _facts(monitor: Monitor, source: str) -> Iterator[tuple[str, str]]:
    plan, observations = monitor.plan, monitor.state
    yield "Rule", f"answer if the confidence is at least {plan.rule.threshold:.6g}"
    yield "Stream", source
    yield "Predictions", format_count(monitor.predictions)
    yield "Tests", ", ".join(plan.watched)
    yield (
        "False alarms",
        f"at most {format_percent(plan.delta)} of all streams without changes have one",
    )
    yield (
        "Calibration",
        "" if plan.reference is None else f"{format_count(plan.reference.n)} samples",
    )
    if plan.label_share is not None:
        yield "Requested labels", f"{format_percent(plan.label_share)} of the answers"
        yield "Pending labels", format_count(observations.requests.n_waiting)


def _notes(monitor: Monitor) -> Iterator[str]:
    """Yield notes on unused tests and on ignored predictions and labels."""
    counts, plan = monitor.state.counts, monitor.plan
    for name, reason in _REASON_BY_UNUSED_TEST.items():
        if name not in plan.watched:
            yield f"The {_TITLE_BY_TEST[name].lower()} test is off: {reason}."
    count_by_text = {
        "repeated predictions were ignored": counts.replayed,
        "labels of predictions that already had a label were ignored": counts.repeated,
        "labels that were not requested were ignored": counts.unasked,
        "labels of rejected samples were ignored": counts.abstained,
        "labels have no prediction: they arrived too early, or it was removed": len(
            monitor.state.early
        ),
        "requested labels are missing: the test counts these answers as correct, and the estimates "
        "use only the received labels": monitor.state.requests.missing,
    }
    yield from (f"{format_count(n)} {text}." for text, n in count_by_text.items() if n)
    if plan.label_share is None and monitor.watches[2].tally.n:
        yield (
            "No labels were requested. The estimated risk and the false alarm rate of its test are "
            "valid only if the availability of a label does not depend on the correctness of the "
            "answer or on its confidence."
        )


# ---------------------------------------------------------------------------------- the tables
def _tests_table(monitor: Monitor) -> doc.Table:
    columns = (
        doc.Column("Test", "name"),
        doc.Column(doc.Label("Samples", short_text="n"), "number"),
        doc.Column("Overall", "number"),
        doc.Column("Recent", "number"),
        doc.Column("Limit", "number"),
        doc.Column("Evidence", "number"),
        doc.Column("State"),
    )
    return doc.Table(
        columns,
        doc.single_group(map(_row, monitor.rows())),
        title="Tests",
        caption=(
            "Small print: confidence intervals that are valid at all times simultaneously. Recent: "
            "mean over about the last 200 values. For the confidences, the value is the mean rank "
            "among the calibration confidences. Evidence: 0 at the start, 1 at an alarm. Values "
            "are fractions."
        ),
        layout="leads",
        role="key",
    )


def _row(row: dict[str, Any]) -> doc.Row:
    evidence = (
        math.log(row["capital"]) / math.log(row["alarm_capital"])
        if row["capital"] > 0
        else math.nan
    )
    cells = (
        _TITLE_BY_TEST[row["watch"]],
        doc.Number(row["n"], number_format="count"),
        _optional_number(row["value"], row["low"], row["high"]),
        _optional_number(row["recent"]),
        _limits_text(row),
        None if math.isnan(evidence) else doc.Number(evidence, number_format="two_decimals"),
        doc.Span(row["state"], _SPAN_KIND_BY_STATE[row["state"]]),
    )
    return doc.Row(cells)


def _limits_text(row: dict[str, Any]) -> str:
    lower, upper = row["allowed_low"], row["allowed_high"]
    if math.isnan(upper):
        return ""
    if math.isnan(lower):
        return f"\u2264 {upper:.4g}"
    return f"{upper:.4g}" if lower == upper else f"{lower:.4g} to {upper:.4g}"


def _optional_number(
    value: float, low: float = doc.NAN, high: float = doc.NAN
) -> doc.Number | None:
    return (
        None if math.isnan(value) else doc.Number(value, low, high, number_format="four_decimals")
    )


def _risk_estimates_table(monitor: Monitor) -> Iterator[doc.Block]:
    estimates = monitor.estimate()
    if estimates is None:
        return
    rows = (
        ("labels and confidences", estimates.value, estimates.interval),
        ("labels only", estimates.labels_only, estimates.labels_only_interval),
    )
    yield doc.Table(
        (doc.Column("Estimated from", "name"), doc.Column("Estimate", "number")),
        doc.single_group(
            doc.Row((name, _optional_number(v, i.low, i.high))) for name, v, i in rows
        ),
        title="Risk estimated from requested labels",
        caption=(
            f"{format_count(estimates.n_labeled)} labels of {format_count(estimates.n_samples)} "
            "answers. Small print: 95% confidence intervals (normal approximation) that are valid "
            "at one time only, in contrast to the intervals of the tests."
        ),
        layout="leads",
        role="key",
    )


def _alarm_blocks(monitor: Monitor) -> Iterator[doc.Block]:
    if not monitor.alarms:
        yield doc.Prose("There was no alarm.")
        return
    rows = (
        (
            doc.Number(a.n_predictions, number_format="count"),
            _TITLE_BY_TEST[a.watch],
            doc.Span("reset", "muted") if a.acknowledged else doc.Span("active", "bad"),
            a.reason,
        )
        for a in monitor.alarms
    )
    yield doc.Table(
        (
            doc.Column("Predictions", "number"),
            doc.Column("Test"),
            doc.Column("State"),
            doc.Column("Reason", "text"),
        ),
        doc.single_group(map(doc.Row, rows)),
        title="Alarms",
        layout="leads",
    )


# ---------------------------------------------------------------------------------- the figures
def monitor_figures(monitor: Monitor) -> list[tuple[str, SeriesDisplay]]:
    """Return the names and displays of the figures for which there are data."""
    monitor = _check_monitor(monitor)
    rows, plan = monitor.points(), monitor.plan
    if len(rows) < 2:
        return []
    limits = (
        ()
        if plan.coverage is None
        else tuple(
            Series("limits", (rows[0]["events"], rows[-1]["events"]), (at, at))
            for at in plan.coverage
        )
    )
    figures = [
        (
            "coverage",
            _display(
                (_series_with_band(rows, "coverage"), *limits), "Coverage over time", "Coverage"
            ),
        )
    ]
    if monitor.watches[2].tally.n:
        level = {} if plan.max_risk is None else {"": plan.max_risk}
        risk_display = _display(
            (_series_with_band(rows, "risk"),), "Risk over time", "Risk", level, "guaranteed"
        )
        figures.append(("risk", risk_display))
    lines = tuple(
        Series(_TITLE_BY_TEST[name].lower(), *_points(rows, f"{name}_evidence"))
        for name in plan.watched
    )
    title = "Evidence of each test"
    return [*figures, ("evidence", _display(lines, title, "Evidence", {"": 1.0}, "alarm"))]


def _display(
    series: tuple[Series, ...],
    title: str,
    y_title: str,
    level: dict[str, float] | None = None,
    level_name: str = "",
) -> SeriesDisplay:
    return SeriesDisplay(
        series,
        title,
        "Predictions and labels",
        y_title,
        log_x=False,
        level=level or {},
        level_name=level_name,
    )


def _points(rows: list[dict[str, float]], name: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return tuple(row["events"] for row in rows), tuple(row[name] for row in rows)


def _series_with_band(rows: list[dict[str, float]], name: str) -> Series:
    low, high = (tuple(row[f"{name}_{end}"] for row in rows) for end in ("low", "high"))
    return Series("overall", *_points(rows, name), low, high)


# ---------------------------------------------------------------------------------- the page
def _blocks(monitor: Monitor, command: str) -> list[doc.Block]:
    figures = tuple(
        doc.Figure(
            key, display.title, display, _DESCRIPTION_BY_FIGURE[key], role="" if i else "key"
        )
        for i, (key, display) in enumerate(monitor_figures(monitor))
    )
    figures_section = doc.Section(
        "figures", "Over time", (doc.Box(figures, "figures"),), nav_title="Figures"
    )
    return [
        *doc.summary_paragraphs(_alarm_sentences(monitor), is_alarm=bool(monitor.active_alarms)),
        doc.Section("tests", "Tests", (_tests_table(monitor), *_risk_estimates_table(monitor))),
        doc.Section("alarms", "Alarms", tuple(_alarm_blocks(monitor))),
        *([figures_section] if figures else []),
        doc.Section("rule", "Decision rule", (doc.Prose(str(monitor.plan.rule)),)),
        doc.Section("glossary", "Glossary", (doc.Glossary(_glossary_entries(monitor)),)),
        doc.reproduce_section(command),
    ]


def _glossary_entries(monitor: Monitor) -> tuple[doc.GlossaryEntry, ...]:
    risk = "the mean loss of the answers"
    if monitor.plan.risk_kind == "generalized risk":
        risk = "the total loss of the answers, divided by the number of all predictions"
    return (
        doc.GlossaryEntry("Coverage", "The share of the predictions that the rule accepts."),
        doc.GlossaryEntry("Risk", f"The {monitor.plan.risk_kind}: {risk}."),
        doc.GlossaryEntry(
            "Evidence",
            "The logarithm of the wealth of a betting process against the guarantee, scaled so "
            "that an alarm is at 1. If nothing has changed, the probability that it ever reaches "
            "1 is at most the probability of a false alarm, however often the monitor is checked.",
        ),
        doc.GlossaryEntry(
            "Prediction-powered",
            "An estimate from the confidences of all answers, corrected with the answers whose "
            "labels were requested with known probabilities.",
        ),
    )
