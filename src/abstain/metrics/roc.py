"""Areas under ROC and precision-recall curves, from weights at each rank."""

import numpy as np

from abstain._foundation.arrays import namespace
from abstain._foundation.gradients import without_gradient
from abstain._foundation.scored import Scored
from abstain._foundation.tie_groups import TieGroups
from abstain.metrics.rank_weights import harmonic_sums_of_merged_groups
from abstain.typing import AnyArray, FloatArray


def area_under_roc(positive: FloatArray, negative: FloatArray) -> float:
    """Return the chance that a positive ranks above a negative, ties half.

    Takes the weights of both at each rank, from the highest score down; neither may sum to 0.
    """
    xp = namespace(positive)
    above = xp.cumulative_sum(positive) - positive
    wins = float(xp.sum(negative * (above + positive / 2)))
    return wins / (float(xp.sum(positive)) * float(xp.sum(negative)))


def average_precision(
    positive: FloatArray, negative: FloatArray, groups: TieGroups | None = None
) -> float:
    """Return the precision at each rank, averaged over the positives there; none is undefined.

    With `groups`, each sample of a merged group has a rank of its own.
    """
    xp = namespace(positive)
    found = xp.cumulative_sum(positive)
    taken = xp.cumulative_sum(positive + negative)
    precise = positive * found / xp.where(taken > 0, taken, 1.0)
    if groups is not None and groups.is_merged_without_unknown_ties is not None:
        # Rank k finds k - N, N the negatives before the group: 1 - N/k, summed over k.
        here, before = np.flatnonzero(groups.is_merged_without_unknown_ties), taken - found
        precise[here] = positive.take(here) - before.take(here) * harmonic_sums_of_merged_groups(
            groups
        )
    return float(xp.sum(precise)) / float(found[-1])


def success_and_failure_weights(s: Scored) -> tuple[FloatArray, FloatArray]:
    """Return the weights of both of each merged group, most confident first.

    Counts of failures, so no gradient flows through them.
    """
    failures = without_gradient(s.merged_groups.loss)
    return clip_negative(s.merged_groups.weight - failures), failures


def clip_negative(x: FloatArray) -> AnyArray:
    """Undo rounding: sums of weights that are no integers may differ in the last bit."""
    return namespace(x).clip(x, 0.0, None)


def has_nonzero(x: FloatArray) -> bool:
    """Tell whether any entry is not zero."""
    return bool(namespace(x).any(x))


def reason_without_both_kinds(
    successes: FloatArray | None = None, failures: FloatArray | None = None
) -> str:
    """Return the reason that a metric is undefined where one of these is all zero, or nothing."""
    if failures is not None and not has_nonzero(failures):
        return "there are no failures"
    return "there are no successes" if successes is not None and not has_nonzero(successes) else ""


def hanley_mcneil_variance(auroc: float, positives: float, negatives: float) -> float:
    """Return the variance of an AUROC in (0, 1) that exponential scores of this AUROC have.

    Hanley and McNeil (1982), equation 2, https://doi.org/10.1148/radiology.143.1.7063747, with
    their two sizes n - 1 replaced by the mean of both, as Newcombe (2006, method 5) advises,
    https://doi.org/10.1002/sim.2324: then it does not matter which kind is called positive.
    """
    others = (positives + negatives) / 2 - 1
    pairs = others * ((1 - auroc) / (2 - auroc) + auroc / (1 + auroc))
    return auroc * (1 - auroc) * (1 + pairs) / (positives * negatives)
