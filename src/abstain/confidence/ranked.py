"""A score on the scale of its own places among the fitting data."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from abstain._foundation.arrays import to_numpy
from abstain._foundation.records import axes
from abstain.confidence.entry import ConfidenceScore
from abstain.confidence.fitted import Composed, FittedScore
from abstain.confidence.registry import score as score_of
from abstain.errors import InputError
from abstain.predictions import Predictions
from abstain.typing import FloatArray


@dataclass(frozen=True, eq=False, kw_only=True)
class Ranked(Composed):
    """The place of a score among those of the fitting data, in (0, 1).

    Strictly increasing in the score: it ranks alike, also beyond the values that were met.

    Attributes
    ----------
    name : str
        The name that results carry.
    parts : tuple of str or FittedScore
        The one score.
    steps : ndarray of shape (s,)
        Its distinct values on the fitting data, ascending.
    places : ndarray of shape (s,)
        Where each lies: the share of samples below and half of those tied, of one sample more
        than there were, so that neither 0 nor 1 is reached.
    """

    kind: ClassVar[str] = "rank"

    steps: Annotated[FloatArray, axes("s")]
    places: Annotated[FloatArray, axes("s")]

    def __post_init__(self) -> None:
        """Check every field, and that both scales ascend within their bounds."""
        super().__post_init__()
        if len(self.parts) != 1:
            msg = f"`parts` must hold one score; got {len(self.parts)}"
            raise InputError(msg)
        if (np.diff(self.steps) <= 0).any() or (np.diff(self.places) <= 0).any():
            msg = "`steps` and `places` must ascend"
            raise InputError(msg)
        if self.places[0] <= 0 or self.places[-1] >= 1:
            msg = "`places` must lie between 0 and 1"
            raise InputError(msg)

    def score(self, predictions: Predictions) -> ConfidenceScore:
        """Return the confidences of other samples, shape (n,); labels are not looked at."""
        return ConfidenceScore(self.name, self.placed(values_of(self.parts[0], predictions)))

    def placed(self, x: FloatArray) -> FloatArray:
        """Return the places of values, shape (n,)."""
        low, high, bottom, top = self.steps[0], self.steps[-1], self.places[0], self.places[-1]
        out: FloatArray = np.interp(x, self.steps, self.places)
        # Beyond what was met, what is left of (0, 1) is used up slowly: order stays.
        width = high - low if high > low else 1.0
        under, over = x < low, x > high
        with np.errstate(over="ignore"):
            out[under] = bottom / (1.0 + (low - x[under]) / width)
            out[over] = 1.0 - (1.0 - top) / (1.0 + (x[over] - high) / width)
        return out


def values_of(part: str | FittedScore, predictions: Predictions) -> FloatArray:
    """Return the confidences of a part as float64, shape (n,)."""
    found = score_of(part, predictions).values
    return to_numpy(found, "confidence").astype(np.float64)


def fit_rank(predictions: Predictions, *, score: str | FittedScore) -> Ranked:
    """Fit the places of one score; an integer weight counts a sample that many times."""
    values, weight = values_of(score, predictions), predictions.weight
    if weight is not None:
        values, weight = values[weight > 0], weight[weight > 0]
    steps, at = np.unique(values, return_inverse=True)
    mass = np.bincount(at, weights=weight)
    places = (np.cumsum(mass) - mass / 2 + 0.5) / (mass.sum() + 1)
    # A weight may be too small beside the others to move the place.
    rises = np.diff(places, prepend=0.0) > 0
    return Ranked(
        name=f"rank({score if isinstance(score, str) else score.name})",
        parts=(score,),
        steps=steps[rises],
        places=places[rises],
    )
