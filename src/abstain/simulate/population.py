"""Define the base class of populations (joint distributions of confidence and loss)."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from abstain._foundation import checks
from abstain._foundation.random import as_generator
from abstain.errors import DomainError, InputError, suggest
from abstain.simulate.risk_curve import TIES, RiskCurve
from abstain.typing import AnyArray, FloatArray, Rng


class Sample(NamedTuple):
    """Confidences and losses of simulated samples.

    Attributes
    ----------
    confidence : ndarray of shape (n,)
        Confidences; higher is more confident.
    loss : ndarray of shape (n,)
        Non-negative losses, which are 0.0 or 1.0 if the population has a 0/1 loss.
    """

    confidence: FloatArray
    loss: FloatArray


class Population(ABC):
    """A joint distribution of confidence and loss with known risk, curves and areas.

    Populations are created by functions such as `two_gaussians`, `beta_scores` and
    `discrete_scores`.

    Attributes
    ----------
    name : str
        Name of the family of populations.
    binary : bool
        Whether the loss is 0 or 1, so that a mean loss is a failure probability.
    probability : bool
        Whether the confidence is a (possibly miscalibrated) probability of a correct prediction.

    See Also
    --------
    abstain.simulate.make : Create a population by name.

    Notes
    -----
    Values without a closed form are integrated numerically with an error of at most 1e-10
    (`TOLERANCE`).

    Examples
    --------
    >>> from abstain import simulate
    >>> population = simulate.beta_scores(1, 1)
    >>> round(population.aurc(), 12), round(population.augrc, 12)
    (0.25, 0.166666666667)
    >>> confidence, loss = population.sample(5, rng=0)
    >>> loss.tolist()
    [0.0, 0.0, 0.0, 0.0, 1.0]
    """

    # ------------------------------------------------------------- defined by each population
    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the family of populations."""

    @property
    def binary(self) -> bool:
        """Whether the loss is 0 or 1."""
        return True

    @property
    def probability(self) -> bool:
        """Whether the confidence is a (possibly miscalibrated) probability of correctness."""
        return False

    @abstractmethod
    def _curve(self) -> RiskCurve:
        """Return the risk as a function of coverage."""

    @abstractmethod
    def _share_above(self, confidence: FloatArray) -> FloatArray:
        """Return the share of samples with a higher confidence than each value."""

    @abstractmethod
    def _confidence_at(self, coverage: FloatArray) -> FloatArray:
        """Return the threshold for each coverage in (0, 1]."""

    @abstractmethod
    def _sample(self, n: int, rng: np.random.Generator) -> Sample:
        """Simulate n samples."""

    def _coverage_at_threshold(self, confidence: FloatArray) -> FloatArray:
        """Return the coverage of each threshold."""
        return self._share_above(confidence)

    # --------------------------------------------------------------------------- true values
    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of the population by name."""
        # Every population is a frozen dataclass whose fields are its parameters.
        fields: dict[str, Any] = getattr(self, "__dataclass_fields__", {})
        return {name: getattr(self, name) for name, field in fields.items() if field.repr}

    @cached_property
    def curve(self) -> RiskCurve:
        """The risk as a function of coverage."""
        return self._curve()

    @cached_property
    def risk(self) -> float:
        """Mean loss of all samples (the error rate for 0/1 loss)."""
        return self._risk()

    def aurc(self, *, ties: str = "averaged") -> float:
        """Return the AURC, the mean selective risk over all coverages.

        Parameters
        ----------
        ties : {"averaged", "definition", "trapezoid"}, default="averaged"
            Definition for tied confidences. "averaged" accepts a random part of a tie group. The
            plug-in, log and Monte Carlo estimators converge to this AURC. "definition" is the
            expected selective risk at the threshold of a random sample. "trapezoid" interpolates
            linearly between thresholds, as FD-Shifts and `abstain.aurc` do.

        Returns
        -------
        float
            The AURC; lower is better. If confidence and loss are independent, AURC equals `risk`.

        Raises
        ------
        InputError
            If `ties` has another value, or if the numerical integration fails.
        """
        return self.partial_aurc(0.0, 1.0, ties=ties)

    @property
    def augrc(self) -> float:
        """AUGRC, the area under the generalized risk; lower is better."""
        return self.partial_augrc(0.0, 1.0)

    @property
    def sele(self) -> float:
        """Limit of SELE for large samples, which equals AUGRC."""
        return self.augrc

    @property
    def two_sele(self) -> float:
        """Limit of 2 x SELE for large samples, which equals 2 x AUGRC."""
        return 2.0 * self.augrc

    @property
    def optimal_aurc(self) -> float:
        """Minimum of the AURC over all confidence scores."""
        return self._optima[0]

    @property
    def optimal_augrc(self) -> float:
        """Minimum of the AUGRC over all confidence scores."""
        return self._optima[1]

    def partial_aurc(self, low: float, high: float, *, ties: str = "averaged") -> float:
        """Return the integral of the selective risk from coverage `low` to `high`."""
        low, high = _check_range(low, high)
        checks.one_of(ties, "ties", TIES)
        return self._cached_area("aurc", low, high, ties)

    def partial_augrc(self, low: float, high: float) -> float:
        """Return the integral of the generalized risk from coverage `low` to `high`."""
        return self._cached_area("augrc", *_check_range(low, high))

    def selective_risk(self, coverage: AnyArray) -> Any:
        """Return the mean loss of the accepted samples at a coverage.

        A random part of the tie group at the threshold is accepted. The result has the shape of
        `coverage`.
        """
        risk = self.curve.selective(_check_coverage(coverage))
        return _as_input_kind(coverage, risk)

    def generalized_risk(self, coverage: AnyArray) -> Any:
        """Return the generalized risk, which is selective risk x coverage."""
        risk = self.curve.generalized(_check_coverage(coverage))
        return _as_input_kind(coverage, risk)

    def rank(self, confidence: AnyArray) -> Any:
        """Return the population rank, the share of samples with at most this confidence."""
        share_above = self._share_above(_check_not_nan(confidence, "confidence"))
        return _as_input_kind(confidence, 1.0 - share_above)

    def coverage(self, threshold: AnyArray) -> Any:
        """Return the share of samples that a threshold accepts."""
        share = self._coverage_at_threshold(_check_not_nan(threshold, "threshold"))
        return _as_input_kind(threshold, share)

    def threshold(self, coverage: AnyArray) -> Any:
        """Return the highest threshold with at least this coverage, which must be above 0."""
        share = np.maximum(_check_coverage(coverage), np.finfo(float).tiny)
        return _as_input_kind(coverage, self._confidence_at(share))

    def mean_loss(self, confidence: AnyArray) -> Any:
        """Return the mean loss of samples with this confidence."""
        coverage = self._coverage_at_threshold(_check_not_nan(confidence, "confidence"))
        return _as_input_kind(confidence, self.curve.margin(coverage))

    def mean_loss_at(self, rank: AnyArray) -> Any:
        """Return the mean loss of samples with this population rank."""
        u = _check_fractions(rank, "rank")
        coverage = 1.0 - u
        if self.curve.ties:
            # A tie group contains the rank of its upper bound, but rounding can change 1 - u.
            next_coverage = np.minimum(coverage + np.finfo(float).eps, 1.0)
            coverage = np.where(u < 1, next_coverage, coverage)
        return _as_input_kind(rank, self.curve.margin(coverage))

    def sample(self, n: int, *, rng: Rng = None) -> Sample:
        """Simulate n independent samples.

        Parameters
        ----------
        n : int
            Number of samples, at least 1.
        rng : int, numpy.random.Generator or None
            Seed or generator. None uses an unpredictable seed.

        Returns
        -------
        Sample
            Confidences and losses, each of shape (n,).
        """
        return self._sample(checks.positive_int(n, "n"), as_generator(rng))

    # ------------------------------------------------------------------------- implementation
    def _risk(self) -> float:
        return float(self.curve.generalized(np.array(1.0)))

    def _area(self, area: str, low: float, high: float, ties: str) -> float:
        """Integrate the risk over coverages. Subclasses with closed forms override this method."""
        if area == "aurc":
            return self.curve.selective_area(low, high, ties)
        return self.curve.generalized_area(low, high)

    def _cached_area(self, area: str, low: float, high: float, ties: str = "averaged") -> float:
        key = (area, low, high, ties)
        if key not in self._areas:
            self._areas[key] = self._area(*key)
        return self._areas[key]

    @cached_property
    def _areas(self) -> dict[tuple[str, float, float, str], float]:
        return {}

    @cached_property
    def _optima(self) -> tuple[float, float]:
        """Minimum AURC and AUGRC over all confidence scores, for a 0/1 loss."""
        r = self.risk
        aurc = 1.0
        if r < 1:
            aurc = r + (1.0 - r) * float(np.log1p(-r))
        return aurc, r * r / 2


@dataclass(frozen=True)
class PopulationEntry:
    """Catalogue entry of a population.

    Attributes
    ----------
    name : str
        Name of the population for `make`.
    title : str
        Title in tables.
    meaning : str
        Description of the modeled situation in one sentence.
    build : callable
        Function of the keyword arguments in `options` that creates the population.

    Examples
    --------
    >>> from abstain import simulate
    >>> entry = simulate.POPULATIONS["two-gaussians"]
    >>> entry.options
    {'risk': 0.1, 'separation': 1.6}
    >>> entry.make(risk=0.2).risk
    0.2
    """

    name: str
    title: str
    meaning: str
    build: Callable[..., Population]

    @property
    def options(self) -> dict[str, Any]:
        """Options of the population with their default values."""
        parameters = inspect.signature(self.build).parameters
        return {name: parameter.default for name, parameter in parameters.items()}

    def make(self, **options: Any) -> Population:
        """Create the population.

        Parameters
        ----------
        **options
            Values of options. An unknown option raises an `InputError`.

        Returns
        -------
        Population
            The population with these options.
        """
        for name in options:
            if name not in self.options:
                option_names = ", ".join(f"`{option}`" for option in self.options)
                suggestion = suggest(name, self.options)
                raise InputError(
                    f"the population {self.name!r} has no option `{name}`.{suggestion} "
                    f"It has {option_names}."
                )
        return self.build(**options)


class UniformScores(Population):
    """A population whose confidence is its population rank, uniform on [0, 1]."""

    def _share_above(self, confidence: FloatArray) -> FloatArray:
        return 1.0 - np.clip(confidence, 0.0, 1.0)

    def _confidence_at(self, coverage: FloatArray) -> FloatArray:
        return 1.0 - coverage


def draw_failures(probability: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Simulate 0/1 losses with the given failure probabilities."""
    return (rng.random(probability.shape) < probability).astype(np.float64)


