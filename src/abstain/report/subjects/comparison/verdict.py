"""What a comparison says, in plain words, for someone who never read a paper on it."""

import math
from collections import Counter
from collections.abc import Sequence

from abstain.evaluation.comparison import Comparison, Estimate, NonInferiorityRow, pairs_with_best
from abstain.plots.words import SUPPOSED, metric_title, p_value, percent, said_of_p, sentence
from abstain.report.subjects.comparison.place import Place, places_of
from abstain.report.words import between, listed, number, of_hundred

#: Metrics that get sentences of their own.
_METRICS = 3

#: Methods of which it is said on how many data sets a lead over them, or a margin, is found.
_SOMEWHERE = 4

#: Methods beside the first of which it is said on how many data sets they lead.
_NAMED = 3

#: From this Kendall's tau on two rankings are called much alike.
_ALIKE = 0.8


def comparison_verdict(comparison: Comparison) -> list[str]:
    """Return a few sentences; each is left out when the numbers behind it are not there."""
    metrics = comparison.metrics[:_METRICS]
    everywhere = [list(places_of(comparison, [metric])) for metric in metrics]
    sentences = [
        *(_on_many(places) if len(places) > 1 else _on_one(places[0]) for places in everywhere),
        *map(margin_verdict, everywhere),
        margin_caution(comparison),
        *(_agreement(comparison, metric) for metric in metrics[1:]),
    ]
    return [sentence for sentence in sentences if sentence]


# ------------------------------------------------------------------------------ one data set
def _on_one(place: Place) -> str:
    if not place.best:
        return _no_best(place.title, place.estimates)
    top = place.ranked[0]
    span = between(top.low, top.high)
    level = percent(top.level)
    shown = f"{number(top.value)}, {level} interval {span}" if span else number(top.value)
    extreme = "lowest" if top.lower_is_better else "highest"
    verb = "has" if len(place.best) == 1 else "share"
    lead = (
        f"Of {len(place.estimates)} methods, {listed(place.best)} {verb} the {extreme} "
        f"{place.title} ({shown})."
    )
    worse, alike = place.those("worse"), place.those("not told apart")
    sentences = [
        lead,
        f"Its lead over {listed(worse)} is more than chance ({_p_values(place, worse)})."
        if worse
        else "",
        f"{listed(alike)} cannot be told from it ({_p_values(place, alike)})." if alike else "",
        _first(place),
    ]
    return " ".join(filter(None, sentences))


def _no_best(title: str, estimates: Sequence[Estimate]) -> str:
    """Say why no method leads."""
    known = [e.method for e in estimates if not math.isnan(e.value)]
    if not known:
        return f"{title} is undefined here."
    if len(set(known)) == 1:
        return f"Only {listed(known[:1])} has a value of {title}."
    return f"By {title}, all methods are equal."


def _p_values(place: Place, others: Sequence[str]) -> str:
    """Write one of the p-values that decide, or the range of several."""
    name = place.comparison.p_value_label
    values = sorted(place.leads[other].adjusted for other in others if other in place.leads)
    low, high = p_value(values[0]), p_value(values[-1])
    if low == high:
        return said_of_p(values[0], name)
    return f"{name} {low} to {high}"


def _first(place: Place) -> str:
    """Say how often the best would come first."""
    own = next((s for s in place.standings if s.method == place.best[0]), None)
    if own is None or not own.rank_probabilities or math.isnan(own.rank_probabilities[0]):
        return ""
    count = of_hundred(own.rank_probabilities[0])
    supposed = sentence(SUPPOSED)
    return f"{supposed}, it would come first in {count} of 100 studies of this size."


# -------------------------------------------------------------------------- several data sets
def _on_many(places: Sequence[Place]) -> str:
    wins = Counter(method for place in places for method in place.best)
    title, known = places[0].title, [e for place in places for e in place.estimates]
    if not wins:
        return _no_best(title, known)
    extreme = "lowest" if known[0].lower_is_better else "highest"
    (best, count), *rest = wins.most_common()
    nobody = sum(not place.best for place in places)
    others = [
        *(f"“{method}” on {count}" for method, count in rest[:_NAMED]),
        f"{len(rest) - _NAMED} more on others" if len(rest) > _NAMED else "",
        f"no method leads on {nobody}" if nobody else "",
    ]
    on = ", ".join([f"{count} of {len(places)} data sets", *filter(None, others)])
    lead = f"“{best}” has the {extreme} {title} on {on}."
    return " ".join(filter(None, [lead, _leads(places, best), _friedman(places[0])]))


def _leads(places: Sequence[Place], best: str) -> str:
    """Say over whom the lead is found on all, some and none of the data sets."""
    everywhere, somewhere, nowhere = [], [], []
    known = [pairs_with_best(place.pairs, best) for place in places]
    for other in places[0].comparison.methods:
        pairs = [leads[other] for leads in known if other in leads]
        tested = [pair for pair in pairs if not math.isnan(pair.adjusted)]
        found = sum(pair.better == best for pair in tested)
        if tested and found == len(places):
            everywhere.append(other)
        elif found:
            somewhere.append(f"“{other}” on {found}")
        elif tested:
            nowhere.append(other)
    parts = [
        f"{listed(everywhere)} on all of them" if everywhere else "",
        *somewhere[:_SOMEWHERE],
        f"{len(somewhere) - _SOMEWHERE} more on some" if len(somewhere) > _SOMEWHERE else "",
        f"{listed(nowhere)} on none" if nowhere else "",
    ]
    said = ", than ".join(filter(None, parts))
    return f"By more than chance it is better than {said}." if said else ""


def _friedman(place: Place) -> str:
    across = place.comparison.mean_ranks_of(place.metric)
    if across is None or math.isnan(across.p_value):
        return ""
    found = across.p_value < 1 - across.level
    than = "by more than chance" if found else "no more than chance explains"
    return f"Over all, the mean ranks differ {than} (Friedman {said_of_p(across.p_value)})."


# -------------------------------------------------------------------------------- two metrics
def _agreement(comparison: Comparison, second: str) -> str:
    first = comparison.metrics[0]
    wanted = None if len(comparison.data) > 1 else comparison.data[0]
    taus = [
        a.tau
        for a in comparison.agreements
        if {a.first, a.second} == {first, second} and a.data == wanted and not math.isnan(a.tau)
    ]
    if not taus:
        return ""
    alike = "much alike" if taus[0] >= _ALIKE else "differently"
    how = "in the same order" if taus[0] > 1 - 1e-9 else alike
    names = f"{metric_title(first)} and {metric_title(second)}"
    return f"{names} rank the methods {how} (Kendall's tau {taus[0]:.2f})."


# ---------------------------------------------------------------------------------- the margin
def margin_asked(found: NonInferiorityRow, *, quoted: bool = True) -> str:
    """Write what is asked of a method: at most so much worse than the reference."""
    reference = f"“{found.reference}”" if quoted else found.reference
    return f"at most {found.margin:g} worse than {reference}"


def margin_line(found: NonInferiorityRow, p_name: str = "adjusted p") -> str:
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
    p = said_of_p(found.adjusted, p_name)
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
            lines += [asked, *_margin_lines_of(place)]
    return lines


def _margin_lines_of(place: Place) -> list[str]:
    return [f"  {margin_line(row, place.comparison.p_value_label)}" for row in place.margins]


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
