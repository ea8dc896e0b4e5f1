"""CWSA and CWSA+, which weight accepted successes and failures by their confidence."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import comb
from typing import Literal, TypeAlias

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import (
    as_double,
    as_double_like,
    as_scalar,
    is_numpy,
    namespace,
    value_with_gradient,
    without_gradient,
)
from abstain._foundation.scored import MetricValue, Scored, undefined, validate_samples
from abstain._foundation.tie_groups import TieGroups, n_accepted_groups
from abstain.curves.bin_sums import BLOCK, BinCells
from abstain.errors import DomainError, InputError, UndefinedMetricWarning
from abstain.metrics.binned import BinnedLimits, Limits, NonemptyBins
from abstain.metrics.entry import (
    BatchableComputation,
    Family,
    Identity,
    Measurement,
    Metric,
    Need,
    value_with_warning,
)
from abstain.metrics.influences import accepts_group_rows, mean_influence, sample_weights
from abstain.metrics.roc import clip_negative
from abstain.typing import AnyArray, Array, FloatArray, IntArray, Scalar

Normalize = Literal["all", "accepted"]
RampName = Literal["linear", "quadratic", "sqrt", "step"]
Ramp: TypeAlias = Callable[[FloatArray], AnyArray]

NORMALIZERS = ("all", "accepted")

RAMPS: dict[str, Ramp] = {
    "linear": lambda u: u,
    "quadratic": lambda u: u * u,
    "sqrt": lambda u: u**0.5,
    "step": lambda u: namespace(u).ones_like(u),
}

#: Number of samples that are summed at once, so that temporary arrays fit in the cache.
_BLOCK = 1 << 14

_HINT = "CWSA interprets the confidence as a probability; calibrate it, or use a rank metric."


def scored_probabilities(confidence: AnyArray, loss: AnyArray, weight: AnyArray | None) -> Scored:
    """Validate the arrays of a public function; confidences and losses must lie in [0, 1]."""
    s = validate_samples(confidence, loss, weight, uses_values=True)
    check_unit_interval(s)
    return s


def check_unit_interval(s: Scored) -> None:
    """Raise an error if a confidence or a loss lies outside [0, 1]."""
    checks.unit_interval(s.confidence, "confidence", hint=_HINT)
    checks.unit_interval(s.loss, "loss", hint="The correctness is 1 - loss.")


def check_threshold(x: float) -> float:
    """Return a threshold, or raise an error if the threshold is not in [0, 1)."""
    threshold = checks.number(x, "threshold")
    if not 0.0 <= threshold < 1.0:
        raise DomainError(
            f"`threshold` must lie in [0, 1); got {threshold!r}. The ramp has no width at 1."
        )
    return threshold


def get_ramp(x: RampName | Ramp) -> Ramp:
    """Return the ramp function with this name, or the custom ramp function."""
    if callable(x):
        return x
    if x not in RAMPS:
        raise InputError(
            f"`ramp` must be one of {', '.join(map(repr, RAMPS))} or a callable; got {x!r}"
        )
    return RAMPS[x]


@dataclass(frozen=True)
class AcceptedSums:
    """Sums over the accepted samples at a threshold."""

    #: Weight of all samples.
    total: float
    #: Number of accepted samples.
    count: int
    #: Sum of weight x ramp x (1 - loss).
    weighted_successes: Scalar
    #: Sum of weight x ramp x loss.
    weighted_failures: Scalar
    #: Sum of weight x (1 - loss).
    successes: Scalar
    #: Weight of the accepted samples.
    weight: float

    @property
    def accuracy(self) -> Scalar:
        """Mean of 1 - loss over the accepted samples, or NaN if no sample is accepted."""
        return self.successes / self.weight if self.count else float("nan")

    def cwsa(self, normalize: str = "", *, plus: bool = False) -> MetricValue:
        """Return CWSA or CWSA+, normalized as in the published tables by default."""
        score = self.weighted_successes
        if not plus:
            score = score - self.weighted_failures
        if not normalize:
            normalize = "accepted" if plus else "all"
        if normalize == "all":
            return MetricValue(score / self.total, self.count)
        if self.count == 0:
            return undefined("no sample reaches the threshold")
        return MetricValue(score / self.weight, self.count)


def accepted_sums(s: Scored, threshold: float, ramp: Ramp) -> AcceptedSums:
    """Compute the sums over the samples accepted at a threshold in one pass without a sort."""
    if s.precomputed_value_groups is not None:
        return _accepted_sums_of_groups(s.precomputed_value_groups, threshold, ramp)
    if is_numpy(s.probability_or_confidence) and ramp in RAMPS.values():
        return _accepted_sums_in_blocks(s, threshold, ramp)
    # A custom ramp is called only once, with all accepted samples.
    probability, weight, loss = _select_accepted(s, threshold)
    sums = _sum_accepted(probability, weight, loss, threshold, ramp)
    return AcceptedSums(s.total_weight, int(loss.shape[0]), *sums)


def _accepted_sums_of_groups(groups: TieGroups, threshold: float, ramp: Ramp) -> AcceptedSums:
    """Compute the sums over the tie groups that are accepted at a threshold."""
    accepted = slice(int(n_accepted_groups(groups, threshold)))
    count = int(groups.xp.sum(groups.count[accepted]))
    sums = _sum_accepted(
        groups.confidence[accepted], groups.weight[accepted], groups.loss[accepted], threshold, ramp
    )
    return AcceptedSums(groups.total_weight, count, *sums)


def _accepted_sums_in_blocks(s: Scored, threshold: float, ramp: Ramp) -> AcceptedSums:
    """Compute the sums over accepted samples in blocks that fit into the processor cache."""
    p = s.probability_or_confidence
    total_sums = np.zeros(4)
    count = 0
    for start in range(0, s.n_rows, _BLOCK):
        block = slice(start, start + _BLOCK)
        is_accepted = p[block] >= p.dtype.type(threshold)
        # Rejected samples get weight 0, because copying the accepted samples would be slower.
        if s.weight is None:
            weight = is_accepted.astype(np.float64)
        else:
            is_accepted &= s.weight[block] > 0
            weight = is_accepted * s.weight[block]
        total_sums += _sum_accepted(p[block], weight, weight * s.loss[block], threshold, ramp)
        count += int(np.count_nonzero(is_accepted))
    return AcceptedSums(s.total_weight, count, *total_sums.tolist())


def _select_accepted(s: Scored, threshold: float) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return the probability, weight and weight x loss of each accepted sample."""
    p = s.probability_or_confidence
    loss = as_double(s.loss)
    is_accepted = _reaches_threshold(without_gradient(p), threshold)
    if s.weight is None:
        accepted_loss = loss[is_accepted]
        return p[is_accepted], s.xp.ones_like(accepted_loss), accepted_loss
    is_accepted = is_accepted & (s.weight > 0)
    weight = s.weight[is_accepted]
    return p[is_accepted], weight, weight * loss[is_accepted]


