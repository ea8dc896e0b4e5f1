"""Which column serves which purpose: what was asked for, else a short list of usual names."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from abstain._foundation.notes import COLUMNS, READING, Note
from abstain._foundation.option_format import format_option
from abstain.errors import InputError, MissingInputError, UnknownNameError, suggest
from abstain.tables._reading import ALL, ReadingOptions
from abstain.tables.table import DataTable

#: The names looked for when an option is not given, in this order. Documented in
#: `read_predictions`; short on purpose: a wrong guess costs more than naming a column.
USUAL = {
    "label": ("label", "labels", "y_true", "target"),
    "prediction": ("prediction", "predictions", "pred", "y_pred", "predicted"),
    "confidence": ("confidence", "conf", "score"),
    "correct": ("correct", "is_correct", "graded_correct", "verdict"),
    "loss": ("loss",),
}

#: Keys of archives and mappings of arrays, which name their content.
KEYED = {
    "logits": ("logits",),
    "probabilities": ("probabilities", "probs"),
    "logit_samples": ("logit_samples", "mcd_logits"),
    "probability_samples": ("probability_samples", "mcd_probabilities"),
    "features": ("features",),
    "group": ("group", "groups"),
    "weight": ("weight", "weights"),
    "id": ("ids", "id"),
}

#: So many confidences are named one by one.
_FEW = 5

_SCORE_LIKE = re.compile(r"^(.*?[_.\-: ]|[A-Za-z]+(?=\d+$))([^_.\-: ]+)$")
_SCORE_WORD = re.compile(r"^(p|prob|probs|probability|logit|logits|score|softmax)[_.\-: ]?$")


@dataclass
class ChosenColumns:
    """The columns taken, by purpose, and the notes that say so."""

    label: str | None = None
    prediction: str | None = None
    confidence: tuple[str, ...] = ()
    correct: str | None = None
    loss: str | None = None
    scores: tuple[str, ...] = ()
    scores_kind: str = ""
    pattern: str = ""
    keyed: dict[str, str] = field(default_factory=dict)
    group: str | None = None
    weight: str | None = None
    id: str | None = None
    by: tuple[str, ...] = ()
    checked: str | None = None
    turned: frozenset[str] = frozenset()
    percentages: frozenset[str] = frozenset()
    notes: list[Note] = field(default_factory=list)

    def names(self) -> tuple[str, ...]:
        """All columns to load."""
        single = (self.label, self.prediction, self.correct, self.loss, self.group, self.weight)
        several = (*self.confidence, *self.scores, *self.keyed.values(), *self.by)
        return tuple(n for n in (*single, self.id, self.checked, *several) if n is not None)


def choose(table: DataTable, asked: ReadingOptions) -> ChosenColumns:
    """Decide which columns are read."""
    out = ChosenColumns(by=_exact(table, asked.by, "by"))
    for name in ("group", "weight", "id"):
        if getattr(asked, name) is not None:
            setattr(out, name, _exact(table, (getattr(asked, name),), name)[0])
    _choose_scores(table, asked, out)
    _choose_truth(table, asked, out)
    _choose_confidence(table, asked, out)
    out.turned |= _named_confidences(table, asked, out, "lower_is_safer")
    out.percentages = _named_confidences(table, asked, out, "percent")
    out.notes.append(Note(COLUMNS, _taken(out), source=table.source))
    _note_unused(table, asked, out)
    return out


# ------------------------------------------------------------------------------------ look-up
def _exact(table: DataTable, names: Iterable[str], role: str) -> tuple[str, ...]:
    out = []
    for name in names:
        found = table.find(name)
        if found is None:
            raise UnknownNameError(_unknown(table, name, role))
        out.append(found)
    return tuple(out)


def _unknown(table: DataTable, name: str, role: str) -> str:
    what = "key" if table.keyed else "column"
    shown = ", ".join(table.names[:30]) + (", ..." if len(table.names) > 30 else "")
    return (
        f"{table.source} has no {what} {name!r} (asked for by {format_option(role)})."
        f"{suggest(name, table.names)} Its {what}s: {shown}"
    )


def _expand(table: DataTable, names: tuple[str, ...], role: str) -> tuple[str, ...]:
    """Resolve names and patterns such as "p_*", in the order of the file."""
    out: list[str] = []
    for name in names:
        one = table.find(name)
        if one is not None:
            out.append(one)
            continue
        found = [n for n in table.names if fnmatchcase(n, name)] if is_pattern(name) else []
        if not found:
            raise UnknownNameError(_unknown(table, name, role))
        out += found
    return tuple(dict.fromkeys(out))


def is_pattern(name: str) -> bool:
    """Tell whether a name is a pattern for several columns."""
    return any(sign in name for sign in "*?[")


def _usual(table: DataTable, role: str) -> str | None:
    if role in table.meant:
        return table.meant[role]
    found = (table.find(name) for name in USUAL[role])
    return next((name for name in found if name is not None), None)


# ------------------------------------------------------------------------------------ purposes
def _choose_scores(table: DataTable, asked: ReadingOptions, out: ChosenColumns) -> None:
    for kind in ("logits", "probabilities"):
        names: tuple[str, ...] = getattr(asked, kind)
        if names:
            out.scores, out.scores_kind = _expand(table, names, kind), kind
            out.pattern = names[0] if len(names) == 1 else ""
    if table.keyed:
        _choose_keys(table, out)


def _choose_keys(table: DataTable, out: ChosenColumns) -> None:
    """Take the keys of an archive that say themselves what they hold."""
    found = {
        role: next(n for n in usual if n in table.kinds)
        for role, usual in KEYED.items()
        if any(n in table.kinds for n in usual)
    }
    found |= {role: name for role, name in table.meant.items() if role in KEYED}
    for role in ("group", "weight", "id", "features"):
        name = found.pop(role, None)
        if name is None or table.lengths.get(name) != table.height:
            continue  # the weights of a layer share a name with the weights of samples
        block = table.kinds[name] == "block"
        if role == "features" and block:
            out.keyed[role] = name
        elif role != "features" and getattr(out, role) is None and not block:
            setattr(out, role, name)
    for kind in ("logits", "probabilities"):
        name = found.pop(kind, None)
        if name is not None and not out.scores:
            out.scores, out.scores_kind = (name,), kind
    if "logit_samples" in found:
        found.pop("probability_samples", None)
    out.keyed |= found


def _has_samples(out: ChosenColumns) -> bool:
    return any(role.endswith("_samples") for role in out.keyed)


def _choose_truth(table: DataTable, asked: ReadingOptions, out: ChosenColumns) -> None:
    """Find what says right from wrong: label and prediction, else correctness, else a loss."""
    if asked.unlabeled:
        _choose_answers(table, asked, out)
        return
    for role in ("label", "prediction", "correct", "loss"):
        name = getattr(asked, role)
        if name is not None:
            setattr(out, role, _exact(table, (name,), role)[0])
    scored = bool(out.scores) or _has_samples(out)
    out.label = out.label or _usual(table, "label")
    if not scored:
        out.prediction = out.prediction or _usual(table, "prediction")
    if out.correct or out.loss:
        return
    if out.label and (out.prediction or scored):
        # The file's own verdict is compared with ours, where the file has one.
        out.checked = None if scored else _usual(table, "correct")
        return
    out.correct = _usual(table, "correct")
    out.loss = None if out.correct else _usual(table, "loss")
    if out.correct is None and out.loss is None:
        raise MissingInputError(_no_truth(table, out, scored=scored))


def _choose_answers(table: DataTable, asked: ReadingOptions, out: ChosenColumns) -> None:
    """Find what was predicted, where nothing says what is right."""
    if asked.prediction is not None:
        out.prediction = _exact(table, (asked.prediction,), "prediction")[0]
    elif not (out.scores or _has_samples(out)):
        out.prediction = _usual(table, "prediction")


def _no_truth(table: DataTable, out: ChosenColumns, *, scored: bool) -> str:
    if table.grades:
        return (
            f"{table.source} holds several grades of its answers ({', '.join(table.grades)}); "
            f"name the one to take with {format_option('correct')}"
        )
    lacking = [
        f"{what} ({format_option(role)}; usual names: {', '.join(USUAL[role])})"
        for role, what, there in (
            ("label", "the true class", out.label),
            ("prediction", "the predicted class", out.prediction or scored),
        )
        if not there
    ]
    what = "keys" if table.keyed else "columns"
    return (
        f"{table.source} does not say which samples are right: no {what[:-1]} was found for "
        f"{' or '.join(lacking)}, and none named correct or loss. "
        f"Its {what}: {', '.join(table.names[:30])}.{_score_hint(table, out)}"
    )


def _met(table: DataTable) -> str:
    """Say what was met on opening, where it may explain what is not found."""
    return f" Of the file: {'; '.join(map(str, table.notes))}." if table.notes else ""


def _choose_confidence(table: DataTable, asked: ReadingOptions, out: ChosenColumns) -> None:
    if asked.confidence:
        turned = [name for name in asked.confidence if _is_turned(table, name)]
        plain = tuple(name[1:] if name in turned else name for name in asked.confidence)
        out.confidence = _expand(table, plain, "confidence")
        out.turned = frozenset(name[1:] for name in turned)
        return
    taken = {out.label, out.prediction, out.correct, out.loss, out.checked, *out.scores, *out.by}
    first = _usual(table, "confidence")
    own = [n for n, kind in table.kinds.items() if n.startswith("confidence_") and kind == "number"]
    out.confidence = tuple(n for n in (first, *own) if n is not None and n not in taken)
    if not (out.confidence or out.scores or _has_samples(out)):
        raise MissingInputError(
            f"{table.source} has no column for the confidence (usual names: "
            f"{', '.join(USUAL['confidence'])}); name it with {format_option('confidence')}. "
            f"Its columns: {', '.join(table.names[:30])}.{_score_hint(table, out)}{_met(table)}"
        )


def _is_turned(table: DataTable, name: str) -> bool:
    """Tell whether a name is that of an uncertainty turned around, as results write it."""
    return name.startswith("-") and table.find(name) is None and table.find(name[1:]) is not None


def _named_confidences(
    table: DataTable, asked: ReadingOptions, out: ChosenColumns, role: str
) -> frozenset[str]:
    """Return the confidences that an option names: uncertainties, or percentages."""
    requested: tuple[str, ...] = getattr(asked, role)
    if not requested:
        return frozenset()
    if not out.confidence:
        raise InputError(
            f"{table.source}: {format_option(role)} speaks of columns of confidence, and none "
            f"is read; name them with {format_option('confidence')}"
        )
    names = out.confidence if requested == ALL else _exact(table, requested, role)
    for name in names:
        if name not in out.confidence:
            raise InputError(
                f"{table.source}: {name!r} is not read as a confidence (asked for by "
                f"{format_option(role)}); name it with {format_option('confidence')} too"
            )
    return frozenset(names)


# ------------------------------------------------------------------------------------ notes
def _taken(out: ChosenColumns) -> str:
    parts = [
        f"{role} from {getattr(out, role)!r}"
        for role in ("label", "prediction", "correct", "loss", "group", "weight", "id")
        if getattr(out, role) is not None
    ]
    for how, turned in (("", False), (" turned around (lower is safer)", True)):
        names = [name for name in out.confidence if (name in out.turned) == turned]
        parts += [f"{said}{how}" for said in _from_columns("confidence", names, each=_FEW)]
    parts += [f"{name!r} divided by 100" for name in out.confidence if name in out.percentages]
    parts += _from_columns(out.scores_kind, out.scores, each=1)
    parts += [f"{role} from {name!r}" for role, name in out.keyed.items()]
    return f"took {', '.join(parts)}"


def _from_columns(role: str, names: Sequence[str], *, each: int) -> list[str]:
    """Say from which columns something is, one by one where they are few."""
    if len(names) <= each:
        return [f"{role} from {name!r}" for name in names]
    return [f"{role} from {len(names)} columns ({names[0]!r} to {names[-1]!r})"]


def _note_unused(table: DataTable, asked: ReadingOptions, out: ChosenColumns) -> None:
    used = set(out.names())
    if table.keyed:
        unused = [n for n in table.names if n not in used]
        if unused:
            out.notes.append(Note(READING, f"keys not used: {', '.join(unused)}"))
    if out.scores and asked.prediction is None and _usual(table, "prediction"):
        name = _usual(table, "prediction")
        text = (
            f"column {name!r} is not used: the prediction is the class with the largest score; "
            f"pass {format_option('prediction', name)} to use the column"
        )
        out.notes.append(Note(READING, text))
    hint = "" if out.scores else _score_hint(table, out)
    if hint:
        out.notes.append(Note(READING, hint.strip()))


def _score_hint(table: DataTable, out: ChosenColumns) -> str:
    """Point to columns that look like class scores and were not used; a log has none."""
    if table.meant:
        return ""
    families = [f for f in score_families(table) if not set(f[1]) & set(out.names())]
    if not families:
        return ""
    ways = " and ".join(f"{names[0]!r} to {names[-1]!r}" for _, names in families[:3])
    patterns = [f"{prefix}*" for prefix, _ in families[:3]]
    # With two sets of columns, one may say by its name that it holds logits.
    logits = next((p for p in patterns if "logit" in p.lower()), patterns[-1])
    others = [p for p in patterns if p != logits] or [logits]
    either = f"{format_option('probabilities', others[0])} or {format_option('logits', logits)}"
    return (
        f" Columns {ways} look like class scores and were not used; pass "
        f"{either}, whichever they are."
    )


def score_families(table: DataTable) -> list[tuple[str, list[str]]]:
    """Return groups of at least two numeric columns with a common prefix, largest first."""
    found: dict[str, list[str]] = {}
    for name, kind in table.kinds.items():
        match = _SCORE_LIKE.match(name) if kind == "number" else None
        if match is not None:
            found.setdefault(match[1], []).append(name)
    usual = {n for names in USUAL.values() for n in names}
    big = [
        (p, names)
        for p, names in found.items()
        if not usual & set(names)
        and not p.startswith("confidence")
        and len(names) > (1 if _SCORE_WORD.match(p) else 2)
    ]
    return sorted(big, key=lambda item: -len(item[1]))
