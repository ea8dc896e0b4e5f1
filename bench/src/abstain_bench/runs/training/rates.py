"""`LearningRates`: the learning rate of each step of a training."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from abstain.training import Phase
from abstain_bench.runs.recipe import Recipe


@dataclass(frozen=True)
class LearningRates:
    """Learning rate of each step.

    The phases without a learning rate of their own share the schedule of the recipe. Consecutive
    phases with the same learning rate of their own have the schedule `Recipe.stage_schedule`.

    Attributes
    ----------
    plan : sequence of Phase
        Phase of each epoch.
    recipe : Recipe
        Recipe of the training.
    steps_per_epoch : int
        Number of steps per epoch.

    Examples
    --------
    >>> from abstain_bench.runs.recipe import Recipe
    >>> from abstain_bench.runs.training.rates import LearningRates
    >>> from abstain.training import Phase
    >>> recipe = Recipe(epochs=2, learning_rate=0.1, schedule="constant", warm_up_steps=4)
    >>> rates = LearningRates([Phase("train", ("backbone",))] * 2, recipe, steps_per_epoch=3)
    >>> [round(rates.rate_at(0, step), 3) for step in range(3)]
    [0.025, 0.05, 0.075]
    """

    plan: Sequence[Phase]
    recipe: Recipe
    steps_per_epoch: int

    def rate_at(self, epoch: int, step: int) -> float:
        """Return the learning rate of a step of an epoch, both counted from 0."""
        phase_rate = self.plan[epoch].learning_rate
        first_epoch, end_epoch = epoch, epoch + 1
        while first_epoch > 0 and self.plan[first_epoch - 1].learning_rate == phase_rate:
            first_epoch -= 1
        while end_epoch < len(self.plan) and self.plan[end_epoch].learning_rate == phase_rate:
            end_epoch += 1
        first_step = first_epoch * self.steps_per_epoch
        end_step = end_epoch * self.steps_per_epoch
        if self.recipe.steps:
            end_step = min(end_step, self.recipe.steps)
        n_steps = end_step - first_step
        n_done = epoch * self.steps_per_epoch + step - first_step
        # Phases with their own learning rate have no warm-up.
        n_warm_up = min(self.recipe.warm_up_steps, n_steps) if phase_rate is None else 0
        if n_done < n_warm_up:
            return self.recipe.learning_rate * (n_done + 1) / n_warm_up
        progress = (n_done - n_warm_up) / max(n_steps - n_warm_up, 1)
        n_epochs = end_epoch - first_epoch
        if phase_rate is None:
            return self.recipe.learning_rate_at(progress, n_epochs)
        schedule = self.recipe.stage_schedule
        recipe = self.recipe if schedule == "same" else replace(self.recipe, schedule=schedule)
        return phase_rate * recipe.learning_rate_at(progress, n_epochs) / self.recipe.learning_rate
