"""How fast every estimator comes near to the truth as the sample grows."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from abstain._foundation.random import as_seed, named_generator
from abstain.errors import InputError
from abstain.plots.series import Series, SeriesDisplay
from abstain.typing import FloatArray, Rng
from abstain_bench.studies._data import (
    Data,
    Populations,
    StudyRequest,
    checked_sizes,
    enough,
    ties_said,
    truths_said,
)
from abstain_bench.studies._estimates import rows_of
from abstain_bench.studies._figures import above_zero, lines
from abstain_bench.studies._models import CAPTION, OVER_MODELS, over_models, tables_of
from abstain_bench.studies._sentences import value_range
from abstain_bench.studies._sources import Source
from abstain_bench.studies._study import Row, StudyEntry, StudyResult, timed
from abstain_bench.studies._words import (
    AREA_ESTIMATORS,
    COLORS,
    ESTIMATOR_TITLES,
    PAPER,
    WORDS,
)

#: What is studied without a file: smooth, overconfident, a continuous loss.
USUAL: Final = ("two-gaussians", "beta-scores", "continuous-loss")

#: Numbers drawn for each size: as many samples as that allows, within these limits.
_BUDGET: Final = 2_000_000
_FEWEST, _MOST = 64, 2000

#: Monte-Carlo weights would add nothing to the plug-in but their own noise.
NAMES: Final = tuple(name for name in AREA_ESTIMATORS if name != "monte-carlo")

#: As a share of the truth: where every estimate is the truth, nothing but this is left.
_ROUNDING: Final = 1e-12

#: The two rates, as functions of n.
RATES: Final[dict[str, Callable[[FloatArray], FloatArray]]] = {
    "1/sqrt(n)": lambda n: 1 / np.sqrt(n),
    "sqrt(ln n / n)": lambda n: np.sqrt(np.log(n) / n),
}

#: Of the interval of a slope.
_LEVEL: Final = 0.95

#: The least standard error of ln RMSE.
_SURE: Final = 1e-6

#: These go to AUGRC and twice AUGRC.
_OTHER_LIMIT: Final = frozenset(n for n, e in AREA_ESTIMATORS.items() if not e.consistent)

#: Intervals that lie below the slope of sqrt(ln n / n).
_STEEPER: Final = frozenset({"1/sqrt(n)", "faster than both", "between the two"})

#: A slope above this is that of an error which does not go away.
_FLAT: Final = -0.25


class RateFit(NamedTuple):
    """A rate through errors: its own slope over these sizes, its factor, its distance.

    The distance is squared, in Monte-Carlo standard errors, per degree of freedom.
    """

    slope_of_rate: float
    constant: float
    misfit: float


class Fit(NamedTuple):
    """A power law through errors: slope of ln error on ln n with its interval, and both rates."""

    slope: float
    low: float
    high: float
    rates: dict[str, RateFit]


@timed
def study_convergence(
    data: Data = None,
    *,
    populations: Populations = (),
    scores: Sequence[str] | None = None,
    losses: Sequence[str] | None = None,
    sizes: Sequence[int] = (32, 128, 512, 2048, 8192, 32768, 131072),
    repeats: int | None = None,
    rng: Rng = 0,
) -> StudyResult:
    """Fit the rate at which every estimator converges.

    Answers: does the error fall like sqrt(ln n / n), the rate that the paper proves, or faster?
    Rows of files are drawn independently.

    Parameters
    ----------
    data : Predictions, or mapping from name or split to Predictions, optional
        Samples are drawn from its rows independently; the truth is the limit of the plug-in.
    populations : sequence of str, Population or LogitPopulation, optional
        Simulated populations (``abstain list populations``), whose truth is exact. Without data
        and populations: three.
    scores : sequence of str, optional
        Scores of the data (``abstain list scores``); by default the six of the paper.
    losses : sequence of str, optional
        Losses of the data; by default zero_one and, with class scores, cross_entropy.
    sizes : sequence of int, default=(32, 128, ..., 131072)
        At least 3 sample sizes of at least 8.
    repeats : int, optional
        Samples of each size, at least 2. By default as many as two million draws allow, between
        64 and 2000.
    rng : int, numpy.random.Generator or None, default=0
        Seed or generator of all random numbers; None for fresh entropy.

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
    chosen = checked_sizes(sizes, least=8)
    if len(chosen) < 3:
        raise InputError(f"a rate needs at least 3 different `sizes`; got {chosen}")
    seed = as_seed(rng)
    asked = StudyRequest(data, populations, scores, losses, replace=True)
    sources = asked.sources(USUAL)
    rows: list[Row] = []
    for source in sources:
        rows += _rows(source, chosen, repeats, named_generator(seed, source.name))
    rates, fits = _rates(rows)
    by = [name for name in ("loss", "score", "estimator") if name in rates[0]]
    over = over_models(rates, set(asked.parts), by, {"slope": lambda row: row["slope"]})
    return CONVERGENCE.result(
        parameters={
            "data": tuple(source.name for source in sources),
            "sizes": chosen,
            "repeats": "by size" if repeats is None else repeats,
        },
        tables={"results": rows, "rates": rates, "fits": fits} | tables_of(over),
        shown=("rates",),
        figures=_figures(rows),
        notes=(*asked.left_out, _NOTE, *ties_said(sources), *truths_said(sources)),
        verdict=tuple(_verdict(rates, fits)),
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
        about = {k: own for k, own in zip(keys, case, strict=True) if k in varied}
        line = {"slope": found.slope, "slope_low": found.low, "slope_high": found.high}
        slopes.append({**about, **line, "agrees_with": _agrees(found)})
        fits += [{**about, "rate": name, **to._asdict()} for name, to in found.rates.items()]
    return slopes, fits


def fit(sizes: FloatArray, errors: FloatArray, relative: FloatArray) -> Fit:
    """Fit a power law and both rates to errors above 0, with the standard errors of ln error.

    NaN throughout where an error is 0.

    Examples
    --------
    >>> import numpy as np
    >>> n = np.array([32.0, 128.0, 512.0])
    >>> found = fit(n, 0.3 / np.sqrt(n), np.full(3, 0.02))
    >>> round(found.slope, 6), round(found.rates["1/sqrt(n)"].constant, 6)
    (-0.5, 0.3)
    """
    if not (errors > 0).all():
        return Fit(*(float("nan"),) * 3, dict.fromkeys(RATES, RateFit(*(float("nan"),) * 3)))
    from scipy.stats import t as student

    x, y, weight = np.log(sizes), np.log(errors), relative**-2.0
    center = np.average(x, weights=weight)
    spread = float((weight * (x - center) ** 2).sum())
    slope = _slope(x, y, weight)
    left = y - np.average(y, weights=weight) - slope * (x - center)
    freedom = sizes.size - 2
    # Wider where the points lie farther from a line than their own error explains.
    excess = max(1.0, float((weight * left**2).sum()) / freedom)
    half = float(student.ppf((1 + _LEVEL) / 2, freedom)) * np.sqrt(excess / spread)
    rates = {}
    for name, rate in RATES.items():
        shape = np.log(rate(sizes))
        shift = np.average(y - shape, weights=weight)
        misfit = float((weight * (y - shape - shift) ** 2).sum() / (sizes.size - 1))
        rates[name] = RateFit(_slope(x, shape, weight), float(np.exp(shift)), misfit)
    return Fit(slope, slope - half, slope + half, rates)


def _slope(x: FloatArray, y: FloatArray, weight: FloatArray) -> float:
    centered = x - np.average(x, weights=weight)
    return float((weight * centered * y).sum() / (weight * centered**2).sum())


def _agrees(found: Fit) -> str:
    """Say which rates have a slope within the interval."""
    expected = {name: to.slope_of_rate for name, to in found.rates.items()}
    if not np.isfinite(found.low + found.high):
        return "no error at some size"
    if found.low > _FLAT:
        return "no convergence"
    inside = [name for name, slope in expected.items() if found.low <= slope <= found.high]
    if inside:
        return " and ".join(inside)
    if found.high < min(expected.values()):
        return "faster than both"
    return "slower than both" if found.low > max(expected.values()) else "between the two"


def _figures(rows: Sequence[Row]) -> dict[str, Any]:
    errors = above_zero(_lines(rows, lambda row: np.sqrt(row["mse"])))
    if not errors:
        return {}
    bound = _lines(
        [row for row in rows if row["estimator"] not in _OTHER_LIMIT],
        lambda row: np.sqrt(row["mse"] / (np.log(row["n"]) / row["n"])),
    )
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
            bound,
            "RMSE over sqrt(ln n / n): level where that is the rate, falling where it is faster",
            "Sample size n",
            "RMSE / sqrt(ln n / n)",
            order=COLORS,
        ),
    }


