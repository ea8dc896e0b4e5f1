"""Confidence scores computed from float64 log-scores, without rounding to a probability of 1.

Let m be the largest log-score of a row, m2 the second largest, and t_j = exp(z_j - m2) for the
other classes. The odds against the top class are ``exp(m2 - m) * sum(t)``. Every score is a
function of the gap ``m2 - m`` and of sums over t, and nothing is subtracted from 1. Scores
therefore keep their order up to a gap of about 700, the limit of float64.

Every kernel takes an array-API namespace and a block of rows. A kernel overwrites NumPy rows.
Infinite values are replaced before an operation would turn them into NaN gradients.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import as_array_like, is_on_device
from abstain.predictions.outputs import ClassScores, validate_class_scores
from abstain.predictions.softmax import (
    fill_where,
    log_mean_probabilities,
    replace_entry,
    row_blocks,
    safe_log,
    take_entry,
)
from abstain.typing import AnyArray, Array

#: The log-odds of the top class if all other classes have probability exactly 0. This value is
#: above the log-odds for the smallest positive float64 probability, exp(-744.4).
CERTAIN = 750.0

#: The exponential of numbers below this limit is exactly 0 in float64.
_VANISHED = -1000.0

#: Function of a namespace and log-scores of shape (rows, K) that returns one number per row.
Kernel: TypeAlias = Callable[[Any, AnyArray], AnyArray]


@dataclass(frozen=True, eq=False)
class TopClassSplit:
    """Log-scores of several rows, split into the top class and the other classes."""

    #: Largest log-score, shape (rows,).
    max_score: AnyArray
    #: Second largest minus largest log-score, shape (rows,). The gap is at most 0, and -inf if all
    #: other classes have probability 0.
    gap: AnyArray
    #: exp(log-score - second largest log-score), shape (rows, K), with 0 at the top class.
    rival_ratios: AnyArray
    #: Sum of `rival_ratios` over the classes, shape (rows,).
    rival_sum: AnyArray
    #: Logarithm of `rival_ratios`, shape (rows, K), with -inf at the top class. It is undefined
    #: unless `needs_logs` was passed.
    log_rival_ratios: AnyArray

    def odds_against(self, xp: Any) -> AnyArray:
        """Return the sum of the other probabilities divided by the largest probability."""
        return xp.exp(self.gap) * self.rival_sum


def split_top_class(xp: Any, z: AnyArray, *, needs_logs: bool = False) -> TopClassSplit:
    """Split log-scores (rows, K) into the top class and the others. NumPy overwrites `z`.

    `log_rival_ratios` is defined only if `needs_logs` is True.
    """
    top_index = xp.argmax(z, axis=1, keepdims=True)
    top = take_entry(xp, z, top_index)
    shifted = replace_entry(xp, z, top_index, -np.inf)
    second = xp.max(shifted, axis=1, keepdims=True)
    gap = second - top
    shifted = _subtract(xp, shifted, fill_where(xp, second == -np.inf, 0.0, second))
    rival_ratios = xp.exp(shifted) if needs_logs or xp is not np else np.exp(shifted, out=shifted)
    return TopClassSplit(top[:, 0], gap[:, 0], rival_ratios, xp.sum(rival_ratios, axis=1), shifted)


@dataclass(frozen=True)
class SplitKernel:
    """A kernel of split rows. Several kernels can share one split."""

    #: Function from a namespace and split rows to one number per row.
    function: Callable[[Any, TopClassSplit], AnyArray]
    #: Whether the function needs `log_rival_ratios`.
    needs_logs: bool = False

    def __call__(self, xp: Any, z: AnyArray) -> AnyArray:
        """Apply the kernel to rows of log-scores."""
        return self.function(xp, split_top_class(xp, z, needs_logs=self.needs_logs))


def _log_odds(xp: Any, s: TopClassSplit) -> AnyArray:
    return _cap_infinity(xp, -(s.gap + safe_log(xp, s.rival_sum)))


def _negative_entropy(xp: Any, s: TopClassSplit) -> AnyArray:
    """Return the sum of p log p of each row."""
    odds_against = s.odds_against(xp)
    # -log p_j is (m - m2) - log t_j + log1p(odds). The last term is common to all classes.
    log_sum = _row_dot(xp, s.rival_ratios, _clip_low(xp, s.log_rival_ratios, _VANISHED))
    gap = fill_where(xp, s.gap == -np.inf, 0.0, -s.gap)
    entropy = xp.log1p(odds_against) + (gap * odds_against - xp.exp(s.gap) * log_sum) / (
        1.0 + odds_against
    )
    return 0.0 - entropy


def generalized_entropy(xp: Any, z: AnyArray, *, gamma: float, top: int) -> AnyArray:
    """Return minus the sum of p^gamma (1 - p)^gamma over the `top` largest probabilities."""
    s = split_top_class(xp, z, needs_logs=True)
    log_sum = xp.log1p(s.odds_against(xp))
    # 1 - p1 is computed as the sum of the other probabilities, which avoids cancellation.
    top_term = xp.exp(gamma * (s.gap + safe_log(xp, s.rival_sum) - 2.0 * log_sum))
    log_p = _largest_entries(xp, s.log_rival_ratios, top - 1) + (s.gap - log_sum)[:, None]
    # The probabilities of the other classes are at most 1/2, so 1 - p is exact.
    other_terms = xp.exp(gamma * (log_p + xp.log1p(-xp.exp(log_p))))
    return 0.0 - (top_term + xp.sum(other_terms, axis=1))


def _margin(xp: Any, s: TopClassSplit) -> AnyArray:
    # (1 + M) / (1 - M) = 1 + 2 (1 - p2/p1) / (rest + p2/p1)
    log_odds_against = s.gap + xp.log1p(s.rival_sum)
    odds = float(np.log(2.0)) + safe_log(xp, -xp.expm1(s.gap)) - log_odds_against
    return _cap_infinity(xp, xp.logaddexp(xp.zeros_like(odds), odds))


def _log_gap(xp: Any, s: TopClassSplit) -> AnyArray:
    return _cap_infinity(xp, -s.gap)


def _gini(xp: Any, s: TopClassSplit) -> AnyArray:
    squares = _row_dot(xp, s.rival_ratios, s.rival_ratios)
    scale = xp.exp(s.gap)
    # G : 1 - G = 1 + sum r_j^2 : 2 rest + rest^2 - sum r_j^2 with r_j = p_j / p1
    log_denominator = s.gap + safe_log(
        xp, 2.0 * s.rival_sum + scale * (s.rival_sum * s.rival_sum - squares)
    )
    return _cap_infinity(xp, xp.log1p(scale * scale * squares) - log_denominator)


def _log_sum_exp(xp: Any, s: TopClassSplit) -> AnyArray:
    return s.max_score + xp.log1p(s.odds_against(xp))


#: Log-odds of the top class: log p1 - log(1 - p1).
log_odds: Final = SplitKernel(_log_odds)
#: Sum of p log p, in nats.
negative_entropy: Final = SplitKernel(_negative_entropy, needs_logs=True)
#: log((1 + M) / (1 - M)) with M = p1 - p2.
margin: Final = SplitKernel(_margin)
#: Largest log-score minus the second largest.
log_gap: Final = SplitKernel(_log_gap)
#: log(G / (1 - G)) with G the sum of squared probabilities.
gini: Final = SplitKernel(_gini)
#: Log sum exp z.
log_sum_exp: Final = SplitKernel(_log_sum_exp)


def max_log_score(xp: Any, z: AnyArray) -> AnyArray:
    """Return the largest log-score."""
    return xp.max(z, axis=1)


def normalized_max(xp: Any, z: AnyArray, *, p: float) -> AnyArray:
    """Return the largest centered logit over the p-norm of the centered logits.

    The result is 0 if all logits are equal.
    """
    # Subtracting the maximum first makes equal logits exactly 0, without the rounding of the mean.
    z = _subtract(xp, z, xp.max(z, axis=1, keepdims=True))
    # Masked classes are excluded from the mean and the norm.
    is_masked = z == -np.inf
    n_classes = xp.sum(xp.astype(~is_masked, z.dtype), axis=1, keepdims=True)
    z = fill_where(xp, is_masked, 0.0, z)
    z = _subtract(xp, z, xp.sum(z, axis=1, keepdims=True) / n_classes)
    z = fill_where(xp, is_masked, 0.0, z)
    max_size = xp.max(xp.abs(z), axis=1, keepdims=True)
    is_constant = max_size == 0
    # Dividing by the largest entry first prevents overflow of high powers.
    scaled = z / fill_where(xp, is_constant, 1.0, max_size)
    powers = xp.sum(xp.abs(scaled) ** p, axis=1)
    return xp.max(scaled, axis=1) / fill_where(xp, is_constant[:, 0], 1.0, powers) ** (1.0 / p)


def _concatenate_blocks(scores: ClassScores, compute: Callable[[slice], AnyArray]) -> AnyArray:
    """Compute one number per row, block by block, and return an array of shape (n,)."""
    n, *sizes = scores.values.shape
    blocks = row_blocks(n, math.prod(sizes), on_device=is_on_device(scores.values))
    results = [compute(rows) for rows in blocks]
    values = results[0] if len(results) == 1 else scores.namespace.concat(results)
    return as_array_like(values, scores.origin)


def apply_by_rows(kernel: Kernel, scores: ClassScores, *, temperature: float = 1.0) -> AnyArray:
    """Apply a kernel to the float64 log-scores, block by block, and return shape (n,)."""

    def compute(rows: slice) -> AnyArray:
        z = scores.log_scores(rows)
        return kernel(scores.namespace, z if temperature == 1.0 else z / temperature)

    return _concatenate_blocks(scores, compute)


def apply_to_arrays(
    kernel: Kernel,
    logits: AnyArray | None,
    probabilities: AnyArray | None = None,
    *,
    temperature: float = 1.0,
) -> AnyArray:
    """Validate logits or probabilities of the caller, and apply a kernel to the log-scores."""
    scores = validate_class_scores(logits, probabilities, keep_library=True)
    temperature = checks.positive(temperature, "temperature")
    return apply_by_rows(kernel, scores, temperature=temperature)


def apply_in_one_pass(kernels: Mapping[str, Kernel], scores: ClassScores) -> dict[str, Array]:
    """Apply several kernels to NumPy log-scores, and return values of shape (n,) by name."""
    n, n_classes = scores.values.shape
    values = {name: np.empty(n) for name in kernels}
    needs_logs = any(
        isinstance(kernel, SplitKernel) and kernel.needs_logs for kernel in kernels.values()
    )
    for rows in row_blocks(n, n_classes):
        z = scores.log_scores(rows)
        split = split_top_class(np, z.copy(), needs_logs=needs_logs)
        for name, kernel in kernels.items():
            if isinstance(kernel, SplitKernel):
                values[name][rows] = kernel.function(np, split)
            else:
                values[name][rows] = kernel(np, z.copy())
    return values


def _largest_entries(xp: Any, x: AnyArray, count: int) -> AnyArray:
    """Return the `count` largest entries of each row, or all entries if there are fewer."""
    width = x.shape[1]
    return x if count >= width - 1 else xp.sort(x, axis=1)[:, width - count :]


def _subtract(xp: Any, x: AnyArray, y: AnyArray) -> AnyArray:
    """Return x - y. NumPy overwrites `x`."""
    return np.subtract(x, y, out=x) if xp is np else x - y


def _row_dot(xp: Any, x: AnyArray, y: AnyArray) -> AnyArray:
    """Return the inner product of each row of x and y."""
    # `np.vecdot` allocates no array of products. The `vecdot` of the array API fails in vmap of
    # PyTorch.
    return np.vecdot(x, y) if xp is np else xp.sum(x * y, axis=1)


def _clip_low(xp: Any, x: AnyArray, low: float) -> AnyArray:
    return np.maximum(x, low) if xp is np else fill_where(xp, x < low, low, x)


def _cap_infinity(xp: Any, x: AnyArray) -> AnyArray:
    return fill_where(xp, x == np.inf, CERTAIN, x)


# ------------------------------------------------------------------------------------ samples
#: Function from a namespace and log-probabilities of Monte Carlo samples, shape (rows, S, K), to
#: one number per row.
SampleKernel: TypeAlias = Callable[[Any, AnyArray], AnyArray]


def on_mean_probabilities(kernel: Kernel) -> SampleKernel:
    """Return a kernel of Monte Carlo samples that applies `kernel` to the mean probabilities."""
    return partial(_apply_to_mean, kernel)


def _apply_to_mean(kernel: Kernel, xp: Any, log_p: AnyArray) -> AnyArray:
    return kernel(xp, log_mean_probabilities(log_p, xp=xp))


def expected_entropy(xp: Any, log_p: AnyArray) -> AnyArray:
    """Return minus the entropy of each Monte Carlo sample, averaged over the samples."""
    rows, n_samples, n_classes = log_p.shape
    sample_entropies = negative_entropy(xp, xp.reshape(log_p, (rows * n_samples, n_classes)))
    return xp.mean(xp.reshape(sample_entropies, (rows, n_samples)), axis=1)


def mutual_information(xp: Any, log_p: AnyArray) -> AnyArray:
    """Return minus the mean Kullback-Leibler divergence of the samples from their mean.

    The mean divergence equals the entropy of the mean minus the mean entropy. Computing this
    difference would cancel digits if the samples agree. All terms of the divergence are
    non-negative and have a small relative error.
    """
    log_mean = log_mean_probabilities(log_p, xp=xp)[:, None, :]
    p, mean = xp.exp(log_p), xp.exp(log_mean)
    # For p = 0, the term p log(p/q) - p + q equals q.
    is_zero = p == 0
    log_ratio = fill_where(xp, is_zero, 0.0, fill_where(xp, mean == 0, 0.0, log_mean) - log_p)
    is_small = (xp.abs(log_ratio) < 1e-2) & ~is_zero
    series = 1.0 + log_ratio / 3 * (
        1 + log_ratio / 4 * (1 + log_ratio / 5 * (1 + log_ratio / 6 * (1 + log_ratio / 7)))
    )
    terms = xp.where(is_small, p * (log_ratio * log_ratio) / 2 * series, (mean - p) - p * log_ratio)
    information = xp.mean(xp.sum(terms, axis=2), axis=1)
    return 0.0 - fill_where(xp, information < 0, 0.0, information)


def negative_deviation(xp: Any, log_p: AnyArray) -> AnyArray:
    """Return minus the mean over classes of the standard deviation over the samples."""
    top_index = xp.argmax(log_mean_probabilities(log_p, xp=xp), axis=1, keepdims=True)[:, :, None]
    # 1 - p has the same standard deviation as p, and it is exact if p is close to 1.
    top_deviation = _standard_deviation(xp, -xp.expm1(take_entry(xp, log_p, top_index)))
    other_deviations = _standard_deviation(xp, replace_entry(xp, xp.exp(log_p), top_index, 0.0))
    return 0.0 - (xp.sum(top_deviation, axis=1) + xp.sum(other_deviations, axis=1)) / log_p.shape[2]


def penalized_mean(xp: Any, log_p: AnyArray) -> AnyArray:
    """Return minus the mean of 1 - p and minus the standard deviation of p, for the top class."""
    top_index = xp.argmax(log_mean_probabilities(log_p, xp=xp), axis=1, keepdims=True)[:, :, None]
    # 1 - p is exact if p is close to 1.
    error_probability = -xp.expm1(take_entry(xp, log_p, top_index))
    return (
        0.0
        - (xp.mean(error_probability, axis=1) + _standard_deviation(xp, error_probability))[:, 0]
    )


def _standard_deviation(xp: Any, x: AnyArray) -> AnyArray:
    """Return the standard deviation over the samples, shape (rows, K), without a gradient at 0."""
    if xp is np:
        return np.std(x, axis=1)
    centered = x - xp.mean(x, axis=1, keepdims=True)
    variance = xp.mean(centered * centered, axis=1)
    is_constant = variance == 0
    return fill_where(xp, is_constant, 0.0, xp.sqrt(fill_where(xp, is_constant, 1.0, variance)))


def apply_to_samples_by_rows(kernel: SampleKernel, samples: ClassScores) -> AnyArray:
    """Apply a kernel to log-probabilities of samples, block by block, and return shape (n,)."""
    return _concatenate_blocks(
        samples, lambda rows: kernel(samples.namespace, samples.log_probabilities(rows))
    )


def apply_to_sample_arrays(
    kernel: SampleKernel, logit_samples: AnyArray | None, probability_samples: AnyArray | None
) -> AnyArray:
    """Validate Monte Carlo samples of the caller, and apply a kernel to the log-probabilities."""
    samples = validate_class_scores(
        logit_samples, probability_samples, samples=True, keep_library=True
    )
    return apply_to_samples_by_rows(kernel, samples)


def largest_mean_logit(samples: ClassScores) -> AnyArray:
    """Return the largest mean logit of each row, shape (n,)."""
    xp = samples.namespace
    return _concatenate_blocks(
        samples, lambda rows: xp.max(xp.mean(samples.log_scores(rows), axis=1), axis=1)
    )
