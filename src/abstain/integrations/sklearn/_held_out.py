"""Confidences and losses of samples that the classifier was not fitted on."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedShuffleSplit, check_cv
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import (
    _check_method_params,
    _num_samples,
    check_is_fitted,
    column_or_1d,
)

from abstain.confidence import ConfidenceScore
from abstain.errors import InputError
from abstain.integrations.sklearn._confidence import Scoring
from abstain.typing import Array, BoolArray, IntArray

Fold = tuple[IntArray, IntArray]


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What rules are set on."""

    confidence: ConfidenceScore
    #: Whether the prediction is wrong.
    loss: BoolArray
    #: The group of each sample, where a rule has a threshold for each.
    group: Array | None = None


@dataclass(frozen=True, eq=False)
class Training:
    """The samples given to `fit`, as scikit-learn validated them."""

    X: Any
    y: Array
    #: Of the classifier's own `fit`.
    params: Mapping[str, Any]

    def fitted(self, estimator: Any, rows: IntArray | None = None) -> Any:
        """Return a clone of the classifier, fitted on these rows (on all by default)."""
        if rows is None:
            return clone(estimator).fit(self.X, self.y, **self.params)
        params = _check_method_params(self.X, self.params, indices=rows)
        return clone(estimator).fit(self.rows(rows), self.y[rows], **params)

    def rows(self, rows: IntArray) -> Any:
        """Return some of the samples."""
        return _safe_indexing(self.X, rows)


def samples(X: Any, y: Any) -> tuple[Any, Array]:
    """Validate that X and y have the same samples and y names one class for each."""
    if y is None:
        raise InputError("fit requires y to be passed, but the target y is None")
    X, y = indexable(X, y)
    check_classification_targets(y)
    return X, np.asarray(column_or_1d(y, warn=True))


def refuse_params(params: Mapping[str, Any]) -> None:
    """Refuse parameters of a `fit` that is not called."""
    for name in params:
        raise InputError(
            f"`{name}` has nowhere to go with cv='prefit': the classifier is fitted already, and "
            "the rule counts every sample once. Drop it."
        )


def refuse_unfitted(estimator: Any, y: Array) -> Any:
    """Return a classifier that is fitted, and on classes such as these."""
    check_is_fitted(estimator)
    classes = classes_of(estimator)
    if not set(classes.tolist()) & set(y.tolist()):
        raise InputError(
            f"`y` must hold classes of the fitted classifier ({classes[:6].tolist()}); "
            f"got {y[0]!r} and no known class"
        )
    return estimator


def classes_of(estimator: Any) -> Array:
    """Return the classes that a fitted classifier knows."""
    if not hasattr(estimator, "classes_"):
        raise InputError(
            "`estimator` must be a classifier, which has `classes_` once fitted; got "
            f"{type(estimator).__name__}"
        )
    return np.asarray(estimator.classes_)


def held_out_by(estimator: Any, X: Any, y: Array, scoring: Scoring) -> HeldOut:
    """Return confidences and losses of samples under a fitted classifier."""
    classes_of(estimator)
    said = np.asarray(estimator.predict(X))
    loss = np.asarray(said != y, dtype=np.bool_)
    return HeldOut(scoring.of(estimator, X), loss, scoring.grouping.of(X, said))


def share_of(data: Training, cv: float, random_state: Any) -> Fold:
    """Split a share of the samples off, stratified by class."""
    splitter = StratifiedShuffleSplit(n_splits=1, test_size=cv, random_state=random_state)
    ((train, test),) = splitter.split(np.zeros((data.y.size, 1)), data.y)
    return train, test


def is_share(cv: Any) -> bool:
    """Tell whether `cv` is the share of samples to hold out."""
    return isinstance(cv, Real) and not isinstance(cv, bool | int | np.integer)


def cross_fitted(
    estimator: Any,
    data: Training,
    folds: Iterable[Fold],
    scoring: Scoring,
    n_jobs: int | None,
) -> HeldOut:
    """Return confidences and losses of each sample under a classifier that did not see it."""
    kept = list(folds)
    _refuse_twice([test for _, test in kept], data.y.size)
    parts = Parallel(n_jobs=n_jobs)(
        delayed(_of_fold)(estimator, data, fold, scoring) for fold in kept
    )
    values = np.concatenate([part.confidence.values for part in parts])
    own = [part.confidence.probability for part in parts]
    probability = None if any(p is None for p in own) else np.concatenate(own)
    if all(part.confidence.scale == "probability" for part in parts):
        probability = values
    loss = np.concatenate([part.loss for part in parts])
    groups = [part.group for part in parts if part.group is not None]
    group = np.concatenate(groups) if groups else None
    return HeldOut(ConfidenceScore(scoring.name, values, probability), loss, group)


def folds_of(cv: Any, data: Training, params: Mapping[str, Any]) -> list[Fold]:
    """Return the folds of a cross-validation strategy."""
    splitter = check_cv(cv, y=data.y, classifier=True)
    return list(splitter.split(data.X, data.y, **params))


def _of_fold(estimator: Any, data: Training, fold: Fold, scoring: Scoring) -> HeldOut:
    train, test = fold
    fitted = data.fitted(estimator, train)
    return held_out_by(fitted, data.rows(test), data.y[test], scoring)


def _refuse_twice(tests: list[IntArray], n: int) -> None:
    """Refuse folds that hold a sample out twice: a rule takes every confidence for a new sample."""
    if not tests:
        raise InputError("`cv` must hold something out; got no split")
    rows = [np.flatnonzero(t) if np.asarray(t).dtype.kind == "b" else t for t in tests]
    times = np.bincount(np.concatenate(rows).astype(np.int64), minlength=n)
    if times.max(initial=0) > 1:
        raise InputError(
            f"`cv` must hold each sample out at most once; got sample {int(times.argmax())} "
            f"{int(times.max())} times. Rules count every confidence as an independent sample: "
            "use KFold or StratifiedKFold without repetition."
        )


def count(X: Any) -> int:
    """Return the number of samples."""
    return int(_num_samples(X))
