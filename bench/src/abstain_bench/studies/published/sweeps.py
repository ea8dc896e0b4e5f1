"""What cannot be right in the tables by threshold, and in the prose about them."""

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from itertools import groupby
from typing import Any, Final

from abstain_bench.published import Fact, table, tables

#: The tables, each of one model.
_SWEEPS: Final = ("cwsa_table_1", "cwsa_table_2", "cwsa_table_3")
_PROSE: Final = "cwsa_text"

#: A line of a table: what it prints, by the name of the column.
Line = Mapping[str, Fact]


def lines(name: str) -> dict[str, Line]:
    """Return the lines of a table by their threshold."""
    return {
        threshold: {cell["printed"]: cell for cell in cells}
        for threshold, cells in groupby(table(name), key=lambda cell: str(cell["threshold"]))
    }


def impossible() -> Iterator[dict[str, Any]]:
    """Find the lines that no data have, and the prose that no line bears out."""
    for name in _SWEEPS:
        for rule, says in ((_above, _ABOVE), (_not_whole, _NOT_WHOLE)):
            broken = [threshold for threshold, line in lines(name).items() if rule(line)]
            if broken:
                yield {
                    "source": f"{tables()[name].source} ({table(name)[0]['model']})",
                    "where": f"thresholds {', '.join(broken)}",
                    "cells": len(broken),
                    "found": says,
                }
    yield from _unborne()


_ABOVE: Final = "CWSA is above coverage x CWSA+, which no data allow"
_NOT_WHOLE: Final = "no whole number of right answers gives the selective accuracy"


def _above(line: Line) -> bool:
    """Tell whether CWSA is above its bound by more than the digits printed can explain."""
    score, plus, coverage = (line[column] for column in ("CWSA", "CWSA+", "Coverage"))
    most = (coverage["number"] + _unit(coverage)) * (plus["number"] + _unit(plus))
    return bool(score["number"] - _unit(score) > most)


def _not_whole(line: Line) -> bool:
    """Tell whether no count of right answers among the accepted is the printed share."""
    share, coverage = line["Sel. Accuracy"], line["Coverage"]
    samples = int(coverage["dataset"].partition("n = ")[2].partition(",")[0])
    accepted = round(coverage["number"] * samples)
    right = round(share["number"] * accepted)
    near = (count / accepted for count in (right - 1, right, right + 1))
    return all(abs(found - share["number"]) > _unit(share) for found in near)


def _unit(cell: Fact) -> float:
    """Return a unit of the last digit that is printed: how far a number that is cut may be off."""
    exponent = Decimal(cell["value"]).as_tuple().exponent
    return 1.0000001 * 10.0 ** int(exponent)


# ------------------------------------------------------------------------------------- prose
def _unborne() -> Iterator[dict[str, Any]]:
    """Find numbers of the prose that no line of the table of the same model has."""
    of_model = {table(name)[0]["model"]: name for name in _SWEEPS}
    for told in table(_PROSE):
        name = of_model.get(told["model"])
        cells = [] if name is None else _meant(name, told)
        if cells and not any(_fits(told, cell, cells) for cell in cells):
            near = min(cells, key=lambda cell: abs(cell["number"] - told["number"]))
            said = f"{told['qualifier']} {told['value']}".strip()
            yield {
                "source": f"{tables()[_PROSE].cited}, section {told['section']}",
                "where": f"{told['model']}, {near['printed']}",
                "cells": 1,
                "found": f"the prose says {said}, the nearest cell of the table {near['value']}",
            }


def _meant(name: str, told: Fact) -> list[Fact]:
    """Return the cells that a number of the prose may be about."""
    every = [cell for cell in table(name) if cell["metric"] == told["metric"]]
    places: dict[str, Callable[[], list[Fact]]] = {
        "highest": lambda: every[-1:],
        "lowest": lambda: every[:1],
    }
    if told["threshold"] in places:
        return places[told["threshold"]]()
    exact = [cell for cell in every if _same(cell["threshold"], told["threshold"])]
    return exact or every


def _same(threshold: str, told: str) -> bool:
    return told.replace(".", "", 1).isdigit() and float(threshold) == float(told)


def _fits(told: Fact, cell: Fact, cells: list[Fact]) -> bool:
    """Tell whether a cell is what the prose says, to the digits of the prose."""
    words = told["qualifier"]
    if words == "above":
        return bool(cell["number"] > told["number"])
    if ("peak" in words or "maximum" in words) and cell["number"] < max(c["number"] for c in cells):
        return False
    # "About" allows one more unit of the last digit.
    reach = (2 if "about" in words else 1) * max(_unit(told), _unit(cell))
    return bool(abs(cell["number"] - told["number"]) <= reach)
