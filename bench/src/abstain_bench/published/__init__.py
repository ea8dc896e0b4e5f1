"""Provide the tables of four papers in a machine-readable form.

Each cell contains the number as printed in the paper. A remark is attached to tables and cells with
questionable numbers. None of the numbers were measured by this package.

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
