"""A rule says what its threshold is measured in, and is not applied to something else."""

import json

import numpy as np
import pytest
from scipy.special import expit, logit, softmax

import abstain as ab
from abstain.confidence import ConfidenceScore, score
from abstain.errors import DomainError, InputError, MissingInputError, UnknownNameError
from abstain.thresholds import DecisionRule, check, check_many, fit

ODDS = DecisionRule("given", 2.0, score="msr", scale="log-odds")
CHANCE = DecisionRule("given", 0.9, score="sure", scale="probability")


def model(seed: int = 0, n: int = 3000, k: int = 4) -> ab.Predictions:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, k, n)
    return ab.Predictions(logits=3 * np.eye(k)[labels] + 2 * rng.normal(size=(n, k)), labels=labels)


def test_a_rule_in_log_odds_is_not_applied_to_probabilities():
    p = model()
    rule = ab.set_threshold(p, score="msr", max_risk=0.1, delta=0.05)
    assert rule.scale == "log-odds"
    sure = softmax(p.logits, axis=1).max(axis=1)
    mask = score("msr", p).values >= rule.threshold
    assert 0.2 < mask.mean() < 0.95
    # Taken for log-odds they would all be on one side: below 1.
    with pytest.raises(InputError, match=r"all lie in \[0, 1\].*log-odds; a probability of"):
        rule.apply(sure)
    np.testing.assert_array_equal(rule.apply(sure, scale="probability"), mask)
    with pytest.raises(InputError, match="all lie"):
        check(rule, sure, ~p.correct)
    assert check(rule, sure, ~p.correct, scale="probability").accepted == mask.sum()
    with pytest.raises(InputError, match="all lie"):
        check_many(rule, {"a": (sure, ~p.correct)})
    (one,) = check_many(rule, {"a": (sure, ~p.correct)}, scale="probability")
    assert one.accepted == mask.sum()


