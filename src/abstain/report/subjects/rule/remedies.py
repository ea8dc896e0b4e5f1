"""Options with which groups without a threshold may obtain one."""

import shlex
from collections.abc import Iterator
from typing import Final

from abstain.evaluation.rules import RuleChecks
from abstain.evaluation.rules.remedies import AlternativeRule, Remedies
from abstain.evaluation.rules.subsets import OVERALL
from abstain.plots.formatting import format_percent
from abstain.report import document as doc
from abstain.report.formatting import format_count
from abstain.report.subjects.rule.sentences import (
    format_limit_name,
    format_target,
    group_name,
    rule_title,
)
from abstain.thresholds.rule import PREDICTION
from abstain.thresholds.start_tests import StartTest

_SIMILAR_SAMPLES: Final = (
    "There are {n} samples now. The limits can be certified if further samples have the "
    "confidences and error rates of these."
)


def remedies_section(checks: RuleChecks) -> Iterator[doc.Section]:
    """Yield the section with the options for the groups without a threshold."""
    if not checks.remedies:
        return
    groups = [remedies.group for remedies in checks.remedies]
    title = "What would give a threshold"
    if groups[0]:
        title = "Groups without a threshold: what would give one"
        if len(groups) == 1:
            title = f"{groups[0]}: what would give a threshold"
    yield doc.Section("remedies", title, tuple(_blocks(checks)), nav_title="Options")


def _blocks(checks: RuleChecks) -> Iterator[doc.Block]:
    """Yield a table of options and an explanation of the failed tests."""
    columns = [doc.Column("Change"), doc.Column("Rule"), doc.Column("Calibration data")]
    rows = []
    for remedies in checks.remedies:
        prefix = [remedies.group] if checks.rule.per else []
        rows += [[*prefix, *cells] for cells in _options(remedies, binary=checks.is_binary)]
    if checks.rule.per:
        group_column = doc.Column(group_name(checks.rule).capitalize(), "name", blank_repeats=True)
        columns.insert(0, group_column)
    if rows:
        yield doc.Table(
            tuple(columns),
            doc.single_group(rows),
            title="Options for a threshold",
            caption=doc.Span("Options for a threshold", "strong"),
            layout="leads",
        )
    for remedies in checks.remedies:
        yield doc.Prose(_test_sentence(remedies), "notes")
    if any(remedies.alternatives for remedies in checks.remedies):
        yield doc.Prose(_alternatives_note(checks.remedies[0]), "notes")
        if checks.rule.per:
            yield doc.Prose(_scope_note(checks), "notes")


def _alternatives_note(remedies: Remedies) -> str:
    """Return a sentence with the condition and the delta of the alternative rules."""
    delta = remedies.rule.delta or 0.0
    alternative_deltas = [alternative.rule.delta for alternative in remedies.alternatives]
    additional = next((value for value in alternative_deltas if value), 0.0)
    return (
        "The other rules are second attempts on the same calibration data. Each spends its own "
        f"delta of {additional:g} in addition to {delta:g}, and is valid only if it was fixed "
        "before the data were seen. Otherwise, repeat it on new calibration data."
    )


def _scope_note(checks: RuleChecks) -> str:
    """Return how an option is applied to all groups or to one group."""
    per = checks.rule.per
    text = f"The options of the command abstain threshold apply to each {group_name(checks.rule)}."
    if checks.rule.joint:
        text = "These values of delta are those of one group."
    if per == PREDICTION:
        return text
    remedies = next(remedies for remedies in checks.remedies if remedies.alternatives)
    condition = shlex.quote(f"{per}={remedies.group}")
    return (
        f"{text} To change only the rule of {remedies.group}, choose a separate rule: replace "
        f"--per {shlex.quote(per)} by --calibrate {condition}."
    )


def _options(remedies: Remedies, *, binary: bool) -> Iterator[list[doc.Cell]]:
    """Yield a row with more calibration samples, and a row for each second attempt.

    If there are none, the row states which limits were tried.
    """
    test = remedies.next_test
    if test is not None and remedies.n_more is not None and remedies.n_required is not None:
        condition = (
            f"At {format_count(remedies.n_required)} samples, the rule tests the most confident "
            f"{format_count(test.n_tested)}. It sets a threshold if {_allowed(test)}; "
            f"{_observed(test, remedies)}."
        )
        change = f"{format_count(remedies.n_more)} more calibration samples"
        yield [change, "depends on the new samples", condition]
    elif remedies.n_more is not None:
        yield [
            f"about {format_count(remedies.n_more)} more calibration samples",
            "depends on the new samples",
            _SIMILAR_SAMPLES.format(n=format_count(remedies.rule.n)),
        ]
    for alternative in remedies.alternatives:
        change = f"{_change(alternative, remedies, binary=binary)}: {_flags(alternative, remedies)}"
        yield [change, alternative.condition.text, _counts(alternative)]
    if remedies.n_more is None and not remedies.alternatives:
        yield ["no option found", "no threshold", _tried_limits(remedies, binary=binary)]


