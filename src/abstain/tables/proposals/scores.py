"""Propose columns for class scores and their labels, and options for rows without class scores."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from abstain.errors import InputError
from abstain.tables._classes import ALL_OTHER_LABELS
from abstain.tables._column_selection import class_score_families
from abstain.tables._conversion import class_names
from abstain.tables.column import MISSING, DataColumn
from abstain.tables.proposals.columns import (
    N_FIRST_ROWS,
    UNUSED,
    ColumnProposal,
    bare_name,
    distinct_values,
    first_rows,
)
from abstain.tables.table import DataTable
from abstain.typing import Array, BoolArray

#: Maximum difference between 1 and the sum of a row of probabilities.
NEAR_ONE: Final = 0.02
#: Maximum distance of a rounded probability from [0, 1].
ROUNDING: Final = 1e-3
#: Maximum number of class scores for which all rows are searched for missing answers.
_MAX_ENTRIES: Final = 50_000_000
#: Maximum number of labels without a class that are listed, and maximum share of their rows.
_MAX_LISTED_LABELS: Final = 5
_MAX_SHARE_UNKNOWN: Final = 0.9
#: Words in the names of integers that are not labels.
_NO_LABEL_WORDS: Final = frozenset(
    {"id", "ids", "index", "idx", "row", "pred", "preds", "prediction", "predictions", "predicted",
     "argmax", "top1", "fold", "seed", "epoch", "group", "correct", "weight", "weights", "study"}
)  # fmt: skip


def propose_scores(table: DataTable, label: str | None) -> list[ColumnProposal]:
    """Propose class scores, probabilities before logits, and list unused ones of the same kind."""
    candidates = []
    for name, kind in table.kind_by_column.items():
        if kind == "block" and table.length_by_key.get(name, table.n_rows) == table.n_rows:
            values = _load_numeric_block(table, name)
            if values is not None and values.ndim == 2 and values.shape[1] > 1:
                candidates.append(_propose_kind((name,), values))
    families = [names for _, names in class_score_families(table)]
    families += _columns_named_as_labels(table, label)
    for names in families:
        values = np.column_stack(list(first_rows(table, names).values())).astype(float)
        candidates.append(_propose_kind(tuple(names), values))
    proposals = [candidate for candidate in candidates if candidate is not None]
    if not proposals:
        return []
    selected = next((p for p in proposals if p.role == "probabilities"), proposals[0])
    # Class scores of the other kind probably belong to the same model.
    same_kind = [p for p in proposals if p.role == selected.role and p is not selected]
    return [selected, *(_as_unused(proposal, selected) for proposal in same_kind)]


def _as_unused(proposal: ColumnProposal, selected: ColumnProposal) -> ColumnProposal:
    reason = (
        f"{proposal.role} like {selected.columns[0]!r}, perhaps of another model; the command does "
        "not read them"
    )
    return replace(proposal, role=UNUSED, reason=reason, is_default=True)


def label_of_scores(table: DataTable, scores: ColumnProposal) -> ColumnProposal | None:
    """Propose the only column of integers that can be labels for class scores, or return None."""
    n_classes = _count_classes(table, scores)
    names = [
        name
        for name, kind in table.kind_by_column.items()
        if kind == "number"
        and name not in scores.columns
        and table.length_by_key.get(name, table.n_rows) == table.n_rows
        and _NO_LABEL_WORDS.isdisjoint(bare_name(name).split("_"))
        and _are_classes(first_rows(table, [name])[name], n_classes)
    ]
    if len(names) != 1:
        return None
    reason = f"whole numbers from 0 to {n_classes - 1}, one for each class score"
    return ColumnProposal("label", (names[0],), reason)


def _count_classes(table: DataTable, scores: ColumnProposal) -> int:
    if len(scores.columns) > 1:
        return len(scores.columns)
    return int(first_rows(table, scores.columns)[scores.columns[0]].shape[1])


def _are_classes(values: Array, n_classes: int) -> bool:
    is_finite = bool(np.isfinite(values).all())
    in_range = is_finite and bool(values.min() >= 0 and values.max() < n_classes)
    return in_range and bool((values == np.round(values)).all())


def _load_numeric_block(table: DataTable, name: str) -> Array | None:
    """Return a column of several numbers per row; None for text or lists of different lengths."""
    try:
        values = first_rows(table, [name])[name]
    except InputError:
        return None
    return values if values.dtype.kind in "fiu" else None


def _columns_named_as_labels(table: DataTable, label: str | None) -> Iterator[list[str]]:
    """Yield the columns of numbers whose names are labels, such as the classes of scikit-learn."""
    if label is None:
        return
    labels = set(map(str, distinct_values(table, label)))
    numbers = [name for name, kind in table.kind_by_column.items() if kind == "number"]
    names = [name for name in numbers if name in labels]
    if len(names) > 1:
        yield names


def _propose_kind(names: tuple[str, ...], values: Array) -> ColumnProposal | None:
    """Propose probabilities or logits, depending on the values; None if both are unlikely."""
    has_scores = np.isfinite(values).all(1) & (values != 0).any(1)
    has_no_scores = np.isnan(values).all(1) | (values == 0).all(1)
    if not has_scores.any() or not (has_scores | has_no_scores).all():
        return None
    values = values[has_scores]
    low, high, sums = values.min(), values.max(), values.sum(1)
    if low >= -ROUNDING and high <= 1 + ROUNDING and (np.abs(sums - 1) <= NEAR_ONE).all():
        return ColumnProposal("probabilities", names, "each row is in [0, 1] and sums to 1")
    if any("logit" in name.lower() for name in names):
        return ColumnProposal("logits", names, "a name with 'logit'")
    if low < 0 and len(names) == 1 and values.dtype.kind == "f":
        return ColumnProposal("logits", names, "values below 0, rows do not sum to 1")
    return None


def propose_missing(table: DataTable, scores: ColumnProposal) -> Iterator[ColumnProposal]:
    """Propose an option for rows without class scores."""
    n_columns = len(scores.columns)
    if table.n_rows * n_columns > _MAX_ENTRIES:
        table = table.select_rows(np.arange(N_FIRST_ROWS))
    columns = [column.values for column in table.load(scores.columns).values()]
    class_scores = columns[0] if n_columns == 1 else np.column_stack(columns)
    has_no_scores: BoolArray = np.isnan(class_scores.astype(float, copy=False)).all(1)
    if scores.role == "probabilities":
        has_no_scores |= (class_scores == 0).all(1)
    yield from propose_rejection(has_no_scores, "class scores")


def propose_rejection(is_missing: BoolArray, description: str) -> Iterator[ColumnProposal]:
    """Propose to count rows with missing entries as abstentions, if there are any."""
    if is_missing.any():
        share = f"{is_missing.sum():,} of {is_missing.size:,} rows have no {description}"
        yield ColumnProposal("missing", ("reject",), f"{share} and count as abstentions")


def propose_unknown_labels(
    table: DataTable, scores: ColumnProposal, label: str | None
) -> Iterator[ColumnProposal]:
    """Propose the labels without a class score as labels of unknown classes."""
    if label is None:
        return
    column = table.load([label])[label]
    # As text, 1.0 is the class "1".
    codes, names = column.as_text().distinct()
    classes = set(_get_class_names(table, scores, column))
    unknown = [name for name in names if name not in classes and name != MISSING]
    share = np.isin(codes, [names.index(name) for name in unknown]).mean()
    if unknown and share <= _MAX_SHARE_UNKNOWN:
        labels = tuple(unknown) if len(unknown) <= _MAX_LISTED_LABELS else (ALL_OTHER_LABELS,)
        yield ColumnProposal("unknown_label", labels, f"no class scores; {share:.1%} of the rows")


def _get_class_names(table: DataTable, scores: ColumnProposal, label: DataColumn) -> list[str]:
    """Return the names of the classes as text, with the rules of `read_predictions`."""
    if len(scores.columns) > 1:
        return class_names(scores.columns, "", label)
    return list(map(str, range(_count_classes(table, scores))))
