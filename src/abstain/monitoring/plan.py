"""What a monitor is to watch, with what chance of a false alarm: fixed before the first look."""

import math
from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np

from abstain._foundation.imports import special
from abstain.inference.wager import Wager, wager
from abstain.monitoring.reference import Reference, spread_of
from abstain.monitoring.watches import WATCHES, Watch, WatchName
from abstain.thresholds import DecisionRule
from abstain.typing import Array, BoolArray, FloatArray, IntArray, Scale

#: The risks that a rule may promise.
RiskKind = Literal["selective risk", "generalized risk"]
RISKS: Final[tuple[RiskKind, ...]] = get_args(RiskKind)

#: The share of the labels that is asked for evenly, whatever the confidence: no chance is below
#: this much of the mean, so no estimate rests on a single label.
EVEN: Final = 0.5


@dataclass(frozen=True, eq=False)
class MonitorPlan:
    """What is watched and promised; a state is only ever read with the plan that made it.

    Attributes
    ----------
    rule : DecisionRule
        The rule in use.
    delta : float
        The chance that any of the watches ever gives a false alarm.
    scale : {"log-odds", "probability", "score"}
        What the confidences of the stream are measured in.
    coverage : tuple of float or None
        Between which the coverage is as it should be; None where nothing says so.
    uncertain : bool
        Whether these limits were estimated, for which half of the share of delta is spent.
    max_risk : float or None
        What the risk is held to; None where nothing is promised.
    kind : {"selective risk", "generalized risk"}
        Which risk.
    label_share : float or None
        Of the answers, how many labels are asked for on average; None where labels come by
        themselves.
    patience : int
        After so many more predictions a label that was asked for and did not come is given up.
    remember : int
        So many predictions are known by their ids.
    seed : int
        Of all that is drawn.
    reference : Reference or None
        The calibration data; None where they were not given.

    Examples
    --------
    >>> import abstain as ab
    >>> rule = ab.thresholds.DecisionRule(
    ...     "risk", 0.5, target=0.1, n=400, accepted=300, coverage=0.75
    ... )
    >>> ab.monitoring.start(rule).plan.watched
    ('coverage', 'risk')
    """

    rule: DecisionRule
    delta: float
    scale: Scale
    coverage: tuple[float, float] | None
    uncertain: bool
    max_risk: float | None
    kind: RiskKind
    label_share: float | None
    patience: int
    remember: int
    seed: int
    reference: Reference | None

    @property
    def watched(self) -> tuple[WatchName, ...]:
        """The watches that are on; they share delta evenly."""
        there = {
            "coverage": self.coverage is not None,
            "confidence": self.reference is not None,
            "risk": self.max_risk is not None,
        }
        return tuple(name for name in WATCHES if there[name])

    def chance(self, name: WatchName) -> float:
        """Return the chance of a false alarm that a watch may spend on its bets."""
        share = self.delta / max(len(self.watched), 1)
        return share / 2 if name == "coverage" and self.uncertain else share

    def begun(self) -> tuple[Watch, ...]:
        """Return the watches as they begin."""
        return tuple(Watch(name, self.wager(name), 1 / self.chance(name)) for name in WATCHES)

    def wager(self, name: WatchName) -> Wager | None:
        """Return the bets of a watch as they begin; None where it is off."""
        if name not in self.watched:
            return None
        if name == "coverage" and self.coverage is not None:
            return wager(*self.coverage)
        if name == "risk" and self.max_risk is not None:
            return wager(high=self.max_risk * self.least_chance)
        # Of where a value stands, and of how far from the middle that is.
        return wager(0.5, 0.5, streams=(2,))

    @property
    def urn(self) -> IntArray | None:
        """The gaps of the calibration data, before any other confidence was seen."""
        return None if self.reference is None else self.reference.blocks.gaps

    # ------------------------------------------------------------------------ what is looked at
    def answered(self, confidence: Array) -> BoolArray:
        """Tell which confidences the rule answers."""
        found: BoolArray = np.asarray(self.rule.apply(confidence, scale=self.scale), np.bool_)
        return found

    @property
    def threshold(self) -> float:
        """The threshold on the scale of the stream."""
        found = self.rule.threshold_on(self.scale)
        return math.nan if found is None else found

    def homes(self, confidence: FloatArray, breaks: FloatArray) -> Array:
        """Return the block of the calibration data that each confidence falls into."""
        if self.reference is None:
            return np.zeros(confidence.size, np.int64)
        return self.reference.blocks.home(confidence, breaks)

    def predicted(self, confidence: FloatArray, home: Array) -> FloatArray:
        """Return the chance of a failure that is expected at each confidence, before any label."""
        if self.reference is not None and self.reference.risk is not None:
            return np.asarray(self.reference.risk[home])
        said = said_risk(confidence, self.scale)
        usual = self.rule.risk if self.rule.risk is not None else self.max_risk or 0.0
        return np.full(confidence.size, min(usual, 1.0)) if said is None else said

    def chances(self, predicted: FloatArray) -> FloatArray:
        """Return with which chance the label of each answer is asked for."""
        share = self.label_share or 1.0
        if not self._leans:
            return np.full(predicted.size, share)
        spread = 1.0 if self.reference is None else self.reference.spread
        lean = EVEN + (1 - EVEN) * spread_of(predicted) / spread
        return np.minimum(share * lean, 1.0)

    @property
    def least_chance(self) -> float:
        """The least chance with which the label of an answer is asked for; 1 where none is."""
        share = 1.0 if self.label_share is None else self.label_share
        return share * EVEN if self._leans else share

    @property
    def _leans(self) -> bool:
        """Whether labels are asked for more often where failures are more likely."""
        known = self.reference is not None and self.reference.spread > 0
        return self.label_share is not None and known


def said_risk(confidence: FloatArray, scale: str) -> FloatArray | None:
    """Return the chance of a failure that a confidence itself says; None where it says none."""
    if scale == "score":
        return None
    p = confidence if scale == "probability" else special.expit(confidence)
    return np.clip(1 - p, 0.0, 1.0)
