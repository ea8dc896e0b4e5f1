"""Folders of FD-Shifts results, made here in the layout that FD-Shifts writes."""

import numpy as np
import pytest

from abstain._foundation.subsample import subsampled_rows
from abstain.errors import FileFormatError, InputError, UnknownNameError
from abstain.tables import read_predictions

COUNTS = (3, 4, 75, 5)  # validation, iid, noise (15 x 5 x 1), new classes
N, C, M = sum(COUNTS), 3, 4
DATASET = np.repeat(np.arange(4), COUNTS)


@pytest.fixture
def labels():
    return np.random.default_rng(1).integers(0, C, N)


@pytest.fixture
def folder(tmp_path, labels):
    rng = np.random.default_rng(0)
    path = tmp_path / "run" / "test_results"
    path.mkdir(parents=True)

    def save(name, values):
        np.savez_compressed(path / name, values.astype(np.float16))

    logits = rng.normal(size=(N, C))
    save("raw_logits.npz", np.column_stack([logits, labels, DATASET]))
    save("raw_logits_dist.npz", rng.normal(size=(N, C, M)))
    save("external_confids.npz", rng.random(N))
    save("external_confids_dist.npz", rng.random((N, M)))
    save("encoded_output.npz", np.column_stack([rng.normal(size=(N, 6)), DATASET]))
    save("train_features.npz", rng.normal(size=(9, 7)))
    return path


def raw(folder, name):
    return np.load(folder / f"{name}.npz")["arr_0"]


def test_everything_is_read(folder, labels):
    reading = read_predictions(folder)
    assert list(reading) == [(("dataset", str(i)),) for i in range(4)]
    assert [p.n for p in reading.values()] == list(COUNTS)
    iid = reading[("dataset", "1"),]
    rows = DATASET == 1
    assert iid.logits.dtype == np.float16
    assert np.array_equal(iid.logits, raw(folder, "raw_logits")[rows, :C])
    assert iid.labels.tolist() == labels[rows].tolist()
    dist = raw(folder, "raw_logits_dist")
    assert iid.logit_samples.shape == (4, M, C)
    assert np.array_equal(iid.logit_samples[:, 1], dist[rows][:, :, 1])
    assert np.array_equal(iid.features, raw(folder, "encoded_output")[rows, :6])
    mean = raw(folder, "external_confids_dist").astype(np.float64).mean(axis=1)
    assert np.array_equal(iid.confidence["ext_mcd"], mean[rows])
    assert iid.confidence["ext"].dtype == np.float16
    notes = " | ".join(map(str, reading.notes))
    for part in ("read logits of 3 classes", "float16", "train_features.npz", "new-class"):
        assert part in notes


def test_the_folder_above_and_choices(folder):
    reading = read_predictions(folder.parent, by="dataset", confidence="ext")
    assert list(reading[("dataset", "0"),].confidence) == ["ext"]
    with pytest.raises(UnknownNameError, match="Available: ext, ext_mcd"):
        read_predictions(folder, confidence="devries")
    with pytest.raises(InputError, match="`label` does not apply"):
        read_predictions(folder, label="x")
    with pytest.raises(InputError, match="`by` can only be 'dataset'"):
        read_predictions(folder, by="study")


def test_older_folders_hold_probabilities(folder):
    values = raw(folder, "raw_logits").astype(np.float64)
    p = np.exp(values[:, :C])
    values[:, :C] = p / p.sum(axis=1, keepdims=True)
    np.savez(folder / "raw_output.npz", values.astype(np.float16))
    assert any("raw_output.npz is not used" in str(n) for n in read_predictions(folder).notes)
    (folder / "raw_logits.npz").unlink()
    reading = read_predictions(folder)
    assert reading[("dataset", "1"),].probabilities.shape == (4, C)
    assert reading[("dataset", "1"),].samples is None


