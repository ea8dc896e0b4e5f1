"""Compute the exact bias and mean squared error of rank weights in finite samples."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from abstain._foundation import checks
from abstain._foundation.random import as_seed, named_generator
from abstain.metrics import (
    mean_weight_error_scale,
    population_weight,
    rank_weights,
    weight_bias,
    weight_error_scale,
    weight_mse,
    weight_mse_given_rank,
)
from abstain.plots.series import SeriesDisplay
from abstain.plots.surface import SurfaceDisplay
from abstain.typing import FloatArray, Rng
from abstain_bench.studies._area_estimators import (
    COLOR_ORDER,
    ESTIMATOR_TITLES,
    GLOSSARY,
    PAPER_URL,
    estimator_series,
)
from abstain_bench.studies._display import Row, column_series, group_rows, signed, value_range
from abstain_bench.studies._inputs import check_sizes
from abstain_bench.studies._study import StudyEntry, StudyResult, timed

#: Estimators of the AURC whose weights depend only on the rank.
ESTIMATORS: Final = ("plugin", "log", "sele", "2sele")

#: Quantiles and sample sizes of the table "consistency".
_QUANTILES: Final = (0.1, 0.5, 0.9, 0.99)
_CONSISTENCY_SIZES: Final = (100, 1_000, 10_000, 100_000, 1_000_000)

#: Numbers of draws over which the sampled weights of the table "derivation" are averaged.
_DRAWS: Final = (1, 10, 100, 1000)
#: Number of repetitions for each number of draws.
_REPEATS: Final = 100
#: Largest sample size of the table "derivation".
_MAX_SAMPLED_SIZE: Final = 128

_SCALE_TITLE: Final = "u/(n(1 - u) + 1)"


@timed
def study_weights(
    *, sizes: Sequence[int] = (8, 32, 128, 1024), points: int = 199, rng: Rng = 0
) -> StudyResult:
    """Compute the exact bias and mean squared error of rank weights in finite samples.

    The weight of a sample is a function of its rank among n samples. The study answers the
    question: how much does this weight differ from the weight at the rank u in the population?

    Parameters
    ----------
    sizes : sequence of int, default=(8, 32, 128, 1024)
        Sample sizes, at least 2.
    points : int, default=199
        Number of population ranks u. The ranks are evenly spaced in the open interval (0, 1).
    rng : int, numpy.random.Generator or None, default=0
        Seed or generator of the sampled weights in the table "derivation".

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
        If a size is below 2 or `points` is below 1.

    Notes
    -----
    A sample at the population rank u has the rank 1 + Binomial(n - 1, u) among n samples.
    Expectations over this distribution are computed as finite sums. Conversely, a sample with rank
    r among n has a population rank with the distribution Beta(r, n + 1 - r). Expectations over this
    distribution have closed forms. The study takes some seconds.

    References
    ----------
    .. [1] Zhou et al. (2025), eq. 15-17, 21, 22 and 28 (bias), 23, 24 and 29-31
       (error), 27 (consistency), https://arxiv.org/abs/2410.15361

    .. rubric:: Captions

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
    distinct_sizes = check_sizes(sizes, minimum=2)
    seed = as_seed(rng)
    ranks = np.arange(1, checks.positive_int(points, "points") + 1) / (points + 1)
    rows = [row for n in distinct_sizes for row in _rows(n, ranks)]
    given_rank = _errors_given_rank(distinct_sizes)
    tables = {
        "results": rows,
        "summary": [_summarize(n, name, rows) for n in distinct_sizes for name in ESTIMATORS],
        "given-rank": given_rank,
        "mean-error": _mean_errors(given_rank),
        "consistency": _weights_at_fixed_quantiles(),
        "derivation": _distances_of_sampled_weights(distinct_sizes, seed),
    }
    return WEIGHTS.result(
        parameters={"sizes": distinct_sizes, "points": points, "seed": seed},
        tables=tables,
        main_tables=("summary", "mean-error"),
        figures=_figures(tables),
        notes=(_EXACTNESS_NOTE,),
        verdict=tuple(_conclusions(tables, ranks)),
    )


