"""Degrees of freedom of standard errors, and warnings about small numbers of failures.

For a 0/1 loss, the failures have nearly all of the influence. With few failures, the standard error
is an estimate from few numbers, and a normal quantile is too small. The interval needs a t
quantile. Satterthwaite's rule yields its degrees of freedom from the influences u:

    2 (sum u^2)^2 / (sum u^4 - (sum u^2)^2 / n)

The degrees of freedom are n - 1 if all contributions are equal. They are about twice the number of
failures if only failures contribute and their contributions are equal. They are smaller if a few
failures dominate the sum.
"""

from typing import Final, NamedTuple, TypeVar

import numpy as np

from abstain._foundation.lazy_imports import special
from abstain.typing import FloatArray

#: A number or an array of numbers.
Numbers = TypeVar("Numbers", float, FloatArray)

#: Minimum number of failures for which nominal 95% intervals cover 93% to 97% in the simulations.
MIN_FAILURES: Final = 10

#: The same minimum for the AURC and related metrics, in which the most confident failures have
#: unbounded weight.
MIN_FAILURES_HEAVY_TAILED: Final = 25

#: Minimum number of independent clusters. With fewer clusters, clustered intervals are too short.
MIN_CLUSTERS: Final = 20


class FailureCount(NamedTuple):
    """Number of failures, and the population in which they are counted ("" for all samples)."""

    n_failures: int
    population: str = ""


class ModelVariance(NamedTuple):
    """The variance that a model predicts, and the degrees of freedom that the model adds."""

    variance: float
    degrees: float


def moderate_variance(variance: float, degrees: float, model: ModelVariance) -> tuple[float, float]:
    """Combine the variance and the degrees of freedom with those of a model.

    If rare outliers dominate the variance, a sample without outliers underestimates the variance.
    The model corrects for this bias. The combined variance is at least the variance of the sample.
    """
    total_degrees = degrees + model.degrees
    mean_variance = (degrees * variance + model.degrees * model.variance) / total_degrees
    return max(mean_variance, variance), total_degrees


def rounding_error(n_rows: Numbers, magnitude: Numbers) -> Numbers:
    """Return the largest difference of two influences that rounding may cause.

    Cumulative sums over n samples have errors up to about 0.02 eps n times the magnitude of the
    numbers. The smallest true difference is 1/n of the magnitude, if two neighbors swap ranks.
    """
    return float(np.finfo(np.float64).eps) * (64 + n_rows) * magnitude


def degrees_of_freedom(contributions: FloatArray) -> float:
    """Return Satterthwaite's degrees of freedom of a sum of squared contributions, at least 1.

    `contributions` contains the contributions of the independent units to the error, shape
    (units,).
    """
    square = contributions * contributions
    second, fourth = np.array(square.sum()), np.array(square @ square)
    return float(satterthwaite_degrees(second, fourth, np.array(float(contributions.size))))


def satterthwaite_degrees(
    second: FloatArray, fourth: FloatArray, n_units: FloatArray
) -> FloatArray:
    """Return degrees of freedom from the sums of second and fourth powers of contributions."""
    excess, upper_limit = fourth - second * second / n_units, np.maximum(n_units - 1.0, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        degrees = np.clip(2 * second * second / excess, 1.0, upper_limit)
    return np.asarray(np.where(excess <= 0, upper_limit, degrees))


def skewness(contributions: FloatArray) -> float:
    """Return the skewness of the sum of independent contributions to an error."""
    norm = float(np.sqrt(contributions @ contributions))
    scaled = contributions / norm
    return float(np.sum(scaled**3))


def correct_skewness(t: Numbers, skew: Numbers) -> Numbers:
    """Apply Hall's (1992) cubic transformation to a t statistic to correct half of its skewness.

    The full correction rejects true null hypotheses too often, because the skewness is estimated
    from few failures. Without a correction, the intervals of differences are too short on one side.
    Half of the correction was best in simulations.
    """
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
    """Return the number of Poisson events whose count has this relative standard error."""
    return (value / standard_error) ** 2


def t_quantile(level: float, degrees: float) -> float:
    """Return the upper quantile of a central t interval with this level."""
    return float(special.stdtrit(degrees, (1 + level) / 2))


def t_quantiles(level: float, degrees: FloatArray) -> FloatArray:
    """Return the upper quantile of central t intervals for many degrees of freedom."""
    return np.asarray(special.stdtrit(degrees, (1 + level) / 2))


def t_probability(x: float, degrees: float) -> float:
    """Return the probability that Student's t is at most x."""
    return float(special.stdtr(degrees, x))


def t_probabilities(x: FloatArray, degrees: FloatArray) -> FloatArray:
    """Return the probabilities that Student's t is at most x for arrays."""
    return np.asarray(special.stdtr(degrees, x))


def few_failures_warning(
    failures: int | FailureCount | None, *, heavy_tailed: bool, n_clusters: int | None = None
) -> str:
    """Return a warning about few failures or few clusters, or an empty string.

    `n_clusters` is None without clusters.
    """
    notes = []
    min_failures = MIN_FAILURES_HEAVY_TAILED if heavy_tailed else MIN_FAILURES
    observed = as_failure_count(failures)
    if observed is not None and observed.n_failures < min_failures:
        count_text = {0: "no failures", 1: "only 1 failure"}.get(
            observed.n_failures, f"only {observed.n_failures} failures"
        )
        notes.append(
            f"{count_text}{observed.population}: below {min_failures} the interval is a rough guide"
        )
    return "; ".join(filter(None, (*notes, few_clusters_warning(n_clusters))))


def as_failure_count(failures: int | FailureCount | None) -> FailureCount | None:
    """Convert a number to a `FailureCount` among all samples."""
    return FailureCount(failures) if isinstance(failures, int) else failures


def few_clusters_warning(n_clusters: int | None) -> str:
    """Return a warning about few independent clusters, or an empty string."""
    if n_clusters is None or n_clusters >= MIN_CLUSTERS:
        return ""
    count_text = "only 1 cluster" if n_clusters == 1 else f"only {n_clusters} clusters"
    return f"{count_text}: below {MIN_CLUSTERS} the interval may be too short"
