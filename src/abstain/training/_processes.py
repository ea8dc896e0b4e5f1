"""What processes that train together must agree on; alone, a process agrees with itself."""

import torch
from torch import Tensor, distributed

from abstain.training._gather import several_processes


def mean_over_processes(x: Tensor) -> Tensor:
    """Return the mean of a tensor over processes; no gradient flows through it."""
    if not several_processes():
        return x.detach()
    total = x.detach().clone()
    distributed.all_reduce(total)
    return total / distributed.get_world_size()


def from_all_processes(x: Tensor) -> Tensor:
    """Join vectors, of any lengths, in the order of the processes; without gradients."""
    if not several_processes():
        return x.detach()
    own = torch.tensor([len(x)], device=x.device)
    lengths = [torch.zeros_like(own) for _ in range(distributed.get_world_size())]
    distributed.all_gather(lengths, own)
    longest = max(int(n) for n in lengths)
    padded = x.detach().new_zeros(longest)
    padded[: len(x)] = x.detach()
    parts = [torch.zeros_like(padded) for _ in lengths]
    distributed.all_gather(parts, padded)
    return torch.cat([part[: int(n)] for part, n in zip(parts, lengths, strict=True)])
