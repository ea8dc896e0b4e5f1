"""Paired differences between numbers from the same samples, computed for all pairs at once."""

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
    """Difference between two numbers that are computed from the same samples, first minus second.

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
        Probability that the first number is better in another study if the observed values are the
        true values.
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
    """Return a text that states the degrees of freedom of a t quantile."""
    degrees_text = f"{degrees:.3g}" if degrees < 1000 else f"{degrees:.0f}"
    return f"t with {degrees_text} degrees of freedom"


@dataclass(frozen=True, eq=False)
class PairTest:
    """T-tests of the differences of pairs, with a correction for skewness."""

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
    """Arrays with the fields of `Difference` for many pairs of numbers."""

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
        low = self.low[pair]
        high = self.high[pair]
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

    `warnings` contains a warning for each pair, which is added to its note. `max_shifts`, shape (k,
    2, steps), is the result of `influence.max_shifts_by_step` for each number.
    """
    reasons = _reasons_for_no_test(pairs)
    has_test = np.array([not reason for reason in reasons], np.bool_)
    out = _untested_differences(pairs, reasons)
    if has_test.any():
        _set_tests(out, pairs, has_test, lower_is_better=lower_is_better, ratios=ratios)
    for pair, pair_shifts in _shifts_by_pair(max_shifts).items():
        if has_test[pair]:
            _widen_over_thresholds(out, pairs, pair, pair_shifts)
        elif no_error_at_threshold and pairs.standard_error[pair] == 0:
            _set_threshold_interval(out, pairs, pair, pair_shifts)
    width = bounds[1] - bounds[0]
    np.clip(out.low, -width, width, out=out.low)
    np.clip(out.high, -width, width, out=out.high)
    for pair, warning in enumerate(warnings):
        if has_test[pair]:
            notes = [note for note in (out.notes[pair], warning) if note]
            out.notes[pair] = "; ".join(notes)
    return out


def _set_tests(
    out: Differences,
    pairs: PairedNumbers,
    has_test: BoolArray,
    *,
    lower_is_better: bool,
    ratios: bool,
) -> None:
    """Compute the intervals, p-values and ratios of the pairs that can be tested."""
    tested = pairs.select(has_test)
    test = PairTest.from_pairs(tested)
    low, high = test.interval(tested.differences, pairs.level)
    out.low[has_test] = low
    out.high[has_test] = high
    out.p_value[has_test] = test.p_value(tested.differences)
    out.degrees[has_test] = test.degrees
    statistic = correct_skewness(tested.differences / test.standard_error, test.skew)
    advantage = -statistic if lower_is_better else statistic
    out.superiority[has_test] = t_probabilities(advantage, test.degrees)
    if ratios:
        has_ratio = has_test & (pairs.values > 0).all(axis=0)
        first, second = pairs.values[:, has_ratio]
        ratio_low, ratio_high = ratio_intervals(pairs.select(has_ratio))
        out.ratio[has_ratio] = first / second
        out.ratio_low[has_ratio] = ratio_low
        out.ratio_high[has_ratio] = ratio_high


def warnings_by_pair(
    failures: Sequence[FailureCount | None],
    *,
    heavy_tailed: bool,
    clusters: Sequence[int | None],
) -> list[str]:
    """Return a warning about few failures or few clusters for each pair, or an empty string."""
    first, second = pair_indices(len(failures))
    cache: dict[tuple[FailureCount | None, int | None], str] = {}
    warnings = []
    for i, j, n_clusters in zip(first.tolist(), second.tolist(), clusters, strict=True):
        fewest = _smaller_count(failures[i], failures[j])
        key = fewest, n_clusters
        if key not in cache:
            cache[key] = few_failures_warning(
                fewest, heavy_tailed=heavy_tailed, n_clusters=n_clusters
            )
        warnings.append(cache[key])
    return warnings


def _smaller_count(first: FailureCount | None, second: FailureCount | None) -> FailureCount | None:
    """Return the smaller of two numbers of failures, where None means unknown."""
    if first is None or second is None:
        return first or second
    return first if first.n_failures <= second.n_failures else second


