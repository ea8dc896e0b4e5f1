"""`DecisionRule`: one or several thresholds, what they guarantee, and the calibration results."""

import json
from dataclasses import asdict, dataclass, replace
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
from abstain.thresholds._parts import check_parts, summarize, with_target
from abstain.thresholds._relations import refuse_contradictions
from abstain.thresholds.entry import RULES, Guarantee
from abstain.thresholds.group_names import grouped, predicted_names, texts
from abstain.thresholds.scales import UNKNOWN, RuleScale
from abstain.typing import AnyArray, Array, BoolArray, Scale

#: The method of a threshold that no rule of the catalogue chose.
GIVEN: Final = "given"
#: The value of `per` for a threshold for each predicted class.
PREDICTION: Final = "prediction"

#: The kind of a JSON text that holds a rule with one promise.
KIND: Final = "decision rule"
VERSION: Final = 3
#: The kind of a JSON text that holds a rule with parts.
KIND_OF_PARTS: Final = "set of decision rules"
#: Fields that a version did not record yet, with what stands for them when it is read.
_LATER: Final[dict[int, dict[str, str]]] = {
    1: {"scale": UNKNOWN, "promised_for": ""},
    2: {"promised_for": ""},
}


@dataclass(frozen=True)
class RulePart:
    """The decision rule of one group, or of one limit.

    Attributes
    ----------
    name : str
        The group; or the subject of the limit: "overall", "group:night", "prediction:cat",
        "label:cat".
    rule : DecisionRule
        Its threshold and guarantee, and the results on the calibration samples of that group.
    """

    name: str
    rule: "DecisionRule"

    def __post_init__(self) -> None:
        """Validate every field."""
        records.check(self, owner="a part of a decision rule")


