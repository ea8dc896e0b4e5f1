"""AURC and AUGRC in which all classes have equal weight."""

from dataclasses import replace

import numpy as np

from abstain._foundation.array_functions import reverse_cumulative_sum, sorted_unique, sum_by_index
from abstain._foundation.arrays import (
    as_double,
    as_scalar,
    inner,
    is_on_device,
    move_to_library_of,
    namespace,
)
from abstain._foundation.names import validate_codes
from abstain._foundation.scored import ClassView, MetricValue, Scored, validate_samples
from abstain._foundation.tie_groups import find_group_index, group_ties
from abstain.inference.influence import tail_sums, trapezoid_derivatives
from abstain.metrics.classes import (
    ClassCells,
    class_cells,
    get_class_view,
    reason_few_failures_of_class,
    reason_late_start_of_class,
)
from abstain.metrics.entry import (
    DisplayOptions,
    Identity,
    Measurement,
    Metric,
    Need,
    value_with_warning,
)
from abstain.metrics.influences import accepts_class_rows, mean_influence
from abstain.metrics.rank_weights import augrc_weight, rank_weighted_risk, vertex_area_weights
from abstain.typing import AnyArray, FloatArray, IntArray, Scalar


def balanced_aurc(
    confidence: AnyArray, loss: AnyArray, labels: AnyArray, *, weight: AnyArray | None = None
) -> float:
    """Compute the AURC of the mean class-wise selective risk.

    Answers: averaged over all coverages and classes, how large is the mean loss of the accepted
    samples?

    Parameters
    ----------
    confidence, loss : array of shape (n,)
        See `aurc`.
    labels : array of shape (n,)
        The true class of each sample, of any type.
    weight : array of shape (n,), optional
        Frequency weights.

    Returns
    -------
    float
        Value in [0, 1] for losses in [0, 1]; **lower is better**.

    Raises
    ------
    ShapeError, DomainError
        See `aurc`. A ShapeError is also raised if the length of `labels` differs.

    Notes
    -----
    At each threshold, the risk is the mean of the selective risks of the classes. As in FD-Shifts,
    a class without accepted samples contributes 0. The value is therefore too small if rare classes
    have low confidences. If a class is too rare, the value has no confidence interval. The area is
    computed by the trapezoid rule, with one point at each distinct confidence. The function sorts
    the samples twice.

    References
    ----------
    .. [1] The code of FD-Shifts (rc_stats.py), https://github.com/IML-DKFZ/fd-shifts

    Examples
    --------
    >>> import abstain as ab
    >>> ab.balanced_aurc([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1], ["a", "a", "b", "b"])
    0.1875
    """
    s = _scored_with_classes(confidence, loss, weight, labels)
    return value_with_warning(_compute_balanced_aurc(s), "balanced_aurc")


def _scored_with_classes(
    confidence: AnyArray, loss: AnyArray, weight: AnyArray | None, labels: AnyArray
) -> Scored:
    """Validate the arguments of a public function."""
    s = validate_samples(confidence, loss, weight)
    codes = _label_codes(labels, s)
    return replace(s, class_view=ClassView(codes, codes, ()))


def _label_codes(labels: AnyArray, s: Scored) -> AnyArray:
    """Return an integer code for the class of each label. Labels may have any type."""
    if is_on_device(labels) and tuple(labels.shape) == (s.n_input_rows,):
        _, codes = namespace(labels).unique_inverse(labels)
        return s.select_samples(codes)
    codes = validate_codes(labels, "labels", s.n_input_rows)
    if s.xp is not np:
        codes = move_to_library_of(codes, "labels", s.confidence)
    return s.select_samples(codes)


def _compute_balanced_aurc(s: Scored) -> MetricValue:
    """Compute the trapezoid area under the mean selective risk of the classes."""
    area_weights = vertex_area_weights(s.groups)
    xp = s.xp
    zero = xp.zeros_like(area_weights[:1])
    area_from_group = xp.concat((reverse_cumulative_sum(area_weights), zero))
    if xp is np:
        # The risk of a class is constant between two confidences of its samples. Its weight is the
        # area from the first confidence to the second.
        cells = class_cells(s)
        area = inner(cells.risk, cells.difference_to_next(area_from_group))
        return MetricValue(area / cells.n_classes)
    labels = get_class_view(s).labels
    classes = _present_classes(s, labels)
    order = xp.argsort(labels, stable=True)
    sorted_labels = xp.take(labels, order)
    starts = xp.searchsorted(sorted_labels, classes)
    ends = xp.searchsorted(sorted_labels, classes, side="right")
    area = 0.0
    for k in range(classes.shape[0]):
        rows = order[int(starts[k]) : int(ends[k])]
        area = area + _area_of_class(s, rows, area_from_group)
    return MetricValue(area / classes.shape[0])


