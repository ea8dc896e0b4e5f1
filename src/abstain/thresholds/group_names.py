"""Groups by name: as texts, and the predicted class as one."""

import numpy as np

from abstain.predictions import Predictions
from abstain.typing import Array


def texts(names: Array) -> Array:
    """Return names as texts, as they stand in a rule."""
    return np.asarray([str(name) for name in names.tolist()], dtype=np.str_)


def predicted_names(predictions: Predictions) -> Array:
    """Return the predicted class of each sample, as text."""
    names = texts(np.asarray(predictions.class_names, dtype=object))
    found: Array = names[predictions.prediction_codes]
    return found
