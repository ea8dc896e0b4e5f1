"""How messages write an option: as the keyword it is, or as the flag of a command line."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

#: Writes an option for messages, with a value to give it or without.
Writer = Callable[[str, object], str]


def _as_keyword(name: str, value: object) -> str:
    return f"`{name}`" if value is None else f"{name}={value!r}"


_WRITER: ContextVar[Writer] = ContextVar("writer", default=_as_keyword)


def format_option(name: str, value: object = None) -> str:
    """Write an option the way the caller gives it.

    Examples
    --------
    >>> format_option("label", "y"), format_option("label")
    ("label='y'", '`label`')
    """
    return _WRITER.get()(name, value)


@contextmanager
def option_format(writer: Writer) -> Iterator[None]:
    """Let `option` write otherwise inside the block: a command line has flags, not keywords.

    The writer decides while a message is made, so no text of the data is ever taken for one.
    """
    token = _WRITER.set(writer)
    try:
        yield
    finally:
        _WRITER.reset(token)
