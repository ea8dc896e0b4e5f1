"""Propose the columns that define correctness: labels, predictions and grades."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from abstain.errors import InputError
from abstain.tables._column_selection import DEFAULT_NAMES
from abstain.tables._conversion import correctness
from abstain.tables.proposals.columns import ColumnProposal, bare_name, flat_columns
from abstain.tables.table import DataTable
from abstain.typing import BoolArray

#: Likely names by role, in addition to the default names of `read_predictions`.
_LIKELY_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
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
    "correct": (
        "right",
        "hit",
        "acc",
        "is_right",
        "was_correct",
        "exact_match",
        "grade",
        "graded",
        "judged",
        "judgement",
        "judgment",
    ),
}
#: A name of a label or a prediction consists of these words and at least one word for the role.
_CLASS_WORDS: Final = frozenset({"class", "label", "labels", "id", "idx", "index", "y"})
_ROLE_WORDS: Final[Mapping[str, frozenset[str]]] = {
    "label": frozenset({"target", "targets", "true", "truth", "gt", "gold", "actual", "label"}),
    "prediction": frozenset({"pred", "preds", "predicted", "prediction", "yhat"}),
}
_CLASS_ROLES: Final = frozenset({"label", "prediction"})


def propose_truth(table: DataTable) -> list[ColumnProposal]:
    """Propose label and prediction, or a grade if these are free texts that require a grader."""
    proposals: dict[str, ColumnProposal] = {}
    for role in ("label", "prediction", "correct", "loss"):
        proposal = _propose_default_name(table, role) or _propose_likely_name(table, role)
        if proposal is not None:
            proposals[role] = proposal
    grade = proposals.get("correct")
    if grade is not None and not _is_grade(table, grade.columns[0]):
        del proposals["correct"]
        grade = None
    answers = [proposals[role] for role in ("label", "prediction") if role in proposals]
    if grade is not None and any(_is_free_text(table, answer) for answer in answers):
        for answer in answers:
            del proposals[answer.role]
        # By default, `read_predictions` compares the texts of two columns with default names.
        are_compared = len(answers) == len(_CLASS_ROLES) and all(a.is_default for a in answers)
        is_default = grade.is_default and not are_compared
        proposals["correct"] = replace(grade, is_default=is_default)
    if proposals.keys() >= _CLASS_ROLES:
        proposals.pop("correct", None)
    return list(proposals.values())


def grade_columns(table: DataTable) -> list[str]:
    """Return the columns with grades, judged by their names and values."""
    likely_names = {*_LIKELY_NAMES["correct"], *DEFAULT_NAMES["correct"]}
    candidates = [name for name in flat_columns(table) if _last_field(name) in likely_names]
    unlisted = [name for name in candidates if name not in table.grade_columns]
    return [*table.grade_columns, *(name for name in unlisted if _is_grade(table, name))]


def _propose_default_name(table: DataTable, role: str) -> ColumnProposal | None:
    columns = flat_columns(table)
    matches = [table.find(name) for name in DEFAULT_NAMES[role]]
    name = table.column_by_role.get(role) or next((n for n in matches if n in columns), None)
    if name is None:
        return None
    return ColumnProposal(role, (name,), "a default name", is_default=True)


def _propose_likely_name(table: DataTable, role: str) -> ColumnProposal | None:
    """Propose a column with a likely name, disregarding words for a data set."""
    if role == "correct" and table.grade_columns:
        reason = f"the first of {len(table.grade_columns)} grades in the log"
        return ColumnProposal(role, (table.grade_columns[0],), reason)
    likely_names = (*_LIKELY_NAMES.get(role, ()), *DEFAULT_NAMES[role])
    # Reversed, so that the first of several columns with the same bare name is proposed.
    column_by_bare_name = {bare_name(name): name for name in reversed(flat_columns(table))}
    matches = [column_by_bare_name[n] for n in likely_names if n in column_by_bare_name]
    if not matches and role == "correct":
        matches = grade_columns(table)
    if not matches:
        bare_names = column_by_bare_name.items()
        matches = [name for bare, name in bare_names if _has_only_role_words(bare, role)]
    if not matches:
        return None
    return ColumnProposal(role, (matches[0],), "a likely name")


def _has_only_role_words(bare: str, role: str) -> bool:
    """Return whether a name such as target_class consists of words for classes and the role."""
    role_words = _ROLE_WORDS.get(role, frozenset())
    words = set(bare.split("_"))
    return bool(words & role_words) and words <= role_words | _CLASS_WORDS


def _last_field(name: str) -> str:
    """Return the last field of a path such as judge.verdict."""
    return bare_name(name.rpartition(".")[2])


def _is_grade(table: DataTable, name: str) -> bool:
    try:
        correctness(table.load([name])[name], table.source, is_untyped=table.is_untyped)
    except InputError:
        return False
    return True


def _is_free_text(table: DataTable, proposal: ColumnProposal) -> bool:
    """Return whether a column contains texts that mostly differ: answers, not classes."""
    column = table.load(proposal.columns)[proposal.columns[0]]
    if not column.is_text:
        return False
    n_distinct = 0 if column.texts is None else column.texts.size
    return n_distinct > max(2, table.n_rows // 2)


def find_correct_rows(table: DataTable, proposals: Sequence[ColumnProposal]) -> BoolArray | None:
    """Return a mask of the correct rows; None if the proposed columns do not define correctness."""
    column_by_role = {proposal.role: proposal.columns[0] for proposal in proposals}
    if column_by_role.keys() >= _CLASS_ROLES:
        names = column_by_role["label"], column_by_role["prediction"]
        columns = table.load(names)
        label, prediction = (columns[name].as_text().to_strings() for name in names)
        return np.asarray(label == prediction)
    if "correct" not in column_by_role:
        return None
    column = table.load([column_by_role["correct"]])[column_by_role["correct"]]
    try:
        grades = correctness(column, table.source, is_untyped=table.is_untyped)
    except InputError:
        return None
    return np.asarray(grades.values > 0)
