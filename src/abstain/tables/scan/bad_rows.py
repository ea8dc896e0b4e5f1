"""Which rows of a table break a rule."""

from collections.abc import Callable

import numpy as np

from abstain.errors import AbstainError
from abstain.tables._reading import Reading
from abstain.tables.table import DataTable
from abstain.typing import IntArray

#: So many parts of a table are tried, and one more for so many rows, before the rest of those that
#: fail is taken for bad.
_TRIES, _ROWS = 400, 20


class BadRows:
    """Finds the rows that break a rule by halving what holds one, all large parts first.

    Where more rows are bad than there are tries for, whole parts are given up: they are as small as
    the tries could make them.
    """

    def __init__(self, build: Callable[[DataTable], Reading], table: DataTable) -> None:
        self.build, self.table = build, table
        self.bad = np.zeros(table.height, np.bool_)
        #: Rows of parts that were given up: some of them are bad.
        self.given_up = 0

    def look(self) -> None:
        """Mark them; the table is known to hold one."""
        tries = _TRIES + self.table.height // _ROWS
        failing = [(0, self.table.height)]
        while failing and tries > 0:
            halves = [half for part in failing for half in _halves(*part)]
            failing = [(start, stop) for start, stop in halves if self._fails(start, stop)]
            self._mark([part for part in failing if part[1] - part[0] == 1])
            failing = [part for part in failing if part[1] - part[0] > 1]
            tries -= len(halves)
        self._mark(failing)
        self.given_up = sum(stop - start for start, stop in failing)

    def _mark(self, parts: list[tuple[int, int]]) -> None:
        for start, stop in parts:
            self.bad[start:stop] = True

    def _fails(self, start: int, stop: int) -> bool:
        try:
            self.build(self.table.rows(np.arange(start, stop)))
        except AbstainError:
            return True
        return False

    @property
    def count(self) -> int:
        """How many there are."""
        return int(self.bad.sum())

    @property
    def beside(self) -> str:
        """Say that sound rows are left out too, where they are."""
        if not self.given_up:
            return ""
        return (
            f" Of these, {self.given_up:,} rows are left out in stretches that hold a bad row each:"
            " too many are bad to tell them all apart."
        )

    @property
    def kept(self) -> IntArray:
        """The others."""
        return np.flatnonzero(~self.bad)


def _halves(start: int, stop: int) -> list[tuple[int, int]]:
    middle = (start + stop) // 2
    return [(low, high) for low, high in ((start, middle), (middle, stop)) if low < high]
