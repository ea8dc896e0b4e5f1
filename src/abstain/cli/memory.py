"""Settings of the memory allocator for commands."""

import ctypes
import sys

#: Parameters of `mallopt` in glibc. The first is the size of free memory at the top of the heap
#: from which the memory is returned to the system. The second is the maximum number of blocks that
#: are mapped separately.
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4


def retain_freed_memory() -> None:
    """Make the allocator reuse freed memory, if the C library supports this setting.

    By default, freed memory returns to the system, which clears each page before its next use. This
    takes longer than most computations. The setting affects the whole process, so the library
    itself does not use it.
    """
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_TRIM_THRESHOLD, 2**31 - 1)
        mallopt(_MMAP_MAX, 0)
