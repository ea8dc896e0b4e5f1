"""The narrow waist: validated confidence and loss, sorted once, and what metrics may ask of it."""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar, cast

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import is_numpy, namespace
from abstain._foundation.device import is_computed_on_device, validate_on_device
from abstain._foundation.gradients import as_double, plain, without_gradient
from abstain._foundation.group_rows import (
    GroupRows,
    best_order_of_binary_loss,
    rows_of_classes,
    rows_of_groups,
)
from abstain._foundation.packed import PackedKeys, VertexBlock, is_counted, sorted_keys
from abstain._foundation.sorting import SortedValues, sort_descending
from abstain._foundation.tie_groups import (
    N_SPLIT_AT_ENDS,
    TieGroups,
    group_by_loss,
    group_sorted_values,
    group_ties,
    losses_of_broken_ties,
    merged_groups_of_broken_ties,
    one_group_per_sample,
    raise_uncounted,
    split_at_ends,
    split_merged_groups,
    tie_group_index,
    untied_order,
)
from abstain._foundation.weights import drop_zero_weights, positive_weight_mask
from abstain.typing import AnyArray, Array, FloatArray, IntArray

T = TypeVar("T")

#: Groups that are read at once, so that temporaries stay in the cache.
_BLOCK = 1 << 15


