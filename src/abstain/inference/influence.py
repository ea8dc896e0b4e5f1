"""Influence functions: what one more sample like this one would do to a number.

The influence of a sample is ``W dT/dw``, the derivative of the number T with respect to the weight
of the sample, times the weight W of all. Its mean is zero, and its spread is the standard error of
T: no resampling is needed. Every number that depends on the samples through the weight m and the
loss mass l of each tie group has an influence of the form ``a + b loss``, with one a and one b for
each group.

A working point is found by a rule. Where large tie groups lie near it, the rule may find another
vertex in the next study, and the number jumps: no standard error describes that. Each vertex that
the rule could mean lies some standard errors away, and a number that is tested there has only
that much less left: together they may be a quantile away. Where the groups are small this is the
interval of the influence function; where one is large it holds the numbers of either side.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from abstain._foundation.arrays import inner
from abstain._foundation.lazy_imports import special
from abstain._foundation.tie_groups import TieGroups
from abstain.typing import Array, BoolArray, FloatArray, IntArray

NAN = float("nan")


#: Rows that are read at once.
_BLOCK = 1 << 20


def blocks_of(n: int) -> Iterator[slice]:
    """Yield the blocks of so many rows."""
    return (slice(start, start + _BLOCK) for start in range(0, n, _BLOCK))


@dataclass(frozen=True, eq=False)
class Gradient:
    """The derivatives of a number with respect to the weight and the loss mass of each group."""

    #: Shape (g,). dT/dm.
    weight: FloatArray
    #: Shape (g,). dT/dl.
    loss: FloatArray

    def influence(self, groups: TieGroups, home: IntArray, loss: Array) -> FloatArray:
        """Return the influence of each sample, shape (n,); 0 where `home` is -1 (no weight).

        Centered, since a number that changes with the scale of all weights (such as a plug-in
        estimator with harmonic numbers) leaves a mean of the order 1/n.
        """
        constant = np.append(self.weight, 0.0)
        slope = np.append(self.loss, 0.0)
        mean = inner(self.weight, groups.weight) + inner(self.loss, groups.loss)
        constant[:-1] -= mean / groups.total_weight
        out: FloatArray = np.empty(home.size)
        # In blocks: at a million samples each array more costs as much as the sums.
        for here in blocks_of(home.size):
            part = out[here]
            slope.take(home[here], out=part, mode="wrap")
            part *= loss[here]
            part += constant.take(home[here])
            part *= groups.total_weight
        return out


def of_cumulated(through: FloatArray, loss_through: FloatArray) -> Gradient:
    """Turn derivatives with respect to what each threshold accepts into those of the groups.

    A group is accepted at its own threshold and at all lower ones.
    """
    return Gradient(tail_sums(through), tail_sums(loss_through))


def tail_sums(x: FloatArray) -> FloatArray:
    """Return the sum from each entry to the last."""
    out: FloatArray = np.cumsum(x[::-1])[::-1]
    return out


def steps_of_vertices(
    groups: TieGroups, value: Callable[[FloatArray, FloatArray], FloatArray], *, flat: bool
) -> FloatArray:
    """Return `trapezoid_steps` at the last vertex of each group, also of merged ones.

    `value` is the curve's from the weight and the loss mass accepted at a vertex.
    """
    end, mass, width = groups.cumulative_weight, groups.cumulative_loss, groups.last_vertex_weight
    each = groups.loss * (width / groups.weight)
    before, after = np.zeros_like(end), np.empty_like(end)
    before[1:] = value((end - width)[1:], (mass - each)[1:])
    after[:-1] = value(end[:-1] + width[1:], mass[:-1] + each[1:])
    here = value(end[[0, -1]], mass[[0, -1]])
    if flat:
        before[0] = here[0]
    after[-1] = -here[1]
    out: FloatArray = (before - after) / 2
    return out


def trapezoid_steps(value: FloatArray, *, flat: bool) -> FloatArray:
    """Return the derivative of a trapezoid area with respect to the place of each vertex.

    Before the first vertex the curve is flat, or it rises from the origin.
    """
    before = np.concatenate((value[:1] if flat else [0.0], value[:-1]))
    after = np.append(value[1:], -value[-1])
    # A vertex moved right takes from the segment behind it what it gives to the one before it.
    # The last has none behind it.
    out: FloatArray = (before - after) / 2
    return out


@dataclass(frozen=True)
class Spread:
    """What the influences of samples say about the error of one number."""

    #: Number of samples.
    samples: int
    #: Number of independent units: samples of some weight, or clusters.
    units: int
    #: Sums of the second and the fourth powers of what each unit adds to the error.
    second: float
    fourth: float

    @property
    def error(self) -> float:
        """The standard error; NaN for one unit."""
        return (
            float(np.sqrt(self.second * self.units / (self.units - 1))) if self.units > 1 else NAN
        )


def spread_of(
    influence: FloatArray,
    *,
    weight: FloatArray | None = None,
    cluster: IntArray | None = None,
    times: FloatArray | None = None,
) -> Spread:
    """Return the spread of influences; `times` is how many samples each of them is that of.

    Takes weights and clusters as `covariance` does; with `times` there are neither.
    """
    if times is None:
        square = np.square(shares(influence, weight, cluster)[:, 0])
        return Spread(influence.size, square.size, float(square.sum()), inner(square, square))
    n, sums = float(times.sum()), np.zeros(2)
    for here in blocks_of(influence.size):
        square = np.square(influence[here])
        second = times[here] * square
        sums += float(second.sum()), inner(second, square)
    return Spread(int(n), int(n), float(sums[0]) / n**2, float(sums[1]) / n**4)


def shares(
    influences: FloatArray, weight: FloatArray | None = None, cluster: IntArray | None = None
) -> FloatArray:
    """Return what each independent unit adds to the error of each number, shape (units, k).

    Takes influences, weights and clusters as `covariance` does. Rows of weight 0 in every column
    are none.
    """
    table = influences.reshape(influences.shape[0], -1)
    if weight is None:
        parts: FloatArray = table / table.shape[0]
    elif weight.ndim == 1:
        parts = (table * (weight / weight.sum())[:, None])[weight > 0]
        cluster = None if cluster is None else cluster[weight > 0]
    else:
        kept = (weight > 0).any(axis=1)
        parts = (table * (weight / weight.sum(axis=0)))[kept]
        cluster = None if cluster is None else cluster[kept]
    return parts if cluster is None else _joined(np.add, parts, cluster)


def counted_units(weight: FloatArray, cluster: IntArray | None = None) -> BoolArray:
    """Return which rows of `shares` rest on a sample of each column, shape (units, k).

    Takes the weights (n, k) and the clusters that `shares` was given.
    """
    counts = weight > 0
    kept = counts.any(axis=1)
    if cluster is None:
        return np.asarray(counts[kept])
    return np.asarray(_joined(np.logical_or, counts[kept], cluster[kept]))


def _joined(join: np.ufunc, rows: Array, cluster: IntArray) -> Array:
    """Join the rows of each cluster."""
    order = np.argsort(cluster, kind="stable")
    starts = np.flatnonzero(np.diff(cluster[order], prepend=-1))
    return np.asarray(join.reduceat(rows[order], starts, axis=0))


def covariance_of_shares(parts: FloatArray) -> FloatArray:
    """Return the covariance (k, k) of the numbers whose `shares` these are; NaN for one unit."""
    units, k = parts.shape
    if units < 2:
        return np.full((k, k), np.nan)
    out: FloatArray = parts.T @ parts * (units / (units - 1))
    return out


def error_of(parts: FloatArray) -> float:
    """Return the standard error of the first number."""
    return float(np.sqrt(covariance_of_shares(parts)[0, 0]))


def covariance(
    influences: FloatArray, *, weight: FloatArray | None = None, cluster: IntArray | None = None
) -> FloatArray:
    """Compute the joint covariance of numbers from their influences.

    Answers: how do these numbers vary together over studies of this size?

    Parameters
    ----------
    influences : ndarray of shape (n,) or (n, k)
        Of each sample on each number; weighted mean zero.
    weight : ndarray of shape (n,) or (n, k), optional
        Sample weights, on any scale: a row is one observation whatever its weight. (For counts of
        identical independent samples this is too wide; repeat their rows instead.) One column a
        number where each leaves out samples of its own, by weight 0.
    cluster : ndarray of shape (n,), optional
        Codes from 0 of the cluster of each sample; only clusters are independent.

    Returns
    -------
    ndarray of shape (k, k)
        ``sum w^2 IF IF' / W^2`` times n/(n - 1); with clusters the influences are summed within
        each first, and n is the number of clusters. Rows of weight 0 for every number are not
        counted. NaN when there is one unit only.

    Notes
    -----
    Without weights and clusters the root of the diagonal is sqrt(sum IF^2 / (n (n - 1))). Cost:
    one matrix product.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.inference.influence import covariance
    >>> covariance(np.array([-1.0, 1.0])).tolist()
    [[1.0]]
    """
    return covariance_of_shares(shares(influences, weight, cluster))


def standard_error(
    influence: FloatArray, *, weight: FloatArray | None = None, cluster: IntArray | None = None
) -> float:
    """Compute the standard error of one number from its influences.

    Answers: how far from the truth is this number typically?

    Parameters
    ----------
    influence : ndarray of shape (n,)
        Of each sample.
    weight, cluster : ndarray of shape (n,), optional
        As in `covariance`.

    Returns
    -------
    float
        Not negative; NaN for one sample (or cluster).

    Notes
    -----
    sqrt(sum IF^2 / (n (n - 1))) without weights and clusters.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.inference.influence import standard_error
    >>> standard_error(np.array([-1.0, 1.0]))
    1.0
    """
    return float(np.sqrt(covariance(influence, weight=weight, cluster=cluster)[0, 0]))


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
