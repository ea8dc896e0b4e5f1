"""The record: applying, JSON there and back, and refusing nonsense."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abstain import thresholds
from abstain.errors import DomainError, FileFormatError, InputError, ShapeError
from abstain.thresholds import DecisionRule

GUARANTEED = thresholds.sgr(
    np.linspace(1, 0, 400), np.arange(400) > 350, max_risk=0.1, delta=0.05, search="binary"
).for_score("msr", scale="probability")
ON_AVERAGE = thresholds.conformal_risk_control(
    np.linspace(1, 0, 400), np.arange(400) > 350, max_risk=0.1
)
UNATTAINABLE = thresholds.sgr([0.9, 0.8], [0, 1], max_risk=0.1, delta=0.05)
COVERAGE = thresholds.coverage_guarantee(np.arange(300), coverage=0.5, delta=0.1)
PLAIN = thresholds.for_risk(
    np.linspace(1, 0, 400), np.arange(400) / 400, max_risk=0.1, weight=np.arange(1.0, 401)
)
CHOW = thresholds.chow(abstention_cost=0.1)
RULES = [GUARANTEED, ON_AVERAGE, UNATTAINABLE, COVERAGE, PLAIN, CHOW, DecisionRule("given", -3.5)]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.method)
def test_json_round_trip_is_exact(rule):
    again = DecisionRule.from_json(rule.to_json())
    assert again == rule
    assert again.to_json() == rule.to_json()
    assert str(again) == str(rule)


@given(
    threshold=st.floats(allow_nan=False, allow_infinity=False),
    target=st.floats(0, 1e300),
    score=st.text(),
)
def test_any_numbers_survive_json(threshold, target, score):
    rule = DecisionRule("risk", threshold, target=target, score=score)
    again = DecisionRule.from_json(rule.to_json())
    assert again == rule
    assert np.signbit(again.threshold) == np.signbit(rule.threshold)


NONSENSE = {
    "method": ["", "magic", 3, None, ["sgr"], "coverage_guarantee", "risk"],
    "threshold": ["0.5", True, None, [0.5], 10**400],
    "guarantee": ["", "everything", None, 1, "none", "coverage", "generalized risk"],
    "in_expectation": [1, "no", None, True],
    "target": [-0.1, "0.1", None, True, {}, 0.001, 2.5, 1],
    "delta": [0, 1, 1.5, -0.1, "0.05", None, False],
    "bound": [-1, 0.5, "0.1", None, True, 0],
    "n": [-1, 0, 10, 400.0, "400", None, True, 1_000_000],
    "accepted": [-1, 401, 3.5, "300", None, False, 0, 12],
    "failures": [-1, 400, 1.5, "2", True, None],
    "coverage": [-0.1, 1.1, "0.9", None, True, 0.2],
    "risk": [-0.1, "0", None, True, 0.5, 1e300, 0.09],
    "score": [3, None, ["msr"]],
    "reason": ["because", 3, None],
    "scale": ["", "logodds", 3, None],
    "population": [3, None],
}


def edited(rule: DecisionRule, name: str, value: object) -> str:
    fields = json.loads(rule.to_json())
    assert name in fields
    return json.dumps(fields | {name: value})


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in NONSENSE.items() for value in values]
)
def test_a_field_edited_to_nonsense_raises_an_error_by_name(name, value):
    # A contradiction names one of the two fields that clash.
    partners = {
        "method": ("guarantee", "method"),
        "threshold": ("reason", "threshold"),
        "guarantee": ("bound", "delta", "guarantee"),
        "in_expectation": ("delta", "in_expectation"),
        "target": ("bound", "target"),
        "n": ("accepted", "coverage", "n"),
        "accepted": ("coverage", "failures", "risk", "accepted"),
        "failures": ("risk", "failures"),
    }.get(name, (name,))
    with pytest.raises(FileFormatError) as caught:
        DecisionRule.from_json(edited(GUARANTEED, name, value))
    assert any(f"`{partner}`" in str(caught.value) for partner in partners)


def test_every_field_is_tried():
    assert set(NONSENSE) | {"kind", "version"} == set(json.loads(GUARANTEED.to_json()))


@pytest.mark.parametrize("name", [*NONSENSE, "kind", "version"])
def test_a_missing_field_is_named(name):
    fields = json.loads(GUARANTEED.to_json())
    del fields[name]
    with pytest.raises(FileFormatError, match=f"`{name}`"):
        DecisionRule.from_json(json.dumps(fields))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "JSON"),
        ("[1, 2]", "object"),
        ("{", "JSON"),
        ("null", "object"),
        ("[" * 100_000, "JSON"),
        (None, "JSON"),
        ('{"kind": "other"}', "`kind`"),
        (GUARANTEED.to_json().replace('"version": 5', '"version": 6'), "`version`"),
        (GUARANTEED.to_json().replace('"version": 5', '"version": true'), "`version`"),
        (GUARANTEED.to_json().replace('"n": 400', '"n": 400, "n": 400'), "`n`"),
        (GUARANTEED.to_json().replace('"n": 400', '"n": 400, "extra": 1'), "`extra`"),
        (GUARANTEED.to_json().replace('"n": 400', '"n": NaN'), "NaN"),
        (GUARANTEED.to_json().replace('"n": 400', '"n": -Infinity'), "Infinity"),
    ],
)
def test_damaged_texts_raise_an_error(text, says):
    with pytest.raises(FileFormatError, match=says):
        DecisionRule.from_json(text)


def test_rules_cannot_be_made_of_nonsense():
    with pytest.raises(InputError, match="`threshold`"):
        DecisionRule("given", float("nan"))
    with pytest.raises(InputError, match="`reason`"):
        DecisionRule("given", None)


def kinds():
    jnp = pytest.importorskip("jax.numpy")
    torch = pytest.importorskip("torch")
    pandas = pytest.importorskip("pandas")
    strict = pytest.importorskip("array_api_strict")
    return (np.asarray, list, pandas.Series, torch.tensor, jnp.asarray, strict.asarray)


def test_apply_returns_the_callers_kind():
    rule = DecisionRule("given", 0.5)
    for make in kinds():
        given_ = make([0.25, 0.5, 0.75])
        result = rule.apply(given_)
        own = type(given_) if make is not list and "pandas" not in str(type(given_)) else np.ndarray
        assert isinstance(result, own)
        assert "bool" in str(result.dtype)
        assert [bool(x) for x in result] == [False, True, True]


def test_apply_without_a_threshold_accepts_nothing():
    for make in kinds():
        result = UNATTAINABLE.apply(make([0.0, 1e30]))
        assert [bool(x) for x in result] == [False, False]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_written_number_is_reached_in_every_precision(dtype):
    assert DecisionRule("given", 0.9).apply(np.array([0.9], dtype=dtype)).all()


def test_apply_beyond_the_range_of_the_precision():
    x = np.array([1.0, 60000.0], dtype=np.float16)
    assert not DecisionRule("given", 1e300).apply(x).any()
    assert DecisionRule("given", -1e300).apply(x).all()


def test_apply_leaves_its_input_alone_and_refuses_bad_values():
    x = np.array([0.1, 0.9])
    x.flags.writeable = False
    DecisionRule("given", 0.5).apply(x)
    with pytest.raises(DomainError, match="`confidence`"):
        DecisionRule("given", 0.5).apply([0.5, float("nan")])
    with pytest.raises(ShapeError, match="`confidence`"):
        DecisionRule("given", 0.5).apply([[0.5]])


def test_sentences_say_what_is_guaranteed():
    said = "with probability 0.95 or more over calibration sets, the true selective risk of the rule is at most"
    assert f"{said} 0.1" in str(GUARANTEED)
    assert "on average" in str(ON_AVERAGE)
    assert str(UNATTAINABLE).startswith("Accept nothing: 2 samples cannot")
    assert "true coverage of the rule is at least 0.5" in str(COVERAGE)
    assert "nothing is guaranteed" in str(PLAIN)
    for rule in RULES:
        assert str(rule).endswith(".")
        assert "\n" not in str(rule)


def test_quantities():
    results = [rule.quantity for rule in RULES]
    assert results == [
        "selective risk", "generalized risk", "selective risk", "coverage", "selective risk",
        "cost", "",
    ]  # fmt: skip


def test_the_sentence_counts_what_was_kept():
    rule = thresholds.for_risk([0.9, 0.8, 0.7], [0, 1, 1], max_risk=0.1, weight=[3, 1, 1])
    assert "1 of 3 calibration samples are accepted, a coverage of 0.6 and a" in str(rule)
    everything = thresholds.for_coverage([0.9, 0.8], coverage=1.0)
    assert "2 of 2 calibration samples are accepted, a coverage of 1;" in str(everything)


def test_version_3_with_the_old_name_of_the_population_is_read():
    rule = replace(GUARANTEED, population="the target data")
    text = rule.to_json().replace('"version": 5', '"version": 3')
    text = text.replace('"population"', '"promised_for"')
    assert DecisionRule.from_json(text) == rule


def test_a_file_has_the_threshold_in_log_odds_as_a_probability():
    rule = replace(GUARANTEED, threshold=2.0, scale="log-odds", score="msr")
    fields = json.loads(rule.to_json())
    assert fields["threshold_probability"] == pytest.approx(rule.threshold_on("probability"))
    # A reader of the file accepts the sample at the threshold, whatever its rounding error.
    assert fields["threshold_probability"] < rule.threshold_on("probability")
    assert DecisionRule.from_json(json.dumps(fields)) == rule
    without = {k: v for k, v in fields.items() if k != "threshold_probability"}
    assert DecisionRule.from_json(json.dumps(without | {"version": 4})) == rule
    for contradiction in (0.5, "0.88", True):
        edited = fields | {"threshold_probability": contradiction}
        with pytest.raises(FileFormatError, match="`threshold_probability`"):
            DecisionRule.from_json(json.dumps(edited))
    assert "threshold_probability" not in json.loads(GUARANTEED.to_json())


def test_the_parts_of_a_file_have_probabilities_and_version_1_is_read():
    parts = tuple(
        thresholds.RulePart(name, DecisionRule("given", t, score="msr", scale="log-odds"))
        for name, t in (("a", 1.0), ("b", 2.0))
    )
    rule = DecisionRule.from_parts("ward", parts)
    fields = json.loads(rule.to_json())
    probabilities = [part["rule"].pop("threshold_probability") for part in fields["parts"]]
    assert probabilities == pytest.approx([0.731058578, 0.880797078])
    assert DecisionRule.from_json(json.dumps(fields | {"version": 1})) == rule
