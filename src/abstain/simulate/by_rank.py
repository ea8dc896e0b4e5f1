"""Populations with a uniform confidence and a user-defined failure probability."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from abstain._foundation import checks
from abstain.errors import InputError, ShapeError
from abstain.simulate.population import (
    Population,
    PopulationEntry,
    Sample,
    UniformScores,
    check_open_fraction,
    draw_failures,
)
from abstain.simulate.risk_curve import RiskCurve
from abstain.typing import FloatArray

_RANK_GRID = np.linspace(0.0, 1.0, 1001)


@dataclass(frozen=True, eq=False)
class RankScores(UniformScores):
    """A uniform confidence u in [0, 1] with failure probability `mean_loss_of(u)`."""

    mean_loss_of: Callable[[FloatArray], FloatArray]
    breaks: tuple[float, ...]

    name = "rank-scores"

    def _curve(self) -> RiskCurve:
        break_coverages = tuple(sorted(1.0 - u for u in self.breaks))
        return RiskCurve(self._loss_at, breaks=break_coverages)

    def _loss_at(self, coverage: FloatArray) -> FloatArray:
        return np.asarray(self.mean_loss_of(1.0 - coverage))

    def _sample(self, n: int, rng: np.random.Generator) -> Sample:
        confidence = rng.random(n)
        failure_probability = np.asarray(self.mean_loss_of(confidence))
        return Sample(confidence, draw_failures(failure_probability, rng))


def rank_scores(
    failure_probability: Callable[[FloatArray], FloatArray], *, breaks: Iterable[float] = ()
) -> Population:
    """Create a population from the failure probability as a function of the population rank.

    Parameters
    ----------
    failure_probability : callable
        Function from an array of population ranks in [0, 1] to failure probabilities of the same
        shape.
    breaks : iterable of float, optional
        Ranks at which the function or its derivative is not continuous.

    Returns
    -------
    Population
        A population with 0/1 loss. The confidence is the population rank, which is uniform in [0,
        1]. Curves and areas are computed by numerical integration.

    Raises
    ------
    InputError
        If `failure_probability` is not callable.
    ShapeError
        If `failure_probability` does not return one number for each rank.
    DomainError
        If `failure_probability` returns a number outside [0, 1], or if a break is outside [0, 1].

    Examples
    --------
    >>> from abstain import simulate
    >>> population = simulate.rank_scores(lambda u: 1 - u)
    >>> round(population.aurc(), 12), round(population.augrc, 12)
    (0.25, 0.166666666667)
    """
    argument: object = failure_probability
    if not callable(argument):
        raise InputError(f"`failure_probability` must be a function of ranks; got {argument!r}")
    probabilities = np.asarray(failure_probability(_RANK_GRID))
    if probabilities.shape != _RANK_GRID.shape:
        rule = "must return one number for each rank"
        raise ShapeError(
            f"`failure_probability` {rule}; got shape {probabilities.shape} for {_RANK_GRID.shape}"
        )
    checks.unit_interval(checks.finite(probabilities, "failure_probability"), "failure_probability")
    rank_breaks = tuple(checks.fraction(u, "breaks") for u in breaks)
    return RankScores(failure_probability, rank_breaks)


@dataclass(frozen=True, eq=False)
class StepScores(UniformScores):
    """A uniform confidence in [0, 1] with a failure probability that is a step function.

    The failure probability is risks[i] up to coverage upper_coverages[i].
    """

    upper_coverages: tuple[float, ...]
    risks: tuple[float, ...]
    name: str = "step-scores"

    def _curve(self) -> RiskCurve:
        return RiskCurve(self._loss_at, self._loss_above, breaks=self.upper_coverages[:-1])

    def _loss_at(self, coverage: FloatArray) -> FloatArray:
        """Return the failure probability at the threshold of each coverage."""
        risks = np.array(self.risks)
        index = np.searchsorted(np.array(self.upper_coverages), coverage)
        return np.asarray(risks[np.minimum(index, risks.size - 1)])

    def _loss_above(self, coverage: FloatArray) -> FloatArray:
        """Return the generalized risk at each coverage, which is piecewise linear."""
        edges = np.append(0.0, self.upper_coverages)
        loss_at_edges = np.append(0.0, np.cumsum(np.diff(edges) * np.array(self.risks)))
        return np.asarray(np.interp(coverage, edges, loss_at_edges))

    def _sample(self, n: int, rng: np.random.Generator) -> Sample:
        confidence = rng.random(n)
        failure_probability = self.curve.margin(1.0 - confidence)
        return Sample(confidence, draw_failures(failure_probability, rng))


def random_order(risk: float = 0.1) -> Population:
    """Create a population whose confidence is independent of the loss.

    Parameters
    ----------
    risk : float, default=0.1
        Share of failures, in [0, 1].

    Returns
    -------
    Population
        A population with 0/1 loss and a confidence that is uniform in [0, 1]. For the risk R, AURC
        is R and AUGRC is R/2.

    Raises
    ------
    DomainError
        If the risk is outside [0, 1].

    Examples
    --------
    >>> from abstain import simulate
    >>> population = simulate.random_order(0.2)
    >>> round(population.aurc(), 12), round(population.augrc, 12)
    (0.2, 0.1)
    """
    return StepScores((1.0,), (checks.fraction(risk, "risk"),), "random-order")


def oracle_order(risk: float = 0.1) -> Population:
    """Create a population in which every failure has a lower confidence than every success.

    Parameters
    ----------
    risk : float, default=0.1
        Share of failures, in [0, 1].

    Returns
    -------
    Population
        A population with 0/1 loss and a confidence that is uniform in [0, 1]. For the risk R, AURC
        is R + (1 - R) ln(1 - R) and AUGRC is R²/2.

    Raises
    ------
    DomainError
        If the risk is outside [0, 1].

    Examples
    --------
    >>> from abstain import simulate
    >>> population = simulate.oracle_order(0.2)
    >>> round(population.aurc(), 6), round(population.optimal_aurc, 6), round(population.augrc, 6)
    (0.021485, 0.021485, 0.02)
    """
    r = checks.fraction(risk, "risk")
    if r in {0.0, 1.0}:
        return StepScores((1.0,), (r,), "oracle-order")
    return StepScores((1.0 - r, 1.0), (0.0, 1.0), "oracle-order")


def two_sele_counterexample(
    top: float = 0.1, *, inside: float = 0.5, outside: float = 0.0
) -> Population:
    r"""Create a population whose AURC exceeds 2 x SELE.

    Parameters
    ----------
    top : float, default=0.1
        Share q of the most confident samples, strictly between 0 and 1.
    inside, outside : float, default=0.5, 0.0
        Failure probabilities of the samples inside and outside this share, in [0, 1].

    Returns
    -------
    Population
        A population with 0/1 loss and a confidence that is uniform in [0, 1]. The difference AURC -
        2 SELE is (inside - outside) q (q - 1 - ln q), which is positive if inside > outside.

    Raises
    ------
    DomainError
        If `top` is not strictly between 0 and 1, or if a probability is outside [0, 1].

    Notes
    -----
    Let u be the population rank, c = 1 - u the coverage, and m(c) the mean loss at coverage c. Then
    AURC is E[loss x -ln(1-u)] and SELE is E[loss x u]. Therefore, AURC - 2 SELE is the integral of
    w(c) m(c) with w(c) = -ln c - 2 (1 - c). The integral of w from 0 to q is W(q) = q (q - 1 - ln
    q), and W(1) is 0. For this population, AURC - 2 SELE is therefore (inside - outside) W(q).

    The weight w(c) is positive for u > 0.7968. Failures among the most confident 20.32% of the
    samples therefore contribute more to AURC than to 2 SELE. In general, AURC <= 2 x SELE is
    guaranteed only if the risk decreases with the confidence.

    This population is a new construction. For finite samples, Zhou et al. [1]_ give a
    counterexample of five samples.

    References
    ----------
    .. [1] Zhou et al. (2025), A novel characterization of the population area under the risk
       coverage curve, eq. 34-36, https://arxiv.org/abs/2410.15361
    .. [2] Franc et al. (2023), Optimal strategies for reject option classifiers (SELE),
       https://jmlr.org/papers/v24/21-0048.html

    Examples
    --------
    >>> from abstain import simulate
    >>> population = simulate.two_sele_counterexample(top=0.1, inside=0.5)
    >>> round(population.aurc(), 6), round(population.two_sele, 6)
    (0.165129, 0.095)
    """
    q = check_open_fraction(top, "top")
    risks = (checks.fraction(inside, "inside"), checks.fraction(outside, "outside"))
    return StepScores((q, 1.0), risks, "two-sele-counterexample")


RANDOM_ORDER: Final = PopulationEntry(
    "random-order",
    "random order",
    "The confidence is independent of the loss.",
    random_order,
)
ORACLE_ORDER: Final = PopulationEntry(
    "oracle-order",
    "perfect order",
    "Every failure has a lower confidence than every success.",
    oracle_order,
)
TWO_SELE_COUNTEREXAMPLE: Final = PopulationEntry(
    "two-sele-counterexample",
    "failures among the most confident",
    "The AURC exceeds 2 x SELE, which is an upper bound only if the risk decreases.",
    two_sele_counterexample,
)
