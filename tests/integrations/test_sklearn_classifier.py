"""SelectiveClassifier: what it predicts, what its rule rests on, and what it refuses."""

import functools
import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse, special
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.metrics import accuracy_score
from sklearn.model_selection import (
    FixedThresholdClassifier,
    KFold,
    RepeatedKFold,
    StratifiedKFold,
    cross_val_predict,
    train_test_split,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from tests.integrations.sklearn_data import SGR, blobs, coverage, words

from abstain import Predictions, calibrate, confidence, set_threshold, thresholds
from abstain.errors import AbstainError, InputError, MissingInputError, UnattainableRuleWarning
from abstain.integrations.sklearn import SelectiveClassifier, SelectivePrediction


def test_without_a_rule_it_is_the_classifier():
    X, y = blobs()
    plain = LogisticRegression().fit(X, y)
    own = SelectiveClassifier(LogisticRegression()).fit(X, y)
    np.testing.assert_array_equal(own.predict(X), plain.predict(X))
    np.testing.assert_array_equal(own.predict_proba(X), plain.predict_proba(X))
    assert own.decision_rule_ is None
    assert own.accepts(X).all()
    assert own.score(X, y) == plain.score(X, y)


@pytest.mark.parametrize("classes", [2, 3])
def test_it_abstains_below_the_threshold_of_its_score(classes):
    X, y = blobs(classes=classes)
    own = SelectiveClassifier(LogisticRegression(), **coverage(0.7), cv=3).fit(X, y)
    p = own.predict_proba(X)
    expected = confidence.max_softmax_response(probabilities=p)
    prediction, accepted, given = own.predict_or_abstain(X)
    np.testing.assert_array_equal(given, expected)
    np.testing.assert_array_equal(own.confidence(X), expected)
    np.testing.assert_array_equal(accepted, expected >= own.decision_rule_.threshold)
    np.testing.assert_array_equal(accepted, own.accepts(X))
    np.testing.assert_array_equal(prediction, p.argmax(axis=1))
    np.testing.assert_array_equal(own.predict(X), np.where(accepted, prediction, -1))
    assert own.predict_or_abstain(X).coverage == accepted.mean()
    assert isinstance(own.predict_or_abstain(X), SelectivePrediction)
    assert 0 < accepted.mean() < 1


def test_folds_hold_out_every_sample_once_and_the_model_in_use_sees_all():
    X, y = blobs(classes=3)
    own = SelectiveClassifier(LogisticRegression(), **SGR, cv=4).fit(X, y)
    p = cross_val_predict(LogisticRegression(), X, y, cv=4, method="predict_proba")
    expected = thresholds.sgr(
        confidence.max_softmax_response(probabilities=p),
        p.argmax(axis=1) != y,
        max_risk=0.2,
        delta=0.1,
    )
    # The folds come one after the other, which no rule notices.
    assert own.decision_rule_ == expected.for_score("msr", scale="log-odds")
    np.testing.assert_array_equal(own.estimator_.coef_, LogisticRegression().fit(X, y).coef_)


def test_a_share_is_held_out_from_the_model_in_use():
    X, y = blobs()
    own = SelectiveClassifier(LogisticRegression(), **SGR, cv=0.25, random_state=3).fit(X, y)
    assert own.decision_rule_.n == 100
    again = clone(own).fit(X, y)
    assert again.decision_rule_ == own.decision_rule_
    other = clone(own).set_params(random_state=4).fit(X, y)
    assert other.decision_rule_ != own.decision_rule_
    assert not np.array_equal(own.estimator_.coef_, LogisticRegression().fit(X, y).coef_)


def test_prefit_only_sets_the_rule():
    X, y = blobs()
    fitted = LogisticRegression().fit(X[:200], y[:200])
    own = SelectiveClassifier(fitted, **SGR, cv="prefit").fit(X[200:], y[200:])
    assert own.estimator_ is fitted
    loss = fitted.predict(X[200:]) != y[200:]
    values = confidence.max_softmax_response(probabilities=fitted.predict_proba(X[200:]))
    expected = thresholds.sgr(values, loss, max_risk=0.2, delta=0.1)
    assert own.decision_rule_ == expected.for_score("msr", scale="log-odds")


def test_a_frozen_classifier_keeps_its_fit():
    FrozenEstimator = pytest.importorskip("sklearn.frozen").FrozenEstimator
    X, y = blobs()
    fitted = LogisticRegression().fit(X[:200], y[:200])
    prefit = SelectiveClassifier(fitted, **SGR, cv="prefit").fit(X[200:], y[200:])
    frozen = SelectiveClassifier(FrozenEstimator(fitted), **SGR).fit(X[200:], y[200:])
    assert frozen.decision_rule_ == prefit.decision_rule_


def test_the_guarantee_holds_where_it_is_exact():
    # A logistic world: the true risk of the samples accepted is known without labels.
    rng = np.random.default_rng(7)

    def world(n):
        x = rng.normal(scale=2, size=(n, 1))
        return x, (rng.random(n) < special.expit(x[:, 0])).astype(int)

    fitted = LogisticRegression().fit(*world(500))
    x, _ = world(50_000)
    wrong = special.expit(np.where(fitted.predict(x) == 1, -1, 1) * x[:, 0])
    assert wrong.mean() > 0.19
    rule = {"rule": "sgr", "rule_params": {"max_risk": 0.15, "delta": 0.1}}
    classifier = SelectiveClassifier(fitted, **rule, cv="prefit")
    broken, result = 0, 0
    for _ in range(200):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnattainableRuleWarning)
            accepted = classifier.fit(*world(400)).accepts(x)
        result += accepted.any()
        broken += accepted.any() and wrong[accepted].mean() > 0.15
    assert result > 150
    # 20 are allowed; 3 standard errors of chance are 13.
    assert broken <= 20 + 13


