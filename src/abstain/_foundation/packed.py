"""Packed keys: the loss bit rides in the sort key, so values are sorted and never permutations.

A 0/1 loss takes one bit, and the sign bit of the confidence makes room for it: confidences of
one sign are sorted apart, the non-negative ones in the front of the key buffer, the negative
ones in its back. The keys hold everything an area needs, so they are the only memory used.

Layout of a key, for a float of the same width: magnitude bits << 1 | loss, where the magnitude
of a non-negative confidence is complemented. Both parts then ascend from the most confident on.

16-bit confidences are not sorted but counted over their 65,536 patterns.

Every function here declines (returns None) what it cannot do exactly, invalid values included;
the caller then takes the general way, whose checks say what is wrong.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, TypeAlias, cast

import numpy as np

from abstain._foundation import blockwise
from abstain._foundation.array_functions import undo_cumulative_sum
from abstain._foundation.optional_packages import load_kernels
from abstain.typing import Array, BoolArray, FloatArray, IntArray

#: Fewer 16-bit confidences than this are sorted as float32: the count table has a fixed cost.
COUNT_FROM = 1 << 15

#: Beyond this many samples the doubled rank sum could exceed 64 bits.
_MOST = 1 << 31


class FloatLayout(NamedTuple):
    """How a float format reads as an unsigned integer."""

    unsigned: Any
    sign: int
    infinity: int


_LAYOUTS = {
    np.dtype(np.float32): FloatLayout(np.uint32, 1 << 31, 0x7F800000),
    np.dtype(np.float64): FloatLayout(np.uint64, 1 << 63, 0x7FF << 52),
}
#: The 16-bit formats: the pattern of infinity, and how many zero bits widen it to float32.
HALF_INFINITY, BRAIN_INFINITY = 0x7C00, 0x7F80

#: So many samples NumPy sorts in the time that loading numba takes longer than they would save.
_LOADED_AFTER = 50_000_000

#: Keys that are searched for groups at a time.
_BLOCK = 1 << 16

_LOSSES = {np.dtype(name) for name in ("?", "u1", "i4", "i8", "f4", "f8")}


class PackedKernels(Protocol):
    """The steps that exist twice: `blockwise` in NumPy, and `compiled`."""

    pack: Callable[[Array, Array, Array], tuple[int, bool]]
    split: Callable[[Array, Array, Array, Any, Any], int]
    sweep: Callable[[Array, int], tuple[int, int, float, int]]
    ends: Callable[[Array, bool, bool, bool], tuple[IntArray, IntArray, BoolArray]]
    tally: Callable[[Array, Array, IntArray], bool]


_NUMPY = cast("PackedKernels", blockwise)
_COMPILED = "abstain._foundation.compiled"


def kernels() -> PackedKernels:
    """Return the compiled kernels, or those of NumPy without numba or if ABSTAIN_NO_NUMBA is 1."""
    return load_kernels(_COMPILED) or _NUMPY


@dataclass
class Spent:
    """How many samples NumPy's kernels have taken in this process."""

    samples: int = 0

    def kernels(self, n: int) -> PackedKernels:
        """Return the kernels for n more: a process that does little does not wait for numba."""
        ready = _COMPILED in sys.modules
        if ready or self.samples >= _LOADED_AFTER:
            return kernels()
        self.samples += n
        return _NUMPY


_SPENT = Spent()


#: Distinct confidences in descending order; weight and loss of each, and count unless that is the
#: weight.
Groups: TypeAlias = tuple[Array, FloatArray, FloatArray, IntArray | None]

#: The same of merged groups, and whether each is merged.
MergedGroups: TypeAlias = tuple[Array, FloatArray, FloatArray, IntArray | None, BoolArray]


class VertexBlock(NamedTuple):
    """Neighboring distinct confidences, from the highest down, with what is at each and above."""

    confidence: Array
    #: As in `TieGroups`.
    weight: Array
    loss: Array
    cumulative_weight: Array
    cumulative_loss: Array


