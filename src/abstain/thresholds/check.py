"""Does a rule keep on other data what it promised? Achieved numbers, intervals, verdicts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from abstain._foundation import checks
from abstain.confidence import ConfidenceScore
from abstain.errors import InputError
from abstain.inference.intervals import Interval, no_interval
from abstain.inference.proportions import level_of
from abstain.thresholds import _achieved
from abstain.thresholds._achieved import Sample
from abstain.thresholds.rule import DecisionRule
from abstain.typing import AnyArray, BoolArray, Scale

Verdict = Literal["holds", "broken", "cannot tell", "nothing accepted", "unattainable", "no target"]


@dataclass(frozen=True)
class RuleCheck:
    """What a decision rule achieves on one data set, against its target.

    Attributes
    ----------
    name : str
        Name of the data set.
    rule : DecisionRule
        The rule that was checked.
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


def check(
    rule: DecisionRule,
    confidence: AnyArray,
    loss: AnyArray,
    *,
    name: str = "",
    weight: AnyArray | None = None,
    level: float = 0.95,
    scale: Scale | None = None,
) -> RuleCheck:
    """Compute what a rule achieves on other data, and whether its target holds there.

    Answers: does the threshold that I chose then still do what it should, here?

    Parameters
    ----------
    rule : DecisionRule
        The rule.
    confidence, loss : array of shape (n,)
        Of the data to check on: finite confidences from the score of the rule, as an array or as
        `abstain.confidence.score` returned them; losses that are finite and not negative.
    name : str, default=""
        Name of the data, for tables.
    weight : array of shape (n,), optional
        Weights: not negative, not all zero. A row is one observation whatever its weight.
    level : float, default=0.95
        Of every interval, between 0 and 1.
    scale : {"log-odds", "probability", "score"}, optional
        What the confidences are measured in, as for `DecisionRule.apply`.

    Returns
    -------
    RuleCheck
        Coverage, selective and generalized risk with intervals; excess over the target; verdict.

    Raises
    ------
    InputError
        `rule` is no rule; confidences that may be on another scale than the threshold.
    ShapeError, DomainError
        Bad values, lengths that differ, `level` outside (0, 1).

    Notes
    -----
    The data must not be those that chose the threshold: on those every number flatters. Intervals
    of shares are exact (Clopper-Pearson); with weights they take the effective number of samples.
    "broken" on data like the calibration data happens to a rule with a guarantee with a chance of
    at most delta + (1 - level) / 2. Accepting nothing keeps a generalized risk. Cost: one pass.

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> rule = ab.thresholds.DecisionRule("risk", 0.5, target=0.1)
    >>> confidence, loss = np.repeat([0.9, 0.5, 0.1], 100), np.repeat([0, 1, 1], [190, 10, 100])
    >>> found = ab.thresholds.check(rule, confidence, loss, name="hospital B")
    >>> found.accepted, found.selective_risk, round(found.excess, 3), found.verdict
    (200, 0.05, -0.05, 'holds')
    """
    accepted = decided(rule, confidence, scale)
    return measured(rule, _achieved.sample(accepted, loss, weight, level=level_of(level)), name)


def decided(rule: DecisionRule, confidence: AnyArray, scale: Scale | None) -> BoolArray:
    """Tell what a rule accepts; refuse what is no rule."""
    given: object = rule
    if not isinstance(given, DecisionRule):
        msg = f"`rule` must be a DecisionRule; got {type(given).__name__}"
        raise InputError(msg)
    if not isinstance(confidence, ConfidenceScore):
        confidence = checks.confidence(confidence)
    return np.asarray(rule.apply(confidence, scale=scale), dtype=np.bool_)


def measured(rule: DecisionRule, s: Sample, name: str) -> RuleCheck:
    """Return what a rule achieves on samples of which it is known whether it accepts them."""
    coverage, coverage_interval = _achieved.share(s, s.accepted)
    selective, selective_interval = _achieved.selective_risk(s)
    generalized, generalized_interval = _achieved.generalized_risk(s)
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


def check_many(
    rule: DecisionRule,
    data: Mapping[str, tuple[AnyArray, ...]],
    *,
    level: float = 0.95,
    scale: Scale | None = None,
) -> tuple[RuleCheck, ...]:
    """Compute what one rule achieves on several data sets: the risk excess per shift.

    Answers: on which shifts does the threshold no longer keep its promise, and by how much?

    Parameters
    ----------
    rule : DecisionRule
        The rule.
    data : mapping from str to tuple of arrays
        Name of each data set to its (confidence, loss) or (confidence, loss, weight).
    level : float, default=0.95
        Of every interval, between 0 and 1.
    scale : {"log-odds", "probability", "score"}, optional
        What the confidences are measured in, as for `DecisionRule.apply`.

    Returns
    -------
    tuple of RuleCheck
        One a data set, in the order given; `[c.row() for c in ...]` is the table.

    Raises
    ------
    InputError
        A data set that is not two or three arrays; as in `check` otherwise.

    Notes
    -----
    The excess against the severity of the shift shows where a promise breaks; [1]_ evaluates
    scores on such shifts.

    References
    ----------
    .. [1] Jaeger et al. (2023), A call to reflect on evaluation practices for failure detection,
       https://arxiv.org/abs/2211.15259

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> rule = ab.thresholds.DecisionRule("risk", 0.5, target=0.1)
    >>> confidence, mild, hard = np.ones(100), np.arange(100) < 3, np.arange(100) < 30
    >>> found = ab.thresholds.check_many(
    ...     rule, {"mild": (confidence, mild), "hard": (confidence, hard)}
    ... )
    >>> [(c.name, round(c.excess, 2), c.verdict) for c in found]
    [('mild', -0.07, 'holds'), ('hard', 0.2, 'broken')]
    """
    out = []
    for name, arrays in data.items():
        if len(arrays) not in {2, 3}:
            msg = f"`data` must hold (confidence, loss) or (confidence, loss, weight) at {name!r}"
            raise InputError(msg)
        weight = arrays[2] if len(arrays) == 3 else None
        options: dict[str, Any] = {"name": name, "weight": weight, "level": level, "scale": scale}
        out.append(check(rule, arrays[0], arrays[1], **options))
    return tuple(out)


def _excess(
    rule: DecisionRule, s: Sample, achieved: Mapping[str, tuple[float, Interval]]
) -> tuple[float, Interval]:
    if rule.target is None or not rule.quantity:
        return float("nan"), no_interval(s.level, "the rule has no target")
    if rule.quantity == "cost":
        return _achieved.cost_beyond_abstaining(s, rule.target)
    value, interval = achieved[rule.quantity]
    sign = -1.0 if rule.quantity == "coverage" else 1.0
    ends = sorted((sign * (interval.low - rule.target), sign * (interval.high - rule.target)))
    moved = Interval(
        ends[0], ends[1], interval.level, interval.method, interval.standard_error, interval.note
    )
    return sign * (value - rule.target), moved


def _verdict(rule: DecisionRule, s: Sample, interval: Interval) -> Verdict:
    if not rule.attainable:
        return "unattainable"
    if rule.target is None or not rule.quantity:
        return "no target"
    if np.isnan(interval.low) and not s.accepted.any():
        return "nothing accepted"
    if interval.high <= 0:
        return "holds"
    return "broken" if interval.low > 0 else "cannot tell"
