"""Fit convergence rates of estimators of the area under the risk-coverage curve."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from abstain._foundation.random import as_seed, named_generator
from abstain.errors import InputError
from abstain.plots.series import SeriesDisplay
from abstain.typing import FloatArray, Rng
from abstain_bench.studies._area_estimators import (
    AREA_ESTIMATORS,
    COLOR_ORDER,
    ESTIMATOR_TITLES,
    GLOSSARY,
    INCONSISTENT,
    PAPER_URL,
    error_rows,
    estimator_series,
)
from abstain_bench.studies._display import (
    Row,
    average_over_models,
    counted,
    group_rows,
    panels_above_zero,
    unique_values,
    value_range,
)
from abstain_bench.studies._inputs import (
    DataArgument,
    PopulationsArgument,
    StudyRequest,
    check_repeats,
    check_sizes,
    tie_notes,
    true_value_notes,
)
from abstain_bench.studies._study import StudyEntry, StudyResult, timed

#: Default populations. "beta-scores" is overconfident, and "continuous-loss" has no 0/1 loss.
DEFAULT_POPULATIONS: Final = ("two-gaussians", "beta-scores", "continuous-loss")

#: Number of values that are drawn for each sample size.
_N_VALUES: Final = 2_000_000
#: Limits of the number of samples of each size.
_MIN_REPEATS = 64
_MAX_REPEATS = 2000

#: Evaluated estimators. Monte-Carlo is omitted, because it equals the plug-in with added noise.
NAMES: Final = tuple(name for name in AREA_ESTIMATORS if name != "monte-carlo")

#: Relative errors below this value are rounding errors.
_ROUNDING: Final = 1e-12

#: Both rates as functions of the sample size.
ROOT_RATE: Final = "1/sqrt(n)"
LOG_RATE: Final = "sqrt(ln n / n)"
RATES: Final[dict[str, Callable[[FloatArray], FloatArray]]] = {
    ROOT_RATE: lambda n: 1 / np.sqrt(n),
    LOG_RATE: lambda n: np.sqrt(np.log(n) / n),
}

#: Confidence level of the interval of a slope.
_LEVEL: Final = 0.95

#: Lower bound of the standard error of ln RMSE, which avoids infinite weights.
_MIN_LOG_ERROR: Final = 1e-6

#: Classifications of slopes whose interval is below the slope of sqrt(ln n / n).
_STEEPER: Final = frozenset({ROOT_RATE, "faster than both", "between the two"})

#: If the interval of a slope is above this value, the error does not converge to 0.
_FLAT_SLOPE: Final = -0.25


class RateFit(NamedTuple):
    """A rate of convergence that is fitted to errors.

    `slope_of_rate` is the slope of ln rate on ln n over the sample sizes, and `constant` is the
    fitted factor. `misfit` is the chi-squared statistic divided by its degrees of freedom.
    """

    slope_of_rate: float
    constant: float
    misfit: float


class Fit(NamedTuple):
    """A power law that is fitted to errors.

    `slope` is the slope of ln error on ln n, with the confidence interval from `low` to `high`.
    """

    slope: float
    low: float
    high: float
    rates: dict[str, RateFit]


@timed
def study_convergence(
    data: DataArgument = None,
    *,
    populations: PopulationsArgument = (),
    scores: Sequence[str] | None = None,
    losses: Sequence[str] | None = None,
    sizes: Sequence[int] = (32, 128, 512, 2048, 8192, 32768, 131072),
    repeats: int | None = None,
    rng: Rng = 0,
) -> StudyResult:
    """Fit the rate of convergence of each estimator of the AURC.

    The paper proves that the error decreases at least as fast as sqrt(ln n / n). The study answers
    the question: does the error decrease faster?

    Parameters
    ----------
    data : Predictions, or mapping from name or split to Predictions, optional
        Predictions whose rows are drawn with replacement. The true value is the limit of the
        plug-in estimate for large samples.
    populations : sequence of str, Population or LogitPopulation, optional
        Simulated populations (``abstain list populations``) with exact true values. The default is
        three simulated populations if neither `data` nor `populations` is set.
    scores : sequence of str, optional
        Scores of the data (``abstain list scores``). The default is the six scores that the paper
        evaluates.
    losses : sequence of str, optional
        Losses of the data. The default is zero_one and, if the data have class scores, also
        cross_entropy.
    sizes : sequence of int, default=(32, 128, ..., 131072)
        At least 3 sample sizes of at least 8.
    repeats : int, optional
        Number of samples of each size, at least 2. The default is two million divided by the sample
        size, limited to the range from 64 to 2000.
    rng : int, numpy.random.Generator or None, default=0
        Seed or generator of all random numbers; None for fresh entropy.

    Returns
    -------
    StudyResult
        Tables "results" (mean, bias, MSE and MAE at each size) and "rates" (slope of ln RMSE on
        ln n with its 95% interval, the rates within it, the constants of both rates); figures
        "rmse" and "bound" (RMSE divided by sqrt(ln n / n)).

    Raises
    ------
    InputError
        If a name does not exist or there are fewer than 3 sizes.

    Notes
    -----
    A line is fitted to ln RMSE against ln n by weighted least squares. Each weight is the inverse
    of the squared Monte-Carlo standard error. If the residuals exceed these standard errors, the
    interval is widened accordingly.

    References
    ----------
    .. [1] Zhou et al. (2025), proposition 3.6, eq. 25-26, https://arxiv.org/abs/2410.15361

    .. rubric:: Captions

    results
        Each number with its Monte-Carlo standard error.
    rates
        Slope of ln RMSE on ln n with its 95% interval.
    fits
        Constant of each rate, and mean squared distance of the errors from it in Monte-Carlo
        standard errors. Random variation alone gives 1.
    rmse
        A slope of one half is the rate 1/sqrt(n).
    bound
        Without SELE and 2 x SELE, whose errors do not converge to 0.

    Examples
    --------
    >>> result = study_convergence(populations=["beta-scores"], sizes=[32, 128, 512], repeats=400)
    >>> result.frame("rates").filter(estimator="plugin")["slope"].round(1).to_list()
    [-0.5]
    """
    distinct_sizes = check_sizes(sizes, minimum=8)
    if len(distinct_sizes) < 3:
        raise InputError(f"a rate needs at least 3 different `sizes`; got {distinct_sizes}")
    seed = as_seed(rng)
    request = StudyRequest(data, populations, scores, losses, replace=True)
    sources = request.sources(DEFAULT_POPULATIONS)
    rows: list[Row] = []
    for source in sources:
        generator = named_generator(seed, source.name)
        for n in distinct_sizes:
            n_repeats = _default_repeats(n) if repeats is None else check_repeats(repeats)
            for row in error_rows(source, NAMES, n, n_repeats, generator):
                del row["samples"]
                rows.append(row)
    rates, fits = _fit_cases(rows)
    group_columns = [name for name in ("loss", "score", "estimator") if name in rates[0]]
    averages = average_over_models(rates, set(request.datasets), group_columns, ["slope"])
    return CONVERGENCE.result(
        parameters={
            "data": tuple(source.name for source in sources),
            "sizes": distinct_sizes,
            "repeats": "by size" if repeats is None else repeats,
        },
        tables={"results": rows, "rates": rates, "fits": fits, **averages},
        main_tables=("rates",),
        figures=_figures(rows),
        notes=(*request.omission_notes, _NOTE, *tie_notes(sources), *true_value_notes(sources)),
        verdict=tuple(_conclusions(rates, fits)),
    )


def _default_repeats(n: int) -> int:
    """Return the default number of repetitions for sample size `n`."""
    return int(np.clip(_N_VALUES // n, _MIN_REPEATS, _MAX_REPEATS))


def _fit_cases(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Fit convergence rates for each combination of data set, loss, score and estimator.

    Returns
    -------
    slopes : list of dict
        A row for each combination.
    fits : list of dict
        A row for each combination and rate.
    """
    keys = ("data", "loss", "score", "estimator")
    columns = [
        key for key in keys if len(unique_values(rows, key)) > 1 or key in {"data", "estimator"}
    ]
    slopes: list[Row] = []
    fits: list[Row] = []
    for group in group_rows(rows, *keys).values():
        case = {column: group[0][column] for column in columns}
        n = np.array([float(row["n"]) for row in group])
        rmse = np.sqrt([row["mse"] for row in group])
        rmse[rmse <= _ROUNDING * group[0]["truth"]] = 0.0
        # The standard error of ln RMSE does not depend on the scale of the loss.
        log_error = [row["mse_se"] / (2 * row["mse"]) if row["mse"] else 0.0 for row in group]
        power_law = fit(n, rmse, np.maximum(log_error, _MIN_LOG_ERROR))
        slopes.append({
            **case,
            "slope": power_law.slope,
            "slope_low": power_law.low,
            "slope_high": power_law.high,
            "agrees_with": _classify(power_law),
        })  # fmt: skip
        for name, rate_fit in power_law.rates.items():
            fits.append({**case, "rate": name, **rate_fit._asdict()})
    return slopes, fits


