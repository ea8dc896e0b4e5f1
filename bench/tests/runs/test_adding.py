"""Scores of others: added to a folder of runs, kept whole, refused where they do not fit."""

import json
import shutil

import numpy as np
import polars as pl
import pytest
from bench.tests.runs.stored_runs import KEYS, METRICS, make_runs

from abstain.errors import DomainError, FileFormatError, InputError, UnknownNameError
from abstain_bench.runs.importing import add_scores, export, remove_scores
from abstain_bench.runs.selection import select_best_settings
from abstain_bench.runs.store import Additions, Store, pack_scores, write_manifest


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    place = tmp_path_factory.mktemp("made") / "runs"
    make_runs(place)
    return place


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made, tmp_path / "runs")


def rows_of(folder, method="msr"):
    """Return the exported rows with the confidences of a method beside them."""
    store = Store.read(folder, with_added=False)
    place = folder.parent / "all.parquet"
    export(store, None, place)
    said = [store.scores(run, key).confidence[method] for run in store.tested_runs for key in KEYS]
    return pl.read_parquet(place).with_columns(mine=pl.Series(np.concatenate(said)))


def saved(folder, rows, name="mine.parquet"):
    path = folder.parent / name
    rows.write_parquet(path)
    return path


def test_what_is_exported_is_what_the_run_said(folder):
    store = Store.read(folder)
    result = export(store, store.tested_runs[1], folder.parent / "one.parquet")
    rows = pl.read_parquet(result.path)
    assert (result.runs, result.rows, result.classes) == (("plain-seed1",), rows.height, 3)
    assert rows["exposure"].unique(maintain_order=True).to_list() == list(KEYS)
    for key in KEYS:
        scores = store.scores(store.tested_runs[1], key, logits=True)
        own = rows.filter(exposure=key)
        assert own["row"].to_list() == list(range(scores.n))
        assert own["label"].to_list() == scores.labels.tolist()
        assert own["prediction"].to_list() == scores.prediction.tolist()
        logits = own.select("logit_0", "logit_1", "logit_2").to_numpy()
        assert logits.dtype == np.float32
        assert np.array_equal(logits, scores.logits)
    with pytest.raises(UnknownNameError, match="Did you mean 'plain-seed"):
        export(store, "plain-seed", folder.parent / "one.parquet")
    with pytest.raises(InputError, match="must end in"):
        export(store, None, folder.parent / "one.csv")


@pytest.mark.parametrize("kind", ["parquet", "csv", "feather", "jsonl", "npz"])
def test_rows_in_any_order_and_format_are_the_same_scores(folder, kind):
    rows = rows_of(folder).select("run", "exposure", "row", "mine")
    rows = rows.sample(fraction=1.0, shuffle=True, seed=3)
    path = folder.parent / f"mine.{kind}"
    if kind == "npz":
        np.savez(
            path,
            **{c: rows[c].to_numpy() for c in rows.columns if rows[c].dtype != pl.String},
            **{c: rows[c].to_numpy().astype(str) for c in ("run", "exposure")},
        )
    else:
        write = {"jsonl": "write_ndjson", "feather": "write_ipc"}.get(kind, f"write_{kind}")
        getattr(rows, write)(path)
    (facts,) = add_scores(folder, path, title="My score").methods
    store = Store.read(folder)
    assert (facts.name, facts.title, facts.file) == ("mine", "My score", path.name)
    assert store.added_methods == (facts,)
    assert facts.n == rows.height
    for run in store.tested_runs:
        assert store.validation_values(run)["mine"] == store.validation_values(run)["msr"]
        for key in KEYS:
            confidence = store.scores(run, key).confidence
            assert np.array_equal(confidence["mine"], confidence["msr"])


def test_uncertainties_names_and_several_columns(folder):
    rows = rows_of(folder).with_columns(a=-pl.col("mine"), b=-pl.col("logit_0")).drop("mine")
    result = add_scores(folder, saved(folder, rows), name="unc", title="Doubt", lower_is_safer=True)
    assert [method.name for method in result.methods] == ["unc-a", "unc-b"]
    assert [method.title for method in result.methods] == ["Doubt, a", "Doubt, b"]
    store = Store.read(folder)
    scores = store.scores(store.tested_runs[0], "digits", logits=True)
    assert np.array_equal(scores.confidence["unc-a"], scores.confidence["msr"])
    assert np.allclose(scores.confidence["unc-b"], scores.logits[:, 0])
    add_scores(folder, saved(folder, rows), columns=["b"], name="logit")
    assert [method.name for method in Store.read(folder).added_methods] == [
        "unc-a",
        "unc-b",
        "logit",
    ]