@pytest.mark.parametrize("name", ["msr", "pe", "margin", "gini"])
def test_scores_of_probabilities(name):
    X, y = blobs(classes=3)
    own = SelectiveClassifier(GaussianNB(), score=name, **coverage(0.8)).fit(X, y)
    state = confidence.SCORES[name]
    expected = state.compute(Predictions(probabilities=own.predict_proba(X), labels=y))
    np.testing.assert_array_equal(own.confidence(X), expected)
    assert own.decision_rule_.score == name


def test_scores_of_logits_read_the_decision_function():
    X, y = blobs(classes=3)
    own = SelectiveClassifier(LogisticRegression(), score="mls").fit(X, y)
    np.testing.assert_array_equal(own.confidence(X), own.decision_function(X).max(axis=1))
    energy = SelectiveClassifier(LogisticRegression(), score="energy").fit(X, y)
    expected = confidence.negative_energy(energy.decision_function(X))
    np.testing.assert_allclose(energy.confidence(X), expected, rtol=1e-12)


def test_one_number_for_two_classes_prefers_neither():
    X, y = blobs()
    d = RidgeClassifier().fit(X, y).decision_function(X)
    for name, expected in (("msr", np.abs(d)), ("mls", np.abs(d) / 2)):
        own = SelectiveClassifier(RidgeClassifier(), score=name).fit(X, y)
        np.testing.assert_allclose(own.confidence(X), expected, rtol=1e-9, atol=1e-12)


def test_a_callable_score_gets_the_classifier_and_the_samples():
    X, y = blobs()

    def norm(estimator, X):
        assert hasattr(estimator, "coef_")
        return -np.linalg.norm(X, axis=1)

    own = SelectiveClassifier(LogisticRegression(), score=norm, **coverage(0.5)).fit(X, y)
    np.testing.assert_array_equal(own.confidence(X), -np.linalg.norm(X, axis=1))
    assert own.decision_rule_.score == "norm"


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_a_fitted_score_of_features_gets_the_rows(kind):
    X, y = blobs(classes=3, n_redundant=0)
    plain = LogisticRegression().fit(X, y)
    train = Predictions(probabilities=plain.predict_proba(X), labels=y, features=X)
    for name in ("mahalanobis", "knn"):
        state = confidence.fit(name, train)
        classifier = SelectiveClassifier(LogisticRegression(), score=state, **coverage(0.5))
        classifier.fit(kind(X), y)
        np.testing.assert_allclose(
            classifier.confidence(kind(X)), state.score(train).values, rtol=1e-9
        )
        assert classifier.decision_rule_.score == name
        assert clone(classifier).get_params()["score"].name == name


def test_a_fitted_score_of_logits_reads_the_decision_function():
    X, y = blobs(classes=3)
    logits = LogisticRegression().fit(X, y).decision_function(X)
    state = confidence.fit("rank", Predictions(logits=logits, labels=y), score="mls")
    own = SelectiveClassifier(LogisticRegression(), score=state, **coverage(0.5)).fit(X, y)
    expected = state.score(Predictions(logits=logits, labels=y)).values
    np.testing.assert_allclose(own.confidence(X), expected, atol=1e-12)
    with pytest.raises(MissingInputError, match="needs logits"):
        SelectiveClassifier(GaussianNB(), score=state, **coverage(0.5)).fit(X, y)


