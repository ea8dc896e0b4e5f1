"""Confidence intervals of proportions, and confidence intervals from influence functions."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from abstain._foundation import checks
from abstain._foundation.lazy_imports import special
from abstain.errors import DomainError
from abstain.inference.differences import (
    NAN,
    Difference,
    compare_pairs,
    format_quantile,
)
from abstain.inference.influence import (
    AMBIGUOUS_THRESHOLD_NOTE,
    influence_moments,
    remaining_levels,
    unit_contributions,
)
from abstain.inference.pairs import PairedNumbers, magnitude
from abstain.inference.small_samples import (
    FailureCount,
    ModelVariance,
    few_failures_warning,
    moderate_variance,
    n_poisson_events,
    rounding_error,
    satterthwaite_degrees,
    t_quantile,
)
from abstain.typing import FloatArray, IntArray

__all__ = [
    "Difference",
    "Interval",
    "difference_from_influences",
    "interval_from_influence",
    "no_interval",
]


@dataclass(frozen=True)
class Interval:
    """A confidence interval of a number.

    Attributes
    ----------
    low, high : float
        The bounds. If no interval exists, the bounds are NaN and `note` states the reason.
    level : float
        The confidence level, which is the nominal share of repeated studies whose interval contains
        the true value.
    procedure : str
        The method without its degrees of freedom, such as "influence function, logit scale".
    standard_error : float
        Standard error in units of the number, or NaN if the method computes no standard error.
    note : str
        A warning, for example about few failures, or empty.
    degrees : float
        Degrees of freedom of the t quantile, or NaN for other methods.
    """

    low: float
    high: float
    level: float
    procedure: str
    standard_error: float = NAN
    note: str = ""
    degrees: float = NAN

    @property
    def method(self) -> str:
        """The procedure and, if it uses a t quantile, the degrees of freedom."""
        if np.isnan(self.degrees):
            return self.procedure
        return f"{self.procedure}, {format_quantile(self.degrees)}"

    @property
    def exists(self) -> bool:
        """Whether the interval has bounds."""
        return not np.isnan(self.low)


def no_interval(level: float, note: str, standard_error: float = NAN) -> Interval:
    """Return an interval with NaN bounds and a note that states the reason."""
    return Interval(NAN, NAN, level, "none", standard_error, note)


def no_difference(values: tuple[float, float], level: float, note: str) -> Difference:
    """Return a difference with NaN bounds, a NaN p-value and a note that states the reason."""
    return Difference(
        value=float(values[0]) - float(values[1]),
        low=NAN,
        high=NAN,
        level=level,
        standard_error=NAN,
        p_value=NAN,
        superiority=NAN,
        ratio=NAN,
        ratio_low=NAN,
        ratio_high=NAN,
        method="none",
        note=note,
    )


def check_level(level: float) -> float:
    """Validate the level of an interval, which must lie strictly between 0 and 1."""
    value = checks.number(level, "level")
    if not 0 < value < 1:
        hint = " For 95% pass 0.95." if 1 < value < 100 else ""
        raise DomainError(f"`level` must lie strictly between 0 and 1; got {level!r}.{hint}")
    return value


def interval_from_influence(
    value: float,
    influence: FloatArray,
    *,
    level: float = 0.95,
    bounds: tuple[float, float] = (0.0, float("inf")),
    failures: int | FailureCount | None = None,
    heavy_tailed: bool = False,
    max_degrees: float = float("inf"),
    model_variance: ModelVariance | None = None,
    weight: FloatArray | None = None,
    cluster: IntArray | None = None,
    repeats: FloatArray | None = None,
) -> Interval:
    """Compute the confidence interval of a number from the influence of each sample.

    Answers: where may the true value lie?

    Parameters
    ----------
    value : float
        The number.
    influence : ndarray of shape (n,)
        Influence of each sample, with weighted mean 0. For a mean over runs, pass the mean of the
        influences on the metrics of the runs.
    level : float, default=0.95
        Confidence level, between 0 and 1.
    bounds : tuple of float, default=(0, inf)
        Range of the number, which determines the scale of the interval: logit for two finite
        bounds, log for a finite lower bound, and otherwise plain.
    failures : int or FailureCount, optional
        Number of failures. If there are few failures, the note of the interval contains a warning.
    heavy_tailed : bool, default=False
        Whether a few failures may dominate the number, as for the AURC. If True, the degrees of
        freedom have an additional limit, and more failures are required to avoid the warning.
    max_degrees : float, default=inf
        Upper limit of the degrees of freedom, for example the size of the smallest group minus 1.
    model_variance : ModelVariance, optional
        Variance that a model of the data predicts, and its degrees of freedom [1]_, for numbers
        whose variance is dominated by outliers.
    weight, cluster : ndarray of shape (n,), optional
        As in `abstain.inference.influence.covariance`.
    repeats : ndarray of shape (n,), optional
        Number of equal and independent samples that each entry of `influence` represents. If
        `repeats` is passed, weights and clusters must be None.

    Returns
    -------
    Interval
        An interval that is symmetric on the logit, log or plain scale. The degrees of freedom of
        its t quantile are estimated from the influences. If no sample changes the number, or if the
        value is at a bound of its range, the bounds are NaN and the note states the reason.

    Notes
    -----
    The page docs/validation.md lists the measured coverage of the intervals.

    References
    ----------
    .. [1] Smyth (2004), Linear models and empirical Bayes methods, section 3 (variance and degrees
       of freedom from a prior distribution), https://doi.org/10.2202/1544-6115.1027

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.inference.intervals import interval_from_influence
    >>> influence = np.repeat([-0.2, 0.8], [80, 20])
    >>> interval = interval_from_influence(0.2, influence, bounds=(0.0, 1.0))
    >>> round(interval.low, 3), round(interval.high, 3), interval.method
    (0.132, 0.292, 'influence function, logit scale, t with 88.9 degrees of freedom')
    """
    moments = influence_moments(influence, weight=weight, cluster=cluster, repeats=repeats)
    error = moments.standard_error
    max_rounding = rounding_error(moments.n_samples, magnitude((value,), bounds))
    max_influence = max(influence.max(), -influence.min())
    if max_influence <= max_rounding and np.isfinite(error):
        error = 0.0
    reason = _reason_for_no_interval(value, error, bounds)
    if not reason and max_degrees < 1:
        reason = "the single sample on one side does not show the variation there"
    if reason:
        return no_interval(level, reason, error)
    sums = np.array([moments.sum_of_squares, moments.sum_of_fourth_powers, moments.n_units])
    degrees = min(float(satterthwaite_degrees(*sums)), max_degrees)
    if heavy_tailed:
        max_events = n_poisson_events(value - bounds[0], error)
        degrees = max(1.0, min(degrees, max_events))
    source = "influence function"
    variance = error * error
    if model_variance is not None:
        source = "influence function and model variance"
        variance, degrees = moderate_variance(variance, degrees, model_variance)
    half_width = float(np.sqrt(variance)) * t_quantile(level, degrees)
    scale, low, high = _interval_on_scale(value, half_width, bounds)
    n_clusters = None if cluster is None else moments.n_units
    note = few_failures_warning(failures, heavy_tailed=heavy_tailed, n_clusters=n_clusters)
    return Interval(low, high, level, f"{source}, {scale}", error, note, degrees)


def widen_over_thresholds(
    interval: Interval,
    value: float,
    interval_at: Callable[..., Interval],
    max_shifts: FloatArray,
) -> Interval:
    """Extend an interval to cover the intervals at other plausible thresholds.

    `interval_at(value, level=...)` computes the interval of a number. `max_shifts` is the result of
    `influence.max_shifts_by_step`.
    """
    if np.isnan(interval.low) or not max_shifts.any():
        return interval
    intervals = [interval]
    max_decreases, max_increases = max_shifts
    # The data exclude the thresholds after the last level.
    for step, level in enumerate(remaining_levels(interval.level)):
        if max_decreases[step] > 0:
            intervals.append(interval_at(value - max_decreases[step], level=level))
        if max_increases[step] > 0:
            intervals.append(interval_at(value + max_increases[step], level=level))
    low = float(np.nanmin([extension.low for extension in intervals]))
    high = float(np.nanmax([extension.high for extension in intervals]))
    if low == interval.low and high == interval.high:
        return interval
    note = AMBIGUOUS_THRESHOLD_NOTE
    if interval.note:
        note = f"{note}; {interval.note}"
    return replace(interval, low=low, high=high, note=note)


def _reason_for_no_interval(value: float, error: float, bounds: tuple[float, float]) -> str:
    """Return the reason why a number has no interval, or an empty string."""
    if not np.isfinite(value):
        return "the number is not finite"
    if not np.isfinite(error):
        return "a single independent sample does not show the variation"
    # Because of rounding, the distance to the bound or the standard error may be tiny instead of 0.
    if not bounds[0] + 1e-12 < value < bounds[1] - 1e-12:
        return f"{value:g} is a bound of the range, where a standard error is not informative"
    if error <= 1e-14 * max(abs(value), 1e-300):
        return "no sample changes the number, so its standard error is unknown"
    return ""


def _interval_on_scale(
    value: float, half_width: float, bounds: tuple[float, float]
) -> tuple[str, float, float]:
    """Return the name of a scale and the bounds of the interval that is symmetric on this scale.

    `half_width` is in units of the value, and `bounds` is the range of the value.
    """
    low, high = bounds
    if np.isfinite(low) and np.isfinite(high):
        scale = "logit scale"
        share = (value - low) / (high - low)
        shift = half_width / ((high - low) * share * (1 - share))
    elif np.isfinite(low):
        scale = "log scale"
        shift = min(half_width / (value - low), 700.0)
    else:
        scale = "plain scale"
        shift = half_width
    interval_low, interval_high = shift_on_scale(value, np.array([-shift, shift]), bounds)
    return scale, float(interval_low), float(interval_high)


def shift_on_scale(value: float, shifts: FloatArray, bounds: tuple[float, float]) -> FloatArray:
    """Shift a number on the scale (logit, log or plain) that its range determines."""
    low, high = bounds
    if np.isfinite(low) and np.isfinite(high):
        share = (value - low) / (high - low)
        return np.asarray(low + (high - low) * special.expit(special.logit(share) + shifts))
    if np.isfinite(low):
        return np.asarray(low + (value - low) * np.exp(np.minimum(shifts, 700.0)))
    return value + shifts


def difference_from_influences(
    values: FloatArray | tuple[float, float],
    influences: FloatArray,
    *,
    lower_is_better: bool,
    level: float = 0.95,
    failures: int | FailureCount | None = None,
    heavy_tailed: bool = False,
    bounds: tuple[float, float] = (-float("inf"), float("inf")),
    weight: FloatArray | None = None,
    cluster: IntArray | None = None,
    max_shifts: FloatArray | None = None,
    no_error_at_threshold: bool = False,
) -> Difference:
    """Compare two numbers from the same samples by a paired test on their influences.

    Answers: is the first number significantly lower than the second, and how large is the
    difference?

    Parameters
    ----------
    values : array of shape (2,)
        The two numbers.
    influences : ndarray of shape (n, 2)
        Influence of each sample on each number. For a mean over runs, pass the mean of the
        influences on the metrics of the runs.
    lower_is_better : bool
        The direction of the numbers, for `superiority`.
    level : float, default=0.95
        Confidence level, between 0 and 1.
    failures : int or FailureCount, optional
        Smaller number of failures of both methods, which limits the degrees of freedom. If there
        are few failures, the note contains a warning.
    heavy_tailed : bool, default=False
        Whether a few failures may dominate the numbers, as for the AURC.
    bounds : tuple of float, default=(-inf, inf)
        Range of the numbers, which limits the interval of the difference.
    weight, cluster : ndarray of shape (n,), optional
        As in `abstain.inference.influence.covariance`.
    max_shifts : ndarray of shape (2, 2, steps), optional
        Largest changes of each number at other plausible thresholds, the result of
        `influence.max_shifts_by_step`, for working points near large tie groups.
    no_error_at_threshold : bool, default=False
        Whether the threshold is the only source of error of a number whose influences are all 0,
        such as a coverage.

    Returns
    -------
    Difference
        The difference first minus second, with interval, p-value and ratio.

    Notes
    -----
    The test is a t-test on the differences of the influences. The degrees of freedom are estimated
    from these differences and are at most failures - 1. The test corrects half of the skewness of
    the differences [1]_. The interval of the ratio contains all ratios that the test does not
    reject [2]_. For the AUROC and large samples, the test equals DeLong's test.

    References
    ----------
    .. [1] Hall (1992), On the removal of skewness by transformation,
       https://doi.org/10.1111/j.2517-6161.1992.tb01876.x
    .. [2] Fieller (1954), Some problems in interval estimation,
       https://doi.org/10.1111/j.2517-6161.1954.tb00159.x

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.inference.intervals import difference_from_influences
    >>> influences = np.array([[-1.0, 0.0], [0.0, 0.0], [1.0, 1.0], [0.0, -1.0]])
    >>> result = difference_from_influences((0.1, 0.3), influences, lower_is_better=True)
    >>> round(result.value, 3), round(result.standard_error, 3), round(result.p_value, 3)
    (-0.2, 0.408, 0.658)
    """
    contributions = unit_contributions(influences, weight, cluster)
    pair = PairedNumbers.all_pairs(
        np.array(values, np.float64),
        contributions,
        bounds=bounds,
        failures=[failures, failures],
        level=level,
    )
    n_clusters = None if cluster is None else contributions.shape[0]
    warning = few_failures_warning(failures, heavy_tailed=heavy_tailed, n_clusters=n_clusters)
    return compare_pairs(
        pair,
        lower_is_better=lower_is_better,
        bounds=bounds,
        warnings=[warning],
        max_shifts=max_shifts,
        no_error_at_threshold=no_error_at_threshold,
    ).record(0)


def clopper_pearson(successes: float, n: float, *, level: float = 0.95) -> Interval:
    """Compute the exact (Clopper-Pearson) interval of a proportion.

    Answers: which proportions are compatible with this count, if the coverage must be guaranteed?

    Parameters
    ----------
    successes : float
        Number of successes. The number may be fractional if `n` is an effective sample size.
    n : float
        Number of trials, or the effective sample size (see `effective_sample_size`).
    level : float, default=0.95
        Minimum probability that the interval contains the true proportion.

    Returns
    -------
    Interval
        The interval, which lies in [0, 1] and is conservative.

    Raises
    ------
    DomainError
        If not 0 <= successes <= n with n > 0, or if `level` is not between 0 and 1.

    References
    ----------
    .. [1] Clopper and Pearson (1934), The use of confidence or fiducial limits,
       https://doi.org/10.1093/biomet/26.4.404

    Examples
    --------
    >>> from abstain.inference.intervals import clopper_pearson
    >>> interval = clopper_pearson(0, 100)
    >>> round(interval.low, 4), round(interval.high, 4)
    (0.0, 0.0362)
    """
    k, n, tail = _check_proportion(successes, n, level)
    low = float(special.betaincinv(k, n - k + 1, tail)) if k > 0 else 0.0
    high = float(special.betaincinv(k + 1, n - k, 1 - tail)) if k < n else 1.0
    return Interval(low, high, level, "Clopper-Pearson", float(np.sqrt(k / n * (1 - k / n) / n)))


def wilson(successes: float, n: float, *, level: float = 0.95) -> Interval:
    """Compute the Wilson score interval of a proportion.

    Answers: which proportions does the score test not reject for this count?

    Parameters
    ----------
    successes, n : float
        See `clopper_pearson`.
    level : float, default=0.95
        Probability that the interval contains the true proportion, on average over proportions.

    Returns
    -------
    Interval
        The interval, which lies in [0, 1].

    Raises
    ------
    DomainError
        See `clopper_pearson`.

    References
    ----------
    .. [1] Wilson (1927), Probable inference, the law of succession, and statistical inference,
       https://doi.org/10.1080/01621459.1927.10502953

    Examples
    --------
    >>> from abstain.inference.intervals import wilson
    >>> interval = wilson(5, 100)
    >>> round(interval.low, 4), round(interval.high, 4)
    (0.0215, 0.1118)
    """
    k, n, tail = _check_proportion(successes, n, level)
    z2 = float(special.ndtri(tail)) ** 2
    p = k / n
    # Numerator and denominator of the formula are multiplied by n, because n * n may underflow to 0
    # for an effective sample size.
    center = (k + z2 / 2) / (n + z2)
    half_width = float(np.sqrt(z2 * (k * (1 - p) + z2 / 4))) / (n + z2)
    # For k = 0 and k = n, the difference of the two terms is only a rounding error.
    low = 0.0 if k <= 0 else max(0.0, center - half_width)
    high = 1.0 if k >= n else min(1.0, center + half_width)
    return Interval(low, high, level, "Wilson", float(np.sqrt(p * (1 - p) / n)))


def effective_sample_size(proportion: float, standard_error: float) -> float:
    """Return the effective sample size of a proportion with this standard error.

    For weighted or clustered samples, pass the result as `n` to `clopper_pearson` or `wilson`, and
    the proportion times the result as the number of successes.
    """
    return proportion * (1 - proportion) / standard_error**2


def _check_proportion(successes: float, n: float, level: float) -> tuple[float, float, float]:
    """Validate the arguments and return successes, trials and the tail probability."""
    total = checks.fraction(n, "n", high=float("inf"))
    if total <= 0:
        raise DomainError(f"`n` must be above 0; got {n!r}")
    tail = (1 - check_level(level)) / 2
    return checks.fraction(successes, "successes", high=total), total, tail
