"""Markers for the check results of a decision rule, and short names of data sets."""

import string
from collections.abc import Sequence
from typing import Any, Final

from abstain.evaluation.rules import RuleChecks
from abstain.plots.formatting import check_result_type
from abstain.plots.labels import MAX_LABEL_LENGTH, unique_labels
from abstain.plots.style import INK, LIGHT, MUTED, PAPER
from abstain.thresholds import RuleCheck
from abstain.thresholds.rule_check import Verdict

#: Separators between the name of a shift and its severity, as in "noise_3" or "blur 2".
_SEPARATORS: Final = string.whitespace + "_-.:"

#: Minimum length of a common prefix or suffix that is removed from long names.
_MIN_SHARED_LENGTH = 8

_GOOD, _BAD = LIGHT[2], LIGHT[1]

#: A filled circle means that the target holds. A cross means that the target is violated. A hollow
#: circle means that the check is inconclusive.
MARK_BY_VERDICT: Final[dict[str, dict[str, Any]]] = {
    "holds": {"marker": "o", "color": _GOOD, "markerfacecolor": _GOOD},
    "broken": {"marker": "X", "color": _BAD, "markerfacecolor": _BAD},
    "cannot tell": {"marker": "o", "color": MUTED, "markerfacecolor": PAPER},
}
OTHER_MARK: Final[dict[str, Any]] = {"marker": "D", "color": INK, "markerfacecolor": PAPER}

#: Legend entries of the markers.
LABEL_BY_VERDICT: Final = {
    "holds": "holds",
    "broken": "violated",
    "cannot tell": "inconclusive (too few samples)",
}


def total_verdict(check: RuleCheck) -> Verdict:
    """Return the verdict of these samples alone, without the verdicts of their groups.

    The attribute `verdict` of a data set with groups is the worst verdict of the total and the
    groups. A number is displayed with its own verdict.
    """
    return check.excess_verdict or check.verdict


def verdict_mark(verdict: str) -> dict[str, Any]:
    """Return the style of the marker of a check result."""
    return MARK_BY_VERDICT.get(verdict, OTHER_MARK)


def group_severities(names: Sequence[str]) -> list[list[int]]:
    """Group consecutive data sets that are severities of the same corruption.

    The names of severities differ only in a number at the end.

    Examples
    --------
    >>> group_severities(["iid", "noise_1", "noise_2", "blur 1"])
    [[0], [1, 2], [3]]
    """
    groups: list[list[int]] = []
    for i, name in enumerate(names):
        previous = _shift_name(names[i - 1]) if i else ""
        if previous and previous == _shift_name(name):
            groups[-1].append(i)
        else:
            groups.append([i])
    return groups


def _shift_name(name: str) -> str:
    """Return the name of a corruption without its severity, or "" if there is no severity."""
    stem = name.rstrip(string.digits)
    if stem == name:
        return ""
    if stem.endswith("."):
        # The severity may be a decimal number, as in "noise 0.5".
        whole_number = stem.removesuffix(".").rstrip(string.digits)
        is_decimal = len(whole_number) < len(stem) - 1
        stem = whole_number if is_decimal else stem
    return stem.rstrip(_SEPARATORS)


def shorten_names(names: Sequence[str]) -> dict[str, str]:
    """Return a short label for each name.

    If names are long, their common prefix and suffix are omitted.

    Examples
    --------
    >>> print(
    ...     *shorten_names(
    ...         [f"Predictions of hospital {i}, ward C, winter" for i in (1, 2)]
    ...     ).values()
    ... )
    …f hospital 1, ward C, w… …f hospital 2, ward C, w…
    """
    if all(len(name) <= MAX_LABEL_LENGTH for name in names) or len(names) < 2:
        return unique_labels(names)
    n_prefix = _common_prefix_length(names)
    if n_prefix <= _MIN_SHARED_LENGTH:
        n_prefix = 0
    n_suffix = _common_prefix_length([name[::-1] for name in names])
    shortest = min(len(name) for name in names)
    if n_suffix <= _MIN_SHARED_LENGTH or n_prefix + n_suffix >= shortest:
        n_suffix = 0
    longest = max(len(name) for name in names)
    # The labels keep as much of the common parts as fits beside the longest middle part.
    n_kept = max(MAX_LABEL_LENGTH - 2 - (longest - n_prefix - n_suffix), 0) // 2
    n_dropped_start = max(n_prefix - n_kept, 0)
    n_dropped_end = max(n_suffix - n_kept, 0)
    reduced = {}
    for name in names:
        text = name[n_dropped_start : len(name) - n_dropped_end]
        start = "…" if n_dropped_start else ""
        end = "…" if n_dropped_end else ""
        reduced[name] = f"{start}{text}{end}"
    label_by_text = unique_labels(list(reduced.values()))
    return {name: label_by_text[text] for name, text in reduced.items()}


def _common_prefix_length(names: Sequence[str]) -> int:
    """Return the length of the common prefix of all names."""
    shortest = min(names, key=len)
    for i, character in enumerate(shortest):
        if any(name[i] != character for name in names):
            return i
    return len(shortest)


def check_rule_checks(checks: object) -> RuleChecks:
    """Return the argument if it is a result of `check_rule`, else raise an error."""
    return check_result_type(checks, RuleChecks, "checks", "check_rule")
