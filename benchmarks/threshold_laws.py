"""Laws of confidence and loss with known risks, and every method in arrays: many sets at once."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import bdtr
from scipy.stats import binom

from abstain.thresholds._walks import start_ranks
from abstain.thresholds.binomial import hoeffding_bentkus_p_value, min_count

DELTA = 0.05
CELLS = 200_000


def falling(u):
    """Chance of an error: from 0.8 at the least confident to 0 at the most."""
    return 0.8 * (1 - u) ** 2


def saturated(u):
    """The same, but the most confident half is wrong 2 % of the time throughout."""
    return 0.02 + 1.5 * np.maximum(0.55 - u, 0) ** 1.5


def uneven(u):
    """Up and down with the confidence, so that the true risk is not monotone."""
    return np.clip(0.8 * (1 - u) ** 2 * (1 + np.sin(40 * u)), 0, 1)


@dataclass(frozen=True)
class Law:
    """Uniform ranks u, cut into cells of equal confidence, with a chance of an error at each."""

    name: str
    wrong: Callable
    edges: np.ndarray | None = None  # lower edges of the cells; None for a continuous score
    graded: bool = False

    def cells(self, u):
        """Lower and upper edge of the cell of each u; u itself for a continuous score."""
        if self.edges is None:
            return u, np.nextafter(u, 2)
        at = np.searchsorted(self.edges, u, side="right") - 1
        upper_edge = np.append(self.edges[1:], 1.0)[at]
        if self.name == "half at 1.0":  # continuous below its mass point
            return np.where(at, self.edges[-1], u), np.where(at, upper_edge, np.nextafter(u, 2))
        return self.edges[at], upper_edge

    def grid(self):
        """Generalized risk when accepting u >= e, on a fine grid of e."""
        e = np.linspace(0, 1, CELLS + 1)
        middle = (e[:-1] + e[1:]) / 2
        mean = self.wrong(middle) * (0.5 if self.graded else 1.0)
        return e, np.append(np.cumsum(mean[::-1])[::-1] / CELLS, 0.0)

    def oracle(self, target, *, selective):
        """Largest coverage whose true risk is at most the target."""
        e, general = self.grid()
        lower, _ = self.cells(e)
        fine = general <= target * (np.maximum(1 - e, 1e-12) if selective else 1.0) + 1e-12
        fine &= np.abs(lower - e) < 1e-9
        return float(1 - e[fine].min()) if fine.any() else 0.0


LAWS = (
    Law("continuous", falling),
    Law("continuous, uneven risk", uneven),
    Law("10 values", falling, np.arange(10) / 10),
    Law("50 values", falling, np.arange(50) / 50),
    Law("half at 1.0", saturated, np.array([0.0, 0.5])),
    Law("continuous, graded loss", falling, graded=True),
)


@dataclass(frozen=True)
class Sets:
    """Sorted calibration sets: cell edges, cumulated losses and ends of tie groups by rank."""

    lower: np.ndarray
    upper: np.ndarray
    loss: np.ndarray
    total: np.ndarray
    end: np.ndarray
    first: np.ndarray


def draw(law, rng, sets, n):
    gaps = rng.standard_exponential((sets, n + 1))
    u = 1 - np.cumsum(gaps, 1)[:, :-1] / gaps.sum(1, keepdims=True)
    lower, upper_edge = law.cells(u)
    loss = (rng.random((sets, n)) < law.wrong(u)).astype(float)
    if law.graded:
        loss *= rng.random((sets, n))
    new = np.ones((sets, n + 1), bool)
    new[:, 1:-1] = lower[:, 1:] != lower[:, :-1]
    places = np.arange(n)
    first = np.maximum.accumulate(np.where(new[:, :-1], places, 0), 1)
    end = np.minimum.accumulate(np.where(new[:, 1:], places, n)[:, ::-1], 1)[:, ::-1]
    return Sets(lower, upper_edge, loss, np.cumsum(loss, 1), end, first)


def critical(counts, risk, alpha, *, graded):
    """Largest total loss among so many samples that refutes a risk above the target; -1: none."""
    if not graded:
        at = binom.ppf(alpha, counts, risk)
        return np.where(bdtr(np.maximum(at, 0), counts, risk) <= alpha, at, at - 1)
    low, high = np.zeros(counts.size), counts * risk
    none = hoeffding_bentkus_p_value(counts, low, risk) > alpha
    for _ in range(50):
        middle = (low + high) / 2
        fine = hoeffding_bentkus_p_value(counts, middle, risk) <= alpha
        low, high = np.where(fine, middle, low), np.where(fine, high, middle)
    return np.where(none, -1.0, low)


_KNOWN = {}


def critical_for(n, risk, alpha, *, graded, generalized):
    key = (n, risk, alpha, graded, generalized)
    if key not in _KNOWN:
        counts = np.array([n]) if generalized else np.arange(1, n + 1)
        _KNOWN[key] = np.broadcast_to(critical(counts, risk, alpha, graded=graded), n)
    return _KNOWN[key]


def at_ends(s, fine):
    """What holds at the end of each sample's tie group."""
    return np.take_along_axis(fine, s.end, 1)


