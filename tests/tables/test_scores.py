"""Class scores: columns by pattern, class names, blocks, archives, abstentions, notes."""

import numpy as np
import polars as pl
import pytest

from abstain.errors import DomainError, InputError
from abstain.tables import read_predictions

P = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.3, 0.5], [0.4, 0.3, 0.3]])


def frame(names, labels, **more):
    columns = {name: P[:, i] for i, name in enumerate(names)}
    return pl.DataFrame({"label": labels, **columns, **more})


def test_pattern_with_numeric_labels():
    table = frame(["p_0", "p_1", "p_2"], [0, 1, 1, 2])
    predictions = read_predictions(table, probabilities="p_*").only()
    assert predictions.class_names == (0, 1, 2)
    assert predictions.correct.tolist() == [True, True, False, False]
    assert predictions.probabilities.tolist() == P.tolist()


def test_order_of_columns_is_the_order_of_classes():
    table = frame(["p_2", "p_0", "p_1"], [2, 0, 1, 2])
    predictions = read_predictions(table, probabilities="p_*").only()
    assert predictions.class_names == (2, 0, 1)
    assert predictions.correct.all()


@pytest.mark.parametrize("names", [("prob_cat", "prob_car", "prob_dog"), ("cat", "car", "dog"),
                                   ("p.cat", "p.car", "p.dog")])  # fmt: skip
def test_class_names_by_common_prefix(names):
    table = frame(names, ["cat", "car", "dog", "cat"])
    predictions = read_predictions(table, probabilities=list(names)).only()
    assert predictions.class_names == ("cat", "car", "dog")
    assert predictions.correct.all()


def test_digits_behind_a_bare_letter():
    table = frame(["p10", "p11", "p12"], [10, 11, 12, 10])
    assert read_predictions(table, logits=["p10", "p11", "p12"]).only().class_names == (10, 11, 12)


def test_scores_without_prefix_named_by_position():
    reading = read_predictions(frame(["a", "b", "c"], [0, 1, 2, 0]), probabilities=["a", "b", "c"])
    assert reading.only().correct.all()
    assert any("labels are column numbers from 0" in str(note) for note in reading.notes)


def test_prediction_beside_scores():
    table = frame(["p_0", "p_1", "p_2"], [0, 1, 2, 0], prediction=[0, 1, 1, 1])
    reading = read_predictions(table, probabilities="p_*")
    assert reading.only().correct.all()
    assert any("pass prediction='prediction' to use the column" in str(n) for n in reading.notes)
    named = read_predictions(table, probabilities="p_*", prediction="prediction").only()
    assert named.correct.tolist() == [True, True, False, False]


def test_unused_scores_are_pointed_out():
    table = frame(["p_0", "p_1", "p_2"], [0, 1, 2, 0], prediction=[0, 1, 1, 1], confidence=[1] * 4)
    notes = read_predictions(table).notes
    assert any(
        "'p_0' to 'p_2' look like class scores" in str(n) and "logits='p_*'" in str(n)
        for n in notes
    )


def test_labels_without_a_column():
    table = frame(["p_a", "p_b", "p_c"], ["a", "b", "x", "y"])
    with pytest.raises(InputError, match=r"2 values of 'label' have no column.*'x', 'y'"):
        read_predictions(table, probabilities="p_*")
    for unknown in ("*", ["x", "y"]):
        reading = read_predictions(table, probabilities="p_*", unknown_label=unknown)
        assert reading.only().label_codes.tolist() == [0, 1, -1, -1]
        assert any(
            "2 of 4 rows (50.00%) have a label of an unknown class" in str(n) for n in reading.notes
        )
    with pytest.raises(InputError, match="1 value of 'label' has"):
        read_predictions(table, probabilities="p_*", unknown_label="x")


def test_unknown_label_in_the_type_of_the_column():
    table = {"label": [0, -1], "prediction": [0, 0], "confidence": [0.5, 0.4]}
    assert read_predictions(table, unknown_label="-1").only().label_codes.tolist() == [0, -1]
    with pytest.raises(InputError, match="`unknown_label` must be a number"):
        read_predictions(table, unknown_label="other")
    absent = read_predictions(table, unknown_label=9)
    assert any("no sample has the label 9" in str(note) for note in absent.notes)
    notes = read_predictions(table).notes
    assert any("never predicted" in str(n) and "unknown_label=-1" in str(n) for n in notes)


