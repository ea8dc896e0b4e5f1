"""Conversion of the labels, predictions and class scores of a table to a common set of classes."""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from abstain._foundation.notes import READING, Note
from abstain._foundation.option_format import format_option
from abstain.errors import InputError
from abstain.predictions.classes import CodedNames
from abstain.tables import _conversion
from abstain.tables._column_selection import ColumnSelection
from abstain.tables._conversion import as_numbers
from abstain.tables._reading import ReadingOptions
from abstain.tables.column import DataColumn, MissingEntries, count_rows
from abstain.tables.table import DataTable
from abstain.typing import Array, BoolArray

#: Value of `unknown_label` that selects all labels without a column of class scores.
ALL_OTHER_LABELS = "*"


@dataclass
class PredictionsBuilder:
    """Arguments of `Predictions`, which are collected from the columns of a table."""

    table: DataTable
    selection: ColumnSelection
    options: ReadingOptions
    #: The loaded columns by name.
    columns: dict[str, DataColumn]
    #: Treatment of missing entries.
    missing: MissingEntries
    #: Arguments of `Predictions`, which contain all rows.
    arguments: dict[str, Any] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)

    def numeric_column(self, name: str, role: str) -> DataColumn:
        """Return a column as numbers, or raise an error if it contains text."""
        return as_numbers(
            self.columns[name], role, self.table.source, is_untyped=self.table.is_untyped
        )

    def release_columns(self, names: Sequence[str]) -> None:
        """Delete columns that are not needed for another role, to free memory."""
        n_roles = Counter(self.selection.names())
        for name in names:
            if n_roles[name] == 1:
                del self.columns[name]

    def add_note(self, text: str) -> None:
        """Add a note that applies to the whole table."""
        self.notes.append(Note(READING, text))

    def retained(self, column: DataColumn) -> DataColumn:
        """Return a column without the rows that are dropped."""
        rows = self.missing.retained_rows
        return column if rows is None else column.rows(rows)


def add_labels_and_answers(builder: PredictionsBuilder) -> None:
    """Add labels, predictions, class scores and class names to the arguments of `Predictions`."""
    label = None
    if builder.selection.label is not None:
        label = _conversion.class_column(builder.columns[builder.selection.label])
        label = builder.missing.handle_required(label, "label")
    if builder.selection.class_scores:
        _add_class_scores(builder, label)
        return
    prediction = None
    if builder.selection.prediction is not None:
        prediction = _conversion.class_column(builder.columns[builder.selection.prediction])
    if label is not None and prediction is not None:
        label, prediction = _reread_as_text(builder, label, prediction)
        label, prediction, note = _conversion.to_common_type(label, prediction)
        if note:
            builder.add_note(note)
    if label is not None:
        unknown_labels = _unknown_labels(builder, label)
        builder.arguments["labels"] = _merge_unknown_labels(builder, label, unknown_labels)
    if prediction is None:
        return
    values = _conversion.class_values(prediction)
    if prediction.is_missing is not None:
        builder.missing.handle_answers(prediction.is_missing, prediction.name, "prediction")
        # The empty text is not a label, so the prediction of an abstention is always wrong.
        values = np.where(prediction.is_missing, "", np.asarray(values).astype(object))
    builder.arguments["prediction"] = values


def _reread_as_text(
    builder: PredictionsBuilder, label: DataColumn, prediction: DataColumn
) -> tuple[DataColumn, DataColumn]:
    """Read labels and predictions as text if the file contains texts such as 007 and 7.

    Otherwise, both texts would become the same number.
    """
    load_as_text = builder.table.load_as_text
    if load_as_text is None or (label.is_text and prediction.is_text):
        return label, prediction
    texts = load_as_text(label.name), load_as_text(prediction.name)
    if not (label.is_text or prediction.is_text):
        if all(_conversion.has_canonical_integers(column) for column in texts):
            return label, prediction
        builder.add_note(
            f"{label.name!r} and {prediction.name!r} write the same number in several ways "
            "(such as 07 and 7): compared as text"
        )
    return texts


