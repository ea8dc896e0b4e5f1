"""Non-inferiority test of whether a method is worse than another by less than a margin."""

from dataclasses import dataclass

import numpy as np

from abstain._foundation import checks
from abstain.errors import DomainError
from abstain.inference.influence import (
    covariance_from_contributions,
    standard_error_from_contributions,
    unit_contributions,
)
from abstain.inference.intervals import check_level, difference_from_influences, shift_on_scale
from abstain.inference.pairs import max_degrees_for_failures
from abstain.inference.small_samples import (
    FailureCount,
    ModelVariance,
    correct_skewness,
    degrees_of_freedom,
    invert_skewness_correction,
    moderate_variance,
    n_poisson_events,
    skewness,
    t_probability,
    t_quantile,
)
from abstain.typing import FloatArray, IntArray

#: Directions from the center of the joint ellipse. With 361 directions, the largest difference is
#: accurate to 1e-4 of the radius.
_ANGLES = np.linspace(0.0, 2.0 * np.pi, 361)
_CIRCLE = np.stack([np.cos(_ANGLES), np.sin(_ANGLES)])

#: Number of bisection steps for a p-value.
_BISECTION_STEPS = 40


@dataclass(frozen=True)
class NonInferiority:
    """Result of a non-inferiority test.

    Attributes
    ----------
    p_value : float
        One-sided p-value of the null hypothesis that the first method is worse by the margin or
        more.
    bound : float
        One-sided confidence bound of the difference (first minus second). The bound is an upper
        bound if lower is better, and otherwise a lower bound.
    margin : float
        The margin in units of the metric.
    non_inferior : bool
        Whether the bound lies within the margin.
    level : float
        Confidence level of the bound.
    note : str
        Reason for a missing bound, a warning, or empty.
    """

    p_value: float
    bound: float
    margin: float
    non_inferior: bool
    level: float
    note: str = ""


def non_inferiority(
    difference: float,
    standard_error: float,
    *,
    margin: float,
    lower_is_better: bool,
    relative_to: float | None = None,
    degrees: float = float("inf"),
    level: float = 0.95,
) -> NonInferiority:
    """Test whether the first method is worse than the second by less than a margin.

    Answers: is the cheaper method good enough?

    Parameters
    ----------
    difference : float
        First minus second.
    standard_error : float
        Standard error of the difference, from paired influence functions or a paired bootstrap.
    margin : float
        The smallest disadvantage that is not acceptable, above 0.
    lower_is_better : bool
        The direction of the metric.
    relative_to : float, optional
        The metric of the second method. If `relative_to` is passed, the margin is a share of this
        metric, such as 0.1 for 10%.
    degrees : float, default=inf
        Degrees of freedom of the standard error. A conservative choice is (failures - 1) / 2.
    level : float, default=0.95
        Confidence level of the one-sided bound. The significance level of the test is 1 - `level`.

    Returns
    -------
    NonInferiority
        P-value and bound. If the difference is NaN or its standard error is 0, the p-value and the
        bound are NaN and `non_inferior` is False.

    Raises
    ------
    DomainError
        If `margin` or `degrees` is not above 0, the standard error is negative, or `level` is not
        between 0 and 1.

    Notes
    -----
    Choose the margin before you look at the data. The bound uses a quantile of Student's t
    distribution, or of the normal distribution if `degrees` is inf. With few failures, the quantile
    is too small, so use `non_inferiority_from_influences` if influences are available. The test
    treats a relative margin as a constant. To account for the error of the second metric, pass the
    difference of the logarithms, its standard error, and log(1 + share) as the margin.

    References
    ----------
    .. [1] Piaggio et al. (2012), Reporting of noninferiority and equivalence randomized trials,
       https://doi.org/10.1001/jama.2012.87802

    Examples
    --------
    >>> from abstain.inference.non_inferiority import non_inferiority
    >>> result = non_inferiority(0.001, 0.001, margin=0.005, lower_is_better=True)
    >>> result.non_inferior, round(result.bound, 5), f"{result.p_value:.1e}"
    (True, 0.00264, '3.2e-05')
    """
    margin = _check_margin(margin, relative_to)
    if standard_error < 0:
        raise DomainError(f"`standard_error` must not be negative; got {standard_error!r}")
    if not degrees > 0:
        raise DomainError(f"`degrees` must be above 0; got {degrees!r}")
    half_width = t_quantile(2 * check_level(level) - 1, degrees) * standard_error
    disadvantage = difference if lower_is_better else -difference
    bound = disadvantage + half_width
    if standard_error == 0:
        return _undefined_result(margin, level, _NO_VARIATION)
    if np.isnan(standard_error) or np.isnan(bound):
        return _undefined_result(margin, level, "")
    t = (disadvantage - margin) / standard_error
    return NonInferiority(
        p_value=t_probability(t, degrees),
        bound=bound if lower_is_better else -bound,
        margin=margin,
        non_inferior=bool(bound < margin),
        level=level,
    )


