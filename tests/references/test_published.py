"""Published numbers on real predictions, through the public functions."""

from pathlib import Path

import numpy as np
import pytest

import abstain as ab
from abstain.tables import read_predictions


@pytest.fixture(scope="module")
def mnist(shared: Path) -> tuple[np.ndarray, np.ndarray]:
    path = shared / "data" / "real" / "mnist_cnn_predictions.csv"
    p = read_predictions(path, label="y_true", prediction="y_pred", confidence="confidence").only()
    return p.confidence["confidence"], ~p.correct


@pytest.fixture(scope="module")
def table(shared: Path) -> np.ndarray:
    path = shared / "data" / "real" / "mnist_cnn_cwsa_published.csv"
    rows: np.ndarray = np.genfromtxt(path, delimiter=",", names=True)
    assert rows.size == 20
    return rows


def test_cwsa_at_all_published_thresholds(
    mnist: tuple[np.ndarray, np.ndarray], table: np.ndarray
) -> None:
    # genfromtxt strips the plus: CWSA and CWSA_1 are CWSA and CWSA+.
    sweep = ab.cwsa_sweep(*mnist, thresholds=table["Threshold"])
    for got, published in (
        (sweep.selective_accuracy, table["SelectiveAccuracy"]),
        (sweep.cwsa, table["CWSA"]),
        (sweep.cwsa_plus, table["CWSA_1"]),
        (sweep.coverage, table["Coverage"]),
    ):
        assert np.abs(got - published).max() < 1e-9
    for row in table:
        t = float(row["Threshold"])
        assert ab.cwsa(*mnist, threshold=t) == pytest.approx(row["CWSA"], abs=1e-9)
        assert ab.cwsa_plus(*mnist, threshold=t) == pytest.approx(row["CWSA_1"], abs=1e-9)


def test_every_cell_of_the_published_file(
    mnist: tuple[np.ndarray, np.ndarray], table: np.ndarray
) -> None:
    # 20 thresholds by 7 columns: the grid itself, four numbers at a threshold, two of all samples.
    sweep = ab.cwsa_sweep(*mnist)
    ours = {
        "Threshold": sweep.threshold,
        "SelectiveAccuracy": sweep.selective_accuracy,
        "CWSA": sweep.cwsa,
        "CWSA_1": sweep.cwsa_plus,
        "Coverage": sweep.coverage,
        "ECE": np.full(20, ab.ece(*mnist, bins=10, convention="right_open")),
        "AURC": np.full(20, ab.published_aurc(*mnist, convention="cwsa")),
    }
    assert tuple(ours) == table.dtype.names
    for name, values in ours.items():
        assert np.abs(values - table[name]).max() < (1e-6 if name == "AURC" else 1e-9), name


def test_one_name_evaluates_the_published_sweep(
    mnist: tuple[np.ndarray, np.ndarray], table: np.ndarray
) -> None:
    p = ab.Predictions(confidence=mnist[0], loss=mnist[1].astype(float))
    names = ["cwsa@0.5:0.99:20", "cwsa_plus@0.5:0.99:20"]
    evaluation = ab.evaluate(p, metrics=names, interval="none", curves=False)
    values = np.array([result.value for result in evaluation.results]).reshape(2, 20)
    assert np.abs(values - [table["CWSA"], table["CWSA_1"]]).max() < 1e-9


def test_auc_mcc(mnist: tuple[np.ndarray, np.ndarray]) -> None:
    sweep = ab.cwsa_sweep(*mnist)
    assert sweep.auc_mcc("cwsa") == pytest.approx(0.1533, abs=5e-5)
    assert sweep.auc_mcc("cwsa_plus") == pytest.approx(0.1701, abs=5e-5)
    # Only what lies between the coverages of both ends counts.
    assert sweep.auc_mcc("selective_accuracy") < sweep.coverage[0] - sweep.coverage[-1]


def test_ece_and_aurc_of_the_cwsa_code(
    mnist: tuple[np.ndarray, np.ndarray], table: np.ndarray
) -> None:
    ece = ab.ece(*mnist, bins=10, convention="right_open")
    assert ece == pytest.approx(table["ECE"][0], abs=1e-9)
    aurc = ab.published_aurc(*mnist, convention="cwsa")
    assert aurc == pytest.approx(table["AURC"][0], abs=1e-6)


def test_real_tables_evaluate_as_they_are(shared: Path) -> None:
    for name, parts in (("langid_lingua", 12), ("ocr_tesseract", 12), ("digits_ccexam", 20)):
        path = shared / "data" / "real" / f"{name}.parquet"
        reading = read_predictions(path, by="study")
        evaluation = ab.evaluate(reading, metrics=["augrc", "accuracy", "ece"], notes=reading.notes)
        assert len(reading) == parts
        assert len(evaluation) == 3 * parts
        for split, predictions in reading.items():
            c, wrong = predictions.confidence["confidence"], ~predictions.correct
            assert evaluation.value("augrc", split=split) == ab.augrc(c, wrong)


def test_the_findings_say_what_the_real_tables_hold(shared: Path) -> None:
    folder = shared / "data" / "real"
    digits = ab.evaluate(read_predictions(folder / "digits_ccexam.parquet", by=["model", "study"]))
    text = " ".join(f.message for f in digits.notes)
    assert "have the highest confidence, exactly 1; no threshold separates them" in text
    assert "samples are wrong. With fewer than 10 failures" in text
    ocr = ab.evaluate(read_predictions(folder / "ocr_tesseract.parquet", by="study"))
    text = " ".join(f.message for f in ocr.notes)
    assert "have the lowest confidence, exactly 0" in text


def test_probabilities_stored_as_float16_keep_their_order(shared: Path) -> None:
    path = shared / "data" / "real" / "mnist_crossval_probabilities.npz"
    p = read_predictions(path, probabilities="probabilities").only()
    naive = p.probabilities.max(axis=1)
    kept = ab.confidence.score("msr", p).values
    assert np.mean(naive == 1) > 0.4
    assert np.unique(kept).size > np.unique(naive).size
    assert ab.augrc(kept, ~p.correct) < ab.augrc(naive, ~p.correct)
