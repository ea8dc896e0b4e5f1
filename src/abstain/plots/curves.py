"""Displays of curves: risk against coverage, ROC of failures, a metric, reliability, retention."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
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
from abstain.plots.drawable import CurveT, Display, curves_by_name, curve_column
from abstain.plots.style import RELIABILITY_TITLES, COVERAGE_TITLE, CURVE_ID, RISK_TITLES, reference_style
from abstain.typing import AnyArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: More vertices than this are thinned before they are drawn and tabled.
_VERTICES = 2000


@dataclass(eq=False)
class RiskCoverageDisplay(Display[RiskCoverageCurve]):
    """Risk against coverage, with the working points worth choosing marked.

    Straight segments join the vertices, as the trapezoid of AURC and AUGRC has them. No
    threshold lies between two vertices: where many samples are tied the segment is long.
    Curves of more than about 2000 vertices are thinned for drawing and in the table.

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
        """Compute the curves.

        Parameters
        ----------
        confidence : array of shape (n,), or mapping from name to array
            Higher means more trusted; several scores by name.
        loss : array of shape (n,)
            Finite and non-negative; 1 for an error under 0/1 loss.
        kind : {"selective", "generalized"}, default="selective"
            Mean loss of the accepted, or accepted loss per sample.
        weight : array of shape (n,), optional
            Frequency weights.

        Returns
        -------
        RiskCoverageDisplay
            Call `plot` to draw it.
        """
        functions = {
            "selective": risk_coverage_curve,
            "generalized": generalized_risk_coverage_curve,
        }
        if kind not in functions:
            raise InputError(f"`kind` must be 'selective' or 'generalized'; got {kind!r}")
        return cls(curves_by_name(confidence, lambda c: functions[kind](c, loss, weight=weight)))

    def plot(
        self, ax: "Axes | None" = None, *, usable: bool = True, steps: bool = False, **kwargs: Any
    ) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.
        usable : bool, default=True
            Mark the vertices that no larger coverage matches in selective risk.
        steps : bool, default=False
            Keep the risk of a vertex until the next one instead of joining them: what a
            threshold really gives between two distinct confidences.
        **kwargs
            Passed to every ``Axes.plot`` of a curve (color, linewidth, label).

        Returns
        -------
        RiskCoverageDisplay
            With `ax_` and `figure_` set.
        """
        if steps:
            kwargs = {"drawstyle": "steps-post", **kwargs}
        super().plot(ax, **kwargs)
        if usable and self.ax_ is not None:
            self._mark_usable(self.ax_)
        return self

    def _mark_usable(self, ax: "Axes") -> None:
        lines = [line for line in ax.get_lines() if line.get_gid() == CURVE_ID]
        drawn = lines[-len(self.curves) :]
        for line, curve in zip(drawn, self.curves.values(), strict=True):
            kept = self._drawn(curve)
            at = curve_column(kept, "usable")
            x, y = curve_column(kept, self.x)[at], curve_column(kept, self.y)[at]
            ax.scatter(x, y, s=9, color=line.get_color(), linewidths=0, zorder=3)

    def _drawn(self, curve: RiskCoverageCurve) -> RiskCoverageCurve:
        on_host = {
            f.name: getattr(curve, f.name) if f.name in {"kind", "total"} else curve_column(curve, f.name)
            for f in fields(curve)
        }
        return thin(RiskCoverageCurve(**on_host), vertices=_VERTICES)

    def _draw(self, ax: "Axes", curve: RiskCoverageCurve, style: dict[str, Any]) -> None:
        super()._draw_curve(ax, curve, style)
        # From the first vertex to coverage 0: the selective risk is taken as flat there, the
        # generalized risk starts at the origin.
        first = curve.risk[0] if curve.kind == "selective" else 0.0
        lead = {**style, "linestyle": ":", "linewidth": 1.0, "label": "_lead", "gid": None}
        ax.plot([0.0, curve.coverage[0]], [first, curve.risk[0]], **lead)

    def _titles(self) -> tuple[str, str]:
        kinds = {curve.kind for curve in self.curves.values()}
        risk = RISK_TITLES[kinds.pop()] if len(kinds) == 1 else "Risk"
        return COVERAGE_TITLE, risk


class _OfLosses(Display[CurveT]):
    """Curves that need nothing but confidences, losses and weights."""

    #: From confidences and losses to the curve.
    compute: ClassVar[Callable[..., Any]]

    @classmethod
    def from_predictions(
        cls,
        confidence: AnyArray | Mapping[str, AnyArray],
        loss: AnyArray,
        *,
        weight: AnyArray | None = None,
    ) -> Self:
        """Compute the curves.

        Parameters
        ----------
        confidence : array of shape (n,), or mapping from name to array
            Higher means more trusted; several scores by name.
        loss : array of shape (n,)
            Finite and non-negative. 1 for a failure, 0 for a success in an ROC curve; in [0, 1]
            where it is an accuracy that is drawn.
        weight : array of shape (n,), optional
            Frequency weights.

        Returns
        -------
        Self
            Call `plot` to draw it.
        """
        return cls(curves_by_name(confidence, lambda c: cls.compute(c, loss, weight=weight)))


@dataclass(eq=False)
class FailureRocDisplay(_OfLosses[FailureRocCurve]):
    """Successes kept against failures let through; the dotted diagonal knows nothing.

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

        return cls(curves_by_name(confidence, curve))

    def _titles(self) -> tuple[str, str]:
        names = {curve.metric for curve in self.curves.values()}
        title = names.pop().replace("_", " ") if len(names) == 1 else "value"
        return COVERAGE_TITLE, title


