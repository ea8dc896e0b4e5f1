"""Displays of risk-coverage, failure ROC, metric-coverage, reliability and retention curves."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from abstain.curves.failure_roc import FailureRocCurve, failure_roc_curve
from abstain.curves.metric_coverage import (
    MetricCoverageCurve,
    ThresholdMetric,
    metric_coverage_curve,
)
from abstain.curves.reliability import Binning, ReliabilityCurve, reliability_curve
from abstain.curves.retention import (
    AccuracyRejectionCurve,
    ErrorRetentionCurve,
    accuracy_rejection_curve,
    error_retention_curve,
)
from abstain.curves.risk_coverage import (
    Kind,
    RiskCoverageCurve,
    generalized_risk_coverage_curve,
    risk_coverage_curve,
    thin,
)
from abstain.errors import InputError
from abstain.plots.drawable import CurveT, Display, curve_column, curves_by_name
from abstain.plots.style import (
    COVERAGE_TITLE,
    CURVE_ID,
    RELIABILITY_TITLES,
    RISK_TITLES,
    Style,
    reference_style,
)
from abstain.typing import AnyArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Curves with more vertices are thinned in figures and tables.
_MAX_VERTICES = 2000


@dataclass(eq=False)
class RiskCoverageDisplay(Display[RiskCoverageCurve]):
    """Risk by coverage, with dots at efficient thresholds.

    A threshold is efficient if no threshold with a larger coverage has an equal or lower selective
    risk. Straight segments connect the points of the curve, as in the trapezoidal AURC and AUGRC.
    Samples with equal confidence form one point, so many tied samples lead to a long segment. If a
    curve has more than about 2,000 points, the figure and the table contain only some of them.

    Examples
    --------
    >>> from abstain.plots import RiskCoverageDisplay
    >>> display = RiskCoverageDisplay.from_predictions([0.9, 0.8, 0.8, 0.6], [0, 1, 0, 0])
    >>> display.frame()["risk"].round(3).to_list()
    [0.0, 0.333, 0.25]
    """

    x: ClassVar[str] = "coverage"
    y: ClassVar[str] = "risk"

    @classmethod
    def from_predictions(
        cls,
        confidence: AnyArray | Mapping[str, AnyArray],
        loss: AnyArray,
        *,
        kind: Kind = "selective",
        weight: AnyArray | None = None,
    ) -> Self:
        """Compute the curves from confidences and losses.

        Parameters
        ----------
        confidence : array of shape (n,), or mapping from name to array
            Confidence scores. A higher value is more confident. Pass a mapping for several scores.
        loss : array of shape (n,)
            Loss of each sample, finite and non-negative. With 0/1 loss, an error has loss 1.
        kind : {"selective", "generalized"}, default="selective"
            Kind of risk. The selective risk is the mean loss of the accepted samples, and the
            generalized risk is the accepted loss per sample.
        weight : array of shape (n,), optional
            Frequency weights.

        Returns
        -------
        RiskCoverageDisplay
            Display of the data. The method `plot` draws the figure.
        """
        functions = {
            "selective": risk_coverage_curve,
            "generalized": generalized_risk_coverage_curve,
        }
        if kind not in functions:
            raise InputError(f"`kind` must be 'selective' or 'generalized'; got {kind!r}")
        return cls(curves_by_name(functions[kind], confidence, loss, weight=weight))

    def plot(
        self, ax: "Axes | None" = None, *, usable: bool = True, steps: bool = False, **kwargs: Any
    ) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on. The default is a new figure.
        usable : bool, default=True
            Whether to mark the efficient thresholds with dots.
        steps : bool, default=False
            Whether to draw steps instead of straight segments. The height of a step is the risk at
            thresholds between two distinct confidences.
        **kwargs
            Passed to every ``Axes.plot`` of a curve (color, linewidth, label).

        Returns
        -------
        RiskCoverageDisplay
            The display, with `ax_` and `figure_` set.
        """
        if steps:
            kwargs = {"drawstyle": "steps-post", **kwargs}
        super().plot(ax, **kwargs)
        if usable and self.ax_ is not None:
            self._mark_usable(self.ax_)
        return self

    def _mark_usable(self, ax: "Axes") -> None:
        lines = [line for line in ax.get_lines() if line.get_gid() == CURVE_ID]
        curve_lines = lines[-len(self.curves) :]
        for line, curve in zip(curve_lines, self.curves.values(), strict=True):
            thinned = self._for_drawing(curve)
            coverage, risk = thinned.coverage[thinned.usable], thinned.risk[thinned.usable]
            ax.scatter(coverage, risk, s=9, color=line.get_color(), linewidths=0, zorder=3)

    def _for_drawing(self, curve: RiskCoverageCurve) -> RiskCoverageCurve:
        arrays: Any = curve.to_numpy_arrays()
        return thin(replace(curve, **arrays), vertices=_MAX_VERTICES)

    def _draw_curve(self, ax: "Axes", curve: RiskCoverageCurve, style: Style) -> None:
        super()._draw_curve(ax, curve, style)
        # From the first vertex to coverage 0, the selective risk is drawn as constant. The
        # generalized risk starts at the origin.
        first = curve.risk[0] if curve.kind == "selective" else 0.0
        lead = {**style, "linestyle": ":", "linewidth": 1.0, "label": "_lead", "gid": None}
        ax.plot([0.0, curve.coverage[0]], [first, curve.risk[0]], **lead)

    def _titles(self) -> tuple[str, str]:
        kinds = {curve.kind for curve in self.curves.values()}
        risk = RISK_TITLES[kinds.pop()] if len(kinds) == 1 else "Risk"
        return COVERAGE_TITLE, risk


