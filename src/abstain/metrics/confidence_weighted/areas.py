"""Areas under CWSA and CWSA+ over all coverages, and the AUC-MCC of the paper."""

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
from abstain.typing import AnyArray, FloatArray, IntArray


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
            Trapezoid area between the smallest and the largest coverage of the thresholds. The
            function omits thresholds that accept no sample. The area is at most the difference of
            the two coverages, and it is 0 for a model with confidence 1 on all samples. Therefore
            do not compare models whose confidences have different distributions. The function
            `cwsa_area` includes all coverages.

        Raises
        ------
        InputError
            If `metric` is not one of these names.

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
        coverage = to_numpy(self.coverage, "coverage").astype(np.float64)
        value = to_numpy(getattr(self, column), column).astype(np.float64)
        order = np.argsort(coverage[is_defined := np.isfinite(value)], kind="stable")
        return float(trapezoid_area(value[is_defined][order], coverage[is_defined][order]))


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
        As in `cwsa`.
    thresholds : array of shape (t,), optional
        Values in [0, 1). The default is 20 evenly spaced thresholds from 0.5 to 0.99, as in the
        published tables.
    ramp : {"linear", "quadratic", "sqrt", "step"} or callable, default="linear"
        As in `cwsa`.
    weight : array of shape (n,), optional
        Frequency weights. A sample with an integer weight m counts as m samples.

    Returns
    -------
    CwsaSweep
        Arrays in the type of the input, with one entry for each threshold; **higher is better** for
        each metric.

    Raises
    ------
    ShapeError, DomainError, InputError
        As in `cwsa`.

    Notes
    -----
    The normalization is that of the published tables, which `cwsa` describes. At thresholds without
    accepted samples, the values are NaN, with one `UndefinedMetricWarning`. Ties do not change the
    values. The cost is one pass over the samples for the linear, quadratic and step ramps, and one
    pass for each threshold for other ramps.

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
    arrays = {f.name: as_array_like(getattr(sweep, f.name), reference) for f in fields(sweep)}
    return CwsaSweep(**arrays)


def sweep_thresholds(s: Scored, thresholds: FloatArray, ramp: Ramp = RAMPS["linear"]) -> CwsaSweep:
    """Compute the sweep over thresholds in [0, 1) of samples that meet the needs."""
    all_sums = accepted_sums_at_thresholds(s, thresholds, ramp)
    weight = np.array([sums.weight for sums in all_sums])
    accuracy = [sums.successes / sums.weight if sums.count else float("nan") for sums in all_sums]
    return CwsaSweep(
        threshold=thresholds,
        coverage=weight / s.total_weight,
        accepted=np.array([sums.count for sums in all_sums], dtype=np.int64),
        selective_accuracy=stack_scalars(accuracy),
        cwsa=stack_scalars([sums.cwsa().value for sums in all_sums]),
        cwsa_plus=stack_scalars([sums.cwsa(plus=True).value for sums in all_sums]),
    )


def _check_thresholds(thresholds: AnyArray) -> FloatArray:
    values = checks.finite(checks.vector(thresholds, "thresholds"), "thresholds")
    checks.reject_entries("thresholds", "must lie in [0, 1)", values, (values < 0) | (values >= 1))
    return values.astype(np.float64)


