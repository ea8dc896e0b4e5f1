"""Measure the performance of a rule on data, with confidence intervals and verdicts."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from abstain._foundation import checks
from abstain._foundation.checks import drop_zero_weights
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
UNLABELED: Final = "there are no labels"

Verdict = Literal["holds", "broken", "cannot tell", "nothing accepted", "unattainable", "no target"]


@dataclass(frozen=True, eq=False)
class AcceptedLosses:
    """Losses of the samples with positive weight, and a mask of the accepted samples."""

    #: Losses of shape (n,), or None without labels.
    loss: FloatArray | None
    accepted: BoolArray
    weight: FloatArray | None
    level: float
    #: Whether every loss of the data set is 0 or 1, including samples outside this subset.
    is_binary: bool
    #: Indices or mask of the samples in the original arrays. None if all weights are positive.
    source_rows: BoolArray | None = None

    @property
    def n(self) -> int:
        """Number of samples."""
        return int(self.accepted.size)

    def mean(self, x: Array) -> float:
        """Return the weighted mean of `x` over all samples."""
        return float(np.average(x, weights=self.weight))

    def subset(self, rows: Array) -> "AcceptedLosses":
        """Return the samples that an index array or a mask selects."""
        loss = None if self.loss is None else self.loss[rows]
        weight = None if self.weight is None else self.weight[rows]
        return replace(self, loss=loss, accepted=self.accepted[rows], weight=weight)


def check_losses(
    accepted: Array, loss: AnyArray | None, weight: AnyArray | None, *, level: float
) -> AcceptedLosses:
    """Validate weights and losses, and drop samples of weight 0; losses may be None."""
    valid_weight = checks.weight(weight, length=accepted.size)
    if loss is None:
        rows, valid_weight, accepted = drop_zero_weights(valid_weight, accepted)
        return AcceptedLosses(None, accepted, valid_weight, level, is_binary=True, source_rows=rows)
    losses = checks.loss(loss, length=accepted.size).astype(np.float64)
    rows, valid_weight, losses, accepted = drop_zero_weights(valid_weight, losses, accepted)
    if valid_weight is not None:
        checks.finite_sum(valid_weight * losses, "weight * loss")
    is_binary = bool(((losses == 0) | (losses == 1)).all())
    return AcceptedLosses(losses, accepted, valid_weight, level, is_binary, rows)


def share_with_interval(s: AcceptedLosses, mask: BoolArray) -> tuple[float, Interval]:
    """Return the share of the samples in a mask, with an exact interval.

    With weights, the interval uses the effective sample size.
    """
    count = int(np.count_nonzero(mask))
    if s.weight is None:
        return count / s.n, clopper_pearson(count, s.n, level=s.level)
    share = min(max(s.mean(mask), 0.0), 1.0)
    effective_size = float(s.weight.sum() ** 2 / (s.weight @ s.weight))
    if 0 < count < s.n:
        error = standard_error((mask - share).astype(np.float64), weight=s.weight)
        if error > 0:
            effective_size = min(effective_sample_size(share, error), float(s.n))
    interval = clopper_pearson(share * effective_size, effective_size, level=s.level)
    return share, interval


def mean_with_interval(
    s: AcceptedLosses, x: FloatArray, *, signed: bool = False
) -> tuple[float, Interval]:
    """Return the weighted mean of `x` with a t interval."""
    value = s.mean(x)
    low = -_INFINITY if signed else 0.0
    interval = interval_from_influence(
        value, x - value, level=s.level, bounds=(low, _INFINITY), weight=s.weight
    )
    return value, interval


def selective_risk(s: AcceptedLosses) -> tuple[float, Interval]:
    """Return the mean loss of the accepted samples, or NaN without accepted samples or labels."""
    accepted = s.subset(s.accepted)
    if accepted.n == 0:
        return _NAN, no_interval(s.level, "nothing is accepted at this threshold")
    if accepted.loss is None:
        return _NAN, no_interval(s.level, UNLABELED)
    if s.is_binary:
        return share_with_interval(accepted, accepted.loss > 0)
    return mean_with_interval(accepted, accepted.loss)


def generalized_risk(s: AcceptedLosses) -> tuple[float, Interval]:
    """Return the total loss of accepted samples divided by the number of samples, if labeled."""
    if s.loss is None:
        return _NAN, no_interval(s.level, UNLABELED)
    if s.is_binary or not (s.loss * s.accepted).any():
        return share_with_interval(s, s.accepted & (s.loss > 0))
    return mean_with_interval(s, s.loss * s.accepted)


@dataclass(frozen=True)
class StageCheck:
    """Performance of a decision rule, of one stage of a cascade, or of the person.

    Attributes
    ----------
    name : str
        Name of the stage, or "" for a decision rule.
    n_answered : int
        Number of answered samples with positive weight.
    share : float
        Share of all samples that are answered.
    share_interval : Interval
        Exact (Clopper-Pearson) confidence interval.
    risk : float
        Mean loss of the answered samples. The risk is NaN if no sample is answered or labels are
        missing.
    risk_interval : Interval
        Confidence interval of the risk. The interval is exact for 0/1 losses, and otherwise a t
        interval from the influence function.
    """

    name: str
    n_answered: int
    share: float
    share_interval: Interval
    risk: float
    risk_interval: Interval


@dataclass(frozen=True)
class LoadCheck:
    """Load and cost of a cascade on a data set.

    Attributes
    ----------
    reviews : float
        Share of all samples that the person answers.
    reviews_interval : Interval
        Exact (Clopper-Pearson) confidence interval. If the plan limits the capacity, the interval
        holds jointly with the interval of the risk.
    excess : float
        The share minus its limit, or NaN without a limit.
    verdict : str
        "holds", "broken" or "cannot tell", or "no target" without a limit.
    days_over : float
        Expected share of days with more reviews than the daily capacity. The share is NaN if the
        plan has no daily capacity.
    cost : float
        Mean cost of a sample. The cost is NaN if labels are missing and errors have a cost.
    cost_interval : Interval
        t interval.
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
    """Performance of a decision rule or a cascade on one data set, compared with its target.

    Attributes
    ----------
    name : str
        Name of the data set.
    rule : DecisionRule or Cascade
        The rule that was checked, which is the rule of the group if the group has its own rule.
    n : int
        Number of samples with positive weight.
    stages : tuple of StageCheck
        One entry for a decision rule. For a cascade, one entry for each stage and one for the
        person.
    risk : float
        Total loss of the answers divided by the number of all samples. For a decision rule, the
        value is the generalized risk (coverage x selective risk). NaN without labels.
    risk_interval : Interval
        Confidence interval of the risk. The interval is exact (Clopper-Pearson) for 0/1 losses,
        and otherwise a t interval from the influence function. If no interval can be computed, its
        bounds are NaN and its note states the reason.
    excess : float
        Difference from the target, where positive is worse. The excess is the achieved risk minus
        the target, or the target minus the achieved coverage. For a rule that minimizes the cost,
        the excess is the mean cost of a sample minus the cost of abstaining on every sample. The
        excess is NaN if there is no target, if the selective risk is limited and no sample is
        accepted, or if a risk is limited and labels are missing.
    excess_interval : Interval
        Confidence interval of the excess.
    verdict : str
        "holds" if the interval of the excess lies at or below 0, "broken" if the interval lies
        above 0, and otherwise "cannot tell". "nothing accepted" for the selective risk if no sample
        is accepted. "unattainable" for a rule without a threshold, and "no target" for a user
        threshold. If groups are checked or the capacity is limited, the verdict is "broken" if any
        target is broken, and "holds" only if all targets hold.
    group : str
        Name of the group, or "" for the total.
    limit : str
        Name of the limit that is checked in the group, if each group has several limits. "" for the
        group itself.
    excess_verdict : str
        The verdict of the excess alone if groups or `load` exist, and "" otherwise.
    n_joint_verdicts : int
        Number of verdicts that hold jointly at the requested level. If several verdicts hold
        jointly, their intervals have a higher level.
    load : LoadCheck or None
        Load and cost of a cascade.
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
    limit: str = ""
    excess_verdict: Verdict | Literal[""] = ""
    n_joint_verdicts: int = 1
    load: LoadCheck | None = None

    @property
    def accepted(self) -> int:
        """Number of samples that the rule or the first stage of a cascade answers."""
        return self.stages[0].n_answered

    @property
    def coverage(self) -> float:
        """Weighted share of the samples that the rule or the first stage of a cascade answers."""
        return self.stages[0].share

    @property
    def coverage_interval(self) -> Interval:
        """Interval of the coverage."""
        return self.stages[0].share_interval

    @property
    def selective_risk(self) -> float:
        """Mean loss of the answers of the rule, or of the first stage of a cascade."""
        return self.stages[0].risk

    @property
    def selective_risk_interval(self) -> Interval:
        """Interval of the selective risk."""
        return self.stages[0].risk_interval

    @property
    def generalized_risk(self) -> float:
        """Generalized risk of a decision rule, which equals the attribute `risk`."""
        return self.risk

    @property
    def generalized_risk_interval(self) -> Interval:
        """Interval of the generalized risk."""
        return self.risk_interval

    @property
    def subgroup(self) -> str:
        """Name of the group and of the limit, or "" for the check of all samples."""
        return f"{self.group}: {self.limit}" if self.limit else self.group

    @property
    def label(self) -> str:
        """Name of the data set, followed by the name of the group if the check is for a group."""
        return ": ".join(text for text in (self.name, self.subgroup) if text)

    @property
    def note(self) -> str:
        """Explanation of the verdict, or an empty text."""
        if self.excess_verdict and self.excess_verdict != self.verdict:
            worst = "a group" if self.load is None else "the load"
            return f"total: {self.excess_verdict}; {worst}: {self.verdict}"
        return self.excess_interval.note

    def row(self) -> dict[str, str | int | float | None]:
        """Return the check as one row of a table.

        Returns
        -------
        dict
            The columns of the row by name. The bounds of the interval of each estimate have the
            suffixes `_low` and `_high`. For a decision rule, the columns are name, subgroup,
            method, guarantee, threshold, target, delta, n, accepted, coverage, both risks, excess
            and verdict. For a cascade, the columns are name, n, risk, reviews, cost, the excesses
            and verdicts, and `answered_NAME` and `risk_NAME` for each stage.
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
                "risk_verdict": self.excess_verdict,
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
            "subgroup": self.subgroup,
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


