"""Scores from the float64 log-probabilities of Monte-Carlo samples, shape (rows, S, K)."""

from collections.abc import Callable
from functools import partial

import numpy as np

from abstain.confidence import _kernels
from abstain.predictions.outputs import ClassScores
from abstain.predictions.softmax import log_mean_probabilities, row_blocks
from abstain.typing import FloatArray

SampleKernel = Callable[[FloatArray], FloatArray]


def of_mean(kernel: _kernels.Kernel) -> SampleKernel:
    """Return the kernel applied to the mean probability over the samples."""
    return partial(_apply_to_mean, kernel)


def _apply_to_mean(kernel: _kernels.Kernel, log_p: FloatArray) -> FloatArray:
    return kernel(log_mean_probabilities(log_p))


def expected_entropy(log_p: FloatArray) -> FloatArray:
    """Return minus the mean over the samples of the entropy of each sample."""
    rows, count, width = log_p.shape
    each = _kernels.negative_entropy(log_p.reshape(rows * count, width).copy())
    out: FloatArray = each.reshape(rows, count).mean(axis=1)
    return out


def mutual_information(log_p: FloatArray) -> FloatArray:
    """Return minus the mean divergence of the samples from their mean.

    The entropy of the mean minus the mean entropy is this same number, but loses all digits
    when the samples agree; here every term is non-negative and exact to its own size.
    """
    log_mean = log_mean_probabilities(log_p)[:, None]
    p, mean = np.exp(log_p), np.exp(log_mean)
    # Where a sample gives probability 0, the term p log(p/q) - p + q is q.
    with np.errstate(invalid="ignore"):
        u = np.where(p > 0, log_mean - log_p, 0.0)
    near = np.abs(u) < 1e-2
    series = 1.0 + u / 3 * (1 + u / 4 * (1 + u / 5 * (1 + u / 6 * (1 + u / 7))))
    terms = np.where(near & (p > 0), p * u**2 / 2 * series, (mean - p) - p * u)
    out: FloatArray = terms.sum(axis=2).mean(axis=1)
    return 0.0 - np.maximum(out, 0.0)


def deviation(log_p: FloatArray) -> FloatArray:
    """Return minus the mean over classes of the standard deviation over the samples."""
    at = log_mean_probabilities(log_p).argmax(axis=1)[:, None, None]
    p = np.exp(log_p)
    # 1 - p spreads as p does, and stays apart from 1 where p is nearly 1.
    np.put_along_axis(p, at, -np.expm1(np.take_along_axis(log_p, at, axis=2)), axis=2)
    out: FloatArray = p.std(axis=1).mean(axis=1)
    return 0.0 - out


def by_rows(kernel: SampleKernel, samples: ClassScores) -> FloatArray:
    """Apply a kernel to the log-probabilities of the samples, block by block, shape (n,)."""
    n, count, width = samples.values.shape
    out = np.empty(n)
    for rows in row_blocks(n, count * width):
        out[rows] = kernel(samples.log_probabilities(rows))
    return out


def largest_mean_logit(samples: ClassScores) -> FloatArray:
    """Largest entry of the mean logits, shape (n,)."""
    n, count, width = samples.values.shape
    out = np.empty(n)
    for rows in row_blocks(n, count * width):
        out[rows] = samples.log_scores(rows).mean(axis=1).max(axis=1)
    return out
