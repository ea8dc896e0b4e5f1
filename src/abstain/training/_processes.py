"""What processes that train together share; alone, a process agrees with itself.

Of the batches of all processes as one, every process computes the objective of all samples, of
which only its own carry a gradient; those of the others are numbers. The sum over the processes of
their gradients is then the gradient of the whole, also where a sample moves the rank of a sample
elsewhere, and nothing has to be sent back.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch import distributed as dist


@dataclass(frozen=True, eq=False)
class Batch:
    """The samples of one step, in the widest precision, and how many processes they come from.

    The gradient flows to the samples of this process.
    """

    confidence: Tensor
    loss: Tensor
    weight: Tensor | None = None
    processes: int = 1


def several_processes() -> bool:
    """Tell whether there are others to gather from."""
    return bool(dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1)


def gathered(own: Batch) -> Batch:
    """Return the samples of all processes in the order of the processes, own ones with gradient."""
    rank, n = dist.get_rank(), own.confidence.shape[0]
    heard = _heard([n, own.weight is not None], own.confidence.device)
    sizes, weighted = [size for size, _ in heard], any(has for _, has in heard)
    columns = [own.confidence, own.loss]
    if weighted:
        ones = torch.ones_like(own.confidence)
        columns.append(ones if own.weight is None else own.weight.to(ones))
    parts = _gathered(torch.stack([column.detach() for column in columns]), sizes)
    whole = [
        torch.cat([column if k == rank else part[row] for k, part in enumerate(parts)])
        for row, column in enumerate(columns)
    ]
    return Batch(whole[0], whole[1], whole[2] if weighted else None, len(parts))


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
    sizes = [n for (n,) in _heard([len(x)], x.device)]
    return torch.cat([part[0] for part in _gathered(x.detach()[None], sizes)])


def _heard(numbers: list[int], device: torch.device) -> list[list[int]]:
    """Return a few numbers of every process."""
    told = torch.tensor(numbers, device=device)
    heard = [torch.empty_like(told) for _ in range(dist.get_world_size())]
    dist.all_gather(heard, told)
    found: list[list[int]] = torch.stack(heard).tolist()
    return found


def _gathered(own: Tensor, sizes: list[int]) -> list[Tensor]:
    """Return the rows (k, n) of every process, where each has an n of its own."""
    sent = own.new_zeros((len(own), max(sizes)))
    sent[:, : own.shape[1]] = own
    parts = [torch.empty_like(sent) for _ in sizes]
    dist.all_gather(parts, sent)
    return [part[:, :size] for part, size in zip(parts, sizes, strict=True)]
