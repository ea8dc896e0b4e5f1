"""Options of the readers, and the class `Reading`, which contains the predictions of each split."""

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

#: Value of `lower_is_safer` and `percent` that selects all confidences.
ALL_CONFIDENCES = ("*",)

_COLUMN_LISTS = ("confidence", "logits", "probabilities", "by", "lower_is_safer", "percent")
_COLUMNS = ("label", "prediction", "correct", "loss", "group", "weight", "id", "long")


@dataclass(frozen=True)
class ReadingOptions:
    """The validated options of `read_predictions`."""

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
    def non_default(self) -> tuple[str, ...]:
        """Names of the options that have no default value."""
        return tuple(f.name for f in fields(self) if getattr(self, f.name) != f.default)


def make_options(**values: Any) -> ReadingOptions:
    """Return the validated options of `read_predictions`."""
    one_of(values["missing"], "missing", ("error", "drop", "reject"))
    one_of(values.get("decimal", "."), "decimal", (".", ","))
    for name in _COLUMN_LISTS:
        values[name] = _column_names(values.get(name), name)
    for name in _COLUMNS:
        column = values.get(name)
        if column is not None and not isinstance(column, str):
            raise InputError(f"{format_option(name)} must be the name of a column; got {column!r}")
    values["unknown_label"] = _as_tuple(values["unknown_label"])
    if values["logits"] and values["probabilities"]:
        raise InputError(
            f"{format_option('logits')} and {format_option('probabilities')} exclude each "
            "other: probabilities are computed from logits"
        )
    if values["correct"] and values["loss"]:
        raise InputError(
            f"{format_option('correct')} and {format_option('loss')} exclude each other: the "
            "loss is 1 - correct"
        )
    return ReadingOptions(**values)


def _as_tuple(labels: Any) -> tuple[Hashable, ...]:
    if labels is None:
        return ()
    return tuple(labels) if isinstance(labels, list | tuple | set | frozenset) else (labels,)


def _column_names(names: ColumnNames | bool | None, option_name: str) -> tuple[str, ...]:
    """Return the column names of an option as a tuple without duplicates."""
    if names is None:
        return ()
    if isinstance(names, bool) and option_name in {"lower_is_safer", "percent"}:
        return ALL_CONFIDENCES if names else ()
    entries: tuple[Any, ...] = (names,) if isinstance(names, str | bool) else tuple(names)
    for entry in entries:
        if not isinstance(entry, str):
            raise InputError(
                f"{format_option(option_name)} must be names of columns; got {entry!r}"
            )
    return tuple(dict.fromkeys(entries))


@dataclass(frozen=True, eq=False)
class Reading(Mapping[Split, Predictions]):
    """Predictions by split, as a mapping from each split of a source to its `Predictions`.

    Parameters
    ----------
    splits : mapping from split to Predictions
        Predictions of each split, in order of first appearance. All splits of a file have the same
        classes.
    notes : tuple of Note
        Remarks on the source, such as the selected columns, dropped rows, labels that are never
        predicted, and the precision of stored numbers. Warnings come last. Causes are a column such
        as `study` that is not used to split the rows, repeated ids, and labels of a single class.
    source : str
        Name of the file, of the files or of the object.

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
            names = "; ".join(split_name(s) for s in list(self.splits)[:12])
            raise UnknownNameError(
                f"{self.source} has no split {split!r}; its splits: {names}"
            ) from None

    def __iter__(self) -> Iterator[Split]:
        """Iterate over the splits in order of first appearance."""
        return iter(self.splits)

    def __len__(self) -> int:
        """Count the splits."""
        return len(self.splits)

    def only(self) -> Predictions:
        """Return the predictions if there is only one split.

        Returns
        -------
        Predictions
            The predictions of the only split.

        Raises
        ------
        InputError
            If there are several splits.
        """
        if len(self.splits) != 1:
            names = "; ".join(split_name(s) for s in list(self.splits)[:8])
            raise InputError(
                f"{self.source} has {len(self.splits)} splits ({names}); select one by its key"
            )
        return next(iter(self.splits.values()))
