"""What the reader of a checked rule should know, in plain words."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from abstain._foundation.scored import Scored
from abstain.evaluation._rule_checking import in_log_odds
from abstain.evaluation._rule_data import Part
from abstain.evaluation.direction import wrong_way
from abstain.evaluation.records import Finding
from abstain.thresholds import DecisionRule, RuleCheck

#: With so few samples, equal counts on two data sets are no surprise.
_FEW = 30
#: So many groups are named in a sentence.
_SHOWN = 8
_Said = Iterator[tuple[str, str, str]]


def findings_of(
    rule: DecisionRule,
    parts: Sequence[Part],
    found: Sequence[tuple[RuleCheck, ...]],
    calibration: Part | None,
) -> list[Finding]:
    """Return what is worth knowing about a rule and each data set it was checked on.

    `found` holds for each data set its check, then those of its groups.
    """
    about = [*_of_rule(rule), *_scale_unknown(rule, parts)]
    out = [Finding(kind, level, (), "", message) for kind, level, message in about]
    if calibration is not None:
        own = replace(calibration, name=calibration.name or "calibration")
        out += [Finding(*said[:2], (), "", f"{own.name}: {said[2]}") for said in _direction(own)]
    for part, (check, *groups) in zip(parts, found, strict=True):
        said = [
            *_groups(check, groups),
            *_direction(part),
            *_same_data(rule, part, check, calibration),
            *_scale(rule, part, check),
            *_labels(part),
        ]
        # The name of the data set stands in the sentence: it need not be that of a split.
        out += [Finding(kind, level, (), "", f"{part.name}: {text}") for kind, level, text in said]
    return out


def _direction(part: Part) -> _Said:
    if part.loss is None:
        return
    said = wrong_way(Scored(part.values, part.loss, part.weight), own=bool(part.own))
    if said:
        yield "direction", "warning", said


def _of_rule(rule: DecisionRule) -> _Said:
    if not rule.attainable or rule.method == "given":
        return
    if rule.guarantee == "none" and rule.quantity in {"selective risk", "coverage"}:
        yield (
            "no_guarantee",
            "warning",
            (
                "The threshold meets its target on the calibration data without a margin for "
                "chance: where it just does, rules chosen this way miss it about half the time on "
                "new data of the same kind, and more often when few samples are accepted."
            ),
        )
    if rule.guarantee != "none":
        yield (
            "guarantee",
            "note",
            (
                "The guarantee is about new data drawn like the calibration data. It says nothing "
                "of data that have shifted."
            ),
        )
    if rule.in_expectation:
        yield (
            "in_expectation",
            "note",
            (
                "The guarantee is on average over calibration sets: the rule from one set may be "
                "above its target."
            ),
        )


def _scale_unknown(rule: DecisionRule, parts: Sequence[Part]) -> _Said:
    if rule.scale == "unknown" and rule.attainable and in_log_odds(parts):
        yield (
            "scale_unknown",
            "warning",
            (
                f"The rule does not record the scale of its threshold, and the score "
                f"{rule.score!r} is computed in log-odds here: {rule.threshold:.6g} is taken for "
                "log-odds. If it was chosen on probabilities, every number below is wrong. Choose "
                'it again, or write "scale" into its file.'
            ),
        )


def _same_data(rule: DecisionRule, part: Part, check: RuleCheck, calibration: Part | None) -> _Said:
    if calibration is not None:
        same = _equal(part, calibration)
    else:
        same = check.n >= _FEW and _counts(rule) == _counts_of(part, check)
    if same:
        yield (
            "same_data",
            "warning",
            (
                "This looks like the calibration data itself. On the data that chose it a "
                "threshold looks better than it is: check it on others."
            ),
        )


def _equal(part: Part, calibration: Part) -> bool:
    return part.values.size == calibration.values.size and bool(
        np.array_equal(np.sort(part.values), np.sort(calibration.values))
    )


def _counts(rule: DecisionRule) -> tuple[int, int, int | None]:
    return rule.n, rule.accepted, rule.failures


def _counts_of(part: Part, check: RuleCheck) -> tuple[int, int, int | None]:
    if part.loss is None:
        return check.n, check.accepted, None
    accepted = check.rule.apply(part.values, scale="score")
    return check.n, check.accepted, int(np.count_nonzero(part.loss[accepted]))


def _groups(check: RuleCheck, groups: Sequence[RuleCheck]) -> _Said:
    of_kind = {v: [c.group for c in groups if c.verdict == v] for v in ("broken", "cannot tell")}
    broken, open_ = of_kind["broken"], of_kind["cannot tell"]
    open_ = open_ + [c.group for c in groups if c.verdict == "nothing accepted"]
    if broken:
        by_itself = (
            ", although the whole by itself keeps it: what is promised of all samples need not "
            "hold for each group"
        )
        yield (
            "group_broken",
            "warning",
            (
                f"The target is broken in {_counted(broken, groups)}"
                f"{by_itself if check.alone == 'holds' else ''}."
            ),
        )
    if open_ and check.alone == "holds":
        yield (
            "group_open",
            "note",
            (
                f"The whole by itself keeps the target; too few answers to tell in "
                f"{_counted(open_, groups)}."
            ),
        )


def _counted(names: Sequence[str], groups: Sequence[RuleCheck]) -> str:
    shown = ", ".join(map(repr, names[:_SHOWN])) + (", ..." if len(names) > _SHOWN else "")
    return f"{len(names)} of {len(groups)} group{'s' * (len(groups) > 1)} ({shown})"


def _scale(rule: DecisionRule, part: Part, check: RuleCheck) -> _Said:
    if rule.threshold is None or check.accepted not in {0, check.n}:
        return
    if rule.coverage is None or rule.coverage == check.coverage:
        return
    low, high = float(part.values.min()), float(part.values.max())
    what = "Nothing is" if check.accepted == 0 else "Everything is"
    yield (
        "scale",
        "warning",
        (
            f"{what} accepted: the confidences lie between {low:.6g} and {high:.6g}, the "
            f"threshold is {rule.threshold:.6g}. Check that they are on the scale of the "
            "calibration data."
        ),
    )


def _labels(part: Part) -> _Said:
    if part.loss is None:
        yield (
            "no_labels",
            "note",
            "No labels are known here, so only the coverage can be checked.",
        )


def ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Put warnings first; each sentence once."""
    return tuple(sorted(dict.fromkeys(findings), key=lambda finding: finding.level != "warning"))
