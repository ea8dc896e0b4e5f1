"""Prepare the confidences, losses, groups and names of the data sets of a decision rule."""

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
from abstain.evaluation.inputs import read_source
from abstain.evaluation.rules.subsets import GROUP, limit_masks
from abstain.predictions import CostMatrix, Predictions, per_sample_loss
from abstain.thresholds import DecisionRule
from abstain.thresholds.rule import PREDICTION
from abstain.thresholds.scales import SCALES, check_scale
from abstain.typing import AnyArray, Array, BoolArray, FloatArray, Scale, Split

#: Log-odds whose probability is 0 or 1 in double precision.
MAX_LOG_ODDS: Final = 745.0


@dataclass(frozen=True, eq=False)
class RuleData:
    """One data set on which a decision rule is selected or checked."""

    #: The split, or an empty tuple if the data set is not defined by split columns.
    split: Split
    #: Name of the data set in tables and notes.
    name: str
    #: Confidences, shape (n,).
    values: Array
    #: Losses, shape (n,), or None if the data set has no labels.
    loss: Array | None
    #: Frequency weights, shape (n,).
    weight: FloatArray | None
    #: The confidence score before any conversion, or None for an array of confidences.
    score: ConfidenceScore | None = None
    #: Group of each sample in the checks by group, shape (n,).
    group: Array | None = None
    #: Group whose threshold applies to each sample, shape (n,), if the rule has several thresholds.
    threshold_group: Array | None = None
    #: For each limit of the rule, a mask of the samples to which the limit applies.
    limit_masks: Mapping[str, BoolArray] | None = None
    #: Masks of the samples whose true class is the positive class, and of the samples whose true
    #: class is another known class, shape (n,).
    is_positive: BoolArray | None = None
    is_negative: BoolArray | None = None
    #: Mask of the samples whose predicted class is the positive class, shape (n,).
    is_predicted_positive: BoolArray | None = None

    @property
    def is_column(self) -> bool | None:
        """Whether the confidences are a column of the data, or None if they are an array."""
        return None if self.score is None else self.score.is_user_column

    @property
    def is_in_log_odds(self) -> bool:
        """Whether the confidences are log-odds that were computed from the predictions."""
        return self.score is not None and not self.is_column and self.score.scale == "log-odds"

    @cached_property
    def s(self) -> Scored | None:
        """The samples as input of metrics and curves, or None if there are no losses."""
        return None if self.loss is None else Scored(self.values, self.loss, self.weight)


def score_data(
    source: object,
    score: "str | ScoreState | None",
    loss: "str | CostMatrix | AnyArray | None",
    *,
    name: str = "",
    split: Split = (),
) -> RuleData:
    """Return the confidences and losses of a data set, or only confidences for an array."""
    if not isinstance(source, Predictions):
        values = checks.confidence(source, f"predictions[{name!r}]" if name else "predictions")
        return RuleData(split, name, values, None, None)
    scored = compute_confidence(source, score, where=name)
    return RuleData(
        split=split,
        name=name,
        values=scored.values,
        loss=per_sample_loss(source, loss) if source.has_truth else None,
        weight=source.weight,
        score=scored,
        group=source.group,
    )


def add_rule_groups(rule: DecisionRule, data: RuleData, source: object) -> RuleData:
    """Add the group of each sample that selects its threshold, or the masks of the limits."""
    if not rule.parts:
        return data
    if not isinstance(source, Predictions):
        if not rule.per:
            return data
        raise MissingInputError(
            f"{data.name}: a rule with a threshold for each {rule.per!r} is checked on "
            "predictions, and these are confidences without labels. Use "
            "rule.apply(confidence, group=...) to apply it without labels"
        )
    if not rule.per:
        return replace(data, limit_masks=limit_masks(rule.names, source))
    try:
        threshold_group = rule.groups_of(source)
    except MissingInputError as error:
        raise MissingInputError(f"{data.name}: {error}") from error
    limit_names = [part.name for part in rule.limits]
    # A rule with one threshold per predicted class can still be checked by group, unless its limits
    # refer to the groups.
    has_other_groups = rule.per == PREDICTION and data.group is not None
    has_group_limits = any(name.startswith(f"{GROUP}:") for name in limit_names)
    group = data.group if has_other_groups and not has_group_limits else threshold_group
    limits = limit_masks(limit_names, source)
    return replace(data, threshold_group=threshold_group, group=group, limit_masks=limits or None)


def convert_to_rule_scale(rule: DecisionRule, data: RuleData, scale: Scale | None) -> RuleData:
    """Convert log-odds or probabilities to the scale of the rule.

    `scale` is the scale of confidence columns and arrays. For a score that is computed from
    predictions, `scale` need not be passed.
    """
    data_scale: str | None = scale
    if data.score is not None and not data.score.is_user_column:
        data_scale = data.score.scale
    if {data_scale, rule.scale} != {"log-odds", "probability"}:
        return data
    with np.errstate(divide="ignore"):
        if data_scale == "log-odds":
            converted = special.expit(data.values)
        else:
            converted = special.logit(np.clip(data.values, 0, 1))
    return replace(data, values=np.clip(converted, -MAX_LOG_ODDS, MAX_LOG_ODDS))


