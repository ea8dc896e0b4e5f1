"""From labeled and unlabeled predictions to ratios, rules and estimates."""

import numpy as np
import pytest

import abstain as ab
from abstain.errors import InputError, MissingInputError
from abstain.evaluation import check_rule, estimate_ratios, set_threshold


def people(seed, hard, n=3000):
    """Logits of two classes, calibrated; a share `hard` of the samples is difficult."""
    rng = np.random.default_rng(seed)
    margin = np.where(rng.random(n) < hard, rng.normal(0, 1, n), rng.normal(0, 4, n))
    labels = (rng.random(n) < 1 / (1 + np.exp(-margin))).astype(int)
    return np.stack([np.zeros(n), margin], axis=1), labels


def both(seed, hard):
    logits, labels = people(seed, hard)
    return ab.Predictions(logits=logits, labels=labels), ab.Predictions(
        logits=logits, unlabeled=True
    )


def test_a_rule_for_unlabeled_predictions_keeps_its_guarantee_there():
    known, _ = both(0, 0.2)
    truth, there = both(1, 0.8)
    asked = {"score": "msr", "method": "learn_then_test", "max_risk": 0.1, "delta": 0.1}
    plain = set_threshold(known, **asked)
    result = estimate_ratios(known, there, score="msr")
    rule = set_threshold(known, ratio=result.ratios, **asked)
    assert check_rule(plain, truth).checks[0].verdict == "broken"
    assert check_rule(rule, truth).checks[0].verdict == "holds"
    assert "a classifier estimated" in rule.population
    assert result.notes()[0].message.startswith("Of the calibration data 3000 samples")


def test_class_scores_show_a_shift_that_the_confidence_hides():
    """Class 1 comes up more often, at the same confidences."""
    rng = np.random.default_rng(2)
    margin = np.abs(rng.normal(2, 1, 2000))
    sign = np.where(rng.random(2000) < 0.8, 1, -1)
    known = ab.Predictions(logits=np.stack([margin, 0 * margin], 1), labels=np.zeros(2000, int))
    there = ab.Predictions(logits=np.stack([sign * margin, 0 * margin], 1), unlabeled=True)
    assert estimate_ratios(known, there, score="msr").auroc > 0.58
    alone = [ab.Predictions(confidence=margin, unlabeled=True) for _ in range(2)]
    assert estimate_ratios(*alone).auroc < 0.53


def test_a_label_shift_compares_class_names_as_text():
    known = ab.Predictions(prediction=[0, 1] * 200, labels=[0, 1] * 200)
    there = ab.Predictions(prediction=["0"] * 30 + ["1"] * 90, unlabeled=True)
    result = estimate_ratios(known, there, shift="label")
    assert result.classes.ratio == pytest.approx([0.5, 1.5])
    assert result.ratios.values[:2] == pytest.approx([0.5, 1.5])
    assert "1 1.5 (standard error" in result.notes()[1].message


def test_what_does_not_overlap_is_a_warning():
    rng = np.random.default_rng(3)
    known = ab.Predictions(confidence=rng.random(4000), loss=np.zeros(4000))
    there = ab.Predictions(confidence=rng.random(4000) ** 0.01, unlabeled=True)
    said = [f.message for f in estimate_ratios(known, there).notes() if f.level == "warning"]
    assert any("hardly overlap" in text for text in said)
    assert any("a few samples determine the result" in text for text in said)


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"shift": "both"}, InputError, "`shift` must be one of"),
        ({"shift": "label"}, MissingInputError, "`predictions` hold none"),
        ({"shift": "label", "clip": 3.0}, InputError, "`clip` is for a covariate shift"),
    ],
)
def test_bad_questions_raise_an_error(options, error, says):
    known = ab.Predictions(confidence=np.ones(20), loss=np.zeros(20))
    with pytest.raises(error, match=says):
        estimate_ratios(known, ab.Predictions(confidence=np.ones(20), unlabeled=True), **options)


def test_unlabeled_predictions_choose_no_threshold_but_by_coverage():
    there = ab.Predictions(confidence=np.linspace(0, 1, 100), unlabeled=True)
    with pytest.raises(MissingInputError, match="needs labels or losses"):
        set_threshold(there, max_risk=0.1, delta=0.1)
    rule = set_threshold(there, method="coverage_guarantee", coverage=0.5, delta=0.1)
    assert rule.coverage >= 0.5
    with pytest.raises(InputError, match="`unlabeled` predictions have no `labels`"):
        ab.Predictions(confidence=[0.5], loss=[0], unlabeled=True)
    with pytest.raises(MissingInputError, match="have no labels"):
        ab.evaluate(there)


def test_groups_and_limits_take_ratios():
    rng = np.random.default_rng(9)
    sure, group = rng.random(800), np.repeat(["a", "b"], 400)
    known = ab.Predictions(
        confidence=sure, loss=rng.random(800) < 0.2 * (1 - sure), group=group
    ).with_weight(2 - sure)
    asked = {"delta": 0.1, "ratio": 2 - sure, "weight": None, "max_risk": 0.2}
    by_group = set_threshold(known, method="learn_then_test", per="group", **asked)
    limited = set_threshold(known, limits={"group:b": 0.25}, **asked)
    for rule in (by_group, limited):
        assert rule.attainable
        assert "reweighted by the density ratios given" in rule.population
        check = check_rule(rule, {"same": known}, calibration=known)
        said = [f.message for f in check.notes if f.kind == "guarantee"]
        assert "It is only valid if the density ratios are correct" in said[0]
    assert np.isnan(check_rule(by_group, {}, calibration=known).calibration_values()["coverage"])
    assert limited.coverage == pytest.approx(limited.part("overall").coverage)


def test_data_without_labels_have_estimates_beside_their_coverage():
    known, _ = both(4, 0.2)
    truth, there = both(5, 0.5)
    rule = set_threshold(known, score="msr", max_risk=0.15, delta=0.1)
    check = check_rule(rule, {"new": there, "same": truth}, calibration=known)
    first, second = check.estimates
    assert second is None
    risk = check.checks[1].selective_risk
    assert first.mean_confidence == pytest.approx(risk, abs=0.03)
    assert check.checks[0].coverage == check.checks[1].coverage == first.coverage
    rows = check.frame().select("name", "estimated_risk_mean_confidence").rows()
    assert rows[1] == ("new", first.mean_confidence)
    assert np.isnan(rows[0][1])
    assert np.isnan(rows[2][1])
    said = next(f.message for f in check.notes if f.kind == "estimated_risk")
    assert said.startswith("new: the data have no labels, so the risk is only estimated")
    # Without calibration data there is nothing to estimate from.
    alone = check_rule(rule, {"new": there})
    assert alone.estimates == (None,)
    assert "estimated_risk_mean_confidence" not in alone.frame().columns


def test_ratios_as_weights_add_the_reweighted_estimate():
    known, _ = both(6, 0.2)
    truth, there = both(7, 0.8)
    ratios = estimate_ratios(known, there, score="msr").ratios
    asked = {"score": "msr", "method": "learn_then_test", "max_risk": 0.15, "delta": 0.1}
    rule = set_threshold(known, ratio=ratios, **asked)
    weighed = known.with_weight(ratios.values)
    (found,) = check_rule(rule, {"new": there}, calibration=weighed).estimates
    assert found.reweighted == pytest.approx(rule.risk)
    assert found.reweighted == pytest.approx(
        check_rule(rule, truth).checks[0].selective_risk, abs=0.03
    )
