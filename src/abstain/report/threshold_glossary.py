"""The words of a decision rule, one plain entry each."""

from typing import Final

from abstain.evaluation.rule_checks import RuleChecks
from abstain.report.glossary import linked
from abstain.report.words import percent
from abstain.thresholds import METHODS

_WORDS: Final = {
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


def rule_words(checks: RuleChecks) -> list[dict[str, object]]:
    """Return the entries of the glossary that this rule needs."""
    rule = checks.rule
    method = METHODS.get(rule.method)
    words = dict(_WORDS)
    if rule.delta is not None:
        words["Delta"] = _DELTA
    if rule.bound is not None:
        words["Certified bound"] = _BOUND
    level = percent(checks.level)
    entries = [] if method is None else [(method.title, method.meaning, method.source)]
    entries += [(title, meaning.format(level=level), "") for title, meaning in words.items()]
    return [
        {"title": title, "meaning": meaning, "source": linked(source) if source else []}
        for title, meaning, source in entries
    ]
