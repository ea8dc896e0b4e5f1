"""What a decision rule is chosen and checked on: confidences, losses and names by data set."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from abstain._foundation import checks
from abstain._foundation.lazy_imports import special
from abstain._foundation.names import split_name
from abstain._foundation.scored import Scored
from abstain.confidence import ConfidenceScore, ScoreState, applicable
from abstain.confidence import score as named_score
from abstain.confidence.registry import BASELINE
from abstain.errors import InputError, MissingInputError, UnknownNameError
from abstain.evaluation.inputs import as_predictions
from abstain.evaluation.rules.subsets import limit_masks
from abstain.predictions import CostMatrix, Predictions, per_sample_loss
from abstain.thresholds import DecisionRule
from abstain.thresholds.rule import PREDICTION
from abstain.thresholds.scales import SCALES, refuse_said
from abstain.typing import AnyArray, Array, BoolArray, FloatArray, Scale, Split

#: Log-odds whose probability is 0 or 1 in double precision.
MAX_LOG_ODDS: Final = 745.0


@dataclass(frozen=True, eq=False)
class RuleData:
    """One data set."""

    #: What sets it apart, where columns do.
    split: Split
    #: How people name it.
    name: str
    #: Shape (n,). The confidences.
    values: Array
    #: Shape (n,). None where nothing says what is right.
    loss: Array | None
    #: Shape (n,). Frequency weights.
    weight: FloatArray | None
    #: The confidences as they were had; None for those of a bare array.
    score: ConfidenceScore | None = None
    #: Shape (n,). Subgroups.
    group: Array | None = None
    #: Shape (n,). What says which threshold of a rule a sample is held to, where it has several.
    threshold_group: Array | None = None
    #: By the name of a limit of the rule, the samples that it is about.
    limit_masks: Mapping[str, BoolArray] | None = None

    @property
    def is_column(self) -> bool | None:
        """Whether the confidences are a column of the data; None where that is not known."""
        return None if self.score is None else self.score.own

    @property
    def is_in_log_odds(self) -> bool:
        """Whether the confidences are computed, as log-odds."""
        return self.score is not None and not self.is_column and self.score.scale == "log-odds"

    @cached_property
    def s(self) -> Scored | None:
        """What metrics and curves take; None where nothing says what is right."""
        return None if self.loss is None else Scored(self.values, self.loss, self.weight)


def score_data(
    data: object,
    score: "str | ScoreState | None",
    loss: "str | CostMatrix | AnyArray | None",
    *,
    name: str = "",
    split: Split = (),
) -> RuleData:
    """Score one data set; a bare array holds confidences of samples without labels."""
    if not isinstance(data, Predictions):
        values = checks.confidence(data, f"predictions[{name!r}]" if name else "predictions")
        return RuleData(split, name, values, None, None)
    own = compute_confidence(data, score, where=name)
    losses = per_sample_loss(data, loss) if data.has_truth else None
    return RuleData(split, name, own.values, losses, data.weight, own, data.group)


def add_rule_groups(rule: DecisionRule, part: RuleData, data: object) -> RuleData:
    """Return the data set with what several thresholds, or several limits, are about."""
    if not rule.parts:
        return part
    if not isinstance(data, Predictions):
        if not rule.per:
            return part
        raise MissingInputError(
            f"{part.name}: these are confidences without labels, and a rule with a threshold for "
            f"each {rule.per!r} is checked on predictions. Without labels, ask what it answers: "
            "rule.apply(confidence, group=...)"
        )
    if not rule.per:
        return replace(part, limit_masks=limit_masks(rule.names, data))
    try:
        by = rule.groups_of(data)
    except MissingInputError as error:
        raise MissingInputError(f"{part.name}: {error}") from error
    # By the predicted class, other groups may be looked at.
    looked_at = part.group if rule.per == PREDICTION and part.group is not None else by
    return replace(part, threshold_group=by, group=looked_at)


def convert_to_rule_scale(rule: DecisionRule, part: RuleData, scale: Scale | None) -> RuleData:
    """Return the data set with its confidences on the scale of a threshold, to draw and compare."""
    own, known = part.score, scale
    if own is not None and not own.own:
        known = own.scale
    if {known, rule.scale} != {"log-odds", "probability"}:
        return part
    with np.errstate(divide="ignore"):
        turned = (
            special.expit(part.values)
            if known == "log-odds"
            else special.logit(np.clip(part.values, 0, 1))
        )
    return replace(part, values=np.clip(turned, -MAX_LOG_ODDS, MAX_LOG_ODDS))


def set_scale(own: ConfidenceScore, scale: Scale | None) -> ConfidenceScore:
    """Return the confidences of a column, measured in what was said; refuse what cannot be."""
    if scale is None:
        return own
    checks.one_of(scale, "scale", SCALES)
    refuse_said(own, scale)
    if own.scale == scale:
        return own
    if scale == "probability":
        checks.unit_interval(own.values, f"confidence[{own.name!r}] with scale='probability'")
    p = np.asarray(special.expit(own.values)) if scale == "log-odds" else None
    return replace(own, probability=p)


def compute_confidence(
    predictions: Predictions, score: "str | ScoreState | None", *, where: str = ""
) -> ConfidenceScore:
    """Return the confidences of one score, by default of the one that the data leave no doubt of.

    Refused are data that allow several where none was named, and those that lack what the score
    needs; then the message says which scores they allow.
    """
    if score is None:
        score = _only_score(predictions)
    if not isinstance(score, str):
        return _fitted(predictions, score)
    try:
        return named_score(score, predictions)
    except (UnknownNameError, MissingInputError) as error:
        lacking = f"{where!r} has no score" if where else "these predictions have no score"
        usable = ", ".join(map(repr, applicable(predictions))) or "none"
        raise type(error)(f"{lacking} {score!r}; allowed there: {usable}") from error


def _only_score(predictions: Predictions) -> str:
    own: tuple[str, ...] = tuple(predictions.confidence or {})
    if len(own) == 1:
        return own[0]
    names = applicable(predictions)
    if not own and BASELINE in names:
        return BASELINE
    if not names:
        raise MissingInputError(
            "these predictions allow no confidence score; give `confidence`, `logits` or "
            "`probabilities`"
        )
    listed = ", ".join(map(repr, names))
    raise InputError(
        f"a rule is for one score: name it (`score`, --score). These predictions allow {listed}"
    )


def _fitted(predictions: Predictions, state: Any) -> ConfidenceScore:
    found = state.score(predictions) if callable(getattr(state, "score", None)) else None
    if not isinstance(found, ConfidenceScore):
        raise InputError(f"`score` must be a name or a fitted score; got {type(state).__name__}")
    return found


def name_data_sets(data: object) -> list[tuple[Split, str, object]]:
    """Return (split, name, data set) of each of them; one alone is named "data".

    Names are short where they can be: the values of the columns.
    """
    if not isinstance(data, Mapping):
        return [((), "data", data)]
    keys = [_key(key) for key in data]
    short = [_name(key, full=False) for key in keys]
    clear = len(set(short)) == len(short)
    names = short if clear else [_name(key, full=True) for key in keys]
    splits: list[Split] = [() if isinstance(key, str) else key for key in keys]
    return list(zip(splits, names, data.values(), strict=True))


def read_data_sets(data: object) -> list[tuple[Split, str, object]]:
    """Do the same with what files hold, each of them under a name of its own too."""
    if isinstance(data, Mapping):
        return name_data_sets({key: _alone(key, as_predictions(one)) for key, one in data.items()})
    return name_data_sets(as_predictions(data))


def read_calibration_set(predictions: object) -> object:
    """Return the one set of predictions that a threshold is chosen on."""
    found = as_predictions(predictions)
    if not isinstance(found, Mapping):
        return found
    if len(found) != 1:
        names = ", ".join(name for _, name, _ in name_data_sets(found)[:8]) if found else "none"
        raise InputError(
            f"a threshold is chosen on one set of predictions; got {len(found)} ({names}). "
            "Pass the calibration set alone and the others to `check_rule`"
        )
    return next(iter(found.values()))


def _alone(key: object, data: object) -> object:
    """Return a data set that stands alone in a mapping; refuse several under one name."""
    if not isinstance(data, Mapping):
        return data
    if len(data) != 1:
        raise InputError(
            f"`predictions[{key!r}]` holds {len(data)} data sets; pass what was read as it is, or "
            "one of them under each name"
        )
    return next(iter(data.values()))


def _key(key: object) -> str | Split:
    if isinstance(key, str):
        return key
    if isinstance(key, tuple) and all(isinstance(p, tuple) and len(p) == 2 for p in key):
        return key
    raise InputError(
        "the keys of `predictions` must be names or tuples of (column, value) pairs, such as "
        f"(('study', 'iid'),); got {key!r}"
    )


def _name(key: str | Split, *, full: bool) -> str:
    if isinstance(key, str):
        return key
    return (split_name(key) if full and key else ", ".join(value for _, value in key)) or "data"
