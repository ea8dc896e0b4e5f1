"""Exact bias and mean squared error of the rank weights of a finite sample."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from abstain._foundation import checks
from abstain._foundation.random import as_seed
from abstain.metrics import (
    population_weight,
    rank_weights,
    weight_bias,
    weight_error_scale,
    weight_mse,
)
from abstain.plots.series import SeriesDisplay
from abstain.plots.surface import SurfaceDisplay
from abstain.typing import FloatArray, Rng
from abstain_bench.studies._area_estimators import (
    COLOR_ORDER,
    ESTIMATOR_TITLES,
    GLOSSARY,
    PAPER_URL,
)
from abstain_bench.studies._figures import estimator_series
from abstain_bench.studies._inputs import check_sizes
from abstain_bench.studies._sentences import signed, value_range
from abstain_bench.studies._study import StudyEntry, StudyResult, timed
from abstain_bench.studies._tables import Row
from abstain_bench.studies.weights import sample_ranks
from abstain_bench.studies.weights.sample_ranks import ESTIMATORS

_SURFACE_SIZES: Final = tuple(int(n) for n in np.unique(np.geomspace(8, 1024, 22).round()))
_SURFACE_POINTS: Final = 60


@timed
def study_weights(
    *, sizes: Sequence[int] = (8, 32, 128, 1024), points: int = 199, rng: Rng = 0
) -> StudyResult:
    """Compute the exact bias and mean squared error of the rank weights.

    The study answers the question: how much does the weight from the rank of a sample among n
    differ from the weight of its rank u in the population?

    Parameters
    ----------
    sizes : sequence of int, default=(8, 32, 128, 1024)
        Sample sizes, at least 2.
    points : int, default=199
        Number of population ranks u, evenly spaced strictly between 0 and 1.
    rng : int, numpy.random.Generator or None, default=0
        Seed or generator of the sampled weights of the table "derivation".

    Returns
    -------
    StudyResult
        Tables "results" (n, rank, estimator, weight, bias, mse, scale), "summary", "given-rank"
        (error given the rank among n, eq. 23 and 29), "mean-error" (its mean, and eq. 31),
        "consistency" (prop. A.1) and "derivation" (sampled weights, eq. 15-17, up to n = 128);
        figures "bias" (figures 1 and S8 of the paper), "mse" and "ratio" (divided by the scale of
        figure 2), "given-rank", "consistency" and "derivation".

    Raises
    ------
    InputError
        If a size is below 2 or there are no points.

    Notes
    -----
    The rank of a sample, counting itself, is 1 + Binomial(n - 1, u), so expectations are finite
    sums. Given this rank r, u has the distribution Beta(r, n + 1 - r), and expectations have closed
    forms. Cost: some seconds.

    References
    ----------
    .. [1] Zhou et al. (2025), eq. 15-17, 21, 22 and 28 (bias), 23, 24 and 29-31
       (error), 27 (consistency), https://arxiv.org/abs/2410.15361

    Captions
    --------
    summary
        MSE/scale: over ranks from 1/n to 1 - 1/n. Bias and MSE: at the nearest rank.
    bias
        Above the dotted line, the weight of a sample of this rank is too large on average; below
        it, too small. The axis is linear up to 0.01 and logarithmic beyond.
    mse
        All panels have the same color scale. The last panel is u/(n(1 - u) + 1).
    ratio
        At 1, the mean squared error equals the scale.
    results
        Every rank; weight is -ln(1 - u), scale is u/(n(1 - u) + 1).
    given-rank
        Given the rank r among n, the population rank has the distribution Beta(r, n + 1 - r): eq.
        23 for the plug-in, eq. 29 for the log weight. The scale is computed at the mean population
        rank.
    mean-error
        Mean squared error given the rank among n, averaged over the n ranks. Eq. 31 is (n + 1) ln(n
        + 1)/n² - 1/n.
    consistency
        Weight of the sample of rank u n among n, and its limit -ln(1 - u).
    derivation
        Average of -ln(1 - u) at each rank over sampled population ranks of n samples: root mean
        squared distance from the plug-in weights in 100 repetitions, and its expected value
        sqrt(H_n/(n draws)).

    Examples
    --------
    >>> result = study_weights(sizes=[8], points=5)
    >>> result.frame().filter(estimator="sele")["bias"].round(3).to_list()
    [0.089, 0.011, -0.131, -0.39, -0.938]
    """
    distinct_sizes, seed = check_sizes(sizes, minimum=2), as_seed(rng)
    ranks = np.arange(1, checks.positive_int(points, "points") + 1) / (points + 1)
    rows = [row for n in distinct_sizes for row in _rows(n, ranks)]
    summary = [_summarize(n, name, rows) for n in distinct_sizes for name in ESTIMATORS]
    given_rank = sample_ranks.errors_given_rank(distinct_sizes)
    sample_rank_tables = {
        "given-rank": given_rank,
        "mean-error": sample_ranks.mean_errors(given_rank),
        "consistency": sample_ranks.weights_at_fixed_quantiles(),
        "derivation": sample_ranks.distances_of_sampled_weights(distinct_sizes, seed),
    }
    return WEIGHTS.result(
        parameters={"sizes": distinct_sizes, "points": points, "seed": seed},
        tables={"results": rows, "summary": summary, **sample_rank_tables},
        main_tables=("summary", "mean-error"),
        figures=_figures(rows, distinct_sizes) | sample_ranks.figures(sample_rank_tables),
        notes=(_NOTE,),
        verdict=(*_conclusions(summary, ranks), *sample_ranks.conclusions(sample_rank_tables)),
    )


def _rows(n: int, ranks: FloatArray) -> list[dict[str, Any]]:
    weight, scale = population_weight(ranks).tolist(), weight_error_scale(ranks, n).tolist()
    rows: list[dict[str, Any]] = []
    for estimator in ESTIMATORS:
        bias = weight_bias(ranks, n, estimator).tolist()
        mse = weight_mse(ranks, n, estimator).tolist()
        rows += [
            {
                "n": n,
                "rank": rank,
                "estimator": estimator,
                "weight": weight[i],
                "bias": bias[i],
                "mse": mse[i],
                "scale": scale[i],
            }
            for i, rank in enumerate(ranks.tolist())
        ]
    return rows


def _summarize(n: int, estimator: Any, rows: Sequence[Row]) -> dict[str, Any]:
    """Summarize the weights of one estimator at one size."""
    group = [row for row in rows if row["n"] == n and row["estimator"] == estimator]
    in_range = [row for row in group if 1 / n <= row["rank"] <= 1 - 1 / n]
    ratios = [row["mse"] / row["scale"] for row in in_range] or [float("nan")]
    middle, high = _row_at_rank(group, 0.5), _row_at_rank(group, 0.9)
    return {
        "n": n,
        "estimator": estimator,
        "mean_weight": float(rank_weights(n, estimator).mean()),
        "bias_at_half": middle["bias"],
        "bias_at_90": high["bias"],
        "MSE_at_half": middle["mse"],
        "MSE_at_90": high["mse"],
        "min_MSE/scale": min(ratios),
        "max_MSE/scale": max(ratios),
    }


def _row_at_rank(rows: Sequence[Row], rank: float) -> Row:
    """Return the row of the nearest rank."""
    return min(rows, key=lambda row: abs(row["rank"] - rank))


def _figures(rows: Sequence[Row], sizes: tuple[int, ...]) -> dict[str, Any]:
    def display(
        value: Callable[[Row], float], title: str, axis: str, **options: Any
    ) -> SeriesDisplay:
        series = estimator_series(rows, value, lambda row: f"n = {row['n']}", x="rank")
        return SeriesDisplay(
            series,
            title,
            "Population rank u",
            axis,
            log_x=False,
            order=COLOR_ORDER,
            share_y=True,
            **options,
        )

    panels = [f"n = {n}" for n in sizes]
    return {
        "bias": display(
            lambda row: row["bias"],
            "Bias of the weight of a sample by its population rank",
            "Bias of the weight",
            linear_to=0.01,
            level=dict.fromkeys(panels, 0.0),
            level_name="no bias",
        ),
        "mse": _surface(),
        "ratio": display(
            lambda row: row["mse"] / row["scale"],
            "Mean squared error of the weight divided by u/(n(1 - u) + 1)",
            "MSE / scale",
            log_y=True,
            level=dict.fromkeys(panels, 1.0),
            level_name="equal to the scale",
        ),
    }


def _surface() -> SurfaceDisplay:
    ranks = np.linspace(0.01, 0.99, _SURFACE_POINTS)
    surfaces = {
        ESTIMATOR_TITLES[name]: np.stack([weight_mse(ranks, n, name) for n in _SURFACE_SIZES])
        for name in ("plugin", "log", "2sele")
    }
    scale = np.stack([weight_error_scale(ranks, n) for n in _SURFACE_SIZES])
    return SurfaceDisplay(
        ranks,
        np.array(_SURFACE_SIZES, dtype=float),
        {**surfaces, "u/(n(1 - u) + 1)": scale},
        "Mean squared error of the weight by population rank and sample size",
        "Population rank u",
        "Sample size n",
        "Mean squared error",
    )


def _conclusions(summary: Sequence[Mapping[str, Any]], ranks: FloatArray) -> Iterator[str]:
    plugin = [row for row in summary if row["estimator"] == "plugin"]
    log = [row for row in summary if row["estimator"] == "log"]
    log_means = [f"{row['mean_weight']:.4f} at n = {row['n']}" for row in (log[0], log[-1])]
    yield (
        "The mean of the plug-in weights is 1 at every n, like the population mean of -ln(1 - u): "
        "a negative bias at the most confident ranks is balanced by a positive bias elsewhere. The "
        f"mean of the log weights is {' and '.join(dict.fromkeys(log_means))}."
    )
    bounds = [row[column] for row in plugin for column in ("min_MSE/scale", "max_MSE/scale")]
    ratios = [ratio for ratio in bounds if np.isfinite(ratio)]
    if ratios:
        yield (
            "At the ranks of the table between u = 1/n and 1 - 1/n, the mean squared error of a "
            f"plug-in weight is {value_range(ratios, '{:.2g}')} times u/(n(1 - u) + 1). The scale "
            "is thus the order of the error, not a bound. As u approaches 1, -ln(1 - u) and hence "
            "every error is unbounded; as u approaches 0, the squared bias 1/n² remains."
        )
    largest = max(row["n"] for row in summary)
    sele = next(row for row in summary if row["n"] == largest and row["estimator"] == "2sele")
    nearest_rank = float(ranks[np.argmin(np.abs(ranks - 0.9))])
    yield (
        f"The bias of 2 x SELE does not decrease with n: at n = {largest}, u = "
        f"{nearest_rank:.3g} it is {signed(sele['bias_at_90'], '{:.3f}')}."
    )


_NOTE: Final = (
    "All numbers are exact, except the sampled weights of the derivation: sums over the binomial "
    "distribution of the rank of a sample, and closed forms for the Beta distribution of its "
    "population rank."
)

#: The study in the catalogue.
WEIGHTS: Final = StudyEntry(
    name="weights",
    title="Bias and error of the rank weights",
    question=(
        "The weight of a sample depends on its rank among n and should be the weight -ln(1 - u) of "
        "its rank u in the population. How large are the bias and the mean squared error?"
    ),
    source=f"Zhou et al. (2025), fig. 1, 2 and S8, prop. 3.3-3.5 and A.1-A.4, {PAPER_URL}",
    run=study_weights,
    quick={"sizes": (8, 128), "points": 99},
    terms={
        term: GLOSSARY[term]
        for term in ("Rank u", "plug-in", "log", "SELE", "2 x SELE", "MSE", "Scale")
    },
    labels=ESTIMATOR_TITLES,
)
