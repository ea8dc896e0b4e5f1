"""Gamma or lognormal losses whose mean decreases as the confidence increases."""

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

#: Grid of log-odds of the coverage and its step, for loss distributions without a closed form.
_STEP = 1 / 8
_GRID = np.arange(-40.0, 40.0 + _STEP / 2, _STEP)

#: Minimum power for the closed form, whose terms cancel for smaller powers.
_MIN_POWER = 1e-3


@dataclass(frozen=True, eq=False)
class ContinuousLoss(UniformScores):
    """Losses that are noise of mean 1 times mean (power + 1) (1 - u)^power, for uniform u."""

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
        return RiskCurve(
            lambda c: self._scale * c**self.power, lambda c: self.mean * c ** (self.power + 1)
        )

    @property
    def _shape(self) -> float:
        """Shape of the gamma distribution with this coefficient of variation."""
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
        """AURC and AUGRC of the order by loss.

        Let F be the distribution function of the loss and S = 1 - F. A loss l has the rank S(l), so
        AURC = E[-loss ln F] and AUGRC = E[loss S]. Integration by parts yields the integrals of
        S + F ln F and of S²/2.
        """
        max_loss = 40.0 + 40.0 * (self._sigma if self.noise == "lognormal" else self.variation)
        log_range = (-45.0, float(np.log(max_loss)) + 10.0 * self._sigma + 3.0)

        def aurc(y: FloatArray) -> FloatArray:
            s = self._exceedance(y)
            return np.asarray(np.exp(y) * (s + special.xlog1py(1.0 - s, -s)))

        def augrc(y: FloatArray) -> FloatArray:
            return np.asarray(np.exp(y) * self._exceedance(y) ** 2 / 2)

        optimal_aurc = self._scale * integrate_line(aurc, *log_range)
        optimal_augrc = self._scale * integrate_line(augrc, *log_range)
        return optimal_aurc, optimal_augrc

    @property
    def _has_closed_form(self) -> bool:
        """Whether the distribution of the loss has a closed form.

        The closed form requires that a moment of 1/noise exists. Otherwise, the noise is so wide
        that an average over a grid is exact.
        """
        if self.power < _MIN_POWER:
            return False
        return self.noise == "lognormal" or self._shape * self.power > 1.0

    def _exceedance(self, y: FloatArray) -> FloatArray:
        """Return P(loss > scale x exp(y)), where the coverage exceeds (exp(y)/noise)^(1/power)."""
        if not self._has_closed_form:
            return self._averaged_exceedance(y)
        a = 1.0 / self.power
        if self.noise == "gamma":
            exceedance = _gamma_tail(self._shape, 0.0, y) - _gamma_tail(self._shape, a, y)
        else:
            exceedance = _lognormal_tail(self._sigma, 0.0, y) - _lognormal_tail(self._sigma, a, y)
        return np.asarray(np.clip(exceedance, 0.0, 1.0))

    def _averaged_exceedance(self, y: FloatArray) -> FloatArray:
        """Return the exceedance probability of the noise, averaged over a grid of coverages."""
        share = special.expit(_GRID)
        density = _STEP * share * special.expit(-_GRID)
        log_noise = y[:, None] - self.power * np.log(share)
        if self.noise == "gamma":
            with np.errstate(over="ignore"):
                exceedance = special.gammaincc(
                    self._shape, self._shape * np.exp(np.minimum(log_noise, 700.0))
                )
        else:
            exceedance = special.ndtr(-(log_noise / self._sigma + self._sigma / 2))
        return np.asarray(np.clip(exceedance @ density, 0.0, 1.0))


def _gamma_tail(shape: float, a: float, y: FloatArray) -> FloatArray:
    """Return E[(x/N)^a; N > x] at x = exp(y), for gamma noise N of mean 1 and shape above a."""
    with np.errstate(over="ignore", divide="ignore"):
        tail = np.log(special.gammaincc(shape - a, shape * np.exp(np.minimum(y, 700.0))))
    return np.asarray(np.exp(a * y + _log_inverse_moment(shape, a) + tail))


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
    moment = a * (1.0 + a) * sigma**2 / 2
    return np.asarray(
        np.exp(a * y + moment + special.log_ndtr(-(y / sigma + sigma / 2 + a * sigma)))
    )


def continuous_loss(
    mean: float = 0.5, *, power: float = 1.0, noise: str = "gamma", variation: float = 1.0
) -> Population:
    """Create a population of graded losses, such as a cross-entropy with heavy tails.

    Parameters
    ----------
    mean : float, default=0.5
        Mean loss, which is the full-coverage risk, above 0.
    power : float, default=1.0
        Power that relates the loss to the rank. The mean loss at rank u is
        mean (power + 1) (1 - u)^power. With power 0, the order is random.
    noise : {"gamma", "lognormal"}, default="gamma"
        Distribution of the loss at each rank.
    variation : float, default=1.0
        Coefficient of variation of the noise, above 0. For 1, "gamma" is the exponential
        distribution.

    Returns
    -------
    Population
        A population with a confidence that is uniform on [0, 1]. The selective risk at coverage c
        is mean c^power, AURC is mean/(power + 1) and AUGRC is mean/(power + 2). Only the areas of
        the best order are integrated numerically.

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
        checks.positive(mean, "mean"),
        checks.fraction(power, "power", high=np.inf),
        noise,
        checks.positive(variation, "variation"),
    )


CONTINUOUS_LOSS: Final = PopulationEntry(
    "continuous-loss",
    "continuous losses",
    "Gamma or lognormal losses with a mean that decreases with the confidence.",
    continuous_loss,
)
