"""Compute loss weights from the ranks of the confidences.

At integer ranks, the weights equal those of `abstain.metrics.rank_weights`. At soft ranks, which
are real numbers, `RankWeights.smooth` computes the weights.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from abstain._foundation import checks
from abstain._foundation.catalogue import Catalogue
from abstain._foundation.special import harmonic
from abstain._foundation.tie_groups import TieGroups, group_ties, tie_group_index
from abstain.errors import DomainError, InputError, MissingInputError, UnknownNameError, suggest
from abstain.metrics.rank_weights import (
    RankWeight,
    augrc_weight,
    log_weight,
    partial_generalized_weights,
    partial_trapezoid_weights,
    plugin_weight,
    rank_weight_from_vertices,
    sele_weight,
)
from abstain.typing import FloatArray


def as_host_array(x: Tensor) -> FloatArray | None:
    """Return a NumPy view of a CPU tensor, or None on a device and inside `torch.func`."""
    if x.device.type != "cpu":
        return None
    try:
        values: FloatArray = x.detach().numpy()
    except RuntimeError:
        return None
    return values


def mean_over_ties(confidence: Tensor, population: Tensor, values: Tensor) -> Tensor:
    """Return the mean of `values` over the ranks of each confidence.

    `values` contains a value for each ascending rank in `population`, shape (m,). `population` must
    contain every entry of `confidence`. A tied confidence has several ranks.
    """
    arrays = [as_host_array(x) for x in (confidence, population, values)]
    host_confidence, host_population, host_values = arrays
    if host_confidence is not None and host_population is not None and host_values is not None:
        return torch.from_numpy(_mean_on_host(host_confidence, host_population, host_values))
    sorted_population = torch.sort(population).values
    first_rank = torch.searchsorted(sorted_population, confidence)
    end_rank = torch.searchsorted(sorted_population, confidence, right=True)
    count = end_rank - first_rank
    sums = torch.cat((values.new_zeros(1), torch.cumsum(values, 0)))
    mean = (sums[end_rank] - sums[first_rank]) / count
    # The difference of long sums has a rounding error, so untied samples use their exact value.
    exact_value = values[first_rank.clamp(max=values.shape[0] - 1)]
    return torch.where(count == 1, exact_value, mean)


def _mean_on_host(confidence: FloatArray, population: FloatArray, values: FloatArray) -> FloatArray:
    """Compute `mean_over_ties` with NumPy, which is faster than PyTorch for small batches."""
    if confidence.size == population.size:
        order = np.argsort(confidence)
        sorted_population = confidence[order]
        means = np.empty_like(values)
        means[order] = _mean_of_ties(values, sorted_population)
    else:
        sorted_population = np.sort(population)
        first_rank = np.searchsorted(sorted_population, confidence)
        means = _mean_of_ties(values, sorted_population)[first_rank]
    # NaN is sorted after all numbers, and its rank is undefined.
    if np.isnan(sorted_population[-1]):
        means[np.isnan(confidence)] = np.nan
    return means


def _mean_of_ties(values: FloatArray, sorted_confidence: FloatArray) -> FloatArray:
    """Replace the values of each group of equal confidences by their mean."""
    is_tied_with_next = sorted_confidence[1:] == sorted_confidence[:-1]
    if not is_tied_with_next.any():
        return values
    ends = np.append(np.flatnonzero(~is_tied_with_next), values.size - 1) + 1
    count = np.diff(ends, prepend=0)
    sums = np.append(0.0, np.cumsum(values))[ends]
    means = np.diff(sums, prepend=0.0) / count
    is_single = count == 1
    # The difference of long sums has a rounding error, so untied samples use their exact value.
    means[is_single] = values[ends[is_single] - 1]
    return np.repeat(means, count)


def tie_group_weights(confidence: Tensor, weight: Tensor | None, phi: RankWeight) -> Tensor:
    """Return the rank weight of each sample's tie group, or 0 for samples of weight 0."""
    # The weights are computed in float64, which Apple's devices do not support.
    device = torch.device("cpu") if confidence.device.type == "mps" else confidence.device
    device_confidence = confidence.to(device)
    device_weight = None if weight is None else weight.to(device, torch.float64)
    host_confidence = as_host_array(device_confidence)
    host_weight = None if device_weight is None else as_host_array(device_weight)
    is_weight_on_host = device_weight is None or host_weight is not None
    if host_confidence is not None and is_weight_on_host and np.isfinite(host_confidence).all():
        rank_weights = torch.from_numpy(_group_weights_on_host(host_confidence, host_weight, phi))
    else:
        rank_weights = _group_weights_in_torch(device_confidence, device_weight, phi)
    return rank_weights.to(confidence)


def _group_weights_on_host(
    confidence: FloatArray, weight: FloatArray | None, phi: RankWeight
) -> FloatArray:
    """Compute `tie_group_weights` with NumPy."""
    groups = group_ties(confidence, np.zeros_like(confidence), weight)
    index = tie_group_index(groups, confidence, weight)
    # The index of a sample with weight 0 is -1.
    group_weights = np.asarray(phi(groups))[np.maximum(index, 0)]
    return np.where(index < 0, 0.0, group_weights)


