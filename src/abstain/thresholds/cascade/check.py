"""What a cascade achieves on data: who answers, risk, load and cost, and whether it holds there."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from abstain.inference.intervals import Interval, level_of, no_interval
from abstain.thresholds.cascade.capacity import overflow_chance
from abstain.thresholds.cascade.data import CascadeData
from abstain.thresholds.cascade.record import Cascade
from abstain.thresholds.rule_check import AcceptedLosses, Verdict, mean, selective_risk, share
from abstain.typing import IntArray

_NAN = float("nan")
_UNLABELED = "no labels are known"
_WORST_FIRST: tuple[Verdict, ...] = ("broken", "cannot tell", "holds")


@dataclass(frozen=True, eq=False)
class StageCheck:
    """What one stage of a cascade, or the person, answers on a data set.

    Attributes
    ----------
    name : str
        Of the stage.
    answered : int
        How many samples it answers.
    share : float
        Of all samples.
    share_interval : Interval
        Exact (Clopper-Pearson).
    risk : float
        Mean loss of its answers; NaN without any, or without labels.
    risk_interval : Interval
        Exact for 0/1 losses, else by the t distribution.
    """

    name: str
    answered: int
    share: float
    share_interval: Interval
    risk: float
    risk_interval: Interval


@dataclass(frozen=True, eq=False)
class CascadeCheck:
    """What a cascade achieves on one data set, against its promise.

    Attributes
    ----------
    name : str
        Name of the data set.
    n : int
        Samples.
    stages : tuple of StageCheck
        What each stage answers, the person last.
    risk, reviews, cost : float
        Mean loss of all answers, share sent to the person, mean cost of a sample. The first and
        the last are NaN without labels (the cost where errors have one).
    risk_interval, reviews_interval, cost_interval : Interval
        Exact (Clopper-Pearson) for shares, else by the t distribution. Those of the risk and of the
        reviews hold together at the level where both are promised.
    excess, load_excess : float
        Risk and share of reviews, each minus its target; above 0 is worse than promised.
    days_over : float
        The share of days with more reviews than a person can do, at this load; NaN where the plan
        has no days.
    risk_verdict, load_verdict : str
        "holds", "broken" or "cannot tell", as for a `RuleCheck`; "no target" for a load without a
        limit.
    verdict : str
        The worse of the two; "unattainable" for a cascade that promises nothing.
    """

    name: str
    n: int
    stages: tuple[StageCheck, ...]
    risk: float
    risk_interval: Interval
    reviews: float
    reviews_interval: Interval
    cost: float
    cost_interval: Interval
    excess: float
    load_excess: float
    days_over: float
    risk_verdict: Verdict
    load_verdict: Verdict
    verdict: Verdict

    def row(self) -> dict[str, Any]:
        """Return the check as one row of plain values, for a table.

        Returns
        -------
        dict
            Names to texts and numbers: each number with `_low` and `_high`, and `answered_NAME` and
            `risk_NAME` of each stage.
        """
        out: dict[str, Any] = {"name": self.name, "n": self.n}
        for number in ("risk", "reviews", "cost"):
            interval: Interval = getattr(self, f"{number}_interval")
            out[number] = getattr(self, number)
            out[f"{number}_low"], out[f"{number}_high"] = interval.low, interval.high
        out |= {"excess": self.excess, "load_excess": self.load_excess, "days_over": self.days_over}
        out |= {"risk_verdict": self.risk_verdict, "load_verdict": self.load_verdict}
        out["verdict"] = self.verdict
        for stage in self.stages:
            out[f"answered_{stage.name}"] = stage.share
            out[f"risk_{stage.name}"] = stage.risk
        return out


def check_decisions(
    cascade: Cascade,
    answered: IntArray,
    data: CascadeData,
    *,
    name: str = "",
    level: float = 0.95,
) -> CascadeCheck:
    """Compute what a cascade achieves on other data, and whether its promise holds there.

    Parameters
    ----------
    cascade : Cascade
        The cascade.
    answered : ndarray of shape (n,)
        Who answers each sample, as `Cascade.decide` says.
    data : CascadeData
        The samples, with their losses where these are known.
    name : str, default=""
        Name of the data, for tables.
    level : float, default=0.95
        Of every interval; of those of risk and load together where both are promised.

    Returns
    -------
    CascadeCheck
        Shares, risks and cost with intervals; verdicts.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.thresholds.cascade import (
    ...     Cascade,
    ...     CascadeData,
    ...     CascadeStage,
    ...     CascadePlan,
    ...     check_decisions,
    ... )
    >>> stages = (CascadeStage("small", "some", 0.5),)
    >>> cascade = Cascade(stages, CascadePlan(max_risk=0.05, delta=0.1), 100, 50, (0.5, 0.5), 0.01)
    >>> confidence = np.repeat([0.9, 0.1], 500)
    >>> data = CascadeData.of(["small"], [confidence], [np.arange(1000) % 2 == 1], person=0)
    >>> found = check_decisions(cascade, cascade.decide(confidence), data)
    >>> found.risk, found.reviews, found.verdict
    (0.25, 0.5, 'broken')
    """
    plan, level = cascade.plan, level_of(level)
    together = 1 - (1 - level) / (2 if plan.limited else 1)
    person = answered == len(cascade.stages)
    whole = _losses(data, answered, together)
    load, load_interval = share(whole, person)
    risk, risk_interval = _risk(whole, known=data.losses is not None)
    cost, cost_interval = _cost(cascade, answered, data, level)
    risk_verdict = _verdict(risk_interval, plan.max_risk)
    load_verdict: Verdict = "no target"
    if plan.limited:
        by_design = any(stage.answers == "all" for stage in cascade.stages)
        load_verdict = "holds" if by_design else _verdict(load_interval, plan.capacity)
    days = _NAN
    if plan.reviews is not None and plan.arrivals is not None:
        days = overflow_chance(load, plan.reviews, plan.arrivals)
    return CascadeCheck(
        name,
        data.n,
        tuple(_stage(cascade, place, answered, data, level) for place in range(len(cascade.names))),
        risk,
        risk_interval,
        load,
        load_interval,
        cost,
        cost_interval,
        risk - plan.max_risk,
        load - plan.capacity if plan.limited else _NAN,
        days,
        risk_verdict,
        load_verdict,
        _worst(cascade, risk_verdict, load_verdict),
    )


def _losses(data: CascadeData, answered: IntArray, level: float) -> AcceptedLosses:
    loss = np.zeros(data.n) if data.losses is None else data.loss_of(answered)
    everyone = np.ones(data.n, np.bool_)
    return AcceptedLosses(loss, everyone, None, level, bool(((loss == 0) | (loss == 1)).all()))


def _risk(s: AcceptedLosses, *, known: bool) -> tuple[float, Interval]:
    if not known:
        return _NAN, no_interval(s.level, _UNLABELED)
    return selective_risk(s)


def _cost(
    cascade: Cascade, answered: IntArray, data: CascadeData, level: float
) -> tuple[float, Interval]:
    spent = np.asarray(cascade.costs(answered), dtype=np.float64)
    if cascade.plan.error_cost:
        if data.losses is None:
            return _NAN, no_interval(level, _UNLABELED)
        spent = spent + cascade.plan.error_cost * data.loss_of(answered)
    s = _losses(data, answered, level)
    if not spent.any():
        return 0.0, no_interval(level, "nothing costs anything")
    return mean(s, spent)


def _stage(
    cascade: Cascade, place: int, answered: IntArray, data: CascadeData, level: float
) -> StageCheck:
    own = answered == place
    s = _losses(data, answered, level)
    part, interval = share(s, own)
    inner = s.part(own)
    risk, risk_interval = _risk(inner, known=data.losses is not None)
    name = cascade.names[place]
    return StageCheck(name, int(np.count_nonzero(own)), part, interval, risk, risk_interval)


def _verdict(interval: Interval, target: float) -> Verdict:
    if interval.high <= target:
        return "holds"
    return "broken" if interval.low > target else "cannot tell"


def _worst(cascade: Cascade, *verdicts: Verdict) -> Verdict:
    if not cascade.attainable:
        return "unattainable"
    return min((v for v in verdicts if v in _WORST_FIRST), key=_WORST_FIRST.index)
