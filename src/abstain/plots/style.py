"""How the figures look, without touching matplotlib's global settings."""

from typing import TYPE_CHECKING, Any

from abstain.plots.palette import LIGHT, dash

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Tells the curves from the reference lines among the lines of the axes.
CURVE = "abstain-curve"

INK, MUTED, GRID, PAPER = "#1d2329", "#5a6570", "#e2e6e9", "#ffffff"


def new_axes(width: float = 5.6, height: float = 4.2) -> "Axes":
    """Open a figure of one set of axes, in the backend that is in use."""
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(width, height), layout="constrained")
    return ax


def lone_axes(width: float, height: float) -> "Axes":
    """Make a figure that no window shows and that ends with its last use."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained").subplots()


def line_style(index: int) -> dict[str, Any]:
    """Return the color and dashes of a score, told apart without color vision."""
    pattern = dash(index)
    solid = pattern[1] == 0
    linestyle: Any = "-" if solid else (0, tuple(pattern))
    return {"color": LIGHT[index % len(LIGHT)], "linestyle": linestyle, "linewidth": 1.6}


def reference_style() -> dict[str, Any]:
    """Return the style of what is known without looking at the data."""
    return {"color": MUTED, "linestyle": (0, (1, 3)), "linewidth": 1.0, "zorder": 1}


def finish(ax: "Axes") -> None:
    """Calm the axes down."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(GRID)
    ax.grid(visible=True, color=GRID, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.tick_params(colors=MUTED, length=0)
    ax.xaxis.label.set_color(INK)
    ax.yaxis.label.set_color(INK)
