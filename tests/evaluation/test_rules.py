"""From predictions to a rule and to what it keeps: the numbers are those of `abstain.thresholds`."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

import abstain as ab
from abstain.confidence import ConfidenceScore, score
from abstain.confidence import fit as fit_confidence
from abstain.errors import InputError, MissingInputError, UnknownNameError
from abstain.evaluation import RuleChecks, check_rule, set_threshold
from abstain.thresholds import DecisionRule, check, fit


def made(seed: int, n: int = 600, *, hard: float = 0.0, **more) -> ab.Predictions:
    rng = np.random.default_rng(seed)
    confidence = np.round(rng.beta(3, 1, n), 3)
    wrong = rng.random(n) < np.clip((1 - confidence) ** 1.3 + hard, 0, 1)
    labels = rng.integers(0, 3, n)
    return ab.Predictions(
        labels=labels,
        prediction=np.where(wrong, (labels + 1) % 3, labels),
        confidence={"own": confidence},
        **more,
    )


def logits(seed: int, n: int = 300) -> ab.Predictions:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, n)
    return ab.Predictions(logits=3 * np.eye(3)[labels] + 2 * rng.normal(size=(n, 3)), labels=labels)


CALIBRATION = made(0, 1500)
METHODS = {
    "sgr": {"max_risk": 0.1, "delta": 0.05},
    "learn_then_test": {"max_risk": 0.05, "delta": 0.1, "risk": "generalized"},
    "conformal_risk_control": {"max_risk": 0.05},
    "coverage_guarantee": {"coverage": 0.6, "delta": 0.05},
    "coverage": {"coverage": 0.6},
    "risk": {"max_risk": 0.1},
    "cost": {"abstention_cost": 0.2},
    "chow": {"abstention_cost": 0.3},
}


@dataclass(frozen=True)
class Halved:
    """A fitted score as the protocol wants it."""

    name: str = "halved"

    def score(self, predictions: ab.Predictions) -> ConfidenceScore:
        return ConfidenceScore(self.name, predictions.confidence["own"] / 2)


@pytest.mark.parametrize("method", METHODS)
def test_a_rule_and_its_checks_equal_those_of_the_arrays(method):
    rule = set_threshold(CALIBRATION, method=method, **METHODS[method])
    confidence, wrong = CALIBRATION.confidence["own"], ~CALIBRATION.correct
    bare = fit(method, confidence, wrong, **METHODS[method])
    assert rule == bare.for_score("own", scale="probability")
    later = made(1, hard=0.1)
    result = check_rule(rule, {"later": later}, calibration=CALIBRATION, level=0.9)
    expected = check(rule, later.confidence["own"], ~later.correct, name="later", level=0.9)
    assert result.checks == (expected,)
    row = result.rows()[1]
    for name, value in expected.row().items():
        wanted = math.nan if value is None else value
        np.testing.assert_equal(row[name], wanted, name)
    # What the rule says of its calibration data is what a check on them says.
    there = check(rule, confidence, wrong)
    first = result.rows()[0]
    for name in ("n", "accepted", "coverage", "selective_risk", "generalized_risk", "excess"):
        assert first[name] == pytest.approx(getattr(there, name), abs=1e-12), name
    assert (first["verdict"], first["role"]) == ("chosen here", "calibration")
    assert math.isnan(first["coverage_low"])


def test_the_curve_passes_through_the_chosen_point():
    for method in ("sgr", "conformal_risk_control"):
        rule = set_threshold(CALIBRATION, method=method, **METHODS[method])
        curve = check_rule(rule, {}, calibration=CALIBRATION).curve
        at = list(curve.thresholds).index(rule.threshold)
        wanted = rule.risk * (rule.coverage if method != "sgr" else 1)
        assert curve.coverage[at] == pytest.approx(rule.coverage)
        assert curve.risk[at] == pytest.approx(wanted)


def test_parts_keep_their_order_and_names():
    parts = {(("study", s), ("site", "x")): made(i) for i, s in enumerate(["b", "a", "c"])}
    rule = set_threshold(CALIBRATION, max_risk=0.1, delta=0.05)
    check = check_rule(rule, parts)
    assert [c.name for c in check.checks] == ["b, x", "a, x", "c, x"]
    frame = check.frame()
    assert frame["study"].to_list() == ["", "b", "a", "c"]
    assert frame["name"][0] == "calibration"
    assert [c.name for c in check_rule(rule, made(1)).checks] == ["data"]
    # Values that do not tell two parts apart come with their columns.
    twins = {(("a", "1"), ("b", "2, 3")): made(1), (("a", "1, 2"), ("b", "3")): made(2)}
    names = [c.name for c in check_rule(rule, twins).checks]
    assert names == ["a = 1, b = 2, 3", "a = 1, 2, b = 3"]


def test_without_labels_the_coverage_is_checked():
    rule = set_threshold(CALIBRATION, max_risk=0.1, delta=0.05)
    later = made(1)
    check = check_rule(rule, {"known": later, "unknown": later.confidence["own"]})
    known, unknown = check.checks
    assert unknown.coverage == known.coverage
    assert unknown.coverage_interval == known.coverage_interval
    assert math.isnan(unknown.selective_risk)
    assert math.isnan(unknown.excess)
    assert unknown.verdict == "cannot tell"
    assert "labels" in check.rows()[2]["note"]
    assert any(f.kind == "no_labels" and f.message.startswith("unknown:") for f in check.notes)
    # A promise on the coverage needs no labels.
    rule = set_threshold(CALIBRATION, method="coverage_guarantee", coverage=0.6, delta=0.05)
    known, unknown = check_rule(rule, {"known": later, "unknown": later.confidence["own"]}).checks
    assert (unknown.excess, unknown.verdict) == (known.excess, known.verdict)
    assert math.isnan(unknown.generalized_risk)


def kinds(found: RuleChecks) -> set[str]:
    return {finding.kind for finding in found.notes}


def test_the_calibration_data_are_noticed_among_the_checks():
    rule = set_threshold(CALIBRATION, max_risk=0.1, delta=0.05)
    order = np.random.default_rng(0).permutation(CALIBRATION.n)
    again, other = CALIBRATION.subset(order), made(9, 1500)
    for calibration in (None, CALIBRATION):
        check = check_rule(rule, {"again": again, "other": other}, calibration=calibration)
        said = [f.message for f in check.notes if f.kind == "same_data"]
        assert len(said) == 1
        assert said[0].startswith("again:")
    unlabeled = check_rule(rule, CALIBRATION.confidence["own"], calibration=CALIBRATION)
    assert "same_data" in kinds(unlabeled)


def test_what_is_guaranteed_is_said_with_its_limits():
    promised = set_threshold(CALIBRATION, max_risk=0.1, delta=0.05)
    mean = set_threshold(CALIBRATION, method="conformal_risk_control", max_risk=0.05)
    hoped = set_threshold(CALIBRATION, method="risk", max_risk=0.1)
    other = made(3)
    assert kinds(check_rule(promised, other)) == {"guarantee"}
    assert kinds(check_rule(mean, other)) == {"guarantee", "in_expectation"}
    check = check_rule(hoped, other, notes=["from a file"])
    assert kinds(check) == {"no_guarantee", "source"}
    assert check.notes[0].level == "warning"


def test_another_scale_is_pointed_out():
    rule = set_threshold(CALIBRATION, max_risk=0.1, delta=0.05, scale="score")
    percent = ab.Predictions(
        confidence={"own": 2 + CALIBRATION.confidence["own"]}, loss=np.zeros(1500)
    )
    tiny = ab.Predictions(
        confidence={"own": CALIBRATION.confidence["own"] / 9}, loss=np.zeros(1500)
    )
    said = [
        f.message for f in check_rule(rule, {"a": percent, "b": tiny}).notes if f.kind == "scale"
    ]
    assert [m.split(": the conf")[0] for m in said] == [
        "a: All samples are accepted",
        "b: No sample is accepted",
    ]
    assert check_rule(rule, {"b": tiny}).checks[0].verdict == "nothing accepted"


def test_unattainable():
    rule = set_threshold(made(0, 40), max_risk=0.001, delta=0.05)
    assert not rule.attainable
    check = check_rule(rule, {"later": made(1)}, calibration=made(0, 40))
    assert [row["verdict"] for row in check.rows()] == ["unattainable", "unattainable"]
    assert check.rows()[0]["coverage"] == 0
    assert math.isnan(check.rows()[1]["threshold"])


def test_scores():
    rule = set_threshold(logits(0), method="risk", max_risk=0.1)
    assert rule.score == "msr"
    assert rule.threshold in score("msr", logits(0)).values
    assert set_threshold(logits(0), score="pe", method="coverage", coverage=0.5).score == "pe"
    fitted = set_threshold(CALIBRATION, score=Halved(), method="coverage", coverage=0.5)
    assert fitted.score == "halved"
    check = check_rule(fitted, made(1), score=Halved())
    plain = set_threshold(CALIBRATION, method="coverage", coverage=0.5)
    assert check.checks[0].accepted == check_rule(plain, made(1)).checks[0].accepted


def test_a_score_that_was_fitted():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 300)
    features = labels[:, None] + rng.normal(size=(300, 2))
    guess = np.where(rng.random(300) < 0.8, labels, 1 - labels)
    p = ab.Predictions(features=features, labels=labels, prediction=guess)
    state = fit_confidence("knn", p.subset(slice(0, 100)), k=5)
    rule = set_threshold(p.subset(slice(100, 200)), score=state, method="coverage", coverage=0.5)
    assert rule.score == state.name
    later = p.subset(slice(200, 300))
    check = check_rule(rule, later, score=state)
    assert check.checks[0].accepted == rule.apply(state.score(later).values).sum()


def test_chow_is_brought_to_the_scale_of_the_score():
    p = logits(0)
    rule = set_threshold(p, method="chow", abstention_cost=0.1)
    accepted = rule.apply(score("msr", p).values)
    assert 0 < accepted.sum() < p.n
    np.testing.assert_array_equal(accepted, score("msr", p).probability >= 0.9)
    check = check_rule(rule, {}, calibration=p)
    assert check.rows()[0]["accepted"] == accepted.sum()
    assert check.threshold_probability == pytest.approx(0.9)
    assert (
        check_rule(
            set_threshold(CALIBRATION, max_risk=0.1, delta=0.1), made(1)
        ).threshold_probability
        is None
    )
    assert set_threshold(p, method="chow", abstention_cost=0.0).attainable
    with pytest.raises(InputError, match="probabilities"):
        set_threshold(p, score="mls", method="chow", abstention_cost=0.1)


def test_losses_and_weights():
    graded = (1 - CALIBRATION.confidence["own"]) / 2
    rule = set_threshold(CALIBRATION, loss=graded, method="risk", max_risk=0.05)
    assert rule.risk == pytest.approx(graded[rule.apply(CALIBRATION.confidence["own"])].mean())
    assert not check_rule(rule, CALIBRATION, loss=graded).is_binary
    weighted = made(0, 300, weight=np.arange(300) % 3)
    rule = set_threshold(weighted, method="coverage", coverage=0.5)
    assert rule.n == 200
    check = check_rule(rule, weighted, calibration=weighted)
    assert check.checks[0].coverage == pytest.approx(rule.coverage)
    with pytest.raises(InputError, match="weight"):
        set_threshold(weighted, max_risk=0.2, delta=0.05)


def test_refusals_of_set_threshold():
    with pytest.raises(InputError, match=r"one set.*got 2 \(a, b\).*check_rule"):
        set_threshold({(("s", "a"),): made(0), (("s", "b"),): made(1)}, max_risk=0.1, delta=0.1)
    with pytest.raises(InputError, match="got 0"):
        set_threshold({}, max_risk=0.1, delta=0.1)
    assert set_threshold({(): made(0)}, method="coverage", coverage=0.5).attainable
    two = ab.Predictions(confidence={"a": [0.1, 0.2], "b": [0.1, 0.2]}, loss=[0, 1])
    with pytest.raises(InputError, match=r"one score.*'a', 'b'"):
        set_threshold(two, max_risk=0.1, delta=0.1)
    with pytest.raises(UnknownNameError, match=r"no score 'oen'.*'own'"):
        set_threshold(made(0), score="oen", max_risk=0.1, delta=0.1)
    with pytest.raises(MissingInputError, match="allow no confidence"):
        set_threshold(ab.Predictions(prediction=[0], labels=[0]), max_risk=0.1, delta=0.1)
    with pytest.raises(InputError, match="a name or a fitted score; got int"):
        set_threshold(made(0), score=3, max_risk=0.1, delta=0.1)
    with pytest.raises(InputError, match="must be a Predictions"):
        set_threshold([0.1, 0.2], max_risk=0.1, delta=0.1)
    with pytest.raises(UnknownNameError, match="srg"):
        set_threshold(made(0), method="srg", max_risk=0.1, delta=0.1)


def test_refusals_of_check_rule():
    rule = set_threshold(CALIBRATION, max_risk=0.1, delta=0.05)
    with pytest.raises(UnknownNameError, match=r"'there' has no score 'own'.*'other'"):
        check_rule(rule, {"there": ab.Predictions(confidence={"other": [0.5]}, loss=[0])})
    with pytest.raises(InputError, match="the rule is for the score 'own'; got 'halved'"):
        check_rule(rule, made(1), score=Halved())
    with pytest.raises(InputError, match="must be a DecisionRule; got str"):
        check_rule("rule", made(1))
    with pytest.raises(InputError, match="the split column 'n' has"):
        check_rule(rule, {(("n", "a"),): made(1)})
    with pytest.raises(InputError, match="keys of `predictions`"):
        check_rule(rule, {3: made(1)})
    with pytest.raises(InputError, match=r"predictions\['x'\]"):
        check_rule(rule, {"x": [0.5, float("nan")]})
    with pytest.raises(InputError, match="level"):
        check_rule(rule, made(1), level=95)


def test_a_column_and_a_computed_score_of_one_name_are_not_mixed():
    own = ab.Predictions(confidence={"msr": [0.5, 0.9]}, loss=[0, 1])
    rule = DecisionRule("given", 0.7, score="msr")
    with pytest.raises(InputError, match="'msr' is a column of 'a'"):
        check_rule(rule, {"a": own, "b": logits(0)})
    with pytest.raises(InputError, match=r"column of 'a' and is computed.*'the calibration data'"):
        check_rule(rule, {"a": own}, calibration=logits(0))
