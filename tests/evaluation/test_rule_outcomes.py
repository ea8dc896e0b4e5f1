"""Displayed thresholds, errors among the answers, and what would give a threshold."""

import numpy as np
import pytest

import abstain as ab
from abstain.errors import InputError, UnknownNameError
from abstain.evaluation import check_rule, set_threshold
from abstain.inference.intervals import clopper_pearson
from abstain.thresholds import DecisionRule
from abstain.thresholds.binomial import binomial_p_value
from abstain.thresholds.decimals import round_probability_up, shortest_decimal
from abstain.thresholds.start_tests import starts


def make_binary(seed: int, n: int = 3000, *, names=("benign", "malignant")) -> ab.Predictions:
    rng = np.random.default_rng(seed)
    is_positive = rng.random(n) < 0.4
    log_odds = np.where(is_positive, 1.3, -1.3) + 1.7 * rng.normal(size=n)
    p = 1 / (1 + np.exp(-log_odds))
    return ab.Predictions(
        probabilities=np.column_stack([1 - p, p]),
        labels=np.array(names)[is_positive.astype(int)],
        classes=names,
        group=rng.choice(["a", "b", "few"], n, p=[0.6, 0.38, 0.02]),
    )


@pytest.fixture(scope="module")
def data():
    return make_binary(0), make_binary(1)


@pytest.fixture(scope="module")
def grouped(data):
    calibration, test = data
    rule = set_threshold(calibration, per="group", max_risk=0.1, delta=0.05)
    return check_rule(rule, test, calibration=calibration)


@pytest.mark.parametrize("per", [None, "group"])
def test_a_displayed_threshold_accepts_the_same_samples(data, per):
    calibration, test = data
    options = {} if per is None else {"per": per}
    rule = set_threshold(calibration, max_risk=0.1, delta=0.05, **options)
    checks = check_rule(rule, test, calibration=calibration)
    for predictions in data:
        p = predictions.probabilities[:, 1]
        answered = np.zeros(p.size, dtype=bool)
        for condition in checks.conditions:
            in_group = np.ones(p.size, dtype=bool)
            if condition.group:
                in_group = predictions.group == condition.group
            if condition.threshold:
                is_extreme = (p >= float(condition.threshold)) | (p <= float(condition.opposite))
                answered |= in_group & is_extreme
        assert answered.tolist() == rule.apply(predictions).tolist()


def test_conditions_are_short_and_symmetric(grouped):
    condition = grouped.condition_of("a")
    assert condition.text == f"p ≥ {condition.threshold} or p ≤ {condition.opposite}"
    assert float(condition.threshold) + float(condition.opposite) == pytest.approx(1)
    assert 5 <= len(condition.threshold) <= 9
    assert grouped.condition_of("few").text == "no threshold"


def test_more_classes_have_one_side_and_other_scores_keep_their_unit():
    rng = np.random.default_rng(0)
    logits, labels = 2 * rng.normal(size=(900, 3)), rng.integers(0, 3, 900)
    logits[np.arange(900), labels] += 3
    p = ab.Predictions(logits=logits, labels=labels)
    rule = set_threshold(p, method="risk", max_risk=0.02)
    (condition,) = check_rule(rule, p, calibration=p).conditions
    assert condition.text == f"p ≥ {condition.threshold}"
    rule = set_threshold(p, score="mls", method="risk", max_risk=0.02)
    (condition,) = check_rule(rule, p, calibration=p).conditions
    assert condition.text.startswith("mls ≥ ")


def test_a_threshold_without_data_is_rounded_up():
    rule = DecisionRule("given", 2.0, score="msr", scale="log-odds")
    (condition,) = check_rule(rule, {}).conditions
    assert condition.text == "p ≥ 0.8808"


