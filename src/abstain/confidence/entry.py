"""Define `Score`, the catalogue entry of a confidence score, and `ConfidenceScore`, its result."""

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
    """Input that a score requires. The value is the error message for the missing input."""

    FEATURES = "needs features"
    LOGITS = "needs logits"
    CLASS_SCORES = "needs class probabilities or logits"
    SAMPLES = "needs Monte-Carlo samples"
    LOGIT_SAMPLES = "needs Monte-Carlo samples of the logits"
    LABELS = "needs labels"
    OUTCOMES = "needs labels or `loss`"
    LAST_LAYER = "needs the last layer (`last_layer=(weight, bias)`)"


_CHECKS: dict[ScoreNeed, Callable[[Predictions], bool]] = {
    ScoreNeed.FEATURES: lambda p: p.features is not None,
    ScoreNeed.LOGITS: lambda p: p.has_logits,
    ScoreNeed.CLASS_SCORES: lambda p: p.has_class_scores,
    ScoreNeed.SAMPLES: lambda p: p.has_samples,
    ScoreNeed.LOGIT_SAMPLES: lambda p: p.logit_samples is not None,
    ScoreNeed.LABELS: lambda p: p.has_labels,
    ScoreNeed.OUTCOMES: lambda p: p.has_labels or p.loss is not None,
    # The last layer is an option of `fit`, which validates it.
    ScoreNeed.LAST_LAYER: lambda _: True,
}


def unmet_needs(needs: frozenset[ScoreNeed], predictions: Predictions) -> list[str]:
    """Return a message for each required input that is missing."""
    return [need.value for need in ScoreNeed if need in needs and not _CHECKS[need](predictions)]


@dataclass(frozen=True)
class Score:
    """Catalogue entry of a confidence score, also called a confidence scoring function (CSF).

    Attributes
    ----------
    name : str
        Name in function calls and on the command line, such as "msr". The name includes a
        temperature other than 1, as in "msr@T=1.5".
    title : str
        Name in reports.
    compute : callable
        Function from `Predictions` with all required inputs to float64 confidences of shape (n,).
    needs : frozenset of ScoreNeed
        Inputs that the predictions must contain.
    meaning : str
        Description in one sentence.
    source : str
        Reference of the definition.
    unit : str
        Scale of the confidences: "probability", "log-odds" or "real".
    to_probability : callable or None
        Function from the confidences to probabilities of a correct prediction, if there is one.
    compute_at_temperature : callable or None
        Function from predictions and a temperature to the confidences, if there is one.
    function : str
        Call of the function in `abstain.confidence` that computes the score from arrays, as text.
    kernel : callable or None
        Function from logits or log-probabilities, shape (n, K), to the confidences, or None if the
        score needs other inputs.
    is_multiplied_by_temperature : bool
        Whether the output of the kernel is multiplied by the temperature.
    """

    name: str
    title: str
    compute: Callable[[Predictions], FloatArray]
    needs: frozenset[ScoreNeed]
    meaning: str
    source: str
    unit: Literal["probability", "log-odds", "real"] = "real"
    to_probability: Callable[[FloatArray], FloatArray] | None = None
    compute_at_temperature: Callable[[Predictions, float], FloatArray] | None = None
    function: str = ""
    kernel: kernels.Kernel | None = None
    is_multiplied_by_temperature: bool = False

    def reason_not_applicable(self, predictions: Predictions) -> str:
        """Return the reason why the score cannot be computed, or an empty string."""
        return "; ".join(sorted(unmet_needs(self.needs, predictions)))

    def evaluate(self, predictions: Predictions) -> "ConfidenceScore":
        """Compute the confidences. All required inputs must be present."""
        return self.result(self.compute(predictions))

    def result(self, values: FloatArray) -> "ConfidenceScore":
        """Convert values to a `ConfidenceScore`, with probabilities if they are defined."""
        probability = None if self.to_probability is None else self.to_probability(values)
        return ConfidenceScore(self.name, values, probability)

    def with_temperature(self, temperature: float) -> "Score":
        """Return this score with logits divided by a temperature.

        Parameters
        ----------
        temperature : float
            A positive number. A temperature above 1 makes the softmax less confident.

        Returns
        -------
        Score
            The score with the name "NAME@T=TEMPERATURE".

        Raises
        ------
        InputError
            If the score does not depend on a temperature.
        DomainError
            If the temperature is not positive.
        """
        if self.compute_at_temperature is None:
            raise InputError(f"the score {self.name!r} has no temperature; drop `temperature`")
        value = check_temperature(temperature)
        temperature_text = _format_temperature(value)
        return replace(
            self,
            name=f"{self.name}@T={temperature_text}",
            title=f"{self.title} (T = {temperature_text})",
            compute=partial(_at_temperature, self.compute_at_temperature, value),
            compute_at_temperature=None,
        )


