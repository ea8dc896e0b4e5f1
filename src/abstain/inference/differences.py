"""Paired differences of numbers from the same samples, computed for all pairs at once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from abstain.inference.influence import (
    AMBIGUOUS_THRESHOLD_NOTE,
    joint_p_value,
    max_shifts_of_difference,
    remaining_levels,
)
from abstain.inference.pairs import PairedNumbers, pair_indices, ratio_intervals
from abstain.inference.small_samples import (
    FailureCount,
    correct_skewness,
    few_failures_warning,
    invert_skewness_correction,
    satterthwaite_degrees,
    t_probabilities,
    t_quantiles,
)
from abstain.typing import BoolArray, FloatArray

NAN = float("nan")


@dataclass(frozen=True)
class Difference:
    """Difference of two numbers from the same samples, first minus second.

    Attributes
    ----------
    value : float
        The difference.
    low, high : float
        Bounds of the confidence interval of the difference. If no interval exists, the bounds are
        NaN and `note` states the reason.
    level : float
        Confidence level of the intervals.
    standard_error : float
        Standard error of the paired difference.
    p_value : float
        Two-sided p-value of the null hypothesis that the true difference is 0.
    superiority : float
        Probability that the first number is better in another study, under the assumption that the
        observed values are the true values.
    ratio, ratio_low, ratio_high : float
        First divided by second, and the bounds of the confidence interval, which may be 0 or inf.
        NaN unless both numbers are positive.
    method : str
        Method of the test and the interval.
    note : str
        A warning; empty if there is none.
    """

    value: float
    low: float
    high: float
    level: float
    standard_error: float
    p_value: float
    superiority: float
    ratio: float
    ratio_low: float
    ratio_high: float
    method: str
    note: str = ""


def format_quantile(degrees: float) -> str:
    """Return a text with the degrees of freedom of a t quantile."""
    degrees_text = f"{degrees:.3g}" if degrees < 1000 else f"{degrees:.0f}"
    return f"t with {degrees_text} degrees of freedom"


@dataclass(frozen=True, eq=False)
class PairTest:
    """A t-test of each difference with a correction for skewness."""

    standard_error: FloatArray
    degrees: FloatArray
    skew: FloatArray

    @classmethod
    def from_pairs(cls, pairs: PairedNumbers) -> "PairTest":
        """Compute the standard error, degrees of freedom and skewness from the power sums."""
        second, third, fourth = pairs.power_sums.difference_sums
        degrees = satterthwaite_degrees(second, fourth, pairs.n_units)
        degrees = np.minimum(degrees, pairs.max_degrees)
        with np.errstate(divide="ignore", invalid="ignore"):
            return cls(pairs.standard_error, degrees, third / second**1.5)

    def interval(self, value: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return the confidence interval of each difference."""
        quantile = t_quantiles(level, self.degrees)
        upper = invert_skewness_correction(quantile, self.skew)
        lower = invert_skewness_correction(-quantile, self.skew)
        return value - self.standard_error * upper, value - self.standard_error * lower

    def p_value(self, value: FloatArray) -> FloatArray:
        """Return the two-sided p-value of each difference."""
        statistic = correct_skewness(value / self.standard_error, self.skew)
        return 2 * t_probabilities(-np.abs(statistic), self.degrees)


@dataclass(frozen=True, eq=False)
class Differences:
    """Differences of pairs of numbers, as the fields of `Difference` with one entry per pair."""

    value: FloatArray
    low: FloatArray
    high: FloatArray
    standard_error: FloatArray
    p_value: FloatArray
    superiority: FloatArray
    ratio: FloatArray
    ratio_low: FloatArray
    ratio_high: FloatArray
    degrees: FloatArray
    notes: list[str]
    level: float

    def record(self, pair: int) -> Difference:
        """Return the difference of one pair."""
        return Difference(
            value=float(self.value[pair]),
            low=float(self.low[pair]),
            high=float(self.high[pair]),
            level=self.level,
            standard_error=float(self.standard_error[pair]),
            p_value=float(self.p_value[pair]),
            superiority=float(self.superiority[pair]),
            ratio=float(self.ratio[pair]),
            ratio_low=float(self.ratio_low[pair]),
            ratio_high=float(self.ratio_high[pair]),
            method=self._method(pair),
            note=self.notes[pair],
        )

    def _method(self, pair: int) -> str:
        degrees = float(self.degrees[pair])
        if np.isfinite(degrees):
            quantile = format_quantile(degrees)
            return f"influence function, half of the skewness corrected, {quantile}"
        low, high = self.low[pair], self.high[pair]
        if low < high:
            return "union over all plausible thresholds"
        return "influence function" if low == high == 0 else "none"


