"""What `evaluate` and its kin are given: predictions, a table of them, or two arrays."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from abstain._foundation.arrays import to_numpy
from abstain._foundation.frames import are_rows, is_arrow_table
from abstain._foundation.notes import Note
from abstain.errors import InputError, ShapeError
from abstain.predictions import Predictions
from abstain.typing import AnyArray, Array, Split

if TYPE_CHECKING:
    from abstain.tables import PredictionScan

#: What `evaluate` works on, or has made of what it is given.
Ready: TypeAlias = "Predictions | Mapping[Split, Predictions] | PredictionScan"

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


def given(
    source: Any, beside: "AnyArray | None", notes: Sequence[str | Note]
) -> tuple[Any, Sequence[str | Note]]:
    """Return predictions of what was given, and the notes with those of a reader."""
    if beside is not None:
        return _pair(source, beside), notes
    if isinstance(source, tuple) and len(source) == 2 and not _are_paths(source):
        return _pair(*source), notes
    if not _is_table(source):
        return source, notes
    from abstain.tables import read_predictions

    reading = read_predictions(source)
    return reading, [*([notes] if isinstance(notes, str) else notes), *reading.notes]


def opened(source: Any) -> Any:
    """Return the predictions of a file, a table or two arrays; what is something else as it is."""
    return given(source, None, ())[0]


def _are_paths(source: Sequence[object]) -> bool:
    return all(isinstance(one, str | Path) for one in source)


def _is_table(source: object) -> bool:
    """Tell whether this is a file, files, a dataframe or arrays by name, which a reader reads."""
    if isinstance(source, str | Path) or _home(source) == "datasets":
        return True
    if isinstance(source, list | tuple):
        return bool(source) and (_are_paths(source) or are_rows(source))
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
