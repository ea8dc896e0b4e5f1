"""Predictions with confidences in [0, 1] and a 0/1 loss: from files, or of digits."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from abstain._foundation.lazy_imports import special
from abstain.confidence.registry import BASELINE
from abstain.errors import InputError, MissingInputError
from abstain.evaluation.inputs import compute_scores, join
from abstain.predictions import Predictions, per_sample_loss
from abstain.typing import FloatArray, IntArray
from abstain_bench.studies._inputs import DataArgument, named_datasets

#: Name of the digits. The shifted digits have the noise in their name too.
DIGITS: Final = "digits"

#: Standard deviations of the noise that is added to pixels from 0 to 16.
NOISE_LEVELS: Final = (0.0, 1.0, 2.0, 3.0, 4.0, 6.0)

#: Lowest log-odds that replace those of a confidence of exactly 1: the log-odds of 1 - 1e-12.
_MIN_CERTAIN_LOG_ODDS: Final = 27.63


@dataclass(frozen=True, eq=False)
class ProbabilisticPredictions:
    """Confidences of a model in [0, 1], 0/1 losses, and logits if available."""

    name: str
    confidence: FloatArray
    loss: FloatArray
    logits: FloatArray | None = None
    labels: IntArray | None = None
    #: Number of classes; 2 if unknown.
    n_classes: int = 2
    #: Data set and score. `name` contains both if there are several scores.
    data: str = ""
    score: str = ""

    @cached_property
    def accuracy(self) -> float:
        """Share of correct predictions."""
        return float(1 - self.loss.mean())

    def scale_confidence(self, temperature: float) -> FloatArray:
        """Return the confidences after temperature scaling.

        Without logits, the log-odds of the confidence are divided by the temperature.
        """
        return np.asarray(special.expit(self.scale_log_odds(temperature)))

    def scale_log_odds(self, temperature: float) -> FloatArray:
        """Return the log-odds of the scaled confidences, which do not round to 1.

        Rank metrics need them: many scaled confidences are exactly 1 in float64.
        """
        if self.logits is None:
            return _replace_infinite(special.logit(self.confidence)) / temperature
        scaled = self.logits / temperature
        predicted = scaled.argmax(axis=1)[:, None]
        largest = np.take_along_axis(scaled, predicted, axis=1)[:, 0]
        other_logits = scaled.copy()
        np.put_along_axis(other_logits, predicted, -np.inf, axis=1)
        return _replace_infinite(largest - special.logsumexp(other_logits, axis=1))

    def with_label_noise(self, rate: float) -> "ProbabilisticPredictions":
        """Return the expected losses if this share of the labels is replaced by another class.

        The loss of a sample is then the probability that its prediction counts as wrong. CWSA,
        CWSA+ and accuracies of these losses are expectations over the random labels.
        """
        # A wrong prediction becomes correct if the random label is the predicted class.
        probability_of_match = rate / max(self.n_classes - 1, 1)
        loss = self.loss * (1 - probability_of_match) + (1 - self.loss) * rate
        return replace(self, loss=loss)


def _replace_infinite(log_odds: FloatArray) -> FloatArray:
    """Replace infinite log-odds by finite values beyond all others."""
    largest = np.abs(log_odds[np.isfinite(log_odds)]).max(initial=0.0)
    limit = max(_MIN_CERTAIN_LOG_ODDS, float(largest) + 1.0)
    return np.clip(log_odds, -limit, limit)


def load_predictions(data: DataArgument, scores: Sequence[str]) -> list[ProbabilisticPredictions]:
    """Return the predictions of each data set and score; without data, those of the digits."""
    datasets = named_datasets(data)
    if not datasets:
        return digits()
    return [
        score_predictions
        for name, predictions in datasets.items()
        for score_predictions in _split_by_score(name, predictions, scores)
    ]


def _split_by_score(
    name: str, predictions: Predictions, scores: Sequence[str]
) -> list[ProbabilisticPredictions]:
    if predictions.weight is not None:
        raise InputError(
            f"the study changes labels and class shares, but {name!r} has weights: remove them"
        )
    requested = list(scores) or list(predictions.confidence or {}) or [BASELINE]
    losses = per_sample_loss(predictions, None).astype(np.float64)
    by_score = []
    for score in compute_scores(predictions, requested):
        samples = join(predictions, score, losses)
        if not (samples.has_probability and samples.is_binary):
            continue
        view = samples.class_view
        logits = None
        if view is not None and view.log_probabilities is not None and score.name == BASELINE:
            logits = np.asarray(view.log_probabilities, dtype=np.float64)
        by_score.append(
            ProbabilisticPredictions(
                name if len(requested) == 1 else f"{name}, {score.name}",
                np.asarray(samples.probability_or_confidence, dtype=np.float64),
                losses,
                logits,
                None if view is None else np.asarray(view.labels),
                2 if view is None else len(view.classes),
                name,
                score.name,
            )
        )
    if not by_score:
        raise MissingInputError(
            f"{name!r} has no confidence in [0, 1] with a 0/1 loss among {requested}"
        )
    return by_score


def digits(*, noise_levels: Sequence[float] = NOISE_LEVELS) -> list[ProbabilisticPredictions]:
    """Train a softmax regression on half of scikit-learn's digits, and predict the other half.

    The first element has the original pixels. The others have noise that is absent in training.
    """
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression

    images: Any = load_digits()
    rng = np.random.default_rng(0)
    order = rng.permutation(images.target.size)
    train, test = order[: order.size // 2], order[order.size // 2 :]
    # With the default penalty and pixels from 0 to 1, the model would be underconfident.
    model = LogisticRegression(C=10.0, max_iter=500).fit(
        images.data[train] / 16, images.target[train]
    )
    labels = images.target[test]
    datasets = []
    for noise in noise_levels:
        pixels = images.data[test] + noise * rng.normal(size=images.data[test].shape)
        logits = model.decision_function(np.clip(pixels, 0, 16) / 16)
        confidence = np.exp(logits.max(axis=1) - special.logsumexp(logits, axis=1))
        loss = (logits.argmax(axis=1) != labels).astype(np.float64)
        name = DIGITS if noise == 0 else f"{DIGITS}, noise {noise:g}"
        datasets.append(
            ProbabilisticPredictions(
                name, np.minimum(confidence, 1.0), loss, logits, labels, 10, name, BASELINE
            )
        )
    return datasets
