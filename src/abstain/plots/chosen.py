"""Which records of a comparison a figure or a table shows: looked up, ordered, never computed."""

import math
from collections.abc import Iterable
from typing import Literal

from abstain.errors import InputError, UnknownNameError, suggest
from abstain.evaluation.comparison import (
    AcrossData,
    Comparison,
    Estimate,
    PairedDifference,
    Standing,
)
from abstain.metrics import metric_named
from abstain.tables import split_name
from abstain.typing import Split

#: The name of the mean over several runs among the estimates.
_MEAN = "mean"

#: Curves drawn in one figure: more cannot be told apart.
_CURVES = 8

#: What the draws behind ranks and chances take for granted: they lie around the values found, so
#: a lead that is chance is drawn as a real one.
SUPPOSED = "if the values found were the true ones"

#: Goes with every range of ranks.
NOT_ADJUSTED = "not adjusted for the number of pairs, p is"

#: How a method stands to the best of its metric and data set.
Footing = Literal["best", "not told apart", "worse", "untested", "undefined"]


def checked(comparison: object) -> Comparison:
    """Refuse what is no comparison."""
    if not isinstance(comparison, Comparison):
        msg = f"`comparison` must be what `compare` returned; got {type(comparison).__name__}"
        raise InputError(msg)
    return comparison


def metric_in(comparison: Comparison, metric: str | None, argument: str = "metric") -> str:
    """Return a metric of the comparison, by default its first."""
    if metric is None:
        return comparison.metrics[0]
    if metric not in comparison.metrics:
        hint = suggest(str(metric), comparison.metrics)
        msg = f"`{argument}`: the comparison has no metric {metric!r}.{hint}"
        raise UnknownNameError(msg)
    return metric


def data_in(comparison: Comparison, data: Split | None) -> Split:
    """Return a data set of the comparison; None asks for its only one."""
    if data is None and len(comparison.data) == 1:
        return comparison.data[0]
    if data not in comparison.data or data is None:
        known = "; ".join(split_name(split) for split in comparison.data)
        msg = f"`data` must be one of the data sets of the comparison ({known}); got {data!r}"
        raise UnknownNameError(msg)
    return data


def data_or_all(comparison: Comparison, data: Split | None) -> Split | None:
    """Return a data set, or None for all together where there are several."""
    if data is None and len(comparison.data) > 1:
        return None
    return data_in(comparison, data)


def run_shown(comparison: Comparison) -> str:
    """Return the run whose estimates are shown: the only one, or the mean over them."""
    return comparison.runs[0] if len(comparison.runs) == 1 else _MEAN


def blocks_of(comparison: Comparison) -> str:
    """Return what ranks the methods once in all that is said over all: data sets, else runs."""
    return "data sets" if len(comparison.data) > 1 else "runs"


def scores_of(comparison: Comparison) -> str:
    """Return what an aggregate over all is taken over."""
    if len(comparison.runs) == 1:
        return "data sets"
    several = len(comparison.data) > 1
    return f"runs of {len(comparison.data)} data sets" if several else "runs"


def with_curves(comparison: Comparison) -> tuple[str, ...]:
    """Return the methods whose curves are drawn, the best ones, in the order of all."""
    standings = standings_in(comparison, comparison.metrics[0], comparison.data[0])
    first = dict.fromkeys([*(s.method for s in standings), *comparison.methods])
    kept = list(first)[:_CURVES]
    return tuple(m for m in comparison.methods if m in kept)


def estimates_in(comparison: Comparison, metric: str, data: Split) -> list[Estimate]:
    """Return the estimates of one metric on one data set, in the order of the methods."""
    run = run_shown(comparison)
    found = {
        e.method: e
        for e in comparison.estimates
        if (e.metric, e.data, e.run) == (metric, data, run)
    }
    return [found[method] for method in comparison.methods if method in found]


def by_value(estimates: Iterable[Estimate]) -> list[Estimate]:
    """Put the best estimate first, undefined ones last; equal ones stay as they were."""

    def key(estimate: Estimate) -> tuple[bool, float]:
        value = estimate.value if estimate.lower_is_better else -estimate.value
        return math.isnan(value), 0.0 if math.isnan(value) else value

    return sorted(estimates, key=key)


def best_of(estimates: Iterable[Estimate]) -> list[str]:
    """Return the methods that none betters; none where all are equal or undefined."""
    known = [e for e in by_value(estimates) if not math.isnan(e.value)]
    if len({_compared(e.value) for e in known}) < 2:
        return []
    return [e.method for e in known if _compared(e.value) == _compared(known[0].value)]


def _compared(value: float) -> float:
    """Drop the last digits, in which equal values differ by the order of summation."""
    return float(f"{value:.12g}")


