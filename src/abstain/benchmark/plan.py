"""The jobs of a benchmark: which there are, and what each depends on.

``train`` trains one network; one whose objective begins with the whole training of a plain
classifier goes on from the network of that job. ``validate`` scores the validation pictures with
it, by every method; settings are chosen from that. ``test`` scores the exposures, by networks that
were chosen. ``ensemble-validate`` and ``ensemble-test`` put the networks of all seeds together.
"""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property

from abstain.benchmark.config import ENSEMBLE, Arm, Config, Setting
from abstain.benchmark.jobs import Job
from abstain.benchmark.runs import Run
from abstain.benchmark.settings import (
    BEGINS_WITH,
    SCORED,
    TRAINED,
    classifier_name,
    passes_of,
)
from abstain.benchmark.tasks import TASKS
from abstain.training import OBJECTIVES

__all__ = ["Plan", "Planned"]


@dataclass(frozen=True)
class Planned:
    """One network, or the networks of all seeds of a setting, and the jobs about it.

    Attributes
    ----------
    run : Run
        What it is called.
    validate, test : Job
        The jobs that score it.
    """

    run: Run
    validate: Job
    test: Job


@dataclass(frozen=True)
class Plan:
    """The jobs of a configuration.

    Attributes
    ----------
    config : Config
        What was asked for.
    exposures : tuple of str
        The keys of what is tested.
    device : str
        The kind of device that computes: its arithmetic is part of the outcome.
    pictures : str
        A hash of the pictures that are learned from; empty for those that come with the package.
    files : str
        A hash of the names and sizes of the files of a folder; empty where there is none.
    """

    config: Config
    exposures: tuple[str, ...]
    device: str = "cpu"
    pictures: str = ""
    files: str = ""

    @cached_property
    def networks(self) -> tuple[Planned, ...]:
        """All networks; those of one seed before those of the next, so that results come early."""
        return tuple(
            self._network(arm, setting, seed)
            for seed in self.config.seeds
            for arm in self.config.arms
            for setting in arm.settings
        )

    @cached_property
    def ensembles(self) -> tuple[Planned, ...]:
        """What the networks of all seeds make together, by setting and seed: the same in each."""
        methods = [method.name for method in self.config.ensemble_methods]
        if len(self.config.seeds) < 2 or not methods:
            return ()
        kinds = {method.objective for method in self.config.ensemble_methods}
        plain = [arm for arm in self.config.arms if arm.kind in kinds]
        return tuple(
            planned
            for arm in plain
            for setting in arm.settings
            for planned in self._all(setting, arm)
        )

    def before_choice(self) -> list[Job]:
        """Return the jobs that have to be done before settings can be chosen, each once."""
        jobs = [
            job
            for one in self.networks
            for first in one.validate.needs
            for job in (*first.needs, first, one.validate)
        ]
        jobs += [one.validate for one in self.ensembles]
        return list({job.stem: job for job in jobs}.values())

    def after_choice(self, chosen: Iterable[tuple[str, str]]) -> list[Job]:
        """Return the jobs that test what was chosen.

        Parameters
        ----------
        chosen : iterable of (arm, setting)
            Those that some method chose for some metric; an ensemble needs its members tested.

        Returns
        -------
        list of Job
            In the order of the networks, ensembles last.
        """
        wanted = set(chosen)
        together = [one for one in self.ensembles if (ENSEMBLE, one.run.setting) in wanted]
        members = {job.key for one in together for job in one.test.needs}
        tests = [
            one.test
            for one in self.networks
            if (one.run.arm, one.run.setting) in wanted or one.test.key in members
        ]
        return [*tests, *(one.test for one in together)]

    def _network(self, arm: Arm, setting: Setting, seed: int) -> Planned:
        name = f"{arm.name}-{setting.label}-seed{seed}"
        first = self._first(arm, setting, seed)
        known = self.config.methods_of(arm)
        methods = [method.name for method in known]
        samples = passes_of(self.config.samples, setting, known)
        spec = {"version": SCORED, "methods": methods, "samples": samples}
        validate = Job(f"validate-{name}", {**spec, "metrics": list(self.config.metrics)}, (first,))
        test = Job(f"test-{name}", {**spec, **self._tested}, (first,))
        run = Run(name, arm.name, setting.label, seed, self.config.model)
        return Planned(run, validate, test)

    def _first(self, arm: Arm, setting: Setting, seed: int) -> Job:
        """Return the job that trains a network, after the classifier that it begins with."""
        spec = self._training(arm, setting, seed)
        name = f"{arm.name}-{setting.label}-seed{seed}"
        if arm.kind in BEGINS_WITH:
            return Job(f"train-{name}", spec, (self._classifier(arm, setting, seed),))
        if arm.kind in BEGINS_WITH.values():
            name = classifier_name(arm.kind, setting.dropout, seed)
        return Job(f"train-{name}", spec)

    def _classifier(self, arm: Arm, setting: Setting, seed: int) -> Job:
        """Return the job that trains what a network begins with: one for all that need it alike."""
        kind = BEGINS_WITH[arm.kind]
        plain = Arm(kind, kind, replace(arm.recipe, epochs=arm.classifier_epochs(setting)))
        spec = self._training(plain, Setting(setting.dropout), seed)
        others = [one for one in self.config.arms if one.kind == kind]
        # The arm of that kind may be trained otherwise; then the name must not be the same.
        alike = all(one.recipe == plain.recipe for one in others)
        own = kind if alike else f"{arm.name}-classifier"
        return Job(f"train-{classifier_name(own, setting.dropout, seed)}", spec)

    @property
    def _tested(self) -> dict[str, object]:
        spec: dict[str, object] = {"exposures": list(self.exposures)}
        return spec | ({"files": self.files} if self.files else {})

    def _training(self, arm: Arm, setting: Setting, seed: int) -> dict[str, object]:
        task = TASKS[self.config.task]
        spec: dict[str, object] = {
            "version": TRAINED,
            "task": self.config.task,
            "variation": dict(task.variation),
            "model": self.config.model,
            "dropout": setting.dropout,
            "objective": OBJECTIVES[arm.kind].name,
            "options": dict(setting.options),
            "recipe": asdict(arm.recipe),
            "precision": self.config.precision,
            "seed": seed,
            "device": self.device,
        }
        spec |= {"stages": dict(arm.stages)} if arm.stages else {}
        return spec | ({"pictures": self.pictures} if self.pictures else {})

    def _all(self, setting: Setting, arm: Arm) -> Iterator[Planned]:
        label = setting.label
        own = [one for one in self.networks if (one.run.arm, one.run.setting) == (arm.name, label)]
        methods = [method.name for method in self.config.ensemble_methods]
        spec = {"version": SCORED, "methods": methods}
        validate = Job(
            f"ensemble-validate-{label}",
            {**spec, "metrics": list(self.config.metrics)},
            tuple(one.validate for one in own),
        )
        test = Job(
            f"ensemble-test-{label}",
            {**spec, **self._tested},
            tuple(one.test for one in own),
        )
        for one in own:
            name = f"{ENSEMBLE}-{label}-seed{one.run.seed}"
            run = Run(name, ENSEMBLE, label, one.run.seed, self.config.model)
            yield Planned(run, validate, test)
