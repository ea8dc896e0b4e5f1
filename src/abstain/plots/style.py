"""Colors, line styles and axes of figures.

Global settings of matplotlib are not changed.
"""

import math
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from abstain.inference.intervals import Interval

#: Keyword arguments of a matplotlib function.
Style: TypeAlias = dict[str, Any]

# Colors of Okabe and Ito (2008), "Color universal design". Yellow is omitted, because it is too
# light for lines. The colors are darker on white and lighter on black, for a contrast of at least
# 3 to 1.
LIGHT = ("#0b62a8", "#c14d00", "#00795a", "#a8488b", "#6b6b00", "#2b8fbf", "#8a5a00", "#5b5b66")
DARK = ("#6db3ef", "#f58b3c", "#35c9a0", "#e59ac8", "#d6d05a", "#8fd3f5", "#d9a95b", "#b9b9c6")

# Each repetition of the colors has other dashes, so that 8 x 4 scores differ.
_DASHES = ([1, 0], [7, 3], [2, 2], [9, 3, 2, 3])


def css_variable(index: int) -> str:
    """Return the CSS variable with the color of a score."""
    return f"var(--score-{index % len(LIGHT)})"


def dash_pattern(index: int) -> list[int]:
    """Return the dash pattern of a score.

    Neighboring scores have different patterns.
    """
    return _DASHES[(index + index // len(LIGHT)) % len(_DASHES)]


#: Axis titles of risk, by kind of risk, and of coverage.
RISK_TITLES = {
    "selective": "Selective risk (mean loss of accepted samples)",
    "generalized": "Generalized risk (accepted loss per sample)",
}
COVERAGE_TITLE = "Coverage (share of accepted samples)"

#: Axis titles of a reliability diagram.
RELIABILITY_TITLES = ("Mean confidence in the bin", "Accuracy in the bin")

#: Id that distinguishes curves from reference lines.
CURVE_ID = "abstain-curve"

INK, MUTED, GRID, PAPER = "#1d2329", "#5a6570", "#e2e6e9", "#ffffff"


def new_axes(width: float = 5.6, height: float = 4.2) -> "Axes":
    """Create a figure with one set of axes in the current backend."""
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(width, height), layout="constrained")
    return ax


def axes_without_window(width: float, height: float) -> "Axes":
    """Create a figure without a window.

    The figure needs no call of ``plt.close``.
    """
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained").subplots()


def line_style(index: int) -> Style:
    """Return the color and the dash pattern of a score."""
    pattern = dash_pattern(index)
    solid = pattern[1] == 0
    linestyle: Any = "-" if solid else (0, tuple(pattern))
    return {"color": LIGHT[index % len(LIGHT)], "linestyle": linestyle, "linewidth": 1.6}


def reference_style() -> Style:
    """Return the style of reference lines."""
    return {"color": MUTED, "linestyle": (0, (1, 3)), "linewidth": 1.0, "zorder": 1}


def style_axes(ax: "Axes") -> None:
    """Apply the style for figures of curves to the axes."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(GRID)
    ax.grid(visible=True, color=GRID, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.tick_params(colors=MUTED, length=0)
    ax.xaxis.label.set_color(INK)
    ax.yaxis.label.set_color(INK)


def error_bar(value: float, interval: "Interval") -> list[list[float]] | None:
    """Return the distances between a value and its bounds, for ``Axes.errorbar``."""
    if not (math.isfinite(interval.low) and math.isfinite(interval.high)):
        return None
    return [[max(value - interval.low, 0.0)], [max(interval.high - value, 0.0)]]
