"""Columns to the arrays that a purpose needs: numbers, labels, class names; each fault named."""

import re
from collections.abc import Callable, Hashable, Sequence

import numpy as np

from abstain._foundation.checks import FIRST_INEXACT_INTEGER
from abstain._foundation.option_format import format_option
from abstain.errors import DomainError, InputError, ShapeError
from abstain.predictions.classes import CodedNames
from abstain.tables.column import DataColumn, to_number
from abstain.tables.grades import GRADE_EXAMPLES, grade_of
from abstain.tables.number_formats import are_percentages
from abstain.typing import Array, BoolArray

#: Rows of class scores that are turned at a time.
_TILE = 256

_INTEGER = re.compile(r"-?[1-9][0-9]*|0|true|false", re.IGNORECASE)
_DECIMAL = re.compile(r"-?(?:[1-9][0-9]*|0)\.0+")


def as_numbers(column: DataColumn, what: str, source: str, *, typeless: bool) -> DataColumn:
    """Return a column of numbers, shape (n,); refuse text with the first offending entry."""
    if typeless or _holds_percentages(column):
        column = to_number(column)
    if column.texts is not None:
        raise DomainError(_text_refusal(column, what, source, typeless=typeless))
    if column.values.ndim != 1:
        raise ShapeError(
            f"{source}: {column.name!r} ({what}) must hold one number a row; "
            f"got shape {column.values.shape}"
        )
    return column


def _text_refusal(column: DataColumn, what: str, source: str, *, typeless: bool) -> str:
    texts = column.texts if column.texts is not None else np.array([], dtype=object)
    bad = np.array([not _is_number(str(t)) for t in texts] + [False])
    numeric = not bad.any()
    offending = bad[column.values] if not numeric else column.values >= 0
    row = int(np.flatnonzero(offending)[0])
    value = column.shown(row)
    hint = ""
    if numeric:
        hint = " These are numbers saved as text: convert the column to a numeric type and save it."
    elif "," in value and _is_number(value.strip("'").replace(",", ".")):
        hint = f" If the comma is the decimal mark, pass {format_option('decimal', ',')}."
    elif typeless:
        hint = " Leave missing entries empty."
    return (
        f"{source}: column {column.name!r} ({what}) must hold numbers; "
        f"got the text {value} in row {row}, counted from 0.{hint}"
    )


def _holds_percentages(column: DataColumn) -> bool:
    return column.texts is not None and are_percentages(list(map(str, column.texts)))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def correctness(column: DataColumn, source: str, *, typeless: bool) -> DataColumn:
    """Return correctness in [0, 1]; grades may be words such as CORRECT and INCORRECT."""
    column = to_number(column) if typeless else column
    if column.texts is not None:
        grades = [grade_of(str(text)) for text in column.texts]
        if None not in grades:
            grade_by_code = np.array([*grades, np.nan], dtype=np.float64)
            values = grade_by_code[column.values]
            return DataColumn(column.name, values, None, column.missing, column.origin)
        _check_no_other_words(column, grades, source)
    column = as_numbers(column, "correct", source, typeless=typeless)
    outside = (column.values < 0) | (column.values > 1)  # NaN is neither
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        raise DomainError(
            f"{source}: column {column.name!r} (correct) must hold 0, 1 or a grade between; "
            f"got {column.shown(row)} in row {row}, counted from 0"
        )
    return column


def _check_no_other_words(column: DataColumn, grades: Sequence[float | None], source: str) -> None:
    """Raise an error if some texts of a column are grades in words and others are not."""
    texts = [] if column.texts is None else list(map(str, column.texts))
    others = [text for text, grade in zip(texts, grades, strict=True) if grade is None]
    if all(_is_number(text) for text in others):
        return
    raise DomainError(
        f"{source}: column {column.name!r} (correct) must hold 0, 1, a grade between or a word for "
        f"one ({GRADE_EXAMPLES}); got {others[0]!r}"
    )


def plain(column: DataColumn) -> DataColumn:
    """Return class values as whole numbers or text; refuse fractions."""
    if column.texts is not None or column.values.dtype.kind in "biu":
        return column
    if not column.whole:
        broken = np.floor(column.values) != column.values
        if column.missing is not None:
            broken &= ~column.missing
        row = int(np.flatnonzero(broken)[0])
        raise DomainError(
            f"column {column.name!r} must hold classes (text or whole numbers); "
            f"got {column.shown(row)} in row {row}, counted from 0. If they are amounts, give a "
            f"column that says how wrong each prediction is: {format_option('loss')}"
        )
    values = np.where(np.isnan(column.values), 0, column.values)
    if np.abs(values).max(initial=0) >= FIRST_INEXACT_INTEGER:
        row = int(np.argmax(np.abs(values)))
        raise DomainError(
            f"column {column.name!r} holds classes as decimals too large to be exact; got "
            f"{column.shown(row)} in row {row}, counted from 0. Save them as text or as integers"
        )
    return DataColumn(column.name, values.astype(np.int64), None, column.missing, column.origin)


