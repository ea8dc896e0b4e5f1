"""From the ranks of confidences to weights: the kernel's, those with a name, and the caller's own.

Hard ranks have no gradient, and there are two ways to the same number. Where a weight depends on
the rank alone, the kernel's weights at the ranks 1 to n are looked up and averaged over ties: on
the host by NumPy, whose steps on a small batch take a fifth of PyTorch's; on a device by a sort and
two searches, so that it never has to wait for the host. Sample weights, and areas with a vertex at
each distinct confidence only, need the tie groups themselves.

At whole ranks every number here is computed by `metrics.rank_weights`. A soft rank is no whole
number; `smooth` is the same function of real ranks, which the tests hold against the kernel.
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


def on_host(x: Tensor) -> FloatArray | None:
    """View what lies on the host as NumPy; None on a device, and inside of `torch.func`."""
    if x.device.type != "cpu":
        return None
    try:
        values: FloatArray = x.detach().numpy()
    except RuntimeError:
        return None
    return values


def averaged_over_ties(confidence: Tensor, population: Tensor, values: Tensor) -> Tensor:
    """Return the mean of `values` over the ranks that each confidence occupies.

    `values` (m,) belong to the ascending ranks of the m confidences of the population, of which
    each `confidence` is one.
    """
    own, others, table = on_host(confidence), on_host(population), on_host(values)
    if own is not None and others is not None and table is not None:
        return torch.from_numpy(_averaged_on_host(own, others, table))
    ordered = torch.sort(population).values
    below = torch.searchsorted(ordered, confidence)
    through = torch.searchsorted(ordered, confidence, right=True)
    count = through - below
    sums = torch.cat((values.new_zeros(1), torch.cumsum(values, 0)))
    mean = (sums[through] - sums[below]) / count
    # A difference of long sums is rounded; a sample alone keeps its own weight to the last digit.
    return torch.where(count == 1, values[below.clamp(max=values.shape[0] - 1)], mean)


def _averaged_on_host(
    confidence: FloatArray, population: FloatArray, values: FloatArray
) -> FloatArray:
    """Do the same by one sort, in which a batch among others is looked up."""
    alone = confidence.size == population.size
    order = np.argsort(confidence) if alone else None
    ordered = np.sort(population) if order is None else confidence[order]
    tied = ordered[1:] == ordered[:-1]
    means = _joined(values, tied) if tied.any() else values
    if order is None:
        out = means[np.searchsorted(ordered, confidence)]
    else:
        out = np.empty_like(means)
        out[order] = means
    # NaN lies behind all numbers, and has no rank.
    if np.isnan(ordered[-1]):
        out[np.isnan(confidence)] = np.nan
    return out


def _joined(values: FloatArray, tied: BoolArray) -> FloatArray:
    """Give values that stand at one confidence their mean; `tied` says which join the next."""
    ends = np.append(np.flatnonzero(~tied), values.size - 1) + 1
    count = np.diff(ends, prepend=0)
    sums = np.append(0.0, np.cumsum(values))[ends]
    means = np.diff(sums, prepend=0.0) / count
    alone = count == 1
    # A difference of long sums is rounded; a sample alone keeps its own weight to the last digit.
    means[alone] = values[ends[alone] - 1]
    return np.repeat(means, count)


def by_tie_groups(confidence: Tensor, weight: Tensor | None, phi: RankWeight) -> Tensor:
    """Return the kernel's weight of each sample's tie group; 0 for a sample of weight 0."""
    # The kernel works in float64: what has none is served by the host.
    place = torch.device("cpu") if confidence.device.type == "mps" else confidence.device
    c: Any = confidence.to(place)
    w: Any = None if weight is None else weight.to(place, torch.float64)
    own, others = on_host(c), None if w is None else on_host(w)
    if own is not None and (others is None) == (w is None) and np.isfinite(own).all():
        tied = group_ties(own, np.zeros_like(own), others)
        at = tie_group_index(tied, own, others)
        found = np.where(at < 0, 0.0, np.asarray(phi(tied))[np.maximum(at, 0)])
        return torch.from_numpy(found).to(confidence)
    none: Any = torch.zeros_like(c)
    groups = group_ties(c, none, w)
    home = torch.as_tensor(tie_group_index(groups, c, w))
    of_group = torch.as_tensor(phi(groups))
    each = torch.where(home < 0, 0.0, of_group[home.clamp(min=0)])
    return each.to(confidence)


#: From real ranks, the number of samples and the coverage interval to weights.
Smooth: TypeAlias = Callable[[Tensor, int, tuple[float, float]], Tensor]


@dataclass(frozen=True)
class RankWeights:
    """One way to weight losses by the rank of their confidence.

    Attributes
    ----------
    name : str
        The name scripts use.
    title : str
        The name people read.
    metric : str
        The metric that the objective is on a batch, as a call.
    kernel : callable
        From the coverage interval to the weight function of `metrics.rank_weights`.
    smooth : callable
        From ranks (real numbers), n and the coverage interval to weights; equal to the kernel at
        whole ranks.
    source : str
        Where it is defined.
    partial : bool
        Whether it is an area between two coverages.
    averages_ties : bool
        Whether tied samples share the mean of the weights at their ranks.
    """

    name: str
    title: str
    metric: str
    kernel: Callable[[tuple[float, float]], RankWeight]
    smooth: Smooth
    source: str
    partial: bool = False
    averages_ties: bool = True


@lru_cache(maxsize=64)
def at_whole_ranks(
    name: str, between: tuple[float, float], n: int, device: Any, dtype: Any
) -> Tensor:
    """Keep the weights where they are used: batches of one size need them once."""
    # A batch without gradients may be the first of its size; the next one needs a plain tensor.
    with torch.inference_mode(mode=False):
        return torch.tensor(_by_kernel(name, between, n), device=device, dtype=dtype)


@lru_cache(maxsize=64)
def _by_kernel(name: str, between: tuple[float, float], n: int) -> FloatArray:
    """Return the kernel's weights of n samples without ties, by ascending rank, shape (n,)."""
    ones = np.ones(n)
    untied = TieGroups(np.arange(n, 0, -1.0), ones, ones)
    descending: FloatArray = np.asarray(RANK_WEIGHTS[name].kernel(between)(untied))
    return descending[::-1].copy()


