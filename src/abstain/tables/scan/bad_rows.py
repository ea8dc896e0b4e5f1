"""Which rows of a table break a rule."""

from collections.abc import Callable

import numpy as np

from abstain.errors import AbstainError
from abstain.tables._reading import Reading
from abstain.tables.table import DataTable
from abstain.typing import IntArray

#: So many parts of a table are tried before the rest of those that fail is taken for bad.
_TRIES = 400


class BadRows:
    """Finds the rows that break a rule by halving what holds one."""

    def __init__(self, build: Callable[[DataTable], Reading], table: DataTable) -> None:
        self.build, self.table, self.tries = build, table, 0
        self.bad = np.zeros(table.height, np.bool_)

    def look(self, start: int, stop: int) -> None:
        """Mark those among some rows."""
        self.tries += 1
        try:
            self.build(self.table.rows(np.arange(start, stop)))
        except AbstainError:
            if stop - start == 1 or self.tries > _TRIES:
                self.bad[start:stop] = True
                return
            middle = (start + stop) // 2
            self.look(start, middle)
            self.look(middle, stop)

    @property
    def count(self) -> int:
        """How many there are."""
        return int(self.bad.sum())

    @property
    def kept(self) -> IntArray:
        """The others."""
        return np.flatnonzero(~self.bad)
