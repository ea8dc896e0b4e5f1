"""Confidences from log-probabilities: of the tokens of an answer, and of the answers to choose."""

from collections.abc import Sequence

import numpy as np


def of_tokens(logprobs: Sequence[float]) -> dict[str, float]:
    """Return mean, sum and least of the log-probabilities of an answer's tokens, if any."""
    if not logprobs:
        return {}
    x = np.asarray(logprobs, dtype=np.float64)
    return {
        "mean_logprob": float(x.mean()),
        "sum_logprob": float(x.sum()),
        "least_logprob": float(x.min()),
    }


def of_choices(logprobs: Sequence[float]) -> dict[str, float]:
    """Return how sure the choice of the likeliest answer is, if there is a choice.

    Its probability among the answers, and by how much its log-probability exceeds the next one.
    """
    x = np.sort(np.asarray(logprobs, dtype=np.float64))[::-1]
    if x.size < 2 or not np.isfinite(x[0]):
        return {}
    with np.errstate(under="ignore"):
        share = 1 / np.exp(x - x[0]).sum()
    return {"choice_probability": float(share), "choice_margin": float(x[0] - x[1])}