def non_inferiority_from_influences(
    values: FloatArray | tuple[float, float],
    influences: FloatArray,
    *,
    margin: float,
    lower_is_better: bool,
    level: float = 0.95,
    failures: int | FailureCount | None = None,
    heavy_tailed: bool = False,
    model_variances: tuple[ModelVariance | None, ModelVariance | None] = (None, None),
    bounds: tuple[float, float] = (-float("inf"), float("inf")),
    weight: FloatArray | None = None,
    cluster: IntArray | None = None,
) -> NonInferiority:
    """Run a non-inferiority test from influence functions, which is valid for few failures.

    Answers: is the cheaper method good enough, given the number of failures?

    Parameters
    ----------
    values : array of shape (2,)
        The numbers of the method and of the reference.
    influences : ndarray of shape (n, 2)
        Influence of each sample on each number.
    margin : float
        The smallest disadvantage that is not acceptable, above 0, in units of the metric.
    lower_is_better : bool
        The direction of the metric.
    level : float, default=0.95
        Confidence level of the one-sided bound, at least 0.5. The significance level of the test is
        1 - `level`.
    failures, heavy_tailed, bounds, weight, cluster
        As in `abstain.inference.intervals.difference_from_influences`. The range `bounds` also
        determines the scale (logit, log or plain).
    model_variances : tuple of ModelVariance or None, default=(None, None)
        The variance that a model predicts for each number, as in `interval_from_influence`.

    Returns
    -------
    NonInferiority
        The result of the test. If no sample changes the numbers, the bound is NaN, `non_inferior`
        is False and the note states the reason. If the influences of both methods are equal, the
        first method is non-inferior.

    Raises
    ------
    DomainError
        If `margin` is not above 0, or if `level` is not in [0.5, 1).

    Notes
    -----
    If a study lacks the failures that distinguish the methods, both the difference and its standard
    error are too small. Therefore, a method is non-inferior only if three bounds are within the
    margin. The first bound uses Student's t distribution with half of the degrees of freedom. The
    second bound adds Hall's full correction for skewness [1]_. The third bound is the largest
    difference in a joint confidence ellipse of both numbers, on the logit or log scale. With 100 or
    more failures, all three bounds are close to the bound of the t-test. The page
    docs/validation.md lists the measured level and power.

    References
    ----------
    .. [1] Hall (1992), On the removal of skewness by transformation,
       https://doi.org/10.1111/j.2517-6161.1992.tb01876.x

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.inference.non_inferiority import non_inferiority_from_influences
    >>> x = np.random.default_rng(0).normal(size=(100, 2))
    >>> result = non_inferiority_from_influences((0.1, 0.1), x, margin=0.5, lower_is_better=True)
    >>> result.non_inferior, round(result.bound, 2)
    (True, 0.21)
    """
    margin = _check_margin(margin, None)
    level = check_level(checks.fraction(level, "level", low=0.5))
    alpha = 1.0 - level
    numbers = (float(values[0]), float(values[1]))
    difference = difference_from_influences(
        numbers,
        influences,
        lower_is_better=lower_is_better,
        failures=failures,
        heavy_tailed=heavy_tailed,
        bounds=bounds,
        weight=weight,
        cluster=cluster,
    )
    note = difference.note
    if np.isnan(difference.low):
        # Data without variation provide no evidence of non-inferiority.
        return _undefined_result(margin, level, note)
    if difference.low == difference.high == 0.0:
        # Every sample has the same influence on both numbers.
        return NonInferiority(0.0, 0.0, margin, non_inferior=True, level=level, note=note)
    sign = 1.0 if lower_is_better else -1.0
    contributions = unit_contributions(influences, weight, cluster)
    disadvantage = _Disadvantage.from_contributions(
        sign * difference.value, sign * (contributions[:, 0] - contributions[:, 1]), failures
    )
    ellipse = JointEllipse.from_contributions(
        numbers,
        contributions,
        bounds,
        disadvantage.degrees,
        heavy_tailed=heavy_tailed,
        model_variances=model_variances,
    )
    ellipse_bound = ellipse.max_difference(alpha, first_minus_second=lower_is_better)
    bound = max(disadvantage.bound(alpha), ellipse_bound)
    bound = min(bound, bounds[1] - bounds[0])
    ellipse_p_value = ellipse.p_value(margin, first_minus_second=lower_is_better)
    p_value = max(disadvantage.p_value(margin), ellipse_p_value)
    return NonInferiority(
        p_value, sign * bound, margin, non_inferior=bool(p_value < alpha), level=level, note=note
    )


