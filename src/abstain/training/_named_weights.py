"""The weightings that have a name: the kernel's values at whole ranks, smooth ones in between.

At whole ranks every number here is computed by `metrics.rank_weights`. A soft rank is no whole
number; `smooth` is the same function of real ranks, which the tests hold against the kernel.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from abstain._foundation.catalogue import Catalogue
from abstain._foundation.ranks import TieGroups
from abstain._foundation.special import harmonic
from abstain.metrics.rank_weights import (
    RankWeight,
    augrc_weight,
    log_weight,
    partial_generalized,
    partial_selective,
    plugin_weight,
    rank_weight,
    sele_weight,
)
from abstain.training._library import torch
from abstain.typing import FloatArray

#: From real ranks, the number of samples and the coverage interval to weights.
Smooth: TypeAlias = Callable[["torch.Tensor", int, tuple[float, float]], "torch.Tensor"]


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
) -> "torch.Tensor":
    """Keep the weights where they are used: batches of one size need them once."""
    # A batch without gradients may be the first of its size; the next one needs a plain tensor.
    with torch.inference_mode(mode=False):
        return torch.tensor(_by_kernel(name, between, n), device=device, dtype=dtype)


@lru_cache(maxsize=64)
def _by_kernel(name: str, between: tuple[float, float], n: int) -> FloatArray:
    """Return the kernel's weights of n samples without ties, by ascending rank, shape (n,)."""
    ones = np.ones(n)
    untied = TieGroups(np.arange(n, 0, -1.0), ones, ones, np.ones(n, dtype=np.int64))
    descending: FloatArray = np.asarray(RANK_WEIGHTS[name].kernel(between)(untied))
    return descending[::-1].copy()


def _harmonic(r: "torch.Tensor", n: int, _: tuple[float, float]) -> "torch.Tensor":
    return float(harmonic(float(n))) - float(np.euler_gamma) - torch.digamma(n - r + 1.0)


def _log(r: "torch.Tensor", n: int, _: tuple[float, float]) -> "torch.Tensor":
    return -torch.log1p(-r / (n + 1.0))


def _share(r: "torch.Tensor", n: int, _: tuple[float, float]) -> "torch.Tensor":
    return r / n


def _mid_share(r: "torch.Tensor", n: int, _: tuple[float, float]) -> "torch.Tensor":
    return (r - 0.5) / n


def _ramp(r: "torch.Tensor", n: int, between: tuple[float, float]) -> "torch.Tensor":
    """Integrate over the interval how much of the sample is accepted.

    A sample of rank r is accepted while n c goes from n - r to n - r + 1, so it counts with
    clip(n c - (n - r), 0, 1) at coverage c.
    """
    low, high = between
    return (_accepted(n * high - (n - r)) - _accepted(n * low - (n - r))) / n


def _accepted(x: "torch.Tensor") -> "torch.Tensor":
    """Integral of clip(t, 0, 1) from 0 to x."""
    return torch.where(x < 1.0, x.clamp(min=0.0, max=1.0) ** 2 / 2.0, x - 0.5)


def _interpolated(r: "torch.Tensor", n: int, between: tuple[float, float]) -> "torch.Tensor":
    """Join the kernel's partial AURC weights at whole ranks by straight lines."""
    table = at_whole_ranks("partial-aurc", between, n, r.device, r.dtype)
    # NaN has no place; it comes back through the fraction.
    below = r.detach().nan_to_num(1.0).clamp(1, max(1, n - 1)).floor()
    at = below.long()
    above = (at + 1).clamp(max=n)
    return table[at - 1] + (r - below) * (table[above - 1] - table[at - 1])


_ZHOU = "Zhou et al. (2025), {}, https://arxiv.org/abs/2410.15361"

#: Every named weighting, in the order the documentation shows them.
RANK_WEIGHTS: Catalogue[RankWeights] = Catalogue("rank weights", listed="list rank-weights")

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
        _log,
        _ZHOU.format("eq. 18"),
    ),
    RankWeights(
        "sele",
        "SELE",
        'aurc(estimator="sele")',
        lambda _: sele_weight,
        _share,
        "Franc et al. (2023), https://jmlr.org/papers/v24/21-0048.html",
    ),
    RankWeights(
        "augrc",
        "AUGRC",
        "augrc()",
        lambda _: augrc_weight,
        _mid_share,
        "Traub et al. (2024), eq. 6, https://arxiv.org/abs/2407.01032",
    ),
    RankWeights(
        "partial-aurc",
        "Partial AURC",
        "partial_aurc(low=, high=)",
        lambda between: rank_weight(partial_selective(*between)),
        _interpolated,
        "code of FD-Shifts (rc_stats.py), https://github.com/IML-DKFZ/fd-shifts",
        partial=True,
        averages_ties=False,
    ),
    RankWeights(
        "partial-augrc",
        "Partial AUGRC",
        "partial_augrc(low=, high=)",
        lambda between: rank_weight(partial_generalized(*between)),
        _ramp,
        "Traub et al. (2024), eq. 6, https://arxiv.org/abs/2407.01032",
        partial=True,
    ),
):
    RANK_WEIGHTS.add(_entry)
