"""Figures of several panels with one legend."""

import math
from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from abstain.errors import InputError
from abstain.plots.drawable import Titled
from abstain.plots.formatting import escape_control_characters
from abstain.plots.labels import add_legend, label_width
from abstain.plots.style import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Width of a letter of a title, and of a line in the legend with its padding, in inches.
_LETTER_WIDTH, _HANDLE_WIDTH = 0.086, 0.55


def grid_shape(n_panels: int, max_columns: int = 3) -> tuple[int, int]:
    """Return the numbers of rows and columns for panels.

    Examples
    --------
    >>> grid_shape(1), grid_shape(4), grid_shape(6), grid_shape(7)
    ((1, 1), (2, 2), (2, 3), (3, 3))
    """
    columns = min(max_columns, 2 if n_panels == 4 else n_panels)
    return math.ceil(n_panels / columns), columns


def split_axes(
    ax: "Axes", n_panels: int, *, share_x: bool = True, share_y: bool, max_columns: int = 3
) -> list["Axes"]:
    """Replace axes by a grid of panels, row by row; a single panel uses the axes themselves."""
    if n_panels == 1:
        return [ax]
    position = ax.get_subplotspec()
    if position is None:
        raise InputError(
            "`ax` must be created by plt.subplots or add_subplot, because panels replace it"
        )
    figure: Any = ax.figure
    rows, columns = grid_shape(n_panels, max_columns)
    ax.remove()
    spec = position.subgridspec(rows, columns)
    panels: list[Axes] = []
    for i in range(n_panels):
        first = panels[0] if panels else None
        shared_axes = {"sharex": first if share_x else None, "sharey": first if share_y else None}
        panels.append(figure.add_subplot(spec[divmod(i, columns)], **shared_axes))
    return panels


def hide_inner_labels(panels: Sequence["Axes"], *, share_y: bool, max_columns: int = 3) -> None:
    """Hide axis titles and shared tick labels except at the left and at the bottom."""
    count = len(panels)
    _, columns = grid_shape(count, max_columns)
    for i, ax in enumerate(panels):
        if i % columns:
            ax.set_ylabel("")
            ax.tick_params(labelleft=not share_y)
        if i + columns < count:
            ax.set_xlabel("")
            ax.tick_params(labelbottom=False, which="both")


def name_panel(ax: "Axes", name: str) -> None:
    """Set the title of a panel, aligned at the left."""
    max_letters = max(int(ax.bbox.width / ax.figure.dpi / _LETTER_WIDTH), 12)
    title = "\n".join(wrap(escape_control_characters(name), max_letters))
    ax.set_title(title, loc="left", fontsize=9.5, color=INK, parse_math=False)


class Panels(Titled):
    """A figure of panels with a title for all of them."""

    def _draw_title(self, ax: "Axes") -> None:
        figure: Any = ax.figure
        max_letters = max(int(figure.bbox.width / figure.dpi / _LETTER_WIDTH), 12)
        text = "\n".join(wrap(escape_control_characters(self.title), max_letters))
        figure.suptitle(text, x=0.01, ha="left", fontsize=10, color=INK, parse_math=False)


def _balanced_columns(count: int, max_columns: int) -> int:
    """Return the number of columns with which all rows have about equal length."""
    return math.ceil(count / math.ceil(count / max_columns))


def n_legend_columns(names: Sequence[str], width: float) -> int:
    """Return the number of legend columns that fit a width in inches."""
    return max(int(width / (_HANDLE_WIDTH + 0.8 * label_width(names))), 1)


def legend_below(ax: "Axes", handles: Sequence[Any], names: Sequence[str]) -> None:
    """Add one legend for all panels below them."""
    figure: Any = ax.figure
    add_legend(
        figure,
        handles,
        names,
        loc="outside lower left",
        ncols=_balanced_columns(
            len(names), n_legend_columns(names, figure.bbox.width / figure.dpi - 0.3)
        ),
        fontsize=9,
        handlelength=2.0,
        columnspacing=1.2,
        labelspacing=0.3,
    )
