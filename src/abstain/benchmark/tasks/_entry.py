"""`Task` and `Parts`: what an entry of the catalogue of tasks consists of."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from abstain._foundation.catalogue import Catalogue
from abstain.benchmark.data import Exposure, Images
from abstain.benchmark.data.corruptions import CORRUPTIONS, SEVERITIES
from abstain.benchmark.recipe import Recipe

#: Returns pictures, and reads them only then.
Load = Callable[[], Images]


@dataclass(frozen=True, eq=False)
class Parts:
    """The pictures of a task, each part read when it is first asked for.

    Attributes
    ----------
    learned : callable
        Returns the pictures to learn from, once: `train` keeps them.
    chosen : callable
        Returns the pictures to choose on, as `validation` does.
    exposures : tuple of Exposure
        What is tested, i.i.d. first; nothing is ever chosen on it.
    notes : tuple of str
        What people must know: exposures that are left out since their files are not there, and
        what stands in for them.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.benchmark.data import Images
    >>> from abstain.benchmark.tasks import Parts
    >>> some = Images(np.zeros((3, 1, 8, 8), np.uint8), np.array([0, 1, 1]), ("no", "yes"))
    >>> Parts(lambda: some, lambda: some.subset([0]), ()).validation.n
    1
    """

    learned: Load
    chosen: Load
    exposures: tuple[Exposure, ...]
    notes: tuple[str, ...] = ()

    @cached_property
    def train(self) -> Images:
        """What is learned from."""
        return self.learned()

    @cached_property
    def validation(self) -> Images:
        """What choices are made on, and fitted scores fitted: i.i.d."""
        return self.chosen()


@dataclass(frozen=True)
class Task:
    """What the catalogue knows of a task.

    Attributes
    ----------
    name : str
        The name scripts use.
    title : str
        The name people read.
    meaning : str
        One plain sentence.
    source : str
        Where the pictures come from.
    load : callable
        From the folder of the files (None where none is needed) to the parts.
    model : str
        In `abstain.benchmark.models.MODELS`.
    recipe : Recipe
        How every method is trained.
    variation : mapping
        Options of the variation of `abstain.benchmark.training`, with its name; empty for none.
    needs_folder : bool
        Whether the user must have the files.
    dropout : float
        The rate to try beside none.
    rewards : tuple of float
        Those of DeepGamblers to try.
    branch : tuple of int
        Epochs of ConfidNet's branch on the trained classifier, and of its fine-tuning; 0 for none.
    """

    name: str
    title: str
    meaning: str
    source: str
    load: Callable[[Path | None], Parts]
    model: str
    recipe: Recipe
    variation: Mapping[str, Any] = field(default_factory=dict)
    needs_folder: bool = False
    dropout: float = 0.3
    rewards: tuple[float, ...] = (2.2, 3.0, 6.0, 10.0)
    branch: tuple[int, int] = (200, 20)


#: Every task by name.
TASKS: Catalogue[Task] = Catalogue("task")


def corrupted(load: Load) -> Iterator[Exposure]:
    """Return the exposures of our own corruption shift on i.i.d. pictures."""
    for name in CORRUPTIONS:
        for severity in range(1, SEVERITIES + 1):
            yield Exposure(f"corruption-{name}", "corruption", load, name, severity)


def given(images: Images) -> Load:
    """Return what returns these pictures."""
    return lambda: images
