"""Figures of the study: sweeps over thresholds, temperature scaling, label noise."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from abstain.plots.series import Series, SeriesDisplay
from abstain.typing import FloatArray
from abstain_bench.studies._tables import Row, group_rows
from abstain_bench.studies.cwsa.experiments import NOISE, SHARPENING
from abstain_bench.studies.cwsa.models import (
    QUANTITIES,
    TITLES,
    ProbabilisticPredictions,
    SimulatedModel,
)

_ORDER: Final = tuple(TITLES.values())

#: Number of thresholds in the figure of temperature scaling.
_N_THRESHOLDS: Final = 3


def make_figures(
    models: Sequence[SimulatedModel],
    datasets: Sequence[ProbabilisticPredictions],
    thresholds: FloatArray,
    experiment_rows: Mapping[str, Sequence[Row]],
) -> dict[str, Any]:
    """Return the figures by name."""
    return {
        "sweep": _sweep_display(models, datasets, thresholds),
        SHARPENING: _sharpening_display(experiment_rows[SHARPENING], thresholds),
        NOISE: _noise_display(experiment_rows[NOISE]),
    }


def _sweep_display(
    models: Sequence[SimulatedModel],
    datasets: Sequence[ProbabilisticPredictions],
    thresholds: FloatArray,
) -> SeriesDisplay:
    sweeps = {model.name: model.expected for model in models}
    sweeps |= {predictions.name: predictions.sweep(thresholds) for predictions in datasets}
    lines = tuple(
        _line(TITLES[name], thresholds, getattr(sweep, name), panel)
        for panel, sweep in sweeps.items()
        for name in reversed(QUANTITIES)
    )
    title = "Sweep over thresholds, for simulated models and predictions"
    return SeriesDisplay(
        lines, title, "Threshold", "Value", log_x=False, share_y=True, order=_ORDER
    )


def _sharpening_display(rows: Sequence[Row], thresholds: FloatArray) -> SeriesDisplay:
    """Plot CWSA and CWSA+ at three thresholds, and the calibration errors, by temperature."""
    indices = np.unique(np.linspace(0, thresholds.size - 1, _N_THRESHOLDS).round().astype(int))
    plotted_thresholds = thresholds[indices].tolist()
    rows_by_data = group_rows(rows, "data")
    lines = []
    for data, data_rows in rows_by_data.items():
        prefix = f"{data}, " if len(rows_by_data) > 1 else ""
        rows_by_threshold = group_rows(data_rows, "threshold")
        for threshold in plotted_thresholds:
            group = rows_by_threshold[threshold]
            panel = f"{prefix}threshold {threshold:.3g}"
            lines += [_temperature_line(TITLES[n], group, n, panel) for n in ("cwsa", "cwsa_plus")]
        group = rows_by_threshold[plotted_thresholds[0]]
        panel = f"{prefix}calibration errors (lower is better)"
        lines += [_temperature_line(name, group, name, panel) for name in ("Brier", "ECE")]
    return SeriesDisplay(
        tuple(lines),
        "The same predictions with higher (left) or lower (right) confidences",
        "Temperature",
        "Value",
        order=(*_ORDER[:2], "Brier", "ECE"),
    )


def _temperature_line(title: str, rows: Sequence[Row], column: str, panel: str) -> Series:
    temperatures = [row["temperature"] for row in rows]
    values = [np.nan if row[column] is None else row[column] for row in rows]
    return _line(title, temperatures, values, panel)


def _noise_display(rows: Sequence[Row]) -> SeriesDisplay:
    lines = []
    for data, group in group_rows(rows, "data").items():
        rates = [row["rate"] for row in group]
        for name in ("cwsa", "cwsa_plus", "selective_accuracy", "accuracy"):
            without_noise = group[0][name]
            if without_noise:
                shares = [np.nan if r[name] is None else r[name] / without_noise for r in group]
                lines.append(_line(TITLES[name], rates, shares, data))
    return SeriesDisplay(
        tuple(lines),
        "Metrics with replaced labels",
        "Share of replaced labels",
        "Value divided by the value without noise",
        log_x=False,
        share_y=True,
        order=_ORDER,
    )


def _line(name: str, x: Any, y: Any, panel: str) -> Series:
    return Series(name, tuple(map(float, x)), tuple(map(float, y)), panel=panel)
