"""Format options in messages as keyword arguments or as command-line flags."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

#: Function that formats an option name and its value, where None stands for no value.
Writer = Callable[[str, object], str]


def _as_keyword(name: str, value: object) -> str:
    return f"`{name}`" if value is None else f"{name}={value!r}"


_WRITER: ContextVar[Writer] = ContextVar("writer", default=_as_keyword)


def format_option(name: str, value: object = None) -> str:
    """Format an option as a keyword argument, or as a flag on the command line.

    Examples
    --------
    >>> format_option("label", "y"), format_option("label")
    ("label='y'", '`label`')
    """
    return _WRITER.get()(name, value)


@contextmanager
def option_format(writer: Writer) -> Iterator[None]:
    """Format options by another function inside the block, for example as command-line flags."""
    token = _WRITER.set(writer)
    try:
        yield
    finally:
        _WRITER.reset(token)
