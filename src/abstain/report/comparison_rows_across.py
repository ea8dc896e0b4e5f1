"""The tables over several data sets, runs and metrics as the templates print them."""

import math
from typing import Any

from abstain.evaluation.comparison import Comparison
from abstain.plots import chosen
from abstain.report.comparison_margin import margin_asked, margin_caution, margins_in
from abstain.report.comparison_rows import cell, p_cell
from abstain.report.comparison_words import between, of_hundred, where
from abstain.typing import Split


def agreement_rows(comparison: Comparison) -> list[dict[str, Any]]:
    """Return Kendall's tau of each pair of metrics."""
    return [
        {
            "first": chosen.metric_title(a.first),
            "second": chosen.metric_title(a.second),
            "data": _place(comparison, a.data),
            "tau": _tau_cell(a.tau),
            "between": "" if math.isnan(a.low) else f"{_tau(a.low)} to {_tau(a.high)}",
        }
        for a in comparison.agreements
    ]


def stability_rows(comparison: Comparison) -> list[dict[str, Any]]:
    """Return how alike the rankings of resamples are."""
    return [
        {
            "metric": chosen.metric_title(s.metric),
            "data": where(s.data) or "all samples",
            "tau": _tau_cell(s.mean_tau),
            "between": "" if math.isnan(s.low) else f"{_tau(s.low)} to {_tau(s.high)}",
        }
        for s in comparison.stability
    ]


def _place(comparison: Comparison, data: Split | None) -> str:
    if data is None:
        return f"all {chosen.blocks_of(comparison)} together"
    return where(data) or "all samples"


def _tau_cell(value: float) -> dict[str, str]:
    # The last digits of a tau are rounding.
    return {**cell(round(value, 12)), "text": _tau(value)}


def _tau(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{value:.2f}"


def mean_rank_rows(comparison: Comparison, metric: str) -> list[dict[str, str]]:
    """Return the mean ranks, the best first."""
    across = chosen.across_in(comparison, metric)
    if across is None:
        return []
    found = zip(across.methods, across.mean_ranks, strict=True)
    return [{"method": method, "rank": f"{rank:.2f}"} for method, rank in found]


def aggregate_rows(comparison: Comparison, metric: str) -> list[dict[str, Any]]:
    """Return the interquartile means."""
    return [
        {
            "method": a.method,
            "mean": cell(a.interquartile_mean),
            "interval": between(a.low, a.high),
        }
        for a in comparison.aggregates
        if a.metric == metric
    ]


def improvement_rows(comparison: Comparison, metric: str) -> list[dict[str, Any]]:
    """Return the chances that a run of one method beats a run of another."""
    return [
        {
            "first": i.first,
            "second": i.second,
            "chance": {**cell(i.chance), "text": of_hundred(i.chance)},
            "between": _hundreds(i.low, i.high),
        }
        for i in comparison.improvements
        if i.metric == metric
    ]


def _hundreds(low: float, high: float) -> str:
    return "" if math.isnan(low) else f"{of_hundred(low)} to {of_hundred(high)}"


def margin_table(comparison: Comparison, metric: str, data: Split) -> dict[str, Any] | None:
    """Return who is at most a margin worse than the reference, if that was asked."""
    found = margins_in(comparison, metric, data)
    if not found:
        return None
    rows = [
        {
            "method": n.method,
            "worse_by": cell(n.worse_by),
            "bound": cell(n.bound),
            "p": p_cell(n.p_value),
            "adjusted": p_cell(n.adjusted),
            "found": n.non_inferior,
        }
        for n in found
    ]
    asked = chosen.sentence(margin_asked(found[0], quoted=False))
    return {"asked": asked, "caution": margin_caution(comparison), "rows": rows}
