"""Chosen columns to one validated `Predictions`, its splits, and what is remarkable about them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from abstain._foundation.notes import READING, Note
from abstain._foundation.option_format import format_option
from abstain.errors import DomainError, InputError, ShapeError
from abstain.predictions import Predictions
from abstain.predictions.classes import CodedNames
from abstain.tables._choice import ChosenColumns
from abstain.tables._classes import Builder, answers
from abstain.tables._reading import Reading, ReadingOptions
from abstain.tables._roles import correctness
from abstain.tables.column import DataColumn, Missing, count
from abstain.tables.number_formats import look_like_percentages
from abstain.tables.table import DataTable
from abstain.typing import Array, BoolArray, IntArray, Split

#: Columns that, by their name, set apart what belongs to different numbers.
APART = ("split", "study", "fold", "model")

#: More splits than this are a mistake in `by` (a column of ids), not a question.
_MOST_SPLITS = 10_000


@dataclass(frozen=True, eq=False)
class _Read:
    """What became of the chosen columns of a table."""

    b: Builder
    whole: Predictions
    kept: Array | None

    @property
    def notes(self) -> list[Note]:
        """What was decided row by row."""
        of_predictions = [Note(READING, text) for text in self.whole.notes]
        return [*self.b.missing.notes, *self.b.notes, *of_predictions]


def build(table: DataTable, chosen: ChosenColumns, asked: ReadingOptions) -> Reading:
    """Read the chosen columns and return the predictions of each split, with notes."""
    read = _read(table, chosen, asked)
    b, whole, kept = read.b, read.whole, read.kept
    notes = [*table.notes, *chosen.notes, *read.notes]
    notes += [*_never_predicted(whole), *_rowwise(whole), *float16_notes(whole)]
    notes += _compared(b, whole, kept)
    splits = _split(b, whole, kept)
    warnings = [*_mixed(b, kept), *doubtful(splits, chosen.id)]
    notes += [Note.warning(READING, text) for text in warnings]
    return Reading(splits, tuple(notes), table.source)


def build_part(table: DataTable, chosen: ChosenColumns, asked: ReadingOptions) -> Reading:
    """Do the same for a part of a file, with those notes alone that count rows.

    What only all rows can say, such as that a class is never predicted, is not said.
    """
    read = _read(table, chosen, asked, partial=True)
    notes = [*read.notes, *_rowwise(read.whole), *_compared(read.b, read.whole, read.kept)]
    return Reading(_split(read.b, read.whole, read.kept), tuple(notes), table.source)


def _read(
    table: DataTable, chosen: ChosenColumns, asked: ReadingOptions, *, partial: bool = False
) -> _Read:
    columns = table.load(chosen.names())
    check_lengths(table, columns)
    missing = Missing(asked.missing, table.source, table.height, partial)
    b = Builder(table, chosen, asked, columns, missing)
    try:
        _numbers(b)
        answers(b)
        _others(b)
        kept = b.missing.kept
        fields = b.fields if kept is None else _rows(b.fields, kept)
        whole = Predictions(
            **fields,
            renormalize=asked.renormalize,
            masked=asked.masked,
            unlabeled=asked.unlabeled,
        )
    except InputError as error:
        if str(error).startswith(table.source):
            raise
        raise type(error)(f"{table.source}: {error}") from None
    return _Read(b, whole, kept)


def check_lengths(table: DataTable, columns: Mapping[str, DataColumn]) -> None:
    """Refuse a table in which a column has another number of rows, as an archive may have."""
    for name, column in columns.items():
        if column.values.shape[:1] != (table.height,):
            raise ShapeError(_other_rows(table, name, column.values.shape, columns))


def _other_rows(
    table: DataTable, name: str, shape: tuple[int, ...], columns: Mapping[str, Any]
) -> str:
    """Say that an array has another number of rows, and where samples may have come first."""
    said = f"{table.source}: {name!r} must have {table.height} rows; got shape {shape}"
    for other, column in columns.items():
        found = column.values.shape
        if len(found) == 3 and found[0] == table.height and found[1] == shape[0]:
            said += (
                f". {other!r} is {found}, and samples must be (n, S, K), the samples of each row "
                "second: swap its first two axes"
            )
    return said


def _rows(fields: dict[str, Any], kept: Array) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, value in fields.items():
        if isinstance(value, np.ndarray | CodedNames):
            out[name] = value[kept]
        elif name == "confidence":
            out[name] = {k: v[kept] for k, v in value.items()}
        else:
            out[name] = value
    return out


def _numbers(b: Builder) -> None:
    """Fill in the loss, confidences and the weights."""
    if b.chosen.correct is not None:
        right = correctness(b.columns[b.chosen.correct], b.table.source, typeless=b.table.typeless)
        may_lack = b.table.may_lack_grades
        b.fields["loss"] = 1.0 - b.missing.required(right, "correct", may_lack=may_lack).values
    elif b.chosen.loss is not None:
        b.fields["loss"] = b.missing.required(b.number(b.chosen.loss, "loss"), "loss").values
    confidence = dict(_confidence(b, name) for name in b.chosen.confidence)
    if confidence:
        b.fields["confidence"] = confidence
    if b.chosen.weight is not None:
        weight = b.missing.required(b.number(b.chosen.weight, "weight"), "weight")
        b.fields["weight"] = weight.values


def _confidence(b: Builder, name: str) -> tuple[str, Array]:
    """Return the name and the values of a confidence, higher is safer."""
    column, title = b.number(name, "confidence"), name
    if name in b.chosen.percentages:
        if not b.missing.partial and not (column.values > 1).any():
            text = (
                f"no value of {name!r} is above 1, so it seems to hold fractions already, as texts "
                f"such as '90%' are read; if it does, leave out {format_option('percent', name)}"
            )
            b.notes.append(Note(READING, text))
        column = _fractions(column, b.table.source)
    elif not b.missing.partial and look_like_percentages(column.values):
        text = (
            f"{name!r} lies between 0 and 100; if it is a percentage, pass "
            f"{format_option('percent', name)} to divide it by 100, as ECE and CWSA require"
        )
        b.notes.append(Note(READING, text))
    if name in b.chosen.turned:
        # Before missing entries are filled in: an abstention has the lowest confidence.
        column, title = replace(column, values=-column.values.astype(np.float64)), f"-{name}"
    return title, b.missing.confidence(column).values


def _fractions(column: DataColumn, source: str) -> DataColumn:
    """Return percentages as fractions."""
    values = column.values.astype(np.float64)
    is_outside = (values < 0) | (values > 100)  # NaN is neither
    if is_outside.any():
        row = int(np.flatnonzero(is_outside)[0])
        raise DomainError(
            f"{source}: column {column.name!r} must hold percentages from 0 to 100 (asked for by "
            f"{format_option('percent')}); got {column.shown(row)} in row {row}, counted from 0"
        )
    return replace(column, values=values / 100)


def _others(b: Builder) -> None:
    """Fill in samples, features, groups and ids."""
    for role, name in b.chosen.keyed.items():
        b.fields[role] = b.columns[name].values
    if b.chosen.group is not None:
        codes, names = b.columns[b.chosen.group].distinct()
        b.fields["group"] = np.array(names, dtype=object)[codes]
    if b.chosen.id is not None:
        column = b.columns[b.chosen.id]
        b.fields["ids"] = column.strings() if column.is_text else column.values
    elif b.asked.by or b.missing.dropped is not None or b.table.first is not None:
        # So that a sample can be found again: the row of the file, counted from 0.
        b.fields["ids"] = np.arange(b.table.height) + (b.table.first or 0)


def _compared(b: Builder, whole: Predictions, kept: Array | None) -> list[Note]:
    """Say where the file's own verdict differs from label == prediction."""
    if b.chosen.checked is None or not whole.has_labels:
        return []
    try:
        verdict = correctness(
            b.columns[b.chosen.checked], b.table.source, typeless=b.table.typeless
        )
    except InputError:
        return []  # a column that merely has the name
    values = verdict.values if kept is None else verdict.values[kept]
    differ = whole.correct != (values == 1)
    if not differ.any():
        return []
    text = (
        f"have a {verdict.name!r} that disagrees with {b.chosen.label!r} == "
        f"{b.chosen.prediction!r}; pass {format_option('correct', verdict.name)} to go by the "
        "column"
    )
    return [Note(READING, text, rows=count(differ))]