def fit(sizes: FloatArray, errors: FloatArray, log_errors: FloatArray) -> Fit:
    """Fit a power law and two theoretical rates to errors by weighted least squares.

    `log_errors` contains the standard errors of ln error. If any error is 0, all results are NaN.

    Examples
    --------
    >>> import numpy as np
    >>> n = np.array([32.0, 128.0, 512.0])
    >>> result = fit(n, 0.3 / np.sqrt(n), np.full(3, 0.02))
    >>> round(result.slope, 6), round(result.rates["1/sqrt(n)"].constant, 6)
    (-0.5, 0.3)
    """
    if not (errors > 0).all():
        nan = float("nan")
        return Fit(nan, nan, nan, dict.fromkeys(RATES, RateFit(nan, nan, nan)))
    from scipy.stats import t as student

    log_n = np.log(sizes)
    y = np.log(errors)
    weight = log_errors**-2.0
    log_n_centered = log_n - np.average(log_n, weights=weight)
    slope = _slope(log_n, y, weight)
    residuals = y - np.average(y, weights=weight) - slope * log_n_centered
    degrees_of_freedom = sizes.size - 2
    # Residuals that are larger than the standard errors widen the interval.
    overdispersion = max(1.0, float((weight * residuals**2).sum()) / degrees_of_freedom)
    slope_variance = overdispersion / float((weight * log_n_centered**2).sum())
    t_quantile = float(student.ppf((1 + _LEVEL) / 2, degrees_of_freedom))
    half_width = t_quantile * np.sqrt(slope_variance)
    rates = {name: _fit_rate(np.log(rate(sizes)), log_n, y, weight) for name, rate in RATES.items()}
    return Fit(slope, slope - half_width, slope + half_width, rates)


