"""Settings of the memory allocator for commands."""

import ctypes
import sys

#: Parameters of `mallopt` in glibc. The first is the size of free memory at the top of the heap
#: from which the memory is returned to the system. The second is the maximum number of blocks that
#: are mapped separately.
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4


def retain_freed_memory() -> None:
    """Reuse freed memory instead of returning it to the system, if the C library supports this.

    The system clears each new page, which takes longer than the computation of most arrays. The
    setting applies to the complete process, so only commands use it.
    """
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_TRIM_THRESHOLD, 2**31 - 1)
        mallopt(_MMAP_MAX, 0)
