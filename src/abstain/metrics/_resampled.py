"""Which metric comes out of which resampled area, and how all others are resampled.

A resample gives every sample a count. The metrics of the catalogue know integer weights as
repetitions, so each of them can be computed from the counts; the common ones follow from a few
areas of all scores at once, thousands of times faster.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from abstain._foundation.ranks import TieGroups
from abstain._foundation.scored import ClassView, Scored
from abstain.errors import ShapeError
from abstain.inference.bootstrap import bootstrap
from abstain.inference.draws import Draws
from abstain.inference.replicates import Areas, Ordered, ordered, over, resampled_areas
from abstain.metrics._entry import Metric
from abstain.typing import Array, FloatArray, IntArray


@dataclass(frozen=True)
class _Formula:
    """How a metric follows from areas.

    Attributes
    ----------
    areas : frozenset of str
        The areas it needs.
    value : callable
        From the areas to the metric, arrays of shape (sets, resamples).
    holds : callable
        Whether it holds for a score.
    """

    areas: frozenset[str]
    value: Callable[[Areas], FloatArray]
    holds: Callable[[Scored], bool] = lambda _: True


def _divided(a: FloatArray, b: FloatArray) -> FloatArray:
    """Divide where the divisor is above zero; NaN elsewhere."""
    return np.divide(a, b, out=np.full_like(a, np.nan), where=b > 0)


def _binary(s: Scored) -> bool:
    return s.binary


def _errors(s: Scored) -> bool:
    """Tell whether the loss is 1 exactly where the prediction is wrong."""
    view = s.view
    return view is not None and np.array_equal(s.loss != 0, view.prediction != view.labels)


def _ranking(a: Areas) -> FloatArray:
    return np.maximum(0.0, a.of["augrc"] - a.risk**2 / 2)


def _auroc(a: Areas) -> FloatArray:
    return 1.0 - _divided(a.of["augrc"] - a.risk**2 / 2, a.risk * (1.0 - a.risk))


def _sele(a: Areas) -> FloatArray:
    return a.of["augrc"] + _divided(a.risk, 2.0 * a.total)


_AUGRC, _AURC = frozenset({"augrc"}), frozenset({"aurc"})

_FORMULAS = {
    "augrc": _Formula(_AUGRC, lambda a: a.of["augrc"]),
    "excess_augrc": _Formula(_AUGRC, _ranking, _binary),
    "augrc_ranking": _Formula(_AUGRC, _ranking, _binary),
    "augrc_classifier": _Formula(_AUGRC, lambda a: a.risk**2 / 2, _binary),
    "prr": _Formula(_AUGRC, lambda a: 2.0 * _auroc(a) - 1.0, _binary),
    "failure_auroc": _Formula(_AUGRC, _auroc, _binary),
    "sele": _Formula(_AUGRC, _sele),
    "two_sele": _Formula(_AUGRC, lambda a: 2.0 * _sele(a)),
    "aurc": _Formula(_AURC, lambda a: a.of["aurc"]),
    "auarc": _Formula(_AURC, lambda a: 1.0 - a.of["aurc"]),
    "aurc_plugin": _Formula(
        frozenset({"aurc_plugin"}), lambda a: a.of["aurc_plugin"], lambda s: s.weight is None
    ),
    "accuracy": _Formula(frozenset(), lambda a: 1.0 - a.risk, lambda s: s.binary and _errors(s)),
}


def replicates(
    scored_sets: Sequence[Scored],
    metrics: Sequence[Metric],
    draws: Draws,
    *,
    threads: int | None = None,
) -> FloatArray:
    """Compute metrics of every resample of scores that share their samples.

    Parameters
    ----------
    scored_sets : sequence of Scored
        Of the same samples in the same order.
    metrics : sequence of Metric
        The sets meet their needs.
    draws : Draws
        The resamples, the same for all sets and metrics.
    threads : int, optional
        How many work at a time; the processors available, at most two, by default.

    Returns
    -------
    ndarray of shape (metrics, sets, resamples)
        NaN where a resample leaves a metric undefined.
    """
    for s in scored_sets:
        if s.n != draws.n:
            msg = f"every score needs the {draws.n} samples that are drawn from; got {s.n}"
            raise ShapeError(msg)
    presorted = over(lambda s: ordered(s.confidence, s.loss, s.weight), scored_sets, threads)
    quick = np.array([[_formula_holds(metric, s) for s in scored_sets] for metric in metrics])
    out = np.full((len(metrics), len(scored_sets), draws.resamples), np.nan)
    wanted = frozenset[str]().union(
        *(_FORMULAS[metric.name].areas for m, metric in enumerate(metrics) if quick[m].any())
    )
    some = [int(i) for i in np.flatnonzero(quick.any(axis=0))]
    if some:
        areas = resampled_areas([presorted[i] for i in some], draws, wanted, threads=threads)
        for m, metric in enumerate(metrics):
            if quick[m].any():
                out[m, quick[m]] = _FORMULAS[metric.name].value(areas)[quick[m, some]]
    for i, s in enumerate(scored_sets):
        rest = [m for m in range(len(metrics)) if not quick[m, i]]
        if rest:
            out[rest, i] = _computed(s, presorted[i], [metrics[m] for m in rest], draws)
    return out


def _formula_holds(metric: Metric, s: Scored) -> bool:
    formula = _FORMULAS.get(metric.name)
    return formula is not None and formula.holds(s)


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
    return replace(s, weight=weight, known_groups=_groups(s, presorted, weight, count))


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
