"""Intervals from bootstrap replicates: percentile, BCa and studentized."""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from abstain._foundation import checks
from abstain._foundation.lazy_imports import special
from abstain.inference.intervals import Interval
from abstain.inference.quantiles import quantiles
from abstain.typing import AnyArray, BoolArray, FloatArray

Scale: TypeAlias = Literal["identity", "log", "logit"]

#: With fewer replicates than this beyond an end of the interval, the end is mostly chance.
_BEYOND = 5

#: A bias up to this share of the standard error moves the coverage by less than one percent.
_SMALL_BIAS = 0.25


class _Scale(NamedTuple):
    """There, its derivative, and back."""

    to: Callable[[FloatArray], FloatArray]
    slope: Callable[[FloatArray], FloatArray]
    back: Callable[[FloatArray], FloatArray]


_SCALES = {
    "identity": _Scale(lambda x: x, np.ones_like, lambda y: y),
    "log": _Scale(np.log, lambda x: 1.0 / x, np.exp),
    "logit": _Scale(
        lambda x: np.asarray(special.logit(x)),
        lambda x: 1.0 / (x * (1.0 - x)),
        lambda y: np.asarray(special.expit(y)),
    ),
}


def percentile(replicates: AnyArray, *, level: float = 0.95) -> Interval:
    """Take the central range of the replicates.

    Simple and never outside the range of the metric; too narrow with few failures.

    Parameters
    ----------
    replicates : array of shape (resamples,)
        NaN where a resample leaves the number undefined.
    level : float, default=0.95
        Of the interval.

    Returns
    -------
    Interval
        NaN with a note when fewer than two replicates are defined.
    """
    kept, note = _defined(replicates)
    method = f"bootstrap, percentile, {np.size(replicates)} resamples"
    if kept.size < 2:
        return _none(level, method, note)
    tail = (1.0 - level) / 2.0
    return _between(kept, (tail, 1.0 - tail), level, method, note)


def debiased(replicates: AnyArray, value: float, *, level: float = 0.95) -> Interval:
    """Shift the percentiles of a sum of absolute values down by twice its bias.

    The sum of absolute gaps (the calibration error of bins) is too large by chance alone, and
    resampling adds that chance again. Its square grows by about the same amount each time: by
    that, as the resamples show it, their squares and the square of the value are both reduced.
    NaN with a note when fewer than two replicates, shape (resamples,), are defined.
    """
    plain, (kept, _) = percentile(replicates, level=level), _defined(replicates)
    if np.isnan(plain.low):
        return plain
    added = float(np.mean(kept**2)) - value**2
    low, high = np.sqrt(np.maximum(0.0, np.square([plain.low, plain.high]) - 2 * added))
    form = f"bootstrap, percentile less twice the bias, {np.size(replicates)} resamples"
    # Even less than chance alone makes is no proof of none at all.
    high = max(float(high), plain.high - plain.low)
    return replace(plain, low=float(low), high=high, form=form)


def bias_note(replicates: AnyArray, value: float) -> str:
    """Return a warning where the bias of the resamples is no longer small against their spread."""
    kept, _ = _defined(replicates)
    return bias_notes(kept[None], np.array([value]))[0] if kept.size > 1 else ""


def bias_notes(replicates: FloatArray, values: FloatArray) -> list[str]:
    """Return the same of many numbers, whose replicates (k, resamples) are all defined."""
    bias = replicates.mean(axis=1) - values
    small = np.abs(bias) <= _SMALL_BIAS * replicates.std(axis=1, ddof=1)
    said = "resamples are biased by {:.2g}: the interval is a rough guide"
    return ["" if no else said.format(by) for no, by in zip(small, bias.tolist(), strict=True)]


def told(found: Interval, *notes: str, bounds: tuple[float, float] | None = None) -> Interval:
    """Return the interval with more notes, and its ends within the bounds."""
    found = replace(found, note=_join(found.note, *notes))
    if bounds is None or np.isnan(found.low):
        return found
    # Sums in another order may leave the range by their last digit.
    low, high = np.clip([found.low, found.high], *bounds)
    return replace(found, low=float(low), high=float(high))


def vary(replicates: FloatArray, value: float) -> bool:
    """Tell whether the replicates differ from each other, or the value, by more than rounding."""
    kept, _ = _defined(replicates)
    if kept.size < 2:
        return True
    return bool(np.ptp(np.append(kept, value)) > 1e-12 * max(1.0, float(np.abs(kept).max())))