def _area_of_class(s: Scored, rows: AnyArray, area_from_group: AnyArray) -> Scalar:
    """Return the area under the selective risk of one class over the coverage of all samples.

    `area_from_group` contains the remaining area from each tie group of all samples to coverage 1.
    """
    xp = s.xp
    weight = None if s.weight is None else xp.take(s.weight, rows)
    class_groups = group_ties(xp.take(s.confidence, rows), xp.take(s.loss, rows), weight)
    group_index = find_group_index(s.groups, class_groups.confidence)
    remaining_area = xp.take(area_from_group, group_index)
    next_remaining_area = xp.concat((remaining_area[1:], xp.zeros_like(remaining_area[:1])))
    risk = class_groups.cumulative_loss / class_groups.cumulative_weight
    return as_scalar(xp.sum(risk * (remaining_area - next_remaining_area)))


def _present_classes(s: Scored, labels: IntArray) -> AnyArray:
    """Return the sorted classes of the samples with positive weight."""
    return sorted_unique(labels if s.weight is None else labels[s.weight > 0])


def balanced_augrc(
    confidence: AnyArray, loss: AnyArray, labels: AnyArray, *, weight: AnyArray | None = None
) -> float:
    """Compute the AUGRC in which all classes have equal weight.

    Answers: averaged over all coverages and classes, what is the probability that a sample is
    accepted and wrong?

    Parameters
    ----------
    confidence, loss : array of shape (n,)
        See `augrc`.
    labels : array of shape (n,)
        The true class of each sample, of any type.
    weight : array of shape (n,), optional
        Frequency weights.

    Returns
    -------
    float
        Value in [0, 1] for losses in [0, 1]; **lower is better**.

    Raises
    ------
    ShapeError, DomainError
        See `augrc`. A ShapeError is also raised if the length of `labels` differs.

    Notes
    -----
    The loss of a sample is multiplied by n/(K n_class), where n_class is the number of samples of
    its class and K the number of classes with samples. As in FD-Shifts, the coverage is the
    accepted share of all samples. The function sorts the samples once.

    References
    ----------
    .. [1] The code of FD-Shifts (rc_stats.py), https://github.com/IML-DKFZ/fd-shifts

    Examples
    --------
    >>> import abstain as ab
    >>> round(ab.balanced_augrc([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1], ["a", "a", "a", "b"]), 6)
    0.166667
    """
    s = _scored_with_classes(confidence, loss, weight, labels)
    return value_with_warning(_compute_balanced_augrc(s), "balanced_augrc")


def _compute_balanced_augrc(s: Scored) -> MetricValue:
    """Compute the AUGRC after multiplying each loss by the factor W/(K W_k) of its class."""
    if s.xp is np:
        cells = class_cells(s)
        phi = augrc_weight(s.groups)[cells.group]
        return MetricValue(inner(phi, cells.loss * cells.balance_factor) / s.total_weight)
    xp = s.xp
    labels = get_class_view(s).labels
    classes = _present_classes(s, labels)
    n_classes = classes.shape[0]
    class_index = xp.clip(xp.searchsorted(classes, labels), 0, n_classes - 1)
    # A class whose samples all have weight 0 is not present.
    is_present = as_double(xp.take(classes, class_index) == labels)
    weight = is_present if s.weight is None else is_present * s.weight
    class_weight = sum_by_index(class_index, weight, n_classes)
    balance_factor = s.total_weight / (n_classes * class_weight)
    balanced_loss = weight * s.loss * xp.take(balance_factor, class_index)
    # The balanced loss replaces the loss in the tie groups of the samples.
    rows = xp.nonzero(weight > 0)[0]
    group_index = find_group_index(s.groups, xp.take(s.confidence, rows))
    n_groups = s.groups.loss.shape[0]
    group_loss = sum_by_index(group_index, xp.take(balanced_loss, rows), n_groups)
    return MetricValue(rank_weighted_risk(replace(s.groups, loss=group_loss), augrc_weight))


@accepts_class_rows
def _aurc_influence(s: Scored) -> FloatArray:
    """Return the influence of each sample on the balanced AURC."""
    groups = s.groups
    cells = s.cached(ClassCells.from_samples)
    area_from_group = np.append(tail_sums(vertex_area_weights(groups)), 0.0)
    area = cells.difference_to_next(area_from_group)
    risk = cells.risk
    # A sample changes the risk of its class at all thresholds below its confidence.
    area_per_weight = area / cells.through
    on_loss = cells.sum_from_cell(area_per_weight)
    on_weight = -cells.sum_from_cell(area_per_weight * risk)
    # A sample can change the coverage at which the curve of its class starts.
    on_weight += _start_influence(cells, area * risk)
    # A sample moves all later points of the curve to larger coverages.
    is_first_of_class = np.append(True, cells.is_last_of_class[:-1])
    previous_risk = np.where(is_first_of_class, 0.0, np.append(0.0, risk[:-1]))
    risk_sum = np.cumsum(sum_by_index(cells.group, risk - previous_risk, groups.loss.size))
    on_position = trapezoid_derivatives(risk_sum, is_flat_before_first=True)
    on_coverage = tail_sums(on_position) / groups.total_weight
    on_weight += on_coverage[cells.group]
    scale = s.total_weight / cells.n_classes
    return _influence_of_samples(s, cells, scale * on_weight, scale * on_loss)


