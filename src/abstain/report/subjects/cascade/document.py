"""A cascade and what it keeps elsewhere, as a document."""

import math
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from abstain.evaluation.cascade import CascadeChecks
from abstain.plots import CascadeDisplay
from abstain.plots.words import percent, returned
from abstain.report import document as doc
from abstain.report.subjects.cascade.words import (
    cascade_sentences,
    cascade_words,
    facts,
    threshold_said,
)
from abstain.report.subjects.rule.words import estimate, row_number, verdict_sentences, verdict_span
from abstain.report.words import remarks
from abstain.thresholds import StageCheck
from abstain.thresholds.cascade import PERSON, Cascade

TITLE = "Who answers, and what that keeps"
_LONGEST = 26
_ABOUT: Final = (
    "Blue dots are certified, the diamond is the cheapest of them. Thin lines are what each model "
    "reaches without the other, at its best thresholds; a disc is a model that answers everything. "
    "Squares are other data."
)


def cascade_document(checks: CascadeChecks, origin: doc.Origin) -> doc.Document:
    """Say a cascade, its promise and what came of it."""
    known = returned(checks, CascadeChecks, "checks", "check_cascade")
    first, *rest = (*cascade_sentences(known), *_verdicts(known))
    return doc.Document(
        origin.title or TITLE,
        "Cascade",
        partial(_blocks, known, origin.command),
        verdict=(doc.Span(first, "strong"), *rest),
        facts=(("Calibration data", origin.source), *facts(known.cascade)),
        findings=remarks(known.notes, origin.notes, lambda _: ""),
        alarm=not known.cascade.attainable,
        longest=min(max((len(row["name"]) for row in known.rows()), default=8), _LONGEST),
    )


def _verdicts(checks: CascadeChecks) -> list[str]:
    return verdict_sentences(checks.checks) if checks.cascade.attainable else []


def cascade_figures(checks: CascadeChecks) -> list[tuple[str, CascadeDisplay]]:
    """Return the figure, where the calibration data are known."""
    display = CascadeDisplay.from_checks(checks)
    return [("cascade", display)] if checks.frontier is not None else []


def _blocks(checks: CascadeChecks, command: str) -> list[doc.Block]:
    figures = tuple(
        doc.Figure(key, display.title, display, _ABOUT, role="key")
        for key, display in cascade_figures(checks)
    )
    sentences = (*cascade_sentences(checks), " ".join(_verdicts(checks)))
    return [
        *doc.answer(sentences, alarm=not checks.cascade.attainable),
        doc.Section("stages", "Who answers", (_stages(checks),), nav="Stages"),
        doc.Section("results", "What it keeps", tuple(_results(checks)), nav="Results"),
        *([doc.Section("figures", "The picture", (doc.Box(figures, "figures"),))] * bool(figures)),
        doc.Section("use", "Use the cascade", tuple(_use(checks.cascade))),
        doc.Section("glossary", "Glossary", (doc.Glossary(cascade_words(checks)),)),
        doc.reproduce(command),
    ]


def _stages(checks: CascadeChecks) -> doc.Table:
    """Return a row for each stage: its threshold, its price, and what it answers where."""
    c = checks.cascade
    columns = (
        doc.Column("Stage", "name"),
        doc.Column("From", "number"),
        doc.Column("Cost", "number"),
        doc.Column("Calibration", "number"),
        *(doc.Column(check.name or "data", "number") for check in checks.checks),
    )
    prices = [*(stage.cost for stage in c.stages), c.plan.person_cost]
    starts = [*(threshold_said(stage) for stage in c.stages), "the rest"]
    rows = [
        doc.Row(
            (
                name,
                starts[place],
                doc.Number(prices[place], form="six"),
                doc.Number(c.answered[place], form="four"),
                *(estimate(s.share, s.share_interval) for s in _at(checks, place)),
            )
        )
        for place, name in enumerate(c.names)
    ]
    return doc.Table(
        columns,
        doc.rows_of(rows),
        title="Share of the samples that each answers",
        caption="The confidence from which each answers, what it costs a sample, and the share of "
        "the samples that it answers, with intervals.",
        look="leads",
        role="key",
    )


