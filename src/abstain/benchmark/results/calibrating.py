"""Confidences to probabilities of being right, by what is known from validation data."""

import numpy as np
from scipy.special import expit

from abstain._foundation.scored import Scored
from abstain.benchmark.methods import METHODS
from abstain.benchmark.results.reading import Reading
from abstain.benchmark.results.settings import averages_of
from abstain.benchmark.runs import Run, RunScores
from abstain.benchmark.selection import predictions_of
from abstain.calibration import fit_platt
from abstain.errors import AbstainError, MissingInputError
from abstain.evaluation import CalibratedScore, calibrate
from abstain.metrics import METRICS
from abstain.predictions import Predictions, per_sample_loss
from abstain.typing import FloatArray

__all__ = ["Calibrators", "as_probability", "ece_of"]


class Calibrators:
    """Platt scaling of every method of every run, fitted when it is first asked for.

    Parameters
    ----------
    reading : Reading
        Where the validation data are.
    """

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._validation: dict[str, RunScores | None] = {}
        self._fitted: dict[tuple[str, str], CalibratedScore | None] = {}

    def validation(self, run: Run, method: str) -> Predictions | None:
        """Return what a method says of the validation pictures; None where it says nothing."""
        if run.name not in self._validation:
            self._validation[run.name] = self._reading.validation(run)
        known = self._validation[run.name]
        if known is None or not np.isfinite(known.confidence.get(method, np.nan)).all():
            return None
        return predictions_of(known, [method], averages=averages_of(method))

    def there(self, run: Run, method: str) -> bool:
        """Tell whether a method could be calibrated."""
        place = (run.name, method)
        if place not in self._fitted:
            known = self.validation(run, method)
            self._fitted[place] = None if known is None else _fitted(method, known)
        return self._fitted[place] is not None

    def apply(self, run: Run, method: str, confidence: FloatArray) -> FloatArray:
        """Return the probabilities of being right; `there` has to be true."""
        known, state = self.validation(run, method), self._fitted[run.name, method]
        if known is None or state is None:
            msg = f"{method!r} has no confidences of the validation data of {run.name!r}"
            raise MissingInputError(msg)
        asked = Predictions(confidence={method: confidence}, loss=np.zeros(confidence.size))
        try:
            found = state.score(asked).probability
        except MissingInputError:
            # On validation data it was within [0, 1] by chance: it is no probability.
            values = known.confidence[method]
            found = fit_platt(values, per_sample_loss(known)).apply(confidence)
        return np.asarray(found)


def _fitted(method: str, known: Predictions) -> CalibratedScore | None:
    try:
        return calibrate(method, known)
    except AbstainError:
        return None


def as_probability(method: str, confidence: FloatArray) -> FloatArray | None:
    """Return confidences as the probabilities they are by nature; None where they are none.

    Methods whose confidence is the log-odds of a probability say so in their meaning; one that
    was added is a probability if all it says is.
    """
    if method in METHODS:
        return expit(confidence) if "log-odds" in METHODS[method].meaning else None
    inside = confidence.min() >= 0 and confidence.max() <= 1
    return confidence if inside else None


def ece_of(s: Scored) -> float:
    """Return the expected calibration error of confidences that are probabilities."""
    return float(METRICS["ece"].compute(s).value)
