"""The tasks of published data sets, from files to what networks see, on tiny files."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bench.tests.data import published_files as write
from bench.tests.data.cifar_files import write_cifar10

from abstain._foundation.lazy_imports import is_installed
from abstain._foundation.subsample import subsampled_rows
from abstain.errors import FileFormatError, InputError, MissingInputError
from abstain_bench import published
from abstain_bench.data import DATASETS, KINDS
from abstain_bench.data.corruptions import CORRUPTIONS
from abstain_bench.data.published import CORRUPTIONS as OFFICIAL_NAMES
from abstain_bench.data.published import ENTITY13, HELD_OUT_FINE, find_iwildcam
from abstain_bench.runs.tasks import TASKS
from abstain_bench.runs.tasks._entry import Sizes
from abstain_bench.runs.tasks.large import validation_files
from abstain_bench.runs.tasks.open_set import ROTATIONS, classes_of_rotation

pytest.importorskip("PIL")

PUBLISHED = [name for name, task in TASKS.items() if task.needs_folder]
RECORDS = {"cifar10": 20, "cifar100": 200, "svhn": 40, "tiny-imagenet": 3, "camelyon17": 36}
#: Images to choose on, of the few that the files have.
CHOSEN = {"cifar100": 50, "cifar100-super": 40, "tiny-imagenet": 3, "imagenet-folder": 2}


def sizes(name, **others):
    records = {**RECORDS, "iwildcam": 65}
    return Sizes(records, CHOSEN.get(name, 10), 40, 30, 32, **others)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with every data set, as `abstain data fetch` leaves them."""
    folder = tmp_path_factory.mktemp("data")
    write_cifar10(folder, records=20)
    write.write_cifar100_named(folder, HELD_OUT_FINE)
    write.write_cifar_c(folder, corruptions=OFFICIAL_NAMES, records=20)
    fine = write.write_cifar_c(folder, name="CIFAR-100-C", corruptions=["fog"], records=200)
    test = np.fromfile(folder / "cifar-100-binary/test.bin", np.uint8).reshape(200, 3074)
    np.save(fine / "labels.npy", np.tile(test[:, 1], 5))
    write.write_svhn(folder, records=40, labels=np.arange(40) % 10 + 1)
    write.write_tiny_imagenet(folder, records=3)
    for name in ("mnist", "fashion-mnist"):
        write.write_idx(folder / name)
    stems = ("emnist-letters-train", "emnist-letters-test")
    place = write.write_idx(folder / "emnist/gzip", stems=stems, first=1, classes=3)
    (place / "emnist-letters-mapping.txt").write_text("1 65 97\n2 66 98\n3 67 99\n")
    wnids = [wnid for row in ENTITY13 for side in row[1:] for wnid in side]
    write.write_image_folder(folder / "train", wnids, size=(20, 20))
    write.write_iwildcam(folder, classes=5, times=5)
    write.write_camelyon17(folder)
    return folder


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """A folder of one's own, with a shift and new classes."""
    folder = tmp_path_factory.mktemp("images")
    write.write_image_folder(folder / "train", ["cat", "dog", "eel"], records=8)
    write.write_image_folder(folder / "test", ["cat", "dog", "eel"], records=4)
    write.write_image_folder(folder / "shift-night", ["eel", "cat"], records=3)
    write.write_image_folder(folder / "new-birds", ["owl"], records=5)
    return folder


@pytest.fixture(params=PUBLISHED)
def loaded(request, home, pictures):
    name = request.param
    folder = pictures if name == "imagenet-folder" else home
    return TASKS[name], TASKS[name].load(folder, sizes(name))


def test_every_part_of_every_task_loads_and_fits(loaded):
    _, parts = loaded
    order = [list(KINDS).index(e.kind) for e in parts.exposures]
    assert parts.exposures[0].key == "iid"
    assert order == sorted(order)
    assert len({e.key for e in parts.exposures}) == len(parts.exposures) > 1
    assert (parts.train.labels >= 0).all()
    assert (parts.validation.labels >= 0).all()
    for exposure in parts.exposures:
        if exposure.severity > 1 and not exposure.is_corrupted:  # the images of severity 1
            continue
        images = exposure.load()
        assert images.shape == parts.train.shape == parts.validation.shape
        assert images.classes == parts.train.classes
        assert images.labels.max() < parts.train.n_classes
        assert bool((images.labels == -1).all()) is ("new-class" in exposure.kind)
        assert bool((images.labels >= 0).all()) is ("new-class" not in exposure.kind)


