"""Compiled kernels that compute the areas of 64 resamples in one pass over the samples.

The kernels compute the same numbers as `numpy_kernels`. This module imports numba, so
`abstain.inference.resampled_areas.select_kernels` imports this module only when it is needed.
"""

from typing import Any, NamedTuple

import numpy as np

from abstain._foundation.compiled import njit
from abstain._foundation.tie_groups import augrc_from_rank_sum
from abstain.inference.resampling import numpy_kernels
from abstain.inference.resampling.sorted_samples import (
    CountMoments,
    HarmonicTables,
    RequestedAreas,
    SortedSamples,
)
from abstain.typing import Array, FloatArray, IntArray

_augrc_from_rank_sum = njit()(augrc_from_rank_sum)

#: Number of resamples that are computed side by side.
_LANES = 64

#: Compiler options for vector registers: sums in any order, and divisions without a check for zero.
_FAST: dict[str, Any] = {
    "fastmath": {"reassoc", "contract", "nsz"},
    "error_model": "numpy",
}

# Two flat arrays contain the cumulative sums: `double_sums` in float64 and `single_sums` in
# float32. Each sum has 64 entries, one for each resample, which start at one of the offsets below.
# With only two arrays, the compiler can prove that the arrays do not overlap, so it uses vector
# registers. Single precision is sufficient for integers and for small corrections.

# Offsets in `double_sums`: area, twice the rank sum of the failures, plug-in sum, and the entries
# of the trapezoid table before and after the current tie group.
_AREA, _TWICE_RANK_SUM, _PLUGIN_SUM, _TABLE_BEFORE, _TABLE_AFTER = (_LANES * i for i in range(5))
# Offsets in `single_sums`: accepted samples and failures, area of the cells above unit trapezoids
# (times 6), and samples and failures of the current tie group.
_N_ACCEPTED, _FAILURES_ACCEPTED, _CELL_EXCESS, _GROUP_SIZE, _GROUP_FAILURES = (
    _LANES * i for i in range(5)
)

#: Number of successes between two checks of the accuracy of the series.
_CHECK_INTERVAL = 16


class PaddedCounts(NamedTuple):
    """Counts of each sample in each resample, padded to shape (n + 1, 64).

    The last row contains zeros. The columns after the first `n_resamples` columns are copies of the
    last one.
    """

    counts: Array
    n_resamples: int


def tally(sampled_units: Array, counts: Array, first_column: int) -> Array:
    """Write into `counts` how often each resample contains each unit. See `numpy_kernels.tally`."""
    rows = np.zeros((len(sampled_units), len(counts)), counts.dtype)
    if not _tally(sampled_units, rows, np.iinfo(counts.dtype).max):
        return numpy_kernels.tally(sampled_units, counts, first_column)
    _copy_transposed(rows, counts, first_column)
    return counts


@njit()
def _tally(sampled_units: Array, rows: Array, max_count: int) -> bool:
    """Count the units of each resample in one row, and return whether the counts fit the type."""
    fits = True
    for j in range(sampled_units.shape[0]):
        for i in range(sampled_units.shape[1]):
            unit = sampled_units[j, i]
            fits &= rows[j, unit] < max_count
            rows[j, unit] += 1
    return fits


@njit()
def _copy_transposed(rows: Array, counts: Array, first_column: int) -> None:
    """Copy the transpose of `rows` into the columns of `counts` from `first_column` on."""
    # The loop processes 64 units at a time, which are a cache line of each row.
    for start in range(0, counts.shape[0], 64):
        stop = min(start + 64, counts.shape[0])
        for j in range(rows.shape[0]):
            for i in range(start, stop):
                counts[i, first_column + j] = rows[j, i]


def prepare(counts: Array) -> PaddedCounts:
    """Pad the counts to 64 columns with copies of the last column, and add a row of zeros."""
    n_samples, n_resamples = counts.shape
    padded = np.zeros((n_samples + 1, _LANES), counts.dtype)
    padded[:-1, :n_resamples] = counts
    padded[:-1, n_resamples:] = counts[:, -1:]
    return PaddedCounts(padded, n_resamples)


