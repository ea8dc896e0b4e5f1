"""Tables of the groups and limits of a rule, and of the differences between groups."""

from dataclasses import replace
from typing import Final

from abstain.evaluation.rules import RuleChecks
from abstain.plots.words import percent
from abstain.report import document as doc
from abstain.report.subjects.rule.words import (
    estimate,
    group_name,
    threshold_said,
)
from abstain.thresholds import DecisionRule, RulePart

#: So many groups or limits are printed on a terminal.
_MOST: Final = 20
_ABOUT_APART: Final = (
    "The two groups farthest apart in how often they are turned away and in how often they are "
    "answered wrongly. Small: {level} intervals of the true largest difference and ratio, "
    "whichever groups these are, from the intervals of all groups together."
)


def parts_section(rule: DecisionRule) -> list[doc.Block]:
    """Return what each group or limit has; nothing for a rule that has one promise."""
    if not rule.parts:
        return []
    title, nav = ("Its thresholds", "Thresholds") if rule.per else ("Its limits", "Limits")
    return [doc.Section("parts", title, (parts_table(rule),), nav=nav)]


def apart_section(checks: RuleChecks) -> list[doc.Block]:
    """Return how far apart groups are, where there are some."""
    table = apart_table(checks)
    if table is None:
        return []
    return [doc.Section("apart", "How far apart the groups are", (table,), nav="Groups")]


def parts_shown(rule: DecisionRule) -> list[doc.Block]:
    """Return the table of a terminal, and how much of it is left out."""
    more = len(rule.parts) - _MOST
    said = f"{more} more are in the rule: all are "
    left = doc.by_reader(f"{said}on the page of --out.", f"{said}among its .parts.", "about")
    table = replace(parts_table(rule, terminal=True), title="", caption="")
    return [doc.Prose(""), table, *left * (more > 0)]


def parts_table(rule: DecisionRule, *, terminal: bool = False) -> doc.Table:
    """Return a row for each group or limit: its threshold, and what the calibration data show."""
    shown = rule.parts[:_MOST] if terminal else rule.parts
    own = [doc.Column("Threshold", "number")] if rule.per else [doc.Column("Limit", "number")]
    why = any(part.rule.reason for part in shown)
    columns = (
        doc.Column(group_name(rule).capitalize() if rule.per else "Risk of", "name"),
        *own,
        doc.Column(doc.Label("Calibration samples", short="n"), "number"),
        doc.Column("Coverage", "number"),
        doc.Column("Selective risk", "number"),
        doc.Column("Delta", "number", only=doc.READ),
        *([doc.Column("Why none", only=doc.READ)] if why else []),
    )
    what = "threshold and promise" if rule.per else "limit"
    return doc.Table(
        columns,
        doc.rows_of(_part_row(part, by_group=bool(rule.per), why=why) for part in shown),
        title=f"Each {what}",
        caption="On the calibration data, which flatter it.",
    )


def _part_row(part: RulePart, *, by_group: bool, why: bool) -> doc.Row:
    rule = part.rule
    target = "-" if rule.target is None else f"{rule.target:g}"
    said = threshold_said(rule) if by_group else target
    cells = (
        part.name,
        said if rule.attainable or not by_group else doc.Span("none", "open", title=rule.reason),
        doc.Number(rule.n, form="count"),
        None if rule.coverage is None else doc.Number(rule.coverage, form="four"),
        None if rule.risk is None else doc.Number(rule.risk, form="four"),
        None if rule.delta is None else f"{rule.delta:.3g}",
        *([rule.reason] if why else []),
    )
    return doc.Row(cells)


def apart_table(checks: RuleChecks) -> doc.Table | None:
    """Return how far apart the groups of each data set are; None where there are none."""
    found = checks.disparities()
    if not (found and checks.rule.attainable):
        return None
    several = len({most.name for most in found}) > 1
    columns = (
        *([doc.Column("Data", "name")] if several else []),
        doc.Column("Of the groups", "name"),
        doc.Column("Highest"),
        doc.Column("Lowest"),
        doc.Column("Difference", "number"),
        doc.Column("Ratio", "number"),
    )
    rows = [
        doc.Row((
            *([most.name] if several else []),
            most.quantity.capitalize(),
            most.highest or "-",
            most.lowest or "-",
            estimate(most.difference, most.difference_interval),
            estimate(most.ratio, most.ratio_interval),
        ))
        for most in found
    ]  # fmt: skip
    return doc.Table(
        columns,
        doc.rows_of(rows),
        title="How far apart the groups are",
        caption=_ABOUT_APART.format(level=percent(checks.level)),
    )