@pytest.mark.parametrize("threshold", [0.1234567, 0.999999991, 3.0, -17.25, 1e-9])
def test_decimals_separate_the_neighbors(threshold):
    for gap in (1e-2, 1e-5, 1e-9):
        text = shortest_decimal(threshold, rejected=threshold - gap, accepted=threshold)
        assert threshold - gap < float(text) <= threshold
        n_decimals = len(text.partition(".")[2])
        if n_decimals:
            shorter = np.floor(threshold * 10.0 ** (n_decimals - 1)) / 10.0 ** (n_decimals - 1)
            assert not threshold - gap < shorter <= threshold


def test_probabilities_are_rounded_up():
    for p in (0.5, 0.91999, 1 - 1e-7):
        text = round_probability_up(p)
        assert p <= float(text) <= p + 1e-3 * (1 - p)


def test_outcomes_are_counts_with_exact_intervals(data, grouped):
    _, test = data
    p, is_positive = test.probabilities[:, 1], test.labels == "malignant"
    accepted = grouped.rule.apply(test)
    for check, outcome in grouped.results_of(0):
        rows = np.ones(p.size, dtype=bool) if not check.group else test.group == check.group
        answered = rows & accepted
        wrong = (p > 0.5) != is_positive
        assert (outcome.wrong.count, outcome.wrong.total) == (
            (answered & wrong).sum(),
            answered.sum(),
        )
        assert outcome.wrong_without_abstention.count == (rows & wrong).sum()
        classes = outcome.classes
        n_missed = (answered & is_positive & (p <= 0.5)).sum()
        assert classes.false_negatives.count == n_missed
        assert classes.false_negatives.total == (rows & is_positive).sum()
        assert classes.false_positives.count == (answered & ~is_positive & (p > 0.5)).sum()
        if (answered & is_positive).any():
            n, n_right = (answered & is_positive).sum(), (answered & is_positive & (p > 0.5)).sum()
            exact = clopper_pearson(n_right, n, level=0.95)
            assert classes.sensitivity.value == n_right / n
            assert classes.sensitivity.interval == exact
        else:
            assert np.isnan(classes.sensitivity.value)


def test_the_positive_class_is_the_second_of_two_or_named(data):
    calibration, test = data
    rule = set_threshold(calibration, max_risk=0.1, delta=0.05)
    default, swapped = check_rule(rule, test), check_rule(rule, test, positive="benign")
    assert (default.positive, swapped.positive) == ("malignant", "benign")
    first, second = default.outcomes[0][0].classes, swapped.outcomes[0][0].classes
    assert first.sensitivity == second.specificity
    assert first.false_negatives == second.false_positives
    with pytest.raises(UnknownNameError, match="Did you mean 'malignant'"):
        check_rule(rule, test, positive="malignent")
    numbers = make_binary(3, names=(0, 1))
    assert check_rule(rule, numbers).positive == "1"


def test_more_than_two_classes_need_a_named_positive_class():
    rng = np.random.default_rng(1)
    labels, prediction = rng.integers(0, 3, 500), rng.integers(0, 3, 500)
    p = ab.Predictions(confidence=rng.random(500), labels=labels, prediction=prediction)
    rule = DecisionRule("given", 0.3, score="confidence")
    assert check_rule(rule, p).outcomes[0][0].classes is None
    classes = check_rule(rule, p, positive=2).outcomes[0][0].classes
    accepted = rule.apply(p)
    assert classes.sensitivity.count == (accepted & (labels == 2) & (prediction == 2)).sum()
    assert classes.specificity.total == (accepted & (labels != 2)).sum()


def test_graded_losses_and_missing_labels_have_no_outcomes():
    confidence = np.linspace(0, 1, 50)
    graded = ab.Predictions(confidence=confidence, loss=confidence / 2)
    rule = DecisionRule("given", 0.5)
    assert check_rule(rule, graded).outcomes == ((None,),)
    assert check_rule(rule, confidence).outcomes == ((None,),)


