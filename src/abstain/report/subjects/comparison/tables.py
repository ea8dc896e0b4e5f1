"""The tables of a comparison: of one metric on one data set, and as a paper prints them all."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from abstain.evaluation.comparison import Comparison, PairedDifference, Standing
from abstain.plots.words import SUPPOSED, checked, percent, ranks_note, sentence
from abstain.report.document import (
    METHOD,
    NAN,
    Block,
    Cell,
    Column,
    Label,
    Number,
    Prose,
    Range,
    Span,
    Table,
    ends,
    numbers,
    rows_of,
)
from abstain.report.subjects.comparison.place import Place, places_of
from abstain.report.subjects.comparison.verdict import margin_asked, margin_caution
from abstain.report.words import count, printed_x1000, unique

_STANDS = {
    "best": "best",
    "not told apart": "not told apart",
    "worse": "found worse",
    "untested": "",
    "undefined": "",
}

#: Pairs that are seen at once.
_PAIRS = 12

#: More pairs than this are read by nobody: the table has those of the best method.
_MOST_PAIRS = 300

#: More ranks than this have no column each: the figure shows their chances.
_RANKS = 25


def glance_table(comparison: Comparison) -> Table:
    """Return who leads by each metric on each data set, and how surely."""
    return Table(
        (
            Column("Metric"),
            Column("Data", "name"),
            Column("Best", "name"),
            numbers("Value"),
            Column("Not told from it", "name", sort=False),
            Column("Found worse", "name", sort=False),
        ),
        rows_of(map(_glance, places_of(comparison))),
        caption="One row for each metric and data set",
        look="leads",
        sortable=True,
    )


def _glance(place: Place) -> tuple[Cell, ...]:
    top = place.ranked[0] if place.ranked else None
    best = ", ".join(place.those("best"))
    return (
        place.name,
        place.where or "all samples",
        Span(best, "best") if best else Span("none", "undefined"),
        Number(top.value, top.low, top.high) if top else Number(float("nan")),
        ", ".join(place.those("not told apart")) or None,
        ", ".join(place.those("worse")) or None,
    )


def values_table(place: Place) -> Table:
    """Return the estimates, the best first."""
    forms = unique(e.interval for e in place.ranked)
    failures = unique(count(e.failures) for e in place.ranked)
    noted, several = any(e.note for e in place.ranked), len(failures) > 1
    about = [f"{place.label}; {count(place.ranked[0].n)} samples"] if place.ranked else []
    about += [f", {failures[0]} failures"] if len(failures) == 1 else []
    about += [f"; {forms[0]}"] if len(forms) == 1 and forms[0] else []
    columns = (
        METHOD,
        numbers("Value"),
        ends(f"{percent(place.comparison.level)} interval"),
        numbers("Standard error"),
        Column("Against best"),
        *([numbers("Failures")] if several else []),
        *([Column("Note", "words", sort=False)] if noted else []),
    )
    rows: Iterator[tuple[Cell, ...]] = (
        (
            e.method,
            Number(e.value, stands="best" if place.footing[e.method] == "best" else ""),
            Range(e.low, e.high, title=e.interval),
            Number(e.standard_error),
            Span(_STANDS[place.footing[e.method]], "open"),
            *([Number(e.failures, form="count")] if several else []),
            *([e.note] if noted else []),
        )
        for e in place.ranked
    )
    return Table(
        columns,
        rows_of(rows),
        title=f"Values: {place.label}",
        caption="".join(about) or place.label,
        sortable=True,
    )


# --------------------------------------------------------------------------------------- pairs
def tested(place: Place) -> list[list[PairedDifference]]:
    """Return the pairs by each test, the one that decides first."""
    comparison, own = place.comparison, (place.metric, place.data)
    return [comparison.pairs_of(*own, test) for test in comparison.tests_of(*own)]


def share_of_pairs(methods: int) -> float:
    """Return the share of the pairs of so many methods that a table has."""
    return 1.0 if methods * (methods - 1) // 2 <= _MOST_PAIRS else 2.0 / methods


def pairs_table(place: Place, pairs: Sequence[PairedDifference]) -> Table:
    """Return the pairs by one test; of many methods those of the one that leads."""
    ahead = Label(
        "First better, of 100 studies",
        title=f"Of 100 studies of this size, {SUPPOSED}; no evidence by itself",
    )
    if place.data is None:
        share = f"First better, % of {place.comparison.block_kind}"
        ahead = Label(share, title="Ties counted half")
    first, label, shared = pairs[0], place.label, shared_note(pairs)
    shown, lead, said = pairs, place.leader, [shared] if shared else []
    if share_of_pairs(len(place.comparison.methods)) < 1:
        shown = [p for p in pairs if lead in {p.first, p.second}]
        said.append(
            f"Of {count(len(pairs))} pairs these are the {len(shown)} of “{lead}”; the table "
            "“pairs” of the results has all"
        )
    noted = not shared and any(p.note for p in shown)
    many = f"; {len(shown)} pairs, scroll for the rest" if len(shown) > _PAIRS else ""
    judged = sentence(first.test_description)
    columns = (
        Column("First", "name"),
        Column("Second", "name"),
        *map(numbers, ("Difference", "Ratio", *_p_titles(place))),
        numbers(ahead),
        *([Column("Found better", "name")] if first.valid else []),
        *([Column("Note", sort=False)] if noted else []),
    )
    return Table(
        columns,
        rows_of(_pair(p, place, noted=noted) for p in shown),
        title=f"Pairs: {label}, {first.test}",
        caption=f"{judged}; {label}. Differences and ratios are first to second{many}."
        + "".join(f" {sentence}." for sentence in said),
        look="pairs",
        sortable=True,
    )


def shared_note(pairs: Sequence[PairedDifference]) -> str:
    """Return the note of all pairs where they share one: it is said once, above them."""
    notes = unique(p.note for p in pairs)
    return sentence(notes[0].rstrip(".")) if len(notes) == 1 else ""


def _p_titles(place: Place) -> tuple[str, ...]:
    """Return the heads of the p-values: one if none is adjusted."""
    return ("p", "Adjusted p") if place.comparison.is_adjusted else ("p",)


def _p_values(p_value: float, adjusted: float, place: Place, *, is_best: bool) -> tuple[Cell, ...]:
    deciding = Number(adjusted, form="p", stands="best" if is_best else "")
    if not place.comparison.is_adjusted:
        return (deciding,)
    return Number(p_value, form="p"), deciding


def _pair(p: PairedDifference, place: Place, *, noted: bool) -> tuple[Cell, ...]:
    better: Cell = Span(p.better, "strong") if p.better else Span("neither", "undefined")
    return (
        p.first,
        p.second,
        Number(p.difference, p.low, p.high),
        None if math.isnan(p.ratio) else Number(p.ratio, p.ratio_low, p.ratio_high),
        *_p_values(p.p_value, p.adjusted, place, is_best=bool(p.better and p.valid)),
        Number(p.superiority, form="hundred"),
        *([better] if p.valid else []),
        *([p.note] if noted else []),
    )


def margin_table(place: Place) -> Table | None:
    """Return who is at most a margin worse than the reference, if that was asked."""
    if not place.margins:
        return None
    asked = sentence(margin_asked(place.margins[0], quoted=False))
    level = percent(place.comparison.level)
    heads = ("Worse by", f"At most, at {level}", *_p_titles(place))
    rows = (
        (
            n.method,
            Number(n.worse_by),
            Number(n.bound),
            *_p_values(n.p_value, n.adjusted, place, is_best=n.non_inferior),
            Span("shown", "strong") if n.non_inferior else "not shown",
        )
        for n in place.margins
    )
    return Table(
        (METHOD, *map(numbers, heads), Column("Within the margin")),
        rows_of(rows),
        title=f"Non-inferiority: {place.label}",
        caption=f"{asked}? {place.label}. {margin_caution(place.comparison)}".rstrip(),
        sortable=True,
    )


# --------------------------------------------------------------------------------------- ranks
def chances_tables(place: Place) -> list[Table]:
    """Return the chances of each rank, a table for each way in which they were found."""
    own = (place.metric, place.data)
    sources = unique(s.source for s in place.comparison.standings if (s.metric, s.data) == own)
    return [
        _chances_table(place, place.comparison.standings_of(*own, source)) for source in sources
    ]


def _chances_table(place: Place, found: Sequence[Standing]) -> Table:
    source = found[0].source
    # Over all data sets the mean of the ranks on each is not the mean of the rank over all.
    each = place.data is None and "rank then aggregate" in source
    ranks = max(len(s.rank_probabilities) for s in found)
    ranks = ranks if ranks <= _RANKS else 0
    columns = (
        METHOD,
        numbers("Rank"),
        numbers("Mean rank per data set" if each else "Mean rank"),
        ends(f"{percent(place.comparison.level)} of ranks"),
        *(numbers(str(rank + 1)) for rank in range(ranks)),
    )
    rows: Iterator[tuple[Cell, ...]] = (
        (
            s.method,
            Number(s.rank, form="rank"),
            Number(s.mean_rank, form="two"),
            Range(s.rank_low, s.rank_high, form="rank"),
            *(Number(chance, form="hundred") for chance in s.rank_probabilities[:ranks]),
        )
        for s in found
    )
    return Table(
        columns,
        rows_of(rows),
        title=f"Chances of ranks: {place.label}, {source}",
        caption=(
            f"{_asked_of_ranks(ranks)}, {SUPPOSED}; {place.label} ({source}). Ranks and chances "
            f"are {ranks_note(is_adjusted=place.comparison.is_adjusted)}."
        ),
        look="ranks",
        sortable=True,
    )


def _asked_of_ranks(columns: int) -> str:
    """Say what the table of ranks holds, with a column for each or without."""
    if columns:
        return "Of 100 studies of this size, how many would give a method each rank"
    return (
        "Where a method would stand in studies of this size (the figure shows how likely each rank "
        "is, the table “standings” of the results has the numbers)"
    )


# --------------------------------------------------------------------------------------- a paper
def matrix(
    comparison: Comparison, metrics: Sequence[str] | None, *, thousand: bool, intervals: bool
) -> list[Block]:
    """Return the table of the metrics asked for, or of all, and what explains its marks."""
    checked(comparison)
    wanted = comparison.metrics if metrics is None else metrics
    names = [comparison.metric_or_first(name, "metrics") for name in wanted]
    places = list(places_of(comparison, names))
    several = any(place.where for place in places)
    heads = [_head(place, thousand=thousand) for place in places]
    known = list(zip(places, heads, strict=True))
    rows = (
        (method, *(_cell(place, head, method, intervals=intervals) for place, head in known))
        for method in comparison.methods
    )
    many = len(comparison.data)
    table = Table(
        (METHOD, *map(numbers, [place.where for place in places] if several else heads)),
        rows_of(rows),
        spans=tuple((head, many) for head in heads[::many]) if several else (),
    )
    scaled = any(head.scale > 1 for head in heads)
    return [table, Prose(_footnote(places, scaled=scaled, intervals=intervals), "notes")]


def _head(place: Place, *, thousand: bool) -> Label:
    return replace(place.name, scale=1000 if thousand and printed_x1000(place.metric) else 1)


def _cell(place: Place, head: Label, method: str, *, intervals: bool) -> Cell:
    number = place.numbers.get(method)
    if number is None:
        return None
    shown = number if intervals else replace(number, low=NAN, high=NAN)
    return replace(shown, scale=head.scale, note="")


def _footnote(places: Sequence[Place], *, scaled: bool, intervals: bool) -> str:
    """Return the sentences under the table."""
    comparison = places[0].comparison
    sentences = ["Arrows point to where better is; bold marks the best value."]
    if scaled:
        sentences.append("Columns marked so are times 1000; other values are fractions.")
    else:
        sentences.append("Values are fractions.")
    if any(place.those("not told apart") for place in places):
        alpha = percent(round(1 - comparison.level, 10))
        test = comparison.describe_tests(unique(place.metric for place in places))
        sentences.append(
            f"†: not told from the best at {alpha} ({test}; the pairs of a column together)."
        )
    if intervals:
        sentences.append(f"In brackets: {percent(comparison.level)} intervals.")
    notes = unique(e.note for place in places for e in place.estimates if e.note)
    return " ".join([*sentences, *([f"Notes: {'; '.join(notes)}."] if notes else [])])
