"""What a monitor is to watch, with what chance of a false alarm: fixed before the first look."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np

from abstain._foundation.lazy_imports import special
from abstain.inference.confidence_sequence import anytime_limits
from abstain.inference.wager import Wager, wager
from abstain.monitoring.reference import Reference, spread_of
from abstain.monitoring.watches import RECENT, WATCHES, Watch, WatchName, WatchTally
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
        return None if self.reference is None else self.reference.blocks.n_gaps

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
        return self.reference.blocks.find_blocks(confidence, breaks)

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

    # ------------------------------------------------------------------------ results of a watch
    def limits(self, watch: Watch, tally: WatchTally | None = None) -> tuple[float, float]:
        """Return limits of the coverage or the risk that hold at every moment.

        The probability that they ever fail is the share of `delta` of the watch. `tally` replaces
        the counts of the watch; there are no limits for the confidences.
        """
        counts = tally or watch.tally
        scale = self.least_chance if watch.name == "risk" else 1.0
        level = 1 - self.chance(watch.name)
        low, high = anytime_limits(min(counts.total, counts.n), counts.n, level=level)
        return float(np.minimum(low / scale, 1.0)), float(np.minimum(high / scale, 1.0))

    def mean(self, watch: Watch) -> float:
        """Return the coverage, the mean p-value or the risk since the watch began, or NaN."""
        return watch.tally.mean / (self.least_chance if watch.name == "risk" else 1.0)

    def recent_mean(self, watch: Watch) -> float:
        """Return the mean over about the last 200 values, or NaN."""
        if not watch.tally.n:
            return math.nan
        return watch.tally.recent / (self.least_chance if watch.name == "risk" else 1.0)

    def alarm_reason(self, watch: Watch, n_labels: int) -> str:
        """Return the sentence with the numbers for which a watch gives alarm."""
        mean, recent = self.mean(watch), self.recent_mean(watch)
        error = f"(a false alarm with a chance of at most {self.delta / len(self.watched):.4g})"
        if watch.name == "confidence":
            direction = "lower" if recent < 0.5 else "higher"
            return (
                "the confidences are no longer distributed as on calibration: of the last "
                f"{min(watch.tally.n, RECENT)} the mean rank is {recent:.3f} where 0.5 is usual, "
                f"so they are {direction} or otherwise spread {error}"
            )
        low, high = self.limits(watch)
        numbers = f"about {recent:.4g} lately; {mean:.4g} in all, between {low:.4g} and {high:.4g}"
        if watch.name == "coverage":
            least, most = self.coverage or (0.0, 1.0)
            return (
                f"the share that is answered has left {least:.4g} to {most:.4g}: {numbers}, after "
                f"{watch.tally.n:,} prediction{'s' if watch.tally.n != 1 else ''} {error}"
            )
        return (
            f"the {self.kind} has risen above the {self.max_risk:.4g} that is promised: {numbers}, "
            f"by {n_labels:,} label{'s' if n_labels != 1 else ''} {error}"
        )

    def history_row(self, point: Sequence[float]) -> dict[str, float]:
        """Return a point of the history with the limits that held there, as a row of a table.

        `evidence` is the logarithm of a capital over that of its bar: 1 is the alarm, 0 the start.
        """
        events, n_predictions, answers, answered, labels, lost, *capitals = point
        watches = dict(zip(WATCHES, self.begun(), strict=True))
        row = {"events": events, "predictions": n_predictions}
        for name, n, total in (("coverage", answers, answered), ("risk", labels, lost)):
            watch, tally = watches[name], WatchTally(int(n), total)
            share = self.least_chance if name == "risk" else 1.0
            low, high = self.limits(watch, tally) if n else (math.nan, math.nan)
            row |= {name: tally.mean / share, f"{name}_low": low, f"{name}_high": high}
        for name, capital in zip(WATCHES, capitals, strict=True):
            log_bar = np.log(watches[name].bar)
            row[f"{name}_evidence"] = float(np.log(capital) / log_bar) if capital > 0 else math.nan
        return row


def said_risk(confidence: FloatArray, scale: str) -> FloatArray | None:
    """Return the chance of a failure that a confidence itself says; None where it says none."""
    if scale == "score":
        return None
    p = confidence if scale == "probability" else special.expit(confidence)
    return np.clip(1 - p, 0.0, 1.0)
