"""AURC and AUGRC from one sort, with a faster computation for 0/1 loss."""

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
    """Areas under both risk-coverage curves and counts of samples.

    Attributes
    ----------
    aurc : float
        Area under the selective risk over coverage (trapezoid). The curve is constant from the
        first vertex to coverage 0.
    augrc : float
        Area under the generalized risk over coverage (trapezoid).
    risk : float
        Mean loss of all samples, which is the value of both curves at coverage 1.
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
    """Compute AURC and AUGRC from one sort.

    Samples with equal confidence are accepted together, so the result does not depend on the order
    of the rows. For a 0/1 loss without weights, the function packs the loss into the sort key. A
    key needs as much memory as a confidence. Large arrays of 16-bit confidences are counted instead
    of sorted. Arrays on a device are sorted on the device.

    Parameters
    ----------
    confidence : array of shape (n,)
        Finite. Higher means more trusted.
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
        groups = group_ties(*samples[:3])
        n_failures = int(groups.xp.count_nonzero(samples.loss))
        return _areas_from_groups(groups, n_failures, int(samples.confidence.shape[0]))
    areas = _areas_without_order(confidence, loss) if weight is None else None
    if areas is None:
        s = validate_samples(confidence, loss, weight)
        areas = _areas_from_groups(s.groups, s.n_failures, s.n_rows)
    return areas


def _areas_without_order(confidence: AnyArray, loss: AnyArray) -> RiskCoverageAreas | None:
    """Compute the areas from sorted keys or counts, or return None if neither applies.

    Neither applies to invalid input or to a loss other than 0/1.
    """
    bfloat16 = bfloat16_bits(confidence)
    is_bfloat16 = bfloat16 is not None
    x = checks.vector(confidence if bfloat16 is None else bfloat16, "confidence")
    y = checks.vector(loss, "loss", length=x.size, reference="confidence")
    is_float16 = not is_bfloat16 and x.dtype == np.float16
    if x.size >= COUNT_FROM and (is_float16 or is_bfloat16):
        infinity = HALF_INFINITY if is_float16 else BRAIN_INFINITY
        groups = count_failures(x.view(np.uint16), y, infinity=infinity)
        if groups is None:
            return None
        return _areas_from_groups(TieGroups(*groups), int(groups[2].sum()), x.size)
    if is_float16:
        x = x.astype(np.float32)
    elif is_bfloat16:
        x = brain_floats(x)
    keys = pack_and_sort(x, y)
    return None if keys is None else areas_from_keys(keys)


def areas_from_keys(keys: PackedKeys) -> RiskCoverageAreas:
    """Compute the areas in one pass over sorted keys."""
    n = keys.keys.size
    n_failures, doubled_ranks, selective, n_tied = keys.kernels.sum_areas(
        keys.keys, keys.n_nonnegative
    )
    augrc = augrc_from_rank_sum(n, n_failures, doubled_ranks)
    return RiskCoverageAreas(selective / (2 * n), augrc, n_failures / n, n, n_failures, n_tied)


def _areas_from_groups(groups: TieGroups, n_failures: int, n: int) -> RiskCoverageAreas:
    aurc = trapezoid_area(groups, groups.cumulative_loss)
    augrc = rank_weighted_risk(groups, augrc_weight)
    return RiskCoverageAreas(aurc, augrc, groups.risk, n, n_failures, groups.n_tied)
