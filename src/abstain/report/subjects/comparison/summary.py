"""The summary of a comparison."""

import math
from collections.abc import Iterator

from abstain.evaluation.comparison import Comparison, Estimate
from abstain.plots.words import SUPPOSED, percent, ranks_note
from abstain.report.document import (
    METHOD,
    Block,
    Cell,
    More,
    Number,
    Prose,
    Range,
    Table,
    numbers,
    rows_of,
)
from abstain.report.render.lines import narrow
from abstain.report.subjects.comparison.across import independence_said
from abstain.report.subjects.comparison.place import Place, places_of
from abstain.report.subjects.comparison.verdict import comparison_verdict, margin_lines
from abstain.report.words import first_of

#: More tables than this are lines instead.
_TABLES = 6

#: Methods named in a line before the rest is only counted.
_NAMED = 4


def summary(comparison: Comparison, *, is_complete: bool) -> Iterator[Block]:
    """Yield the verdict, and a table or a line for each metric and data set."""
    places = list(places_of(comparison))
    tables = is_complete or len(places) <= _TABLES
    yield from map(Prose, comparison_verdict(comparison))
    if said := independence_said(comparison):
        yield Prose(said, "about")
    if tables:
        yield from map(_table, places)
    else:
        yield from (Prose(_line(place)) for place in places)
        command_line = "--full prints a table of each; --out writes all of them."
        yield More("", command_line, '.frame("standings") has each.')
    yield from map(Prose, margin_lines(places, short=not tables))
    if comparison.bootstrap:
        drawn = f"{comparison.bootstrap:,} resamples drawn."
        if all(pair.valid for pair in comparison.pairs):
            yield Prose(drawn, "notes")
        else:
            test = f"{drawn} The test of the literature, on the replicates, is "
            yield More(test, "in the report only (--out).", "among the .pairs.", "notes")
    yield Prose(_footer(comparison, tables=tables), "notes")


def _line(place: Place) -> str:
    """Say in one line who leads by one metric on one data set, and who is not told from it."""
    ranked = {e.method: place.footing[e.method] for e in place.ranked}
    best, alike = (
        first_of([method for method, stands in ranked.items() if stands == wanted], _NAMED)
        for wanted in ("best", "not told apart")
    )
    if not best:
        return f"{place.label}: no method leads"
    top = place.ranked[0]
    ends = "" if math.isnan(top.low) else f" [{narrow(top.low)}, {narrow(top.high)}]"
    rest = f"; not told from it: {alike}" if alike else ""
    return f"{place.label}: best {best} {narrow(top.value)}{ends}{rest}"


def _table(place: Place) -> Table:
    level = percent(place.comparison.level)
    heads = ("Value", f"{level} interval", "Ranks", "p, best")
    title = ", ".join(filter(None, [place.head, place.where]))
    rows = (_row(place, e) for e in place.ranked)
    return Table((METHOD, *map(numbers, heads)), rows_of(rows), title=title)


def _row(place: Place, estimate: Estimate) -> tuple[Cell, ...]:
    method = estimate.method
    stands, pair = place.footing[method], place.leads.get(method)
    standing = next((s for s in place.standings if s.method == method), None)
    p: Cell = ""
    if pair is not None and stands != "best":
        p = Number(pair.adjusted, form="p", stands="tie" if stands == "not told apart" else "")
    return (
        method,
        Number(estimate.value, stands="best" if stands == "best" else ""),
        Range(estimate.low, estimate.high),
        Range(standing.rank_low, standing.rank_high, form="rank") if standing else "",
        p,
    )


def _footer(comparison: Comparison, *, tables: bool) -> str:
    said = comparison.describe_tests()
    test = f" ({said})" if said else ""
    level = percent(comparison.level)
    p_value = f"{comparison.p_value_label}-value"
    if not tables:
        return (
            f"In brackets: {level} intervals. Not told from it: by the {p_value}{test}. "
            "Values are fractions."
        )
    return (
        f"Bold: best value. p, best: {p_value} against the best{test}; ≈ not told from it. "
        f"Ranks: {level} of ranks in studies of this size, "
        f"{SUPPOSED}; {ranks_note(is_adjusted=comparison.is_adjusted)}. Values are fractions."
    )
