"""`DecisionRule`: a threshold, what it promises, and what it rests on."""

import json
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import like
from abstain._foundation.saved import parsed
from abstain.errors import FileFormatError, InputError
from abstain.thresholds import _fields
from abstain.typing import AnyArray

Guarantee = Literal["none", "selective risk", "generalized risk", "coverage"]

#: What marks a text as the JSON form of a decision rule.
KIND: Final = "decision rule"
VERSION: Final = 1

#: The number that `target` is about, where no guarantee says so.
_AIMS: Final = {
    "coverage": "coverage",
    "risk": "selective risk",
    "cost": "cost",
    "chow": "cost",
    "given": "",
}


@dataclass(frozen=True)
class DecisionRule:
    """When to answer: accept a sample whose confidence is at least `threshold`.

    A rule without a threshold says why in `reason` and accepts nothing.

    Attributes
    ----------
    method : str
        The method that chose it, by its name in `METHODS`; "given" for a threshold from elsewhere.
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
    threshold: float | None
    guarantee: Guarantee = "none"
    in_expectation: bool = False
    target: float | None = None
    delta: float | None = None
    bound: float | None = None
    n: int = 0
    accepted: int = 0
    failures: int | None = None
    coverage: float | None = None
    risk: float | None = None
    score: str = ""
    reason: str = ""

    def __post_init__(self) -> None:
        """Validate every field, and the fields against each other."""
        for name, value in _fields.read(vars(self)).items():
            object.__setattr__(self, name, value)

    @property
    def attainable(self) -> bool:
        """Whether there is a threshold."""
        return self.threshold is not None

    @property
    def quantity(self) -> str:
        """What `target` is about: "coverage", "selective risk", "generalized risk" or "cost".

        Empty for a threshold that came from elsewhere, without a target.
        """
        return _AIMS[self.method] if self.guarantee == "none" else self.guarantee

    def apply(self, confidence: AnyArray) -> AnyArray:
        """Tell which samples to answer.

        Parameters
        ----------
        confidence : array of shape (n,)
            Finite, higher is more trusted, from the same score as in calibration.

        Returns
        -------
        array of shape (n,)
            Booleans of the caller's kind and on its device (NumPy for lists and series): whether
            confidence >= threshold. All False without a threshold.

        Raises
        ------
        ShapeError, DomainError
            An empty array or more than one axis; NaN or infinite entries.

        Notes
        -----
        Compared in the precision of the confidences, as NumPy and PyTorch compare an array with a
        number: a float32 0.9 reaches the threshold 0.9. Ties are accepted or rejected together.

        Examples
        --------
        >>> from abstain.thresholds import DecisionRule
        >>> DecisionRule("given", 0.9).apply([0.95, 0.9, 0.2]).tolist()
        [True, True, False]
        """
        values = checks.confidence(confidence)
        if self.threshold is None:
            return like(np.zeros(values.size, dtype=np.bool_), confidence)
        with np.errstate(over="ignore"):
            at = np.asarray(self.threshold).astype(values.dtype)
        return like(values >= at, confidence)

    def for_score(self, name: str) -> "DecisionRule":
        """Return the same rule, marked as belonging to the confidence score of that name."""
        return replace(self, score=name)

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

        Examples
        --------
        >>> from abstain.thresholds import DecisionRule
        >>> DecisionRule.from_json(DecisionRule("given", 0.5).to_json()).threshold
        0.5
        """
        found = _parsed(text)
        if found.pop("kind", None) != KIND:
            msg = f"not a decision rule: its field `kind` must be {KIND!r}"
            raise FileFormatError(msg)
        version = found.pop("version", None)
        if version != VERSION or isinstance(version, bool):
            msg = f"`version` of a decision rule must be {VERSION}; got {version!r}"
            raise FileFormatError(msg)
        for name in (*_fields.FIELDS, *found):
            if name not in found or name not in _fields.FIELDS:
                trouble = "is unknown" if name in found else "is missing"
                msg = f"not a valid decision rule: its field `{name}` {trouble}"
                raise FileFormatError(msg)
        try:
            return cls(**found)
        except InputError as error:
            msg = f"not a valid decision rule: {error}"
            raise FileFormatError(msg) from error

    def __str__(self) -> str:
        """Say the rule in a plain sentence."""
        if self.threshold is None:
            return f"Accept nothing: {self.reason}."
        accept = f"Accept when the confidence is at least {self.threshold:.6g}"
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
        if self.in_expectation:
            return (
                f"the {self.guarantee} is {side} {self.target:g} on average over calibration sets"
            )
        chance = 1 - (self.delta or 0.0)
        sure = f"for {chance:.6g} or more of all calibration sets"
        return f"{sure} the true {self.guarantee} of the rule is {side} {self.target:g}"


def _parsed(text: str) -> dict[str, Any]:
    try:
        return parsed(text)
    except InputError as error:
        msg = f"not a valid decision rule: {error}"
        raise FileFormatError(msg) from error
