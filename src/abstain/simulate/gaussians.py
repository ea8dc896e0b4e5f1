"""Populations of normal scores, and of softmax confidences of two Gaussian classes."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from abstain._foundation import checks
from abstain._foundation.lazy_imports import special
from abstain.simulate.population import (
    Population,
    PopulationEntry,
    Sample,
    check_open_fraction,
    draw_failures,
)
from abstain.simulate.risk_curve import RiskCurve, integrate_line
from abstain.typing import FloatArray

#: Maximum number of Newton steps. A step that leaves the bracket is replaced by a bisection.
_MAX_STEPS = 100


@dataclass(frozen=True, eq=False)
class TwoGaussians(Population):
    """Scores that are N(0, 1) for failures and N(separation, 1) for successes.

    The share of failures is `rate`.
    """

    rate: float
    separation: float

    name = "two-gaussians"

    def _curve(self) -> RiskCurve:
        return RiskCurve(self._loss_at, self._loss_above, breaks=self._inflection())

    def _inflection(self) -> tuple[float, ...]:
        """Coverage at which the mean loss is steepest and the failure probability is 1/2."""
        d = self.separation
        if d == 0:
            return ()
        score = (float(special.logit(self.rate)) + d * d / 2) / d
        coverage = float(self._share_above(np.array(score)))
        return (coverage,) if 0 < coverage < 1 else ()

    def _failure_probability(self, score: FloatArray) -> FloatArray:
        d = self.separation
        return np.asarray(special.expit(special.logit(self.rate) + d * d / 2 - d * score))

    def _loss_at(self, coverage: FloatArray) -> FloatArray:
        return self._failure_probability(self._confidence_at(coverage))

    def _loss_above(self, coverage: FloatArray) -> FloatArray:
        return np.asarray(self.rate * special.ndtr(-self._confidence_at(coverage)))

    def _share_above(self, confidence: FloatArray) -> FloatArray:
        return np.asarray(mixture_cdf(-confidence, self.rate, self.separation))

    def _confidence_at(self, coverage: FloatArray) -> FloatArray:
        # Both tails of the mixture are computed from their own share, which is precise.
        is_upper_half = coverage <= 0.5
        upper_share = coverage[is_upper_half]
        lower_share = 1.0 - coverage[~is_upper_half]
        confidence = np.empty(np.shape(coverage))
        confidence[is_upper_half] = -mixture_quantile(upper_share, self.rate, self.separation)
        confidence[~is_upper_half] = mixture_quantile(lower_share, self.rate, -self.separation)
        return confidence

    def _sample(self, n: int, rng: np.random.Generator) -> Sample:
        loss = rng.random(n) < self.rate
        score = rng.standard_normal(n) + np.where(loss, 0.0, self.separation)
        return Sample(score, loss.astype(np.float64))

    def _area(self, area: str, low: float, high: float, ties: str) -> float:
        if area == "aurc" or (low, high) != (0.0, 1.0):
            return super()._area(area, low, high, ties)
        auroc = float(special.ndtr(self.separation / np.sqrt(2)))
        return (1 - auroc) * self.rate * (1 - self.rate) + self.rate * self.rate / 2


def mixture_cdf(x: FloatArray, rate: float, shift: float) -> FloatArray:
    """Return the distribution function of rate x N(0, 1) + (1 - rate) x N(-shift, 1)."""
    return np.asarray(rate * special.ndtr(x) + (1 - rate) * special.ndtr(x + shift))


def mixture_quantile(share: FloatArray, rate: float, shift: float) -> FloatArray:
    """Return the quantiles of the mixture for probabilities up to 1/2, by Newton's method."""
    positive_share = np.maximum(share, np.finfo(float).tiny)
    target = np.log(positive_share)
    component_quantile = special.ndtri(positive_share)
    low = np.minimum(component_quantile, component_quantile - shift)
    high = np.maximum(component_quantile, component_quantile - shift)
    x = (low + high) / 2
    for _ in range(_MAX_STEPS):
        value = mixture_cdf(x, rate, shift)
        error = np.log(value) - target
        low = np.where(error < 0, x, low)
        high = np.where(error < 0, high, x)
        slope = (rate * _density(x) + (1 - rate) * _density(x + shift)) / value
        with np.errstate(divide="ignore", invalid="ignore"):
            newton = x - error / slope
        is_in_bracket = (newton >= low) & (newton <= high)
        updated = np.where(is_in_bracket, newton, (low + high) / 2)
        if np.all(np.abs(updated - x) <= 1e-15 * (1 + np.abs(x))):
            return np.asarray(updated)
        x = updated
    return np.asarray(x)


