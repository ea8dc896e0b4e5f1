"""`Specification`: the jobs of a benchmark, and everything that each job depends on.

- ``train`` trains one network. If its objective begins with the training of a plain classifier, it
  starts from the network of that job.
- ``validate`` scores the validation images with this network, by every method. The scores select
  the settings.
- ``test`` scores the exposures, for selected settings only.
- ``ensemble-validate`` and ``ensemble-test`` score the mean predictions of the networks of all
  seeds.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from abstain_bench.runs.jobs import Job, Outcome
from abstain_bench.runs.specification.arms import (
    ENSEMBLE,
    INITIAL_OBJECTIVES,
    Arm,
    Setting,
    format_value,
)
from abstain_bench.runs.specification.config import Config
from abstain_bench.runs.store import JOBS, Run, StoredRun
from abstain_bench.runs.tasks import TASKS

#: Part of the keys of jobs. Increase it when training or scoring changes for equal specifications.
TRAINING_VERSION: Final = 1
SCORING_VERSION: Final = 3

#: Suffixes of score files, and of files with a shared warm-up.
SCORES_SUFFIX: Final = ".npz"
WARM_UP_SUFFIX: Final = ".start"


def stage_of(job: Job) -> str:
    """Return the stage of a job: "train", "validate" or "test"."""
    return stage_of_name(job.name)


def stage_of_name(name: str) -> str:
    """Return the stage of the job with this name; ensembles have the same stages."""
    return name.removeprefix(f"{ENSEMBLE}-").partition("-")[0]


@dataclass(frozen=True)
class PlannedRun:
    """A network or an ensemble, and the jobs that score it.

    Attributes
    ----------
    run : Run
        Name, arm, setting and seed.
    validate, test : Job
        The jobs that score it on validation data and on the exposures.
    """

    run: Run
    validate: Job
    test: Job


@dataclass(frozen=True)
class Specification:
    """The configuration of a benchmark, and the other inputs that its jobs depend on.

    Attributes
    ----------
    config : Config
        The configuration.
    exposures : tuple of str
        Keys of the tested exposures.
    device : str
        Kind of the device, because its arithmetic affects the results.
    images_digest : str
        Hash of the training and validation images; empty for images that the package contains.
    files_digest : str
        Hash of the names and sizes of the files of the data set; empty if there is no folder.
    variation : mapping, optional
        Augmentation of the task; by default that of its entry in `TASKS`.
    weights_digest : str
        Hash of the file with initial weights; empty for random initialization.
    """

    config: Config
    exposures: tuple[str, ...]
    device: str = "cpu"
    images_digest: str = ""
    files_digest: str = ""
    variation: Mapping[str, Any] | None = None
    weights_digest: str = ""

    @cached_property
    def networks(self) -> tuple[PlannedRun, ...]:
        """All networks, ordered by seed, so that complete results of a seed are available early."""
        return tuple(
            self._plan_run(arm, setting, seed)
            for seed in self.config.seeds
            for arm in self.config.arms
            for setting in arm.settings
        )

    @cached_property
    def ensembles(self) -> tuple[PlannedRun, ...]:
        """The ensembles of the networks of all seeds, by setting and seed.

        The scores of an ensemble do not depend on the seed, but it has a run for each seed.
        """
        methods = self.config.ensemble_methods
        if len(self.config.seeds) < 2 or not methods:
            return ()
        objectives = {method.objective for method in methods}
        ensembles: list[PlannedRun] = []
        for arm in self.config.arms:
            if arm.objective in objectives:
                for setting in arm.settings:
                    ensembles += self._plan_ensemble_runs(arm, setting)
        return tuple(ensembles)

    @property
    def all_runs(self) -> tuple[PlannedRun, ...]:
        """All networks and ensembles."""
        return (*self.networks, *self.ensembles)

    def jobs_before_selection(self) -> list[Job]:
        """Return the jobs that must end before settings can be selected, each once.

        Confidence branches on trained classifiers are short. They come last within a seed, so that
        parallel processes finish at about the same time.
        """

        def has_short_training(planned: PlannedRun) -> bool:
            return any(training.needs for training in planned.validate.needs)

        jobs = []
        for planned in self._runs_by_seed(has_short_training):
            for training in planned.validate.needs:
                jobs += [*training.needs, training]
            jobs.append(planned.validate)
        jobs += [ensemble.validate for ensemble in self.ensembles]
        return list({job.stem: job for job in jobs}.values())

    def test_jobs(self, selected: Iterable[tuple[str, str]]) -> list[Job]:
        """Return the jobs that test the selected pairs (arm, setting), ensembles last.

        The members of a selected ensemble are tested too. Tests without dropout passes are short
        and come last within a seed.
        """
        selected = set(selected)
        ensembles = [e for e in self.ensembles if (ENSEMBLE, e.run.setting) in selected]
        member_keys = {job.key for ensemble in ensembles for job in ensemble.test.needs}
        tests = [
            planned.test
            for planned in self._runs_by_seed(lambda planned: not planned.test.spec["samples"])
            if (planned.run.arm, planned.run.setting) in selected or planned.test.key in member_keys
        ]
        return [*tests, *(ensemble.test for ensemble in ensembles)]

    def stored_runs(self, outcome_of: Callable[[Job], Outcome | None]) -> list[StoredRun]:
        """Return the validated networks and ensembles, with their existing files.

        `outcome_of` returns the outcome of a job, None for a job that is not done.
        """
        stored = []
        for planned in self.all_runs:
            validated = outcome_of(planned.validate)
            if validated is None:
                continue
            is_tested = outcome_of(planned.test) is not None
            stored.append(
                StoredRun(
                    planned.run,
                    _scores_file(planned.validate),
                    _scores_file(planned.test) if is_tested else "",
                    validated.facts["validated"],
                )
            )
        return stored

    def _runs_by_seed(self, is_short: Callable[[PlannedRun], bool]) -> list[PlannedRun]:
        """Return the networks ordered by seed; within a seed, those with short jobs last."""
        seed_position = {seed: i for i, seed in enumerate(self.config.seeds)}
        return sorted(self.networks, key=lambda p: (seed_position[p.run.seed], is_short(p)))

    def _plan_run(self, arm: Arm, setting: Setting, seed: int) -> PlannedRun:
        name = f"{arm.name}-{setting.label}-seed{seed}"
        training = self._training_job(arm, setting, seed)
        methods = self.config.methods_of(arm)
        # Without dropout all passes are equal.
        needs_samples = any("samples" in method.needs for method in methods)
        samples = self.config.samples if setting.dropout and needs_samples else 0
        spec = {
            "version": SCORING_VERSION,
            "methods": [method.name for method in methods],
            "samples": samples,
        }
        metrics = list(self.config.metrics)
        validate = Job(f"validate-{name}", {**spec, "metrics": metrics}, (training,))
        test = Job(f"test-{name}", {**spec, **self._test_fields}, (training,))
        run = Run(name, arm.name, setting.label, seed, self.config.model)
        return PlannedRun(run, validate, test)

    def _training_job(self, arm: Arm, setting: Setting, seed: int) -> Job:
        """Return the job that trains a network, after the classifier that it begins with."""
        spec = self._training_spec(arm, setting, seed)
        name = f"{arm.name}-{setting.label}-seed{seed}"
        if arm.objective in INITIAL_OBJECTIVES:
            return Job(f"train-{name}", spec, (self._classifier_job(arm, setting, seed),))
        if arm.objective in INITIAL_OBJECTIVES.values():
            # The name does not depend on the arms that use the classifier.
            name = _classifier_name(arm.objective, setting, seed)
        warm_up_file = self._warm_up_file(arm, setting, seed)
        return Job(f"train-{name}", spec, warm_up_file=warm_up_file)

    def _warm_up_file(self, arm: Arm, setting: Setting, seed: int) -> str:
        """Return the file of a warm-up that several settings share; empty if none do."""
        warm_up = arm.warm_up_setting(setting)
        warm_ups = [arm.warm_up_setting(other) for other in arm.settings]
        if warm_up is None or warm_ups.count(warm_up) < 2:
            return ""
        name = f"start-{_classifier_name(arm.name, warm_up, seed)}"
        return f"{Job(name, self._training_spec(arm, warm_up, seed)).stem}{WARM_UP_SUFFIX}"

    def _classifier_job(self, arm: Arm, setting: Setting, seed: int) -> Job:
        """Return the job that trains the classifier that a network begins with.

        All networks with the same initial classifier share the job. If the arm of the classifier's
        objective trains the same network, the job has the name that this arm uses.
        """
        objective = INITIAL_OBJECTIVES[arm.objective]
        recipe = arm.recipe_of(setting).with_length(arm.classifier_length(setting))
        spec = self._training_spec(
            Arm(objective, objective, recipe), Setting(setting.dropout), seed
        )
        classifier_arms = [other for other in self.config.arms if other.objective == objective]
        matching_settings = [
            candidate
            for other in classifier_arms
            for candidate in other.settings
            if other.recipe_of(candidate) == recipe
        ]
        if matching_settings:
            name, recipe_changes = objective, matching_settings[0].recipe_changes
        else:
            name = f"{arm.name}-classifier" if classifier_arms else objective
            recipe_changes = setting.recipe_changes
        named_setting = Setting(setting.dropout, recipe_changes=recipe_changes)
        return Job(f"train-{_classifier_name(name, named_setting, seed)}", spec)

    @property
    def _test_fields(self) -> dict[str, object]:
        spec: dict[str, object] = {"exposures": list(self.exposures)}
        return spec | ({"files": self.files_digest} if self.files_digest else {})

    def _training_spec(self, arm: Arm, setting: Setting, seed: int) -> dict[str, object]:
        variation = self.config.variation if self.variation is None else self.variation
        if variation is None:
            variation = TASKS[self.config.task].variation
        spec: dict[str, object] = {
            "version": TRAINING_VERSION,
            "task": self.config.task,
            "variation": dict(variation),
            "model": self.config.model,
            "dropout": setting.dropout,
            "objective": arm.objective,
            "options": dict(setting.options),
            "recipe": arm.recipe_of(setting).to_dict(),
            "precision": self.config.precision,
            "seed": seed,
            "device": self.device,
        }
        data = self.config.data
        optional_fields = {
            "stages": dict(arm.stage_lengths),
            "pictures": self.images_digest,
            "data": None if data is None else data.to_dict(),
            "weights": self.weights_digest,
            "side": self.config.side,
        }
        return spec | {name: field for name, field in optional_fields.items() if field}

    def _plan_ensemble_runs(self, arm: Arm, setting: Setting) -> list[PlannedRun]:
        """Return the ensemble of the networks of a setting, once for each seed."""
        label = setting.label
        members = [
            network
            for network in self.networks
            if (network.run.arm, network.run.setting) == (arm.name, label)
        ]
        methods = [method.name for method in self.config.ensemble_methods]
        spec = {"version": SCORING_VERSION, "methods": methods}
        validate = Job(
            f"ensemble-validate-{label}",
            {**spec, "metrics": list(self.config.metrics)},
            tuple(member.validate for member in members),
        )
        test = Job(
            f"ensemble-test-{label}",
            {**spec, **self._test_fields},
            tuple(member.test for member in members),
        )
        model = self.config.model
        return [
            PlannedRun(
                Run(f"{ENSEMBLE}-{label}-seed{seed}", ENSEMBLE, label, seed, model), validate, test
            )
            for seed in (member.run.seed for member in members)
        ]


def _classifier_name(name: str, setting: Setting, seed: int) -> str:
    changes = setting.recipe_changes.items()
    recipe = "".join(f"-recipe.{field}{format_value(value)}" for field, value in changes)
    return f"{name}-dropout{format_value(setting.dropout)}{recipe}-seed{seed}"


def _scores_file(job: Job) -> str:
    return f"{JOBS}/{job.stem}{SCORES_SUFFIX}"
