"""Published data sets: read as they were written, and damaged ones refused in plain words."""

import gzip
import subprocess
import sys

import numpy as np
import pytest
from bench.tests.data import published_files as write

from abstain.errors import FileFormatError, InputError, MissingInputError
from abstain_bench.data import DATASETS, Images, published
from abstain_bench.data.published import HELD_OUT_FINE, ImageFiles

pytest.importorskip("PIL")


# ------------------------------------------------------------------------------------ CIFAR-C
def test_cifar_c_gives_one_severity_in_the_order_of_the_test_pictures(tmp_path):
    write.write_cifar_c(tmp_path, records=4)
    foggy = published.read_cifar10_c(tmp_path, "fog", 3, records=4)
    assert foggy.shape == (3, 32, 32)
    assert foggy.pixels[1, :, 0, 0].tolist() == [27, 28, 29]  # image 2 * 4 + 1, times 3
    assert foggy.labels.tolist() == [0, 1, 2, 3]
    assert foggy.classes[8] == "ship"
    foggy.pixels[0] = 0  # a copy: the file stays as it is
    assert published.read_cifar10_c(tmp_path, "fog", 3, records=4).pixels[0, 0, 0, 0] == 24


def test_cifar100_c_takes_names(tmp_path):
    place = write.write_cifar_c(tmp_path, name="CIFAR-100-C", classes=100)
    names = tuple(f"class {i}" for i in range(100))
    result = published.read_cifar100_c(place, "fog", 1, classes=names, records=4)
    assert (result.n_classes, result.classes[7]) == (100, "class 7")
    with pytest.raises(InputError, match="100 classes"):
        published.read_cifar100_c(place, "fog", 1, classes=("a",), records=4)


def test_cifar_c_of_official_size_is_expected_unless_told(tmp_path):
    write.write_cifar_c(tmp_path)
    with pytest.raises(FileFormatError, match=r"fog.npy must hold .*50000, 32, 32, 3"):
        published.read_cifar10_c(tmp_path, "fog", 1)


def cut(path, share=0.6):
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])


def pickled(path):
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda p: cut(p / "fog.npy"), r"fog.npy is cut off or damaged .*fetch cifar10-c"),
        (lambda p: pickled(p / "fog.npy"), r"fog.npy .*made of pickles, which are never read"),
        (lambda p: (p / "fog.npy").write_bytes(b"\x80\x04junk"), r"fog.npy .*never read"),
        (lambda p: np.save(p / "labels.npy", np.arange(20) + 5), r"image 5 has the label 10"),
        (lambda p: np.save(p / "labels.npy", np.arange(3)), r"labels.npy must hold .*\(20,\)"),
        (lambda p: np.save(p / "fog.npy", np.zeros((20, 32, 32, 3), int)), "bytes"),
    ],
)
def test_damaged_cifar_c_raises_an_error(tmp_path, harm, said):
    place = write.write_cifar_c(tmp_path)
    harm(place)
    with pytest.raises(FileFormatError, match=said):
        published.read_cifar10_c(place, "fog", 2, records=4)


def test_cifar_c_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="there is no folder"):
        published.read_cifar10_c(tmp_path / "no", "fog", 1)
    (tmp_path / "CIFAR-10-C.tar").touch()
    with pytest.raises(InputError, match=r"CIFAR-10-C.tar in .* is not unpacked yet"):
        published.read_cifar10_c(tmp_path, "fog", 1)
    write.write_cifar_c(tmp_path)
    with pytest.raises(InputError, match=r"snow.npy is missing in .*half extracted"):
        published.read_cifar10_c(tmp_path, "snow", 1, records=4)
    with pytest.raises(InputError, match="corruption"):
        published.read_cifar10_c(tmp_path, "rain", 1, records=4)
    with pytest.raises(InputError, match="severity"):
        published.read_cifar10_c(tmp_path, "fog", 6, records=4)


