"""Conversion of columns to numbers, grades, classes and class scores."""

import re
from collections.abc import Callable, Hashable, Sequence

import numpy as np

from abstain._foundation.checks import FIRST_INEXACT_INTEGER
from abstain._foundation.option_format import format_option
from abstain.errors import DomainError, InputError, ShapeError
from abstain.predictions.classes import CodedNames
from abstain.tables.column import DataColumn, to_number
from abstain.tables.number_formats import GRADE_EXAMPLES, are_percentages, grade_of
from abstain.typing import Array, BoolArray

#: Number of rows of class scores that are transposed in one step.
_ROWS_PER_TILE = 256

_INTEGER = re.compile(r"-?[1-9][0-9]*|0|true|false", re.IGNORECASE)
_DECIMAL = re.compile(r"-?(?:[1-9][0-9]*|0)\.0+")


def as_numbers(column: DataColumn, role: str, source: str, *, is_untyped: bool) -> DataColumn:
    """Return the numbers of a column, shape (n,), or raise an error with the invalid text."""
    texts = () if column.texts is None else tuple(map(str, column.texts))
    if is_untyped or are_percentages(texts):
        column = to_number(column)
    if column.texts is not None:
        raise DomainError(_text_column_message(column, role, source, is_untyped=is_untyped))
    if column.values.ndim != 1:
        raise ShapeError(
            f"{source}: {column.name!r} ({role}) must have one number per row; "
            f"got shape {column.values.shape}"
        )
    return column