def _density(x: FloatArray) -> FloatArray:
    """Return the density of the standard normal distribution."""
    return np.asarray(np.exp(-x * x / 2) / np.sqrt(2 * np.pi))


def two_gaussians(risk: float = 0.1, separation: float = 1.6) -> Population:
    """Create a binormal population, in which failures and successes have normal scores.

    Parameters
    ----------
    risk : float, default=0.1
        Share of failures, strictly between 0 and 1.
    separation : float, default=1.6
        Mean score of the successes minus mean score of the failures, in standard deviations. The
        failure AUROC is Phi(separation/sqrt(2)). For a separation of 1.6, it is 0.87. For a
        separation of 0, scores and losses are independent.

    Returns
    -------
    Population
        A population with 0/1 loss. For the risk R, AUGRC is (1 - AUROC) R (1 - R) + R²/2. The
        curves also have closed forms. AURC is integrated numerically. `cut` and `saturate` create
        ties.

    Raises
    ------
    DomainError
        If `risk` is not strictly between 0 and 1, or if `separation` is not finite.

    Examples
    --------
    >>> from abstain import simulate
    >>> population = simulate.two_gaussians(risk=0.1, separation=1.6)
    >>> round(population.augrc, 6), round(population.aurc(), 6)
    (0.016605, 0.021911)
    >>> confidence, loss = population.sample(1000, rng=0)
    """
    return TwoGaussians(check_open_fraction(risk, "risk"), checks.number(separation, "separation"))


_LINKS = ("probit", "logistic")

#: Maximum score. For larger scores, the normal density is 0 in double precision.
_MAX_SCORE = 39.0

#: Number that replaces 0 in a denominator.
_NEARLY_ZERO = 1e-300


