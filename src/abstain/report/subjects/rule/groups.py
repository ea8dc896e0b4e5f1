"""Tables of the groups and limits of a decision rule, and of the disparity between groups."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from abstain.evaluation.rules import RuleChecks
from abstain.plots.formatting import format_percent
from abstain.report import document as doc
from abstain.report.subjects.rule.sentences import (
    estimate,
    format_threshold,
    group_name,
)
from abstain.thresholds import DecisionRule, RulePart

#: Maximum number of groups or limits that are printed in a terminal.
_MAX_PARTS: Final = 20
_DISPARITY_CAPTION: Final = (
    "The groups with the largest difference in the rejection rate and in the risk. Small print: "
    "{level} confidence intervals of the largest difference and ratio of any two groups, from "
    "simultaneous intervals of all groups."
)


def parts_section(rule: DecisionRule) -> list[doc.Block]:
    """Return the section on the groups or limits; nothing for a rule without them."""
    if not rule.parts:
        return []
    title, nav = ("Thresholds", "Thresholds") if rule.per else ("Limits", "Limits")
    return [doc.Section("parts", title, (parts_table(rule, rule.parts),), nav_title=nav)]


def disparity_section(checks: RuleChecks) -> list[doc.Block]:
    """Return the section on the disparity between groups; nothing without groups."""
    table = disparity_table(checks)
    if table is None:
        return []
    return [doc.Section("disparity", "Disparity between groups", (table,), nav_title="Disparity")]


def parts_summary(rule: DecisionRule) -> list[doc.Block]:
    """Return the first rows of the table of groups or limits, and the number of remaining rows."""
    table = replace(parts_table(rule, rule.parts[:_MAX_PARTS]), title="")
    n_more = len(rule.parts) - _MAX_PARTS
    text = f"{n_more} more rows are "
    see_also = doc.SeeAlso(text, "in the report (--out).", "in .parts of the rule.")
    return [table, see_also] if n_more > 0 else [table]


def parts_table(rule: DecisionRule, parts: Sequence[RulePart]) -> doc.Table:
    """Return a row for each group or limit: threshold, and numbers on the calibration data."""
    target_columns = (
        [doc.Column("Threshold", "number")] if rule.per else [doc.Column("Limit", "number")]
    )
    has_reasons = any(part.rule.reason for part in parts)
    columns = (
        doc.Column(group_name(rule).capitalize() if rule.per else "Risk of", "name"),
        *target_columns,
        doc.Column(doc.Label("Calibration samples", short_text="n"), "number"),
        doc.Column("Coverage", "number"),
        doc.Column("Selective risk", "number"),
        doc.Column("Delta", "number", detail_level="column"),
        *([doc.Column("Reason", detail_level="column")] if has_reasons else []),
    )
    part_noun = "Thresholds of the groups" if rule.per else "Limits"
    return doc.Table(
        columns,
        doc.single_group(
            _part_row(part, by_group=bool(rule.per), has_reason=has_reasons) for part in parts
        ),
        title=part_noun,
        caption="Measured on the calibration data, so optimistic.",
    )


def _part_row(part: RulePart, *, by_group: bool, has_reason: bool) -> doc.Row:
    rule = part.rule
    target = "-" if rule.target is None else f"{rule.target:g}"
    target_text = format_threshold(rule) if by_group else target
    cells = (
        part.name,
        target_text
        if rule.attainable or not by_group
        else doc.Span("none", "open", tooltip=rule.reason),
        doc.Number(rule.n, number_format="count"),
        None if rule.coverage is None else doc.Number(rule.coverage, number_format="four_decimals"),
        None if rule.risk is None else doc.Number(rule.risk, number_format="four_decimals"),
        None if rule.delta is None else f"{rule.delta:.3g}",
        *([rule.reason] if has_reason else []),
    )
    return doc.Row(cells)


def disparity_table(checks: RuleChecks) -> doc.Table | None:
    """Return the disparity between the groups of each data set; None without groups."""
    disparities = checks.disparities()
    if not (disparities and checks.rule.attainable):
        return None
    has_several_data_sets = len({disparity.name for disparity in disparities}) > 1
    columns = (
        *([doc.Column("Data", "name")] if has_several_data_sets else []),
        doc.Column("Quantity", "name"),
        doc.Column("Highest group"),
        doc.Column("Lowest group"),
        doc.Column("Difference", "number"),
        doc.Column("Ratio", "number"),
    )
    rows = [
        doc.Row((
            *([disparity.name] if has_several_data_sets else []),
            disparity.quantity.capitalize(),
            disparity.highest or "-",
            disparity.lowest or "-",
            estimate(disparity.difference, disparity.difference_interval),
            estimate(disparity.ratio, disparity.ratio_interval),
        ))
        for disparity in disparities
    ]  # fmt: skip
    return doc.Table(
        columns,
        doc.single_group(rows),
        title="Disparity between groups",
        caption=_DISPARITY_CAPTION.format(level=format_percent(checks.level)),
    )
