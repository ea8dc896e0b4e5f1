"""Define protocols, which contain the settings of a published benchmark for each task.

The settings are those of the FD-Shifts code (tag v0.1.0) or those of the FD-Shifts paper.
`docs/data.md` compares the two and names the source files.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import Any, Final

from abstain._foundation.catalogue import Catalogue
from abstain.errors import InputError
from abstain_bench.runs.tasks import Sizes

#: Name of the transformer of FD-Shifts.
TRANSFORMER: Final = "vit-b16"
#: Height and width of the input images of the transformer.
_VIT_SIDE: Final = 384


@dataclass(frozen=True, kw_only=True)
class TaskFacts:
    """Settings of FD-Shifts for one task.

    Attributes
    ----------
    model : str
        Name in `abstain_bench.networks.MODELS`.
    dropout : float
        Dropout probability that is tried in addition to 0.
    rewards : tuple of float
        Rewards of DeepGamblers to try.
    epochs, batch_size : int
        Number of epochs and batch size of the classifier.
    learning_rate, weight_decay : float
        Initial learning rate and weight decay.
    gambler_epochs : tuple of int
        Numbers of epochs of the warm-up of DeepGamblers, and of the training after the warm-up.
    confidnet_epochs : tuple of int
        Numbers of epochs of the confidence branch of ConfidNet, and of its fine-tuning.
    data : Sizes
        Number and size of the images that are read from the files.
    variation : mapping
        Name and options of the augmentation of training images.
    n_runs : int
        Number of networks per setting.
    vit_steps, vit_warm_up_steps, vit_batch_size : int
        Number of steps of the transformer, number of steps of the warm-up of DeepGamblers, and
        batch size.
    vit_learning_rates : tuple of float
        Selected learning rates of the transformer in table 7 of the paper.
    vit_file_side : int
        Height and width of the image files for the transformer. The value 0 uses the side in
        `data`.
    """

    model: str
    dropout: float
    rewards: tuple[float, ...] = (2.2, 3.0, 6.0, 10.0)
    epochs: int
    batch_size: int = 128
    learning_rate: float
    weight_decay: float
    gambler_epochs: tuple[int, int]
    confidnet_epochs: tuple[int, int]
    data: Sizes = field(default_factory=Sizes)
    variation: Mapping[str, Any] = field(default_factory=dict)
    n_runs: int = 5
    vit_steps: int = 40_000
    vit_warm_up_steps: int = 20_000
    vit_batch_size: int = 128
    vit_learning_rates: tuple[float, ...]
    vit_file_side: int = 0


@dataclass(frozen=True)
class Protocol:
    """Settings of a published benchmark.

    Attributes
    ----------
    name : str
        Unique name of the protocol.
    title : str
        Title in tables.
    meaning : str
        Description in one sentence.
    source : str
        Papers and code that define the settings.
    tasks : mapping from str to TaskFacts
        Settings by task.
    vit_learning_rates : tuple of float
        Learning rates of the transformer to try for all tasks. If empty, the learning rates of each
        task are used.

    Examples
    --------
    >>> from abstain_bench.runs.specification import PROTOCOLS
    >>> config = PROTOCOLS["fd-shifts"].to_plain("cifar10")
    >>> config["arms"]["deep-gamblers"]["stages"], config["recipe"]["epochs"], config["samples"]
    ({'warm-up': 100}, 250, 50)
    """

    name: str
    title: str
    meaning: str
    source: str
    tasks: Mapping[str, TaskFacts]
    vit_learning_rates: tuple[float, ...] = ()

    def facts_for(self, task: str) -> TaskFacts:
        """Return the settings of a task, or raise an error if the protocol lacks the task."""
        if task not in self.tasks:
            names = ", ".join(self.tasks)
            raise InputError(f"the protocol {self.name!r} has no task {task!r}; it has {names}")
        return self.tasks[task]

    def to_plain(self, task: str, model: str = "") -> dict[str, Any]:
        """Return the configuration of a task as plain values."""
        facts = self.facts_for(task)
        if model == TRANSFORMER:
            n_runs = min(facts.n_runs, _MAX_VIT_RUNS)
            config = self._vit_config(facts)
        else:
            n_runs = facts.n_runs
            config = _convolutional_config(facts)
        return {"task": task, "seeds": n_runs, "samples": _N_DROPOUT_PASSES, **config}

    def _vit_config(self, facts: TaskFacts) -> dict[str, Any]:
        """Return the configuration fields for training the vision transformer."""
        rates = list(self.vit_learning_rates or facts.vit_learning_rates)
        grid = {"recipe": {"learning_rate": rates}}
        dropout = [0.0, _VIT_DROPOUT]
        has_default_side = facts.data.side == Sizes().side
        data = replace(
            facts.data,
            side=facts.vit_file_side or facts.data.side,
            # Images of new classes are read with the side of TinyImageNet images and resized once.
            new_side=_TINY_IMAGENET_SIDE if has_default_side else 0,
        )
        return {
            "model": TRANSFORMER,
            "side": _VIT_SIDE,
            "data": data.to_dict(),
            "variation": {},
            "recipe": {
                **_COMMON_RECIPE,
                "steps": facts.vit_steps,
                "warm_up_steps": _VIT_RATE_WARM_UP_STEPS,
                "batch_size": facts.vit_batch_size,
                "learning_rate": rates[0],
                "weight_decay": 0.0,
            },
            "arms": {
                "cross-entropy": {"dropout": dropout, "try": grid},
                "deep-gamblers": {
                    "dropout": dropout,
                    "try": {"reward": list(facts.rewards), **grid},
                    "stages": {"warm-up": facts.vit_warm_up_steps},
                },
            },
        }


_N_DROPOUT_PASSES: Final = 50
_VIT_DROPOUT: Final = 0.1
#: FD-Shifts trains more than five convolutional networks on Camelyon17, because their results vary,
#: but five transformers.
_MAX_VIT_RUNS: Final = 5
#: Number of initial steps in which the learning rate of the transformer increases.
_VIT_RATE_WARM_UP_STEPS: Final = 500
#: Height and width of the image files of TinyImageNet.
_TINY_IMAGENET_SIDE: Final = 64

#: Common fields of all recipes. Gradients are clipped, and the stages of ConfidNet have constant
#: learning rates.
_COMMON_RECIPE: Final = {
    "momentum": 0.9,
    "nesterov": False,
    "schedule": "cosine",
    "clip": 1.0,
    "stage_schedule": "constant",
}


def _convolutional_config(facts: TaskFacts) -> dict[str, Any]:
    """Return the configuration fields for training a convolutional network."""
    rates = [0.0, facts.dropout]
    n_warm_up_epochs, n_gambler_epochs = facts.gambler_epochs
    n_branch_epochs, n_fine_tune_epochs = facts.confidnet_epochs
    return {
        "model": facts.model,
        "data": facts.data.to_dict(),
        "variation": dict(facts.variation),
        "recipe": {
            **_COMMON_RECIPE,
            "epochs": facts.epochs,
            "batch_size": facts.batch_size,
            "learning_rate": facts.learning_rate,
            "weight_decay": facts.weight_decay,
        },
        "arms": {
            # ConfidNet starts from the classifier of this arm.
            "cross-entropy": {"dropout": rates},
            "confidnet": {
                "dropout": rates,
                "stages": {"confidence": n_branch_epochs, "fine-tune": n_fine_tune_epochs},
            },
            "devries": {"dropout": rates, "recipe": {"nesterov": True}},
            "deep-gamblers": {
                "dropout": rates,
                "try": {"reward": list(facts.rewards)},
                "stages": {"warm-up": n_warm_up_epochs},
                "recipe": {"epochs": n_gambler_epochs},
            },
        },
    }


def _read_tasks() -> dict[str, TaskFacts]:
    """Read the settings of each task from the packaged copy of the released settings."""
    text = (resources.files(__package__) / "fd_shifts.toml").read_text(encoding="utf-8")
    facts_by_task: dict[str, TaskFacts] = {}
    for task, table in tomllib.loads(text).items():
        settings: dict[str, Any] = {
            name: tuple(field) if isinstance(field, list) else field
            for name, field in table.items()
        }
        if "data" in settings:
            settings["data"] = Sizes(**settings["data"])
        base_task = settings.pop("based_on", None)
        if base_task is None:
            facts = TaskFacts(**settings)
        else:
            facts = replace(facts_by_task[base_task], **settings)
        facts_by_task[task] = facts
        if task in {"svhn", "iwildcam"}:
            # The five runs of FD-Shifts hold out different classes, so each run is a separate task.
            for i in range(1, 6):
                facts_by_task[f"{task}-open-{i}"] = replace(facts, n_runs=1)
    return facts_by_task


#: Settings of the released code.
_CODE: Final = _read_tasks()


def _as_printed(facts: TaskFacts) -> TaskFacts:
    """Replace settings for which the tables in the paper differ from the code."""
    if facts.model == "street-conv":
        return replace(facts, weight_decay=15e-4)
    if facts.model == "vgg13-fd-shifts":
        return replace(facts, gambler_epochs=(50, 250))
    return facts


def _with_tenth_of_corruptions(facts: TaskFacts) -> TaskFacts:
    """For tasks that use all corrupted images, select a tenth of them."""
    if facts.data.corrupted != "all":
        return facts
    return replace(facts, data=replace(facts.data, corrupted="tenth"))


#: All protocols by name.
PROTOCOLS: Catalogue[Protocol] = Catalogue("protocol")
_RELEASED: Final = Protocol(
    "fd-shifts",
    "FD-Shifts",
    "Data, networks, recipes and runs of the released code of FD-Shifts.",
    "Jaeger et al. 2023; code released with it, v0.1.0",
    _CODE,
)
_PRINTED: Final = Protocol(
    "fd-shifts-paper",
    "FD-Shifts, as printed",
    "FD-Shifts with the numbers of the paper where the code has others.",
    "Jaeger et al. 2023, tables 4 and 7, appendix E",
    {name: _as_printed(facts) for name, facts in _CODE.items()},
    # The paper trains one run with each of these learning rates and selects among them.
    (0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4),
)
_WITH_FEWER_IMAGES: Final = Protocol(
    "fd-shifts-2024",
    "FD-Shifts, as in the AUGRC paper",
    "FD-Shifts with a tenth of the corrupted images: 75,000.",
    "Traub et al. 2024, appendix A.2",
    {name: _with_tenth_of_corruptions(facts) for name, facts in _CODE.items()},
)
for _protocol in (_RELEASED, _PRINTED, _WITH_FEWER_IMAGES):
    PROTOCOLS.add(_protocol)
