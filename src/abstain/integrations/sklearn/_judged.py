"""What a fitted classifier says of labelled samples, for metrics to judge."""

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import column_or_1d

from abstain._foundation.scored import Scored
from abstain.errors import DomainError
from abstain.evaluation.evaluate import join
from abstain.integrations.sklearn._confidence import Scoring, class_scores_by
from abstain.integrations.sklearn.classifier import SelectiveClassifier
from abstain.predictions import Predictions, per_sample_loss
from abstain.typing import AnyArray, Array, BoolArray, IntArray


def holds_selective(estimator: Any) -> bool:
    """Tell whether this is a selective classifier, or a search or pipeline that ends in one."""
    if isinstance(estimator, SelectiveClassifier):
        return True
    if isinstance(estimator, Pipeline):
        return holds_selective(estimator[-1])
    return hasattr(estimator, "best_estimator_") and holds_selective(estimator.best_estimator_)


def innermost(estimator: Any, X: Any) -> tuple[SelectiveClassifier, Any]:
    """Return the selective classifier inside of searches and pipelines, and X as it sees it."""
    while not isinstance(estimator, SelectiveClassifier):
        if not isinstance(estimator, Pipeline):
            estimator = estimator.best_estimator_
            continue
        X = estimator[:-1].transform(X) if len(estimator) > 1 else X
        estimator = estimator[-1]
    return estimator, X


def judged(
    estimator: Any,
    X: Any,
    y: Any,
    scoring: Scoring,
    *,
    loss: Any = None,
    sample_weight: AnyArray | None = None,
) -> Scored:
    """Return confidences and losses of labelled samples, with all that metrics may ask for."""
    classes = np.asarray(estimator.classes_)
    truth = _codes(np.asarray(column_or_1d(y)), classes, "`y`", of=estimator)
    guess = _codes(np.asarray(estimator.predict(X)), classes, "the prediction", of=estimator)
    predictions = Predictions(
        **_scores(estimator, X, scoring),
        prediction=guess,
        labels=truth,
        classes=range(max(classes.size, 2)),
        unknown_label=-1,
        weight=sample_weight,
    )
    confidence = scoring.of(estimator, X, predictions)
    return join(predictions, confidence, per_sample_loss(predictions, loss))


def mistakes(selective: SelectiveClassifier, X: Any, y: Any) -> tuple[BoolArray, BoolArray]:
    """Return which predictions for labelled samples are wrong, and which the rule accepts."""
    prediction, accepted, _ = selective.predict_or_abstain(X)
    truth = _codes(np.asarray(column_or_1d(y)), selective.classes_, "`y`", of=selective)
    guess = _codes(prediction, selective.classes_, "the prediction", of=selective)
    return truth != guess, accepted


def _scores(estimator: Any, X: Any, scoring: Scoring) -> dict[str, Any]:
    """Return the class scores, where the classifier has some."""
    if not any(hasattr(estimator, name) for name in ("predict_proba", "decision_function")):
        return {}
    return class_scores_by(estimator, X, scoring.method_of(estimator))


def _codes(values: Array, classes: Array, name: str, *, of: Any) -> IntArray:
    """Return the place of each name among the classes, -1 for a label that is none of them."""
    places = {kind: code for code, kind in enumerate(classes.tolist())}
    codes = np.array([places.get(value, -1) for value in values.tolist()], dtype=np.int64)
    wrong = codes < 0
    alien = name != "`y`" or _kinds(values[wrong]) - _kinds(classes)
    if wrong.any() and alien:
        first = int(np.flatnonzero(wrong)[0])
        msg = (
            f"{name} must hold classes of {type(of).__name__} ({classes[:6].tolist()}); got "
            f"{values.tolist()[first]!r} at index {first}"
        )
        raise DomainError(msg)
    return codes


def _kinds(values: Array) -> set[bool]:
    return {isinstance(value, str) for value in values.tolist()}