def compare_pairs(
    pairs: PairedNumbers,
    *,
    lower_is_better: bool,
    bounds: tuple[float, float],
    warnings: Sequence[str],
    max_shifts: FloatArray | None = None,
    no_error_at_threshold: bool = False,
    ratios: bool = True,
) -> Differences:
    """Test the difference of every pair of numbers.

    The function adds `warnings` to the notes of pairs that have an interval. `max_shifts`, shape
    (k, 2, steps), is the result of `influence.max_shifts_by_step` for each number whose threshold
    the data do not determine. `no_error_at_threshold` is the field of `Measurement`.
    """
    reasons = _reasons_for_no_test(pairs)
    has_test = np.array([not reason for reason in reasons], np.bool_)
    out = _untested_differences(pairs, reasons)
    if has_test.any():
        _set_tests(out, pairs, has_test, lower_is_better=lower_is_better, ratios=ratios)
    for p, pair_shifts in _shifts_by_pair(max_shifts).items():
        if has_test[p]:
            _widen_over_thresholds(out, pairs, p, pair_shifts)
        elif no_error_at_threshold and pairs.standard_error[p] == 0:
            _set_threshold_interval(out, pairs, p, pair_shifts)
    width = bounds[1] - bounds[0]
    np.clip(out.low, -width, width, out=out.low)
    np.clip(out.high, -width, width, out=out.high)
    for p, warning in enumerate(warnings):
        if has_test[p]:
            out.notes[p] = "; ".join(filter(None, (out.notes[p], warning)))
    return out


def _set_tests(
    out: Differences,
    pairs: PairedNumbers,
    has_test: BoolArray,
    *,
    lower_is_better: bool,
    ratios: bool,
) -> None:
    """Set the intervals, p-values and ratios of the pairs that have a test."""
    tested = pairs.select(has_test)
    test = PairTest.from_pairs(tested)
    statistic = correct_skewness(tested.differences / test.standard_error, test.skew)
    out.low[has_test], out.high[has_test] = test.interval(tested.differences, pairs.level)
    out.p_value[has_test] = test.p_value(tested.differences)
    better = -statistic if lower_is_better else statistic
    out.superiority[has_test] = t_probabilities(better, test.degrees)
    out.degrees[has_test] = test.degrees
    if ratios:
        has_ratio = has_test & (pairs.values > 0).all(axis=0)
        first, second = pairs.values[:, has_ratio]
        out.ratio[has_ratio] = first / second
        low, high = ratio_intervals(pairs.select(has_ratio))
        out.ratio_low[has_ratio], out.ratio_high[has_ratio] = low, high


def warnings_by_pair(
    failures: Sequence[FailureCount | None],
    *,
    heavy_tailed: bool,
    clusters: Sequence[int | None],
) -> list[str]:
    """Return the warning of each pair of compared numbers, or an empty string.

    A pair has a warning if one of its numbers is computed from few failures, or if there are few
    clusters.
    """
    first, second = pair_indices(len(failures))
    cache: dict[tuple[FailureCount | None, int | None], str] = {}
    warnings = []
    for i, j, n_clusters in zip(first.tolist(), second.tolist(), clusters, strict=True):
        counts = [count for count in (failures[i], failures[j]) if count is not None]
        fewest = min(counts, key=lambda failure_count: failure_count.n_failures, default=None)
        key = fewest, n_clusters
        if key not in cache:
            cache[key] = few_failures_warning(
                fewest, heavy_tailed=heavy_tailed, n_clusters=n_clusters
            )
        warnings.append(cache[key])
    return warnings


def _reasons_for_no_test(pairs: PairedNumbers) -> list[str]:
    """Return for each pair the reason why it has no test, or an empty string."""
    error, difference = pairs.standard_error, pairs.differences
    max_contribution = pairs.power_sums.max_contribution
    has_no_error = error <= 1e-14 * max_contribution
    equal_influences = "every sample has the same influence on both numbers"
    # The first rule that applies determines the reason.
    rules = (
        (~np.isfinite(difference), "one of the two numbers is not finite"),
        (~np.isfinite(error), "a single independent sample does not show the variation"),
        (
            has_no_error & (difference != 0),
            "no sample changes the difference, so its standard error is unknown",
        ),
        (has_no_error & (max_contribution > 0), equal_influences),
        (has_no_error, "no sample changes either number, so the standard error is unknown"),
    )
    reasons = [""] * difference.size
    for applies, reason in reversed(rules):
        for p in np.flatnonzero(applies):
            reasons[p] = reason
    return reasons


