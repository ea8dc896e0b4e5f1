"""The picture of how costs grow: one panel for each thing that there is more of."""

from collections.abc import Mapping
from pathlib import Path

from benchmarks.cases.entry import Race, told
from benchmarks.growth import Line, lines
from benchmarks.results import Results

from abstain.plots.style import MUTED, line_style, style_axes

#: Panels beside each other, and the inches of one.
ACROSS, WIDTH, HEIGHT = 2, 4.2, 3.1


def panels(results: Results, races: Mapping[str, Race]) -> dict[str, dict[str, Line]]:
    """Return by what grows the lines of what is done, of what was measured."""
    found = {
        race.grows: lines(race, results.races[race.name].contenders)
        for race in races.values()
        if race.grows and race.name in results.races
    }
    return {grows: own for grows, own in found.items() if own}


def draw(found: Mapping[str, Mapping[str, Line]], path: Path) -> None:
    """Write the picture."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    down = -(-len(found) // ACROSS)
    figure = Figure(figsize=(ACROSS * WIDTH, down * HEIGHT), layout="constrained")
    axes = figure.subplots(down, ACROSS, squeeze=False).ravel()
    for ax, (grows, own) in zip(axes, found.items(), strict=False):
        _panel(ax, grows, own)
    for ax in axes[len(found) :]:
        ax.set_axis_off()
    # Nothing in the file changes but what is drawn.
    with mpl.rc_context({"svg.hashsalt": "abstain"}):
        figure.savefig(path, metadata={"Date": None})


def _panel(ax, grows: str, own: Mapping[str, Line]) -> None:
    for i, (name, line) in enumerate(own.items()):
        ax.plot(line.sizes, line.each, marker="o", markersize=4, label=name, **line_style(i))
    ax.set(xscale="log", yscale="log")
    # What was measured is named; the places between would overlap.
    sizes = sorted({size for line in own.values() for size in line.sizes})
    ax.set_xticks(sizes, [told(size) for size in sizes], fontsize="small")
    ax.minorticks_off()
    low, high = ax.get_ylim()
    # A decade at least, so that what is flat looks flat; room above the lines for their names.
    middle = (low * high) ** 0.5
    low, high = min(low, middle / 10**0.5), max(high, middle * 10**0.5)
    ax.set_ylim(low, high * (high / low) ** (0.14 * len(own)))
    ax.set_title(f"With more {grows}", loc="left", fontsize="medium")
    ax.set_xlabel(grows.capitalize(), color=MUTED)
    ax.set_ylabel("Microseconds for each", color=MUTED)
    style_axes(ax)
    ax.legend(frameon=False, fontsize="x-small", loc="upper right")