def test_a_calibrated_score_lets_chow_read_any_score():
    X, y = blobs(1200, classes=3)
    fitted = LogisticRegression().fit(X[:400], y[:400])
    held_out = Predictions(probabilities=fitted.predict_proba(X[400:800]), labels=y[400:800])
    state = calibrate("pe", held_out)
    rule = {"rule": "chow", "rule_params": {"abstention_cost": 0.3}}
    own = SelectiveClassifier(fitted, score=state, **rule, cv="prefit").fit(X[:400], y[:400])
    said = Predictions(probabilities=fitted.predict_proba(X[800:]), labels=y[800:])
    expected = state.score(said).probability
    np.testing.assert_allclose(own.confidence(X[800:]), expected, rtol=1e-12)
    np.testing.assert_array_equal(own.accepts(X[800:]), expected >= 0.7)


def test_predictions_equal_those_of_predict_not_the_argmax():
    X, y = blobs()
    inner = FixedThresholdClassifier(LogisticRegression(), threshold=0.9)
    own = SelectiveClassifier(inner, **coverage(0.8), cv=0.5, random_state=0).fit(X, y)
    given = own.predict_or_abstain(X).prediction
    np.testing.assert_array_equal(given, own.estimator_.predict(X))
    assert (given != own.predict_proba(X).argmax(axis=1)).any()


@pytest.mark.parametrize("abstention_cost", [0.1, 0.3])
def test_chow_compares_probabilities(abstention_cost):
    X, y = blobs()
    rule = {"rule": "chow", "rule_params": {"abstention_cost": abstention_cost}}
    own = SelectiveClassifier(LogisticRegression(), **rule).fit(X, y)
    top = own.predict_proba(X).max(axis=1)
    np.testing.assert_allclose(own.confidence(X), top, rtol=1e-12)
    np.testing.assert_array_equal(own.accepts(X), top >= 1 - abstention_cost)
    with pytest.raises(InputError, match="requires probabilities of a correct prediction"):
        SelectiveClassifier(LogisticRegression(), score="mls", **rule).fit(X, y).predict(X)


def test_rules_of_every_kind():
    X, y = blobs()
    named = SelectiveClassifier(LogisticRegression(), **SGR).fit(X, y).decision_rule_
    made = functools.partial(thresholds.sgr, max_risk=0.2, delta=0.1)
    assert SelectiveClassifier(LogisticRegression(), rule=made).fit(X, y).decision_rule_ == named
    options = {"max_risk": 0.2, "delta": 0.1}
    with_options = SelectiveClassifier(
        LogisticRegression(), rule=thresholds.sgr, rule_params=options
    )
    assert with_options.fit(X, y).decision_rule_ == named
    finished = SelectiveClassifier(LogisticRegression(), rule=named).fit(X, y)
    assert finished.decision_rule_ == named
    assert finished.accepts(X).tolist() == (finished.confidence(X) >= named.threshold).tolist()


@pytest.mark.parametrize("method", list(thresholds.RULES))
def test_every_method_of_the_catalogue(method):
    X, y = blobs(1000, flip_y=0.05)
    known = {
        "coverage": 0.5, "max_risk": 0.2, "delta": 0.1, "abstention_cost": 0.2,
    }  # fmt: skip
    options = {name: known[name] for name in thresholds.RULES[method].required}
    classifier = SelectiveClassifier(LogisticRegression(), rule=method, rule_params=options, cv=3)
    assert classifier.fit(X, y).decision_rule_.method == method
    assert classifier.accepts(X).any()


def test_an_unattainable_rule_warns_once_and_rejects_all():
    X, y = blobs(flip_y=0.5)
    rule = {"rule": "sgr", "rule_params": {"max_risk": 0.001, "delta": 0.01}}
    classifier = SelectiveClassifier(LogisticRegression(), **rule)
    with pytest.warns(UnattainableRuleWarning, match="every sample is rejected") as caught:
        classifier.fit(X, y)
    said = [warning for warning in caught if "rejected" in str(warning.message)]
    assert [warning.filename for warning in said] == [__file__]
    assert set(classifier.predict(X)) == {-1}
    assert classifier.score(X, y) == 0


def test_the_score_counts_abstentions_as_mistakes():
    X, y = blobs()
    own = SelectiveClassifier(LogisticRegression(), **coverage(0.6)).fit(X, y)
    prediction, accepted, _ = own.predict_or_abstain(X)
    weight = np.arange(len(y))
    assert own.score(X, y) == (accepted & (prediction == y)).mean()
    expected = accuracy_score(y, own.predict(X), sample_weight=weight)
    assert own.score(X, y, sample_weight=weight) == expected


