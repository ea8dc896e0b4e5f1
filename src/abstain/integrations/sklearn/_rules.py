"""From the `rule` that a user asked for to the `DecisionRule` it gives on held-out samples."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from abstain import thresholds
from abstain.confidence import ConfidenceScore
from abstain.errors import InputError, UnattainableRuleWarning
from abstain.integrations.sklearn._groups import Grouping
from abstain.integrations.sklearn._held_out import HeldOut
from abstain.thresholds import DecisionRule
from abstain.typing import Array, BoolArray


@dataclass(frozen=True)
class WantedRule:
    """A rule as it was asked for."""

    #: A name, a callable or a finished rule; None answers everything.
    rule: Any
    #: Options of a named or callable rule.
    params: Any = None
    #: What the groups are that have a threshold each.
    grouping: Grouping = Grouping()  # noqa: RUF009  frozen
    #: Whether their promises hold together.
    joint: bool = False

    def __post_init__(self) -> None:
        """Refuse what is no rule before anything is fitted."""
        rule = self.rule
        self._refuse_groups()
        if isinstance(rule, str):
            known = thresholds.RULES[rule]  # refuses an unknown name
            self._refuse_params()
            _refuse_options(known, dict(self.params or {}))
            return
        if not (rule is None or isinstance(rule, DecisionRule) or callable(rule)):
            raise InputError(
                "`rule` must be None, a name of `abstain.thresholds.RULES`, a DecisionRule or a "
                f"callable (confidence, loss) -> DecisionRule; got {rule!r}"
            )
        self._refuse_params()

    def _refuse_groups(self) -> None:
        """Refuse groups where no threshold is chosen for each."""
        per, rule = self.grouping.per, self.rule
        if self.joint and per is None:
            raise InputError(
                "`joint` is about the groups of `per`, which is None; name them or drop it"
            )
        if isinstance(rule, DecisionRule) and rule.per and per is None:
            raise InputError(
                f"`rule` has a threshold for each {rule.per!r}: say with `per` where that is in X"
            )
        named = isinstance(rule, str) and thresholds.RULES[rule].needs_data
        finished = isinstance(rule, DecisionRule) and bool(rule.parts)
        if per is not None and not (named or finished):
            raise InputError(
                "`per` needs a rule that is set on samples, such as rule='coverage', or one with "
                f"parts; got rule={rule!r}"
            )

    def _refuse_params(self) -> None:
        if self.params is None:
            return
        if not isinstance(self.params, Mapping):
            raise InputError(f"`rule_params` must map options to values; got {self.params!r}")
        if self.params and (self.rule is None or isinstance(self.rule, DecisionRule)):
            what = "None" if self.rule is None else "a finished rule"
            raise InputError(
                f"`rule_params` are the options of a rule that is to be set, but `rule` is {what}: "
                "name one, such as rule='sgr', or drop them"
            )

    @property
    def open(self) -> bool:
        """Whether the rule is still to be set, on held-out samples."""
        if isinstance(self.rule, str):
            return thresholds.RULES[self.rule].needs_data
        return not (self.rule is None or isinstance(self.rule, DecisionRule))

    def settled(self, held: HeldOut | None, score: str) -> DecisionRule | None:
        """Return the rule for the confidences of this score; None where all is answered."""
        if self.rule is None:
            return None
        rule = self._finished(score) if held is None else self._set_on(held)
        if rule.reason:
            _warn(rule)
        open_scale = held is not None and rule.scale == "unknown"
        scale = held.confidence.scale if held is not None and open_scale else None
        return rule.for_score(rule.score or score, scale=scale)

    def _finished(self, score: str) -> DecisionRule:
        if isinstance(self.rule, str):
            return thresholds.fit(self.rule, **dict(self.params or {}))
        known: DecisionRule = self.rule
        if known.score and score and known.score != score:
            raise InputError(
                f"`rule` is a threshold for the score {known.score!r}, but `score` is {score!r}; "
                "the two have no common scale"
            )
        return known

    def _set_on(self, held: HeldOut) -> DecisionRule:
        options = dict(self.params or {})
        values = held.confidence.values
        if isinstance(self.rule, str) and held.group is not None:
            options |= {"per": self.grouping.name, "joint": self.joint}
            return thresholds.fit_groups(self.rule, values, held.loss, held.group, **options)
        if isinstance(self.rule, str):
            return thresholds.fit(self.rule, values, held.loss, **options)
        rule = self.rule(values, held.loss, **options)
        if not isinstance(rule, DecisionRule):
            raise InputError(f"`rule` must return a DecisionRule; got {type(rule).__name__}")
        if rule.per:
            raise InputError("`rule` must return one threshold; name groups with `per` instead")
        return rule


def _refuse_options(rule: thresholds.Rule, given: dict[str, Any]) -> None:
    """Refuse options that the rule does not have, and miss those that it needs."""
    missing = [name for name in rule.required if name not in given]
    unknown = [name for name in given if name not in rule.options]
    if not (missing or unknown):
        return
    takes = ", ".join(f"'{name}': ..." for name in rule.required)
    what = f"got the unknown option {unknown[0]!r}" if unknown else f"{missing[0]!r} is missing"
    raise InputError(f"the rule {rule.name!r} takes rule_params={{{takes}}}; {what}")


def _warn(rule: DecisionRule) -> None:
    whom = "every sample is" if not rule.attainable else "the samples of these groups are"
    msg = f"No threshold keeps what the rule promises, so {whom} rejected: {rule.reason}"
    warnings.warn(msg, UnattainableRuleWarning, stacklevel=4)


def scale_of(confidence: ConfidenceScore, rule: DecisionRule | None) -> Array:
    """Return the confidences on the scale of a rule's threshold.

    Some rules compare probabilities of being right, as does one whose scale says so; all others
    take the score as it is.
    """
    if rule is None or rule.scale in {"log-odds", "score"}:
        return confidence.values
    if not rule.uses_probability and (confidence.is_user_column or rule.scale != "probability"):
        return confidence.values
    if confidence.probability is None:
        own = thresholds.RULES[rule.method].title if rule.uses_probability else ""
        what = own or "a threshold that is a probability"
        raise InputError(
            f"{what} needs probabilities of being right; the score {confidence.name!r} has "
            "none. Use score='msr', or rule='cost', which sets a threshold on any score."
        )
    return confidence.probability


def accepted_by(
    rule: DecisionRule, confidence: ConfidenceScore, group: Array | None = None
) -> BoolArray:
    """Return which samples a rule accepts, of these groups."""
    # Refuses a score that has no probabilities where the rule compares those.
    values = scale_of(confidence, rule)
    given: Any = values if rule.scale == "unknown" else confidence
    return np.asarray(rule.apply(given, group=group), dtype=np.bool_)
