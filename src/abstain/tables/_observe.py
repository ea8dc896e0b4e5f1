"""What is remarkable about predictions, in sentences a reader of results should have seen."""

import numpy as np

from abstain.predictions import Predictions
from abstain.tables._missing import count
from abstain.tables._options import option
from abstain.typing import BoolArray

#: Labels that nothing ever predicts are worth a note when this share of the rows has one.
_NOTABLE = 0.005


def observed(p: Predictions) -> list[str]:
    """Return notes on labels never predicted, empty predictions, confidence 0 and float16."""
    return [*_never_predicted(p), *_no_answer(p), *_zero_confidence(p), *_narrow(p)]


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
