"""Names on figures: cut in the middle where long, never two alike, below the axes where many."""

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

#: Characters of a name on a figure.
MAX_LABEL_LENGTH = 26

#: More names than this are drawn as one: matplotlib lays out each label of a tick a dozen times.
_MAX_SEPARATE_LABELS = 25

# The width of a letter of 10 points, in inches; most are narrower.
_LETTER_WIDTH = 0.086


def unique_labels(names: Sequence[str], width: int = MAX_LABEL_LENGTH) -> dict[str, str]:
    """Return what is written for each name.

    Examples
    --------
    >>> labels(["msr", "a name too long, first", "a name too long, fast"], 9)
    {'msr': 'msr', 'a name too long, first': 'a na…irst', 'a name too long, fast': 'a na…fast'}
    >>> labels(["abcdefgh", "ab--cdgh"], 5)
    {'abcdefgh': 'ab…gh', 'ab--cdgh': 'ab…gh (2)'}
    """
    label_by_name: dict[str, str] = {}
    for name in dict.fromkeys(names):
        text = _shorten(escape_control_characters(name), width)
        used_labels = set(label_by_name.values())
        candidates = (f"{text} ({i})" if i > 1 else text for i in range(1, len(names) + 2))
        label_by_name[name] = next(t for t in candidates if t not in used_labels)
    return label_by_name


def _shorten(text: str, width: int) -> str:
    if len(text) <= width:
        return text
    n_end = (width - 1) // 2
    return f"{text[: width - 1 - n_end]}…{text[len(text) - n_end :]}"


def draw_text(ax: "Axes", x: float, y: float, text: str, **style: Any) -> "Text":
    """Write words of the caller on axes: nothing in them is read as a formula."""
    return ax.text(
        x, y, escape_control_characters(text), **{"parse_math": False, "color": INK, **style}
    )


def draw_texts(ax: "Axes", position_by_text: Mapping[str, tuple[float, float]], **style: Any) -> None:
    """Write words of the caller, each at its place: where there are many, all as one."""
    if len(position_by_text) <= _MAX_SEPARATE_LABELS:
        for text, position in position_by_text.items():
            draw_text(ax, *position, text, **style)
    else:
        _draw_texts_as_one(
            ax, [*map(escape_control_characters, position_by_text)], [*position_by_text.values()], ax.transData, **style
        )


def set_tick_labels(
    ax: "Axes", side: str, names: Iterable[str], positions: Sequence[float], **style: Any
) -> None:
    """Put names at ticks of the x or y axis."""
    axis = ax.xaxis if side == "x" else ax.yaxis
    axis.set_ticks(positions)
    axis.set_ticklabels(list(names), **{"parse_math": False, "color": INK, **style})


def set_many_tick_labels(
    ax: "Axes", side: str, names: Sequence[str], positions: Sequence[float], **style: Any
) -> None:
    """Do the same of names that may be hundreds, which then are no labels of ticks."""
    if len(names) <= _MAX_SEPARATE_LABELS:
        set_tick_labels(ax, side, names, positions, **style)
        return
    axis = ax.xaxis if side == "x" else ax.yaxis
    axis.set_ticks([])
    # The title of the axis does not see the names.
    axis.labelpad += _draw_tick_labels(ax, side, names, positions, style)


def _draw_tick_labels(
    ax: "Axes", side: str, names: Sequence[str], positions: Sequence[float], style: dict[str, Any]
) -> float:
    """Put many names where those of ticks would be; return how far they reach, in points."""
    from matplotlib import rcParams
    from matplotlib.transforms import ScaledTranslation

    figure: Any = ax.figure
    settings: Any = rcParams
    offset = -float(settings[f"{side}tick.major.pad"]) / 72
    if side == "x":
        at, near = ax.get_xaxis_transform(), ScaledTranslation(0, offset, figure.dpi_scale_trans)
        points, aligned = [(place, 0.0) for place in positions], {"ha": "center", "va": "top"}
    else:
        at, near = ax.get_yaxis_transform(), ScaledTranslation(offset, 0, figure.dpi_scale_trans)
        points, aligned = [(0.0, place) for place in positions], {"ha": "right"}
        aligned["va"] = "center_baseline"
    size = settings[f"{side}tick.labelsize"]
    box = _draw_texts_as_one(ax, names, points, at + near, **{"fontsize": size, **aligned, **style})
    return float(72 * (box.height if side == "x" else box.width) / figure.dpi) - 72 * offset


