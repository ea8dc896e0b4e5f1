"""Scores from float64 log-scores, written so that a confident softmax does not saturate.

With m the largest log-score of a row, m2 the largest of the others and t_j = exp(z_j - m2) for
the others, the odds against the top class are ``rest = exp(m2 - m) * sum(t)``. Every score
below is a function of the gap ``m2 - m`` and of sums over t, in which nothing is subtracted
from 1: the order is kept until float64 itself runs out, near a gap of 700.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special as sp

from abstain.predictions.outputs import ClassScores
from abstain.predictions.softmax import row_blocks
from abstain.typing import FloatArray

#: The log-odds of a class whose rivals all have probability exactly 0. No float64 probability
#: above 0 reaches it: the smallest is exp(-744.4).
CERTAIN = 750.0

Kernel = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class Split:
    """Rows split into their top class and the others.

    Attributes
    ----------
    top : ndarray of shape (rows,)
        Largest log-score.
    gap : ndarray of shape (rows,)
        Second largest minus largest: never above 0, -inf when all others have probability 0.
    others : ndarray of shape (rows, K)
        exp(log-score - second largest); 0 at the top class.
    """

    top: FloatArray
    gap: FloatArray
    others: FloatArray

    @property
    def rest(self) -> FloatArray:
        """Odds against the top class: sum of the other probabilities over the largest."""
        out: FloatArray = np.exp(self.gap) * self.others.sum(axis=1)
        return out


def split(z: FloatArray) -> Split:
    """Split log-scores (rows, K); `z` is overwritten."""
    at = z.argmax(axis=1)[:, None]
    top = np.take_along_axis(z, at, axis=1)
    np.put_along_axis(z, at, -np.inf, axis=1)
    second = z.max(axis=1, keepdims=True)
    gap = (second - top)[:, 0]
    z -= np.where(np.isneginf(second), 0.0, second)
    return Split(top[:, 0], gap, np.exp(z, out=z))


def log_odds(z: FloatArray) -> FloatArray:
    """Log-odds of the top class: log p1 - log(1 - p1)."""
    s = split(z)
    return _capped(-(s.gap + _log(s.others.sum(axis=1))))


def negative_entropy(z: FloatArray) -> FloatArray:
    """Sum of p log p, in nats."""
    s = split(z)
    scale, rest = np.exp(s.gap), s.rest
    # -log p_j = (m - m2) - log t_j + log1p(rest), and the last term is common to all classes.
    spread = sp.entr(s.others).sum(axis=1)
    far = np.where(np.isneginf(s.gap), 0.0, -s.gap)
    entropy: FloatArray = np.log1p(rest) + (scale * spread + far * rest) / (1.0 + rest)
    return 0.0 - entropy


def margin(z: FloatArray) -> FloatArray:
    """log((1 + M) / (1 - M)) with M = p1 - p2."""
    s = split(z)
    # (1 + M) / (1 - M) = 1 + 2 (1 - p2/p1) / (rest + p2/p1)
    against = s.gap + np.log1p(s.others.sum(axis=1))
    return _capped(np.logaddexp(0.0, np.log(2.0) + _log(-np.expm1(s.gap)) - against))


def gini(z: FloatArray) -> FloatArray:
    """log(G / (1 - G)) with G the sum of squared probabilities."""
    s = split(z)
    total, squares = s.others.sum(axis=1), (s.others**2).sum(axis=1)
    scale = np.exp(s.gap)
    # G : 1 - G = 1 + sum r_j^2 : 2 rest + rest^2 - sum r_j^2 with r_j = p_j / p1
    against = s.gap + _log(2.0 * total + scale * (total**2 - squares))
    return _capped(np.log1p(scale**2 * squares) - against)


def log_sum_exp(z: FloatArray) -> FloatArray:
    """Log sum exp z."""
    s = split(z)
    out: FloatArray = s.top + np.log1p(s.rest)
    return out


def largest(z: FloatArray) -> FloatArray:
    """Largest log-score."""
    out: FloatArray = z.max(axis=1)
    return out


def normalized_largest(z: FloatArray, *, p: float) -> FloatArray:
    """Largest centered logit over the p-norm of the centered logits; 0 for equal logits."""
    # Shifted first, so that equal logits are exactly zero and not the rounding of their mean.
    z -= z.max(axis=1, keepdims=True)
    z -= z.mean(axis=1, keepdims=True)
    size = np.abs(z).max(axis=1)
    # Dividing by the largest entry first keeps high powers from overflowing.
    unit = z / np.where(size > 0, size, 1.0)[:, None]
    norm = (np.abs(unit) ** p).sum(axis=1) ** (1.0 / p)
    out: FloatArray = unit.max(axis=1) / np.where(size > 0, norm, 1.0)
    return out


def by_rows(kernel: Kernel, scores: ClassScores, *, temperature: float = 1.0) -> FloatArray:
    """Apply a kernel to the float64 log-scores, block by block, shape (n,)."""
    n, width = scores.values.shape
    out = np.empty(n)
    for rows in row_blocks(n, width):
        z = scores.log_scores(rows)
        if temperature != 1.0:
            z /= temperature
        out[rows] = kernel(z)
    return out


def _log(x: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        out: FloatArray = np.log(x)
    return out


def _capped(x: FloatArray) -> FloatArray:
    return np.where(np.isposinf(x), CERTAIN, x)
