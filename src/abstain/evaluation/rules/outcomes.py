"""Count the errors of a decision rule among its answers and all samples (`AnswerOutcomes`)."""

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
    """A share of samples as numerator, denominator, and value with an exact interval.

    If the samples have weights, the value is a weighted share. If the denominator is 0, the value
    is NaN.
    """

    count: int
    total: int
    value: float
    interval: Interval


@dataclass(frozen=True)
class ClassOutcomes:
    """Errors of a rule with respect to a positive class.

    Attributes
    ----------
    sensitivity : Share
        Share of the answered samples of the positive class that are answered as positive.
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

    The intervals are exact. Each interval has the level separately, whereas the intervals of
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
        Errors for the positive class. It is None if there is no positive class, or if the data lack
        labels or predicted classes.
    """

    answered: Share
    wrong: Share
    wrong_of_all: Share
    wrong_without_abstention: Share
    classes: ClassOutcomes | None = None


def resolve_positive_class(sources: Sequence[object], positive: object) -> str:
    """Return the name of the positive class, or "" if there is no positive class.

    The default is the second of two classes.
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
    """Return a data set with masks of the true and the predicted positive class."""
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
    """Return the share of the samples in `rows` for which `x` is True."""
    total = int(np.count_nonzero(rows))
    if total == 0:
        return Share(0, 0, float("nan"), no_interval(losses.level, "there are no such samples"))
    is_true = x[rows]
    value, interval = share_with_interval(losses.subset(rows), is_true)
    return Share(int(np.count_nonzero(is_true)), total, value, interval)
