"""What is said of a margin: who is at most that much worse than the reference."""

import math

from abstain.evaluation.comparison import Comparison, NonInferiority
from abstain.plots import chosen
from abstain.report.comparison_words import listed
from abstain.report.words import number
from abstain.typing import Split

#: Methods of which it is said on how many data sets they are within the margin.
_SOMEWHERE = 4


def margins_in(comparison: Comparison, metric: str, data: Split) -> list[NonInferiority]:
    """Return the methods held against the reference by one metric on one data set."""
    return [n for n in comparison.non_inferiority if (n.metric, n.data) == (metric, data)]


def margin_line(found: NonInferiority) -> str:
    """Say of one method how much worse it is, how much at most, and what that shows.

    Examples
    --------
    >>> one = NonInferiority(
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
    p = chosen.said_of_p(found.adjusted, "adjusted p")
    shown = "within the margin" if found.non_inferior else "not shown to be within the margin"
    return (
        f"{name}: {how} than {reference} by {number(abs(found.worse_by))}, {_bound(found)} "
        f"(margin {margin}, {p}): {shown}"
    )


def _bound(found: NonInferiority) -> str:
    if math.isnan(found.bound):
        return "no bound"
    if found.bound < 0:
        return f"at least {number(-found.bound)}"
    return f"at most {number(found.bound)}{' worse' if found.worse_by < 0 else ''}"


def margin_summary(comparison: Comparison, metric: str, data: Split) -> str:
    """Say in one line who is within the margin; nothing when that was not asked."""
    found = margins_in(comparison, metric, data)
    within = [n.method for n in found if n.non_inferior]
    others = [n.method for n in found if not n.non_inferior]
    parts = [
        f"shown for {', '.join(within)}" if within else "",
        f"not shown for {', '.join(others)}" if others else "",
    ]
    return "; ".join(part for part in parts if part)


def margin_asked(found: NonInferiority, *, quoted: bool = True) -> str:
    """Write what is asked of a method: at most so much worse than the reference."""
    reference = f"“{found.reference}”" if quoted else found.reference
    return f"at most {found.margin:g} worse than {reference}"


def margin_verdict(comparison: Comparison, metric: str) -> str:
    """Return the sentence of the headline; empty when no margin was asked."""
    found = [n for n in comparison.non_inferiority if n.metric == metric]
    if not found:
        return ""
    title, many = chosen.metric_title(metric), len(comparison.data)
    counts = {
        method: sum(n.non_inferior for n in found if n.method == method)
        for method in dict.fromkeys(n.method for n in found)
    }
    everywhere = [m for m, count in counts.items() if count == many]
    some = [f"for “{m}” on {n} of {many}" for m, n in counts.items() if 0 < n < many]
    nowhere = [m for m, count in counts.items() if count == 0]
    on_all, on_none = (" on all data sets", " on any") if many > 1 else ("", "")
    parts = [
        f"for {listed(everywhere)}{on_all}" if everywhere else "",
        *some[:_SOMEWHERE],
        f"for {len(some) - _SOMEWHERE} more on some" if len(some) > _SOMEWHERE else "",
    ]
    shown = ", ".join(part for part in parts if part)
    others = f"not shown for {listed(nowhere)}{on_none}" if nowhere else ""
    said = "; ".join(part for part in (f"shown {shown}" if shown else "", others) if part)
    return f"By {title}, {margin_asked(found[0])}: {said}."


def margin_caution(comparison: Comparison) -> str:
    """Say that one margin is for all metrics; empty when there is one metric or no margin."""
    known = {n.metric for n in comparison.non_inferiority}
    if len(known) < 2:
        return ""
    margin = f"{comparison.non_inferiority[0].margin:g}"
    return f"One margin, {margin}, is applied to every metric named, whatever its scale."