# -------------------------------------------------------------------------------- super-classes
def test_super_classes_hold_one_fine_class_out_of_each(tmp_path):
    place = write.write_cifar100_named(tmp_path, HELD_OUT_FINE, per_class=2)
    parts = published.read_cifar100_super(tmp_path, records=200)
    shift = parts.shifts["sub-class"]
    assert parts.train.classes == write.COARSE[:19]
    assert [parts.train.n, parts.test.n, shift.n] == [19 * 4 * 2, 19 * 4 * 2, 19 * 2 * 2]
    assert (np.bincount(shift.labels) == 4).all()
    raw = {
        f: np.fromfile(place / f, np.uint8).reshape(200, 3074) for f in ("train.bin", "test.bin")
    }
    fine = (place / "fine_label_names.txt").read_text().split("\n")
    both = np.concatenate([raw["train.bin"], raw["test.bin"]])
    assert {fine[i] for i in both[shift.rows, 1]} == set(HELD_OUT_FINE)
    assert (both[shift.rows, 0] == shift.labels).all()
    assert (both[shift.rows, 2:] == shift.pixels.reshape(shift.n, -1)).all()
    own = raw["test.bin"][parts.test.rows]
    assert (own[:, 0] == parts.test.labels).all()
    assert not {fine[i] for i in own[:, 1]} & set(HELD_OUT_FINE)


def test_super_classes_need_true_names_and_labels(tmp_path):
    place = write.write_cifar100_named(tmp_path, HELD_OUT_FINE)
    names = (place / "fine_label_names.txt").read_text()
    (place / "fine_label_names.txt").write_text(names.replace("oak_tree", "oak"))
    with pytest.raises(FileFormatError, match="no class 'oak_tree'"):
        published.read_cifar100_super(place, records=200)
    (place / "fine_label_names.txt").write_text(names)
    result = np.fromfile(place / "test.bin", np.uint8).reshape(200, 3074)
    result[7, 0] = (result[7, 0] + 1) % 20
    (place / "test.bin").write_bytes(result.tobytes())
    with pytest.raises(FileFormatError, match="lies in the super-classes"):
        published.read_cifar100_super(place, records=200)
    result[7, 0] = 20
    (place / "test.bin").write_bytes(result.tobytes())
    with pytest.raises(
        FileFormatError, match="image 7 has the label 20, and the last super-class is 19"
    ):
        published.read_cifar100_super(place, records=200)
    (place / "coarse_label_names.txt").unlink()
    with pytest.raises(FileFormatError):  # the super-class is looked at first
        published.read_cifar100_super(place, records=200)


