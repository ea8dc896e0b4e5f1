"""All choices of thresholds of a cascade: cost against risk, and which of them are certified."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from abstain.evaluation.cascade import CascadeChecks
from abstain.plots.drawable import Titled
from abstain.plots.formatting import check_result_type
from abstain.plots.labels import name_marks, room
from abstain.plots.style import INK, LIGHT, finish, line_style, reference_style
from abstain.thresholds.cascade import PERSON, CascadeFrontier
from abstain.typing import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

#: Choices so near each other are one dot: shares of the width and the height.
_RASTER: Final = (90, 60)
#: What lies so many times the target to the right is not needed to see what was chosen.
_FAR: Final = 4.0
#: Lighter than any line, darker than the grid.
_PALE: Final = "#c3cad1"
_CLOUD, _CERTIFIED = "other thresholds", "certified"


@dataclass(eq=False)
class CascadeDisplay(Titled):
    """Mean cost against risk of every choice of thresholds, on the calibration data.

    Gray dots are choices of thresholds, blue ones those that are certified to keep the promise; the
    diamond is the one chosen, the dotted line the largest risk allowed. Thin lines are what each
    model reaches alone with the person, at its best thresholds; a disc at the end of one is the
    model that answers everything. The cross is everything sent to the person.

    `plot` passes its options on to the ``Axes.scatter`` of the certified choices (color, s).

    Attributes
    ----------
    checks : CascadeChecks
        What `check_cascade` returned; with `calibration` it has all choices.

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> from abstain.plots import CascadeDisplay
    >>> sure = np.linspace(0, 1, 2000)
    >>> said = {"small": (sure, (np.arange(2000) % 3 == 0) & (sure < 0.5))}
    >>> cascade = ab.set_cascade(said, max_risk=0.1)
    >>> display = CascadeDisplay.from_checks(ab.check_cascade(cascade, {}, calibration=said))
    >>> display.frame()["what"].unique().sort().to_list()
    ['alone', 'certified', 'chosen', 'tried']
    """

    checks: CascadeChecks

    @classmethod
    def from_checks(cls, checks: CascadeChecks) -> Self:
        """Take what `check_cascade` returned.

        Parameters
        ----------
        checks : CascadeChecks
            A cascade and the data sets on which it was checked.

        Returns
        -------
        CascadeDisplay
            Call `plot` to draw it.
        """
        return cls(check_result_type(checks, CascadeChecks, "checks", "check_cascade"))

    @property
    def title(self) -> str:
        """What the figure shows, in words."""
        if not self.checks.cascade.attainable:
            return "No thresholds are certified: cost and risk of all that were tried"
        return "Cost and risk of all thresholds that were tried, and those chosen"

    def frame(self) -> "pl.DataFrame":
        """Return what is drawn as a polars table, one row a dot.

        The column `what` says which: "tried", "certified", "chosen", "alone" (of the stage in
        `name`) or "data" (what the cascade does on the data set in `name`).
        """
        import polars as pl

        return pl.DataFrame(self._rows(), infer_schema_length=None)

    def _rows(self) -> list[dict[str, Any]]:
        rows, f = [], self.checks.frontier
        if f is not None:
            chosen = f.selected
            parts = [("tried", "", self._cloud(f)), ("certified", "", f.certified)]
            parts += [("chosen", "", np.array([] if chosen is None else [chosen], np.int64))]
            parts += [
                ("alone", stage.name, f.efficient(f.only_stage(place)))
                for place, stage in enumerate(f.stages)
            ]
            for what, name, places in parts:
                rows += [
                    _row(what, name, float(f.risk[i]), float(f.cost[i]), float(f.reviews[i]))
                    for i in places
                ]
        rows += [
            _row("data", check.name, check.risk, check.load.cost, check.load.reviews)
            for check in self.checks.checks
            if check.load is not None
        ]
        return rows

    def _cloud(self, f: CascadeFrontier) -> IntArray:
        """Return one choice of those that would lie on each other."""
        inside = np.flatnonzero(self._near(f))
        x, y = f.risk[inside], f.cost[inside]
        cells = [
            np.floor(v / max(v.max(), 1e-300) * n).astype(np.int64)
            for v, n in zip((x, y), _RASTER, strict=True)
        ]
        first = np.unique(cells[0] * (_RASTER[1] + 1) + cells[1], return_index=True)[1]
        return np.asarray(inside[first])

    def _near(self, f: CascadeFrontier) -> BoolArray:
        return np.asarray(f.risk <= self._right(f))

    def _right(self, f: CascadeFrontier) -> float:
        """Return where the axis of risk ends: at the worst model alone, or not so far."""
        ends = [float(f.risk[f.answer_all_choice(place)]) for place in range(len(f.stages))]
        return max(
            1.3 * self.checks.cascade.plan.max_risk,
            min(1.05 * max(ends), _FAR * self.checks.cascade.plan.max_risk),
        )

    def _draw_on(self, axes: "Axes", kwargs: dict[str, Any]) -> None:
        f, plan = self.checks.frontier, self.checks.cascade.plan
        named: list[tuple[Any, str]] = []
        if f is not None:
            named += self._draw_tried(axes, f, kwargs)
            named += self._draw_models(axes, f)
            axes.set_xlim(0, self._right(f))
        style = {**reference_style(), "color": INK, "linewidth": 1.2}
        named.append((axes.axvline(plan.max_risk, **style), f"largest risk {plan.max_risk:g}"))
        if f is not None:
            named += self._draw_chosen(axes, f)
        named += self._draw_data(axes)
        wrong = "share of all answers that is wrong" if self.checks.is_binary else "mean loss"
        axes.set(xlabel=f"Risk ({wrong})", ylabel=self._cost_title())
        axes.set_ylim(bottom=0)
        finish(axes)
        beside: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "fontsize": 9}
        name_marks(axes, [drawn for drawn, _ in named], [name for _, name in named], **beside)

    def _cost_title(self) -> str:
        plan = self.checks.cascade.plan
        free = plan.error_cost == 0 and all(s.cost == 0 for s in self.checks.cascade.stages)
        if free and plan.person_cost == 1:
            return f"Share of the samples sent to the {PERSON}"
        return "Mean cost of a sample"

    def _draw_tried(
        self, ax: "Axes", f: CascadeFrontier, kwargs: dict[str, Any]
    ) -> list[tuple[Any, str]]:
        cloud, good = self._cloud(f), f.certified
        dots: dict[str, Any] = {"linewidths": 0, "zorder": 1}
        gray = ax.scatter(f.risk[cloud], f.cost[cloud], s=7, color=_PALE, **dots)
        out: list[tuple[Any, str]] = [(gray, _CLOUD)]
        if good.size:
            style = {"s": 13, "color": LIGHT[0], **dots, "zorder": 4, **kwargs}
            out.append((ax.scatter(f.risk[good], f.cost[good], **style), _CERTIFIED))
        return out

    def _draw_models(self, ax: "Axes", f: CascadeFrontier) -> list[tuple[Any, str]]:
        out: list[tuple[Any, str]] = []
        for place, stage in enumerate(f.stages):
            line = f.efficient(f.only_stage(place))
            style = {**line_style(place + 1), "linewidth": 1.1, "zorder": 2}
            drawn = ax.plot(f.risk[line], f.cost[line], **style)[0]
            end = f.answer_all_choice(place)
            point: dict[str, Any] = {"marker": "o", "markersize": 5, "color": style["color"]}
            ax.plot([f.risk[end]], [f.cost[end]], linestyle="none", zorder=3, **point)
            out.append((drawn, f"{stage.name} and the {PERSON} alone"))
        end = f.answer_all_choice(-1)
        cross: dict[str, Any] = {"marker": "X", "markersize": 7, "color": INK, "clip_on": False}
        mark = ax.plot([f.risk[end]], [f.cost[end]], linestyle="none", zorder=3, **cross)[0]
        return [*out, (mark, f"everything to the {PERSON}")]

    def _draw_chosen(self, ax: "Axes", f: CascadeFrontier) -> list[tuple[Any, str]]:
        at = f.selected
        if at is None:
            return []
        style: dict[str, Any] = {"marker": "D", "markersize": 7, "color": INK, "zorder": 6}
        point = ax.plot([f.risk[at]], [f.cost[at]], linestyle="none", clip_on=False, **style)[0]
        return [(point, "chosen")]

    def _draw_data(self, ax: "Axes") -> list[tuple[Any, str]]:
        out: list[tuple[Any, str]] = []
        for index, check in enumerate(self.checks.checks):
            load = check.load
            if load is None or not (np.isfinite(check.risk) and np.isfinite(load.cost)):
                continue
            color = LIGHT[(index + 1 + len(self.checks.cascade.stages)) % len(LIGHT)]
            style: dict[str, Any] = {"color": color, "marker": "s", "markersize": 5, "zorder": 5}
            drawn = ax.errorbar(
                [check.risk],
                [load.cost],
                xerr=_arms(check.risk, check.risk_interval),
                yerr=_arms(load.cost, load.cost_interval),
                elinewidth=1,
                linestyle="none",
                **style,
            )
            out.append((drawn, check.name or "data"))
        return out

    def _size(self) -> tuple[float, float]:
        names = [s.name for s in self.checks.cascade.stages]
        names = [f"{name} and the {PERSON} alone" for name in names]
        names += [c.name for c in self.checks.checks]
        return 6.6 + 0.8 * room([*names, "everything to the person"]), 4.4


def _row(what: str, name: str, risk: float, cost: float, reviews: float) -> dict[str, Any]:
    return {"what": what, "name": name, "risk": risk, "cost": cost, "reviews": reviews}


def _arms(value: float, interval: Any) -> FloatArray | None:
    if not (np.isfinite(interval.low) and np.isfinite(interval.high)):
        return None
    return np.array([[max(value - interval.low, 0.0)], [max(interval.high - value, 0.0)]])
