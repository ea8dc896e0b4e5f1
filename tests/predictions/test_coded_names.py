"""Names as codes: the same predictions as from names, and no name looked at twice."""

import numpy as np
import pytest

import abstain.predictions.classes as classes_module
from abstain._foundation.names import distinct_names, encode_names
from abstain.errors import DomainError
from abstain.predictions import Predictions
from abstain.predictions.classes import CodedNames
from abstain.tables import read_predictions

KINDS = np.array(["ant", "bee", "cat", "dog"], dtype=object)


def column(codes) -> CodedNames:
    found, own = np.unique(codes, return_inverse=True)
    return CodedNames(own.astype(np.int32), KINDS[found])


def pair(rng, **options):
    label, prediction = column(rng.integers(0, 4, 50)), column(rng.integers(0, 3, 50))
    coded = Predictions(labels=label, prediction=prediction, **options)
    named = Predictions(labels=np.asarray(label), prediction=np.asarray(prediction), **options)
    return coded, named


@pytest.mark.parametrize("options", [{}, {"unknown_label": "dog"}, {"classes": KINDS[::-1]}])
def test_codes_give_what_names_give(options):
    coded_names, named = pair(np.random.default_rng(3), **options)
    assert coded_names.classes == named.classes
    for rows in (slice(None), [3, 3, 1], np.arange(50) % 3 == 0):
        p, q = coded_names.subset(rows), named.subset(rows)
        for name in ("labels", "prediction", "label_codes", "prediction_codes", "correct"):
            assert np.array_equal(getattr(p, name), getattr(q, name)), name


def test_a_name_that_is_no_class_raises_an_error_with_its_row():
    for wrap in (np.asarray, lambda x: x):
        labels = wrap(CodedNames(np.array([0, 1, 0]), np.array(["ant", "fly"], dtype=object)))
        with pytest.raises(DomainError, match="'fly' at index 1"):
            Predictions(labels=labels, prediction=np.array(["ant"] * 3), classes=["ant", "bee"])


def test_rows_of_codes_name_only_what_is_there():
    rows = CodedNames(np.array([0, 1, 2, 1]), KINDS[:3])[np.array([1, 3])]
    assert rows.distinct() == ["bee"]
    assert np.asarray(rows).tolist() == ["bee", "bee"]


@pytest.mark.parametrize("split", [False, True])
def test_text_of_a_file_is_not_looked_up_row_by_row(tmp_path, monkeypatch, split):
    lines = [f"{KINDS[i % 4]},{KINDS[i % 3]},0.{i + 1},{i % 2}" for i in range(12)]
    path = tmp_path / "some.csv"
    path.write_text("\n".join(["label,prediction,confidence,part", *lines]))
    monkeypatch.setattr(classes_module, "encode_names", None)  # finds the codes of bare names
    reading = read_predictions(path, by="part" if split else ())
    wrong = np.concatenate([~p.correct for p in reading.values()])
    assert wrong.size == 12
    assert wrong.sum() == sum(i % 4 != i % 3 for i in range(12))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64])
@pytest.mark.parametrize("end", ["least", "most", "both"])
def test_whole_numbers_are_counted_or_sorted_alike(dtype, end):
    info, rng = np.iinfo(dtype), np.random.default_rng(0)
    least = info.max - 5 if end == "most" else info.min
    most = info.min + 5 if end == "least" else info.max
    for n in (1, 3, 400):
        values = rng.integers(least, most, n, dtype=dtype, endpoint=True)
        found, place = np.unique(values, return_inverse=True)
        kinds, codes = encode_names(values, "labels")
        assert kinds == distinct_names(values, "labels") == found.tolist()
        assert codes.tolist() == place.tolist()
