"""Areas under CWSA and CWSA+ over all coverages, and the AUC-MCC of the CWSA paper."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Final

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import as_array_like, as_double, as_scalar, stack_scalars, to_numpy
from abstain._foundation.frames import AnyFrame, Backend, convert_frame
from abstain._foundation.scored import MetricValue, Scored, output_reference
from abstain.curves.quadrature import trapezoid_area
from abstain.errors import UndefinedMetricWarning
from abstain.inference.influence import Gradient, tail_sums, trapezoid_derivatives
from abstain.metrics.confidence_weighted.cwsa import (
    NEEDS,
    RAMPS,
    SOURCE,
    AcceptedSums,
    Ramp,
    RampName,
    accepted_sums_at_thresholds,
    get_ramp,
    scored_probabilities,
)
from abstain.metrics.entry import Identity, Measurement, Metric, value_with_warning
from abstain.metrics.influences import accepts_group_rows, mean_influence
from abstain.metrics.rank_weights import vertex_area_weights, vertex_area_weights_from_origin
from abstain.typing import AnyArray, FloatArray, IntArray, Scalar


@dataclass(frozen=True, eq=False)
class CwsaSweep:
    """CWSA, CWSA+ and selective accuracy at several thresholds.

    Attributes
    ----------
    threshold : array of shape (t,)
        The thresholds, in the order of the input.
    coverage : array of shape (t,)
        Weighted share of accepted samples.
    accepted : array of shape (t,)
        Number of accepted samples.
    selective_accuracy : array of shape (t,)
        1 - mean loss of the accepted samples, or NaN if no sample is accepted.
    cwsa : array of shape (t,)
        CWSA, divided by the weight of all samples.
    cwsa_plus : array of shape (t,)
        CWSA+, divided by the weight of the accepted samples, or NaN if no sample is accepted.
    """

    threshold: FloatArray
    coverage: FloatArray
    accepted: IntArray
    selective_accuracy: FloatArray
    cwsa: FloatArray
    cwsa_plus: FloatArray

    def frame(self, *, backend: Backend = "polars") -> AnyFrame:
        """Return a dataframe with one row for each threshold, with null for undefined values."""
        import polars as pl

        columns = {f.name: to_numpy(getattr(self, f.name), f.name) for f in fields(self)}
        return convert_frame(pl.DataFrame(columns, nan_to_null=True), backend)

    def __len__(self) -> int:
        """Return the number of thresholds."""
        return len(self.threshold)

    def auc_mcc(self, metric: str = "cwsa_plus") -> float:
        """Compute the AUC-MCC, the area under a metric over the coverages of these thresholds.

        Answers: which single number does the paper compute from a sweep of thresholds?

        Parameters
        ----------
        metric : {"cwsa", "cwsa_plus", "selective_accuracy"}, default="cwsa_plus"
            The metric.

        Returns
        -------
        float
            Trapezoid area between the smallest and the largest coverage of the thresholds, without
            thresholds that accept no sample. The area is 0 for a model with confidence 1 on all
            samples, so do not compare models whose confidences have different distributions. The
            function `cwsa_area` includes all coverages.

        Raises
        ------
        InputError
            If `metric` is not a valid name.

        References
        ----------
        .. [1] Shahnazari et al. (2025), sections 4.3 and A.4, https://arxiv.org/abs/2505.18622

        Examples
        --------
        >>> from abstain.metrics import cwsa_sweep
        >>> round(cwsa_sweep([1.0, 0.9, 0.8, 0.6], [0, 0, 1, 0]).auc_mcc("cwsa"), 4)
        0.2408
        >>> cwsa_sweep([1.0, 1.0, 1.0], [0, 0, 0]).auc_mcc()
        0.0
        """
        column = checks.one_of(metric, "metric", ("cwsa", "cwsa_plus", "selective_accuracy"))
        all_coverages = to_numpy(self.coverage, "coverage").astype(np.float64)
        all_values = to_numpy(getattr(self, column), column).astype(np.float64)
        is_defined = np.isfinite(all_values)
        coverages = all_coverages[is_defined]
        values = all_values[is_defined]
        order = np.argsort(coverages, kind="stable")
        return float(trapezoid_area(values[order], coverages[order]))


def cwsa_sweep(
    confidence: AnyArray,
    loss: AnyArray,
    *,
    thresholds: AnyArray | None = None,
    ramp: RampName | Ramp = "linear",
    weight: AnyArray | None = None,
) -> CwsaSweep:
    """Compute CWSA, CWSA+ and the selective accuracy at many thresholds.

    Answers: at which threshold are the accepted predictions correct and confident?

    Parameters
    ----------
    confidence, loss : array of shape (n,)
        See `cwsa`.
    thresholds : array of shape (t,), optional
        Values in [0, 1). The default is 20 evenly spaced thresholds from 0.5 to 0.99, as in the
        published tables.
    ramp : {"linear", "quadratic", "sqrt", "step"} or callable, default="linear"
        See `cwsa`.
    weight : array of shape (n,), optional
        Frequency weights. An integer weight m is equivalent to m copies of the sample.

    Returns
    -------
    CwsaSweep
        Arrays in the type of the input, with one entry for each threshold; **higher is better** for
        each metric.

    Raises
    ------
    ShapeError, DomainError, InputError
        See `cwsa`.

    Notes
    -----
    CWSA is divided by the weight of all samples, and CWSA+ by that of the accepted samples. At
    thresholds without accepted samples, CWSA+ and the selective accuracy are NaN, with one
    `UndefinedMetricWarning`. Ties do not change the values. The linear, quadratic and step ramps
    require one pass over the samples, and other ramps require one pass for each threshold.

    References
    ----------
    .. [1] Shahnazari et al. (2025), Trust, or don't predict: introducing the CWSA family for
       confidence-aware model evaluation, https://arxiv.org/abs/2505.18622

    Examples
    --------
    >>> from abstain.metrics import cwsa_sweep
    >>> sweep = cwsa_sweep([1.0, 0.9, 0.8, 0.3], [0, 0, 1, 0], thresholds=[0.5, 0.85])
    >>> sweep.coverage.tolist(), sweep.cwsa.round(3).tolist()
    ([0.75, 0.5], [0.3, 0.333])
    """
    s = scored_probabilities(confidence, loss, weight)
    if thresholds is None:
        checked_thresholds = np.linspace(0.5, 0.99, 20)
    else:
        checked_thresholds = _check_thresholds(thresholds)
    sweep = sweep_thresholds(s, checked_thresholds, get_ramp(ramp))
    if not sweep.accepted.all():
        msg = "selective accuracy and CWSA+ are undefined where a threshold accepts no sample"
        warnings.warn(msg, UndefinedMetricWarning, stacklevel=2)
    reference = output_reference(s, confidence)
    columns = {}
    for column in fields(sweep):
        columns[column.name] = as_array_like(getattr(sweep, column.name), reference)
    return CwsaSweep(**columns)


def sweep_thresholds(s: Scored, thresholds: FloatArray, ramp: Ramp = RAMPS["linear"]) -> CwsaSweep:
    """Compute CWSA, CWSA+ and selective accuracy at thresholds in [0, 1)."""
    sums_by_threshold = accepted_sums_at_thresholds(s, thresholds, ramp)
    weight = np.array([sums.weight for sums in sums_by_threshold])
    return CwsaSweep(
        threshold=thresholds,
        coverage=weight / s.total_weight,
        accepted=np.array([sums.count for sums in sums_by_threshold], dtype=np.int64),
        selective_accuracy=stack_scalars([sums.accuracy for sums in sums_by_threshold]),
        cwsa=stack_scalars([sums.cwsa().value for sums in sums_by_threshold]),
        cwsa_plus=stack_scalars([sums.cwsa(plus=True).value for sums in sums_by_threshold]),
    )


def _check_thresholds(thresholds: AnyArray) -> FloatArray:
    """Return the thresholds as floats, or raise an error if one is not in [0, 1)."""
    values = checks.finite(checks.vector(thresholds, "thresholds"), "thresholds")
    checks.reject_entries("thresholds", "must lie in [0, 1)", values, (values < 0) | (values >= 1))
    return values.astype(np.float64)


def cwsa_area(confidence: AnyArray, loss: AnyArray, *, weight: AnyArray | None = None) -> float:
    """Compute the area under CWSA over coverage.

    Answers: averaged over all coverages, do confident successes outweigh confident failures?

    Parameters
    ----------
    confidence, loss, weight : array of shape (n,)
        See `cwsa`.

    Returns
    -------
    float
        Value in [-0.5, 0.5]; **higher is better**.

    Raises
    ------
    ShapeError, DomainError
        See `cwsa`.

    Notes
    -----
    The curve has a point at each distinct confidence, so tied samples share a point. The point at
    confidence 1 is the limit for thresholds that approach 1 from below. Straight lines connect the
    origin and the points. The ramp is linear, and CWSA is divided by the weight of all samples. The
    area is defined by abstain. In contrast to the AUC-MCC of the paper (`auc_mcc`), the area
    includes all coverages.

    References
    ----------
    .. [1] Shahnazari et al. (2025), Trust, or don't predict: introducing the CWSA family for
       confidence-aware model evaluation, section 3.2 (CWSA), https://arxiv.org/abs/2505.18622

    Examples
    --------
    >>> from abstain.metrics import cwsa_area
    >>> round(cwsa_area([1.0, 0.9, 0.8, 0.3], [0, 0, 1, 0]), 4)
    0.2545
    """
    s = scored_probabilities(confidence, loss, weight)
    return value_with_warning(_compute_area(s, plus=False), "cwsa_area")


def cwsa_plus_area(
    confidence: AnyArray, loss: AnyArray, *, weight: AnyArray | None = None
) -> float:
    """Compute the area under CWSA+ over coverage.

    Answers: averaged over all coverages, how large is the mean product of correctness and
    confidence of the accepted samples?

    Parameters
    ----------
    confidence, loss, weight : array of shape (n,)
        See `cwsa`.

    Returns
    -------
    float
        Value in [0, 1]; **higher is better**.

    Raises
    ------
    ShapeError, DomainError
        See `cwsa`.

    Notes
    -----
    The curve has a point at each distinct confidence, as in `cwsa_area`, and is constant from the
    first point to coverage 0. CWSA+ is divided by the weight of the accepted samples. In contrast
    to the AUC-MCC of the paper (`auc_mcc_plus`), the area includes all coverages. The function
    sorts the samples once.

    References
    ----------
    .. [1] Shahnazari et al. (2025), Trust, or don't predict: introducing the CWSA family for
       confidence-aware model evaluation, section 3.3 (CWSA+), https://arxiv.org/abs/2505.18622

    Examples
    --------
    >>> from abstain.metrics import cwsa_plus_area
    >>> round(cwsa_plus_area([1.0, 0.9, 0.8, 0.3], [0, 0, 1, 0]), 4)
    0.683
    """
    s = scored_probabilities(confidence, loss, weight)
    return value_with_warning(_compute_area(s, plus=True), "cwsa_plus_area")


def _compute_area(s: Scored, *, plus: bool) -> MetricValue:
    """Compute the trapezoid area over coverage, with a point at each distinct confidence."""
    xp = s.xp
    loss_factor = _loss_factor(plus=plus)
    area = 0.0
    weighted_distance = 0.0
    last_value = None
    for block in s.probability_vertices():
        distance_to_one = 1.0 - as_double(block.confidence)
        # At the threshold c, a sample of confidence c_i has the weight 1 - (1 - c_i)/(1 - c). Only
        # the first group can have c = 1, and the limit of its weight from below is 1.
        block_score = block.weight - loss_factor * block.loss
        deficit = xp.cumulative_sum(block_score * distance_to_one) + weighted_distance
        weighted_distance = deficit[-1]
        if not distance_to_one[0] > 0:
            distance_to_one = xp.concat((xp.ones_like(distance_to_one[:1]), distance_to_one[1:]))
        accepted_score = block.cumulative_weight - loss_factor * block.cumulative_loss
        score = accepted_score - deficit / distance_to_one
        value = score / (block.cumulative_weight if plus else s.total_weight)
        if last_value is None:
            # CWSA is 0 at coverage 0. CWSA+ is constant there.
            last_value = value[:1] * float(plus)
        left_value = xp.concat((last_value, value[:-1]))
        area = area + xp.sum(block.weight * (value + left_value))
        last_value = value[-1:]
    return MetricValue(as_scalar(area) / (2.0 * s.total_weight))


def _loss_factor(*, plus: bool) -> float:
    """Return the factor f of the score 1 - f x loss of a sample, for CWSA or CWSA+."""
    return 1.0 if plus else 2.0


def _influence(s: Scored, *, plus: bool) -> FloatArray:
    """Return the influence of each sample on the area under CWSA or CWSA+ over coverage."""
    groups = s.probability_groups
    loss_factor = _loss_factor(plus=plus)
    distance_to_one = 1.0 - groups.confidence.astype(np.float64)
    inverse_distance = np.zeros_like(distance_to_one)
    np.divide(1.0, distance_to_one, out=inverse_distance, where=distance_to_one > 0)
    score = groups.weight - loss_factor * groups.loss
    accepted_score = np.cumsum(score) - np.cumsum(score * distance_to_one) * inverse_distance
    if plus:
        divisor = groups.cumulative_weight
        area_weight = vertex_area_weights(groups)
    else:
        divisor = np.full_like(score, groups.total_weight)
        area_weight = vertex_area_weights_from_origin(groups)
    value = accepted_score / divisor
    # Derivatives of the area with respect to the positions and the scores of the groups.
    on_position = trapezoid_derivatives(value, is_flat_before_first=plus) / groups.total_weight
    if plus:
        on_position = on_position - area_weight * value / divisor
    on_accepted_score = area_weight / divisor
    on_score = tail_sums(on_accepted_score) - distance_to_one * tail_sums(
        on_accepted_score * inverse_distance
    )
    gradient = Gradient(tail_sums(on_position) + on_score, -loss_factor * on_score)
    return gradient.influence(groups, s.probability_group_index, s.loss)


#: The thresholds in the tables and the code of the paper.
THRESHOLDS: Final = np.linspace(0.5, 0.99, 20)

#: Minimum number of accepted samples at the last threshold for an interval of the AUC-MCC of CWSA+.
#: With fewer samples, the threshold may accept no sample in other data and is then omitted.
_MIN_ACCEPTED: Final = 10


def auc_mcc(confidence: AnyArray, loss: AnyArray, *, weight: AnyArray | None = None) -> float:
    """Compute the AUC-MCC of CWSA, the area under CWSA over coverage as defined in the paper.

    Answers: which single number does the paper compute from its sweep of CWSA?

    Parameters
    ----------
    confidence, loss, weight : array of shape (n,)
        See `cwsa`.

    Returns
    -------
    float
        Value in [-0.5, 0.5]; **higher is better**. The value is 0 if all 20 thresholds accept the
        same samples.

    Raises
    ------
    ShapeError, DomainError
        See `cwsa`.

    Notes
    -----
    The value is the trapezoid area between the coverages of 20 evenly spaced thresholds from 0.5 to
    0.99. Other coverages are excluded, so the value is 0 for a model that is correct with
    confidence 1 on every sample. The function `cwsa_area` includes all coverages. For other
    thresholds, use `CwsaSweep.auc_mcc`. The ramp is linear, and CWSA is divided by the weight of
    all samples.

    References
    ----------
    .. [1] Shahnazari et al. (2025), sections 4.3 and A.4 (AUC-MCC),
       https://arxiv.org/abs/2505.18622

    Examples
    --------
    >>> from abstain.metrics import auc_mcc
    >>> round(auc_mcc([1.0, 0.9, 0.8, 0.6], [0, 0, 1, 0]), 4)
    0.2374
    """
    s = scored_probabilities(confidence, loss, weight)
    return value_with_warning(_compute_auc_mcc(s, plus=False), "auc_mcc")


def auc_mcc_plus(confidence: AnyArray, loss: AnyArray, *, weight: AnyArray | None = None) -> float:
    """Compute the AUC-MCC of CWSA+, the area under CWSA+ over coverage as defined in the paper.

    Answers: which single number does the paper compute from its sweep of CWSA+?

    Parameters
    ----------
    confidence, loss, weight : array of shape (n,)
        See `auc_mcc`.

    Returns
    -------
    float
        Value in [0, 1]; **higher is better**. The value is 0 if all 20 thresholds accept the same
        samples.

    Raises
    ------
    ShapeError, DomainError
        See `auc_mcc`.

    Notes
    -----
    The thresholds are those of `auc_mcc`. CWSA+ is divided by the weight of the accepted samples.
    The function omits thresholds without accepted samples. If the threshold 0.99 accepts fewer than
    10 samples, the value has no analytic interval.

    References
    ----------
    .. [1] Shahnazari et al. (2025), sections 4.3 and A.4 (AUC-MCC),
       https://arxiv.org/abs/2505.18622

    Examples
    --------
    >>> from abstain.metrics import auc_mcc_plus
    >>> round(auc_mcc_plus([1.0, 0.9, 0.8, 0.6], [0, 0, 1, 0]), 4)
    0.4806
    """
    s = scored_probabilities(confidence, loss, weight)
    return value_with_warning(_compute_auc_mcc(s, plus=True), "auc_mcc_plus")


def _compute_auc_mcc(s: Scored, *, plus: bool) -> MetricValue:
    """Compute the area under CWSA or CWSA+ between the coverages of the thresholds of the paper."""
    sums_by_threshold = _sums_where_defined(s, plus=plus)
    widths = _trapezoid_widths(_coverages(sums_by_threshold)).tolist()
    # The loop adds scalars of the input library, so that gradients reach confidences and losses.
    area: Scalar = 0.0
    for width, sums in zip(widths, sums_by_threshold, strict=True):
        area = area + width * sums.cwsa(plus=plus).value
    return MetricValue(area)


def _auc_mcc_influence(s: Scored, *, plus: bool) -> FloatArray:
    """Return the influence of each sample on the AUC-MCC of CWSA or CWSA+.

    The area A is a function of the coverage C_k and the mean score N_k at each threshold t_k. For
    each threshold that accepts a sample, the sample adds dA/dC_k + dA/dN_k (p - t_k)/(1 - t_k)
    score.
    """
    sums_by_threshold = _sums_where_defined(s, plus=plus)
    if not sums_by_threshold:
        return np.zeros(s.n_rows)
    thresholds = THRESHOLDS[: len(sums_by_threshold)]
    coverage = _coverages(sums_by_threshold)
    value = np.array([sums.cwsa(plus=plus).value for sums in sums_by_threshold])
    coverage_derivative = np.diff(np.pad((value[1:] + value[:-1]) / 2, 1))
    score_derivative = _trapezoid_widths(coverage)
    if plus:
        # CWSA+ is N_k/C_k, and CWSA is N_k.
        coverage_derivative = coverage_derivative - score_derivative * value / coverage
        score_derivative = score_derivative / coverage
    per_probability = score_derivative / (1 - thresholds)
    # Entry j of these arrays is the sum over the first j thresholds.
    coverage_sums = np.append(0.0, np.cumsum(coverage_derivative))
    slope_sums = np.append(0.0, np.cumsum(per_probability))
    intercept_sums = np.append(0.0, np.cumsum(per_probability * thresholds))
    probability = s.probability_or_confidence
    n_accepting = np.searchsorted(thresholds.astype(probability.dtype), probability, side="right")
    score = 1.0 - _loss_factor(plus=plus) * s.loss
    slope = slope_sums[n_accepting]
    ramp_sums = slope * probability.astype(np.float64) - intercept_sums[n_accepting]
    return mean_influence(s, coverage_sums[n_accepting] + ramp_sums * score)


def _reason_few_accepted(s: Scored) -> str:
    """Return the reason why the AUC-MCC of CWSA+ has no valid interval, or an empty string."""
    threshold = THRESHOLDS[-1]
    sums = s.cached(_sums_at_thresholds)[-1]
    if sums.count >= _MIN_ACCEPTED:
        return ""
    return (
        f"only {sums.count} samples are accepted at the threshold {threshold:g}; an interval needs "
        f"at least {_MIN_ACCEPTED}"
    )


def _sums_where_defined(s: Scored, *, plus: bool) -> list[AcceptedSums]:
    """Return the sums at those thresholds of the paper at which CWSA or CWSA+ is defined.

    CWSA+ is undefined at thresholds that accept no sample.
    """
    sums_by_threshold = s.cached(_sums_at_thresholds)
    if not plus:
        return sums_by_threshold
    return [sums for sums in sums_by_threshold if sums.count]


def _sums_at_thresholds(s: Scored) -> list[AcceptedSums]:
    return accepted_sums_at_thresholds(s, THRESHOLDS, RAMPS["linear"])


def _coverages(sums_by_threshold: list[AcceptedSums]) -> FloatArray:
    return np.array([sums.weight / sums.total for sums in sums_by_threshold])


def _trapezoid_widths(coverage: FloatArray) -> FloatArray:
    """Return the weight of each value in the trapezoid area over decreasing coverages."""
    if not coverage.size:
        return coverage
    padded = np.pad(coverage, 1, mode="edge")
    return (padded[:-2] - padded[2:]) / 2


def _area_measurement(
    compute: Callable[..., MetricValue], influence: Callable[..., FloatArray], *, plus: bool
) -> Measurement:
    """Return the measurement of an area under CWSA or CWSA+ for the catalogue of metrics."""
    return Measurement(
        compute=partial(compute, plus=plus),
        low=0.0 if plus else -0.5,
        high=1.0 if plus else 0.5,
        needs=NEEDS,
        rank_based=False,
        gradients=frozenset({"loss", "confidence"}),
        influence=accepts_group_rows(partial(influence, plus=plus)),
        n_failures=None,
    )


_AREA = Identity(
    name="cwsa_area",
    title="area under CWSA",
    family="cwsa",
    lower_is_better=False,
    meaning="Averaged over all coverages, the confidence-weighted successes minus failures "
    "are {value} of all samples.",
    source="defined by abstain; CWSA: " + SOURCE.format("3.2"),
    convention="linear ramp, divided by the number of samples",
    function="cwsa_area(confidence, loss)",
)
_PLUS_AREA = replace(
    _AREA,
    name="cwsa_plus_area",
    title="area under CWSA+",
    meaning="Averaged over all coverages, the mean confidence-weighted correctness of the "
    "accepted samples is {value}.",
    source="defined by abstain; CWSA+: " + SOURCE.format("3.3"),
    convention="linear ramp, divided by the number of accepted samples",
    function="cwsa_plus_area(confidence, loss)",
)
_AUC_MCC = replace(
    _AREA,
    name="auc_mcc",
    title="AUC-MCC of CWSA",
    meaning="The area under CWSA between the coverages at thresholds of 0.5 and 0.99 is {value}.",
    source=SOURCE.format("4.3, AUC-MCC"),
    convention="20 thresholds from 0.5 to 0.99, CWSA divided by the number of samples",
    function="auc_mcc(confidence, loss)",
)
_AUC_MCC_PLUS = replace(
    _AUC_MCC,
    name="auc_mcc_plus",
    title="AUC-MCC of CWSA+",
    meaning="The area under CWSA+ between the coverages at thresholds of 0.5 and 0.99 is {value}.",
    convention="20 thresholds from 0.5 to 0.99, CWSA+ divided by the number of accepted samples",
    function="auc_mcc_plus(confidence, loss)",
)

ENTRIES = (
    Metric(_AREA, _area_measurement(_compute_area, _influence, plus=False)),
    Metric(_PLUS_AREA, _area_measurement(_compute_area, _influence, plus=True)),
    Metric(_AUC_MCC, _area_measurement(_compute_auc_mcc, _auc_mcc_influence, plus=False)),
    Metric(
        _AUC_MCC_PLUS,
        replace(
            _area_measurement(_compute_auc_mcc, _auc_mcc_influence, plus=True),
            unreliable_reason=_reason_few_accepted,
        ),
    ),
)
