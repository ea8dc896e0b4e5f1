"""Binary tasks, and who of them is accepted: what OC-AUC, OC-AP and the accepted AUROC share."""

from dataclasses import dataclass

from abstain._foundation import checks
from abstain._foundation.arrays import beside, is_on_device, namespace
from abstain._foundation.device import floats, sound, weights_beside
from abstain._foundation.foreign import double, without_gradient
from abstain._foundation.ranks import group_ties
from abstain._foundation.scored import ClassView, Measured, Scored, undefined
from abstain.metrics._roc import no_less_than_zero, some
from abstain.metrics._views import probabilities_of, view_of
from abstain.typing import AnyArray, Array, FloatArray

# A share of the weight that misses a group's end by its own rounding is that end.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class BinaryTask:
    """A binary task.

    Attributes
    ----------
    scored : Scored
        Holds the confidence and the weight.
    positive : ndarray of shape (n,)
        1 for the positive class, 0 for the other.
    score : ndarray of shape (n,)
        Higher means more likely positive.
    """

    scored: Scored
    positive: Array
    score: Array


@dataclass(frozen=True, eq=False)
class Split:
    """Weights of both classes: kept at each positive score, highest first, and taken away."""

    positive: FloatArray
    negative: FloatArray
    positive_away: float
    negative_away: float


def split_at(task: BinaryTask, coverage: float) -> Split:
    """Keep the `coverage` most confident; of the tie group at the edge, the same share of each."""
    xp, kept = task.scored.xp, _accepted_share(task.scored, coverage)
    weight = xp.ones_like(kept) if task.scored.weight is None else task.scored.weight
    positive = task.positive * weight
    negative = weight - positive
    away = float(xp.sum(positive * (1.0 - kept))), float(xp.sum(negative * (1.0 - kept)))
    if not some(kept):
        nothing = xp.zeros_like(kept[:1])
        return Split(nothing, nothing, *away)
    groups = group_ties(task.score, task.positive, weight * kept)
    return Split(groups.loss, no_less_than_zero(groups.weight - groups.loss), *away)


def _accepted_share(s: Scored, coverage: float) -> AnyArray:
    """Share of each sample that is among the `coverage` most confident, shape (n,)."""
    groups = s.groups
    xp, share = s.xp, (coverage * groups.total - groups.above) / groups.weight
    share = xp.where(share < ROUNDING, xp.zeros_like(share), share)
    share = xp.where(share > 1.0 - ROUNDING, xp.ones_like(share), share)
    held = xp.take(share, xp.clip(s.home, 0, None))
    return xp.where(s.home >= 0, held, xp.zeros_like(held))


def binary_task(
    confidence: AnyArray, labels: AnyArray, positive_score: AnyArray, weight: AnyArray | None
) -> BinaryTask:
    """Validate at the public edge; on a device the arrays stay there."""
    if is_on_device(confidence):
        task = _where_it_lies(confidence, labels, positive_score, weight)
        if task is not None:
            return task
    c = checks.confidence(confidence)
    y = checks.finite(checks.vector(labels, "labels", length=c.size, like="confidence"), "labels")
    checks.refuse("labels", "must be 0 or 1 (the positive class)", y, (y != 0) & (y != 1))
    score = checks.vector(positive_score, "positive_score", length=c.size, like="confidence")
    s = Scored(c, y, checks.weight(weight, length=c.size))
    return BinaryTask(s, y, checks.finite(score, "positive_score"))


def _where_it_lies(
    confidence: AnyArray, labels: AnyArray, positive_score: AnyArray, weight: AnyArray | None
) -> BinaryTask | None:
    """Do the same on the device of the confidence; None if the host has something to say."""
    y, score = (
        beside(x if is_on_device(x) else checks.vector(x, name), name, confidence)
        for x, name in ((labels, "labels"), (positive_score, "positive_score"))
    )
    xp = namespace(confidence)
    if not (sound(xp, confidence, y) and sound(xp, score, y) and xp.all((y == 0) | (y == 1))):
        return None
    y = double(y)
    s = Scored(floats(confidence), y, weights_beside(weight, y))
    return BinaryTask(s, y, floats(score))


def task_of(s: Scored) -> BinaryTask | Measured:
    view = view_of(s)
    unknown = view.labels < 0
    if s.weight is not None:
        unknown = unknown & (s.weight > 0)
    if s.xp.any(unknown):
        return undefined(f"{int(s.xp.count_nonzero(unknown))} samples have no known class")
    return BinaryTask(s, double(view.labels == 1), _log_odds(view))


def _log_odds(view: ClassView) -> AnyArray:
    """Rank by log-odds where they are known: probabilities near 0 and 1 tie by rounding."""
    log_p = view.log_probabilities
    if log_p is None:
        return without_gradient(probabilities_of(view)[:, 1])
    return without_gradient(log_p[:, 1] - log_p[:, 0])
