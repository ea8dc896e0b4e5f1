"""What a comparison says, in plain words, for someone who never read a paper on it."""

import math
from collections import Counter

from abstain.evaluation.comparison import Comparison, Estimate, PairedDifference
from abstain.plots import chosen
from abstain.report.comparison_margin import margin_caution, margin_verdict
from abstain.report.comparison_words import between, listed, of_hundred
from abstain.report.words import number
from abstain.typing import Split

#: Metrics that get sentences of their own.
_METRICS = 3

#: Methods of which it is said on how many data sets the lead over them is found.
_SOMEWHERE = 4

#: Methods beside the first of which it is said on how many data sets they lead.
_NAMED = 3

#: From this Kendall's tau on two rankings are called much alike.
_ALIKE = 0.8


def comparison_verdict(comparison: Comparison) -> list[str]:
    """Return a few sentences; each is left out when the numbers behind it are not there."""
    sentences = []
    for metric in comparison.metrics[:_METRICS]:
        one = len(comparison.data) == 1
        sentences.append(_on_one(comparison, metric) if one else _on_many(comparison, metric))
    sentences += [margin_verdict(comparison, m) for m in comparison.metrics[:_METRICS]]
    sentences.append(margin_caution(comparison))
    sentences += [_agreement(comparison, m) for m in comparison.metrics[1:_METRICS]]
    return [sentence for sentence in sentences if sentence]


# ------------------------------------------------------------------------------ one data set
def _on_one(comparison: Comparison, metric: str) -> str:
    data = comparison.data[0]
    estimates = chosen.estimates_in(comparison, metric, data)
    best = chosen.best_of(estimates)
    title = chosen.metric_title(metric)
    if not best:
        return _no_best(title, estimates)
    top = chosen.by_value(estimates)[0]
    span = between(top.low, top.high)
    level = chosen.percent(top.level)
    shown = f"{number(top.value)}, {level} interval {span}" if span else number(top.value)
    extreme = "lowest" if top.lower_is_better else "highest"
    verb = "has" if len(best) == 1 else "share"
    lead = f"Of {len(estimates)} methods, {listed(best)} {verb} the {extreme} {title} ({shown})."
    return " ".join(filter(None, [lead, _lead(comparison, metric, data, best[0])]))


def _no_best(title: str, estimates: list[Estimate]) -> str:
    """Say why no method leads."""
    known = [e.method for e in estimates if not math.isnan(e.value)]
    if not known:
        return f"{title} is undefined here."
    if len(set(known)) == 1:
        return f"Only {listed(known[:1])} has a value of {title}."
    return f"By {title}, all methods are equal."


def _lead(comparison: Comparison, metric: str, data: Split, best: str) -> str:
    estimates = chosen.estimates_in(comparison, metric, data)
    pairs = chosen.pairs_in(comparison, metric, data)
    stands = chosen.footing(estimates, pairs)
    worse = [m for m, footing in stands.items() if footing == "worse"]
    alike = [m for m, footing in stands.items() if footing == "not told apart"]
    sentences = []
    if worse:
        p = _p_values(pairs, best, worse)
        sentences.append(f"Its lead over {listed(worse)} is more than chance ({p}).")
    if alike:
        p = _p_values(pairs, best, alike)
        sentences.append(f"{listed(alike)} cannot be told from it ({p}).")
    return " ".join([*sentences, _first(comparison, metric, data, best)]).strip()


def _p_values(pairs: list[PairedDifference], best: str, others: list[str]) -> str:
    """Write one adjusted p-value, or the range of several."""
    found = [chosen.against(pairs, other, best) for other in others]
    values = sorted(pair.adjusted for pair in found if pair is not None)
    low, high = chosen.p_value(values[0]), chosen.p_value(values[-1])
    if low == high:
        return chosen.said_of_p(values[0], "adjusted p")
    return f"adjusted p {low} to {high}"


def _first(comparison: Comparison, metric: str, data: Split, best: str) -> str:
    standings = chosen.standings_in(comparison, metric, data)
    own = next((s for s in standings if s.method == best), None)
    if own is None or not own.chances or math.isnan(own.chances[0]):
        return ""
    count = of_hundred(own.chances[0])
    supposed = chosen.sentence(chosen.SUPPOSED)
    return f"{supposed}, it would come first in {count} of 100 studies of this size."


# -------------------------------------------------------------------------- several data sets
def _on_many(comparison: Comparison, metric: str) -> str:
    found = {d: chosen.estimates_in(comparison, metric, d) for d in comparison.data}
    best_on = [chosen.best_of(estimates) for estimates in found.values()]
    wins = Counter(method for leading in best_on for method in leading)
    title, known = chosen.metric_title(metric), [e for es in found.values() for e in es]
    if not wins:
        return _no_best(title, known)
    extreme = "lowest" if known[0].lower_is_better else "highest"
    (best, count), *rest = wins.most_common()
    others = _others(rest, nobody=best_on.count([]))
    lead = f"“{best}” has the {extreme} {title} on {count} of {len(found)} data sets{others}."
    more = [_leads(comparison, metric, best), _friedman(comparison, metric)]
    return " ".join(filter(None, [lead, *more]))


def _others(rest: list[tuple[str, int]], *, nobody: int) -> str:
    """Account for the data sets on which another method leads, or none."""
    parts = [
        *(f"“{method}” on {count}" for method, count in rest[:_NAMED]),
        f"{len(rest) - _NAMED} more on others" if len(rest) > _NAMED else "",
        f"no method leads on {nobody}" if nobody else "",
    ]
    return "".join(f", {part}" for part in parts if part)


def _leads(comparison: Comparison, metric: str, best: str) -> str:
    """Say over whom the lead is found on all, some and none of the data sets."""
    everywhere, somewhere, nowhere = [], [], []
    for other in comparison.methods:
        pairs = [
            chosen.against(chosen.pairs_in(comparison, metric, data), other, best)
            for data in comparison.data
        ]
        tested = [pair for pair in pairs if pair is not None and not math.isnan(pair.adjusted)]
        found = sum(pair.better == best for pair in tested)
        if tested and found == len(comparison.data):
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
    said = ", than ".join(part for part in parts if part)
    return f"By more than chance it is better than {said}." if said else ""


def _friedman(comparison: Comparison, metric: str) -> str:
    across = chosen.across_in(comparison, metric)
    if across is None or math.isnan(across.p_value):
        return ""
    found = across.p_value < 1 - across.level
    than = "by more than chance" if found else "no more than chance explains"
    return f"Over all, the mean ranks differ {than} (Friedman {chosen.said_of_p(across.p_value)})."


# -------------------------------------------------------------------------------- two metrics
def _agreement(comparison: Comparison, second: str) -> str:
    first = comparison.metrics[0]
    wanted = None if len(comparison.data) > 1 else comparison.data[0]
    found = [
        a
        for a in comparison.agreements
        if {a.first, a.second} == {first, second} and a.data == wanted and not math.isnan(a.tau)
    ]
    if not found:
        return ""
    tau = found[0].tau
    how = (
        "in the same order" if tau > 1 - 1e-9 else "much alike" if tau >= _ALIKE else "differently"
    )
    names = f"{chosen.metric_title(first)} and {chosen.metric_title(second)}"
    return f"{names} rank the methods {how} (Kendall's tau {tau:.2f})."
