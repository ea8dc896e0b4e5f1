"""Figure of the differences of the objectives from the reference."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from abstain.plots.drawable import Titled
from abstain.plots.labels import (
    MAX_LABEL_LENGTH,
    draw_rule,
    hide_frame,
    label_width,
    set_tick_labels,
    unique_labels,
)
from abstain.plots.style import INK, LIGHT, MUTED, PAPER
from abstain_bench.studies.finetuning.results import ReferenceDifference

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

#: Markers: blue if better than the reference, orange if worse, hollow if not significant.
_MARKERS: dict[str, dict[str, Any]] = {
    "better": {"marker": "D", "color": LIGHT[0], "markerfacecolor": LIGHT[0]},
    "worse": {"marker": "s", "color": LIGHT[1], "markerfacecolor": LIGHT[1]},
    "inconclusive": {"marker": "o", "color": INK, "markerfacecolor": PAPER},
}
_LEGEND = {
    "better": "significantly better",
    "worse": "significantly worse",
    "inconclusive": "not significantly different",
}

#: Largest number of characters of a title on two lines.
_MAX_TITLE_LENGTH = 2 * MAX_LABEL_LENGTH - 8

#: Distance in inches from the axes to the legend.
_LEGEND_DISTANCE = 0.5


@dataclass(eq=False)
class DifferencesDisplay(Titled):
    """Each objective minus the reference on the same test samples, best first.

    The thick line is the interval for new samples, which determines the conclusion. The thin line
    is the interval for new samples and new seeds. Values are multiplied by 1000, as in the
    literature. `plot` passes its options to every ``Axes.errorbar``.
    """

    #: Differences of one metric and one loss.
    differences: Sequence[ReferenceDifference]
    #: Titles of the objectives by name.
    titles: dict[str, str]
    #: Titles of the metric and of the reference.
    metric: str
    reference: str

    @property
    def title(self) -> str:
        """Title of the figure."""
        return f"{self.metric}: difference from {self.reference} with 95% intervals"

    def frame(self) -> "pl.DataFrame":
        """Return the plotted numbers as a polars table, one row for each objective."""
        import polars as pl

        rows = [asdict(d) | {"verdict": d.verdict} for d in self._sorted_differences()]
        return pl.DataFrame(rows, infer_schema_length=None)

    def _draw_on(self, axes: "Axes", kwargs: dict[str, Any]) -> None:
        rows = self._sorted_differences()
        for y, difference in enumerate(rows):
            draw_rule(axes, [0, 1], [y, y], transform=axes.get_yaxis_transform())
            self._draw_difference(axes, difference, y, kwargs)
        axes.axvline(0, color=MUTED, linewidth=1, zorder=1)
        hide_frame(axes)
        wrapped = self._wrapped_titles()
        set_tick_labels(axes, "y", [wrapped[self._title_of(d)] for d in rows], range(len(rows)))
        axes.set_ylim(len(rows) - 0.4, -0.6)
        better = "left is better" if rows and rows[0].lower_is_better else "right is better"
        axes.set_xlabel(f"Difference x 1000 ({better})")
        axes.locator_params(axis="x", nbins=7)
        self._draw_legend(axes)

    def _draw_difference(
        self, axes: "Axes", difference: ReferenceDifference, y: int, kwargs: dict[str, Any]
    ) -> None:
        style: dict[str, Any] = {"markersize": 5.5, "linestyle": "none", "capsize": 0}
        style = {**_MARKERS[difference.verdict], **style, **kwargs}
        x = 1000 * difference.difference
        for low, high, width in (
            (difference.new_seeds_low, difference.new_seeds_high, 0.8),
            (difference.difference_low, difference.difference_high, 2.4),
        ):
            if not math.isnan(low + high):
                half_widths = [[x - 1000 * low], [1000 * high - x]]
                axes.errorbar([x], [y], xerr=half_widths, linewidth=width, **style)
        axes.errorbar([x], [y], **style)

    def _draw_legend(self, axes: "Axes") -> None:
        from matplotlib.lines import Line2D

        verdicts = {difference.verdict for difference in self.differences}
        entries = {verdict: text for verdict, text in _LEGEND.items() if verdict in verdicts}
        handles = [Line2D([], [], linestyle="none", markersize=6, **_MARKERS[v]) for v in entries]
        figure: Any = axes.figure
        height = float(axes.bbox.height / figure.dpi)
        axes.legend(
            handles,
            list(entries.values()),
            ncols=3,
            handletextpad=0.2,
            loc="upper left",
            bbox_to_anchor=(0, -_LEGEND_DISTANCE / height),
            fontsize=9,
            frameon=False,
            labelcolor=INK,
        )

    def _sorted_differences(self) -> list[ReferenceDifference]:
        sign = 1 if self.differences and self.differences[0].lower_is_better else -1
        return sorted(self.differences, key=lambda d: sign * d.difference)

    def _title_of(self, difference: ReferenceDifference) -> str:
        return self.titles.get(difference.objective, difference.objective)

    def _wrapped_titles(self) -> dict[str, str]:
        """Return the titles, shortened and divided into lines."""
        shortened = unique_labels([self._title_of(d) for d in self.differences], _MAX_TITLE_LENGTH)
        return {title: "\n".join(wrap(text, MAX_LABEL_LENGTH)) for title, text in shortened.items()}

    def _size(self) -> tuple[float, float]:
        lines_by_title = [text.split("\n") for text in self._wrapped_titles().values()]
        title_width = label_width(line for lines in lines_by_title for line in lines)
        max_lines = max(map(len, lines_by_title), default=1)
        row_height = 0.3 if max_lines == 1 else 0.18 * max_lines + 0.06
        return 4.4 + title_width, 1.7 + row_height * len(self.differences)