def test_every_study_of_the_papers_is_one_of_the_task(loaded):
    task, parts = loaded
    ours = {"corruption" if e.kind == "corruption" else e.name for e in parts.exposures}
    name = re.sub(r"-open-\d", "-open-1..5", task.name)
    for table in ("fd_shifts_table_1", "fd_shifts_table_13", "augrc_table_3"):
        assert {
            row["abstain_study"] for row in published.table(table) if row["task"] == name
        } <= ours


def test_listing_exposures_reads_no_pictures_of_them(home, monkeypatch):
    from abstain_bench.data.published import ImageFiles

    def refuse(*_, **__):
        pytest.fail("pictures were read")

    changes = {"cifar10": {"load_corrupted": refuse}}
    changes |= {name: {"load": refuse} for name in ("cifar100", "svhn")}
    for name, change in changes.items():
        monkeypatch.setitem(DATASETS._entries, name, replace(DATASETS[name], **change))
    monkeypatch.setattr(ImageFiles, "read", refuse)
    for name in ("cifar10", "entity13", "iwildcam", "iwildcam-open-3", "camelyon17"):
        assert len(TASKS[name].load(home, sizes(name)).exposures) >= 2


def test_the_page_about_data_names_every_task():
    page = (Path(__file__).parents[3] / "docs/data.md").read_text(encoding="utf-8")
    names = {re.sub(r"-open-\d", "-open-1", name) for name in PUBLISHED}
    assert [name for name in names if f"| `{name}`" not in page] == []


# -------------------------------------------------------------------------------- corruptions
def test_official_corruptions_are_of_the_tested_pictures_and_are_not_corrupted_again(home):
    pytest.importorskip("torch")
    from abstain_bench.runs.training import Preprocessing

    parts = TASKS["cifar10"].load(home, sizes("cifar10"))
    spoiled = [e for e in parts.exposures if e.kind == "corruption"]
    assert parts.notes == ()
    assert all(e.is_corrupted for e in spoiled)
    assert [(e.corruption, e.severity) for e in spoiled] == [
        (name, severity) for name in CORRUPTIONS for severity in range(1, 6)
    ]
    jpeg = next(e for e in spoiled if e.key == "corruption-jpeg-3-official")
    assert jpeg.title == "corruption-jpeg 3 (official)"
    result, clean = jpeg.load(), parts.exposures[0].load()
    assert (result.labels == clean.labels).all()
    assert result.rows.tolist() == clean.rows.tolist() == list(range(10, 20))
    assert result.pixels[0, :, 0, 0].tolist() == [150, 151, 152]  # image 2 * 20 + 10, times 3
    inputs = Preprocessing((0.0,) * 3, (1.0,) * 3)
    seen = inputs.prepare_exposure(jpeg, seed=0)
    assert np.array_equal(seen.numpy() * 255, result.pixels.astype(np.float32))
    assert np.array_equal(
        inputs.prepare_exposure(jpeg, seed=0, images=clean), inputs.prepare(clean, seed=0)
    )


def test_corruptions_that_are_not_there_are_told(home, tmp_path):
    parts = TASKS["cifar100"].load(home, sizes("cifar100"))
    assert {e.corruption for e in parts.exposures if e.corruption} == {"fog"}
    assert len(parts.notes) == 14
    assert "'jpeg' is left out: jpeg_compression.npy is not in" in parts.notes[-1]
    write_cifar10(tmp_path, records=20)
    alone = TASKS["cifar10"].load(tmp_path, sizes("cifar10"))
    own = [e for e in alone.exposures if e.corruption]
    assert (len(alone.exposures), len(own)) == (76, 75)
    assert not any(e.is_corrupted for e in own)
    assert own[0].load().rows.tolist() == list(range(10, 20))
    first, *others = alone.notes
    assert first.startswith("our own corruptions replace the official ones: ")
    assert "CIFAR-10-C/labels.npy is not in" in first
    assert [note.split(":")[0].split("'")[1] for note in others] == [
        "cifar100", "svhn", "tiny-imagenet",
    ]  # fmt: skip
    assert f"`abstain data fetch svhn --folder {tmp_path}` brings SVHN" in others[1]


