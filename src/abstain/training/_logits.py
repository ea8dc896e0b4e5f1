"""Compute per-sample losses and confidences from logits of shape (n, K)."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from abstain._foundation import checks
from abstain._foundation.arrays import to_numpy
from abstain.confidence import kernels
from abstain.confidence.entry import ScoreNeed
from abstain.confidence.registry import find_score
from abstain.errors import DomainError, InputError, ShapeError, UnknownNameError, suggest
from abstain.predictions.outputs import ClassScores
from abstain.training.heads import at_least_float32
from abstain.typing import IntArray

#: Function from logits (n, K) and labels (n,) to losses (n,).
BaseLoss: TypeAlias = Callable[[Tensor, Tensor], Tensor]


def _cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    return functional.cross_entropy(at_least_float32(logits), labels, reduction="none")


def _zero_one(logits: Tensor, labels: Tensor) -> Tensor:
    return at_least_float32((logits.argmax(dim=1) != labels).to(logits.dtype))


def _brier(logits: Tensor, labels: Tensor) -> Tensor:
    log_p = functional.log_softmax(at_least_float32(logits), dim=1)
    label_column = labels[:, None]
    # p - 1 of the label is computed from log p, so it is accurate if p is close to 1.
    label_error = torch.expm1(log_p.gather(1, label_column))[:, 0]
    other_probabilities = log_p.exp().scatter(1, label_column, 0.0)
    return label_error**2 + (other_probabilities**2).sum(dim=1)


BASE_LOSSES: dict[str, BaseLoss] = {
    "cross-entropy": _cross_entropy,
    "zero-one": _zero_one,
    "brier": _brier,
}


def base_loss(base: Any) -> BaseLoss:
    """Return the loss function with this name, or the user-defined function."""
    if callable(base):
        function: BaseLoss = base
        return function
    if not isinstance(base, str):
        raise InputError(
            f"`base` must be the name of a loss or a function of (logits, labels); got {base!r}"
        )
    if base not in BASE_LOSSES:
        names = ", ".join(map(repr, BASE_LOSSES))
        raise UnknownNameError(
            f"`base` must be one of {names} or a function of (logits, labels); got {base!r}."
            f"{suggest(base, BASE_LOSSES)}"
        )
    return partial(_named_loss, base)


def _named_loss(base: str, logits: Tensor, labels: Tensor) -> Tensor:
    return BASE_LOSSES[base](logits, _check_labels(labels, logits))


def _check_labels(labels: Tensor, logits: Tensor) -> Tensor:
    """Validate the labels, and convert them to int64.

    Labels on a device are not checked for their range, because this would synchronize host and
    device.
    """
    n, n_classes = logits.shape
    if labels.shape != (n,):
        raise ShapeError(
            f"`labels` must have one entry for each of the {n} rows of `logits`; got shape "
            f"{tuple(labels.shape)}. For class probabilities as targets, pass a function as `base`."
        )
    if labels.dtype.is_floating_point or labels.dtype in {torch.bool, torch.complex64}:
        raise DomainError(
            f"`labels` must be integer class codes from 0 to {n_classes - 1}; got {labels.dtype}"
        )
    if labels.device.type == "cpu" and n > 0:
        _check_range(to_numpy(labels, "labels"), n_classes)
    return labels.long()


def _check_range(codes: IntArray, n_classes: int) -> None:
    """Raise a DomainError if a label is not a class code."""
    # Minimum and maximum are faster than an array of comparisons.
    if codes.min() >= 0 and codes.max() < n_classes:
        return
    rule = f"must be class codes from 0 to {n_classes - 1}"
    hint = "Leave out rows to ignore first: loss(logits[keep], labels[keep])."
    is_invalid = (codes < 0) | (codes >= n_classes)
    checks.reject_entries("labels", rule, codes, is_invalid, hint=hint)


#: Function from logits (n, K) to confidences (n,).
ScoreFunction: TypeAlias = Callable[[Tensor], Tensor]


def score_of_logits(score: Any) -> ScoreFunction:
    """Return the score function with this name, or the user-defined function."""
    if callable(score):
        function: ScoreFunction = score
        return function
    if not isinstance(score, str):
        raise InputError(
            f"`score` must be the name of a score or a function of logits; got {score!r}"
        )
    entry = find_score(score)
    if entry.kernel is None:
        requirements = sorted(need.value for need in entry.needs - {ScoreNeed.LOGITS})
        raise UnknownNameError(
            f"`score` must be a score of logits of shape (n, K); {score!r} "
            f"{'; '.join(requirements)}"
        )
    temperature = float(score.partition("@T=")[2] or 1.0)
    return partial(_compute_score, entry.kernel, temperature, entry.is_multiplied_by_temperature)


# The kernel is called directly, because the functions of `abstain.confidence` reject NaN. A
# training loss returns NaN instead.
def _compute_score(
    kernel: kernels.Kernel, temperature: float, is_multiplied: bool, logits: Tensor
) -> Tensor:
    """Compute a confidence score of logits, with NumPy if possible and otherwise with PyTorch."""
    if logits.shape[0] == 0:
        # The empty result keeps the autograd graph, because other processes may have samples.
        return logits.sum(dim=1)
    needs_gradient = logits.requires_grad and torch.is_grad_enabled()
    if needs_gradient or logits.device.type != "cpu":
        score = _compute_in_torch(kernel, temperature, logits)
    else:
        score = _compute_in_numpy(kernel, temperature, logits)
    return temperature * score if is_multiplied else score


def _compute_in_torch(kernel: kernels.Kernel, temperature: float, logits: Tensor) -> Tensor:
    scores = ClassScores(logits, are_logits=True)
    result: Tensor = kernels.apply_by_rows(kernel, scores, temperature=temperature)
    return result


def _compute_in_numpy(kernel: kernels.Kernel, temperature: float, logits: Tensor) -> Tensor:
    """Compute a score with NumPy, which is faster than PyTorch."""
    scores = ClassScores(to_numpy(logits, "logits"), are_logits=True)
    # NaN is propagated without a warning, as in PyTorch.
    with np.errstate(all="ignore"):
        return torch.as_tensor(kernels.apply_by_rows(kernel, scores, temperature=temperature))
