"""Exchange samples between processes that train together (`torch.distributed`).

Each process computes the objective on the samples of all processes. In each process, only the
samples of this process have a gradient. Therefore, the sum of the gradients over all processes is
the gradient of the objective.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch import distributed as dist


@dataclass(frozen=True, eq=False)
class Batch:
    """The samples of a batch, in the widest floating-point type of their device."""

    confidence: Tensor
    loss: Tensor
    weight: Tensor | None = None
    #: Number of processes whose samples the batch contains.
    processes: int = 1


def has_several_processes() -> bool:
    """Return whether several processes of `torch.distributed` train together."""
    return bool(dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1)


def gather_batch(batch: Batch) -> Batch:
    """Concatenate the samples of all processes, in the order of the processes."""
    n_samples = batch.confidence.shape[0]
    headers = _gather_integers([n_samples, batch.weight is not None], batch.confidence.device)
    sizes = [size for size, _ in headers]
    columns = [batch.confidence, batch.loss]
    if any(has_weight for _, has_weight in headers):
        ones = torch.ones_like(batch.confidence)
        columns.append(ones if batch.weight is None else batch.weight.to(ones))
    tables = _gather_tables(torch.stack([column.detach() for column in columns]), sizes)
    gathered = []
    for i, column in enumerate(columns):
        column_of_process = [table[i] for table in tables]
        # The received samples of this process have no gradient, so the original ones are used.
        column_of_process[dist.get_rank()] = column
        gathered.append(torch.cat(column_of_process))
    weight = gathered[2] if len(gathered) > 2 else None
    return Batch(gathered[0], gathered[1], weight, processes=len(tables))


def mean_over_processes(x: Tensor) -> Tensor:
    """Return the mean of a tensor over all processes, without a gradient."""
    if not has_several_processes():
        return x.detach()
    total = x.detach().clone()
    dist.all_reduce(total)
    return total / dist.get_world_size()


def gather_vectors(x: Tensor) -> Tensor:
    """Concatenate vectors of different lengths from all processes, without gradients."""
    if not has_several_processes():
        return x.detach()
    sizes = [size for (size,) in _gather_integers([len(x)], x.device)]
    tables = _gather_tables(x.detach()[None], sizes)
    return torch.cat([table[0] for table in tables])


def _gather_integers(numbers: list[int], device: torch.device) -> list[list[int]]:
    """Return the integers that each process sends, as a list of lists."""
    sent = torch.tensor(numbers, device=device)
    received = [torch.empty_like(sent) for _ in range(dist.get_world_size())]
    dist.all_gather(received, sent)
    integers: list[list[int]] = torch.stack(received).tolist()
    return integers


def _gather_tables(table: Tensor, sizes: list[int]) -> list[Tensor]:
    """Return the table of every process. `sizes` contains the number of columns of each table."""
    padded = table.new_zeros((len(table), max(sizes)))
    padded[:, : table.shape[1]] = table
    received = [torch.empty_like(padded) for _ in sizes]
    dist.all_gather(received, padded)
    return [padded_table[:, :size] for padded_table, size in zip(received, sizes, strict=True)]