def test_a_method_is_replaced_and_removed(folder):
    path = saved(folder, rows_of(folder))
    add_scores(folder, path)
    with pytest.raises(InputError, match="'mine' was added before"):
        add_scores(folder, path)
    other = saved(folder, rows_of(folder, "mls"), "other.parquet")
    add_scores(folder, other, replace=True)
    store = Store.read(folder)
    confidence = store.scores(store.tested_runs[0], "iid").confidence
    assert np.array_equal(confidence["mine"], confidence["mls"])
    assert [method.file for method in store.added_methods] == ["other.parquet"]
    assert len(list((folder / "added").glob("*.npz"))) == len(store.tested_runs)
    assert remove_scores(folder, "mine").file == "other.parquet"
    store = Store.read(folder)
    assert store.added_methods == ()
    assert set(store.scores(store.tested_runs[0], "iid").confidence) == {"msr", "mls", "pe"}
    assert not list((folder / "added").glob("*.npz"))
    with pytest.raises(UnknownNameError, match="It has: none"):
        remove_scores(folder, "mine")


def test_what_is_interrupted_was_not_added(folder, monkeypatch):
    """Whatever was written before the receipts does not count, and goes with the next adding."""
    path = saved(folder, rows_of(folder))
    add_scores(folder, path, name="first")
    before = Store.read(folder)

    def stopped(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Additions, "write", stopped)
        with pytest.raises(KeyboardInterrupt):
            add_scores(folder, path, name="second")
    assert Store.read(folder).added_methods == before.added_methods
    assert len(list((folder / "added").glob("*.npz"))) == 6
    add_scores(folder, path, name="third")
    assert [method.name for method in Store.read(folder).added_methods] == ["first", "third"]
    assert len(list((folder / "added").glob("*.npz"))) == 6


def test_predictions_of_its_own_are_judged(folder):
    """A classifier that came with its scores is a network of its own, with the same seeds."""
    rows = rows_of(folder).with_columns(
        prediction=pl.when(pl.col("label") >= 0).then(pl.col("label")).otherwise(0)
    )
    result = add_scores(folder, saved(folder, rows))
    assert "predictions of the file" in result.notes[-1]
    store = Store.read(folder)
    own = [run for run in store.tested_runs if run.arm == "mine"]
    assert [(run.name, run.setting, run.seed) for run in own] == [
        (f"mine-plain-seed{k}", "", k) for k in range(3)
    ]
    scores = store.scores(own[0], "iid")
    assert np.array_equal(scores.prediction, scores.labels)
    assert list(scores.confidence) == ["mine"]
    assert store.validation_values(own[0])["mine"]["accuracy"] == 1.0
    assert "mine" not in store.scores(store.tested_runs[0], "iid").confidence
    assert {
        setting.arm
        for setting in select_best_settings(store.stored_runs, METRICS)
        if setting.method == "mine"
    } == {"mine"}
    assert export(store, None, folder.parent / "again.parquet").runs == tuple(
        f"plain-seed{k}" for k in range(3)
    )


def test_settings_are_chosen_by_the_validation_rows(tmp_path):
    folder = tmp_path / "runs"
    make_runs(folder, settings=("a", "b", "c"), tested=("a", "b"))
    rows = rows_of(folder).with_columns(
        # Nothing but the label tells how good the second setting is.
        mine=pl.when(pl.col("run").str.contains("-b-"))
        .then((pl.col("prediction") == pl.col("label")).cast(pl.Float64))
        .otherwise(pl.col("mine"))
    )
    rest = rows.filter(~((pl.col("exposure") == "validation") & pl.col("run").str.contains("-a-")))
    with pytest.raises(
        InputError, match=r"2 settings \(plain a, plain b\).*validation data must select"
    ):
        add_scores(folder, saved(folder, rest))
    untested = rows.filter(run="plain-a-seed0", exposure="validation").with_columns(
        run=pl.lit("plain-c-seed0")
    )
    notes = add_scores(folder, saved(folder, pl.concat([rows, untested]))).notes
    assert any("not tested" in note and "plain-c-seed0" in note for note in notes)
    selected = {
        setting.metric: setting
        for setting in select_best_settings(Store.read(folder).stored_runs, METRICS)
        if setting.method == "mine"
    }
    assert selected["failure_auroc"].setting == "b"
    assert set(selected["failure_auroc"].tried) == {"a", "b"}
    beyond = untested.with_columns(exposure=pl.lit("iid"), row=pl.int_range(pl.len()) % 80)
    with pytest.raises(InputError, match="'plain-c-seed0' was not tested"):
        add_scores(folder, saved(folder, pl.concat([rows, beyond.head(80)])), name="more")


def test_without_validation_rows_one_setting_can_be_added(folder):
    rows = rows_of(folder).filter(pl.col("exposure") != "validation")
    result = add_scores(folder, saved(folder, rows))
    assert "no rows of the exposure 'validation'" in result.notes[0]
    store = Store.read(folder)
    assert store.validation_values(store.runs[0])["mine"] == {}
    assert "mine" not in store.scores(store.runs[0], "validation").confidence
    assert any(
        setting.method == "mine" for setting in select_best_settings(store.stored_runs, METRICS)
    )


def _without(rows, **where):
    kept = pl.all_horizontal(pl.col(name) == value for name, value in where.items())
    return rows.filter(~kept)


