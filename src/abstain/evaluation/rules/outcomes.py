"""Errors of a decision rule among its answers and among all samples (`AnswerOutcomes`)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

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
    """A share of samples: numerator, denominator, and the value with its exact interval.

    With weights, the value is a weighted share. Without samples it is NaN.
    """

    count: int
    total: int
    value: float
    interval: Interval


@dataclass(frozen=True)
class ClassOutcomes:
    """Errors for a positive class; see `AnswerOutcomes`.

    Attributes
    ----------
    sensitivity : Share
        Of the answered samples of the positive class, those with the positive answer.
    specificity : Share
        Of the answered samples of other classes, those with another answer.
    false_negatives : Share
        Of all samples of the positive class, those that are answered as another class.
    false_positives : Share
        Of all samples of other classes, those that are answered as the positive class.
    """

    sensitivity: Share
    specificity: Share
    false_negatives: Share
    false_positives: Share


@dataclass(frozen=True)
class AnswerOutcomes:
    """Errors of a rule on one data set or group with 0/1 losses.

    The intervals are exact and hold separately, in contrast to those of `RuleCheck`.

    Attributes
    ----------
    answered : Share
        Of all samples, those that the rule answers.
    wrong : Share
        Of the answers, the wrong ones.
    wrong_of_all : Share
        Of all samples, those that are answered wrongly; an abstention is not an error.
    wrong_without_abstention : Share
        Of all samples, those that are wrong if all are answered.
    classes : ClassOutcomes or None
        Errors for the positive class; None without one, or without labels and predicted classes.
    """

    answered: Share
    wrong: Share
    wrong_of_all: Share
    wrong_without_abstention: Share
    classes: ClassOutcomes | None = None


def resolve_positive_class(sources: Sequence[object], positive: object) -> str:
    """Return the name of the positive class; "" if there is none.

    By default, it is the second of two classes.
    """
    labeled = [p for p in sources if isinstance(p, Predictions) and _has_classes(p)]
    if positive is None:
        classes = sort_names({name for p in labeled for name in p.class_names})
        return _name_texts(classes)[1] if len(classes) == 2 else ""
    name = _name_texts([positive])[0]
    texts = dict.fromkeys(text for p in labeled for text in class_name_texts(p).tolist())
    if name not in texts:
        listed = ", ".join(map(repr, list(texts)[:8])) or "none, because there are no labels"
        raise UnknownNameError(
            f"`positive` (--positive) must be a class; got {name!r}. Classes: {listed}."
            f"{suggest(name, list(texts))}"
        )
    return name


def _name_texts(names: Sequence[object]) -> list[str]:
    texts: list[str] = group_texts(np.array(names, dtype=object), "positive").tolist()
    return texts


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
    """Return the outcomes on a data set and its groups, in the order of its checks.

    They are None without labels, and for losses other than 0 and 1.
    """
    if data.loss is None or data.s is None or not data.s.is_binary:
        return (None,) * len(checks)
    accepted = apply_rule(rule, data.values, "score", data.threshold_group)
    losses = check_losses(accepted, data.loss, data.weight, level=level)
    is_wrong = data.loss > 0
    return tuple(_outcomes(data, losses, is_wrong, _rows_of(data, c.group)) for c in checks)


def _rows_of(data: RuleData, group: str) -> BoolArray:
    """Return a mask of the samples of a group or a limit; all samples for the total."""
    if not group:
        return np.ones(data.values.size, dtype=np.bool_)
    if data.limit_masks is not None:
        return data.limit_masks[group]
    is_in_group: BoolArray = group_texts(data.group) == group
    return is_in_group


def _outcomes(
    data: RuleData, losses: AcceptedLosses, is_wrong: Array, rows: BoolArray
) -> AnswerOutcomes:
    accepted = losses.accepted

    def share(subset: BoolArray, x: Array) -> Share:
        return _share(losses, rows & subset, x)

    everything: BoolArray = np.ones(rows.size, dtype=np.bool_)
    classes = None
    positive, negative = data.is_positive, data.is_negative
    predicted = data.is_predicted_positive
    if positive is not None and negative is not None and predicted is not None:
        predicted_other: BoolArray = np.logical_not(predicted)
        classes = ClassOutcomes(
            sensitivity=share(accepted & positive, predicted),
            specificity=share(accepted & negative, predicted_other),
            false_negatives=share(positive, accepted & predicted_other),
            false_positives=share(negative, accepted & predicted),
        )
    return AnswerOutcomes(
        answered=share(everything, accepted),
        wrong=share(accepted, is_wrong),
        wrong_of_all=share(everything, accepted & is_wrong),
        wrong_without_abstention=share(everything, is_wrong),
        classes=classes,
    )


def _share(losses: AcceptedLosses, rows: BoolArray, x: Array) -> Share:
    """Return the share of some samples for which `x` is True."""
    total = int(np.count_nonzero(rows))
    if total == 0:
        return Share(0, 0, float("nan"), no_interval(losses.level, "there are no such samples"))
    is_true = x[rows]
    value, interval = share_with_interval(losses.subset(rows), is_true)
    return Share(int(np.count_nonzero(is_true)), total, value, interval)