def test_rows_without_scores():
    table = frame(["p_0", "p_1", "p_2"], [0, 1, 0, 0]).with_row_index()
    blank = table.with_columns(pl.when(pl.col("index") != 3).then(pl.col(r"^p_.*$")).otherwise(0.0))
    with pytest.raises(DomainError, match=r"1 of 4 rows .* have no probabilities .* in 'p_\*'"):
        read_predictions(blank, probabilities="p_*")
    assert read_predictions(blank, probabilities="p_*", missing="drop").only().n == 3
    rejected = read_predictions(blank, probabilities="p_*", missing="reject").only()
    assert rejected.probabilities[3].tolist() == [1 / 3] * 3
    # The label is the class 0, which equal scores would predict: an abstention stays wrong.
    assert rejected.correct.tolist() == [True, True, False, False]


def test_a_column_of_lists(tmp_path):
    path = tmp_path / "p.parquet"
    pl.DataFrame({"label": ["a", "b", "c", "a"], "probs": P.tolist()}).write_parquet(path)
    reading = read_predictions(path, probabilities="probs")
    assert reading.only().class_names == ("a", "b", "c")
    assert reading.only().correct.all()
    assert any("sorted order" in str(note) for note in reading.notes)
    pl.DataFrame({"label": [0, 1], "probs": [[0.5, 0.5], [1.0]]}).write_parquet(path)
    with pytest.raises(InputError, match="lists of different lengths"):
        read_predictions(path, probabilities="probs")


def test_archive_with_everything(tmp_path):
    path = tmp_path / "run.npz"
    rng = np.random.default_rng(0)
    np.savez(
        path,
        logits=np.log(P).astype(np.float16), labels=[0, 1, 2, 0], corrected_labels=[0, 1, 2, 1],
        confidence_a=rng.random(4), margin=rng.random(4), mcd_logits=rng.normal(size=(4, 5, 3)),
        features=rng.normal(size=(4, 7)), group=["x", "x", "y", "y"], weights=[1.0, 2, 1, 1],
        ids=np.arange(4), scalar=3, other=rng.random((2, 2)),
    )  # fmt: skip
    reading = read_predictions(path)
    predictions = reading.only()
    assert predictions.logits.dtype == np.float16
    assert predictions.logit_samples.shape == (4, 5, 3)
    assert predictions.features.shape == (4, 7)
    assert predictions.group.tolist() == ["x", "x", "y", "y"]
    assert predictions.weight.tolist() == [1, 2, 1, 1]
    assert list(predictions.confidence) == ["confidence_a"]
    assert "keys not used: corrected_labels, margin, scalar, other" in list(map(str, reading.notes))
    assert any("stored as float16" in str(note) and "logits" in str(note) for note in reading.notes)
    other = read_predictions(path, label="corrected_labels", confidence="margin").only()
    assert other.labels.tolist() == [0, 1, 2, 1]
    assert list(other.confidence) == ["margin"]


def test_weights_of_a_layer_are_not_weights_of_samples(tmp_path):
    path = tmp_path / "run.npz"
    np.savez(path, logits=np.log(P), labels=[0, 1, 2, 0], weight=np.ones((3, 9)))
    reading = read_predictions(path)
    assert reading.only().weight is None
    assert "keys not used: weight" in list(map(str, reading.notes))


def test_samples_alone():
    samples = np.stack([P, P[:, ::-1]], axis=1)
    predictions = read_predictions({"labels": [0, 1, 2, 0], "probability_samples": samples}).only()
    assert predictions.probability_samples.shape == (4, 2, 3)


def test_by_splits_scores_too():
    table = frame(["p_0", "p_1", "p_2"], [0, 1, 2, 0], s=["a", "b", "a", "b"])
    reading = read_predictions(table, probabilities="p_*", by="s")
    assert reading[("s", "b"),].probabilities.tolist() == P[[1, 3]].tolist()


def test_float16_survives():
    half = np.array([0.5, 0.25], dtype=np.float16)
    reading = read_predictions({"label": [0, 1], "prediction": [0, 1], "confidence": half})
    assert reading.only().confidence["confidence"].dtype == np.float16
    assert any("float16" in str(note) for note in reading.notes)


def test_empty_predictions_and_zero_confidence_are_noted():
    notes = read_predictions(
        pl.DataFrame(
            {"label": ["a", "b", "a"], "prediction": ["a", "", ""], "confidence": [0.5, 0, 0]}
        )
    ).notes
    assert any("2 of 3 rows (66.67%) have an empty prediction" in str(note) for note in notes)
    assert any("have a 'confidence' of exactly 0" in str(note) for note in notes)


def test_every_label_that_is_never_predicted_is_named_in_the_option():
    labels = [*range(8), *([8] * 40)]
    columns = {"label": labels, "prediction": [8] * 48, "confidence": np.linspace(0, 1, 48)}
    notes = read_predictions(columns).notes
    assert any("unknown_label=[0, 1, 2, 3, 4, 5, 6, 7]" in str(note) for note in notes)
