"""Define `Scored`, the validated and sorted samples from which all metrics are computed."""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar, cast

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import as_double, is_numpy, namespace, without_gradient
from abstain._foundation.checks import drop_zero_weights, positive_weight_mask
from abstain._foundation.device import is_computed_on_device, validate_on_device
from abstain._foundation.names import validate_codes
from abstain._foundation.packed import PackedKeys, VertexBlock, is_counted, sorted_keys
from abstain._foundation.sorting import SortedValues, sort_descending
from abstain._foundation.tie_groups import (
    N_SPLIT_AT_ENDS,
    GroupRows,
    TieGroups,
    best_order_of_binary_loss,
    group_by_loss,
    group_sorted_values,
    group_ties,
    losses_of_broken_ties,
    merged_groups_of_broken_ties,
    one_group_per_sample,
    raise_uncounted,
    rows_of_classes,
    rows_of_groups,
    split_at_ends,
    split_merged_groups,
    tie_group_index,
    untied_order,
)
from abstain.typing import AnyArray, Array, FloatArray, IntArray, Scalar

T = TypeVar("T")

#: Number of groups in a block of `probability_vertices`, whose temporary arrays fit into the cache.
_BLOCK = 1 << 15


@dataclass(frozen=True, eq=False)
class ClassView:
    """Classes and class probabilities, for metrics that need more than confidence and loss."""

    #: Class codes from 0 to K - 1, shape (n,). The code -1 marks a label that is not a class.
    labels: IntArray
    #: Predicted class codes, shape (n,).
    prediction: IntArray
    #: Class names, in the order of the codes.
    classes: tuple[object, ...]
    #: Class probabilities, shape (n, K).
    probabilities: FloatArray | None = None
    #: Logarithms of the class probabilities, shape (n, K), exact where a probability underflows.
    log_probabilities: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class Scored:
    """Confidences and losses of validated samples, from which every metric is computed.

    The arrays are NumPy arrays, or arrays of another library on one device.

    Usually, a row is one sample. In `group_rows`, `class_rows`, `split_rows` and `merged_rows`,
    each row represents several samples of equal confidence and loss.
    """

    #: Confidences, shape (n,). A higher value is more confident. Rank metrics use only their order.
    confidence: Array
    #: Finite and non-negative losses, shape (n,).
    loss: Array
    #: Frequency weights, shape (n,). A sample with an integer weight w counts as w samples.
    weight: FloatArray | None = None
    #: Confidences that are used as probabilities of a correct prediction, for calibration and CWSA,
    #: shape (n,).
    probability: Array | None = field(default=None)
    #: Labels, predictions and class probabilities.
    class_view: ClassView | None = field(default=None)

    #: Tie groups of the samples, if the caller has already computed the groups.
    precomputed_groups: TieGroups | None = field(default=None, repr=False)
    precomputed_merged_groups: TieGroups | None = field(default=None, repr=False)
    #: Index of the tie group of each row, shape (n,), if the caller has already computed the index.
    precomputed_group_index: IntArray | None = field(default=None, repr=False)
    #: Number of samples of each row, shape (n,), equal to `weight`. None if each row is one sample.
    row_counts: FloatArray | None = field(default=None, repr=False)
    #: Mask of the caller's rows with a positive weight, which are the rows of this object. None if
    #: all rows of the caller have a positive weight.
    input_row_mask: AnyArray | None = field(default=None, repr=False)

    @property
    def xp(self) -> Any:
        """Array-API namespace of the arrays, which is `numpy` for NumPy."""
        return namespace(self.confidence)

    # -------------------------------------------------------------------------------- tie groups
    @cached_property
    def _keys(self) -> PackedKeys | None:
        """Sorted keys with confidence and loss, or None if keys cannot represent the samples."""
        is_packable = is_numpy(self.confidence) and is_numpy(self.loss) and self.weight is None
        return sorted_keys(self.confidence, self.loss) if is_packable else None

    @cached_property
    def groups(self) -> TieGroups:
        """The samples grouped by confidence, in descending order."""
        if self.precomputed_groups is not None:
            return self.precomputed_groups
        if self.row_counts is not None and self.precomputed_merged_groups is not None:
            raise_uncounted()
        if self._keys is not None:
            return TieGroups(*self._keys.groups())
        return self.group_with_loss(self.loss)

    @cached_property
    def sorted_confidence(self) -> SortedValues:
        """Indices that sort the samples of positive weight by descending confidence, in NumPy."""
        return sort_descending(self.confidence, positive_weight_mask(self.weight))

    def group_with_loss(self, loss: Array) -> TieGroups:
        """Return the tie groups of the same samples for another loss."""
        if not is_numpy(self.confidence) or not is_numpy(loss) or is_counted(self.confidence):
            return group_ties(self.confidence, loss, self.weight)
        return group_sorted_values(self.sorted_confidence, loss, self.weight)

    @cached_property
    def merged_groups(self) -> TieGroups:
        """The tie groups, with consecutive untied successes merged into one group.

        Groups are merged only for NumPy arrays with a 0/1 loss and without weights. Merging reduces
        the number of groups, so sums over groups are fast.
        """
        if self.precomputed_merged_groups is not None:
            return self.precomputed_merged_groups
        if self.precomputed_groups is not None or self._keys is None:
            return self.groups
        return TieGroups(*self._keys.merged_groups())

    def probability_vertices(self) -> Iterator[VertexBlock]:
        """Yield the groups of `probability_groups` in blocks to save memory.

        On a device, all groups are in one block.
        """
        has_no_groups = self._is_confidence_probability and self.precomputed_groups is None
        if has_no_groups and self._keys is not None:
            yield from self._keys.vertices()
            return
        groups = self.probability_groups
        n_groups = groups.count.shape[0]
        step = _BLOCK if self.xp is np else n_groups
        for start in range(0, n_groups, step):
            block = slice(start, start + step)
            yield VertexBlock(*(getattr(groups, name)[block] for name in VertexBlock._fields))

    @property
    def _is_confidence_probability(self) -> bool:
        """Whether probability and confidence define the same groups."""
        return self.probability is None or self.probability is self.confidence

    @cached_property
    def probability_groups(self) -> TieGroups:
        """The samples grouped by the probability of a correct prediction, in descending order."""
        if self._is_confidence_probability:
            return self.groups
        return group_ties(self.probability_or_confidence, self.loss, self.weight)

    @cached_property
    def group_index(self) -> IntArray:
        """Index of the tie group of each row, or -1 for weight 0."""
        if self.precomputed_group_index is not None:
            return self.precomputed_group_index
        order = None
        if self.precomputed_groups is None and "sorted_confidence" in self.__dict__:
            order = self.sorted_confidence.order
        return tie_group_index(self.groups, self.confidence, self.weight, order)

    @cached_property
    def probability_group_index(self) -> IntArray:
        """Index in `probability_groups` of the group of each row, or -1 for weight 0."""
        if self._is_confidence_probability:
            return self.group_index
        p = self.probability_or_confidence
        return tie_group_index(self.probability_groups, p, self.weight)

    # -------------------------------------------------------------------------------- group rows
    @property
    def has_unit_weights(self) -> bool:
        """Whether every sample has weight 1."""
        return self.weight is None or self.row_counts is not None

    @property
    def _has_group_rows(self) -> bool:
        """Whether samples of equal confidence and loss can be represented by one row."""
        return self.is_binary and self.weight is None and self.xp is np

    @cached_property
    def group_rows(self) -> "Scored":
        """The samples with one row per tie group and loss, in descending order of confidence.

        The weight of a row is its number of samples. Samples on a device, with weights, or with
        losses other than 0 and 1 are returned unchanged.
        """
        if not self._has_group_rows:
            return self
        rows = _scored_from_rows(rows_of_groups(self.groups))
        return rows if self.probability is None else replace(rows, probability=rows.confidence)

    @cached_property
    def class_rows(self) -> "Scored":
        """The samples with one row per class, tie group and loss.

        The rows are sorted by class and then by descending confidence. Samples without class labels
        are returned unchanged.
        """
        if not self._has_group_rows or self.class_view is None:
            return self
        # `self.group_index` would keep the tie group of each sample in memory.
        group_index = tie_group_index(self.groups, self.confidence, None)
        rows = rows_of_classes(self.groups, group_index, self.loss, self.class_view.labels)
        return replace(
            _scored_from_rows(rows),
            class_view=ClassView(rows.label, rows.label, self.class_view.classes),
            precomputed_group_index=rows.group_index,
        )

    @cached_property
    def split_rows(self) -> "Scored":
        """The samples with one row per merged group and loss.

        Merged groups near both ends of the ranking are split first, by `split_at_ends`.
        """
        all_are_split = self.n_samples <= 2 * N_SPLIT_AT_ENDS
        is_available = self.precomputed_groups is not None or self.row_counts is not None
        if all_are_split or is_available or self.merged_groups.is_merged is None:
            return self.group_rows
        return _scored_from_rows(rows_of_groups(split_at_ends(self.merged_groups)))

    @cached_property
    def merged_rows(self) -> "Scored":
        """The samples with one row per merged group and loss.

        These rows are sufficient for influence functions that are constant within merged groups.
        """
        if self.precomputed_groups is not None or self.merged_groups.is_merged is None:
            return self.group_rows
        return _scored_from_rows(rows_of_groups(self.merged_groups))

    def influence_rows(self, cluster: IntArray | None) -> "Scored":
        """Return `split_rows` if all samples are independent, otherwise `self`."""
        return self.split_rows if cluster is None else self

    def with_separate_ranks(self, first: int, last: int) -> "Scored":
        """Return group rows, in which samples at the ranks `first` to `last` have separate rows."""
        if self.groups.is_merged is None:
            return self
        groups = split_merged_groups(self.groups, np.arange(first, last + 1))
        return _scored_from_rows(rows_of_groups(groups))

    # -------------------------------------------------------------------------------- other orders
    def with_ties_broken(self, *, best: bool) -> "Scored":
        """Return the samples with ties broken by loss.

        Tied samples are sorted by ascending loss if `best` is True, otherwise by descending loss.
        """
        if self.is_binary and self.has_unit_weights and self.xp is np:
            return self._with_binary_ties_broken(best=best)
        if self.xp is np:
            key = self.loss.astype(np.float64, copy=False)
            order = self.sorted_confidence.order_with_ties_broken_by(key if best else -key)
        else:
            order = untied_order(self.confidence, self.loss, self.weight, best=best)
        loss = self.loss[order]
        weight = None if self.weight is None else self.weight[order]
        groups = one_group_per_sample(loss, weight)
        return Scored(groups.confidence, loss, weight, precomputed_groups=groups)

    def _with_binary_ties_broken(self, *, best: bool) -> "Scored":
        """Break ties of unweighted samples with a 0/1 loss without sorting."""
        groups = merged_groups_of_broken_ties(self.merged_groups, best=best)
        if self.row_counts is not None:
            return replace(
                self,
                probability=None,
                precomputed_groups=None,
                precomputed_merged_groups=groups,
            )
        loss = losses_of_broken_ties(self.merged_groups, best=best)
        ranks = np.arange(loss.size, 0, -1, dtype=np.int32)
        return Scored(ranks, loss, precomputed_merged_groups=groups)

    @cached_property
    def best_order(self) -> TieGroups:
        """Tie groups of the best possible score, which ranks samples by ascending loss.

        Samples with equal losses form one group.
        """
        if self.has_unit_weights and self.is_binary and self.xp is np:
            n_failures = int(self.merged_groups.cumulative_loss[-1])
            return best_order_of_binary_loss(self.merged_groups.n_samples, n_failures)
        if self.weight is None and is_numpy(self.loss):
            return group_by_loss(self.loss)
        if self.xp is np:
            return group_sorted_values(self.sorted_losses, self.loss, self.weight)
        return group_ties(self._negative_loss, self.loss, self.weight)

    @cached_property
    def sorted_losses(self) -> SortedValues:
        """Indices that sort the samples of positive weight by ascending loss, in NumPy."""
        return sort_descending(self._negative_loss, positive_weight_mask(self.weight))

    @property
    def _negative_loss(self) -> AnyArray:
        """Confidences of the best possible score, which are the negative losses."""
        if is_numpy(self.loss):
            return -self.loss.astype(np.float64)
        return -as_double(without_gradient(self.loss))

    @cached_property
    def best_order_group_index(self) -> AnyArray:
        """Index of the group of each row in the best possible order, or -1 for weight 0."""
        if self.has_unit_weights and self.is_binary:
            # Successes form group 0, if there are any, and failures form the last group.
            failure_group = self.best_order.loss.shape[0] - 1
            return (self.loss > 0) * failure_group
        return tie_group_index(self.best_order, self._negative_loss, self.weight)

    # -------------------------------------------------------------------------------- input rows
    def select_samples(self, column: Any) -> Any:
        """Return the entries of a column for the rows with a positive weight."""
        return column if self.input_row_mask is None else column[self.input_row_mask]

    def expand_to_input_rows(self, values: Any) -> Any:
        """Return one value for each input row, which is 0 for rows of weight 0."""
        if self.input_row_mask is None:
            return values
        xp = namespace(values)
        position = xp.cumulative_sum(xp.astype(self.input_row_mask, xp.int64)) - 1
        expanded = xp.take(values, xp.clip(position, 0, None))
        return xp.where(self.input_row_mask, expanded, xp.zeros_like(expanded))

    def cluster_codes(self, group: AnyArray | None) -> IntArray | None:
        """Return the cluster code of each sample, or None if `group` is None.

        The codes start at 0. `group` contains a cluster name for each row of the caller.
        """
        if group is None:
            return None
        codes = validate_codes(group, "group", self.n_input_rows)
        if self.input_row_mask is None:
            return codes
        return np.unique(codes[self.input_row_mask], return_inverse=True)[1].astype(np.int64)

    def cached(self, compute: Callable[..., T], *options: Hashable) -> T:
        """Return ``compute(self, *options)``, and store the result for later calls."""
        cache = self.__dict__.setdefault("_cache", {})
        key = (compute, *options)
        if key not in cache:
            cache[key] = compute(self, *options)
        return cast("T", cache[key])

    # -------------------------------------------------------------------------------- properties
    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.confidence.shape[0])

    @property
    def n_input_rows(self) -> int:
        """Number of input rows, including rows of weight 0."""
        return self.n_rows if self.input_row_mask is None else int(self.input_row_mask.shape[0])

    @property
    def n_samples(self) -> int:
        """Number of samples in all rows."""
        return self.n_rows if self.row_counts is None else int(self.row_counts.sum())

    @cached_property
    def n_failures(self) -> int:
        """Number of samples with a positive loss."""
        if self.row_counts is not None:
            return int(self.row_counts[self.loss > 0].sum())
        return int(self.xp.count_nonzero(self.loss))

    @cached_property
    def is_binary(self) -> bool:
        """Whether every loss is 0 or 1."""
        if is_numpy(self.loss) and self.loss.dtype.kind == "b":
            return True
        if self.__dict__.get("_keys") is not None:
            return True
        return bool(self.xp.all((self.loss == 0) | (self.loss == 1)))

    @cached_property
    def is_loss_bounded(self) -> bool:
        """Whether every loss is at most 1."""
        return bool(self.xp.max(self.loss) <= 1)

    @cached_property
    def is_calibratable(self) -> bool:
        """Whether confidence and loss are in [0, 1]."""
        return self.has_probability and self.is_loss_bounded

    @cached_property
    def has_probability(self) -> bool:
        """Whether `probability` is set and all its values are in [0, 1]."""
        p = self.probability
        return p is not None and bool(self.xp.min(p) >= 0) and bool(self.xp.max(p) <= 1)

    @property
    def precomputed_value_groups(self) -> TieGroups | None:
        """The precomputed tie groups, or None if probability and confidence differ."""
        if self.probability_or_confidence is self.confidence:
            return self.precomputed_groups
        return None

    @property
    def probability_or_confidence(self) -> Array:
        """Probability of a correct prediction if it is set, otherwise the confidence."""
        return self.confidence if self.probability is None else self.probability

    @cached_property
    def total_weight(self) -> float:
        """Sum of the weights, or the number of rows without weights."""
        return float(self.n_rows) if self.weight is None else float(self.xp.sum(self.weight))

    @cached_property
    def without_gradient(self) -> "Scored":
        """The samples with loss and probability detached from gradients."""
        return replace(
            self,
            loss=without_gradient(self.loss),
            probability=without_gradient(self.probability),
        )