def deciding(comparison: Comparison, metric: str, data: Split | None) -> str:
    """Return the test that decides: that of the comparison, or the first valid one without it."""
    known = [p for p in comparison.pairs if (p.metric, p.data) == (metric, data) and p.valid]
    # "influence" asks for the test "influence function", "bootstrap" for "paired bootstrap".
    wanted = (p.test for p in known if comparison.test and comparison.test in p.test)
    return next(wanted, known[0].test if known else "")


def known_tests(comparison: Comparison, metric: str, data: Split | None) -> list[str]:
    """Return the tests of one metric on one data set, the one that decides first."""
    names = dict.fromkeys(p.test for p in comparison.pairs if (p.metric, p.data) == (metric, data))
    first = deciding(comparison, metric, data)
    return sorted(names, key=lambda name: name != first)


def pairs_in(
    comparison: Comparison, metric: str, data: Split | None, test: str | None = None
) -> list[PairedDifference]:
    """Return the pairs of one metric on one data set by one test, by default the deciding one."""
    if test is None:
        test = deciding(comparison, metric, data)
    wanted = (metric, data, test)
    return [p for p in comparison.pairs if (p.metric, p.data, p.test) == wanted]


def standings_in(
    comparison: Comparison, metric: str, data: Split | None, source: str | None = None
) -> list[Standing]:
    """Return the standings of one source, by default the first, the best rank first."""
    found = [s for s in comparison.standings if (s.metric, s.data) == (metric, data)]
    wanted = found[0].source if found and source is None else source
    return sorted((s for s in found if s.source == wanted), key=lambda s: _last_if_nan(s.rank))


def _last_if_nan(value: float) -> float:
    return math.inf if math.isnan(value) else value


def across_in(comparison: Comparison, metric: str) -> AcrossData | None:
    """Return the ranking over all data sets, if there is one."""
    return next((a for a in comparison.across if a.metric == metric), None)


def against(pairs: Iterable[PairedDifference], method: str, best: str) -> PairedDifference | None:
    """Return the pair of a method and the best one; of two one-sided ones, the best's lead."""
    both = [p for p in pairs if {p.first, p.second} == {method, best}]
    return next((p for p in both if p.first == best), both[0] if both else None)


def footing(estimates: Iterable[Estimate], pairs: Iterable[PairedDifference]) -> dict[str, Footing]:
    """Tell for each method how it stands to the best: the one place where ties are decided."""
    known, tested = list(estimates), list(pairs)
    best = best_of(known)
    return {e.method: _footing(e, best, tested) for e in known}


def _footing(estimate: Estimate, best: list[str], pairs: list[PairedDifference]) -> Footing:
    if math.isnan(estimate.value):
        return "undefined"
    if estimate.method in best:
        return "best"
    pair = against(pairs, estimate.method, best[0]) if best else None
    if pair is None or math.isnan(pair.adjusted):
        return "untested"
    return "worse" if pair.better == best[0] else "not told apart"


def metric_title(name: str) -> str:
    """Return the name of a metric that people read."""
    try:
        title = metric_named(name).title
    except UnknownNameError:
        return name
    return sentence(title)


def sentence(words: str) -> str:
    """Start with a capital letter.

    Examples
    --------
    >>> sentence("with 5 runs this test finds nothing")
    'With 5 runs this test finds nothing'
    """
    return words[:1].upper() + words[1:]


def of_data(data: Split | None) -> str:
    """Return the end of a title that names the data set; empty for the only one."""
    if data is None:
        return ", all data sets"
    return f", {split_name(data)}" if data else ""


def percent(level: float) -> str:
    """Write a level as people say it: 95 %."""
    return f"{100 * level:g} %"


def p_value(value: float) -> str:
    """Write a p-value as a reader needs it.

    Examples
    --------
    >>> p_value(0.2345), p_value(0.0123), p_value(0.00001), p_value(float("nan"))
    ('0.23', '0.012', '< 0.001', 'undefined')
    """
    if math.isnan(value):
        return "undefined"
    if value < 0.001:
        return "< 0.001"
    return f"{value:.2g}" if value < 0.995 else "1"


def said_of_p(value: float, name: str = "p") -> str:
    """Write "p = 0.012" or "p < 0.001"."""
    text = p_value(value)
    return f"{name} {text}" if text.startswith("<") else f"{name} = {text}"


def said_of_tests(comparison: Comparison, metrics: Iterable[str] | None = None) -> str:
    """Say by which test and adjustment the pairs of each data set are judged."""
    names = comparison.metrics if metrics is None else metrics
    said = (
        judged_by(pairs[0])
        for metric in names
        for data in comparison.data
        if (pairs := pairs_in(comparison, metric, data))
    )
    return "; ".join(dict.fromkeys(said))


_ADJUSTED = {"holm": "adjusted by Holm", "bonferroni": "adjusted by Bonferroni"}


def judged_by(pair: PairedDifference) -> str:
    """Say by which test and adjustment a pair was judged."""
    return f"{pair.test}, {_ADJUSTED.get(pair.adjustment, 'not adjusted')}"
