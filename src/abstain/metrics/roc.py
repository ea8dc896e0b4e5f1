"""Areas under ROC and precision-recall curves, computed from the weights at each rank."""

import numpy as np

from abstain._foundation.arrays import namespace, without_gradient
from abstain._foundation.scored import Scored
from abstain._foundation.tie_groups import TieGroups
from abstain.metrics.rank_weights import harmonic_sums_of_merged_groups
from abstain.typing import AnyArray, FloatArray


def area_under_roc(positive: FloatArray, negative: FloatArray) -> float:
    """Return the probability that a positive ranks above a negative; a tie counts as one half.

    The arrays contain the weights of positives and negatives at each rank, highest score first.
    Each class must have a positive total weight.
    """
    xp = namespace(positive)
    positive_above = xp.cumulative_sum(positive) - positive
    wins = float(xp.sum(negative * (positive_above + positive / 2)))
    return wins / (float(xp.sum(positive)) * float(xp.sum(negative)))


def average_precision(
    positive: FloatArray, negative: FloatArray, groups: TieGroups | None = None
) -> float:
    """Return the average precision, the mean over the positives of the precision at their rank.

    The arrays contain the weights of positives and negatives at each rank, highest score first. If
    `groups` is passed, each sample of a merged group has a separate rank.
    """
    xp = namespace(positive)
    positive_through = xp.cumulative_sum(positive)
    weight_through = xp.cumulative_sum(positive + negative)
    safe_weight_through = xp.where(weight_through > 0, weight_through, 1.0)
    weighted_precision = positive * positive_through / safe_weight_through
    if groups is not None and groups.is_merged_without_unknown_ties is not None:
        # If N negatives rank above the group, the precision at rank k is 1 - N/k.
        merged = np.flatnonzero(groups.is_merged_without_unknown_ties)
        negative_before = (weight_through - positive_through).take(merged)
        lost_precision = negative_before * harmonic_sums_of_merged_groups(groups)
        weighted_precision[merged] = positive.take(merged) - lost_precision
    return float(xp.sum(weighted_precision)) / float(positive_through[-1])


def success_and_failure_weights(s: Scored) -> tuple[FloatArray, FloatArray]:
    """Return the weights of successes and failures in each merged group, most confident first."""
    failures = without_gradient(s.merged_groups.loss)
    return clip_negative(s.merged_groups.weight - failures), failures


def clip_negative(values: FloatArray) -> AnyArray:
    """Replace negative values, which are rounding errors of differences, by 0."""
    return namespace(values).clip(values, 0.0, None)


def has_nonzero(values: FloatArray) -> bool:
    """Return whether any entry is not zero."""
    return bool(namespace(values).any(values))


def reason_without_both_kinds(
    successes: FloatArray | None = None, failures: FloatArray | None = None
) -> str:
    """Return a message if the weights of successes or failures are all 0, or an empty string."""
    if failures is not None and not has_nonzero(failures):
        return "there are no failures"
    if successes is not None and not has_nonzero(successes):
        return "there are no successes"
    return ""


def hanley_mcneil_variance(auroc: float, positives: float, negatives: float) -> float:
    """Return the variance of an AUROC in (0, 1) for exponentially distributed scores.

    The formula is equation 2 of Hanley and McNeil (1982),
    https://doi.org/10.1148/radiology.143.1.7063747, with equal factors for the two classes, as in
    method 5 of Newcombe (2006), https://doi.org/10.1002/sim.2324.
    """
    class_factor = (positives + negatives) / 2 - 1
    pair_term = class_factor * ((1 - auroc) / (2 - auroc) + auroc / (1 + auroc))
    return auroc * (1 - auroc) * (1 + pair_term) / (positives * negatives)
