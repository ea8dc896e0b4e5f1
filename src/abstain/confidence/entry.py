"""What the catalogue knows of a confidence score, declared once."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Literal

import numpy as np
from scipy.special import expit

from abstain._foundation import checks
from abstain.errors import InputError
from abstain.predictions import Predictions
from abstain.typing import Array, FloatArray, Scale


class Need(StrEnum):
    """What a score needs of the predictions; the value is the reason shown."""

    LOGITS = "needs logits"
    CLASS_SCORES = "needs class probabilities or logits"
    SAMPLES = "needs Monte-Carlo samples"
    LOGIT_SAMPLES = "needs Monte-Carlo samples of the logits"


_CHECKS: dict[Need, Callable[[Predictions], bool]] = {
    Need.LOGITS: lambda p: p.has_logits,
    Need.CLASS_SCORES: lambda p: p.has_class_scores,
    Need.SAMPLES: lambda p: p.has_samples,
    Need.LOGIT_SAMPLES: lambda p: p.logit_samples is not None,
}


@dataclass(frozen=True)
class Score:
    """One confidence scoring function.

    Attributes
    ----------
    name : str
        The name scripts use; with a temperature "msr@T=1.5".
    title : str
        The name people read.
    compute : callable
        From `Predictions` that meet the needs to an array of shape (n,), float64; higher is
        more confident.
    needs : frozenset of Need
        What must be there.
    meaning : str
        One plain sentence.
    source : str
        Where it is defined.
    unit : str
        The scale of the values: "log-odds" or "real".
    to_probability : callable or None
        From the values to a probability of being right, where they mean one.
    tempered : callable or None
        From predictions and a temperature to the values, where a temperature has a meaning.
    """

    name: str
    title: str
    compute: Callable[[Predictions], FloatArray]
    needs: frozenset[Need]
    meaning: str
    source: str
    unit: Literal["probability", "log-odds", "real"] = "real"
    to_probability: Callable[[FloatArray], FloatArray] | None = None
    tempered: Callable[[Predictions, float], FloatArray] | None = None

    def missing(self, predictions: Predictions) -> str:
        """Return why the score does not apply to these predictions, or an empty string."""
        unmet = [need.value for need in self.needs if not _CHECKS[need](predictions)]
        return "; ".join(sorted(unmet))

    def at(self, temperature: float) -> "Score":
        """Return the score computed from logits divided by a temperature.

        Parameters
        ----------
        temperature : float
            Above 0; above 1 softens the softmax.

        Returns
        -------
        Score
            Named "NAME@T=TEMPERATURE".

        Raises
        ------
        InputError
            The score has no temperature.
        DomainError
            A temperature that is not above 0.
        """
        if self.tempered is None:
            msg = f"the score {self.name!r} has no temperature; drop `temperature`"
            raise InputError(msg)
        value = positive_temperature(temperature)
        return replace(
            self,
            name=f"{self.name}@T={_short(value)}",
            title=f"{self.title} (T = {_short(value)})",
            compute=partial(_at_temperature, self.tempered, value),
            tempered=None,
        )


def _at_temperature(
    tempered: Callable[[Predictions, float], FloatArray], value: float, predictions: Predictions
) -> FloatArray:
    return tempered(predictions, value)


def _short(value: float) -> str:
    """Write a temperature with all its digits, and a whole one without a point."""
    return repr(value).removesuffix(".0")


def positive_temperature(x: float) -> float:
    """Validate a temperature: one finite number above 0."""
    return checks.positive(x, "temperature")


@dataclass(frozen=True, eq=False)
class ConfidenceScore:
    """The confidences of n samples under one score.

    Attributes
    ----------
    name : str
        The score's name, with its temperature if it has one.
    values : ndarray of shape (n,)
        Higher is more confident.
    probability : ndarray of shape (n,) or None
        The same confidences as probabilities of being right, where they mean that.
    own : bool
        Whether they are a column of the caller's, of which only the values tell the scale.
    """

    name: str
    values: Array
    probability: Array | None = None
    own: bool = False

    @property
    def scale(self) -> Scale:
        """What the values are measured in.

        "probability" where they are their own, "log-odds" where they are the log-odds of it, and
        "score" where nothing ties them to one by a formula that can be inverted.
        """
        if self.probability is None:
            return "score"
        if self.probability is self.values:
            return "probability"
        exact = np.allclose(expit(self.values), self.probability, rtol=1e-9, atol=1e-12)
        return "log-odds" if exact else "score"
