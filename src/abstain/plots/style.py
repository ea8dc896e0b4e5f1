"""How the figures look: colors, dashes and axes, without touching matplotlib's global settings."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito (2008), "Color universal design", with a yellow too pale for lines on white left
# out; darkened on white and lightened on black to a contrast of at least 3 to 1.
LIGHT = ("#0b62a8", "#c14d00", "#00795a", "#a8488b", "#6b6b00", "#2b8fbf", "#8a5a00", "#5b5b66")
DARK = ("#6db3ef", "#f58b3c", "#35c9a0", "#e59ac8", "#d6d05a", "#8fd3f5", "#d9a95b", "#b9b9c6")

# After one round of colors the dashes change, so 8 x 4 scores look different.
_DASHES = ([1, 0], [7, 3], [2, 2], [9, 3, 2, 3])


def css_variable(index: int) -> str:
    """Return the CSS variable that holds the color of a score."""
    return f"var(--score-{index % len(LIGHT)})"


def dash_pattern(index: int) -> list[int]:
    """Return the dash pattern of a score; neighbors differ as well as rounds of colors."""
    return _DASHES[(index + index // len(LIGHT)) % len(_DASHES)]


#: The titles of the axes of risk and coverage, by the kind of risk.
RISK_TITLES = {
    "selective": "Selective risk (mean loss of the accepted)",
    "generalized": "Generalized risk (accepted loss per sample)",
}
COVERAGE_TITLE = "Coverage (share accepted)"

#: Those of a reliability diagram.
RELIABILITY_TITLES = ("Mean confidence in the bin", "Share right in the bin")

#: Tells the curves from the reference lines among the lines of the axes.
CURVE_ID = "abstain-curve"

INK, MUTED, GRID, PAPER = "#1d2329", "#5a6570", "#e2e6e9", "#ffffff"


def new_axes(width: float = 5.6, height: float = 4.2) -> "Axes":
    """Open a figure of one set of axes, in the backend that is in use."""
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(width, height), layout="constrained")
    return ax


def axes_without_window(width: float, height: float) -> "Axes":
    """Make a figure that no window shows and that ends with its last use."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained").subplots()


def line_style(index: int) -> dict[str, Any]:
    """Return the color and dashes of a score, told apart without color vision."""
    pattern = dash_pattern(index)
    solid = pattern[1] == 0
    linestyle: Any = "-" if solid else (0, tuple(pattern))
    return {"color": LIGHT[index % len(LIGHT)], "linestyle": linestyle, "linewidth": 1.6}


def reference_style() -> dict[str, Any]:
    """Return the style of what is known without looking at the data."""
    return {"color": MUTED, "linestyle": (0, (1, 3)), "linewidth": 1.0, "zorder": 1}


def style_axes(ax: "Axes") -> None:
    """Calm the axes down."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(GRID)
    ax.grid(visible=True, color=GRID, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.tick_params(colors=MUTED, length=0)
    ax.xaxis.label.set_color(INK)
    ax.yaxis.label.set_color(INK)
