"""Find the groups or classes of samples to which a threshold or a limit applies."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import numpy as np

from abstain._foundation.option_format import format_option
from abstain.errors import InputError, MissingInputError, suggest
from abstain.predictions import Predictions
from abstain.thresholds import Limit
from abstain.thresholds.group_names import class_name_texts, group_texts, predicted_class_names
from abstain.thresholds.rule import PREDICTION
from abstain.typing import AnyArray, Array, BoolArray

GROUP: Final = "group"
LABEL: Final = "label"
OVERALL: Final = "overall"
_TRUE_CLASS_RULE: Final = (
    "the true class is unknown when a sample is answered, so no threshold can depend on it. "
    "Choose one threshold per 'prediction', the predicted class; or use one threshold and limit "
    "the risk in each true class: limits={'label': 0.1} (--limit label=0.1)"
)


def resolve_groups(predictions: Predictions, per: "str | AnyArray") -> tuple[str, Array]:
    """Return the name of a grouping and the group of each sample; reject true classes."""
    if not isinstance(per, str):
        name, groups = GROUP, group_texts(per, "per")
    elif per == PREDICTION:
        return per, predicted_class_names(predictions)
    elif per == GROUP:
        if predictions.group is None:
            raise MissingInputError(
                "per='group' requires the `group` of the predictions, and they have none"
            )
        name, groups = per, group_texts(predictions.group)
    else:
        is_true_class = per.lower() in {"label", "labels", "truth", "target", "y", "y_true"}
        reason = f": {_TRUE_CLASS_RULE}" if is_true_class else ""
        raise InputError(
            f"`per` must be 'group', 'prediction' or the group of each sample; got {per!r}{reason}"
        )
    if groups.shape == (predictions.n,) and _are_true_classes(groups, predictions):
        raise InputError(f"`per` contains the true class of every sample: {_TRUE_CLASS_RULE}")
    return name, groups


def _are_true_classes(groups: Array, predictions: Predictions) -> bool:
    """Return whether the groups equal the true classes but differ from the predicted classes."""
    if predictions.labels is None or len(set(groups.tolist())) < 2:
        return False
    if not (groups == group_texts(predictions.labels)).all():
        return False
    return not (predictions.has_prediction and (groups == predicted_class_names(predictions)).all())


def _true_class_names(predictions: Predictions) -> Array:
    codes = predictions.label_codes
    names = class_name_texts(predictions)
    # An unknown class (code -1) gets an empty name, and no limit applies to the empty name.
    return np.where(codes >= 0, names[codes], "")


def _group_names(predictions: Predictions) -> Array:
    if predictions.group is None:
        raise MissingInputError(
            f"a limit per group requires the {format_option('group')} of the predictions, and "
            "they have none"
        )
    return group_texts(predictions.group)


#: For each kind of limit, the function that returns the subset name of each sample.
_SUBSET_NAMES: Final[Mapping[str, Callable[[Predictions], Array]]] = {
    GROUP: _group_names,
    PREDICTION: predicted_class_names,
    LABEL: _true_class_names,
}


def resolve_limits(
    max_risks: Mapping[str, float], predictions: Predictions, risk: str
) -> list[Limit]:
    """Expand each kind of limit without a name, such as "group", to one limit for each name."""
    limits: dict[str, Limit] = {}
    for requested_name, max_risk in max_risks.items():
        for name, mask in _expand_limit(requested_name, predictions).items():
            # A limit with a name, such as "label:cat", takes precedence over the limit "label".
            if name not in limits or ":" in requested_name:
                limits[name] = Limit(name, max_risk, mask, risk)  # type: ignore[arg-type]
    return list(limits.values())


def _expand_limit(name: str, predictions: Predictions) -> dict[str, BoolArray | None]:
    """Return the mask of each limit that a name or a kind of limit represents."""
    if name == OVERALL:
        return {name: None}
    kind, separator, value = name.partition(":")
    if kind not in _SUBSET_NAMES:
        kinds = [OVERALL, *_SUBSET_NAMES]
        raise InputError(
            f"a limit must refer to {', '.join(map(repr, kinds))}, or to one name, such as "
            f"'label:cat'; got {name!r}.{suggest(kind, kinds)}"
        )
    subset_names = _SUBSET_NAMES[kind](predictions)
    distinct = np.unique(subset_names).tolist()
    if not separator:
        return {f"{kind}:{subset}": subset_names == subset for subset in distinct if subset}
    if value not in distinct:
        raise InputError(
            f"no calibration sample has the {kind} {value!r}.{suggest(value, distinct)}"
        )
    return {name: subset_names == value}


def limit_masks(names: Iterable[str], predictions: Predictions) -> dict[str, BoolArray]:
    """Return the mask of each limit whose samples these predictions can identify."""
    masks: dict[str, BoolArray] = {}
    for name in names:
        kind, separator, value = name.partition(":")
        if not separator:
            continue
        try:
            masks[name] = _SUBSET_NAMES[kind](predictions) == value
        except MissingInputError:
            continue
    return masks
