"""A benchmark in which every job is done at once and by nobody, for what only reads receipts."""

from pathlib import Path

from abstain_bench.runs.jobs import run_jobs
from abstain_bench.runs.selection import select_best_settings
from abstain_bench.runs.specification import Specification, from_plain, to_plain
from abstain_bench.runs.store import JOBS, ExposureFacts, StoredRun, write_manifest

EXPOSURES = (ExposureFacts("iid", "iid", "iid", "iid"),)

SMALL = {
    "task": "glyphs",
    "seeds": 2,
    "methods": ["msr", "mcd_msr", "dg_res", "ens_msr"],
    "metrics": ["augrc", "accuracy"],
    "arms": {
        "cross-entropy": {"dropout": [0.0, 0.3]},
        "dg": {"kind": "deep-gamblers", "try": {"reward": [3.0, 6.0]}},
    },
}


def small(**changes):
    return from_plain({**SMALL, **changes})


def values(job):
    """What validation found: without dropout it is better, and so is the larger reward."""
    bad = 0.2 if "dropout0.3" in job.name else 0.1
    bad -= 0.05 if "reward6" in job.name else 0.0
    return {name: {"augrc": bad, "accuracy": 1 - bad} for name in job.spec["methods"]}


def work(job, folder):
    """Do a job; those of `FAIL` fail."""
    job.path(folder, ".npz").write_bytes(job.name.encode())
    if "metrics" in job.spec:
        return {"validated": values(job)}
    return {"first": values(job)} if "exposures" in job.spec else {}


def plan_of(config):
    return Specification(config, tuple(one.key for one in EXPOSURES))


def begin(folder: Path, config):
    """Write the manifest of a run that has just begun."""
    (folder / JOBS).mkdir(parents=True, exist_ok=True)
    facts = {"versions": {}}
    write_manifest(
        folder,
        config=to_plain(config),
        facts=facts,
        classes="ab",
        exposures=EXPOSURES,
        stored_runs=[],
    )


def before(folder: Path, config, work=work, jobs=slice(None)):
    """Do the jobs before the choice, or some of them."""
    return run_jobs(plan_of(config).jobs_before_selection()[jobs], work, folder / JOBS)


def after(folder: Path, config, jobs=slice(None)):
    """Choose, and do the jobs after it."""
    plan = plan_of(config)
    kept = [
        StoredRun(one.run, validation_values=values(one.validate))
        for one in (*plan.networks, *plan.ensembles)
    ]
    chosen = select_best_settings(kept, config.metrics)
    asked = plan.test_jobs((one.arm, one.setting) for one in chosen)
    return run_jobs(asked[jobs], work, folder / JOBS)
