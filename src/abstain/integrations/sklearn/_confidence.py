"""How far to trust each prediction of a fitted scikit-learn classifier."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from abstain import confidence
from abstain._foundation import checks
from abstain.confidence import ConfidenceScore, ScoreNeed, ScoreState
from abstain.errors import InputError, MissingInputError, ShapeError, UnknownNameError
from abstain.integrations.sklearn._groups import Grouping
from abstain.predictions import Predictions
from abstain.typing import AnyArray, Array

_METHODS = ("predict_proba", "decision_function")
_RESPONSES = ("auto", *_METHODS)
_ONE = Grouping()


#: A name in `abstain.confidence.SCORES`, a fitted score, or (estimator, X) -> confidence (n,).
ScoreLike = str | ScoreState | Callable[[Any, Any], AnyArray]


@dataclass(frozen=True)
class Scoring:
    """From a fitted classifier and samples to confidences."""

    score: ScoreLike
    #: "predict_proba" or "decision_function", from which it is computed; "auto" is the first that
    #: the score can use and the classifier has.
    response_method: str = "auto"
    #: What says which threshold a sample is held to, where a rule has several.
    grouping: Grouping = _ONE

    def __post_init__(self) -> None:
        """Refuse what is no score before anything is fitted."""
        checks.one_of(self.response_method, "response_method", _RESPONSES)
        if isinstance(self.score, str):
            _refuse_unfitted(self.score)
            confidence.find_score(self.score)
        elif not (self._fitted or callable(self.score)):
            raise InputError(
                "`score` must be a name of `abstain.confidence.SCORES`, a fitted score or a "
                f"callable (estimator, X) -> confidence; got {self.score!r}"
            )

    @property
    def _fitted(self) -> bool:
        return isinstance(self.score, ScoreState) and not isinstance(self.score, type)

    @property
    def name(self) -> str:
        """The name of the score."""
        if isinstance(self.score, str):
            return confidence.find_score(self.score).name
        state: Any = self.score
        named = str(state.name if self._fitted else getattr(state, "__name__", ""))
        return "" if named.startswith("<") else named  # a lambda has no name

    def of(self, estimator: Any, X: Any, said: Predictions | None = None) -> ConfidenceScore:
        """Return the confidences of samples under a fitted classifier.

        `said` are the outputs of `method_of` for these samples, where the caller has them already.
        """
        if callable(self.score) and not self._fitted:
            values = np.asarray(checks.confidence(self.score(estimator, X)))
            self._refuse_length(values, X)
            return ConfidenceScore(self.name, values, is_user_column=True)
        if self._fitted:
            return self._of_state(estimator, X)
        named: Any = self.score
        if said is None:
            said = outputs(estimator, X, self.method_of(estimator))
        return confidence.score(named, said)

    def _of_state(self, estimator: Any, X: Any) -> ConfidenceScore:
        """Score by a fitted state, which finds out by itself what it lacks."""
        state: Any = self.score
        first: MissingInputError | None = None
        for predictions in self._outputs(estimator, X):
            try:
                return confidence.score(state, predictions)
            except MissingInputError as error:
                first = first or error
        raise first or MissingInputError(_nothing(self.name, estimator))

    def _outputs(self, estimator: Any, X: Any) -> Iterator[Predictions]:
        """Yield what the classifier says in each way it can, then with the rows as features."""
        ways = _METHODS if self.response_method == "auto" else (self.response_method,)
        found = [outputs(estimator, X, way) for way in ways if hasattr(estimator, way)]
        yield from found
        features = _features(X)
        if features is None:
            return
        for said in found:
            yield replace(said, features=features, unlabeled=True)

    def _refuse_length(self, values: Array, X: Any) -> None:
        from sklearn.utils.validation import _num_samples

        if values.size != _num_samples(X):
            raise ShapeError(
                f"`score` must return one confidence for each of the {_num_samples(X)} samples; "
                f"got {values.size}"
            )

    def method_of(self, estimator: Any) -> str:
        """Return the method of the classifier that the confidence is computed from."""
        if self.response_method != "auto":
            wanted: tuple[str, ...] = (self.response_method,)
        elif isinstance(self.score, str) and self._needs_logits(self.score):
            wanted = ("decision_function",)
        else:
            wanted = _METHODS
        found = [method for method in wanted if hasattr(estimator, method)]
        if not found:
            raise MissingInputError(_nothing(self.name, estimator, wanted))
        return found[0]

    @staticmethod
    def _needs_logits(name: str) -> bool:
        return ScoreNeed.LOGITS in confidence.find_score(name).needs


def _refuse_unfitted(name: str) -> None:
    if name in confidence.FITTED and name not in confidence.SCORES:
        raise UnknownNameError(
            f"the score {name!r} must be fitted first, on other samples than the rule is set on: "
            f"score=abstain.confidence.fit({name!r}, predictions)"
        )


def outputs(estimator: Any, X: Any, method: str) -> Predictions:
    """Return the class scores of samples without labels; classes are the codes 0 to K - 1."""
    scores: dict[str, Any] = class_scores_by(estimator, X, method)
    return Predictions(**scores, unlabeled=True)


def class_scores_by(estimator: Any, X: Any, method: str) -> dict[str, Array]:
    """Return "probabilities" or "logits" of shape (n, K) by that name."""
    values = np.asarray(getattr(estimator, method)(X))
    if method == "predict_proba":
        # A classifier that knows one class is sure of it: the other class has probability 0.
        alone = values.ndim == 2 and values.shape[1] == 1
        return {"probabilities": np.c_[values, np.zeros_like(values)] if alone else values}
    if values.ndim == 1:
        # One number for two classes: their difference, shared so that neither is preferred.
        values = np.stack([-values / 2, values / 2], axis=1)
    classes = len(estimator.classes_)
    if values.shape[1] != classes:
        raise ShapeError(
            f"`decision_function` must return one column for each of the {classes} classes; got "
            f"{values.shape[1]}. Set decision_function_shape='ovr' on {type(estimator).__name__}."
        )
    return {"logits": values}


def _nothing(score: str, estimator: Any, wanted: tuple[str, ...] = _METHODS) -> str:
    return (
        f"the score {score!r} needs {' or '.join(wanted)}, which {type(estimator).__name__} does "
        "not have. Give a callable (estimator, X) -> confidence as `score`, or another classifier."
    )


def _features(X: Any) -> Array | None:
    """Return the rows of X as features; None where they are no finite numbers."""
    dense = X.toarray() if hasattr(X, "toarray") else X
    try:
        features = np.asarray(dense, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return features if features.ndim == 2 and np.isfinite(features).all() else None
