"""From the arguments of `update` to checked tensors: any confidence and loss, or model outputs."""

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
    """Checked tensors of shape (n,) on one device that nobody else writes to.

    Without weights `weight` is uint8 ones: a byte a sample, and states of streams with and
    without weights can be joined. Integer and boolean losses are uint8 where 0/1.
    """

    confidence: Any
    loss: Any
    weight: Any


def double(device: Any) -> Any:
    """Return float64, or float32 where the device has none."""
    return torch.float32 if device.type == "mps" else torch.float64


def usable_score(name: str, inputs: str) -> Score | None:
    """Return the score that makes confidences of such inputs; None where they are confidences."""
    if inputs == "confidence":
        return None
    entry = find_score(name)
    unmet = entry.needs - {
        ScoreNeed.CLASS_SCORES,
        *([ScoreNeed.LOGITS] if inputs == "logits" else []),
    }
    if unmet:
        why = "; ".join(sorted(need.value for need in unmet))
        raise InputError(f"`score` must be one that {inputs} of shape (n, K) allow; {name!r} {why}")
    return entry


def read(
    confidence: Any, loss: Any, weight: Any, *, inputs: str, score: str, device: Any
) -> BatchTensors:
    """Check one batch and turn it into what the states keep."""
    names = ("confidence", "loss") if inputs == "confidence" else (inputs, "target")
    given = (confidence, loss) if weight is None else (confidence, loss, weight)
    for name, x in zip((*names, "weight"), given, strict=False):
        _tensor_on(x, name, device)
    if inputs != "confidence":
        confidence, loss = _scored(confidence, loss, inputs, score)
    confidence, loss = (_vector(x) for x in (confidence, loss))
    weight = None if weight is None else _vector(weight)
    _validate(confidence, loss, weight)
    wide = double(device)
    ones = torch.ones(confidence.shape, dtype=torch.uint8, device=device)
    return BatchTensors(
        _owned(confidence, wide),
        loss.to(torch.uint8) if loss.dtype == torch.bool else _owned(loss, wide),
        ones if weight is None else _owned(weight, wide),
    )


def _tensor_on(x: Any, name: str, device: Any) -> None:
    if not isinstance(x, torch.Tensor):
        raise InputError(f"`{name}` must be a torch.Tensor; got {type(x).__name__}")
    same = x.device.type == device.type
    if not same or (device.index is not None and x.device.index != device.index):
        raise InputError(
            f"`{name}` must be on the device of the metric, {device}; got {x.device}. "
            f"Move the metric: metric.to({str(x.device)!r})"
        )


def _vector(x: Any) -> Any:
    """Take a single number for one sample."""
    return x.detach().reshape(1) if x.ndim == 0 else x.detach()


def _owned(x: Any, wide: Any) -> Any:
    """Copy: a view would keep a whole batch of logits alive, or change with a reused buffer."""
    return x.clone().contiguous() if x.is_floating_point() else x.to(wide)


def _validate(confidence: Any, loss: Any, weight: Any) -> None:
    given = [confidence, loss] if weight is None else [confidence, loss, weight]
    if any(x.ndim != 1 or x.shape != confidence.shape for x in given):
        shapes = ", ".join(str(tuple(x.shape)) for x in given)
        raise ShapeError(
            "`confidence`, `loss` and `weight` must have one axis (n,) and the same length; "
            f"got shapes {shapes}. Flatten dense outputs first."
        )
    if not _sound(given):
        checks.confidence(confidence)
        checks.loss(loss)
        checks.weight(weight, length=len(confidence))
    _refuse_inexact(confidence)


def _sound(given: list[Any]) -> bool:
    """Tell whether confidence, loss and weight are finite, and the last two not negative."""
    if given[0].device.type == "cpu":
        # A sample at a time, NumPy's steps take a fifth of PyTorch's.
        host = [to_numpy(x, "a batch") for x in given]
        return all(np.isfinite(x).all() for x in host) and not any((x < 0).any() for x in host[1:])
    # One number comes from the device, and only a batch that is bad goes to the host.
    fine = torch.isfinite(given[0]).all()
    for x in given[1:]:
        fine = fine & torch.isfinite(x).all() & (x >= 0).all()
    return bool(fine)


def _refuse_inexact(confidence: Any) -> None:
    """Refuse integers that the state would round: they could tie with those of another batch."""
    if confidence.is_floating_point():
        return
    kept = confidence.to(double(confidence.device))
    most = checks.FIRST_INEXACT_INTEGER if kept.dtype == torch.float64 else 1 << 24
    if bool((kept.abs() >= most).any()):
        value = int(confidence[int(kept.abs().argmax())])
        raise DomainError(
            f"`confidence` must hold integers below {most:,} in size, which the state keeps "
            f"exactly; got {value:,}. Subtract a constant from all, or pass ranks."
        )


def _scored(outputs: Any, target: Any, inputs: str, score: str) -> tuple[Any, Any]:
    """Score the outputs of a classifier by name; an error is a wrong prediction."""
    if outputs.ndim != 2 or target.shape != outputs.shape[:1]:
        raise ShapeError(
            f"`{inputs}` must have shape (n, K) and `target` (n,); got {tuple(outputs.shape)} "
            f"and {tuple(target.shape)}"
        )
    device = outputs.device
    if not len(outputs):
        return (torch.empty(0, dtype=double(device), device=device),) * 2
    given = {inputs: outputs.detach(), "labels": target.detach()}
    predictions = Predictions(**given)
    values = torch.from_numpy(confidence_of(score, predictions).values)
    wrong = torch.from_numpy(~predictions.correct)
    return values.to(device=device, dtype=double(device)), wrong.to(device)