def test_corruptions_of_other_test_pictures_raise_an_error(tmp_path):
    write_cifar10(tmp_path, records=20)
    place = write.write_cifar_c(tmp_path, records=20)
    np.save(place / "labels.npy", np.tile(np.roll(np.arange(20) % 10, 1), 5))
    fog = TASKS["cifar10"].load(tmp_path, sizes("cifar10")).exposures[1]
    with pytest.raises(FileFormatError, match=r"image 10 has the class 9 there, and 0 here"):
        fog.load()


# ------------------------------------------------------------------------------------- shifts
def test_held_out_sub_classes_are_only_in_the_shift(home):
    parts = TASKS["cifar100-super"].load(home, sizes("cifar100-super"))
    iid, shift = (e.load() for e in parts.exposures)
    assert [e.kind for e in parts.exposures] == ["iid", "sub-class"]
    assert parts.train.n_classes == 19
    assert "vehicles_2" not in parts.train.classes
    assert not set(iid.rows.tolist()) & set(parts.validation.rows.tolist())
    fine = (home / "cifar-100-binary/fine_label_names.txt").read_text().split("\n")
    raw = np.fromfile(home / "cifar-100-binary/train.bin", np.uint8).reshape(200, 3074)
    assert not {fine[i] for i in raw[parts.train.rows, 1]} & set(HELD_OUT_FINE)
    assert shift.n == 19 * 2 * 2


@pytest.mark.parametrize("name", ["entity13", "camelyon17", "imagenet-folder"])
def test_parts_that_are_drawn_have_no_picture_in_common(name, home, pictures):
    folder = pictures if name == "imagenet-folder" else home
    parts = TASKS[name].load(folder, sizes(name))
    tested = set() if name == "imagenet-folder" else set(parts.exposures[0].load().rows.tolist())
    values = [set(parts.train.rows.tolist()), set(parts.validation.rows.tolist()), tested]
    assert sum(map(len, values)) == len(set().union(*values))


def test_a_folder_of_pictures_may_have_shifts_and_new_classes(pictures, tmp_path):
    task = TASKS["imagenet-folder"]
    parts = task.load(pictures, sizes("imagenet-folder"))
    by = {e.key: e for e in parts.exposures}
    assert len(by) == 1 + 75 + 2
    assert by["night"].load().labels.tolist() == [0] * 3 + [2] * 3
    assert by["birds"].load().labels.tolist() == [-1] * 5
    assert (parts.train.n, parts.validation.n) == (22, 2)
    for place, said in (("shift-x", "class 'yak', which 'train' does not"), ("new-a b", "rename")):
        write.write_image_folder(tmp_path / place / "train", ["cat"], records=4)
        write.write_image_folder(tmp_path / place / "test", ["cat"], records=4)
        write.write_image_folder(tmp_path / place / place, ["yak"])
        with pytest.raises(InputError, match=said):
            task.load(tmp_path / place, sizes("imagenet-folder"))


# ----------------------------------------------------------------------------------- open sets
@pytest.mark.parametrize("count", [5, 10, 182])
def test_every_class_is_held_out_by_two_rotations(count):
    often = np.zeros(count, int)
    for rotation in range(1, ROTATIONS + 1):
        out = classes_of_rotation(count, rotation)
        assert abs(len(out) - 0.4 * count) < 1
        often[out] += 1
    assert (often == 2).all()
    assert classes_of_rotation(10, 4) == [6, 7, 8, 9]  # as FD-Shifts configures it


@pytest.mark.parametrize("rotation", range(1, ROTATIONS + 1))
def test_held_out_classes_are_not_learned_and_all_tested(home, rotation):
    task = TASKS[f"svhn-open-{rotation}"]
    parts = task.load(home, sizes("svhn"))
    out = {str(i) for i in classes_of_rotation(10, rotation)}
    assert set(parts.train.classes) == set("0123456789") - out
    iid, new = (e.load() for e in parts.exposures)
    assert (parts.train.n, parts.validation.n, iid.n, new.n) == (24, 10, 14, 16)
    # The files of SVHN have the digits 1 to 9 and 0 in turn.
    assert {str((row + 1) % 10) for row in new.rows} == out
    assert not {str((row + 1) % 10) for row in parts.train.rows} & out
    animals = TASKS[f"iwildcam-open-{rotation}"].load(home, sizes("iwildcam"))
    assert animals.train.n_classes == 3
    gone = set(classes_of_rotation(5, rotation))
    whole = TASKS["iwildcam"].load(home, sizes("iwildcam"))
    assert animals.train.n == int((~np.isin(whole.train.labels, list(gone))).sum())
    assert {int(row) % 5 for row in animals.exposures[1].load().rows} == gone


