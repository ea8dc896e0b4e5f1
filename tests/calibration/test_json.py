"""States as JSON: exact round trips, and texts edited by hand."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import abstain as ab
from abstain import calibration
from abstain.calibration import Binning, Isotonic, Platt, Temperature, from_json
from abstain.errors import InputError
from abstain.evaluation.calibration import CalibratedScore, calibrate

UGLY = 0.1 + 0.2
STATES = [
    Temperature(1 / 3, UGLY, 1e-300, 12, "a note"),
    Platt(-5e-324, 1e308, smooth=False, n=3),
    Isotonic((-UGLY, 1 / 3), (math.nextafter(0, 1), 1 / 7), 3),
    Binning("equal_mass", (1 / 3,), (UGLY, 1.0), (0.0, 2.5), 3, "1 of 2"),
    Binning("equal_width", (), (UGLY,), (3.0,), 3),
]
every_state = pytest.mark.parametrize("state", STATES, ids=lambda s: type(s).__name__)


@every_state
def test_round_trips_are_exact(state):
    text = state.to_json()
    assert from_json(text) == state
    assert from_json(text).to_json() == text
    assert json.loads(text)["kind"] == state.kind


@settings(max_examples=30)
@given(st.integers(0, 10_000))
def test_fitted_states_round_trip(seed):
    rng = np.random.default_rng(seed)
    x, loss = rng.random(40).astype(np.float16), rng.random(40) > 0.6
    z = rng.normal(size=(40, 3)).astype(np.float32)
    for state in (
        calibration.fit_platt(x, loss),
        calibration.fit_isotonic(x, loss),
        calibration.fit_binning(x, loss, bins=6),
        calibration.fit_temperature(z, rng.integers(0, 3, 40)),
    ):
        again = from_json(state.to_json())
        assert again == state
        given = z if isinstance(state, Temperature) else x
        np.testing.assert_array_equal(again.apply(given), state.apply(given))


@every_state
def test_every_field_is_needed_and_no_other(state):
    good = json.loads(state.to_json())
    for field in good:
        with pytest.raises(InputError, match=f"field `{field}`"):
            from_json(json.dumps({k: v for k, v in good.items() if k != field}))
    with pytest.raises(InputError, match="`treshold` is not a field"):
        from_json(json.dumps({**good, "treshold": 1}))


@every_state
def test_a_field_of_another_type_is_named(state):
    good = json.loads(state.to_json())
    for field in good:
        for wrong in (None, {"a": 1}, True if field != "smooth" else 1, [None], 10**400):
            with pytest.raises(InputError, match=f"`{field}(\\[0\\])?`"):
                from_json(json.dumps({**good, field: wrong}))


@pytest.mark.parametrize(
    ("state", "field", "value"),
    [
        (0, "temperature", -1.0),
        (0, "temperature", "2.0"),
        (0, "nll_before", -0.5),
        (0, "n", 0),
        (0, "n", 2.0),
        (1, "smooth", "yes"),
        (2, "thresholds", [1.0, 0.0]),
        (2, "thresholds", [1.0]),
        (2, "values", [0.5, 0.2]),
        (2, "values", [0.5, 7]),
        (3, "binning", "equal"),
        (3, "edges", [0.1, 0.2]),
        (3, "weight", [-1, 2.0]),
        (3, "kind", "bining"),
        (3, "format", 2),
        (3, "format", True),
    ],
)
def test_nonsense_raises_an_error_with_the_field_named(state, field, value):
    edited = {**json.loads(STATES[state].to_json()), field: value}
    with pytest.raises(InputError, match=f"`{field}"):
        from_json(json.dumps(edited))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not the JSON of a calibration"),
        ("{", "not the JSON of a calibration"),
        ("[]", "not a JSON object"),
        ("3", "not a JSON object"),
        ("[" * 100_000, "nested too deeply"),
        ('{"format": 1, "kind": "platt", "kind": "platt"}', "`kind` occurs twice"),
        ('{"format": 1, "kind": "platt", "slope": NaN}', "finite; got NaN"),
        ('{"format": 1, "kind": "plat"}', "Did you mean 'platt'"),
        ("1" * 6000, "thousands of digits"),
        ('{"kind": "platt", "format": 1, "slope": 1e999, "intercept": 0, "smooth": true, "n": 1, "note": ""}', "`slope`"),
    ],
)  # fmt: skip
def test_texts_that_are_no_state(text, words):
    with pytest.raises(InputError, match=words):
        from_json(text)


@pytest.mark.parametrize("given", [None, 3, b"{}", {"kind": "platt"}])
def test_other_things_than_text(given):
    with pytest.raises(InputError, match="`text` must be a JSON text"):
        from_json(given)


# ------------------------------------------------------------------------------ whole scores


def fitted(method, **options):
    rng = np.random.default_rng(0)
    z = 2 * rng.normal(size=(60, 3))
    p = ab.Predictions(logits=z, labels=rng.integers(0, 3, 60))
    return calibrate("msr", p, method=method, **options), p


@pytest.mark.parametrize("method", ["platt", "isotonic", "histogram", "temperature"])
def test_a_calibrated_score_round_trips(method):
    state, p = fitted(method)
    again = CalibratedScore.from_json(state.to_json())
    assert again == state
    np.testing.assert_array_equal(again.score(p).probability, state.score(p).probability)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("kind", "platt"),
        ("format", 3),
        ("name", 3),
        ("base", None),
        ("on", "odds"),
        ("on", "logits"),
        ("limits", [1]),
        ("limits", [2, 1]),
        ("limits", ["a", "b"]),
        ("limits", [-(10**400), 1]),
        ("name", ""),
        ("base", ""),
        ("calibration", "x"),
        ("note", None),
        ("extra", 1),
    ],
)
def test_a_calibrated_score_edited_by_hand_raises_an_error(field, value):
    edited = {**json.loads(fitted("platt")[0].to_json()), field: value}
    with pytest.raises(InputError, match=f"`{field}"):
        CalibratedScore.from_json(json.dumps(edited))


def test_its_calibration_is_checked_too():
    edited = json.loads(fitted("platt")[0].to_json())
    del edited["calibration"]["slope"]
    with pytest.raises(InputError, match="`slope` is missing"):
        CalibratedScore.from_json(json.dumps(edited))
    del edited["calibration"]
    with pytest.raises(InputError, match="`calibration` is missing"):
        CalibratedScore.from_json(json.dumps(edited))
