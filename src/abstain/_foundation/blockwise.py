"""NumPy versions of the kernels for `packed`, which process blocks of keys.

Each function has a compiled version with the same name in `compiled`. The module `packed` documents
the format of the sort keys.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from abstain.typing import Array, BoolArray, IntArray

#: Number of keys in a block, whose temporary arrays fit into the L2 cache.
_BLOCK = 1 << 15


def pack_nonnegative(patterns: Array, loss: Array, keys: Array) -> tuple[int, bool]:
    """Write the sort keys of non-negative confidences. See `compiled.pack_nonnegative`."""
    max_pattern = 0
    for start in range(0, patterns.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        if not _is_binary(loss[block]):
            return 0, False
        max_pattern = max(max_pattern, int(patterns[block].max()))
        block_keys = keys[block]
        np.left_shift(patterns[block], 1, out=block_keys)
        # The complement turns the success bit into the loss bit.
        np.bitwise_or(block_keys, loss[block] == 0, out=block_keys)
        np.invert(block_keys, out=block_keys)
    return max_pattern, True


def pack_by_sign(patterns: Array, loss: Array, keys: Array, sign_bit: Any, infinity: Any) -> int:
    """Write the sort keys of confidences of both signs. See `compiled.pack_by_sign`."""
    front_end, back_start = 0, keys.size
    for start in range(0, patterns.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        if ((patterns[block] & ~sign_bit) >= infinity).any():
            return -1
        is_negative = patterns[block] > sign_bit
        # The shift drops the sign bit.
        key = (patterns[block] << 1) | (loss[block] != 0)
        negative_keys = key[is_negative]
        nonnegative_keys = ~(key[~is_negative] ^ 1)
        keys[front_end : front_end + nonnegative_keys.size] = nonnegative_keys
        keys[back_start - negative_keys.size : back_start] = negative_keys
        front_end += nonnegative_keys.size
        back_start -= negative_keys.size
    return front_end


def sum_areas(keys: Array, n_nonnegative: int) -> tuple[int, int, float, int]:
    """Return the sums from which AURC and AUGRC are computed. See `compiled.sum_areas`."""
    n_samples = 0
    total_failures = 0
    last_risk = 0.0
    doubled_rank_sum = 0
    doubled_area = 0.0
    n_untied = 0
    for group_ends, cumulative_failures in iterate_group_ends(keys, n_nonnegative):
        risk = cumulative_failures / group_ends
        group_size = np.diff(group_ends, prepend=n_samples)
        n_failures = np.diff(cumulative_failures, prepend=total_failures)
        # The point before the first group of a block is the last point of the previous block.
        risk_before = last_risk if n_samples else float(risk[0])
        doubled_rank_sum += int(np.dot(n_failures, group_ends))
        doubled_rank_sum += int(np.dot(n_failures[1:], group_ends[:-1]))
        doubled_rank_sum += int(n_failures[0]) * n_samples
        doubled_area += float((group_size * risk).sum() + (group_size[1:] * risk[:-1]).sum())
        doubled_area += float(group_size[0]) * risk_before
        n_untied += int(np.count_nonzero(group_size == 1))
        n_samples = int(group_ends[-1])
        total_failures = int(cumulative_failures[-1])
        last_risk = float(risk[-1])
    return total_failures, doubled_rank_sum, doubled_area, keys.size - n_untied


def find_group_ends(
    keys: Array, starts_group: bool, ends_group: bool, merge: bool
) -> tuple[IntArray, IntArray, BoolArray]:
    """Find the ends of tie groups in sorted keys. See `compiled.find_group_ends`."""
    # Entry i states whether a group boundary precedes key i.
    is_boundary = np.empty(keys.size + 1, np.bool_)
    is_boundary[0] = starts_group
    is_boundary[-1] = ends_group
    np.greater(keys[1:] ^ keys[:-1], 1, out=is_boundary[1:-1])
    is_failure = (keys & 1).astype(np.bool_)
    is_untied_success = is_boundary[:-1] & is_boundary[1:] & ~is_failure
    is_end = is_boundary[1:].copy()
    if merge:
        # Consecutive untied successes form one merged group, which ends at the last of them.
        is_end[:-1] &= ~(is_untied_success[:-1] & is_untied_success[1:])
    # A cumulative sum over all keys would double the time, so only ends and failures are summed.
    summed_keys = np.flatnonzero(is_end | is_failure)
    is_summed_end = is_end[summed_keys]
    last_keys = summed_keys[is_summed_end]
    cumulative_failures = np.cumsum(is_failure[summed_keys], dtype=np.int64)[is_summed_end]
    return last_keys + 1, cumulative_failures, is_untied_success[last_keys]


def count_patterns(patterns: Array, loss: Array, counts: IntArray) -> bool:
    """Count successes and failures by bit pattern. See `compiled.count_patterns`."""
    for start in range(0, patterns.size, 8 * _BLOCK):
        block = slice(start, start + 8 * _BLOCK)
        if not _is_binary(loss[block]):
            return False
        # The table `counts` has shape (2, 65536) and is indexed as a flat array.
        flat_index = (loss[block] != 0).astype(np.int64) << 16
        flat_index |= patterns[block]
        counts += np.bincount(flat_index, minlength=counts.size).reshape(counts.shape)
    return True


def _is_binary(loss: Array) -> bool:
    if loss.dtype.kind == "b":
        return True
    return bool(((loss == 0) | (loss == 1)).all())


def iterate_group_ends(keys: Array, n_nonnegative: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield blocks of tie groups with the cumulative numbers of samples and failures."""
    failures_before = 0
    for sign_start, sign_end in ((0, n_nonnegative), (n_nonnegative, keys.size)):
        for start in range(sign_start, sign_end, _BLOCK):
            end = min(start + _BLOCK, sign_end)
            block = keys[start:end]
            next_keys = keys[start + 1 : min(end + 1, sign_end)]
            # Bit 0 is the loss, so keys of equal confidence differ at most in this bit.
            last_keys = np.flatnonzero((block[: next_keys.size] ^ next_keys) > 1)
            if end == sign_end:
                # The sign is not part of the key, so the last key of a sign also ends a group.
                last_keys = np.append(last_keys, end - start - 1)
            cumulative_failures = np.cumsum(block & 1, dtype=np.int64)
            cumulative_failures += failures_before
            failures_before = int(cumulative_failures[-1])
            if last_keys.size:
                yield last_keys + (start + 1), cumulative_failures[last_keys]
