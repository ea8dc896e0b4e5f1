"""Compute the mean loss of a batch, weighted by the ranks of the confidences.

Hard ranks are integers without a gradient. Soft ranks are differentiable functions of the
confidences.
"""

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
from abstain.training._processes import Batch, gather_batch
from abstain.training._weights import Weighting, as_host_array, mean_over_ties, tie_group_weights
from abstain.training.heads import at_least_float32_type, widest_type

#: Standard deviation, relative to the largest confidence, up to which confidences count as equal.
ROUNDING = 1e-6

#: Maximum number of pairs of confidences in a block on the CPU, and on a device.
MAX_PAIRS, MAX_DEVICE_PAIRS = 1 << 18, 1 << 24


def check_temperature(soft: Any) -> float | None:
    """Validate the temperature of soft ranks. None means hard ranks."""
    if isinstance(soft, bool):
        # True would mean a temperature of 1, which is ten times the usual temperature.
        raise InputError(
            f"`soft` must be a temperature, such as 0.1, or None for hard ranks; got {soft!r}"
        )
    return None if soft is None else checks.positive(soft, "soft")


def standard_deviation(population: Tensor) -> Tensor:
    """Return the standard deviation without a gradient, or 1 if all confidences are equal."""
    values = population.detach()
    deviation = values.std(unbiased=False)
    return torch.where(deviation > ROUNDING * values.abs().max(), deviation, 1.0)


def soft_ranks(
    confidence: Tensor,
    recent: Tensor | None,
    temperature: Tensor,
    precision: torch.dtype,
) -> Tensor:
    """Return the soft rank of each confidence among the batch and the recent confidences.

    The rank of sample i is 1/2 + sum over j of sigmoid((c_i - c_j) / temperature). The sigmoids are
    computed in `precision`.
    """
    # The mean is subtracted before the conversion, so that `precision` represents the differences.
    center = confidence.detach().mean()
    scaled = ((confidence - center) / temperature).to(precision)
    population = scaled
    if recent is not None:
        scaled_recent = ((recent - center) / temperature).to(precision)
        population = torch.cat((scaled, scaled_recent))
    n_below: Tensor = _SoftCount.apply(scaled, population)  # type: ignore[no-untyped-call]
    return 0.5 + n_below.to(confidence.dtype)


class _SoftCount(torch.autograd.Function):
    """The sum over y of sigmoid(x - y) for each x, computed in blocks."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(x, y)
        return torch.cat([_sigmoids(x[block], y).sum(dim=1) for block in _blocks(x, y)])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """Return the gradients with respect to x and y."""
        x, y = ctx.saved_tensors
        gradient_x = torch.empty_like(x)
        gradient_y = torch.zeros_like(y)
        for block in _blocks(x, y):
            sigmoid = _sigmoids(x[block], y)
            # The derivative of the sigmoid s is s - s^2.
            pair_gradient = sigmoid.addcmul_(sigmoid, sigmoid, value=-1.0)
            pair_gradient.mul_(gradient[block, None])
            gradient_x[block] = pair_gradient.sum(dim=1)
            gradient_y -= pair_gradient.sum(dim=0)
        return gradient_x, gradient_y


def _sigmoids(x: Tensor, y: Tensor) -> Tensor:
    """Return sigmoid(x - y) for all pairs."""
    return (x[:, None] - y[None, :]).sigmoid_()


def _blocks(x: Tensor, y: Tensor) -> Iterator[slice]:
    """Return slices of `x` such that all pairs with `y` fit into memory."""
    max_pairs = MAX_PAIRS if x.device.type == "cpu" else MAX_DEVICE_PAIRS
    step = max(1, max_pairs // y.shape[0])
    return (slice(start, start + step) for start in range(0, x.shape[0], step))


def with_gradient_error(value: Tensor, source: Tensor) -> Tensor:
    """Return the value. If it has no gradient, its backward pass raises an error.

    If `source` needs no gradient, the value is returned unchanged.
    """
    needs_gradient = source.requires_grad and torch.is_grad_enabled()
    if value.requires_grad or not needs_gradient:
        return value
    checked_value: Tensor = _RaiseInBackward.apply(value, source)  # type: ignore[no-untyped-call]
    return checked_value


class _RaiseInBackward(torch.autograd.Function):
    """The identity function with a backward pass that raises an error."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, source: Tensor) -> Tensor:  # noqa: ARG004
        return value.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:  # noqa: ARG004
        raise InputError(
            "the loss has no gradient: hard ranks have none, and neither have the losses that they "
            "weight (such as the 0/1 loss); pass `soft`, such as soft=0.1, or another `base`"
        )


