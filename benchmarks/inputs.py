"""Draw the data of the variants: confidences of a classifier with a failure rate of 5%."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

FAILURES = 0.05

#: Kind of samples -> (floating-point format, share of the confidences that are exactly 1).
KINDS = {
    "float32": ("float32", 0.0),
    "float64": ("float64", 0.0),
    "float32, 55% tied": ("float32", 0.55),
    "float64, 55% tied": ("float64", 0.55),
    "float16": ("float16", 0.0),
    "bfloat16": ("bfloat16", 0.0),
}


@dataclass(frozen=True)
class Samples:
    """Confidences and 0/1 losses.

    `confidence` is float32 when `format` is "bfloat16", rounded to that format: NumPy has none.
    """

    kind: str
    format: str
    confidence: np.ndarray
    loss: np.ndarray

    @property
    def n(self) -> int:
        return self.loss.size

    @cached_property
    def distinct(self) -> np.ndarray:
        """Distinct values of the same size and type, for the time of a sort."""
        return np.random.default_rng(0).permutation(self.n).astype(self.confidence.dtype)

    @cached_property
    def weight(self) -> np.ndarray:
        return np.random.default_rng(1).random(self.n) + 0.5

    @cached_property
    def graded(self) -> np.ndarray:
        """Losses in [0, 1] other than 0 and 1."""
        return self.loss * np.random.default_rng(2).random(self.n)


def draw_samples(kind: str, n: int) -> Samples:
    """Draw the highest of two class probabilities; less confident samples fail more often."""
    form, tied = KINDS[kind]
    rng = np.random.default_rng(n)
    confidence = 0.5 + 0.5 * rng.random(n) ** 0.3
    p_failure = 1.0 - confidence
    loss = rng.random(n) < p_failure * (FAILURES / p_failure.mean())
    confidence[rng.random(n) < tied] = 1.0
    if form == "bfloat16":
        bits = confidence.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
        return Samples(kind, form, bits.view(np.float32), loss)
    return Samples(kind, form, confidence.astype(form), loss)


def share_of(n: int, share: float) -> int:
    """Return a share of a size, and at least 1,000 (or the size, if it is smaller)."""
    return min(n, max(1000, round(n * share)))
