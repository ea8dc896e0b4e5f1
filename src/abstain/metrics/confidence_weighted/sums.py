"""What is accepted at a threshold, weighted by confidence, of a `Scored` within [0, 1]."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import namespace, of_numpy
from abstain._foundation.foreign import (
    double,
    numbers_beside,
    scalar,
    value_from,
    without_gradient,
)
from abstain._foundation.measurement import Measured, undefined
from abstain._foundation.ranks import reached
from abstain._foundation.scored import Scored, scored
from abstain.errors import DomainError, InputError, UndefinedMetricWarning
from abstain.metrics.entry import Need
from abstain.metrics.roc import no_less_than_zero
from abstain.typing import AnyArray, Array, FloatArray, Scalar

Normalize = Literal["all", "accepted"]
RampName = Literal["linear", "quadratic", "sqrt", "step"]
Ramp: TypeAlias = Callable[[FloatArray], AnyArray]

NORMALIZERS = ("all", "accepted")

RAMPS: dict[str, Ramp] = {
    "linear": lambda u: u,
    "quadratic": lambda u: u * u,
    "sqrt": lambda u: u**0.5,
    "step": lambda u: namespace(u).ones_like(u),
}

#: Samples that are summed at once, so that temporaries stay in the cache.
_BLOCK = 1 << 14

_HINT = "CWSA reads the confidence as a probability; calibrate it, or use a rank metric."


def checked(confidence: AnyArray, loss: AnyArray, weight: AnyArray | None) -> Scored:
    """Validate at the public edge: confidence and loss in [0, 1]."""
    s = scored(confidence, loss, weight, by_value=True)
    check_unit_interval(s)
    return s


def check_unit_interval(s: Scored) -> None:
    """Raise an error if a confidence or a loss lies outside [0, 1]."""
    checks.unit_interval(s.confidence, "confidence", hint=_HINT)
    checks.unit_interval(s.loss, "loss", hint="A correctness is one minus a loss in [0, 1].")


def threshold_of(x: float) -> float:
    """Validate a threshold in [0, 1)."""
    value = checks.number(x, "threshold")
    if not 0.0 <= value < 1.0:
        raise DomainError(
            f"`threshold` must lie in [0, 1); got {value!r}. At 1 the ramp has no width."
        )
    return value


def ramp_of(x: RampName | Ramp) -> Ramp:
    """Return the ramp of that name, or the user's own."""
    if callable(x):
        return x
    if x not in RAMPS:
        raise InputError(
            f"`ramp` must be one of {', '.join(map(repr, RAMPS))} or a callable; got {x!r}"
        )
    return RAMPS[x]


@dataclass(frozen=True)
class Sums:
    """What is accepted at a threshold."""

    #: Sum of weight x ramp x (1 - 2 loss): +1 for a success, -1 for a failure.
    signed: Scalar
    #: Sum of weight x ramp x (1 - loss).
    correct: Scalar
    #: Sum of weight x (1 - loss).
    right: Scalar
    #: Weight accepted.
    weight: float
    #: Weight of all samples.
    total: float
    #: Number of samples accepted.
    count: int

    def cwsa(self, normalize: str) -> Measured:
        """Return the CWSA."""
        return self._over(self.signed, normalize)

    def cwsa_plus(self, normalize: str) -> Measured:
        """Return the CWSA+."""
        return self._over(self.correct, normalize)

    def _over(self, score: Scalar, normalize: str) -> Measured:
        if normalize == "all":
            return Measured(score / self.total, self.count)
        if self.count == 0:
            return undefined("no sample reaches the threshold")
        return Measured(score / self.weight, self.count)


def sums_at(s: Scored, threshold: float, ramp: Ramp) -> Sums:
    """Sum over the samples whose confidence reaches the threshold: one pass, in any order."""
    if s.groups_given is not None:
        groups = s.groups_given
        k = int(reached(groups, threshold))
        count = int(groups.xp.sum(groups.count[:k]))
        held = _Held(groups.confidence[:k], groups.weight[:k], groups.loss[:k], count)
        return _sum(held, groups.total, threshold, ramp)
    # A ramp of the user's sees all that is accepted at once.
    blocks = of_numpy(s.shown) and ramp in RAMPS.values()
    step, pick = (_BLOCK, _zeroed) if blocks else (s.n, _accepted_samples)
    parts = [
        _sum(pick(s, slice(start, start + step), threshold), s.total, threshold, ramp)
        for start in range(0, s.n, step)
    ]
    return parts[0] if len(parts) == 1 else _added(parts)


