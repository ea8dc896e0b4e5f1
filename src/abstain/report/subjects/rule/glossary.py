"""Glossary of the report of a decision rule."""

from typing import Final

from abstain.evaluation.rules import RuleChecks
from abstain.plots.formatting import format_percent
from abstain.report.document import GlossaryEntry, define_terms
from abstain.thresholds import RULES

_GLOSSARY: Final = {
    "Coverage": "The share of accepted samples, whose confidence is at least the threshold.",
    "Selective risk": (
        "The share of wrong answers among the accepted samples; for other losses than 0/1, their "
        "mean loss."
    ),
    "Generalized risk": (
        "Coverage times selective risk: the share of all samples that are accepted and wrong."
    ),
    "Like the calibration data": (
        "Independent samples from the same distribution: the same source, the same types of cases "
        "and the same share of difficult cases. The guarantee does not cover shifted data. To test "
        "the rule on shifted data, check it on labeled samples of these data."
    ),
    "Excess": (
        "The difference between the measured quantity and its target; values above 0 are worse "
        "than the target."
    ),
    "Holds, violated, inconclusive": (
        "The {level} confidence interval of the excess is at or below 0, above 0, or contains 0. "
        "Data sets are checked separately, so one of many can be violated by chance. A data set "
        "and its groups are checked jointly. The result of a data set is that of its total; the "
        "target of a rule holds only if it holds for the total and for each group."
    ),
    "Confidence interval": (
        "A range that contains the true value in {level} of studies like this one. The calibration "
        "data have none: the threshold was selected on these data, so their numbers are optimistic."
    ),
}

_DELTA_MEANING: Final = (
    "The maximum probability that the guarantee fails. If the rule is computed repeatedly from new "
    "calibration sets, at most this share of the rules violates the guarantee."
)
_BOUND_MEANING: Final = (
    "The upper confidence bound of the risk (or the lower bound of the coverage) at the threshold, "
    "at the level 1 − delta. The rule is certified because this bound meets the target."
)

_DISPARITY_MEANING: Final = (
    "The largest difference and ratio between two groups of the rejection rate (the share of "
    "rejected samples) or the risk. The interval takes into account that the two groups were "
    "selected because their difference is the largest."
)


def glossary_entries(checks: RuleChecks) -> tuple[GlossaryEntry, ...]:
    """Return the glossary entries for this rule."""
    rule = checks.rule
    catalogue_entry = RULES.get(rule.method)
    meanings = dict(_GLOSSARY)
    if rule.delta is not None:
        meanings["Delta"] = _DELTA_MEANING
    if rule.bound is not None:
        meanings["Certified bound"] = _BOUND_MEANING
    if checks.disparities():
        meanings["Disparity"] = _DISPARITY_MEANING
    entries = define_terms(meanings, level=format_percent(checks.level))
    if catalogue_entry is None:
        return entries
    method = GlossaryEntry(
        catalogue_entry.title, catalogue_entry.meaning, source=catalogue_entry.source
    )
    return (method, *entries)
