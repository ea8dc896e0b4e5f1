"""FD-Shifts results as runs: what is read, what is computed from it, what is refused."""

import numpy as np
import pytest
from bench.tests.runs.shifts_folder import CLASSES, COUNTS, EXPOSURES, SHORT, make_folder, raw
from bench.tests.runs.stored_runs import make_runs

import abstain as ab
from abstain.errors import FileFormatError, InputError, MissingInputError
from abstain_bench.data.corruptions import CORRUPTIONS
from abstain_bench.results import results_of
from abstain_bench.runs.importing import import_fd_shifts
from abstain_bench.runs.importing.fd_shifts import read_results
from abstain_bench.runs.methods import METHODS
from abstain_bench.runs.store import Store


@pytest.fixture
def folder(tmp_path):
    return make_folder(tmp_path / "vit" / "test_results", 1)


def test_a_folder_becomes_a_store(tmp_path, folder):
    result = import_fd_shifts(
        folder.parent, tmp_path / "runs", arm="vit", seed=3, exposures=EXPOSURES, model="vit-b16"
    )
    store = Store.read(tmp_path / "runs")
    (run,) = store.tested_runs
    assert (run.name, run.arm, run.seed, run.model) == ("vit-seed3", "vit", 3, "vit-b16")
    assert run.facts["digest"]
    assert store.classes == ("0", "1", "2")
    keys = [exposure.key for exposure in store.exposures]
    assert keys[0] == "iid"
    assert keys[-1] == "svhn"
    assert len(keys) == 1 + 75 + 1
    assert {exposure.kind for exposure in store.exposures} == {"iid", "corruption", "new-class"}
    assert {exposure.corruption for exposure in store.exposures} == {*CORRUPTIONS, ""}
    table = raw(folder)
    iid = store.scores(run, "iid", logits=True)
    rows = table[:, -1] == 1
    assert np.array_equal(iid.logits, table[rows, :CLASSES].astype(np.float32))
    assert np.array_equal(iid.labels, table[rows, -2])
    assert np.array_equal(iid.prediction, table[rows, :CLASSES].argmax(axis=1))
    assert any("float16" in note for note in run.facts["notes"])
    assert {"msr", "temp_msr", "mcd_mi", "mahalanobis", "vim", "react"} <= set(result.methods)
    assert set(iid.confidence) == set(result.methods) == set(store.validation_values(run))


def test_the_numbers_equal_those_of_the_evaluation(tmp_path, folder):
    import_fd_shifts(folder, tmp_path / "runs", arm="vit", seed=0, exposures=SHORT)
    store = Store.read(tmp_path / "runs")
    run = store.tested_runs[0]
    reading = ab.tables.read_predictions(folder)
    for key, code in {"validation": "0", "iid": "1"}.items():
        expected = reading[("dataset", code),]
        result = store.scores(run, key).confidence
        for name in ("msr", "mls", "pe", "gen"):
            assert np.allclose(result[name], ab.confidence.score(name, expected).values, atol=1e-6)
    wrong = ~reading[("dataset", "0"),].correct
    direct = ab.augrc(store.scores(run, "validation").confidence["msr"], wrong)
    assert store.validation_values(run)["msr"]["augrc"] == pytest.approx(float(direct), abs=1e-12)


def test_corruptions_are_in_the_order_of_their_stack(tmp_path, folder):
    """15 corruptions by name, each in 5 severities, each of the same images."""
    import_fd_shifts(folder, tmp_path / "runs", arm="devries", seed=0, exposures=EXPOSURES)
    store = Store.read(tmp_path / "runs")
    table = raw(folder)
    noise = table[table[:, -1] == 2, :CLASSES].astype(np.float32).reshape(15, 5, 2, CLASSES)
    for key, place in {
        "corruption-brightness-1": (0, 0),
        "corruption-jpeg-2": (9, 1),
        "corruption-zoom-blur-5": (14, 4),
    }.items():
        result = store.scores(store.tested_runs[0], key, logits=True)
        assert np.array_equal(result.logits, noise[place])
        assert result.source_indices.tolist() == [COUNTS[0] + COUNTS[1], COUNTS[0] + COUNTS[1] + 1]
    new = store.scores(store.tested_runs[0], "svhn")
    assert (new.labels == -1).all()
    assert new.source_indices.min() > result.source_indices.max()


