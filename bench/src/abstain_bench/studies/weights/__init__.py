"""How far the weight of a sample is from that of its population rank: bias and error, exactly."""

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
from abstain_bench.studies._data import checked_sizes
from abstain_bench.studies._figures import lines
from abstain_bench.studies._sentences import signed, value_range
from abstain_bench.studies._study import Row, StudyEntry, StudyResult, timed
from abstain_bench.studies._words import COLORS, ESTIMATOR_TITLES, PAPER, WORDS
from abstain_bench.studies.weights import positions
from abstain_bench.studies.weights.positions import ESTIMATORS

_SURFACE_SIZES: Final = tuple(int(n) for n in np.unique(np.geomspace(8, 1024, 22).round()))
_SURFACE_POINTS: Final = 60


@timed
def study_weights(
    *, sizes: Sequence[int] = (8, 32, 128, 1024), points: int = 199, rng: Rng = 0
) -> StudyResult:
    """Compute the exact bias and mean squared error of the rank weights.

    Answers: how far is the weight that a sample gets from its rank among n from the weight of its
    rank u in the population?

    Parameters
    ----------
    sizes : sequence of int, default=(8, 32, 128, 1024)
        Sample sizes, at least 2.
    points : int, default=199
        Population ranks u, evenly spaced strictly between 0 and 1.
    rng : int, numpy.random.Generator or None, default=0
        Seed or generator of the drawn weights of the table "derivation".

    Returns
    -------
    StudyResult
        Tables "results" (n, rank, estimator, weight, bias, mse, scale), "summary", "given-rank"
        (the error at each rank among n, eq. 23 and 29), "mean-error" (its mean, beside eq. 31),
        "consistency" (prop. A.1) and "derivation" (drawn weights, eq. 15-17; up to n = 128);
        figures "bias" (figures 1 and S8 of the paper), "mse" and "ratio" (over the scale, which
        the paper's figure 2 shows), "given-rank", "consistency" and "derivation".

    Raises
    ------
    InputError
        If a size is below 2 or there are no points.

    Notes
    -----
    The rank of a sample that counts itself is 1 + Binomial(n - 1, u), so expectations are finite
    sums; given that rank, u has the law Beta(r, n + 1 - r), and they are closed forms. Cost: some
    seconds.

    References
    ----------
    .. [1] Zhou et al. (2025), eq. 15-17, 21, 22 and 28 (bias), 23, 24 and 29-31
       (error), 27 (consistency), https://arxiv.org/abs/2410.15361

    Examples
    --------
    >>> found = study_weights(sizes=[8], points=5)
    >>> found.frame().filter(estimator="sele")["bias"].round(3).to_list()
    [0.089, 0.011, -0.131, -0.39, -0.938]
    """
    chosen, seed = checked_sizes(sizes, least=2), as_seed(rng)
    ranks = np.arange(1, checks.positive_int(points, "points") + 1) / (points + 1)
    rows = [row for n in chosen for row in _rows(n, ranks)]
    summary = [_summary(n, name, rows) for n in chosen for name in ESTIMATORS]
    given = positions.given_rank(chosen)
    others = {
        "given-rank": given,
        "mean-error": positions.mean_errors(given),
        "consistency": positions.consistency(),
        "derivation": positions.derivation(chosen, seed),
    }
    return WEIGHTS.result(
        parameters={"sizes": chosen, "points": points, "seed": seed},
        tables={"results": rows, "summary": summary, **others},
        shown=("summary", "mean-error"),
        figures=_figures(rows, chosen) | positions.figures(others),
        notes=(_NOTE,),
        verdict=(*_verdict(summary, ranks), *positions.said(others)),
    )


def _rows(n: int, ranks: FloatArray) -> list[dict[str, Any]]:
    scale = weight_error_scale(ranks, n)
    weight = population_weight(ranks)
    out: list[dict[str, Any]] = []
    for name in ESTIMATORS:
        bias, mse = weight_bias(ranks, n, name), weight_mse(ranks, n, name)
        columns = zip(
            ranks.tolist(),
            weight.tolist(),
            bias.tolist(),
            mse.tolist(),
            scale.tolist(),
            strict=True,
        )
        out += [
            {"n": n, "rank": u, "estimator": name, "weight": w, "bias": b, "mse": m, "scale": s}
            for u, w, b, m, s in columns
        ]
    return out


def _summary(n: int, name: Any, rows: Sequence[Row]) -> dict[str, Any]:
    """Return what the curves of one estimator say in a few numbers."""
    mine = [row for row in rows if row["n"] == n and row["estimator"] == name]
    inside = [row for row in mine if 1 / n <= row["rank"] <= 1 - 1 / n]
    ratio = [row["mse"] / row["scale"] for row in inside] or [float("nan")]
    return {
        "n": n,
        "estimator": name,
        "mean_weight": float(rank_weights(n, name).mean()),
        "bias_at_half": _at(mine, 0.5, "bias"),
        "bias_at_90": _at(mine, 0.9, "bias"),
        "MSE_at_half": _at(mine, 0.5, "mse"),
        "MSE_at_90": _at(mine, 0.9, "mse"),
        "least_MSE/scale": min(ratio),
        "largest_MSE/scale": max(ratio),
    }


