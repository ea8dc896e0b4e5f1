"""Base class of a classifier that delegates outputs, tags and `fit` parameters to another."""

from collections.abc import Callable, Mapping
from inspect import isfunction
from types import MethodType
from typing import Any, NamedTuple

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from abstain.errors import InputError
from abstain.typing import AnyArray, Array


class MethodAndParameter:
    """A descriptor for a method and a parameter with the same name.

    scikit-learn calls ``estimator.score(X, y)`` and stores the parameter `score` in an attribute
    with the same name. Reading the attribute returns the method. Setting the attribute stores the
    parameter in the instance dictionary, from which `get_params` reads it.

    Parameters
    ----------
    method : function
        Method whose name is the name of the parameter.
    """

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method
        self._name = method.__name__
        self.__doc__ = method.__doc__

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Return the method, bound to the instance if there is one."""
        return self._method if instance is None else MethodType(self._method, instance)

    def __set__(self, instance: Any, value: Any) -> None:
        """Set the parameter."""
        vars(instance)[self._name] = value


_SWITCH = "`sklearn.set_config(enable_metadata_routing=True)`"


class RoutedParameters(NamedTuple):
    """Parameters of `fit` that are passed to the classifier and to the splitter."""

    estimator: Mapping[str, Any]
    splitter: Mapping[str, Any]


def make_router(owner: Any) -> MetadataRouter:
    """Return the metadata router for the methods `fit` and `score`."""
    to_fit = MethodMapping().add(caller="fit", callee="fit")
    to_split = MethodMapping().add(caller="fit", callee="split")
    router = MetadataRouter(owner=owner).add_self_request(owner)
    router.add(estimator=owner.estimator, method_mapping=to_fit)
    return router.add(splitter=owner.cv, method_mapping=to_split)


def route(owner: Any, params: Mapping[str, Any]) -> RoutedParameters:
    """Return the parameters of `fit` for the classifier and for the splitter.

    If metadata routing is disabled, only `sample_weight` is supported, and only the classifier
    receives it.
    """
    passed = {name: value for name, value in params.items() if value is not None}
    if not passed:
        return RoutedParameters({}, {})
    if get_config()["enable_metadata_routing"]:
        routes = process_routing(owner, "fit", **passed)
        return RoutedParameters(routes.estimator.fit, routes.splitter.split)
    unknown = sorted(set(passed) - {"sample_weight"})
    if unknown:
        raise InputError(
            f"`fit` takes {unknown[0]!r} only with metadata routing: "
            f"{_SWITCH}{_groups_hint(unknown)}"
        )
    if not has_fit_parameter(owner.estimator, "sample_weight"):
        name = type(owner.estimator).__name__
        raise InputError(
            f"{name}.fit takes no `sample_weight`. Drop it; or, if {name} passes it on to another "
            f"estimator, use metadata routing: {_SWITCH}"
        )
    return RoutedParameters(passed, {})


def _groups_hint(names: list[str]) -> str:
    return "; or pass cv=list(splitter.split(X, y, groups))" if names[0] == "groups" else ""


def _delegates(method: str) -> Callable[[Any], bool]:
    def has(self: Any) -> bool:
        # Without the method, this line raises an AttributeError that names the estimator.
        getattr(getattr(self, "estimator_", self.estimator), method)
        return True

    return has


class DelegatingClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A classifier that wraps another classifier and delegates outputs, tags and metadata to it."""

    estimator: Any
    cv: Any

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Wrap the method `score` of a subclass, so that a parameter can have the same name."""
        super().__init_subclass__(**kwargs)
        method = vars(cls).get("score")
        if isfunction(method):
            cls.score = MethodAndParameter(method)  # type: ignore[method-assign]

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: FBT002  scikit-learn's
        """Return the parameters by name, including those of the classifier if `deep` is True."""
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

    @MethodAndParameter
    def score(self, X: Any, y: Any, sample_weight: AnyArray | None = None) -> float:
        """Return the share of samples with a correct answer. Abstentions count as failures.

        The result equals ``accuracy_score(y, self.predict(X))``. Abstentions never increase the
        result. To compare classifiers by how well their confidence detects failures, use the
        scorers of `abstain.integrations.sklearn`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Samples.
        y : array-like of shape (n,)
            True classes.
        sample_weight : array-like of shape (n,), optional
            Sample weights, as in `sklearn.metrics.accuracy_score`.

        Returns
        -------
        float
            Share of samples with a correct answer, in [0, 1]. A higher value is better.
        """
        return float(ClassifierMixin.score(self, X, y, sample_weight=sample_weight))

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the router of metadata to the classifier and the splitter."""
        return make_router(self)

    def __sklearn_tags__(self) -> Any:
        """Return the tags of the classifier, except the support for several labels per sample."""
        from sklearn.utils import get_tags

        tags = super().__sklearn_tags__()
        estimator_tags = get_tags(self.estimator)
        tags.input_tags = estimator_tags.input_tags
        tags.target_tags = estimator_tags.target_tags
        tags.classifier_tags = estimator_tags.classifier_tags
        tags.non_deterministic = estimator_tags.non_deterministic
        tags.target_tags.multi_output = False
        tags.classifier_tags.multi_label = False
        return tags
