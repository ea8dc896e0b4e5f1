"""The numba kernels of resampling: 64 resamples side by side, one pass over the samples of a score.

They compute what `plain` does. This module imports numba, so it is itself imported on the first use
only; see `abstain.inference.replicates.kernels`. The last part is for any losses and weights, with
a vertex at every confidence.

The running sums of a pass lie in two flat arrays, `s` in double and `q` in single precision, 64
numbers for each. Flat, so that the compiler can prove that they do not overlap and fill vector
registers; single precision where numbers are whole or only a small correction.
"""

from typing import Any, NamedTuple

import numpy as np

from abstain._foundation.augrc import augrc_from_rank_sum
from abstain._foundation.compiled import njit
from abstain.inference.resampling import plain
from abstain.inference.resampling.order import Ordered
from abstain.inference.resampling.series import CountSeries, Rest, WantedAreas
from abstain.typing import Array, FloatArray, IntArray

_augrc_from_rank_sum = njit()(augrc_from_rank_sum)

#: Resamples that are worked on side by side.
_LANES = 64

#: Vector registers need sums in any order and divisions that are not checked for zero.
_FAST: dict[str, Any] = {
    "fastmath": {"reassoc", "contract", "nsz"},
    "error_model": "numpy",
}

# Places in `s`: area, twice the rank sum of the failures, plug-in sum, and the table entries before
# and after the present event.
_AREA, _TWICE, _PLUGIN, _FROM, _TO = (64 * i for i in range(5))
# Places in `q`: samples and failures accepted, what the runs lie above unit trapezoids, and samples
# and failures of the present event.
_C, _A, _ABOVE, _K, _F = (64 * i for i in range(5))

#: Samples between two looks at how much has been accepted.
_LOOK = 16


class PaddedCounts(NamedTuple):
    """Counts with a row of zeros at the end, in 64 columns, and how many of them are asked for."""

    counts: Array
    width: int


def tally(drawn: Array, counts: Array, first: int) -> Array:
    """Count the units drawn, (r, k), into the columns from `first` on; widen if needed."""
    columns = np.zeros((len(drawn), len(counts)), counts.dtype)
    if not _tally(drawn, columns, np.iinfo(counts.dtype).max):
        return plain.tally(drawn, counts, first)
    _transpose(columns, counts, first)
    return counts


@njit()
def _tally(drawn: Array, columns: Array, most: int) -> bool:
    fits = True
    for j in range(drawn.shape[0]):
        for i in range(drawn.shape[1]):
            unit = drawn[j, i]
            fits &= columns[j, unit] < most
            columns[j, unit] += 1
    return fits


@njit()
def _transpose(columns: Array, counts: Array, first: int) -> None:
    # A cache line of every column at a time.
    for start in range(0, counts.shape[0], 64):
        stop = min(start + 64, counts.shape[0])
        for j in range(columns.shape[0]):
            for i in range(start, stop):
                counts[i, first + j] = columns[j, i]


def prepare(counts: Array) -> PaddedCounts:
    """Fill up to 64 columns, with copies of the last, and add a row of zeros."""
    n, width = counts.shape
    full = np.zeros((n + 1, _LANES), counts.dtype)
    full[:-1, :width] = counts
    full[:-1, width:] = counts[:, -1:]
    return PaddedCounts(full, width)


def failures_only(
    block: PaddedCounts, one: Ordered, tables: CountSeries, wanted: WantedAreas, rest: Rest
) -> FloatArray:
    """Return total, risk, AUGRC, AURC and plug-in AURC of 0/1 losses, shape (5, b)."""
    out = np.full((5, _LANES), np.nan)
    _failures_only(
        (block.counts, one.order),
        (*one.bounds, one.failed),
        (tables.trapezoid, tables.harmonic),
        (wanted.aurc, wanted.plugin, np.float32(rest.with_middles(one.slope))),
        out,
    )
    return out[:, : block.width]


@njit(**_FAST)
def _failures_only(
    rows: tuple[Array, IntArray],
    events: tuple[IntArray, IntArray, Array],
    tables: tuple[FloatArray, FloatArray],
    wanted: tuple[bool, bool, float],
    out: FloatArray,
) -> None:
    begin, end, failed = events
    aurc, plugin, exact_until = wanted
    s, q = np.zeros(5 * _LANES), np.zeros(5 * _LANES, np.float32)
    place, settled = 0, False
    for e in range(begin.size + 1):
        stop = begin[e] if e < begin.size else rows[1].size
        if not aurc or e == 0:
            # Before the first failure there is no risk, hence no area.
            _skip(rows, (place, stop), q)
        else:
            if not settled:
                place, settled = _early(rows, (place, stop), exact_until, (s, q), tables[0])
            _run(rows, (place, stop), q)
        if e < begin.size:
            place = end[e]
            _collect(rows, (begin[e], place), failed, q)
            _event(s, q, tables[0], aurc=aurc)
            if plugin:
                _plugin(s, q, tables[1])
    _finish(s, q, tables[0], wanted, out)


