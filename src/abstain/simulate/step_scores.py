"""A mean loss that is constant between ranks, under a continuous score: steps without ties."""

from dataclasses import dataclass

import numpy as np

from abstain._foundation import checks
from abstain.simulate.population import Population, Sample, failures
from abstain.simulate.risk_curve import RiskCurve
from abstain.typing import FloatArray


@dataclass(frozen=True, eq=False)
class StepScores(Population):
    """Confidence u uniform on [0, 1]; failure probability `risks[i]` through coverage i."""

    through: tuple[float, ...]
    risks: tuple[float, ...]
    name: str = "step-scores"

    def _curve(self) -> RiskCurve:
        through, risks = np.array(self.through), np.array(self.risks)
        widths = np.diff(np.append(0.0, through))
        ends, loss = np.append(0.0, through), np.append(0.0, np.cumsum(widths * risks))

        def loss_at(coverage: FloatArray) -> FloatArray:
            return risks[np.minimum(np.searchsorted(through, coverage), risks.size - 1)]

        return RiskCurve(loss_at, lambda c: np.interp(c, ends, loss), breaks=self.through[:-1])

    def _beyond(self, confidence: FloatArray) -> FloatArray:
        return 1.0 - np.clip(confidence, 0.0, 1.0)

    def _confidence_at(self, coverage: FloatArray) -> FloatArray:
        return 1.0 - coverage

    def _draw(self, n: int, rng: np.random.Generator) -> Sample:
        u = rng.random(n)
        return Sample(u, failures(self.curve.margin(1.0 - u), rng))


def random_order(risk: float = 0.1) -> Population:
    """Make a population whose confidence says nothing about the loss.

    Answers: what is a metric worth at the far end, where the confidence is random?

    Parameters
    ----------
    risk : float, default=0.1
        Share of failures, in [0, 1].

    Returns
    -------
    Population
        0/1 loss, confidence uniform on [0, 1]: AURC = R, AUGRC = R/2, so that AURC = 2 SELE.

    Raises
    ------
    DomainError
        If the risk does not lie in [0, 1].

    Examples
    --------
    >>> from abstain import simulate
    >>> population = simulate.random_order(0.2)
    >>> round(population.aurc(), 12), round(population.augrc, 12)
    (0.2, 0.1)
    """
    return StepScores((1.0,), (checks.fraction(risk, "risk"),), "random-order")


def oracle_order(risk: float = 0.1) -> Population:
    """Make a population whose confidence puts every failure below every success.

    Answers: what is a metric worth at the near end, where the confidence is perfect?

    Parameters
    ----------
    risk : float, default=0.1
        Share of failures, in [0, 1].

    Returns
    -------
    Population
        0/1 loss, confidence uniform on [0, 1]: AURC = R + (1 - R) ln(1 - R), AUGRC = R²/2.

    Raises
    ------
    DomainError
        If the risk does not lie in [0, 1].

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
