"""Scorers for `cross_validate`, `GridSearchCV` and similar functions.

A scorer computes a number from a fitted classifier, samples and labels. Higher values are better
for every scorer, so metrics for which lower values are better are negated.
"""

import warnings
from typing import Any, Literal, Self, get_args

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRequest
from sklearn.utils.validation import column_or_1d

from abstain._foundation import checks
from abstain._foundation.scored import Scored
from abstain.confidence.registry import BASELINE
from abstain.errors import DomainError, InputError, UndefinedMetricWarning
from abstain.evaluation.inputs import join
from abstain.integrations.sklearn._confidence import ScoreLike, Scoring, class_scores
from abstain.integrations.sklearn.classifier import SelectiveClassifier
from abstain.metrics import metric_named, working_point
from abstain.metrics.entry import value_with_warning
from abstain.predictions import CostMatrix, Predictions, per_sample_loss
from abstain.typing import AnyArray, Array, BoolArray, IntArray


def is_selective(estimator: Any) -> bool:
    """Return whether an estimator is, or contains, a selective classifier."""
    if isinstance(estimator, SelectiveClassifier):
        return True
    if isinstance(estimator, Pipeline):
        return is_selective(estimator[-1])
    if hasattr(estimator, "best_estimator_"):
        return is_selective(estimator.best_estimator_)
    return False


def unwrap_selective(estimator: Any, X: Any) -> tuple[SelectiveClassifier, Any]:
    """Return the selective classifier in a search or a pipeline, and its transformed inputs."""
    while not isinstance(estimator, SelectiveClassifier):
        if not isinstance(estimator, Pipeline):
            estimator = estimator.best_estimator_
            continue
        if len(estimator) > 1:
            X = estimator[:-1].transform(X)
        estimator = estimator[-1]
    return estimator, X


def score_labeled_samples(
    estimator: Any,
    X: Any,
    y: Any,
    scoring: Scoring,
    *,
    loss: Any = None,
    sample_weight: AnyArray | None = None,
) -> Scored:
    """Compute confidences, losses and other inputs of metrics for labeled samples."""
    classes = np.asarray(estimator.classes_)
    truth = _encode(np.asarray(column_or_1d(y)), classes, "`y`", estimator=estimator)
    guess = _encode(
        np.asarray(estimator.predict(X)), classes, "the prediction", estimator=estimator
    )
    predictions = Predictions(
        **_class_scores(estimator, X, scoring),
        prediction=guess,
        labels=truth,
        classes=range(max(classes.size, 2)),
        unknown_label=-1,
        weight=sample_weight,
    )
    confidence = scoring.score_samples(estimator, X, predictions)
    return join(predictions, confidence, per_sample_loss(predictions, loss))


def failures_and_acceptance(
    selective: SelectiveClassifier, X: Any, y: Any
) -> tuple[BoolArray, BoolArray]:
    """Return the mask of failures and the mask of accepted samples, each of shape (n,)."""
    prediction, accepted, _ = selective.predict_or_abstain(X)
    truth = _encode(np.asarray(column_or_1d(y)), selective.classes_, "`y`", estimator=selective)
    guess = _encode(prediction, selective.classes_, "the prediction", estimator=selective)
    return truth != guess, accepted


def _class_scores(estimator: Any, X: Any, scoring: Scoring) -> dict[str, Any]:
    """Return the class scores by kind, or an empty dictionary if the classifier has none."""
    if not any(hasattr(estimator, name) for name in ("predict_proba", "decision_function")):
        return {}
    return class_scores(estimator, X, scoring.select_method(estimator))


def _encode(values: Array, classes: Array, name: str, *, estimator: Any) -> IntArray:
    """Return the class index of each label, or -1 for a label that is not a class."""
    code_by_class = {class_name: code for code, class_name in enumerate(classes.tolist())}
    codes = np.array([code_by_class.get(value, -1) for value in values.tolist()], dtype=np.int64)
    is_unknown = codes < 0
    is_label = name == "`y`"
    is_invalid = not is_label or _kinds(values[is_unknown]) - _kinds(classes)
    if is_unknown.any() and is_invalid:
        first = int(np.flatnonzero(is_unknown)[0])
        raise DomainError(
            f"{name} must hold classes of {type(estimator).__name__} ({classes[:6].tolist()}); got "
            f"{values.tolist()[first]!r} at index {first}"
        )
    return codes


