"""What would give a threshold to a group without one: more samples, or another rule."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

import numpy as np

from abstain._foundation.scored import Scored
from abstain.evaluation.rules.conditions import AnswerCondition, answer_conditions
from abstain.evaluation.rules.data import RuleData
from abstain.thresholds import DecisionRule, fit
from abstain.thresholds._walks import halved_coverages, start_ranks
from abstain.thresholds.binomial import binomial_p_value, min_count
from abstain.thresholds.certified import DEFAULT_STARTS
from abstain.typing import BoolArray

#: Rules that walk from starts whose ranks depend on the number of samples.
_WALKING_RULES: Final = ("sgr", "learn_then_test")
#: Largest number of further samples that is tried, and its multiple of the available ones.
_MAX_MORE, _MAX_MULTIPLE = 5000, 10
#: Largest number of groups for which remedies are computed.
_MAX_GROUPS: Final = 8
#: Steps and largest multiple of the limit that is tried.
_LIMIT_STEP, _MAX_LIMIT_MULTIPLE = 0.01, 2.0


@dataclass(frozen=True)
class StartTest:
    """The test of a rule at one of its starts.

    Attributes
    ----------
    n_tested : int
        The rule tests the answers to so many of the most confident samples.
    max_wrong : int
        It sets a threshold if at most so many of them are wrong; -1 if it cannot.
    n_wrong : int or None
        Number of wrong answers among the most confident calibration samples; None if there are
        fewer samples.
    """

    n_tested: int
    max_wrong: int
    n_wrong: int | None


@dataclass(frozen=True)
class Attempt:
    """Another rule that has a threshold on the same calibration data, with its own delta."""

    rule: DecisionRule
    condition: AnswerCondition


@dataclass(frozen=True)
class Remedies:
    """What would give a threshold to a group of the calibration data without one.

    Attributes
    ----------
    group : str
        Name of the group; "" for a rule with one threshold.
    rule : DecisionRule
        Its rule without a threshold.
    tests : tuple of StartTest
        The tests of the rule on these data.
    n_required : int or None
        With so many samples, the rule has the test `next_test`, which the available data would
        pass, or its first test at all; None if no such number exists within ten times the samples.
    next_test : StartTest or None
        That test.
    attempts : tuple of Attempt
        Other rules that have a threshold on these data.
    """

    group: str
    rule: DecisionRule
    tests: tuple[StartTest, ...]
    n_required: int | None
    next_test: StartTest | None
    attempts: tuple[Attempt, ...]

    @property
    def n_more(self) -> int | None:
        """Number of further samples for `next_test`."""
        return None if self.n_required is None else self.n_required - self.rule.n


def find_remedies(
    rule: DecisionRule, calibration: RuleData, *, n_classes: int
) -> tuple[Remedies, ...]:
    """Return the remedies of each group without a threshold.

    They are known for the rules with walks and their default options, for 0/1 losses without
    weights.
    """
    s = calibration.s
    if s is None or not s.is_binary or s.weight is not None or (rule.parts and not rule.per):
        return ()
    groups = [(part.name, part.rule) for part in rule.parts] if rule.per else [("", rule)]
    out = []
    for name, group_rule in groups:
        is_walk = group_rule.method in _WALKING_RULES and group_rule.guarantee == "selective risk"
        if group_rule.attainable or not is_walk or group_rule.population or not group_rule.n:
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
    samples = Scored(s.confidence[rows], s.loss[rows])
    target, delta = rule.target or 0.0, rule.delta or 0.0
    if _refit(rule, samples, target, delta).reason != rule.reason:
        # The options of the rule, such as its starts, are not the default.
        return None
    n_required = _find_n_required(rule, samples)
    next_test = None
    if n_required is not None:
        next_tests = _tests_at(n_required, rule, samples)
        next_test = next((test for test in next_tests if _would_pass(test)), next_tests[0])
    return Remedies(
        group=name,
        rule=rule,
        tests=tuple(_tests_at(samples.n_rows, rule, samples)),
        n_required=n_required,
        next_test=next_test,
        attempts=tuple(_attempts(name, rule, samples, n_classes)),
    )


def _find_n_required(rule: DecisionRule, samples: Scored) -> int | None:
    """Return the smallest number of samples with a test that the available samples would pass."""
    n, target, delta = samples.n_rows, rule.target or 0.0, rule.delta or 0.0
    if n < min_count(target, delta):
        return min_count(target, delta)
    for n_required in range(n + 1, n + 1 + min(_MAX_MORE, _MAX_MULTIPLE * n)):
        ranks, alpha = _starts(rule.method, n_required, target, delta)
        # The available samples say nothing about tests of more samples.
        ranks = [rank for rank in ranks if rank <= n]
        if ranks:
            n_wrong = np.array([_n_wrong_until(samples, rank) for rank in ranks])
            if (binomial_p_value(np.array(ranks), n_wrong, target) <= alpha).any():
                return n_required
    return None


def _tests_at(n: int, rule: DecisionRule, samples: Scored) -> list[StartTest]:
    """Return the tests of a rule on n samples, and what the available samples say about them."""
    target = rule.target or 0.0
    ranks, alpha = _starts(rule.method, n, target, rule.delta or 0.0)
    return [
        StartTest(
            rank,
            _max_wrong(rank, target, alpha),
            _n_wrong_until(samples, rank) if rank <= samples.n_rows else None,
        )
        for rank in ranks
    ]


def _would_pass(test: StartTest) -> bool:
    return test.n_wrong is not None and test.n_wrong <= test.max_wrong


def _n_wrong_until(samples: Scored, rank: int) -> int:
    """Return the wrong answers among the most confident samples; tied samples count together."""
    n_groups = int(np.searchsorted(samples.groups.cumulative_count, rank, side="right"))
    return int(np.rint(samples.groups.cumulative_loss[n_groups - 1])) if n_groups else 0


@cache
def _starts(method: str, n: int, target: float, delta: float) -> tuple[list[int], float]:
    """Return the ranks of the starts of a rule on n samples, and the level of each test."""
    smallest = min_count(target, delta)
    if n < smallest:
        return [], delta
    coverages = halved_coverages(n, target, delta) if method == "sgr" else DEFAULT_STARTS
    ranks = [rank for rank in start_ranks(coverages, n, target, delta) if rank <= n]
    ranks = ranks or [smallest]
    return ranks, delta / len(ranks)


def _max_wrong(n_tested: int, target: float, alpha: float) -> int:
    """Return the largest number of wrong answers with which a test passes; -1 if none passes."""
    n_wrong = np.arange(n_tested + 1)
    p_values = binomial_p_value(np.full(n_wrong.size, n_tested), n_wrong, target)
    return int(np.count_nonzero(p_values <= alpha)) - 1


def _refit(
    rule: DecisionRule, samples: Scored, target: float, delta: float, method: str = ""
) -> DecisionRule:
    refitted = fit(
        method or rule.method, samples.confidence, samples.loss, max_risk=target, delta=delta
    )
    return refitted.for_score(rule.score, scale=rule.scale)


def _attempts(name: str, rule: DecisionRule, samples: Scored, n_classes: int) -> Iterator[Attempt]:
    """Yield other rules with a threshold, each with half of delta."""
    target, delta = rule.target or 0.0, (rule.delta or 0.0) / 2
    candidates = [
        _refit(rule, samples, target, delta, method)
        for method in _WALKING_RULES
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
            yield Attempt(candidate, replace(condition, group=name))
