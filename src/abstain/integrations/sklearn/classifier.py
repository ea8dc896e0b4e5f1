"""`SelectiveClassifier`, a scikit-learn classifier that abstains if its confidence is low."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from abstain.confidence import ConfidenceScore
from abstain.confidence.registry import BASELINE
from abstain.errors import InputError
from abstain.integrations.sklearn import _held_out as held_out
from abstain.integrations.sklearn._answers import (
    SelectivePrediction,
    abstain_label_for,
    replace_rejected,
)
from abstain.integrations.sklearn._confidence import Grouping, ScoreLike, Scoring
from abstain.integrations.sklearn._delegation import DelegatingClassifier, route
from abstain.integrations.sklearn._rules import (
    RequestedRule,
    accept,
    conditions_by_group,
    confidence_on_rule_scale,
)
from abstain.typing import Array, BoolArray


class SelectiveClassifier(DelegatingClassifier):
    """A classifier that abstains if its confidence is below a threshold.

    Parameters
    ----------
    estimator : classifier
        Any scikit-learn classifier or pipeline.
    score : str, fitted score or callable, default="msr"
        Confidence score: a name in `abstain.confidence.SCORES`, a fitted score, or a function
        ``(estimator, X) -> confidence`` of shape (n,), where higher is more confident. If a fitted
        score requires features, the rows of X are the features.
    rule : None, str, callable or DecisionRule, default=None
        Decision rule. With None, every sample is accepted. A name in `abstain.thresholds.RULES`, or
        a function ``(confidence, loss) -> DecisionRule``, chooses a rule on held-out samples with
        0/1 loss. A `DecisionRule` is used without changes.
    rule_params : mapping, optional
        Options of the rule, such as ``{"max_risk": 0.05, "delta": 0.05}``.
    cv : None, int, splitter, iterable of splits, float or "prefit", default=None
        Selection of the held-out samples, on which the rule is chosen. If None or an int, each
        sample is held out once in this number of stratified folds (None means 5), and the
        classifier is then fitted on all samples. If a float, this share of the samples of each
        class is held out, and the classifier is fitted on the remaining samples. If "prefit", the
        classifier must already be fitted, and all samples are held out.
    abstain_label : object, default="auto"
        Output of `predict` for rejected samples. The default "auto" means "abstain" if the classes
        are strings, and -1 otherwise. If -1 is a class, "auto" means the smallest class minus 1.
    response_method : {"auto", "predict_proba", "decision_function"}, default="auto"
        Method of the classifier from which a score in `SCORES` is computed. For scores that require
        logits, "auto" selects `decision_function`, whose output is used as logits. For other
        scores, "auto" selects the first available method.
    n_jobs : int, optional
        Number of folds for which classifiers are fitted in parallel.
    random_state : int, RandomState instance or None, default=None
        Random state of the split if `cv` is a float.
    per : None, "prediction", str, int or callable, default=None
        Groups with separate thresholds and guarantees. Groups are predicted classes, the values of
        a column of X (name or index), or the output of a function ``X -> groups``. The rule must be
        a name or a `DecisionRule` with thresholds for these groups.
    joint : bool, default=False
        Whether the guarantees of all groups hold jointly with probability 1 - delta. By default,
        the guarantee for each single group holds with probability 1 - delta.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier.
    decision_rule_ : DecisionRule or None
        Decision rule with its guarantee, threshold and calibration size. If `per` is set, the rule
        has a threshold for each group.
    answer_conditions_ : dict from str to str
        Condition of each group under which the classifier answers, such as "p ≥ 0.920 or p ≤ 0.080"
        for the probability of the second of two classes. If there is a single threshold, the key is
        "". The thresholds in these texts are rounded, but accept the same held-out samples.
    abstain_label_ : object
        Label of abstentions.
    classes_ : ndarray of shape (K,)
        Class names.
    n_features_in_, feature_names_in_ : int, ndarray
        Attributes of the fitted classifier, if it has them.

    Notes ----- A guarantee requires held-out samples on which the classifier was not fitted. If
    `cv` is a float, or if `cv` is "prefit" and the samples were not used to fit the classifier, the
    guarantee holds exactly. If `cv` is a float, stratification by class only reduces the variance
    of the losses. With cross-validation, the rule is chosen on predictions of the classifiers of
    the folds, but the final classifier is fitted on all samples. The guarantee then holds only
    approximately.

    The argument `sample_weight` is passed only to the classifier, and every held-out sample has
    weight 1 in the choice of the rule. Guarantees do not hold for weighted samples, and weights
    that balance classes in training do not represent future samples. To use weights, choose a rule
    with `abstain.thresholds`, and pass this `DecisionRule` as `rule`.

    If the target of the rule cannot be attained, `fit` issues a warning and all samples are
    rejected. If `per` is set, samples are rejected if their group has no held-out samples or too
    few for a guarantee.

    `score` is the name of a parameter and of a method. ``get_params()["score"]`` returns the
    parameter, and ``classifier.score(X, y)`` returns the accuracy with abstentions as failures.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = make_classification(2000, flip_y=0.1, random_state=0)
    >>> classifier = SelectiveClassifier(
    ...     LogisticRegression(),
    ...     rule="sgr",
    ...     rule_params={"max_risk": 0.07, "delta": 0.05},
    ...     cv=0.5,
    ...     random_state=0,
    ... )
    >>> answers = classifier.fit(X[:1500], y[:1500]).predict(X[1500:])
    >>> sorted(set(answers.tolist()))
    [-1, 0, 1]
    >>> classifier.answer_conditions_[""]
    'p ≥ 0.9805 or p ≤ 0.0195'
    """

    def __init__(
        self,
        estimator: Any,
        *,
        score: ScoreLike = BASELINE,
        rule: Any = None,
        rule_params: Mapping[str, Any] | None = None,
        cv: Any = None,
        abstain_label: Any = "auto",
        response_method: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        per: Any = None,
        joint: bool = False,
    ) -> None:
        self.estimator = estimator
        self.score = score
        self.rule = rule
        self.rule_params = rule_params
        self.cv = cv
        self.abstain_label = abstain_label
        self.response_method = response_method
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.per = per
        self.joint = joint

    def fit(self, X: Any, y: Any, **params: Any) -> Self:
        """Fit the classifier and choose the rule on held-out samples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Samples. A dataframe is passed to the classifier without conversion.
        y : array-like of shape (n,)
            True classes.
        **params
            `sample_weight` for the `fit` method of the classifier. If metadata routing is enabled,
            metadata that the classifier or the splitter requests.

        Returns
        -------
        SelectiveClassifier
            The fitted selective classifier.
        """
        self._check_cv()
        scoring = self.scoring
        requested_rule = RequestedRule(self.rule, self.rule_params, scoring.grouping, self.joint)
        X, y = held_out.validate_samples(X, y)
        routed = route(self, params)
        data = held_out.TrainingData(X, y, routed.estimator)
        samples = None
        if self._is_prefit:
            held_out.check_no_params(routed.estimator)
            self.estimator_ = held_out.check_fitted(self.estimator, y)
            if requested_rule.needs_samples:
                samples = held_out.score_held_out(self.estimator_, X, y, scoring)
        elif requested_rule.needs_samples:
            samples = self._fit_and_hold_out(data, scoring, routed.splitter)
        else:
            self.estimator_ = data.fit(self.estimator)
        self._set_fitted_attributes()
        self.decision_rule_ = requested_rule.resolve(samples, scoring.name)
        self.answer_conditions_ = conditions_by_group(
            self.decision_rule_, samples, n_classes=len(self.classes_)
        )
        return self

    def predict(self, X: Any) -> Array:
        """Return the predicted class of each sample, or `abstain_label_` for rejected samples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Samples.

        Returns
        -------
        ndarray of shape (n,)
            Predicted classes, or `abstain_label_` for rejected samples.
        """
        check_is_fitted(self, "estimator_")
        prediction = np.asarray(self.estimator_.predict(X))
        if self.decision_rule_ is None:
            return prediction
        confidence = self.scoring.score_samples(self.estimator_, X)
        accepted = self._accepted(confidence, X, prediction)
        return replace_rejected(prediction, accepted, self.abstain_label_)

    def predict_or_abstain(self, X: Any) -> SelectivePrediction:
        """Return the predicted class, acceptance and confidence of each sample.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Samples.

        Returns
        -------
        SelectivePrediction
            A tuple ``prediction, accepted, confidence`` of arrays of shape (n,).
        """
        check_is_fitted(self, "estimator_")
        prediction = np.asarray(self.estimator_.predict(X))
        confidence = self.scoring.score_samples(self.estimator_, X)
        values = confidence_on_rule_scale(confidence, self.decision_rule_)
        accepted = self._accepted(confidence, X, prediction)
        return SelectivePrediction(prediction, accepted, values)

    def confidence(self, X: Any) -> Array:
        """Return the confidence of each prediction, on the scale of the threshold.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Samples.

        Returns
        -------
        ndarray of shape (n,)
            Confidences. A higher value is more confident.
        """
        check_is_fitted(self, "estimator_")
        confidence = self.scoring.score_samples(self.estimator_, X)
        return confidence_on_rule_scale(confidence, self.decision_rule_)

    def accepts(self, X: Any) -> BoolArray:
        """Return a mask of the samples that the rule accepts.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Samples.

        Returns
        -------
        ndarray of shape (n,)
            Whether the rule accepts each prediction.
        """
        check_is_fitted(self, "estimator_")
        if self.decision_rule_ is None:
            return np.ones(held_out.count_samples(X), dtype=np.bool_)
        return self._accepted(self.scoring.score_samples(self.estimator_, X), X)

    @property
    def scoring(self) -> Scoring:
        """Computes confidences with the fitted classifier."""
        grouping = Grouping.from_rule(self.per, self.rule)
        return Scoring(vars(self)["score"], self.response_method, grouping)

    def _accepted(
        self, confidence: ConfidenceScore, X: Any, prediction: Array | None = None
    ) -> BoolArray:
        """Return a mask of the samples whose confidences the rule accepts."""
        if self.decision_rule_ is None:
            return np.ones(confidence.values.size, dtype=np.bool_)
        grouping = self.scoring.grouping
        if grouping.per is not None and prediction is None:
            prediction = np.asarray(self.estimator_.predict(X))
        group = None if prediction is None else grouping.group_samples(X, prediction)
        return accept(self.decision_rule_, confidence, group)

    def _check_cv(self) -> None:
        """Raise an error if `cv` is a string other than "prefit" or a float outside (0, 1)."""
        cv = self.cv
        if isinstance(cv, str) and cv != "prefit":
            raise InputError(
                f"`cv` must be None, a number, a splitter, splits or 'prefit'; got {cv!r}"
            )
        if held_out.is_share(cv) and not 0 < cv < 1:
            raise InputError(
                f"`cv` as a share to hold out must lie strictly between 0 and 1; got {cv!r}"
            )

    @property
    def _is_prefit(self) -> bool:
        return isinstance(self.cv, str) and self.cv == "prefit"

    def _fit_and_hold_out(
        self, data: held_out.TrainingData, scoring: Scoring, to_splitter: Mapping[str, Any]
    ) -> held_out.HeldOutSamples:
        """Fit the classifier, and return the confidences and losses of held-out samples."""
        if held_out.is_share(self.cv):
            train, test = held_out.split_off(data, self.cv, self.random_state)
            self.estimator_ = data.fit(self.estimator, train)
            return held_out.score_held_out(
                self.estimator_, data.select_rows(test), data.y[test], scoring
            )
        folds = held_out.make_folds(self.cv, data, to_splitter)
        samples = held_out.cross_fit(self.estimator, data, folds, scoring, self.n_jobs)
        self.estimator_ = data.fit(self.estimator)
        return samples

    def _set_fitted_attributes(self) -> None:
        """Set the classes, the label of abstentions and the feature attributes."""
        self.classes_ = held_out.get_classes(self.estimator_)
        self.abstain_label_ = abstain_label_for(self.abstain_label, self.classes_)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
