"""Confidences from log-probabilities of the tokens of an answer or of the choices."""

from collections.abc import Sequence

import numpy as np


def token_confidences(logprobs: Sequence[float]) -> dict[str, float]:
    """Return mean, sum and minimum of the log-probabilities of the tokens of an answer."""
    if not logprobs:
        return {}
    values = np.asarray(logprobs, dtype=np.float64)
    return {
        "mean_logprob": float(values.mean()),
        "sum_logprob": float(values.sum()),
        "least_logprob": float(values.min()),
    }


def choice_confidences(logprobs: Sequence[float]) -> dict[str, float]:
    """Return the normalized probability of the best choice, and its margin to the second.

    The margin is a difference of log-probabilities. Fewer than two choices have no confidence.
    """
    descending = np.sort(np.asarray(logprobs, dtype=np.float64))[::-1]
    if descending.size < 2 or not np.isfinite(descending[0]):
        return {}
    with np.errstate(under="ignore"):
        probability = 1 / np.exp(descending - descending[0]).sum()
    margin = descending[0] - descending[1]
    return {"choice_probability": float(probability), "choice_margin": float(margin)}
