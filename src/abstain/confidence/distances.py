"""Confidence by the Mahalanobis distance of features to the means of the classes."""

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
    classes_of,
    confidences,
    doubles,
    feature_blocks,
    option_name,
    refuse_other_classes,
)
from abstain.errors import DomainError, InputError, MissingInputError
from abstain.predictions import Predictions
from abstain.typing import FloatArray, IntArray

#: Samples of a class from which on its mean says more than the sample itself.
_LEAST = 2

#: Which distance counts: to the nearest mean, to that of the predicted class, or by how much the
#: second nearest is farther than the nearest.
Towards: TypeAlias = Literal["nearest", "predicted", "margin"]
#: Whose covariance measures it: about the mean of each class, or about that of all.
Spread: TypeAlias = Literal["within", "total"]
#: In place of a shrinkage: directions in which nothing varies do not count.
PSEUDO = "pinv"


@dataclass(frozen=True, eq=False, kw_only=True)
class Mahalanobis(FittedScore):
    """Minus the squared Mahalanobis distance to a class mean, or its margin to the next.

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
        ``whitener @ whitener.T`` is the inverse of the covariance, or its pseudo-inverse.
    to : {"nearest", "predicted", "margin"}
        Minus the distance to the nearest mean or to that of the predicted class, or by how much
        the second nearest is farther than the nearest.
    normalize : bool
        Whether features are divided by their Euclidean length first.
    """

    kind: ClassVar[str] = "mahalanobis"

    classes: ClassNames
    means: Annotated[FloatArray, axes("K", "d")]
    center: Annotated[FloatArray, axes("d")]
    whitener: Annotated[FloatArray, axes("d", "d")]
    to: Towards = "nearest"
    normalize: bool = False

    def score(self, predictions: Predictions) -> ConfidenceScore:
        """Return the confidences of other samples, shape (n,); labels are not looked at."""
        refuse_other_classes(predictions, self.classes, self.name)
        centers = (self.means - self.center) @ self.whitener
        own = self._predicted(predictions) if self.to == "predicted" else None
        values = np.empty(predictions.n)
        k, d = self.means.shape
        with np.errstate(over="ignore", invalid="ignore"):
            for rows, features in feature_blocks(predictions, d, self.name, also=k + d):
                x = placed(features, self.normalize)
                z = (x - self.center) @ self.whitener
                if own is not None:
                    values[rows] = -((z - centers[own[rows]]) ** 2).sum(axis=1)
                elif self.to == "margin":
                    values[rows] = margin(z, centers)
                else:
                    values[rows] = self._background(x) - nearest(z, centers)
        return confidences(self.name, values)

    def _predicted(self, predictions: Predictions) -> IntArray:
        """Return which of the means is that of the predicted class of each sample."""
        if not predictions.has_prediction:
            raise MissingInputError(
                f"the score {self.name!r} is of the predicted class; give `logits`, "
                "`probabilities` or `prediction` beside the features"
            )
        place = [self.classes.index(name) for name in predictions.class_names]
        return np.array(place)[predictions.prediction_codes]

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


def margin(z: FloatArray, centers: FloatArray) -> FloatArray:
    """Return by how much the second nearest center is farther than the nearest, squared both."""
    crude = (centers**2).sum(axis=1) - 2.0 * (z @ centers.T)
    pair = np.argpartition(crude, 1, axis=1)[:, :2]
    both = ((z[:, None] - centers[pair]) ** 2).sum(axis=2)
    out: FloatArray = np.abs(both[:, 1] - both[:, 0])
    return out


def fit_mahalanobis(
    predictions: Predictions, *, shrinkage: Any, covariance: Spread, to: Towards, normalize: Any
) -> Mahalanobis:
    """Fit class means, and the covariance that the classes share or that of all samples."""
    checks.one_of(covariance, "covariance", get_args(Spread))
    checks.one_of(to, "to", get_args(Towards))
    if not isinstance(normalize, bool):
        raise InputError(f"`normalize` must be True or False; got {normalize!r}")
    codes, x = _known(predictions, Mahalanobis.kind, normalize=normalize)
    if to == "margin" and predictions.n_classes < 2:
        raise DomainError("the margin is that between two classes; these samples are of one")
    changed = {
        "shrinkage": (shrinkage or "none", "none"),
        "covariance": (covariance, "within"),
        "to": (to, "nearest"),
        "normalize": (normalize, False),
    }
    shared = _shared(predictions, codes, x, shrinkage, total=covariance == "total")
    name = option_name(Mahalanobis.kind, **changed)
    return Mahalanobis(name=name, to=to, normalize=normalize, **shared)