# ----------------------------------------------------------------------------------------- SVHN
@pytest.mark.parametrize("compressed", [True, False])
def test_svhn_calls_a_zero_zero(tmp_path, compressed):
    write.write_svhn(tmp_path, compressed=compressed)
    train, test = published.read_svhn(tmp_path, records=10)
    assert train.labels.tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 0]
    assert train.shape == test.shape == (3, 32, 32)
    assert train.pixels[4, :, 1, 1].tolist() == [40, 40, 40]
    assert train.pixels[4, :, 0, 5].tolist() == [40, 40, 255]


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("kind", ["f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_matlab_arrays_as_scipy_wrote_them(tmp_path, kind, compressed):
    from scipy.io import savemat

    from abstain_bench.data.published.svhn import read_matlab5

    rng = np.random.default_rng(1)
    arrays = {
        name: rng.integers(0, 100, shape).astype(kind)
        for name, shape in {"X": (3, 4, 2, 5), "y": (7, 1), "longer_name": (1, 2)}.items()
    }
    arrays["text"] = "skipped"
    savemat(tmp_path / "x.mat", arrays, do_compression=compressed)
    result = read_matlab5(tmp_path / "x.mat", ("X", "y", "longer_name", "z"))
    assert set(result) == {"X", "y", "longer_name"}
    for name, array in result.items():
        assert array.dtype == np.dtype(kind)
        assert (array == arrays[name]).all()


def test_damaged_matlab_files_never_end_the_process(tmp_path):
    # SciPy crashes at some of these.
    path = write.write_svhn(tmp_path, compressed=False) / "train_32x32.mat"
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    said = []
    for _ in range(200):
        content = bytearray(whole)
        for at in rng.integers(0, 200, 3):
            content[at] = rng.integers(256)
        path.write_bytes(content)
        try:
            published.read_svhn(tmp_path, records=10)
        except FileFormatError as error:
            said.append(str(error))
    assert len(said) > 50
    assert all("train_32x32.mat" in words for words in said)


def test_svhn_refuses_what_it_is_not(tmp_path):
    place = write.write_svhn(tmp_path / "a")
    with pytest.raises(FileFormatError, match="73,257 images"):
        published.read_svhn(place)
    cut(place / "test_32x32.mat", 0.5)
    with pytest.raises(FileFormatError, match=r"test_32x32.mat \(.* bytes\) is cut off"):
        published.read_svhn(place, records=10)
    place = write.write_svhn(tmp_path / "b", labels=[0] * 10)
    with pytest.raises(FileFormatError, match="image 0 has the label 0"):
        published.read_svhn(place, records=10)
    (place / "train_32x32.mat").write_bytes(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" * 9)
    with pytest.raises(FileFormatError, match=r"MATLAB 7\.3"):
        published.read_svhn(place, records=10)
    (place / "train_32x32.mat").unlink()
    with pytest.raises(InputError, match=r"train_32x32.mat is missing .*fetch svhn"):
        published.read_svhn(place, records=10)


# ------------------------------------------------------------------------------------------ IDX
@pytest.mark.parametrize("compressed", [True, False])
def test_idx_files_plain_and_compressed(tmp_path, compressed):
    write.write_idx(tmp_path / "mnist", compressed=compressed)
    train, test = published.read_mnist(tmp_path)
    assert (train.n, test.shape) == (20, (1, 28, 28))
    assert train.pixels[7, 0, 3, 20] == 7
    assert train.labels[:3].tolist() == [0, 1, 2]
    assert published.read_fashion_mnist(tmp_path / "mnist")[0].classes[9] == "ankle boot"


def test_emnist_is_upright_and_named_by_its_mapping(tmp_path):
    stems = ("emnist-letters-train", "emnist-letters-test")
    place = write.write_idx(tmp_path / "gzip", stems=stems, first=1, classes=3)
    (place / "emnist-letters-mapping.txt").write_text("1 65 97\n2 66 98\n3 67 99\n")
    train, test = published.read_emnist(tmp_path, split="letters")
    assert train.classes == ("A/a", "B/b", "C/c")
    assert test.labels[:4].tolist() == [0, 1, 2, 0]
    assert train.pixels[9, 0, 20, 3] == 9  # rows and columns exchanged
    (place / "emnist-letters-mapping.txt").write_text("1 65 97\n2 66 98\n")
    with pytest.raises(FileFormatError, match="image 2 has the label 3"):
        published.read_emnist(tmp_path, split="letters")
    with pytest.raises(InputError, match="split"):
        published.read_emnist(tmp_path, split="greek")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x", b"", "begins with nothing"),
        ("x", b"PK\x03\x04", "begins with 504b0304"),
        ("x", b"\x00\x00\x08\x03\x00\x00", "cut off inside its first 16 bytes"),
        ("x", write.idx_bytes(np.zeros((2, 3), np.uint8))[:-1], r"2 x 3 = 6 bytes, and it has 5"),
        ("x", write.idx_bytes(np.zeros((2, 3), np.uint8)) + b"a", "it has more"),
        ("x.gz", b"not gzip at all", "no gzip file"),
        ("x", b"\0\0\x08\x02" + b"\xff" * 8, "and it has 0; get it again"),
        (
            "x.gz",
            gzip.compress(b"\0\0\x08\x02" + b"\xff" * 8, mtime=0),
            "and it has 0; get it again",
        ),
    ],
)
def test_damaged_idx_raises_an_error(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FileFormatError, match=said):
        published.read_idx(tmp_path / name)


def test_idx_sets_that_do_not_fit_together(tmp_path):
    place = write.write_idx(tmp_path)
    cut(place / "train-images-idx3-ubyte.gz")
    with pytest.raises(FileFormatError, match=r"train-images-idx3-ubyte.gz is cut off"):
        published.read_mnist(place)
    write.write_idx(place, records=12, stems=("extra",))
    (place / "extra-labels-idx1-ubyte.gz").replace(place / "t10k-labels-idx1-ubyte.gz")
    write.write_idx(place, stems=("train",), classes=11)
    with pytest.raises(FileFormatError, match="has the label 10"):
        published.read_mnist(place)
    write.write_idx(place, stems=("train",))
    with pytest.raises(FileFormatError, match="20 images and 12 labels"):
        published.read_mnist(place)
    (place / "t10k-images-idx3-ubyte.gz").unlink()
    with pytest.raises(InputError, match="t10k-images-idx3-ubyte"):
        published.read_mnist(place)
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "training.pt").touch()
    with pytest.raises(InputError, match=r"made of pickles and never read.*take the IDX files"):
        published.read_mnist(tmp_path / "torch")


