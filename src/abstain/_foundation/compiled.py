"""Numba versions of the kernels for `packed`.

Each function has a NumPy version with the same name in `blockwise`. The module `packed` documents
the format of the sort keys.
"""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from abstain.typing import Array, BoolArray, FloatArray, IntArray

#: Number of tie groups in a buffer. Three buffers fit into the L1 cache.
_BLOCK = 1024


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles a function with numba, with an on-disk cache if possible."""

    def compile_lazily(function: Callable[..., Any]) -> Any:
        try:
            return numba.njit(cache=True, nogil=True, **options)(function)
        except RuntimeError:
            # If the installation is read-only and has no user cache, each process compiles.
            return numba.njit(nogil=True, **options)(function)

    return compile_lazily


@njit()
def pack_nonnegative(patterns: Array, loss: Array, keys: Array) -> tuple[int, bool]:
    """Write the sort keys of non-negative confidences.

    Returns the largest bit pattern and a flag, which is True if all losses are 0 or 1. If the
    largest pattern is not below that of infinity, the keys are invalid.
    """
    one = keys.dtype.type(1)
    max_pattern = keys.dtype.type(0)
    is_binary = True
    for i in range(patterns.size):
        pattern = patterns[i]
        value = loss[i]
        max_pattern = max(max_pattern, pattern)
        is_binary &= (value == 0) | (value == 1)
        keys[i] = ~((pattern << one) | keys.dtype.type(value == 0))
    return max_pattern, is_binary


@njit()
def pack_by_sign(patterns: Array, loss: Array, keys: Array, sign_bit: Any, infinity: Any) -> int:
    """Write the sort keys of confidences of both signs.

    Keys of non-negative confidences are at the front of the array, and keys of negative confidences
    at the back. Returns the number of non-negative confidences, or -1 if a confidence is not
    finite.
    """
    one = keys.dtype.type(1)
    front, back = 0, keys.size - 1
    is_invalid = False
    for i in range(patterns.size):
        pattern = patterns[i]
        is_negative = pattern > sign_bit
        is_invalid |= (pattern & ~sign_bit) >= infinity
        magnitude = pattern << one
        # The loop writes to both ends, because a processor cannot predict a branch on mixed signs.
        keys[front] = ~(magnitude | keys.dtype.type(loss[i] == 0))
        keys[back] = magnitude | keys.dtype.type(loss[i] != 0) if is_negative else keys[back]
        front += not is_negative
        back -= is_negative
    return -1 if is_invalid else front


@njit()
def _append_group_ends(
    keys: Array, start: int, end: int, buffer: IntArray, n_failures: int
) -> tuple[int, int]:
    """Write the ends and the cumulative failures of the tie groups in ``keys[start:end]``.

    Row 0 of the buffer contains the ends, and row 1 the cumulative failures. Entry 0 of each row is
    reserved for the previous tie group. Returns the number of used entries and the total number of
    failures.
    """
    group_ends, cumulative_failures = buffer[0], buffer[1]
    size = 1
    for j in range(start, end):
        n_failures += keys[j] & 1
        group_ends[size] = j + 1
        cumulative_failures[size] = n_failures
        # The next entry overwrites this entry unless the next key belongs to another group.
        size += (keys[j] ^ keys[j + 1]) > 1
    return size, n_failures


# "reassoc" permits sums in vector registers, and error_model="numpy" omits checks for division by
# zero. Both are safe, because all divisors are positive counts and all numbers are finite.
@njit(fastmath={"reassoc", "contract"}, error_model="numpy")
def _sum_buffer(buffer: IntArray, risk: FloatArray, size: int) -> tuple[int, float, int]:
    """Sum the ranks of failures and the trapezoidal areas over the tie groups in the buffer.

    The last tie group is copied to entry 0 of the buffer for the next block.
    """
    group_ends, cumulative_failures = buffer[0], buffer[1]
    doubled_rank_sum, doubled_area, n_untied = 0, 0.0, 0
    for j in range(1, size):
        risk[j] = np.float64(cumulative_failures[j]) / np.float64(group_ends[j])
    if group_ends[0] == 0:
        risk[0] = risk[1]
    for j in range(1, size):
        group_size = group_ends[j] - group_ends[j - 1]
        n_failures = cumulative_failures[j] - cumulative_failures[j - 1]
        doubled_rank_sum += n_failures * (group_ends[j] + group_ends[j - 1])
        doubled_area += np.float64(group_size) * (risk[j] + risk[j - 1])
        n_untied += group_size == 1
    last = size - 1
    group_ends[0] = group_ends[last]
    cumulative_failures[0] = cumulative_failures[last]
    risk[0] = risk[last]
    return doubled_rank_sum, doubled_area, n_untied


@njit()
def sum_areas(keys: Array, n_nonnegative: int) -> tuple[int, int, float, int]:
    """Return the sums over sorted keys from which AURC and AUGRC are computed.

    Returns four numbers:

    1. the number of failures
    2. twice the sum of the ranks of the failures, where tied samples have their mean rank
    3. twice the area under the selective risk as a function of the number of accepted samples
    4. the number of tied samples
    """
    buffer = np.zeros((2, _BLOCK + 1), np.int64)
    risk = np.zeros(_BLOCK + 1, np.float64)
    n_failures, doubled_rank_sum, n_untied, doubled_area = 0, 0, 0, 0.0
    for sign_start, sign_end in ((0, n_nonnegative), (n_nonnegative, keys.size)):
        for start in range(sign_start, sign_end, _BLOCK):
            end = min(start + _BLOCK, sign_end)
            is_last = end == sign_end
            size, n_failures = _append_group_ends(keys, start, end - is_last, buffer, n_failures)
            if is_last:
                n_failures += keys[end - 1] & 1
                buffer[0, size], buffer[1, size] = end, n_failures
                size += 1
            if size > 1:
                # Each block has its own sum, so only the number of blocks affects the error.
                block_rank_sum, block_area, block_untied = _sum_buffer(buffer, risk, size)
                doubled_rank_sum += block_rank_sum
                doubled_area += block_area
                n_untied += block_untied
    return n_failures, doubled_rank_sum, doubled_area, keys.size - n_untied


@njit()
def find_group_ends(
    keys: Array, starts_group: bool, ends_group: bool, merge: bool
) -> tuple[IntArray, IntArray, BoolArray]:
    """Find the ends of tie groups in sorted keys.

    `starts_group` states whether a group starts with the first key. `ends_group` states whether a
    group ends with the last key. With `merge`, consecutive untied successes form one group.

    Returns three arrays with one entry per group that ends among these keys: the number of keys up
    to its end, the number of failures up to its end, and whether it consists of untied successes.
    """
    n = keys.size
    # The masks are bytes and each loop is simple, so that the compiler vectorizes the loops.
    # Entry i states whether a group boundary precedes key i.
    is_boundary = np.empty(n + 1, np.uint8)
    is_boundary[0], is_boundary[n] = starts_group, ends_group
    for i in range(n - 1):
        is_boundary[i + 1] = (keys[i] ^ keys[i + 1]) > 1
    is_untied_success = np.zeros(n + 1, np.uint8)
    for i in range(n):
        is_untied_success[i] = is_boundary[i] & is_boundary[i + 1] & np.uint8(~keys[i] & 1)
    is_end = np.empty(n, np.uint8)
    n_ends = 0
    for i in range(n):
        is_merged_with_next = is_untied_success[i] & is_untied_success[i + 1] & np.uint8(merge)
        is_end[i] = is_boundary[i + 1] & ~is_merged_with_next
        n_ends += is_end[i]
    group_ends = np.empty(n_ends + 1, np.int64)
    cumulative_failures = np.empty(n_ends + 1, np.int64)
    is_untied = np.empty(n_ends + 1, np.bool_)
    size, n_failures = 0, 0
    for i in range(n):
        n_failures += keys[i] & 1
        # The next entry overwrites this entry unless a group ends here. A branch would be slow.
        group_ends[size] = i + 1
        cumulative_failures[size] = n_failures
        is_untied[size] = is_untied_success[i]
        size += is_end[i]
    return group_ends[:n_ends], cumulative_failures[:n_ends], is_untied[:n_ends]


@njit()
def count_up_to(points: Array, values: Array) -> IntArray:
    """For each point, return the number of values that are less than or equal to it.

    Both arrays are sorted in ascending order, and the last value exceeds all points.
    """
    counts = np.empty(points.size, np.int64)
    n_values = 0
    for i in range(points.size):
        while values[n_values] <= points[i]:
            n_values += 1
        counts[i] = n_values
    return counts


@njit()
def count_patterns(patterns: Array, loss: Array, counts: IntArray) -> bool:
    """Count successes and failures by bit pattern in a table of shape (2, 65536).

    Returns False if a loss is not 0 or 1.
    """
    is_binary = True
    for i in range(patterns.size):
        value = loss[i]
        is_binary &= (value == 0) | (value == 1)
        counts[np.intp(value != 0), patterns[i]] += 1
    return is_binary
