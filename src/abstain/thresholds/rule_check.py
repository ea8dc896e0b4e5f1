"""What a rule achieves on data: numbers with intervals, and whether its target holds."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from abstain._foundation import checks
from abstain._foundation.weights import drop_zero_weights
from abstain.confidence import ConfidenceScore
from abstain.errors import InputError
from abstain.inference.influence import standard_error
from abstain.inference.intervals import (
    Interval,
    clopper_pearson,
    effective_sample_size,
    interval_from_influence,
    no_interval,
)
from abstain.thresholds.rule import DecisionRule
from abstain.typing import AnyArray, Array, BoolArray, FloatArray, Scale

_INFINITY: Final = float("inf")
_NAN: Final = float("nan")
UNLABELED: Final = "no labels are known"

Verdict = Literal["holds", "broken", "cannot tell", "nothing accepted", "unattainable", "no target"]


@dataclass(frozen=True, eq=False)
class AcceptedLosses:
    """Validated losses of samples of weight above zero, and which of them are accepted."""

    #: Shape (n,); None without labels.
    loss: FloatArray | None
    accepted: BoolArray
    weight: FloatArray | None
    level: float
    #: Whether every loss is 0 or 1, those of the samples outside this subset included.
    is_binary: bool
    #: Which of the rows that were passed these are; None where all have a weight.
    from_rows: BoolArray | None = None

    @property
    def n(self) -> int:
        """Number of samples."""
        return int(self.accepted.size)

    def mean(self, x: Array) -> float:
        """Weighted mean over all samples."""
        return float(np.average(x, weights=self.weight))

    def subset(self, rows: Array) -> "AcceptedLosses":
        """Return some of the samples, by their indices or a mask."""
        loss = None if self.loss is None else self.loss[rows]
        weight = None if self.weight is None else self.weight[rows]
        return replace(self, loss=loss, accepted=self.accepted[rows], weight=weight)


def sample(
    accepted: Array, loss: AnyArray | None, weight: AnyArray | None, *, level: float
) -> AcceptedLosses:
    """Validate losses (None without labels) and weights of samples with known decisions."""
    w = checks.weight(weight, length=accepted.size)
    if loss is None:
        rows, w, accepted = drop_zero_weights(w, accepted)
        return AcceptedLosses(None, accepted, w, level, is_binary=True, from_rows=rows)
    x = checks.loss(loss, length=accepted.size).astype(np.float64)
    rows, w, x, accepted = drop_zero_weights(w, x, accepted)
    if w is not None:
        checks.finite_sum(w * x, "weight * loss")
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
        size = min(effective_sample_size(value, error), float(s.n)) if error > 0 else size
    return value, clopper_pearson(value * size, size, level=s.level)


def mean(s: AcceptedLosses, x: FloatArray, *, signed: bool = False) -> tuple[float, Interval]:
    """Return the mean of `x` with the Student interval of its influence function."""
    value = s.mean(x)
    low = -_INFINITY if signed else 0.0
    found = interval_from_influence(
        value, x - value, level=s.level, bounds=(low, _INFINITY), weight=s.weight
    )
    return value, found


def selective_risk(s: AcceptedLosses) -> tuple[float, Interval]:
    """Mean loss of the accepted; NaN when there are none, or without labels."""
    inner = s.subset(s.accepted)
    if inner.n == 0:
        return _NAN, no_interval(s.level, "nothing is accepted at this threshold")
    if inner.loss is None:
        return _NAN, no_interval(s.level, UNLABELED)
    return share(inner, inner.loss > 0) if s.is_binary else mean(inner, inner.loss)


def generalized_risk(s: AcceptedLosses) -> tuple[float, Interval]:
    """Mean over all samples of the loss where accepted; NaN without labels."""
    if s.loss is None:
        return _NAN, no_interval(s.level, UNLABELED)
    if s.is_binary or not (s.loss * s.accepted).any():
        return share(s, s.accepted & (s.loss > 0))
    return mean(s, s.loss * s.accepted)


@dataclass(frozen=True)
class StageCheck:
    """What a decision rule, one stage of a cascade, or the person answers on a data set.

    Attributes
    ----------
    name : str
        Of the stage; "" for a decision rule.
    answered : int
        Number of samples (of weight above 0) that it answers.
    share : float
        Their share of all samples.
    share_interval : Interval
        Exact (Clopper-Pearson).
    risk : float
        Mean loss of its answers; NaN without any, or without labels.
    risk_interval : Interval
        Exact for 0/1 losses, otherwise from the influence function with a t quantile.
    """

    name: str
    answered: int
    share: float
    share_interval: Interval
    risk: float
    risk_interval: Interval


@dataclass(frozen=True)
class LoadCheck:
    """How much work and cost a cascade causes on a data set.

    Attributes
    ----------
    reviews : float
        Share of the samples that go to the person.
    reviews_interval : Interval
        Exact (Clopper-Pearson); with a limit it holds together with that of the risk.
    excess : float
        The share minus its limit; NaN without a limit.
    verdict : str
        "holds", "broken" or "cannot tell"; "no target" without a limit.
    days_over : float
        The share of days with more reviews than a person can do, at this load; NaN where the plan
        has no days.
    cost : float
        Mean cost of a sample; NaN without labels, if errors have a cost.
    cost_interval : Interval
        From the t distribution.
    """

    reviews: float
    reviews_interval: Interval
    excess: float
    verdict: Verdict
    days_over: float
    cost: float
    cost_interval: Interval


@dataclass(frozen=True)
class RuleCheck:
    """What a decision rule or a cascade achieves on one data set, against its target.

    Attributes
    ----------
    name : str
        Name of the data set.
    rule : DecisionRule or Cascade
        The rule that was checked; of a group that has its own, that one.
    n : int
        Samples (of weight above 0).
    stages : tuple of StageCheck
        Who answers: the rule; or each stage of a cascade, the person last.
    risk : float
        Mean over all samples of the loss of the answers. For a decision rule it is the generalized
        risk, coverage x selective risk. NaN without labels.
    risk_interval : Interval
        Exact (Clopper-Pearson) for shares, otherwise from the influence function with a t quantile;
        NaN ends and a note where there is none.
    excess : float
        How much worse than the target: achieved risk minus target, target minus achieved coverage,
        or, for a rule by cost, the mean cost a sample minus the cost of abstaining on all.
        Positive is worse. NaN without a target, for the selective risk of nothing, and for a risk
        without labels.
    excess_interval : Interval
        Of the excess.
    verdict : str
        "holds" when the interval of the excess lies at or below 0, "broken" when above, else
        "cannot tell"; "nothing accepted" for the selective risk of nothing, "unattainable" for a
        rule without a threshold, "no target" for a threshold from elsewhere. The worst of the
        groups and of the limit to the load, if there are any.
    group : str
        Name of the group; "" for a whole.
    alone : str
        The verdict by the excess alone, where there are groups or `load`; "" otherwise.
    together : int
        How many verdicts hold together at the level that was asked for: 1, or the whole and its
        groups, of which each interval then has a higher level.
    load : LoadCheck or None
        Of a cascade.
    """

    name: str
    rule: Any
    n: int
    stages: tuple[StageCheck, ...]
    risk: float
    risk_interval: Interval
    excess: float
    excess_interval: Interval
    verdict: Verdict
    group: str = ""
    alone: str = ""
    together: int = 1
    load: LoadCheck | None = None

    @property
    def accepted(self) -> int:
        """Number of samples that the rule, or the first stage, answers."""
        return self.stages[0].answered

    @property
    def coverage(self) -> float:
        """Share (of the weight) that the rule, or the first stage, answers."""
        return self.stages[0].share

    @property
    def coverage_interval(self) -> Interval:
        """Interval of the coverage."""
        return self.stages[0].share_interval

    @property
    def selective_risk(self) -> float:
        """Mean loss of the answers of the rule, or of the first stage."""
        return self.stages[0].risk

    @property
    def selective_risk_interval(self) -> Interval:
        """Interval of the selective risk."""
        return self.stages[0].risk_interval

    @property
    def generalized_risk(self) -> float:
        """The risk, by the name that it has for a decision rule."""
        return self.risk

    @property
    def generalized_risk_interval(self) -> Interval:
        """Interval of the generalized risk."""
        return self.risk_interval

    @property
    def label(self) -> str:
        """Name of the data set, with its group where it is one."""
        return ": ".join(part for part in (self.name, self.group) if part)

    @property
    def note(self) -> str:
        """What to know of the verdict; empty when there is nothing."""
        if self.alone and self.alone != self.verdict:
            worse = "a group" if self.load is None else "the load"
            return f"by itself: {self.alone}; {worse}: {self.verdict}"
        return self.excess_interval.note

    def row(self) -> dict[str, str | int | float | None]:
        """Return the check as one row of plain values, for a table.

        Returns
        -------
        dict
            Names to texts and numbers, each estimate with `_low` and `_high`. For a decision rule:
            name, subgroup, method, guarantee, threshold, target, delta, n, accepted, the achieved
            numbers, excess and verdict. For a cascade: name, n, risk, reviews, cost, the excesses
            and verdicts, and `answered_NAME` and `risk_NAME` of each stage.
        """
        if self.load is not None:
            load = self.load
            row: dict[str, str | int | float | None] = {
                "name": self.name,
                "n": self.n,
                **_with_interval("risk", self.risk, self.risk_interval),
                **_with_interval("reviews", load.reviews, load.reviews_interval),
                **_with_interval("cost", load.cost, load.cost_interval),
                "excess": self.excess,
                "load_excess": load.excess,
                "days_over": load.days_over,
                "risk_verdict": self.alone,
                "load_verdict": load.verdict,
                "verdict": self.verdict,
            }
            for stage in self.stages:
                row[f"answered_{stage.name}"] = stage.share
                row[f"risk_{stage.name}"] = stage.risk
            return row
        rule = self.rule
        return {
            "name": self.name,
            "subgroup": self.group,
            "method": rule.method,
            "guarantee": rule.guarantee,
            "threshold": rule.threshold,
            "target": rule.target,
            "delta": rule.delta,
            "n": self.n,
            "accepted": self.accepted,
            **_with_interval("coverage", self.coverage, self.coverage_interval),
            **_with_interval("selective_risk", self.selective_risk, self.selective_risk_interval),
            **_with_interval("generalized_risk", self.risk, self.risk_interval),
            **_with_interval("excess", self.excess, self.excess_interval),
            "verdict": self.verdict,
        }


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
    n_accepted = int(np.count_nonzero(s.accepted))
    stage = StageCheck("", n_accepted, coverage, coverage_interval, selective, selective_interval)
    if rule.target is None or not rule.quantity:
        excess, excess_interval = _NAN, no_interval(s.level, "the rule has no target")
    elif rule.quantity == "cost":
        excess, excess_interval = _cost_beyond_abstaining(s, rule.target)
    else:
        value, interval = {
            "coverage": (coverage, coverage_interval),
            "selective risk": (selective, selective_interval),
            "generalized risk": (generalized, generalized_interval),
        }[rule.quantity]
        excess, excess_interval = excess_of(
            value, interval, rule.target, is_minimum=rule.quantity == "coverage"
        )
    verdict = verdict_of(excess_interval)
    if not rule.attainable:
        verdict = "unattainable"
    elif rule.target is None or not rule.quantity:
        verdict = "no target"
    elif s.loss is not None and n_accepted == 0 and np.isnan(excess_interval.low):
        verdict = "nothing accepted"
    return RuleCheck(
        name,
        rule,
        s.n,
        (stage,),
        generalized,
        generalized_interval,
        excess,
        excess_interval,
        verdict,
    )


def _cost_beyond_abstaining(s: AcceptedLosses, cost: float) -> tuple[float, Interval]:
    """Mean cost a sample, minus that of abstaining on every sample."""
    if s.loss is None:
        return _NAN, no_interval(s.level, UNLABELED)
    return mean(s, (s.loss - cost) * s.accepted, signed=True)


def excess_of(
    value: float, interval: Interval, target: float, *, is_minimum: bool = False
) -> tuple[float, Interval]:
    """Return how much worse than a target a value is, with the interval."""
    sign = -1.0 if is_minimum else 1.0
    low, high = sorted((sign * (interval.low - target), sign * (interval.high - target)))
    return sign * (value - target), replace(interval, low=low, high=high)


def verdict_of(excess_interval: Interval) -> Verdict:
    """Judge an excess by its interval."""
    if excess_interval.high <= 0:
        return "holds"
    return "broken" if excess_interval.low > 0 else "cannot tell"


def worst_verdict(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst of "broken", "cannot tell" and "holds"; others are left out."""
    worst_first: tuple[Verdict, ...] = ("broken", "cannot tell", "holds")
    return min((v for v in verdicts if v in worst_first), key=worst_first.index)


def _with_interval(name: str, value: float, interval: Interval) -> dict[str, float]:
    return {name: value, f"{name}_low": interval.low, f"{name}_high": interval.high}
