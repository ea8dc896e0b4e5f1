"""Which columns of a file are confidences, and what the methods of them are called."""

import re
from collections.abc import Sequence
from typing import Final

from abstain.benchmark.added import AddedFacts
from abstain.benchmark.methods import METHODS
from abstain.benchmark.others.rows import PLACE
from abstain.benchmark.store import Store
from abstain.errors import InputError, UnknownNameError, suggest
from abstain.tables.table import Table

__all__ = ["methods_of", "refuse_taken", "titled", "unused"]

#: Columns that are no confidences, beside the logits that `export` writes.
_OTHERS: Final = (*PLACE, "label", "prediction")
_LOGIT = re.compile(r"logit_\d+")
#: What a method may be called: its name becomes part of names of files.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,59}")


def methods_of(table: Table, columns: Sequence[str], name: str | None) -> dict[str, str]:
    """Return the name of the method of each column of confidences."""
    given = (columns,) if isinstance(columns, str) else tuple(columns)
    for column in given:
        if column not in table.kinds:
            msg = f"{table.source} has no column {column!r}.{suggest(column, table.names)}"
            raise UnknownNameError(msg)
    found = given or tuple(
        column
        for column, kind in table.kinds.items()
        if kind == "number" and column not in _OTHERS and not _LOGIT.fullmatch(column)
    )
    if not found:
        msg = (
            f"{table.source} has no column of confidences beside {', '.join(table.names)}; "
            "each other column of numbers would be one"
        )
        raise InputError(msg)
    if name is None:
        return {column: column for column in found}
    return {found[0]: name} if len(found) == 1 else {c: f"{name}-{c}" for c in found}


def refuse_taken(name: str, store: Store, before: Sequence[AddedFacts], replace: bool) -> None:
    """Refuse a name that cannot be one, or that a method has already."""
    if not _NAME.fullmatch(name):
        msg = (
            "a method must be named with up to 60 letters, digits, dots, hyphens, underscores and "
            f"plus signs; got {name!r}. Give it another with `name`"
        )
        raise InputError(msg)
    known = {method for kept in store.kept for method in kept.validated}
    if name in METHODS or name in known or name in {run.arm for run in store.runs}:
        msg = f"{name!r} is the name of a method or an arm of the benchmark; choose another `name`"
        raise InputError(msg)
    if not replace and name in {one.name for one in before}:
        msg = f"a method {name!r} was added before; choose another `name`, or ask to replace it"
        raise InputError(msg)


def titled(title: str, column: str, name: str, count: int) -> str:
    """Return what people read: the title given, with the column where there are several."""
    if not title:
        return name
    return title if count == 1 else f"{title}, {column}"


def unused(table: Table, asked: dict[str, str]) -> list[str]:
    """Return the columns that nothing is made of."""
    left = [
        column
        for column in table.names
        if column not in asked and column not in _OTHERS and not _LOGIT.fullmatch(column)
    ]
    return [f"not used: {', '.join(map(repr, left))}"] if left else []