def _fit_rate(
    log_rate: FloatArray, log_n: FloatArray, log_error: FloatArray, weight: FloatArray
) -> RateFit:
    """Fit the constant factor of a theoretical rate of convergence to errors."""
    log_constant = np.average(log_error - log_rate, weights=weight)
    weighted_squares = weight * (log_error - log_rate - log_constant) ** 2
    misfit = float(weighted_squares.sum() / (log_error.size - 1))
    return RateFit(_slope(log_n, log_rate, weight), float(np.exp(log_constant)), misfit)


def _slope(x: FloatArray, y: FloatArray, weight: FloatArray) -> float:
    """Compute the slope of y on x by weighted least squares."""
    centered = x - np.average(x, weights=weight)
    return float((weight * centered * y).sum() / (weight * centered**2).sum())


def _classify(power_law: Fit) -> str:
    """Return the rates that agree with the fitted slope, or the relation of the slope to them."""
    rate_slopes = {name: rate.slope_of_rate for name, rate in power_law.rates.items()}
    if not np.isfinite(power_law.low + power_law.high):
        return "no error at some size"
    if power_law.low > _FLAT_SLOPE:
        return "no convergence"
    in_range = [
        name for name, slope in rate_slopes.items() if power_law.low <= slope <= power_law.high
    ]
    if in_range:
        return " and ".join(in_range)
    if power_law.high < min(rate_slopes.values()):
        return "faster than both"
    if power_law.low > max(rate_slopes.values()):
        return "slower than both"
    return "between the two"