def stops(fine):
    n = fine.shape[1]
    failing = np.where(fine, n, np.arange(n))
    return np.minimum.accumulate(failing[:, ::-1], 1)[:, ::-1]


def walks(s, law, risk, coverages, *, delta=DELTA, also=None):
    """Lower edge of what is accepted; 1 for nothing.

    `also` tells of a level what else must hold where a threshold passes.
    """
    sets, n = s.total.shape
    if min_count(risk, delta) > n:
        return np.ones(sets)
    ranks = [r for r in start_ranks(coverages, n, risk, delta) if r <= n] or [
        min_count(risk, delta)
    ]
    limit = critical_for(n, risk, delta / len(ranks), graded=law.graded, generalized=False)
    fine = s.total <= limit
    fine = at_ends(s, fine if also is None else fine & also(delta / len(ranks)))
    stop, rows = stops(fine), np.arange(sets)
    best, edge = np.full(sets, -1), np.ones(sets)
    for rank in ranks:
        first = s.first[:, rank] if rank < n else np.full(sets, n)
        started = (first == 0) | fine[rows, np.maximum(first - 1, 0)]
        last = np.where(first < n, stop[rows, np.minimum(first, n - 1)], n) - 1
        last = np.where(started, last, -1)
        alone = (last == first - 1) & (first < n)
        here = np.where(alone, s.upper[rows, np.minimum(first, n - 1)], s.lower[rows, last])
        # Of two walks that end at one group the one that passed through it has the plain threshold.
        better = (last > best) | ((last == best) & (last >= 0) & ~alone)
        best, edge = np.where(better, last, best), np.where(better, here, edge)
    return edge


def binary(s, _, risk):
    """Algorithm 1 over the distinct confidences."""
    sets, n = s.total.shape
    ends = np.zeros((sets, n), int)
    group = np.cumsum(s.first == np.arange(n), 1) - 1
    np.put_along_axis(ends, group, s.end, 1)
    size, rows = group[:, -1] + 1, np.arange(sets)
    steps = np.maximum(1, np.ceil(np.log2(size)).astype(int))
    low, high, edge = np.zeros(sets, int), size - 1, np.ones(sets)
    kinds = np.unique(steps)
    limits = np.stack(
        [critical_for(n, risk, DELTA / k, graded=False, generalized=False) for k in kinds]
    )
    kind = np.searchsorted(kinds, steps)
    for step in range(int(steps.max())):
        active = (low <= high) & (step < steps)
        middle = (low + high) // 2
        at = ends[rows, np.clip(middle, 0, n - 1)]
        fine = s.total[rows, at] <= limits[kind, at]
        edge = np.where(active & fine, s.lower[rows, at], edge)
        low = np.where(active & fine, middle + 1, low)
        high = np.where(active & ~fine, middle - 1, high)
    return edge


def furthest(s, fine):
    """Lower edge at the last rank that is fine."""
    n = fine.shape[1]
    last = np.where(fine.any(1), n - 1 - np.argmax(fine[:, ::-1], 1), -1)
    return np.where(last >= 0, s.lower[np.arange(last.size), last], 1.0)


def empirical(s, _, risk):
    counts = np.arange(1, s.total.shape[1] + 1)
    return furthest(s, at_ends(s, s.total / counts <= risk * (1 + 1e-12)))


def generalized(s, law, risk):
    n = s.total.shape[1]
    limit = critical_for(n, risk, DELTA, graded=law.graded, generalized=True)
    return furthest(s, at_ends(s, s.total <= limit))


def conformal(s, _, risk):
    n = s.total.shape[1]
    return furthest(s, at_ends(s, (s.total + 1) / (n + 1) <= risk * (1 + 1e-12)))
