"""Define the plan of a monitor, with its watches, limits and summary of the calibration data."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import read_only
from abstain._foundation.isotonic_blocks import isotonic_block_ends
from abstain._foundation.lazy_imports import special
from abstain.errors import ShapeError
from abstain.inference.exchangeability import RankBlocks, rank_blocks
from abstain.inference.wager import Wager, anytime_limits, wager
from abstain.monitoring.state import RECENT, WATCHES, Watch, WatchName, WatchTally
from abstain.thresholds import DecisionRule
from abstain.typing import AnyArray, Array, BoolArray, FloatArray, IntArray, Scale


@dataclass(frozen=True, eq=False)
class Reference:
    """A summary of the calibration data in at most 64 blocks.

    Attributes
    ----------
    blocks : RankBlocks
        Blocks of the confidences.
    risk : ndarray of shape (blocks,) or None
        Mean loss of each block, which decreases with the confidence, or None without losses.
    spread : float
        Mean standard deviation of the loss over the accepted calibration samples, or NaN if it is
        unknown.

    Examples
    --------
    >>> from abstain.monitoring import build_reference
    >>> reference = build_reference([0.2, 0.5, 0.7, 0.9], [1, 1, 0, 0], threshold=0.6)
    >>> reference.blocks.n_gaps.tolist(), reference.risk.round(2).tolist()
    ([1, 1, 1, 1, 1], [0.75, 0.67, 0.67, 0.25, 0.25])
    """

    blocks: RankBlocks
    risk: FloatArray | None
    spread: float

    @property
    def n(self) -> int:
        """Number of calibration samples."""
        return int(self.blocks.n_gaps.sum()) - 1


def build_reference(
    confidence: AnyArray,
    loss: AnyArray | None = None,
    *,
    threshold: float,
    predicted: AnyArray | None = None,
    seed: int = 0,
) -> Reference:
    """Summarize the calibration data for a monitor.

    Parameters
    ----------
    confidence : array of shape (n,)
        Finite confidences on the scale of the stream.
    loss : array of shape (n,), optional
        Losses in [0, 1], from which the probability of a failure is predicted. Labels are
        requested more often if a failure is likely.
    threshold : float
        Threshold on the scale of the stream.
    predicted : array of shape (n,), optional
        Predicted probabilities of a failure, which are used if `loss` is None.
    seed : int
        Seed of the random order of ties.

    Returns
    -------
    Reference
        A summary whose size does not depend on n.

    Raises
    ------
    ShapeError, DomainError
        If lengths differ or if values are not finite.
    """
    values = checks.confidence(confidence, "calibration").astype(np.float64)
    blocks = rank_blocks(values, rng=seed)
    answered = values >= threshold
    if not answered.any():
        raise ShapeError(
            f"`calibration` must have a sample that reaches the threshold {threshold:g}"
        )
    if loss is not None:
        losses = checks.unit_interval(checks.loss(loss, length=values.size), "calibration loss")
        block = blocks.find_blocks(values, np.full(values.size, 0.5))
        risk = _decreasing_risk(block, losses.astype(np.float64), blocks.n_gaps.size)
        spread = float(spread_of(risk[block[answered]]).mean())
        return Reference(blocks, read_only(risk), spread)
    if predicted is not None:
        predicted_risk = np.asarray(predicted, np.float64)
        spread = float(spread_of(predicted_risk[answered]).mean())
        return Reference(blocks, None, spread)
    return Reference(blocks, None, float("nan"))


def spread_of(risk: FloatArray) -> FloatArray:
    """Return the standard deviation of a 0/1 loss with each risk, shape (n,)."""
    return np.sqrt(np.maximum(risk * (1 - risk), 0.0))


def _decreasing_risk(block: AnyArray, loss: FloatArray, n_blocks: int) -> FloatArray:
    """Estimate the risk of each block by isotonic regression over the ordered blocks."""
    # Each block contains an additional sample with the mean loss, which smooths the risk.
    count: FloatArray = np.bincount(block, minlength=n_blocks).astype(np.float64) + 1
    total: FloatArray = np.bincount(block, weights=loss, minlength=n_blocks) + loss.mean()
    # The isotonic risk increases in reversed order.
    count = count[::-1].copy()
    total = total[::-1].copy()
    ends = isotonic_block_ends(total, count)
    starts = np.concatenate([[0], ends[:-1] + 1])
    pooled_risk = np.add.reduceat(total, starts) / np.add.reduceat(count, starts)
    sizes = np.diff(np.concatenate([starts, [n_blocks]]))
    return np.repeat(pooled_risk, sizes)[::-1].copy()


#: Risks for which a rule may have a guarantee.
RiskKind = Literal["selective risk", "generalized risk"]
RISKS: Final[tuple[RiskKind, ...]] = get_args(RiskKind)

#: Share of the label requests that is spread uniformly over the answers, so that no single label
#: dominates an estimate.
UNIFORM_SHARE: Final = 0.5


@dataclass(frozen=True, eq=False)
class MonitorPlan:
    """The watches of a monitor and their limits, which are fixed before the first observation.

    Attributes
    ----------
    rule : DecisionRule
        Decision rule in use.
    delta : float
        Probability that any watch ever raises a false alarm.
    scale : {"log-odds", "probability", "score"}
        Scale of the confidences in the stream.
    coverage : tuple of float or None
        Allowed range of the coverage, or None if it is unknown.
    is_coverage_estimated : bool
        Whether the range of the coverage was estimated from the calibration data. In this case,
        half of the false-alarm probability accounts for the error of this estimate.
    max_risk : float or None
        Maximum allowed risk, or None without a target.
    risk_kind : {"selective risk", "generalized risk"}
        Risk to which `max_risk` refers.
    label_share : float or None
        Mean share of the answers whose labels are requested, or None if no labels are requested.
    patience : int
        Number of later predictions after which a requested label counts as missing.
    remember : int
        Number of predictions whose ids are remembered.
    seed : int
        Seed of all random numbers.
    reference : Reference or None
        Summary of the calibration data, or None.

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
    is_coverage_estimated: bool
    max_risk: float | None
    risk_kind: RiskKind
    label_share: float | None
    patience: int
    remember: int
    seed: int
    reference: Reference | None

    @property
    def watched(self) -> tuple[WatchName, ...]:
        """Names of the active watches, which share the false-alarm probability `delta` equally."""
        is_active = {
            "coverage": self.coverage is not None,
            "confidence": self.reference is not None,
            "risk": self.max_risk is not None,
        }
        return tuple(name for name in WATCHES if is_active[name])

    def false_alarm_probability(self, name: WatchName) -> float:
        """Return the probability that a watch ever raises a false alarm."""
        probability = self.delta / max(len(self.watched), 1)
        if name == "coverage" and self.is_coverage_estimated:
            probability /= 2
        return probability

    def initial_watches(self) -> tuple[Watch, ...]:
        """Return the watches without observations."""
        return tuple(
            Watch(name, self.wager(name), 1 / self.false_alarm_probability(name))
            for name in WATCHES
        )

    def wager(self, name: WatchName) -> Wager | None:
        """Return the initial bets of a watch, or None if the watch is inactive."""
        if name not in self.watched:
            return None
        if name == "coverage" and self.coverage is not None:
            return wager(*self.coverage)
        if name == "risk" and self.max_risk is not None:
            return wager(high=self.max_risk * self.min_label_probability)
        # The bets are on two streams: the p-value of the rank, and its distance from 0.5.
        return wager(0.5, 0.5, streams=(2,))

    def allowed_range(self, name: WatchName) -> tuple[float, float]:
        """Return the bounds of the watched quantity, where NaN means no bound."""
        if name == "coverage":
            return self.coverage or (math.nan, math.nan)
        if name == "risk":
            return math.nan, math.nan if self.max_risk is None else self.max_risk
        return (math.nan, math.nan) if self.reference is None else (0.5, 0.5)

    @property
    def urn(self) -> IntArray | None:
        """Initial counts of the calibration blocks."""
        return None if self.reference is None else self.reference.blocks.n_gaps

    # ------------------------------------------------------------------------ single predictions
    def answered(self, confidence: Array) -> BoolArray:
        """Return a mask of the confidences that the rule accepts, shape (n,)."""
        mask: BoolArray = np.asarray(self.rule.apply(confidence, scale=self.scale), np.bool_)
        return mask

    @property
    def threshold(self) -> float:
        """Threshold on the scale of the stream, or NaN without a threshold."""
        threshold = self.rule.threshold_on(self.scale)
        return math.nan if threshold is None else threshold

    def calibration_blocks(self, confidence: FloatArray, breaks: FloatArray) -> Array:
        """Return the block of the calibration data that contains each confidence."""
        if self.reference is None:
            return np.zeros(confidence.size, np.int64)
        return self.reference.blocks.find_blocks(confidence, breaks)

    def predicted(self, confidence: FloatArray, blocks: Array) -> FloatArray:
        """Return the predicted probability of a failure at each confidence."""
        if self.reference is not None and self.reference.risk is not None:
            return np.asarray(self.reference.risk[blocks])
        risk = risk_from_confidence(confidence, self.scale)
        if risk is not None:
            return risk
        constant_risk = self.rule.risk
        if constant_risk is None:
            constant_risk = self.max_risk or 0.0
        return np.full(confidence.size, min(constant_risk, 1.0))

    def label_probabilities(self, predicted: FloatArray) -> FloatArray:
        """Return the probability of a label request for each answer."""
        share = self.label_share or 1.0
        if not self._has_uneven_probabilities:
            return np.full(predicted.size, share)
        mean_spread = 1.0 if self.reference is None else self.reference.spread
        factor = UNIFORM_SHARE + (1 - UNIFORM_SHARE) * spread_of(predicted) / mean_spread
        return np.minimum(share * factor, 1.0)

    @property
    def min_label_probability(self) -> float:
        """Smallest probability of a label request, or 1 if no labels are requested."""
        share = 1.0 if self.label_share is None else self.label_share
        return share * UNIFORM_SHARE if self._has_uneven_probabilities else share

    @property
    def _has_uneven_probabilities(self) -> bool:
        """Whether labels are requested with a higher probability if failures are more likely."""
        has_spread = self.reference is not None and self.reference.spread > 0
        return self.label_share is not None and has_spread

    # ------------------------------------------------------------------------ results of a watch
    def limits(self, watch: Watch, tally: WatchTally | None = None) -> tuple[float, float]:
        """Return confidence limits of the coverage or the risk, which are valid at all times.

        The confidence level is 1 minus the false-alarm probability of the watch. If `tally` is
        passed, its counts are used instead of the counts of the watch.
        """
        counts = tally or watch.tally
        level = 1 - self.false_alarm_probability(watch.name)
        low, high = anytime_limits(min(counts.total, counts.n), counts.n, level=level)
        unit = self._unit(watch.name)
        return float(np.minimum(low / unit, 1.0)), float(np.minimum(high / unit, 1.0))

    def mean(self, watch: Watch) -> float:
        """Return the mean of the quantity that a watch tests, or NaN if there are no values."""
        return watch.tally.mean / self._unit(watch.name)

    def recent_mean(self, watch: Watch) -> float:
        """Return the weighted mean of about the last 200 values, or NaN if there are none."""
        if not watch.tally.n:
            return math.nan
        return watch.tally.recent_mean / self._unit(watch.name)

    def _unit(self, name: WatchName) -> float:
        """Return the factor by which the values of a watch are scaled to lie in [0, 1]."""
        return self.min_label_probability if name == "risk" else 1.0

    def alarm_reason(self, watch: Watch, n_labels: int) -> str:
        """Return a sentence that explains an alarm with its numbers."""
        mean = self.mean(watch)
        recent = self.recent_mean(watch)
        probability = self.delta / len(self.watched)
        error = f"(probability of a false alarm: at most {probability:.4g})"
        if watch.name == "confidence":
            direction = "lower" if recent < 0.5 else "higher"
            return (
                "the distribution of the confidences differs from that of the calibration data: "
                f"the mean rank of the last {min(watch.tally.n, RECENT)} is {recent:.3f} instead "
                f"of 0.5, so they are {direction} or have another spread {error}"
            )
        low, high = self.limits(watch)
        numbers = f"{recent:.4g} recently; {mean:.4g} overall, limits {low:.4g} to {high:.4g}"
        if watch.name == "coverage":
            allowed_low, allowed_high = self.coverage or (0.0, 1.0)
            plural = "s" if watch.tally.n != 1 else ""
            return (
                f"the coverage is outside {allowed_low:.4g} to {allowed_high:.4g}: {numbers}, "
                f"after {watch.tally.n:,} prediction{plural} {error}"
            )
        plural = "s" if n_labels != 1 else ""
        return (
            f"the {self.risk_kind} is above the maximum of {self.max_risk:.4g}: {numbers}, from "
            f"{n_labels:,} label{plural} {error}"
        )

    def history_row(self, point: Sequence[float]) -> dict[str, float]:
        """Return a point of the history with its confidence limits, as a row of a table.

        The evidence of a watch is log(capital) / log(capital at which the alarm is raised). The
        evidence is 0 at the start and 1 at the alarm.
        """
        events, n_predictions, n_answers, answered, n_losses, total_loss, *capitals = point
        watches = self.initial_watches()
        coverage_watch, _, risk_watch = watches
        row = {"events": events, "predictions": n_predictions}
        row |= self._mean_with_limits(coverage_watch, WatchTally(int(n_answers), answered))
        row |= self._mean_with_limits(risk_watch, WatchTally(int(n_losses), total_loss))
        for watch, capital in zip(watches, capitals, strict=True):
            evidence = math.nan
            if capital > 0:
                evidence = float(np.log(capital) / np.log(watch.alarm_capital))
            row[f"{watch.name}_evidence"] = evidence
        return row

    def _mean_with_limits(self, watch: Watch, tally: WatchTally) -> dict[str, float]:
        """Return the mean of a watch and its confidence limits, as columns of a table."""
        low, high = self.limits(watch, tally) if tally.n else (math.nan, math.nan)
        name = watch.name
        return {name: tally.mean / self._unit(name), f"{name}_low": low, f"{name}_high": high}


def risk_from_confidence(confidence: FloatArray, scale: str) -> FloatArray | None:
    """Convert confidences to failure probabilities; the result is None on the scale "score"."""
    if scale == "score":
        return None
    p = confidence if scale == "probability" else special.expit(confidence)
    return np.clip(1 - p, 0.0, 1.0)