def _group_weights_in_torch(confidence: Any, weight: Any, phi: RankWeight) -> Tensor:
    """Compute `tie_group_weights` with PyTorch."""
    no_loss: Any = torch.zeros_like(confidence)
    groups = group_ties(confidence, no_loss, weight)
    index = torch.as_tensor(tie_group_index(groups, confidence, weight))
    group_weights = torch.as_tensor(phi(groups))[index.clamp(min=0)]
    return torch.where(index < 0, 0.0, group_weights)


#: Function from real ranks, the number of samples and the coverage interval to weights.
SmoothWeight: TypeAlias = Callable[[Tensor, int, tuple[float, float]], Tensor]


@dataclass(frozen=True)
class RankWeights:
    """Catalogue entry of weights of the losses, which depend on the rank of the confidence.

    Attributes
    ----------
    name : str
        Name in scripts.
    title : str
        Name in reports.
    metric : str
        Call of the metric that the weighted mean loss equals.
    kernel : callable
        Function from the coverage interval to a weight function of tie groups.
    smooth : callable
        Function from real ranks, the number of samples and the coverage interval to weights.
    source : str
        Reference of the definition.
    is_partial : bool
        Whether the metric is an area between two coverages.
    averages_ties : bool
        Whether tied samples receive the mean of the weights at their ranks.
    """

    name: str
    title: str
    metric: str
    kernel: Callable[[tuple[float, float]], RankWeight]
    smooth: SmoothWeight
    source: str
    is_partial: bool = False
    averages_ties: bool = True


@lru_cache(maxsize=64)
def weights_at_whole_ranks(
    name: str, between: tuple[float, float], n: int, device: Any, dtype: Any
) -> Tensor:
    """Return the weights at the ranks 1 to n. Results are cached."""
    # Training may reuse a table that was first computed in inference mode.
    with torch.inference_mode(mode=False):
        return torch.tensor(_by_kernel(name, between, n), device=device, dtype=dtype)


@lru_cache(maxsize=64)
def _by_kernel(name: str, between: tuple[float, float], n: int) -> FloatArray:
    """Return the weights of n untied samples in ascending order of rank, shape (n,)."""
    ones = np.ones(n)
    untied = TieGroups(np.arange(n, 0, -1.0), ones, ones)
    compute_weights = RANK_WEIGHTS[name].kernel(between)
    descending: FloatArray = np.asarray(compute_weights(untied))
    return descending[::-1].copy()


def _harmonic(r: Tensor, n: int, _: tuple[float, float]) -> Tensor:
    """Return H_n - H_{n-r}, the weights of the plug-in AURC."""
    return float(harmonic(float(n))) - float(np.euler_gamma) - torch.digamma(n - r + 1.0)


def _ramp(r: Tensor, n: int, between: tuple[float, float]) -> Tensor:
    """Integrate the accepted share of each sample over an interval of coverages.

    At coverage c, the accepted share of the sample with rank r is clip(n c - (n - r), 0, 1).
    """
    low, high = between
    integral_to_high = _integral_of_clip(n * high - (n - r))
    integral_to_low = _integral_of_clip(n * low - (n - r))
    return (integral_to_high - integral_to_low) / n


def _integral_of_clip(x: Tensor) -> Tensor:
    """Return the integral of clip(t, 0, 1) over t from 0 to x."""
    return torch.where(x < 1.0, x.clamp(min=0.0, max=1.0) ** 2 / 2.0, x - 0.5)


def _interpolated(r: Tensor, n: int, between: tuple[float, float]) -> Tensor:
    """Compute the weights of the partial AURC by linear interpolation between integer ranks."""
    weights = weights_at_whole_ranks("partial-aurc", between, n, r.device, r.dtype)
    # NaN is replaced for the look-up, and the fraction r - lower makes the result NaN.
    lower = r.detach().nan_to_num(1.0).clamp(1, max(1, n - 1)).floor()
    lower_rank = lower.long()
    upper_rank = (lower_rank + 1).clamp(max=n)
    lower_weight = weights[lower_rank - 1]
    upper_weight = weights[upper_rank - 1]
    return lower_weight + (r - lower) * (upper_weight - lower_weight)


_ZHOU = "Zhou et al. (2025), {}, https://arxiv.org/abs/2410.15361"

#: All named weights, in the order of the documentation.
RANK_WEIGHTS: Catalogue[RankWeights] = Catalogue("rank weights", list_command="list rank-weights")

