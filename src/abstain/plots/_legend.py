"""Names of curves on a figure: inside the axes while few, below them when many."""

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from abstain.plots._labels import room
from abstain.plots._style import CURVE, INK
from abstain.plots.visible import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.legend import Legend

#: More curves than this are named below the axes, where no name can lie over a curve.
_INSIDE = 4

# In inches: the line beside a name and the gap behind it, a row, and what is left of the axes
# and their title until the first row.
_HANDLE, _ROW, _BELOW = 0.5, 0.19, 0.52

#: The share of a figure's width that its axes have.
_AXES = 0.85


def legend_height(names: Iterable[str], width: float) -> float:
    """Return by how much a figure of that width must be higher for the names below its axes.

    Examples
    --------
    >>> legend_height(["a", "b"], 5.6), round(legend_height("abcdefgh", 5.6), 2)
    (0.0, 0.34)
    """
    known = list(names)
    if len(known) <= _INSIDE:
        return 0.0
    return 0.15 + _ROW * math.ceil(len(known) / _columns(known, _AXES * width))


def name_the_curves(ax: "Axes") -> None:
    """Put names into the legend as they are: matplotlib hides "_x" and sets "$x$" as math."""
    ours = [line for line in ax.get_lines() if line.get_gid() == CURVE]
    theirs = [h for h in ax.get_legend_handles_labels()[0] if h not in ours]
    handles = [*ours, *theirs]
    names = [visible(str(handle.get_label())) for handle in handles]
    legend = _legend(ax, handles, names)
    for text, handle, name in zip(legend.get_texts(), handles, names, strict=True):
        text.set_parse_math(False)
        text.set_text(name)
        if handle in ours:
            # A curve that is hidden takes its name along.
            text.set_gid(CURVE)
    for drawn, handle in zip(legend.legend_handles, handles, strict=True):
        if handle in ours and drawn is not None:
            drawn.set_gid(CURVE)


def _legend(ax: "Axes", handles: Sequence[Any], names: list[str]) -> "Legend":
    style: dict[str, Any] = {"frameon": False, "labelcolor": INK}
    blank = ["name"] * len(handles)
    if len(names) <= _INSIDE:
        return ax.legend(handles, blank, **style)
    from matplotlib.transforms import ScaledTranslation

    figure: Any = ax.figure
    down = ScaledTranslation(0, -_BELOW, figure.dpi_scale_trans)
    below: dict[str, Any] = {
        "loc": "upper left",
        "bbox_to_anchor": (0, 0),
        "bbox_transform": ax.transAxes + down,
        "ncols": _columns(names, ax.bbox.width / figure.dpi),
        "fontsize": 9,
        "handlelength": 1.8,
        "columnspacing": 1.2,
        "labelspacing": 0.3,
        "borderpad": 0,
        "borderaxespad": 0,
    }
    return ax.legend(handles, blank, **style, **below)


def _columns(names: list[str], width: float) -> int:
    return max(int(width / (_HANDLE + 0.8 * room(names))), 1)