@njit(**_FAST)
def _skip(rows: tuple[Array, IntArray], span: tuple[int, int], q: Array) -> None:
    """Accept samples that change nothing else, four at a time: the sums are fetched once."""
    counts, order = rows
    zero, stop = counts.shape[0] - 1, span[1]
    for i in range(span[0], stop, 4):
        r0, r1 = counts[order[i]], counts[order[i + 1] if i + 1 < stop else zero]
        r2 = counts[order[i + 2] if i + 2 < stop else zero]
        r3 = counts[order[i + 3] if i + 3 < stop else zero]
        for j in range(_LANES):
            two = np.float32(r0[j]) + np.float32(r1[j])
            q[_C + j] += two + np.float32(r2[j]) + np.float32(r3[j])


@njit(**_FAST)
def _early(
    rows: tuple[Array, IntArray],
    span: tuple[int, int],
    exact_until: float,
    sums: tuple[FloatArray, Array],
    table: FloatArray,
) -> tuple[int, bool]:
    """Evaluate successes one by one until every resample has accepted enough for the series."""
    s, q = sums
    place, stop = span
    while place < stop and not _settled(q, exact_until):
        until = min(place + _LOOK, stop)
        for i in range(place, until):
            row = rows[0][rows[1][i]]
            for j in range(_LANES):
                q[_K + j] = np.float32(row[j])
                q[_F + j] = np.float32(0)
            _event(s, q, table, aurc=True)
        place = until
    return place, place < stop


@njit(**_FAST)
def _settled(q: Array, exact_until: float) -> bool:
    """Tell whether every resample has accepted enough for the series."""
    least = q[_C]
    for j in range(_LANES):
        least = min(least, q[_C + j])
    return bool(least >= exact_until)


@njit(**_FAST)
def _run(rows: tuple[Array, IntArray], span: tuple[int, int], q: Array) -> None:
    """Pass a run of successes, four at a time: sum up what they lie above unit trapezoids."""
    counts, order = rows
    place, stop = span
    zero = counts.shape[0] - 1
    one, half, bend = np.float32(1), np.float32(0.5), np.float32(1.5)
    for i in range(place, stop, 4):
        r0, r1 = counts[order[i]], counts[order[i + 1] if i + 1 < stop else zero]
        r2 = counts[order[i + 2] if i + 2 < stop else zero]
        r3 = counts[order[i + 3] if i + 3 < stop else zero]
        for j in range(_LANES):
            k0, k1 = np.float32(r0[j]), np.float32(r1[j])
            k2, k3 = np.float32(r2[j]), np.float32(r3[j])
            c1 = k0 + k1
            c2 = c1 + k2
            c3 = c2 + k3
            t0, t1 = k0 * k0 * k0 - k0, k1 * k1 * k1 - k1
            t2, t3 = k2 * k2 * k2 - k2, k3 * k3 * k3 - k3
            # The middles lie around that of all four: how far, weighted, to first order.
            late = t0 * (k0 - c3) + t1 * (k0 + c1 - c3) + t2 * (c1 + c2 - c3) + t3 * c2
            x = one / (q[_C + j] + half * c3)
            q[_C + j] += c3
            q[_ABOVE + j] += q[_A + j] * (x * x * x) * (t0 + t1 + t2 + t3 - bend * x * late)


@njit(**_FAST)
def _collect(rows: tuple[Array, IntArray], span: tuple[int, int], failed: Array, q: Array) -> None:
    """Sum the counts of an event, and those of its failures."""
    row, lost = rows[0][rows[1][span[0]]], np.float32(failed[span[0]])
    for j in range(_LANES):
        k = np.float32(row[j])
        q[_K + j], q[_F + j] = k, k * lost
    for i in range(span[0] + 1, span[1]):
        row, lost = rows[0][rows[1][i]], np.float32(failed[i])
        for j in range(_LANES):
            k = np.float32(row[j])
            q[_K + j] += k
            q[_F + j] += k * lost


@njit(**_FAST)
def _event(s: FloatArray, q: Array, table: FloatArray, aurc: bool) -> None:
    """Count an event: its trapezoid, less what the runs around it count for it."""
    if aurc:
        for j in range(_LANES):
            s[_FROM + j] = table[int(q[_C + j])]
            s[_TO + j] = table[int(q[_C + j] + q[_K + j])]
    for j in range(_LANES):
        c0, k, f = np.float64(q[_C + j]), np.float64(q[_K + j]), np.float64(q[_F + j])
        c1, a0 = c0 + k, np.float64(q[_A + j])
        a1 = a0 + f
        q[_C + j] += q[_K + j]
        q[_A + j] += q[_F + j]
        s[_TWICE + j] += f * (c0 + c1)
        # The first vertex reaches back to coverage 0 at its own height.
        area = k * (a0 * c1 + a1 * c0) / max(2.0 * c0 * c1, 1.0) + (a1 if c0 == 0.0 else 0.0)
        s[_AREA + j] += area + a0 * s[_FROM + j] - a1 * s[_TO + j]


