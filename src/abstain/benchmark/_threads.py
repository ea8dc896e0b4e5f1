"""One thread for torch: two that compete for a core are slower than one."""

from collections.abc import Iterator
from contextlib import contextmanager

from abstain.benchmark._library import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute in one thread, and put it back afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
