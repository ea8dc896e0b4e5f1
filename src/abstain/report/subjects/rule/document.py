"""A decision rule and what it keeps elsewhere, as a document."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final

from abstain.evaluation.rules import CALIBRATION, RuleChecks
from abstain.plots import DecisionRuleDisplay, RiskExcessDisplay
from abstain.plots.verdicts import checked_rule
from abstain.plots.words import percent
from abstain.report import document as doc
from abstain.report.subjects.rule.sets import (
    apart_section,
    apart_table,
    parts_section,
    parts_shown,
)
from abstain.report.subjects.rule.words import (
    checks_sentences,
    facts,
    row_number,
    rule_sentences,
    rule_title,
    rule_words,
    together_said,
    verdict_span,
    worst_groups,
)
from abstain.report.words import count, remarks
from abstain.thresholds import DecisionRule

TITLE = "A threshold and what it keeps"
#: Letters of a name that a column has room for.
_LONGEST = 26
#: So many groups of a data set are printed on a terminal.
_MOST_GROUPS = 20
_USE: Final = """\
import abstain as ab

rule = ab.tables.load("rule.json")
answer = rule.apply(predictions)  # or logits=..., or confidences{beside}
# True: answer, False: abstain"""
_ABOUT = {
    "decision-rule": (
        "The diamond is the point chosen, its bar reaches to what is certified; the dotted line is "
        "the target. Other data stand where the same threshold puts them."
    ),
    "risk-excess": (
        "Discs keep to the target, crosses break it, hollow discs leave it open. In the order "
        "given; a gray line joins one shift at several severities."
    ),
}


def rule_document(checks: RuleChecks, origin: doc.Origin) -> doc.Document:
    """Say a rule, its promise and what came of it."""
    known = checked_rule(checks)
    first, *rest = (*rule_sentences(known), *checks_sentences(known))
    return doc.Document(
        origin.title or TITLE,
        "Decision rule",
        lambda: (
            doc.BlocksOfRole(partial(_summary, known), role="summary"),
            *_sections(known, origin.command),
        ),
        verdict=(doc.Span(first, "strong"), *rest),
        facts=(("Calibration data", origin.source), *facts(known.rule)),
        findings=remarks(known.notes, origin.notes, lambda _: ""),
        alarm=not known.rule.attainable,
        longest=min(max((len(row["name"]) for row in known.rows()), default=8), _LONGEST),
    )


def _sections(checks: RuleChecks, command: str) -> list[doc.Block]:
    figures = tuple(
        doc.Figure(key, display.title, display, _ABOUT[key])
        for key, display in rule_figures(checks)
    )
    return [
        *parts_section(checks.rule),
        doc.Section("results", "What it keeps", tuple(_results(checks)), nav="Results"),
        *apart_section(checks),
        *(
            [doc.Section("figures", "The picture", (doc.Box(figures, "figures"),), nav="Figures")]
            * bool(figures)
        ),
        doc.Section("rule", "Use the rule", tuple(_use(checks.rule))),
        doc.Section("glossary", "Glossary", (doc.Glossary(rule_words(checks)),)),
        doc.reproduce(command),
    ]


def _results(checks: RuleChecks) -> Iterator[doc.Block]:
    if checks.rule.guarantee != "none":
        whom = checks.rule.promised_for or "data like the calibration data"
        yield doc.Prose(
            f"The guarantee is about {whom}. Where other data have shifted, this table says "
            "whether it still held.",
            "lead",
        )
    else:
        yield doc.Prose("What the threshold gives on each data set, beside its target.", "lead")
    rows = checks.rows()
    if not rows:
        yield doc.Prose("The rule was not checked on any data.")
        return
    yield _table(checks, rows)


