"""Scores whose parameter is searched on held-out data: a temperature, the exponent of a norm."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Protocol, TypeVar, get_args, runtime_checkable

import numpy as np

from abstain._foundation import checks
from abstain._foundation.lazy_imports import special
from abstain._foundation.records import AtLeastTwo, NonEmptyText, NonNegative, Positive
from abstain.confidence.entry import ConfidenceScore, Score, positive_temperature
from abstain.confidence.fitted_score import FitNeed, FittedKind, FittedScore
from abstain.confidence.logit_scores import max_logit, normalized_max_logit
from abstain.confidence.registry import SCORES
from abstain.confidence.softmax_scores import max_softmax_response
from abstain.errors import DomainError, InputError, MissingInputError
from abstain.predictions import Predictions, per_sample_loss
from abstain.predictions.softmax import row_blocks
from abstain.typing import Array, FloatArray

#: From confidence (n,) and loss (n,) to a number, lower is better: `abstain.augrc` is one.
Criterion = Callable[[FloatArray, Array], float]

StateT = TypeVar("StateT", bound=FittedScore)


@runtime_checkable
class ScoreCriterion(Protocol):
    """A criterion that also knows what to do with a score's probabilities."""

    def of_score(self, own: ConfidenceScore) -> float:
        """Return the criterion of a whole score."""


@dataclass(frozen=True, eq=False)
class Judge:
    """A criterion on the fitting data."""

    #: Lower is better.
    criterion: Any
    #: The fitting data.
    predictions: Predictions
    #: Shape (n,). Their loss: 0/1, or the one that came with them.
    loss: Array

    def __call__(self, candidate: FittedScore) -> float:
        """Return the criterion of one candidate; NaN where it is undefined."""
        own = candidate.score(self.predictions)
        if isinstance(self.criterion, ScoreCriterion):
            found: Any = self.criterion.of_score(own)
        else:
            found = self.criterion(own.values, self.loss)
        try:
            return float(found)
        except (TypeError, ValueError):
            raise InputError(f"`criterion` must return a number; got {found!r}") from None


def judge_of(criterion: Any, predictions: Predictions, kind: str) -> Judge:
    """Return what judges candidates; refuse to search without a criterion."""
    if criterion is None:
        raise InputError(
            f"the score {kind!r} is fitted by a search: pass `criterion`, a function of "
            "(confidence, loss) that is lower when better, such as `abstain.augrc`, or call "
            "`abstain.fit_score` with a metric by name"
        )
    if not callable(criterion):
        raise InputError(f"`criterion` must be a function of (confidence, loss); got {criterion!r}")
    loss = per_sample_loss(predictions)
    return Judge(criterion, predictions, loss)


def best_of(candidates: Iterable[StateT], judge: Judge) -> tuple[StateT, float]:
    """Return the best candidate and its value; of equal ones the first."""
    best: tuple[StateT, float] | None = None
    for candidate in candidates:
        value = judge(candidate)
        if not np.isnan(value) and (best is None or value < best[1]):
            best = candidate, value
    if best is None:
        raise DomainError(
            "`criterion` is undefined (NaN) for every candidate; fit on data with failures and "
            "successes, or use a criterion such as `abstain.augrc` that needs neither"
        )
    return best


def numbers(grid: Any, name: str, check: Callable[[Any, str], float]) -> list[float]:
    """Validate a grid: some distinct numbers, each passed through `check`."""
    if isinstance(grid, str) or not isinstance(grid, Iterable):
        raise InputError(f"`{name}` must be a list of numbers; got {grid!r}")
    out = list(dict.fromkeys(check(x, name) for x in grid))
    if not out:
        raise InputError(f"`{name}` must hold at least one number; got none")
    return out


def temperatures_of(grid: Any, default: Iterable[float]) -> list[float]:
    """Return the temperatures to try, the simplest first: that nearest to 1."""
    tried = numbers(default if grid is None else grid, "temperatures", checks.positive)
    return sorted(tried, key=lambda t: abs(np.log(t)))


