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
    """Add up ranks and trapezoids between the vertices in the buffer; keep the last as entry 0."""
    ends, fails = buffer[0], buffer[1]
    doubled_ranks, selective, single = 0, 0.0, 0
    for j in range(1, size):
        risk[j] = np.float64(fails[j]) / np.float64(ends[j])
    if ends[0] == 0:
        risk[0] = risk[1]
    for j in range(1, size):
        count = ends[j] - ends[j - 1]
        doubled_ranks += (fails[j] - fails[j - 1]) * (ends[j] + ends[j - 1])
        selective += np.float64(count) * (risk[j] + risk[j - 1])
        single += count == 1
    ends[0], fails[0], risk[0] = ends[size - 1], fails[size - 1], risk[size - 1]
    return doubled_ranks, selective, single


@njit()
def sweep(keys: Array, split: int) -> tuple[int, int, float, int]:
    """Return the failures, their doubled rank sum, and the tied samples.

    The third of four numbers is twice the area under the selective risk, in units of samples.
    """
    buffer = np.zeros((2, _BLOCK + 1), np.int64)
    risk = np.zeros(_BLOCK + 1, np.float64)
    failed, doubled_ranks, single, selective = 0, 0, 0, 0.0
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
                doubled_ranks += partial[0]
                selective += partial[1]
                single += partial[2]
    return failed, doubled_ranks, selective, keys.size - single


@njit()
def ends(
    keys: Array, opens: bool, closes: bool, merge: bool
) -> tuple[IntArray, IntArray, BoolArray]:
    """Return where the groups among neighboring keys end; `merge` joins untied successes.

    `opens` and `closes` are whether a group begins with the first key and ends with the last.
    Returns for each group its last key + 1, the failures so far, and whether it consists of untied
    successes.
    """
    n = keys.size
    # The masks are bytes, and each loop does one thing, so that the compiler vectorizes it.
    is_bound = np.empty(n + 1, np.uint8)
    is_bound[0], is_bound[n] = opens, closes
    for i in range(n - 1):
        is_bound[i + 1] = (keys[i] ^ keys[i + 1]) > 1
    is_untied_success = np.zeros(n + 1, np.uint8)
    for i in range(n):
        is_untied_success[i] = is_bound[i] & is_bound[i + 1] & np.uint8(~keys[i] & 1)
    is_end = np.empty(n, np.uint8)
    n_ends = 0
    for i in range(n):
        is_merged_with_next = is_untied_success[i] & is_untied_success[i + 1] & np.uint8(merge)
        is_end[i] = is_bound[i + 1] & ~is_merged_with_next
        n_ends += is_end[i]
    last = np.empty(n_ends + 1, np.int64)
    fails = np.empty(n_ends + 1, np.int64)
    is_untied = np.empty(n_ends + 1, np.bool_)
    size, failed = 0, 0
    for i in range(n):
        failed += keys[i] & 1
        # The slot is kept only if a group ends here: a branch would be mispredicted.
        last[size], fails[size], is_untied[size] = i + 1, failed, is_untied_success[i]
        size += is_end[i]
    return last[:n_ends], fails[:n_ends], is_untied[:n_ends]


@njit()
def n_up_to(points: Array, values: Array) -> IntArray:
    """Return how many values are at most each point; both ascend and the last value is above."""
    out = np.empty(points.size, np.int64)
    n_passed = 0
    for i in range(points.size):
        while values[n_passed] <= points[i]:
            n_passed += 1
        out[i] = n_passed
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
