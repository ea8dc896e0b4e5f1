"""The numba kernels behind `abstain._foundation.packed`: one pass each, cached on disk.

Each does what the NumPy function of the same name in `blockwise` does. This module imports numba,
so it is itself imported on the first use only; see `packed.kernels`.
"""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from abstain.typing import Array, BoolArray, FloatArray, IntArray

#: Vertices that wait for their division; three such buffers of 8-byte numbers stay in L1.
_BLOCK = 1024


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile without the interpreter lock, cached on disk where there is a folder for it."""

    def compile_lazily(function: Callable[..., Any]) -> Any:
        try:
            return numba.njit(cache=True, nogil=True, **options)(function)
        except RuntimeError:
            # A read-only installation without a user cache: compile in every process.
            return numba.njit(nogil=True, **options)(function)

    return compile_lazily


@njit()
def pack(bits: Array, loss: Array, keys: Array) -> tuple[int, bool]:
    """Write the keys of non-negative confidences; return the highest pattern, and if all is 0/1."""
    one = keys.dtype.type(1)
    highest = keys.dtype.type(0)
    binary = True
    for i in range(bits.size):
        pattern = bits[i]
        value = loss[i]
        highest = max(highest, pattern)
        binary &= (value == 0) | (value == 1)
        keys[i] = ~((pattern << one) | keys.dtype.type(value == 0))
    return highest, binary


@njit()
def split(bits: Array, loss: Array, keys: Array, sign: Any, infinity: Any) -> int:
    """Write keys of both signs to the two ends; return where they meet, or -1 if not finite."""
    one = keys.dtype.type(1)
    low, high = 0, keys.size - 1
    bad = False
    for i in range(bits.size):
        pattern = bits[i]
        negative = pattern > sign
        bad |= (pattern & ~sign) >= infinity
        magnitude = pattern << one
        # Both ends are written without a branch, which mixed signs would mispredict.
        keys[low] = ~(magnitude | keys.dtype.type(loss[i] == 0))
        keys[high] = magnitude | keys.dtype.type(loss[i] != 0) if negative else keys[high]
        low += not negative
        high -= negative
    return -1 if bad else low


@njit()
def _advance(keys: Array, low: int, high: int, buffer: IntArray, failed: int) -> tuple[int, int]:
    """Write the vertices whose group ends in ``keys[low:high]`` behind entry 0 of the buffer."""
    ends, fails = buffer[0], buffer[1]
    size = 1
    for j in range(low, high):
        failed += keys[j] & 1
        ends[size] = j + 1
        fails[size] = failed
        # The slot is kept only if the next key is of another group: no branch here either.
        size += (keys[j] ^ keys[j + 1]) > 1
    return size, failed


# Vector registers need sums in any order and divisions that are not checked for zero; neither
# matters here, where every divisor is a number of samples and nothing is NaN or infinite.
@njit(fastmath={"reassoc", "contract"}, error_model="numpy")
def _settle(buffer: IntArray, risk: FloatArray, size: int) -> tuple[int, float, int]:
    """Add up the trapezoids between the vertices in the buffer; keep the last as entry 0."""
    ends, fails = buffer[0], buffer[1]
    area, selective, single = 0, 0.0, 0
    for j in range(1, size):
        risk[j] = np.float64(fails[j]) / np.float64(ends[j])
    if ends[0] == 0:
        risk[0] = risk[1]
    for j in range(1, size):
        count = ends[j] - ends[j - 1]
        area += count * (fails[j] + fails[j - 1])
        selective += np.float64(count) * (risk[j] + risk[j - 1])
        single += count == 1
    ends[0], fails[0], risk[0] = ends[size - 1], fails[size - 1], risk[size - 1]
    return area, selective, single


@njit()
def sweep(keys: Array, split: int) -> tuple[int, int, float, int]:
    """Return the failures, twice the two areas in units of samples, and the tied samples."""
    buffer = np.zeros((2, _BLOCK + 1), np.int64)
    risk = np.zeros(_BLOCK + 1, np.float64)
    failed, area, single, selective = 0, 0, 0, 0.0
    for begin, stop in ((0, split), (split, keys.size)):
        for low in range(begin, stop, _BLOCK):
            high = min(low + _BLOCK, stop)
            last = high == stop
            size, failed = _advance(keys, low, high - last, buffer, failed)
            if last:
                failed += keys[high - 1] & 1
                buffer[0, size], buffer[1, size] = high, failed
                size += 1
            if size > 1:
                # A block is summed by itself first, so rounding grows with the blocks only.
                partial = _settle(buffer, risk, size)
                area += partial[0]
                selective += partial[1]
                single += partial[2]
    return failed, area, selective, keys.size - single


@njit()
def ends(
    keys: Array, opens: bool, closes: bool, merge: bool
) -> tuple[IntArray, IntArray, BoolArray]:
    """Return where the groups among neighboring keys end; `merge` joins successes by themselves.

    `opens` and `closes` tell whether a group begins with the first key and ends with the last.
    Returns for each its last key + 1, the failures so far, and whether it is such a success.
    """
    size, failed, stretched = 0, 0, False
    last = np.empty(keys.size, np.int64)
    fails = np.empty(keys.size, np.int64)
    alone = np.empty(keys.size, np.bool_)
    for i in range(keys.size):
        bit = keys[i] & 1
        failed += bit
        ahead = (keys[i] ^ keys[i + 1]) > 1 if i + 1 < keys.size else closes
        single = opens & ahead & (bit == 0)
        # A success by itself takes the slot of the one before it; no branch here either.
        slot = size - (single & stretched & merge)
        last[slot], fails[slot], alone[slot] = i + 1, failed, single
        size = slot + 1 if ahead else size
        stretched = single if ahead else stretched
        opens = ahead
    return last[:size].copy(), fails[:size].copy(), alone[:size].copy()


@njit()
def _failures(keys: Array) -> IntArray:
    """Return where the failures are, and one place more."""
    failed, size = 0, 0
    for i in range(keys.size):
        failed += keys[i] & 1
    place = np.empty(failed + 1, np.int64)
    for i in range(keys.size):
        # The slot is kept only if it is one: a branch here would be mispredicted.
        place[size] = i
        size += keys[i] & 1
    return place


@njit()
def failing(keys: Array) -> tuple[IntArray, IntArray, IntArray]:
    """Return where the groups that hold a failure begin and end, and the failures of each.

    Takes all keys of one sign.
    """
    place = _failures(keys)
    size, end = 0, 0
    first = np.empty(place.size, np.int64)
    last, count = np.empty_like(first), np.empty_like(first)
    for i in place[:-1]:
        if i == end and i > 0 and keys[i] == keys[i - 1]:
            count[size - 1] += 1
        else:
            begin = i
            # The successes that are tied with it come right before it.
            while begin > 0 and (keys[begin - 1] ^ keys[i]) == 1:
                begin -= 1
            first[size], count[size] = begin, 1
            size += 1
        end = i + 1
        last[size - 1] = end
    return first[:size].copy(), last[:size].copy(), count[:size].copy()


@njit()
def homes(points: IntArray, ends: IntArray) -> IntArray:
    """Return how many of the ends come before each point or at it; both ascend."""
    out = np.empty(points.size, np.int64)
    passed = 0
    for i in range(points.size):
        while ends[passed] <= points[i]:
            passed += 1
        out[i] = passed
    return out


@njit()
def tally(bits: Array, loss: Array, table: IntArray) -> bool:
    """Count (failed, pattern) pairs into the table; return whether every loss is 0 or 1."""
    binary = True
    for i in range(bits.size):
        value = loss[i]
        binary &= (value == 0) | (value == 1)
        table[np.intp(value != 0), bits[i]] += 1
    return binary
