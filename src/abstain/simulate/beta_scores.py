"""Populations of beta-distributed probabilities with known calibration."""

from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from abstain._foundation import checks
from abstain._foundation.lazy_imports import special
from abstain._foundation.special import harmonic
from abstain.simulate.population import Population, PopulationEntry, Sample, draw_failures
from abstain.simulate.risk_curve import RiskCurve
from abstain.typing import FloatArray

#: Lower limit of coverages, below which SciPy cannot invert the beta distribution.
_MIN_COVERAGE = 1e-60


@dataclass(frozen=True, eq=False)
class BetaScores(Population):
    """A Beta(a, b) confidence, where a prediction is correct with probability confidence^power."""

    a: float
    b: float
    power: float

    probability = True

    @property
    def name(self) -> str:
        """Name of the population, which depends on the parameters."""
        if self.power != 1:
            return "overconfident" if self.power > 1 else "underconfident"
        return "uniform-scores" if self.a == self.b == 1 else "beta-scores"

    def _curve(self) -> RiskCurve:
        return RiskCurve(self._loss_at, self._loss_above)

    def _complement_at(self, coverage: FloatArray) -> FloatArray:
        """Return 1 - confidence at each coverage, accurately for confidences near 1."""
        return _quantile(self.b, self.a, coverage)

    def _failure_probability(self, complement: FloatArray) -> FloatArray:
        """Return the failure probability at confidence 1 - `complement`."""
        with np.errstate(divide="ignore"):
            return np.asarray(-np.expm1(self.power * np.log1p(-complement)))

    def _loss_at(self, coverage: FloatArray) -> FloatArray:
        """Return the failure probability at the threshold of each coverage."""
        # Near confidence 0, the confidence itself is more precise than 1 - confidence.
        rank = np.minimum(1.0 - coverage, 0.5)
        confidence = _quantile(self.a, self.b, rank)
        loss_at_low_confidence = 1.0 - confidence**self.power
        loss_at_high_confidence = self._failure_probability(self._complement_at(coverage))
        return np.where(coverage <= 0.5, loss_at_high_confidence, loss_at_low_confidence)

    def _loss_above(self, coverage: FloatArray) -> FloatArray:
        """Return the generalized risk at each coverage."""
        # E[g^power; g > x] equals E[g^power] times the tail probability of Beta(a + power, b).
        log_mean = special.betaln(self.a + self.power, self.b) - special.betaln(self.a, self.b)
        mean_accuracy = float(np.exp(log_mean))
        complement = self._complement_at(coverage)
        tail = special.betainc(self.b, self.a + self.power, complement)
        return np.asarray(np.maximum(coverage - mean_accuracy * tail, 0.0))

    def _share_above(self, confidence: FloatArray) -> FloatArray:
        return np.asarray(special.betainc(self.b, self.a, 1.0 - np.clip(confidence, 0.0, 1.0)))

    def _confidence_at(self, coverage: FloatArray) -> FloatArray:
        return 1.0 - self._complement_at(coverage)

    def _sample(self, n: int, rng: np.random.Generator) -> Sample:
        confidence = rng.beta(self.a, self.b, n)
        return Sample(confidence, draw_failures(self._failure_probability(1.0 - confidence), rng))

    def _area(self, area: str, low: float, high: float, ties: str) -> float:
        if self.b != 1.0 or (low, high) != (0.0, 1.0):
            return super()._area(area, low, high, ties)
        # With b = 1, the rank u equals confidence^a, so the risk at rank u is 1 - u^k.
        k = self.power / self.a
        if area == "augrc":
            return 0.5 - 1 / (k + 2)
        return 1 - float(harmonic(k + 1)) / (k + 1)


def _quantile(a: float, b: float, share: FloatArray) -> FloatArray:
    """Return the quantiles of the Beta(a, b) distribution."""
    p = np.maximum(share, _MIN_COVERAGE)
    quantile = special.betaincinv(a, b, p)
    # SciPy returns NaN near 0, where the first term of the series is exact.
    log_first_term = (np.log(a * p) + special.betaln(a, b)) / a
    first_term = np.exp(np.minimum(log_first_term, 0.0))
    return np.asarray(np.where(np.isnan(quantile), first_term, quantile))


def beta_scores(a: float = 4.0, b: float = 1.0, *, power: float = 1.0) -> Population:
    """Create a population of calibrated, overconfident or underconfident probabilities.

    Parameters
    ----------
    a, b : float, default=4.0, 1.0
        Parameters of the beta distribution of the confidence, above 0. For a = b = 1, the
        confidence is uniform.
    power : float, default=1.0
        Power that defines the calibration. A sample with confidence c is correct with probability
        c^power. Confidences are calibrated for power 1, overconfident for larger powers, and
        underconfident for smaller powers.

    Returns
    -------
    Population
        A population with 0/1 loss. The risk and the curves have closed forms. For b = 1,
        AUGRC = 1/2 - 1/(k + 2) and AURC = 1 - H_{k+1}/(k + 1), with k = power/a and the harmonic
        numbers H.

    Raises
    ------
    DomainError
        If a parameter is not positive.

    Examples
    --------
    >>> from abstain import simulate
    >>> honest, overconfident = simulate.beta_scores(), simulate.beta_scores(power=2)
    >>> round(honest.risk, 6), round(overconfident.risk, 6)
    (0.2, 0.333333)
    >>> round(overconfident.mean_loss(0.9), 6)
    0.19
    """
    return BetaScores(
        a=checks.positive(a, "a"),
        b=checks.positive(b, "b"),
        power=checks.positive(power, "power"),
    )


UNIFORM_SCORES: Final = PopulationEntry(
    "uniform-scores",
    "uniform probabilities",
    "Calibrated confidences, uniform on [0, 1]: AURC 1/4, AUGRC 1/6.",
    partial(beta_scores, a=1.0, b=1.0),
)
BETA_SCORES: Final = PopulationEntry(
    "beta-scores",
    "beta probabilities",
    "Calibrated confidences: 80% of the predictions with confidence 0.8 are correct.",
    beta_scores,
)
OVERCONFIDENT: Final = PopulationEntry(
    "overconfident",
    "overconfident probabilities",
    "Predictions with confidence c are correct with probability c².",
    partial(beta_scores, power=2.0),
)
UNDERCONFIDENT: Final = PopulationEntry(
    "underconfident",
    "underconfident probabilities",
    "Predictions with confidence c are correct with probability sqrt(c).",
    partial(beta_scores, power=0.5),
)