def _tried_limits(remedies: Remedies, *, binary: bool) -> str:
    """Return which limits give no threshold, and how many samples are wrong."""
    largest = [
        f"{format_percent(round(limit, 6))}"
        + ("" if name == OVERALL else f" for {format_limit_name(name, binary=binary)}")
        for name, limit in remedies.max_limits
    ]
    n_wrong, n = format_count(remedies.n_wrong), format_count(remedies.rule.n)
    verb = "is" if remedies.n_wrong == 1 else "are"
    return (
        f"Limits up to {' and '.join(largest)} give no threshold; {n_wrong} of {n} samples {verb} "
        "wrong"
    )


def _flags(alternative: AlternativeRule, remedies: Remedies) -> str:
    """Return the options of `abstain threshold` that replace those of the present rule."""
    rule = alternative.rule
    parts = [(part.name, part.rule.target) for part in rule.parts] or [(OVERALL, rule.target)]
    flags = []
    for name, target in parts:
        if target is None:
            continue
        risk = f"{round(target, 10):g}"
        if name == OVERALL:
            flags.append(f"--max-risk {risk}")
        else:
            flags.append(f"--limit {shlex.quote(f'{name}={risk}')}")
    if rule.method != remedies.rule.method:
        flags.append(f"--method {rule.method}")
    if alternative.starts:
        flags.append(f"--starts {' '.join(f'{start:g}' for start in alternative.starts)}")
    return " ".join([*flags, f"--delta {rule.delta:g}"])


def _allowed(test: StartTest) -> str:
    if test.max_wrong == 0:
        return "none of them is wrong"
    return f"at most {format_count(test.max_wrong)} of them are wrong"


def _observed(test: StartTest, remedies: Remedies) -> str:
    if test.n_wrong is None:
        return f"there are {format_count(remedies.rule.n)} samples now"
    verb = "is" if test.n_wrong == 1 else "are"
    n_wrong = "none" if test.n_wrong == 0 else format_count(test.n_wrong)
    return f"of the present most confident {format_count(test.n_tested)}, {n_wrong} {verb} wrong"


def _change(alternative: AlternativeRule, remedies: Remedies, *, binary: bool) -> str:
    if alternative.starts:
        starts = " and ".join(format_percent(start) for start in alternative.starts)
        return f"Start at a coverage of {starts}"
    if alternative.rule.parts:
        old_targets = {part.name: part.rule.target for part in remedies.rule.parts}
        changes = [
            f"{format_limit_name(part.name, binary=binary)} {format_target(part.rule)} instead of "
            f"{format_percent(old_target)}"
            for part in alternative.rule.parts
            if (old_target := old_targets[part.name]) is not None and part.rule.target != old_target
        ]
        return f"Limit {', '.join(changes)}"
    limit = format_target(alternative.rule)
    if alternative.rule.method != remedies.rule.method:
        return f"{rule_title(alternative.rule)}, limit {limit}"
    return f"Limit {limit} instead of {format_target(remedies.rule)}"


def _counts(alternative: AlternativeRule) -> str:
    rule = alternative.rule
    n_wrong = "none" if not rule.failures else format_count(rule.failures)
    return f"{format_count(rule.accepted)} of {format_count(rule.n)} answered, {n_wrong} wrong"


def _test_sentence(remedies: Remedies) -> str:
    """Return a sentence with the observed and the allowed numbers of errors of each test."""
    name = f"{remedies.group}: " if remedies.group else ""
    if not remedies.tests:
        return f"{name}{remedies.rule.reason}."
    tests = "; ".join(
        f"of {format_count(test.n_tested)}, {format_count(test.n_wrong or 0)} wrong, "
        f"{format_count(test.max_wrong)} allowed"
        for test in remedies.tests
    )
    limit = format_percent(round(remedies.rule.target or 0.0, 6))
    return f"{name}the rule tests the most confident answers for a limit of {limit}: {tests}."
