"""The rows that a caller passed, and the samples among them: those with a positive weight."""

from typing import Any

import numpy as np

from abstain._foundation.arrays import namespace
from abstain._foundation.names import validate_codes
from abstain._foundation.scored import Scored
from abstain.typing import AnyArray, IntArray


def n_input_rows(s: Scored) -> int:
    """Return the number of rows that the caller passed, those with weight 0 too."""
    return s.n_rows if s.input_row_mask is None else int(s.input_row_mask.shape[0])


def select_samples(s: Scored, column: Any) -> Any:
    """Return the entries of the samples in a column with one entry for each passed row."""
    return column if s.input_row_mask is None else column[s.input_row_mask]


def expand_to_input_rows(s: Scored, values: Any) -> Any:
    """Return values of the samples with one entry for each passed row, 0 for weight 0."""
    if s.input_row_mask is None:
        return values
    xp = namespace(values)
    place = xp.cumulative_sum(xp.astype(s.input_row_mask, xp.int64)) - 1
    spread = xp.take(values, xp.clip(place, 0, None))
    return xp.where(s.input_row_mask, spread, xp.zeros_like(spread))


def cluster_codes(s: Scored, group: AnyArray | None) -> IntArray | None:
    """Return a code from 0 for the cluster of each sample; `group` names that of each passed row.

    None without groups.
    """
    if group is None:
        return None
    codes = validate_codes(group, "group", n_input_rows(s))
    if s.input_row_mask is None:
        return codes
    return np.unique(codes[s.input_row_mask], return_inverse=True)[1].astype(np.int64)
