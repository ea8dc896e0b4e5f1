"""Record that documents a decision rule for a safety review."""

from collections.abc import Iterator

from abstain.evaluation.rules import RuleChecks
from abstain.report import document as doc
from abstain.report.formatting import format_count, format_interval, format_value
from abstain.report.subjects.rule.sentences import (
    format_verdict,
    group_name,
    guarantee_sentences,
    rule_title,
)
from abstain.thresholds import RuleCheck

#: Maximum number of data sets that are listed.
_MAX_CHECKS = 8


def review_section(checks: RuleChecks, source: str) -> doc.Section:
    """Return a record for a safety review with space for a signature."""
    rows = [(doc.Span(name, "plain"), text) for name, text in _entries(checks, source)]
    table = doc.Table(
        (doc.Column("Item"), doc.Column("Entry", "words")),
        doc.single_group(rows),
        title="Record for a safety review",
        caption="To be completed by the reviewer.",
        layout="record",
    )
    return doc.Section("review", "Record for a safety review", (table,), nav_title="Review")


def _entries(checks: RuleChecks, source: str) -> Iterator[tuple[str, str]]:
    """Yield the labels and texts of the record, with empty fields for the reviewer."""
    rule = checks.rule
    if rule.n:
        data = f"{format_count(rule.n)} calibration samples, {format_count(rule.accepted)} answered"
        if rule.failures is not None and checks.is_binary:
            data += f", {format_count(rule.failures)} of them wrong"
        yield "Data", f"{source}: {data}" if source else data
    delta = "" if rule.delta is None else f", delta {rule.delta:g}"
    score = f" on “{rule.score}”" if rule.score else ""
    yield "Rule", f"{rule_title(rule)}{score}{delta}; exact thresholds in rule.json"
    for condition in checks.conditions:
        name = f"Answer if ({condition.group})" if condition.group else "Answer if"
        yield name, condition.text
    # A rule without a threshold has no sentences, and others may lack the expected coverage.
    for name, sentence in zip(("Guarantee", "Coverage"), guarantee_sentences(checks), strict=False):
        yield name, sentence
    yield "Assumptions", _assumptions(checks)
    for check in checks.checks[:_MAX_CHECKS]:
        yield "Check", _check_text(check)
    if not checks.checks:
        yield "Check", "not checked on other data"
    elif len(checks) > _MAX_CHECKS:
        yield "Check", f"{len(checks) - _MAX_CHECKS} more data sets in the tables"
    yield "Reviewed by", ""
    yield "Date", ""


def _assumptions(checks: RuleChecks) -> str:
    """Return the assumptions under which the guarantee of the rule holds."""
    rule = checks.rule
    if rule.guarantee == "none":
        return "None: the rule has no guarantee for new data."
    population = rule.population or "the calibration data"
    of_group = f" of their {group_name(rule)}" if rule.per else ""
    return (
        f"New samples are independent and come from the distribution of {population}{of_group}. "
        "Neither the model nor the score was fitted on the calibration data, and the rule was "
        "chosen before its result was seen."
    )


def _check_text(check: RuleCheck) -> str:
    interval = check.selective_risk_interval
    risk = ""
    if interval.exists:
        value = format_value(check.selective_risk, "percent")
        risk = f", risk {value} ({format_interval(interval.low, interval.high, 'percent')})"
    answered = f"{format_count(check.accepted)} of {format_count(check.n)} answered"
    return f"{check.name}: {answered}{risk}; {format_verdict(check.verdict)}"
