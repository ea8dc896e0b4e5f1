"""Select the temperature of a score, or the exponent of MaxLogit-pNorm, on held-out data."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Protocol, TypeVar, get_args, runtime_checkable

import numpy as np

from abstain._foundation import checks
from abstain._foundation.lazy_imports import special
from abstain._foundation.records import AtLeastTwo, NonEmptyText, NonNegative, Positive
from abstain.confidence.entry import ConfidenceScore, Score, check_temperature
from abstain.confidence.fitted_score import FitNeed, FittedKind, FittedScore
from abstain.confidence.logit_scores import max_logit, normalized_max_logit
from abstain.confidence.registry import SCORES
from abstain.confidence.softmax_scores import max_softmax_response
from abstain.errors import DomainError, InputError, MissingInputError
from abstain.predictions import Predictions, per_sample_loss
from abstain.predictions.softmax import row_blocks
from abstain.typing import AnyArray, Array, FloatArray

#: Function from confidence (n,) and loss (n,) to a number, such as `abstain.augrc`. Lower values
#: are better.
Criterion = Callable[[FloatArray, Array], float]

StateT = TypeVar("StateT", bound=FittedScore)


@runtime_checkable
class ScoreCriterion(Protocol):
    """Protocol of criteria that use the probabilities of a score in addition to its values."""

    def of_score(self, score: ConfidenceScore) -> float:
        """Return the value of the criterion for the confidences of one score."""


@dataclass(frozen=True, eq=False)
class FittingCriterion:
    """A criterion and the fitting data on which it is evaluated."""

    #: Function or `ScoreCriterion`. Lower values are better.
    criterion: Any
    #: The fitting data.
    predictions: Predictions
    #: Losses of the fitting data, shape (n,): the loss in the predictions, or the 0/1 loss.
    loss: Array

    def __call__(self, candidate: FittedScore) -> float:
        """Return the value of the criterion for a candidate, or NaN if it is undefined."""
        score = candidate.score(self.predictions)
        if isinstance(self.criterion, ScoreCriterion):
            value: Any = self.criterion.of_score(score)
        else:
            value = self.criterion(score.values, self.loss)
        try:
            return float(value)
        except (TypeError, ValueError):
            raise InputError(f"`criterion` must return a number; got {value!r}") from None


def make_fitting_criterion(criterion: Any, predictions: Predictions, kind: str) -> FittingCriterion:
    """Validate the criterion, and return it with the fitting data."""
    if criterion is None:
        raise InputError(
            f"the score {kind!r} is fitted by a search: pass `criterion`, a function of "
            "(confidence, loss) that is lower when better, such as `abstain.augrc`, or call "
            "`abstain.fit_score` with a metric by name"
        )
    if not callable(criterion):
        raise InputError(f"`criterion` must be a function of (confidence, loss); got {criterion!r}")
    loss = per_sample_loss(predictions)
    return FittingCriterion(criterion, predictions, loss)


def select_best(candidates: Iterable[StateT], criterion: FittingCriterion) -> tuple[StateT, float]:
    """Return the first candidate with the lowest value of the criterion, and this value."""
    best: StateT | None = None
    best_value = float("inf")
    for candidate in candidates:
        value = criterion(candidate)
        if np.isnan(value):
            continue
        if best is None or value < best_value:
            best = candidate
            best_value = value
    if best is None:
        raise DomainError(
            "`criterion` is undefined (NaN) for every candidate; fit on data with failures and "
            "successes, or use a criterion such as `abstain.augrc` that needs neither"
        )
    return best, best_value


def check_grid(grid: Any, name: str, check: Callable[[Any, str], float]) -> list[float]:
    """Validate each candidate value with `check`, and remove duplicates."""
    if isinstance(grid, str) or not isinstance(grid, Iterable):
        raise InputError(f"`{name}` must be a list of numbers; got {grid!r}")
    values = list(dict.fromkeys(check(x, name) for x in grid))
    if not values:
        raise InputError(f"`{name}` must hold at least one number; got none")
    return values


def check_temperatures(grid: Any, default: Iterable[float]) -> list[float]:
    """Return the candidate temperatures, sorted by the absolute value of their logarithm."""
    temperatures = check_grid(default if grid is None else grid, "temperatures", checks.positive)
    return sorted(temperatures, key=lambda t: abs(np.log(t)))


# ------------------------------------------------------------------------------- temperature
#: Default candidate temperatures from 0.01 to 10, with 10 values per factor of 10, including 1.
TEMPERATURES = tuple(float(f"{10 ** (i / 10):.3g}") for i in range(-20, 11))


@dataclass(frozen=True, eq=False, kw_only=True)
class TunedTemperature(FittedScore):
    """A catalogue score with a fitted temperature.

    Attributes
    ----------
    name : str
        Name in results, which includes the temperature, such as "msr@T=1.5".
    base : str
        Name of the score in `SCORES`.
    temperature : float
        Number that divides the logits.
    """

    kind: ClassVar[str] = "temperature"

    base: NonEmptyText
    temperature: Positive

    def __post_init__(self) -> None:
        """Validate the fields, and check that the score has a temperature."""
        super().__post_init__()
        _ = self._entry

    @property
    def _entry(self) -> Score:
        return SCORES[self.base].with_temperature(self.temperature)

    def score(self, predictions: Predictions) -> ConfidenceScore:
        """Compute the confidence of each sample, shape (n,). Labels are not required."""
        entry = self._entry
        missing = entry.reason_not_applicable(predictions)
        if missing:
            raise MissingInputError(f"the score {self.name!r} {missing}")
        return replace(entry.evaluate(predictions), name=self.name)


def fit_temperature_score(
    predictions: Predictions, *, score: str, temperature: Any, temperatures: Any, criterion: Any
) -> TunedTemperature:
    """Select the temperature of a score among candidate values, or use a fixed temperature."""
    if temperature is not None:
        if criterion is not None or temperatures is not None:
            raise InputError(
                "`temperature` is set, so there is no search: drop `criterion` and `temperatures`"
            )
        return _tuned_temperature(score, check_temperature(temperature))
    fitting_criterion = make_fitting_criterion(criterion, predictions, "temperature")
    grid = check_temperatures(temperatures, TEMPERATURES)
    candidates = [_tuned_temperature(score, candidate) for candidate in grid]
    best, _ = select_best(candidates, fitting_criterion)
    return best


def _tuned_temperature(score: str, temperature: float) -> TunedTemperature:
    entry = SCORES[score].with_temperature(temperature)
    return TunedTemperature(name=entry.name, base=score, temperature=temperature)


# ------------------------------------------------------------------------------------ p-norm
#: Default candidate exponents. With exponent 0, the centered logits are not normalized.
EXPONENTS = tuple(range(11))
#: Names of the scores that can be computed from the normalized logits.
Base = Literal["mls", "msr"]
BASES = get_args(Base)


@dataclass(frozen=True, eq=False, kw_only=True)
class TunedNorm(FittedScore):
    """MaxLogit-pNorm or a related score, with a selected exponent p.

    Attributes
    ----------
    name : str
        Name of the score in results.
    classes : int
        The number of classes.
    base : {"mls", "msr"}
        Score of the normalized logits: the largest logit ("mls") or the softmax response ("msr").
    p : float
        Exponent of the norm. If `p` is 0, the centered logits are not normalized.
    temperature : float
        Divisor of the normalized logits if `base` is "msr".
    scale : float
        Mean p-norm of the fitting data, by which the normalized logits are multiplied if `base` is
        "msr". If `p` is 0, the scale is 1.
    fallback : bool
        Whether the score is the maximum softmax response, because no exponent was better.
    """

    kind: ClassVar[str] = "pnorm"

    classes: AtLeastTwo
    base: Base
    p: NonNegative
    temperature: Positive
    scale: NonNegative
    fallback: bool

    def __post_init__(self) -> None:
        """Validate the fields, including the exponent."""
        super().__post_init__()
        check_exponent(self.p)

    def score(self, predictions: Predictions) -> ConfidenceScore:
        """Compute the confidence of each sample, shape (n,). Labels are not required."""
        logits = _require_logits(predictions, self.name)
        n_classes = logits.shape[1]
        if n_classes != self.classes:
            raise InputError(
                f"the score {self.name!r} was fitted on {self.classes} classes; these predictions "
                f"have {n_classes}"
            )
        values = np.empty(predictions.n)
        for block in row_blocks(*logits.shape):
            values[block] = self._score_logits(logits[block])
        is_log_odds = self.fallback or self.base == "msr"
        probability = np.asarray(special.expit(values)) if is_log_odds else None
        return ConfidenceScore(self.name, values, probability)

    def _score_logits(self, logits: Array) -> AnyArray:
        """Return the confidences of a block of logits, shape (n,)."""
        if self.fallback:
            return max_softmax_response(logits)
        if self.base == "msr":
            return max_softmax_response(self._normalize(logits), temperature=self.temperature)
        if self.p == 0:
            return max_logit(center_logits(logits))
        return normalized_max_logit(logits, p=self.p)

    def _normalize(self, logits: Array) -> FloatArray:
        """Return the centered logits divided by their p-norm and multiplied by the mean p-norm."""
        centered = center_logits(logits)
        norm = p_norms(centered, self.p)[:, None] if self.p else np.ones((len(centered), 1))
        return centered * (self.scale / np.where(norm > 0, norm, 1.0))


def center_logits(z: Array) -> FloatArray:
    """Return the logits minus their mean over the classes, shape (n, K)."""
    centered = z.astype(np.float64)
    # Subtracting the maximum first makes equal logits exactly 0.
    centered -= centered.max(axis=1, keepdims=True)
    centered -= centered.mean(axis=1, keepdims=True)
    return centered


def p_norms(z: FloatArray, p: float) -> FloatArray:
    """Return the p-norm of the logits of each sample, shape (n,)."""
    max_size = np.abs(z).max(axis=1)
    scaled = np.abs(z) / np.where(max_size > 0, max_size, 1.0)[:, None]
    norms: FloatArray = max_size * (scaled**p).sum(axis=1) ** (1.0 / p)
    return norms


def fit_norm(
    predictions: Predictions, *, base: Base, exponents: Any, temperatures: Any, criterion: Any
) -> TunedNorm:
    """Select the exponent by the criterion, and for "msr" also the temperature.

    If no exponent improves the criterion, the result is the maximum softmax response.
    """
    checks.one_of(base, "base", BASES)
    fitting_criterion = make_fitting_criterion(criterion, predictions, TunedNorm.kind)
    exponent_grid = EXPONENTS if exponents is None else exponents
    exponent_grid = check_grid(exponent_grid, "exponents", check_exponent)
    if base == "mls" and temperatures is not None:
        raise InputError(
            "a temperature does not change the order of the largest logit; drop `temperatures`"
        )
    temperature_grid = check_temperatures(temperatures, TEMPERATURES) if base == "msr" else [1.0]
    candidates = _candidates(predictions, base, exponent_grid, temperature_grid)
    best, best_value = select_best(candidates, fitting_criterion)
    fallback = _fit_exponent(predictions, base, 0.0, fallback=True)
    # If the criterion of the fallback is NaN, the comparison is False and the candidate is used.
    return fallback if fitting_criterion(fallback) <= best_value else best


def _candidates(
    predictions: Predictions, base: Base, exponents: list[float], temperatures: list[float]
) -> Iterator[TunedNorm]:
    """Yield one candidate score for each pair of exponent and temperature."""
    for p in exponents:
        state = _fit_exponent(predictions, base, p)
        for temperature in temperatures:
            suffix = "" if temperature == 1 else f",T={repr(temperature).removesuffix('.0')}"
            yield replace(state, name=state.name + suffix, temperature=temperature)


def _fit_exponent(
    predictions: Predictions, base: Base, p: float, *, fallback: bool = False
) -> TunedNorm:
    """Return the score for one exponent at temperature 1."""
    logits = _require_logits(predictions, TunedNorm.kind)
    scale = 1.0
    if base == "msr" and p:
        scale = _mean_norm(logits, p)
    if fallback:
        options = "msr"
    elif base == "msr":
        options = f"base=msr,p={p:g}"
    else:
        options = f"p={p:g}"
    return TunedNorm(
        name=f"pnorm@{options}",
        classes=logits.shape[1],
        base=base,
        p=p,
        temperature=1.0,
        scale=scale,
        fallback=fallback,
    )


def _mean_norm(logits: Array, p: float) -> float:
    """Return the mean p-norm of the centered logits."""
    block_sums = []
    for block in row_blocks(*logits.shape):
        norms = p_norms(center_logits(logits[block]), p)
        block_sums.append(norms.sum())
    return float(np.sum(block_sums) / len(logits))


def _require_logits(predictions: Predictions, name: str) -> Array:
    if not predictions.has_logits:
        raise MissingInputError(f"the score {name!r} needs logits")
    logits: Array = predictions.logits
    return logits


def check_exponent(x: Any, name: str = "p") -> float:
    """Validate that an exponent is 0 (no norm) or at least 1."""
    p = checks.number(x, name)
    if p < 0 or 0 < p < 1:
        raise DomainError(f"`{name}` must be 0 (no norm) or at least 1; got {p!r}")
    return p


ENTRIES = (
    FittedKind(
        "pnorm",
        "MaxLogit-pNorm, tuned",
        fit_norm,
        TunedNorm,
        "the largest centered logit over the p-norm with the best p, or the softmax response "
        "if no p is better",
        "Cattelan & Silva (2024), https://arxiv.org/abs/2305.15508 (MaxLogit-pNorm)",
        frozenset({FitNeed.LOGITS, FitNeed.OUTCOMES}),
        frozenset({FitNeed.LOGITS}),
        {"base": "mls", "exponents": None, "temperatures": None},
        searches=True,
        weighted=True,
    ),
    FittedKind(
        "temperature",
        "Tuned temperature",
        fit_temperature_score,
        TunedTemperature,
        "a score of the catalogue at the temperature that is best by a criterion",
        "Guo et al. (2017), https://arxiv.org/abs/1706.04599; by AURC: Cattelan & Silva (2024)",
        frozenset({FitNeed.CLASS_SCORES}),
        frozenset({FitNeed.CLASS_SCORES}),
        {"score": "msr", "temperature": None, "temperatures": None},
        searches=True,
        weighted=True,
    ),
)
