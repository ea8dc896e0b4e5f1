"""What the catalogue knows of a confidence score, declared once."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Literal, cast

import numpy as np

from abstain._foundation import checks
from abstain._foundation.lazy_imports import special
from abstain.confidence import kernels
from abstain.errors import InputError
from abstain.predictions import Predictions
from abstain.predictions.outputs import ClassScores
from abstain.typing import Array, FloatArray, Scale


class ScoreNeed(StrEnum):
    """What a score needs of predictions, to score or to be fitted; the value is the reason."""

    FEATURES = "needs features"
    LOGITS = "needs logits"
    CLASS_SCORES = "needs class probabilities or logits"
    SAMPLES = "needs Monte-Carlo samples"
    LOGIT_SAMPLES = "needs Monte-Carlo samples of the logits"
    LABELS = "needs labels"
    OUTCOMES = "needs labels, or a loss of your own"
    LAST_LAYER = "needs the last layer (`last_layer=(weight, bias)`)"


_CHECKS: dict[ScoreNeed, Callable[[Predictions], bool]] = {
    ScoreNeed.FEATURES: lambda p: p.features is not None,
    ScoreNeed.LOGITS: lambda p: p.has_logits,
    ScoreNeed.CLASS_SCORES: lambda p: p.has_class_scores,
    ScoreNeed.SAMPLES: lambda p: p.has_samples,
    ScoreNeed.LOGIT_SAMPLES: lambda p: p.logit_samples is not None,
    ScoreNeed.LABELS: lambda p: p.has_labels,
    ScoreNeed.OUTCOMES: lambda p: p.has_labels or p.loss is not None,
    # It comes as an option, which `fit` asks for.
    ScoreNeed.LAST_LAYER: lambda _: True,
}


def unmet(needs: frozenset[ScoreNeed], predictions: Predictions) -> list[str]:
    """Return the reasons why predictions do not meet the needs."""
    return [need.value for need in ScoreNeed if need in needs and not _CHECKS[need](predictions)]


@dataclass(frozen=True)
class Score:
    """One confidence score; papers call it a confidence scoring function, CSF.

    Attributes
    ----------
    name : str
        The name scripts use; with a temperature "msr@T=1.5".
    title : str
        The name people read.
    compute : callable
        From `Predictions` that meet the needs to an array of shape (n,), float64; higher is
        more confident.
    needs : frozenset of ScoreNeed
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
    function : str
        How to call the function of `abstain.confidence` that computes it on plain arrays.
    kernel : callable or None
        From rows of log-scores to the values, where logits are all it takes: networks can be
        trained on it.
    times_temperature : bool
        Whether what the kernel makes of logits over a temperature is multiplied by it.
    """

    name: str
    title: str
    compute: Callable[[Predictions], FloatArray]
    needs: frozenset[ScoreNeed]
    meaning: str
    source: str
    unit: Literal["probability", "log-odds", "real"] = "real"
    to_probability: Callable[[FloatArray], FloatArray] | None = None
    tempered: Callable[[Predictions, float], FloatArray] | None = None
    function: str = ""
    kernel: kernels.Kernel | None = None
    times_temperature: bool = False

    def missing(self, predictions: Predictions) -> str:
        """Return why the score does not apply to these predictions, or an empty string."""
        return "; ".join(sorted(unmet(self.needs, predictions)))

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
            raise InputError(f"the score {self.name!r} has no temperature; drop `temperature`")
        value = positive_temperature(temperature)
        return replace(
            self,
            name=f"{self.name}@T={_short(value)}",
            title=f"{self.title} (T = {_short(value)})",
            compute=partial(_at_temperature, self.tempered, value),
            tempered=None,
        )


def of_rows(
    kernel: kernels.Kernel, predictions: Predictions, temperature: float = 1.0
) -> FloatArray:
    """Compute a score from logits or probabilities; predictions hold NumPy arrays."""
    scores = cast("ClassScores", predictions.class_scores)
    return cast("FloatArray", kernels.by_rows(kernel, scores, temperature=temperature))


def of_samples(kernel: kernels.SampleKernel, predictions: Predictions) -> FloatArray:
    """Compute a score from Monte-Carlo samples."""
    samples = cast("ClassScores", predictions.samples)
    return cast("FloatArray", kernels.by_rows_of_samples(kernel, samples))


def to_probability(log_odds: FloatArray) -> FloatArray:
    """Return the probabilities of log-odds."""
    return np.asarray(special.expit(log_odds), dtype=np.float64)


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
        exact = np.allclose(special.expit(self.values), self.probability, rtol=1e-9, atol=1e-12)
        return "log-odds" if exact else "score"
