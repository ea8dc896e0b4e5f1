"""Validation of the arguments of `update`: confidences and losses, or class scores and labels."""

from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import to_numpy
from abstain.confidence import Score, ScoreNeed
from abstain.confidence import score as confidence_of
from abstain.confidence.registry import find_score
from abstain.errors import DomainError, InputError, ShapeError
from abstain.integrations.torchmetrics._library import torch
from abstain.predictions import Predictions

Inputs: TypeAlias = Literal["confidence", "logits", "probabilities"]

INPUTS = ("confidence", "logits", "probabilities")


class BatchTensors(NamedTuple):
    """Validated tensors of shape (n,) on one device.

    If no weights are passed, `weight` contains ones of type uint8, which need one byte per sample.
    Boolean losses are also converted to uint8.
    """

    confidence: Any
    loss: Any
    weight: Any


def widest_float(device: Any) -> Any:
    """Return float64, or float32 if the device does not support float64."""
    return torch.float32 if device.type == "mps" else torch.float64


def get_score(name: str, inputs: str) -> Score | None:
    """Return the score that computes confidences, or None if the inputs are confidences."""
    if inputs == "confidence":
        return None
    entry = find_score(name)
    available = {ScoreNeed.CLASS_SCORES}
    if inputs == "logits":
        available.add(ScoreNeed.LOGITS)
    unmet = entry.needs - available
    if unmet:
        reasons = "; ".join(sorted(need.value for need in unmet))
        raise InputError(
            f"`score` must be one that {inputs} of shape (n, K) allow; {name!r} {reasons}"
        )
    return entry


def read_batch(
    confidence: Any, loss: Any, weight: Any, *, inputs: str, score: str, device: Any
) -> BatchTensors:
    """Validate a batch, and convert it to the tensors that the state stores."""
    if inputs == "confidence":
        _check_tensor(confidence, "confidence", device)
        _check_tensor(loss, "loss", device)
    else:
        _check_tensor(confidence, inputs, device)
        _check_tensor(loss, "target", device)
    if weight is not None:
        _check_tensor(weight, "weight", device)
        weight = _as_vector(weight)
    if inputs != "confidence":
        confidence, loss = _score_outputs(confidence, loss, inputs, score)
    confidence = _as_vector(confidence)
    loss = _as_vector(loss)
    _validate(confidence, loss, weight)
    return _copy_batch(confidence, loss, weight)


def _copy_batch(confidence: Any, loss: Any, weight: Any) -> BatchTensors:
    """Copy validated tensors. If there are no weights, all weights are 1."""
    dtype = widest_float(confidence.device)
    loss_copy = loss.to(torch.uint8) if loss.dtype == torch.bool else _copy(loss, dtype)
    if weight is None:
        weight_copy = torch.ones(confidence.shape, dtype=torch.uint8, device=confidence.device)
    else:
        weight_copy = _copy(weight, dtype)
    return BatchTensors(_copy(confidence, dtype), loss_copy, weight_copy)


def _check_tensor(x: Any, name: str, device: Any) -> None:
    """Raise an error unless `x` is a tensor on the device of the metric."""
    if not isinstance(x, torch.Tensor):
        raise InputError(f"`{name}` must be a torch.Tensor; got {type(x).__name__}")
    has_same_type = x.device.type == device.type
    if not has_same_type or (device.index is not None and x.device.index != device.index):
        raise InputError(
            f"`{name}` must be on the device of the metric, {device}; got {x.device}. "
            f"Move the metric: metric.to({str(x.device)!r})"
        )


def _as_vector(x: Any) -> Any:
    """Convert a scalar tensor to a tensor with one sample."""
    return x.detach().reshape(1) if x.ndim == 0 else x.detach()


def _copy(x: Any, dtype: Any) -> Any:
    """Copy a tensor, because a view would keep the batch in memory and change with it."""
    return x.clone().contiguous() if x.is_floating_point() else x.to(dtype)


def _validate(confidence: Any, loss: Any, weight: Any) -> None:
    """Raise an error if shapes differ or a value is invalid."""
    tensors = [confidence, loss] if weight is None else [confidence, loss, weight]
    if any(x.ndim != 1 or x.shape != confidence.shape for x in tensors):
        shapes = ", ".join(str(tuple(x.shape)) for x in tensors)
        raise ShapeError(
            "`confidence`, `loss` and `weight` must have one axis (n,) and the same length; "
            f"got shapes {shapes}. Flatten dense outputs first."
        )
    if not _are_valid(tensors):
        checks.confidence(confidence)
        checks.loss(loss)
        checks.weight(weight, length=len(confidence))
    _check_exact_integers(confidence)


def _are_valid(tensors: list[Any]) -> bool:
    """Return whether all values are finite, and losses and weights are non-negative."""
    if tensors[0].device.type == "cpu":
        # For single samples, NumPy needs a fifth of the time of PyTorch.
        arrays = [to_numpy(x, "a batch") for x in tensors]
        are_finite = all(np.isfinite(x).all() for x in arrays)
        return are_finite and not any((x < 0).any() for x in arrays[1:])
    # One number is copied from the device, and the batch is copied only if it is invalid.
    is_valid = torch.isfinite(tensors[0]).all()
    for x in tensors[1:]:
        is_valid = is_valid & torch.isfinite(x).all() & (x >= 0).all()
    return bool(is_valid)


def _check_exact_integers(confidence: Any) -> None:
    """Raise an error if integers would be rounded in the state, because rounding can cause ties."""
    if confidence.is_floating_point():
        return
    stored = confidence.to(widest_float(confidence.device))
    limit = checks.FIRST_INEXACT_INTEGER if stored.dtype == torch.float64 else 1 << 24
    if bool((stored.abs() >= limit).any()):
        value = int(confidence[int(stored.abs().argmax())])
        raise DomainError(
            f"`confidence` must hold integers below {limit:,} in size, which the state keeps "
            f"exactly; got {value:,}. Subtract a constant from all, or pass ranks."
        )


def _score_outputs(outputs: Any, target: Any, inputs: str, score: str) -> tuple[Any, Any]:
    """Compute the confidences and the failures from the outputs of a classifier."""
    if outputs.ndim != 2 or target.shape != outputs.shape[:1]:
        raise ShapeError(
            f"`{inputs}` must have shape (n, K) and `target` (n,); got {tuple(outputs.shape)} "
            f"and {tuple(target.shape)}"
        )
    device = outputs.device
    dtype = widest_float(device)
    if not len(outputs):
        empty = torch.empty(0, dtype=dtype, device=device)
        return empty, empty
    arguments = {inputs: outputs.detach(), "labels": target.detach()}
    predictions = Predictions(**arguments)
    confidence = torch.from_numpy(confidence_of(score, predictions).values)
    is_failure = torch.from_numpy(~predictions.correct)
    return confidence.to(device=device, dtype=dtype), is_failure.to(device)
