"""Several folders that hold out other classes as one benchmark."""

from dataclasses import replace

import numpy as np
import pytest
from bench.tests.runs.made_store import made_store

from abstain.cli.main import run
from abstain.errors import InputError
from abstain_bench.results import results_of, rotated_results

METRICS = ("augrc", "failure_auroc")
STUDIES = ("iid", "digits", "digits-outlier", "textures-kept")


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rotations")
    return [made_store(folder / f"open-{i}", n=80, severities=(1,), rng=i) for i in range(3)]


def means(results):
    return {
        (dict(e.data)["study"], e.method, e.metric): e
        for comparison in results.comparisons.values()
        for e in comparison.estimates
        if e.run == "mean"
    }


def test_every_number_is_the_mean_over_the_folders(stores):
    results = rotated_results(stores, metrics=METRICS, studies=STUDIES)
    each = [means(results_of(store, metrics=METRICS, studies=STUDIES)) for store in stores]
    together = means(results)
    assert set(together) == set(each[0])
    for place, own in together.items():
        expected = np.mean([one[place].value for one in each])
        assert own.value == pytest.approx(expected, abs=1e-12), place
    # One run for each folder and seed.
    runs = {e.run for e in results.comparisons["augrc"].estimates} - {"mean"}
    assert runs == {f"open-{i}, seed {seed}" for i in range(3) for seed in (1, 2)}
    assert results.thresholds == results.extremes == ()
    assert results.curves["digits", "msr"].coverage[-1] == 1
    assert any(one.kind == "rotations" for one in results.findings)


def test_facts_are_those_that_all_folders_share_and_the_time_of_all(stores):
    messages = [{"train": 5, "seconds": 2.0}, {"train": 6, "seconds": 3.0}, {"train": 5}]
    messages = [{**own, "device": "cpu"} for own in messages]
    named = [replace(store, facts=own) for store, own in zip(stores, messages, strict=True)]
    result = rotated_results(named, metrics=["augrc"], studies=["iid"]).facts
    assert (result["seconds"], result["device"]) == (5.0, "cpu")
    assert "train" not in result


def test_pictures_that_folders_share_do_not_count_twice(stores):
    """The same folder again says nothing new: the interval stays as wide."""
    once = means(results_of(stores[0], metrics=METRICS, studies=STUDIES))
    again = means(rotated_results([stores[0]] * 3, metrics=METRICS, studies=STUDIES))
    for place, own in again.items():
        assert own.value == pytest.approx(once[place].value, abs=1e-12)
        assert own.standard_error == pytest.approx(once[place].standard_error, rel=1e-9)


def test_the_command_writes_one_report(stores, tmp_path, capsys):
    first, *others = (str(store.folder) for store in stores)
    arguments = ["benchmark", "report", first, "--rotations", *others, "--metrics", "augrc"]
    assert not run([*arguments, "--out", str(tmp_path / "report")])
    assert "mean over 3 folders" in " ".join(capsys.readouterr().out.split())
    page = (tmp_path / "report" / "benchmark.html").read_text(encoding="utf-8")
    assert "mean over 3 folders that hold out other classes" in page


def test_what_cannot_be_one_raises_an_error(stores, tmp_path):
    with pytest.raises(InputError, match="at least two folders"):
        rotated_results(stores[:1])
