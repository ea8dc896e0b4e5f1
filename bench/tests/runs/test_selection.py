"""Settings are chosen on validation data: for each method and metric, over all seeds."""

import json

import numpy as np
import pytest

import abstain as ab
from abstain.errors import InputError, UnknownNameError
from abstain_bench.runs.selection import select_best_settings, validation_values
from abstain_bench.runs.store import VALIDATION, Run, RunScores, StoredRun

METRICS = ("augrc", "aurc", "failure_auroc", "accuracy", "ece")


@pytest.fixture
def scores():
    rng = np.random.default_rng(3)
    labels, n = rng.integers(0, 4, 200), 200
    prediction = np.where(rng.random(n) < 0.2, (labels + 1) % 4, labels)
    averaged = np.where(rng.random(n) < 0.15, (labels + 2) % 4, labels)
    confidence = {
        "one": rng.normal(size=n) + (prediction == labels),
        "mean": np.round(rng.normal(size=n) + (averaged == labels)),
    }
    return RunScores(VALIDATION, labels, np.arange(n), prediction, averaged, confidence)


def test_values_equal_those_of_each_method_s_own_prediction(scores):
    result = validation_values(scores, {"one": False, "mean": True}, METRICS)
    for name, prediction in (("one", scores.prediction), ("mean", scores.mean_prediction)):
        wrong = prediction != scores.labels
        confidence = scores.confidence[name]
        assert result[name]["augrc"] == pytest.approx(ab.augrc(confidence, wrong), abs=1e-12)
        assert result[name]["aurc"] == pytest.approx(ab.aurc(confidence, wrong), abs=1e-12)
        assert result[name]["accuracy"] == pytest.approx(1 - wrong.mean(), abs=1e-12)
        # The share of pairs in which the failure is less trusted, ties half.
        gap = confidence[~wrong][:, None] - confidence[wrong]
        pairs = (gap > 0).mean() + (gap == 0).mean() / 2
        assert result[name]["failure_auroc"] == pytest.approx(pairs, abs=1e-12)


def test_the_calibration_error_equals_that_of_calibrated_confidences(scores):
    result = validation_values(scores, {"one": False}, ["ece"])["one"]["ece"]
    held_out = ab.Predictions(
        labels=scores.labels,
        prediction=scores.prediction,
        confidence={"one": scores.confidence["one"]},
    )
    probability = ab.calibrate("one", held_out).score(held_out).probability
    right = scores.prediction == scores.labels
    bins = np.minimum((probability * 15).astype(int), 14)
    gaps = [abs(right[bins == b].sum() - probability[bins == b].sum()) for b in range(15)]
    assert result == pytest.approx(sum(gaps) / right.size, abs=1e-12)
    # The raw confidences are far from any probability: nothing else could give such a value.
    assert result < 0.1


def test_what_is_undefined_is_none_and_the_rest_is_there(scores):
    perfect = RunScores(
        VALIDATION, scores.labels, scores.source_indices, scores.labels, None, scores.confidence
    )
    result = validation_values(perfect, {"one": False, "absent": False}, [*METRICS, "nll"])
    assert list(result) == ["one"]
    assert result["one"]["failure_auroc"] is None
    assert result["one"]["nll"] is None
    assert result["one"]["accuracy"] == 1
    assert result["one"]["augrc"] == 0
    assert json.loads(json.dumps(result, allow_nan=False)) == result


def test_an_unknown_metric_raises_an_error(scores):
    with pytest.raises(UnknownNameError, match="augrc"):
        validation_values(scores, {"one": False}, ["augrcc"])


def kept(values, metric="augrc", method="m"):
    """Return runs from values by arm, setting and seed."""
    return [
        StoredRun(
            Run("-".join(map(str, place)), *place), validation_values={method: {metric: value}}
        )
        for place, value in values.items()
    ]


def of(values, metric="augrc"):
    (found,) = select_best_settings(kept(values, metric), [metric])
    return found


def test_the_mean_over_the_seeds_decides():
    # The best single run is of "a", the best mean that of "b".
    values = {("x", "a", 0): 0.1, ("x", "a", 1): 0.9, ("x", "b", 0): 0.3, ("x", "b", 1): 0.4}
    result = of(values)
    assert (result.arm, result.setting, result.seeds, result.note) == ("x", "b", 2, "")
    assert result.value == pytest.approx(0.35)
    assert result.tried == {"a": 0.5, "b": pytest.approx(0.35)}


def test_more_is_better_where_the_metric_says_so():
    values = {("x", "a", 0): 0.9, ("x", "b", 0): 0.8}
    assert of(values, "accuracy").setting == "a"
    assert of(values, "failure_auroc").setting == "a"
    assert of(values, "aurc").setting == "b"


def test_of_equal_settings_the_first_is_chosen():
    values = {("x", "b", 0): 0.2, ("x", "a", 0): 0.2, ("x", "c", 0): 0.3}
    assert of(values).setting == "b"


def test_a_setting_that_lacks_a_seed_is_not_chosen_and_that_is_told():
    values = {("x", "a", 0): 0.1, ("x", "b", 0): 0.3, ("x", "b", 1): 0.4}
    result = of(values)
    assert result.setting == "b"
    assert "'a'" in result.note
    # Nor one that is undefined in a seed.
    assert of({**values, ("x", "a", 1): None}).setting == "b"


def test_where_no_setting_is_complete_those_with_the_most_seeds_count():
    values = {
        ("x", "a", 0): 0.1,
        ("x", "b", 0): 0.3,
        ("x", "b", 1): 0.4,
        ("x", "c", 1): 0.2,
        ("x", "c", 2): 0.6,
    }
    result = of(values)
    assert (result.setting, result.seeds) == ("b", 2)
    assert "each of the 3 seeds" in result.note


def test_where_the_metric_is_undefined_the_first_setting_is_used():
    result = of({("x", "a", 0): None, ("x", "b", 0): None})
    assert (result.setting, result.seeds) == ("a", 0)
    assert np.isnan(result.value)
    assert "undefined" in result.note


def test_a_method_of_several_arms_names_them():
    result = of({("x", "a", 0): 0.3, ("y", "a", 0): 0.2, ("z", "", 0): 0.4})
    assert (result.arm, result.setting) == ("y", "a")
    assert list(result.tried) == ["x a", "y a", "z"]


def test_every_method_and_metric_has_its_own_choice():
    runs = [
        StoredRun(
            Run(s, "x", s, 0),
            validation_values={"m": {"augrc": a, "accuracy": b}, "o": {"augrc": -a}},
        )
        for s, a, b in (("a", 0.1, 0.5), ("b", 0.2, 0.6))
    ]
    results = {
        (setting.method, setting.metric): setting.setting
        for setting in select_best_settings(runs, ["augrc", "accuracy"])
    }
    assert results[("m", "augrc")] == "a"
    assert results[("m", "accuracy")] == "b"
    assert results[("o", "augrc")] == "b"


def test_two_runs_of_one_place_raise_an_error_and_so_is_nothing():
    twice = [*kept({("x", "a", 0): 0.1}), *kept({("x", "a", 0): 0.2})]
    with pytest.raises(
        InputError, match="two runs have the arm 'x', the setting 'a' and the seed 0"
    ):
        select_best_settings(twice, ["augrc"])
    with pytest.raises(InputError, match="validation"):
        select_best_settings([StoredRun(Run("r", "x", "a", 0))], ["augrc"])
