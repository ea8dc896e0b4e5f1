"""Record that documents a decision rule for a safety review."""

from collections.abc import Iterator

import abstain as ab
from abstain.evaluation.rules import RuleChecks
from abstain.evaluation.rules.outcomes import AnswerOutcomes
from abstain.report import document as doc
from abstain.report.formatting import format_count, format_interval, format_value
from abstain.report.subjects.rule.sentences import (
    format_verdict,
    group_name,
    groups_verdict_text,
    guarantee_sentences,
    rule_title,
)
from abstain.report.subjects.rule.tables import row_name, symbol_note
from abstain.thresholds import RuleCheck

#: Maximum number of data sets that are listed.
_MAX_CHECKS = 8
#: Maximum number of groups and limits of a data set that are listed.
_MAX_ROWS = 20


def review_section(checks: RuleChecks, options: doc.ReportOptions) -> doc.Section:
    """Return a record for a safety review, with space for a signature."""
    rows = [(doc.Span(name, "plain"), text) for name, text in _entries(checks, options)]
    table = doc.Table(
        (doc.Column("Item"), doc.Column("Entry", "words")),
        doc.single_group(rows),
        title="Record for a safety review",
        caption="To be completed by the reviewer.",
        layout="record",
    )
    return doc.Section("review", "Record for a safety review", (table,), nav_title="Review")


def _entries(checks: RuleChecks, options: doc.ReportOptions) -> Iterator[tuple[str, str]]:
    """Yield the labels and texts of the record, with empty fields for the reviewer."""
    rule, source = checks.rule, options.source
    if rule.n:
        data = f"{format_count(rule.n)} calibration samples, {format_count(rule.accepted)} answered"
        if rule.failures is not None and checks.is_binary:
            data += f", {format_count(rule.failures)} of them wrong"
        yield "Data", f"{source}: {data}" if source else data
    delta = "" if rule.delta is None else f", delta {rule.delta:g}"
    score = f" on “{rule.score}”" if rule.score else ""
    yield "Rule", f"{rule_title(rule)}{score}{delta}; exact thresholds in rule.json"
    if symbols := symbol_note(checks):
        yield "Symbols", symbols
    for condition in checks.conditions:
        name = f"Answer if ({condition.group})" if condition.group else "Answer if"
        yield name, condition.text
    # A rule without a threshold has no sentences, and others may lack the expected coverage.
    for name, sentence in zip(("Guarantee", "Coverage"), guarantee_sentences(checks), strict=False):
        yield name, sentence
    yield "Assumptions", _assumptions(checks)
    for index in range(min(len(checks), _MAX_CHECKS)):
        yield from _check_entries(checks, index)
    if not checks.checks:
        yield "Check", "not checked on other data"
    elif len(checks) > _MAX_CHECKS:
        yield "Check", f"{len(checks) - _MAX_CHECKS} more data sets in the tables"
    yield "Software", f"abstain {ab.__version__}"
    if options.command:
        yield "Command", options.command
    for name, sha256 in options.input_hashes.items():
        yield "Input file", f"{name}, SHA-256 {sha256}"
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


def _check_entries(checks: RuleChecks, index: int) -> Iterator[tuple[str, str]]:
    """Yield the results of a data set and of its groups."""
    (check, outcome), *groups = checks.results_of(index)
    group_checks = [group for group, _ in groups]
    verdict = groups_verdict_text(check, group_checks)
    yield "Check", f"{check.name}: {_result_text(check, outcome, checks.positive)}; {verdict}"
    # The limits of a group without a threshold have no results.
    rows = [result for result in groups if not result[0].limit or result[0].rule.attainable]
    for group, group_outcome in rows[:_MAX_ROWS]:
        text = format_verdict(group.verdict)
        if group.rule.attainable:
            outcome_of_group = None if group.limit else group_outcome
            text = f"{_result_text(group, outcome_of_group, checks.positive)}; {text}"
        name = row_name(checks, group)
        name = f"{group.group}, {name}" if group.limit else name
        yield "Check", f"{check.name}, {name}: {text}"
    if len(rows) > _MAX_ROWS:
        yield "Check", f"{check.name}: {len(rows) - _MAX_ROWS} more groups and limits in the tables"


def _result_text(check: RuleCheck, outcome: AnswerOutcomes | None, positive: str) -> str:
    """Return the answered samples, the risk and the errors of the positive class as text."""
    interval = check.selective_risk_interval
    risk = ""
    if interval.exists:
        value = format_value(check.selective_risk, "percent")
        risk = f", risk {value} ({format_interval(interval.low, interval.high, 'percent')})"
    answered = f"{format_count(check.accepted)} of {format_count(check.n)} answered"
    classes = ""
    if outcome is not None and outcome.classes is not None and outcome.classes.sensitivity.total:
        sensitivity = outcome.classes.sensitivity
        low, high = sensitivity.interval.low, sensitivity.interval.high
        classes = (
            f", sensitivity {format_value(sensitivity.value, 'percent')} "
            f"({format_interval(low, high, 'percent')}), "
            f"{format_count(outcome.classes.false_negatives.count)} of "
            f"{format_count(sensitivity.total)} answered samples of class {positive} are false "
            "negatives"
        )
    return f"{answered}{risk}{classes}"
