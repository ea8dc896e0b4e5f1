"""What a population is: confidence and loss of which everything is known exactly."""

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
    """Samples drawn from a population: ``ab.augrc(*population.sample(1000, rng=0))``.

    Attributes
    ----------
    confidence : ndarray of shape (n,)
        Higher is more trusted.
    loss : ndarray of shape (n,)
        Non-negative; 0.0 or 1.0 where the population is of failures.
    """

    confidence: FloatArray
    loss: FloatArray


class Population(ABC):
    """A law of confidence and loss of which risk, curves and areas are known exactly.

    Answers: what would each metric be with endless data? Made by `two_gaussians`,
    `gaussian_scores`, `beta_scores`, `discrete_scores`, `continuous_loss` and the others, or by
    `make` from a name.

    Attributes
    ----------
    name : str
        The name of the family.
    is_binary : bool
        Whether the loss is 0 or 1, so that a mean loss is a failure probability.
    probability : bool
        Whether the confidence lies in [0, 1] and claims to be the probability of being right.

    See Also
    --------
    abstain.simulate.make : Make one by name.

    Notes
    -----
    Closed forms where there are any, else adaptive quadrature to 1e-10 (`TOLERANCE`). Areas that
    need quadrature are computed once, on first use.

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

    # ------------------------------------------------------------- what each population defines
    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the family."""

    @property
    def is_binary(self) -> bool:
        """Whether the loss is 0 or 1."""
        return True

    @property
    def probability(self) -> bool:
        """Whether the confidence claims to be the probability of being right."""
        return False

    @abstractmethod
    def _curve(self) -> RiskCurve:
        """Return the risk at every coverage."""

    @abstractmethod
    def _coverage_above(self, confidence: FloatArray) -> FloatArray:
        """P(g > confidence)."""

    @abstractmethod
    def _confidence_at(self, coverage: FloatArray) -> FloatArray:
        """Return the confidence down to which that share, in (0, 1], is accepted."""

    @abstractmethod
    def _draw(self, n: int, rng: np.random.Generator) -> Sample:
        """Draw n samples."""

    def _coverage_from(self, confidence: FloatArray) -> FloatArray:
        """P(g >= confidence); differs from `_coverage_above` at a tie."""
        return self._coverage_above(confidence)

    # ------------------------------------------------------------------------------ the numbers
    @property
    def parameters(self) -> dict[str, Any]:
        """What the population was made with."""
        # Every population is a frozen dataclass of what it was made with.
        fields: dict[str, Any] = getattr(self, "__dataclass_fields__", {})
        return {name: getattr(self, name) for name, field in fields.items() if field.repr}

    @cached_property
    def curve(self) -> RiskCurve:
        """The risk at every coverage."""
        return self._curve()

    @cached_property
    def risk(self) -> float:
        """Full-coverage risk: the mean loss, for 0/1 loss the error rate R."""
        return self._risk()

    def aurc(self, *, ties: str = "averaged") -> float:
        """AURC: the mean selective risk over all coverages.

        Parameters
        ----------
        ties : {"averaged", "definition", "trapezoid"}, default="averaged"
            What it means where confidences are tied; without ties the three are equal.
            "averaged": a tie is accepted at random in part, ``E[loss x -ln(1 - u)]`` with u spread
            over the ranks of the tie; what the plug-in, log and Monte-Carlo estimators converge to.
            "definition": the expected selective risk at the threshold of a random sample.
            "trapezoid": straight lines between the thresholds, flat to coverage 0, as FD-Shifts
            computes it and `abstain.aurc` by default.

        Returns
        -------
        float
            Lower is better; `risk` for a random order.

        Raises
        ------
        InputError
            If `ties` is not one of the three, or the population resists integration.
        """
        return self.partial_aurc(0.0, 1.0, ties=ties)

    @property
    def augrc(self) -> float:
        """AUGRC: the area under the generalized risk, ``E[loss x u]``; lower is better."""
        return self.partial_augrc(0.0, 1.0)

    @property
    def sele(self) -> float:
        """What SELE converges to: AUGRC."""
        return self.augrc

    @property
    def two_sele(self) -> float:
        """What 2 x SELE converges to: at least AURC where the risk never rises with confidence."""
        return 2.0 * self.augrc

    @property
    def optimal_aurc(self) -> float:
        """AURC of an order by the loss itself; for 0/1 loss R + (1 - R) ln(1 - R)."""
        return self._optima[0]

    @property
    def optimal_augrc(self) -> float:
        """AUGRC of an order by the loss itself; for 0/1 loss R²/2."""
        return self._optima[1]

    def partial_aurc(self, low: float, high: float, *, ties: str = "averaged") -> float:
        """Area under the selective risk between two coverages, not divided by their distance."""
        low, high = _check_range(low, high)
        checks.one_of(ties, "ties", TIES)
        return self._cached_area("aurc", low, high, ties)

    def partial_augrc(self, low: float, high: float) -> float:
        """Area under the generalized risk between two coverages."""
        return self._cached_area("augrc", *_check_range(low, high))

    def selective_risk(self, coverage: AnyArray) -> Any:
        """Mean loss of the share `coverage` that is trusted most; at 0, its limit.

        A tie that the coverage cuts is accepted at random in part. A float for a number, an array
        for an array.
        """
        return _as_input_type(coverage, self.curve.selective_risk(_check_coverage(coverage)))

    def generalized_risk(self, coverage: AnyArray) -> Any:
        """Coverage x selective risk: for 0/1 loss the chance of being accepted and wrong."""
        return _as_input_type(coverage, self.curve.generalized_risk(_check_coverage(coverage)))

    def rank(self, confidence: AnyArray) -> Any:
        """Return the population rank u = P(g <= confidence); of tied confidences, the highest."""
        return _as_input_type(
            confidence, 1.0 - self._coverage_above(_check_confidence(confidence, "confidence"))
        )

    def coverage(self, threshold: AnyArray) -> Any:
        """Share accepted at a threshold: P(g >= threshold)."""
        return _as_input_type(
            threshold, self._coverage_from(_check_confidence(threshold, "threshold"))
        )

    def threshold(self, coverage: AnyArray) -> Any:
        """Highest threshold at which at least that share, above 0, is accepted."""
        share = np.maximum(_check_coverage(coverage), np.finfo(float).tiny)
        return _as_input_type(coverage, self._confidence_at(share))

    def mean_loss(self, confidence: AnyArray) -> Any:
        """Mean loss, for 0/1 loss the failure probability, of samples of that confidence."""
        # The upper end of the coverages that a tie spans belongs to it; the lower one does not.
        return _as_input_type(
            confidence,
            self.curve.margin_loss(
                self._coverage_from(_check_confidence(confidence, "confidence"))
            ),
        )

    def mean_loss_at(self, rank: AnyArray) -> Any:
        """Mean loss at a population rank u in [0, 1]; of tied confidences `rank` is the highest."""
        u = _check_fractions(rank, "rank")
        coverage = 1.0 - u
        if self.curve.ties:
            # The rank of a tie is that of its upper end, which 1 - u may miss by its rounding.
            coverage = np.where(u < 1, np.minimum(coverage + np.finfo(float).eps, 1.0), coverage)
        return _as_input_type(rank, self.curve.margin_loss(coverage))

    def sample(self, n: int, *, rng: Rng = None) -> Sample:
        """Draw n independent samples.

        Parameters
        ----------
        n : int
            How many, at least 1.
        rng : int, numpy.random.Generator or None
            A seed, a generator, or None for fresh entropy.

        Returns
        -------
        Sample
            (confidence, loss), each of shape (n,).
        """
        return self._draw(checks.positive_int(n, "n"), as_generator(rng))

    # ------------------------------------------------------------------------------- inner works
    def _risk(self) -> float:
        return float(self.curve.generalized_risk(np.array(1.0)))

    def _area(self, area: str, low: float, high: float, ties: str) -> float:
        """Compute an area; populations with a closed form give it here for the whole range."""
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
        """AURC and AUGRC of the best order; of failures here."""
        r = self.risk
        aurc = r + (1.0 - r) * float(np.log1p(-r)) if r < 1 else 1.0
        return aurc, r * r / 2