def fit_relative_mahalanobis(predictions: Predictions, *, shrinkage: Any) -> RelativeMahalanobis:
    """Fit class means, their shared covariance, and one Gaussian for all samples."""
    codes, x = _known(predictions, RelativeMahalanobis.kind)
    shared = _shared(predictions, codes, x, shrinkage)
    background = whitening(x, shared["center"], shrinkage, free=x.shape[0] - 1)
    name = option_name(RelativeMahalanobis.kind, shrinkage=(shrinkage or "none", "none"))
    return RelativeMahalanobis(name=name, background=background, **shared)


def _known(
    predictions: Predictions, kind: str, *, normalize: bool = False
) -> tuple[IntArray, FloatArray]:
    """Return the class of each sample and its features, divided by their length if asked for."""
    codes = classes_of(predictions, kind, least=_LEAST)
    return codes, placed(doubles(predictions), normalize)


def _shared(
    predictions: Predictions, codes: IntArray, x: FloatArray, shrinkage: Any, *, total: bool = False
) -> dict[str, Any]:
    means = class_means(x, codes, predictions.n_classes)
    center = x.mean(axis=0)
    free = x.shape[0] - (1 if total else predictions.n_classes)
    return {
        "classes": predictions.class_names,
        "means": means,
        "center": center,
        "whitener": whitening(x, center if total else means[codes], shrinkage, free=free),
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
    if shrinkage in {None, "none", PSEUDO}:
        return out
    if isinstance(shrinkage, str):
        raise InputError(
            f"`shrinkage` must be 'none', 'ledoit_wolf', 'pinv' or in [0, 1]; got {shrinkage!r}"
        )
    share = checks.fraction(shrinkage, "shrinkage")
    mean = float(np.trace(out)) / len(out)
    return np.asarray((1.0 - share) * out + share * mean * np.eye(len(out)))


def whitening(x: FloatArray, about: FloatArray, shrinkage: Any, *, free: int) -> FloatArray:
    """Return W with W W^T the inverse covariance of rows about their means.

    `free` is how many directions they can span. A singular covariance is refused, but for the
    pseudo-inverse.
    """
    from scipy.linalg import solve_triangular

    shared = covariance(x - about, shrinkage)
    scale = np.sqrt(np.diag(shared))
    if shrinkage == PSEUDO:
        return _pseudo_root(shared, scale, x)
    _refuse_constant(scale, np.abs(x).max(axis=0))
    # Features of unlike size are no singularity: what counts is their correlation.
    correlation = shared / np.outer(scale, scale)
    values = np.linalg.eigvalsh(correlation)
    if values[0] <= values[-1] * max(x.shape) * np.finfo(np.float64).eps:
        d = len(shared)
        why = f"{free} free samples for {d} features" if free < d else "features depend linearly"
        raise DomainError(f"the covariance of the features is singular ({why}). {_ADVICE}")
    root = scale[:, None] * np.linalg.cholesky(correlation)
    out: FloatArray = solve_triangular(root, np.eye(len(root)), lower=True).T
    return out


def _pseudo_root(shared: FloatArray, scale: FloatArray, x: FloatArray) -> FloatArray:
    """Return W with W W^T the pseudo-inverse: directions without variance become columns of 0."""
    if (scale <= _STILL * np.abs(x).max(axis=0)).all():
        raise DomainError(f"no feature varies, so that there is no distance to measure by. {_VARY}")
    values, vectors = np.linalg.eigh(shared)
    kept = values > values[-1] * max(x.shape) * np.finfo(np.float64).eps
    out: FloatArray = vectors * np.where(kept, 1.0 / np.sqrt(np.where(kept, values, 1.0)), 0.0)
    return out


#: The rounding of a mean leaves some spread where there is none.
_STILL = 1e-13
_ADVICE = "Pass `shrinkage='ledoit_wolf'` or a number such as 0.1, or fit on fewer features."
_VARY = "Fit on samples whose features vary."


def _refuse_constant(scale: FloatArray, size: FloatArray) -> None:
    still = np.flatnonzero(scale <= _STILL * size)
    if still.size:
        more = f" ({still.size} such features)" if still.size > 1 else ""
        raise DomainError(
            "the covariance of the features is singular: the feature in column "
            f"{int(still[0])} does not vary{more}. {_ADVICE if still.size < scale.size else _VARY}"
        )


# ----------------------------------------------------------------------------- lengths
def placed(x: FloatArray, normalize: bool) -> FloatArray:
    """Divide rows by their length; a row of zeros stays where it is."""
    if not normalize:
        return x
    # The largest entry first, so that squares neither overflow nor vanish.
    largest = np.abs(x).max(axis=1, keepdims=True)
    x = x / np.where(largest > 0, largest, 1.0)
    length = lengths(x)[:, None]
    return x / np.where(length > 0, length, 1.0)


def lengths(x: FloatArray) -> FloatArray:
    """Return the Euclidean length of each row."""
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
        {"shrinkage": "none", "covariance": "within", "to": "nearest", "normalize": False},
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
)
