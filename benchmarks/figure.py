"""Draw how costs grow: one panel for each quantity that grows."""

from collections.abc import Mapping
from pathlib import Path

from benchmarks.cases.entry import BenchmarkCase, format_size
from benchmarks.growth import CostBySize, costs_by_size
from benchmarks.results import Results

from abstain.plots.style import MUTED, line_style, style_axes

N_COLUMNS = 2
#: Size of a panel in inches.
WIDTH, HEIGHT = 4.2, 3.1


def panels(
    results: Results, cases: Mapping[str, BenchmarkCase]
) -> dict[str, dict[str, CostBySize]]:
    """Return the measured series by the quantity that grows."""
    series_by_quantity = {
        case.growing: costs_by_size(case, results.cases[case.name].variants)
        for case in cases.values()
        if case.growing and case.name in results.cases
    }
    return {quantity: series for quantity, series in series_by_quantity.items() if series}


def draw(panels: Mapping[str, Mapping[str, CostBySize]], path: Path) -> None:
    """Write the figure."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    n_rows = -(-len(panels) // N_COLUMNS)
    figure = Figure(figsize=(N_COLUMNS * WIDTH, n_rows * HEIGHT), layout="constrained")
    axes = figure.subplots(n_rows, N_COLUMNS, squeeze=False).ravel()
    for ax, (quantity, series) in zip(axes, panels.items(), strict=False):
        _draw_panel(ax, quantity, series)
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    # The same results give the same file.
    with mpl.rc_context({"svg.hashsalt": "abstain"}):
        figure.savefig(path, metadata={"Date": None})


def _draw_panel(ax, quantity: str, series: Mapping[str, CostBySize]) -> None:
    for i, (name, line) in enumerate(series.items()):
        style = line_style(i)
        ax.plot(
            line.sizes, line.microseconds_per_unit, marker="o", markersize=4, label=name, **style
        )
    ax.set(xscale="log", yscale="log")
    # Only measured sizes have ticks; labels of minor ticks would overlap.
    sizes = sorted({size for line in series.values() for size in line.sizes})
    ax.set_xticks(sizes, [format_size(size) for size in sizes], fontsize="small")
    ax.minorticks_off()
    low, high = ax.get_ylim()
    # At least one decade, so that constant costs look constant; space above for the legend.
    middle = (low * high) ** 0.5
    low, high = min(low, middle / 10**0.5), max(high, middle * 10**0.5)
    ax.set_ylim(low, high * (high / low) ** (0.14 * len(series)))
    ax.set_title(f"Cost by number of {quantity}", loc="left", fontsize="medium")
    ax.set_xlabel(f"Number of {quantity}", color=MUTED)
    ax.set_ylabel("CPU microseconds per unit", color=MUTED)
    style_axes(ax)
    ax.legend(frameon=False, fontsize="x-small", loc="upper right")
