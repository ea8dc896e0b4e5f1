"""The packaged tables, read when they are asked for."""

import csv
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Final

from abstain._foundation.catalogue import Catalogue
from abstain_bench.published.records import Doubt, Fact, PublishedTable

#: The columns of a table of results, in their order.
RESULTS: Final = (
    "paper", "table", "block", "dataset", "study", "task", "abstain_study", "classifier",
    "backbone", "method", "printed", "metric", "printed_metric", "value", "scale", "factor",
    "spread", "rank", "note",
)  # fmt: skip

#: By how much a printed number is larger than the plain one.
_FACTORS: Final = {"fraction": "1", "percent": "100", "rank": "1", "x100": "100", "x1000": "1000"}

#: Where the name of a column names a data set and a study, and its cells are values.
_OF_STUDY: Final = "/"


def table(name: str) -> tuple[Fact, ...]:
    """Return the cells of a published table.

    Answers: which numbers does the paper print, and which of our names are they under?

    Parameters
    ----------
    name : str
        A name of `tables`: the paper, and the number of the table.

    Returns
    -------
    tuple of mapping from str to value
        One a cell, in the order of the paper; they cannot be changed. All values are text, as
        printed, and empty where there is none, but for `number`: the plain number (a fraction, a
        count, a rank), or None where the value is no number. Tables of results have the columns
        `paper`, `table`, `block` (which part of the table), `dataset`, `study`, `classifier`,
        `printed` (the method), `printed_metric`, `value`, `spread`, `scale`, `factor` (`value` is
        `number` times that), `rank`, `note`, and the names of this package, empty where it has
        none: `task`, `abstain_study`, `method`, `backbone`, `metric`. All tables have `doubt`: what
        is doubtful of this cell.

    Raises
    ------
    UnknownNameError
        If there is no such table; the nearest name is suggested.

    Notes
    -----
    A table is read once, when it is asked for. Cost: a few milliseconds.

    Examples
    --------
    >>> from abstain_bench import published
    >>> cells = published.table("fd_shifts_table_1")
    >>> len(cells), cells[0]["dataset"], cells[0]["printed"], cells[0]["value"], cells[0]["number"]
    (483, 'iWildCam', 'MSR', '62.3', 0.0623)
    >>> cells[0]["task"], cells[0]["abstain_study"], cells[0]["method"], cells[0]["metric"]
    ('iwildcam', 'iid', 'msr', 'aurc')
    """
    return _cells(tables()[name].name)


@cache
def tables() -> Catalogue[PublishedTable]:
    """Return what is known of every published table, by name.

    Answers: which tables are there, of which paper, and what is doubtful in them?

    Returns
    -------
    mapping from str to PublishedTable
        In the order of the papers.

    Examples
    --------
    >>> from abstain_bench import published
    >>> for name, one in list(published.tables().items())[2:5]:
    ...     print(name, one.scale, len(one.doubts))
    augrc_table_3 x1000 2
    augrc_table_4 rank 2
    fd_shifts_table_1 x1000 2
    >>> print(published.tables()["fd_shifts_table_5"].doubts[0].text)
    Outside of the grid that the text gives for this data set.
    """
    doubts = [(line["tables"].split(), _doubt(line)) for line in _lines("doubts")]
    papers = {line.pop("paper"): line for line in _lines("papers")}
    found: Catalogue[PublishedTable] = Catalogue("published table", list_command="list published")
    for line in _lines("tables"):
        about = tuple(doubt for names, doubt in doubts if line["name"] in names)
        known = papers.get(line["paper"], {}) | line
        number = known.pop("table")
        found.add(PublishedTable(**known, number=number, doubts=about))
    return found


def _lines(name: str) -> Iterator[dict[str, str]]:
    place = resources.files("abstain_bench.published") / "facts" / f"{name}.csv"
    yield from csv.DictReader(place.read_text(encoding="utf-8").splitlines())


def _doubt(line: Mapping[str, str]) -> Doubt:
    terms = (term.partition("=") for term in line["where"].split("; ") if term)
    return Doubt(line["text"], {column: tuple(texts.split("|")) for column, _, texts in terms})


@cache
def _cells(name: str) -> tuple[Fact, ...]:
    about = tables()[name]
    return tuple(_fact(about, cell) for line in _lines(name) for cell in _unfolded(line))


def _unfolded(line: dict[str, str]) -> Iterator[dict[str, str]]:
    """Find the cells of a line that is laid out as in the paper, with a column a study."""
    values = {key: text for key, text in line.items() if _OF_STUDY in key}
    if not values:
        yield line
    own = {key: text for key, text in line.items() if key not in values}
    for key, text in values.items():
        dataset, _, study = key.partition(_OF_STUDY)
        yield {**own, "dataset": dataset, "study": study, "value": text}


def _fact(about: PublishedTable, cell: dict[str, str]) -> Fact:
    found = {"paper": about.paper, "note": about.note}
    found |= {"table": about.number} if about.number else {}
    if "printed_metric" in cell:
        found = dict.fromkeys(RESULTS, "") | found | _names(cell)
    found |= cell
    doubts = " ".join(doubt.text for doubt in about.doubts if doubt.concerns(found))
    return MappingProxyType({**found, "number": _number(found), "doubt": doubts})


def _names(cell: Mapping[str, str]) -> dict[str, str]:
    """Find the names that this package has for what a cell is about, and its scale."""
    found = {"backbone": ""}
    for kind, keys in _KEYS.items():
        found |= _known(kind).get(tuple(cell[key] for key in keys), {})
    found["factor"] = _FACTORS[found["scale"]]
    return found | {"rank": cell["value"] if found["scale"] == "rank" else ""}


#: By which columns each file of names is looked up.
_KEYS: Final = {
    "studies": ("dataset", "study"),
    "networks": ("dataset", "classifier"),
    "methods": ("printed",),
    "metrics": ("printed_metric",),
}


@cache
def _known(kind: str) -> dict[tuple[str, ...], dict[str, str]]:
    keys = _KEYS[kind]
    return {tuple(line[key] for key in keys): line for line in _lines(kind)}


def _number(cell: Mapping[str, str]) -> float | None:
    """Find the plain number of a cell, the nearest there is to the decimals that are printed."""
    try:
        return float(Decimal(cell.get("value", "")) / Decimal(cell.get("factor") or 1))
    except InvalidOperation:
        return None
