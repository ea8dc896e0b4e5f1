"""The arguments of `evaluate` and its kin: data, metrics, scores and losses."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from abstain._foundation.arrays import to_numpy
from abstain._foundation.frames import is_arrow_table, is_list_of_rows
from abstain._foundation.notes import Note
from abstain._foundation.scored import Scored
from abstain._foundation.weights import rescale_weights
from abstain.confidence import ConfidenceScore, ScoreState, applicable
from abstain.confidence.registry import several
from abstain.errors import InputError, ShapeError
from abstain.evaluation.records import RESULT_COLUMNS
from abstain.metrics import METRICS, Metric, metrics_named
from abstain.predictions import CostMatrix, Predictions
from abstain.typing import AnyArray, Array, Split

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
        rescale_weights(predictions.weight),
        probability=own.probability,
        class_view=predictions.view(),
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


# ------------------------------------------------------------------------------------ sources
_WAYS = (
    "give `evaluate(labels, probabilities)` with probabilities of shape (n, K), "
    "`evaluate(confidence, loss)` with 1 where the prediction is wrong, or "
    "`evaluate(ab.Predictions(...))`, which names what each array is"
)
_NAMED = (
    "the labels are names, and nothing says which column of the probabilities is whose: give the "
    "names in the order of the columns, as in `evaluate(ab.Predictions(labels=..., "
    "probabilities=..., classes=model.classes_))`"
)


def read_source(
    source: Any, beside: "AnyArray | None", notes: Sequence[str | Note]
) -> tuple[Any, Sequence[str | Note]]:
    """Return the predictions of a source, and the notes with those of its reader."""
    if beside is not None:
        return _pair(source, beside), notes
    if isinstance(source, tuple) and len(source) == 2 and not _are_paths(source):
        return _pair(*source), notes
    if not _is_table(source):
        return source, notes
    from abstain.tables import read_predictions

    reading = read_predictions(source)
    return reading, [*([notes] if isinstance(notes, str) else notes), *reading.notes]


def as_predictions(source: Any) -> Any:
    """Return the predictions of a file, a table or two arrays; return anything else unchanged."""
    return read_source(source, None, ())[0]


def _are_paths(source: Sequence[object]) -> bool:
    return all(isinstance(one, str | Path) for one in source)


def _is_table(source: object) -> bool:
    """Tell whether this is a file, files, a dataframe or arrays by name, which a reader reads."""
    if isinstance(source, str | Path) or _home(source) == "datasets":
        return True
    if isinstance(source, list | tuple):
        return bool(source) and (_are_paths(source) or is_list_of_rows(source))
    if isinstance(source, Mapping):
        return bool(source) and all(
            isinstance(name, str) and not isinstance(held, Predictions)
            for name, held in source.items()
        )
    return _is_frame(source)


#: Libraries whose dataframes and relations are read. A dask dataframe is read in parts, elsewhere.
_FRAME_LIBRARIES: Final = frozenset(
    {
        "cudf",
        "duckdb",
        "ibis",
        "modin",
        "narwhals",
        "pandas",
        "polars",
        "pyarrow",
        "pyspark",
        "sqlframe",
    }
)


def _is_frame(source: object) -> bool:
    """Return whether something is a dataframe, or gives out a table as a stream of Arrow."""
    # Asked of the type: a lazy frame of polars resolves its columns when it is asked, and warns.
    has_columns = hasattr(type(source), "columns")
    return (has_columns and _home(source) in _FRAME_LIBRARIES) or is_arrow_table(source)


def _home(source: object) -> str:
    """Return the package that something comes from."""
    return type(source).__module__.partition(".")[0]


# ------------------------------------------------------------------------------------ two arrays
def _pair(first: Any, second: Any) -> Predictions:
    """Tell by the shapes which two arrays these are; nothing is guessed from values."""
    if isinstance(first, Predictions | Mapping | str | Path) or _is_frame(first):
        raise InputError(
            f"a second argument stands beside an array; got {type(first).__name__}: {_WAYS}"
        )
    a, b = (_array(values, name) for values, name in ((first, "first"), (second, "second")))
    if a.ndim == 1 and b.ndim == 2:
        if a.dtype.kind not in "biuf":
            raise InputError(_NAMED)
        return Predictions(labels=first, probabilities=second)
    if a.ndim == 2 and b.ndim == 1:
        msg = f"the labels come first, then the probabilities; got shapes {a.shape} and {b.shape}"
        raise ShapeError(f"{msg}: swap them, as in `evaluate(labels, probabilities)`")
    if a.ndim != 1 or b.ndim != 1:
        raise ShapeError(
            f"two arrays of shapes {a.shape} and {b.shape} are no predictions: {_WAYS}"
        )
    _refuse_labels(a, b)
    return Predictions(confidence=first, loss=second)


def _array(values: Any, name: str) -> Array:
    try:
        return np.asarray(to_numpy(values, name))
    except ValueError:
        raise ShapeError(f"the {name} array has rows of different lengths: {_WAYS}") from None


def _refuse_labels(a: Array, b: Array) -> None:
    """Refuse two arrays of one axis of which the first may as well be labels."""
    if a.dtype.kind == "f":
        return
    if b.dtype.kind == "f" and not np.isin(b, (0, 1)).all():
        raise InputError(
            "the first array looks like labels and the second like the score of one class; give "
            "probabilities of all classes, (n, K), as in "
            "`evaluate(labels, np.column_stack([1 - p, p]))`"
        )
    raise InputError(
        "the first of two arrays of one axis is the confidence, and this one may as well be labels "
        f"({a.dtype}): give it as decimals, or name what each array is, as in "
        "`evaluate(ab.Predictions(labels=..., prediction=..., confidence=...))`"
    )
