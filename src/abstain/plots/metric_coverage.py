"""A threshold metric against coverage."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

from abstain.curves.metric_coverage import (
    MetricCoverageCurve,
    ThresholdMetric,
    metric_coverage_curve,
)
from abstain.plots._display import Display, by_score
from abstain.typing import AnyArray


@dataclass(eq=False)
class MetricCoverageDisplay(Display[MetricCoverageCurve]):
    """A metric of a threshold (selective accuracy, CWSA) against the coverage it leaves.

    Examples
    --------
    >>> from abstain.plots import MetricCoverageDisplay
    >>> display = MetricCoverageDisplay.from_predictions([0.9, 0.8, 0.8, 0.6], [0, 1, 0, 1])
    >>> display.frame()["value"].round(3).to_list()
    [1.0, 0.667, 0.5]
    """

    x: ClassVar[str] = "coverage"
    y: ClassVar[str] = "value"

    @classmethod
    def from_predictions(
        cls,
        confidence: AnyArray | Mapping[str, AnyArray],
        loss: AnyArray,
        *,
        metric: Literal["selective_accuracy"] | ThresholdMetric = "selective_accuracy",
        thresholds: AnyArray | None = None,
        weight: AnyArray | None = None,
    ) -> Self:
        """Compute the curves.

        Parameters
        ----------
        confidence : array of shape (n,), or mapping from name to array
            Higher means more trusted; several scores by name.
        loss : array of shape (n,)
            Finite and non-negative.
        metric : "selective_accuracy" or callable, default="selective_accuracy"
            What to sweep; a callable is called as ``metric(confidence, loss, threshold=t,
            weight=weight)``, as `cwsa` and `cwsa_plus` are.
        thresholds : array of shape (t,), optional
            Where to evaluate; by default up to 200 distinct confidences.
        weight : array of shape (n,), optional
            Frequency weights.

        Returns
        -------
        MetricCoverageDisplay
            Call `plot` to draw it.
        """

        def curve(c: AnyArray) -> MetricCoverageCurve:
            return metric_coverage_curve(
                c, loss, metric=metric, thresholds=thresholds, weight=weight
            )

        return cls(by_score(confidence, curve))

    def _titles(self) -> tuple[str, str]:
        names = {curve.metric for curve in self.curves.values()}
        title = names.pop().replace("_", " ") if len(names) == 1 else "value"
        return "Coverage (share accepted)", title
