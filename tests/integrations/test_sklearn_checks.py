"""scikit-learn's own checks of estimators, with and without abstentions."""

import pytest
import sklearn
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.integrations.sklearn_data import coverage

from abstain.integrations.sklearn import SelectiveClassifier

VERSION = tuple(int(part) for part in sklearn.__version__.split(".")[:2])
pytestmark = [
    # Before 1.6 scikit-learn asks for tags in a way of its own.
    pytest.mark.skipif(VERSION < (1, 6), reason="the checks of scikit-learn 1.6 and later"),
    # One check casts NaN to an integer inside scikit-learn.
    pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning"),
    pytest.mark.filterwarnings(
        "ignore:No threshold attains:abstain.errors.UnattainableRuleWarning"
    ),
]

CONFIGURATIONS = [
    # Everything is answered.
    SelectiveClassifier(LogisticRegression()),
    SelectiveClassifier(RidgeClassifier(), score="mls"),
    SelectiveClassifier(DecisionTreeClassifier(random_state=0)),
    SelectiveClassifier(RandomForestClassifier(3, random_state=0)),
    SelectiveClassifier(make_pipeline(StandardScaler(), LogisticRegression())),
    # A rule is set, and nothing or something is rejected.
    SelectiveClassifier(LogisticRegression(), **coverage(1.0), cv=2),
    SelectiveClassifier(LogisticRegression(), **coverage(0.9), cv=2),
    SelectiveClassifier(RidgeClassifier(), score="mls", **coverage(0.9), cv=0.5, random_state=0),
    # A threshold for each predicted class.
    SelectiveClassifier(LogisticRegression(), **coverage(1.0), cv=2, per="prediction"),
    SelectiveClassifier(
        LogisticRegression(), rule="sgr", rule_params={"max_risk": 0.2, "delta": 0.1}, cv=2
    ),
]

_ARGMAX = "a rejected sample has the abstain label, which is not the class of the largest score"
_EVERY = "expects every class among the predictions of ten samples; the rule rejects some of them"
_FEW = "no rule can promise a risk on ten samples, so all are rejected"


def cannot_apply(estimator):
    """Checks that need a class for every sample; none where everything is answered."""
    if estimator.rule == "sgr":
        return {"check_classifiers_one_label_sample_weights": _FEW}
    if estimator.rule is None or (
        estimator.rule_params == {"coverage": 1.0} and estimator.per is None
    ):
        return {}
    out = {"check_classifiers_train": _ARGMAX}
    return out | ({"check_classifiers_classes": _EVERY} if estimator.cv == 0.5 else {})


if VERSION >= (1, 6):

    @parametrize_with_checks(CONFIGURATIONS, expected_failed_checks=cannot_apply)
    def test_scikit_learn_checks(estimator, check):
        check(estimator)
