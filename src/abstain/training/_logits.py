"""What is made of logits (n, K): the loss of each sample, and its confidence."""

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
from abstain.training.heads import wide

#: From logits (n, K) and labels to losses (n,).
BaseLoss: TypeAlias = Callable[[Tensor, Tensor], Tensor]


def _cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    return functional.cross_entropy(wide(logits), labels, reduction="none")


def _zero_one(logits: Tensor, labels: Tensor) -> Tensor:
    return wide((logits.argmax(dim=1) != labels).to(logits.dtype))


def _brier(logits: Tensor, labels: Tensor) -> Tensor:
    logs = functional.log_softmax(wide(logits), dim=1)
    at = labels[:, None]
    # 1 - p of the label from its logarithm: exact when p is nearly 1.
    missing = torch.expm1(logs.gather(1, at))[:, 0]
    others = logs.exp().scatter(1, at, 0.0)
    return missing**2 + (others**2).sum(dim=1)


BASE_LOSSES: dict[str, BaseLoss] = {
    "cross-entropy": _cross_entropy,
    "zero-one": _zero_one,
    "brier": _brier,
}


def base_loss(base: Any) -> BaseLoss:
    """Return the function that a name stands for, with its checks, or one of the caller."""
    if isinstance(base, str):
        if base not in BASE_LOSSES:
            known = ", ".join(map(repr, BASE_LOSSES))
            raise UnknownNameError(
                f"`base` must be one of {known} or a function of (logits, labels); got {base!r}."
                f"{suggest(base, BASE_LOSSES)}"
            )
        return partial(_named, base)
    if not callable(base):
        raise InputError(
            f"`base` must be the name of a loss or a function of (logits, labels); got {base!r}"
        )
    own: BaseLoss = base
    return own


def _named(base: str, logits: Tensor, labels: Tensor) -> Tensor:
    return BASE_LOSSES[base](logits, _class_codes(labels, logits))


def _class_codes(labels: Tensor, logits: Tensor) -> Tensor:
    """Check labels; their values only on the host, since a device would have to be waited for."""
    rows, classes = logits.shape
    if labels.shape != (rows,):
        raise ShapeError(
            f"`labels` must have one entry for each of the {rows} rows of `logits`; got shape "
            f"{tuple(labels.shape)}. Class probabilities as targets need a `base` of your own."
        )
    if labels.dtype.is_floating_point or labels.dtype in {torch.bool, torch.complex64}:
        raise DomainError(
            f"`labels` must be integer class codes from 0 to {classes - 1}; got {labels.dtype}"
        )
    if labels.device.type == "cpu" and rows > 0:
        codes = to_numpy(labels, "labels")
        # Two numbers, not an array of answers: a small batch is checked at every step.
        if codes.min() < 0 or codes.max() >= classes:
            rule = f"must be class codes from 0 to {classes - 1}"
            hint = "Rows to ignore are left out first: loss(logits[keep], labels[keep])."
            checks.reject_entries(
                "labels", rule, codes, (codes < 0) | (codes >= classes), hint=hint
            )
    return labels.long()


#: From logits (n, K) to confidences (n,).
OwnScore: TypeAlias = Callable[[Tensor], Tensor]


def score_of_logits(score: Any) -> OwnScore:
    """Return the function from logits to confidences that a name stands for, or check an own."""
    if not isinstance(score, str):
        if not callable(score):
            raise InputError(
                f"`score` must be the name of a score or a function of logits; got {score!r}"
            )
        own: OwnScore = score
        return own
    # The catalogue knows near names, refuses temperatures where there are none, and says what
    # must be fitted first.
    entry = find_score(score)
    if entry.kernel is None:
        why = "; ".join(sorted(need.value for need in entry.needs - {ScoreNeed.LOGITS}))
        raise UnknownNameError(
            f"`score` must be one that logits of shape (n, K) allow; {score!r} {why}"
        )
    temperature = float(score.partition("@T=")[2] or 1.0)
    return partial(_computed, entry.kernel, temperature, entry.is_multiplied_by_temperature)


# The functions of `abstain.confidence` would refuse NaN, for which they wait for the device, and a
# training loss passes NaN on: hence the kernel itself.
def _computed(kernel: kernels.Kernel, temperature: float, times: bool, logits: Tensor) -> Tensor:
    if logits.shape[0] == 0:
        # No rows, but where others gather, the graph that leads to them.
        return logits.sum(dim=1)
    recorded = logits.requires_grad and torch.is_grad_enabled()
    out = (_where_it_lies if recorded or logits.device.type != "cpu" else _in_numpy)(
        kernel, temperature, logits
    )
    return temperature * out if times else out


def _where_it_lies(kernel: kernels.Kernel, temperature: float, logits: Tensor) -> Tensor:
    scores = ClassScores(logits, are_logits=True)
    out: Tensor = kernels.apply_by_rows(kernel, scores, temperature=temperature)
    return out


def _in_numpy(kernel: kernels.Kernel, temperature: float, logits: Tensor) -> Tensor:
    """Do the same four times faster: NumPy writes over its own steps."""
    scores = ClassScores(to_numpy(logits, "logits"), are_logits=True)
    # NaN passes through, as in PyTorch.
    with np.errstate(all="ignore"):
        return torch.as_tensor(kernels.apply_by_rows(kernel, scores, temperature=temperature))