def _reasons_for_no_test(pairs: PairedNumbers) -> list[str]:
    """Return the reason why a pair cannot be tested, or an empty string, for each pair."""
    error = pairs.standard_error
    max_contribution = pairs.power_sums.max_contribution
    has_no_error = error <= 1e-14 * max_contribution
    reasons = np.full(error.size, "", object)
    # A later reason replaces an earlier reason.
    reasons[has_no_error] = "no sample changes either number, so the standard error is unknown"
    has_equal_influences = has_no_error & (max_contribution > 0)
    reasons[has_equal_influences] = "every sample has the same influence on both numbers"
    is_constant = has_no_error & (pairs.differences != 0)
    reasons[is_constant] = "no sample changes the difference, so its standard error is unknown"
    reasons[~np.isfinite(error)] = "a single independent sample does not show the variation"
    reasons[~np.isfinite(pairs.differences)] = "one of the two numbers is not finite"
    return [str(reason) for reason in reasons]


def _untested_differences(pairs: PairedNumbers, reasons: list[str]) -> Differences:
    """Return differences without intervals, whose bounds are NaN, or 0 for identical numbers."""
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
    """Extend the intervals of a difference and of a ratio to cover all plausible thresholds.

    `p` is the index of the pair. The bounds of the ratio are computed at the thresholds that
    determine the bounds of the difference.
    """
    shifts_down, shifts_up = max_shifts_of_difference(pair_shifts)
    pair = pairs.select(slice(p, p + 1))
    test = PairTest.from_pairs(pair)
    levels = remaining_levels(pairs.level)
    low_step = high_step = None
    for step, level in enumerate(levels.tolist()):
        if shifts_down[step] > 0:
            low, _ = test.interval(pair.differences - shifts_down[step], level)
            if low[0] < out.low[p]:
                out.low[p] = low[0]
                low_step = step
        if shifts_up[step] > 0:
            _, high = test.interval(pair.differences + shifts_up[step], level)
            if high[0] >= out.high[p]:
                out.high[p] = high[0]
                high_step = step
    value = float(pair.differences[0])
    shifts_to_zero = shifts_down if value > 0 else shifts_up
    p_values = _p_values_after_shift(test, value, shifts_to_zero)
    out.p_value[p] = max(float(out.p_value[p]), joint_p_value(p_values))
    if low_step is not None or high_step is not None:
        out.notes[p] = AMBIGUOUS_THRESHOLD_NOTE
    if np.isnan(out.ratio[p]):
        return
    (first_down, first_up), (second_down, second_up) = pair_shifts
    if low_step is not None:
        shifts = (-first_down[low_step], second_up[low_step])
        out.ratio_low[p] = _ratio_interval(pair, shifts, levels[low_step])[0]
    if high_step is not None:
        shifts = (first_up[high_step], -second_down[high_step])
        out.ratio_high[p] = _ratio_interval(pair, shifts, levels[high_step])[1]


def _ratio_interval(
    pair: PairedNumbers, shifts: tuple[float, float], level: float
) -> tuple[float, float]:
    """Return the interval of the ratio of one pair after both numbers are shifted."""
    shifted_values = pair.values + np.array(shifts)[:, None]
    low, high = ratio_intervals(replace(pair, values=shifted_values, level=level))
    return float(low[0]), float(high[0])


def _set_threshold_interval(
    out: Differences, pairs: PairedNumbers, p: int, pair_shifts: FloatArray
) -> None:
    """Set the interval of a difference whose only source of error is the choice of thresholds."""
    shifts_down, shifts_up = max_shifts_of_difference(pair_shifts)
    value = float(pairs.differences[p])
    last_step = remaining_levels(pairs.level).size - 1
    out.low[p] = value - shifts_down[last_step]
    out.high[p] = value + shifts_up[last_step]
    shifts_to_zero = shifts_down if value > 0 else shifts_up
    can_reach_zero = abs(value) <= shifts_to_zero
    out.p_value[p] = joint_p_value(can_reach_zero.astype(float))
    out.notes[p] = AMBIGUOUS_THRESHOLD_NOTE


def _p_values_after_shift(test: PairTest, value: float, shifts: FloatArray) -> FloatArray:
    """Return the p-value after each shift of the difference towards 0, or 0 if the shift is 0."""
    remaining = np.maximum(abs(value) - shifts, 0.0)
    distinct, index = np.unique(remaining, return_inverse=True)
    p_values = np.where(distinct > 0, test.p_value(float(np.sign(value)) * distinct), 1.0)
    return np.where(shifts > 0, p_values[index], 0.0)