def _at(checks: CascadeChecks, index: int) -> list[StageCheck]:
    """Return one stage on each data set."""
    return [check.stages[index] for check in checks.checks]


def _results(checks: CascadeChecks) -> Iterator[doc.Block]:
    yield doc.Prose(
        "The guarantee is about data like the calibration data. Where other data have shifted, "
        "this table says whether it still held.",
        "lead",
    )
    yield _table(checks)
    if checks.checks:
        level = percent(checks.level)
        note = f"In brackets: {level} intervals. Risk and load are fractions."
        yield doc.Prose(note, "notes", role="summary")
    if not all(math.isnan(check.risk) for check in checks.checks):
        yield _wrong(checks)


def _wrong(checks: CascadeChecks) -> doc.Table:
    """Return the risk of each stage on each data set."""
    columns = (
        doc.Column("Stage", "name"),
        *(doc.Column(check.name, "number") for check in checks.checks),
    )
    rows = [
        doc.Row((name, *(estimate(s.risk, s.risk_interval) for s in _at(checks, place))))
        for place, name in enumerate(checks.cascade.names)
    ]
    said = "how many are wrong" if checks.is_binary else "their mean loss"
    return doc.Table(
        columns,
        doc.rows_of(rows),
        title="How often each is wrong",
        caption=f"Of the answers of each, {said}, with intervals.",
        look="leads",
    )


def _table(checks: CascadeChecks) -> doc.Table:
    limited = checks.cascade.plan.limited
    columns = (
        doc.Column("Data", "name"),
        doc.Column(doc.Label("Samples", short="n"), "number"),
        doc.Column("Risk", "number"),
        doc.Column(f"To the {PERSON}", "number"),
        doc.Column("Cost", "number", detail="intervals"),
        *([doc.Column("Days over", "number", detail="column")] * (_days(checks))),
        doc.Column("Verdict"),
    )
    said = "Risk and load are judged together. " if limited else ""
    return doc.Table(
        columns,
        doc.rows_of(_row(row, days=_days(checks)) for row in checks.rows()),
        title="What it keeps",
        caption=(
            f"Small: {percent(checks.level)} intervals. {said}Risk and load are fractions; the "
            "cost is in the unit of the costs given."
        ),
        look="leads",
        role="key",
    )


def _days(checks: CascadeChecks) -> bool:
    return checks.cascade.plan.reviews is not None


def _row(row: dict[str, Any], *, days: bool) -> doc.Row:
    chosen = row["verdict"] == "chosen here"
    cells = (
        row["name"],
        doc.Number(row["n"], form="count"),
        *(row_number(row, name) for name in ("risk", "reviews")),
        row_number(row, "cost", "number"),
        *([row_number(row, "days_over")] * days),
        verdict_span(row),
    )
    return doc.Row(cells, "marked" if chosen else "")


def _use(cascade: Cascade) -> Iterator[doc.Block]:
    if cascade.attainable:
        names = [stage.name for stage in cascade.stages]
        lines = ["import abstain as ab", "", 'cascade = ab.load("cascade.json")']
        lines += ["# The place in cascade.names of who answers each sample; confidences in order."]
        lines += [f"who = cascade.decide({', '.join(map(_argument, names))})"]
        yield doc.Prose(
            "Ask the first model; where it does not answer, the next. Confidences of samples that "
            "an earlier stage answers are not looked at and may be NaN.",
            "lead",
        )
        yield doc.Code("\n".join(lines))
    else:
        yield doc.Prose(f"There are no thresholds: everything goes to the {PERSON}.", "lead")
    yield doc.Fold("The cascade as JSON", (doc.Code(cascade.to_json()),))


def _argument(name: str) -> str:
    word = "".join(letter if letter.isalnum() else "_" for letter in name)
    return f"confidence_of_{word}"