@dataclass(frozen=True)
class _Disadvantage:
    """The amount by which the first method is worse, and its standard error."""

    value: float
    standard_error: float
    skew: float
    degrees: float

    @classmethod
    def from_contributions(
        cls, value: float, contributions: FloatArray, failures: int | FailureCount | None
    ) -> "_Disadvantage":
        """Compute the standard error, the skewness and half of the degrees of freedom."""
        degrees = min(degrees_of_freedom(contributions), max_degrees_for_failures(failures))
        # `correct_skewness` corrects only half of the skewness that it receives.
        full_skewness = 2 * skewness(contributions)
        return cls(
            value=value,
            standard_error=standard_error_from_contributions(contributions[:, None]),
            skew=full_skewness,
            degrees=max(1.0, degrees / 2),
        )

    def bound(self, tail: float) -> float:
        """Return the upper confidence bound of the disadvantage for a tail probability."""
        quantile = -t_quantile(1.0 - 2.0 * tail, self.degrees)
        skewed_quantile = float(invert_skewness_correction(quantile, self.skew))
        return self.value - self.standard_error * min(quantile, skewed_quantile)

    def p_value(self, margin: float) -> float:
        """Return the tail probability at which the bound equals the margin."""
        t = (self.value - margin) / self.standard_error
        return t_probability(max(t, correct_skewness(t, self.skew)), self.degrees)