def areas_of_binary_loss(
    block: PaddedCounts,
    samples: SortedSamples,
    tables: HarmonicTables,
    requested: RequestedAreas,
    moments: CountMoments,
) -> FloatArray:
    """Return total weight, risk, AUGRC, AURC and plug-in AURC of 0/1 losses, shape (5, b)."""
    out = np.full((5, _LANES), np.nan)
    min_accepted = np.float32(moments.min_accepted_four_around_center(samples.max_risk))
    _areas_of_binary_loss(
        (block.counts, samples.order),
        (*samples.exact_bounds, samples.is_failure),
        (tables.trapezoid, tables.harmonic_sum),
        (requested.aurc, requested.plugin, min_accepted),
        out,
    )
    return out[:, : block.n_resamples]


@njit(**_FAST)
def _areas_of_binary_loss(
    counts_and_order: tuple[Array, IntArray],
    exact_groups: tuple[IntArray, IntArray, Array],
    tables: tuple[FloatArray, FloatArray],
    options: tuple[bool, bool, float],
    out: FloatArray,
) -> None:
    """Compute the areas of 64 resamples of unweighted 0/1 losses."""
    exact_starts, exact_ends, is_failure = exact_groups
    n_groups, n_samples = exact_starts.size, counts_and_order[1].size
    trapezoid, harmonic_sum = tables
    needs_aurc, needs_plugin, min_accepted = options
    double_sums = np.zeros(5 * _LANES)
    single_sums = np.zeros(5 * _LANES, np.float32)
    position, series_is_accurate = 0, False
    for group in range(n_groups + 1):
        # The samples from `position` to `run_end` are successes.
        run_end = exact_starts[group] if group < n_groups else n_samples
        if not needs_aurc or group == 0:
            # The risk before the first failure is 0, so the area is 0.
            _accept_successes(counts_and_order, (position, run_end), single_sums)
        else:
            if not series_is_accurate:
                position, series_is_accurate = _add_single_successes(
                    counts_and_order,
                    (position, run_end),
                    min_accepted,
                    (double_sums, single_sums),
                    trapezoid,
                )
            _add_successes(counts_and_order, (position, run_end), single_sums)
        if group < n_groups:
            position = exact_ends[group]
            bounds = (exact_starts[group], position)
            _load_exact_group(counts_and_order, bounds, is_failure, single_sums)
            _add_exact_group(double_sums, single_sums, trapezoid, needs_aurc=needs_aurc)
            if needs_plugin:
                _add_exact_group_to_plugin(double_sums, single_sums, harmonic_sum)
    _write_areas_of_binary_loss(double_sums, single_sums, trapezoid, options, out)


@njit(**_FAST)
def _accept_successes(
    counts_and_order: tuple[Array, IntArray], span: tuple[int, int], single_sums: Array
) -> None:
    """Add the counts of consecutive successes to the accepted samples, four at a time for speed."""
    counts, order = counts_and_order
    start, stop = span
    zero_row = counts.shape[0] - 1
    for i in range(start, stop, 4):
        row_0 = counts[order[i]]
        row_1 = counts[order[i + 1] if i + 1 < stop else zero_row]
        row_2 = counts[order[i + 2] if i + 2 < stop else zero_row]
        row_3 = counts[order[i + 3] if i + 3 < stop else zero_row]
        for j in range(_LANES):
            sum_of_two = np.float32(row_0[j]) + np.float32(row_1[j])
            single_sums[_N_ACCEPTED + j] += sum_of_two + np.float32(row_2[j]) + np.float32(row_3[j])


@njit(**_FAST)
def _add_single_successes(
    counts_and_order: tuple[Array, IntArray],
    span: tuple[int, int],
    min_accepted: float,
    sums: tuple[FloatArray, Array],
    trapezoid: FloatArray,
) -> tuple[int, bool]:
    """Add successes one by one until every resample has accepted `min_accepted` samples.

    Returns the position after the last added sample, and whether the series is accurate from this
    position on.
    """
    counts, order = counts_and_order
    double_sums, single_sums = sums
    position, stop = span
    while position < stop and not _all_accepted(single_sums, min_accepted):
        next_position = min(position + _CHECK_INTERVAL, stop)
        for i in range(position, next_position):
            row = counts[order[i]]
            for j in range(_LANES):
                single_sums[_GROUP_SIZE + j] = np.float32(row[j])
                single_sums[_GROUP_FAILURES + j] = np.float32(0)
            _add_exact_group(double_sums, single_sums, trapezoid, needs_aurc=True)
        position = next_position
    return position, position < stop


