"""What is remarkable about predictions, in sentences a reader of results should have seen."""

from collections.abc import Iterable, Mapping

import numpy as np

from abstain._foundation.option_words import option
from abstain.predictions import Predictions
from abstain.tables._missing import count
from abstain.typing import BoolArray, Split

#: Labels that nothing ever predicts are worth a note when this share of the rows has one.
_NOTABLE = 0.005


def observed(p: Predictions) -> list[str]:
    """Return notes on labels never predicted, empty predictions, confidence 0 and float16."""
    return [*_never_predicted(p), *_no_answer(p), *_zero_confidence(p), *_narrow(p)]


def doubtful(splits: Mapping[Split, Predictions], id_column: str | None) -> list[str]:
    """Return warnings about data that are most likely not what was meant."""
    return [*_one_class(splits.values()), *_repeated(splits.values(), id_column)]


def _one_class(parts: Iterable[Predictions]) -> list[str]:
    """Warn where all labels of a known class are the same one."""
    have = [p for p in parts if p.has_labels]
    codes = {int(code) for p in have for code in np.flatnonzero(np.bincount(p.label_codes + 1))}
    codes.discard(0)  # of no known class
    if len(codes) != 1 or sum(p.n for p in have) < 2 or have[0].n_classes < 2:
        return []
    name = have[0].class_names[codes.pop() - 1]
    return [f"every label is {name!r}: of the other classes these data say nothing"]


def _repeated(parts: Iterable[Predictions], id_column: str | None) -> list[str]:
    """Warn where one name stands for several samples of a split."""
    if id_column is None:
        return []
    rows = total = 0
    for p in parts:
        names = np.asarray(p.ids)
        total += p.n
        # Most names are unique, which a set tells sooner than a sort of texts.
        if names.dtype.kind != "O" or len(set(names.tolist())) < p.n:
            _, counts = np.unique(names.astype(str), return_counts=True)
            rows += int(counts[counts > 1].sum())
    if rows == 0:
        return []
    warning = (
        f"{rows:,} of {total:,} rows share their name in {id_column!r} with another row. Repeated "
        "rows count twice; several rows of one subject are not independent: name the subject with "
        f"{option('group', id_column)} and ask for clustered intervals"
    )
    return [warning]


def _never_predicted(p: Predictions) -> list[str]:
    if p.prediction is None or not p.has_labels:
        return []
    labels = p.label_codes[p.label_codes >= 0]
    have = np.bincount(labels, minlength=p.n_classes)
    given = np.bincount(p.prediction_codes, minlength=p.n_classes)
    names = p.class_names
    never = np.flatnonzero((have > 0) & (given == 0))
    never = never[np.argsort(-have[never], kind="stable")]
    marked = any(str(names[i]).startswith("-") for i in never)
    if have[never].sum() < _NOTABLE * p.n and not marked:
        return []
    if never.size == 0:
        return []
    shown = ", ".join(repr(names[i]) for i in never[:10]) + (
        f" and {never.size - 10} more" if never.size > 10 else ""
    )
    rows = np.isin(p.label_codes, never)
    first = names[never[0]]
    note = (
        f"labels that are never predicted, so always wrong: {shown}, {count(rows)}; if one marks "
        f"samples of no known class, pass {option('unknown_label', first)}"
    )
    return [note]


def _no_answer(p: Predictions) -> list[str]:
    if p.prediction is None or "" not in p.class_names:
        return []
    empty: BoolArray = p.prediction_codes == p.class_names.index("")
    if not empty.any():
        return []
    return [f"{count(empty)} have an empty prediction: the model gave no answer, always wrong"]


def _zero_confidence(p: Predictions) -> list[str]:
    notes = []
    for name, values in (p.confidence or {}).items():
        zero = values == 0
        if zero.sum() > 1 and not (values < 0).any():
            notes.append(f"{count(zero)} have {name!r} exactly 0: abstentions, or all tied last")
    return notes


def _narrow(p: Predictions) -> list[str]:
    fields = ("logits", "probabilities", "logit_samples", "probability_samples", "features")
    arrays = {name: getattr(p, name) for name in fields if getattr(p, name) is not None}
    arrays |= {f"confidence {name!r}": values for name, values in (p.confidence or {}).items()}
    narrow = [name for name, values in arrays.items() if values.dtype == np.float16]
    if not narrow:
        return []
    return [f"stored as float16 (about 3 digits, many ties): {', '.join(narrow)}"]
