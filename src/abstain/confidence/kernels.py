"""Compute confidence scores from logits or log-probabilities (log-scores) in float64.

Let z_j be the log-scores of a sample, m the largest, m2 the second largest, and t_j = exp(z_j - m2)
for classes other than the top class. The odds against the top class are ``exp(m2 - m) * sum(t)``.
All scores are computed from the gap ``m2 - m`` and from sums over t. No probability is subtracted
from 1, so the ranking is correct even if the largest probability is rounded to 1.

A kernel is a function of an array-API namespace and log-scores of shape (n, K). It may overwrite
NumPy log-scores. Infinite values are replaced by finite numbers, because their gradients would be
NaN.
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

#: Function of a namespace and log-scores of shape (n, K) that returns confidences of shape (n,).
Kernel: TypeAlias = Callable[[Any, AnyArray], AnyArray]


@dataclass(frozen=True, eq=False)
class TopClassSplit:
    """Log-scores of n samples, split into the top class and the other classes."""

    #: Largest log-score, shape (n,).
    max_score: AnyArray
    #: Second largest minus largest log-score, shape (n,). The gap is -inf if all other classes have
    #: probability 0.
    gap: AnyArray
    #: exp(log-score - second largest log-score), shape (n, K), with 0 at the top class.
    rival_ratios: AnyArray
    #: Sum of `rival_ratios` over the classes, shape (n,).
    rival_sum: AnyArray
    #: Logarithm of `rival_ratios`, shape (n, K), with -inf at the top class. The array is valid
    #: only if `split_top_class` was called with ``needs_logs=True``.
    log_rival_ratios: AnyArray

    def odds_against(self, xp: Any) -> AnyArray:
        """Return the odds against the top class of each sample, shape (n,)."""
        return xp.exp(self.gap) * self.rival_sum


def split_top_class(xp: Any, z: AnyArray, *, needs_logs: bool = False) -> TopClassSplit:
    """Split log-scores of shape (n, K) into the top class and the others.

    A NumPy array `z` is overwritten. With `needs_logs`, the result contains `log_rival_ratios`.
    """
    top_index = xp.argmax(z, axis=1, keepdims=True)
    max_score = take_entry(xp, z, top_index)
    rivals = replace_entry(xp, z, top_index, -np.inf)
    max_rival = xp.max(rivals, axis=1, keepdims=True)
    finite_max_rival = fill_where(xp, max_rival == -np.inf, 0.0, max_rival)
    log_ratios = _subtract(xp, rivals, finite_max_rival)
    if xp is np and not needs_logs:
        ratios = np.exp(log_ratios, out=log_ratios)
    else:
        ratios = xp.exp(log_ratios)
    return TopClassSplit(
        max_score=max_score[:, 0],
        gap=(max_rival - max_score)[:, 0],
        rival_ratios=ratios,
        rival_sum=xp.sum(ratios, axis=1),
        log_rival_ratios=log_ratios,
    )


@dataclass(frozen=True)
class SplitKernel:
    """A kernel whose input is a `TopClassSplit`, so that several kernels can share one split."""

    #: Function from a namespace and a split to confidences of shape (n,).
    function: Callable[[Any, TopClassSplit], AnyArray]
    #: Whether the function needs `log_rival_ratios`.
    needs_logs: bool = False

    def __call__(self, xp: Any, z: AnyArray) -> AnyArray:
        """Apply the kernel to log-scores of shape (n, K)."""
        split = split_top_class(xp, z, needs_logs=self.needs_logs)
        return self.function(xp, split)


def _log_odds(xp: Any, s: TopClassSplit) -> AnyArray:
    return _cap_infinity(xp, -(s.gap + safe_log(xp, s.rival_sum)))


def _negative_entropy(xp: Any, s: TopClassSplit) -> AnyArray:
    """Return the sum of p log p over the classes of each sample."""
    odds_against = s.odds_against(xp)
    # -log p_j is (m - m2) - log t_j + log1p(odds). The last term is common to all classes.
    log_sum = _row_dot(xp, s.rival_ratios, _clip_low(xp, s.log_rival_ratios, _VANISHED))
    positive_gap = fill_where(xp, s.gap == -np.inf, 0.0, -s.gap)
    common_term = xp.log1p(odds_against)
    rival_term = positive_gap * odds_against - xp.exp(s.gap) * log_sum
    return 0.0 - (common_term + rival_term / (1.0 + odds_against))


def generalized_entropy(xp: Any, z: AnyArray, *, gamma: float, top: int) -> AnyArray:
    """Return minus the sum of p^gamma (1 - p)^gamma over the `top` largest probabilities."""
    s = split_top_class(xp, z, needs_logs=True)
    log_sum = xp.log1p(s.odds_against(xp))
    # 1 - p1 is computed as the sum of the other probabilities, which avoids cancellation.
    top_term = xp.exp(gamma * (s.gap + safe_log(xp, s.rival_sum) - 2.0 * log_sum))
    log_p = _largest_entries(xp, s.log_rival_ratios, top - 1) + (s.gap - log_sum)[:, None]
    # The probabilities of the other classes are at most 1/2, so 1 - p is exact.
    log_one_minus_p = xp.log1p(-xp.exp(log_p))
    other_terms = xp.exp(gamma * (log_p + log_one_minus_p))
    return 0.0 - (top_term + xp.sum(other_terms, axis=1))


def _margin(xp: Any, s: TopClassSplit) -> AnyArray:
    """Return log((1 + M) / (1 - M)) for the gap M between the two largest probabilities."""
    # (1 + M) / (1 - M) = 1 + 2 (1 - p2/p1) / (rest + p2/p1)
    log_odds_against = s.gap + xp.log1p(s.rival_sum)
    log_ratio = float(np.log(2.0)) + safe_log(xp, -xp.expm1(s.gap)) - log_odds_against
    return _cap_infinity(xp, xp.logaddexp(xp.zeros_like(log_ratio), log_ratio))


def _log_gap(xp: Any, s: TopClassSplit) -> AnyArray:
    return _cap_infinity(xp, -s.gap)


def _gini(xp: Any, s: TopClassSplit) -> AnyArray:
    """Return log(G / (1 - G)) for the sum G of squared probabilities."""
    # G : 1 - G = 1 + sum r_j^2 : 2 rest + rest^2 - sum r_j^2 with r_j = p_j / p1
    squares = _row_dot(xp, s.rival_ratios, s.rival_ratios)
    scale = xp.exp(s.gap)
    unequal_pairs = 2.0 * s.rival_sum + scale * (s.rival_sum * s.rival_sum - squares)
    log_denominator = s.gap + safe_log(xp, unequal_pairs)
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
    """Return the largest log-score of each sample."""
    return xp.max(z, axis=1)


def normalized_max(xp: Any, z: AnyArray, *, p: float) -> AnyArray:
    """Return the largest centered logit divided by the p-norm of the centered logits.

    The result is 0 if all logits are equal.
    """
    z = _center_unmasked(xp, z)
    max_size = xp.max(xp.abs(z), axis=1, keepdims=True)
    is_constant = max_size == 0
    # Dividing by the largest entry first prevents overflow of high powers.
    scaled = z / fill_where(xp, is_constant, 1.0, max_size)
    powers = xp.sum(xp.abs(scaled) ** p, axis=1)
    norm = fill_where(xp, is_constant[:, 0], 1.0, powers) ** (1.0 / p)
    return xp.max(scaled, axis=1) / norm


def _center_unmasked(xp: Any, z: AnyArray) -> AnyArray:
    """Subtract the mean over unmasked classes (log-score above -inf). Masked classes become 0."""
    # Subtracting the maximum first makes equal logits exactly 0, without the rounding of the mean.
    z = _subtract(xp, z, xp.max(z, axis=1, keepdims=True))
    is_masked = z == -np.inf
    n_classes = xp.sum(xp.astype(~is_masked, z.dtype), axis=1, keepdims=True)
    z = fill_where(xp, is_masked, 0.0, z)
    mean = xp.sum(z, axis=1, keepdims=True) / n_classes
    return fill_where(xp, is_masked, 0.0, _subtract(xp, z, mean))


def _concatenate_blocks(scores: ClassScores, compute: Callable[[slice], AnyArray]) -> AnyArray:
    """Apply `compute` to slices of the samples, and concatenate the results to shape (n,)."""
    n, *sizes = scores.values.shape
    blocks = row_blocks(n, math.prod(sizes), on_device=is_on_device(scores.values))
    results = [compute(block) for block in blocks]
    values = results[0] if len(results) == 1 else scores.namespace.concat(results)
    return as_array_like(values, scores.origin)


def apply_by_rows(kernel: Kernel, scores: ClassScores, *, temperature: float = 1.0) -> AnyArray:
    """Apply a kernel to blocks of float64 log-scores, and return confidences of shape (n,)."""

    def compute(block: slice) -> AnyArray:
        z = scores.log_scores(block)
        if temperature != 1.0:
            z = z / temperature
        return kernel(scores.namespace, z)

    return _concatenate_blocks(scores, compute)


def apply_to_arrays(
    kernel: Kernel,
    logits: AnyArray | None,
    probabilities: AnyArray | None = None,
    *,
    temperature: float = 1.0,
) -> AnyArray:
    """Validate logits or probabilities, and apply a kernel."""
    scores = validate_class_scores(logits, probabilities, keep_library=True)
    temperature = checks.positive(temperature, "temperature")
    return apply_by_rows(kernel, scores, temperature=temperature)


def apply_in_one_pass(kernels: Mapping[str, Kernel], scores: ClassScores) -> dict[str, Array]:
    """Apply several kernels to NumPy log-scores, and return confidences of shape (n,) by name."""
    n, n_classes = scores.values.shape
    values = {name: np.empty(n) for name in kernels}
    split_kernels = [kernel for kernel in kernels.values() if isinstance(kernel, SplitKernel)]
    needs_logs = any(kernel.needs_logs for kernel in split_kernels)
    for block in row_blocks(n, n_classes):
        z = scores.log_scores(block)
        split = split_top_class(np, z.copy(), needs_logs=needs_logs)
        for name, kernel in kernels.items():
            if isinstance(kernel, SplitKernel):
                values[name][block] = kernel.function(np, split)
            else:
                values[name][block] = kernel(np, z.copy())
    return values


def _largest_entries(xp: Any, x: AnyArray, count: int) -> AnyArray:
    """Return the `count` largest entries of each row, or all entries if there are fewer."""
    width = x.shape[1]
    return x if count >= width - 1 else xp.sort(x, axis=1)[:, width - count :]


def _subtract(xp: Any, x: AnyArray, y: AnyArray) -> AnyArray:
    """Return x - y. A NumPy array `x` is overwritten."""
    return np.subtract(x, y, out=x) if xp is np else x - y


def _row_dot(xp: Any, x: AnyArray, y: AnyArray) -> AnyArray:
    """Return the inner product of each row of x and y."""
    # `np.vecdot` allocates no array of products. `torch.func.vmap` does not support `vecdot`.
    return np.vecdot(x, y) if xp is np else xp.sum(x * y, axis=1)


def _clip_low(xp: Any, x: AnyArray, low: float) -> AnyArray:
    return np.maximum(x, low) if xp is np else fill_where(xp, x < low, low, x)


def _cap_infinity(xp: Any, x: AnyArray) -> AnyArray:
    return fill_where(xp, x == np.inf, CERTAIN, x)


# ------------------------------------------------------------------------------------ samples
#: Function from a namespace and log-probabilities of S Monte Carlo samples, shape (n, S, K), to
#: confidences of shape (n,).
SampleKernel: TypeAlias = Callable[[Any, AnyArray], AnyArray]


def on_mean_probabilities(kernel: Kernel) -> SampleKernel:
    """Return a kernel of Monte Carlo samples that applies `kernel` to the mean probabilities."""
    return partial(_apply_to_mean, kernel)


def _apply_to_mean(kernel: Kernel, xp: Any, log_p: AnyArray) -> AnyArray:
    return kernel(xp, log_mean_probabilities(log_p, xp=xp))


def expected_entropy(xp: Any, log_p: AnyArray) -> AnyArray:
    """Return minus the mean entropy of the Monte Carlo samples."""
    n, n_samples, n_classes = log_p.shape
    flat_log_p = xp.reshape(log_p, (n * n_samples, n_classes))
    sample_entropies = negative_entropy(xp, flat_log_p)
    return xp.mean(xp.reshape(sample_entropies, (n, n_samples)), axis=1)


def mutual_information(xp: Any, log_p: AnyArray) -> AnyArray:
    """Return minus the mean KL divergence of the Monte Carlo samples from their mean.

    This is more accurate than a difference of two entropies if the samples are similar.
    """
    log_mean = log_mean_probabilities(log_p, xp=xp)[:, None, :]
    p = xp.exp(log_p)
    mean = xp.exp(log_mean)
    # Every class contributes p log(p / mean) - p + mean, which equals the mean if p is 0.
    is_zero = p == 0
    finite_log_mean = fill_where(xp, mean == 0, 0.0, log_mean)
    log_ratio = fill_where(xp, is_zero, 0.0, finite_log_mean - log_p)
    # If p and the mean are nearly equal, a series avoids cancellation.
    is_close = (xp.abs(log_ratio) < 1e-2) & ~is_zero
    series = _exponential_series(log_ratio)
    series_term = p * (log_ratio * log_ratio) / 2 * series
    terms = xp.where(is_close, series_term, (mean - p) - p * log_ratio)
    information = xp.mean(xp.sum(terms, axis=2), axis=1)
    return 0.0 - fill_where(xp, information < 0, 0.0, information)


def _exponential_series(x: AnyArray) -> AnyArray:
    """Return the power series of 2 (exp(x) - 1 - x) / x^2 for small x."""
    return 1.0 + x / 3 * (1 + x / 4 * (1 + x / 5 * (1 + x / 6 * (1 + x / 7))))


def negative_deviation(xp: Any, log_p: AnyArray) -> AnyArray:
    """Return minus the standard deviation over the Monte Carlo samples, averaged over classes."""
    top_index = _top_class_of_mean(xp, log_p)
    # 1 - p has the same standard deviation as p, and it is exact if p is close to 1.
    error_probability = -xp.expm1(take_entry(xp, log_p, top_index))
    other_probabilities = replace_entry(xp, xp.exp(log_p), top_index, 0.0)
    top_deviation = xp.sum(_standard_deviation(xp, error_probability), axis=1)
    other_deviations = xp.sum(_standard_deviation(xp, other_probabilities), axis=1)
    n_classes = log_p.shape[2]
    return 0.0 - (top_deviation + other_deviations) / n_classes


def penalized_mean(xp: Any, log_p: AnyArray) -> AnyArray:
    """Return -(mean of 1 - p) - (standard deviation of p) for the top class."""
    top_index = _top_class_of_mean(xp, log_p)
    # 1 - p is exact if p is close to 1.
    error_probability = -xp.expm1(take_entry(xp, log_p, top_index))
    mean = xp.mean(error_probability, axis=1)
    deviation = _standard_deviation(xp, error_probability)
    return 0.0 - (mean + deviation)[:, 0]


def _top_class_of_mean(xp: Any, log_p: AnyArray) -> AnyArray:
    """Return the index of the largest mean probability of each sample, shape (n, 1, 1)."""
    log_mean = log_mean_probabilities(log_p, xp=xp)
    return xp.argmax(log_mean, axis=1, keepdims=True)[:, :, None]


def _standard_deviation(xp: Any, x: AnyArray) -> AnyArray:
    """Return the standard deviation over axis 1. The gradient of a deviation of 0 is 0."""
    if xp is np:
        return np.std(x, axis=1)
    centered = x - xp.mean(x, axis=1, keepdims=True)
    variance = xp.mean(centered * centered, axis=1)
    is_constant = variance == 0
    positive_variance = fill_where(xp, is_constant, 1.0, variance)
    return fill_where(xp, is_constant, 0.0, xp.sqrt(positive_variance))


def apply_to_samples_by_rows(kernel: SampleKernel, samples: ClassScores) -> AnyArray:
    """Apply a kernel to blocks of log-probabilities, and return confidences of shape (n,)."""

    def compute(block: slice) -> AnyArray:
        return kernel(samples.namespace, samples.log_probabilities(block))

    return _concatenate_blocks(samples, compute)


def apply_to_sample_arrays(
    kernel: SampleKernel, logit_samples: AnyArray | None, probability_samples: AnyArray | None
) -> AnyArray:
    """Validate Monte Carlo samples, and apply a kernel."""
    samples = validate_class_scores(
        logit_samples, probability_samples, samples=True, keep_library=True
    )
    return apply_to_samples_by_rows(kernel, samples)


def largest_mean_logit(samples: ClassScores) -> AnyArray:
    """Return the largest logit of each sample after averaging over the Monte Carlo samples."""
    xp = samples.namespace

    def compute(block: slice) -> AnyArray:
        mean_logits = xp.mean(samples.log_scores(block), axis=1)
        return xp.max(mean_logits, axis=1)

    return _concatenate_blocks(samples, compute)
