"""Labels, titles and legends of figures."""

import math
from collections.abc import Iterable, Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain.plots.formatting import escape_control_characters
from abstain.plots.style import CURVE_ID, GRID, INK, MUTED
from abstain.typing import BoolArray, IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.text import Text
    from matplotlib.transforms import Bbox, Transform

#: Maximum length of a label, in characters.
MAX_LABEL_LENGTH = 26

#: Maximum number of tick labels. More labels are one artist, which matplotlib draws faster.
_MAX_SEPARATE_LABELS = 25

# Maximum width of a letter of 10 points, in inches.
_LETTER_WIDTH = 0.086


def unique_labels(names: Sequence[str], width: int = MAX_LABEL_LENGTH) -> dict[str, str]:
    """Return a short and unique label for each name.

    Examples
    --------
    >>> unique_labels(["msr", "a name too long, first", "a name too long, fast"], 9)
    {'msr': 'msr', 'a name too long, first': 'a na…irst', 'a name too long, fast': 'a na…fast'}
    >>> unique_labels(["abcdefgh", "ab--cdgh"], 5)
    {'abcdefgh': 'ab…gh', 'ab--cdgh': 'ab…gh (2)'}
    """
    label_by_name: dict[str, str] = {}
    for name in dict.fromkeys(names):
        text = escape_control_characters(name)
        if len(text) > width:
            n_end = (width - 1) // 2
            text = f"{text[: width - 1 - n_end]}…{text[len(text) - n_end :]}"
        label, i = text, 1
        while label in label_by_name.values():
            i += 1
            label = f"{text} ({i})"
        label_by_name[name] = label
    return label_by_name


def draw_text(ax: "Axes", x: float, y: float, text: str, **style: Any) -> "Text":
    """Draw a text in which matplotlib does not interpret "$" as math."""
    return ax.text(
        x, y, escape_control_characters(text), **{"parse_math": False, "color": INK, **style}
    )


def draw_texts(
    ax: "Axes", position_by_text: Mapping[str, tuple[float, float]], **style: Any
) -> None:
    """Draw texts at the given positions.

    Many texts are one artist.
    """
    if len(position_by_text) <= _MAX_SEPARATE_LABELS:
        for text, position in position_by_text.items():
            draw_text(ax, *position, text, **style)
        return
    texts = [escape_control_characters(text) for text in position_by_text]
    _draw_texts_as_one(ax, texts, list(position_by_text.values()), ax.transData, **style)


def set_tick_labels(
    ax: "Axes", side: str, names: Iterable[str], positions: Sequence[float], **style: Any
) -> None:
    """Set ticks with labels on the x or y axis."""
    axis = ax.xaxis if side == "x" else ax.yaxis
    axis.set_ticks(positions)
    axis.set_ticklabels(list(names), **{"parse_math": False, "color": INK, **style})


def set_many_tick_labels(
    ax: "Axes", side: str, names: Sequence[str], positions: Sequence[float], **style: Any
) -> None:
    """Draw many tick labels as a single artist, which is faster.

    Matplotlib draws many separate ticks slowly.
    """
    if len(names) <= _MAX_SEPARATE_LABELS:
        set_tick_labels(ax, side, names, positions, **style)
        return
    from matplotlib import rcParams
    from matplotlib.transforms import ScaledTranslation

    figure: Any = ax.figure
    settings: Any = rcParams
    pad = float(settings[f"{side}tick.major.pad"]) / 72
    style = {"fontsize": settings[f"{side}tick.labelsize"], **style}
    if side == "x":
        points = [(position, 0.0) for position in positions]
        offset = ScaledTranslation(0, -pad, figure.dpi_scale_trans)
        style = {"ha": "center", "va": "top", **style}
    else:
        points = [(0.0, position) for position in positions]
        offset = ScaledTranslation(-pad, 0, figure.dpi_scale_trans)
        style = {"ha": "right", "va": "center_baseline", **style}
    axis = ax.xaxis if side == "x" else ax.yaxis
    axis.set_ticks([])
    transform = ax.get_xaxis_transform() if side == "x" else ax.get_yaxis_transform()
    box = _draw_texts_as_one(ax, names, points, transform + offset, **style)
    # matplotlib ignores these labels when it places the axis title.
    extent = box.height if side == "x" else box.width
    axis.labelpad += float(72 * extent / figure.dpi) + 72 * pad


