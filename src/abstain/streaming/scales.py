"""Which bin a confidence falls into: maps that keep the order and need no range in advance.

Written with operations that NumPy and PyTorch share and that round nowhere (bit patterns, an
exact difference, a power of two), so that both give the same bins on every device, and so that
a larger confidence never falls into a lower bin: the certificates rest on that.
"""

from typing import Any, Literal, TypeAlias, get_args

from abstain._foundation import checks
from abstain.errors import InputError

Scale: TypeAlias = Literal["probability", "log-odds", "real"]

SCALES: tuple[str, ...] = get_args(Scale)

#: The number of bins that makes bfloat16 probabilities exact, and float16 ones from 1/32 up.
DEFAULT_BINS = 2**16
_FEWEST, _MOST = 2**8, 2**24

# Octaves on either side of 1/2 ("probability") and of 0 ("real"), and the lowest one. Below
# 2^-33 a probability is 0 or 1 for any purpose here; what is outside shares the last bin.
_SIDES = {"probability": (32, -33), "real": (64, -32)}
# Log-odds from -64 to 64; beyond, a float64 probability is 0 or 1.
_LOG_ODDS = 64


def checked_scale(scale: str) -> str:
    """Validate the name of a scale."""
    return checks.one_of(scale, "scale", SCALES)


def checked_bins(bins: int) -> int:
    """Validate a number of bins: a power of two, so that an octave has whole bins."""
    count = checks.positive_int(bins, "bins")
    if count & (count - 1) or not _FEWEST <= count <= _MOST:
        raise InputError(f"`bins` must be a power of two from {_FEWEST} to {_MOST}; got {count}")
    return count


def bin_index(xp: Any, confidence: Any, *, scale: str, bins: int) -> Any:
    """Return the bin of each confidence, shape (n,), int64; `xp` is numpy or torch."""
    half = bins // 2
    if scale == "log-odds":
        near = confidence.clip(-_LOG_ODDS, _LOG_ODDS)
        steps = xp.floor(near * (half // _LOG_ODDS))
        return (_as_int(xp, steps) + half).clip(0, bins - 1)
    if scale == "probability":
        upper = confidence >= 0.5
        # 1 - p is exact from 1/2 on.
        tail = xp.where(upper, 1 - confidence, confidence)
        # Half of the bins by octave, for where probabilities crowd, half evenly, for where the
        # failures are: the sum of two maps that keep the order keeps it too.
        steps = _steps(xp, tail, scale, half // 2) + _as_int(xp, xp.floor(tail * half))
        return xp.where(upper, bins - 1 - steps, steps)
    steps = _steps(xp, xp.abs(confidence), scale, half)
    return xp.where(confidence < 0, half - steps, half + steps)


def _steps(xp: Any, size: Any, scale: str, count: int) -> Any:
    """Return 0 for 0, else 1 to count - 1: the octave and, within it, evenly."""
    octaves, lowest = _SIDES[scale]
    fine = (count // octaves).bit_length() - 1
    wide = size.dtype == xp.float64
    mantissa, bias = (52, 1023) if wide else (23, 127)
    bits = size.view(xp.int64 if wide else xp.int32)
    steps = (bits >> (mantissa - fine)) - ((bias + lowest) << fine)
    steps = _as_int(xp, steps.clip(1, count - 1))
    return xp.where(size == 0, xp.zeros_like(steps), steps)


def _as_int(xp: Any, x: Any) -> Any:
    return x.astype(xp.int64) if hasattr(x, "astype") else x.to(xp.int64)
