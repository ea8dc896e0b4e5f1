"""Binary tasks, and who of them is accepted: what OC-AUC, OC-AP and the accepted AUROC share."""

from dataclasses import dataclass

import numpy as np

from abstain._foundation import checks
from abstain._foundation.ranks import group_ties
from abstain._foundation.scored import ClassView, Measured, Scored, undefined
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
    kept = _accepted_share(task.scored, coverage)
    weight = np.ones(kept.size) if task.scored.weight is None else task.scored.weight
    positive = task.positive * weight
    negative = weight - positive
    away = float(np.sum(positive * (1.0 - kept))), float(np.sum(negative * (1.0 - kept)))
    if not kept.any():
        return Split(np.zeros(1), np.zeros(1), *away)
    groups = group_ties(task.score, task.positive, weight * kept)
    # Sums of weights that are no integers may differ in the last bit.
    return Split(groups.loss, np.maximum(groups.weight - groups.loss, 0.0), *away)


def _accepted_share(s: Scored, coverage: float) -> FloatArray:
    """Share of each sample that is among the `coverage` most confident, shape (n,)."""
    groups = s.groups
    share = (coverage * groups.total - groups.above) / groups.weight
    share[share < ROUNDING] = 0.0
    share[share > 1.0 - ROUNDING] = 1.0
    index = s.home
    return np.where(index >= 0, share[index], 0.0)


def binary_task(
    confidence: AnyArray, labels: AnyArray, positive_score: AnyArray, weight: AnyArray | None
) -> BinaryTask:
    c = checks.confidence(confidence)
    y = checks.finite(checks.vector(labels, "labels", length=c.size, like="confidence"), "labels")
    checks.refuse("labels", "must be 0 or 1 (the positive class)", y, (y != 0) & (y != 1))
    score = checks.vector(positive_score, "positive_score", length=c.size, like="confidence")
    s = Scored(c, y, checks.weight(weight, length=c.size))
    return BinaryTask(s, y, checks.finite(score, "positive_score"))


def task_of(s: Scored) -> BinaryTask | Measured:
    view = view_of(s)
    kept = np.ones(s.n, dtype=np.bool_) if s.weight is None else s.weight > 0
    unknown = int(np.count_nonzero(view.labels[kept] < 0))
    if unknown:
        return undefined(f"{unknown} samples have no known class")
    return BinaryTask(s, (view.labels == 1).astype(np.int64), _log_odds(view))


def _log_odds(view: ClassView) -> FloatArray:
    """Rank by log-odds where they are known: probabilities near 0 and 1 tie by rounding."""
    log_p = view.log_probabilities
    if log_p is None:
        return probabilities_of(view)[:, 1]
    return np.asarray(log_p[:, 1] - log_p[:, 0])
