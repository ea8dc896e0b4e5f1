"""Confidence by the distance to the k-th nearest training sample."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import to_numpy
from abstain._foundation.records import PositiveInt, axes
from abstain.confidence.distances import lengths, placed
from abstain.confidence.entry import ConfidenceScore
from abstain.confidence.fitted_score import (
    FitNeed,
    FittedKind,
    FittedScore,
    confidences,
    feature_blocks,
    option_name,
    refuse_extreme,
)
from abstain.errors import DomainError, InputError
from abstain.predictions import Predictions
from abstain.typing import Array, FloatArray

#: The k of Sun et al. for training sets of 50,000 samples.
DEFAULT_K = 50


@dataclass(frozen=True, eq=False, kw_only=True)
class NeighborDistance(FittedScore):
    """Minus the distance to the k-th nearest training sample.

    Attributes
    ----------
    name : str
        The name that results carry.
    points : ndarray of shape (m, d)
        The training features, divided by their lengths if `normalize`; float32 where they were
        that or narrower.
    k : int
        Which neighbor.
    normalize : bool
        Whether features are divided by their Euclidean length.
    """

    kind: ClassVar[str] = "knn"

    points: Annotated[Array, axes("m", "d")]
    k: PositiveInt
    normalize: bool

    def __post_init__(self) -> None:
        """Check every field, and k against the number of points."""
        super().__post_init__()
        if self.k > len(self.points):
            raise DomainError(
                f"`k` must be at most the {len(self.points)} training samples; got {self.k}"
            )

    def score(self, predictions: Predictions) -> ConfidenceScore:
        """Return the confidences of other samples, shape (n,); labels are not looked at."""
        from sklearn.neighbors import NearestNeighbors

        d = self.points.shape[1]
        blocks = feature_blocks(predictions, d, self.name, also=2 * self.k)
        search = NearestNeighbors(n_neighbors=self.k).fit(self.points)
        values = np.empty(predictions.n)
        for rows, features in blocks:
            x = placed(features, self.normalize)
            at = search.kneighbors(self._like_points(x), return_distance=False)[:, -1]
            # From the differences: the search's products cancel where points nearly coincide.
            values[rows] = 0.0 - lengths(x - self.points[at])
        return confidences(self.name, values)

    def _like_points(self, x: FloatArray) -> Array:
        """Return features in the precision of the points, which the search is fastest in."""
        with np.errstate(over="ignore"):
            out = x.astype(self.points.dtype, copy=False)
        return checks.finite(out, "features", hint="They exceed float32; rescale them.")


def fit_neighbors(predictions: Predictions, *, k: Any, normalize: Any) -> NeighborDistance:
    """Keep the training features as the score compares with them."""
    k = checks.positive_int(k, "k")
    x = to_numpy(predictions.features, "features")
    if k > len(x):
        raise DomainError(f"`k` must be at most the {len(x)} training samples; got {k}")
    if not isinstance(normalize, bool):
        raise InputError(f"`normalize` must be True or False; got {normalize!r}")
    if not normalize:
        refuse_extreme(x)
    narrow = x.dtype.kind == "f" and x.dtype.itemsize <= 4
    return NeighborDistance(
        name=option_name("knn", k=(k, DEFAULT_K), normalize=(normalize, True)),
        points=placed(x.astype(np.float64), normalize).astype(np.float32 if narrow else np.float64),
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