def _mixed(b: Builder, kept: Array | None) -> list[str]:
    """Warn of columns that by their name set rows apart, where they are mixed."""
    said = []
    for usual in APART:
        name = b.table.find(usual)
        if name is None or name in b.chosen.names() or b.table.kinds[name] == "block":
            continue
        column = b.table.load((name,))[name]
        column = column if kept is None else column.rows(kept)
        values = column.distinct()[1]
        if len(values) > 1:
            shown = ", ".join(map(str, values[:4])) + (", ..." if len(values) > 4 else "")
            said.append(
                f"column {name!r} has {len(values):,} values ({shown}) and every number here mixes "
                f"them; pass {format_option('by', name)} to take them apart"
            )
    return said


# ------------------------------------------------------------------------------------ splits
def _split(b: Builder, whole: Predictions, kept: Array | None) -> dict[Split, Predictions]:
    by = b.chosen.by
    if not by:
        return {(): whole}
    codes = np.zeros(whole.n, dtype=np.int64)
    values: list[list[str]] = []
    for name in by:
        column = b.columns[name] if kept is None else b.columns[name].rows(kept)
        own, names = column.distinct()
        codes = codes * len(names) + own
        values.append([str(v) for v in names])
    found, first, place = np.unique(codes, return_index=True, return_inverse=True)
    part = b.table.first is not None
    if found.size > _MOST_SPLITS or (found.size > 100 and 2 * found.size > whole.n and not part):
        raise InputError(
            f"{b.table.source}: {format_option('by')} = {', '.join(by)} makes {found.size:,} "
            f"splits of {whole.n:,} rows; name columns with few values"
        )
    rows = np.split(np.argsort(place, kind="stable"), np.cumsum(np.bincount(place))[:-1])
    out = {}
    for i in np.argsort(first):
        out[_decode(int(found[i]), by, values)] = whole.subset(rows[i])
    return out


