"""Rank weights given the rank of a sample: error, consistency, and derivation by sampling."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from abstain._foundation.random import named_generator
from abstain.metrics import (
    mean_weight_error_scale,
    population_weight,
    rank_weights,
    weight_error_scale,
    weight_mse_given_rank,
)
from abstain.plots.series import Series, SeriesDisplay
from abstain_bench.studies._area_estimators import COLOR_ORDER, ESTIMATOR_TITLES
from abstain_bench.studies._figures import estimator_series
from abstain_bench.studies._sentences import value_range
from abstain_bench.studies._tables import Row, group_rows

#: Estimators of the AURC whose weights depend on the rank alone.
ESTIMATORS: Final = ("plugin", "log", "sele", "2sele")

#: Quantiles and sample sizes for the test of consistency.
_QUANTILES: Final = (0.1, 0.5, 0.9, 0.99)
_CONSISTENCY_SIZES: Final = (100, 1_000, 10_000, 100_000, 1_000_000)

#: Numbers of draws of the population ranks, of repetitions, and the largest sample size.
_DRAWS: Final = (1, 10, 100, 1000)
_REPEATS: Final = 100
_MAX_SAMPLED_SIZE: Final = 128

_SCALE_TITLE: Final = "u/(n(1 - u) + 1)"


def errors_given_rank(sizes: Sequence[int]) -> list[dict[str, Any]]:
    """Return the mean squared error of each weight, given each rank among n."""
    rows: list[dict[str, Any]] = []
    for n in sizes:
        sample_ranks = np.arange(1, n + 1)
        # The mean of Beta(r, n + 1 - r).
        mean_ranks = sample_ranks / (n + 1)
        scale = weight_error_scale(mean_ranks, n).tolist()
        plugin_weights = rank_weights(n, "plugin").tolist()
        for estimator in ESTIMATORS:
            weights = rank_weights(n, estimator).tolist()
            mse = weight_mse_given_rank(sample_ranks, n, estimator).tolist()
            rows += [
                {
                    "n": n,
                    "estimator": estimator,
                    "sample_rank": i + 1,
                    "mean_rank": mean_rank,
                    "weight": weights[i],
                    "mean_target": plugin_weights[i],
                    "mse": mse[i],
                    "scale": scale[i],
                }
                for i, mean_rank in enumerate(mean_ranks.tolist())
            ]
    return rows


def mean_errors(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the mean over the ranks of the error, and the approximation of the paper (eq. 31)."""
    averages = []
    for (n, estimator), group in group_rows(rows, "n", "estimator").items():
        mean_mse = float(np.mean([row["mse"] for row in group]))
        averages.append({
            "n": n,
            "estimator": estimator,
            "mean_MSE": mean_mse,
            "eq_31": mean_weight_error_scale(n),
            "over_eq_31": mean_mse / mean_weight_error_scale(n),
        })  # fmt: skip
    return averages


def weights_at_fixed_quantiles() -> list[dict[str, Any]]:
    """Return the weight of the sample at fixed quantiles as n grows, and its limit."""
    limits = population_weight(np.array(_QUANTILES)).tolist()
    rows: list[dict[str, Any]] = []
    for estimator in ESTIMATORS:
        for n in _CONSISTENCY_SIZES:
            weights = rank_weights(n, estimator)
            for u, limit in zip(_QUANTILES, limits, strict=True):
                weight = float(weights[round(u * n) - 1])
                rows.append({
                    "rank": u,
                    "estimator": estimator,
                    "n": n,
                    "weight": weight,
                    "limit": limit,
                    "error": weight - limit,
                })  # fmt: skip
    return sorted(rows, key=lambda row: row["rank"])


def distances_of_sampled_weights(sizes: Sequence[int], seed: int) -> list[dict[str, Any]]:
    """Compare averages of -ln(1 - u) over sampled population ranks with the plug-in weights.

    The variance of a draw at rank r is psi'(n + 1 - r) - psi'(n + 1). Its mean over the ranks is
    H_n/n.
    """
    rows = []
    for n in (n for n in sizes if n <= _MAX_SAMPLED_SIZE):
        plugin_weights = rank_weights(n)
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
def figures(tables: Mapping[str, Sequence[Row]]) -> dict[str, SeriesDisplay]:
    """Return the figures of the error given the rank, of consistency and of the derivation."""
    displays = {
        "given-rank": _errors_given_rank_display(tables["given-rank"]),
        "consistency": _consistency_display(tables["consistency"]),
    }
    if tables["derivation"]:
        displays["derivation"] = _derivation_display(tables["derivation"])
    return displays


def _size_panel(row: Row) -> str:
    return f"n = {row['n']}"


