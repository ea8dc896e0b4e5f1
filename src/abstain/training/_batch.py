"""What is checked of a batch: one integer a sample, where checking it costs nothing."""

from typing import Any

import torch
from torch import Tensor

from abstain.errors import DomainError, InputError, ShapeError


def integers(x: Any, name: str, n: int, device: torch.device | None) -> Tensor:
    """Validate one non-negative integer a sample; the values are looked at on the CPU only."""
    if not isinstance(x, Tensor):
        msg = f"`{name}` must be a torch.Tensor; got {type(x).__name__}"
        raise InputError(msg)
    if x.shape != (n,) or n == 0:
        rule = f"must have one entry for each of the {n} samples" if n else "must not be empty"
        msg = f"`{name}` {rule}; got shape {tuple(x.shape)}"
        raise ShapeError(msg)
    if x.is_floating_point() or x.is_complex() or x.dtype == torch.bool:
        msg = f"`{name}` must be integers; got {x.dtype}"
        raise DomainError(msg)
    if device is not None and x.device != device:
        msg = f"`{name}` must be on the device of the output, {device}; got {x.device}"
        raise InputError(msg)
    if x.device.type == "cpu" and int(x.amin()) < 0:
        msg = f"`{name}` must not be negative; got {int(x.amin())}"
        raise DomainError(msg)
    out: Tensor = x.long()
    return out
