"""What a benchmark found, in plain sentences: who leads where, and where a baseline is enough."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from abstain.benchmark.data.exposures import KINDS
from abstain.benchmark.protocol import Study
from abstain.benchmark.results import BenchmarkResults
from abstain.plots import chosen
from abstain.report.benchmark_grid import (
    Grid,
    baseline,
    checked_results,
    grid_of,
    mean_ranks,
    ranking_metrics,
)
from abstain.report.comparison_words import listed
from abstain.report.words import short_title

#: How a kind of study is said in a sentence.
_ON: Final = {
    "iid": "on i.i.d. data",
    "corruption": "under corruption",
    "sub-class": "under sub-class shift",
    "new-class": "with semantically new classes",
    "far-new-class": "with far new classes",
}


def benchmark_verdict(results: BenchmarkResults) -> list[str]:
    """Say who leads on which source of failures, and where the baseline is not beaten.

    Parameters
    ----------
    results : BenchmarkResults
        What `results_of` returned.

    Returns
    -------
    list of str
        Sentences, by the first of AUGRC and AURC that was computed.

    Raises
    ------
    InputError
        If `results` is something else.

    Examples
    --------
    >>> from abstain.report.benchmark_verdict import benchmark_verdict
    >>> benchmark_verdict({})
    Traceback (most recent call last):
    abstain.errors.InputError: `results` must be what `results_of` returned; got dict
    """
    metrics = ranking_metrics(checked_results(results))
    if not metrics:
        return ["No metric was computed."]
    grid = grid_of(results, metrics[0])
    if len(grid.lines) < 2:
        return [f"Only {len(grid.lines)} method was compared, so nothing leads."]
    return [
        _leads(grid),
        *_baseline(grid, baseline(results)),
        *_overall(results, metrics),
    ]


def _leads(grid: Grid) -> str:
    """Say for each kind of study who is best."""
    kinds = dict.fromkeys(study.kind for study in grid.studies)
    clauses = [clause for kind in kinds if (clause := _of_kind(grid, kind))]
    if not clauses:
        return f"No method leads: {short_title(grid.metric)} tells none from another."
    return f"By {short_title(grid.metric)}, {'; '.join(clauses)}."


def _of_kind(grid: Grid, kind: str) -> str:
    columns = [i for i, study in enumerate(grid.studies) if study.kind == kind]
    best = [grid.standing(i) for i in columns]
    on = _ON.get(kind, f"on {KINDS.get(kind, kind)}")
    if len(columns) == 1:
        return (
            f"{on} {listed(best[0])} {_verb(best[0])}{_alike(grid, columns[0])}" if best[0] else ""
        )
    wins = Counter(name for names in best for name in names)
    if not wins:
        return ""
    most = max(wins.values())
    names = [name for name, count in wins.items() if count == most]
    lead = f"{on} {listed(names)} {_verb(names)}"
    each = " each" if len(names) > 1 else ""
    return f"{lead} in {most} of {len(columns)} studies{each}"


def _verb(names: Sequence[str]) -> str:
    return "leads" if len(names) == 1 else "lead"


def _alike(grid: Grid, column: int) -> str:
    alike = grid.standing(column, "not told apart")
    if not alike:
        return ""
    others = sum(entry is not None for entry in (line.entries[column] for line in grid.lines)) - 1
    if len(alike) == others:
        return f" (none of {others} others is told from it)"
    verb = "is" if len(alike) == 1 else "are"
    return f" ({len(alike)} of {others} others {verb} not told from it)"


def _baseline(grid: Grid, name: str) -> list[str]:
    """Say where the baseline is best, and where it is not told from the best."""
    columns = [(study, grid.of(study).get(name)) for study in grid.studies]
    known = [(study, entry) for study, entry in columns if entry and entry.stands != "undefined"]
    if not known:
        return []
    wins = [study for study, entry in known if entry.stands == "best"]
    ties = [study for study, entry in known if entry.stands == "not told apart"]
    best, alike = _in(wins, len(known)), _in(ties, len(known))
    return [f"The baseline “{name}” is best {best} and not told from the best {alike}."]


def _in(studies: Sequence[Study], of: int) -> str:
    if not studies:
        return "in none" if of > 1 else "in no study"
    if len(studies) == of:
        return f"in all {of} studies" if of > 1 else "in the only study"
    return f"in {len(studies)} of {of} studies ({listed([s.title for s in studies])})"


def _overall(results: BenchmarkResults, metrics: Sequence[str]) -> list[str]:
    """Say who has the best mean rank, and whether the metrics agree on it."""
    by: dict[str, list[str]] = {}
    for metric in metrics:
        for name, rank in list(mean_ranks(results, metric).items())[:1]:
            by.setdefault(name, []).append(f"{short_title(metric)} ({rank:.2f})")
    if not by:
        return []
    said = [f"“{name}” by {' and '.join(ranks)}" for name, ranks in by.items()]
    across = chosen.across_in(results.comparisons[metrics[0]], metrics[0])
    note = f" {chosen.sentence(across.note).rstrip('.')}." if across and across.note else ""
    return [f"The best mean rank over all studies has {' and '.join(said)}.{note}"]
