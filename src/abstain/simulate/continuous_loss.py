"""Populations of gamma or lognormal losses, whose mean decreases with the confidence."""

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

#: Step and grid of log-odds of the coverage, for loss distributions without a closed form.
_STEP = 1 / 8
_GRID = np.arange(-40.0, 40.0 + _STEP / 2, _STEP)

#: Minimum power for the closed form, whose terms cancel for smaller powers.
_MIN_POWER = 1e-3


@dataclass(frozen=True, eq=False)
class ContinuousLoss(UniformScores):
    """Losses with mean decreasing in a confidence u that is uniform in [0, 1].

    The loss is mean (power + 1) (1 - u)^power x noise, where the noise has mean 1 and coefficient
    of variation `variation`.
    """

    mean: float
    power: float
    noise: str
    variation: float

    name = "continuous-loss"
    binary = False

    @property
    def _scale(self) -> float:
        return self.mean * (self.power + 1)

    def _curve(self) -> RiskCurve:
        return RiskCurve(self._loss_at, self._loss_above)

    def _loss_at(self, coverage: FloatArray) -> FloatArray:
        return self._scale * coverage**self.power

    def _loss_above(self, coverage: FloatArray) -> FloatArray:
        return self.mean * coverage ** (self.power + 1)

    @property
    def _shape(self) -> float:
        """Shape parameter of the gamma noise."""
        return self.variation**-2

    @property
    def _sigma(self) -> float:
        """Standard deviation of the logarithm of the lognormal noise."""
        return float(np.sqrt(np.log1p(self.variation**2)))

    def _sample(self, n: int, rng: np.random.Generator) -> Sample:
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
        """AURC and AUGRC if samples are ranked by ascending loss.

        Let F be the distribution function of the loss and S = 1 - F. Over all losses, AURC is the
        integral of S + F ln F, and AUGRC is the integral of S²/2.
        """
        spread = self._sigma if self.noise == "lognormal" else self.variation
        max_loss = 40.0 + 40.0 * spread
        max_log_loss = float(np.log(max_loss)) + 10.0 * self._sigma + 3.0

        def aurc_density(log_loss: FloatArray) -> FloatArray:
            s = self._exceedance(log_loss)
            return np.asarray(np.exp(log_loss) * (s + special.xlog1py(1.0 - s, -s)))

        def augrc_density(log_loss: FloatArray) -> FloatArray:
            return np.asarray(np.exp(log_loss) * self._exceedance(log_loss) ** 2 / 2)

        optimal_aurc = self._scale * integrate_line(aurc_density, -45.0, max_log_loss)
        optimal_augrc = self._scale * integrate_line(augrc_density, -45.0, max_log_loss)
        return optimal_aurc, optimal_augrc

    @property
    def _has_closed_form(self) -> bool:
        """Whether the distribution function of the loss is available in closed form.

        The closed form requires a finite moment of 1/noise.
        """
        if self.power < _MIN_POWER:
            return False
        return self.noise == "lognormal" or self._shape * self.power > 1.0

    def _exceedance(self, y: FloatArray) -> FloatArray:
        """Return P(loss > scale x exp(y))."""
        if not self._has_closed_form:
            return self._averaged_exceedance(y)
        a = 1.0 / self.power
        if self.noise == "gamma":
            exceedance = _gamma_tail(self._shape, 0.0, y) - _gamma_tail(self._shape, a, y)
        else:
            exceedance = _lognormal_tail(self._sigma, 0.0, y) - _lognormal_tail(self._sigma, a, y)
        return np.asarray(np.clip(exceedance, 0.0, 1.0))

    def _averaged_exceedance(self, y: FloatArray) -> FloatArray:
        """Return P(loss > scale x exp(y)), averaged over a grid of coverages."""
        coverage = special.expit(_GRID)
        density = _STEP * coverage * special.expit(-_GRID)
        log_noise = y[:, None] - self.power * np.log(coverage)
        if self.noise == "gamma":
            with np.errstate(over="ignore"):
                noise = np.exp(np.minimum(log_noise, 700.0))
                exceedance = special.gammaincc(self._shape, self._shape * noise)
        else:
            exceedance = special.ndtr(-(log_noise / self._sigma + self._sigma / 2))
        return np.asarray(np.clip(exceedance @ density, 0.0, 1.0))


def _gamma_tail(shape: float, a: float, y: FloatArray) -> FloatArray:
    """Return E[(x/N)^a; N > x] at x = exp(y), for gamma noise N of mean 1 and shape above a."""
    with np.errstate(over="ignore", divide="ignore"):
        noise = np.exp(np.minimum(y, 700.0))
        log_tail = np.log(special.gammaincc(shape - a, shape * noise))
    return np.asarray(np.exp(a * y + _log_inverse_moment(shape, a) + log_tail))


def _log_inverse_moment(shape: float, a: float) -> float:
    """Return ln E[N^-a] of gamma noise N, a ln(shape) + ln Gamma(shape - a) - ln Gamma(shape)."""
    reduced_shape = shape - a
    if reduced_shape < MIN_ASYMPTOTIC:
        return float(a * np.log(shape) + special.gammaln(reduced_shape) - special.gammaln(shape))
    # Both terms are large, so Stirling's series computes their difference.
    tail_difference = float(stirling_tail(reduced_shape)) - float(stirling_tail(shape))
    return float((reduced_shape - 0.5) * np.log1p(-a / shape)) + a + tail_difference


def _lognormal_tail(sigma: float, a: float, y: FloatArray) -> FloatArray:
    """Return E[(x/N)^a; N > x] at x = exp(y), for lognormal noise N of mean 1."""
    log_moment = a * (1.0 + a) * sigma**2 / 2
    log_tail = special.log_ndtr(-(y / sigma + sigma / 2 + a * sigma))
    return np.asarray(np.exp(a * y + log_moment + log_tail))


def continuous_loss(
    mean: float = 0.5, *, power: float = 1.0, noise: str = "gamma", variation: float = 1.0
) -> Population:
    """Create a population of continuous non-negative losses, possibly with heavy tails.

    Parameters
    ----------
    mean : float, default=0.5
        Mean loss of all samples, above 0.
    power : float, default=1.0
        Exponent of the mean loss, which is mean (power + 1) (1 - u)^power at confidence u. If the
        power is 0, loss and confidence are independent.
    noise : {"gamma", "lognormal"}, default="gamma"
        Distribution of the loss at each confidence.
    variation : float, default=1.0
        Coefficient of variation of the noise, above 0. For variation 1, the gamma distribution is
        the exponential distribution.

    Returns
    -------
    Population
        A population with a confidence that is uniform in [0, 1]. The selective risk at coverage c
        is mean x c^power, AURC is mean/(power + 1) and AUGRC is mean/(power + 2).

    Raises
    ------
    DomainError
        If `mean` or `variation` is not positive, or if `power` is negative.
    InputError
        If `noise` has another value.

    Examples
    --------
    >>> from abstain import simulate
    >>> population = simulate.continuous_loss(0.5, power=1)
    >>> population.aurc(), round(population.augrc, 6), round(population.optimal_augrc, 6)
    (0.25, 0.166667, 0.102284)
    """
    checks.one_of(noise, "noise", _NOISES)
    return ContinuousLoss(
        mean=checks.positive(mean, "mean"),
        power=checks.fraction(power, "power", high=np.inf),
        noise=noise,
        variation=checks.positive(variation, "variation"),
    )


CONTINUOUS_LOSS: Final = PopulationEntry(
    "continuous-loss",
    "continuous losses",
    "Gamma or lognormal losses with a mean that decreases with the confidence.",
    continuous_loss,
)
