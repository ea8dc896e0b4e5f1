"""Columns of unusual types, and what class scores make of labels and predictions."""

from datetime import date
from decimal import Decimal

import numpy as np
import polars as pl
import pytest

from abstain.errors import DomainError, InputError, MissingInputError, ShapeError
from abstain.tables import read_predictions

GOOD = {"label": [0, 1], "prediction": [0, 0], "confidence": [0.9, 0.8]}


def test_types_of_confidence():
    for values in ([Decimal("0.5"), Decimal("0.25")], [1, 2], [True, False]):
        predictions = read_predictions(pl.DataFrame(GOOD | {"confidence": values})).only()
        assert predictions.confidence["confidence"].tolist() == [float(v) for v in values]
    with pytest.raises(
        DomainError, match="must contain numbers; got the text '2024-01-01' in row 0"
    ):
        read_predictions(pl.DataFrame(GOOD | {"confidence": [date(2024, 1, 1)] * 2}))
    with pytest.raises(InputError, match="complex"):
        read_predictions(GOOD | {"confidence": np.array([1j, 2])})
    with pytest.raises(ShapeError, match="must have one number per row"):
        read_predictions(GOOD | {"confidence": np.ones((2, 2))})


def test_split_by_dates_and_bytes():
    table = pl.DataFrame(GOOD | {"day": [date(2024, 1, 1), date(2024, 1, 2)], "b": [b"x", b"\xff"]})
    assert next(iter(read_predictions(table, by="day"))) == (("day", "2024-01-01"),)
    with pytest.raises(InputError, match="'b' contains Binary values"):
        read_predictions(table, by="b")


def test_boolean_and_categorical_classes():
    table = pl.DataFrame({"label": [True, False], "prediction": [True, True], "confidence": [1, 2]})
    assert read_predictions(table).only().correct.tolist() == [True, False]
    words = pl.DataFrame(
        {"label": ["a", "b"], "prediction": ["a", "a"], "confidence": [1, 2]},
        schema_overrides={"label": pl.Categorical, "prediction": pl.Enum(["b", "a"])},
    )
    assert read_predictions(words).only().correct.tolist() == [True, False]


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([5, None, 7], "3 values (5, 7, (missing))"),
        ([0.5, None, 2.5], "3 values (0.5, 2.5, (missing))"),
        ([True, None, True], "2 values (True, (missing))"),
        (["a", None, "b"], "3 values (a, b, (missing))"),
    ],
)
def test_what_stands_in_a_missing_entry_is_no_value(values, shown):
    table = pl.DataFrame({"confidence": [3, 2, 1], "correct": [1, 1, 0], "fold": values})
    (said,) = read_predictions(table).warnings
    assert f"'fold' has {shown}, which are evaluated together" in str(said)


def test_a_value_of_dropped_rows_is_none_of_those_that_are_mixed():
    table = pl.DataFrame(
        {"confidence": [3, 2, None], "correct": [1, 1, 0], "fold": ["a", "a", "b"]}
    )
    assert not any(
        "'fold'" in str(said) for said in read_predictions(table, missing="drop").warnings
    )


@pytest.mark.parametrize("values", [["a", "a", None, "b"], [1, 1, None, 2]])
def test_rows_without_a_value_stay_apart_where_others_are_dropped(values):
    table = pl.DataFrame({"confidence": [4, None, 2, 1], "correct": [1, 1, 1, 0], "shift": values})
    parts = read_predictions(table, by="shift", missing="drop")
    assert [name for ((_, name),) in parts] == [str(values[0]), "(missing)", str(values[3])]
    assert [p.n for p in parts.values()] == [1, 1, 1]


def test_text_that_happens_to_start_like_a_confidence():
    table = GOOD | {"confidence_level": ["high", "low"], "confidence_b": [1, 2]}
    assert list(read_predictions(table).only().confidence) == ["confidence", "confidence_b"]


