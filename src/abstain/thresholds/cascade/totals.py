"""Losses, reviews and runs of all choices of thresholds at once, by cumulative sums.

The thresholds of a stage cut its confidences into cells. The samples of each combination of cells
are counted once; what a choice of thresholds does is then a sum over a block of cells, and all
blocks come from cumulative sums along the axes. So the cost is one pass over the samples and one
over the choices, and not their product.
"""

from dataclasses import dataclass

import numpy as np

from abstain.thresholds.cascade.data import CascadeData
from abstain.thresholds.cascade.plan import CascadePlan
from abstain.thresholds.cascade.stage import CascadeStage
from abstain.typing import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class ChoiceTotals:
    """Sums over n samples for each choice, flat, the last stage's choices fastest."""

    n: int
    #: Of the losses of whoever answers.
    loss: FloatArray
    #: How many samples go to the person.
    reviews: FloatArray
    #: On how many samples each stage is run.
    runs: tuple[FloatArray, ...]
    #: Whether nothing can go to the person: some stage answers all.
    no_reviews: BoolArray

    def cost(self, stages: tuple[CascadeStage, ...], plan: CascadePlan) -> FloatArray:
        """Return the mean cost of a sample."""
        spent = plan.person_cost * self.reviews + plan.error_cost * self.loss
        for stage, runs in zip(stages, self.runs, strict=True):
            spent = spent + stage.cost * runs
        out: FloatArray = spent / self.n
        return out

    def select(self, choices: IntArray) -> "ChoiceTotals":
        """Return those of some choices."""
        runs = tuple(x[choices] for x in self.runs)
        return ChoiceTotals(
            self.n, self.loss[choices], self.reviews[choices], runs, self.no_reviews[choices]
        )

    def add(self, other: "ChoiceTotals") -> "ChoiceTotals":
        """Return those of the samples of both."""
        runs = tuple(a + b for a, b in zip(self.runs, other.runs, strict=True))
        return ChoiceTotals(
            self.n + other.n,
            self.loss + other.loss,
            self.reviews + other.reviews,
            runs,
            self.no_reviews,
        )


def threshold_codes(data: CascadeData, grids: tuple[FloatArray, ...]) -> tuple[IntArray, ...]:
    """Return how many thresholds of each stage its confidences reach, shape (n,) each."""
    return tuple(
        np.searchsorted(grid, x.astype(np.float64), side="right")
        for x, grid in zip(data.confidences, grids, strict=True)
    )


def compute_totals(
    data: CascadeData, codes: tuple[IntArray, ...], grids: tuple[FloatArray, ...]
) -> ChoiceTotals:
    """Sum over the samples for every choice.

    The choice a of a stage answers the samples with a code of at least a: 0 all, and one more than
    there are thresholds none.
    """
    sizes = tuple(grid.size + 1 for grid in grids)
    shape = tuple(size + 1 for size in sizes)
    one = np.ones(data.n)
    loss: FloatArray = np.zeros(shape)
    runs: list[FloatArray] = []
    for s in range(len(grids)):
        # What reaches a stage depends on the choices before it alone.
        seen, cells = codes[: s + 1], sizes[: s + 1]
        wrong = _passed(_cells(seen, cells, data.required_losses[s]), s)
        loss += _wide(_answered(wrong, s), len(shape))
        count = _passed(_cells(seen, cells, one), s).sum(axis=-1, keepdims=True)
        run = np.ones(shape[s])
        run[-1] = 0.0
        runs.append(np.broadcast_to(_wide(count * run, len(shape)), shape).ravel())
    everyone = len(shape)
    reviews = _passed(_cells(codes, sizes, one), everyone)
    loss += _passed(_cells(codes, sizes, data.required_losses[-1]), everyone)
    never = np.zeros(shape, np.bool_)
    for axis in range(everyone):
        never[(slice(None),) * axis + (0,)] = True
    return ChoiceTotals(data.n, loss.ravel(), reviews.ravel(), tuple(runs), never.ravel())


def _cells(codes: tuple[IntArray, ...], sizes: tuple[int, ...], weight: FloatArray) -> FloatArray:
    """Sum over the samples of each combination of codes."""
    flat = np.ravel_multi_index(codes, sizes)
    sums = np.bincount(flat, weights=weight, minlength=int(np.prod(sizes)))
    return np.asarray(sums.reshape(sizes), dtype=np.float64)


def _passed(cells: FloatArray, axes: int) -> FloatArray:
    """Sum the cells below each choice along the first axes: what those stages do not answer."""
    for axis in range(axes):
        through = np.cumsum(cells, axis=axis)
        none = np.zeros_like(np.take(through, [0], axis=axis))
        cells = np.concatenate([none, through], axis=axis)
    return cells


def _answered(cells: FloatArray, axis: int) -> FloatArray:
    """Sum the cells from each choice on along an axis: what that stage answers."""
    below = np.cumsum(cells, axis=axis)
    none = np.zeros_like(np.take(below, [0], axis=axis))
    above = np.take(below, [-1], axis=axis) - np.concatenate([none, below], axis=axis)
    # Sums of graded losses may miss 0 by their rounding.
    return np.asarray(np.maximum(above, 0.0))


def _wide(x: FloatArray, axes: int) -> FloatArray:
    """Add the axes of the later stages, on which nothing here depends."""
    return x.reshape(x.shape + (1,) * (axes - x.ndim))