# --------------------------------------------------------------------------- folders of images
def test_tiny_imagenet_is_resized_and_labeled(tmp_path):
    place = write.write_tiny_imagenet(tmp_path)
    train, test = published.read_tiny_imagenet(tmp_path, records=2)
    assert (train.shape, train.n, test.n) == ((3, 32, 32), 6, 6)
    assert train.classes[0] == "goldfish (n01443537)"
    assert train.classes[1] == "n01629819"
    assert train.labels.tolist() == test.labels.tolist() == [0, 0, 1, 1, 2, 2]
    assert abs(train.pixels[4, :, 9, 9].astype(int) - [100, 0, 100]).max() <= 3  # JPEG
    assert published.read_tiny_imagenet(place, side=16, records=2)[0].shape == (3, 16, 16)


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda p: (p / "train/n01629819/images/n01629819_1.JPEG").unlink(), "holds 1 .half"),
        (lambda p: cut(p / "train/n01629819/images/n01629819_1.JPEG"), r"n01629819_1.JPEG'"),
        (lambda p: (p / "val/images/val_3.JPEG").write_bytes(b""), r"val_3.JPEG' \(0 bytes\)"),
        (lambda p: (p / "val/val_annotations.txt").write_text("val_0.JPEG\tn9\n"), "line 1 of"),
        (
            lambda p: (p / "val/val_annotations.txt").write_text("../../x\tn01443537\n"),
            "line 1 of",
        ),
        (lambda p: (p / "val/val_annotations.txt").unlink(), "val_annotations.txt is missing"),
    ],
)
def test_damaged_tiny_imagenet_raises_an_error(tmp_path, harm, said):
    place = write.write_tiny_imagenet(tmp_path)
    harm(place)
    with pytest.raises(FileFormatError, match=said):
        published.read_tiny_imagenet(place, records=2)


def test_tiny_imagenet_half_extracted(tmp_path):
    place = write.write_tiny_imagenet(tmp_path)
    with pytest.raises(FileFormatError, match="200 classes"):
        published.read_tiny_imagenet(place)
    (place / "val/images/val_2.JPEG").unlink()
    with pytest.raises(InputError, match=r"val_2.JPEG' is missing"):
        published.read_tiny_imagenet(place, records=2)
    (place / "wnids.txt").unlink()
    with pytest.raises(InputError, match=r"wnids.txt is missing"):
        published.read_tiny_imagenet(place, records=2)


