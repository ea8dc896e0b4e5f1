"""Populations with tied confidences."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final

import numpy as np

from abstain._foundation import checks
from abstain.errors import InputError
from abstain.simulate.gaussians import two_gaussians
from abstain.simulate.population import (
    Population,
    PopulationEntry,
    Sample,
    check_masses_and_risks,
    check_open_fraction,
    draw_failures,
)
from abstain.simulate.risk_curve import RiskCurve
from abstain.typing import AnyArray, Array, BoolArray, FloatArray


class _TieGroupCurve:
    """The risk as a function of coverage for a population with ties.

    Parameters
    ----------
    base : RiskCurve
        The risk curve without ties.
    ties : tuple of (float, float)
        Coverage before and after each tie group, in ascending order.
    """

    def __init__(self, base: RiskCurve, ties: tuple[tuple[float, float], ...]) -> None:
        self.base = base
        self.low = np.array([low for low, _ in ties])
        self.high = np.array([high for _, high in ties])
        risk_low, risk_high = base.generalized(np.stack((self.low, self.high)))
        self.risk_low = np.where(self.low == 0, 0.0, risk_low)
        self.mean_loss = (risk_high - self.risk_low) / (self.high - self.low)

    def loss_at(self, coverage: FloatArray) -> FloatArray:
        """Return the mean loss of the samples at the threshold of each coverage."""
        index = self._tie_index(coverage)
        is_tied = self._is_tied(coverage, index)
        return np.where(is_tied, self.mean_loss[index], self.base.margin(coverage))

    def loss_above(self, coverage: FloatArray) -> FloatArray:
        """Return the generalized risk at each coverage, which is linear within tie groups."""
        index = self._tie_index(coverage)
        coverage_in_group = coverage - self.low[index]
        risk_in_group = self.risk_low[index] + self.mean_loss[index] * coverage_in_group
        is_tied = self._is_tied(coverage, index)
        return np.where(is_tied, risk_in_group, self.base.generalized(coverage))

    def _tie_index(self, coverage: FloatArray) -> Array:
        """Return the index of the tie group that may contain each coverage."""
        return np.clip(np.searchsorted(self.high, coverage), 0, self.high.size - 1)

    def _is_tied(self, coverage: FloatArray, index: Array) -> BoolArray:
        return (self.low[index] < coverage) & (coverage <= self.high[index])


@dataclass(frozen=True, eq=False)
class _Tied(Population):
    """A population in which some samples of a base population are tied."""

    base: Population

    @property
    def binary(self) -> bool:
        return self.base.binary

    def _curve(self) -> RiskCurve:
        """Return the risk curve of the base population, modified within the tie groups."""
        ties = _TieGroupCurve(self.base.curve, self._ties)
        return RiskCurve(
            ties.loss_at, ties.loss_above, breaks=self.base.curve.breaks, ties=self._ties
        )

    @property
    @abstractmethod
    def _ties(self) -> tuple[tuple[float, float], ...]:
        """Coverage before and after each tie group, in ascending order."""

    @property
    def _optima(self) -> tuple[float, float]:
        # Ties do not change the losses, so the order by loss is that of the base population.
        return self.base.optimal_aurc, self.base.optimal_augrc


class _Levels(Population):
    """A population with a few distinct confidences."""

    @property
    @abstractmethod
    def _levels(self) -> FloatArray:
        """Distinct confidences in ascending order."""

    @property
    @abstractmethod
    def _edges(self) -> FloatArray:
        """Share of samples with at least each confidence, in descending order, followed by 0."""

    def _share_above(self, confidence: FloatArray) -> FloatArray:
        return self._edges[np.searchsorted(self._levels, confidence, side="right")]

    def _coverage_at_threshold(self, confidence: FloatArray) -> FloatArray:
        return self._edges[np.searchsorted(self._levels, confidence)]

    def _confidence_at(self, coverage: FloatArray) -> FloatArray:
        # The highest confidence at which at least this share is accepted.
        index = np.searchsorted(self._edges[::-1], coverage) - 1
        return self._levels[::-1][np.clip(index, 0, self._levels.size - 1)]


@dataclass(frozen=True, eq=False)
class Cut(_Tied, _Levels):
    """A population whose confidences are discretized by thresholds."""

    thresholds: FloatArray

    @property
    def name(self) -> str:
        """Name of the base population with a suffix."""
        return f"{self.base.name}-cut"

    @cached_property
    def _levels(self) -> FloatArray:
        return np.arange(self.thresholds.size + 1.0)

    @cached_property
    def _edges(self) -> FloatArray:
        inner_edges = np.asarray(self.base.coverage(self.thresholds))
        return np.concatenate(([1.0], inner_edges, [0.0]))

    @property
    def _ties(self) -> tuple[tuple[float, float], ...]:
        edges = self._edges[::-1].tolist()
        return tuple((low, high) for low, high in pairwise(edges) if high > low)

    def _sample(self, n: int, rng: np.random.Generator) -> Sample:
        confidence, loss = self.base.sample(n, rng=rng)
        level = np.searchsorted(self.thresholds, confidence, side="right")
        return Sample(level.astype(np.float64), loss)


@dataclass(frozen=True, eq=False)
class Saturated(_Tied):
    """A population whose most confident samples are tied."""

    share: float

    @property
    def name(self) -> str:
        """Name of the base population with a suffix."""
        return f"{self.base.name}-saturated"

    @property
    def probability(self) -> bool:
        """Whether the confidences of the base population are probabilities."""
        return self.base.probability

    @cached_property
    def top(self) -> float:
        """Confidence of the tied samples."""
        return float(self.base.threshold(self.share))

    @property
    def _ties(self) -> tuple[tuple[float, float], ...]:
        return ((0.0, self.share),)

    def _share_above(self, confidence: FloatArray) -> FloatArray:
        return np.where(confidence >= self.top, 0.0, np.asarray(self.base.coverage(confidence)))

    def _coverage_at_threshold(self, confidence: FloatArray) -> FloatArray:
        base_coverage = np.asarray(self.base.coverage(confidence))
        coverage = np.where(confidence == self.top, self.share, base_coverage)
        return np.where(confidence > self.top, 0.0, coverage)

    def _confidence_at(self, coverage: FloatArray) -> FloatArray:
        return np.asarray(np.minimum(self.base.threshold(coverage), self.top))

    def _sample(self, n: int, rng: np.random.Generator) -> Sample:
        confidence, loss = self.base.sample(n, rng=rng)
        return Sample(np.minimum(confidence, self.top), loss)


def cut(population: Population, thresholds: AnyArray) -> Population:
    """Discretize the confidences of a population.

    Parameters
    ----------
    population : Population
        A population without ties.
    thresholds : array of shape (k,)
        Ascending thresholds. The new confidence is the number of thresholds that are at most the
        original confidence.

    Returns
    -------
    Population
        A population with at most k + 1 distinct confidences 0, 1, ..., k.

    Raises
    ------
    InputError
        If the population has ties, or if the thresholds are not ascending.

    Examples
    --------
    >>> from abstain import simulate
    >>> coarse = simulate.cut(simulate.beta_scores(1, 1), [0.5])
    >>> [round(coarse.aurc(ties=ties), 6) for ties in ("averaged", "definition", "trapezoid")]
    [0.326713, 0.375, 0.3125]
    >>> coarse.augrc
    0.1875
    """
    _check_untied(population)
    values = checks.finite(checks.vector(thresholds, "thresholds"), "thresholds").astype(float)
    checks.reject_entries("thresholds", "must ascend", values[1:], np.diff(values) <= 0)
    return Cut(population, values)


def saturate(population: Population, share: float = 0.45) -> Population:
    """Replace the highest confidences of a population by one value (saturation).

    Parameters
    ----------
    population : Population
        A population without ties.
    share : float, default=0.45
        Share of tied samples, in (0, 1). For example, 45% of a network's predictions on MNIST had
        confidence 1.0.

    Returns
    -------
    Population
        A population in which the share `share` of the most confident samples is tied.

    Raises
    ------
    DomainError
        If the share is not in (0, 1).
    InputError
        If the population has ties.

    Examples
    --------
    >>> from abstain import simulate
    >>> tied = simulate.saturate(simulate.beta_scores(1, 1), 0.5)
    >>> tied.sample(4, rng=0).confidence.tolist()
    [0.5, 0.5, 0.5, 0.5]
    >>> round(tied.aurc(), 6), round(tied.aurc(ties="definition"), 6)
    (0.3125, 0.3125)
    """
    _check_untied(population)
    return Saturated(population, check_open_fraction(share, "share"))


def _check_untied(population: Population) -> None:
    argument: object = population
    if not isinstance(argument, Population):
        raise InputError(
            f"`population` must be a population of `abstain.simulate`; got {argument!r}"
        )
    if population.curve.ties:
        raise InputError(f"`population` must have no ties; {population.name!r} has some.")


_LEVELS = (0.3, 0.5, 0.7, 0.9, 1.0)
_MASS = (0.05, 0.1, 0.15, 0.25, 0.45)
_RISK = (0.6, 0.35, 0.15, 0.05, 0.01)


@dataclass(frozen=True, eq=False)
class DiscreteScores(_Levels):
    """Distinct confidences. Each confidence has a mass and a failure probability."""

    confidence: FloatArray
    mass: FloatArray
    risks: FloatArray

    name = "discrete-scores"

    @property
    def probability(self) -> bool:
        """Whether all levels are in [0, 1]."""
        return bool(self.confidence[0] >= 0 and self.confidence[-1] <= 1)

    @property
    def _levels(self) -> FloatArray:
        return self.confidence

    @cached_property
    def _edges(self) -> FloatArray:
        inner_edges = np.cumsum(self.mass[:0:-1])[::-1]
        return np.concatenate(([1.0], np.minimum(inner_edges, 1.0), [0.0]))

    def _curve(self) -> RiskCurve:
        """Return the risk curve, in which each distinct confidence is a tie group."""
        coverage_edges = self._edges[::-1].tolist()
        return RiskCurve(self._loss_at, self._loss_above, ties=tuple(pairwise(coverage_edges)))

    def _loss_at(self, coverage: FloatArray) -> FloatArray:
        """Return the failure probability at the threshold of each coverage."""
        index = np.searchsorted(self._edges[::-1], coverage) - 1
        return self.risks[::-1][np.clip(index, 0, self.risks.size - 1)]

    def _loss_above(self, coverage: FloatArray) -> FloatArray:
        """Return the generalized risk at each coverage, which is piecewise linear."""
        risk_at_edges = np.concatenate(([0.0], np.cumsum((self.mass * self.risks)[::-1])))
        return np.interp(coverage, self._edges[::-1], risk_at_edges)

    def _sample(self, n: int, rng: np.random.Generator) -> Sample:
        index = rng.choice(self.mass.size, n, p=self.mass)
        return Sample(self.confidence[index], draw_failures(self.risks[index], rng))


def discrete_scores(
    confidence: AnyArray = _LEVELS, mass: AnyArray = _MASS, risk: AnyArray = _RISK
) -> Population:
    """Create a population with few distinct confidences.

    Parameters
    ----------
    confidence : array of shape (k,)
        Distinct confidence levels in any order.
    mass : array of shape (k,)
        Share of the samples at each level. Shares are positive and sum to 1.
    risk : array of shape (k,)
        Failure probability at each level, in [0, 1].

    Returns
    -------
    Population
        A population with 0/1 loss, for which the three definitions of AURC differ.

    Raises
    ------
    ShapeError
        If lengths differ.
    DomainError
        If a level occurs twice, if a mass is not positive, if the masses do not sum to 1, or if a
        risk is outside [0, 1].

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
    shares, risks = check_masses_and_risks(mass, risk, length=levels.size, reference="confidence")
    order = np.argsort(levels)
    is_repeated = np.append(np.diff(levels[order]) == 0, False)
    checks.reject_entries("confidence", "must hold each level once", levels[order], is_repeated)
    ascending = levels[order].astype(np.float64)
    return DiscreteScores(ascending, shares[order] / shares.sum(), risks[order])


def _cut_gaussians(risk: float = 0.1, separation: float = 1.6, *, levels: int = 20) -> Population:
    """Discretize the scores of two Gaussians, such that many successes have the top score."""
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
    "two Gaussians, discretized",
    "The scores of two Gaussians in a few levels: every confidence is tied.",
    _cut_gaussians,
)
TWO_GAUSSIANS_SATURATED: Final = PopulationEntry(
    "two-gaussians-saturated",
    "two Gaussians, saturated",
    "The scores of two Gaussians with a tied most confident share, as softmax outputs of 1.0.",
    _saturated_gaussians,
)
DISCRETE_SCORES: Final = PopulationEntry(
    "discrete-scores",
    "discrete scores",
    "A few distinct confidences, each with a mass and a risk.",
    discrete_scores,
)
