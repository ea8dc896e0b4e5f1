"""Provide the tables of four papers as data.

The tables contain the printed values of each cell. Cells and tables with doubtful numbers contain a
remark. This package did not measure any of the numbers.

>>> from abstain_bench import published
>>> [row["value"] for row in published.table("fd_shifts_table_11")][:3]
['6', '4', '7']
"""

from abstain_bench.published.cells import Doubt as Doubt
from abstain_bench.published.cells import Fact as Fact
from abstain_bench.published.cells import PublishedTable as PublishedTable
from abstain_bench.published.cells import table as table
from abstain_bench.published.cells import tables as tables

__all__ = ["PublishedTable", "table", "tables"]
