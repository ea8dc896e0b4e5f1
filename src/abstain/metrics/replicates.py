"""How a metric of every resample is computed: from a few areas, or one resample at a time.

A resample gives every sample a count. The metrics of the catalogue know integer weights as
repetitions, so each of them can be computed from the counts; the common ones follow from a few
areas of all scores at once, thousands of times faster.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from abstain._foundation.ranks import TieGroups
from abstain._foundation.scored import ClassView, Scored
from abstain.errors import ShapeError
from abstain.inference.draws import Draws, bootstrap
from abstain.inference.replicates import Ordered, ordered, over, resampled_areas
from abstain.metrics.entry import Metric
from abstain.typing import Array, FloatArray, IntArray


def replicates(
    scored_sets: Sequence[Scored],
    metrics: Sequence[Metric],
    draws: Draws,
    *,
    threads: int | None = None,
) -> FloatArray:
    """Compute metrics of every resample of scores of the same samples, which meet their needs.

    Shape (metrics, sets, resamples); NaN where a resample leaves a metric undefined. As many
    `threads` work at a time; the processors available, at most two, by default.
    """
    for s in scored_sets:
        if s.n != draws.n:
            raise ShapeError(
                f"every score needs the {draws.n} samples that are drawn from; got {s.n}"
            )
    presorted = over(lambda s: ordered(s.confidence, s.loss, s.weight), scored_sets, threads)
    formulas = [metric.measurement.resampled for metric in metrics]
    quick = np.array([[f is not None and f.holds(s) for s in scored_sets] for f in formulas])
    out = np.full((len(metrics), len(scored_sets), draws.resamples), np.nan)
    wanted = frozenset[str]().union(
        *(f.areas for m, f in enumerate(formulas) if f is not None and quick[m].any())
    )
    some = [int(i) for i in np.flatnonzero(quick.any(axis=0))]
    if some:
        areas = resampled_areas([presorted[i] for i in some], draws, wanted, threads=threads)
        for m, formula in enumerate(formulas):
            if formula is not None and quick[m].any():
                out[m, quick[m]] = formula.value(areas)[quick[m, some]]
    for i, s in enumerate(scored_sets):
        rest = [m for m in range(len(metrics)) if not quick[m, i]]
        if rest:
            out[rest, i] = _computed(s, presorted[i], [metrics[m] for m in rest], draws)
    return out


def _computed(s: Scored, presorted: Ordered, metrics: Sequence[Metric], draws: Draws) -> FloatArray:
    """Compute metrics from the counts, one resample at a time, shape (metrics, resamples)."""
    whole = s.weight is None or not np.any(s.weight % 1)

    def of_block(counts: Array) -> FloatArray:
        values = np.full((len(metrics), counts.shape[1]), np.nan)
        for j, count in enumerate(counts.T):
            again = weighted(s, presorted, count) if whole else _repeated(s, count)
            if again is not None:
                values[:, j] = [metric.compute(again).value for metric in metrics]
        return values

    return bootstrap(of_block, draws)


def weighted(s: Scored, presorted: Ordered, count: Array) -> Scored | None:
    """Return the resample as frequency weights; None if nothing of it has a weight."""
    weight = count.astype(np.float64)
    if s.weight is not None:
        weight *= s.weight
    if not weight.any():
        return None
    return replace(s, weight=weight, precomputed_groups=_groups(s, presorted, weight, count))


def _groups(s: Scored, presorted: Ordered, weight: FloatArray, count: Array) -> TieGroups:
    """Group the drawn samples without sorting them again."""
    starts, order = presorted.starts, presorted.order
    ranked = weight[order]
    mass = np.add.reduceat(ranked, starts)
    held = mass > 0
    # A group that was not drawn has no threshold.
    return TieGroups(
        s.confidence[order[starts]][held],
        mass[held],
        np.add.reduceat(ranked * presorted.loss, starts)[held],
        np.add.reduceat(count[order], starts, dtype=np.int64)[held],
    )


def _repeated(s: Scored, count: Array) -> Scored | None:
    """Return the resample as rows: weights that are no integers are no repetitions."""
    index = np.repeat(np.arange(s.n), count)
    if s.weight is not None and not s.weight[index].any():
        return None
    same = s.probability is s.confidence
    confidence = s.confidence[index]
    return Scored(
        confidence,
        s.loss[index],
        None if s.weight is None else s.weight[index],
        probability=confidence if same or s.probability is None else s.probability[index],
        view=None if s.view is None else _taken(s.view, index),
    )


def _taken(view: ClassView, index: IntArray) -> ClassView:
    # A view may compute its probabilities when asked; rows of it are plain arrays.
    p, log_p = view.probabilities, view.log_probabilities
    return ClassView(
        view.labels[index],
        view.prediction[index],
        view.classes,
        None if p is None else p[index],
        None if log_p is None else log_p[index],
    )
