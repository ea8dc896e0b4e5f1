"""`SelectiveMetric`, a torchmetrics metric of confidence and loss, and collections of metrics."""

import warnings
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from abstain import streaming
from abstain._foundation.scored import Scored, validate_samples
from abstain.confidence.registry import BASELINE
from abstain.errors import DomainError, InputError, UndefinedMetricWarning
from abstain.integrations.torchmetrics._inputs import BatchTensors, Inputs, widest_float
from abstain.integrations.torchmetrics._library import MetricCollection, torch
from abstain.integrations.torchmetrics._state import (
    StreamState,
    as_probabilities,
    concatenate,
    histogram,
)
from abstain.integrations.trackers import DEFAULT_METRICS
from abstain.metrics import Need, metric_named
from abstain.metrics.catalogue import DEFAULT_METRIC
from abstain.metrics.entry import value_with_warning
from abstain.streaming import Bounded
from abstain.streaming.scales import Scale
from abstain.streaming.states import bounded_metric

_AVAILABLE_INPUTS = frozenset(
    {Need.BINARY_LOSS, Need.UNIT_LOSS, Need.UNIT_CONFIDENCE, Need.CORRECTNESS}
)


class SelectiveMetric(StreamState):
    """A torchmetrics class for any metric of confidence and loss.

    Parameters
    ----------
    metric : str, default="augrc"
        A name in `abstain.metrics.METRICS`, such as "e_aurc" or "ece". Numbers in the name may be
        replaced, as in "selective_risk@85cov". The metric must not require labels or class
        probabilities.
    inputs : {"confidence", "logits", "probabilities"}, default="confidence"
        Arguments of `update`. "confidence" means confidence and loss of each sample. "logits" and
        "probabilities" mean class scores of shape (n, K) and labels. With class scores, the score
        `score` is the confidence, and the 0/1 loss is the loss.
    score : str, default="msr"
        A name in `abstain.confidence.SCORES`, which is ignored if `inputs` is "confidence".
    bins : int, optional
        Number of bins of a histogram, such as 65536. With bins, the state needs 40 bytes per bin,
        and `compute_bounds` returns bounds of the exact value. By default, the state contains all
        samples and the value is exact.
    scale : {"probability", "log-odds", "real"}, optional
        Scale that maps confidences to bins, see `abstain.streaming.init`. The default is the scale
        of the score. If `inputs` is "confidence", the default is "probability", which requires
        confidences in [0, 1].
    **kwargs : dict
        Arguments of `torchmetrics.Metric`, such as `dist_sync_on_step`, `process_group` and
        `sync_on_compute`.

    Raises
    ------
    UnknownNameError
        If no metric or no score has this name.
    InputError
        If the metric requires other inputs than confidence and loss, if `bins` is set but the
        metric has no bounds, or if an option is invalid.

    Notes ----- The value is a scalar tensor on the device of the metric, of type float64 (float32
    on MPS). If the metric is undefined, the value is NaN and an `UndefinedMetricWarning` is issued.
    Confidences keep their precision, including half precision, and sums are computed in float64.
    Casting a model with ``.half()`` or ``.to(dtype)`` does not change the state. The value has no
    gradient, and does not depend on the division into batches and processes or on the order of
    samples. In a collection, metrics with equal options share one state. Each update validates its
    batch, which requires one synchronization with the device. `compute` sorts the samples once.

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
        self.metric = _check_metric(metric)
        if bins is not None:
            bounded_metric(metric)
        super().__init__(inputs=inputs, score=score, bins=bins, scale=scale, **kwargs)

    @property
    def higher_is_better(self) -> bool:
        """Whether a higher value is better."""
        return not metric_named(self.metric).lower_is_better

    def compute(self) -> Any:
        """Compute the metric of all samples since the last reset.

        Returns
        -------
        torch.Tensor
            Value of the metric as a scalar tensor on the device of the metric. If the metric is
            undefined or there are no samples, the value is NaN and an `UndefinedMetricWarning` is
            issued.
        """
        return self._tensor(self._bounded().value)

    def compute_bounds(self) -> Bounded:
        """Compute the metric and bounds that contain its exact value.

        Returns
        -------
        Bounded
            The floats `value`, `low` and `high`, which cover the samples of all processes. If the
            state contains all samples, the three numbers are equal.
        """
        # If the caller synchronized the metric, the metric remains synchronized.
        must_sync = not self._is_synced
        with self.sync_context(
            dist_sync_fn=self.dist_sync_fn,
            should_sync=must_sync and self.sync_on_compute,
            should_unsync=must_sync,
        ):
            return self._bounded()

    @property
    def error_bound(self) -> float:
        """Maximum difference between the value and the exact value. Without `bins`, it is 0."""
        return self.compute_bounds().error_bound

    @torch.jit.unused
    def forward(self, confidence: Any, loss: Any, weight: Any = None) -> Any:
        """Add a batch, and return the exact value of the metric on this batch.

        Parameters
        ----------
        confidence, loss, weight : torch.Tensor
            As in `update`.

        Returns
        -------
        torch.Tensor
            Value of the metric on this batch only.
        """
        if self._is_synced or self.dist_sync_on_step:
            return super().forward(confidence, loss, weight)
        batch = self._read(confidence, loss, weight)
        for part, state in self._states().items():
            # Metrics of a collection share their states, and `forward` is called for each metric.
            if isinstance(state, torch.Tensor):
                self._set(part, state.clone())
        self.update(batch, loss)
        self._forward_cache = self._tensor(self._exact(batch))
        return self._forward_cache

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Plot one or several values with the plot function of torchmetrics.

        Parameters
        ----------
        val : torch.Tensor or list of torch.Tensor, optional
            Results of `forward` or `compute`. The default is the current value.
        ax : matplotlib.axes.Axes, optional
            Axes of the plot.

        Returns
        -------
        tuple
            The figure and its axes.
        """
        return self._plot(val, ax)

    def _tensor(self, value: float) -> Any:
        return torch.tensor(value, dtype=widest_float(self.device), device=self.device)

    def _bounded(self) -> Bounded:
        """Return the metric and its bounds, computed from the current state."""
        if self.bins is None:
            parts = {part: concatenate(self._get(part), self.device) for part in self._names}
            value = self._exact(BatchTensors(**parts))
            return Bounded(value, value, value)
        state = histogram(self._states(), self.scale)
        if Need.UNIT_CONFIDENCE in metric_named(self.metric).measurement.needs:
            state = as_probabilities(state, self._score_entry)
        return streaming.compute(state, self.metric)

    def _exact(self, samples: BatchTensors) -> float:
        """Compute the exact metric of samples."""
        if not bool((samples.weight > 0).any()):
            msg = f"{self.metric} is undefined here: there are no samples"
            warnings.warn(msg, UndefinedMetricWarning, stacklevel=3)
            return float("nan")
        metric = metric_named(self.metric)
        scored = self._scored(samples)
        reason = metric.reason_not_applicable(scored)
        if reason:
            raise DomainError(f"the metric {self.metric!r} {reason}")
        return float(value_with_warning(metric.compute(scored), self.metric))

    def _scored(self, samples: BatchTensors) -> Scored:
        """Return the inputs of metrics, including probabilities if the score defines them."""
        has_weights = samples.weight.is_floating_point()
        weight = samples.weight if has_weights else None
        scored = validate_samples(samples.confidence, samples.loss, weight)
        if self._score_entry is None:
            return scored
        to_probability = self._score_entry.to_probability
        if to_probability is None:
            return replace(scored, probability=None)
        return replace(scored, probability=to_probability(scored.confidence))


def _check_metric(name: str) -> str:
    unmet = metric_named(name).measurement.needs - _AVAILABLE_INPUTS
    if unmet:
        reasons = "; ".join(sorted(need.value for need in unmet))
        raise InputError(
            f"`metric` must need no more than a confidence and a loss; {name!r} {reasons}"
        )
    return name


def selective_metrics(
    metrics: Iterable[str] = DEFAULT_METRICS,
    *,
    prefix: str | None = None,
    postfix: str | None = None,
    **kwargs: Any,
) -> Any:
    """Return a collection of metrics, which share one copy of the samples.

    Parameters
    ----------
    metrics : iterable of str, optional
        Names of metrics, as in `SelectiveMetric`. The default is AUGRC, AURC, failure AUROC, the
        selective risk at 80% coverage and the coverage at 5% risk.
    prefix, postfix : str, optional
        Prefix and postfix of each name in the results, such as "val/".
    **kwargs : dict
        Options `inputs`, `score`, `bins` and `scale`, and arguments of `torchmetrics.Metric`, for
        all metrics.

    Returns
    -------
    torchmetrics.MetricCollection
        Metrics by name. In names of metrics, points are replaced by commas, as in "cwsa@0,5",
        because names of PyTorch modules must not contain points.

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
