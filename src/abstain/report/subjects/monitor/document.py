"""How a rule in use stands, as a document."""

import math
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from abstain.errors import InputError
from abstain.monitoring import Monitor
from abstain.plots import Series, SeriesDisplay
from abstain.plots.words import percent
from abstain.report import document as doc
from abstain.report.words import count

TITLE: Final = "A rule in use"
_TITLES: Final = {"coverage": "Coverage", "confidence": "Confidences", "risk": "Risk"}
_KINDS: Final[dict[str, Any]] = {"quiet": "good", "alarm": "bad", "off": "muted"}
_OFF: Final = {
    "coverage": "no calibration samples are recorded in the rule, and no limits were given",
    "confidence": "the calibration data were not given",
    "risk": "the rule promises no risk, and none was given",
}
_ABOUT: Final = {
    "coverage": "The share answered since the watch began, with what it may be at every moment at "
    "once; between the dashed lines it is as on calibration.",
    "risk": "The mean loss of the answers whose labels are known, with what it may be at every "
    "moment at once, whenever one looks. The dotted line is what is promised.",
    "evidence": "What the bets of each watch own, on a logarithmic axis on which the start is 0 "
    "and the alarm 1. While nothing changes it reaches 1 with the chance of a false alarm alone.",
}


def monitor_document(monitor: Monitor, origin: doc.Origin) -> doc.Document:
    """Say how a rule in use stands."""
    known = _checked(monitor)
    first, *rest = _sentences(known)
    return doc.Document(
        origin.title or TITLE,
        "Monitoring",
        partial(_blocks, known, origin.command),
        verdict=(doc.Span(first, "strong"), *rest),
        facts=tuple(_facts(known, origin.source)),
        findings=tuple(doc.Remark("note", said) for said in (*_remarks(known), *origin.notes)),
        alarm=bool(known.standing),
    )


def _checked(monitor: object) -> Monitor:
    if not isinstance(monitor, Monitor):
        raise InputError(f"`result` must be a Monitor; got {type(monitor).__name__}")
    return monitor


def _sentences(monitor: Monitor) -> Iterator[str]:
    standing = monitor.standing
    if not standing:
        yield (
            f"No alarm: {_predictions(monitor.predictions)} "
            f"{'gives' if monitor.predictions == 1 else 'give'} no evidence that the rule has "
            "stopped keeping its promise."
        )
    for alarm in standing:
        yield f"Alarm after {_predictions(alarm.at)}: {alarm.reason}."


def _predictions(number: int) -> str:
    return f"{count(number)} prediction{'s' if number != 1 else ''}"


def _facts(monitor: Monitor, source: str) -> Iterator[tuple[str, str]]:
    plan, seen = monitor.plan, monitor.seen
    yield "Rule", f"answer from {plan.rule.threshold:.6g} on"
    yield "Stream", source
    yield "Predictions", count(monitor.predictions)
    yield "Watched", ", ".join(plan.watched)
    yield "False alarms", f"at most {percent(plan.delta)} of all streams ever give one"
    yield "Calibration", "" if plan.reference is None else f"{count(plan.reference.n)} samples"
    if plan.label_share is not None:
        yield "Labels asked for", f"{percent(plan.label_share)} of the answers"
        yield "Labels awaited", count(seen.requests.waiting)


def _remarks(monitor: Monitor) -> Iterator[str]:
    """Yield what was only counted, where it matters."""
    counts, plan = monitor.seen.counts, monitor.plan
    for name, said in _OFF.items():
        if name not in plan.watched:
            yield f"The {_TITLES[name].lower()} watch is off: {said}."
    told = {
        "predictions were sent again and not counted again": counts.replayed,
        "labels were of a prediction that had one": counts.repeated,
        "labels were not asked for, and were not taken": counts.unasked,
        "labels were of predictions that were not answered": counts.abstained,
        "labels came before their predictions, or these are forgotten": len(monitor.seen.early),
        "labels were asked for and given up: the watch takes these answers as right, the estimates "
        "take those that came for all": monitor.seen.requests.missing,
    }
    yield from (f"{count(n)} {said}." for said, n in told.items() if n)
    if plan.label_share is None and monitor.watches[2].tally.n:
        yield (
            "Labels came by themselves: the risk is that of all answers, and its alarm as rare as "
            "said, if which labels come has nothing to do with who was right, nor with the "
            "confidence."
        )


# ---------------------------------------------------------------------------------- the tables
def _table(monitor: Monitor) -> doc.Table:
    columns = (
        doc.Column("Watch", "name"),
        doc.Column(doc.Label("Seen", short="n"), "number"),
        doc.Column("So far", "number"),
        doc.Column("Lately", "number"),
        doc.Column("Held to", "number"),
        doc.Column("Evidence", "number"),
        doc.Column("State"),
    )
    return doc.Table(
        columns,
        doc.rows_of(map(_row, monitor.rows())),
        title="The watches",
        caption=(
            "Small: where the truth lies, at every moment at once. Lately: over about 200 "
            "values. Of the confidences the mean rank among those of calibration. Evidence: 0 at "
            "the start, 1 is the alarm. Values are fractions."
        ),
        look="leads",
        role="key",
    )


def _row(row: dict[str, Any]) -> doc.Row:
    evidence = math.log(row["capital"]) / math.log(row["bar"]) if row["capital"] > 0 else math.nan
    cells = (
        _TITLES[row["watch"]],
        doc.Number(row["n"], form="count"),
        _number(row["value"], row["low"], row["high"]),
        _number(row["lately"]),
        _held(row),
        None if math.isnan(evidence) else doc.Number(evidence, form="two"),
        doc.Span(row["state"], _KINDS[row["state"]]),
    )
    return doc.Row(cells)


