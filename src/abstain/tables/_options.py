"""What the caller asked for, normalized once, and how messages write an option."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from typing import Any, TypedDict

from abstain._foundation.checks import one_of
from abstain.errors import InputError, suggest

ColumnNames = str | Iterable[str]


class MoreColumns(TypedDict, total=False):
    """Columns that `read_predictions` takes besides those of every file."""

    correct: str | None
    loss: str | None
    group: str | None
    weight: str | None
    id: str | None


_MORE = ("correct", "loss", "group", "weight", "id")

#: Writes an option for messages, with a value to give it or without.
Writer = Callable[[str, object], str]


def _as_keyword(name: str, value: object) -> str:
    return f"`{name}`" if value is None else f"{name}={value!r}"


_WRITER: ContextVar[Writer] = ContextVar("writer", default=_as_keyword)


def option(name: str, value: object = None) -> str:
    """Write an option of `read_predictions` the way the caller gives it.

    Examples
    --------
    >>> option("label", "y"), option("label")
    ("label='y'", '`label`')
    """
    return _WRITER.get()(name, value)


@contextmanager
def options_written(writer: Writer) -> Iterator[None]:
    """Let `option` write otherwise inside the block: a command line has flags, not keywords.

    The writer decides while a message is made, so no text of the data is ever taken for one.
    """
    token = _WRITER.set(writer)
    try:
        yield
    finally:
        _WRITER.reset(token)


@dataclass(frozen=True)
class Options:
    """The options of `read_predictions`; names of columns, not yet looked up."""

    label: str | None = None
    prediction: str | None = None
    confidence: tuple[str, ...] = ()
    correct: str | None = None
    loss: str | None = None
    logits: tuple[str, ...] = ()
    probabilities: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    group: str | None = None
    weight: str | None = None
    id: str | None = None
    unknown_label: tuple[Hashable, ...] = ()
    missing: str = "error"

    @property
    def given(self) -> tuple[str, ...]:
        """The options that differ from their default."""
        return tuple(f.name for f in fields(self) if getattr(self, f.name) != f.default)


def options(**given: Any) -> Options:
    """Normalize and check the options."""
    known = [f.name for f in fields(Options)]
    for name in given:
        if name not in known:
            msg = f"read_predictions() has no option {name!r}.{suggest(name, known)}"
            raise TypeError(msg)
    given = dict.fromkeys(_MORE) | given
    one_of(given["missing"], "missing", ("error", "drop", "reject"))
    for name in ("confidence", "logits", "probabilities", "by"):
        given[name] = _several(given[name], name)
    for name in ("label", "prediction", "correct", "loss", "group", "weight", "id"):
        if given[name] is not None and not isinstance(given[name], str):
            msg = f"{option(name)} must be the name of a column; got {given[name]!r}"
            raise InputError(msg)
    unknown = given["unknown_label"]
    several = isinstance(unknown, list | tuple | set | frozenset)
    given["unknown_label"] = () if unknown is None else tuple(unknown) if several else (unknown,)
    if given["logits"] and given["probabilities"]:
        either = f"{option('logits')} or {option('probabilities')}"
        msg = f"give either {either}, not both; the other follows from the one"
        raise InputError(msg)
    if given["correct"] and given["loss"]:
        either = f"{option('correct')} or {option('loss')}"
        msg = f"give either {either}, not both: the loss is 1 - correct"
        raise InputError(msg)
    return Options(**given)


def _several(x: ColumnNames | None, name: str) -> tuple[str, ...]:
    if x is None:
        return ()
    entries: tuple[Any, ...] = (x,) if isinstance(x, str) else tuple(x)
    for entry in entries:
        if not isinstance(entry, str):
            msg = f"{option(name)} must hold names of columns; got {entry!r}"
            raise InputError(msg)
    return tuple(dict.fromkeys(entries))
