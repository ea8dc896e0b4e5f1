"""Proposals of how to read the columns of a file, which the user confirms."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from abstain.errors import InputError
from abstain.metrics import failure_auroc
from abstain.tables._classes import ALL_OTHER_LABELS
from abstain.tables._column_selection import DEFAULT_NAMES, class_score_families
from abstain.tables._conversion import class_names, correctness
from abstain.tables.column import MISSING
from abstain.tables.number_formats import look_like_percentages
from abstain.tables.table import DataTable
from abstain.typing import Array, BoolArray

#: Role of further class scores, which the proposed command does not read.
UNUSED: Final = "unused"
#: Number of rows from which most proposals are made.
_N_FIRST_ROWS: Final = 10_000

# ------------------------------------------------------------------------------------ names
#: Likely column names by role, in addition to the default names of `read_predictions`.
_LIKELY_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "label": (
        "gt", "truth", "true", "actual", "ground_truth", "true_label", "label_id", "y", "gold",
        "class", "references", "reference", "gt_label", "true_class", "answer",
    ),
    "prediction": (
        "predicted_label", "predicted_class", "pred_label", "yhat", "y_hat", "output",
        "pred_class", "top1", "argmax", "response",
    ),
    "correct": (
        "right", "hit", "acc", "is_right", "was_correct", "exact_match", "grade", "graded",
        "judged", "judgement", "judgment",
    ),
}  # fmt: skip
#: A name proposes a label or a prediction if it consists of these words and words for the role.
_CLASS_WORDS: Final = frozenset({"class", "label", "labels", "id", "idx", "index", "y"})
_ROLE_WORDS: Final[Mapping[str, frozenset[str]]] = {
    "label": frozenset({"target", "targets", "true", "truth", "gt", "gold", "actual", "label"}),
    "prediction": frozenset({"pred", "preds", "predicted", "prediction", "yhat"}),
}
#: Words that describe a data set rather than the role of a column.
_DATA_WORDS: Final = frozenset(
    {"test", "val", "valid", "validation", "train", "eval", "dev", "iid"}
)  # fmt: skip
#: Words in the names of integer columns that are not labels.
_NO_LABEL_WORDS: Final = frozenset(
    {"id", "ids", "index", "idx", "row", "pred", "preds", "prediction", "predictions", "predicted",
     "argmax", "top1", "fold", "seed", "epoch", "group", "correct", "weight", "weights", "study"}
)  # fmt: skip
#: Names of columns that split the rows, in the order in which they are proposed.
_SPLIT_COLUMNS: Final = (
    "study", "split", "dataset", "data_set", "model", "domain", "shift", "fold",
    "seed", "run", "method", "task", "subset",
)  # fmt: skip
#: In tables in long form, names of the columns with the sample and with the class of a row.
_ID_COLUMNS: Final = (
    "id", "ids", "image", "sample", "sample_id", "image_id", "uid", "path", "file"
)  # fmt: skip
_CLASS_COLUMNS: Final = (
    "class", "class_name", "category", "option", "choice", "candidate", "label_name"
)  # fmt: skip
#: Text that occurs in the names of uncertainties.
_UNCERTAINTY_WORDS: Final = (
    "entropy", "uncertain", "variance", "std", "mutual_info", "distance", "energy"
)  # fmt: skip
#: Text that occurs in the names of confidences that a model states, possibly as percentages.
_STATED_CONFIDENCE_WORDS: Final = ("confiden", "stated", "certain", "sure", "prob", "percent")
#: Names of numeric columns that are not confidences.
_NO_CONFIDENCE: Final = ("id", "index", "row", "epoch", "step", "seed", "fold", "run", "time")

# ------------------------------------------------------------------------------------ limits
#: Maximum number of values of a column that is proposed as a split.
_MAX_SPLITS: Final = 60
#: Minimum number of correct answers, and of wrong answers, for proposing a direction.
_MIN_ANSWERS: Final = 10
#: Maximum AUROC of an uncertainty. A confidence has an AUROC of at least 1 minus this value.
_MAX_UNCERTAINTY_AUROC: Final = 0.4
#: Tolerance for the sum of a row of probabilities.
_NEAR_ONE: Final = 0.02
#: Tolerance for probabilities outside [0, 1].
_ROUNDING: Final = 1e-3
#: Maximum number of class scores that are searched for rows without an answer.
_MAX_ENTRIES: Final = 50_000_000
#: Maximum number of labels without a class in a proposal, and maximum share of their rows.
_MAX_LISTED_LABELS: Final = 5
_MAX_SHARE_UNKNOWN: Final = 0.9


@dataclass(frozen=True)
class ColumnProposal:
    """A proposed role of a column or of several columns.

    Attributes
    ----------
    role : str
        An option of `read_predictions` such as "label", "logits" or "by", or "unused" for class
        scores that are not read.
    columns : tuple of str
        Names of the columns. If a name begins with "-", the values of the column are negated.
    reason : str
        The reason for the proposal.
    is_default : bool
        Whether `read_predictions` selects the columns by default.
    """

    role: str
    columns: tuple[str, ...]
    reason: str
    is_default: bool = False


def propose(table: DataTable) -> tuple[ColumnProposal, ...]:
    """Propose roles for the columns of a table from their names and values.

    In contrast, `read_predictions` selects columns by name only, because the user does not confirm
    its selection.

    Examples
    --------
    >>> from abstain.tables.table import from_arrays
    >>> columns = {"gt": [0, 1, 1], "out": [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]]}
    >>> [(p.role, p.columns) for p in propose(from_arrays(columns, "a file"))]
    [('label', ('gt',)), ('probabilities', ('out',))]
    """
    proposals = _propose_truth(table)
    proposals += _propose_long_form(table, _columns_of(proposals))
    is_long = _find_role(proposals, "long") is not None
    scores = [] if is_long else _propose_scores(table, _find_role(proposals, "label"))
    if scores:
        if _find_role(proposals, "label") is None:
            proposals += _propose_label_of_scores(table, scores[0])
        proposals += scores
        # Class scores and labels define correctness, so no grade is needed.
        if _find_role(proposals, "label") is not None:
            proposals = [p for p in proposals if p.role != "correct" or p.is_default]
        proposals += _propose_missing_scores(table, scores[0])
        proposals += _propose_unknown_labels(table, scores[0], _find_role(proposals, "label"))
    elif _find_role(proposals, "correct") and not _find_role(proposals, "prediction"):
        # Without a prediction, the label adds nothing to the grade.
        proposals = [p for p in proposals if p.role != "label" or p.is_default]
    proposals += _propose_splits(table, _columns_of(proposals))
    if not is_long and not (scores and table.has_keys):
        confidences = _propose_confidences(table, proposals, has_class_scores=bool(scores))
        proposals += confidences
        proposals += _propose_confidence_options(table, confidences)
    # Class scores and confidences may propose the same option for missing entries.
    unique: dict[tuple[str, tuple[str, ...]], ColumnProposal] = {}
    for proposal in proposals:
        unique.setdefault((proposal.role, proposal.columns), proposal)
    return tuple(unique.values())


def _find_role(proposals: Iterable[ColumnProposal], role: str) -> str | None:
    """Return the first column that is proposed for a role, or None if there is none."""
    return next((p.columns[0] for p in proposals if p.role == role), None)


def _columns_of(proposals: Iterable[ColumnProposal]) -> set[str]:
    return {name for proposal in proposals for name in proposal.columns}


# ------------------------------------------------------------------------------------ columns
def _flat_columns(table: DataTable) -> list[str]:
    """Return the names of columns with one number or one text per row."""
    return [name for name, kind in table.kind_by_column.items() if kind in {"number", "text"}]


def _numeric_columns(table: DataTable) -> list[str]:
    """Return the names of columns with one number per row."""
    return [
        name
        for name, kind in table.kind_by_column.items()
        if kind == "number" and table.length_by_key.get(name, table.n_rows) == table.n_rows
    ]


def _bare_name(name: str) -> str:
    """Return a name in lower case without words such as "test", which describe a data set."""
    words = "".join(name.split()).casefold().replace("-", "_").split("_")
    return "_".join(word for word in words if word not in _DATA_WORDS)


def _first_rows(table: DataTable, names: Sequence[str]) -> list[Array]:
    """Return the values of each column in the first rows."""
    rows = np.arange(min(table.n_rows, _N_FIRST_ROWS))
    return [column.values for column in table.select_rows(rows).load(names).values()]


def _distinct_values(table: DataTable, name: str) -> list[Any]:
    return table.load([name])[name].distinct()[1]


# ------------------------------------------------------------------------------------ truth
def _propose_truth(table: DataTable) -> list[ColumnProposal]:
    """Propose a label and a prediction.

    If labels and predictions are free texts, a grade is proposed instead.
    """
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
    if grade is not None and any(_is_free_text(table, answer.columns[0]) for answer in answers):
        for answer in answers:
            del proposals[answer.role]
        # If two columns with default names exist, `read_predictions` compares their texts.
        are_compared = len(answers) == 2 and all(answer.is_default for answer in answers)
        is_default = grade.is_default and not are_compared
        proposals["correct"] = replace(grade, is_default=is_default)
    if {"label", "prediction"} <= proposals.keys():
        proposals.pop("correct", None)
    return list(proposals.values())


def _propose_default_name(table: DataTable, role: str) -> ColumnProposal | None:
    """Propose a column with a default name of the role."""
    columns = _flat_columns(table)
    matches = [table.find(name) for name in DEFAULT_NAMES[role]]
    name = table.column_by_role.get(role) or next((n for n in matches if n in columns), None)
    if name is None:
        return None
    return ColumnProposal(role, (name,), "a default name", is_default=True)


def _propose_likely_name(table: DataTable, role: str) -> ColumnProposal | None:
    """Propose a column whose name is common for a role.

    Words in the name that describe a data set are ignored.
    """
    if role == "correct" and table.grade_columns:
        reason = f"the first of {len(table.grade_columns)} grades in the log"
        return ColumnProposal(role, (table.grade_columns[0],), reason)
    likely_names = (*_LIKELY_NAMES.get(role, ()), *DEFAULT_NAMES[role])
    # The order is reversed, so that the first of several columns with one bare name is used.
    column_by_bare_name = {_bare_name(name): name for name in reversed(_flat_columns(table))}
    matches = [column_by_bare_name[n] for n in likely_names if n in column_by_bare_name]
    if not matches and role == "correct":
        matches = _grade_columns(table)
    if not matches:
        # A name such as target_class consists of a word for the role and a word for classes.
        role_words = _ROLE_WORDS.get(role, frozenset())
        for bare_name, name in column_by_bare_name.items():
            words = set(bare_name.split("_"))
            if words & role_words and words <= role_words | _CLASS_WORDS:
                matches.append(name)
    return ColumnProposal(role, (matches[0],), "a likely name") if matches else None


def _grade_columns(table: DataTable) -> list[str]:
    """Return the columns that contain grades and have a common name for grades."""
    likely_names = {*_LIKELY_NAMES["correct"], *DEFAULT_NAMES["correct"]}
    grade_columns = list(table.grade_columns)
    for name in _flat_columns(table):
        last_field = name.rpartition(".")[2]  # The name can be a path such as judge.verdict.
        is_candidate = _bare_name(last_field) in likely_names and name not in grade_columns
        if is_candidate and _is_grade(table, name):
            grade_columns.append(name)
    return grade_columns


def _is_grade(table: DataTable, name: str) -> bool:
    try:
        correctness(table.load([name])[name], table.source, is_untyped=table.is_untyped)
    except InputError:
        return False
    return True


def _is_free_text(table: DataTable, name: str) -> bool:
    """Return whether most texts of a column are different, unlike in a column of classes."""
    texts = table.load([name])[name].texts
    return texts is not None and texts.size > max(2, table.n_rows // 2)


def _find_correct_rows(table: DataTable, proposals: Sequence[ColumnProposal]) -> BoolArray | None:
    """Return a mask of the correct predictions, or None if no proposal defines them."""
    label = _find_role(proposals, "label")
    prediction = _find_role(proposals, "prediction")
    if label is not None and prediction is not None:
        columns = table.load([label, prediction])
        labels = columns[label].as_text().to_strings()
        predictions = columns[prediction].as_text().to_strings()
        return np.asarray(labels == predictions)
    correct = _find_role(proposals, "correct")
    if correct is None:
        return None
    try:
        grades = correctness(
            table.load([correct])[correct], table.source, is_untyped=table.is_untyped
        )
    except InputError:
        return None
    return np.asarray(grades.values > 0)


# ------------------------------------------------------------------------------------ class scores
def _propose_scores(table: DataTable, label: str | None) -> list[ColumnProposal]:
    """Propose one set of class scores, preferably probabilities.

    For other class scores of the same kind, the role "unused" is proposed.
    """
    candidates = _propose_arrays(table)
    families = [names for _, names in class_score_families(table)]
    if label is not None:
        # The name of a class-score column can be its label, as for the classes of scikit-learn.
        labels = set(map(str, _distinct_values(table, label)))
        kinds = table.kind_by_column
        named_as_labels = [n for n in kinds if kinds[n] == "number" and n in labels]
        if len(named_as_labels) > 1:
            families.append(named_as_labels)
    for names in families:
        values = np.column_stack(_first_rows(table, names)).astype(float)
        candidates.append(_propose_kind(tuple(names), values))
    proposals = [candidate for candidate in candidates if candidate is not None]
    if not proposals:
        return []
    selected = next((p for p in proposals if p.role == "probabilities"), proposals[0])
    # Class scores of the other kind probably come from the same model, so they are not listed.
    reason = (
        f"{selected.role} like {selected.columns[0]!r}, perhaps of another model; the command does "
        "not read them"
    )
    unused = [
        replace(p, role=UNUSED, reason=reason, is_default=True)
        for p in proposals
        if p.role == selected.role and p is not selected
    ]
    return [selected, *unused]


def _propose_arrays(table: DataTable) -> list[ColumnProposal | None]:
    """Propose the arrays of shape (n, K) as class scores."""
    candidates = []
    for name, kind in table.kind_by_column.items():
        has_all_rows = table.length_by_key.get(name, table.n_rows) == table.n_rows
        if kind != "block" or not has_all_rows:
            continue
        try:
            (values,) = _first_rows(table, [name])
        except InputError:
            continue  # The column contains text, or lists of different lengths.
        if values.dtype.kind in "fiu" and values.ndim == 2 and values.shape[1] > 1:
            candidates.append(_propose_kind((name,), values))
    return candidates


def _propose_kind(names: tuple[str, ...], values: Array) -> ColumnProposal | None:
    """Propose whether class scores are probabilities or logits, or return None if neither fits."""
    has_scores = np.isfinite(values).all(1) & (values != 0).any(1)
    has_no_scores = np.isnan(values).all(1) | (values == 0).all(1)
    if not has_scores.any() or not (has_scores | has_no_scores).all():
        return None
    values = values[has_scores]
    low, high, sums = values.min(), values.max(), values.sum(1)
    if low >= -_ROUNDING and high <= 1 + _ROUNDING and (np.abs(sums - 1) <= _NEAR_ONE).all():
        return ColumnProposal("probabilities", names, "each row is in [0, 1] and sums to 1")
    if any("logit" in name.lower() for name in names):
        return ColumnProposal("logits", names, "a name with 'logit'")
    if low < 0 and len(names) == 1 and values.dtype.kind == "f":
        return ColumnProposal("logits", names, "values below 0, rows do not sum to 1")
    return None


def _count_classes(table: DataTable, scores: ColumnProposal) -> int:
    if len(scores.columns) > 1:
        return len(scores.columns)
    return int(_first_rows(table, scores.columns)[0].shape[1])


def _propose_label_of_scores(table: DataTable, scores: ColumnProposal) -> list[ColumnProposal]:
    """Propose an integer column whose values can be labels, if there is only one such column."""
    n_classes = _count_classes(table, scores)
    candidates = []
    for name in _numeric_columns(table):
        has_other_role = not _NO_LABEL_WORDS.isdisjoint(_bare_name(name).split("_"))
        if name in scores.columns or has_other_role:
            continue
        (values,) = _first_rows(table, [name])
        in_range = np.isfinite(values).all() and values.min() >= 0 and values.max() < n_classes
        if in_range and (values == np.round(values)).all():
            candidates.append(name)
    if len(candidates) != 1:
        return []
    reason = f"whole numbers from 0 to {n_classes - 1}, one for each class score"
    return [ColumnProposal("label", (candidates[0],), reason)]


def _propose_missing_scores(table: DataTable, scores: ColumnProposal) -> Iterator[ColumnProposal]:
    """Propose how to treat rows without class scores, if there are any."""
    n_columns = len(scores.columns)
    if table.n_rows * n_columns > _MAX_ENTRIES:
        table = table.select_rows(np.arange(_N_FIRST_ROWS))
    columns = [column.values for column in table.load(scores.columns).values()]
    class_scores = columns[0] if n_columns == 1 else np.column_stack(columns)
    has_no_scores: BoolArray = np.isnan(class_scores.astype(float, copy=False)).all(1)
    if scores.role == "probabilities":
        has_no_scores |= (class_scores == 0).all(1)
    yield from _propose_rejection(has_no_scores, "class scores")


def _propose_rejection(is_missing: BoolArray, description: str) -> Iterator[ColumnProposal]:
    """Propose to treat rows with missing entries as abstentions, if there are any."""
    if is_missing.any():
        share = f"{is_missing.sum():,} of {is_missing.size:,} rows have no {description}"
        yield ColumnProposal("missing", ("reject",), f"{share} and count as abstentions")


def _propose_unknown_labels(
    table: DataTable, scores: ColumnProposal, label: str | None
) -> Iterator[ColumnProposal]:
    """Propose to treat labels without a class score as unknown classes."""
    if label is None:
        return
    column = table.load([label])[label]
    # Text makes the number 1.0 equal to the class name "1".
    codes, names = column.as_text().distinct()
    if len(scores.columns) > 1:
        classes = class_names(scores.columns, "", column)
    else:
        classes = list(map(str, range(_count_classes(table, scores))))
    unknown = [name for name in names if name not in classes and name != MISSING]
    share = np.isin(codes, [names.index(name) for name in unknown]).mean()
    if unknown and share <= _MAX_SHARE_UNKNOWN:
        labels = tuple(unknown) if len(unknown) <= _MAX_LISTED_LABELS else (ALL_OTHER_LABELS,)
        yield ColumnProposal("unknown_label", labels, f"no class scores; {share:.1%} of the rows")


def _propose_long_form(table: DataTable, used: set[str]) -> Iterator[ColumnProposal]:
    """Propose the long form if the table has one row for each pair of sample and class."""
    kinds = {name: table.kind_by_column[name] for name in _flat_columns(table) if name not in used}
    id_column = next((name for name in map(table.find, _ID_COLUMNS) if name in kinds), None)
    class_column = next((name for name in map(table.find, _CLASS_COLUMNS) if name in kinds), None)
    if id_column is None or class_column is None:
        return
    numbers = [name for name, kind in kinds.items() if kind == "number"]
    score_columns = [name for name in numbers if name not in {id_column, class_column}]
    if len(score_columns) != 1:
        return
    n_classes = len(_distinct_values(table, class_column))
    sample_codes, samples = table.load([id_column])[id_column].distinct()
    if n_classes < 2 or len(samples) * n_classes != table.n_rows:
        return
    scores = table.load(score_columns)[score_columns[0]].values.astype(float)
    sums = np.bincount(sample_codes, scores)
    are_probabilities = (scores >= -_ROUNDING).all() and (np.abs(sums - 1) <= _NEAR_ONE).all()
    if not are_probabilities and not (scores < 0).any():
        return
    yield ColumnProposal("id", (id_column,), f"{len(samples):,} names, each in {n_classes} rows")
    yield ColumnProposal("long", (class_column,), f"{n_classes} classes, one row each per sample")
    role = "probabilities" if are_probabilities else "logits"
    yield ColumnProposal(role, (score_columns[0],), "the scores of the classes")


# ------------------------------------------------------------------------------------ others
def _propose_splits(table: DataTable, used: set[str]) -> Iterator[ColumnProposal]:
    """Propose columns that have few values and a common name for a split."""
    by = []
    for name in map(table.find, _SPLIT_COLUMNS):
        if name is None or name in used or name not in _flat_columns(table):
            continue
        if 1 < len(_distinct_values(table, name)) <= _MAX_SPLITS:
            by.append(name)
    if by:
        yield ColumnProposal("by", tuple(by), "few values, and the name of a split")


def _propose_confidences(
    table: DataTable, proposals: Sequence[ColumnProposal], *, has_class_scores: bool
) -> list[ColumnProposal]:
    """Propose confidences with default names.

    If there are no columns with default names and no class scores, columns of decimals are
    proposed.
    """
    used = _columns_of(proposals) | set(_grade_columns(table))
    used |= {name for _, names in class_score_families(table) for name in names}
    numbers = [name for name, kind in table.kind_by_column.items() if kind == "number"]
    matches = [table.find(name) for name in DEFAULT_NAMES["confidence"]]
    default_names = [n for n in matches if n is not None and n in numbers and n not in used]
    prefixed = [name for name in numbers if name.startswith("confidence_")]
    names = tuple(dict.fromkeys((*default_names[:1], *prefixed)))
    if names:
        return [ColumnProposal("confidence", names, "a default name", is_default=True)]
    if has_class_scores:
        return []
    rows = np.arange(min(table.n_rows, _N_FIRST_ROWS))
    is_correct = _find_correct_rows(table.select_rows(rows), proposals)
    confidences = []
    for name in numbers:
        if name in used or name.lower().strip() in _NO_CONFIDENCE:
            continue
        (values,) = _first_rows(table, [name])
        if _may_be_confidence(name, values):
            confidences.append(_with_direction(name, values, is_correct))
    return confidences


def _may_be_confidence(name: str, values: Array) -> bool:
    """Return whether a column contains decimals, or percentages and is named as a confidence."""
    has_typical_name = any(word in name.lower() for word in _STATED_CONFIDENCE_WORDS)
    if has_typical_name and look_like_percentages(values):
        return True
    finite = values[np.isfinite(values)] if values.dtype.kind == "f" else values
    return values.dtype.kind == "f" and not np.array_equal(finite, np.round(finite))


def _with_direction(name: str, values: Array, is_correct: BoolArray | None) -> ColumnProposal:
    """Propose a confidence, and negate it if correct answers have lower values.

    If the values do not determine the direction, the name is used.
    """
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
    """Return the AUROC of a column for the distinction between correct and wrong answers.

    If there are few answers or the AUROC is near 1/2, the result is None.
    """
    is_finite = np.isfinite(values)
    is_correct, values = is_correct[is_finite], values[is_finite]
    if min(int(is_correct.sum()), int((~is_correct).sum())) < _MIN_ANSWERS:
        return None
    auroc = failure_auroc(values, ~is_correct)
    is_clear = min(auroc, 1 - auroc) <= _MAX_UNCERTAINTY_AUROC
    return auroc if is_clear else None


def _propose_confidence_options(
    table: DataTable, confidences: Sequence[ColumnProposal]
) -> Iterator[ColumnProposal]:
    """Propose options for confidences in percent and for rows without a confidence."""
    names = []
    for proposal in confidences:
        for name in proposal.columns:
            # Negated confidences are looked up without their sign.
            is_column = name in table.kind_by_column
            names.append(name if is_column else name.removeprefix("-"))
    for name, values in zip(names, _first_rows(table, names), strict=True):
        if look_like_percentages(values):
            yield ColumnProposal("percent", (name,), "from 0 to 100: divided by 100")
    columns = table.load(names).values()
    masks = [column.is_missing for column in columns if column.is_missing is not None]
    if masks:
        yield from _propose_rejection(np.any(masks, axis=0), "confidence")
