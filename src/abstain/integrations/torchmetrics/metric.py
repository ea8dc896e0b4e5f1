"""`SelectiveMetric`: any metric of (confidence, loss) for PyTorch, alone or in a collection."""

import warnings
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from abstain import streaming
from abstain._foundation.scored import Scored, validate_samples
from abstain.confidence.registry import BASELINE
from abstain.errors import DomainError, InputError, UndefinedMetricWarning
from abstain.integrations.torchmetrics._inputs import BatchTensors, Inputs, double
from abstain.integrations.torchmetrics._library import MetricCollection, torch
from abstain.integrations.torchmetrics._state import (
    StreamState,
    as_probabilities,
    histogram,
    joined,
)
from abstain.integrations.trackers import DEFAULTS
from abstain.metrics import Need, metric_named
from abstain.metrics.catalogue import DEFAULT_METRIC
from abstain.metrics.entry import value_with_warning
from abstain.streaming import Bounded
from abstain.streaming.bounds import bounded_metric
from abstain.streaming.scales import Scale

_KEPT = frozenset({Need.BINARY_LOSS, Need.UNIT_LOSS, Need.UNIT_CONFIDENCE, Need.CORRECTNESS})


class SelectiveMetric(StreamState):
    """Any metric that needs only a confidence and a loss, for PyTorch training loops.

    Answers: what is this metric over all batches, and over all processes, so far?

    Parameters
    ----------
    metric : str, default="augrc"
        A name of `abstain.metrics.METRICS` that needs neither labels nor class probabilities,
        with numbers of your own where it has one: "e_aurc", "selective_risk@85cov", "ece".
    inputs : {"confidence", "logits", "probabilities"}, default="confidence"
        What `update` is given: confidence and loss of each sample, or logits or probabilities of
        shape (n, K) and labels, of which `score` makes a confidence and whose loss is the 0/1
        error. Never guessed.
    score : str, default="msr"
        A name of `abstain.confidence.SCORES`; not used when `inputs` is "confidence".
    bins : int, optional
        Without it every sample is kept and the value is exact. With it, say 65536, memory is
        bounded by 40 bytes a bin and `compute_bounds` says how far the value can be off.
    scale : {"probability", "log-odds", "real"}, optional
        How confidences are mapped to bins, see `abstain.streaming.init`. By default
        "probability", which refuses others; with a score by name the scale of that score.
    **kwargs : dict
        Those of `torchmetrics.Metric`: `dist_sync_on_step`, `process_group`, `sync_on_compute`
        and so on.

    Raises
    ------
    UnknownNameError
        If there is no such metric or score.
    InputError
        If the metric needs more than a confidence and a loss, or has no error bound when `bins`
        is given, or an option is not allowed.

    Notes
    -----
    The value is a tensor with no axes on the metric's device, in float64 (float32 on MPS, which has
    no other), and NaN with an `UndefinedMetricWarning` when the metric is undefined. Confidences
    keep their precision, also half; sums are in float64; casting a model with ``.half()`` or
    ``.to(dtype)`` leaves the state as it is. Batches, row order and processes do not matter.
    Metrics of one collection with the same options share one state. Not differentiable. Cost: an
    update checks the batch, which waits for the device once; `compute` sorts once.

    Examples
    --------
    >>> import torch
    >>> from abstain.integrations.torchmetrics import SelectiveMetric
    >>> metric = SelectiveMetric("augrc")
    >>> metric.update(torch.tensor([0.9, 0.8]), torch.tensor([0, 1]))
    >>> metric.update(torch.tensor([0.7, 0.6]), torch.tensor([0, 1]))
    >>> metric.compute()
    tensor(0.1875, dtype=torch.float64)
    """

    is_differentiable = False
    full_state_update = False

    def __init__(
        self,
        metric: str = DEFAULT_METRIC,
        *,
        inputs: Inputs = "confidence",
        score: str = BASELINE,
        bins: int | None = None,
        scale: Scale | None = None,
        **kwargs: Any,
    ) -> None:
        self.metric = _of_confidence_and_loss(metric)
        if bins is not None:
            bounded_metric(metric)
        super().__init__(inputs=inputs, score=score, bins=bins, scale=scale, **kwargs)

    @property
    def higher_is_better(self) -> bool:
        """Whether a larger value is a better one."""
        return not metric_named(self.metric).lower_is_better

    def compute(self) -> Any:
        """Compute the metric over everything since the last reset.

        Returns
        -------
        torch.Tensor
            Without axes, on the metric's device; NaN, with an `UndefinedMetricWarning`, when the
            metric is undefined or there are no samples.
        """
        return self._tensor(self._bounded().value)

    def compute_bounds(self) -> Bounded:
        """Compute the metric and certified limits of its exact value.

        Returns
        -------
        Bounded
            Python floats `value`, `low`, `high`, of all processes together; all three are equal
            where every sample is kept.
        """
        # A metric that its caller synced stays synced.
        own = not self._is_synced
        with self.sync_context(
            dist_sync_fn=self.dist_sync_fn,
            should_sync=own and self.sync_on_compute,
            should_unsync=own,
        ):
            return self._bounded()

    @property
    def error_bound(self) -> float:
        """The most by which the value can differ from the exact one; 0 without `bins`."""
        return self.compute_bounds().error_bound

    @torch.jit.unused
    def forward(self, confidence: Any, loss: Any, weight: Any = None) -> Any:
        """Add a batch and return its own value, always exact.

        Parameters
        ----------
        confidence, loss, weight : torch.Tensor
            As in `update`.

        Returns
        -------
        torch.Tensor
            The metric of this batch alone.
        """
        if self._is_synced or self.dist_sync_on_step:
            return super().forward(confidence, loss, weight)
        new = self._read(confidence, loss, weight)
        for part, x in self._states().items():
            # Metrics of a collection share their states, and each is called.
            self._set(part, x.clone() if isinstance(x, torch.Tensor) else x)
        self.update(new, loss)
        self._forward_cache = self._tensor(self._exact(new))
        return self._forward_cache

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Plot one or several values as torchmetrics does.

        Parameters
        ----------
        val : torch.Tensor or list of torch.Tensor, optional
            What `forward` or `compute` returned; by default the present value.
        ax : matplotlib.axes.Axes, optional
            Where to draw.

        Returns
        -------
        tuple
            The figure and its axes.
        """
        return self._plot(val, ax)

    def _tensor(self, value: float) -> Any:
        return torch.tensor(value, dtype=double(self.device), device=self.device)

    def _bounded(self) -> Bounded:
        if self.bins is None:
            value = self._exact(
                BatchTensors(*(joined(self._get(p), self.device) for p in self._names))
            )
            return Bounded(value, value, value)
        state = histogram(self._states(), self.scale)
        if Need.UNIT_CONFIDENCE in metric_named(self.metric).measurement.needs:
            state = as_probabilities(state, self._score_entry)
        return streaming.compute(state, self.metric)

    def _exact(self, samples: BatchTensors) -> float:
        if not bool((samples.weight > 0).any()):
            msg = f"{self.metric} is undefined here: there are no samples"
            warnings.warn(msg, UndefinedMetricWarning, stacklevel=3)
            return float("nan")
        entry, s = metric_named(self.metric), self._scored(samples)
        if missing := entry.reason_not_applicable(s):
            raise DomainError(f"the metric {self.metric!r} {missing}")
        return float(value_with_warning(entry.compute(s), self.metric))

    def _scored(self, samples: BatchTensors) -> Scored:
        weighted = samples.weight.is_floating_point()
        s = validate_samples(samples.confidence, samples.loss, samples.weight if weighted else None)
        if self._score_entry is None:
            return s
        means = self._score_entry.to_probability
        return replace(s, probability=None if means is None else means(s.confidence))


def _of_confidence_and_loss(name: str) -> str:
    unmet = metric_named(name).measurement.needs - _KEPT
    if unmet:
        why = "; ".join(sorted(need.value for need in unmet))
        raise InputError(f"`metric` must need no more than a confidence and a loss; {name!r} {why}")
    return name


def selective_metrics(
    metrics: Iterable[str] = DEFAULTS,
    *,
    prefix: str | None = None,
    postfix: str | None = None,
    **kwargs: Any,
) -> Any:
    """Make a collection of metrics that share one state.

    Answers: how do I watch several numbers and keep the samples once?

    Parameters
    ----------
    metrics : iterable of str, optional
        Names as in `SelectiveMetric`; by default AUGRC, AURC, failure AUROC, the selective risk at
        80% coverage and the coverage at 5% risk.
    prefix, postfix : str, optional
        Put around each name in the results, "val/" for one.
    **kwargs : dict
        `inputs`, `score`, `bins`, `scale` and those of `torchmetrics.Metric`, for all metrics.

    Returns
    -------
    torchmetrics.MetricCollection
        By name; a point in a name becomes a comma ("cwsa@0,5"), since modules of PyTorch have no
        points in their names.

    Raises
    ------
    UnknownNameError, InputError
        As in `SelectiveMetric`.

    Examples
    --------
    >>> import torch
    >>> from abstain.integrations.torchmetrics import selective_metrics
    >>> metrics = selective_metrics(["augrc", "coverage@5risk"], prefix="val/")
    >>> metrics.update(torch.tensor([0.9, 0.8, 0.7, 0.6]), torch.tensor([0, 0, 1, 0]))
    >>> {name: round(value.item(), 4) for name, value in metrics.compute().items()}
    {'val/augrc': 0.0938, 'val/coverage@5risk': 0.5}
    """
    return MetricCollection(
        {name.replace(".", ","): SelectiveMetric(name, **kwargs) for name in metrics},
        prefix=prefix,
        postfix=postfix,
    )
