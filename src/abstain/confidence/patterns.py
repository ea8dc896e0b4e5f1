"""Confidence by likeness to what each class looked like in training: simplified Hopfield energy."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from abstain._foundation.records import ClassNames, axes
from abstain.confidence.entry import ConfidenceScore
from abstain.confidence.fitted_score import (
    FitNeed,
    FittedKind,
    FittedScore,
    classes_of,
    confidences,
    doubles,
    feature_blocks,
    refuse_other_classes,
)
from abstain.predictions import Predictions
from abstain.typing import FloatArray


@dataclass(frozen=True, eq=False, kw_only=True)
class StoredPatterns(FittedScore):
    """The inner product of a sample's features with the pattern of its predicted class.

    Attributes
    ----------
    name : str
        The name that results carry.
    classes : tuple
        The class names, in the order of `patterns`.
    patterns : ndarray of shape (K, d)
        The mean features of the training samples of each class that were predicted right; of all
        of a class where none was.
    """

    kind: ClassVar[str] = "she"

    classes: ClassNames
    patterns: Annotated[FloatArray, axes("K", "d")]

    def score(self, predictions: Predictions) -> ConfidenceScore:
        """Return the confidences of other samples, shape (n,); labels are not looked at."""
        refuse_other_classes(predictions, self.classes, self.name)
        # Without class scores some classes may be absent, and codes count those that are there.
        known = np.array([self.classes.index(name) for name in predictions.class_names])
        predicted = known[predictions.prediction_codes]
        values = np.empty(predictions.n)
        for rows, x in feature_blocks(predictions, self.patterns.shape[1], self.name):
            with np.errstate(over="ignore", invalid="ignore"):
                values[rows] = np.vecdot(x, self.patterns[predicted[rows]])
        return confidences(self.name, values)


def fit_patterns(predictions: Predictions) -> StoredPatterns:
    """Fit the pattern of each class."""
    codes = classes_of(predictions, StoredPatterns.kind, least=1)
    right, x = predictions.prediction_codes == codes, doubles(predictions)
    patterns = []
    for c in range(predictions.n_classes):
        own = codes == c
        # The authors leave a class of which nothing is right without a pattern.
        patterns.append(x[own & right if (own & right).any() else own].mean(axis=0))
    return StoredPatterns(
        name=StoredPatterns.kind, classes=predictions.class_names, patterns=np.stack(patterns)
    )


ENTRIES = (
    FittedKind(
        "she",
        "Simplified Hopfield energy (SHE)",
        fit_patterns,
        StoredPatterns,
        "the inner product of the features with the mean of those training samples of the "
        "predicted class that were predicted right",
        "Zhang et al. (2023), https://openreview.net/forum?id=KkazG4lgKL",
        frozenset({FitNeed.FEATURES, FitNeed.LABELS}),
        frozenset({FitNeed.FEATURES}),
    ),
)
