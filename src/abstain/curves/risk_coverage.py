"""Compute risk-coverage curves and their lower convex hulls."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from abstain._foundation import checks
from abstain._foundation.array_functions import reverse_cumulative_min, undo_cumulative_sum
from abstain._foundation.arrays import move_to_library_of, to_numpy, without_gradient
from abstain._foundation.isotonic_blocks import isotonic_block_ends
from abstain._foundation.scored import validate_samples
from abstain._foundation.tie_groups import TieGroups
from abstain.curves._vertices import CurveArrays
from abstain.typing import AnyArray, Array, BoolArray, FloatArray, IntArray

Kind = Literal["selective", "generalized"]

#: Tolerance for rounding errors of risks and coverages, which are ratios of sums.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class RiskCoverageCurve(CurveArrays):
    """Risk as a function of coverage, with one point for each distinct confidence.

    At point i, samples with confidence >= thresholds[i] are accepted.

    Attributes
    ----------
    kind : {"selective", "generalized"}
        Kind of risk. The selective risk is the mean loss of the accepted samples. The generalized
        risk is the selective risk times the coverage. For 0/1 loss, the generalized risk is the
        share of all samples that are accepted and wrong.
    thresholds : array of shape (g,)
        Distinct confidences in decreasing order.
    coverage : array of shape (g,)
        Weighted share of accepted samples, in (0, 1], in increasing order.
    risk : array of shape (g,)
        The risk at each coverage.
    accepted : array of shape (g,)
        Number of accepted samples.
    failures : array of shape (g,)
        Sum of weight x loss over the accepted samples, which is the number of silent failures for
        unweighted samples with 0/1 loss.
    usable : array of shape (g,)
        Whether the selective risk is larger at every point of larger coverage. Select only
        thresholds of usable points.
    total : float
        Total weight of all samples, or their number if there are no weights.
    """

    kind: Kind
    thresholds: Array
    coverage: FloatArray
    risk: FloatArray
    accepted: IntArray
    failures: FloatArray
    usable: BoolArray
    total: float

    scalar_fields: ClassVar[frozenset[str]] = frozenset({"kind", "total"})


def usable_vertices(groups: TieGroups) -> AnyArray:
    """Return a mask of thresholds with a lower selective risk than all lower thresholds."""
    xp = groups.xp
    risk = without_gradient(groups.cumulative_loss) / groups.cumulative_weight
    min_later_risk = reverse_cumulative_min(risk)[1:]
    is_usable = risk[:-1] < min_later_risk * (1 - ROUNDING)
    last_is_usable = xp.ones_like(risk[-1:], dtype=xp.bool)
    return xp.concat((is_usable, last_is_usable))


def curve_from_groups(groups: TieGroups, kind: Kind) -> RiskCoverageCurve:
    """Compute a risk-coverage curve from tie groups."""
    denominator: Any = groups.cumulative_weight if kind == "selective" else groups.total_weight
    return RiskCoverageCurve(
        kind=kind,
        thresholds=groups.confidence,
        coverage=groups.cumulative_weight / groups.total_weight,
        risk=groups.cumulative_loss / denominator,
        accepted=groups.cumulative_count,
        failures=groups.cumulative_loss,
        usable=usable_vertices(groups),
        total=groups.total_weight,
    )


def risk_coverage_curve(
    confidence: AnyArray, loss: AnyArray, *, weight: AnyArray | None = None
) -> RiskCoverageCurve:
    """Compute the selective risk-coverage curve.

    Answers: if only samples with at least this confidence are accepted, which share is accepted and
    how large is their error rate?

    Parameters
    ----------
    confidence : array of shape (n,)
        Confidence scores on any scale. Higher is more confident.
    loss : array of shape (n,)
        Finite and non-negative; 1 for an error under 0/1 loss.
    weight : array of shape (n,), optional
        Frequency weights. A sample with an integer weight m counts as m samples.

    Returns
    -------
    RiskCoverageCurve
        Arrays of the same library as the input, with one entry per distinct confidence. Lower is
        better.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, or a loss or weight is negative.

    Notes
    -----
    Samples of equal confidence are accepted together. The cost is one sort.

    References
    ----------
    .. [1] Geifman and El-Yaniv (2017), Selective classification for deep neural networks,
       eq. 1-2, https://arxiv.org/abs/1705.08500

    Examples
    --------
    >>> import abstain as ab
    >>> curve = ab.risk_coverage_curve([0.9, 0.8, 0.8, 0.6], [0, 1, 0, 0])
    >>> curve.coverage.tolist(), curve.risk.round(3).tolist()
    ([0.25, 0.75, 1.0], [0.0, 0.333, 0.25])
    """
    s = validate_samples(confidence, loss, weight)
    curve = curve_from_groups(s.groups, "selective")
    return curve.as_arrays_like(confidence)


def generalized_risk_coverage_curve(
    confidence: AnyArray, loss: AnyArray, *, weight: AnyArray | None = None
) -> RiskCoverageCurve:
    """Compute the generalized risk-coverage curve.

    Answers: at this threshold, which share of *all* samples is accepted and wrong?

    Parameters
    ----------
    confidence : array of shape (n,)
        Confidence scores on any scale. Higher is more confident.
    loss : array of shape (n,)
        Finite and non-negative; 1 for an error under 0/1 loss.
    weight : array of shape (n,), optional
        Frequency weights. A sample with an integer weight m counts as m samples.

    Returns
    -------
    RiskCoverageCurve
        Arrays of the same library as the input, with one entry per distinct confidence. The first
        point of the curve, the origin, is omitted. Lower is better.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, or a loss or weight is negative.

    Notes
    -----
    Samples of equal confidence are accepted together. The cost is one sort.

    References
    ----------
    .. [1] Traub et al. (2024), Overcoming common flaws in the evaluation of selective
       classification systems, eq. 3, https://arxiv.org/abs/2407.01032

    Examples
    --------
    >>> import abstain as ab
    >>> curve = ab.generalized_risk_coverage_curve([0.9, 0.8, 0.8, 0.6], [0, 1, 0, 0])
    >>> curve.risk.tolist(), curve.accepted.tolist()
    ([0.0, 0.25, 0.25], [1, 3, 4])
    """
    s = validate_samples(confidence, loss, weight)
    curve = curve_from_groups(s.groups, "generalized")
    return curve.as_arrays_like(confidence)


def thin(curve: RiskCoverageCurve, *, vertices: int = 400) -> RiskCoverageCurve:
    """Reduce a curve to about `vertices` points for a plot.

    The coverages are divided into intervals of equal length. In each interval, the points of lowest
    and highest risk are retained. The result is for plots only, because metrics would be inexact.

    Parameters
    ----------
    curve : RiskCoverageCurve
        The complete curve.
    vertices : int, default=400
        Approximate number of points.

    Returns
    -------
    RiskCoverageCurve
        The curve with fewer points as NumPy arrays, including the first and the last point.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.curves import risk_coverage_curve, thin
    >>> curve = risk_coverage_curve(np.arange(10_000.0), np.zeros(10_000))
    >>> len(curve), len(thin(curve, vertices=100)) <= 102
    (10000, True)
    """
    arrays: dict[str, Any] = curve.to_numpy_arrays()
    curve = replace(curve, **arrays)
    n_points = len(curve)
    if n_points <= vertices:
        return curve
    # Each interval of coverages contributes two points.
    n_intervals = vertices // 2
    interval = (curve.coverage * n_intervals).astype(np.int64)
    interval = np.minimum(interval, n_intervals - 1)
    starts = np.flatnonzero(np.diff(interval, prepend=-1))
    ends = np.append(starts[1:], n_points) - 1
    by_interval_and_risk = np.lexsort((curve.risk, interval))
    lowest = by_interval_and_risk[starts]
    highest = by_interval_and_risk[ends]
    indices = np.unique(np.concatenate(([0, n_points - 1], lowest, highest)))
    return replace(curve, **{name: array[indices] for name, array in arrays.items()})


def hull_vertices(groups: TieGroups) -> IntArray:
    """Return the indices of the vertices of the lower convex hull of a risk-coverage curve.

    The curve is the generalized risk as a function of coverage. For 0/1 loss, the same indices
    define the convex hull of the ROC curve.
    """
    # The slopes of the hull are an isotonic regression of the mean losses of the groups.
    return isotonic_block_ends(to_numpy(groups.loss, "values"), to_numpy(groups.weight, "values"))


def merge_groups(groups: TieGroups, vertices: IntArray) -> TieGroups:
    """Merge neighboring tie groups, so that only the thresholds with these indices remain."""
    xp = groups.xp
    index = vertices if xp is np else move_to_library_of(vertices, "vertices", groups.weight)
    unweighted_count = None
    if groups.unweighted_count is not None:
        unweighted_count = undo_cumulative_sum(xp.take(groups.cumulative_count, index))
    return TieGroups(
        confidence=xp.take(groups.confidence, index),
        weight=undo_cumulative_sum(xp.take(groups.cumulative_weight, index)),
        loss=undo_cumulative_sum(xp.take(groups.cumulative_loss, index)),
        unweighted_count=unweighted_count,
    )


def achievable_curve(
    confidence: AnyArray,
    loss: AnyArray,
    *,
    weight: AnyArray | None = None,
    kind: Kind = "selective",
) -> RiskCoverageCurve:
    """Compute the lower convex hull of the generalized risk-coverage curve.

    Answers: which thresholds are useful if a random choice between two thresholds is possible?

    Parameters
    ----------
    confidence : array of shape (n,)
        Confidence scores on any scale. Higher is more confident.
    loss : array of shape (n,)
        Finite and non-negative.
    weight : array of shape (n,), optional
        Frequency weights.
    kind : {"selective", "generalized"}, default="selective"
        Kind of the returned risk.

    Returns
    -------
    RiskCoverageCurve
        The vertices of the convex hull. At the same coverage, a random choice between two
        thresholds cannot have a lower risk. Lower is better.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, or a loss or weight is negative.

    Notes
    -----
    Samples of equal confidence are accepted together. The cost is one sort and one pass over the
    distinct confidences.

    References
    ----------
    .. [1] Provost and Fawcett (2001), Robust classification for imprecise environments,
       https://doi.org/10.1023/A:1007601015854

    Examples
    --------
    >>> from abstain.curves import achievable_curve
    >>> achievable_curve([0.9, 0.8, 0.7, 0.6], [1, 0, 0, 1]).coverage.tolist()
    [0.75, 1.0]
    """
    checks.one_of(kind, "kind", ("selective", "generalized"))
    groups = validate_samples(confidence, loss, weight).groups
    hull = merge_groups(groups, hull_vertices(groups))
    return curve_from_groups(hull, kind).as_arrays_like(confidence)
