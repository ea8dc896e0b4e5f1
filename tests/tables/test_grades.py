"""Graded answers of language models in plain tables: words, nested fields, accuracy."""

import json

import numpy as np
import polars as pl
import pytest

import abstain as ab
from abstain.errors import DomainError, UnknownNameError
from abstain.tables import read_predictions
from abstain.tables.table import from_polars

STATED = [0.9, 0.8, 0.7, 0.6]


@pytest.mark.parametrize(
    ("words", "loss"),
    [
        (["CORRECT", "INCORRECT", "correct", "Incorrect"], [0, 1, 0, 1]),
        (["C", "I", "P", "N"], [0, 1, 0.5, 1]),
        (["yes", "no", "Yes", "No"], [0, 1, 0, 1]),
        (["true", "false", "TRUE", "False"], [0, 1, 0, 1]),
        (["pass", "fail", "PASS", "FAIL"], [0, 1, 0, 1]),
    ],
)
def test_grades_as_text(words, loss):
    reading = read_predictions({"confidence": STATED, "judged": words}, correct="judged")
    np.testing.assert_array_equal(reading.only().loss, loss)


@pytest.mark.parametrize("name", ["graded_correct", "verdict"])
def test_usual_names_of_grades(name, tmp_path):
    frame = pl.DataFrame({"confidence": STATED, name: ["CORRECT", "INCORRECT"] * 2})
    frame.write_csv(tmp_path / "a.csv")
    for source in (frame, tmp_path / "a.csv"):
        np.testing.assert_array_equal(read_predictions(source).only().loss, [0, 1, 0, 1])


def test_a_word_that_is_no_grade_is_named():
    columns = {"confidence": STATED[:2], "verdict": ["CORRECT", "NOT_ATTEMPTED"]}
    with pytest.raises(DomainError, match=r"CORRECT and INCORRECT.*got 'NOT_ATTEMPTED'"):
        read_predictions(columns)


ROWS = [
    {"judge": {"verdict": "CORRECT", "by": {"name": "a"}}, "confidence": 0.9},
    {"judge": {"verdict": "INCORRECT", "by": {"name": "b"}}, "confidence": 0.8},
    {"judge": {"verdict": "CORRECT", "by": {"name": "b"}}, "confidence": 0.7},
]


def write_rows(path):
    if path.suffix == ".jsonl":
        path.write_text("\n".join(map(json.dumps, ROWS)))
    elif path.suffix == ".json":
        path.write_text(json.dumps(ROWS))
    elif path.suffix == ".parquet":
        pl.DataFrame(ROWS).write_parquet(path)
    else:
        pl.DataFrame(ROWS).write_ipc(path)
    return path


@pytest.mark.parametrize("suffix", ["jsonl", "json", "parquet", "arrow"])
def test_nested_fields_are_named_by_their_path(tmp_path, suffix):
    path = write_rows(tmp_path / f"a.{suffix}")
    reading = read_predictions(path, correct="judge.verdict", group="judge.by.name")
    np.testing.assert_array_equal(reading.only().loss, [0, 1, 0])
    assert list(reading.only().group) == ["a", "b", "b"]
    with pytest.raises(UnknownNameError, match=r"Its columns: judge\.verdict, judge\.by\.name, c"):
        read_predictions(path, correct="judge.grade")


@pytest.mark.parametrize("suffix", ["jsonl", "parquet", "arrow"])
def test_nested_fields_in_a_stream(tmp_path, suffix):
    path = write_rows(tmp_path / f"a.{suffix}")
    scan = ab.scan_predictions(path, correct="judge.verdict")
    assert ab.evaluate(scan, metrics=["augrc"]).value("augrc") == pytest.approx(1 / 6)


def test_a_column_precedes_a_nested_field_of_the_same_name():
    for columns in (["a", "a.b"], ["a.b", "a"]):
        data = {"a": [{"b": 1, "c": 3}], "a.b": [2]}
        table = from_polars(pl.DataFrame({name: data[name] for name in columns}), "a frame")
        assert table.load(["a.b"])["a.b"].values.tolist() == [2]
        assert table.load(["a.c"])["a.c"].values.tolist() == [3]


def test_accuracy_is_reported_for_grades_of_0_and_1():
    rng = np.random.default_rng(0)
    confidence = rng.random(200)
    right = (rng.random(200) < confidence).astype(int)
    result = ab.evaluate(read_predictions({"confidence": confidence, "correct": right}))
    assert result.value("accuracy") == pytest.approx(right.mean())
    graded = ab.evaluate(read_predictions({"confidence": confidence, "correct": right / 2}))
    assert "accuracy" not in {r.metric.name for r in graded.results}
