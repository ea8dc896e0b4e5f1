"""Contributions of samples, classes and groups to a metric."""

from dataclasses import dataclass
from typing import cast

import numpy as np

from abstain._foundation import checks
from abstain._foundation.array_functions import sum_by_index
from abstain._foundation.arrays import as_array_like, to_numpy
from abstain._foundation.frames import AnyFrame, Backend, frame_from_rows
from abstain._foundation.names import encode_names
from abstain._foundation.scored import (
    Scored,
    output_reference,
    validate_samples,
    validate_samples_on_host,
)
from abstain._foundation.sorting import descending_order
from abstain._foundation.tie_groups import find_group_index
from abstain.errors import ShapeError
from abstain.metrics.catalogue import FAMILIES
from abstain.metrics.entry import METRICS
from abstain.metrics.influences import sample_weights
from abstain.metrics.rank_weights import RankWeight
from abstain.typing import AnyArray, Array, FloatArray, IntArray


def sample_contributions(
    confidence: AnyArray,
    loss: AnyArray,
    *,
    metric: str = "augrc",
    weight: AnyArray | None = None,
) -> AnyArray:
    """Compute the contribution of each sample to an area such as the AUGRC, or to CWSA.

    Answers: which samples contribute most to this metric?

    Parameters
    ----------
    confidence, loss : array of shape (n,)
        See `augrc`.
    metric : str, default="augrc"
        "augrc", "aurc", "aurc_plugin", "aurc_log", "sele", "two_sele", or "cwsa@T" or
        "cwsa_plus@T" with a threshold T in [0, 1), such as "cwsa@0.9".
    weight : array of shape (n,), optional
        Frequency weights. An integer weight m is equivalent to m copies of the sample.

    Returns
    -------
    array of shape (n,)
        The contributions, in the array type of the input. Their sum is the metric. Contributions to
        an area are non-negative, and samples without loss contribute 0. For CWSA, failures
        contribute negative values and rejected samples contribute 0.

    Raises
    ------
    ShapeError, DomainError, InputError
        As in `augrc`, or as in `cwsa` for CWSA. An InputError is also raised if `metric` is not a
        valid name.

    Notes
    -----
    The contribution to an area is phi(rank) x loss x weight / W, where W is the weight of all
    samples. The rank weight phi is averaged over ties. The contribution of an accepted sample of
    confidence c to CWSA is (c - T)/(1 - T) x (1 - 2 loss) x weight / W. For CWSA+, the factor is 1
    - loss instead of 1 - 2 loss, and W is the weight of the accepted samples. If no sample is
    accepted, contributions to CWSA+ are NaN, with an `UndefinedMetricWarning`. The function sorts
    the samples once for areas, and makes one pass over the samples for CWSA.

    References
    ----------
    .. [1] Zhou et al. (2025), eq. 12, https://arxiv.org/abs/2410.15361
    .. [2] Shahnazari et al. (2025), sections 3.2 and 3.3, https://arxiv.org/abs/2505.18622

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> ab.sample_contributions(np.array([0.9, 0.8, 0.7, 0.6]), np.array([0, 1, 0, 1])).tolist()
    [0.0, 0.15625, 0.0, 0.03125]
    >>> ab.sample_contributions([1.0, 0.75, 0.75, 0.4], [0, 1, 0, 1], metric="cwsa@0.5").tolist()
    [0.25, -0.125, 0.125, 0.0]
    """
    s = validate_samples(confidence, loss, weight)
    contributions = s.expand_to_input_rows(compute_contributions(s, metric))
    return as_array_like(contributions, output_reference(s, confidence))


def compute_contributions(s: Scored, metric: str = "augrc") -> AnyArray:
    """Return the contribution of each sample to a metric that is a sum over samples."""
    entries = list(METRICS.values())
    for family in FAMILIES:
        entry = family.parse(str(metric))
        if entry is not None:
            entries.append(entry)
    measurements = {
        entry.name: entry.measurement
        for entry in entries
        if entry.measurement.rank_weight or entry.measurement.contributions
    }
    measurement = measurements[checks.one_of(metric, "metric", tuple(measurements))]
    if measurement.contributions is not None:
        return measurement.contributions(s)
    return _rank_weighted_losses(s, cast("RankWeight", measurement.rank_weight))


def _rank_weighted_losses(s: Scored, phi: RankWeight) -> AnyArray:
    """Return phi(rank) x loss x weight / W for each sample, where W is the total weight."""
    if s.xp is np:
        return _rank_weighted_losses_in_numpy(s, phi)
    # Samples with weight 0 have no group (index -1). Any group serves, because the weight is 0.
    group_index = s.xp.clip(s.group_index, 0, None)
    rank_weight = s.xp.take(phi(s.groups), group_index)
    share = rank_weight * s.loss / s.groups.total_weight
    return share if s.weight is None else share * s.weight


