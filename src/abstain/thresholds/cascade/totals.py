"""Losses, reviews and runs of all choices of thresholds, by cumulative sums.

The thresholds of a stage divide its confidences into cells. The samples of each combination of
cells are summed once. The result of a choice of thresholds is the sum over a block of cells, and
cumulative sums along the axes give all blocks. The cost is therefore one pass over the samples and
one over the choices, not their product.
"""

from dataclasses import dataclass

import numpy as np

from abstain.thresholds.cascade.data import CascadeData
from abstain.thresholds.cascade.plan import CascadePlan
from abstain.thresholds.cascade.stage import CascadeStage
from abstain.typing import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class ChoiceTotals:
    """Sums over n samples for each choice, flat; the choices of the last stage vary fastest."""

    n: int
    #: Loss of the answering stages or the person.
    loss: FloatArray
    #: Number of samples that the person reviews.
    reviews: FloatArray
    #: Number of samples on which each stage is run.
    runs: tuple[FloatArray, ...]
    #: Whether there are no reviews by construction, because some stage answers all.
    no_reviews: BoolArray

    def cost(self, stages: tuple[CascadeStage, ...], plan: CascadePlan) -> FloatArray:
        """Return the mean cost of a sample."""
        spent = plan.person_cost * self.reviews + plan.error_cost * self.loss
        for stage, runs in zip(stages, self.runs, strict=True):
            spent = spent + stage.cost * runs
        out: FloatArray = spent / self.n
        return out

    def select(self, choices: IntArray) -> "ChoiceTotals":
        """Return the sums of some choices."""
        runs = tuple(x[choices] for x in self.runs)
        return ChoiceTotals(
            self.n, self.loss[choices], self.reviews[choices], runs, self.no_reviews[choices]
        )

    def add(self, other: "ChoiceTotals") -> "ChoiceTotals":
        """Return the sums over the samples of both."""
        runs = tuple(a + b for a, b in zip(self.runs, other.runs, strict=True))
        return ChoiceTotals(
            self.n + other.n,
            self.loss + other.loss,
            self.reviews + other.reviews,
            runs,
            self.no_reviews,
        )


def threshold_codes(data: CascadeData, grids: tuple[FloatArray, ...]) -> tuple[IntArray, ...]:
    """Return the number of thresholds that each confidence reaches, shape (n,) for each stage."""
    return tuple(
        np.searchsorted(grid, x.astype(np.float64), side="right")
        for x, grid in zip(data.confidences, grids, strict=True)
    )


def compute_totals(
    data: CascadeData, codes: tuple[IntArray, ...], grids: tuple[FloatArray, ...]
) -> ChoiceTotals:
    """Sum over the samples for every choice.

    Choice a of a stage answers the samples with a code of at least a: all for a = 0, and none if a
    is above the number of thresholds.
    """
    sizes = tuple(grid.size + 1 for grid in grids)
    shape = tuple(size + 1 for size in sizes)
    ones = np.ones(data.n)
    loss: FloatArray = np.zeros(shape)
    runs: list[FloatArray] = []
    for s in range(len(grids)):
        # The samples that reach a stage depend only on the choices of earlier stages.
        stage_codes, stage_sizes = codes[: s + 1], sizes[: s + 1]
        losses_of_cells = _sum_cells(stage_codes, stage_sizes, data.required_losses[s])
        loss_of_answers = _sum_answered(_sum_not_answered(losses_of_cells, s), s)
        loss += _add_axes(loss_of_answers, len(shape))
        counts_of_cells = _sum_cells(stage_codes, stage_sizes, ones)
        n_reaching = _sum_not_answered(counts_of_cells, s).sum(axis=-1, keepdims=True)
        is_run = np.ones(shape[s])
        is_run[-1] = 0.0
        n_runs = _add_axes(n_reaching * is_run, len(shape))
        runs.append(np.broadcast_to(n_runs, shape).ravel())
    n_stages = len(shape)
    reviews = _sum_not_answered(_sum_cells(codes, sizes, ones), n_stages)
    loss += _sum_not_answered(_sum_cells(codes, sizes, data.required_losses[-1]), n_stages)
    never = np.zeros(shape, np.bool_)
    for axis in range(n_stages):
        never[(slice(None),) * axis + (0,)] = True
    return ChoiceTotals(data.n, loss.ravel(), reviews.ravel(), tuple(runs), never.ravel())


def _sum_cells(
    codes: tuple[IntArray, ...], sizes: tuple[int, ...], weight: FloatArray
) -> FloatArray:
    """Sum the weights of the samples of each combination of codes."""
    flat = np.ravel_multi_index(codes, sizes)
    sums = np.bincount(flat, weights=weight, minlength=int(np.prod(sizes)))
    return np.asarray(sums.reshape(sizes), dtype=np.float64)


def _sum_not_answered(cells: FloatArray, axes: int) -> FloatArray:
    """Sum the cells below each choice along the first axes: the samples that the stages reject."""
    for axis in range(axes):
        through = np.cumsum(cells, axis=axis)
        none = np.zeros_like(np.take(through, [0], axis=axis))
        cells = np.concatenate([none, through], axis=axis)
    return cells


def _sum_answered(cells: FloatArray, axis: int) -> FloatArray:
    """Sum the cells from each choice on along an axis: the samples that the stage answers."""
    below = np.cumsum(cells, axis=axis)
    none = np.zeros_like(np.take(below, [0], axis=axis))
    above = np.take(below, [-1], axis=axis) - np.concatenate([none, below], axis=axis)
    # Sums of graded losses may be slightly negative because of rounding.
    return np.asarray(np.maximum(above, 0.0))


def _add_axes(x: FloatArray, axes: int) -> FloatArray:
    """Append axes for the later stages."""
    return x.reshape(x.shape + (1,) * (axes - x.ndim))
