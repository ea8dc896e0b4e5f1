"""Softmax work in float64 and in log space, by blocks of rows.

Everything here keeps what a plain softmax rounds away: the top class's logarithm is
``-log1p(sum of the others)``, so it stays apart from 0 as long as the others do not vanish.
"""

from collections.abc import Iterator

import numpy as np

from abstain.typing import Array, FloatArray

#: Entries held in float64 at a time: 8 MiB, so a block stays near the processor.
BLOCK_ENTRIES = 1 << 20


def row_blocks(n: int, width: int) -> Iterator[slice]:
    """Cut n rows of `width` entries into slices of about `BLOCK_ENTRIES` entries."""
    step = max(1, BLOCK_ENTRIES // max(1, width))
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


def log_scores(values: Array, *, are_logits: bool) -> FloatArray:
    """Return a new float64 array whose softmax over the last axis is the class probability.

    Logits are that already; probabilities become their logarithms (0 becomes -inf), whose
    softmax divides each row by its sum and so removes the rounding of the storage.
    """
    out = values.astype(np.float64)
    if are_logits:
        return out
    with np.errstate(divide="ignore"):
        return np.log(out, out=out)


def log_softmax(scores: FloatArray) -> FloatArray:
    """Return log-probabilities over the last axis, exact for a top class near 1.

    Parameters
    ----------
    scores : ndarray of shape (..., K)
        Float64 log-scores; -inf marks probability 0, not all of a row may be -inf.

    Returns
    -------
    ndarray of shape (..., K)
        Never above 0; -inf where the score is.

    Examples
    --------
    >>> import numpy as np
    >>> float(log_softmax(np.array([[50.0, 0.0]]))[0, 0])
    -1.9287498479639178e-22
    """
    top = scores.argmax(axis=-1, keepdims=True)
    shifted = scores - np.take_along_axis(scores, top, axis=-1)
    others = np.exp(shifted)
    np.put_along_axis(others, top, 0.0, axis=-1)
    shifted -= np.log1p(others.sum(axis=-1, keepdims=True))
    return shifted


def log_mean_probabilities(log_probabilities: FloatArray) -> FloatArray:
    """Return the logarithm of the mean probability over the samples.

    Parameters
    ----------
    log_probabilities : ndarray of shape (rows, S, K)
        Log-probabilities of each Monte-Carlo sample.

    Returns
    -------
    ndarray of shape (rows, K)
        -inf where every sample gives probability 0.

    Examples
    --------
    >>> import numpy as np
    >>> log_p = np.log(np.array([[[0.9, 0.1], [0.5, 0.5]]]))
    >>> np.exp(log_mean_probabilities(log_p)).round(3).tolist()
    [[0.7, 0.3]]
    """
    largest = log_probabilities.max(axis=1, keepdims=True)
    largest = np.where(np.isneginf(largest), 0.0, largest)
    mean = np.exp(log_probabilities - largest).mean(axis=1)
    with np.errstate(divide="ignore"):
        out: FloatArray = np.log(mean) + largest[:, 0]
    return out
