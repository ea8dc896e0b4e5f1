"""`Recipe`: how long and how fast a model learns."""

import math
from dataclasses import asdict, dataclass, fields, replace
from typing import Annotated, Any, Final, Literal, get_args

from abstain._foundation.records import Fraction, NonNegative, Positive, between, check_unconverted
from abstain.errors import InputError

#: What the learning rate does over the steps.
Schedule = Literal["constant", "cosine", "step"]
SCHEDULES = get_args(Schedule)

#: Numbers of which precision a training computes in, as lightning-fabric names them: full, or
#: weights in float32 and the network in 16 bits.
Precision = Literal["32-true", "bf16-mixed", "16-mixed"]
PRECISIONS = get_args(Precision)

#: Of epochs, and of pictures in a step.
_Count = Annotated[int, between(1, 1_000_000)]
#: Of steps; 0 for none.
_Steps = Annotated[int, between(0, 1_000_000_000)]

#: Fields that recipes did not have at first: a job is known by them only where they say something.
_LATER: Final = ("steps", "warm_up_steps", "clip", "stage_schedule")


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
    steps : int
        Steps of the descent, where a recipe counts these: then as many epochs as they take, the
        last one cut short. 0 where `epochs` says how long.
    warm_up_steps : int
        Steps at the beginning in which the rate rises to `learning_rate`, in equal parts.
    clip : float
        The largest norm of all gradients of a step together, to which longer ones are scaled; 0
        for any.
    stage_schedule : {"same", "cosine", "step", "constant"}
        What the rate of a stage does that has a rate of its own, over that stage; "same" as
        `schedule`.

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
    >>> from abstain_bench.runs.recipe import Recipe
    >>> Recipe(epochs=10, schedule="cosine").rate(0.5)
    0.0025
    """

    epochs: _Count = 20
    learning_rate: Positive = 5e-3
    batch_size: _Count = 128
    momentum: Fraction = 0.9
    weight_decay: NonNegative = 5e-4
    nesterov: bool = False
    schedule: Schedule = "step"
    every: _Count = 30
    divide_by: Positive = 5.0
    steps: _Steps = 0
    warm_up_steps: _Steps = 0
    clip: NonNegative = 0.0
    stage_schedule: Literal["same", Schedule] = "same"

    def __post_init__(self) -> None:
        check_unconverted(self)
        if self.nesterov and self.momentum == 0:
            raise InputError("`nesterov` needs a `momentum` above 0; got 0")

    @property
    def length(self) -> int:
        """How long it is: in steps where it counts these, or else in epochs."""
        return self.steps or self.epochs

    def lasting(self, length: int) -> "Recipe":
        """Return it with another length, in what it counts."""
        return replace(self, steps=length) if self.steps else replace(self, epochs=length)

    def counted(self, pictures: int) -> "Recipe":
        """Return it with the epochs that its steps take on so many pictures."""
        if not self.steps:
            return self
        return replace(self, epochs=math.ceil(self.steps / self.batches(pictures)))

    def batches(self, pictures: int) -> int:
        """Return the steps of an epoch of so many pictures."""
        return math.ceil(pictures / self.batch_size)

    def said(self) -> dict[str, Any]:
        """Return its fields as plain values, for jobs and manifests.

        Those that recipes did not have at first are left out at their defaults, so that what was
        trained before is known by the same values.
        """
        plain = {field.name: field.default for field in fields(self) if field.name in _LATER}
        return {
            name: value
            for name, value in asdict(self).items()
            if name not in plain or value != plain[name]
        }

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
