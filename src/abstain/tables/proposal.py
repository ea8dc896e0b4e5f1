"""What the columns of a file may be, for someone to say yes to: roles, splits, directions."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np

from abstain.metrics import failure_auroc
from abstain.tables._choice import USUAL, score_families
from abstain.tables.number_formats import look_like_percentages
from abstain.tables.proposals.columns import (
    N_FIRST_ROWS,
    ColumnProposal,
    distinct_values,
    first_rows,
    plain_columns,
)
from abstain.tables.proposals.scores import (
    NEAR_ONE,
    ROUNDING,
    label_of_scores,
    propose_missing,
    propose_rejection,
    propose_scores,
    propose_unknown_labels,
)
from abstain.tables.proposals.truth import grade_columns, propose_truth, right_rows
from abstain.tables.table import DataTable
from abstain.typing import Array, BoolArray

_SPLITS: Final = ("study", "split", "dataset", "data_set", "model", "domain", "shift", "fold")
_SPLITS_TOO: Final = ("seed", "run", "method", "task", "subset")
#: Names of samples, and of the class of a row where a sample has several.
_IDS: Final = ("id", "ids", "image", "sample", "sample_id", "image_id", "uid", "path", "file")
_CLASSES: Final = ("class", "class_name", "category", "option", "choice", "candidate", "label_name")
#: Words in the names of uncertainties.
_UNCERTAIN: Final = ("entropy", "uncertain", "variance", "std", "mutual_info", "distance", "energy")
_NO_CONFIDENCE: Final = ("id", "index", "row", "epoch", "step", "seed", "fold", "run", "time")
#: Splits that a table has room for.
_MAX_SPLITS: Final = 60
#: A direction is measured on so many right and wrong answers, and inferred from so clear a one.
_MIN_ANSWERS: Final = 10
_CLEAR: Final = 0.4
#: Words in the names of confidences that a model states, perhaps in percent.
_STATED: Final = ("confiden", "stated", "certain", "sure", "prob", "percent")


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
    proposals = propose_truth(table)
    proposals += _long(table, _columns_of(proposals))
    is_long = any(proposal.role == "long" for proposal in proposals)
    scores = [] if is_long else propose_scores(table, _label_of(proposals))
    if scores:
        # A prediction beside class scores follows from them, and so does a grade.
        label = None if _label_of(proposals) else label_of_scores(table, scores[0])
        proposals += [*([] if label is None else [label]), *scores]
        proposals = [p for p in proposals if not _follows_from_scores(p, proposals)]
        proposals += propose_missing(table, scores[0])
        proposals += propose_unknown_labels(table, scores[0], _label_of(proposals))
    elif any(p.role == "correct" for p in proposals) and not _has_role(proposals, "prediction"):
        # A label without a prediction says nothing that the grade does not.
        proposals = [p for p in proposals if p.role != "label" or p.usual]
    proposals += _splits(table, _columns_of(proposals))
    other_than_confidence = _columns_of(proposals) | set(grade_columns(table))
    other_than_confidence |= {name for _, names in score_families(table) for name in names}
    if not is_long and not (scores and table.keyed):
        confidences = _confidences(table, other_than_confidence, proposals, scored=bool(scores))
        proposals += confidences
        proposals += [*_percentages(table, confidences), *_gaps(table, confidences)]
    # Scores and confidences may both have gaps.
    return tuple({(p.role, p.columns): p for p in reversed(proposals)}.values())[::-1]


def _has_role(proposals: Sequence[ColumnProposal], role: str) -> bool:
    return any(proposal.role == role for proposal in proposals)


def _follows_from_scores(proposal: ColumnProposal, proposals: Sequence[ColumnProposal]) -> bool:
    is_grade = proposal.role == "correct" and not proposal.usual
    return is_grade and _has_role(proposals, "label")


def _columns_of(found: Iterable[ColumnProposal]) -> set[str]:
    return {name for one in found for name in one.columns}


def _label_of(found: Iterable[ColumnProposal]) -> str | None:
    return next((one.columns[0] for one in found if one.role == "label"), None)


def _long(table: DataTable, taken: set[str]) -> Iterator[ColumnProposal]:
    """Propose the form of a table that has a row for each class of a sample."""
    free = {name: table.kinds[name] for name in plain_columns(table) if name not in taken}
    name = next((n for n in map(table.find, _IDS) if n in free), None)
    classes = next((n for n in map(table.find, _CLASSES) if n in free), None)
    numbers = [n for n, kind in free.items() if kind == "number" and n not in {name, classes}]
    if name is None or classes is None or len(numbers) != 1:
        return
    samples, k = len(distinct_values(table, name)), len(distinct_values(table, classes))
    if k < 2 or samples * k != table.height:
        return
    codes, _ = table.load([name])[name].distinct()
    values = table.load(numbers)[numbers[0]].values.astype(float)
    sums = np.bincount(codes, values)
    kind = "logits"
    if (values >= -ROUNDING).all() and (np.abs(sums - 1) <= NEAR_ONE).all():
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
        if name is None or name in taken or name not in plain_columns(table):
            continue
        if 1 < len(distinct_values(table, name)) <= _MAX_SPLITS:
            by.append(name)
    if by:
        yield ColumnProposal("by", tuple(by), "few values, and the name of a split")


def _confidences(
    table: DataTable, other: set[str], proposals: Sequence[ColumnProposal], *, scored: bool
) -> list[ColumnProposal]:
    """Propose the usual confidence, else each column of decimals where there is nothing else."""
    usual_names = [table.find(name) for name in USUAL["confidence"]]
    numeric = [name for name, kind in table.kinds.items() if kind == "number"]
    usual = next((name for name in usual_names if name in numeric and name not in other), None)
    custom = [name for name in numeric if name.startswith("confidence_")]
    names = [name for name in dict.fromkeys((usual, *custom)) if name is not None]
    if names:
        return [ColumnProposal("confidence", tuple(names), "a usual name", usual=True)]
    if scored:
        return []
    right = right_rows(table.rows(np.arange(min(table.height, N_FIRST_ROWS))), proposals)
    return [
        _directed(name, values, right)
        for name in numeric
        if name not in other
        and name.lower().strip() not in _NO_CONFIDENCE
        and _may_be_confidence(name, values := first_rows(table, [name])[name])
    ]


def _may_be_confidence(name: str, values: Array) -> bool:
    """Return whether numbers are decimals, or percentages under a name for a confidence."""
    if look_like_percentages(values) and any(word in name.lower() for word in _STATED):
        return True
    finite = values[np.isfinite(values)] if values.dtype.kind == "f" else values
    return values.dtype.kind == "f" and not np.array_equal(finite, np.round(finite))


def _percentages(
    table: DataTable, confidences: Sequence[ColumnProposal]
) -> Iterator[ColumnProposal]:
    """Propose to divide confidences between 0 and 100 by 100."""
    for name in _names_in(table, confidences):
        if look_like_percentages(first_rows(table, [name])[name]):
            yield ColumnProposal("percent", (name,), "between 0 and 100: divided by 100")


def _names_in(table: DataTable, confidences: Sequence[ColumnProposal]) -> list[str]:
    """Return the columns of confidences, also of those that are turned around."""
    names = [name for proposal in confidences for name in proposal.columns]
    return [name if name in table.kinds else name.removeprefix("-") for name in names]


def _directed(name: str, values: Array, right: BoolArray | None) -> ColumnProposal:
    """Propose a confidence, turned around where right answers have the lower values."""
    found = None if right is None else _ranked(values, right)
    if found is not None:
        turned = found < 1 - found
        share = f"{max(found, 1 - found):.0%} of pairs of a right and a wrong answer"
        why = f"lower for right answers, in {share}: turned around" if turned else f"ranks {share}"
    else:
        turned = any(word in name.lower() for word in _UNCERTAIN)
        kind = "between 0 and 100" if look_like_percentages(values) else "a column of decimals"
        why = "the name of an uncertainty: turned around" if turned else kind
    return ColumnProposal("confidence", (f"-{name}" if turned else name,), why)


def _ranked(values: Array, right: BoolArray) -> float | None:
    """Return how often a right answer has a higher value than a wrong one, where that is clear."""
    there = np.isfinite(values)
    right, values = right[there], values[there]
    if min(int(right.sum()), int((~right).sum())) < _MIN_ANSWERS:
        return None
    area = failure_auroc(values, ~right)
    return area if area <= _CLEAR or area >= 1 - _CLEAR else None


def _gaps(table: DataTable, confidences: Sequence[ColumnProposal]) -> Iterator[ColumnProposal]:
    """Propose what to do about rows without a confidence."""
    missing = [
        c.missing
        for c in table.load(_names_in(table, confidences)).values()
        if c.missing is not None
    ]
    if missing:
        yield from propose_rejection(np.any(missing, axis=0), "confidence")
