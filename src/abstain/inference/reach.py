"""How far a number may move because the data leave open which threshold it belongs to.

A working point is found by a rule. Where large tie groups lie near it, the rule may find another
vertex in the next study, and the number jumps: no standard error describes that. Each vertex that
the rule could mean lies some standard errors away, and a number that is tested there has only
that much less left: together they may be a quantile away. Where the groups are small this is the
interval of the influence function; where one is large it holds the numbers of either side.
"""

from typing import Final

import numpy as np

from abstain._foundation.imports import special
from abstain.typing import FloatArray

#: How far away the vertices may be, in standard errors: the near ends of the steps. A vertex
#: beyond the last has a p-value below 1e-10.
STEPS: Final[FloatArray] = np.linspace(0.0, 6.5, 27)

#: From here on a vertex is not meant: the far end of the last step.
FARTHEST: Final = float(STEPS[-1] + STEPS[1])

#: How much more than the square of the quantile both may be together at another vertex than the one
#: found. Where a group ends just at the coverage, either side is found half the time; an interval
#: of the one side misses on its own by half of what it may, and one that reaches back from the
#: other side by P(x > q)/2 + P(y > q)/2 for chi-squared x and y with one and two degrees of
#: freedom. That all of it is 5 % takes 4.36 instead of 3.84 (at 1 %: 7.44 instead of 6.63).
STRETCH: Final = 1.135

#: Goes with every interval that allows for more than one threshold.
OPEN: Final = (
    "large tie groups, or a risk that hardly rises, leave open which threshold is meant: all that "
    "it could be are allowed for"
)


def reach_of(values: FloatArray, away: FloatArray, value: float) -> FloatArray:
    """Return how far down and up a number may move at each step, shape (2, steps).

    Takes the number at each vertex that may be meant, how far `away` from the data each is, in
    standard errors, and the number at the vertex found.
    """
    out = np.zeros((2, STEPS.size))
    step = np.searchsorted(STEPS, away, side="right") - 1
    with np.errstate(invalid="ignore"):
        apart = values - value
    apart = np.where(np.isfinite(apart), apart, 0.0)
    np.maximum.at(out[0], step, -apart)
    np.maximum.at(out[1], step, apart)
    return np.maximum.accumulate(out, axis=1)


def of_difference(reaches: FloatArray) -> FloatArray:
    """Return the reach of first minus second, from the reach of each, shape (2, 2, steps)."""
    first, second = reaches
    return np.stack([first[0] + second[1], first[1] + second[0]])


def squares_left(level: float, away: FloatArray) -> FloatArray:
    """Return the square of the quantile that the distance of a vertex leaves; negative for none."""
    return np.asarray(STRETCH * float(special.ndtri((1 + level) / 2)) ** 2 - away**2)


def levels_left(level: float) -> FloatArray:
    """Return the level of the interval at a vertex of each step, for those not too far away."""
    left = squares_left(level, STEPS)
    out: FloatArray = 2 * special.ndtr(np.sqrt(left[left > 0])) - 1
    return out


def joint_p_value(p_values: FloatArray) -> float:
    """Return the largest p-value over the steps, of the test at the vertices of each.

    What counts is the distance of the vertex and of the number at it together.
    """
    z = special.ndtri(p_values / 2)
    return float(2 * special.ndtr(-np.sqrt((STEPS**2 + z**2) / STRETCH)).max())
