"""The tests at the starts of a rule, and the number of samples that adds a passing test."""

from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np

from abstain._foundation.scored import Scored
from abstain.thresholds._walks import halved_coverages, start_ranks
from abstain.thresholds.binomial import binomial_p_value, min_count
from abstain.thresholds.certified import DEFAULT_STARTS
from abstain.thresholds.rule import DecisionRule

#: Rules that test fixed sequences of thresholds. The rank of the first threshold of each sequence
#: depends on the number of samples.
FIXED_SEQUENCE_RULES: Final = ("sgr", "learn_then_test")
#: Largest number of further samples that is tried, and its multiple of the available ones.
_MAX_MORE, _MAX_MULTIPLE = 5000, 10


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

    @property
    def is_passed(self) -> bool:
        """Whether the available samples pass the test."""
        return self.n_wrong is not None and self.n_wrong <= self.max_wrong


def find_n_required(rule: DecisionRule, samples: Scored) -> int | None:
    """Return the smallest number of samples with a test that the available samples would pass."""
    n, target, delta = samples.n_rows, rule.target or 0.0, rule.delta or 0.0
    if n < min_count(target, delta):
        return min_count(target, delta)
    for n_required in range(n + 1, n + 1 + min(_MAX_MORE, _MAX_MULTIPLE * n)):
        ranks, alpha = starts(rule.method, n_required, target, delta)
        # The available samples say nothing about tests of more samples.
        ranks = [rank for rank in ranks if rank <= n]
        if ranks:
            n_wrong = np.array([_n_wrong_until(samples, rank) for rank in ranks])
            if (binomial_p_value(np.array(ranks), n_wrong, target) <= alpha).any():
                return n_required
    return None


def start_tests(n: int, rule: DecisionRule, samples: Scored) -> list[StartTest]:
    """Return the tests of a rule on n samples, and what the available samples say about them."""
    target = rule.target or 0.0
    ranks, alpha = starts(rule.method, n, target, rule.delta or 0.0)
    return [
        StartTest(
            rank,
            _max_wrong(rank, target, alpha),
            _n_wrong_until(samples, rank) if rank <= samples.n_rows else None,
        )
        for rank in ranks
    ]


def _n_wrong_until(samples: Scored, rank: int) -> int:
    """Return the wrong answers among the most confident samples; tied samples count together."""
    n_groups = int(np.searchsorted(samples.groups.cumulative_count, rank, side="right"))
    return int(np.rint(samples.groups.cumulative_loss[n_groups - 1])) if n_groups else 0


@cache
def starts(method: str, n: int, target: float, delta: float) -> tuple[list[int], float]:
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
