"""Non-inferiority: the first method is worse than the second by less than a margin, or not."""

from dataclasses import dataclass

import numpy as np

from abstain._foundation import checks
from abstain.errors import DomainError
from abstain.inference.differences import most_degrees
from abstain.inference.influence import covariance_of_shares, error_of, shares
from abstain.inference.intervals import difference_from, level_of, moved
from abstain.inference.small_samples import (
    Expected,
    Failures,
    degrees_of_freedom,
    events,
    moderated,
    skewed,
    skewness,
    straightened,
    t_probability,
    t_quantile,
)
from abstain.typing import FloatArray, IntArray

#: Directions tried; the largest difference is found to 1e-4 of the reach.
_ANGLES = np.linspace(0.0, 2.0 * np.pi, 361)
_CIRCLE = np.stack([np.cos(_ANGLES), np.sin(_ANGLES)])

#: Halvings of the interval that holds a p-value.
_HALVINGS = 40


@dataclass(frozen=True)
class NonInferiority:
    """Whether the first method is worse than the second by less than a margin.

    Attributes
    ----------
    p_value : float
        One-sided, of "the first is worse by the margin or more".
    bound : float
        One-sided bound of the difference (first minus second) at the level: above it for a
        metric of which lower is better, below it otherwise.
    margin : float
        In units of the metric.
    non_inferior : bool
        Whether the bound lies within the margin.
    level : float
        Of the bound.
    note : str
        Why there is no bound, or what to be careful about, or empty.
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
    """Test that the first method is not worse than the second by a margin or more.

    Answers: is the cheaper method good enough?

    Parameters
    ----------
    difference : float
        First minus second.
    standard_error : float
        Of the difference, from paired influence functions or a paired bootstrap.
    margin : float
        The loss that is just not acceptable, above 0.
    lower_is_better : bool
        The direction of the metric.
    relative_to : float, optional
        The metric of the second method, when the margin is a share of it (0.1 for 10 %).
    degrees : float, default=inf
        Of freedom of the standard error; half of the failures less one is careful.
    level : float, default=0.95
        Of the one-sided bound; the test is at 1 - level.

    Returns
    -------
    NonInferiority
        With p-value and bound; NaN, and not non-inferior, where the difference is NaN or has no
        spread: that nothing varied is no proof.

    Raises
    ------
    DomainError
        If `margin` or `degrees` is not above 0, the standard error is negative, or `level` is not
        between 0 and 1.

    Notes
    -----
    Choose the margin before looking at the data. The quantile is Student's, that of the normal law
    unless `degrees` are given, too short for few failures: use `non_inferiority_from` where there
    are influences. A relative margin is
    taken as known, although it comes from the same data; pass logarithms of ratios (the difference
    of the logs, its standard error, and log(1 + share) as the margin) to account for that.

    References
    ----------
    .. [1] Piaggio et al. (2012), Reporting of noninferiority and equivalence randomized trials,
       https://doi.org/10.1001/jama.2012.87802

    Examples
    --------
    >>> from abstain.inference.non_inferiority import non_inferiority
    >>> found = non_inferiority(0.001, 0.001, margin=0.005, lower_is_better=True)
    >>> found.non_inferior, round(found.bound, 5), f"{found.p_value:.1e}"
    (True, 0.00264, '3.2e-05')
    """
    within = _margin(margin, relative_to)
    if standard_error < 0:
        raise DomainError(f"`standard_error` must not be negative; got {standard_error!r}")
    if not degrees > 0:
        raise DomainError(f"`degrees` must be above 0; got {degrees!r}")
    reach = t_quantile(2 * level_of(level) - 1, degrees) * standard_error
    worse = difference if lower_is_better else -difference
    bound = worse + reach
    if not standard_error > 0 or np.isnan(bound):
        return _unknown(within, level, _NO_SPREAD if standard_error == 0 else "")
    return NonInferiority(
        p_value=t_probability((worse - within) / standard_error, degrees),
        bound=bound if lower_is_better else -bound,
        margin=within,
        non_inferior=bool(bound < within),
        level=level,
    )


def non_inferiority_from(
    values: FloatArray | tuple[float, float],
    influences: FloatArray,
    *,
    margin: float,
    lower_is_better: bool,
    level: float = 0.95,
    failures: int | Failures | None = None,
    heavy: bool = False,
    expected: tuple[Expected | None, Expected | None] = (None, None),
    bounds: tuple[float, float] = (-float("inf"), float("inf")),
    weight: FloatArray | None = None,
    cluster: IntArray | None = None,
) -> NonInferiority:
    """Run the same test on the influences of the samples, which knows about few failures.

    Answers: is the cheaper method good enough, as far as these few failures tell?

    Parameters
    ----------
    values : array of shape (2,)
        The numbers of the method and of the reference.
    influences : ndarray of shape (n, 2)
        Of each sample on either.
    margin : float
        The loss that is just not acceptable, above 0, in units of the metric.
    lower_is_better : bool
        The direction of the metric.
    level : float, default=0.95
        Of the one-sided bound, at least one half; the test is at 1 - level.
    failures, heavy, bounds, weight, cluster
        As in `abstain.inference.intervals.difference_from`; the range also picks the scale.
    expected : tuple of Expected or None, default=(None, None)
        The variance of either number by a model, as in `interval_from`.

    Returns
    -------
    NonInferiority
        NaN with a note, and not non-inferior, where no sample varies. Two methods that are the
        same, sample by sample, are non-inferior to each other.

    Raises
    ------
    DomainError
        If `margin` is not above 0 or `level` is below one half or not below 1.

    Notes
    -----
    Shown only if three bounds agree, since a study that missed the failure that sets the two apart
    shows both a small difference and a small standard error, which the two-sided test of
    `difference_from` may pass over: Student's t with half of its degrees of freedom; the same with
    the whole of Hall's correction for skewness; and the largest difference in the joint ellipse of
    both numbers on the logit or log scale of their range, whose two radii are t quantiles. With 100
    failures and more the three are close to the plain test; docs/validation.md has the measured
    level and power.

    References
    ----------
    .. [1] Hall (1992), On the removal of skewness by transformation,
       https://doi.org/10.1111/j.2517-6161.1992.tb01876.x

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.inference.non_inferiority import non_inferiority_from
    >>> x = np.random.default_rng(0).normal(size=(100, 2))
    >>> found = non_inferiority_from((0.1, 0.1), x, margin=0.5, lower_is_better=True)
    >>> found.non_inferior, round(found.bound, 2)
    (True, 0.21)
    """
    within, level = _margin(margin, None), checks.fraction(level, "level", low=0.5)
    both, chance = (float(values[0]), float(values[1])), 1.0 - level_of(level)
    seen = difference_from(
        both,
        influences,
        lower_is_better=lower_is_better,
        failures=failures,
        heavy=heavy,
        bounds=bounds,
        weight=weight,
        cluster=cluster,
    )
    if np.isnan(seen.low):
        # That nothing varies is no proof.
        return _unknown(within, level, seen.note)
    if seen.low == seen.high == 0.0:
        # One and the same, sample by sample.
        return NonInferiority(0.0, 0.0, within, non_inferior=True, level=level, note=seen.note)
    sign = 1.0 if lower_is_better else -1.0
    parts = shares(influences, weight, cluster)
    worse = _Worse.of(sign * seen.value, sign * (parts[:, 0] - parts[:, 1]), failures)
    region = JointEllipse.of(both, parts, bounds, worse.degrees, heavy=heavy, expected=expected)
    bound = max(worse.bound(chance), region.farthest(chance, first_above=lower_is_better))
    p = max(worse.p_value(within), region.p_value(within, first_above=lower_is_better))
    bound = min(bound, bounds[1] - bounds[0])
    passed = bool(p < chance)
    return NonInferiority(p, sign * bound, within, non_inferior=passed, level=level, note=seen.note)


@dataclass(frozen=True)
class _Worse:
    """By how much the first is worse, with what its error is made of."""

    value: float
    error: float
    skew: float
    degrees: float

    @classmethod
    def of(cls, value: float, parts: FloatArray, failures: int | Failures | None) -> "_Worse":
        degrees = min(degrees_of_freedom(parts), most_degrees(failures))
        # Twice the skewness, since `straightened` takes half of it.
        return cls(value, error_of(parts[:, None]), 2 * skewness(parts), max(1.0, degrees / 2))

    def bound(self, chance: float) -> float:
        """Return the bound beyond which the difference lies with this chance."""
        reach = -t_quantile(1.0 - 2.0 * chance, self.degrees)
        return self.value - self.error * min(reach, float(skewed(reach, self.skew)))

    def p_value(self, margin: float) -> float:
        """Return the chance at which the bound is the margin."""
        t = (self.value - margin) / self.error
        return t_probability(max(t, straightened(t, self.skew)), self.degrees)


@dataclass(frozen=True, eq=False)
class JointEllipse:
    """Two numbers on the scale of their range, and the ellipse that holds both.

    The standard error of a difference comes from the same few failures as the difference itself:
    a study that missed the failure that sets two scores apart shows both too small. On the logit
    (or log) scale of their range the errors of the numbers are steadier, and there an ellipse
    holds both with their correlation; what pushes both the same way costs nothing.
    """

    values: tuple[float, float]
    #: Their standard errors on the scale; 0 for a number that nothing varies.
    spread: tuple[float, float]
    #: The degrees of freedom of these.
    degrees: tuple[float, float]
    #: Of the two errors.
    correlation: float
    #: The range, which picks the scale.
    bounds: tuple[float, float]

    @classmethod
    def of(
        cls,
        values: tuple[float, float],
        parts: FloatArray,
        bounds: tuple[float, float],
        most_degrees: float,
        *,
        heavy: bool,
        expected: tuple[Expected | None, Expected | None],
    ) -> "JointEllipse":
        """Make it from what each unit adds to the error of both, shape (units, 2)."""
        both = covariance_of_shares(parts)
        size = float(np.sqrt(both[0, 0] * both[1, 1]))
        spread, degrees = [], []
        for k in (0, 1):
            variance, own = float(both[k, k]), degrees_of_freedom(parts[:, k])
            if heavy and variance > 0:
                own = min(own, events(values[k] - bounds[0], float(np.sqrt(variance))))
            model = expected[k]
            if model is not None and variance > 0:
                variance, own = moderated(variance, own, model)
            spread.append(float(np.sqrt(variance)) * _slope(values[k], bounds))
            degrees.append(max(1.0, min(own, most_degrees)))
        correlation = float(np.clip(both[0, 1] / size, -1.0, 1.0)) if size > 0 else 0.0
        return cls(values, (spread[0], spread[1]), (degrees[0], degrees[1]), correlation, bounds)

    def farthest(self, chance: float, *, first_above: bool) -> float:
        """Return the largest difference in the ellipse beyond which a tail of `chance` lies.

        Of the first minus the second, or the second minus the first.
        """
        across, up = _CIRCLE
        rest = float(np.sqrt(1.0 - self.correlation**2))
        moves = (across, self.correlation * across + rest * up)
        steps = [
            self.spread[k] * t_quantile(1.0 - 2.0 * chance, self.degrees[k]) * moves[k]
            for k in (0, 1)
        ]
        # A number that nothing varies may be at an end of its range, where there is no scale.
        first, second = (
            moved(value, by, self.bounds) if by.any() else value
            for value, by in zip(self.values, steps, strict=True)
        )
        apart = np.asarray(first - second)
        return float(apart.max() if first_above else -apart.min())

    def p_value(self, margin: float, *, first_above: bool) -> float:
        """Return the tail whose farthest difference just reaches the margin, at most one half."""
        low, high = 0.0, 0.5
        if self.farthest(high, first_above=first_above) >= margin:
            return high
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            within = self.farthest(middle, first_above=first_above) < margin
            low, high = (low, middle) if within else (middle, high)
        return high


def _slope(value: float, bounds: tuple[float, float]) -> float:
    """Return the slope of the scale, 0 at an end of the range, where no scale helps."""
    below, above = value - bounds[0], bounds[1] - value
    if min(below, above) <= 0:
        return 0.0
    return 1.0 if not np.isfinite(below) else 1.0 / below + 1.0 / above


_NO_SPREAD = "nothing varies, so that nothing is known about the difference"


def _unknown(margin: float, level: float, note: str) -> NonInferiority:
    nan = float("nan")
    return NonInferiority(nan, nan, margin, non_inferior=False, level=level, note=note)


def _margin(margin: float, relative_to: float | None) -> float:
    scale = 1.0 if relative_to is None else abs(checks.number(relative_to, "relative_to"))
    within = checks.fraction(margin, "margin", high=float("inf")) * scale
    if within <= 0:
        raise DomainError(f"the margin must be above 0 in units of the metric; got {within!r}")
    return within
