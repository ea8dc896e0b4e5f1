"""Samples of a cascade, and checks of a cascade on samples."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from abstain._foundation import checks
from abstain.errors import InputError, MissingInputError
from abstain.inference.intervals import Interval, check_level, no_interval
from abstain.thresholds.cascade.record import PERSON, Cascade, overflow_probability
from abstain.thresholds.rule_check import (
    UNLABELED,
    AcceptedLosses,
    LoadCheck,
    RuleCheck,
    StageCheck,
    Verdict,
    check_losses,
    decide_verdict,
    excess_over_target,
    mean_with_interval,
    selective_risk,
    share_with_interval,
    worst_verdict,
)
from abstain.typing import AnyArray, Array, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class CascadeData:
    """Confidences and losses of n samples for each stage.

    Attributes
    ----------
    names : tuple of str
        Names of the stages.
    confidences : tuple of ndarray of shape (n,)
        The confidences of each stage, in the order of the stages.
    losses : tuple of ndarray of shape (n,), or None
        The losses of each stage, followed by the losses of the person, in [0, 1]. None without
        labels.
    """

    names: tuple[str, ...]
    confidences: tuple[Array, ...]
    losses: tuple[FloatArray, ...] | None

    @classmethod
    def from_arrays(
        cls,
        names: Sequence[str],
        confidences: Sequence[AnyArray],
        losses: Sequence[AnyArray] | None,
        person: AnyArray | float = 0.0,
    ) -> "CascadeData":
        """Validate arrays and build the data.

        Parameters
        ----------
        names : sequence of str
            Names of the stages.
        confidences, losses : sequence of array of shape (n,)
            The arrays of each stage. Without `losses`, the risk and the cost cannot be computed.
        person : array of shape (n,), or float
            Loss of each answer of the person, or their mean loss.

        Returns
        -------
        CascadeData
            The validated data.
        """
        if not names:
            raise MissingInputError("`stages` is empty; at least one is needed")
        length: int | None = None
        validated = []
        for name, confidence in zip(names, confidences, strict=True):
            values = checks.confidence(confidence, f"confidence of {name!r}", length=length)
            validated.append(np.asarray(values))
            length = values.size
        n = validated[0].size
        if losses is None:
            return cls(tuple(names), tuple(validated), None)
        all_losses = [_losses(x, n, name) for name, x in zip(names, losses, strict=True)]
        if isinstance(person, int | float):
            rate = checks.fraction(person, "person_error")
            all_losses.append(np.full(n, rate))
        else:
            all_losses.append(_losses(person, n, PERSON))
        return cls(tuple(names), tuple(validated), tuple(all_losses))

    @property
    def n(self) -> int:
        """Number of samples."""
        return int(self.confidences[0].size)

    @property
    def required_losses(self) -> tuple[FloatArray, ...]:
        """The losses, or MissingInputError without losses."""
        if self.losses is None:
            raise MissingInputError("a cascade is selected on labeled samples; pass losses")
        return self.losses

    @property
    def is_binary(self) -> bool:
        """Whether every loss is 0 or 1."""
        return all(bool(((x == 0) | (x == 1)).all()) for x in self.required_losses)

    def subset(self, rows: Array) -> "CascadeData":
        """Return the samples that an index array or a mask selects."""
        losses = None if self.losses is None else tuple(x[rows] for x in self.losses)
        return replace(self, confidences=tuple(x[rows] for x in self.confidences), losses=losses)

    def losses_of_answers(self, answered: Array) -> FloatArray:
        """Return the loss of each sample by the stage that answered it."""
        out: FloatArray = np.choose(answered, self.required_losses)
        return out


def _losses(losses: AnyArray, n: int, name: str) -> FloatArray:
    """Validate the losses of a stage, which must lie in [0, 1]."""
    try:
        values = checks.loss(losses, length=n)
        checks.unit_interval(values, "loss", hint="Divide by the largest loss possible.")
    except InputError as error:
        raise type(error)(f"stage {name!r}: {error}") from error
    return np.asarray(values, dtype=np.float64)


_NAN = float("nan")


def check_decisions(
    cascade: Cascade,
    answered: IntArray,
    data: CascadeData,
    *,
    name: str = "",
    level: float = 0.95,
) -> RuleCheck:
    """Measure the performance of a cascade on other data, and check whether its limits hold.

    Parameters
    ----------
    cascade : Cascade
        The cascade.
    answered : ndarray of shape (n,)
        The index of the answering stage of each sample, which `Cascade.decide` returns.
    data : CascadeData
        The samples, with losses if labels are available.
    name : str, default=""
        Name of the data, for tables.
    level : float, default=0.95
        Confidence level of every interval. If risk and load both have a limit, their intervals hold
        jointly at this level.

    Returns
    -------
    RuleCheck
        The share and the risk of each stage, the total risk, the load and the cost, with
        intervals, and the verdicts about the limits.

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
    >>> data = CascadeData.from_arrays(
    ...     ["small"], [confidence], [np.arange(1000) % 2 == 1], person=0
    ... )
    >>> result = check_decisions(cascade, cascade.decide(confidence), data)
    >>> result.risk, result.load.reviews, result.verdict
    (0.25, 0.5, 'broken')
    """
    plan, level = cascade.plan, check_level(level)
    joint_level = 1 - (1 - level) / (2 if plan.has_capacity_limit else 1)
    loss = None if data.losses is None else data.losses_of_answers(answered)
    all_samples = np.ones(data.n, np.bool_)
    samples = check_losses(all_samples, loss, None, level=level)
    joint_samples = check_losses(all_samples, loss, None, level=joint_level)
    risk, risk_interval = selective_risk(joint_samples)
    excess, excess_interval = excess_over_target(risk, risk_interval, plan.max_risk)
    risk_verdict = decide_verdict(excess_interval)
    load = _check_load(cascade, answered, samples, joint_samples)
    verdict: Verdict = "unattainable"
    if cascade.attainable:
        verdict = worst_verdict((risk_verdict, load.verdict))
    return RuleCheck(
        name=name,
        rule=cascade,
        n=data.n,
        stages=_check_stages(cascade, answered, samples),
        risk=risk,
        risk_interval=risk_interval,
        excess=excess,
        excess_interval=excess_interval,
        verdict=verdict,
        excess_verdict=risk_verdict,
        load=load,
    )


def _check_stages(
    cascade: Cascade, answered: IntArray, samples: AcceptedLosses
) -> tuple[StageCheck, ...]:
    """Return the share of answers and the risk of each stage and of the person."""
    stages = []
    for index, name in enumerate(cascade.names):
        is_answered = answered == index
        share, share_interval = share_with_interval(samples, is_answered)
        risk, risk_interval = selective_risk(samples.subset(is_answered))
        n_answered = int(np.count_nonzero(is_answered))
        stages.append(StageCheck(name, n_answered, share, share_interval, risk, risk_interval))
    return tuple(stages)


def _check_load(
    cascade: Cascade, answered: IntArray, samples: AcceptedLosses, joint_samples: AcceptedLosses
) -> LoadCheck:
    """Return the share of reviewed samples and the mean cost, each with an interval."""
    plan = cascade.plan
    is_reviewed = answered == len(cascade.stages)
    reviews, reviews_interval = share_with_interval(joint_samples, is_reviewed)
    excess = _NAN
    verdict: Verdict = "no target"
    if plan.has_capacity_limit:
        excess, excess_interval = excess_over_target(reviews, reviews_interval, plan.capacity)
        has_no_reviews = any(stage.answers == "all" for stage in cascade.stages)
        verdict = "holds" if has_no_reviews else decide_verdict(excess_interval)
    days_over = _NAN
    if plan.reviews is not None and plan.arrivals is not None:
        days_over = overflow_probability(reviews, plan.reviews, plan.arrivals)
    cost, cost_interval = _mean_cost(cascade, answered, samples)
    return LoadCheck(reviews, reviews_interval, excess, verdict, days_over, cost, cost_interval)


def _mean_cost(
    cascade: Cascade, answered: IntArray, samples: AcceptedLosses
) -> tuple[float, Interval]:
    """Return the mean cost of a sample, or NaN if errors have a cost and losses are unknown."""
    error_cost = cascade.plan.error_cost
    costs = np.asarray(cascade.costs(answered), dtype=np.float64)
    if samples.loss is not None:
        costs = costs + error_cost * samples.loss
    elif error_cost:
        return _NAN, no_interval(samples.level, UNLABELED)
    if not costs.any():
        return 0.0, no_interval(samples.level, "all costs are 0")
    return mean_with_interval(samples, costs)
