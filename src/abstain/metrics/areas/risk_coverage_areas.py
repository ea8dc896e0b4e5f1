"""Computation of AURC and AUGRC with a single sort, which is faster for 0/1 loss."""

from dataclasses import dataclass

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import bfloat16_bits
from abstain._foundation.device import is_computed_on_device, validate_on_device
from abstain._foundation.packed import (
    BRAIN_INFINITY,
    COUNT_FROM,
    HALF_INFINITY,
    PackedKeys,
    brain_floats,
    count_failures,
    pack_and_sort,
)
from abstain._foundation.scored import validate_samples
from abstain._foundation.tie_groups import TieGroups, augrc_from_rank_sum, group_ties
from abstain.metrics.rank_weights import augrc_weight, rank_weighted_risk, trapezoid_area
from abstain.typing import AnyArray


@dataclass(frozen=True)
class RiskCoverageAreas:
    """Areas under the selective and generalized risk-coverage curves, and numbers of samples.

    Attributes
    ----------
    aurc : float
        Trapezoid area under the selective risk-coverage curve. From coverage 0 to the first point,
        the curve is constant.
    augrc : float
        Trapezoid area under the generalized risk over coverage.
    risk : float
        Mean loss of all samples.
    n : int
        Number of samples.
    failures : int
        Number of samples with a loss above zero.
    tied : int
        Number of samples whose confidence equals the confidence of another sample.
    """

    aurc: float
    augrc: float
    risk: float
    n: int
    failures: int
    tied: int


def risk_coverage_areas(
    confidence: AnyArray, loss: AnyArray, *, weight: AnyArray | None = None
) -> RiskCoverageAreas:
    """Compute AURC and AUGRC with a single sort.

    Samples with equal confidence are accepted together, so the result does not depend on the order
    of the rows. For a 0/1 loss without weights, the function packs the loss into the sort key,
    which saves time and memory. Large arrays of 16-bit confidences are counted instead of sorted.
    Arrays on a device such as a GPU are sorted on the device.

    Parameters
    ----------
    confidence : array of shape (n,)
        Finite. Confidence scores; higher means more trusted.
    loss : array of shape (n,)
        Finite and non-negative; 1 for an error under 0/1 loss.
    weight : array of shape (n,), optional
        Frequency weights.

    Returns
    -------
    RiskCoverageAreas
        The two areas, the mean loss, and the numbers of samples, failures and tied samples.

    See Also
    --------
    abstain.aurc : The AURC alone, with a choice of estimators.
    abstain.augrc : The AUGRC alone.

    Examples
    --------
    >>> from abstain.metrics import risk_coverage_areas
    >>> areas = risk_coverage_areas([0.9, 0.8, 0.8, 0.3], [0, 1, 0, 1])
    >>> round(areas.aurc, 6), areas.augrc, areas.tied
    (0.1875, 0.15625, 2)
    """
    if is_computed_on_device(confidence, loss):
        samples = validate_on_device(confidence, loss, weight)
        groups = group_ties(samples.confidence, samples.loss, samples.weight)
        n_failures = int(groups.xp.count_nonzero(samples.loss))
        return _areas_from_groups(groups, n_failures, int(samples.confidence.shape[0]))
    if weight is None:
        areas = _areas_of_binary_loss(confidence, loss)
        if areas is not None:
            return areas
    s = validate_samples(confidence, loss, weight)
    return _areas_from_groups(s.groups, s.n_failures, s.n_rows)


def _areas_of_binary_loss(confidence: AnyArray, loss: AnyArray) -> RiskCoverageAreas | None:
    """Compute the areas from sorted keys or counts.

    The function returns None for a loss other than 0/1 and for invalid input.
    """
    bfloat16 = bfloat16_bits(confidence)
    is_bfloat16 = bfloat16 is not None
    x = checks.vector(bfloat16 if is_bfloat16 else confidence, "confidence")
    y = checks.vector(loss, "loss", length=x.size, reference="confidence")
    is_float16 = not is_bfloat16 and x.dtype == np.float16
    if x.size >= COUNT_FROM and (is_float16 or is_bfloat16):
        infinity = HALF_INFINITY if is_float16 else BRAIN_INFINITY
        group_arrays = count_failures(x.view(np.uint16), y, infinity=infinity)
        if group_arrays is None:
            return None
        groups = TieGroups(*group_arrays)
        return _areas_from_groups(groups, int(groups.loss.sum()), x.size)
    if is_float16:
        x = x.astype(np.float32)
    elif is_bfloat16:
        x = brain_floats(x)
    keys = pack_and_sort(x, y)
    return None if keys is None else areas_from_keys(keys)


def areas_from_keys(keys: PackedKeys) -> RiskCoverageAreas:
    """Compute the areas in one pass over sorted keys that contain confidence and loss."""
    n = keys.keys.size
    n_failures, doubled_rank_sum, doubled_selective_area, n_tied = keys.kernels.sum_areas(
        keys.keys, keys.n_nonnegative
    )
    return RiskCoverageAreas(
        aurc=doubled_selective_area / (2 * n),
        augrc=augrc_from_rank_sum(n, n_failures, doubled_rank_sum),
        risk=n_failures / n,
        n=n,
        failures=n_failures,
        tied=n_tied,
    )


def _areas_from_groups(groups: TieGroups, n_failures: int, n_samples: int) -> RiskCoverageAreas:
    """Compute the areas from tie groups."""
    return RiskCoverageAreas(
        aurc=trapezoid_area(groups, groups.cumulative_loss),
        augrc=rank_weighted_risk(groups, augrc_weight),
        risk=groups.risk,
        n=n_samples,
        failures=n_failures,
        tied=groups.n_tied,
    )
