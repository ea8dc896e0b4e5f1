"""Confidence-weighted selective accuracy at a threshold: CWSA and CWSA+."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from abstain._foundation import checks
from abstain._foundation.measurement import Measured
from abstain._foundation.ranks import reached
from abstain._foundation.scored import Scored
from abstain.metrics.blocks import Binned, FilledBins, Limits
from abstain.metrics.confidence_weighted.moments import sums_at_each
from abstain.metrics.confidence_weighted.sums import (
    NEEDS,
    NORMALIZERS,
    RAMPS,
    SOURCE,
    Normalize,
    Ramp,
    RampName,
    Sums,
    checked,
    contributions_at,
    ramp_of,
    sums_at,
    threshold_of,
)
from abstain.metrics.entry import Family, Identity, Measurement, Metric, OneOfMany, value_of
from abstain.metrics.influences import of_kinds, of_mean, weights_of
from abstain.typing import AnyArray, FloatArray


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

    Answers: at this threshold, do the confident successes outweigh the confident failures?

    Parameters
    ----------
    confidence : array of shape (n,)
        In [0, 1], read as a probability; accept when confidence >= threshold.
    loss : array of shape (n,)
        In [0, 1]; a sample counts with sign 1 - 2 loss, so +1 for a success, -1 for a failure.
    threshold : float
        In [0, 1).
    normalize : {"all", "accepted"}, default="all"
        Divide by the weight of all samples, or by that of the accepted ones.
    ramp : {"linear", "quadratic", "sqrt", "step"} or callable, default="linear"
        Weight of an accepted sample as a function of u = (confidence - threshold) /
        (1 - threshold): u, u^2, the square root of u, or 1; or a function of an array of u that
        returns weights in [0, 1].
    weight : array of shape (n,), optional
        Frequency weights: an integer weight counts a sample that many times.

    Returns
    -------
    float
        In [-1, 1]; **higher is better**. With "all", 0 when nothing is accepted; with "accepted",
        NaN and an `UndefinedMetricWarning`.

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
    The paper's equation divides by the number accepted; its tables and its code divide CWSA by
    the number of all samples and CWSA+ by the number accepted. The defaults here reproduce the
    tables. A monotone transform of the confidence changes the value; ties do not matter. Cost:
    one pass.

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
    s = checked(confidence, loss, weight)
    by = checks.one_of(normalize, "normalize", NORMALIZERS)
    return value_of(sums_at(s, threshold_of(threshold), ramp_of(ramp)).cwsa(by), "cwsa")


def cwsa_plus(
    confidence: AnyArray,
    loss: AnyArray,
    *,
    threshold: float,
    normalize: Normalize = "accepted",
    ramp: RampName | Ramp = "linear",
    weight: AnyArray | None = None,
) -> float:
    """Compute CWSA+, which rewards confident successes and does not punish failures.

    Answers: at this threshold, how right and how confident are the accepted samples at once?

    Parameters
    ----------
    confidence, loss : array of shape (n,)
        As in `cwsa`; a sample counts with 1 - loss.
    threshold : float
        In [0, 1).
    normalize : {"all", "accepted"}, default="accepted"
        Divide by the weight of all samples, or by that of the accepted ones.
    ramp : {"linear", "quadratic", "sqrt", "step"} or callable, default="linear"
        As in `cwsa`.
    weight : array of shape (n,), optional
        Frequency weights: an integer weight counts a sample that many times.

    Returns
    -------
    float
        In [0, 1]; **higher is better**. NaN, with an `UndefinedMetricWarning`, when nothing is
        accepted; 0 then with "all".

    Raises
    ------
    ShapeError, DomainError, InputError
        As in `cwsa`.

    Notes
    -----
    The default divides by the number accepted, as the paper's tables do; see `cwsa`. With the
    step ramp it is the selective accuracy. Ties do not matter. Cost: one pass.

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
    s = checked(confidence, loss, weight)
    by = checks.one_of(normalize, "normalize", NORMALIZERS)
    return value_of(sums_at(s, threshold_of(threshold), ramp_of(ramp)).cwsa_plus(by), "cwsa_plus")


def _influence(s: Scored, *, threshold: float, plus: bool) -> FloatArray:
    """CWSA (over all samples) or CWSA+ (over the accepted) at a threshold, linear ramp."""
    groups = s.probability_groups
    inside = (s.probability_home < int(reached(groups, threshold))) & (weights_of(s) > 0)
    p = np.zeros(s.n) if s.probability is None else s.probability.astype(np.float64)
    worth = inside * np.maximum(p - threshold, 0.0) / (1.0 - threshold)
    if not plus:
        return of_mean(s, worth * (1.0 - 2.0 * s.loss))
    accepted = float(weights_of(s)[inside].sum())
    each = worth * (1.0 - s.loss)
    mean = float((weights_of(s) * each).sum()) / accepted
    out: FloatArray = inside * (each - mean) * (s.total / accepted)
    return out