# Area of the dot of a bin that holds nothing and of one that holds everything, in points^2.
_SMALLEST, _LARGEST = 8.0, 160.0


@dataclass(eq=False)
class ReliabilityDisplay(Display[ReliabilityCurve]):
    """Share right against mean confidence; larger dots hold more samples.

    On the dotted diagonal confidence means what it says; below it is overconfident.

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
        """Compute the curves.

        Parameters
        ----------
        confidence : array of shape (n,), or mapping from name to array
            In [0, 1], read as the probability of being right; several scores by name.
        loss : array of shape (n,)
            In [0, 1]; 1 for an error under 0/1 loss.
        bins : int, default=15
            Number of bins.
        binning : {"equal_width", "equal_mass"}, default="equal_width"
            Bins of equal width in confidence, or of about equal weight.
        weight : array of shape (n,), optional
            Frequency weights.

        Returns
        -------
        ReliabilityDisplay
            Call `plot` to draw it.
        """

        def curve(c: AnyArray) -> ReliabilityCurve:
            return reliability_curve(c, loss, bins=bins, binning=binning, weight=weight)

        return cls(curves_by_name(confidence, curve))

    def _draw(self, ax: "Axes", curve: ReliabilityCurve, style: dict[str, Any]) -> None:
        (line,) = ax.plot(curve_column(curve, self.x), curve_column(curve, self.y), **style)
        share = curve_column(curve, "weight") / curve.total
        size = _SMALLEST + (_LARGEST - _SMALLEST) * share
        color = line.get_color()
        dots = (curve_column(curve, self.x), curve_column(curve, self.y))
        ax.scatter(*dots, s=size, color=color, linewidths=0, zorder=3, clip_on=False)

    def _draw_reference(self, ax: "Axes") -> None:
        ax.plot([0, 1], [0, 1], label="_diagonal", **reference_style())

    def _titles(self) -> tuple[str, str]:
        return RELIABILITY_TITLES


@dataclass(eq=False)
class RetentionDisplay(_OfLosses[ErrorRetentionCurve]):
    """Mean loss when the rejected samples go to an oracle, against the share kept.

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
        return "Retention (share the model answers)", "Mean loss, an oracle answering the rest"


@dataclass(eq=False)
class AccuracyRejectionDisplay(_OfLosses[AccuracyRejectionCurve]):
    """Accuracy of the accepted against the share rejected.

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
        return "Rejection (share rejected)", "Accuracy of the accepted"


def display_of(curve: object) -> Display[Any]:
    """Return the display of a curve, not drawn yet."""
    kinds: dict[type, type[Display[Any]]] = {
        RiskCoverageCurve: RiskCoverageDisplay,
        FailureRocCurve: FailureRocDisplay,
        MetricCoverageCurve: MetricCoverageDisplay,
        ReliabilityCurve: ReliabilityDisplay,
        ErrorRetentionCurve: RetentionDisplay,
        AccuracyRejectionCurve: AccuracyRejectionDisplay,
    }
    return kinds[type(curve)].from_curve(curve)