@dataclass(frozen=True)
class PopulationEntry:
    """A population of the catalogue.

    Attributes
    ----------
    name : str
        What `make` takes.
    title : str
        What a table prints.
    meaning : str
        What it models, in one sentence.
    build : callable
        From keyword options to the population; `options` lists them.

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
        """The options and their defaults."""
        options = inspect.signature(self.build).parameters
        return {name: parameter.default for name, parameter in options.items()}

    def make(self, **options: Any) -> Population:
        """Build the population; `InputError` for an option that it does not have.

        Parameters
        ----------
        **options
            Of `options`; the others keep their defaults.

        Returns
        -------
        Population
            The population.
        """
        for name in options:
            if name not in self.options:
                option_names = ", ".join(f"`{option}`" for option in self.options)
                suggestion = suggest(name, self.options)
                raise InputError(
                    f"the population {self.name!r} has no option `{name}`.{suggestion} It has "
                    f"{option_names}."
                )
        return self.build(**options)


class UniformScores(Population):
    """A population whose confidence is the population rank itself, uniform on [0, 1]."""

    def _coverage_above(self, confidence: FloatArray) -> FloatArray:
        return 1.0 - np.clip(confidence, 0.0, 1.0)

    def _confidence_at(self, coverage: FloatArray) -> FloatArray:
        return 1.0 - coverage


def sample_failures(probability: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draw losses of 1 with these probabilities, else 0."""
    return (rng.random(probability.shape) < probability).astype(np.float64)


def check_open_fraction(x: float, name: str) -> float:
    """Validate a share that is neither 0 nor 1."""
    value = checks.fraction(x, name)
    if value in {0.0, 1.0}:
        raise DomainError(f"`{name}` must lie between 0 and 1, both excluded; got {value!r}")
    return value


def _check_range(low: float, high: float) -> tuple[float, float]:
    high = checks.fraction(high, "high")
    return checks.fraction(low, "low", high=high), high


def _check_numbers(x: AnyArray, name: str) -> tuple[FloatArray, tuple[int, ...]]:
    """Return the numbers in one row, as `checks` takes them, and the shape they came in."""
    values = np.asarray(x)
    return checks.vector(values.ravel(), name).astype(np.float64), values.shape


def _check_confidence(x: AnyArray, name: str) -> FloatArray:
    """Refuse NaN; a threshold may be infinite, which accepts all or nothing."""
    values, shape = _check_numbers(x, name)
    checks.reject_entries(name, "must not be NaN", values, np.isnan(values))
    return values.reshape(shape)


def _check_coverage(x: AnyArray) -> FloatArray:
    return _check_fractions(x, "coverage", hint="Coverage is a fraction, not percent.")


def _check_fractions(x: AnyArray, name: str, *, hint: str = "") -> FloatArray:
    values, shape = _check_numbers(x, name)
    checks.unit_interval(checks.finite(values, name), name, hint=hint)
    return values.reshape(shape)


def _as_input_type(input_value: AnyArray, values: FloatArray) -> Any:
    """Return a float for a number, an array for an array."""
    return float(values) if np.ndim(input_value) == 0 else values
