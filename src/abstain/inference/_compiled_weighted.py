"""The numba kernel of resampling for any losses and weights: a vertex at every confidence."""

from typing import Any, NamedTuple

import numpy as np

from abstain._foundation.compiled import njit
from abstain.inference._resampled_order import Ordered
from abstain.inference._resampled_tables import Tables, Wanted
from abstain.typing import Array, FloatArray, IntArray

#: Resamples that are worked on side by side.
LANES = 64

#: Vector registers need sums in any order and divisions that are not checked for zero.
FAST: dict[str, Any] = {
    "fastmath": {"reassoc", "contract", "nsz"},
    "error_model": "numpy",
}

# Places in the flat array of running sums: weight and loss accepted, the risk there, twice the
# trapezoids, twice the rank sum of the losses, plug-in sum, weight and loss of the present group.
_C, _A, _RISK, _AREA, _TWICE, _PLUGIN, _K, _F = (64 * i for i in range(8))


class Block(NamedTuple):
    """Counts with a row of zeros at the end, in 64 columns, and how many of them are asked for."""

    counts: Array
    width: int


def every_sample(block: Block, one: Ordered, tables: Tables, wanted: Wanted) -> FloatArray:
    """Return total, risk, AUGRC, AURC and plug-in AURC of any losses and weights, shape (5, b)."""
    weight = np.ones(one.n) if one.weight is None else one.weight
    out = np.full((5, LANES), np.nan)
    _every_sample(
        (block.counts, one.order),
        (one.starts, one.stops),
        (weight, weight * one.loss),
        (tables.trapezoid, tables.harmonic, wanted.plugin),
        out,
    )
    return out[:, : block.width]


@njit(**FAST)
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
    s = np.zeros(8 * LANES)
    for g in range(begin.size):
        for j in range(LANES):
            s[_K + j] = 0.0
            s[_F + j] = 0.0
        for i in range(begin[g], end[g]):
            row, w, m = counts[order[i]], weight[i], mass[i]
            for j in range(LANES):
                s[_K + j] += w * np.float64(row[j])
                s[_F + j] += m * np.float64(row[j])
        if tables[2]:
            _plugin(s, tables[1])
        _vertex(s)
    _finish(s, tables, out)


@njit(**FAST)
def _vertex(s: FloatArray) -> None:
    """Count a group: the trapezoid from the vertex before to its own."""
    for j in range(LANES):
        c0, k = s[_C + j], s[_K + j]
        c1, a1 = c0 + k, s[_A + j] + s[_F + j]
        risk = a1 / c1 if c1 > 0.0 else 0.0
        # The first vertex reaches back to coverage 0 at its own height.
        s[_AREA + j] += k * (risk + (s[_RISK + j] if c0 > 0.0 else risk))
        s[_TWICE + j] += s[_F + j] * (c0 + c1)
        s[_C + j], s[_A + j], s[_RISK + j] = c1, a1, risk


@njit(**FAST)
def _plugin(s: FloatArray, harmonic: FloatArray) -> None:
    """Add the harmonic numbers at the places of a group, averaged over its ties."""
    for j in range(LANES):
        k = s[_K + j]
        if k > 0.0:
            c = int(s[_C + j])
            s[_PLUGIN + j] += s[_F + j] / k * (harmonic[c + int(k)] - harmonic[c])


@njit(**FAST)
def _finish(s: FloatArray, tables: tuple[FloatArray, FloatArray, bool], out: FloatArray) -> None:
    for j in range(LANES):
        total, wrong = s[_C + j], s[_A + j]
        out[0, j] = total
        if total > 0.0:
            out[1, j] = wrong / total
            out[2, j] = (total * wrong - 0.5 * s[_TWICE + j]) / (total * total)
            out[3, j] = s[_AREA + j] / (2.0 * total)
        if total > 0.0 and tables[2]:
            top = tables[0][int(total)] + 0.5 / total
            out[4, j] = (wrong * top - s[_PLUGIN + j]) / total