def _draw_texts_as_one(
    ax: "Axes",
    texts: Sequence[str],
    positions: Sequence[tuple[float, float]],
    transform: "Transform",
    **style: Any,
) -> "Bbox":
    """Draw many texts as a single artist, and return their bounding box."""
    from abstain.plots.text_artist import TextArtist

    artist = TextArtist(texts, np.array(positions), transform, **{"color": INK, **style})
    ax.add_artist(artist)
    artist.set_clip_on(False)
    return artist.get_window_extent()


def set_figure_title(figure: Any, title: str) -> None:
    """Draw a left-aligned title above all axes of the figure."""
    text = _wrap_title(title, figure.bbox.width / figure.dpi)
    figure.suptitle(text, x=0.01, ha="left", fontsize=10, color=INK, parse_math=False)


def set_axes_title(ax: "Axes", title: str, *, fontsize: float = 10) -> None:
    """Draw a left-aligned title above the axes."""
    text = _wrap_title(title, ax.bbox.width / ax.figure.dpi)
    ax.set_title(text, loc="left", fontsize=fontsize, color=INK, parse_math=False)


def _wrap_title(title: str, inches: float) -> str:
    max_letters = max(int(inches / _LETTER_WIDTH), 12)
    lines = title.split("\n")
    return "\n".join(
        t for line in lines for t in wrap(escape_control_characters(line), max_letters)
    )


def label_width(names: Iterable[str], width: int = MAX_LABEL_LENGTH) -> float:
    """Return the width of the longest label, in inches."""
    lengths = [min(len(escape_control_characters(name)), width) for name in names]
    return _LETTER_WIDTH * max(lengths, default=0)


def hide_frame(ax: "Axes") -> None:
    """Hide the frame and the tick marks."""
    ax.spines[:].set_visible(False)
    ax.tick_params(colors=MUTED, length=0)
    ax.xaxis.label.set_color(INK)
    ax.yaxis.label.set_color(INK)


def draw_rule(ax: "Axes", x: Sequence[float], y: Sequence[float], **style: Any) -> None:
    """Draw a thin line in the background."""
    ax.plot(x, y, **{"color": GRID, "linewidth": 0.8, "zorder": 0, **style})


def draw_squares(ax: "Axes", positions: Sequence[tuple[int, int]], **style: Any) -> None:
    """Draw squares with side length 1, centered at the given positions, as one patch.

    Adjacent squares of a row are drawn as one rectangle with vertical lines.
    """
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    if not positions:
        return
    x, y = np.array(positions).T
    # The mask has a margin of 1 on each side.
    is_square = np.zeros((x.max() + 3, y.max() + 3), np.bool_)
    is_square[x + 1, y + 1] = True
    left, row, right = _find_runs(is_square)
    rectangles = [[left, row], [left, row + 1], [right, row + 1], [right, row], [left, row]]
    # Separators are drawn twice, as are the edges between rows.
    top, line, bottom = _find_runs((is_square[:-1] & is_square[1:]).T)
    separators = [[line + 1, top], [line + 1, bottom]] * 2
    codes = [Path.MOVETO, *[Path.LINETO] * 3, Path.CLOSEPOLY] * left.size
    codes += [Path.MOVETO, Path.LINETO] * 2 * top.size
    rectangle_points = np.array(rectangles, np.float64).transpose(2, 0, 1).reshape(-1, 2)
    separator_points = np.array(separators, np.float64).transpose(2, 0, 1).reshape(-1, 2)
    # A square starts 0.5 before its center, in addition to the margin of the mask.
    points = np.concatenate([rectangle_points, separator_points]) - 1.5
    path = Path(points, codes)
    # The complete patch is snapped to pixels, so that the squares have equal widths.
    ax.add_artist(PathPatch(path, **{"snap": True, **style}))


def _find_runs(mask: BoolArray) -> tuple[IntArray, IntArray, IntArray]:
    """Find the runs of True in each column, and return their starts, columns and ends.

    The first and the last row of the mask must be False.
    """
    changes = np.diff(mask.T.astype(np.int8), axis=1)
    index, starts = np.nonzero(changes > 0)
    ends = np.nonzero(changes < 0)[1]
    return starts + 1, index, ends + 1


