"""`MetricValue`: the value of a metric, or the reason why it is undefined."""

from dataclasses import dataclass

from abstain.typing import Scalar


@dataclass(frozen=True)
class MetricValue:
    """The value of a metric with its number of samples, and the reason if it is NaN."""

    #: NaN if the metric is undefined for these data. A zero-dimensional array if the loss has a
    #: gradient.
    value: Scalar
    #: Number of accepted samples from which the value is computed; None for all samples.
    n_accepted: int | None = None
    #: The reason why the value is NaN, as a sentence; empty for a defined value.
    reason: str = ""


def undefined(reason: str) -> MetricValue:
    """Return the NaN of a metric that is undefined for valid data, with the reason."""
    return MetricValue(float("nan"), None, reason)