def validate_samples(
    confidence: AnyArray,
    loss: AnyArray,
    weight: AnyArray | None = None,
    *,
    uses_values: bool = False,
) -> Scored:
    """Validate confidence, loss and weight.

    Rows with weight 0 are dropped. Arrays on a device or with a gradient are not converted to
    NumPy.

    Parameters
    ----------
    confidence, loss, weight : array, shape (n,)
        One entry per sample. The weight is optional.
    uses_values : bool, default=False
        Whether the caller uses the values of the confidences, not only their order. If True, the
        gradient of the confidence is retained.

    Returns
    -------
    Scored
        Samples with a positive weight.
    """
    if is_computed_on_device(confidence, loss, uses_values=uses_values):
        arrays = validate_on_device(confidence, loss, weight)
        return Scored(
            arrays.confidence,
            arrays.loss,
            arrays.weight,
            probability=arrays.probability if uses_values else arrays.confidence,
            input_row_mask=arrays.row_mask,
        )
    return validate_samples_on_host(confidence, loss, weight)


def output_reference(s: Scored, input_array: AnyArray) -> AnyArray:
    """Return the input array whose library and device the results should have.

    `input_array` is an array of the caller. Pass the returned array to `as_array_like`.
    """
    return input_array if s.xp is np else s.confidence


