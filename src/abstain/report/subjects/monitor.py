"""Report of a monitor of a decision rule in production."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from abstain.monitoring import Monitor
from abstain.plots import Series, SeriesDisplay
from abstain.plots.formatting import check_result_type, format_percent
from abstain.report import document as doc
from abstain.report.formatting import format_count, format_interval, format_value

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
        "simultaneously, and in windows of at least 200 predictions. The limits are from the "
        "calibration data; vertical lines are alarms."
    ),
    "risk": (
        "Mean loss of the answers with labels, with a confidence band that is valid at all times "
        "simultaneously, and in windows of at least 200 labels. The dotted line is the limit; "
        "vertical lines are alarms."
    ),
    "evidence": (
        "Logarithm of the wealth of the betting process of each test, scaled so that it is 0 at "
        "the start and 1 at an alarm. If nothing has changed, the probability that it ever "
        "reaches 1 is at most the probability of a false alarm."
    ),
}


_TESTS_NOTE: Final = (
    "Confidence intervals are valid at all times simultaneously. Recent: mean over about the last "
    "200 values. For the confidences, the value is the mean rank among the calibration "
    "confidences. Evidence: 0 at the start, 1 at an alarm. Values are fractions."
)


def monitor_document(monitor: Monitor, options: doc.ReportOptions) -> doc.Document:
    """Build the report of a monitor of a decision rule."""
    check_result_type(monitor, Monitor, "result", "monitoring.start")
    return doc.Document(
        options.title or DEFAULT_TITLE,
        ("Monitoring",),
        partial(_blocks, monitor),
        answer=(*_alarm_sentences(monitor), *_recent_sentences(monitor)),
        key_numbers=tuple(_key_numbers(monitor)),
        overview=partial(_overview, monitor),
        facts=tuple(_facts(monitor, options.source)),
        findings=tuple(doc.Remark("note", text) for text in (*_notes(monitor), *options.notes)),
        command=options.command,
        is_alarm=bool(monitor.active_alarms),
    )


def _alarm_sentences(monitor: Monitor) -> Iterator[str]:
    """Yield a sentence for each active alarm, or one sentence if there is no alarm."""
    standing = monitor.active_alarms
    if not standing:
        yield (
            f"No alarm after {_format_predictions(monitor.predictions)}: there is no significant "
            "evidence that the rule violates its guarantee."
        )
    for alarm in standing:
        # The numbers after the colon are omitted, because the table of alarms contains them.
        claim = alarm.reason.partition(": ")[0]
        yield f"Alarm after {_format_predictions(alarm.n_predictions)}: {claim}."


def _recent_sentences(monitor: Monitor) -> Iterator[str]:
    """Return a sentence on why a recent value outside the limits did not cause an alarm."""
    for row in monitor.rows():
        if row["is_recent_outside"] and row["state"] == "quiet":
            limits = _limits_in_percent(row["allowed_low"], row["allowed_high"])
            yield (
                f"The recent {row['watch']} of {format_value(row['recent'], 'percent')} is outside "
                f"its limit of {limits}, but so far the evidence is only {_format_evidence(row)} "
                "of that for an alarm."
            )


def _format_evidence(row: dict[str, Any]) -> str:
    if row["evidence"] >= 1:
        return "above 100%"
    return format_percent(round(max(row["evidence"], 0.0), 2))


def _key_numbers(monitor: Monitor) -> Iterator[doc.KeyNumber]:
    """Yield the overall value, the recent value and the strongest evidence for a violation."""
    yield doc.KeyNumber("Predictions", format_count(monitor.predictions))
    names = {"coverage": "Answered", "risk": "Risk of the answers"}
    for row in monitor.rows():
        if row["watch"] not in names or math.isnan(row["value"]):
            continue
        interval = format_interval(row["low"], row["high"], "percent")
        label = names[row["watch"]]
        yield doc.KeyNumber(label, format_value(row["value"], "percent"), interval)
        limits = _limits_in_percent(row["allowed_low"], row["allowed_high"])
        detail = f"limit {limits}" if limits else "about the last 200"
        yield doc.KeyNumber(f"{label}, recent", format_value(row["recent"], "percent"), detail)
    rows = [row for row in monitor.rows() if not math.isnan(row["evidence"])]
    if rows:
        strongest = max(rows, key=lambda row: row["evidence"])
        test = _TITLE_BY_TEST[strongest["watch"]].lower()
        value = _format_evidence(strongest)
        yield doc.KeyNumber("Strongest evidence", value, f"{test}; alarm at 100%")


def _overview(monitor: Monitor) -> Iterator[doc.Block]:
    """Yield the table of the tests and the figure of the risk.

    If there are no labels, the figure shows the coverage instead of the risk.
    """
    blocks: list[doc.Block] = [_tests_table(monitor), *_risk_estimates_table(monitor)]
    if monitor.alarms:
        blocks.append(_alarms_table(monitor))
    blocks.append(doc.Prose(_TESTS_NOTE, "notes"))
    figures = dict(_figure_blocks(monitor))
    figure = figures.get("risk") or figures.get("coverage")
    if figure is None:
        yield doc.Box(tuple(blocks), "stack", role="key")
    else:
        yield doc.Box((doc.Box(tuple(blocks), "stack"), figure), "overview", role="key")


def _format_predictions(number: int) -> str:
    return f"{format_count(number)} prediction{'s' if number != 1 else ''}"


def _facts(monitor: Monitor, source: str) -> Iterator[tuple[str, str]]:
    """Yield the properties of the rule, of the stream and of the tests."""
    plan, observations = monitor.plan, monitor.state
    yield "Rule", f"answer if the confidence is at least {plan.rule.threshold:.6g}"
    yield "Stream", source
    yield "Predictions", format_count(monitor.predictions)
    yield "Tests", ", ".join(plan.watched)
    delta = format_percent(plan.delta)
    yield "False alarms", f"at most {delta} of all streams without changes have one"
    if plan.reference is not None:
        yield "Calibration", f"{format_count(plan.reference.n)} samples"
    if plan.label_share is not None:
        yield "Requested labels", f"{format_percent(plan.label_share)} of the answers"
        yield "Pending labels", format_count(observations.requests.n_waiting)


def _notes(monitor: Monitor) -> Iterator[str]:
    """Yield notes on tests that were not used, and on ignored predictions and labels."""
    counts, plan = monitor.state.counts, monitor.plan
    for name, reason in _REASON_BY_UNUSED_TEST.items():
        if name not in plan.watched:
            yield f"The {_TITLE_BY_TEST[name].lower()} test is off: {reason}."
    n_by_text = {
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
    for text, n in n_by_text.items():
        if n:
            yield f"{format_count(n)} {text}."
    if plan.label_share is None and monitor.watches[2].tally.n:
        yield (
            "No labels were requested. The estimated risk and the false alarm rate of its test are "
            "valid only if the availability of a label does not depend on the correctness of the "
            "answer or on its confidence."
        )


# ---------------------------------------------------------------------------------- the tables
def _tests_table(monitor: Monitor) -> doc.Table:
    """Return a table with the value, the limits and the evidence of each test."""
    rows = []
    for row in monitor.rows():
        evidence = row["evidence"]
        cells = (
            _TITLE_BY_TEST[row["watch"]],
            doc.Number(row["n"], number_format="count"),
            _optional_number(row["value"], row["low"], row["high"]),
            _optional_number(row["recent"]),
            _limits_text(row["allowed_low"], row["allowed_high"]),
            None if math.isnan(evidence) else doc.Number(evidence, number_format="two_decimals"),
            _state_cell(row),
        )
        rows.append(cells)
    return doc.Table(
        (
            doc.Column("Test", "name"),
            doc.number_column(doc.Label("Samples", short_text="n")),
            *map(doc.number_column, ("Overall", "Recent", "Limit", "Evidence")),
            doc.Column("State"),
        ),
        doc.single_group(rows),
        title="Tests",
        caption=doc.Span("Tests", "strong"),
        layout="dense",
    )


def _state_cell(row: dict[str, Any]) -> doc.Text:
    if row["state"] == "quiet" and row["is_recent_outside"]:
        note = f" recent value outside the limit; evidence {_format_evidence(row)} of an alarm"
        return (doc.Span("quiet", "open"), doc.Span(note, "small"))
    return doc.Span(row["state"], _SPAN_KIND_BY_STATE[row["state"]])


def _limits_in_percent(lower: float, upper: float) -> str:
    if math.isnan(upper):
        return ""
    if math.isnan(lower):
        return format_percent(round(upper, 6))
    return format_interval(lower, upper, "percent")


def _limits_text(lower: float, upper: float) -> str:
    if math.isnan(upper):
        return ""
    if math.isnan(lower):
        return f"\u2264 {upper:.4g}"
    return f"{upper:.4g}" if lower == upper else f"{lower:.4g} to {upper:.4g}"


def _optional_number(
    value: float, low: float = doc.NAN, high: float = doc.NAN
) -> doc.Number | None:
    if math.isnan(value):
        return None
    return doc.Number(value, low, high, number_format="four_decimals")


def _risk_estimates_table(monitor: Monitor) -> Iterator[doc.Block]:
    """Yield a table of the risk, estimated from the requested labels."""
    estimates = monitor.estimate()
    if estimates is None:
        return
    with_confidences = _optional_number(
        estimates.value, estimates.interval.low, estimates.interval.high
    )
    labels_only = _optional_number(
        estimates.labels_only,
        estimates.labels_only_interval.low,
        estimates.labels_only_interval.high,
    )
    rows = (("labels and confidences", with_confidences), ("labels only", labels_only))
    yield doc.Table(
        (doc.Column("Estimated from", "name"), doc.number_column("Estimate")),
        doc.single_group(rows),
        title="Risk estimated from requested labels",
        caption=(
            f"{format_count(estimates.n_labeled)} labels of {format_count(estimates.n_samples)} "
            "answers. Small print: 95% confidence intervals (normal approximation) that are valid "
            "at one time only, in contrast to the intervals of the tests."
        ),
        layout="leads",
    )


def _alarms_table(monitor: Monitor) -> doc.Table:
    """Return a table with the time, the state and the reason of each alarm."""
    rows = [
        (
            doc.Number(alarm.n_predictions, number_format="count"),
            _TITLE_BY_TEST[alarm.watch],
            doc.Span("reset", "muted") if alarm.acknowledged else doc.Span("active", "bad"),
            alarm.reason,
        )
        for alarm in monitor.alarms
    ]
    columns = (doc.number_column("Predictions"), *map(doc.Column, ("Test", "State", "Reason")))
    return doc.Table(
        columns,
        doc.single_group(rows),
        title="Alarms",
        caption=doc.Span("Alarms", "strong"),
        layout="leads",
    )


# ---------------------------------------------------------------------------------- the figures
def monitor_figures(monitor: Monitor) -> list[tuple[str, SeriesDisplay]]:
    """Return the names and displays of the figures of a monitor."""
    check_result_type(monitor, Monitor, "result", "monitoring.start")
    points, plan = monitor.points(), monitor.plan
    if len(points) < 2:
        return []
    times = _values_of(points, "events")
    display = partial(
        SeriesDisplay,
        x_title="Predictions and labels",
        log_x=False,
        marks=tuple(monitor.alarm_positions()),
        marks_name="alarm",
        is_compact=True,
    )
    coverage_series = _overall_and_recent(points, "coverage")
    for limit in plan.coverage or ():
        coverage_series.append(Series("limits", (times[0], times[-1]), (limit, limit)))
    coverage = display(tuple(coverage_series), "Coverage over time", y_title="Coverage")
    figures = [("coverage", coverage)]
    if monitor.watches[2].tally.n:
        risk = display(
            tuple(_overall_and_recent(points, "risk")),
            "Risk over time",
            y_title="Risk",
            level={} if plan.max_risk is None else {"": plan.max_risk},
            level_name="limit",
        )
        figures.append(("risk", risk))
    evidence_series = []
    for name in plan.watched:
        evidence = _values_of(points, f"{name}_evidence")
        evidence_series.append(Series(_TITLE_BY_TEST[name].lower(), times, evidence))
    evidence_display = display(
        tuple(evidence_series),
        "Evidence of each test",
        y_title="Evidence",
        level={"": 1.0},
        level_name="alarm",
    )
    figures.append(("evidence", evidence_display))
    return figures


def _values_of(points: Sequence[Mapping[str, float]], name: str) -> tuple[float, ...]:
    return tuple(point[name] for point in points)


def _overall_and_recent(points: Sequence[Mapping[str, float]], name: str) -> list[Series]:
    """Return two lines: the mean since the start with its band, and the recent mean."""
    times = _values_of(points, "events")
    low = _values_of(points, f"{name}_low")
    high = _values_of(points, f"{name}_high")
    overall = Series("overall", times, _values_of(points, name), low, high)
    recent = Series("recent window", times, _values_of(points, f"{name}_recent"))
    return [overall, recent]


# ---------------------------------------------------------------------------------- the page
def _figure_blocks(monitor: Monitor) -> list[tuple[str, doc.Figure]]:
    return [
        (key, doc.Figure(key, display.title, display, _DESCRIPTION_BY_FIGURE[key]))
        for key, display in monitor_figures(monitor)
    ]


def _blocks(monitor: Monitor) -> list[doc.Block]:
    """Return the sections with the figures, the decision rule and the terms."""
    blocks: list[doc.Block] = []
    figures = dict(_figure_blocks(monitor))
    # The first screen contains this figure.
    figures.pop("risk" if "risk" in figures else "coverage", None)
    if figures:
        box = doc.Box(tuple(figures.values()), "pair")
        blocks.append(doc.Section("figures", "Over time", (box,), nav_title="Figures"))
    blocks.append(doc.Section("rule", "Decision rule", (doc.Prose(str(monitor.plan.rule)),)))
    risk = "the mean loss of the answers"
    if monitor.plan.risk_kind == "generalized risk":
        risk = "the total loss of the answers, divided by the number of all predictions"
    terms = doc.define_terms(_GLOSSARY, risk=f"{monitor.plan.risk_kind}: {risk}")
    blocks.append(doc.glossary_section(terms))
    return blocks


_GLOSSARY: Final = {
    "Coverage": "The share of the predictions that the rule accepts.",
    "Risk": "The {risk}.",
    "Evidence": (
        "The logarithm of the wealth of a betting process against the guarantee, scaled so "
        "that an alarm is at 1. If nothing has changed, the probability that it ever reaches "
        "1 is at most the probability of a false alarm, however often the monitor is checked."
    ),
    "Prediction-powered": (
        "An estimate from the confidences of all answers, corrected with the answers whose "
        "labels were requested with known probabilities."
    ),
}
