"""What processes that train together share; alone, a process agrees with itself.

Of the batches of all processes as one, every process computes the objective of all samples, of
which only its own carry a gradient; those of the others are numbers. The sum over the processes of
their gradients is then the gradient of the whole, also where a sample moves the rank of a sample
elsewhere, and nothing has to be sent back.
"""

from dataclasses import dataclass

from torch import Tensor
from torch import distributed as dist

from abstain.training._library import torch


@dataclass(frozen=True, eq=False)
class Batch:
    """The samples of one step.

    Attributes
    ----------
    confidence, loss : Tensor of shape (n,)
        In the widest precision; the gradient flows to the samples of this process.
    weight : Tensor of shape (n,) or None
        Sample weights.
    processes : int
        How many processes the samples come from.
    """

    confidence: "torch.Tensor"
    loss: "torch.Tensor"
    weight: "torch.Tensor | None" = None
    processes: int = 1


def several_processes() -> bool:
    """Tell whether there are others to gather from."""
    return bool(dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1)


def gathered(own: Batch) -> Batch:
    """Return the samples of all processes in the order of the processes, own ones with gradient."""
    world, rank = dist.get_world_size(), dist.get_rank()
    n = own.confidence.shape[0]
    sizes, weighted = _sizes(own, world)
    columns = [own.confidence, own.loss]
    if weighted:
        ones = torch.ones_like(own.confidence)
        columns.append(ones if own.weight is None else own.weight.to(ones))
    sent = own.confidence.new_zeros((len(columns), max(sizes)))
    sent[:, :n] = torch.stack([column.detach() for column in columns])
    parts = [torch.empty_like(sent) for _ in range(world)]
    dist.all_gather(parts, sent)
    cut = [part[:, :size] for part, size in zip(parts, sizes, strict=True)]
    whole = [
        torch.cat([column if k == rank else part[row] for k, part in enumerate(cut)])
        for row, column in enumerate(columns)
    ]
    return Batch(whole[0], whole[1], whole[2] if weighted else None, world)


def _sizes(own: Batch, world: int) -> tuple[list[int], bool]:
    """Return the number of samples of each process, and whether any has weights."""
    n = own.confidence.shape[0]
    told = torch.tensor([n, own.weight is not None], device=own.confidence.device)
    heard = [torch.empty_like(told) for _ in range(world)]
    dist.all_gather(heard, told)
    found = torch.stack(heard).tolist()
    return [size for size, _ in found], any(flag for _, flag in found)


def mean_over_processes(x: Tensor) -> Tensor:
    """Return the mean of a tensor over processes; no gradient flows through it."""
    if not several_processes():
        return x.detach()
    total = x.detach().clone()
    dist.all_reduce(total)
    return total / dist.get_world_size()


def from_all_processes(x: Tensor) -> Tensor:
    """Join vectors, of any lengths, in the order of the processes; without gradients."""
    if not several_processes():
        return x.detach()
    own = torch.tensor([len(x)], device=x.device)
    lengths = [torch.zeros_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(lengths, own)
    longest = max(int(n) for n in lengths)
    padded = x.detach().new_zeros(longest)
    padded[: len(x)] = x.detach()
    parts = [torch.zeros_like(padded) for _ in lengths]
    dist.all_gather(parts, padded)
    return torch.cat([part[: int(n)] for part, n in zip(parts, lengths, strict=True)])
