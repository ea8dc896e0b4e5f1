"""Convert group names and predicted classes to text."""

from collections.abc import Hashable
from datetime import datetime, time

import numpy as np

from abstain._foundation.arrays import to_numpy
from abstain._foundation.names import encode_names
from abstain.errors import DomainError, ShapeError
from abstain.predictions import Predictions
from abstain.typing import AnyArray, Array, IntArray


def encode_groups(group: AnyArray, n: int, name: str = "group") -> tuple[list[str], IntArray]:
    """Validate the group of each of n samples, and return the group names and integer codes."""
    values = to_numpy(group, name)
    if values.shape != (n,):
        raise ShapeError(
            f"`{name}` must have one entry for each of the {n} samples; got shape {values.shape}"
        )
    if values.dtype.kind == "M":
        # NumPy converts finer units to plain integers.
        values = values.astype("datetime64[us]")
    distinct, codes = encode_names(values, name)
    names = [_group_name(value, name) for value in distinct]
    # Different values, such as 1 and 1.0, may have the same name.
    code_of_name = {text: code for code, text in enumerate(dict.fromkeys(names))}
    codes_by_value = np.array([code_of_name[text] for text in names], dtype=np.int64)
    return list(code_of_name), codes_by_value[codes]


def group_texts(group: AnyArray, name: str = "group") -> Array:
    """Return the group name of each sample as a decision rule stores it."""
    values = to_numpy(group, name)
    names, codes = encode_groups(values, values.shape[0] if values.ndim else 1, name)
    group_names: Array = np.array(names, dtype=np.str_)[codes]
    return group_names


def predicted_class_names(predictions: Predictions) -> Array:
    """Return the name of the predicted class of each sample as text."""
    names: Array = class_name_texts(predictions)[predictions.prediction_codes]
    return names


def class_name_texts(predictions: Predictions) -> Array:
    """Return the names of the classes as text, shape (K,)."""
    names = [_group_name(value, "class_names") for value in predictions.class_names]
    return np.array(names, dtype=np.str_)


def _group_name(value: Hashable, name: str) -> str:
    """Convert a value to text; 1 and 1.0 become the same text, as do a date and its midnight."""
    is_nan = value != value  # noqa: PLR0124
    if value is None or is_nan:
        raise DomainError(
            f"`{name}` must have a value for every sample; got {value}. Drop these samples, or "
            "give them a separate name"
        )
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    is_midnight = isinstance(value, datetime) and (value.tzinfo, value.time()) == (None, time())
    if isinstance(value, datetime) and is_midnight:
        return str(value.date())
    return str(value)
