"""Influence functions, which measure the effect of one additional sample on a statistic.

The influence of a sample on a statistic T is ``W dT/dw``, where w is the weight of the sample and W
the total weight. Influences have mean 0, and their standard deviation yields the standard error of
T without resampling. Most statistics depend on the samples only through the weight m and the loss l
of each tie group. The influence on these statistics has the form ``a + b loss``, with one a and one
b for each group.

The threshold of a working point is selected from the data. Near a large tie group, another study
may select another threshold, and a standard error does not describe the resulting jump of the
statistic. Therefore, an interval is computed at each threshold that the data do not exclude. The
confidence level of an interval decreases with the distance, in standard errors, of its threshold
from the data. The final interval is the union of these intervals.
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


#: Number of rows that are processed at once.
_BLOCK_SIZE = 1 << 20


def row_blocks(n_rows: int) -> Iterator[slice]:
    """Yield slices that divide `n_rows` rows into blocks."""
    return (slice(start, start + _BLOCK_SIZE) for start in range(0, n_rows, _BLOCK_SIZE))


@dataclass(frozen=True, eq=False)
class Gradient:
    """Derivatives of a statistic with respect to the weight and the loss of each tie group."""

    #: Shape (g,). dT/dm.
    weight: FloatArray
    #: Shape (g,). dT/dl.
    loss: FloatArray

    def influence(self, groups: TieGroups, group_index: IntArray, loss: Array) -> FloatArray:
        """Return the influence of each sample, shape (n,).

        `group_index` is the tie group of each sample, or -1 for a sample of weight 0.
        """
        # The influences are centered, because some estimators change with the scale of the weights.
        mean = inner(self.weight, groups.weight) + inner(self.loss, groups.loss)
        # The index -1 selects the additional last entry, so the influence is 0.
        slope = np.append(self.loss, 0.0)
        constant = np.append(self.weight, 0.0)
        constant[:-1] -= mean / groups.total_weight
        out: FloatArray = np.empty(group_index.size)
        # Blocks avoid large temporary arrays.
        for block in row_blocks(group_index.size):
            influences = out[block]
            slope.take(group_index[block], out=influences, mode="wrap")
            influences *= loss[block]
            influences += constant.take(group_index[block])
            influences *= groups.total_weight
        return out


def gradient_from_cumulative(weight_gradient: FloatArray, loss_gradient: FloatArray) -> Gradient:
    """Convert derivatives with respect to cumulative sums to derivatives for each tie group.

    The arguments are the derivatives with respect to the accepted weight and the accepted loss at
    each threshold. A tie group is accepted at its own confidence and at all lower thresholds.
    """
    return Gradient(tail_sums(weight_gradient), tail_sums(loss_gradient))


def tail_sums(values: FloatArray) -> FloatArray:
    """Return the sum of each entry and all later entries."""
    out: FloatArray = np.cumsum(values[::-1])[::-1]
    return out


def trapezoid_derivatives_of_groups(
    groups: TieGroups,
    curve: Callable[[FloatArray, FloatArray], FloatArray],
    *,
    is_flat_before_first: bool,
) -> FloatArray:
    """Return `trapezoid_derivatives` at the last point of the curve in each tie group.

    `curve` computes the y-coordinate from the accepted weight and loss. A merged group contains
    several points of the curve, of which the last one has the weight `last_vertex_weight`.
    """
    weight = groups.cumulative_weight
    loss = groups.cumulative_loss
    width = groups.last_vertex_weight
    loss_of_width = groups.loss * (width / groups.weight)
    value_before = np.zeros_like(weight)
    value_after = np.empty_like(weight)
    value_before[1:] = curve((weight - width)[1:], (loss - loss_of_width)[1:])
    value_after[:-1] = curve(weight[:-1] + width[1:], loss[:-1] + loss_of_width[1:])
    first_value, last_value = curve(weight[[0, -1]], loss[[0, -1]])
    if is_flat_before_first:
        value_before[0] = first_value
    value_after[-1] = -last_value
    out: FloatArray = (value_before - value_after) / 2
    return out


def trapezoid_derivatives(value: FloatArray, *, is_flat_before_first: bool) -> FloatArray:
    """Return the derivatives of the area under a polyline with respect to x, shape (n,).

    `value` contains the y-coordinates of the points. Before the first point, the curve is either
    constant or a line from the origin.
    """
    first_value = value[:1] if is_flat_before_first else [0.0]
    value_before = np.concatenate((first_value, value[:-1]))
    # Moving a point to the right shortens the next segment and lengthens the previous segment. The
    # last point has no next segment.
    value_after = np.append(value[1:], -value[-1])
    out: FloatArray = (value_before - value_after) / 2
    return out


@dataclass(frozen=True)
class InfluenceMoments:
    """Moments of the influences on a statistic, which determine its standard error."""

    #: Number of samples.
    n_samples: int
    #: Number of independent units: samples with positive weight, or clusters.
    n_units: int
    #: Sums of the squares and of the fourth powers of the `unit_contributions`.
    sum_of_squares: float
    sum_of_fourth_powers: float

    @property
    def standard_error(self) -> float:
        """The standard error, or NaN for a single unit."""
        if self.n_units <= 1:
            return NAN
        return float(np.sqrt(self.sum_of_squares * self.n_units / (self.n_units - 1)))


def influence_moments(
    influence: FloatArray,
    *,
    weight: FloatArray | None = None,
    cluster: IntArray | None = None,
    repeats: FloatArray | None = None,
) -> InfluenceMoments:
    """Return the moments of influences, from which a standard error is computed.

    `weight` and `cluster` are those of `covariance`. If an entry of `influence` represents several
    equal samples, `repeats` contains the number of samples, and weights and clusters must be None.
    """
    if repeats is not None:
        return _moments_of_repeated_samples(influence, repeats)
    square = np.square(unit_contributions(influence, weight, cluster)[:, 0])
    return InfluenceMoments(influence.size, square.size, float(square.sum()), inner(square, square))


def _moments_of_repeated_samples(influence: FloatArray, repeats: FloatArray) -> InfluenceMoments:
    """Return the moments of influences, each of which represents several equal samples."""
    n = float(repeats.sum())
    sum_of_squares = 0.0
    sum_of_fourth_powers = 0.0
    for block in row_blocks(influence.size):
        square = np.square(influence[block])
        repeated_square = repeats[block] * square
        sum_of_squares += float(repeated_square.sum())
        sum_of_fourth_powers += inner(repeated_square, square)
    return InfluenceMoments(int(n), int(n), sum_of_squares / n**2, sum_of_fourth_powers / n**4)


def unit_contributions(
    influences: FloatArray, weight: FloatArray | None = None, cluster: IntArray | None = None
) -> FloatArray:
    """Return the contribution of each sample or cluster to the error of each number, (units, k).

    The arguments are those of `covariance`. Samples whose weight is 0 for every number are dropped.
    """
    contributions: FloatArray = influences.reshape(influences.shape[0], -1)
    if weight is None:
        contributions = contributions / contributions.shape[0]
    else:
        shares = weight / weight.sum(axis=0)
        shares = shares.reshape(shares.shape[0], -1)
        has_weight = (weight > 0).reshape(shares.shape).any(axis=1)
        contributions = (contributions * shares)[has_weight]
        if cluster is not None:
            cluster = cluster[has_weight]
    if cluster is None:
        return contributions
    return _reduce_clusters(np.add, contributions, cluster)


def unit_has_weight(weight: FloatArray, cluster: IntArray | None = None) -> BoolArray:
    """Return whether each unit has a sample with positive weight for each number, shape (units, k).

    The weights have shape (n, k). The units are those of `unit_contributions`.
    """
    is_positive = weight > 0
    has_weight = is_positive.any(axis=1)
    positive_rows = np.asarray(is_positive[has_weight])
    if cluster is None:
        return positive_rows
    return _reduce_clusters(np.logical_or, positive_rows, cluster[has_weight])


def _reduce_clusters(operation: np.ufunc, rows: Array, cluster: IntArray) -> Array:
    """Combine the rows of each cluster into one row by a ufunc such as `np.add`."""
    order = np.argsort(cluster, kind="stable")
    starts = np.flatnonzero(np.diff(cluster[order], prepend=-1))
    return np.asarray(operation.reduceat(rows[order], starts, axis=0))


def covariance_from_contributions(contributions: FloatArray) -> FloatArray:
    """Return the covariance of k numbers from `unit_contributions`, or NaN for a single unit."""
    n_units, k = contributions.shape
    if n_units < 2:
        return np.full((k, k), np.nan)
    out: FloatArray = contributions.T @ contributions * (n_units / (n_units - 1))
    return out


def standard_error_from_contributions(contributions: FloatArray) -> float:
    """Return the standard error of the first number."""
    return float(np.sqrt(covariance_from_contributions(contributions)[0, 0]))


def covariance(
    influences: FloatArray, *, weight: FloatArray | None = None, cluster: IntArray | None = None
) -> FloatArray:
    """Compute the joint covariance of numbers from their influences.

    Answers: how do these numbers vary jointly over studies of this size?

    Parameters
    ----------
    influences : ndarray of shape (n,) or (n, k)
        Influence of each sample on each number, with weighted mean 0.
    weight : ndarray of shape (n,) or (n, k), optional
        Sample weights, on any scale. Each row counts as one observation. If the weights are counts
        of independent samples, repeat the rows instead of passing weights. If a number ignores some
        samples, pass one column for each number, in which the ignored samples have weight 0.
    cluster : ndarray of shape (n,), optional
        Integer code of the cluster of each sample, starting at 0. Different clusters are
        independent.

    Returns
    -------
    ndarray of shape (k, k)
        ``sum w^2 IF IF' / W^2`` times n/(n - 1), where n is the number of samples with a positive
        weight. With clusters, the weighted influences are first summed within each cluster, and n
        is the number of clusters. The covariance is NaN for a single sample or cluster.

    Notes
    -----
    Without weights and clusters, the square root of the diagonal is sqrt(sum IF^2 / (n (n - 1))).
    The cost is one matrix product.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.inference.influence import covariance
    >>> covariance(np.array([-1.0, 1.0])).tolist()
    [[1.0]]
    """
    return covariance_from_contributions(unit_contributions(influences, weight, cluster))


def standard_error(
    influence: FloatArray, *, weight: FloatArray | None = None, cluster: IntArray | None = None
) -> float:
    """Compute the standard error of one number from its influences.

    Answers: how large is the typical difference between this number and the true value?

    Parameters
    ----------
    influence : ndarray of shape (n,)
        Influence of each sample.
    weight, cluster : ndarray of shape (n,), optional
        See `covariance`.

    Returns
    -------
    float
        The standard error, or NaN for a single sample or cluster.

    Notes
    -----
    Without weights and clusters, the result is sqrt(sum IF^2 / (n (n - 1))).

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.inference.influence import standard_error
    >>> standard_error(np.array([-1.0, 1.0]))
    1.0
    """
    return float(np.sqrt(covariance(influence, weight=weight, cluster=cluster)[0, 0]))


#: Lower edges of the steps into which the distance of a threshold is divided, in standard errors. A
#: threshold beyond the last step has a p-value below 1e-10.
DISTANCE_STEPS: Final[FloatArray] = np.linspace(0.0, 6.5, 27)

#: Upper edge of the last step. Thresholds at this distance or farther are excluded.
MAX_DISTANCE: Final = float(DISTANCE_STEPS[-1] + DISTANCE_STEPS[1])

#: Factor on the squared quantile, which limits the sum of the squared distance of the threshold and
#: the squared error of the number. If a group ends exactly at the coverage, each side is selected
#: with probability 1/2. An interval on the selected side misses the true value with probability P(x
#: > q)/2, and an interval from the other side with P(y > q)/2. Here, x and y are chi-squared with
#: one and two degrees of freedom. The sum is 5% for q = 4.36 instead of 3.84, and 1% for q = 7.44
#: instead of 6.63.
DISTANCE_FACTOR: Final = 1.135

#: Note of every interval that includes more than one plausible threshold.
AMBIGUOUS_THRESHOLD_NOTE: Final = (
    "the data do not determine the threshold (large tie groups, or a risk that hardly rises); the "
    "interval allows for all plausible thresholds"
)


def max_shifts_by_step(values: FloatArray, distances: FloatArray, value: float) -> FloatArray:
    """Return the largest decrease and increase of a number within each distance, (2, steps).

    `values` contains the number at each plausible threshold, and `distances` the distance of this
    threshold from the data in standard errors. `value` is the number at the selected threshold.
    The distances are those of `DISTANCE_STEPS`.
    """
    out = np.zeros((2, DISTANCE_STEPS.size))
    step = np.searchsorted(DISTANCE_STEPS, distances, side="right") - 1
    with np.errstate(invalid="ignore"):
        change = values - value
    change = np.where(np.isfinite(change), change, 0.0)
    np.maximum.at(out[0], step, -change)
    np.maximum.at(out[1], step, change)
    return np.maximum.accumulate(out, axis=1)


def max_shifts_of_difference(max_shifts: FloatArray) -> FloatArray:
    """Return the largest decrease and increase of a difference from those of both numbers."""
    first, second = max_shifts
    return np.stack([first[0] + second[1], first[1] + second[0]])


def remaining_squared_quantiles(level: float, distances: FloatArray) -> FloatArray:
    """Return the squared normal quantile of the interval at each threshold, shape (n,).

    A negative entry means that the data exclude the threshold.
    """
    quantile = float(special.ndtri((1 + level) / 2))
    return np.asarray(DISTANCE_FACTOR * quantile**2 - distances**2)


def remaining_levels(level: float) -> FloatArray:
    """Return the confidence level at each distance that the data do not exclude."""
    squared_quantiles = remaining_squared_quantiles(level, DISTANCE_STEPS)
    quantiles = np.sqrt(squared_quantiles[squared_quantiles > 0])
    out: FloatArray = 2 * special.ndtr(quantiles) - 1
    return out


def joint_p_value(p_values: FloatArray) -> float:
    """Combine the p-values of the tests at all plausible thresholds into one p-value.

    Each p-value is combined with the distance of its threshold, and the largest result is returned.
    """
    z = special.ndtri(p_values / 2)
    joint_z = np.sqrt((DISTANCE_STEPS**2 + z**2) / DISTANCE_FACTOR)
    return float(2 * special.ndtr(-joint_z).max())
