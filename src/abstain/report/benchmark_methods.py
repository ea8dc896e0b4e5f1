"""One method of a benchmark, as the templates print it."""

import math
from collections.abc import Mapping
from typing import Any

from abstain.benchmark.results import BenchmarkResults, Chosen, MethodFacts
from abstain.plots import chosen
from abstain.report.benchmark_grid import Grid, ranking_metrics
from abstain.report.benchmark_tables import (
    Keys,
    arm_title,
    grid_head,
    kind_title,
    link,
    mean_said,
    numeral,
    page_entry,
    page_studies,
    plain_table,
    words,
)
from abstain.report.glossary import linked
from abstain.report.words import number, short_title


def page_method(
    results: BenchmarkResults,
    method: MethodFacts,
    grids: Mapping[str, Grid],
    keys: Keys,
    means: Mapping[str, Mapping[str, float]],
) -> dict[str, Any]:
    """Return what a method is, what was chosen for it, and its values in all studies."""
    meaning = chosen.sentence(method.meaning.rstrip("."))
    added = "Added to these runs from a file; higher means more trusted"
    return {
        **keys.named(method),
        "meaning": f"{meaning or (added if method.added else 'No description was given')}.",
        "source": linked(method.source) if method.source else [],
        "trained": f"{arm_title(method.arm)}.",
        "mean": _mean(results, method.name, means),
        "across": _across(method.name, grids, keys),
        "chosen": _chosen(results, method.name),
    }


def _mean(results: BenchmarkResults, name: str, means: Mapping[str, Mapping[str, float]]) -> str:
    said = [
        f"{short_title(metric)} {mean_said(means[metric][name])}"
        for metric in ranking_metrics(results)
        if name in means.get(metric, {})
    ]
    return f"mean rank by {', by '.join(said)}" if said else ""


def _across(name: str, grids: Mapping[str, Grid], keys: Keys) -> dict[str, Any] | None:
    """Return the rows of a method in all grids, which have the same studies."""
    studies = max((grid.studies for grid in grids.values()), key=len, default=())
    whole = next((grid for grid in grids.values() if grid.studies == studies), None)
    if whole is None:
        return None
    rows = []
    for grid in grids.values():
        line = next((line for line in grid.lines if line.method.name == name), None)
        if line is not None:
            own = dict(zip(grid.studies, line.entries, strict=True))
            entries = [page_entry(own.get(study)) for study in studies]
            rows.append({"title": grid_head(grid), "entries": entries})
    return {
        "spans": [{"title": kind_title(kind), "size": size} for kind, size in whole.spans],
        "studies": page_studies(studies, keys),
        "rows": rows,
    }


def _chosen(results: BenchmarkResults, name: str) -> dict[str, Any] | None:
    """Return the setting of each metric, with the values of those that were tried."""
    own = [one for one in results.chosen if one.method == name]
    if not own:
        return None
    title = f"Settings of “{name}” chosen on validation data"
    heads = [
        ("Metric", False),
        ("Chosen", False),
        ("On validation data", True),
        ("Tried", False),
    ]
    rows = [
        [
            link("", short_title(one.metric)),
            words(f"{one.arm}, {one.setting}" if one.setting else one.arm),
            numeral(one.value),
            words(_tried(one)),
        ]
        for one in own
    ]
    over = (
        "means over the seeds, as fractions" if any(one.seeds > 1 for one in own) else "fractions"
    )
    caption = f"{title}: {over}."
    notes = dict.fromkeys(one.note for one in own if one.note)
    return plain_table(title, " ".join([caption, *notes]), heads, rows)


def _tried(one: Chosen) -> str:
    if len(one.tried) < 2:
        return "nothing else"
    return "; ".join(
        f"{label or 'the only one'}: {'–' if math.isnan(value) else number(value)}"
        for label, value in one.tried.items()
    )
