"""Descriptions of published tables."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: A cell, or a row of a table without cells: text by column, and `number`, a float or None.
Fact = Mapping[str, Any]


@dataclass(frozen=True)
class Doubt:
    """A remark on the reliability of published numbers.

    Attributes
    ----------
    text : str
        The remark.
    where : mapping from str to tuple of str
        The affected cells: for each column the possible texts. Empty if it concerns the table.

    Examples
    --------
    >>> from abstain_bench.published import tables
    >>> doubts = tables()["cwsa_table_1"].doubts
    >>> doubts[2].text
    'CWSA is above coverage x CWSA+, which no data allow.'
    >>> doubts[2].concerns({"threshold": "0.60"}), doubts[2].concerns({"threshold": "0.50"})
    (True, False)
    """

    text: str
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def concerns(self, cell: Fact) -> bool:
        """Return whether a cell is affected; remarks on a whole table affect no single cell."""
        return bool(self.where) and all(cell.get(k) in texts for k, texts in self.where.items())


@dataclass(frozen=True)
class PublishedTable:
    """A table of a paper.

    Attributes
    ----------
    name : str
        Name for `table`.
    paper : str
        "augrc", "fd_shifts", "population_aurc" or "cwsa"; empty for tables of all four.
    number : str
        Number in the paper; empty if the numbers are in its text.
    place : str
        Location in the paper.
    title : str
        Description of the contents.
    scale : str
        Scale of the printed numbers: "x1000", "percent", "fraction", "rank" and so on.
    cited : str
        Citation; empty for tables of all four papers.
    url : str
        Address of the paper.
    doubts : tuple of Doubt
        Remarks on some cells, or on the table.
    note : str
        Remark that applies to every cell.

    Examples
    --------
    >>> from abstain_bench.published import tables
    >>> table = tables()["augrc_table_3"]
    >>> table.title, table.scale, table.source
    ('AUGRC of 13 methods in 21 studies, CNN', 'x1000', 'Traub et al. (2024), table 3')
    """

    name: str
    paper: str
    number: str
    place: str
    title: str
    scale: str
    cited: str = ""
    url: str = ""
    doubts: tuple[Doubt, ...] = ()
    note: str = ""

    @property
    def source(self) -> str:
        """The citation of the paper and the location in it."""
        return ", ".join(filter(None, (self.cited, self.place)))
