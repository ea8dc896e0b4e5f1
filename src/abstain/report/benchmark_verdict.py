"""What a benchmark found, in plain sentences: who leads where, and where a baseline is enough."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from abstain.benchmark.data.exposures import KINDS
from abstain.benchmark.protocol import Study
from abstain.benchmark.results import BenchmarkResults
from abstain.evaluation.comparison import AcrossData
from abstain.plots import chosen
from abstain.report.benchmark_grid import (
    Grid,
    baseline,
    checked_results,
    grid_of,
    mean_ranks,
    ranking_metrics,
)
from abstain.report.benchmark_tables import mean_said
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
        *_overall(results, metrics),
        _leads(grid),
        *_baseline(grid, baseline(results)),
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
    return f"{lead} in {most} of {len(columns)} studies{each}{_alone(grid, columns)}"


def _verb(names: Sequence[str]) -> str:
    return "leads" if len(names) == 1 else "lead"


def is_tested(grid: Grid, column: int) -> bool:
    """Tell whether the methods of a study were tested against its best."""
    return bool(grid.standing(column, "worse") or grid.standing(column, "not told apart"))


def _alone(grid: Grid, columns: Sequence[int]) -> str:
    """Say in how many studies the lead is more than chance."""
    if not any(is_tested(grid, i) for i in columns):
        return " (not tested)"
    shared: tuple[chosen.Footing, ...] = ("not told apart", "untested", "undefined")
    alone = sum(
        len(grid.standing(i)) == 1 and not any(grid.standing(i, how) for how in shared)
        for i in columns
    )
    return f" (the best can be told from all others in {alone or 'none'} of them)"


def _alike(grid: Grid, column: int) -> str:
    if not is_tested(grid, column):
        return " (not tested)"
    alike = grid.standing(column, "not told apart")
    if not alike:
        return ""
    there = sum(line.entries[column] is not None for line in grid.lines)
    others = there - len(grid.standing(column))
    if len(alike) == others:
        return f" (none of {others} others can be told from it)"
    return f" ({len(alike)} of {others} others cannot be told from it)"


def _baseline(grid: Grid, name: str) -> list[str]:
    """Say where the baseline is best, and where it is not told from the best."""
    columns = [(study, grid.of(study).get(name)) for study in grid.studies]
    known = [(study, entry) for study, entry in columns if entry and entry.stands != "undefined"]
    if not known:
        return []
    wins = [study for study, entry in known if entry.stands == "best"]
    ties = [study for study, entry in known if entry.stands == "not told apart"]
    best, alike = _in(wins, len(known)), _in(ties, len(known))
    if not any(is_tested(grid, i) for i in range(len(grid.studies))):
        return [f"The baseline “{name}” is best {best}; differences were not tested."]
    return [f"The baseline “{name}” is best {best} and cannot be told from the best {alike}."]


def _in(studies: Sequence[Study], of: int) -> str:
    if not studies:
        return "in no study"
    if len(studies) == of:
        return f"in all {of} studies" if of > 1 else "in the only study"
    return f"in {len(studies)} of {of} studies ({listed([s.title for s in studies])})"


def _overall(results: BenchmarkResults, metrics: Sequence[str]) -> list[str]:
    """Say who has the best mean rank by each metric, and whether that may be chance."""
    by: dict[str, list[str]] = {}
    for metric in metrics:
        means = mean_ranks(results, metric)
        best = [name for name, rank in means.items() if rank == min(means.values())]
        if best:
            rank = f"{short_title(metric)} ({mean_said(means[best[0]])})"
            by.setdefault(f"{listed(best)} {'has' if len(best) == 1 else 'have'}", []).append(rank)
    across = chosen.across_in(results.comparisons[metrics[0]], metrics[0])
    if across is None or not by:
        return []
    said = [f"{who} the best mean rank by {' and '.join(ranks)}" for who, ranks in by.items()]
    note = f" {chosen.sentence(across.note).rstrip('.')}." if across.note else ""
    over = f"Over {across.blocks} studies" if across.blocks > 1 else "In one study"
    return [f"{over} {', '.join(said)}{_near(across, metrics[0])}.{note}"]


def _near(across: AcrossData, metric: str) -> str:
    """Say how many methods the test over all studies does not tell from the first."""
    means = dict(zip(across.methods, across.mean_ranks, strict=True))
    first = min(means, key=lambda name: means[name], default="")
    near = {name for clique in across.cliques if first in clique for name in clique} - {first}
    if not near:
        return ""
    others = f"{len(near)} of {len(means) - 1} others cannot be told from it"
    return f"; {others} by {short_title(metric)} (Nemenyi's test)"
