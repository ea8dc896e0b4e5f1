"""Confidence from the similarity to mean training features, the simplified Hopfield energy."""

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
    """The inner product of features with the stored pattern of the predicted class.

    Attributes
    ----------
    name : str
        Name of the score in results.
    classes : tuple
        Class names, in the order of `patterns`.
    patterns : ndarray of shape (K, d)
        Mean features of the correctly predicted training samples of each class. If no sample of a
        class was predicted correctly, the mean features of all its samples.
    """

    kind: ClassVar[str] = "she"

    classes: ClassNames
    patterns: Annotated[FloatArray, axes("K", "d")]

    def score(self, predictions: Predictions) -> ConfidenceScore:
        """Compute the confidence of each sample, shape (n,), without labels."""
        check_same_classes(predictions, self.classes, self.name)
        predicted = predicted_class_index(predictions, self.classes)
        values = np.empty(predictions.n)
        for rows, x in feature_blocks(predictions, self.patterns.shape[1], self.name):
            with np.errstate(over="ignore", invalid="ignore"):
                values[rows] = np.vecdot(x, self.patterns[predicted[rows]])
        return as_confidence_score(self.name, values)


def fit_patterns(predictions: Predictions) -> StoredPatterns:
    """Compute the pattern of each class from the training samples."""
    codes = check_class_counts(predictions, StoredPatterns.kind, min_count=1)
    is_correct, x = predictions.prediction_codes == codes, features_as_double(predictions)
    patterns = np.empty((predictions.n_classes, x.shape[1]))
    for c in range(predictions.n_classes):
        is_member = codes == c
        # The paper defines no pattern for a class without a correct prediction.
        if (is_member & is_correct).any():
            is_member &= is_correct
        patterns[c] = x[is_member].mean(axis=0)
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
