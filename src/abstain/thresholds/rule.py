"""Define the decision rule, with its thresholds, guarantees and calibration results."""

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from abstain._foundation import checks, json_records, records
from abstain._foundation.arrays import as_array_like, to_numpy
from abstain._foundation.frames import NotebookDisplay
from abstain._foundation.records import Fraction, NonNegative, NonNegativeInt, Number, OpenFraction
from abstain.confidence import ConfidenceScore, ScoreState
from abstain.errors import InputError, MissingInputError
from abstain.predictions import Predictions
from abstain.thresholds import scales
from abstain.thresholds._consistency import (
    check_consistency,
    check_parts,
    parts_with_target,
    summarize_parts,
)
from abstain.thresholds._description import describe_rule
from abstain.thresholds.catalogue import RULES, Guarantee
from abstain.thresholds.group_names import encode_groups, group_texts, predicted_class_names
from abstain.thresholds.json_format import rule_from_json, rule_to_json
from abstain.thresholds.scales import UNKNOWN, RuleScale
from abstain.typing import AnyArray, Array, BoolArray, Scale

#: Method of a threshold that the user sets.
USER_THRESHOLD: Final = "given"
#: Value of `per` if each predicted class has its own threshold.
PREDICTION: Final = "prediction"


@dataclass(frozen=True)
class RulePart:
    """The decision rule of one group, or of one limit.

    Attributes
    ----------
    name : str
        The name of the group or of the limit, such as "overall", "group:night", "prediction:cat" or
        "label:cat".
    rule : DecisionRule
        The threshold and guarantee, and the results on the calibration samples of the group or
        limit. If a group has several limits, its rule has a part for each limit.
    """

    name: str
    rule: "DecisionRule"

    def __post_init__(self) -> None:
        """Validate every field."""
        records.check(self, owner="a part of a decision rule")