def _errors_given_rank_display(rows: Sequence[Row]) -> SeriesDisplay:
    errors = estimator_series(rows, lambda row: row["mse"], _size_panel, x="mean_rank")
    plugin_rows = [row for row in rows if row["estimator"] == "plugin"]
    scale = estimator_series(plugin_rows, lambda row: row["scale"], _size_panel, x="mean_rank")
    scale_series = [Series(_SCALE_TITLE, line.x, line.y, panel=line.panel) for line in scale]
    return SeriesDisplay(
        (*errors, *scale_series),
        "Mean squared error of the weight of the r-th of n samples",
        "Mean population rank r/(n + 1)",
        "Mean squared error",
        log_x=False,
        log_y=True,
        share_y=True,
        order=(*COLOR_ORDER, _SCALE_TITLE),
    )


def _consistency_display(rows: Sequence[Row]) -> SeriesDisplay:
    errors = estimator_series(
        rows, lambda row: abs(row["error"]), lambda row: f"u = {row['rank']:g}"
    )
    return SeriesDisplay(
        errors,
        "Distance of the weight of rank u n among n from -ln(1 - u)",
        "Sample size n",
        "|weight + ln(1 - u)|",
        log_y=True,
        share_y=True,
        order=COLOR_ORDER,
    )


def _derivation_display(rows: Sequence[Row]) -> SeriesDisplay:
    series = []
    for n, group in group_rows(rows, "n").items():
        n_draws = tuple(float(row["draws"]) for row in group)
        for title, column in (
            ("sampled", "RMS_to_plugin"),
            ("sqrt(H_n/(n draws))", "expected_RMS"),
        ):
            distances = tuple(row[column] for row in group)
            series.append(Series(title, n_draws, distances, panel=f"n = {n}"))
    return SeriesDisplay(
        tuple(series),
        "Distance of the Monte-Carlo weights from the plug-in weights",
        "Draws",
        "Root mean squared distance",
        log_y=True,
        share_y=True,
    )


# ------------------------------------------------------------------------------- conclusions
def conclusions(tables: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    """Yield conclusions about the mean error, consistency and the derivation."""
    yield from _conclude_mean_error(tables["mean-error"])
    yield _conclude_consistency(tables["consistency"])
    if rows := tables["derivation"]:
        ratios = [row["RMS_to_plugin"] / row["expected_RMS"] for row in rows]
        max_draws = max(row["draws"] for row in rows)
        yield (
            "Weights sampled from the distribution of the ranks (eq. 15-17) converge to the "
            f"plug-in weights: their distance is {value_range(ratios, '{:.2f}')} times its "
            f"expected value for 1 to {max_draws} draws."
        )


def _conclude_mean_error(rows: Sequence[Row]) -> Iterator[str]:
    row_by_case = {(row["n"], row["estimator"]): row for row in rows}
    sizes = sorted({n for n, _ in row_by_case})
    first_and_last = list(dict.fromkeys((sizes[0], sizes[-1])))
    largest = sizes[-1]
    plugin = " and ".join(
        f"{row_by_case[n, 'plugin']['mean_MSE']:.3g} at n = {n} "
        f"({row_by_case[n, 'plugin']['over_eq_31']:.2f} times eq. 31)"
        for n in first_and_last
    )
    best = {min(ESTIMATORS, key=lambda name: row_by_case[n, name]["mean_MSE"]) for n in sizes}
    rank = (
        "It is the smallest of the four at every n."
        if best == {"plugin"}
        else "It is not the smallest of the four at every n."
    )
    yield (
        "The mean squared error of a plug-in weight, given the rank among n and averaged over the "
        f"ranks, is H_n/n: {plugin}. {rank}"
    )
    remaining = [name for name in ESTIMATORS if row_by_case[largest, name]["mean_MSE"] > 0.1]
    if remaining and len(first_and_last) > 1:
        errors = ", ".join(
            f"{row_by_case[largest, name]['mean_MSE']:.3g} for {ESTIMATOR_TITLES[name]}"
            for name in remaining
        )
        yield (
            f"At n = {largest} it is still {errors}: these weights do not converge to -ln(1 - u)."
        )


def _conclude_consistency(rows: Sequence[Row]) -> str:
    largest = max(row["n"] for row in rows)
    rows_by_estimator = group_rows((row for row in rows if row["n"] == largest), "estimator")
    errors = [
        f"{ESTIMATOR_TITLES[estimator]} {max(abs(row['error']) for row in group):.2g}"
        for estimator, group in rows_by_estimator.items()
    ]
    return (
        f"At n = {largest:,}, the largest distance of the weight at a fixed quantile from "
        f"-ln(1 - u) is {', '.join(errors)}. An estimator is consistent if this distance converges "
        "to 0."
    )
