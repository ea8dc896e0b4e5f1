"""Errors and warnings of abstain.

Each message states the argument, its value, the rule and the remedy.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class AbstainError(Exception):
    """Base class of all errors that abstain raises."""


class InputError(AbstainError, ValueError):
    """An argument is invalid."""


class ShapeError(InputError):
    """An array has the wrong number of axes or the wrong length."""


class DomainError(InputError):
    """An array contains a value outside its valid range."""


class MissingInputError(InputError):
    """A required input is missing (labels, probabilities, a column)."""


class UnknownNameError(InputError, KeyError):
    """No metric, score, loss or column has this name."""

    # KeyError prints the repr of its argument, which would quote the whole message.
    __str__ = Exception.__str__


class UncountedError(InputError):
    """A streaming state does not contain the requested information.

    The message names a state that contains it.
    """


class FileFormatError(AbstainError, ValueError):
    """A file does not have the expected format."""


class UndefinedMetricWarning(UserWarning):
    """A metric is undefined for valid data (failure AUROC without failures) and NaN."""


class UnattainableRuleWarning(UserWarning):
    """No threshold has the guarantee of the decision rule; the rule accepts nothing."""


def suggest(name: str, available: Iterable[str]) -> str:
    """Return ``" Did you mean 'x'?"`` for the most similar available name, or an empty string."""
    by_lower = {x.lower(): x for x in available}
    matches = get_close_matches(name.lower(), list(by_lower), n=1, cutoff=0.6)
    return f" Did you mean {by_lower[matches[0]]!r}?" if matches else ""