def test_predictions_logits_and_probabilities_are_decided_on_the_scale_of_the_rule():
    p = model()
    rule = ab.set_threshold(p, score="msr", method="coverage", coverage=0.5)
    expected = score("msr", p).values >= rule.threshold
    assert (score("msr", p).values == rule.threshold).any()
    np.testing.assert_array_equal(rule.apply(p), expected)
    np.testing.assert_array_equal(rule.apply(score("msr", p)), expected)
    np.testing.assert_array_equal(rule.apply(logits=p.logits), expected)
    soft = ab.Predictions(probabilities=softmax(p.logits, axis=1), labels=p.labels)
    rule = ab.set_threshold(soft, score="msr", method="coverage", coverage=0.5)
    expected = score("msr", soft).values >= rule.threshold
    np.testing.assert_array_equal(rule.apply(probabilities=soft.probabilities), expected)
    torch = pytest.importorskip("torch")
    result = rule.apply(probabilities=torch.tensor(soft.probabilities))
    assert isinstance(result, torch.Tensor)
    np.testing.assert_array_equal(result.numpy(), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_decision_flips_at_the_threshold_between_scales(dtype):
    # Each sample in turn is the threshold: what it accepts does not depend on the way there.
    p = model(1, n=60, k=3)
    values = score("msr", p).values
    sure = softmax(p.logits.astype(dtype), axis=1).max(axis=1)
    assert sure.dtype == dtype
    for at in values[values < 8]:
        mask = values >= at
        rule = DecisionRule("given", at, score="msr", scale="log-odds")
        np.testing.assert_array_equal(rule.apply(sure, scale="probability"), mask)
        back = DecisionRule("given", float(expit(at)), score="msr", scale="probability")
        np.testing.assert_array_equal(back.apply(p), mask)
        np.testing.assert_array_equal(back.apply(values, scale="log-odds"), mask)
        np.testing.assert_array_equal(back.apply(logits=p.logits), mask)


def test_probabilities_that_have_run_together_raise_an_error():
    far = DecisionRule("given", 25.0, score="msr", scale="log-odds")
    with pytest.raises(DomainError, match="float32 probabilities cannot be compared"):
        far.apply(np.array([0.5, 1.0], np.float32), scale="probability")
    assert far.apply(np.array([0.5, 1.0]), scale="probability").tolist() == [False, True]
    assert far.apply(logits=np.array([[24.0, 0.0], [26.0, 0.0]], np.float32)).tolist() == [
        False,
        True,
    ]


def test_a_rule_in_probabilities_is_not_applied_to_log_odds():
    x = np.array([0.5, 2.0, 2.3])
    with pytest.raises(InputError, match=r"do not all lie in \[0, 1\].*log-odds of 2.19722"):
        CHANCE.apply(x)
    assert CHANCE.apply(x, scale="log-odds").tolist() == [False, False, True]
    assert CHANCE.apply(x, scale="score").tolist() == [False, True, True]
    assert CHANCE.apply([0.95, 1.0000001]).tolist() == [True, True]
    with pytest.raises(DomainError, match=r"must lie in \[0, 1\] with scale='probability'; got .*"
                       "at index 1"):  # fmt: skip
        CHANCE.apply(x, scale="probability")


def test_what_is_said_is_checked():
    assert ODDS.apply([0.5, 0.9], scale="log-odds").tolist() == [False, False]
    assert ODDS.apply([0.5, 0.9], scale="score").tolist() == [False, False]
    assert ODDS.apply([0.5, 3.0]).tolist() == [False, True]
    with pytest.raises(InputError, match="must be one of"):
        ODDS.apply([0.5], scale="logits")
    rule = DecisionRule("given", 7.0, score="mls", scale="score")
    with pytest.raises(InputError, match="no exact counterpart on the scale 'probability'"):
        rule.apply([0.5], scale="probability")
    bare = DecisionRule("given", 0.5)
    assert bare.apply([0.4, 5.0]).tolist() == [False, True]
    with pytest.raises(InputError, match="does not record the scale"):
        bare.apply([0.4], scale="probability")
    for both in ({}, {"logits": [[1.0, 0.0]], "probabilities": [[0.5, 0.5]]}):
        with pytest.raises(
            MissingInputError if not both else InputError, match="pass exactly one of"
        ):
            ODDS.apply(**both)
    with pytest.raises(InputError, match="the rule is for the score 'msr'; got 'pe'"):
        ODDS.apply(score("pe", model()))
    with pytest.raises(InputError, match=r"computed, and its scale is 'log-odds'.*Drop `scale`"):
        ODDS.apply(model(), scale="probability")
    with pytest.raises(MissingInputError, match="names no score"):
        bare.apply(model())
    with pytest.raises(UnknownNameError, match="sure"):
        CHANCE.apply(logits=[[1.0, 0.0]])
    with pytest.raises(InputError, match="requires predictions"):
        ODDS.apply([3.0], score=score)
    # A rule of before scales were recorded, whose score has two: nothing is guessed.
    with pytest.raises(InputError, match="does not record the scale"):
        DecisionRule("given", 0.9, score="msr").apply(model())
    assert DecisionRule("given", 7.0, score="mls").apply(logits=[[8.0, 0], [6.0, 0]])[0]


def test_a_column_of_ones_own_is_judged_by_its_values():
    columns = ab.Predictions(confidence={"msr": [0.95, 0.6]}, loss=[0, 1])
    with pytest.raises(InputError, match="all lie"):
        ODDS.apply(columns)
    assert ODDS.apply(columns, scale="probability").tolist() == [True, False]
    assert DecisionRule("given", 0.9, score="msr", scale="probability").apply(columns)[0]


def test_a_fitted_score_is_passed_as_its_state():
    p = model(2, 400)
    state = ab.fit_score("temperature", p)
    rule = ab.set_threshold(p, score=state, method="coverage", coverage=0.5)
    np.testing.assert_array_equal(
        rule.apply(p, score=state), state.score(p).values >= rule.threshold
    )


@pytest.mark.parametrize("how", ["sgr", "risk", "chow"])
def test_the_scale_comes_from_the_score(how):
    p = model()
    options = {"abstention_cost": 0.1} if how == "chow" else {"max_risk": 0.1}
    options |= {"delta": 0.05} if how == "sgr" else {}
    rule = ab.set_threshold(p, method=how, **options)
    assert (rule.score, rule.scale) == ("msr", "log-odds")
    assert rule.threshold_on("log-odds") == rule.threshold == rule.threshold_on("score")
    assert rule.threshold_on("probability") == pytest.approx(expit(rule.threshold), rel=1e-15)
    own = ab.Predictions(confidence={"c": score("msr", p).probability}, loss=~p.correct)
    rule = ab.set_threshold(own, method=how, **options)
    assert rule.scale == "probability"
    assert rule.threshold_on("log-odds") == pytest.approx(logit(rule.threshold))
    said = ab.Predictions(confidence={"c": score("msr", p).values}, loss=~p.correct)
    assert ab.set_threshold(said, method="risk", max_risk=0.1).scale == "score"
    rule = ab.set_threshold(said, method=how, scale="log-odds", **options)
    assert rule.scale == "log-odds"
    assert (
        rule.apply(own, scale="probability").tolist()
        == (said.confidence["c"] >= rule.threshold).tolist()
    )
    with pytest.raises(DomainError, match="scale='probability'"):
        ab.set_threshold(said, method=how, scale="probability", **options)
    with pytest.raises(InputError, match="Drop `scale`"):
        ab.set_threshold(p, method=how, scale="probability", **options)


def test_scores_with_no_counterpart_have_none():
    p = model()
    for name in ("mls", "pe", "margin", "gini", "logit_margin"):
        rule = ab.set_threshold(p, score=name, method="coverage", coverage=0.5)
        assert rule.scale == "score", name
        assert rule.threshold_on("probability") is None
        assert "log-odds" not in str(rule)


def test_both_scales_are_printed():
    assert "at least 2 (log-odds; a probability of 0.880798)" in str(ODDS)
    assert "at least 0.9 (a probability; log-odds of 2.19722)" in str(CHANCE)
    assert "on a scale that is not recorded" in str(DecisionRule("given", 0.5, score="msr"))
    assert fit("chow", abstention_cost=0.2).scale == "probability"
    assert fit("risk", [0.9, 0.2], [0, 1], max_risk=0.1, scale="probability").scale == "probability"
    with pytest.raises(InputError, match="`scale`"):
        ODDS.for_score("msr", scale="odds")


def test_files_of_before_scales_were_recorded_are_read():
    fields = json.loads(ODDS.to_json())
    added_later = {"scale", "threshold_probability"}
    old = {k: v for k, v in fields.items() if k not in added_later} | {"version": 1}
    rule = DecisionRule.from_json(json.dumps(old))
    assert rule == DecisionRule("given", 2.0, score="msr")
    assert rule.scale == "unknown"
    # Someone who knows may write it in.
    told = DecisionRule.from_json(json.dumps(old | {"scale": "log-odds"}))
    assert told == ODDS
    p = model()
    check = ab.check_rule(rule, {"later": p})
    assert check.checks[0].accepted == ODDS.apply(p).sum()
    (warning,) = [f for f in check.notes if f.kind == "scale_unknown"]
    assert warning.level == "warning"
    assert "all numbers below are wrong" in warning.message
    assert "scale_unknown" not in {f.kind for f in ab.check_rule(ODDS, p).notes}


def test_checks_name_the_data_and_take_the_scale():
    p = model()
    rule = ab.set_threshold(p, max_risk=0.1, delta=0.05)
    sure = score("msr", p).probability
    with pytest.raises(InputError, match=r"^hospital: `confidence` may be on another scale"):
        ab.check_rule(rule, {"hospital": sure})
    column = ab.Predictions(confidence={"msr": sure}, loss=~p.correct)
    check = ab.check_rule(rule, {"a": sure, "b": column}, scale="probability", calibration=None)
    assert [c.accepted for c in check.checks] == [rule.accepted] * 2
    row = check.rows()[-1]
    assert row["threshold_scale"] == "log-odds"
    assert row["threshold_probability"] == rule.threshold_on("probability")
    assert row["threshold_log_odds"] == row["threshold"] == rule.threshold
    same = [f for f in check.notes if f.kind == "same_data"]
    assert len(same) == 1  # an array has no failures to compare


def test_the_scale_of_confidences_is_known_or_not():
    values = np.array([0.2, 0.9])
    assert ConfidenceScore("x", values).scale == "score"
    assert ConfidenceScore("x", values, values).scale == "probability"
    assert ConfidenceScore("x", values, expit(values)).scale == "log-odds"
    assert ConfidenceScore("x", values, values**2).scale == "score"