@njit(**_FAST)
def _all_accepted(single_sums: Array, min_accepted: float) -> bool:
    """Return True if every resample has accepted at least `min_accepted` samples."""
    n_accepted = single_sums[_N_ACCEPTED]
    for j in range(_LANES):
        n_accepted = min(n_accepted, single_sums[_N_ACCEPTED + j])
    return bool(n_accepted >= min_accepted)


@njit(**_FAST)
def _add_successes(
    counts_and_order: tuple[Array, IntArray], span: tuple[int, int], single_sums: Array
) -> None:
    """Add the series terms of consecutive successes to the area, four samples at a time."""
    # A success that is drawn k times, with center m, adds failures x (k^3 - k) / m^3. The terms of
    # four samples are expanded around their common center to first order.
    counts, order = counts_and_order
    start, stop = span
    zero_row = counts.shape[0] - 1
    one, half, three_halves = np.float32(1), np.float32(0.5), np.float32(1.5)
    for i in range(start, stop, 4):
        row_0 = counts[order[i]]
        row_1 = counts[order[i + 1] if i + 1 < stop else zero_row]
        row_2 = counts[order[i + 2] if i + 2 < stop else zero_row]
        row_3 = counts[order[i + 3] if i + 3 < stop else zero_row]
        for j in range(_LANES):
            k_0, k_1 = np.float32(row_0[j]), np.float32(row_1[j])
            k_2, k_3 = np.float32(row_2[j]), np.float32(row_3[j])
            sum_of_2 = k_0 + k_1
            sum_of_3 = sum_of_2 + k_2
            sum_of_4 = sum_of_3 + k_3
            excess_0, excess_1 = k_0 * k_0 * k_0 - k_0, k_1 * k_1 * k_1 - k_1
            excess_2, excess_3 = k_2 * k_2 * k_2 - k_2, k_3 * k_3 * k_3 - k_3
            # The moment sums each excess times twice the offset of its center from the common
            # center.
            twice_moment = (
                excess_0 * (k_0 - sum_of_4)
                + excess_1 * (k_0 + sum_of_2 - sum_of_4)
                + excess_2 * (sum_of_2 + sum_of_3 - sum_of_4)
                + excess_3 * sum_of_3
            )
            inverse_center = one / (single_sums[_N_ACCEPTED + j] + half * sum_of_4)
            single_sums[_N_ACCEPTED + j] += sum_of_4
            single_sums[_CELL_EXCESS + j] += (
                single_sums[_FAILURES_ACCEPTED + j]
                * (inverse_center * inverse_center * inverse_center)
                * (
                    excess_0
                    + excess_1
                    + excess_2
                    + excess_3
                    - three_halves * inverse_center * twice_moment
                )
            )


@njit(**_FAST)
def _load_exact_group(
    counts_and_order: tuple[Array, IntArray],
    span: tuple[int, int],
    is_failure: Array,
    single_sums: Array,
) -> None:
    """Store the numbers of samples and failures of a tie group in each resample."""
    counts, order = counts_and_order
    start, stop = span
    row, failure = counts[order[start]], np.float32(is_failure[start])
    for j in range(_LANES):
        count = np.float32(row[j])
        single_sums[_GROUP_SIZE + j] = count
        single_sums[_GROUP_FAILURES + j] = count * failure
    for i in range(start + 1, stop):
        row, failure = counts[order[i]], np.float32(is_failure[i])
        for j in range(_LANES):
            count = np.float32(row[j])
            single_sums[_GROUP_SIZE + j] += count
            single_sums[_GROUP_FAILURES + j] += count * failure