def test_image_folders_crop_the_center_and_draw_by_seed(tmp_path):
    write.write_image_folder(tmp_path, ["cat", "dog"], records=3)
    wide = write.write_picture(tmp_path / "cat" / "wide.png", size=(120, 40), seed=1)
    result = published.find_image_folder(tmp_path).read(side=40)
    assert (result.classes, result.n) == (("cat", "dog"), 7)
    from PIL import Image

    with Image.open(wide) as image:
        center = np.asarray(image)[:, 40:80].transpose(2, 0, 1)
    assert (result.pixels[3] == center).all()
    few, again, other = (
        published.find_image_folder(tmp_path).sample(4, rng=seed).read(side=8).rows.tolist()
        for seed in (1, 1, 2)
    )
    assert few == again != other
    assert few == sorted(few)


@pytest.mark.parametrize("mode", ["L", "P", "CMYK", "RGBA"])
def test_all_kinds_of_pictures_become_color(tmp_path, mode):
    path = tmp_path / "a" / ("x.jpg" if mode in {"L", "CMYK"} else "x.png")
    write.write_picture(path, mode=mode, color=(90, 90, 90))
    result = published.find_image_folder(tmp_path).read(side=8)
    assert abs(result.pixels.astype(int) - 90).max() <= 6


def test_large_jpegs_are_decoded_small_and_look_the_same(tmp_path):
    from PIL import Image

    ramp = np.add.outer(np.arange(512), np.arange(512)) / 4.2
    (tmp_path / "a").mkdir()
    Image.fromarray(np.repeat(ramp.astype(np.uint8)[..., None], 3, 2)).save(tmp_path / "a/x.jpg")
    small = published.find_image_folder(tmp_path).read(side=32).pixels[0, 0]
    expected = ramp.reshape(32, 16, 32, 16).mean((1, 3))
    assert abs(small - expected)[1:-1, 1:-1].max() < 3


def test_image_folders_say_what_is_wrong(tmp_path):
    with pytest.raises(InputError, match="has no class folders"):
        published.find_image_folder(tmp_path).read()
    write.write_image_folder(tmp_path, ["cat", "dog"])
    (tmp_path / "cat" / "notes.txt").write_text("no image")
    bad = tmp_path / "dog" / "dog_1.JPEG"
    bad.write_bytes(b"<html>404</html>")
    with pytest.raises(FileFormatError, match=r"dog/dog_1.JPEG' \(16 bytes\) is no readable"):
        published.find_image_folder(tmp_path).read()
    (tmp_path / "emu").mkdir()
    with pytest.raises(FileFormatError, match=r"emu' has no image"):
        published.find_image_folder(tmp_path)
    with pytest.raises(InputError, match="there is no folder"):
        published.find_image_folder(tmp_path / "no")


def test_batches_together_are_the_whole(tmp_path):
    files = published.find_image_folder(write.write_image_folder(tmp_path, "abc", records=3))
    parts = list(files.batches(4, side=8))
    assert [part.n for part in parts] == [4, 4, 1]
    whole = files.read(side=8)
    assert (np.concatenate([part.pixels for part in parts]) == whole.pixels).all()
    assert np.concatenate([part.rows for part in parts]).tolist() == list(range(9))


# ------------------------------------------------------------------------------------ ENTITY-13
def test_the_table_of_entity13_is_sound():
    table = published.ENTITY13
    wnids = [wnid for row in table for side in row[1:] for wnid in side]
    assert len(table) == 13
    assert len(wnids) == len(set(wnids)) == 260
    assert all(len(wnid) == 9 and wnid[0] == "n" for wnid in wnids)
    # The first row as in the appendix of the paper: trench coat, abaya ... | lab coat, ...
    assert table[0][0] == "garment"
    assert (table[0][1][:2], table[0][2][0]) == (("n04479046", "n02667093"), "n03630383")