@dataclass(frozen=True, eq=False)
class PackedKeys:
    """Sorted keys of samples with a 0/1 loss."""

    #: Shape (n,). Most confident first.
    keys: Array
    #: Number of non-negative confidences, which come first.
    n_nonnegative: int
    #: Of the confidences; the keys may be wider.
    dtype: np.dtype[Any]
    #: What packed them.
    kernels: PackedKernels

    def groups(self) -> Groups:
        """Return distinct confidences in descending order, number and failures of each."""
        return self._grouped(merge=False)[:4]

    def merged_groups(self) -> MergedGroups:
        """Return the groups, with untied successes that lie next to each other merged into one."""
        return self._grouped(merge=True)

    def vertices(self) -> Iterator[VertexBlock]:
        """Yield the distinct confidences in blocks, without the memory of all groups."""
        before = np.zeros((2, 1))
        for ends, fails in blockwise.vertex_blocks(self.keys, self.n_nonnegative):
            through = np.empty((2, ends.size + 1))
            through[:, :1], through[0, 1:], through[1, 1:] = before, ends, fails
            weight, loss = through[:, 1:] - through[:, :-1]
            yield VertexBlock(self.values(ends), weight, loss, through[0, 1:], through[1, 1:])
            before = through[:, -1:]

    def _grouped(self, *, merge: bool) -> MergedGroups:
        ends, fails, alone = map(np.concatenate, zip(*self._blocks(merge=merge), strict=True))
        count, failed = (undo_cumulative_sum(x).astype(np.float64) for x in (ends, fails))
        return self.values(ends), count, failed, None, alone

    def _blocks(self, *, merge: bool) -> Iterator[tuple[IntArray, IntArray, BoolArray]]:
        failed, opens = 0, True
        for begin, stop in ((0, self.n_nonnegative), (self.n_nonnegative, self.keys.size)):
            for low in range(begin, stop, _BLOCK):
                high = min(low + _BLOCK, stop)
                here = self.keys[low:high]
                closes = high == stop or bool((here[-1] ^ self.keys[high]) > 1)
                ends, fails, alone = self.kernels.ends(here, opens, closes, merge)
                yield ends + low, fails + failed, alone
                if ends.size:
                    failed += int(fails[-1])
                    here = here[ends[-1] :]
                failed += int(np.count_nonzero(here & 1))
                opens = closes

    def values(self, ends: IntArray) -> Array:
        """Return the confidences of the groups that end after so many samples."""
        wide = np.dtype(f"f{self.keys.itemsize}")
        layout = _LAYOUTS[wide]
        key = self.keys[ends - 1]
        front = int(np.searchsorted(ends, self.n_nonnegative, side="right"))
        key[:front] = ~key[:front]
        key >>= layout.unsigned(1)
        key[front:] |= layout.unsigned(layout.sign)
        return key.view(wide).astype(self.dtype, copy=False)


def pack_and_sort(
    confidence: Array, loss: Array, run: PackedKernels | None = None
) -> PackedKeys | None:
    """Pack and sort; None unless confidence is finite float32 or float64 and every loss 0 or 1."""
    run = run or kernels()
    layout = _LAYOUTS.get(confidence.dtype)
    if layout is None or confidence.size > _MOST:
        return None
    bits = _fixed(confidence, layout.unsigned)
    plain = _plain_loss(loss)
    if plain is None:
        return None
    keys = np.empty(bits.size, layout.unsigned)
    highest, binary = run.pack(bits, plain, keys)
    if not binary:
        return None
    split = keys.size
    if highest >= layout.infinity:
        # Some confidence has its sign bit set, or is not finite.
        sign, infinity = layout.unsigned(layout.sign), layout.unsigned(layout.infinity)
        split = run.split(bits, plain, keys, sign, infinity)
        if split < 0:
            return None
    keys[:split].sort()
    if split < keys.size:
        keys[split:].sort()
    return PackedKeys(keys, split, confidence.dtype, run)


