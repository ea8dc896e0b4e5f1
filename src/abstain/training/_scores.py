"""A confidence of each row of logits: a score of the catalogue, on its non-saturating scale."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from abstain._foundation.arrays import to_numpy
from abstain.confidence import _kernels
from abstain.confidence._entry import Need
from abstain.confidence.logit_scores import DEFAULT_P
from abstain.confidence.registry import find
from abstain.confidence.softmax_scores import DEFAULT_GAMMA, DEFAULT_TOP
from abstain.errors import InputError, UnknownNameError
from abstain.predictions.outputs import ClassScores
from abstain.training._library import torch

#: From logits (n, K) to confidences (n,).
OwnScore: TypeAlias = Callable[["torch.Tensor"], "torch.Tensor"]

# The kernels behind the catalogue's names. The functions of `abstain.confidence` would refuse
# NaN, for which they wait for the device, and a training loss passes NaN on.
_KERNELS: dict[str, _kernels.Kernel] = {
    "msr": _kernels.log_odds,
    "mls": _kernels.largest,
    "pe": _kernels.negative_entropy,
    "margin": _kernels.margin,
    "logit_margin": _kernels.log_gap,
    "gini": _kernels.gini,
    "gen": partial(_kernels.generalized_entropy, gamma=DEFAULT_GAMMA, top=DEFAULT_TOP),
    "energy": _kernels.log_sum_exp,
    "pnorm": partial(_kernels.normalized_largest, p=DEFAULT_P),
}


def score_of_logits(score: Any) -> OwnScore:
    """Return the function from logits to confidences that a name stands for, or check an own."""
    if not isinstance(score, str):
        if not callable(score):
            msg = f"`score` must be the name of a score or a function of logits; got {score!r}"
            raise InputError(msg)
        own: OwnScore = score
        return own
    base, _, _ = score.partition("@")
    # The catalogue knows near names, refuses temperatures where there are none, and says what
    # must be fitted first.
    entry = find(score)
    if base not in _KERNELS:
        why = "; ".join(sorted(need.value for need in entry.needs - {Need.LOGITS}))
        msg = f"`score` must be one that logits of shape (n, K) allow; {score!r} {why}"
        raise UnknownNameError(msg)
    temperature = float(score.partition("@T=")[2] or 1.0)
    return partial(_computed, base, temperature)


def _computed(name: str, temperature: float, logits: "torch.Tensor") -> "torch.Tensor":
    if logits.shape[0] == 0:
        # No rows, but where others gather, the graph that leads to them.
        return logits.sum(dim=1)
    recorded = logits.requires_grad and torch.is_grad_enabled()
    out = (_where_it_lies if recorded or logits.device.type != "cpu" else _in_numpy)(
        _KERNELS[name], temperature, logits
    )
    return temperature * out if name == "energy" else out


def _where_it_lies(
    kernel: _kernels.Kernel, temperature: float, logits: "torch.Tensor"
) -> "torch.Tensor":
    scores = ClassScores(logits, are_logits=True)
    out: torch.Tensor = _kernels.by_rows(kernel, scores, temperature=temperature)
    return out


def _in_numpy(
    kernel: _kernels.Kernel, temperature: float, logits: "torch.Tensor"
) -> "torch.Tensor":
    """Do the same four times faster: NumPy writes over its own steps."""
    scores = ClassScores(to_numpy(logits, "logits"), are_logits=True)
    # NaN passes through, as in PyTorch.
    with np.errstate(all="ignore"):
        return torch.as_tensor(_kernels.by_rows(kernel, scores, temperature=temperature))
