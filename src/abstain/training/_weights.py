"""Weights of samples by the rank of their confidence: named weights and custom functions.

The weights of hard ranks are computed in two ways, because hard ranks have no gradient. If a weight
depends only on the rank, the weights at the ranks 1 to n are read from a table and averaged over
ties. On the CPU, NumPy computes these averages in a fifth of the time of PyTorch for a small batch.
On a device, a sort and two searches compute them without waiting for the host. Sample weights need
the tie groups, and so do areas that have vertices only at distinct confidences.

`metrics.rank_weights` computes the weights at integer ranks. Soft ranks are real numbers, for which
`smooth` computes the same function. Tests compare both functions.
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
from abstain.typing import BoolArray, FloatArray


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

    The array `values`, shape (m,), contains a value for each ascending rank in the population of m
    confidences. Every entry of `confidence` must be in the population.
    """
    arrays = [as_host_array(x) for x in (confidence, population, values)]
    host_confidence, host_population, host_values = arrays
    if host_confidence is not None and host_population is not None and host_values is not None:
        return torch.from_numpy(_mean_on_host(host_confidence, host_population, host_values))
    ordered = torch.sort(population).values
    start = torch.searchsorted(ordered, confidence)
    end = torch.searchsorted(ordered, confidence, right=True)
    count = end - start
    sums = torch.cat((values.new_zeros(1), torch.cumsum(values, 0)))
    mean = (sums[end] - sums[start]) / count
    # The difference of long sums has a rounding error, so untied samples use their exact weight.
    return torch.where(count == 1, values[start.clamp(max=values.shape[0] - 1)], mean)


def _mean_on_host(confidence: FloatArray, population: FloatArray, values: FloatArray) -> FloatArray:
    """Compute `mean_over_ties` with one sort, and look up a batch in a larger population."""
    is_whole_population = confidence.size == population.size
    order = np.argsort(confidence) if is_whole_population else None
    ordered = np.sort(population) if order is None else confidence[order]
    is_tied_with_next = ordered[1:] == ordered[:-1]
    means = _mean_of_groups(values, is_tied_with_next) if is_tied_with_next.any() else values
    if order is None:
        out = means[np.searchsorted(ordered, confidence)]
    else:
        out = np.empty_like(means)
        out[order] = means
    # NaN is sorted after all numbers, and its rank is undefined.
    if np.isnan(ordered[-1]):
        out[np.isnan(confidence)] = np.nan
    return out


def _mean_of_groups(values: FloatArray, is_tied_with_next: BoolArray) -> FloatArray:
    """Replace the values of each tie group by their mean."""
    ends = np.append(np.flatnonzero(~is_tied_with_next), values.size - 1) + 1
    count = np.diff(ends, prepend=0)
    sums = np.append(0.0, np.cumsum(values))[ends]
    means = np.diff(sums, prepend=0.0) / count
    is_single = count == 1
    # The difference of long sums has a rounding error, so untied samples use their exact weight.
    means[is_single] = values[ends[is_single] - 1]
    return np.repeat(means, count)


def tie_group_weights(confidence: Tensor, weight: Tensor | None, phi: RankWeight) -> Tensor:
    """Return the weight of the tie group of each sample, or 0 for a sample with weight 0."""
    # The weights are computed in float64, which Apple's devices do not support.
    device = torch.device("cpu") if confidence.device.type == "mps" else confidence.device
    c: Any = confidence.to(device)
    w: Any = None if weight is None else weight.to(device, torch.float64)
    host_confidence = as_host_array(c)
    host_weight = None if w is None else as_host_array(w)
    is_weight_on_host = w is None or host_weight is not None
    if host_confidence is not None and is_weight_on_host and np.isfinite(host_confidence).all():
        host_groups = group_ties(host_confidence, np.zeros_like(host_confidence), host_weight)
        index = tie_group_index(host_groups, host_confidence, host_weight)
        # The index of a sample with weight 0 is -1.
        group_weights = np.asarray(phi(host_groups))[np.maximum(index, 0)]
        return torch.from_numpy(np.where(index < 0, 0.0, group_weights)).to(confidence)
    no_loss: Any = torch.zeros_like(c)
    groups = group_ties(c, no_loss, w)
    group_index = torch.as_tensor(tie_group_index(groups, c, w))
    weights = torch.as_tensor(phi(groups))
    sample_weights = torch.where(group_index < 0, 0.0, weights[group_index.clamp(min=0)])
    return sample_weights.to(confidence)


