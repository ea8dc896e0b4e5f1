"""When a class is too rare for an interval or a test of a class-balanced number.

Every class carries the same share of the number, so a class of few samples may carry nearly all of
its variance. `docs/validation.md` has the simulations that these limits come from.
"""

import numpy as np

from abstain._foundation.scored import Scored
from abstain.inference.influence import tail_sums
from abstain.metrics.areas.class_cells import ClassCells, class_cells
from abstain.metrics.class_views import view_of
from abstain.metrics.influences import weights_of
from abstain.metrics.rank_weights import vertex_area
from abstain.typing import FloatArray

#: The variance must rest on so many failures, each class counted with one failure more than seen.
MIN_FAILURES = 20

#: The same for balanced accuracy: failures, or successes where a class has fewer of these.
MIN_OF_EITHER_KIND = 5

#: At most this share of the variance may be missing because the samples of a class are few.
MAX_UNSEEN_SHARE = 0.2

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
    effective = _effective(failures / cells.size**2, failures)
    if effective < min(MIN_FAILURES, failures.sum() / 2):
        return _too_few(effective, "failures", MIN_FAILURES)
    return _unseen_variance(failures, np.maximum(cells.size + 2.0 - failures, 1.0), cells.size)


def few_of_either_kind_of_class(s: Scored) -> str:
    """Return why rare classes have too few failures or successes for an interval, or "".

    For balanced accuracy. The variance of a class of m samples, f of them failures and g successes,
    is f g/m^3. It is as uncertain as the fewer of f and g, so these count; otherwise the rule is
    that of `few_failures_of_class`. The limit is lower, since no sample weighs more than the others
    of its class.
    """
    view, weight = view_of(s), weights_of(s)
    known = (view.labels >= 0) & (weight > 0)
    labels, weight = view.labels[known], weight[known]
    wrong = np.asarray(view.prediction[known] != labels, np.float64)
    # A row of a stream stands for as many samples as it weighs.
    squared = weight if s.counted else weight**2
    total, failed, squares = (np.bincount(labels, x) for x in (weight, weight * wrong, squared))
    present = total > 0
    share = failed[present] / total[present]
    size = total[present] ** 2 / squares[present]
    failures, successes = share * size + 1.0, (1.0 - share) * size + 1.0
    fewer = np.minimum(failures, successes)
    effective = _effective(failures * successes / (size + 2.0) / size**2, fewer)
    if effective < min(MIN_OF_EITHER_KIND, fewer.sum() / 2):
        kinds = "failures, or successes where these are fewer"
        return _too_few(effective, kinds, MIN_OF_EITHER_KIND)
    return _unseen_variance(failures, successes, size)


def _effective(variance: FloatArray, counts: FloatArray) -> float:
    """Return on how many counts a sum of variances rests, by Satterthwaite's rule."""
    return float(variance.sum() ** 2 / np.sum(variance**2 / counts))


def _too_few(effective: float, kinds: str, needed: int) -> str:
    """Return the reason: each class was counted with one more than seen."""
    return (
        f"a class is too rare: the variance rests on about {max(int(effective - 1.0), 0)} {kinds}; "
        f"intervals and tests need {needed - 1} or more"
    )


def _unseen_variance(failures: FloatArray, successes: FloatArray, size: FloatArray) -> str:
    """Return why classes of few samples show too little of their variance, or an empty string.

    The variance that m samples show is on average 1/m too small, and one sample shows none. Takes
    one failure and one success more than seen in each class.
    """
    variance = failures * successes / (size + 2.0) / size**2
    unseen = float(np.sum(variance / size) / variance.sum())
    if unseen <= MAX_UNSEEN_SHARE:
        return ""
    return (
        f"classes are too rare: about {100 * unseen:.0f}% of the variance cannot be seen in so few "
        f"samples of a class; intervals and tests allow {100 * MAX_UNSEEN_SHARE:.0f}%"
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
