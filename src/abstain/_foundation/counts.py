"""`Scored` from counts of successes and failures by tie group.

A row stands for several samples; `Scored.row_counts` is their number.
"""

from abstain._foundation.group_rows import rows_of_groups
from abstain._foundation.scored import Scored
from abstain._foundation.tie_groups import TieGroups


def scored_from_groups(groups: TieGroups) -> Scored:
    """Return the samples of these tie groups."""
    rows = rows_of_groups(groups)
    return Scored(
        rows.confidence,
        rows.loss,
        rows.row_counts,
        probability=rows.confidence,
        precomputed_groups=groups,
        row_counts=rows.row_counts,
    )


def scored_from_merged_groups(groups: TieGroups) -> Scored:
    """Return the samples of these merged groups; the confidence of a row is the rank of its group.

    If the groups have unknown ties, metrics that depend on the confidence of each success raise an
    UncountedError.
    """
    rows = rows_of_groups(groups)
    return Scored(
        rows.confidence,
        rows.loss,
        rows.row_counts,
        precomputed_merged_groups=groups,
        row_counts=rows.row_counts,
    )