@njit(**_FAST)
def _add_exact_group(
    double_sums: FloatArray, single_sums: Array, trapezoid: FloatArray, needs_aurc: bool
) -> None:
    """Add the area at a tie group, and the terms of the group in the neighboring areas."""
    # Successes from e to b accepted samples with F failures have the area
    # F (trapezoid[b] - trapezoid[e]).
    if needs_aurc:
        for j in range(_LANES):
            n_before = single_sums[_N_ACCEPTED + j]
            n_after = n_before + single_sums[_GROUP_SIZE + j]
            double_sums[_TABLE_BEFORE + j] = trapezoid[int(n_before)]
            double_sums[_TABLE_AFTER + j] = trapezoid[int(n_after)]
    for j in range(_LANES):
        n_before = np.float64(single_sums[_N_ACCEPTED + j])
        size = np.float64(single_sums[_GROUP_SIZE + j])
        failures = np.float64(single_sums[_GROUP_FAILURES + j])
        failures_before = np.float64(single_sums[_FAILURES_ACCEPTED + j])
        n_after = n_before + size
        failures_after = failures_before + failures
        single_sums[_N_ACCEPTED + j] += single_sums[_GROUP_SIZE + j]
        single_sums[_FAILURES_ACCEPTED + j] += single_sums[_GROUP_FAILURES + j]
        double_sums[_TWICE_RANK_SUM + j] += failures * (n_before + n_after)
        # The area is the size times the mean of the risks before and after the group.
        area = size * (failures_before * n_after + failures_after * n_before)
        area /= max(2.0 * n_before * n_after, 1.0)
        # The risk is constant from coverage 0 to the first point of the curve.
        area += failures_after if n_before == 0.0 else 0.0
        double_sums[_AREA + j] += (
            area
            + failures_before * double_sums[_TABLE_BEFORE + j]
            - failures_after * double_sums[_TABLE_AFTER + j]
        )


@njit(**_FAST)
def _add_exact_group_to_plugin(
    double_sums: FloatArray, single_sums: Array, harmonic_sum: FloatArray
) -> None:
    """Add the harmonic numbers at the ranks of the failures of a tie group, averaged over ties."""
    for j in range(_LANES):
        size = single_sums[_GROUP_SIZE + j]
        if size > 0:
            n_after = single_sums[_N_ACCEPTED + j]
            harmonic_of_group = harmonic_sum[int(n_after)] - harmonic_sum[int(n_after - size)]
            failure_share = np.float64(single_sums[_GROUP_FAILURES + j]) / np.float64(size)
            double_sums[_PLUGIN_SUM + j] += failure_share * harmonic_of_group


@njit(**_FAST)
def _write_areas_of_binary_loss(
    double_sums: FloatArray,
    single_sums: Array,
    trapezoid: FloatArray,
    options: tuple[bool, bool, float],
    out: FloatArray,
) -> None:
    """Compute the areas of each resample from the sums over all samples, and write to `out`."""
    needs_aurc, needs_plugin, _ = options
    for j in range(_LANES):
        total = np.float64(single_sums[_N_ACCEPTED + j])
        n_failures = np.float64(single_sums[_FAILURES_ACCEPTED + j])
        trapezoid_of_total = trapezoid[int(single_sums[_N_ACCEPTED + j])]
        out[0, j] = total
        out[1, j] = n_failures / total
        out[2, j] = _augrc_from_rank_sum(total, n_failures, double_sums[_TWICE_RANK_SUM + j])
        if needs_aurc:
            cell_excess = np.float64(single_sums[_CELL_EXCESS + j]) / 6.0
            area = double_sums[_AREA + j] + n_failures * trapezoid_of_total
            out[3, j] = (area + cell_excess) / total
        if needs_plugin:
            harmonic_of_total = trapezoid_of_total + 0.5 / total
            weighted = n_failures * harmonic_of_total - double_sums[_PLUGIN_SUM + j]
            out[4, j] = weighted / total


# ------------------------------------------------------------------- any losses and weights
# Offsets in the sums for any losses and weights: accepted weight and loss, the risk there, twice
# the area, twice the rank sum of the losses, plug-in sum, and weight and loss of the tie group.
(
    _WEIGHT_ACCEPTED,
    _LOSS_ACCEPTED,
    _RISK,
    _TWICE_AREA,
    _TWICE_LOSS_RANK_SUM,
    _PLUGIN_LOSS_SUM,
    _GROUP_WEIGHT,
    _GROUP_LOSS,
) = (_LANES * i for i in range(8))


def areas_of_any_loss(
    block: PaddedCounts,
    samples: SortedSamples,
    tables: HarmonicTables,
    requested: RequestedAreas,
) -> FloatArray:
    """Return total weight, risk, AUGRC, AURC and plug-in AURC of any losses, shape (5, b)."""
    weight = np.ones(samples.n_samples) if samples.weight is None else samples.weight
    out = np.full((5, _LANES), np.nan)
    _areas_of_any_loss(
        (block.counts, samples.order),
        (samples.group_starts, samples.group_ends),
        (weight, weight * samples.loss),
        (tables.trapezoid, tables.harmonic_sum, requested.plugin),
        out,
    )
    return out[:, : block.n_resamples]


