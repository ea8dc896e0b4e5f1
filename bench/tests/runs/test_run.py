"""The whole pipeline on 8 x 8 digits: trained, chosen, tested; stopped and gone on with."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

import abstain as ab

torch = pytest.importorskip("torch")

from abstain.cli.main import run as main  # noqa: E402
from abstain.errors import FileFormatError, InputError  # noqa: E402
from abstain_bench.runs import work  # noqa: E402  after the skip
from abstain_bench.runs.costs import read_costs  # noqa: E402
from abstain_bench.runs.jobs import run_jobs  # noqa: E402
from abstain_bench.runs.jobs.progress import ProgressWriter  # noqa: E402
from abstain_bench.runs.passes import compute_outputs  # noqa: E402
from abstain_bench.runs.run import run_benchmark  # noqa: E402
from abstain_bench.runs.selection import select_best_settings  # noqa: E402
from abstain_bench.runs.specification import (  # noqa: E402
    Specification,
    default_config,
    to_plain,
)
from abstain_bench.runs.store import IMPORTED, JOBS, MANIFEST, Store  # noqa: E402
from abstain_bench.runs.work import Worker  # noqa: E402

KEYS = ("iid", "corruption-fog-1", "corruption-fog-4", "letters", "textures")


def miniature(**changes):
    config = default_config(
        "digits8",
        seeds=2,
        samples=3,
        arms=["cross-entropy", "confidnet"],
        corruptions=["fog"],
        severities=[1, 4],
        metrics=["augrc", "accuracy"],
    )
    arms = [replace(arm, recipe=replace(arm.recipe, epochs=3)) for arm in config.arms]
    return replace(config, arms=tuple(arms), **changes)


def smallest():
    """Return a benchmark with every kind of job and as few of each as possible."""
    config = miniature(samples=2)
    return replace(config, arms=config.arms[:1], methods=("msr", "mcd_pe", "ens_msr"))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    reports = []
    store, outcomes = run_benchmark(
        miniature(), folder, on_outcome=lambda outcome, *_: reports.append(outcome)
    )
    return store, outcomes, reports


def contents(folder):
    """Return all that jobs left, but for the times in receipts."""
    return {
        path.name: path.read_bytes()
        for path in sorted((folder / JOBS).iterdir())
        if path.suffix in {".pt", ".npz"}
    }


def test_every_network_is_validated_and_what_was_chosen_is_tested(run):
    store, outcomes, told = run
    assert {outcome.status for outcome in outcomes} == {"done"}
    assert [outcome.status for outcome in told].count("done") == len(outcomes)
    names = {one.run.name for one in store.stored_runs}
    assert {f"cross-entropy-dropout{p}-seed{s}" for p in ("0", "0.1") for s in (0, 1)} <= names
    assert {f"ensemble-dropout{p}-seed{s}" for p in ("0", "0.1") for s in (0, 1)} <= names
    selected = {
        (one.arm, one.setting)
        for one in select_best_settings(store.stored_runs, ["augrc", "accuracy"])
    }
    members = {("cross-entropy", label) for arm, label in selected if arm == "ensemble"}
    tested = {(one.run.arm, one.run.setting) for one in store.stored_runs if one.test_file}
    assert selected <= tested <= selected | members | {("ensemble", label) for _, label in members}


def test_scores_equal_those_of_the_stored_logits(run):
    store = run[0]
    for one in store.tested_runs:
        for key in KEYS:
            scores = store.scores(one, key, logits=True)
            np.testing.assert_array_equal(scores.prediction, scores.logits.argmax(axis=1))
            if one.arm != "cross-entropy":
                continue
            for method in ("msr", "mls", "pe"):
                said = ab.Predictions(logits=scores.logits, loss=np.zeros(scores.n))
                own = ab.confidence.score(method, said)
                np.testing.assert_array_equal(scores.confidence[method], own.values)


def test_ensembles_are_the_mean_of_their_members(run):
    store = run[0]
    together = next(one for one in store.tested_runs if one.arm == "ensemble")
    members = [
        one
        for one in store.tested_runs
        if one.arm == "cross-entropy" and one.setting == together.setting
    ]
    assert len(members) == 2
    logits = [store.scores(one, "iid", logits=True).logits.astype(float) for one in members]
    each = [np.exp(x) / np.exp(x).sum(axis=1, keepdims=True) for x in logits]
    mean = np.mean(each, axis=0)
    result = store.scores(together, "iid")
    np.testing.assert_array_equal(result.prediction, mean.argmax(axis=1))
    largest = mean.max(axis=1)
    np.testing.assert_allclose(
        result.confidence["ens_msr"], np.log(largest / (1 - largest)), rtol=1e-4, atol=1e-4
    )


def test_the_same_command_does_nothing_twice(run):
    store = run[0]
    before = contents(store.folder)
    again, outcomes = run_benchmark(miniature(), store.folder)
    assert {outcome.status for outcome in outcomes} == {"kept"}
    assert contents(store.folder) == before
    assert [stored_run.run for stored_run in again.stored_runs] == [
        stored_run.run for stored_run in store.stored_runs
    ]
    assert again.config == json.loads(json.dumps(to_plain(miniature())))


def test_a_run_that_is_stopped_at_once_leaves_what_there_was(run, tmp_path):
    shutil.copytree(run[0].folder, tmp_path / "runs")

    def stop(outcome, *_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_benchmark(miniature(), tmp_path / "runs", on_outcome=stop)
    assert Store.read(tmp_path / "runs").stored_runs == run[0].stored_runs


def test_results_do_not_depend_on_the_order_or_the_process(run, tmp_path):
    # One network on its own, in another folder, equals that of the whole run bit by bit.
    store = run[0]
    plan = Specification(miniature(), KEYS)
    one = plan.networks[3]
    assert one.run.arm == "confidnet"
    (first,) = one.validate.needs
    run_jobs([*first.needs, first, one.validate, one.test], Worker(), tmp_path / JOBS)
    whole = contents(store.folder)
    result = contents(tmp_path)
    assert len(result) == 4
    assert all(whole[name] == content for name, content in result.items())


def test_two_arms_share_one_classifier_bit_by_bit(run):
    store, outcomes, _ = run
    jobs = {outcome.job.name: outcome.job for outcome in outcomes}
    for place in ("dropout0-seed0", "dropout0.1-seed1"):
        plain, own = (
            torch.load(jobs[f"train-{arm}-{place}"].path(store.folder / JOBS, ".pt"))
            for arm in ("cross-entropy", "confidnet")
        )
        assert [job.name for job in jobs[f"train-confidnet-{place}"].needs] == [
            f"train-cross-entropy-{place}"
        ]
        shared = [name for name in own if not name.startswith("head.confidence.")]
        assert set(shared) == set(plain)
        assert all(torch.equal(own[name], plain[name]) for name in shared)
    # Trained once: nothing but the branch learns in the job of the other arm.
    assert len(outcomes[0].facts["losses"]) == 3
    branch = next(o for o in outcomes if o.job.name == "train-confidnet-dropout0-seed0")
    assert len(branch.facts["losses"]) == 16
    assert not [name for name in jobs if name.startswith("train-confidnet-classifier")]


def test_an_arm_alone_trains_the_same_classifier(run, tmp_path):
    config = miniature()
    alone = replace(config, arms=config.arms[1:], methods=("confidnet",), seeds=(1,))
    run_benchmark(alone, tmp_path)
    whole, result = contents(run[0].folder), contents(tmp_path)
    trained = [name for name in result if name.endswith(".pt")]
    assert sorted(name.rpartition("-")[0] for name in trained) == [
        f"train-{arm}-dropout{p}-seed1"
        for arm in ("confidnet", "cross-entropy")
        for p in ("0", "0.1")
    ]
    assert all(result[name] == whole[name] for name in trained)


def test_a_changed_configuration_keeps_what_it_has_in_common(run, tmp_path):
    shutil.copytree(run[0].folder, tmp_path / "runs")
    config = miniature()
    slower = replace(config.arms[1], recipe=replace(config.arms[1].recipe, epochs=2))
    _, outcomes = run_benchmark(replace(config, arms=(config.arms[0], slower)), tmp_path / "runs")
    status = {outcome.job.name: outcome.status for outcome in outcomes}
    assert status["train-cross-entropy-dropout0-seed0"] == "kept"
    assert status["train-confidnet-dropout0-seed0"] == "done"
    # What was trained otherwise is no longer said to belong to the benchmark.
    assert (
        len({stored_run.run.name for stored_run in Store.read(tmp_path / "runs").stored_runs}) == 12
    )


def test_a_failed_network_is_listed_and_the_others_go_on(tmp_path):
    config = miniature(seeds=(0,))
    wild = replace(config.arms[0].recipe, learning_rate=1e30)
    arms = (config.arms[0], replace(config.arms[1], recipe=wild))
    store, outcomes = run_benchmark(replace(config, arms=arms), tmp_path)
    failed = [outcome for outcome in outcomes if outcome.status == "failed"]
    # Its classifier is not trained as that of the other arm, so it is one of its own.
    assert {outcome.job.name for outcome in failed} == {
        "train-confidnet-classifier-dropout0-seed0",
        "train-confidnet-classifier-dropout0.1-seed0",
    }
    assert all(outcome.job.path(tmp_path / JOBS, ".log").is_file() for outcome in failed)
    assert {run.arm for run in store.tested_runs} == {"cross-entropy"}
    assert set(store.facts["failed"]) >= {"train-confidnet-dropout0-seed0"}


def zeros(whole):
    return bytes(len(whole))


def cut_off(whole):
    return whole[: len(whole) // 2]


@pytest.mark.parametrize("damaged", [zeros, cut_off])
def test_a_manifest_that_a_crash_left_unreadable_is_written_anew(run, tmp_path, damaged):
    folder, before = tmp_path / "runs", run[0]
    shutil.copytree(before.folder, folder)
    path = folder / MANIFEST
    path.write_bytes(damaged(path.read_bytes()))
    (folder / IMPORTED).mkdir()
    (folder / IMPORTED / "test-vit-seed0-0123.npz").write_bytes(b"x")
    with pytest.raises(FileFormatError, match=r"damaged one.*run the same command to write it"):
        Store.read(folder)
    with pytest.raises(InputError, match="jobs in its folder have the task 'digits8'; choose"):
        run_benchmark(default_config("digits"), folder)
    found, outcomes = run_benchmark(miniature(), folder)
    assert {outcome.status for outcome in outcomes} == {"kept"}
    assert found.stored_runs == before.stored_runs
    assert found.exposures == before.exposures
    (note,) = (note for note in found.facts["notes"] if "damaged" in note)
    assert note.endswith("imported runs must be imported again: test-vit-seed0-0123.npz")
    assert (folder / f"{MANIFEST}.damaged").is_file() == (damaged is cut_off)
    # What somebody wrote, or another version, is not written over.
    path.write_text('{"kind": "abstain-benchmark", "version": 99}')
    with pytest.raises(FileFormatError, match=r"`version` must be 1; got 99.*move it away"):
        run_benchmark(miniature(), folder)


def failing(monkeypatch, lost):
    """Let those trainings diverge of which `lost` says so, by objective and seed."""
    whole = work.train

    def train(network, images, objective, recipe, *, seed, **options):
        if lost(type(objective).__name__, seed):
            msg = "the loss became nan"
            raise InputError(msg)
        return whole(network, images, objective, recipe, seed=seed, **options)

    monkeypatch.setattr(work, "train", train)


class StopError(Exception):
    """Stands for a kill."""


def test_a_run_that_is_stopped_between_tests_is_reported_as_far_as_it_is(tmp_path, capsys):
    config = miniature(samples=0, methods=("msr", "ens_msr"), corruptions=())
    config = replace(config, arms=(replace(config.arms[0], dropout=(0.0,)),))

    def told(outcome, *_):
        if outcome.status == "done" and outcome.job.name.startswith("test-"):
            raise StopError

    with pytest.raises(StopError):
        run_benchmark(config, tmp_path, on_outcome=told)
    assert [run.seed for run in Store.read(tmp_path).tested_runs] == [0]
    arguments = ["--metrics", "augrc", "--studies", "iid"]
    assert main(["benchmark", "report", str(tmp_path), *arguments]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "ens_msr is excluded for augrc: no run of ensemble dropout0 was tested" in text
    assert "This run is not complete: 3 of 4 selected networks are not tested" in text
    assert "This run is not complete" in (tmp_path / "report" / "benchmark.html").read_text()


def test_one_seed_that_fails_in_all_settings_stops_no_other_test(tmp_path, monkeypatch):
    config = replace(miniature(samples=2), methods=("msr", "ens_msr", "confidnet"))
    failing(monkeypatch, lambda name, seed: seed == 1 and name == "ConfidNet")
    store, outcomes = run_benchmark(config, tmp_path)
    tested = {(one.arm, one.seed) for one in store.tested_runs}
    assert tested == {
        *((arm, seed) for arm in ("cross-entropy", "ensemble") for seed in (0, 1)),
        ("confidnet", 0),
    }
    assert not [one for one in outcomes if one.job.name.startswith("test") and not one.is_done]
    # Where it goes well the second time, all is there.
    monkeypatch.undo()
    store, outcomes = run_benchmark(config, tmp_path)
    assert all(one.is_done for one in outcomes)
    assert ("confidnet", 1) in {(one.arm, one.seed) for one in store.tested_runs}


def test_where_every_network_fails_the_outcomes_say_so(tmp_path, monkeypatch):
    failing(monkeypatch, lambda *_: True)
    store, outcomes = run_benchmark(smallest(), tmp_path)
    assert store.tested_runs == ()
    assert {outcome.status for outcome in outcomes} == {"failed", "left out"}


def test_what_a_run_writes_into_the_folder_of_the_data_is_no_part_of_the_data(tmp_path):
    from abstain_bench.runs.run import _hash_listing

    (tmp_path / "a.bin").write_bytes(b"1")
    (tmp_path / "b\udcff.bin").write_bytes(b"2")
    before = _hash_listing(str(tmp_path), tmp_path / "runs")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "manifest.json").write_bytes(b"3")
    assert _hash_listing(str(tmp_path), tmp_path / "runs") == before
    (tmp_path / "a.bin").write_bytes(b"12")
    assert _hash_listing(str(tmp_path), tmp_path / "runs") != before


def test_a_device_that_is_not_there_is_told_before_anything_is_done(tmp_path):
    with pytest.raises(InputError, match="`device`"):
        run_benchmark(miniature(), tmp_path / "runs", device="cuda:99")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("methods", "asked"),
    [
        # Images and passes: the validation job, then what a test job asks beside the exposures.
        (("devries",), [("validation", 0)]),
        (("temp_msr", "mcd_pe"), [("validation", 2), ("validation", 0)]),
        (("knn",), [("validation", 0), ("train", 0), ("train", 0)]),
    ],
)
def test_a_network_is_asked_only_about_what_its_methods_are_fitted_on(
    tmp_path, monkeypatch, methods, asked
):
    arm = "devries" if "devries" in methods else "cross-entropy"
    config = default_config("digits8", seeds=1, samples=2, epochs=1, arms=[arm], corruptions=[])
    arms = tuple(replace(one, dropout=(0.1,)) for one in config.arms)
    task = work.load_task("digits8", "")
    sizes = {len(task.train.labels): "train", len(task.validation.labels): "validation"}
    reports = []

    def counted(network, objective, pictures, *rest, samples, **options):
        reports.append((sizes.get(len(pictures), "exposure"), samples))
        return compute_outputs(network, objective, pictures, *rest, samples=samples, **options)

    monkeypatch.setattr(work, "compute_outputs", counted)
    run_benchmark(replace(config, arms=arms, methods=methods), tmp_path)
    assert [one for one in reports if one[0] != "exposure"] == asked


def test_every_job_says_what_its_parts_took(run):
    store, outcomes, _ = run
    costs = read_costs(store.folder)
    jobs = [one for one in outcomes if one.status == "done"]
    assert sum(one.seconds for one in costs) == pytest.approx(
        sum(o.seconds for o in jobs), rel=1e-3
    )
    parts = {(one.stage, one.part) for one in costs}
    assert {("train", "training"), ("test", "pictures"), ("test", "passes")} <= parts
    assert all(one.part for one in costs)
    scores = {one.score for one in costs if one.part == "scores"}
    assert {"msr", "knn", "confidnet", "ens_msr"} <= scores
    passes = next(one for one in costs if (one.stage, one.part) == ("train", "training"))
    assert passes.jobs == sum(outcome.job.name.startswith("train-") for outcome in jobs)


def test_every_job_says_how_far_it_is_to_its_end(tmp_path, monkeypatch):
    told = {}

    def heard(self, done):
        told.setdefault((self.name, self.unit, self.total), []).append(done)

    monkeypatch.setattr(ProgressWriter, "__call__", heard)
    config = miniature(samples=2, methods=("msr", "temp_msr", "knn", "confidnet"))
    arms = tuple(replace(arm, dropout=(0.1,)) for arm in config.arms)
    run_benchmark(replace(config, arms=arms, seeds=(0,)), tmp_path)
    # Two or one of the images that scores are fitted on, and five exposures.
    parts = {"validate-cross": 2, "test-cross": 7, "validate-confidnet": 1, "test-confidnet": 5}
    for (name, unit, total), done in told.items():
        assert done == sorted(done)
        assert done[-1] == total
        if not name.startswith("train"):
            assert (unit, total) == (
                "part",
                parts[name.partition("-dropout")[0].removesuffix("-entropy")],
            )
    assert len(told) == 6
