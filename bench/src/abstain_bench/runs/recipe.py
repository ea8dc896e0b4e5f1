"""`Recipe` contains the length, the learning rate and other parameters of a training."""

import math
from dataclasses import asdict, dataclass, fields, replace
from typing import Annotated, Any, Final, Literal, get_args

from abstain._foundation.records import Fraction, NonNegative, Positive, between, check_unconverted
from abstain.errors import InputError

#: Schedule of the learning rate over the steps of a training.
Schedule = Literal["constant", "cosine", "step"]

#: Floating-point precision of training, with the names of lightning-fabric. "32-true" uses float32
#: for all values. The other two store weights in float32 and run the network in 16 bits.
Precision = Literal["32-true", "bf16-mixed", "16-mixed"]
PRECISIONS = get_args(Precision)

#: Number of epochs, or of images in a batch.
_PositiveCount = Annotated[int, between(1, 1_000_000)]
#: Number of steps, which may be 0.
_StepCount = Annotated[int, between(0, 1_000_000_000)]

#: Fields that the first version of `Recipe` did not have. A job key contains such a field only if
#: its value differs from the default. The keys of earlier jobs therefore stay valid.
_FIELDS_ADDED_LATER: Final = ("steps", "warm_up_steps", "clip", "stage_schedule")


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Parameters of stochastic gradient descent with momentum.

    Attributes
    ----------
    epochs : int
        Number of passes over the training images.
    learning_rate : float
        Initial learning rate.
    batch_size : int
        Images per step; the last batch of an epoch may be smaller.
    momentum, weight_decay : float
        Momentum and weight decay of the optimizer.
    nesterov : bool
        Whether to use Nesterov momentum.
    schedule : {"cosine", "step", "constant"}
        Learning rate schedule. "cosine" decays the learning rate to zero over all steps. "step"
        divides the learning rate by `divide_by` after every `every` epochs. "constant" does not
        change the learning rate.
    every : int
        Number of epochs between two reductions of the learning rate in the schedule "step".
    divide_by : float
        Divisor of the learning rate for the schedule "step".
    steps : int
        Number of optimizer steps, or 0 if `epochs` defines the length. If positive, the number of
        epochs is derived from the number of steps, and the last epoch may be incomplete.
    warm_up_steps : int
        Number of initial steps in which the learning rate increases linearly to `learning_rate`.
    clip : float
        Maximum norm of the gradients of one step. The value 0 disables clipping.
    stage_schedule : {"same", "cosine", "step", "constant"}
        Schedule of the training stages that have a separate learning rate. "same" uses `schedule`.

    Raises
    ------
    InputError
        If a number is out of range or if the schedule does not exist.

    Notes
    -----
    The default is a short training with a low learning rate. The training parameters of published
    papers are defined by the tasks and protocols.

    Examples
    --------
    >>> from abstain_bench.runs.recipe import Recipe
    >>> Recipe(epochs=10, schedule="cosine").learning_rate_at(0.5)
    0.0025
    """

    epochs: _PositiveCount = 20
    learning_rate: Positive = 5e-3
    batch_size: _PositiveCount = 128
    momentum: Fraction = 0.9
    weight_decay: NonNegative = 5e-4
    nesterov: bool = False
    schedule: Schedule = "step"
    every: _PositiveCount = 30
    divide_by: Positive = 5.0
    steps: _StepCount = 0
    warm_up_steps: _StepCount = 0
    clip: NonNegative = 0.0
    stage_schedule: Literal["same", Schedule] = "same"

    def __post_init__(self) -> None:
        check_unconverted(self)
        if self.nesterov and self.momentum == 0:
            raise InputError("`nesterov` needs a `momentum` above 0; got 0")

    @property
    def length(self) -> int:
        """Length of the training in steps, or in epochs if the number of steps is not set."""
        return self.steps or self.epochs

    def with_length(self, length: int) -> "Recipe":
        """Return the recipe with another length, in the unit of `self.length`."""
        return replace(self, steps=length) if self.steps else replace(self, epochs=length)

    def with_epochs_for(self, n_images: int) -> "Recipe":
        """Return the recipe with the number of epochs for `steps` steps on `n_images` images."""
        if not self.steps:
            return self
        return replace(self, epochs=math.ceil(self.steps / self.steps_per_epoch(n_images)))

    def steps_per_epoch(self, n_images: int) -> int:
        """Return the number of optimizer steps per epoch for `n_images` images."""
        return math.ceil(n_images / self.batch_size)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary of plain values.

        Fields that were added to `Recipe` later are omitted if they have their default values, so
        that the keys of earlier jobs remain valid.
        """
        defaults = {f.name: f.default for f in fields(self) if f.name in _FIELDS_ADDED_LATER}
        return {
            name: value
            for name, value in asdict(self).items()
            if name not in defaults or value != defaults[name]
        }

    def learning_rate_at(self, progress: float, epochs: int | None = None) -> float:
        """Return the learning rate after the fraction `progress` of the steps.

        `progress` is in [0, 1). `epochs` replaces the number of epochs of the recipe.
        """
        if self.schedule == "cosine":
            return self.learning_rate * 0.5 * (1 + math.cos(math.pi * progress))
        if self.schedule == "step":
            # Without the tolerance, rounding to slightly less than a whole epoch would delay the
            # reduction.
            n_reductions = math.floor(progress * (epochs or self.epochs) / self.every + 1e-9)
            return float(self.learning_rate / self.divide_by**n_reductions)
        return self.learning_rate
