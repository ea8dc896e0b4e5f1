"""Hard ranks: from confidences to the weight of each sample, without a gradient.

Two ways to the same number. Where a weight depends on the rank alone, the kernel's weights at the
ranks 1 to n are looked up and averaged over ties: a sort and two searches, and a device never has
to wait for the host. Sample weights, and areas with a vertex at each distinct confidence only,
need the tie groups themselves.
"""

from typing import Any

from abstain._foundation.ranks import group_ties, home_in
from abstain.metrics.rank_weights import RankWeight
from abstain.training._library import torch


def wide(device: "torch.device") -> "torch.dtype":
    """Return float64, or float32 on a device that has none."""
    return torch.float32 if device.type == "mps" else torch.float64


def averaged_over_ties(
    confidence: "torch.Tensor", population: "torch.Tensor", values: "torch.Tensor"
) -> "torch.Tensor":
    """Return the mean of `values` over the ranks that each confidence occupies.

    `values` (m,) belong to the ascending ranks of the m confidences of the population, of which
    each `confidence` is one.
    """
    ordered = torch.sort(population).values
    below = torch.searchsorted(ordered, confidence)
    through = torch.searchsorted(ordered, confidence, right=True)
    count = through - below
    sums = torch.cat((values.new_zeros(1), torch.cumsum(values, 0)))
    mean = (sums[through] - sums[below]) / count
    # A difference of long sums is rounded; a sample alone keeps its own weight to the last digit.
    return torch.where(count == 1, values[below.clamp(max=values.shape[0] - 1)], mean)


def by_tie_groups(
    confidence: "torch.Tensor", weight: "torch.Tensor | None", phi: RankWeight
) -> "torch.Tensor":
    """Return the kernel's weight of each sample's tie group; 0 for a sample of weight 0."""
    # The kernel works in float64: what has none is served by the host.
    place = torch.device("cpu") if confidence.device.type == "mps" else confidence.device
    c: Any = confidence.to(place)
    w: Any = None if weight is None else weight.to(place, torch.float64)
    none: Any = torch.zeros_like(c)
    groups = group_ties(c, none, w)
    home = torch.as_tensor(home_in(groups, c, w))
    of_group = torch.as_tensor(phi(groups))
    each = torch.where(home < 0, 0.0, of_group[home.clamp(min=0)])
    return each.to(confidence)
