"""From one step's confidences and losses to the rank-weighted mean loss, by hard or soft ranks."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from abstain._foundation import checks
from abstain._foundation.device import validate_weight_like
from abstain.errors import InputError, ShapeError
from abstain.training._processes import Batch, gathered
from abstain.training._weights import Weighting, averaged_over_ties, by_tie_groups, on_host
from abstain.training.heads import wide_type, widest_type

#: A spread below this share of the largest confidence is the rounding of equal numbers.
ROUNDING = 1e-6

#: Pairs looked at together: on the host few enough to stay near the processor, on a device
#: enough to keep it busy.
PAIRS, DEVICE_PAIRS = 1 << 18, 1 << 24


def temperature_of(soft: Any) -> float | None:
    """Validate the temperature; None is for hard ranks."""
    if isinstance(soft, bool):
        # It would count as a temperature of 1, ten times a usual one.
        raise InputError(
            f"`soft` must be a temperature, such as 0.1, or None for hard ranks; got {soft!r}"
        )
    return None if soft is None else checks.positive(soft, "soft")


def spread(population: Tensor) -> Tensor:
    """Return the standard deviation of the confidences, without a gradient; 1 if all are equal."""
    values = population.detach()
    deviation = values.std(unbiased=False)
    return torch.where(deviation > ROUNDING * values.abs().max(), deviation, 1.0)


def soft_ranks(
    confidence: Tensor,
    recent: Tensor | None,
    temperature: Tensor,
    precision: torch.dtype,
) -> Tensor:
    """Return 1/2 + sum over j of sigmoid((c_i - c_j) / temperature), shape (n,).

    j runs over the batch and over `recent`. From 1 to the number of all of them; tied samples get
    the mean of their ranks. The pairs are computed in `precision`.
    """
    # Centered in the wide precision, so that the narrow one keeps the differences.
    center = confidence.detach().mean()
    scaled = ((confidence - center) / temperature).to(precision)
    against = scaled
    if recent is not None:
        against = torch.cat((scaled, ((recent - center) / temperature).to(precision)))
    below: Tensor = _Below.apply(scaled, against)  # type: ignore[no-untyped-call]
    return 0.5 + below.to(confidence.dtype)


class _Below(torch.autograd.Function):
    """For each x the sum over y of sigmoid(x - y), in blocks of rows; no table of pairs is kept."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(x, y)
        return torch.cat([_sigmoids(x[rows], y).sum(dim=1) for rows in _blocks(x, y)])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        x, y = ctx.saved_tensors
        to_x, to_y = torch.empty_like(x), torch.zeros_like(y)
        for rows in _blocks(x, y):
            s = _sigmoids(x[rows], y)
            # The slope of the sigmoid is s (1 - s).
            pull = s.addcmul_(s, s, value=-1.0).mul_(gradient[rows, None])
            to_x[rows] = pull.sum(dim=1)
            to_y -= pull.sum(dim=0)
        return to_x, to_y


def _sigmoids(x: Tensor, y: Tensor) -> Tensor:
    return (x[:, None] - y[None, :]).sigmoid_()


