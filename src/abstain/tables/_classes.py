"""Labels, predictions and class scores of a table, brought to one set of classes."""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from abstain._foundation.notes import READING, Note
from abstain._foundation.option_format import format_option
from abstain.errors import InputError
from abstain.predictions.classes import CodedNames
from abstain.tables import _roles
from abstain.tables._choice import ChosenColumns
from abstain.tables._reading import ReadingOptions
from abstain.tables._roles import as_numbers
from abstain.tables.column import DataColumn, Missing, count
from abstain.tables.table import DataTable
from abstain.typing import Array, BoolArray


@dataclass
class Builder:
    """What is read, and the arguments of `Predictions` that came of it so far."""

    #: What is read, which columns, and how.
    table: DataTable
    chosen: ChosenColumns
    asked: ReadingOptions
    #: The loaded columns.
    columns: dict[str, DataColumn]
    #: What was done about missing entries.
    missing: Missing
    #: Arguments for `Predictions`, all rows.
    fields: dict[str, Any] = field(default_factory=dict)
    #: What was decided on the way.
    notes: list[Note] = field(default_factory=list)

    def number(self, name: str, what: str) -> DataColumn:
        """Return a loaded column as numbers, or refuse it."""
        return as_numbers(self.columns[name], what, self.table.source, typeless=self.table.typeless)

    def forget(self, names: Sequence[str]) -> None:
        """Let columns go, the most of a file, where nothing else is made of them."""
        used = Counter(self.chosen.names())
        for name in names:
            if used[name] == 1:
                del self.columns[name]


#: As `unknown_label`: every label that no column of the class scores stands for.
REST = "*"


def answers(b: Builder) -> None:
    """Fill in labels, prediction, class scores and classes."""
    label = None
    if b.chosen.label is not None:
        label = b.missing.required(_roles.plain(b.columns[b.chosen.label]), "label")
    if b.chosen.scores:
        _scores(b, label)
        return
    prediction = None
    if b.chosen.prediction is not None:
        prediction = _roles.plain(b.columns[b.chosen.prediction])
    if label is not None and prediction is not None:
        label, prediction = _as_written(b, label, prediction)
        label, prediction, note = _roles.alike(label, prediction)
        b.notes += [Note(READING, note)] if note else []
    if label is not None:
        b.fields["labels"] = _labels(b, label, _marks(b, label))
    if prediction is not None:
        b.fields["prediction"] = _prediction(b, prediction)


def _as_written(
    b: Builder, label: DataColumn, prediction: DataColumn
) -> tuple[DataColumn, DataColumn]:
    """Read both anew as text where a format without types would make 007 and 7 one class."""
    if b.table.as_written is None or (label.is_text and prediction.is_text):
        return label, prediction
    written = b.table.as_written(label.name), b.table.as_written(prediction.name)
    if not (label.is_text or prediction.is_text):
        if all(_roles.canonical(column) for column in written):
            return label, prediction
        b.notes.append(
            Note(
                READING,
                f"{label.name!r} and {prediction.name!r} write the same number in several ways "
                "(such as 07 and 7): compared as text",
            )
        )
    return written


def _prediction(b: Builder, prediction: DataColumn) -> Array | CodedNames:
    values = _roles.class_values(prediction)
    if prediction.missing is None:
        return values
    b.missing.answers(prediction.missing, prediction.name, "prediction")
    # The empty text is a class that no label has: never right, and shown as what it is.
    out: Array = np.where(prediction.missing, "", np.asarray(values).astype(object))
    return out


# ------------------------------------------------------------------------------------ labels
def _marks(b: Builder, label: DataColumn) -> list[Hashable]:
    """Return the labels of no known class, in the type of the column."""
    return [_like(mark, label) for mark in b.asked.unknown_label]


def _like(mark: Hashable, label: DataColumn) -> Hashable:
    """Give a label from a command line the type of the column."""
    if label.is_text:
        return str(mark)
    try:
        return int(str(mark))
    except ValueError:
        raise InputError(
            f"{format_option('unknown_label')} must be a number, as column {label.name!r} holds "
            f"numbers; got {mark!r}"
        ) from None


def _labels(b: Builder, label: DataColumn, marks: list[Hashable]) -> Array | CodedNames:
    """Return the labels, with all values that mark unknown classes made one."""
    values = _roles.class_values(label)
    if not marks:
        return values
    found = _is_in(label, marks)
    b.fields["unknown_label"] = marks[0]
    if not found.any():
        shown = ", ".join(map(repr, marks))
        b.notes.append(
            Note(READING, f"no sample has the label {shown}, given as of no known class")
        )
        return values
    b.notes.append(Note(READING, "are of no known class: always wrong", rows=count(found)))
    if len(marks) == 1:
        return values
    out: Array = np.where(found, np.array(marks[0], values.dtype), np.asarray(values))
    return out


def _is_in(label: DataColumn, marks: list[Hashable]) -> BoolArray:
    out: BoolArray
    if label.texts is None:
        out = np.isin(label.values, np.array(marks))
    else:
        hit = np.array([*(t in marks for t in label.texts), False])
        out = hit[label.values]
    return out


