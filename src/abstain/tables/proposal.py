"""What the columns of a file may be, for someone to say yes to: roles, splits, directions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from abstain.tables._choice import USUAL, score_families
from abstain.tables.column import DataColumn
from abstain.tables.table import DataTable
from abstain.typing import Array

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
#: Words in the names of uncertainties.
_UNCERTAIN: Final = ("entropy", "uncertain", "variance", "std", "mutual_info", "distance", "energy")
_NO_CONFIDENCE: Final = ("id", "index", "row", "epoch", "step", "seed", "fold", "run", "time")
#: Splits that a table has room for, the rows that are looked at, and how near to 1 rows sum.
_MOST_SPLITS: Final = 60
_LOOKED: Final = 10_000
_NEAR: Final = 0.02
_ROUNDED: Final = 1e-3


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
    taken = {name for one in found for name in one.columns}
    scores = _scores(table)
    if scores is not None:
        found.append(scores)
        taken.update(scores.columns)
    found += _splits(table, taken)
    taken.update(name for one in found for name in one.columns)
    taken.update(name for _, names in score_families(table) for name in names)
    if not (scores is not None and table.keyed):
        found += _confidences(table, taken, scored=scores is not None)
    return tuple(found)


def _truth(table: DataTable) -> Iterator[ColumnProposal]:
    met = set()
    for role in ("label", "prediction", "correct", "loss"):
        usual = [table.find(name) for name in USUAL[role]]
        name = table.meant.get(role) or next((n for n in usual if n is not None), None)
        if name is not None:
            met.add(role)
            yield ColumnProposal(role, (name,), "a usual name", usual=True)
            continue
        if role == "correct" and {"label", "prediction"} <= met:
            continue  # nobody needs it
        likely = [table.find(name) for name in _LIKELY.get(role, ())]
        near = next((n for n in likely if n and table.kinds[n] in {"number", "text"}), None)
        if near is not None:
            met.add(role)
            yield ColumnProposal(role, (near,), "its name is like one")


def _head(table: DataTable, names: Sequence[str]) -> dict[str, Array]:
    kept = np.arange(min(table.height, _LOOKED))
    return {name: column.values for name, column in table.rows(kept).load(names).items()}


# ------------------------------------------------------------------------------------ class scores
def _scores(table: DataTable) -> ColumnProposal | None:
    """Return the class scores, probabilities before logits where there are both."""
    found = []
    for name, kind in table.kinds.items():
        if kind == "block" and table.lengths.get(name, table.height) == table.height:
            values = _head(table, [name])[name]
            if values.ndim == 2 and values.shape[1] > 1 and values.dtype.kind in "fiu":
                found.append(_kind_of((name,), values))
    for _, names in score_families(table):
        columns = list(_head(table, names).values())
        found.append(_kind_of(tuple(names), np.column_stack(columns).astype(float)))
    ways = [one for one in found if one is not None]
    return next((one for one in ways if one.role == "probabilities"), next(iter(ways), None))


def _kind_of(names: tuple[str, ...], values: Array) -> ColumnProposal | None:
    """Tell probabilities from logits by what values do; None where neither is likely."""
    if not np.isfinite(values).all():
        return None
    low, high, sums = values.min(), values.max(), values.sum(1)
    if low >= -_ROUNDED and high <= 1 + _ROUNDED and (np.abs(sums - 1) <= _NEAR).all():
        return ColumnProposal("probabilities", names, "each row is in [0, 1] and sums to 1")
    logits = any("logit" in name.lower() for name in names)
    if logits or (low < 0 and len(names) == 1 and values.dtype.kind == "f"):
        said = "their name says so" if logits else "values below 0, rows do not sum to 1"
        return ColumnProposal("logits", names, said)
    return None


# ------------------------------------------------------------------------------------ others
def _splits(table: DataTable, taken: set[str]) -> Iterator[ColumnProposal]:
    by = []
    for name in (table.find(word) for word in (*_SPLITS, *_SPLITS_TOO)):
        if name is None or name in taken or table.kinds[name] not in {"number", "text"}:
            continue
        column = table.load([name])[name]
        if 1 < _distinct(column) <= _MOST_SPLITS:
            by.append(name)
    if by:
        yield ColumnProposal("by", tuple(by), "few values, and the name of a split")


def _distinct(column: DataColumn) -> int:
    return len(np.unique(column.values))


def _confidences(table: DataTable, taken: set[str], *, scored: bool) -> Iterator[ColumnProposal]:
    """Propose the usual confidence, else each column of decimals beside class scores or not."""
    usual = [table.find(name) for name in USUAL["confidence"]]
    first = next((n for n in usual if n is not None and n not in taken), None)
    own = [n for n, k in table.kinds.items() if n.startswith("confidence_") and k == "number"]
    known = [n for n in dict.fromkeys((first, *own)) if n is not None]
    if known:
        yield ColumnProposal("confidence", tuple(known), "a usual name", usual=True)
    if known or scored:
        return
    for name, kind in table.kinds.items():
        if kind != "number" or name in taken or name.lower().strip() in _NO_CONFIDENCE:
            continue
        values = _head(table, [name])[name]
        if values.dtype.kind != "f" or np.array_equal(values, np.round(values)):
            continue
        turned = any(word in name.lower() for word in _UNCERTAIN)
        why = "the name of an uncertainty: turned around" if turned else "a column of decimals"
        yield ColumnProposal("confidence", (f"-{name}" if turned else name,), why)
