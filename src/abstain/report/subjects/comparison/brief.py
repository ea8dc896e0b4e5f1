"""A comparison in brief, for a terminal of 60 columns or more."""

import math
from collections.abc import Iterator

from abstain.evaluation.comparison import Comparison, Estimate
from abstain.plots.words import SUPPOSED, percent, ranks_note
from abstain.report.document import (
    METHOD,
    Block,
    Cell,
    Findings,
    Number,
    Prose,
    Range,
    Table,
    by_reader,
    numbers,
    rows_of,
)
from abstain.report.render.lines import narrow
from abstain.report.subjects.comparison.across import independence_said
from abstain.report.subjects.comparison.place import Place, places_of
from abstain.report.subjects.comparison.verdict import comparison_verdict, margin_lines
from abstain.report.words import first_of, remarks

#: More tables than this are lines instead.
_TABLES = 6

#: Methods named in a line before the rest is only counted.
_NAMED = 4

_GAP = Prose("")


def brief(comparison: Comparison, *, full: bool) -> Iterator[Block]:
    """Yield the verdict, a table or a line for each metric and data set, and the findings."""
    places = list(places_of(comparison))
    tables = full or len(places) <= _TABLES
    yield from map(Prose, comparison_verdict(comparison))
    if said := independence_said(comparison):
        yield Prose(said, "about")
    yield _GAP
    if tables:
        for place in places:
            yield from (_table(place), _GAP)
    else:
        yield from (Prose(_line(place)) for place in places)
        where = "--full prints a table of each; --out leaves all of them."
        yield from by_reader(where, '.frame("standings") has each.', "about")
        yield _GAP
    if lines := margin_lines(places, short=not tables):
        yield from (*map(Prose, lines), _GAP)
    yield Findings(remarks(comparison.findings), whole=full)
    if comparison.bootstrap:
        yield from _drawn(comparison)
    yield Prose(_footer(comparison, tables=tables), "about")


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


def _drawn(comparison: Comparison) -> tuple[Prose, ...]:
    """Say how much was resampled, and where the test of the literature is."""
    said = f"{comparison.bootstrap:,} resamples drawn."
    if all(pair.valid for pair in comparison.pairs):
        return (Prose(said, "about"),)
    more = f"{said} The test of the literature, on the replicates, is "
    return by_reader(f"{more}in the report only (--out).", f"{more}among the .pairs.", "about")


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
    said = comparison.judged_by()
    test = f" ({said})" if said else ""
    level = percent(comparison.level)
    p_value = f"{comparison.p_name}-value"
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