def _reaches_threshold(p: AnyArray, threshold: float) -> AnyArray:
    """Return whether `p` is at least the threshold, which is rounded to the precision of `p`."""
    return p >= namespace(p).astype(as_double_like(threshold, p), p.dtype)


def _sum_accepted(
    p: AnyArray, weight: AnyArray, loss: AnyArray, threshold: float, ramp: Ramp
) -> tuple[Scalar, Scalar, Scalar, float]:
    """Return the last four fields of `AcceptedSums`.

    `loss` is weight x loss of each accepted sample.
    """
    above = as_double(p) - threshold
    # The threshold 0.9 accepts the float32 number 0.9, although this number is slightly smaller.
    above = value_with_gradient(above, clip_negative(without_gradient(above)))
    xp = namespace(above)
    ramp_values = apply_ramp(ramp, above / (1.0 - threshold))
    successes = weight - loss
    return (
        as_scalar(xp.sum(ramp_values * successes)),
        as_scalar(xp.sum(ramp_values * loss)),
        as_scalar(xp.sum(successes)),
        float(xp.sum(weight)),
    )


def contributions_at_threshold(s: Scored, threshold: float, *, plus: bool) -> AnyArray:
    """Return the contribution of each sample to CWSA or CWSA+ with the linear ramp.

    If CWSA+ is undefined, the contributions are NaN, with an `UndefinedMetricWarning`.
    """
    check_unit_interval(s)
    xp = s.xp
    p = without_gradient(s.probability_or_confidence)
    loss = as_double(s.loss)
    is_accepted = _reaches_threshold(p, threshold)
    weight = xp.astype(is_accepted, loss.dtype) * (1.0 if s.weight is None else s.weight)
    total = float(xp.sum(weight)) if plus else s.total_weight
    if total == 0:
        msg = "contributions to CWSA+ are undefined: no sample reaches the threshold"
        warnings.warn(msg, UndefinedMetricWarning, stacklevel=4)
        return xp.full_like(loss, float("nan"))
    ramp_values = clip_negative(as_double(p) - threshold) / (1.0 - threshold)
    score = 1.0 - (1.0 if plus else 2.0) * loss
    # 0.0 is added because a failure at the threshold would contribute -0.0.
    return weight * ramp_values * score / total + 0.0


