"""The document of a decision rule and its checks on other data."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final

from abstain.evaluation.rules import CALIBRATION, RuleChecks
from abstain.plots import DecisionRuleDisplay, RiskExcessDisplay
from abstain.plots.formatting import format_percent
from abstain.plots.verdicts import check_rule_checks
from abstain.report import document as doc
from abstain.report.formatting import build_remarks, format_count
from abstain.report.subjects.rule.groups import (
    disparity_section,
    disparity_table,
    parts_section,
    parts_summary,
)
from abstain.report.subjects.rule.sentences import (
    checks_sentences,
    facts,
    glossary_entries,
    interval_scope,
    keep_worst_groups,
    row_estimate,
    rule_sentences,
    rule_title,
    verdict_span,
)
from abstain.thresholds import DecisionRule

DEFAULT_TITLE = "Decision rule and its checks"
#: Maximum width of a column of names, in characters.
_MAX_NAME_WIDTH = 26
#: Maximum number of groups per data set in a terminal.
_MAX_GROUPS = 20
_USAGE_CODE: Final = """\
import abstain as ab

rule = ab.tables.load("rule.json")
answer = rule.apply(predictions)  # or logits=..., or confidences{group_argument}
# True: answer, False: abstain"""
_DESCRIPTION_BY_FIGURE = {
    "decision-rule": (
        "The diamond is the selected working point, and its bar extends to the certified bound. "
        "The dotted line is the target. The other points are the working points of the same "
        "threshold on other data."
    ),
    "risk-excess": (
        "Filled circles: the target holds; crosses: it is violated; hollow circles: inconclusive. "
        "The data sets are in input order. A gray line connects the severities of one shift."
    ),
}


def rule_document(checks: RuleChecks, options: doc.ReportOptions) -> doc.Document:
    """Return the document of a decision rule and its checks."""
    checks = check_rule_checks(checks)
    first_sentence, *further_sentences = (*rule_sentences(checks), *checks_sentences(checks))
    return doc.Document(
        options.title or DEFAULT_TITLE,
        "Decision rule",
        lambda: (
            doc.DeferredBlocks(partial(_summary_blocks, checks), role="summary"),
            *_sections(checks, options.command),
        ),
        verdict=(doc.Span(first_sentence, "strong"), *further_sentences),
        facts=(("Calibration data", options.source), *facts(checks.rule)),
        findings=build_remarks(checks.notes, options.notes, lambda _: ""),
        is_alarm=not checks.rule.attainable,
        name_width=min(
            max((len(row["name"]) for row in checks.rows()), default=8), _MAX_NAME_WIDTH
        ),
    )


def _sections(checks: RuleChecks, command: str) -> list[doc.Block]:
    figures = tuple(
        doc.Figure(key, display.title, display, _DESCRIPTION_BY_FIGURE[key])
        for key, display in rule_figures(checks)
    )
    return [
        *parts_section(checks.rule),
        doc.Section(
            "results", "Results on other data", tuple(_results_blocks(checks)), nav_title="Results"
        ),
        *disparity_section(checks),
        *([doc.Section("figures", "Figures", (doc.Box(figures, "figures"),))] * bool(figures)),
        doc.Section("rule", "Use the rule", tuple(_usage_blocks(checks.rule))),
        doc.Section("glossary", "Glossary", (doc.Glossary(glossary_entries(checks)),)),
        doc.reproduce_section(command),
    ]


def _results_blocks(checks: RuleChecks) -> Iterator[doc.Block]:
    if checks.rule.guarantee != "none":
        population = checks.rule.population or "data like the calibration data"
        yield doc.Prose(
            f"The guarantee applies to {population}. The table shows whether it also holds on "
            "other data, which may be shifted.",
            "lead",
        )
    else:
        yield doc.Prose(
            "Results of the threshold on each data set, compared with its target.", "lead"
        )
    rows = checks.rows()
    if not rows:
        yield doc.Prose("The rule was not checked on other data.")
        return
    yield _results_table(checks, rows)