def draw_rules(
    ax: "Axes",
    starts: Sequence[float],
    ends: Sequence[float],
    positions: Sequence[float],
    **style: Any,
) -> None:
    """Draw horizontal lines as one artist."""
    x = [number for both in zip(starts, ends, strict=True) for number in (*both, math.nan)]
    y = [number for position in positions for number in (position, position, math.nan)]
    draw_rule(ax, x, y, **style)


#: Maximum number of curves with a legend inside the axes. Larger legends are below the axes.
_MAX_NAMES_INSIDE = 4

# Width of a legend line with padding, height of a legend row, and distance from the axes, in
# inches.
_HANDLE_WIDTH, _ROW_HEIGHT, _LEGEND_OFFSET = 0.5, 0.19, 0.52

#: Width of the axes as a share of the width of the figure.
_AXES_WIDTH_SHARE = 0.85


def legend_height(names: Iterable[str], width: float) -> float:
    """Return the height of a legend below the axes, in inches.

    Examples
    --------
    >>> legend_height(["a", "b"], 5.6), round(legend_height("abcdefgh", 5.6), 2)
    (0.0, 0.34)
    """
    name_list = list(names)
    if len(name_list) <= _MAX_NAMES_INSIDE:
        return 0.0
    n_columns = n_legend_columns(name_list, _AXES_WIDTH_SHARE * width)
    return 0.15 + _ROW_HEIGHT * math.ceil(len(name_list) / n_columns)


def add_curve_legend(ax: "Axes") -> None:
    """Add a legend that prints names such as "_x" and "$x$" unchanged."""
    curves = [line for line in ax.get_lines() if line.get_gid() == CURVE_ID]
    all_handles, _ = ax.get_legend_handles_labels()
    handles = [*curves, *(handle for handle in all_handles if handle not in curves)]
    names = [escape_control_characters(str(handle.get_label())) for handle in handles]
    legend = add_legend(ax, handles, names, **_legend_position(ax, names))
    # The curves are the first entries. With this id, a script that hides a curve also hides its
    # legend entry.
    for i in range(len(curves)):
        legend.get_texts()[i].set_gid(CURVE_ID)
        legend_handle = legend.legend_handles[i]
        if legend_handle is not None:
            legend_handle.set_gid(CURVE_ID)


def add_legend(
    parent: "Axes | Figure", handles: Sequence[Any], names: Sequence[str], **style: Any
) -> "Legend":
    """Add a legend of the given artists, in which "$" is not interpreted as math."""
    placeholders = ["name"] * len(handles)
    legend = parent.legend(handles, placeholders, frameon=False, labelcolor=INK, **style)
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_parse_math(False)
        text.set_text(escape_control_characters(name))
    return legend


def _legend_position(ax: "Axes", names: list[str]) -> dict[str, Any]:
    """Return options that place a legend with many names below the axes."""
    if len(names) <= _MAX_NAMES_INSIDE:
        return {}
    return _position_below(ax, names)


def _position_below(ax: "Axes", names: Sequence[str]) -> dict[str, Any]:
    """Return options that place a legend below the axes, with as many columns as possible."""
    from matplotlib.transforms import ScaledTranslation

    figure: Any = ax.figure
    down = ScaledTranslation(0, -_LEGEND_OFFSET, figure.dpi_scale_trans)
    return {
        "loc": "upper left",
        "bbox_to_anchor": (0, 0),
        "bbox_transform": ax.transAxes + down,
        "ncols": n_legend_columns(names, ax.bbox.width / figure.dpi),
        "fontsize": 9,
        "handlelength": 1.8,
        "columnspacing": 1.2,
        "labelspacing": 0.3,
        "borderpad": 0,
        "borderaxespad": 0,
    }


def n_legend_columns(
    names: Sequence[str], width: float, *, handle_width: float = _HANDLE_WIDTH
) -> int:
    """Return the number of legend columns that fit in a width, in inches."""
    return max(int(width / (handle_width + 0.8 * label_width(names))), 1)


def add_legend_at_right(ax: "Axes", entries: Sequence[tuple[Any, str]]) -> None:
    """Add a legend to the right of the axes."""
    if entries:
        handles, names = zip(*entries, strict=True)
        add_legend(ax, handles, names, loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize=9)


def add_legend_below(ax: "Axes", entries: Sequence[tuple[Any, str]]) -> None:
    """Add a legend with these handles and names below the axes."""
    if entries:
        handles, names = zip(*entries, strict=True)
        add_legend(ax, handles, names, **_position_below(ax, names))
