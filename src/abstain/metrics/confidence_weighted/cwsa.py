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
from abstain._foundation.tie_groups import n_accepted_groups
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
    """Validate the arguments of a public function, which must lie in [0, 1]."""
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
    """Return the ramp with this name, or the custom ramp."""
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

    def cwsa(self, normalize: str = "", *, plus: bool = False) -> MetricValue:
        """Return CWSA or CWSA+, normalized as in the published tables by default."""
        score = self.weighted_successes
        if not plus:
            score = score - self.weighted_failures
        published = "accepted" if plus else "all"
        if (normalize or published) == "all":
            return MetricValue(score / self.total, self.count)
        if self.count == 0:
            return undefined("no sample reaches the threshold")
        return MetricValue(score / self.weight, self.count)


def accepted_sums(s: Scored, threshold: float, ramp: Ramp) -> AcceptedSums:
    """Compute the sums over the samples accepted at a threshold in one pass without a sort."""
    p = s.probability_or_confidence
    if s.precomputed_value_groups is not None:
        groups = s.precomputed_value_groups
        accepted = slice(int(n_accepted_groups(groups, threshold)))
        count = int(groups.xp.sum(groups.count[accepted]))
        group_arrays = groups.confidence[accepted], groups.weight[accepted], groups.loss[accepted]
        sums = _sum_accepted(*group_arrays, threshold, ramp)
        return AcceptedSums(groups.total_weight, count, *sums)
    if not is_numpy(p) or ramp not in RAMPS.values():
        # A custom ramp is called only once, with all accepted samples.
        probability, weight, loss = _select_accepted(s, threshold)
        sums = _sum_accepted(probability, weight, loss, threshold, ramp)
        return AcceptedSums(s.total_weight, int(loss.shape[0]), *sums)
    block_sums, count = np.zeros(4), 0
    for start in range(0, s.n_rows, _BLOCK):
        rows = slice(start, start + _BLOCK)
        is_accepted = p[rows] >= p.dtype.type(threshold)
        # Rejected samples get weight 0, because copying the accepted samples would be slower.
        if s.weight is None:
            weight = is_accepted.astype(np.float64)
        else:
            is_accepted &= s.weight[rows] > 0
            weight = is_accepted * s.weight[rows]
        block_sums += _sum_accepted(p[rows], weight, weight * s.loss[rows], threshold, ramp)
        count += int(np.count_nonzero(is_accepted))
    return AcceptedSums(s.total_weight, count, *block_sums.tolist())


