"""What the estimators do over several models, as the paper draws it: a figure, and sentences."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from abstain.plots.series import Series, SeriesDisplay
from abstain_bench.studies._figures import above_zero, lines
from abstain_bench.studies._models import over_models
from abstain_bench.studies._sources import FileSource, Source
from abstain_bench.studies._study import Row
from abstain_bench.studies._words import AREA_ESTIMATORS, COLORS, ESTIMATOR_TITLES, loss_said

#: What is averaged over the models. "abs_bias" is what the code of the paper calls MAE.
_VALUES: Final = {
    "truth": lambda row: row["truth"],
    "mean": lambda row: row["mean"],
    "bias": lambda row: row["bias"],
    "abs_bias": lambda row: abs(row["bias"]),
    "mae": lambda row: row["mae"],
    "rmse": lambda row: row["mse"] ** 0.5,
}

#: What all but one of the estimators are about.
_AREA: Final = AREA_ESTIMATORS["plugin"].target

#: Columns of the figure, and how they are written.
_DRAWN: Final = {"mae": "MAE", "abs_bias": "|bias|"}


def models_of(rows: Sequence[Row], sources: Sequence[Source]) -> list[dict[str, Any]]:
    """Return what is found on average over the files, where there are several."""
    files = {source.name for source in sources if isinstance(source, FileSource)}
    return over_models(rows, files, ("loss", "score", "estimator", "n"), _VALUES)


def models_figure(over: Sequence[Row]) -> dict[str, SeriesDisplay]:
    """Return the figure of the errors of the first score, with a deviation to both sides."""
    own = [r for r in _first(over) if AREA_ESTIMATORS[r["estimator"]].target == _AREA]
    # A logarithmic axis has no place for models that err nowhere.
    shown = above_zero(line for column in _DRAWN for line in _lines(own, column))
    if not shown:
        return {}
    title = f"Error over {own[0]['models']} models, mean and standard deviation: {own[0]['score']}"
    axes = ("Sample size n", "Error")
    return {"models": SeriesDisplay(shown, title, *axes, log_y=True, order=COLORS)}


def _first(over: Sequence[Row]) -> list[Row]:
    """Return what is of the first score."""
    return [row for row in over if row["score"] == over[0]["score"]]


def _lines(rows: Sequence[Row], column: str) -> tuple[Series, ...]:
    return lines(
        rows,
        lambda row: row[column],
        lambda row: f"{loss_said(row['loss'])}, {_DRAWN[column]}",
        half=lambda row: row[f"{column}_sd"],
    )


def models_said(over: Sequence[Row]) -> Iterator[str]:
    """Say for each loss, by the first score, whose error falls as n grows, and to what."""
    for loss in dict.fromkeys(row["loss"] for row in over):
        mine = [row for row in _first(over) if row["loss"] == loss]
        sizes = sorted({row["n"] for row in mine})
        if len(sizes) < 2:
            continue
        first, last = sizes[0], sizes[-1]
        at = {(row["estimator"], row["n"]): row for row in mine}
        parts = [
            f"{ESTIMATOR_TITLES[name]} {at[name, first]['mae']:.3g} to {_said(at[name, last])}"
            for name in dict.fromkeys(row["estimator"] for row in mine)
            if AREA_ESTIMATORS[name].target == _AREA and {(name, first), (name, last)} <= at.keys()
        ]
        most = max(row["models"] for row in mine)
        yield (
            f"Over {most} models, {loss_said(loss)}, {over[0]['score']}: MAE from n = {first} to "
            f"{last}: {'; '.join(parts)} (\u00b1 the deviation between the models)."
        )


def _said(row: Row) -> str:
    return f"{row['mae']:.3g} \u00b1 {row['mae_sd']:.1g}"