def apply_ramp(ramp: Ramp, u: FloatArray) -> AnyArray:
    """Apply a ramp to confidences rescaled to [0, 1], and check the values of a custom ramp."""
    if ramp in RAMPS.values():
        return ramp(u)
    values = np.asarray(ramp(u), dtype=np.float64) if is_numpy(u) else as_double(ramp(u))
    if values.shape != u.shape:
        raise InputError(
            f"`ramp` must return one weight for each of the {u.shape[0]} values; got {values.shape}"
        )
    if u.shape[0]:
        checks.finite(values, "ramp(u)")
        checks.unit_interval(values, "ramp(u)")
    return values


NEEDS = frozenset({Need.UNIT_CONFIDENCE, Need.UNIT_LOSS})
SOURCE = "Shahnazari et al. (2025), section {}, https://arxiv.org/abs/2505.18622"


def _ramp_power(ramp: Ramp) -> int | None:
    """Return the exponent of a ramp that is a power of u, or None for other ramps."""
    for name, power in (("step", 0), ("linear", 1), ("quadratic", 2)):
        if ramp is RAMPS[name]:
            return power
    return None


def accepted_sums_at_thresholds(
    s: Scored, thresholds: FloatArray, ramp: Ramp
) -> list[AcceptedSums]:
    """Return `accepted_sums` at each threshold, computed in one pass for polynomial ramps."""
    power = _ramp_power(ramp)
    p = s.probability_or_confidence
    can_share_pass = thresholds.size and is_numpy(p) and s.precomputed_value_groups is None
    if power is None or not can_share_pass:
        return [accepted_sums(s, float(threshold), ramp) for threshold in thresholds]
    # A sample is accepted in the precision of the confidences, but its ramp is positive only above
    # the exact threshold. `ramp_starts` contains the smallest floats above the exact thresholds.
    thresholds_in_dtype = thresholds.astype(p.dtype)
    next_floats = np.nextafter(thresholds_in_dtype, p.dtype.type(2))
    is_above = thresholds_in_dtype > thresholds
    ramp_starts = np.where(is_above, thresholds_in_dtype, next_floats)
    edges = np.unique(np.concatenate((thresholds_in_dtype, ramp_starts)))
    count, moments = _moments_above(s, edges, power)
    accepted_edge = np.searchsorted(edges, thresholds_in_dtype)
    ramp_edge = np.searchsorted(edges, ramp_starts) if power else accepted_edge
    # The binomial theorem expands (confidence - threshold)^power around the edge.
    offset = edges[ramp_edge] - thresholds
    ramp_sums = np.zeros((2, thresholds.size))
    for k in range(power + 1):
        ramp_sums += comb(power, k) * moments[:, k, ramp_edge] * offset ** (power - k)
    weighted_successes, weighted_failures = ramp_sums / (1.0 - thresholds) ** power
    successes, failures = moments[:, 0, accepted_edge]
    weight = successes + failures
    n_accepted = count[accepted_edge]
    return [
        AcceptedSums(
            total=s.total_weight,
            count=int(n_accepted[i]),
            weighted_successes=float(weighted_successes[i]),
            weighted_failures=float(weighted_failures[i]),
            successes=float(successes[i]),
            weight=float(weight[i]),
        )
        for i in range(thresholds.size)
    ]