def test_group_curves_have_a_vertex_at_each_threshold(grouped):
    assert [name for name, _ in grouped.group_curves] == ["a", "b", "few"]
    for name, curve in grouped.group_curves:
        part = grouped.rule.part(name)
        if part.attainable:
            vertex = (curve.thresholds >= part.threshold).sum() - 1
            assert curve.risk[vertex] == pytest.approx(part.risk)


def make_failing(n: int) -> ab.Predictions:
    """Samples of which 3 of the most confident 65 are wrong, and none of the most confident 49."""
    loss = np.zeros(n)
    loss[[49, 55, 60]] = 1
    loss[70::3] = 1
    return ab.Predictions(confidence={"own": np.linspace(1, 0.01, n)}, loss=loss)


def test_the_number_of_further_samples_is_the_smallest_with_a_test_that_passes():
    calibration = make_failing(130)
    rule = set_threshold(calibration, max_risk=0.1, delta=0.05)
    assert not rule.attainable
    (remedies,) = check_rule(rule, {}, calibration=calibration).remedies
    wrong = np.cumsum(calibration.loss)

    def passes(n):
        ranks, alpha = starts("sgr", n, 0.1, 0.05)
        return any(
            binomial_p_value(np.array(r), np.array(wrong[r - 1]), 0.1) <= alpha
            for r in ranks
            if r <= 130
        )

    assert (remedies.n_required, remedies.n_more) == (144, 14)
    assert remedies.next_test.n_tested == 36
    assert passes(remedies.n_required)
    assert not any(passes(n) for n in range(131, remedies.n_required))
    assert remedies.next_test.n_wrong <= remedies.next_test.max_wrong
    for test in remedies.tests:
        assert test.n_wrong == wrong[test.n_tested - 1] > test.max_wrong


def test_other_rules_spend_their_own_delta_and_have_a_threshold():
    calibration = make_failing(130)
    rule = set_threshold(calibration, max_risk=0.1, delta=0.05)
    (remedies,) = check_rule(rule, {}, calibration=calibration).remedies
    assert remedies.alternatives
    for alternative in remedies.alternatives:
        assert alternative.rule.attainable
        assert alternative.rule.delta == 0.025
        repeated = set_threshold(
            calibration,
            method=alternative.rule.method,
            max_risk=alternative.rule.target,
            delta=0.025,
        )
        assert repeated == alternative.rule
        assert alternative.condition.threshold


def test_too_few_samples_need_the_smallest_number_that_can_be_certified():
    def remedies_of(loss):
        calibration = ab.Predictions(confidence={"own": np.linspace(1, 0, 20)}, loss=loss)
        rule = set_threshold(calibration, max_risk=0.1, delta=0.05)
        (remedies,) = check_rule(rule, {}, calibration=calibration).remedies
        return remedies

    remedies = remedies_of(np.zeros(20))
    assert (remedies.n_required, remedies.n_more, remedies.tests) == (29, 9, ())
    assert remedies.next_test.max_wrong == 0
    # A wrong sample contradicts that all of the 29 samples are correct.
    contradicted = remedies_of(np.arange(20) == 5)
    assert (contradicted.n_required, contradicted.next_test, contradicted.n_wrong) == (
        None,
        None,
        1,
    )
    assert contradicted.max_limits == (("overall", 0.2),)


def test_rules_with_a_threshold_or_other_options_have_no_remedies(data):
    calibration, _ = data
    rule = set_threshold(calibration, max_risk=0.1, delta=0.05)
    assert check_rule(rule, {}, calibration=calibration).remedies == ()
    failing = make_failing(130)
    other = set_threshold(
        failing, method="learn_then_test", starts=(0.9,), max_risk=0.1, delta=0.05
    )
    assert not other.attainable
    assert check_rule(other, {}, calibration=failing).remedies == ()


def test_a_positive_class_requires_labels():
    with pytest.raises(InputError, match="there are no labels"):
        check_rule(DecisionRule("given", 0.5), np.linspace(0, 1, 9), positive="yes")
