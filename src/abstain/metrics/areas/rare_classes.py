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

#: At most this share of the variance may come from thresholds that accept fewer.
MAX_EARLY_SHARE = 0.15


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

    At a threshold that accepts the share F of all samples and j samples of a class, the risk of
    the class has the variance v/j. Its part of the variance of the area is the sum of 2 F v/j over
    coverage, where v is the variance of the loss in the class.
    """
    cells = class_cells(s)
    groups = s.kinds_by_class.groups
    accepted = cells.coverage * cells.size[cells.owner]
    coverage = groups.through[cells.group] / groups.total
    width = cells.until_next(np.append(tail_sums(vertex_area(groups)), 0.0))
    variance = _loss_variance(s, cells)[cells.owner] * width * coverage / accepted
    is_first = np.append(True, cells.last[:-1])
    before = coverage - groups.weight[cells.group] / groups.total
    # Before its first accepted sample a class counts 0 instead of its unknown risk.
    unseen = np.where(is_first, _loss_variance(s, cells)[cells.owner] * before**2 / 2, 0.0)
    early = float(np.sum(variance[accepted < FEW_ACCEPTED]) + unseen.sum())
    share = early / float(variance.sum() + unseen.sum())
    if share <= MAX_EARLY_SHARE:
        return ""
    return (
        f"{100 * share:.0f}% of the variance comes from coverages at which fewer than "
        f"{FEW_ACCEPTED} samples of a class are accepted; above {100 * MAX_EARLY_SHARE:.0f}% "
        "intervals and tests are invalid"
    )


def _failures(s: Scored, cells: ClassCells) -> FloatArray:
    """Return the number of failures in each class."""
    rows = s.kinds_by_class
    count = np.ones(rows.n) if rows.times is None else rows.times
    failed = np.where(rows.loss > 0, count, 0.0)[cells.rows]
    return np.bincount(cells.owner[cells.cell], weights=failed, minlength=cells.present)


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
