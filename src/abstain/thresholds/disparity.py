"""How far apart groups are under a rule: in what is rejected, and in what is answered wrongly."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from abstain.inference.intervals import Interval, no_interval
from abstain.thresholds.rule_check import RuleCheck

_METHOD: Final = "range of simultaneous intervals"
_FEW: Final = "fewer than two groups have this number"


@dataclass(frozen=True)
class Disparity:
    """The largest difference between groups in one number, and the largest ratio.

    Attributes
    ----------
    name : str
        Name of the data set.
    quantity : str
        "rejection rate" (1 - coverage), "selective risk" or "generalized risk".
    highest, lowest : str
        The groups in which it is largest and smallest; "" where fewer than two have it.
    difference, ratio : float
        Of the two: largest minus smallest, at least 0; largest by smallest, at least 1, infinite
        where only the smallest is 0. NaN where fewer than two groups have the number.
    difference_interval, ratio_interval : Interval
        Of the true largest difference and ratio among these groups, whichever they are.
    groups : int
        How many groups have the number.
    """

    name: str
    quantity: str
    highest: str
    lowest: str
    difference: float
    difference_interval: Interval
    ratio: float
    ratio_interval: Interval
    groups: int


def disparities(groups: Sequence[RuleCheck]) -> tuple[Disparity, ...]:
    """Compute how far apart groups are in rejection rate and risks.

    Answers: who is turned away more often by this rule, and whose answers are wrong more often?

    Parameters
    ----------
    groups : sequence of RuleCheck
        Of the groups of one data set, as `check_groups` returns them behind the whole.

    Returns
    -------
    tuple of Disparity
        Of the rejection rate, the selective and the generalized risk; empty for fewer than two
        groups.

    Raises
    ------
    AttributeError
        What is no check of a rule.

    See Also
    --------
    check_groups : The groups themselves.

    Notes
    -----
    The intervals of the groups, l_g to u_g, hold together at the level that was asked for. Then
    the true largest value lies between max l_g and max u_g, the smallest between min l_g and
    min u_g, so that the largest difference lies between max(0, max l_g - min u_g) and
    max u_g - min l_g, and the ratio likewise. So these intervals, of each quantity by itself, hold
    at the level too, whichever groups come out highest and lowest; the difference is above 0 beyond
    chance only where two groups' intervals lie apart. Groups in which nothing is answered have no
    selective risk and are left out of it.
    The difference seen is larger than the true one on average: with many small groups some is far
    out by chance, which the interval allows for. Cost: nothing but the groups.

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> rule = ab.thresholds.DecisionRule("risk", 0.5, target=0.05)
    >>> confidence = np.r_[np.ones(900), np.zeros(100), np.ones(500), np.zeros(500)]
    >>> group = np.repeat(["day", "night"], 1000)
    >>> found = ab.thresholds.check_groups(rule, confidence, np.zeros(2000), group)
    >>> most = ab.thresholds.disparities(found[1:])[0]
    >>> most.quantity, most.highest, round(most.difference, 3), round(most.ratio, 3)
    ('rejection rate', 'night', 0.4, 5.0)
    >>> round(most.difference_interval.low, 2), round(most.difference_interval.high, 2)
    (0.34, 0.46)
    """
    if len(groups) < 2:
        return ()
    return tuple(_of(groups, quantity) for quantity in _QUANTITIES)


_QUANTITIES: Final = ("rejection rate", "selective risk", "generalized risk")


def _ends(check: RuleCheck, quantity: str) -> tuple[float, float, float]:
    """Return a number with its ends."""
    if quantity == "rejection rate":
        found = check.coverage_interval
        return 1 - check.coverage, 1 - found.high, 1 - found.low
    name = quantity.replace(" ", "_")
    interval: Interval = getattr(check, f"{name}_interval")
    return getattr(check, name), interval.low, interval.high


def _of(groups: Sequence[RuleCheck], quantity: str) -> Disparity:
    first = groups[0]
    data, level = first.name, 1 - first.together * (1 - first.coverage_interval.level)
    rows = [(c.group, *_ends(c, quantity)) for c in groups]
    known = [row for row in rows if not np.isnan(row[1])]
    if len(known) < 2:
        none, nan = no_interval(level, _FEW), float("nan")
        return Disparity(data, quantity, "", "", nan, none, nan, none, len(known))
    values, lows, highs = np.array([row[1:] for row in known]).T
    top, bottom = int(values.argmax()), int(values.argmin())
    gap = _interval(max(lows.max() - highs.min(), 0.0), highs.max() - lows.min(), level)
    least, most = _ratio(lows.max(), highs.min()), _ratio(highs.max(), lows.min())
    ratio = _interval(max(least, 1.0), most, level)
    return Disparity(
        data,
        quantity,
        known[top][0],
        known[bottom][0],
        float(values[top] - values[bottom]),
        gap,
        _ratio(values[top], values[bottom]),
        ratio,
        len(known),
    )


def _ratio(high: float, low: float) -> float:
    """Return a ratio; of two zeros it is 1."""
    if low > 0:
        return float(high / low)
    return float("inf") if high > 0 else 1.0


def _interval(low: float, high: float, level: float) -> Interval:
    if np.isnan(low) or np.isnan(high):
        return no_interval(level, "a group has no interval")
    return Interval(float(low), float(high), level, _METHOD)
