"""Differences of numbers of the same samples, all pairs at once: intervals, p-values, ratios."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from abstain.inference.influence import OPEN, joint_p_value, levels_left, of_difference
from abstain.inference.pairs import PairPowers, first_and_second, ratio_ends
from abstain.inference.small_samples import (
    Failures,
    counted,
    degrees_from,
    rounding,
    skewed,
    straightened,
    t_probabilities,
    t_quantiles,
    warning,
)
from abstain.typing import BoolArray, FloatArray

NAN = float("nan")


@dataclass(frozen=True)
class Difference:
    """Two numbers of the same samples: first minus second.

    Attributes
    ----------
    value : float
        The difference.
    low, high : float
        Its interval; NaN when there is none, then `note` says why.
    level : float
        Of the intervals.
    standard_error : float
        Of the difference, the pairing counted.
    p_value : float
        Two-sided, of no difference.
    superiority : float
        The chance that the first is better in another study, were these values the true ones.
    ratio, ratio_low, ratio_high : float
        First over second with its interval, which may reach 0 or inf; NaN where one of them is
        not above zero.
    method : str
        How it was made, in words.
    note : str
        A warning for the reader; empty when there is none.
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


def quantile_words(degrees: float) -> str:
    """Name the quantile."""
    shown = f"{degrees:.3g}" if degrees < 1000 else f"{degrees:.0f}"
    return f"t with {shown} degrees of freedom"


def most_degrees(failures: int | Failures | None) -> float:
    """Return the most degrees of freedom that so many failures allow."""
    known = counted(failures)
    return np.inf if known is None else max(1.0, known.number - 1.0)


def size_of(values: tuple[float, ...], bounds: tuple[float, float]) -> float:
    """Return the size of numbers for their rounding: of their range, where that is finite."""
    width = bounds[1] - bounds[0]
    finite = (abs(v) for v in (*values, width) if np.isfinite(v))
    return max(finite, default=0.0)


@dataclass(frozen=True, eq=False)
class PairedNumbers:
    """Pairs of numbers of the same samples, with what their errors are made of."""

    #: The numbers, shape (2, pairs).
    values: FloatArray
    #: First minus second, rid of rounding.
    apart: FloatArray
    #: Sums over what each independent unit adds to the error of both.
    powers: PairPowers
    #: Independent units that each pair rests on.
    units: FloatArray
    #: Of freedom, as many as the failures allow.
    most_degrees: FloatArray
    level: float

    @classmethod
    def every(
        cls,
        values: FloatArray,
        parts: FloatArray,
        *,
        bounds: tuple[float, float],
        failures: Sequence[int | Failures | None],
        level: float,
        units: FloatArray | None = None,
    ) -> "PairedNumbers":
        """Take every two of the numbers, in the order of `itertools.combinations`.

        `parts` are the `shares` (units, k), `failures` those that each number rests on; `units`
        are the units of each pair, by default all.
        """
        first, second = first_and_second(values.size)
        count = np.full(first.size, float(parts.shape[0])) if units is None else units
        both = np.stack([values[first], values[second]])
        sizes = [size_of(pair, bounds) for pair in zip(*both.tolist(), strict=True)]
        least = rounding(count, np.array(sizes))
        most = np.array([most_degrees(own) for own in failures])
        powers = PairPowers.of(parts, values).without_rounding(parts, least / count)
        apart = both[0] - both[1]
        apart[(powers.apart == 0) & (np.abs(apart) <= least)] = 0.0
        return cls(both, apart, powers, count, np.minimum(most[first], most[second]), level)

    def only(self, chosen: "slice | BoolArray | list[int]") -> "PairedNumbers":
        """Return some of the pairs."""
        return PairedNumbers(
            self.values[:, chosen],
            self.apart[chosen],
            self.powers.only(chosen),
            self.units[chosen],
            self.most_degrees[chosen],
            self.level,
        )

    @property
    def error(self) -> FloatArray:
        """The standard error of each difference; NaN for one unit."""
        more = np.full(self.units.shape, NAN)
        np.divide(self.units, self.units - 1, out=more, where=self.units > 1)
        return np.asarray(np.sqrt(self.powers.even[0] * more))


