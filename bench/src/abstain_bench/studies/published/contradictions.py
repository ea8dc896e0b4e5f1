"""What cannot be right inside of the papers, found from the cells by rules that others pass."""

from collections.abc import Iterator, Sequence
from itertools import groupby, permutations
from typing import Any, Final

from abstain.metrics import METRICS
from abstain_bench.published import Fact, table, tables
from abstain_bench.studies.published.columns import (
    Columns,
    PrintedColumn,
    columns_in,
    reversals,
    shared,
)
from abstain_bench.studies.published.orders import ELSEWHERE, OF_SECOND, TWICE_RANKED, parts
from abstain_bench.studies.published.relations import repeated

#: How studies of new classes are called in the tables.
_NEW: Final = "ncs:"

_REWARDS, _CALIBRATION = "fd_shifts_table_5", "fd_shifts_table_10"
_FINETUNED: Final = "population_aurc_table_1"


def conflicts() -> Iterator[dict[str, Any]]:
    """Find everything that does not fit, paper by paper."""
    yield from _gaps()
    yield from _other_runs()
    yield from _off_the_grid()
    yield from _quoted()
    yield from _swapped()
    yield from _other_methods()
    yield from _left_blank()
    yield from _printed_twice()
    yield from _too_uncertain()


def _found(name: str, where: str, cells: int, found: str) -> dict[str, Any]:
    return {"source": tables()[name].source, "where": where, "cells": cells, "found": found}


# --------------------------------------------------------------------------------- FD-Shifts
def _gaps() -> Iterator[dict[str, Any]]:
    """Find numbers of tables that are skipped."""
    for _, own in groupby(tables().values(), key=lambda one: one.paper):
        known = {int(one.number): one for one in own if one.number.isdigit()}
        for number in range(1, max(known, default=0)):
            if number not in known:
                near = known[number - 1]
                yield {
                    **_found(near.name, f"table {number}", 0, "the text has no such table"),
                    "source": near.cited,
                }


def _other_runs() -> Iterator[dict[str, Any]]:
    """Find numbers that two tables print differently, by what was tested."""
    apart = [row for row in repeated() if not row["same"]]
    for (name, classifier, dataset), rows in groupby(
        apart, key=lambda row: (row["table"], row["classifier"], row["dataset"])
    ):
        mine = list(rows)
        one = mine[0]
        metric, here, there = METRICS[one["metric"]].title, one["printed"], one["elsewhere"]
        said = f"{metric} {here:.4g} here and {there:.4g} there"
        where = f"{dataset} ({classifier}), against {_numbered(row['against'] for row in mine)}"
        yield _found(name, where, len(mine), f"numbers of other runs: {said}")


def _off_the_grid() -> Iterator[dict[str, Any]]:
    """Find chosen rewards that are not among those that the text says were tried."""
    grids = [cell for cell in table("settings") if cell["setting"].startswith("reward grid")]
    cells = [cell for cell in table(_REWARDS) if cell["setting"] == "reward"]
    for cell in cells:
        tried = {
            float(value)
            for grid in grids
            if grid["dataset"] in {"", cell["dataset"]}
            for value in grid["value"].split(";")
        }
        if cell["number"] not in tried:
            said = ", ".join(f"{value:g}" for value in sorted(tried))
            where = f"{cell['dataset']}, {cell['printed']}"
            found = f"the reward {cell['value']} is none of those that were tried: {said}"
            yield _found(_REWARDS, where, 1, found)


def _quoted() -> Iterator[dict[str, Any]]:
    """Find numbers that the prose quotes of a table and that stand otherwise there."""
    title = table(_CALIBRATION)[0]["printed_metric"]
    short = "".join(word[0] for word in title.split())
    for quote in table("settings"):
        if not quote["setting"].startswith(f"{short} quoted"):
            continue
        for cell in table(_CALIBRATION):
            same = all(cell[k] == quote[k] for k in ("task", "classifier", "method"))
            if same and cell["study"] == "iid" and cell["number"] != quote["number"]:
                found = f"{cell['value']} here, {quote['value']} in appendix {quote['source']}"
                yield _found(_CALIBRATION, _at(cell), 1, found)


