"""What a threshold is compared with, and on which scale: never a silent flip.

A threshold in log-odds and one in probabilities are the same rule, but not the same number: all
probabilities lie below a log-odds of 1. So what is not said is never guessed here.
"""

from typing import Any, Final, Literal, TypeAlias, get_args

import numpy as np

from abstain._foundation.lazy_imports import special
from abstain.confidence import ConfidenceScore, ScoreState, score
from abstain.errors import DomainError, InputError, MissingInputError
from abstain.predictions import Predictions
from abstain.typing import AnyArray, Array, BoolArray, FloatArray, Scale

#: The scale of a rule that does not record one, such as one read from an older file.
UNKNOWN: Final = "unknown"
RuleScale: TypeAlias = Scale | Literal["unknown"]
SCALES: Final[tuple[str, ...]] = get_args(Scale)

#: A softmax sums to 1 but for rounding, so its largest entry may pass 1 by as much.
_BEYOND = 1e-5
#: Probabilities so many units in the last place apart are equal when they were computed twice.
_ULPS = 4
#: A threshold with fewer units in the last place between it and 1 has no counterpart there.
_ROOM = 64


def one_of(confidence: object, logits: Any, probabilities: Any) -> object:
    """Return what was given: confidences, or predictions made of class scores."""
    given = [x for x in (confidence, logits, probabilities) if x is not None]
    if len(given) != 1:
        raise (InputError if given else MissingInputError)(
            "give one of `confidence` (or predictions), `logits` and `probabilities`; "
            f"got {len(given)} of them"
        )
    if confidence is not None:
        return confidence
    return Predictions(logits=logits, probabilities=probabilities, unlabeled=True)


def scored(predictions: Predictions, wanted: str, state: ScoreState | None) -> ConfidenceScore:
    """Return the confidences that a rule for the score `wanted` is about."""
    if not wanted and state is None:
        raise MissingInputError(
            "the rule names no score. Give its confidences, or name it: rule.for_score('msr')"
        )
    return score(wanted if state is None else state, predictions)


def on_scale(found: ConfidenceScore, own: str, scale: str | None) -> tuple[AnyArray, str | None]:
    """Return the values to compare with a threshold on the scale `own`, and what they are in.

    `scale` is what was said of the values: of a column of the caller's nothing else is known.
    """
    refuse_said(found, scale)
    if found.is_user_column:
        return found.values, scale
    if found.scale == own:
        return found.values, "score"
    if own == "probability" and found.probability is not None:
        return found.probability, "score"
    return found.values, found.scale


def compared(
    given: Any, wanted: str, own: str, state: ScoreState | None, scale: str | None
) -> tuple[AnyArray, str | None]:
    """Return what a rule for the score `wanted` compares with thresholds on the scale `own`.

    And what these confidences are measured in, where that is known.
    """
    if isinstance(given, Predictions):
        given = scored(given, wanted, state)
    elif state is not None:
        raise InputError(
            "`score` computes confidences from predictions; got the confidences themselves"
        )
    if not isinstance(given, ConfidenceScore):
        return given, scale
    refuse_other(wanted, given.name)
    return on_scale(given, own, scale)


def refuse_other(wanted: str, name: str) -> None:
    """Refuse another score than that of a rule; without a name, either is any."""
    if wanted and name and name != wanted:
        raise InputError(
            f"the rule is for the score {wanted!r}; got {name!r}. A threshold of one score "
            "means nothing on the scale of another"
        )


def refuse_said(found: ConfidenceScore, scale: str | None) -> None:
    """Refuse that a computed score is measured in something else than it is."""
    if scale is not None and not found.is_user_column and scale != found.scale:
        msg = (
            f"the score {found.name!r} is computed, and its scale is {found.scale!r}; got {scale!r}"
        )
        raise InputError(f"{msg}. Drop `scale` (--scale)")


def counterpart(threshold: float, scale: str) -> float | None:
    """Return a threshold in log-odds as a probability, or the reverse; None where it has none."""
    if scale == "log-odds":
        return float(special.expit(threshold))
    if scale == "probability" and 0 < threshold < 1:
        return float(special.logit(threshold))
    return None


