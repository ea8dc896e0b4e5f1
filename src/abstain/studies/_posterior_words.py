"""What a study of a posterior shows: figures, tables and sentences."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from abstain.evaluation import PosteriorExpectation
from abstain.metrics import metric_named
from abstain.plots.series import Series, SeriesDisplay
from abstain.predictions import Predictions
from abstain.studies._figures import above_zero
from abstain.studies._study import Row
from abstain.studies._words import WORDS

#: What a simulated posterior is called.
SIMULATED: Final = "simulated posterior"

#: As many draws as a posterior often has: what they tell is said.
_FEW: Final = 8


def line(key: tuple[str, str], whole: PosteriorExpectation) -> dict[str, Any]:
    return {
        "data": key[0],
        "metric": metric_named(key[1]).title,
        "n": whole.n,
        "draws": whole.draws,
        "expectation": whole.mean,
        "expectation_se": whole.standard_error,
        "sd_over_draws": whole.standard_deviation,
        "least": float(np.nanmin(whole.values)),
        "largest": float(np.nanmax(whole.values)),
        "mean_predictor": whole.of_mean,
    }


def figures(
    rows: Sequence[Row], found: dict[tuple[str, str], PosteriorExpectation]
) -> dict[str, Any]:
    several = len({name for name, _ in found}) > 1
    panels = {key: (f"{key[0]}, " if several else "") + metric_named(key[1]).title for key in found}
    by_draws: list[Series] = []
    spread: list[Series] = []
    for key, panel in panels.items():
        mine = [row for row in rows if (row["data"], row["metric"]) == key]
        x = tuple(float(row["draws"]) for row in mine)
        for column, name in (
            ("mean", "average over the draws"),
            ("mean_predictor", "mean predictor"),
        ):
            error = "sd" if column == "mean" else "mean_predictor_sd"
            y = tuple(row[column] for row in mine)
            low = tuple(row[column] - row[error] for row in mine)
            high = tuple(row[column] + row[error] for row in mine)
            by_draws.append(Series(name, x, y, low, high, panel))
        spread.append(
            Series("measured", x[:-1], tuple(row["sd"] for row in mine[:-1]), panel=panel)
        )
        sd = found[key].standard_deviation
        spread.append(Series("sd/sqrt(draws)", x, tuple(sd / np.sqrt(x)), panel=panel))
    out = {
        "draws": SeriesDisplay(
            tuple(by_draws),
            "Metric of the draws on average, and of their mean predictor, by number of draws",
            "Draws from the posterior",
            "Metric",
            level={panel: found[key].mean for key, panel in panels.items()},
            level_name="all draws",
        ),
    }
    return out | _spread_figure(spread)


def _spread_figure(spread: Sequence[Series]) -> dict[str, SeriesDisplay]:
    """Draw the spread, where the draws differ at all."""
    shown = above_zero(spread)
    if not shown:
        return {}
    title = "Standard deviation of the average over the draws"
    axes = ("Draws from the posterior", "Standard deviation")
    return {"spread": SeriesDisplay(shown, title, *axes, log_y=True)}


def said(key: tuple[str, str], whole: PosteriorExpectation) -> str:
    """Say what the expectation is, what the mean predictor has, and what a few draws tell."""
    known = int(np.isfinite(whole.values).sum())
    out = (
        f"{metric_named(key[1]).title} on {key[0]}: {whole.mean:.4g} \u00b1 "
        f"{whole.standard_error:.2g} in expectation over {known} draws. {_beside(whole)}"
    )
    # By the formula: subsets of the draws there are agree the more, the larger a part they are.
    few = whole.standard_deviation / np.sqrt(_FEW)
    if known <= _FEW or few == 0:
        return out
    return f"{out} {_FEW} draws tell the expectation to \u00b1 {few:.2g}."


def _beside(whole: PosteriorExpectation) -> str:
    """Compare the mean predictor with the expectation."""
    if np.isnan(whole.of_mean):
        return "The mean predictor has no value."
    if np.isclose(whole.of_mean, whole.mean, rtol=1e-12, atol=0.0):
        return "The mean predictor has the same."
    side = "lower" if whole.of_mean < whole.mean else "higher"
    return (
        f"The mean predictor has {whole.of_mean:.4g}, {side} by "
        f"{abs(whole.of_mean - whole.mean):.2g}: the expectation is not the metric of the averaged "
        "model."
    )


def notes(parts: dict[str, Predictions], found: Iterable[PosteriorExpectation]) -> tuple[str, ...]:
    reasons = dict.fromkeys(whole.reason for whole in found if whole.reason)
    drawn = (*reasons, _SPREAD_SAID, _SUBSETS_SAID)
    if SIMULATED not in parts:
        return drawn
    return (*drawn, _HOW)


_HOW: Final = "The posterior is simulated: Gaussian weights of a softmax regression."
_SPREAD_SAID: Final = (
    "The spread is that of the draws on these samples; it says nothing of other samples."
)
_SUBSETS_SAID: Final = (
    "Subsets are drawn without replacement from the draws there are, so that the measured spread "
    "is smaller than sd/sqrt(draws) where a subset is a large part of them."
)
CAPTIONS: Final = {
    "expectations": "± is the standard error for independent draws.",
    "results": "Mean and standard deviation over subsets of the draws.",
    "draws": "The bands are one standard deviation over subsets of that many draws.",
}
GLOSSARY: Final = {
    "Expectation": (
        "Mean over models drawn from the posterior of the metric of each model, with the "
        "confidence and the loss of that model."
    ),
    "Mean predictor": "The model whose class probabilities are the mean over the draws.",
    **{word: WORDS[word] for word in ("AURC", "AUGRC", "SD")},
}