@pytest.mark.parametrize(
    ("arm", "own"),
    [
        ("confidnet", {"confidnet": "external_confids", "mcd_confidnet": "external_confids_dist"}),
        ("dg", {"dg_res": "external_confids", "dg_res_mcd": "external_confids_dist"}),
        ("devries", {"devries": "external_confids", "mcd_devries": "external_confids_dist"}),
    ],
)
def test_external_confidences_are_the_methods_they_are(tmp_path, folder, arm, own):
    result = import_fd_shifts(folder, tmp_path / "runs", arm=arm, seed=0, exposures=SHORT)
    store = Store.read(tmp_path / "runs")
    confidence = store.scores(store.tested_runs[0], "iid").confidence
    for name, file in own.items():
        values = raw(folder, file)[COUNTS[0] : COUNTS[0] + COUNTS[1]]
        assert np.array_equal(confidence[name], values if values.ndim == 1 else values.mean(axis=1))
    # The classifier of ConfidNet is one of cross-entropy; the others have names of their own.
    assert ("msr" in result.methods) == (arm == "confidnet")
    assert any("external" in note for note in result.notes)


def test_the_folder_of_confidnet_has_the_methods_of_its_classifier_too(tmp_path, folder):
    both = import_fd_shifts(folder, tmp_path / "both", arm="tcp", seed=0, exposures=SHORT)
    plain = import_fd_shifts(folder, tmp_path / "plain", arm="vit", seed=0, exposures=SHORT)
    assert set(both.methods) == {*plain.methods, "confidnet", "mcd_confidnet", "confidnet_waic"}
    assert {"msr", "temp_msr", "mcd_pe", "mahalanobis", "vim", "react"} <= set(both.methods)
    stores = [Store.read(tmp_path / name) for name in ("both", "plain")]
    for key in ("validation", "iid", "svhn"):
        one, other = (store.scores(store.runs[0], key).confidence for store in stores)
        for name in plain.methods:
            assert np.array_equal(one[name], other[name]), name


@pytest.mark.parametrize("arm", ["tcp", "dg"])
def test_a_score_under_another_name_is_not_imported_twice(tmp_path, arm):
    """Each counts once in the ranks."""
    folder = make_folder(tmp_path / "x", 1, abstains=arm == "dg")
    imported_run = import_fd_shifts(folder, tmp_path / "runs", arm=arm, seed=0, exposures=SHORT)
    assert not [name for name in imported_run.methods if METHODS[name].same_as]
    (ranks,) = results_of(Store.read(tmp_path / "runs"), metrics=["aurc"]).comparisons.values()
    assert set(ranks.methods) == set(imported_run.methods)


def test_the_last_layer_of_deep_gamblers_has_a_row_for_abstention(tmp_path):
    folder = make_folder(tmp_path / "x", 1, abstains=True)
    imported_run = import_fd_shifts(folder, tmp_path / "runs", arm="dg", seed=0, exposures=SHORT)
    assert {"dg_res", "dg_msr", "dg_pe", "dg_mcd_msr", "dg_temp_msr"} <= set(imported_run.methods)
    results = read_results(folder, SHORT, abstains=True)
    assert [len(part) for part in results.last_layer] == [CLASSES, CLASSES]
    layer = np.load(folder / "last_layer.npz")
    expected = results.train.features @ layer["w"][:CLASSES].T + layer["b"][:CLASSES]
    assert np.allclose(results.train.logits, expected, atol=1e-4)
    with pytest.raises(FileFormatError, match=r"last_layer.npz must hold.*'dg'"):
        import_fd_shifts(folder, tmp_path / "runs", arm="vit", seed=1, exposures=SHORT)


