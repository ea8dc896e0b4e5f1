"""What a metric keeps of its samples, and how torchmetrics moves, joins and forgets it."""

import re
from collections.abc import Callable
from typing import Any

from abstain._foundation import checks
from abstain.confidence._entry import Score
from abstain.integrations.torchmetrics import _binned, _samples
from abstain.integrations.torchmetrics._inputs import (
    INPUTS,
    Inputs,
    Samples,
    read,
    usable_score,
)
from abstain.integrations.torchmetrics._library import Metric, gather_all_tensors, torch
from abstain.streaming._scales import Scale, checked_bins, checked_scale


class StreamState(Metric):
    """A metric that keeps samples, all of them or a histogram; see `SelectiveMetric`."""

    def __init__(
        self, *, inputs: Inputs, score: str, bins: int | None, scale: Scale | None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.inputs = checks.one_of(inputs, "inputs", INPUTS)
        self.score = score
        entry = self._score_entry
        self.bins = None if bins is None else checked_bins(bins)
        default = "probability" if entry is None else _scale_of(entry)
        self.scale = default if scale is None else checked_scale(scale)
        # Metrics of a collection share states of equal names and values: different options must
        # never look alike, however alike the first batch may be.
        tag = "" if entry is None else f"_of_{inputs}_{re.sub(r'[^0-9a-z]', '_', score.lower())}"
        self._names = _names(tag, "" if self.bins is None else self.scale.replace("-", "_"))
        self._add_states()

    def _add_states(self) -> None:
        if self.bins is None:
            for name in self._names.values():
                self.add_state(name, default=[], dist_reduce_fx="cat")
            return
        for part, default in _binned.empty(self.bins, self.device).items():
            self.add_state(
                self._names[part], default=default, dist_reduce_fx=_binned.REDUCTIONS[part]
            )

    @property
    def _score_entry(self) -> Score | None:
        return usable_score(self.score, self.inputs)

    def update(self, confidence: Any, loss: Any, weight: Any = None) -> None:
        """Add a batch.

        Parameters
        ----------
        confidence : torch.Tensor of shape (n,), or (n, K)
            Higher means more trusted; or the logits or probabilities, if `inputs` says so.
        loss : torch.Tensor of shape (n,)
            Finite and non-negative; or the labels, 0 to K - 1.
        weight : torch.Tensor of shape (n,), optional
            Frequency weights: an integer weight counts a sample that many times.

        Raises
        ------
        InputError
            If an argument is no tensor or on another device than the metric.
        ShapeError
            If the shapes differ or are not those above.
        DomainError
            If a value is NaN or infinite, a loss or weight is negative, or a confidence is
            outside the scale.
        """
        new = (
            confidence if isinstance(confidence, Samples) else self._read(confidence, loss, weight)
        )
        if self.bins is None:
            for part, x in new._asdict().items():
                # As torchmetrics will do with the whole list once this returns.
                kept = x.cpu() if self.compute_on_cpu else x
                self._set(part, _samples.extended(self._get(part), kept))
            return
        for part, x in self._states().items():
            if x.is_inference() and not torch.is_inference_mode_enabled():
                self._set(part, x.clone())
        _binned.add(self._states(), new, self.scale)

    def reset(self) -> None:
        """Forget every sample."""
        for part, x in self._states().items():
            if self.bins is None and isinstance(x, torch.Tensor):
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
            Gathers one tensor; by default that of torchmetrics.
        process_group : torch.distributed.ProcessGroup, optional
            By default the metric's own.
        should_sync : bool, default=True
            Whether to do anything.
        distributed_available : callable, optional
            Tells whether there are processes to gather from.
        """
        available = distributed_available or self.distributed_available_fn
        if should_sync and not self._is_synced and self.bins is None and available():
            gather = dist_sync_fn or gather_all_tensors
            self._agree(lambda x: gather(x, group=process_group or self.process_group))
        super().sync(dist_sync_fn, process_group, should_sync, distributed_available)

    def _agree(self, gather: Callable[[Any], Any]) -> None:
        """Give the samples of every process one type, those of one without samples too."""
        own = {part: self._joined(part) for part in self._names}
        codes = torch.tensor([_samples.code_of(x) for x in own.values()], device=self.device)
        table = torch.stack(gather(codes)).tolist()
        for (part, x), column in zip(own.items(), zip(*table, strict=True), strict=True):
            self._set(part, [x.to(_samples.common_type(list(column)))])

    def _apply(self, fn: Callable[..., Any], exclude_state: Any = ()) -> Any:
        """Move the states with the module, but never cast them."""
        names = tuple(self._names.values())
        super()._apply(fn, exclude_state=(*names, *exclude_state))
        for name in names:
            self._defaults[name] = _moved(self._defaults[name], self.device)
            setattr(self, name, _moved(getattr(self, name), self.device))
        return self

    def _get(self, part: str) -> Any:
        return getattr(self, self._names[part])

    def _set(self, part: str, value: Any) -> None:
        setattr(self, self._names[part], value)

    def _states(self) -> dict[str, Any]:
        return {part: self._get(part) for part in self._names}

    def _joined(self, part: str) -> Any:
        return _samples.sendable(_samples.joined(self._get(part), self.device))

    def _read(self, confidence: Any, loss: Any, weight: Any) -> Samples:
        return read(
            confidence, loss, weight, inputs=self.inputs, score=self.score, device=self.device
        )


def _scale_of(entry: Score) -> str:
    return entry.unit if entry.unit in {"probability", "log-odds"} else "real"


def _names(tag: str, scale: str) -> dict[str, str]:
    """Map the parts of a state to the names torchmetrics knows them by."""
    if not scale:
        return {part: f"samples_{part}{tag}" for part in Samples._fields}
    return {part: f"bins_{part}_{scale}{tag}" for part in _binned.REDUCTIONS}


def _moved(x: Any, device: Any) -> Any:
    return [part.to(device) for part in x] if isinstance(x, list) else x.to(device)