def _added(parts: list[Sums]) -> Sums:
    """Add up the parts of one threshold; each is summed by itself first."""
    names = ("signed", "correct", "right", "weight", "count")
    sums: dict[str, Any] = {name: sum(getattr(part, name) for part in parts) for name in names}
    return Sums(**sums, total=parts[0].total)


@dataclass(frozen=True, eq=False)
class _Held:
    """What is accepted, by groups or by samples: probability, weight, loss mass, and how many."""

    probability: Array
    weight: FloatArray
    loss: FloatArray
    count: int


def _accepted_samples(s: Scored, rows: slice, threshold: float) -> _Held:
    """Return samples, not groups: each has its own gradient, tied or not."""
    p, loss = s.shown[rows], double(s.loss[rows])
    fixed = without_gradient(p)
    taken = fixed >= s.xp.astype(numbers_beside(threshold, fixed), fixed.dtype)
    if s.weight is None:
        loss = loss[taken]
        return _Held(p[taken], s.xp.ones_like(loss), loss, int(loss.shape[0]))
    weight = s.weight[rows]
    taken = taken & (weight > 0)
    weight = weight[taken]
    return _Held(p[taken], weight, weight * loss[taken], int(weight.shape[0]))


def _zeroed(s: Scored, rows: slice, threshold: float) -> _Held:
    """Return all samples, those that are not accepted without weight: none has to be moved."""
    p = s.shown[rows]
    taken = p >= p.dtype.type(threshold)
    if s.weight is not None:
        taken &= s.weight[rows] > 0
    weight = taken.astype(np.float64) if s.weight is None else taken * s.weight[rows]
    return _Held(p, weight, weight * s.loss[rows], int(np.count_nonzero(taken)))


def _sum(held: _Held, everything: float, threshold: float, ramp: Ramp) -> Sums:
    p, weight, loss = held.probability, held.weight, held.loss
    above = double(p) - threshold
    # A float32 0.9 reaches the threshold 0.9, from a hair below it.
    above = value_from(above, no_less_than_zero(without_gradient(above)))
    worth = ramped(ramp, above / (1.0 - threshold))
    total, good = namespace(above).sum, weight - loss
    correct, wrong = scalar(total(worth * good)), scalar(total(worth * loss))
    return Sums(
        signed=correct - wrong,
        correct=correct,
        right=scalar(total(good)),
        weight=float(total(weight)),
        total=everything,
        count=held.count,
    )


def contributions_at(s: Scored, threshold: float, *, plus: bool) -> AnyArray:
    """Return what each sample adds to CWSA, or to CWSA+, as the tables normalize them.

    Linear ramp. NaN, with an `UndefinedMetricWarning`, if CWSA+ is undefined.
    """
    check_unit_interval(s)
    xp, p, loss = s.xp, without_gradient(s.shown), double(s.loss)
    is_accepted = p >= xp.astype(numbers_beside(threshold, p), p.dtype)
    weight = xp.astype(is_accepted, loss.dtype) * (1.0 if s.weight is None else s.weight)
    worth = no_less_than_zero(double(p) - threshold) / (1.0 - threshold)
    total = float(xp.sum(weight)) if plus else s.total
    if total == 0:
        msg = "contributions to CWSA+ are undefined: no sample reaches the threshold"
        warnings.warn(msg, UndefinedMetricWarning, stacklevel=4)
        return xp.full_like(loss, float("nan"))
    # 0.0 is added because a failure at the threshold would contribute -0.0.
    return weight * worth * (1.0 - (1.0 if plus else 2.0) * loss) / total + 0.0


def ramped(ramp: Ramp, u: FloatArray) -> AnyArray:
    """Apply a ramp to confidences rescaled to [0, 1], and check a user's own."""
    if ramp in RAMPS.values():
        return ramp(u)
    out = np.asarray(ramp(u), dtype=np.float64) if of_numpy(u) else double(ramp(u))
    if out.shape != u.shape:
        raise InputError(
            f"`ramp` must return one weight for each of the {u.shape[0]} values; got {out.shape}"
        )
    if u.shape[0]:
        checks.finite(out, "ramp(u)")
        checks.unit_interval(out, "ramp(u)")
    return out


NEEDS = frozenset({Need.UNIT_CONFIDENCE, Need.UNIT_LOSS})
SOURCE = "Shahnazari et al. (2025), section {}, https://arxiv.org/abs/2505.18622"
