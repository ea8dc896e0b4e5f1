"""Select the table columns that contain labels, predictions, confidences and other inputs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from abstain._foundation.notes import COLUMNS, READING, Note
from abstain._foundation.option_format import format_option
from abstain.errors import InputError, MissingInputError, UnknownNameError, suggest
from abstain.tables._reading import ALL_CONFIDENCES, ReadingOptions
from abstain.tables.table import DataTable

#: Default column names by role, in order of precedence. The docstring of `read_predictions` lists
#: them. The lists are short, because correcting a wrong guess is harder than passing an option.
DEFAULT_NAMES = {
    "label": ("label", "labels", "y_true", "target"),
    "prediction": ("prediction", "predictions", "pred", "y_pred", "predicted"),
    "confidence": ("confidence", "conf", "score"),
    "correct": ("correct", "is_correct", "graded_correct", "verdict"),
    "loss": ("loss",),
}
_ALL_DEFAULT_NAMES = frozenset(name for names in DEFAULT_NAMES.values() for name in names)

#: Default keys by role in archives and mappings of arrays.
DEFAULT_KEYS = {
    "logits": ("logits",),
    "probabilities": ("probabilities", "probs"),
    "logit_samples": ("logit_samples", "mcd_logits"),
    "probability_samples": ("probability_samples", "mcd_probabilities"),
    "features": ("features",),
    "group": ("group", "groups"),
    "weight": ("weight", "weights"),
    "id": ("ids", "id"),
}

#: Maximum number of confidences that a note lists by name.
_MAX_LISTED_CONFIDENCES = 5
#: Maximum number of columns that a message lists.
_MAX_LISTED_COLUMNS = 30

_NUMBERED_NAME = re.compile(r"^(.*?[_.\-: ]|[A-Za-z]+(?=\d+$))([^_.\-: ]+)$")
_CLASS_SCORE_PREFIX = re.compile(
    r"^(p|prob|probs|probability|logit|logits|score|softmax)[_.\-: ]?$"
)


@dataclass
class ColumnSelection:
    """The columns that are selected for each role, with notes that list these columns."""

    label: str | None = None
    prediction: str | None = None
    confidence: tuple[str, ...] = ()
    correct: str | None = None
    loss: str | None = None
    class_scores: tuple[str, ...] = ()
    #: "logits" or "probabilities", or an empty text if there are no class scores.
    class_scores_kind: str = ""
    #: Pattern that selected the class scores, or an empty text if their names were listed.
    class_scores_pattern: str = ""
    #: Keys of arrays by role, for features and for samples of class scores.
    array_keys: dict[str, str] = field(default_factory=dict)
    group: str | None = None
    weight: str | None = None
    id: str | None = None
    by: tuple[str, ...] = ()
    #: Column of correctness that is not used, only compared with label and prediction.
    correct_to_verify: str | None = None
    #: Confidence columns that contain uncertainties.
    negated: frozenset[str] = frozenset()
    percentages: frozenset[str] = frozenset()
    notes: list[Note] = field(default_factory=list)

    def names(self) -> tuple[str, ...]:
        """Return the names of all columns that are selected for a role."""
        single = (self.label, self.prediction, self.correct, self.loss, self.group, self.weight)
        multiple = (*self.confidence, *self.class_scores, *self.array_keys.values(), *self.by)
        names = (*single, self.id, self.correct_to_verify, *multiple)
        return tuple(name for name in names if name is not None)

    @property
    def has_class_scores(self) -> bool:
        """Whether columns of class scores, or of their Monte Carlo samples, are selected."""
        has_samples = any(role.endswith("_samples") for role in self.array_keys)
        return bool(self.class_scores) or has_samples


def select_columns(table: DataTable, options: ReadingOptions) -> ColumnSelection:
    """Select the columns for each role, based on the options and on default names."""
    by = tuple(find_column(table, name, "by") for name in options.by)
    selection = ColumnSelection(by=by)
    for role in ("group", "weight", "id"):
        requested_name = getattr(options, role)
        if requested_name is not None:
            setattr(selection, role, find_column(table, requested_name, role))
    _select_class_scores(table, options, selection)
    _select_truth_columns(table, options, selection)
    _select_confidences(table, options, selection)
    selection.negated |= _confidences_named_by("lower_is_safer", table, options, selection)
    selection.percentages = _confidences_named_by("percent", table, options, selection)
    selection.notes.append(Note(COLUMNS, _describe_selection(selection), source=table.source))
    _add_unused_notes(table, options, selection)
    return selection


# ------------------------------------------------------------------------------------ look-up
def find_column(table: DataTable, name: str, role: str) -> str:
    """Return the name of the requested column, or raise an error if there is no such column."""
    column_name = table.find(name)
    if column_name is None:
        raise UnknownNameError(_unknown_name_message(table, name, role))
    return column_name


def _unknown_name_message(table: DataTable, name: str, role: str) -> str:
    """Return an error message on a missing column, with the names of existing columns."""
    noun = "key" if table.has_keys else "column"
    listed = ", ".join(table.names[:_MAX_LISTED_COLUMNS])
    if len(table.names) > _MAX_LISTED_COLUMNS:
        listed += ", ..."
    return (
        f"{table.source} has no {noun} {name!r} (requested by {format_option(role)})."
        f"{suggest(name, table.names)} Its {noun}s: {listed}"
    )


def _expand_patterns(table: DataTable, names: tuple[str, ...], role: str) -> tuple[str, ...]:
    """Return the columns that match the names or patterns.

    Columns that match a pattern are in the order of the file.
    """
    selected: list[str] = []
    for name in names:
        column_name = table.find(name)
        if column_name is not None:
            selected.append(column_name)
            continue
        matches = []
        if is_column_pattern(name):
            matches = [column for column in table.names if fnmatchcase(column, name)]
        if not matches:
            raise UnknownNameError(_unknown_name_message(table, name, role))
        selected += matches
    return tuple(dict.fromkeys(selected))


def is_column_pattern(name: str) -> bool:
    """Return whether a name is a pattern such as "p_*" that may match several columns."""
    return any(character in name for character in "*?[")


def _find_default_column(table: DataTable, role: str) -> str | None:
    """Return the first column that has a default name for this role, or None."""
    if role in table.column_by_role:
        return table.column_by_role[role]
    matches = (table.find(name) for name in DEFAULT_NAMES[role])
    return next((name for name in matches if name is not None), None)


# ------------------------------------------------------------------------------------ roles
def _select_class_scores(
    table: DataTable, options: ReadingOptions, selection: ColumnSelection
) -> None:
    """Select the columns of class scores, or arrays with default keys."""
    for kind in ("logits", "probabilities"):
        names: tuple[str, ...] = getattr(options, kind)
        if names:
            selection.class_scores = _expand_patterns(table, names, kind)
            selection.class_scores_kind = kind
            selection.class_scores_pattern = names[0] if len(names) == 1 else ""
    if table.has_keys:
        _select_array_keys(table, selection)


def _select_array_keys(table: DataTable, selection: ColumnSelection) -> None:
    """Select arrays with default keys from an archive or a mapping."""
    key_by_role = _find_default_keys(table)
    for role in ("group", "weight", "id", "features"):
        key = key_by_role.pop(role, None)
        if key is None or table.length_by_key.get(key) != table.n_rows:
            continue  # The array has other rows, such as the weights of a layer.
        is_block = table.kind_by_column[key] == "block"
        if role == "features" and is_block:
            selection.array_keys[role] = key
        elif role != "features" and getattr(selection, role) is None and not is_block:
            setattr(selection, role, key)
    for kind in ("logits", "probabilities"):
        key = key_by_role.pop(kind, None)
        if key is not None and not selection.class_scores:
            selection.class_scores, selection.class_scores_kind = (key,), kind
    if "logit_samples" in key_by_role:
        key_by_role.pop("probability_samples", None)
    selection.array_keys |= key_by_role


def _find_default_keys(table: DataTable) -> dict[str, str]:
    """Return the key of each role. The layout of a known program takes precedence over names."""
    key_by_role = {}
    for role, default_keys in DEFAULT_KEYS.items():
        keys = [key for key in default_keys if key in table.kind_by_column]
        if keys:
            key_by_role[role] = keys[0]
    known_layout = table.column_by_role.items()
    key_by_role |= {role: key for role, key in known_layout if role in DEFAULT_KEYS}
    return key_by_role


def _select_truth_columns(
    table: DataTable, options: ReadingOptions, selection: ColumnSelection
) -> None:
    """Select the columns that determine whether predictions are correct.

    If several columns qualify, label and prediction take precedence over a grade, and a grade over
    a loss.
    """
    roles = ("prediction",) if options.unlabeled else ("label", "prediction", "correct", "loss")
    for role in roles:
        requested_name = getattr(options, role)
        if requested_name is not None:
            setattr(selection, role, find_column(table, requested_name, role))
    has_class_scores = selection.has_class_scores
    if not has_class_scores:
        selection.prediction = selection.prediction or _find_default_column(table, "prediction")
    if options.unlabeled:
        return
    selection.label = selection.label or _find_default_column(table, "label")
    if selection.correct or selection.loss:
        return
    has_predictions = has_class_scores or bool(selection.prediction)
    if selection.label and has_predictions:
        if not has_class_scores:
            selection.correct_to_verify = _find_default_column(table, "correct")
        return
    selection.correct = _find_default_column(table, "correct")
    if not selection.correct:
        selection.loss = _find_default_column(table, "loss")
    if selection.correct is None and selection.loss is None:
        raise MissingInputError(_missing_truth_message(table, selection))


def _missing_truth_message(table: DataTable, selection: ColumnSelection) -> str:
    """Return an error message on missing columns, without which correctness is unknown."""
    if table.grade_columns:
        return (
            f"{table.source} holds several grades of its answers "
            f"({', '.join(table.grade_columns)}); select one with {format_option('correct')}"
        )
    missing_roles = []
    if not selection.label:
        missing_roles.append(("label", "the true class"))
    if not (selection.prediction or selection.has_class_scores):
        missing_roles.append(("prediction", "the predicted class"))
    missing = " or ".join(
        f"{description} ({format_option(role)}; default names: {', '.join(DEFAULT_NAMES[role])})"
        for role, description in missing_roles
    )
    noun = "key" if table.has_keys else "column"
    return (
        f"{table.source} does not define which predictions are correct: it has no {noun} for "
        f"{missing}, and no {noun} named correct or loss. Its {noun}s: "
        f"{', '.join(table.names[:_MAX_LISTED_COLUMNS])}.{_class_scores_hint(table, selection)}"
    )


def _select_confidences(
    table: DataTable, options: ReadingOptions, selection: ColumnSelection
) -> None:
    """Select the requested confidences, or numeric columns with a default name."""
    if options.confidence:
        _select_requested_confidences(table, options, selection)
        return
    candidates = []
    default_name = _find_default_column(table, "confidence")
    if default_name is not None:
        candidates.append(default_name)
    for name, kind in table.kind_by_column.items():
        if kind == "number" and name.startswith("confidence_"):
            candidates.append(name)
    used = {
        selection.label,
        selection.prediction,
        selection.correct,
        selection.loss,
        selection.correct_to_verify,
        *selection.class_scores,
        *selection.by,
    }
    selection.confidence = tuple(name for name in candidates if name not in used)
    if not selection.confidence and not selection.has_class_scores:
        raise MissingInputError(_missing_confidence_message(table, selection))


def _select_requested_confidences(
    table: DataTable, options: ReadingOptions, selection: ColumnSelection
) -> None:
    """Select the requested confidences, such as "msr", "-entropy" or "conf_*"."""
    names = []
    negated = set()
    for name in options.confidence:
        # Results name a negated uncertainty "-entropy", so the same name selects its column.
        if name.startswith("-") and table.find(name) is None and table.find(name[1:]):
            negated.add(name[1:])
            names.append(name[1:])
        else:
            names.append(name)
    selection.confidence = _expand_patterns(table, tuple(names), "confidence")
    selection.negated = frozenset(negated)


def _missing_confidence_message(table: DataTable, selection: ColumnSelection) -> str:
    """Return an error message on a table without a column for the confidence."""
    notes_on_file = f" The file: {'; '.join(map(str, table.notes))}." if table.notes else ""
    return (
        f"{table.source} has no column with a default name for the confidence "
        f"({', '.join(DEFAULT_NAMES['confidence'])}); name the column with "
        f"{format_option('confidence')}. Its columns: "
        f"{', '.join(table.names[:_MAX_LISTED_COLUMNS])}."
        f"{_class_scores_hint(table, selection)}{notes_on_file}"
    )


def _confidences_named_by(
    role: str, table: DataTable, options: ReadingOptions, selection: ColumnSelection
) -> frozenset[str]:
    """Return the confidences that an option such as "percent" names.

    The `role` is the name of the option, "lower_is_safer" or "percent".
    """
    requested: tuple[str, ...] = getattr(options, role)
    if not requested:
        return frozenset()
    if not selection.confidence:
        raise InputError(
            f"{table.source}: {format_option(role)} requires a column of confidence, and none is "
            f"selected; name it with {format_option('confidence')}"
        )
    if requested == ALL_CONFIDENCES:
        return frozenset(selection.confidence)
    names = [find_column(table, name, role) for name in requested]
    for name in names:
        if name not in selection.confidence:
            raise InputError(
                f"{table.source}: {format_option(role)} names {name!r}, which is not read as a "
                f"confidence; name it with {format_option('confidence')} too"
            )
    return frozenset(names)


# ------------------------------------------------------------------------------------ notes
def _describe_selection(selection: ColumnSelection) -> str:
    """Return a sentence that lists the column of each role."""
    clauses = []
    for role in ("label", "prediction", "correct", "loss", "group", "weight", "id"):
        column = getattr(selection, role)
        if column is not None:
            clauses.append(f"{role} from {column!r}")
    unchanged = [name for name in selection.confidence if name not in selection.negated]
    clauses += _describe_columns("confidence", unchanged, max_listed=_MAX_LISTED_CONFIDENCES)
    negated = [name for name in selection.confidence if name in selection.negated]
    for clause in _describe_columns("confidence", negated, max_listed=_MAX_LISTED_CONFIDENCES):
        clauses.append(f"{clause} negated (lower is safer)")
    percentages = [name for name in selection.confidence if name in selection.percentages]
    clauses += [f"{name!r} divided by 100" for name in percentages]
    clauses += _describe_columns(selection.class_scores_kind, selection.class_scores, max_listed=1)
    clauses += [f"{role} from {key!r}" for role, key in selection.array_keys.items()]
    return f"read {', '.join(clauses)}"


def _describe_columns(role: str, names: Sequence[str], *, max_listed: int) -> list[str]:
    if len(names) <= max_listed:
        return [f"{role} from {name!r}" for name in names]
    return [f"{role} from {len(names)} columns ({names[0]!r} to {names[-1]!r})"]


def _add_unused_notes(
    table: DataTable, options: ReadingOptions, selection: ColumnSelection
) -> None:
    """Add notes on columns that are not used but may contain predictions or class scores."""
    used = set(selection.names())
    unused = [name for name in table.names if name not in used]
    if table.has_keys and unused:
        selection.notes.append(Note(READING, f"keys not used: {', '.join(unused)}"))
    if selection.class_scores and options.prediction is None:
        name = _find_default_column(table, "prediction")
        if name is not None:
            text = (
                f"column {name!r} is not used: the prediction is the class with the largest "
                f"score; pass {format_option('prediction', name)} to use the column"
            )
            selection.notes.append(Note(READING, text))
    hint = "" if selection.class_scores else _class_scores_hint(table, selection)
    if hint:
        selection.notes.append(Note(READING, hint.strip()))


def _class_scores_hint(table: DataTable, selection: ColumnSelection) -> str:
    """Return a sentence on unused columns that may be class scores, or "" if there are none."""
    if table.column_by_role:
        return ""
    used = set(selection.names())
    patterns: list[str] = []
    ranges: list[str] = []
    for prefix, names in class_score_families(table):
        if used.isdisjoint(names) and len(patterns) < 3:
            patterns.append(f"{prefix}*")
            ranges.append(f"{names[0]!r} to {names[-1]!r}")
    if not patterns:
        return ""
    # If there are several families of columns, one of them may be named after logits.
    logit_pattern = next((p for p in patterns if "logit" in p.lower()), patterns[-1])
    other_pattern = next((p for p in patterns if p != logit_pattern), logit_pattern)
    return (
        f" Columns {' and '.join(ranges)} look like class scores and were not used; pass "
        f"{format_option('probabilities', other_pattern)} or "
        f"{format_option('logits', logit_pattern)}, depending on their kind."
    )


def class_score_families(table: DataTable) -> list[tuple[str, list[str]]]:
    """Return groups of numeric columns with a common prefix, starting with the largest group."""
    names_by_prefix: dict[str, list[str]] = {}
    for name, kind in table.kind_by_column.items():
        match = _NUMBERED_NAME.match(name) if kind == "number" else None
        if match is not None:
            names_by_prefix.setdefault(match[1], []).append(name)
    families = []
    for prefix, names in names_by_prefix.items():
        min_columns = 2 if _CLASS_SCORE_PREFIX.match(prefix) else 3
        has_default_name = not _ALL_DEFAULT_NAMES.isdisjoint(names)
        is_confidence = prefix.startswith("confidence")
        if len(names) >= min_columns and not has_default_name and not is_confidence:
            families.append((prefix, names))
    return sorted(families, key=lambda family: -len(family[1]))
