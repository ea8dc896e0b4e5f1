"""Figures of the candidate thresholds of a cascade, and of the number of samples at each stage."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from abstain.evaluation.cascade import CascadeChecks, PathStage
from abstain.plots.drawable import Titled
from abstain.plots.formatting import check_result_type
from abstain.plots.labels import add_legend_at_right, add_legend_below, label_width
from abstain.plots.style import (
    GRID,
    INK,
    LIGHT,
    Style,
    error_bar,
    line_style,
    reference_style,
    style_axes,
)
from abstain.thresholds import RuleCheck
from abstain.thresholds.cascade import PERSON, CascadeFrontier
from abstain.typing import Array, IntArray

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

#: Numbers of grid cells in each direction. Each cell has at most one dot.
_GRID_SIZE: Final = (90, 60)
#: Maximum of the risk axis, relative to the target.
_MAX_RELATIVE_RISK: Final = 4.0
#: Number of samples of a path, and columns of its table.
_N_PATH: Final = 1000
_PATH_COLUMNS: Final = (
    "n_reached",
    "n_answered",
    "n_wrong",
    "cost_per_sample",
    "cost",
    "error_cost",
)
#: Gray that is lighter than the lines and darker than the grid.
_LIGHT_GRAY: Final = "#c3cad1"


@dataclass(eq=False)
class CascadeDisplay(Titled):
    """Mean cost and risk of a cascade on the calibration data, for each choice of its thresholds.

    Gray dots are candidate thresholds, and blue dots are certified thresholds. The diamond is the
    selected choice. The dotted line is the maximum risk.

    Each thin line shows cascades of one model and the person, with the best thresholds. The circle
    at the end of a line means that the model answers all samples. The cross means that the person
    answers all samples.

    `plot` passes additional options to the ``Axes.scatter`` of the certified choices (color, s).

    Attributes
    ----------
    checks : CascadeChecks
        Result of `check_cascade`. The candidates are available if `calibration` was passed to
        `check_cascade`.

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
            Cascade with its check results on data sets.

        Returns
        -------
        CascadeDisplay
            Display of the data. The method `plot` draws the figure.
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

        The column `kind` contains "candidate", "certified", "selected", "alone" or "data". "alone"
        is a cascade of the model in `name` and the person. "data" is the cascade on the data set in
        `name`.
        """
        import polars as pl

        return pl.DataFrame(self._rows(), infer_schema_length=None)

    def _rows(self) -> list[dict[str, Any]]:
        """Return the rows of the table, for candidates, single models and data sets."""
        rows: list[dict[str, Any]] = []
        if self.checks.frontier is not None:
            rows += self._frontier_rows(self.checks.frontier)
        for check in self.checks.checks:
            if check.load is not None:
                row = _row("data", check.name, check.risk, check.load.cost, check.load.reviews)
                rows.append(row)
        return rows

    def _frontier_rows(self, frontier: CascadeFrontier) -> list[dict[str, Any]]:
        """Return the rows of the candidates and of the cascades of one model and the person."""

        def rows_of(kind: str, name: str, indices: Iterable[int]) -> list[dict[str, Any]]:
            rows = []
            for i in indices:
                risk = float(frontier.risk[i])
                cost = float(frontier.cost[i])
                rows.append(_row(kind, name, risk, cost, float(frontier.reviews[i])))
            return rows

        rows = rows_of("candidate", "", self._distinct_points(frontier))
        rows += rows_of("certified", "", frontier.certified)
        if frontier.selected is not None:
            rows += rows_of("selected", "", [frontier.selected])
        for index, stage in enumerate(frontier.stages):
            rows += rows_of("alone", stage.name, frontier.efficient(frontier.only_stage(index)))
        return rows

    def _distinct_points(self, frontier: CascadeFrontier) -> IntArray:
        """Return at most one candidate for each cell of a grid, to avoid overlapping dots."""
        in_range = np.flatnonzero(frontier.risk <= self._max_risk(frontier))
        n_x, n_y = _GRID_SIZE
        x = _grid_index(frontier.risk[in_range], n_x)
        y = _grid_index(frontier.cost[in_range], n_y)
        first_of_cell = np.unique(x * (n_y + 1) + y, return_index=True)[1]
        return np.asarray(in_range[first_of_cell])

    def _max_risk(self, frontier: CascadeFrontier) -> float:
        """Return the upper limit of the risk axis."""
        target = self.checks.cascade.plan.max_risk
        single_model_risks = [
            float(frontier.risk[frontier.answer_all_choice(index)])
            for index in range(len(frontier.stages))
        ]
        max_risk = min(1.05 * max(single_model_risks), _MAX_RELATIVE_RISK * target)
        return max(1.3 * target, max_risk)

    def _draw_on(self, axes: "Axes", kwargs: dict[str, Any]) -> None:
        """Draw the candidates, the single models, the selected thresholds and the data sets."""
        f, plan = self.checks.frontier, self.checks.cascade.plan
        legend_entries: list[tuple[Any, str]] = []
        if f is not None:
            legend_entries += self._draw_candidates(axes, f, kwargs)
            legend_entries += self._draw_models(axes, f)
            axes.set_xlim(0, self._max_risk(f))
        target = axes.axvline(
            plan.max_risk, **{**reference_style(), "color": INK, "linewidth": 1.2}
        )
        legend_entries.append((target, f"maximum risk {plan.max_risk:g}"))
        if f is not None and f.selected is not None:
            mark = _draw_mark(axes, f, f.selected, marker="D", markersize=7, zorder=6)
            legend_entries.append((mark, "selected"))
        legend_entries += self._draw_data(axes)
        quantity = "share of wrong answers" if self.checks.is_binary else "mean loss"
        costs = [plan.error_cost, *(stage.cost for stage in self.checks.cascade.stages)]
        is_review_share = plan.person_cost == 1 and not any(costs)
        axes.set_xlabel(f"Risk ({quantity})")
        axes.set_ylabel(
            f"Share of samples forwarded to the {PERSON}"
            if is_review_share
            else "Mean cost per sample"
        )
        axes.set_ylim(bottom=0)
        style_axes(axes)
        add_legend_at_right(axes, legend_entries)

    def _draw_candidates(
        self, ax: "Axes", f: CascadeFrontier, kwargs: dict[str, Any]
    ) -> list[tuple[Any, str]]:
        """Draw the candidate and the certified thresholds, and return the legend entries."""
        candidates, certified = self._distinct_points(f), f.certified
        style: Style = {"s": 7, "color": _LIGHT_GRAY, "linewidths": 0, "zorder": 1}
        dots = ax.scatter(f.risk[candidates], f.cost[candidates], **style)
        legend_entries: list[tuple[Any, str]] = [(dots, "other thresholds")]
        if certified.size:
            style = {"s": 13, "color": LIGHT[0], "linewidths": 0, "zorder": 4, **kwargs}
            dots = ax.scatter(f.risk[certified], f.cost[certified], **style)
            legend_entries.append((dots, "certified"))
        return legend_entries

    def _draw_models(self, ax: "Axes", f: CascadeFrontier) -> list[tuple[Any, str]]:
        """Draw the cascades of one model and the person, and return the legend entries."""
        legend_entries: list[tuple[Any, str]] = []
        for index, stage in enumerate(f.stages):
            efficient = f.efficient(f.only_stage(index))
            style = {**line_style(index + 1), "linewidth": 1.1, "zorder": 2}
            (line,) = ax.plot(f.risk[efficient], f.cost[efficient], **style)
            mark = {"marker": "o", "markersize": 5, "color": style["color"], "clip_on": True}
            _draw_mark(ax, f, f.answer_all_choice(index), **mark)
            legend_entries.append((line, f"{stage.name} and the {PERSON} alone"))
        cross = _draw_mark(ax, f, f.answer_all_choice(-1), marker="X", markersize=7)
        return [*legend_entries, (cross, f"all samples to the {PERSON}")]

    def _draw_data(self, ax: "Axes") -> list[tuple[Any, str]]:
        """Draw the results on other data sets, and return the legend entries."""
        legend_entries: list[tuple[Any, str]] = []
        for index, check in enumerate(self.checks.checks):
            load = check.load
            if load is None or not (np.isfinite(check.risk) and np.isfinite(load.cost)):
                continue
            color = LIGHT[(index + 1 + len(self.checks.cascade.stages)) % len(LIGHT)]
            x_error = error_bar(check.risk, check.risk_interval)
            y_error = error_bar(load.cost, load.cost_interval)
            style: Style = {"color": color, "marker": "s", "markersize": 5, "zorder": 5}
            style |= {"elinewidth": 1, "linestyle": "none"}
            artist = ax.errorbar([check.risk], [load.cost], xerr=x_error, yerr=y_error, **style)
            legend_entries.append((artist, check.name or "data"))
        return legend_entries

    def _size(self) -> tuple[float, float]:
        names = [f"{stage.name} and the {PERSON} alone" for stage in self.checks.cascade.stages]
        names += [c.name for c in self.checks.checks]
        return 6.6 + 0.8 * label_width([*names, "all samples to the person"]), 4.4


@dataclass(eq=False)
class CascadePathDisplay(Titled):
    """Numbers and costs of 1,000 samples at each stage of a cascade.

    Each stage has a bar from top to bottom. The length of the bar is the number of samples that
    reach the stage. The colored segment contains the samples with a correct answer, and the dark
    segment contains those with a wrong answer. The light segment contains the samples that the next
    stage receives. A text beside each bar states the numbers of answers and the costs.

    `plot` passes additional options to the ``Axes.barh`` of all segments (height, linewidth).

    Attributes
    ----------
    checks : CascadeChecks
        Result of `check_cascade`.
    check : RuleCheck or None, default=None
        Data set of the path, an entry of ``checks.checks``. By default, the figure shows the
        calibration data, without the numbers of errors.

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> from abstain.plots import CascadePathDisplay
    >>> confidence = np.linspace(0, 1, 2000)
    >>> is_failure = (np.arange(2000) % 3 == 0) & (confidence < 0.5)
    >>> data = {"small": (confidence, is_failure)}
    >>> checks = ab.check_cascade(ab.set_cascade(data, max_risk=0.1), {"later": data})
    >>> display = CascadePathDisplay.from_checks(checks, checks.checks[0])
    >>> display.frame().select("stage", "n_reached", "n_answered").rows()
    [('small', 1000.0, 747.5), ('person', 252.5, 252.5)]
    """

    checks: CascadeChecks
    check: RuleCheck | None = None

    @classmethod
    def from_checks(cls, checks: CascadeChecks, check: RuleCheck | None = None) -> Self:
        """Create a display from the result of `check_cascade`.

        Parameters
        ----------
        checks : CascadeChecks
            Cascade with its check results on data sets.
        check : RuleCheck, optional
            Data set of the path, an entry of ``checks.checks``. By default, the figure shows the
            calibration data.

        Returns
        -------
        CascadePathDisplay
            Display of the data. The method `plot` draws the figure.
        """
        return cls(check_result_type(checks, CascadeChecks, "checks", "check_cascade"), check)

    @property
    def title(self) -> str:
        """Title of the figure."""
        name = "the calibration data" if self.check is None else self.check.name
        return f"Path of {_N_PATH:,} samples, {name}"

    def frame(self) -> "pl.DataFrame":
        """Return the numbers of samples and the costs as a Polars table with one row per stage."""
        import polars as pl

        rows = [
            {"stage": stage.name, **{f: getattr(stage, f) for f in _PATH_COLUMNS}}
            for stage in self._path()
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    def _path(self) -> tuple[PathStage, ...]:
        return self.checks.path(self.check, n=_N_PATH)

    def _draw_on(self, axes: "Axes", kwargs: dict[str, Any]) -> None:
        """Draw a bar and a text for each stage."""
        path = self._path()
        colors = {
            "correct answers" if self.check else "answers": LIGHT[0],
            "wrong answers" if self.checks.is_binary else "loss of the answers": LIGHT[1],
            "to the next stage": GRID,
        }
        bars_by_name: dict[str, Any] = {}
        for row, stage in enumerate(path):
            n_wrong = 0.0 if np.isnan(stage.n_wrong) else stage.n_wrong
            n_forwarded = stage.n_reached - stage.n_answered
            widths = (stage.n_answered - n_wrong, n_wrong, n_forwarded)
            left = 0.0
            for (name, color), width in zip(colors.items(), widths, strict=True):
                style: Style = {"left": left, "color": color, "height": 0.42, **kwargs}
                bars = axes.barh([row], [width], **style)
                if width > 0:
                    bars_by_name.setdefault(name, bars)
                left += width
            axes.text(0, row - 0.32, _stage_text(stage), fontsize=9, color=INK, parse_math=False)
        axes.set(xlim=(0, _N_PATH), ylim=(len(path) - 0.5, -0.75), xlabel="Samples")
        axes.xaxis.set_major_formatter("{x:,.0f}")
        style_axes(axes)
        axes.grid(visible=False, axis="y")
        axes.set_yticks([])
        entries = [(bars_by_name[name], name) for name in colors if name in bars_by_name]
        add_legend_below(axes, entries)

    def _size(self) -> tuple[float, float]:
        return 3.9, 1.2 + 0.62 * len(self.checks.cascade.names)


def _stage_text(stage: PathStage) -> str:
    """Return the name of a stage with the number of its answers and its costs."""
    if stage.n_reached == 0:
        return f"{stage.name}: not reached"
    text = f"{stage.name}: {stage.n_answered:,.0f} of {stage.n_reached:,.0f} answered"
    if stage.n_wrong > 0:
        text += f", {stage.n_wrong:,.0f} wrong"
    cost = stage.cost + stage.error_cost
    # Four significant digits, without an exponent for large numbers.
    cost_text = f"{cost:,.0f}" if cost >= 1000 else f"{cost:.4g}"
    return f"{text}, cost {cost_text}" if cost else text


def _row(kind: str, name: str, risk: float, cost: float, reviews: float) -> dict[str, Any]:
    return {"kind": kind, "name": name, "risk": risk, "cost": cost, "reviews": reviews}


def _grid_index(values: Array, n_cells: int) -> IntArray:
    """Return the index of the grid cell of each value. The grid extends from 0 to the maximum."""
    shares = values / max(values.max(), 1e-300)
    index: IntArray = np.floor(shares * n_cells).astype(np.int64)
    return index


def _draw_mark(ax: "Axes", f: CascadeFrontier, choice: int, **style: Any) -> Any:
    """Draw a marker at the risk and the cost of one choice of thresholds."""
    style = {"color": INK, "linestyle": "none", "zorder": 3, "clip_on": False, **style}
    return ax.plot([f.risk[choice]], [f.cost[choice]], **style)[0]
