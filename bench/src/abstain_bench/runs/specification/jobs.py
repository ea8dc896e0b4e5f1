"""`Specification`: which jobs a benchmark has, and what each depends on.

``train`` trains one network; one whose objective begins with the whole training of a plain
classifier starts from the network of that job. ``validate`` scores the validation images with
it, by every method; settings are chosen from that. ``test`` scores the exposures, by networks that
were chosen. ``ensemble-validate`` and ``ensemble-test`` put the networks of all seeds together.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from abstain_bench.runs.jobs import Job, Outcome
from abstain_bench.runs.specification.arms import BEGINS_WITH, ENSEMBLE, Arm, Setting, short
from abstain_bench.runs.specification.config import Config
from abstain_bench.runs.store import JOBS, Run, StoredRun
from abstain_bench.runs.tasks import TASKS

__all__ = ["Planned", "Specification"]

#: Raised where the outcome of training, or of scoring, changes for the same specification.
TRAINED: Final = 1
SCORED: Final = 3

#: Where the files of scores are, and what trainings begin with alike, by their endings.
SCORES: Final = ".npz"
START: Final = ".start"


def stage_of(job: Job) -> str:
    """Return "train", "validate" or "test": of one network, or of those of all seeds."""
    return stage_named(job.name)


def stage_named(name: str) -> str:
    """Return the stage of the job of a name."""
    return name.removeprefix(f"{ENSEMBLE}-").partition("-")[0]


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
class Specification:
    """What a benchmark has to do: its configuration and what else its jobs depend on.

    Attributes
    ----------
    config : Config
        What was asked for.
    exposures : tuple of str
        The keys of what is tested.
    device : str
        The kind of device that computes: its arithmetic is part of the outcome.
    images : str
        A hash of the images that are learned from; empty for those that come with the package.
    files : str
        A hash of the names and sizes of the files of a folder; empty where there is none.
    variation : mapping, optional
        How the task changes its images; by default as its entry says.
    weights : str
        A hash of the weights that networks begin with; empty where they are drawn.
    """

    config: Config
    exposures: tuple[str, ...]
    device: str = "cpu"
    pictures: str = ""
    files: str = ""
    variation: Mapping[str, Any] | None = None
    weights: str = ""

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
        """Return the jobs that have to be done before settings can be chosen, each once.

        A branch on a trained classifier is short. At the end of a seed, so that of several
        processes none has long to wait for the last whole training.
        """
        jobs = [
            job
            for one in self._by_seed(lambda one: any(first.needs for first in one.validate.needs))
            for first in one.validate.needs
            for job in (*first.needs, first, one.validate)
        ]
        jobs += [one.validate for one in self.ensembles]
        return list({job.stem: job for job in jobs}.values())

    def after_choice(self, chosen: Iterable[tuple[str, str]]) -> list[Job]:
        """Return the jobs that test what some method chose, as (arm, setting), ensembles last.

        An ensemble needs its members tested. What makes no passes with dropout is short, and comes
        at the end of a seed.
        """
        wanted = set(chosen)
        together = [one for one in self.ensembles if (ENSEMBLE, one.run.setting) in wanted]
        members = {job.key for one in together for job in one.test.needs}
        tests = [
            one.test
            for one in self._by_seed(lambda one: not one.test.spec["samples"])
            if (one.run.arm, one.run.setting) in wanted or one.test.key in members
        ]
        return [*tests, *(one.test for one in together)]

    def kept(self, ended: Callable[[Job], Outcome | None]) -> list[StoredRun]:
        """Return the networks that were validated, with the files that are there of each.

        `ended` says how a job ended; None for one that is not done.
        """
        found = []
        for one in (*self.networks, *self.ensembles):
            validated, tested = ended(one.validate), ended(one.test)
            if validated is not None:
                files = (_file(one.validate), _file(one.test) if tested is not None else "")
                found.append(StoredRun(one.run, *files, validated.facts["validated"]))
        return found

    def _by_seed(self, is_short: Callable[[Planned], bool]) -> list[Planned]:
        """Return the networks, those of one seed before those of the next, in each the short last.

        Results come early like this.
        """
        place = self.config.seeds.index
        return sorted(self.networks, key=lambda one: (place(one.run.seed), is_short(one)))

    def _network(self, arm: Arm, setting: Setting, seed: int) -> Planned:
        name = f"{arm.name}-{setting.label}-seed{seed}"
        first = self._first(arm, setting, seed)
        known = self.config.methods_of(arm)
        methods = [method.name for method in known]
        # Without dropout all passes would be alike, and many methods look at none.
        looked_at = any("samples" in method.needs for method in known)
        samples = self.config.samples if setting.dropout and looked_at else 0
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
            # It has one name, whichever arms use it.
            name = _classifier_name(arm.kind, setting, seed)
        return Job(f"train-{name}", spec, start=self._start(arm, setting, seed))

    def _start(self, arm: Arm, setting: Setting, seed: int) -> str:
        """Return the file of a warm-up that several settings have alike; empty where none do."""
        own = arm.warm_up(setting)
        if own is None or [arm.warm_up(one) for one in arm.settings].count(own) < 2:
            return ""
        name = f"start-{_classifier_name(arm.name, own, seed)}"
        return f"{Job(name, self._training(arm, own, seed)).stem}{START}"

    def _classifier(self, arm: Arm, setting: Setting, seed: int) -> Job:
        """Return the job that trains what a network begins with: one for all that need it alike."""
        kind = BEGINS_WITH[arm.kind]
        plain = Arm(kind, kind, arm.recipe_of(setting).lasting(arm.classifier_length(setting)))
        spec = self._training(plain, Setting(setting.dropout), seed)
        others = [one for one in self.config.arms if one.kind == kind]
        # The arm of that kind has a name for it, if it trains one like that.
        named = next(
            (own for one in others for own in one.settings if one.recipe_of(own) == plain.recipe),
            None if others else setting,
        )
        tried = setting.recipe if named is None else named.recipe
        own = f"{arm.name}-classifier" if named is None else kind
        name = _classifier_name(own, Setting(setting.dropout, recipe=tried), seed)
        return Job(f"train-{name}", spec)

    @property
    def _tested(self) -> dict[str, object]:
        spec: dict[str, object] = {"exposures": list(self.exposures)}
        return spec | ({"files": self.files} if self.files else {})

    def _training(self, arm: Arm, setting: Setting, seed: int) -> dict[str, object]:
        asked = self.config.variation if self.variation is None else self.variation
        own = TASKS[self.config.task].variation if asked is None else asked
        spec: dict[str, object] = {
            "version": TRAINED,
            "task": self.config.task,
            "variation": dict(own),
            "model": self.config.model,
            "dropout": setting.dropout,
            "objective": arm.kind,
            "options": dict(setting.options),
            "recipe": arm.recipe_of(setting).said(),
            "precision": self.config.precision,
            "seed": seed,
            "device": self.device,
        }
        data = self.config.data
        more = {
            "stages": dict(arm.stages),
            "pictures": self.pictures,
            "data": None if data is None else data.said(),
            "weights": self.weights,
            "side": self.config.side,
        }
        return spec | {name: value for name, value in more.items() if value}

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


def _classifier_name(kind: str, setting: Setting, seed: int) -> str:
    tried = "".join(f"-recipe.{name}{short(value)}" for name, value in setting.recipe.items())
    return f"{kind}-dropout{short(setting.dropout)}{tried}-seed{seed}"


def _file(job: Job) -> str:
    return f"{JOBS}/{job.stem}{SCORES}"