def cwsa_area(confidence: AnyArray, loss: AnyArray, *, weight: AnyArray | None = None) -> float:
    """Compute the area under CWSA over coverage.

    Answers: averaged over all coverages, do confident successes outweigh confident failures?

    Parameters
    ----------
    confidence, loss, weight : array of shape (n,)
        As in `cwsa`.

    Returns
    -------
    float
        In [-0.5, 0.5]; **higher is better**.

    Raises
    ------
    ShapeError, DomainError
        As in `cwsa`.

    Notes
    -----
    The curve has a vertex at each distinct confidence, which serves as threshold. The vertex of the
    confidence 1 is the limit from below. Straight lines connect the origin and the vertices, so the
    area needs no grid of thresholds. The area is defined by abstain. It differs from the AUC-MCC of
    the paper (`auc_mcc`), which includes only the coverages between the coverages of 20 thresholds.
    The ramp is linear, and CWSA is divided by the weight of all samples. Samples with equal
    confidence share a vertex. The cost is one sort.

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
        As in `cwsa`.

    Returns
    -------
    float
        In [0, 1]; **higher is better**.

    Raises
    ------
    ShapeError, DomainError
        As in `cwsa`.

    Notes
    -----
    The vertices are those of `cwsa_area`. CWSA+ is divided by the weight of the accepted samples,
    and the curve is constant from the first vertex to coverage 0. The area differs from the AUC-MCC
    of the paper (`auc_mcc_plus`). Samples with equal confidence share a vertex. The cost is one
    sort.

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
    """Compute the trapezoid area over coverage, with a vertex at each distinct confidence."""
    xp, factor = s.xp, 1.0 if plus else 2.0
    area, weighted_distance, last_value = 0.0, 0.0, None
    for block in s.probability_vertices():
        distance_to_one = 1.0 - as_double(block.confidence)
        # At the threshold c, a sample of confidence c_i has the weight 1 - (1 - c_i)/(1 - c). Only
        # the first group can have c = 1, and the limit of its weight from below is 1.
        block_score = block.weight - factor * block.loss
        deficit = xp.cumulative_sum(block_score * distance_to_one) + weighted_distance
        weighted_distance = deficit[-1]
        if not distance_to_one[0] > 0:
            distance_to_one = xp.concat((xp.ones_like(distance_to_one[:1]), distance_to_one[1:]))
        deficit = deficit / distance_to_one
        score = block.cumulative_weight - factor * block.cumulative_loss - deficit
        value = score / (block.cumulative_weight if plus else s.total_weight)
        # CWSA is 0 at coverage 0. CWSA+ is a mean over the accepted samples and is constant there.
        left_value = last_value if last_value is not None else value[:1] * float(plus)
        area = area + xp.sum(block.weight * (value + xp.concat((left_value, value[:-1]))))
        last_value = value[-1:]
    return MetricValue(as_scalar(area) / (2.0 * s.total_weight))


def _influence(s: Scored, *, plus: bool) -> FloatArray:
    """Return the influence on the area under CWSA or CWSA+ over coverage."""
    groups = s.probability_groups
    distance_to_one = 1.0 - groups.confidence.astype(np.float64)
    factor = 1.0 if plus else 2.0
    score = groups.weight - factor * groups.loss
    zeros = np.zeros_like(distance_to_one)
    inverse = np.divide(1.0, distance_to_one, out=zeros, where=distance_to_one > 0)
    accepted_score = np.cumsum(score) - np.cumsum(score * distance_to_one) * inverse
    divisor = groups.cumulative_weight if plus else np.full_like(score, groups.total_weight)
    value = accepted_score / divisor
    area = vertex_area_weights(groups) if plus else vertex_area_weights_from_origin(groups)
    on_position = trapezoid_derivatives(value, is_flat_before_first=plus) / groups.total_weight
    if plus:
        on_position = on_position - area * value / divisor
    on_score = tail_sums(area / divisor) - distance_to_one * tail_sums(area / divisor * inverse)
    gradient = Gradient(tail_sums(on_position) + on_score, -factor * on_score)
    return gradient.influence(groups, s.probability_group_index, s.loss)


#: The thresholds in the tables and the code of the paper.
THRESHOLDS: Final = np.linspace(0.5, 0.99, 20)

#: Minimum number of accepted samples at the last threshold for an interval of the area under CWSA+.
#: In other samples of the population, the threshold may accept no sample, and the sweep omits it.
_MIN_ACCEPTED: Final = 10


def auc_mcc(confidence: AnyArray, loss: AnyArray, *, weight: AnyArray | None = None) -> float:
    """Compute the AUC-MCC of CWSA, the area under CWSA over coverage as defined in the paper.

    Answers: which single number does the paper compute from its sweep of CWSA?

    Parameters
    ----------
    confidence, loss, weight : array of shape (n,)
        As in `cwsa`.

    Returns
    -------
    float
        In [-0.5, 0.5]; **higher is better**. The value is 0 if all 20 thresholds accept the same
        samples.

    Raises
    ------
    ShapeError, DomainError
        As in `cwsa`.

    Notes
    -----
    The value is the trapezoid area between the coverages of 20 evenly spaced thresholds from 0.5 to
    0.99. The area excludes coverages below the coverage of the last threshold and above the
    coverage of the first threshold. A model that is correct with confidence 1 on every sample
    therefore has the value 0. The function `cwsa_area` includes all coverages. For other
    thresholds, use `CwsaSweep.auc_mcc`. The ramp is linear, and CWSA is divided by the weight of
    all samples. The cost is one pass over the samples.

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
        As in `auc_mcc`.

    Returns
    -------
    float
        In [0, 1]; **higher is better**. The value is 0 if all 20 thresholds accept the same
        samples.

    Raises
    ------
    ShapeError, DomainError
        As in `auc_mcc`.

    Notes
    -----
    The thresholds are those of `auc_mcc`. CWSA+ is divided by the weight of the accepted samples.
    The function omits thresholds without accepted samples. A result has no analytic interval if the
    threshold 0.99 accepts fewer than 10 samples, because other samples of the population may omit
    this threshold. The cost is one pass over the samples.

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
    sums = _sums_where_defined(s, plus=plus)
    values = [at_threshold.cwsa(plus=plus).value for at_threshold in sums]
    widths = _trapezoid_widths(_coverages(sums)).tolist()
    # The sum uses scalars of the input library, so that gradients reach confidences and losses.
    return MetricValue(sum((width * v for width, v in zip(widths, values, strict=True)), 0.0))