def _moments_above(s: Scored, edges: Array, power: int) -> tuple[IntArray, FloatArray]:
    """Return the number of samples at or above each edge, shape (t,), and their moments.

    The moments are sums of (confidence - edge)^m over successes and over failures, for m = 0, ...,
    power. Their shape is (2, power + 1, t).
    """
    bins = BinCells(edges, "right", s.loss.dtype.kind == "b")
    counts_by_block = []
    moments_by_block = []
    for start in range(0, s.n_rows, BLOCK):
        block_count, block_moments = _moments_in_bins(s, slice(start, start + BLOCK), bins, power)
        counts_by_block.append(block_count)
        moments_by_block.append(block_moments)
    # The first bin, below all edges, is dropped.
    count = np.sum(counts_by_block, axis=0)[1:]
    moments = np.sum(moments_by_block, axis=0)[..., 1:]
    width = np.diff(edges.astype(np.float64))
    for m in range(power + 1):
        # Moments about the next edge are shifted to the lower edge by the binomial theorem.
        for k in range(m):
            moments[:, m, :-1] += comb(m, k) * moments[:, k, 1:] * width ** (m - k)
        moments[:, m] = moments[:, m, ::-1].cumsum(axis=1)[:, ::-1]
    return count[::-1].cumsum()[::-1], moments


def _moments_in_bins(
    s: Scored, rows: slice, bins: BinCells, power: int
) -> tuple[IntArray, FloatArray]:
    """Return the number of samples in each bin, and their moments about the lower bin edge."""
    p = s.probability_or_confidence[rows]
    loss = s.loss[rows]
    weight = None if s.weight is None else s.weight[rows]
    bin_index, cell_index = bins.bin_and_cell_index(p, loss)
    lower_edge = np.append(0.0, bins.edges.astype(np.float64))
    distance = p - lower_edge.take(bin_index) if power else p
    if bins.has_boolean_loss:
        # A cell contains either successes or failures.
        factors = [weight]
    else:
        failures = loss.astype(np.float64) if weight is None else loss * weight
        factors = [(1.0 if weight is None else weight) - failures, failures]
    moments = np.empty((2, power + 1, bins.n_bins))
    for m in range(power + 1):
        sums = [bins.sum_by_cell(cell_index, factor) for factor in factors]
        moments[:, m] = np.concatenate(sums)
        if m < power:
            factors = [distance if factor is None else factor * distance for factor in factors]
    has_weight = None if weight is None else weight > 0
    count = bins.sum_by_cell(cell_index, has_weight).sum(axis=0)
    return count.astype(np.int64), moments


def cwsa(
    confidence: AnyArray,
    loss: AnyArray,
    *,
    threshold: float,
    normalize: Normalize = "all",
    ramp: RampName | Ramp = "linear",
    weight: AnyArray | None = None,
) -> float:
    """Compute the confidence-weighted selective accuracy (CWSA).

    Answers: at this threshold, do confident successes outweigh confident failures?

    Parameters
    ----------
    confidence : array of shape (n,)
        Confidence in [0, 1], interpreted as the probability of a correct prediction. Samples with
        confidence >= threshold are accepted.
    loss : array of shape (n,)
        In [0, 1]. A sample contributes with the factor 1 - 2 loss, which is +1 for a success and -1
        for a failure.
    threshold : float
        In [0, 1).
    normalize : {"all", "accepted"}, default="all"
        Whether to divide by the weight of all samples or by that of the accepted samples.
    ramp : {"linear", "quadratic", "sqrt", "step"} or callable, default="linear"
        Weight of an accepted sample as a function of u = (confidence - threshold) / (1 -
        threshold). The weight is u for "linear", u^2 for "quadratic", the square root of u for
        "sqrt", and 1 for "step". A callable takes an array of u and returns weights in [0, 1].
    weight : array of shape (n,), optional
        Frequency weights. An integer weight m is equivalent to m copies of the sample.

    Returns
    -------
    float
        Value in [-1, 1]; **higher is better**. If no sample is accepted, the value is 0 for "all",
        and NaN with an `UndefinedMetricWarning` for "accepted".

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, a confidence or loss is outside [0, 1], `threshold` is
        outside [0, 1), or a weight is negative.
    InputError
        If `normalize` or `ramp` is not allowed.

    Notes
    -----
    The equation of the paper divides both metrics by the number of accepted samples. The tables and
    the code of the paper divide CWSA by the number of all samples, and CWSA+ by the number of
    accepted samples. The defaults reproduce the tables. A monotone transformation of the confidence
    changes the value, but ties do not. The running time is linear in the number of samples.

    References
    ----------
    .. [1] Shahnazari et al. (2025), Trust, or don't predict: introducing the CWSA family for
       confidence-aware model evaluation, section 3.2, https://arxiv.org/abs/2505.18622

    Examples
    --------
    >>> from abstain.metrics import cwsa
    >>> round(cwsa([1.0, 0.9, 0.8, 0.3], [0, 0, 1, 0], threshold=0.5), 4)
    0.3
    """
    s = scored_probabilities(confidence, loss, weight)
    divisor = checks.one_of(normalize, "normalize", NORMALIZERS)
    sums = accepted_sums(s, check_threshold(threshold), get_ramp(ramp))
    return value_with_warning(sums.cwsa(divisor), "cwsa")


