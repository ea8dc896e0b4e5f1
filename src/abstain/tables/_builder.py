"""The state of one table on its way to predictions."""

from dataclasses import dataclass, field
from typing import Any

from abstain.tables._choose import Chosen
from abstain.tables._column import Column
from abstain.tables._missing import Missing
from abstain.tables._options import Options
from abstain.tables._roles import as_numbers
from abstain.tables._table import Table


@dataclass
class Builder:
    """What is read, and the arguments of `Predictions` that came of it so far.

    Attributes
    ----------
    table, chosen, asked : Table, Chosen, Options
        What is read, which columns, and how.
    columns : dict of str to Column
        The loaded columns.
    missing : Missing
        What was done about missing entries.
    fields : dict
        Arguments for `Predictions`, all rows.
    notes : list of str
        What was decided on the way.
    """

    table: Table
    chosen: Chosen
    asked: Options
    columns: dict[str, Column]
    missing: Missing
    fields: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def number(self, name: str, what: str) -> Column:
        """Return a loaded column as numbers, or refuse it."""
        return as_numbers(self.columns[name], what, self.table.source, typeless=self.table.typeless)
