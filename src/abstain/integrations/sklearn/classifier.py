"""A scikit-learn classifier that answers where it is sure enough and abstains elsewhere."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from abstain.confidence import ConfidenceScore
from abstain.confidence.registry import BASELINE
from abstain.errors import InputError
from abstain.integrations.sklearn import _held_out as held_out
from abstain.integrations.sklearn._answers import SelectivePrediction, abstain_label_for, replace_rejected
from abstain.integrations.sklearn._confidence import ScoreLike, Scoring
from abstain.integrations.sklearn._delegation import DelegatingClassifier, route
from abstain.integrations.sklearn._groups import Grouping
from abstain.integrations.sklearn._rules import RequestedRule, accept, confidence_on_rule_scale
from abstain.typing import Array, BoolArray


class SelectiveClassifier(DelegatingClassifier):
    """A classifier that answers where it is sure enough and abstains elsewhere.

    Parameters
    ----------
    estimator : classifier
        Any scikit-learn classifier, pipelines included.
    score : str, fitted score or callable, default="msr"
        The confidence: a name in `abstain.confidence.SCORES`, a fitted score (it gets the rows
        of X as features if it needs some), or ``(estimator, X) -> confidence`` of shape (n,),
        higher is more trusted.
    rule : None, str, callable or DecisionRule, default=None
        What is accepted. None answers everything, as the classifier alone does. A name in
        `abstain.thresholds.RULES` or a callable ``(confidence, loss) -> DecisionRule`` is set
        on held-out samples with 0/1 loss; a finished rule is used as it is.
    rule_params : mapping, optional
        Options of the rule, such as ``{"max_risk": 0.05, "delta": 0.05}``.
    cv : None, int, splitter, iterable of splits, float or "prefit", default=None
        Which samples the rule is set on. None or an int: every sample, held out once in that
        many stratified folds (None: 5); then the classifier is fitted on all of them. A float:
        that share is split off, stratified, and the classifier is fitted on the rest.
        "prefit": the classifier is fitted already, and all samples go to the rule.
    abstain_label : object, default="auto"
        What `predict` returns for a rejected sample. "auto" is the word "abstain" where the
        classes are strings, else -1 (where -1 is a class, one below the smallest class).
    response_method : {"auto", "predict_proba", "decision_function"}, default="auto"
        What a named score is computed from. "auto" takes `decision_function`, read as logits,
        for scores that need logits, else the first that the classifier has.
    n_jobs : int, optional
        Folds fitted at the same time.
    random_state : int, RandomState instance or None, default=None
        Of the split when `cv` is a float.
    per : None, "prediction", str, int or callable, default=None
        Give each group a threshold of its own, with what the rule promises: each predicted class,
        each value of a column of X by name or place, or of what ``X -> groups`` returns. For a
        `rule` given by name; or where a finished rule with parts finds its groups.
    joint : bool, default=False
        With `per`: whether the promises to all groups hold together with probability 1 - delta, or
        each by itself.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier.
    decision_rule_ : DecisionRule or None
        The rule in use, with its guarantee, threshold and calibration size; with `per` it has a
        part for each group.
    abstain_label_ : object
        The label of abstentions.
    classes_ : ndarray of shape (K,)
        The classes.
    n_features_in_, feature_names_in_ : int, ndarray
        Of the classifier, where it has them.

    Notes
    -----
    A guarantee needs held-out samples that the classifier in use did not see. It is exact with
    ``cv="prefit"`` on fresh samples. It is as good with a float; stratification only takes
    variance out of the held-out losses. With folds the rule is set on the predictions of the
    fold classifiers while the one in use is fitted on all samples: the guarantee then holds
    approximately, as the final classifier differs.

    `sample_weight` goes to the classifier only. The rule counts every held-out sample once: no
    guarantee holds for weighted samples, and weights that balance classes in training say
    nothing about the samples to come. For a rule on weighted samples make it with
    `abstain.thresholds` and pass it finished.

    An unattainable rule brings one warning at `fit`, and everything is rejected; with `per` the
    samples of each group too small for a promise, and of those that were not held out, are.

    `score` names a parameter and a method: ``get_params()["score"]`` is the parameter,
    ``classifier.score(X, y)`` the accuracy that counts each abstention as a mistake.

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
        """Fit the classifier and set the rule on held-out samples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Samples; frames are passed on as they are.
        y : array-like of shape (n,)
            Classes.
        **params
            `sample_weight` for the classifier's own `fit`; with metadata routing whatever the
            classifier and the splitter asked for.

        Returns
        -------
        SelectiveClassifier
            Itself.
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
            samples = held_out.score_held_out(self.estimator_, X, y, scoring) if requested_rule.needs_samples else None
        elif requested_rule.needs_samples:
            samples = self._fit_and_hold_out(data, scoring, routed.splitter)
        else:
            self.estimator_ = data.fit(self.estimator)
        self._set_fitted_attributes()
        self.decision_rule_ = requested_rule.resolve(samples, scoring.name)
        return self

    def predict(self, X: Any) -> Array:
        """Return the class of each sample, or the abstain label where it is rejected.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Samples.

        Returns
        -------
        ndarray of shape (n,)
            Classes, and `abstain_label_` for rejected samples.
        """
        check_is_fitted(self, "estimator_")
        prediction = np.asarray(self.estimator_.predict(X))
        if self.decision_rule_ is None:
            return prediction
        confidence = self.scoring.score_samples(self.estimator_, X)
        return replace_rejected(prediction, self._accepted(confidence, X, prediction), self.abstain_label_)

    def predict_or_abstain(self, X: Any) -> SelectivePrediction:
        """Return class, acceptance and confidence of each sample.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Samples.

        Returns
        -------
        SelectivePrediction
            Unpacks as ``prediction, accepted, confidence``, each of shape (n,).
        """
        check_is_fitted(self, "estimator_")
        prediction = np.asarray(self.estimator_.predict(X))
        confidence = self.scoring.score_samples(self.estimator_, X)
        values = confidence_on_rule_scale(confidence, self.decision_rule_)
        return SelectivePrediction(prediction, self._accepted(confidence, X, prediction), values)

    def confidence(self, X: Any) -> Array:
        """Return how far each prediction is trusted, on the scale of the rule's threshold.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Samples.

        Returns
        -------
        ndarray of shape (n,)
            Higher is more trusted.
        """
        check_is_fitted(self, "estimator_")
        return confidence_on_rule_scale(self.scoring.score_samples(self.estimator_, X), self.decision_rule_)

    def accepts(self, X: Any) -> BoolArray:
        """Return which samples the rule accepts.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Samples.

        Returns
        -------
        ndarray of shape (n,)
            Whether the prediction is to be acted on.
        """
        check_is_fitted(self, "estimator_")
        if self.decision_rule_ is None:
            return np.ones(held_out.count_samples(X), dtype=np.bool_)
        return self._accepted(self.scoring.score_samples(self.estimator_, X), X)

    @property
    def scoring(self) -> Scoring:
        """How confidences are had from the fitted classifier."""
        grouping = Grouping.from_rule(self.per, self.rule)
        return Scoring(vars(self)["score"], self.response_method, grouping)

    def _accepted(self, confidence: ConfidenceScore, X: Any, prediction: Array | None = None) -> BoolArray:
        if self.decision_rule_ is None:
            return np.ones(confidence.values.size, dtype=np.bool_)
        grouping = self.scoring.grouping
        if grouping.per is not None and prediction is None:
            prediction = np.asarray(self.estimator_.predict(X))
        group = None if prediction is None else grouping.group_samples(X, prediction)
        return accept(self.decision_rule_, confidence, group)

    def _check_cv(self) -> None:
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
        """Fit the classifier, and return samples that it (or those of the folds) did not see."""
        if held_out.is_share(self.cv):
            train, test = held_out.split_off(data, self.cv, self.random_state)
            self.estimator_ = data.fit(self.estimator, train)
            return held_out.score_held_out(self.estimator_, data.select_rows(test), data.y[test], scoring)
        folds = held_out.make_folds(self.cv, data, to_splitter)
        samples = held_out.cross_fit(self.estimator, data, folds, scoring, self.n_jobs)
        self.estimator_ = data.fit(self.estimator)
        return samples

    def _set_fitted_attributes(self) -> None:
        """Take over what the fitted classifier knows of classes and features."""
        self.classes_ = held_out.get_classes(self.estimator_)
        self.abstain_label_ = abstain_label_for(self.abstain_label, self.classes_)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
