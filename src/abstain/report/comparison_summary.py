"""From a comparison to one plain dict: everything the templates print, formatted."""

import math
from collections.abc import Sequence
from typing import Any

from abstain.evaluation.comparison import Comparison, PairedDifference
from abstain.plots import chosen
from abstain.report.comparison_curves import curves_of, curves_said, methods_of
from abstain.report.comparison_facts import facts_of, findings_of
from abstain.report.comparison_figures import Figure, figures_of, find_figure
from abstain.report.comparison_glossary import word_entries
from abstain.report.comparison_over_all import aggregate_said, over_all_words
from abstain.report.comparison_rows import (
    estimate_rows,
    glance_rows,
    pair_rows,
    standing_rows,
)
from abstain.report.comparison_rows_across import (
    aggregate_rows,
    agreement_rows,
    improvement_rows,
    margin_table,
    mean_rank_rows,
    stability_rows,
)
from abstain.report.comparison_verdict import comparison_verdict
from abstain.report.comparison_words import arrow_of, where
from abstain.report.glossary import metric_entries, score_entries
from abstain.report.render.svg import inline_svg
from abstain.report.summary import Origin
from abstain.typing import Split

#: Figures and rows of pairs on one page: beyond these a page is too heavy to open.
_FIGURES, _PAIRS = 90, 4000

#: With more methods the chances of their ranks stand below the figure, not beside it.
_BESIDE = 8

#: Letters of a name that a column of a table has room for.
_NAME = 18


def summarize_comparison(comparison: Comparison, origin: Origin) -> dict[str, Any]:
    """Return what the templates of the page print.

    Parameters
    ----------
    comparison : Comparison
        The only source of numbers.
    origin : Origin
        The words around them.

    Returns
    -------
    dict
        Strings, flags, drawn figures and lists of dicts; no number is computed here.
    """
    data = comparison.data[: _most_data(comparison)]
    found = figures_of(comparison, data)
    figures = [_drawn(f"figure-{i}", f) for i, f in enumerate(found)]
    return {
        "title": origin.title,
        "command": origin.command,
        "notes": [*origin.notes, *_left_out(comparison, data)],
        "facts": facts_of(comparison, origin.source),
        "verdict": comparison_verdict(comparison),
        "findings": findings_of(comparison),
        "metrics_shown": [
            _metric(i, name, comparison) for i, name in enumerate(comparison.metrics)
        ],
        "data_shown": [{"key": i, "label": where(d) or "all samples"} for i, d in enumerate(data)],
        "glance": glance_rows(comparison),
        "views": [_view(comparison, m, d, figures) for m in comparison.metrics for d in data],
        "overall": [o for m in comparison.metrics if (o := _overall(comparison, m, figures))],
        "changes": _changes(comparison, figures),
        "agreements": agreement_rows(comparison),
        "stability": stability_rows(comparison),
        "curves": [c for i, d in enumerate(data) if (c := curves_of(comparison, i, d, figures))],
        "methods": methods_of(comparison),
        "beside": "side" if len(comparison.methods) <= _BESIDE else "stack",
        "longest": min(max(map(len, comparison.methods)), _NAME),
        "level": chosen.percent(comparison.level),
        "supposed": chosen.SUPPOSED,
        "not_adjusted": chosen.NOT_ADJUSTED,
        **over_all_words(comparison),
        "curves_drawn": curves_said(comparison),
        "words": word_entries(comparison),
        "metrics": metric_entries(list(comparison.metrics)),
        "score_glossary": score_entries(list(comparison.methods), ()),
    }


