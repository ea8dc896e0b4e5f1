"""Conversion between the rows of the caller and the samples, which have a positive weight."""

from typing import Any

import numpy as np

from abstain._foundation.arrays import namespace
from abstain._foundation.names import validate_codes
from abstain._foundation.scored import Scored
from abstain.typing import AnyArray, IntArray


def n_input_rows(s: Scored) -> int:
    """Return the number of rows of the caller, including those with weight 0."""
    return s.n_rows if s.input_row_mask is None else int(s.input_row_mask.shape[0])


def select_samples(s: Scored, column: Any) -> Any:
    """Select the entries of the samples from a column of the caller."""
    return column if s.input_row_mask is None else column[s.input_row_mask]


def expand_to_input_rows(s: Scored, values: Any) -> Any:
    """Expand values of the samples to the rows of the caller, with 0 for rows of weight 0."""
    if s.input_row_mask is None:
        return values
    xp = namespace(values)
    position = xp.cumulative_sum(xp.astype(s.input_row_mask, xp.int64)) - 1
    expanded = xp.take(values, xp.clip(position, 0, None))
    return xp.where(s.input_row_mask, expanded, xp.zeros_like(expanded))


def cluster_codes(s: Scored, group: AnyArray | None) -> IntArray | None:
    """Return the cluster of each sample as a code from 0; None if `group` is None.

    `group` has the name of the cluster of each row of the caller.
    """
    if group is None:
        return None
    codes = validate_codes(group, "group", n_input_rows(s))
    if s.input_row_mask is None:
        return codes
    return np.unique(codes[s.input_row_mask], return_inverse=True)[1].astype(np.int64)
