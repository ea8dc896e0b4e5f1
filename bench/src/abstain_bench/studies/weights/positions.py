"""What the rank of a sample among n says of its population rank: error, derivation, consistency."""

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
from abstain_bench.studies._figures import lines
from abstain_bench.studies._sentences import value_range
from abstain_bench.studies._study import Row
from abstain_bench.studies._words import COLORS, ESTIMATOR_TITLES

#: The estimators of the AURC whose weights depend on the rank alone.
ESTIMATORS: Final = ("plugin", "log", "sele", "2sele")

#: Shares of the ranks at which consistency is looked at, and sizes of samples.
_SHARES: Final = (0.1, 0.5, 0.9, 0.99)
_GROWING: Final = (100, 1_000, 10_000, 100_000, 1_000_000)

#: How often the population ranks of a sample are drawn.
_DRAWS: Final = (1, 10, 100, 1000)

#: How often that is done anew, and for how large samples.
_REPEATS: Final = 100
_MOST: Final = 128


def given_rank(sizes: Sequence[int]) -> list[dict[str, Any]]:
    """Return the squared error of each weight at each rank among n."""
    rows: list[dict[str, Any]] = []
    for n in sizes:
        r = np.arange(1, n + 1)
        # The mean of the population rank under Beta(r, n + 1 - r).
        middle = r / (n + 1)
        scale, weights = weight_error_scale(middle, n), {e: rank_weights(n, e) for e in ESTIMATORS}
        for name in ESTIMATORS:
            mse = weight_mse_given_rank(r, n, name)
            columns = (r, middle, weights[name], weights["plugin"], mse, scale)
            heads = ("sample_rank", "mean_rank", "weight", "mean_target", "mse", "scale")
            rows += [
                {"n": n, "estimator": name, **dict(zip(heads, values, strict=True))}
                for values in zip(*(c.tolist() for c in columns), strict=True)
            ]
    return rows