def test_where_there_is_nothing_to_choose_on_the_test_is_no_stand_in(home):
    files = find_iwildcam(home, records=65)
    assert validation_files(files) is files.validation
    with pytest.raises(InputError, match="that are not test images"):
        validation_files(replace(files, validation=None))


# -------------------------------------------------------------------------------------- trouble
@pytest.mark.parametrize("name", PUBLISHED)
def test_a_task_without_its_files_says_what_to_do(name, tmp_path):
    source = {"entity13": "image-net.org", "imagenet-folder": "'train' and 'test'"}
    fetched = {"cifar100-super": "cifar100"}.get(name, name.split("-open")[0])
    how = source.get(name, f"abstain data fetch {fetched} --folder DIR`")
    for folder in (None, tmp_path / "no", tmp_path):
        with pytest.raises(MissingInputError, match=how) as error:
            TASKS[name].load(folder)
        assert folder is None or str(folder) in str(error.value)


def cut(path):
    path.write_bytes(path.read_bytes()[:60])


@pytest.mark.parametrize(
    ("name", "file", "said"),
    [
        ("cifar10", "cifar-10-batches-bin/data_batch_3.bin", "data_batch_3.bin"),
        ("svhn", "svhn/train_32x32.mat", "train_32x32.mat"),
        ("mnist", "mnist/t10k-images-idx3-ubyte.gz", "t10k-images"),
        ("iwildcam", "iwildcam_v2.0/metadata.csv", "metadata.csv"),
        ("entity13", f"train/{ENTITY13[0][1][0]}/{ENTITY13[0][1][0]}_0.JPEG", "_0.JPEG"),
    ],
)
def test_files_that_are_cut_off_or_missing_are_named(home, name, file, said):
    path = home / file
    content = path.read_bytes()
    few = Sizes({**RECORDS, "iwildcam": 65}, 10, 1000, 30, 32)
    try:
        cut(path)
        with pytest.raises(FileFormatError, match=said):
            everything(TASKS[name].load(home, few))
        path.unlink()
        if name != "entity13":  # a folder of images may hold any
            with pytest.raises(MissingInputError, match=said):
                TASKS[name].load(home, few)
    finally:
        path.write_bytes(content)


def everything(parts):
    return parts.train, parts.validation, [e.load() for e in parts.exposures]


# --------------------------------------------------------------------------------------- models
def test_every_model_takes_the_pictures_of_its_task(loaded):
    pytest.importorskip("torch")
    from abstain_bench.networks import MODELS
    from abstain_bench.runs.training.inputs import make_variation

    task, parts = loaded
    MODELS[task.model]._check_shape(parts.train.shape)
    # What the model sees officially, where the tests take other sides.
    if task.model == "resnet50":
        MODELS[task.model]._check_shape((3, Sizes().side, Sizes().side))
    make_variation(dict(task.variation))


@pytest.mark.parametrize("name", ["cifar10", "entity13", "mnist"])
def test_a_step_of_training_and_dropout_passes(name, home):
    pytest.importorskip("torch")
    from abstain import training
    from abstain_bench.networks import MODELS
    from abstain_bench.runs.passes import compute_outputs
    from abstain_bench.runs.training import Preprocessing, train
    from abstain_bench.runs.training.inputs import make_variation

    task = TASKS[name]
    parts = task.load(home, Sizes(RECORDS, 10, 40, 30, 64))
    inputs = Preprocessing.from_training_images(parts.train, make_variation(dict(task.variation)))
    some = parts.train.subset(np.arange(4))
    backbone = MODELS[task.model].make(some.shape, seed=0, dropout=task.dropout)
    objective = training.make("cross-entropy", rng=0)
    network = training.Network(backbone, objective.head(backbone.width, some.n_classes))
    recipe = type(task.recipe)(epochs=1, batch_size=4, learning_rate=0.001)
    assert np.isfinite(train(network, some, objective, recipe, preprocessing=inputs)).all()
    seen = inputs.prepare(some, seed=0)
    out = compute_outputs(network, objective, seen, some.labels, some.source_indices, samples=2)
    assert out.logit_samples.shape == (4, 2, some.n_classes)
    assert not np.allclose(out.logit_samples[:, 0], out.logit_samples[:, 1])


