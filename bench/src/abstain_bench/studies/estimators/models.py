"""Error of the estimators over several models: averages, figure and conclusions."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from abstain.plots.series import Series, SeriesDisplay
from abstain_bench.studies._area_estimators import (
    AREA_ESTIMATORS,
    COLOR_ORDER,
    ESTIMATOR_TITLES,
    loss_title,
)
from abstain_bench.studies._figures import estimator_series, panels_above_zero
from abstain_bench.studies._over_models import average_over_models
from abstain_bench.studies._sources import FileSource, SampleSource
from abstain_bench.studies._tables import Row, group_rows

#: Values that are averaged over the models. The code of the paper calls "abs_bias" MAE.
_VALUES: Final = {
    "truth": lambda row: row["truth"],
    "mean": lambda row: row["mean"],
    "bias": lambda row: row["bias"],
    "abs_bias": lambda row: abs(row["bias"]),
    "mae": lambda row: row["mae"],
    "rmse": lambda row: row["mse"] ** 0.5,
}

#: Columns of the figure and their titles.
_FIGURE_COLUMNS: Final = {"mae": "MAE", "abs_bias": "|bias|"}


def average_estimators_over_models(
    rows: Sequence[Row], sources: Sequence[SampleSource]
) -> list[dict[str, Any]]:
    """Return the errors averaged over the files, if there are several."""
    files = {source.name for source in sources if isinstance(source, FileSource)}
    return average_over_models(rows, files, ("loss", "score", "estimator", "n"), _VALUES)


def models_figure(averages: Sequence[Row]) -> dict[str, SeriesDisplay]:
    """Return the figure of the errors of the first score, with bands of one SD."""
    rows = _aurc_rows_of_first_score(averages)
    lines = [line for column in _FIGURE_COLUMNS for line in _error_series(rows, column)]
    visible = panels_above_zero(lines)
    if not visible:
        return {}
    title = (
        f"Error over {rows[0]['models']} models, mean and standard deviation: {rows[0]['score']}"
    )
    display = SeriesDisplay(visible, title, "Sample size n", "Error", log_y=True, order=COLOR_ORDER)
    return {"models": display}


def _aurc_rows_of_first_score(averages: Sequence[Row]) -> list[Row]:
    return [
        row
        for row in averages
        if row["score"] == averages[0]["score"]
        and AREA_ESTIMATORS[row["estimator"]].target == "aurc"
    ]


def _error_series(rows: Sequence[Row], column: str) -> tuple[Series, ...]:
    return estimator_series(
        rows,
        lambda row: row[column],
        lambda row: f"{loss_title(row['loss'])}, {_FIGURE_COLUMNS[column]}",
        half_width=lambda row: row[f"{column}_sd"],
    )


def models_conclusions(averages: Sequence[Row]) -> Iterator[str]:
    """Yield for each loss the MAE of each estimator at the smallest and the largest size."""
    for loss, rows in group_rows(_aurc_rows_of_first_score(averages), "loss").items():
        sizes = sorted({row["n"] for row in rows})
        if len(sizes) < 2:
            continue
        changes = []
        for estimator, group in group_rows(rows, "estimator").items():
            row_by_size = {row["n"]: row for row in group}
            if sizes[0] in row_by_size and sizes[-1] in row_by_size:
                first, last = row_by_size[sizes[0]], row_by_size[sizes[-1]]
                changes.append(
                    f"{ESTIMATOR_TITLES[estimator]} {first['mae']:.3g} to {last['mae']:.3g} \u00b1 "
                    f"{last['mae_sd']:.1g}"
                )
        n_models = max(row["models"] for row in rows)
        yield (
            f"Over {n_models} models, {loss_title(loss)}, {rows[0]['score']}: MAE from n = "
            f"{sizes[0]} to {sizes[-1]}: {'; '.join(changes)} (\u00b1 the standard deviation "
            "between the models)."
        )