def _lines(rows: Sequence[Row], value: Callable[[Row], float]) -> tuple[Series, ...]:
    # A panel is named by what sets its case apart from the others.
    varied = [k for k in ("data", "score", "loss") if len({row[k] for row in rows}) > 1]
    return lines(
        rows,
        value,
        lambda row: ", ".join(row[k] for k in varied) or row["data"],
        # Two standard errors of the mean squared error are one of its root, as a share of it.
        half=lambda row: value(row) * (row["mse_se"] / max(row["mse"], 1e-300)),
    )


# ------------------------------------------------------------------------------ what they say
def _verdict(rates: Sequence[Row], fits: Sequence[Row]) -> Iterator[str]:
    """Say which rate the errors follow, as far as there are errors."""
    known = [row for row in rates if np.isfinite(row["slope"])]
    kept = [row for row in known if row["estimator"] not in _OTHER_LIMIT]
    if kept:
        yield from _which(kept, fits)
    others = [row["slope"] for row in known if row["estimator"] in _OTHER_LIMIT]
    if others:
        yield (
            "SELE and 2 x SELE go to AUGRC and twice AUGRC, so that their errors stay where those "
            f"are far from the AURC: slopes of {value_range(others, '{:.2f}')}."
        )
    if len(known) < len(rates):
        yield (
            f"{len(rates) - len(known)} of {len(rates)} fits have no slope, as there is no error "
            "at some size."
        )