def _harmonic(r: Tensor, n: int, _: tuple[float, float]) -> Tensor:
    return float(harmonic(float(n))) - float(np.euler_gamma) - torch.digamma(n - r + 1.0)


def _ramp(r: Tensor, n: int, between: tuple[float, float]) -> Tensor:
    """Integrate over the interval how much of the sample is accepted.

    A sample of rank r is accepted while n c goes from n - r to n - r + 1, so it counts with
    clip(n c - (n - r), 0, 1) at coverage c.
    """
    low, high = between
    return (_accepted(n * high - (n - r)) - _accepted(n * low - (n - r))) / n


def _accepted(x: Tensor) -> Tensor:
    """Integral of clip(t, 0, 1) from 0 to x."""
    return torch.where(x < 1.0, x.clamp(min=0.0, max=1.0) ** 2 / 2.0, x - 0.5)


def _interpolated(r: Tensor, n: int, between: tuple[float, float]) -> Tensor:
    """Join the kernel's partial AURC weights at whole ranks by straight lines."""
    table = at_whole_ranks("partial-aurc", between, n, r.device, r.dtype)
    # NaN has no place; it comes back through the fraction.
    below = r.detach().nan_to_num(1.0).clamp(1, max(1, n - 1)).floor()
    at = below.long()
    above = (at + 1).clamp(max=n)
    return table[at - 1] + (r - below) * (table[above - 1] - table[at - 1])


_ZHOU = "Zhou et al. (2025), {}, https://arxiv.org/abs/2410.15361"

#: Every named weighting, in the order the documentation shows them.
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
        partial=True,
        averages_ties=False,
    ),
    RankWeights(
        "partial-augrc",
        "Partial AUGRC",
        "partial_augrc(low=, high=)",
        lambda between: rank_weight_from_vertices(partial_generalized_weights(*between)),
        _ramp,
        "Traub et al. (2024), eq. 6, https://arxiv.org/abs/2407.01032",
        partial=True,
    ),
):
    RANK_WEIGHTS.add(_entry)


