"""What is said of a margin: who is at most that much worse than the reference."""

import math
from collections.abc import Sequence

from abstain.evaluation.comparison import Comparison, NonInferiorityRow
from abstain.plots.words import said_of_p, sentence
from abstain.report.subjects.comparison.place import Place
from abstain.report.words import listed, number

#: Methods of which it is said on how many data sets they are within the margin.
_SOMEWHERE = 4


def margin_asked(found: NonInferiorityRow, *, quoted: bool = True) -> str:
    """Write what is asked of a method: at most so much worse than the reference."""
    reference = f"“{found.reference}”" if quoted else found.reference
    return f"at most {found.margin:g} worse than {reference}"


def margin_line(found: NonInferiorityRow) -> str:
    """Say of one method how much worse it is, how much at most, and what that shows.

    Examples
    --------
    >>> one = NonInferiorityRow(
    ...     "augrc", (), "pe", "msr", 0.002, 0.0012, 0.0031, 0.2, 0.4, non_inferior=False
    ... )
    >>> print(margin_line(one))
    pe: worse than msr by 0.001200, at most 0.003100 (margin 0.002, adjusted p = 0.4): not shown to
    be within the margin
    """
    name, reference, margin = found.method, found.reference, f"{found.margin:g}"
    if math.isnan(found.worse_by):
        return f"{name}: undefined (margin {margin})"
    how = "better" if found.worse_by < 0 else "worse"
    p = said_of_p(found.adjusted, "adjusted p")
    shown = "within the margin" if found.non_inferior else "not shown to be within the margin"
    return (
        f"{name}: {how} than {reference} by {number(abs(found.worse_by))}, {_bound(found)} "
        f"(margin {margin}, {p}): {shown}"
    )


def _bound(found: NonInferiorityRow) -> str:
    if math.isnan(found.bound):
        return "no bound"
    if found.bound < 0:
        return f"at least {number(-found.bound)}"
    return f"at most {number(found.bound)}{' worse' if found.worse_by < 0 else ''}"


def margin_lines(places: Sequence[Place], *, short: bool) -> list[str]:
    """Return a line for each method held against the reference, or for each place."""
    lines = []
    for place in places:
        if not place.margins:
            continue
        asked = f"{place.label}, {margin_asked(place.margins[0], quoted=False)}?"
        within = [n.method for n in place.margins if n.non_inferior]
        others = [n.method for n in place.margins if not n.non_inferior]
        said = [
            f"shown for {', '.join(within)}" if within else "",
            f"not shown for {', '.join(others)}" if others else "",
        ]
        if short:
            lines.append(f"{asked} {sentence('; '.join(filter(None, said)))}.")
        else:
            lines += [asked, *(f"  {margin_line(n)}" for n in place.margins)]
    return lines


def margin_verdict(places: Sequence[Place]) -> str:
    """Return the sentence of the headline on one metric; empty when no margin was asked."""
    found = [n for place in places for n in place.margins]
    if not found:
        return ""
    counts = {
        method: sum(n.non_inferior for n in found if n.method == method)
        for method in dict.fromkeys(n.method for n in found)
    }
    many = len(places)
    everywhere = [m for m, count in counts.items() if count == many]
    some = [f"for “{m}” on {n} of {many}" for m, n in counts.items() if 0 < n < many]
    nowhere = [m for m, count in counts.items() if count == 0]
    on_all, on_none = (" on all data sets", " on any") if many > 1 else ("", "")
    parts = [
        f"for {listed(everywhere)}{on_all}" if everywhere else "",
        *some[:_SOMEWHERE],
        f"for {len(some) - _SOMEWHERE} more on some" if len(some) > _SOMEWHERE else "",
    ]
    shown = ", ".join(filter(None, parts))
    others = f"not shown for {listed(nowhere)}{on_none}" if nowhere else ""
    said = "; ".join(filter(None, [f"shown {shown}" if shown else "", others]))
    return f"By {places[0].title}, {margin_asked(found[0])}: {said}."


def margin_caution(comparison: Comparison) -> str:
    """Say that one margin is for all metrics; empty when there is one metric or no margin."""
    if len({n.metric for n in comparison.non_inferiority}) < 2:
        return ""
    margin = f"{comparison.non_inferiority[0].margin:g}"
    return f"One margin, {margin}, is applied to every metric named, whatever its scale."
