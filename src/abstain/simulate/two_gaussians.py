"""Normal scores of failures and of successes, a given distance apart: the binormal model."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit, ndtr, ndtri

from abstain._foundation import checks
from abstain.errors import DomainError
from abstain.simulate.population import Population, Sample
from abstain.simulate.risk_curve import RiskCurve
from abstain.typing import FloatArray

#: Newton steps from the nearer side; each one that leaves the bracket halves it instead.
_STEPS = 100


@dataclass(frozen=True, eq=False)
class TwoGaussians(Population):
    """A share `rate` fails with score N(0, 1); the others have N(separation, 1)."""

    rate: float
    separation: float

    name = "two-gaussians"

    def _curve(self) -> RiskCurve:
        return RiskCurve(self._loss_at, self._loss_above, breaks=self._turn())

    def _turn(self) -> tuple[float, ...]:
        """Where a score is as likely wrong as right: the steepest place of the mean loss."""
        d = self.separation
        if d == 0:
            return ()
        middle = (float(logit(self.rate)) + d * d / 2) / d
        turn = float(self._beyond(np.array(middle)))
        return (turn,) if 0 < turn < 1 else ()

    def _wrong(self, score: FloatArray) -> FloatArray:
        d = self.separation
        return np.asarray(expit(logit(self.rate) + d * d / 2 - d * score))

    def _loss_at(self, coverage: FloatArray) -> FloatArray:
        return self._wrong(self._confidence_at(coverage))

    def _loss_above(self, coverage: FloatArray) -> FloatArray:
        return np.asarray(self.rate * ndtr(-self._confidence_at(coverage)))

    def _beyond(self, confidence: FloatArray) -> FloatArray:
        return np.asarray(mixture(-confidence, self.rate, self.separation))

    def _confidence_at(self, coverage: FloatArray) -> FloatArray:
        # Each half by its own tail, in which the share keeps its digits.
        upper = coverage <= 0.5
        out = np.empty(np.shape(coverage))
        out[upper] = -mixture_quantile(coverage[upper], self.rate, self.separation)
        out[~upper] = mixture_quantile(1.0 - coverage[~upper], self.rate, -self.separation)
        return out

    def _draw(self, n: int, rng: np.random.Generator) -> Sample:
        loss = rng.random(n) < self.rate
        score = rng.standard_normal(n) + np.where(loss, 0.0, self.separation)
        return Sample(score, loss.astype(np.float64))

    def _area(self, area: str, low: float, high: float, ties: str) -> float:
        if area == "aurc" or (low, high) != (0.0, 1.0):
            return super()._area(area, low, high, ties)
        r, auroc = self.rate, float(ndtr(self.separation / np.sqrt(2)))
        return (1 - auroc) * r * (1 - r) + r * r / 2


def mixture(x: FloatArray, rate: float, shift: float) -> FloatArray:
    """CDF at x of a share `rate` of N(0, 1) and the rest of N(-shift, 1)."""
    return np.asarray(rate * ndtr(x) + (1 - rate) * ndtr(x + shift))


def mixture_quantile(share: FloatArray, rate: float, shift: float) -> FloatArray:
    """Invert `mixture` for shares up to 1/2: Newton on its logarithm, kept in a bracket."""
    first = ndtri(np.maximum(share, np.finfo(float).tiny))
    low, high = np.minimum(first, first - shift), np.maximum(first, first - shift)
    x, target = (low + high) / 2, np.log(np.maximum(share, np.finfo(float).tiny))
    for _ in range(_STEPS):
        value = mixture(x, rate, shift)
        error = np.log(value) - target
        low, high = np.where(error < 0, x, low), np.where(error < 0, high, x)
        slope = (rate * _density(x) + (1 - rate) * _density(x + shift)) / value
        with np.errstate(divide="ignore", invalid="ignore"):
            moved = x - error / slope
        moved = np.where((moved >= low) & (moved <= high), moved, (low + high) / 2)
        if np.all(np.abs(moved - x) <= 1e-15 * (1 + np.abs(x))):
            return np.asarray(moved)
        x = moved
    return np.asarray(x)


def _density(x: FloatArray) -> FloatArray:
    return np.asarray(np.exp(-x * x / 2) / np.sqrt(2 * np.pi))


def two_gaussians(risk: float = 0.1, separation: float = 1.6) -> Population:
    """Make a population of normal scores: those of failures and of successes (binormal).

    Answers: what does a metric, its interval or an estimator give for a score of known quality?

    Parameters
    ----------
    risk : float, default=0.1
        Share of failures, between 0 and 1, both excluded.
    separation : float, default=1.6
        How far the mean score of the successes lies above that of the failures, in standard
        deviations. The failure AUROC is Phi(separation/sqrt(2)): 0.87 for 1.6. At 0 the order is
        random, below 0 it is worse than that.

    Returns
    -------
    Population
        0/1 loss. The failure probability at score s is logistic in s. Closed forms of the curves
        at a threshold and of AUGRC = (1 - AUROC) R (1 - R) + R²/2; AURC by quadrature. `cut` and
        `saturate` tie its scores.

    Raises
    ------
    DomainError
        If `risk` is not between 0 and 1 or `separation` is not finite.

    Examples
    --------
    >>> from abstain import simulate
    >>> population = simulate.two_gaussians(risk=0.1, separation=1.6)
    >>> round(population.augrc, 6), round(population.aurc(), 6)
    (0.016605, 0.021911)
    >>> confidence, loss = population.sample(1000, rng=0)
    """
    return TwoGaussians(inner(risk, "risk"), checks.number(separation, "separation"))


def inner(x: float, name: str) -> float:
    """Validate a share that is neither 0 nor 1."""
    value = checks.fraction(x, name)
    if value in {0.0, 1.0}:
        msg = f"`{name}` must lie between 0 and 1, both excluded; got {value!r}"
        raise DomainError(msg)
    return value