def apply_rule(
    rule: DecisionRule, confidence: AnyArray, scale: Scale | None, by: AnyArray | None = None
) -> BoolArray:
    """Return a mask of the samples that a rule accepts; `by` contains their groups."""
    rule_object: object = rule
    if not isinstance(rule_object, DecisionRule):
        raise InputError(f"`rule` must be a DecisionRule; got {type(rule_object).__name__}")
    if not isinstance(confidence, ConfidenceScore):
        confidence = checks.confidence(confidence)
    return np.asarray(rule.apply(confidence, group=by, scale=scale), dtype=np.bool_)


def measure_rule(rule: DecisionRule, s: AcceptedLosses, name: str) -> RuleCheck:
    """Measure the performance of a rule whose decisions are already computed."""
    coverage, coverage_interval = share_with_interval(s, s.accepted)
    selective, selective_interval = selective_risk(s)
    generalized, generalized_interval = generalized_risk(s)
    n_accepted = int(np.count_nonzero(s.accepted))
    stage = StageCheck("", n_accepted, coverage, coverage_interval, selective, selective_interval)
    if rule.target is None or not rule.quantity:
        excess, excess_interval = _NAN, no_interval(s.level, "the rule has no target")
    elif rule.quantity == "cost":
        excess, excess_interval = _cost_beyond_abstaining(s, rule.target)
    elif rule.quantity == "coverage":
        excess, excess_interval = excess_over_target(
            coverage, coverage_interval, rule.target, is_minimum=True
        )
    elif rule.quantity == "selective risk":
        excess, excess_interval = excess_over_target(selective, selective_interval, rule.target)
    else:
        excess, excess_interval = excess_over_target(generalized, generalized_interval, rule.target)
    verdict = decide_verdict(excess_interval)
    if not rule.attainable:
        verdict = "unattainable"
    elif rule.target is None or not rule.quantity:
        verdict = "no target"
    elif s.loss is not None and n_accepted == 0 and np.isnan(excess_interval.low):
        verdict = "nothing accepted"
    return RuleCheck(
        name=name,
        rule=rule,
        n=s.n,
        stages=(stage,),
        risk=generalized,
        risk_interval=generalized_interval,
        excess=excess,
        excess_interval=excess_interval,
        verdict=verdict,
    )