def _draw_texts_as_one(
    ax: "Axes",
    texts: Sequence[str],
    positions: Sequence[tuple[float, float]],
    transform: "Transform",
    **style: Any,
) -> "Bbox":
    """Write many words as one; return the box around them."""
    from abstain.plots.texts import TextArtist

    artist = TextArtist(texts, np.array(positions), transform, **{"color": INK, **style})
    ax.add_artist(artist)
    artist.set_clip_on(False)
    return artist.get_window_extent()


def set_figure_title(ax: "Axes", title: str) -> None:
    """Write the title of a figure, at the left, broken into lines that fit.

    A figure of its own has it across its whole width, axes among others above themselves.
    """
    figure: Any = ax.figure
    is_only_axes = len(figure.axes) == 1
    box = figure.bbox if is_only_axes else ax.bbox
    inches = box.width / figure.dpi
    lines = [
        wrap(escape_control_characters(line), max(int(inches / _LETTER_WIDTH), 12))
        for line in title.split("\n")
    ]
    text = "\n".join(part for parts in lines for part in parts)
    style: dict[str, Any] = {"fontsize": 10, "color": INK, "parse_math": False, "ha": "left"}
    if is_only_axes:
        figure.suptitle(text, x=0.01, **style)
    else:
        ax.set_title(text, loc="left", **style)


def label_width(names: Iterable[str], width: int = MAX_LABEL_LENGTH) -> float:
    """Return how wide the names are on a figure, in inches."""
    return _LETTER_WIDTH * max(
        (min(len(escape_control_characters(name)), width) for name in names), default=0
    )


def hide_frame(ax: "Axes") -> None:
    """Take the frame and the marks of the ticks away."""
    ax.spines[:].set_visible(False)
    ax.tick_params(colors=MUTED, length=0)
    ax.xaxis.label.set_color(INK)
    ax.yaxis.label.set_color(INK)


def draw_rule(ax: "Axes", x: Sequence[float], y: Sequence[float], **style: Any) -> None:
    """Draw a thin line behind everything."""
    ax.plot(x, y, **{"color": GRID, "linewidth": 0.8, "zorder": 0, **style})


def draw_squares(ax: "Axes", positions: Sequence[tuple[int, int]], **style: Any) -> None:
    """Draw squares of side 1 around some places as one patch of few lines.

    Neighbors in a row are one rectangle with lines across it, which go on in the rows below.
    """
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    if not positions:
        return
    at = np.array(positions)
    is_square = np.zeros(at.max(axis=0) + 3, np.bool_)
    is_square[tuple(at.T + 1)] = True
    left, row, right = _find_runs(is_square)
    rectangles = [[left, row], [left, row + 1], [right, row + 1], [right, row], [left, row]]
    # A line stands between a square and the next one, once for either as the level ones do.
    top, line, bottom = _find_runs((is_square[:-1] & is_square[1:]).T)
    separators = [[line + 1, top], [line + 1, bottom]] * 2
    # The places were moved by 1, and a square begins half before its own.
    points = [np.array(own, np.float64).transpose(2, 0, 1) - 1.5 for own in (rectangles, separators)]
    codes = [Path.MOVETO, *[Path.LINETO] * 3, Path.CLOSEPOLY] * left.size
    codes += [Path.MOVETO, Path.LINETO] * 2 * top.size
    path = Path(np.concatenate([own.reshape(-1, 2) for own in points]), codes)
    # Alone each square would lie on whole dots by itself.
    ax.add_artist(PathPatch(path, **{"snap": True, **style}))


