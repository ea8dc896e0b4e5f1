"""The default rule of `set_threshold` for each target is that of the command."""

import json

import numpy as np
import polars as pl
import pytest

import abstain as ab
from abstain.cli.main import run
from abstain.errors import InputError, MissingInputError

RNG = np.random.default_rng(0)
CONFIDENCE = RNG.random(400)
ROWS = {
    "confidence": CONFIDENCE,
    "correct": (RNG.random(400) < CONFIDENCE).astype(int),
}


@pytest.mark.parametrize(
    ("option", "flag", "value", "method"),
    [
        ("max_risk", "--max-risk", 0.3, "sgr"),
        ("coverage", "--coverage", 0.8, "coverage_guarantee"),
        ("abstention_cost", "--cost", 0.3, "cost"),
    ],
)
def test_the_default_equals_that_of_the_command(tmp_path, option, flag, value, method):
    path = tmp_path / "calibration.csv"
    pl.DataFrame(ROWS).write_csv(path)
    rule = ab.set_threshold(path, **{option: value})
    assert rule.method == method
    saved = tmp_path / "rule.json"
    assert run(["threshold", str(path), flag, str(value), "--save", str(saved)]) == 0
    assert json.loads(saved.read_text())["threshold"] == rule.threshold


def test_a_target_is_needed_and_only_one():
    with pytest.raises(MissingInputError, match="give one of `max_risk`, `coverage`"):
        ab.set_threshold(ROWS)
    with pytest.raises(InputError, match="got `max_risk`, `coverage`"):
        ab.set_threshold(ROWS, max_risk=0.1, coverage=0.8)


def test_a_risk_on_shifted_data_has_the_default_of_the_command():
    rule = ab.set_threshold(ROWS, max_risk=0.3, ratio=np.linspace(0.5, 1.5, 400))
    assert rule.method == "learn_then_test"
