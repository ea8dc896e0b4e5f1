"""`Specification` defines the jobs of a benchmark and the inputs of each job.

- ``train`` trains one network. If an objective requires a trained classifier, a separate job trains
  the classifier first.
- ``validate`` scores the validation images with every method. The scores select the settings.
- ``test`` scores the exposures with the networks of the selected settings.
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

#: Version of the training, which is part of the keys of training jobs. Increase it if a change of
#: the code changes the trained networks.
TRAINING_VERSION: Final = 1
#: Version of the scoring, which is part of the keys of validation and test jobs. Increase it if a
#: change of the code changes the scores.
SCORING_VERSION: Final = 3

#: Suffix of score files.
SCORES_SUFFIX: Final = ".npz"
#: Suffix of files with a shared warm-up.
WARM_UP_SUFFIX: Final = ".start"


def stage_of(job: Job) -> str:
    """Return the stage of a job: "train", "validate" or "test"."""
    return stage_of_name(job.name)


def stage_of_name(name: str) -> str:
    """Return the stage of the job with this name: "train", "validate" or "test"."""
    return name.removeprefix(f"{ENSEMBLE}-").partition("-")[0]


@dataclass(frozen=True)
class PlannedRun:
    """A network or an ensemble, together with the jobs that compute its scores.

    Attributes
    ----------
    run : Run
        Name, arm, setting and seed.
    validate, test : Job
        Jobs that score the network or ensemble on validation data and on the exposures.
    """

    run: Run
    validate: Job
    test: Job


@dataclass(frozen=True)
class Specification:
    """The configuration of a benchmark, with all other inputs that affect its jobs.

    Attributes
    ----------
    config : Config
        The configuration.
    exposures : tuple of str
        Keys of the tested exposures.
    device : str
        Kind of the device, which affects the results because its arithmetic differs.
    images_digest : str
        Hash of the training and validation images, or empty if the package contains the images.
    files_digest : str
        Hash of the names and sizes of the files of the data set, or empty if the task has no
        folder.
    variation : mapping, optional
        Augmentation of the task. The default is the augmentation in `TASKS`.
    weights_digest : str
        Hash of the file with initial weights, or empty if the initialization is random.
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
        """All networks, sorted by seed so that all networks of the first seed finish first."""
        return tuple(
            self._plan_run(arm, setting, seed)
            for seed in self.config.seeds
            for arm in self.config.arms
            for setting in arm.settings
        )

    @cached_property
    def ensembles(self) -> tuple[PlannedRun, ...]:
        """The ensembles that combine the networks of all seeds.

        Each setting has one run per seed, but the ensemble is the same for all of them.
        """
        methods = self.config.ensemble_methods
        if len(self.config.seeds) < 2 or not methods:
            return ()
        objectives = {method.objective for method in methods}
        ensembles: list[PlannedRun] = []
        for arm in self.config.arms:
            if arm.objective not in objectives:
                continue
            for setting in arm.settings:
                ensembles += self._plan_ensemble_runs(arm, setting)
        return tuple(ensembles)

    @property
    def all_runs(self) -> tuple[PlannedRun, ...]:
        """All networks and ensembles."""
        return (*self.networks, *self.ensembles)

    def jobs_before_selection(self) -> list[Job]:
        """Return the distinct jobs that must finish before settings are selected.

        For each seed, short trainings come last, so that parallel processes finish at similar
        times.
        """

        def has_short_training(planned: PlannedRun) -> bool:
            # A confidence branch is trained on a trained classifier.
            return any(training.needs for training in planned.validate.needs)

        jobs = []
        for planned in self._runs_by_seed(has_short_training):
            for training in planned.validate.needs:
                jobs += [*training.needs, training]
            jobs.append(planned.validate)
        jobs += [ensemble.validate for ensemble in self.ensembles]
        return list({job.stem: job for job in jobs}.values())

    def test_jobs(self, selected: Iterable[tuple[str, str]]) -> list[Job]:
        """Return the test jobs of the selected pairs of arm and setting.

        If an ensemble is selected, its networks are also tested. For each seed, tests without
        dropout passes come last, because they are short. Ensembles are tested after all networks.
        """
        selected_settings = set(selected)

        def has_short_test(planned: PlannedRun) -> bool:
            return not planned.test.spec["samples"]

        ensemble_tests = [
            ensemble.test
            for ensemble in self.ensembles
            if (ENSEMBLE, ensemble.run.setting) in selected_settings
        ]
        member_keys = {member.key for test in ensemble_tests for member in test.needs}
        network_tests = []
        for planned in self._runs_by_seed(has_short_test):
            is_selected = (planned.run.arm, planned.run.setting) in selected_settings
            if is_selected or planned.test.key in member_keys:
                network_tests.append(planned.test)
        return network_tests + ensemble_tests

    def stored_runs(self, outcome_of: Callable[[Job], Outcome | None]) -> list[StoredRun]:
        """Return the validated networks and ensembles with the paths of their existing files.

        `outcome_of` is a function that returns the outcome of a job, or None if it is not done.
        """
        stored = []
        for planned in self.all_runs:
            validated = outcome_of(planned.validate)
            if validated is None:
                continue
            test_file = ""
            if outcome_of(planned.test) is not None:
                test_file = _scores_file(planned.test)
            validation_values = validated.facts["validated"]
            stored.append(
                StoredRun(planned.run, _scores_file(planned.validate), test_file, validation_values)
            )
        return stored

    def _runs_by_seed(self, is_short: Callable[[PlannedRun], bool]) -> list[PlannedRun]:
        """Return the networks sorted by seed, and by decreasing job length within each seed."""
        seed_position = {seed: i for i, seed in enumerate(self.config.seeds)}
        return sorted(
            self.networks,
            key=lambda planned: (seed_position[planned.run.seed], is_short(planned)),
        )

    def _plan_run(self, arm: Arm, setting: Setting, seed: int) -> PlannedRun:
        """Return the network with the given setting and seed, and its jobs."""
        name = f"{arm.name}-{setting.label}-seed{seed}"
        training = self._training_job(arm, setting, seed)
        methods = self.config.methods_of(arm)
        # Without dropout, all passes would be equal.
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
        """Return the job that trains a network, after the job of its initial classifier."""
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
        """Return the file name of the warm-up that settings share, or an empty string."""
        warm_up = arm.warm_up_setting(setting)
        warm_ups = [arm.warm_up_setting(other) for other in arm.settings]
        if warm_up is None or warm_ups.count(warm_up) < 2:
            return ""
        warm_up_name = f"start-{_classifier_name(arm.name, warm_up, seed)}"
        warm_up_job = Job(warm_up_name, self._training_spec(arm, warm_up, seed))
        return f"{warm_up_job.stem}{WARM_UP_SUFFIX}"

    def _classifier_job(self, arm: Arm, setting: Setting, seed: int) -> Job:
        """Return the job that trains the initial classifier of a network.

        The job is shared by all networks that start from the same classifier. If an arm trains the
        same classifier, the job has the name of this arm.
        """
        objective = INITIAL_OBJECTIVES[arm.objective]
        recipe = arm.recipe_of(setting).with_length(arm.classifier_length(setting))
        classifier_arm = Arm(objective, objective, recipe)
        spec = self._training_spec(classifier_arm, Setting(setting.dropout), seed)
        similar_arms = [other for other in self.config.arms if other.objective == objective]
        same_settings = [
            candidate
            for other in similar_arms
            for candidate in other.settings
            if other.recipe_of(candidate) == recipe
        ]
        if same_settings:
            name = objective
            recipe_changes = same_settings[0].recipe_changes
        else:
            name = f"{arm.name}-classifier" if similar_arms else objective
            recipe_changes = setting.recipe_changes
        named_setting = Setting(setting.dropout, recipe_changes=recipe_changes)
        return Job(f"train-{_classifier_name(name, named_setting, seed)}", spec)

    @property
    def _test_fields(self) -> dict[str, object]:
        """Additional fields in the specification of test jobs, compared with validation jobs."""
        spec: dict[str, object] = {"exposures": list(self.exposures)}
        if self.files_digest:
            spec["files"] = self.files_digest
        return spec

    def _training_spec(self, arm: Arm, setting: Setting, seed: int) -> dict[str, object]:
        """Return the specification of the job that trains a network."""
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
        """Return one run per seed for the ensemble of a setting."""
        label = setting.label
        members = [
            network
            for network in self.networks
            if network.run.arm == arm.name and network.run.setting == label
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
        planned_runs = []
        for member in members:
            name = f"{ENSEMBLE}-{label}-seed{member.run.seed}"
            run = Run(name, ENSEMBLE, label, member.run.seed, self.config.model)
            planned_runs.append(PlannedRun(run, validate, test))
        return planned_runs


def _classifier_name(name: str, setting: Setting, seed: int) -> str:
    """Return the job name for training a classifier with a setting."""
    changes = setting.recipe_changes.items()
    recipe = "".join(f"-recipe.{field}{format_value(value)}" for field, value in changes)
    return f"{name}-dropout{format_value(setting.dropout)}{recipe}-seed{seed}"


def _scores_file(job: Job) -> str:
    return f"{JOBS}/{job.stem}{SCORES_SUFFIX}"
