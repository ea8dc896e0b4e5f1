"""FD-Shifts results as runs: what is read, what is computed from it, what is refused."""

import numpy as np
import pytest
from tests.benchmark.shifts_folder import CLASSES, COUNTS, EXPOSURES, make_folder
from tests.benchmark.stored_runs import make_runs

import abstain as ab
from abstain.benchmark.data.corruptions import CORRUPTIONS
from abstain.benchmark.others import import_fd_shifts
from abstain.benchmark.store import Store
from abstain.errors import FileFormatError, InputError, MissingInputError

#: Without the 75 corruptions, which take their time.
SHORT = ("validation", "iid", "-", "new-class:svhn")


def raw(folder, name="raw_logits"):
    return np.load(folder / f"{name}.npz")["arr_0"].astype(np.float64)


@pytest.fixture
def folder(tmp_path):
    return make_folder(tmp_path / "vit" / "test_results", 1)


def test_a_folder_becomes_a_store(tmp_path, folder):
    found = import_fd_shifts(
        folder.parent, tmp_path / "runs", arm="vit", seed=3, exposures=EXPOSURES, model="vit-b16"
    )
    store = Store.read(tmp_path / "runs")
    (run,) = store.tested
    assert (run.name, run.arm, run.seed, run.model) == ("vit-seed3", "vit", 3, "vit-b16")
    assert run.facts["digest"]
    assert store.classes == ("0", "1", "2")
    keys = [one.key for one in store.exposures]
    assert keys[0] == "iid"
    assert keys[-1] == "svhn"
    assert len(keys) == 1 + 75 + 1
    assert {one.kind for one in store.exposures} == {"iid", "corruption", "new-class"}
    assert {one.corruption for one in store.exposures} == {*CORRUPTIONS, ""}
    table = raw(folder)
    iid = store.scores(run, "iid", logits=True)
    rows = table[:, -1] == 1
    assert np.array_equal(iid.logits, table[rows, :CLASSES].astype(np.float32))
    assert np.array_equal(iid.labels, table[rows, -2])
    assert np.array_equal(iid.prediction, table[rows, :CLASSES].argmax(axis=1))
    assert any("float16" in note for note in run.facts["notes"])
    assert {"msr", "temp-msr", "mcd-mi", "mahalanobis", "vim", "react"} <= set(found.methods)
    assert set(iid.confidence) == set(found.methods) == set(store.validated(run))


def test_the_numbers_are_those_of_the_evaluation(tmp_path, folder):
    import_fd_shifts(folder, tmp_path / "runs", arm="vit", seed=0, exposures=SHORT)
    store = Store.read(tmp_path / "runs")
    run = store.tested[0]
    reading = ab.tables.read_predictions(folder)
    for key, code in {"validation": "0", "iid": "1"}.items():
        expected = reading[("dataset", code),]
        found = store.scores(run, key).confidence
        for name in ("msr", "mls", "pe", "gen"):
            assert np.allclose(found[name], ab.confidence.score(name, expected).values, atol=1e-6)
    wrong = ~reading[("dataset", "0"),].correct
    direct = ab.augrc(store.scores(run, "validation").confidence["msr"], wrong)
    assert store.validated(run)["msr"]["augrc"] == pytest.approx(float(direct), abs=1e-12)


def test_corruptions_are_in_the_order_of_their_stack(tmp_path, folder):
    """15 corruptions by name, each in 5 severities, each of the same pictures."""
    import_fd_shifts(folder, tmp_path / "runs", arm="devries", seed=0, exposures=EXPOSURES)
    store = Store.read(tmp_path / "runs")
    table = raw(folder)
    noise = table[table[:, -1] == 2, :CLASSES].astype(np.float32).reshape(15, 5, 2, CLASSES)
    for key, place in {
        "corruption-brightness-1": (0, 0),
        "corruption-jpeg-2": (9, 1),
        "corruption-zoom-blur-5": (14, 4),
    }.items():
        found = store.scores(store.tested[0], key, logits=True)
        assert np.array_equal(found.logits, noise[place])
        assert found.places.tolist() == [COUNTS[0] + COUNTS[1], COUNTS[0] + COUNTS[1] + 1]
    new = store.scores(store.tested[0], "svhn")
    assert (new.labels == -1).all()
    assert new.places.min() > found.places.max()


@pytest.mark.parametrize(
    ("arm", "own"),
    [
        ("confidnet", {"confidnet": "external_confids", "mcd-confidnet": "external_confids_dist"}),
        ("dg", {"dg-res": "external_confids"}),
        ("devries", {"devries": "external_confids"}),
    ],
)
def test_external_confidences_are_the_methods_they_are(tmp_path, folder, arm, own):
    found = import_fd_shifts(folder, tmp_path / "runs", arm=arm, seed=0, exposures=SHORT)
    store = Store.read(tmp_path / "runs")
    said = store.scores(store.tested[0], "iid").confidence
    for name, file in own.items():
        values = raw(folder, file)[COUNTS[0] : COUNTS[0] + COUNTS[1]]
        assert np.array_equal(said[name], values if values.ndim == 1 else values.mean(axis=1))
    assert "msr" not in found.methods
    assert any("external" in note for note in found.notes)


