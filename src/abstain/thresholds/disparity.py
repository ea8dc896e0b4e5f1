"""Disparity between groups under a rule, in the rejection rate and in the risks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from abstain.inference.intervals import Interval, no_interval
from abstain.thresholds.rule_check import RuleCheck

_METHOD: Final = "range of simultaneous intervals"
_TOO_FEW_GROUPS: Final = "fewer than two groups have this number"


@dataclass(frozen=True)
class Disparity:
    """The largest difference and the largest ratio of one number between groups.

    Attributes
    ----------
    name : str
        Name of the data set.
    quantity : str
        "rejection rate" (1 - coverage), "selective risk" or "generalized risk".
    highest, lowest : str
        The groups with the largest and the smallest number; "" if fewer than two groups have it.
    difference, ratio : float
        Largest minus smallest, at least 0; largest divided by smallest, at least 1, and infinite if
        only the smallest is 0. NaN if fewer than two groups have the number.
    difference_interval, ratio_interval : Interval
        Confidence intervals of the true largest difference and ratio between the groups.
    n_groups : int
        Number of groups that have the number.
    """

    name: str
    quantity: str
    highest: str
    lowest: str
    difference: float
    difference_interval: Interval
    ratio: float
    ratio_interval: Interval
    n_groups: int


def disparities(groups: Sequence[RuleCheck]) -> tuple[Disparity, ...]:
    """Compute the disparity between groups in rejection rate and risks.

    Answers: which group is rejected more often, and which group gets more wrong answers?

    Parameters
    ----------
    groups : sequence of RuleCheck
        Checks of the groups of one data set, as `check_groups` returns them after the total.

    Returns
    -------
    tuple of Disparity
        One for the rejection rate, the selective risk and the generalized risk; empty for fewer
        than two groups.

    Raises
    ------
    AttributeError
        If an element is no check of a rule.

    See Also
    --------
    check_groups : The checks of the groups.

    Notes
    -----
    The intervals of the groups, l_g to u_g, hold jointly at the requested level. The true largest
    value therefore lies between max l_g and max u_g, and the smallest between min l_g and min u_g.
    The largest difference lies between max(0, max l_g - min u_g) and max u_g - min l_g, and
    similarly for the ratio. For each quantity, these intervals hold at the same level, whichever
    groups are highest and lowest. The difference is significant only if the intervals of two groups
    do not overlap. Groups in which nothing is accepted have no selective risk and are left out of
    it. The observed difference is larger than the true one on average: among many small groups,
    some deviate by chance. The interval allows for this.

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> rule = ab.thresholds.DecisionRule("risk", 0.5, target=0.05)
    >>> confidence = np.r_[np.ones(900), np.zeros(100), np.ones(500), np.zeros(500)]
    >>> group = np.repeat(["day", "night"], 1000)
    >>> checks = ab.thresholds.check_groups(rule, confidence, np.zeros(2000), group)
    >>> rejection = ab.thresholds.disparities(checks[1:])[0]
    >>> rejection.quantity, rejection.highest, round(rejection.difference, 3)
    ('rejection rate', 'night', 0.4)
    >>> interval = rejection.difference_interval
    >>> round(interval.low, 2), round(interval.high, 2)
    (0.34, 0.46)
    """
    if len(groups) < 2:
        return ()
    return tuple(_disparity(groups, quantity) for quantity in _QUANTITIES)


_QUANTITIES: Final = ("rejection rate", "selective risk", "generalized risk")


def _value_with_bounds(check: RuleCheck, quantity: str) -> tuple[float, float, float]:
    """Return a number and the bounds of its interval."""
    if quantity == "rejection rate":
        coverage = check.coverage_interval
        return 1 - check.coverage, 1 - coverage.high, 1 - coverage.low
    name = quantity.replace(" ", "_")
    interval: Interval = getattr(check, f"{name}_interval")
    return getattr(check, name), interval.low, interval.high


def _disparity(groups: Sequence[RuleCheck], quantity: str) -> Disparity:
    first = groups[0]
    level = 1 - first.n_joint_verdicts * (1 - first.coverage_interval.level)
    rows = [(c.group, *_value_with_bounds(c, quantity)) for c in groups]
    rows = [row for row in rows if not np.isnan(row[1])]
    if len(rows) < 2:
        missing, nan = no_interval(level, _TOO_FEW_GROUPS), float("nan")
        return Disparity(first.name, quantity, "", "", nan, missing, nan, missing, len(rows))
    values, lows, highs = np.array([row[1:] for row in rows]).T
    highest, lowest = int(values.argmax()), int(values.argmin())
    min_ratio = max(_ratio(lows.max(), highs.min()), 1.0)
    max_ratio = _ratio(highs.max(), lows.min())
    return Disparity(
        name=first.name,
        quantity=quantity,
        highest=rows[highest][0],
        lowest=rows[lowest][0],
        difference=float(values[highest] - values[lowest]),
        difference_interval=_interval(
            max(lows.max() - highs.min(), 0.0), highs.max() - lows.min(), level
        ),
        ratio=_ratio(values[highest], values[lowest]),
        ratio_interval=_interval(min_ratio, max_ratio, level),
        n_groups=len(rows),
    )


def _ratio(high: float, low: float) -> float:
    """Return the ratio; the ratio of two zeros is 1."""
    if low > 0:
        return float(high / low)
    return float("inf") if high > 0 else 1.0


def _interval(low: float, high: float, level: float) -> Interval:
    if np.isnan(low) or np.isnan(high):
        return no_interval(level, "a group has no interval")
    return Interval(float(low), float(high), level, _METHOD)