def test_entity13_divides_source_and_target(tmp_path):
    wnids = [wnid for row in published.ENTITY13 for side in row[1:] for wnid in side]
    train = tmp_path / "ILSVRC/Data/CLS-LOC/train"
    one = write.write_picture(tmp_path / "one.JPEG", size=(30, 20)).read_bytes()
    for wnid in (*wnids, "n01440764"):
        (train / wnid).mkdir(parents=True)
        for i in range(2):
            (train / wnid / f"{wnid}_{i}.JPEG").write_bytes(one)
    files = published.find_entity13(tmp_path, test=60)
    assert (files.train.n, files.test.n, files.shifts["sub-class"].n) == (200, 60, 260)
    assert not set(files.train.names) & set(files.test.names)
    above = {wnid: i for i, row in enumerate(published.ENTITY13) for wnid in row[1]}
    for part in (files.train, files.test):
        assert [above[name.split("/")[0]] for name in part.names] == part.labels.tolist()
    target = {wnid for row in published.ENTITY13 for wnid in row[2]}
    assert {name.split("/")[0] for name in files.shifts["sub-class"].names} == target
    parts = files.read(side=8, limit=5)
    assert (parts.train.n, parts.shifts["sub-class"].shape) == (5, (3, 8, 8))
    assert parts.train.classes[1] == "bird"
    for path in (train / wnids[3]).iterdir():
        path.unlink()
    (train / wnids[3]).rmdir()
    with pytest.raises(InputError, match=f"no class folder '{wnids[3]}' of the 130"):
        published.find_entity13(train)
    with pytest.raises(InputError, match="does not hold the training images of ImageNet"):
        published.find_entity13(tmp_path / "ILSVRC/Data")


# ---------------------------------------------------------------------------------------- WILDS
def test_iwildcam_by_its_official_split(tmp_path):
    _, n = write.write_iwildcam(tmp_path)
    files = published.find_iwildcam(tmp_path, records=n)
    sizes = [files.train.n, files.validation.n, files.test.n]
    assert sizes == [4, 2, 2]
    assert {name: part.n for name, part in files.shifts.items()} == {
        "locations": 3,
        "locations-validation": 2,
    }
    parts = files.read(side=16)
    assert parts.train.classes == ("empty", "impala", "duiker")
    assert parts.shifts["locations"].labels.tolist() == [2, 0, 1]
    assert files.shifts["locations"].groups.tolist() == [2, 2, 2]
    assert abs(parts.shifts["locations"].pixels[:, 0, 4, 4].astype(int) - [80, 90, 100]).max() <= 3


def test_camelyon17_by_hospital(tmp_path):
    _, n = write.write_camelyon17(tmp_path)
    files = published.find_camelyon17(tmp_path, records=n)
    assert (files.train.n, files.validation.n, files.test.n) == (6, 2, 22)
    assert set(files.train.groups.tolist()) == set(files.test.groups.tolist()) == {0, 3, 4}
    assert set(files.shifts["hospital"].groups.tolist()) == {2}
    assert set(files.shifts["hospital-validation"].groups.tolist()) == {1}
    assert not set(files.validation.names) & set(files.test.names)
    parts = files.read(side=8)
    hospital = parts.shifts["hospital"]
    assert hospital.pixels[0, :, 0, 0].tolist() == [20, int(hospital.rows[0]), 0]
    assert (hospital.labels == hospital.rows % 2).all()


def edit(path, old, new, count=-1):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, count))


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda p: edit(p, "split,", "part,", 1), "lacks the column 'split'"),
        (lambda p: edit(p, "train,", "../../etc,", 1), "has the split '../../etc'"),
        (lambda p: edit(p, f"{0:032x}", "../secret"), r"without folders; got '../secret.jpg'"),
        (lambda p: edit(p, "train,0,1,", "train,0,1x,"), "line 3 of metadata.csv: 'y' must"),
        (lambda p: edit(p, "train,0,1,", "train,0,,"), "line 3 of metadata.csv has no 'y'"),
        (lambda p: p.write_text(p.read_text()[:200]), "metadata.csv"),
        (lambda p: p.write_text(""), "metadata.csv is no CSV file"),
        (lambda p: p.write_text("split,location_remapped,y,filename\n"), "has no rows"),
    ],
)
def test_damaged_metadata_raises_an_error(tmp_path, harm, said):
    place, n = write.write_iwildcam(tmp_path)
    harm(place / "metadata.csv")
    with pytest.raises(FileFormatError, match=said):
        published.find_iwildcam(place, records=n)


