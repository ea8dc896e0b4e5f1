"""Count the errors of a decision rule as shares of answers and of all samples."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from abstain._foundation.names import sort_names
from abstain.errors import UnknownNameError, suggest
from abstain.evaluation.rules.data import RuleData
from abstain.inference.intervals import Interval, no_interval
from abstain.predictions import Predictions
from abstain.predictions.classes import UNKNOWN
from abstain.thresholds import DecisionRule, RuleCheck
from abstain.thresholds.group_names import class_name_texts, group_texts
from abstain.thresholds.rule_check import (
    AcceptedLosses,
    apply_rule,
    check_losses,
    share_with_interval,
)
from abstain.typing import Array, BoolArray


@dataclass(frozen=True)
class Share:
    """A share of samples with an exact interval."""

    #: Numerator and denominator of the share.
    count: int
    total: int
    #: The share, which is weighted if samples have weights. It is NaN if the denominator is 0.
    value: float
    interval: Interval


@dataclass(frozen=True)
class ClassOutcomes:
    """Errors of a rule with respect to a positive class.

    Attributes
    ----------
    sensitivity : Share
        Number of positive samples that are answered as positive, divided by the number of answered
        positive samples.
    specificity : Share
        Share of the answered samples of other classes that are answered as another class.
    false_negatives : Share
        Share of all samples of the positive class that are answered as another class.
    false_positives : Share
        Share of all samples of other classes that are answered as the positive class.
    """

    sensitivity: Share
    specificity: Share
    false_negatives: Share
    false_positives: Share


@dataclass(frozen=True)
class AnswerOutcomes:
    """Errors of a rule on one data set or group with 0/1 losses.

    The intervals are exact. The level refers to each interval separately, whereas the intervals of
    `RuleCheck` hold jointly.

    Attributes
    ----------
    answered : Share
        Share of all samples that the rule answers.
    wrong : Share
        Share of the answers that are wrong.
    wrong_of_all : Share
        Share of all samples that the rule answers wrongly. An abstention is not an error.
    wrong_without_abstention : Share
        Share of all samples that would be wrong if the rule answered all samples.
    classes : ClassOutcomes or None
        Errors for the positive class. The attribute is None if no positive class is defined, or if
        labels or predicted classes are missing.
    """

    answered: Share
    wrong: Share
    wrong_of_all: Share
    wrong_without_abstention: Share
    classes: ClassOutcomes | None = None


def resolve_positive_class(predictions: Sequence[Predictions], positive: object) -> str:
    """Return the name of the positive class, or "" if none is defined.

    The default is the second of two classes.
    """
    labeled = [p for p in predictions if _has_classes(p)]
    if positive is None:
        all_classes: set[Any] = set()
        for p in labeled:
            all_classes.update(p.class_names)
        classes = sort_names(all_classes)
        return _as_class_name(classes[1]) if len(classes) == 2 else ""
    name = _as_class_name(positive)
    texts = itertools.chain.from_iterable(class_name_texts(p).tolist() for p in labeled)
    class_names = list(dict.fromkeys(texts))
    if name not in class_names:
        listed = ", ".join(map(repr, class_names[:8])) or "none, because there are no labels"
        raise UnknownNameError(
            f"`positive` (--positive) must be a class; got {name!r}. Classes: {listed}."
            f"{suggest(name, class_names)}"
        )
    return name


def _as_class_name(value: object) -> str:
    """Convert a class to text in the same way as `class_name_texts`."""
    return str(group_texts(np.array([value], dtype=object), "positive")[0])


def _has_classes(predictions: Predictions) -> bool:
    return predictions.has_labels and predictions.has_prediction


def add_positive_class(data: RuleData, source: object, positive: str) -> RuleData:
    """Add masks of the true and the predicted positive class to a data set."""
    if not (positive and isinstance(source, Predictions) and _has_classes(source)):
        return data
    names = class_name_texts(source)
    is_known = source.label_codes != UNKNOWN
    is_positive = names[source.label_codes] == positive
    return replace(
        data,
        is_positive=is_known & is_positive,
        is_negative=is_known & ~is_positive,
        is_predicted_positive=names[source.prediction_codes] == positive,
    )


def answer_outcomes(
    rule: DecisionRule, data: RuleData, checks: Sequence[RuleCheck], level: float
) -> tuple[AnswerOutcomes | None, ...]:
    """Return the outcomes on a data set and then on its groups, in the order of the checks.

    An outcome is None if the data have no labels, or if a loss is neither 0 nor 1.
    """
    if data.loss is None or data.s is None or not data.s.is_binary:
        return (None,) * len(checks)
    accepted = apply_rule(rule, data.values, "score", data.threshold_group)
    losses = check_losses(accepted, data.loss, data.weight, level=level)
    is_wrong = data.loss > 0
    return tuple(_outcomes(data, losses, is_wrong, _rows_of(rule, data, c)) for c in checks)


def _rows_of(rule: DecisionRule, data: RuleData, check: RuleCheck) -> BoolArray:
    """Return a mask of the samples of a group or a limit, or of all samples for the total."""
    if not check.group:
        return np.ones(data.values.size, dtype=np.bool_)
    masks = data.limit_masks or {}
    if masks and not rule.per:
        return masks[check.group]
    is_in_group: BoolArray = group_texts(data.group) == check.group
    return is_in_group & masks[check.limit] if check.limit else is_in_group


def _outcomes(
    data: RuleData, losses: AcceptedLosses, is_wrong: Array, rows: BoolArray
) -> AnswerOutcomes:
    """Return the errors of a rule on the samples of a data set or a group."""
    answered = rows & losses.accepted
    is_answered_wrong = losses.accepted & is_wrong
    return AnswerOutcomes(
        answered=_share(losses, rows, losses.accepted),
        wrong=_share(losses, answered, is_wrong),
        wrong_of_all=_share(losses, rows, is_answered_wrong),
        wrong_without_abstention=_share(losses, rows, is_wrong),
        classes=_class_outcomes(data, losses, rows),
    )


def _class_outcomes(
    data: RuleData, losses: AcceptedLosses, rows: BoolArray
) -> ClassOutcomes | None:
    """Return the errors with respect to the positive class, or None if none is defined."""
    is_predicted_positive = data.is_predicted_positive
    if data.is_positive is None or data.is_negative is None or is_predicted_positive is None:
        return None
    positive, negative = rows & data.is_positive, rows & data.is_negative
    is_predicted_negative = ~is_predicted_positive
    is_answered = losses.accepted
    return ClassOutcomes(
        sensitivity=_share(losses, positive & is_answered, is_predicted_positive),
        specificity=_share(losses, negative & is_answered, is_predicted_negative),
        false_negatives=_share(losses, positive, is_answered & is_predicted_negative),
        false_positives=_share(losses, negative, is_answered & is_predicted_positive),
    )


def _share(losses: AcceptedLosses, subset: BoolArray, mask: Array) -> Share:
    """Return the share of a subset of the samples for which a mask is True."""
    total = int(np.count_nonzero(subset))
    if total == 0:
        return Share(0, 0, float("nan"), no_interval(losses.level, "there are no such samples"))
    is_in_mask = mask[subset]
    value, interval = share_with_interval(losses.subset(subset), is_in_mask)
    return Share(int(np.count_nonzero(is_in_mask)), total, value, interval)
