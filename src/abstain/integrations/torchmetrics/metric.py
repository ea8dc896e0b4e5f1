"""`SelectiveMetric`: metrics of confidence and loss for PyTorch, also in a collection."""

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
    """A metric of confidence and loss for PyTorch training loops.

    Answers: what is the value of this metric over all batches and all processes?

    Parameters
    ----------
    metric : str, default="augrc"
        A name of `abstain.metrics.METRICS` that requires neither labels nor class probabilities,
        also with custom numbers: "e_aurc", "selective_risk@85cov", "ece".
    inputs : {"confidence", "logits", "probabilities"}, default="confidence"
        Arguments of `update`: confidence and loss of each sample, or logits or probabilities of
        shape (n, K) and labels. In the latter case, `score` defines the confidence, and the loss
        is the 0/1 loss.
    score : str, default="msr"
        A name of `abstain.confidence.SCORES`; ignored if `inputs` is "confidence".
    bins : int, optional
        Number of bins of a histogram, such as 65536. Memory is then bounded by 40 bytes per bin,
        and `compute_bounds` returns bounds of the exact value. By default, all samples are stored
        and the value is exact.
    scale : {"probability", "log-odds", "real"}, optional
        Mapping of confidences to bins, see `abstain.streaming.init`. Default: the scale of the
        score, or "probability" for confidences, which must then be in [0, 1].
    **kwargs : dict
        Arguments of `torchmetrics.Metric`, such as `dist_sync_on_step`, `process_group` and
        `sync_on_compute`.

    Raises
    ------
    UnknownNameError
        If the metric or the score does not exist.
    InputError
        If the metric requires other inputs than confidence and loss, has no error bound although
        `bins` is set, or an option is invalid.

    Notes
    -----
    The value is a tensor without axes on the device of the metric, in float64 (float32 on MPS). It
    is NaN with an `UndefinedMetricWarning` if the metric is undefined. Confidences keep their
    precision, also half precision; sums are computed in float64. Casting a model with ``.half()``
    or ``.to(dtype)`` does not change the state. The value does not depend on batches, row order
    or processes. Metrics of one collection with the same options share one state. The value is not
    differentiable. An update validates the batch, which synchronizes with the device once;
    `compute` sorts once.

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
        """Whether higher is better."""
        return not metric_named(self.metric).lower_is_better

    def compute(self) -> Any:
        """Compute the metric of all samples since the last reset.

        Returns
        -------
        torch.Tensor
            The metric, without axes, on the device of the metric. NaN, with an
            `UndefinedMetricWarning`, if the metric is undefined or there are no samples.
        """
        return self._tensor(self._bounded().value)

    def compute_bounds(self) -> Bounded:
        """Compute the metric and guaranteed bounds of its exact value.

        Returns
        -------
        Bounded
            Python floats `value`, `low` and `high` of all processes together; they are equal if
            all samples are stored.
        """
        # If the caller synchronized the metric, it remains synchronized.
        must_sync = not self._is_synced
        with self.sync_context(
            dist_sync_fn=self.dist_sync_fn,
            should_sync=must_sync and self.sync_on_compute,
            should_unsync=must_sync,
        ):
            return self._bounded()

    @property
    def error_bound(self) -> float:
        """Maximum difference between the value and the exact one; 0 without `bins`."""
        return self.compute_bounds().error_bound

    @torch.jit.unused
    def forward(self, confidence: Any, loss: Any, weight: Any = None) -> Any:
        """Add a batch and return the exact metric of this batch.

        Parameters
        ----------
        confidence, loss, weight : torch.Tensor
            See `update`.

        Returns
        -------
        torch.Tensor
            The metric of this batch alone.
        """
        if self._is_synced or self.dist_sync_on_step:
            return super().forward(confidence, loss, weight)
        new = self._read(confidence, loss, weight)
        for part, x in self._states().items():
            # Metrics of a collection share their states, and `forward` is called for each of them.
            self._set(part, x.clone() if isinstance(x, torch.Tensor) else x)
        self.update(new, loss)
        self._forward_cache = self._tensor(self._exact(new))
        return self._forward_cache

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Plot one or several values with the method of torchmetrics.

        Parameters
        ----------
        val : torch.Tensor or list of torch.Tensor, optional
            Results of `forward` or `compute`; default: the current value.
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
        if self.bins is None:
            value = self._exact(
                BatchTensors(*(concatenate(self._get(p), self.device) for p in self._names))
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
    """Return a collection of metrics that share one state.

    Answers: how do I monitor several metrics and store the samples once?

    Parameters
    ----------
    metrics : iterable of str, optional
        Names of metrics, see `SelectiveMetric`. Default: AUGRC, AURC, failure AUROC, the selective
        risk at 80% coverage and the coverage at 5% risk.
    prefix, postfix : str, optional
        Prefix and postfix of each name in the results, such as "val/".
    **kwargs : dict
        `inputs`, `score`, `bins`, `scale` and arguments of `torchmetrics.Metric`, for all metrics.

    Returns
    -------
    torchmetrics.MetricCollection
        Metrics by name. Points in names are replaced by commas ("cwsa@0,5"), because names of
        PyTorch modules contain no points.

    Raises
    ------
    UnknownNameError, InputError
        See `SelectiveMetric`.

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
