"""Rules that stand together, in sentences and tables: by group, or within several limits."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from abstain.evaluation.rules import RuleChecks
from abstain.plots.words import percent
from abstain.report import document as doc
from abstain.report.subjects.rule.words import (
    estimate,
    expected,
    facts,
    rule_sentences,
    target_said,
    threshold_said,
)
from abstain.report.words import listed
from abstain.thresholds import DecisionRule, RulePart
from abstain.thresholds.limits import ALONE

#: So many groups or limits are printed on a terminal, and named in a sentence.
_MOST: Final = 20
_NAMED: Final = 4
_ABOUT_APART: Final = (
    "The two groups farthest apart in how often they are turned away and in how often they are "
    "answered wrongly. Small: {level} intervals of the true largest difference and ratio, "
    "whichever groups these are, from the intervals of all groups together."
)


def sentences_of(checks: RuleChecks) -> list[str]:
    """Say the rule, its promise and what it was calibrated on."""
    rule = checks.rule
    if not rule.parts:
        return rule_sentences(checks)
    if not rule.attainable:
        return [*_unattainable(rule)]
    said = [_accept(rule), _left_out(rule), _promise(rule, binary=checks.binary)]
    return [sentence for sentence in (*said, expected(rule, binary=checks.binary)) if sentence]


def _accept(rule: DecisionRule) -> str:
    score = f"\u201c{rule.score}\u201d" if rule.score else "the confidence"
    if rule.per:
        return (
            f"Answer when {score} is at least the threshold of its {_what(rule)}; abstain below, "
            "and where there is none."
        )
    first = rule.parts[0].rule
    scale = f" ({first.units})" if first.units else ""
    return f"Answer when {score} is at least {threshold_said(first)}{scale}; abstain below."


def _what(rule: DecisionRule) -> str:
    return "predicted class" if rule.per == "prediction" else rule.per


def _left_out(rule: DecisionRule) -> str:
    left = [part.name for part in rule.parts if not part.rule.attainable]
    if not left:
        return ""
    names = listed(left[:_NAMED]) + (", ..." if len(left) > _NAMED else "")
    return (
        f"{len(left)} of {len(rule.parts)} groups have no threshold and are not answered: {names}."
    )


def _promise(rule: DecisionRule, *, binary: bool) -> str:
    if rule.guarantee == "none":
        return "Nothing is promised to any group: chance decides on new data."
    where = f"in the long run, on {rule.promised_for or 'new data like the calibration data'}"
    if not rule.per:
        sure = percent(round(1 - (rule.delta or 0.0), 10))
        held = [_limit(part.name, part.rule, binary=binary) for part in rule.parts if _asked(part)]
        more = f"; and {len(held) - _NAMED} more" if len(held) > _NAMED else ""
        return (
            f"Promised for at least {sure} of calibration sets like this one, all together: "
            f"{'; '.join(held[:_NAMED])}{more}; {where}."
        )
    what = target_said(rule.guarantee, rule.target or 0.0, binary=binary)
    if rule.in_expectation:
        return f"Promised in each group, on average over calibration sets: {what}, {where}."
    sure = percent(round(1 - (rule.delta or 0.0), 10))
    groups = "all groups together" if rule.joint else "each group by itself"
    return (
        f"Promised in each group that has a threshold, for at least {sure} of calibration sets "
        f"like this one, {groups}: {what}, {where}."
    )


def _asked(part: RulePart) -> bool:
    return part.rule.guarantee != "none"


def _limit(name: str, rule: DecisionRule, *, binary: bool) -> str:
    """Say one limit."""
    most = target_said(rule.guarantee, rule.target or 0.0, binary=binary)
    return most if name == "overall" else f"of {name.replace(':', ' ')}, {most}"


def _unattainable(rule: DecisionRule) -> Iterator[str]:
    yield (
        f"Unattainable: no {_what(rule)} has a threshold that could be certified."
        if rule.per
        else "Unattainable: no threshold could be certified to keep all limits."
    )
    # What could be had alone says little: what could not goes first.
    parts = sorted(rule.parts, key=lambda part: part.rule.reason.startswith(ALONE))
    for part in parts[:_NAMED]:
        yield f"{part.name}: {part.rule.reason}."
    if len(rule.parts) > _NAMED:
        yield f"The table has the other {len(rule.parts) - _NAMED}."
    yield "What would help: more calibration data, a larger risk, or a larger delta."


def facts_of(checks: RuleChecks) -> Iterable[tuple[str, str]]:
    """Return what a rule is, label and value."""
    rule = checks.rule
    if not rule.parts:
        return facts(rule)
    found = dict(facts(rule))
    found.pop("Certified bound", None)
    if rule.per:
        able = sum(part.rule.attainable for part in rule.parts)
        found["Threshold"] = f"one for each {_what(rule)}: {able} of {len(rule.parts)}"
    else:
        held = [f"{p.name} {p.rule.target:g}" for p in rule.parts if p.rule.target is not None]
        found["Target"] = ", ".join(held[:_NAMED]) + ", ..." * (len(held) > _NAMED)
    if rule.delta is not None:
        together = "together" if rule.joint else "each"
        found["Guaranteed"] = f"{rule.guarantee}, delta {rule.delta:g} {together}"
    return found.items()


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
        doc.Column(_what(rule).capitalize() if rule.per else "Risk of", "name"),
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
