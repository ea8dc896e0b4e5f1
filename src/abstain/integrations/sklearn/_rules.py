"""Choice of the decision rule of a selective classifier on held-out samples."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from abstain import thresholds
from abstain.confidence import ConfidenceScore
from abstain.errors import InputError, UnattainableRuleWarning
from abstain.evaluation.rules.conditions import answer_conditions
from abstain.evaluation.rules.data import RuleData
from abstain.integrations.sklearn._confidence import Grouping
from abstain.integrations.sklearn._held_out import HeldOutSamples
from abstain.thresholds import DecisionRule
from abstain.thresholds.group_names import group_texts
from abstain.typing import Array, BoolArray


@dataclass(frozen=True)
class RequestedRule:
    """The decision rule that the parameters of a selective classifier specify."""

    #: A name, a callable or a `DecisionRule`. None accepts every sample.
    rule: Any
    #: Options of a rule that is a name or a callable.
    params: Any = None
    #: Definition of the groups that have separate thresholds.
    grouping: Grouping = Grouping()  # noqa: RUF009  frozen
    #: Whether the guarantees of all groups hold jointly.
    joint: bool = False

    def __post_init__(self) -> None:
        """Raise an error if the rule is invalid."""
        rule = self.rule
        self._check_groups()
        if isinstance(rule, str):
            entry = thresholds.RULES[rule]  # An unknown name raises an error.
            self._check_params()
            _check_rule_options(entry, dict(self.params or {}))
            return
        if not (rule is None or isinstance(rule, DecisionRule) or callable(rule)):
            raise InputError(
                "`rule` must be None, a name of `abstain.thresholds.RULES`, a DecisionRule or a "
                f"callable (confidence, loss) -> DecisionRule; got {rule!r}"
            )
        self._check_params()

    def _check_groups(self) -> None:
        """Raise an error if the rule does not support the groups."""
        per = self.grouping.per
        rule = self.rule
        if self.joint and per is None:
            raise InputError(
                "`joint` has no effect without `per`; pass the groups as `per`, or drop `joint`"
            )
        if isinstance(rule, DecisionRule) and rule.per and per is None:
            raise InputError(
                f"`rule` has a threshold for each {rule.per!r}; pass its column of X as `per`"
            )
        is_fitted_by_name = isinstance(rule, str) and thresholds.RULES[rule].needs_data
        has_groups = isinstance(rule, DecisionRule) and bool(rule.parts)
        if per is not None and not (is_fitted_by_name or has_groups):
            raise InputError(
                "`per` requires a rule that is chosen on samples, such as rule='coverage', or a "
                f"rule with thresholds for groups; got rule={rule!r}"
            )

    def _check_params(self) -> None:
        """Raise an error if the options of the rule are invalid or have no effect."""
        if self.params is None:
            return
        if not isinstance(self.params, Mapping):
            raise InputError(f"`rule_params` must map options to values; got {self.params!r}")
        if self.params and (self.rule is None or isinstance(self.rule, DecisionRule)):
            description = "None" if self.rule is None else "a DecisionRule"
            raise InputError(
                f"`rule_params` have no effect because `rule` is {description}; pass the name of a "
                "rule, such as rule='sgr', or drop them"
            )

    @property
    def needs_samples(self) -> bool:
        """Whether the rule must be chosen on held-out samples."""
        if isinstance(self.rule, str):
            return thresholds.RULES[self.rule].needs_data
        return not (self.rule is None or isinstance(self.rule, DecisionRule))

    def resolve(self, held_out: HeldOutSamples | None, score: str) -> DecisionRule | None:
        """Return the rule for confidences of this score, or None if all samples are accepted."""
        if self.rule is None:
            return None
        rule = self._rule_without_samples(score) if held_out is None else self._fit(held_out)
        if rule.reason:
            _warn_unattainable(rule)
        scale = None
        if held_out is not None and rule.scale == "unknown":
            scale = held_out.confidence.scale
        return rule.for_score(rule.score or score, scale=scale)

    def _rule_without_samples(self, score: str) -> DecisionRule:
        """Return a rule that can be chosen without held-out samples."""
        if isinstance(self.rule, str):
            return thresholds.fit(self.rule, **dict(self.params or {}))
        rule: DecisionRule = self.rule
        if rule.score and score and rule.score != score:
            raise InputError(
                f"`rule` is a threshold for the score {rule.score!r}, but `score` is {score!r}; "
                "the two have no common scale"
            )
        return rule

    def _fit(self, held_out: HeldOutSamples) -> DecisionRule:
        """Choose the rule on held-out samples."""
        options = dict(self.params or {})
        values = held_out.confidence.values
        if isinstance(self.rule, str) and held_out.group is not None:
            options |= {"per": self.grouping.name, "joint": self.joint}
            return thresholds.fit_groups(
                self.rule, values, held_out.loss, held_out.group, **options
            )
        if isinstance(self.rule, str):
            return thresholds.fit(self.rule, values, held_out.loss, **options)
        rule = self.rule(values, held_out.loss, **options)
        if not isinstance(rule, DecisionRule):
            raise InputError(f"`rule` must return a DecisionRule; got {type(rule).__name__}")
        if rule.per:
            raise InputError("`rule` must return one threshold; name groups with `per` instead")
        return rule


def _check_rule_options(rule: thresholds.Rule, params: dict[str, Any]) -> None:
    """Raise an error if an option of the rule is missing or unknown."""
    missing = [name for name in rule.required if name not in params]
    unknown = [name for name in params if name not in rule.options]
    if not (missing or unknown):
        return
    required = ", ".join(f"'{name}': ..." for name in rule.required)
    problem = f"got the unknown option {unknown[0]!r}" if unknown else f"{missing[0]!r} is missing"
    raise InputError(f"the rule {rule.name!r} takes rule_params={{{required}}}; {problem}")


def _warn_unattainable(rule: DecisionRule) -> None:
    samples = "every sample is" if not rule.attainable else "the samples of these groups are"
    msg = f"No threshold attains the target of the rule, so {samples} rejected: {rule.reason}"
    warnings.warn(msg, UnattainableRuleWarning, stacklevel=4)


def confidence_on_rule_scale(confidence: ConfidenceScore, rule: DecisionRule | None) -> Array:
    """Return confidences on the same scale as the threshold of a rule.

    Some rules, and all rules with the scale "probability", require probabilities of a correct
    prediction. For all other rules, the values of the score are returned.
    """
    if rule is None or rule.scale in {"log-odds", "score"}:
        return confidence.values
    if not rule.uses_probability and (confidence.is_user_column or rule.scale != "probability"):
        return confidence.values
    if confidence.probability is None:
        rule_title = thresholds.RULES[rule.method].title if rule.uses_probability else ""
        raise InputError(
            f"{rule_title or 'a threshold that is a probability'} requires probabilities of a "
            f"correct prediction; the score {confidence.name!r} has none. Use score='msr', or "
            "rule='cost', which chooses a threshold on any score."
        )
    return confidence.probability


def conditions_by_group(
    rule: DecisionRule | None, held_out: HeldOutSamples | None, *, n_classes: int
) -> dict[str, str]:
    """Return, for each group, a text with the condition under which a rule accepts a sample."""
    if rule is None:
        return {}
    data_sets = []
    if held_out is not None:
        values = confidence_on_rule_scale(held_out.confidence, rule)
        group = None if held_out.group is None else group_texts(held_out.group)
        data_sets.append(RuleData((), "", values, held_out.loss, None, threshold_group=group))
    conditions = answer_conditions(rule, data_sets, n_classes=n_classes)
    return {condition.group: condition.text for condition in conditions}


def accept(
    rule: DecisionRule, confidence: ConfidenceScore, group: Array | None = None
) -> BoolArray:
    """Return a mask of the samples that a rule accepts."""
    # This call raises an error if the rule requires probabilities and the score has none.
    values = confidence_on_rule_scale(confidence, rule)
    rule_input: Any = values if rule.scale == "unknown" else confidence
    return np.asarray(rule.apply(rule_input, group=group), dtype=np.bool_)