def test_a_column_named_correct_that_is_something_else():
    reading = read_predictions(pl.DataFrame(GOOD | {"correct": ["a", "b"]}))
    assert not any("disagrees" in str(note) for note in reading.notes)


def test_lists_that_are_no_scores():
    table = pl.DataFrame({"label": [0, 1], "s": [["a", "b"], ["c", "d"]]})
    with pytest.raises(InputError, match="only lists of numbers are read"):
        read_predictions(table, logits="s")
    blocks = pl.DataFrame({"label": [0, 1], "s": [[1.0, 2.0]] * 2, "t": [[1.0, 2.0]] * 2})
    with pytest.raises(InputError, match="must be the only column"):
        read_predictions(blocks, logits=["s", "t"])


def test_features_alone_are_no_output():
    columns = {"label": [0, 1], "prediction": [0, 1], "features": np.ones((2, 3))}
    with pytest.raises(MissingInputError, match="no column with a default name for the confidence"):
        read_predictions(columns)


P = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]])


def test_missing_predictions_beside_scores():
    table = pl.DataFrame(
        {"label": ["a", "a", "b"], "p_a": P[:, 0], "p_b": P[:, 1], "prediction": ["a", "", None]}
    )
    chosen = {"probabilities": "p_*", "prediction": "prediction"}
    with pytest.raises(DomainError, match=r"2 of 3 rows .* have no prediction in 'prediction'"):
        read_predictions(table, **chosen)
    assert read_predictions(table, missing="drop", **chosen).only().n == 1
    rejected = read_predictions(table, missing="reject", **chosen).only()
    assert rejected.correct.tolist() == [True, False, False]
    assert rejected.probabilities.tolist() == P.tolist()


def test_text_labels_beside_a_block():
    names = read_predictions({"labels": ["b", "a", "b"], "probs": P})
    assert names.only().class_names == ("a", "b")
    codes = read_predictions({"labels": ["0", "0", "1"], "probs": np.c_[P, 0 * P[:, 0]]})
    assert codes.only().class_names == ("0", "1", "2")
    assert codes.only().correct.tolist() == [True, True, True]
    with pytest.raises(InputError, match="have no column of class scores"):
        read_predictions({"labels": ["x", "y", "z"], "probs": P})


def test_several_marks_of_unknown_classes():
    numbers = {"label": [0, -1, -2], "prediction": [0, 0, 0], "confidence": [1, 2, 3]}
    assert read_predictions(numbers, unknown_label=[-1, "-2"]).only().label_codes.tolist() == [
        0,
        -1,
        -1,
    ]
    texts = numbers | {"label": ["a", "x", "y"], "prediction": ["a"] * 3}
    assert read_predictions(texts, unknown_label=["x", "y"]).only().n_classes == 1


def test_dropped_rows_leave_every_column_together():
    table = pl.DataFrame(
        {"label": ["a", None, "b"], "prediction": ["a", "b", "b"], "confidence": [0.1, 0.2, 0.3],
         "w": [1.0, 2.0, 3.0], "s": ["x", "y", "x"]}
    )  # fmt: skip
    reading = read_predictions(table, missing="drop", weight="w", by="s", group="s", id="w")
    predictions = reading[("s", "x"),]
    assert len(reading) == 1
    assert predictions.confidence["confidence"].tolist() == [0.1, 0.3]
    assert predictions.weight.tolist() == predictions.ids.tolist() == [1, 3]


@pytest.mark.parametrize(
    "rows",
    [
        ["18446744073709551614", "18446744073709551615"],
        ["NA", "9007199254740993", "9007199254740992"],
    ],
)
def test_long_integers_of_a_text_file_do_not_tie(tmp_path, rows):
    path = tmp_path / "preds.csv"
    lines = [f"{i % 2},1,{row}" for i, row in enumerate(rows)]
    path.write_text("\n".join(["label,prediction,confidence", *lines]), encoding="utf-8")
    with pytest.raises(
        DomainError, match=r"preds\.csv: `confidence` must hold numbers that float64"
    ):
        read_predictions(path, missing="drop")