def _text_column_message(column: DataColumn, role: str, source: str, *, is_untyped: bool) -> str:
    """Return an error message on a text in a column of numbers, with the probable cause."""
    texts = [] if column.texts is None else list(column.texts)
    # The code of missing entries is -1, which indexes the last entry of this array.
    is_no_number = np.array([*(not _is_number(str(text)) for text in texts), False])
    has_only_numbers = not is_no_number.any()
    is_invalid = column.values >= 0 if has_only_numbers else is_no_number[column.values]
    row = int(np.flatnonzero(is_invalid)[0])
    value = column.format_entry(row)
    hint = ""
    if has_only_numbers:
        hint = " These are numbers saved as text: convert the column to a numeric type and save it."
    elif "," in value and _is_number(value.strip("'").replace(",", ".")):
        hint = f" If the comma is the decimal mark, pass {format_option('decimal', ',')}."
    elif is_untyped:
        hint = " Leave missing entries empty."
    return (
        f"{source}: column {column.name!r} ({role}) must contain numbers; "
        f"got the text {value} in row {row}, counted from 0.{hint}"
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def correctness(column: DataColumn, source: str, *, is_untyped: bool) -> DataColumn:
    """Return the grades in a column as numbers from 0 to 1.

    Words such as CORRECT and INCORRECT are converted to 1 and 0.
    """
    column = to_number(column) if is_untyped else column
    if column.texts is not None:
        grades = [grade_of(str(text)) for text in column.texts]
        if None not in grades:
            grade_by_code = np.array([*grades, np.nan], dtype=np.float64)
            values = grade_by_code[column.values]
            return DataColumn(column.name, values, None, column.is_missing, column.dtype_name)
        _check_no_unknown_grades(column, grades, source)
    column = as_numbers(column, "correct", source, is_untyped=is_untyped)
    is_outside = (column.values < 0) | (column.values > 1)  # False for NaN
    if is_outside.any():
        row = int(np.flatnonzero(is_outside)[0])
        raise DomainError(
            f"{source}: column {column.name!r} (correct) must contain grades from 0 to 1; "
            f"got {column.format_entry(row)} in row {row}, counted from 0"
        )
    return column


def _check_no_unknown_grades(
    column: DataColumn, grades: Sequence[float | None], source: str
) -> None:
    """Raise an error if a text is neither a number nor a word for a grade."""
    texts = [] if column.texts is None else list(map(str, column.texts))
    ungraded = [text for text, grade in zip(texts, grades, strict=True) if grade is None]
    if all(_is_number(text) for text in ungraded):
        return
    raise DomainError(
        f"{source}: column {column.name!r} (correct) must contain grades from 0 to 1 or words for "
        f"grades ({GRADE_EXAMPLES}); got {ungraded[0]!r}"
    )


def class_column(column: DataColumn) -> DataColumn:
    """Return the classes in a column as integers or text, or raise an error for fractions."""
    if column.texts is not None or column.values.dtype.kind in "biu":
        return column
    if not column.has_only_integers:
        is_fraction = np.floor(column.values) != column.values
        if column.is_missing is not None:
            is_fraction &= ~column.is_missing
        row = int(np.flatnonzero(is_fraction)[0])
        raise DomainError(
            f"column {column.name!r} must contain classes (text or whole numbers); "
            f"got {column.format_entry(row)} in row {row}, counted from 0. For regression, pass a "
            f"column with the loss of each prediction: {format_option('loss')}"
        )
    values = np.where(np.isnan(column.values), 0, column.values)
    if np.abs(values).max(initial=0) >= FIRST_INEXACT_INTEGER:
        row = int(np.argmax(np.abs(values)))
        raise DomainError(
            f"column {column.name!r} has classes as floats that are too large to be exact; got "
            f"{column.format_entry(row)} in row {row}, counted from 0. Save them as text or as "
            "integers"
        )
    return DataColumn(
        column.name, values.astype(np.int64), None, column.is_missing, column.dtype_name
    )


def has_canonical_integers(column: DataColumn) -> bool:
    """Return whether each text is an integer such as 7 or 7.0, without leading zeros as in 07."""
    texts = [] if column.texts is None else list(map(str, column.texts))
    return all(map(_INTEGER.fullmatch, texts)) or all(map(_DECIMAL.fullmatch, texts))


def to_common_type(first: DataColumn, second: DataColumn) -> tuple[DataColumn, DataColumn, str]:
    """Convert two columns of classes to the same type.

    The third return value is a note if numbers are converted to text, and "" otherwise.
    """
    first, second = class_column(first), class_column(second)
    if first.is_text == second.is_text:
        return first, second, ""
    text, number = (first, second) if first.is_text else (second, first)
    note = f"column {text.name!r} is text and {number.name!r} is numeric: compared as text"
    return first.as_text(), second.as_text(), note


def class_values(column: DataColumn) -> Array | CodedNames:
    """Return labels or predictions in a form that `Predictions` accepts."""
    if column.texts is None:
        return column.values
    if column.is_missing is not None:
        return column.to_strings()
    return CodedNames(column.values, column.texts)


def stack_class_scores(columns: Sequence[DataColumn], kind: str, source: str) -> Array:
    """Stack columns of class scores into an array of shape (n, K)."""
    if len(columns) == 1:
        values = columns[0].values
        if values.ndim > 1:
            return values
        # The column contains the scores of the second class of a binary model.
        first_class = 1 - values if kind == "probabilities" else np.zeros_like(values)
        return np.column_stack([first_class, values])
    for column in columns:
        if column.values.ndim != 1:
            raise InputError(
                f"{source}: {column.name!r} has several numbers per row, so it must be the only "
                "column of class scores"
            )
    values_by_class = [column.values for column in columns]
    shape = (values_by_class[0].size, len(values_by_class))
    class_scores = np.empty(shape, np.result_type(*values_by_class))
    # A tile of rows fits into the cache, while whole columns would be written to distant addresses.
    for start in range(0, len(class_scores), _ROWS_PER_TILE):
        rows = slice(start, start + _ROWS_PER_TILE)
        class_scores[rows] = np.array([values[rows] for values in values_by_class]).T
    return class_scores


def class_names(columns: Sequence[str], pattern: str, label: DataColumn | None) -> list[str]:
    """Return the column names without their common prefix.

    If there are several possible prefixes, a prefix is preferred for which one of the names is a
    label.
    """
    prefixes = _possible_prefixes(columns, pattern)
    candidates = [[name.removeprefix(prefix) for name in columns] for prefix in prefixes]
    if label is not None:
        labels = set(map(str, label.distinct()[1]))
        for names in candidates:
            if not labels.isdisjoint(names):
                return names
    return candidates[0]


def _possible_prefixes(columns: Sequence[str], pattern: str) -> list[str]:
    """Return possible common prefixes of the columns, starting with the most likely prefix.

    A possible prefix is the text before the first wildcard of the pattern, or a text that ends with
    a separator.
    """
    prefixes = []
    wildcard_positions = [pattern.find(character) for character in "*?[" if character in pattern]
    literal_prefix = pattern[: min(wildcard_positions, default=0)]
    if literal_prefix:
        prefixes.append(literal_prefix)
    # The first and the last name in sorted order share the prefix of all names.
    first, last = min(columns), max(columns)
    n_common = next((i for i, c in enumerate(first) if last[i : i + 1] != c), len(first))
    common = first[:n_common]
    # "p_10" and "p_11" share "p_1", and "cat" and "car" share "ca", so prefixes end at separators.
    ends = [i + 1 for i, character in enumerate(common) if not character.isalnum()]
    prefixes += [common[:end] for end in reversed(ends)]
    return [*prefixes, common.rstrip("0123456789"), ""]


def convert_class_names(names: list[str], label: DataColumn | None) -> tuple[Hashable, ...]:
    """Convert class names to integers if all names are integers and the labels are numbers."""
    if label is None or label.is_text:
        return tuple(names)
    try:
        return tuple(int(name) for name in names)
    except ValueError:
        return tuple(names)


def rows_all_nan(class_scores: Array) -> BoolArray:
    """Return a mask of the rows whose class scores are all NaN."""
    if class_scores.dtype.kind != "f":
        return np.zeros(class_scores.shape[0], dtype=np.bool_)
    return _rows_all(class_scores, np.isnan)


def rows_all_zero(probabilities: Array) -> BoolArray:
    """Return a mask of the rows whose probabilities are all 0, which means no answer."""
    return _rows_all(probabilities, np.logical_not)


def _rows_all(class_scores: Array, predicate: Callable[[Array], BoolArray]) -> BoolArray:
    """Return a mask of the rows whose entries all satisfy a predicate.

    To save memory, the function processes blocks of columns.
    """
    if class_scores.ndim != 2 or class_scores.size == 0:
        # `Predictions` raises an error for this shape.
        return np.asarray(predicate(class_scores).all(axis=1))
    n_classes = class_scores.shape[1]
    mask: BoolArray = predicate(class_scores[:, 0])
    start = 1
    while start < n_classes and mask.any():
        rows = np.flatnonzero(mask)
        stop = min(8 * start, n_classes)
        mask[rows] = np.asarray(predicate(class_scores[rows, start:stop]).all(axis=1))
        start = stop
    return mask
