"""Files whose numbers can be read in more than one way: nothing is merged silently."""

import numpy as np
import polars as pl
import pytest

import abstain as ab
from abstain.tables import read_predictions


def written(tmp_path, text, name="p.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_labels_too_long_for_64_bits_stay_apart(tmp_path):
    first, second = 2**63 + 1, 2**63 + 3
    rows = [f"{first},{first},0.9", f"{first},{second},0.8", f"{second},{second},0.7"]
    path = written(tmp_path, "label,prediction,confidence\n" + "\n".join(rows) + "\n")
    assert read_predictions(path).only().correct.tolist() == [True, False, True]


def test_labels_as_large_decimals_raise_an_error():
    frame = pl.DataFrame(
        {"label": [1e20, 2e20], "prediction": [1e20, 1e20], "confidence": [0.1, 0.2]}
    )
    with pytest.raises(ab.errors.InputError, match="too large to be exact"):
        read_predictions(frame)


@pytest.mark.parametrize("label", ["01", "1.0", "1e0"])
def test_the_same_number_in_other_words_is_another_class(tmp_path, label):
    text = f"label,prediction,confidence\n1,1,0.9\n{label},1,0.8\n"
    reading = read_predictions(written(tmp_path, text))
    assert reading.only().correct.tolist() == [True, False]
    assert any("compared as text" in str(note) for note in reading.notes)


def test_a_column_of_decimals_beside_one_of_integers_is_one_kind(tmp_path):
    reading = read_predictions(
        written(tmp_path, "label,prediction,confidence\n1.0,1,0.9\n2.0,1,0.8\n")
    )
    assert reading.only().correct.tolist() == [True, False]
    assert not any("compared as text" in str(note) for note in reading.notes)


@pytest.mark.parametrize(("kind", "scores"), [("probabilities", [0.9, 0.2]), ("logits", [2, -1])])
def test_one_column_of_scores_is_the_second_of_two_classes(tmp_path, kind, scores):
    text = f"y_true,y_score\n1,{scores[0]}\n1,{scores[1]}\n"
    reading = read_predictions(written(tmp_path, text), **{kind: "y_score"})
    assert reading.only().correct.tolist() == [True, False]
    assert any("second of two classes" in str(note) for note in reading.notes)


def test_probabilities_rounded_when_written(tmp_path):
    text = "label,p_a,p_b,p_c\na,0.333,0.333,0.333\nb,0.1,0.801,0.1\n"
    reading = read_predictions(written(tmp_path, text), probabilities="p_*")
    assert np.allclose(reading.only().class_view().probabilities.sum(axis=1), 1)
    assert any("as rounding to 3 decimals explains" in str(note) for note in reading.notes)
    with pytest.raises(ab.errors.InputError, match="must sum to 1"):
        read_predictions(written(tmp_path, text.replace("0.801", "0.6")), probabilities="p_*")


def test_a_log_probability_of_minus_infinity_is_the_lowest_confidence():
    columns = {"label": [1, 1, 0], "prediction": [1, 0, 0], "confidence": [-0.1, -np.inf, -2.0]}
    with pytest.raises(ab.errors.InputError, match="1 of 3 rows"):
        read_predictions(columns)
    assert read_predictions(columns, missing="drop").only().n == 2
    kept = read_predictions(columns, missing="reject").only()
    assert kept.confidence["confidence"].tolist() == [-0.1, -2.0, -2.0]


def test_samples_of_a_split_keep_their_row_of_the_file():
    columns = {
        "label": [1, 1, 0, 0],
        "prediction": [1, 0, 0, 0],
        "confidence": [0.4, 0.3, 0.2, 0.1],
        "site": ["a", "b", "a", "b"],
    }
    reading = read_predictions(columns, by="site")
    assert reading[("site", "b"),].ids.tolist() == [1, 3]