@dataclass(frozen=True, eq=False)
class GaussianScores(Population):
    """Scores S ~ N(0, 1) with failure probability F(intercept - slope S)."""

    rate: float
    slope: float
    link: str

    name = "gaussian-scores"

    @cached_property
    def intercept(self) -> float:
        """Intercept in the failure probability. It is determined so that the risk equals `rate`."""
        if self.link == "probit":
            return float(np.sqrt(1 + self.slope**2) * special.ndtri(self.rate))
        if self.slope == 0:
            return float(special.logit(self.rate))
        from scipy.optimize import brentq

        # The mean probability is between the probabilities at the most extreme scores.
        bound = abs(float(special.logit(self.rate))) + _MAX_SCORE * abs(self.slope) + 1
        root: float = brentq(self._risk_excess, -bound, bound, xtol=1e-14, rtol=1e-14)
        return root

    def _risk_excess(self, intercept: float) -> float:
        """Return the difference between the risk with this intercept and `rate`."""

        def failure_density(score: FloatArray) -> FloatArray:
            failure_probability = special.expit(intercept - self.slope * score)
            return np.asarray(failure_probability * _density(score))

        return integrate_line(failure_density, -_MAX_SCORE, _MAX_SCORE) - self.rate

    def _curve(self) -> RiskCurve:
        # The mean loss is steepest at the coverage where the failure probability is 1/2.
        steepest = float(special.ndtr(-self.intercept / self.slope)) if self.slope else 0.0
        breaks = (steepest,) if 0 < steepest < 1 else ()
        loss_above = self._loss_above if self.link == "probit" else None
        return RiskCurve(self._loss_at, loss_above, breaks=breaks)

    def _failure_probability(self, score: FloatArray) -> FloatArray:
        # A slope of 0 times an infinite score would be NaN.
        reduction = self.slope * score if self.slope else np.zeros_like(score)
        argument = self.intercept - reduction
        if self.link == "probit":
            return np.asarray(special.ndtr(argument))
        return np.asarray(special.expit(argument))

    def _loss_at(self, coverage: FloatArray) -> FloatArray:
        return self._failure_probability(-special.ndtri(coverage))

    def _loss_above(self, coverage: FloatArray) -> FloatArray:
        """Return the generalized risk at each coverage, for the probit link."""
        correlation = float(-self.slope / np.sqrt(1 + self.slope**2))
        rate_quantile = float(special.ndtri(self.rate))
        probability = _bivariate_normal_cdf(rate_quantile, special.ndtri(coverage), correlation)
        return np.clip(probability, 0.0, np.minimum(coverage, self.rate))

    def _risk(self) -> float:
        return self.rate

    def _share_above(self, confidence: FloatArray) -> FloatArray:
        return np.asarray(special.ndtr(-confidence))

    def _confidence_at(self, coverage: FloatArray) -> FloatArray:
        return np.asarray(-special.ndtri(coverage))

    def _sample(self, n: int, rng: np.random.Generator) -> Sample:
        score = rng.standard_normal(n)
        return Sample(score, draw_failures(self._failure_probability(score), rng))

    def _area(self, area: str, low: float, high: float, ties: str) -> float:
        """Compute an area. For the probit link, the AUGRC has a closed form."""
        if area == "aurc" or self.link != "probit" or (low, high) != (0.0, 1.0):
            return super()._area(area, low, high, ties)
        ratio = self.slope / np.sqrt(2 + self.slope * self.slope)
        return self.rate / 2 - float(special.owens_t(special.ndtri(self.rate), ratio))


def _bivariate_normal_cdf(h: float, k: FloatArray, correlation: float) -> FloatArray:
    """Return P(X < h, Y < k) for correlated standard normal variables X and Y."""
    # The formula divides by h and k. The values 1e-300 and 40 yield its limits at 0 and infinity.
    h = h if h != 0 else _NEARLY_ZERO
    k = np.clip(np.where(k == 0, _NEARLY_ZERO, k), -40.0, 40.0)
    residual_scale = np.sqrt(1 - correlation**2)
    with np.errstate(over="ignore"):
        t_h = special.owens_t(h, (k - correlation * h) / (h * residual_scale))
        t_k = special.owens_t(k, (h - correlation * k) / (k * residual_scale))
    mean_probability = (special.ndtr(h) + special.ndtr(k)) / 2
    has_opposite_signs = (h > 0) != (k > 0)
    return np.asarray(mean_probability - t_h - t_k - np.where(has_opposite_signs, 0.5, 0.0))


def gaussian_scores(risk: float = 0.1, *, slope: float = 1.5, link: str = "probit") -> Population:
    """Create a population of normal scores with a probit or logistic failure probability.

    Parameters
    ----------
    risk : float, default=0.1
        Share of failures, strictly between 0 and 1.
    slope : float, default=1.5
        The failure probability at score s is F(intercept - slope x s). If the slope is 0, loss and
        score are independent.
    link : {"probit", "logistic"}, default="probit"
        Distribution function F, which is normal ("probit") or logistic.

    Returns
    -------
    Population
        A population with 0/1 loss. With "probit", the curves have closed forms. AUGRC is risk/2 -
        T(z, slope/sqrt(2 + slope²)) with z = Phi^-1(risk) and Owen's function T. Other values are
        integrated numerically.

    Raises
    ------
    DomainError
        If `risk` is not strictly between 0 and 1, or if `slope` is not finite.
    InputError
        If `link` has another value.

    Examples
    --------
    >>> from abstain import simulate
    >>> population = simulate.gaussian_scores(risk=0.1, slope=1.5)
    >>> round(population.augrc, 6), round(population.aurc(), 6)
    (0.010991, 0.01256)
    >>> round(population.mean_loss(2.0), 6)
    0.0
    """
    checks.one_of(link, "link", _LINKS)
    return GaussianScores(check_open_fraction(risk, "risk"), checks.number(slope, "slope"), link)


