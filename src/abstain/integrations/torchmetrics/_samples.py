"""The exact state: every sample kept, in a short list of blocks that grow.

torchmetrics keeps a list of one tensor an update, half a kilobyte each however small. Here the
list is cut short by joining its newest blocks, so that a million updates of one sample hold a
few hundred tensors, and each sample is copied a few times in all.
"""

from typing import Any

from abstain.integrations.torchmetrics._library import torch

#: The list is cut when it gets longer.
MOST_BLOCKS = 512

# What a process group can send; the place in the tuple is the code of the type.
_TYPES = (torch.uint8, torch.float16, torch.float32, torch.float64)


def extended(blocks: Any, new: Any) -> list[Any]:
    """Return the blocks with one more, short enough; the list that was given stays as it is.

    A list may be shared between the metrics of a collection, whose `forward` would otherwise
    count a batch once for each of them. A state that was loaded may be one tensor.
    """
    out = [*(blocks if isinstance(blocks, list) else [blocks]), new]
    if len(out) <= MOST_BLOCKS:
        return out
    start = len(out) - MOST_BLOCKS // 2
    size = sum(len(block) for block in out[start:])
    # Older blocks join while they are no larger than what joins them: log2(n) copies a sample.
    while start and len(out[start - 1]) <= size:
        start -= 1
        size += len(out[start])
    return [*out[:start], torch.cat(out[start:])]


def joined(blocks: Any, device: Any) -> Any:
    """Return all samples as one tensor."""
    if isinstance(blocks, torch.Tensor):
        return blocks.to(device)
    if not blocks:
        return torch.empty(0, device=device)
    return torch.cat([block.to(device) for block in blocks])


def sendable(x: Any) -> Any:
    """Return a tensor of a type that every process group can send: bfloat16 widens exactly."""
    return x.to(torch.float32) if x.dtype == torch.bfloat16 else x


def code_of(x: Any) -> int:
    """Return the number that stands for the type of a sendable tensor; -1 without samples."""
    return _TYPES.index(x.dtype) if len(x) else -1


def common_type(codes: list[int]) -> Any:
    """Return the type that holds the samples of every process."""
    # In this order a larger type holds the smaller ones.
    return _TYPES[max(codes)] if max(codes) >= 0 else torch.float32
