"""What a selective classifier shares with the classifier inside it."""

from collections.abc import Callable
from inspect import isfunction
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils.metadata_routing import MetadataRouter
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from abstain.integrations.sklearn._both import MethodBesideParameter
from abstain.integrations.sklearn._routing import router_of
from abstain.typing import AnyArray, Array


def _delegates(method: str) -> Callable[[Any], bool]:
    def has(self: Any) -> bool:
        # Raises the AttributeError that says which estimator lacks it.
        getattr(getattr(self, "estimator_", self.estimator), method)
        return True

    return has


class DelegatingClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A classifier around another one, which stays in sight: outputs, tags, routing."""

    estimator: Any
    cv: Any

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Keep `score` a method beside its parameter where a subclass defines its own."""
        super().__init_subclass__(**kwargs)
        own = vars(cls).get("score")
        if isfunction(own):
            cls.score = MethodBesideParameter(own)  # type: ignore[method-assign]

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: FBT002  scikit-learn's
        """Return the parameters by name, with those of the classifier if `deep`."""
        params: dict[str, Any] = super().get_params(deep=deep)
        return {**params, "score": vars(self)["score"]}

    @available_if(_delegates("predict_proba"))
    def predict_proba(self, X: Any) -> Array:
        """Return the class probabilities of the fitted classifier, shape (n, K)."""
        check_is_fitted(self, "estimator_")
        return np.asarray(self.estimator_.predict_proba(X))

    @available_if(_delegates("predict_log_proba"))
    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithms of the class probabilities, shape (n, K)."""
        check_is_fitted(self, "estimator_")
        return np.asarray(self.estimator_.predict_log_proba(X))

    @available_if(_delegates("decision_function"))
    def decision_function(self, X: Any) -> Array:
        """Return the decision function of the fitted classifier."""
        check_is_fitted(self, "estimator_")
        return np.asarray(self.estimator_.decision_function(X))

    @MethodBesideParameter
    def score(self, X: Any, y: Any, sample_weight: AnyArray | None = None) -> float:
        """Return the share of samples that are answered and right; abstentions count as mistakes.

        It is ``accuracy_score(y, self.predict(X))``, so it never rises with abstaining. To choose
        a classifier or a score by how well it knows its mistakes, use the scorers of this module.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Samples.
        y : array-like of shape (n,)
            Classes.
        sample_weight : array-like of shape (n,), optional
            Sample weights.

        Returns
        -------
        float
            In [0, 1]; higher is better.
        """
        return float(ClassifierMixin.score(self, X, y, sample_weight=sample_weight))

    def get_metadata_routing(self) -> MetadataRouter:
        """Return who may receive what: the classifier and the splitter, and `score` itself."""
        return router_of(self)

    def __sklearn_tags__(self) -> Any:
        """Return the tags of the classifier; only one class for each sample is known here."""
        from sklearn.utils import get_tags

        tags, own = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.input_tags, tags.target_tags = own.input_tags, own.target_tags
        tags.classifier_tags = own.classifier_tags
        tags.target_tags.multi_output = False
        tags.classifier_tags.multi_label = False
        tags.non_deterministic = own.non_deterministic
        return tags
