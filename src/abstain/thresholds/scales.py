"""Convert and compare thresholds and confidences on different scales.

A threshold has different numeric values in log-odds and as a probability. For example, log-odds of
2 correspond to a probability of 0.88. If a scale is unknown, the functions raise an error.
"""

from typing import Any, Final, Literal, TypeAlias, get_args

import numpy as np

from abstain._foundation.lazy_imports import special
from abstain.confidence import ConfidenceScore, ScoreState, score
from abstain.errors import DomainError, InputError, MissingInputError
from abstain.predictions import Predictions
from abstain.thresholds.decimals import round_probability_up
from abstain.typing import AnyArray, Array, BoolArray, FloatArray, Scale

#: Scale of a rule that does not record one, such as a rule from an older file.
UNKNOWN: Final = "unknown"
RuleScale: TypeAlias = Scale | Literal["unknown"]
SCALES: Final[tuple[str, ...]] = get_args(Scale)

#: Maximum rounding error of a softmax, whose largest entry may exceed 1.
_PROBABILITY_TOLERANCE = 1e-5
#: Maximum difference, in units in the last place, of probabilities that are considered equal.
#: Different ways of computing the same probability can lead to this difference.
_MAX_ULP_DIFFERENCE = 4
#: Minimum distance of a threshold from 1, in units in the last place, for a comparison with
#: probabilities.
_MIN_ULPS_TO_ONE = 64


def select_source(confidence: object, logits: Any, probabilities: Any) -> object:
    """Return the confidences if they are passed, or else predictions with the class scores."""
    n_sources = sum(source is not None for source in (confidence, logits, probabilities))
    if n_sources != 1:
        raise (InputError if n_sources else MissingInputError)(
            "pass exactly one of `confidence` (or predictions), `logits` and `probabilities`; "
            f"got {n_sources} of them"
        )
    if confidence is not None:
        return confidence
    return Predictions(logits=logits, probabilities=probabilities, unlabeled=True)


def compute_confidence(
    predictions: Predictions, score_name: str, state: ScoreState | None
) -> ConfidenceScore:
    """Compute the confidence score by which a rule accepts samples."""
    if not score_name and state is None:
        raise MissingInputError(
            "the rule names no score. Pass confidences, or set the score: rule.for_score('msr')"
        )
    return score(score_name if state is None else state, predictions)


def values_on_scale(
    confidence: ConfidenceScore, rule_scale: str, scale: str | None
) -> tuple[AnyArray, str | None]:
    """Return the values to compare with a threshold on `rule_scale`, and the scale of the values.

    `scale` is the scale that the caller specifies for a score that is a column of the data.
    """
    check_scale(confidence, scale)
    if confidence.is_user_column:
        return confidence.values, scale
    if confidence.scale == rule_scale:
        return confidence.values, "score"
    if rule_scale == "probability" and confidence.probability is not None:
        return confidence.probability, "score"
    return confidence.values, confidence.scale


def comparable_values(
    source: Any, score_name: str, rule_scale: str, state: ScoreState | None, scale: str | None
) -> tuple[AnyArray, str | None]:
    """Return the confidences to compare with a threshold on `rule_scale`, and their scale."""
    if isinstance(source, Predictions):
        source = compute_confidence(source, score_name, state)
    elif state is not None:
        raise InputError(
            "`score` requires predictions, from which it computes confidences; got confidences"
        )
    if not isinstance(source, ConfidenceScore):
        return source, scale
    check_score_name(score_name, source.name)
    return values_on_scale(source, rule_scale, scale)


def check_score_name(rule_score: str, name: str) -> None:
    """Raise InputError if two score names differ and neither is empty."""
    if rule_score and name and name != rule_score:
        raise InputError(
            f"the rule is for the score {rule_score!r}; got {name!r}. A threshold of one score "
            "has no meaning for another score"
        )


def check_scale(confidence: ConfidenceScore, scale: str | None) -> None:
    """Raise InputError if `scale` contradicts the scale of a computed score."""
    if scale is not None and not confidence.is_user_column and scale != confidence.scale:
        raise InputError(
            f"the score {confidence.name!r} is computed, and its scale is {confidence.scale!r}; "
            f"got {scale!r}. Drop `scale` (--scale)"
        )


def convert_threshold(threshold: float, scale: str) -> float | None:
    """Convert a threshold between log-odds and probability, or return None if impossible."""
    if scale == "log-odds":
        return float(special.expit(threshold))
    if scale == "probability" and 0 < threshold < 1:
        return float(special.logit(threshold))
    return None


def lowest_accepted_probability(log_odds: float) -> float:
    """Return the lowest probability that reaches a threshold in log-odds.

    The result is 4 units in the last place below the exact probability, which allows for rounding
    errors.
    """
    tolerance = _MAX_ULP_DIFFERENCE * float(np.finfo(np.float64).eps)
    return float(special.expit(log_odds)) * (1 - tolerance)


