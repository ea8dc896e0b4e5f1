"""Search for the rows of a table that cannot be read."""

from collections.abc import Callable

import numpy as np

from abstain.errors import AbstainError
from abstain.tables._reading import Reading
from abstain.tables.table import DataTable
from abstain.typing import BoolArray

#: The search reads at most the first number of ranges, plus one range per `_ROWS_PER_TRIAL` rows.
_MIN_TRIALS, _ROWS_PER_TRIAL = 400, 20


def find_bad_rows(build: Callable[[DataTable], Reading], table: DataTable) -> tuple[BoolArray, str]:
    """Return a mask of the rows that raise an error, and a remark.

    The table must contain at least one such row. The function repeatedly divides ranges of rows
    that raise an error into halves. If many rows are invalid, it stops early and marks all rows of
    the remaining ranges. In this case, the remark states the number of these rows. Otherwise, the
    remark is empty.
    """

    def fails(start: int, stop: int) -> bool:
        try:
            build(table.select_rows(np.arange(start, stop)))
        except AbstainError:
            return True
        return False

    is_bad = np.zeros(table.n_rows, np.bool_)
    n_trials = _MIN_TRIALS + table.n_rows // _ROWS_PER_TRIAL
    failing_ranges = [(0, table.n_rows)]
    while failing_ranges and n_trials > 0:
        halves: list[tuple[int, int]] = []
        for start, stop in failing_ranges:
            halves += _halves(start, stop)
        n_trials -= len(halves)
        failing_ranges = []
        for start, stop in halves:
            is_failing = fails(start, stop)
            if is_failing and stop - start == 1:
                is_bad[start] = True
            elif is_failing:
                failing_ranges.append((start, stop))
    if not failing_ranges:
        return is_bad, ""
    n_in_failing_ranges = 0
    for start, stop in failing_ranges:
        is_bad[start:stop] = True
        n_in_failing_ranges += stop - start
    remark = (
        f" These include {n_in_failing_ranges:,} rows in ranges with a bad row: too many rows are "
        "bad to find each of them."
    )
    return is_bad, remark


def _halves(start: int, stop: int) -> list[tuple[int, int]]:
    """Return the two halves of a range, or only the range itself if it has a single row."""
    middle = (start + stop) // 2
    if middle == start:
        return [(start, stop)]
    return [(start, middle), (middle, stop)]