def _table(checks: RuleChecks, rows: list[dict[str, Any]]) -> doc.Table:
    """Return a row for each data set and group; the risk without a target is a detail."""
    generalized = checks.rule.quantity == "generalized risk"
    risks = {"Selective risk": not generalized, "Generalized risk": generalized}
    columns = (
        doc.Column("Data", "name"),
        doc.Column(doc.Label("Samples", short="n"), "number"),
        doc.Column("Answered", "number", detail="column"),
        doc.Column("Coverage", "number"),
        *(doc.Column(n, "number", detail="" if s else "column") for n, s in risks.items()),
        doc.Column("Excess", "number", detail="intervals"),
        doc.Column("Verdict"),
    )
    level = percent(checks.level)
    return doc.Table(
        columns,
        doc.rows_of(map(_row, rows)),
        title="What it keeps",
        caption=(
            f"Small: {level} intervals, {together_said(checks)}. Excess: above 0 is worse than "
            "the target. Values are fractions."
        ),
        look="leads",
    )


def _row(row: dict[str, Any]) -> doc.Row:
    cells = (
        row["subgroup"] or row["name"],
        doc.Number(row["n"], form="count"),
        doc.Number(row["accepted"], form="count"),
        *(row_number(row, name) for name in ("coverage", "selective_risk", "generalized_risk")),
        row_number(row, "excess", "signed"),
        verdict_span(row),
    )
    if row["subgroup"]:
        return doc.Row(cells, "group")
    return doc.Row(cells, "marked" if row["role"] == CALIBRATION else "")


def rule_figures(
    checks: RuleChecks,
) -> list[tuple[str, DecisionRuleDisplay | RiskExcessDisplay]]:
    """Return the figures that have something to show, each with its name."""
    found: list[tuple[str, DecisionRuleDisplay | RiskExcessDisplay]] = []
    rule = DecisionRuleDisplay.from_checks(checks)
    if checks.curve is not None or (checks.rule.attainable and checks.rows()):
        found.append(("decision-rule", rule))
    if checks.checks and checks.rule.attainable and checks.rule.quantity:
        found.append(("risk-excess", RiskExcessDisplay.from_checks(checks)))
    return found


def _use(rule: DecisionRule) -> Iterator[doc.Block]:
    if rule.attainable:
        score = f"\u201c{rule.score}\u201d" if rule.score else "the same one"
        grouped = bool(rule.per)
        own = " of its group" if grouped else ""
        yield doc.Prose(
            f"Answer where the confidence is at least the threshold{own}, abstain elsewhere. The "
            f"confidence must be {score}, computed as on the calibration data. Fit and use compare "
            "alike, with \u2265.",
            "lead",
        )
        yield doc.Code(_USE.format(beside=", with group=..." if grouped else ""))
    else:
        yield doc.Prose("This rule has no threshold: it answers nothing.", "lead")
    yield doc.Fold("The rule as JSON", (doc.Code(rule.to_json()),))


def _summary(checks: RuleChecks) -> Iterator[doc.Block]:
    sentences = (*rule_sentences(checks), " ".join(checks_sentences(checks)))
    yield from doc.answer(sentences, alarm=not checks.rule.attainable)
    yield doc.Prose(f"Rule: {rule_title(checks.rule)}.", "about")
    if checks.rule.parts:
        yield from parts_shown(checks.rule)
    rows, left = worst_groups(checks.rows(), _MOST_GROUPS)
    if rows:
        yield replace(_table(checks, rows), title="")
        if left:
            more = f"{count(left)} more groups, none surer to be worse: all rows are in "
            yield doc.More(more, "the results of --out.", ".frame().")
    if (apart := apart_table(checks)) is not None:
        yield replace(apart, title="")
    if checks.checks:
        level = percent(checks.level)
        worse = {
            "coverage": "target minus coverage",
            "cost": "mean cost minus that of abstaining on everything",
        }.get(checks.rule.quantity, "risk minus target")
        yield doc.Prose(
            f"In brackets: {level} intervals, {together_said(checks)}. Excess: {worse}; above 0 "
            "is worse. Values are fractions.",
            "notes",
        )
    for key, display in rule_figures(checks)[:1]:
        yield doc.Figure(key, display.title, display, _ABOUT[key])