def test_score_is_a_parameter_and_a_method():
    classifier = SelectiveClassifier(LogisticRegression(C=3), score="pe")
    assert classifier.get_params()["score"] == "pe"
    assert classifier.get_params()["estimator__C"] == 3
    assert clone(classifier).get_params()["score"] == "pe"
    classifier.set_params(score="gini", estimator__C=2)
    assert classifier.get_params(deep=False)["score"] == "gini"
    classifier.score = "margin"
    assert classifier.get_params()["score"] == "margin"
    assert "score='margin'" in repr(classifier)
    X, y = blobs()
    assert 0.5 < classifier.fit(X, y).score(X, y) <= 1


def test_a_subclass_may_have_a_score_of_its_own():
    class Halved(SelectiveClassifier):
        def score(self, X, y, sample_weight=None):
            return super().score(X, y, sample_weight) / 2

    X, y = blobs()
    plain = SelectiveClassifier(LogisticRegression(), score="pe").fit(X, y)
    halved = clone(Halved(LogisticRegression(), score="pe")).fit(X, y)
    assert halved.get_params()["score"] == "pe"
    assert halved.score(X, y) == plain.score(X, y) / 2


def test_pickle_and_clone():
    X, y = blobs()
    own = SelectiveClassifier(LogisticRegression(), score="pe", **SGR).fit(X, y)
    back = pickle.loads(pickle.dumps(own))
    np.testing.assert_array_equal(back.predict(X), own.predict(X))
    assert back.decision_rule_ == own.decision_rule_
    with pytest.raises(NotFittedError):
        clone(own).predict(X)


def test_a_class_that_a_fold_lacks_is_a_mistake_there():
    X, y = blobs(90, classes=3)
    order = np.argsort(y, kind="stable")
    own = SelectiveClassifier(GaussianNB(), **coverage(1.0), cv=KFold(3)).fit(X[order], y[order])
    assert own.decision_rule_.n == 90
    risk = SelectiveClassifier(
        GaussianNB(), rule="risk", rule_params={"max_risk": 1.0}, cv=KFold(3)
    ).fit(X[order], y[order])
    # Each fold holds out a whole class but for a few samples.
    assert risk.decision_rule_.risk > 0.9


def test_a_class_unknown_to_a_fitted_classifier_is_a_mistake():
    X, y = blobs(300, classes=3)
    fitted = LogisticRegression().fit(X[y < 2], y[y < 2])
    rule = {"rule": "risk", "rule_params": {"max_risk": 1.0}}
    own = SelectiveClassifier(fitted, **rule, cv="prefit").fit(X, y)
    assert own.decision_rule_.failures == (fitted.predict(X) != y).sum()
    with pytest.raises(InputError, match="no known class"):
        SelectiveClassifier(fitted, **rule, cv="prefit").fit(X, words(y))


def test_one_class_alone():
    X, _ = blobs(40)
    own = SelectiveClassifier(DecisionTreeClassifier(), **coverage(0.5)).fit(X, np.zeros(40, int))
    assert set(own.predict(X)) == {0}


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"score": "mrs"}, "Did you mean 'msr'"),
        ({"score": 3}, "`score` must be"),
        ({"score": "knn"}, "must be fitted first, on samples that are not used to choose the rule"),
        ({"score": "mcd_msr", **coverage(0.5)}, "needs Monte-Carlo samples"),
        ({"rule": "srg"}, "Did you mean 'sgr'"),
        ({"rule": "sgr"}, "'max_risk' is missing"),
        ({"rule": "sgr", "rule_params": {"max_risk": 0.1, "delta": 0.1, "x": 1}}, "option 'x'"),
        ({"rule": "coverage", "rule_params": 0.5}, "`rule_params` must map"),
        ({"rule_params": {"coverage": 0.5}}, "`rule` is None; pass the name"),
        ({"rule": thresholds.DecisionRule("given", 0.5), "rule_params": {"x": 1}}, "`rule` is a DecisionRule"),
        ({"rule": thresholds.DecisionRule("given", 0.5, score="pe")}, "no common scale"),
        ({"rule": lambda confidence, loss: 0.5}, "must return a DecisionRule"),
        ({"rule": 0.5}, "`rule` must be"),
        ({"cv": "prefitted"}, "`cv` must be"),
        ({"cv": 1.5, **coverage(0.5)}, "strictly between 0 and 1"),
        ({"cv": RepeatedKFold(n_splits=2, n_repeats=2), **coverage(0.5)}, "at most once"),
        ({"response_method": "predict"}, "`response_method` must be one of"),
        ({"score": lambda e, X: np.ones(3), **coverage(0.5)}, "one confidence for each"),
        ({"score": lambda e, X: np.full(len(X), np.nan), **coverage(0.5)}, "must be finite"),
    ],
)  # fmt: skip
def test_refusals(options, match):
    X, y = blobs(60)
    with pytest.raises(AbstainError, match=match):
        SelectiveClassifier(LogisticRegression(), **options).fit(X, y)