def _rows(n: int, ranks: FloatArray) -> list[Row]:
    """Return a row with the bias and mean squared error for each estimator and population rank."""
    rows: list[Row] = []
    for estimator in ESTIMATORS:
        rows += _columns_to_rows({
            "n": n,
            "rank": ranks,
            "estimator": estimator,
            "weight": population_weight(ranks),
            "bias": weight_bias(ranks, n, estimator),
            "mse": weight_mse(ranks, n, estimator),
            "scale": weight_error_scale(ranks, n),
        })  # fmt: skip
    return rows


def _columns_to_rows(columns: Mapping[str, Any]) -> list[Row]:
    """Convert columns to rows. A scalar is repeated for all rows."""
    arrays = np.broadcast_arrays(*columns.values())
    rows = zip(*(array.tolist() for array in arrays), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _summarize(n: int, estimator: Any, rows: Sequence[Row]) -> Row:
    """Summarize the errors of an estimator at one sample size, for ranks near 0.5 and 0.9."""
    group = [row for row in rows if row["n"] == n and row["estimator"] == estimator]
    in_range = [row for row in group if 1 / n <= row["rank"] <= 1 - 1 / n]
    ratios = [row["mse"] / row["scale"] for row in in_range] or [float("nan")]
    at_half = min(group, key=lambda row: abs(row["rank"] - 0.5))
    at_90 = min(group, key=lambda row: abs(row["rank"] - 0.9))
    return {
        "n": n,
        "estimator": estimator,
        "mean_weight": float(rank_weights(n, estimator).mean()),
        "bias_at_half": at_half["bias"],
        "bias_at_90": at_90["bias"],
        "MSE_at_half": at_half["mse"],
        "MSE_at_90": at_90["mse"],
        "min_MSE/scale": min(ratios),
        "max_MSE/scale": max(ratios),
    }


def _errors_given_rank(sizes: Sequence[int]) -> list[Row]:
    """Return the mean squared error of the weight at each rank among n samples."""
    rows: list[Row] = []
    for n in sizes:
        sample_ranks = np.arange(1, n + 1)
        # The distribution Beta(r, n + 1 - r) of the population rank has this mean.
        mean_ranks = sample_ranks / (n + 1)
        for estimator in ESTIMATORS:
            rows += _columns_to_rows({
                "n": n,
                "estimator": estimator,
                "sample_rank": sample_ranks,
                "mean_rank": mean_ranks,
                "weight": rank_weights(n, estimator),
                "mean_target": rank_weights(n, "plugin"),
                "mse": weight_mse_given_rank(sample_ranks, n, estimator),
                "scale": weight_error_scale(mean_ranks, n),
            })  # fmt: skip
    return rows


def _mean_errors(rows: Sequence[Row]) -> list[Row]:
    """Average the mean squared errors over the ranks, and compare them with equation 31."""
    averages: list[Row] = []
    for (n, estimator), group in group_rows(rows, "n", "estimator").items():
        mean_mse = float(np.mean([row["mse"] for row in group]))
        eq_31 = mean_weight_error_scale(n)
        errors = {"mean_MSE": mean_mse, "eq_31": eq_31, "over_eq_31": mean_mse / eq_31}
        averages.append({"n": n, "estimator": estimator, **errors})
    return averages


def _weights_at_fixed_quantiles() -> list[Row]:
    """Return the weights at fixed quantiles for increasing sample sizes."""
    quantiles = np.array(_QUANTILES)
    limits = population_weight(quantiles)
    rows: list[Row] = []
    for estimator in ESTIMATORS:
        for n in _CONSISTENCY_SIZES:
            sample_ranks = np.rint(quantiles * n).astype(int)
            weights = rank_weights(n, estimator)[sample_ranks - 1]
            rows += _columns_to_rows({
                "rank": quantiles,
                "estimator": estimator,
                "n": n,
                "weight": weights,
                "limit": limits,
                "error": weights - limits,
            })  # fmt: skip
    return sorted(rows, key=lambda row: row["rank"])


def _distances_of_sampled_weights(sizes: Sequence[int], seed: int) -> list[Row]:
    """Compare the plug-in weights with simulated averages of -ln(1 - u)."""
    rows: list[Row] = []
    for n in sizes:
        if n > _MAX_SAMPLED_SIZE:
            continue
        plugin_weights = rank_weights(n)
        # The mean variance of -ln(1 - u) over the ranks is H_n/n.
        variance = float(weight_mse_given_rank(np.arange(1, n + 1), n).mean())
        for n_draws in _DRAWS:
            rng = named_generator(seed, f"derivation {n} {n_draws}")
            squares = []
            for _ in range(_REPEATS):
                sampled = rank_weights(n, "monte-carlo", draws=n_draws, rng=rng)
                squares.append(np.mean((sampled - plugin_weights) ** 2))
            rows.append({
                "n": n,
                "draws": n_draws,
                "RMS_to_plugin": float(np.mean(squares)) ** 0.5,
                "expected_RMS": (variance / n_draws) ** 0.5,
            })  # fmt: skip
    return rows


# ------------------------------------------------------------------------------- figures
def _figures(tables: Mapping[str, Sequence[Row]]) -> dict[str, Any]:
    """Plot the errors of the weights against rank, sample size and number of draws."""
    rows = [{**row, "ratio": row["mse"] / row["scale"]} for row in tables["results"]]
    distances = [{**row, "distance": abs(row["error"])} for row in tables["consistency"]]
    panels = list(dict.fromkeys(map(_size_panel, rows)))
    by_rank: dict[str, Any] = {"log_x": False, "share_y": True, "order": COLOR_ORDER}
    figures = {
        "bias": SeriesDisplay(
            estimator_series(rows, "bias", _size_panel, x="rank"),
            "Bias of the weight of a sample by its population rank",
            "Population rank u",
            "Bias of the weight",
            linear_threshold=0.01,
            level=dict.fromkeys(panels, 0.0),
            level_name="no bias",
            **by_rank,
        ),
        "mse": _surface(),
        "ratio": SeriesDisplay(
            estimator_series(rows, "ratio", _size_panel, x="rank"),
            "Mean squared error of the weight divided by u/(n(1 - u) + 1)",
            "Population rank u",
            "MSE / scale",
            log_y=True,
            level=dict.fromkeys(panels, 1.0),
            level_name="equal to the scale",
            **by_rank,
        ),
        "given-rank": _errors_given_rank_display(tables["given-rank"]),
        "consistency": SeriesDisplay(
            estimator_series(distances, "distance", lambda row: f"u = {row['rank']:g}"),
            "Distance of the weight of rank u n among n from -ln(1 - u)",
            "Sample size n",
            "|weight + ln(1 - u)|",
            log_y=True,
            share_y=True,
            order=COLOR_ORDER,
        ),
    }
    if tables["derivation"]:
        lines = [
            column_series(title, group, "draws", column, panel=f"n = {n}")
            for n, group in group_rows(tables["derivation"], "n").items()
            for title, column in (
                ("sampled", "RMS_to_plugin"),
                ("sqrt(H_n/(n draws))", "expected_RMS"),
            )
        ]
        figures["derivation"] = SeriesDisplay(
            tuple(lines),
            "Distance of the Monte-Carlo weights from the plug-in weights",
            "Draws",
            "Root mean squared distance",
            log_y=True,
            share_y=True,
        )
    return figures


def _size_panel(row: Row) -> str:
    return f"n = {row['n']}"


def _surface() -> SurfaceDisplay:
    """Plot the mean squared errors and their scale by population rank and sample size."""
    sizes = np.unique(np.geomspace(8, 1024, 22).round())
    ranks = np.linspace(0.01, 0.99, 60)
    surfaces = {
        ESTIMATOR_TITLES[name]: np.stack([weight_mse(ranks, int(n), name) for n in sizes])
        for name in ("plugin", "log", "2sele")
    }
    scale = np.stack([weight_error_scale(ranks, int(n)) for n in sizes])
    return SurfaceDisplay(
        ranks,
        sizes,
        {**surfaces, _SCALE_TITLE: scale},
        "Mean squared error of the weight by population rank and sample size",
        "Population rank u",
        "Sample size n",
        "Mean squared error",
    )


def _errors_given_rank_display(rows: Sequence[Row]) -> SeriesDisplay:
    """Plot the mean squared errors given the rank among n samples."""
    lines = list(estimator_series(rows, "mse", _size_panel, x="mean_rank"))
    plugin_rows = [row for row in rows if row["estimator"] == "plugin"]
    for n, group in group_rows(plugin_rows, "n").items():
        lines.append(column_series(_SCALE_TITLE, group, "mean_rank", "scale", panel=f"n = {n}"))
    return SeriesDisplay(
        tuple(lines),
        "Mean squared error of the weight of the r-th of n samples",
        "Mean population rank r/(n + 1)",
        "Mean squared error",
        log_x=False,
        log_y=True,
        share_y=True,
        order=(*COLOR_ORDER, _SCALE_TITLE),
    )


# ------------------------------------------------------------------------------- conclusions
def _conclusions(tables: Mapping[str, Sequence[Row]], ranks: FloatArray) -> Iterator[str]:
    """Yield conclusions about bias, error, consistency and simulated weights."""
    rows_by_estimator = group_rows(tables["summary"], "estimator")
    log_rows = rows_by_estimator["log"]
    log_means = [
        f"{row['mean_weight']:.4f} at n = {row['n']}" for row in (log_rows[0], log_rows[-1])
    ]
    yield (
        "The mean of the plug-in weights is 1 at every n, like the population mean of -ln(1 - u): "
        "a negative bias at the most confident ranks is balanced by a positive bias elsewhere. The "
        f"mean of the log weights is {' and '.join(dict.fromkeys(log_means))}."
    )
    bounds = [
        row[column]
        for row in rows_by_estimator["plugin"]
        for column in ("min_MSE/scale", "max_MSE/scale")
        if np.isfinite(row[column])
    ]
    if bounds:
        yield (
            "At the ranks of the table between u = 1/n and 1 - 1/n, the mean squared error of a "
            f"plug-in weight is {value_range(bounds, '{:.2g}')} times u/(n(1 - u) + 1). The scale "
            "is thus the order of the error, not a bound. As u approaches 1, -ln(1 - u) and hence "
            "every error is unbounded; as u approaches 0, the squared bias 1/n² remains."
        )
    sele = rows_by_estimator["2sele"][-1]
    nearest_rank = float(ranks[np.argmin(np.abs(ranks - 0.9))])
    yield (
        f"The bias of 2 x SELE does not decrease with n: at n = {sele['n']}, u = "
        f"{nearest_rank:.3g} it is {signed(sele['bias_at_90'], '{:.3f}')}."
    )
    yield from _conclude_mean_error(tables["mean-error"])
    largest = max(_CONSISTENCY_SIZES)
    at_largest = [row for row in tables["consistency"] if row["n"] == largest]
    errors = [
        f"{ESTIMATOR_TITLES[estimator]} {max(abs(row['error']) for row in group):.2g}"
        for estimator, group in group_rows(at_largest, "estimator").items()
    ]
    yield (
        f"At n = {largest:,}, the largest distance of the weight at a fixed quantile from "
        f"-ln(1 - u) is {', '.join(errors)}. An estimator is consistent if this distance converges "
        "to 0."
    )
    rows = tables["derivation"]
    if rows:
        ratios = [row["RMS_to_plugin"] / row["expected_RMS"] for row in rows]
        yield (
            "Weights sampled from the distribution of the ranks (eq. 15-17) converge to the "
            f"plug-in weights: their distance is {value_range(ratios, '{:.2f}')} times its "
            f"expected value for 1 to {max(_DRAWS)} draws."
        )


def _conclude_mean_error(rows: Sequence[Row]) -> Iterator[str]:
    """Report the mean squared errors, averaged over the ranks."""
    rows_by_size = group_rows(rows, "n")
    plugin_errors = {
        n: f"{row['mean_MSE']:.3g} at n = {n} ({row['over_eq_31']:.2f} times eq. 31)"
        for n, group in rows_by_size.items()
        for row in group
        if row["estimator"] == "plugin"
    }
    smallest, largest = min(rows_by_size), max(rows_by_size)
    texts = [plugin_errors[n] for n in dict.fromkeys((smallest, largest))]
    best_estimators = {
        min(group, key=lambda row: row["mean_MSE"])["estimator"] for group in rows_by_size.values()
    }
    verb = "is" if best_estimators == {"plugin"} else "is not"
    yield (
        "The mean squared error of a plug-in weight, given the rank among n and averaged over the "
        f"ranks, is H_n/n: {' and '.join(texts)}. It {verb} the smallest of the four at every n."
    )
    large_errors = [
        f"{row['mean_MSE']:.3g} for {ESTIMATOR_TITLES[row['estimator']]}"
        for row in rows_by_size[largest]
        if row["mean_MSE"] > 0.1
    ]
    if large_errors and smallest < largest:
        yield (
            f"At n = {largest} it is still {', '.join(large_errors)}: these weights do not "
            "converge to -ln(1 - u)."
        )


_EXACTNESS_NOTE: Final = (
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