#: From ascending ranks (1 is the least confident) and the number of samples to weights.
OwnWeights: TypeAlias = Callable[[Tensor, int], Tensor]


@dataclass(frozen=True)
class Weighting:
    """What was asked for, validated: a name in the catalogue, or a function of the caller."""

    asked: str | OwnWeights
    #: The coverage interval.
    between: tuple[float, float] = (0.0, 1.0)

    @property
    def named(self) -> RankWeights | None:
        """The catalogue's entry; None for a function of the caller."""
        return RANK_WEIGHTS[self.asked] if isinstance(self.asked, str) else None

    @property
    def by_rank(self) -> bool:
        """Whether the weight of a sample depends on nothing but the ranks that it occupies."""
        return self.named is None or self.named.averages_ties

    @property
    def phi(self) -> RankWeight:
        """The kernel's weight function over tie groups."""
        return RANK_WEIGHTS[str(self.asked)].kernel(self.between)

    def at_whole_ranks(self, n: int, like: Tensor) -> Tensor:
        """Return the weights at the ranks 1 to n, with the precision and device of `like`."""
        if isinstance(self.asked, str):
            return at_whole_ranks(self.asked, self.between, n, like.device, like.dtype)
        ranks = torch.arange(1, n + 1, device=like.device, dtype=like.dtype)
        return _checked(self.asked(ranks, n), ranks).detach()

    def at_real_ranks(self, ranks: Tensor, n: int) -> Tensor:
        """Return the weights at soft ranks; gradients flow back to these."""
        if isinstance(self.asked, str):
            return RANK_WEIGHTS[self.asked].smooth(ranks, n, self.between)
        return _checked(self.asked(ranks, n), ranks)


def _checked(out: Any, ranks: Tensor) -> Tensor:
    """Check what the caller's function returned."""
    if isinstance(out, Tensor) and out.shape == ranks.shape:
        return out.to(ranks)
    found = tuple(out.shape) if isinstance(out, Tensor) else type(out).__name__
    raise InputError(
        "`weights` must return one weight for each rank, a tensor of shape "
        f"{tuple(ranks.shape)}; got {found}"
    )


def weighting(weights: str | OwnWeights, between: tuple[float, float] | None) -> Weighting:
    """Validate a choice of weights and the coverage interval that goes with it."""
    if not isinstance(weights, str):
        return _of_the_caller(weights, between)
    if weights not in RANK_WEIGHTS:
        known = ", ".join(map(repr, RANK_WEIGHTS))
        raise UnknownNameError(
            f"`weights` must be one of {known} or a function of (ranks, n); got {weights!r}."
            f"{suggest(weights, RANK_WEIGHTS)}"
        )
    entry = RANK_WEIGHTS[weights]
    if not entry.partial:
        _refuse(between, repr(weights))
        return Weighting(weights)
    if between is None:
        raise MissingInputError(
            f"{weights!r} needs the coverages that matter: pass `between=(low, high)`, "
            "such as (0.5, 1.0)"
        )
    return Weighting(weights, _interval(between))


def _of_the_caller(weights: Any, between: tuple[float, float] | None) -> Weighting:
    if not callable(weights):
        raise InputError(f"`weights` must be a name or a function of (ranks, n); got {weights!r}")
    _refuse(between, "a function of your own")
    return Weighting(weights)


def _refuse(between: object, what: str) -> None:
    if between is not None:
        raise InputError(
            f"`between` goes with 'partial-aurc' and 'partial-augrc', not with {what}; drop it"
        )


def _interval(between: Any) -> tuple[float, float]:
    try:
        low, high = between
    except (TypeError, ValueError):
        raise InputError(f"`between` must be two coverages (low, high); got {between!r}") from None
    low = checks.fraction(low, "between[0]")
    high = checks.fraction(high, "between[1]")
    if low >= high:
        raise DomainError(f"`between` must go from a lower to a higher coverage; got {between!r}")
    return low, high