def canonical(written: DataColumn) -> bool:
    """Tell whether a text column writes each whole number in one way: 7 or 7.0, not 07."""
    texts = [str(text) for text in (() if written.texts is None else written.texts)]
    return all(map(_INTEGER.fullmatch, texts)) or all(map(_DECIMAL.fullmatch, texts))


def alike(first: DataColumn, second: DataColumn) -> tuple[DataColumn, DataColumn, str]:
    """Bring two columns of classes to one type; say so when numbers became text."""
    first, second = plain(first), plain(second)
    if first.is_text == second.is_text:
        return first, second, ""
    text, number = (first, second) if first.is_text else (second, first)
    note = f"column {text.name!r} is text and {number.name!r} is numeric: compared as text"
    return first.as_text(), second.as_text(), note


def class_values(column: DataColumn) -> Array | CodedNames:
    """Return labels or predictions as `Predictions` takes them: integers, or str objects."""
    if column.texts is None:
        return column.values
    if column.missing is not None:
        return column.strings()
    return CodedNames(column.values, column.texts)


def scores_block(columns: Sequence[DataColumn], kind: str, source: str) -> Array:
    """Stack class scores into one array (n, K) of the widest type among them."""
    if len(columns) == 1:
        values = columns[0].values
        return values if values.ndim > 1 else _both_classes(values, kind)
    for column in columns:
        if column.values.ndim != 1:
            raise InputError(
                f"{source}: {column.name!r} holds several numbers a row; give it alone"
            )
    every = [c.values for c in columns]
    out = np.empty((every[0].size, len(every)), np.result_type(*every))
    # Column by column each entry would be written to a line of its own, far from the last.
    for start in range(0, len(out), _TILE):
        rows = slice(start, start + _TILE)
        out[rows] = np.array([x[rows] for x in every]).T
    return out


def _both_classes(values: Array, kind: str) -> Array:
    """Return the scores of two classes from those of the second, as a binary model gives them."""
    other = 1 - values if kind == "probabilities" else np.zeros_like(values)
    return np.column_stack([other, values])


def class_names(columns: Sequence[str], pattern: str, label: DataColumn | None) -> list[str]:
    """Name the classes by what distinguishes the columns; prefer names that occur as labels."""
    candidates = [[c.removeprefix(p) for c in columns] for p in _prefixes(columns, pattern)]
    if label is not None:
        known = {str(t) for t in label.distinct()[1]}
        for names in candidates:
            if known & set(names):
                return names
    return candidates[0]


def _prefixes(columns: Sequence[str], pattern: str) -> list[str]:
    """Return the prefixes that may be common, the most plausible first."""
    literal = pattern[: min((pattern.find(s) for s in "*?[" if s in pattern), default=0)]
    first, last = min(columns), max(columns)
    size = next((i for i, c in enumerate(first) if last[i : i + 1] != c), len(first))
    common = first[:size]
    # "p_10" and "p_11" share "p_1"; "cat" and "car" share "ca": cut back to a separator.
    cuts = [i + 1 for i, c in enumerate(common) if not c.isalnum()]
    prefixes = [common[:i] for i in reversed(cuts)]
    given = [literal] if literal else []
    return list(dict.fromkeys([*given, *prefixes, common.rstrip("0123456789"), ""]))


def typed_names(names: list[str], label: DataColumn | None) -> tuple[Hashable, ...]:
    """Return class names as integers where the labels are numbers and all names read as such."""
    if label is None or label.is_text:
        return tuple(names)
    try:
        return tuple(int(name) for name in names)
    except ValueError:
        return tuple(names)


def empty_answers(block: Array) -> BoolArray:
    """Return the rows of class scores that are NaN throughout."""
    if block.dtype.kind != "f":
        return np.zeros(block.shape[0], dtype=np.bool_)
    return _throughout(block, np.isnan)


def zero_rows(block: Array) -> BoolArray:
    """Return the rows of probabilities that are zero throughout: the model gave no answer."""
    return _throughout(block, np.logical_not)


def _throughout(block: Array, test: Callable[[Array], BoolArray]) -> BoolArray:
    """Return the rows whose every entry passes a test; few pass the first, so few are read."""
    if block.ndim != 2 or block.size == 0:  # refused by shape, later
        return np.asarray(test(block).all(axis=1))
    width = block.shape[1]
    out: BoolArray = test(block[:, 0])
    start = 1
    while start < width and out.any():
        rows, stop = np.flatnonzero(out), min(8 * start, width)
        out[rows] = np.asarray(test(block[rows, start:stop]).all(axis=1))
        start = stop
    return out
