"""The real files of the shared folder, as they are."""

import numpy as np
import polars as pl
import pytest

from abstain.errors import InputError
from abstain.tables import read_predictions


@pytest.fixture
def real(shared):
    path = shared / "data" / "real"
    if not path.is_dir():
        pytest.skip(f"no real data at {path}")
    return path


@pytest.mark.parametrize("name", ["langid_lingua", "ocr_tesseract", "digits_ccexam"])
def test_by_study_as_they_are(real, name):
    path = real / f"{name}.parquet"
    table = pl.read_parquet(path, columns=["study", "label", "prediction", "confidence", "correct"])
    reading = read_predictions(path, by=["study"])
    assert list(reading) == [(("study", s),) for s in table["study"].unique(maintain_order=True)]
    for split, predictions in reading.items():
        rows = table.filter(pl.col("study") == split[0][1])
        assert np.array_equal(predictions.correct, rows["correct"].to_numpy())
        confidence = predictions.confidence["confidence"]
        assert np.array_equal(confidence, rows["confidence"].to_numpy())
        assert confidence.dtype == rows["confidence"].to_numpy().dtype
    assert any("look like class scores and were not used" in str(note) for note in reading.notes)
    assert not any("disagrees" in str(note) for note in reading.notes)


def test_abstentions_are_noted(real):
    notes = read_predictions(real / "ocr_tesseract.parquet").notes
    assert any("2,669 of 11,560 rows (23.09%) have an empty prediction" in str(n) for n in notes)
    assert any(
        "2,685 of 11,560 rows (23.23%) have a 'confidence' of exactly 0" in str(n) for n in notes
    )
    assert any(
        "never predicted" in str(n) for n in read_predictions(real / "langid_lingua.parquet").notes
    )


def test_digits_with_new_classes(real):
    path = real / "digits_ccexam.parquet"
    assert any("unknown_label=-1" in str(note) for note in read_predictions(path).notes)
    reading = read_predictions(path, by=["model", "study"], logits="logit_*", unknown_label="-1")
    assert len(reading) == 60
    predictions = reading[("model", "usps"), ("study", "newclass_letters")]
    assert not predictions.correct.any()
    assert predictions.class_names == tuple(range(10))
    with pytest.raises(InputError, match="pass unknown_label=-1"):
        read_predictions(path, logits="logit_*")


def test_langid_with_probabilities(real):
    path = real / "langid_lingua.parquet"
    with pytest.raises(
        InputError, match=r"have no probabilities .* in 'p_\*', the first in row 120"
    ):
        read_predictions(path, probabilities="p_*")
    reading = read_predictions(
        path, by="study", probabilities="p_*", missing="reject", unknown_label="*"
    )
    table = pl.read_parquet(path, columns=["study", "correct", "prediction"])
    for split, predictions in reading.items():
        rows = table.filter(pl.col("study") == split[0][1])
        # Where the model answered its answer is the largest score, but for ties.
        agree = predictions.correct == rows["correct"].to_numpy()
        assert agree.mean() > 0.999
        assert not predictions.correct[(rows["prediction"] == "").to_numpy()].any()


def test_archives(real):
    reading = read_predictions(real / "mnist_crossval_probabilities.npz")
    assert reading.only().probabilities.dtype == np.float16
    assert "keys not used: corrected_labels" in list(map(str, reading.notes))
    given = read_predictions(real / "imdb_crossval_probabilities.npz").only()
    corrected = read_predictions(
        real / "imdb_crossval_probabilities.npz", label="corrected_labels"
    ).only()
    assert int((given.labels != corrected.labels).sum()) == 173


def test_published_csv(real):
    predictions = read_predictions(real / "mnist_cnn_predictions.csv").only()
    assert predictions.n == 10_000
    assert predictions.correct.mean() == pytest.approx(0.9816, abs=0.01)
