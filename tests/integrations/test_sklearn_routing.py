"""Sample weights and groups: where they go, with and without metadata routing."""

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.integrations.sklearn_data import SGR, blobs, coverage

import abstain as ab
from abstain.errors import InputError
from abstain.integrations.sklearn import (
    SelectiveClassifier,
    augrc_scorer,
    coverage_scorer,
    make_selective_scorer,
)

X, Y = blobs()
WEIGHT = np.random.default_rng(0).uniform(0.1, 3, size=len(Y))


@pytest.fixture
def _routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.parametrize("cv", [3, 0.5])
def test_weights_train_the_classifier_and_leave_the_rule_alone(cv):
    rule = SGR if cv == 3 else coverage(0.5)
    classifier = SelectiveClassifier(LogisticRegression(), **rule, cv=cv, random_state=0)
    classifier.fit(X, Y, sample_weight=WEIGHT)
    assert classifier.decision_rule_.n == (len(Y) if cv == 3 else len(Y) / 2)
    if cv == 3:
        plain = LogisticRegression().fit(X, Y, sample_weight=WEIGHT)
        np.testing.assert_array_equal(classifier.estimator_.coef_, plain.coef_)
    # The classifiers of the folds are weighted too, or the rule would be the same.
    ones = SelectiveClassifier(LogisticRegression(), **rule, cv=cv, random_state=0).fit(X, Y)
    assert classifier.decision_rule_ != ones.decision_rule_


def test_prefit_takes_weights_to_nobody():
    fitted = LogisticRegression().fit(X, Y)
    with pytest.raises(InputError, match="prefit"):
        SelectiveClassifier(fitted, **SGR, cv="prefit").fit(X, Y, sample_weight=WEIGHT)


def test_without_routing_only_weights_are_known():
    classifier = SelectiveClassifier(LogisticRegression(), **SGR)
    with pytest.raises(InputError, match=r"metadata routing.*or pass cv=list"):
        classifier.fit(X, Y, groups=WEIGHT)
    with pytest.raises(InputError, match="takes no `sample_weight`"):
        SelectiveClassifier(KNeighborsClassifier()).fit(X, Y, sample_weight=WEIGHT)
    inner = make_pipeline(StandardScaler(), LogisticRegression())
    with pytest.raises(InputError, match="metadata routing"):
        SelectiveClassifier(inner).fit(X, Y, sample_weight=WEIGHT)


@pytest.mark.usefixtures("_routing")
def test_weights_are_routed_through_a_pipeline():
    inner = LogisticRegression().set_fit_request(sample_weight=True)
    scale = StandardScaler().set_fit_request(sample_weight=False)
    classifier = SelectiveClassifier(make_pipeline(scale, inner), **coverage(0.5))
    classifier.fit(X, Y, sample_weight=WEIGHT)
    scaled = StandardScaler().fit_transform(X)
    plain = LogisticRegression().fit(scaled, Y, sample_weight=WEIGHT)
    np.testing.assert_allclose(classifier.estimator_[-1].coef_, plain.coef_, rtol=1e-12)
    with pytest.raises(ValueError, match="not explicitly set as requested"):
        SelectiveClassifier(LogisticRegression()).fit(X, Y, sample_weight=WEIGHT)


@pytest.mark.usefixtures("_routing")
def test_groups_are_routed_to_the_splitter():
    groups = np.arange(len(Y)) // 40
    classifier = SelectiveClassifier(LogisticRegression(), **coverage(0.5), cv=GroupKFold(5))
    grouped = classifier.fit(X, Y, groups=groups).decision_rule_
    splits = list(GroupKFold(5).split(X, Y, groups))
    by_hand = SelectiveClassifier(LogisticRegression(), **coverage(0.5), cv=splits)
    assert by_hand.fit(X, Y).decision_rule_ == grouped


@pytest.mark.usefixtures("_routing")
def test_scorers_ask_for_weights():
    scorer = make_selective_scorer("augrc").set_score_request(sample_weight=True)
    inner = LogisticRegression().set_fit_request(sample_weight=False)
    splits = [(np.arange(200), np.arange(200, 400))]
    result = cross_validate(
        inner, X, Y, scoring=scorer, cv=splits, params={"sample_weight": WEIGHT}
    )["test_score"]
    fitted = LogisticRegression().fit(X[:200], Y[:200])
    confidence = ab.confidence.max_softmax_response(probabilities=fitted.predict_proba(X[200:]))
    loss = fitted.predict(X[200:]) != Y[200:]
    assert result[0] == pytest.approx(-ab.augrc(confidence, loss, weight=WEIGHT[200:]), abs=1e-15)
    with pytest.raises(ValueError, match="not explicitly set as requested"):
        cross_validate(
            inner, X, Y, scoring=make_selective_scorer("aurc"), params={"sample_weight": WEIGHT}
        )


@pytest.mark.usefixtures("_routing")
def test_its_own_score_gets_the_weights_it_requested():
    splits = [(np.arange(200), np.arange(200, 400))]

    def searched(asked):
        inner = LogisticRegression().set_fit_request(sample_weight=False)
        own = SelectiveClassifier(inner, **coverage(0.5)).set_score_request(sample_weight=asked)
        return GridSearchCV(own, {"score": ["msr"]}, cv=splits).fit(X, Y, sample_weight=WEIGHT)

    own = SelectiveClassifier(LogisticRegression(), **coverage(0.5)).fit(X[:200], Y[:200])
    weighted = own.score(X[200:], Y[200:], sample_weight=WEIGHT[200:])
    assert searched(asked=True).best_score_ == weighted
    assert own.score(X[200:], Y[200:]) != weighted
    with pytest.raises(ValueError, match="not explicitly set as requested"):
        searched(asked=None)


@pytest.mark.usefixtures("_routing")
def test_a_search_routes_to_all_of_them():
    inner = LogisticRegression().set_fit_request(sample_weight=True)
    classifier = SelectiveClassifier(inner, **coverage(0.5), cv=2)
    scoring = {
        "augrc": make_selective_scorer("augrc").set_score_request(sample_weight=True),
        "coverage": coverage_scorer,
    }
    classifier.set_score_request(sample_weight=True)
    coverage_scorer.set_score_request(sample_weight=False)
    try:
        search = GridSearchCV(
            classifier, {"score": ["msr", "pe"]}, scoring=scoring, refit="augrc", cv=2
        )
        search.fit(X, Y, sample_weight=WEIGHT)
    finally:
        coverage_scorer.set_score_request(sample_weight=None)
    assert np.isfinite(search.cv_results_["mean_test_augrc"]).all()


def test_weights_by_keyword_without_routing():
    fitted = LogisticRegression().fit(X, Y)
    confidence = ab.confidence.max_softmax_response(probabilities=fitted.predict_proba(X))
    loss = fitted.predict(X) != Y
    expected = -ab.augrc(confidence, loss, weight=WEIGHT)
    assert augrc_scorer(fitted, X, Y, sample_weight=WEIGHT) == pytest.approx(expected, abs=1e-15)
