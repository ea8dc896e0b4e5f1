"""Ways to train, run by run: the published tables, and runs against numbers made by hand."""

import numpy as np
import pytest
from bench.tests.runs.made_store import made_store

import abstain as ab
from abstain.errors import InputError
from abstain_bench.studies import study_configurations


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return made_store(tmp_path_factory.mktemp("made"), n=80, severities=(1,))


@pytest.fixture(scope="module")
def measured(store):
    return study_configurations(runs=[store.folder], coverages=[1.0, 0.8])


def test_the_published_tables():
    result = study_configurations()
    ours, original = result.rows("risks")
    assert [ours[f"risk@{c}"] for c in (1, 0.9, 0.75)] == pytest.approx([0.0494, 0.0137, 0.0043])
    assert original["risk@1"] == pytest.approx(0.0612)
    assert "at 6 of 6 coverages" in result.verdict[0]
    auroc = result.frame("auroc")
    (row,) = auroc.filter(
        configuration="table 16: ours", score="mahalanobis_predicted", study="CIFAR-10, s-ncs:c100"
    ).rows(named=True)
    assert [row[k] for k in ("mean", "sd", "best_run")] == pytest.approx([0.9799, 0.0031, 0.9849])
    # Below Fort et al. by more than the spread on CIFAR-10, and by less on CIFAR-100.
    said = [v for v in result.verdict if v.startswith("mahalanobis")]
    assert "0.43 points above table 16: ours, more than" in said[0]
    assert "4.40 points above table 16: ours, less than" in said[1]
    assert set(result.figures) == {"risks"}


def test_runs_by_hand(store, measured):
    own = [r for r in store.tested_runs if (r.arm, r.setting) == ("cross-entropy", "dropout0")]
    aurocs, risks, right = [], [], []
    for run in own:
        said, new = store.scores(run, "iid"), store.scores(run, "digits")
        wrong = said.prediction != said.labels
        risks.append(ab.selective_risk(said.confidence["msr"], wrong, coverage=0.8))
        right.append(1 - wrong.mean())
        known = said.confidence["msr"][~wrong]
        above = known[:, None] - new.confidence["msr"]
        aurocs.append((above > 0).mean() + (above == 0).mean() / 2)
    place = {"configuration": "cross-entropy dropout0", "score": "msr"}
    (row,) = measured.frame("auroc").filter(**place, study="digits").rows(named=True)
    assert row["mean"] == pytest.approx(np.mean(aurocs))
    assert row["sd"] == pytest.approx(np.std(aurocs, ddof=1))
    assert row["best_run"] == pytest.approx(aurocs[int(np.argmax(right))])
    assert row["runs"] == len(own) == 2
    (row,) = measured.frame("risks").filter(**place).rows(named=True)
    assert row["risk@0.8"] == pytest.approx(np.mean(risks))
    assert row["risk@1"] == pytest.approx(1 - np.mean(right))


def test_figures_have_every_run(store, measured):
    dots = measured.figures["runs"].frame()
    msr = dots.filter(panel="iid", row="msr", name="cross-entropy dropout0")
    assert msr.height == 2
    measured.figures["runs"].plot()
    measured.figures["risks"].plot()
    twice = study_configurations(runs=[store.folder] * 2, scores=["msr"])
    assert all(": " in name for name in twice.parameters["configurations"])


def test_what_no_run_has_is_refused(store):
    with pytest.raises(InputError, match="has one of the scores energy"):
        study_configurations(runs=[store.folder], scores=["energy"])
    with pytest.raises(InputError, match="coverages"):
        study_configurations(coverages=[1.5])
