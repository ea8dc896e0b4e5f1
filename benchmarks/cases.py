"""The data that every contender gets: confidences of a classifier that fails in 5 % of cases."""

from dataclasses import dataclass

import numpy as np

FAILURES = 0.05
SIZES = (10**3, 10**4, 10**5, 10**6, 10**7)

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