for _entry in (
    RankWeights(
        "aurc",
        "AURC, plug-in",
        'aurc(estimator="plugin")',
        lambda _: plugin_weight,
        _harmonic,
        _ZHOU.format("eq. 12-13"),
    ),
    RankWeights(
        "aurc-log",
        "AURC, log estimator",
        'aurc(estimator="log")',
        lambda _: log_weight,
        lambda r, n, _: -torch.log1p(-r / (n + 1.0)),
        _ZHOU.format("eq. 18"),
    ),
    RankWeights(
        "sele",
        "SELE",
        'aurc(estimator="sele")',
        lambda _: sele_weight,
        lambda r, n, _: r / n,
        "Franc et al. (2023), https://jmlr.org/papers/v24/21-0048.html",
    ),
    RankWeights(
        "augrc",
        "AUGRC",
        "augrc()",
        lambda _: augrc_weight,
        lambda r, n, _: (r - 0.5) / n,
        "Traub et al. (2024), eq. 6, https://arxiv.org/abs/2407.01032",
    ),
    RankWeights(
        "partial-aurc",
        "Partial AURC",
        "partial_aurc(low=, high=)",
        lambda between: rank_weight_from_vertices(partial_trapezoid_weights(*between)),
        _interpolated,
        "code of FD-Shifts (rc_stats.py), https://github.com/IML-DKFZ/fd-shifts",
        is_partial=True,
        averages_ties=False,
    ),
    RankWeights(
        "partial-augrc",
        "Partial AUGRC",
        "partial_augrc(low=, high=)",
        lambda between: rank_weight_from_vertices(partial_generalized_weights(*between)),
        _ramp,
        "Traub et al. (2024), eq. 6, https://arxiv.org/abs/2407.01032",
        is_partial=True,
    ),
):
    RANK_WEIGHTS.add(_entry)


#: Function from ascending ranks, where 1 is the least confident, and their number to weights.
WeightFunction: TypeAlias = Callable[[Tensor, int], Tensor]


@dataclass(frozen=True)
class Weighting:
    """Validated rank weights: a catalogue name or a user-defined function."""

    weights: str | WeightFunction
    #: Coverage interval of a partial area.
    between: tuple[float, float] = (0.0, 1.0)

    @property
    def entry(self) -> RankWeights | None:
        """Catalogue entry of the weights, or None for a user-defined function."""
        return RANK_WEIGHTS[self.weights] if isinstance(self.weights, str) else None

    @property
    def depends_on_rank_only(self) -> bool:
        """Whether tied samples receive the mean of the weights at their ranks."""
        return self.entry is None or self.entry.averages_ties

    @property
    def phi(self) -> RankWeight:
        """Weight function of tie groups."""
        return RANK_WEIGHTS[str(self.weights)].kernel(self.between)

    def at_whole_ranks(self, n: int, like: Tensor) -> Tensor:
        """Return the weights at the ranks 1 to n, with the type and device of `like`."""
        if isinstance(self.weights, str):
            return weights_at_whole_ranks(self.weights, self.between, n, like.device, like.dtype)
        ranks = torch.arange(1, n + 1, device=like.device, dtype=like.dtype)
        return _check_weights(self.weights(ranks, n), ranks).detach()

    def at_real_ranks(self, ranks: Tensor, n: int) -> Tensor:
        """Return the weights at soft ranks, with a gradient."""
        if isinstance(self.weights, str):
            return RANK_WEIGHTS[self.weights].smooth(ranks, n, self.between)
        return _check_weights(self.weights(ranks, n), ranks)


def _check_weights(weights: Any, ranks: Tensor) -> Tensor:
    """Validate the shape of weights from a user-defined function."""
    if isinstance(weights, Tensor) and weights.shape == ranks.shape:
        return weights.to(ranks)
    received = tuple(weights.shape) if isinstance(weights, Tensor) else type(weights).__name__
    raise InputError(
        "`weights` must return one weight for each rank, a tensor of shape "
        f"{tuple(ranks.shape)}; got {received}"
    )


def check_weighting(
    weights: str | WeightFunction, between: tuple[float, float] | None
) -> Weighting:
    """Validate rank weights and, for a partial area, its coverage interval."""
    if callable(weights):
        _check_no_interval(between, "a function")
        return Weighting(weights)
    argument: object = weights
    if not isinstance(argument, str):
        raise InputError(f"`weights` must be a name or a function of (ranks, n); got {weights!r}")
    if weights not in RANK_WEIGHTS:
        names = ", ".join(map(repr, RANK_WEIGHTS))
        raise UnknownNameError(
            f"`weights` must be one of {names} or a function of (ranks, n); got {weights!r}."
            f"{suggest(weights, RANK_WEIGHTS)}"
        )
    if not RANK_WEIGHTS[weights].is_partial:
        _check_no_interval(between, repr(weights))
        return Weighting(weights)
    if between is None:
        raise MissingInputError(
            f"{weights!r} needs a coverage interval: pass `between=(low, high)`, such as (0.5, 1.0)"
        )
    return Weighting(weights, _check_interval(between))


def _check_no_interval(between: object, weights: str) -> None:
    if between is not None:
        raise InputError(
            "`between` is only supported with 'partial-aurc' and 'partial-augrc', not with "
            f"{weights}; drop it"
        )


def _check_interval(between: Any) -> tuple[float, float]:
    """Validate a coverage interval, and return its lower and upper coverage."""
    try:
        low, high = between
    except (TypeError, ValueError):
        raise InputError(f"`between` must be two coverages (low, high); got {between!r}") from None
    low = checks.fraction(low, "between[0]")
    high = checks.fraction(high, "between[1]")
    if low >= high:
        raise DomainError(f"`between` must go from a lower to a higher coverage; got {between!r}")
    return low, high