def _start_influence(cells: ClassCells, area: FloatArray) -> FloatArray:
    """Return the influence of each sample by an earlier start of the curve of its class.

    `area` is the contribution of each cell to the area of its class.
    """
    # Let a threshold accept the share G of a class. The probability that it accepts one of m
    # samples is 1 - (1 - G)^m. The derivative for a sample is m (1 - G)^(m - 1) (1[accepted] - G).
    size = cells.n_effective[cells.class_of_cell]
    coverage = cells.coverage
    start_derivative = area * np.maximum(1.0 - coverage, 0.0) ** (size - 1.0)
    mean_derivative = np.bincount(cells.class_of_cell, weights=start_derivative * coverage)
    centered = cells.sum_from_cell(start_derivative) - mean_derivative[cells.class_of_cell]
    weight_per_sample = cells.class_weight / cells.n_effective
    return np.asarray(centered / weight_per_sample[cells.class_of_cell])


@accepts_class_rows
def _augrc_influence(s: Scored) -> FloatArray:
    """Return the influence of each sample on the balanced AUGRC."""
    groups = s.groups
    cells = s.cached(ClassCells.from_samples)
    phi = augrc_weight(groups)[cells.group]
    factor = cells.balance_factor
    balanced_loss = cells.loss * factor
    # A sample lowers the rank weight of all less confident samples.
    group_loss = sum_by_index(cells.group, balanced_loss, groups.loss.size)
    loss_below = tail_sums(group_loss) - group_loss / 2
    # A sample lowers the factor W/(K W_k) of its class.
    class_contribution = np.bincount(cells.class_of_cell, weights=phi * balanced_loss)
    mean_contribution = class_contribution / cells.class_weight
    on_rank = -loss_below[cells.group] / groups.total_weight
    on_weight = on_rank - mean_contribution[cells.class_of_cell]
    return _influence_of_samples(s, cells, on_weight, phi * factor)


def _influence_of_samples(
    s: Scored, cells: ClassCells, on_weight: FloatArray, on_loss: FloatArray
) -> FloatArray:
    """Return influences from the derivatives with respect to the weights and losses of cells."""
    # In-place operations save memory.
    sorted_influence = on_loss[cells.cell_of_row]
    sorted_influence *= s.loss[cells.rows]
    sorted_influence += on_weight[cells.cell_of_row]
    influence = np.zeros(s.n_rows)
    influence[cells.rows] = sorted_influence
    return mean_influence(s, influence)


_SOURCE = "code of FD-Shifts (rc_stats.py), https://github.com/IML-DKFZ/fd-shifts"


ENTRIES = (
    Metric(
        Identity(
            name="aurc_ba",
            title="AURC, balanced accuracy",
            family="area",
            lower_is_better=True,
            meaning="Averaged over all coverages and classes, {value} of the accepted samples are "
            "wrong.",
            source=_SOURCE,
            convention="trapezoid; a class without accepted samples contributes 0",
            function="balanced_aurc(confidence, loss, labels)",
        ),
        Measurement(
            compute=_compute_balanced_aurc,
            needs=frozenset({Need.CLASSES}),
            # The value depends on the order of the losses and also on the class of each failure.
            monotone=False,
            duplication="limit",
            influence=_aurc_influence,
            heavy_tailed=True,
            unreliable_reason=lambda s: (
                reason_few_failures_of_class(s) or reason_late_start_of_class(s)
            ),
        ),
        DisplayOptions(per_thousand=True),
    ),
    Metric(
        Identity(
            name="augrc_ba",
            title="AUGRC, balanced accuracy",
            family="area",
            lower_is_better=True,
            meaning="If all classes were equally frequent, {value} of all samples would be "
            "accepted and wrong, averaged over all coverages.",
            source=_SOURCE,
            function="balanced_augrc(confidence, loss, labels)",
        ),
        Measurement(
            compute=_compute_balanced_augrc,
            needs=frozenset({Need.CLASSES}),
            monotone=False,
            influence=_augrc_influence,
            unreliable_reason=reason_few_failures_of_class,
        ),
        DisplayOptions(per_thousand=True),
    ),
)
