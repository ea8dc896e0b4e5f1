"""When a class is too rare for an interval or a test of a class-balanced area.

Every class carries the same share of the number, so a class of few samples may carry nearly all of
its variance. `docs/statistics.md` has the simulations that these limits come from.
"""

import numpy as np

from abstain._foundation.scored import Scored
from abstain.inference.influence import tail_sums
from abstain.metrics.areas.class_cells import ClassCells, class_cells
from abstain.metrics.rank_weights import vertex_area
from abstain.typing import FloatArray

#: The variance must rest on so many failures, each class counted with one failure more than seen.
MIN_FAILURES = 20

#: At fewer accepted samples the risk of a class is hardly known, and its estimated variance too.
FEW_ACCEPTED = 5

#: At most this share of the variance may come from thresholds that accept fewer, in one class.
MAX_EARLY_SHARE = 0.15

#: The same in all classes together, whose errors average out.
MAX_TOTAL_EARLY_SHARE = 0.5


def few_failures_of_class(s: Scored) -> str:
    """Return why the failures of rare classes are too few for an interval, or an empty string.

    The variance of a class of m samples, f of them failures, is about f/m^2. Satterthwaite's rule
    gives the number of failures that the sum over the classes rests on. Each class counts with one
    failure more than seen, since a rare class without failures would seem to have no variance.
    Where all classes are about equally frequent, few failures in total are the reason, and the
    interval carries a warning instead.
    """
    cells = class_cells(s)
    failures = _failures(s, cells) + 1.0
    variance = failures / cells.size**2
    effective = float(variance.sum() ** 2 / np.sum(variance**2 / failures))
    if effective >= min(MIN_FAILURES, failures.sum() / 2):
        return ""
    return (
        f"a class is too rare: the variance rests on about {max(effective - 1.0, 0.0):.0f} "
        f"failures, and intervals and tests need {MIN_FAILURES - 1} or more"
    )


def late_start_of_class(s: Scored) -> str:
    """Return why the selective risk of a rare class is too uncertain, or an empty string.

    At a threshold that accepts j samples of a class, the risk of the class rests on these j. Where
    they are few, it is far from normal, and so is the variance that is estimated from them. The
    errors of m classes alike average out, so the share of one class counts as 1/sqrt(m) of theirs.
    """
    share, in_one_class = _early_share(s)
    if in_one_class <= MAX_EARLY_SHARE and share <= MAX_TOTAL_EARLY_SHARE:
        return ""
    return (
        f"a class is too rare: {100 * share:.0f}% of the variance comes from coverages at which "
        f"fewer than {FEW_ACCEPTED} samples of it are accepted"
    )


def _early_share(s: Scored) -> tuple[float, float]:
    """Return the share of the variance from thresholds that accept few samples of a class.

    In total, and over the root of the number of classes that it is spread over. At a threshold
    that accepts the share F of all samples and j samples of a class, the risk of the class has the
    variance v/j. Its part of the variance of the area is the sum of 2 F v/j over coverage, where v
    is the variance of the loss in the class. Before its first accepted sample a class counts 0
    instead of its unknown risk, an error of the size of sqrt(v) F.
    """
    cells, groups = class_cells(s), s.kinds_by_class.groups
    loss_variance = _loss_variance(s, cells)
    accepted = cells.coverage * cells.size[cells.owner]
    coverage = groups.through[cells.group] / groups.total
    width = cells.until_next(np.append(tail_sums(vertex_area(groups)), 0.0))
    variance = 2 * loss_variance[cells.owner] * width * coverage / accepted
    is_first = np.append(True, cells.last[:-1])
    start = coverage[is_first] - groups.weight[cells.group[is_first]] / groups.total
    unseen = loss_variance * start**2
    early = np.where(accepted < FEW_ACCEPTED, variance, 0.0)
    by_class = np.bincount(cells.owner, weights=early, minlength=cells.present) + unseen
    total = float(variance.sum() + unseen.sum())
    if total == 0:
        # All losses are 0.
        return 0.0, 0.0
    return float(by_class.sum()) / total, float(np.sqrt(np.sum(by_class**2))) / total


def _failures(s: Scored, cells: ClassCells) -> FloatArray:
    """Return the number of failures in each class."""
    rows = s.kinds_by_class
    count = np.ones(rows.n) if rows.times is None else rows.times
    failed = np.where(rows.loss > 0, count, 0.0)[cells.rows]
    counts = np.bincount(cells.owner[cells.cell], weights=failed, minlength=cells.present)
    return np.asarray(counts, np.float64)


def _loss_variance(s: Scored, cells: ClassCells) -> FloatArray:
    """Return the variance of the loss in each class, with one failure and one success more."""
    rows = s.kinds_by_class
    loss = rows.loss.astype(np.float64)
    weight = np.ones(rows.n) if rows.weight is None else rows.weight
    largest = float(loss[weight > 0].max())
    owner, scale = cells.owner[cells.cell], (cells.size / cells.class_weight)
    first, second = (
        np.bincount(owner, weights=(weight * loss**power)[cells.rows]) * scale + largest**power
        for power in (1, 2)
    )
    mean = first / (cells.size + 2)
    return np.asarray(second / (cells.size + 2) - mean**2)