@dataclass(frozen=True, eq=False)
class ClassView:
    """What class-wise and probability metrics need besides confidence and loss."""

    #: Shape (n,). Class codes from 0 to K - 1; -1 marks a sample of no known class.
    labels: IntArray
    #: Shape (n,). Predicted class codes.
    prediction: IntArray
    #: The class names, in the order of the codes.
    classes: tuple[object, ...]
    #: Shape (n, K). Class probabilities.
    probabilities: FloatArray | None = None
    #: Shape (n, K). Their logarithms, exact where a probability underflows.
    log_probabilities: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class Scored:
    """Validated inputs of every metric, with the tie groups computed once.

    Arrays of NumPy, or all of one library on one device, which then computes on them.
    """

    #: Shape (n,). Higher is more trusted; only the order matters to rank metrics.
    confidence: Array
    #: Shape (n,). Finite and non-negative.
    loss: Array
    #: Shape (n,). Frequency weights: an integer weight counts a sample that many times.
    weight: FloatArray | None = None
    #: Shape (n,). The confidence as a probability of being right, for calibration and CWSA.
    probability: Array | None = field(default=None)
    #: Labels, predictions and class probabilities.
    class_view: ClassView | None = field(default=None)

    #: The two views, if they are available already: `groups` and `merged_groups`.
    precomputed_groups: TieGroups | None = field(default=None, repr=False)
    precomputed_merged_groups: TieGroups | None = field(default=None, repr=False)
    #: Shape (n,). The group of each row, if it is available already.
    precomputed_group_index: IntArray | None = field(default=None, repr=False)
    #: Shape (n,). How many samples each row stands for, where it is not one; then the weight too.
    row_counts: FloatArray | None = field(default=None, repr=False)
    #: Shape (rows of the caller,). Which of them these are; None where all have a weight.
    input_row_mask: AnyArray | None = field(default=None, repr=False)

    @property
    def xp(self) -> Any:
        """The array-API namespace of the arrays: `numpy` for NumPy."""
        return namespace(self.confidence)

    @cached_property
    def _keys(self) -> PackedKeys | None:
        """The samples sorted with the loss in the key, where keys hold them."""
        plain = is_numpy(self.confidence) and is_numpy(self.loss) and self.weight is None
        return sorted_keys(self.confidence, self.loss) if plain else None

    @cached_property
    def groups(self) -> TieGroups:
        """The samples grouped by confidence, most confident first."""
        if self.precomputed_groups is not None:
            return self.precomputed_groups
        if self.row_counts is not None and self.precomputed_merged_groups is not None:
            raise_uncounted()
        if self._keys is not None:
            return TieGroups(*self._keys.groups())
        return self.group_with_loss(self.loss)

    @cached_property
    def sorted_confidence(self) -> SortedValues:
        """The samples of the host in order, but for those of weight 0."""
        return sort_descending(self.confidence, positive_weight_mask(self.weight))

    def group_with_loss(self, loss: Array) -> TieGroups:
        """Return the groups of the same samples with another loss."""
        if not is_numpy(self.confidence) or not is_numpy(loss) or is_counted(self.confidence):
            return group_ties(self.confidence, loss, self.weight)
        return group_sorted_values(self.sorted_confidence, loss, self.weight)

    @cached_property
    def merged_groups(self) -> TieGroups:
        """The tie groups, with untied successes that lie next to each other merged into one group.

        Sums over merged successes have a closed form, and with a 0/1 loss few groups remain. The
        same as `groups` for other losses, for weights and on a device.
        """
        if self.precomputed_merged_groups is not None:
            return self.precomputed_merged_groups
        if self.precomputed_groups is not None or self._keys is None:
            return self.groups
        return TieGroups(*self._keys.merged_groups())

    def probability_vertices(self) -> Iterator[VertexBlock]:
        """Yield blocks of distinct probabilities, from the highest down.

        For what reads each once: no groups are made where keys hold the samples. All in one block
        elsewhere than on the host.
        """
        own = self.probability is None or self.probability is self.confidence
        if own and self.precomputed_groups is None and self._keys is not None:
            yield from self._keys.vertices()
            return
        groups = self.probability_groups
        names, size = VertexBlock._fields, groups.count.shape[0]
        step = _BLOCK if self.xp is np else size
        for start in range(0, size, step):
            yield VertexBlock(*(getattr(groups, name)[start : start + step] for name in names))

    @cached_property
    def probability_groups(self) -> TieGroups:
        """The samples grouped by probability of being right, highest first."""
        if self.probability is None or self.probability is self.confidence:
            return self.groups
        return group_ties(self.probability, self.loss, self.weight)

    @property
    def has_unit_weights(self) -> bool:
        """Whether every sample counts as one."""
        return self.weight is None or self.row_counts is not None

    @cached_property
    def group_rows(self) -> "Scored":
        """The same samples, with one row for all samples of one tie group and one loss.

        Most confident first; the weight is the number of samples. The influence of a sample on a
        number that reads neither rows nor classes depends on nothing else. For a 0/1 loss without
        weights; `self` otherwise.
        """
        if not self.is_binary or self.weight is not None or self.xp is not np:
            return self
        rows = self._from_rows(rows_of_groups(self.groups))
        return rows if self.probability is None else replace(rows, probability=rows.confidence)

    @cached_property
    def class_rows(self) -> "Scored":
        """The same for numbers that need classes: a row for each class, tie group and loss.

        Class by class, each most confident first. `self` without class labels.
        """
        if (
            not self.is_binary
            or self.weight is not None
            or self.xp is not np
            or self.class_view is None
        ):
            return self
        # `self.home` would keep the group of each sample in memory.
        home = tie_group_index(self.groups, self.confidence, None)
        rows = rows_of_classes(self.groups, home, self.loss, self.class_view.labels)
        view = ClassView(rows.label, rows.label, self.class_view.classes)
        return replace(
            self._from_rows(rows), class_view=view, precomputed_group_index=rows.group_index
        )

    def _from_rows(self, rows: GroupRows) -> "Scored":
        return Scored(
            rows.confidence,
            rows.loss,
            rows.row_counts,
            precomputed_groups=rows.groups,
            row_counts=rows.row_counts,
        )

    @cached_property
    def split_rows(self) -> "Scored":
        """`group_rows` of merged groups that are split near both ends, see `split_at_ends`."""
        all_are_split = self.n_samples <= 2 * N_SPLIT_AT_ENDS
        is_available = self.precomputed_groups is not None or self.row_counts is not None
        if all_are_split or is_available or self.merged_groups.is_merged is None:
            return self.group_rows
        return self._from_rows(rows_of_groups(split_at_ends(self.merged_groups)))

    @cached_property
    def merged_rows(self) -> "Scored":
        """`group_rows` of merged groups, for influences that are equal within each of them."""
        if self.precomputed_groups is not None or self.merged_groups.is_merged is None:
            return self.group_rows
        return self._from_rows(rows_of_groups(self.merged_groups))

    def influence_rows(self, cluster: IntArray | None) -> "Scored":
        """Return `split_rows` if all samples are independent, else `self`."""
        return self.split_rows if cluster is None else self

    def with_separate_ranks(self, first: int, last: int) -> "Scored":
        """Return these rows with merged groups split at each rank from `first` to `last`."""
        if self.groups.is_merged is None:
            return self
        groups = split_merged_groups(self.groups, np.arange(first, last + 1))
        return self._from_rows(rows_of_groups(groups))

    def with_ties_broken(self, *, best: bool) -> "Scored":
        """Return the same losses with the lower first in each tie, or if not `best` the higher."""
        if self.is_binary and self.has_unit_weights and self.xp is np:
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
        if self.xp is np:
            key = self.loss.astype(np.float64, copy=False)
            order = self.sorted_confidence.order_with_ties_broken_by(key if best else -key)
        else:
            order = untied_order(self.confidence, self.loss, self.weight, best=best)
        loss = self.loss[order]
        weight = None if self.weight is None else self.weight[order]
        groups = one_group_per_sample(loss, weight)
        return Scored(groups.confidence, loss, weight, precomputed_groups=groups)

    @cached_property
    def best_order(self) -> TieGroups:
        """The groups of the best score: the lower the loss, the more confident.

        Samples of equal loss form one group. Weight functions that are averaged over ties give
        the same value for any order within it, so this is the best score without ties too.
        """
        if self.has_unit_weights and self.is_binary and self.xp is np:
            return best_order_of_binary_loss(
                self.merged_groups.n_samples, int(self.merged_groups.cumulative_loss[-1])
            )
        if self.weight is None and is_numpy(self.loss):
            return group_by_loss(self.loss)
        if self.xp is np:
            return group_sorted_values(self.sorted_losses, self.loss, self.weight)
        return group_ties(self._goodness, self.loss, self.weight)

    @cached_property
    def sorted_losses(self) -> SortedValues:
        """The samples of the host from the least loss on, but for those of weight 0."""
        return sort_descending(self._goodness, positive_weight_mask(self.weight))

    @property
    def _goodness(self) -> AnyArray:
        """The confidence of the best score."""
        if is_numpy(self.loss):
            return -self.loss.astype(np.float64)
        return -as_double(without_gradient(self.loss))

    @cached_property
    def group_index(self) -> IntArray:
        """The group of each sample, -1 for weight 0."""
        if self.precomputed_group_index is not None:
            return self.precomputed_group_index
        runs = (
            None if self.precomputed_groups is not None else self.__dict__.get("sorted_confidence")
        )
        order = None if runs is None else runs.order
        return tie_group_index(self.groups, self.confidence, self.weight, order)

    @cached_property
    def probability_group_index(self) -> IntArray:
        """The group of each sample by its probability of being right, -1 for weight 0."""
        if self.probability is None or self.probability is self.confidence:
            return self.group_index
        return tie_group_index(self.probability_groups, self.probability, self.weight)

    @cached_property
    def best_order_group_index(self) -> AnyArray:
        """The group of each sample among those of the best score, -1 for weight 0."""
        if self.has_unit_weights and self.is_binary:
            # Successes come first, where there are some.
            return (self.loss > 0) * (self.best_order.loss.shape[0] - 1)
        return tie_group_index(self.best_order, self._goodness, self.weight)

    def cached(self, compute: Callable[..., T], *options: Hashable) -> T:
        """Return what a function makes of these samples; it is computed the first time only."""
        known = self.__dict__.setdefault("_once", {})
        asked = (compute, *options)
        if asked not in known:
            known[asked] = compute(self, *options)
        return cast("T", known[asked])

    @property
    def n_rows(self) -> int:
        """Number of samples."""
        return int(self.confidence.shape[0])

    @property
    def n_samples(self) -> int:
        """Number of samples that the rows stand for."""
        return self.n_rows if self.row_counts is None else int(self.row_counts.sum())

    @cached_property
    def n_failures(self) -> int:
        """Number of samples with a loss above zero."""
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
        """Whether every loss lies in [0, 1]."""
        return bool(self.xp.max(self.loss) <= 1)

    @cached_property
    def is_calibratable(self) -> bool:
        """Whether confidence and loss both lie in [0, 1], as calibration and CWSA need."""
        return self.has_probability and self.is_loss_bounded

    @cached_property
    def has_probability(self) -> bool:
        """Whether the confidence is a probability: there, and in [0, 1]."""
        p = self.probability
        return p is not None and bool(self.xp.min(p) >= 0) and bool(self.xp.max(p) <= 1)

    @property
    def precomputed_value_groups(self) -> TieGroups | None:
        """The groups by `shown` where they come from elsewhere: its rows may be no samples then."""
        return (
            self.precomputed_groups if self.probability_or_confidence is self.confidence else None
        )

    @property
    def probability_or_confidence(self) -> Array:
        """The confidence as people read it: a probability where it means one."""
        return self.confidence if self.probability is None else self.probability

    @cached_property
    def total_weight(self) -> float:
        """Weight of all samples; their number when there are no weights."""
        return float(self.n_rows) if self.weight is None else float(self.xp.sum(self.weight))

    @cached_property
    def without_gradient(self) -> "Scored":
        """The same without gradients, for what is not differentiable."""
        return replace(self, loss=without_gradient(self.loss), probability=plain(self.probability))


