"""State of a metric, which contains all samples or a histogram."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from abstain._foundation import checks
from abstain.confidence import Score
from abstain.integrations.torchmetrics._inputs import (
    INPUTS,
    BatchTensors,
    Inputs,
    get_score,
    read_batch,
    widest_float,
)
from abstain.integrations.torchmetrics._library import Metric, gather_all_tensors, torch
from abstain.streaming import Histogram
from abstain.streaming.scales import Scale, bin_index, check_bins, check_scale

# The exact state contains every sample. In torchmetrics, the state is a list with one tensor per
# update, and each tensor needs at least half a kilobyte. Here, the newest blocks of a long list are
# concatenated, so a million updates of one sample result in a few hundred tensors. The bounded
# state is the histogram of `abstain.streaming`, as tensors on the device.

#: Maximum length of the list of tensors.
MAX_BLOCKS = 512

# Types that a process group can send. The code of a type is its index in the tuple.
_TYPES = (torch.uint8, torch.float16, torch.float32, torch.float64)


def append_block(blocks: Any, new: Any) -> list[Any]:
    """Return a new list that contains the given blocks and the new block.

    The old list is not changed, because the metrics of a collection may share it. After a state is
    loaded from a file, `blocks` can be a single tensor.
    """
    extended = [*(blocks if isinstance(blocks, list) else [blocks]), new]
    if len(extended) <= MAX_BLOCKS:
        return extended
    start = len(extended) - MAX_BLOCKS // 2
    size = sum(len(block) for block in extended[start:])
    # Older blocks are included while they are not larger than all newer blocks together, so that
    # each sample is copied about log2(n) times.
    while start and len(extended[start - 1]) <= size:
        start -= 1
        size += len(extended[start])
    return [*extended[:start], torch.cat(extended[start:])]


def concatenate(blocks: Any, device: Any) -> Any:
    """Return the samples of all blocks as one tensor."""
    if isinstance(blocks, torch.Tensor):
        return blocks.to(device)
    if not blocks:
        return torch.empty(0, device=device)
    return torch.cat([block.to(device) for block in blocks])


def sendable(x: Any) -> Any:
    """Convert bfloat16 to float32, because some process groups do not support bfloat16."""
    return x.to(torch.float32) if x.dtype == torch.bfloat16 else x


def code_of(x: Any) -> int:
    """Return an integer for the data type of a tensor, or -1 if the tensor is empty."""
    return _TYPES.index(x.dtype) if len(x) else -1


def common_type(codes: list[int]) -> Any:
    """Return a data type that can represent the samples of all processes."""
    # A type with a larger code represents all values of a type with a smaller code.
    return _TYPES[max(codes)] if max(codes) >= 0 else torch.float32


#: Names of the states, and the operations that merge the states of several processes.
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

_HINT = "Pass scale='log-odds' or scale='real' for confidences that are not probabilities."


def empty_bins(bins: int, device: Any) -> dict[str, Any]:
    """Return the initial states of a histogram, by name."""
    options = {"dtype": widest_float(device), "device": device}
    integer_options = {"dtype": torch.int64, "device": device}
    return {
        "count": torch.zeros(bins, **integer_options),
        "weight": torch.zeros(bins, **options),
        "loss": torch.zeros(bins, **options),
        "least": torch.full((bins,), float("inf"), **options),
        "most": torch.full((bins,), -float("inf"), **options),
        "largest_loss": torch.zeros((), **options),
        "binary": torch.ones((), **integer_options),
        "precision": torch.full((), 16, **integer_options),
    }


def fill(state: dict[str, Any], samples: BatchTensors, scale: str) -> None:
    """Add samples to the states of a histogram in place."""
    dtype = state["weight"].dtype
    weighted = samples.weight.is_floating_point()
    if weighted:
        has_weight = samples.weight > 0
        samples = BatchTensors(*(x[has_weight] for x in samples))
    if not len(samples.confidence):
        return
    confidence = samples.confidence.to(dtype)
    loss = samples.loss.to(dtype)
    weight = samples.weight.to(dtype)
    is_in_unit_interval = (confidence >= 0) & (confidence <= 1)
    if scale == "probability" and not bool(is_in_unit_interval.all()):
        checks.unit_interval(checks.confidence(samples.confidence), "confidence", hint=_HINT)
    index = bin_index(torch, confidence, scale=scale, bins=len(state["count"]))
    state["count"].index_add_(0, index, torch.ones_like(index))
    state["weight"].index_add_(0, index, weight)
    state["loss"].index_add_(0, index, loss * weight)
    state["least"].scatter_reduce_(0, index, confidence, "amin")
    state["most"].scatter_reduce_(0, index, confidence, "amax")
    state["largest_loss"].clamp_(min=loss.max())
    state["binary"].mul_(((loss == 0) | (loss == 1)).all())
    state["precision"].clamp_(min=_bits(samples.confidence.dtype))


def _bits(dtype: Any) -> int:
    # bfloat16 is compared as float32, as in NumPy, which has no bfloat16.
    return 32 if dtype == torch.bfloat16 else 8 * dtype.itemsize


def histogram(state: dict[str, Any], scale: str) -> Histogram:
    """Copy the states to the CPU as a `Histogram`, from which metrics are computed."""
    host = {name: x.detach().cpu().numpy() for name, x in state.items()}
    return Histogram(
        scale=scale,
        count=host["count"],
        weight=host["weight"].astype(np.float64),
        loss=host["loss"].astype(np.float64),
        min_confidence=host["least"].astype(np.float64),
        max_confidence=host["most"].astype(np.float64),
        largest_loss=float(host["largest_loss"]),
        binary=bool(host["binary"]),
        precision=int(host["precision"]),
    )


def as_probabilities(state: Histogram, entry: Score | None) -> Histogram:
    """Convert the smallest and the largest confidence of each bin to probabilities, if possible."""
    if entry is None or entry.to_probability is None:
        return state
    has_samples = state.count > 0
    min_confidence = np.full(state.bins, np.inf)
    max_confidence = np.full(state.bins, -np.inf)
    min_confidence[has_samples] = entry.to_probability(state.min_confidence[has_samples])
    max_confidence[has_samples] = entry.to_probability(state.max_confidence[has_samples])
    return replace(
        state, min_confidence=min_confidence, max_confidence=max_confidence, precision=64
    )


class StreamState(Metric):
    """A metric whose state contains all samples or a histogram. See `SelectiveMetric`."""

    # TorchScript compiles the properties of every submodule except these properties.
    __jit_unused_properties__: ClassVar[list[str]] = [
        *Metric.__jit_unused_properties__,
        "error_bound",
        "_score_entry",
    ]

    def __init__(
        self, *, inputs: Inputs, score: str, bins: int | None, scale: Scale | None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.inputs = checks.one_of(inputs, "inputs", INPUTS)
        self.score = score
        self.bins = None if bins is None else check_bins(bins)
        self.scale = _default_scale(self._score_entry) if scale is None else check_scale(scale)
        self._names = self._state_names()
        self._add_states()

    def _state_names(self) -> dict[str, str]:
        """Return the attribute name of each state.

        In a collection, torchmetrics lets metrics share states that have equal names and values.
        The names depend on the options, because metrics with different options may have equal
        states after the first batch.
        """
        tag = ""
        if self._score_entry is not None:
            score_tag = re.sub(r"[^0-9a-z]", "_", self.score.lower())
            tag = f"_of_{self.inputs}_{score_tag}"
        if self.bins is None:
            return {part: f"samples_{part}{tag}" for part in BatchTensors._fields}
        scale_tag = self.scale.replace("-", "_")
        return {part: f"bins_{part}_{scale_tag}{tag}" for part in REDUCTIONS}

    def _add_states(self) -> None:
        if self.bins is None:
            for name in self._names.values():
                self.add_state(name, default=[], dist_reduce_fx="cat")
            return
        for part, default in empty_bins(self.bins, self.device).items():
            self.add_state(self._names[part], default=default, dist_reduce_fx=REDUCTIONS[part])

    @property
    def _score_entry(self) -> Score | None:
        return get_score(self.score, self.inputs)

    def update(self, confidence: Any, loss: Any, weight: Any = None) -> None:
        """Add a batch of samples.

        Parameters
        ----------
        confidence : torch.Tensor of shape (n,), or (n, K)
            Confidences. A higher value is more confident. If `inputs` is "logits" or
            "probabilities", this argument contains class scores of shape (n, K).
        loss : torch.Tensor of shape (n,)
            Finite and non-negative losses. If `inputs` is "logits" or "probabilities", this
            argument contains labels from 0 to K - 1.
        weight : torch.Tensor of shape (n,), optional
            Frequency weights. A sample with an integer weight w counts as w samples.

        Raises
        ------
        InputError
            If an argument is not a tensor on the device of the metric.
        ShapeError
            If a tensor has a wrong shape, or if the shapes of two tensors do not match.
        DomainError
            If a value is NaN or infinite, a loss or weight is negative, or a confidence is
            outside the scale.
        """
        # `forward` passes a batch that is already validated.
        is_validated = isinstance(confidence, BatchTensors)
        batch = confidence if is_validated else self._read(confidence, loss, weight)
        if self.bins is None:
            self._append(batch)
            return
        for part, x in self._states().items():
            if x.is_inference() and not torch.is_inference_mode_enabled():
                self._set(part, x.clone())
        fill(self._states(), batch, self.scale)

    def _append(self, batch: BatchTensors) -> None:
        """Append a batch to the samples of the state."""
        for part, x in batch._asdict().items():
            # torchmetrics moves the complete list to the CPU after `update`.
            block = x.cpu() if self.compute_on_cpu else x
            self._set(part, append_block(self._get(part), block))

    def reset(self) -> None:
        """Remove all samples."""
        if self.bins is None:
            # torchmetrics clears the list in place, but `Running` may refer to the same list.
            for part in self._names:
                self._set(part, [])
        super().reset()

    def sync(
        self,
        dist_sync_fn: Callable[..., Any] | None = None,
        process_group: Any = None,
        should_sync: bool = True,  # noqa: FBT002  the signature of torchmetrics
        distributed_available: Callable[[], bool] | None = None,
    ) -> None:
        """Gather the states of all processes.

        Parameters
        ----------
        dist_sync_fn : callable, optional
            Function that gathers a tensor from all processes. The default is the function of
            torchmetrics.
        process_group : torch.distributed.ProcessGroup, optional
            Process group. The default is the process group of the metric.
        should_sync : bool, default=True
            Whether to synchronize.
        distributed_available : callable, optional
            Function that returns whether there are other processes.
        """
        available = distributed_available or self.distributed_available_fn
        if should_sync and not self._is_synced and self.bins is None and available():
            gather = dist_sync_fn or gather_all_tensors
            self._agree(lambda x: gather(x, group=process_group or self.process_group))
        super().sync(dist_sync_fn, process_group, should_sync, distributed_available)

    def _agree(self, gather: Callable[[Any], Any]) -> None:
        """Convert the samples to a data type that is the same in all processes."""
        local_samples = {part: self._concatenated(part) for part in self._names}
        codes = torch.tensor([code_of(x) for x in local_samples.values()], device=self.device)
        codes_by_process = torch.stack(gather(codes)).tolist()
        codes_by_part = zip(*codes_by_process, strict=True)
        for (part, samples), part_codes in zip(local_samples.items(), codes_by_part, strict=True):
            self._set(part, [samples.to(common_type(list(part_codes)))])

    def _apply(self, fn: Callable[..., Any], exclude_state: Any = ()) -> Any:
        """Move the states to another device with the module. Their data types do not change."""
        names = tuple(self._names.values())
        super()._apply(fn, exclude_state=(*names, *exclude_state))
        for name in names:
            self._defaults[name] = _moved(self._defaults[name], self.device)
            setattr(self, name, _moved(getattr(self, name), self.device))
        return self

    def _get(self, part: str) -> Any:
        return getattr(self, self._names[part])

    def _set(self, part: str, value: Any) -> None:
        # A state is a plain attribute, because `Module.__setattr__` takes longer than the update.
        self.__dict__[self._names[part]] = value

    def _states(self) -> dict[str, Any]:
        return {part: self._get(part) for part in self._names}

    def _concatenated(self, part: str) -> Any:
        return sendable(concatenate(self._get(part), self.device))

    def _read(self, confidence: Any, loss: Any, weight: Any) -> BatchTensors:
        return read_batch(
            confidence, loss, weight, inputs=self.inputs, score=self.score, device=self.device
        )


def _default_scale(entry: Score | None) -> Scale:
    """Return the scale of the bins for a score, or "probability" if the inputs are confidences."""
    if entry is None or entry.unit == "probability":
        return "probability"
    return "log-odds" if entry.unit == "log-odds" else "real"


def _moved(x: Any, device: Any) -> Any:
    return [part.to(device) for part in x] if isinstance(x, list) else x.to(device)
