"""Map confidences to bins, monotonically and without a range that is known in advance.

The maps use only operations that NumPy and PyTorch share and that do not round: bit patterns, an
exact difference, powers of two. Both libraries therefore compute the same bins on every device, and
a larger confidence never belongs to a lower bin. The certified limits require this.
"""

from typing import Any, Literal, TypeAlias, get_args

from abstain._foundation import checks
from abstain.errors import InputError

Scale: TypeAlias = Literal["probability", "log-odds", "real"]

SCALES: tuple[str, ...] = get_args(Scale)

#: With this many bins, each bfloat16 probability and each float16 probability from 1/32 up has a
#: bin for itself.
DEFAULT_BINS = 2**16
_MIN_BINS, _MAX_BINS = 2**8, 2**24

# Number of octaves on each side of 1/2 ("probability") or of 0 ("real"), and the exponent of the
# lowest octave. Values outside share the outermost bin: probabilities below 2^-33 are treated as 0.
_OCTAVES = {"probability": (32, -33), "real": (64, -32)}
# Log-odds are clipped to [-64, 64]; outside, a float64 probability is 0 or 1.
_MAX_LOG_ODDS = 64


def check_scale(scale: str) -> str:
    """Return the name of a scale; raise an error if there is no such scale."""
    return checks.one_of(scale, "scale", SCALES)


def check_bins(bins: int) -> int:
    """Return a number of bins; it must be a power of two so that bins do not cross octaves."""
    count = checks.positive_int(bins, "bins")
    if count & (count - 1) or not _MIN_BINS <= count <= _MAX_BINS:
        raise InputError(
            f"`bins` must be a power of two from {_MIN_BINS} to {_MAX_BINS}; got {count}"
        )
    return count


def bin_index(xp: Any, confidence: Any, *, scale: str, bins: int) -> Any:
    """Return the bin of each confidence, shape (n,), int64; `xp` is numpy or torch."""
    half_bins = bins // 2
    if scale == "log-odds":
        clipped = confidence.clip(-_MAX_LOG_ODDS, _MAX_LOG_ODDS)
        offset = xp.floor(clipped * (half_bins // _MAX_LOG_ODDS))
        return (_as_int(xp, offset) + half_bins).clip(0, bins - 1)
    if scale == "probability":
        is_upper = confidence >= 0.5
        # 1 - p is exact for p >= 1/2.
        tail = xp.where(is_upper, 1 - confidence, confidence)
        # Half of the bins resolve octaves, where confident probabilities accumulate; the other half
        # is evenly spaced, where most failures are. The sum of two monotone maps is monotone.
        offset = _octave_index(xp, tail, scale, half_bins // 2) + _as_int(
            xp, xp.floor(tail * half_bins)
        )
        return xp.where(is_upper, bins - 1 - offset, offset)
    offset = _octave_index(xp, xp.abs(confidence), scale, half_bins)
    return xp.where(confidence < 0, half_bins - offset, half_bins + offset)


def _octave_index(xp: Any, magnitude: Any, scale: str, n_bins: int) -> Any:
    """Return 0 for 0, and 1 to n_bins - 1 for others: bins of equal width within each octave."""
    n_octaves, lowest_exponent = _OCTAVES[scale]
    n_bits_per_octave = (n_bins // n_octaves).bit_length() - 1
    is_double = magnitude.dtype == xp.float64
    mantissa_bits, exponent_bias = (52, 1023) if is_double else (23, 127)
    # Exponent and mantissa of a positive float, read as one integer, grow with the float.
    bits = magnitude.view(xp.int64 if is_double else xp.int32)
    lowest_index = (exponent_bias + lowest_exponent) << n_bits_per_octave
    index = (bits >> (mantissa_bits - n_bits_per_octave)) - lowest_index
    index = _as_int(xp, index.clip(1, n_bins - 1))
    return xp.where(magnitude == 0, xp.zeros_like(index), index)


def _as_int(xp: Any, x: Any) -> Any:
    return x.astype(xp.int64) if hasattr(x, "astype") else x.to(xp.int64)
