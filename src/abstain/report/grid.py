"""Metrics x scores of each split, as the Markdown and LaTeX tables print them."""

from collections.abc import Sequence
from dataclasses import dataclass

from abstain.errors import UnknownNameError, suggest
from abstain.evaluation.records import Evaluation, Result
from abstain.report.interval_words import footnotes
from abstain.report.pivot import Pivot, pivot
from abstain.report.words import title_of, unique
from abstain.typing import Split


@dataclass(frozen=True, eq=False)
class Grid:
    """The table of one split.

    Attributes
    ----------
    split : Split
        Which part of the data.
    scores : list of str
        The columns.
    rows : list of (metric name, list of Result or None)
        One result for each column, None where there is none.
    best : frozenset
        As in `Pivot`.
    """

    split: Split
    scores: list[str]
    rows: list[tuple[str, list[Result | None]]]
    best: frozenset[tuple[Split, str, str]]


def grids(evaluation: Evaluation, metrics: Sequence[str] | None) -> list[Grid]:
    """Return one grid a split, of the metrics asked for or of all."""
    found = pivot(evaluation)
    wanted = found.metrics if metrics is None else [_known(name, found) for name in metrics]
    return [_grid(split, wanted, found) for split in found.splits]


def _known(name: str, found: Pivot) -> str:
    if name not in found.metrics:
        msg = f"the evaluation has no metric {name!r}.{suggest(name, found.metrics)}"
        raise UnknownNameError(msg)
    return name


def _grid(split: Split, metrics: list[str], found: Pivot) -> Grid:
    rows = [(m, [found.results.get((split, s, m)) for s in found.scores]) for m in metrics]
    present = [(metric, results) for metric, results in rows if any(results)]
    return Grid(split, found.scores, present, found.best)


def is_best(grid: Grid, result: Result) -> bool:
    """Tell whether no other score of the split betters a result."""
    return (result.split, result.score, result.metric) in grid.best


def conventions(tables: list[Grid], *, intervals: bool = False) -> list[str]:
    """Return the sentences of the footnote."""
    results = [r for grid in tables for _, row in grid.rows for r in row if r is not None]
    named = {title_of(r.metric): r.convention for r in results if r.convention}
    sentences = [
        "Values are fractions; arrows point to where better is; bold marks the best score.",
        "Tied samples are accepted or rejected together; the order of rows never matters.",
    ]
    if named:
        listed = "; ".join(f"{title}: {convention}" for title, convention in named.items())
        sentences.append(f"Conventions: {listed}.")
    reasons = unique(r.reason for r in results if r.reason)
    if reasons:
        sentences.append(f"Undefined: {'; '.join(reasons)}.")
    return [*sentences, *footnotes(results)] if intervals else sentences
