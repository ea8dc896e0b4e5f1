"""FD-Shifts results of old versions, of a tenth of the corruptions, and of several models."""

from dataclasses import replace

import numpy as np
import pytest
from bench.tests.runs.known_outputs import KNOWN, NETWORK
from bench.tests.runs.shifts_folder import CLASSES, EXPOSURES, SHORT, make_folder, raw

from abstain._foundation.subsample import subsampled_rows
from abstain.errors import InputError
from abstain_bench.runs.importing import import_fd_shifts
from abstain_bench.runs.importing.fd_shifts import configured_model, logits_of_probabilities
from abstain_bench.runs.importing.imported_run import LEVEL_SCORES
from abstain_bench.runs.methods import METHODS, score_all
from abstain_bench.runs.methods.catalogue import fd_shifts_scores
from abstain_bench.runs.store import Store


@pytest.fixture
def folder(tmp_path):
    return make_folder(tmp_path / "vit" / "test_results", 1)


# ------------------------------------------------------- old folders of DeepGamblers networks
def with_probabilities(path, dtype):
    """Make the folder of a DeepGamblers network, and one with its softmax in place of its logits.

    Versions of FD-Shifts before November 2023 stored the softmax over the classes and abstention.
    """
    logits = make_folder(path / "logits", 1, train=False, abstains=True)
    table = raw(logits)
    table[:, :CLASSES] *= 2
    reservation = np.random.default_rng(3).normal(size=len(table))
    every = np.column_stack([table[:, :CLASSES], reservation])
    p = np.exp(every) / np.exp(every).sum(axis=1, keepdims=True)
    np.savez(logits / "raw_logits.npz", table)
    old = make_folder(path / "old", 1, train=False, abstains=True)
    table[:, :CLASSES] = p[:, :CLASSES]
    np.savez(old / "raw_logits.npz", table.astype(dtype))
    return logits, old


@pytest.mark.parametrize(("dtype", "error"), [(np.float64, 1e-6), (np.float16, 3e-3)])
def test_the_logits_of_old_deep_gamblers_folders_are_recovered(tmp_path, dtype, error):
    logits, old = with_probabilities(tmp_path, dtype)
    asked = {"arm": "dg", "seed": 0, "exposures": SHORT}
    import_fd_shifts(logits, tmp_path / "a", **asked)
    imported_run = import_fd_shifts(old, tmp_path / "b", stored_probabilities=True, **asked)
    flat = import_fd_shifts(old, tmp_path / "c", **asked)
    assert any("(--stored-probabilities)" in note for note in flat.notes)
    assert not any("(--stored-probabilities)" in note for note in imported_run.notes)
    assert imported_run.run.facts["stored_probabilities"]
    assert set(flat.methods) - set(imported_run.methods) == LEVEL_SCORES
    for name in LEVEL_SCORES:
        assert imported_run.reasons[name] == "the logits are known up to a constant for each image"
    stores = [Store.read(tmp_path / name) for name in "abc"]
    expected, ours, flattened = (s.scores(s.tested_runs[0], "iid").confidence for s in stores)
    # The temperature of these few images depends on probabilities that float16 rounds off.
    tempered = ("dg_temp_msr",) if dtype is np.float64 else ()
    for name in ("dg_msr", "dg_pe", "dg_mcd_msr", "dg_res", *tempered):
        close = {"rtol": 10 * error, "atol": 10 * error}
        np.testing.assert_allclose(ours[name], expected[name], **close, err_msg=name)
    # Read as logits, probabilities give a softmax that is nearly even.
    assert np.abs(flattened["dg_msr"] - expected["dg_msr"]).max() > 1


def test_what_is_no_softmax_is_not_read_as_one(tmp_path, folder):
    asked = {"seed": 0, "exposures": SHORT, "stored_probabilities": True}
    with pytest.raises(InputError, match=r"raw_logits\.npz holds no probabilities"):
        import_fd_shifts(folder, tmp_path / "runs", arm="dg", **asked)
    with pytest.raises(InputError, match="an option for DeepGamblers networks only"):
        import_fd_shifts(folder, tmp_path / "runs", arm="devries", **asked)
    assert not (tmp_path / "runs").exists()


def test_logarithms_of_rounded_probabilities_are_finite():
    p = np.array([[1.0, 0.0], [0.25, 0.5]], dtype=np.float16)
    result = logits_of_probabilities(p)
    assert result[1].tolist() == [np.log(0.25), np.log(0.5)]
    # Half of the smallest float16.
    assert result[0].tolist() == [0.0, pytest.approx(np.log(2.0**-25))]
    wide = logits_of_probabilities(p.astype(np.float64))
    assert np.isfinite(wide).all()
    assert wide[0, 1] < -700


def test_scores_of_the_level_of_logits_are_those_that_a_constant_changes():
    """Of a DeepGamblers network without features, which old folders lack."""
    names = [
        name
        for name, method in METHODS.items()
        if method.objective == "deep-gamblers" and not {"features", "learned"} & method.needs
    ]
    constant = np.random.default_rng(0).normal(size=(NETWORK.n, 1)).astype(np.float32)
    moved = replace(NETWORK, logits=NETWORK.logits + constant)
    before, after = (score_all(names, KNOWN, outputs) for outputs in (NETWORK, moved))
    changed = {n for n in names if not np.allclose(before[n], after[n], rtol=1e-3, atol=1e-3)}
    assert changed == LEVEL_SCORES


