"""How fast every estimator comes near to the truth as the sample grows."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from abstain._foundation.random import named_generator, seed_of
from abstain.errors import InputError
from abstain.plots.series import Series, SeriesDisplay
from abstain.studies._convergence_words import CAPTIONS, NOTE, verdict
from abstain.studies._estimates import rows_of
from abstain.studies._figures import above_zero
from abstain.studies._given import (
    Data,
    Populations,
    StudyRequest,
    chosen_names,
    enough,
    sources_of,
    ties_said,
    truths_said,
)
from abstain.studies._rates import RATES, fit
from abstain.studies._sources import Source
from abstain.studies._study import Row, StudyEntry, StudyResult, stopwatch
from abstain.studies._words import COLORS, ESTIMATOR_TITLES, PAPER, WORDS
from abstain.studies.weights import checked_sizes
from abstain.typing import Rng

SIZES: Final = tuple(2**k for k in range(5, 18, 2))

#: What is studied without a file: smooth, overconfident, a continuous loss.
USUAL: Final = ("two-gaussians", "beta-scores", "continuous-loss")

#: Numbers drawn for each size: as many samples as that allows, within these limits.
_BUDGET: Final = 2_000_000
_FEWEST, _MOST = 64, 2000

#: Monte-Carlo weights would add nothing to the plug-in but their own noise.
NAMES: Final = ("plugin", "log", "trapezoid", "sele", "2sele", "augrc")

#: As a share of the truth: where every estimate is the truth, nothing but this is left.
_ROUNDING: Final = 1e-12

#: The least standard error of ln RMSE.
_SURE: Final = 1e-6

#: A slope above this is that of an error which does not go away.
_FLAT: Final = -0.25


def study_convergence(
    data: Data = None,
    *,
    populations: Populations = (),
    scores: Sequence[str] | None = None,
    losses: Sequence[str] | None = None,
    sizes: Sequence[int] = SIZES,
    repeats: int | None = None,
    rng: Rng = 0,
) -> StudyResult:
    """Fit the rate at which every estimator converges.

    Answers: does the error fall like sqrt(ln n / n), the rate that the paper proves, or faster?

    Parameters
    ----------
    data : Predictions, or mapping from name or split to Predictions, optional
        Samples are drawn from its rows independently; the truth is the limit of the plug-in.
    populations : sequence of str, Population or LogitPopulation, optional
        Simulated populations, whose truth is exact. Without data and populations: three.
    scores, losses : sequence of str, optional
        Of data, as in `study_estimators`.
    sizes : sequence of int, default=(32, 128, ..., 131072)
        At least 3 sample sizes of at least 8.
    repeats : int, optional
        Samples of each size, at least 2. By default as many as two million draws allow, between
        64 and 2000.
    rng : int, numpy.random.Generator or None, default=0
        A seed, a generator, or None for fresh entropy.

    Returns
    -------
    StudyResult
        Tables "results" (mean, bias, MSE and MAE at each size) and "rates" (slope of ln RMSE on
        ln n with its 95 % interval, what that agrees with, the constants of both rates); figures
        "rmse" and "bound" (RMSE over sqrt(ln n / n)).

    Raises
    ------
    InputError
        If a name is unknown or there are fewer than 3 sizes.

    Notes
    -----
    A line through ln RMSE, each point weighted by its Monte-Carlo error; the interval is widened
    where the points lie farther from a line than that error explains. Cost: a sort of two million
    numbers for each size and score.

    References
    ----------
    .. [1] Zhou et al. (2025), proposition 3.6, eq. 25-26, https://arxiv.org/abs/2410.15361

    Examples
    --------
    >>> found = study_convergence(populations=["beta-scores"], sizes=[32, 128, 512], repeats=400)
    >>> found.frame("rates").filter(estimator="plugin")["slope"].round(1).to_list()
    [-0.5]
    """
    with stopwatch() as seconds:
        chosen = checked_sizes(sizes, least=8)
        if len(chosen) < 3:
            msg = f"a rate needs at least 3 different `sizes`; got {chosen}"
            raise InputError(msg)
        seed = seed_of(rng)
        wanted = StudyRequest(chosen_names(scores), chosen_names(losses), replace=True)
        sources, notes = sources_of(data, populations, USUAL, wanted)
        rows: list[Row] = []
        for source in sources:
            rows += _rows(source, chosen, repeats, named_generator(seed, source.name))
        rates, fits = _rates(rows)
        return CONVERGENCE.result(
            parameters={
                "data": tuple(source.name for source in sources),
                "sizes": chosen,
                "repeats": "by size" if repeats is None else repeats,
            },
            tables={"results": rows, "rates": rates, "fits": fits},
            shown=("rates",),
            figures=_figures(rows),
            notes=(*notes, NOTE, *ties_said(sources), *truths_said(sources)),
            verdict=verdict(rates, fits),
            seconds=seconds(),
            captions=CAPTIONS,
            glossary=WORDS,
            labels=ESTIMATOR_TITLES,
        )


def _repeats(n: int, repeats: int | None) -> int:
    if repeats is None:
        return int(np.clip(_BUDGET // n, _FEWEST, _MOST))
    return enough(repeats)


def _rows(
    source: Source, sizes: tuple[int, ...], repeats: int | None, rng: np.random.Generator
) -> Iterator[dict[str, Any]]:
    for n in sizes:
        for row in rows_of(source, NAMES, n, _repeats(n, repeats), rng):
            del row["samples"]
            yield row


def _rates(rows: Sequence[Row]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the slope of each case, and how well either rate fits it."""
    keys = ("data", "loss", "score", "estimator")
    varied = [k for k in keys if len({row[k] for row in rows}) > 1 or k in {"data", "estimator"}]
    slopes, fits = [], []
    for case in dict.fromkeys(tuple(row[k] for k in keys) for row in rows):
        mine = [row for row in rows if tuple(row[k] for k in keys) == case]
        n = np.array([float(row["n"]) for row in mine])
        mse = np.array([row["mse"] for row in mine])
        # Errors of the size of rounding are none.
        rmse = np.where(np.sqrt(mse) > _ROUNDING * mine[0]["truth"], np.sqrt(mse), 0.0)
        # Of ln RMSE. A share, so that the scale of the loss has no part in it; errors that do not
        # vary count alike.
        relative = [row["mse_se"] / (2 * row["mse"]) if row["mse"] else 0.0 for row in mine]
        found = fit(n, rmse, np.maximum(relative, _SURE))
        about = dict(zip(keys, case, strict=True))
        about = {k: about[k] for k in varied}
        line = {"slope": found.slope, "slope_low": found.low, "slope_high": found.high}
        agrees = _agrees(found.low, found.high, found.expected)
        slopes.append({**about, **line, "agrees_with": agrees})
        fits += [
            {
                **about,
                "rate": name,
                "slope_of_rate": found.expected[name],
                "constant": found.constant[name],
                "misfit": found.misfit[name],
            }
            for name in RATES
        ]
    return slopes, fits