def _results_table(checks: RuleChecks, rows: list[dict[str, Any]]) -> doc.Table:
    """Return a row for each data set and group; a risk without a target is a detail."""
    generalized = checks.rule.quantity == "generalized risk"
    is_detail_by_risk = {"Selective risk": not generalized, "Generalized risk": generalized}
    columns = (
        doc.Column("Data", "name"),
        doc.Column(doc.Label("Samples", short_text="n"), "number"),
        doc.Column("Accepted", "number", detail_level="column"),
        doc.Column("Coverage", "number"),
        *(
            doc.Column(n, "number", detail_level="" if s else "column")
            for n, s in is_detail_by_risk.items()
        ),
        doc.Column("Excess", "number", detail_level="intervals"),
        doc.Column("Result"),
    )
    level = format_percent(checks.level)
    return doc.Table(
        columns,
        doc.single_group(map(_row, rows)),
        title="Results on other data",
        caption=(
            f"Small print: {level} confidence intervals, {interval_scope(checks)}. Excess: values "
            "above 0 are worse than the target. Values are fractions."
        ),
        layout="leads",
    )


def _row(row: dict[str, Any]) -> doc.Row:
    cells = (
        row["subgroup"] or row["name"],
        doc.Number(row["n"], number_format="count"),
        doc.Number(row["accepted"], number_format="count"),
        *(row_estimate(row, name) for name in ("coverage", "selective_risk", "generalized_risk")),
        row_estimate(row, "excess", "signed"),
        verdict_span(row),
    )
    if row["subgroup"]:
        return doc.Row(cells, "group")
    return doc.Row(cells, "marked" if row["role"] == CALIBRATION else "")


def rule_figures(
    checks: RuleChecks,
) -> list[tuple[str, DecisionRuleDisplay | RiskExcessDisplay]]:
    """Return the names and displays of the figures for which there are data."""
    figures: list[tuple[str, DecisionRuleDisplay | RiskExcessDisplay]] = []
    rule_display = DecisionRuleDisplay.from_checks(checks)
    if checks.curve is not None or (checks.rule.attainable and checks.rows()):
        figures.append(("decision-rule", rule_display))
    if checks.checks and checks.rule.attainable and checks.rule.quantity:
        figures.append(("risk-excess", RiskExcessDisplay.from_checks(checks)))
    return figures


def _usage_blocks(rule: DecisionRule) -> Iterator[doc.Block]:
    if rule.attainable:
        score = f"\u201c{rule.score}\u201d" if rule.score else "the same score"
        grouped = bool(rule.per)
        group_suffix = " of its group" if grouped else ""
        yield doc.Prose(
            f"The rule answers if the confidence is at least the threshold{group_suffix}, and "
            f"abstains otherwise. The confidence must be {score}, computed in the same way as for "
            "the calibration data.",
            "lead",
        )
        yield doc.Code(_USAGE_CODE.format(group_argument=", with group=..." if grouped else ""))
    else:
        yield doc.Prose("This rule has no threshold, so it rejects all samples.", "lead")
    yield doc.Collapsible("The rule as JSON", (doc.Code(rule.to_json()),))


def _summary_blocks(checks: RuleChecks) -> Iterator[doc.Block]:
    sentences = (*rule_sentences(checks), " ".join(checks_sentences(checks)))
    yield from doc.summary_paragraphs(sentences, is_alarm=not checks.rule.attainable)
    yield doc.Prose(f"Rule: {rule_title(checks.rule)}.", "about")
    if checks.rule.parts:
        yield from parts_summary(checks.rule)
    rows, n_omitted = keep_worst_groups(checks.rows(), _MAX_GROUPS)
    if rows:
        yield replace(_results_table(checks, rows), title="")
        if n_omitted:
            groups = f"{format_count(n_omitted)} groups"
            text = f"{groups} with a lower excess are omitted. All rows are in "
            yield doc.SeeAlso(text, "the files of --out.", ".frame().")
    if (disparities := disparity_table(checks)) is not None:
        yield replace(disparities, title="")
    if checks.checks:
        level = format_percent(checks.level)
        excess_meaning = {
            "coverage": "target minus coverage",
            "cost": "mean cost minus the cost of abstaining on all samples",
        }.get(checks.rule.quantity, "risk minus target")
        yield doc.Prose(
            f"In brackets: {level} confidence intervals, {interval_scope(checks)}. Excess: "
            f"{excess_meaning}; values above 0 are worse. Values are fractions.",
            "notes",
        )
    for key, display in rule_figures(checks)[:1]:
        yield doc.Figure(key, display.title, display, _DESCRIPTION_BY_FIGURE[key])