@dataclass(frozen=True)
class DecisionRule(NotebookDisplay):
    """A rule that accepts samples whose confidence is at least `threshold`.

    A rule without a threshold accepts no sample, and `reason` states why it has no threshold. A
    rule may have `parts`, which contain a threshold for each group or one threshold with several
    limits. The method `from_parts` creates such a rule, whose other fields summarize the parts.

    Attributes
    ----------
    method : str
        Name of the rule that selected the threshold (see `RULES`), or "given" for a threshold that
        the user set.
    threshold : float or None
        The lowest accepted confidence. The threshold is None if the target is unattainable, or if
        each group has its own threshold.
    guarantee : {"none", "selective risk", "generalized risk", "coverage"}
        The guaranteed quantity.
    in_expectation : bool
        Whether the guarantee holds on average over calibration sets. The field `delta` is then
        None.
    target : float or None
        The requested maximum risk, minimum coverage, or cost of an abstention.
    delta : float or None
        The probability, over calibration sets, that the guarantee may fail.
    bound : float or None
        The certified bound at the threshold. The bound of a risk is at most `target`, and the bound
        of a coverage is at least `target`.
    n, accepted : int
        Number of calibration samples with positive weight, and number of accepted calibration
        samples. If n is 0, the rule was created without data.
    failures : int or None
        Number of accepted samples with a positive loss, or None without losses.
    coverage : float or None
        Weighted share of accepted calibration samples, in [0, 1], which estimates the coverage.
    risk : float or None
        Selective risk on the calibration data. The risk is None if no sample is accepted or no
        losses are available.
    score : str
        Name of the confidence score, or "" if unknown.
    reason : str
        The reason for a missing threshold, or "" if the rule has a threshold.
    scale : {"log-odds", "probability", "score", "unknown"}
        Scale of the threshold. "log-odds" and "probability" refer to the probability of a correct
        prediction, and "score" to the unit of the score. The scale is "unknown" if a rule was
        fitted on arrays without a scale, or read from a file of version 1. The method `for_score`
        sets the scale.
    population : str
        Population of the guarantee if it differs from the population of the calibration data. A
        rule that was fitted with density ratios (`abstain.shift`) has a guarantee for another
        population.
    per : str
        Name of the column that selects the threshold of a sample, or "prediction" for the predicted
        class. "" for a rule with one threshold.
    joint : bool
        Whether the guarantees of all parts hold jointly with probability 1 - delta. If False, the
        guarantee of each part may fail with probability `delta`.
    parts : tuple of RulePart
        The parts for all groups, in the order of their names, or for all limits. If each group has
        several limits, the rule of each group has a part for each limit. A rule with a single
        guarantee has no parts. Samples of a group without a threshold are rejected.

    Raises
    ------
    InputError
        If a field has an invalid value or contradicts another field. The message names the field.
        DomainError is a subclass.

    Examples
    --------
    >>> import abstain as ab
    >>> rule = ab.thresholds.for_risk([0.9, 0.8, 0.7, 0.6], [0, 0, 1, 1], max_risk=0.1)
    >>> rule.threshold, rule.coverage
    (0.8, 0.5)
    >>> rule.apply([0.95, 0.8, 0.79]).tolist()
    [True, True, False]
    >>> ab.thresholds.DecisionRule.from_json(rule.to_json()) == rule
    True
    """

    method: str
    threshold: Number | None
    guarantee: Guarantee = "none"
    in_expectation: bool = False
    target: NonNegative | None = None
    delta: OpenFraction | None = None
    bound: NonNegative | None = None
    n: NonNegativeInt = 0
    accepted: NonNegativeInt = 0
    failures: NonNegativeInt | None = None
    coverage: Fraction | None = None
    risk: NonNegative | None = None
    score: str = ""
    reason: str = ""
    scale: RuleScale = UNKNOWN
    population: str = ""
    per: str = ""
    joint: bool = False
    parts: tuple[RulePart, ...] = ()

    def __post_init__(self) -> None:
        """Validate the fields of the rule."""
        records.check(self, owner="a decision rule")
        if self.parts:
            check_parts(self)
            return
        if self.per:
            raise InputError(f"`per` of a decision rule without parts must be ''; got {self.per!r}")
        if self.method not in {*RULES, USER_THRESHOLD}:
            names = ", ".join(map(repr, (*RULES, USER_THRESHOLD)))
            value = json_records.short_repr(self.method)
            raise InputError(f"`method` of a decision rule must be one of {names}; got {value}")
        check_consistency(self)

    @classmethod
    def from_parts(
        cls,
        per: str,
        parts: tuple[RulePart, ...],
        *,
        joint: bool = False,
        delta: float | None = None,
    ) -> "DecisionRule":
        """Combine the decision rules of several groups, or of several limits of one threshold.

        Parameters
        ----------
        per : str
            The column of the groups, or "prediction". "" for one threshold with several limits.
        parts : tuple of RulePart
            The rules of all groups or limits.
        joint : bool, default=False
            Whether all guarantees hold jointly with probability 1 - delta.
        delta : float, optional
            The probability that any guarantee fails if `joint` is True, and that each guarantee
            fails otherwise.

        Returns
        -------
        DecisionRule
            A rule whose counts, coverage and risk refer to all calibration samples. Its `target`
            is the target of the parts if all parts have the same target.

        Raises
        ------
        InputError
            If `parts` is empty, or if its entries contradict each other or `delta`.

        Examples
        --------
        >>> import abstain as ab
        >>> day, night = (ab.thresholds.DecisionRule("given", t) for t in (0.5, 0.8))
        >>> parts = (ab.thresholds.RulePart("day", day), ab.thresholds.RulePart("night", night))
        >>> rule = ab.thresholds.DecisionRule.from_parts("shift", parts)
        >>> rule.apply([0.6, 0.6, 0.9, 0.9], group=["day", "night", "night", "dawn"]).tolist()
        [True, False, True, False]
        >>> rule.count_unknown_groups(["day", "night", "night", "dawn"])
        {'dawn': 1}
        >>> ab.thresholds.DecisionRule.from_json(rule.to_json()) == rule
        True
        """
        summary = summarize_parts(per, parts)
        return cls(**summary, per=per, parts=tuple(parts), joint=joint, delta=delta)

    @property
    def attainable(self) -> bool:
        """Whether the rule has a threshold, or at least one of its groups has one."""
        return self.threshold is not None or any(part.rule.attainable for part in self.parts)

    @property
    def quantity(self) -> str:
        """Quantity of `target`, such as "coverage", "selective risk", "generalized risk" or "cost".

        The text is empty for a user threshold without a target and for parts with different
        targets.
        """
        if self.parts and self.target is None:
            return ""
        if self.guarantee != "none":
            return self.guarantee
        return "" if self.method == USER_THRESHOLD else RULES[self.method].target_quantity

    @property
    def uses_probability(self) -> bool:
        """Whether the method defines its threshold as a probability of a correct prediction."""
        return self.method in RULES and RULES[self.method].uses_probability

    @property
    def scale_description(self) -> str:
        """Text with the scale of the threshold, and its value as log-odds or as a probability.

        The text is empty if the rule has no threshold or if the scale is not a probability scale.
        """
        has_unknown_unit = not self.score and self.scale == UNKNOWN
        if self.threshold is None or has_unknown_unit:
            return ""
        return scales.describe_scale(self.threshold, self.scale)

    def threshold_on(self, scale: Scale) -> float | None:
        """Convert the threshold to a scale.

        Answers: which probability of a correct prediction is a threshold of 2.07 log-odds?

        Parameters
        ----------
        scale : {"log-odds", "probability", "score"}
            The target scale. "score" is the scale of the threshold itself.

        Returns
        -------
        float or None
            The threshold on this scale. The result is None if there is no threshold, or if the
            threshold cannot be converted.

        Raises
        ------
        InputError
            If the scale is unknown.

        Examples
        --------
        >>> from abstain.thresholds import DecisionRule
        >>> rule = DecisionRule("given", 2.0, score="msr", scale="log-odds")
        >>> rule.threshold_on("log-odds"), round(rule.threshold_on("probability"), 6)
        (2.0, 0.880797)
        """
        checks.one_of(scale, "scale", scales.SCALES)
        if self.threshold is None or scale in {self.scale, "score"}:
            return self.threshold
        return scales.convert_threshold(self.threshold, self.scale)

    @property
    def limits(self) -> tuple[RulePart, ...]:
        """The limits of the threshold, or of each group.

        The tuple is empty for a threshold with a single guarantee.
        """
        return self.parts[0].rule.limits if self.per else self.parts

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the groups or limits."""
        return tuple(part.name for part in self.parts)

    def part(self, name: str) -> "DecisionRule":
        """Return the decision rule of one group or limit.

        Parameters
        ----------
        name : str
            The group or limit.

        Returns
        -------
        DecisionRule
            The rule of this group or limit. If the group is not in the calibration data, the rule
            has no threshold. A rule without parts returns itself.
        """
        for part in self.parts:
            if part.name == name:
                return part.rule
        if not self.parts:
            return self
        if not self.per:
            return DecisionRule(USER_THRESHOLD, self.threshold, reason=self.reason)
        template: DecisionRule = parts_with_target(self.parts)[0].rule
        return _without_data(template, "the group is not in the calibration data")

    def groups_of(self, predictions: Predictions) -> Array:
        """Return the name of the group that selects the threshold of each sample.

        Parameters
        ----------
        predictions : Predictions
            Predictions with the attribute `group`, or with predicted classes if `per` is
            "prediction".

        Returns
        -------
        ndarray of shape (n,)
            Name of the group of each sample, as in ``parts``.

        Raises
        ------
        MissingInputError
            If the predictions have no groups.
        """
        if self.per == PREDICTION:
            return predicted_class_names(predictions)
        if predictions.group is None:
            raise MissingInputError(
                f"the rule has a threshold for each {self.per!r}: pass it as the `group` of the "
                "predictions, or as `group`"
            )
        return group_texts(predictions.group)

    def count_unknown_groups(self, group: AnyArray) -> dict[str, int]:
        """Count the samples of groups that are not in the calibration data.

        Parameters
        ----------
        group : array of shape (n,)
            The group of each sample.

        Returns
        -------
        dict from str to int
            Number of samples of each group that is not in the calibration data. The rule rejects
            these samples. The dict is empty for a rule with one threshold.
        """
        values = to_numpy(group, "group")
        names, codes = encode_groups(values, values.size)
        if not self.per:
            return {}
        counts = dict(zip(names, np.bincount(codes).tolist(), strict=True))
        return {name: count for name, count in counts.items() if name not in self.names}

    def apply(
        self,
        confidence: AnyArray | Predictions | ConfidenceScore | None = None,
        *,
        group: AnyArray | None = None,
        logits: AnyArray | None = None,
        probabilities: AnyArray | None = None,
        score: ScoreState | None = None,
        scale: Scale | None = None,
    ) -> AnyArray:
        """Return which samples the rule accepts.

        Parameters
        ----------
        confidence : array of shape (n,), ConfidenceScore or Predictions
            Finite confidences of the score that was used in calibration, as an array or as
            `abstain.confidence.score` returns them. For predictions, the method computes this
            score.
        group : array of shape (n,), optional
            The group of each sample for a rule with a threshold for each group. The default is the
            group of the predictions. A rule with one threshold ignores `group`.
        logits, probabilities : array of shape (n, K)
            Class scores from which the score of the rule is computed. Pass class scores instead of
            `confidence`.
        score : fitted score, optional
            The fitted score, if the score of the rule is fitted.
        scale : {"log-odds", "probability", "score"}, optional
            The scale of the confidences if it may differ from the scale of the threshold. "score"
            compares the numbers without conversion.

        Returns
        -------
        array of shape (n,)
            Whether each sample is accepted, in the array type and on the device of the input. For
            lists and series, the result is a NumPy array. If the rule has no threshold, all
            entries are False. Samples of groups without a threshold, and of groups that are not in
            the calibration data, are rejected (see `count_unknown_groups`).

        Raises
        ------
        ShapeError, DomainError
            If an array is empty, has several axes, or has NaN or infinite entries. DomainError is
            also raised for values outside [0, 1] if ``scale="probability"``.
        InputError
            If none or several of `confidence`, `logits` and `probabilities` are passed. InputError
            is also raised if `scale` is missing and the confidences may be on another scale than
            the threshold. Finally, InputError is raised if the threshold cannot be converted to
            `scale`, or if the rule does not name its score.
        UnknownNameError, MissingInputError
            If the score of the rule cannot be computed from the input, or groups are missing.

        Notes
        -----
        The score of predictions, logits and probabilities is computed on the scale of the
        threshold. Equal predictions therefore get the same decision as in the calibration data.
        Confidences on the scale of the threshold are compared in their own precision. For example,
        a float32 confidence of 0.9 is accepted at the threshold 0.9. Confidences on another scale
        are also accepted if they are at most 4 units in the last place below the threshold, which
        allows for rounding errors.

        Examples
        --------
        >>> from abstain.thresholds import DecisionRule
        >>> DecisionRule("given", 0.9).apply([0.95, 0.9, 0.2]).tolist()
        [True, True, False]
        >>> rule = DecisionRule("given", 2.0, score="msr", scale="log-odds")
        >>> rule.apply(logits=[[3.0, 0.0], [1.0, 0.0]]).tolist()
        [True, False]
        >>> rule.apply([0.95, 0.73], scale="probability").tolist()
        [True, False]
        """
        source: Any = scales.select_source(confidence, logits, probabilities)
        if self.per and group is None and isinstance(confidence, Predictions):
            group = self.groups_of(confidence)
        device_array = next((x for x in (logits, probabilities) if x is not None), source)
        source, value_scale = scales.comparable_values(source, self.score, self.scale, score, scale)
        values = checks.confidence(source)
        if self.per:
            accepted = self._accept_by_group(values, group, value_scale)
        elif self.threshold is None:
            accepted = np.zeros(values.size, dtype=np.bool_)
        else:
            accepted = scales.reaches_threshold(values, self.threshold, self.scale, value_scale)
        return as_array_like(accepted, device_array)

    def _accept_by_group(
        self, values: Array, group: AnyArray | None, value_scale: str | None
    ) -> BoolArray:
        """Return a mask of the samples that reach the threshold of their group."""
        if group is None:
            raise MissingInputError(f"the rule has a threshold for each {self.per!r}: pass `group`")
        names, codes = encode_groups(group, values.size)
        by_name = {part.name: part.rule.threshold for part in self.parts}
        thresholds = np.array([by_name.get(name) for name in names], dtype=np.float64)[codes]
        has_threshold = ~np.isnan(thresholds)
        if not has_threshold.any():
            return has_threshold
        # All confidences are compared at once, because the confidences of few groups may not reveal
        # their scale.
        thresholds[~has_threshold] = thresholds[has_threshold][0]
        return has_threshold & scales.reaches_threshold(values, thresholds, self.scale, value_scale)

    def for_score(self, name: str, *, scale: RuleScale | None = None) -> "DecisionRule":
        """Return a copy of the rule that records the name of its confidence score.

        Parameters
        ----------
        name : str
            Name of the score.
        scale : {"log-odds", "probability", "score", "unknown"}, optional
            Scale of the confidences and of the threshold. By default, the scale is unchanged.

        Returns
        -------
        DecisionRule
            The rule with the same threshold.

        Raises
        ------
        InputError
            If the scale is unknown.

        Examples
        --------
        >>> from abstain.thresholds import DecisionRule
        >>> print(DecisionRule("given", 2.0).for_score("msr", scale="log-odds"))
        Accept when "msr" is at least 2 (log-odds; a probability of 0.880798); nothing is
        guaranteed.
        """
        if self.parts:
            parts = (replace(p, rule=p.rule.for_score(name, scale=scale)) for p in self.parts)
            return self.from_parts(self.per, tuple(parts), joint=self.joint, delta=self.delta)
        return replace(self, score=name, scale=self.scale if scale is None else scale)

    def to_json(self) -> str:
        """Return the rule as JSON text, from which `from_json` restores it exactly.

        For a threshold in log-odds, the text also contains the equivalent probability as
        `threshold_probability`.
        """
        return rule_to_json(self)

    @classmethod
    def from_json(cls, text: str) -> "DecisionRule":
        """Read a rule from JSON text that `to_json` returned.

        Parameters
        ----------
        text : str
            JSON text, which may have been edited.

        Returns
        -------
        DecisionRule
            The rule.

        Raises
        ------
        FileFormatError
            If the text is not JSON or not a decision rule. FileFormatError is also raised if a
            field is missing, unknown, duplicate or invalid, or contradicts another field. The
            message names the field.

        Notes
        -----
        Files of version 1 do not contain the scale, so the scale is "unknown". Files of versions
        before 3 do not contain the population, so the guarantee is for the population of the
        calibration data.

        Examples
        --------
        >>> from abstain.thresholds import DecisionRule
        >>> DecisionRule.from_json(DecisionRule("given", 0.5).to_json()).threshold
        0.5
        """
        rule: DecisionRule = rule_from_json(text, cls, RulePart)
        return rule

    def __str__(self) -> str:
        """Describe the rule in one sentence, or in one sentence for each part."""
        return describe_rule(self)


def _without_data(rule: DecisionRule, reason: str) -> DecisionRule:
    """Return a copy of a rule from which the threshold and the calibration results are removed."""
    if rule.parts:
        parts = (RulePart(part.name, _without_data(part.rule, reason)) for part in rule.parts)
        return rule.from_parts(rule.per, tuple(parts), joint=rule.joint, delta=rule.delta)
    return replace(
        rule,
        threshold=None,
        bound=None,
        n=0,
        accepted=0,
        failures=None if rule.failures is None else 0,
        coverage=None,
        risk=None,
        reason=reason,
    )
