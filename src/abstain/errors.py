"""The errors and warnings that abstain raises.

Every message states the rule, the argument, the value found and what to do.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class AbstainError(Exception):
    """Base of every error that abstain raises on purpose."""


class InputError(AbstainError, ValueError):
    """A value that was passed in breaks a rule of the function it was passed to."""


class ShapeError(InputError):
    """An array has the wrong number of axes or the wrong length."""


class DomainError(InputError):
    """An array holds a value outside the values allowed for it."""


class MissingInputError(InputError):
    """Something that the request needs was not given (labels, probabilities, a column)."""


class UnknownNameError(InputError, KeyError):
    """A metric, score, loss or column of that name does not exist."""

    # KeyError prints the repr of its argument, which would quote the whole message.
    __str__ = Exception.__str__


class UncountedError(InputError):
    """A state of a stream was asked for what it does not keep; the message names one that does."""


class FileFormatError(AbstainError, ValueError):
    """A file is not what its name or the request says it is."""


class UndefinedMetricWarning(UserWarning):
    """A metric has no value on valid data (failure AUROC without failures); NaN was returned."""


class UnattainableRuleWarning(UserWarning):
    """No threshold keeps what a decision rule promises; the rule accepts nothing."""


def suggest(name: str, known: Iterable[str]) -> str:
    """Return ``" Did you mean 'x'?"`` for the nearest known name, or an empty string."""
    by_lower = {x.lower(): x for x in known}
    near = get_close_matches(name.lower(), list(by_lower), n=1, cutoff=0.6)
    return f" Did you mean {by_lower[near[0]]!r}?" if near else ""
