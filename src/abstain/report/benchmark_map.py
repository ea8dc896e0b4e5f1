"""Which method is found better than which in a study, as a table of colored cells.

A drawing of 31 x 31 cells for each study makes a page too heavy to open; `SignificanceMapDisplay`
draws the same pairs for a paper.
"""

from typing import Any

from abstain.benchmark.protocol import Study
from abstain.benchmark.results import BenchmarkResults
from abstain.plots import SignificanceMapDisplay, chosen
from abstain.report.benchmark_grid import at
from abstain.report.words import short_title


def page_map(results: BenchmarkResults, metric: str, study: Study) -> dict[str, Any] | None:
    """Return the square of one metric in one study; None where there is no pair."""
    comparison = results.comparisons[metric]
    square = SignificanceMapDisplay.from_comparison(comparison, metric, data=at(study))
    if not square.pairs:
        return None
    better = {(p.better, p.second if p.better == p.first else p.first) for p in square.pairs}
    tested = {frozenset((p.first, p.second)) for p in square.pairs}
    alpha = chosen.percent(round(1 - square.level, 10))
    return {
        "title": f"Which differences by {short_title(metric)} are more than chance",
        "caption": f"Pairs by {short_title(metric)}",
        "about": (
            "Blue: the method of the row is found better than that of the column at "
            f"{alpha} ({chosen.judged_by(square.pairs[0])}). Gray: they cannot be told apart. "
            "Empty: found worse, or not compared. The numbers of the columns are those of the "
            "rows, in the order of the ranks."
        ),
        "rows": [
            {
                "name": row,
                "cells": [_cell(row, column, better, tested) for column in square.methods],
            }
            for row in square.methods
        ],
    }


def _cell(
    row: str,
    column: str,
    better: set[tuple[str, str]],
    tested: set[frozenset[str]],
) -> str:
    if (row, column) in better:
        return "better"
    alike = frozenset((row, column)) in tested and (column, row) not in better
    return "alike" if alike else ""
