"""What a rule achieves on data: numbers with intervals, and whether its target holds."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from abstain._foundation import checks
from abstain._foundation.weights import counted
from abstain.confidence import ConfidenceScore
from abstain.errors import InputError
from abstain.inference.influence import standard_error
from abstain.inference.intervals import Interval, interval_from, no_interval
from abstain.inference.proportions import clopper_pearson, effective_count
from abstain.thresholds.rule import DecisionRule
from abstain.typing import AnyArray, Array, BoolArray, FloatArray, Scale

_INFINITY = float("inf")


@dataclass(frozen=True, eq=False)
class AcceptedLosses:
    """Validated losses of samples of weight above zero, and which of them are accepted."""

    loss: FloatArray
    accepted: BoolArray
    weight: FloatArray | None
    level: float
    #: Whether every loss is 0 or 1, of the whole where these are a part of it.
    binary: bool
    #: Which of the rows that were passed these are; None where all have a weight.
    from_rows: BoolArray | None = None

    @property
    def n(self) -> int:
        """Number of samples."""
        return int(self.loss.size)

    def mean(self, x: Array) -> float:
        """Weighted mean over all samples."""
        return float(np.average(x, weights=self.weight))

    def part(self, rows: Array) -> "AcceptedLosses":
        """Return some of the samples: those at these places, or for which this holds."""
        weight = None if self.weight is None else self.weight[rows]
        return replace(self, loss=self.loss[rows], accepted=self.accepted[rows], weight=weight)


def sample(
    accepted: Array, loss: AnyArray, weight: AnyArray | None, *, level: float
) -> AcceptedLosses:
    """Validate losses and weights beside a decision for each sample."""
    x = checks.loss(loss, length=accepted.size).astype(np.float64)
    w = checks.weight(weight, length=accepted.size)
    rows, w, x, accepted = counted(w, x, accepted)
    if w is not None:
        checks.summable(w * x, "weight * loss")
    return AcceptedLosses(x, accepted, w, level, bool(((x == 0) | (x == 1)).all()), rows)


def share(s: AcceptedLosses, x: BoolArray) -> tuple[float, Interval]:
    """Return the share of samples for which `x` holds, with an exact interval.

    With weights the samples count as the number of equal ones that has the same standard error.
    """
    count = int(np.count_nonzero(x))
    if s.weight is None:
        return count / s.n, clopper_pearson(count, s.n, level=s.level)
    value = min(max(s.mean(x), 0.0), 1.0)
    size = float(s.weight.sum() ** 2 / (s.weight @ s.weight))
    if 0 < count < s.n:
        error = standard_error((x - value).astype(np.float64), weight=s.weight)
        size = min(effective_count(value, error), float(s.n)) if error > 0 else size
    return value, clopper_pearson(value * size, size, level=s.level)


def mean(s: AcceptedLosses, x: FloatArray, *, signed: bool = False) -> tuple[float, Interval]:
    """Return the mean of `x` with the Student interval of its influence function."""
    value = s.mean(x)
    low = -_INFINITY if signed else 0.0
    found = interval_from(value, x - value, level=s.level, bounds=(low, _INFINITY), weight=s.weight)
    return value, found


def selective_risk(s: AcceptedLosses) -> tuple[float, Interval]:
    """Mean loss of the accepted; NaN when there are none."""
    inner = s.part(s.accepted)
    if inner.n == 0:
        return float("nan"), no_interval(s.level, "nothing is accepted at this threshold")
    return share(inner, inner.loss > 0) if s.binary else mean(inner, inner.loss)


def generalized_risk(s: AcceptedLosses) -> tuple[float, Interval]:
    """Mean over all samples of the loss where accepted."""
    if s.binary or not (s.loss * s.accepted).any():
        return share(s, s.accepted & (s.loss > 0))
    return mean(s, s.loss * s.accepted)


def cost_beyond_abstaining(s: AcceptedLosses, cost: float) -> tuple[float, Interval]:
    """Mean cost a sample, minus that of abstaining on every sample."""
    return mean(s, (s.loss - cost) * s.accepted, signed=True)


Verdict = Literal["holds", "broken", "cannot tell", "nothing accepted", "unattainable", "no target"]


@dataclass(frozen=True)
class RuleCheck:
    """What a decision rule achieves on one data set, against its target.

    Attributes
    ----------
    name : str
        Name of the data set.
    rule : DecisionRule
        The rule that was checked; of a group that has its own, that one.
    n, accepted : int
        Samples (of weight above 0), and how many of them the rule accepts.
    coverage : float
        Share (of the weight) accepted.
    selective_risk : float
        Mean loss of the accepted; NaN when nothing is accepted.
    generalized_risk : float
        Mean over all samples of the loss where accepted: coverage x selective risk.
    coverage_interval, selective_risk_interval, generalized_risk_interval : Interval
        Exact (Clopper-Pearson) for shares, of the influence function with a t quantile for the
        means of graded losses; NaN ends and a note where there is none.
    excess : float
        How much worse than the target: achieved risk minus target, target minus achieved coverage,
        or, for a rule by cost, the mean cost a sample minus the cost of abstaining on all.
        Positive is worse. NaN without a target, or for the selective risk of nothing.
    excess_interval : Interval
        Of the excess.
    verdict : str
        "holds" when the interval of the excess lies at or below 0, "broken" when above, else
        "cannot tell"; "nothing accepted" for the selective risk of nothing, "unattainable" for a
        rule without a threshold, "no target" for a threshold from elsewhere. Of a whole with
        groups that of the worst of them.
    group : str
        Name of the group; "" for a whole.
    alone : str
        Of a whole with groups, its verdict by itself; "" otherwise.
    together : int
        How many verdicts hold together at the level that was asked for: 1, or the whole and its
        groups, of which each interval then has a higher level.
    """

    name: str
    rule: DecisionRule
    n: int
    accepted: int
    coverage: float
    coverage_interval: Interval
    selective_risk: float
    selective_risk_interval: Interval
    generalized_risk: float
    generalized_risk_interval: Interval
    excess: float
    excess_interval: Interval
    verdict: Verdict
    group: str = ""
    alone: str = ""
    together: int = 1

    @property
    def label(self) -> str:
        """Name of the data set, with its group where it is one."""
        return ": ".join(part for part in (self.name, self.group) if part)

    @property
    def note(self) -> str:
        """What to know of the verdict; empty when there is nothing."""
        if self.alone and self.alone != self.verdict:
            return f"by itself: {self.alone}; a group: {self.verdict}"
        return self.excess_interval.note

    def row(self) -> dict[str, str | int | float | None]:
        """Return the check as one row of plain values, for a table.

        Returns
        -------
        dict
            Names to texts and numbers: name, subgroup, method, guarantee, threshold, target,
            delta, n, accepted, each achieved number and the excess with `_low` and `_high`,
            verdict.
        """
        rule = self.rule
        out: dict[str, str | int | float | None] = {
            "name": self.name,
            "subgroup": self.group,
            "method": rule.method,
            "guarantee": rule.guarantee,
            "threshold": rule.threshold,
            "target": rule.target,
            "delta": rule.delta,
            "n": self.n,
            "accepted": self.accepted,
        }
        for number in ("coverage", "selective_risk", "generalized_risk", "excess"):
            interval: Interval = getattr(self, f"{number}_interval")
            out[number] = getattr(self, number)
            out[f"{number}_low"], out[f"{number}_high"] = interval.low, interval.high
        out["verdict"] = self.verdict
        return out


def decided(
    rule: DecisionRule, confidence: AnyArray, scale: Scale | None, by: AnyArray | None = None
) -> BoolArray:
    """Tell what a rule accepts, samples of the groups `by`; refuse what is no rule."""
    given: object = rule
    if not isinstance(given, DecisionRule):
        raise InputError(f"`rule` must be a DecisionRule; got {type(given).__name__}")
    if not isinstance(confidence, ConfidenceScore):
        confidence = checks.confidence(confidence)
    return np.asarray(rule.apply(confidence, group=by, scale=scale), dtype=np.bool_)


def measured(rule: DecisionRule, s: AcceptedLosses, name: str) -> RuleCheck:
    """Return what a rule achieves on samples of which it is known whether it accepts them."""
    coverage, coverage_interval = share(s, s.accepted)
    selective, selective_interval = selective_risk(s)
    generalized, generalized_interval = generalized_risk(s)
    achieved = {
        "coverage": (coverage, coverage_interval),
        "selective risk": (selective, selective_interval),
        "generalized risk": (generalized, generalized_interval),
    }
    excess, excess_interval = _excess(rule, s, achieved)
    return RuleCheck(
        name,
        rule,
        s.n,
        int(np.count_nonzero(s.accepted)),
        coverage,
        coverage_interval,
        selective,
        selective_interval,
        generalized,
        generalized_interval,
        excess,
        excess_interval,
        _verdict(rule, s, excess_interval),
    )


def _excess(
    rule: DecisionRule, s: AcceptedLosses, achieved: Mapping[str, tuple[float, Interval]]
) -> tuple[float, Interval]:
    if rule.target is None or not rule.quantity:
        return float("nan"), no_interval(s.level, "the rule has no target")
    if rule.quantity == "cost":
        return cost_beyond_abstaining(s, rule.target)
    value, interval = achieved[rule.quantity]
    sign = -1.0 if rule.quantity == "coverage" else 1.0
    ends = sorted((sign * (interval.low - rule.target), sign * (interval.high - rule.target)))
    moved = Interval(
        ends[0], ends[1], interval.level, interval.method, interval.standard_error, interval.note
    )
    return sign * (value - rule.target), moved


def _verdict(rule: DecisionRule, s: AcceptedLosses, interval: Interval) -> Verdict:
    if not rule.attainable:
        return "unattainable"
    if rule.target is None or not rule.quantity:
        return "no target"
    if np.isnan(interval.low) and not s.accepted.any():
        return "nothing accepted"
    if interval.high <= 0:
        return "holds"
    return "broken" if interval.low > 0 else "cannot tell"
