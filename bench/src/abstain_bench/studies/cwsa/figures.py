"""The pictures of the study: sweeps, claims made bolder, labels replaced."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from abstain.plots.series import Series, SeriesDisplay
from abstain.typing import FloatArray
from abstain_bench.studies._tables import Row
from abstain_bench.studies.cwsa.answers import Answers
from abstain_bench.studies.cwsa.experiments import NOISE, SHARPENING, by_data
from abstain_bench.studies.cwsa.models import QUANTITIES, TITLES, Simulated, swept_quietly

_ORDER: Final = tuple(TITLES.values())


def figures_of(
    simulated: Sequence[Simulated],
    parts: Sequence[Answers],
    grid: FloatArray,
    found: Mapping[str, Sequence[Row]],
) -> dict[str, Any]:
    """Draw what was found."""
    return {
        "sweep": _sweeps(simulated, parts, grid),
        SHARPENING: _sharpening(found[SHARPENING], grid),
        NOISE: _noise(found[NOISE]),
    }


def _sweeps(
    simulated: Sequence[Simulated], parts: Sequence[Answers], grid: FloatArray
) -> SeriesDisplay:
    values: dict[str, Mapping[str, Any]] = {model.name: model.expected for model in simulated}
    for judged in parts:
        swept = swept_quietly(judged.confidence, judged.loss, grid)
        values[judged.name] = {name: getattr(swept, name) for name in QUANTITIES}
    lines = tuple(
        _line(TITLES[name], grid, found[name], panel)
        for panel, found in values.items()
        for name in reversed(QUANTITIES)
    )
    title = "Sweep over thresholds, of simulated models and of predictions"
    return SeriesDisplay(
        lines, title, "Threshold", "Value", log_x=False, share_y=True, order=_ORDER
    )


def _sharpening(rows: Sequence[Row], grid: FloatArray) -> SeriesDisplay:
    """Draw CWSA and CWSA+ at three thresholds, and what tells honest claims."""
    shown = grid[np.unique(np.linspace(0, grid.size - 1, 3).round().astype(int))].tolist()
    data_sets = by_data(rows)
    lines = []
    for data, own in data_sets.items():
        prefix = f"{data}, " if len(data_sets) > 1 else ""
        for threshold in shown:
            mine = [row for row in own if row["threshold"] == threshold]
            x = [row["temperature"] for row in mine]
            for name in ("cwsa", "cwsa_plus"):
                y = [np.nan if row[name] is None else row[name] for row in mine]
                lines.append(_line(TITLES[name], x, y, f"{prefix}threshold {threshold:.3g}"))
        mine = [row for row in own if row["threshold"] == shown[0]]
        for name in ("Brier", "ECE"):
            x, y = ([row[column] for row in mine] for column in ("temperature", name))
            lines.append(_line(name, x, y, f"{prefix}errors of the claims (lower is better)"))
    title = "The same answers, claimed more boldly (left) or more shyly (right)"
    return SeriesDisplay(
        tuple(lines), title, "Temperature", "Value", order=(*_ORDER[:2], "Brier", "ECE")
    )


def _noise(rows: Sequence[Row]) -> SeriesDisplay:
    lines = []
    for data in dict.fromkeys(row["data"] for row in rows):
        mine = [row for row in rows if row["data"] == data]
        x = [row["rate"] for row in mine]
        for name in ("cwsa", "cwsa_plus", "selective_accuracy", "right"):
            first = mine[0][name]
            if first:
                y = [np.nan if row[name] is None else row[name] / first for row in mine]
                lines.append(_line(TITLES[name], x, y, data))
    title = "What is left of each number when labels are replaced"
    axes = ("Share of labels replaced", "As a share of the value without")
    return SeriesDisplay(tuple(lines), title, *axes, log_x=False, share_y=True, order=_ORDER)


def _line(name: str, x: Any, y: Any, panel: str) -> Series:
    return Series(name, tuple(map(float, x)), tuple(map(float, y)), panel=panel)