@dataclass(frozen=True)
class DecisionRule(NotebookDisplay):
    """When to answer: accept a sample whose confidence is at least `threshold`.

    A rule without a threshold gives the reason in `reason` and accepts nothing. A rule may have
    `parts`: a threshold for each group, or one threshold with several limits. Its other fields
    then summarize the parts; `of_parts` computes them.

    Attributes
    ----------
    method : str
        The rule that chose it, by its name in `RULES`; "given" for a threshold from elsewhere.
    threshold : float or None
        Accept when confidence >= threshold; None when the target is unattainable or each group
        has a threshold of its own.
    guarantee : {"none", "selective risk", "generalized risk", "coverage"}
        The number that is guaranteed, if any.
    in_expectation : bool
        Whether the guarantee is on average over calibration sets (and then has no `delta`).
    target : float or None
        What was asked for: the largest risk, the least coverage, the cost of an abstention.
    delta : float or None
        The probability, over calibration sets, that the guarantee may fail.
    bound : float or None
        What is certified at the threshold: at most `target` for a risk, at least for a coverage.
    n, accepted : int
        Calibration samples (of weight above 0), and how many of them are accepted. With n = 0 no
        data were used.
    failures : int or None
        Accepted samples with a loss above zero; None without losses.
    coverage : float or None
        Share (of the weight) accepted on the calibration data: the coverage to expect. In [0, 1].
    risk : float or None
        Selective risk on the calibration data; None when nothing was accepted or no loss known.
    score : str
        Name of the confidence score it is for; "" if unknown.
    reason : str
        Why there is no threshold; "" when there is one.
    scale : {"log-odds", "probability", "score", "unknown"}
        The scale of the threshold: log-odds or the probability of being right, or that of the
        score. "unknown" for a rule from bare arrays or from a file of version 1; see `for_score`.
    promised_for : str
        The population of the guarantee, where that is not the one of the calibration data: with
        density ratios (`abstain.shift`) it is the one that these describe.
    per : str
        The name of the column whose value selects the threshold of a sample, or "prediction" for
        the predicted class; "" for a rule with one threshold.
    joint : bool
        Whether the guarantees of all parts hold together with probability 1 - delta; otherwise
        each part fails with probability `delta`.
    parts : tuple of RulePart
        One for each group, in the order of their names, or one for each limit; empty for a rule
        with one promise. A group without a threshold is never answered.

    Raises
    ------
    InputError
        (or its kind, DomainError) When a field has an invalid value or contradicts another; the
        message names the field.

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
    promised_for: str = ""
    per: str = ""
    joint: bool = False
    parts: tuple[RulePart, ...] = ()

    def __post_init__(self) -> None:
        """Validate every field, and the fields against each other."""
        records.check(self, owner="a decision rule")
        if self.parts:
            check_parts(self)
            return
        if self.per:
            raise InputError(f"`per` of a decision rule without parts must be ''; got {self.per!r}")
        if self.method not in {*RULES, GIVEN}:
            names = ", ".join(map(repr, (*RULES, GIVEN)))
            value = json_records.short_repr(self.method)
            raise InputError(f"`method` of a decision rule must be one of {names}; got {value}")
        refuse_contradictions(self)

    @classmethod
    def of_parts(
        cls,
        per: str,
        parts: tuple[RulePart, ...],
        *,
        joint: bool = False,
        delta: float | None = None,
    ) -> "DecisionRule":
        """Combine decision rules: one for each group, or one threshold with several limits.

        Parameters
        ----------
        per : str
            The column of the groups, "prediction", or "" for one threshold with several limits.
        parts : tuple of RulePart
            One for each group or limit.
        joint : bool, default=False
            Whether all guarantees hold together with probability 1 - delta.
        delta : float, optional
            The probability that any guarantee fails if `joint`, else that each fails.

        Returns
        -------
        DecisionRule
            Its counts, coverage and risk are those of all calibration samples; its `target` is the
            one that all parts share.

        Raises
        ------
        InputError
            No parts, or parts that contradict each other or `delta`.

        Examples
        --------
        >>> import abstain as ab
        >>> day, night = (ab.thresholds.DecisionRule("given", t) for t in (0.5, 0.8))
        >>> parts = (ab.thresholds.RulePart("day", day), ab.thresholds.RulePart("night", night))
        >>> rule = ab.thresholds.DecisionRule.of_parts("shift", parts)
        >>> rule.apply([0.6, 0.6, 0.9, 0.9], group=["day", "night", "night", "dawn"]).tolist()
        [True, False, True, False]
        >>> rule.unseen(["day", "night", "night", "dawn"])
        {'dawn': 1}
        >>> ab.thresholds.DecisionRule.from_json(rule.to_json()) == rule
        True
        """
        summary = summarize(per, parts)
        return cls(**summary, per=per, parts=tuple(parts), joint=joint, delta=delta)

    @property
    def attainable(self) -> bool:
        """Whether there is a threshold, for any group."""
        return self.threshold is not None or any(part.rule.attainable for part in self.parts)

    @property
    def quantity(self) -> str:
        """What `target` is about: "coverage", "selective risk", "generalized risk" or "cost".

        Empty for a threshold that came from elsewhere, without a target, and for parts whose
        targets differ.
        """
        if self.parts and self.target is None:
            return ""
        if self.guarantee != "none":
            return self.guarantee
        return "" if self.method == GIVEN else RULES[self.method].aim

    @property
    def of_probability(self) -> bool:
        """Whether its rule compares the probability of being right, whatever the score is."""
        return self.method in RULES and RULES[self.method].of_probability

    @property
    def units(self) -> str:
        """What the threshold is measured in, and what it is on the other scale, in words.

        Empty without a threshold, for a unit of the score's own, and for confidences without a
        name or a scale.
        """
        bare = not self.score and self.scale == UNKNOWN
        if self.threshold is None or bare:
            return ""
        return scales.said(self.threshold, self.scale)

    def threshold_on(self, scale: Scale) -> float | None:
        """Return the threshold on a scale.

        Answers: which probability of being right is a threshold of 2.07 log-odds?

        Parameters
        ----------
        scale : {"log-odds", "probability", "score"}
            The scale. "score" is always that of the threshold itself.

        Returns
        -------
        float or None
            None without a threshold, or where it has no exact counterpart there.

        Raises
        ------
        InputError
            No such scale.

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
        return scales.counterpart(self.threshold, self.scale)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parts."""
        return tuple(part.name for part in self.parts)

    def part(self, name: str) -> "DecisionRule":
        """Return the rule of one group or limit.

        Parameters
        ----------
        name : str
            The group or limit.

        Returns
        -------
        DecisionRule
            Without a threshold for a group that is not in the calibration data. A rule without
            parts returns itself.
        """
        for part in self.parts:
            if part.name == name:
                return part.rule
        if not self.parts:
            return self
        if not self.per:
            return DecisionRule(GIVEN, self.threshold, reason=self.reason)
        first: DecisionRule = with_target(self.parts)[0].rule
        empty: dict[str, Any] = {"n": 0, "accepted": 0, "coverage": None, "risk": None}
        failures = None if first.failures is None else 0
        reason = "no calibration sample was of this group"
        return replace(first, threshold=None, bound=None, failures=failures, reason=reason, **empty)

    def groups_of(self, predictions: Predictions) -> Array:
        """Return the group of each sample, which selects its threshold, as text of shape (n,).

        Parameters
        ----------
        predictions : Predictions
            With `group`, or with predicted classes if `per` is "prediction".

        Returns
        -------
        ndarray of shape (n,)
            Names, as those of the parts.

        Raises
        ------
        MissingInputError
            The predictions lack the groups.
        """
        if self.per == PREDICTION:
            return predicted_names(predictions)
        if predictions.group is None:
            raise MissingInputError(
                f"the rule has a threshold for each {self.per!r}: give it as the `group` of the "
                "predictions, or as `group`"
            )
        return texts(predictions.group)

    def unseen(self, group: AnyArray) -> dict[str, int]:
        """Count the samples of groups that were not in the calibration data: none is answered.

        Parameters
        ----------
        group : array of shape (n,)
            The group of each sample.

        Returns
        -------
        dict from str to int
            Name of each such group and its number of samples; empty for a rule with one threshold.
        """
        values = to_numpy(group, "group")
        names, codes = grouped(values, values.size)
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
        """Decide which samples to answer.

        Parameters
        ----------
        confidence : array of shape (n,), ConfidenceScore or Predictions
            Finite, higher is more trusted, from the same score as in calibration; what
            `abstain.confidence.score` returned; or predictions, from which that score is
            computed.
        group : array of shape (n,), optional
            The group of each sample, for a rule with a threshold for each; by default that of the
            predictions. A rule with one threshold ignores it.
        logits, probabilities : array of shape (n, K)
            Instead: class scores, from which the score of the rule is computed.
        score : fitted score, optional
            Where the score of the rule is one that was fitted: its state.
        scale : {"log-odds", "probability", "score"}, optional
            The scale of the confidences, where it might differ from that of the threshold;
            "score" compares them as they are.

        Returns
        -------
        array of shape (n,)
            Booleans of the caller's kind and on its device (NumPy for lists and series): whether
            confidence >= threshold. All False without a threshold. A sample of a group that has no
            threshold, or that is not in the calibration data (see `unseen`), is not answered.

        Raises
        ------
        ShapeError, DomainError
            An empty array or more than one axis; NaN or infinite entries; with
            ``scale="probability"`` values outside [0, 1].
        InputError
            None or several of `confidence`, `logits` and `probabilities`; confidences that all
            lie in [0, 1] for a threshold in log-odds, or do not for one that is a probability,
            without `scale`; a `scale` to which the threshold cannot be brought; a rule that does
            not name its score.
        UnknownNameError, MissingInputError
            The input does not allow the score of the rule, or lacks the groups.

        Notes
        -----
        Predictions, logits and probabilities are compared on the scale of the threshold, so that
        the decisions are those of the calibration, ties included. Confidences on that scale are
        compared in their own precision: a float32 0.9 reaches the threshold 0.9. Confidences on
        the other scale reach the threshold from 4 units in the last place below it, because a
        probability that was computed in another way differs by as much.

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
        source: Any = scales.one_of(confidence, logits, probabilities)
        if self.per and group is None and isinstance(confidence, Predictions):
            group = self.groups_of(confidence)
        device_array = next((x for x in (logits, probabilities) if x is not None), source)
        source, value_scale = scales.compared(source, self.score, self.scale, score, scale)
        values = checks.confidence(source)
        if self.per:
            accepted = self._accept_by_group(values, group, value_scale)
        elif self.threshold is None:
            accepted = np.zeros(values.size, dtype=np.bool_)
        else:
            accepted = scales.reached(values, self.threshold, self.scale, value_scale)
        return as_array_like(accepted, device_array)

    def _accept_by_group(
        self, values: Array, group: AnyArray | None, value_scale: str | None
    ) -> BoolArray:
        if group is None:
            raise MissingInputError(f"the rule has a threshold for each {self.per!r}: give `group`")
        names, codes = grouped(group, values.size)
        by_name = {part.name: part.rule.threshold for part in self.parts}
        thresholds = np.array([by_name.get(name) for name in names], dtype=np.float64)[codes]
        has_threshold = ~np.isnan(thresholds)
        if not has_threshold.any():
            return has_threshold
        # All confidences are compared: the values of few groups may seem to be on another scale.
        thresholds[~has_threshold] = thresholds[has_threshold][0]
        return has_threshold & scales.reached(values, thresholds, self.scale, value_scale)

    def for_score(self, name: str, *, scale: RuleScale | None = None) -> "DecisionRule":
        """Return the same rule, marked as belonging to the confidence score of that name.

        Parameters
        ----------
        name : str
            Of the score.
        scale : {"log-odds", "probability", "score", "unknown"}, optional
            What its confidences, and so the threshold, are measured in; by default as before.

        Returns
        -------
        DecisionRule
            The threshold is the same number.

        Raises
        ------
        InputError
            No such scale.

        Examples
        --------
        >>> from abstain.thresholds import DecisionRule
        >>> print(DecisionRule("given", 2.0).for_score("msr", scale="log-odds"))
        Accept when "msr" is at least 2 (log-odds; a probability of 0.880797); nothing is
        guaranteed.
        """
        if self.parts:
            parts = (replace(p, rule=p.rule.for_score(name, scale=scale)) for p in self.parts)
            return self.of_parts(self.per, tuple(parts), joint=self.joint, delta=self.delta)
        return replace(self, score=name, scale=self.scale if scale is None else scale)

    def to_json(self) -> str:
        """Return the rule as JSON text; `from_json` gives back exactly the same numbers."""
        if not self.parts:
            fields = {"kind": KIND, "version": VERSION, **_plain_fields(self)}
            return json.dumps(fields, indent=2)
        parts = [{"name": part.name, "rule": _plain_fields(part.rule)} for part in self.parts]
        fields = {"kind": KIND_OF_PARTS, "version": 1, "per": self.per}
        fields |= {"parts": parts, "joint": self.joint, "delta": self.delta}
        return json.dumps(fields, indent=2)

    @classmethod
    def from_json(cls, text: str) -> "DecisionRule":
        """Read a rule from the text that `to_json` wrote.

        Parameters
        ----------
        text : str
            JSON, perhaps edited by hand.

        Returns
        -------
        DecisionRule
            Equal to the one that was written.

        Raises
        ------
        FileFormatError
            No JSON, no decision rule, a field that is missing, unknown, twice there, holds what it
            cannot, or contradicts another. The message names the field.

        Notes
        -----
        Version 1 recorded no scale: such a rule is read, and its scale is "unknown". Before version
        3 every promise was about data like the calibration data.

        Examples
        --------
        >>> from abstain.thresholds import DecisionRule
        >>> DecisionRule.from_json(DecisionRule("given", 0.5).to_json()).threshold
        0.5
        """
        with json_records.invalid_file_errors("decision rule"):
            fields = json_records.parse_object(text)
            kind = json_records.pop_kind(fields, (KIND, KIND_OF_PARTS))
            if kind == KIND_OF_PARTS:
                json_records.pop_version(fields, "version", (1,))
                return _read_parts(fields)
            version = json_records.pop_version(fields, "version", (*_LATER, VERSION))
            return _read_rule(_LATER.get(version, {}) | fields, "a decision rule")

    def __str__(self) -> str:
        """Describe the rule in a plain sentence, or each part in one."""
        if self.parts:
            head = f"By {self.per}" if self.per else "One threshold, several limits"
            return "\n".join([f"{head}:", *(f"  {part.name}: {part.rule}" for part in self.parts)])
        if self.threshold is None:
            return f"Accept nothing: {self.reason}."
        what = f'"{self.score}"' if self.score else "the confidence"
        units = f" ({self.units})" if self.units else ""
        accept = f"Accept when {what} is at least {self.threshold:.6g}{units}"
        if self.coverage is None:
            return f"{accept}; {self._promise()}."
        risk = "" if self.risk is None else f" and a selective risk of {self.risk:.4g}"
        # The count and the share: with weights they differ.
        calibration = f"this kept {self.accepted} of {self.n} calibration samples, a coverage of "
        return f"{accept}; {calibration}{self.coverage:.4g}{risk}; {self._promise()}."

    def _promise(self) -> str:
        if self.guarantee == "none":
            return "nothing is guaranteed"
        side = "at least" if self.guarantee == "coverage" else "at most"
        about = f", for {self.promised_for}" if self.promised_for else ""
        if self.in_expectation:
            return (
                f"the {self.guarantee} is {side} {self.target:g} on average over calibration sets"
                f"{about}"
            )
        chance = 1 - (self.delta or 0.0)
        sure = f"for {chance:.6g} or more of all calibration sets"
        return f"{sure} the true {self.guarantee} of the rule is {side} {self.target:g}{about}"


# ------------------------------------------------------------------------------------ JSON
def _plain_fields(rule: DecisionRule) -> dict[str, Any]:
    """Return the fields of a rule without parts."""
    return {k: v for k, v in asdict(rule).items() if k not in {"per", "joint", "parts"}}


def _read_rule(fields: object, description: str) -> DecisionRule:
    """Read a rule without parts."""
    if isinstance(fields, dict):
        fields = {"per": "", "joint": False, "parts": (), **fields}
    return records.from_nested_fields(DecisionRule, fields, description)


def _read_parts(fields: dict[str, Any]) -> DecisionRule:
    """Read a rule with parts, from which all fields follow that the text does not have."""
    names = ("per", "parts", "joint", "delta")
    records.check_field_names(fields, names, "a decision rule with parts")
    entries = fields.pop("parts")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        json_records.raise_error("the field `parts` must be a list, each with a name and a rule")
    parts = []
    for entry in entries:
        rule = _read_rule(entry.get("rule"), "the `rule` of each of `parts`")
        part_fields = {**entry, "rule": rule}
        parts.append(records.from_fields(RulePart, part_fields, "a part of a decision rule"))
    return DecisionRule.of_parts(parts=tuple(parts), **fields)
