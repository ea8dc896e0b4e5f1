"""What is evaluated: the parts of the data, the metrics and the scores asked for, their losses."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from abstain._foundation.scored import Scored
from abstain._foundation.weights import rescaled
from abstain.confidence import ConfidenceScore, ScoreState, applicable
from abstain.confidence.registry import several
from abstain.errors import InputError
from abstain.evaluation.records import RESULT_COLUMNS
from abstain.metrics import METRICS, Metric, metrics_named
from abstain.predictions import CostMatrix, Predictions
from abstain.typing import Array, Split

#: The argument `scores` of `evaluate` and `compare`.
Asked: TypeAlias = Sequence[str | ScoreState] | str | ScoreState | None


def splits_of(
    predictions: Predictions | Mapping[Split, Predictions],
) -> Mapping[Split, Predictions]:
    """Return the parts of the data by split; one set of predictions is one part."""
    if isinstance(predictions, Predictions):
        return {(): predictions}
    parts: object = predictions
    if not isinstance(parts, Mapping) or not parts:
        raise InputError(
            "`predictions` must be a Predictions or a mapping from split to Predictions, not "
            f"empty; got {type(predictions).__name__}"
        )
    for split in predictions:
        pairs: object = split
        if not isinstance(pairs, tuple) or not all(
            isinstance(pair, tuple) and len(pair) == 2 for pair in pairs
        ):
            raise InputError(
                "the keys of `predictions` must be tuples of (column, value) pairs, such as "
                f"(('model', 'a'),); got {pairs!r}"
            )
    refuse_columns(predictions, RESULT_COLUMNS)
    return predictions


def refuse_columns(splits: Iterable[Split], taken: Collection[str]) -> None:
    """Refuse columns that split the data and have the name of a column of the results."""
    for column in (column for split in splits for column, _ in split):
        if column in taken:
            raise InputError(
                f"the data are split by a column named {column!r}, which is also a column of the "
                "results; rename it"
            )


def metrics_of(names: Sequence[str] | None) -> list[Metric] | None:
    """Return the metrics asked for; one that is asked for in two spellings comes once."""
    if names is None:
        return None
    asked = [names] if isinstance(names, str) else list(names)
    if not asked:
        _refuse_empty("metrics")
    found = [metric for name in asked for metric in metrics_named(name)]
    # Numbers in a name have several spellings and one title. A metric of one's own, which may have
    # the title of the one it is made from, is registered.
    keys = [m.name if m.name in METRICS else m.title for m in found]
    return list(dict(zip(reversed(keys), reversed(found), strict=True)).values())[::-1]


def scores_of(predictions: Predictions, scores: Asked) -> Iterator[ConfidenceScore]:
    """Compute the scores asked for, each once, one at a time."""
    met: dict[str, str | ScoreState] = {}
    wanted = _asked(predictions, scores)
    for asked, own in zip(wanted, several(wanted, predictions), strict=True):
        if own.name in met:
            _refuse_other(met[own.name], asked, own.name)
            continue
        if not isinstance(asked, str) and own.name in (predictions.confidence or {}):
            raise InputError(
                f"the fitted score {own.name!r} has the name of a confidence column; rename one, "
                "such as by `state.renamed('...')`"
            )
        met[own.name] = asked
        yield own


def join(predictions: Predictions, own: ConfidenceScore, losses: Array) -> Scored:
    """Join predictions, a score and the losses into what metrics take."""
    return Scored(
        own.values,
        losses,
        rescaled(predictions.weight),
        probability=own.probability,
        view=predictions.view(),
    )


def loss_name(loss: object, parts: Iterable[Predictions]) -> str:
    """Return how results name the loss that was asked for."""
    if isinstance(loss, str):
        return loss
    if isinstance(loss, CostMatrix):
        return "cost_matrix"
    own = loss is not None or any(part.loss is not None for part in parts)
    return "own" if own else "zero_one"


def _asked(predictions: Predictions, scores: Asked) -> list[str | ScoreState]:
    if scores is None:
        found: list[str | ScoreState] = list(applicable(predictions))
        if not found:
            raise InputError(
                "these predictions allow no confidence score; give `confidence`, `logits`, "
                "`probabilities` or Monte-Carlo samples"
            )
        return found
    if isinstance(scores, str | ScoreState):
        return [scores]
    found = list(scores)
    if not found:
        _refuse_empty("scores")
    return found


def _refuse_other(first: str | ScoreState, second: str | ScoreState, name: str) -> None:
    """Refuse two scores of one name; one that is asked for twice comes once."""
    if first is second or (isinstance(first, str) and isinstance(second, str)):
        return
    raise InputError(
        f"two scores are named {name!r}; rename the fitted one by `state.renamed('...')`"
    )


def _refuse_empty(argument: str) -> None:
    raise InputError(f"`{argument}` must name at least one, or be None for all; got an empty list")
