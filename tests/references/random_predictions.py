"""Random predictions on which abstain and other packages are compared."""

from typing import NamedTuple

import numpy as np


class RandomPredictions(NamedTuple):
    """Predictions of four classes; `c` is the confidence."""

    labels: np.ndarray
    probabilities: np.ndarray
    prediction: np.ndarray
    c: np.ndarray
    loss: np.ndarray

    @property
    def correct(self):
        return 1 - self.loss


def draw_predictions(seed, *, tied=False):
    """Draw 150 to 249 samples; if `tied`, more than half of them share a confidence.

    The probabilities are rounded to single precision, the only one that torch-uncertainty computes in,
    and none is close to 1.
    """
    rng = np.random.default_rng(seed)
    n = int(rng.integers(150, 250))
    logits = rng.normal(size=(n, 4)) * 1.5
    if tied:
        logits = logits.round()
    probabilities = np.exp(logits)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    labels = (probabilities.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    probabilities = probabilities.astype(np.float32).astype(float)
    prediction = probabilities.argmax(axis=1)
    c = probabilities.max(axis=1)
    assert (np.unique(c).size < n / 2) == tied
    return RandomPredictions(
        labels, probabilities, prediction, c, (prediction != labels).astype(int)
    )


def draw_graded_losses(seed, predictions):
    """Draw a loss between 0 and 1 for each sample."""
    return np.random.default_rng(seed).random(predictions.c.size)