# ------------------------------------------------------------------------------------ labels
def _unknown_labels(builder: PredictionsBuilder, label: DataColumn) -> list[Hashable]:
    """Return the labels that stand for unknown classes, with the type of the label column.

    On the command line, these labels are always texts.
    """
    names = builder.options.unknown_label
    if label.is_text:
        return list(map(str, names))
    labels: list[Hashable] = []
    for name in names:
        try:
            labels.append(int(str(name)))
        except ValueError:
            raise InputError(
                f"{format_option('unknown_label')} must be a number, because column "
                f"{label.name!r} contains numbers; got {name!r}"
            ) from None
    return labels


def _merge_unknown_labels(
    builder: PredictionsBuilder, label: DataColumn, unknown_labels: list[Hashable]
) -> Array | CodedNames:
    """Return the labels, in which all unknown classes have the same label."""
    values = _conversion.class_values(label)
    if not unknown_labels:
        return values
    if label.texts is None:
        is_unknown = np.isin(label.values, np.array(unknown_labels))
    else:
        codes = np.flatnonzero([text in unknown_labels for text in label.texts])
        is_unknown = np.isin(label.values, codes)
    builder.arguments["unknown_label"] = unknown_labels[0]
    if not is_unknown.any():
        names = ", ".join(map(repr, unknown_labels))
        builder.add_note(f"no sample has the label {names} (from {format_option('unknown_label')})")
        return values
    text = "have a label of an unknown class, so their predictions are always wrong"
    builder.notes.append(Note(READING, text, rows=count_rows(is_unknown)))
    if len(unknown_labels) == 1:
        return values
    replacement = np.array(unknown_labels[0], values.dtype)
    merged: Array = np.where(is_unknown, replacement, np.asarray(values))
    return merged


# ------------------------------------------------------------------------------------ class scores
def _add_class_scores(builder: PredictionsBuilder, label: DataColumn | None) -> None:
    """Add class scores, class names, labels and predictions to the arguments of `Predictions`."""
    kind = builder.selection.class_scores_kind
    names = builder.selection.class_scores
    pattern = builder.selection.class_scores_pattern
    columns = [
        builder.columns[name]
        if builder.columns[name].values.ndim > 1
        else builder.numeric_column(name, kind)
        for name in names
    ]
    class_scores = _conversion.stack_class_scores(columns, kind, builder.table.source)
    builder.release_columns(names)
    if len(columns) == 1 and columns[0].values.ndim == 1:
        builder.add_note(f"{names[0]!r} is read as the {kind} of the second of two classes")
    has_no_scores = _conversion.rows_all_nan(class_scores)
    if kind == "probabilities":
        has_no_scores |= _conversion.rows_all_zero(class_scores)
    builder.missing.handle_answers(has_no_scores, pattern or names[0], f"{kind} (all missing or 0)")
    if builder.missing.is_abstention is not None:
        class_scores = class_scores.copy()
        # Equal class scores express the lowest possible confidence.
        n_classes = class_scores.shape[1]
        class_scores[has_no_scores] = 1 / n_classes if kind == "probabilities" else 0
    builder.arguments[kind] = class_scores
    classes: tuple[Hashable, ...] = tuple(range(class_scores.shape[-1]))
    if len(columns) > 1:
        class_names = _conversion.class_names(names, pattern, label)
        classes = _conversion.convert_class_names(class_names, label)
        builder.arguments["classes"] = classes
    if label is not None:
        classes = _add_labels_of_scored_classes(builder, label, classes)
    _add_prediction(builder, classes)


def _add_labels_of_scored_classes(
    builder: PredictionsBuilder, label: DataColumn, classes: tuple[Hashable, ...]
) -> tuple[Hashable, ...]:
    """Add the labels of a table with class scores, and return the classes."""
    if label.is_text != isinstance(classes[0], str):
        classes = _match_class_names(builder, label, classes)
        builder.arguments["classes"] = classes
    present = label
    if label.is_missing is not None:
        present = label.rows(np.flatnonzero(~label.is_missing))
    labels = present.distinct()[1]
    without_class = [name for name in labels if name not in classes]
    requests_all = builder.options.unknown_label == (ALL_OTHER_LABELS,)
    if requests_all and ALL_OTHER_LABELS not in labels:
        unknown_labels: list[Hashable] = list(without_class)
    else:
        unknown_labels = _unknown_labels(builder, label)
    unexpected = [name for name in without_class if name not in unknown_labels]
    if unexpected:
        raise InputError(_unknown_labels_message(builder, label, unexpected, classes))
    builder.arguments["labels"] = _merge_unknown_labels(builder, label, unknown_labels)
    return classes


