"""The F1-retention curve in one number."""

from dataclasses import replace

import numpy as np

from abstain._foundation import checks
from abstain._foundation.array_functions import prepend_zero
from abstain._foundation.measurement import MetricValue, undefined
from abstain._foundation.scored import Scored, validate_samples
from abstain._foundation.special import harmonic_between, inverse_squares_between
from abstain._foundation.tie_groups import TieGroups
from abstain.inference.influence import Gradient, tail_sums, trapezoid_derivatives_of_groups
from abstain.metrics.entry import Identity, Measurement, Metric, value_with_warning
from abstain.metrics.influences import (
    accepts_split_rows,
    curvature_within_merged_groups,
    sums_within_merged_groups,
)
from abstain.metrics.rank_weights import vertex_area_weights_from_origin
from abstain.typing import AnyArray, FloatArray, IntArray

_SOURCE = "Malinin et al. (2021), https://arxiv.org/abs/2107.07455"


def f1_auc(
    confidence: AnyArray,
    loss: AnyArray,
    *,
    acceptable_loss: float = 0.0,
    weight: AnyArray | None = None,
) -> float:
    """Compute the area under the F1-retention curve (F1-AUC).

    Answers: averaged over how many samples are retained, how well does retaining the confident
    ones pick out the acceptable predictions, neither missing them nor keeping others?

    Parameters
    ----------
    confidence : array of shape (n,)
        Higher means more trusted; any real scale, only the order matters.
    loss : array of shape (n,)
        Finite and non-negative; 1 for an error under 0/1 loss.
    acceptable_loss : float, default=0.0
        A prediction is acceptable when its loss is at most this.
    weight : array of shape (n,), optional
        Frequency weights: an integer weight counts a sample that many times.

    Returns
    -------
    float
        In [0, 1]; **higher is better**. NaN, with an `UndefinedMetricWarning`, when no prediction
        is acceptable.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, or a loss, weight or `acceptable_loss` is negative.

    Notes
    -----
    At each distinct confidence: precision = acceptable retained / retained, recall = acceptable
    retained / all acceptable, F1 their harmonic mean, 0 at retention 0; the trapezoid rule over
    retention. Samples of equal confidence share a vertex. The Shifts code sets its vertices
    k/(n + 1) apart and breaks ties by row order: without ties it prints n/(n + 1) times this
    value. Recall rises slowly when all predictions are acceptable, so a perfect model has only
    2 - 2 ln 2 = 0.614, less than one with 55 % acceptable in the best order (0.715): compare
    scores of one model with it, not models. Cost: one sort.

    References
    ----------
    .. [1] Malinin et al. (2021), Shifts: a dataset of real distributional shift across multiple
       large-scale tasks, https://arxiv.org/abs/2107.07455

    Examples
    --------
    >>> from abstain.metrics import f1_auc
    >>> round(f1_auc([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1]), 4)
    0.575
    """
    s = validate_samples(confidence, loss, weight)
    allowed = checks.fraction(acceptable_loss, "acceptable_loss", high=float("inf"))
    return value_with_warning(_compute_f1_auc(s, allowed), "f1_auc")


def _compute_f1_auc(s: Scored, acceptable_loss: float = 0.0) -> MetricValue:
    # 2 PR/(P + R) is 2 acceptable retained / (retained + all acceptable).
    plain = s.xp is np and s.is_binary and acceptable_loss < 1
    if not plain and s.xp is np and s.weight is None:
        s, plain = Scored(s.confidence, s.loss > acceptable_loss), True
    if plain:
        groups = s.merged_groups
        right = groups.cumulative_weight - groups.cumulative_loss
    else:
        groups = s.group_with_loss(s.loss <= acceptable_loss)
        right = groups.cumulative_loss
    everything = float(right[-1])
    if not everything > 0:
        return undefined(f"no prediction has a loss of at most {acceptable_loss:g}")
    f1 = prepend_zero(2 * right / (groups.cumulative_weight + everything))
    area = groups.weight * (f1[1:] + f1[:-1]) / 2
    if groups.is_merged_without_unknown_ties is not None:
        here = np.flatnonzero(groups.is_merged_without_unknown_ties)
        area[here] = _areas_of_merged_groups(groups, here, everything, f1)
    return MetricValue(float(groups.xp.sum(area)) / groups.total_weight)


def _areas_of_merged_groups(
    groups: TieGroups, here: IntArray, everything: float, f1: FloatArray
) -> FloatArray:
    """Add up the trapezoids within each merged group, k = a + 1 to b.

    A share c of them is acceptable, all or none, so F1 is 2 c + 2 (P - c (a + A)) / (k + A), where
    P of all A acceptable ones are retained before it.
    """
    b, m, loss = (x.take(here) for x in (groups.cumulative_weight, groups.weight, groups.loss))
    a, share = b - m, 1.0 - loss / m
    before = a - (groups.cumulative_loss.take(here) - loss)
    falling = 2.0 * (before - share * (a + everything))
    each = 2.0 * share * m + falling * harmonic_between(a + everything, b + everything)
    return np.asarray(each + (f1.take(here) - f1.take(here + 1)) / 2)


def _influence(s: Scored) -> FloatArray:
    """F1-AUC: what each sample does to it by its place and, if acceptable, by being so."""
    fine = s.loss <= 0.0
    loss = s.groups.weight - s.groups.loss if s.is_binary else s.group_with_loss(fine).loss
    right = replace(s.groups, loss=loss)
    return _gradient(right).influence(right, s.group_index, fine)


def _gradient(right: TieGroups) -> Gradient:
    """F1 = 2 P/K at each vertex, K = x + all that is acceptable, of which P is retained."""
    everything, n = right.cumulative_loss[-1], right.total_weight
    divisor = right.cumulative_weight + everything
    area = vertex_area_weights_from_origin(right)
    shrink = area * (2 * right.cumulative_loss / divisor) / divisor
    steps = trapezoid_derivatives_of_groups(
        right, lambda x, fine: 2 * fine / (x + everything), is_flat_before_first=False
    )
    # Within a merged group P is K - c, and all sums are those of powers of 1/K.
    beyond = divisor - right.cumulative_loss
    counted = sums_within_merged_groups(right, harmonic_between, everything)
    squares = sums_within_merged_groups(right, inverse_squares_between, everything)
    bend, mean = (2 * beyond * x / n for x in curvature_within_merged_groups(right, everything))
    # One more acceptable sample makes them more everywhere, also where it is rejected.
    shrunk = float(shrink.sum() + (2 * counted - 2 * beyond * squares).sum() / n)
    inner = -2 * counted / n - bend
    place = tail_sums(steps / n - shrink + inner) - inner - mean
    counts = tail_sums((area / divisor + counted / n) * 2) - 2 * counted / n
    return Gradient(place, counts - shrunk)


ENTRIES = (
    Metric(
        Identity(
            name="f1_auc",
            title="F1-AUC",
            family="area",
            lower_is_better=False,
            meaning="Averaged over the share retained, retaining the confident finds the right "
            "predictions with an F1 score of {value}.",
            source=_SOURCE,
            function="f1_auc(confidence, loss)",
            violated_requirements=("R2", "R5"),
        ),
        Measurement(
            compute=_compute_f1_auc,
            # Without ties no order beats the oracle; a straight line across a large tie group can.
            monotone=False,
            gradients=frozenset(),
            influence=accepts_split_rows(_influence),
            n_failures=None,
        ),
    ),
)
