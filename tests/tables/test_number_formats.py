"""Text files as they are outside of English-speaking countries: decimals, percentages, encodings."""

import numpy as np
import pytest

import abstain as ab
from abstain.cli.main import run
from abstain.errors import DomainError, FileFormatError, InputError
from abstain.tables import read_predictions
from abstain.tables.number_formats import look_like_percentages, parse_numbers

GERMAN = "label;prediction;confidence;weight\na;a;0,9;1\nb;a;0,4;2,5\na;a;;1\n"
PERCENT = "label,prediction,confidence\na,a,90%\nb,a,40%\na,a,70.5%\n"


def write(folder, text, encoding="utf-8"):
    path = folder / "answers.csv"
    path.write_bytes(text.encode(encoding))
    return path


def test_decimal_commas(tmp_path):
    path = write(tmp_path, GERMAN)
    answers = read_predictions(path, decimal=",", missing="drop", weight="weight").only()
    np.testing.assert_array_equal(answers.confidence["confidence"], [0.9, 0.4])
    np.testing.assert_array_equal(answers.weight, [1, 2.5])
    scan = ab.scan_predictions(path, decimal=",", missing="drop", weight="weight")
    value = ab.evaluate(scan, metrics=["aurc_plugin"]).value("aurc_plugin")
    assert value == pytest.approx(ab.aurc([0.9, 0.4], [0, 1], estimator="plugin", weight=[1, 2.5]))
    with pytest.raises(DomainError, match=r"the text '0,9' in row 0.*pass decimal=','"):
        read_predictions(path)
    with pytest.raises(InputError, match=r"`decimal` must be"):
        read_predictions(path, decimal=";")


def test_decimal_commas_on_the_command_line(tmp_path, capsys):
    path = write(tmp_path, GERMAN)
    assert run(["evaluate", str(path)]) == 2
    assert "--decimal ," in " ".join(capsys.readouterr().err.split())
    command = ["evaluate", str(path), "--decimal", ",", "--missing", "drop", "--interval", "none"]
    assert run(command) == 0


def test_percent_signs(tmp_path):
    fractions = [0.9, 0.4, 0.705]
    answers = read_predictions(write(tmp_path, PERCENT)).only()
    np.testing.assert_array_equal(answers.confidence["confidence"], fractions)
    columns = {"label": [0, 1, 0], "prediction": [0, 0, 0], "confidence": ["90%", "40 %", "70.5%"]}
    np.testing.assert_array_equal(
        read_predictions(columns).only().confidence["confidence"], fractions
    )
    assert parse_numbers(["90%", "0.4"]) is None


STATED = {"correct": [1, 0, 1, 0], "stated": [90, 80, 55, 100], "margin": [1.5, 0.5, -1, 60]}


def test_confidences_between_0_and_100():
    options = {"confidence": ["stated", "margin"]}
    plain = read_predictions(STATED, **options)
    assert any("pass percent='stated' to divide it by 100" in str(note) for note in plain.notes)
    np.testing.assert_array_equal(plain.only().confidence["stated"], STATED["stated"])
    reading = read_predictions(STATED, **options, percent="stated")
    np.testing.assert_array_equal(reading.only().confidence["stated"], [0.9, 0.8, 0.55, 1.0])
    np.testing.assert_array_equal(reading.only().confidence["margin"], STATED["margin"])
    assert "'stated' divided by 100" in str(reading.notes[0])
    with pytest.raises(DomainError, match=r"from 0 to 100, .*; got -1.0 in row 2"):
        read_predictions(STATED, **options, percent=True)


@pytest.mark.parametrize("confidence", [["90%", "40%", "70%"], [0.9, 0.4, 0.7]])
def test_fractions_that_are_divided_by_100_are_noted(confidence):
    columns = {"correct": [1, 0, 1], "confidence": confidence}
    notes = read_predictions(columns, percent=True).notes
    assert any("omit percent='confidence'" in str(note) for note in notes)
    assert not any("omit" in str(note) for note in read_predictions(columns).notes)


def test_uncertainties_in_percent():
    options = {"confidence": "stated", "percent": True, "lower_is_safer": True}
    turned = read_predictions(STATED, **options).only()
    np.testing.assert_array_equal(turned.confidence["-stated"], [-0.9, -0.8, -0.55, -1.0])


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([90, 80, 100], True),
        ([90.0, np.nan, 55.0], True),
        ([0, 1, 1], False),
        ([0.5, 0.9], False),
        ([90, 101], False),
        ([-1, 90], False),
        ([50.5, 60.25, 12.125], False),
        ([np.nan], False),
    ],
)
def test_what_looks_like_percentages(values, expected):
    assert look_like_percentages(np.array(values)) is expected


@pytest.mark.parametrize("n_rows", [0, 2000])
def test_the_encoding_is_named(tmp_path, n_rows):
    rows = "café,café,0.9\nthé,café,0.4\n" + "a,a,0.5\n" * n_rows
    path = write(tmp_path, "label,prediction,confidence\n" + rows, "latin-1")
    message = r"not text in UTF-8 \(byte 0xe9 in line 2\); it is probably Latin-1 \(WINDOWS-1252\)"
    with pytest.raises(FileFormatError, match=message):
        read_predictions(path)
    with pytest.raises(FileFormatError, match=message):
        ab.evaluate(ab.scan_predictions(path))
    with pytest.raises(FileFormatError, match=r"probably UTF-16.*iconv -f UTF-16"):
        read_predictions(write(tmp_path, "label,prediction,confidence\n", "utf-16"))
