"""An added method in all tables: that which is there already differs from itself by nothing."""

import polars as pl
import pytest
from bench.tests.runs.shifts_folder import SHORT, make_folder
from bench.tests.runs.stored_runs import make_runs
from bench.tests.runs.test_adding import rows_of, saved
from tests.docs.blocks import ROOT, blocks

from abstain_bench.results import results_of
from abstain_bench.runs.importing import add_scores, import_fd_shifts
from abstain_bench.runs.store import Store

METRICS = ("augrc", "failure_auroc", "ece")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results") / "runs"
    make_runs(folder, methods=("msr", "mls"))
    add_scores(folder, saved(folder, rows_of(folder)), title="My own")
    # Whatever is added after it must not disturb it.
    worse = rows_of(folder).with_columns(worse=pl.int_range(pl.len()) % 17).drop("mine")
    add_scores(folder, saved(folder, worse))
    return results_of(Store.read(folder), metrics=METRICS, methods=["msr", "mls", "mine", "worse"])


def test_the_same_scores_are_the_same_in_every_table(results):
    assert [m.name for m in results.methods] == ["msr", "mls", "mine", "worse"]
    assert [m.added for m in results.methods] == [False, False, True, True]
    for table in ("estimates", "thresholds", "calibration"):
        rows = results.frame(table)
        assert rows.height
        own, other = (rows.filter(method=name).drop("method") for name in ("mine", "msr"))
        # That log-odds are meant is known of msr only, so that the other has no raw ECE.
        skipped = [c for c in ("rank", "raw") if c in own.columns]
        assert own.drop(skipped).equals(other.drop(skipped), null_equal=True), table


def test_the_same_scores_differ_by_nothing(results):
    pairs = results.frame("pairs").filter(
        pl.concat_list("first", "second").list.sort() == ["mine", "msr"]
    )
    assert set(pairs["metric"]) == set(METRICS)
    named = pairs.filter(metric="augrc")
    assert set(named["study"]) == {*(study.name for study in results.studies), "(all)"}
    assert (pairs["difference"] == 0).all()
    assert (pairs["adjusted"] == 1).all()
    assert (pairs["better"] == "").all()


def test_a_worse_one_is_found_to_be_worse(results):
    pairs = results.frame("pairs").filter(first="msr", second="worse", metric="augrc")
    assert pairs.filter(study="corruption")["better"].to_list() == ["msr"]
    assert pairs.filter(study="corruption")["adjusted"].item() < 0.01


def test_imported_runs_alone_have_results(tmp_path):
    for arm in ("vit", "confidnet"):
        for seed in (1, 2):
            made = make_folder(tmp_path / f"{arm}{seed}", seed, train=False, sampled=False)
            import_fd_shifts(made, tmp_path / "runs", arm=arm, seed=seed, exposures=SHORT)
    results = results_of(Store.read(tmp_path / "runs"), metrics=["augrc"])
    assert {m.name: m.arm for m in results.methods}["confidnet"] == "confidnet"
    assert results.frame("estimates").filter(run="mean", study="svhn").height == len(
        results.methods
    )


def test_what_the_page_shows_works(tmp_path, monkeypatch):
    """Exported, computed with polars alone, and added."""
    folder = tmp_path / "runs"
    make_runs(folder)
    rows_of(folder)
    page = (ROOT / "docs" / "adding-scores.md").read_text(encoding="utf-8")
    (block,) = [one for one in blocks(page) if one.language == "python"]
    monkeypatch.chdir(tmp_path)
    exec(compile(block.code, "adding-scores.md", "exec"), {})
    (facts,) = add_scores(folder, "my_scores.parquet").methods
    store = Store.read(folder)
    scores = store.scores(store.tested_runs[0], "digits", logits=True)
    ordered = scores.logits.copy()
    ordered.sort(axis=1)
    assert facts.name == "gap"
    assert scores.confidence["gap"] == pytest.approx(ordered[:, -1] - ordered[:, -2], abs=1e-6)
