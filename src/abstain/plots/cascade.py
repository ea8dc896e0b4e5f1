"""Cost by risk of all candidate thresholds of a cascade."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from abstain.evaluation.cascade import CascadeChecks
from abstain.plots.drawable import Titled
from abstain.plots.formatting import check_result_type
from abstain.plots.labels import add_legend, label_width
from abstain.plots.style import INK, LIGHT, line_style, reference_style, style_axes
from abstain.thresholds.cascade import PERSON, CascadeFrontier
from abstain.typing import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

#: Numbers of grid cells in each direction; each cell has at most one dot.
_GRID_SIZE: Final = (90, 60)
#: Maximum of the risk axis, relative to the target.
_MAX_RELATIVE_RISK: Final = 4.0
#: Lighter than the lines, darker than the grid.
_LIGHT_GRAY: Final = "#c3cad1"
_CANDIDATES_LABEL, _CERTIFIED_LABEL = "other thresholds", "certified"


@dataclass(eq=False)
class CascadeDisplay(Titled):
    """Mean cost by risk of all candidate thresholds on the calibration data.

    Gray dots are candidate thresholds, blue dots are certified, and the diamond is selected. The
    dotted line is the maximum risk. Thin lines are the best thresholds of each model with only the
    person as second stage; the circle at the end of a line is the model that answers all samples.
    The cross is the person who answers all samples.

    `plot` passes additional options to the ``Axes.scatter`` of the certified choices (color, s).

    Attributes
    ----------
    checks : CascadeChecks
        Result of `check_cascade`; with `calibration`, it contains all candidates.

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> from abstain.plots import CascadeDisplay
    >>> confidence = np.linspace(0, 1, 2000)
    >>> is_failure = (np.arange(2000) % 3 == 0) & (confidence < 0.5)
    >>> data = {"small": (confidence, is_failure)}
    >>> cascade = ab.set_cascade(data, max_risk=0.1)
    >>> display = CascadeDisplay.from_checks(ab.check_cascade(cascade, {}, calibration=data))
    >>> display.frame()["kind"].unique().sort().to_list()
    ['alone', 'candidate', 'certified', 'selected']
    """

    checks: CascadeChecks

    @classmethod
    def from_checks(cls, checks: CascadeChecks) -> Self:
        """Create a display from the result of `check_cascade`.

        Parameters
        ----------
        checks : CascadeChecks
            Cascade and the data sets on which it was checked.

        Returns
        -------
        CascadeDisplay
            Display that is not handle yet; call `plot`.
        """
        return cls(check_result_type(checks, CascadeChecks, "checks", "check_cascade"))

    @property
    def title(self) -> str:
        """Title of the figure."""
        if not self.checks.cascade.attainable:
            return "Cost and risk of all candidate thresholds; none is certified"
        return "Cost and risk of all candidate thresholds and the selected ones"

    def frame(self) -> "pl.DataFrame":
        """Return the plotted data as a Polars table with one row per dot.

        The column `kind` is "candidate", "certified", "selected", "alone" (the model of the stage
        in `name` alone) or "data" (the cascade on the data set in `name`).
        """
        import polars as pl

        return pl.DataFrame(self._rows(), infer_schema_length=None)

    def _rows(self) -> list[dict[str, Any]]:
        rows, f = [], self.checks.frontier
        if f is not None:
            selected = f.selected
            point_groups = [
                ("candidate", "", self._distinct_points(f)),
                ("certified", "", f.certified),
            ]
            point_groups += [
                ("selected", "", np.array([] if selected is None else [selected], np.int64))
            ]
            point_groups += [
                ("alone", stage.name, f.efficient(f.only_stage(index)))
                for index, stage in enumerate(f.stages)
            ]
            for what, name, places in point_groups:
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

    def _distinct_points(self, f: CascadeFrontier) -> IntArray:
        """Return one candidate for each cell of a grid."""
        in_range = np.flatnonzero(self._is_in_range(f))
        x, y = f.risk[in_range], f.cost[in_range]
        cells = [
            np.floor(v / max(v.max(), 1e-300) * n).astype(np.int64)
            for v, n in zip((x, y), _GRID_SIZE, strict=True)
        ]
        first_of_cell = np.unique(cells[0] * (_GRID_SIZE[1] + 1) + cells[1], return_index=True)[1]
        return np.asarray(in_range[first_of_cell])

    def _is_in_range(self, f: CascadeFrontier) -> BoolArray:
        return np.asarray(f.risk <= self._max_risk(f))

    def _max_risk(self, f: CascadeFrontier) -> float:
        """Return the upper limit of the risk axis."""
        single_model_risks = [
            float(f.risk[f.answer_all_choice(index)]) for index in range(len(f.stages))
        ]
        return max(
            1.3 * self.checks.cascade.plan.max_risk,
            min(
                1.05 * max(single_model_risks),
                _MAX_RELATIVE_RISK * self.checks.cascade.plan.max_risk,
            ),
        )

    def _draw_on(self, axes: "Axes", kwargs: dict[str, Any]) -> None:
        f, plan = self.checks.frontier, self.checks.cascade.plan
        legend_entries: list[tuple[Any, str]] = []
        if f is not None:
            legend_entries += self._draw_candidates(axes, f, kwargs)
            legend_entries += self._draw_models(axes, f)
            axes.set_xlim(0, self._max_risk(f))
        style = {**reference_style(), "color": INK, "linewidth": 1.2}
        legend_entries.append(
            (axes.axvline(plan.max_risk, **style), f"maximum risk {plan.max_risk:g}")
        )
        if f is not None:
            legend_entries += self._draw_selected(axes, f)
        legend_entries += self._draw_data(axes)
        quantity = "share of wrong answers" if self.checks.is_binary else "mean loss"
        axes.set(xlabel=f"Risk ({quantity})", ylabel=self._cost_title())
        axes.set_ylim(bottom=0)
        style_axes(axes)
        legend_position: dict[str, Any] = {
            "loc": "upper left",
            "bbox_to_anchor": (1.01, 1.0),
            "fontsize": 9,
        }
        add_legend(
            axes,
            [handle for handle, _ in legend_entries],
            [name for _, name in legend_entries],
            **legend_position,
        )

    def _cost_title(self) -> str:
        plan = self.checks.cascade.plan
        has_review_cost_only = plan.error_cost == 0 and all(
            s.cost == 0 for s in self.checks.cascade.stages
        )
        if has_review_cost_only and plan.person_cost == 1:
            return f"Share of samples forwarded to the {PERSON}"
        return "Mean cost per sample"

    def _draw_candidates(
        self, ax: "Axes", f: CascadeFrontier, kwargs: dict[str, Any]
    ) -> list[tuple[Any, str]]:
        candidates, certified = self._distinct_points(f), f.certified
        dots: dict[str, Any] = {"linewidths": 0, "zorder": 1}
        gray = ax.scatter(f.risk[candidates], f.cost[candidates], s=7, color=_LIGHT_GRAY, **dots)
        legend_entries: list[tuple[Any, str]] = [(gray, _CANDIDATES_LABEL)]
        if certified.size:
            style = {"s": 13, "color": LIGHT[0], **dots, "zorder": 4, **kwargs}
            legend_entries.append(
                (ax.scatter(f.risk[certified], f.cost[certified], **style), _CERTIFIED_LABEL)
            )
        return legend_entries

    def _draw_models(self, ax: "Axes", f: CascadeFrontier) -> list[tuple[Any, str]]:
        legend_entries: list[tuple[Any, str]] = []
        for index, stage in enumerate(f.stages):
            efficient = f.efficient(f.only_stage(index))
            style = {**line_style(index + 1), "linewidth": 1.1, "zorder": 2}
            line_artist = ax.plot(f.risk[efficient], f.cost[efficient], **style)[0]
            end = f.answer_all_choice(index)
            point: dict[str, Any] = {"marker": "o", "markersize": 5, "color": style["color"]}
            ax.plot([f.risk[end]], [f.cost[end]], linestyle="none", zorder=3, **point)
            legend_entries.append((line_artist, f"{stage.name} and the {PERSON} alone"))
        end = f.answer_all_choice(-1)
        cross: dict[str, Any] = {"marker": "X", "markersize": 7, "color": INK, "clip_on": False}
        mark = ax.plot([f.risk[end]], [f.cost[end]], linestyle="none", zorder=3, **cross)[0]
        return [*legend_entries, (mark, f"all samples to the {PERSON}")]

    def _draw_selected(self, ax: "Axes", f: CascadeFrontier) -> list[tuple[Any, str]]:
        selected = f.selected
        if selected is None:
            return []
        style: dict[str, Any] = {"marker": "D", "markersize": 7, "color": INK, "zorder": 6}
        point = ax.plot(
            [f.risk[selected]], [f.cost[selected]], linestyle="none", clip_on=False, **style
        )[0]
        return [(point, "selected")]

    def _draw_data(self, ax: "Axes") -> list[tuple[Any, str]]:
        legend_entries: list[tuple[Any, str]] = []
        for index, check in enumerate(self.checks.checks):
            load = check.load
            if load is None or not (np.isfinite(check.risk) and np.isfinite(load.cost)):
                continue
            color = LIGHT[(index + 1 + len(self.checks.cascade.stages)) % len(LIGHT)]
            style: dict[str, Any] = {"color": color, "marker": "s", "markersize": 5, "zorder": 5}
            artist = ax.errorbar(
                [check.risk],
                [load.cost],
                xerr=_error_bar(check.risk, check.risk_interval),
                yerr=_error_bar(load.cost, load.cost_interval),
                elinewidth=1,
                linestyle="none",
                **style,
            )
            legend_entries.append((artist, check.name or "data"))
        return legend_entries

    def _size(self) -> tuple[float, float]:
        names = [s.name for s in self.checks.cascade.stages]
        names = [f"{name} and the {PERSON} alone" for name in names]
        names += [c.name for c in self.checks.checks]
        return 6.6 + 0.8 * label_width([*names, "all samples to the person"]), 4.4


def _row(kind: str, name: str, risk: float, cost: float, reviews: float) -> dict[str, Any]:
    return {"kind": kind, "name": name, "risk": risk, "cost": cost, "reviews": reviews}


def _error_bar(value: float, interval: Any) -> FloatArray | None:
    if not (np.isfinite(interval.low) and np.isfinite(interval.high)):
        return None
    return np.array([[max(value - interval.low, 0.0)], [max(interval.high - value, 0.0)]])