def _blocks(x: Tensor, y: Tensor) -> Iterator[slice]:
    pairs = PAIRS if x.device.type == "cpu" else DEVICE_PAIRS
    step = max(1, pairs // y.shape[0])
    return (slice(start, start + step) for start in range(0, x.shape[0], step))


def refuse_backward(value: Tensor, source: Tensor) -> Tensor:
    """Return a value whose backward pass says why it has no gradient.

    Only where a gradient is asked of `source` and none goes through `value`: evaluating stays
    possible, and torch's own words would not name what to change.
    """
    if value.requires_grad or not (torch.is_grad_enabled() and source.requires_grad):
        return value
    refused: Tensor = _Refused.apply(value, source)  # type: ignore[no-untyped-call]
    return refused


class _Refused(torch.autograd.Function):
    """The value as it is; an error in the place of its gradient."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, source: Tensor) -> Tensor:  # noqa: ARG004
        return value.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:  # noqa: ARG004
        raise InputError(
            "the loss has no gradient: hard ranks have none, and the losses that they weight (the "
            "0/1 loss has none) gave none; give `soft`, such as soft=0.1, or another `base`"
        )


#: What a place holds that no confidence has taken yet; finite confidences alone come in.
EMPTY = float("inf")


class RecentConfidences(torch.nn.Module):
    """The last confidences seen in training: first in, first out."""

    #: The newest last; infinity where none is yet. A buffer, so it is part of the state dict.
    values: Tensor

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("values", torch.full((size,), EMPTY, dtype=torch.float64))
        self._filled = 0

    def known(self, like: Tensor) -> Tensor | None:
        """Return the confidences kept, with the device and precision of `like`; None if none."""
        if self.values.device != like.device:
            # A loss is seldom moved by hand, so the queue follows what it is fed.
            self.values = self.values.to(like)
        if self._filled == 0:
            return None
        return self.values[self.values.shape[0] - self._filled :].to(like.dtype)

    def add(self, confidence: Tensor) -> None:
        """Append the confidences of a batch; a batch with NaN or infinity is left out."""
        size = self.values.shape[0]
        new = confidence.detach().to(self.values)[-size:]
        moved = torch.cat((self.values[new.shape[0] :], new))
        usable = torch.isfinite(confidence.detach()).all()
        if self._filled == size and self.values.device.type != "cpu":
            self.values = torch.where(usable, moved, self.values)
        elif bool(usable):
            # Of a device the host has to know only until the queue is full.
            self.values = moved
            self._filled = min(size, self._filled + int(new.shape[0]))

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> Any:  # noqa: FBT002
        """Follow the module to a device, but keep the digits where the module drops them."""
        kept = self.values
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        place = self.values.device
        self.values = kept.to(place, widest_type(place)) if place.type != "meta" else self.values
        return self

    def _load_from_state_dict(
        self, state_dict: Mapping[str, Any], prefix: str, *rest: Any, **options: Any
    ) -> None:
        super()._load_from_state_dict(state_dict, prefix, *rest, **options)
        self._filled = int(torch.isfinite(self.values).sum())

    def extra_repr(self) -> str:
        """Say how long the queue is."""
        return f"size={self.values.shape[0]}, filled={self._filled}"


@dataclass(frozen=True)
class Area:
    """What is weighted, and how."""

    weighting: Weighting
    #: The temperature of soft ranks as a share of the spread; None for hard ranks.
    soft: float | None = None

    def value(self, batch: Batch, recent: Tensor | None, precision: torch.dtype) -> Tensor:
        """Return the mean over the batch of weight x loss, without axes."""
        share: Tensor = self.weights(batch, recent, precision) * batch.loss
        mean = share.mean()
        if batch.weight is not None:
            mean = (share * batch.weight).sum() / batch.weight.sum()
        out = mean + _nothing_or_nan(batch.confidence)
        if batch.processes > 1:
            # The gradients of the processes will be averaged, and their sum is wanted.
            out = out.detach() + batch.processes * (out - out.detach())
        return out.to(precision)

    def weights(self, batch: Batch, recent: Tensor | None, precision: torch.dtype) -> Tensor:
        """Return the weight of each sample of the batch, shape (n,)."""
        confidence = batch.confidence if self.soft is not None else batch.confidence.detach()
        n = confidence.shape[0]
        population = confidence if recent is None else torch.cat((confidence, recent))
        if self.soft is not None:
            temperature = self.soft * spread(population)
            ranks = soft_ranks(confidence, recent, temperature, precision)
            return self.weighting.at_real_ranks(ranks, population.shape[0])
        if batch.weight is not None or not self.weighting.by_rank:
            return by_tie_groups(population, batch.weight, self.weighting.phi)[:n]
        values = self.weighting.at_whole_ranks(population.shape[0], population)
        return averaged_over_ties(confidence, population, values)

    def refuse_weight(self, *, ranked_among_others: bool) -> None:
        """Say where sample weights have no meaning by the kernel."""
        reasons = {
            "soft ranks": self.soft is not None,
            "`weights` of your own": self.weighting.named is None,
            "ranks among recent confidences, which have no weights": ranked_among_others,
        }
        for what, found in reasons.items():
            if found:
                raise InputError(
                    f"`weight` does not go with {what}; multiply the loss by it instead"
                )


def _nothing_or_nan(confidence: Tensor) -> Tensor | float:
    """Return 0, or NaN where a confidence is no finite number: among these there are no ranks."""
    values = on_host(confidence)
    if values is None:
        # 0 x NaN makes the whole NaN, and a device is not waited for.
        return (0.0 * confidence.detach()).sum()
    return 0.0 if np.isfinite(values).all() else float("nan")


def batch_of(confidence: Any, loss: Any, weight: Any, *, gather: bool) -> tuple[Batch, torch.dtype]:
    """Check one step's vectors; return them in the widest precision, and the result's precision."""
    for name, x in (("confidence", confidence), ("loss", loss)):
        if not isinstance(x, Tensor):
            raise InputError(f"`{name}` must be a torch.Tensor; got {type(x).__name__}")
        if x.ndim != 1:
            raise ShapeError(
                f"`{name}` must have one number for each sample, shape (n,); got {tuple(x.shape)}"
            )
    _same_length("loss", loss, confidence)
    if loss.device != confidence.device:
        where = f"`confidence` is on {confidence.device} and `loss` on {loss.device}"
        raise InputError(f"`confidence` and `loss` must be on one device; {where}")
    own = loss if loss.dtype.is_floating_point else confidence
    precision = wide_type(own.dtype)
    if not (gather or confidence.shape[0]):
        raise ShapeError(
            "the batch is empty; at least one sample is needed. Skip a batch without samples."
        )
    work = widest_type(confidence.device)
    batch = Batch(confidence.to(work).contiguous(), loss.to(work))
    if weight is not None:
        _same_length("weight", weight, confidence)
        batch = replace(batch, weight=_weights_of(weight, batch.confidence))
    batch = gathered(batch) if gather else batch
    if batch.confidence.shape[0] == 0:
        raise ShapeError("the batches of all processes are empty; at least one sample is needed")
    return batch, precision


def _same_length(name: str, x: Any, confidence: Tensor) -> None:
    if tuple(x.shape) != tuple(confidence.shape):
        raise ShapeError(
            f"`{name}` must have one entry for each of the {confidence.shape[0]} samples; got "
            f"shape {tuple(x.shape)}"
        )


def _weights_of(weight: Any, confidence: Tensor) -> Tensor:
    if confidence.shape[0] == 0:
        return torch.zeros_like(confidence)
    return torch.as_tensor(validate_weight_like(weight, confidence)).to(confidence)
