"""Write notes about a decision rule and the data sets on which the rule is checked."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from abstain._foundation.notes import Note
from abstain.evaluation.notes import direction_warning
from abstain.evaluation.rules.data import RuleData
from abstain.thresholds import DecisionRule, RuleCheck
from abstain.thresholds.rule_check import apply_rule
from abstain.typing import Array

LIKE_CALIBRATION: Final = (
    "The guarantee holds for new data from the distribution of the calibration data. It does not "
    "hold under a shift."
)
#: Two data sets with equal counts are only considered the same if they have this many samples.
_MIN_SAMPLES = 30
#: Maximum number of groups that a note lists by name.
_MAX_NAMES = 8
#: Maximum number of groups without a threshold for which a note states the reason.
_MAX_REASONS = 3


def rule_notes(
    rule: DecisionRule,
    data_sets: Sequence[RuleData],
    checks: Sequence[tuple[RuleCheck, ...]],
    calibration: RuleData | None,
    explained_groups: Collection[str] = (),
) -> list[Note]:
    """Return the notes about a rule and about each data set on which the rule was checked.

    `checks` contains the check of each data set, followed by the checks of its groups. For the
    groups in `explained_groups`, no note states why they have no threshold.
    """
    notes = [
        *_guarantee_notes(rule),
        *_groups_without_threshold(rule, explained_groups),
        *_unknown_scale(rule, data_sets),
    ]
    if calibration is not None:
        notes += _within(calibration.name or "calibration", _direction(calibration))
    for data, (check, *groups) in zip(data_sets, checks, strict=True):
        notes_of_data = [
            *_group_verdicts(check, groups),
            *_unseen_groups(rule, data, groups),
            *_direction(data),
            *_same_data(rule, data, check, calibration),
            *_constant_decision(rule, data, check),
        ]
        if data.loss is None:
            text = "The data have no labels, so only the coverage is checked."
            notes_of_data.append(Note("no_labels", text))
        notes += _within(data.name, notes_of_data)
    return notes


def _within(name: str, notes: Iterable[Note]) -> Iterator[Note]:
    """Yield notes whose text begins with the name of the data set."""
    return (note.within(name) for note in notes)


def _direction(data: RuleData) -> Iterator[Note]:
    """Yield a warning if failures have higher confidences than successes."""
    if data.s is None:
        return
    warning = direction_warning(data.s, is_column=bool(data.is_column))
    if warning:
        yield Note.warning("direction", warning)


def _guarantee_notes(rule: DecisionRule) -> Iterator[Note]:
    """Yield notes that state the guarantee of a rule, or a warning if it has no guarantee."""
    if not rule.attainable or rule.method == "given":
        return
    if rule.guarantee == "none" and rule.quantity in {"selective risk", "coverage"}:
        yield Note.warning(
            "no_guarantee",
            "The threshold meets its target on the calibration data without a margin for "
            "sampling error. If it barely meets the target, such rules miss it on new data from "
            "the same distribution about half the time, and more often if few samples are "
            "accepted.",
        )
    if rule.guarantee != "none":
        yield Note("guarantee", _guarantee_population(rule))
    if rule.in_expectation:
        yield Note(
            "in_expectation",
            "The guarantee holds on average over calibration sets: the rule from one set may "
            "exceed its target.",
        )


def _guarantee_population(rule: DecisionRule) -> str:
    """Return a text that names the population for which the guarantee holds."""
    if not rule.population:
        return LIKE_CALIBRATION
    groups = ""
    if rule.per:
        groups = (
            " In each group it assumes that the density ratios are those of the group; ratios "
            "estimated over all groups are correct only if the groups changed in the same way."
        )
    return (
        f"The guarantee is about {rule.population}. It is only valid if the density ratios are "
        "correct, which cannot be checked without labels. It does not hold if more than the "
        f"distribution of the inputs or classes has changed.{groups}"
    )


def _groups_without_threshold(
    rule: DecisionRule, explained_groups: Collection[str]
) -> Iterator[Note]:
    """Yield a note that names the groups without a threshold, whose samples are all rejected."""
    if not rule.per or not rule.attainable:
        return
    parts = [part for part in rule.parts if not part.rule.attainable]
    if not parts:
        return
    reasons = "; ".join(
        repr(part.name) if part.name in explained_groups else f"{part.name!r}: {part.rule.reason}"
        for part in parts[:_MAX_REASONS]
    )
    other_names = [repr(part.name) for part in parts[_MAX_REASONS:]]
    if other_names:
        reasons += f"; and {', '.join(other_names[:_MAX_NAMES])}"
    if len(other_names) > _MAX_NAMES:
        reasons += ", ..."
    yield Note.warning(
        "group_without_threshold",
        f"{len(parts)} of {len(rule.parts)} groups have no threshold, so none of their samples "
        f"is answered ({reasons}).",
    )


def _unchecked_limits(rule: DecisionRule, checks: Sequence[RuleCheck]) -> list[str]:
    """Return the names of the limits that are not checked, in each group with a threshold."""
    names = [part.name for part in rule.limits if ":" in part.name]
    checked = {check.subgroup for check in checks}
    if not rule.per:
        return [name for name in names if name not in checked]
    # If the data are checked in other groups, the rule of a check is not that of a group.
    rules = [check for check in checks if not check.limit and not check.rule.per]
    groups = [check for check in rules if check.rule.attainable]
    subgroups = [replace(check, limit=name).subgroup for check in groups for name in names]
    return [name for name in subgroups if name not in checked]


def _unseen_groups(
    rule: DecisionRule, data: RuleData, checks: Sequence[RuleCheck]
) -> Iterator[Note]:
    """Yield notes about groups without calibration data and limits without samples."""
    unseen = {} if data.threshold_group is None else rule.count_unknown_groups(data.threshold_group)
    if unseen:
        plural = "s" if len(unseen) > 1 else ""
        yield Note.warning(
            "group_unseen",
            f"{sum(unseen.values())} samples belong to {len(unseen)} group{plural} without "
            f"calibration data ({_list_names(list(unseen))}): none of them is answered.",
        )
    if unchecked := _unchecked_limits(rule, checks):
        yield Note(
            "limit_unchecked",
            "No sample of these data is known to belong to the subset of these limits, so they "
            f"are not checked: {', '.join(map(repr, unchecked[:_MAX_NAMES]))}.",
        )


def _unknown_scale(rule: DecisionRule, data_sets: Sequence[RuleData]) -> Iterator[Note]:
    """Yield a warning if the scale of the rule may differ from that of the data."""
    is_computed = any(data.is_in_log_odds for data in data_sets)
    if rule.scale == "unknown" and rule.attainable and is_computed:
        yield Note.warning(
            "scale_unknown",
            f"The rule does not record the scale of its threshold, and the score {rule.score!r} "
            f"is computed in log-odds, so the threshold {rule.threshold:.6g} is interpreted as "
            "log-odds. If it was chosen on probabilities, all numbers below are wrong. Choose "
            'it again, or add "scale" to its file.',
        )


def _same_data(
    rule: DecisionRule, data: RuleData, check: RuleCheck, calibration: RuleData | None
) -> Iterator[Note]:
    """Yield a warning if a checked data set seems to be the calibration data."""
    if calibration is not None:
        is_same = have_same_values(data.values, calibration.values)
    else:
        failures = None
        if data.loss is not None:
            accepted = apply_rule(check.rule, data.values, "score", data.threshold_group)
            failures = int(np.count_nonzero(data.loss[accepted]))
        counts = (check.n, check.accepted, failures)
        is_same = check.n >= _MIN_SAMPLES and (rule.n, rule.accepted, rule.failures) == counts
    if is_same:
        yield Note.warning(
            "same_data",
            "These seem to be the calibration data, on which the performance of the threshold is "
            "optimistic: check it on other data.",
        )


def have_same_values(first: Array, second: Array) -> bool:
    """Return whether two data sets have the same confidences, in any order."""
    return first.size == second.size and np.array_equal(np.sort(first), np.sort(second))


def _group_verdicts(check: RuleCheck, groups: Sequence[RuleCheck]) -> Iterator[Note]:
    """Yield notes about groups with an exceeded target or too few answers for a verdict."""
    broken = [group.subgroup for group in groups if group.verdict == "broken"]
    undecided = [group.subgroup for group in groups if group.verdict == "cannot tell"]
    undecided += [group.subgroup for group in groups if group.verdict == "nothing accepted"]
    holds_overall = check.excess_verdict == "holds"
    if broken:
        contrast = ", although it holds overall" if holds_overall else ""
        if holds_overall and not check.rule.parts:
            contrast += ": a guarantee for all samples need not hold for each group"
        yield Note.warning(
            "group_broken",
            f"The target is broken in {_count_groups(broken, groups)}{contrast}.",
        )
    if undecided and holds_overall:
        yield Note(
            "group_open",
            "The target holds overall; too few samples are answered to decide for "
            f"{_count_groups(undecided, groups)}.",
        )


def _count_groups(names: Sequence[str], groups: Sequence[RuleCheck]) -> str:
    n_checks = sum(group.verdict != "no target" for group in groups)
    noun = "limit" if any(group.limit for group in groups) else "group"
    plural = "s" if n_checks > 1 else ""
    return f"{len(names)} of {n_checks} {noun}{plural} ({_list_names(names)})"


def _list_names(names: Sequence[str]) -> str:
    more = ", ..." if len(names) > _MAX_NAMES else ""
    return ", ".join(map(repr, names[:_MAX_NAMES])) + more


def _constant_decision(rule: DecisionRule, data: RuleData, check: RuleCheck) -> Iterator[Note]:
    """Yield a warning if all samples are accepted or rejected, probably due to a wrong scale."""
    if rule.threshold is None or check.accepted not in {0, check.n}:
        return
    if rule.coverage is None or rule.coverage == check.coverage:
        return
    low, high = float(data.values.min()), float(data.values.max())
    subject = "No sample is" if check.accepted == 0 else "All samples are"
    yield Note.warning(
        "scale",
        f"{subject} accepted: the confidences are between {low:.6g} and {high:.6g}, the "
        f"threshold is {rule.threshold:.6g}. Check that the confidences are on the scale of the "
        "calibration data.",
    )
