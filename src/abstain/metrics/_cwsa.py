"""CWSA of a `Scored` whose confidence and loss are in [0, 1]; the public names are in `cwsa`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from abstain._foundation import checks
from abstain._foundation.ranks import reached
from abstain._foundation.scored import Measured, Scored, scored, undefined
from abstain.curves.quadrature import linear_weights
from abstain.errors import DomainError, InputError
from abstain.typing import AnyArray, FloatArray

Normalize = Literal["all", "accepted"]
RampName = Literal["linear", "quadratic", "sqrt", "step"]
Ramp: TypeAlias = Callable[[FloatArray], AnyArray]

NORMALIZERS = ("all", "accepted")

RAMPS: dict[str, Ramp] = {
    "linear": lambda u: u,
    "quadratic": np.square,
    "sqrt": np.sqrt,
    "step": np.ones_like,
}


_HINT = "CWSA reads the confidence as a probability; calibrate it, or use a rank metric."


def checked(confidence: AnyArray, loss: AnyArray, weight: AnyArray | None) -> Scored:
    """Validate at the public edge: confidence and loss in [0, 1]."""
    s = scored(confidence, loss, weight)
    checks.unit_interval(s.confidence, "confidence", hint=_HINT)
    checks.unit_interval(s.loss, "loss", hint="A correctness is one minus a loss in [0, 1].")
    return s


def threshold_of(x: float) -> float:
    """Validate a threshold in [0, 1)."""
    value = checks.number(x, "threshold")
    if not 0.0 <= value < 1.0:
        msg = f"`threshold` must lie in [0, 1); got {value!r}. At 1 the ramp has no width."
        raise DomainError(msg)
    return value


def ramp_of(x: RampName | Ramp) -> Ramp:
    """Return the ramp of that name, or the user's own."""
    if callable(x):
        return x
    if x not in RAMPS:
        msg = f"`ramp` must be one of {', '.join(map(repr, RAMPS))} or a callable; got {x!r}"
        raise InputError(msg)
    return RAMPS[x]


@dataclass(frozen=True)
class Sums:
    """What is accepted at a threshold.

    Attributes
    ----------
    signed : float
        Sum of weight x ramp x (1 - 2 loss): +1 for a success, -1 for a failure.
    correct : float
        Sum of weight x ramp x (1 - loss).
    right : float
        Sum of weight x (1 - loss).
    weight : float
        Weight accepted.
    total : float
        Weight of all samples.
    count : int
        Number of samples accepted.
    """

    signed: float
    correct: float
    right: float
    weight: float
    total: float
    count: int

    def cwsa(self, normalize: str) -> Measured:
        """Return the CWSA."""
        return self._over(self.signed, normalize)

    def cwsa_plus(self, normalize: str) -> Measured:
        """Return the CWSA+."""
        return self._over(self.correct, normalize)

    def _over(self, score: float, normalize: str) -> Measured:
        if normalize == "all":
            return Measured(score / self.total, self.count)
        if self.count == 0:
            return undefined("no sample reaches the threshold")
        return Measured(score / self.weight, self.count)


def sums_at(s: Scored, threshold: float, ramp: Ramp) -> Sums:
    """Sum over the samples whose confidence reaches the threshold."""
    groups = s.probability_groups
    k = int(reached(groups, threshold))
    above = groups.confidence[:k].astype(np.float64) - threshold
    # A float32 0.9 reaches the threshold 0.9, from a hair below it.
    worth = ramped(ramp, np.maximum(above, 0.0) / (1.0 - threshold))
    weight, loss = groups.weight[:k], groups.loss[:k]
    return Sums(
        signed=float(np.sum(worth * (weight - 2.0 * loss))),
        correct=float(np.sum(worth * (weight - loss))),
        right=float(np.sum(weight - loss)),
        weight=float(weight.sum()),
        total=groups.total,
        count=int(groups.count_through[k - 1]) if k else 0,
    )


def ramped(ramp: Ramp, u: FloatArray) -> FloatArray:
    """Apply a ramp to confidences rescaled to [0, 1], and check a user's own."""
    out = np.asarray(ramp(u), dtype=np.float64)
    if ramp in RAMPS.values():
        return out
    if out.shape != u.shape:
        msg = f"`ramp` must return one weight for each of the {u.size} values; got {out.shape}"
        raise InputError(msg)
    if out.size:
        checks.finite(out, "ramp(u)")
        checks.unit_interval(out, "ramp(u)")
    return out


def area_of(s: Scored, *, plus: bool) -> Measured:
    """Area over coverage, by the trapezoid rule between the distinct confidences."""
    groups = s.probability_groups
    below_one = 1.0 - groups.confidence.astype(np.float64)
    score = groups.weight - (groups.loss if plus else 2.0 * groups.loss)
    # With the threshold at a confidence c, a sample weighs 1 - (1 - c_i)/(1 - c); at c = 1 the
    # limit from below is 1, and only the first group can be there.
    away = np.cumsum(score * below_one)
    shortfall = np.divide(away, below_one, out=np.zeros_like(away), where=below_one > 0)
    reached = np.cumsum(score) - shortfall
    value = reached / (groups.through if plus else groups.total)
    # CWSA falls to 0 with the coverage; CWSA+ is a mean over the accepted, which has no such end.
    area = linear_weights(groups.through / groups.total, 0.0, 1.0, flat=plus)
    return Measured(float(np.sum(area * value)))
