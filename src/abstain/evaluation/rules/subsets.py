"""What says which samples a threshold or a limit is about: groups, predicted and true classes."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import numpy as np

from abstain._foundation.option_format import format_option
from abstain.errors import InputError, MissingInputError, suggest
from abstain.predictions import Predictions
from abstain.thresholds import Limit
from abstain.thresholds.group_names import class_texts, predicted_names, texts
from abstain.thresholds.rule import PREDICTION
from abstain.typing import AnyArray, Array, BoolArray

GROUP: Final = "group"
OVERALL: Final = "overall"
_TRUTH: Final = (
    "the true class is not known when a sample is to be answered, so no threshold can depend on "
    "it. Choose one per 'prediction', the predicted class; or keep one threshold and limit the "
    "risk in each true class: limits={'label': 0.1} (--limit label=0.1)"
)


def resolve_groups(predictions: Predictions, per: "str | AnyArray") -> tuple[str, Array]:
    """Return what the groups are, and the group of each sample as text; refuse true classes."""
    if not isinstance(per, str):
        name, names = GROUP, texts(per, "per")
    elif per == PREDICTION:
        return per, predicted_names(predictions)
    elif per == GROUP:
        if predictions.group is None:
            raise MissingInputError(
                "per='group' needs the `group` of the predictions, and there is none"
            )
        name, names = per, texts(predictions.group)
    else:
        true = per.lower() in {"label", "labels", "truth", "target", "y", "y_true"}
        rule = "`per` must be 'group', 'prediction' or the group of each sample"
        raise InputError(f"{rule}; got {per!r}" + (f": {_TRUTH}" if true else ""))
    if names.shape == (predictions.n,) and _is_truth(names, predictions):
        raise InputError(f"`per` holds the true class of every sample: {_TRUTH}")
    return name, names


def _is_truth(names: Array, predictions: Predictions) -> bool:
    """Whether groups are the true classes, and not the predicted ones that happen to be right."""
    if predictions.labels is None or len(set(names.tolist())) < 2:
        return False
    if not (names == texts(predictions.labels)).all():
        return False
    return not (predictions.has_prediction and (names == predicted_names(predictions)).all())


def _true_names(predictions: Predictions) -> Array:
    codes = predictions.label_codes
    named = class_texts(predictions)
    # Of no known class: no limit is about these alone.
    return np.where(codes >= 0, named[codes], "")


def _own_groups(predictions: Predictions) -> Array:
    if predictions.group is None:
        raise MissingInputError(
            f"a limit of groups needs the {format_option('group')} of the predictions; there is "
            "none"
        )
    return texts(predictions.group)


#: From what a limit is about to the name of each sample there.
_KINDS: Final[Mapping[str, Callable[[Predictions], Array]]] = {
    GROUP: _own_groups,
    PREDICTION: predicted_names,
    "label": _true_names,
}


def resolve_limits(wanted: Mapping[str, float], predictions: Predictions, risk: str) -> list[Limit]:
    """Return the limits that were asked for: of a kind alone, one for each of its names."""
    found: dict[str, Limit] = {}
    for name, most in wanted.items():
        for own, among in _expanded(name, predictions).items():
            # What is said of one name goes before what is said of all.
            if own not in found or ":" in name:
                found[own] = Limit(own, most, among, risk)  # type: ignore[arg-type]
    return list(found.values())


def _expanded(name: str, predictions: Predictions) -> dict[str, BoolArray | None]:
    if name == OVERALL:
        return {name: None}
    kind, mark, value = name.partition(":")
    if kind not in _KINDS:
        known = [OVERALL, *_KINDS]
        raise InputError(
            f"a limit is about {', '.join(map(repr, known))}, or one name, such as 'label:cat'; "
            f"got {name!r}.{suggest(kind, known)}"
        )
    names = _KINDS[kind](predictions)
    if not mark:
        return {f"{kind}:{one}": names == one for one in np.unique(names).tolist() if one}
    if not (names == value).any():
        known = np.unique(names).tolist()
        raise InputError(f"no calibration sample has the {kind} {value!r}.{suggest(value, known)}")
    return {name: names == value}


def limit_masks(names: Iterable[str], predictions: Predictions) -> dict[str, BoolArray]:
    """Return the samples that each limit is about, of those that these predictions can tell."""
    out: dict[str, BoolArray] = {}
    for name in names:
        kind, mark, value = name.partition(":")
        if not mark:
            continue
        try:
            out[name] = _KINDS[kind](predictions) == value
        except MissingInputError:
            continue
    return out
