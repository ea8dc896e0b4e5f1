"""Proposals for class scores: which columns they are, their labels, and rows without them."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from abstain.errors import InputError
from abstain.tables._choice import score_families
from abstain.tables._roles import class_names
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

#: How near to 1 rows of probabilities sum, and how far a rounded probability is outside [0, 1].
NEAR_ONE: Final = 0.02
ROUNDING: Final = 1e-3
#: Class scores of so many entries are looked at in full for rows without an answer.
_MAX_ENTRIES: Final = 50_000_000
#: Labels without a class that are named one by one, and how many of the rows they may be.
_MAX_NAMED_LABELS: Final = 5
_MAX_SHARE_UNKNOWN: Final = 0.9
#: Words in the names of whole numbers that are no labels.
_NO_LABEL: Final = frozenset(
    {"id", "ids", "index", "idx", "row", "pred", "preds", "prediction", "predictions", "predicted",
     "argmax", "top1", "fold", "seed", "epoch", "group", "correct", "weight", "weights", "study"}
)  # fmt: skip


def propose_scores(table: DataTable, label: str | None) -> list[ColumnProposal]:
    """Propose class scores, probabilities before logits, and name those that are not used."""
    candidates = []
    for name, kind in table.kinds.items():
        if kind == "block" and table.lengths.get(name, table.height) == table.height:
            values = _block(table, name)
            if values is not None and values.ndim == 2 and values.shape[1] > 1:
                candidates.append(_classified((name,), values))
    families = [names for _, names in score_families(table)]
    for names in [*families, *_named_as_labels(table, label)]:
        columns = list(first_rows(table, names).values())
        candidates.append(_classified(tuple(names), np.column_stack(columns).astype(float)))
    scores = [candidate for candidate in candidates if candidate is not None]
    if not scores:
        return []
    selected = next((one for one in scores if one.role == "probabilities"), scores[0])
    # Logits beside probabilities are most likely of the same model.
    others = [one for one in scores if one.role == selected.role and one is not selected]
    return [selected, *(_unused(one, selected) for one in others)]


def _unused(scores: ColumnProposal, selected: ColumnProposal) -> ColumnProposal:
    reason = (
        f"{scores.role} like {selected.columns[0]!r}, perhaps of another model; the command does "
        "not read them"
    )
    return replace(scores, role=UNUSED, reason=reason, usual=True)


def label_of_scores(table: DataTable, scores: ColumnProposal) -> ColumnProposal | None:
    """Propose the only column of whole numbers that can be the classes of the scores."""
    n_classes = _n_classes(table, scores)
    names = [
        name
        for name, kind in table.kinds.items()
        if kind == "number"
        and name not in scores.columns
        and table.lengths.get(name, table.height) == table.height
        and not set(bare_name(name).split("_")) & _NO_LABEL
        and _are_classes(first_rows(table, [name])[name], n_classes)
    ]
    if len(names) != 1:
        return None
    reason = f"whole numbers from 0 to {n_classes - 1}, as the classes of the scores"
    return ColumnProposal("label", (names[0],), reason)


def _n_classes(table: DataTable, scores: ColumnProposal) -> int:
    if len(scores.columns) > 1:
        return len(scores.columns)
    return int(first_rows(table, scores.columns)[scores.columns[0]].shape[1])


def _are_classes(values: Array, n_classes: int) -> bool:
    is_finite = bool(np.isfinite(values).all())
    in_range = is_finite and bool(values.min() >= 0 and values.max() < n_classes)
    return in_range and bool((values == np.round(values)).all())


def _block(table: DataTable, name: str) -> Array | None:
    """Return a column of several numbers a row; None where it is one of words, say, or ragged."""
    try:
        values = first_rows(table, [name])[name]
    except InputError:
        return None
    return values if values.dtype.kind in "fiu" else None


def _named_as_labels(table: DataTable, label: str | None) -> Iterator[list[str]]:
    """Yield columns of numbers that have the names of labels, as the classes of scikit-learn."""
    if label is None:
        return
    there = set(map(str, distinct_values(table, label)))
    named = [name for name, kind in table.kinds.items() if kind == "number" and name in there]
    if len(named) > 1:
        yield named


def _classified(names: tuple[str, ...], values: Array) -> ColumnProposal | None:
    """Tell probabilities from logits by what values do; None where neither is likely."""
    answered = np.isfinite(values).all(1) & (values != 0).any(1)
    gaps = np.isnan(values).all(1) | (values == 0).all(1)
    if not answered.any() or not (answered | gaps).all():
        return None
    values = values[answered]
    low, high, sums = values.min(), values.max(), values.sum(1)
    if low >= -ROUNDING and high <= 1 + ROUNDING and (np.abs(sums - 1) <= NEAR_ONE).all():
        return ColumnProposal("probabilities", names, "each row is in [0, 1] and sums to 1")
    logits = any("logit" in name.lower() for name in names)
    if logits or (low < 0 and len(names) == 1 and values.dtype.kind == "f"):
        said = "their name says so" if logits else "values below 0, rows do not sum to 1"
        return ColumnProposal("logits", names, said)
    return None


def propose_missing(table: DataTable, scores: ColumnProposal) -> Iterator[ColumnProposal]:
    """Propose what to do about rows without class scores."""
    width = len(scores.columns)
    whole = table if table.height * width <= _MAX_ENTRIES else table.rows(np.arange(N_FIRST_ROWS))
    columns = [column.values for column in whole.load(scores.columns).values()]
    block = columns[0] if width == 1 else np.column_stack(columns)
    gaps: BoolArray = np.isnan(block.astype(float, copy=False)).all(1)
    if scores.role == "probabilities":
        gaps |= (block == 0).all(1)
    yield from propose_rejection(gaps, "class scores")


def propose_rejection(gaps: BoolArray, what: str) -> Iterator[ColumnProposal]:
    """Propose to count rows with gaps as abstentions, if there are any."""
    if gaps.any():
        share = f"{gaps.sum():,} of {gaps.size:,} rows have no {what}"
        yield ColumnProposal("missing", ("reject",), f"{share} and count as abstentions")


def propose_unknown_labels(
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
    if unknown and share <= _MAX_SHARE_UNKNOWN:
        asked = tuple(unknown) if len(unknown) <= _MAX_NAMED_LABELS else ("*",)
        yield ColumnProposal("unknown_label", asked, f"no class scores; {share:.1%} of the rows")


def _classes(table: DataTable, scores: ColumnProposal, label: DataColumn) -> Iterator[str]:
    """Yield the names of the classes, as the reader will take them."""
    if len(scores.columns) > 1:
        yield from class_names(scores.columns, "", label)
        return
    width = first_rows(table, scores.columns)[scores.columns[0]].shape[1]
    yield from map(str, range(width))
