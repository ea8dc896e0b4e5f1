"""`RuleSet`: rules that stand together, one a group, or one threshold with several limits."""

import json
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np

from abstain._foundation import checks, json_records, records
from abstain._foundation.arrays import like, to_numpy
from abstain._foundation.notebook import InNotebook
from abstain._foundation.records import Chance
from abstain.confidence import ConfidenceScore, ScoreState
from abstain.errors import InputError, MissingInputError
from abstain.predictions import Predictions
from abstain.thresholds import scales
from abstain.thresholds._summary import PartsSummary, RulePart
from abstain.thresholds.group_names import grouped, predicted_names, texts
from abstain.thresholds.rule import DecisionRule
from abstain.thresholds.scales import RuleScale
from abstain.typing import AnyArray, Array, FloatArray, Scale

#: What marks a text as the JSON form of a set of rules.
KIND: Final = "set of decision rules"
VERSION: Final = 1
#: What a rule by the predicted class is named by.
PREDICTION: Final = "prediction"
_UNSEEN: Final = "no calibration sample was of this group"


@dataclass(frozen=True)
class RuleSet(PartsSummary, InNotebook):
    """Decision rules that stand together: a threshold for each group, or one with several limits.

    Read like a `DecisionRule`: `n`, `accepted`, `failures`, `coverage` and `risk` are of all
    calibration samples, `target` is the one that all parts have.

    Attributes
    ----------
    per : str
        What says which threshold a sample is held to: the name of a column, or "prediction" for
        the predicted class. Empty where there is one threshold, with several limits.
    parts : tuple of RulePart
        One a group, in the order of the names, or one a limit. A group without a threshold is
        abstained on, with the reason.
    joint : bool
        Whether all promises hold together with probability 1 - delta, or each by itself.
    delta : float or None
        The chance that any promise fails where they are joint, else that of each.

    Raises
    ------
    InputError
        No parts, one name twice, parts of different scores, scales or rules; several thresholds
        without `per`; a `delta` that is not what those of the parts add up to.

    Examples
    --------
    >>> import abstain as ab
    >>> day, night = (ab.thresholds.DecisionRule("given", t) for t in (0.5, 0.8))
    >>> parts = (ab.thresholds.RulePart("day", day), ab.thresholds.RulePart("night", night))
    >>> rule = ab.thresholds.RuleSet("shift", parts)
    >>> rule.apply([0.6, 0.6, 0.9, 0.9], group=["day", "night", "night", "dawn"]).tolist()
    [True, False, True, False]
    >>> rule.unseen(["day", "night", "night", "dawn"])
    {'dawn': 1}
    >>> ab.thresholds.RuleSet.from_json(rule.to_json()) == rule
    True
    """

    per: str
    parts: tuple[RulePart, ...]
    joint: bool = False
    delta: Chance | None = None

    def __post_init__(self) -> None:
        """Refuse parts that cannot stand together."""
        records.check(self, of="a set of decision rules")
        names = [part.name for part in self.parts]
        if not names or len(set(names)) < len(names):
            raise InputError(
                f"`parts` of a set of rules must be named once each, one at least; got {names}"
            )
        for field in ("score", "scale", "method"):
            found = {getattr(part.rule, field) for part in self.chosen}
            if len(found) > 1:
                listed = ", ".join(map(repr, sorted(found)))
                raise InputError(f"the parts of a set of rules must have one {field}; got {listed}")
        if not self.per and len({part.rule.threshold for part in self.parts}) > 1:
            raise InputError(
                "`per` must say what the thresholds are for, where there are several; got ''"
            )
        self._refuse_deltas()

    def _refuse_deltas(self) -> None:
        """Refuse parts whose chances of failing are not what the set says of all."""
        own = [p.rule.delta for p in self.chosen if p.rule.delta and p.rule.attainable]
        if self.delta is None and not self.joint:
            return
        if self.joint and self.per:
            fine = self.delta is not None and sum(own) <= self.delta * (1 + 1e-9)
            must = "be at least the sum of those of its parts, whose promises are joint"
        else:
            fine, must = set(own) <= {self.delta}, "be that of each of its parts"
        if not fine:
            raise InputError(
                f"`delta` of a set of rules must {must}; got {self.delta} and {sorted(set(own))}"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parts."""
        return tuple(part.name for part in self.parts)

    def part(self, name: str) -> DecisionRule:
        """Return the decision rule of a group or limit; one without a threshold for a new group.

        Parameters
        ----------
        name : str
            Of the group or limit.

        Returns
        -------
        DecisionRule
            Of a group that was not in the calibration data: without a threshold, with the reason.
        """
        for part in self.parts:
            if part.name == name:
                return part.rule
        first = self.first
        if not self.per:
            return DecisionRule("given", self.threshold, reason=self.reason)
        return replace(
            first, threshold=None, bound=None, n=0, accepted=0, coverage=None, risk=None,
            failures=None if first.failures is None else 0, reason=_UNSEEN,
        )  # fmt: skip

    def groups_of(self, predictions: Predictions) -> Array:
        """Return what says which threshold each sample is held to, as texts, shape (n,).

        Parameters
        ----------
        predictions : Predictions
            With their `group`, or with predicted classes where the rule is per prediction.

        Returns
        -------
        ndarray of shape (n,)
            Names, as those of the parts.

        Raises
        ------
        MissingInputError
            The predictions lack it.
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
            Name of each such group and its number of samples.
        """
        values = to_numpy(group, "group")
        names, codes = grouped(values, values.size)
        known = {part.name for part in self.parts}
        found = zip(names, np.bincount(codes).tolist(), strict=True)
        return {name: count for name, count in found if self.per and name not in known}

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
        """Tell which samples to answer: their confidence reaches the threshold of their group.

        Parameters
        ----------
        confidence : array of shape (n,), ConfidenceScore or Predictions
            As for `DecisionRule.apply`.
        group : array of shape (n,), optional
            The group of each sample; that of predictions is known by itself.
        logits, probabilities : array of shape (n, K)
            Instead of confidences: class scores.
        score : fitted score, optional
            Where the score of the rule is one that was fitted: its state.
        scale : {"log-odds", "probability", "score"}, optional
            What confidences are measured in, as for `DecisionRule.apply`.

        Returns
        -------
        array of shape (n,)
            Booleans. A sample of a group without a threshold, or of one that the calibration data
            did not have, is not answered; `unseen` counts those.

        Raises
        ------
        InputError, ShapeError, DomainError
            As for `DecisionRule.apply`.
        MissingInputError
            Nothing says which group a sample is of.

        Examples
        --------
        >>> import abstain as ab
        >>> sure = ab.thresholds.DecisionRule("given", 0.9)
        >>> rule = ab.thresholds.RuleSet("prediction", (ab.thresholds.RulePart("cat", sure),))
        >>> said = ab.Predictions(confidence=[0.95, 0.95], prediction=["cat", "dog"], loss=[0, 1])
        >>> rule.for_score("confidence").apply(said).tolist()
        [True, False]
        """
        given = scales.one_of(confidence, logits, probabilities)
        if isinstance(confidence, Predictions) and self.per and group is None:
            group = self.groups_of(confidence)
        kind = next((x for x in (logits, probabilities) if x is not None), given)
        given, said = scales.compared(given, self.score, self.scale, score, scale)
        values = checks.confidence(given)
        if self.per and group is None:
            raise MissingInputError(f"the rule has a threshold for each {self.per!r}: give `group`")
        own = self._thresholds(group, values.size)
        held = ~np.isnan(own)
        if not held.any():
            return like(held, kind)
        # All confidences are compared, since a few alone might look as if on another scale.
        own[~held] = own[held][0]
        return like(held & scales.reached(values, own, self.scale, said), kind)

    def _thresholds(self, group: AnyArray | None, n: int) -> FloatArray:
        """Return the threshold that each sample is held to, shape (n,); NaN where there is none."""
        own = {part.name: part.rule.threshold for part in self.parts}
        if not self.per or group is None:
            return np.full(n, self.threshold, dtype=np.float64)
        names, codes = grouped(group, n)
        found: FloatArray = np.array([own.get(name) for name in names], dtype=np.float64)
        return found[codes]

    def threshold_on(self, scale: Scale) -> float | None:
        """Return the one threshold on a scale, as `DecisionRule.threshold_on`; None of several.

        Parameters
        ----------
        scale : {"log-odds", "probability", "score"}
            The scale.

        Returns
        -------
        float or None
            None where each group has its own.
        """
        return None if self.per else self.parts[0].rule.threshold_on(scale)

    def for_score(self, name: str, *, scale: RuleScale | None = None) -> "RuleSet":
        """Return the same rules, marked as belonging to the confidence score of that name.

        Parameters
        ----------
        name : str
            Of the score.
        scale : {"log-odds", "probability", "score", "unknown"}, optional
            What its confidences are measured in; by default as before.

        Returns
        -------
        RuleSet
            With the same thresholds.
        """
        parts = (replace(p, rule=p.rule.for_score(name, scale=scale)) for p in self.parts)
        return replace(self, parts=tuple(parts))

    def to_json(self) -> str:
        """Return the set as JSON text; `from_json` gives back exactly the same numbers."""
        return json.dumps({"kind": KIND, "version": VERSION, **asdict(self)}, indent=2)

    @classmethod
    def from_json(cls, text: str) -> "RuleSet":
        """Read a set from the text that `to_json` wrote.

        Parameters
        ----------
        text : str
            JSON, perhaps edited by hand.

        Returns
        -------
        RuleSet
            Equal to the one that was written.

        Raises
        ------
        FileFormatError
            No JSON, no set of rules, or a field that cannot be; the message names it.
        """
        with json_records.reading("set of decision rules"):
            found, _ = json_records.opened(text, KIND, (VERSION,))
            found["parts"] = tuple(_part(one) for one in _listed(found.get("parts")))
            return records.read(cls, found, "a set of decision rules")

    def __str__(self) -> str:
        """Say each rule in a plain sentence."""
        head = f"By {self.per}" if self.per else "One threshold, several limits"
        return "\n".join([f"{head}:", *(f"  {p.name}: {p.rule}" for p in self.parts)])


#: What decides: one rule, or several that stand together.
AnyRule = DecisionRule | RuleSet


def _listed(given: object) -> list[Any]:
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        json_records.refuse("the field `parts` must be a list, each with a name and a rule")
    return given


def _part(found: dict[str, Any]) -> RulePart:
    rule = records.part(DecisionRule, found.get("rule"), "the `rule` of each of `parts`")
    fields = {**found, "rule": rule}
    return records.read(RulePart, fields, "a part of a set of rules")