def mean_errors(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the error averaged over the ranks of a sample, and what the paper has for it."""
    errors: dict[tuple[int, str], list[float]] = {}
    for row in rows:
        errors.setdefault((row["n"], row["estimator"]), []).append(row["mse"])
    return [
        {
            "n": n,
            "estimator": name,
            "mean_MSE": float(np.mean(own)),
            "eq_31": mean_weight_error_scale(n),
            "over_eq_31": float(np.mean(own)) / mean_weight_error_scale(n),
        }
        for (n, name), own in errors.items()
    ]


def consistency() -> list[dict[str, Any]]:
    """Return the weight of the sample at a share of the ranks, as n grows, and what it goes to."""
    limits = dict(zip(_SHARES, population_weight(np.array(_SHARES)).tolist(), strict=True))
    out: list[dict[str, Any]] = []
    for name in ESTIMATORS:
        for n in _GROWING:
            weights = rank_weights(n, name)
            for u, limit in limits.items():
                head = {"rank": u, "estimator": name, "n": n}
                weight = float(weights[round(u * n) - 1])
                out.append({**head, "weight": weight, "limit": limit, "error": weight - limit})
    return sorted(out, key=lambda row: row["rank"])


def derivation(sizes: Sequence[int], seed: int) -> list[dict[str, Any]]:
    """Draw population ranks of samples, average -ln(1 - u) at each rank, and measure what is left.

    The draws of a rank have the variance psi'(n + 1 - r) - psi'(n + 1), which averages to H_n/n.
    """
    out = []
    for n in (n for n in sizes if n <= _MOST):
        exact = rank_weights(n)
        of_a_draw = float(weight_mse_given_rank(np.arange(1, n + 1), n).mean())
        for draws in _DRAWS:
            own = named_generator(seed, f"derivation {n} {draws}")
            squares = [
                np.mean((rank_weights(n, "monte-carlo", draws=draws, rng=own) - exact) ** 2)
                for _ in range(_REPEATS)
            ]
            found, expected = float(np.mean(squares)) ** 0.5, (of_a_draw / draws) ** 0.5
            out.append({"n": n, "draws": draws, "RMS_to_plugin": found, "expected_RMS": expected})
    return out


# ------------------------------------------------------------------------------- the figures
def figures(tables: Mapping[str, Sequence[Row]]) -> dict[str, SeriesDisplay]:
    """Return a figure of each of the three."""
    found = {"given-rank": _given(tables["given-rank"]), "consistency": _limits(tables)}
    if tables["derivation"]:
        found["derivation"] = _drawn(tables["derivation"])
    return found


def _given(rows: Sequence[Row]) -> SeriesDisplay:
    def panel(row: Row) -> str:
        return f"n = {row['n']}"

    shown = lines(rows, lambda row: row["mse"], panel, x="mean_rank")
    once = [row for row in rows if row["estimator"] == "plugin"]
    scale = lines(once, lambda row: row["scale"], panel, x="mean_rank")
    named = tuple(Series(_SCALE, s.x, s.y, panel=s.panel) for s in scale)
    return SeriesDisplay(
        (*shown, *named),
        "Mean squared error of the weight of the r-th of n samples",
        "Mean population rank r/(n + 1)",
        "Mean squared error",
        log_x=False,
        log_y=True,
        share_y=True,
        order=(*COLORS, _SCALE),
    )


_SCALE: Final = "u/(n(1 - u) + 1)"


def _limits(tables: Mapping[str, Sequence[Row]]) -> SeriesDisplay:
    shown = lines(
        tables["consistency"], lambda row: abs(row["error"]), lambda row: f"u = {row['rank']:g}"
    )
    return SeriesDisplay(
        shown,
        "Distance of the weight of rank u n among n from -ln(1 - u)",
        "Sample size n",
        "|weight + ln(1 - u)|",
        log_y=True,
        share_y=True,
        order=COLORS,
    )


def _drawn(rows: Sequence[Row]) -> SeriesDisplay:
    sizes = list(dict.fromkeys(row["n"] for row in rows))
    shown = []
    for n in sizes:
        own = [row for row in rows if row["n"] == n]
        x = tuple(float(row["draws"]) for row in own)
        for name, column in (("drawn", "RMS_to_plugin"), ("sqrt(H_n/(n draws))", "expected_RMS")):
            shown.append(Series(name, x, tuple(row[column] for row in own), panel=f"n = {n}"))
    return SeriesDisplay(
        tuple(shown),
        "Monte-Carlo weights go to the harmonic ones",
        "Draws",
        "Root mean squared distance",
        log_y=True,
        share_y=True,
    )


# ------------------------------------------------------------------------------- the words
def said(tables: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    """Say what the tables have."""
    yield from _mean_said(tables["mean-error"])
    yield from _consistency_said(tables["consistency"])
    if rows := tables["derivation"]:
        ratios = [row["RMS_to_plugin"] / row["expected_RMS"] for row in rows]
        most = max(row["draws"] for row in rows)
        yield (
            "Weights drawn from the law of the ranks (eq. 15-17) go to the plug-in weights: their "
            f"distance is {value_range(ratios, '{:.2f}')} times what it should be from the error "
            f"of a draw, for 1 to {most} draws."
        )


def _mean_said(rows: Sequence[Row]) -> Iterator[str]:
    by = {(row["n"], row["estimator"]): row for row in rows}
    sizes = sorted({n for n, _ in by})
    ends = list(dict.fromkeys((sizes[0], sizes[-1])))
    plugin = " and ".join(
        f"{by[n, 'plugin']['mean_MSE']:.3g} at n = {n} ({by[n, 'plugin']['over_eq_31']:.2f} times "
        "eq. 31)"
        for n in ends
    )
    least = [min((by[n, name]["mean_MSE"], name) for name in ESTIMATORS)[1] for n in sizes]
    best = (
        "least of the four at every n" if set(least) == {"plugin"} else "not the least everywhere"
    )
    yield (
        "Given its rank among the n, the squared error of a plug-in weight averages to H_n/n: "
        f"{plugin}, {best}."
    )
    stays = [name for name in ESTIMATORS if by[ends[-1], name]["mean_MSE"] > 0.1]
    if stays and len(ends) > 1:
        listed = ", ".join(
            f"{ESTIMATOR_TITLES[name]} {by[ends[-1], name]['mean_MSE']:.3g}" for name in stays
        )
        yield f"At n = {ends[-1]} it is still {listed}: they do not go to -ln(1 - u)."


def _consistency_said(rows: Sequence[Row]) -> Iterator[str]:
    largest = max(row["n"] for row in rows)
    at: dict[str, list[float]] = {name: [] for name in ESTIMATORS}
    for row in rows:
        if row["n"] == largest:
            at[row["estimator"]].append(abs(row["error"]))
    parts = [f"{ESTIMATOR_TITLES[name]} {max(errors):.2g}" for name, errors in at.items()]
    yield (
        f"At n = {largest:,} the weight at a fixed share of the ranks is off -ln(1 - u) by at most "
        f"{', '.join(parts)}: consistent are those that go to 0."
    )
