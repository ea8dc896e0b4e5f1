"""The rows that a caller passed, and the samples among them: those with a positive weight."""

from typing import Any

import numpy as np

from abstain._foundation.arrays import namespace
from abstain._foundation.names import codes_of
from abstain._foundation.scored import Scored
from abstain.typing import AnyArray, IntArray


def n_passed(s: Scored) -> int:
    """Return the number of rows that the caller passed, those with weight 0 too."""
    return s.n if s.from_rows is None else int(s.from_rows.shape[0])


def of_samples(s: Scored, column: Any) -> Any:
    """Return the entries of the samples in a column with one entry for each passed row."""
    return column if s.from_rows is None else column[s.from_rows]


def on_passed_rows(s: Scored, values: Any) -> Any:
    """Return values of the samples with one entry for each passed row, 0 for weight 0."""
    if s.from_rows is None:
        return values
    xp = namespace(values)
    place = xp.cumulative_sum(xp.astype(s.from_rows, xp.int64)) - 1
    spread = xp.take(values, xp.clip(place, 0, None))
    return xp.where(s.from_rows, spread, xp.zeros_like(spread))


def cluster_of(s: Scored, group: AnyArray | None) -> IntArray | None:
    """Return a code from 0 for the cluster of each sample; `group` names that of each passed row.

    None without groups.
    """
    if group is None:
        return None
    codes = codes_of(group, "group", n_passed(s))
    if s.from_rows is None:
        return codes
    return np.unique(codes[s.from_rows], return_inverse=True)[1].astype(np.int64)