def _kinds(values: Array) -> set[bool]:
    """Return whether values are strings: {True}, {False}, both, or an empty set without values."""
    return {isinstance(value, str) for value in values.tolist()}


class WeightedScorer:
    """A scorer that supports `sample_weight`."""

    def __init__(self) -> None:
        self._request = MetadataRequest(owner=type(self).__name__)
        self._request.score.add_request(param="sample_weight", alias=None)

    def set_score_request(self, *, sample_weight: bool | str | None = True) -> Self:
        """Request `sample_weight` for metadata routing.

        Parameters
        ----------
        sample_weight : bool, str or None, default=True
            Whether to request `sample_weight`. A string is the name under which the weights are
            passed.

        Returns
        -------
        scorer
            The updated scorer.
        """
        self._request.score.add_request(param="sample_weight", alias=sample_weight)
        return self

    def get_metadata_routing(self) -> MetadataRequest:
        """Return the metadata that this scorer requests in addition to X and y."""
        return self._request

    @staticmethod
    def _accept_sample_weight() -> bool:
        # scikit-learn calls this method for scorers in a dictionary.
        return True


_AtRule = Literal["coverage", "selective_risk", "generalized_risk"]


class SelectiveScorer(WeightedScorer):
    """A metric as a scikit-learn scorer, created by `make_selective_scorer`.

    Parameters
    ----------
    metric : str
        Name of the metric.
    score : str, fitted score, callable or None
        Confidence score. The default is the score of a `SelectiveClassifier`, and "msr" for other
        classifiers.
    response_method : str
        Method of the classifier from which a score in `SCORES` is computed.
    loss : str, CostMatrix or None
        Name of a loss, or costs. None selects the 0/1 loss.
    """

    def __init__(
        self,
        metric: str,
        score: ScoreLike | None = None,
        response_method: str = "auto",
        loss: "str | CostMatrix | None" = None,
    ) -> None:
        super().__init__()
        # The entry of a metric cannot be sent to another process, so its name is stored.
        self.metric = metric_named(metric).name
        self.score = score
        self.loss = loss
        self.response_method = response_method
        self._scoring(None)  # An invalid score raises an error.

    def __repr__(self) -> str:
        """Return the Python expression that creates the scorer."""
        score = "" if self.score is None else f", score={self.score!r}"
        return f"make_selective_scorer({self.metric!r}{score})"

    def __call__(
        self, estimator: Any, X: Any, y: Any, *, sample_weight: AnyArray | None = None
    ) -> float:
        """Compute the metric on labeled samples. A metric is negated if lower values are better.

        Parameters
        ----------
        estimator : classifier
            Fitted classifier. For a `SelectiveClassifier`, also in a pipeline or a search, the
            metric includes rejected predictions.
        X : array-like or sparse matrix of shape (n, d)
            Samples.
        y : array-like of shape (n,)
            True classes. If a label is not a class of the classifier, the prediction is wrong.
        sample_weight : array-like of shape (n,), optional
            Frequency weights. A sample with an integer weight w counts as w samples.

        Returns
        -------
        float
            The metric. A greater value is better. If the metric is undefined, the result is NaN,
            and a warning is issued.
        """
        classifier_scoring = None
        if is_selective(estimator):
            selective, X = unwrap_selective(estimator, X)
            classifier_scoring = selective.scoring
            estimator = selective.estimator_
        scoring = self._scoring(classifier_scoring)
        scored = score_labeled_samples(
            estimator, X, y, scoring, loss=self.loss, sample_weight=sample_weight
        )
        metric = metric_named(self.metric)
        reason = metric.reason_not_applicable(scored)
        if reason:
            raise InputError(f"the metric {metric.name!r} does not apply: it {reason}")
        value = float(value_with_warning(metric.compute(scored), metric.name))
        return -value if metric.lower_is_better else value

    def _scoring(self, classifier_scoring: Scoring | None) -> Scoring:
        if self.score is not None:
            return Scoring(self.score, self.response_method)
        return classifier_scoring or Scoring(BASELINE, self.response_method)


