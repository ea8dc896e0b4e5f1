"""Find sample sizes and other rules with which a group without a threshold would have one."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from abstain._foundation.scored import Scored
from abstain.evaluation.rules.conditions import AnswerCondition, answer_conditions
from abstain.evaluation.rules.data import RuleData
from abstain.thresholds import DecisionRule, fit
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


@dataclass(frozen=True)
class AlternativeRule:
    """Another rule that has a threshold on the same calibration data, with its own delta."""

    rule: DecisionRule
    condition: AnswerCondition


@dataclass(frozen=True)
class Remedies:
    """Changes that would give a threshold to a group of the calibration data without one.

    Attributes
    ----------
    group : str
        Name of the group, or "" for a rule with one threshold.
    rule : DecisionRule
        The rule of the group, which has no threshold.
    tests : tuple of StartTest
        The tests of the rule on these data.
    n_required : int or None
        Number of samples with which the rule includes the test `next_test`. It is None if this
        number is larger than ten times the number of samples.
    next_test : StartTest or None
        A test that the available data would pass. If no test would be passed, it is the first test.
    alternatives : tuple of AlternativeRule
        Other rules that have a threshold on these data.
    """

    group: str
    rule: DecisionRule
    tests: tuple[StartTest, ...]
    n_required: int | None
    next_test: StartTest | None
    alternatives: tuple[AlternativeRule, ...]

    @property
    def n_more(self) -> int | None:
        """Number of additional samples that `next_test` requires."""
        return None if self.n_required is None else self.n_required - self.rule.n


def find_remedies(
    rule: DecisionRule, calibration: RuleData | None, *, n_classes: int
) -> tuple[Remedies, ...]:
    """Return the remedies for each group without a threshold.

    Remedies are only available for the rules in `FIXED_SEQUENCE_RULES` with their default options.
    The losses must be 0 or 1, and the samples must not have weights.
    """
    s = None if calibration is None else calibration.s
    if (
        calibration is None
        or s is None
        or not s.is_binary
        or s.weight is not None
        or (rule.parts and not rule.per)
    ):
        return ()
    groups = [(part.name, part.rule) for part in rule.parts] if rule.per else [("", rule)]
    out = []
    for name, group_rule in groups:
        is_fixed_sequence = (
            group_rule.method in FIXED_SEQUENCE_RULES and group_rule.guarantee == "selective risk"
        )
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
        if remedies := _remedies_of_group(name, group_rule, s, rows, n_classes):
            out.append(remedies)
        if len(out) == _MAX_GROUPS:
            break
    return tuple(out)


def _remedies_of_group(
    name: str, rule: DecisionRule, s: Scored, rows: BoolArray, n_classes: int
) -> Remedies | None:
    """Return the remedies for one group, or None if the rule has other than default options."""
    samples = Scored(s.confidence[rows], s.loss[rows])
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
    )


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
    """Yield other rules that have a threshold on these data.

    An alternative is a second attempt on the same data, so its delta adds to that of the rule. Half
    of delta limits the probability that either guarantee fails to 1.5 delta.
    """
    target, delta = rule.target or 0.0, (rule.delta or 0.0) / 2
    candidates = [
        _refit(rule, samples, target, delta, method)
        for method in FIXED_SEQUENCE_RULES
        if method != rule.method
    ]
    for step in range(1, round((_MAX_LIMIT_MULTIPLE - 1) * target / _LIMIT_STEP) + 1):
        limit = round(target + step * _LIMIT_STEP, 10)
        if limit >= 1:
            break
        larger = _refit(rule, samples, limit, delta)
        if larger.attainable:
            candidates.append(larger)
            break
    data = RuleData((), "", samples.confidence, samples.loss, None)
    for candidate in candidates:
        if candidate.attainable:
            (condition,) = answer_conditions(candidate, [data], n_classes=n_classes)
            yield AlternativeRule(candidate, replace(condition, group=name))
