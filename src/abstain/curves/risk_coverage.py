"""Selective, generalized and achievable risk-coverage curves."""

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
    """Risk as a function of coverage, with one vertex for each distinct confidence.

    At vertex i, samples with confidence >= thresholds[i] are accepted. Vertices are in order of
    decreasing threshold. No threshold corresponds to a point between two vertices, so a curve with
    many ties has few vertices.

    Attributes
    ----------
    kind : {"selective", "generalized"}
        Kind of risk. "selective" is the mean loss of the accepted samples. "generalized" is this
        mean times the coverage, which for 0/1 loss is the probability that a sample is accepted and
        wrong.
    thresholds : array of shape (g,)
        Distinct confidences in decreasing order.
    coverage : array of shape (g,)
        Weighted share of accepted samples, in (0, 1], in increasing order.
    risk : array of shape (g,)
        The risk at each coverage.
    accepted : array of shape (g,)
        Number of accepted samples.
    failures : array of shape (g,)
        Sum of weight x loss over the accepted samples. For 0/1 loss, the sum is the weighted number
        of silent failures.
    usable : array of shape (g,)
        Whether every vertex of larger coverage has a larger selective risk. Do not select other
        working points.
    total : float
        Weight of all samples, which is their number without weights.
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
    """Return a mask of vertices with less selective risk than all vertices of larger coverage."""
    xp, risk = groups.xp, without_gradient(groups.cumulative_loss) / groups.cumulative_weight
    min_risk_from_here = reverse_cumulative_min(risk)
    # The last entry is always True.
    return xp.concat((risk[:-1] < min_risk_from_here[1:] * (1 - ROUNDING), risk[-1:] == risk[-1:]))


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
        Higher means more trusted; any real scale.
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
    Samples of equal confidence share a vertex, so the result does not depend on the order of rows.
    The cost is one sort.

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
    return curve_from_groups(
        validate_samples(confidence, loss, weight).groups, "selective"
    ).as_arrays_like(confidence)


def generalized_risk_coverage_curve(
    confidence: AnyArray, loss: AnyArray, *, weight: AnyArray | None = None
) -> RiskCoverageCurve:
    """Compute the generalized risk-coverage curve.

    Answers: at this threshold, which share of *all* samples is a silent failure, that is, accepted
    and wrong?

    Parameters
    ----------
    confidence : array of shape (n,)
        Higher means more trusted; any real scale.
    loss : array of shape (n,)
        Finite and non-negative; 1 for an error under 0/1 loss.
    weight : array of shape (n,), optional
        Frequency weights. A sample with an integer weight m counts as m samples.

    Returns
    -------
    RiskCoverageCurve
        Arrays of the same library as the input, with one entry per distinct confidence. The curve
        starts at the origin, which is not a vertex. Lower is better.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, or a loss or weight is negative.

    Notes
    -----
    Samples of equal confidence share a vertex, so the result does not depend on the order of rows.
    The cost is one sort.

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
    return curve_from_groups(
        validate_samples(confidence, loss, weight).groups, "generalized"
    ).as_arrays_like(confidence)


def thin(curve: RiskCoverageCurve, *, vertices: int = 400) -> RiskCoverageCurve:
    """Reduce a curve to about `vertices` vertices for a plot.

    The function divides the coverages into equal steps and retains the vertices of lowest and
    highest risk in each step, so that extremes remain visible. Metrics are never computed from a
    thinned curve.

    Parameters
    ----------
    curve : RiskCoverageCurve
        The complete curve.
    vertices : int, default=400
        Approximate number of vertices.

    Returns
    -------
    RiskCoverageCurve
        The curve with fewer vertices as NumPy arrays. It includes the first and the last vertex.

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
    size = len(curve)
    if size <= vertices:
        return curve
    step = np.minimum((curve.coverage * (vertices // 2)).astype(np.int64), vertices // 2 - 1)
    starts = np.flatnonzero(np.diff(step, prepend=-1))
    order = np.lexsort((curve.risk, step))
    ends = np.append(starts[1:], size) - 1
    indices = np.unique(np.concatenate(([0, size - 1], order[starts], order[ends])))
    return replace(curve, **{name: values[indices] for name, values in arrays.items()})


def hull_vertices(groups: TieGroups) -> IntArray:
    """Return the vertices of the lower convex hull of (coverage, generalized risk).

    The map from the ROC curve of failures to (coverage, generalized risk) is linear, so these
    vertices also define the ROC convex hull. The hull is defined for every loss and not only for
    0/1 loss. An isotonic regression of the mean losses of the groups yields the slopes of the hull.
    """
    # Isotonic regression is sequential, so it runs on the host.
    return isotonic_block_ends(to_numpy(groups.loss, "values"), to_numpy(groups.weight, "values"))


def merge_groups(groups: TieGroups, vertices: IntArray) -> TieGroups:
    """Merge groups so that only these vertices remain as thresholds."""
    xp = groups.xp
    index = vertices if xp is np else move_to_library_of(vertices, "vertices", groups.weight)
    return TieGroups(
        xp.take(groups.confidence, index),
        undo_cumulative_sum(xp.take(groups.cumulative_weight, index)),
        undo_cumulative_sum(xp.take(groups.cumulative_loss, index)),
        None
        if groups.unweighted_count is None
        else undo_cumulative_sum(xp.take(groups.cumulative_count, index)),
    )


def achievable_curve(
    confidence: AnyArray,
    loss: AnyArray,
    *,
    weight: AnyArray | None = None,
    kind: Kind = "selective",
) -> RiskCoverageCurve:
    """Compute the curve of thresholds that are not worse than a mixture of two other thresholds.

    Answers: which working points are useful if a random choice between two working points is
    possible?

    Parameters
    ----------
    confidence : array of shape (n,)
        Higher means more trusted; any real scale.
    loss : array of shape (n,)
        Finite and non-negative.
    weight : array of shape (n,), optional
        Frequency weights.
    kind : {"selective", "generalized"}, default="selective"
        The risk.

    Returns
    -------
    RiskCoverageCurve
        The vertices of the convex hull. Between two vertices, the generalized risk is linear and
        the selective risk is a hyperbola.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, or a loss or weight is negative.

    Notes
    -----
    Samples of equal confidence share a vertex. The cost is one sort and one pass over the vertices.

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
    return curve_from_groups(merge_groups(groups, hull_vertices(groups)), kind).as_arrays_like(
        confidence
    )