def validate_samples(
    confidence: AnyArray,
    loss: AnyArray,
    weight: AnyArray | None = None,
    *,
    uses_values: bool = False,
) -> Scored:
    """Validate (confidence, loss, weight) at the public edge and wrap them.

    Rows with weight 0 are dropped: no metric, curve or interval knows of them. Arrays on a device,
    and those a gradient flows through, stay with their library. The gradient of the confidence is
    kept with `uses_values` only: for what reads more than the order.
    """
    if is_computed_on_device(confidence, loss, uses_values=uses_values):
        c, x, w, p, rows = validate_on_device(confidence, loss, weight)
        return Scored(c, x, w, probability=p if uses_values else c, input_row_mask=rows)
    return validate_samples_on_host(confidence, loss, weight)


def output_reference(s: Scored, given: AnyArray) -> AnyArray:
    """Return an array whose library and device results shall have, `given` one of the caller."""
    return given if s.xp is np else s.confidence


def validate_samples_on_host(
    confidence: AnyArray, loss: AnyArray, weight: AnyArray | None = None
) -> Scored:
    """Do the same in NumPy, whatever the arrays are: for what only the host can compute."""
    c = checks.confidence(confidence)
    x, w = checks.loss(loss, length=c.size), checks.weight(weight, length=c.size)
    rows, w, c, x = drop_zero_weights(w, c, x)
    if w is not None:
        checks.finite_weighted_sum(x, w)
    checks.reject_swapped_arguments(c, x)
    return Scored(c, x, w, probability=c, input_row_mask=rows)
