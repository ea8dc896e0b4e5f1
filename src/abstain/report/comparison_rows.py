"""The tables of a comparison as the templates print them: strings, and numbers to sort by."""

import math
from typing import Any

from abstain.evaluation.comparison import BandOf, Comparison, PairedDifference
from abstain.plots import chosen
from abstain.plots.bands import whole
from abstain.report.comparison_words import arrow_of, between, of_hundred, ranks_between, where
from abstain.report.words import count, number
from abstain.typing import Split

#: Rows of a table of a band for each method; the files of figures have every point.
_POINTS = 10

_STANDS = {
    "best": "best",
    "not told apart": "not told apart",
    "worse": "found worse",
    "untested": "",
    "undefined": "",
}


def cell(value: float) -> dict[str, str]:
    """Return a number as it is shown and as it is."""
    return {"text": number(value), "exact": "" if math.isnan(value) else repr(float(value))}


def p_cell(value: float) -> dict[str, str]:
    """Return a p-value as it is shown and as it is."""
    return {**cell(value), "text": chosen.p_value(value)}


def estimate_rows(comparison: Comparison, metric: str, data: Split) -> list[dict[str, Any]]:
    """Return the estimates, the best first."""
    found = chosen.by_value(chosen.estimates_in(comparison, metric, data))
    stands = chosen.footing(found, chosen.pairs_in(comparison, metric, data))
    return [
        {
            "method": e.method,
            "value": cell(e.value),
            "best": stands[e.method] == "best",
            "interval": between(e.low, e.high),
            "error": cell(e.standard_error),
            "stands": _STANDS[stands[e.method]],
            "n": count(e.n),
            "failures": count(e.failures),
            "form": e.interval,
            "note": e.note,
        }
        for e in found
    ]


def pair_rows(pairs: list[PairedDifference]) -> list[dict[str, Any]]:
    """Return the pairs, in their order."""
    return [
        {
            "first": p.first,
            "second": p.second,
            "difference": cell(p.difference),
            "interval": between(p.low, p.high),
            "ratio": cell(p.ratio),
            "ratio_interval": between(p.ratio_low, p.ratio_high),
            "p": p_cell(p.p_value),
            "adjusted": p_cell(p.adjusted),
            "superiority": {**cell(p.superiority), "text": of_hundred(p.superiority)},
            "better": p.better,
            "note": p.note,
        }
        for p in pairs
    ]


def standing_rows(comparison: Comparison, metric: str, data: Split | None) -> list[dict[str, Any]]:
    """Return a table of the chances of each rank for each way in which they were found."""
    sources = dict.fromkeys(
        s.source for s in comparison.standings if (s.metric, s.data) == (metric, data)
    )
    return [_standing_table(comparison, metric, data, source) for source in sources]


def _standing_table(
    comparison: Comparison, metric: str, data: Split | None, source: str
) -> dict[str, Any]:
    found = chosen.standings_in(comparison, metric, data, source)
    rows = [
        {
            "method": s.method,
            "rank": "" if math.isnan(s.rank) else f"{s.rank:g}",
            "mean": "" if math.isnan(s.mean_rank) else f"{s.mean_rank:.2f}",
            "between": ranks_between(s.rank_low, s.rank_high),
            "chances": [{**cell(chance), "text": of_hundred(chance)} for chance in s.chances],
        }
        for s in found
    ]
    heads = list(range(1, max((len(s.chances) for s in found), default=0) + 1))
    # Over all data sets the mean of the ranks on each is not the mean of the rank over all.
    each = data is None and "rank then aggregate" in source
    mean = "Mean rank per data set" if each else "Mean rank"
    return {"source": source, "heads": heads, "rows": rows, "mean": mean}


def glance_rows(comparison: Comparison) -> list[dict[str, Any]]:
    """Return who leads by each metric on each data set, and how surely."""
    return [
        _glance(comparison, metric, data)
        for metric in comparison.metrics
        for data in comparison.data
    ]


def _glance(comparison: Comparison, metric: str, data: Split) -> dict[str, Any]:
    found = chosen.estimates_in(comparison, metric, data)
    stands = chosen.footing(found, chosen.pairs_in(comparison, metric, data))
    top = chosen.by_value(found)[0] if found else None
    by = {kind: [m for m, s in stands.items() if s == kind] for kind in set(stands.values())}
    return {
        "metric": f"{chosen.metric_title(metric)}\N{NO-BREAK SPACE}{arrow_of(found)}",
        "data": where(data) or "all samples",
        "best": by.get("best", []),
        "value": cell(top.value if top else math.nan),
        "interval": between(top.low, top.high) if top else "",
        "alike": by.get("not told apart", []),
        "worse": by.get("worse", []),
    }


def band_rows(bands: list[BandOf], kind: str) -> list[dict[str, Any]]:
    """Return a few points of each band, evenly chosen from its grid."""
    return [row for band in bands for row in _band_rows(band, kind)]


def _band_rows(band: BandOf, kind: str) -> list[dict[str, Any]]:
    curve = getattr(band, kind)
    speaks = whole(curve)
    step = max(len(curve.coverage) // _POINTS, 1)
    # From the right: full coverage is the point that everyone looks for.
    kept = range(len(curve.coverage) - 1, -1, -step)
    return [
        {
            "method": band.method,
            "coverage": cell(float(curve.coverage[i])),
            "risk": cell(float(curve.risk[i])),
            "pointwise": between(float(curve.low[i]), float(curve.high[i])),
            "whole": between(float(curve.low_all[i]), float(curve.high_all[i]))
            if speaks[i]
            else "",
        }
        for i in reversed(kept)
    ]
