"""Arrays in files of their own (.npy) are one set of predictions, and run nothing."""

import numpy as np
import pytest

import abstain as ab
from abstain.errors import FileFormatError, InputError, MissingInputError, ShapeError

LABELS = np.array([0, 1, 1, 0])
PROBABILITIES = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.7, 0.3]], np.float32)


def saved(folder, **arrays):
    for name, values in arrays.items():
        np.save(folder / f"{name}.npy", values, allow_pickle=values.dtype.hasobject)
    return [folder / f"{name}.npy" for name in arrays]


@pytest.mark.parametrize("order", ["C", "F"])
def test_they_are_the_keys_of_one_set(tmp_path, order):
    stored = np.array(PROBABILITIES, order=order)
    paths = saved(tmp_path, labels=LABELS, probabilities=stored)
    result = ab.read_predictions(paths).only()
    np.testing.assert_array_equal(result.probabilities, PROBABILITIES)
    assert result.probabilities.dtype == np.float32
    assert result.correct.tolist() == [True, True, False, True]
    named = saved(tmp_path, y=LABELS.astype(str), out=stored)
    with pytest.raises(MissingInputError, match=r"y\.npy, out\.npy does not define"):
        ab.read_predictions(named)


def test_text_is_read(tmp_path):
    names = np.array(["cat", "dog", "dog", "cat"])
    answers = np.array(["cat", "dog", "cat", "cat"])
    paths = saved(tmp_path, label=names, prediction=answers, confidence=PROBABILITIES.max(1))
    assert ab.read_predictions(paths).only().correct.tolist() == [True, True, False, True]


def test_what_does_not_belong_together_raises_an_error(tmp_path):
    paths = saved(tmp_path, labels=LABELS, probabilities=PROBABILITIES[:3])
    with pytest.raises(ShapeError, match=r"shapes labels \(4,\), probabilities \(3, 2\)"):
        ab.read_predictions(paths)
    (tmp_path / "other.csv").write_text("label,prediction,confidence\n0,0,0.5\n")
    with pytest.raises(InputError, match=r"labels\.npy contains one array and other\.csv"):
        ab.read_predictions([paths[0], tmp_path / "other.csv"])
    with pytest.raises(InputError, match="two files contain an array named 'labels'"):
        ab.read_predictions([paths[0], paths[0]])


def test_labels_of_several_numbers_a_row_raise_an_error(tmp_path):
    paths = saved(tmp_path, labels=np.zeros((4, 2, 2)), probabilities=PROBABILITIES)
    with pytest.raises(
        ShapeError, match=r"'labels' must have one number or text per row; got shape"
    ):
        ab.read_predictions(paths)


class Armed:
    def __reduce__(self):
        return print, ("this ran",)


def test_nothing_is_unpickled(tmp_path, capsys):
    paths = saved(tmp_path, labels=np.array([Armed(), Armed()], object))
    with pytest.raises(FileFormatError, match="Python objects"):
        ab.read_predictions(paths)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("cut", [0, 5, 20, 130])
def test_a_damaged_file_is_one_sentence(tmp_path, cut):
    (path,) = saved(tmp_path, labels=LABELS)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(FileFormatError, match=r"labels\.npy"):
        ab.read_predictions([path])


def test_a_header_that_claims_more_than_the_file_has_raises_an_error(tmp_path):
    (path,) = saved(tmp_path, labels=LABELS)
    path.write_bytes(path.read_bytes().replace(b"(4,)", b"(9,)"))
    with pytest.raises(FileFormatError, match="claims 9 entries"):
        ab.read_predictions([path])
