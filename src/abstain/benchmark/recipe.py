"""`Recipe`: how long and how fast a model learns."""

import math
from dataclasses import dataclass
from typing import Any

from abstain._foundation import checks
from abstain.errors import InputError

#: What the learning rate does over the steps.
SCHEDULES = ("constant", "cosine", "step")

#: Numbers of which precision a training computes in, as lightning-fabric names them: full, or
#: weights in float32 and the network in 16 bits.
PRECISIONS = ("32-true", "bf16-mixed", "16-mixed")

#: The largest number of epochs, and of pictures in a step.
_MOST = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Stochastic gradient descent with momentum, as the literature trains on small pictures.

    Attributes
    ----------
    epochs : int
        Passes over the training pictures.
    learning_rate : float
        At the start.
    batch_size : int
        Pictures of a step; the last batch of an epoch may be shorter.
    momentum, weight_decay : float
        Of the descent.
    nesterov : bool
        Whether the momentum looks ahead.
    schedule : {"cosine", "step", "constant"}
        "cosine" falls to zero over all steps; "step" divides by `divide_by` every `every` epochs.
    every : int
        Epochs of a step of the schedule "step".
    divide_by : float
        What that step divides the learning rate by.

    Raises
    ------
    InputError
        A number is out of its range, or the schedule has no such name.

    Notes
    -----
    The defaults are ours: short, at a low rate. Recipes of papers stand in what ships with the
    tasks and studies.

    Examples
    --------
    >>> from abstain.benchmark.recipe import Recipe
    >>> Recipe(epochs=10, schedule="cosine").rate(0.5)
    0.0025
    """

    epochs: int = 20
    learning_rate: float = 5e-3
    batch_size: int = 128
    momentum: float = 0.9
    weight_decay: float = 5e-4
    nesterov: bool = False
    schedule: str = "step"
    every: int = 30
    divide_by: float = 5.0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "every"):
            if checks.positive_int(getattr(self, name), name) > _MOST:
                msg = f"`{name}` must be at most {_MOST:,}; got {getattr(self, name):,}"
                raise InputError(msg)
        for name in ("learning_rate", "divide_by", "momentum", "weight_decay"):
            # What reads as a number, such as "0.1", would fail where it is used.
            if isinstance(getattr(self, name), bool | str):
                msg = f"`{name}` must be a number; got {getattr(self, name)!r}"
                raise InputError(msg)
        flag(self.nesterov, "nesterov")
        for name in ("learning_rate", "divide_by"):
            checks.positive(getattr(self, name), name)
        momentum = checks.fraction(self.momentum, "momentum")
        checks.fraction(self.weight_decay, "weight_decay", high=math.inf)
        checks.one_of(self.schedule, "schedule", SCHEDULES)
        if self.nesterov and momentum == 0:
            msg = "`nesterov` needs a `momentum` above 0; got 0"
            raise InputError(msg)

    def rate(self, done: float, epochs: int | None = None) -> float:
        """Return the learning rate after this share, in [0, 1), of the steps of some epochs.

        Of all epochs, unless it is said how many there are.
        """
        if self.schedule == "cosine":
            return self.learning_rate * 0.5 * (1 + math.cos(math.pi * done))
        if self.schedule == "step":
            # A rounding below a whole epoch must not delay the step.
            falls = math.floor(done * (epochs or self.epochs) / self.every + 1e-9)
            return float(self.learning_rate / self.divide_by**falls)
        return self.learning_rate


def flag(given: Any, name: str) -> None:
    """Refuse what is neither true nor false; a text such as "no" would count as true."""
    if not isinstance(given, bool):
        msg = f"`{name}` must be true or false; got {given!r}"
        raise InputError(msg)
