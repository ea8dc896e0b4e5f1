"""Confidences and losses of held-out samples."""

from collections.abc import Iterable, Mapping, Sequence
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
class HeldOutSamples:
    """Confidences and losses of held-out samples, on which a decision rule is chosen."""

    confidence: ConfidenceScore
    #: Whether each prediction is wrong, shape (n,).
    loss: BoolArray
    #: Group of each sample, if a rule has a threshold for each group.
    group: Array | None = None


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Validated samples and parameters that were passed to `fit`."""

    X: Any
    y: Array
    #: Parameters for the `fit` method of the classifier.
    params: Mapping[str, Any]

    def fit(self, estimator: Any, rows: IntArray | None = None) -> Any:
        """Return a clone of the classifier that is fitted on the given rows, or on all rows."""
        if rows is None:
            return clone(estimator).fit(self.X, self.y, **self.params)
        params = _check_method_params(self.X, self.params, indices=rows)
        return clone(estimator).fit(self.select_rows(rows), self.y[rows], **params)

    def select_rows(self, rows: IntArray) -> Any:
        """Return the selected samples."""
        return _safe_indexing(self.X, rows)


def validate_samples(X: Any, y: Any) -> tuple[Any, Array]:
    """Validate that X and y have the same length and that y contains classes."""
    if y is None:
        raise InputError("fit requires y to be passed, but the target y is None")
    X, y = indexable(X, y)
    check_classification_targets(y)
    return X, np.asarray(column_or_1d(y, warn=True))


def check_no_params(params: Mapping[str, Any]) -> None:
    """Raise an error if there are parameters for `fit` of a classifier that is already fitted."""
    for name in params:
        raise InputError(
            f"`{name}` has no effect with cv='prefit': the classifier is not fitted again, and the "
            "rule counts every sample once. Drop it."
        )


def check_fitted(estimator: Any, y: Array) -> Any:
    """Return the classifier, or raise an error if it is not fitted or does not match y."""
    check_is_fitted(estimator)
    classes = get_classes(estimator)
    if not set(classes.tolist()) & set(y.tolist()):
        raise InputError(
            f"`y` must hold classes of the fitted classifier ({classes[:6].tolist()}); "
            f"got {y[0]!r} and no known class"
        )
    return estimator


def get_classes(estimator: Any) -> Array:
    """Return the classes of a fitted classifier, shape (K,)."""
    if not hasattr(estimator, "classes_"):
        raise InputError(
            "`estimator` must be a classifier, which has `classes_` once fitted; got "
            f"{type(estimator).__name__}"
        )
    return np.asarray(estimator.classes_)


def score_held_out(estimator: Any, X: Any, y: Array, scoring: Scoring) -> HeldOutSamples:
    """Compute confidences and losses of samples with a fitted classifier."""
    get_classes(estimator)
    prediction = np.asarray(estimator.predict(X))
    loss = np.asarray(prediction != y, dtype=np.bool_)
    return HeldOutSamples(
        scoring.score_samples(estimator, X), loss, scoring.grouping.group_samples(X, prediction)
    )


def split_off(data: TrainingData, cv: float, random_state: Any) -> Fold:
    """Return training and held-out rows. In each class, the share of held-out samples is `cv`."""
    splitter = StratifiedShuffleSplit(n_splits=1, test_size=cv, random_state=random_state)
    ((train, test),) = splitter.split(np.zeros((data.y.size, 1)), data.y)
    return train, test


def is_share(cv: Any) -> bool:
    """Return whether `cv` is a float, which means the share of held-out samples."""
    return isinstance(cv, Real) and not isinstance(cv, bool | int | np.integer)


def cross_fit(
    estimator: Any,
    data: TrainingData,
    folds: Iterable[Fold],
    scoring: Scoring,
    n_jobs: int | None,
) -> HeldOutSamples:
    """Compute the confidence and loss of each sample with a classifier fitted on other folds."""
    fold_list = list(folds)
    _check_tests_disjoint([test for _, test in fold_list], data.y.size)
    folds_held_out = Parallel(n_jobs=n_jobs)(
        delayed(_fit_fold)(estimator, data, fold, scoring) for fold in fold_list
    )
    confidence = _concatenate_confidences(
        scoring.name, [held_out.confidence for held_out in folds_held_out]
    )
    loss = np.concatenate([held_out.loss for held_out in folds_held_out])
    groups = [held_out.group for held_out in folds_held_out if held_out.group is not None]
    group = np.concatenate(groups) if groups else None
    return HeldOutSamples(confidence, loss, group)


def _concatenate_confidences(name: str, confidences: Sequence[ConfidenceScore]) -> ConfidenceScore:
    """Combine the confidences of all folds. If all folds have probabilities, combine these too."""
    values = np.concatenate([confidence.values for confidence in confidences])
    if all(confidence.scale == "probability" for confidence in confidences):
        return ConfidenceScore(name, values, values)
    probabilities = [c.probability for c in confidences if c.probability is not None]
    if len(probabilities) < len(confidences):
        return ConfidenceScore(name, values, None)
    return ConfidenceScore(name, values, np.concatenate(probabilities))


def make_folds(cv: Any, data: TrainingData, params: Mapping[str, Any]) -> list[Fold]:
    """Return the training and held-out rows of each fold of a cross-validation strategy."""
    splitter = check_cv(cv, y=data.y, classifier=True)
    return list(splitter.split(data.X, data.y, **params))


def _fit_fold(estimator: Any, data: TrainingData, fold: Fold, scoring: Scoring) -> HeldOutSamples:
    train, test = fold
    fitted = data.fit(estimator, train)
    return score_held_out(fitted, data.select_rows(test), data.y[test], scoring)


def _check_tests_disjoint(tests: list[IntArray], n: int) -> None:
    """Raise an error if a sample is held out twice, because a rule requires independent samples."""
    if not tests:
        raise InputError("`cv` must have at least one split; got none")
    rows = [_as_row_numbers(test) for test in tests]
    n_held_out = np.bincount(np.concatenate(rows), minlength=n)
    if n_held_out.max(initial=0) > 1:
        raise InputError(
            f"`cv` must hold each sample out at most once; got sample {int(n_held_out.argmax())} "
            f"{int(n_held_out.max())} times. Rules require independent samples: use KFold "
            "or StratifiedKFold without repetition."
        )


def _as_row_numbers(test: IntArray) -> IntArray:
    """Return the row numbers of the held-out samples of a fold, given as a mask or row numbers."""
    selection = np.asarray(test)
    if selection.dtype.kind == "b":
        return np.flatnonzero(selection)
    return selection.astype(np.int64)


def count_samples(X: Any) -> int:
    """Return the number of samples in X."""
    return int(_num_samples(X))
