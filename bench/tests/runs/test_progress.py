"""How far a benchmark is: read from receipts, held against the plan that made them."""

import json
from dataclasses import replace

import pytest

pytest.importorskip("torch")

from bench.tests.runs.followed import after, before, begin, plan_of, small, work

from abstain.errors import FileFormatError, InputError
from abstain_bench.runs.jobs import run_jobs
from abstain_bench.runs.progress import ArmProgress, read_progress, specification_of
from abstain_bench.runs.specification import Specification
from abstain_bench.runs.store import JOBS, MANIFEST, Store


def counts(found):
    return {
        arm.arm: (
            arm.n_networks,
            arm.n_trained,
            arm.n_validated,
            arm.n_to_test,
            arm.n_tested,
        )
        for arm in found.arms
    }


def test_a_run_that_has_just_begun(tmp_path):
    begin(tmp_path, small())
    progress = read_progress(tmp_path)
    assert counts(progress) == {
        "cross-entropy": (4, 0, 0, 0, 0),
        "dg": (4, 0, 0, 0, 0),
        "ensemble": (2, 0, 0, 0, 0),
    }
    assert progress.selected == ()
    assert not progress.is_validated
    assert not progress.is_finished


def test_from_the_first_job_to_the_last(tmp_path):
    config = small()
    begin(tmp_path, config)
    before(tmp_path, config, jobs=slice(5))
    progress = read_progress(tmp_path)
    # Train and validate alternate: the third network is trained only.
    assert counts(progress)["cross-entropy"] == (4, 2, 2, 2, 0)
    assert counts(progress)["dg"] == (4, 1, 0, 0, 0)
    assert {(one.method, one.setting) for one in progress.selected} == {
        ("msr", "dropout0"),
        ("mcd_msr", "dropout0"),
    }
    before(tmp_path, config)
    progress = read_progress(tmp_path)
    assert progress.is_validated
    assert not progress.is_finished
    selected = {(one.metric, one.method): one.setting for one in progress.selected}
    assert selected == {
        (metric, method): setting
        for metric in ("augrc", "accuracy")
        for method, setting in (
            ("msr", "dropout0"),
            ("mcd_msr", "dropout0"),
            ("dg_res", "dropout0-reward6"),
            ("ens_msr", "dropout0"),
        )
    }
    after(tmp_path, config, jobs=slice(3))
    assert counts(read_progress(tmp_path))["dg"] == (4, 4, 4, 2, 1)
    outcomes = after(tmp_path, config)
    progress = read_progress(tmp_path)
    assert counts(progress) == {
        "cross-entropy": (4, 4, 4, 2, 2),
        "dg": (4, 4, 4, 2, 2),
        "ensemble": (2, 2, 2, 1, 1),
    }
    assert sum(arm.n_tested for arm in progress.arms) == len(outcomes)
    assert progress.is_finished
    assert progress.size == sum(
        path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()
    )


@pytest.mark.parametrize(
    ("changes", "left"),
    [
        ({}, (4, 4)),
        ({"recipe": {"epochs": 3}}, (0, 0)),
        ({"metrics": ["aurc"]}, (4, 0)),
        ({"methods": ["msr", "dg_res"]}, (4, 0)),
        ({"seeds": 3}, (4, 4)),
        ({"model": "tiny-conv"}, (0, 0)),
        ({"folder": "elsewhere"}, (4, 4)),
        # Without dropout there are no passes.
        ({"samples": 4}, (4, 2)),
        # The first network of each seed is the same in both.
        ({"arms": {"cross-entropy": {"dropout": [0.0, 0.5]}}}, (2, 2)),
    ],
)
def test_what_another_configuration_left_is_not_done(tmp_path, changes, left):
    config = small(methods=["msr", "mcd_msr", "dg_res"])
    before(tmp_path, config)
    changed = small(
        **{"methods": ["msr", "mcd_msr"] if "arms" in changes else config.methods} | changes
    )
    begin(tmp_path, changed)
    first = read_progress(tmp_path).arms[0]
    assert (first.n_trained, first.n_validated) == left
    # That is what the runner itself would find there.
    reports = []
    asked = plan_of(changed).jobs_before_selection()
    run_jobs(asked, work, tmp_path / JOBS, on_outcome=lambda one, *_: reports.append(one))
    kept = [one.job.name for one in reports if one.status == "kept"]
    assert sum(name.startswith("train-cross") for name in kept) == first.n_trained
    assert sum(name.startswith("validate-cross") for name in kept) == first.n_validated


def test_the_jobs_of_a_folder_equal_those_of_its_run(tmp_path):
    config = small()
    begin(tmp_path, config)
    before(tmp_path, config, jobs=slice(5))
    specification = specification_of(Store.read(tmp_path))
    assert specification.config == config
    plan = plan_of(config)
    for network, other in zip(specification.networks, plan.networks, strict=True):
        assert (network.run, network.validate, network.test) == (
            other.run,
            other.validate,
            other.test,
        )
    assert specification.jobs_before_selection() == plan.jobs_before_selection()