@pytest.mark.skipif(not is_installed("timm"), reason="needs timm")
def test_a_transformer_takes_pictures_of_a_folder(pictures):
    from abstain_bench.networks import MODELS
    from abstain_bench.runs.training import Preprocessing

    parts = TASKS["imagenet-folder"].load(pictures, sizes("imagenet-folder"))
    seen = Preprocessing.from_training_images(parts.train).prepare(parts.validation, seed=0)
    backbone = MODELS["vit-b16"].make(tuple(seen.shape[1:]), seed=0, dropout=0.1)
    assert backbone.features(seen).shape == (2, 768)


# ------------------------------------------------------------------------- as a protocol takes them
def test_corrupted_pictures_are_of_those_tested_of_all_or_of_a_tenth(home):
    def places(name, which):
        parts = TASKS[name].load_images(home, sizes(name, corrupted=which))
        own = next(e for e in parts.exposures if e.corruption == "fog" and e.severity == 2)
        return own.load().source_indices.tolist()

    assert places("cifar10", "tested") == list(range(10, 20))
    assert places("cifar10", "all") == list(range(20))
    # Two images of each class here, and the first of each stretch of them.
    assert places("cifar10", "tenth") == list(range(0, 20, 2))
    assert places("cifar100", "tenth") == list(range(0, 200, 2))


def test_a_tenth_is_what_the_code_of_the_paper_takes():
    """Of 10,000 images of 100 classes the first ten of each hundred, whatever their class."""
    theirs = np.concatenate([i * 100 + np.arange(100 // 10) for i in range(100)])
    assert np.array_equal(subsampled_rows(10_000, 100, factor=10), theirs)


def test_choices_may_be_made_on_the_first_pictures_of_the_test_part(home):
    files = find_iwildcam(home, records=65)
    few = Sizes({"iwildcam": 65}, 4, 0, 0, 32, "first")
    parts = TASKS["iwildcam"].load_images(home, few)
    assert parts.validation.source_indices.tolist() == files.test.rows[:4].tolist()
    tested = parts.exposures[0].load()
    assert tested.source_indices.tolist() == files.test.rows[4:].tolist()
    with pytest.raises(InputError, match="1,000 images must leave some"):
        TASKS["iwildcam"].load_images(home, replace(few, validation=1000))
    drawn = TASKS["camelyon17"].load_images(home, sizes("camelyon17", chosen="first"))
    both = [*drawn.validation.source_indices, *drawn.exposures[0].load().source_indices]
    official = TASKS["camelyon17"].load_images(home, sizes("camelyon17"))
    same = [*official.validation.source_indices, *official.exposures[0].load().source_indices]
    assert sorted(both) == sorted(same)
    assert drawn.validation.n == 10


def test_no_limit_takes_all_and_new_classes_may_have_another_size(home):
    few = TASKS["iwildcam"].load_images(home, Sizes({"iwildcam": 65}, 5, 3, 2, 16))
    all_ = TASKS["iwildcam"].load_images(home, Sizes({"iwildcam": 65}, 5, 0, 0, 16))
    assert (few.train.n, few.exposures[1].load().n) == (3, 2)
    files = find_iwildcam(home, records=65)
    assert all_.train.n == files.train.n
    assert all_.exposures[1].load().n == files.shifts["locations"].n
    parts = TASKS["cifar10"].load_images(home, sizes("cifar10", new_side=64))
    shapes = {e.name: e.load().shape for e in parts.exposures if e.kind == "far-new-class"}
    assert shapes == {"svhn": (3, 32, 32), "tiny-imagenet": (3, 64, 64)}


def test_pictures_of_one_source_are_joined(home):
    files = find_iwildcam(home, records=65)
    both = files.validation.concatenate(files.test)
    assert both.n == files.validation.n + files.test.n
    assert both.rows.tolist() == [*files.validation.rows, *files.test.rows]
    assert both.labels.tolist() == [*files.validation.labels, *files.test.labels]
    assert len(both.groups) == both.n


def test_many_pictures_are_mapped_from_a_file_and_are_the_same(home, monkeypatch, tmp_path):
    from abstain_bench.data.published import image_files as reader

    files = find_iwildcam(home, records=65).test
    held = files.read(side=16)
    monkeypatch.setattr(reader, "_MAX_MEMORY_BYTES", 1000)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    mapped = files.read(side=16)
    assert isinstance(mapped.pixels.base, np.memmap)
    assert np.array_equal(mapped.pixels, held.pixels)
    assert np.array_equal(mapped.subset([2, 0]).pixels, held.pixels[[2, 0]])
    # It has no name, so that a killed run leaves nothing.
    assert not list(tmp_path.iterdir())
