"""The kernels behind `abstain._foundation.packed` in NumPy, in blocks that stay in the cache.

Each does what the compiled function of the same name in `compiled` does; the tests hold them
equal. `packed` documents the layout of the keys.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from abstain.typing import Array, BoolArray, IntArray

#: Keys in one pass, so that its temporaries stay in the L2 cache.
_BLOCK = 1 << 15


def pack(bits: Array, loss: Array, keys: Array) -> tuple[int, bool]:
    """Write the keys of non-negative confidences; see `compiled.pack`."""
    highest = 0
    for low in range(0, bits.size, _BLOCK):
        here = slice(low, low + _BLOCK)
        value, key = loss[here], keys[here]
        if not _is_binary(value):
            return 0, False
        highest = max(highest, int(bits[here].max()))
        np.left_shift(bits[here], 1, out=key)
        np.bitwise_or(key, value == 0, out=key)
        np.invert(key, out=key)
    return highest, True


def split(bits: Array, loss: Array, keys: Array, sign: Any, infinity: Any) -> int:
    """Write keys of both signs to the two ends; see `compiled.split`."""
    front, back = 0, keys.size
    for low in range(0, bits.size, _BLOCK):
        here = slice(low, low + _BLOCK)
        if ((bits[here] & ~sign) >= infinity).any():
            return -1
        negative = bits[here] > sign
        key = (bits[here] << 1) | (loss[here] != 0)
        below = key[negative]
        above = ~(key[~negative] ^ 1)
        keys[front : front + above.size] = above
        keys[back - below.size : back] = below
        front, back = front + above.size, back - below.size
    return front


def sweep(keys: Array, split: int) -> tuple[int, int, float, int]:
    """Return failures, rank sum, area and ties; see `compiled.sweep`."""
    end, failed, risk = 0, 0, 0.0
    doubled_ranks, selective, single = 0, 0.0, 0
    for ends, fails in vertex_blocks(keys, split):
        risks = fails / ends
        count, n_failed = np.diff(ends, prepend=end), np.diff(fails, prepend=failed)
        # Products with the vertex before, the last one of the previous block included.
        before = risk if end else float(risks[0])
        doubled_ranks += int(np.dot(n_failed, ends) + np.dot(n_failed[1:], ends[:-1]))
        doubled_ranks += int(n_failed[0]) * end
        selective += float((count * risks).sum() + (count[1:] * risks[:-1]).sum())
        selective += float(count[0]) * before
        single += int(np.count_nonzero(count == 1))
        end, failed, risk = int(ends[-1]), int(fails[-1]), float(risks[-1])
    return failed, doubled_ranks, selective, keys.size - single


def ends(
    keys: Array, opens: bool, closes: bool, merge: bool
) -> tuple[IntArray, IntArray, BoolArray]:
    """Return where groups end among neighboring keys; see `compiled.ends`."""
    is_bound = np.empty(keys.size + 1, np.bool_)
    is_bound[0], is_bound[-1] = opens, closes
    np.greater(keys[1:] ^ keys[:-1], 1, out=is_bound[1:-1])
    is_failure = (keys & 1).astype(np.bool_)
    is_untied_success = is_bound[:-1] & is_bound[1:] & ~is_failure
    is_end = is_bound[1:].copy()
    if merge:
        # Successes are merged up to the last one that no other untied success follows.
        is_end[:-1] &= ~(is_untied_success[:-1] & is_untied_success[1:])
    # A running sum over all keys would take half of the time.
    rows = np.flatnonzero(is_end | is_failure)
    ends_group = is_end[rows]
    last = rows[ends_group]
    fails = np.cumsum(is_failure[rows], dtype=np.int64)[ends_group]
    return last + 1, fails, is_untied_success[last]


def tally(bits: Array, loss: Array, table: IntArray) -> bool:
    """Count (failed, pattern) pairs into the table; see `compiled.tally`."""
    for low in range(0, bits.size, 8 * _BLOCK):
        here = slice(low, low + 8 * _BLOCK)
        if not _is_binary(loss[here]):
            return False
        pair = (loss[here] != 0).astype(np.int64) << 16
        pair |= bits[here]
        table += np.bincount(pair, minlength=table.size).reshape(table.shape)
    return True


def _is_binary(loss: Array) -> bool:
    if loss.dtype.kind == "b":
        return True
    return bool(((loss == 0) | (loss == 1)).all())


def vertex_blocks(keys: Array, split: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield samples and failures accepted through each group, a block of keys at a time."""
    failed = 0
    for begin, stop in ((0, split), (split, keys.size)):
        for low in range(begin, stop, _BLOCK):
            high = min(low + _BLOCK, stop)
            here, ahead = keys[low:high], keys[low + 1 : min(high + 1, stop)]
            last = np.flatnonzero((here[: ahead.size] ^ ahead) > 1)
            if high == stop:
                last = np.append(last, high - low - 1)
            through = np.cumsum(here & 1, dtype=np.int64)
            through += failed
            failed = int(through[-1])
            if last.size:
                yield last + (low + 1), through[last]