def reached(values: Array, threshold: float | FloatArray, own: str, given: str | None) -> BoolArray:
    """Tell which values reach a threshold on the scale `own`; `given` is theirs, where it was said.

    There is one threshold, or one for each value. The comparison is made
    on the scale of the threshold ("score" is that) in the precision of the values; on the other
    one within 4 units in the last place.
    """
    if given is None:
        _refuse_doubtful(values, float(np.min(threshold)), own)
        return _compared(values, threshold)
    if given not in SCALES:
        raise InputError(f"`scale` must be one of {', '.join(map(repr, SCALES))}; got {given!r}")
    if given == "score":
        return _compared(values, threshold)
    if given == "probability" and _outside(values).any():
        at = int(np.argmax(_outside(values)))
        raise DomainError(
            f"`confidence` must lie in [0, 1] with scale='probability'; got {values[at]!r} at "
            f"index {at}"
        )
    if given == own:
        return _compared(values, threshold)
    if own in {"score", UNKNOWN}:
        raise InputError(_no_counterpart(own, given))
    if given == "probability":
        return _in_probabilities(values, threshold)
    p = special.expit(values.astype(np.float64))
    return np.asarray(p >= threshold * (1 - _ULPS * np.finfo(np.float64).eps), dtype=np.bool_)


def _compared(values: Array, threshold: float | FloatArray) -> BoolArray:
    with np.errstate(over="ignore"):
        out: BoolArray = values >= np.asarray(threshold).astype(values.dtype)
    return out


def _in_probabilities(values: Array, threshold: float | FloatArray) -> BoolArray:
    """Compare probabilities with a threshold in log-odds."""
    eps = float(np.finfo(values.dtype).eps)
    at, highest = special.expit(threshold), float(np.max(threshold))
    if float(special.expit(-highest)) < _ROOM * eps:
        raise DomainError(
            f"the threshold of this rule, log-odds of {highest:.6g}, is a probability so near 1 "
            f"that {values.dtype} probabilities do not tell what reaches it. Give `logits`, the "
            "predictions, or confidences in log-odds"
        )
    out: BoolArray = values >= np.asarray(at * (1 - _ULPS * eps)).astype(values.dtype)
    return out


def _outside(values: Array) -> BoolArray:
    out: BoolArray = (values < -_BEYOND) | (values > 1 + _BEYOND)
    return out


def _refuse_doubtful(values: Array, threshold: float, own: str) -> None:
    """Refuse values that look as if they were on the other scale than the threshold."""
    if own not in {"log-odds", "probability"}:
        return
    outside = _outside(values)
    if own == "log-odds" and outside.any():
        return
    if own == "probability" and not outside.any():
        return
    low, high = float(values.min()), float(values.max())
    span = "all lie" if own == "log-odds" else "do not all lie"
    raise InputError(
        f"`confidence` may be on another scale than the rule: the values {span} in [0, 1] (they "
        f"run from {low:.6g} to {high:.6g}), and the threshold is {threshold:.6g} "
        f"({said(threshold, own)}). "
        "Give the predictions, `logits` or `probabilities`, or say what the values are with "
        "`scale` (--scale): 'log-odds', 'probability', or 'score' to compare them as they are"
    )


def _named(own: str, other: float) -> str:
    if own == "log-odds":
        return f"a probability of {other:.6g}"
    return f"log-odds of {other:.6g}"


def _no_counterpart(own: str, given: str) -> str:
    if own == UNKNOWN:
        return (
            "the rule does not record the scale of its threshold, so confidences that are "
            f"{given!r} cannot be brought to it. Set it, as in rule.for_score('msr', "
            "scale='log-odds'), or leave `scale` out to compare numbers as they are"
        )
    return (
        f"the threshold of this rule is in the unit of its score, which has no exact counterpart "
        f"in {given!r}; give confidences of that score"
    )


def said(threshold: float, scale: str) -> str:
    """Write what a threshold is on its scale and on the other one; empty for a score's own unit.

    Examples
    --------
    >>> said(2.0, "log-odds"), said(0.75, "probability"), said(3.0, "score")
    ('log-odds; a probability of 0.880797', 'a probability; log-odds of 1.09861', '')
    >>> said(3.0, "unknown")
    'on a scale that is not recorded'
    """
    if scale == UNKNOWN:
        return "on a scale that is not recorded"
    if scale == "score":
        return ""
    other = counterpart(threshold, scale)
    first = "log-odds" if scale == "log-odds" else "a probability"
    return first if other is None else f"{first}; {_named(scale, other)}"
