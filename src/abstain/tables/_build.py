"""Conversion of the selected columns to the `Predictions` of each split."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from abstain._foundation.notes import READING, Note
from abstain._foundation.option_format import format_option
from abstain.errors import DomainError, InputError, ShapeError
from abstain.predictions import Predictions
from abstain.predictions.classes import CodedNames
from abstain.tables._classes import PredictionsBuilder, add_labels_and_answers
from abstain.tables._column_selection import ColumnSelection
from abstain.tables._conversion import correctness
from abstain.tables._reading import Reading, ReadingOptions
from abstain.tables.column import DataColumn, MissingEntries, count_rows
from abstain.tables.number_formats import look_like_percentages
from abstain.tables.table import DataTable
from abstain.typing import Array, BoolArray, IntArray, Split

#: Names of columns whose values are usually evaluated as separate splits.
_USUAL_SPLIT_COLUMNS = ("split", "study", "fold", "model")

#: Maximum number of splits. If `by` makes more, it probably names a column of ids.
_MAX_SPLITS = 10_000
#: If there are more splits than this, they must contain two samples on average.
_MAX_SMALL_SPLITS = 100


def build_reading(table: DataTable, selection: ColumnSelection, options: ReadingOptions) -> Reading:
    """Return the predictions of each split, with notes and warnings on the data."""
    builder, predictions = _convert(table, selection, options)
    notes = [*table.notes, *selection.notes]
    notes += _conversion_notes(builder, predictions)
    notes += _notes_on_never_predicted_labels(predictions)
    notes += _notes_on_rows(predictions)
    notes += float16_notes(predictions)
    notes += _notes_on_correctness(builder, predictions)
    splits = _split(builder, predictions)
    warnings = _warnings_on_pooled_columns(builder)
    warnings += _warn_of_single_class(splits.values())
    warnings += _warn_of_repeated_ids(splits, selection.id)
    notes += [Note.warning(READING, text) for text in warnings]
    return Reading(splits, tuple(notes), table.source)


def build_chunk_reading(
    table: DataTable, selection: ColumnSelection, options: ReadingOptions
) -> Reading:
    """Return the predictions of each split for a chunk of a file.

    The notes omit facts that depend on all rows, such as classes that are never predicted.
    """
    builder, predictions = _convert(table, selection, options, is_chunk=True)
    notes = [
        *_conversion_notes(builder, predictions),
        *_notes_on_rows(predictions),
        *_notes_on_correctness(builder, predictions),
    ]
    return Reading(_split(builder, predictions), tuple(notes), table.source)


def _convert(
    table: DataTable,
    selection: ColumnSelection,
    options: ReadingOptions,
    *,
    is_chunk: bool = False,
) -> tuple[PredictionsBuilder, Predictions]:
    """Convert the selected columns to `Predictions`, without the rows that are dropped."""
    columns = table.load(selection.names())
    check_lengths(table, columns)
    missing = MissingEntries(options.missing, table.source, table.n_rows, is_chunk)
    builder = PredictionsBuilder(table, selection, options, columns, missing)
    try:
        _add_numbers(builder)
        add_labels_and_answers(builder)
        _add_arrays_groups_ids(builder)
        arguments = builder.arguments
        if missing.retained_rows is not None:
            arguments = _select_rows(arguments, missing.retained_rows)
        predictions = Predictions(
            **arguments,
            renormalize=options.renormalize,
            masked=options.masked,
            unlabeled=options.unlabeled,
        )
    except InputError as error:
        if str(error).startswith(table.source):
            raise
        raise type(error)(f"{table.source}: {error}") from None
    return builder, predictions


def check_lengths(table: DataTable, columns: Mapping[str, DataColumn]) -> None:
    """Raise an error if the columns have different lengths."""
    for name, column in columns.items():
        if column.values.shape[:1] != (table.n_rows,):
            raise ShapeError(_wrong_length_message(table, name, column.values.shape, columns))


def _wrong_length_message(
    table: DataTable, name: str, shape: tuple[int, ...], columns: Mapping[str, DataColumn]
) -> str:
    """Describe a column of wrong length.

    If the first two axes of Monte Carlo samples of class scores may be swapped, the error mentions
    this.
    """
    message = f"{table.source}: {name!r} must have {table.n_rows} rows; got shape {shape}"
    for other_name, column in columns.items():
        samples_shape = column.values.shape
        if len(samples_shape) == 3 and samples_shape[:2] == (table.n_rows, shape[0]):
            message += (
                f". {other_name!r} has shape {samples_shape}, but samples must have shape "
                "(n, S, K), with the S samples of each row on the second axis: swap the first "
                "two axes"
            )
    return message


def _select_rows(arguments: dict[str, Any], rows: Array) -> dict[str, Any]:
    """Select the given rows of all arrays among the arguments of `Predictions`."""
    selected: dict[str, Any] = {}
    for name, argument in arguments.items():
        if isinstance(argument, np.ndarray | CodedNames):
            selected[name] = argument[rows]
        elif name == "confidence":
            selected[name] = {column: values[rows] for column, values in argument.items()}
        else:
            selected[name] = argument
    return selected


def _add_numbers(builder: PredictionsBuilder) -> None:
    """Add the loss, the confidences and the weights to the arguments of `Predictions`."""
    selection, table, missing = builder.selection, builder.table, builder.missing
    if selection.correct is not None:
        grades = correctness(
            builder.columns[selection.correct], table.source, is_untyped=table.is_untyped
        )
        grades = missing.handle_required(grades, "correct", may_lack=table.may_lack_grades)
        builder.arguments["loss"] = 1.0 - grades.values
    elif selection.loss is not None:
        loss = missing.handle_required(builder.numeric_column(selection.loss, "loss"), "loss")
        builder.arguments["loss"] = loss.values
    confidence = dict(_confidence(builder, name) for name in selection.confidence)
    if confidence:
        builder.arguments["confidence"] = confidence
    if selection.weight is not None:
        weight = builder.numeric_column(selection.weight, "weight")
        builder.arguments["weight"] = missing.handle_required(weight, "weight").values


def _confidence(builder: PredictionsBuilder, name: str) -> tuple[str, Array]:
    """Return the name and the values of a confidence.

    An uncertainty is negated, and its name starts with "-".
    """
    column = builder.numeric_column(name, "confidence")
    if name in builder.selection.percentages:
        if not builder.missing.is_chunk and not (column.values > 1).any():
            builder.add_note(
                f"no value of {name!r} exceeds 1, so the column seems to contain fractions (texts "
                "such as '90%' are read as fractions); if so, omit "
                f"{format_option('percent', name)}"
            )
        column = _to_fractions(column, builder.table.source)
    elif not builder.missing.is_chunk and look_like_percentages(column.values):
        builder.add_note(
            f"{name!r} has values from 0 to 100; if it is a percentage, pass "
            f"{format_option('percent', name)} to divide it by 100, because ECE and CWSA "
            "require fractions"
        )
    confidence_name = name
    if name in builder.selection.negated:
        # Values are negated before missing entries get the lowest confidence.
        column = replace(column, values=-column.values.astype(np.float64))
        confidence_name = f"-{name}"
    return confidence_name, builder.missing.fill_confidence(column).values


def _to_fractions(column: DataColumn, source: str) -> DataColumn:
    """Divide percentages by 100."""
    values = column.values.astype(np.float64)
    is_outside = (values < 0) | (values > 100)  # False for NaN
    if is_outside.any():
        row = int(np.flatnonzero(is_outside)[0])
        raise DomainError(
            f"{source}: column {column.name!r} must contain percentages from 0 to 100, because of "
            f"{format_option('percent')}; got {column.format_entry(row)} in row {row}, counted "
            "from 0"
        )
    return replace(column, values=values / 100)


def _add_arrays_groups_ids(builder: PredictionsBuilder) -> None:
    """Add Monte Carlo samples of class scores, features, groups and ids to the arguments."""
    selection, table = builder.selection, builder.table
    for role, key in selection.array_keys.items():
        builder.arguments[role] = builder.columns[key].values
    if selection.group is not None:
        codes, names = builder.columns[selection.group].distinct()
        builder.arguments["group"] = np.array(names, dtype=object)[codes]
    has_dropped_rows = builder.missing.is_dropped is not None
    if selection.id is not None:
        column = builder.columns[selection.id]
        builder.arguments["ids"] = column.to_strings() if column.is_text else column.values
    elif builder.options.by or has_dropped_rows or table.first_row is not None:
        # By default, the id of a sample is its row in the file, counted from 0.
        builder.arguments["ids"] = np.arange(table.n_rows) + (table.first_row or 0)


# ------------------------------------------------------------------------------------ splits
def _split(builder: PredictionsBuilder, predictions: Predictions) -> dict[Split, Predictions]:
    """Split the predictions by the values of the `by` columns."""
    by = builder.selection.by
    if not by:
        return {(): predictions}
    codes_by_column = {}
    values_by_column = {}
    for name in by:
        codes, values = builder.retained(builder.columns[name]).distinct()
        codes_by_column[name] = codes
        values_by_column[name] = values
    # Each combination of values gets one number. Numbers are assigned again after each column,
    # because the product of the numbers of values can exceed the range of integers.
    row_codes = codes_by_column[by[0]]
    for name in by[1:]:
        row_codes = row_codes * len(values_by_column[name]) + codes_by_column[name]
        row_codes = np.unique(row_codes, return_inverse=True)[1]
    _, first_rows, split_index = np.unique(row_codes, return_index=True, return_inverse=True)
    _check_number_of_splits(builder, first_rows.size, predictions.n)
    split_sizes = np.bincount(split_index)
    rows_by_split = np.split(np.argsort(split_index, kind="stable"), np.cumsum(split_sizes)[:-1])
    splits: dict[Split, Predictions] = {}
    # Splits are in order of first appearance.
    for i in np.argsort(first_rows):
        split = []
        for name in by:
            code = codes_by_column[name][first_rows[i]]
            split.append((name, str(values_by_column[name][code])))
        splits[tuple(split)] = predictions.subset(rows_by_split[i])
    return splits


def _check_number_of_splits(builder: PredictionsBuilder, n_splits: int, n_rows: int) -> None:
    is_chunk = builder.table.first_row is not None
    has_small_splits = n_splits > _MAX_SMALL_SPLITS and 2 * n_splits > n_rows and not is_chunk
    if n_splits > _MAX_SPLITS or has_small_splits:
        raise InputError(
            f"{builder.table.source}: {format_option('by')} = {', '.join(builder.selection.by)} "
            f"makes {n_splits:,} splits of {n_rows:,} rows; name columns with few values"
        )


# ------------------------------------------------------------------------------------ notes
def _conversion_notes(builder: PredictionsBuilder, predictions: Predictions) -> list[Note]:
    """Return notes on the conversion of the columns."""
    texts_of_predictions = [Note(READING, text) for text in predictions.notes]
    return [*builder.missing.notes, *builder.notes, *texts_of_predictions]


#: Maximum number of labels in a note.
_MAX_LISTED_LABELS = 20
#: Minimum share of rows with labels that are never predicted for which a note is written.
_MIN_REPORTED_SHARE = 0.005


def _notes_on_correctness(builder: PredictionsBuilder, predictions: Predictions) -> list[Note]:
    """Return a note if a column of correctness contradicts the labels and predictions."""
    name = builder.selection.correct_to_verify
    if name is None or not predictions.has_labels:
        return []
    try:
        column = correctness(
            builder.columns[name], builder.table.source, is_untyped=builder.table.is_untyped
        )
    except InputError:
        return []  # The column does not contain grades, although its name suggests them.
    differs = predictions.correct != (builder.retained(column).values == 1)
    if not differs.any():
        return []
    text = (
        f"have a {name!r} that disagrees with {builder.selection.label!r} == "
        f"{builder.selection.prediction!r}; pass {format_option('correct', name)} to use the column"
    )
    return [Note(READING, text, rows=count_rows(differs))]


def _notes_on_rows(predictions: Predictions) -> list[Note]:
    """Return notes on empty predictions and on several confidences of exactly 0."""
    notes = []
    if predictions.prediction is not None and "" in predictions.class_names:
        is_empty: BoolArray = predictions.prediction_codes == predictions.class_names.index("")
        if is_empty.any():
            text = "have an empty prediction: the model gave no answer, which is always wrong"
            notes.append(Note(READING, text, rows=count_rows(is_empty)))
    for name, values in (predictions.confidence or {}).items():
        is_zero = values == 0
        if is_zero.sum() > 1 and not (values < 0).any():
            text = f"have a {name!r} of exactly 0: abstentions, or ties at the lowest confidence"
            notes.append(Note(READING, text, rows=count_rows(is_zero)))
    return notes


def _notes_on_never_predicted_labels(predictions: Predictions) -> list[Note]:
    """Return a note on labels that are never predicted.

    Rare labels are ignored unless they start with a minus sign, which often means an unknown class.
    """
    if predictions.prediction is None or not predictions.has_labels:
        return []
    n_labels = _count_labels(predictions)
    n_predicted = np.bincount(predictions.prediction_codes, minlength=predictions.n_classes)
    names = predictions.class_names
    codes = np.flatnonzero((n_labels > 0) & (n_predicted == 0))
    if codes.size == 0:
        return []
    codes = codes[np.argsort(-n_labels[codes], kind="stable")]
    has_negative_label = any(str(names[code]).startswith("-") for code in codes)
    is_rare = n_labels[codes].sum() < _MIN_REPORTED_SHARE * predictions.n
    if is_rare and not has_negative_label:
        return []
    listed = [names[code] for code in codes[:_MAX_LISTED_LABELS]]
    label_list = ", ".join(map(repr, listed))
    if codes.size > len(listed):
        label_list += f" and {codes.size - len(listed)} more"
    rows = count_rows(np.isin(predictions.label_codes, codes))
    condition = "some of them mark"
    option = format_option("unknown_label", listed)
    if codes.size == 1:
        condition = "it marks"
        option = format_option("unknown_label", listed[0])
    text = (
        f"labels that are never predicted, so always wrong: {label_list}, {rows}; if {condition} "
        f"samples of unknown classes, pass {option}"
    )
    return [Note(READING, text)]


def float16_notes(predictions: Predictions) -> list[Note]:
    """Return a note that lists the arrays in half precision (float16)."""
    fields = ("logits", "probabilities", "logit_samples", "probability_samples", "features")
    arrays = {name: getattr(predictions, name) for name in fields}
    for name, values in (predictions.confidence or {}).items():
        arrays[f"confidence {name!r}"] = values
    names = [
        name for name, array in arrays.items() if array is not None and array.dtype == np.float16
    ]
    if not names:
        return []
    return [Note(READING, f"stored as float16 (about 3 digits, many ties): {', '.join(names)}")]


# ------------------------------------------------------------------------------------ warnings
def pooled_columns(table: DataTable, selection: ColumnSelection) -> list[str]:
    """Return columns such as `study` that usually define splits but are not selected."""
    matches = [table.find(name) for name in _USUAL_SPLIT_COLUMNS]
    used = selection.names()
    return [
        name
        for name in matches
        if name is not None and name not in used and table.kind_by_column[name] != "block"
    ]


def _warnings_on_pooled_columns(builder: PredictionsBuilder) -> list[str]:
    """Warn about columns such as `study` that are not used to split the rows."""
    table = builder.table
    warnings = []
    for name in pooled_columns(table, builder.selection):
        values = builder.retained(table.load((name,))[name]).distinct()[1]
        if len(values) > 1:
            value_list = ", ".join(map(str, values[:4])) + (", ..." if len(values) > 4 else "")
            warnings.append(
                f"column {name!r} has {len(values):,} values ({value_list}), which are evaluated "
                f"together; pass {format_option('by', name)} to evaluate them separately"
            )
    return warnings


def _warn_of_single_class(predictions: Iterable[Predictions]) -> list[str]:
    """Warn if all labels are the same class."""
    labeled = [split for split in predictions if split.has_labels]
    codes: set[int] = set()
    for split in labeled:
        codes.update(np.flatnonzero(_count_labels(split)).tolist())
    n_samples = sum(split.n for split in labeled)
    if len(codes) != 1 or n_samples < 2 or labeled[0].n_classes < 2:
        return []
    name = labeled[0].class_names[codes.pop()]
    return [f"every label is {name!r}, so the results do not describe the other classes"]


def _count_labels(predictions: Predictions) -> IntArray:
    """Return the number of samples with the label of each class."""
    codes = predictions.label_codes
    known_codes = codes if codes.min() >= 0 else codes[codes >= 0]
    return np.bincount(known_codes, minlength=predictions.n_classes)


def _warn_of_repeated_ids(splits: Mapping[Split, Predictions], id_column: str | None) -> list[str]:
    """Warn if several samples of a split have the same id."""
    if id_column is None:
        return []
    n_repeated = n_rows = 0
    for predictions in splits.values():
        ids = np.asarray(predictions.ids)
        n_rows += predictions.n
        # Most columns have unique ids, which a set confirms faster than sorting texts.
        if ids.dtype.kind == "O" and len(set(ids.tolist())) == predictions.n:
            continue
        _, counts = np.unique(ids.astype(str), return_counts=True)
        n_repeated += int(counts[counts > 1].sum())
    if n_repeated == 0:
        return []
    warning = (
        f"{n_repeated:,} of {n_rows:,} rows have the same {id_column!r} as another row. Repeated "
        "rows count twice, and several rows of one subject are not independent: name the subject "
        f"with {format_option('group', id_column)} and use clustered intervals"
    )
    return [warning]
