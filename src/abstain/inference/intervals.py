"""Intervals of proportions, and of numbers and differences with known influence functions."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from abstain._foundation import checks
from abstain._foundation.lazy_imports import special
from abstain.errors import DomainError
from abstain.inference.differences import (
    NAN,
    Difference,
    PairedNumbers,
    differences,
    most_degrees,
    quantile_words,
    size_of,
)
from abstain.inference.influence import OPEN, levels_left, shares, spread_of
from abstain.inference.pairs import PairPowers
from abstain.inference.small_samples import (
    Expected,
    Failures,
    degrees_from,
    events,
    moderated,
    rounding,
    t_quantile,
    warning,
)
from abstain.typing import FloatArray, IntArray

__all__ = ["Difference", "Interval", "difference_from", "interval_from", "no_interval"]


@dataclass(frozen=True)
class Interval:
    """Where a number may lie.

    Attributes
    ----------
    low, high : float
        The ends; NaN when there is no interval, then `note` says why.
    level : float
        The share of repetitions of the study whose interval should hold the true value.
    form : str
        How it was made, in words: "influence function, logit scale".
    standard_error : float
        On the scale of the number itself; NaN where the method has none.
    note : str
        A warning for the reader, such as of few failures; empty when there is none.
    degrees : float
        The degrees of freedom of its t quantile; NaN for other methods.
    """

    low: float
    high: float
    level: float
    form: str
    standard_error: float = NAN
    note: str = ""
    degrees: float = NAN

    @property
    def method(self) -> str:
        """The form and the degrees of freedom, in words."""
        is_t = not np.isnan(self.degrees)
        return f"{self.form}, {quantile_words(self.degrees)}" if is_t else self.form

    @property
    def exists(self) -> bool:
        """Whether there is an interval."""
        return not np.isnan(self.low)


def no_interval(level: float, note: str, standard_error: float = NAN) -> Interval:
    """Return the interval of a number that has none, with the reason."""
    return Interval(NAN, NAN, level, "none", standard_error, note)


def no_difference(values: tuple[float, float], level: float, note: str) -> Difference:
    """Return the difference of two numbers that allow no interval and no test, with the reason."""
    apart = float(values[0]) - float(values[1])
    none = (NAN,) * 3
    return Difference(apart, NAN, NAN, level, *none, NAN, NAN, NAN, "none", note)


def level_of(level: float) -> float:
    """Validate the level of an interval: strictly between 0 and 1."""
    value = checks.number(level, "level")
    if not 0 < value < 1:
        hint = " For 95 % pass 0.95." if 1 < value < 100 else ""
        raise DomainError(f"`level` must lie strictly between 0 and 1; got {level!r}.{hint}")
    return value


def interval_from(
    value: float,
    influence: FloatArray,
    *,
    level: float = 0.95,
    bounds: tuple[float, float] = (0.0, float("inf")),
    failures: int | Failures | None = None,
    heavy: bool = False,
    most_degrees: float = float("inf"),
    expected: Expected | None = None,
    weight: FloatArray | None = None,
    cluster: IntArray | None = None,
    times: FloatArray | None = None,
) -> Interval:
    """Make the interval of a number from the influence of each sample on it.

    Answers: where may the true value lie?

    Parameters
    ----------
    value : float
        The number.
    influence : ndarray of shape (n,)
        Of each sample, weighted mean zero; for a mean over runs, the mean of their influences.
    level : float, default=0.95
        Between 0 and 1.
    bounds : tuple of float, default=(0, inf)
        The range of the number, which picks the scale: logit between two finite ends, log above
        one, none otherwise.
    failures : int or Failures, optional
        How many samples failed, for a warning when they are few.
    heavy : bool, default=False
        Whether a few failures may carry the number, as for the AURC; then more are needed, and
        the degrees of freedom are no more than the relative error says there were events.
    most_degrees : float, default=inf
        The most degrees of freedom that the smallest part of the data allows.
    expected : Expected, optional
        The variance by a model of the data and the degrees of freedom it is worth, for numbers
        whose own variance rests on outliers that few failures may not show [1]_.
    weight, cluster : ndarray of shape (n,), optional
        As in `abstain.inference.influence.covariance`.
    times : ndarray of shape (n,), optional
        How many samples each row stands for, where it stands for several that are equal and
        independent; then neither weights nor clusters are read.

    Returns
    -------
    Interval
        Symmetric on its scale, with a t quantile whose degrees of freedom come from the
        influences; NaN ends and a note when nothing varies or the value is at an end of its
        range.

    Notes
    -----
    docs/validation.md has the measured coverage.

    References
    ----------
    .. [1] Smyth (2004), Linear models and empirical Bayes methods, section 3 (a variance and
       degrees of freedom from elsewhere), https://doi.org/10.2202/1544-6115.1027

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.inference.intervals import interval_from
    >>> interval = interval_from(0.2, np.repeat([-0.2, 0.8], [80, 20]), bounds=(0.0, 1.0))
    >>> round(interval.low, 3), round(interval.high, 3), interval.method
    (0.132, 0.292, 'influence function, logit scale, t with 88.9 degrees of freedom')
    """
    spread = spread_of(influence, weight=weight, cluster=cluster, times=times)
    error, size = spread.error, size_of((value,), bounds)
    units = None if cluster is None else spread.units
    note = warning(failures, heavy=heavy, units=units)
    if max(influence.max(), -influence.min()) <= rounding(spread.samples, size):
        error = 0.0 if np.isfinite(error) else error
    trouble = _trouble(value, error, bounds) or (
        "one sample on one side shows no spread there" if most_degrees < 1 else ""
    )
    if trouble:
        return no_interval(level, trouble, error)
    sums = np.array([spread.second, spread.fourth, spread.units])
    degrees = min(float(degrees_from(*sums)), most_degrees)
    if heavy:
        degrees = max(1.0, min(degrees, events(value - bounds[0], error)))
    source, variance = "influence function", error * error
    if expected is not None:
        source = "influence function and the spread that a model expects"
        variance, degrees = moderated(variance, degrees, expected)
    reach = float(np.sqrt(variance)) * t_quantile(level, degrees)
    scale, low, high = _on_scale(value, reach, bounds)
    return Interval(low, high, level, f"{source}, {scale}", error, note, degrees)


def widened(
    found: Interval, value: float, around: Callable[..., Interval], reach: FloatArray
) -> Interval:
    """Widen an interval by those `around` (value, level=...) the numbers at other thresholds."""
    if np.isnan(found.low) or not reach.any():
        return found
    ends = [found]
    for move, sign in zip(reach, (-1.0, 1.0), strict=True):
        steps = zip(move, levels_left(found.level), strict=False)
        ends += [around(value + sign * far, level=level) for far, level in steps if far > 0]
    low, high = np.nanmin([e.low for e in ends]), np.nanmax([e.high for e in ends])
    if (low, high) == (found.low, found.high):
        return found
    notes = "; ".join(filter(None, (OPEN, found.note)))
    return replace(found, low=float(low), high=float(high), note=notes)


def _trouble(value: float, error: float, bounds: tuple[float, float]) -> str:
    """Return why there is no interval, or an empty string."""
    if not np.isfinite(value):
        return "the number is not finite"
    if not np.isfinite(error):
        return "one independent sample shows no spread"
    # Rounding leaves a hair between the value and the end of its range, or a spread that is none.
    if not bounds[0] + 1e-12 < value < bounds[1] - 1e-12:
        return f"{value:g} is at the end of the range, where a standard error says nothing"
    if error <= 1e-14 * max(abs(value), 1e-300):
        return "no sample changes the number, so its spread cannot be seen"
    return ""


def _on_scale(value: float, half: float, bounds: tuple[float, float]) -> tuple[str, float, float]:
    """Return the scale's name and the ends: value -/+ half, transformed by the slope there."""
    (low, high), scale, reach = bounds, "plain scale", half
    if np.isfinite(low) and np.isfinite(high):
        share = (value - low) / (high - low)
        scale, reach = "logit scale", half / ((high - low) * share * (1 - share))
    elif np.isfinite(low):
        scale, reach = "log scale", min(half / (value - low), 700.0)
    ends = moved(value, np.array([-reach, reach]), bounds)
    return scale, float(ends[0]), float(ends[1])


