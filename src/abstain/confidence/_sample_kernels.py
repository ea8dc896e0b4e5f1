"""Scores from the float64 log-probabilities of Monte-Carlo samples, shape (rows, S, K)."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from abstain._foundation.arrays import is_on_device, like
from abstain.confidence import _kernels
from abstain.predictions.outputs import ClassScores
from abstain.predictions.softmax import entry, filled, log_mean_probabilities, row_blocks, without
from abstain.typing import AnyArray

#: From a namespace and log-probabilities (rows, S, K) to one number a row.
SampleKernel: TypeAlias = Callable[[Any, AnyArray], AnyArray]


def of_mean(kernel: _kernels.Kernel) -> SampleKernel:
    """Return the kernel applied to the mean probability over the samples."""
    return partial(_apply_to_mean, kernel)


def _apply_to_mean(kernel: _kernels.Kernel, xp: Any, log_p: AnyArray) -> AnyArray:
    return kernel(xp, log_mean_probabilities(log_p, xp=xp))


def expected_entropy(xp: Any, log_p: AnyArray) -> AnyArray:
    """Return minus the mean over the samples of the entropy of each sample."""
    rows, count, width = log_p.shape
    each = _kernels.negative_entropy(xp, xp.reshape(log_p, (rows * count, width)))
    return xp.mean(xp.reshape(each, (rows, count)), axis=1)


def mutual_information(xp: Any, log_p: AnyArray) -> AnyArray:
    """Return minus the mean divergence of the samples from their mean.

    The entropy of the mean minus the mean entropy is this same number, but loses all digits
    when the samples agree; here every term is non-negative and exact to its own size.
    """
    log_mean = log_mean_probabilities(log_p, xp=xp)[:, None, :]
    p, mean = xp.exp(log_p), xp.exp(log_mean)
    # Where a sample gives probability 0, the term p log(p/q) - p + q is q.
    absent = p == 0
    u = filled(xp, absent, 0.0, filled(xp, mean == 0, 0.0, log_mean) - log_p)
    near = (xp.abs(u) < 1e-2) & ~absent
    series = 1.0 + u / 3 * (1 + u / 4 * (1 + u / 5 * (1 + u / 6 * (1 + u / 7))))
    terms = xp.where(near, p * (u * u) / 2 * series, (mean - p) - p * u)
    out = xp.mean(xp.sum(terms, axis=2), axis=1)
    return 0.0 - filled(xp, out < 0, 0.0, out)


def deviation(xp: Any, log_p: AnyArray) -> AnyArray:
    """Return minus the mean over classes of the standard deviation over the samples."""
    at = xp.argmax(log_mean_probabilities(log_p, xp=xp), axis=1, keepdims=True)[:, :, None]
    # 1 - p spreads as p does, and stays apart from 1 where p is nearly 1.
    top = _spread(xp, -xp.expm1(entry(xp, log_p, at)))
    others = _spread(xp, without(xp, xp.exp(log_p), at, 0.0))
    return 0.0 - (xp.sum(top, axis=1) + xp.sum(others, axis=1)) / log_p.shape[2]


def _spread(xp: Any, x: AnyArray) -> AnyArray:
    """Return the standard deviation over the samples, shape (rows, K); no gradient at 0."""
    if xp is np:
        return np.std(x, axis=1)
    centered = x - xp.mean(x, axis=1, keepdims=True)
    variance = xp.mean(centered * centered, axis=1)
    still = variance == 0
    return filled(xp, still, 0.0, xp.sqrt(filled(xp, still, 1.0, variance)))


def by_rows(kernel: SampleKernel, samples: ClassScores) -> AnyArray:
    """Apply a kernel to the log-probabilities of the samples, block by block, shape (n,)."""
    xp = samples.namespace
    parts = [kernel(xp, samples.log_probabilities(rows)) for rows in _blocks(samples)]
    return like(parts[0] if len(parts) == 1 else xp.concat(parts), samples.origin)


def largest_mean_logit(samples: ClassScores) -> AnyArray:
    """Largest entry of the mean logits, shape (n,)."""
    xp = samples.namespace
    parts = [xp.max(xp.mean(samples.log_scores(rows), axis=1), axis=1) for rows in _blocks(samples)]
    return like(parts[0] if len(parts) == 1 else xp.concat(parts), samples.origin)


def _blocks(samples: ClassScores) -> list[slice]:
    n, count, width = samples.values.shape
    return list(row_blocks(n, count * width, on_device=is_on_device(samples.values)))
