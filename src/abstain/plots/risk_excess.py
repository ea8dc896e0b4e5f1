"""Figure of the difference between the risk of a decision rule and its target."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from abstain.evaluation.rules import RuleChecks
from abstain.plots.drawable import Titled
from abstain.plots.formatting import format_percent
from abstain.plots.labels import (
    add_legend,
    draw_rule,
    draw_text,
    hide_frame,
    label_width,
    set_tick_labels,
)
from abstain.plots.style import GRID, INK, MUTED, PAPER, Style, error_bar
from abstain.plots.verdicts import (
    LABEL_BY_VERDICT,
    check_rule_checks,
    group_severities,
    shorten_names,
    total_verdict,
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

#: Distance from the axes to the legend, in inches.
_LEGEND_OFFSET = 0.5

#: Maximum number of groups in the figure.
_MAX_GROUPS = 40


@dataclass(eq=False)
class RiskExcessDisplay(Titled):
    """Excess over the target of a decision rule, for each data set and group.

    The line at 0 is the target, and values to its right are worse. A filled circle means that the
    target holds, because the complete interval is at or below 0. A cross means that the target is
    violated. A hollow circle means that the result is inconclusive.

    The result of a data set is that of its total, without the results of its groups.

    A line connects the severities of one shift, which are consecutive data sets whose names differ
    only in a number at the end.

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
            Decision rule with its check results on data sets.

        Returns
        -------
        RiskExcessDisplay
            Display of the data. The method `plot` draws the figure.
        """
        return cls(check_rule_checks(checks))

    @property
    def _plotted_checks(self) -> list[RuleCheck]:
        """Check results of the data sets and groups that are drawn.

        If there are many groups, only the groups with the largest lower bounds of the excess are
        drawn.
        """
        # The limits of a group without a threshold have no results.
        all_checks = [c for c in self.checks.all_checks() if not c.limit or c.rule.attainable]
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

        columns = [
            "name",
            "n",
            "accepted",
            "excess",
            "excess_low",
            "excess_high",
            "verdict",
            "note",
        ]
        rows = []
        for c in self._plotted_checks:
            low, high, note = c.excess_interval.low, c.excess_interval.high, c.excess_interval.note
            verdict = total_verdict(c)
            rows.append((c.label, c.n, c.accepted, c.excess, low, high, verdict, note))
        return pl.DataFrame(rows, schema=columns, orient="row", infer_schema_length=None)

    def _draw_on(self, axes: "Axes", kwargs: dict[str, Any]) -> None:
        """Draw the excess of each data set and group with its interval."""
        checks = self._plotted_checks
        across = axes.get_yaxis_transform()
        for rows in group_severities(["" if c.group else c.name for c in checks]):
            values = [checks[y].excess for y in rows]
            axes.plot(values, rows, color=GRID, linewidth=2, zorder=1)
        for y, c in enumerate(checks):
            draw_rule(axes, [0, 1], [y, y], transform=across)
            if math.isnan(c.excess):
                style: Style = {"color": MUTED, "style": "italic", "va": "center", "fontsize": 8}
                style["bbox"] = {"facecolor": PAPER, "edgecolor": "none", "pad": 1.5}
                draw_text(
                    axes, 0.02, y, c.note or total_verdict(c), transform=across, zorder=3, **style
                )
                continue
            style = {**verdict_mark(total_verdict(c)), "markersize": 5.5, "linewidth": 1.6}
            style |= {"capsize": 0, "linestyle": "none", **kwargs}
            axes.errorbar([c.excess], [y], xerr=error_bar(c.excess, c.excess_interval), **style)
        hide_frame(axes)
        labels = [_label(c) for c in checks]
        names = shorten_names(labels)
        set_tick_labels(axes, "y", [names[label] for label in labels], range(len(checks)))
        axes.set_ylim(len(checks) - 0.4, -0.6)
        axes.axvline(0, color=INK, linewidth=1, zorder=1)
        axes.set_xlabel(self._axis_title())
        low, high = axes.get_xlim()
        # The line at 0 has a margin on both sides.
        width = max(high - low, 1e-6)
        axes.set_xlim(min(low, -0.06 * width), max(high, 0.06 * width))
        axes.locator_params(axis="x", nbins=6)
        self._add_legend(axes)

    def _axis_title(self) -> str:
        rule = self.checks.rule
        if rule.limits:
            return "Risk minus its limit"
        if rule.target is None or rule.quantity not in _AXIS_TITLES:
            return "No target"
        return _AXIS_TITLES[rule.quantity].format(target=rule.target)

    def _add_legend(self, ax: "Axes") -> None:
        """Add a legend of the kinds of check results that occur in the figure."""
        from matplotlib.lines import Line2D

        figure: Any = ax.figure
        verdicts = {total_verdict(c) for c in self._plotted_checks if not math.isnan(c.excess)}
        labels = {
            verdict: text for verdict, text in LABEL_BY_VERDICT.items() if verdict in verdicts
        }
        if labels:
            mark: Style = {"linestyle": "none", "markersize": 6}
            handles = [Line2D([], [], **mark, **verdict_mark(verdict)) for verdict in labels]
            position = (0, -_LEGEND_OFFSET * figure.dpi / ax.bbox.height)
            style: Style = {"loc": "upper left", "bbox_to_anchor": position, "ncols": 3}
            style |= {"fontsize": 9, "handletextpad": 0.2}
            add_legend(ax, handles, list(labels.values()), **style)

    def _size(self) -> tuple[float, float]:
        names = label_width(map(_label, self._plotted_checks))
        return 4.6 + names, 1.5 + 0.3 * len(self._plotted_checks)


def _label(check: RuleCheck) -> str:
    """Return the name of a row. The row of a limit does not repeat the data set."""
    return check.subgroup if check.limit else check.label


def _lower_excess(check: RuleCheck) -> float:
    low = check.excess_interval.low
    return -math.inf if math.isnan(low) else low