@dataclass(frozen=True, eq=False)
class PairTest:
    """The test of each difference: its standard error, degrees of freedom and skewness."""

    error: FloatArray
    degrees: FloatArray
    skew: FloatArray

    @classmethod
    def of(cls, pairs: PairedNumbers) -> "PairTest":
        """Read them off the powers of the differences."""
        two, three, four = pairs.powers.even
        degrees = np.minimum(degrees_from(two, four, pairs.units), pairs.most_degrees)
        with np.errstate(divide="ignore", invalid="ignore"):
            return cls(pairs.error, degrees, three / two**1.5)

    def ends(self, value: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return the interval of each difference."""
        reach = t_quantiles(level, self.degrees)
        low = value - self.error * skewed(reach, self.skew)
        return low, value - self.error * skewed(-reach, self.skew)

    def p_value(self, value: FloatArray) -> FloatArray:
        """Return the two-sided p-value of each difference."""
        statistic = straightened(value / self.error, self.skew)
        return 2 * t_probabilities(-np.abs(statistic), self.degrees)


@dataclass(frozen=True, eq=False)
class Differences:
    """Every two of some numbers: one entry a pair of each field of `Difference`."""

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

    def one(self, p: int) -> Difference:
        """Return the record of one pair."""
        how = "influence function" if self.low[p] == self.high[p] == 0 else "none"
        if self.low[p] < self.high[p]:
            how = "all thresholds that the data leave open"
        if np.isfinite(self.degrees[p]):
            words = quantile_words(float(self.degrees[p]))
            how = f"influence function, half of the skewness corrected, {words}"
        return Difference(
            value=float(self.value[p]),
            low=float(self.low[p]),
            high=float(self.high[p]),
            level=self.level,
            standard_error=float(self.standard_error[p]),
            p_value=float(self.p_value[p]),
            superiority=float(self.superiority[p]),
            ratio=float(self.ratio[p]),
            ratio_low=float(self.ratio_low[p]),
            ratio_high=float(self.ratio_high[p]),
            method=how,
            note=self.notes[p],
        )


def differences(
    pairs: PairedNumbers,
    *,
    lower_is_better: bool,
    bounds: tuple[float, float],
    warnings: Sequence[str],
    reaches: FloatArray | None = None,
    no_error_at_threshold: bool = False,
    ratios: bool = True,
) -> Differences:
    """Test every pair; `warnings` go with those that have an interval.

    `reaches` are those of each number, where thresholds jump (`influence.reach_of`). Numbers
    whose influences are 0 may have no other error: see `Measurement.no_error_at_threshold`.
    """
    why = _why_none(pairs)
    known = np.array([not note for note in why], np.bool_)
    out = _none_apart(pairs, why)
    if known.any():
        _set_tests(out, pairs, known, lower_is_better=lower_is_better, ratios=ratios)
    for p, both in _open_pairs(reaches).items():
        if known[p]:
            _over_thresholds(out, pairs, p, both)
        elif no_error_at_threshold and pairs.error[p] == 0:
            _without_spread(out, pairs, p, both)
    width = bounds[1] - bounds[0]
    np.clip(out.low, -width, width, out=out.low)
    np.clip(out.high, -width, width, out=out.high)
    for at, (tells, said) in enumerate(zip(known, warnings, strict=True)):
        if tells:
            out.notes[at] = "; ".join(filter(None, (out.notes[at], said)))
    return out


def _set_tests(
    out: Differences, pairs: PairedNumbers, known: BoolArray, *, lower_is_better: bool, ratios: bool
) -> None:
    """Set intervals, p-values and ratios of the pairs that have a test."""
    tested = pairs.only(known)
    test = PairTest.of(tested)
    statistic = straightened(tested.apart / test.error, test.skew)
    out.low[known], out.high[known] = test.ends(tested.apart, pairs.level)
    out.p_value[known] = test.p_value(tested.apart)
    better = -statistic if lower_is_better else statistic
    out.superiority[known] = t_probabilities(better, test.degrees)
    out.degrees[known] = test.degrees
    if ratios:
        above = known & (pairs.values > 0).all(axis=0)
        first, second = pairs.values[:, above]
        out.ratio[above] = first / second
        out.ratio_low[above], out.ratio_high[above] = ratio_ends(pairs.only(above))


def warnings_of(
    failures: Sequence[Failures | None], *, heavy: bool, clusters: Sequence[int | None]
) -> list[str]:
    """Return what to be careful about in each pair: few failures of either, few clusters."""
    first, second = first_and_second(len(failures))
    said: dict[tuple[Failures | None, int | None], str] = {}
    out = []
    for i, j, units in zip(first.tolist(), second.tolist(), clusters, strict=True):
        known = [own for own in (failures[i], failures[j]) if own is not None]
        key = min(known, key=lambda own: own.number, default=None), units
        if key not in said:
            said[key] = warning(key[0], heavy=heavy, units=units)
        out.append(said[key])
    return out


def _why_none(pairs: PairedNumbers) -> list[str]:
    """Return why each pair has no test, or an empty string."""
    error, largest, apart = pairs.error, pairs.powers.largest, pairs.apart
    alike = error <= 1e-14 * largest
    same = "every sample counts the same in both"
    rules = (
        (~np.isfinite(apart), "one of the two numbers is not finite"),
        (~np.isfinite(error), "one independent sample shows no spread"),
        (alike & (apart != 0), "no sample changes the difference, so its spread cannot be seen"),
        (alike & (largest > 0), same),
        (alike, f"{same}, and none changes either, so no spread can be seen"),
    )
    out = [""] * apart.size
    for where, said in reversed(rules):
        for p in np.flatnonzero(where):
            out[p] = said
    return out


def _none_apart(pairs: PairedNumbers, notes: list[str]) -> Differences:
    """Return differences that nothing varies: exactly 0, or without an interval."""
    error = pairs.error
    said = np.array([bool(note) for note in notes], np.bool_)
    same = said & (pairs.apart == 0) & np.isfinite(error)
    end = np.where(same & (pairs.powers.largest > 0), 0.0, NAN)
    p_value, half = np.where(same, 1.0, NAN), np.where(same, 0.5, NAN)
    low, high = end, end.copy()
    return Differences(
        value=pairs.apart,
        low=low,
        high=high,
        standard_error=error,
        p_value=p_value,
        superiority=half,
        ratio=np.full(error.shape, NAN),
        ratio_low=np.full(error.shape, NAN),
        ratio_high=np.full(error.shape, NAN),
        degrees=np.full(error.shape, NAN),
        notes=list(notes),
        level=pairs.level,
    )


# ---------------------------------------------------------------------------- several thresholds
def _open_pairs(reaches: FloatArray | None) -> dict[int, FloatArray]:
    """Return the reaches of both numbers of each pair that has several possible thresholds."""
    if reaches is None:
        return {}
    both = np.stack([reaches[own] for own in first_and_second(len(reaches))], axis=1)
    return {int(p): both[p] for p in np.flatnonzero(both.any(axis=(1, 2, 3)))}


def _over_thresholds(out: Differences, pairs: PairedNumbers, p: int, reaches: FloatArray) -> None:
    """Widen a difference, and its ratio, by the thresholds that the data leave open."""
    down, up = of_difference(reaches)
    pair = pairs.only([p])
    test, value = PairTest.of(pair), float(pair.apart[0])
    left = levels_left(pairs.level)
    lows, highs = [(float(out.low[p]), -1)], [(float(out.high[p]), -1)]
    for step, own in enumerate(left.tolist()):
        if down[step] > 0:
            lows.append((float(test.ends(pair.apart - down[step], own)[0][0]), step))
        if up[step] > 0:
            highs.append((float(test.ends(pair.apart + up[step], own)[1][0]), step))
    (low, lowest), (high, highest) = min(lows), max(highs)
    beside = _p_beside(test, value, down if value > 0 else up)
    out.low[p], out.high[p] = low, high
    out.p_value[p] = max(float(out.p_value[p]), joint_p_value(beside))
    if lowest == highest == -1:
        return
    out.notes[p] = OPEN
    if np.isnan(out.ratio[p]):
        return
    # The ends of the ratio are where those of the difference were found.
    first, second = reaches
    if lowest >= 0:
        moved = pair.values + np.array([[-first[0, lowest]], [second[1, lowest]]])
        out.ratio_low[p] = ratio_ends(replace(pair, values=moved, level=left[lowest]))[0][0]
    if highest >= 0:
        moved = pair.values + np.array([[first[1, highest]], [-second[0, highest]]])
        out.ratio_high[p] = ratio_ends(replace(pair, values=moved, level=left[highest]))[1][0]


def _without_spread(out: Differences, pairs: PairedNumbers, p: int, reaches: FloatArray) -> None:
    """Set the interval of a difference whose only error is which thresholds are meant."""
    down, up = of_difference(reaches)
    value, last_step = float(pairs.apart[p]), levels_left(pairs.level).size - 1
    out.low[p], out.high[p] = value - down[last_step], value + up[last_step]
    out.p_value[p] = joint_p_value((abs(value) <= (down if value > 0 else up)).astype(float))
    out.notes[p] = OPEN


def _p_beside(test: PairTest, value: float, move: FloatArray) -> FloatArray:
    """Return the p-value of what is left of a difference at each step; 0 where nothing moves."""
    left, place = np.unique(np.maximum(abs(value) - move, 0.0), return_inverse=True)
    found = np.where(left > 0, test.p_value(float(np.sign(value)) * left), 1.0)
    return np.where(move > 0, found[place], 0.0)