def reaches_threshold(
    values: Array, threshold: float | FloatArray, rule_scale: str, value_scale: str | None
) -> BoolArray:
    """Return a mask of the values that reach the threshold; each value may have its own threshold.

    Values of the scale "score" are on the scale of the threshold. A value on another scale may be
    up to 4 units in the last place below the threshold.
    """
    if value_scale is None:
        _check_plausible_scale(values, float(np.min(threshold)), rule_scale)
        return _at_least(values, threshold)
    if value_scale not in SCALES:
        names = ", ".join(map(repr, SCALES))
        raise InputError(f"`scale` must be one of {names}; got {value_scale!r}")
    if value_scale == "score":
        return _at_least(values, threshold)
    if value_scale == "probability":
        _check_probabilities(values)
    if value_scale == rule_scale:
        return _at_least(values, threshold)
    if rule_scale in {"score", UNKNOWN}:
        raise InputError(_no_counterpart_message(rule_scale, value_scale))
    if value_scale == "probability":
        return _probability_reaches_log_odds(values, threshold)
    probability = special.expit(values.astype(np.float64))
    tolerance = _MAX_ULP_DIFFERENCE * np.finfo(np.float64).eps
    return np.asarray(probability >= threshold * (1 - tolerance), dtype=np.bool_)


def _check_probabilities(values: Array) -> None:
    """Raise DomainError if a value lies outside [0, 1] by more than a rounding error."""
    is_outside = _is_no_probability(values)
    if is_outside.any():
        index = int(np.argmax(is_outside))
        raise DomainError(
            "`confidence` must lie in [0, 1] with scale='probability'; got "
            f"{values[index]!r} at index {index}"
        )


def _at_least(values: Array, threshold: float | FloatArray) -> BoolArray:
    """Compare values with a threshold in the precision of the values."""
    with np.errstate(over="ignore"):
        out: BoolArray = values >= np.asarray(threshold).astype(values.dtype)
    return out


def _probability_reaches_log_odds(values: Array, threshold: float | FloatArray) -> BoolArray:
    """Compare probabilities with a threshold in log-odds."""
    eps = float(np.finfo(values.dtype).eps)
    probability_threshold = special.expit(threshold)
    highest = float(np.max(threshold))
    distance_to_one = float(special.expit(-highest))
    if distance_to_one < _MIN_ULPS_TO_ONE * eps:
        raise DomainError(
            f"the threshold of this rule, log-odds of {highest:.6g}, is so close to a probability "
            f"of 1 that {values.dtype} probabilities cannot be compared with it. Pass `logits`, "
            "predictions, or confidences in log-odds"
        )
    lowest_accepted = np.asarray(probability_threshold * (1 - _MAX_ULP_DIFFERENCE * eps))
    out: BoolArray = values >= lowest_accepted.astype(values.dtype)
    return out


def _is_no_probability(values: Array) -> BoolArray:
    out: BoolArray = (values < -_PROBABILITY_TOLERANCE) | (values > 1 + _PROBABILITY_TOLERANCE)
    return out


def _check_plausible_scale(values: Array, threshold: float, rule_scale: str) -> None:
    """Raise InputError if the values may be on another scale than the threshold."""
    if rule_scale not in {"log-odds", "probability"}:
        return
    has_other_values = bool(_is_no_probability(values).any())
    if has_other_values == (rule_scale == "log-odds"):
        return
    low, high = float(values.min()), float(values.max())
    span = "all lie" if rule_scale == "log-odds" else "do not all lie"
    raise InputError(
        f"`confidence` may be on another scale than the rule: the values {span} in [0, 1] (they "
        f"range from {low:.6g} to {high:.6g}), and the threshold is {threshold:.6g} "
        f"({describe_scale(threshold, rule_scale)}). "
        "Pass the predictions, `logits` or `probabilities`, or set `scale` (--scale) to "
        "'log-odds', 'probability', or to 'score' to compare without conversion"
    )


def _no_counterpart_message(rule_scale: str, value_scale: str) -> str:
    """Return the error message for a threshold that cannot be converted to another scale."""
    if rule_scale == UNKNOWN:
        return (
            "the rule does not record the scale of its threshold, so it cannot be compared with "
            f"confidences on the scale {value_scale!r}. Set it, as in rule.for_score('msr', "
            "scale='log-odds'), or omit `scale` to compare without conversion"
        )
    return (
        "the threshold of this rule is in the unit of its score, which has no exact counterpart "
        f"on the scale {value_scale!r}; pass confidences of that score"
    )


def describe_scale(threshold: float, scale: str) -> str:
    """Return a text with the scale of a threshold and its value on the other scale.

    Examples
    --------
    >>> describe_scale(2.0, "log-odds"), describe_scale(0.75, "probability")
    ('log-odds; a probability of 0.880798', 'a probability; log-odds of 1.09861')
    >>> describe_scale(3.0, "score"), describe_scale(3.0, "unknown")
    ('', 'on a scale that is not recorded')
    """
    if scale == UNKNOWN:
        return "on a scale that is not recorded"
    if scale == "score":
        return ""
    name, other_name = "log-odds", "a probability"
    if scale == "probability":
        name, other_name = other_name, name
    counterpart = convert_threshold(threshold, scale)
    if counterpart is None:
        return name
    # Rounded up, so that the displayed probability accepts no other samples.
    text = f"{counterpart:.6g}" if scale == "probability" else round_probability_up(counterpart, 6)
    return f"{name}; {other_name} of {text}"
