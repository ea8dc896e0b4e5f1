"""Normal scores: the binormal model, a probit or logistic risk, and a softmax of two classes."""

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
    sample_failures,
)
from abstain.simulate.risk_curve import RiskCurve, integrate_line
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
        return RiskCurve(self._loss_at, self._loss_above, breaks=self._least_reliable_score())

    def _least_reliable_score(self) -> tuple[float, ...]:
        """Where a score is as likely wrong as right: the steepest place of the mean loss."""
        d = self.separation
        if d == 0:
            return ()
        middle = (float(special.logit(self.rate)) + d * d / 2) / d
        turn = float(self._coverage_above(np.array(middle)))
        return (turn,) if 0 < turn < 1 else ()

    def _failure_probability(self, score: FloatArray) -> FloatArray:
        d = self.separation
        return np.asarray(special.expit(special.logit(self.rate) + d * d / 2 - d * score))

    def _loss_at(self, coverage: FloatArray) -> FloatArray:
        return self._failure_probability(self._confidence_at(coverage))

    def _loss_above(self, coverage: FloatArray) -> FloatArray:
        return np.asarray(self.rate * special.ndtr(-self._confidence_at(coverage)))

    def _coverage_above(self, confidence: FloatArray) -> FloatArray:
        return np.asarray(mixture(-confidence, self.rate, self.separation))

    def _confidence_at(self, coverage: FloatArray) -> FloatArray:
        # Each half by its own tail, in which the share keeps its digits.
        upper = coverage <= 0.5
        confidence = np.empty(np.shape(coverage))
        confidence[upper] = -mixture_quantile(coverage[upper], self.rate, self.separation)
        confidence[~upper] = mixture_quantile(1.0 - coverage[~upper], self.rate, -self.separation)
        return confidence

    def _draw(self, n: int, rng: np.random.Generator) -> Sample:
        loss = rng.random(n) < self.rate
        score = rng.standard_normal(n) + np.where(loss, 0.0, self.separation)
        return Sample(score, loss.astype(np.float64))

    def _area(self, area: str, low: float, high: float, ties: str) -> float:
        if area == "aurc" or (low, high) != (0.0, 1.0):
            return super()._area(area, low, high, ties)
        r, auroc = self.rate, float(special.ndtr(self.separation / np.sqrt(2)))
        return (1 - auroc) * r * (1 - r) + r * r / 2


def mixture(x: FloatArray, rate: float, shift: float) -> FloatArray:
    """CDF at x of a share `rate` of N(0, 1) and the rest of N(-shift, 1)."""
    return np.asarray(rate * special.ndtr(x) + (1 - rate) * special.ndtr(x + shift))


def mixture_quantile(share: FloatArray, rate: float, shift: float) -> FloatArray:
    """Invert `mixture` for shares up to 1/2: Newton on its logarithm, kept in a bracket."""
    initial = special.ndtri(np.maximum(share, np.finfo(float).tiny))
    low, high = np.minimum(initial, initial - shift), np.maximum(initial, initial - shift)
    x, target = (low + high) / 2, np.log(np.maximum(share, np.finfo(float).tiny))
    for _ in range(_STEPS):
        value = mixture(x, rate, shift)
        error = np.log(value) - target
        low, high = np.where(error < 0, x, low), np.where(error < 0, high, x)
        slope = (rate * _density(x) + (1 - rate) * _density(x + shift)) / value
        with np.errstate(divide="ignore", invalid="ignore"):
            next_value = x - error / slope
        next_value = np.where(
            (next_value >= low) & (next_value <= high), next_value, (low + high) / 2
        )
        if np.all(np.abs(next_value - x) <= 1e-15 * (1 + np.abs(x))):
            return np.asarray(next_value)
        x = next_value
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
    return TwoGaussians(check_open_fraction(risk, "risk"), checks.number(separation, "separation"))


_LINKS = ("probit", "logistic")

#: Beyond 39 the normal density is 0 in double precision.
_FAR = 39.0

#: Stands for 0 where a formula divides by it.
_ALMOST = 1e-300