def _most_data(comparison: Comparison) -> int:
    """Return how many data sets the page has room for."""
    figures = 3 * len(comparison.metrics) + 5
    pairs = max(len(comparison.pairs) // len(comparison.data), 1)
    return max(min(_FIGURES // figures, _PAIRS // pairs), 1)


def _left_out(comparison: Comparison, data: Sequence[Split]) -> list[str]:
    if len(data) == len(comparison.data):
        return []
    shown = f"{len(data)} of {len(comparison.data)}"
    words = (
        "The first table and what is over all data sets are complete; figures and tables in "
        f"detail are of the first {shown} data sets. `--figures svg` leaves the figures of all."
    )
    return [words]


def _drawn(key: str, figure: Figure) -> dict[str, Any]:
    display: Any = figure.display
    title, _, more = display.title.partition("\n")
    return {
        "key": key,
        "kind": figure.kind,
        "metric": figure.metric,
        "data": figure.data,
        "title": title,
        "more": chosen.sentence(more.removeprefix("(").removesuffix(")")),
        "svg": inline_svg(display, key),
        "ranks": getattr(display, "ranks", {}),
        "metrics": [
            chosen.metric_title(getattr(display, name, "")) for name in ("first", "second")
        ],
    }


def _view(
    comparison: Comparison, metric: str, data: Split, figures: list[dict[str, Any]]
) -> dict[str, Any]:
    """Collect all of one metric on one data set."""
    i, j = comparison.metrics.index(metric), comparison.data.index(data)
    tables = _pair_tables(comparison, metric, data)
    named = [chosen.metric_title(metric), where(data)]
    return {
        "key": f"{i}-{j}",
        "metric": i,
        "data": j,
        "label": ", ".join(filter(None, named)),
        "forest": find_figure(figures, "forest", metric, data),
        "estimates": estimate_rows(comparison, metric, data),
        "map": find_figure(figures, "significance", metric, data),
        "pairs": [t for t in tables if t["valid"]],
        "literature": [t for t in tables if not t["valid"]],
        "margin": margin_table(comparison, metric, data),
        "blobs": find_figure(figures, "ranks", metric, data),
        "standings": standing_rows(comparison, metric, data),
    }


def _pair_tables(comparison: Comparison, metric: str, data: Split | None) -> list[dict[str, Any]]:
    """Return the pairs by each test, the one that decides first."""
    tests = chosen.known_tests(comparison, metric, data)
    ahead = {
        "head": "First better, of 100 studies",
        "about": f"Of 100 studies of this size, {chosen.SUPPOSED}; no evidence by itself",
    }
    if data is None:
        share = f"% of {chosen.blocks_of(comparison)}"
        ahead = {"head": f"First better, {share}", "about": "Ties counted half"}
    return [
        {**_pair_table(chosen.pairs_in(comparison, metric, data, test)), "ahead": ahead}
        for test in tests
    ]


def _pair_table(pairs: list[PairedDifference]) -> dict[str, Any]:
    first = pairs[0]
    notes = list(dict.fromkeys(p.note for p in pairs if p.note))
    return {
        "test": first.test,
        "judged": chosen.sentence(chosen.judged_by(first)),
        "valid": first.valid,
        # Said once above the table where all rows share it.
        "note": chosen.sentence(notes[0].rstrip("."))
        if len(notes) == 1 and all(p.note for p in pairs)
        else "",
        "rows": pair_rows(pairs),
    }


def _overall(
    comparison: Comparison, metric: str, figures: list[dict[str, Any]]
) -> dict[str, Any] | None:
    across = chosen.across_in(comparison, metric)
    standings = standing_rows(comparison, metric, None)
    if across is None and not standings:
        return None
    i = comparison.metrics.index(metric)
    return {
        "key": f"{i}-all",
        "metric": i,
        "label": chosen.metric_title(metric),
        "diagram": find_figure(figures, "critical-difference", metric, None),
        "note": chosen.sentence(across.note) if across else "",
        "mean_ranks": mean_rank_rows(comparison, metric),
        "pairs": _pair_tables(comparison, metric, None),
        "profile": find_figure(figures, "profile", metric, None),
        "aggregates": aggregate_rows(comparison, metric),
        "aggregated": aggregate_said(comparison, metric),
        "improvements": improvement_rows(comparison, metric),
        "blobs": find_figure(figures, "ranks", metric, None),
        "standings": standings,
    }


def _changes(comparison: Comparison, figures: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the figures of two rankings, each with its table."""
    return [
        {
            **figure,
            "place": "" if figure["data"] is None else comparison.data.index(figure["data"]),
            "columns": [
                "Method",
                *(f"Rank by {title}" for title in figure["metrics"]),
            ],
            "rows": [
                [method, *("–" if math.isnan(r) else f"{r:g}" for r in ranks)]
                for method, ranks in figure["ranks"].items()
            ],
        }
        for figure in figures
        if figure["kind"] == "rank-change"
    ]


def _metric(index: int, name: str, comparison: Comparison) -> dict[str, Any]:
    found = [e for e in comparison.estimates if e.metric == name]
    return {"key": index, "label": f"{chosen.metric_title(name)} {arrow_of(found)}"}
