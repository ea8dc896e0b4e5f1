"""Propose roles, splits and directions for the columns of a file, for confirmation by the user."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np

from abstain.metrics import failure_auroc
from abstain.tables._column_selection import DEFAULT_NAMES, class_score_families
from abstain.tables.number_formats import look_like_percentages
from abstain.tables.proposals.columns import (
    N_FIRST_ROWS,
    ColumnProposal,
    distinct_values,
    first_rows,
    flat_columns,
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
from abstain.tables.proposals.truth import find_correct_rows, grade_columns, propose_truth
from abstain.tables.table import DataTable
from abstain.typing import Array, BoolArray

#: Names of split columns, in the order of the proposed splits.
_SPLIT_COLUMNS: Final = (
    "study", "split", "dataset", "data_set", "model", "domain", "shift", "fold",
    "seed", "run", "method", "task", "subset",
)  # fmt: skip
#: Names of columns with the name of a sample, and with the class of a row in long form.
_ID_COLUMNS: Final = (
    "id", "ids", "image", "sample", "sample_id", "image_id", "uid", "path", "file"
)  # fmt: skip
_CLASS_COLUMNS: Final = (
    "class", "class_name", "category", "option", "choice", "candidate", "label_name"
)  # fmt: skip
#: Parts of the names of uncertainties.
_UNCERTAINTY_WORDS: Final = (
    "entropy", "uncertain", "variance", "std", "mutual_info", "distance", "energy"
)  # fmt: skip
#: Names of columns of numbers that are not confidences.
_NO_CONFIDENCE: Final = ("id", "index", "row", "epoch", "step", "seed", "fold", "run", "time")
#: Maximum number of splits in a proposal.
_MAX_SPLITS: Final = 60
#: Minimum number of correct and of wrong answers from which a direction is inferred.
_MIN_ANSWERS: Final = 10
#: Maximum AUROC of an uncertainty; 1 minus it is the minimum of a confidence.
_MAX_UNCERTAINTY_AUROC: Final = 0.4
#: Parts of the names of confidences stated by a model, perhaps as percentages.
_STATED_CONFIDENCE_WORDS: Final = ("confiden", "stated", "certain", "sure", "prob", "percent")


def propose(table: DataTable) -> tuple[ColumnProposal, ...]:
    """Propose roles for the columns of a table, based on their names and values.

    `read_predictions` never uses values for this, because nobody confirms its selection.

    Examples
    --------
    >>> from abstain.tables.table import from_arrays
    >>> columns = {"gt": [0, 1, 1], "out": [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]]}
    >>> [(p.role, p.columns) for p in propose(from_arrays(columns, "a file"))]
    [('label', ('gt',)), ('probabilities', ('out',))]
    """
    proposals = propose_truth(table)
    proposals += _propose_long_form(table, _columns_of(proposals))
    is_long = _has_role(proposals, "long")
    scores = [] if is_long else propose_scores(table, _label_of(proposals))
    if scores:
        if _label_of(proposals) is None:
            label = label_of_scores(table, scores[0])
            proposals += [] if label is None else [label]
        proposals += scores
        # Class scores and labels define correctness, so a grade is not required.
        if _has_role(proposals, "label"):
            proposals = [p for p in proposals if p.role != "correct" or p.is_default]
        proposals += propose_missing(table, scores[0])
        proposals += propose_unknown_labels(table, scores[0], _label_of(proposals))
    elif _has_role(proposals, "correct") and not _has_role(proposals, "prediction"):
        # Without a prediction, a label is of no use in addition to the grade.
        proposals = [p for p in proposals if p.role != "label" or p.is_default]
    proposals += _propose_splits(table, _columns_of(proposals))
    used = _columns_of(proposals) | set(grade_columns(table))
    used |= {name for _, names in class_score_families(table) for name in names}
    if not is_long and not (scores and table.has_keys):
        confidences = _propose_confidences(table, used, proposals, has_class_scores=bool(scores))
        proposals += confidences
        proposals += _propose_percentages(table, confidences)
        proposals += _propose_missing_confidences(table, confidences)
    # Class scores and confidences may both propose an option for missing entries; keep the first.
    unique: dict[tuple[str, tuple[str, ...]], ColumnProposal] = {}
    for proposal in proposals:
        unique.setdefault((proposal.role, proposal.columns), proposal)
    return tuple(unique.values())


def _has_role(proposals: Sequence[ColumnProposal], role: str) -> bool:
    return any(proposal.role == role for proposal in proposals)


def _columns_of(proposals: Iterable[ColumnProposal]) -> set[str]:
    return {name for proposal in proposals for name in proposal.columns}


def _label_of(proposals: Iterable[ColumnProposal]) -> str | None:
    labels = (proposal.columns[0] for proposal in proposals if proposal.role == "label")
    return next(labels, None)


def _propose_long_form(table: DataTable, used: set[str]) -> Iterator[ColumnProposal]:
    """Propose the long form if the table has a row per sample and class."""
    kinds = {name: table.kind_by_column[name] for name in flat_columns(table) if name not in used}
    id_column = next((name for name in map(table.find, _ID_COLUMNS) if name in kinds), None)
    class_column = next((name for name in map(table.find, _CLASS_COLUMNS) if name in kinds), None)
    if id_column is None or class_column is None:
        return
    numbers = [name for name, kind in kinds.items() if kind == "number"]
    score_columns = [name for name in numbers if name not in {id_column, class_column}]
    if len(score_columns) != 1:
        return
    n_samples = len(distinct_values(table, id_column))
    n_classes = len(distinct_values(table, class_column))
    if n_classes < 2 or n_samples * n_classes != table.n_rows:
        return
    sample_codes, _ = table.load([id_column])[id_column].distinct()
    scores = table.load(score_columns)[score_columns[0]].values.astype(float)
    sums = np.bincount(sample_codes, scores)
    if (scores >= -ROUNDING).all() and (np.abs(sums - 1) <= NEAR_ONE).all():
        kind = "probabilities"
    elif (scores < 0).any():
        kind = "logits"
    else:
        return
    yield ColumnProposal("id", (id_column,), f"{n_samples:,} names, each in {n_classes} rows")
    yield ColumnProposal("long", (class_column,), f"{n_classes} classes, one row each per sample")
    yield ColumnProposal(kind, (score_columns[0],), "the scores of the classes")


# ------------------------------------------------------------------------------------ others
def _propose_splits(table: DataTable, used: set[str]) -> Iterator[ColumnProposal]:
    by = []
    for name in map(table.find, _SPLIT_COLUMNS):
        if name is None or name in used or name not in flat_columns(table):
            continue
        if 1 < len(distinct_values(table, name)) <= _MAX_SPLITS:
            by.append(name)
    if by:
        yield ColumnProposal("by", tuple(by), "few values, and the name of a split")


def _propose_confidences(
    table: DataTable,
    used: set[str],
    proposals: Sequence[ColumnProposal],
    *,
    has_class_scores: bool,
) -> list[ColumnProposal]:
    """Propose confidences with default names; without these and class scores, other decimals."""
    numbers = [name for name, kind in table.kind_by_column.items() if kind == "number"]
    default_columns = map(table.find, DEFAULT_NAMES["confidence"])
    default = next((n for n in default_columns if n in numbers and n not in used), None)
    prefixed = [name for name in numbers if name.startswith("confidence_")]
    names = tuple(name for name in dict.fromkeys((default, *prefixed)) if name is not None)
    if names:
        return [ColumnProposal("confidence", names, "a default name", is_default=True)]
    if has_class_scores:
        return []
    rows = np.arange(min(table.n_rows, N_FIRST_ROWS))
    is_correct = find_correct_rows(table.select_rows(rows), proposals)
    confidences = []
    for name in numbers:
        if name in used or name.lower().strip() in _NO_CONFIDENCE:
            continue
        values = first_rows(table, [name])[name]
        if _may_be_confidence(name, values):
            confidences.append(_with_direction(name, values, is_correct))
    return confidences


def _may_be_confidence(name: str, values: Array) -> bool:
    """Return whether numbers are decimals, or percentages in a column named as a confidence."""
    has_typical_name = any(word in name.lower() for word in _STATED_CONFIDENCE_WORDS)
    if has_typical_name and look_like_percentages(values):
        return True
    finite = values[np.isfinite(values)] if values.dtype.kind == "f" else values
    return values.dtype.kind == "f" and not np.array_equal(finite, np.round(finite))


def _propose_percentages(
    table: DataTable, confidences: Sequence[ColumnProposal]
) -> Iterator[ColumnProposal]:
    """Propose to divide confidences from 0 to 100 by 100."""
    for name in _column_names(table, confidences):
        if look_like_percentages(first_rows(table, [name])[name]):
            yield ColumnProposal("percent", (name,), "from 0 to 100: divided by 100")


def _column_names(table: DataTable, confidences: Sequence[ColumnProposal]) -> list[str]:
    """Return the columns of confidences, without the sign of negated ones."""
    names = [name for proposal in confidences for name in proposal.columns]
    return [name if name in table.kind_by_column else name.removeprefix("-") for name in names]


def _with_direction(name: str, values: Array, is_correct: BoolArray | None) -> ColumnProposal:
    """Propose a confidence; negate it if it is lower for correct answers or an uncertainty."""
    auroc = None if is_correct is None else _clear_auroc(values, is_correct)
    if auroc is None:
        is_negated = any(word in name.lower() for word in _UNCERTAINTY_WORDS)
        if is_negated:
            reason = "the name of an uncertainty: negated"
        elif look_like_percentages(values):
            reason = "from 0 to 100"
        else:
            reason = "a column of decimals"
    else:
        is_negated = auroc < 1 - auroc
        share = f"{max(auroc, 1 - auroc):.0%} of pairs of a correct and a wrong answer"
        if is_negated:
            reason = f"lower for correct answers, in {share}: negated"
        else:
            reason = f"higher for correct answers, in {share}"
    return ColumnProposal("confidence", (f"-{name}" if is_negated else name,), reason)


def _clear_auroc(values: Array, is_correct: BoolArray) -> float | None:
    """Return the AUROC of correct against wrong answers; None if it is near 1/2 or uncertain."""
    is_finite = np.isfinite(values)
    is_correct, values = is_correct[is_finite], values[is_finite]
    if min(int(is_correct.sum()), int((~is_correct).sum())) < _MIN_ANSWERS:
        return None
    auroc = failure_auroc(values, ~is_correct)
    is_clear = min(auroc, 1 - auroc) <= _MAX_UNCERTAINTY_AUROC
    return auroc if is_clear else None


def _propose_missing_confidences(
    table: DataTable, confidences: Sequence[ColumnProposal]
) -> Iterator[ColumnProposal]:
    """Propose an option for rows without a confidence."""
    columns = table.load(_column_names(table, confidences)).values()
    masks = [column.is_missing for column in columns if column.is_missing is not None]
    if masks:
        yield from propose_rejection(np.any(masks, axis=0), "confidence")