def _held(row: dict[str, Any]) -> str:
    least, most = row["least"], row["most"]
    if math.isnan(most):
        return ""
    if math.isnan(least):
        return f"\u2264 {most:.4g}"
    return f"{most:.4g}" if least == most else f"{least:.4g} to {most:.4g}"


def _number(value: float, low: float = doc.NAN, high: float = doc.NAN) -> doc.Number | None:
    return None if math.isnan(value) else doc.Number(value, low, high, form="four")


def _estimates(monitor: Monitor) -> Iterator[doc.Block]:
    found = monitor.estimate()
    if found is None:
        return
    rows = (
        ("labels and predictions", found.value, found.interval),
        ("labels alone", found.labels_only, found.labels_only_interval),
    )
    yield doc.Table(
        (doc.Column("Risk by", "name"), doc.Column("Estimate", "number")),
        doc.rows_of(doc.Row((name, _number(v, i.low, i.high))) for name, v, i in rows),
        title="The risk by the labels that were asked for",
        caption=(
            f"{count(found.n_labeled)} labels of {count(found.n_samples)} answers. Small: 95 % "
            "intervals for one look, by the normal distribution; that of the watch holds at every "
            "look."
        ),
        look="leads",
        role="key",
    )


def _alarms(monitor: Monitor) -> Iterator[doc.Block]:
    if not monitor.alarms:
        yield doc.Prose("No alarm was given.")
        return
    rows = (
        (
            doc.Number(a.at, form="count"),
            _TITLES[a.watch],
            doc.Span("reset", "muted") if a.acknowledged else doc.Span("stands", "bad"),
            a.reason,
        )
        for a in monitor.alarms
    )
    yield doc.Table(
        (
            doc.Column("After", "number"),
            doc.Column("Watch"),
            doc.Column("State"),
            doc.Column("Reason", "text"),
        ),
        doc.rows_of(map(doc.Row, rows)),
        title="Alarms",
        look="leads",
    )


# ---------------------------------------------------------------------------------- the figures
def monitor_figures(monitor: Monitor) -> list[tuple[str, SeriesDisplay]]:
    """Return the figures that have something to show, each with its name."""
    known = _checked(monitor)
    rows, plan = known.points(), known.plan
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
    found = [
        (
            "coverage",
            _display((_banded(rows, "coverage"), *limits), "Coverage over time", "Coverage"),
        )
    ]
    if known.watches[2].tally.n:
        held = {} if plan.max_risk is None else {"": plan.max_risk}
        drawn = _display(
            (_banded(rows, "risk"),), "The risk against the promise", "Risk", held, "promised"
        )
        found.append(("risk", drawn))
    lines = tuple(
        Series(_TITLES[name].lower(), *_line(rows, f"{name}_evidence")) for name in plan.watched
    )
    title = "How close each watch is to its alarm"
    return [*found, ("evidence", _display(lines, title, "Evidence", {"": 1.0}, "alarm"))]


def _display(
    series: tuple[Series, ...],
    title: str,
    y: str,
    level: dict[str, float] | None = None,
    said: str = "",
) -> SeriesDisplay:
    return SeriesDisplay(
        series,
        title,
        "Predictions and labels seen",
        y,
        log_x=False,
        level=level or {},
        level_name=said,
    )


def _line(rows: list[dict[str, float]], name: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return tuple(row["events"] for row in rows), tuple(row[name] for row in rows)


def _banded(rows: list[dict[str, float]], name: str) -> Series:
    low, high = (tuple(row[f"{name}_{end}"] for row in rows) for end in ("low", "high"))
    return Series("so far", *_line(rows, name), low, high)


# ---------------------------------------------------------------------------------- the page
def _blocks(monitor: Monitor, command: str) -> list[doc.Block]:
    figures = tuple(
        doc.Figure(key, display.title, display, _ABOUT[key], role="" if i else "key")
        for i, (key, display) in enumerate(monitor_figures(monitor))
    )
    drawn = doc.Section("figures", "Over time", (doc.Box(figures, "figures"),), nav="Figures")
    return [
        *doc.answer(_sentences(monitor), alarm=bool(monitor.standing)),
        doc.Section("watches", "The watches", (_table(monitor), *_estimates(monitor))),
        doc.Section("alarms", "Alarms", tuple(_alarms(monitor))),
        *([drawn] if figures else []),
        doc.Section("rule", "The rule", (doc.Prose(str(monitor.plan.rule)),)),
        doc.Section("glossary", "Glossary", (doc.Glossary(_words(monitor)),)),
        doc.reproduce(command),
    ]


def _words(monitor: Monitor) -> tuple[doc.Entry, ...]:
    risk = "its mean loss over the answers"
    if monitor.plan.kind == "generalized risk":
        risk = "the loss of the answers per prediction, answered or not"
    return (
        doc.Entry("Coverage", "The share of the predictions that the rule answers."),
        doc.Entry("Risk", f"The {monitor.plan.kind}: {risk}."),
        doc.Entry(
            "Evidence",
            "What bets against the promise won. However often one looks, it passes 1 by chance "
            "alone in at most the said share of all streams.",
        ),
        doc.Entry(
            "Prediction-powered",
            "An estimate from what the confidences say of all answers, corrected by the few whose "
            "labels were asked for with known chances.",
        ),
    )