def bca(
    replicates: AnyArray, value: float, influence: AnyArray, *, level: float = 0.95
) -> Interval:
    """Correct the percentiles for bias and for a spread that changes with the number itself.

    Parameters
    ----------
    replicates : array of shape (resamples,)
        NaN where a resample leaves the number undefined.
    value : float
        The number for the data themselves.
    influence : array of shape (units,)
        What was drawn, samples or clusters: the influence of each on the number, or the mean of
        the jackknife values minus each of them; any scale. Its skewness gives the acceleration.
    level : float, default=0.95
        Of the interval.

    Returns
    -------
    Interval
        NaN with a note when it cannot be computed.
    """
    kept, note = _defined(replicates)
    method = f"bootstrap, BCa, {np.size(replicates)} resamples"
    if kept.size < 2 or not np.isfinite(value):
        return _none(level, method, note)
    below = float(np.sum(kept < value) + np.sum(kept <= value)) / (2.0 * kept.size)
    if below in {0.0, 1.0}:
        note = _join(note, "every replicate lies on one side of the value")
        below = float(np.clip(below, 0.5 / kept.size, 1.0 - 0.5 / kept.size))
    bias, tail = special.ndtri(below), (1.0 - level) / 2.0
    at = bias + special.ndtri(np.array([tail, 1.0 - tail]))
    bend = 1.0 - acceleration(influence) * at
    # Beyond the point where the bend reaches zero the end is the extreme replicate.
    shifted = np.divide(at, bend, out=np.copysign(np.full(2, np.inf), at), where=bend > 0)
    ends = special.ndtr(bias + shifted)
    return _between(kept, (float(ends[0]), float(ends[1])), level, method, note)


def acceleration(influence: AnyArray) -> float:
    """Return a sixth of the skewness of the influence values, over the root of their number."""
    x = np.asarray(influence, np.float64)
    square = x * x
    spread = float(np.sum(square))
    return float(np.sum(square * x)) / (6.0 * spread**1.5) if spread > 0 else 0.0


def studentized(
    replicates: AnyArray,
    standard_errors: AnyArray,
    value: float,
    standard_error: float,
    *,
    level: float = 0.95,
    scale: Scale = "identity",
) -> Interval:
    """Take the percentiles of (replicate - value) / standard error: the bootstrap-t.

    Parameters
    ----------
    replicates, standard_errors : array of shape (resamples,)
        The number and its standard error for each resample; those with a standard error of
        zero or NaN, or outside the scale, are left out.
    value, standard_error : float
        The same for the data themselves.
    level : float, default=0.95
        Of the interval.
    scale : {"identity", "log", "logit"}, default="identity"
        Where the ratio is formed. "log" is for numbers above 0, "logit" for those in (0, 1).

    Returns
    -------
    Interval
        NaN with a note when it cannot be computed.
    """
    checks.one_of(scale, "scale", tuple(_SCALES))
    numbers, errors = np.asarray(replicates, np.float64), np.asarray(standard_errors, np.float64)
    method = f"bootstrap-t, {numbers.size} resamples"
    method += "" if scale == "identity" else f", {scale} scale"
    usable = np.isfinite(numbers) & (errors > 0) & _inside(numbers, scale)
    kept, note = _defined(np.where(usable, numbers, np.nan))
    own = np.array([value])
    if kept.size < 2 or not (standard_error > 0 and _inside(own, scale)[0]):
        reason = "the value has no standard error on this scale" if kept.size >= 2 else ""
        return _none(level, method, _join(note, reason))
    to, slope, back = _SCALES[scale]
    center, spread = to(own)[0], float(standard_error) * slope(own)[0]
    ratio = (to(kept) - center) / (errors[usable] * slope(kept))
    tail = (1.0 - level) / 2.0
    high, low = center - spread * quantiles(ratio, (tail, 1.0 - tail))
    ends = back(np.array([low, high]))
    note = _join(note, _too_few(kept.size, tail))
    return Interval(float(ends[0]), float(ends[1]), level, method, float(standard_error), note)


def _inside(x: FloatArray, scale: Scale) -> BoolArray:
    low = -np.inf if scale == "identity" else 0.0
    high = 1.0 if scale == "logit" else np.inf
    return np.asarray((x > low) & (x < high))


def _defined(replicates: AnyArray) -> tuple[FloatArray, str]:
    """Drop what is undefined, and say how much that is."""
    x = np.asarray(replicates, np.float64)
    kept = x[np.isfinite(x)]
    lost = x.size - kept.size
    if not lost:
        return kept, ""
    if kept.size < 2:
        return kept, f"undefined in {lost} of {x.size} resamples"
    return kept, f"undefined in {lost} of {x.size} resamples, which are left out"


def _between(
    kept: FloatArray, ends: tuple[float, float], level: float, method: str, note: str
) -> Interval:
    low, high = quantiles(kept, ends)
    note = _join(note, _too_few(kept.size, (1.0 - level) / 2.0))
    if min(ends[0], 1.0 - ends[1]) * kept.size < 1.0 and not note:
        note = "an end of the interval is the outermost replicate; draw more"
    return Interval(float(low), float(high), level, method, float(kept.std(ddof=1)), note)


def _too_few(resamples: int, tail: float) -> str:
    # Rounding: 200 resamples have exactly five beyond each end at 95 %.
    if resamples * tail >= _BEYOND * (1 - 1e-9):
        return ""
    needed = int(np.ceil(_BEYOND / tail - 1e-6))
    return f"{resamples} resamples are few for this level; draw at least {needed}"


def _none(level: float, method: str, note: str) -> Interval:
    nan = float("nan")
    return Interval(nan, nan, level, method, nan, note or "the value itself is undefined")


def _join(*notes: str) -> str:
    return "; ".join(filter(None, notes))