#: Function from real ranks, the number of samples and the coverage interval to weights.
SmoothWeight: TypeAlias = Callable[[Tensor, int, tuple[float, float]], Tensor]


@dataclass(frozen=True)
class RankWeights:
    """A named weight of losses, which depends on the rank of the confidence.

    Attributes
    ----------
    name : str
        Name in scripts.
    title : str
        Name in reports.
    metric : str
        Call of the metric that equals the value of the objective on a batch.
    kernel : callable
        Function from the coverage interval to a weight function of `metrics.rank_weights`.
    smooth : callable
        Function from real ranks, n and the coverage interval to weights, which equals the kernel at
        integer ranks.
    source : str
        Reference of the definition.
    is_partial : bool
        Whether the metric is an area between two coverages.
    averages_ties : bool
        Whether tied samples have the mean of the weights at their ranks.
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
    """Return the weights at the ranks 1 to n, from a cache because few batch sizes occur."""
    # Training may reuse a table that was first computed in inference mode.
    with torch.inference_mode(mode=False):
        return torch.tensor(_by_kernel(name, between, n), device=device, dtype=dtype)


@lru_cache(maxsize=64)
def _by_kernel(name: str, between: tuple[float, float], n: int) -> FloatArray:
    """Return the weights of n untied samples by ascending rank, shape (n,), from the kernel."""
    ones = np.ones(n)
    untied = TieGroups(np.arange(n, 0, -1.0), ones, ones)
    descending: FloatArray = np.asarray(RANK_WEIGHTS[name].kernel(between)(untied))
    return descending[::-1].copy()


def _harmonic(r: Tensor, n: int, _: tuple[float, float]) -> Tensor:
    return float(harmonic(float(n))) - float(np.euler_gamma) - torch.digamma(n - r + 1.0)


def _ramp(r: Tensor, n: int, between: tuple[float, float]) -> Tensor:
    """Integrate the accepted share of a sample over the coverage interval.

    At coverage c, the accepted share of a sample with rank r is clip(n c - (n - r), 0, 1). The
    sample is thus accepted while n c increases from n - r to n - r + 1.
    """
    low, high = between
    return (_accepted(n * high - (n - r)) - _accepted(n * low - (n - r))) / n


def _accepted(x: Tensor) -> Tensor:
    """Return the integral of clip(t, 0, 1) over t from 0 to x."""
    return torch.where(x < 1.0, x.clamp(min=0.0, max=1.0) ** 2 / 2.0, x - 0.5)


def _interpolated(r: Tensor, n: int, between: tuple[float, float]) -> Tensor:
    """Interpolate the partial AURC weights at integer ranks linearly."""
    table = weights_at_whole_ranks("partial-aurc", between, n, r.device, r.dtype)
    # NaN is replaced for the look-up, and the fraction r - lower makes the result NaN.
    lower = r.detach().nan_to_num(1.0).clamp(1, max(1, n - 1)).floor()
    lower_rank = lower.long()
    upper_rank = (lower_rank + 1).clamp(max=n)
    lower_weight, upper_weight = table[lower_rank - 1], table[upper_rank - 1]
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
    """Validated weights, given by a name in the catalogue or by a function of the caller."""

    weights: str | WeightFunction
    #: Coverage interval of a partial area.
    between: tuple[float, float] = (0.0, 1.0)

    @property
    def entry(self) -> RankWeights | None:
        """Catalogue entry of the weights, or None for a function of the caller."""
        return RANK_WEIGHTS[self.weights] if isinstance(self.weights, str) else None

    @property
    def depends_on_rank_only(self) -> bool:
        """Whether the weight of a sample depends only on its ranks."""
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
    """Validate the weights that the function of the caller returned."""
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
    """Validate the weights and the coverage interval."""
    if not isinstance(weights, str):
        if not callable(weights):
            raise InputError(
                f"`weights` must be a name or a function of (ranks, n); got {weights!r}"
            )
        _check_no_interval(between, "a function")
        return Weighting(weights)
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
