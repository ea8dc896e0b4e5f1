"""Accuracy among the samples that reach a confidence."""

from functools import partial

import numpy as np

from abstain._foundation.measurement import Measured
from abstain._foundation.ranks import reached
from abstain._foundation.scored import Scored
from abstain.metrics.blocks import Binned, FilledBins, Limits
from abstain.metrics.confidence_weighted.cwsa import NEEDS, RAMPS, checked, sums_at, threshold_of
from abstain.metrics.entry import Family, Identity, Measurement, Metric, value_of
from abstain.metrics.influences import on_group_rows, weights_of
from abstain.typing import AnyArray, FloatArray

_SOURCE = "Geifman and El-Yaniv (2017), eq. 2, https://arxiv.org/abs/1705.08500"


def selective_accuracy(
    confidence: AnyArray, loss: AnyArray, *, threshold: float, weight: AnyArray | None = None
) -> float:
    """Compute the accuracy among the samples that reach a confidence.

    Answers: of what is answered with at least this probability of being right, how much is right?

    Parameters
    ----------
    confidence : array of shape (n,)
        In [0, 1], read as a probability; accept when confidence >= threshold.
    loss : array of shape (n,)
        In [0, 1]; a sample counts as right by 1 - loss.
    threshold : float
        In [0, 1).
    weight : array of shape (n,), optional
        Frequency weights: an integer weight counts a sample that many times.

    Returns
    -------
    float
        In [0, 1]; **higher is better**. NaN, with an `UndefinedMetricWarning`, when no sample
        reaches the threshold.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, a confidence or loss is outside [0, 1], `threshold` is
        outside [0, 1), or a weight is negative.

    Notes
    -----
    One minus `selective_risk` at the same threshold. Whoever answers less often can have more of
    it, so read it beside the coverage. For a calibrated confidence it is at least the threshold.
    Ties do not matter. Cost: one pass.

    References
    ----------
    .. [1] Geifman and El-Yaniv (2017), Selective classification for deep neural networks, eq. 2,
       https://arxiv.org/abs/1705.08500

    Examples
    --------
    >>> from abstain.metrics import selective_accuracy
    >>> selective_accuracy([1.0, 0.9, 0.8, 0.3], [0, 0, 1, 0], threshold=0.85)
    1.0
    """
    s = checked(confidence, loss, weight)
    return value_of(_accuracy(s, threshold=threshold_of(threshold)), "selective_accuracy")


def _accuracy(s: Scored, *, threshold: float) -> Measured:
    return sums_at(s, threshold, RAMPS["step"]).cwsa_plus("accepted")


def _influence(s: Scored, *, threshold: float) -> FloatArray:
    """Return it for a mean over those who reach a threshold, which does not move."""
    taken = s.probability_home < int(reached(s.probability_groups, threshold))
    inside = taken & (weights_of(s) > 0)
    accepted = float(weights_of(s)[inside].sum())
    right = 1.0 - s.loss
    mean = float((weights_of(s) * right)[inside].sum()) / accepted
    out: FloatArray = inside * (right - mean) * (s.total / accepted)
    return out


def _limits(blocks: FilledBins, threshold: float) -> Limits:
    """Return its limits: of a bin around the threshold all wrong may be in, or all right."""
    at = float(np.dtype(f"f{blocks.precision // 8}").type(threshold))
    sure, may = blocks.least >= at, (blocks.least < at) & (blocks.most >= at)
    right = np.maximum(blocks.weight - blocks.loss, 0.0)
    inside, wrong = float(right[sure].sum()), float(blocks.loss[sure].sum())
    more, worse = float(right[may].sum()), float(blocks.loss[may].sum())
    most = inside + wrong + worse
    best = inside + more + wrong
    return (inside / most if most else 0.0), ((inside + more) / best if best else 1.0)


def _named(name: str, threshold: str) -> Metric | None:
    at = float(threshold)
    return _entry(name, at) if at < 1 else None


def _entry(name: str, at: float) -> Metric:
    return Metric(
        Identity(
            name=name,
            title=f"selective accuracy at {at:.12g}",
            family="working point",
            lower_is_better=False,
            meaning=f"Of what reaches a confidence of {at:.12g}, {{value}} is right.",
            source=_SOURCE,
            convention="one minus the selective risk at a threshold",
            function=f"selective_accuracy(confidence, loss, threshold={at:.12g})",
        ),
        Measurement(
            compute=partial(_accuracy, threshold=at),
            needs=NEEDS,
            rank_based=False,
            influence=on_group_rows(partial(_influence, threshold=at)),
            n_failures=partial(_accepted_failures, threshold=at),
            binned=Binned(partial(_limits, threshold=at)),
        ),
    )


def _accepted_failures(s: Scored, *, threshold: float) -> int:
    place = s.probability_home
    inside = (place >= 0) & (place < int(reached(s.probability_groups, threshold)))
    failed = (s.loss > 0) & inside
    return int(np.count_nonzero(failed) if s.times is None else s.times[failed].sum())


FAMILIES = (Family("selective_accuracy@{}", _named, ("0.8",)),)

ENTRIES = (_entry("selective_accuracy@0.9", 0.9),)