def test_what_jobs_depend_on_equals_that_of_the_manifest_or_of_the_newest_job(tmp_path):
    config = small()
    begin(tmp_path, config)
    plan = Specification(config, ("iid",), "cuda", "0123", "4567")
    run_jobs(plan.jobs_before_selection()[:2], work, tmp_path / JOBS)
    run_jobs([plan.networks[0].test], work, tmp_path / JOBS)
    specification = specification_of(Store.read(tmp_path))
    assert (specification.device, specification.images_digest, specification.files_digest) == (
        "cuda",
        "0123",
        "4567",
    )
    assert counts(read_progress(tmp_path))["cross-entropy"] == (4, 1, 1, 2, 1)
    path = tmp_path / MANIFEST
    manifest = json.loads(path.read_text())
    manifest["facts"] |= {"device": "cpu", "pictures": "89", "files": ""}
    path.write_text(json.dumps(manifest))
    specification = specification_of(Store.read(tmp_path))
    assert (specification.device, specification.images_digest, specification.files_digest) == (
        "cpu",
        "89",
        "",
    )
    assert counts(read_progress(tmp_path))["cross-entropy"] == (4, 0, 0, 0, 0)


def test_tasks_and_methods_of_a_program_of_ones_own_are_counted(tmp_path):
    config = replace(small(), task="mine", methods=("msr", "own"))
    begin(tmp_path, config)
    spec = Specification(config, ("iid",), variation={"name": "own"})
    run_jobs(spec.jobs_before_selection(), work, tmp_path / JOBS)
    assert counts(read_progress(tmp_path))["cross-entropy"][:3] == (4, 4, 4)


def test_failures_are_named_until_they_are_done(tmp_path):
    config = small()
    begin(tmp_path, config)

    def fails(job, folder):
        if job.name == "train-dg-dropout0-reward3-seed1":
            job.path(folder, ".part").write_bytes(b"half")
            msg = "the machine\nis on fire"
            raise OSError(msg)
        return work(job, folder)

    before(tmp_path, config, fails)
    (failure,) = (progress := read_progress(tmp_path)).failures
    assert failure.name == "train-dg-dropout0-reward3-seed1"
    assert failure.error == "is on fire"
    assert failure.log.is_file()
    assert progress.unfinished_trainings == ("train-dg-dropout0-reward3-seed1",)
    assert counts(progress)["dg"] == (4, 3, 3, 2, 0)
    before(tmp_path, config)
    assert read_progress(tmp_path).failures == ()


#: What stands in place of a receipt.
CHANGED = (
    "{",
    "[]",
    "null",
    '{"name": 3}',
    '{"spec": {}, "facts": {}, "seconds": 1}',
    '{"name": [1], "key": 3, "spec": {}, "facts": {}, "files": {}, "seconds": 1}',
)


def test_what_is_no_receipt_counts_for_nothing(tmp_path):
    config = small()
    begin(tmp_path, config)
    before(tmp_path, config, jobs=slice(len(CHANGED)))
    for number, path in enumerate(sorted((tmp_path / JOBS).glob("*.json"))):
        path.write_text(CHANGED[number])
    assert read_progress(tmp_path).arms[0] == ArmProgress("cross-entropy", 4, 0, 0, 0, 0)


def test_a_job_whose_file_was_deleted_is_not_done(tmp_path):
    config = small()
    begin(tmp_path, config)
    before(tmp_path, config)
    for path in (tmp_path / JOBS).glob("validate-cross-entropy-dropout0-seed0-*.npz"):
        path.unlink()
    progress = read_progress(tmp_path)
    assert counts(progress)["cross-entropy"][:3] == (4, 4, 3)
    # What all seeds make together needs it.
    assert counts(progress)["ensemble"][1] == 1
    assert not progress.is_validated


@pytest.mark.parametrize("changes", [{"arms": []}, {"seeds": None}, {"recipe": 3}])
def test_a_configuration_that_was_changed_by_hand_is_said_to_be_damaged(tmp_path, changes):
    config = small()
    begin(tmp_path, config)
    path = tmp_path / MANIFEST
    fields = json.loads(path.read_text())
    path.write_text(json.dumps(fields | {"config": fields["config"] | changes}))
    with pytest.raises(FileFormatError, match="is damaged"):
        read_progress(tmp_path)


def test_no_folder_of_runs(tmp_path):
    with pytest.raises(InputError, match="is no folder of runs"):
        read_progress(tmp_path)


def test_a_shared_classifier_is_trained_for_both_arms(tmp_path):
    arms = {"cross-entropy": {}, "confidnet": {"stages": {"confidence": 4}}}
    config = small(arms=arms, methods=["msr", "confidnet"])
    begin(tmp_path, config)
    outcomes = before(tmp_path, config, jobs=slice(4))
    assert [outcome.job.name.partition("-")[0] for outcome in outcomes] == ["train", "validate"] * 2
    assert counts(read_progress(tmp_path)) == {
        "cross-entropy": (2, 1, 1, 2, 0),
        "confidnet": (2, 1, 1, 2, 0),
    }
    before(tmp_path, config)
    after(tmp_path, config)
    assert read_progress(tmp_path).is_finished


def test_scores_of_another_version_are_not_done(tmp_path):
    config = small()
    begin(tmp_path, config)
    before(tmp_path, config)
    for path in (tmp_path / JOBS).glob("validate-*.json"):
        fields = json.loads(path.read_text())
        path.write_text(json.dumps({**fields, "spec": {**fields["spec"], "version": 1}}))
    assert counts(read_progress(tmp_path))["cross-entropy"] == (4, 4, 0, 0, 0)
