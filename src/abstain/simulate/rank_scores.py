"""Any failure probability as a function of the population rank."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from abstain._foundation import checks
from abstain.errors import InputError, ShapeError
from abstain.simulate.population import Population, Sample, failures
from abstain.simulate.risk_curve import RiskCurve
from abstain.typing import FloatArray

_LOOK = np.linspace(0.0, 1.0, 1001)


@dataclass(frozen=True, eq=False)
class RankScores(Population):
    """Confidence u uniform on [0, 1], wrong with probability `mean_loss_of(u)`."""

    mean_loss_of: Callable[[FloatArray], FloatArray]
    breaks: tuple[float, ...]

    name = "rank-scores"

    def _curve(self) -> RiskCurve:
        coverages = tuple(sorted(1.0 - u for u in self.breaks))
        return RiskCurve(lambda c: np.asarray(self.mean_loss_of(1.0 - c)), breaks=coverages)

    def _beyond(self, confidence: FloatArray) -> FloatArray:
        return 1.0 - np.clip(confidence, 0.0, 1.0)

    def _confidence_at(self, coverage: FloatArray) -> FloatArray:
        return 1.0 - coverage

    def _draw(self, n: int, rng: np.random.Generator) -> Sample:
        u = rng.random(n)
        return Sample(u, failures(np.asarray(self.mean_loss_of(u)), rng))


def rank_scores(
    failure_probability: Callable[[FloatArray], FloatArray], *, breaks: Iterable[float] = ()
) -> Population:
    """Make a population from a failure probability at each rank.

    Answers: what would metrics give for a risk that depends on the confidence like this?

    Parameters
    ----------
    failure_probability : callable
        From population ranks u, an array in [0, 1], to failure probabilities of the same shape.
    breaks : iterable of float, optional
        Ranks at which it jumps or bends; elsewhere it must be smooth.

    Returns
    -------
    Population
        0/1 loss, confidence u uniform on [0, 1]. Curves and areas by quadrature.

    Raises
    ------
    InputError
        If no function is given.
    ShapeError
        If it does not return one number a rank.
    DomainError
        If it returns something outside [0, 1], or a break lies outside.

    Examples
    --------
    >>> from abstain import simulate
    >>> population = simulate.rank_scores(lambda u: 1 - u)
    >>> round(population.aurc(), 12), round(population.augrc, 12)
    (0.25, 0.166666666667)
    """
    given: object = failure_probability
    if not callable(given):
        msg = f"`failure_probability` must be a function of ranks; got {given!r}"
        raise InputError(msg)
    found = np.asarray(failure_probability(_LOOK))
    if found.shape != _LOOK.shape:
        rule = "must return one number for each rank"
        msg = f"`failure_probability` {rule}; got shape {found.shape} for {_LOOK.shape}"
        raise ShapeError(msg)
    checks.unit_interval(checks.finite(found, "failure_probability"), "failure_probability")
    inside = tuple(checks.fraction(u, "breaks") for u in breaks)
    return RankScores(failure_probability, inside)
