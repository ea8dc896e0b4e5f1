"""Scores from float64 log-scores, written so that a confident softmax does not saturate.

With m the largest log-score of a row, m2 the largest of the others and t_j = exp(z_j - m2) for
the others, the odds against the top class are ``rest = exp(m2 - m) * sum(t)``. Every score
below is a function of the gap ``m2 - m`` and of sums over t, in which nothing is subtracted
from 1: the order is kept until float64 itself runs out, near a gap of 700.

Every kernel takes an array-API namespace and a block of rows, which NumPy overwrites. Where an
infinity is replaced, it is replaced before the step that would make it, so that libraries which
differentiate send no NaN back.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np

from abstain._foundation.arrays import as_array_like, is_on_device
from abstain.predictions.outputs import ClassScores
from abstain.predictions.softmax import (
    entry,
    filled,
    log,
    log_mean_probabilities,
    row_blocks,
    without,
)
from abstain.typing import AnyArray, Array

#: The log-odds of a class whose rivals all have probability exactly 0. No float64 probability
#: above 0 reaches it: the smallest is exp(-744.4).
CERTAIN = 750.0

#: Below this logarithm the exponential is exactly 0 in float64.
_VANISHED = -1000.0

#: From a namespace and rows of log-scores (rows, K) to one number a row.
Kernel: TypeAlias = Callable[[Any, AnyArray], AnyArray]


@dataclass(frozen=True, eq=False)
class TopSplit:
    """Rows split into their top class and the others."""

    #: Shape (rows,). Largest log-score.
    top: AnyArray
    #: Shape (rows,). Second largest minus largest: never above 0, -inf when all others have
    #: probability 0.
    gap: AnyArray
    #: Shape (rows, K). exp(log-score - second largest); 0 at the top class.
    others: AnyArray
    #: Shape (rows,). Sum of `others`.
    total: AnyArray
    #: Shape (rows, K). Logarithm of `others`, -inf at the top class; without a meaning unless
    #: asked for.
    logs: AnyArray

    def rest(self, xp: Any) -> AnyArray:
        """Odds against the top class: sum of the other probabilities over the largest."""
        return xp.exp(self.gap) * self.total


def split(xp: Any, z: AnyArray, *, logs: bool = False) -> TopSplit:
    """Split log-scores (rows, K), with the logarithms if asked for; NumPy overwrites `z`."""
    at = xp.argmax(z, axis=1, keepdims=True)
    top = entry(xp, z, at)
    shifted = without(xp, z, at, -np.inf)
    second = xp.max(shifted, axis=1, keepdims=True)
    gap = second - top
    shifted = _less(xp, shifted, filled(xp, second == -np.inf, 0.0, second))
    others = xp.exp(shifted) if logs or xp is not np else np.exp(shifted, out=shifted)
    return TopSplit(top[:, 0], gap[:, 0], others, xp.sum(others, axis=1), shifted)


@dataclass(frozen=True)
class OfSplit:
    """A kernel that looks at rows as they are split, which several such can share."""

    #: From a namespace and the split rows to one number a row; overwrites nothing.
    function: Callable[[Any, TopSplit], AnyArray]
    #: Whether it needs the logarithms.
    logs: bool = False

    def __call__(self, xp: Any, z: AnyArray) -> AnyArray:
        """Apply it to rows of log-scores."""
        return self.function(xp, split(xp, z, logs=self.logs))


def _log_odds(xp: Any, s: TopSplit) -> AnyArray:
    return _capped(xp, -(s.gap + log(xp, s.total)))


def _negative_entropy(xp: Any, s: TopSplit) -> AnyArray:
    rest = s.rest(xp)
    # -log p_j = (m - m2) - log t_j + log1p(rest), and the last term is common to all classes.
    spread = _dot(xp, s.others, _not_below(xp, s.logs, _VANISHED))
    far = filled(xp, s.gap == -np.inf, 0.0, -s.gap)
    entropy = xp.log1p(rest) + (far * rest - xp.exp(s.gap) * spread) / (1.0 + rest)
    return 0.0 - entropy


def generalized_entropy(xp: Any, z: AnyArray, *, gamma: float, top: int) -> AnyArray:
    """Minus the sum of p^gamma (1 - p)^gamma over the `top` largest probabilities."""
    s = split(xp, z, logs=True)
    log_sum = xp.log1p(s.rest(xp))
    # 1 - p1 is the sum of the others, so its logarithm is not taken of a difference from 1.
    first = xp.exp(gamma * (s.gap + log(xp, s.total) - 2.0 * log_sum))
    log_p = _largest_of_each(xp, s.logs, top - 1) + (s.gap - log_sum)[:, None]
    # No other probability is above 1/2: 1 - p keeps its digits.
    terms = xp.exp(gamma * (log_p + xp.log1p(-xp.exp(log_p))))
    return 0.0 - (first + xp.sum(terms, axis=1))


def _margin(xp: Any, s: TopSplit) -> AnyArray:
    # (1 + M) / (1 - M) = 1 + 2 (1 - p2/p1) / (rest + p2/p1)
    against = s.gap + xp.log1p(s.total)
    odds = float(np.log(2.0)) + log(xp, -xp.expm1(s.gap)) - against
    return _capped(xp, xp.logaddexp(xp.zeros_like(odds), odds))


def _log_gap(xp: Any, s: TopSplit) -> AnyArray:
    return _capped(xp, -s.gap)


def _gini(xp: Any, s: TopSplit) -> AnyArray:
    squares = _dot(xp, s.others, s.others)
    scale = xp.exp(s.gap)
    # G : 1 - G = 1 + sum r_j^2 : 2 rest + rest^2 - sum r_j^2 with r_j = p_j / p1
    against = s.gap + log(xp, 2.0 * s.total + scale * (s.total * s.total - squares))
    return _capped(xp, xp.log1p(scale * scale * squares) - against)


def _log_sum_exp(xp: Any, s: TopSplit) -> AnyArray:
    return s.top + xp.log1p(s.rest(xp))


#: Log-odds of the top class: log p1 - log(1 - p1).
log_odds: Final = OfSplit(_log_odds)
#: Sum of p log p, in nats.
negative_entropy: Final = OfSplit(_negative_entropy, logs=True)
#: log((1 + M) / (1 - M)) with M = p1 - p2.
margin: Final = OfSplit(_margin)
#: Largest log-score minus the second largest.
log_gap: Final = OfSplit(_log_gap)
#: log(G / (1 - G)) with G the sum of squared probabilities.
gini: Final = OfSplit(_gini)
#: Log sum exp z.
log_sum_exp: Final = OfSplit(_log_sum_exp)


def largest(xp: Any, z: AnyArray) -> AnyArray:
    """Largest log-score."""
    return xp.max(z, axis=1)


def normalized_largest(xp: Any, z: AnyArray, *, p: float) -> AnyArray:
    """Largest centered logit over the p-norm of the centered logits; 0 for equal logits."""
    # Shifted first, so that equal logits are exactly zero and not the rounding of their mean.
    z = _less(xp, z, xp.max(z, axis=1, keepdims=True))
    # A masked class is none: it has no part in the mean nor in the norm.
    masked = z == -np.inf
    classes = xp.sum(xp.astype(~masked, z.dtype), axis=1, keepdims=True)
    z = filled(xp, masked, 0.0, z)
    z = _less(xp, z, xp.sum(z, axis=1, keepdims=True) / classes)
    z = filled(xp, masked, 0.0, z)
    size = xp.max(xp.abs(z), axis=1, keepdims=True)
    equal = size == 0
    # Dividing by the largest entry first keeps high powers from overflowing.
    unit = z / filled(xp, equal, 1.0, size)
    powers = xp.sum(xp.abs(unit) ** p, axis=1)
    return xp.max(unit, axis=1) / filled(xp, equal[:, 0], 1.0, powers) ** (1.0 / p)


def by_rows(kernel: Kernel, scores: ClassScores, *, temperature: float = 1.0) -> AnyArray:
    """Apply a kernel to the float64 log-scores, block by block, shape (n,)."""
    xp = scores.namespace
    n, width = scores.values.shape
    parts = []
    for rows in row_blocks(n, width, on_device=is_on_device(scores.values)):
        z = scores.log_scores(rows)
        parts.append(kernel(xp, z if temperature == 1.0 else z / temperature))
    return as_array_like(parts[0] if len(parts) == 1 else xp.concat(parts), scores.origin)


def in_one_pass(kernels: Mapping[str, Kernel], scores: ClassScores) -> dict[str, Array]:
    """Apply several kernels to the log-scores of NumPy arrays, each of shape (n,)."""
    n, width = scores.values.shape
    out = {name: np.empty(n) for name in kernels}
    logs = any(isinstance(kernel, OfSplit) and kernel.logs for kernel in kernels.values())
    for rows in row_blocks(n, width):
        z = scores.log_scores(rows)
        shared = split(np, z.copy(), logs=logs)
        for name, kernel in kernels.items():
            if isinstance(kernel, OfSplit):
                out[name][rows] = kernel.function(np, shared)
            else:
                out[name][rows] = kernel(np, z.copy())
    return out


def _largest_of_each(xp: Any, x: AnyArray, count: int) -> AnyArray:
    """Return the `count` largest of each row, or the row; one entry a row is -inf."""
    width = x.shape[1]
    return x if count >= width - 1 else xp.sort(x, axis=1)[:, width - count :]


def _less(xp: Any, x: AnyArray, y: AnyArray) -> AnyArray:
    """Return x - y, in NumPy written over `x`."""
    return np.subtract(x, y, out=x) if xp is np else x - y


def _dot(xp: Any, x: AnyArray, y: AnyArray) -> AnyArray:
    """Return the sum of products of each row."""
    # NumPy makes no array of the products; the array API's vecdot knows no torch.func.vmap.
    return np.vecdot(x, y) if xp is np else xp.sum(x * y, axis=1)


def _not_below(xp: Any, x: AnyArray, low: float) -> AnyArray:
    return np.maximum(x, low) if xp is np else filled(xp, x < low, low, x)


def _capped(xp: Any, x: AnyArray) -> AnyArray:
    return filled(xp, x == np.inf, CERTAIN, x)


# ------------------------------------------------------------------------------------ samples
# Scores from the float64 log-probabilities of Monte-Carlo samples, shape (rows, S, K).
#: From a namespace and log-probabilities (rows, S, K) to one number a row.
SampleKernel: TypeAlias = Callable[[Any, AnyArray], AnyArray]


def of_mean(kernel: Kernel) -> SampleKernel:
    """Return the kernel applied to the mean probability over the samples."""
    return partial(_of_mean, kernel)


def _of_mean(kernel: Kernel, xp: Any, log_p: AnyArray) -> AnyArray:
    return kernel(xp, log_mean_probabilities(log_p, xp=xp))


def expected_entropy(xp: Any, log_p: AnyArray) -> AnyArray:
    """Return minus the mean over the samples of the entropy of each sample."""
    rows, count, width = log_p.shape
    each = negative_entropy(xp, xp.reshape(log_p, (rows * count, width)))
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


def penalized_mean(xp: Any, log_p: AnyArray) -> AnyArray:
    """Return minus what the mean of the top class lacks to 1, minus its standard deviation."""
    at = xp.argmax(log_mean_probabilities(log_p, xp=xp), axis=1, keepdims=True)[:, :, None]
    # As above: 1 - p stays apart from 0 where p is nearly 1.
    lacks = -xp.expm1(entry(xp, log_p, at))
    return 0.0 - (xp.mean(lacks, axis=1) + _spread(xp, lacks))[:, 0]


def _spread(xp: Any, x: AnyArray) -> AnyArray:
    """Return the standard deviation over the samples, shape (rows, K); no gradient at 0."""
    if xp is np:
        return np.std(x, axis=1)
    centered = x - xp.mean(x, axis=1, keepdims=True)
    variance = xp.mean(centered * centered, axis=1)
    still = variance == 0
    return filled(xp, still, 0.0, xp.sqrt(filled(xp, still, 1.0, variance)))


def by_rows_of_samples(kernel: SampleKernel, samples: ClassScores) -> AnyArray:
    """Apply a kernel to the log-probabilities of the samples, block by block, shape (n,)."""
    xp = samples.namespace
    parts = [kernel(xp, samples.log_probabilities(rows)) for rows in _blocks(samples)]
    return as_array_like(parts[0] if len(parts) == 1 else xp.concat(parts), samples.origin)


def largest_mean_logit(samples: ClassScores) -> AnyArray:
    """Largest entry of the mean logits, shape (n,)."""
    xp = samples.namespace
    parts = [xp.max(xp.mean(samples.log_scores(rows), axis=1), axis=1) for rows in _blocks(samples)]
    return as_array_like(parts[0] if len(parts) == 1 else xp.concat(parts), samples.origin)


def _blocks(samples: ClassScores) -> list[slice]:
    n, count, width = samples.values.shape
    return list(row_blocks(n, count * width, on_device=is_on_device(samples.values)))
