"""Proposals for the columns that say which samples are right: labels, predictions, grades."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from abstain.errors import InputError
from abstain.tables._choice import USUAL
from abstain.tables._roles import correctness
from abstain.tables.proposals.columns import ColumnProposal, bare_name, plain_columns
from abstain.tables.table import DataTable
from abstain.typing import BoolArray

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
#: Words of which a name of a label or a prediction consists, and those of which it needs one.
_CLASS_WORDS: Final = frozenset({"class", "label", "labels", "id", "idx", "index", "y"})
_ROLE_WORDS: Final[Mapping[str, frozenset[str]]] = {
    "label": frozenset({"target", "targets", "true", "truth", "gt", "gold", "actual", "label"}),
    "prediction": frozenset({"pred", "preds", "predicted", "prediction", "yhat"}),
}
_CLASS_ROLES: Final = frozenset({"label", "prediction"})


def propose_truth(table: DataTable) -> list[ColumnProposal]:
    """Propose label and prediction; a grade instead if they are texts that need a grader."""
    roles: dict[str, ColumnProposal] = {}
    for role in ("label", "prediction", "correct", "loss"):
        proposal = _usual(table, role) or _likely(table, role)
        if proposal is not None:
            roles[role] = proposal
    grade = roles.get("correct")
    if grade is not None and not _is_grade(table, grade.columns[0]):
        del roles["correct"]
        grade = None
    answers = [roles[role] for role in ("label", "prediction") if role in roles]
    if grade is not None and any(_is_free_text(table, answer) for answer in answers):
        for answer in answers:
            del roles[answer.role]
        # The reader compares the texts of two columns with usual names, unless a grade is named.
        are_compared = len(answers) == len(_CLASS_ROLES) and all(a.usual for a in answers)
        roles["correct"] = replace(grade, usual=grade.usual and not are_compared)
    if roles.keys() >= _CLASS_ROLES:
        roles.pop("correct", None)
    return list(roles.values())


def grade_columns(table: DataTable) -> list[str]:
    """Return the columns that hold grades by their names and values."""
    words = {*_LIKELY["correct"], *USUAL["correct"]}
    named = [name for name in plain_columns(table) if _last_field(name) in words]
    return [*table.grades, *(n for n in named if n not in table.grades and _is_grade(table, n))]


def _usual(table: DataTable, role: str) -> ColumnProposal | None:
    names = [table.find(name) for name in USUAL[role]]
    plain = plain_columns(table)
    name = table.meant.get(role) or next((n for n in names if n in plain), None)
    return None if name is None else ColumnProposal(role, (name,), "a usual name", usual=True)


def _likely(table: DataTable, role: str) -> ColumnProposal | None:
    """Propose a column whose name, without the words for a data set, is like a usual one."""
    if role == "correct" and table.grades:
        reason = f"the first of {len(table.grades)} grades in the log"
        return ColumnProposal(role, (table.grades[0],), reason)
    words = (*_LIKELY.get(role, ()), *USUAL[role])
    bare_names = {bare_name(name): name for name in reversed(plain_columns(table))}
    name = next((bare_names[word] for word in words if word in bare_names), None)
    if name is None and role == "correct":
        name = next(iter(grade_columns(table)), None)
    if name is None:
        name = next((n for bare, n in bare_names.items() if _consists_of(bare, role)), None)
    return None if name is None else ColumnProposal(role, (name,), "its name is like one")


def _consists_of(bare: str, role: str) -> bool:
    """Return whether a name such as target_class has only words for classes and for the role."""
    role_words = _ROLE_WORDS.get(role, frozenset())
    words = set(bare.split("_"))
    return bool(words & role_words) and words <= role_words | _CLASS_WORDS


def _last_field(name: str) -> str:
    """Return the last field of a path such as judge.verdict."""
    return bare_name(name.rpartition(".")[2])


def _is_grade(table: DataTable, name: str) -> bool:
    try:
        correctness(table.load([name])[name], table.source, typeless=table.typeless)
    except InputError:
        return False
    return True


def _is_free_text(table: DataTable, proposal: ColumnProposal) -> bool:
    """Return whether a column holds texts most of which differ: answers, not classes."""
    column = table.load(proposal.columns)[proposal.columns[0]]
    if not column.is_text:
        return False
    n_distinct = 0 if column.texts is None else column.texts.size
    return n_distinct > max(2, table.height // 2)


def right_rows(table: DataTable, proposals: Sequence[ColumnProposal]) -> BoolArray | None:
    """Return which rows are right by the proposed columns, or None if they do not say so."""
    names = {proposal.role: proposal.columns[0] for proposal in proposals}
    if {"label", "prediction"} <= names.keys():
        label, answer = table.load([names["label"], names["prediction"]]).values()
        return np.asarray(label.as_text().strings() == answer.as_text().strings())
    if "correct" not in names:
        return None
    column = table.load([names["correct"]])[names["correct"]]
    try:
        grades = correctness(column, table.source, typeless=table.typeless)
    except InputError:
        return None
    return np.asarray(grades.values > 0)
