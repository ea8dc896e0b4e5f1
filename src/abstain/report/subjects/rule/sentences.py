"""Sentences on the threshold, the guarantee and the check results of a decision rule."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from abstain.evaluation.rules import RuleChecks
from abstain.evaluation.rules.subsets import LABEL, OVERALL
from abstain.inference.intervals import Interval
from abstain.plots.formatting import capitalize_first, format_percent
from abstain.plots.verdicts import total_verdict
from abstain.report.document import NAN, Number, NumberFormat, Span
from abstain.report.formatting import (
    format_count,
    format_number,
    format_share,
    format_value,
    join_quoted,
    use_minus_sign,
)
from abstain.thresholds import RULES, DecisionRule, RuleCheck
from abstain.thresholds.limits import CERTIFIABLE_ALONE
from abstain.thresholds.rule import PREDICTION
from abstain.thresholds.rule_check import Verdict, worst_verdict
from abstain.typing import Scale

_LABEL_BY_VERDICT: Final = {
    "holds": "holds",
    "broken": "violated",
    "cannot tell": "inconclusive",
    "nothing accepted": "nothing accepted",
    "unattainable": "no threshold",
    "no target": "no target",
    "chosen here": "calibration",
}

#: Verdicts that leave open whether a target holds, as the verdict of a data set and its groups.
_UNDECIDED: Final[dict[str, Verdict]] = {"nothing accepted": "cannot tell"}

#: Maximum number of groups or limits in a sentence.
_MAX_NAMES: Final = 4

#: A symbol for each verdict, so that readers recognize the verdict without color.
_SYMBOL_BY_VERDICT: Final = {"holds": "\u25cf", "broken": "\u2716", "cannot tell": "\u25cb"}


def rule_title(rule: DecisionRule) -> str:
    """Return the title of the rule."""
    return RULES[rule.method].title if rule.method in RULES else "User-defined threshold"


def format_verdict(verdict: str) -> str:
    """Format a check result with its symbol."""
    label = _LABEL_BY_VERDICT.get(verdict, verdict)
    return f"{_SYMBOL_BY_VERDICT[verdict]} {label}" if verdict in _SYMBOL_BY_VERDICT else label


def groups_verdict_text(check: RuleCheck, groups: Sequence[RuleCheck]) -> str:
    """Return the verdict of the total and, if it differs, that of all groups with its causes."""
    total = format_verdict(total_verdict(check))
    if not check.excess_verdict or check.excess_verdict == check.verdict:
        return total
    causes = [
        group.subgroup
        for group in groups
        if check.verdict in {group.verdict, _UNDECIDED.get(group.verdict)}
    ]
    causes_text = f" because of {_join_names(causes)}" if causes else ""
    return f"total: {total}; all groups: {format_verdict(check.verdict)}{causes_text}"


def verdict_span(row: Mapping[str, Any]) -> Span:
    """Return a table cell with the check result of a row."""
    kinds: dict[str, Literal["good", "bad"]] = {"holds": "good", "broken": "bad"}
    verdict = row["verdict"]
    return Span(format_verdict(verdict), kinds.get(verdict, "open"), tooltip=row.get("note", ""))


def row_estimate(
    row: Mapping[str, Any], name: str, number_format: NumberFormat = "four_decimals"
) -> Number | None:
    """Return a cell with a quantity of a row and its interval, or None if the quantity is NaN."""
    if math.isnan(row[name]):
        return None
    return Number(
        row[name],
        row.get(f"{name}_low", NAN),
        row.get(f"{name}_high", NAN),
        number_format=number_format,
    )


def estimate(value: float, interval: Interval) -> Number | None:
    """Return a cell with an estimate and its interval, or None if the estimate is NaN."""
    if math.isnan(value):
        return None
    return Number(value, interval.low, interval.high, number_format="four_decimals")


def answer_sentences(checks: RuleChecks) -> list[str]:
    """Return sentences on when the rule answers and how many of its answers are wrong."""
    rule = checks.rule
    if not rule.attainable:
        sentences = _unattainable_sentences(rule, binary=checks.is_binary)
        if rule.parts:
            sentences = _unattainable_parts(rule)
        # The section with the options contains the reasons of the groups or limits.
        if rule.parts and checks.remedies:
            sentences = [sentences[0], sentences[-1]]
        if not any(r.alternatives or r.n_more is not None for r in checks.remedies):
            return sentences
        # The table of options replaces the general remedies.
        sentences = sentences[:-1]
        return [*sentences, "A table lists changes that would give a threshold."]
    return [*_acceptance_sentences(checks), *_result_sentences(checks)]


def _acceptance_sentences(checks: RuleChecks) -> Iterator[str]:
    """Yield a sentence with the condition for an answer, or with the groups with a threshold."""
    rule = checks.rule
    if not rule.per:
        yield f"Answer if {_condition_text(checks)}; otherwise abstain."
        return
    rejected = [part.name for part in rule.parts if not part.rule.attainable]
    noun = group_name(rule)
    if not rejected:
        yield f"Each {noun} has its own threshold."
        return
    n_answered = len(rule.parts) - len(rejected)
    verb = "has" if n_answered == 1 else "have"
    yield (
        f"{n_answered} of {len(rule.parts)} groups {verb} a threshold; the rule abstains on all "
        f"samples of {_join_names(rejected)}."
    )


def _condition_text(checks: RuleChecks) -> str:
    """Return the condition for an answer, with the meaning of p, if there is one threshold."""
    rule = checks.rule
    condition = checks.condition_of("")
    if condition is None or not condition.threshold:
        return f"“{rule.score or 'confidence'}” is at least {format_threshold(rule)}"
    if condition.symbol != "p":
        scale = {"unknown": " (on a scale that is not recorded)", "probability": ""}
        return f"“{condition.symbol}” \u2265 {condition.threshold}{scale.get(rule.scale, '')}"
    if rule.scale == "unknown":
        return f"{condition.text} (the scale is not recorded and assumed to be log-odds)"
    return condition.text


def _join_names(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    if len(names) > _MAX_NAMES:
        return f"{', '.join(names[:_MAX_NAMES])} and {len(names) - _MAX_NAMES} more"
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _result_sentences(checks: RuleChecks) -> Iterator[str]:
    """Yield sentences on wrong answers and on the target, if there is a single data set."""
    rule = checks.rule
    outcome = checks.outcomes[0][0] if len(checks) == 1 and checks.outcomes else None
    if outcome is not None and outcome.wrong.total:
        limit = ""
        if rule.limits:
            limit = f"; {_limits_text(rule, binary=checks.is_binary)}"
        elif rule.target is not None and rule.quantity == "selective risk":
            limit = f"; the limit is {format_target(rule)}"
        share = format_value(outcome.wrong.value, "percent")
        yield (
            f"On {checks.checks[0].name}, {format_count(outcome.wrong.count)} of "
            f"{format_count(outcome.wrong.total)} answers are wrong ({share}){limit}."
        )
    if len(checks) == 1 and any(checks.groups) and rule.quantity != "cost":
        yield from _group_sentences(checks)
    else:
        yield from checks_sentences(checks)


def _limits_text(rule: DecisionRule, *, binary: bool) -> str:
    """Return a clause with the first limits of a rule, such as "the limits are 5% for ..."."""
    limits = []
    for part in rule.limits:
        if part.rule.target is None:
            continue
        scope = "of all answers"
        if part.name != OVERALL:
            scope = f"for {format_limit_name(part.name, binary=binary)}"
            scope = scope.replace("FN of", "false negatives of")
        limits.append(f"{format_target(part.rule)} {scope}")
    verb = "limit is" if len(limits) == 1 else "limits are"
    return f"the {verb} {_join_names(limits)}"


def _group_sentences(checks: RuleChecks) -> Iterator[str]:
    """Yield sentences that name the groups for which the target holds."""
    verdicts_by_name: dict[str, list[Verdict]] = {}
    for check in checks.all_checks():
        verdict = total_verdict(check)
        verdict = _UNDECIDED.get(verdict, verdict)
        verdicts_by_name.setdefault(check.group, []).append(verdict)
    names_by_verdict: dict[str, list[str]] = {}
    for name, verdicts in verdicts_by_name.items():
        # The verdict of a group with several limits is the worst verdict of its limits.
        is_limit = bool(name and checks.rule.limits and not checks.rule.per)
        text = format_limit_name(name, binary=checks.is_binary) if is_limit else name
        names_by_verdict.setdefault(worst_verdict(verdicts), []).append(text)
    noun = "limit" if checks.rule.quantity != "coverage" else "target"
    n_limits = sum(part.rule.target is not None for part in checks.rule.limits)
    has_limits = bool(checks.rule.per) and n_limits > 1
    hold = "s hold" if has_limits else " holds"
    beginning_by_verdict = {
        "broken": "A limit is violated" if has_limits else f"The {noun} is violated",
        "holds": "The limits hold" if has_limits else f"The {noun} holds",
        "cannot tell": (f"There are too few answers to decide whether the {noun}{hold}"),
    }
    for verdict_key, beginning in beginning_by_verdict.items():
        names = names_by_verdict.get(verdict_key, [])
        if names:
            yield f"{beginning} {_format_scope(names)}."


def _format_scope(names: Sequence[str]) -> str:
    """Return a text such as "overall and for A and B". An empty name stands for "overall"."""
    groups = [name for name in names if name]
    if not groups:
        return "overall"
    groups_text = f"for {_join_names(groups)}"
    return groups_text if len(groups) == len(names) else f"overall and {groups_text}"


def format_target(rule: DecisionRule) -> str:
    """Format the target as a percentage, or a cost as a number."""
    if rule.target is None:
        return "none"
    return format_percent(round(rule.target, 6)) if rule.quantity != "cost" else f"{rule.target:g}"


def guarantee_sentences(checks: RuleChecks) -> list[str]:
    """Describe the guarantee of a rule with a threshold, and its coverage in calibration."""
    rule, binary = checks.rule, checks.is_binary
    if not rule.attainable:
        return []
    describe_guarantee = _parts_guarantee_sentence if rule.parts else _guarantee_sentence
    sentences = [
        describe_guarantee(rule, binary=binary),
        _expected_coverage_sentence(rule, binary=binary),
    ]
    return [sentence for sentence in sentences if sentence]


def group_name(rule: DecisionRule) -> str:
    """Return the noun for the groups of a rule."""
    return "predicted class" if rule.per == "prediction" else rule.per


def _parts_guarantee_sentence(rule: DecisionRule, *, binary: bool) -> str:
    """Return sentences on the guarantee for each group, or on the limits with a guarantee."""
    if rule.guarantee == "none":
        return "There is no guarantee for any group on new data."
    population_clause = f"for {rule.population or 'new data like the calibration data'}"
    probability = format_percent(round(1 - (rule.delta or 0.0), 10))
    if not rule.per:
        return (
            f"Joint guarantee {population_clause}, with a probability of at least {probability} "
            f"over calibration sets: {_limits_clause(rule, binary=binary)}."
        )
    if rule.limits:
        scope = "" if rule.joint else " in each group"
        also_joint = " and all groups" if rule.joint else ""
        return (
            f"Guarantee for each group with a threshold, {population_clause}: "
            f"{_limits_clause(rule, binary=binary)}. All limits{also_joint} hold jointly{scope} "
            f"with a probability of at least {probability} over calibration sets."
        )
    target = target_clause(rule.guarantee, rule.target or 0.0, binary=binary)
    if rule.in_expectation:
        return (
            f"Guarantee for each group, on average over calibration sets: {target}, "
            f"{population_clause}."
        )
    scope = "for all groups jointly" if rule.joint else "for each group separately"
    return (
        f"Guarantee for each group with a threshold: {target}, {population_clause}. It holds with "
        f"a probability of at least {probability} over calibration sets, {scope}."
    )


def format_limit_name(name: str, *, binary: bool) -> str:
    """Return the name of a limit in words, such as "FN of cat" for "label:cat".

    With 0/1 losses, the wrong answers of a true class are its false negatives.
    """
    kind, _, subset = name.partition(":")
    if not subset:
        return name
    if kind == LABEL:
        return f"FN of {subset}" if binary else f"true class {subset}"
    return f"predicted {subset}" if kind == PREDICTION else f"{kind} {subset}"


def limit_clause(name: str, quantity: str, target: float, *, binary: bool) -> str:
    """Return a limit of a subset as a clause, which says what the limit counts."""
    kind, _, subset = name.partition(":")
    if not subset:
        return target_clause(quantity, target, binary=binary)
    share = format_percent(target)
    if binary and kind == LABEL:
        samples = "samples" if quantity == "generalized risk" else "answered samples"
        return (
            f"of the {samples} of class {subset}, at most {share} are answered with another class "
            "(false negatives)"
        )
    subset_text = {LABEL: f"samples of class {subset}", PREDICTION: f"the prediction {subset}"}
    scope = subset_text.get(kind, f"{kind} {subset}")
    return f"for {scope}, {target_clause(quantity, target, binary=binary)}"


def _limits_clause(rule: DecisionRule, *, binary: bool) -> str:
    """Return clauses with the limits of a threshold, or of the threshold of each group."""
    limits = []
    for part in rule.limits:
        if part.rule.guarantee == "none":
            continue
        target = part.rule.target or 0.0
        limits.append(limit_clause(part.name, part.rule.guarantee, target, binary=binary))
    remaining = f"; and {len(limits) - _MAX_NAMES} more" if len(limits) > _MAX_NAMES else ""
    return f"{'; '.join(limits[:_MAX_NAMES])}{remaining}"


def _unattainable_parts(rule: DecisionRule) -> list[str]:
    """Return sentences with the reasons why no threshold could be certified."""
    sentences = ["Unattainable: no threshold could be certified for all limits."]
    if rule.per:
        sentences = [f"Unattainable: no threshold could be certified for any {group_name(rule)}."]
    # Limits that are unattainable even alone come first, because these limits are the cause.
    parts = sorted(rule.parts, key=lambda part: part.rule.reason.startswith(CERTIFIABLE_ALONE))
    sentences += [f"{part.name}: {part.rule.reason}." for part in parts[:_MAX_NAMES]]
    if len(parts) > _MAX_NAMES:
        sentences.append(f"The table lists the other {len(parts) - _MAX_NAMES}.")
    help_text = (
        "Possible remedies: more calibration data, a larger maximum risk, or a larger delta."
    )
    return [*sentences, help_text]


def format_threshold(rule: DecisionRule) -> str:
    """Format the threshold with nine digits, so that similar thresholds have different texts."""
    return "none" if rule.threshold is None else f"{rule.threshold:.9g}"


def _guarantee_sentence(rule: DecisionRule, *, binary: bool) -> str:
    """Return a sentence that states the guarantee, its population and its probability."""
    if rule.guarantee == "none":
        return _no_guarantee_sentence(rule, binary=binary)
    target = 0.0 if rule.target is None else rule.target
    clause = target_clause(rule.guarantee, target, binary=binary)
    population = rule.population or "new data like the calibration data"
    if rule.in_expectation:
        return f"Guarantee: on average over calibration sets, {clause}, for {population}."
    probability = format_percent(round(1 - (rule.delta or 0.0), 10))
    return (
        f"Guarantee: {clause}, for {population}. It holds with a probability of at least "
        f"{probability} over calibration sets."
    )


def target_clause(quantity: str, target: float, *, binary: bool) -> str:
    """Return a target as a clause."""
    share = format_percent(target)
    if quantity == "coverage":
        return f"at least {share} of the samples are answered"
    if quantity == "generalized risk":
        if binary:
            return f"at most {share} of all samples are answered wrongly"
        return (
            "the total loss of the answers, divided by the number of all samples, is at most "
            f"{format_number(target)}"
        )
    if binary:
        return f"at most {share} of the answers are wrong"
    return f"the mean loss of the answers is at most {format_number(target)}"


def _no_guarantee_sentence(rule: DecisionRule, *, binary: bool) -> str:
    if rule.method not in RULES or rule.target is None:
        return "There is no guarantee: the threshold was set by the user."
    statement = RULES[rule.method].statement
    if statement:
        return statement.format(target=rule.target)
    clause = target_clause(rule.quantity, rule.target, binary=binary)
    return f"There is no guarantee for new data. On the calibration data, {clause}."


def _expected_coverage_sentence(rule: DecisionRule, *, binary: bool) -> str:
    """Return a sentence with the expected coverage, estimated from the calibration data."""
    if rule.coverage is None:
        return ""
    if rule.population:
        # The sentence contains no counts, because the samples have different weights.
        return f"Expected coverage on such data: about {format_share(rule.coverage)}."
    failures = ""
    if rule.failures is not None:
        adjective = "wrong" if binary else "with a loss above 0"
        failures = f", {format_count(rule.failures)} of them {adjective}"
    return (
        f"Expected coverage on such data: about {format_share(rule.coverage)} (on the calibration "
        f"data, {format_count(rule.accepted)} of {format_count(rule.n)} samples are "
        f"accepted{failures})."
    )


def _unattainable_sentences(rule: DecisionRule, *, binary: bool) -> list[str]:
    """Return sentences on why there is no threshold and how to obtain one."""
    reason = capitalize_first(rule.reason).rstrip(".")
    sentences = [f"Unattainable: {_unmet_target_clause(rule, binary=binary)}.", f"{reason}."]
    if rule.guarantee == "none":
        return sentences
    is_risk = rule.guarantee != "coverage"
    remedies = ["more calibration data", "a larger maximum risk" if is_risk else "a lower coverage"]
    if rule.delta is not None:
        remedies.append("a larger delta")
    if is_risk:
        remedies.append("a confidence score that ranks failures lower")
    remedy_list = f"{', '.join(remedies[:-1])}, or {remedies[-1]}"
    return [*sentences, f"Possible remedies: {remedy_list}."]


def _unmet_target_clause(rule: DecisionRule, *, binary: bool) -> str:
    if not rule.quantity or rule.target is None or rule.quantity == "cost":
        return "no threshold meets the target on the calibration data"
    clause = target_clause(rule.quantity, rule.target, binary=binary)
    if rule.guarantee == "none":
        return f"on the calibration data, there is no threshold for which {clause}"
    delta = "" if rule.delta is None else f" (delta {rule.delta:g})"
    return f"no threshold could be certified to guarantee that {clause}{delta}"


def checks_sentences(checks: RuleChecks) -> list[str]:
    """Return sentences on the data sets for which the target of the rule holds or is violated."""
    if not checks.rule.attainable:
        return []
    if checks.rule.quantity == "cost":
        return verdict_sentences(checks.checks, beginnings=_COST_BEGINNINGS)
    noun = "guarantee" if checks.rule.guarantee != "none" else "target"
    return verdict_sentences(checks.checks, noun)


def verdict_sentences(
    checks: Sequence[RuleCheck],
    noun: str = "guarantee",
    beginnings: Mapping[str, str] | None = None,
) -> list[str]:
    """Return a sentence for each verdict, with the data sets that have this verdict.

    The mapping `beginnings` contains the text before these names, for each verdict.
    """
    sentences = []
    for key, beginning in (beginnings or _BEGINNINGS).items():
        names = [check.name for check in checks if _sentence_key(check) == key]
        if not names:
            continue
        data_sets = join_quoted(names)
        if 1 < len(checks) == len(names):
            data_sets = f"all {len(checks)} data sets"
        elif len(checks) > 1:
            data_sets = f"{len(names)} of {len(checks)} data sets ({data_sets})"
        sentences.append(f"{beginning.format(noun=noun)}{data_sets}.")
    return sentences


def _sentence_key(check: RuleCheck) -> str:
    """Return the verdict, which may end with "in a group" or refer to missing labels."""
    holds_overall = check.load is None and check.excess_verdict == "holds"
    if holds_overall and check.verdict != "holds":
        return f"{check.verdict} in a group"
    if check.verdict == "cannot tell" and math.isnan(check.excess):
        return _NO_LABELS
    return check.verdict


#: Key for data without labels, for which the risk cannot be estimated.
_NO_LABELS: Final = "no labels"
_BEGINNINGS: Final = {
    "broken": "The {noun} is violated on ",
    "broken in a group": "The {noun} holds overall but is violated in a group on ",
    "cannot tell in a group": (
        "The {noun} holds overall, but some groups have too few answers to decide, on "
    ),
    "holds": "The {noun} holds on ",
    "cannot tell": "There are too few answers to decide on ",
    "nothing accepted": "No sample is accepted on ",
    _NO_LABELS: "The risk cannot be estimated, because labels are missing, on ",
}
_COST_BEGINNINGS: Final = {
    "broken": "The rule costs more than abstaining on all samples on ",
    "broken in a group": (
        "The rule costs less than abstaining on all samples overall, but more in a group, on "
    ),
    "cannot tell in a group": (
        "The rule costs less than abstaining on all samples overall, but some groups have too few "
        "answers to decide, on "
    ),
    "holds": "The rule costs less than abstaining on all samples on ",
    "cannot tell": (
        "There are too few answers to decide whether the rule costs less than abstaining on all "
        "samples on "
    ),
    _NO_LABELS: "The risk cannot be estimated, because labels are missing, on ",
}


def interval_scope(checks: RuleChecks) -> str:
    """Return a clause that states whether the intervals are simultaneous."""
    if not any(checks.groups):
        return "each separately"
    return (
        "simultaneous for a data set and its groups; the result of a data set is that of its total"
    )


def keep_worst_groups(
    rows: list[dict[str, Any]], max_groups: int
) -> tuple[list[dict[str, Any]], int]:
    """Return the rows of the worst groups of each data set, and the number of omitted groups.

    The worst groups have the largest lower bounds of the excess. The rows keep their order.
    """
    groups_by_data_set: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if row["subgroup"]:
            groups_by_data_set.setdefault(row["name"], []).append(row)

    def severity(row: dict[str, Any]) -> tuple[float, int]:
        excess = row["excess_low"]
        return -math.inf if math.isnan(excess) else excess, row["n"]

    omitted_ids: set[int] = set()
    for group_rows in groups_by_data_set.values():
        worst_first = sorted(group_rows, key=severity, reverse=True)
        omitted_ids.update(map(id, worst_first[max_groups:]))
    return [row for row in rows if id(row) not in omitted_ids], len(omitted_ids)


def facts(rule: DecisionRule) -> Iterable[tuple[str, str]]:
    """Yield the properties of a rule as pairs of label and value."""
    yield "Score", rule.score or "unknown"
    threshold = format_threshold(rule)
    if rule.per:
        n_attainable = sum(part.rule.attainable for part in rule.parts)
        threshold = f"one per {group_name(rule)} ({n_attainable} of {len(rule.parts)} have one)"
    yield "Threshold", threshold
    scales = {"score": "unit of the score", "unknown": "not recorded"}
    yield "Scale", scales.get(rule.scale, rule.scale)
    other_scale: Scale = "log-odds" if rule.scale == "probability" else "probability"
    value = rule.threshold_on(other_scale)
    if value is not None and rule.scale in {"log-odds", "probability"}:
        yield f"Threshold as {other_scale}", use_minus_sign(f"{value:.9g}")
    yield "Rule", rule_title(rule)
    quantity = f"{rule.quantity}: " if rule.quantity else ""
    target = "none" if rule.target is None else f"{quantity}{rule.target:g}"
    if rule.limits:
        target = _format_limits(rule)
    yield "Target", target
    yield "Guarantee", _guarantee_text(rule)
    if rule.bound is not None:
        yield "Certified bound", format_number(rule.bound)
    if rule.n:
        yield "Calibration samples", format_count(rule.n)
        yield "Accepted calibration samples", format_count(rule.accepted)
    if rule.failures is not None:
        yield "Accepted failures", format_count(rule.failures)
    if rule.coverage is not None:
        yield "Coverage on calibration data", format_number(rule.coverage)
    if rule.risk is not None:
        yield "Selective risk on calibration data", format_number(rule.risk)


def _format_limits(rule: DecisionRule) -> str:
    """Format the limits of a rule, or the first of them if there are many."""
    parts = [part for part in rule.limits if part.rule.target is not None]
    limits = [f"{part.name} {part.rule.target:g}" for part in parts]
    text = ", ".join(limits[:_MAX_NAMES])
    return f"{text}, ..." if len(limits) > _MAX_NAMES else text


def _guarantee_text(rule: DecisionRule) -> str:
    """Return the kind of guarantee and its delta."""
    if rule.parts and rule.delta is not None:
        scope = "jointly" if rule.joint else "each"
        return f"{rule.guarantee}, delta {rule.delta:g} {scope}"
    if rule.guarantee == "none":
        return "none"
    if rule.in_expectation:
        return f"{rule.guarantee}, on average"
    return f"{rule.guarantee}, delta {rule.delta:g}"
