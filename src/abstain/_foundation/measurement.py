"""What a metric returns: a number, or why there is none."""

from dataclasses import dataclass

from abstain.typing import Scalar


@dataclass(frozen=True)
class MetricValue:
    """A metric's value, the count behind it, and why it is NaN when it is."""

    #: The number; NaN when it is undefined for these data. An array without axes where a gradient
    #: flows.
    value: Scalar
    #: Number of samples behind it when that is not all of them.
    n_accepted: int | None = None
    #: Empty, or the sentence that says why the value is NaN.
    reason: str = ""


def undefined(reason: str) -> MetricValue:
    """Return the NaN of a metric that valid data leave undefined, with its reason."""
    return MetricValue(float("nan"), None, reason)
