"""How far a rule is from its promise on each data set: the risk excess per shift."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from abstain.evaluation.rules import RuleChecks
from abstain.plots.drawable import Titled
from abstain.plots.formatting import format_percent
from abstain.plots.labels import hide_frame, set_tick_labels, label_width, draw_rule, draw_text
from abstain.plots.style import GRID, INK, MUTED, PAPER
from abstain.plots.verdicts import LABEL_BY_VERDICT, check_rule_checks, group_severities, verdict_mark, shorten_names
from abstain.thresholds import RuleCheck

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

#: The axis by what the target is about.
_AXES = {
    "selective risk": "Selective risk above the target of {target:g}",
    "generalized risk": "Generalized risk above the target of {target:g}",
    "coverage": "Coverage below the target of {target:g}",
    "cost": "Mean cost above that of abstaining on everything",
}
_NO_TARGET = "No target"
#: Of one threshold that keeps several limits.
_OF_LIMITS = "Risk above its limit"

#: Inches from the axes to the names of the marks.
_BELOW = 0.5

#: So many groups are drawn.
_MOST_GROUPS = 40


@dataclass(eq=False)
class RiskExcessDisplay(Titled):
    """The achieved number minus its target on each data set and its groups, in the order given.

    Right of the line at zero the rule does worse than it promised. Discs keep the promise (their
    interval does not pass the line), crosses break it, hollow discs leave it open. A thin line
    joins neighbors whose names differ in a number at the end only: one shift at rising severity.

    `plot` passes its options on to every ``Axes.errorbar``.

    Attributes
    ----------
    checks : RuleChecks
        What `check_rule` returned.

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
        """Take what `check_rule` returned.

        Parameters
        ----------
        checks : RuleChecks
            A rule and the data sets on which it was checked.

        Returns
        -------
        RiskExcessDisplay
            Call `plot` to draw it.
        """
        return cls(check_rule_checks(checks))

    @property
    def _shown(self) -> list[RuleCheck]:
        """The data sets with their groups; of very many groups those surest to be worse."""
        every = self.checks.all_checks()
        groups = sorted((c for c in every if c.group), key=_least_excess, reverse=True)
        left = {id(c) for c in groups[_MOST_GROUPS:]}
        return [c for c in every if id(c) not in left]

    @property
    def title(self) -> str:
        """What the figure shows, in words."""
        chosen = self.checks.rule
        if not chosen.quantity or chosen.target is None:
            return "The rule has no target"
        level = format_percent(self.checks.level)
        return f"Excess over the target with {level} intervals"

    def frame(self) -> "pl.DataFrame":
        """Return what is drawn as a polars table, one row a data set."""
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
            for c in self._shown
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    def _draw_on(self, axes: "Axes", kwargs: dict[str, Any]) -> None:
        found = self._shown
        self._join(axes)
        for y, c in enumerate(found):
            draw_rule(axes, [0, 1], [y, y], transform=axes.get_yaxis_transform())
            if math.isnan(c.excess):
                at: dict[str, Any] = {
                    "transform": axes.get_yaxis_transform(),
                    "va": "center",
                    "fontsize": 8,
                }
                said = c.note or c.verdict
                at["bbox"] = {"facecolor": PAPER, "edgecolor": "none", "pad": 1.5}
                draw_text(axes, 0.02, y, said, color=MUTED, style="italic", zorder=3, **at)
                continue
            style = {**verdict_mark(c.verdict), "markersize": 5.5, "linewidth": 1.6, "capsize": 0, **kwargs}
            low, high = c.excess_interval.low, c.excess_interval.high
            known = not (math.isnan(low) or math.isnan(high))
            reach = [[max(c.excess - low, 0)], [max(high - c.excess, 0)]] if known else None
            axes.errorbar([c.excess], [y], xerr=reach, linestyle="none", **style)
        hide_frame(axes)
        names = shorten_names([c.label for c in found])
        set_tick_labels(axes, "y", [names[c.label] for c in found], range(len(found)))
        axes.set_ylim(len(found) - 0.4, -0.6)
        self._finish(axes)

    def _join(self, ax: "Axes") -> None:
        """Join neighbors of one shift at several severities."""
        found = self._shown
        for rows in group_severities([c.name if not c.group else "" for c in found]):
            values = [found[y].excess for y in rows]
            ax.plot(values, rows, color=GRID, linewidth=2, zorder=1)

    def _finish(self, ax: "Axes") -> None:
        chosen = self.checks.rule
        ax.axvline(0, color=INK, linewidth=1, zorder=1)
        words = _AXES.get(chosen.quantity) if chosen.target is not None else None
        said = words.format(target=chosen.target) if words else _NO_TARGET
        limited = bool(chosen.parts) and not chosen.per
        ax.set_xlabel(_OF_LIMITS if limited else said)
        low, high = ax.get_xlim()
        # The line at zero stands with room on both sides, whatever the values.
        width = max(high - low, 1e-6)
        ax.set_xlim(min(low, -0.06 * width), max(high, 0.06 * width))
        ax.locator_params(axis="x", nbins=6)
        self._name_marks(ax)

    def _name_marks(self, ax: "Axes") -> None:
        from matplotlib.lines import Line2D

        seen = {c.verdict for c in self._shown if not math.isnan(c.excess)}
        named = {v: said for v, said in LABEL_BY_VERDICT.items() if v in seen}
        handles = [Line2D([], [], linestyle="none", markersize=6, **verdict_mark(v)) for v in named]
        if handles:
            beside: dict[str, Any] = {"loc": "upper left", "frameon": False, "labelcolor": INK}
            beside |= {"bbox_to_anchor": (0, -_BELOW / self._height(ax)), "fontsize": 9}
            ax.legend(handles, list(named.values()), ncols=3, handletextpad=0.2, **beside)

    def _height(self, ax: "Axes") -> float:
        figure: Any = ax.figure
        return float(ax.bbox.height / figure.dpi)

    def _size(self) -> tuple[float, float]:
        names = label_width(c.label for c in self._shown)
        return 4.6 + names, 1.5 + 0.3 * len(self._shown)


def _least_excess(check: RuleCheck) -> float:
    low = check.excess_interval.low
    return -math.inf if math.isnan(low) else low