class _LossCurveDisplay(Display[CurveT]):
    """Base class of displays whose curves are computed from confidences, losses and weights."""

    #: Function that computes the curve from confidences and losses.
    compute: ClassVar[Callable[..., Any]]

    @classmethod
    def from_predictions(
        cls,
        confidence: AnyArray | Mapping[str, AnyArray],
        loss: AnyArray,
        *,
        weight: AnyArray | None = None,
    ) -> Self:
        """Compute the curves from confidences and losses.

        Parameters
        ----------
        confidence : array of shape (n,), or mapping from name to array
            Confidence scores. A higher value is more confident. Pass a mapping for several scores.
        loss : array of shape (n,)
            Loss of each sample, finite and non-negative. For a failure ROC curve, the loss must be
            1 for a failure and 0 for a success. For an accuracy-rejection curve, losses must be in
            [0, 1].
        weight : array of shape (n,), optional
            Frequency weights.

        Returns
        -------
        Self
            Display of the data. The method `plot` draws the figure.
        """
        return cls(curves_by_name(cls.compute, confidence, loss, weight=weight))


@dataclass(eq=False)
class FailureRocDisplay(_LossCurveDisplay[FailureRocCurve]):
    """Failure ROC curve: share of accepted successes by share of accepted failures.

    The diagonal is the curve of a random score.

    Examples
    --------
    >>> from abstain.plots import FailureRocDisplay
    >>> display = FailureRocDisplay.from_predictions([0.9, 0.8, 0.8, 0.6], [0, 1, 0, 1])
    >>> display.frame()["true_positive_rate"].to_list()
    [0.0, 0.5, 1.0, 1.0]
    """

    x: ClassVar[str] = "false_positive_rate"
    y: ClassVar[str] = "true_positive_rate"

    compute = staticmethod(failure_roc_curve)

    def _draw_reference(self, ax: "Axes") -> None:
        ax.plot([0, 1], [0, 1], label="_chance", **reference_style())

    def _titles(self) -> tuple[str, str]:
        return "Share of the failures accepted", "Share of the successes accepted"