@njit(**_FAST)
def _areas_of_any_loss(
    counts_and_order: tuple[Array, IntArray],
    group_bounds: tuple[IntArray, IntArray],
    weight_and_loss: tuple[FloatArray, FloatArray],
    plugin_options: tuple[FloatArray, FloatArray, bool],
    out: FloatArray,
) -> None:
    """Compute the areas of 64 resamples of any losses and weights."""
    counts, order = counts_and_order
    group_starts, group_ends = group_bounds
    weight, loss = weight_and_loss
    trapezoid, harmonic_sum, needs_plugin = plugin_options
    sums = np.zeros(8 * _LANES)
    for group in range(group_starts.size):
        for j in range(_LANES):
            sums[_GROUP_WEIGHT + j] = 0.0
            sums[_GROUP_LOSS + j] = 0.0
        for i in range(group_starts[group], group_ends[group]):
            row, sample_weight, sample_loss = counts[order[i]], weight[i], loss[i]
            for j in range(_LANES):
                sums[_GROUP_WEIGHT + j] += sample_weight * np.float64(row[j])
                sums[_GROUP_LOSS + j] += sample_loss * np.float64(row[j])
        if needs_plugin:
            _add_group_to_plugin(sums, harmonic_sum)
        _add_group(sums)
    _write_areas_of_any_loss(sums, trapezoid, needs_plugin, out)


@njit(**_FAST)
def _add_group(sums: FloatArray) -> None:
    """Add the trapezoid between the points of the previous and the current tie group."""
    for j in range(_LANES):
        weight_before, group_weight = sums[_WEIGHT_ACCEPTED + j], sums[_GROUP_WEIGHT + j]
        weight_after = weight_before + group_weight
        loss_after = sums[_LOSS_ACCEPTED + j] + sums[_GROUP_LOSS + j]
        risk = loss_after / weight_after if weight_after > 0.0 else 0.0
        # The risk is constant from coverage 0 to the first point of the curve.
        previous_risk = sums[_RISK + j] if weight_before > 0.0 else risk
        sums[_TWICE_AREA + j] += group_weight * (risk + previous_risk)
        sums[_TWICE_LOSS_RANK_SUM + j] += sums[_GROUP_LOSS + j] * (weight_before + weight_after)
        sums[_WEIGHT_ACCEPTED + j] = weight_after
        sums[_LOSS_ACCEPTED + j] = loss_after
        sums[_RISK + j] = risk


@njit(**_FAST)
def _add_group_to_plugin(sums: FloatArray, harmonic_sum: FloatArray) -> None:
    """Add the harmonic numbers at the ranks of an unweighted tie group, averaged over ties."""
    for j in range(_LANES):
        size = sums[_GROUP_WEIGHT + j]
        if size > 0.0:
            n_before = int(sums[_WEIGHT_ACCEPTED + j])
            harmonic_of_group = harmonic_sum[n_before + int(size)] - harmonic_sum[n_before]
            sums[_PLUGIN_LOSS_SUM + j] += sums[_GROUP_LOSS + j] / size * harmonic_of_group


@njit(**_FAST)
def _write_areas_of_any_loss(
    sums: FloatArray, trapezoid: FloatArray, needs_plugin: bool, out: FloatArray
) -> None:
    """Compute the areas of each resample from the sums over all groups, and write to `out`."""
    for j in range(_LANES):
        total, total_loss = sums[_WEIGHT_ACCEPTED + j], sums[_LOSS_ACCEPTED + j]
        out[0, j] = total
        if total > 0.0:
            out[1, j] = total_loss / total
            out[2, j] = _augrc_from_rank_sum(total, total_loss, sums[_TWICE_LOSS_RANK_SUM + j])
            out[3, j] = sums[_TWICE_AREA + j] / (2.0 * total)
        if total > 0.0 and needs_plugin:
            harmonic_of_total = trapezoid[int(total)] + 0.5 / total
            out[4, j] = (total_loss * harmonic_of_total - sums[_PLUGIN_LOSS_SUM + j]) / total