# ------------------------------------------------------------------------------------ scores
def _scores(b: Builder, label: DataColumn | None) -> None:
    kind, names = b.chosen.scores_kind, b.chosen.scores
    columns = [b.columns[n] if b.columns[n].values.ndim > 1 else b.number(n, kind) for n in names]
    block = _roles.scores_block(columns, kind, b.table.source)
    b.forget(names)
    if len(columns) == 1 and columns[0].values.ndim == 1:
        b.notes.append(
            Note(READING, f"{names[0]!r} is taken for the {kind} of the second of two classes")
        )
    nothing = _roles.empty_answers(block)
    if kind == "probabilities":
        nothing |= _roles.zero_rows(block)
    what = f"{kind} (missing throughout, or all of them 0)"
    b.missing.answers(nothing, b.chosen.pattern or names[0], what)
    if b.missing.abstained is not None:
        block = block.copy()
        # Equal scores are the lowest confidence that class scores can express.
        block[nothing] = 1 / block.shape[1] if kind == "probabilities" else 0
    b.fields[kind] = block
    classes: tuple[Hashable, ...] = tuple(range(block.shape[-1]))
    if len(columns) > 1:
        named = _roles.class_names(names, b.chosen.pattern, label)
        classes = b.fields["classes"] = _roles.typed_names(named, label)
    if label is not None:
        classes = _scored_labels(b, label, classes)
    _scored_prediction(b, classes)


def _scored_labels(
    b: Builder, label: DataColumn, classes: tuple[Hashable, ...]
) -> tuple[Hashable, ...]:
    """Fill in the labels beside class scores; return the classes."""
    if label.is_text != isinstance(classes[0], str):
        classes = _reconcile(b, label, classes)
    present = label if label.missing is None else label.rows(np.flatnonzero(~label.missing))
    values = present.distinct()[1]
    foreign = [v for v in values if v not in classes]
    if b.asked.unknown_label == (REST,) and REST not in values:
        marks: list[Hashable] = list(foreign)
    else:
        marks = _marks(b, label)
    foreign = [v for v in foreign if v not in marks]
    if foreign:
        raise InputError(_foreign_refusal(b, label, foreign, classes))
    b.fields["labels"] = _labels(b, label, marks)
    return classes


def _reconcile(
    b: Builder, label: DataColumn, classes: tuple[Hashable, ...]
) -> tuple[Hashable, ...]:
    """Name the classes where the labels are text and the scores are not, or the reverse."""
    if not label.is_text:
        b.notes.append(
            Note(READING, "labels are numbers, class scores are named: counted as columns from 0")
        )
        b.fields["classes"] = tuple(range(len(classes)))
        return tuple(range(len(classes)))
    texts = [str(t) for t in (label.texts if label.texts is not None else ())]
    texts = [t for t in texts if t not in map(str, b.asked.unknown_label)]
    if len(b.chosen.scores) == 1 and len(texts) == len(classes):
        # A block has no names: sorted texts are the columns, the convention of scikit-learn.
        b.notes.append(
            Note(READING, "class scores have no names: columns are the labels in sorted order")
        )
        b.fields["classes"] = tuple(texts)
        return tuple(texts)
    named = tuple(str(c) for c in classes)
    b.fields["classes"] = named
    return named


def _foreign_refusal(
    b: Builder, label: DataColumn, foreign: list[Hashable], classes: tuple[Hashable, ...]
) -> str:
    """Say which labels no column of the class scores stands for."""
    shown = ", ".join(map(repr, foreign[:20])) + (", ..." if len(foreign) > 20 else "")
    some = ", ".join(map(repr, classes[:10])) + (", ..." if len(classes) > 10 else "")
    single = len(foreign) == 1
    what = "1 value" if single else f"{len(foreign)} values"
    verb = "stands" if single else "stand"
    every = foreign[0] if single else REST
    return (
        f"{b.table.source}: {what} of {label.name!r} {verb} for no column of the class scores: "
        f"{shown}. The classes are {some}. If the model lacks these classes, pass "
        f"{format_option('unknown_label', every)}: their samples count as always wrong"
    )


def _scored_prediction(b: Builder, classes: tuple[Hashable, ...]) -> None:
    """Fill in the prediction column, or what stands for it in abstentions."""
    given = None
    if b.chosen.prediction is not None:
        prediction = _roles.plain(b.columns[b.chosen.prediction])
        if isinstance(classes[0], str):
            prediction = prediction.as_text()
        given = np.asarray(_roles.class_values(prediction))
        nothing = np.zeros(given.size, dtype=np.bool_)
        if prediction.missing is not None:
            nothing |= prediction.missing
        if prediction.is_text and "" not in classes:
            nothing |= given == ""
        b.missing.answers(nothing, prediction.name, "prediction")
        if b.missing.policy == "drop":
            given = np.where(nothing, np.array(classes, dtype=object)[0], given)
        b.fields["prediction"] = given
    if b.missing.abstained is not None and "labels" in b.fields:
        b.fields["prediction"] = _wrong(b, classes, given, b.missing.abstained)


def _wrong(
    b: Builder, classes: tuple[Hashable, ...], given: Array | None, abstained: BoolArray
) -> Array:
    """Return predictions in which abstentions have a class that is not their label."""
    names = np.array(classes, dtype=object)
    if given is None:
        given = names[b.fields[b.chosen.scores_kind].argmax(axis=1)]
    other = names[(names[0] == np.asarray(b.fields["labels"]).astype(object)).astype(np.int64)]
    out: Array = np.where(abstained, other, given)
    return out