def cwsa_plus(
    confidence: AnyArray,
    loss: AnyArray,
    *,
    threshold: float,
    normalize: Normalize = "accepted",
    ramp: RampName | Ramp = "linear",
    weight: AnyArray | None = None,
) -> float:
    """Compute CWSA+, which rewards confident successes and does not penalize failures.

    Answers: at this threshold, how large is the mean product of correctness and confidence of the
    accepted samples?

    Parameters
    ----------
    confidence, loss : array of shape (n,)
        See `cwsa`. A sample contributes with the factor 1 - loss.
    threshold : float
        In [0, 1).
    normalize : {"all", "accepted"}, default="accepted"
        Whether to divide by the weight of all samples or by that of the accepted samples.
    ramp : {"linear", "quadratic", "sqrt", "step"} or callable, default="linear"
        See `cwsa`.
    weight : array of shape (n,), optional
        Frequency weights. An integer weight m is equivalent to m copies of the sample.

    Returns
    -------
    float
        Value in [0, 1]; **higher is better**. If no sample is accepted, the value is 0 for "all",
        and NaN with an `UndefinedMetricWarning` for "accepted".

    Raises
    ------
    ShapeError, DomainError, InputError
        See `cwsa`.

    Notes
    -----
    The default divides by the number of accepted samples, as in the tables of the paper. With the
    step ramp, the value is the selective accuracy. Ties do not change the value. The running time
    is linear in the number of samples.

    References
    ----------
    .. [1] Shahnazari et al. (2025), Trust, or don't predict: introducing the CWSA family for
       confidence-aware model evaluation, section 3.3, https://arxiv.org/abs/2505.18622

    Examples
    --------
    >>> from abstain.metrics import cwsa_plus
    >>> round(cwsa_plus([1.0, 0.9, 0.8, 0.3], [0, 0, 1, 0], threshold=0.5), 4)
    0.6
    """
    s = scored_probabilities(confidence, loss, weight)
    divisor = checks.one_of(normalize, "normalize", NORMALIZERS)
    sums = accepted_sums(s, check_threshold(threshold), get_ramp(ramp))
    return value_with_warning(sums.cwsa(divisor, plus=True), "cwsa_plus")


def _influence(s: Scored, *, threshold: float, plus: bool) -> FloatArray:
    """Return the influence of each sample on CWSA or CWSA+ with the linear ramp."""
    weight = sample_weights(s)
    n_groups = int(n_accepted_groups(s.probability_groups, threshold))
    is_accepted = (s.probability_group_index < n_groups) & (weight > 0)
    p = np.zeros(s.n_rows) if s.probability is None else s.probability.astype(np.float64)
    ramp_values = is_accepted * np.maximum(p - threshold, 0.0) / (1.0 - threshold)
    if not plus:
        return mean_influence(s, ramp_values * (1.0 - 2.0 * s.loss))
    accepted_weight = float(weight[is_accepted].sum())
    contribution = ramp_values * (1.0 - s.loss)
    mean = float((weight * contribution).sum()) / accepted_weight
    return np.asarray(is_accepted * (contribution - mean) * (s.total_weight / accepted_weight))


def _limits(bins: NonemptyBins, threshold: float, *, plus: bool) -> Limits:
    """Return the limits of CWSA or CWSA+ for binned samples."""
    # At a limit of CWSA, all successes of a bin are at one edge and all failures at the other edge.
    low_ramp = np.maximum(bins.min_confidence - threshold, 0.0) / (1.0 - threshold)
    high_ramp = np.maximum(bins.max_confidence - threshold, 0.0) / (1.0 - threshold)
    successes = np.maximum(bins.weight - bins.loss, 0.0)
    if not plus:
        low_sum = float(np.sum(successes * low_ramp - bins.loss * high_ramp))
        high_sum = float(np.sum(successes * high_ramp - bins.loss * low_ramp))
        return low_sum / bins.total, high_sum / bins.total
    # If a bin contains the threshold, the accepted weight is unknown.
    threshold_in_precision = float(np.dtype(f"f{bins.precision // 8}").type(threshold))
    min_weight = float(bins.weight[bins.min_confidence >= threshold_in_precision].sum())
    max_weight = float(bins.weight[bins.max_confidence >= threshold_in_precision].sum())
    low = float(np.sum(successes * low_ramp)) / max_weight if max_weight else 0.0
    high = float(np.sum(successes * high_ramp)) / min_weight if min_weight else 1.0
    return low, min(1.0, high)