# ----------------------------------------------------------------- a tenth of the corruptions
def test_all_methods_of_passes_are_there_with_a_tenth_of_the_corrupted_pictures(tmp_path):
    """All of them were lost on all test sets: those of the corrupted images have no match."""
    folder = make_folder(tmp_path / "x", 1, counts=(40, 30, 75 * 30, 25))
    taken = subsampled_rows(30, CLASSES, 10)
    corrupted = 70 + (30 * np.arange(75)[:, None] + taken).ravel()
    kept = np.concatenate([np.arange(70), corrupted, np.arange(70 + 75 * 30, 95 + 75 * 30)])
    samples = raw(folder, "raw_logits_dist")[kept]
    external = raw(folder, "external_confids_dist")[kept]
    for name in ("raw_logits", "encoded_output", "external_confids"):
        np.savez(folder / f"{name}.npz", raw(folder, name)[kept])
    result = import_fd_shifts(folder, tmp_path / "runs", arm="devries", seed=0, exposures=EXPOSURES)
    mcd = {name for name in fd_shifts_scores("devries").values() if "mcd" in name}
    assert len(mcd) == 8
    assert mcd | {"devries_waic"} <= set(result.methods)
    assert not result.reasons
    store = Store.read(tmp_path / "runs")
    for key, first in {"corruption-brightness-1": 70, "corruption-fog-3": 70 + 22 * 3}.items():
        rows = slice(first, first + 3)
        scores = store.scores(store.runs[0], key)
        p = np.exp(samples[rows]) / np.exp(samples[rows]).sum(axis=1, keepdims=True)
        mean = p.mean(axis=2)
        odds = np.log(mean.max(axis=1)) - np.log1p(-mean.max(axis=1))
        assert np.allclose(scores.confidence["devries_mcd_msr"], odds, atol=1e-5)
        assert np.array_equal(scores.mean_prediction, mean.argmax(axis=1))
        assert np.allclose(scores.confidence["mcd_devries"], external[rows].mean(axis=1))


def configure(folder, text):
    (folder.parent / "hydra").mkdir(exist_ok=True)
    (folder.parent / "hydra" / "config.yaml").write_text(text)


def network_of(backbone, name):
    """The part of a configuration of FD-Shifts that names a network."""
    return (
        "model:\n  name: devries_model\n  network:\n"
        f"    name: {name}\n    backbone: {backbone}\n    imagenet_weights_path: null\n"
        "  fc_dim: 512\nname: another\n"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (network_of("vgg13", "devries_and_enc"), "vgg13"),
        (network_of("null", "vit"), "vit"),
        ("model:\n  network:\n    name: 'resnet50'\n", "resnet50"),
        ("model:\n  name: vit_model\n", ""),
    ],
)
def test_the_model_is_read_from_the_configuration(tmp_path, text, expected):
    folder = make_folder(tmp_path / "x" / "test_results", 1, train=False, sampled=False)
    configure(folder, text)
    for place in (folder, folder.parent):
        assert configured_model(place) == expected


def test_networks_of_two_models_are_kept_apart(tmp_path):
    """They were merged into one method, whose setting was chosen among both backbones."""
    out = tmp_path / "runs"
    cnn, vit = (make_folder(tmp_path / n / "test_results", i) for i, n in enumerate("ab"))
    asked = {"arm": "confidnet", "exposures": SHORT}
    import_fd_shifts(cnn, out, seed=0, setting="vgg", model="vgg13", **asked)
    with pytest.raises(InputError, match=r"the same model.*has the model 'vgg13', got the model"):
        import_fd_shifts(vit, out, seed=0, setting="vit", model="vit-b16", **asked)
    assert len(Store.read(out).runs) == 1
    # Replacing the only run may change the model of the folder.
    import_fd_shifts(vit, out, seed=0, setting="vgg", model="vit-b16", replaces=True, **asked)
    assert Store.read(out).runs[0].model == "vit-b16"
    imported_run = import_fd_shifts(cnn, out, seed=1, setting="vgg", model="vit-b16", **asked)
    assert not any("same model" in note for note in imported_run.notes)


def test_models_without_a_name_are_compared_by_configuration_and_features(tmp_path):
    asked = {"arm": "confidnet", "exposures": SHORT}
    cnn, vit = (make_folder(tmp_path / n / "test_results", i) for i, n in enumerate("ab"))
    import_fd_shifts(cnn, tmp_path / "one", seed=0, **asked)
    configure(cnn, network_of("vgg13", "confidnet_and_enc"))
    configure(vit, network_of("null", "vit"))
    import_fd_shifts(cnn, tmp_path / "two", seed=0, **asked)
    with pytest.raises(InputError, match="has the model 'vgg13', got the model 'vit'"):
        import_fd_shifts(vit, tmp_path / "two", seed=1, **asked)
    narrow = raw(vit, "encoded_output")[:, 1:]
    np.savez(vit / "encoded_output.npz", narrow)
    for name in ("train_features.npz", "last_layer.npz"):
        (vit / name).unlink()
    with pytest.raises(InputError, match="has 5 features, got 4 features"):
        import_fd_shifts(vit, tmp_path / "one", seed=1, **asked)
    (vit / "encoded_output.npz").unlink()
    imported_run = import_fd_shifts(vit, tmp_path / "one", seed=1, **asked)
    (note,) = [note for note in imported_run.notes if "same model" in note]
    assert note.endswith("as confidnet-seed0; set the model of every run with `model` (--model)")
