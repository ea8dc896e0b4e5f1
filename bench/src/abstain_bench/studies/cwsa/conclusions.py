"""Create the figures and conclusions of the study on CWSA."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from abstain.plots.series import Series, SeriesDisplay
from abstain.typing import FloatArray
from abstain_bench.studies._display import Row, column_series, group_rows
from abstain_bench.studies.cwsa.claims import FAILS, HOLDS, OPEN, PARTLY, Claim, verdict_by_claim
from abstain_bench.studies.cwsa.experiments import (
    COMPARISON,
    NOISE,
    SHARPENING,
    SHIFT,
    best_temperatures,
)
from abstain_bench.studies.cwsa.models import (
    CALIBRATED,
    OVERCONFIDENT,
    OVERCONFIDENT_TEXT,
    PERFECT_TEXT,
    QUANTITIES,
    TITLES,
    ProbabilisticPredictions,
    SimulatedModel,
)

_ORDER: Final = tuple(TITLES.values())

#: Number of thresholds in the figure "sharpening".
_N_THRESHOLDS: Final = 3


def make_figures(
    models: Sequence[SimulatedModel],
    datasets: Sequence[ProbabilisticPredictions],
    thresholds: FloatArray,
    experiment_rows: Mapping[str, Sequence[Row]],
) -> dict[str, Any]:
    """Create all figures of the study by name."""
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
    """Plot metrics against the threshold for each simulated model and data set."""
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
    """Plot CWSA and CWSA+ at three thresholds and two calibration errors against temperature."""
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
            lines += [
                column_series(TITLES[name], group, "temperature", name, panel=panel)
                for name in ("cwsa", "cwsa_plus")
            ]
        group = rows_by_threshold[plotted_thresholds[0]]
        panel = f"{prefix}calibration errors (lower is better)"
        lines += [
            column_series(name, group, "temperature", name, panel=panel)
            for name in ("Brier", "ECE")
        ]
    return SeriesDisplay(
        tuple(lines),
        "The same predictions with higher (left) or lower (right) confidences",
        "Temperature",
        "Value",
        order=(*_ORDER[:2], "Brier", "ECE"),
    )


def _noise_display(rows: Sequence[Row]) -> SeriesDisplay:
    """Plot metrics against the fraction of noisy labels, relative to no noise."""
    lines = []
    for data, group in group_rows(rows, "data").items():
        rates = [row["rate"] for row in group]
        for name in ("cwsa", "cwsa_plus", "selective_accuracy", "accuracy"):
            without_noise = group[0][name]
            if not without_noise:
                continue
            shares = [np.nan if row[name] is None else row[name] / without_noise for row in group]
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


def conclude(
    claims: Sequence[Claim],
    models: Sequence[SimulatedModel],
    experiment_rows: Mapping[str, Sequence[Row]],
) -> Iterator[str]:
    """Yield the conclusions, the most important first."""
    for data, rows in group_rows(experiment_rows[SHARPENING], "data").items():
        yield _conclude_temperatures(data, rows)
    yield _INCENTIVE
    yield _count_verdicts(claims)
    yield from _conclude_ranking({model.name: model for model in models})
    yield _compare_with_closed_forms(models)
    if experiment_rows[SHIFT]:
        yield _conclude_shift(experiment_rows[SHIFT])
    if experiment_rows[COMPARISON]:
        yield _conclude_comparison(experiment_rows[COMPARISON])


_INCENTIVE: Final = (
    "A sample that is correct with probability q adds (2q - 1) times its weight to CWSA in "
    "expectation, so a confidence of 1 is optimal if q is above 1/2."
)


def _count_verdicts(claims: Sequence[Claim]) -> str:
    """Report how many claims have each verdict."""
    verdicts = list(verdict_by_claim(claims).values())
    counts = {verdict: verdicts.count(verdict) for verdict in (HOLDS, PARTLY, FAILS, OPEN)}
    undecided = f"; {counts[OPEN]} cannot be decided with these data" if counts[OPEN] else ""
    return (
        f"Of {len(verdicts)} claims, {counts[HOLDS]} hold, {counts[PARTLY]} hold in part (in some "
        f"readings, at some thresholds or on some data) and {counts[FAILS]} fail{undecided}."
    )


def _conclude_temperatures(data: str, rows: Sequence[Row]) -> str:
    """Compare the optimal temperatures of CWSA and CWSA+ with that of the Brier score."""
    temperatures = list(best_temperatures(rows))
    n = len(temperatures)
    best_by_brier = temperatures[0][2]
    n_cwsa = sum(cwsa < best_by_brier for cwsa, _, _ in temperatures)
    n_plus = sum(cwsa_plus < best_by_brier for _, cwsa_plus, _ in temperatures)
    effect = "rewards overconfidence" if 2 * n_cwsa > n else "does not reward overconfidence"
    return (
        f"On {data}, CWSA {effect}: for the same predictions, the best temperature by CWSA is "
        f"below the best temperature by the Brier score ({best_by_brier:g}) at {n_cwsa} of {n} "
        f"thresholds, and by CWSA+ at {n_plus}."
    )


def _conclude_ranking(models: Mapping[str, SimulatedModel]) -> Iterator[str]:
    """Report how each metric ranks the calibrated and the overconfident model."""
    calibrated = models[CALIBRATED].expected
    overconfident = models[OVERCONFIDENT_TEXT].expected
    n = calibrated.cwsa.size
    n_cwsa = int((overconfident.cwsa > calibrated.cwsa).sum())
    n_plus = int((overconfident.cwsa_plus > calibrated.cwsa_plus).sum())
    n_released = int((models[OVERCONFIDENT].expected.cwsa > calibrated.cwsa).sum())
    yield (
        "Of two simulated models with equal accuracy, the one called overconfident has the higher "
        f"expected CWSA at {n_cwsa} of {n} thresholds and the higher CWSA+ at {n_plus}. It is "
        f"better calibrated: its ECE is {models[OVERCONFIDENT_TEXT].ece:.4f}, that of the model "
        f"called calibrated {models[CALIBRATED].ece:.4f}. The overconfident model of the released "
        f"code, with an accuracy of 80%, has the higher CWSA at {n_released}."
    )
    certain_area = models[PERFECT_TEXT].expected.auc_mcc()
    yield (
        f"The AUC-MCC of CWSA+ is {certain_area:.3f} for a model that is always correct and "
        f"certain, and {calibrated.auc_mcc():.3f} for the calibrated one. It includes only the "
        "coverages between those of the first and the last threshold, so it cannot compare models."
    )


def _compare_with_closed_forms(models: Sequence[SimulatedModel]) -> str:
    """Report the largest difference between a sample mean and the exact expectation."""
    distances: list[float] = []
    for model in models:
        for name in QUANTITIES:
            values = model.sampled[name]
            errors = values.std(axis=0, ddof=1) / np.sqrt(len(values))
            varies = np.isfinite(errors) & (errors > 1e-12)
            differences = np.abs(values.mean(axis=0) - getattr(model.expected, name))
            distances += (differences[varies] / errors[varies]).tolist()
    if not distances:
        return "No number of the simulated models varies."
    return (
        f"The means of repeated samples agree with the closed forms within {max(distances):.1f} "
        f"standard errors, for {len(distances)} numbers."
    )


#: Compared columns by title.
_COMPARED: Final = {
    "accuracy": "accuracy",
    "selective accuracy": "selective_accuracy",
    "CWSA": "cwsa",
    "CWSA+": "cwsa_plus",
}


def _conclude_shift(rows: Sequence[Row]) -> str:
    """Compare the reference in the first row with the shifted data of the lowest accuracy."""
    reference, *shifts = (row for row in rows if row["score"] == rows[0]["score"])
    worst = min(shifts, key=lambda row: row["accuracy"])
    changes = [
        f"{title} {reference[column]:.3f} to {worst[column]:.3f}"
        for title, column in _COMPARED.items()
        if reference[column] is not None and worst[column] is not None
    ]
    return f"From {reference['data']} to {worst['data']}: {', '.join(changes)}."


def _conclude_comparison(rows: Sequence[Row]) -> str:
    """Report the metrics of all data sets when no reference is set."""
    texts = []
    for row in rows:
        numbers = [
            f"{title} {row[column]:.3f}"
            for title, column in _COMPARED.items()
            if row[column] is not None
        ]
        texts.append(f"{row['data']}: {', '.join(numbers)}")
    return (
        f"{'; '.join(texts)}. If the model was developed for one of these data sets, pass its name "
        "to --reference: all others are then reported as shifts of it."
    )
