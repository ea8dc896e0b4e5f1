"""Find impossible numbers in the tables by threshold, and prose that contradicts the tables."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from itertools import groupby
from typing import Any, Final

from abstain_bench.published import Fact, table, tables

#: Tables by threshold, one for each model.
_TABLES: Final = ("cwsa_table_1", "cwsa_table_2", "cwsa_table_3")
_PROSE: Final = "cwsa_text"

#: Cells of one threshold by the title of their column.
Line = Mapping[str, Fact]


def lines_by_threshold(name: str) -> dict[str, Line]:
    """Return the lines of a table by threshold."""
    return {
        threshold: {cell["printed"]: cell for cell in cells}
        for threshold, cells in groupby(table(name), key=lambda cell: str(cell["threshold"]))
    }


def find_impossible_numbers() -> Iterator[dict[str, Any]]:
    """Yield the lines that no data can have, and the prose that no line supports."""
    for name in _TABLES:
        for is_violated, finding in (
            (_is_above_bound, "CWSA is above coverage x CWSA+, which is impossible"),
            (_is_no_proportion, "no count of correct answers gives the selective accuracy"),
        ):
            thresholds = [
                threshold
                for threshold, line in lines_by_threshold(name).items()
                if is_violated(line)
            ]
            if thresholds:
                yield {
                    "source": f"{tables()[name].source} ({table(name)[0]['model']})",
                    "location": f"thresholds {', '.join(thresholds)}",
                    "cells": len(thresholds),
                    "finding": finding,
                }
    yield from _unsupported_prose()


def _is_above_bound(line: Line) -> bool:
    """Return whether CWSA exceeds coverage x CWSA+ by more than the rounding."""
    cwsa, cwsa_plus, coverage = (line[column] for column in ("CWSA", "CWSA+", "Coverage"))
    bound = (coverage["number"] + _unit(coverage)) * (cwsa_plus["number"] + _unit(cwsa_plus))
    return bool(cwsa["number"] - _unit(cwsa) > bound)


def _is_no_proportion(line: Line) -> bool:
    """Return whether no number of correct answers gives the printed selective accuracy."""
    accuracy, coverage = line["Sel. Accuracy"], line["Coverage"]
    n_samples = int(coverage["dataset"].partition("n = ")[2].partition(",")[0])
    n_accepted = round(coverage["number"] * n_samples)
    n_correct = round(accuracy["number"] * n_accepted)
    return all(
        abs(count / n_accepted - accuracy["number"]) > _unit(accuracy)
        for count in (n_correct - 1, n_correct, n_correct + 1)
    )


def _unit(cell: Fact) -> float:
    """Return a unit of the last printed digit, the largest error of a truncated number."""
    exponent = Decimal(cell["value"]).as_tuple().exponent
    return 1.0000001 * 10.0 ** int(exponent)


# ------------------------------------------------------------------------------------- prose
def _unsupported_prose() -> Iterator[dict[str, Any]]:
    """Yield the numbers of the prose that the table of the same model does not contain."""
    table_by_model = {table(name)[0]["model"]: name for name in _TABLES}
    for quote in table(_PROSE):
        name = table_by_model.get(quote["model"])
        cells = [] if name is None else _quoted_cells(name, quote)
        if cells and not any(_is_consistent(quote, cell, cells) for cell in cells):
            nearest = min(cells, key=lambda cell: abs(cell["number"] - quote["number"]))
            text = f"{quote['qualifier']} {quote['value']}".strip()
            yield {
                "source": f"{tables()[_PROSE].cited}, section {quote['section']}",
                "location": f"{quote['model']}, {nearest['printed']}",
                "cells": 1,
                "finding": (
                    f"the prose has {text}, the nearest cell of the table {nearest['value']}"
                ),
            }


def _quoted_cells(name: str, quote: Fact) -> list[Fact]:
    """Return the cells of a table that a number of the prose may refer to."""
    cells = [cell for cell in table(name) if cell["metric"] == quote["metric"]]
    if quote["threshold"] == "highest":
        return cells[-1:]
    if quote["threshold"] == "lowest":
        return cells[:1]
    matching = [c for c in cells if _is_same_threshold(c["threshold"], quote["threshold"])]
    return matching or cells


def _is_same_threshold(printed: str, quoted: str) -> bool:
    return quoted.replace(".", "", 1).isdigit() and float(printed) == float(quoted)


def _is_consistent(quote: Fact, cell: Fact, cells: list[Fact]) -> bool:
    """Return whether a cell equals the quoted number to the digits of the prose."""
    qualifier = quote["qualifier"]
    if qualifier == "above":
        return bool(cell["number"] > quote["number"])
    is_maximum_quoted = "peak" in qualifier or "maximum" in qualifier
    if is_maximum_quoted and cell["number"] < max(c["number"] for c in cells):
        return False
    # "About" allows an additional unit of the last digit.
    n_units = 2 if "about" in qualifier else 1
    tolerance = n_units * max(_unit(quote), _unit(cell))
    return bool(abs(cell["number"] - quote["number"]) <= tolerance)