def _match_class_names(
    builder: PredictionsBuilder, label: DataColumn, classes: tuple[Hashable, ...]
) -> tuple[Hashable, ...]:
    """Return the classes as text or as numbers, like the labels."""
    if not label.is_text:
        builder.add_note(
            "labels are numbers and class scores have names: labels are column numbers from 0"
        )
        return tuple(range(len(classes)))
    texts = [] if label.texts is None else list(map(str, label.texts))
    unknown_labels = set(map(str, builder.options.unknown_label))
    texts = [text for text in texts if text not in unknown_labels]
    if len(builder.selection.class_scores) == 1 and len(texts) == len(classes):
        # Columns of an array are the sorted labels, as in scikit-learn.
        builder.add_note("class scores have no names: columns are the labels in sorted order")
        return tuple(texts)
    return tuple(map(str, classes))


def _unknown_labels_message(
    builder: PredictionsBuilder,
    label: DataColumn,
    unexpected: list[Hashable],
    classes: tuple[Hashable, ...],
) -> str:
    """Return an error message on labels that have no class scores."""
    labels = ", ".join(map(repr, unexpected[:20])) + (", ..." if len(unexpected) > 20 else "")
    class_list = ", ".join(map(repr, classes[:10])) + (", ..." if len(classes) > 10 else "")
    is_single = len(unexpected) == 1
    values = "1 value" if is_single else f"{len(unexpected)} values"
    verb = "has" if is_single else "have"
    unknown_label = unexpected[0] if is_single else ALL_OTHER_LABELS
    return (
        f"{builder.table.source}: {values} of {label.name!r} {verb} no column of class scores: "
        f"{labels}. The classes are {class_list}. If the model lacks these classes, pass "
        f"{format_option('unknown_label', unknown_label)}: their samples count as always wrong"
    )


def _add_prediction(builder: PredictionsBuilder, classes: tuple[Hashable, ...]) -> None:
    """Add the predicted classes to the arguments of `Predictions`.

    Abstentions get a wrong prediction.
    """
    values = None
    if builder.selection.prediction is not None:
        prediction = _conversion.class_column(builder.columns[builder.selection.prediction])
        if isinstance(classes[0], str):
            prediction = prediction.as_text()
        values = np.asarray(_conversion.class_values(prediction))
        is_missing = np.zeros(values.size, dtype=np.bool_)
        if prediction.is_missing is not None:
            is_missing |= prediction.is_missing
        if prediction.is_text and "" not in classes:
            is_missing |= values == ""
        builder.missing.handle_answers(is_missing, prediction.name, "prediction")
        if builder.missing.policy == "drop":
            # Rows without prediction are dropped later, but need a valid class until then.
            values = np.where(is_missing, np.array(classes, dtype=object)[0], values)
        builder.arguments["prediction"] = values
    is_abstention = builder.missing.is_abstention
    if is_abstention is not None and "labels" in builder.arguments:
        builder.arguments["prediction"] = _with_wrong_abstentions(
            builder, classes, values, is_abstention
        )


def _with_wrong_abstentions(
    builder: PredictionsBuilder,
    classes: tuple[Hashable, ...],
    prediction: Array | None,
    is_abstention: BoolArray,
) -> Array:
    """Return the predictions, in which each abstention is replaced by a wrong class."""
    names = np.array(classes, dtype=object)
    if prediction is None:
        class_scores = builder.arguments[builder.selection.class_scores_kind]
        prediction = names[class_scores.argmax(axis=1)]
    labels = np.asarray(builder.arguments["labels"]).astype(object)
    wrong_class = names[np.where(labels == names[0], 1, 0)]
    corrected: Array = np.where(is_abstention, wrong_class, prediction)
    return corrected