@dataclass(frozen=True, eq=False)
class JointEllipse:
    """Joint confidence ellipse of two numbers on the logit or log scale.

    The standard errors of both numbers and the correlation of their errors determine the ellipse.
    With few failures, these standard errors are more stable than the standard error of the
    difference.
    """

    values: tuple[float, float]
    #: Standard errors on the scale, which are 0 for a number that no sample changes.
    standard_errors: tuple[float, float]
    #: Degrees of freedom of the standard errors.
    degrees: tuple[float, float]
    #: Correlation of the two errors.
    correlation: float
    #: Range of the numbers, which selects the scale.
    bounds: tuple[float, float]

    @classmethod
    def from_contributions(
        cls,
        values: tuple[float, float],
        contributions: FloatArray,
        bounds: tuple[float, float],
        max_degrees: float,
        *,
        heavy_tailed: bool,
        model_variances: tuple[ModelVariance | None, ModelVariance | None],
    ) -> "JointEllipse":
        """Compute the ellipse from the contributions of the units to both errors, (units, 2)."""
        covariance = covariance_from_contributions(contributions)
        standard_errors = []
        all_degrees = []
        for k, value in enumerate(values):
            variance = float(covariance[k, k])
            degrees = degrees_of_freedom(contributions[:, k])
            if heavy_tailed and variance > 0:
                max_events = n_poisson_events(value - bounds[0], float(np.sqrt(variance)))
                degrees = min(degrees, max_events)
            model = model_variances[k]
            if model is not None and variance > 0:
                variance, degrees = moderate_variance(variance, degrees, model)
            standard_errors.append(float(np.sqrt(variance)) * _scale_slope(value, bounds))
            all_degrees.append(max(1.0, min(degrees, max_degrees)))
        return cls(
            values,
            (standard_errors[0], standard_errors[1]),
            (all_degrees[0], all_degrees[1]),
            _correlation(covariance),
            bounds,
        )

    def max_difference(self, tail: float, *, first_minus_second: bool) -> float:
        """Return the largest difference of the two numbers in the ellipse for a tail probability.

        The difference is first minus second if `first_minus_second` is True, and otherwise second
        minus first.
        """
        x, y = _CIRCLE
        independent_share = float(np.sqrt(1.0 - self.correlation**2))
        first = self._numbers_on_ellipse(0, x, tail)
        second = self._numbers_on_ellipse(1, self.correlation * x + independent_share * y, tail)
        differences = first - second if first_minus_second else second - first
        return float(differences.max())

    def _numbers_on_ellipse(self, k: int, directions: FloatArray, tail: float) -> FloatArray:
        """Return the first (k = 0) or second (k = 1) coordinate of each point on the ellipse."""
        radius = self.standard_errors[k] * t_quantile(1.0 - 2.0 * tail, self.degrees[k])
        shifts = radius * directions
        if shifts.any():
            return shift_on_scale(self.values[k], shifts, self.bounds)
        # A number that no sample changes may be at a bound of its range, where the scale is
        # infinite.
        return np.full(shifts.shape, self.values[k])

    def p_value(self, margin: float, *, first_minus_second: bool) -> float:
        """Find the tail probability, at most 0.5, at which the largest difference is the margin."""
        low = 0.0
        high = 0.5
        if self.max_difference(high, first_minus_second=first_minus_second) >= margin:
            return high
        for _ in range(_BISECTION_STEPS):
            middle = (low + high) / 2
            difference = self.max_difference(middle, first_minus_second=first_minus_second)
            if difference < margin:
                high = middle
            else:
                low = middle
        return high


def _correlation(covariance: FloatArray) -> float:
    """Return the correlation of two errors, or 0 if one of them has no variance."""
    scale = float(np.sqrt(covariance[0, 0] * covariance[1, 1]))
    if not scale > 0:
        return 0.0
    return float(np.clip(covariance[0, 1] / scale, -1.0, 1.0))


def _scale_slope(value: float, bounds: tuple[float, float]) -> float:
    """Return the derivative of the logit, log or plain scale, or 0 at a bound of the range."""
    above_low = value - bounds[0]
    below_high = bounds[1] - value
    if min(above_low, below_high) <= 0:
        return 0.0
    if not np.isfinite(above_low):
        return 1.0
    return 1.0 / above_low + 1.0 / below_high


_NO_VARIATION = "nothing varies, so the standard error of the difference is unknown"


def _undefined_result(margin: float, level: float, note: str) -> NonInferiority:
    nan = float("nan")
    return NonInferiority(nan, nan, margin, non_inferior=False, level=level, note=note)


def _check_margin(margin: float, relative_to: float | None) -> float:
    """Validate the margin and return the margin in units of the metric."""
    scale = 1.0 if relative_to is None else abs(checks.number(relative_to, "relative_to"))
    absolute_margin = checks.fraction(margin, "margin", high=float("inf")) * scale
    if absolute_margin <= 0:
        raise DomainError(
            f"the margin must be above 0 in units of the metric; got {absolute_margin!r}"
        )
    return absolute_margin