def test_wilds_that_is_not_whole(tmp_path):
    place, n = write.write_camelyon17(tmp_path)
    with pytest.raises(FileFormatError, match=f"must have 455,954 rows .* it has {n}"):
        published.find_camelyon17(place)
    files = published.find_camelyon17(place, records=n)
    (place / files.train.names[0]).unlink()
    with pytest.raises(
        InputError, match=r"patch_patient_004_node_1_x_3328_y_21792.png' is missing"
    ):
        files.read(side=8)
    edit(place / "metadata.csv", ",004,", ",../004,", 1)
    with pytest.raises(FileFormatError, match="'patient' must be a whole number"):
        published.find_camelyon17(place, records=n)
    (place / "metadata.csv").unlink()
    with pytest.raises(InputError, match=r"metadata.csv is missing"):
        published.find_camelyon17(place, records=n)
    (place / "camelyon17_v1.0.tar.gz").touch()
    with pytest.raises(InputError, match="not unpacked yet"):
        published.find_camelyon17(place, records=n)


# ---------------------------------------------------------------------------------- new classes
def test_no_data_set_has_new_classes_of_its_own():
    for name, entry in DATASETS.items():
        assert name not in entry.new
        assert set(entry.new.values()) <= {"new-class", "far-new-class"}
    assert DATASETS["cifar100"].new["cifar10"] == "new-class"
    assert DATASETS["svhn"].new["cifar10"] == "far-new-class"


def labeled(n=60, classes=5):
    pixels = np.arange(n, dtype=np.uint8)[:, None, None, None] * np.ones((1, 1, 8, 8), np.uint8)
    return Images(pixels, np.arange(n) % classes, tuple("abcdefghij"[:classes]))


def test_held_out_classes_have_no_class_any_more():
    whole = labeled()
    kept, new = published.held_out(whole, rng=3)
    assert (kept.n_classes, kept.n, new.n) == (3, 36, 24)
    assert set(new.labels.tolist()) == {-1}
    # The kept images still have their class, by its new number.
    before = [whole.classes[label] for label in whole.labels[kept.rows]]
    assert [kept.classes[label] for label in kept.labels] == before
    assert sorted([*kept.rows, *new.rows]) == list(range(60))
    assert (new.pixels[:, 0, 0, 0] == new.rows).all()


def test_held_out_classes_equal_those_of_the_seed_or_those_requested():
    first, second, other = (published.held_out_classes(100, rng=s).tolist() for s in (1, 1, 2))
    assert first == second != other
    assert len(first) == 40
    kept, new = published.held_out(labeled(), classes=[4, 0])
    assert kept.classes == ("b", "c", "d")
    assert set((new.rows % 5).tolist()) == {0, 4}
    for wrong in ([5], [0, 1, 2, 3], [], [0.5]):
        with pytest.raises(InputError, match="classes"):
            published.held_out(labeled(), classes=wrong)
    with pytest.raises(InputError, match="three or more"):
        published.held_out_classes(2)


def test_pictures_without_pillow_say_so(tmp_path, monkeypatch):
    files = published.find_image_folder(write.write_image_folder(tmp_path, "ab"))
    assert isinstance(files, ImageFiles)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingInputError, match=r"Pillow: pip install Pillow"):
        files.read()


def test_importing_the_readers_imports_no_reader_of_pictures():
    code = (
        "import sys, abstain_bench.data.published, abstain_bench.data.fetching\n"
        "print([m for m in ('PIL', 'pooch', 'requests', 'torch', 'polars') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