def _cwsa_limits(blocks: FilledBins, threshold: float) -> Limits:
    """Return limits of CWSA: successes at one end of their bin, failures at the other."""
    low, high = _worth(blocks.least, threshold), _worth(blocks.most, threshold)
    right = np.maximum(blocks.weight - blocks.loss, 0.0)
    return (
        float(np.sum(right * low - blocks.loss * high)) / blocks.total,
        float(np.sum(right * high - blocks.loss * low)) / blocks.total,
    )


def _cwsa_plus_limits(blocks: FilledBins, threshold: float) -> Limits:
    """Return limits of CWSA+, whose denominator a bin around the threshold leaves open too."""
    at = float(np.dtype(f"f{blocks.precision // 8}").type(threshold))
    right = np.maximum(blocks.weight - blocks.loss, 0.0)
    fewest = float(blocks.weight[blocks.least >= at].sum())
    most = float(blocks.weight[blocks.most >= at].sum())
    low = float(np.sum(right * _worth(blocks.least, threshold)))
    high = float(np.sum(right * _worth(blocks.most, threshold)))
    return (low / most if most else 0.0), (min(1.0, high / fewest) if fewest else 1.0)


def _worth(confidence: FloatArray, threshold: float) -> FloatArray:
    return np.maximum(confidence - threshold, 0.0) / (1.0 - threshold)


def cwsa_entry(threshold: float, *, plus: bool = False) -> Metric:
    """Return the catalogue entry of CWSA, or of CWSA+, at a threshold in [0, 1).

    Both with the linear ramp and the normalization of the published tables.
    """
    threshold = threshold_of(threshold)

    def compute(s: Scored) -> Measured:
        return _normalized(sums_at(s, threshold, RAMPS["linear"]), plus=plus)

    score = "right and confident" if plus else "right less wrong"
    whom = "the accepted" if plus else "all samples"
    return Metric(
        Identity(
            name=f"cwsa{'_plus' if plus else ''}@{threshold:.12g}",
            title=f"CWSA{'+' if plus else ''} at {threshold:.12g}",
            family="cwsa",
            lower_is_better=False,
            meaning=(
                f"Accepting from a confidence of {threshold:.12g}, {whom} are {{value}} {score}, "
                "weighted by confidence."
            ),
            source=SOURCE.format("3.3" if plus else "3.2"),
            convention=f"linear ramp, divided by the number of {whom.removeprefix('the ')}",
            function=f"cwsa{'_plus' if plus else ''}(confidence, loss, threshold={threshold:g})",
        ),
        Measurement(
            compute=OneOfMany(compute, _at_each, (threshold, plus)),
            low=0.0 if plus else -1.0,
            needs=NEEDS,
            rank_based=False,
            gradients=frozenset({"loss", "confidence"}),
            contributions=partial(contributions_at, threshold=threshold, plus=plus),
            influence=of_kinds(partial(_influence, threshold=threshold, plus=plus)),
            n_failures=None,
            # Bins at their upper ends flatter successes; the middle is far closer.
            binned=Binned(
                partial(_cwsa_plus_limits if plus else _cwsa_limits, threshold=threshold),
                central=True,
            ),
        ),
    )


def _normalized(sums: Sums, *, plus: bool) -> Measured:
    return sums.cwsa_plus("accepted") if plus else sums.cwsa("all")


#: Up to so many thresholds a pass for each is as fast as one for all.
_FEW = 2


def _at_each(s: Scored, at: Sequence[tuple[float, bool]]) -> list[Measured]:
    """Compute CWSA and CWSA+ at many thresholds from the same sums."""
    thresholds = sorted({threshold for threshold, _ in at})
    ramp = RAMPS["linear"]
    if len(thresholds) <= _FEW:
        found = [sums_at(s, threshold, ramp) for threshold in thresholds]
    else:
        found = sums_at_each(s, np.array(thresholds), ramp)
    sums = dict(zip(thresholds, found, strict=True))
    return [_normalized(sums[threshold], plus=plus) for threshold, plus in at]


def _named(_: str, threshold: str, *, plus: bool) -> Metric | None:
    return cwsa_entry(float(threshold), plus=plus) if float(threshold) < 1 else None


FAMILIES = (
    Family("cwsa@{}", partial(_named, plus=False), ("0.8",)),
    Family("cwsa_plus@{}", partial(_named, plus=True), ("0.8",)),
)

ENTRIES = tuple(cwsa_entry(at, plus=plus) for plus in (False, True) for at in (0.5, 0.9))
