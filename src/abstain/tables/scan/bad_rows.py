"""Find the rows of a table that raise an error."""

from collections.abc import Callable

import numpy as np

from abstain.errors import AbstainError
from abstain.tables._reading import Reading
from abstain.tables.table import DataTable
from abstain.typing import IntArray

#: The search builds at most this number of ranges, and one more for each `_ROWS_PER_TRIAL` rows.
_MIN_TRIALS, _ROWS_PER_TRIAL = 400, 20


class BadRowSearch:
    """Finds invalid rows by repeatedly halving the ranges that raise an error.

    If too many rows are invalid, the search stops early, and all rows of the remaining ranges are
    marked.
    """

    def __init__(self, build: Callable[[DataTable], Reading], table: DataTable) -> None:
        self.build, self.table = build, table
        #: Mask of the invalid rows.
        self.is_bad = np.zeros(table.n_rows, np.bool_)
        #: Number of marked rows in ranges that contain at least one invalid row.
        self.n_in_failing_ranges = 0

    def run(self) -> None:
        """Mark the invalid rows of a table that contains at least one."""
        n_trials = _MIN_TRIALS + self.table.n_rows // _ROWS_PER_TRIAL
        failing_ranges = [(0, self.table.n_rows)]
        while failing_ranges and n_trials > 0:
            halves = [half for start, stop in failing_ranges for half in _halves(start, stop)]
            failing_halves = [(start, stop) for start, stop in halves if self._fails(start, stop)]
            self._mark([(start, stop) for start, stop in failing_halves if stop - start == 1])
            failing_ranges = [(start, stop) for start, stop in failing_halves if stop - start > 1]
            n_trials -= len(halves)
        self._mark(failing_ranges)
        self.n_in_failing_ranges = sum(stop - start for start, stop in failing_ranges)

    def _mark(self, ranges: list[tuple[int, int]]) -> None:
        for start, stop in ranges:
            self.is_bad[start:stop] = True

    def _fails(self, start: int, stop: int) -> bool:
        try:
            self.build(self.table.select_rows(np.arange(start, stop)))
        except AbstainError:
            return True
        return False

    @property
    def n_bad(self) -> int:
        """Number of marked rows."""
        return int(self.is_bad.sum())

    @property
    def remark(self) -> str:
        """Sentence on valid rows that are marked too; empty if there are none."""
        if not self.n_in_failing_ranges:
            return ""
        return (
            f" These include {self.n_in_failing_ranges:,} rows in ranges with a bad row: "
            "too many rows are bad to find each of them."
        )

    @property
    def valid_rows(self) -> IntArray:
        """Indices of the rows that are not marked."""
        return np.flatnonzero(~self.is_bad)


def _halves(start: int, stop: int) -> list[tuple[int, int]]:
    middle = (start + stop) // 2
    return [(low, high) for low, high in ((start, middle), (middle, stop)) if low < high]