def set_scale(score: ConfidenceScore, scale: Scale | None) -> ConfidenceScore:
    """Return a confidence column and its scale; raise InputError for values outside the scale."""
    if scale is None:
        return score
    checks.one_of(scale, "scale", SCALES)
    check_scale(score, scale)
    if score.scale == scale:
        return score
    if scale == "probability":
        checks.unit_interval(score.values, f"confidence[{score.name!r}] with scale='probability'")
    probability = np.asarray(special.expit(score.values)) if scale == "log-odds" else None
    return replace(score, probability=probability)


def compute_confidence(
    predictions: Predictions, score: "str | ScoreState | None", *, where: str = ""
) -> ConfidenceScore:
    """Compute the requested confidence score, or the default score."""
    if score is None:
        score = _only_score(predictions)
    if not isinstance(score, str):
        return _apply_fitted_score(predictions, score)
    try:
        return named_score(score, predictions)
    except (UnknownNameError, MissingInputError) as error:
        subject = f"{where!r} has" if where else "these predictions have"
        possible = ", ".join(map(repr, applicable(predictions))) or "none"
        raise type(error)(f"{subject} no score {score!r}; possible scores: {possible}") from error


def _only_score(predictions: Predictions) -> str:
    """Return the name of the default score, or raise InputError if there is no unique default."""
    columns: tuple[str, ...] = tuple(predictions.confidence or {})
    if len(columns) == 1:
        return columns[0]
    names = applicable(predictions)
    if not columns and BASELINE in names:
        return BASELINE
    if not names:
        raise MissingInputError(
            "these predictions allow no confidence score; pass `confidence`, `logits` or "
            "`probabilities`"
        )
    listed = ", ".join(map(repr, names))
    raise InputError(
        f"a rule uses one score: name it (`score`, --score). These predictions allow {listed}"
    )


def _apply_fitted_score(predictions: Predictions, state: Any) -> ConfidenceScore:
    """Compute the confidences of a fitted score; raise InputError for an object of another type."""
    scored = state.score(predictions) if callable(getattr(state, "score", None)) else None
    if not isinstance(scored, ConfidenceScore):
        raise InputError(f"`score` must be a name or a fitted score; got {type(state).__name__}")
    return scored


def name_data_sets(source: object) -> list[tuple[Split, str, object]]:
    """Return the split, the name and the data of each data set.

    A data set that is not in a mapping has the name "data". The name of a split consists of its
    values. If several splits have the same values, the names also contain the columns.
    """
    if not isinstance(source, Mapping):
        return [((), "data", source)]
    keys = [_check_key(key) for key in source]
    names = [_data_set_name(key, with_columns=False) for key in keys]
    if len(set(names)) < len(names):
        names = [_data_set_name(key, with_columns=True) for key in keys]
    splits: list[Split] = [() if isinstance(key, str) else key for key in keys]
    return list(zip(splits, names, source.values(), strict=True))


def read_data_sets(source: object) -> list[tuple[Split, str, object]]:
    """Read files and return the split, the name and the data of each data set."""
    if not isinstance(source, Mapping):
        return name_data_sets(read_source(source)[0])
    return name_data_sets(
        {key: _single_data_set(key, read_source(value)[0]) for key, value in source.items()}
    )


def read_calibration_set(source: object) -> object:
    """Return the calibration predictions; raise InputError if there are several data sets."""
    predictions = read_source(source)[0]
    if not isinstance(predictions, Mapping):
        return predictions
    if len(predictions) != 1:
        names = [name for _, name, _ in name_data_sets(predictions)[:8]]
        raise InputError(
            "a threshold is chosen on one set of predictions; got "
            f"{len(predictions)} ({', '.join(names) or 'none'}). Pass only the calibration set, "
            "and the others to `check_rule`"
        )
    return next(iter(predictions.values()))


def _single_data_set(key: object, data: object) -> object:
    """Convert an entry to one data set; raise InputError if it contains several data sets."""
    if not isinstance(data, Mapping):
        return data
    if len(data) != 1:
        raise InputError(
            f"`predictions[{key!r}]` contains {len(data)} data sets; pass the mapping itself, or "
            "one data set per name"
        )
    return next(iter(data.values()))


def _check_key(key: object) -> str | Split:
    """Return a key that is a name or a split; raise InputError for other keys."""
    if isinstance(key, str):
        return key
    if isinstance(key, tuple) and all(isinstance(p, tuple) and len(p) == 2 for p in key):
        return key
    raise InputError(
        "the keys of `predictions` must be names or tuples of (column, value) pairs, such as "
        f"(('study', 'iid'),); got {key!r}"
    )


def _data_set_name(key: str | Split, *, with_columns: bool) -> str:
    """Return the name of a data set from its name or split, with or without split columns."""
    if isinstance(key, str):
        return key
    if not key:
        return "data"
    if with_columns:
        return split_name(key)
    return ", ".join(value for _, value in key) or "data"