def cwsa_entry(threshold: float, *, plus: bool = False) -> Metric:
    """Return the catalogue entry of CWSA or CWSA+ at a threshold in [0, 1)."""
    threshold = check_threshold(threshold)

    def compute(s: Scored) -> MetricValue:
        return accepted_sums(s, threshold, RAMPS["linear"]).cwsa(plus=plus)

    limits = partial(_limits, threshold=threshold, plus=plus)
    measurement = Measurement(
        compute=BatchableComputation(compute, _compute_at_thresholds, (threshold, plus)),
        low=0.0 if plus else -1.0,
        needs=NEEDS,
        rank_based=False,
        gradients=frozenset({"loss", "confidence"}),
        contributions=partial(contributions_at_threshold, threshold=threshold, plus=plus),
        influence=accepts_group_rows(partial(_influence, threshold=threshold, plus=plus)),
        n_failures=None,
        # The upper edges of bins overstate the confidence of successes, so the midpoint is closer.
        binned=BinnedLimits(limits, use_midpoint=True),
    )
    return Metric(_cwsa_identity(threshold, plus=plus), measurement)


def _cwsa_identity(threshold: float, *, plus: bool) -> Identity:
    """Return the names and descriptions of CWSA or CWSA+ at a threshold."""
    name = "cwsa_plus" if plus else "cwsa"
    description = "successes" if plus else "successes minus failures"
    return Identity(
        name=f"{name}@{threshold:.12g}",
        title=f"CWSA{'+' if plus else ''} at {threshold:.12g}",
        family="cwsa",
        lower_is_better=False,
        meaning=(
            f"At the threshold {threshold:.12g}, the confidence-weighted {description} are "
            f"{{value}} of the {'accepted ' if plus else ''}samples."
        ),
        source=SOURCE.format("3.3" if plus else "3.2"),
        convention=(
            f"linear ramp, divided by the number of {'accepted' if plus else 'all'} samples"
        ),
        function=f"{name}(confidence, loss, threshold={threshold:g})",
    )


#: Maximum number of thresholds for which separate passes are as fast as one joint pass.
_MAX_SEPARATE_PASSES = 2


def _compute_at_thresholds(
    s: Scored, parameters: Sequence[tuple[float, bool]]
) -> list[MetricValue]:
    """Compute CWSA and CWSA+ at several thresholds, with one set of sums for each threshold.

    `parameters` contains the threshold and the variant (True for CWSA+) of each metric.
    """
    thresholds = sorted({threshold for threshold, _ in parameters})
    ramp = RAMPS["linear"]
    if len(thresholds) <= _MAX_SEPARATE_PASSES:
        all_sums = [accepted_sums(s, threshold, ramp) for threshold in thresholds]
    else:
        all_sums = accepted_sums_at_thresholds(s, np.array(thresholds), ramp)
    sums_by_threshold = dict(zip(thresholds, all_sums, strict=True))
    return [sums_by_threshold[threshold].cwsa(plus=plus) for threshold, plus in parameters]


def _make_metric(_: str, threshold_text: str, *, plus: bool) -> Metric | None:
    """Return CWSA or CWSA+ at a threshold, or None if the threshold is not below 1."""
    threshold = float(threshold_text)
    return cwsa_entry(threshold, plus=plus) if threshold < 1 else None


FAMILIES = (
    Family("cwsa@{}", partial(_make_metric, plus=False), ("0.8",)),
    Family("cwsa_plus@{}", partial(_make_metric, plus=True), ("0.8",)),
)

ENTRIES = (
    cwsa_entry(0.5, plus=False),
    cwsa_entry(0.9, plus=False),
    cwsa_entry(0.5, plus=True),
    cwsa_entry(0.9, plus=True),
)
