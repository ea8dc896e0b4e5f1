"""Compute the first tests of a rule, and the number of samples that a passing test requires."""

from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np

from abstain._foundation.scored import Scored
from abstain.thresholds._walks import halved_coverages, start_ranks
from abstain.thresholds.binomial import binomial_p_value, max_passing_failures, min_count
from abstain.thresholds.certified import DEFAULT_STARTS
from abstain.thresholds.rule import DecisionRule

#: Rules that test fixed sequences of thresholds. The rank of the first threshold of each sequence
#: depends on the number of samples.
FIXED_SEQUENCE_RULES: Final = ("sgr", "learn_then_test")
#: Maximum number of additional samples that is tried, absolute and relative to the available ones.
_MAX_MORE, _MAX_MULTIPLE = 5000, 10


@dataclass(frozen=True)
class StartTest:
    """The test of the first threshold of a sequence.

    Attributes
    ----------
    n_tested : int
        Number of the most confident samples that are tested.
    max_wrong : int
        Maximum number of wrong answers with which the test passes, or -1 if it cannot pass.
    n_wrong : int or None
        Number of wrong answers among the `n_tested` most confident calibration samples, or None if
        there are fewer samples.
    """

    n_tested: int
    max_wrong: int
    n_wrong: int | None

    @property
    def is_passed(self) -> bool:
        """Whether the available samples pass the test."""
        return self.n_wrong is not None and self.n_wrong <= self.max_wrong


def find_n_required(rule: DecisionRule, samples: Scored) -> int | None:
    """Return the smallest number of samples with a test that the available samples would pass.

    With fewer samples than any test requires, it is the number for a test without a wrong answer.
    The result is None if some of the available samples are wrong, because that test contains them.
    """
    n, target, delta = samples.n_rows, rule.target or 0.0, rule.delta or 0.0
    if n < min_count(target, delta):
        is_contradicted = _n_wrong_until(samples, n) > 0
        return None if is_contradicted else min_count(target, delta)
    max_more = min(_MAX_MORE, _MAX_MULTIPLE * n)
    for n_required in range(n + 1, n + 1 + max_more):
        ranks, alpha = starts(rule.method, n_required, target, delta)
        # The results of tests of more than n samples are unknown.
        available_ranks = [rank for rank in ranks if rank <= n]
        if not available_ranks:
            continue
        n_wrong = np.array([_n_wrong_until(samples, rank) for rank in available_ranks])
        p_values = binomial_p_value(np.array(available_ranks), n_wrong, target)
        if (p_values <= alpha).any():
            return n_required
    return None


def start_tests(n: int, rule: DecisionRule, samples: Scored) -> list[StartTest]:
    """Return the first tests of a rule for n samples, with results on the available samples."""
    target = rule.target or 0.0
    ranks, alpha = starts(rule.method, n, target, rule.delta or 0.0)
    tests = []
    for rank in ranks:
        n_wrong = _n_wrong_until(samples, rank) if rank <= samples.n_rows else None
        tests.append(StartTest(rank, max_passing_failures(rank, target, alpha), n_wrong))
    return tests


def _n_wrong_until(samples: Scored, rank: int) -> int:
    """Return the number of wrong answers in the tie groups within the first `rank` samples."""
    n_groups = int(np.searchsorted(samples.groups.cumulative_count, rank, side="right"))
    return int(np.rint(samples.groups.cumulative_loss[n_groups - 1])) if n_groups else 0


@cache
def starts(method: str, n: int, target: float, delta: float) -> tuple[list[int], float]:
    """Return the ranks at which a rule starts to test n samples, and the level of each test."""
    smallest = min_count(target, delta)
    if n < smallest:
        return [], delta
    coverages = halved_coverages(n, target, delta) if method == "sgr" else DEFAULT_STARTS
    ranks = [rank for rank in start_ranks(coverages, n, target, delta) if rank <= n]
    ranks = ranks or [smallest]
    return ranks, delta / len(ranks)