def _auc_mcc_influence(s: Scored, *, plus: bool) -> FloatArray:
    """Compute the influence of each sample on the AUC-MCC.

    The area A depends on the coverages C_k and the mean scores N_k at the thresholds t_k. CWSA is
    N_k, and CWSA+ is N_k/C_k. A sample that is accepted at the first j thresholds adds dA/dC_k +
    dA/dN_k (p - t_k)/(1 - t_k) score for each of these thresholds.
    """
    sums = _sums_where_defined(s, plus=plus)
    if not sums:
        return np.zeros(s.n_rows)
    coverage, thresholds = _coverages(sums), THRESHOLDS[: len(sums)]
    value = np.array([at_threshold.cwsa(plus=plus).value for at_threshold in sums])
    # Derivatives of the area with respect to the coverage and the score at each threshold.
    coverage_derivative = np.diff(np.pad((value[1:] + value[:-1]) / 2, 1))
    score_derivative = _trapezoid_widths(coverage)
    if plus:
        coverage_derivative = coverage_derivative - score_derivative * value / coverage
        score_derivative = score_derivative / coverage
    per_probability = score_derivative / (1 - thresholds)
    # These arrays contain sums over the first j thresholds for j = 0, 1, ...
    constant = np.append(0.0, np.cumsum(coverage_derivative))
    slope = np.append(0.0, np.cumsum(per_probability))
    intercept = np.append(0.0, np.cumsum(per_probability * thresholds))
    probability = s.probability_or_confidence
    n_accepting = np.searchsorted(thresholds.astype(probability.dtype), probability, side="right")
    score = 1.0 - (1.0 if plus else 2.0) * s.loss
    ramps = slope[n_accepting] * probability.astype(np.float64) - intercept[n_accepting]
    return mean_influence(s, constant[n_accepting] + ramps * score)


def _reason_few_accepted(s: Scored) -> str:
    """Return the reason if CWSA+ at these thresholds has no valid interval, or ""."""
    threshold = THRESHOLDS[-1]
    sums = s.cached(_sums_at_thresholds)[-1]
    if sums.count >= _MIN_ACCEPTED:
        return ""
    return (
        f"only {sums.count} samples are accepted at the threshold {threshold:g}; an interval needs "
        f"at least {_MIN_ACCEPTED}"
    )


def _sums_where_defined(s: Scored, *, plus: bool) -> list[AcceptedSums]:
    """Return the sums at each threshold, or for CWSA+ at each threshold that accepts a sample."""
    all_sums = s.cached(_sums_at_thresholds)
    return [sums for sums in all_sums if sums.count] if plus else all_sums


def _sums_at_thresholds(s: Scored) -> list[AcceptedSums]:
    return accepted_sums_at_thresholds(s, THRESHOLDS, RAMPS["linear"])


def _coverages(sums: list[AcceptedSums]) -> FloatArray:
    return np.array([at_threshold.weight / at_threshold.total for at_threshold in sums])


def _trapezoid_widths(coverage: FloatArray) -> FloatArray:
    """Return the derivative of the area with respect to the value at each threshold."""
    padded = np.pad(coverage, 1, mode="edge") if coverage.size else coverage
    return (padded[:-2] - padded[2:]) / 2


def _area_measurement(
    compute: Callable[..., MetricValue], influence: Callable[..., FloatArray], *, plus: bool
) -> Measurement:
    """Return the measurement of an area over coverage under CWSA, or under CWSA+ with `plus`."""
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
