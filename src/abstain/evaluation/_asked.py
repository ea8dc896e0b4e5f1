"""The scores that were asked for: by name, by default all that apply, or fitted ones."""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from abstain.confidence import ConfidenceScore, Scorer, applicable, score
from abstain.errors import InputError
from abstain.predictions import Predictions

#: The argument `scores` of `evaluate` and `compare`.
Asked: TypeAlias = Sequence[str | Scorer] | str | Scorer | None


def listed(names: Sequence[str], argument: str) -> list[str]:
    """Return names as a list; refuse an empty one."""
    found = [names] if isinstance(names, str) else list(names)
    if not found:
        _refuse_empty(argument)
    return found


def scores_of(predictions: Predictions, scores: Asked) -> Iterator[ConfidenceScore]:
    """Compute the scores asked for, each once, one at a time."""
    met: dict[str, str | Scorer] = {}
    for asked in _asked(predictions, scores):
        own = score(asked, predictions)
        if own.name in met:
            _refuse_other(met[own.name], asked, own.name)
            continue
        if not isinstance(asked, str) and own.name in (predictions.confidence or {}):
            msg = (
                f"the fitted score {own.name!r} has the name of a confidence column; rename one, "
                "such as by `state.renamed('...')`"
            )
            raise InputError(msg)
        met[own.name] = asked
        yield own


def _asked(predictions: Predictions, scores: Asked) -> list[str | Scorer]:
    if scores is None:
        found: list[str | Scorer] = list(applicable(predictions))
        if not found:
            msg = (
                "these predictions allow no confidence score; give `confidence`, `logits`, "
                "`probabilities` or Monte-Carlo samples"
            )
            raise InputError(msg)
        return found
    if isinstance(scores, str | Scorer):
        return [scores]
    found = list(scores)
    if not found:
        _refuse_empty("scores")
    return found


def _refuse_other(first: str | Scorer, second: str | Scorer, name: str) -> None:
    """Refuse two scores of one name; one that is asked for twice comes once."""
    if first is second or (isinstance(first, str) and isinstance(second, str)):
        return
    msg = f"two scores are named {name!r}; rename the fitted one by `state.renamed('...')`"
    raise InputError(msg)


def _refuse_empty(argument: str) -> None:
    msg = f"`{argument}` must name at least one, or be None for all; got an empty list"
    raise InputError(msg)