BROKEN = {
    "run": (lambda r: r.with_columns(run=pl.col("run").str.replace("0", "9")), "Did you mean"),
    "exposure": (
        lambda r: r.with_columns(exposure=pl.col("exposure").str.replace("unseen", "unsen")),
        r"no exposure 'unsen' .*Did you mean 'unseen'",
    ),
    "missing row": (
        lambda r: _without(r, run="plain-seed1", exposure="iid", row=7),
        r"exposure 'iid' of the run 'plain-seed1', 1 of 80 are missing, the first is row 7",
    ),
    "row twice": (
        lambda r: pl.concat([r, r.filter(run="plain-seed1", exposure="digits", row=4)]),
        "row 4 of the exposure 'digits' of the run 'plain-seed1' is in the rows .* and 1350",
    ),
    "row beyond": (
        lambda r: r.with_columns(row=pl.when(exposure="iid", row=3).then(80).otherwise("row")),
        "'iid' has 80, and got 80",
    ),
    "row text": (lambda r: r.with_columns(row=pl.lit("x")), "'row' must hold whole numbers"),
    "nan": (
        lambda r: r.with_columns(
            mine=pl.when(run="plain-seed2", exposure="unseen", row=5)
            .then(float("nan"))
            .otherwise("mine")
        ),
        r"must be a finite number; got .*run 'plain-seed2', exposure 'unseen', row 5",
    ),
    "infinite": (lambda r: r.with_columns(mine=pl.lit(float("inf"))), "finite number; got inf"),
    "text": (lambda r: r.with_columns(mine=pl.lit("high")), "no column of confidences"),
    "exposure left out": (
        lambda r: r.filter(pl.col("exposure") != "digits"),
        "of the run 'plain-seed0' these are missing: digits",
    ),
    "seed left out": (
        lambda r: r.filter(pl.col("run") != "plain-seed1"),
        "all seeds of a setting must be scored.*missing: plain-seed1",
    ),
    "validation of some": (
        lambda r: _without(r, run="plain-seed1", exposure="validation"),
        "for all runs or for none; missing: plain-seed1",
    ),
    "labels": (
        lambda r: r.with_columns(label=pl.when(exposure="iid").then(0).otherwise("label")),
        "Are the rows counted as in the file",
    ),
    "prediction": (lambda r: r.with_columns(prediction=pl.lit(3)), "whole numbers from 0 to 2"),
    "no place": (lambda r: r.drop("row"), "has no column 'row'"),
    "nothing": (lambda r: r.drop("mine"), "no column of confidences"),
    "name": (lambda r: r.rename({"mine": "my score"}), "the name of a method must have up to 60"),
    "catalogue": (lambda r: r.rename({"mine": "confidnet"}), "is the name of a method"),
    "arm": (lambda r: r.rename({"mine": "plain"}), "is the name of a method or an arm"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_does_not_fit_raises_an_error_and_nothing_is_left(folder, what):
    change, message = BROKEN[what]
    rows = change(rows_of(folder))
    with pytest.raises((InputError, DomainError), match=message):
        add_scores(folder, saved(folder, rows))
    assert not (folder / "added").exists()


def test_classes_may_be_named(folder):
    names = pl.Series(["a", "b", "c"])
    rows = rows_of(folder)
    named = rows.with_columns(prediction=names.gather(rows["prediction"]))
    add_scores(folder, saved(folder, named.drop("label")))
    assert not Store.read(folder).added_methods[0].classifier
    with pytest.raises(UnknownNameError, match="no class 'z'"):
        add_scores(folder, saved(folder, rows.with_columns(prediction=pl.lit("z"))), name="other")


def test_pickles_and_other_folders_raise_an_error(folder, tmp_path):
    path = tmp_path / "mine.npz"
    np.savez(path, run=np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(FileFormatError, match="never loaded"):
        add_scores(folder, path)
    with pytest.raises(InputError, match="no folder of runs"):
        add_scores(tmp_path, path)


def test_scores_of_networks_that_changed_raise_an_error(folder):
    """Scores belong to the networks they were computed from; a new training voids them."""
    add_scores(folder, saved(folder, rows_of(folder)))
    store = Store.read(folder, with_added=False)
    kept = store.stored_runs[0]
    parts = [store.scores(kept.run, key, logits=True) for key in KEYS[1:]]
    parts[0].prediction[:5] = (parts[0].prediction[:5] + 1) % 3
    (folder / kept.test_file).write_bytes(pack_scores(parts))
    changed = Store.read(folder)
    assert "mine" in changed.scores(kept.run, "digits").confidence
    with pytest.raises(FileFormatError, match="has changed since 'mine' was added"):
        changed.scores(kept.run, "iid")


def test_receipts_outlive_the_manifest_and_damage_is_said(folder):
    add_scores(folder, saved(folder, rows_of(folder)))
    store = Store.read(folder, with_added=False)
    write_manifest(
        folder,
        config=store.config,
        facts=store.facts,
        classes=store.classes,
        exposures=store.exposures,
        stored_runs=store.stored_runs,
    )
    assert [method.name for method in Store.read(folder).added_methods] == ["mine"]
    receipts = folder / "added" / "added.json"
    fields = json.loads(receipts.read_text())
    receipts.write_text(json.dumps({**fields, "version": 9}))
    with pytest.raises(
        FileFormatError, match=r"damaged: the field `version` must be 1.*add the scores again"
    ):
        Store.read(folder)
