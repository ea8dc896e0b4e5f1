"""Protocols: the settings of a published benchmark, by task, as a configuration says them.

The facts are those of FD-Shifts: of its code as released with the paper (tag v0.1.0) and of the
paper where the two differ; `docs/data.md` has them side by side, with the files they stand in.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from abstain._foundation.catalogue import Catalogue
from abstain.errors import InputError
from abstain_bench.runs.tasks import Sizes

__all__ = ["PROTOCOLS", "Protocol", "TaskFacts"]

#: The network of the second half of the paper, at this size of the images.
TRANSFORMER: Final = "vit-b16"
_SIDE: Final = 384


@dataclass(frozen=True, kw_only=True)
class TaskFacts:
    """What FD-Shifts takes for one task.

    Attributes
    ----------
    model : str
        In `abstain_bench.networks.MODELS`.
    dropout : float
        The rate that is tried beside none.
    rewards : tuple of float
        Those of DeepGamblers that are tried.
    epochs, batch_size : int
        Of the classifier.
    learning_rate, weight_decay : float
        At the start, and of the descent.
    gamble : tuple of int
        Epochs of DeepGamblers' warm-up, and of those after it.
    branch : tuple of int
        Epochs of ConfidNet's branch, and of its fine-tuning.
    data : Sizes
        How much is taken of the files.
    variation : mapping
        How images to learn from are changed, with its name.
    runs : int
        How many networks are trained of each setting.
    steps, warm_up, batch : int
        Of the transformer: steps, those of DeepGamblers' warm-up, and images of a step.
    rates : tuple of float
        Learning rates of the transformer, as table 7 of the paper has chosen them.
    data_side : int
        Height and width of files that the transformer sees; 0 for those of `data`.
    """

    model: str
    dropout: float
    rewards: tuple[float, ...] = (2.2, 3.0, 6.0, 10.0)
    epochs: int
    batch_size: int = 128
    learning_rate: float
    weight_decay: float
    gamble: tuple[int, int]
    branch: tuple[int, int]
    data: Sizes = field(default_factory=Sizes)
    variation: Mapping[str, Any] = field(default_factory=dict)
    runs: int = 5
    steps: int = 40_000
    warm_up: int = 20_000
    batch: int = 128
    rates: tuple[float, ...]
    data_side: int = 0


@dataclass(frozen=True)
class Protocol:
    """The settings of a published benchmark.

    Attributes
    ----------
    name : str
        The name scripts use.
    title : str
        The name people read.
    meaning : str
        One plain sentence.
    source : str
        Where it was looked up.
    tasks : mapping from str to TaskFacts
        By task.
    rates : tuple of float
        Learning rates that are tried with the transformer, for all tasks; empty for those of each.

    Examples
    --------
    >>> from abstain_bench.runs.specification import PROTOCOLS
    >>> found = PROTOCOLS["fd-shifts"].plain("cifar10")
    >>> found["arms"]["deep-gamblers"]["stages"], found["recipe"]["epochs"], found["samples"]
    ({'warm-up': 100}, 250, 50)
    """

    name: str
    title: str
    meaning: str
    source: str
    tasks: Mapping[str, TaskFacts]
    rates: tuple[float, ...] = ()

    def of(self, task: str) -> TaskFacts:
        """Return the facts of a task, or an error that names those there are."""
        if task not in self.tasks:
            known = ", ".join(self.tasks)
            raise InputError(f"the protocol {self.name!r} has no task {task!r}; it has {known}")
        return self.tasks[task]

    def plain(self, task: str, model: str = "") -> dict[str, Any]:
        """Return the configuration of a task as plain values."""
        facts = self.of(task)
        if model != TRANSFORMER:
            return {"task": task, "seeds": facts.runs, "samples": _PASSES, **_convolved(facts)}
        runs = min(facts.runs, _VIT_RUNS)
        return {"task": task, "seeds": runs, "samples": _PASSES, **self._transformed(facts)}

    def _transformed(self, facts: TaskFacts) -> dict[str, Any]:
        rates = list(self.rates or facts.rates)
        tried = {"recipe": {"learning_rate": rates}}
        dropout = [0.0, _VIT_DROPOUT]
        small = facts.data.side == Sizes().side
        data = replace(
            facts.data,
            side=facts.data_side or facts.data.side,
            # Small ones are scaled as they are, and not by way of those that are learned.
            new_side=_TINY if small else 0,
        )
        return {
            "model": TRANSFORMER,
            "side": _SIDE,
            "data": data.said(),
            "variation": {},
            "recipe": {
                **_DESCENT,
                "steps": facts.steps,
                "warm_up_steps": _RISE,
                "batch_size": facts.batch,
                "learning_rate": rates[0],
                "weight_decay": 0.0,
            },
            "arms": {
                "cross-entropy": {"dropout": dropout, "try": tried},
                "deep-gamblers": {
                    "dropout": dropout,
                    "try": {"reward": list(facts.rewards), **tried},
                    "stages": {"warm-up": facts.warm_up},
                },
            },
        }


#: Passes with dropout on; its rate in the transformer, whose rate of learning rises at first; the
#: side of TinyImageNet's files.
_PASSES: Final = 50
_VIT_DROPOUT: Final = 0.1
#: At most: more are of convolutional networks on Camelyon17, whose results vary.
_VIT_RUNS: Final = 5
_RISE: Final = 500
_TINY: Final = 64

#: What all have in common: gradients are clipped, and ConfidNet's stages keep their rates.
_DESCENT: Final = {
    "momentum": 0.9,
    "nesterov": False,
    "schedule": "cosine",
    "clip": 1.0,
    "stage_schedule": "constant",
}


def _convolved(facts: TaskFacts) -> dict[str, Any]:
    rates = [0.0, facts.dropout]
    warm_up, gamble = facts.gamble
    return {
        "model": facts.model,
        "data": facts.data.said(),
        "variation": dict(facts.variation),
        "recipe": {
            **_DESCENT,
            "epochs": facts.epochs,
            "batch_size": facts.batch_size,
            "learning_rate": facts.learning_rate,
            "weight_decay": facts.weight_decay,
        },
        "arms": {
            # MSR and all others of its logits; ConfidNet goes on with the same classifier.
            "cross-entropy": {"dropout": rates},
            "confidnet": {
                "dropout": rates,
                "stages": dict(zip(("confidence", "fine-tune"), facts.branch, strict=True)),
            },
            "devries": {"dropout": rates, "recipe": {"nesterov": True}},
            "deep-gamblers": {
                "dropout": rates,
                "try": {"reward": list(facts.rewards)},
                "stages": {"warm-up": warm_up},
                "recipe": {"epochs": gamble},
            },
        },
    }


_CROPS: Final = {"name": "augmentation", "padding": 4, "mirror": True, "cutout": 16}
_MANY_REWARDS: Final = (2.2, 3.0, 6.0, 10.0, 12.0, 15.0, 20.0)
_SOME_REWARDS: Final = (2.2, 3.0, 6.0, 10.0, 15.0)

_CIFAR10: Final = TaskFacts(
    model="vgg13-fd-shifts",
    dropout=0.5,
    epochs=250,
    learning_rate=0.1,
    weight_decay=5e-4,
    gamble=(100, 200),
    branch=(200, 20),
    data=Sizes(corrupted="all"),
    variation=_CROPS,
    rates=(0.01, 3e-4),
)
_CIFAR100: Final = replace(
    _CIFAR10, rewards=_MANY_REWARDS, rates=(0.01,), steps=10_000, warm_up=5_000, batch=512
)
_SUPER: Final = replace(_CIFAR100, data=Sizes(), rates=(3e-3, 1e-3))
_SVHN: Final = TaskFacts(
    model="street-conv",
    dropout=0.3,
    epochs=100,
    learning_rate=0.01,
    weight_decay=5e-4,
    gamble=(50, 100),
    branch=(200, 20),
    rates=(0.03, 0.01),
)
_IWILDCAM: Final = TaskFacts(
    model="resnet50",
    dropout=0.1,
    rewards=_SOME_REWARDS,
    epochs=12,
    batch_size=16,
    learning_rate=1e-3,
    weight_decay=0.0,
    gamble=(6, 12),
    branch=(5, 3),
    data=Sizes(learned=0, tested=0, side=448, chosen="first"),
    rates=(3e-3, 1e-3),
    batch=512,
    data_side=_SIDE,
)
_CAMELYON: Final = TaskFacts(
    model="resnet50",
    dropout=0.1,
    epochs=5,
    batch_size=32,
    learning_rate=0.01,
    weight_decay=0.01,
    gamble=(3, 5),
    branch=(3, 1),
    data=Sizes(learned=0, tested=0, side=96, chosen="first"),
    runs=10,
    rates=(3e-3, 1e-3),
)
_ENTITY: Final = TaskFacts(
    model="resnet50",
    dropout=0.1,
    rewards=_SOME_REWARDS,
    epochs=300,
    learning_rate=0.1,
    weight_decay=1e-4,
    gamble=(50, 300),
    branch=(200, 20),
    # The center of 224 of what is scaled to 256.
    data=Sizes(learned=0, tested=0, side=256),
    variation={"name": "augmentation", "side": 224, "area": 0.08, "mirror": True, "jitter": 0.1},
    runs=2,
    rates=(0.01, 3e-3, 1e-3),
    data_side=_SIDE,
)

#: As released.
_CODE: Final[Mapping[str, TaskFacts]] = {
    "cifar10": _CIFAR10,
    "cifar100": _CIFAR100,
    "cifar100-super": _SUPER,
    "svhn": _SVHN,
    # Their five runs hold other classes out each; here that is five tasks.
    **{f"svhn-open-{i}": replace(_SVHN, runs=1) for i in range(1, 6)},
    "entity13": _ENTITY,
    "iwildcam": _IWILDCAM,
    **{f"iwildcam-open-{i}": replace(_IWILDCAM, runs=1) for i in range(1, 6)},
    "camelyon17": _CAMELYON,
}


def _as_printed(facts: TaskFacts) -> TaskFacts:
    """Return the facts with what the tables of the paper have otherwise."""
    if facts.model == _SVHN.model:
        return replace(facts, weight_decay=15e-4)
    if facts.model == _CIFAR10.model:
        return replace(facts, gamble=(50, 250))
    return facts


def _few_corrupted(facts: TaskFacts) -> TaskFacts:
    if facts.data.corrupted != "all":
        return facts
    return replace(facts, data=replace(facts.data, corrupted="tenth"))


#: Every protocol by name.
PROTOCOLS: Catalogue[Protocol] = Catalogue("protocol")

PROTOCOLS.add(
    Protocol(
        "fd-shifts",
        "FD-Shifts",
        "Data, networks, recipes and runs of FD-Shifts, as its code has them.",
        "Jaeger et al. 2023; code released with it, v0.1.0",
        _CODE,
    )
)
PROTOCOLS.add(
    Protocol(
        "fd-shifts-paper",
        "FD-Shifts, as printed",
        "The same with the numbers of its tables where the code has others.",
        "Jaeger et al. 2023, tables 4 and 7, appendix E",
        {name: _as_printed(facts) for name, facts in _CODE.items()},
        # One run of each chooses there.
        (0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4),
    )
)
PROTOCOLS.add(
    Protocol(
        "fd-shifts-2024",
        "FD-Shifts, as in the AUGRC paper",
        "FD-Shifts with a tenth of the corrupted images: 75,000.",
        "Traub et al. 2024, appendix A.2",
        {name: _few_corrupted(facts) for name, facts in _CODE.items()},
    )
)
