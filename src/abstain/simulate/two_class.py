"""The top-class probability of a classifier of two Gaussian classes, tempered: honest or not."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit, ndtr

from abstain._foundation import checks
from abstain.simulate.population import Population, Sample
from abstain.simulate.risk_curve import RiskCurve
from abstain.simulate.two_gaussians import mixture, mixture_quantile
from abstain.typing import FloatArray


@dataclass(frozen=True, eq=False)
class TwoClass(Population):
    """Confidence expit(|z|/temperature), z the log-odds N(±separation²/2, separation²)."""

    separation: float
    temperature: float

    name = "two-class-logits"
    probability = True

    def _curve(self) -> RiskCurve:
        return RiskCurve(self._loss_at, self._loss_above)

    def _distance(self, coverage: FloatArray) -> FloatArray:
        """Return |z| at a coverage, in standard deviations, plus the separation/2.

        |z| > t is z > t or z < -t: twice a mixture, in equal parts, of two normal tails.
        """
        found = mixture_quantile(coverage / 2, 0.5, self.separation)
        return np.maximum(-found, self.separation / 2)

    def _size(self, coverage: FloatArray) -> FloatArray:
        return self.separation * (self._distance(coverage) - self.separation / 2)

    def _loss_at(self, coverage: FloatArray) -> FloatArray:
        return np.asarray(expit(-self._size(coverage)))

    def _loss_above(self, coverage: FloatArray) -> FloatArray:
        return np.asarray(ndtr(-self._distance(coverage)))

    def _beyond(self, confidence: FloatArray) -> FloatArray:
        size = self.temperature * logit(np.clip(confidence, 0.5, 1.0))
        standard = -(size / self.separation + self.separation / 2)
        return 2 * mixture(standard, 0.5, self.separation)

    def _confidence_at(self, coverage: FloatArray) -> FloatArray:
        return np.asarray(expit(self._size(coverage) / self.temperature))

    def _draw(self, n: int, rng: np.random.Generator) -> Sample:
        z = self.separation * (self.separation / 2 + rng.standard_normal(n))
        return Sample(expit(np.abs(z) / self.temperature), (z < 0).astype(np.float64))


def two_class_logits(separation: float = 2.5, *, temperature: float = 1.0) -> Population:
    """Make the population of the top probability of a classifier of two Gaussian classes.

    Answers: what do scores and calibration measures give for a softmax of two classes whose
    honesty is known?

    Parameters
    ----------
    separation : float, default=2.5
        Distance of the class means, in standard deviations, above 0: the error rate is
        Phi(-separation/2).
    temperature : float, default=1.0
        Divides the log-odds: calibrated at 1, overconfident below, underconfident above. It does
        not change the order, so neither the risk at a coverage nor an area.

    Returns
    -------
    Population
        0/1 loss; confidence in [0.5, 1], which rank as every other score of two-class softmax
        outputs does (entropy, margin, Gini index, l2 norm). Curves closed at a threshold, areas by
        quadrature. With a low temperature samples saturate at confidence 1.0: the truth is that of
        the log-odds, which do not.

    Raises
    ------
    DomainError
        If a parameter is not above 0.

    See Also
    --------
    logits : The logits themselves, of any number of classes.

    Examples
    --------
    >>> from abstain import simulate
    >>> population = simulate.two_class_logits(2.5, temperature=0.5)
    >>> round(population.risk, 6), round(population.aurc(), 6)
    (0.10565, 0.024217)
    >>> round(1 - population.mean_loss(0.9), 6)
    0.75
    """
    return TwoClass(
        checks.positive(separation, "separation"), checks.positive(temperature, "temperature")
    )
