"""Scorers: equal to the metrics computed by hand, at home in cross-validation and searches."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import get_scorer
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    StratifiedKFold,
    cross_val_score,
    cross_validate,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.integrations.sklearn_data import blobs, coverage, words

import abstain as ab
from abstain.errors import InputError, UndefinedMetricWarning, UnknownNameError
from abstain.integrations import sklearn as own


def by_hand(estimator, X, y, train, test):
    fitted = clone(estimator).fit(X[train], y[train])
    p = fitted.predict_proba(X[test])
    confidence = ab.confidence.max_softmax_response(probabilities=p)
    return confidence, fitted.predict(X[test]) != y[test]


@pytest.mark.parametrize("classes", [2, 3])
def test_cross_validate_gives_the_metrics_by_hand(classes):
    X, y = blobs(classes=classes)
    y = words(y)
    folds = StratifiedKFold(3)
    scoring = {
        "augrc": own.augrc_scorer,
        "aurc": own.aurc_scorer,
        "e_aurc": own.e_aurc_scorer,
        "auroc": own.failure_auroc_scorer,
        "risk": own.make_selective_scorer("selective_risk@80cov"),
        "coverage": own.make_selective_scorer("coverage@7risk"),
        "plain": get_scorer("accuracy"),
        "accuracy": own.make_selective_scorer("accuracy"),
    }
    result = cross_validate(GaussianNB(), X, y, cv=folds, scoring=scoring, error_score="raise")
    for i, (train, test) in enumerate(folds.split(X, y)):
        confidence, loss = by_hand(GaussianNB(), X, y, train, test)
        expected = {
            "augrc": -ab.augrc(confidence, loss),
            "aurc": -ab.aurc(confidence, loss),
            "e_aurc": -ab.e_aurc(confidence, loss),
            "auroc": ab.failure_auroc(confidence, loss),
            "risk": -ab.selective_risk(confidence, loss, coverage=0.8),
            "coverage": ab.coverage_at_risk(confidence, loss, max_risk=0.07),
        }
        for name, value in expected.items():
            assert result[f"test_{name}"][i] == pytest.approx(value, abs=1e-15)
        assert result["test_plain"][i] == pytest.approx(result["test_accuracy"][i], abs=1e-15)


def test_every_metric_that_needs_no_more_than_a_classifier():
    X, y = blobs(classes=2)
    fitted = GaussianNB().fit(X[:200], y[:200])
    X, y = X[200:], y[200:]
    p = fitted.predict_proba(X)
    evaluation = ab.evaluate(
        ab.Predictions(probabilities=p, labels=y), scores=["msr"], interval="none"
    )
    names = [r.metric.name for r in evaluation.results if np.isfinite(r.value)]
    assert len(names) > 30
    for name in names:
        sign = -1 if ab.metric_named(name).lower_is_better else 1
        value = own.make_selective_scorer(name)(fitted, X, y)
        assert value == pytest.approx(sign * evaluation.value(name), abs=1e-15), name


def test_scores_losses_and_responses():
    X, y = blobs(classes=3)
    fitted = LogisticRegression().fit(X, y)
    logits = fitted.decision_function(X)
    loss = fitted.predict(X) != y
    scorer = own.make_selective_scorer("augrc", score="mls")
    assert scorer(fitted, X, y) == -ab.augrc(logits.max(axis=1), loss)
    scorer = own.make_selective_scorer("augrc", response_method="decision_function")
    assert scorer(fitted, X, y) == -ab.augrc(ab.confidence.max_softmax_response(logits), loss)
    scorer = own.make_selective_scorer("augrc", score=lambda e, X: X[:, 0])
    assert scorer(fitted, X, y) == -ab.augrc(X[:, 0], loss)
    costs = ab.CostMatrix([[0, 1, 5], [1, 0, 1], [2, 1, 0]])
    predictions = ab.Predictions(probabilities=fitted.predict_proba(X), labels=y)
    for given in ("brier", costs):
        expected = ab.augrc(
            ab.confidence.score("msr", predictions).values, ab.per_sample_loss(predictions, given)
        )
        value = own.make_selective_scorer("augrc", loss=given)(fitted, X, y)
        assert value == pytest.approx(-expected, abs=1e-15)
    # No class scores at all: a callable confidence is enough.
    nearest = NearestCentroid().fit(X, y)
    value = own.make_selective_scorer("augrc", score=lambda e, X: X[:, 0])(nearest, X, y)
    assert value == -ab.augrc(X[:, 0], nearest.predict(X) != y)


def test_a_selective_classifier_brings_its_own_score():
    X, y = blobs(classes=3)
    for score in ("pe", "gini"):
        named = own.make_selective_scorer("augrc", score=score)
        inside = own.SelectiveClassifier(GaussianNB(), score=score, **coverage(0.5)).fit(X, y)
        expected = named(inside.estimator_, X, y)
        assert own.augrc_scorer(inside, X, y) == expected
        last = make_pipeline(StandardScaler(), clone(inside)).fit(X, y)
        seen = last[:-1].transform(X)
        assert own.augrc_scorer(last, X, y) == named(last[-1].estimator_, seen, y)
        assert own.coverage_scorer(last, X, y) == last[-1].accepts(seen).mean()
    search = GridSearchCV(inside, {"score": ["msr"]}, scoring=own.augrc_scorer).fit(X, y)
    assert own.augrc_scorer(search, X, y) == own.augrc_scorer(search.best_estimator_, X, y)


def test_scorers_at_the_rule():
    X, y = blobs(classes=3)
    inside = own.SelectiveClassifier(GaussianNB(), **coverage(0.7)).fit(X, y)
    prediction, accepted, _ = inside.predict_or_abstain(X)
    wrong = accepted & (prediction != y)
    assert own.coverage_scorer(inside, X, y) == accepted.mean()
    assert own.selective_risk_scorer(inside, X, y) == pytest.approx(-wrong.sum() / accepted.sum())
    assert own.generalized_risk_scorer(inside, X, y) == pytest.approx(-wrong.mean())
    weight = np.arange(1.0, len(y) + 1)
    expected = -weight[wrong].sum() / weight[accepted].sum()
    assert own.selective_risk_scorer(inside, X, y, sample_weight=weight) == pytest.approx(expected)
    nothing = ab.thresholds.DecisionRule("given", 1e9)
    none = own.SelectiveClassifier(GaussianNB(), rule=nothing).fit(X, y)
    assert own.coverage_scorer(none, X, y) == 0
    with pytest.warns(UndefinedMetricWarning, match="selective_risk"):
        assert np.isnan(own.selective_risk_scorer(none, X, y))
    with pytest.raises(InputError, match="requires a SelectiveClassifier"):
        own.coverage_scorer(GaussianNB().fit(X, y), X, y)


@pytest.mark.parametrize("scorer", [own.augrc_scorer, own.selective_risk_scorer])
def test_a_scorer_asks_the_classifier_once(scorer):
    calls = []

    class Asked(GaussianNB):
        def predict_proba(self, X):
            calls.append(len(X))
            return GaussianNB.predict_proba(self, X)

    X, y = blobs()
    inside = own.SelectiveClassifier(Asked(), **coverage(0.7), cv=0.5, random_state=0).fit(X, y)
    calls.clear()
    scorer(inside, X[:77], y[:77])
    assert calls == [77]


def test_grid_search_over_rules_scores_and_the_classifier():
    X, y = blobs(classes=2)
    inside = own.SelectiveClassifier(
        LogisticRegression(), rule="cost", rule_params={"abstention_cost": 0.1}, cv=3
    )
    grid = {
        "rule_params": [{"abstention_cost": c} for c in (0.05, 0.3)],
        "estimator__C": [0.01, 1.0],
        "score": ["msr", "pe"],
    }
    scoring = {"coverage": own.coverage_scorer, "risk": own.generalized_risk_scorer}
    search = GridSearchCV(inside, grid, scoring=scoring, refit="coverage", cv=3)
    search.fit(X, y)
    assert search.best_params_["rule_params"] == {"abstention_cost": 0.3}
    assert len(search.cv_results_["params"]) == 8
    assert np.isfinite(search.cv_results_["mean_test_risk"]).all()
    assert -1 in search.predict(X)
    plain = GridSearchCV(inside, {"estimator__C": [0.1, 1]}, cv=3).fit(X, y)
    assert 0 < plain.best_score_ < 1


def test_missing_classes_are_mistakes():
    X, y = blobs(90, classes=3)
    order = np.argsort(y, kind="stable")
    X, y = X[order], words(y[order])
    result = cross_validate(
        GaussianNB(),
        X,
        y,
        cv=KFold(3),
        scoring={"accuracy": own.make_selective_scorer("accuracy"), "augrc": own.augrc_scorer},
        error_score="raise",
    )
    assert result["test_accuracy"].max() < 0.1
    assert result["test_augrc"].max() < -0.4
    with pytest.raises(InputError, match=r"`y` must hold classes of GaussianNB .*; got 0 at index"):
        own.augrc_scorer(GaussianNB().fit(X, y), X, np.arange(90))


def test_what_is_undefined_is_nan_with_a_warning():
    X, y = blobs(100)
    fitted = GaussianNB().fit(X, y)
    y = fitted.predict(X)
    with pytest.warns(UndefinedMetricWarning, match="failure_auroc is undefined: there are no"):
        assert np.isnan(own.failure_auroc_scorer(fitted, X, y))


def test_errors_follow_error_score():
    X, y = blobs(100)
    scorer = own.make_selective_scorer("augrc", score="mls")
    with pytest.raises(InputError, match="needs decision_function"):
        cross_validate(GaussianNB(), X, y, scoring=scorer, error_score="raise")
    with pytest.warns(UserWarning, match="Scoring failed"):
        scores = cross_val_score(GaussianNB(), X, y, scoring=scorer, error_score=-7)
    assert set(scores) == {-7}
    with pytest.raises(UnknownNameError, match="augrc"):
        own.make_selective_scorer("augcr")
    with pytest.raises(UnknownNameError, match="msr"):
        own.make_selective_scorer("augrc", score="mrs")
    ece = own.make_selective_scorer("ece", score="pe")
    with pytest.raises(InputError, match=r"needs a confidence in \[0, 1\]"):
        ece(GaussianNB().fit(X, y), X, y)


def test_scorers_are_named_and_travel():
    assert repr(own.augrc_scorer) == "make_selective_scorer('augrc')"
    assert repr(own.coverage_scorer) == "coverage_scorer"
    X, y = blobs()
    fitted = RidgeClassifier().fit(X, y)
    for scorer in (own.augrc_scorer, own.make_selective_scorer("aurc", score="pe")):
        assert pickle.loads(pickle.dumps(scorer))(fitted, X, y) == scorer(fitted, X, y)


def test_a_scorer_of_no_known_quantity_raises_an_error():
    with pytest.raises(InputError, match=r"`quantity` must be one of 'coverage'.*'nonsense'"):
        own.RuleScorer("nonsense")
