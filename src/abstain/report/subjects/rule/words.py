"""What a decision rule promises, and what came of it elsewhere, in plain sentences."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from abstain.evaluation.rules import RuleChecks
from abstain.inference.intervals import Interval
from abstain.plots.words import percent
from abstain.report.document import NAN, Entry, Form, Number, Span
from abstain.report.words import count, listed, number
from abstain.thresholds import RULES, DecisionRule, RuleCheck
from abstain.thresholds.limits import ALONE

_VERDICTS: Final = {
    "holds": "holds",
    "broken": "broken",
    "cannot tell": "cannot tell",
    "nothing accepted": "nothing accepted",
    "unattainable": "no threshold",
    "no target": "no target",
    "chosen here": "chosen here",
}

#: So many groups or limits are named in a sentence.
_NAMED: Final = 4

#: A shape for each verdict, so that it is told without its color.
_SHAPES: Final = {"holds": "\u25cf", "broken": "\u2716", "cannot tell": "\u25cb"}


def rule_title(rule: DecisionRule) -> str:
    """Return the name of the rule that people read."""
    return RULES[rule.method].title if rule.method in RULES else "A threshold from elsewhere"


def verdict_said(verdict: str) -> str:
    """Write a verdict with its shape."""
    said = _VERDICTS.get(verdict, verdict)
    return f"{_SHAPES[verdict]} {said}" if verdict in _SHAPES else said


def verdict_span(row: Mapping[str, Any]) -> Span:
    """Return the cell of the verdict of a row of results."""
    kinds: dict[str, Literal["good", "bad"]] = {"holds": "good", "broken": "bad"}
    verdict = row["verdict"]
    return Span(verdict_said(verdict), kinds.get(verdict, "open"), title=row.get("note", ""))


def row_number(row: Mapping[str, Any], name: str, form: Form = "four") -> Number | None:
    """Return a number of a row with its interval; None without labels."""
    if math.isnan(row[name]):
        return None
    return Number(row[name], row.get(f"{name}_low", NAN), row.get(f"{name}_high", NAN), form=form)


def estimate(value: float, interval: Interval) -> Number | None:
    """Return an estimate with its interval; None where it is not known."""
    return None if math.isnan(value) else Number(value, interval.low, interval.high, form="four")


def rule_sentences(checks: RuleChecks) -> list[str]:
    """Say the rule, its promise and what it was calibrated on."""
    rule, binary = checks.rule, checks.is_binary
    if not rule.attainable:
        if rule.parts:
            return _unattainable_parts(rule)
        return unattainable_sentences(rule, binary=binary)
    promise_sentence = (promise_of_parts if rule.parts else promise)(rule, binary=binary)
    sentences = [_accept(checks), _left_out(rule), promise_sentence]
    return [text for text in (*sentences, expected(rule, binary=binary)) if text]


def _accept(checks: RuleChecks) -> str:
    rule, probability = checks.rule, checks.threshold_probability
    score = f"\u201c{rule.score}\u201d" if rule.score else "the confidence"
    if rule.per:
        return (
            f"Answer when {score} is at least the threshold of its {group_name(rule)}; abstain "
            "below, and where there is none."
        )
    units = rule.units
    if rule.scale == "unknown" and probability is not None:
        units += f", taken for log-odds; a probability of {probability:.6g}"
    scale = f" ({units})" if units else ""
    return f"Answer when {score} is at least {threshold_said(rule)}{scale}; abstain below."


def group_name(rule: DecisionRule) -> str:
    """Return what the groups of a rule are, for people."""
    return "predicted class" if rule.per == "prediction" else rule.per


def _left_out(rule: DecisionRule) -> str:
    names = [part.name for part in rule.parts if not part.rule.attainable]
    if not names:
        return ""
    shown = listed(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
    return (
        f"{len(names)} of {len(rule.parts)} groups have no threshold and are not answered: {shown}."
    )


def promise_of_parts(rule: DecisionRule, *, binary: bool) -> str:
    """Say what is promised to each group, or which limits are kept."""
    if rule.guarantee == "none":
        return "Nothing is promised to any group: chance decides on new data."
    where = f"in the long run, on {rule.promised_for or 'new data like the calibration data'}"
    probability = percent(round(1 - (rule.delta or 0.0), 10))
    if not rule.per:
        limits = []
        for part in rule.parts:
            if part.rule.guarantee == "none":
                continue
            limit = target_said(part.rule.guarantee, part.rule.target or 0.0, binary=binary)
            is_overall = part.name == "overall"
            limits.append(limit if is_overall else f"of {part.name.replace(':', ' ')}, {limit}")
        more = f"; and {len(limits) - _NAMED} more" if len(limits) > _NAMED else ""
        return (
            f"Promised for at least {probability} of calibration sets like this one, all together: "
            f"{'; '.join(limits[:_NAMED])}{more}; {where}."
        )
    target = target_said(rule.guarantee, rule.target or 0.0, binary=binary)
    if rule.in_expectation:
        return f"Promised in each group, on average over calibration sets: {target}, {where}."
    groups = "all groups together" if rule.joint else "each group by itself"
    return (
        f"Promised in each group that has a threshold, for at least {probability} of calibration "
        f"sets like this one, {groups}: {target}, {where}."
    )


def _unattainable_parts(rule: DecisionRule) -> list[str]:
    sentences = ["Unattainable: no threshold could be certified to keep all limits."]
    if rule.per:
        sentences = [
            f"Unattainable: no {group_name(rule)} has a threshold that could be certified."
        ]
    # Limits that cannot be kept even alone go first: they are what is in the way.
    parts = sorted(rule.parts, key=lambda part: part.rule.reason.startswith(ALONE))
    sentences += [f"{part.name}: {part.rule.reason}." for part in parts[:_NAMED]]
    if len(parts) > _NAMED:
        sentences.append(f"The table has the other {len(parts) - _NAMED}.")
    help_text = "What would help: more calibration data, a larger risk, or a larger delta."
    return [*sentences, help_text]


def threshold_said(rule: DecisionRule) -> str:
    """Write the threshold with enough digits to tell it from its neighbors."""
    return "none" if rule.threshold is None else f"{rule.threshold:.9g}"


def promise(rule: DecisionRule, *, binary: bool) -> str:
    """Say what is promised, of what and with which probability; what is not, too."""
    if rule.guarantee == "none":
        return _no_promise(rule, binary=binary)
    target = 0.0 if rule.target is None else rule.target
    what = target_said(rule.guarantee, target, binary=binary)
    whom = rule.promised_for or "new data like the calibration data"
    where = f"in the long run, on {whom}"
    if rule.in_expectation:
        return f"Promised on average over calibration sets: {what}, {where}."
    chance = percent(round(1 - (rule.delta or 0.0), 10))
    return f"Promised for at least {chance} of calibration sets like this one: {what}, {where}."


def target_said(quantity: str, target: float, *, binary: bool) -> str:
    """Say a target as a clause."""
    share = percent(target)
    if quantity == "coverage":
        return f"at least {share} of the samples are answered"
    if quantity == "generalized risk":
        if binary:
            return f"at most {share} of all samples are answered wrongly"
        return f"the loss of the answers, over all samples, is at most {number(target)}"
    if binary:
        return f"at most {share} of the answers are wrong"
    return f"the mean loss of the answers is at most {number(target)}"


def _no_promise(rule: DecisionRule, *, binary: bool) -> str:
    if rule.method not in RULES or rule.target is None:
        return "Nothing is promised: the threshold came without a guarantee."
    if said := RULES[rule.method].said:
        return said.format(target=rule.target)
    what = target_said(rule.quantity, rule.target, binary=binary)
    return f"Nothing is promised: on the calibration data {what}; on new data chance decides."


def expected(rule: DecisionRule, *, binary: bool) -> str:
    """Say how much will be answered, by the calibration data."""
    if rule.coverage is None:
        return ""
    if rule.promised_for:
        # The counts are of samples that count differently.
        return f"Expect to answer about {100 * rule.coverage:.3g} % of such data."
    known = rule.failures is not None
    wrong = f", {count(rule.failures or 0)} of them {'wrong' if binary else 'with a loss'}"
    return (
        f"Expect to answer about {100 * rule.coverage:.3g} % of such data: {count(rule.accepted)} "
        f"of the {count(rule.n)} calibration samples{wrong if known else ''}."
    )


def unattainable_sentences(rule: DecisionRule, *, binary: bool) -> list[str]:
    """Say that there is no threshold, why, and what would help."""
    reason = rule.reason[:1].upper() + rule.reason[1:].rstrip(".")
    said = [f"Unattainable: {_lacking(rule, binary=binary)}.", f"{reason}."]
    if rule.guarantee != "none":
        said.append(f"What would help: {_help(rule)}.")
    return said


def _lacking(rule: DecisionRule, *, binary: bool) -> str:
    if not rule.quantity or rule.target is None or rule.quantity == "cost":
        return "no threshold does what was asked for on the calibration data"
    what = target_said(rule.quantity, rule.target, binary=binary)
    if rule.guarantee == "none":
        return f"no threshold is such that {what}, on the calibration data"
    sure = "" if rule.delta is None else f" (delta {rule.delta:g})"
    return f"no threshold could be certified to promise that {what}{sure}"


def _help(rule: DecisionRule) -> str:
    risk = rule.guarantee != "coverage"
    ways = ["more calibration data", "a larger risk" if risk else "a smaller coverage"]
    if rule.delta is not None:
        ways.append("a larger delta")
    if risk:
        ways.append("a confidence that ranks failures lower")
    return f"{', '.join(ways[:-1])}, or {ways[-1]}"


def checks_sentences(checks: RuleChecks) -> list[str]:
    """Say on which data sets the promise holds, is broken, or cannot be told."""
    if not checks.rule.attainable:
        return []
    if checks.rule.quantity == "cost":
        return verdict_sentences(checks.checks, _OF_COST)
    what = "promise" if checks.rule.guarantee != "none" else "target"
    return verdict_sentences(checks.checks, {k: v.format(what=what) for k, v in _SAID.items()})


def verdict_sentences(
    checks: Sequence[RuleCheck], beginnings: Mapping[str, str] | None = None
) -> list[str]:
    """Write a sentence for each verdict, with the names of its data sets.

    `beginnings` maps a kind of verdict to the words before the names; by default those of a
    promise.
    """
    if beginnings is None:
        beginnings = {kind: text.format(what="promise") for kind, text in _SAID.items()}
    sentences = []
    for kind, beginning in beginnings.items():
        names = [check.name for check in checks if _kind(check) == kind]
        if not names:
            continue
        data_sets = listed(names)
        if 1 < len(checks) == len(names):
            data_sets = f"all {len(checks)} data sets"
        elif len(checks) > 1:
            data_sets = f"{len(names)} of {len(checks)} data sets ({data_sets})"
        sentences.append(f"{beginning}{data_sets}.")
    return sentences


def _kind(check: RuleCheck) -> str:
    """Return the verdict; where no number is known, that it is missing; whether a group decided."""
    if check.load is None and check.alone == "holds" != check.verdict:
        return f"{check.verdict} in a group"
    unknown = check.verdict == "cannot tell" and math.isnan(check.excess)
    return _NO_NUMBER if unknown else check.verdict


#: Samples without labels, of which a risk cannot be told whatever their number.
_NO_NUMBER: Final = "no number"
_SAID: Final = {
    "broken": "The {what} is broken on ",
    "broken in a group": "The {what} is kept on average, but its target is broken in a group, on ",
    "cannot tell in a group": (
        "The {what} is kept on average, but too few samples tell whether in each group, on "
    ),
    "holds": "The {what} holds on ",
    "cannot tell": "Too few samples to tell on ",
    "nothing accepted": "Nothing is answered on ",
    _NO_NUMBER: "Without labels the risk is not known on ",
}
_OF_COST: Final = {
    "broken": "Abstaining on everything would cost less on ",
    "broken in a group": "Abstaining would cost less in a group, though not on average, on ",
    "cannot tell in a group": (
        "It costs less than abstaining on average; too few samples tell for each group, on "
    ),
    "holds": "It costs less than abstaining on everything on ",
    "cannot tell": "Too few samples to tell whether it costs less than abstaining on ",
    _NO_NUMBER: "Without labels the risk is not known on ",
}


def together_said(checks: RuleChecks) -> str:
    """Say what the level of the intervals is about."""
    if not any(checks.groups):
        return "each by itself"
    return (
        "those of a data set and its groups holding together; it holds only where every group does"
    )


def worst_groups(rows: list[dict[str, Any]], most: int) -> tuple[list[dict[str, Any]], int]:
    """Return the rows with at most so many groups for each data set, the worst, and how many not.

    The worst are those whose excess is surest to be large; they stay in their order.
    """
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if row["subgroup"]:
            groups.setdefault(row["name"], []).append(row)
    dropped = [
        id(row)
        for own in groups.values()
        for row in sorted(own, key=lambda row: (-_known(row["excess_low"]), -row["n"]))[most:]
    ]
    return [row for row in rows if id(row) not in set(dropped)], len(dropped)


def _known(value: float) -> float:
    return -math.inf if math.isnan(value) else value


def facts(rule: DecisionRule) -> Iterable[tuple[str, str]]:
    """Return what a rule is, label and value."""
    yield "Score", rule.score or "unknown"
    threshold = threshold_said(rule)
    if rule.per:
        n_attainable = sum(part.rule.attainable for part in rule.parts)
        threshold = f"one for each {group_name(rule)}: {n_attainable} of {len(rule.parts)}"
    yield "Threshold", threshold
    yield from _scale_facts(rule)
    yield "Rule", rule_title(rule)
    aim = f"{rule.quantity}: " if rule.quantity else ""
    target = "none" if rule.target is None else f"{aim}{rule.target:g}"
    if rule.parts and not rule.per:
        limits = [f"{p.name} {p.rule.target:g}" for p in rule.parts if p.rule.target is not None]
        target = ", ".join(limits[:_NAMED]) + ", ..." * (len(limits) > _NAMED)
    yield "Target", target
    yield "Guaranteed", _guaranteed(rule)
    if rule.bound is not None:
        yield "Certified bound", number(rule.bound)
    if rule.n:
        yield "Calibration samples", count(rule.n)
        yield "Accepted of them", count(rule.accepted)
    if rule.failures is not None:
        yield "Failures accepted", count(rule.failures)
    if rule.coverage is not None:
        yield "Coverage there", number(rule.coverage)
    if rule.risk is not None:
        yield "Selective risk there", number(rule.risk)


def _scale_facts(rule: DecisionRule) -> Iterable[tuple[str, str]]:
    scales = {"score": "that of the score", "unknown": "not recorded"}
    yield "Scale", scales.get(rule.scale, rule.scale)
    value = rule.threshold_on("log-odds" if rule.scale == "probability" else "probability")
    if value is not None and rule.scale in {"log-odds", "probability"}:
        what = "log-odds" if rule.scale == "probability" else "a probability"
        yield f"As {what}", f"{value:.9g}"


def _guaranteed(rule: DecisionRule) -> str:
    if rule.parts and rule.delta is not None:
        together = "together" if rule.joint else "each"
        return f"{rule.guarantee}, delta {rule.delta:g} {together}"
    if rule.guarantee == "none":
        return "nothing"
    if rule.in_expectation:
        return f"{rule.guarantee}, on average"
    return f"{rule.guarantee}, delta {rule.delta:g}"


_GLOSSARY: Final = {
    "Coverage": "The share of the samples that are answered: confidence reaches the threshold.",
    "Selective risk": (
        "Of the answers given, how many are wrong; with a loss of another kind, their mean loss."
    ),
    "Generalized risk": (
        "Of all samples, how many are answered and wrong: coverage times selective risk."
    ),
    "Like the calibration data": (
        "Drawn the same way, each sample on its own: same source, same kind of cases, same share "
        "of hard ones. No guarantee says anything of data that have shifted; only checking on "
        "them does."
    ),
    "Excess": (
        "The achieved number minus its target, turned so that above 0 is worse than promised."
    ),
    "Holds, broken, cannot tell": (
        "The {level} interval of the excess lies at or below 0, above 0, or on both sides. Each "
        "data set is judged by itself: among many, one may look broken by chance. A data set and "
        "its groups are judged together, and its verdict is that of the worst."
    ),
    "Interval": (
        "Where the number may lie for all data of that kind. The calibration data have none: the "
        "threshold was chosen on them, so their numbers flatter it."
    ),
}

_DELTA: Final = (
    "The chance that the promise fails: drawing other calibration data again and again, at most "
    "this share of the rules would break it. One rule either keeps it or does not."
)
_BOUND: Final = (
    "What is certified, up to delta, at the threshold: no laxer than the target. Its distance from "
    "what the calibration data show is the margin for chance."
)

_APART: Final = (
    "The rejection rate is the share that is not answered. The difference is that of the groups "
    "with the highest and the lowest, the ratio the highest divided by the lowest. Its interval "
    "counts in that the two were picked as the farthest apart of all."
)


def rule_words(checks: RuleChecks) -> tuple[Entry, ...]:
    """Return the entries of the glossary that this rule needs."""
    rule = checks.rule
    own = RULES.get(rule.method)
    words = dict(_GLOSSARY)
    if rule.delta is not None:
        words["Delta"] = _DELTA
    if rule.bound is not None:
        words["Certified bound"] = _BOUND
    if checks.disparities():
        words["How far apart the groups are"] = _APART
    level = percent(checks.level)
    first = () if own is None else (Entry(own.title, own.meaning, source=own.source),)
    return (*first, *(Entry(title, said.format(level=level)) for title, said in words.items()))
