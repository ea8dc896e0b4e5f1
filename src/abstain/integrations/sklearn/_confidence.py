"""Confidences of the predictions of a fitted scikit-learn classifier."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from abstain import confidence
from abstain._foundation import checks
from abstain.confidence import ConfidenceScore, ScoreNeed, ScoreState
from abstain.errors import InputError, MissingInputError, ShapeError, UnknownNameError
from abstain.predictions import Predictions
from abstain.thresholds import DecisionRule
from abstain.thresholds.group_names import group_texts
from abstain.thresholds.rule import PREDICTION
from abstain.typing import AnyArray, Array

_METHODS = ("predict_proba", "decision_function")
_RESPONSES = ("auto", *_METHODS)


@dataclass(frozen=True)
class Grouping:
    """Assigns samples to groups, based on their features or predictions."""

    #: None, "prediction", a column of X by name or index, or a function of X.
    per: Any = None

    def __post_init__(self) -> None:
        """Raise an error if the groups are not defined correctly."""
        is_valid = self.per is None or isinstance(self.per, str | int) or callable(self.per)
        if not is_valid or isinstance(self.per, bool):
            raise InputError(
                "`per` must be None, 'prediction', a column of X by name or index, or a callable "
                f"X -> groups; got {self.per!r}"
            )

    @classmethod
    def from_rule(cls, per: Any, rule: Any) -> "Grouping":
        """Return the grouping by `per`, or by the predicted class if a fitted rule requires it."""
        if per is None and isinstance(rule, DecisionRule) and rule.per == PREDICTION:
            return cls(PREDICTION)
        return cls(per)

    @property
    def name(self) -> str:
        """Name of the groups in reports."""
        if callable(self.per):
            function_name = str(getattr(self.per, "__name__", ""))
            return function_name if function_name.isidentifier() else "group"
        if isinstance(self.per, int):
            return f"column {self.per}"
        return str(self.per)

    def group_samples(self, X: Any, prediction: Array) -> Array | None:
        """Return the group of each sample as text, or None if there are no groups."""
        if self.per is None:
            return None
        if isinstance(self.per, str) and self.per == PREDICTION:
            return group_texts(np.asarray(prediction))
        n_samples = _num_samples(X)
        per_sample = self.per(X) if callable(self.per) else self._column(X)
        groups = np.asarray(per_sample)
        if groups.shape != (n_samples,):
            raise ShapeError(
                f"`per` must give one group for each of {n_samples} samples; got {groups.shape}"
            )
        return group_texts(groups, "per")

    def _column(self, X: Any) -> Any:
        try:
            return _safe_indexing(X, self.per, axis=1)
        except (ValueError, TypeError, IndexError, KeyError) as error:
            raise InputError(f"`per` must be a column of X; got {self.per!r}: {error}") from error


_NO_GROUPS = Grouping()

#: A name in `abstain.confidence.SCORES`, a fitted score, or a function from (estimator, X) to
#: confidences (n,).
ScoreLike = str | ScoreState | Callable[[Any, Any], AnyArray]


@dataclass(frozen=True)
class Scoring:
    """Computes confidences with a fitted classifier."""

    score: ScoreLike
    #: Method of the classifier, "predict_proba" or "decision_function". The value "auto" selects
    #: the first method that the classifier has and the score supports.
    response_method: str = "auto"
    #: Definition of the groups, if a rule has a threshold for each group.
    grouping: Grouping = _NO_GROUPS

    def __post_init__(self) -> None:
        """Raise an error if the score is invalid."""
        checks.one_of(self.response_method, "response_method", _RESPONSES)
        if isinstance(self.score, str):
            _check_is_not_fitted_score(self.score)
            confidence.find_score(self.score)
        elif not (self._is_fitted_score or callable(self.score)):
            raise InputError(
                "`score` must be a name of `abstain.confidence.SCORES`, a fitted score or a "
                f"callable (estimator, X) -> confidence; got {self.score!r}"
            )

    @property
    def _is_fitted_score(self) -> bool:
        return isinstance(self.score, ScoreState) and not isinstance(self.score, type)

    @property
    def name(self) -> str:
        """Name of the score."""
        if isinstance(self.score, str):
            return confidence.find_score(self.score).name
        if isinstance(self.score, ScoreState) and self._is_fitted_score:
            return str(self.score.name)
        function_name = str(getattr(self.score, "__name__", ""))
        is_lambda = function_name.startswith("<")
        return "" if is_lambda else function_name

    def score_samples(
        self, estimator: Any, X: Any, predictions: Predictions | None = None
    ) -> ConfidenceScore:
        """Compute the confidences of samples.

        `predictions` contains the class scores of the samples, if they are already computed.
        """
        if callable(self.score) and not self._is_fitted_score:
            values = np.asarray(checks.confidence(self.score(estimator, X)))
            self._check_length(values, X)
            return ConfidenceScore(self.name, values, is_user_column=True)
        if self._is_fitted_score:
            return self._score_with_fitted(estimator, X)
        score_name: Any = self.score
        if predictions is None:
            predictions = class_score_predictions(estimator, X, self.select_method(estimator))
        return confidence.score(score_name, predictions)

    def _score_with_fitted(self, estimator: Any, X: Any) -> ConfidenceScore:
        """Apply a fitted score to the first output of the classifier that the score accepts."""
        state: Any = self.score
        first_error: MissingInputError | None = None
        for predictions in self._iter_outputs(estimator, X):
            try:
                return confidence.score(state, predictions)
            except MissingInputError as error:
                first_error = first_error or error
        raise first_error or MissingInputError(_missing_method_message(self.name, estimator))

    def _iter_outputs(self, estimator: Any, X: Any) -> Iterator[Predictions]:
        """Yield the class scores of each available method, first without and then with features."""
        methods = _METHODS if self.response_method == "auto" else (self.response_method,)
        all_outputs = [
            class_score_predictions(estimator, X, method)
            for method in methods
            if hasattr(estimator, method)
        ]
        yield from all_outputs
        features = _features(X)
        if features is None:
            return
        for predictions in all_outputs:
            yield replace(predictions, features=features, unlabeled=True)

    def _check_length(self, values: Array, X: Any) -> None:
        if values.size != _num_samples(X):
            raise ShapeError(
                f"`score` must return one confidence for each of the {_num_samples(X)} samples; "
                f"got {values.size}"
            )

    def select_method(self, estimator: Any) -> str:
        """Return the method of the classifier from which the confidence is computed."""
        if self.response_method != "auto":
            candidates: tuple[str, ...] = (self.response_method,)
        elif isinstance(self.score, str) and self._needs_logits(self.score):
            candidates = ("decision_function",)
        else:
            candidates = _METHODS
        available = [method for method in candidates if hasattr(estimator, method)]
        if not available:
            raise MissingInputError(_missing_method_message(self.name, estimator, candidates))
        return available[0]

    @staticmethod
    def _needs_logits(name: str) -> bool:
        return ScoreNeed.LOGITS in confidence.find_score(name).needs


def _check_is_not_fitted_score(name: str) -> None:
    if name in confidence.FITTED and name not in confidence.SCORES:
        raise UnknownNameError(
            f"the score {name!r} must be fitted first, on samples that are not used to choose the "
            f"rule: score=abstain.confidence.fit({name!r}, predictions)"
        )


def class_score_predictions(estimator: Any, X: Any, method: str) -> Predictions:
    """Return the class scores of samples without labels. Classes are integers from 0 to K - 1."""
    scores: dict[str, Any] = class_scores(estimator, X, method)
    return Predictions(**scores, unlabeled=True)


def class_scores(estimator: Any, X: Any, method: str) -> dict[str, Array]:
    """Return the class scores, shape (n, K), by the name "probabilities" or "logits"."""
    values = np.asarray(getattr(estimator, method)(X))
    if method == "predict_proba":
        if values.ndim == 2 and values.shape[1] == 1:
            # The classifier was fitted on one class. A second class gets probability 0.
            values = np.column_stack([values, np.zeros_like(values)])
        return {"probabilities": values}
    if values.ndim == 1:
        # For two classes, the output is the difference of their logits.
        values = np.stack([-values / 2, values / 2], axis=1)
    n_classes = len(estimator.classes_)
    if values.shape[1] != n_classes:
        raise ShapeError(
            f"`decision_function` must return one column for each of the {n_classes} classes; got "
            f"{values.shape[1]}. Set decision_function_shape='ovr' on {type(estimator).__name__}."
        )
    return {"logits": values}


def _missing_method_message(score: str, estimator: Any, methods: tuple[str, ...] = _METHODS) -> str:
    return (
        f"the score {score!r} needs {' or '.join(methods)}, which {type(estimator).__name__} does "
        "not have. Give a callable (estimator, X) -> confidence as `score`, or another classifier."
    )


def _features(X: Any) -> Array | None:
    """Return X as an array of features, or None if an entry is not a finite number."""
    dense = X.toarray() if hasattr(X, "toarray") else X
    try:
        features = np.asarray(dense, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    is_valid = features.ndim == 2 and np.isfinite(features).all()
    return features if is_valid else None