def moved(value: float, by: FloatArray, bounds: tuple[float, float]) -> FloatArray:
    """Return a number moved by steps on the scale that its range picks."""
    low, high = bounds
    if np.isfinite(low) and np.isfinite(high):
        share = (value - low) / (high - low)
        return np.asarray(low + (high - low) * special.expit(special.logit(share) + by))
    if np.isfinite(low):
        return np.asarray(low + (value - low) * np.exp(np.minimum(by, 700.0)))
    return value + by


def difference_from(
    values: FloatArray | tuple[float, float],
    influences: FloatArray,
    *,
    lower_is_better: bool,
    level: float = 0.95,
    failures: int | Failures | None = None,
    heavy: bool = False,
    bounds: tuple[float, float] = (-float("inf"), float("inf")),
    weight: FloatArray | None = None,
    cluster: IntArray | None = None,
    reaches: FloatArray | None = None,
    no_error_at_threshold: bool = False,
) -> Difference:
    """Compare two numbers of the same samples by their influences, pair by pair.

    Answers: is the first really lower than the second, and by how much?

    Parameters
    ----------
    values : array of shape (2,)
        The two numbers.
    influences : ndarray of shape (n, 2)
        Of each sample on either; for means over runs, the means of their influences.
    lower_is_better : bool
        The direction, for `superiority`.
    level : float, default=0.95
        Between 0 and 1.
    failures : int or Failures, optional
        How many samples failed (under either), which bounds the degrees of freedom, and for a
        warning when they are few.
    heavy : bool, default=False
        Whether a few failures may carry the numbers, as for the AURC.
    bounds : tuple of float, default=(-inf, inf)
        The range of the numbers: their difference cannot leave it, and it says what is rounding.
    weight, cluster : ndarray of shape (n,), optional
        As in `abstain.inference.influence.covariance`.
    reaches : ndarray of shape (2, 2, steps), optional
        For working points among large tie groups: how far each number may move because its
        threshold may be another one (`influence.reach_of`); the influences are then those at the
        thresholds found.
    no_error_at_threshold : bool, default=False
        Whether numbers whose influences are all 0 err by their thresholds alone, as coverages do.

    Returns
    -------
    Difference
        First minus second, with interval, p-value and ratio.

    Notes
    -----
    A t-test on the differences of the influences, so what both share cancels. The degrees of
    freedom come from those differences (at most failures - 1), and half of the skewness that they
    show is corrected [1]_. The ratio has the interval of all ratios that the same test does not
    reject [2]_, so that it holds 1 when that of the difference holds 0. In large samples this is
    DeLong's test for the AUROC.

    References
    ----------
    .. [1] Hall (1992), On the removal of skewness by transformation,
       https://doi.org/10.1111/j.2517-6161.1992.tb01876.x
    .. [2] Fieller (1954), Some problems in interval estimation,
       https://doi.org/10.1111/j.2517-6161.1954.tb00159.x

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.inference.intervals import difference_from
    >>> one, two = np.array([-1.0, 0.0, 1.0, 0.0]), np.array([0.0, 0.0, 1.0, -1.0])
    >>> found = difference_from((0.1, 0.3), np.stack([one, two], 1), lower_is_better=True)
    >>> round(found.value, 3), round(found.standard_error, 3), round(found.p_value, 3)
    (-0.2, 0.408, 0.658)
    """
    both = float(values[0]), float(values[1])
    least = rounding(influences.shape[0], size_of(both, bounds))
    apart, influences = _without_rounding(both[0] - both[1], influences, least)
    parts = shares(influences, weight, cluster)
    pair = PairedNumbers(
        np.array(both)[:, None],
        np.array([apart]),
        PairPowers.of(parts, np.array(both)),
        np.array([float(parts.shape[0])]),
        np.array([most_degrees(failures)]),
        level,
    )
    units = None if cluster is None else parts.shape[0]
    return differences(
        pair,
        lower_is_better=lower_is_better,
        bounds=bounds,
        warnings=[warning(failures, heavy=heavy, units=units)],
        reaches=reaches,
        no_error_at_threshold=no_error_at_threshold,
    ).one(0)