@dataclass(eq=False)
class MetricCoverageDisplay(Display[MetricCoverageCurve]):
    """Metric by coverage, such as selective accuracy or CWSA at each threshold.

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
        """Compute the curves from confidences and losses.

        Parameters
        ----------
        confidence : array of shape (n,), or mapping from name to array
            Confidence scores. A higher value is more confident. Pass a mapping for several scores.
        loss : array of shape (n,)
            Loss of each sample, finite and non-negative.
        metric : "selective_accuracy" or callable, default="selective_accuracy"
            Metric to evaluate at each threshold. A function is called as ``metric(confidence, loss,
            threshold=t, weight=weight)``. `cwsa` and `cwsa_plus` are such callables.
        thresholds : array of shape (t,), optional
            Thresholds to evaluate. By default, at most 200 of the distinct confidences are
            thresholds.
        weight : array of shape (n,), optional
            Frequency weights.

        Returns
        -------
        MetricCoverageDisplay
            Display of the data. The method `plot` draws the figure.
        """
        options = {"metric": metric, "thresholds": thresholds, "weight": weight}
        return cls(curves_by_name(metric_coverage_curve, confidence, loss, **options))

    def _titles(self) -> tuple[str, str]:
        names = {curve.metric for curve in self.curves.values()}
        title = names.pop().replace("_", " ") if len(names) == 1 else "value"
        return COVERAGE_TITLE, title


# Areas of the dots of an empty bin and of a bin with all samples, in square points.
_MIN_DOT_AREA, _MAX_DOT_AREA = 8.0, 160.0


@dataclass(eq=False)
class ReliabilityDisplay(Display[ReliabilityCurve]):
    """Reliability diagrams, which show accuracy by mean confidence in bins.

    Larger dots represent more samples. On the dotted diagonal, accuracy equals confidence. Below
    the diagonal, the score is overconfident.

    Examples
    --------
    >>> from abstain.plots import ReliabilityDisplay
    >>> display = ReliabilityDisplay.from_predictions([0.9, 0.9, 0.2, 0.2], [0, 0, 1, 0], bins=2)
    >>> display.frame()["accuracy"].to_list()
    [0.5, 1.0]
    """

    x: ClassVar[str] = "confidence"
    y: ClassVar[str] = "accuracy"

    @classmethod
    def from_predictions(
        cls,
        confidence: AnyArray | Mapping[str, AnyArray],
        loss: AnyArray,
        *,
        bins: int = 15,
        binning: Binning = "equal_width",
        weight: AnyArray | None = None,
    ) -> Self:
        """Compute the curves from confidences and losses.

        Parameters
        ----------
        confidence : array of shape (n,), or mapping from name to array
            Confidence scores in [0, 1], interpreted as the probability of a correct answer. Pass a
            mapping for several scores.
        loss : array of shape (n,)
            Loss of each sample in [0, 1]. With 0/1 loss, an error has loss 1.
        bins : int, default=15
            Number of bins.
        binning : {"equal_width", "equal_mass"}, default="equal_width"
            Whether bins have equal width in confidence or about equal weight.
        weight : array of shape (n,), optional
            Frequency weights.

        Returns
        -------
        ReliabilityDisplay
            Display of the data. The method `plot` draws the figure.
        """
        options = {"bins": bins, "binning": binning, "weight": weight}
        return cls(curves_by_name(reliability_curve, confidence, loss, **options))

    def _draw_curve(self, ax: "Axes", curve: ReliabilityCurve, style: Style) -> None:
        x, y = curve_column(curve, self.x), curve_column(curve, self.y)
        (line,) = ax.plot(x, y, **style)
        share = curve_column(curve, "weight") / curve.total
        size = _MIN_DOT_AREA + (_MAX_DOT_AREA - _MIN_DOT_AREA) * share
        ax.scatter(x, y, s=size, color=line.get_color(), linewidths=0, zorder=3, clip_on=False)

    def _draw_reference(self, ax: "Axes") -> None:
        ax.plot([0, 1], [0, 1], label="_diagonal", **reference_style())

    def _titles(self) -> tuple[str, str]:
        return RELIABILITY_TITLES


@dataclass(eq=False)
class RetentionDisplay(_LossCurveDisplay[ErrorRetentionCurve]):
    """Mean loss by retention fraction, where an oracle answers the rejected samples.

    Examples
    --------
    >>> from abstain.plots import RetentionDisplay
    >>> display = RetentionDisplay.from_predictions([0.9, 0.8, 0.8, 0.6], [0, 1, 0, 1])
    >>> display.frame()["error"].to_list()
    [0.0, 0.0, 0.25, 0.5]
    """

    x: ClassVar[str] = "retention"
    y: ClassVar[str] = "error"

    compute = staticmethod(error_retention_curve)

    def _titles(self) -> tuple[str, str]:
        return "Retention (share of samples answered by the model)", "Mean loss with an oracle"


@dataclass(eq=False)
class AccuracyRejectionDisplay(_LossCurveDisplay[AccuracyRejectionCurve]):
    """Accuracy of the accepted samples by rejection rate.

    Examples
    --------
    >>> from abstain.plots import AccuracyRejectionDisplay
    >>> display = AccuracyRejectionDisplay.from_predictions([0.9, 0.8, 0.8, 0.6], [0, 1, 0, 1])
    >>> display.frame()["rejection"].to_list()
    [0.75, 0.25, 0.0]
    """

    x: ClassVar[str] = "rejection"
    y: ClassVar[str] = "accuracy"

    compute = staticmethod(accuracy_rejection_curve)

    def _titles(self) -> tuple[str, str]:
        return "Rejection rate", "Accuracy of accepted samples"


def display_of(curve: object) -> Display[Any]:
    """Return a display of the given curve, which is a curve of `abstain.curves`."""
    kinds: dict[type, type[Display[Any]]] = {
        RiskCoverageCurve: RiskCoverageDisplay,
        FailureRocCurve: FailureRocDisplay,
        MetricCoverageCurve: MetricCoverageDisplay,
        ReliabilityCurve: ReliabilityDisplay,
        ErrorRetentionCurve: RetentionDisplay,
        AccuracyRejectionCurve: AccuracyRejectionDisplay,
    }
    return kinds[type(curve)].from_curve(curve)
