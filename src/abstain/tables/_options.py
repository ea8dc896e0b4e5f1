"""What the caller asked for, normalized once."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, fields
from typing import Any, TypedDict

from abstain._foundation.checks import one_of
from abstain._foundation.option_words import option
from abstain.errors import InputError, suggest

ColumnNames = str | Iterable[str]


class MoreColumns(TypedDict, total=False):
    """Columns that `read_predictions` takes besides those of every file."""

    correct: str | None
    loss: str | None
    group: str | None
    weight: str | None
    id: str | None
    lower_is_safer: bool | ColumnNames
    renormalize: bool
    masked: bool


_MORE = ("correct", "loss", "group", "weight", "id")

#: As `lower_is_safer`: every column of confidence.
ALL = ("*",)


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
    lower_is_safer: tuple[str, ...] = ()
    renormalize: bool = False
    masked: bool = False

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
    for name in ("confidence", "logits", "probabilities", "by", "lower_is_safer"):
        given[name] = _several(given.get(name), name)
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


def _several(x: ColumnNames | bool | None, name: str) -> tuple[str, ...]:
    if x is None:
        return ()
    if isinstance(x, bool) and name == "lower_is_safer":
        return ALL if x else ()
    entries: tuple[Any, ...] = (x,) if isinstance(x, str | bool) else tuple(x)
    for entry in entries:
        if not isinstance(entry, str):
            msg = f"{option(name)} must hold names of columns; got {entry!r}"
            raise InputError(msg)
    return tuple(dict.fromkeys(entries))
