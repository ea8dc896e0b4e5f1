"""Which jobs a configuration in plain values has, and which of their receipts are there.

The jobs themselves need torch to be made (`abstain.benchmark.plan`); what is done can be seen
without. A receipt counts if its specification is the one that is expected.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeAlias

from abstain._foundation.reading import fields
from abstain.benchmark.jobs.receipts import intact
from abstain.benchmark.methods import METHODS, Method
from abstain.benchmark.runs import Run
from abstain.benchmark.settings import (
    BEGINS_WITH,
    SCORED,
    TRAINED,
    Setting,
    classifier_name,
    passes_of,
    settings_of,
)
from abstain.errors import InputError

#: The arm of the networks of all seeds; `abstain.benchmark.config` has the same.
ENSEMBLE: Final = "ensemble"

#: What the file of a job that is done says.
Receipt: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Followed:
    """One network, or one ensemble, and how far it is.

    Attributes
    ----------
    runs : tuple of Run
        The network; of an ensemble one for every seed.
    kind : str
        The objective of the network or networks.
    trained : Receipt or None
        Of its training; of an ensemble that of one of its networks, once all are validated.
    validated, tested : Receipt or None
        Of the jobs that score it.
    """

    runs: tuple[Run, ...]
    kind: str
    trained: Receipt | None
    validated: Receipt | None
    tested: Receipt | None


@dataclass(frozen=True)
class Receipts:
    """The receipts of a folder of jobs.

    Attributes
    ----------
    all : tuple of Receipt
        The newest first.
    """

    all: tuple[Receipt, ...]

    @classmethod
    def read(cls, jobs: Path) -> "Receipts":
        """Read what is there now; what is no receipt is no job that is done."""
        found = list(_read(jobs))
        return cls(tuple(one for _, one in sorted(found, key=lambda pair: -pair[0])))

    @property
    def tasks(self) -> frozenset[str]:
        """The tasks that networks were trained for."""
        return frozenset(str(one["spec"]["task"]) for one in self.all if "task" in one["spec"])

    def find(
        self, name: str, spec: Mapping[str, Any], needs: Sequence[Receipt | None] | None = None
    ) -> Receipt | None:
        """Return the receipt of a job, if it and all it needs are done.

        Without `needs` it is not looked at what it needed: the specification has it all.
        """
        keys = [one["key"] for one in needs or () if one is not None]
        if len(keys) < len(needs or ()):
            return None
        for one in self.all:
            same = one["name"] == name and all(one["spec"].get(k) == v for k, v in spec.items())
            # Not every version says what a job needed.
            if same and (needs is None or one.get("needs", keys) == keys):
                return one
        return None


class Followers:
    """The networks of a configuration and how far each is.

    Parameters
    ----------
    config : mapping
        Plain values, as in a manifest.
    exposures : sequence of str
        The keys of what is tested.
    receipts : Receipts
        What is done.
    """

    def __init__(
        self, config: Mapping[str, Any], exposures: Sequence[str], receipts: Receipts
    ) -> None:
        self.config, self.receipts = config, receipts
        self.tests = {"version": SCORED, "exposures": list(exposures)}
        self.validates = {"version": SCORED, "metrics": list(config["metrics"])}
        self.methods = [METHODS[name] for name in config["methods"] if name in METHODS]

    @cached_property
    def networks(self) -> tuple[Followed, ...]:
        """All networks."""
        return tuple(
            self._network(arm, kind, setting, seed)
            for seed in self.config["seeds"]
            for arm, kind, settings in self._arms()
            for setting in settings
        )

    @cached_property
    def ensembles(self) -> tuple[Followed, ...]:
        """What the networks of all seeds make together."""
        methods = [method for method in self.methods if "ensemble" in method.needs]
        if len(self.config["seeds"]) < 2:
            return ()
        kinds = {method.objective for method in methods}
        return tuple(
            self._together(arm, kind, setting.label, methods)
            for arm, kind, settings in self._arms()
            for setting in settings
            if kind in kinds
        )

    def _arms(self) -> Iterator[tuple[str, str, tuple[Setting, ...]]]:
        for name, arm in self.config["arms"].items():
            settings = settings_of(arm["dropout"], arm.get("options", {}), arm.get("try", {}))
            yield name, arm["kind"], settings

    def _network(self, arm: str, kind: str, setting: Setting, seed: int) -> Followed:
        run = Run(f"{arm}-{setting.label}-seed{seed}", arm, setting.label, seed)
        own = self.config["arms"][arm]
        training = {
            "version": TRAINED,
            "task": self.config["task"],
            "model": self.config["model"],
            "precision": self.config["precision"],
            "objective": kind,
            "options": dict(setting.options),
            "dropout": setting.dropout,
            "recipe": {**self.config["recipe"], **own.get("recipe", {})},
            "seed": seed,
        }
        training |= {"stages": own["stages"]} if own.get("stages") else {}
        known = [m for m in self.methods if m.objective == kind and "ensemble" not in m.needs]
        shared = kind in BEGINS_WITH.values()
        name = classifier_name(kind, setting.dropout, seed) if shared else run.name
        trained = self.receipts.find(f"train-{name}", training)
        scores = {
            "methods": [method.name for method in known],
            "samples": passes_of(self.config["samples"], setting, known),
        }
        validated, tested = (
            self.receipts.find(f"{job}-{run.name}", {**scores, **spec}, [trained])
            for job, spec in (("validate", self.validates), ("test", self.tests))
        )
        return Followed((run,), kind, trained, validated, tested)

    def _together(self, arm: str, kind: str, label: str, methods: Sequence[Method]) -> Followed:
        members = [n for n in self.networks if (n.runs[0].arm, n.runs[0].setting) == (arm, label)]
        runs = tuple(
            Run(f"{ENSEMBLE}-{label}-seed{seed}", ENSEMBLE, label, seed)
            for seed in self.config["seeds"]
        )
        names = [method.name for method in methods]
        done = [member.validated for member in members]
        validated = self.receipts.find(
            f"{ENSEMBLE}-validate-{label}", {"methods": names, **self.validates}, done
        )
        tested = self.receipts.find(
            f"{ENSEMBLE}-test-{label}",
            {"methods": names, **self.tests},
            [member.tested for member in members],
        )
        return Followed(runs, kind, None if None in done else done[0], validated, tested)


def _read(jobs: Path) -> Iterator[tuple[float, Receipt]]:
    for path in jobs.glob("*.json"):
        try:
            found = fields(path)
            kinds = {"name": str, "key": str, "spec": dict, "facts": dict, "files": dict}
            right = all(isinstance(found[name], kind) for name, kind in kinds.items())
            # What was deleted or cut is done again, and is not there until then.
            left = right and all(_there(path.with_suffix(ending)) for ending in found["files"])
            if left and intact(found):
                yield path.stat().st_mtime, {**found, "seconds": float(found["seconds"])}
        except (InputError, OSError, ValueError, KeyError, TypeError):
            # It is being written, or somebody changed it: its job is not known to be done.
            continue


def _there(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0