def _without_rounding(
    value: float, influences: FloatArray, least: float
) -> tuple[float, FloatArray]:
    """Return a difference and its influences with all that is `least` or less exactly 0.

    Rounding is as regular as data: it has a spread, and a test of its own finds it.
    """
    nothing = np.abs(influences).max(axis=0, initial=0.0) <= least
    if nothing.any():
        influences = np.where(nothing, 0.0, influences)
    if np.abs(influences[:, 0] - influences[:, 1]).max(initial=0.0) <= least:
        influences = influences[:, [0, 0]]
        value = 0.0 if abs(value) <= least else value
    return value, influences


def clopper_pearson(successes: float, n: float, *, level: float = 0.95) -> Interval:
    """Compute the exact (Clopper-Pearson) interval of a proportion.

    Answers: which proportions would not make this count surprising, guaranteed?

    Parameters
    ----------
    successes : float
        How many of the n; need not be whole when `n` is an effective number.
    n : float
        How many in all, or their effective number (see `effective_count`).
    level : float, default=0.95
        The interval holds the true proportion at least that often.

    Returns
    -------
    Interval
        Within [0, 1]; never shorter than it needs to be at the level, often longer.

    Raises
    ------
    DomainError
        If not 0 <= successes <= n with n > 0, or `level` is not between 0 and 1.

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
    k, n, tail = _checked(successes, n, level)
    low = float(special.betaincinv(k, n - k + 1, tail)) if k > 0 else 0.0
    high = float(special.betaincinv(k + 1, n - k, 1 - tail)) if k < n else 1.0
    return Interval(low, high, level, "Clopper-Pearson", float(np.sqrt(k / n * (1 - k / n) / n)))


def wilson(successes: float, n: float, *, level: float = 0.95) -> Interval:
    """Compute the Wilson score interval of a proportion.

    Answers: which proportions would not make this count surprising, by the score test?

    Parameters
    ----------
    successes, n : float
        As in `clopper_pearson`.
    level : float, default=0.95
        The interval holds the true proportion that often on average over proportions.

    Returns
    -------
    Interval
        Within [0, 1].

    Raises
    ------
    DomainError
        As in `clopper_pearson`.

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
    k, n, tail = _checked(successes, n, level)
    z2 = float(special.ndtri(tail)) ** 2
    p = k / n
    # Wilson's formula times n / n: an effective n may be so small that n * n is 0.
    center = (k + z2 / 2) / (n + z2)
    half = float(np.sqrt(z2 * (k * (1 - p) + z2 / 4))) / (n + z2)
    # At the ends the two terms are equal but for their rounding.
    low = 0.0 if k <= 0 else max(0.0, center - half)
    high = 1.0 if k >= n else min(1.0, center + half)
    return Interval(low, high, level, "Wilson", float(np.sqrt(p * (1 - p) / n)))


def effective_count(proportion: float, standard_error: float) -> float:
    """Return how many independent equal samples would give this standard error.

    For weighted or clustered samples: Clopper-Pearson and Wilson then take this number instead of
    n, and the proportion times it instead of the count.
    """
    return proportion * (1 - proportion) / standard_error**2


def _checked(successes: float, n: float, level: float) -> tuple[float, float, float]:
    total = checks.fraction(n, "n", high=float("inf"))
    if total <= 0:
        raise DomainError(f"`n` must be above 0; got {n!r}")
    return checks.fraction(successes, "successes", high=total), total, (1 - level_of(level)) / 2
