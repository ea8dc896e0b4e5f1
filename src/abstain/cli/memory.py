"""What a command does with memory that it has freed."""

import ctypes
import sys

#: Of glibc's `mallopt`: what is freed at the top of the heap goes back to the system from this size
#: on, and so many blocks at most are asked of the system by themselves.
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4


def keep_freed() -> None:
    """Keep what is freed for what comes next, as far as the C library can be told.

    The system clears each page before it gives it away, which takes longer than most arrays take to
    be computed. Only where the process is ours: a program that imports `abstain` may think
    otherwise.
    """
    if sys.platform != "linux":
        return
    tell = getattr(ctypes.CDLL(None), "mallopt", None)
    if tell is not None:
        tell(_TRIM_THRESHOLD, 2**31 - 1)
        tell(_MMAP_MAX, 0)