def compute_from_class_scores(
    kernel: kernels.Kernel, predictions: Predictions, temperature: float = 1.0
) -> FloatArray:
    """Compute a score from the logits or probabilities of the predictions, shape (n,)."""
    scores = cast("ClassScores", predictions.class_scores)
    return cast("FloatArray", kernels.apply_by_rows(kernel, scores, temperature=temperature))


def compute_from_samples(kernel: kernels.SampleKernel, predictions: Predictions) -> FloatArray:
    """Compute a score from the Monte Carlo samples of the predictions, shape (n,)."""
    samples = cast("ClassScores", predictions.samples)
    return cast("FloatArray", kernels.apply_to_samples_by_rows(kernel, samples))


def class_score_entry(
    name: str,
    title: str,
    kernel: kernels.Kernel,
    meaning: str,
    source: str,
    *,
    function: str,
    needs_logits: bool = False,
    has_temperature: bool = True,
) -> Score:
    """Create the catalogue entry of a score that is computed from logits or probabilities."""
    compute = partial(compute_from_class_scores, kernel)
    need = ScoreNeed.LOGITS if needs_logits else ScoreNeed.CLASS_SCORES
    return Score(
        name,
        title,
        compute,
        frozenset({need}),
        meaning,
        source,
        compute_at_temperature=compute if has_temperature else None,
        function=function,
        kernel=kernel,
    )


def sample_score_entry(
    name: str, title: str, kernel: kernels.SampleKernel, meaning: str, source: str, *, function: str
) -> Score:
    """Create the catalogue entry of a score that is computed from Monte Carlo samples."""
    compute = partial(compute_from_samples, kernel)
    needs = frozenset({ScoreNeed.SAMPLES})
    return Score(name, title, compute, needs, meaning, source, function=function)


def as_log_odds(entry: Score) -> Score:
    """Return a copy of the entry whose values are log-odds of a correct prediction."""
    return replace(entry, unit="log-odds", to_probability=to_probability)


def to_probability(log_odds: FloatArray) -> FloatArray:
    """Convert log-odds to probabilities."""
    return np.asarray(special.expit(log_odds), dtype=np.float64)


def _at_temperature(
    compute: Callable[[Predictions, float], FloatArray],
    temperature: float,
    predictions: Predictions,
) -> FloatArray:
    return compute(predictions, temperature)


def _format_temperature(value: float) -> str:
    """Format a temperature with all digits. An integer has no decimal point."""
    return repr(value).removesuffix(".0")


def check_temperature(x: float) -> float:
    """Validate that a temperature is a positive finite number, and return it as a float."""
    return checks.positive(x, "temperature")


@dataclass(frozen=True, eq=False)
class ConfidenceScore:
    """The confidences of n samples according to one score.

    Attributes
    ----------
    name : str
        Name of the score, including its temperature.
    values : ndarray of shape (n,)
        Confidence of each sample; higher is more confident.
    probability : ndarray of shape (n,) or None
        Probabilities of a correct prediction, if the score determines them.
    is_user_column : bool
        Whether the values are a confidence column of the caller, which has no declared scale.
    """

    name: str
    values: Array
    probability: Array | None = None
    is_user_column: bool = False

    @property
    def scale(self) -> Scale:
        """Scale of the values: "probability", "log-odds", or "score" for other scales."""
        if self.probability is None:
            return "score"
        if self.probability is self.values:
            return "probability"
        probability = special.expit(self.values)
        is_log_odds = np.allclose(probability, self.probability, rtol=1e-9, atol=1e-12)
        return "log-odds" if is_log_odds else "score"