def _agrees(low: float, high: float, expected: dict[str, float]) -> str:
    """Say which rates have a slope within the interval."""
    if not np.isfinite(low + high):
        return "no error at some size"
    if low > _FLAT:
        return "no convergence"
    inside = [name for name, slope in expected.items() if low <= slope <= high]
    if inside:
        return " and ".join(inside)
    if high < min(expected.values()):
        return "faster than both"
    return "slower than both" if low > max(expected.values()) else "between the two"


def _figures(rows: Sequence[Row]) -> dict[str, Any]:
    errors = above_zero(_lines(rows, lambda row: np.sqrt(row["mse"])))
    if not errors:
        return {}
    return {
        "rmse": SeriesDisplay(
            errors,
            "Root mean squared error against sample size",
            "Sample size n",
            "RMSE",
            log_y=True,
            order=COLORS,
        ),
        "bound": SeriesDisplay(
            _lines(
                [row for row in rows if row["estimator"] not in {"sele", "2sele"}],
                lambda row: np.sqrt(row["mse"] / (np.log(row["n"]) / row["n"])),
            ),
            "RMSE over sqrt(ln n / n): level where that is the rate, falling where it is faster",
            "Sample size n",
            "RMSE / sqrt(ln n / n)",
            order=COLORS,
        ),
    }


def _lines(rows: Sequence[Row], value: Any) -> tuple[Series, ...]:
    out = []
    keys = dict.fromkeys((_panel(row, rows), row["estimator"]) for row in rows)
    for panel, name in keys:
        mine = [r for r in rows if _panel(r, rows) == panel and r["estimator"] == name]
        x = tuple(float(row["n"]) for row in mine)
        y = np.array([float(value(row)) for row in mine])
        # Two standard errors of the mean squared error are one of its root, as a share of it.
        half = y * [row["mse_se"] / max(row["mse"], 1e-300) for row in mine]
        ends = tuple((y - half).tolist()), tuple((y + half).tolist())
        out.append(Series(ESTIMATOR_TITLES[name], x, tuple(y.tolist()), *ends, panel))
    return tuple(out)


def _panel(row: Row, rows: Sequence[Row]) -> str:
    """Name a case by what sets it apart from the others."""
    varied = [k for k in ("data", "score", "loss") if len({r[k] for r in rows}) > 1]
    return ", ".join(row[k] for k in varied) or row["data"]


#: The study in the catalogue.
CONVERGENCE: Final = StudyEntry(
    name="convergence",
    title="Rate of convergence of the estimators",
    question="Does the error of each estimator fall like sqrt(ln n / n), or faster?",
    source=f"Zhou et al. (2025), proposition 3.6, {PAPER}",
    run=study_convergence,
)
