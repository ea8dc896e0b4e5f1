"""Data exchange between processes that train together (`torch.distributed`).

Every process computes the objective from the samples of all processes. Only the samples of this
process have a gradient, and all other samples are constants. The sum of the gradients over the
processes is then the gradient of the common objective. This holds even if a sample changes the rank
of a sample in another process. No gradients need to be sent between processes.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch import distributed as dist


@dataclass(frozen=True, eq=False)
class Batch:
    """The samples of one training step in the widest precision.

    Only the samples of this process have a gradient.
    """

    confidence: Tensor
    loss: Tensor
    weight: Tensor | None = None
    #: Number of processes from which the samples come.
    processes: int = 1


def has_several_processes() -> bool:
    """Return whether there are other processes."""
    return bool(dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1)


def gather_batch(batch: Batch) -> Batch:
    """Return the samples of all processes, in the order of the processes."""
    rank, n_samples = dist.get_rank(), batch.confidence.shape[0]
    headers = _gather_integers([n_samples, batch.weight is not None], batch.confidence.device)
    sizes = [size for size, _ in headers]
    has_weights = any(has_weight for _, has_weight in headers)
    columns = [batch.confidence, batch.loss]
    if has_weights:
        ones = torch.ones_like(batch.confidence)
        columns.append(ones if batch.weight is None else batch.weight.to(ones))
    tables = _gather_tables(torch.stack([column.detach() for column in columns]), sizes)
    # Only the samples of this process have a gradient.
    gathered = [
        torch.cat([column if k == rank else table[row] for k, table in enumerate(tables)])
        for row, column in enumerate(columns)
    ]
    weight = gathered[2] if has_weights else None
    return Batch(gathered[0], gathered[1], weight, len(tables))


def mean_over_processes(x: Tensor) -> Tensor:
    """Return the mean of a tensor over all processes, without a gradient."""
    if not has_several_processes():
        return x.detach()
    total = x.detach().clone()
    dist.all_reduce(total)
    return total / dist.get_world_size()


def gather_vectors(x: Tensor) -> Tensor:
    """Concatenate the vectors of all processes, which may differ in length, without gradients."""
    if not has_several_processes():
        return x.detach()
    sizes = [n for (n,) in _gather_integers([len(x)], x.device)]
    return torch.cat([table[0] for table in _gather_tables(x.detach()[None], sizes)])


def _gather_integers(numbers: list[int], device: torch.device) -> list[list[int]]:
    """Return a list of integers from every process."""
    sent = torch.tensor(numbers, device=device)
    received = [torch.empty_like(sent) for _ in range(dist.get_world_size())]
    dist.all_gather(received, sent)
    integers: list[list[int]] = torch.stack(received).tolist()
    return integers


def _gather_tables(table: Tensor, sizes: list[int]) -> list[Tensor]:
    """Return the table (k, n) of every process, where `sizes` contains the column counts n."""
    padded = table.new_zeros((len(table), max(sizes)))
    padded[:, : table.shape[1]] = table
    received = [torch.empty_like(padded) for _ in sizes]
    dist.all_gather(received, padded)
    return [padded_table[:, :size] for padded_table, size in zip(received, sizes, strict=True)]