def _figures(rows: Sequence[Row]) -> dict[str, Any]:
    """Plot the RMSE against the sample size, unscaled and divided by sqrt(ln n / n)."""
    # Panel titles contain only the columns in which the cases differ.
    columns = [key for key in ("data", "score", "loss") if len(unique_values(rows, key)) > 1]

    def panel(row: Row) -> str:
        return ", ".join(row[column] for column in columns) or str(row["data"])

    plotted: list[Row] = []
    for row in rows:
        rmse = np.sqrt(row["mse"])
        rmse_over_rate = np.sqrt(row["mse"] / (np.log(row["n"]) / row["n"]))
        # The half-width of a band is two standard errors. By the delta method, two relative
        # standard errors of the RMSE equal one relative standard error of the MSE.
        relative_half_width = row["mse_se"] / max(row["mse"], 1e-300)
        plotted.append({
            **row,
            "rmse": rmse,
            "rmse_error": rmse * relative_half_width,
            "rmse_over_rate": rmse_over_rate,
            "rmse_over_rate_error": rmse_over_rate * relative_half_width,
        })  # fmt: skip
    errors = panels_above_zero(estimator_series(plotted, "rmse", panel, half_width="rmse_error"))
    if not errors:
        return {}
    consistent = [row for row in plotted if row["estimator"] not in INCONSISTENT]
    return {
        "rmse": SeriesDisplay(
            errors,
            "Root mean squared error by sample size",
            "Sample size n",
            "RMSE",
            log_y=True,
            order=COLOR_ORDER,
        ),
        "bound": SeriesDisplay(
            estimator_series(
                consistent, "rmse_over_rate", panel, half_width="rmse_over_rate_error"
            ),
            "RMSE divided by sqrt(ln n / n): constant at this rate, decreasing at a faster rate",
            "Sample size n",
            "RMSE / sqrt(ln n / n)",
            order=COLOR_ORDER,
        ),
    }


# ------------------------------------------------------------------------------ conclusions
def _conclusions(rates: Sequence[Row], fits: Sequence[Row]) -> Iterator[str]:
    """Report the slopes of consistent and of other estimators, and the cases without a slope."""
    with_slope = [row for row in rates if np.isfinite(row["slope"])]
    consistent = [row for row in with_slope if row["estimator"] not in INCONSISTENT]
    if consistent:
        yield from _compare_rates(consistent, fits)
    inconsistent = [row["slope"] for row in with_slope if row["estimator"] in INCONSISTENT]
    if inconsistent:
        yield (
            "SELE and 2 x SELE converge to AUGRC and twice AUGRC, so their errors do not converge "
            f"to 0 if these differ from the AURC: slopes of {value_range(inconsistent, '{:.2f}')}."
        )
    n_without_slope = len(rates) - len(with_slope)
    if n_without_slope:
        yield (
            f"{n_without_slope} of {counted(len(rates), 'fit')} have no slope, because the error "
            "is 0 at some size."
        )


def _compare_rates(consistent: Sequence[Row], fits: Sequence[Row]) -> Iterator[str]:
    """Report which rate fits the errors of consistent estimators better."""
    finite_fits = [
        row for row in fits if row["estimator"] not in INCONSISTENT and np.isfinite(row["misfit"])
    ]
    fits_by_rate = group_rows(finite_fits, "rate")
    misfit_pairs = zip(fits_by_rate[ROOT_RATE], fits_by_rate[LOG_RATE], strict=True)
    n_closer = sum(root["misfit"] < log["misfit"] for root, log in misfit_pairs)
    n_fits = len(consistent)
    n_containing_root = sum(ROOT_RATE in row["agrees_with"] for row in consistent)
    n_steeper = sum(row["agrees_with"] in _STEEPER for row in consistent)
    slopes = value_range([row["slope"] for row in consistent], "{:.3f}")
    log_slopes = value_range([row["slope_of_rate"] for row in fits_by_rate[LOG_RATE]], "{:.3f}")
    yield (
        f"Plug-in, log, trapezoid and AUGRC: {ROOT_RATE} fits the RMSE better than {LOG_RATE} in "
        f"{n_closer} of {counted(n_fits, 'fit')}. Slopes are {slopes}; the slope of {ROOT_RATE} is "
        f"\u22120.5 and that of {LOG_RATE} is {log_slopes} over these sizes. {n_containing_root} "
        f"of {counted(n_fits, 'interval')} contain \u22120.5, {n_steeper} are below the slope of "
        f"{LOG_RATE}."
    )
    if min(n_closer, n_steeper) > n_fits / 2:
        yield (
            f"{LOG_RATE} is therefore an upper bound that is not tight on these data: the error "
            "decreases faster by a factor of sqrt(ln n)."
        )


_NOTE: Final = (
    "The rows of a file are drawn with replacement, so samples may be larger than the file. Rows "
    "that are drawn more than once are tied. The ties cause an error of the trapezoid of the order "
    "1/N for N rows."
)

#: The study in the catalogue.
CONVERGENCE: Final = StudyEntry(
    name="convergence",
    title="Rate of convergence of the estimators",
    question="Does the error of each estimator decrease like sqrt(ln n / n), or faster?",
    source=f"Zhou et al. (2025), proposition 3.6, {PAPER_URL}",
    run=study_convergence,
    quick={"repeats": 200},
    terms=GLOSSARY,
    labels=ESTIMATOR_TITLES,
)
