"""Names on figures: cut in the middle where long, never two alike, below the axes where many."""

import math
from collections.abc import Iterable, Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain.plots.formatting import escape_control_characters
from abstain.plots.style import CURVE, GRID, INK, MUTED
from abstain.typing import BoolArray, IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.text import Text
    from matplotlib.transforms import Bbox, Transform

#: Characters of a name on a figure.
WIDTH = 26

#: More names than this are drawn as one: matplotlib lays out each label of a tick a dozen times.
_FEW = 25

# The width of a letter of 10 points, in inches; most are narrower.
_LETTER = 0.086


def labels(names: Sequence[str], width: int = WIDTH) -> dict[str, str]:
    """Return what is written for each name.

    Examples
    --------
    >>> labels(["msr", "a name too long, first", "a name too long, fast"], 9)
    {'msr': 'msr', 'a name too long, first': 'a na…irst', 'a name too long, fast': 'a na…fast'}
    >>> labels(["abcdefgh", "ab--cdgh"], 5)
    {'abcdefgh': 'ab…gh', 'ab--cdgh': 'ab…gh (2)'}
    """
    written: dict[str, str] = {}
    for name in dict.fromkeys(names):
        text = _cut(escape_control_characters(name), width)
        others = set(written.values())
        tries = (f"{text} ({i})" if i > 1 else text for i in range(1, len(names) + 2))
        written[name] = next(t for t in tries if t not in others)
    return written


def _cut(text: str, width: int) -> str:
    if len(text) <= width:
        return text
    end = (width - 1) // 2
    return f"{text[: width - 1 - end]}…{text[len(text) - end :]}"


def write(ax: "Axes", x: float, y: float, words: str, **style: Any) -> "Text":
    """Write words of the caller on axes: nothing in them is read as a formula."""
    return ax.text(
        x, y, escape_control_characters(words), **{"parse_math": False, "color": INK, **style}
    )


def write_all(ax: "Axes", words: Mapping[str, tuple[float, float]], **style: Any) -> None:
    """Write words of the caller, each at its place: where there are many, all as one."""
    if len(words) <= _FEW:
        for said, place in words.items():
            write(ax, *place, said, **style)
    else:
        _letter(
            ax, [*map(escape_control_characters, words)], [*words.values()], ax.transData, **style
        )


def name_ticks(
    ax: "Axes", side: str, names: Iterable[str], places: Sequence[float], **style: Any
) -> None:
    """Put names at ticks of the x or y axis."""
    axis = ax.xaxis if side == "x" else ax.yaxis
    axis.set_ticks(places)
    axis.set_ticklabels(list(names), **{"parse_math": False, "color": INK, **style})


def name_every(
    ax: "Axes", side: str, names: Sequence[str], places: Sequence[float], **style: Any
) -> None:
    """Do the same of names that may be hundreds, which then are no labels of ticks."""
    if len(names) <= _FEW:
        name_ticks(ax, side, names, places, **style)
        return
    axis = ax.xaxis if side == "x" else ax.yaxis
    axis.set_ticks([])
    # The title of the axis does not see the names.
    axis.labelpad += _name_all(ax, side, names, places, style)


def _name_all(
    ax: "Axes", side: str, names: Sequence[str], places: Sequence[float], style: dict[str, Any]
) -> float:
    """Put many names where those of ticks would be; return how far they reach, in points."""
    from matplotlib import rcParams
    from matplotlib.transforms import ScaledTranslation

    figure: Any = ax.figure
    known: Any = rcParams
    away = -float(known[f"{side}tick.major.pad"]) / 72
    if side == "x":
        at, near = ax.get_xaxis_transform(), ScaledTranslation(0, away, figure.dpi_scale_trans)
        points, aligned = [(place, 0.0) for place in places], {"ha": "center", "va": "top"}
    else:
        at, near = ax.get_yaxis_transform(), ScaledTranslation(away, 0, figure.dpi_scale_trans)
        points, aligned = [(0.0, place) for place in places], {"ha": "right"}
        aligned["va"] = "center_baseline"
    size = known[f"{side}tick.labelsize"]
    box = _letter(ax, names, points, at + near, **{"fontsize": size, **aligned, **style})
    return float(72 * (box.height if side == "x" else box.width) / figure.dpi) - 72 * away


def _letter(
    ax: "Axes",
    words: Sequence[str],
    places: Sequence[tuple[float, float]],
    transform: "Transform",
    **style: Any,
) -> "Bbox":
    """Write many words as one; return the box around them."""
    from abstain.plots.texts import Texts

    every = Texts(words, np.array(places), transform, **{"color": INK, **style})
    ax.add_artist(every)
    every.set_clip_on(False)
    return every.get_window_extent()


