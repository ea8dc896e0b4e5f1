"""The document of a decision rule and its checks on other data."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from abstain.evaluation.rules import CALIBRATION, RuleChecks
from abstain.plots import DecisionRuleDisplay, RiskExcessDisplay
from abstain.plots.formatting import format_percent
from abstain.plots.verdicts import check_rule_checks
from abstain.report import document as doc
from abstain.report.formatting import build_remarks, format_count
from abstain.report.subjects.rule.sentences import (
    checks_sentences,
    estimate,
    facts,
    format_threshold,
    glossary_entries,
    group_name,
    interval_scope,
    keep_worst_groups,
    row_estimate,
    rule_sentences,
    rule_title,
    verdict_span,
)
from abstain.thresholds import DecisionRule, RulePart

DEFAULT_TITLE = "Decision rule and its checks"
#: Maximum width of a column of names, in characters.
_MAX_NAME_WIDTH = 26
#: Maximum number of groups per data set in a terminal.
_MAX_GROUPS = 20
#: Maximum number of groups or limits that are printed in a terminal.
_MAX_PARTS: Final = 20
_DISPARITY_CAPTION: Final = (
    "The groups with the largest difference in the rejection rate and in the risk. Small print: "
    "{level} confidence intervals of the largest difference and ratio of any two groups, from "
    "simultaneous intervals of all groups."
)
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
    return doc.Document(
        options.title or DEFAULT_TITLE,
        ("Decision rule",),
        lambda: (
            doc.DeferredBlocks(partial(_summary_blocks, checks), role="summary"),
            *_sections(checks),
        ),
        answer=(*rule_sentences(checks), *checks_sentences(checks)),
        facts=(("Calibration data", options.source), *facts(checks.rule)),
        findings=build_remarks(checks.notes, options.notes, lambda _: ""),
        command=options.command,
        is_alarm=not checks.rule.attainable,
        name_width=min(
            max((len(row["name"]) for row in checks.rows()), default=8), _MAX_NAME_WIDTH
        ),
    )


def _sections(checks: RuleChecks) -> Iterator[doc.Block]:
    rule = checks.rule
    if rule.parts:
        title = "Thresholds" if rule.per else "Limits"
        yield doc.Section("parts", title, (_parts_table(rule, rule.parts),))
    yield doc.Section(
        "results", "Results on other data", tuple(_results_blocks(checks)), nav_title="Results"
    )
    if disparities := _disparity_table(checks):
        title = "Disparity between groups"
        yield doc.Section("disparity", title, (disparities,), nav_title="Disparity")
    yield from doc.figures_section("Figures", _figure_blocks(checks))
    yield doc.Section("rule", "Use the rule", tuple(_usage_blocks(rule)))
    yield doc.glossary_section(glossary_entries(checks))


def _results_blocks(checks: RuleChecks) -> Iterator[doc.Block]:
    lead = "Results of the threshold on each data set, compared with its target."
    if checks.rule.guarantee != "none":
        population = checks.rule.population or "data like the calibration data"
        lead = (
            f"The guarantee applies to {population}. The table shows whether it also holds on "
            "other data, which may be shifted."
        )
    yield doc.Prose(lead, "lead")
    if rows := checks.rows():
        yield _results_table(checks, rows)
    else:
        yield doc.Prose("The rule was not checked on other data.")


def _results_table(checks: RuleChecks, rows: list[dict[str, Any]]) -> doc.Table:
    """Return a row for each data set and group; a risk without a target is a detail."""
    is_generalized = checks.rule.quantity == "generalized risk"
    level = format_percent(checks.level)
    return doc.Table(
        (
            doc.Column("Data", "name"),
            doc.number_column(doc.Label("Samples", short_text="n")),
            doc.Column("Accepted", "number", detail_level="column"),
            doc.number_column("Coverage"),
            doc.Column("Selective risk", "number", detail_level="column" if is_generalized else ""),
            doc.Column(
                "Generalized risk", "number", detail_level="" if is_generalized else "column"
            ),
            doc.Column("Excess", "number", detail_level="intervals"),
            doc.Column("Result"),
        ),
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


def _figure_blocks(checks: RuleChecks) -> list[doc.Figure]:
    return [
        doc.Figure(key, display.title, display, _DESCRIPTION_BY_FIGURE[key])
        for key, display in rule_figures(checks)
    ]


def _usage_blocks(rule: DecisionRule) -> Iterator[doc.Block]:
    if rule.attainable:
        score = f"“{rule.score}”" if rule.score else "the same score"
        group_suffix = " of its group" if rule.per else ""
        yield doc.Prose(
            f"The rule answers if the confidence is at least the threshold{group_suffix}, and "
            f"abstains otherwise. The confidence must be {score}, computed in the same way as for "
            "the calibration data.",
            "lead",
        )
        yield doc.Code(_USAGE_CODE.format(group_argument=", with group=..." if rule.per else ""))
    else:
        yield doc.Prose("This rule has no threshold, so it rejects all samples.", "lead")
    yield doc.Collapsible("The rule as JSON", (doc.Code(rule.to_json()),))


def _summary_blocks(checks: RuleChecks) -> Iterator[doc.Block]:
    yield doc.Prose(f"Rule: {rule_title(checks.rule)}.", "about")
    if parts := checks.rule.parts:
        yield replace(_parts_table(checks.rule, parts[:_MAX_PARTS]), title="")
        if len(parts) > _MAX_PARTS:
            text = f"{len(parts) - _MAX_PARTS} more rows are "
            yield doc.SeeAlso(text, "in the report (--out).", "in .parts of the rule.")
    rows, n_omitted = keep_worst_groups(checks.rows(), _MAX_GROUPS)
    if rows:
        yield replace(_results_table(checks, rows), title="")
        if n_omitted:
            groups = f"{format_count(n_omitted)} groups"
            text = f"{groups} with a lower excess are omitted. All rows are in "
            yield doc.SeeAlso(text, "the files of --out.", ".frame().")
    if disparities := _disparity_table(checks):
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
    yield from _figure_blocks(checks)[:1]


# ------------------------------------------------------------------------ groups and limits
def _parts_table(rule: DecisionRule, parts: Sequence[RulePart]) -> doc.Table:
    """Return a row for each group or limit: threshold, and numbers on the calibration data."""
    columns = [
        doc.Column(group_name(rule).capitalize() if rule.per else "Risk of", "name"),
        doc.number_column("Threshold" if rule.per else "Limit"),
        doc.number_column(doc.Label("Calibration samples", short_text="n")),
        *map(doc.number_column, ("Coverage", "Selective risk")),
        doc.Column("Delta", "number", detail_level="column"),
    ]
    has_reasons = any(part.rule.reason for part in parts)
    if has_reasons:
        columns.append(doc.Column("Reason", detail_level="column"))
    rows = []
    for part in parts:
        part_rule = part.rule
        target: doc.Cell = "-" if part_rule.target is None else f"{part_rule.target:g}"
        if rule.per:
            target = doc.Span("none", "open", tooltip=part_rule.reason)
            if part_rule.attainable:
                target = format_threshold(part_rule)
        cells = [
            part.name,
            target,
            doc.Number(part_rule.n, number_format="count"),
            _optional_number(part_rule.coverage),
            _optional_number(part_rule.risk),
            None if part_rule.delta is None else f"{part_rule.delta:.3g}",
        ]
        rows.append([*cells, part_rule.reason] if has_reasons else cells)
    return doc.Table(
        tuple(columns),
        doc.single_group(rows),
        title="Thresholds of the groups" if rule.per else "Limits",
        caption="Measured on the calibration data, so optimistic.",
    )


def _optional_number(value: float | None) -> doc.Number | None:
    return None if value is None else doc.Number(value, number_format="four_decimals")


def _disparity_table(checks: RuleChecks) -> doc.Table | None:
    """Return the disparity between the groups of each data set; None without groups."""
    disparities = checks.disparities()
    if not (disparities and checks.rule.attainable):
        return None
    rows = [
        [
            disparity.name,
            disparity.quantity.capitalize(),
            disparity.highest or "-",
            disparity.lowest or "-",
            estimate(disparity.difference, disparity.difference_interval),
            estimate(disparity.ratio, disparity.ratio_interval),
        ]
        for disparity in disparities
    ]
    columns = [
        doc.Column("Data", "name"),
        doc.Column("Quantity", "name"),
        doc.Column("Highest group"),
        doc.Column("Lowest group"),
        doc.number_column("Difference"),
        doc.number_column("Ratio"),
    ]
    if len({disparity.name for disparity in disparities}) == 1:
        columns, rows = columns[1:], [row[1:] for row in rows]
    return doc.Table(
        tuple(columns),
        doc.single_group(rows),
        title="Disparity between groups",
        caption=_DISPARITY_CAPTION.format(level=format_percent(checks.level)),
    )
