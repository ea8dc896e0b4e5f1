"""Pack a confidence and its 0/1 loss into one sort key, so that one sort orders all samples.

A key is an unsigned integer as wide as the confidence. Bit 0 contains the loss (1 for a failure).
The other bits contain the bit pattern of the confidence without its sign bit. For non-negative
confidences, these bits are inverted, so that ascending keys have descending confidences.

The key does not contain the sign. Keys of non-negative confidences are at the front of the array,
and keys of negative confidences at the back. Both ranges are sorted. Keys of the same sign that
differ at most in bit 0 have the same confidence.

Sorting keys is several times faster than `np.argsort`. 16-bit confidences have 65,536 patterns,
which are counted instead of sorted.

The functions return None for invalid input and for input that keys cannot represent exactly. For
such input, callers use a slower implementation, which validates the input.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, TypeAlias, cast

import numpy as np

from abstain._foundation import blockwise
from abstain._foundation.array_functions import undo_cumulative_sum
from abstain._foundation.lazy_imports import load_kernels
from abstain.typing import Array, BoolArray, FloatArray, IntArray

#: Minimum number of 16-bit confidences for which counting is faster than sorting.
COUNT_FROM = 1 << 15

#: Maximum number of samples. Twice the sum of so many ranks fits into 64 bits.
_MAX_SAMPLES = 1 << 31


class FloatLayout(NamedTuple):
    """Unsigned integer type of a float format, and bit patterns of its sign bit and infinity."""

    unsigned: Any
    sign_bit: int
    infinity: int


_LAYOUTS = {
    np.dtype(np.float32): FloatLayout(np.uint32, 1 << 31, 0x7F800000),
    np.dtype(np.float64): FloatLayout(np.uint64, 1 << 63, 0x7FF << 52),
}
#: Bit patterns of infinity in the 16-bit formats float16 and bfloat16.
HALF_INFINITY, BRAIN_INFINITY = 0x7C00, 0x7F80

_N_PATTERNS = 1 << 16
#: Bit pattern of -0.0 in the 16-bit formats.
_NEGATIVE_ZERO = 0x8000

#: Number of samples from which compiled kernels save more time than loading numba takes.
_N_BEFORE_NUMBA = 50_000_000

#: Number of keys that are passed to one call of `find_group_ends`.
_BLOCK = 1 << 16

_KERNEL_LOSS_DTYPES = {np.dtype(name) for name in ("?", "u1", "i4", "i8", "f4", "f8")}


class PackedKernels(Protocol):
    """Protocol of the kernels in `blockwise` (NumPy) and `compiled` (numba)."""

    pack_nonnegative: Callable[[Array, Array, Array], tuple[int, bool]]
    pack_by_sign: Callable[[Array, Array, Array, Any, Any], int]
    sum_areas: Callable[[Array, int], tuple[int, int, float, int]]
    find_group_ends: Callable[[Array, bool, bool, bool], tuple[IntArray, IntArray, BoolArray]]
    count_patterns: Callable[[Array, Array, IntArray], bool]


_NUMPY = cast("PackedKernels", blockwise)
_COMPILED = "abstain._foundation.compiled"


def kernels() -> PackedKernels:
    """Return the compiled kernels, or the NumPy kernels if numba is missing or disabled."""
    return load_kernels(_COMPILED) or _NUMPY


@dataclass
class KernelSelection:
    """Select NumPy kernels until many samples have been sorted, and then compiled kernels."""

    n_samples: int = 0

    def kernels(self, n: int) -> PackedKernels:
        """Return the kernels to use for the next n samples."""
        is_loaded = _COMPILED in sys.modules
        if is_loaded or self.n_samples >= _N_BEFORE_NUMBA:
            return kernels()
        self.n_samples += n
        return _NUMPY


_SELECTION = KernelSelection()


#: Distinct confidences in descending order, with the weight, the loss and the number of samples of
#: each. The last entry is None if the weight is the number of samples.
Groups: TypeAlias = tuple[Array, FloatArray, FloatArray, IntArray | None]

#: The entries of `Groups` with untied successes merged, and a mask of the merged groups.
MergedGroups: TypeAlias = tuple[Array, FloatArray, FloatArray, IntArray | None, BoolArray]


class VertexBlock(NamedTuple):
    """A block of distinct confidences in descending order, with the fields of `TieGroups`."""

    confidence: Array
    weight: Array
    loss: Array
    cumulative_weight: Array
    cumulative_loss: Array


@dataclass(frozen=True, eq=False)
class PackedKeys:
    """Sorted keys of samples with a 0/1 loss."""

    #: Keys in the order of descending confidence, shape (n,).
    keys: Array
    #: Number of non-negative confidences, whose keys come first.
    n_nonnegative: int
    #: Data type of the confidences, which may be narrower than the keys.
    dtype: np.dtype[Any]
    #: Implementation of the kernels that packed the keys.
    kernels: PackedKernels

    def groups(self) -> Groups:
        """Return the distinct confidences with their numbers of samples and failures."""
        return self._groups(merge=False)[:4]

    def merged_groups(self) -> MergedGroups:
        """Return the tie groups, with consecutive untied successes merged into one group."""
        return self._groups(merge=True)

    def vertices(self) -> Iterator[VertexBlock]:
        """Yield the distinct confidences in blocks."""
        weight_before = 0.0
        loss_before = 0.0
        blocks = blockwise.iterate_group_ends(self.keys, self.n_nonnegative)
        for group_ends, cumulative_failures in blocks:
            cumulative_weight = group_ends.astype(np.float64)
            cumulative_loss = cumulative_failures.astype(np.float64)
            yield VertexBlock(
                confidence=self.confidence_at(group_ends),
                weight=np.diff(cumulative_weight, prepend=weight_before),
                loss=np.diff(cumulative_loss, prepend=loss_before),
                cumulative_weight=cumulative_weight,
                cumulative_loss=cumulative_loss,
            )
            weight_before = cumulative_weight[-1]
            loss_before = cumulative_loss[-1]

    def _groups(self, *, merge: bool) -> MergedGroups:
        """Return the tie groups. With `merge`, consecutive untied successes form one group."""
        blocks = list(self._group_end_blocks(merge=merge))
        group_ends = np.concatenate([ends for ends, _, _ in blocks])
        cumulative_failures = np.concatenate([failures for _, failures, _ in blocks])
        is_merged = np.concatenate([is_untied for _, _, is_untied in blocks])
        n_samples = undo_cumulative_sum(group_ends).astype(np.float64)
        n_failures = undo_cumulative_sum(cumulative_failures).astype(np.float64)
        return self.confidence_at(group_ends), n_samples, n_failures, None, is_merged

    def _group_end_blocks(self, *, merge: bool) -> Iterator[tuple[IntArray, IntArray, BoolArray]]:
        """Yield the results of `find_group_ends` for each block, relative to the first sample."""
        failures_before = 0
        starts_group = True
        for sign_start, sign_end in ((0, self.n_nonnegative), (self.n_nonnegative, self.keys.size)):
            for start in range(sign_start, sign_end, _BLOCK):
                end = min(start + _BLOCK, sign_end)
                block = self.keys[start:end]
                ends_group = end == sign_end or bool((block[-1] ^ self.keys[end]) > 1)
                group_ends, failures, is_merged = self.kernels.find_group_ends(
                    block, starts_group, ends_group, merge
                )
                yield group_ends + start, failures + failures_before, is_merged
                n_finished = 0
                if group_ends.size:
                    failures_before += int(failures[-1])
                    n_finished = int(group_ends[-1])
                # Keys after the last end belong to a group that continues in the next block.
                failures_before += int(np.count_nonzero(block[n_finished:] & 1))
                starts_group = ends_group

    def confidence_at(self, group_ends: IntArray) -> Array:
        """Decode the confidence of each group from its last key."""
        float_dtype = np.dtype(f"f{self.keys.itemsize}")
        layout = _LAYOUTS[float_dtype]
        patterns = self.keys[group_ends - 1]
        first_negative = int(np.searchsorted(group_ends, self.n_nonnegative, side="right"))
        patterns[:first_negative] = ~patterns[:first_negative]
        # The shift removes the loss bit.
        patterns >>= layout.unsigned(1)
        patterns[first_negative:] |= layout.unsigned(layout.sign_bit)
        return patterns.view(float_dtype).astype(self.dtype, copy=False)


def pack_and_sort(
    confidence: Array, loss: Array, implementation: PackedKernels | None = None
) -> PackedKeys | None:
    """Pack samples into keys and sort the keys.

    If a confidence is not a finite float32 or float64 number, or a loss is not 0 or 1, the result
    is None.
    """
    implementation = implementation or kernels()
    layout = _LAYOUTS.get(confidence.dtype)
    kernel_loss = _loss_for_kernels(loss)
    if layout is None or kernel_loss is None or confidence.size > _MAX_SAMPLES:
        return None
    patterns = _view_contiguous(confidence, layout.unsigned)
    keys = np.empty(patterns.size, layout.unsigned)
    max_pattern, is_binary = implementation.pack_nonnegative(patterns, kernel_loss, keys)
    if not is_binary:
        return None
    n_nonnegative = keys.size
    if max_pattern >= layout.infinity:
        # Some confidence is not finite, or it is negative and its sign bit is set.
        sign_bit = layout.unsigned(layout.sign_bit)
        infinity = layout.unsigned(layout.infinity)
        n_nonnegative = implementation.pack_by_sign(patterns, kernel_loss, keys, sign_bit, infinity)
        if n_nonnegative < 0:
            return None
    keys[:n_nonnegative].sort()
    keys[n_nonnegative:].sort()
    return PackedKeys(keys, n_nonnegative, confidence.dtype, implementation)


def _view_contiguous(x: Array, dtype: Any) -> Array:
    """Return a contiguous read-only view."""
    view: Array = np.ascontiguousarray(x).view(dtype)
    view.setflags(write=False)
    return view


def _loss_for_kernels(loss: Array) -> Array | None:
    """Convert the loss to a dtype of the kernels, or return None if the conversion is inexact."""
    if loss.dtype in _KERNEL_LOSS_DTYPES:
        return _view_contiguous(loss, loss.dtype)
    if np.can_cast(loss.dtype, np.float64):
        return _view_contiguous(loss.astype(np.float64), np.float64)
    return None


def sorted_keys(confidence: Array, loss: Array) -> PackedKeys | None:
    """Pack validated samples without weights into keys and sort the keys.

    If keys cannot represent the samples, or counting is faster than sorting, the result is None.
    """
    implementation = _SELECTION.kernels(confidence.size)
    if confidence.dtype != np.float16:
        return pack_and_sort(confidence, loss, implementation)
    if is_counted(confidence):
        return None
    keys = pack_and_sort(confidence.astype(np.float32), loss, implementation)
    return None if keys is None else replace(keys, dtype=confidence.dtype)


def is_counted(confidence: Array) -> bool:
    """Return whether counting bit patterns is faster than sorting the confidences."""
    return confidence.dtype == np.float16 and confidence.size >= COUNT_FROM


def count_failures(
    patterns: Array, loss: Array, implementation: PackedKernels | None = None, *, infinity: int
) -> Groups | None:
    """Group 16-bit confidences with a 0/1 loss by counting bit patterns.

    If a confidence is not finite or a loss is not 0 or 1, the result is None.

    Parameters
    ----------
    patterns : uint16 array of shape (n,)
        Bit patterns of the confidences.
    loss : array of shape (n,)
        Losses.
    implementation : PackedKernels, optional
        Implementation of the kernels.
    infinity : int
        `HALF_INFINITY` for float16, or `BRAIN_INFINITY` for bfloat16. Confidences in bfloat16 are
        returned as float32.
    """
    kernel_loss = _loss_for_kernels(loss)
    if kernel_loss is None:
        return None
    implementation = implementation or kernels()
    contiguous_patterns = _view_contiguous(patterns, patterns.dtype)
    counts = np.zeros((2, _N_PATTERNS), np.int64)
    is_binary = implementation.count_patterns(contiguous_patterns, kernel_loss, counts)
    if not is_binary:
        return None
    n_failures = counts[1]
    n_samples = counts[0] + n_failures
    return _groups_of_patterns(
        n_samples, n_samples.astype(np.float64), n_failures.astype(np.float64), infinity
    )


def count_half_precision(
    confidence: Array, loss: Array, weight: FloatArray | None
) -> Groups | None:
    """Group float16 confidences with any loss and weight by counting bit patterns."""
    patterns = confidence.view(np.uint16)
    if weight is None:
        groups = count_failures(patterns, loss, _NUMPY, infinity=HALF_INFINITY)
        if groups is not None:
            return groups
    n_samples = np.bincount(patterns, minlength=_N_PATTERNS).astype(np.int64)
    weighted_loss = loss.astype(np.float64)
    if weight is None:
        weight_sums = n_samples.astype(np.float64)
    else:
        weight_sums = _sum_by_pattern(patterns, weight)
        weighted_loss *= weight
    loss_sums = _sum_by_pattern(patterns, weighted_loss)
    return _groups_of_patterns(n_samples, weight_sums, loss_sums, HALF_INFINITY)


def _sum_by_pattern(patterns: Array, values: FloatArray) -> FloatArray:
    sums = np.bincount(patterns, weights=values, minlength=_N_PATTERNS)
    return sums.astype(np.float64, copy=False)


def _groups_of_patterns(
    n_samples: IntArray, weight: FloatArray, loss: FloatArray, infinity: int
) -> Groups | None:
    """Return the tie groups, given the sums of each bit pattern.

    If a confidence is infinite or NaN, the result is None.
    """
    for sums_by_pattern in (n_samples, weight, loss):
        # -0.0 equals 0.0, so both patterns form one group.
        sums_by_pattern[0] += sums_by_pattern[_NEGATIVE_ZERO]
        sums_by_pattern[_NEGATIVE_ZERO] = 0
    occurring = np.flatnonzero(n_samples != 0)
    # Ascending patterns are the non-negative numbers and then the negative numbers, both with
    # ascending magnitude.
    nonnegative = occurring[occurring < _NEGATIVE_ZERO]
    negative = occurring[occurring >= _NEGATIVE_ZERO]
    if (nonnegative >= infinity).any() or (negative >= _NEGATIVE_ZERO + infinity).any():
        return None
    descending = np.concatenate((nonnegative[::-1], negative))
    patterns = descending.astype(np.uint16)
    if infinity == HALF_INFINITY:
        confidence: Array = patterns.view(np.float16)
    else:
        confidence = brain_floats(patterns)
    return confidence, weight[descending], loss[descending], n_samples[descending]


def brain_floats(patterns: Array) -> Array:
    """Convert bfloat16 bit patterns to float32 without rounding."""
    return (patterns.astype(np.uint32) << np.uint32(16)).view(np.float32)
