"""The numbers that the four papers print, as facts: every table, each cell with its source.

Values stand as printed. What is doubtful about a cell, or about a whole table, is said with it.
Nothing here was measured by this package.

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