def test_what_a_classifier_lacks_is_said():
    X, y = blobs(60)
    with pytest.raises(MissingInputError, match="needs decision_function, which GaussianNB"):
        SelectiveClassifier(GaussianNB(), score="mls", **coverage(0.5)).fit(X, y)
    own = SelectiveClassifier(RidgeClassifier()).fit(X, y)
    assert not hasattr(own, "predict_proba")
    with pytest.raises(AttributeError, match="no attribute 'predict_proba'"):
        own.predict_proba(X)
    Xm, ym = blobs(200, classes=4)
    pairs = SVC(decision_function_shape="ovo")
    with pytest.raises(InputError, match="decision_function_shape='ovr'"):
        SelectiveClassifier(pairs, **coverage(0.5)).fit(Xm, ym)
    with pytest.raises(NotFittedError):
        SelectiveClassifier(LogisticRegression(), cv="prefit").fit(X, y)
    with pytest.raises(InputError, match=r"must be a classifier.*; got LinearRegression"):
        SelectiveClassifier(LinearRegression(), score=lambda e, X: X[:, 0]).fit(X, y)
    with pytest.raises(InputError, match="requires y"):
        SelectiveClassifier(LogisticRegression()).fit(X, None)


def test_in_and_around_a_pipeline():
    X, y = blobs()
    rule = coverage(0.8)
    inside = SelectiveClassifier(make_pipeline(StandardScaler(), LogisticRegression()), **rule)
    inside.fit(X, y)
    last = make_pipeline(StandardScaler(), SelectiveClassifier(LogisticRegression(), **rule))
    last.fit(X, y)
    assert inside.n_features_in_ == 6
    assert -1 in inside.predict(X)
    assert -1 in last.predict(X)
    seen = last[:-1].transform(X)
    np.testing.assert_array_equal(last.predict(X), last[-1].predict(seen))


def test_splits_and_splitters():
    X, y = blobs()
    splitter = StratifiedKFold(3, shuffle=True, random_state=0)
    by_splitter = SelectiveClassifier(LogisticRegression(), **SGR, cv=splitter).fit(X, y)
    by_splits = SelectiveClassifier(LogisticRegression(), **SGR, cv=list(splitter.split(X, y)))
    assert by_splits.fit(X, y).decision_rule_ == by_splitter.decision_rule_
    train, test = train_test_split(np.arange(len(y)), random_state=0)
    one = SelectiveClassifier(LogisticRegression(), **coverage(0.8), cv=[(train, test)]).fit(X, y)
    assert one.decision_rule_.n == len(test)
    parallel = SelectiveClassifier(LogisticRegression(), **SGR, cv=splitter, n_jobs=1).fit(X, y)
    assert parallel.decision_rule_ == by_splitter.decision_rule_


def test_a_finished_rule_is_compared_on_its_own_scale():
    X, y = blobs(classes=3)
    fitted = LogisticRegression().fit(X, y)
    said = Predictions(probabilities=fitted.predict_proba(X), labels=y)
    sure = fitted.predict_proba(X).max(axis=1)
    odds = set_threshold(said, method="chow", abstention_cost=0.1)
    chance = thresholds.chow(abstention_cost=0.1)
    assert (odds.scale, chance.scale) == ("log-odds", "probability")
    for rule in (odds, chance, thresholds.DecisionRule("given", 0.9, scale="probability")):
        own = SelectiveClassifier(fitted, rule=rule, cv="prefit").fit(X, y)
        assert 0 < own.accepts(X).sum() < len(y)
        np.testing.assert_array_equal(own.accepts(X), sure >= 0.9)
        answers = own.predict_or_abstain(X)
        np.testing.assert_array_equal(answers.accepted, own.accepts(X))
        np.testing.assert_array_equal(
            answers.confidence >= own.decision_rule_.threshold, sure >= 0.9
        )
