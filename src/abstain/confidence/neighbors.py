"""Confidence from the distance to the k-th nearest training sample."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import to_numpy
from abstain._foundation.records import PositiveInt, axes
from abstain.confidence.distances import normalize_rows, row_lengths
from abstain.confidence.entry import ConfidenceScore
from abstain.confidence.fitted_score import (
    FitNeed,
    FittedKind,
    FittedScore,
    as_confidence_score,
    check_feature_range,
    feature_blocks,
    name_with_options,
)
from abstain.errors import DomainError, InputError
from abstain.predictions import Predictions
from abstain.typing import Array, FloatArray

#: The value that Sun et al. use for training sets of 50,000 samples.
DEFAULT_K = 50


@dataclass(frozen=True, eq=False, kw_only=True)
class NeighborDistance(FittedScore):
    """Negative distance to the k-th nearest training sample.

    Attributes
    ----------
    name : str
        Name of the score in results.
    points : ndarray of shape (m, d)
        Training features, divided by their lengths if `normalize` is True, as float32 or float64.
    k : int
        Rank of the neighbor.
    normalize : bool
        Whether features are divided by their Euclidean length.
    """

    kind: ClassVar[str] = "knn"

    points: Annotated[Array, axes("m", "d")]
    k: PositiveInt
    normalize: bool

    def __post_init__(self) -> None:
        """Validate the fields. `k` must not exceed the number of training samples."""
        super().__post_init__()
        if self.k > len(self.points):
            raise DomainError(
                f"`k` must be at most the {len(self.points)} training samples; got {self.k}"
            )

    def score(self, predictions: Predictions) -> ConfidenceScore:
        """Compute the confidence of each sample, shape (n,). Labels are not required."""
        from sklearn.neighbors import NearestNeighbors

        d = self.points.shape[1]
        search = NearestNeighbors(n_neighbors=self.k).fit(self.points)
        values = np.empty(predictions.n)
        for block, features in feature_blocks(predictions, d, self.name, n_extra=2 * self.k):
            x = normalize_rows(features, self.normalize)
            neighbors = search.kneighbors(self._as_point_dtype(x), return_distance=False)
            farthest = self.points[neighbors[:, -1]]
            # The search is inexact for nearly equal points, so the distance is computed again.
            values[block] = 0.0 - row_lengths(x - farthest)
        return as_confidence_score(self.name, values)

    def _as_point_dtype(self, x: FloatArray) -> Array:
        """Convert features to the dtype of the training features."""
        with np.errstate(over="ignore"):
            converted = x.astype(self.points.dtype, copy=False)
        return checks.finite(converted, "features", hint="They exceed float32; rescale them.")


def fit_neighbors(predictions: Predictions, *, k: Any, normalize: Any) -> NeighborDistance:
    """Store the training features, optionally normalized to length 1."""
    k = checks.positive_int(k, "k")
    features = to_numpy(predictions.features, "features")
    if k > len(features):
        raise DomainError(f"`k` must be at most the {len(features)} training samples; got {k}")
    if not isinstance(normalize, bool):
        raise InputError(f"`normalize` must be True or False; got {normalize!r}")
    if not normalize:
        check_feature_range(features)
    is_single_precision = features.dtype.kind == "f" and features.dtype.itemsize <= 4
    dtype = np.float32 if is_single_precision else np.float64
    points = normalize_rows(features.astype(np.float64), normalize)
    return NeighborDistance(
        name=name_with_options("knn", k=(k, DEFAULT_K), normalize=(normalize, True)),
        points=points.astype(dtype),
        k=k,
        normalize=normalize,
    )


_FEATURES = frozenset({FitNeed.FEATURES})

ENTRIES = (
    FittedKind(
        "knn",
        "Distance to the k-th neighbor",
        fit_neighbors,
        NeighborDistance,
        "minus the distance to the k-th nearest training sample, features divided by their length",
        "Sun et al. (2022), https://arxiv.org/abs/2204.06507",
        _FEATURES,
        _FEATURES,
        {"k": DEFAULT_K, "normalize": True},
    ),
)