def _select_accepted(s: Scored, threshold: float) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return the probability, weight and weight x loss of each accepted sample.

    Tied samples are not grouped, because each sample has a gradient.
    """
    p, loss = s.probability_or_confidence, as_double(s.loss)
    values = without_gradient(p)
    is_accepted = values >= s.xp.astype(as_double_like(threshold, values), values.dtype)
    if s.weight is None:
        loss = loss[is_accepted]
        return p[is_accepted], s.xp.ones_like(loss), loss
    is_accepted = is_accepted & (s.weight > 0)
    weight = s.weight[is_accepted]
    return p[is_accepted], weight, weight * loss[is_accepted]


def _sum_accepted(
    p: AnyArray, weight: AnyArray, loss: AnyArray, threshold: float, ramp: Ramp
) -> tuple[Scalar, Scalar, Scalar, float]:
    """Return the four sums of `AcceptedSums`, where `loss` is weight x loss."""
    above = as_double(p) - threshold
    # The threshold 0.9 accepts the float32 number 0.9, although this number is slightly smaller.
    above = value_with_gradient(above, clip_negative(without_gradient(above)))
    ramp_values = apply_ramp(ramp, above / (1.0 - threshold))
    sum_values, successes = namespace(above).sum, weight - loss
    return (
        as_scalar(sum_values(ramp_values * successes)),
        as_scalar(sum_values(ramp_values * loss)),
        as_scalar(sum_values(successes)),
        float(sum_values(weight)),
    )


def contributions_at_threshold(s: Scored, threshold: float, *, plus: bool) -> AnyArray:
    """Return the contribution of each sample to CWSA or CWSA+, normalized as in the paper.

    The ramp is linear. If CWSA+ is undefined, the contributions are NaN, with an
    `UndefinedMetricWarning`.
    """
    check_unit_interval(s)
    xp, p, loss = s.xp, without_gradient(s.probability_or_confidence), as_double(s.loss)
    is_accepted = p >= xp.astype(as_double_like(threshold, p), p.dtype)
    weight = xp.astype(is_accepted, loss.dtype) * (1.0 if s.weight is None else s.weight)
    ramp_values = clip_negative(as_double(p) - threshold) / (1.0 - threshold)
    total = float(xp.sum(weight)) if plus else s.total_weight
    if total == 0:
        msg = "contributions to CWSA+ are undefined: no sample reaches the threshold"
        warnings.warn(msg, UndefinedMetricWarning, stacklevel=4)
        return xp.full_like(loss, float("nan"))
    # 0.0 is added because a failure at the threshold would contribute -0.0.
    return weight * ramp_values * (1.0 - (1.0 if plus else 2.0) * loss) / total + 0.0


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


_RAMP_POWERS = (("step", 0), ("linear", 1), ("quadratic", 2))


def accepted_sums_at_thresholds(
    s: Scored, thresholds: FloatArray, ramp: Ramp
) -> list[AcceptedSums]:
    """Return `accepted_sums` at each threshold, computed in one pass for polynomial ramps."""
    power = next((power for name, power in _RAMP_POWERS if ramp is RAMPS[name]), None)
    p = s.probability_or_confidence
    can_share_pass = power is not None and is_numpy(p) and s.precomputed_value_groups is None
    if power is None or not can_share_pass or not thresholds.size:
        return [accepted_sums(s, float(t), ramp) for t in thresholds]
    thresholds_in_dtype = thresholds.astype(p.dtype)
    # A sample is accepted in the precision of the confidences, but its ramp is positive only above
    # the exact threshold. `ramp_starts` contains the smallest floats at or above the exact
    # thresholds.
    next_floats = np.nextafter(thresholds_in_dtype, p.dtype.type(2))
    is_above = thresholds_in_dtype > thresholds
    ramp_starts = np.where(is_above, thresholds_in_dtype, next_floats)
    edges = np.unique(np.concatenate((thresholds_in_dtype, ramp_starts)))
    count, moments = _moments_above(s, edges, power)
    accepted_edge = np.searchsorted(edges, thresholds_in_dtype)
    ramp_edge = np.searchsorted(edges, ramp_starts) if power else accepted_edge
    # The binomial theorem expands (confidence - threshold)^power around the edge.
    offset = edges[ramp_edge] - thresholds
    ramp_sums = sum(
        comb(power, k) * moments[:, k, ramp_edge] * offset ** (power - k) for k in range(power + 1)
    )
    successes, failures = moments[:, 0, accepted_edge]
    sums = np.stack((*(ramp_sums / (1.0 - thresholds) ** power), successes, successes + failures))
    counts = count[accepted_edge]
    return [
        AcceptedSums(s.total_weight, int(n_accepted), *sums_at_threshold)
        for sums_at_threshold, n_accepted in zip(sums.T.tolist(), counts, strict=True)
    ]


def _moments_above(s: Scored, edges: Array, power: int) -> tuple[IntArray, FloatArray]:
    """Return the number of samples at or above each edge, (t,), and their moments.

    The moments have the shape (2, power + 1, t). They are sums of (confidence - edge)^m over
    successes and over failures for m = 0, ..., power.
    """
    cells = BinCells(edges, "right", s.loss.dtype.kind == "b")
    blocks = [
        _moments_in_cells(s, slice(start, start + BLOCK), cells, power)
        for start in range(0, s.n_rows, BLOCK)
    ]
    # The first cell, below all edges, is dropped.
    count = np.sum([block[0] for block in blocks], axis=0)[1:]
    sums = np.sum([block[1] for block in blocks], axis=0)[..., 1:]
    width = np.diff(edges.astype(np.float64))
    for m in range(power + 1):
        for k in range(m):
            sums[:, m, :-1] += comb(m, k) * sums[:, k, 1:] * width ** (m - k)
        sums[:, m] = sums[:, m, ::-1].cumsum(axis=1)[:, ::-1]
    return count[::-1].cumsum()[::-1], sums


def _moments_in_cells(
    s: Scored, rows: slice, cells: BinCells, power: int
) -> tuple[IntArray, FloatArray]:
    """Return the number of samples and the moments in each cell.

    The first cell is below all edges.
    """
    p, loss = s.probability_or_confidence[rows], s.loss[rows]
    weight = None if s.weight is None else s.weight[rows]
    position, index = cells.bin_and_cell_index(p, loss)
    lower = np.append(0.0, cells.edges.astype(np.float64))
    distance = p - lower.take(position) if power else p
    if cells.has_boolean_loss:
        factors = [weight]
    else:
        failures = loss.astype(np.float64) if weight is None else loss * weight
        factors = [(1.0 if weight is None else weight) - failures, failures]
    sums = np.empty((2, power + 1, cells.n_bins))
    for m in range(power + 1):
        sums[:, m] = np.concatenate([cells.sum_by_cell(index, factor) for factor in factors])
        if m < power:
            factors = [distance if x is None else x * distance for x in factors]
    has_weight = None if weight is None else weight > 0
    return cells.sum_by_cell(index, has_weight).sum(axis=0).astype(np.int64), sums


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
        In [0, 1], interpreted as a probability. Samples with confidence >= threshold are accepted.
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
        Frequency weights. A sample with an integer weight m counts as m samples.

    Returns
    -------
    float
        In [-1, 1]; **higher is better**. If no sample is accepted, the value is 0 for "all". For
        "accepted", the value is then NaN, and the function warns with an `UndefinedMetricWarning`.

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
    The equation of the paper divides by the number of accepted samples. The tables and the code of
    the paper divide CWSA by the number of all samples, and CWSA+ by the number of accepted samples.
    The defaults reproduce the tables. A monotone transformation of the confidence changes the
    value, but ties do not. The cost is one pass over the samples.

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
        As in `cwsa`. A sample contributes with the factor 1 - loss.
    threshold : float
        In [0, 1).
    normalize : {"all", "accepted"}, default="accepted"
        Whether to divide by the weight of all samples or by that of the accepted samples.
    ramp : {"linear", "quadratic", "sqrt", "step"} or callable, default="linear"
        As in `cwsa`.
    weight : array of shape (n,), optional
        Frequency weights. A sample with an integer weight m counts as m samples.

    Returns
    -------
    float
        In [0, 1]; **higher is better**. If no sample is accepted, the value is 0 for "all". For
        "accepted", the value is then NaN, and the function warns with an `UndefinedMetricWarning`.

    Raises
    ------
    ShapeError, DomainError, InputError
        As in `cwsa`.

    Notes
    -----
    The default divides by the number of accepted samples, as in the tables of the paper. With the
    step ramp, the value is the selective accuracy. Ties do not change the value. The cost is one
    pass over the samples.

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
    """Return the influence on CWSA or CWSA+ at a threshold for the linear ramp."""
    groups = s.probability_groups
    is_accepted = (s.probability_group_index < int(n_accepted_groups(groups, threshold))) & (
        sample_weights(s) > 0
    )
    p = np.zeros(s.n_rows) if s.probability is None else s.probability.astype(np.float64)
    ramp_values = is_accepted * np.maximum(p - threshold, 0.0) / (1.0 - threshold)
    if not plus:
        return mean_influence(s, ramp_values * (1.0 - 2.0 * s.loss))
    accepted = float(sample_weights(s)[is_accepted].sum())
    contribution = ramp_values * (1.0 - s.loss)
    mean = float((sample_weights(s) * contribution).sum()) / accepted
    return np.asarray(is_accepted * (contribution - mean) * (s.total_weight / accepted))


def _limits(bins: NonemptyBins, threshold: float, *, plus: bool) -> Limits:
    """Return the limits of CWSA or CWSA+ for binned samples.

    At a limit, all successes of a bin are at one edge of the bin, and all failures are at the other
    edge. If a bin contains the threshold, the denominator of CWSA+ is unknown.
    """
    low_ramp = np.maximum(bins.min_confidence - threshold, 0.0) / (1.0 - threshold)
    high_ramp = np.maximum(bins.max_confidence - threshold, 0.0) / (1.0 - threshold)
    successes = np.maximum(bins.weight - bins.loss, 0.0)
    if not plus:
        low = float(np.sum(successes * low_ramp - bins.loss * high_ramp))
        high = float(np.sum(successes * high_ramp - bins.loss * low_ramp))
        return low / bins.total, high / bins.total
    threshold_in_precision = float(np.dtype(f"f{bins.precision // 8}").type(threshold))
    min_weight = float(bins.weight[bins.min_confidence >= threshold_in_precision].sum())
    max_weight = float(bins.weight[bins.max_confidence >= threshold_in_precision].sum())
    low = float(np.sum(successes * low_ramp)) / max_weight if max_weight else 0.0
    high = float(np.sum(successes * high_ramp)) / min_weight if min_weight else 1.0
    return low, min(1.0, high)


def cwsa_entry(threshold: float, *, plus: bool = False) -> Metric:
    """Return the entry of CWSA or CWSA+ at a threshold in [0, 1).

    The ramp is linear, and the normalization is that of the published tables.
    """
    threshold = check_threshold(threshold)

    def compute(s: Scored) -> MetricValue:
        return accepted_sums(s, threshold, RAMPS["linear"]).cwsa(plus=plus)

    name = "cwsa_plus" if plus else "cwsa"
    description = "successes" if plus else "successes minus failures"
    population = "accepted samples" if plus else "all samples"
    return Metric(
        Identity(
            name=f"{name}@{threshold:.12g}",
            title=f"CWSA{'+' if plus else ''} at {threshold:.12g}",
            family="cwsa",
            lower_is_better=False,
            meaning=(
                f"At the threshold {threshold:.12g}, the confidence-weighted {description} are "
                f"{{value}} of the {'accepted ' if plus else ''}samples."
            ),
            source=SOURCE.format("3.3" if plus else "3.2"),
            convention=f"linear ramp, divided by the number of {population}",
            function=f"{name}(confidence, loss, threshold={threshold:g})",
        ),
        Measurement(
            compute=BatchableComputation(compute, _compute_at_thresholds, (threshold, plus)),
            low=0.0 if plus else -1.0,
            needs=NEEDS,
            rank_based=False,
            gradients=frozenset({"loss", "confidence"}),
            contributions=partial(contributions_at_threshold, threshold=threshold, plus=plus),
            influence=accepts_group_rows(partial(_influence, threshold=threshold, plus=plus)),
            n_failures=None,
            # The upper edges of bins overstate the confidence of successes, so the midpoint is
            # closer.
            binned=BinnedLimits(
                partial(_limits, threshold=threshold, plus=plus), use_midpoint=True
            ),
        ),
    )


#: Maximum number of thresholds for which separate passes are as fast as one joint pass.
_MAX_SEPARATE_PASSES = 2


def _compute_at_thresholds(
    s: Scored, parameters: Sequence[tuple[float, bool]]
) -> list[MetricValue]:
    """Compute CWSA and CWSA+ at several thresholds from the same sums."""
    thresholds = sorted({threshold for threshold, _ in parameters})
    ramp = RAMPS["linear"]
    if len(thresholds) <= _MAX_SEPARATE_PASSES:
        sums_by_threshold = [accepted_sums(s, threshold, ramp) for threshold in thresholds]
    else:
        sums_by_threshold = accepted_sums_at_thresholds(s, np.array(thresholds), ramp)
    sums = dict(zip(thresholds, sums_by_threshold, strict=True))
    return [sums[threshold].cwsa(plus=plus) for threshold, plus in parameters]


def _make_metric(_: str, threshold: str, *, plus: bool) -> Metric | None:
    return cwsa_entry(float(threshold), plus=plus) if float(threshold) < 1 else None


FAMILIES = (
    Family("cwsa@{}", partial(_make_metric, plus=False), ("0.8",)),
    Family("cwsa_plus@{}", partial(_make_metric, plus=True), ("0.8",)),
)

ENTRIES = tuple(cwsa_entry(at, plus=plus) for plus in (False, True) for at in (0.5, 0.9))