def check_open_fraction(x: float, name: str) -> float:
    """Return a number as a float, after checking that it is strictly between 0 and 1."""
    value = checks.fraction(x, name)
    if value in {0.0, 1.0}:
        raise DomainError(f"`{name}` must lie between 0 and 1, both excluded; got {value!r}")
    return value


def check_masses_and_risks(
    mass: AnyArray, risk: AnyArray, *, length: int, reference: str
) -> tuple[FloatArray, FloatArray]:
    """Validate masses and failure probabilities."""
    masses = checks.vector(mass, "mass", length=length, reference=reference)
    masses = checks.finite(masses, "mass")
    risks = checks.vector(risk, "risk", length=length, reference=reference)
    risks = checks.finite(risks, "risk")
    checks.reject_entries("mass", "must be above 0", masses, masses <= 0)
    checks.unit_interval(risks, "risk")
    if abs(masses.sum() - 1) > 1e-9:
        raise DomainError(f"`mass` must sum to 1; got {masses.sum()!r}")
    return masses.astype(np.float64), risks.astype(np.float64)


def _check_range(low: float, high: float) -> tuple[float, float]:
    high = checks.fraction(high, "high")
    return checks.fraction(low, "low", high=high), high


def _flatten(x: AnyArray, name: str) -> tuple[FloatArray, tuple[int, ...]]:
    """Return the values as a float64 vector, and their original shape."""
    array = np.asarray(x)
    return checks.vector(array.ravel(), name).astype(np.float64), array.shape


def _check_not_nan(x: AnyArray, name: str) -> FloatArray:
    """Return the values in float64, or raise a DomainError if one is NaN."""
    values, shape = _flatten(x, name)
    checks.reject_entries(name, "must not be NaN", values, np.isnan(values))
    return values.reshape(shape)


def _check_coverage(x: AnyArray) -> FloatArray:
    return _check_fractions(x, "coverage", hint="Coverage is a fraction, not percent.")


def _check_fractions(x: AnyArray, name: str, *, hint: str = "") -> FloatArray:
    values, shape = _flatten(x, name)
    checks.unit_interval(checks.finite(values, name), name, hint=hint)
    return values.reshape(shape)


def _as_input_kind(input_value: AnyArray, values: FloatArray) -> Any:
    """Return a float if the input is a number, otherwise the array."""
    return float(values) if np.ndim(input_value) == 0 else values