def _decode(code: int, by: tuple[str, ...], values: list[list[str]]) -> Split:
    pairs = []
    for name, names in zip(reversed(by), reversed(values), strict=True):
        code, own = divmod(code, len(names))
        pairs.append((name, names[own]))
    return tuple(reversed(pairs))


#: Labels without a prediction that a note names one by one.
_MOST_NAMED = 20
#: Labels that nothing ever predicts are worth a note when this share of the rows has one.
_NOTABLE = 0.005


def _rowwise(p: Predictions) -> list[Note]:
    """Return notes on empty predictions and on confidences of 0."""
    notes = []
    if p.prediction is not None and "" in p.class_names:
        is_empty: BoolArray = p.prediction_codes == p.class_names.index("")
        text = "have an empty prediction: the model gave no answer, always wrong"
        notes += [Note(READING, text, rows=count(is_empty))] if is_empty.any() else []
    for name, values in (p.confidence or {}).items():
        is_zero = values == 0
        if is_zero.sum() > 1 and not (values < 0).any():
            text = f"have {name!r} exactly 0: abstentions, or all tied last"
            notes.append(Note(READING, text, rows=count(is_zero)))
    return notes


def doubtful(splits: Mapping[Split, Predictions], id_column: str | None) -> list[str]:
    """Return warnings about data that are most likely not what was meant."""
    return [*_one_class(splits.values()), *_repeated(splits.values(), id_column)]


def _one_class(parts: Iterable[Predictions]) -> list[str]:
    """Warn where all labels of a known class are the same one."""
    have = [p for p in parts if p.has_labels]
    codes = {int(code) for p in have for code in np.flatnonzero(_of_classes(p))}
    if len(codes) != 1 or sum(p.n for p in have) < 2 or have[0].n_classes < 2:
        return []
    name = have[0].class_names[codes.pop()]
    return [f"every label is {name!r}: of the other classes these data say nothing"]


def _of_classes(p: Predictions) -> IntArray:
    """Return how many samples have each class as their label."""
    labels = p.label_codes
    known = labels if labels.min() >= 0 else labels[labels >= 0]
    return np.bincount(known, minlength=p.n_classes)


def _repeated(parts: Iterable[Predictions], id_column: str | None) -> list[str]:
    """Warn where one name stands for several samples of a split."""
    if id_column is None:
        return []
    rows = total = 0
    for p in parts:
        names = np.asarray(p.ids)
        total += p.n
        # Most names are unique, which a set tells sooner than a sort of texts.
        if names.dtype.kind != "O" or len(set(names.tolist())) < p.n:
            _, counts = np.unique(names.astype(str), return_counts=True)
            rows += int(counts[counts > 1].sum())
    if rows == 0:
        return []
    warning = (
        f"{rows:,} of {total:,} rows share their name in {id_column!r} with another row. Repeated "
        "rows count twice; several rows of one subject are not independent: name the subject with "
        f"{format_option('group', id_column)} and ask for clustered intervals"
    )
    return [warning]


def _never_predicted(p: Predictions) -> list[Note]:
    """Return a note on labels that are never predicted."""
    if p.prediction is None or not p.has_labels:
        return []
    have = _of_classes(p)
    given = np.bincount(p.prediction_codes, minlength=p.n_classes)
    names = p.class_names
    never = np.flatnonzero((have > 0) & (given == 0))
    never = never[np.argsort(-have[never], kind="stable")]
    marked = any(str(names[i]).startswith("-") for i in never)
    if have[never].sum() < _NOTABLE * p.n and not marked:
        return []
    if never.size == 0:
        return []
    named = [names[i] for i in never[:_MOST_NAMED]]
    n_others = never.size - len(named)
    shown = ", ".join(map(repr, named)) + (f" and {n_others} more" if n_others else "")
    rows = np.isin(p.label_codes, never)
    marks, value = ("it marks", named[0]) if never.size == 1 else ("some mark", named)
    text = (
        f"labels that are never predicted, so always wrong: {shown}, {count(rows)}; if {marks} "
        f"samples of no known class, pass {format_option('unknown_label', value)}"
    )
    return [Note(READING, text)]


def float16_notes(p: Predictions) -> list[Note]:
    """Return a note on arrays that are stored as float16."""
    fields = ("logits", "probabilities", "logit_samples", "probability_samples", "features")
    arrays = {name: getattr(p, name) for name in fields if getattr(p, name) is not None}
    arrays |= {f"confidence {name!r}": values for name, values in (p.confidence or {}).items()}
    narrow = [name for name, values in arrays.items() if values.dtype == np.float16]
    if not narrow:
        return []
    return [Note(READING, f"stored as float16 (about 3 digits, many ties): {', '.join(narrow)}")]
