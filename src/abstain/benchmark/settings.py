"""`Setting`: one of the ways that networks of an arm are trained. Needs no torch."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Final

from abstain.benchmark.methods import Method

__all__ = [
    "BEGINS_WITH",
    "SCORED",
    "TRAINED",
    "Setting",
    "classifier_name",
    "passes_of",
    "scaled",
    "settings_of",
]

#: Raised where the outcome of training, or of scoring, changes for the same specification.
TRAINED: Final = 1
SCORED: Final = 3

#: Objectives whose first phase is the whole training of another one, which is done once for both.
BEGINS_WITH: Final[Mapping[str, str]] = {"confidnet": "cross-entropy"}


@dataclass(frozen=True)
class Setting:
    """One way to train the networks of an arm; validation data choose among them.

    Attributes
    ----------
    dropout : float
        The chance that a unit is left out; 0 for no dropout.
    options : mapping
        Of the objective, all of them that are not its defaults.
    tried : mapping
        What distinguishes it from the other settings of its arm.
    """

    dropout: float
    options: Mapping[str, Any] = field(default_factory=dict)
    tried: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """What distinguishes it, for files and people: "dropout0.3-reward2.2"."""
        return "-".join(f"{name}{_short(value)}" for name, value in self.tried.items())


def settings_of(
    dropout: Sequence[float], options: Mapping[str, Any], grid: Mapping[str, Sequence[Any]]
) -> tuple[Setting, ...]:
    """Return all combinations of dropout rates and options to try.

    Parameters
    ----------
    dropout : sequence of float
        The rates to try.
    options : mapping
        Of the objective, the same in all settings.
    grid : mapping from str to sequence
        Options of the objective, with the values to try.

    Returns
    -------
    tuple of Setting
        The last of the grid changes first.

    Examples
    --------
    >>> from abstain.benchmark.settings import settings_of
    >>> [setting.label for setting in settings_of([0.0, 0.3], {}, {"reward": [2.2]})]
    ['dropout0-reward2.2', 'dropout0.3-reward2.2']
    """
    found = []
    for rate, *values in product(dropout, *grid.values()):
        tried = dict(zip(grid, values, strict=True))
        found.append(Setting(float(rate), {**options, **tried}, {"dropout": rate} | tried))
    return tuple(found)


def classifier_name(kind: str, dropout: float, seed: int) -> str:
    """Return what the training of a classifier is called, whichever arms use it."""
    return f"{kind}-dropout{_short(dropout)}-seed{seed}"


def scaled(stages: Mapping[str, int], factor: float) -> dict[str, int]:
    """Return stages so many times as long, one epoch each at least."""
    return {name: max(1, round(own * factor)) for name, own in stages.items()}


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def passes_of(samples: int, setting: Setting, methods: Iterable[Method]) -> int:
    """Return how many passes with dropout are made of the samples asked for.

    Without dropout all would be alike, and many methods look at none.
    """
    looked_at = any("samples" in method.needs for method in methods)
    return samples if setting.dropout and looked_at else 0