def _cost_beyond_abstaining(s: AcceptedLosses, cost: float) -> tuple[float, Interval]:
    """Return the mean cost of a sample minus the cost of abstaining on every sample."""
    if s.loss is None:
        return _NAN, no_interval(s.level, UNLABELED)
    return mean_with_interval(s, (s.loss - cost) * s.accepted, signed=True)


def excess_over_target(
    value: float, interval: Interval, target: float, *, is_minimum: bool = False
) -> tuple[float, Interval]:
    """Return by how much a value misses its target, and the interval of this excess."""
    sign = -1.0 if is_minimum else 1.0
    low, high = sorted((sign * (interval.low - target), sign * (interval.high - target)))
    return sign * (value - target), replace(interval, low=low, high=high)


def decide_verdict(excess_interval: Interval) -> Verdict:
    """Return the verdict that follows from the interval of an excess."""
    if excess_interval.high <= 0:
        return "holds"
    return "broken" if excess_interval.low > 0 else "cannot tell"


def worst_verdict(verdicts: Iterable[Verdict]) -> Verdict:
    """Return "broken", "cannot tell" or "holds", the first that occurs, or else "no target"."""
    worst_first: tuple[Verdict, ...] = ("broken", "cannot tell", "holds")
    decisive = (v for v in verdicts if v in worst_first)
    return min(decisive, key=worst_first.index, default="no target")


def _with_interval(name: str, value: float, interval: Interval) -> dict[str, float]:
    return {name: value, f"{name}_low": interval.low, f"{name}_high": interval.high}