def head(ax: "Axes", words: str) -> None:
    """Write the title of a figure, at the left, broken into lines that fit.

    A figure of its own has it across its whole width, axes among others above themselves.
    """
    figure: Any = ax.figure
    alone = len(figure.axes) == 1
    box = figure.bbox if alone else ax.bbox
    inches = box.width / figure.dpi
    lines = [
        wrap(escape_control_characters(line), max(int(inches / _LETTER), 12))
        for line in words.split("\n")
    ]
    text = "\n".join(part for parts in lines for part in parts)
    style: dict[str, Any] = {"fontsize": 10, "color": INK, "parse_math": False, "ha": "left"}
    if alone:
        figure.suptitle(text, x=0.01, **style)
    else:
        ax.set_title(text, loc="left", **style)


def room(names: Iterable[str], width: int = WIDTH) -> float:
    """Return how wide the names are on a figure, in inches."""
    return _LETTER * max(
        (min(len(escape_control_characters(name)), width) for name in names), default=0
    )


def calm(ax: "Axes") -> None:
    """Take the frame and the marks of the ticks away."""
    ax.spines[:].set_visible(False)
    ax.tick_params(colors=MUTED, length=0)
    ax.xaxis.label.set_color(INK)
    ax.yaxis.label.set_color(INK)


def rule(ax: "Axes", x: Sequence[float], y: Sequence[float], **style: Any) -> None:
    """Draw a thin line behind everything."""
    ax.plot(x, y, **{"color": GRID, "linewidth": 0.8, "zorder": 0, **style})


def squares(ax: "Axes", places: Sequence[tuple[int, int]], **style: Any) -> None:
    """Draw squares of side 1 around some places as one patch of few lines.

    Neighbors in a row are one rectangle with lines across it, which go on in the rows below.
    """
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    if not places:
        return
    at = np.array(places)
    there = np.zeros(at.max(axis=0) + 3, np.bool_)
    there[tuple(at.T + 1)] = True
    left, row, right = _runs(there)
    sides = [[left, row], [left, row + 1], [right, row + 1], [right, row], [left, row]]
    # A line stands between a square and the next one, once for either as the level ones do.
    top, line, bottom = _runs((there[:-1] & there[1:]).T)
    across = [[line + 1, top], [line + 1, bottom]] * 2
    # The places were moved by 1, and a square begins half before its own.
    points = [np.array(own, np.float64).transpose(2, 0, 1) - 1.5 for own in (sides, across)]
    codes = [Path.MOVETO, *[Path.LINETO] * 3, Path.CLOSEPOLY] * left.size
    codes += [Path.MOVETO, Path.LINETO] * 2 * top.size
    path = Path(np.concatenate([own.reshape(-1, 2) for own in points]), codes)
    # Alone each square would lie on whole dots by itself.
    ax.add_artist(PathPatch(path, **{"snap": True, **style}))


def _runs(there: BoolArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return where each run of what is true begins, its place on the second axis, and its end.

    Runs go along the first axis, at both ends of which nothing is true.
    """
    turns = np.diff(there.T.astype(np.int8), axis=1)
    place, starts = np.nonzero(turns > 0)
    ends = np.nonzero(turns < 0)[1]
    return starts + 1, place, ends + 1


def rules(
    ax: "Axes",
    starts: Sequence[float],
    ends: Sequence[float],
    places: Sequence[float],
    **style: Any,
) -> None:
    """Draw level lines as one, from each start to each end at each place."""
    x = [number for both in zip(starts, ends, strict=True) for number in (*both, math.nan)]
    y = [number for place in places for number in (place, place, math.nan)]
    rule(ax, x, y, **style)


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
    names = [escape_control_characters(str(handle.get_label())) for handle in handles]
    legend = name_marks(ax, handles, names, **_below(ax, names))
    for text, handle in zip(legend.get_texts(), handles, strict=True):
        if handle in ours:
            # A curve that is hidden takes its name along.
            text.set_gid(CURVE)
    for drawn, handle in zip(legend.legend_handles, handles, strict=True):
        if handle in ours and drawn is not None:
            drawn.set_gid(CURVE)


def name_marks(
    parent: "Axes | Figure", handles: Sequence[Any], names: Sequence[str], **style: Any
) -> "Legend":
    """Name what is drawn, by words of the caller in which nothing is read as a formula."""
    blank = ["name"] * len(handles)
    legend = parent.legend(handles, blank, frameon=False, labelcolor=INK, **style)
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_parse_math(False)
        text.set_text(escape_control_characters(name))
    return legend


def _below(ax: "Axes", names: list[str]) -> dict[str, Any]:
    """Return where many names stand: below the axes."""
    if len(names) <= _INSIDE:
        return {}
    from matplotlib.transforms import ScaledTranslation

    figure: Any = ax.figure
    down = ScaledTranslation(0, -_BELOW, figure.dpi_scale_trans)
    return {
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


def _columns(names: list[str], width: float) -> int:
    return max(int(width / (_HANDLE + 0.8 * room(names))), 1)
