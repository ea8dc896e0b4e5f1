"""A score of the catalogue at a temperature chosen on held-out data."""

from dataclasses import dataclass
from typing import Any, ClassVar

from abstain._foundation.records import Positive, Text
from abstain.confidence._entry import ConfidenceScore, Score, positive_temperature
from abstain.confidence._search import best_of, judge_of, temperatures_of
from abstain.confidence.fitted import FittedScore
from abstain.confidence.registry import SCORES
from abstain.errors import InputError, MissingInputError
from abstain.predictions import Predictions

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

    base: Text
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
            msg = f"the score {self.name!r} {missing}"
            raise MissingInputError(msg)
        values = entry.compute(predictions)
        p = None if entry.to_probability is None else entry.to_probability(values)
        return ConfidenceScore(self.name, values, p)


def fit_temperature_score(
    predictions: Predictions, *, score: str, temperature: Any, temperatures: Any, criterion: Any
) -> TunedTemperature:
    """Choose the temperature of a score on a grid, or take the one given."""
    if temperature is not None:
        if criterion is not None or temperatures is not None:
            msg = "`temperature` is given, so there is no search: drop `criterion`, `temperatures`"
            raise InputError(msg)
        return _at(score, positive_temperature(temperature))
    judge = judge_of(criterion, predictions, "temperature")
    tried = temperatures_of(temperatures, TEMPERATURES)
    return best_of((_at(score, t) for t in tried), judge)[0]


def _at(score: str, temperature: float) -> TunedTemperature:
    entry = SCORES[score].at(temperature)
    return TunedTemperature(name=entry.name, base=score, temperature=temperature)
