"""Order, ties and weights, once: samples grouped by equal confidence, most confident first.

Every curve and every area metric is a function of these groups, so ties and weights are
handled here and nowhere else. A group's members share one threshold: they are accepted or
rejected together.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from abstain._foundation.array_functions import (
    group_by_sorting,
    lexicographic_order,
    undo_cumulative_sum,
)
from abstain._foundation.arrays import is_numpy, namespace, read_only
from abstain._foundation.gradients import as_double, as_double_like, as_scalar, without_gradient
from abstain._foundation.packed import Groups, count_half_precision, is_counted, sorted_keys
from abstain._foundation.sorting import SortedValues, descending_order, sort_descending
from abstain.errors import UncountedError
from abstain.typing import AnyArray, Array, BoolArray, FloatArray, IntArray, Scalar


def raise_uncounted(subject: str = "") -> NoReturn:
    """Raise the error of `subject`, which needs the confidence of each success."""
    raise UncountedError(
        f"{subject}needs the confidences of the successes, and a state of two passes only counts "
        "them between the failures; take `streaming.one_pass`, which keeps each distinct "
        "confidence, or `streaming.sorted_runs`, which keeps all on disk"
    )


@dataclass(frozen=True, eq=False)
class GroupsWithLoss:
    """The tie groups with some loss, and their ranks among all groups."""

    #: Shape (h,). As in `TieGroups`.
    loss: FloatArray
    weight: FloatArray
    weight_above: FloatArray
    cumulative_weight: FloatArray
    #: Weight of all samples.
    total_weight: float

    @property
    def xp(self) -> Any:
        """The array-API namespace of the arrays."""
        return np


@dataclass(frozen=True, eq=False)
class TieGroups:
    """The distinct confidences in descending order, with what lies at each.

    Arrays of NumPy, or of the library and device that the samples came from. With `is_merged` some
    groups stand for several: samples of equal loss that follow each other, tied with nothing. All
    that depends on the order alone has a closed form in them, so successes by themselves cost
    nothing: see `Scored.merged_groups`.
    """

    #: Shape (g,). Distinct values, strictly decreasing.
    confidence: Array
    #: Shape (g,). Sum of the sample weights; the number of samples when there are none.
    weight: FloatArray
    #: Shape (g,). Sum of weight x loss. Gradients flow through it alone.
    loss: FloatArray
    #: Shape (g,). Number of samples. None where the weight is that.
    unweighted_count: IntArray | None = None
    #: Shape (g,). Whether each sample of the group has a threshold of its own; the confidence is
    #: the lowest of them. None where all groups are what they are called.
    is_merged: BoolArray | None = None
    #: Whether merged successes may be tied: a state of two passes only counts them.
    has_unknown_ties: bool = False

    def __post_init__(self) -> None:
        """Seal the arrays: curves and metrics share them."""
        for name in ("confidence", "weight", "loss", "unweighted_count", "is_merged"):
            array = getattr(self, name)
            object.__setattr__(self, name, None if array is None else read_only(array))

    @property
    def xp(self) -> Any:
        """The array-API namespace of the arrays: `numpy` for NumPy."""
        return namespace(self.weight)

    @cached_property
    def cumulative_weight(self) -> FloatArray:
        """Weight accepted when the threshold is each confidence, shape (g,)."""
        return self._summed(self.weight)

    @property
    def weight_above(self) -> FloatArray:
        """Weight strictly more confident than each group, shape (g,)."""
        return self.cumulative_weight - self.weight

    @cached_property
    def cumulative_loss(self) -> FloatArray:
        """Loss mass accepted when the threshold is each confidence, shape (g,)."""
        return self._summed(self.loss)

    @property
    def count(self) -> IntArray:
        """Number of samples of each group, shape (g,)."""
        return self._counts(self.weight) if self.unweighted_count is None else self.unweighted_count

    @property
    def cumulative_count(self) -> IntArray:
        """Samples accepted when the threshold is each confidence, shape (g,)."""
        if self.unweighted_count is None:
            return self._counts(self.cumulative_weight)
        return self._summed(self.unweighted_count)

    def _counts(self, x: FloatArray) -> IntArray:
        out: IntArray = read_only(self.xp.astype(x, self.xp.int64))
        return out

    def _summed(self, x: Array) -> Array:
        out: Array = read_only(self.xp.cumulative_sum(x))
        return out

    @property
    def is_merged_without_unknown_ties(self) -> BoolArray | None:
        """`is_merged`, for what reads the vertex of each merged sample."""
        self.check_ties_are_known()
        return self.is_merged

    def check_ties_are_known(self) -> None:
        """Raise an UncountedError if merged successes may be tied."""
        if self.has_unknown_ties:
            raise_uncounted()

    @property
    def last_vertex_weight(self) -> FloatArray:
        """What the last vertex of each group accepts beyond the vertex before it."""
        is_merged = self.is_merged_without_unknown_ties
        return self.weight if is_merged is None else np.where(is_merged, 1.0, self.weight)

    @cached_property
    def groups_with_loss(self) -> "TieGroups | GroupsWithLoss":
        """The groups with some loss; all groups if that saves nothing."""
        if self.xp is not np:
            return self
        here = np.flatnonzero(self.loss > 0)
        if self.is_merged is None and 2 * here.size > self.loss.size:
            return self
        loss, through, weight = self.loss[here], self.cumulative_weight[here], self.weight[here]
        return GroupsWithLoss(loss, weight, through - weight, through, self.total_weight)

    @property
    def total_weight(self) -> float:
        """Weight of all samples."""
        return float(self.cumulative_weight[-1])

    @property
    def risk(self) -> Scalar:
        """Mean loss of all samples: the risk at full coverage."""
        return as_scalar(self.cumulative_loss[-1]) / self.total_weight

    @cached_property
    def n_samples(self) -> int:
        """Number of samples."""
        return int(
            self.total_weight
            if self.unweighted_count is None
            else self.xp.sum(self.unweighted_count)
        )

    @property
    def n_tied(self) -> int:
        """Number of samples that share their confidence with another sample."""
        count = self.weight if self.unweighted_count is None else self.unweighted_count
        is_merged = self.is_merged_without_unknown_ties
        is_tied = count > 1 if is_merged is None else (count > 1) & ~is_merged
        return int(self.xp.sum(count[is_tied]))


def thresholds_from_infinity(groups: TieGroups) -> AnyArray:
    """Return the thresholds from the one that accepts nothing on, shape (g + 1,)."""
    first = groups.xp.full_like(groups.confidence[:1], float("inf"))
    return groups.xp.concat((first, groups.confidence))


def n_accepted_groups(groups: TieGroups, threshold: float | FloatArray) -> AnyArray:
    """Return how many groups have confidence >= threshold, for one threshold or many.

    Compared in the precision of the confidences, as NumPy and PyTorch compare an array with a
    number: a float32 0.9 reaches the threshold 0.9.
    """
    if is_numpy(groups.confidence):
        with np.errstate(over="ignore"):
            at = np.asarray(threshold).astype(groups.confidence.dtype)
        return np.searchsorted(-groups.confidence, -at, side="right")
    xp, distinct = groups.xp, without_gradient(groups.confidence)
    at = xp.astype(as_double_like(threshold, distinct), distinct.dtype)
    return xp.searchsorted(-distinct, -at, side="right")


def group_ties(confidence: Array, loss: Array, weight: FloatArray | None = None) -> TieGroups:
    """Group validated samples by confidence; samples of weight 0 are left out."""
    if weight is not None and not namespace(weight).all(weight):
        kept = weight > 0
        confidence, loss, weight = confidence[kept], loss[kept], weight[kept]
    if not is_numpy(confidence):
        return TieGroups(*group_by_sorting(confidence, loss, weight))
    quick = _without_order(confidence, loss, weight)
    if quick is not None:
        return TieGroups(*quick)
    return group_sorted_values(sort_descending(confidence), loss, weight)


def group_sorted_values(runs: SortedValues, loss: Array, weight: FloatArray | None) -> TieGroups:
    """Group samples of the host by the runs of their confidences."""
    number = None if weight is None else runs.group_sizes
    return TieGroups(runs.distinct_values, *runs.sum_by_group(loss, weight), number)


def group_by_loss(loss: Array) -> TieGroups:
    """Group losses of the host by themselves, the least first: only values are sorted."""
    ordered = np.sort(loss.astype(np.float64))
    ends = np.append(np.flatnonzero(ordered[1:] != ordered[:-1]), ordered.size - 1)
    least, weight = ordered[ends], undo_cumulative_sum(ends + 1).astype(np.float64)
    return TieGroups(-least, weight, weight * least)


def one_group_per_sample(loss: Array, weight: FloatArray | None) -> TieGroups:
    """Return groups of samples that are all told apart, in the order in which they come."""
    xp, loss = namespace(loss), as_double(loss)
    if xp is not np:
        ranks = -without_gradient(xp.cumulative_sum(xp.ones_like(loss)))
        return group_ties(ranks, loss, weight)
    ranks = np.arange(-1.0, -1.0 - loss.size, -1.0)
    if weight is None:
        return TieGroups(ranks, np.ones(loss.size), loss)
    return TieGroups(ranks, weight, weight * loss, np.ones(loss.size, np.int64))


#: Number of samples at either end of the order that `split_at_ends` keeps separate.
N_SPLIT_AT_ENDS = 1 << 12


def split_at_ends(groups: TieGroups) -> TieGroups:
    """Split merged groups among the first and the last thousands of samples.

    There the influence of a sample differs from that of its neighbor; between them it is equal
    within a merged group to a relative error of 1e-12. One more vertex stands where the failures of
    a best order begin.
    """
    n, n_first = groups.n_samples, min(groups.n_samples, N_SPLIT_AT_ENDS)
    n_successes = int(groups.total_weight - groups.cumulative_loss[-1])
    first, last = np.arange(n_first), np.arange(max(n - N_SPLIT_AT_ENDS, n_first), n)
    return split_merged_groups(groups, np.unique(np.concatenate((first, [n_successes], last))))


def with_vertex_at(groups: TieGroups, through: float) -> TieGroups:
    """Split the merged group that holds this number of samples, rounded up, in its middle there."""
    return split_merged_groups(groups, np.array([int(np.ceil(through))]))


def split_merged_groups(groups: TieGroups, ranks: IntArray) -> TieGroups:
    """Split merged groups so that a vertex accepts each of these numbers of samples.

    Takes ranks from 0 to n, ascending; ranks outside merged groups change nothing.
    """
    is_merged = groups.is_merged_without_unknown_ties
    if is_merged is None:
        return groups
    ends = groups.cumulative_count
    group = np.searchsorted(ends, ranks)
    is_within = is_merged[group] & (ranks > 0) & (ranks != ends[group])
    group, ranks = group[is_within], ranks[is_within]
    if ranks.size == 0:
        return groups
    parent = np.insert(np.arange(ends.size), group, group)
    weight = undo_cumulative_sum(np.insert(ends, group, ranks)).astype(np.float64)
    return TieGroups(
        groups.confidence[parent],
        weight,
        groups.loss[parent] * (weight / groups.weight[parent]),
        None,
        is_merged[parent],
    )


def _without_order(confidence: Array, loss: Array, weight: FloatArray | None) -> Groups | None:
    """Group without an argsort; None where only that will do."""
    if is_counted(confidence):
        return count_half_precision(confidence, loss, weight)
    keys = sorted_keys(confidence, loss) if weight is None else None
    return None if keys is None else keys.groups()


def untied_order(
    confidence: Array, loss: Array, weight: FloatArray | None, *, best: bool
) -> IntArray:
    """Return the samples from the most to the least confident, ties resolved by loss.

    Within a tie group the lower loss comes first for the best order, the higher for the worst.
    """
    key = as_double(loss)
    order: IntArray = lexicographic_order(-confidence, key if best else -key)
    return order if weight is None else order[weight[order] > 0]


def losses_of_broken_ties(groups: TieGroups, *, best: bool) -> BoolArray:
    """Return the 0/1 losses of unweighted samples in the order of `untied_order`, unsorted.

    Within a group only the number of failures matters, so nothing needs a second sort.
    """
    n_failures = groups.loss.astype(np.int64)
    n_successes = groups.count - n_failures
    counts = (n_successes, n_failures) if best else (n_failures, n_successes)
    losses = np.tile(np.array([not best, best]), n_failures.size)
    return np.repeat(losses, np.column_stack(counts).ravel())


def merged_groups_of_broken_ties(groups: TieGroups, *, best: bool) -> TieGroups:
    """Return the merged groups of these losses: of each group its successes, and each failure.

    The confidences are ranks, from the last sample of all upwards.
    """
    n_failures = groups.loss.astype(np.int64)
    n_successes = groups.count - n_failures
    has_successes = n_successes > 0
    ends = np.cumsum(n_failures + has_successes)
    index = (ends - n_failures - 1 if best else ends - 1)[has_successes]
    weight = np.ones(int(ends[-1]))
    weight[index] = n_successes[has_successes]
    is_merged = np.zeros(weight.size, np.bool_)
    is_merged[index] = True
    ranks = groups.n_samples + 1.0 - np.cumsum(weight)
    return TieGroups(ranks, weight, (~is_merged).astype(np.float64), is_merged=is_merged)


def find_group_index(groups: TieGroups, confidence: Array) -> IntArray:
    """Return the group of each sample, shape (n,); -1 for one that was left out."""
    if is_numpy(groups.confidence):
        return _index_on_host(groups.confidence[::-1], confidence)
    xp, most = groups.xp, groups.confidence.shape[0] - 1
    ascending = xp.flip(without_gradient(groups.confidence))
    place = xp.searchsorted(ascending, confidence)
    found = xp.take(ascending, xp.clip(place, 0, most)) == confidence
    index: IntArray = xp.where(found, most - place, xp.full_like(place, -1))
    return index


def _index_on_host(ascending: Array, confidence: Array) -> IntArray:
    place = np.searchsorted(ascending, confidence)
    found = ascending[np.minimum(place, ascending.size - 1)] == confidence
    return np.where(found, ascending.size - 1 - place, -1)


def tie_group_index(
    groups: TieGroups,
    confidence: Array,
    weight: FloatArray | None,
    order: IntArray | None = None,
) -> IntArray:
    """Return the group of each of the samples that were grouped, shape (n,); -1 for weight 0.

    `order` is theirs, where it is known.
    """
    xp = groups.xp
    all_in = weight is None or bool(xp.all(weight > 0))
    if all_in and xp is np and bool((confidence[:-1] >= confidence[1:]).all()):
        return np.cumsum(np.append(False, confidence[1:] != confidence[:-1]))
    if xp is not np or (order is None and (groups.n_samples != confidence.size or not all_in)):
        found = find_group_index(groups, confidence)
        return found if weight is None else xp.where(weight > 0, found, xp.full_like(found, -1))
    # Sorting and counting off is many times faster than searching each sample's group.
    out = np.full(confidence.size, -1)
    places = descending_order(confidence) if order is None else order
    out[places] = np.repeat(np.arange(groups.count.size), groups.count)
    return out


# ------------------------------------------------------------------------------------ bins
# Two ways to the same share of the weight may round to either side of a bin's end.
_ROUNDING = 1e-12


def equal_width_bins(
    groups: TieGroups, bins: int, *, low: float = 0.0, high: float = 1.0
) -> tuple[IntArray, FloatArray]:
    """Return the bin of each group and the b + 1 edges; bins are (a, b], `low` in the first."""
    # k / bins, not linspace: a confidence of 3/15 must compare equal to the edge 3/15.
    edges = low + (high - low) * (np.arange(bins + 1) / bins)
    # In the precision of the confidences: a float32 0.6 lies on the edge 0.6, not above it.
    xp, at = groups.xp, without_gradient(groups.confidence)
    inner = xp.astype(as_double_like(edges[1:-1], at), at.dtype)
    return xp.searchsorted(inner, at, side="left"), edges


def equal_mass_bins(groups: TieGroups, bins: int) -> tuple[IntArray, FloatArray]:
    """Return the bin of each group and the edges between bins; empty bins are closed up.

    A group lies as a whole in the bin that holds the middle of its weight. Each of the b - 1
    edges is the largest confidence of the bin below it.
    """
    middle = (groups.total_weight - groups.cumulative_weight) + groups.weight / 2
    xp = groups.xp
    place = xp.floor(bins * middle / groups.total_weight + _ROUNDING)
    # Groups come most confident first, so the first of each bin is its largest confidence.
    is_first = xp.concat((place[:1] == place[:1], place[1:] != place[:-1]))
    first = xp.nonzero(is_first)[0]
    inner = xp.flip(as_double(xp.take(without_gradient(groups.confidence), first[1:])))
    return first.shape[0] - xp.cumulative_sum(xp.astype(is_first, xp.int64)), inner
