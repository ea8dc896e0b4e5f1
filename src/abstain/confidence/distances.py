"""Confidence from the Mahalanobis distance between features and class means."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np

from abstain._foundation import checks
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
    name_with_options,
    predicted_class_index,
)
from abstain.errors import DomainError, InputError, MissingInputError
from abstain.predictions import Predictions
from abstain.typing import FloatArray, IntArray

#: Minimum number of samples per class for a class mean.
_MIN_PER_CLASS = 2

#: Distance that determines the confidence. `Mahalanobis` describes the choices.
Target: TypeAlias = Literal["nearest", "predicted", "margin"]
#: Whether the covariance is computed about the class means or about the mean of all features.
CovarianceKind: TypeAlias = Literal["within", "total"]
#: Value of `shrinkage` that selects the pseudo-inverse, which ignores directions without variance.
PSEUDO_INVERSE = "pinv"


@dataclass(frozen=True, eq=False, kw_only=True)
class Mahalanobis(FittedScore):
    """Negative Mahalanobis distance to a class mean, or a margin between two distances.

    Attributes
    ----------
    name : str
        Name of the score in results.
    classes : tuple
        Class names, in the order of `means`.
    means : ndarray of shape (K, d)
        The mean features of each class.
    center : ndarray of shape (d,)
        The mean of all features.
    whitener : ndarray of shape (d, d)
        Matrix W such that ``W @ W.T`` is the inverse or pseudo-inverse of the covariance.
    to : {"nearest", "predicted", "margin"}
        Definition of the confidence. "nearest" is minus the distance to the nearest mean.
        "predicted" is minus the distance to the mean of the predicted class. "margin" is the
        distance to the second nearest mean minus the distance to the nearest mean.
    normalize : bool
        Whether features are divided by their Euclidean length before distances are computed.
    """

    kind: ClassVar[str] = "mahalanobis"

    classes: ClassNames
    means: Annotated[FloatArray, axes("K", "d")]
    center: Annotated[FloatArray, axes("d")]
    whitener: Annotated[FloatArray, axes("d", "d")]
    to: Target = "nearest"
    normalize: bool = False

    def score(self, predictions: Predictions) -> ConfidenceScore:
        """Compute the confidence of each sample, shape (n,). Labels are not required."""
        check_same_classes(predictions, self.classes, self.name)
        centers = (self.means - self.center) @ self.whitener
        predicted = self._predicted_classes(predictions) if self.to == "predicted" else None
        values = np.empty(predictions.n)
        k, d = self.means.shape
        with np.errstate(over="ignore", invalid="ignore"):
            for block, features in feature_blocks(predictions, d, self.name, n_extra=k + d):
                x = normalize_rows(features, self.normalize)
                whitened = (x - self.center) @ self.whitener
                if predicted is not None:
                    difference = whitened - centers[predicted[block]]
                    values[block] = -(difference**2).sum(axis=1)
                elif self.to == "margin":
                    values[block] = distance_margin(whitened, centers)
                else:
                    distance = nearest_distance(whitened, centers)
                    values[block] = self._background_distance(x) - distance
        return as_confidence_score(self.name, values)

    def _predicted_classes(self, predictions: Predictions) -> IntArray:
        if not predictions.has_prediction:
            raise MissingInputError(
                f"the score {self.name!r} needs the predicted class; pass `logits`, "
                "`probabilities` or `prediction` in addition to the features"
            )
        return predicted_class_index(predictions, self.classes)

    def _background_distance(self, x: FloatArray) -> FloatArray:
        """Return the distance that a subclass adds to the confidence (0 in this class)."""
        return np.zeros(len(x))


@dataclass(frozen=True, eq=False, kw_only=True)
class RelativeMahalanobis(Mahalanobis):
    """Mahalanobis confidence plus the squared Mahalanobis distance to the mean of all samples.

    Attributes
    ----------
    name : str
        Name of the score in results.
    classes : tuple
        Class names, in the order of `means`.
    means : ndarray of shape (K, d)
        The mean features of each class.
    center : ndarray of shape (d,)
        The mean of all features.
    whitener : ndarray of shape (d, d)
        Matrix W such that ``W @ W.T`` is the inverse of the within-class covariance.
    background : ndarray of shape (d, d)
        Matrix W such that ``W @ W.T`` is the inverse of the covariance of all features.
    """

    kind: ClassVar[str] = "relative_mahalanobis"

    background: Annotated[FloatArray, axes("d", "d")]

    def _background_distance(self, x: FloatArray) -> FloatArray:
        out: FloatArray = (((x - self.center) @ self.background) ** 2).sum(axis=1)
        return out


def nearest_distance(z: FloatArray, centers: FloatArray) -> FloatArray:
    """Return the squared distance from each row to its nearest center."""
    # A matrix product finds the nearest center. Differences are used for the distance itself, which
    # avoids cancellation.
    relative_distances = (centers**2).sum(axis=1) - 2.0 * (z @ centers.T)
    nearest = relative_distances.argmin(axis=1)
    distance: FloatArray = ((z - centers[nearest]) ** 2).sum(axis=1)
    return distance


def distance_margin(z: FloatArray, centers: FloatArray) -> FloatArray:
    """Return the second smallest minus the smallest squared distance to a center."""
    relative_distances = (centers**2).sum(axis=1) - 2.0 * (z @ centers.T)
    two_nearest = np.argpartition(relative_distances, 1, axis=1)[:, :2]
    distances = ((z[:, None] - centers[two_nearest]) ** 2).sum(axis=2)
    margin: FloatArray = np.abs(distances[:, 1] - distances[:, 0])
    return margin


def fit_mahalanobis(
    predictions: Predictions,
    *,
    shrinkage: Any,
    covariance: CovarianceKind,
    to: Target,
    normalize: Any,
) -> Mahalanobis:
    """Fit the class means and a covariance matrix (within-class or total)."""
    checks.one_of(covariance, "covariance", get_args(CovarianceKind))
    checks.one_of(to, "to", get_args(Target))
    if not isinstance(normalize, bool):
        raise InputError(f"`normalize` must be True or False; got {normalize!r}")
    codes, x = _classes_and_features(predictions, Mahalanobis.kind, normalize=normalize)
    if to == "margin" and predictions.n_classes < 2:
        raise DomainError("the margin needs two classes; these samples have one class")
    fields = _fit_shared_fields(predictions, codes, x, shrinkage, total=covariance == "total")
    name = name_with_options(
        Mahalanobis.kind,
        shrinkage=(shrinkage or "none", "none"),
        covariance=(covariance, "within"),
        to=(to, "nearest"),
        normalize=(normalize, False),
    )
    return Mahalanobis(name=name, to=to, normalize=normalize, **fields)


def fit_relative_mahalanobis(predictions: Predictions, *, shrinkage: Any) -> RelativeMahalanobis:
    """Fit the class means, the within-class covariance and the covariance of all samples."""
    codes, x = _classes_and_features(predictions, RelativeMahalanobis.kind)
    fields = _fit_shared_fields(predictions, codes, x, shrinkage)
    background = fit_whitener(x, fields["center"], shrinkage, n_free=x.shape[0] - 1)
    name = name_with_options(RelativeMahalanobis.kind, shrinkage=(shrinkage or "none", "none"))
    return RelativeMahalanobis(name=name, background=background, **fields)


def _classes_and_features(
    predictions: Predictions, kind: str, *, normalize: bool = False
) -> tuple[IntArray, FloatArray]:
    """Return the class codes and the features, optionally normalized to length 1."""
    codes = check_class_counts(predictions, kind, min_count=_MIN_PER_CLASS)
    return codes, normalize_rows(features_as_double(predictions), normalize)


def _fit_shared_fields(
    predictions: Predictions, codes: IntArray, x: FloatArray, shrinkage: Any, *, total: bool = False
) -> dict[str, Any]:
    """Fit the common fields of both Mahalanobis scores, and return them by name."""
    means = class_means(x, codes, predictions.n_classes)
    center = x.mean(axis=0)
    n_free = x.shape[0] - (1 if total else predictions.n_classes)
    return {
        "classes": predictions.class_names,
        "means": means,
        "center": center,
        "whitener": fit_whitener(x, center if total else means[codes], shrinkage, n_free=n_free),
    }


def class_means(x: FloatArray, codes: Any, classes: int) -> FloatArray:
    """Return the mean features of each class, shape (K, d). Every class must have a sample."""
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(classes))
    counts = np.bincount(codes, minlength=classes)[:, None]
    means: FloatArray = np.add.reduceat(x[order], starts, axis=0) / counts
    return means


def covariance(centered: FloatArray, shrinkage: Any) -> FloatArray:
    """Return the covariance matrix of centered features, optionally with shrinkage."""
    if shrinkage == "ledoit_wolf":
        from sklearn.covariance import ledoit_wolf

        shrunk: FloatArray = ledoit_wolf(centered, assume_centered=True)[0]
        return shrunk
    matrix: FloatArray = centered.T @ centered / centered.shape[0]
    if shrinkage in {None, "none", PSEUDO_INVERSE}:
        return matrix
    if isinstance(shrinkage, str):
        raise InputError(
            f"`shrinkage` must be 'none', 'ledoit_wolf', 'pinv' or in [0, 1]; got {shrinkage!r}"
        )
    weight = checks.fraction(shrinkage, "shrinkage")
    mean_variance = float(np.trace(matrix)) / len(matrix)
    return np.asarray((1.0 - weight) * matrix + weight * mean_variance * np.eye(len(matrix)))


def fit_whitener(x: FloatArray, centers: FloatArray, shrinkage: Any, *, n_free: int) -> FloatArray:
    """Return W such that W W^T is the inverse of the covariance matrix of `x` about `centers`.

    `n_free` is the number of degrees of freedom. If the covariance matrix is singular, a
    DomainError is raised unless the pseudo-inverse is selected.
    """
    from scipy.linalg import solve_triangular

    matrix = covariance(x - centers, shrinkage)
    deviation = np.sqrt(np.diag(matrix))
    if shrinkage == PSEUDO_INVERSE:
        return _pseudo_inverse_whitener(matrix, deviation, x)
    _reject_constant_features(deviation, np.abs(x).max(axis=0))
    correlation = matrix / np.outer(deviation, deviation)
    _reject_singular(correlation, n_samples=len(x), n_free=n_free)
    root = deviation[:, None] * np.linalg.cholesky(correlation)
    whitener: FloatArray = solve_triangular(root, np.eye(len(root)), lower=True).T
    return whitener


def _reject_singular(correlation: FloatArray, *, n_samples: int, n_free: int) -> None:
    """Raise a DomainError if the correlation matrix of the features is singular."""
    d = len(correlation)
    eigenvalues = np.linalg.eigvalsh(correlation)
    tolerance = eigenvalues[-1] * max(n_samples, d) * np.finfo(np.float64).eps
    if eigenvalues[0] > tolerance:
        return
    reason = "features depend linearly"
    if n_free < d:
        reason = f"{n_free} free samples for {d} features"
    raise DomainError(f"the covariance of the features is singular ({reason}). {_ADVICE}")


def _pseudo_inverse_whitener(
    matrix: FloatArray, deviation: FloatArray, x: FloatArray
) -> FloatArray:
    """Return W such that W W^T is the pseudo-inverse of the covariance matrix."""
    if (deviation <= _CONSTANT_TOLERANCE * np.abs(x).max(axis=0)).all():
        raise DomainError(f"no feature varies, so no distance is defined. {_VARY}")
    eigenvalues, eigenvectors = np.linalg.eigh(matrix)
    is_positive = eigenvalues > eigenvalues[-1] * max(x.shape) * np.finfo(np.float64).eps
    inverse_roots = np.zeros_like(eigenvalues)
    inverse_roots[is_positive] = 1.0 / np.sqrt(eigenvalues[is_positive])
    return np.asarray(eigenvectors * inverse_roots)


#: Relative standard deviation up to which a feature is treated as constant.
_CONSTANT_TOLERANCE = 1e-13
_ADVICE = "Pass `shrinkage='ledoit_wolf'` or a number such as 0.1, or fit on fewer features."
_VARY = "Fit on samples whose features vary."


def _reject_constant_features(deviation: FloatArray, max_size: FloatArray) -> None:
    """Raise a DomainError if a feature is constant."""
    constant = np.flatnonzero(deviation <= _CONSTANT_TOLERANCE * max_size)
    if constant.size == 0:
        return
    count_note = f" ({constant.size} such features)" if constant.size > 1 else ""
    advice = _ADVICE if constant.size < deviation.size else _VARY
    raise DomainError(
        f"the covariance of the features is singular: the feature in column {int(constant[0])} "
        f"does not vary{count_note}. {advice}"
    )


# ----------------------------------------------------------------------------- lengths
def normalize_rows(x: FloatArray, normalize: bool) -> FloatArray:
    """Divide each row by its Euclidean length if `normalize` is True."""
    if not normalize:
        return x
    # Dividing by the largest entry first prevents overflow and underflow of the squares.
    largest = np.abs(x).max(axis=1, keepdims=True)
    x = x / np.where(largest > 0, largest, 1.0)
    length = row_lengths(x)[:, None]
    return x / np.where(length > 0, length, 1.0)


def row_lengths(x: FloatArray) -> FloatArray:
    """Return the Euclidean length of each row."""
    with np.errstate(over="ignore"):
        lengths: FloatArray = np.sqrt((x**2).sum(axis=1))
    return lengths


_FEATURES = frozenset({FitNeed.FEATURES})

ENTRIES = (
    FittedKind(
        "mahalanobis",
        "Mahalanobis distance",
        fit_mahalanobis,
        Mahalanobis,
        "minus the squared distance to the nearest class mean, by the within-class covariance",
        "Lee et al. (2018), https://arxiv.org/abs/1807.03888, eq. 2",
        _FEATURES | {FitNeed.LABELS},
        _FEATURES,
        {"shrinkage": "none", "covariance": "within", "to": "nearest", "normalize": False},
    ),
    FittedKind(
        "relative_mahalanobis",
        "Relative Mahalanobis distance",
        fit_relative_mahalanobis,
        RelativeMahalanobis,
        "the distance to one Gaussian of all classes minus the distance to the nearest class",
        "Ren et al. (2021), https://arxiv.org/abs/2106.09022 (RMD)",
        _FEATURES | {FitNeed.LABELS},
        _FEATURES,
        {"shrinkage": "none"},
    ),
)
