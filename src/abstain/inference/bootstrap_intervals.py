"""Percentile, BCa and studentized bootstrap intervals from replicates."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from abstain._foundation import checks
from abstain._foundation.lazy_imports import special
from abstain.inference.intervals import Interval
from abstain.typing import AnyArray, BoolArray, FloatArray


def quantiles(values: FloatArray, probabilities: Sequence[float] | FloatArray) -> FloatArray:
    """Compute quantiles along the last axis like ``np.quantile``, about ten times as fast.

    The first axis of the result corresponds to the probabilities.
    """
    ordered = np.sort(values, axis=-1)
    last = ordered.shape[-1] - 1
    position = last * np.asarray(probabilities, np.float64)
    index = np.floor(position).astype(np.intp)
    remaining_axes = (1,) * (values.ndim - 1)
    fraction = (position - index).reshape((position.size, *remaining_axes))
    lower = np.moveaxis(ordered[..., index], -1, 0)
    upper = np.moveaxis(ordered[..., np.minimum(index + 1, last)], -1, 0)
    # The interpolation starts at the nearer value, so that the result of equal neighbors is exact.
    from_lower = lower + (upper - lower) * fraction
    from_upper = upper - (upper - lower) * (1 - fraction)
    result: FloatArray = np.where(fraction < 0.5, from_lower, from_upper)
    # NumPy sorts NaN to the end.
    has_nan = np.isnan(ordered[..., -1])
    if has_nan.any():
        return np.where(has_nan, np.nan, result)
    return result


Scale: TypeAlias = Literal["identity", "log", "logit"]

#: Minimum number of replicates beyond a reliable interval bound.
_MIN_REPLICATES_BEYOND = 5

#: Maximum bias, as a share of the standard error, that changes the coverage by less than 1%.
_SMALL_BIAS = 0.25


class _Transformation(NamedTuple):
    """Transformation of a number, such as the logarithm, with its derivative and its inverse."""

    forward: Callable[[FloatArray], FloatArray]
    derivative: Callable[[FloatArray], FloatArray]
    inverse: Callable[[FloatArray], FloatArray]


_SCALES = {
    "identity": _Transformation(lambda x: x, np.ones_like, lambda y: y),
    "log": _Transformation(np.log, lambda x: 1.0 / x, np.exp),
    "logit": _Transformation(
        lambda x: np.asarray(special.logit(x)),
        lambda x: 1.0 / (x * (1.0 - x)),
        lambda y: np.asarray(special.expit(y)),
    ),
}


def percentile(replicates: AnyArray, *, level: float = 0.95) -> Interval:
    """Compute the percentile interval, whose bounds are quantiles of the replicates.

    The bounds lie in the range of the metric. With few failures, the percentile interval is too
    narrow.

    Parameters
    ----------
    replicates : array of shape (resamples,)
        The value of the statistic on each resample; NaN if undefined.
    level : float, default=0.95
        Confidence level.

    Returns
    -------
    Interval
        The interval. If fewer than two replicates are defined, the bounds are NaN and the note
        states the reason.
    """
    defined, note = _defined(replicates)
    method = f"bootstrap, percentile, {np.size(replicates)} resamples"
    if defined.size < 2:
        return _undefined_interval(level, method, note)
    tail = (1.0 - level) / 2.0
    return _quantile_interval(defined, (tail, 1.0 - tail), level, method, note)


def debiased_percentile(replicates: AnyArray, value: float, *, level: float = 0.95) -> Interval:
    """Compute the percentile interval of a sum of absolute values, corrected for bias.

    Sampling noise makes a sum of absolute values, such as a binned calibration error, too large.
    Sampling and resampling each increase the square of the sum by about the same amount. The
    function estimates this amount from the replicates and subtracts it twice from the squared
    bounds. If fewer than two replicates are defined, the bounds are NaN and the note states the
    reason.
    """
    plain = percentile(replicates, level=level)
    if np.isnan(plain.low):
        return plain
    defined, _ = _defined(replicates)
    added_square = float(np.mean(defined**2)) - value**2
    squares = np.square([plain.low, plain.high]) - 2 * added_square
    low, high = np.sqrt(np.maximum(0.0, squares))
    # If the value is below the value that noise alone causes, the true value may still be above 0.
    high = max(float(high), plain.high - plain.low)
    procedure = f"bootstrap, percentile less twice the bias, {np.size(replicates)} resamples"
    return replace(plain, low=float(low), high=high, procedure=procedure)


def bias_note(replicates: AnyArray, value: float) -> str:
    """Return a warning if the bias of the replicates is large relative to their standard error."""
    defined, _ = _defined(replicates)
    if defined.size < 2:
        return ""
    return bias_notes(defined[None], np.array([value]))[0]


def bias_notes(replicates: FloatArray, values: FloatArray) -> list[str]:
    """Return the result of `bias_note` for each row of replicates (k, resamples) without NaN."""
    bias = replicates.mean(axis=1) - values
    is_large = ~(np.abs(bias) <= _SMALL_BIAS * replicates.std(axis=1, ddof=1))
    notes = [""] * bias.size
    for i in np.flatnonzero(is_large):
        notes[i] = f"resamples are biased by {bias[i]:.2g}: the interval is a rough guide"
    return notes


def with_notes(
    interval: Interval, *notes: str, bounds: tuple[float, float] | None = None
) -> Interval:
    """Clip an interval to the range of the metric, and add notes to the interval."""
    interval = replace(interval, note=_join(interval.note, *notes))
    if bounds is None or np.isnan(interval.low):
        return interval
    # Rounding errors of sums may lead to values just outside the range.
    low, high = np.clip([interval.low, interval.high], *bounds)
    return replace(interval, low=float(low), high=float(high))


def has_variation(replicates: FloatArray, value: float) -> bool:
    """Return True if the replicates and the value differ by more than rounding errors.

    The function also returns True if fewer than two replicates are defined.
    """
    defined, _ = _defined(replicates)
    if defined.size < 2:
        return True
    tolerance = 1e-12 * max(1.0, float(np.abs(defined).max()))
    return bool(np.ptp(np.append(defined, value)) > tolerance)


def bca(
    replicates: AnyArray, value: float, influence: AnyArray, *, level: float = 0.95
) -> Interval:
    """Compute the BCa interval, which corrects percentiles for bias and acceleration.

    Parameters
    ----------
    replicates : array of shape (resamples,)
        The value of the statistic on each resample; NaN if undefined.
    value : float
        The number for the original data.
    influence : array of shape (units,)
        Influence of each resampled unit (sample or cluster) on the number, on any scale. Its
        skewness determines the acceleration. Instead of influences, you can pass the mean of the
        jackknife values minus each jackknife value.
    level : float, default=0.95
        Confidence level.

    Returns
    -------
    Interval
        The interval. If no interval can be computed, the bounds are NaN and the note states the
        reason.
    """
    defined, note = _defined(replicates)
    method = f"bootstrap, BCa, {np.size(replicates)} resamples"
    if defined.size < 2 or not np.isfinite(value):
        return _undefined_interval(level, method, note)
    # A replicate that equals the value counts half.
    share_below = float(np.sum(defined < value) + np.sum(defined <= value)) / (2.0 * defined.size)
    if share_below in {0.0, 1.0}:
        note = _join(note, "all replicates lie on one side of the value")
        share_below = float(np.clip(share_below, 0.5 / defined.size, 1.0 - 0.5 / defined.size))
    bias = special.ndtri(share_below)
    tail = (1.0 - level) / 2.0
    quantiles_with_bias = bias + special.ndtri(np.array([tail, 1.0 - tail]))
    denominator = 1.0 - acceleration(influence) * quantiles_with_bias
    # If the denominator is not positive, the bound is the most extreme replicate.
    corrected = np.copysign(np.full(2, np.inf), quantiles_with_bias)
    np.divide(quantiles_with_bias, denominator, out=corrected, where=denominator > 0)
    low, high = special.ndtr(bias + corrected)
    return _quantile_interval(defined, (float(low), float(high)), level, method, note)


def acceleration(influence: AnyArray) -> float:
    """Return the acceleration, which is the skewness of the influences divided by 6 sqrt(n)."""
    influences = np.asarray(influence, np.float64)
    square = influences * influences
    sum_of_squares = float(np.sum(square))
    if sum_of_squares <= 0:
        return 0.0
    sum_of_cubes = float(np.sum(square * influences))
    return float(sum_of_cubes / (6.0 * sum_of_squares**1.5))


def studentized(
    replicates: AnyArray,
    standard_errors: AnyArray,
    value: float,
    standard_error: float,
    *,
    level: float = 0.95,
    scale: Scale = "identity",
) -> Interval:
    """Compute the bootstrap-t interval from quantiles of (replicate - value) / standard error.

    Parameters
    ----------
    replicates, standard_errors : array of shape (resamples,)
        The value of the statistic and its standard error on each resample. A resample is omitted if
        its standard error is 0 or NaN, or if its value is outside the domain of the transformation.
    value, standard_error : float
        The number and its standard error for the original data.
    level : float, default=0.95
        Confidence level.
    scale : {"identity", "log", "logit"}, default="identity"
        Scale on which the ratio is computed. "log" requires numbers above 0, and "logit" requires
        numbers in (0, 1).

    Returns
    -------
    Interval
        The interval. If no interval can be computed, the bounds are NaN and the note states the
        reason.
    """
    checks.one_of(scale, "scale", tuple(_SCALES))
    numbers = np.asarray(replicates, np.float64)
    errors = np.asarray(standard_errors, np.float64)
    method = f"bootstrap-t, {numbers.size} resamples"
    if scale != "identity":
        method += f", {scale} scale"
    is_usable = np.isfinite(numbers) & (errors > 0) & _is_on_scale(numbers, scale)
    usable, note = _defined(np.where(is_usable, numbers, np.nan))
    if usable.size < 2:
        return _undefined_interval(level, method, note)
    value_array = np.array([value])
    if not (standard_error > 0 and _is_on_scale(value_array, scale)[0]):
        note = _join(note, "the value has no standard error on this scale")
        return _undefined_interval(level, method, note)
    transformation = _SCALES[scale]
    center = transformation.forward(value_array)[0]
    center_error = float(standard_error) * transformation.derivative(value_array)[0]
    replicate_errors = errors[is_usable] * transformation.derivative(usable)
    t = (transformation.forward(usable) - center) / replicate_errors
    tail = (1.0 - level) / 2.0
    # The lower quantile of t determines the upper bound.
    high, low = center - center_error * quantiles(t, (tail, 1.0 - tail))
    low, high = transformation.inverse(np.array([low, high]))
    note = _join(note, _few_resamples_note(usable.size, tail))
    return Interval(float(low), float(high), level, method, float(standard_error), note)


def _is_on_scale(values: FloatArray, scale: Scale) -> BoolArray:
    """Return whether the transformation is defined for each value."""
    low = -np.inf if scale == "identity" else 0.0
    high = 1.0 if scale == "logit" else np.inf
    return np.asarray((values > low) & (values < high))


def _defined(replicates: AnyArray) -> tuple[FloatArray, str]:
    """Return the finite replicates and a note about undefined replicates."""
    numbers = np.asarray(replicates, np.float64)
    defined = numbers[np.isfinite(numbers)]
    n_undefined = numbers.size - defined.size
    if not n_undefined:
        return defined, ""
    note = f"undefined in {n_undefined} of {numbers.size} resamples"
    if defined.size < 2:
        return defined, note
    return defined, f"{note}, which are left out"


def _quantile_interval(
    defined: FloatArray, probabilities: tuple[float, float], level: float, method: str, note: str
) -> Interval:
    """Return the interval between two quantiles of the defined replicates, with warnings."""
    low, high = quantiles(defined, probabilities)
    note = _join(note, _few_resamples_note(defined.size, (1.0 - level) / 2.0))
    n_beyond = min(probabilities[0], 1.0 - probabilities[1]) * defined.size
    if n_beyond < 1.0 and not note:
        note = "a bound of the interval is the most extreme replicate; draw more resamples"
    return Interval(float(low), float(high), level, method, float(defined.std(ddof=1)), note)


def _few_resamples_note(n_resamples: int, tail: float) -> str:
    """Return a note if too few resamples lie beyond each bound, or an empty string."""
    # The tolerance is for rounding, because at 95% exactly 5 of 200 resamples lie beyond each
    # bound.
    if n_resamples * tail >= _MIN_REPLICATES_BEYOND * (1 - 1e-9):
        return ""
    n_required = int(np.ceil(_MIN_REPLICATES_BEYOND / tail - 1e-6))
    return f"{n_resamples} resamples are few for this level; draw at least {n_required}"


def _undefined_interval(level: float, method: str, note: str) -> Interval:
    nan = float("nan")
    return Interval(nan, nan, level, method, nan, note or "the value itself is undefined")


def _join(*notes: str) -> str:
    return "; ".join(filter(None, notes))
