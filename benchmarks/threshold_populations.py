"""Define populations with known risks, and decision rules for many calibration sets at once.

The arguments of a decision rule are `CalibrationSets`, a `Population` and a target risk. The result
is the lower edge of the accepted samples for each set, or 1 if the rule accepts no sample.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import bdtr
from scipy.stats import binom

from abstain.thresholds._walks import start_ranks
from abstain.thresholds.binomial import hoeffding_bentkus_p_value, min_count

DELTA = 0.05
N_GRID = 200_000


def decreasing_rate(u):
    """Return an error rate that decreases from 0.8 for the lowest confidence to 0."""
    return 0.8 * (1 - u) ** 2


def constant_above_half(u):
    """Return an error rate that decreases to 2% and is constant for the more confident half."""
    return 0.02 + 1.5 * np.maximum(0.55 - u, 0) ** 1.5


def oscillating_rate(u):
    """Return an oscillating error rate, for which the true risk is not monotone."""
    return np.clip(0.8 * (1 - u) ** 2 * (1 + np.sin(40 * u)), 0, 1)


@dataclass(frozen=True)
class Population:
    """A population with uniform ranks u and an error rate for each u.

    The confidence is u, or the lower edge of a cell that contains u.
    """

    name: str
    error_rate: Callable
    #: Lower edges of the cells; None for a continuous score.
    edges: np.ndarray | None = None
    #: Whether losses are uniform between 0 and 1 for failures, instead of 1.
    is_graded: bool = False

    def cells(self, u):
        """Return the lower and upper edge of the cell of each u.

        Without cells, the lower edge is u, and the upper edge is the next larger number.
        """
        if self.edges is None:
            return u, np.nextafter(u, 2)
        cell = np.searchsorted(self.edges, u, side="right") - 1
        upper_edge = np.append(self.edges[1:], 1.0)[cell]
        if self.name == "half at 1.0":
            # Confidences below the last cell are continuous.
            lower_edge = np.where(cell, self.edges[-1], u)
            return lower_edge, np.where(cell, upper_edge, np.nextafter(u, 2))
        return self.edges[cell], upper_edge

    def generalized_risks(self):
        """Return a fine grid of edges, and the generalized risk of accepting u >= edge."""
        edges = np.linspace(0, 1, N_GRID + 1)
        middle = (edges[:-1] + edges[1:]) / 2
        mean_loss = self.error_rate(middle) * (0.5 if self.is_graded else 1.0)
        return edges, np.append(np.cumsum(mean_loss[::-1])[::-1] / N_GRID, 0.0)

    def oracle_coverage(self, target, *, selective):
        """Return the largest coverage whose true risk is at most the target."""
        edges, generalized_risk = self.generalized_risks()
        lower_edge, _ = self.cells(edges)
        limit = target * (np.maximum(1 - edges, 1e-12) if selective else 1.0)
        is_safe = generalized_risk <= limit + 1e-12
        is_between_cells = np.abs(lower_edge - edges) < 1e-9
        safe_edges = edges[is_safe & is_between_cells]
        return float(1 - safe_edges.min()) if safe_edges.size else 0.0


POPULATIONS = (
    Population("continuous", decreasing_rate),
    Population("continuous, uneven risk", oscillating_rate),
    Population("10 values", decreasing_rate, np.arange(10) / 10),
    Population("50 values", decreasing_rate, np.arange(50) / 50),
    Population("half at 1.0", constant_above_half, np.array([0.0, 0.5])),
    Population("continuous, graded loss", decreasing_rate, is_graded=True),
)


@dataclass(frozen=True)
class CalibrationSets:
    """Calibration sets of shape (sets, n), sorted by decreasing confidence."""

    lower: np.ndarray
    upper: np.ndarray
    loss: np.ndarray
    #: Cumulative loss.
    total: np.ndarray
    #: First and last rank of the tie group of each sample.
    first: np.ndarray
    last: np.ndarray

    @property
    def n(self):
        return self.loss.shape[1]


def draw(population, rng, n_sets, n):
    gaps = rng.standard_exponential((n_sets, n + 1))
    u = 1 - np.cumsum(gaps, 1)[:, :-1] / gaps.sum(1, keepdims=True)
    lower, upper = population.cells(u)
    loss = (rng.random((n_sets, n)) < population.error_rate(u)).astype(float)
    if population.is_graded:
        loss *= rng.random((n_sets, n))
    starts_group = np.ones((n_sets, n + 1), bool)
    starts_group[:, 1:-1] = lower[:, 1:] != lower[:, :-1]
    ranks = np.arange(n)
    first = np.maximum.accumulate(np.where(starts_group[:, :-1], ranks, 0), 1)
    ends_group = starts_group[:, 1:]
    last = np.minimum.accumulate(np.where(ends_group, ranks, n)[:, ::-1], 1)[:, ::-1]
    return CalibrationSets(lower, upper, loss, np.cumsum(loss, 1), first, last)


def largest_refuting_total(counts, risk, alpha, *, graded):
    """Return the largest total loss that refutes a risk above `risk`, for each number of samples.

    The result is -1 if no total refutes it.
    """
    if not graded:
        total = binom.ppf(alpha, counts, risk)
        is_refuting = bdtr(np.maximum(total, 0), counts, risk) <= alpha
        return np.where(is_refuting, total, total - 1)
    low, high = np.zeros(counts.size), counts * risk
    has_none = hoeffding_bentkus_p_value(counts, low, risk) > alpha
    for _ in range(50):
        middle = (low + high) / 2
        is_refuting = hoeffding_bentkus_p_value(counts, middle, risk) <= alpha
        low, high = np.where(is_refuting, middle, low), np.where(is_refuting, high, middle)
    return np.where(has_none, -1.0, low)


@cache
def refuting_totals(n, risk, alpha, *, graded, generalized):
    """Return the largest refuting total at each rank.

    The selective risk refers to the accepted samples, the generalized risk to all n.
    """
    counts = np.array([n]) if generalized else np.arange(1, n + 1)
    totals = largest_refuting_total(counts, risk, alpha, graded=graded)
    return np.broadcast_to(totals, n)


def at_group_ends(sets, mask):
    """Return the mask at the last rank of the tie group of each sample."""
    return np.take_along_axis(mask, sets.last, 1)


def next_failure(passes):
    """Return the first failing rank at or after each rank, or n if all these ranks pass."""
    n = passes.shape[1]
    failing = np.where(passes, n, np.arange(n))
    return np.minimum.accumulate(failing[:, ::-1], 1)[:, ::-1]


def fixed_sequence(
    sets, population, target, start_coverages, *, delta=DELTA, additional_condition=None
):
    """Test thresholds in sequence from several starts, and return the lowest threshold.

    `additional_condition` takes a level and returns a mask of the ranks that a threshold may pass.
    """
    n_sets, n = sets.total.shape
    if min_count(target, delta) > n:
        return np.ones(n_sets)
    ranks = [rank for rank in start_ranks(start_coverages, n, target, delta) if rank <= n]
    ranks = ranks or [min_count(target, delta)]
    level = delta / len(ranks)
    limit = refuting_totals(n, target, level, graded=population.is_graded, generalized=False)
    passes = sets.total <= limit
    if additional_condition is not None:
        passes &= additional_condition(level)
    passes = at_group_ends(sets, passes)
    stop, rows = next_failure(passes), np.arange(n_sets)
    best_last, edge = np.full(n_sets, -1), np.ones(n_sets)
    for rank in ranks:
        first = sets.first[:, rank] if rank < n else np.full(n_sets, n)
        first_row = np.minimum(first, n - 1)
        has_started = (first == 0) | passes[rows, np.maximum(first - 1, 0)]
        last = np.where(first < n, stop[rows, first_row], n) - 1
        last = np.where(has_started, last, -1)
        # Only the samples above the tie group at the start are accepted.
        is_only_start = (last == first - 1) & (first < n)
        edge_of_sequence = np.where(
            is_only_start, sets.upper[rows, first_row], sets.lower[rows, last]
        )
        # If two sequences end at one group, the one that passed through it has the usual threshold.
        is_tied = (last == best_last) & (last >= 0)
        is_better = (last > best_last) | (is_tied & ~is_only_start)
        best_last = np.where(is_better, last, best_last)
        edge = np.where(is_better, edge_of_sequence, edge)
    return edge


def binary_search(sets, _population, target):
    """Run algorithm 1 of SGR over the distinct confidences."""
    n_sets, n = sets.total.shape
    group_ends = np.zeros((n_sets, n), int)
    group = np.cumsum(sets.first == np.arange(n), 1) - 1
    np.put_along_axis(group_ends, group, sets.last, 1)
    n_groups, rows = group[:, -1] + 1, np.arange(n_sets)
    n_steps = np.maximum(1, np.ceil(np.log2(n_groups)).astype(int))
    low, high, edge = np.zeros(n_sets, int), n_groups - 1, np.ones(n_sets)
    distinct_steps, limit_index = np.unique(n_steps, return_inverse=True)
    limits = np.stack(
        [
            refuting_totals(n, target, DELTA / k, graded=False, generalized=False)
            for k in distinct_steps.tolist()
        ]
    )
    for step in range(int(n_steps.max())):
        is_active = (low <= high) & (step < n_steps)
        middle = (low + high) // 2
        rank = group_ends[rows, np.clip(middle, 0, n - 1)]
        passes = sets.total[rows, rank] <= limits[limit_index, rank]
        edge = np.where(is_active & passes, sets.lower[rows, rank], edge)
        low = np.where(is_active & passes, middle + 1, low)
        high = np.where(is_active & ~passes, middle - 1, high)
    return edge


def edge_at_last(sets, passes):
    """Return the lower edge at the last rank that passes, or 1 if no rank passes."""
    n = passes.shape[1]
    last = np.where(passes.any(1), n - 1 - np.argmax(passes[:, ::-1], 1), -1)
    return np.where(last >= 0, sets.lower[np.arange(last.size), last], 1.0)


def empirical(sets, _population, target):
    """Choose the largest coverage whose risk on the calibration set is at most the target."""
    risk = sets.total / np.arange(1, sets.n + 1)
    return edge_at_last(sets, at_group_ends(sets, risk <= target * (1 + 1e-12)))


def learn_then_test_generalized(sets, population, target):
    limit = refuting_totals(sets.n, target, DELTA, graded=population.is_graded, generalized=True)
    return edge_at_last(sets, at_group_ends(sets, sets.total <= limit))


def conformal_risk_control(sets, _population, target):
    bound = (sets.total + 1) / (sets.n + 1)
    return edge_at_last(sets, at_group_ends(sets, bound <= target * (1 + 1e-12)))