#: Value of an unused entry of the queue. Stored confidences are finite.
EMPTY = float("inf")


class RecentConfidences(torch.nn.Module):
    """A queue of the most recent training confidences."""

    #: Unused entries with the value infinity, followed by the confidences, oldest first. The state
    #: dict contains this buffer.
    values: Tensor

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("values", torch.full((size,), EMPTY, dtype=torch.float64))
        self._filled = 0

    def stored(self, like: Tensor) -> Tensor | None:
        """Return the stored confidences with the device and type of `like`, or None if empty."""
        if self.values.device != like.device:
            # The user may not have moved the loss to the device of the input.
            self.values = self.values.to(like)
        if self._filled == 0:
            return None
        n_unused = self.values.shape[0] - self._filled
        return self.values[n_unused:].to(like.dtype)

    def add(self, confidence: Tensor) -> None:
        """Append the confidences of a batch, unless they contain NaN or infinity."""
        size = self.values.shape[0]
        new = confidence.detach().to(self.values)[-size:]
        shifted = torch.cat((self.values[new.shape[0] :], new))
        is_finite = torch.isfinite(confidence.detach()).all()
        if self._filled == size and self.values.device.type != "cpu":
            # A full queue needs no number from the device, so the host does not wait for it.
            self.values = torch.where(is_finite, shifted, self.values)
        elif bool(is_finite):
            self.values = shifted
            self._filled = min(size, self._filled + int(new.shape[0]))

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> Any:  # noqa: FBT002
        """Move the queue to the device of the module, and keep its dtype."""
        values = self.values
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        device = self.values.device
        if device.type != "meta":
            self.values = values.to(device, widest_type(device))
        return self

    def _load_from_state_dict(
        self, state_dict: Mapping[str, Any], prefix: str, *args: Any, **options: Any
    ) -> None:
        super()._load_from_state_dict(state_dict, prefix, *args, **options)
        self._filled = int(torch.isfinite(self.values).sum())

    def extra_repr(self) -> str:
        """Return the size of the queue and the number of stored confidences."""
        return f"size={self.values.shape[0]}, filled={self._filled}"


