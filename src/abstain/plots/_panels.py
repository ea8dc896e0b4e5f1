"""Small multiples: one set of axes cut into panels with names, and one legend for all."""

import math
from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from abstain.errors import InputError
from abstain.plots.drawable import Titled
from abstain.plots.formatting import escape_control_characters
from abstain.plots.labels import name_marks, room
from abstain.plots.style import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Inches: the width of a letter of a title, of the line beside a name of the legend.
_LETTER, _HANDLE = 0.086, 0.55


def grid(count: int, most: int = 3) -> tuple[int, int]:
    """Return rows and columns for so many panels.

    Examples
    --------
    >>> grid(1), grid(4), grid(6), grid(7)
    ((1, 1), (2, 2), (2, 3), (3, 3))
    """
    columns = min(most, 2 if count == 4 else count)
    return math.ceil(count / columns), columns


def split(
    ax: "Axes", count: int, *, share_x: bool = True, share_y: bool, most: int = 3
) -> list["Axes"]:
    """Put panels in the place of axes, row by row; one panel is the axes themselves."""
    if count == 1:
        return [ax]
    place = ax.get_subplotspec()
    if place is None:
        raise InputError(
            "`ax` must come from plt.subplots or add_subplot, so that panels can take its place"
        )
    figure: Any = ax.figure
    rows, columns = grid(count, most)
    ax.remove()
    spec = place.subgridspec(rows, columns)
    made: list[Axes] = []
    for i in range(count):
        first = made[0] if made else None
        more = {"sharex": first if share_x else None, "sharey": first if share_y else None}
        made.append(figure.add_subplot(spec[divmod(i, columns)], **more))
    return made


def inner_labels_off(panels: Sequence["Axes"], *, share_y: bool, most: int = 3) -> None:
    """Leave the titles of axes, and shared numbers, to the left and to the lowest panels."""
    count = len(panels)
    _, columns = grid(count, most)
    for i, ax in enumerate(panels):
        if i % columns:
            ax.set_ylabel("")
            ax.tick_params(labelleft=not share_y)
        if i + columns < count:
            ax.set_xlabel("")
            ax.tick_params(labelbottom=False, which="both")


def name_panel(ax: "Axes", name: str) -> None:
    """Write the name of a panel above it, at the left."""
    width = max(int(ax.bbox.width / ax.figure.dpi / _LETTER), 12)
    words = "\n".join(wrap(escape_control_characters(name), width))
    ax.set_title(words, loc="left", fontsize=9.5, color=INK, parse_math=False)


class Panels(Titled):
    """A figure of panels, whose title goes across its whole width."""

    def _head(self, ax: "Axes") -> None:
        figure: Any = ax.figure
        width = max(int(figure.bbox.width / figure.dpi / _LETTER), 12)
        text = "\n".join(wrap(escape_control_characters(self.title), width))
        figure.suptitle(text, x=0.01, ha="left", fontsize=10, color=INK, parse_math=False)


def _even(count: int, most: int) -> int:
    """Return how many columns fill the rows evenly."""
    return math.ceil(count / math.ceil(count / most))


def legend_columns(names: Sequence[str], width: float) -> int:
    """Return how many names stand side by side in that many inches."""
    return max(int(width / (_HANDLE + 0.8 * room(names))), 1)


def legend_below(ax: "Axes", handles: Sequence[Any], names: Sequence[str]) -> None:
    """Name what is drawn once for all panels, below them."""
    figure: Any = ax.figure
    name_marks(
        figure,
        handles,
        names,
        loc="outside lower left",
        ncols=_even(len(names), legend_columns(names, figure.bbox.width / figure.dpi - 0.3)),
        fontsize=9,
        handlelength=2.0,
        columnspacing=1.2,
        labelspacing=0.3,
    )