# ------------------------------------------------------------------------------- temperature
#: Temperatures tried where none are given: 10 a factor of 10, from 0.01 to 10, 1 among them.
TEMPERATURES = tuple(float(f"{10 ** (i / 10):.3g}") for i in range(-20, 11))


@dataclass(frozen=True, eq=False, kw_only=True)
class TunedTemperature(FittedScore):
    """A score of the catalogue at a temperature that was chosen.

    Attributes
    ----------
    name : str
        The name that results carry: that of the score at its temperature, "msr@T=1.5".
    base : str
        The score's name in `SCORES`.
    temperature : float
        Divides the logits.
    """

    kind: ClassVar[str] = "temperature"

    base: NonEmptyText
    temperature: Positive

    def __post_init__(self) -> None:
        """Check every field, and that the score has a temperature."""
        super().__post_init__()
        _ = self._entry

    @property
    def _entry(self) -> Score:
        return SCORES[self.base].at(self.temperature)

    def score(self, predictions: Predictions) -> ConfidenceScore:
        """Return the confidences of other samples, shape (n,); labels are not looked at."""
        entry = self._entry
        if missing := entry.missing(predictions):
            raise MissingInputError(f"the score {self.name!r} {missing}")
        values = entry.compute(predictions)
        p = None if entry.to_probability is None else entry.to_probability(values)
        return ConfidenceScore(self.name, values, p)


def fit_temperature_score(
    predictions: Predictions, *, score: str, temperature: Any, temperatures: Any, criterion: Any
) -> TunedTemperature:
    """Choose the temperature of a score on a grid, or take the one given."""
    if temperature is not None:
        if criterion is not None or temperatures is not None:
            raise InputError(
                "`temperature` is given, so there is no search: drop `criterion`, `temperatures`"
            )
        return _at(score, positive_temperature(temperature))
    judge = judge_of(criterion, predictions, "temperature")
    tried = temperatures_of(temperatures, TEMPERATURES)
    return best_of((_at(score, t) for t in tried), judge)[0]


def _at(score: str, temperature: float) -> TunedTemperature:
    entry = SCORES[score].at(temperature)
    return TunedTemperature(name=entry.name, base=score, temperature=temperature)


# ------------------------------------------------------------------------------------ p-norm
#: Exponents tried where none are given; 0 leaves the centered logits as they are.
EXPONENTS = tuple(range(11))
#: What the normalized logits may be scored by.
Base = Literal["mls", "msr"]
BASES = get_args(Base)


@dataclass(frozen=True, eq=False, kw_only=True)
class TunedNorm(FittedScore):
    """A score of p-normalized logits, or the softmax response where no exponent beats it.

    Attributes
    ----------
    name : str
        The name that results carry.
    classes : int
        The number of classes.
    base : {"mls", "msr"}
        What the normalized logits are scored by: their largest, or their softmax.
    p : float
        The exponent; 0 leaves the centered logits as they are.
    temperature : float
        Divides the normalized logits, for "msr".
    scale : float
        The mean p-norm of the fitting data, by which normalized logits are multiplied for
        "msr"; 1 for p = 0.
    fallback : bool
        Whether no exponent beat the softmax response of the logits, which is then the score.
    """

    kind: ClassVar[str] = "pnorm"

    classes: AtLeastTwo
    base: Base
    p: NonNegative
    temperature: Positive
    scale: NonNegative
    fallback: bool

    def __post_init__(self) -> None:
        """Check every field, and that the exponent makes a norm."""
        super().__post_init__()
        _exponent(self.p)

    def score(self, predictions: Predictions) -> ConfidenceScore:
        """Return the confidences of other samples, shape (n,); labels are not looked at."""
        z = _logits(predictions, self.name)
        if z.shape[1] != self.classes:
            raise InputError(
                f"the score {self.name!r} was fitted on {self.classes} classes; these predictions "
                f"have {z.shape[1]}"
            )
        values = np.empty(predictions.n)
        for rows in row_blocks(*z.shape):
            values[rows] = self._of(z[rows])
        soft = self.fallback or self.base == "msr"
        return ConfidenceScore(
            self.name, values, np.asarray(special.expit(values)) if soft else None
        )

    def _of(self, z: Array) -> FloatArray:
        out: FloatArray
        if self.fallback:
            out = max_softmax_response(z)
        elif self.base == "mls":
            out = normalized_max_logit(z, p=self.p) if self.p else max_logit(centered(z))
        else:
            out = max_softmax_response(self._normalized(z), temperature=self.temperature)
        return out

    def _normalized(self, z: Array) -> FloatArray:
        z = centered(z)
        norm = norms(z, self.p)[:, None] if self.p else np.ones((len(z), 1))
        return z * (self.scale / np.where(norm > 0, norm, 1.0))