def _find_runs(mask: BoolArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return where each run of what is true begins, its place on the second axis, and its end.

    Runs go along the first axis, at both ends of which nothing is true.
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
    """Draw level lines as one, from each start to each end at each place."""
    x = [number for both in zip(starts, ends, strict=True) for number in (*both, math.nan)]
    y = [number for place in positions for number in (place, place, math.nan)]
    draw_rule(ax, x, y, **style)


#: More curves than this are named below the axes, where no name can lie over a curve.
_MAX_NAMES_INSIDE = 4

# In inches: the line beside a name and the gap behind it, a row, and what is left of the axes
# and their title until the first row.
_HANDLE_WIDTH, _ROW_HEIGHT, _LEGEND_OFFSET = 0.5, 0.19, 0.52

#: The share of a figure's width that its axes have.
_AXES_WIDTH_SHARE = 0.85


def legend_height(names: Iterable[str], width: float) -> float:
    """Return by how much a figure of that width must be higher for the names below its axes.

    Examples
    --------
    >>> legend_height(["a", "b"], 5.6), round(legend_height("abcdefgh", 5.6), 2)
    (0.0, 0.34)
    """
    name_list = list(names)
    if len(name_list) <= _MAX_NAMES_INSIDE:
        return 0.0
    return 0.15 + _ROW_HEIGHT * math.ceil(len(name_list) / _n_columns(name_list, _AXES_WIDTH_SHARE * width))


def add_curve_legend(ax: "Axes") -> None:
    """Put names into the legend as they are: matplotlib hides "_x" and sets "$x$" as math."""
    curves = [line for line in ax.get_lines() if line.get_gid() == CURVE_ID]
    other_handles = [h for h in ax.get_legend_handles_labels()[0] if h not in curves]
    handles = [*curves, *other_handles]
    names = [escape_control_characters(str(handle.get_label())) for handle in handles]
    legend = add_legend(ax, handles, names, **_legend_position(ax, names))
    for text, handle in zip(legend.get_texts(), handles, strict=True):
        if handle in curves:
            # A curve that is hidden takes its name along.
            text.set_gid(CURVE_ID)
    for legend_handle, handle in zip(legend.legend_handles, handles, strict=True):
        if handle in curves and legend_handle is not None:
            legend_handle.set_gid(CURVE_ID)


def add_legend(
    parent: "Axes | Figure", handles: Sequence[Any], names: Sequence[str], **style: Any
) -> "Legend":
    """Name what is drawn, by words of the caller in which nothing is read as a formula."""
    placeholders = ["name"] * len(handles)
    legend = parent.legend(handles, placeholders, frameon=False, labelcolor=INK, **style)
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_parse_math(False)
        text.set_text(escape_control_characters(name))
    return legend


def _legend_position(ax: "Axes", names: list[str]) -> dict[str, Any]:
    """Return where many names stand: below the axes."""
    if len(names) <= _MAX_NAMES_INSIDE:
        return {}
    from matplotlib.transforms import ScaledTranslation

    figure: Any = ax.figure
    down = ScaledTranslation(0, -_LEGEND_OFFSET, figure.dpi_scale_trans)
    return {
        "loc": "upper left",
        "bbox_to_anchor": (0, 0),
        "bbox_transform": ax.transAxes + down,
        "ncols": _n_columns(names, ax.bbox.width / figure.dpi),
        "fontsize": 9,
        "handlelength": 1.8,
        "columnspacing": 1.2,
        "labelspacing": 0.3,
        "borderpad": 0,
        "borderaxespad": 0,
    }


def _n_columns(names: list[str], width: float) -> int:
    return max(int(width / (_HANDLE_WIDTH + 0.8 * label_width(names))), 1)
