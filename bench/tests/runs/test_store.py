"""A folder of runs whose files were damaged: one line that says which, and what to do."""

import json
import re
from collections import Counter

import numpy as np
import pytest
from bench.tests.runs.stored_runs import make_runs

from abstain._foundation.archives import Archive
from abstain.errors import FileFormatError, InputError
from abstain_bench.results import results_of
from abstain_bench.runs.importing import export
from abstain_bench.runs.store import MANIFEST, ExposureFacts, Run, ScoreFile, Store
from abstain_bench.runs.studies import studies_of


def test_one_array_is_no_file_of_scores(tmp_path):
    with (tmp_path / "a.npz").open("wb") as file:
        np.save(file, np.arange(3))
    file = ScoreFile(tmp_path / "a.npz")
    with pytest.raises(FileFormatError, match="no file of scores"):
        file.read("iid")
    with pytest.raises(FileFormatError, match="no file of scores"):
        _ = file.exposures


@pytest.mark.parametrize(
    ("folder", "said"), [("jobs", "delete it"), ("added", "`replace`"), ("imported", "import it")]
)
def test_what_to_do_is_said_by_whose_file_it_is(tmp_path, folder, said):
    with pytest.raises(FileFormatError, match=said):
        ScoreFile(tmp_path / folder / "a.npz").read("iid")


def test_methods_without_their_confidences_are_no_file_of_scores(tmp_path):
    store = make_runs(tmp_path / "runs", seeds=(0,))
    path = tmp_path / "runs" / store.stored_runs[0].test_file
    with np.load(path) as found:
        arrays = dict(found)
    arrays["iid/methods"] = arrays["iid/methods"][:1]
    with path.open("wb") as file:
        np.savez(file, **arrays)
    with pytest.raises(FileFormatError, match="delete it"):
        Store.read(tmp_path / "runs").scores(store.runs[0], "iid")


@pytest.mark.parametrize(
    "changes",
    [
        {"config": []},
        {"facts": 3},
        {"classes": "abc"},
        {"exposures": {}},
        {"exposures": [{}]},
        {"runs": [3]},
        {"validated": [1]},
        {"validated": {"msr": 3}},
    ],
)
def test_a_manifest_of_other_parts_is_damaged(tmp_path, changes):
    make_runs(tmp_path / "runs", seeds=(0,))
    path = tmp_path / "runs" / MANIFEST
    fields = json.loads(path.read_text())
    if "validated" in changes:
        fields["runs"][0] |= changes
    else:
        fields |= changes
    path.write_text(json.dumps(fields))
    with pytest.raises(FileFormatError, match="run the same command"):
        Store.read(tmp_path / "runs")


#: Of an early version, in which a run had neither a model nor facts.
OLD = """{"kind": "abstain-benchmark", "version": 1, "config": {"metrics": ["augrc"]}, "facts": {},
"classes": ["a", "b"], "exposures": [{"key": "iid", "name": "iid", "title": "iid", "kind": "iid"}],
"runs": [{"name": "x-seed3", "arm": "x", "setting": "", "seed": 3, "validation": "jobs/v.npz",
"tested": "", "validated": {"msr": {"augrc": 0.25, "ece": null}}}]}"""


def test_a_manifest_of_an_older_version_is_read(tmp_path):
    (tmp_path / MANIFEST).write_text(OLD)
    store = Store.read(tmp_path)
    (kept,) = store.stored_runs
    assert kept.run == Run("x-seed3", "x", "", 3)
    assert (kept.validation_file, kept.test_file) == ("jobs/v.npz", "")
    assert store.validation_values(kept.run) == {"msr": {"augrc": 0.25, "ece": None}}
    assert store.exposures == (ExposureFacts("iid", "iid", "iid", "iid"),)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"seed": "3"}, "`seed` of a run must be an integer; got '3'"),
        ({"tests": ""}, "`tests` is not a field of a run. Did you mean 'tested'?"),
        ({"validated": [1]}, "`validated` of a run must be a table"),
    ],
)
def test_what_is_wrong_with_a_run_is_said(tmp_path, changes, said):
    fields = json.loads(OLD)
    fields["runs"][0] |= changes
    (tmp_path / MANIFEST).write_text(json.dumps(fields))
    with pytest.raises(FileFormatError, match=re.escape(said)):
        Store.read(tmp_path)


def test_nothing_tested_is_nothing_to_export(tmp_path):
    store = make_runs(tmp_path / "runs", settings=("a",), tested=(), seeds=(0,))
    with pytest.raises(InputError, match="nothing to export"):
        export(store, None, tmp_path / "all.parquet")
    assert not (tmp_path / "all.parquet").exists()


@pytest.fixture
def openings(monkeypatch):
    """How often each archive is opened, by the name of its file."""
    result = Counter()

    def counted(self):
        result[self.path.name] += 1
        return itself(self)

    itself = Archive._open
    monkeypatch.setattr(Archive, "_open", counted)
    return result


def test_several_exposures_are_read_in_one_go(tmp_path, openings):
    store = make_runs(tmp_path / "runs", seeds=(0,))
    file = ScoreFile(tmp_path / "runs" / store.stored_runs[0].test_file)
    keys = [key for key in file.exposures if key != "validation"]
    together = file.read_all(keys, logits=False)
    # Once to look what is there, and once to read it.
    assert list(openings.values()) == [2]
    assert list(together) == keys
    for key, own in together.items():
        assert own.logits is None
        alone = file.read(key)
        assert np.array_equal(alone.labels, own.labels)
        assert all(np.array_equal(x, own.confidence[m]) for m, x in alone.confidence.items())
    with pytest.raises(InputError, match="has no scores of the exposure 'moon'"):
        file.read_all([*keys, "moon"])


def test_tables_read_each_study_once(tmp_path, openings):
    store = make_runs(tmp_path / "runs", seeds=(0, 1))
    results_of(store, metrics=["augrc"])
    groups = {study.exposures for study in studies_of(store.exposures)}
    tested = [stored_run.test_file.rpartition("/")[2] for stored_run in store.stored_runs]
    # Which methods there are, the exposures that no study before had, and what is there at all.
    assert all(openings[name] <= len(groups) + 2 for name in tested)
