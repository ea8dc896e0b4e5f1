"""Samples with a 0/1 loss of which only counts are known, as the `Scored` that metrics take.

A row stands for several samples; `Scored.times` is their number.
"""

from abstain._foundation.group_rows import rows_of_groups
from abstain._foundation.scored import Scored
from abstain._foundation.tie_groups import TieGroups


def scored_from_groups(groups: TieGroups) -> Scored:
    """Return the samples of these tie groups."""
    k = rows_of_groups(groups)
    return Scored(
        k.confidence,
        k.loss,
        k.row_counts,
        probability=k.confidence,
        precomputed_groups=groups,
        row_counts=k.row_counts,
    )


def scored_from_merged_groups(groups: TieGroups) -> Scored:
    """Return the samples of these groups; the confidence of a row is the rank of its group.

    If the groups have unknown ties, what needs the confidence of each success raises an
    UncountedError.
    """
    k = rows_of_groups(groups)
    return Scored(
        k.confidence,
        k.loss,
        k.row_counts,
        precomputed_merged_groups=groups,
        row_counts=k.row_counts,
    )
