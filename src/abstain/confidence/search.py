"""The search for the best of some candidates by a criterion, lower is better."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from abstain._foundation import checks
from abstain.confidence.entry import ConfidenceScore
from abstain.confidence.fitted import FittedScore
from abstain.errors import DomainError, InputError
from abstain.predictions import Predictions, per_sample_loss
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
            msg = f"`criterion` must return a number; got {found!r}"
            raise InputError(msg) from None


def judge_of(criterion: Any, predictions: Predictions, kind: str) -> Judge:
    """Return what judges candidates; refuse to search without a criterion."""
    if criterion is None:
        msg = (
            f"the score {kind!r} is fitted by a search: pass `criterion`, a function of "
            "(confidence, loss) that is lower when better, such as `abstain.augrc`, or call "
            "`abstain.fit_score` with a metric by name"
        )
        raise InputError(msg)
    if not callable(criterion):
        msg = f"`criterion` must be a function of (confidence, loss); got {criterion!r}"
        raise InputError(msg)
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
        msg = (
            "`criterion` is undefined (NaN) for every candidate; fit on data with failures and "
            "successes, or use a criterion such as `abstain.augrc` that needs neither"
        )
        raise DomainError(msg)
    return best


def numbers(grid: Any, name: str, check: Callable[[Any, str], float]) -> list[float]:
    """Validate a grid: some distinct numbers, each passed through `check`."""
    if isinstance(grid, str) or not isinstance(grid, Iterable):
        msg = f"`{name}` must be a list of numbers; got {grid!r}"
        raise InputError(msg)
    out = list(dict.fromkeys(check(x, name) for x in grid))
    if not out:
        msg = f"`{name}` must hold at least one number; got none"
        raise InputError(msg)
    return out


def temperatures_of(grid: Any, default: Iterable[float]) -> list[float]:
    """Return the temperatures to try, the simplest first: that nearest to 1."""
    tried = numbers(default if grid is None else grid, "temperatures", checks.positive)
    return sorted(tried, key=lambda t: abs(np.log(t)))
