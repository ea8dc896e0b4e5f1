"""A few distinct confidences, each with its mass and its risk: all ties, all exact."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from abstain._foundation import checks
from abstain.errors import DomainError
from abstain.simulate.population import Population, Sample, failures
from abstain.simulate.risk_curve import RiskCurve
from abstain.typing import AnyArray, FloatArray

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

    def _beyond(self, confidence: FloatArray) -> FloatArray:
        return self._edges[np.searchsorted(self.confidence, confidence, side="right")]

    def _from(self, confidence: FloatArray) -> FloatArray:
        return self._edges[np.searchsorted(self.confidence, confidence)]

    def _confidence_at(self, coverage: FloatArray) -> FloatArray:
        at = np.searchsorted(self._edges[::-1], coverage) - 1
        return self.confidence[::-1][np.clip(at, 0, self.mass.size - 1)]

    def _draw(self, n: int, rng: np.random.Generator) -> Sample:
        which = rng.choice(self.mass.size, n, p=self.mass)
        return Sample(self.confidence[which], failures(self.risks[which], rng))


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
        checks.finite(checks.vector(x, name, length=levels.size, like="confidence"), name)
        for x, name in ((mass, "mass"), (risk, "risk"))
    )
    checks.refuse("mass", "must be above 0", shares, shares <= 0)
    checks.unit_interval(risks, "risk")
    if abs(shares.sum() - 1) > 1e-9:
        msg = f"`mass` must sum to 1; got {shares.sum()!r}"
        raise DomainError(msg)
    order = np.argsort(levels)
    again = np.append(np.diff(levels[order]) == 0, False)
    checks.refuse("confidence", "must hold each level once", levels[order], again)
    ascending = levels[order].astype(np.float64)
    return DiscreteScores(ascending, shares[order] / shares.sum(), risks[order].astype(np.float64))
