"""What is known of a published table besides its cells."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: A cell, or a line where a table has no cells: column to text, and `number` to a float or None.
Fact = Mapping[str, Any]


@dataclass(frozen=True)
class Doubt:
    """What a reader should know before a published number is used as a reference.

    Attributes
    ----------
    text : str
        A sentence.
    where : mapping from str to tuple of str
        The cells that it concerns: for each column the texts that it may have. Empty: the table.

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
        """Tell whether a cell is among those that it concerns; one of a whole table has none."""
        return bool(self.where) and all(cell.get(k) in texts for k, texts in self.where.items())


@dataclass(frozen=True)
class PublishedTable:
    """A table of a paper.

    Attributes
    ----------
    name : str
        What `table` takes.
    paper : str
        "augrc", "fd_shifts", "population_aurc" or "cwsa"; empty where a table is of all four.
    number : str
        That of the paper; empty where the numbers stand in its prose.
    place : str
        Where in the paper it stands.
    title : str
        What it has.
    scale : str
        How its numbers are printed: "x1000", "percent", "fraction", "rank" and so on.
    cited : str
        By whom it is; empty where it is of all four.
    url : str
        Where the paper can be read.
    doubts : tuple of Doubt
        About some of its cells, or all of it.
    note : str
        What holds for each of its cells.

    Examples
    --------
    >>> from abstain_bench.published import tables
    >>> one = tables()["augrc_table_3"]
    >>> one.title, one.scale, one.source
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
        """The paper and the place in it, as they are cited."""
        return ", ".join(filter(None, (self.cited, self.place)))