def _which(kept: Sequence[Row], fits: Sequence[Row]) -> Iterator[str]:
    """Say which of the two rates is nearer to the errors of consistent estimators."""
    steep, log = ([r["misfit"] for r in fits if _is(r, name)] for name in RATES)
    nearer = sum(a < b for a, b in zip(steep, log, strict=True))
    within = sum("1/sqrt(n)" in row["agrees_with"] for row in kept)
    slopes = value_range([row["slope"] for row in kept], "{:.3f}")
    expected = value_range([r["slope_of_rate"] for r in fits if _is(r, tuple(RATES)[1])], "{:.3f}")
    steeper = sum(row["agrees_with"] in _STEEPER for row in kept)
    yield (
        f"Plug-in, log, trapezoid and AUGRC: RMSE follows 1/sqrt(n) more closely than "
        f"sqrt(ln n / n) in {nearer} of {len(kept)} fits. Slopes are {slopes}, where 1/sqrt(n) has "
        f"\u22120.5 and sqrt(ln n / n) has {expected} over these sizes; {within} of {len(kept)} "
        f"intervals hold \u22120.5, {steeper} lie below that of sqrt(ln n / n)."
    )
    if min(nearer, steeper) > len(kept) / 2:
        yield (
            "So sqrt(ln n / n) is an upper bound on the rate that these data do not reach: the "
            "error falls faster by a factor of sqrt(ln n)."
        )


def _is(row: Row, rate: str) -> bool:
    mine = row["rate"] == rate and row["estimator"] not in _OTHER_LIMIT
    return mine and bool(np.isfinite(row["misfit"]))


_NOTE: Final = (
    "Rows of a file are drawn independently, so that samples may be larger than the file. Rows "
    "that come twice are tied, which leaves the trapezoid an error of the order 1/N for N rows."
)

#: The study in the catalogue.
CONVERGENCE: Final = StudyEntry(
    name="convergence",
    title="Rate of convergence of the estimators",
    question="Does the error of each estimator fall like sqrt(ln n / n), or faster?",
    source=f"Zhou et al. (2025), proposition 3.6, {PAPER}",
    run=study_convergence,
    quick={"repeats": 200},
    captions={
        "results": "Each number with its Monte-Carlo standard error.",
        "rates": "Slope of ln RMSE on ln n with its 95 % interval.",
        OVER_MODELS: CAPTION,
        "fits": (
            "The constant of each rate, and the squared distance from it in Monte-Carlo standard "
            "errors, 1 where nothing but chance is left."
        ),
        "rmse": "A slope of one half is the rate 1/sqrt(n).",
        "bound": "SELE and 2 x SELE are left out: their errors do not go away.",
    },
    glossary=WORDS,
    labels=ESTIMATOR_TITLES,
)
