"""Confidence from the similarity to mean training features (simplified Hopfield energy, SHE)."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from abstain._foundation.records import ClassNames, axes
from abstain.confidence.entry import ConfidenceScore
from abstain.confidence.fitted_score import (
    FitNeed,
    FittedKind,
    FittedScore,
    as_confidence_score,
    check_class_counts,
    check_same_classes,
    feature_blocks,
    features_as_double,
    predicted_class_index,
)
from abstain.predictions import Predictions
from abstain.typing import FloatArray


@dataclass(frozen=True, eq=False, kw_only=True)
class StoredPatterns(FittedScore):
    """The SHE score: inner product of the features with mean features of the predicted class.

    Attributes
    ----------
    name : str
        Name of the score in results.
    classes : tuple
        Class names, in the order of `patterns`.
    patterns : ndarray of shape (K, d)
        Mean features of the correctly predicted training samples of each class. If a class has no
        correct predictions, the mean is over all its training samples.
    """

    kind: ClassVar[str] = "she"

    classes: ClassNames
    patterns: Annotated[FloatArray, axes("K", "d")]

    def score(self, predictions: Predictions) -> ConfidenceScore:
        """Compute the confidence of each sample, shape (n,). Labels are not required."""
        check_same_classes(predictions, self.classes, self.name)
        predicted = predicted_class_index(predictions, self.classes)
        values = np.empty(predictions.n)
        for block, x in feature_blocks(predictions, self.patterns.shape[1], self.name):
            pattern = self.patterns[predicted[block]]
            with np.errstate(over="ignore", invalid="ignore"):
                values[block] = np.vecdot(x, pattern)
        return as_confidence_score(self.name, values)


def fit_patterns(predictions: Predictions) -> StoredPatterns:
    """Compute each class's mean features over its correctly predicted training samples."""
    codes = check_class_counts(predictions, StoredPatterns.kind, min_count=1)
    features = features_as_double(predictions)
    is_correct = predictions.prediction_codes == codes
    patterns = np.empty((predictions.n_classes, features.shape[1]))
    for class_code in range(predictions.n_classes):
        is_used = codes == class_code
        # The paper defines no pattern for a class without a correct prediction.
        if (is_used & is_correct).any():
            is_used &= is_correct
        patterns[class_code] = features[is_used].mean(axis=0)
    return StoredPatterns(name="she", classes=predictions.class_names, patterns=patterns)


ENTRIES = (
    FittedKind(
        "she",
        "Simplified Hopfield energy (SHE)",
        fit_patterns,
        StoredPatterns,
        "the inner product of the features with the mean features of the correctly predicted "
        "training samples of the predicted class",
        "Zhang et al. (2023), https://openreview.net/forum?id=KkazG4lgKL",
        frozenset({FitNeed.FEATURES, FitNeed.LABELS}),
        frozenset({FitNeed.FEATURES}),
    ),
)
