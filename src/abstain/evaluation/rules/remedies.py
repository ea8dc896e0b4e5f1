"""Suggest sample sizes or other rules for groups in which no threshold is certified."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from abstain._foundation.scored import Scored
from abstain.evaluation.rules.conditions import AnswerCondition, answer_conditions
from abstain.evaluation.rules.data import RuleData
from abstain.evaluation.rules.subsets import OVERALL
from abstain.thresholds import DecisionRule, Limit, fit
from abstain.thresholds.limits import (
    CERTIFIABLE_ALONE,
    DEFAULT_STARTS,
    find_n_required_for_limits,
    fit_limits,
)
from abstain.thresholds.start_tests import (
    FIXED_SEQUENCE_RULES,
    StartTest,
    find_n_required,
    start_tests,
)
from abstain.typing import BoolArray

#: Largest number of groups for which remedies are computed.
_MAX_GROUPS: Final = 8
#: Step between the limits that are tried, and largest tried multiple of the requested limit.
_LIMIT_STEP, _MAX_LIMIT_MULTIPLE = 0.01, 2.0
#: Largest limit that is tried.
_MAX_RISK: Final = 0.99
#: Starts of walks that are tried for several limits, in this order.
_OTHER_STARTS: Final = ((0.95,), (0.5,), (0.25,), (0.1,))


@dataclass(frozen=True)
class AlternativeRule:
    """Another rule, with another delta, that has a threshold on the same calibration data.

    For a rule with several limits, `starts` contains the coverages at which the tests start, if
    they differ.
    """

    rule: DecisionRule
    condition: AnswerCondition
    starts: tuple[float, ...] = ()


@dataclass(frozen=True)
class Remedies:
    """Changes with which a threshold could be certified for a group that has none.

    Attributes
    ----------
    group : str
        Name of the group, or "" for a rule with one threshold.
    rule : DecisionRule
        The rule of the group, which has no threshold.
    tests : tuple of StartTest
        The tests of the rule on these data. For a rule with several limits, the tuple is empty.
    n_required : int or None
        Number of samples with which the rule includes the test `next_test`. For a rule with
        several limits, `n_required` is an estimate of the number with which a threshold can be
        certified. The value is None if more than ten times the available samples are required.
    next_test : StartTest or None
        A test that the available data would pass. If the data would pass no test, `next_test` is
        the first test. For a rule with several limits, `next_test` is None.
    alternatives : tuple of AlternativeRule
        Other rules that have a threshold on these data.
    n_wrong : int
        Number of wrong answers if all samples of the group were answered.
    max_limits : tuple of (str, float)
        The names of the limits and the largest values that were tried. The name is "overall" for a
        rule with one limit.
    """

    group: str
    rule: DecisionRule
    tests: tuple[StartTest, ...]
    n_required: int | None
    next_test: StartTest | None
    alternatives: tuple[AlternativeRule, ...]
    n_wrong: int = 0
    max_limits: tuple[tuple[str, float], ...] = ()

    @property
    def n_more(self) -> int | None:
        """Number of additional samples that `next_test` requires."""
        return None if self.n_required is None else self.n_required - self.rule.n


def find_remedies(
    rule: DecisionRule, calibration: RuleData | None, *, n_classes: int
) -> tuple[Remedies, ...]:
    """Return the remedies for each group without a threshold.

    Remedies are only available for the rules in `FIXED_SEQUENCE_RULES` with their default options.
    In addition, the losses must be 0 or 1, and the samples must not have weights.
    """
    s = None if calibration is None else calibration.s
    if calibration is None or s is None or not s.is_binary or s.weight is not None:
        return ()
    groups = [(part.name, part.rule) for part in rule.parts] if rule.per else [("", rule)]
    out = []
    for name, group_rule in groups:
        guarantees = {part.rule.guarantee for part in group_rule.parts} or {group_rule.guarantee}
        is_fixed_sequence = group_rule.method in FIXED_SEQUENCE_RULES and guarantees <= {
            "selective risk",
            "none",
        }
        if (
            group_rule.attainable
            or not is_fixed_sequence
            or group_rule.population
            or not group_rule.n
        ):
            continue
        rows = np.ones(s.confidence.size, dtype=np.bool_)
        if rule.per and calibration.threshold_group is not None:
            rows = calibration.threshold_group == name
        samples = Scored(s.confidence[rows], s.loss[rows])
        masks = {key: mask[rows] for key, mask in (calibration.limit_masks or {}).items()}
        if group_rule.parts:
            remedies = _remedies_of_limits(name, group_rule, samples, masks, n_classes)
        else:
            remedies = _remedies_of_group(name, group_rule, samples, n_classes)
        if remedies is not None:
            out.append(remedies)
        if len(out) == _MAX_GROUPS:
            break
    return tuple(out)


def _remedies_of_group(
    name: str, rule: DecisionRule, samples: Scored, n_classes: int
) -> Remedies | None:
    """Return the remedies for one group, or None if an option of the rule is not the default."""
    target, delta = rule.target or 0.0, rule.delta or 0.0
    if _refit(rule, samples, target, delta).reason != rule.reason:
        # The options of the rule, such as its starts, are not the default options.
        return None
    n_required = find_n_required(rule, samples)
    next_test = None
    if n_required is not None:
        next_tests = start_tests(n_required, rule, samples)
        next_test = next((test for test in next_tests if test.is_passed), next_tests[0])
    return Remedies(
        group=name,
        rule=rule,
        tests=tuple(start_tests(samples.n_rows, rule, samples)),
        n_required=n_required,
        next_test=next_test,
        alternatives=tuple(_alternative_rules(name, rule, samples, n_classes)),
        n_wrong=int(np.count_nonzero(samples.loss)),
        max_limits=((OVERALL, _larger_limits(target)[-1]),),
    )


def _larger_limits(target: float) -> list[float]:
    """Return the limit and the larger limits that are tried, in increasing order."""
    n_steps = round((_MAX_LIMIT_MULTIPLE - 1) * target / _LIMIT_STEP)
    limits = [round(target + step * _LIMIT_STEP, 10) for step in range(1, n_steps + 1)]
    return [target, *(limit for limit in limits if limit < 1)]


def _refit(
    rule: DecisionRule, samples: Scored, target: float, delta: float, method: str = ""
) -> DecisionRule:
    refitted = fit(
        method or rule.method, samples.confidence, samples.loss, max_risk=target, delta=delta
    )
    return refitted.for_score(rule.score, scale=rule.scale)


def _alternative_rules(
    name: str, rule: DecisionRule, samples: Scored, n_classes: int
) -> Iterator[AlternativeRule]:
    """Yield other rules with which a threshold can be certified on these data.

    An alternative rule is a second attempt on the same data, so the failure probabilities of both
    rules add up. The alternative uses delta / 2, so that either guarantee fails with probability
    at most 1.5 delta.
    """
    target, delta = rule.target or 0.0, (rule.delta or 0.0) / 2
    candidates = [
        _refit(rule, samples, target, delta, method)
        for method in FIXED_SEQUENCE_RULES
        if method != rule.method
    ]
    for limit in _larger_limits(target)[1:]:
        larger = _refit(rule, samples, limit, delta)
        if larger.attainable:
            candidates.append(larger)
            break
    for candidate in candidates:
        if candidate.attainable:
            condition = _condition(name, candidate, samples, n_classes)
            yield AlternativeRule(candidate, condition)


def _condition(name: str, rule: DecisionRule, samples: Scored, n_classes: int) -> AnswerCondition:
    data = RuleData((), "", samples.confidence, samples.loss, None)
    (condition,) = answer_conditions(rule, [data], n_classes=n_classes)
    return replace(condition, group=name)


# -------------------------------------------------------------------------------- several limits
def _remedies_of_limits(
    name: str,
    rule: DecisionRule,
    samples: Scored,
    masks: Mapping[str, BoolArray],
    n_classes: int,
) -> Remedies | None:
    """Return the remedies for a rule with several limits, or None for non-default starts."""
    limits = [
        Limit(part.name, part.rule.target or 0.0, masks.get(part.name))
        for part in rule.parts
        if part.rule.guarantee != "none"
    ]
    if any(limit.mask is None and limit.name != OVERALL for limit in limits):
        return None
    delta = rule.delta or 0.0
    if _refit_limits(rule, samples, limits, delta=delta).reason != rule.reason:
        return None
    alternatives = [
        AlternativeRule(candidate, _condition(name, candidate, samples, n_classes), starts)
        for candidate, starts in _other_limit_rules(rule, samples, limits, delta / 2)
    ]
    n_required = find_n_required_for_limits(samples, limits, delta=delta, starts=DEFAULT_STARTS)
    return Remedies(
        group=name,
        rule=rule,
        tests=(),
        n_required=n_required,
        next_test=None,
        alternatives=tuple(alternatives),
        n_wrong=int(np.count_nonzero(samples.loss)),
        max_limits=tuple((x.name, x.max_risk) for x in _largest_limits(rule, limits)),
    )


def _refit_limits(
    rule: DecisionRule, samples: Scored, limits: Sequence[Limit], **options: Any
) -> DecisionRule:
    refitted = fit_limits(samples.confidence, samples.loss, limits, **options)
    return refitted.for_score(rule.score, scale=rule.scale)


def _other_limit_rules(
    rule: DecisionRule, samples: Scored, limits: Sequence[Limit], delta: float
) -> Iterator[tuple[DecisionRule, tuple[float, ...]]]:
    """Yield rules with another start or with larger limits, if they have a threshold."""
    for starts in _OTHER_STARTS:
        candidate = _refit_limits(rule, samples, limits, delta=delta, starts=starts)
        if candidate.attainable:
            yield candidate, starts
            break
    increased = _increased_limits(rule, limits)
    for step in range(1, _n_steps(increased) + 1):
        larger = [_increase(x, step) if x in increased else x for x in limits]
        candidate = _refit_limits(rule, samples, larger, delta=delta)
        if candidate.attainable:
            yield candidate, ()
            return


def _increased_limits(rule: DecisionRule, limits: Sequence[Limit]) -> list[Limit]:
    """Return the limits that fail even alone, or all limits if each could be certified alone."""
    failing = [p.name for p in rule.parts if not p.rule.reason.startswith(CERTIFIABLE_ALONE)]
    return [limit for limit in limits if limit.name in failing] or list(limits)


def _n_steps(increased: Sequence[Limit]) -> int:
    largest = max(limit.max_risk for limit in increased)
    return round((_MAX_LIMIT_MULTIPLE - 1) * largest / _LIMIT_STEP)


def _largest_limits(rule: DecisionRule, limits: Sequence[Limit]) -> list[Limit]:
    """Return the limits with the largest values that are tried."""
    increased = _increased_limits(rule, limits)
    n_steps = _n_steps(increased)
    return [_increase(x, n_steps) if x in increased else x for x in limits]


def _increase(limit: Limit, step: int) -> Limit:
    """Increase a limit by a number of steps, up to a multiple of the limit."""
    max_risk = min(limit.max_risk + step * _LIMIT_STEP, _MAX_LIMIT_MULTIPLE * limit.max_risk)
    return replace(limit, max_risk=round(min(max_risk, _MAX_RISK), 10))