def masked(table, out):
    """Set logits aside as the analysis of FD-Shifts does."""
    logits = table[:, :CLASSES].copy()
    logits[:, out] = -np.inf
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def test_classes_held_out_are_new_classes(tmp_path):
    folder = make_folder(tmp_path / "x", 1, held_out=[0])
    asked = {"arm": "confidnet", "seed": 0, "held_out": [0]}
    result = import_fd_shifts(folder, tmp_path / "runs", exposures=EXPOSURES, **asked)
    store = Store.read(tmp_path / "runs")
    assert store.classes == ("1", "2")
    assert [exposure.key for exposure in store.exposures][-2:] == ["svhn", "held-out-classes"]
    assert store.exposures[-1].kind == "new-class"
    run, table = store.tested_runs[0], raw(folder)
    iid, p = table[:, -1] == 1, masked(table, [0])
    new = table[:, -2] == 0
    known, held = (store.scores(run, key) for key in ("iid", "held-out-classes"))
    for said, rows in ((known, iid & ~new), (held, iid & new)):
        largest = p[rows].max(axis=1)
        odds = np.log(largest) - np.log1p(-largest)
        assert np.allclose(said.confidence["msr"], odds, atol=1e-4)
        assert np.array_equal(said.prediction, p[rows].argmax(axis=1) - 1)
        external = raw(folder, "external_confids")[rows]
        assert np.array_equal(said.confidence["confidnet"], external)
        passes = raw(folder, "raw_logits_dist")[rows][:, 1:]
        q = np.exp(passes) / np.exp(passes).sum(axis=1, keepdims=True)
        assert np.array_equal(said.mean_prediction, q.mean(axis=2).argmax(axis=1))
    assert np.array_equal(known.labels, table[iid & ~new, -2] - 1)
    assert (held.labels == -1).all()
    assert not np.intersect1d(known.source_indices, held.source_indices).size
    validation = (table[:, -1] == 0) & ~new
    assert np.array_equal(store.scores(run, "validation").labels, table[validation, -2] - 1)
    assert run.facts["held_out"] == [0]
    assert any(f"{int((iid & new).sum())} i.i.d. images" in note for note in result.notes)
    # The study: i.i.d. images that are right, and new ones, which are all wrong.
    right = p.argmax(axis=1) == table[:, -2]
    rows = iid & (right | new)
    expected = ab.augrc(p[rows].max(axis=1), new[rows])
    results = results_of(store, metrics=["augrc"], studies=["held-out-classes"], methods=["msr"])
    (row,) = results.rows("estimates")
    assert row["value"] == pytest.approx(float(expected), abs=1e-12)


def test_classes_held_out_are_requested_and_checked(tmp_path):
    folder = make_folder(tmp_path / "x" / "test_results", 1, held_out=[2])
    asked = {"arm": "vit", "seed": 0, "exposures": SHORT}
    imported_run = import_fd_shifts(folder, tmp_path / "a", **asked)
    assert any("no training image has the classes 2" in note for note in imported_run.notes)
    for wrong, said in (
        ([3], "0 to 2; got 3"),
        ([2, 2], "one of them twice"),
        ([True], "got True"),
        ([0], "which training images in train_features.npz have"),
        ([0, 2], "must leave two classes"),
    ):
        with pytest.raises(InputError, match=said):
            import_fd_shifts(folder, tmp_path / "b", held_out=wrong, **asked)
    import_fd_shifts(folder, tmp_path / "b", held_out=[2], **asked)
    for text in ("    out_classes:\n    - 2\n  num_classes: 3\n", "    out_classes: [2]\n"):
        (folder.parent / "hydra").mkdir(exist_ok=True)
        (folder.parent / "hydra" / "config.yaml").write_text(f"data:\n  kwargs:\n{text}")
        for results in (folder, folder.parent):
            with pytest.raises(InputError, match=r"\(out_classes\): --held-out 2; got none"):
                import_fd_shifts(results, tmp_path / "c", **asked)
    import_fd_shifts(folder, tmp_path / "c", held_out=[2], **asked)
    other = make_folder(tmp_path / "y", 2)
    with pytest.raises(InputError, match=r"same classes.* are 0, 1; got 0, 1, 2"):
        import_fd_shifts(other, tmp_path / "c", **asked | {"seed": 1})


