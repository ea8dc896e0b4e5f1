"""Areas under ROC and precision-recall curves, from weights at each rank."""

import numpy as np

from abstain._foundation.scored import Scored
from abstain.typing import FloatArray


def area_under_roc(positive: FloatArray, negative: FloatArray) -> float:
    """Return the chance that a positive ranks above a negative, ties half.

    Takes the weights of both at each rank, from the highest score down; neither may sum to 0.
    """
    above = np.cumsum(positive) - positive
    wins = float(np.sum(negative * (above + positive / 2)))
    return wins / (float(positive.sum()) * float(negative.sum()))


def average_precision(positive: FloatArray, negative: FloatArray) -> float:
    """Return the precision at each rank, averaged over the positives there; none is undefined."""
    found = np.cumsum(positive)
    taken = np.cumsum(positive + negative)
    at = positive > 0
    return float(np.sum(positive[at] * found[at] / taken[at]) / found[-1])


def successes_failures(s: Scored) -> tuple[FloatArray, FloatArray]:
    """Return the weights of both at each confidence, most confident first."""
    failures = s.groups.loss
    # Sums of weights that are no integers may differ in the last bit.
    return np.maximum(s.groups.weight - failures, 0.0), failures
