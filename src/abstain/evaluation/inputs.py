"""Validate and prepare the data, metrics, scores and losses of `evaluate` and `compare`."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from abstain._foundation.arrays import to_numpy
from abstain._foundation.checks import positive_weight_mask, rescale_weights
from abstain._foundation.frames import is_arrow_table, is_list_of_rows
from abstain._foundation.notes import Note
from abstain._foundation.scored import Scored
from abstain.confidence import ConfidenceScore, ScoreState, applicable
from abstain.confidence.registry import score_many
from abstain.errors import DomainError, InputError, ShapeError
from abstain.evaluation.records import RESULT_COLUMNS
from abstain.metrics import METRICS, Metric, metrics_named
from abstain.predictions import CostMatrix, Predictions
from abstain.typing import AnyArray, Array, BoolArray, Split

#: Type of the argument `scores` of `evaluate` and `compare`.
RequestedScores: TypeAlias = Sequence[str | ScoreState] | str | ScoreState | None


def check_splits(
    predictions: Predictions | Mapping[Split, Predictions] | Mapping[str, Predictions],
) -> Mapping[Split, Predictions]:
    """Return a validated mapping of splits.

    A single `Predictions` object becomes one split. A text key such as "iid" becomes the split
    ``(("name", "iid"),)``.
    """
    if isinstance(predictions, Predictions):
        return {(): predictions}
    mapping: object = predictions
    if not isinstance(mapping, Mapping) or not mapping:
        raise InputError(
            "`predictions` must be a Predictions or a mapping from split to Predictions, not "
            f"empty; got {type(predictions).__name__}"
        )
    predictions = {
        (("name", key),) if isinstance(key, str) else key: value for key, value in mapping.items()
    }
    for split in predictions:
        if not _is_split(split):
            raise InputError(
                "the keys of `predictions` must be names or tuples of (column, value) pairs, such "
                f"as (('model', 'a'),); got {split!r}"
            )
    for value in mapping.values():
        if not isinstance(value, Predictions):
            raise InputError(
                "the values of `predictions` must be Predictions; got "
                f"{type(value).__name__}. For the result of read_predictions with one split, call "
                "its method `only`"
            )
    check_split_columns(predictions, RESULT_COLUMNS)
    return predictions


def _is_split(key: object) -> bool:
    """Return whether a key is a tuple of (column, value) pairs."""
    if not isinstance(key, tuple):
        return False
    return all(isinstance(pair, tuple) and len(pair) == 2 for pair in key)


def check_split_columns(splits: Iterable[Split], result_columns: Collection[str]) -> None:
    """Raise InputError if a split column has the same name as a result column."""
    for split in splits:
        for column, _ in split:
            if column in result_columns:
                raise InputError(
                    f"the split column {column!r} has the name of a column of the results; "
                    "rename it"
                )


def parse_metrics(names: Sequence[str] | None) -> list[Metric] | None:
    """Return the requested metrics without duplicates, or None if no names are given."""
    if names is None:
        return None
    requested = [names] if isinstance(names, str) else list(names)
    if not requested:
        raise _empty_list_error("metrics")
    # A number in a metric name has several spellings (`0.8`, `0.80`), which have the same title. A
    # user may register a metric with an existing title, so its name identifies the metric.
    unique: dict[str, Metric] = {}
    for name in requested:
        for metric in metrics_named(name):
            key = metric.name if metric.name in METRICS else metric.title
            unique.setdefault(key, metric)
    return list(unique.values())


def compute_scores(predictions: Predictions, scores: RequestedScores) -> Iterator[ConfidenceScore]:
    """Compute the requested scores one at a time, and yield them without duplicates."""
    requests_by_name: dict[str, str | ScoreState] = {}
    confidence_columns = predictions.confidence or {}
    requests = _list_requests(predictions, scores)
    for request, score in zip(requests, score_many(requests, predictions), strict=True):
        if score.name in requests_by_name:
            _check_same_score(requests_by_name[score.name], request, score.name)
            continue
        if not isinstance(request, str) and score.name in confidence_columns:
            raise InputError(
                f"the fitted score {score.name!r} has the name of a confidence column; rename it "
                "with `state.renamed('...')`, or rename the column"
            )
        requests_by_name[score.name] = request
        yield score


def join(predictions: Predictions, score: ConfidenceScore, losses: Array) -> Scored:
    """Return the input of metrics from predictions, a confidence score and the losses."""
    return Scored(
        score.values,
        losses,
        rescale_weights(predictions.weight),
        probability=score.probability,
        class_view=predictions.class_view(),
    )


def loss_name(loss: object, splits: Iterable[Predictions]) -> str:
    """Return the name of a loss for the results, which is "own" for an array of losses."""
    if isinstance(loss, str):
        return loss
    if isinstance(loss, CostMatrix):
        return "cost_matrix"
    has_custom_loss = loss is not None or any(split.loss is not None for split in splits)
    return "own" if has_custom_loss else "zero_one"


def _list_requests(predictions: Predictions, scores: RequestedScores) -> list[str | ScoreState]:
    """Return the requested scores, or all applicable scores if none were requested."""
    if isinstance(scores, str | ScoreState):
        return [scores]
    if scores is not None and not list(scores):
        raise _empty_list_error("scores")
    if scores is not None:
        return list(scores)
    names = applicable(predictions)
    if not names:
        raise InputError(
            "these predictions allow no confidence score; pass `confidence`, `logits`, "
            "`probabilities` or Monte Carlo samples"
        )
    return list(names)


def _check_same_score(first: str | ScoreState, second: str | ScoreState, name: str) -> None:
    """Raise InputError if two different scores have the same name."""
    if first is second or (isinstance(first, str) and isinstance(second, str)):
        return
    raise InputError(
        f"two scores are named {name!r}; rename the fitted one with `state.renamed('...')`"
    )


def _empty_list_error(argument: str) -> InputError:
    return InputError(
        f"`{argument}` must contain at least one name, or be None for all; got an empty list"
    )


# ------------------------------------------------------------------------------------ sources
_USAGE = (
    "call `evaluate(labels, probabilities)` with probabilities of shape (n, K), "
    "`evaluate(confidence, loss)` with loss 1 for a wrong prediction, or "
    "`evaluate(ab.Predictions(...))` with named arrays"
)
_CLASS_NAMES_REQUIRED = (
    "the labels are class names, and the class of each probability column is unknown: pass the "
    "names in the order of the columns, as in `evaluate(ab.Predictions(labels=..., "
    "probabilities=..., classes=model.classes_))`"
)


def read_source(
    source: Any, probabilities_or_loss: AnyArray | None = None
) -> tuple[Any, tuple[Note | str, ...]]:
    """Convert a file, a table or two arrays to predictions, and return them with notes.

    An object of another type is returned unchanged.
    """
    if probabilities_or_loss is not None:
        return _predictions_from_arrays(source, probabilities_or_loss), ()
    if isinstance(source, tuple) and len(source) == 2 and not _are_paths(source):
        return _predictions_from_arrays(*source), ()
    if not _is_table(source):
        return source, ()
    from abstain.tables import read_predictions

    reading = read_predictions(source)
    return reading, tuple(reading.notes)


def _are_paths(source: Sequence[object]) -> bool:
    return all(isinstance(entry, str | Path) for entry in source)


def _is_table(source: object) -> bool:
    """Return whether `read_predictions` accepts an object of this type."""
    if isinstance(source, str | Path) or _package_name(source) == "datasets":
        return True
    if isinstance(source, list | tuple):
        return bool(source) and (_are_paths(source) or is_list_of_rows(source))
    if isinstance(source, Mapping):
        return bool(source) and all(
            isinstance(name, str) and not isinstance(column, Predictions)
            for name, column in source.items()
        )
    return _is_frame(source)


#: Libraries whose dataframes and relations can be read. A Dask dataframe is read as a stream.
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
    """Return whether an object is a dataframe or exports a table as an Arrow stream."""
    # The attribute is looked up on the type, because a lazy Polars frame warns on access.
    has_columns = hasattr(type(source), "columns")
    return (has_columns and _package_name(source) in _FRAME_LIBRARIES) or is_arrow_table(source)


def _package_name(source: object) -> str:
    """Return the name of the package that defines the type of an object."""
    return type(source).__module__.partition(".")[0]


# ------------------------------------------------------------------------------------ two arrays
def _predictions_from_arrays(first: Any, second: Any) -> Predictions:
    """Return predictions from labels and probabilities, or from confidences and losses.

    A two-dimensional second array contains probabilities, and a one-dimensional one losses.
    """
    if isinstance(first, Predictions | Mapping | str | Path) or _is_frame(first):
        raise InputError(
            "a second argument is only allowed if the first one is an array; the first one is a "
            f"{type(first).__name__}: {_USAGE}"
        )
    first_array, second_array = _as_array(first, "first"), _as_array(second, "second")
    shapes = f"{first_array.shape} and {second_array.shape}"
    if first_array.ndim == 1 and second_array.ndim == 2:
        if first_array.dtype.kind not in "biuf":
            raise InputError(_CLASS_NAMES_REQUIRED)
        return Predictions(labels=first, probabilities=second)
    if first_array.ndim == 2 and second_array.ndim == 1:
        raise ShapeError(
            f"the labels come first, then the probabilities; got shapes {shapes}: swap them, as "
            "in `evaluate(labels, probabilities)`"
        )
    if first_array.ndim != 1 or second_array.ndim != 1:
        raise ShapeError(f"two arrays of shapes {shapes} are no predictions: {_USAGE}")
    _check_not_labels(first_array, second_array)
    return Predictions(confidence=first, loss=second)


def _as_array(values: Any, name: str) -> Array:
    try:
        return np.asarray(to_numpy(values, name))
    except ValueError:
        raise ShapeError(f"the {name} array has rows of different lengths: {_USAGE}") from None


def _check_not_labels(confidence: Array, loss: Array) -> None:
    """Raise InputError if the first of two one-dimensional arrays may be labels."""
    if confidence.dtype.kind == "f":
        return
    if loss.dtype.kind == "f" and not np.isin(loss, (0, 1)).all():
        raise InputError(
            "the first array looks like labels and the second like the score of one class; pass "
            "the probabilities of all classes, shape (n, K), as in "
            "`evaluate(labels, np.column_stack([1 - p, p]))`"
        )
    raise InputError(
        "the first of two one-dimensional arrays is the confidence, but its dtype "
        f"{confidence.dtype} also fits labels: convert it to floating point, or name the arrays, "
        "as in `evaluate(ab.Predictions(labels=..., prediction=..., confidence=...))`"
    )


# ------------------------------------------------------------------------------- rows with weight 0
def positive_weight_rows(data: Any, *columns: Any, where: str = "") -> tuple[Any, ...]:
    """Remove the rows of weight 0 from the predictions and from other columns.

    Data of another type, and columns without one entry for each row, are returned unchanged. Raise
    DomainError if no weight is positive.
    """
    mask = positive_weight_mask(data.weight) if isinstance(data, Predictions) else None
    if mask is None:
        return data, *columns
    if not mask.any():
        raise zero_weights_error(where)
    return data.subset(mask), *(_select_rows(column, mask) for column in columns)


def positive_weight_splits(
    splits: Mapping[Split, Predictions], loss: Any = None
) -> tuple[dict[Split, Predictions], Any]:
    """Remove the rows of weight 0 from all splits and from the losses.

    A split in which all weights are 0 is removed. If samples have no ids, their row numbers become
    ids.
    """
    remaining = {}
    for split, predictions in splits.items():
        mask = positive_weight_mask(predictions.weight)
        if mask is None:
            remaining[split] = predictions
        elif mask.any():
            remaining[split] = _with_row_ids(predictions).subset(mask)
            loss = _select_rows(loss, mask)
    if not remaining:
        raise zero_weights_error()
    return remaining, loss


def positive_weight_batch(predictions: Predictions) -> Predictions | None:
    """Return the predictions with a positive weight, or None if all weights are 0."""
    mask = positive_weight_mask(predictions.weight)
    if mask is None:
        return predictions
    return _with_row_ids(predictions).subset(mask) if mask.any() else None


def positive_weight_runs(
    runs: Mapping[tuple[Split, str], Mapping[str, Predictions]], loss: Any
) -> tuple[dict[tuple[Split, str], dict[str, Predictions]], Any]:
    """Remove the rows whose weight is 0 for all methods from the runs and the losses.

    A row is only removed if its weight is 0 in all runs of the data set, so that the runs keep the
    same samples. A run in which all weights are 0 is removed.
    """
    remaining = {}
    for (data, run), models in runs.items():
        models_of_data: list[Predictions] = []
        for (other_data, _), other_models in runs.items():
            if other_data == data:
                models_of_data += other_models.values()
        if len({p.n for p in models_of_data}) > 1:
            models_of_data = list(models.values())
        mask = _mask_of_any_positive_weight(models_of_data)
        if mask is None or mask.all():
            remaining[data, run] = dict(models)
        elif mask.any():
            remaining[data, run] = {name: p.subset(mask) for name, p in models.items()}
            loss = _select_rows(loss, mask)
    if not remaining:
        raise zero_weights_error()
    return remaining, loss


def _mask_of_any_positive_weight(models: Sequence[Predictions]) -> BoolArray | None:
    """Return a mask of the rows with a positive weight in any model, or None without weights."""
    masks = [positive_weight_mask(p.weight) for p in models]
    if any(mask is None for mask in masks):
        return None
    return np.asarray(np.logical_or.reduce(masks))


def zero_weights_error(where: str = "") -> DomainError:
    """Return the error for data whose weights are all 0."""
    message = "`weight` must not be zero everywhere; got only zeros"
    return DomainError(f"{where}: {message}" if where else message)


def _with_row_ids(predictions: Predictions) -> Predictions:
    """Return predictions with row numbers as ids, unless the predictions already have ids.

    These ids still identify the samples after rows are removed.
    """
    if predictions.ids is not None:
        return predictions
    # A shallow copy is sufficient, because the predictions are already validated.
    named = copy(predictions)
    object.__setattr__(named, "ids", np.arange(predictions.n))
    return named


def _select_rows(column: Any, mask: BoolArray) -> Any:
    """Select rows of a column; a column of another length is returned unchanged."""
    if column is None or isinstance(column, str | CostMatrix):
        return column
    values = np.asarray(column)
    return values[mask] if values.shape[:1] == mask.shape else column
