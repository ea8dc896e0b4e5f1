"""Groups by name: as texts, and the predicted class as one."""

from collections.abc import Hashable
from datetime import datetime, time

import numpy as np

from abstain._foundation.arrays import to_numpy
from abstain._foundation.names import encode_names
from abstain.errors import DomainError, ShapeError
from abstain.predictions import Predictions
from abstain.typing import AnyArray, Array, IntArray


def grouped(group: AnyArray, n: int, name: str = "group") -> tuple[list[str], IntArray]:
    """Validate the group of each of n samples; return names as in a rule, and codes from 0."""
    values = to_numpy(group, name)
    if values.shape != (n,):
        raise ShapeError(
            f"`{name}` must have one entry for each of the {n} samples; got shape {values.shape}"
        )
    if values.dtype.kind == "M":
        # NumPy hands out finer ones as bare counts.
        values = values.astype("datetime64[us]")
    kinds, codes = encode_names(values, name)
    names = [_text(kind, name) for kind in kinds]
    place = {text: at for at, text in enumerate(dict.fromkeys(names))}
    return list(place), np.array([place[text] for text in names], dtype=np.int64)[codes]


def texts(group: AnyArray, name: str = "group") -> Array:
    """Return the group of each sample as text, as it stands in a rule."""
    values = to_numpy(group, name)
    names, codes = grouped(values, values.shape[0] if values.ndim else 1, name)
    found: Array = np.array(names, dtype=np.str_)[codes]
    return found


def predicted_names(predictions: Predictions) -> Array:
    """Return the predicted class of each sample, as text."""
    found: Array = class_texts(predictions)[predictions.prediction_codes]
    return found


def class_texts(predictions: Predictions) -> Array:
    """Return the names of the classes as texts, shape (K,)."""
    return np.array([_text(kind, "class_names") for kind in predictions.class_names], dtype=np.str_)


def _text(kind: Hashable, name: str) -> str:
    """Return a name as text, the same for 1 and 1.0, for a day and its midnight; refuse none."""
    if kind is None or kind != kind:  # noqa: PLR0124
        raise DomainError(
            f"`{name}` must name something for every sample; got {kind}. Drop these samples, or "
            "give them a name of their own"
        )
    if isinstance(kind, float) and kind.is_integer():
        return str(int(kind))
    if isinstance(kind, datetime) and (kind.tzinfo, kind.time()) == (None, time()):
        return str(kind.date())
    return str(kind)