def centered(z: Array) -> FloatArray:
    """Return logits minus their mean over the classes, (rows, K); equal ones are exactly 0."""
    out = z.astype(np.float64)
    out -= out.max(axis=1, keepdims=True)
    out -= out.mean(axis=1, keepdims=True)
    return out


def norms(z: FloatArray, p: float) -> FloatArray:
    """Return the p-norm of each row, (rows,)."""
    size = np.abs(z).max(axis=1)
    unit = np.abs(z) / np.where(size > 0, size, 1.0)[:, None]
    out: FloatArray = size * (unit**p).sum(axis=1) ** (1.0 / p)
    return out


def fit_norm(
    predictions: Predictions, *, base: Base, exponents: Any, temperatures: Any, criterion: Any
) -> TunedNorm:
    """Choose the exponent, and for "msr" the temperature; fall back where neither helps."""
    checks.one_of(base, "base", BASES)
    judge = judge_of(criterion, predictions, TunedNorm.kind)
    powers = numbers(EXPONENTS if exponents is None else exponents, "exponents", _exponent)
    if base == "mls" and temperatures is not None:
        raise InputError(
            "a temperature does not change the order of the largest logit; drop `temperatures`"
        )
    cooled = temperatures_of(temperatures, TEMPERATURES) if base == "msr" else [1.0]
    found, value = best_of(_candidates(predictions, base, powers, cooled), judge)
    plain = _state(predictions, base, 0.0, fallback=True)
    # A fallback whose criterion is undefined is no reason to give up a candidate that has one.
    return plain if judge(plain) <= value else found


def _candidates(
    predictions: Predictions, base: Base, exponents: list[float], temperatures: list[float]
) -> Iterator[TunedNorm]:
    for p in exponents:
        plain = _state(predictions, base, p)
        yield from (_cooled(plain, t) for t in temperatures)


def _cooled(plain: TunedNorm, temperature: float) -> TunedNorm:
    if temperature == 1:
        return plain
    told = repr(temperature).removesuffix(".0")
    return replace(plain, name=f"{plain.name},T={told}", temperature=temperature)


def _state(predictions: Predictions, base: Base, p: float, *, fallback: bool = False) -> TunedNorm:
    z = _logits(predictions, TunedNorm.kind)
    scale = 1.0
    if base == "msr" and p:
        sums = [norms(centered(z[rows]), p).sum() for rows in row_blocks(*z.shape)]
        scale = float(np.sum(sums) / len(z))
    told = "msr" if fallback else f"{'base=msr,' if base == 'msr' else ''}p={p:g}"
    return TunedNorm(
        name=f"pnorm@{told}",
        classes=z.shape[1],
        base=base,
        p=p,
        temperature=1.0,
        scale=scale,
        fallback=fallback,
    )


def _logits(predictions: Predictions, name: str) -> Array:
    if not predictions.has_logits:
        raise MissingInputError(f"the score {name!r} needs logits")
    out: Array = predictions.logits
    return out


def _exponent(x: Any, name: str = "p") -> float:
    """Validate an exponent: 0 for no norm, or at least 1."""
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
        "where no p beats it",
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