@dataclass(frozen=True)
class RankWeightedMean:
    """The mean loss of a batch, weighted by the ranks of the confidences."""

    weighting: Weighting
    #: Temperature of soft ranks relative to the standard deviation, or None for hard ranks.
    soft: float | None = None

    def value(self, batch: Batch, recent: Tensor | None, precision: torch.dtype) -> Tensor:
        """Return the mean of rank weight times loss over the batch as a scalar tensor."""
        weighted_loss: Tensor = self.weights(batch, recent, precision) * batch.loss
        mean = weighted_loss.mean()
        if batch.weight is not None:
            mean = (weighted_loss * batch.weight).sum() / batch.weight.sum()
        value = mean + _nan_if_not_finite(batch.confidence)
        if batch.processes > 1:
            # The gradients are averaged over the processes later, but their sum is needed.
            value = value.detach() + batch.processes * (value - value.detach())
        return value.to(precision)

    def weights(self, batch: Batch, recent: Tensor | None, precision: torch.dtype) -> Tensor:
        """Return the rank weight of each sample in the batch, shape (n,)."""
        confidence = batch.confidence if self.soft is not None else batch.confidence.detach()
        population = confidence if recent is None else torch.cat((confidence, recent))
        if self.soft is not None:
            temperature = self.soft * standard_deviation(population)
            ranks = soft_ranks(confidence, recent, temperature, precision)
            return self.weighting.at_real_ranks(ranks, population.shape[0])
        if batch.weight is None and self.weighting.depends_on_rank_only:
            weights_by_rank = self.weighting.at_whole_ranks(population.shape[0], population)
            return mean_over_ties(confidence, population, weights_by_rank)
        population_weights = tie_group_weights(population, batch.weight, self.weighting.phi)
        return population_weights[: confidence.shape[0]]

    def check_no_weight(self, *, has_recent: bool) -> None:
        """Raise an InputError if the options do not permit sample weights."""
        if self.soft is not None:
            option = "soft ranks"
        elif self.weighting.entry is None:
            option = "a function as `weights`"
        elif has_recent:
            option = "ranks among recent confidences, which have no weights"
        else:
            return
        raise InputError(
            f"`weight` is not supported with {option}; multiply the loss by it instead"
        )


def _nan_if_not_finite(confidence: Tensor) -> Tensor | float:
    """Return 0, or NaN if a confidence is not finite."""
    values = as_host_array(confidence)
    if values is None:
        # 0 x NaN is NaN, so the host does not have to wait for the device.
        return (0.0 * confidence.detach()).sum()
    return 0.0 if np.isfinite(values).all() else float("nan")


def build_batch(
    confidence: Any, loss: Any, weight: Any, *, gather: bool
) -> tuple[Batch, torch.dtype]:
    """Validate the vectors of a batch, and return the `Batch` and the dtype of the loss.

    With `gather`, the batch contains the samples of all processes.
    """
    _check_vector("confidence", confidence)
    _check_vector("loss", loss)
    _check_same_length("loss", loss, confidence)
    if loss.device != confidence.device:
        raise InputError(
            "`confidence` and `loss` must be on one device; `confidence` is on "
            f"{confidence.device} and `loss` on {loss.device}"
        )
    if not gather and confidence.shape[0] == 0:
        raise ShapeError(
            "the batch is empty; at least one sample is needed. Skip a batch without samples."
        )
    source = loss if loss.dtype.is_floating_point else confidence
    precision = at_least_float32_type(source.dtype)
    wide_type = widest_type(confidence.device)
    batch = Batch(confidence.to(wide_type).contiguous(), loss.to(wide_type))
    if weight is not None:
        _check_same_length("weight", weight, confidence)
        batch = replace(batch, weight=_check_weight(weight, batch.confidence))
    if gather:
        batch = gather_batch(batch)
    if batch.confidence.shape[0] == 0:
        raise ShapeError("the batches of all processes are empty; at least one sample is needed")
    return batch, precision


def _check_vector(name: str, x: Any) -> None:
    """Raise an error if an argument is not a tensor of shape (n,)."""
    if not isinstance(x, Tensor):
        raise InputError(f"`{name}` must be a torch.Tensor; got {type(x).__name__}")
    if x.ndim != 1:
        raise ShapeError(
            f"`{name}` must have one number for each sample, shape (n,); got {tuple(x.shape)}"
        )


def _check_same_length(name: str, x: Any, confidence: Tensor) -> None:
    if tuple(x.shape) != tuple(confidence.shape):
        raise ShapeError(
            f"`{name}` must have one entry for each of the {confidence.shape[0]} samples; got "
            f"shape {tuple(x.shape)}"
        )


def _check_weight(weight: Any, confidence: Tensor) -> Tensor:
    if confidence.shape[0] == 0:
        return torch.zeros_like(confidence)
    return torch.as_tensor(validate_weight_like(weight, confidence)).to(confidence)
