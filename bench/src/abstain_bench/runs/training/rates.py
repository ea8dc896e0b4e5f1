"""`Rates`: the learning rate of each step of a training."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from abstain.training import Phase
from abstain_bench.runs.recipe import Recipe


@dataclass(frozen=True)
class Rates:
    """What the learning rate is at each step.

    The phases that go on with the recipe share one schedule. A phase with a rate of its own, or
    several with the same, has that of `Recipe.stage_schedule`, which begins anew with it.

    Attributes
    ----------
    plan : sequence of Phase
        The phase of each epoch.
    recipe : Recipe
        How long and how fast.
    batches : int
        Steps of an epoch.

    Examples
    --------
    >>> from abstain_bench.runs.recipe import Recipe
    >>> from abstain_bench.runs.training.rates import Rates
    >>> from abstain.training import Phase
    >>> recipe = Recipe(epochs=2, learning_rate=0.1, schedule="constant", warm_up_steps=4)
    >>> rates = Rates([Phase("train", ("backbone",))] * 2, recipe, batches=3)
    >>> [round(rates.at(0, step), 3) for step in range(3)]
    [0.025, 0.05, 0.075]
    """

    plan: Sequence[Phase]
    recipe: Recipe
    batches: int

    def at(self, epoch: int, batch: int) -> float:
        """Return the rate of a step, by its epoch and its place in it, both from 0."""
        own = self.plan[epoch].learning_rate
        first, last = epoch, epoch + 1
        while first > 0 and self.plan[first - 1].learning_rate == own:
            first -= 1
        while last < len(self.plan) and self.plan[last].learning_rate == own:
            last += 1
        start = first * self.batches
        end = min(last * self.batches, self.recipe.steps or last * self.batches)
        # Of the recipe alone: a stage with a rate of its own begins with that.
        rising = min(self.recipe.warm_up_steps, end - start) if own is None else 0
        done = epoch * self.batches + batch - start
        if done < rising:
            return self.recipe.learning_rate * (done + 1) / rising
        share = (done - rising) / max(end - start - rising, 1)
        if own is None:
            return self.recipe.learning_rate_at(share, last - first)
        schedule = self.recipe.stage_schedule
        staged = self.recipe if schedule == "same" else replace(self.recipe, schedule=schedule)
        return own * staged.learning_rate_at(share, last - first) / self.recipe.learning_rate
