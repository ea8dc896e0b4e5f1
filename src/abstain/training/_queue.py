"""The confidences of recent batches, so that a small batch is ranked among many samples."""

from collections.abc import Callable, Mapping
from typing import Any

from abstain.training._library import torch
from abstain.training._ranks import wide

#: What a place holds that no confidence has taken yet; finite confidences alone come in.
EMPTY = float("inf")


class RecentConfidences(torch.nn.Module):
    """The last confidences seen in training: first in, first out.

    Parameters
    ----------
    size : int
        How many are kept.

    Attributes
    ----------
    values : Tensor of shape (size,)
        The newest last; infinity where none is yet. A buffer, so it is part of the state dict.
    """

    values: "torch.Tensor"

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("values", torch.full((size,), EMPTY, dtype=torch.float64))
        self._filled = 0

    def known(self, like: "torch.Tensor") -> "torch.Tensor | None":
        """Return the confidences kept, with the device and precision of `like`; None if none."""
        if self.values.device != like.device:
            # A loss is seldom moved by hand, so the queue follows what it is fed.
            self.values = self.values.to(like)
        if self._filled == 0:
            return None
        return self.values[self.values.shape[0] - self._filled :].to(like.dtype)

    def add(self, confidence: "torch.Tensor") -> None:
        """Append the confidences of a batch; a batch with NaN or infinity is left out."""
        size = self.values.shape[0]
        new = confidence.detach().to(self.values)[-size:]
        moved = torch.cat((self.values[new.shape[0] :], new))
        usable = torch.isfinite(confidence.detach()).all()
        if self._filled == size:
            self.values = torch.where(usable, moved, self.values)
        elif bool(usable):
            # Only until the queue is full does the host have to know.
            self.values = moved
            self._filled = min(size, self._filled + int(new.shape[0]))

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> Any:  # noqa: FBT002
        """Follow the module to a device, but keep the digits where the module drops them."""
        kept = self.values
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        place = self.values.device
        self.values = kept.to(place, wide(place)) if place.type != "meta" else self.values
        return self

    def _load_from_state_dict(
        self, state_dict: Mapping[str, Any], prefix: str, *rest: Any, **options: Any
    ) -> None:
        super()._load_from_state_dict(state_dict, prefix, *rest, **options)
        self._filled = int(torch.isfinite(self.values).sum())

    def extra_repr(self) -> str:
        """Say how long the queue is."""
        return f"size={self.values.shape[0]}, filled={self._filled}"