def _rank_weighted_losses_in_numpy(s: Scored, phi: RankWeight) -> FloatArray:
    """Return phi(rank) x loss x weight / W from the rank weights of failures only."""
    contributions = np.zeros(s.n_rows)
    failures = np.flatnonzero(s.loss)
    if failures.size:
        # After sorting, consecutive lookups access neighboring groups.
        failures = failures[descending_order(s.confidence[failures])]
    groups = s.merged_groups
    group_index = find_group_index(groups, s.confidence[failures])
    rank_weight = np.where(group_index < 0, 0.0, phi(groups)[group_index])
    share = rank_weight * s.loss[failures] / groups.total_weight
    contributions[failures] = share if s.weight is None else share * s.weight[failures]
    return contributions


def contribution_of_failures(
    s: Scored, confidence: Array, count: IntArray, metric: str = "augrc"
) -> float:
    """Return the total contribution of some failures to an area metric.

    `confidence` contains the confidences of these failures, and `count` their numbers.
    """
    phi = METRICS[metric].measurement.rank_weight
    if phi is None or not confidence.size:
        return 0.0
    groups = s.merged_groups
    group_index = find_group_index(groups, confidence.astype(groups.confidence.dtype))
    return float(phi(groups)[group_index] @ count) / groups.total_weight


@dataclass(frozen=True, eq=False)
class GroupContributions:
    """Contributions of groups of samples to a metric.

    Attributes
    ----------
    group : array of shape (k,)
        The groups, sorted.
    contribution : array of shape (k,)
        Contribution of each group. The contributions add up to the value of the metric.
    share : array of shape (k,)
        The contribution divided by the metric, or NaN if the metric is 0.
    samples : array of shape (k,)
        Number of samples of each group.
    sample_share : array of shape (k,)
        Weighted share of all samples. For an area, a group is worse than average if its `share` is
        larger than its `sample_share`.
    """

    group: Array
    contribution: FloatArray
    share: FloatArray
    samples: IntArray
    sample_share: FloatArray

    def frame(self, *, backend: Backend = "polars") -> AnyFrame:
        """Return a dataframe with one row per group."""
        columns = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return frame_from_rows(columns, backend)


def group_contributions(
    confidence: AnyArray,
    loss: AnyArray,
    group: AnyArray,
    *,
    metric: str = "augrc",
    weight: AnyArray | None = None,
) -> GroupContributions:
    """Compute the contribution of each class or group to an area such as the AUGRC, or to CWSA.

    Answers: which classes, sites or subgroups contribute most to the silent failures?

    Parameters
    ----------
    confidence, loss : array of shape (n,)
        See `augrc`.
    group : array of shape (n,)
        The class or group of each sample, of any type.
    metric : str, default="augrc"
        "augrc", "aurc", "aurc_plugin", "aurc_log", "sele", "two_sele", or "cwsa@T" or
        "cwsa_plus@T" with a threshold T in [0, 1), such as "cwsa@0.9".
    weight : array of shape (n,), optional
        Frequency weights. An integer weight m is equivalent to m copies of the sample.

    Returns
    -------
    GroupContributions
        One entry for each group, sorted by name.

    Raises
    ------
    ShapeError, DomainError, InputError
        As in `sample_contributions`. A ShapeError is also raised if `group` has another length.

    Notes
    -----
    The contributions add up to the metric of all samples. The contribution of a group is not the
    metric of the group alone. The function sorts the samples twice.

    References
    ----------
    .. [1] Zhou et al. (2025), eq. 12, https://arxiv.org/abs/2410.15361

    Examples
    --------
    >>> import abstain as ab
    >>> parts = ab.group_contributions([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1], ["a", "a", "b", "b"])
    >>> parts.contribution.tolist()
    [0.15625, 0.03125]
    """
    # Group names are Python objects, so the sums are computed in NumPy.
    s = validate_samples_on_host(confidence, loss, weight)
    names = to_numpy(group, "group")
    if names.shape != (s.n_input_rows,):
        raise ShapeError(
            f"`group` must have one entry for each of the {s.n_input_rows} samples; got "
            f"{names.shape}"
        )
    return contributions_by_group(s, s.select_samples(names), metric)


def contributions_by_group(s: Scored, group: Array, metric: str = "augrc") -> GroupContributions:
    """Sum the contributions over the samples of each group."""
    group_names, codes = encode_names(group, "group")
    n_groups = len(group_names)
    group_array = np.empty(n_groups, group.dtype)
    group_array[:] = group_names
    contributions = sum_by_index(codes, compute_contributions(s, metric), n_groups)
    share = np.full(n_groups, np.nan)
    total = float(contributions.sum())
    if total != 0:
        share = contributions / total
    group_weight = sum_by_index(codes, sample_weights(s), n_groups)
    return GroupContributions(
        group=group_array,
        contribution=contributions,
        share=share,
        samples=np.bincount(codes, minlength=n_groups).astype(np.int64),
        sample_share=group_weight / s.total_weight,
    )