def _fixed(x: Array, dtype: Any) -> Array:
    """View as a contiguous read-only array: one compiled variant serves every caller."""
    fixed: Array = np.ascontiguousarray(x).view(dtype)
    fixed.setflags(write=False)
    return fixed


def _plain_loss(loss: Array) -> Array | None:
    """Return the loss in a dtype the kernels know, or None if that would round it."""
    if loss.dtype in _LOSSES:
        return _fixed(loss, loss.dtype)
    if np.can_cast(loss.dtype, np.float64):
        return _fixed(loss.astype(np.float64), np.float64)
    return None


def sorted_keys(confidence: Array, loss: Array) -> PackedKeys | None:
    """Sort validated samples without weights; None where keys do not hold them, or counts do."""
    run = _SPENT.kernels(confidence.size)
    if confidence.dtype != np.float16:
        return pack_and_sort(confidence, loss, run)
    if is_counted(confidence):
        return None
    keys = pack_and_sort(confidence.astype(np.float32), loss, run)
    return None if keys is None else replace(keys, dtype=confidence.dtype)


def is_counted(confidence: Array) -> bool:
    """Tell whether counting the values is faster than sorting them."""
    return confidence.dtype == np.float16 and confidence.size >= COUNT_FROM


def count_failures(
    bits: Array, loss: Array, run: PackedKernels | None = None, *, infinity: int
) -> Groups | None:
    """Group 16-bit floats by counting; None unless all are finite and every loss is 0 or 1.

    `bits` are the patterns of the confidences as uint16; `infinity`, `HALF_INFINITY` or
    `BRAIN_INFINITY`, tells their format. Confidences of the brain format come as float32.
    """
    plain = _plain_loss(loss)
    table = np.zeros((2, 1 << 16), np.int64)
    if plain is None or not (run or kernels()).tally(_fixed(bits, bits.dtype), plain, table):
        return None
    failed = table[1]
    count = table[0] + failed
    return _occupied(count, count.astype(np.float64), failed.astype(np.float64), infinity)


def count_half_precision(
    confidence: Array, loss: Array, weight: FloatArray | None
) -> Groups | None:
    """Group half-precision confidences with any loss and weight by counting."""
    bits, found = confidence.view(np.uint16), None
    if weight is None:
        found = count_failures(bits, loss, _NUMPY, infinity=HALF_INFINITY)
    if found is not None:
        return found
    mass = loss.astype(np.float64)
    if weight is not None:
        mass *= weight
    count = np.bincount(bits, minlength=1 << 16).astype(np.int64)
    total = count.astype(np.float64) if weight is None else _summed(bits, weight)
    return _occupied(count, total, _summed(bits, mass), HALF_INFINITY)


def _summed(bits: Array, weight: FloatArray) -> FloatArray:
    return np.bincount(bits, weights=weight, minlength=1 << 16).astype(np.float64, copy=False)


def _occupied(
    count: IntArray, weight: FloatArray, loss: FloatArray, infinity: int
) -> Groups | None:
    """Keep the patterns that occur; None if some of them are not finite."""
    for table in (count, weight, loss):
        table[0] += table[0x8000]  # -0.0 equals 0.0
        table[0x8000] = 0
    found = np.flatnonzero(count != 0)
    above, below = np.searchsorted(found, (infinity, 0x8000))
    if above < below or (found.size and found[-1] >= 0x8000 + infinity):
        return None
    patterns = np.concatenate((found[:above][::-1], found[below:]))
    if infinity == HALF_INFINITY:
        values: Array = patterns.astype(np.uint16).view(np.float16)
    else:
        values = brain_floats(patterns.astype(np.uint16))
    return values, weight[patterns], loss[patterns], count[patterns]


def brain_floats(bits: Array) -> Array:
    """Widen bfloat16 patterns to float32, exactly."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