# ------------------------------------------------------------------------------------- AUGRC
def _swapped() -> Iterator[dict[str, Any]]:
    """Find data sets whose new-class columns fit those of the other paper in another order."""
    ours, theirs = next(iter(parts().values()))[0], columns_in(ELSEWHERE)
    for dataset in dict.fromkeys(column.dataset for column in ours):
        new = [c for c in ours if c.dataset == dataset and _NEW in c.study and c in theirs]
        turned = {
            order: sum(_turned(ours, theirs, *pair) for pair in zip(new, order, strict=True))
            for order in permutations(new)
        }
        best = min(turned, key=lambda order: turned[order])
        if turned[best] < turned[tuple(new)]:
            names = [[c.study.rpartition(":")[2] for c in order] for order in (new, best)]
            cells = sum(len(ours[column]) for column in new)
            found = (
                f"columns {', '.join(names[0])} rank as {', '.join(names[1])} of "
                f"{tables()[ELSEWHERE].source} do: {turned[best]} reversed pairs, and "
                f"{turned[tuple(new)]} as labeled"
            )
            yield _found(TWICE_RANKED, f"{dataset}, new classes", cells, found)


def _turned(ours: Columns, theirs: Columns, own: PrintedColumn, other: PrintedColumn) -> int:
    ((_, pairs),) = shared({other: ours[own]}, theirs)
    return reversals(pairs)[0]


def _other_methods() -> Iterator[dict[str, Any]]:
    """Find methods that one of two tables of the same networks lacks."""
    names = [{cell["printed"] for cell in table(name)} for name in (TWICE_RANKED, OF_SECOND)]
    more, lacking = sorted(names[0] - names[1]), sorted(names[1] - names[0])
    if more or lacking:
        cells = sum(cell["printed"] in more for cell in table(TWICE_RANKED))
        found = f"has {', '.join(more)} where {tables()[OF_SECOND].source} has {', '.join(lacking)}"
        yield _found(TWICE_RANKED, "methods", cells, found)


# -------------------------------------------------------------------------------- fine-tuning
def _tuned() -> dict[tuple[str, str], dict[str, Fact]]:
    found: dict[tuple[str, str], dict[str, Fact]] = {}
    for cell in table(_FINETUNED):
        found.setdefault((cell["classifier"], cell["dataset"]), {})[cell["printed"]] = cell
    return found


def _left_blank() -> Iterator[dict[str, Any]]:
    """Find objectives that have no number where others have."""
    columns = _tuned()
    every = list(dict.fromkeys(name for own in columns.values() for name in own))
    for (network, dataset), own in columns.items():
        if blank := [name for name in every if name not in own]:
            where = f"{dataset}, {network}"
            yield _found(_FINETUNED, where, len(blank), f"no number of {' and '.join(blank)}")


def _printed_twice() -> Iterator[dict[str, Any]]:
    """Find two objectives with one mean and one deviation."""
    for (network, dataset), own in _tuned().items():
        seen: dict[tuple[str, str], str] = {}
        for name, cell in own.items():
            number = (cell["value"], cell["spread"])
            if other := seen.setdefault(number, name) if number in seen else "":
                found = f"{other} and {name} have one mean and one deviation: {' ± '.join(number)}"
                yield _found(_FINETUNED, f"{dataset}, {network}", 2, found)
            seen[number] = name


def _too_uncertain() -> Iterator[dict[str, Any]]:
    """Find networks of which no gain over the first objective exceeds a deviation."""
    for (network, dataset), own in _tuned().items():
        first, *others = own.values()
        gains = [first["number"] - cell["number"] for cell in others]
        factor = float(first["factor"])
        spreads = [float(cell["spread"]) / factor for cell in others]
        if all(gain < spread for gain, spread in zip(gains, spreads, strict=True)):
            found = (
                f"the largest gain over {first['printed']}, {max(gains) * factor:.3g}, is below "
                f"the least deviation, {min(spreads) * factor:.3g}"
            )
            yield _found(_FINETUNED, f"{dataset}, {network}", len(others), found)


def _at(cell: Fact) -> str:
    return f"{cell['dataset']} {cell['study']} ({cell['classifier']}), {cell['printed']}"


def _numbered(names: Iterator[str] | Sequence[str]) -> str:
    numbers = sorted({int(tables()[name].number) for name in names})
    return f"table{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
