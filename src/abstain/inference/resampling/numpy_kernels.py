"""Kernels in NumPy that compute areas of resamples.

The module `numba_kernels` computes the same numbers with numba. The method is explained in
`abstain.inference.resampled_areas`.
"""

from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from abstain._foundation.tie_groups import augrc_from_rank_sum
from abstain.inference.resampling.sorted_samples import (
    MAX_CELL_SIZE,
    CountMoments,
    HarmonicTables,
    RequestedAreas,
    SlotLayout,
    SortedSamples,
)
from abstain.typing import Array, FloatArray, IntArray

#: Maximum number of elements of a temporary array over samples and resamples.
_MAX_ELEMENTS = 1 << 20


class ResampleBlock(NamedTuple):
    """Counts of the samples in b resamples, and reusable buffers."""

    #: Shape (n, b). Number of times k that each sample is drawn.
    counts: Array
    #: Shape (n, 2b). The numbers k and k^3 - k, in a type that can represent their sums over a
    #: cell.
    counts_and_excess: Array
    #: Largest count.
    max_count: int
    #: Arrays by name, which the next score reuses, because allocation is slower than arithmetic.
    buffers: dict[str, Array]

    def buffer(self, name: str, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
        """Return an uninitialized buffer, which later calls with the same name reuse."""
        size = prod(shape)
        array = self.buffers.get(name)
        if array is None or array.size < size or array.dtype != dtype:
            array = self.buffers[name] = np.empty(size + size // 4, dtype)
        return array[:size].reshape(shape)

    def cast(self, name: str, array: Array, dtype: DTypeLike) -> Array:
        """Copy an array into a buffer of another type."""
        out = self.buffer(name, array.shape, dtype)
        np.copyto(out, array, casting="unsafe")
        return out

    def take(self, name: str, array: Array, index: Array) -> Array:
        """Copy the entries `array[index]` along the first axis into a buffer."""
        out = self.buffer(name, (*index.shape, *array.shape[1:]), array.dtype)
        return np.take(array, index, axis=0, out=out, mode="clip")

    def min_drawn(self, samples: IntArray) -> int:
        """Return the smallest number of draws of the given samples in any resample."""
        sum_type = self.counts_and_excess.dtype
        may_overflow = (
            sum_type.kind != "i" or samples.size * self.max_count > np.iinfo(sum_type).max
        )
        if may_overflow:
            selected = self.take("selected counts", self.counts, samples)
            return int(np.add.reduce(selected, axis=0, dtype=np.int64).min())
        # A sum in the type of the array is faster.
        n_resamples = self.counts.shape[1]
        selected = self.take("selected counts and excess", self.counts_and_excess, samples)
        return int(np.add.reduce(selected, axis=0, dtype=sum_type)[:n_resamples].min())


def tally(sampled_units: Array, counts: Array, first_column: int) -> Array:
    """Write into `counts` how often each resample contains each unit.

    `sampled_units` has shape (r, k): the k units of each of r resamples. The counts of the first
    resample are written to the column `first_column`. Returns `counts`, or a copy with a wider type
    if a count does not fit.
    """
    for column, units in enumerate(sampled_units, first_column):
        unit_counts = np.bincount(units, minlength=len(counts))
        if unit_counts.max() > np.iinfo(counts.dtype).max:
            counts = counts.astype(np.min_scalar_type(unit_counts.max()))
        counts[:, column] = unit_counts
    return counts


def prepare(counts: Array) -> ResampleBlock:
    """Compute k and k^3 - k from the counts k of samples in resamples, shape (n, b)."""
    max_count = int(counts.max())
    max_cell_sum = MAX_CELL_SIZE * max(max_count, max_count**3 - max_count)
    sum_type: DTypeLike = np.float64
    if max_cell_sum <= np.iinfo(np.int16).max:
        sum_type = np.int16
    elif max_cell_sum <= np.iinfo(np.int32).max:
        sum_type = np.int32
    n_samples, n_resamples = counts.shape
    counts_and_excess = np.empty((n_samples, 2 * n_resamples), sum_type)
    k = counts_and_excess[:, :n_resamples]
    excess = counts_and_excess[:, n_resamples:]
    k[:] = counts
    np.multiply(k, k, out=excess)
    excess -= 1
    excess *= k
    return ResampleBlock(counts, counts_and_excess, max_count, {})


def areas_of_binary_loss(
    block: ResampleBlock,
    samples: SortedSamples,
    tables: HarmonicTables,
    requested: RequestedAreas,
    moments: CountMoments,
) -> FloatArray:
    """Return total weight, risk, AUGRC, AURC and plug-in AURC of 0/1 losses, shape (5, b)."""
    layout = samples.layout(0, 0.0)
    if requested.aurc:
        layout = _select_layout(block, samples, moments)
    n_accepted, excess = _accepted_by_slot(block, layout)
    total = n_accepted[-1].astype(np.float64)
    groups = _ExactGroups.from_slots(block, layout, n_accepted)
    has_groups = len(groups.failures_after) > 0
    n_failures = groups.failures_after[-1] if has_groups else np.zeros(total.shape)
    out = np.full((5, total.size), np.nan)
    out[0] = total
    out[1] = n_failures / total
    work = block.buffer("work", groups.n_before.shape, np.float64)
    twice_rank = np.add(groups.n_before, groups.n_after, out=work)
    twice_rank_sum = np.einsum("ij,ij->j", groups.n_failures, twice_rank)
    out[2] = augrc_from_rank_sum(total, n_failures, twice_rank_sum)
    trapezoid_of_total = tables.trapezoid[n_accepted[-1]]
    if requested.aurc:
        area = groups.trapezoid_area(block, tables.trapezoid) + n_failures * trapezoid_of_total
        cell_excess = _cell_excess_area(block, layout, n_accepted, excess, groups.failures_after)
        out[3] = (area + cell_excess) / total
    if requested.plugin:
        weight_sum = groups.harmonic_weight_sum(block, tables.harmonic_sum)
        out[4] = (n_failures * (trapezoid_of_total + 0.5 / total) - weight_sum) / total
    return out


def _select_layout(
    block: ResampleBlock, samples: SortedSamples, moments: CountMoments
) -> SlotLayout:
    """Return a partition of the samples for which the series is accurate in every resample."""
    min_accepted = moments.min_accepted_single_centers(samples.max_risk)
    n_single = _round_up(min_accepted)
    while n_single < samples.n_samples:
        if block.min_drawn(samples.order[: int(n_single)]) >= min_accepted:
            break
        n_single = _round_up(n_single)
    min_accepted_pairs = moments.min_accepted_shared_center(samples.max_risk)
    pairs_from = _round_up(min_accepted_pairs * n_single / min_accepted)
    return samples.layout(min(int(n_single), samples.n_samples), pairs_from)


def _round_up(position: float) -> float:
    """Round a number up to a power of 2^(1/4), so that few different layouts are computed."""
    return float(2.0 ** (np.floor(4.0 * np.log2(position) + 1.0) / 4.0))


def _accepted_by_slot(block: ResampleBlock, layout: SlotLayout) -> tuple[Array, Array]:
    """Return the number of accepted samples after each slot, and each slot's sum of k^3 - k."""
    n_resamples = block.counts.shape[1]
    counts_and_excess = block.counts_and_excess
    max_slot_sum = layout.max_slot_size * block.max_count
    if counts_and_excess.dtype == np.int16 and max_slot_sum > np.iinfo(np.int16).max:
        # The counts of a large tie group may overflow in 16 bits.
        if "wide" not in block.buffers:
            block.buffers["wide"] = counts_and_excess.astype(np.int32)
        counts_and_excess = block.buffers["wide"]
    slot_sums = layout.slot_sum @ counts_and_excess
    n_accepted = block.cast("n_accepted", slot_sums[:, :n_resamples], np.int32)
    return np.cumsum(n_accepted, axis=0, out=n_accepted), slot_sums[:, n_resamples:]


class _ExactGroups(NamedTuple):
    """Numbers of samples and failures of each exact tie group by resample, shape (n_groups, b)."""

    #: Accepted samples before and after the group, as indices into the tables.
    index_before: Array
    index_after: Array
    #: The same numbers as floating-point numbers.
    n_before: Array
    n_after: Array
    #: Samples and failures of the group.
    n_samples: Array
    n_failures: Array
    #: Accepted failures after the group.
    failures_after: Array

    @classmethod
    def from_slots(
        cls, block: ResampleBlock, layout: SlotLayout, n_accepted: Array
    ) -> "_ExactGroups":
        """Compute the numbers of each group from the accepted samples after each slot."""
        after = block.take("after", n_accepted, layout.exact_slots)
        previous_slots = np.maximum(layout.exact_slots - 1, 0)
        before = block.take("before", n_accepted, previous_slots)
        before[layout.exact_slots == 0] = 0
        failures = (layout.failure_sum @ block.counts).astype(np.int32)
        failures_buffer = block.buffer("cumulative failures", failures.shape, np.int32)
        cumulative_failures = np.cumsum(failures, axis=0, out=failures_buffer)
        n_before = block.cast("n_before", before, np.float64)
        n_after = block.cast("n_after", after, np.float64)
        size_buffer = block.buffer("group sizes", n_before.shape, np.float64)
        return cls(
            index_before=block.cast("index_before", before, np.int64),
            index_after=block.cast("index_after", after, np.int64),
            n_before=n_before,
            n_after=n_after,
            n_samples=np.subtract(n_after, n_before, out=size_buffer),
            n_failures=block.cast("n_failures", failures, np.float64),
            failures_after=block.cast("failures_after", cumulative_failures, np.float64),
        )

    def trapezoid_area(self, block: ResampleBlock, trapezoid: FloatArray) -> FloatArray:
        """Return the area at the tie groups and between them, except for the last term."""
        # Successes from e to b accepted samples with F failures have the area F (trapezoid[b] -
        # trapezoid[e]). The caller adds the last term, in which b is the number of samples.
        shape = self.n_before.shape
        area = block.buffer("area", shape, np.float64)
        work = block.buffer("area work", shape, np.float64)
        failures_before = block.buffer("failures_before", shape, np.float64)
        np.subtract(self.failures_after, self.n_failures, out=failures_before)
        # The area of a group is its width times the mean of the risks before and after the group.
        np.multiply(failures_before, self.n_after, out=area)
        area += np.multiply(self.failures_after, self.n_before, out=work)
        area *= self.n_samples
        np.multiply(self.n_before, self.n_after, out=work)
        work *= 2.0
        n_leading = self._n_groups_until_accepted()
        np.maximum(work[:n_leading], 1.0, out=work[:n_leading])
        area /= work
        before = block.take("table before", trapezoid, self.index_before)
        area += np.multiply(failures_before, before, out=work)
        after = block.take("table after", trapezoid, self.index_after)
        area -= np.multiply(self.failures_after, after, out=work)
        # The risk is constant from coverage 0 to the first point of the curve.
        is_first_point = self.index_before[:n_leading] == 0
        area[:n_leading] += np.where(is_first_point, self.failures_after[:n_leading], 0.0)
        return np.asarray(area.sum(axis=0))

    def _n_groups_until_accepted(self) -> int:
        """Return a number of groups after which every resample has accepted a sample."""
        n_groups = 8
        while n_groups < len(self.index_before) and not self.index_before[n_groups].all():
            n_groups *= 2
        return n_groups

    def harmonic_weight_sum(self, block: ResampleBlock, harmonic_sum: FloatArray) -> FloatArray:
        """Sum the harmonic numbers at the ranks of the failures, averaged over ties."""
        weights = block.take("table after", harmonic_sum, self.index_after)
        weights -= block.take("table before", harmonic_sum, self.index_before)
        weights /= np.maximum(self.n_samples, 1.0)
        return np.asarray(np.einsum("ij,ij->j", self.n_failures, weights))


def _cell_excess_area(
    block: ResampleBlock,
    layout: SlotLayout,
    n_accepted: Array,
    excess: Array,
    failures_after_group: Array,
) -> FloatArray:
    """Sum the series terms of the successes, failures x (k^3 - k) / (6 center^3)."""
    n_groups, n_resamples = failures_after_group.shape
    failures_before_group = block.buffer(
        "failures before group", (n_groups + 1, n_resamples), np.float32
    )
    failures_before_group[0] = 0
    failures_before_group[1:] = failures_after_group
    # The risk before the first failure is 0.
    first_cell = np.searchsorted(layout.n_exact_before_cell, 1)
    cell_slots = layout.cell_slots[first_cell:]
    n_groups_before = layout.n_exact_before_cell[first_cell:]
    twice_center = block.take("cell start", n_accepted, cell_slots - 1)
    twice_center += block.take("cell end", n_accepted, cell_slots)
    inverse_center = block.cast("inverse center", twice_center, np.float32)
    np.divide(np.float32(2), inverse_center, out=inverse_center)
    area = block.cast("cell area", excess[cell_slots], np.float32)
    for _ in range(3):
        area *= inverse_center
    area *= block.take("accepted failures", failures_before_group, n_groups_before)
    return np.asarray(area.sum(axis=0), np.float64) / 6.0


def areas_of_any_loss(
    block: ResampleBlock,
    samples: SortedSamples,
    tables: HarmonicTables,
    requested: RequestedAreas,
) -> FloatArray:
    """Return total weight, risk, AUGRC, AURC and plug-in AURC of any losses, shape (5, b)."""
    n_resamples = block.counts.shape[1]
    step = max(1, _MAX_ELEMENTS // samples.n_samples)
    areas = [
        _areas_of_resamples(block.counts[:, start : start + step], samples, tables, requested)
        for start in range(0, n_resamples, step)
    ]
    return np.concatenate(areas, axis=1)


def _areas_of_resamples(
    counts: Array, samples: SortedSamples, tables: HarmonicTables, requested: RequestedAreas
) -> FloatArray:
    """Compute the areas of resamples of any losses and weights, shape (5, b)."""
    # Resamples are rows, because NumPy is fast only for sums along the last axis.
    weight = counts.T[:, samples.order].astype(np.float64)
    if samples.weight is not None:
        weight *= samples.weight
    loss = weight * samples.loss
    has_ties = samples.group_starts.size < samples.n_samples
    if has_ties:
        weight = np.add.reduceat(weight, samples.group_starts, axis=1)
        loss = np.add.reduceat(loss, samples.group_starts, axis=1)
    weight_accepted = np.cumsum(weight, axis=1)
    loss_accepted = np.cumsum(loss, axis=1)
    total = weight_accepted[:, -1]
    total_loss = loss_accepted[:, -1]
    out = np.full((5, len(weight)), np.nan)
    out[0] = total
    is_nonempty = total > 0
    np.divide(total_loss, total, out=out[1], where=is_nonempty)
    twice_rank_sum = np.einsum("ij,ij->i", loss, 2.0 * weight_accepted - weight)
    out[2, is_nonempty] = augrc_from_rank_sum(
        total[is_nonempty], total_loss[is_nonempty], twice_rank_sum[is_nonempty]
    )
    if requested.aurc:
        out[3] = _trapezoid_aurc(weight, weight_accepted, loss_accepted)
    if requested.plugin:
        out[4] = _plugin_aurc(weight, loss, weight_accepted, tables)
    return out


def _trapezoid_aurc(
    weight: FloatArray, weight_accepted: FloatArray, loss_accepted: FloatArray
) -> FloatArray:
    """Return the trapezoid AURC of each row, or NaN for a total weight of 0."""
    risk = np.zeros_like(loss_accepted)
    np.divide(loss_accepted, weight_accepted, out=risk, where=weight_accepted > 0)
    twice_area = np.einsum("ij,ij->i", weight, risk)
    twice_area += np.einsum("ij,ij->i", weight[:, 1:], risk[:, :-1])
    # The risk is constant from coverage 0 to the first point with a positive weight.
    is_first_point = weight_accepted == weight
    twice_area += np.einsum("ij,ij->i", weight * is_first_point, risk)
    total = weight_accepted[:, -1]
    out = np.full(len(weight), np.nan)
    np.divide(twice_area, 2.0 * total, out=out, where=total > 0)
    return out


def _plugin_aurc(
    count: FloatArray, loss: FloatArray, n_accepted: FloatArray, tables: HarmonicTables
) -> FloatArray:
    """Return the plug-in AURC of unweighted samples for each row."""
    after = n_accepted.astype(np.int64)
    before = (n_accepted - count).astype(np.int64)
    harmonic_of_group = tables.harmonic_sum[after] - tables.harmonic_sum[before]
    total = n_accepted[:, -1]
    harmonic_of_total = tables.trapezoid[after[:, -1]] + 0.5 / total
    weight_sum = np.einsum("ij,ij->i", loss / np.maximum(count, 1.0), harmonic_of_group)
    return np.asarray((loss.sum(axis=1) * harmonic_of_total - weight_sum) / total)
