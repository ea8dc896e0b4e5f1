"""A threshold for each group in scikit-learn: predicted classes, columns, functions of X."""

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from tests.integrations.sklearn_data import blobs, words

import abstain as ab
from abstain.errors import InputError, ShapeError, UnattainableRuleWarning
from abstain.integrations.sklearn import SelectiveClassifier, coverage_scorer
from abstain.thresholds import DecisionRule, fit_groups

X, CODES = blobs(3000, classes=3)
Y = words(CODES)
SITE = np.random.default_rng(0).choice(["north", "south", "tiny"], 3000, p=[0.6, 0.398, 0.002])
OPTIONS = {"max_risk": 0.3, "delta": 0.1}
GROUPED = {"rule": "sgr", "rule_params": OPTIONS, "cv": "prefit"}
FIT, NEW = slice(0, 2000), slice(2000, 3000)


def trained():
    return LogisticRegression().fit(X[:1000], Y[:1000])


def test_predicted_classes_have_thresholds_of_their_own():
    inside = trained()
    classifier = SelectiveClassifier(inside, **GROUPED, per="prediction", joint=True)
    classifier.fit(X[1000:2000], Y[1000:2000])
    rule, said = classifier.decision_rule_, inside.predict(X[1000:2000])
    assert isinstance(rule, DecisionRule)
    assert rule.parts
    values = classifier.confidence(X[1000:2000])
    wrong = said != Y[1000:2000]
    arrays = fit_groups("sgr", values, wrong, said, per="prediction", joint=True, **OPTIONS)
    assert rule == arrays.for_score("msr", scale="log-odds")
    prediction, accepted, confidence = classifier.predict_or_abstain(X[NEW])
    expected = [c >= rule.part(p).threshold for c, p in zip(confidence, prediction, strict=True)]
    assert accepted.tolist() == expected
    assert (classifier.accepts(X[NEW]) == accepted).all()
    assert ((classifier.predict(X[NEW]) == "abstain") == ~accepted).all()


def test_columns_of_frames_and_functions():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({**{f"x{i}": X[:, i] for i in range(6)}, "site": SITE})
    numbers = [f"x{i}" for i in range(6)]
    inside = make_pipeline(make_column_transformer(("passthrough", numbers)), LogisticRegression())
    options = {"rule": "sgr", "rule_params": OPTIONS, "cv": 3}
    with pytest.warns(UnattainableRuleWarning, match="of these groups are rejected: tiny"):
        by_name = SelectiveClassifier(inside, **options, per="site").fit(frame[FIT], Y[FIT])
    assert by_name.decision_rule_.names == ("north", "south", "tiny")
    assert by_name.decision_rule_.per == "site"
    assert by_name.decision_rule_.n == 2000
    by_call = SelectiveClassifier(inside, **options, per=lambda X: X["site"])
    with pytest.warns(UnattainableRuleWarning):
        by_call.fit(frame[FIT], Y[FIT])
    assert by_call.decision_rule_.parts == by_name.decision_rule_.parts
    accepted = by_name.accepts(frame[NEW])
    assert accepted.any()
    assert not accepted[SITE[NEW] == "tiny"].any()
    # A group that was never held out is not answered.
    moved = frame[NEW].assign(site="east")
    assert not by_name.accepts(moved).any()
    # By place, of a plain array.
    coded = np.c_[X, SITE == "north"]
    by_place = SelectiveClassifier(LogisticRegression(), **options, per=6)
    by_place.fit(coded[FIT], Y[FIT])
    assert by_place.decision_rule_.names == ("0", "1")
    assert by_place.accepts(coded[NEW]).any()


def test_a_finished_set_of_rules():
    inside = trained()
    first = SelectiveClassifier(inside, **GROUPED, per="prediction")
    rule = first.fit(X[1000:2000], Y[1000:2000]).decision_rule_
    own = SelectiveClassifier(inside, rule=rule, cv="prefit").fit(X[FIT], Y[FIT])
    assert (own.accepts(X[NEW]) == first.accepts(X[NEW])).all()
    one = rule.part("cat")
    sites = DecisionRule.from_parts(
        "site", (*(type(rule.parts[0])(name, one) for name in ("0.0", "1.0")),)
    )
    coded = np.c_[X, SITE == "north"]
    with pytest.raises(InputError, match="threshold for each 'site'"):
        SelectiveClassifier(inside, rule=sites, cv="prefit").fit(coded, Y)


def test_a_finished_rule_with_limits_in_each_group():
    frame = np.c_[X, np.where(SITE == "north", 1, 0)]
    inside = LogisticRegression().fit(frame[:1000], Y[:1000])
    site = frame[:, -1].astype(int).astype(str)
    held_out = slice(1000, 2000)
    data = ab.Predictions(
        probabilities=inside.predict_proba(frame[held_out]),
        labels=Y[held_out],
        classes=inside.classes_,
    )
    options = {"max_risk": 0.2, "limits": {"label:cat": 0.3}, "delta": 0.1}
    rule = ab.set_threshold(data, per=site[held_out], **options)
    assert all(part.rule.attainable and len(part.rule.parts) == 2 for part in rule.parts)
    classifier = SelectiveClassifier(inside, rule=rule, cv="prefit", per=-1)
    classifier.fit(frame[held_out], Y[held_out])
    accepted = classifier.accepts(frame[NEW])
    new = ab.Predictions(
        probabilities=inside.predict_proba(frame[NEW]), labels=Y[NEW], classes=inside.classes_
    )
    assert (accepted == rule.apply(new, group=site[NEW])).all()
    assert 0 < accepted.sum() < accepted.size
    assert set(classifier.answer_conditions_) == {"0", "1"}


def test_it_is_searched_and_cloned():
    search = GridSearchCV(
        SelectiveClassifier(LogisticRegression(), rule="coverage", cv=2, per="prediction"),
        {"rule_params": [{"coverage": c} for c in (0.5, 0.9)], "per": [None, "prediction"]},
        scoring=coverage_scorer,
        cv=2,
    )
    search.fit(X, Y)
    assert search.best_params_["rule_params"] == {"coverage": 0.9}


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"per": 0.5}, InputError, "`per` must be None"),
        ({"per": True}, InputError, "`per` must be None"),
        ({"per": "site"}, InputError, "a column of X"),
        ({"per": lambda X: X[:5, 0]}, ShapeError, "one group for each"),
        ({"joint": True}, InputError, "`joint`"),
        ({"per": "prediction", "rule": None, "rule_params": None}, InputError, "`per` requires"),
    ],
)
def test_refusals(options, error, said):
    classifier = SelectiveClassifier(LogisticRegression(), **{**GROUPED, "cv": 2, **options})
    with pytest.raises(error, match=said):
        classifier.fit(X[FIT], Y[FIT])