def test_what_cannot_be_computed_has_a_reason(tmp_path):
    folder = make_folder(tmp_path / "a", 1, train=False, sampled=False)
    found = import_fd_shifts(
        folder, tmp_path / "runs", arm="vit", seed=0, exposures=("-", *SHORT[1:])
    )
    assert found.methods == ("msr", "mls", "pe", "energy", "margin", "gini", "gen")
    assert "train_features.npz" in found.reasons["mahalanobis"]
    assert "validation data" in found.reasons["temp-msr"]
    assert "dropout" in found.reasons["mcd-pe"]
    store = Store.read(tmp_path / "runs")
    assert not store.kept[0].validation
    assert store.validated(store.runs[0])["msr"] == {}


def test_probabilities_in_place_of_logits_are_said(tmp_path, folder):
    table = raw(folder)
    p = np.exp(table[:, :CLASSES])
    table[:, :CLASSES] = p / p.sum(axis=1, keepdims=True)
    np.savez(folder / "raw_logits.npz", table)
    found = import_fd_shifts(folder, tmp_path / "runs", arm="dg", seed=0, exposures=SHORT)
    assert any("stored probabilities" in note for note in found.notes)
    np.savez(folder / "raw_output.npz", table)
    (folder / "raw_logits.npz").unlink()
    (folder / "raw_logits_dist.npz").unlink()
    with pytest.raises(MissingInputError, match="holds probabilities"):
        import_fd_shifts(folder, tmp_path / "more", arm="dg", seed=0, exposures=SHORT)
    assert not (tmp_path / "more").exists()


def test_several_runs_and_the_same_one_again(tmp_path):
    out = tmp_path / "runs"
    for seed in (0, 1):
        folder = make_folder(tmp_path / str(seed), seed)
        import_fd_shifts(folder, out, arm="vit", seed=seed, exposures=SHORT)
    before = Store.read(out).kept
    with pytest.raises(InputError, match="imported before"):
        import_fd_shifts(folder, out, arm="vit", seed=1, exposures=SHORT)
    assert Store.read(out).kept == before
    other = make_folder(tmp_path / "other", 9)
    import_fd_shifts(other, out, arm="vit", seed=1, exposures=SHORT, replaces=True)
    after = Store.read(out)
    assert after.kept[0] == before[0]
    assert after.kept[1].tested != before[1].tested
    files = {path.name for path in (out / "imported").iterdir()}
    assert files == {one.rpartition("/")[2] for k in after.kept for one in (k.validation, k.tested)}
    places = [after.scores(run, "svhn").places.tolist() for run in after.runs]
    assert places[0] == places[1]


def test_other_pictures_are_refused(tmp_path, folder):
    out = tmp_path / "runs"
    import_fd_shifts(folder, out, arm="confidnet", seed=0, exposures=EXPOSURES)
    fewer = (*EXPOSURES[:2], "-", EXPOSURES[3])
    with pytest.raises(InputError, match=r"same exposures.*missing: corruption-brightness-1"):
        import_fd_shifts(folder, out, arm="confidnet", seed=1, exposures=fewer)
    table = raw(folder)
    table[COUNTS[0] + 3, -2] = (table[COUNTS[0] + 3, -2] + 1) % CLASSES
    np.savez(folder / "raw_logits.npz", table)
    with pytest.raises(InputError, match=r"'iid' must be of the same pictures.*picture 3"):
        import_fd_shifts(folder, out, arm="confidnet", seed=1, exposures=EXPOSURES)
    assert len(Store.read(out).kept) == 1


def test_into_a_folder_of_own_runs(tmp_path, folder):
    """The pictures must be the same; here they are not, and nothing is written."""
    make_runs(tmp_path / "runs")
    with pytest.raises(InputError, match="same exposures"):
        import_fd_shifts(folder, tmp_path / "runs", arm="vit", seed=0, exposures=EXPOSURES)
    assert not (tmp_path / "runs" / "imported").exists()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"exposures": ("validation", "iid")},
            r"2 entries for 4 data sets \(0: 40 pictures, 1: 30",
        ),
        ({"exposures": (*EXPOSURES[:3], "new-class")}, "'new-class:NAME'"),
        ({"exposures": (*EXPOSURES[:3], "iid")}, "'iid:iid' twice"),
        ({"exposures": ("validation", "-", "corruption", "-")}, "must hold 'iid'"),
        ({"exposures": (*EXPOSURES[:3], "corruption")}, "twice"),
        ({"exposures": ("validation", "iid", "new-class:a", "corruption")}, "15 corruptions"),
        ({"exposures": (*EXPOSURES[:3], "shift")}, "must be one of 'validation', 'iid'"),
        ({"arm": "confidnets"}, "Did you mean 'confidnet'"),
        ({"arm": "a/b"}, "up to 60 letters"),
        ({"seed": -1}, "whole number"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path, folder, changed, message):
    asked = {"arm": "vit", "seed": 0, "exposures": EXPOSURES} | changed
    with pytest.raises(InputError, match=message):
        import_fd_shifts(folder, tmp_path / "runs", **asked)
    assert not (tmp_path / "runs").exists()


def test_damaged_and_absent_folders(tmp_path, folder):
    with pytest.raises(InputError, match="no folder"):
        import_fd_shifts(tmp_path / "x", tmp_path / "r", arm="vit", seed=0, exposures=SHORT)
    np.savez(folder / "last_layer.npz", np.zeros((2, 2)), np.zeros(2))
    with pytest.raises(FileFormatError, match="last_layer"):
        import_fd_shifts(folder, tmp_path / "r", arm="vit", seed=0, exposures=SHORT)
    np.savez(folder / "raw_logits.npz", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(FileFormatError, match="never loaded"):
        import_fd_shifts(folder, tmp_path / "r", arm="vit", seed=0, exposures=SHORT)