@pytest.mark.parametrize(("n_all", "n_classes"), [(10_000, 10), (10_000, 100), (60, 3), (207, 2)])
def test_the_subsample_equals_that_of_the_formula_of_fd_shifts(n_all, n_classes):
    # As written in `CorruptCIFAR.subsample_idx`: n_samples_per_class_per_cor and single_idx.
    block = n_all // n_classes
    expected = [i * block + k for i in range(n_classes) for k in range(block // 10)]
    assert subsampled_rows(n_all, n_classes, 10).tolist() == expected


@pytest.mark.parametrize("kind", ["logits", "probabilities"])
def test_a_tenth_of_the_corrupted_images_is_matched_with_the_samples_of_all(tmp_path, kind):
    """Each stored row names itself, so that a wrong match cannot go unnoticed."""
    n_all, blocks, n_classes = 60, 75, 3
    taken = subsampled_rows(n_all, n_classes, 10)
    sizes = (3, 4, blocks * n_all, 5)
    n = sum(sizes)
    rng = np.random.default_rng(5)
    samples = rng.dirichlet(np.ones(n_classes), size=(n, 4)).swapaxes(1, 2)
    external = rng.random((n, 4))
    scores, dataset = samples[:, :, 0], np.repeat(np.arange(4), sizes)
    corrupted = 7 + (n_all * np.arange(blocks)[:, None] + taken).ravel()
    kept = np.concatenate([np.arange(7), corrupted, np.arange(7 + blocks * n_all, n)])
    labels = rng.integers(0, n_classes, n)
    name = {"logits": "raw_logits", "probabilities": "raw_output"}[kind]
    np.savez(tmp_path / f"{name}.npz", np.column_stack([scores, labels, dataset])[kept])
    np.savez(tmp_path / f"{name}_dist.npz", samples)
    np.savez(tmp_path / "external_confids_dist.npz", external)
    reading = read_predictions(tmp_path)
    for index in range(4):
        part, rows = reading[("dataset", str(index)),], kept[dataset[kept] == index]
        result = part.logit_samples if kind == "logits" else part.probability_samples
        np.testing.assert_allclose(result, samples[rows].swapaxes(1, 2), rtol=1e-12)
        np.testing.assert_allclose(result[:, 0], getattr(part, kind), rtol=1e-12)
        np.testing.assert_allclose(part.confidence["ext_mcd"], external[rows].mean(axis=1))
    assert any(
        "the rows that FD-Shifts selects for each corruption" in str(n) for n in reading.notes
    )


def test_samples_of_all_corrupted_images(folder):
    """Another subsample than that of FD-Shifts: the corrupted images are read without samples."""
    rng = np.random.default_rng(3)
    extra = 9 * 75
    dist = rng.normal(size=(N + extra, C, M)).astype(np.float16)
    np.savez(folder / "raw_logits_dist.npz", dist)
    np.savez(folder / "external_confids_dist.npz", rng.random((N + extra, M)).astype(np.float16))
    reading = read_predictions(folder)
    assert reading[("dataset", "2"),].samples is None
    assert list(reading[("dataset", "2"),].confidence) == ["ext"]
    assert np.array_equal(reading[("dataset", "0"),].logit_samples, np.moveaxis(dist[:3], -1, 1))
    assert np.array_equal(reading[("dataset", "3"),].logit_samples, np.moveaxis(dist[-5:], -1, 1))
    assert any("FD-Shifts would select 3 of 10 for each" in str(note) for note in reading.notes)


def test_samples_that_cannot_be_matched(folder):
    np.savez(folder / "raw_logits_dist.npz", np.zeros((N + 1, C, M), dtype=np.float16))
    with pytest.raises(FileFormatError, match=r"has 88 rows and raw_logits\.npz has 87"):
        read_predictions(folder)


def test_labels_beyond_the_classes_are_wrong(folder):
    values = raw(folder, "raw_logits")
    values[DATASET == 3, C] = 7
    np.savez(folder / "raw_logits.npz", values)
    reading = read_predictions(folder)
    assert not reading[("dataset", "3"),].correct.any()
    assert any(
        "5 of 87 rows (5.75%) have labels outside the classes" in str(n) for n in reading.notes
    )


def test_labels_that_float16_cannot_hold(tmp_path):
    classes = 2100
    logits = np.zeros((2, classes), dtype=np.float16)
    values = np.column_stack([logits, [5, 2049], [0, 0]]).astype(np.float16)
    np.savez(tmp_path / "raw_logits.npz", values)
    (tmp_path / "raw_output.npz").unlink(missing_ok=True)
    values[1, -2] = 2050
    np.savez(tmp_path / "raw_logits.npz", values)
    notes = read_predictions(tmp_path).notes
    assert any(
        "labels above 2048, which may differ from the true label" in str(note) for note in notes
    )


def test_missing_external_confidences(folder):
    values = raw(folder, "external_confids")
    values[0] = np.nan
    np.savez(folder / "external_confids.npz", values)
    with pytest.raises(InputError, match=r"1 of 87 rows .* have no confidence in 'ext'"):
        read_predictions(folder)
    reading = read_predictions(folder, missing="drop")
    assert [p.n for p in reading.values()] == [2, 4, 75, 5]


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("raw_logits", np.zeros((5, 3)), "at least two class scores, a label and an index"),
        ("raw_logits", np.full((5, 5), 0.5), "labels must be whole numbers; got 0.5 in row 0"),
        ("raw_logits", np.zeros(5), "with 2 axes under the key 'arr_0'"),
        ("raw_logits_dist", np.zeros((N, 9, M)), "3 classes, samples"),
        ("encoded_output", np.zeros((N, 4)), "does not match the class scores"),
        ("external_confids", np.zeros(3), "must have 87 rows; got 3"),
    ],
)
def test_bad_files(folder, name, values, message):
    np.savez(folder / f"{name}.npz", values)
    with pytest.raises(FileFormatError, match=message):
        read_predictions(folder)


def test_several_runs(folder, tmp_path):
    reading = read_predictions([folder, folder.parent])
    assert len(reading) == 8
    assert next(iter(reading)) == (("file", "test_results"), ("dataset", "0"))