def validate_samples_on_host(
    confidence: AnyArray, loss: AnyArray, weight: AnyArray | None = None
) -> Scored:
    """Validate confidence, loss and weight of any library, and convert them to NumPy arrays."""
    confidence = checks.confidence(confidence)
    loss = checks.loss(loss, length=confidence.size)
    weight = checks.weight(weight, length=confidence.size)
    row_mask, weight, confidence, loss = drop_zero_weights(weight, confidence, loss)
    if weight is not None:
        checks.finite_weighted_sum(loss, weight)
    checks.reject_swapped_arguments(confidence, loss)
    return Scored(confidence, loss, weight, probability=confidence, input_row_mask=row_mask)


# ------------------------------------------------------------------------------------ group rows
def _scored_from_rows(rows: GroupRows) -> Scored:
    return Scored(
        rows.confidence,
        rows.loss,
        rows.row_counts,
        precomputed_groups=rows.groups,
        row_counts=rows.row_counts,
    )


def scored_from_groups(groups: TieGroups) -> Scored:
    """Return the samples of tie groups, with one row per group and loss."""
    scored = _scored_from_rows(rows_of_groups(groups))
    return replace(scored, probability=scored.confidence)


def scored_from_merged_groups(groups: TieGroups) -> Scored:
    """Return the samples of merged groups, with one row per group and loss.

    The confidence of a row is the rank of its group.
    """
    scored = _scored_from_rows(rows_of_groups(groups))
    return replace(scored, precomputed_groups=None, precomputed_merged_groups=groups)


# ------------------------------------------------------------------------------------ values
@dataclass(frozen=True)
class MetricValue:
    """The value of a metric, its number of samples, and the reason if it is NaN."""

    #: Value of the metric, or NaN if it is undefined for these data. The value is a
    #: zero-dimensional array if the loss has a gradient.
    value: Scalar
    #: Number of accepted samples from which the value is computed, or None for all samples.
    n_accepted: int | None = None
    #: Reason why the value is NaN, as a sentence, or an empty text if it is defined.
    reason: str = ""


def undefined(reason: str) -> MetricValue:
    """Return NaN with a reason, for a metric that is undefined for valid data."""
    return MetricValue(float("nan"), None, reason)
