"""Group samples of equal confidence (tie groups), and sum weights and losses by group.

The groups are in descending order of confidence. A threshold accepts or rejects all samples of a
tie group. Curves and area metrics are computed from the tie groups.

To save time, some functions merge consecutive untied samples of loss 0 into one group.
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
from abstain._foundation.arrays import (
    as_double,
    as_double_like,
    as_scalar,
    is_numpy,
    namespace,
    read_only,
    without_gradient,
)
from abstain._foundation.packed import Groups, count_half_precision, is_counted, sorted_keys
from abstain._foundation.sorting import SortedValues, descending_order, sort_descending
from abstain.errors import UncountedError
from abstain.typing import AnyArray, Array, BoolArray, FloatArray, IntArray, Scalar


def raise_uncounted(subject: str = "") -> NoReturn:
    """Raise an UncountedError, because `subject` requires the confidence of each success."""
    raise UncountedError(
        f"{subject}needs the confidences of the successes, and a state of two passes only counts "
        "them between the failures; take `streaming.one_pass`, which keeps each distinct "
        "confidence, or `streaming.sorted_runs`, which keeps all on disk"
    )


@dataclass(frozen=True, eq=False)
class GroupsWithLoss:
    """The tie groups whose loss is positive. The cumulative weights include all groups."""

    #: Arrays with the meaning of the fields of `TieGroups`, shape (h,).
    loss: FloatArray
    weight: FloatArray
    weight_above: FloatArray
    cumulative_weight: FloatArray
    #: Total weight of all samples.
    total_weight: float

    @property
    def xp(self) -> Any:
        """Array-API namespace of the arrays."""
        return np


@dataclass(frozen=True, eq=False)
class TieGroups:
    """The distinct confidences in descending order, with the weight and loss of each.

    The arrays are NumPy arrays, or arrays of the library and device of the samples. A merged group
    represents consecutive untied samples of equal loss.
    """

    #: Distinct confidences in descending order, shape (g,).
    confidence: Array
    #: Sum of the sample weights, shape (g,), or the number of samples if there are no weights.
    weight: FloatArray
    #: Sum of weight times loss, shape (g,). Only this array can have a gradient.
    loss: FloatArray
    #: Number of samples, shape (g,), or None if `weight` is the number of samples.
    unweighted_count: IntArray | None = None
    #: Mask of the merged groups, shape (g,), or None if no group is merged. The confidence of a
    #: merged group is the lowest confidence of its samples.
    is_merged: BoolArray | None = None
    #: Whether samples of a merged group may be tied. A two-pass streaming state does not store
    #: these ties.
    has_unknown_ties: bool = False

    def __post_init__(self) -> None:
        """Make the arrays read-only, because curves and metrics share them."""
        for name in ("confidence", "weight", "loss", "unweighted_count", "is_merged"):
            array = getattr(self, name)
            object.__setattr__(self, name, None if array is None else read_only(array))

    @property
    def xp(self) -> Any:
        """Array-API namespace of the arrays, which is `numpy` for NumPy."""
        return namespace(self.weight)

    @cached_property
    def cumulative_weight(self) -> FloatArray:
        """For each group, total weight of the samples with at least its confidence, shape (g,)."""
        return self._cumulative_sum(self.weight)

    @property
    def weight_above(self) -> FloatArray:
        """For each group, total weight of the samples with a higher confidence, shape (g,)."""
        return self.cumulative_weight - self.weight

    @cached_property
    def cumulative_loss(self) -> FloatArray:
        """For each group, weighted loss of the samples with at least its confidence, shape (g,)."""
        return self._cumulative_sum(self.loss)

    @property
    def count(self) -> IntArray:
        """Number of samples of each group, shape (g,)."""
        if self.unweighted_count is None:
            return self._as_counts(self.weight)
        return self.unweighted_count

    @property
    def cumulative_count(self) -> IntArray:
        """For each group, number of samples with at least its confidence, shape (g,)."""
        if self.unweighted_count is None:
            return self._as_counts(self.cumulative_weight)
        return self._cumulative_sum(self.unweighted_count)

    def _as_counts(self, x: FloatArray) -> IntArray:
        counts: IntArray = read_only(self.xp.astype(x, self.xp.int64))
        return counts

    def _cumulative_sum(self, x: Array) -> Array:
        sums: Array = read_only(self.xp.cumulative_sum(x))
        return sums

    @property
    def is_merged_without_unknown_ties(self) -> BoolArray | None:
        """Mask of the merged groups, or None if no group is merged.

        If samples of a merged group may be tied, an UncountedError is raised.
        """
        self.check_ties_are_known()
        return self.is_merged

    def check_ties_are_known(self) -> None:
        """Raise an UncountedError if samples of a merged group may be tied."""
        if self.has_unknown_ties:
            raise_uncounted()

    @property
    def last_vertex_weight(self) -> FloatArray:
        """Weight of the samples accepted at the last threshold of each group only, shape (g,).

        For a merged group, the value is 1, because each of its samples has a separate threshold.
        For an unmerged group, the value is the weight of the group.
        """
        is_merged = self.is_merged_without_unknown_ties
        return self.weight if is_merged is None else np.where(is_merged, 1.0, self.weight)

    @cached_property
    def groups_with_loss(self) -> "TieGroups | GroupsWithLoss":
        """The groups with a positive loss, or all groups if most losses are positive."""
        if self.xp is not np:
            return self
        index = np.flatnonzero(self.loss > 0)
        if self.is_merged is None and 2 * index.size > self.loss.size:
            return self
        weight = self.weight[index]
        cumulative_weight = self.cumulative_weight[index]
        return GroupsWithLoss(
            loss=self.loss[index],
            weight=weight,
            weight_above=cumulative_weight - weight,
            cumulative_weight=cumulative_weight,
            total_weight=self.total_weight,
        )

    @property
    def total_weight(self) -> float:
        """Total weight of all samples."""
        return float(self.cumulative_weight[-1])

    @property
    def risk(self) -> Scalar:
        """Mean loss of all samples, which is the risk at full coverage."""
        return as_scalar(self.cumulative_loss[-1]) / self.total_weight

    @cached_property
    def n_samples(self) -> int:
        """Number of samples."""
        if self.unweighted_count is None:
            return int(self.total_weight)
        return int(self.xp.sum(self.unweighted_count))

    @property
    def n_tied(self) -> int:
        """Number of samples that share their confidence with another sample."""
        count = self.weight if self.unweighted_count is None else self.unweighted_count
        is_merged = self.is_merged_without_unknown_ties
        is_tied = count > 1 if is_merged is None else (count > 1) & ~is_merged
        return int(self.xp.sum(count[is_tied]))


def thresholds_from_infinity(groups: TieGroups) -> AnyArray:
    """Return infinity followed by the distinct confidences, shape (g + 1,).

    The threshold infinity accepts no sample.
    """
    accepts_nothing = groups.xp.full_like(groups.confidence[:1], float("inf"))
    return groups.xp.concat((accepts_nothing, groups.confidence))


def n_accepted_groups(groups: TieGroups, threshold: float | FloatArray) -> AnyArray:
    """For each threshold, return the number of groups with confidence >= threshold.

    Thresholds are rounded to the dtype of the confidences. Therefore, a threshold of 0.9 accepts a
    float32 confidence of 0.9.
    """
    if is_numpy(groups.confidence):
        with np.errstate(over="ignore"):
            thresholds = np.asarray(threshold).astype(groups.confidence.dtype)
        return np.searchsorted(-groups.confidence, -thresholds, side="right")
    xp, confidence = groups.xp, without_gradient(groups.confidence)
    thresholds = xp.astype(as_double_like(threshold, confidence), confidence.dtype)
    return xp.searchsorted(-confidence, -thresholds, side="right")


# ------------------------------------------------------------------------------------ grouping
def group_ties(confidence: Array, loss: Array, weight: FloatArray | None = None) -> TieGroups:
    """Group validated samples by confidence, without samples of weight 0."""
    if weight is not None and not namespace(weight).all(weight):
        has_weight = weight > 0
        confidence, loss, weight = confidence[has_weight], loss[has_weight], weight[has_weight]
    if not is_numpy(confidence):
        return TieGroups(*group_by_sorting(confidence, loss, weight))
    groups = _group_without_argsort(confidence, loss, weight)
    if groups is not None:
        return TieGroups(*groups)
    return group_sorted_values(sort_descending(confidence), loss, weight)


def _group_without_argsort(
    confidence: Array, loss: Array, weight: FloatArray | None
) -> Groups | None:
    """Group NumPy samples by sorting integer keys, or return None if this is impossible."""
    if is_counted(confidence):
        return count_half_precision(confidence, loss, weight)
    keys = sorted_keys(confidence, loss) if weight is None else None
    return None if keys is None else keys.groups()


def group_sorted_values(
    sorted_confidence: SortedValues, loss: Array, weight: FloatArray | None
) -> TieGroups:
    """Group NumPy samples whose confidences are already sorted."""
    unweighted_count = None if weight is None else sorted_confidence.group_sizes
    weight_sums, loss_sums = sorted_confidence.sum_by_group(loss, weight)
    return TieGroups(sorted_confidence.distinct_values, weight_sums, loss_sums, unweighted_count)


def group_by_loss(loss: Array) -> TieGroups:
    """Group NumPy samples by loss in ascending order, with confidence = -loss."""
    sorted_loss = np.sort(loss.astype(np.float64))
    last_rows = np.flatnonzero(sorted_loss[1:] != sorted_loss[:-1])
    last_rows = np.append(last_rows, sorted_loss.size - 1)
    distinct_loss = sorted_loss[last_rows]
    weight = undo_cumulative_sum(last_rows + 1).astype(np.float64)
    return TieGroups(-distinct_loss, weight, weight * distinct_loss)


def one_group_per_sample(loss: Array, weight: FloatArray | None) -> TieGroups:
    """Return a tie group for each sample, in the given order."""
    xp, loss = namespace(loss), as_double(loss)
    if xp is not np:
        descending_ranks = -without_gradient(xp.cumulative_sum(xp.ones_like(loss)))
        return group_ties(descending_ranks, loss, weight)
    descending_ranks = np.arange(-1.0, -1.0 - loss.size, -1.0)
    if weight is None:
        return TieGroups(descending_ranks, np.ones(loss.size), loss)
    return TieGroups(descending_ranks, weight, weight * loss, np.ones(loss.size, np.int64))


# ------------------------------------------------------------------------------------ merged groups
#: Number of samples at each end of the order that `split_at_ends` does not merge.
N_SPLIT_AT_ENDS = 1 << 12


def split_at_ends(groups: TieGroups) -> TieGroups:
    """Split merged groups at the first and last `N_SPLIT_AT_ENDS` ranks.

    Influence functions require this only near the ends of the ranking, where influences of
    neighbors differ. The groups are also split where the failures begin in the best possible order.
    """
    n = groups.n_samples
    n_first = min(n, N_SPLIT_AT_ENDS)
    start_of_last = max(n - N_SPLIT_AT_ENDS, n_first)
    n_successes = int(groups.total_weight - groups.cumulative_loss[-1])
    ranks = np.concatenate((np.arange(n_first), [n_successes], np.arange(start_of_last, n)))
    return split_merged_groups(groups, np.unique(ranks))


def with_vertex_at(groups: TieGroups, cumulative_weight: float) -> TieGroups:
    """Split the merged group in which the cumulative weight reaches `cumulative_weight`."""
    rank = int(np.ceil(cumulative_weight))
    return split_merged_groups(groups, np.array([rank]))


def split_merged_groups(groups: TieGroups, ranks: IntArray) -> TieGroups:
    """Split merged groups after the samples at the given ranks.

    `ranks` are ascending integers from 0 to n. Ranks outside merged groups are ignored.
    """
    is_merged = groups.is_merged_without_unknown_ties
    if is_merged is None:
        return groups
    group_ends = groups.cumulative_count
    group = np.searchsorted(group_ends, ranks)
    is_split = is_merged[group] & (ranks > 0) & (ranks != group_ends[group])
    if not is_split.any():
        return groups
    split_group = group[is_split]
    split_ends = np.insert(group_ends, split_group, ranks[is_split])
    parent = np.insert(np.arange(group_ends.size), split_group, split_group)
    weight = undo_cumulative_sum(split_ends).astype(np.float64)
    return TieGroups(
        confidence=groups.confidence[parent],
        weight=weight,
        loss=groups.loss[parent] * (weight / groups.weight[parent]),
        is_merged=is_merged[parent],
    )


# ------------------------------------------------------------------------------------ broken ties
def untied_order(
    confidence: Array, loss: Array, weight: FloatArray | None, *, best: bool
) -> IntArray:
    """Return the indices of the rows in descending order of confidence, with ties broken by loss.

    Tied samples are sorted by ascending loss if `best` is True, otherwise by descending loss.
    """
    key = as_double(loss)
    order: IntArray = lexicographic_order(-confidence, key if best else -key)
    return order if weight is None else order[weight[order] > 0]


def losses_of_broken_ties(groups: TieGroups, *, best: bool) -> BoolArray:
    """Return the 0/1 losses in descending order of confidence, with ties broken by loss.

    In a tie group, successes come first if `best` is True, otherwise failures.
    """
    n_failures = groups.loss.astype(np.int64)
    n_successes = groups.count - n_failures
    if best:
        counts = np.column_stack((n_successes, n_failures))
        losses_of_group = [False, True]
    else:
        counts = np.column_stack((n_failures, n_successes))
        losses_of_group = [True, False]
    losses = np.tile(np.array(losses_of_group), n_failures.size)
    return np.repeat(losses, counts.ravel())


def merged_groups_of_broken_ties(groups: TieGroups, *, best: bool) -> TieGroups:
    """Break ties by loss, and return the groups of samples with a 0/1 loss.

    The successes of each tie group become one merged group. Each failure becomes a separate group.
    The new confidences are ranks, where rank 1 is the least confident.
    """
    n_failures = groups.loss.astype(np.int64)
    n_successes = groups.count - n_failures
    has_successes = n_successes > 0
    new_ends = np.cumsum(n_failures + has_successes)
    # The failures of a tie group follow its successes if `best` is True.
    merged_index = new_ends - n_failures - 1 if best else new_ends - 1
    success_index = merged_index[has_successes]
    weight = np.ones(int(new_ends[-1]))
    weight[success_index] = n_successes[has_successes]
    is_merged = np.zeros(weight.size, np.bool_)
    is_merged[success_index] = True
    ranks = groups.n_samples + 1.0 - np.cumsum(weight)
    return TieGroups(ranks, weight, (~is_merged).astype(np.float64), is_merged=is_merged)


# ------------------------------------------------------------------------------------ group index
def find_group_index(groups: TieGroups, confidence: Array) -> IntArray:
    """Return the index of the tie group of each confidence, or -1 if none matches."""
    last_group = groups.confidence.shape[0] - 1
    if is_numpy(groups.confidence):
        ascending = groups.confidence[::-1]
        position = np.searchsorted(ascending, confidence)
        exists = ascending[np.minimum(position, last_group)] == confidence
        return np.where(exists, last_group - position, -1)
    xp = groups.xp
    ascending = xp.flip(without_gradient(groups.confidence))
    position = xp.searchsorted(ascending, confidence)
    exists = xp.take(ascending, xp.clip(position, 0, last_group)) == confidence
    index: IntArray = xp.where(exists, last_group - position, xp.full_like(position, -1))
    return index


def tie_group_index(
    groups: TieGroups,
    confidence: Array,
    weight: FloatArray | None,
    order: IntArray | None = None,
) -> IntArray:
    """Return the index of the tie group of each sample, shape (n,), or -1 for weight 0.

    `order` contains the indices of the samples with a positive weight in descending order of
    confidence, if the caller has already sorted the samples.
    """
    xp = groups.xp
    has_zero_weights = weight is not None and not bool(xp.all(weight > 0))
    if xp is np and not has_zero_weights and bool((confidence[:-1] >= confidence[1:]).all()):
        is_new_group = np.append(False, confidence[1:] != confidence[:-1])
        return np.cumsum(is_new_group)
    contains_all_samples = not has_zero_weights and groups.n_samples == confidence.size
    if xp is np and (order is not None or contains_all_samples):
        # Sorting the samples is much faster than a search for each sample.
        sorted_rows = descending_order(confidence) if order is None else order
        index = np.full(confidence.size, -1)
        index[sorted_rows] = np.repeat(np.arange(groups.count.size), groups.count)
        return index
    index = find_group_index(groups, confidence)
    if weight is not None:
        index = xp.where(weight > 0, index, xp.full_like(index, -1))
    return index


# ------------------------------------------------------------------------------------ bins
#: Tolerance for rounding errors of the share of the weight below an edge between two bins.
_ROUNDING = 1e-12


def equal_width_bins(
    groups: TieGroups, bins: int, *, low: float = 0.0, high: float = 1.0
) -> tuple[IntArray, FloatArray]:
    """Return the bin index of each group, and the `bins` + 1 edges.

    Bins include their upper edge. The first bin also includes its lower edge `low`.
    """
    # The edges are k / bins, because a confidence of 3/15 must equal the edge 3/15.
    edges = low + (high - low) * (np.arange(bins + 1) / bins)
    # The edges have the precision of the confidences, so that a float32 0.6 equals the edge 0.6.
    xp, confidence = groups.xp, without_gradient(groups.confidence)
    inner_edges = xp.astype(as_double_like(edges[1:-1], confidence), confidence.dtype)
    bin_index = xp.searchsorted(inner_edges, confidence, side="left")
    return bin_index, edges


def equal_mass_bins(groups: TieGroups, bins: int) -> tuple[IntArray, FloatArray]:
    """Return the bin index of each group, and the edges between bins of equal weight.

    Empty bins are removed. Each group belongs to the bin that contains the midpoint of its
    cumulative weight. Each edge is the largest confidence in the bin below the edge.
    """
    xp = groups.xp
    weight_below_middle = (groups.total_weight - groups.cumulative_weight) + groups.weight / 2
    bin_of_group = xp.floor(bins * weight_below_middle / groups.total_weight + _ROUNDING)
    # Groups are in descending order, so the first group of a bin has its largest confidence.
    is_new_bin = bin_of_group[1:] != bin_of_group[:-1]
    is_first = xp.concat((xp.ones_like(bin_of_group[:1], dtype=xp.bool), is_new_bin))
    first = xp.nonzero(is_first)[0]
    largest_confidences = xp.take(without_gradient(groups.confidence), first[1:])
    edges = xp.flip(as_double(largest_confidences))
    # Bins are numbered from the lowest confidence.
    bin_index = first.shape[0] - xp.cumulative_sum(xp.astype(is_first, xp.int64))
    return bin_index, edges


# ------------------------------------------------------------------------------------ group rows
#: Number of bits of the group index in the sort key of `rows_of_classes`.
_GROUP_BITS = 31


@dataclass(frozen=True, eq=False)
class GroupRows:
    """Numbers of samples by tie group and 0/1 loss, without rows for empty combinations."""

    #: Tie groups of the samples.
    groups: TieGroups
    #: Confidence of each row, shape (k,).
    confidence: Array
    #: Loss of each row, 0 or 1, shape (k,).
    loss: FloatArray | BoolArray
    #: Number of samples of each row, shape (k,).
    row_counts: FloatArray


@dataclass(frozen=True, eq=False)
class ClassRows(GroupRows):
    """Numbers of samples by class, tie group and 0/1 loss, sorted by class."""

    #: Index of the tie group of each row, shape (k,).
    group_index: Array
    #: Class code of each row, shape (k,).
    label: Array


def rows_of_groups(groups: TieGroups) -> GroupRows:
    """Count the successes and failures of each tie group, in separate rows."""
    n_successes, n_failures = groups.weight - groups.loss, groups.loss
    # Successes and failures alternate, so entry 2 g + loss counts the samples of group g.
    counts = np.column_stack((n_successes, n_failures)).ravel()
    occurring = np.flatnonzero(counts)
    group_index = occurring >> 1
    is_failure = (occurring & 1).astype(np.bool_)
    confidence = groups.confidence
    if groups.is_merged is not None:
        # The parts of a split merged group have one confidence, so the confidence becomes the rank.
        confidence = np.arange(groups.weight.size, 0, -1.0)
    return GroupRows(groups, confidence[group_index], is_failure, counts[occurring])


def rows_of_classes(groups: TieGroups, group_index: Array, loss: Array, labels: Array) -> ClassRows:
    """Count the successes and the failures of each class in each tie group.

    Parameters
    ----------
    groups : TieGroups
        Tie groups of the samples.
    group_index, loss, labels : array, shape (n,)
        Tie group, 0/1 loss and class code (at least -1) of each sample.
    """
    # Sorting integer keys is faster than sorting the samples. From the highest bit down, a key
    # contains the class code + 1, the group index in `_GROUP_BITS` bits, and the loss.
    keys = labels + 1
    keys <<= _GROUP_BITS
    keys |= group_index
    keys <<= 1
    keys |= loss != 0
    keys.sort()
    is_last = np.ones(keys.size, np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=is_last[:-1])
    last_rows = np.flatnonzero(is_last)
    row_counts = np.diff(last_rows, prepend=-1).astype(np.float64)
    keys = keys.take(last_rows)
    # Decode the distinct keys.
    is_failure = (keys & 1).astype(np.bool_)
    group_mask = (1 << _GROUP_BITS) - 1
    group = ((keys >> 1) & group_mask).astype(np.int32)
    label = ((keys >> (_GROUP_BITS + 1)) - 1).astype(np.int32)
    return ClassRows(groups, groups.confidence[group], is_failure, row_counts, group, label)


def best_order_of_binary_loss(n: int, n_failures: int) -> TieGroups:
    """Return the tie groups of a score that ranks all successes before all failures."""
    confidence = np.array([0.0, -1.0])
    weight = np.array([n - n_failures, n_failures], np.float64)
    loss = np.array([0, n_failures], np.float64)
    is_nonempty = weight > 0
    return TieGroups(confidence[is_nonempty], weight[is_nonempty], loss[is_nonempty])


# ------------------------------------------------------------------------------------ augrc
def augrc_from_rank_sum(total: Any, loss: Any, doubled_rank_sum: Any) -> Any:
    """Compute the area under the generalized risk-coverage curve.

    `total` is the weight of all samples, and `loss` is the sum of weight times loss.
    `doubled_rank_sum` is the sum of loss x (weight above the group + cumulative weight of the
    group) over the tie groups.
    """
    return (2 * total * loss - doubled_rank_sum) / (2 * total * total)