def test_what_cannot_be_computed_has_a_reason(tmp_path):
    folder = make_folder(tmp_path / "a", 1, train=False, sampled=False)
    result = import_fd_shifts(
        folder, tmp_path / "runs", arm="vit", seed=0, exposures=("-", *SHORT[1:])
    )
    assert result.methods == ("msr", "mls", "pe", "energy", "margin", "gini", "gen")
    assert "train_features.npz" in result.reasons["mahalanobis"]
    assert "validation data" in result.reasons["temp_msr"]
    assert "dropout" in result.reasons["mcd_pe"]
    store = Store.read(tmp_path / "runs")
    assert not store.stored_runs[0].validation_file
    assert store.validation_values(store.runs[0])["msr"] == {}


def test_probabilities_in_place_of_logits_are_said(tmp_path, folder):
    table = raw(folder)
    p = np.exp(table[:, :CLASSES])
    table[:, :CLASSES] = p / p.sum(axis=1, keepdims=True)
    np.savez(folder / "raw_logits.npz", table)
    imported_run = import_fd_shifts(folder, tmp_path / "runs", arm="dg", seed=0, exposures=SHORT)
    assert any("`stored_probabilities`" in note for note in imported_run.notes)
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
    before = Store.read(out).stored_runs
    with pytest.raises(InputError, match="imported before"):
        import_fd_shifts(folder, out, arm="vit", seed=1, exposures=SHORT)
    assert Store.read(out).stored_runs == before
    other = make_folder(tmp_path / "other", 9)
    import_fd_shifts(other, out, arm="vit", seed=1, exposures=SHORT, replaces=True)
    after = Store.read(out)
    assert after.stored_runs[0] == before[0]
    assert after.stored_runs[1].test_file != before[1].test_file
    files = {path.name for path in (out / "imported").iterdir()}
    assert files == {
        one.rpartition("/")[2]
        for k in after.stored_runs
        for one in (k.validation_file, k.test_file)
    }
    places = [after.scores(run, "svhn").source_indices.tolist() for run in after.runs]
    assert places[0] == places[1]


def test_other_pictures_raise_an_error(tmp_path, folder):
    out = tmp_path / "runs"
    import_fd_shifts(folder, out, arm="confidnet", seed=0, exposures=EXPOSURES)
    fewer = (*EXPOSURES[:2], "-", EXPOSURES[3])
    with pytest.raises(InputError, match=r"same exposures.*missing: corruption-brightness-1"):
        import_fd_shifts(folder, out, arm="confidnet", seed=1, exposures=fewer)
    table = raw(folder)
    table[COUNTS[0] + 3, -2] = (table[COUNTS[0] + 3, -2] + 1) % CLASSES
    np.savez(folder / "raw_logits.npz", table)
    with pytest.raises(InputError, match=r"'iid' must have the same images.*image 3"):
        import_fd_shifts(folder, out, arm="confidnet", seed=1, exposures=EXPOSURES)
    assert len(Store.read(out).stored_runs) == 1


def test_into_a_folder_of_own_runs(tmp_path, folder):
    """The images must be the same; here they are not, and nothing is written."""
    make_runs(tmp_path / "runs")
    with pytest.raises(InputError, match="same exposures"):
        import_fd_shifts(folder, tmp_path / "runs", arm="vit", seed=0, exposures=EXPOSURES)
    assert not (tmp_path / "runs" / "imported").exists()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"exposures": ("validation", "iid")},
            r"2 entries for 4 data sets \(0: 40 images, 1: 30",
        ),
        ({"exposures": (*EXPOSURES[:3], "new-class")}, "'new-class:NAME'"),
        ({"exposures": (*EXPOSURES[:3], "iid")}, "'iid:iid' twice"),
        ({"exposures": ("validation", "-", "corruption", "-")}, "must contain 'iid'"),
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
