"""Methods x (metric, data set), as a paper prints a comparison."""

from collections.abc import Sequence
from dataclasses import replace

from abstain.evaluation.comparison import Comparison
from abstain.plots.words import checked, percent
from abstain.report.document import NAN, Block, Cell, Label, Prose, Table, rows_of
from abstain.report.subjects.comparison.place import Place, places_of
from abstain.report.subjects.comparison.tables import METHOD, numbers
from abstain.report.words import printed_x1000, unique


def matrix(
    comparison: Comparison, metrics: Sequence[str] | None, *, thousand: bool, intervals: bool
) -> list[Block]:
    """Return the table of the metrics asked for, or of all, and what explains its marks."""
    checked(comparison)
    wanted = comparison.metrics if metrics is None else metrics
    names = [comparison.metric_shown(name, "metrics") for name in wanted]
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
        test = comparison.judged_by(unique(place.metric for place in places))
        sentences.append(
            f"†: not told from the best at {alpha} ({test}; the pairs of a column together)."
        )
    if intervals:
        sentences.append(f"In brackets: {percent(comparison.level)} intervals.")
    notes = unique(e.note for place in places for e in place.estimates if e.note)
    return " ".join([*sentences, *([f"Notes: {'; '.join(notes)}."] if notes else [])])