@njit(**_FAST)
def _plugin(s: FloatArray, q: Array, table: FloatArray) -> None:
    """Add the harmonic numbers at the places of an event just counted, averaged over its ties."""
    for j in range(_LANES):
        k = q[_K + j]
        if k > 0:
            step = table[int(q[_C + j])] - table[int(q[_C + j] - k)]
            s[_PLUGIN + j] += np.float64(q[_F + j]) / np.float64(k) * step


@njit(**_FAST)
def _finish(
    s: FloatArray, q: Array, table: FloatArray, wanted: tuple[bool, bool, float], out: FloatArray
) -> None:
    for j in range(_LANES):
        total, wrong = np.float64(q[_C + j]), np.float64(q[_A + j])
        top = table[int(q[_C + j])]
        out[0, j], out[1, j] = total, wrong / total
        out[2, j] = _augrc_from_rank_sum(total, wrong, s[_TWICE + j])
        if wanted[0]:
            out[3, j] = (s[_AREA + j] + wrong * top + np.float64(q[_ABOVE + j]) / 6.0) / total
        if wanted[1]:
            out[4, j] = (wrong * (top + 0.5 / total) - s[_PLUGIN + j]) / total


# ------------------------------------------------------------------- any losses and weights
# Places in `s` for any losses and weights: weight and loss accepted, the risk there, twice the
# trapezoids, twice the rank sum of the losses, plug-in sum, weight and loss of the present group.
_WEIGHT, _LOSS, _RISK, _TRAPEZOIDS, _RANKS, _STEPS, _OWN, _LOST = (64 * i for i in range(8))


def every_sample(
    block: PaddedCounts, one: Ordered, tables: CountSeries, wanted: WantedAreas
) -> FloatArray:
    """Return total, risk, AUGRC, AURC and plug-in AURC of any losses and weights, shape (5, b)."""
    weight = np.ones(one.n) if one.weight is None else one.weight
    out = np.full((5, _LANES), np.nan)
    _every_sample(
        (block.counts, one.order),
        (one.starts, one.stops),
        (weight, weight * one.loss),
        (tables.trapezoid, tables.harmonic, wanted.plugin),
        out,
    )
    return out[:, : block.width]


@njit(**_FAST)
def _every_sample(
    rows: tuple[Array, IntArray],
    groups: tuple[IntArray, IntArray],
    values: tuple[FloatArray, FloatArray],
    tables: tuple[FloatArray, FloatArray, bool],
    out: FloatArray,
) -> None:
    counts, order = rows
    begin, end = groups
    weight, mass = values
    s = np.zeros(8 * _LANES)
    for g in range(begin.size):
        for j in range(_LANES):
            s[_OWN + j] = 0.0
            s[_LOST + j] = 0.0
        for i in range(begin[g], end[g]):
            row, w, m = counts[order[i]], weight[i], mass[i]
            for j in range(_LANES):
                s[_OWN + j] += w * np.float64(row[j])
                s[_LOST + j] += m * np.float64(row[j])
        if tables[2]:
            _add_steps(s, tables[1])
        _vertex(s)
    _end(s, tables, out)


@njit(**_FAST)
def _vertex(s: FloatArray) -> None:
    """Count a group: the trapezoid from the vertex before to its own."""
    for j in range(_LANES):
        c0, k = s[_WEIGHT + j], s[_OWN + j]
        c1, a1 = c0 + k, s[_LOSS + j] + s[_LOST + j]
        risk = a1 / c1 if c1 > 0.0 else 0.0
        # The first vertex reaches back to coverage 0 at its own height.
        s[_TRAPEZOIDS + j] += k * (risk + (s[_RISK + j] if c0 > 0.0 else risk))
        s[_RANKS + j] += s[_LOST + j] * (c0 + c1)
        s[_WEIGHT + j], s[_LOSS + j], s[_RISK + j] = c1, a1, risk


@njit(**_FAST)
def _add_steps(s: FloatArray, harmonic: FloatArray) -> None:
    """Add the harmonic numbers at the places of a group, averaged over its ties."""
    for j in range(_LANES):
        k = s[_OWN + j]
        if k > 0.0:
            c = int(s[_WEIGHT + j])
            s[_STEPS + j] += s[_LOST + j] / k * (harmonic[c + int(k)] - harmonic[c])


@njit(**_FAST)
def _end(s: FloatArray, tables: tuple[FloatArray, FloatArray, bool], out: FloatArray) -> None:
    for j in range(_LANES):
        total, wrong = s[_WEIGHT + j], s[_LOSS + j]
        out[0, j] = total
        if total > 0.0:
            out[1, j] = wrong / total
            out[2, j] = _augrc_from_rank_sum(total, wrong, s[_RANKS + j])
            out[3, j] = s[_TRAPEZOIDS + j] / (2.0 * total)
        if total > 0.0 and tables[2]:
            top = tables[0][int(total)] + 0.5 / total
            out[4, j] = (wrong * top - s[_STEPS + j]) / total
