"""Excess of a decision rule over its target on each data set."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from abstain.evaluation.rules import RuleChecks
from abstain.plots.drawable import Titled
from abstain.plots.formatting import format_percent
from abstain.plots.labels import draw_rule, draw_text, hide_frame, label_width, set_tick_labels
from abstain.plots.style import GRID, INK, MUTED, PAPER
from abstain.plots.verdicts import (
    LABEL_BY_VERDICT,
    check_rule_checks,
    group_severities,
    shorten_names,
    verdict_mark,
)
from abstain.thresholds import RuleCheck

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

#: Axis titles by the quantity of the target.
_AXIS_TITLES = {
    "selective risk": "Selective risk minus the target of {target:g}",
    "generalized risk": "Generalized risk minus the target of {target:g}",
    "coverage": "Target of {target:g} minus coverage",
    "cost": "Mean cost minus the cost of abstaining on all samples",
}
_NO_TARGET = "No target"
#: Axis title for one threshold with several limits.
_LIMITS_TITLE = "Risk minus its limit"

#: Distance from the axes to the legend, in inches.
_LEGEND_OFFSET = 0.5

#: Maximum number of groups in the figure.
_MAX_GROUPS = 40


@dataclass(eq=False)
class RiskExcessDisplay(Titled):
    """Excess over the target on each data set and its groups, in input order.

    Values to the right of the line at 0 are worse than the target. Filled circles: the target holds
    (the interval is at or below 0); crosses: it is violated; hollow circles: inconclusive. A line
    connects consecutive data sets whose names differ only in a number at the end: severities of one
    shift.

    `plot` passes additional options to each call of ``Axes.errorbar``.

    Attributes
    ----------
    checks : RuleChecks
        Result of `check_rule`.

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> from abstain.evaluation import check_rule
    >>> from abstain.plots import RiskExcessDisplay
    >>> rule = ab.thresholds.DecisionRule("risk", 0.5, target=0.1)
    >>> later = ab.Predictions(confidence=np.ones(100), loss=np.arange(100) < 30)
    >>> RiskExcessDisplay.from_checks(check_rule(rule, later)).frame()["excess"].round(2).to_list()
    [0.2]
    """

    checks: RuleChecks

    @classmethod
    def from_checks(cls, checks: RuleChecks) -> Self:
        """Create a display from the result of `check_rule`.

        Parameters
        ----------
        checks : RuleChecks
            Decision rule and the data sets on which it was checked.

        Returns
        -------
        RiskExcessDisplay
            Display that is not drawn yet; call `plot`.
        """
        return cls(check_rule_checks(checks))

    @property
    def _plotted_checks(self) -> list[RuleCheck]:
        """Data sets and groups; of very many groups, those with the largest lower bound."""
        all_checks = self.checks.all_checks()
        groups = sorted((c for c in all_checks if c.group), key=_lower_excess, reverse=True)
        omitted_ids = {id(c) for c in groups[_MAX_GROUPS:]}
        return [c for c in all_checks if id(c) not in omitted_ids]

    @property
    def title(self) -> str:
        """Title of the figure."""
        rule = self.checks.rule
        if not rule.quantity or rule.target is None:
            return "The rule has no target"
        level = format_percent(self.checks.level)
        return f"Excess over the target with {level} confidence intervals"

    def frame(self) -> "pl.DataFrame":
        """Return the plotted data as a Polars table with one row per data set."""
        import polars as pl

        rows = [
            {
                "name": c.label,
                "n": c.n,
                "accepted": c.accepted,
                "excess": c.excess,
                "excess_low": c.excess_interval.low,
                "excess_high": c.excess_interval.high,
                "verdict": c.verdict,
                "note": c.excess_interval.note,
            }
            for c in self._plotted_checks
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    def _draw_on(self, axes: "Axes", kwargs: dict[str, Any]) -> None:
        checks = self._plotted_checks
        self._connect_severities(axes)
        for y, c in enumerate(checks):
            draw_rule(axes, [0, 1], [y, y], transform=axes.get_yaxis_transform())
            if math.isnan(c.excess):
                at: dict[str, Any] = {
                    "transform": axes.get_yaxis_transform(),
                    "va": "center",
                    "fontsize": 8,
                }
                text = c.note or c.verdict
                at["bbox"] = {"facecolor": PAPER, "edgecolor": "none", "pad": 1.5}
                draw_text(axes, 0.02, y, text, color=MUTED, style="italic", zorder=3, **at)
                continue
            style = {
                **verdict_mark(c.verdict),
                "markersize": 5.5,
                "linewidth": 1.6,
                "capsize": 0,
                **kwargs,
            }
            low, high = c.excess_interval.low, c.excess_interval.high
            has_interval = not (math.isnan(low) or math.isnan(high))
            error_bar = (
                [[max(c.excess - low, 0)], [max(high - c.excess, 0)]] if has_interval else None
            )
            axes.errorbar([c.excess], [y], xerr=error_bar, linestyle="none", **style)
        hide_frame(axes)
        names = shorten_names([c.label for c in checks])
        set_tick_labels(axes, "y", [names[c.label] for c in checks], range(len(checks)))
        axes.set_ylim(len(checks) - 0.4, -0.6)
        self._style_axis(axes)

    def _connect_severities(self, ax: "Axes") -> None:
        """Connect the severities of one shift."""
        checks = self._plotted_checks
        for rows in group_severities([c.name if not c.group else "" for c in checks]):
            values = [checks[y].excess for y in rows]
            ax.plot(values, rows, color=GRID, linewidth=2, zorder=1)

    def _style_axis(self, ax: "Axes") -> None:
        rule = self.checks.rule
        ax.axvline(0, color=INK, linewidth=1, zorder=1)
        title_template = _AXIS_TITLES.get(rule.quantity) if rule.target is not None else None
        title = title_template.format(target=rule.target) if title_template else _NO_TARGET
        has_limits = bool(rule.parts) and not rule.per
        ax.set_xlabel(_LIMITS_TITLE if has_limits else title)
        low, high = ax.get_xlim()
        # The line at 0 always has a margin on both sides.
        width = max(high - low, 1e-6)
        ax.set_xlim(min(low, -0.06 * width), max(high, 0.06 * width))
        ax.locator_params(axis="x", nbins=6)
        self._add_legend(ax)

    def _add_legend(self, ax: "Axes") -> None:
        from matplotlib.lines import Line2D

        verdicts = {c.verdict for c in self._plotted_checks if not math.isnan(c.excess)}
        label_by_verdict = {v: label for v, label in LABEL_BY_VERDICT.items() if v in verdicts}
        handles = [
            Line2D([], [], linestyle="none", markersize=6, **verdict_mark(v))
            for v in label_by_verdict
        ]
        if handles:
            position: dict[str, Any] = {"loc": "upper left", "frameon": False, "labelcolor": INK}
            position |= {
                "bbox_to_anchor": (0, -_LEGEND_OFFSET / self._axes_height(ax)),
                "fontsize": 9,
            }
            ax.legend(
                handles, list(label_by_verdict.values()), ncols=3, handletextpad=0.2, **position
            )

    def _axes_height(self, ax: "Axes") -> float:
        figure: Any = ax.figure
        return float(ax.bbox.height / figure.dpi)

    def _size(self) -> tuple[float, float]:
        names = label_width(c.label for c in self._plotted_checks)
        return 4.6 + names, 1.5 + 0.3 * len(self._plotted_checks)


def _lower_excess(check: RuleCheck) -> float:
    low = check.excess_interval.low
    return -math.inf if math.isnan(low) else low
