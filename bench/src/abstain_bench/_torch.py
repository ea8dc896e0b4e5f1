"""Import torch, or raise an error with installation instructions, and limit torch to one thread."""

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
    """Limit torch to one thread, because parallel jobs that compete for cores run slower."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)


def accelerators(device: Any) -> list[Any]:
    """Return the devices, other than the CPU, whose random states must be saved and restored."""
    torch_device = torch.device(device)
    return [] if torch_device.type == "cpu" else [torch_device]
