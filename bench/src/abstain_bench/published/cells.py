"""Read the published tables that are included in this package."""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any, Final

from abstain._foundation.catalogue import Catalogue

#: A cell of a table, as a mapping from columns to texts. The value of `number` is a float or None.
Fact = Mapping[str, Any]


@dataclass(frozen=True)
class Doubt:
    """A remark that limits the reliability of published numbers.

    Attributes
    ----------
    text : str
        Text of the remark.
    where : mapping from str to tuple of str
        Texts of the affected cells by column, or empty for a remark on the whole table.

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
        """Return whether the remark applies to one cell rather than the whole table."""
        if not self.where:
            return False
        return all(cell.get(column) in texts for column, texts in self.where.items())


@dataclass(frozen=True)
class PublishedTable:
    """A table of a paper.

    Attributes
    ----------
    name : str
        Name of the table, as passed to `table`.
    paper : str
        Short name of the paper, one of "augrc", "fd_shifts", "population_aurc" and "cwsa", or empty
        for tables with numbers of all four papers.
    number : str
        Number of the table in the paper, or empty for numbers in the text of the paper.
    place : str
        Location in the paper.
    title : str
        Description of the contents.
    scale : str
        Scale of the printed numbers, for example "x1000", "percent", "fraction" or "rank".
    cited : str
        Citation, or empty for tables with numbers of all four papers.
    url : str
        Address of the paper.
    doubts : tuple of Doubt
        Remarks on some cells or on the table.
    note : str
        Remark that applies to all cells.

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
        """Citation and location in the paper."""
        return ", ".join(filter(None, (self.cited, self.place)))


#: Columns of tables with results.
RESULT_COLUMNS: Final = (
    "paper", "table", "block", "dataset", "study", "task", "abstain_study", "classifier",
    "backbone", "method", "printed", "metric", "printed_metric", "value", "scale", "factor",
    "spread", "rank", "note",
)  # fmt: skip

#: Factors by which printed numbers are divided, by scale.
_FACTORS: Final = {"fraction": "1", "percent": "100", "rank": "1", "x100": "100", "x1000": "1000"}

#: Separator of data set and study in the names of columns that contain values.
_STUDY_SEPARATOR: Final = "/"


def table(name: str) -> tuple[Fact, ...]:
    """Return the cells of a published table.

    Parameters
    ----------
    name : str
        Name of the table in `tables`, which consists of the paper and the number.

    Returns
    -------
    tuple of mapping from str to value
        An immutable mapping for each cell, in the order of the paper. Values are printed texts, or
        empty. The value of `number` is a fraction, a count or a rank, or None if the printed text
        is not numeric. The value of `doubt` contains remarks on the reliability of the cell. In
        tables of results, the columns `paper`, `table`, `block` (section of the table), `dataset`,
        `study`, `classifier`, `printed` (name of the method), `printed_metric`, `value`, `spread`,
        `scale`, `rank` and `note` describe the printed number. The column `factor` contains the
        printed value divided by `number`. The columns `task`, `abstain_study`, `method`, `backbone`
        and `metric` are names of this package, or empty.

    Raises
    ------
    UnknownNameError
        If the table does not exist.

    Notes
    -----
    The file of a table is read when the table is first requested.

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
    """Yield the rows of a packaged CSV file."""
    path = resources.files("abstain_bench.published") / "facts" / f"{name}.csv"
    yield from csv.DictReader(path.read_text(encoding="utf-8").splitlines())


def _parse_doubt(row: Mapping[str, str]) -> Doubt:
    """Parse a remark whose affected cells are specified as "threshold=0.50|0.60; block=A"."""
    where = {}
    for term in filter(None, row["where"].split("; ")):
        column, _, texts = term.partition("=")
        where[column] = tuple(texts.split("|"))
    return Doubt(row["text"], where)


@cache
def _read_cells(name: str) -> tuple[Fact, ...]:
    """Read the cells of a table."""
    description = tables()[name]
    cells = (cell for row in _read_rows(name) for cell in _split_studies(row))
    return tuple(_make_fact(description, cell) for cell in cells)


def _split_studies(row: dict[str, str]) -> Iterator[dict[str, str]]:
    """Yield one cell per study column, or the row itself if it has no study columns."""
    values = {column: text for column, text in row.items() if _STUDY_SEPARATOR in column}
    if not values:
        yield row
        return
    shared = {column: text for column, text in row.items() if column not in values}
    for column, text in values.items():
        dataset, _, study = column.partition(_STUDY_SEPARATOR)
        yield {**shared, "dataset": dataset, "study": study, "value": text}


def _make_fact(description: PublishedTable, cell: dict[str, str]) -> Fact:
    """Add the table columns, the corresponding names in this package, the number and remarks."""
    table_columns = {"paper": description.paper, "note": description.note}
    if description.number:
        table_columns["table"] = description.number
    is_result = "printed_metric" in cell
    empty_columns = dict.fromkeys(RESULT_COLUMNS, "") if is_result else {}
    package_columns = _package_names(cell) if is_result else {}
    fact = empty_columns | table_columns | package_columns | cell
    doubts = " ".join(doubt.text for doubt in description.doubts if doubt.concerns(fact))
    return MappingProxyType({**fact, "number": _parse_number(fact), "doubt": doubts})


def _package_names(cell: Mapping[str, str]) -> dict[str, str]:
    """Return the corresponding names in this package, and the scale, factor and rank of a cell."""
    names = {"backbone": ""}
    for kind, columns in _KEY_COLUMNS.items():
        key = tuple(cell[column] for column in columns)
        names |= _names_by_key(kind).get(key, {})
    scale = names["scale"]
    names["factor"] = _FACTORS[scale]
    names["rank"] = cell["value"] if scale == "rank" else ""
    return names


#: Columns that identify a row in each file with names of this package.
_KEY_COLUMNS: Final = {
    "studies": ("dataset", "study"),
    "networks": ("dataset", "classifier"),
    "methods": ("printed",),
    "metrics": ("printed_metric",),
}


@cache
def _names_by_key(kind: str) -> dict[tuple[str, ...], dict[str, str]]:
    """Read a file that maps the values of key columns to names in this package."""
    columns = _KEY_COLUMNS[kind]
    return {tuple(row[column] for column in columns): row for row in _read_rows(kind)}


def _parse_number(cell: Mapping[str, str]) -> float | None:
    """Divide the printed value by its factor, or return None if the value is not numeric."""
    try:
        return float(Decimal(cell.get("value", "")) / Decimal(cell.get("factor") or 1))
    except InvalidOperation:
        return None