@dataclass(frozen=True, eq=False)
class TwoClass(Population):
    """A confidence expit(|z|/temperature) from the log-odds z of two Gaussian classes.

    Given its class, the log-odds z have the distribution N(±separation²/2, separation²).
    """

    separation: float
    temperature: float

    name = "two-class-logits"
    probability = True

    def _curve(self) -> RiskCurve:
        return RiskCurve(self._loss_at, self._loss_above)

    def _standardized_log_odds(self, coverage: FloatArray) -> FloatArray:
        """Return |z|/separation + separation/2 at each coverage."""
        quantile = mixture_quantile(coverage / 2, 0.5, self.separation)
        return np.maximum(-quantile, self.separation / 2)

    def _absolute_log_odds(self, coverage: FloatArray) -> FloatArray:
        return self.separation * (self._standardized_log_odds(coverage) - self.separation / 2)

    def _loss_at(self, coverage: FloatArray) -> FloatArray:
        return np.asarray(special.expit(-self._absolute_log_odds(coverage)))

    def _loss_above(self, coverage: FloatArray) -> FloatArray:
        return np.asarray(special.ndtr(-self._standardized_log_odds(coverage)))

    def _share_above(self, confidence: FloatArray) -> FloatArray:
        absolute_log_odds = self.temperature * special.logit(np.clip(confidence, 0.5, 1.0))
        standardized = absolute_log_odds / self.separation + self.separation / 2
        return 2 * mixture_cdf(-standardized, 0.5, self.separation)

    def _confidence_at(self, coverage: FloatArray) -> FloatArray:
        return np.asarray(special.expit(self._absolute_log_odds(coverage) / self.temperature))

    def _sample(self, n: int, rng: np.random.Generator) -> Sample:
        z = self.separation * (self.separation / 2 + rng.standard_normal(n))
        return Sample(special.expit(np.abs(z) / self.temperature), (z < 0).astype(np.float64))


def two_class_logits(separation: float = 2.5, *, temperature: float = 1.0) -> Population:
    """Create a population of confidences of a classifier of two Gaussian classes.

    Parameters
    ----------
    separation : float, default=2.5
        Distance of the class means, in standard deviations, above 0. The error rate is
        Phi(-separation/2).
    temperature : float, default=1.0
        Divisor of the log-odds. The confidence is calibrated for temperature 1, overconfident for
        lower temperatures, and underconfident for higher temperatures. The ranking does not depend
        on the temperature.

    Returns
    -------
    Population
        A population with 0/1 loss and confidences in [0.5, 1]. Curves have closed forms, and areas
        are integrated numerically. For low temperatures, sampled confidences may be rounded to 1.0,
        but true values are computed without rounding.

    Raises
    ------
    DomainError
        If a parameter is not positive.

    See Also
    --------
    logits : Create a population of logits with any number of classes.

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
        separation=checks.positive(separation, "separation"),
        temperature=checks.positive(temperature, "temperature"),
    )


TWO_GAUSSIANS: Final = PopulationEntry(
    "two-gaussians",
    "two Gaussians",
    "Normal scores of failures and successes with different means (binormal model).",
    two_gaussians,
)
GAUSSIAN_SCORES: Final = PopulationEntry(
    "gaussian-scores",
    "Gaussian scores",
    "Normal scores with a failure probability that is probit or logistic in the score.",
    gaussian_scores,
)
TWO_CLASS_LOGITS: Final = PopulationEntry(
    "two-class-logits",
    "two-class softmax",
    "Top probability of a classifier of two Gaussian classes, with a temperature.",
    two_class_logits,
)
