"""Import torch or raise a one-line error, and run torch in one thread."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

try:
    import torch
except Exception as error:  # noqa: BLE001  a library that breaks on import raises anything
    if not isinstance(error, ModuleNotFoundError) or error.name != "torch":
        first = f"{type(error).__name__}: {error}".splitlines()[0]
        raise ImportError(f"torch cannot be imported ({first})") from None
    raise ModuleNotFoundError(
        "abstain-bench needs torch: pip install torch", name="torch"
    ) from None

__all__ = ["accelerators", "one_thread", "torch"]


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute in one thread, because threads that compete for a core are slower."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)


def accelerators(device: Any) -> list[Any]:
    """Return the devices whose generators must be restored in addition to that of the CPU."""
    torch_device = torch.device(device)
    return [] if torch_device.type == "cpu" else [torch_device]
