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
        Confidence scores; higher means more trusted. Only the order of the scores matters.
    loss : array of shape (n,)
        Finite and non-negative; 1 for an error under 0/1 loss.
    acceptable_loss : float, default=0.0
        The largest loss of an acceptable prediction.
    weight : array of shape (n,), optional
        Frequency weights. An integer weight m is equivalent to m copies of the sample.

    Returns
    -------
    float
        Value in [0, 1]; **higher is better**. The value is NaN, with an `UndefinedMetricWarning`,
        if no prediction is acceptable.

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
    mean of precision and recall, and 0 if no sample is retained. The area over the retained share
    is computed by the trapezoid rule. Without ties, the Shifts code returns n/(n + 1) times this
    value. Use the metric to compare scores of one model, but not to compare models. For example,
    the value is 0.614 if all predictions are acceptable, and 0.715 for the best order if 55% of the
    predictions are acceptable. The function sorts the samples once.

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
    max_loss = checks.fraction(acceptable_loss, "acceptable_loss", high=float("inf"))
    return value_with_warning(_compute_f1_auc(s, max_loss), "f1_auc")


def _compute_f1_auc(s: Scored, acceptable_loss: float = 0.0) -> MetricValue:
    """Compute the area under the F1-retention curve by the trapezoid rule."""
    if s.xp is np and s.is_binary and acceptable_loss < 1:
        groups = s.merged_groups
        retained_acceptable = groups.cumulative_weight - groups.cumulative_loss
    elif s.xp is np and s.weight is None:
        groups = Scored(s.confidence, s.loss > acceptable_loss).merged_groups
        retained_acceptable = groups.cumulative_weight - groups.cumulative_loss
    else:
        groups = s.group_with_loss(s.loss <= acceptable_loss)
        retained_acceptable = groups.cumulative_loss
    n_acceptable = float(retained_acceptable[-1])
    if not n_acceptable > 0:
        return undefined(f"no prediction has a loss of at most {acceptable_loss:g}")
    # F1 = 2 PR/(P + R) = 2 (acceptable retained)/(retained + all acceptable).
    f1 = prepend_zero(2 * retained_acceptable / (groups.cumulative_weight + n_acceptable))
    area = groups.weight * (f1[1:] + f1[:-1]) / 2
    if groups.is_merged_without_unknown_ties is not None:
        merged = np.flatnonzero(groups.is_merged_without_unknown_ties)
        area[merged] = _areas_of_merged_groups(groups, merged, n_acceptable, f1)
    return MetricValue(float(groups.xp.sum(area)) / groups.total_weight)


def _areas_of_merged_groups(
    groups: TieGroups, merged: IntArray, n_acceptable: float, f1: FloatArray
) -> FloatArray:
    """Return the trapezoid area under the F1-retention curve over each merged group.

    A merged group contains the positions k = a + 1, ..., b. Its samples are either all acceptable
    or all unacceptable.
    """
    b = groups.cumulative_weight.take(merged)
    m = groups.weight.take(merged)
    a = b - m
    loss = groups.loss.take(merged)
    acceptable_share = 1.0 - loss / m
    acceptable_before = a - (groups.cumulative_loss.take(merged) - loss)
    # F1 at position k is 2 acceptable_share + numerator/(k + n_acceptable).
    numerator = 2.0 * (acceptable_before - acceptable_share * (a + n_acceptable))
    harmonic_sum = harmonic_between(a + n_acceptable, b + n_acceptable)
    f1_sum = 2.0 * acceptable_share * m + numerator * harmonic_sum
    f1_before = f1.take(merged)
    f1_after = f1.take(merged + 1)
    return np.asarray(f1_sum + (f1_before - f1_after) / 2)


def _influence(s: Scored) -> FloatArray:
    """Return the influence of each sample on the F1-AUC for an acceptable loss of 0."""
    is_acceptable = s.loss <= 0.0
    if s.is_binary:
        acceptable_weight = s.groups.weight - s.groups.loss
    else:
        acceptable_weight = s.group_with_loss(is_acceptable).loss
    # The attribute `loss` of these groups contains the weight of the acceptable samples.
    groups = replace(s.groups, loss=acceptable_weight)
    total = groups.total_weight
    n_acceptable = groups.cumulative_loss[-1]
    # F1 is 2 (acceptable retained) / divisor.
    divisor = groups.cumulative_weight + n_acceptable
    area_weights = vertex_area_weights_from_origin(groups)
    on_divisor = area_weights * (2 * groups.cumulative_loss / divisor) / divisor
    on_position = trapezoid_derivatives_of_groups(
        groups,
        lambda x, acceptable: 2 * acceptable / (x + n_acceptable),
        is_flat_before_first=False,
    )
    # Within a merged group, divisor - (acceptable retained) is constant.
    constant = divisor - groups.cumulative_loss
    inverse = sums_within_merged_groups(groups, harmonic_between, n_acceptable)
    inverse_squares = sums_within_merged_groups(groups, inverse_squares_between, n_acceptable)
    above, within = curvature_within_merged_groups(groups, n_acceptable)
    on_position_above = 2 * constant * above / total
    on_position_within = 2 * constant * within / total
    # One more acceptable sample increases the divisor at every threshold.
    within_groups = (2 * inverse - 2 * constant * inverse_squares).sum() / total
    on_n_acceptable = float(on_divisor.sum() + within_groups)
    inner = -2 * inverse / total - on_position_above
    on_weight = tail_sums(on_position / total - on_divisor + inner) - inner - on_position_within
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
