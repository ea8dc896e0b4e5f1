"""The packaged tables of published results, read on first access, and the types of their parts."""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any, Final

from abstain._foundation.catalogue import Catalogue

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


#: Columns of a table of results, in their order.
RESULT_COLUMNS: Final = (
    "paper", "table", "block", "dataset", "study", "task", "abstain_study", "classifier",
    "backbone", "method", "printed", "metric", "printed_metric", "value", "scale", "factor",
    "spread", "rank", "note",
)  # fmt: skip

#: Factor between a printed number and its fraction, by scale.
_FACTORS: Final = {"fraction": "1", "percent": "100", "rank": "1", "x100": "100", "x1000": "1000"}

#: Separates data set and study in the name of a column whose cells are values.
_STUDY_SEPARATOR: Final = "/"


def table(name: str) -> tuple[Fact, ...]:
    """Return the cells of a published table.

    Parameters
    ----------
    name : str
        Name in `tables`: the paper and the number of the table.

    Returns
    -------
    tuple of mapping from str to value
        One immutable mapping per cell, in the order of the paper. All values are text as printed,
        empty if missing, except `number`: the plain number (a fraction, count or rank), or None if
        the value is no number. Tables of results have the columns `paper`, `table`, `block`
        (section of the table), `dataset`, `study`, `classifier`, `printed` (the method),
        `printed_metric`, `value`, `spread`, `scale`, `factor` (`value` is `number` times that),
        `rank`, `note`, and the names of this package, empty if it has none: `task`,
        `abstain_study`, `method`, `backbone`, `metric`. All tables have `doubt`: remarks on the
        reliability of the cell.

    Raises
    ------
    UnknownNameError
        If there is no such table; the nearest name is suggested.

    Notes
    -----
    A table is read once, on first access, in a few milliseconds.

    Examples
    --------
    >>> from abstain_bench import published
    >>> cells = published.table("fd_shifts_table_1")
    >>> len(cells), cells[0]["dataset"], cells[0]["printed"], cells[0]["value"], cells[0]["number"]
    (483, 'iWildCam', 'MSR', '62.3', 0.0623)
    >>> cells[0]["task"], cells[0]["abstain_study"], cells[0]["method"], cells[0]["metric"]
    ('iwildcam', 'iid', 'msr', 'aurc')
    """
    return _read_cells(tables()[name].name)


@cache
def tables() -> Catalogue[PublishedTable]:
    """Return the descriptions of all published tables by name.

    Returns
    -------
    mapping from str to PublishedTable
        Descriptions in the order of the papers.

    Examples
    --------
    >>> from abstain_bench import published
    >>> for name, table in list(published.tables().items())[2:5]:
    ...     print(name, table.scale, len(table.doubts))
    augrc_table_3 x1000 2
    augrc_table_4 rank 2
    fd_shifts_table_1 x1000 2
    >>> print(published.tables()["fd_shifts_table_5"].doubts[0].text)
    Outside of the grid that the text gives for this data set.
    """
    doubts = [(row["tables"].split(), _parse_doubt(row)) for row in _read_rows("doubts")]
    papers = {row.pop("paper"): row for row in _read_rows("papers")}
    catalogue: Catalogue[PublishedTable] = Catalogue(
        "published table", list_command="list published"
    )
    for row in _read_rows("tables"):
        doubts_of_table = tuple(doubt for names, doubt in doubts if row["name"] in names)
        fields = papers.get(row["paper"], {}) | row
        number = fields.pop("table")
        catalogue.add(PublishedTable(**fields, number=number, doubts=doubts_of_table))
    return catalogue


def _read_rows(name: str) -> Iterator[dict[str, str]]:
    path = resources.files("abstain_bench.published") / "facts" / f"{name}.csv"
    yield from csv.DictReader(path.read_text(encoding="utf-8").splitlines())


def _parse_doubt(row: Mapping[str, str]) -> Doubt:
    terms = (term.partition("=") for term in row["where"].split("; ") if term)
    return Doubt(row["text"], {column: tuple(texts.split("|")) for column, _, texts in terms})


@cache
def _read_cells(name: str) -> tuple[Fact, ...]:
    description = tables()[name]
    rows = (cell for row in _read_rows(name) for cell in _split_studies(row))
    return tuple(_make_fact(description, cell) for cell in rows)


def _split_studies(row: dict[str, str]) -> Iterator[dict[str, str]]:
    """Yield one cell per study for a row that has a column per study, as in the paper."""
    values = {column: text for column, text in row.items() if _STUDY_SEPARATOR in column}
    if not values:
        yield row
    shared = {column: text for column, text in row.items() if column not in values}
    for column, text in values.items():
        dataset, _, study = column.partition(_STUDY_SEPARATOR)
        yield {**shared, "dataset": dataset, "study": study, "value": text}


def _make_fact(description: PublishedTable, cell: dict[str, str]) -> Fact:
    fact = {"paper": description.paper, "note": description.note}
    if description.number:
        fact["table"] = description.number
    if "printed_metric" in cell:
        fact = dict.fromkeys(RESULT_COLUMNS, "") | fact | _package_names(cell)
    fact |= cell
    doubts = " ".join(doubt.text for doubt in description.doubts if doubt.concerns(fact))
    return MappingProxyType({**fact, "number": _parse_number(fact), "doubt": doubts})


def _package_names(cell: Mapping[str, str]) -> dict[str, str]:
    """Return the names of this package for a cell, and its scale."""
    names = {"backbone": ""}
    for kind, columns in _KEY_COLUMNS.items():
        names |= _names_by_key(kind).get(tuple(cell[column] for column in columns), {})
    names["factor"] = _FACTORS[names["scale"]]
    return names | {"rank": cell["value"] if names["scale"] == "rank" else ""}


#: Key columns of each file of names.
_KEY_COLUMNS: Final = {
    "studies": ("dataset", "study"),
    "networks": ("dataset", "classifier"),
    "methods": ("printed",),
    "metrics": ("printed_metric",),
}


@cache
def _names_by_key(kind: str) -> dict[tuple[str, ...], dict[str, str]]:
    columns = _KEY_COLUMNS[kind]
    return {tuple(row[column] for column in columns): row for row in _read_rows(kind)}


def _parse_number(cell: Mapping[str, str]) -> float | None:
    """Return the plain number of a cell with the printed decimals; None if it is no number."""
    try:
        return float(Decimal(cell.get("value", "")) / Decimal(cell.get("factor") or 1))
    except InvalidOperation:
        return None
