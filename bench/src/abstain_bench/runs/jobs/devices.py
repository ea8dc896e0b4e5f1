"""Where jobs compute: devices by name, whether they are there, and which one is whose.

Needs torch only when asked whether a device is there.
"""

from collections.abc import Iterable, Sequence

from abstain.errors import InputError

#: Which of the processes that share the devices this one is.
_number = 0


def devices_of(text: str) -> tuple[str, ...]:
    """Read a list of devices: "cuda:0, cuda:1"."""
    names = tuple(part.strip() for part in text.split(","))
    for name in names:
        kind, colon, index = name.partition(":")
        if not kind.isalpha() or (colon and not (index.isascii() and index.isdigit())):
            raise InputError(
                f"`device` must be like 'cpu', 'cuda' or 'cuda:0,cuda:1'; got {text!r}"
            )
        if len(names) > 1 and not colon:
            raise InputError(
                f"`device` must number the devices where there are several; got {text!r}"
            )
    if len(set(names)) < len(names):
        raise InputError(f"`device` must name each device once; got {text!r}")
    kind_of(names)
    return names


def kind_of(devices: Sequence[str]) -> str:
    """Return the kind of devices: results depend on it, and not on which of a kind it is."""
    kinds = sorted({name.partition(":")[0] for name in devices})
    if len(kinds) != 1:
        raise InputError(
            f"`device` must name devices of one kind; got {', '.join(kinds) or 'none'}"
        )
    return kinds[0]


def refuse_absent(devices: Iterable[str]) -> None:
    """Refuse devices that cannot be used, before every job fails on them."""
    from abstain_bench._torch import torch

    for name in devices:
        try:
            # A device without numbers ("meta") has no value to give back.
            torch.zeros(1, device=torch.device(name)).item()
        except (RuntimeError, AssertionError, TypeError) as error:
            first = (str(error).splitlines() or [""])[0]
            raise InputError(f"`device` {name!r} cannot be used: {first}") from None


def device_of_this_process(devices: Sequence[str]) -> str:
    """Return the device of the process that asks: they are dealt out in turn.

    A process that takes the place of one that died takes its device too. Outside `run_jobs` it is
    the first.

    Examples
    --------
    >>> from abstain_bench.runs.jobs.devices import device_of_this_process
    >>> device_of_this_process(["cuda:0", "cuda:1"])
    'cuda:0'
    """
    return devices[_number % len(devices)]


def number_this_process(number: int) -> None:
    """Say which of the processes that share the devices this one is, counted from 0."""
    global _number  # noqa: PLW0603  a process has one number
    _number = number