def _untested_differences(pairs: PairedNumbers, reasons: list[str]) -> Differences:
    """Return differences without tests, whose bounds are NaN, or 0 for identical numbers."""
    error = pairs.standard_error
    has_reason = np.array([bool(reason) for reason in reasons], np.bool_)
    is_zero = has_reason & (pairs.differences == 0) & np.isfinite(error)
    bound = np.where(is_zero & (pairs.power_sums.max_contribution > 0), 0.0, NAN)
    return Differences(
        value=pairs.differences,
        low=bound,
        high=bound.copy(),
        standard_error=error,
        p_value=np.where(is_zero, 1.0, NAN),
        superiority=np.where(is_zero, 0.5, NAN),
        ratio=np.full(error.shape, NAN),
        ratio_low=np.full(error.shape, NAN),
        ratio_high=np.full(error.shape, NAN),
        degrees=np.full(error.shape, NAN),
        notes=list(reasons),
        level=pairs.level,
    )


# ---------------------------------------------------------------------------- several thresholds
def _shifts_by_pair(max_shifts: FloatArray | None) -> dict[int, FloatArray]:
    """Return the shifts of both numbers for each pair with several plausible thresholds."""
    if max_shifts is None:
        return {}
    pair_shifts = np.stack([max_shifts[i] for i in pair_indices(len(max_shifts))], axis=1)
    has_shifts = pair_shifts.any(axis=(1, 2, 3))
    return {int(p): pair_shifts[p] for p in np.flatnonzero(has_shifts)}


def _widen_over_thresholds(
    out: Differences, pairs: PairedNumbers, p: int, pair_shifts: FloatArray
) -> None:
    """Extend the intervals of a difference and of its ratio to all plausible thresholds."""
    shifts_down, shifts_up = max_shifts_of_difference(pair_shifts)
    pair = pairs.select(slice(p, p + 1))
    test, value = PairTest.from_pairs(pair), float(pair.differences[0])
    levels = remaining_levels(pairs.level)
    # Each entry is a bound with its distance step. The step of the selected threshold is -1.
    lows, highs = [(float(out.low[p]), -1)], [(float(out.high[p]), -1)]
    for step, level in enumerate(levels.tolist()):
        if shifts_down[step] > 0:
            low, _ = test.interval(pair.differences - shifts_down[step], level)
            lows.append((float(low[0]), step))
        if shifts_up[step] > 0:
            _, high = test.interval(pair.differences + shifts_up[step], level)
            highs.append((float(high[0]), step))
    (min_low, low_step), (max_high, high_step) = min(lows), max(highs)
    shifts_to_zero = shifts_down if value > 0 else shifts_up
    p_values = _p_values_after_shift(test, value, shifts_to_zero)
    out.low[p], out.high[p] = min_low, max_high
    out.p_value[p] = max(float(out.p_value[p]), joint_p_value(p_values))
    if low_step == high_step == -1:
        return
    out.notes[p] = AMBIGUOUS_THRESHOLD_NOTE
    if np.isnan(out.ratio[p]):
        return
    # The bounds of the ratio use the steps of the bounds of the difference.
    (first_down, first_up), (second_down, second_up) = pair_shifts
    if low_step >= 0:
        shifts = np.array([[-first_down[low_step]], [second_up[low_step]]])
        shifted = replace(pair, values=pair.values + shifts, level=levels[low_step])
        out.ratio_low[p] = ratio_intervals(shifted)[0][0]
    if high_step >= 0:
        shifts = np.array([[first_up[high_step]], [-second_down[high_step]]])
        shifted = replace(pair, values=pair.values + shifts, level=levels[high_step])
        out.ratio_high[p] = ratio_intervals(shifted)[1][0]


def _set_threshold_interval(
    out: Differences, pairs: PairedNumbers, p: int, pair_shifts: FloatArray
) -> None:
    """Set the interval of a difference whose only source of error is the thresholds."""
    shifts_down, shifts_up = max_shifts_of_difference(pair_shifts)
    value = float(pairs.differences[p])
    last_step = remaining_levels(pairs.level).size - 1
    out.low[p] = value - shifts_down[last_step]
    out.high[p] = value + shifts_up[last_step]
    can_reach_zero = abs(value) <= (shifts_down if value > 0 else shifts_up)
    out.p_value[p] = joint_p_value(can_reach_zero.astype(float))
    out.notes[p] = AMBIGUOUS_THRESHOLD_NOTE


def _p_values_after_shift(test: PairTest, value: float, shifts: FloatArray) -> FloatArray:
    """Return the p-value of the difference after each shift towards 0, or 0 without a shift."""
    remaining = np.maximum(abs(value) - shifts, 0.0)
    distinct, index = np.unique(remaining, return_inverse=True)
    p_values = np.where(distinct > 0, test.p_value(float(np.sign(value)) * distinct), 1.0)
    return np.where(shifts > 0, p_values[index], 0.0)
