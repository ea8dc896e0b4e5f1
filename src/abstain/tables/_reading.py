"""What is asked of a source, normalized once, and what comes back: predictions by split."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from abstain._foundation.checks import one_of
from abstain._foundation.names import split_name
from abstain._foundation.notes import Note
from abstain._foundation.option_format import format_option
from abstain.errors import InputError, UnknownNameError
from abstain.predictions import Predictions
from abstain.typing import Split

ColumnNames = str | Iterable[str]

#: As `lower_is_safer` and `percent`: every column of confidence.
ALL = ("*",)


@dataclass(frozen=True)
class ReadingOptions:
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
    long: str | None = None
    unknown_label: tuple[Hashable, ...] = ()
    missing: str = "error"
    lower_is_safer: tuple[str, ...] = ()
    percent: tuple[str, ...] = ()
    decimal: str = "."
    renormalize: bool = False
    masked: bool = False
    unlabeled: bool = False

    @property
    def given(self) -> tuple[str, ...]:
        """The options that differ from their default."""
        return tuple(f.name for f in fields(self) if getattr(self, f.name) != f.default)


def options(**given: Any) -> ReadingOptions:
    """Normalize and check the options."""
    one_of(given["missing"], "missing", ("error", "drop", "reject"))
    one_of(given.get("decimal", "."), "decimal", (".", ","))
    for name in ("confidence", "logits", "probabilities", "by", "lower_is_safer", "percent"):
        given[name] = _several(given.get(name), name)
    for name in ("label", "prediction", "correct", "loss", "group", "weight", "id", "long"):
        if given.get(name) is not None and not isinstance(given[name], str):
            raise InputError(
                f"{format_option(name)} must be the name of a column; got {given[name]!r}"
            )
    unknown = given["unknown_label"]
    several = isinstance(unknown, list | tuple | set | frozenset)
    given["unknown_label"] = () if unknown is None else tuple(unknown) if several else (unknown,)
    if given["logits"] and given["probabilities"]:
        either = f"{format_option('logits')} or {format_option('probabilities')}"
        raise InputError(f"give either {either}, not both; the other follows from the one")
    if given["correct"] and given["loss"]:
        either = f"{format_option('correct')} or {format_option('loss')}"
        raise InputError(f"give either {either}, not both: the loss is 1 - correct")
    return ReadingOptions(**given)


def _several(x: ColumnNames | bool | None, name: str) -> tuple[str, ...]:
    if x is None:
        return ()
    if isinstance(x, bool) and name in {"lower_is_safer", "percent"}:
        return ALL if x else ()
    entries: tuple[Any, ...] = (x,) if isinstance(x, str | bool) else tuple(x)
    for entry in entries:
        if not isinstance(entry, str):
            raise InputError(f"{format_option(name)} must hold names of columns; got {entry!r}")
    return tuple(dict.fromkeys(entries))


@dataclass(frozen=True, eq=False)
class Reading(Mapping[Split, Predictions]):
    """The predictions of a source, one record for each split; a mapping over the splits.

    Parameters
    ----------
    splits : mapping from split to Predictions
        In order of first appearance. Splits of one file share their classes.
    notes : tuple of Note
        What was met and decided: the columns that are read, rows dropped, labels that are never
        predicted, the precision of the storage. Warnings come last: a column that sets rows apart
        and was not asked for, names that repeat, labels of one class only.
    source : str
        The name of the file, the files or the object that was read.

    Examples
    --------
    >>> from abstain.tables import read_predictions
    >>> columns = {"label": [0, 1, 1], "prediction": [0, 1, 0], "confidence": [0.9, 0.8, 0.6]}
    >>> reading = read_predictions(columns)
    >>> list(reading), reading.only().n
    ([()], 3)
    """

    splits: Mapping[Split, Predictions]
    notes: tuple[Note, ...] = ()
    source: str = field(default="")

    @property
    def warnings(self) -> tuple[Note, ...]:
        """The notes that are warnings."""
        return tuple(note for note in self.notes if note.level == "warning")

    def __getitem__(self, split: Split) -> Predictions:
        """Return the predictions of a split."""
        try:
            return self.splits[split]
        except KeyError:
            known = "; ".join(split_name(s) for s in list(self.splits)[:12])
            raise UnknownNameError(
                f"there is no split {split!r} in {self.source}; it has: {known}"
            ) from None

    def __iter__(self) -> Iterator[Split]:
        """Iterate over the splits in order of first appearance."""
        return iter(self.splits)

    def __len__(self) -> int:
        """Count the splits."""
        return len(self.splits)

    def only(self) -> Predictions:
        """Return the predictions of a source with a single split.

        Returns
        -------
        Predictions
            The record.

        Raises
        ------
        InputError
            There are several splits.
        """
        if len(self.splits) != 1:
            names = "; ".join(split_name(s) for s in list(self.splits)[:8])
            raise InputError(
                f"{self.source} has {len(self.splits)} splits ({names}); choose one by its key"
            )
        return next(iter(self.splits.values()))
