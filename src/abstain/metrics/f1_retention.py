"""The area under the F1-retention curve."""

from dataclasses import replace

import numpy as np

from abstain._foundation import checks
from abstain._foundation.array_functions import prepend_zero
from abstain._foundation.scored import MetricValue, Scored, undefined, validate_samples
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

    Answers: averaged over the share of retained samples, with which F1 score do the retained
    samples identify the acceptable predictions?

    Parameters
    ----------
    confidence : array of shape (n,)
        Higher means more trusted; any real scale, only the order matters.
    loss : array of shape (n,)
        Finite and non-negative; 1 for an error under 0/1 loss.
    acceptable_loss : float, default=0.0
        The largest loss of an acceptable prediction.
    weight : array of shape (n,), optional
        Frequency weights. A sample with an integer weight m counts as m samples.

    Returns
    -------
    float
        In [0, 1]; **higher is better**. NaN, with an `UndefinedMetricWarning`, if no prediction
        is acceptable.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, or a loss, weight or `acceptable_loss` is negative.

    Notes
    -----
    At each distinct confidence, precision is the share of acceptable predictions among the retained
    samples. Recall is the share of acceptable predictions that are retained. F1 is the harmonic
    mean of precision and recall, and it is 0 at retention 0. The trapezoid rule yields the area
    over retention, and samples with equal confidence share a vertex. The Shifts code places
    vertices at k/(n + 1) and breaks ties by row order. Without ties, that code prints n/(n + 1)
    times this value. Use the metric to compare scores of one model, but not to compare models. If
    all predictions are acceptable, the value is 2 - 2 ln 2 = 0.614. If 55% of the predictions are
    acceptable and the order is the best, the value is 0.715. The cost is one sort.

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
    """Compute the area under the F1-retention curve by the trapezoid rule."""
    if s.xp is np and s.is_binary and acceptable_loss < 1:
        groups = s.merged_groups
        acceptable = groups.cumulative_weight - groups.cumulative_loss
    elif s.xp is np and s.weight is None:
        groups = Scored(s.confidence, s.loss > acceptable_loss).merged_groups
        acceptable = groups.cumulative_weight - groups.cumulative_loss
    else:
        groups = s.group_with_loss(s.loss <= acceptable_loss)
        acceptable = groups.cumulative_loss
    n_acceptable = float(acceptable[-1])
    if not n_acceptable > 0:
        return undefined(f"no prediction has a loss of at most {acceptable_loss:g}")
    # F1 = 2 PR/(P + R) = 2 (acceptable retained)/(retained + all acceptable).
    f1 = prepend_zero(2 * acceptable / (groups.cumulative_weight + n_acceptable))
    area = groups.weight * (f1[1:] + f1[:-1]) / 2
    if groups.is_merged_without_unknown_ties is not None:
        merged = np.flatnonzero(groups.is_merged_without_unknown_ties)
        area[merged] = _areas_of_merged_groups(groups, merged, n_acceptable, f1)
    return MetricValue(float(groups.xp.sum(area)) / groups.total_weight)


def _areas_of_merged_groups(
    groups: TieGroups, merged: IntArray, n_acceptable: float, f1: FloatArray
) -> FloatArray:
    """Return the sum of the trapezoids in each merged group, with vertices k = a + 1, ..., b.

    In a merged group, either all samples are acceptable (c = 1) or no sample is acceptable (c = 0).
    Let P of all A acceptable samples be retained before the group. At the vertex k, F1 is 2 c + 2
    (P - c (a + A))/(k + A).
    """
    b, m = groups.cumulative_weight.take(merged), groups.weight.take(merged)
    loss, cumulative_loss = groups.loss.take(merged), groups.cumulative_loss.take(merged)
    a, acceptable_share = b - m, 1.0 - loss / m
    acceptable_before = a - (cumulative_loss - loss)
    numerator = 2.0 * (acceptable_before - acceptable_share * (a + n_acceptable))
    harmonic_sum = harmonic_between(a + n_acceptable, b + n_acceptable)
    vertex_sum = 2.0 * acceptable_share * m + numerator * harmonic_sum
    return np.asarray(vertex_sum + (f1.take(merged) - f1.take(merged + 1)) / 2)


def _influence(s: Scored) -> FloatArray:
    """Return the influence of each sample on the F1-AUC for an acceptable loss of 0.

    At each vertex, F1 is 2 P/K with K = x + A. Here x is the retained weight, A is the weight of
    all acceptable samples, and P is the weight of the retained acceptable samples.
    """
    is_acceptable = s.loss <= 0.0
    if s.is_binary:
        acceptable = s.groups.weight - s.groups.loss
    else:
        acceptable = s.group_with_loss(is_acceptable).loss
    # The attribute `loss` of these groups contains the weight of the acceptable samples.
    groups = replace(s.groups, loss=acceptable)
    n_acceptable, total = groups.cumulative_loss[-1], groups.total_weight
    divisor = groups.cumulative_weight + n_acceptable
    area_weights = vertex_area_weights_from_origin(groups)
    on_divisor = area_weights * (2 * groups.cumulative_loss / divisor) / divisor
    on_position = trapezoid_derivatives_of_groups(
        groups,
        lambda x, acceptable: 2 * acceptable / (x + n_acceptable),
        is_flat_before_first=False,
    )
    # Within a merged group, K - P is constant, so all sums are sums of powers of 1/K.
    constant = divisor - groups.cumulative_loss
    inverse = sums_within_merged_groups(groups, harmonic_between, n_acceptable)
    inverse_squares = sums_within_merged_groups(groups, inverse_squares_between, n_acceptable)
    above, within = curvature_within_merged_groups(groups, n_acceptable)
    above, within = 2 * constant * above / total, 2 * constant * within / total
    # One more acceptable sample increases A at every vertex, even at vertices that reject the
    # sample.
    within_groups = (2 * inverse - 2 * constant * inverse_squares).sum() / total
    on_n_acceptable = float(on_divisor.sum() + within_groups)
    inner = -2 * inverse / total - above
    on_weight = tail_sums(on_position / total - on_divisor + inner) - inner - within
    on_acceptable = tail_sums((area_weights / divisor + inverse / total) * 2) - 2 * inverse / total
    gradient = Gradient(on_weight, on_acceptable - on_n_acceptable)
    return gradient.influence(groups, s.group_index, is_acceptable)


ENTRIES = (
    Metric(
        Identity(
            name="f1_auc",
            title="F1-AUC",
            family="area",
            lower_is_better=False,
            meaning="Averaged over the retained share, the confidence selects the correct "
            "predictions with an F1 score of {value}.",
            source=_SOURCE,
            function="f1_auc(confidence, loss)",
            violated_requirements=("R2", "R5"),
        ),
        Measurement(
            compute=_compute_f1_auc,
            # With a large tie group, the value can exceed the value of the best order without ties.
            monotone=False,
            gradients=frozenset(),
            influence=accepts_split_rows(_influence),
            n_failures=None,
        ),
    ),
)
