"""`DecisionRule`: a threshold, what it promises, and what it rests on."""

import json
from dataclasses import asdict, dataclass, replace
from typing import Final

import numpy as np

from abstain._foundation import checks, json_records, records
from abstain._foundation.arrays import like
from abstain._foundation.notebook import InNotebook
from abstain._foundation.records import Chance, Count, Fraction, NotNegative, Number
from abstain.confidence import ConfidenceScore, ScoreState
from abstain.errors import InputError
from abstain.predictions import Predictions
from abstain.thresholds import scales
from abstain.thresholds._relations import refuse_contradictions
from abstain.thresholds.entry import RULES, Guarantee
from abstain.thresholds.scales import UNKNOWN, RuleScale
from abstain.typing import AnyArray, Scale

#: What stands for the rule of a threshold from elsewhere.
GIVEN: Final = "given"

#: What marks a text as the JSON form of a decision rule.
KIND: Final = "decision rule"
VERSION: Final = 3
#: Fields that a version did not record yet, with what stands for them when it is read.
_LATER: Final[dict[int, dict[str, str]]] = {
    1: {"scale": UNKNOWN, "promised_for": ""},
    2: {"promised_for": ""},
}


@dataclass(frozen=True)
class DecisionRule(InNotebook):
    """When to answer: accept a sample whose confidence is at least `threshold`.

    A rule without a threshold says why in `reason` and accepts nothing.

    Attributes
    ----------
    method : str
        The rule that chose it, by its name in `RULES`; "given" for a threshold from elsewhere.
    threshold : float or None
        Accept when confidence >= threshold; None when the target is unattainable.
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
        What the threshold is measured in: log-odds or the probability of being right, or a unit
        of the score's own. "unknown" for a rule from bare arrays, until `for_score` says it, and
        for one from a file of before scales were recorded.
    promised_for : str
        Whom the guarantee is about, in words, where it is not data like the calibration data: with
        density ratios (`abstain.shift`) it is the data that these describe.

    Raises
    ------
    InputError
        (or its kind, DomainError) When a field holds what it cannot, or contradicts another; the
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
    target: NotNegative | None = None
    delta: Chance | None = None
    bound: NotNegative | None = None
    n: Count = 0
    accepted: Count = 0
    failures: Count | None = None
    coverage: Fraction | None = None
    risk: NotNegative | None = None
    score: str = ""
    reason: str = ""
    scale: RuleScale = UNKNOWN
    promised_for: str = ""

    def __post_init__(self) -> None:
        """Validate every field, and the fields against each other."""
        records.check(self, of="a decision rule")
        _refuse_unknown(self.method)
        refuse_contradictions(self)

    @property
    def attainable(self) -> bool:
        """Whether there is a threshold."""
        return self.threshold is not None

    @property
    def quantity(self) -> str:
        """What `target` is about: "coverage", "selective risk", "generalized risk" or "cost".

        Empty for a threshold that came from elsewhere, without a target.
        """
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

    def apply(
        self,
        confidence: AnyArray | Predictions | ConfidenceScore | None = None,
        *,
        logits: AnyArray | None = None,
        probabilities: AnyArray | None = None,
        score: ScoreState | None = None,
        scale: Scale | None = None,
    ) -> AnyArray:
        """Tell which samples to answer.

        Parameters
        ----------
        confidence : array of shape (n,), ConfidenceScore or Predictions
            Finite, higher is more trusted, from the same score as in calibration; what
            `abstain.confidence.score` returned; or what the model said, from which that score is
            computed.
        logits, probabilities : array of shape (n, K)
            Instead: class scores, from which the score of the rule is computed.
        score : fitted score, optional
            Where the score of the rule is one that was fitted: its state.
        scale : {"log-odds", "probability", "score"}, optional
            What confidences are measured in, where they might be on another scale than the
            threshold; "score" compares them as they are.

        Returns
        -------
        array of shape (n,)
            Booleans of the caller's kind and on its device (NumPy for lists and series): whether
            confidence >= threshold. All False without a threshold.

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
            What was given does not allow the score of the rule.

        Notes
        -----
        Predictions, logits and probabilities are decided on the scale of the threshold, so that
        the decisions are those of the calibration, ties included. Confidences on that scale are
        compared in their own precision, as NumPy and PyTorch compare an array with a number: a
        float32 0.9 reaches the threshold 0.9. Confidences on the other scale are compared there,
        and those within 4 units in the last place reach it, since a probability that was computed
        in another way differs by as much: the sample at the threshold is accepted, and so may be
        one a hair below it. Ties are accepted or rejected together.

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
        given = scales.one_of(confidence, logits, probabilities)
        kind = next((x for x in (logits, probabilities) if x is not None), given)
        given, said = scales.compared(given, self.score, self.scale, score, scale)
        values = checks.confidence(given)
        if self.threshold is None:
            return like(np.zeros(values.size, dtype=np.bool_), kind)
        return like(scales.reached(values, self.threshold, self.scale, said), kind)

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
        return replace(self, score=name, scale=self.scale if scale is None else scale)

    def to_json(self) -> str:
        """Return the rule as JSON text; `from_json` gives back exactly the same numbers."""
        return json.dumps({"kind": KIND, "version": VERSION, **asdict(self)}, indent=2)

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
        with json_records.reading("decision rule"):
            found, version = json_records.opened(text, KIND, (*_LATER, VERSION))
            return records.read(cls, _LATER.get(version, {}) | found, "a decision rule")

    def __str__(self) -> str:
        """Say the rule in a plain sentence."""
        if self.threshold is None:
            return f"Accept nothing: {self.reason}."
        what = f'"{self.score}"' if self.score else "the confidence"
        units = f" ({self.units})" if self.units else ""
        accept = f"Accept when {what} is at least {self.threshold:.6g}{units}"
        parts = [accept, self._on_calibration(), self._promise()]
        return "; ".join(part for part in parts if part) + "."

    def _on_calibration(self) -> str:
        if self.coverage is None:
            return ""
        known = "" if self.risk is None else f" and a selective risk of {self.risk:.4g}"
        # The count beside the share: weighted samples make them differ.
        kept = f"this kept {self.accepted} of {self.n} calibration samples"
        return f"{kept}, a coverage of {self.coverage:.4g}{known}"

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


def _refuse_unknown(method: str) -> None:
    known = (*RULES, GIVEN)
    if method not in known:
        names = ", ".join(map(repr, known))
        given = json_records.shown(method)
        raise InputError(f"`method` of a decision rule must be one of {names}; got {given}")
