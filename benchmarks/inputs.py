"""The data that every contender gets: confidences of a classifier that fails in 5 % of cases."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

FAILURES = 0.05

#: Name of a case -> (floating format, share of the confidences that are exactly 1).
KINDS = {
    "float32": ("float32", 0.0),
    "float64": ("float64", 0.0),
    "float32, 55 % tied": ("float32", 0.55),
    "float64, 55 % tied": ("float64", 0.55),
    "float16": ("float16", 0.0),
    "bfloat16": ("bfloat16", 0.0),
}


@dataclass(frozen=True)
class Case:
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
        """Distinct values of the same size and type, which a sort is timed on."""
        return np.random.default_rng(0).permutation(self.n).astype(self.confidence.dtype)

    @cached_property
    def weight(self) -> np.ndarray:
        return np.random.default_rng(1).random(self.n) + 0.5

    @cached_property
    def graded(self) -> np.ndarray:
        """Losses in [0, 1] that are no 0/1 losses."""
        return self.loss * np.random.default_rng(2).random(self.n)


def case(kind: str, n: int) -> Case:
    """Draw max-probabilities of two classes; the less confident fail more often."""
    form, tied = KINDS[kind]
    rng = np.random.default_rng(n)
    confidence = 0.5 + 0.5 * rng.random(n) ** 0.3
    chance = 1.0 - confidence
    loss = rng.random(n) < chance * (FAILURES / chance.mean())
    confidence[rng.random(n) < tied] = 1.0
    if form == "bfloat16":
        bits = confidence.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
        return Case(kind, form, bits.view(np.float32), loss)
    return Case(kind, form, confidence.astype(form), loss)


def share_of(n: int, share: float) -> int:
    """Return that share of a size, and a thousand at least where there are as many."""
    return min(n, max(1000, round(n * share)))
