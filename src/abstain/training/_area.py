"""From one step's confidences and losses to the rank-weighted mean loss."""

from dataclasses import dataclass, replace
from typing import Any

from abstain._foundation.device import weights_beside
from abstain.errors import InputError, ShapeError
from abstain.training._base_losses import at_least_single
from abstain.training._gather import Batch, gathered
from abstain.training._library import torch
from abstain.training._ranks import averaged_over_ties, by_tie_groups, wide
from abstain.training._soft import soft_ranks, spread
from abstain.training._weights import Weighting


@dataclass(frozen=True)
class Area:
    """What is weighted, and how.

    Attributes
    ----------
    weighting : Weighting
        From ranks to weights.
    soft : float or None
        The temperature of soft ranks as a share of the spread; None for hard ranks.
    """

    weighting: Weighting
    soft: float | None = None

    def value(
        self, batch: Batch, recent: "torch.Tensor | None", precision: "torch.dtype"
    ) -> "torch.Tensor":
        """Return the mean over the batch of weight x loss, without axes."""
        share: torch.Tensor = self.weights(batch, recent, precision) * batch.loss
        mean = share.mean()
        if batch.weight is not None:
            mean = (share * batch.weight).sum() / batch.weight.sum()
        # Among NaN there are no ranks: 0 x NaN makes the whole NaN, and of numbers it is 0.
        out = mean + (0.0 * batch.confidence.detach()).sum()
        if batch.processes > 1:
            # The gradients of the processes will be averaged, and their sum is wanted.
            out = out.detach() + batch.processes * (out - out.detach())
        return out.to(precision)

    def weights(
        self, batch: Batch, recent: "torch.Tensor | None", precision: "torch.dtype"
    ) -> "torch.Tensor":
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
                msg = f"`weight` does not go with {what}; multiply the loss by it instead"
                raise InputError(msg)


def batch_of(
    confidence: Any, loss: Any, weight: Any, *, gather: bool
) -> "tuple[Batch, torch.dtype]":
    """Check one step's vectors; return them in the widest precision, and the result's precision."""
    for name, x in (("confidence", confidence), ("loss", loss)):
        _vector(name, x)
    _same_length("loss", loss, confidence)
    if loss.device != confidence.device:
        where = f"`confidence` is on {confidence.device} and `loss` on {loss.device}"
        msg = f"`confidence` and `loss` must be on one device; {where}"
        raise InputError(msg)
    own = loss if loss.dtype.is_floating_point else confidence
    precision = at_least_single(own.new_empty(0)).dtype
    if not (gather or confidence.shape[0]):
        msg = "the batch is empty; at least one sample is needed. Skip a batch without samples."
        raise ShapeError(msg)
    work = wide(confidence.device)
    batch = Batch(confidence.to(work).contiguous(), loss.to(work))
    if weight is not None:
        _same_length("weight", weight, confidence)
        batch = replace(batch, weight=_weights_of(weight, batch.confidence))
    batch = gathered(batch) if gather else batch
    if batch.confidence.shape[0] == 0:
        msg = "the batches of all processes are empty; at least one sample is needed"
        raise ShapeError(msg)
    return batch, precision


def _vector(name: str, x: Any) -> None:
    if not isinstance(x, torch.Tensor):
        msg = f"`{name}` must be a torch.Tensor; got {type(x).__name__}"
        raise InputError(msg)
    if x.ndim != 1:
        msg = f"`{name}` must have one number for each sample, shape (n,); got {tuple(x.shape)}"
        raise ShapeError(msg)


def _same_length(name: str, x: Any, confidence: "torch.Tensor") -> None:
    if tuple(x.shape) != tuple(confidence.shape):
        msg = (
            f"`{name}` must have one entry for each of the {confidence.shape[0]} samples; got "
            f"shape {tuple(x.shape)}"
        )
        raise ShapeError(msg)


def _weights_of(weight: Any, confidence: "torch.Tensor") -> "torch.Tensor":
    if confidence.shape[0] == 0:
        return torch.zeros_like(confidence)
    return torch.as_tensor(weights_beside(weight, confidence)).to(confidence)
