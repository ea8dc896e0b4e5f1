"""The bounded state: the histogram of `abstain.streaming` as tensors, filled on the device."""

from dataclasses import replace
from typing import Any

import numpy as np

from abstain._foundation import checks
from abstain.confidence._entry import Score
from abstain.integrations.torchmetrics._inputs import Samples, double
from abstain.integrations.torchmetrics._library import torch
from abstain.streaming import Histogram
from abstain.streaming._scales import bin_index

#: The states and how those of several processes are joined.
REDUCTIONS = {
    "count": "sum",
    "weight": "sum",
    "loss": "sum",
    "least": "min",
    "most": "max",
    "largest_loss": "max",
    "binary": "min",
    "precision": "max",
}

_HINT = "Pass scale='log-odds' or scale='real' for confidences that are no probabilities."


def empty(bins: int, device: Any) -> dict[str, Any]:
    """Return the states of an empty stream."""
    options = {"dtype": double(device), "device": device}
    whole = {"dtype": torch.int64, "device": device}
    return {
        "count": torch.zeros(bins, **whole),
        "weight": torch.zeros(bins, **options),
        "loss": torch.zeros(bins, **options),
        "least": torch.full((bins,), float("inf"), **options),
        "most": torch.full((bins,), -float("inf"), **options),
        "largest_loss": torch.zeros((), **options),
        "binary": torch.ones((), **whole),
        "precision": torch.full((), 16, **whole),
    }


def add(state: dict[str, Any], samples: Samples, scale: str) -> None:
    """Add samples to the states, in place."""
    wide = state["weight"].dtype
    weighted = samples.weight.is_floating_point()
    if weighted:
        kept = samples.weight > 0
        samples = Samples(*(x[kept] for x in samples))
    if not len(samples.confidence):
        return
    c, x, w = (part.to(wide) for part in samples)
    if scale == "probability" and not bool(((c >= 0) & (c <= 1)).all()):
        checks.unit_interval(checks.confidence(samples.confidence), "confidence", hint=_HINT)
    index = bin_index(torch, c, scale=scale, bins=len(state["count"]))
    state["count"].index_add_(0, index, torch.ones_like(index))
    state["weight"].index_add_(0, index, w)
    state["loss"].index_add_(0, index, x * w)
    state["least"].scatter_reduce_(0, index, c, "amin")
    state["most"].scatter_reduce_(0, index, c, "amax")
    state["largest_loss"].clamp_(min=x.max())
    state["binary"].mul_(((x == 0) | (x == 1)).all())
    state["precision"].clamp_(min=_bits(samples.confidence.dtype))


def _bits(dtype: Any) -> int:
    # bfloat16 is compared as float32 elsewhere too: NumPy has no such type.
    return 32 if dtype == torch.bfloat16 else 8 * dtype.itemsize


def histogram(state: dict[str, Any], scale: str) -> Histogram:
    """Bring the states to the host as the record that the metrics of streams are computed from."""
    host = {name: x.detach().cpu().numpy() for name, x in state.items()}
    return Histogram(
        scale=scale,
        count=host["count"],
        weight=host["weight"].astype(np.float64),
        loss=host["loss"].astype(np.float64),
        least=host["least"].astype(np.float64),
        most=host["most"].astype(np.float64),
        largest_loss=float(host["largest_loss"]),
        binary=bool(host["binary"]),
        precision=int(host["precision"]),
    )


def as_probabilities(state: Histogram, entry: Score | None) -> Histogram:
    """Read the confidences at the ends of each bin as probabilities, where the score means one."""
    if entry is None or entry.to_probability is None:
        return state
    held = state.count > 0
    least, most = np.full(state.bins, np.inf), np.full(state.bins, -np.inf)
    least[held] = entry.to_probability(state.least[held])
    most[held] = entry.to_probability(state.most[held])
    return replace(state, least=least, most=most, precision=64)
