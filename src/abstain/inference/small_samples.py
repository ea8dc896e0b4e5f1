"""Degrees of freedom of standard errors, and warnings about small numbers of failures.

For a 0/1 loss, the failures have nearly all of the influence. With few failures, the standard error
is estimated from few values, so the interval requires a t quantile. Satterthwaite's rule computes
the degrees of freedom from the influences u:

    2 (sum u^2)^2 / (sum u^4 - (sum u^2)^2 / n)

The degrees of freedom are n - 1 if all influences have the same size. If only failures have
influence, the degrees of freedom are at most about twice the number of failures.
"""

from typing import Final, NamedTuple, TypeVar

import numpy as np

from abstain._foundation.lazy_imports import special
from abstain.typing import FloatArray

#: A number or an array of numbers.
Numbers = TypeVar("Numbers", float, FloatArray)

#: Minimum number of failures for which nominal 95% intervals cover 93% to 97% in simulations.
MIN_FAILURES: Final = 10

#: The same minimum for the AURC and related metrics, in which the most confident failures have
#: unbounded weight.
MIN_FAILURES_HEAVY_TAILED: Final = 25

#: Minimum number of independent clusters. With fewer clusters, clustered intervals are too short.
MIN_CLUSTERS: Final = 20


class FailureCount(NamedTuple):
    """Number of failures, and a text that names their population (empty for all samples)."""

    n_failures: int
    population: str = ""


class ModelVariance(NamedTuple):
    """Variance of a statistic under a model, and the degrees of freedom that the model adds."""

    variance: float
    degrees: float


def moderate_variance(variance: float, degrees: float, model: ModelVariance) -> tuple[float, float]:
    """Combine an estimated variance and its degrees of freedom with those of a model."""
    total_degrees = degrees + model.degrees
    mean_variance = (degrees * variance + model.degrees * model.variance) / total_degrees
    # The model must not reduce the variance, because samples rarely contain the outliers.
    return max(mean_variance, variance), total_degrees


def rounding_error(n_rows: Numbers, magnitude: Numbers) -> Numbers:
    """Return the largest difference of influences that rounding of cumulative sums can cause."""
    return float(np.finfo(np.float64).eps) * (64 + n_rows) * magnitude


def degrees_of_freedom(contributions: FloatArray) -> float:
    """Return Satterthwaite's degrees of freedom, at least 1, of a standard error.

    `contributions` contains the contribution of each independent unit to the error, shape (units,).
    """
    square = contributions * contributions
    second = np.array(square.sum())
    fourth = np.array(square @ square)
    n_units = np.array(float(contributions.size))
    return float(satterthwaite_degrees(second, fourth, n_units))


def satterthwaite_degrees(
    second: FloatArray, fourth: FloatArray, n_units: FloatArray
) -> FloatArray:
    """Return degrees of freedom from the sums of second and fourth powers of contributions."""
    excess = fourth - second * second / n_units
    upper_limit = np.maximum(n_units - 1.0, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        degrees = np.clip(2 * second * second / excess, 1.0, upper_limit)
    return np.asarray(np.where(excess <= 0, upper_limit, degrees))


def skewness(contributions: FloatArray) -> float:
    """Return the skewness of the sum of independent contributions to an error."""
    norm = float(np.sqrt(contributions @ contributions))
    scaled = contributions / norm
    return float(np.sum(scaled**3))


def correct_skewness(t: Numbers, skew: Numbers) -> Numbers:
    """Correct half of the skewness of a t statistic by Hall's (1992) cubic transformation."""
    # In simulations, half of the correction was more accurate than the full correction.
    g = skew / 2
    return t + g * t * t / 3 + g * g * t**3 / 27 + g / 6


def invert_skewness_correction(
    corrected: float | FloatArray, skew: float | FloatArray
) -> FloatArray:
    """Return the t statistic that `correct_skewness` maps to the corrected statistic."""
    g = np.asarray(skew) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        t = 3 / g * (np.cbrt(1 + g * (corrected - g / 6)) - 1)
    # For a smaller skewness, the rounding error of the cube root exceeds the correction.
    return np.asarray(np.where(np.abs(g) < 1e-5, corrected, t))


def n_poisson_events(value: float, standard_error: float) -> float:
    """Return the Poisson count whose relative standard error equals that of a value."""
    return (value / standard_error) ** 2


def t_quantile(level: float, degrees: float) -> float:
    """Return the upper quantile of Student's t for a central interval with this level."""
    return float(special.stdtrit(degrees, (1 + level) / 2))


def t_quantiles(level: float, degrees: FloatArray) -> FloatArray:
    """Return the upper quantile of Student's t for each number of degrees of freedom."""
    return np.asarray(special.stdtrit(degrees, (1 + level) / 2))


def t_probability(x: float, degrees: float) -> float:
    """Return the probability that Student's t is at most x."""
    return float(special.stdtr(degrees, x))


def t_probabilities(x: FloatArray, degrees: FloatArray) -> FloatArray:
    """Return the probability that Student's t is at most each value of `x`."""
    return np.asarray(special.stdtr(degrees, x))


def few_failures_warning(
    failures: int | FailureCount | None, *, heavy_tailed: bool, n_clusters: int | None = None
) -> str:
    """Return a warning about few failures or few clusters, or an empty string."""
    notes = []
    min_failures = MIN_FAILURES_HEAVY_TAILED if heavy_tailed else MIN_FAILURES
    observed = as_failure_count(failures)
    if observed is not None and observed.n_failures < min_failures:
        count_text = f"only {observed.n_failures} failures"
        if observed.n_failures == 0:
            count_text = "no failures"
        elif observed.n_failures == 1:
            count_text = "only 1 failure"
        notes.append(
            f"{count_text}{observed.population}: below {min_failures} the interval is a rough guide"
        )
    cluster_warning = few_clusters_warning(n_clusters)
    if cluster_warning:
        notes.append(cluster_warning)
    return "; ".join(notes)


def as_failure_count(failures: int | FailureCount | None) -> FailureCount | None:
    """Convert a number of failures among all samples to a `FailureCount`."""
    return FailureCount(failures) if isinstance(failures, int) else failures


def few_clusters_warning(n_clusters: int | None) -> str:
    """Return a warning about few independent clusters, or an empty string."""
    if n_clusters is None or n_clusters >= MIN_CLUSTERS:
        return ""
    count_text = "only 1 cluster" if n_clusters == 1 else f"only {n_clusters} clusters"
    return f"{count_text}: below {MIN_CLUSTERS} the interval may be too short"