@dataclass(frozen=True, eq=False)
class GaussianScores(Population):
    """Score S ~ N(0, 1), wrong with probability F(intercept - slope S)."""

    rate: float
    slope: float
    link: str

    name = "gaussian-scores"

    @cached_property
    def intercept(self) -> float:
        """The intercept that makes the risk what was asked for."""
        if self.link == "probit":
            return float(np.sqrt(1 + self.slope**2) * special.ndtri(self.rate))
        if self.slope == 0:
            return float(special.logit(self.rate))
        from scipy.optimize import brentq

        # A mean of probabilities lies between those at the ends, beyond which no sample is.
        bracket = abs(float(special.logit(self.rate))) + _FAR * abs(self.slope) + 1
        root: float = brentq(self._excess, -bracket, bracket, xtol=1e-14, rtol=1e-14)
        return root

    def _excess(self, intercept: float) -> float:
        """How far that intercept misses the risk."""

        def wrong(score: FloatArray) -> FloatArray:
            density = np.exp(-score * score / 2) / np.sqrt(2 * np.pi)
            return np.asarray(special.expit(intercept - self.slope * score) * density)

        return integrate_line(wrong, -_FAR, _FAR) - self.rate

    def _curve(self) -> RiskCurve:
        turn = float(special.ndtr(-self.intercept / self.slope)) if self.slope else 0.0
        breaks = (turn,) if 0 < turn < 1 else ()
        above = self._loss_above if self.link == "probit" else None
        return RiskCurve(self._loss_at, above, breaks=breaks)

    def _failure_probability(self, score: FloatArray) -> FloatArray:
        drop = self.slope * score if self.slope else np.zeros_like(score)
        inside = self.intercept - drop
        return np.asarray(special.ndtr(inside) if self.link == "probit" else special.expit(inside))

    def _loss_at(self, coverage: FloatArray) -> FloatArray:
        return self._failure_probability(-special.ndtri(coverage))

    def _loss_above(self, coverage: FloatArray) -> FloatArray:
        """P(wrong, S > s): a bivariate normal probability."""
        correlation = -self.slope / np.sqrt(1 + self.slope**2)
        value = _bivariate_normal_cdf(
            float(special.ndtri(self.rate)), special.ndtri(coverage), float(correlation)
        )
        return np.clip(value, 0.0, np.minimum(coverage, self.rate))

    def _risk(self) -> float:
        return self.rate

    def _coverage_above(self, confidence: FloatArray) -> FloatArray:
        return np.asarray(special.ndtr(-confidence))

    def _confidence_at(self, coverage: FloatArray) -> FloatArray:
        return np.asarray(-special.ndtri(coverage))

    def _draw(self, n: int, rng: np.random.Generator) -> Sample:
        score = rng.standard_normal(n)
        return Sample(score, sample_failures(self._failure_probability(score), rng))

    def _area(self, area: str, low: float, high: float, ties: str) -> float:
        if area == "aurc" or self.link != "probit" or (low, high) != (0.0, 1.0):
            return super()._area(area, low, high, ties)
        # P(wrong, another score is lower): normal with correlation slope/sqrt(2 + 2 slope²).
        b = self.slope
        return self.rate / 2 - float(
            special.owens_t(special.ndtri(self.rate), b / np.sqrt(2 + b * b))
        )


def _bivariate_normal_cdf(h: float, k: FloatArray, correlation: float) -> FloatArray:
    """P(X < h, Y < k) of standard normals with that correlation, by Owen's T function."""
    # The formula divides by both; at 1e-300 its limits are reached, at 40 those at infinity.
    h = h if h != 0 else _ALMOST
    k = np.clip(np.where(k == 0, _ALMOST, k), -40.0, 40.0)
    spread = np.sqrt(1 - correlation**2)
    with np.errstate(over="ignore"):
        t_h = special.owens_t(h, (k - correlation * h) / (h * spread))
        t_k = special.owens_t(k, (h - correlation * k) / (k * spread))
    other_sides = (h > 0) != (k > 0)
    return np.asarray(
        (special.ndtr(h) + special.ndtr(k)) / 2 - t_h - t_k - np.where(other_sides, 0.5, 0.0)
    )


def gaussian_scores(risk: float = 0.1, *, slope: float = 1.5, link: str = "probit") -> Population:
    """Make a population of normal scores with a failure probability curve.

    Answers: what does a score give whose failure probability falls smoothly, but never to 0?

    Parameters
    ----------
    risk : float, default=0.1
        Share of failures, between 0 and 1, both excluded.
    slope : float, default=1.5
        How steeply the failure probability falls with the score, which is N(0, 1): a sample of
        score s fails with probability F(intercept - slope x s). 0: a random order.
    link : {"probit", "logistic"}, default="probit"
        F: the normal or the logistic distribution function.

    Returns
    -------
    Population
        0/1 loss. For "probit" with z = Phi^-1(risk): AUGRC = risk/2 - T(z, slope/sqrt(2 +
        slope²)), T Owen's function, and closed curves; AURC, and all of "logistic", by quadrature.

    Raises
    ------
    DomainError
        If `risk` is not between 0 and 1 or `slope` is not finite.
    InputError
        If `link` is neither of the two.

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
        distance = mixture_quantile(coverage / 2, 0.5, self.separation)
        return np.maximum(-distance, self.separation / 2)

    def _size(self, coverage: FloatArray) -> FloatArray:
        return self.separation * (self._distance(coverage) - self.separation / 2)

    def _loss_at(self, coverage: FloatArray) -> FloatArray:
        return np.asarray(special.expit(-self._size(coverage)))

    def _loss_above(self, coverage: FloatArray) -> FloatArray:
        return np.asarray(special.ndtr(-self._distance(coverage)))

    def _coverage_above(self, confidence: FloatArray) -> FloatArray:
        size = self.temperature * special.logit(np.clip(confidence, 0.5, 1.0))
        standard = -(size / self.separation + self.separation / 2)
        return 2 * mixture(standard, 0.5, self.separation)

    def _confidence_at(self, coverage: FloatArray) -> FloatArray:
        return np.asarray(special.expit(self._size(coverage) / self.temperature))

    def _draw(self, n: int, rng: np.random.Generator) -> Sample:
        z = self.separation * (self.separation / 2 + rng.standard_normal(n))
        return Sample(special.expit(np.abs(z) / self.temperature), (z < 0).astype(np.float64))


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


TWO_GAUSSIANS: Final = PopulationEntry(
    "two-gaussians",
    "two Gaussians",
    "Normal scores; those of the successes lie higher by a distance (binormal).",
    two_gaussians,
)
GAUSSIAN_SCORES: Final = PopulationEntry(
    "gaussian-scores",
    "Gaussian scores",
    "Normal scores; the failure probability falls with the score as a probit or logistic.",
    gaussian_scores,
)
TWO_CLASS_LOGITS: Final = PopulationEntry(
    "two-class-logits",
    "two-class softmax",
    "Top probability of a classifier of two Gaussian classes, tempered.",
    two_class_logits,
)
