"""Ties: confidences of any population cut into levels or saturated, and a few distinct ones."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final

import numpy as np

from abstain._foundation import checks
from abstain.errors import DomainError, InputError
from abstain.simulate.gaussians import two_gaussians
from abstain.simulate.population import (
    Population,
    PopulationEntry,
    Sample,
    check_open_fraction,
    sample_failures,
)
from abstain.simulate.risk_curve import RiskCurve
from abstain.typing import AnyArray, Array, BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class _TiedPopulation(Population):
    """A population some of whose confidences are made equal."""

    base: Population

    @property
    def is_binary(self) -> bool:
        return self.base.is_binary

    def _curve(self) -> RiskCurve:
        base, ties = self.base.curve, self._ties
        lows = np.array([low for low, _ in ties])
        highs = np.array([high for _, high in ties])
        edges = base.generalized_risk(np.stack((lows, highs)))
        edges[0, lows == 0] = 0.0
        means = (edges[1] - edges[0]) / (highs - lows)

        def place(coverage: FloatArray) -> tuple[Array, BoolArray]:
            """Return the tie a coverage may lie in, and whether it does."""
            at = np.clip(np.searchsorted(highs, coverage), 0, highs.size - 1)
            return at, (lows[at] < coverage) & (coverage <= highs[at])

        def loss_at(coverage: FloatArray) -> FloatArray:
            at, inside = place(coverage)
            return np.where(inside, means[at], base.margin_loss(coverage))

        def loss_above(coverage: FloatArray) -> FloatArray:
            at, inside = place(coverage)
            line = edges[0, at] + means[at] * (coverage - lows[at])
            return np.where(inside, line, base.generalized_risk(coverage))

        return RiskCurve(loss_at, loss_above, breaks=base.breaks, ties=ties)

    @property
    @abstractmethod
    def _ties(self) -> tuple[tuple[float, float], ...]:
        """Coverages between which the confidences are equal, from the top."""

    @property
    def _optima(self) -> tuple[float, float]:
        # The losses are those of the base, and so is the order by them.
        return self.base.optimal_aurc, self.base.optimal_augrc


@dataclass(frozen=True, eq=False)
class CutPopulation(_TiedPopulation):
    """A population whose confidence is the number of thresholds it reaches."""

    thresholds: FloatArray

    @property
    def name(self) -> str:
        """The name of the base, with what was done to it."""
        return f"{self.base.name}-cut"

    @cached_property
    def _edges(self) -> FloatArray:
        """Coverages between the levels, from 1 down to 0."""
        inner = np.asarray(self.base.coverage(self.thresholds))
        return np.concatenate(([1.0], inner, [0.0]))

    @property
    def _ties(self) -> tuple[tuple[float, float], ...]:
        c = self._edges[::-1].tolist()
        return tuple((p, q) for p, q in pairwise(c) if q > p)

    def _coverage_above(self, confidence: FloatArray) -> FloatArray:
        at = np.clip(np.floor(confidence) + 1, 0, self._edges.size - 1)
        return np.asarray(self._edges[at.astype(int)])

    def _coverage_from(self, confidence: FloatArray) -> FloatArray:
        at = np.clip(np.ceil(confidence), 0, self._edges.size - 1)
        return np.asarray(self._edges[at.astype(int)])

    def _confidence_at(self, coverage: FloatArray) -> FloatArray:
        # The highest level from which on at least that share lies.
        at = np.searchsorted(self._edges[::-1], coverage)
        return np.asarray((self._edges.size - 1.0) - at, dtype=np.float64)

    def _draw(self, n: int, rng: np.random.Generator) -> Sample:
        confidence, loss = self.base.sample(n, rng=rng)
        level = np.searchsorted(self.thresholds, confidence, side="right")
        return Sample(level.astype(np.float64), loss)


@dataclass(frozen=True, eq=False)
class SaturatedPopulation(_TiedPopulation):
    """A population whose most confident share has one confidence."""

    share: float

    @property
    def name(self) -> str:
        """The name of the base, with what was done to it."""
        return f"{self.base.name}-saturated"

    @property
    def probability(self) -> bool:
        """Whether the confidences below the tie are probabilities."""
        return self.base.probability

    @cached_property
    def top(self) -> float:
        """The confidence that is reached by that share."""
        return float(self.base.threshold(self.share))

    @property
    def _ties(self) -> tuple[tuple[float, float], ...]:
        return ((0.0, self.share),)

    def _coverage_above(self, confidence: FloatArray) -> FloatArray:
        return np.where(confidence >= self.top, 0.0, np.asarray(self.base.coverage(confidence)))

    def _coverage_from(self, confidence: FloatArray) -> FloatArray:
        below = np.asarray(self.base.coverage(confidence))
        return np.where(
            confidence > self.top, 0.0, np.where(confidence == self.top, self.share, below)
        )

    def _confidence_at(self, coverage: FloatArray) -> FloatArray:
        return np.asarray(np.minimum(self.base.threshold(coverage), self.top))

    def _draw(self, n: int, rng: np.random.Generator) -> Sample:
        confidence, loss = self.base.sample(n, rng=rng)
        return Sample(np.minimum(confidence, self.top), loss)


def cut(population: Population, thresholds: AnyArray) -> Population:
    """Tie the confidences of a population between thresholds: its levels are all that is left.

    Answers: what do metrics and intervals give when the same scores are coarse?

    Parameters
    ----------
    population : Population
        One without ties.
    thresholds : array of shape (k,)
        Ascending. The new confidence is the number of thresholds that the old one reaches.

    Returns
    -------
    Population
        With up to k + 1 distinct confidences 0, 1, ..., k; masses, risks and all areas are exact.

    Raises
    ------
    InputError
        If the population has ties already or the thresholds do not ascend.

    Examples
    --------
    >>> from abstain import simulate
    >>> coarse = simulate.cut(simulate.beta_scores(1, 1), [0.5])
    >>> [round(coarse.aurc(ties=ties), 6) for ties in ("averaged", "definition", "trapezoid")]
    [0.326713, 0.375, 0.3125]
    >>> coarse.augrc
    0.1875
    """
    _check_without_ties(population)
    values = checks.finite(checks.vector(thresholds, "thresholds"), "thresholds").astype(float)
    checks.reject_entries("thresholds", "must ascend", values[1:], np.diff(values) <= 0)
    return CutPopulation(population, values)


def saturate(population: Population, share: float = 0.45) -> Population:
    """Give the most confident share of a population one confidence, as a saturated softmax does.

    Answers: what do metrics and intervals give when so many samples are tied at the top?

    Parameters
    ----------
    population : Population
        One without ties.
    share : float, default=0.45
        How many, in (0, 1): 45 % of the predictions of a network on MNIST had confidence 1.0.

    Returns
    -------
    Population
        Continuous below, tied at the top.

    Raises
    ------
    DomainError
        If the share does not lie in (0, 1).
    InputError
        If the population has ties already.

    Examples
    --------
    >>> from abstain import simulate
    >>> tied = simulate.saturate(simulate.beta_scores(1, 1), 0.5)
    >>> tied.sample(4, rng=0).confidence.tolist()
    [0.5, 0.5, 0.5, 0.5]
    >>> round(tied.aurc(), 6), round(tied.aurc(ties="definition"), 6)
    (0.3125, 0.3125)
    """
    _check_without_ties(population)
    return SaturatedPopulation(population, check_open_fraction(share, "share"))


def _check_without_ties(population: Population) -> None:
    given: object = population
    if not isinstance(given, Population):
        raise InputError(f"`population` must be a population of `abstain.simulate`; got {given!r}")
    if population.curve.ties:
        raise InputError(
            f"`population` must have no ties of its own; {population.name!r} has. Tie its base."
        )


_LEVELS = (0.3, 0.5, 0.7, 0.9, 1.0)
_MASS = (0.05, 0.1, 0.15, 0.25, 0.45)
_RISK = (0.6, 0.35, 0.15, 0.05, 0.01)


@dataclass(frozen=True, eq=False)
class DiscreteScores(Population):
    """Levels in ascending order; a sample of a level fails with the risk of that level."""

    confidence: FloatArray
    mass: FloatArray
    risks: FloatArray

    name = "discrete-scores"

    @property
    def probability(self) -> bool:
        """Whether all levels are probabilities."""
        return bool(self.confidence[0] >= 0 and self.confidence[-1] <= 1)

    @cached_property
    def _edges(self) -> FloatArray:
        """Share from each level on, descending, then 0."""
        inner = np.cumsum(self.mass[:0:-1])[::-1]
        return np.concatenate(([1.0], np.minimum(inner, 1.0), [0.0]))

    def _curve(self) -> RiskCurve:
        c = self._edges[::-1]
        loss = np.concatenate(([0.0], np.cumsum((self.mass * self.risks)[::-1])))
        risks = self.risks[::-1]

        def loss_at(coverage: FloatArray) -> FloatArray:
            return risks[np.clip(np.searchsorted(c, coverage) - 1, 0, risks.size - 1)]

        ties = tuple(zip(c[:-1].tolist(), c[1:].tolist(), strict=True))
        return RiskCurve(loss_at, lambda x: np.interp(x, c, loss), ties=ties)

    def _coverage_above(self, confidence: FloatArray) -> FloatArray:
        return self._edges[np.searchsorted(self.confidence, confidence, side="right")]

    def _coverage_from(self, confidence: FloatArray) -> FloatArray:
        return self._edges[np.searchsorted(self.confidence, confidence)]

    def _confidence_at(self, coverage: FloatArray) -> FloatArray:
        at = np.searchsorted(self._edges[::-1], coverage) - 1
        return self.confidence[::-1][np.clip(at, 0, self.mass.size - 1)]

    def _draw(self, n: int, rng: np.random.Generator) -> Sample:
        level_index = rng.choice(self.mass.size, n, p=self.mass)
        return Sample(self.confidence[level_index], sample_failures(self.risks[level_index], rng))


def discrete_scores(
    confidence: AnyArray = _LEVELS, mass: AnyArray = _MASS, risk: AnyArray = _RISK
) -> Population:
    """Make a population of a few distinct confidences.

    Answers: what do metrics, intervals and thresholds give when nearly all confidences are tied?

    Parameters
    ----------
    confidence : array of shape (k,)
        Distinct levels, in any order.
    mass : array of shape (k,)
        Share of the samples at each level; positive, with sum 1.
    risk : array of shape (k,)
        Failure probability at each level, in [0, 1].

    Returns
    -------
    Population
        0/1 loss; every number exact. The three meanings of AURC differ. `probability` is true if
        all levels lie in [0, 1].

    Raises
    ------
    ShapeError
        If the lengths differ.
    DomainError
        If a level appears twice, a mass is not positive, the masses do not sum to 1 or a risk lies
        outside [0, 1].

    Examples
    --------
    >>> from abstain import simulate
    >>> population = simulate.discrete_scores([0.5, 1.0], [0.5, 0.5], [0.5, 0.0])
    >>> population.risk, population.augrc
    (0.25, 0.0625)
    >>> [round(population.aurc(ties=ties), 6) for ties in ("averaged", "definition", "trapezoid")]
    [0.076713, 0.125, 0.0625]
    """
    levels = checks.confidence(confidence)
    shares, risks = (
        checks.finite(checks.vector(x, name, length=levels.size, reference="confidence"), name)
        for x, name in ((mass, "mass"), (risk, "risk"))
    )
    checks.reject_entries("mass", "must be above 0", shares, shares <= 0)
    checks.unit_interval(risks, "risk")
    if abs(shares.sum() - 1) > 1e-9:
        raise DomainError(f"`mass` must sum to 1; got {shares.sum()!r}")
    order = np.argsort(levels)
    has_duplicates = np.append(np.diff(levels[order]) == 0, False)
    checks.reject_entries("confidence", "must hold each level once", levels[order], has_duplicates)
    ascending = levels[order].astype(np.float64)
    return DiscreteScores(ascending, shares[order] / shares.sum(), risks[order].astype(np.float64))


def _cut_gaussians(risk: float = 0.1, separation: float = 1.6, *, levels: int = 20) -> Population:
    """Cut the scores into levels, the highest of which holds nearly half of the successes."""
    base = two_gaussians(risk, separation)
    if checks.positive_int(levels, "levels") < 2:
        raise InputError(f"`levels` must be an integer of at least 2; got {levels!r}")
    highest = max(float(separation), 0.0) + 0.1
    return cut(base, np.linspace(highest, -1.5, levels - 1)[::-1])


def _saturated_gaussians(
    risk: float = 0.1, separation: float = 1.6, *, share: float = 0.45
) -> Population:
    return saturate(two_gaussians(risk, separation), share)


TWO_GAUSSIANS_CUT: Final = PopulationEntry(
    "two-gaussians-cut",
    "two Gaussians, cut into levels",
    "The same scores, coarse: every confidence is tied.",
    _cut_gaussians,
)
TWO_GAUSSIANS_SATURATED: Final = PopulationEntry(
    "two-gaussians-saturated",
    "two Gaussians, saturated",
    "The same scores, of which the most confident share is tied, as softmax outputs of 1.0.",
    _saturated_gaussians,
)
DISCRETE_SCORES: Final = PopulationEntry(
    "discrete-scores",
    "discrete scores",
    "A few distinct confidences, each with its mass and its risk.",
    discrete_scores,
)
