"""What the reader of a checked rule should know, in plain words."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np

from abstain._foundation.notes import Note
from abstain.evaluation.notes import direction_warning
from abstain.evaluation.rules.data import RuleData
from abstain.thresholds import DecisionRule, RuleCheck
from abstain.thresholds.rule_check import decided
from abstain.typing import Array

LIKE_CALIBRATION: Final = (
    "The guarantee is about new data drawn like the calibration data. It says nothing of data "
    "that have shifted."
)
#: With so few samples, equal counts on two data sets are no surprise.
_FEW = 30
#: So many groups are named in a sentence.
_SHOWN = 8
#: So many groups without a threshold are said with the reason.
_REASONS = 3


def rule_notes(
    rule: DecisionRule,
    parts: Sequence[RuleData],
    found: Sequence[tuple[RuleCheck, ...]],
    calibration: RuleData | None,
) -> list[Note]:
    """Return what is worth knowing about a rule and each data set it was checked on.

    `found` holds for each data set its check, then those of its groups.
    """
    out = [*_of_rule(rule), *_of_parts(rule), *_scale_unknown(rule, parts)]
    if calibration is not None:
        out += _about(calibration.name or "calibration", _direction(calibration))
    for part, (check, *groups) in zip(parts, found, strict=True):
        notes = [
            *_groups(check, groups),
            *_unseen(rule, part),
            *_direction(part),
            *_same_data(rule, part, check, calibration),
            *_scale(rule, part, check),
        ]
        if part.loss is None:
            text = "No labels are known here, so only the coverage can be checked."
            notes.append(Note("no_labels", text))
        out += _about(part.name, notes)
    return out


def _about(name: str, notes: Iterable[Note]) -> Iterator[Note]:
    """Put the name of the data set into the text: it need not be that of a split."""
    return (note.within(name) for note in notes)


def _direction(part: RuleData) -> Iterator[Note]:
    if part.s is not None and (said := direction_warning(part.s, own=bool(part.is_column))):
        yield Note.warning("direction", said)


def _of_rule(rule: DecisionRule) -> Iterator[Note]:
    if not rule.attainable or rule.method == "given":
        return
    if rule.guarantee == "none" and rule.quantity in {"selective risk", "coverage"}:
        yield Note.warning(
            "no_guarantee",
            "The threshold meets its target on the calibration data without a margin for "
            "chance: where it just does, rules chosen this way miss it about half the time on "
            "new data of the same kind, and more often when few samples are accepted.",
        )
    if rule.guarantee != "none":
        yield Note("guarantee", _about_whom(rule))
    if rule.in_expectation:
        yield Note(
            "in_expectation",
            "The guarantee is on average over calibration sets: the rule from one set may be "
            "above its target.",
        )


def _about_whom(rule: DecisionRule) -> str:
    if not rule.promised_for:
        return LIKE_CALIBRATION
    groups = (
        " In a group it takes the ratios to be those of that group: ratios that were estimated "
        "over all groups are, where these changed alike."
        if rule.per
        else ""
    )
    return (
        f"The guarantee is about {rule.promised_for}. It is worth what the ratios are, and "
        "nothing checks these without labels: where more has changed than how often each kind of "
        f"sample comes up, it does not hold.{groups}"
    )


def _of_parts(rule: DecisionRule) -> Iterator[Note]:
    """Name the groups that nothing can be promised to: they are not answered."""
    if not rule.per or not rule.attainable:
        return
    left = [part for part in rule.parts if not part.rule.attainable]
    if left:
        said = "; ".join(f"{part.name!r}: {part.rule.reason}" for part in left[:_REASONS])
        rest = [repr(part.name) for part in left[_REASONS:]]
        said += f"; and {', '.join(rest[:_SHOWN])}" if rest else ""
        yield Note.warning(
            "group_without_threshold",
            f"{len(left)} of {len(rule.parts)} groups have no threshold, so none of their samples "
            f"is answered ({said}{', ...' * (len(rest) > _SHOWN)}).",
        )


def _unseen(rule: DecisionRule, part: RuleData) -> Iterator[Note]:
    if part.threshold_group is not None and (found := rule.unseen(part.threshold_group)):
        names = ", ".join(map(repr, list(found)[:_SHOWN])) + (", ..." * (len(found) > _SHOWN))
        yield Note.warning(
            "group_unseen",
            f"{sum(found.values())} samples are of {len(found)} group{'s' * (len(found) > 1)} that "
            f"the calibration data did not have ({names}): none of them is answered.",
        )
    wanted = [name for name in rule.names if ":" in name and not rule.per]
    known = part.limit_masks or {}
    if lost := [n for n in wanted if n not in known or not known[n].any()]:
        yield Note(
            "limit_unchecked",
            f"No sample here is known to be one that these limits are about, so they are not "
            f"checked: {', '.join(map(repr, lost[:_SHOWN]))}.",
        )


def _scale_unknown(rule: DecisionRule, parts: Sequence[RuleData]) -> Iterator[Note]:
    if rule.scale == "unknown" and rule.attainable and any(part.is_in_log_odds for part in parts):
        yield Note.warning(
            "scale_unknown",
            f"The rule does not record the scale of its threshold, and the score "
            f"{rule.score!r} is computed in log-odds here: {rule.threshold:.6g} is taken for "
            "log-odds. If it was chosen on probabilities, every number below is wrong. Choose "
            'it again, or write "scale" into its file.',
        )


def _same_data(
    rule: DecisionRule, part: RuleData, check: RuleCheck, calibration: RuleData | None
) -> Iterator[Note]:
    if calibration is not None:
        is_same = have_same_values(part.values, calibration.values)
    else:
        failures = None
        if part.loss is not None:
            accepted = decided(check.rule, part.values, "score", part.threshold_group)
            failures = int(np.count_nonzero(part.loss[accepted]))
        counts = (check.n, check.accepted, failures)
        is_same = check.n >= _FEW and (rule.n, rule.accepted, rule.failures) == counts
    if is_same:
        yield Note.warning(
            "same_data",
            "This looks like the calibration data itself. On the data that chose it a "
            "threshold looks better than it is: check it on others.",
        )


def have_same_values(first: Array, second: Array) -> bool:
    """Whether two data sets have the same confidences, in any order."""
    return first.size == second.size and np.array_equal(np.sort(first), np.sort(second))


def _groups(check: RuleCheck, groups: Sequence[RuleCheck]) -> Iterator[Note]:
    of_kind = {v: [c.group for c in groups if c.verdict == v] for v in ("broken", "cannot tell")}
    broken, open_ = of_kind["broken"], of_kind["cannot tell"]
    open_ = open_ + [c.group for c in groups if c.verdict == "nothing accepted"]
    if broken:
        by_itself = ", although the whole by itself keeps it"
        if not check.rule.parts:
            by_itself += ": what is promised of all samples need not hold for each group"
        yield Note.warning(
            "group_broken",
            f"The target is broken in {_counted(broken, groups)}"
            f"{by_itself if check.alone == 'holds' else ''}.",
        )
    if open_ and check.alone == "holds":
        yield Note(
            "group_open",
            f"The whole by itself keeps the target; too few answers to tell in "
            f"{_counted(open_, groups)}.",
        )


def _counted(names: Sequence[str], groups: Sequence[RuleCheck]) -> str:
    shown = ", ".join(map(repr, names[:_SHOWN])) + (", ..." if len(names) > _SHOWN else "")
    return f"{len(names)} of {len(groups)} group{'s' * (len(groups) > 1)} ({shown})"


def _scale(rule: DecisionRule, part: RuleData, check: RuleCheck) -> Iterator[Note]:
    if rule.threshold is None or check.accepted not in {0, check.n}:
        return
    if rule.coverage is None or rule.coverage == check.coverage:
        return
    low, high = float(part.values.min()), float(part.values.max())
    what = "Nothing is" if check.accepted == 0 else "Everything is"
    yield Note.warning(
        "scale",
        f"{what} accepted: the confidences lie between {low:.6g} and {high:.6g}, the "
        f"threshold is {rule.threshold:.6g}. Check that they are on the scale of the "
        "calibration data.",
    )
