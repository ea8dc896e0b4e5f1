"""A threshold on its risk-coverage curve, and where other data sets land with it."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from abstain.curves.risk_coverage import RiskCoverageCurve, thin
from abstain.evaluation.rules import RuleChecks
from abstain.inference.intervals import Interval
from abstain.plots.drawable import Titled
from abstain.plots.labels import add_legend, label_width
from abstain.plots.style import COVERAGE_TITLE, CURVE_ID, INK, LIGHT, RISK_TITLES, style_axes, reference_style
from abstain.plots.verdicts import check_rule_checks, group_severities, shorten_names
from abstain.thresholds import RuleCheck

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

#: Targets that are a line across the axis of risk.
_LINES = ("selective risk", "generalized risk")

_VERTICES = 2000
#: Below this coverage a curve jumps about; it does not decide how far up the axis reaches.
_STEADY = 0.05
#: A data set whose risk is above this many times what else is shown stands at the upper edge.
_FAR = 3.0
#: Shapes of the data sets: with eight colors, 40 look different.
_SHAPES = ("o", "s", "^", "v", "P")
_ROW = 0.2

# A data set without a risk stands on the axis, one far above at its upper end.
_BARE: Final[dict[str, Any]] = {"marker": "|", "markersize": 14, "clip_on": False}
_ARROW: Final[dict[str, Any]] = {"marker": "$\\uparrow$", "markersize": 11, "clip_on": False}
_EDGE = 0.965


@dataclass(eq=False)
class DecisionRuleDisplay(Titled):
    """The risk-coverage curve of the calibration data, the point chosen on it, and other data.

    The dotted line is the target. A diamond marks the point chosen, the bar on it reaches to what
    is certified there. Each other data set stands where the same threshold puts it, with the
    intervals of its coverage and risk; one far above the rest stands as an arrow at the upper
    edge, its risk beside its name. Neighbors whose names differ in a number at the end only are one
    shift at rising severity: joined by a thin line, their marks grow.

    `plot` passes its options on to the ``Axes.plot`` of the curve (color, linewidth).

    Attributes
    ----------
    checks : RuleChecks
        What `check_rule` returned; with `calibration` it has the curve.

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> from abstain.evaluation import check_rule
    >>> from abstain.plots import DecisionRuleDisplay
    >>> rule = ab.thresholds.DecisionRule("risk", 0.5, target=0.1)
    >>> later = ab.Predictions(confidence=np.ones(100), loss=np.arange(100) < 30)
    >>> display = DecisionRuleDisplay.from_checks(check_rule(rule, later))
    >>> display.frame().select("what", "coverage", "risk").rows()
    [('data', 1.0, 0.3)]
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
        DecisionRuleDisplay
            Call `plot` to draw it.
        """
        return cls(check_rule_checks(checks))

    @property
    def title(self) -> str:
        """What the figure shows, in words."""
        rule = self.checks.rule
        if not rule.attainable:
            return "No threshold: the curve of the calibration data against the target"
        if not self.checks.checks:
            return "The threshold on the curve of the calibration data"
        return "The threshold, and where it puts other data"

    @property
    def number(self) -> str:
        """Which risk is shown: "selective_risk" or "generalized_risk"."""
        generalized = self.checks.rule.quantity == "generalized risk"
        return "generalized_risk" if generalized else "selective_risk"

    def frame(self) -> "pl.DataFrame":
        """Return what is drawn as a polars table: the points, then the vertices of the curve."""
        import polars as pl

        rule = self.checks.rule
        rows = []
        if (known := self.checks.calibration_values()) is not None:
            chosen = _row("calibration", known["coverage"], known[self.number])
            rows.append({**chosen, "threshold": rule.threshold})
        for c in self.checks.checks:
            ends = c.coverage_interval, getattr(c, f"{self.number}_interval")
            rows.append(_row("data", c.coverage, getattr(c, self.number), c.name, ends))
        if (curve := self._curve()) is not None:
            rows += [
                {**_row("curve", float(x), float(y)), "threshold": float(t)}
                for x, y, t in zip(curve.coverage, curve.risk, curve.thresholds, strict=True)
            ]
        return pl.DataFrame(rows, infer_schema_length=None)

    def _draw_on(self, axes: "Axes", kwargs: dict[str, Any]) -> None:
        top = self._top()
        named: list[tuple[Any, str]] = []
        if (curve := self._curve()) is not None:
            style = {"color": LIGHT[0], "linewidth": 1.6, **kwargs, "gid": CURVE_ID}
            named += [(axes.plot(curve.coverage, curve.risk, **style)[0], "calibration data")]
        named += self._draw_target(axes)
        named += self._draw_chosen(axes)
        if self.checks.rule.attainable:
            named += self._draw_data(axes, top)
        axes.set(xlabel=COVERAGE_TITLE, ylabel=RISK_TITLES[self.number.removesuffix("_risk")])
        axes.set(xlim=(0, 1.02), ylim=(0, top))
        style_axes(axes)
        _name(axes, named)

    def _curve(self) -> RiskCoverageCurve | None:
        curve = self.checks.curve
        return None if curve is None else thin(curve, vertices=_VERTICES)

    def _draw_target(self, ax: "Axes") -> list[tuple[Any, str]]:
        rule = self.checks.rule
        style = {**reference_style(), "color": INK, "linewidth": 1.2}
        if rule.target is None or rule.quantity not in {*_LINES, "coverage"}:
            return []
        draw = ax.axvline if rule.quantity == "coverage" else ax.axhline
        return [(draw(rule.target, **style), f"target {rule.target:g}")]

    def _draw_chosen(self, ax: "Axes") -> list[tuple[Any, str]]:
        rule = self.checks.rule
        known = self.checks.calibration_values()
        if not rule.attainable or known is None:
            return []
        x, y = known["coverage"], known[self.number]
        if math.isnan(y):
            return []
        style: dict[str, Any] = {"color": INK, "zorder": 5, "clip_on": False}
        point = ax.plot([x], [y], marker="D", markersize=7, linestyle="none", **style)[0]
        named: list[tuple[Any, str]] = [(point, "chosen threshold")]
        if rule.bound is None:
            return named
        ends = (
            ([x, rule.bound], [y, y]) if rule.quantity == "coverage" else ([x, x], [y, rule.bound])
        )
        cap = "|" if rule.quantity == "coverage" else "_"
        bar = {"linewidth": 1.6, "marker": cap, "markersize": 10, "markevery": [1], **style}
        return [*named, (ax.plot(*ends, **bar)[0], f"certified bound {rule.bound:.4g}")]

    def _draw_data(self, ax: "Axes", top: float) -> list[tuple[Any, str]]:
        checks = self.checks.checks
        names = shorten_names([c.name for c in checks])
        out: list[tuple[Any, str]] = []
        for place, rows in enumerate(group_severities([c.name for c in checks])):
            style, members = data_style(place), [checks[i] for i in rows]
            self._join(ax, members, style["color"], top)
            drawn = [
                (*self._draw_one(ax, c, {**style, "markersize": size}, top), names[c.name])
                for c, size in zip(members, _sizes(len(members)), strict=True)
            ]
            inside = [(mark, name) for mark, note, name in drawn if not note]
            if inside:
                first, last = inside[0][1], inside[-1][1]
                named = first if first == last else f"{first} to {last}"
                out.append((inside[-1][0], named))
            out += [(mark, f"{name} ({note})") for mark, note, name in drawn if note]
        return out

    def _join(self, ax: "Axes", members: list[RuleCheck], color: str, top: float) -> None:
        risks = [min(getattr(c, self.number), _EDGE * top) for c in members]
        style: dict[str, Any] = {"color": color, "linewidth": 0.9, "alpha": 0.5, "zorder": 3}
        ax.plot([c.coverage for c in members], risks, **style)

    def _draw_one(
        self, ax: "Axes", check: RuleCheck, style: dict[str, Any], top: float
    ) -> tuple[Any, str]:
        """Draw one data set; return the mark, and what is to be said where it is no plain point."""
        x, y = check.coverage, getattr(check, self.number)
        if math.isnan(y):
            return ax.plot([x], [0], **{**style, **_BARE})[0], "coverage only"
        if y > top:
            return ax.plot([x], [_EDGE * top], **{**style, **_ARROW})[0], f"at {y:.3g}"
        reach = _reach(x, check.coverage_interval)
        up = _reach(y, getattr(check, f"{self.number}_interval"))
        return ax.errorbar([x], [y], xerr=reach, yerr=up, elinewidth=1, **style), ""

    def _top(self) -> float:
        """Return where the axis of risk ends: far values do not press the rest together."""
        rule, shown = self.checks.rule, []
        curve = self._curve()
        if curve is not None:
            shown.append(float(curve.risk[curve.coverage >= _STEADY].max()))
        if rule.quantity in _LINES:
            shown += [value for value in (rule.target, rule.bound) if value is not None]
        known = self.checks.calibration_values() or {}
        shown += [known[n] for n in [self.number] if not math.isnan(known.get(n, math.nan))]
        base = max(shown, default=0.0)
        risks = [getattr(c, self.number) for c in self.checks.checks]
        near = [r for r in risks if r <= _FAR * base or base == 0]
        highs = [
            high
            for c in self.checks.checks
            if (risk := getattr(c, self.number)) in near
            and (high := getattr(c, f"{self.number}_interval").high) <= _FAR * max(base, risk)
        ]
        return 1.08 * max([base, *near, *highs]) or 1.0

    def _size(self) -> tuple[float, float]:
        names = [c.name for c in self.checks.checks]
        return 6.6 + 0.8 * label_width([*names, "certified bound 0.0123"]), max(
            4.2, 1.4 + _ROW * len(names)
        )


def data_style(index: int) -> dict[str, Any]:
    """Return color and shape of a data set: neighbors differ in both."""
    shape = _SHAPES[(index + index // len(LIGHT)) % len(_SHAPES)]
    color = LIGHT[(index + 1) % len(LIGHT)]
    return {"color": color, "marker": shape, "markersize": 6, "linestyle": "none", "zorder": 4}


def _sizes(count: int) -> list[float]:
    """Return the sizes of the marks of one shift: they grow with its severity."""
    return [6.0] if count == 1 else [4 + 3.5 * step / (count - 1) for step in range(count)]


def _reach(value: float, interval: Interval) -> list[list[float]] | None:
    if math.isnan(interval.low) or math.isnan(interval.high):
        return None
    return [[max(value - interval.low, 0.0)], [max(interval.high - value, 0.0)]]


def _row(
    what: str, x: float, y: float, name: str = "", ends: "tuple[Interval, Interval] | None" = None
) -> dict[str, Any]:
    known = {f"{n}_{end}": math.nan for n in ("coverage", "risk") for end in ("low", "high")}
    for number, interval in zip(("coverage", "risk"), ends or (), strict=False):
        known |= {f"{number}_low": interval.low, f"{number}_high": interval.high}
    return {"what": what, "name": name, "coverage": x, "risk": y, **known, "threshold": None}


def _name(ax: "Axes", named: list[tuple[Any, str]]) -> None:
    """Name everything beside the axes, where no name can lie over a point."""
    if not named:
        return
    beside: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "fontsize": 9}
    add_legend(ax, [drawn for drawn, _ in named], [name for _, name in named], **beside)
