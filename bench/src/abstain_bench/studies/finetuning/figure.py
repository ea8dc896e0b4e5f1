"""The differences of the objectives from the reference, as a figure."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from abstain.plots.drawable import Titled
from abstain.plots.labels import WIDTH, calm, labels, name_ticks, room, rule
from abstain.plots.style import INK, LIGHT, MUTED, PAPER
from abstain_bench.studies.finetuning.results import Against

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

#: Blue and filled is better than the reference, orange and filled is worse, hollow is open.
_MARKS: dict[str, dict[str, Any]] = {
    "better": {"marker": "D", "color": LIGHT[0], "markerfacecolor": LIGHT[0]},
    "worse": {"marker": "s", "color": LIGHT[1], "markerfacecolor": LIGHT[1]},
    "open": {"marker": "o", "color": INK, "markerfacecolor": PAPER},
}
_SAID = {"better": "found better", "worse": "found worse", "open": "not told apart"}

#: Characters of a name on two lines.
_LONGEST = 2 * WIDTH - 8

#: Inches from the axes to the names of the marks.
_BELOW = 0.5


@dataclass(eq=False)
class DifferencesDisplay(Titled):
    """Each objective minus the reference on the same test samples, the best first.

    The thick line is the interval for new samples, which decides; the thin one is for new samples
    and new seeds. Values are multiplied by 1000, as the literature prints them. `plot` passes its
    options on to every ``Axes.errorbar``.
    """

    #: Of one metric under one loss.
    found: Sequence[Against]
    #: What is written for each objective.
    titles: dict[str, str]
    #: What the axis is about, and what is compared with, in words.
    metric: str
    reference: str

    @property
    def title(self) -> str:
        """What the figure shows, in words."""
        return f"{self.metric}: difference from {self.reference} with 95 % intervals"

    def frame(self) -> "pl.DataFrame":
        """Return what is drawn as a polars table, one row an objective."""
        import polars as pl

        rows = [asdict(a) | {"verdict": a.verdict} for a in self._rows()]
        return pl.DataFrame(rows, infer_schema_length=None)

    def _draw_on(self, axes: "Axes", kwargs: dict[str, Any]) -> None:
        rows = self._rows()
        for y, a in enumerate(rows):
            rule(axes, [0, 1], [y, y], transform=axes.get_yaxis_transform())
            self._draw(axes, a, y, kwargs)
        axes.axvline(0, color=MUTED, linewidth=1, zorder=1)
        calm(axes)
        written = self._written()
        name_ticks(axes, "y", [written[self._name(a)] for a in rows], range(len(rows)))
        axes.set_ylim(len(rows) - 0.4, -0.6)
        better = "left is better" if rows and rows[0].lower_is_better else "right is better"
        axes.set_xlabel(f"Difference x 1000 ({better})")
        axes.locator_params(axis="x", nbins=7)
        self._name_marks(axes)

    def _draw(self, ax: "Axes", a: Against, y: int, kwargs: dict[str, Any]) -> None:
        mark = {**_MARKS[a.verdict], "markersize": 5.5, "linestyle": "none", "capsize": 0, **kwargs}
        for low, high, width in (
            (a.wide_low, a.wide_high, 0.8),
            (a.difference_low, a.difference_high, 2.4),
        ):
            if not math.isnan(low + high):
                ends = [[1000 * (a.difference - low)], [1000 * (high - a.difference)]]
                ax.errorbar([1000 * a.difference], [y], xerr=ends, linewidth=width, **mark)
        ax.errorbar([1000 * a.difference], [y], **mark)

    def _name_marks(self, ax: "Axes") -> None:
        from matplotlib.lines import Line2D

        seen = {a.verdict for a in self.found}
        named = {v: said for v, said in _SAID.items() if v in seen}
        handles = [Line2D([], [], linestyle="none", markersize=6, **_MARKS[v]) for v in named]
        figure: Any = ax.figure
        height = float(ax.bbox.height / figure.dpi)
        beside: dict[str, Any] = {"loc": "upper left", "frameon": False, "labelcolor": INK}
        beside |= {"bbox_to_anchor": (0, -_BELOW / height), "fontsize": 9}
        ax.legend(handles, list(named.values()), ncols=3, handletextpad=0.2, **beside)

    def _rows(self) -> list[Against]:
        sign = 1 if self.found and self.found[0].lower_is_better else -1
        return sorted(self.found, key=lambda a: sign * a.difference)

    def _name(self, a: Against) -> str:
        return self.titles.get(a.objective, a.objective)

    def _written(self) -> dict[str, str]:
        """Return each name as it is written: on two lines where one has no room for it."""
        cut = labels([self._name(a) for a in self.found], _LONGEST)
        return {name: "\n".join(wrap(text, WIDTH)) for name, text in cut.items()}

    def _size(self) -> tuple[float, float]:
        lines = [text.split("\n") for text in self._written().values()]
        names = room(line for text in lines for line in text)
        most = max(map(len, lines), default=1)
        return 4.4 + names, 1.7 + (0.3 if most == 1 else 0.18 * most + 0.06) * len(self.found)
