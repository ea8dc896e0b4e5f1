"""Figure of a decision rule, whose threshold is a point on the risk-coverage curve."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from abstain.curves.risk_coverage import RiskCoverageCurve, thin
from abstain.evaluation.rules import RuleChecks
from abstain.inference.intervals import Interval
from abstain.plots.drawable import Titled
from abstain.plots.formatting import format_percent
from abstain.plots.labels import (
    add_legend_at_right,
    add_legend_below,
    label_width,
    n_legend_columns,
)
from abstain.plots.style import (
    COVERAGE_TITLE,
    CURVE_ID,
    INK,
    LIGHT,
    RISK_TITLES,
    Style,
    error_bar,
    line_style,
    reference_style,
    style_axes,
)
from abstain.plots.verdicts import check_rule_checks, group_severities, shorten_names
from abstain.thresholds import RuleCheck

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

#: Quantities whose target is a horizontal line.
_RISK_TARGETS = ("selective risk", "generalized risk")

_MAX_VERTICES = 2000
#: Maximum number of groups with a curve, and maximum number of vertices of a curve.
_MAX_GROUP_CURVES, _MAX_GROUP_VERTICES = len(LIGHT), 400
#: Width of a figure without other data, in inches.
_COMPACT_WIDTH = 3.9
#: Risks at a lower coverage vary strongly and do not determine the limit of the axis.
_MIN_COVERAGE_FOR_AXIS = 0.05
#: A data set with a larger risk relative to the others is drawn as an arrow at the upper edge.
_MAX_RELATIVE_RISK = 3.0
#: Markers of the data sets. With eight colors, the markers distinguish 40 data sets.
_MARKERS = ("o", "s", "^", "v", "P")
_LEGEND_ROW_HEIGHT = 0.2

# Markers of data sets without a risk (on the axis), and with a risk out of range (upper edge).
_NO_RISK_MARK: Final[dict[str, Any]] = {"marker": "|", "markersize": 14, "clip_on": False}
_OUT_OF_RANGE_MARK: Final = {**_NO_RISK_MARK, "marker": "$\\uparrow$", "markersize": 11}
_ARROW_HEIGHT = 0.965


@dataclass(eq=False)
class DecisionRuleDisplay(Titled):
    """Risk and coverage of a decision rule on the calibration data and on other data.

    The line is the risk-coverage curve of the calibration data, and the dotted line is the target.
    The diamond is the selected threshold. The bar at the diamond extends to the certified bound of
    the risk.

    The other markers are the results of the same threshold on other data, with intervals of
    coverage and risk. A risk that is too large for the axis is drawn as an arrow at the upper edge,
    and its value is in the legend.

    A line connects consecutive data sets whose names differ only in a number at the end, such as
    the severities of a corruption. The markers grow with the severity.

    `plot` passes additional options to the ``Axes.plot`` of the curve (color, linewidth).

    Attributes
    ----------
    checks : RuleChecks
        Result of `check_rule`. The curve is available if `calibration` was passed to `check_rule`.
    shows_data : bool, default=True
        Whether the working points on other data are drawn. If the rule has a threshold for each
        group, the figure contains only a curve and a dot for each group of the calibration data.

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> from abstain.evaluation import check_rule
    >>> from abstain.plots import DecisionRuleDisplay
    >>> rule = ab.thresholds.DecisionRule("risk", 0.5, target=0.1)
    >>> later = ab.Predictions(confidence=np.ones(100), loss=np.arange(100) < 30)
    >>> display = DecisionRuleDisplay.from_checks(check_rule(rule, later))
    >>> display.frame().select("kind", "coverage", "risk").rows()
    [('data', 1.0, 0.3)]
    """

    checks: RuleChecks
    shows_data: bool = True

    @classmethod
    def from_checks(cls, checks: RuleChecks) -> Self:
        """Create a display from the result of `check_rule`.

        Parameters
        ----------
        checks : RuleChecks
            Decision rule with its check results on data sets.

        Returns
        -------
        DecisionRuleDisplay
            Display of the data. The method `plot` draws the figure.
        """
        return cls(check_rule_checks(checks))

    @property
    def title(self) -> str:
        """Title of the figure."""
        rule = self.checks.rule
        if self.checks.group_curves or not self.shows_data:
            risk = "Wrong answers" if self.checks.is_binary else "Mean loss"
            return f"{risk} by coverage"
        if not rule.attainable:
            return "No threshold: risk-coverage curve of the calibration data and target"
        if not self.checks.checks:
            return "Threshold on the risk-coverage curve of the calibration data"
        return "Working points of the threshold on calibration data and other data"

    @property
    def risk_name(self) -> str:
        """Name of the plotted risk: "selective_risk" or "generalized_risk"."""
        generalized = self.checks.rule.quantity == "generalized risk"
        return "generalized_risk" if generalized else "selective_risk"

    def frame(self) -> "pl.DataFrame":
        """Return the plotted results and the points of the curve as a Polars table."""
        import polars as pl

        rows = []
        calibration = self.checks.calibration_values()
        if calibration is not None:
            row = _row("calibration", calibration["coverage"], calibration[self.risk_name])
            rows.append({**row, "threshold": self.checks.rule.threshold})
        for check in self._shown_checks():
            risk = getattr(check, self.risk_name)
            intervals = (check.coverage_interval, getattr(check, f"{self.risk_name}_interval"))
            rows.append(_row("data", check.coverage, risk, check.name, intervals))
        for name, curve in self._curves():
            points = zip(curve.coverage, curve.risk, curve.thresholds, strict=True)
            for coverage, risk, threshold in points:
                row = _row("curve", float(coverage), float(risk), name)
                rows.append({**row, "threshold": float(threshold)})
        return pl.DataFrame(rows, infer_schema_length=None)

    def _draw_on(self, axes: "Axes", kwargs: dict[str, Any]) -> None:
        """Draw the curves, the target, the selected threshold and the data sets."""
        rule, max_risk = self.checks.rule, self._max_plotted_risk()
        is_compact = bool(self.checks.group_curves) or not self.shows_data
        legend_entries: list[tuple[Any, str]] = []
        for index, (name, curve) in enumerate(self._curves()):
            style = {**line_style(index), **kwargs, "gid": CURVE_ID}
            (line,) = axes.plot(curve.coverage, curve.risk, **style)
            if not is_compact or name:
                legend_entries.append((line, name or "calibration data"))
        if rule.target is not None and rule.quantity in {*_RISK_TARGETS, "coverage"}:
            draw_line = axes.axvline if rule.quantity == "coverage" else axes.axhline
            style = {**reference_style(), "color": INK, "linewidth": 1.2}
            target_text = f"target {rule.target:g}"
            if is_compact:
                noun = "target" if rule.quantity == "coverage" else "limit"
                target_text = f"{noun} {format_percent(round(rule.target, 6))}"
            legend_entries.append((draw_line(rule.target, **style), target_text))
        if self.checks.group_curves:
            self._draw_group_thresholds(axes)
        elif rule.attainable:
            legend_entries += self._draw_working_point(axes)
            legend_entries += self._draw_data(axes, max_risk)
        risk_title = RISK_TITLES[self.risk_name.removesuffix("_risk")]
        axes.set(xlabel=COVERAGE_TITLE, ylabel=risk_title)
        axes.set(xlim=(0, 1.02), ylim=(0, max_risk))
        style_axes(axes)
        if is_compact:
            is_share = self.checks.is_binary and self.risk_name == "selective_risk"
            y_title = "Wrong answers" if is_share else risk_title.split(" (")[0]
            axes.set(xlabel="Coverage: share of samples answered", ylabel=y_title)
            axes.xaxis.set_major_formatter(_format_tick)
            if self.checks.is_binary:
                axes.yaxis.set_major_formatter(_format_tick)
            add_legend_below(axes, legend_entries)
        else:
            add_legend_at_right(axes, legend_entries)

    def _draw_group_thresholds(self, axes: "Axes") -> None:
        """Draw the threshold of each group, with a line to its certified bound."""
        for index, (name, _) in enumerate(self._curves()):
            rule = self.checks.rule.part(name)
            if rule.coverage is None or rule.risk is None:
                continue
            is_generalized = self.risk_name == "generalized_risk"
            x, y = rule.coverage, rule.risk * (rule.coverage if is_generalized else 1.0)
            style: Style = {"color": line_style(index)["color"], "zorder": 5}
            axes.plot([x], [y], marker="o", markersize=7, linestyle="none", clip_on=False, **style)
            if rule.bound is not None and self.checks.rule.quantity in _RISK_TARGETS:
                axes.plot([x, x], [y, rule.bound], linestyle=(0, (1, 1.5)), linewidth=1.6, **style)

    def _shown_checks(self) -> tuple[RuleCheck, ...]:
        """Return the check results that are drawn."""
        is_drawn = self.shows_data and not self.checks.group_curves
        return self.checks.checks if is_drawn else ()

    def _curves(self) -> list[tuple[str, RiskCoverageCurve]]:
        """Return the curve of each group of the calibration data, by the name of the group."""
        curve = self._curve()
        group_curves = self.checks.group_curves[:_MAX_GROUP_CURVES]
        named = [(name, thin(curve, vertices=_MAX_GROUP_VERTICES)) for name, curve in group_curves]
        return [*([("", curve)] if curve is not None else []), *named]

    def _curve(self) -> RiskCoverageCurve | None:
        curve = self.checks.curve
        return None if curve is None else thin(curve, vertices=_MAX_VERTICES)

    def _draw_working_point(self, ax: "Axes") -> list[tuple[Any, str]]:
        """Draw the selected threshold and its certified bound."""
        rule = self.checks.rule
        calibration = self.checks.calibration_values()
        if calibration is None or math.isnan(calibration[self.risk_name]):
            return []
        x, y = calibration["coverage"], calibration[self.risk_name]
        style: Style = {"color": INK, "zorder": 5, "clip_on": False}
        (point,) = ax.plot([x], [y], marker="D", markersize=7, linestyle="none", **style)
        legend_entries: list[tuple[Any, str]] = [(point, "selected threshold")]
        if rule.bound is not None:
            is_coverage = rule.quantity == "coverage"
            end_x, end_y = (rule.bound, y) if is_coverage else (x, rule.bound)
            style |= {"marker": "|" if is_coverage else "_", "markersize": 10, "markevery": [1]}
            (bar,) = ax.plot([x, end_x], [y, end_y], linewidth=1.6, **style)
            legend_entries.append((bar, f"certified bound {rule.bound:.4g}"))
        return legend_entries

    def _draw_data(self, ax: "Axes", max_risk: float) -> list[tuple[Any, str]]:
        """Draw the results on all data sets, and connect the severities of a corruption."""
        checks = self._shown_checks()
        names = [check.name for check in checks]
        label_by_name = shorten_names(names)
        legend_entries: list[tuple[Any, str]] = []
        for index, members in enumerate(group_severities(names)):
            severities = [checks[i] for i in members]
            style = data_set_style(index)
            legend_entries += self._draw_shift(ax, severities, style, label_by_name, max_risk)
        return legend_entries

    def _draw_shift(
        self,
        ax: "Axes",
        severities: Sequence[RuleCheck],
        style: Style,
        label_by_name: Mapping[str, str],
        max_risk: float,
    ) -> list[tuple[Any, str]]:
        """Draw the severities of a corruption with a line, and return the legend entries."""
        coverages = [check.coverage for check in severities]
        arrow_height = _ARROW_HEIGHT * max_risk
        risks = [min(getattr(check, self.risk_name), arrow_height) for check in severities]
        ax.plot(coverages, risks, color=style["color"], linewidth=0.9, alpha=0.5, zorder=3)
        regular = []
        with_note = []
        for check, size in zip(severities, _severity_sizes(len(severities)), strict=True):
            mark, note = self._draw_data_set(ax, check, {**style, "markersize": size}, max_risk)
            label = label_by_name[check.name]
            if note:
                with_note.append((mark, f"{label} ({note})"))
            else:
                regular.append((mark, label))
        if not regular:
            return with_note
        # One legend entry represents all severities without a note.
        _, first_label = regular[0]
        last_mark, last_label = regular[-1]
        if first_label != last_label:
            last_label = f"{first_label} to {last_label}"
        return [(last_mark, last_label), *with_note]

    def _draw_data_set(
        self, ax: "Axes", check: RuleCheck, style: Style, max_risk: float
    ) -> tuple[Any, str]:
        """Draw one data set, and return its marker and a note on a risk beyond the axis."""
        x, y = check.coverage, getattr(check, self.risk_name)
        if math.isnan(y):
            (mark,) = ax.plot([x], [0], **{**style, **_NO_RISK_MARK})
            return mark, "coverage only"
        if y > max_risk:
            (mark,) = ax.plot([x], [_ARROW_HEIGHT * max_risk], **{**style, **_OUT_OF_RANGE_MARK})
            return mark, f"at {y:.3g}"
        x_error = error_bar(x, check.coverage_interval)
        y_error = error_bar(y, getattr(check, f"{self.risk_name}_interval"))
        return ax.errorbar([x], [y], xerr=x_error, yerr=y_error, elinewidth=1, **style), ""

    def _max_plotted_risk(self) -> float:
        """Return the upper limit of the risk axis.

        Very large risks are drawn at the edge and do not extend the axis.
        """
        rule, values = self.checks.rule, [0.0]
        for _, curve in self._curves():
            values.append(float(curve.risk[curve.coverage >= _MIN_COVERAGE_FOR_AXIS].max()))
        if rule.quantity in _RISK_TARGETS:
            values += [value for value in (rule.target, rule.bound) if value is not None]
        calibration_risk = (self.checks.calibration_values() or {}).get(self.risk_name, math.nan)
        if not math.isnan(calibration_risk):
            values.append(calibration_risk)
        base = max(values)
        for check in self._shown_checks():
            risk = getattr(check, self.risk_name)
            if risk <= _MAX_RELATIVE_RISK * base or base == 0:
                values.append(risk)
                high = getattr(check, f"{self.risk_name}_interval").high
                if high <= _MAX_RELATIVE_RISK * max(base, risk):
                    values.append(high)
        return 1.08 * max(values) or 1.0

    def _size(self) -> tuple[float, float]:
        if self.checks.group_curves or not self.shows_data:
            names = [name for name, _ in self._curves()]
            n_rows = math.ceil((len(names) + 1) / n_legend_columns(names, _COMPACT_WIDTH))
            return _COMPACT_WIDTH, 2.8 + _LEGEND_ROW_HEIGHT * n_rows
        names = [c.name for c in self.checks.checks]
        width = 6.6 + 0.8 * label_width([*names, "certified bound 0.0123"])
        return width, max(4.2, 1.4 + _LEGEND_ROW_HEIGHT * len(names))


def _format_tick(value: float, _: object) -> str:
    """Format a tick as a percentage."""
    return format_percent(round(value, 6))


def data_set_style(index: int) -> dict[str, Any]:
    """Return the color and the marker of a data set.

    Neighboring data sets differ in both.
    """
    shape = _MARKERS[(index + index // len(LIGHT)) % len(_MARKERS)]
    color = LIGHT[(index + 1) % len(LIGHT)]
    return {"color": color, "marker": shape, "markersize": 6, "linestyle": "none", "zorder": 4}


def _severity_sizes(count: int) -> list[float]:
    """Return the marker size of each severity of a corruption."""
    return [6.0] if count == 1 else [4 + 3.5 * step / (count - 1) for step in range(count)]


def _row(
    kind: str,
    x: float,
    y: float,
    name: str = "",
    intervals: "tuple[Interval, Interval] | None" = None,
) -> dict[str, Any]:
    """Return a row of the table.

    Missing bounds are NaN.
    """
    bounds = {f"{n}_{end}": math.nan for n in ("coverage", "risk") for end in ("low", "high")}
    for number, interval in zip(("coverage", "risk"), intervals or (), strict=False):
        bounds |= {f"{number}_low": interval.low, f"{number}_high": interval.high}
    return {"kind": kind, "name": name, "coverage": x, "risk": y, **bounds, "threshold": None}
