"""The picture of how costs grow: microseconds for each row or sample, by their number."""

from collections.abc import Mapping
from pathlib import Path

from benchmarks.doors.entry import Race
from benchmarks.results import Results

from abstain.plots.style import finish, line_style, lone_axes

#: What of the catalogue is drawn: races in which rows or samples grow.
DRAWN = ("samples", "rows")


def series(results: Results, races: Mapping[str, Race]) -> dict[str, tuple[list, list]]:
    """Return sizes, and microseconds of the processor for each of them, by what is done."""
    lines: dict[str, tuple[list, list]] = {}
    for race in races.values():
        if race.grows not in DRAWN or race.name not in results.races:
            continue
        for door in race.doors:
            found = results.races[race.name].doors.get(door.key)
            if found is not None and not found.reason:
                sizes, costs = lines.setdefault(door.series, ([], []))
                sizes.append(door.size)
                costs.append(1e6 * found.processor / door.size)
    return lines


def draw(lines: Mapping[str, tuple[list, list]], path: Path) -> None:
    """Write the picture."""
    import matplotlib as mpl

    ax = lone_axes(7.2, 4.2)
    for i, (name, (sizes, costs)) in enumerate(lines.items()):
        ax.plot(sizes, costs, marker="o", markersize=4, label=name, **line_style(i))
    ax.set(xscale="log", yscale="log")
    ax.set_xlabel("Rows of a file, or samples of arrays")
    ax.set_ylabel("Microseconds of the processor for each")
    finish(ax)
    ax.legend(frameon=False, fontsize="small")
    # Nothing in the file changes but what is drawn.
    with mpl.rc_context({"svg.hashsalt": "abstain"}):
        ax.figure.savefig(path, metadata={"Date": None})
