"""Losses other than 0 and 1: gamma or lognormal, with a mean that falls with the confidence."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from abstain._foundation import checks
from abstain._foundation.lazy_imports import special
from abstain._foundation.special import MIN_ASYMPTOTIC, stirling_tail
from abstain.simulate.population import Population, PopulationEntry, Sample, UniformScores
from abstain.simulate.risk_curve import RiskCurve, integrate_line
from abstain.typing import FloatArray

_NOISES = ("gamma", "lognormal")

#: Where the law of the loss has no closed form it is averaged over coverages, in such steps.
_STEP = 1 / 8
_GRID = np.arange(-40.0, 40.0 + _STEP / 2, _STEP)

#: At smaller powers the terms of the closed form are too large for the digits of its sum.
_LEAST_POWER = 1e-3


@dataclass(frozen=True, eq=False)
class ContinuousLoss(UniformScores):
    """Confidence u uniform on [0, 1]; loss = mean (power + 1) (1 - u)^power x noise of mean 1."""

    mean: float
    power: float
    noise: str
    variation: float

    name = "continuous-loss"
    is_binary = False

    @property
    def _scale(self) -> float:
        return self.mean * (self.power + 1)

    def _curve(self) -> RiskCurve:
        return RiskCurve(
            lambda c: self._scale * c**self.power, lambda c: self.mean * c ** (self.power + 1)
        )

    @property
    def _shape(self) -> float:
        """Shape of the gamma law of that variation."""
        return self.variation**-2

    @property
    def _sigma(self) -> float:
        """Standard deviation of the logarithm of the lognormal law of that variation."""
        return float(np.sqrt(np.log1p(self.variation**2)))

    def _draw(self, n: int, rng: np.random.Generator) -> Sample:
        u = rng.random(n)
        if self.noise == "gamma":
            noise = rng.gamma(self._shape, 1 / self._shape, n)
        else:
            noise = rng.lognormal(-(self._sigma**2) / 2, self._sigma, n)
        return Sample(u, self._scale * (1.0 - u) ** self.power * noise)

    def _area(self, area: str, low: float, high: float, ties: str) -> float:  # noqa: ARG002
        k = self.power + (1 if area == "aurc" else 2)
        return float(self.mean * (high**k - low**k) / k)

    @cached_property
    def _optima(self) -> tuple[float, float]:
        """AURC and AUGRC of an order by the loss: integrals of its law, by parts.

        With F the distribution function of the loss and S = 1 - F, a loss l has the rank S(l), so
        that AURC = E[-loss ln F] and AUGRC = E[loss S] are the integrals of S + F ln F and S²/2.
        """
        upper_limit = 40.0 + 40.0 * (self._sigma if self.noise == "lognormal" else self.variation)
        width = (-45.0, float(np.log(upper_limit)) + 10.0 * self._sigma + 3.0)

        def aurc(y: FloatArray) -> FloatArray:
            s = self._exceedance(y)
            return np.asarray(np.exp(y) * (s + special.xlog1py(1.0 - s, -s)))

        def augrc(y: FloatArray) -> FloatArray:
            return np.asarray(np.exp(y) * self._exceedance(y) ** 2 / 2)

        return self._scale * integrate_line(aurc, *width), self._scale * integrate_line(
            augrc, *width
        )

    @property
    def _has_closed_form(self) -> bool:
        """Whether the law of the loss has a closed form here: a moment of 1/noise must exist.

        Where it does not, the noise is so wide that an average over a grid is exact.
        """
        if self.power < _LEAST_POWER:
            return False
        return self.noise == "lognormal" or self._shape * self.power > 1.0

    def _exceedance(self, y: FloatArray) -> FloatArray:
        """P(loss > scale x exp(y)): the coverage is above (x/noise)^(1/power), x = exp(y)."""
        if not self._has_closed_form:
            return self._average_over_ranks(y)
        a = 1.0 / self.power
        if self.noise == "gamma":
            above = _gamma_tail(self._shape, 0.0, y) - _gamma_tail(self._shape, a, y)
        else:
            above = _lognormal_tail(self._sigma, 0.0, y) - _lognormal_tail(self._sigma, a, y)
        return np.asarray(np.clip(above, 0.0, 1.0))

    def _average_over_ranks(self, y: FloatArray) -> FloatArray:
        """Average the law of the noise over all coverages, by the weights of `over_coverage`."""
        share = special.expit(_GRID)
        density = _STEP * share * special.expit(-_GRID)
        log_noise = y[:, None] - self.power * np.log(share)
        if self.noise == "gamma":
            with np.errstate(over="ignore"):
                above = special.gammaincc(
                    self._shape, self._shape * np.exp(np.minimum(log_noise, 700.0))
                )
        else:
            above = special.ndtr(-(log_noise / self._sigma + self._sigma / 2))
        return np.asarray(np.clip(above @ density, 0.0, 1.0))


def _gamma_tail(shape: float, a: float, y: FloatArray) -> FloatArray:
    """E[(x/N)^a; N > x] at x = exp(y), N of a gamma law of mean 1 with shape above a."""
    with np.errstate(over="ignore", divide="ignore"):
        tail = np.log(special.gammaincc(shape - a, shape * np.exp(np.minimum(y, 700.0))))
    return np.asarray(np.exp(a * y + _log_inverse_moment(shape, a) + tail))


def _log_inverse_moment(shape: float, a: float) -> float:
    """Ln E[N^-a] of the same law: a ln(shape) + ln Gamma(shape - a) - ln Gamma(shape)."""
    remainder = shape - a
    if remainder < MIN_ASYMPTOTIC:
        return float(a * np.log(shape) + special.gammaln(remainder) - special.gammaln(shape))
    # Stirling for both, differenced by hand: the terms themselves are too large.
    tails = float(stirling_tail(remainder)) - float(stirling_tail(shape))
    return float((remainder - 0.5) * np.log1p(-a / shape)) + a + tails


def _lognormal_tail(sigma: float, a: float, y: FloatArray) -> FloatArray:
    """E[(x/N)^a; N > x] at x = exp(y), N of a lognormal law of mean 1."""
    moment = a * (1.0 + a) * sigma**2 / 2
    return np.asarray(
        np.exp(a * y + moment + special.log_ndtr(-(y / sigma + sigma / 2 + a * sigma)))
    )


def continuous_loss(
    mean: float = 0.5, *, power: float = 1.0, noise: str = "gamma", variation: float = 1.0
) -> Population:
    """Make a population of losses that are no failures: any number above 0.

    Answers: what do estimators give for losses such as the cross-entropy, heavy tail included?

    Parameters
    ----------
    mean : float, default=0.5
        Mean loss, above 0: the full-coverage risk.
    power : float, default=1.0
        How fast the mean loss falls with the rank u: mean (power + 1) (1 - u)^power. 0: a random
        order.
    noise : {"gamma", "lognormal"}, default="gamma"
        Law of the loss around its mean at that rank.
    variation : float, default=1.0
        Standard deviation over mean of that law, above 0; 1 with "gamma" is the exponential law.

    Returns
    -------
    Population
        Confidence uniform on [0, 1]. All closed: the selective risk at coverage c is mean c^power,
        AURC = mean/(power + 1), AUGRC = mean/(power + 2). The optima by quadrature.

    Raises
    ------
    DomainError
        If `mean` or `variation` is not above 0 or `power` is below 0.
    InputError
        If `noise` is neither of the two.

    Examples
    --------
    >>> from abstain import simulate
    >>> population = simulate.continuous_loss(0.5, power=1)
    >>> population.aurc(), round(population.augrc, 6), round(population.optimal_augrc, 6)
    (0.25, 0.166667, 0.102284)
    """
    checks.one_of(noise, "noise", _NOISES)
    return ContinuousLoss(
        checks.positive(mean, "mean"),
        checks.fraction(power, "power", high=np.inf),
        noise,
        checks.positive(variation, "variation"),
    )


CONTINUOUS_LOSS: Final = PopulationEntry(
    "continuous-loss",
    "continuous losses",
    "Gamma or lognormal losses with a mean that falls with the confidence.",
    continuous_loss,
)