class RuleScorer(WeightedScorer):
    """A scorer for the coverage or the risk of a `SelectiveClassifier` with its decision rule.

    Parameters
    ----------
    quantity : {"coverage", "selective_risk", "generalized_risk"}
        Quantity that is computed. Risks are negated, so that higher values are better.

    Raises
    ------
    InputError
        If `quantity` has another value.
    """

    def __init__(self, quantity: _AtRule) -> None:
        super().__init__()
        checks.one_of(quantity, "quantity", get_args(_AtRule))
        self.quantity = quantity

    def __repr__(self) -> str:
        """Return the name of the scorer."""
        return f"{self.quantity}_scorer"

    def __call__(
        self, estimator: Any, X: Any, y: Any, *, sample_weight: AnyArray | None = None
    ) -> float:
        """Compute the quantity on labeled samples. Risks are negated.

        Parameters
        ----------
        estimator : SelectiveClassifier
            Fitted selective classifier, possibly in a pipeline or a search.
        X : array-like or sparse matrix of shape (n, d)
            Samples.
        y : array-like of shape (n,)
            True classes.
        sample_weight : array-like of shape (n,), optional
            Frequency weights. A sample with an integer weight w counts as w samples.

        Returns
        -------
        float
            The quantity. A greater value is better. If no sample is accepted, the selective risk is
            NaN, and a warning is issued.
        """
        if not is_selective(estimator):
            raise InputError(
                f"{self!r} requires a SelectiveClassifier, which has a decision rule; got "
                f"{type(estimator).__name__}. For other classifiers at a fixed coverage, use "
                "make_selective_scorer('selective_risk@80cov')."
            )
        selective, X = unwrap_selective(estimator, X)
        wrong, accepted = failures_and_acceptance(selective, X, y)
        point = working_point(accepted.astype(float), wrong, threshold=1, weight=sample_weight)
        if self.quantity in point.reasons:
            msg = f"{self.quantity} is undefined here: {point.reasons[self.quantity]}"
            warnings.warn(msg, UndefinedMetricWarning, stacklevel=2)
        value = float(getattr(point, self.quantity))
        return value if self.quantity == "coverage" else -value


def make_selective_scorer(
    metric: str,
    *,
    score: ScoreLike | None = None,
    response_method: str = "auto",
    loss: "str | CostMatrix | None" = None,
) -> SelectiveScorer:
    """Return a scikit-learn scorer for a metric.

    The scorer measures, for example, how well the confidence of a classifier detects failures.

    Parameters
    ----------
    metric : str
        A name in `abstain.metrics.METRICS`. Numbers in the name may be replaced, as in
        "coverage@2risk".
    score : str, fitted score or callable, optional
        Confidence score, as in `SelectiveClassifier`. The default is the score of a
        `SelectiveClassifier`, and "msr" for other classifiers.
    response_method : {"auto", "predict_proba", "decision_function"}, default="auto"
        Method of the classifier from which a score in `SCORES` is computed.
    loss : str or CostMatrix, optional
        A name in `abstain.predictions.LOSSES`, or costs. The default is the 0/1 loss.

    Returns
    -------
    SelectiveScorer
        A function of a fitted classifier, samples and labels. If lower values of the metric are
        better, the result is negated.

    Raises
    ------
    UnknownNameError
        If the metric or the score does not exist.
    InputError
        If `score` is not a valid score.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> X, y = make_classification(300, flip_y=0.2, random_state=0)
    >>> scorer = make_selective_scorer("failure_auroc", score="margin")
    >>> scores = cross_val_score(LogisticRegression(), X, y, scoring=scorer, cv=3)
    >>> bool((scores > 0.5).all())
    True
    """
    return SelectiveScorer(metric, score, response_method, loss)


#: Scorer that returns the negative AUGRC.
augrc_scorer = make_selective_scorer("augrc")
#: Scorer that returns the negative AURC.
aurc_scorer = make_selective_scorer("aurc")
#: Scorer that returns the negative excess AURC.
e_aurc_scorer = make_selective_scorer("e_aurc")
#: Scorer that returns the AUROC of failure detection.
failure_auroc_scorer = make_selective_scorer("failure_auroc")
#: Scorer that returns the coverage of a `SelectiveClassifier` with its decision rule.
coverage_scorer = RuleScorer("coverage")
#: Scorer that returns the negative selective risk of a `SelectiveClassifier` with its rule.
selective_risk_scorer = RuleScorer("selective_risk")
#: Scorer that returns the negative generalized risk of a `SelectiveClassifier` with its rule.
generalized_risk_scorer = RuleScorer("generalized_risk")
