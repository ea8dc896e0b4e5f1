"""What the columns of a file may be, for someone to say yes to: roles, splits, directions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from abstain.errors import InputError
from abstain.metrics import failure_auroc
from abstain.tables._choice import USUAL, score_families
from abstain.tables._roles import class_names
from abstain.tables.column import MISSING, DataColumn
from abstain.tables.table import DataTable
from abstain.typing import Array, BoolArray

#: Names that are likely and not read unasked, by the role that they may have.
_LIKELY: Final[Mapping[str, tuple[str, ...]]] = {
    "label": (
        "gt",
        "truth",
        "true",
        "actual",
        "ground_truth",
        "true_label",
        "label_id",
        "y",
        "gold",
        "class",
        "references",
        "reference",
        "gt_label",
        "true_class",
        "answer",
    ),
    "prediction": (
        "predicted_label",
        "predicted_class",
        "pred_label",
        "yhat",
        "y_hat",
        "output",
        "pred_class",
        "top1",
        "argmax",
        "response",
    ),
    "correct": ("right", "hit", "acc", "is_right", "was_correct", "exact_match"),
}
_SPLITS: Final = ("study", "split", "dataset", "data_set", "model", "domain", "shift", "fold")
_SPLITS_TOO: Final = ("seed", "run", "method", "task", "subset")
#: Words that say of which data a column or an array is, and nothing of its role.
_OF_DATA: Final = frozenset({"test", "val", "valid", "validation", "train", "eval", "dev", "iid"})
#: Names of samples, and of the class of a row where a sample has several.
_IDS: Final = ("id", "ids", "image", "sample", "sample_id", "image_id", "uid", "path", "file")
_CLASSES: Final = ("class", "class_name", "category", "option", "choice", "candidate", "label_name")
#: Words in the names of uncertainties.
_UNCERTAIN: Final = ("entropy", "uncertain", "variance", "std", "mutual_info", "distance", "energy")
_NO_CONFIDENCE: Final = ("id", "index", "row", "epoch", "step", "seed", "fold", "run", "time")
#: Splits that a table has room for, the rows that are looked at, and how near to 1 rows sum.
_MOST_SPLITS: Final = 60
_LOOKED: Final = 10_000
_NEAR: Final = 0.02
_ROUNDED: Final = 1e-3
#: Class scores of so many entries are looked at in full for rows without an answer.
_MOST_ENTRIES: Final = 50_000_000
#: A direction is measured on so many right and wrong answers, and told from so clear a one.
_FEWEST: Final = 10
_CLEAR: Final = 0.4
#: Labels without a class that are named one by one, and how many of the rows they may be.
_FEW_LABELS: Final = 5
_MOST_UNKNOWN: Final = 0.9


@dataclass(frozen=True)
class ColumnProposal:
    """The role that a column, or a family of columns, may have.

    Attributes
    ----------
    role : str
        The option of `read_predictions`: "label", "logits", "by" and so on.
    columns : tuple of str
        The columns; one beginning with "-" is turned around.
    why : str
        What speaks for it.
    usual : bool
        Whether it is read so without being asked for.
    """

    role: str
    columns: tuple[str, ...]
    why: str
    usual: bool = False


def propose(table: DataTable) -> tuple[ColumnProposal, ...]:
    """Propose roles for the columns of a table, by their names and by their values.

    Unlike `read_predictions` this looks at values, since nothing is read by what it says until
    someone agrees.

    Examples
    --------
    >>> from abstain.tables.table import from_arrays
    >>> columns = {"gt": [0, 1, 1], "out": [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]]}
    >>> [(p.role, p.columns) for p in propose(from_arrays(columns, "a file"))]
    [('label', ('gt',)), ('probabilities', ('out',))]
    """
    found = list(_truth(table))
    taken = _columns_of(found)
    found += _long(table, taken)
    long = any(one.role == "long" for one in found)
    scores = None if long else _scores(table, _label_of(found))
    if scores is not None:
        # A prediction beside class scores is told by them.
        found.append(scores)
        found += _unanswered(table, scores)
        found += _unknown(table, scores, _label_of(found))
    found += _splits(table, _columns_of(found))
    taken = _columns_of(found)
    taken.update(name for _, names in score_families(table) for name in names)
    if not long and not (scores is not None and table.keyed):
        sure = list(_confidences(table, taken, found, scored=scores is not None))
        found += [*sure, *_gaps(table, sure)]
    # Scores and confidences may both have gaps.
    return tuple({(one.role, one.columns): one for one in reversed(found)}.values())[::-1]


def _columns_of(found: Iterable[ColumnProposal]) -> set[str]:
    return {name for one in found for name in one.columns}


def _label_of(found: Iterable[ColumnProposal]) -> str | None:
    return next((one.columns[0] for one in found if one.role == "label"), None)


def _truth(table: DataTable) -> Iterator[ColumnProposal]:
    met = set()
    for role in ("label", "prediction", "correct", "loss"):
        usual = [table.find(name) for name in USUAL[role]]
        name = table.meant.get(role) or next((n for n in usual if n in _plain(table)), None)
        if name is not None:
            met.add(role)
            yield ColumnProposal(role, (name,), "a usual name", usual=True)
            continue
        if role == "correct" and {"label", "prediction"} <= met:
            continue  # nobody needs it
        near = _likely(table, (*_LIKELY.get(role, ()), *USUAL[role]))
        if near is not None:
            met.add(role)
            yield ColumnProposal(role, (near,), "its name is like one")


def _plain(table: DataTable) -> list[str]:
    """Return the columns with one number or text a row."""
    return [name for name, kind in table.kinds.items() if kind in {"number", "text"}]


def _likely(table: DataTable, words: Sequence[str]) -> str | None:
    """Return a column of that name, but for words that say of which data it is."""
    bare = {_bare(name): name for name in reversed(_plain(table))}
    return next((bare[word] for word in words if word in bare), None)


def _bare(name: str) -> str:
    words = "".join(name.split()).casefold().replace("-", "_").split("_")
    return "_".join(word for word in words if word not in _OF_DATA)


def _head(table: DataTable, names: Sequence[str]) -> dict[str, Array]:
    kept = np.arange(min(table.height, _LOOKED))
    return {name: column.values for name, column in table.rows(kept).load(names).items()}


# ------------------------------------------------------------------------------------ class scores
def _scores(table: DataTable, label: str | None) -> ColumnProposal | None:
    """Return the class scores, probabilities before logits where there are both."""
    found = []
    for name, kind in table.kinds.items():
        if kind == "block" and table.lengths.get(name, table.height) == table.height:
            values = _block(table, name)
            if values is not None and values.ndim == 2 and values.shape[1] > 1:
                found.append(_kind_of((name,), values))
    families = [names for _, names in score_families(table)]
    for names in [*families, *_named_as_labels(table, label)]:
        columns = list(_head(table, names).values())
        found.append(_kind_of(tuple(names), np.column_stack(columns).astype(float)))
    ways = [one for one in found if one is not None]
    return next((one for one in ways if one.role == "probabilities"), next(iter(ways), None))


def _block(table: DataTable, name: str) -> Array | None:
    """Return a column of several numbers a row; None where it is one of words, say, or ragged."""
    try:
        values = _head(table, [name])[name]
    except InputError:
        return None
    return values if values.dtype.kind in "fiu" else None


def _named_as_labels(table: DataTable, label: str | None) -> Iterator[list[str]]:
    """Yield columns of numbers that have the names of labels, as the classes of scikit-learn."""
    if label is None:
        return
    there = set(map(str, _distinct(table, label)))
    named = [name for name, kind in table.kinds.items() if kind == "number" and name in there]
    if len(named) > 1:
        yield named


def _kind_of(names: tuple[str, ...], values: Array) -> ColumnProposal | None:
    """Tell probabilities from logits by what values do; None where neither is likely."""
    answered = np.isfinite(values).all(1) & (values != 0).any(1)
    gaps = np.isnan(values).all(1) | (values == 0).all(1)
    if not answered.any() or not (answered | gaps).all():
        return None
    values = values[answered]
    low, high, sums = values.min(), values.max(), values.sum(1)
    if low >= -_ROUNDED and high <= 1 + _ROUNDED and (np.abs(sums - 1) <= _NEAR).all():
        return ColumnProposal("probabilities", names, "each row is in [0, 1] and sums to 1")
    logits = any("logit" in name.lower() for name in names)
    if logits or (low < 0 and len(names) == 1 and values.dtype.kind == "f"):
        said = "their name says so" if logits else "values below 0, rows do not sum to 1"
        return ColumnProposal("logits", names, said)
    return None


def _unanswered(table: DataTable, scores: ColumnProposal) -> Iterator[ColumnProposal]:
    """Propose what to do about rows without class scores."""
    width = len(scores.columns)
    whole = table if table.height * width <= _MOST_ENTRIES else table.rows(np.arange(_LOOKED))
    columns = [column.values for column in whole.load(scores.columns).values()]
    block = columns[0] if width == 1 else np.column_stack(columns)
    gaps: BoolArray = np.isnan(block.astype(float, copy=False)).all(1)
    if scores.role == "probabilities":
        gaps |= (block == 0).all(1)
    yield from _rejected(gaps, "class scores")


def _rejected(gaps: BoolArray, what: str) -> Iterator[ColumnProposal]:
    if gaps.any():
        share = f"{gaps.sum():,} of {gaps.size:,} rows have no {what}"
        yield ColumnProposal("missing", ("reject",), f"{share} and count as abstentions")


def _unknown(
    table: DataTable, scores: ColumnProposal, label: str | None
) -> Iterator[ColumnProposal]:
    """Propose the labels that no class of the scores stands for."""
    if label is None:
        return
    column = table.load([label])[label]
    # As text, in which 1.0 is the class "1".
    codes, names = column.as_text().distinct()
    classes = set(_classes(table, scores, column))
    unknown = [name for name in names if name not in classes and name != MISSING]
    share = np.isin(codes, [names.index(name) for name in unknown]).mean()
    if unknown and share <= _MOST_UNKNOWN:
        asked = tuple(unknown) if len(unknown) <= _FEW_LABELS else ("*",)
        yield ColumnProposal("unknown_label", asked, f"no class scores; {share:.1%} of the rows")


def _classes(table: DataTable, scores: ColumnProposal, label: DataColumn) -> Iterator[str]:
    """Yield the names of the classes, as the reader will take them."""
    if len(scores.columns) > 1:
        yield from class_names(scores.columns, "", label)
        return
    width = _head(table, scores.columns)[scores.columns[0]].shape[1]
    yield from map(str, range(width))


def _long(table: DataTable, taken: set[str]) -> Iterator[ColumnProposal]:
    """Propose the form of a table that has a row for each class of a sample."""
    free = {name: table.kinds[name] for name in _plain(table) if name not in taken}
    name = next((n for n in map(table.find, _IDS) if n in free), None)
    classes = next((n for n in map(table.find, _CLASSES) if n in free), None)
    numbers = [n for n, kind in free.items() if kind == "number" and n not in {name, classes}]
    if name is None or classes is None or len(numbers) != 1:
        return
    samples, k = len(_distinct(table, name)), len(_distinct(table, classes))
    if k < 2 or samples * k != table.height:
        return
    codes, _ = table.load([name])[name].distinct()
    values = table.load(numbers)[numbers[0]].values.astype(float)
    sums = np.bincount(codes, values)
    kind = "logits"
    if (values >= -_ROUNDED).all() and (np.abs(sums - 1) <= _NEAR).all():
        kind = "probabilities"
    elif not (values < 0).any():
        return
    yield ColumnProposal("id", (name,), f"{samples:,} names, each in {k} rows")
    yield ColumnProposal("long", (classes,), f"{k} classes, a row of each for a sample")
    yield ColumnProposal(kind, (numbers[0],), "the scores of the classes")


# ------------------------------------------------------------------------------------ others
def _splits(table: DataTable, taken: set[str]) -> Iterator[ColumnProposal]:
    by = []
    for name in (table.find(word) for word in (*_SPLITS, *_SPLITS_TOO)):
        if name is None or name in taken or name not in _plain(table):
            continue
        if 1 < len(_distinct(table, name)) <= _MOST_SPLITS:
            by.append(name)
    if by:
        yield ColumnProposal("by", tuple(by), "few values, and the name of a split")


def _distinct(table: DataTable, name: str) -> list[Any]:
    return table.load([name])[name].distinct()[1]


def _confidences(
    table: DataTable, taken: set[str], found: Sequence[ColumnProposal], *, scored: bool
) -> Iterator[ColumnProposal]:
    """Propose the usual confidence, else each column of decimals where there is nothing else."""
    usual = [table.find(name) for name in USUAL["confidence"]]
    first = next((n for n in usual if table.kinds.get(str(n)) == "number" and n not in taken), None)
    own = [n for n, k in table.kinds.items() if n.startswith("confidence_") and k == "number"]
    known = [n for n in dict.fromkeys((first, *own)) if n is not None]
    if known:
        yield ColumnProposal("confidence", tuple(known), "a usual name", usual=True)
    if known or scored:
        return
    right = _right(table, found)
    for name, kind in table.kinds.items():
        if kind != "number" or name in taken or name.lower().strip() in _NO_CONFIDENCE:
            continue
        values = _head(table, [name])[name]
        there = values[np.isfinite(values)] if values.dtype.kind == "f" else values
        if values.dtype.kind != "f" or np.array_equal(there, np.round(there)):
            continue
        yield _directed(name, values, right)


def _directed(name: str, values: Array, right: BoolArray | None) -> ColumnProposal:
    """Propose a confidence, turned around where right answers have the lower values."""
    found = None if right is None else _ranked(values, right)
    if found is not None:
        turned = found < 1 - found
        share = f"{max(found, 1 - found):.0%} of pairs of a right and a wrong answer"
        why = f"lower for right answers, in {share}: turned around" if turned else f"ranks {share}"
    else:
        turned = any(word in name.lower() for word in _UNCERTAIN)
        why = "the name of an uncertainty: turned around" if turned else "a column of decimals"
    return ColumnProposal("confidence", (f"-{name}" if turned else name,), why)


def _right(table: DataTable, found: Sequence[ColumnProposal]) -> BoolArray | None:
    """Return which of the rows that are looked at are right, where columns say so."""
    names = {one.role: one.columns[0] for one in found}
    kept = table.rows(np.arange(min(table.height, _LOOKED)))
    if {"label", "prediction"} <= names.keys():
        label, answer = kept.load([names["label"], names["prediction"]]).values()
        return np.asarray(label.as_text().strings() == answer.as_text().strings())
    if "correct" not in names:
        return None
    column = kept.load([names["correct"]])[names["correct"]]
    return None if column.is_text else np.asarray(column.values > 0)


def _ranked(values: Array, right: BoolArray) -> float | None:
    """Return how often a right answer has a higher value than a wrong one, where that is clear."""
    there = np.isfinite(values)
    right, values = right[there], values[there]
    if min(int(right.sum()), int((~right).sum())) < _FEWEST:
        return None
    area = failure_auroc(values, ~right)
    return area if area <= _CLEAR or area >= 1 - _CLEAR else None


def _gaps(table: DataTable, sure: Sequence[ColumnProposal]) -> Iterator[ColumnProposal]:
    """Propose what to do about rows without a confidence."""
    names = [name.removeprefix("-") for one in sure for name in one.columns]
    known = [n if n in table.kinds else f"-{n}" for n in names]
    missing = [c.missing for c in table.load(known).values() if c.missing is not None]
    if missing:
        yield from _rejected(np.any(missing, axis=0), "confidence")
