"""Devices for jobs: their names, whether they exist, and the device of each process.

Only `check_devices_available` requires torch.
"""

from collections.abc import Iterable, Sequence

from abstain.errors import InputError

#: Index of this process among the processes that share the devices.
_process_index = 0


def parse_devices(text: str) -> tuple[str, ...]:
    """Parse a list of devices, such as "cuda:0, cuda:1"."""
    names = tuple(part.strip() for part in text.split(","))
    for name in names:
        kind, colon, index = name.partition(":")
        if not kind.isalpha() or (colon and not (index.isascii() and index.isdigit())):
            raise InputError(
                f"`device` must be like 'cpu', 'cuda' or 'cuda:0,cuda:1'; got {text!r}"
            )
        if len(names) > 1 and not colon:
            raise InputError(f"`device` must number the devices if there are several; got {text!r}")
    if len(set(names)) < len(names):
        raise InputError(f"`device` must name each device once; got {text!r}")
    device_kind(names)
    return names


def device_kind(devices: Sequence[str]) -> str:
    """Return the kind of devices, such as "cuda". Results depend on the kind only."""
    kinds = sorted({name.partition(":")[0] for name in devices})
    if len(kinds) != 1:
        raise InputError(
            f"`device` must name devices of one kind; got {', '.join(kinds) or 'none'}"
        )
    return kinds[0]


def check_devices_available(devices: Iterable[str]) -> None:
    """Raise an error for devices that cannot be used."""
    from abstain_bench._torch import torch

    for name in devices:
        try:
            # A device without data ("meta") cannot return a value.
            torch.zeros(1, device=torch.device(name)).item()
        except (RuntimeError, AssertionError, TypeError) as error:
            first_line = (str(error).splitlines() or [""])[0]
            raise InputError(f"`device` {name!r} cannot be used: {first_line}") from None


def device_of_this_process(devices: Sequence[str]) -> str:
    """Return the device of the current process; the processes use the devices in turn.

    A process that replaces one that died uses its device. Outside of `run_jobs`, it is the first
    device.

    Examples
    --------
    >>> from abstain_bench.runs.jobs.devices import device_of_this_process
    >>> device_of_this_process(["cuda:0", "cuda:1"])
    'cuda:0'
    """
    return devices[_process_index % len(devices)]


def set_process_index(number: int) -> None:
    """Set the index of this process among those that share the devices."""
    global _process_index  # noqa: PLW0603  the index belongs to the process
    _process_index = number