def _at(rows: Sequence[Row], rank: float, column: str) -> float:
    """Return the value at the nearest rank there is."""
    nearest = min(rows, key=lambda row: abs(row["rank"] - rank))
    return float(nearest[column])


def _figures(rows: Sequence[Row], sizes: tuple[int, ...]) -> dict[str, Any]:
    def drawn(value: Callable[[Row], float], title: str, axis: str, **more: Any) -> SeriesDisplay:
        shown = lines(rows, value, lambda row: f"n = {row['n']}", x="rank")
        x = "Population rank u"
        return SeriesDisplay(shown, title, x, axis, log_x=False, order=COLORS, share_y=True, **more)

    panels = [f"n = {n}" for n in sizes]
    return {
        "bias": drawn(
            lambda row: row["bias"],
            "Bias of the weight of a sample, by its rank in the population",
            "Bias of the weight",
            linear_to=0.01,
            level=dict.fromkeys(panels, 0.0),
            level_name="no bias",
        ),
        "mse": _surface(),
        "ratio": drawn(
            lambda row: row["mse"] / row["scale"],
            "Mean squared error of the weight as a multiple of u/(n(1 - u) + 1)",
            "MSE / scale",
            log_y=True,
            level=dict.fromkeys(panels, 1.0),
            level_name="as large as the scale",
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
        "Mean squared error of the weight, by population rank and sample size",
        "Population rank u",
        "Sample size n",
        "Mean squared error",
    )


def _verdict(summary: Sequence[Mapping[str, Any]], ranks: FloatArray) -> Iterator[str]:
    plugin, log = (
        [row for row in summary if row["estimator"] == name] for name in ("plugin", "log")
    )
    # At the smallest and the largest size.
    ends = [f"{row['mean_weight']:.4f} at n = {row['n']}" for row in (log[0], log[-1])]
    yield (
        "The plug-in weights average to 1 at every n, as -ln(1 - u) does over the population: what "
        "they lose at the most confident ranks they add elsewhere. The log weights average to "
        f"{' and '.join(dict.fromkeys(ends))}."
    )
    ratios = [x for row in plugin for x in (row["least_MSE/scale"], row["largest_MSE/scale"])]
    # Where the table has ranks for it.
    if known := [x for x in ratios if np.isfinite(x)]:
        yield (
            "At the ranks of the table between u = 1/n and 1 - 1/n the squared error of a plug-in "
            f"weight is {value_range(known, '{:.2g}')} times u/(n(1 - u) + 1): its size, not a "
            "bound. Above, every error grows without end, since -ln(1 - u) does and no weight of a "
            "finite sample can follow; below, the squared bias 1/n² is left."
        )
    largest = max(row["n"] for row in summary)
    sele = next(row for row in summary if row["n"] == largest and row["estimator"] == "2sele")
    high = float(ranks[np.argmin(np.abs(ranks - 0.9))])
    yield (
        f"2 x SELE does not improve with n: at n = {largest}, u = {high:.3g} its weight is off by "
        f"{signed(sele['bias_at_90'], '{:.3f}')}."
    )


_NOTE: Final = (
    "Exact: sums over the binomial law of the rank of a sample that counts itself, and closed "
    "forms under the Beta law of its population rank; drawn are only the weights of the derivation."
)

#: The study in the catalogue.
WEIGHTS: Final = StudyEntry(
    name="weights",
    title="Bias and error of the rank weights",
    question=(
        "A sample has a rank among n; its weight should be that of its rank in the population, "
        "-ln(1 - u). How far off is it on average, and how large is the squared error?"
    ),
    source=f"Zhou et al. (2025), fig. 1, 2 and S8, prop. 3.3-3.5 and A.1-A.4, {PAPER}",
    run=study_weights,
    quick={"sizes": (8, 128), "points": 99},
    captions={
        "summary": "MSE/scale: over ranks from 1/n to 1 - 1/n. Bias and MSE: at the nearest rank.",
        "bias": (
            "Above the dotted line a sample of that rank counts too much, below it too little. The "
            "axis is linear up to 0.01 and logarithmic beyond."
        ),
        "mse": "One color scale for all panels; the last one is the scale u/(n(1 - u) + 1).",
        "ratio": "Where a line lies at 1, the scale is the error.",
        "results": "Every rank; weight is -ln(1 - u), scale is u/(n(1 - u) + 1).",
        "given-rank": (
            "The rank r among n is given, and the population rank has the law Beta(r, n + 1 - r): "
            "eq. 23 for the plug-in, eq. 29 for the log weight. The scale is that at the mean rank."
        ),
        "mean-error": (
            "The error given the rank among n, averaged over the n ranks; eq. 31 is "
            "(n + 1) ln(n + 1)/n² - 1/n."
        ),
        "consistency": "The weight of the sample of rank u n among n, and -ln(1 - u).",
        "derivation": (
            "Population ranks of n samples are drawn and -ln(1 - u) is averaged at each rank: the "
            "distance from the plug-in weights in a hundred repetitions, and the square root of "
            "H_n/n over the draws, which it should be."
        ),
    },
    glossary={
        word: WORDS[word]
        for word in ("Rank u", "plug-in", "log", "SELE", "2 x SELE", "MSE", "Scale")
    },
    labels=ESTIMATOR_TITLES,
)
