"""Confidence by distance in the space of features: to Gaussians, and to the k-th neighbor."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import to_numpy
from abstain._foundation.records import ClassNames, Natural, axes
from abstain.confidence.entry import ConfidenceScore
from abstain.confidence.fitted_score import (
    FitNeed,
    FittedKind,
    FittedScore,
    classes_of,
    confidences,
    doubles,
    feature_blocks,
    option_name,
    refuse_extreme,
    refuse_other_classes,
)
from abstain.errors import DomainError, InputError
from abstain.predictions import Predictions
from abstain.typing import Array, FloatArray

#: Samples of a class from which on its mean says more than the sample itself.
_LEAST = 2


@dataclass(frozen=True, eq=False, kw_only=True)
class Mahalanobis(FittedScore):
    """Minus the squared Mahalanobis distance to the nearest class mean.

    Attributes
    ----------
    name : str
        The name that results carry.
    classes : tuple
        The class names, in the order of `means`.
    means : ndarray of shape (K, d)
        The mean features of each class.
    center : ndarray of shape (d,)
        The mean of all features.
    whitener : ndarray of shape (d, d)
        ``whitener @ whitener.T`` is the inverse of the covariance shared by the classes.
    """

    kind: ClassVar[str] = "mahalanobis"

    classes: ClassNames
    means: Annotated[FloatArray, axes("K", "d")]
    center: Annotated[FloatArray, axes("d")]
    whitener: Annotated[FloatArray, axes("d", "d")]

    def score(self, predictions: Predictions) -> ConfidenceScore:
        """Return the confidences of other samples, shape (n,); labels are not looked at."""
        refuse_other_classes(predictions, self.classes, self.name)
        centers = (self.means - self.center) @ self.whitener
        values = np.empty(predictions.n)
        k, d = self.means.shape
        with np.errstate(over="ignore", invalid="ignore"):
            for rows, x in feature_blocks(predictions, d, self.name, also=k + d):
                values[rows] = self._background(x) - nearest(
                    (x - self.center) @ self.whitener, centers
                )
        return confidences(self.name, values)

    def _background(self, x: FloatArray) -> FloatArray:
        return np.zeros(len(x))


@dataclass(frozen=True, eq=False, kw_only=True)
class RelativeMahalanobis(Mahalanobis):
    """The Mahalanobis confidence plus the squared distance to one Gaussian over all classes.

    Attributes
    ----------
    name : str
        The name that results carry.
    classes : tuple
        The class names, in the order of `means`.
    means : ndarray of shape (K, d)
        The mean features of each class.
    center : ndarray of shape (d,)
        The mean of all features.
    whitener : ndarray of shape (d, d)
        ``whitener @ whitener.T`` is the inverse of the covariance shared by the classes.
    background : ndarray of shape (d, d)
        The same for the covariance of all features about `center`.
    """

    kind: ClassVar[str] = "relative_mahalanobis"

    background: Annotated[FloatArray, axes("d", "d")]

    def _background(self, x: FloatArray) -> FloatArray:
        out: FloatArray = (((x - self.center) @ self.background) ** 2).sum(axis=1)
        return out


def nearest(z: FloatArray, centers: FloatArray) -> FloatArray:
    """Return the squared distance of each row to the nearest center.

    One product finds the nearest; its distance is then taken from the differences, which do
    not cancel.
    """
    found = ((centers**2).sum(axis=1) - 2.0 * (z @ centers.T)).argmin(axis=1)
    out: FloatArray = ((z - centers[found]) ** 2).sum(axis=1)
    return out


def fit_mahalanobis(predictions: Predictions, *, shrinkage: Any) -> Mahalanobis:
    """Fit class means and their shared covariance."""
    return Mahalanobis(**_shared(Mahalanobis, predictions, shrinkage))


def fit_relative_mahalanobis(predictions: Predictions, *, shrinkage: Any) -> RelativeMahalanobis:
    """Fit class means, their shared covariance, and one Gaussian for all samples."""
    known = _shared(RelativeMahalanobis, predictions, shrinkage)
    x = doubles(predictions)
    background = whitening(x, known["center"], shrinkage, free=x.shape[0] - 1)
    return RelativeMahalanobis(**known, background=background)


def _shared(made: type[Mahalanobis], predictions: Predictions, shrinkage: Any) -> dict[str, Any]:
    codes = classes_of(predictions, made.kind, least=_LEAST)
    x = doubles(predictions)
    means = class_means(x, codes, predictions.n_classes)
    free = x.shape[0] - predictions.n_classes
    return {
        "name": option_name(made.kind, shrinkage=(shrinkage or "none", "none")),
        "classes": predictions.class_names,
        "means": means,
        "center": x.mean(axis=0),
        "whitener": whitening(x, means[codes], shrinkage, free=free),
    }


def class_means(x: FloatArray, codes: Any, classes: int) -> FloatArray:
    """Return the mean of the rows of each class, all of which occur, shape (K, d)."""
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(classes))
    counts = np.bincount(codes, minlength=classes)[:, None]
    out: FloatArray = np.add.reduceat(x[order], starts, axis=0) / counts
    return out


def covariance(apart: FloatArray, shrinkage: Any) -> FloatArray:
    """Return the covariance of centered rows: their mean product, shrunk if asked for."""
    if shrinkage == "ledoit_wolf":
        from sklearn.covariance import ledoit_wolf

        shrunk: FloatArray = ledoit_wolf(apart, assume_centered=True)[0]
        return shrunk
    out: FloatArray = apart.T @ apart / apart.shape[0]
    if shrinkage in {None, "none"}:
        return out
    if isinstance(shrinkage, str):
        msg = f"`shrinkage` must be 'none', 'ledoit_wolf' or in [0, 1]; got {shrinkage!r}"
        raise InputError(msg)
    share = checks.fraction(shrinkage, "shrinkage")
    mean = float(np.trace(out)) / len(out)
    return np.asarray((1.0 - share) * out + share * mean * np.eye(len(out)))


def whitening(x: FloatArray, about: FloatArray, shrinkage: Any, *, free: int) -> FloatArray:
    """Return W with W W^T the inverse covariance of rows about their means.

    `free` is how many directions they can span. A singular covariance is refused.
    """
    from scipy.linalg import solve_triangular

    shared = covariance(x - about, shrinkage)
    scale = np.sqrt(np.diag(shared))
    _refuse_constant(scale, np.abs(x).max(axis=0))
    # Features of unlike size are no singularity: what counts is their correlation.
    correlation = shared / np.outer(scale, scale)
    values = np.linalg.eigvalsh(correlation)
    if values[0] <= values[-1] * max(x.shape) * np.finfo(np.float64).eps:
        d = len(shared)
        why = f"{free} free samples for {d} features" if free < d else "features depend linearly"
        msg = f"the covariance of the features is singular ({why}). {_ADVICE}"
        raise DomainError(msg)
    root = scale[:, None] * np.linalg.cholesky(correlation)
    out: FloatArray = solve_triangular(root, np.eye(len(root)), lower=True).T
    return out


_ADVICE = "Pass `shrinkage='ledoit_wolf'` or a number such as 0.1, or fit on fewer features."
_VARY = "Fit on samples whose features vary."


def _refuse_constant(scale: FloatArray, size: FloatArray) -> None:
    # The rounding of a mean leaves some spread where there is none.
    still = np.flatnonzero(scale <= 1e-13 * size)
    if still.size:
        more = f" ({still.size} such features)" if still.size > 1 else ""
        msg = (
            "the covariance of the features is singular: the feature in column "
            f"{int(still[0])} does not vary{more}. {_ADVICE if still.size < scale.size else _VARY}"
        )
        raise DomainError(msg)


# ------------------------------------------------------------------------- the k-th neighbor
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
    k: Natural
    normalize: bool

    def __post_init__(self) -> None:
        """Check every field, and k against the number of points."""
        super().__post_init__()
        if self.k > len(self.points):
            msg = f"`k` must be at most the {len(self.points)} training samples; got {self.k}"
            raise DomainError(msg)

    def score(self, predictions: Predictions) -> ConfidenceScore:
        """Return the confidences of other samples, shape (n,); labels are not looked at."""
        from sklearn.neighbors import NearestNeighbors

        d = self.points.shape[1]
        blocks = feature_blocks(predictions, d, self.name, also=2 * self.k)
        search = NearestNeighbors(n_neighbors=self.k).fit(self.points)
        values = np.empty(predictions.n)
        for rows, features in blocks:
            x = _placed(features, self.normalize)
            at = search.kneighbors(self._like_points(x), return_distance=False)[:, -1]
            # From the differences: the search's products cancel where points nearly coincide.
            values[rows] = 0.0 - _lengths(x - self.points[at])
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
        msg = f"`k` must be at most the {len(x)} training samples; got {k}"
        raise DomainError(msg)
    if not isinstance(normalize, bool):
        msg = f"`normalize` must be True or False; got {normalize!r}"
        raise InputError(msg)
    if not normalize:
        refuse_extreme(x)
    narrow = x.dtype.kind == "f" and x.dtype.itemsize <= 4
    return NeighborDistance(
        name=option_name("knn", k=(k, DEFAULT_K), normalize=(normalize, True)),
        points=_placed(x.astype(np.float64), normalize).astype(
            np.float32 if narrow else np.float64
        ),
        k=k,
        normalize=normalize,
    )


def _placed(x: FloatArray, normalize: bool) -> FloatArray:
    """Divide rows by their length; a row of zeros stays where it is."""
    if not normalize:
        return x
    # The largest entry first, so that squares neither overflow nor vanish.
    largest = np.abs(x).max(axis=1, keepdims=True)
    x = x / np.where(largest > 0, largest, 1.0)
    length = _lengths(x)[:, None]
    return x / np.where(length > 0, length, 1.0)


def _lengths(x: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):
        out: FloatArray = np.sqrt((x**2).sum(axis=1))
    return out


_FEATURES = frozenset({FitNeed.FEATURES})

ENTRIES = (
    FittedKind(
        "mahalanobis",
        "Mahalanobis distance",
        fit_mahalanobis,
        Mahalanobis,
        "minus the squared distance to the nearest class mean, by the covariance the classes share",
        "Lee et al. (2018), https://arxiv.org/abs/1807.03888, eq. 2",
        _FEATURES | {FitNeed.LABELS},
        _FEATURES,
        {"shrinkage": "none"},
    ),
    FittedKind(
        "relative_mahalanobis",
        "Relative Mahalanobis distance",
        fit_relative_mahalanobis,
        RelativeMahalanobis,
        "how much nearer the nearest class is than the Gaussian of all classes together",
        "Ren et al. (2021), https://arxiv.org/abs/2106.09022 (RMD)",
        _FEATURES | {FitNeed.LABELS},
        _FEATURES,
        {"shrinkage": "none"},
    ),
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
